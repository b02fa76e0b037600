"""Sub-agents: their files beside that of the session, and the spans that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.claude_code.records import At, Record
from tracetui.formats.decode import decode
from tracetui.formats.scalars import mapping, moment, text
from tracetui.model import PREVIEW, Operation, Span, StatusSource
from tracetui.sources.base import Entry, File, Stat

_NAME: Final = re.compile(r"agent-([A-Za-z0-9_-]{1,64})\.jsonl")
_BELOW: Final = re.compile(r"(?:^|/)([^/]+)/subagents/(?:[^/]+/){0,4}[^/]+\.jsonl$")
_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_META_LIMIT: Final = 1 << 16
DEPTH: Final = 3
"""Folders below ``subagents`` that are looked into."""


class Part(NamedTuple):
    """The file of a sub-agent: its path relative to the folder of the session's file."""

    path: str
    agent: str
    stat: Stat | None
    meta: Stat | None
    """Of the file that tells what it was started by."""
    workflow: str | None
    """The workflow that started it."""


class Meta(msgspec.Struct, frozen=True):
    """What is told of a sub-agent beside its records."""

    kind: str = ""
    task: str = ""
    call: str | None = None
    """The id of the call that started it."""


def agent_span(agent: str, task: str, record: Record, part: str, meta: Meta | None = None) -> Span:
    """The span of a sub-agent that is not linked to any call yet."""
    meta = meta or Meta()
    return Span(
        id=f"agent:{agent}",
        name=meta.kind or text(record.get("attributionAgent")) or "agent",
        operation=Operation.INVOKE_AGENT,
        status_source=StatusSource.DERIVED,
        started_at=moment(record.get("timestamp")),
        preview=meta.task,
        at=At(part=part, facts=(("agentId", agent), ("task", task))),
    )


def parts_of(file: File, session: str = "") -> list[Part]:
    """The files of sub-agents that belong to the session in `file`, or to another one of its folder."""
    stem = session or file.name.removesuffix(".jsonl")
    return sorted(_in_folder(file, f"{stem}/subagents", DEPTH), key=lambda part: part.path)


def _in_folder(file: File, folder: str, depth: int) -> Iterator[Part]:
    listed = file.folder(folder)
    names = {entry.path.rpartition("/")[2]: entry for entry in listed.entries if entry.skipped is None}
    for name, entry in names.items():
        if named := _NAME.fullmatch(name):
            meta = names.get(name.removesuffix(".jsonl") + ".meta.json")
            wf = folder.partition("/workflows/")[2] or None
            yield Part(f"{folder}/{name}", named[1], entry.stat, None if meta is None else meta.stat, wf)
    for path in listed.folders if depth else ():
        yield from _in_folder(file, f"{folder}/{path.rpartition('/')[2]}", depth - 1)


def beside(file: File, agents: Sequence[str]) -> Iterator[Part]:
    """The files of these sub-agents in the folder of the session itself, where Claude Code 2.0 had them."""
    for agent in agents:
        name = f"agent-{agent}.jsonl"
        if _NAME.fullmatch(name) and name != file.name and file.sibling(name) is not None:
            listed = {entry.path.rpartition("/")[2]: entry for entry in file.folder().entries}
            entry: Entry | None = listed.get(name)
            if entry is not None and entry.skipped is None:
                yield Part(name, agent, entry.stat, None, None)


def meta_of(file: File, part: Part) -> tuple[Meta, Record, bytes]:
    """What the file beside that of a sub-agent says: told, all of it, and its bytes."""
    if part.meta is None:
        return Meta(), {}, b""
    try:
        with file.other(part.path.removesuffix(".jsonl") + ".meta.json", part.meta) as other:
            data = other.read(0, _META_LIMIT)
        found = mapping(decode(data)[0])
    except (FormatError, OSError):
        return Meta(), {}, b""
    kind, task, call = (text(found.get(name)) for name in ("agentType", "description", "toolUseId"))
    return Meta((kind or "")[:PREVIEW], (task or "")[:PREVIEW], call), found, data


def session_of(file: File, record: Record) -> str | None:
    """Path, relative to its folder, of the file of the session that the sub-agent's file `file` may belong to."""
    below = _BELOW.search(file.path)
    if below is not None:
        folders = file.path[below.end(1) :].count("/") - 1
        return f"{'../' * (folders + 1)}{below[1]}.jsonl"
    ident: Any = record.get("sessionId")
    if _NAME.fullmatch(file.name) is None or not isinstance(ident, str) or not _IDENT.fullmatch(ident):
        return None
    return f"{ident}.jsonl"

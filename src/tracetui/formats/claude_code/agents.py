"""Sub-agents: their files beside that of the session, and the spans that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.claude_code.records import At, Record
from tracetui.formats.decode import decode
from tracetui.formats.scalars import mapping, moment, sequence, text
from tracetui.model import PREVIEW, Operation, Span, StatusSource
from tracetui.sources.base import Entry, File, Stat

_NAME: Final = re.compile(r"agent-([A-Za-z0-9_-]{1,64})\.jsonl")
_BELOW: Final = re.compile(r"(?:^|/)([^/]+)/subagents/(?:[^/]+/){0,4}[^/]+\.jsonl$")
_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_META_LIMIT: Final = 1 << 16
_PLAN_LIMIT: Final = 4 << 20
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
    plan: Stat | None = None
    """Of the file that tells what that workflow had in mind."""


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
    found = sorted(_in_folder(file, f"{stem}/subagents", DEPTH), key=lambda part: part.path)
    if not any(part.workflow for part in found):
        return found
    plans = {re.split(r"[/\\]", one.path)[-1]: one for one in file.folder(f"{stem}/workflows").entries}
    told = {name: one.stat for name, one in plans.items() if one.skipped is None}
    return [part._replace(plan=told.get(f"{part.workflow}.json")) for part in found]


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
    """What the file beside that of a sub-agent says: told, all of it, and its bytes; and the plan of its workflow."""
    found, data = _beside(file, part.path.removesuffix(".jsonl") + ".meta.json", part.meta, _META_LIMIT)
    kind, task, call = (text(found.get(name)) for name in ("agentType", "description", "toolUseId"))
    if (row := _planned(file, part)) and (label := text(row.get("label"))) is not None:
        phase = text(row.get("phaseTitle"))
        task, found = task or (label if phase is None else f"{phase}: {label}"), found | {"workflow": row}
    return Meta((kind or "")[:PREVIEW], (task or "")[:PREVIEW], call), found, data


def _planned(file: File, part: Part) -> Record:
    """What the plan of a workflow says of one of its agents."""
    if part.plan is None:
        return {}
    path = f"{part.path.partition('/subagents/')[0]}/workflows/{part.workflow}.json"
    rows = map(mapping, sequence(_beside(file, path, part.plan, _PLAN_LIMIT)[0].get("workflowProgress")))
    return next((row for row in rows if row.get("agentId") == part.agent), {})


def _beside(file: File, path: str, stat: Stat | None, limit: int) -> tuple[Record, bytes]:
    """The object that is in a small file, and its bytes; nothing where there is none."""
    if stat is None or stat.size > limit:
        return {}, b""
    try:
        with file.other(path, stat) as other:
            data = other.read(0, limit)
        return mapping(decode(data)[0]), data
    except (FormatError, OSError):
        return {}, b""


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

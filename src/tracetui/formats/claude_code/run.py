"""A session as a run: its header, what it says about itself, and the session that it was forked from."""

from __future__ import annotations

import re
from typing import Final

from tracetui.errors import FormatError
from tracetui.formats.claude_code.facts import Facts
from tracetui.formats.labels import folder_of
from tracetui.formats.scalars import between, moment, text, version
from tracetui.formats.tail import parse
from tracetui.model import PREVIEW, Header, RunBody, Status, StatusSource
from tracetui.sources.base import Entry, File

AGENT: Final = "claude"
_HEAD: Final = 6
"""Characters of the id of a sub-agent that tell it from the others of a session."""
_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MOST: Final = 2_000
"""Sessions of a folder among which the original of a fork is looked for, the latest first."""


def header_of(facts: Facts, file: File, *, whole: bool = True, size: int | None = None) -> Header:
    """The header as far as it is known. Without `whole` only the beginning of the file was read; `size`: of all files.

    No record says how a session ended: it can always be gone on with. But where the last call of the model failed for
    good, as the record of it says, so did the session.
    """
    stem = file.name.removesuffix(".jsonl")
    ident = facts.agent or facts.named.get("sessionId") or stem
    original, branch = original_of(facts, file), facts.named.get("gitBranch")
    failed = facts.failure if whole else None
    return Header(
        id=ident,
        name=folder_of(facts.named.get("cwd")) or AGENT,
        agent=AGENT,
        model=facts.model,
        status=Status.ERROR if failed is not None else None,
        status_source=StatusSource.EXPLICIT if failed is not None else None,
        ended=False,
        error=failed,
        started_at=facts.first,
        duration_ms=between(facts.first, facts.last) or None,
        replay_of=None if original is None else original[0],
        replay_of_path=None if original is None else original[1],
        relation=None if original is None else "fork",
        parent=facts.named.get("sessionId") if facts.agent is not None else None,
        prompt=facts.prompt or (facts.command or "" if whole else ""),
        tags=(branch[:PREVIEW],) if branch is not None else (),
        source=facts.named.get("cwd", "")[:PREVIEW] or None,
        label=f"agent {facts.agent[:_HEAD]}" if facts.agent is not None else None,
        writer=version(facts.version),
        size=size,
    )


def run_body(facts: Facts) -> RunBody:
    """All that the session says about itself, but for what its records say."""
    return RunBody(
        last_user=facts.last_user,
        last_assistant=facts.last_assistant,
        attributes={**facts.named, **facts.latest},
    )


def original_of(facts: Facts, file: File) -> tuple[str, str | None] | None:
    """Id and path of the session that this one was forked from.

    A fork copies the records of its original with their ids. Its own first record is younger than they are: where that
    is so the original is looked for among the sessions of the folder.
    """
    if facts.forked_from is not None:
        known = _IDENT.fullmatch(facts.forked_from)
        return facts.forked_from, file.sibling(f"{facts.forked_from}.jsonl") if known else None
    if facts.copied_before is None or facts.uuid is None:
        return None
    if facts.uuid not in facts.searched:
        facts.searched[facts.uuid] = _search(file, facts.uuid, facts.copied_before)
    return facts.searched[facts.uuid]


def _search(file: File, uuid: str, before: float) -> tuple[str, str] | None:
    """The oldest session of the folder that begins with the same record."""
    best: tuple[float, str, str] | None = None
    needle = b'"' + uuid.encode("utf-8", "replace") + b'"'
    entries = [one for one in file.folder().entries if one.skipped is None and one.path.endswith(".jsonl")]
    for entry in sorted(entries, key=_time, reverse=True)[:_MOST]:
        name = entry.path.rpartition("/")[2]
        if name == file.name:
            continue
        with file.other(name) as other:
            head = _head(other)
        if needle in head and (begun := _begun(head)) is not None and begun < before:
            best = min(best or (begun, name, entry.path), (begun, name, entry.path))
    return None if best is None else (best[1].removesuffix(".jsonl"), best[2])


def _time(entry: Entry) -> int:
    return entry.stat.mtime_ns if entry.stat is not None else 0


def _head(file: File) -> bytes:
    try:
        return file.head
    except OSError:
        return b""


def _begun(head: bytes) -> float | None:
    """When a session began, by its first record that has a time."""
    for line in head.split(b"\n")[:64]:
        try:
            record, _ = parse(line) if line else (None, None)
        except FormatError:
            continue
        if isinstance(record, dict) and text(record.get("timestamp")) is not None:
            return moment(record.get("timestamp"))
    return None

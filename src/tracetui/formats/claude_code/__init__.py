"""Sessions of Claude Code: what it keeps below ``~/.claude/projects``, one file a session, appended to line by line.

The files of sub-agents, ``SESSION/subagents/agent-ID.jsonl``, are parts of the run of their session. A session never
ends: it can always be gone on with, so that only its file tells whether it is running.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.claude_code.agents import session_of
from tracetui.formats.claude_code.body import body_of
from tracetui.formats.claude_code.count import count
from tracetui.formats.claude_code.facts import Facts
from tracetui.formats.claude_code.reading import read_on
from tracetui.formats.claude_code.records import CONVERSATION, HOUSEKEEPING, Record, kind_of
from tracetui.formats.claude_code.run import header_of
from tracetui.formats.counting import regular
from tracetui.formats.lines import lines
from tracetui.formats.scalars import child, mapping, moment, text
from tracetui.formats.tail import MAX_LINE, nothing_in, read_whole, record_on, records_in
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.model.build import summary_of
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 60
MAYBE: Final = 40
_BEGINS: Final = re.compile(rb'\s*\{[^\n]{0,60000}"(?:parentUuid|isSidechain)"\s*:')
_FEW: Final = 200
"""Lines of the head that are looked at to see what a file is."""


class ClaudeCode:
    """The format; see `tracetui.formats.base.Format`, `Composed` and `Homed`."""

    name = "claude-code"
    title = "Claude Code session"
    home_variables = ("CLAUDE_CONFIG_DIR",)

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"type"' not in head:
            return NO
        best = LIKELY if b"\n" not in head and len(head) == HEAD_SIZE and _BEGINS.match(head) else NO
        for record in records_in(head, _FEW):
            if "parts" in mapping(record.get("message")):  # relatives of it that speak with other models
                return NO
            best = max(best, _claim(record))
            if best == CERTAIN:
                break
        return best

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        facts, tally, size = (regular(count, file) or (None, None, None)) if deep else (_skim(file), None, None)
        if facts is None:
            yield self._full(file, ref)
            return
        header = header_of(facts, file, whole=deep or file.stat.size <= len(file.head), size=size)
        yield summary_of(ref, header, tally, modified_at=file.stat.mtime, moving=file.moving)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        return read_on(file, cursor)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def whole_of(self, file: File) -> str | None:
        record = next((one for one in records_in(file.head, _FEW) if text(one.get("sessionId")) is not None), None)
        path = None if record is None else session_of(file, record)
        if path is None or record is None:
            return None
        try:
            with file.other(path) as session:
                own = "/" in path or _tells(session, text(record.get("agentId")) or "")
                return session.path if own and session.stat.size else None
        except OSError:
            return None

    def parts_in(self, path: str) -> Sequence[str]:
        stem = path.rpartition("/")[2].removesuffix(".jsonl")
        return (f"{stem}/subagents",)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (PurePath(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude", "projects"),)

    def _full(self, file: File, ref: RunRef) -> RunSummary:
        run, _ = read_whole(lambda at: self.read(file, ref, at), file, ref)
        if not run.spans and (run.problems or not file.moving):
            raise nothing_in(run, "there is no record in it")
        return run.summary


def _claim(record: Record) -> int:
    """How surely a record is one of Claude Code."""
    kind = kind_of(record)
    if kind in CONVERSATION:
        said = "content" in mapping(record.get("message"))
        known = "isSidechain" in record or ("parentUuid" in record and said)
        if known and "uuid" in record and isinstance(record.get("sessionId"), str):
            return CERTAIN
        return LIKELY if known or (said and "uuid" in record) else NO
    if kind in HOUSEKEEPING and isinstance(record.get("sessionId"), str):
        return LIKELY
    own = {"summary": "leafUuid", "file-history-snapshot": "snapshot"}.get(kind)
    return MAYBE if own is not None and own in record else NO


def _skim(file: File) -> Facts | None:
    """What the first lines tell, and when the last was written; None where it takes more than that."""
    facts, head, size = Facts(), file.head, file.stat.size
    end = len(head) if size <= len(head) else head.rfind(b"\n") + 1
    for data in head[:end].split(b"\n"):
        _told(facts, data)
    if end < size and not _is_known(facts):
        for line in lines(file, end, limit=MAX_LINE, end=size):
            _told(facts, line.data if not line.skipped else b"")
            end = line.next_offset
            if _is_known(facts):
                break
    if end < size:
        facts.last, facts.version = _last(file)
    return facts if _is_known(facts) else None


def _told(facts: Facts, data: bytes) -> None:
    if data and (record := record_on(data)):
        facts.take(record)


def _is_known(facts: Facts) -> bool:
    """Whether it is known whose session this is: that holds for the rest of the file."""
    return facts.uuid is not None and "sessionId" in facts.named


def _last(file: File) -> tuple[float | None, str | None]:
    """The last time and the last version that a record has, as far as they are at the very end of the file."""
    start = max(0, file.stat.size - HEAD_SIZE)
    tail = file.read(start, file.stat.size - start)
    when: float | None = None
    version: str | None = None
    for data in reversed(tail.split(b"\n")[1 if start else 0 :]):
        record = record_on(data) or {}
        when = moment(record.get("timestamp")) if when is None else when
        version = version or text(record.get("version"))
        if when is not None and version is not None:
            break
    return when, version


def _tells(session: File, agent: str) -> bool:
    """Whether a session tells that it started that sub-agent."""
    needle = f'"{agent}"'.encode("utf-8", "surrogatepass")  # an id that is no text is in no file
    for line in lines(session, limit=MAX_LINE):
        if needle in line.data:
            result = child(record_on(line.data), "toolUseResult")
            if result.get("agentId") == agent:
                return True
    return False

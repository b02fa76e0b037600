"""pi sessions: what the coding agent pi keeps below ``~/.pi/agent/sessions``, one file a session; OpenClaw's are alike.

A session is appended to a line at a time. Its entries form a tree: who goes back and asks something else begins a new
branch in the same file. It never ends: it can always be gone on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.counting import regular
from tracetui.formats.pi.body import body_of
from tracetui.formats.pi.count import count
from tracetui.formats.pi.originals import copies_of
from tracetui.formats.pi.quick import skim
from tracetui.formats.pi.records import SESSION, Record, kind_of, message_of
from tracetui.formats.pi.run import header_of, run_body
from tracetui.formats.pi.session import Session
from tracetui.formats.scalars import text
from tracetui.formats.tail import Reader, nothing_in, read_on, read_whole, records_in
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import summary_of
from tracetui.sources.base import File

LIKELY: Final = 60
_FEW: Final = 16
"""Lines of the head that are looked at to see what a file is."""
_ROLES: Final = frozenset({"user", "assistant", "toolResult", "bashExecution"})
_ANOTHERS: Final = "session_start"
"""How sessions of Droid begin, whose messages look like those of pi."""


class Pi:
    """The format; see `tracetui.formats.base.Format` and `Homed`."""

    name = "pi"
    title = "pi session"
    home_variables = ("PI_CODING_AGENT_DIR",)

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"session"' not in head and b'"parentId"' not in head:
            return NO
        found = list(records_in(head, _FEW))
        if any(kind_of(one) == _ANOTHERS for one in found):
            return NO
        return max(map(_claim, found), default=NO)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        facts, tally = (regular(count, file) or (None, None)) if deep else (skim(file), None)
        if facts is None:
            yield self._full(file, ref)
            return
        yield summary_of(ref, header_of(facts, file), tally, modified_at=file.stat.mtime, moving=file.moving)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """What came since `cursor`; a complete record on a last line without newline is read ahead of time."""
        return read_on(_READER, file, cursor)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (PurePath(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent", "sessions"),)

    def _full(self, file: File, ref: RunRef) -> RunSummary:
        run, cursor = read_whole(lambda at: self.read(file, ref, at), file, ref)
        if not cursor.session.records and (run.problems or not file.moving):
            raise nothing_in(run, "it does not end")
        return run.summary


def _begin(file: File) -> Session:
    return Session(file.path, lambda facts: copies_of(file, facts))


def _told(session: Session, file: File) -> tuple[Header, RunBody]:
    return header_of(session.facts, file), run_body(session.facts)


_READER: Final = Reader(_begin, _told)


def _claim(record: Record) -> int:
    """How surely a record is one of pi."""
    if kind_of(record) == SESSION and isinstance(record.get("id"), str) and "timestamp" in record:
        return CERTAIN if "cwd" in record or "version" in record or "modelId" in record else LIKELY
    is_entry = kind_of(record) == "message" and "parentId" in record and "timestamp" in record
    return LIKELY if is_entry and text(message_of(record).get("role")) in _ROLES else NO

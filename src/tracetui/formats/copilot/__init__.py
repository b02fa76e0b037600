"""Copilot CLI sessions: one file of events a session, appended to line by line, with the sub-agents in it.

Facts: files of version 1.0.102, public ones of 0.0.420 to 1.0.77, and the schema of events that GitHub's own SDK
publishes. A session can be resumed after it was shut down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.copilot.body import body_of
from tracetui.formats.copilot.count import count
from tracetui.formats.copilot.quick import skim
from tracetui.formats.copilot.run import body_of_run, header_of
from tracetui.formats.copilot.session import Session
from tracetui.formats.copilot.words import ABORT, KINDS
from tracetui.formats.counting import regular
from tracetui.formats.tail import Reader, nothing_in, read_on, read_whole, records_in
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import summary_of
from tracetui.sources.base import File

LIKELY: Final = 60
_CUT: Final = re.compile(rb'"type"\s*:\s*"(?:session\.start|(?:user|system|assistant)\.message)"')
_LOOK: Final = 16
"""Lines that are looked at."""


class Copilot:
    """The format; see `tracetui.formats.base.Format` and `Homed`."""

    name = "copilot"
    title = "Copilot CLI session"
    home_variables = ("COPILOT_HOME",)

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"data"' not in head or b'"type"' not in head:
            return NO
        best = max(map(_claim, records_in(head, _LOOK)), default=NO)
        if best:
            return best
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins == b"{" and b"\n" not in head and _CUT.search(head) and b'"parentId"' in head else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        header, tally = (regular(count, file) or (None, None)) if deep else (skim(file), None)
        if header is not None:
            yield summary_of(ref, header, tally, modified_at=file.stat.mtime, moving=file.moving)
            return
        run, cursor = read_whole(lambda at: self.read(file, ref, at), file, ref)
        taken = cursor.session.records or (cursor.ahead is not None and cursor.ahead.taken)
        if not taken and (run.problems or not file.moving):
            raise nothing_in(run, "it does not end")
        yield run.summary

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """What came since `cursor`; a complete event on a last line without newline is read ahead of time."""
        return read_on(_READER, file, cursor)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from; `raw` is all of them."""
        return body_of(file, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (PurePath(environ.get("COPILOT_HOME") or home / ".copilot", "session-state"),)


def _told(session: Session, file: File) -> tuple[Header, RunBody]:
    return header_of(session, file), body_of_run(session, file)


_READER: Final = Reader(lambda file: Session(file.path), _told)


def _claim(record: dict[str, Any]) -> int:
    """How surely a record is an event of a session."""
    if not isinstance(record.get("data"), dict):
        return NO
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        return NO
    if "parentId" in record and isinstance(record.get("id"), str):
        return CERTAIN
    return LIKELY if "timestamp" in record and kind != ABORT else NO  # the word is anybody's

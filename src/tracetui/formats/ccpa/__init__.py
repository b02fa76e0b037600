"""ccpa traces: coding sessions as JSON lines, of a teacher (Claude Code) and of the student that repeats them.

Facts: paiml/claude-code-parity-apr. The recorder truncates the file, writes it through a buffer of 8 KiB and flushes it
at the end: a session in progress grows by blocks that cut lines and characters. A session without ``session_end`` is in
progress, or its recorder was killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.ccpa.body import body_of
from tracetui.formats.ccpa.count import count
from tracetui.formats.ccpa.records import KINDS, At, content_text, end_word, kind_of
from tracetui.formats.ccpa.run import header_of, run_body
from tracetui.formats.ccpa.session import End, Session
from tracetui.formats.counting import regular
from tracetui.formats.tail import Reader, nothing_in, read_on, read_whole, record_on
from tracetui.model import PREVIEW, Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import Tally, summary_of
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 40
_LOOK_BACK: Final = 4 << 20
_START: Final = re.compile(rb'"kind"\s*:\s*"session_start"')
_END: Final = b"session_end"


def _told(session: Session, file: File) -> tuple[Header, RunBody]:
    header = header_of(session, file, failed=session.failed)
    return header, run_body(session, header)


_READER: Final = Reader(lambda file: Session(file.path), _told)


class Ccpa:
    """The format; see `tracetui.formats.base.Format`."""

    name = "ccpa"
    title = "ccpa trace"

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"kind"' not in head:
            return NO
        for data in chain(_lines(head), (head[head.rfind(b"\n") + 1 :],)):
            record = record_on(data) if b'"kind"' in data else None
            if record is not None and kind_of(record) in KINDS:
                return CERTAIN
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins in (b"{", b"[") and _START.search(head) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        header, tally = _counted(file) if deep else (_skim(file), None)
        if header is not None:
            yield summary_of(ref, header, tally, modified_at=file.stat.mtime, moving=file.moving)
            return
        yield self._full(file, ref)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """What came since `cursor`; a complete record on a last line without newline is read ahead of time."""
        return read_on(_READER, file, cursor)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from; a call's `raw` is its turn's line and its result's line."""
        return body_of(file, span)

    def _full(self, file: File, ref: RunRef) -> RunSummary:
        run, cursor = read_whole(lambda at: self.read(file, ref, at), file, ref)
        taken = cursor.session.records or (cursor.ahead is not None and cursor.ahead.taken)
        if not taken and (run.problems or not file.moving):
            raise nothing_in(run, "it does not end")
        return run.summary


def _counted(file: File) -> tuple[Header | None, Tally | None]:
    """Header and numbers of a regular session; nothing of one that must be read in full."""
    found = regular(count, file)
    if found is None:
        return None, None
    session, tally = found
    return header_of(session, file, failed=session.failed), tally


def _skim(file: File) -> Header | None:
    """The header from the first and last lines; None where they do not tell all of it."""
    session = Session(file.path)
    for data in _lines(file.head):
        record = record_on(data)
        if record is None:
            continue
        if session.start is None:
            if kind_of(record) != "session_start":
                return None
            session.start = record
        elif kind_of(record) == "user_prompt":
            session.prompt = content_text(record.get("text"))[:PREVIEW]
            break
    else:  # of a long session the deep pass finds the prompt
        if session.start is None or file.stat.size <= HEAD_SIZE:
            return None
    end = _last_end(file)
    if end is not None:
        if end_word(end) is None:
            return None
        session.end = End(end, 0, At(0, 0))
    elif _mentions_end(file, file.stat.size - HEAD_SIZE + len(_END)):
        return None
    return header_of(session, file, failed=None)


def _last_end(file: File) -> dict[str, Any] | None:
    """The last ``session_end`` among the last lines."""
    size = file.stat.size
    tail = file.head if size <= HEAD_SIZE else file.read(size - HEAD_SIZE, HEAD_SIZE).partition(b"\n")[2]
    found = tail.rfind(_END)
    while found >= 0:
        begin, end = tail.rfind(b"\n", 0, found) + 1, tail.find(b"\n", found)
        record = record_on(tail[begin:] if end < 0 else tail[begin:end])
        if record is not None and kind_of(record) == _END.decode():
            return record
        found = tail.rfind(_END, 0, begin)
    return None


def _mentions_end(file: File, before: int) -> bool:
    """Whether the word occurs in the megabytes before byte `before`; no session goes on for longer after its end."""
    start = max(0, before - _LOOK_BACK)
    return before > 0 and _END in file.read(start, before - start)


def _lines(head: bytes) -> Iterator[bytes]:
    """The finished lines of the head of a file."""
    begin = 0
    while (end := head.find(b"\n", begin)) >= 0:
        yield head[begin:end]
        begin = end + 1

"""ccpa traces: coding sessions as JSON lines, of a teacher (Claude Code) and of the student that repeats them.

Facts: paiml/claude-code-parity-apr. The recorder truncates the file, writes it through a buffer of 8 KiB and flushes it
at the end: a session in progress grows by blocks that cut lines and characters. A session without ``session_end`` is in
progress, or its recorder was killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.ccpa.records import KINDS, SCHEMA
from tracetui.formats.ccpa.session import Session, body_of
from tracetui.formats.decode import record_on
from tracetui.formats.jsonl import LogReader, counted, listed, skim
from tracetui.formats.scalars import string
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import File

LIKELY: Final = 40
_START: Final = re.compile(rb'"kind"\s*:\s*"session_start"')


class Ccpa:
    """The format; see `tracetui.formats.base.Format`."""

    name = "ccpa"
    title = "ccpa trace"

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"kind"' not in head:
            return NO
        for data in head.split(b"\n"):
            record = record_on(data) if b'"kind"' in data else None
            if record is not None and string(record.get("kind")) in KINDS:
                return CERTAIN
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins in (b"{", b"[") and _START.search(head) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        if not deep:
            skim(file, SCHEMA, session := Session(file))
            if session.start is not None and (session.end is None or session.end.word is not None):
                yield listed(ref, file, session)
                return
        yield counted(ref, file, self.open(file, ref))

    def open(self, file: File, ref: RunRef) -> LogReader[Session]:
        return LogReader(SCHEMA, Session)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from; a call's `raw` is its turn's line and its result's line."""
        return body_of(file, span)

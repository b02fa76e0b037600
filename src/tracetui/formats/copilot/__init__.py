"""Copilot CLI sessions: one file of events a session, appended to line by line, with the sub-agents in it.

Facts: files of version 1.0.102, public ones of 0.0.420 to 1.0.77, and the schema of events that GitHub's own SDK
publishes. A session can be resumed after it was shut down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.copilot.context import context_of
from tracetui.formats.copilot.events import ABORT
from tracetui.formats.copilot.records import KINDS, SCHEMA
from tracetui.formats.copilot.session import Session, body_of
from tracetui.formats.decode import records_in
from tracetui.formats.jsonl import LogFormat
from tracetui.model import Body, RunRef, RunSummary, Span
from tracetui.model.context import ContextFacts
from tracetui.sources.base import File

LIKELY: Final = 60
_CUT: Final = re.compile(rb'"type"\s*:\s*"(?:session\.start|(?:user|system|assistant)\.message)"')
_LOOK: Final = 16
"""Lines that are looked at."""


class Copilot(LogFormat):
    """The format; see `tracetui.formats.base.Format`, `Contextual`, `Homed` and `Resumable`."""

    name = "copilot"
    title = "Copilot CLI session"
    home_variables = ("COPILOT_HOME",)
    schema, session = SCHEMA, Session

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"data"' not in head or b'"type"' not in head:
            return NO
        best = max(map(_claim, records_in(head, _LOOK)), default=NO)
        if best:
            return best
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins == b"{" and b"\n" not in head and _CUT.search(head) and b'"parentId"' in head else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from; `raw` is all of them."""
        return body_of(file, span)

    def context(self, span: Span, body: Body) -> ContextFacts | None:
        return context_of(span, body)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (PurePath(environ.get("COPILOT_HOME") or home / ".copilot", "session-state"),)

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["copilot", "--resume", run.id]


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

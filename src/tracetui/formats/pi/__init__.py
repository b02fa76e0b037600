"""Sessions of the coding agent pi below ``~/.pi/agent/sessions``: one file per session, as in OpenClaw.

A session is appended to a line at a time. Its entries form a tree: going back and asking something else begins a new
branch in the same file. It never ends: it can always be continued.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import kind_of
from tracetui.formats.decode import records_in
from tracetui.formats.jsonl import LogReader, counted, listed, skim
from tracetui.formats.pi.records import SCHEMA
from tracetui.formats.pi.session import Session, body_of, message_of
from tracetui.formats.scalars import text
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import File

LIKELY: Final = 60
_FEW: Final = 16
"""Lines of the head checked to recognize a file."""
_ROLES: Final = frozenset({"user", "assistant", "toolResult", "bashExecution"})
_ANOTHERS: Final = "session_start"
"""The first record of a session of Droid, with messages like those of pi."""


class Pi:
    """The format; see `tracetui.formats.base.Format`, `Homed` and `Resumable`."""

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
        if not deep:
            skim(file, SCHEMA, session := Session(file))
            if session.begin is not None:
                yield listed(ref, file, session)
                return
        yield counted(ref, file, self.open(file, ref))

    def open(self, file: File, ref: RunRef) -> LogReader[Session]:
        return LogReader(SCHEMA, Session)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (PurePath(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent", "sessions"),)

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["pi", "--session", run.ref.path]


def _claim(record: dict[str, Any]) -> int:
    """How surely a record is one of pi."""
    if kind_of(record) == "session" and isinstance(record.get("id"), str) and "timestamp" in record:
        return CERTAIN if "cwd" in record or "version" in record or "modelId" in record else LIKELY
    is_entry = kind_of(record) == "message" and "parentId" in record and "timestamp" in record
    return LIKELY if is_entry and text(message_of(record).get("role")) in _ROLES else NO

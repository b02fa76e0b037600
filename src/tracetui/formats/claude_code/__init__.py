"""Sessions of Claude Code below ``~/.claude/projects``: one file per session, which grows line by line.

The files of sub-agents, ``SESSION/subagents/agent-ID.jsonl``, are parts of the run of their session. A session never
ends: it can always be continued, and only the time of its file shows whether it is running.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import kind_of
from tracetui.formats.claude_code.body import body_of
from tracetui.formats.claude_code.context import context_of
from tracetui.formats.claude_code.parts import RunReader, copied_session, session_of
from tracetui.formats.claude_code.records import CONVERSATION, HOUSEKEEPING, SCHEMA
from tracetui.formats.claude_code.session import Session
from tracetui.formats.decode import MAX_LINE, lines, record_on, records_in
from tracetui.formats.jsonl import LogFormat
from tracetui.formats.opening import beginning
from tracetui.formats.scalars import child, mapping, text
from tracetui.model import Body, RunRef, RunSummary, Span
from tracetui.model.context import ContextFacts
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 60
MAYBE: Final = 40
_BEGINS: Final = re.compile(rb'\s*\{[^\n]{0,60000}"(?:parentUuid|isSidechain)"\s*:')
_NAMES: Final = (b'"sessionId"', b'"uuid"', b'"parentUuid"', b'"isSidechain"', b'"leafUuid"', b'"snapshot"')
"""Names of fields, of which every record in `_claim` has one."""
_FEW: Final = 200
"""Lines of the head checked to recognize a file."""


class ClaudeCode(LogFormat):
    """The format; see `tracetui.formats.base.Format`, `Composed`, `Contextual`, `Homed` and `Resumable`."""

    name = "claude-code"
    title = "Claude Code session"
    home_variables = ("CLAUDE_CONFIG_DIR",)
    schema, session = SCHEMA, Session

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"type"' not in head or not any(name in head for name in _NAMES):
            return NO
        best = LIKELY if b"\n" not in head and len(head) == HEAD_SIZE and _BEGINS.match(head) else NO
        for record in records_in(head, _FEW):
            if "parts" in mapping(record.get("message")):  # relatives of it that speak with other models
                return NO
            best = max(best, _claim(record))
            if best == CERTAIN:
                break
        return best

    def open(self, file: File, ref: RunRef) -> RunReader:
        return RunReader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def context(self, span: Span, body: Body) -> ContextFacts | None:
        return context_of(span, body)

    def whole_of(self, file: File) -> str | None:
        records = beginning(file, _FEW)
        record = next((line for line in records if text(line.get("sessionId")) is not None), None)
        if record is None:
            names = (text(line.get("session_id")) for line in beginning(file, _FEW))
            return copied_session(file, next(filter(None, names), ""))
        path = session_of(file, record.get("sessionId"))
        if path is None:
            return None
        try:
            with file.other(path) as session:
                own = "/" in path or _starts(session, text(record.get("agentId")) or "")
                return session.path if own and session.stat.size else None
        except OSError:
            return None

    def parts_in(self, path: str) -> Sequence[str]:
        stem = path.rpartition("/")[2].removesuffix(".jsonl")
        return (f"{stem}/subagents",)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (PurePath(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude", "projects"),)

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["claude", "--resume", run.id]


def _claim(record: dict[str, Any]) -> int:
    """How surely a record is one of Claude Code."""
    kind = kind_of(record)
    if kind in CONVERSATION:
        has_content = "content" in mapping(record.get("message"))
        is_entry = "isSidechain" in record or ("parentUuid" in record and has_content)
        if is_entry and "uuid" in record and isinstance(record.get("sessionId"), str):
            return CERTAIN
        return LIKELY if is_entry or (has_content and "uuid" in record) else NO
    if kind in HOUSEKEEPING and isinstance(record.get("sessionId"), str):
        return LIKELY
    own = {"summary": "leafUuid", "file-history-snapshot": "snapshot"}.get(kind)
    return MAYBE if own is not None and own in record else NO


def _starts(session: File, agent: str) -> bool:
    """Whether a tool result of a session names that sub-agent."""
    needle = f'"{agent}"'.encode("utf-8", "surrogatepass")  # an id that is no text is in no file
    for line in lines(session, limit=MAX_LINE):
        if needle in line.data:
            result = child(record_on(line.data), "toolUseResult")
            if result.get("agentId") == agent:
                return True
    return False

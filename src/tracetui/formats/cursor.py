"""Cursor: transcripts of its agents.

Facts: public readers and fixtures of 2026, no file of the program itself. ``agent-transcripts/ID/ID.jsonl`` below a
folder of the project; sub-agents are in ``subagents/ID.jsonl`` beside it. Lines have messages without ids or times, and
the end of each turn. Results of tools, models and tokens are not recorded. Out of usage, one line with the error is
all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import DONE, Dialog, row
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import (
    SpanRef,
    argument,
    block_of,
    blocks_of,
    convert_each,
    message_body,
    notes_body,
    pack_block,
    part_of,
    records_of,
    text_in,
    type_of,
)
from tracetui.formats.jsonl import Line, LogFormat
from tracetui.formats.scalars import mapping, task_key, text, without
from tracetui.formats.schema import NULL, Loose, Schema, plain
from tracetui.model import (
    PREVIEW,
    Body,
    Error,
    Header,
    Message,
    Operation,
    RunBody,
    RunRef,
    Span,
    Status,
    StatusSource,
    excerpt,
    status_of,
)
from tracetui.sources.base import File

AGENT: Final = "cursor"
FOLDER: Final = "agent-transcripts"
_END: Final = "turn_ended"
_LIKELY: Final = 70
_ROLES: Final = ("user", "assistant", "system")
_SUB_AGENTS: Final = frozenset({"Task", "Agent"})
_QUERY: Final = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_TIMESTAMP: Final = re.compile(
    r"<timestamp>\w+, (\w{3})\w* (\d{1,2}), (\d{4}), "
    r"(\d{1,2}):(\d\d) ([AP])M \(UTC([+-]\d{1,2})?(?::(\d\d))?\)</timestamp>"
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Said(Struct, gc=False):
    """A message."""

    other_fields: ClassVar = ""
    content: Raw = NULL


class Record(Struct, gc=False):
    """A line: a message, or the end of a turn."""

    other_fields: ClassVar = ""
    role: str | None = None
    message: Said | Loose = None
    type: str | None = None
    status: str | None = None
    error: str | Loose = None


SCHEMA: Final[Schema[Record]] = Schema(Record)


class Session(Dialog):
    """The state of a transcript so far; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._end: Record | None = None
        """The end of the last turn, if nothing came after it."""

    def take(self, record: Record, line: Line) -> None:
        self.records += 1
        self._end = None
        said = record.message
        if record.type == _END:
            self._turn_end(record, line)
        elif record.type is None and isinstance(said, Said) and record.role == "assistant":
            self._reply(said, line)
        elif record.type is None and isinstance(said, Said):
            self._message(record.role or "message", said, line)
        else:
            kind = (record.type or record.role or "?")[:PREVIEW]
            self.emit(row(f"line {line.number}", kind, None, line, operation=Operation.UNKNOWN))

    def _message(self, role: str, said: Said, line: Line) -> None:
        content = text_in(plain(said.content))
        when, query = time_in(content), query_in(content)
        if role == "user":
            self.started = when if self.prompt is None and not self.skipped else self.started
            self.user_row(query, when, line)
            return
        facts: dict[str, Any] = {"operation": Operation.MESSAGE, "preview": query[:PREVIEW]}
        self.put(row(f"line {line.number}", role[:PREVIEW], when, line, **facts))

    def _reply(self, said: Said, line: Line) -> None:
        content = plain(said.content)
        ident = self.reply_row(text_in(content).strip(), None, line, **DONE)
        for number, block in enumerate(blocks_of(content)):
            if type_of(block) != "tool_use":
                continue
            name = (text(block.get("name")) or "call")[:PREVIEW]
            self.emit(
                Span(
                    f"{ident}.{number}",
                    name,
                    Operation.INVOKE_AGENT if name in _SUB_AGENTS else Operation.EXECUTE_TOOL,
                    ident,
                    self.steps,
                    preview=argument(block.get("input"))[:PREVIEW],
                    at=pack_block(number) + line.packed(),
                )
            )

    def _turn_end(self, record: Record, line: Line) -> None:
        self._end = record
        ident, word = f"line {line.number}", record.status or _END
        if status_of(word) is not Status.ERROR and not record.error:
            self.note(ident, f"turn ended: {word}"[:PREVIEW], None, line)
            return
        facts: dict[str, Any] = {"status": Status.ERROR, "status_word": word[:PREVIEW], "error": _error_of(record)}
        facts |= {"operation": Operation.OTHER, "status_source": StatusSource.EXPLICIT}
        self.emit(row(ident, "turn ended", None, line, **self.below_top(), **facts))

    def header(self) -> Header:
        end, place = self._end, Place.from_file(self.file)
        word = None if end is None else end.status
        failed = end is not None and bool(end.error)
        status = Status.ERROR if failed else None if word is None else status_of(word)
        return Header(
            id=place.id,
            name=(place.project or AGENT)[:PREVIEW],
            status=status,
            status_word=word,
            status_source=None if status is None else StatusSource.EXPLICIT,
            ended=status is not None,
            parent=place.parent,
            is_session=place.parent is None,
            identity=task_key(AGENT, place.id) if len(place.id) > 30 else None,
            source=(place.project or "")[:PREVIEW] or None,
            **self.described(AGENT),
        )

    def run_body(self) -> RunBody:
        error = _error_of(self._end) if self._end is not None and self._end.error else None
        return replace(super().run_body(), error=error)


class Cursor(LogFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "cursor"
    title = "Cursor transcript"
    home_variables = ()
    schema, session, signs = SCHEMA, Session, (b'"role"', b'"turn_ended"')

    def claim(self, record: dict[str, Any]) -> int:
        """Other programs' messages have a type or an id."""
        if record.get("type") == _END and record.keys() <= {"type", "status", "error"}:
            return CERTAIN
        is_said = record.keys() == {"role", "message"} and record["role"] in _ROLES
        return _LIKELY if is_said and isinstance(mapping(record["message"]).get("content"), list) else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """A message, a call, or notes."""
        records, raw = records_of(file, span.at)
        at, record = SpanRef.of(span.at), records[0]
        content = mapping(record.get("message")).get("content")
        if at.block >= 0:
            block = block_of(content, at)
            return Body(input=block.get("input"), attributes=without(block, "type", "name", "input"), raw=raw)
        if span.operation not in (Operation.CHAT, Operation.MESSAGE):
            return notes_body(records, raw) if span.operation is Operation.META else Body(attributes=record, raw=raw)
        attributes = without(record, "role", "message")
        said = without(mapping(record.get("message")), "content")
        parts = convert_each("content", enumerate(blocks_of(content)), _part, said)
        if not isinstance(content, str | list) and content is not None:
            said["content"] = content
        attributes |= {"message": said} if said else {}
        message = Message(text(record.get("role")) or "message", tuple(parts))
        return message_body(message, attributes, raw, is_output=message.role == "assistant")

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (home / ".cursor" / "projects",)


def _part(block: Any) -> Any:
    return part_of(block, call="tool_use", arguments="input")


class Place(Struct, frozen=True):
    """What the path of a transcript says."""

    id: str
    parent: str | None
    """The id of the transcript whose sub-agent this one is."""
    project: str | None
    """The folder of the project, in which ``-`` stands for its separators too."""

    @classmethod
    def from_file(cls, file: File) -> Place:
        *above, name = file.path.replace("\\", "/").split("/")
        is_child = len(above) > 1 and above[-1] == "subagents"
        index = len(above) - 1 - above[::-1].index(FOLDER) if FOLDER in above else 0
        return cls(name.removesuffix(".jsonl"), above[-2] if is_child else None, above[index - 1] if index else None)


def query_in(content: str) -> str:
    """What the user typed; facts about the editor are around it."""
    asked = _QUERY.search(content)
    return (asked[1] if asked else content).strip()


def time_in(content: str) -> float | None:
    """The time in a prompt, in seconds since the epoch."""
    written = _TIMESTAMP.search(content[:1000])
    if written is None or written[1] not in _MONTHS:
        return None
    month, day, year, hour, minute, half, offset, rest = written.groups()
    hours, minutes = int(hour) % 12 + 12 * (half == "P"), int(minute)
    try:
        local = datetime(int(year), _MONTHS.index(month) + 1, int(day), hours, minutes, tzinfo=UTC)
    except ValueError:
        return None
    east = int(offset or 0) * 60
    east += int(rest or 0) * (-1 if (offset or "").startswith("-") else 1)
    return local.timestamp() - east * 60


def _error_of(record: Record) -> Error:
    return Error(excerpt(record.error if isinstance(record.error, str) else "error"))

"""Qwen Code sessions below ``~/.qwen/projects/PROJECT/chats``: one file of JSON lines per session.

Qwen Code came from Gemini CLI: messages have the parts of the Gemini API, but records are appended and name the one
that they follow. Records of one id are pieces of one message. A record that goes back to an earlier one abandons the
messages between. Facts: public files of 0.21.13; the end of a session is not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, ClassVar, Final, cast

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from tracetui.formats.agent_log import ERROR, EXPLICIT, META
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.branches import ROOT
from tracetui.formats.gemini import MOST, Entry, Session, body_of
from tracetui.formats.gemini.records import Record, RecordRef, Tokens, parts_of
from tracetui.formats.jsonl import Line, LogFormat
from tracetui.formats.scalars import folder_of, mapping, moment, sequence, text
from tracetui.formats.schema import NULL, Loose, Natural, Schema, plain, raw_of
from tracetui.model import PREVIEW, Body, Error, FirstError, Header, RunRef, RunSummary, Span, excerpt
from tracetui.sources.base import File

AGENT: Final = "qwen-code"
_FEW: Final = 16
"""Lines of the head checked to recognize a file."""
_KINDS: Final = frozenset({"user", "assistant", "tool_result", "system"})


class Counts(Tokens):
    """Usage of a response, as the Gemini API names it."""

    other_fields: ClassVar = None
    input: Natural | None = field(default=None, name="promptTokenCount")
    output: Natural | None = field(default=None, name="candidatesTokenCount")
    cached: Natural | None = field(default=None, name="cachedContentTokenCount")
    thoughts: Natural | None = field(default=None, name="thoughtsTokenCount")
    tool: Natural | None = field(default=None, name="toolUsePromptTokenCount")
    total: Natural | None = field(default=None, name="totalTokenCount")


class Message(Struct, gc=False):
    other_fields: ClassVar = "role"
    parts: Raw = NULL


class Result(Struct, gc=False):
    status: str | None = None


class Payload(Struct, gc=False, rename="camel"):
    """Fields that the program adds to a record."""

    display_text: str | None = None
    ui_event: dict[str, Any] | Loose = None


class Item(Struct, gc=False, rename="camel"):
    """A record of any kind."""

    other_fields: ClassVar = "contextWindowSize"
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    type: str | None = None
    subtype: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    model: str | None = None
    message: Message | None = None
    usage_metadata: Counts | Loose = None
    tool_call_result: Result | Loose = None
    system_payload: Payload | Loose = None


ITEM: Final = Schema[Item](Item)


class QwenSession(Session):
    """State of one session; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.head = Item()
        """The first record."""
        self._message_at: dict[str, str] = {}
        """The latest message at each record."""
        self._merged: dict[str, Record] = {}
        """Responses by id, all pieces together."""

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        item: Item = record
        if self.begin is None and item.session_id is not None:
            self.begin, self.head, self.extent = Record(session_id=item.session_id), item, line.byte_range
            self.first = moment(item.timestamp)
        source, when = RecordRef(*line.byte_range), moment(item.timestamp)
        self.note_time(item.timestamp)
        self._follow(item, source, line)
        if item.type in ("user", "assistant", "tool_result") and item.message is not None:
            self._message(item, source, when, line)
        elif item.type == "system":
            self._event(item, source, when, line)
        else:
            self.message(Record(item.uuid, item.type or "?", item.timestamp), source, line.number)
        if item.uuid:
            self._message_at[item.uuid] = self.leaf.ident

    def _follow(self, item: Item, source: RecordRef, line: Line) -> None:
        """Abandon the records between this record and its predecessor."""
        before = self._message_at.get(item.parent_uuid or "", ROOT)
        if before in (ROOT, self.leaf.ident) or not self.is_live(before) or item.uuid in self._by_key:
            return
        if item.subtype == "rewind" or (item.type == "user" and item.subtype != "notification"):
            self._rewind(before, source, line)

    def _message(self, item: Item, source: RecordRef, when: float | None, line: Line) -> None:
        content = item.message.parts if item.message is not None else NULL
        key = item.uuid or f"record {line.number}"
        if item.type == "assistant":
            earlier = self._merged.get(key)
            model, usage = item.model, cast("Tokens | Loose", item.usage_metadata)
            if earlier is not None and key in self._by_key and len(self._by_key[key].sources) < MOST:
                parts = [*sequence(plain(earlier.content)), *sequence(plain(content))]
                content = raw_of(parts)
                model = model or earlier.model
                usage = usage if isinstance(usage, Counts) else earlier.tokens
            elif earlier is not None:
                key = f"record {line.number}"
            record = Record(key, "gemini", item.timestamp, content, usage, model)
            self._merged[key] = record
            self.message(record, source, line.number)
            return
        record = Record(key, "user", item.timestamp, content)
        if item.type == "tool_result":
            answers = [part.function_response for part in parts_of(content) if part.function_response is not None]
            result = item.tool_call_result
            word = result.status if isinstance(result, Result) else None
            repeated = [response for response in answers if response.id in self.calls]
            if repeated and len(repeated) == len(answers):
                self._answers(Entry((source,), key), answers, word, when)
                return
        text = item.system_payload.display_text if isinstance(item.system_payload, Payload) else None
        if item.subtype == "notification":
            entry = Entry((source,), self._free_id(item.uuid, f"line {line.number}"))
            self.add_node(key, self.leaf.ident, entry.ident)
            self._put(entry, Span(id=entry.ident, name="notification", operation=META, preview=(text or "")[:PREVIEW]))
            return
        if text and not self.prompt:
            self.prompt = text.strip()[:PREVIEW]
        self.message(record, source, line.number)

    def _event(self, item: Item, source: RecordRef, when: float | None, line: Line) -> None:
        event = mapping(item.system_payload.ui_event) if isinstance(item.system_payload, Payload) else {}
        failed = text(event.get("error_message"))
        if failed is None:
            self._meta((item.subtype or "system").replace("_", " "), source, line)
            return
        entry = Entry((source,), self._free_id(item.uuid, f"line {line.number}"))
        self.add_node(item.uuid or entry.ident, self.leaf.ident, entry.ident)
        error = Error(excerpt(failed), (text(event.get("error_type")) or "")[:PREVIEW] or None)
        where = None if self.skipped else entry.ident
        self._set_failure(FirstError(error.message, error.type, where, "API error", META))
        facts: dict[str, Any] = {"operation": META, "status": ERROR, "status_source": EXPLICIT, "error": error}
        self._put(entry, Span(id=entry.ident, name="API error", started_at=when, **facts))

    def header(self) -> Header:
        head = self.head
        return replace(
            super().header(),
            name=folder_of(head.cwd) or AGENT,
            agent=AGENT,
            parent=None,
            source=head.cwd[:PREVIEW] if head.cwd else None,
            writer=head.version[:PREVIEW] if head.version else None,
            tags=(head.git_branch[:PREVIEW],) if head.git_branch else (),
        )


class Qwen(LogFormat):
    """The format; see `tracetui.formats.base.Format`, `Homed` and `Resumable`."""

    name = "qwen"
    title = "Qwen Code session"
    home_variables: Sequence[str] = ()

    schema, session, signs, looked_at = ITEM, QwenSession, (b'"parentUuid"',), _FEW

    def claim(self, record: dict[str, Any]) -> int:
        if text(record.get("type")) not in _KINDS or "uuid" not in record or text(record.get("sessionId")) is None:
            return NO
        return CERTAIN if "parts" in mapping(record.get("message")) or "systemPayload" in record else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the records that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (home / ".qwen" / "projects",)

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["qwen", "--resume", run.id]

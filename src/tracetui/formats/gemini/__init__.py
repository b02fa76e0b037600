"""Gemini CLI sessions below ``~/.gemini/tmp/PROJECT/chats``: one file per session or sub-agent.

Today's files are JSON lines, ``session-TIME-ID.jsonl``, and ``PARENT/ID.jsonl`` for a sub-agent, which is a run of its
own; earlier versions rewrote one JSON document, ``session-TIME-ID.json``, with the same messages.

Messages are rewritten, replaced and cut while records come in. A message is written again under its id as its tool
calls end: the last version counts. ``$set`` changes metadata; with ``messages`` it replaces the list, as a resumed
session does: messages seen before are copies without tokens and keep their first version, those that it leaves out were
part of the conversation and stay. ``$rewindTo`` takes back a message and all after it, or all messages where there is
none of that id. The end of a session is not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import (
    CHAT,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXPLICIT,
    MESSAGE,
    META,
    MOST_NOTES,
    OK,
    RUNNING,
    UNKNOWN,
    UNKNOWN_KIND,
    Call,
)
from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.bodies import ByteRange, add_field, changed, message_body, preview_of, record_at
from tracetui.formats.branches import ROOT, BranchedConversation
from tracetui.formats.decode import record_on, records_in, top_names
from tracetui.formats.document import DocumentReader, Outline, summary
from tracetui.formats.gemini.records import (
    RECORD,
    Change,
    Named,
    Record,
    RecordRef,
    SpanRef,
    Tokens,
    ToolCall,
    outcome_of_response,
    parts_of,
    text_of,
)
from tracetui.formats.jsonl import Line, LogReader, counted, listed, skim
from tracetui.formats.opening import beginning
from tracetui.formats.scalars import between, folder_of, mapping, moment, sequence, text, without
from tracetui.formats.schema import plain, raw_of, unknown_fields
from tracetui.formats.sqlite import KindReader
from tracetui.model import (
    PREVIEW,
    Blob,
    Body,
    Error,
    FirstError,
    Header,
    Message,
    Operation,
    Part,
    Problem,
    Reasoning,
    RunBody,
    RunRef,
    RunSummary,
    Span,
    Text,
    excerpt,
)
from tracetui.model import ToolCall as CallPart
from tracetui.sources.base import HEAD_SIZE, File

AGENT: Final = "gemini-cli"
_CONTEXT: Final = "<session_context>"
"""Beginning of the message in which the program describes its working directory."""
MOST: Final = 256
"""Versions of a message that its detail shows."""
_OWN_ID: Final = "line "
"""How ids begin that are made here."""
_HASH: Final = re.compile("[0-9a-f]{64}")
"""The folder of a project as earlier versions call it."""
_NOTICES: Final = frozenset({"info", "warning", "error"})


class Entry(Struct, gc=False):
    """A message: its versions, and the id of its row."""

    sources: tuple[RecordRef, ...]
    ident: str


class Session(BranchedConversation):
    """State of one session; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.begin: Record | None = None
        self.extent: ByteRange | None = None
        self.metadata: dict[str, Any] = {}
        self._notes: Span | None = None
        """The row of notes that the next one joins."""
        self._changed_metadata: dict[str, Any] = {}
        self._by_key: dict[str, Entry] = {}
        """The messages that the session has now, and those that a new list left out."""
        self._below: dict[str, dict[str, Call]] = {}
        """Calls of a response by its id, by the ids that answers name."""
        self._ids: set[str] = set()
        """Ids of all spans."""
        self.first: float | None = None
        self.last: float | None = None
        self.model: str | None = None
        self.prompt = ""
        self.last_prompt: str | None = None
        self.last_answer: str | None = None
        self.failure: FirstError | None = None
        self._has_time = self._has_outcome = True

    # ---- records

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        source = RecordRef(*line.byte_range)
        if record.change is not None:
            self._change(record.change, source, line)
        elif record.rewind_to is not None:
            node = self.nodes.get(record.rewind_to) if self.is_live(record.rewind_to) else None
            self._rewind(ROOT if node is None else node.parent or ROOT, source, line)
        elif record.type is None and record.session_id is not None:
            self._describe(record, source, line)
        else:
            self.message(record, source, line.number)

    def _describe(self, record: Record, source: RecordRef, line: Line) -> None:
        """Take metadata, which a resumed session repeats."""
        self.note_time(record.last_updated or record.start_time)
        if self.begin is not None:
            self._meta("session", source, line)
            return
        self.describe(record, record_on(line.data) or {})
        self.extent = line.byte_range

    def describe(self, record: Record, metadata: dict[str, Any]) -> None:
        """Take the metadata at the begin of a session, or those of a document."""
        self.begin, self.metadata = record, metadata
        start = moment(record.start_time)
        self.first = self.first if start is None else start

    def _change(self, change: Change, source: RecordRef, line: Line) -> None:
        self.note_time(change.last_updated)
        whole = record_on(line.data) or {}
        values = whole.get("$set")
        values = values if isinstance(values, dict) else {}
        messages = values.pop("messages", None)
        self._changed_metadata.update(values)
        if change.messages is not None:
            self._replace(change.messages, source, line)
        elif messages is not None or len(whole) > 1 or not values.keys() <= {"lastUpdated"}:
            self._meta(f"set {', '.join(values) or 'messages'}", source, line)

    def _replace(self, messages: Raw, source: RecordRef, line: Line) -> None:
        """Take a new list of messages."""
        try:
            items = msgspec.json.decode(messages, type=list[Raw])
        except (ValueError, RecursionError):
            listed = plain(messages)
            items = [raw_of(message) for message in listed] if isinstance(listed, list) else []
        self._meta(f"set messages: {len(items)}", source, line)
        self.clear_nodes()
        for number, raw in enumerate(items):
            try:
                record = RECORD.strict(bytes(raw))
            except (ValueError, RecursionError):
                record = RECORD.convert(plain(raw), self.unknown)
            before = self._by_key.get(record.id) if record.id else None
            if before is not None and record.id:
                self.add_node(record.id, self.leaf.ident, before.ident)
            else:
                self.message(record, replace(source, item=number), line.number)

    def message(self, record: Record, source: RecordRef, number: int) -> None:
        """Take a message, or a later version of one."""
        key, when = record.id or None, moment(record.timestamp)
        entry = None if key is None else self._by_key.get(key)
        if entry is None:
            part = f".{source.item}" if source.item >= 0 else ""
            entry = Entry((source,), self._free_id(key, f"{_OWN_ID}{number}{part}"))
        elif len(entry.sources) < MOST:
            entry.sources = (*entry.sources, source)
        else:
            entry.sources = (*entry.sources[:-1], source)
            reason = f"more than {MOST} versions of message {key!r:.80}; the previous one is not shown"
            self.problems.append(Problem(self.file.path, f"line {number}", reason))
        if key is not None:
            self._by_key[key] = entry
        if not self.is_live(key or entry.ident):
            self.add_node(key or entry.ident, self.leaf.ident, entry.ident)
        if source.item < 0 or source.raw is not None:
            ends = [call.timestamp for call in record.tool_calls or () if call.timestamp is not None]
            self.note_time(max([record.timestamp or "", *ends]) or None)
        if self.first is None:
            self.first = when
        if record.type == "gemini":
            self._response(entry, record, when)
        elif record.type == "user":
            self._user(entry, record, when)
        elif record.type in _NOTICES:
            self._notice(entry, record, when)
        else:
            name = (record.type or "?")[:PREVIEW]
            self._put(entry, Span(id=entry.ident, name=name, operation=UNKNOWN_KIND, started_at=when))

    def note_time(self, when: str | None) -> None:
        """Take a time at which the session was active."""
        time = moment(when)
        if time is not None:
            self.last, self._has_time = time, True

    # ---- messages

    def _user(self, entry: Entry, record: Record, when: float | None) -> None:
        parts = parts_of(record.content)
        facts: dict[str, Any]
        answers = [part.function_response for part in parts if part.function_response is not None]
        text = text_of(parts).strip()
        self._set_failure()
        if answers and not text:
            if self._answers(entry, answers):
                return
            facts = {"operation": EXECUTE_TOOL, "status": OK, "status_source": DERIVED, "preview": "an answer"}
            name = next((response.name for response in answers if response.name), None) or "tool"
            self._put(entry, Span(id=entry.ident, name=name[:PREVIEW], started_at=when, **facts))
            return
        self.settle()
        is_context = text.startswith(_CONTEXT)
        if text and not is_context:
            self.prompt = self.prompt or text[:PREVIEW]
            self.last_prompt = text
        facts = {"operation": MESSAGE, "status": OK, "status_source": DERIVED, "preview": text[:PREVIEW]}
        name = "context" if is_context else "user"
        self._put(entry, Span(id=entry.ident, name=name, started_at=when, **facts))

    def _response(self, entry: Entry, record: Record, when: float | None) -> None:
        parts, model, row = parts_of(record.content), record.model or None, self.rows.get(entry.ident)
        if row is None:
            self.settle()
            self.steps += 1
        step = self.steps if row is None else row.step
        self.model = self.model or model
        text = text_of(parts).strip()
        thought = next((part.text for part in parts if part.thought and part.text), "")
        self.last_answer = text or self.last_answer
        span = Span(
            id=entry.ident,
            name=model or "gemini",
            operation=CHAT,
            step=step,
            is_step=step is not None,
            status=OK,
            status_source=DERIVED,
            started_at=when,
            usage=record.tokens.usage() if isinstance(record.tokens, Tokens) else None,
            model=model,
            preview=(text or thought)[:PREVIEW],
            claim=record.id or None,
        )
        self._put(entry, span)
        calls = record.tool_calls or [_asked(part.function_call) for part in parts if part.function_call is not None]
        for number, call in enumerate(calls):
            self._call(entry, call, number, step, when)
        self._set_failure()

    def _call(self, entry: Entry, call: ToolCall, number: int, step: int | None, when: float | None) -> None:
        key, below = call.id or f"{entry.ident}.{number}", self._below.setdefault(entry.ident, {})
        before = below.get(key)
        own = self._free_id(call.id, f"{entry.ident}.{number}") if before is None else before.id
        status, source, error = call.outcome()
        if status is UNKNOWN and call.status is None:
            status, source = RUNNING, DERIVED
        answers = () if before is None else before.at.answers
        row = below[key] = self.calls[key] = Call(
            own,
            (call.name or "tool")[:PREVIEW],
            EXECUTE_TOOL,
            entry.ident,
            step,
            when,
            SpanRef(entry.sources, number, answers),
            preview_of(call.args),
            "sub-agent" if call.agent_id else "",
            status=status,
            source=source,
            status_word=call.status[:PREVIEW] if call.status else None,
            error=error,
            duration_ms=None if status is RUNNING else between(when, moment(call.timestamp)),
        )
        if status is RUNNING:
            self.waiting.append(row)
        self.emit(row)

    def calls_of(self, row: Any) -> Iterable[Call]:
        return self._below.get(row.id, {}).values()

    def _answers(self, entry: Entry, answers: list[Named], word: str | None = None, when: float | None = None) -> bool:
        """Take results with the status `word`; False if one of them has no call."""
        taken = [self._answer(entry, response, word, when) for response in answers]
        return all(taken)

    def _answer(self, entry: Entry, answer: Named, word: str | None, when: float | None) -> bool:
        call = self.open_call(answer.id)
        if call is None or len(call.at.answers) >= MOST:
            return False
        call.at = replace(call.at, answers=(*call.at.answers, *entry.sources[-1:]))
        if word is not None or call.status is RUNNING or call.status is UNKNOWN:
            call.status, call.source, call.error = outcome_of_response(answer, call.name, word)
            call.status_word = word
            call.duration_ms = between(call.started_at, when) if when is not None else call.duration_ms
        self.emit(call)
        return True

    def _notice(self, entry: Entry, record: Record, when: float | None) -> None:
        """Take a notice to the user. An error ends a turn."""
        text, kind = text_of(parts_of(record.content)).strip(), record.type or ""
        facts: dict[str, Any] = {"operation": META, "preview": text[:PREVIEW]}
        if kind == "error":
            error = Error(excerpt(text) or kind)
            facts |= {"status": ERROR, "status_source": EXPLICIT, "error": error}
            self.settle()
            where = None if self.skipped else entry.ident
            self._set_failure(FirstError(error.message, None, where, kind, META))
        self._put(entry, Span(id=entry.ident, name=kind, started_at=when, **facts))

    def _put(self, entry: Entry, span: Span) -> None:
        self._notes = None
        self.rows[entry.ident] = span = replace(span, at=SpanRef(entry.sources))
        self.put(span)

    def _meta(self, label: str, source: RecordRef, line: Line) -> None:
        """Take a record about the session: one row for those that follow each other."""
        row = self._notes
        if row is not None and isinstance(row.at, SpanRef) and len(row.at.sources) < MOST_NOTES:
            preview = row.preview if label in row.preview else f"{row.preview}, {label}"[:PREVIEW]
            row = replace(row, preview=preview, at=SpanRef((*row.at.sources, source)))
        else:
            ident, at = self._free_id(None, f"{_OWN_ID}{line.number}"), SpanRef((source,))
            row = Span(id=ident, name="meta", operation=META, preview=label[:PREVIEW], at=at, **self.below_top())
        self._notes = row
        self.emit(row)

    def _free_id(self, ident: str | None, otherwise: str) -> str:
        """An id for a span: its own where no span has it."""
        free = ident if ident and not ident.startswith(_OWN_ID) and ident not in self._ids else otherwise
        number = 1
        while free in self._ids:
            number += 1
            free = f"{otherwise} {number}"
        self._ids.add(free)
        return free

    def _set_failure(self, failure: FirstError | None = None) -> None:
        """Note that the session failed, or (None) that it continued."""
        self.failure, self._has_outcome = failure, True

    # ---- rewinding

    def _rewind(self, to: str, source: RecordRef, line: Line) -> None:
        """Take back the messages after the message `to`."""
        self._notes = None
        path, ident = self.path_of_record(to), self._free_id(None, f"{_OWN_ID}{line.number}")
        if not self.go(path, ident, ident, line, SpanRef((source,))):
            self._meta("rewind", source, line)
        for node in path.abandoned:
            self._by_key.pop(node.ident, None)
        self._set_failure()

    # ---- the session as a whole

    @property
    def begun(self) -> bool:
        return self.begin is not None

    @property
    def settled(self) -> bool:
        """No later record changes what the list stage reads at the beginning."""
        return self.begin is not None and bool(self.prompt) and self.model is not None and self.first is not None

    @property
    def has_status(self) -> bool:
        """The records taken since `skip` decide the status and the last time."""
        return self._has_time and self._has_outcome

    def skip(self, left_out: bytes) -> None:
        super().skip(left_out)
        self._has_time = self._has_outcome = False

    def header(self) -> Header:
        """The header so far."""
        begin = self.begin or Record()
        folder = next(iter(begin.directories or ()), None)
        is_part = begin.kind == "subagent"
        parent, project = _parent_and_project(self.file.path, is_part=is_part)
        return Header(
            id=begin.session_id or self.file.name.rpartition(".")[0] or self.file.name,
            name=folder_of(folder) or project or AGENT,
            agent=AGENT,
            is_session=True,
            model=self.model,
            status=None if self.failure is None else ERROR,
            status_source=None if self.failure is None else EXPLICIT,
            ended=self.failure is not None,
            error=self.failure,
            started_at=self.first,
            duration_ms=between(self.first, self.last) or None,
            parent=parent,
            origin=None if begin.session_id is None else f"gemini {begin.session_id}",
            prompt=self.prompt,
            source=folder[:PREVIEW] if folder else None,
            size=self.file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        """The last messages and the metadata."""
        return RunBody(
            last_user=self.last_prompt,
            last_assistant=self.last_answer,
            attributes=self.metadata | ({"$set": dict(self._changed_metadata)} if self._changed_metadata else {}),
            extent=self.extent,
        )


def _asked(call: Named | None) -> ToolCall:
    """A call among the parts of a response, without a result yet."""
    return ToolCall() if call is None else ToolCall(call.id, call.name, call.args)


def _parent_and_project(path: str, *, is_part: bool) -> tuple[str | None, str | None]:
    """The session that a sub-agent is of, and the project: from ``PROJECT/chats/PARENT/ID.jsonl``."""
    folders = path.replace("\\", "/").split("/")[:-1]
    parent = folders.pop() if is_part and len(folders) > 1 and folders[-2] == "chats" else None
    project = folders[-2] if len(folders) > 1 and folders[-1] == "chats" and not _HASH.fullmatch(folders[-2]) else None
    return parent, project


# ---- bodies

Item = dict[str, Any]


def body_of(file: File, span: Span) -> Body:
    """The body of a span; raises `FormatError` if the records were replaced."""
    at = span.at
    if not isinstance(at, SpanRef):
        raise changed()
    lines = _merged([_record(file, source) for source in at.sources])
    (*earlier, record), raw = [line for line, _ in lines], b"\n".join(data for _, data in lines)
    if at.call >= 0:
        answers = [_record(file, answer)[0] for answer in at.answers]
        return _call(record, at.call, [*earlier, *answers], raw)
    if span.operation in (Operation.UNKNOWN, Operation.OTHER) or "id" not in record or "type" not in record:
        many = {str(number): version for number, version in enumerate([*earlier, record], 1)}
        return Body(attributes=many if earlier else record, raw=raw)
    return _message(
        record, [_difference(version, record) for version in earlier], raw, is_output=span.operation is Operation.CHAT
    )


def _message(record: Item, earlier: list[Item], raw: bytes, *, is_output: bool) -> Body:
    """A message or response; all that its parts do not show is among the attributes."""
    fields, content, calls = dict(record), record.get("content"), sequence(record.get("toolCalls"))
    fields.pop("content", None)
    parts: list[Part] = _thoughts(fields.get("thoughts"))
    if not fields.get("thoughts"):
        fields.pop("thoughts", None)
    parts += map(_part, content if isinstance(content, list) else [] if content is None else [content])
    requests = [call for call in calls if isinstance(call, dict)]
    if requests:
        fields.pop("toolCalls")
    if others := [call for call in calls if not isinstance(call, dict)]:
        fields["toolCalls"] = others
    parts += [
        CallPart(text(request.get("id")), text(request.get("name")) or "tool", request.get("args"))
        for request in requests
    ]
    message = Message(text(record.get("type")) or "?", tuple(parts), text(record.get("id")))
    return message_body(message, _with_others(fields, earlier), raw, is_output=is_output)


def _merged(pieces: list[tuple[Item, bytes]]) -> list[tuple[Item, bytes]]:
    """Records of Qwen Code that are pieces of one message, as one of Gemini CLI; any others as they are."""
    if not all("uuid" in piece and isinstance(mapping(piece.get("message")).get("parts"), list) for piece, _ in pieces):
        return pieces
    content, rest = [], dict[str, Any]()
    for number, (piece, _) in enumerate(pieces, 1):
        message = mapping(piece.get("message"))
        content += message["parts"]
        fields = {**without(piece, "message"), "message": without(message, "parts")}
        changed_fields = {key: value for key, value in fields.items() if key not in rest or rest[key] != value}
        if number == 1:
            rest = fields
        elif changed_fields:
            rest[f"piece {number}"] = changed_fields
    return [({"id": rest.get("uuid"), **rest, "content": content}, b"\n".join(data for _, data in pieces))]


def _record(file: File, source: RecordRef) -> tuple[Item, bytes]:
    """The record at `source`, and its bytes: a rendering for an item of a list."""
    if source.raw is not None:
        value, data = plain(source.raw), bytes(source.raw)
    else:
        value, data = record_at(file, source.offset, source.length, many=source.item >= 0)
        if source.item >= 0:
            items = sequence(mapping(value.get("$set")).get("messages"))
            value = items[source.item] if source.item < len(items) else None
            data = bytes(raw_of(value)) if value is not None else b""
    if not isinstance(value, dict):
        raise changed(f"byte {source.offset}")
    return value, data


def _call(record: Item, number: int, others: list[Item], raw: bytes) -> Body:
    """A call with its result. Other messages about it are below ``message``."""
    calls = [request for request in sequence(record.get("toolCalls")) if isinstance(request, dict)]
    if not record.get("toolCalls"):
        content = record.get("content")
        blocks = content if isinstance(content, list) else [content]
        asked = [mapping(block).get("functionCall") for block in blocks]
        calls = [request for request in asked if isinstance(request, dict)]
    if number >= len(calls):
        raise changed()
    call = calls[number]
    result = call.get("result")
    attributes = without(call, "args", "result")
    mine = [other for other in others if other.get("type") in ("user", "tool_result")]
    return Body(input=call.get("args"), output=_output(result), attributes=_with_others(attributes, mine), raw=raw)


def _output(result: Any) -> Any:
    """The input of the model: its text if that is all, else the value."""
    if isinstance(result, list) and len(result) == 1:
        response = mapping(mapping(mapping(result[0]).get("functionResponse")).get("response"))
        if len(response) == 1 and isinstance(response.get("output"), str):
            return response["output"]
    return result


def _thoughts(value: Any) -> list[Part]:
    """Thoughts as parts of a message."""
    texts = [[mapping(thought).get(name) for name in ("subject", "description")] for thought in sequence(value)]
    thoughts = ["\n".join(text for text in pair if isinstance(text, str) and text) for pair in texts]
    return [Reasoning(thought) for thought in thoughts if thought]


def _part(block: Any) -> Part:
    if isinstance(block, str):
        return Text(block)
    if isinstance(block, dict):
        content, call, thought = block.get("text"), mapping(block.get("functionCall")), block.get("thought", False)
        if isinstance(content, str) and block.keys() <= {"text", "thought"} and isinstance(thought, bool):
            return Reasoning(content) if thought else Text(content)
        if isinstance(call.get("name"), str) and len(block) == 1 and call.keys() <= {"id", "name", "args"}:
            return CallPart(text(call.get("id")), call["name"], call.get("args"))
    return Blob(next(iter(block), "part") if isinstance(block, dict) else "part", block)


def _difference(record: Item, last: Item) -> Item:
    """The fields in which an earlier version of a message differs from the last one."""
    return {key: value for key, value in record.items() if key not in last or last[key] != value}


def _with_others(attributes: Item, others: list[Item]) -> Item:
    """The attributes, and other records that belong to them."""
    attributed = dict(attributes)
    for number, record in enumerate((record for record in others if record), 1):
        add_field(attributed, f"message {number}", record)
    return attributed


LIKELY: Final = 60
_FEW: Final = 16
"""Lines of the head checked to recognize a file."""
_DOCUMENT: Final = frozenset({b"sessionId", b"projectHash", b"startTime"})
"""Names at the top of a document; some may be beyond the head."""


class Gemini:
    """The format; see `tracetui.formats.base.Format`, `Homed` and `Resumable`."""

    name = "gemini"
    title = "Gemini CLI session"
    home_variables: Sequence[str] = ()

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"projectHash"' not in head and b'"gemini"' not in head:
            return NO
        best = max(map(_claim, records_in(head, _FEW)), default=NO)
        names = set() if best else set(top_names(head))
        is_cut = len(head) >= HEAD_SIZE and b"messages" in names and b'"gemini"' in head
        return best or (CERTAIN if names >= _DOCUMENT else LIKELY if is_cut else NO)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        if is_document(file):
            return [summary(RunRef(self.name, file.path), file, _read(file, file.read_all()), deep=deep)]
        ref, session = RunRef(self.name, file.path), Session(file)
        if not deep:
            skim(file, RECORD, session)
        is_listed = not deep and session.begun
        return [listed(ref, file, session) if is_listed else counted(ref, file, LogReader(RECORD, Session))]

    def open(self, file: File, ref: RunRef) -> Reader:
        """Of either layout; a file may be too short to show its own at first."""
        readers: dict[bool, Callable[[], Reader]]
        readers = {True: partial(DocumentReader, _read), False: partial(LogReader, RECORD, Session)}
        return KindReader(is_document, readers)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the records that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (home / ".gemini" / "tmp",)

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["gemini", "--resume", run.id]


def is_document(file: File) -> bool:
    """Whether a file is one JSON document: its first line is an incomplete record, or has the messages."""
    first = next(beginning(file, 1), None)
    return b"messages" in top_names(file.head) if first is None else "messages" in first


def _claim(record: dict[str, Any]) -> int:
    """How surely a record is one of Gemini CLI."""
    if text(record.get("sessionId")) is not None and text(record.get("projectHash")) is not None:
        return CERTAIN
    return LIKELY if record.get("type") == "gemini" and "content" in record and "id" in record else NO


def _read(file: File, data: bytes) -> Chunk:
    """The whole run of a document."""
    outline, session = Outline(data, file.path), Session(file)
    session.unknown = outline.unknown
    session.describe(outline.record(RECORD, "messages"), outline.values("messages"))
    for record in outline.records("messages", RECORD):
        session.message(record.value, RecordRef(-1, len(record.raw), record.index, record.raw), record.index)
    session.metadata |= outline.rest
    session.note_time(session.begin.last_updated if session.begin else None)
    problems = [*outline.problems, *session.problems]
    return Chunk(spans=session.collect(), header=session.header(), body=session.run_body(), problems=problems)

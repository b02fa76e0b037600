"""Sessions of the coding agent pi below ``~/.pi/agent/sessions``: one file per session, as in OpenClaw.

A session is appended to a line at a time. Its entries form a tree: an entry names the one that it follows; one that
names an earlier one begins a new branch. The last entry is the leaf: the path to it is the live branch, all else is
abandoned until an entry returns to it. The end of a session is not recorded, because it can always be continued: its
status is that of its last response.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, Final, TypeGuard

from msgspec import UNSET
from msgspec.structs import replace

from tracetui.formats.agent_log import CHAT, EXECUTE_TOOL, EXPLICIT, MESSAGE, META, SyntheticRef
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import (
    ByteRange,
    SpanRef,
    add_field,
    block_of,
    blocks_of,
    convert_each,
    kind_of,
    message_body,
    notes_body,
    part_of,
    records_of,
    type_of,
)
from tracetui.formats.branches import ROOT, BranchedConversation
from tracetui.formats.decode import record_on, records_in
from tracetui.formats.jsonl import Line, LogFormat
from tracetui.formats.pi.context import context_of
from tracetui.formats.pi.records import SCHEMA, Assistant, Begin, Content, text_in
from tracetui.formats.scalars import between, folder_of, layout, mapping, moment, text, without
from tracetui.formats.schema import unknown_fields
from tracetui.model import (
    COPIED,
    COUNTED_COPY,
    PREVIEW,
    Body,
    FirstError,
    Header,
    Message,
    RunBody,
    RunRef,
    RunSummary,
    Span,
)
from tracetui.model.context import ContextFacts
from tracetui.sources.base import File

AGENT: Final = "pi"
BRANCH: Final = "branch:"
"""Prefix of the id of the row of an abandoned branch, before that of its first entry."""
_MADE: Final = ("l", BRANCH)
"""Prefixes of the ids that are made here, of a line or an entry."""
_COMMAND: Final = re.compile(r"/[\w:.-]*")
"""A command, which early versions recorded as a prompt."""


def _id_in(path: str | None) -> str | None:
    """The id of the session with that path on the machine that wrote it: ``<time>_<id>.jsonl``."""
    return re.split(r"[/\\]", path)[-1].removesuffix(".jsonl").rpartition("_")[2] or None if path else None


class Session(BranchedConversation):
    """One session; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.begin: Begin | None = None
        self.extent: ByteRange | None = None
        self._head: bytes = b""
        self.original: str | None = None
        """Path of the session that this one comes from, as it was on the machine that wrote it."""
        self.forked: bool | None = None
        """Whether it begins with copies of that one's entries; None while no entry shows it."""
        self.copying = False
        self.origin: str | None = None
        """Id and time of the first entry."""
        self.created: float | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.chosen_model: str | None = None
        self.used_model: str | None = None
        self.prompt: str | None = None
        self.command: str | None = None
        """The first command that was recorded as a prompt."""
        self.title: str | None = None
        self.last_prompt: Content = None
        self.last_answer: Content = None
        """The last response that has text."""
        self.final: Assistant | None = None
        """The last response, if its stop reason is final and no message came after it."""
        self._final_id: str | None = None
        self._timed = self._stood = True

    # ---- records

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        when = moment(record.timestamp)
        if self.begin is None and isinstance(record, Begin):
            self._start(record, when, line)
            return
        ident: str | None = record.id
        if self.origin is None and ident and not self.skipped:
            self.origin = f"{ident}\n{record.timestamp}"
        if not ident or ident in self.nodes:  # v1, or written twice
            ident = None
        else:
            parent = ROOT if record.parent_id is None else record.parent_id
            if parent is not UNSET and parent != self.leaf.ident and parent in self.nodes:
                path = self.path_of_record(parent)
                self.go(path, f"{BRANCH}{path.abandoned[0].ident}" if path.abandoned else "", ident, line)
        if when is not None:
            if self.forked is None or self.copying:
                self._check_copying(when)
            self.last, self._timed = when, True
        record.take(self, ident if self.is_free(ident) else f"l{line.number}", when, line)
        if ident is not None:
            self.add_node(ident, self.leaf.ident, None if self.top is None else self.top.id)

    def _start(self, record: Begin, when: float | None, line: Line) -> None:
        """Take the first record, which is about the session as a whole."""
        self.begin, self.extent, self._head = record, line.byte_range, line.data
        self.created = self.first = when
        self.original = record.parent_session or record.branched_from or None
        self.chosen_model = self.chosen_model or record.model_id or None

    def _check_copying(self, when: float) -> None:
        """Note whether the next entry, written `when` (seconds since the epoch), is a copy."""
        created = self.created
        if self.forked is None:
            self.forked = self.copying = self.original is not None and created is not None and when < created
            if self.first is None or (when < self.first and not self.forked):  # v1 writes the first record late
                self.first = when
        elif created is not None:
            self.copying = when < created

    def user_prompt(self, prompt: str) -> None:
        """Take a prompt or command of the user."""
        if _COMMAND.fullmatch(prompt[: PREVIEW + 1]):
            self.command = self.command or prompt[:PREVIEW]
        else:
            self.prompt = self.prompt or prompt[:PREVIEW]

    def take_message(self, final: Assistant | None = None, ident: str | None = None) -> None:
        """Take a message: a response with a final stop reason, or any other one."""
        self.final, self._final_id, self._stood = final, None if self.skipped else ident, True

    # ---- rows

    def is_free(self, ident: str | None) -> TypeGuard[str]:
        """Whether `ident` can be the id of a span: no other span has or may get it."""
        if not ident or ident in self.nodes or ident in self.calls:
            return False
        return not ident.startswith(_MADE)

    def add(self, span: Span) -> Span:
        """Give out a row of the conversation."""
        span = self.own(span)
        self.rows[span.id] = span
        self.put(span)
        return span

    def own(self, span: Span) -> Span:
        """The span with its claim, and with a note while copies are read. v1 has times instead of ids."""
        note, claim, when = "", None, span.started_at
        if span.usage is not None or span.operation in (CHAT, EXECUTE_TOOL):
            claim = span.id if not span.id.startswith(_MADE[0]) else None if when is None else f"{when:.3f}"
        if self.copying:
            note = " · ".join(filter(None, (COPIED if claim is None else COUNTED_COPY, span.note)))
        return span if claim is None and not note else replace(span, claim=claim, note=note or span.note)

    # ---- the session as a whole

    @property
    def begun(self) -> bool:
        """Whether the first record is there."""
        return self.begin is not None

    @property
    def settled(self) -> bool:
        """No later record changes the summary of the beginning."""
        named = self.prompt is not None and self.used_model is not None
        return named and self.begin is not None and self.forked is not None

    @property
    def has_status(self) -> bool:
        """The records since `skip` show the status of the session and its last time."""
        return self._timed and self._stood

    def skip(self, left_out: bytes) -> None:
        super().skip(left_out)
        self._timed = self._stood = False

    def header(self) -> Header:
        """The header."""
        begin, final, error = self.begin or Begin(), self.final, None
        status, _, failure = (None, None, None) if final is None else final.outcome()
        if final is not None and failure is not None:
            error = FirstError(failure.message, failure.type, self._final_id, final.model or "assistant", CHAT)
        cwd = begin.cwd or None
        original = _id_in(self.original)
        return Header(
            id=begin.id or self.file.name.removesuffix(".jsonl"),
            name=folder_of(cwd) or AGENT,
            agent=AGENT,
            is_session=True,
            model=self.used_model or self.chosen_model,
            status=status,
            status_word=None if final is None else final.stop_reason,
            status_source=None if final is None else EXPLICIT,
            ended=final is not None,
            error=error,
            started_at=self.first,
            duration_ms=between(self.first, self.last) or None,
            replay_of=original if self.forked else None,
            relation="fork" if self.forked else None,
            title=None if self.skipped or not self.title else self.title[:PREVIEW],
            parent=None if self.forked else original,
            origin=self.origin,
            prompt=self.prompt or self.command or "",
            source=cwd[:PREVIEW] if cwd is not None else None,
            writer=layout(begin.version),
            size=self.file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        """The last messages, and the metadata."""
        attributes: dict[str, Any] = record_on(self._head) or {}
        if self.title is not None:
            attributes["session_info.name"] = self.title
        return RunBody(
            last_user=text_in(self.last_prompt).strip() or None,
            last_assistant=text_in(self.last_answer).strip() or None,
            attributes=attributes,
            extent=self.extent,
        )


# ---- bodies

Record = dict[str, Any]
_part: Final = partial(part_of, call="toolCall", arguments="arguments")


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if the file has other records there now."""
    at = span.at
    if isinstance(at, SyntheticRef):
        return Body(attributes={key: value for key, value in at.facts if value})
    records, raw = records_of(file, at)
    ref = SpanRef.of(at)
    if span.operation is META:
        return notes_body(records, raw)
    if ref.block >= 0:
        return _call(records, ref, raw)
    if span.operation in (CHAT, MESSAGE):
        return _message(records[0], raw, is_output=span.operation is CHAT)
    if span.operation is EXECUTE_TOOL:
        message = message_of(records[0])
        given, output = ("command", "output") if "command" in message else ("", "content")
        attributes = _envelope(records[0], "role", given, output)
        return Body(input=message.get(given), output=_output(message.get(output)), attributes=attributes, raw=raw)
    summary = text(records[0].get("summary")) if kind_of(records[0]) == "compaction" else None
    return Body(output=summary, attributes=without(records[0], *(["summary"] if summary else [])), raw=raw)


def _message(record: Record, raw: bytes, *, is_output: bool) -> Body:
    message = message_of(record)
    name = "content" if isinstance(message.get("content"), str | list) or "summary" not in message else "summary"
    content, role, reason = message.get(name), text(message.get("role")), text(message.get("stopReason"))
    attributes = _envelope(record, name, *(["role"] if role else []), *(["stopReason"] if reason else []))
    parts = convert_each("content", enumerate(blocks_of(content)), _part, attributes)
    if not isinstance(content, str | list) and content is not None:
        attributes[name] = content
    joined = Message(role or kind_of(record), tuple(parts), text(message.get("responseId")), reason)
    return message_body(joined, attributes, raw, is_output=is_output)


def _call(records: list[Record], at: SpanRef, raw: bytes) -> Body:
    """A tool call; the fields of each result other than its output are under ``result``."""
    block = block_of(message_of(records[0]).get("content"), at)
    attributes, output = without(block, "arguments"), None
    for answer in records[1:]:
        output = _output(message_of(answer).get("content"))
        add_field(attributes, "result", _envelope(answer, "role", "content"))
    return Body(input=block.get("arguments"), output=output, attributes=attributes, raw=raw)


def _output(content: Any) -> Any:
    """The output of a tool: its text, where that is all of it."""
    blocks = blocks_of(content)
    is_text = all(
        type_of(block) == "text" and isinstance(block.get("text"), str) and len(block) == 2 for block in blocks
    )
    return "\n".join([block["text"] for block in blocks]) if blocks and is_text else content


def _envelope(record: Record, *names: str) -> Record:
    """The fields of a record, its message without the fields `names`."""
    if not isinstance(record.get("message"), dict):
        return without(record, *names) if message_of(record) is record else dict(record)
    return record | {"message": without(record["message"], *names)}


def message_of(record: Record) -> Record:
    """The message of a record; that of an extension, or about a branch, is the record itself."""
    return record if kind_of(record) in ("custom_message", "branch_summary") else mapping(record.get("message"))


LIKELY: Final = 60
_ROLES: Final = frozenset({"user", "assistant", "toolResult", "bashExecution"})
_ANOTHERS: Final = "session_start"
"""The first record of a session of Droid, with messages like those of pi."""


class Pi(LogFormat):
    """The format; see `tracetui.formats.base.Format`, `Contextual`, `Homed` and `Resumable`."""

    name = "pi"
    title = "pi session"
    home_variables = ("PI_CODING_AGENT_DIR",)
    schema, session, signs, looked_at = SCHEMA, Session, (b'"session"', b'"parentId"'), 16

    def sniff(self, file: File) -> int:
        claim = super().sniff(file)
        is_anothers = claim and any(kind_of(record) == _ANOTHERS for record in records_in(file.head, self.looked_at))
        return NO if is_anothers else claim

    def claim(self, record: dict[str, Any]) -> int:
        if kind_of(record) == "session" and isinstance(record.get("id"), str) and "timestamp" in record:
            return CERTAIN if "cwd" in record or "version" in record or "modelId" in record else LIKELY
        is_entry = kind_of(record) == "message" and "parentId" in record and "timestamp" in record
        return LIKELY if is_entry and text(message_of(record).get("role")) in _ROLES else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def context(self, span: Span, body: Body) -> ContextFacts | None:
        return context_of(span, body)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (PurePath(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent", "sessions"),)

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["pi", "--session", run.ref.path]

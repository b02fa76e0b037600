"""Counting a regular rollout without making its spans: typed decoding passes over the long texts.

Regular means one thread by itself, of known kinds of records, with a call for every answer, whose times go forward. Any
other is read in full, and both ways give the same numbers. `Session` says what each record means; this says it again.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from tracetui.formats.codex import lean
from tracetui.formats.codex.count_calls import answered, called, event_of_call, ran
from tracetui.formats.codex.count_state import CountState, Span, since
from tracetui.formats.codex.known import ENVELOPE, FIELDS
from tracetui.formats.codex.lean import NULL, text_of
from tracetui.formats.codex.records import EVENT, ITEM, META, USAGE, Record, record_of
from tracetui.formats.codex.run import header_of
from tracetui.formats.codex.threads import copied_from
from tracetui.formats.codex.turns import error_of, outcome_of_turn
from tracetui.formats.codex.words import CALLS, DONE_CALLS, HEARD, SAID, context_of, is_known
from tracetui.formats.counting import Irregular
from tracetui.formats.decode import skippable, strict
from tracetui.formats.lines import batches
from tracetui.formats.scalars import child, number, string, word
from tracetui.formats.tail import MAX_LINE
from tracetui.model import PREVIEW, Header, Operation, Status
from tracetui.model.build import Tally
from tracetui.sources.base import File


def count(file: File) -> tuple[Header, Tally]:
    """The header of a rollout, and the numbers of its spans; see `tracetui.formats.counting.regular`."""
    if copied_from(file) is not None:
        raise Irregular
    counter = _Counter(file.path)
    for batch, finished in batches(file, MAX_LINE):
        if not finished:
            raise Irregular
        skippable(batch)
        for data in batch.split(b"\n")[:-1]:
            counter.take(data)
    return counter.header(file), counter.tallied()


class _Counter(CountState):
    """Counts what a `Session` would make spans of."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.compacted = False
        self._ways: dict[type, Any] = {
            lean.Message: self._message,
            lean.Thought: self._thought,
            lean.Talk: self._talk,
            lean.Musing: self._talk,
            lean.Murmur: self._talk,
            lean.Prompt: self._prompt,
            lean.Completed: self._completed,
            lean.Tokens: self._tokens,
            lean.Used: self._usage,
            lean.Context: self._context,
            lean.Plain: self._beside,
            lean.Compacted: self._compaction,
            **dict.fromkeys(lean.CALL_KINDS, partial(called, self)),
            **dict.fromkeys(lean.OUTPUT_KINDS, partial(answered, self)),
        }
        self._ways |= {made: self._ways[payload] for made, payload in lean.CLOSED.items()}

    def take(self, data: bytes) -> None:
        """Count the record on the next line, which is `skippable`; a blank one is nothing."""
        self.line += 1
        self.data = data
        if not data or data.isspace():
            return
        try:
            record = lean.decode(data, self.session.strange)
        except msgspec.ValidationError:
            value = strict(data)
            if not isinstance(value, dict):
                raise Irregular from None
            told = record_of(value)
            FIELDS.count(self.session.strange, told.type or told.kind, ENVELOPE.names(value))
            self._rare(told)
            return
        if record.timestamp != self.stamp:
            self.at(record.timestamp)
        payload = record.payload
        self._ways[type(payload)](payload)

    def header(self, file: File) -> Header:
        """The header of the rollout."""
        header = header_of(self.session, file)
        if header.started_at is None or self.session.meta is None:
            raise Irregular
        return msgspec.structs.replace(header, size=file.stat.size)

    # ---- what was said

    def _message(self, told: lean.Message) -> None:
        if told.role == "assistant":
            self._respond(told, (told.id, text_of(told.content).strip()))
            return
        role = told.role or "message"
        self._hear(role, text_of(told.content), told, item=True)

    def _prompt(self, told: lean.Prompt) -> None:
        self._hear("user", text_of(told.content) or told.message or "", told, item=False)

    def _thought(self, told: lean.Thought) -> None:
        self._respond(told, (told.id, _thought(told)))

    def _talk(self, told: lean.Talk) -> None:
        text = told.message if told.message is not None else told.text
        self._respond(told, ((text or "").strip(),), event=True)

    def _completed(self, told: lean.Completed) -> None:
        item = told.item
        if isinstance(item, lean.CommandExecution):
            ran(self, told, item)
        elif isinstance(item, lean.AgentMessage):
            self._respond(told, (item.id, text_of(item.content).strip()), event=True)
        elif isinstance(item, lean.Reasoning):
            self._respond(told, (item.id, _thought(item)), event=True)
        else:
            self._hear("user", text_of(item.content), told, item=False, completed=True)

    def _respond(self, told: Any, ids: tuple[str | None, ...] = (), *, event: bool = False) -> None:
        """A record of the response that is open, or (for what it said already) of the last one."""
        self.session.failure = None
        self.said([ident for ident in ids if ident], told.started_at_ms, event=event)

    def _hear(self, role: str, text: str, told: Any, *, item: bool, completed: bool = False) -> None:
        name = role
        if role == "user":
            name = self._context_name(told, text) or "user"
            heard = self.heard
            if heard is not None and heard[1 if item else 2] is False and heard[2 if item else 1]:
                before = heard[0]
                if text in before or before in text:
                    if (completed or name == "user") and not heard[3]:
                        heard[3] = True
                        self._prompted(before)
                    heard[1] = heard[2] = True
                    return
        if name == "user":
            if self.turn is None or (self.turn.implicit and self.told is not None):
                self._open_turn(implicit=True)
            self._prompted(text)
        self.close()
        self.row()
        if role == "user":
            self.heard = [text, item, not item, name == "user"]

    def _context_name(self, told: Any, text: str) -> str | None:
        named = told.kind, told.internal_chat_message_metadata_passthrough
        kind, passed = (None if one is NULL else strict(bytes(one)) for one in named)
        payload = {"kind": kind, "internal_chat_message_metadata_passthrough": passed}
        return context_of(Record(ITEM, payload, {}, "", ""), text)

    def _prompted(self, text: str) -> None:
        if self.session.prompt is None:
            self.session.prompt = text.strip()[:PREVIEW]

    # ---- tokens

    def _tokens(self, told: lean.Tokens) -> None:
        info = told.info
        if info is None:
            self.use(None, None, own=False)
        else:
            self.use(info.last_token_usage, info.total_token_usage, own=False)

    def _usage(self, told: lean.Used) -> None:
        self.use(told.usage, told.thread_token_usage, own=True)

    # ---- turns

    def _context(self, told: lean.Context) -> None:
        self._model(told.model)
        if self.turn is None:
            self._open_turn(implicit=True)
        else:
            self.turn.also()

    def _model(self, model: Any) -> None:
        session = self.session
        session.model = word(model) or session.model
        session.first_model = session.first_model or session.model

    def _beside(self, _: lean.Plain | None = None) -> None:
        if self.turn is None:
            self.row()
        else:
            self.turn.also()

    def _compaction(self, _: lean.Compacted) -> None:
        self.close()
        self.row()
        self.compacted = True

    def _open_turn(self, *, implicit: bool) -> None:
        turn = self.turn
        if turn is not None and turn.implicit and self.told is None and not implicit:
            turn.also()
            turn.implicit = False
            return
        self.told = self.heard = None
        self.turn = Span((self.number(),), self.line, self.time)
        self.turn.implicit = implicit
        self.tally.steps += 1
        self.extent(self.time, None)

    def _end_turn(self, record: Record) -> None:
        session, turn = self.session, self.turn
        session.end, session.end_failure = record, session.failure
        status, _, failure = outcome_of_turn(record, session.failure)
        session.failure = self.turn = None
        self.close()
        if turn is None:
            self.row()
            return
        turn.also()
        took = number(record.payload.get("duration_ms"))
        self.extent(turn.start, since(turn.start, self.time) if took is None else took)
        if status is Status.ERROR and failure is not None:
            self.fail(turn.position, failure, f"l{turn.line}t", "turn", Operation.TURN)

    # ---- the rest

    def _rare(self, record: Record) -> None:
        """A record of a kind of which a rollout has few."""
        kind, name = record.kind, record.name
        self.at(string(record.outer.get("timestamp")) or "")
        if kind == META and self.session.meta is None and not self.spans:
            self.session.meta = record
            if "history_base" in record.payload:
                raise Irregular
        elif self.session.meta is None:
            raise Irregular
        elif kind == EVENT and name not in SAID and name not in HEARD and name != "token_count":
            self._event(record)
        elif kind in (EVENT, USAGE, "turn_context", "world_state", "compacted", "compaction") or _is_common(record):
            raise Irregular
        else:
            self._known(record)

    def _event(self, record: Record) -> None:
        session, name = self.session, record.name
        if name == "task_started":
            session.end, session.end_failure = record, None
            self._open_turn(implicit=False)
        elif name in ("task_complete", "turn_aborted"):
            self._end_turn(record)
        elif name == "error":
            session.failure = error_of(record.payload)
            self.fail(self.row(), session.failure, f"l{self.line}", "error", Operation.OTHER)
        elif name == "thread_settings_applied":
            self._model(child(record.payload, "thread_settings").get("model"))
            self._beside()
        elif name in ("context_compacted", "ContextCompaction") and self.compacted:
            self.compacted = False
        elif not event_of_call(self, record):
            self._known(record)

    def _known(self, record: Record) -> None:
        if not is_known(record):
            kind = record.name[:PREVIEW]
            self.tally.unknown[kind] = self.tally.unknown.get(kind, 0) + 1
            self.tally.unread += len(self.data)
        self.row()


_ITEMS: Final = CALLS | DONE_CALLS | {"message", "reasoning"}


def _thought(told: lean.Thought | lean.Reasoning) -> str:
    texts = (text_of(one) for one in (told.summary, told.summary_text, told.content, told.raw_content))
    return next((text for text in texts if text), "").strip()


def _is_common(record: Record) -> bool:
    """Whether it is an item that is counted by what is decoded of it."""
    return record.kind == ITEM and (record.name in _ITEMS or record.name.endswith("_output"))

"""Counting a regular rollout without making its spans: typed decoding passes over the long texts.

Regular means one thread by itself, of known kinds of records, with a call for every answer, whose times go forward. Any
other is read in full, and both ways give the same numbers. `Session` says what each record means; this says it again.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.codex import lean
from tracetui.formats.codex.lean import NULL, Counts, text_of, went_well
from tracetui.formats.codex.outcome import Outcome, of_event, of_output
from tracetui.formats.codex.records import EVENT, ITEM, META, PREVIEW, USAGE, Record, child, moment, record_of, word
from tracetui.formats.codex.run import header_of
from tracetui.formats.codex.session import Session
from tracetui.formats.codex.state import MOST
from tracetui.formats.codex.tools import spawned
from tracetui.formats.codex.turns import error_of, outcome_of_turn
from tracetui.formats.codex.words import CALLS, DONE_CALLS, HEARD, SAID, context_of, is_known, tool_of
from tracetui.formats.decode import strict
from tracetui.formats.lines import lines
from tracetui.formats.scalars import number
from tracetui.formats.tail import MAX_LINE
from tracetui.model import Error, FirstError, Header, Operation, Status, Usage
from tracetui.model.build import Tally
from tracetui.model.tally import keep, kept
from tracetui.sources.base import File

Position = tuple[int, ...]
"""Where a span stands in pre-order."""
_MOST: Final = MOST // 3


class Irregular(Exception):
    """This rollout must be read in full."""


class _Span:
    """A turn or a response."""

    __slots__ = ("ids", "implicit", "line", "open", "position", "records", "start", "used")

    def __init__(self, position: Position, line: int, start: float) -> None:
        self.position, self.line, self.start, self.records = position, line, start, 1
        self.implicit = self.used = False
        self.open = True
        self.ids: list[str] = []

    def also(self) -> None:
        """A record tells of this too."""
        self.records += 1
        if self.records >= _MOST:
            raise Irregular


class _Call:
    """A tool call."""

    __slots__ = ("called", "duration", "ident", "name", "outcome", "position", "records", "skipped", "start")

    def __init__(self, position: Position, ident: str, name: str, start: float) -> None:
        self.position, self.ident, self.name, self.start = position, ident, name, start
        self.outcome = Outcome()
        self.duration: float | None = None
        self.records = 1
        self.called = self.skipped = False


def count(file: File) -> tuple[Header, Tally]:
    """The header of a rollout, and the numbers of its spans. Raises `Irregular`."""
    counter = _Counter(file)
    try:
        for line in lines(file, limit=MAX_LINE, end=file.stat.size):
            if not line.whole or line.skipped:
                raise Irregular
            if line.data and not line.data.isspace():
                counter.take(line.data, line.number)
    except (ValueError, RecursionError, OSError):  # what is read leniently, or not at all
        raise Irregular from None
    return counter.header(file), counter.tallied()


class _Counter:
    """Counts what a `Session` would make spans of."""

    def __init__(self, file: File) -> None:
        self.session = Session(file.path)
        self.tally = Tally()
        self.line = self.spans = 0
        self.stamp, self.data = "", b""
        self.time = self.end = 0.0
        self.heard: list[Any] | None = None
        """Text of the latest message of the user; told as an item, as an event; whether it is called ``user``."""
        self.turn: _Span | None = None
        self.told: _Span | None = None
        self.calls: dict[str, _Call] = {}
        self.failed: list[tuple[Position, FirstError]] = []
        self.used: list[Counts] = []
        self.total: Counts | None = None
        self.last: Counts | None = None
        self.own = self.compacted = False
        self._ways: Final[dict[type, Any]] = {
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
            **dict.fromkeys(lean.CALL_KINDS, self._call),
            **dict.fromkeys(lean.OUTPUT_KINDS, self._answer),
        }

    def take(self, data: bytes, line: int) -> None:
        """Count one record."""
        self.line, self.data = line, data
        try:
            record = lean.lean(data)
        except msgspec.ValidationError:
            self._rare(record_of(strict(data)))
            return
        if record.timestamp != self.stamp:
            self._at(record.timestamp)
        payload = record.payload
        self._ways[type(payload)](payload)

    def header(self, file: File) -> Header:
        """The header of the rollout."""
        header = header_of(self.session, file)
        if header.started_at is None or self.session.meta is None:
            raise Irregular
        return msgspec.structs.replace(header, size=file.stat.size)

    def tallied(self) -> Tally:
        """The numbers, with the first failed span in the order in which they are shown."""
        tally, calls = self.tally, self.calls.values()
        for call in calls:
            if call.outcome.error is not None:
                if call.skipped:
                    raise Irregular
                self._fail(call.position, call.outcome.error, call.ident, call.name, Operation.EXECUTE_TOOL)
            self._extent(call.start, call.duration)
        tally.spans, tally.tool_calls, tally.last_end = self.spans, len(calls), self.end
        tally.tools = kept({call.name[:PREVIEW] for call in calls})
        tally.errors = len(self.failed)
        tally.first_error = min(self.failed, key=lambda item: item[0])[1] if self.failed else None
        columns = ([getattr(one, name) for one in self.used] for name in Counts.__struct_fields__)
        told = ([value for value in column if value is not None] for column in columns)
        tally.usage = Usage(*(sum(column) if column else None for column in told))
        return tally

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
            self._ran(told, item)
        elif isinstance(item, lean.AgentMessage):
            self._respond(told, (item.id, text_of(item.content).strip()), event=True)
        elif isinstance(item, lean.Reasoning):
            self._respond(told, (item.id, _thought(item)), event=True)
        else:
            self._hear("user", text_of(item.content), told, item=False, completed=True)

    def _respond(self, told: Any, ids: tuple[str | None, ...] = (), *, event: bool = False) -> None:
        """A record of the response that is open, or (for what it said already) of the last one."""
        self.session.failure = None
        self._said([ident for ident in ids if ident], told.started_at_ms, event=event)

    def _said(self, ids: list[str], began: float | None = None, *, event: bool = False) -> None:
        one = self.told
        self.heard = None
        again = False
        if one is not None and ids:
            for ident in ids:
                if ident in one.ids:
                    again = True
        if one is None or not (one.open or (again and event)):
            start = began / 1000 if began else self.time
            one = self.told = self._open(start)
            self._extent(start, _since(start, self.time))
            self.tally.llm_calls += 1
            if self.session.model is not None:
                keep(self.tally.models, self.session.model)
        else:
            one.also()
            if one.open:
                self._extent(one.start, _since(one.start, self.time))
        if ids and not again:
            if len(one.ids) > 64:
                del one.ids[:-64]
            one.ids += ids

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
        self._close()
        self._row()
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

    # ---- what was done

    def _call(self, told: lean.Call) -> None:
        kind = lean.CALL_KINDS[type(told)]
        self._respond(told)
        response, ident = self.told, told.call_id or told.id
        before = self.calls.get(ident) if ident else None
        if not ident or response is None or (before is not None and before.called):
            raise Irregular
        name = (told.name or kind.removesuffix("_call"))[:PREVIEW]
        if before is not None:
            call, call.name = before, name
            self._also(call)
        else:
            call = self._new_call(ident, name, self.time, response.position, "c")
            call.outcome = Outcome(answered=kind in DONE_CALLS, word=word(told.status))
        call.called = True
        self._went(call, call.outcome)

    def _answer(self, told: lean.Output) -> None:
        self._close()
        call = self.calls.get(told.call_id) if told.call_id else None
        if call is None:
            raise Irregular
        self._also(call)
        before = call.outcome
        took = (
            None if before.duration_ms is not None or self.time < call.start else number((self.time - call.start) * 1e3)
        )
        well, code = (False, None) if before.failed or before.code else went_well(told.output)
        if well:
            call.skipped = call.skipped or not before.message
            if took is None and before.answered and (code is None or before.code is not None):
                return
            outcome = Outcome(answered=True, code=code, duration_ms=took)
        else:
            payload = strict(self.data)["payload"]
            if spawned(payload):
                raise Irregular
            outcome = of_output(payload)
            outcome = outcome if took is None else msgspec.structs.replace(outcome, duration_ms=took)
        self._went(call, before.and_then(outcome))

    def _ran(self, told: lean.Completed, item: lean.CommandExecution) -> None:
        if item.status != "completed" or item.exit_code or not item.id:
            self._event_of_call(record_of(strict(self.data)))
            return
        began, ended = told.started_at_ms, told.completed_at_ms
        took = ended - began if began and ended and ended >= began else None
        start = began / 1000 if began else None
        outcome = Outcome(True, False, item.exit_code, "completed", started_at=start, duration_ms=took)
        call = self._told_of(item.id, "exec_command", start or self.time)
        call.skipped = call.skipped or not call.outcome.message
        self._went(call, call.outcome.and_then(outcome))

    def _event_of_call(self, record: Record) -> bool:
        tool = tool_of(record)
        if tool is None:
            return False
        if spawned(record.payload):
            raise Irregular
        began = number(record.payload.get("started_at_ms"))
        call = self._told_of(*tool, began / 1000 if began else self.time)
        self._went(call, call.outcome.and_then(of_event(record.payload)))
        return True

    def _told_of(self, ident: str, name: str, began: float) -> _Call:
        """The call of which an event tells, a new one if the model's call is not there yet."""
        call = self.calls.get(ident)
        if call is not None:
            self._also(call)
            return call
        told, turn = self.told, self.turn
        above = turn.position if turn is not None else ()
        if told is not None and turn is not None and told.position[:-1] == turn.position:
            above = told.position
        return self._new_call(ident, name, began, above)

    def _new_call(self, ident: str, name: str, began: float, above: Position, suffix: str = "") -> _Call:
        call = _Call((*above, self._number()), f"l{self.line}{suffix}", name[:PREVIEW], began)
        self.calls[ident] = call
        return call

    def _also(self, call: _Call) -> None:
        call.records += 1
        if call.records >= _MOST:
            raise Irregular

    def _went(self, call: _Call, outcome: Outcome) -> None:
        call.outcome = outcome
        if outcome.status[0] is not Status.RUNNING:
            call.duration = outcome.duration_ms
            if outcome.started_at is not None:
                call.start = outcome.started_at

    # ---- tokens

    def _tokens(self, told: lean.Tokens) -> None:
        info = told.info
        if info is None:
            self._use(None, None, own=False)
        else:
            self._use(info.last_token_usage, info.total_token_usage, own=False)

    def _usage(self, told: lean.Used) -> None:
        self._use(told.usage, told.thread_token_usage, own=True)

    def _use(self, last: Counts | None, total: Counts | None, *, own: bool) -> None:
        used = self._read(None if last == lean.NOTHING else last, None if total == lean.NOTHING else total, own=own)
        told = self.told
        if used is None:
            if told is None:
                self._row()
            else:
                told.also()
            return
        if told is None or told.used:
            self.told = None
            self._said([])
            told = self.told
        else:
            told.also()
        assert told is not None
        told.used, told.open = True, False
        self.used.append(used)

    def _read(self, last: Counts | None, total: Counts | None, *, own: bool) -> Counts | None:
        """The tokens that a record adds; see `Meter`."""
        if (last is None and total is None) or (total is not None and total == self.total):
            return None
        if last is None:
            raise Irregular
        again = self.own and not own and last == self.last
        self.total, self.last, self.own = total or self.total, last, own and not again
        return None if again or not any(msgspec.structs.astuple(last)) else last

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
            self._row()
        else:
            self.turn.also()

    def _compaction(self, _: lean.Compacted) -> None:
        self._close()
        self._row()
        self.compacted = True

    def _open_turn(self, *, implicit: bool) -> None:
        turn = self.turn
        if turn is not None and turn.implicit and self.told is None and not implicit:
            turn.also()
            turn.implicit = False
            return
        self.told = self.heard = None
        self.turn = _Span((self._number(),), self.line, self.time)
        self.turn.implicit = implicit
        self.tally.steps += 1
        self._extent(self.time, None)

    def _end_turn(self, record: Record) -> None:
        session, turn = self.session, self.turn
        session.end, session.end_failure = record, session.failure
        status, _, failure = outcome_of_turn(record, session.failure)
        session.failure = self.turn = None
        self._close()
        if turn is None:
            self._row()
            return
        turn.also()
        took = number(record.payload.get("duration_ms"))
        self._extent(turn.start, _since(turn.start, self.time) if took is None else took)
        if status is Status.ERROR and failure is not None:
            self._fail(turn.position, failure, f"l{turn.line}t", "turn", Operation.TURN)

    # ---- the rest

    def _rare(self, record: Record) -> None:
        """A record of a kind of which a rollout has few."""
        kind, name = record.kind, record.name
        self._at(record.outer.get("timestamp"))
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
            self._fail(self._row(), session.failure, f"l{self.line}", "error", Operation.OTHER)
        elif name == "thread_settings_applied":
            self._model(child(record.payload, "thread_settings").get("model"))
            self._beside()
        elif name in ("context_compacted", "ContextCompaction") and self.compacted:
            self.compacted = False
        elif not self._event_of_call(record):
            self._known(record)

    def _known(self, record: Record) -> None:
        if not is_known(record):
            kind = record.name[:PREVIEW]
            self.tally.unknown[kind] = self.tally.unknown.get(kind, 0) + 1
            self.tally.unread += len(self.data)
        self._row()

    # ---- spans

    def _at(self, stamp: Any) -> None:
        when = moment(stamp)
        if when is None or when < self.time:
            raise Irregular
        self.stamp, self.time = stamp, when

    def _number(self) -> int:
        self.spans += 1
        return self.spans

    def _open(self, start: float) -> _Span:
        """A response in the turn."""
        above = self.turn.position if self.turn is not None else ()
        return _Span((*above, self._number()), self.line, start)

    def _row(self) -> Position:
        """A span that stands for itself."""
        self._extent(self.time, None)
        return (*(self.turn.position if self.turn is not None else ()), self._number())

    def _close(self) -> None:
        if self.told is not None:
            self.told.open = False

    def _extent(self, start: float, duration_ms: float | None) -> None:
        end = start + max(0.0, duration_ms or 0.0) / 1000
        if end > self.end:
            self.end = end

    def _fail(self, position: Position, error: Error, ident: str, name: str, operation: Operation) -> None:
        if not error.message:
            raise Irregular
        self.failed.append((position, FirstError(error.message, error.type, ident, name, operation)))


def _thought(told: lean.Thought | lean.Reasoning) -> str:
    texts = (text_of(one) for one in (told.summary, told.summary_text, told.content, told.raw_content))
    return next((text for text in texts if text), "").strip()


def _since(begin: float, end: float) -> float:
    return (end - begin) * 1000 if end >= begin else 0.0


def _is_common(record: Record) -> bool:
    """Whether it is an item that is counted by what is decoded of it."""
    name = record.name
    return record.kind == ITEM and (name in CALLS or name in DONE_CALLS or name in _ITEMS or name.endswith("_output"))


_ITEMS: Final = frozenset({"message", "reasoning"})

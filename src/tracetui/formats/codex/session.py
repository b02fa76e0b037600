"""A Codex thread while its records come in: rows that later records may add to, and the state of the thread.

A turn goes from ``task_started`` to its end (old ones begin with a prompt); a response ends when its tokens are
counted or an answer comes; a call has the model's request, its output and the events about it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import (
    CANCELLED,
    CHAT,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXPLICIT,
    MESSAGE,
    META,
    MOST_RECORDS,
    OK,
    RUNNING,
    UNKNOWN,
    UNKNOWN_KIND,
    PackedRows,
    SpanRow,
    unmatched,
)
from tracetui.formats.bodies import pack_range
from tracetui.formats.codex.body import about
from tracetui.formats.codex.payloads import Counts
from tracetui.formats.codex.records import Answer, Event, Message, Meta, Outcome, ToolCall, ToolOutput, is_documented
from tracetui.formats.codex.stream import thread_key
from tracetui.formats.jsonl import Line
from tracetui.formats.scalars import between, folder_of, moment, version
from tracetui.formats.schema import unknown_fields
from tracetui.model import INHERITED, PREVIEW, Error, Header, Operation, RunBody, Span, Status, StatusSource, excerpt
from tracetui.model.claims import short_claim
from tracetui.sources.base import File

TURN: Final = Operation.TURN
OTHER: Final = Operation.OTHER
_RECENT: Final = 64
"""Calls that keep the text of their output: a later record may say that it is that of a failure."""
_FIRST: Final = 2000
"""Records in which the list stage looks for the first prompt."""
_IDS: Final = 64
_STEM: Final = re.compile(r"^rollout-[\dT:-]{10,25}-(?=[0-9a-f]{8}-)|\.(?:jsonl|json)$")
_AGENT: Final = "codex"


class Row(SpanRow, gc=False):
    """A row that later records may add to."""

    def end(self, status: Status, word: str, error: Error | None, when: float | None, took: float | None) -> None:
        """The row ended `when` (seconds since the epoch) or after `took` milliseconds."""
        self.status, self.source, self.status_word, self.error = status, EXPLICIT, word, error
        self.duration_ms = between(self.started_at, when) if took is None else took


class Turn(Row, gc=False):
    implicit: bool = False
    """It has no record."""


class Response(Row, gc=False):
    open: bool = True
    written_at: str | None = None
    """The time of its last record."""
    ids: tuple[str, ...] = ()
    """Ids and texts of its messages and reasoning."""
    has_message: bool = False
    """Its preview is a message, not reasoning."""

    def span(self) -> Span:
        """The row as it is now. The thread that inherited work is from paid for it."""
        self.duration_ms = between(self.started_at, moment(self.written_at))
        span = SpanRow.span(self)
        return replace(span, usage=None) if self.note == INHERITED and self.usage is not None else span


class Call(Row, gc=False):
    """A tool call."""

    requested: bool = False
    """The model's request is there, not only an event about the call."""
    outcome: Outcome | None = None
    """None while no record has any of it."""
    key: str = ""
    """The id that its output names."""
    collected: Span | None = None
    """Its span when it was collected last."""

    @classmethod
    def reopened(cls, answered: AnsweredCall, key: str) -> Call:
        """The call, to be changed by a late record."""
        span = answered.span
        text = "" if span.error is None else span.error.message
        call = cls.from_span(span)
        call.requested, call.key = answered.requested, key
        call.outcome = Outcome(
            True,
            answered.failed,
            answered.code,
            span.status_word,
            answered.declined,
            text,
            duration_ms=span.duration_ms,
        )
        return call

    def update(self, later: Outcome) -> None:
        """Add the outcome of one more record. An event is more exact than an output: its outcome stays."""
        now = self.outcome
        if now is None:
            now = self.outcome = later
            now.message = excerpt(later.message.strip())
        else:
            now.add(later)
        if now.status is None:
            return
        self.status, self.source = now.status
        self.status_word, self.error = (now.word if now.finished else None), now.error
        self.started_at = self.started_at if now.started_at is None else now.started_at
        self.duration_ms = now.duration_ms


class AnsweredCall(Struct, frozen=True, gc=False):
    """A finished call that was collected: its span, and the parts of `Call` that aren't in it."""

    span: Span
    requested: bool
    failed: bool | None
    code: int | None
    declined: bool


R = TypeVar("R", bound=Row)


class Session(PackedRows):
    """The state of one thread; see `tracetui.formats.jsonl.Session`."""

    origin: str
    """`INHERITED` while the records are the work of another thread."""
    copies: Callable[[bytes, bool], bool] | None = None
    """Whether the record on a line was copied from the original, while that may be."""
    record: Any = None
    """The record that is being taken."""
    meta: Meta | None = None
    _first = Line()
    """The line of `meta`, and when it was written."""
    _began: float | None = None
    model: str | None = None
    tier: str | None = None
    """As in `Span`, of later responses."""
    first_model: str | None = None
    prompt: str | None = None
    last_user: str | None = None
    last_assistant: str | None = None
    turn: Turn | None = None
    turns = 0
    agent: Row | None = None
    """The whole work of an agent, where this is its thread."""
    _early: list[Row]
    """Rows between turns that belong to the next one."""
    _unrepeated: tuple[Row, str, bool] | None = None
    """The last message of the user with its text, while only an item or only an event (True) records it."""
    response: Response | None = None
    """The response that the model is giving, or gave last."""
    _compaction: Row | None = None
    _outputs: deque[Call]
    """The latest calls with an output."""
    inherited: frozenset[str] = frozenset()
    """Threads that are in the history of a fork."""
    failure: Error | None = None
    """An error with no output of the model after it."""
    end: tuple[Status, str] | None = None
    """How the last turn ended; None while one is open."""
    token_totals: tuple[Counts | None, Counts | None, bool] = None, None, False
    """Tokens of the thread, those of the last response, and whether that had a record of its own for them."""
    before = 0
    """Bytes of the history of a fork."""
    _active = _has_status = False
    """Since records were skipped, the model worked; a turn began or ended."""

    def __init__(
        self,
        file: File,
        *,
        path: str = "",
        prefix: str = "",
        origin: str = "",
        look_back: Callable[[Session, Meta], None] | None = None,
    ) -> None:
        """`path` is that of the thread, relative to the folder of the run's file, where it is not in that; the ids of
        its spans begin with `prefix` then. `look_back` reads the records that a fork inherits or copied.
        """
        super().__init__(file, part=path)
        self._prefix, self.origin, self._look_back = prefix, origin, look_back
        self._own_origin = origin
        self._counted_turn: Any = None
        """The turn in which a response has its tokens."""
        self._early: list[Row] = []
        self._outputs: deque[Call] = deque()
        self.calls: dict[str, Call | AnsweredCall] = {}
        """Calls by their ids."""
        self.unanswered: dict[str, Call] = {}
        """Calls of this turn."""
        self.threads: dict[str, str] = {}
        """Threads that were spawned, each with the id of the span that did it."""

    # ---- records

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        payload = record.payload
        self.line, self.record, self.packed = line, record, pack_range(line.offset, len(line.data), line.check)
        if self.copies is not None:
            is_meta = isinstance(payload, Meta)
            if not self.copies(line.data, is_meta):  # the first record of its own
                self.copies = None
                self.leave()
                self.origin, self.inherited = self._own_origin, frozenset(self.threads)
            elif not is_meta:
                self.origin = INHERITED
        payload.take(self)

    @property
    def when(self) -> float | None:
        """When the record was written."""
        return moment(self.record.timestamp)

    def begin(self, meta: Meta) -> None:
        """Take the first record, which names the thread; a further one is a row."""
        if self.meta is not None:
            self.add_record()
            return
        line, self.meta, self._began = self.line, meta, self.when
        self._first = Line(line.offset, line.number, line.data)
        if self.records > 1 and not self._prefix:
            self.problem(line, "session_meta is not the first record")
        agent = self.agent
        if agent is not None and self.extend(agent):
            agent.name, agent.started_at = (meta.agent_nickname or agent.name)[:PREVIEW], self.when
        if self._look_back is not None and self.records == 1:
            self._look_back(self, meta)

    # ---- rows

    def _add(
        self,
        kind: type[R],
        name: str,
        operation: Operation,
        preview: str = "",
        status: Status = UNKNOWN,
        source: StatusSource | None = None,
        suffix: str = "",
    ) -> R:
        """A new row of the record, in the current turn."""
        above = self.turn or self.agent
        parent, step = (None, None) if above is None else (above.id, above.step)
        ident, origin = f"{self._prefix}l{self.line.number}{suffix}", self.origin
        row = self._changed[ident] = kind(
            ident,
            name[:PREVIEW],
            operation,
            parent,
            step,
            self.when,
            self.packed,
            preview[:PREVIEW],
            origin,
            status,
            source,
        )
        row.part = self.part
        return row

    def add_record(self) -> Row:
        """Add a row for the record."""
        name = self.record.kind()
        return self._add(Row, name, META if is_documented(name) else UNKNOWN_KIND, self.record.payload.label())

    def add_to_turn(self) -> None:
        """Add a record about the environment to the turn; between turns it is a row of the next one."""
        if self.turn is not None:
            self.extend(self.turn)
        else:
            self._before_turn(self.add_record())

    def _before_turn(self, row: Row) -> None:
        """Keep a row that belongs to the next turn, if it is in none."""
        if self.turn is None and len(self._early) < MOST_RECORDS:
            self._early.append(row)

    def use_model(self, model: str | None) -> None:
        """Later responses are of that model."""
        self.model = model or self.model
        self.first_model = self.first_model or self.model

    def compact(self, summary: str) -> None:
        """The conversation was replaced by its summary."""
        self._close()
        self._compaction = self._add(Row, "compaction", OTHER, summary, OK, DERIVED)

    def confirm_compaction(self) -> None:
        """An event repeats the compaction."""
        if self._compaction is None:
            self.add_record()
        else:
            self.extend(self._compaction)
            self._compaction = None

    def fail(self, error: Error) -> None:
        """An error: the turn fails, unless an output of the model follows."""
        self.failure, self._active = error, True
        self._add(Row, "error", OTHER, error.message, ERROR, EXPLICIT).error = error

    # ---- turns

    def start_turn(self) -> None:
        """A turn begins with a separate record."""
        self.end, self._has_status, self._active = None, True, True
        turn = self.turn
        if turn is None or not turn.implicit or self.response is not None:
            self.open_turn(implicit=False)
            return
        turn.implicit = False
        if self.extend(turn):
            turn.status, turn.source = RUNNING, DERIVED

    def open_turn(self, *, implicit: bool, own: bool = True) -> None:
        """Begin a turn. One that is open gets no more records: its end is unknown. `own`: the record is about nothing
        else.
        """
        self.leave()
        self.turns += 1
        agent = self.agent
        if agent is not None:
            agent.status, agent.source, agent.status_word, agent.error = RUNNING, DERIVED, None, None
            self.emit(agent)
        turn = self._add(Turn, "turn", TURN, suffix="t")
        turn.implicit = implicit
        if agent is None:
            turn.step = self.turns
        if not own:
            turn.at = b""
        if not implicit:
            turn.status, turn.source = RUNNING, DERIVED
        self.turn = turn
        early, self._early = self._early, []
        for row in early:
            row.parent_id, row.step = turn.id, turn.step
            self.emit(row)

    def leave(self) -> None:
        """No more records of the open turn will follow."""
        self._settle()
        if self.turn is not None:
            self.stop((self.turn,))
        self.turn = self.response = self._unrepeated = None

    def end_turn(self, status: Status, word: str, error: Error | None, duration_ms: float | None) -> None:
        """The turn ended."""
        self._has_status = self._active or status is CANCELLED or error is not None
        self.end, self.failure = (status, word), None
        self._close()
        self._settle(*((CANCELLED, EXPLICIT) if status is CANCELLED else ()))
        turn, self.turn = self.turn, None
        if turn is None:
            self.add_record()
            return
        if self.extend(turn):
            turn.end(status, word, error, self.when, duration_ms)
        if self.agent is not None:
            self.agent.end(status, word, error, self.when, None)
            self.emit(self.agent)

    def _settle(self, *outcome: Any) -> None:
        """Stop timing unanswered calls of this turn because the conversation continued or ended."""
        self.stop(self.unanswered.values(), *outcome)
        self.unanswered = {}

    def _close(self) -> None:
        """The response is over: the next output of the model is of another."""
        if self.response is not None:
            self.response.open = False

    # ---- messages and responses

    def add_message(self, message: Message, text: str, name: str, *, from_user: bool) -> None:
        """A message from outside: a prompt, or text that Codex adds in the user's name."""
        last = self._unrepeated
        if from_user and last is not None and last[2] != message.event and (text in last[1] or last[1] in text):
            row, prompt, _ = last
            if (message.confirmed or name == "user") and row.name != "user":
                row.name = "user"
                self._set_prompt(prompt)
            self.extend(row)
            self._unrepeated = None
            return
        if name == "user":
            if self.turn is None or (self.turn.implicit and self.response is not None):
                self.open_turn(implicit=True, own=False)
            self._set_prompt(text)
        self._close()
        row = self._add(Row, name, MESSAGE, text.strip(), OK, DERIVED)
        if name != "user":
            self._before_turn(row)
        if from_user:
            self._unrepeated = row, text, message.event

    def _claim(self, ident: str) -> str | int | None:
        """The claim of a row: rollouts have no ids of responses, but copies of a thread have the same lines."""
        thread = None if self.meta is None else self.meta.id
        return None if not thread else short_claim(f"codex {thread} {ident}")

    def link_thread(self, thread: str, key: str | None) -> None:
        """A call started an agent with a thread of its own."""
        call = self._open_call(key)
        if call is not None:
            self.threads.setdefault(thread, call.id)

    def _set_prompt(self, text: str) -> None:
        self.last_user, preview = text, text.strip()[:PREVIEW]
        if self.prompt is None:
            self.prompt = preview
        if self.turn is not None and not self.turn.preview:
            self.turn.preview = preview
            self.emit(self.turn)

    def add_output(self, message: Message, text: str) -> None:
        """A message or reasoning of the model. An event may repeat a part of a response that is over."""
        text, ident, row, is_message = text.strip(), message.id, self.response, not message.reasoning
        self.failure, self._active, self._unrepeated = None, True, None
        parts = (ident, text) if ident and text else (ident or text,) if ident or text else ()
        repeated = row is not None and (ident in row.ids or text in row.ids)
        if row is None or not (row.open or (repeated and message.event)):
            row = self._begin_response(text)
            if message.started_at_ms:
                row.started_at = message.started_at_ms / 1000
        elif self.extend(row):
            if row.open:
                row.written_at = self.record.timestamp
            if text and (not row.preview or (is_message and not row.has_message)):
                row.preview = text[:PREVIEW]
        if not repeated:
            row.ids = (*row.ids[-_IDS:], *parts)
        if text and is_message:
            self.last_assistant, row.has_message = text, True

    def _begin_response(self, preview: str = "") -> Response:
        row = self.response = self._add(Response, self.model or "model", CHAT, preview, OK, DERIVED)
        row.claim = self._claim(row.id.removeprefix(self._prefix))
        row.model, row.tier, row.written_at = self.model, self.tier, self.record.timestamp
        row.note = row.note or self.tier or ""
        return row

    # ---- tokens

    def count_tokens(self, last: Any, total: Any, *, own: bool) -> None:
        """Tokens of the last response, and of the thread so far; `own`: in a record of their own. They are recorded per
        response, per turn and for the whole thread, and some of it twice.
        """
        sum_before, before, had_own = self.token_totals
        usage, row = None, self.response
        if total is None or total != sum_before:
            last = last if isinstance(last, Counts) and last != _NO_COUNTS else None
            total = total if isinstance(total, Counts) and total != _NO_COUNTS else None
            if had_own and not own and last is not None and last == before:
                self.token_totals = total or sum_before, last, False
            elif last is not None or total is not None:
                last = total.minus(sum_before) if last is None else last
                self.token_totals = total or sum_before, last, own
                usage = last.usage()
        if usage is None:
            if row is None:
                self.add_record()
            else:
                self.extend(row)
            return
        if row is None or row.usage is not None:  # of a call without any output, such as a compaction
            self._unrepeated = None
            row = self._begin_response("(only its tokens were recorded)")
        else:
            self.extend(row)
        row.usage, row.open = usage, False
        self._counted_turn = self.turn
        self._changed[row.id] = row

    # ---- calls

    def add_call(self, request: ToolCall, preview: str) -> None:
        """The model calls a tool."""
        key, name = request.call_id or request.id, request.tool()
        self.failure, self._active, self._unrepeated = None, True, None
        response = self.response
        if response is None or not response.open:
            response = self._begin_response()
        elif self.extend(response):
            response.written_at = self.record.timestamp
        call = self._open_call(key)
        if call is not None and not call.requested:
            if self.extend(call):
                call.name, call.preview = name[:PREVIEW], preview
        else:
            if call is not None and key in self.unanswered:
                self.problem(self.line, f"call id {(key or '')[:PREVIEW]!r} is reused before its result")
            call = self._add_call(name, preview, response, "c")
        call.requested = True
        if not key:
            self.add_keyless(call, self.line)
            return
        if call.outcome is None and (request.hosted or request.status):
            call.update(Outcome(finished=request.hosted, word=request.status or None))
        self._take_call(key, call)

    def add_tool_output(self, record: ToolOutput, text: str, outcome: Outcome) -> None:
        """A tool answered the model; before the tokens of the response that called it, if responses have tokens."""
        response = self.response
        if response is None or response.usage is not None or self.turn is None or self.turn is not self._counted_turn:
            self._close()
        key = record.call_id
        call = self._open_call(key)
        if call is None or key is None:
            self.problem(self.line, unmatched(key or None))
            self._add_call(self.record.kind(), text).update(outcome)
            return
        self.extend(call)
        if call.outcome is None or call.outcome.duration_ms is None:
            outcome.duration_ms = between(call.started_at, self.when)
        self._update(key, call, record, outcome)

    def add_tool_event(self, key: str, kind: str, event: Event, outcome: Outcome) -> None:
        """An event about a call."""
        call = self._open_call(key)
        if call is None:
            call = self._add_call(event.tool(kind), event.preview())
            call.started_at = call.started_at if outcome.started_at is None else outcome.started_at
        else:
            self.extend(call)
        self._update(key, call, event, outcome)

    def _add_call(self, name: str, preview: str, response: Response | None = None, suffix: str = "") -> Call:
        """A new call, below its response: by default the last one of this turn."""
        call = self._add(Call, name, EXECUTE_TOOL, preview, RUNNING, DERIVED, suffix)
        call.claim = self._claim(call.id.removeprefix(self._prefix))
        response = self.response if response is None and self.turn is not None else response
        if response is not None and response.parent_id == call.parent_id:
            call.parent_id = response.id
        return call

    def _update(self, key: str, call: Call, record: Answer, outcome: Outcome) -> None:
        """Add what a record says about the end of a call. Of earlier calls, only failed ones keep their text."""
        for thread in record.threads():
            self.threads.setdefault(thread, call.id)
        call.update(outcome)
        if outcome.message:
            self._outputs.append(call)
            if len(self._outputs) > _RECENT:
                early = self._outputs.popleft()
                if early.outcome is not None and early.status is not ERROR:
                    early.outcome.message = ""
                    if early.collected is not None and early.id not in self._changed:
                        self.release(early, early.collected)
        self._take_call(key, call)

    def _take_call(self, key: str, call: Call) -> None:
        """Take a new or changed call; `key` is the id that its output names."""
        call.key = key
        self._changed[call.id] = self.calls[key] = call
        if call.outcome is None or not call.outcome.finished:
            self.unanswered[key] = call
        elif key in self.unanswered:
            del self.unanswered[key]

    def _open_call(self, key: str | None) -> Call | None:
        """The call of that id, to be changed."""
        if not key:
            return None
        call = self.calls.get(key)
        if isinstance(call, AnsweredCall):
            call = self.calls[key] = Call.reopened(call, key)
        return call

    def release(self, row: Any, span: Span) -> None:
        if not isinstance(row, Call) or row.outcome is None or self.calls.get(row.key) is not row:
            return
        row.collected, outcome = span, row.outcome
        has_text = bool(outcome.message)
        if outcome.finished and has_text is (row.status is ERROR):  # no other text can be found again
            self.calls[row.key] = AnsweredCall(span, row.requested, outcome.failed, outcome.code, outcome.declined)

    # ---- forks

    def continue_history(self, history: Session) -> None:
        """Continue where the history of a fork ends."""
        history.leave()
        self._changed.update(history._changed)
        self.problems += history.problems
        self.threads = dict(history.threads)
        self.inherited = frozenset(history.threads)
        self.turns, self.token_totals = history.turns, history.token_totals
        self.model, self.tier = history.model, history.tier
        self.before += history.before
        for name, times in history.unknown.items():
            self.unknown[name] = self.unknown.get(name, 0) + times

    # ---- the thread as a whole

    @property
    def begun(self) -> bool:
        return self.meta is not None

    @property
    def settled(self) -> bool:
        """No later record changes the list-stage result of the beginning."""
        named = self.prompt is not None and self.first_model is not None
        return (named and self.meta is not None) or self.records > _FIRST

    def skip(self, left_out: bytes) -> None:
        super().skip(left_out)
        self._active = self._has_status = False
        self.failure = None

    @property
    def has_status(self) -> bool:
        """The records taken since `skip` determine the status of the thread: if the model worked in them and no turn
        ends, one is open.
        """
        return self._has_status or self._active

    def header(self) -> Header:
        """The header so far."""
        meta = self.meta or Meta()
        stem = _STEM.sub("", self.file.name) or self.file.name
        began = moment(meta.timestamp)
        branch = getattr(meta.git, "branch", None) or None
        status, word = self.end or (None, None)
        unsure = self.skipped and self._active and not self._has_status
        if unsure:  # it is the end of an earlier turn; work that is recorded late comes after the end of its own
            status = word = None
        return Header(
            id=meta.id or stem,
            name=folder_of(meta.cwd) or stem,
            agent=meta.agent_nickname or _AGENT,
            is_session=True,
            model=self.first_model,
            status=status,
            status_word=word,
            status_source=None if status is None else EXPLICIT,
            ended=status is not None or (unsure and not self.file.moving),
            started_at=self._began if began is None else began,
            replay_of=meta.forked_from_id,
            relation=None if meta.forked_from_id is None else "fork",
            parent=meta.parent_thread_id or None,
            origin=None if meta.id is None else f"codex {meta.id}",
            prompt=self.prompt or "",
            tags=(branch[:PREVIEW],) if branch is not None else (),
            source=(meta.cwd or "")[:PREVIEW] or None,
            writer=version(meta.cli_version),
            identity=None if meta.id is None else thread_key(meta.id),
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        """All fields of the first record."""
        prompt, attributes = about(self._first.data)
        return RunBody(
            last_user=self.last_user,
            last_assistant=self.last_assistant,
            system_prompt=prompt,
            attributes=attributes,
            extent=None if self.meta is None else self._first.byte_range,
        )


_NO_COUNTS: Final = Counts()

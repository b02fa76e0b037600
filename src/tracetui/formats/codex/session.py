"""A Codex thread while its records come in: rows that later records may say more about, and how the thread stands.

A turn goes from ``task_started`` to its end (old ones begin with a prompt); a response goes on until its tokens are
counted or something answers it; a call has the model's request, its output and the events about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

from msgspec import Struct

from tracetui.formats.agent_log import (
    CANCELLED,
    CHAT,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXIT,
    EXPLICIT,
    MESSAGE,
    OK,
    RUNNING,
    UNKNOWN,
    Conversation,
)
from tracetui.formats.codex.body import about
from tracetui.formats.codex.records import At, Counts, Deed, Meta, Outcome, Payload, is_known, pack, since
from tracetui.formats.fields import unknown_fields
from tracetui.formats.jsonl import Line
from tracetui.formats.labels import folder_of
from tracetui.formats.scalars import moment, version
from tracetui.model import (
    INHERITED,
    MESSAGE_LIMIT,
    PREVIEW,
    Error,
    Header,
    Operation,
    RunBody,
    Span,
    Status,
    StatusSource,
    Usage,
)
from tracetui.sources.base import File

TURN: Final = Operation.TURN
OTHER: Final = Operation.OTHER
MOST: Final = 1000
"""Records in one row; any beyond stand for themselves. As many rows wait for the next turn."""
_LONGEST: Final = MOST * len(pack(0, 0, 0))
_FIRST: Final = 2000
"""Records in which the list stage looks for the first prompt."""
_IDS: Final = 64
_STEM: Final = re.compile(r"^rollout-[\dT:-]{10,25}-(?=[0-9a-f]{8}-)|\.(?:jsonl|json)$")
_AGENT: Final = "codex"


class Row(Struct, gc=False):
    """A row that later records may say more about."""

    id: str
    name: str
    operation: Operation
    parent_id: str | None
    step: int | None
    started_at: float | None
    note: str
    places: bytes
    """As in `At`."""
    path: str | None
    preview: str = ""
    status: Status = UNKNOWN
    source: StatusSource | None = None
    word: str | None = None
    error: Error | None = None
    duration_ms: float | None = None
    usage: Usage | None = None
    model: str | None = None

    def span(self) -> Span:
        """The row as it is now. What is inherited was paid for by the thread that it is from."""
        return Span(
            id=self.id,
            name=self.name,
            operation=self.operation,
            parent_id=self.parent_id,
            step=self.step,
            is_step=self.operation is TURN and self.step is not None,
            status=self.status,
            status_word=self.word,
            status_source=self.source,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
            usage=None if self.note == INHERITED else self.usage,
            error=self.error,
            model=self.model,
            preview=self.preview,
            note=self.note,
            at=At(self.places, self.path),
        )


class Turn(Row):
    implicit: bool = False
    """It has no record of its own."""


class Heard(Row):
    """A message of the user, which is recorded as an item and as an event."""

    text: str = ""
    item: bool = False
    event: bool = False


class Response(Row):
    open: bool = True
    ids: tuple[str, ...] = ()
    """Ids and texts of what it said."""
    spoke: bool = False
    """Its preview is what it said, not what it thought."""


class Call(Row):
    """A tool call, and what is known of how it went; see `Outcome`."""

    called: bool = False
    """The model's call is there, not only an event about it."""
    answered: bool = False
    failed: bool | None = None
    code: int | None = None
    said: str | None = None
    declined: bool = False
    message: str = ""
    began: float | None = None
    took: float | None = None

    def went(self, later: Outcome) -> None:
        """Add what one more record says. An event knows better than an output: what it says stays."""
        self.answered = self.answered or later.answered
        if later.failed is not None:
            self.failed = self.failed or later.failed
        self.code = later.code if self.code is None else self.code
        self.said = later.word or self.said
        self.declined = self.declined or later.declined
        self.message = self.message or later.message
        self.began = self.began if later.started_at is None else later.started_at
        self.took = self.took if later.duration_ms is None else later.duration_ms
        self.stand()

    def stand(self) -> None:
        """Show what is known: a status or error field counts more than the exit code."""
        code = self.code
        if self.declined:
            self.status, self.source = CANCELLED, EXPLICIT
        elif self.failed:
            self.status, self.source = ERROR, EXPLICIT
        elif code:
            self.status, self.source = ERROR, EXIT
        elif not self.answered:
            return
        elif self.failed is False:
            self.status, self.source = OK, EXPLICIT
        else:
            self.status, self.source = OK, DERIVED if code is None else EXIT
        self.word = self.said if self.answered else None
        self.error = self._why() if self.status is ERROR else None
        self.started_at = self.started_at if self.began is None else self.began
        self.duration_ms = self.took

    def _why(self) -> Error:
        kind, message = f"exit {self.code}" if self.code else None, self.message.strip()
        if len(message) > MESSAGE_LIMIT:
            message = message[: MESSAGE_LIMIT - 1] + "…"
        return Error(message or kind or self.said or "failed", kind)


class Session(Conversation):
    """What is known of one thread; see `tracetui.formats.jsonl.Session`."""

    def __init__(
        self,
        file: File,
        *,
        path: str | None = None,
        prefix: str = "",
        origin: str = "",
        look_back: Callable[[Session, Meta], None] | None = None,
    ) -> None:
        """`path` is that of the thread, relative to the folder of the run's file, where it is not in that; `prefix`
        stands before the ids of its spans then. `look_back` reads what a fork inherits or copied.
        """
        super().__init__(file)
        self._path, self._prefix, self.origin = path, prefix, origin
        """`origin`: `INHERITED` while what is read was the work of another thread."""
        self._look_back = look_back
        self.copies: Callable[[bytes, bool], bool] | None = None
        """Whether the record on a line was copied from the original, while that may be."""
        self.line = Line()
        self.record: Any = None
        """The record that is being taken; `line` and `when` are of it."""
        self.when: float | None = None
        """When the record was written."""
        self._stamp: str | None = None
        self.meta: Meta | None = None
        self._first_line = b""
        self._place: tuple[int, int] | None = None
        self._began: float | None = None
        self.model: str | None = None
        self.first_model: str | None = None
        self.prompt: str | None = None
        self.last_user: str | None = None
        self.last_assistant: str | None = None
        self.turn: Turn | None = None
        self.agent: Row | None = None
        """All that an agent did, where this is its thread."""
        self._early: list[Row] = []
        """What came between turns and belongs to the next one."""
        self.turns = 0
        self.heard: Heard | None = None
        self.told: Response | None = None
        """The response that the model is giving, or gave last."""
        self._compaction: Row | None = None
        self.deeds: dict[str, Call] = {}
        """Calls by their ids."""
        self.unanswered: dict[str, Call] = {}
        """Calls of this turn."""
        self.threads: dict[str, str] = {}
        """Threads that were spawned, each with the id of the span that did it."""
        self.inherited: frozenset[str] = frozenset()
        """Those of them that the history of a fork began."""
        self.failure: Error | None = None
        """An error after which the model said nothing."""
        self.end: tuple[Status, str] | None = None
        """How the last turn ended; None while one goes on."""
        self.meter: tuple[Counts | None, Counts | None, bool] = None, None, False
        """Tokens of the thread, those of the last response, and whether that had a record of its own for them."""
        self.before = 0
        """Bytes of the history of a fork."""
        self._active = self._stood = False

    # ---- records

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        payload = record.payload
        self.line, self.record = line, record
        stamp = record.timestamp
        if stamp != self._stamp:
            self._stamp, self.when = stamp, moment(stamp)
        if self.copies is not None:
            self._take_copy(isinstance(payload, Meta))
        payload.take(self)

    def _take_copy(self, is_meta: bool) -> None:
        """The own part of an old fork begins with the first record that was not copied."""
        if self.copies is None or not self.copies(self.line.data, is_meta):
            self.copies = None
            self.leave()
            self.origin, self.inherited = "", frozenset(self.threads)
        elif not is_meta:
            self.origin = INHERITED

    def begin(self, meta: Meta) -> None:
        """The first record says what thread this is."""
        line, self.meta = self.line, meta
        self._first_line, self._place, self._began = line.data, line.place, self.when
        if self.records > 1 and not self._prefix:
            self.problem(line, "session_meta is not the first record")
        agent = self.agent
        if agent is not None and self.also(agent):
            agent.name, agent.started_at = (meta.nickname or agent.name)[:PREVIEW], self.when
        if self._look_back is not None and self.records == 1:
            self._look_back(self, meta)

    # ---- rows

    def _place_of(self) -> bytes:
        line = self.line
        return pack(line.offset, len(line.data), crc32(line.data))

    def _of_turn(self) -> tuple[str | None, int | None]:
        """Parent and step of a row within the current turn."""
        if self.turn is not None:
            return self.turn.id, self.turn.step
        return (None if self.agent is None else self.agent.id), None

    def row(self, name: str, preview: str, operation: Operation) -> Row:
        """A record that stands for itself."""
        parent, step = self._of_turn()
        ident, places = f"{self._prefix}l{self.line.number}", self._place_of()
        row = Row(ident, name[:PREVIEW], operation, parent, step, self.when, self.origin, places, self._path)
        row.preview = preview[:PREVIEW]
        self.emit(row)
        return row

    def alone(self) -> Row:
        """The record stands for itself."""
        name = self.record.kind()
        return self.row(name, self.record.payload.shown(), Operation.META if is_known(name) else Operation.UNKNOWN)

    def also(self, row: Row) -> bool:
        """The record is about that row too; False, and a row of its own, where too many are."""
        if len(row.places) >= _LONGEST:
            self.alone()
            return False
        line = self.line
        data = line.data
        row.places += pack(line.offset, len(data), crc32(data))
        self._changed[row.id] = row
        return True

    def beside(self) -> None:
        """What the program notes about its surroundings belongs to the turn; a row of its own outside of one."""
        if self.turn is not None:
            self.also(self.turn)
        else:
            self._before_turn(self.alone())

    def _before_turn(self, row: Row) -> None:
        """Keep a row that belongs to the next turn, if it is in none."""
        if self.turn is None and len(self._early) < MOST:
            self._early.append(row)

    def uses(self, model: str | None) -> None:
        """That model is used from here on."""
        self.model = model or self.model
        self.first_model = self.first_model or self.model

    def compact(self, summary: str) -> None:
        """The conversation was replaced by its summary."""
        self._close()
        row = self._compaction = self.row("compaction", summary, OTHER)
        row.status, row.source = OK, DERIVED

    def compacted(self) -> None:
        """An event about the same."""
        if self._compaction is None:
            self.alone()
        else:
            self.also(self._compaction)
            self._compaction = None

    def fail(self, error: Error) -> None:
        """Something went wrong; the turn did, unless the model says something after it."""
        self.failure, self._active = error, True
        row = self.row("error", error.message, OTHER)
        row.status, row.source, row.error = ERROR, EXPLICIT, error

    # ---- turns

    def going(self) -> None:
        """A turn begins with a record of its own."""
        self.end, self._stood, self._active = None, True, True

    def open_turn(self, *, implicit: bool, own: bool = True) -> None:
        """Begin a turn. One that is open still has no end: no more records of it will come. `own`: the record is about
        nothing else.
        """
        turn = self.turn
        if turn is not None and turn.implicit and self.told is None and not implicit:
            if self.also(turn):
                turn.status, turn.source = RUNNING, DERIVED
            turn.implicit = False
            return
        self.leave()
        self.turns += 1
        agent = self.agent
        if agent is not None:
            agent.status, agent.source, agent.word, agent.error = RUNNING, DERIVED, None, None
            self.emit(agent)
        parent, step = (None, self.turns) if agent is None else (agent.id, None)
        ident, places = f"{self._prefix}l{self.line.number}t", self._place_of() if own else b""
        turn = Turn(ident, "turn", TURN, parent, step, self.when, self.origin, places, self._path, implicit=implicit)
        if not implicit:
            turn.status, turn.source = RUNNING, DERIVED
        self.turn = turn
        self.emit(turn)
        early, self._early = self._early, []
        for row in early:
            row.parent_id, row.step = turn.id, step
            self.emit(row)

    def leave(self) -> None:
        """No more records of what is open will come."""
        self._settle(UNKNOWN, None)
        turn = self.turn
        if turn is not None and turn.status is RUNNING:
            turn.status, turn.source = UNKNOWN, None
            self.emit(turn)
        self.turn = self.told = self.heard = None

    def end_turn(self, status: Status, word: str, error: Error | None, duration_ms: float | None) -> None:
        """The turn ended."""
        self._stood = self._active or status is CANCELLED or error is not None
        self.end, self.failure = (status, word), None
        self._close()
        self._settle(*((CANCELLED, EXPLICIT) if status is CANCELLED else (UNKNOWN, None)))
        turn, self.turn = self.turn, None
        if turn is None:
            self.alone()
            return
        if self.also(turn):
            turn.status, turn.source, turn.word, turn.error = status, EXPLICIT, word, error
            turn.duration_ms = since(turn.started_at, self.when) if duration_ms is None else duration_ms
        agent = self.agent
        if agent is not None:
            agent.status, agent.source, agent.word, agent.error = status, EXPLICIT, word, error
            agent.duration_ms = since(agent.started_at, self.when)
            self.emit(agent)

    def _settle(self, status: Status, source: StatusSource | None) -> None:
        """The conversation went on or ended: calls of this turn without an answer do not run any more."""
        for call in self.unanswered.values():
            if call.status is RUNNING:
                call.status, call.source = status, source
                self.emit(call)
        self.unanswered = {}

    def _close(self) -> None:
        """The response is over: what the model says next is another."""
        if self.told is not None:
            self.told.open = False

    # ---- what was said

    def hear(self, role: str, name: str, text: str, *, event: bool = False, completed: bool = False) -> None:
        """A message that came from outside: a prompt, or what the program puts into the conversation as its user.
        `completed`: only a user writes what is recorded so.
        """
        heard, is_user = self.heard, role == "user"
        if is_user and heard is not None and _same(heard, text, event):
            if (completed or name == "user") and heard.name != "user":
                heard.name = "user"
                self._prompted(heard.text)
            self.also(heard)
            heard.item = heard.event = True
            return
        if name == "user":
            if self.turn is None or (self.turn.implicit and self.told is not None):
                self.open_turn(implicit=True, own=False)
            self._prompted(text)
        self._close()
        parent, step = self._of_turn()
        ident, places = f"{self._prefix}l{self.line.number}", self._place_of()
        row = Heard(ident, name[:PREVIEW], MESSAGE, parent, step, self.when, self.origin, places, self._path)
        row.preview, row.status, row.source = text.strip()[:PREVIEW], OK, DERIVED
        self.emit(row)
        if name != "user":
            self._before_turn(row)
        if is_user:
            row.text, row.item, row.event = text, not event, event
            self.heard = row

    def _prompted(self, text: str) -> None:
        self.last_user, shown = text, text.strip()[:PREVIEW]
        if self.prompt is None:
            self.prompt = shown
        if self.turn is not None and not self.turn.preview:
            self.turn.preview = shown
            self.emit(self.turn)

    def say(
        self, text: str, ident: str | None, *, thought: bool = False, event: bool = False, began: float | None = None
    ) -> None:
        """The model said or thought this; `began` in milliseconds since the epoch."""
        text = text.strip()
        self.failure, self._active = None, True
        self._respond(tuple([one for one in (ident, text) if one]), text, thought=thought, event=event, began=began)
        if text and not thought:
            self.last_assistant = text

    def _respond(
        self, ids: tuple[str, ...], text: str, *, thought: bool = True, event: bool = False, began: float | None = None
    ) -> Response:
        """The response that the record is part of: the one that is open, or (for what it said already) the last one."""
        told, when = self.told, self.when
        self.heard = None
        again = bool(ids) and told is not None and not set(ids).isdisjoint(told.ids)
        if told is None or not (told.open or (again and event)):
            start = began / 1000 if began else when
            parent, step = self._of_turn()
            told = self.told = Response(
                f"{self._prefix}l{self.line.number}",
                (self.model or "model")[:PREVIEW],
                CHAT,
                parent,
                step,
                start,
                self.origin,
                self._place_of(),
                self._path,
                text[:PREVIEW],
                OK,
                DERIVED,
                duration_ms=since(start, when),
                model=self.model,
                ids=ids,
                spoke=bool(text) and not thought,
            )
            self.emit(told)
            return told
        if self.also(told):
            if told.open:
                told.duration_ms = since(told.started_at, when)
            if text and (not told.preview or (not thought and not told.spoke)):
                told.preview = text[:PREVIEW]
        told.spoke = told.spoke or (bool(text) and not thought)
        if not again and ids:
            told.ids = (*told.ids[-_IDS:], *ids)
        return told

    # ---- tokens

    def use(self, last: Counts | None, total: Counts | None, *, own: bool) -> None:
        """Tokens of the last response, and of the thread so far; `own`: in a record of their own."""
        usage, told = self._added(last, total, own=own), self.told
        if usage is None:
            if told is None:
                self.alone()
            else:
                self.also(told)
            return
        if told is None or told.usage is not None:  # of a call that left no words, such as a compaction
            self.told = None
            told = self._respond((), "(only its tokens were recorded)")
        else:
            self.also(told)
        told.usage, told.open = usage, False
        self.emit(told)

    def _added(self, last: Counts | None, total: Counts | None, *, own: bool) -> Usage | None:
        """The tokens that the record adds; None where it repeats what is known, or has none.

        They are recorded per response, per turn and for the whole thread, and some of it twice.
        """
        known, before, had_own = self.meter
        if (last is None and total is None) or (total is not None and total == known):
            return None
        if had_own and not own and last is not None and last == before:
            self.meter = total or known, last, False
            return None
        if last is None and total is not None:
            last = total.less(known)
        self.meter = total or known, last, own
        return None if last is None else last.usage()

    # ---- calls

    def called(self, key: str | None, name: str, preview: str, word: str | None, *, done: bool) -> None:
        """The model calls a tool; `done`: one on its own side, which gives no output."""
        self.failure, self._active = None, True
        told = self._respond((), "")
        call = None if key is None else self.deeds.get(key)
        if call is not None and not call.called:
            if self.also(call):
                call.name, call.preview = name[:PREVIEW], preview
        else:
            if call is not None and key in self.unanswered:
                self.problem(self.line, f"call id {(key or '')[:PREVIEW]!r} is used again before its answer came")
            call = self._new_call(name, preview, told.id, self.when, "c")
            call.answered, call.said = done, word
        call.called = True
        if key is None:
            self.problem(self.line, f"a call of {name[:PREVIEW]} has no id: its answer cannot be told")
            call.status, call.source = UNKNOWN, None
            return
        call.stand()
        self._keep(key, call)

    def answered(self, payload: Payload, key: str | None, text: str, outcome: Outcome) -> None:
        """A tool answered."""
        self._close()
        call = None if key is None else self.deeds.get(key)
        if call is None or key is None:
            shown = "without an id" if key is None else repr(key[:PREVIEW])
            self.problem(self.line, f"an output, but no call {shown} waits for one")
            parent = self._above() or self._of_turn()[0]
            self._new_call(self.record.kind(), text[:PREVIEW], parent, self.when).went(outcome)
            return
        for thread in payload.threads():
            self.threads.setdefault(thread, call.id)
        self.also(call)
        if call.took is None:
            outcome.duration_ms = since(call.started_at, self.when)
        call.went(outcome)
        self._keep(key, call)

    def did(self, key: str, kind: str, deed: Deed, outcome: Outcome, began: float | None) -> None:
        """An event about a call; `began` in milliseconds since the epoch."""
        call = self.deeds.get(key)
        if call is None:
            start = began / 1000 if began else self.when
            parent = self._above() or self._of_turn()[0]
            call = self._new_call(deed.tool(kind), deed.preview(), parent, start)
        else:
            self.also(call)
        for thread in deed.threads():
            self.threads.setdefault(thread, call.id)
        call.went(outcome)
        self._keep(key, call)

    def _above(self) -> str | None:
        """The response of this turn that a call belongs to, as far as is known."""
        told, turn = self.told, self.turn
        return told.id if told is not None and turn is not None and told.parent_id == turn.id else None

    def _new_call(self, name: str, preview: str, parent: str | None, when: float | None, suffix: str = "") -> Call:
        step = None if self.turn is None else self.turn.step
        ident, places = f"{self._prefix}l{self.line.number}{suffix}", self._place_of()
        call = Call(ident, name[:PREVIEW], EXECUTE_TOOL, parent, step, when, self.origin, places, self._path)
        call.preview, call.status, call.source = preview, RUNNING, DERIVED
        self.emit(call)
        return call

    def _keep(self, key: str, call: Call) -> None:
        self.emit(call)
        self.deeds[key] = call
        if call.answered:
            self.unanswered.pop(key, None)
        else:
            self.unanswered[key] = call

    # ---- forks

    def go_on_from(self, history: Session) -> None:
        """Go on from where the history of a fork ends."""
        history.leave()
        self._changed.update(history._changed)
        self.problems += history.problems
        self.threads = dict(history.threads)
        self.inherited = frozenset(history.threads)
        self.turns, self.meter, self.model = history.turns, history.meter, history.model
        self.before += history.before
        for name, times in history.unknown.items():
            self.unknown[name] = self.unknown.get(name, 0) + times

    # ---- the thread as a whole

    @property
    def settled(self) -> bool:
        """No later record changes what the beginning says."""
        named = self.prompt is not None and self.first_model is not None
        return (named and self.meta is not None) or self.records > _FIRST

    def skip(self) -> None:
        super().skip()
        self._active = self._stood = False
        self.failure = None

    @property
    def stands(self) -> bool:
        """The records taken since `skip` say how the thread stands: where a model is at work in them and no turn ends,
        one goes on.
        """
        return self._stood or self._active

    def header(self) -> Header:
        """The header as far as it is known."""
        meta = self.meta or Meta()
        stem = _STEM.sub("", self.file.name) or self.file.name
        began = moment(meta.timestamp)
        branch = getattr(meta.git, "branch", None) or None
        status, word = self.end or (None, None)
        unsure = self.skipped and self._active and not self._stood
        if unsure:  # it is the end of an earlier turn; work that is recorded late comes after the end of its own
            status = word = None
        return Header(
            id=meta.id or stem,
            name=folder_of(meta.cwd) or stem,
            agent=meta.nickname or _AGENT,
            model=self.first_model,
            status=status,
            status_word=word,
            status_source=None if status is None else EXPLICIT,
            ended=status is not None or (unsure and not self.file.moving),
            started_at=self._began if began is None else began,
            replay_of=meta.original,
            relation=None if meta.original is None else "fork",
            parent=meta.parent,
            prompt=self.prompt or "",
            tags=(branch[:PREVIEW],) if branch is not None else (),
            source=(meta.cwd or "")[:PREVIEW] or None,
            writer=version(meta.cli_version),
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        """All that the thread says about itself in its first record."""
        prompt, attributes = about(self._first_line)
        return RunBody(
            last_user=self.last_user,
            last_assistant=self.last_assistant,
            system_prompt=prompt,
            attributes=attributes,
            extent=self._place,
        )


def _same(heard: Heard, text: str, event: bool) -> bool:
    """Whether this is what was heard already, recorded the other way."""
    other_way = (heard.item and event and not heard.event) or (heard.event and not event and not heard.item)
    return other_way and (text in heard.text or heard.text in text)

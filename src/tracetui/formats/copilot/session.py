"""A Copilot session while its events come in: which event says what about which row. Also its header.

Rows are mutable and become spans when they are collected: most of them have several events. There is a conversation of
the session itself and one of each sub-agent, whose events are among those of the session and whose rows stand below the
call that began it.
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import orjson
from msgspec import Raw, Struct

from tracetui.formats.agent_log import (
    CANCELLED,
    CHAT,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXPLICIT,
    META,
    OK,
    RUNNING,
    UNKNOWN,
    UNKNOWN_KIND,
    Rows,
)
from tracetui.formats.copilot.body import At, event_of
from tracetui.formats.copilot.records import (
    GOES_ON,
    KINDS,
    OTHER,
    AnyEvent,
    Context,
    OfAgent,
    ShutdownData,
    StartData,
    call_preview,
    kind_of,
)
from tracetui.formats.copilot.usage import Ledger, Spent
from tracetui.formats.fields import unknown_fields
from tracetui.formats.jsonl import Line
from tracetui.formats.labels import folder_of
from tracetui.formats.lines import record_on
from tracetui.formats.scalars import between, moment, version
from tracetui.model import PREVIEW, Error, FirstError, Header, Operation, RunBody, Span, Status, StatusSource, Usage
from tracetui.sources.base import File, LinkLost

AGENT: Final = "copilot"
MOST: Final = 3000
"""Numbers in an `At`: so many events tell of one row; what comes beyond stands for itself."""
TURN: Final = Operation.TURN
INVOKE_AGENT: Final = Operation.INVOKE_AGENT
_FEW: Final = 256
"""Events among which the list stage looks for the prompt and the model."""
_TOKENS_ONLY: Final = "(only its tokens were recorded)"
_EVENTS: Final = "events.jsonl"
_WORKSPACE: Final = "workspace.yaml"
_MOST_BYTES: Final = 8192
_MOST_LINES: Final = 64


class Row(Struct, gc=False):
    """A row about which later events may say more."""

    id: str
    name: str
    operation: Operation
    parent_id: str | None
    step: int | None
    started_at: float | None
    places: list[int]
    preview: str = ""
    note: str = ""
    is_step: bool = False
    status: Status = UNKNOWN
    status_source: StatusSource | None = None
    status_word: str | None = None
    duration_ms: float | None = None
    usage: Usage | None = None
    error: Error | None = None
    model: str | None = None

    def span(self) -> Span:
        """The row as it is now."""
        return Span(
            id=self.id,
            name=self.name,
            operation=self.operation,
            parent_id=self.parent_id,
            step=self.step,
            is_step=self.is_step,
            status=self.status,
            status_source=self.status_source,
            status_word=self.status_word,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
            usage=self.usage,
            error=self.error,
            model=self.model,
            preview=self.preview,
            note=self.note,
            at=At(tuple(self.places)),
        )

    def fail(self, error: Error) -> None:
        """The trace says that it failed."""
        self.status, self.status_source, self.error = ERROR, EXPLICIT, error


class Call(Struct):
    """A call that the model asked for; it has a row once it began."""

    name: str
    arguments: Raw | None = None
    above: str | None = None
    """Id of the response that asked for it."""
    step: int | None = None
    row: Row | None = None
    done: bool = False


class Talk:
    """One conversation, as far as it got; that of the session itself has no agent."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.agent: Row | None = None
        """The sub-agent whose it is."""
        self.model: str | None = None
        """The model that is used now."""
        self.turn: Row | None = None
        self.implicit = False
        """The turn has no event of its own."""
        self.told: Row | None = None
        """The latest response."""
        self.call: str | None = None
        """Id of the call of the model that it came from."""
        self.spoke = self.recorded = False
        """Its message is there, not only what was thought or used; the record of what it used is there."""
        self.failure: Error | None = None
        """An error after which the model said nothing."""
        self.failed: Row | None = None
        """The row of that error."""
        self.stopped: str | None = None
        """Why it was aborted, if the model said nothing since."""
        self.waiting: dict[str, Call] = {}
        """Calls without a result by id."""

    def went_on(self) -> None:
        """What failed or was stopped before does not decide any more how the conversation ended."""
        self.failure = self.failed = self.stopped = None

    def end_turn(self) -> None:
        """No turn is open now."""
        self.turn = self.told = None
        self.implicit = False

    def is_of(self, call: str | None, *, otherwise: bool) -> bool:
        """Whether an event is of the latest response: by the ids of their calls, else as `otherwise` says."""
        if self.told is None:
            return False
        return self.call == call if call is not None and self.call is not None else otherwise


class Mark(Struct, gc=False):
    """An event that is taken: its line, the offset, size and checksum of that, its time, and its conversation."""

    event: AnyEvent
    line: Line
    place: tuple[int, int, int]
    time: float | None
    talk: Talk


class Session(Rows):
    """What is known of one session; see `tracetui.formats.jsonl.Session`. It can be resumed at any time."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.start: StartData | None = None
        self.head = b""
        """The line of the first event,"""
        self.extent: tuple[int, int] | None = None
        """and where it is."""
        self.end: ShutdownData | None = None
        """The last shutdown, if nothing went on after it."""
        self.first: float | None = None
        """The first time that is told."""
        self.model: str | None = None
        """The first model that is told."""
        self.prompt: str | None = None
        self.system: str | None = None
        self.last_user: str | None = None
        self.last_assistant: str | None = None
        self.turns = 0
        self.main = Talk()
        self.talks: dict[str, Talk] = {}
        """Those of sub-agents, by their keys."""
        self.open: dict[str, Talk] = {}
        """Those of sub-agents of which something was heard since the program was started."""
        self.agents: dict[str, str] = {}
        """Keys of sub-agents by the call that began them."""
        self.calls: dict[str, Call] = {}
        self.pairs: dict[str, Row] = {}
        """What has begun and says that it ends in an event of its own: hooks, permissions, compactions."""
        self.counted: set[str] = set()
        """Records of usage that were counted."""
        self.ledger = Ledger()
        self.sure = self._went_on = True

    def take(self, event: Any, line: Line) -> None:
        self.records += 1
        time = moment(event.timestamp)
        if self.first is None and not self.skipped:
            self.first = time
        mark = Mark(event, line, (line.offset, len(line.data), crc32(line.data)), time, self.main)
        agent, call = event.agent_id or None, event.call_id
        if agent is not None or call is not None:
            self._find_talk(mark, agent, call)
        if (self.end is not None or self.skipped) and GOES_ON.fullmatch(kind_of(event)):
            self.end, self._went_on = None, True
        event.take(self, mark)

    # ---- conversations

    def _find_talk(self, mark: Mark, agent: str | None, call: str | None) -> None:
        """Find the conversation of the sub-agent that an event belongs to; begin it if it is new."""
        key = agent if agent is not None else self.agents.get(call or "", call or "")
        if agent == "main":
            return
        talk = self.talks.get(key)
        if talk is None:
            talk = self.talks[key] = Talk(key)
            talk.agent = self.new(mark, "sub-agent", INVOKE_AGENT, "a")
            talk.agent.status, talk.agent.status_source = RUNNING, DERIVED
            talk.agent.places = [*mark.place] if isinstance(mark.event, OfAgent) else []
            self.put_below(talk.agent, call, talk)
        mark.talk = self.open[key] = talk

    def put_below(self, agent: Row, call: str | None, talk: Talk) -> None:
        """Put a sub-agent below the call that began it."""
        if call is None:
            return
        self.agents[call] = talk.key
        known = self.calls.get(call)
        if known is not None and known.row is not None:
            agent.parent_id, agent.step = known.row.id, known.row.step

    def _adopt(self, key: str, call: Row) -> None:
        """A call begins of which the sub-agent may be known already."""
        talk = self.talks.get(self.agents.get(key, ""))
        if talk is not None and talk.agent is not None and talk.agent.parent_id != call.id:
            talk.agent.parent_id, talk.agent.step = call.id, call.step
            self.emit(talk.agent)

    def use_model(self, talk: Talk, model: str | None) -> None:
        """Take note of the model that a conversation uses; ``auto`` is none."""
        if model and model != "auto":
            talk.model = model
            if self.model is None and talk is self.main and not self.skipped:
                self.model = model

    def asked(self, said: str) -> None:
        """The user wrote this."""
        self.last_user, self.sure = said, True
        if self.prompt is None and not self.skipped:
            self.prompt = said.strip()[:PREVIEW] or None

    def failed(self, talk: Talk, row: Row, error: Error) -> None:
        """The session, or a sub-agent, failed for as long as the model says nothing."""
        row.fail(error)
        row.preview = error.message[:PREVIEW]
        talk.failure, talk.failed = error, row
        self.sure = self.sure or talk is self.main

    # ---- rows

    def new(self, mark: Mark, name: str, operation: Operation = OTHER, suffix: str = "") -> Row:
        """A row that begins with this event, within the current turn; `suffix` tells several of one event."""
        talk = mark.talk
        above = talk.turn or talk.agent
        parent, step = (None, None) if above is None else (above.id, above.step)
        row = Row(f"l{mark.line.number}{suffix}", name[:PREVIEW], operation, parent, step, mark.time, [*mark.place])
        self.emit(row)
        return row

    def row(self, mark: Mark, operation: Operation = META) -> Row:
        """The row of an event that stands for itself."""
        kind = kind_of(mark.event)
        row = self.new(mark, kind, operation if kind in KINDS else UNKNOWN_KIND)
        row.preview = mark.event.preview()
        return row

    def also(self, row: Row, mark: Mark) -> None:
        """This event tells of that row too; it has a row of its own where too many do."""
        if len(row.places) >= MOST:
            self.row(mark)
        else:
            row.places += mark.place
        self.emit(row)

    def over(self, row: Row, mark: Mark) -> None:
        """The row ends with this event."""
        self.also(row, mark)
        row.duration_ms = between(row.started_at, mark.time)

    # ---- turns

    def open_turn(self, mark: Mark, *, implicit: bool = False) -> None:
        """Begin a turn. One that is open still has no end: nothing more will be heard of it."""
        talk = mark.talk
        self.leave(talk)
        turn = self.new(mark, "turn", TURN, "t")
        turn.step = None
        if talk is self.main:
            self.turns += 1
            turn.step, turn.is_step = self.turns, True
        if implicit:
            turn.places = []
        else:
            turn.status, turn.status_source = RUNNING, DERIVED
        talk.turn, talk.implicit = turn, implicit

    def settle(self, talk: Talk, status: Status, source: StatusSource | None) -> None:
        """Calls of this conversation without a result are not running any more."""
        for call in talk.waiting.values():
            if call.row is not None and call.row.status is RUNNING:
                call.row.status, call.row.status_source = status, source
                self.emit(call.row)
        talk.waiting.clear()

    def leave(self, talk: Talk) -> None:
        """Nothing more will be heard of what is open in this conversation, but for the sub-agent itself."""
        self.settle(talk, UNKNOWN, None)
        if talk.turn is not None:
            self._lose(talk.turn)
        talk.end_turn()

    def leave_all(self) -> None:
        """The same of everything: the program that wrote it has ended."""
        for talk in (self.main, *self.open.values()):
            self.leave(talk)
            if talk.agent is not None:
                self._lose(talk.agent)
        self.open.clear()
        for row in self.pairs.values():
            row.status, row.status_source = UNKNOWN, None
            self.emit(row)
        self.pairs.clear()

    def _lose(self, row: Row) -> None:
        if row.status is RUNNING:
            row.status, row.status_source = UNKNOWN, None
            self.emit(row)

    # ---- responses

    def respond(
        self, mark: Mark, call: str | None, text: str, *, joins: bool, spoke: bool, recorded: bool = False
    ) -> Row:
        """The response that this event is part of: the latest one where it `joins` that, else another.

        What the model says outside of a turn begins one; what was `recorded` of it does not.
        """
        talk, row = mark.talk, mark.talk.told
        if row is None or not joins:
            if talk.turn is None and talk.agent is None and not recorded:
                self.open_turn(mark, implicit=True)
            row = self.new(mark, talk.model or "assistant", CHAT)
            row.model, row.preview = talk.model, text[:PREVIEW] if spoke or text else _TOKENS_ONLY
            row.status, row.status_source = OK, DERIVED
            talk.told, talk.call, talk.spoke, talk.recorded = row, call, spoke, False
            return row
        self.also(row, mark)
        if spoke and not talk.spoke:
            row.preview = text[:PREVIEW] or ("" if row.preview == _TOKENS_ONLY else row.preview)
        if talk.model is not None and row.model is None:
            row.name, row.model = talk.model[:PREVIEW], talk.model
        talk.call, talk.spoke = talk.call or call, talk.spoke or spoke
        return row

    def is_counted(self, told: Spent) -> bool:
        """Whether this record was there before."""
        number = told.number
        if number is None or number in self.counted:
            return number is not None
        self.counted.add(number)
        return False

    # ---- calls

    def ask(self, key: str | None, name: str, arguments: Raw, response: Row) -> None:
        """A call that a response asks for; its row comes when it begins, or came already."""
        if not key:
            return
        before = self.calls.get(key)
        if before is None or before.row is None or before.above is not None:
            self.calls[key] = Call(name, arguments, response.id, response.step)
            return
        before.name, before.above, before.step = name, response.id, response.step
        before.row.parent_id, before.row.step = response.id, response.step
        self.emit(before.row)

    def begin_call(self, mark: Mark, key: str | None, name: str, arguments: Raw) -> None:
        """A call begins: of the model, or of the user."""
        call = None if key is None else self.calls.get(key)
        if call is not None and call.row is not None:
            if not call.done:  # the user's: asked for, then begun
                self.also(call.row, mark)
                return
            call = None
        call = call or Call(name)
        row = self._call_row(mark, name, call, call_preview(arguments))
        row.status, row.status_source = RUNNING, DERIVED
        if key is None:
            self.problem(mark.line, f"a call of {name[:PREVIEW]} has no id: its result cannot be told")
            row.status, row.status_source = UNKNOWN, None
            return
        self.calls[key] = mark.talk.waiting[key] = call
        self._adopt(key, row)

    def end_call(self, mark: Mark, key: str, call: Call) -> Row:
        """The row of a call that has its result."""
        if call.row is None:  # that it began was not told
            row = self._call_row(mark, call.name, call, "")
            row.started_at = None
            self._adopt(key, row)
        else:
            row = call.row
            self.over(row, mark)
        call.done = True
        mark.talk.waiting.pop(key, None)
        return row

    def _call_row(self, mark: Mark, name: str, call: Call, preview: str) -> Row:
        """The row of a call, below the response that asked for it."""
        row = call.row = self.new(mark, name, EXECUTE_TOOL)
        row.preview = preview or ("" if call.arguments is None else call_preview(call.arguments))
        call.arguments = None
        if call.above is not None:
            row.parent_id, row.step = call.above, call.step
        return row

    # ---- the list stage

    @property
    def settled(self) -> bool:
        """No later event changes what the beginning says."""
        known = self.prompt is not None and self.model is not None
        return self.start is not None and (known or self.records >= _FEW)

    @property
    def stands(self) -> bool:
        """The events taken since `skip` say whether the session was shut down, and how it stood then."""
        return self.sure or (self._went_on and self.end is None)

    def skip(self) -> None:
        super().skip()
        self.sure = self._went_on = False

    # ---- the session as a whole

    def header(self) -> Header:
        """The header as far as it is known."""
        file, start = self.file, self.start or StartData()
        context, space = start.context if isinstance(start.context, Context) else Context(), workspace(file)
        ident = start.session_id or space.get("id") or _stem(file)
        place = context.cwd or space.get("cwd")
        branch = context.branch or space.get("branch")
        status, name, error = self._outcome()
        began = moment(start.start_time)
        return Header(
            id=ident,
            name=folder_of(place) or ident,
            agent=AGENT,
            model=self.model,
            status=status,
            status_word=name,
            status_source=None if status is None else EXPLICIT,
            ended=status is not None,
            started_at=self.first if began is None else began,
            usage=None if self.skipped else self.ledger.usage,
            parent=start.detached_from_spawning_parent_session_id,
            error=error,
            prompt=self.prompt or "",
            label=(space.get("name") or "")[:PREVIEW] or None if space.get("user_named") == "true" else None,
            tags=(branch[:PREVIEW],) if branch else (),
            source=(place or "")[:PREVIEW] or None,
            writer=version(start.copilot_version),
            size=file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def _outcome(self) -> tuple[Status | None, str | None, FirstError | None]:
        """(status, its word, the cause): none of it while there is no shutdown, or the session went on after it.

        A session that is shut down as usual failed if the model said nothing after an error, and was cancelled if it
        was stopped and said nothing since.
        """
        if self.end is None:
            return None, None, None
        name = (self.end.shutdown_type or "shutdown")[:PREVIEW]
        failure, row = self.main.failure, self.main.failed
        if failure is not None:
            if row is None or self.skipped:
                return ERROR, name, FirstError(failure.message, failure.type)
            return ERROR, name, FirstError(failure.message, failure.type, row.id, row.name, row.operation)
        return (OK, name, None) if self.main.stopped is None else (CANCELLED, self.main.stopped, None)

    def run_body(self) -> RunBody:
        """All that the session says about itself in its first event, what it used, and what its workspace says."""
        attributes: dict[str, Any] = event_of(record_on(self.head) or {}).fields() if self.head else {}
        if space := workspace(self.file):
            attributes = attributes | {_WORKSPACE: space}
        return RunBody(
            last_user=self.last_user,
            last_assistant=self.last_assistant,
            totals=self.ledger.totals(),
            system_prompt=self.system,
            attributes=attributes,
            extent=self.extent,
        )


def workspace(file: File) -> dict[str, str]:
    """What ``workspace.yaml`` beside a session says: its plain lines, read once while the file is open."""
    if file.name != _EVENTS:
        return {}
    known = file.memo.get(_WORKSPACE)
    if not isinstance(known, dict):
        known = file.memo[_WORKSPACE] = _read(file)
    return known


def _read(file: File) -> dict[str, str]:
    try:
        with file.other(_WORKSPACE) as other:
            data = other.read(0, _MOST_BYTES)
    except LinkLost:
        raise
    except OSError:  # there is none, or it is no file
        return {}
    found: dict[str, str] = {}
    last = ""
    for line in data.decode("utf-8", "replace").split("\n")[:_MOST_LINES]:
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t"):  # a text of several lines: its first one
            if last and not found[last]:
                found[last] = line.strip()
        elif colon and name.strip():
            last = name.strip()
            found[last] = _plain(value.strip())
    return {name: value for name, value in found.items() if value}


def _plain(value: str) -> str:
    """A value of one line, without its quotes."""
    if value[:1] in ("|", ">") or value == "null":
        return ""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(orjson.loads(value))
        except orjson.JSONDecodeError:
            return value[1:-1]
    return value


def _stem(file: File) -> str:
    """What a file is called that does not say whose it is: the folder of ``events.jsonl``, else its own name."""
    if file.name == _EVENTS:
        return folder_of(file.path[: -len(_EVENTS)]) or file.name
    return file.name.removesuffix(".jsonl") or file.name

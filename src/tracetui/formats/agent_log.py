"""Base of agent logs: rows of messages and responses, with tool calls below their response.

A format's session derives from `Conversation` and calls its methods from the one function that interprets a kind of
record. Rows that may still change (a call that waits for its answer, a group of notes) are mutable, and become a span
when they are collected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Protocol, Self

import msgspec

from tracetui.formats.bodies import PACKED_SIZE, SpanRef, pack_block, pack_range
from tracetui.formats.jsonl import Line
from tracetui.formats.scalars import task_key
from tracetui.formats.schema import Unknown, unknown_fields
from tracetui.model import PREVIEW, Error, Operation, Problem, RunBody, Span, Status, StatusSource, Usage
from tracetui.model.claims import short_claim
from tracetui.sources.base import File

CHAT: Final = Operation.CHAT
EXECUTE_TOOL: Final = Operation.EXECUTE_TOOL
HOOK: Final = Operation.HOOK
INVOKE_AGENT: Final = Operation.INVOKE_AGENT
MESSAGE: Final = Operation.MESSAGE
META: Final = Operation.META
UNKNOWN_KIND: Final = Operation.UNKNOWN
RUNNING: Final = Status.RUNNING
OK: Final = Status.OK
ERROR: Final = Status.ERROR
CANCELLED: Final = Status.CANCELLED
UNKNOWN: Final = Status.UNKNOWN
EXPLICIT: Final = StatusSource.EXPLICIT
DERIVED: Final = StatusSource.DERIVED
EXIT: Final = StatusSource.EXIT
# Constants, because looking up a member of an enum costs more than all other arguments of a span in Python 3.11.

DONE: Final[dict[str, Any]] = {"status": OK, "status_source": DERIVED}
"""Fields of a span without a sign of failure."""
MOST_NOTES: Final = 64
"""Notes in one row."""
MOST_RECORDS: Final = 1000
"""Records in one row of a log with several records in a row."""
_LONGEST: Final = MOST_RECORDS * PACKED_SIZE

Outcome = tuple[Status, StatusSource | None, Error | None]
"""Status of a call or response, the source of the status, and the error."""


def row(ident: str, name: str, when: float | None, line: Line, **facts: Any) -> Span:
    """The span of the record on `line`, which began at `when` (seconds since the epoch); `facts` are further fields."""
    return Span(id=ident, name=name, started_at=when, at=span_ref(line.packed(), facts.get("operation")), **facts)


def span_ref(lines: bytes, operation: Operation | None, part: str = "") -> bytes | SpanRef:
    """`Span.at` of a span of that operation; `lines` and `part` as in `SpanRef`."""
    return SpanRef(lines, part) if part or operation is UNKNOWN_KIND else lines


def usage_without_cache(
    plain: int | None,
    output: int | None,
    read: int | None,
    written: int | None,
    reasoning: int | None = None,
    cost: float | None = None,
    written_1h: int | None = None,
    *,
    at_least: bool = False,
) -> Usage | None:
    """The usage of a response with `plain` input tokens besides those `read` from and `written` to the cache.

    `written_1h` is the part of `written` that stays cached for an hour; `at_least` as `Usage.output_at_least`. None
    without any number; cached input is part of the input in `Usage`.
    """
    if plain is not None or read is not None or written is not None:
        plain = (plain or 0) + (read or 0) + (written or 0)
    elif output is None and reasoning is None and cost is None:
        return None
    return Usage(plain, output, None, read, written, reasoning, cost, written_1h, at_least and output is not None)


def claim_of_call(response: str | int | None, key: str | None) -> str | int | None:
    """The claim of a tool call: ids such as ``call_0`` or ``functions.Bash:3`` are unique in their response only."""
    return None if response is None or key is None else short_claim(f"{response}/{key}")


class SyntheticRef(msgspec.Struct, frozen=True, gc=False):
    """Reference of a span without a record, such as an abandoned branch or a sub-agent: its facts."""

    facts: tuple[tuple[str, str | None], ...]
    part: str = ""
    """Path of the file that it is about, relative to the folder of the main one."""


class Row(Protocol):
    """The part of a conversation row that other rows use."""

    @property
    def id(self) -> str: ...

    @property
    def step(self) -> int | None: ...


class Pending(Protocol):
    """A row that may still change."""

    def span(self) -> Span:
        """The row as it is now."""
        ...


class SpanRow(msgspec.Struct, gc=False):
    """A row that later records may change: the fields of its span. One of the operation `STEPS` is a step if it has a
    number.
    """

    STEPS: ClassVar[Operation] = Operation.TURN
    id: str
    name: str
    operation: Operation
    parent_id: str | None
    step: int | None
    started_at: float | None
    at: Any
    """Its records: as in `SpanRef.lines`, or as a format of databases has them in `Span.at`."""
    preview: str = ""
    note: str = ""
    status: Status = UNKNOWN
    source: StatusSource | None = None
    status_word: str | None = None
    error: Error | None = None
    duration_ms: float | None = None
    usage: Usage | None = None
    model: str | None = None
    part: str = ""
    """Path of their file, as in `SpanRef`."""
    claim: str | int | None = None
    """As in `Span.claim`."""
    tier: str | None = None

    @classmethod
    def from_span(cls, span: Span) -> Self:
        """The row that a span was made of."""
        ref = SpanRef.of(span.at)
        return cls(
            span.id,
            span.name,
            span.operation,
            span.parent_id,
            span.step,
            span.started_at,
            ref.lines,
            span.preview,
            span.note,
            span.status,
            span.status_source,
            span.status_word,
            span.error,
            span.duration_ms,
            span.usage,
            span.model,
            ref.part,
            span.claim,
            span.tier,
        )

    def add_line(self, line: Line) -> None:
        """Add a line of the same row: of a response, with the result of a call, or with a further note."""
        self.at += pack_range(line.offset, len(line.data), line.check)

    def settle(self, status: Status = UNKNOWN, source: StatusSource | None = None) -> bool:
        """Stop timing it if it still runs: nothing will end it. Returns whether it ran."""
        runs = self.status is RUNNING
        if runs:
            self.status, self.source = status, source
        return runs

    def span(self) -> Span:
        """The row as it is now."""
        return Span(
            self.id,
            self.name,
            self.operation,
            self.parent_id,
            self.step,
            self.step is not None and self.operation is self.STEPS,
            self.status,
            self.status_word,
            self.source,
            self.started_at,
            self.duration_ms,
            self.usage,
            self.error,
            model=self.model,
            preview=self.preview,
            note=self.note,
            claim=self.claim,
            at=SpanRef(self.at, self.part) if self.part or self.operation is UNKNOWN_KIND else self.at,
            tier=self.tier,
        )


class OpenRow(SpanRow, gc=False):
    """A response or a tool call that runs until later lines end it. Responses are steps."""

    STEPS: ClassVar[Operation] = CHAT
    status: Status = RUNNING
    source: StatusSource | None = DERIVED


class Call(OpenRow, gc=False):
    """A tool call and its results so far."""

    key: str | None = None
    """The id that its answer names."""

    @property
    def has_result(self) -> bool:
        """Whether it has a line besides its own."""
        return len(self.at) >= 2 * PACKED_SIZE


def unmatched(key: str | None) -> str:
    """The problem of a tool result whose call, with the id `key`, isn't open."""
    return "result has no call id" if key is None else f"no open call {key[:PREVIEW]!r} for this result"


class Rows:
    """The rows of an agent's log. `collect` returns those that changed."""

    file: File
    ended = False
    skipped = False
    """Records were skipped (list stage): ids that depend on them are unknown."""

    def __init__(self, file: File, *, part: str = "") -> None:
        """`part` as in `SpanRef`."""
        self.file, self.part = file, part
        self.records = 0
        self.unknown: Unknown = {}
        self.problems: list[Problem] = []
        self._changed: dict[str, Span | Pending] = {}

    @property
    def begun(self) -> bool:
        """As in `tracetui.formats.jsonl.Session`."""
        return self.records > 0

    def skip(self, left_out: bytes) -> None:
        """Note that records were skipped here (list stage)."""
        self.skipped = True

    def problem(self, line: Line, reason: str) -> None:
        """Report one line."""
        self.problems.append(Problem(self.file.path, f"line {line.number}", reason))

    def collect(self) -> list[Span]:
        """Return the spans that are new or changed since the last call, in order of arrival."""
        spans = []
        for row in self._changed.values():
            if isinstance(row, Span):
                spans.append(row)
            else:
                span = row.span()
                self.release(row, span)
                spans.append(span)
        self._changed.clear()
        return spans

    def release(self, row: Any, span: Span) -> None:
        """Replace references to a row with its span, which was just collected, if later records rarely change it: the
        run has the span anyway. `SpanRow.of` makes the row again.
        """

    def emit(self, row: Any) -> None:
        """Add a new or changed row, a `Span` or `Pending`, to the next `collect`."""
        self._changed[row.id] = row

    def is_pending(self, ident: str) -> bool:
        """Whether a row is in the next `collect`."""
        return ident in self._changed

    def add_keyless(self, call: SpanRow, line: Line) -> None:
        """Take a call that no answer can name."""
        self.problem(line, f"call of {call.name[:PREVIEW]} has no id: its result can't be matched")
        call.status, call.source = UNKNOWN, None
        self._changed[call.id] = call

    def stop(self, rows: Iterable[SpanRow], status: Status = UNKNOWN, source: StatusSource | None = None) -> None:
        """Stop timing rows that still run: the log went on, and has no end of them."""
        for row in rows:
            if row.settle(status, source):
                self._changed[row.id] = row


class PackedRows(Rows):
    """Rows of a log in which several records make a row; `line` is that of the current record."""

    line: Line
    packed: bytes
    """Its packed byte range."""

    def add_record(self) -> Any:
        """Add a row for the record."""
        raise NotImplementedError

    def extend(self, row: SpanRow) -> bool:
        """Add the record to a row; if that is full, add a new row and return False."""
        if len(row.at) >= _LONGEST:
            self.add_record()
            return False
        row.at += self.packed
        self._changed[row.id] = row
        return True


class Conversation(Rows):
    """The rows of a log with one conversation. `top` is its latest row, the parent of rows outside the conversation."""

    def __init__(self, file: File, *, root: str | None = None, part: str = "") -> None:
        """`root`: id of the sub-agent's span, for the conversation of a sub-agent; `part` as in `SpanRef`."""
        super().__init__(file, part=part)
        self.root = root
        self.steps = 0
        """Responses of the conversation."""
        self.top: Row | None = None
        self.notes: SpanRow | None = None
        """The row of notes that the next note joins."""
        self.calls: dict[str, Call | Span] = {}
        """Every call by the id that its answer names; a span once it was collected with its answer."""
        self.waiting: list[Call] = []
        """Calls of the latest response that have no answer yet."""

    def below_top(self) -> dict[str, Any]:
        """Fields of a span whose parent is the latest row of the conversation."""
        top = self.top
        return {"parent_id": self.root} if top is None else {"parent_id": top.id, "step": top.step}

    def put(self, span: Span) -> None:
        """Give out a row of the conversation itself."""
        self.top, self.notes = span, None
        self._changed[span.id] = span

    def call(self, key: str | None, call: Call, line: Line) -> None:
        """Give out a call; `key` is the id that its answer names."""
        if key is None:
            self.add_keyless(call, line)
            return
        call.key = key
        self._changed[call.id] = self.calls[key] = call
        self.waiting.append(call)

    def open_call(self, key: str | None) -> Call | None:
        """The call of that key, to be changed."""
        if key is None:
            return None
        call = self.calls.get(key)
        if isinstance(call, Span):
            call = self.calls[key] = Call.from_span(call)
            call.key = key
        return call

    def release(self, row: Any, span: Span) -> None:
        if type(row) is Call and row.key is not None and row.status is not RUNNING and self.calls.get(row.key) is row:
            self.calls[row.key] = span

    def call_of(self, key: str | None, line: Line) -> Call | None:
        """The call that the tool result on `line` names; None, and a problem, if there is none."""
        call = self.open_call(key)
        if call is None:
            self.problem(line, unmatched(key))
        return call

    def settle(self) -> None:
        """Stop timing unanswered calls because the conversation continued."""
        if self.waiting:
            self.stop(self.waiting)
            self.waiting = []

    def note(self, ident: str, label: str, when: float | None, line: Line) -> None:
        """Take a note of the program."""
        notes = self.notes
        if notes is None or len(notes.at) >= MOST_NOTES * PACKED_SIZE:
            top = self.top
            parent, step = (self.root, None) if top is None else (top.id, top.step)
            notes = self.notes = SpanRow(ident, "meta", META, parent, step, when, line.packed(), label)
            notes.part = self.part
        else:
            notes.add_line(line)
            if label not in notes.preview:
                notes.preview = f"{notes.preview}, {label}"[:PREVIEW]
        self._changed[notes.id] = notes


class Dialog(Conversation):
    """A conversation that its first prompt, its last prompt and its last answer describe."""

    has_status = True

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.prompt: str | None = None
        self.started: float | None = None
        """When it began: seconds since the epoch."""
        self._user: str | None = None
        self._answer: str | None = None

    @property
    def settled(self) -> bool:
        """Whether the beginning describes it."""
        return self.prompt is not None

    def user_row(self, prompt: str, when: float | None, line: Line) -> None:
        """Give out a prompt of the user."""
        self._user = prompt or self._user
        if self.prompt is None and not self.skipped:
            self.prompt = prompt
        self.put(row(f"line {line.number}", "user", when, line, operation=MESSAGE, preview=prompt[:PREVIEW]))

    def reply_row(
        self, reply: str, when: float | None, line: Line, *, model: str | None = None, thought: str = "", **facts: Any
    ) -> str:
        """Give out a response, which is a step; its preview is the text, else the thought. Returns its id."""
        self.steps += 1
        self._answer = reply or self._answer
        ident, preview = f"line {line.number}", (reply or thought)[:PREVIEW]
        facts |= {"operation": CHAT, "step": self.steps, "is_step": True, "model": model, "preview": preview}
        self.put(row(ident, (model or "assistant")[:PREVIEW], when, line, **facts))
        return ident

    def call_of_reply(
        self, reply: str, number: int, name: str, when: float | None, line: Line, preview: str,
        operation: Operation = EXECUTE_TOOL,
    ) -> Call:  # fmt: skip
        """The call of that number in the latest response, whose id is `reply`."""
        at = pack_block(number) + line.packed()
        return Call(f"{reply}.{number}", name[:PREVIEW], operation, reply, self.steps, when, at, preview[:PREVIEW])

    def described(self, agent: str) -> dict[str, Any]:
        """Fields of the header of a run of that agent."""
        return {
            "agent": agent[:PREVIEW],
            "started_at": self.started,
            "prompt": (self.prompt or "")[:PREVIEW],
            "repeats": task_key(agent, self.prompt or ""),
            "size": self.file.stat.size,
            "fields": unknown_fields(self.unknown),
        }

    def run_body(self) -> RunBody:
        """The last messages."""
        return RunBody(last_user=self._user, last_assistant=self._answer)

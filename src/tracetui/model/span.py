"""Spans and messages, in the terms of the OpenTelemetry GenAI conventions.

A span is a light header; the heavy part (input, output, messages) is its `Body`, which a format loads on demand from
`Span.at`. A run of 100,000 spans opens without decoding bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import msgspec

# ---- messages


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text of a message."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """The model's reasoning (`gen_ai` part type ``reasoning``)."""

    text: str


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A tool call requested by the model. `arguments` is decoded JSON if valid, else the text."""

    id: str | None
    name: str
    arguments: Any = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_call_response"):
    """The result of a tool call. `is_error` is None if not recorded."""

    id: str | None
    content: Any = None
    is_error: bool | None = None
    name: str | None = None


class Blob(msgspec.Struct, frozen=True, tag="blob"):
    """Content that is not text (image, file, unknown part): its kind and data."""

    kind: str
    data: Any = None


Part = Text | Reasoning | ToolCall | ToolResult | Blob


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation: `role` as recorded (system, user, assistant, tool, developer …)."""

    role: str
    parts: tuple[Part, ...] = ()
    id: str | None = None
    finish_reason: str | None = None
    name: str | None = None


def text_of(message: Message) -> str:
    """The plain text of a message: its text parts joined by newlines."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


# ---- spans

PREVIEW: Final = 120
"""Maximum characters of `Span.preview`, of a prompt, and of names derived from content."""
MESSAGE_LIMIT: Final = 1_500
"""Maximum characters of an error in a header (`excerpt`); the body has all of it."""
MESSAGE_HEAD: Final = 500
"""Of these, the characters from the beginning of a longer error."""
CUT: Final = "…"
"""Replaces the middle of a longer error."""
INHERITED: Final = "inherited"
"""A fact in `Span.note`: the run inherited this span from its original, without recording it."""
COPIED: Final = "copied"
"""A fact in `Span.note`: the run copied this span from its original, which counts it."""
COUNTS_HERE: Final = "counts here"
"""A fact in `Span.note` next to `COPIED`: no trace of the original contains it, so this run counts it."""
COUNTED_COPY: Final = f"{COPIED} · {COUNTS_HERE}"
"""Both facts."""


class Operation(StrEnum):
    """The kind of work of a span (`gen_ai.operation.name` if there is a standard value)."""

    CHAT = "chat"
    EXECUTE_TOOL = "execute_tool"
    INVOKE_AGENT = "invoke_agent"
    INVOKE_WORKFLOW = "invoke_workflow"
    RETRIEVAL = "retrieval"
    EMBEDDINGS = "embeddings"
    POLICY = "policy"
    HOOK = "hook"
    NODE = "node"
    """A node of a graph (not in the standard)."""
    ROUTE = "route"
    """A node that selects the next nodes of a graph (not in the standard)."""
    TURN = "turn"
    """A turn of a conversation that contains calls (not in the standard)."""
    MESSAGE = "message"
    """A message that entered the conversation from outside: a user's prompt, a system message (not in the standard)."""
    META = "meta"
    """A program's note about itself: no work, and never a cause (not in the standard)."""
    UNKNOWN = "unknown"
    """A record of an unknown kind: shown and counted (not in the standard)."""
    OTHER = "other"


class Status(StrEnum):
    """The state of a run or span. `status_word` has the recorded word."""

    RUNNING = "running"
    PAUSED = "paused"
    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class RunState(StrEnum):
    """What a run does now, by its status, its last event and its silence; the words of JSON and queries."""

    RUNNING = "running"
    QUIET = "quiet"
    STALLED = "stalled"
    WAITING = "waiting"
    """A session whose agent answered or asks, within a working day."""
    DONE = "done"
    """A session whose agent answered over a working day ago, or that the user closed."""
    INTERRUPTED = "interrupted"
    """A session that was stopped, or whose process ended before the agent answered."""
    PAUSED = "paused"
    ENDED = "ended"
    """A run with an end record or a final status."""
    UNKNOWN = "unknown"


RUNNING_STATES: Final = (RunState.RUNNING, RunState.QUIET, RunState.STALLED)
"""States of a run that may go on by itself."""


class StatusSource(StrEnum):
    """The origin of a status. A status is never guessed from text."""

    EXPLICIT = "explicit"
    """A recorded status, error or is_error field."""
    POLICY = "policy"
    """A recorded policy violation."""
    EXIT = "exit≠0"
    """A recorded exit code."""
    DERIVED = "derived"
    """Inferred from the end of the run and its last errors, without a field for it."""

    @property
    def label(self) -> str:
        """The source in words: ``recorded``, ``recorded limit``, ``exit code`` or ``inferred``."""
        return _SOURCE_LABELS[self]


_SOURCE_LABELS: Final = {
    StatusSource.EXPLICIT: "recorded",
    StatusSource.POLICY: "recorded limit",
    StatusSource.EXIT: "exit code",
    StatusSource.DERIVED: "inferred",
}


class Usage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Token counts and cost; None if not recorded.

    `input_tokens` includes cached input; `cache_read_tokens` is the cached part. `cost_usd` is in US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    cache_write_1h_tokens: int | None = None
    """The part of `cache_creation_tokens` that stays cached for an hour, which costs more than five minutes."""
    output_at_least: bool = False
    """The trace may have been written before the output was complete: `output_tokens` is a lower bound."""

    @property
    def all_tokens(self) -> int | None:
        """All tokens: the recorded total, else input plus output; None if not recorded."""
        if self.total_tokens is not None or (self.input_tokens is None and self.output_tokens is None):
            return self.total_tokens
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def __add__(self, other: Usage) -> Usage:
        """The sum. If only one has a total, `all_tokens` of the other is its total.

        In one expression per field, because large runs add up hundreds of thousands.
        """
        input_a, output_a, total_a, read_a, created_a, reasoning_a, cost_a, hour_a, least_a = _values(self)
        input_b, output_b, total_b, read_b, created_b, reasoning_b, cost_b, hour_b, least_b = _values(other)
        added = Usage(
            input_b if input_a is None else input_a if input_b is None else input_a + input_b,
            output_b if output_a is None else output_a if output_b is None else output_a + output_b,
            total_b if total_a is None else total_a if total_b is None else total_a + total_b,
            read_b if read_a is None else read_a if read_b is None else read_a + read_b,
            created_b if created_a is None else created_a if created_b is None else created_a + created_b,
            reasoning_b if reasoning_a is None else reasoning_a if reasoning_b is None else reasoning_a + reasoning_b,
            cost_b if cost_a is None else cost_a if cost_b is None else cost_a + cost_b,
            hour_b if hour_a is None else hour_a if hour_b is None else hour_a + hour_b,
            least_a or least_b,
        )
        if (total_a is None) is (total_b is None):
            return added
        return msgspec.structs.replace(added, total_tokens=(self.all_tokens or 0) + (other.all_tokens or 0))

    def or_else(self, other: Usage) -> Usage:
        """These counts, with missing ones from `other`."""
        at_least = other.output_at_least if self.output_tokens is None else self.output_at_least
        *ours, _ = _values(self)
        *others, _ = _values(other)
        counts: list[Any] = [b if a is None else a for a, b in zip(ours, others, strict=True)]
        return Usage(*counts, *[at_least])

    def largest(self, other: Usage) -> Usage:
        """The larger of each count, for two records of the same call."""
        *ours, at_least = _values(self)
        *others, other_at_least = _values(other)
        pairs = zip(ours, others, strict=True)
        counts: list[Any] = [b if a is None else a if b is None else max(a, b) for a, b in pairs]
        return Usage(*counts, *[at_least and other_at_least])

    def minus(self, other: Usage) -> Usage:
        """What these counts have beyond `other`: no count is negative, and one that is not positive is None."""
        *ours, _ = _values(self)
        *others, _ = _values(other)
        rest = [None if a is None else a - (b or 0) for a, b in zip(ours, others, strict=True)]
        counts: list[Any] = [None if count is None or count <= 0 else count for count in rest]
        return Usage(*counts)

    def __bool__(self) -> bool:
        return _values(self) != _UNKNOWN


_values: Final[Callable[[Usage], tuple[Any, ...]]] = msgspec.structs.astuple
_UNKNOWN: Final = _values(Usage())


class Error(msgspec.Struct, frozen=True, gc=False):
    """An error: the recorded message, and `type` as `error.type` of OpenTelemetry if recorded."""

    message: str
    type: str | None = None

    @property
    def text(self) -> str:
        """Type and message, without repeating the type."""
        return error_text(self.type, self.message)


def excerpt(text: str) -> str:
    """At most `MESSAGE_LIMIT` characters of an error: of a longer one its beginning, `CUT` and its end.

    Stacks of JavaScript and Rust begin with the error, tracebacks of Python and logs end with it. The end begins with
    a whole line if its lines aren't long.
    """
    if len(text) <= MESSAGE_LIMIT:
        return text
    end = text[MESSAGE_HEAD + len(CUT) - MESSAGE_LIMIT :]
    line = end.find("\n")
    return text[:MESSAGE_HEAD] + CUT + (end[line:] if 0 <= line < len(end) // 2 else end)


def error_text(kind: str | None, message: str) -> str:
    """``TimeoutError: timed out``: type and message of an error; a type that begins the message isn't repeated."""
    if not kind or message.startswith(kind):
        return message or kind or ""
    return f"{kind}: {message}" if message else kind


class Link(msgspec.Struct, frozen=True, gc=False):
    """A named link from a span to another span of the run (`span`), or to another run (`run`, a raw id)."""

    label: str
    span: str | None = None
    run: str | None = None


class Binding(msgspec.Struct, frozen=True):
    """A named, versioned input of a graph node, with its value at that time and the span that wrote it."""

    name: str
    version: int | None = None
    value: Any = None
    known: bool = True
    """False if the value isn't recorded."""
    writer: str | None = None
    """Id of the span that wrote it; None for a run input."""


class Check(msgspec.Struct, frozen=True, gc=False):
    """A stored value compared with recomputed ones: `matches` names the matching recipe, None if there is none."""

    name: str
    stored: str
    matches: str | None = None
    expected: tuple[tuple[str, str], ...] = ()
    """(recipe, recomputed value) for every recipe tried."""


class Body(msgspec.Struct, frozen=True):
    """Everything that a trace contains about one span.

    Every value of the source record reappears in `input`, `output`, `error`, the messages or `attributes`.
    """

    input: Any = None
    output: Any = None
    input_messages: tuple[Message, ...] = ()
    """The effective context of a model call, or the message itself."""
    output_messages: tuple[Message, ...] = ()
    attributes: dict[str, Any] = {}
    """All other fields, under their recorded names."""
    state: dict[str, Any] | None = None
    """Accumulated state of a graph after this span's superstep."""
    bindings: tuple[Binding, ...] = ()
    links: tuple[Link, ...] = ()
    checks: tuple[Check, ...] = ()
    raw: bytes = b""
    """The exact bytes of the source record (for databases: a JSON rendering of the row)."""
    traceback: str | None = None


class Span(msgspec.Struct, frozen=True, gc=False):
    """The header of one span. Times are UTC seconds since the epoch, durations milliseconds.

    Formats that create many spans with more than 15 fields pass the first four by position: with more keywords, Python
    3.11 builds a dict per call, which takes five times as long.
    """

    id: str
    name: str
    operation: Operation = Operation.OTHER
    parent_id: str | None = None
    step: int | None = None
    """The recorded number of the step that this span belongs to."""
    is_step: bool = False
    """Whether the trace counts this span as a step, turn or node execution."""
    status: Status = Status.UNKNOWN
    status_word: str | None = None
    status_source: StatusSource | None = None
    started_at: float | None = None
    duration_ms: float | None = None
    usage: Usage | None = None
    error: Error | None = None
    owner: str | None = None
    """Key of a separately listed run in the same file that owns the span; None: the run that contains it."""
    nested_graph: bool = False
    """Whether this is a graph node that is a graph itself (operation `INVOKE_WORKFLOW`)."""
    input_hash: str | None = None
    model: str | None = None
    """The model called, as recorded."""
    preview: str = ""
    """Text that distinguishes this call (argument, prompt, text): at most `PREVIEW` characters, not cleaned."""
    note: str = ""
    """Short facts shown next to the name, joined by `` · ``: ``cached``, ``→ account_support``, ``max_tokens``."""
    claim: str | int | None = None
    """Id of this response or call, equal in all copies of its record, or the key of that; see `model.claims`."""
    at: Any = None
    """Location of the body, opaque outside the format. For `Operation.UNKNOWN` it is ``(offset, size)`` or has a
    `size`, in bytes, for the ledger."""
    tier: str | None = None
    """How the provider served the call, if that changes its price: ``fast``, ``batch``, ``us``, joined by blanks."""

    @property
    def notes(self) -> list[str]:
        """The facts of `note`."""
        return self.note.split(" · ") if self.note else []

    @property
    def is_node(self) -> bool:
        """Whether it executes a node of a graph."""
        return self.nested_graph or self.operation is Operation.NODE or self.operation is Operation.ROUTE

    @property
    def taken_over(self) -> bool:
        """Whether it belongs to the run that this run continues."""
        return bool(self.note) and not {INHERITED, COPIED}.isdisjoint(self.notes)


# ---- status words of the formats

STATUS_BY_WORD: Final[dict[str, Status]] = {
    # running
    "running": Status.RUNNING,
    "active": Status.RUNNING,
    "in_progress": Status.RUNNING,
    "started": Status.RUNNING,
    "pending": Status.RUNNING,
    # waiting for input
    "paused": Status.PAUSED,
    "interrupted": Status.PAUSED,
    "waiting": Status.PAUSED,
    # ok
    "ok": Status.OK,
    "success": Status.OK,
    "succeeded": Status.OK,
    "completed": Status.OK,
    "complete": Status.OK,
    "passed": Status.OK,
    "done": Status.OK,
    "end_turn": Status.OK,
    "stop_sequence": Status.OK,
    "tool_use": Status.OK,
    "allow": Status.OK,
    "cached": Status.OK,
    "restored": Status.OK,
    # failed
    "error": Status.ERROR,
    "failed": Status.ERROR,
    "failure": Status.ERROR,
    "policy_violation": Status.ERROR,
    "timeout": Status.ERROR,
    "timed_out": Status.ERROR,
    "wall_timeout": Status.ERROR,
    "driver_error": Status.ERROR,
    "max_turns": Status.ERROR,
    "max_iterations": Status.ERROR,
    "max_tokens": Status.ERROR,
    "partial": Status.ERROR,
    "block": Status.ERROR,
    # stopped by a person, or never started
    "cancelled": Status.CANCELLED,
    "canceled": Status.CANCELLED,
    "stopped": Status.CANCELLED,
    "aborted": Status.CANCELLED,
    "skipped": Status.CANCELLED,
    # not recorded
    "unknown": Status.UNKNOWN,
    "incomplete": Status.UNKNOWN,
    "outcome_unknown": Status.UNKNOWN,
    "warn": Status.OK,
}


STATUS_WORDS: Final = tuple(dict.fromkeys((*(status.value for status in Status), *STATUS_BY_WORD)))
"""Every status and every recorded word for one."""


def plain_word(word: str) -> str:
    """Normalize a status word for the table: ``Max-Turns`` becomes ``max_turns``."""
    return word.strip().lower().replace(" ", "_").replace("-", "_")


def status_of(word: str) -> Status:
    """The status for a recorded word, in any case; `Status.UNKNOWN` for a word not in the table."""
    return STATUS_BY_WORD.get(plain_word(word), Status.UNKNOWN)

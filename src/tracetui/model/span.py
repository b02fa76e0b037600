"""Spans and messages, in the terms of the OpenTelemetry GenAI conventions.

A span is a light header; the heavy part (input, output, messages) is its `Body`, which a format loads on demand from
`Span.at`. A run of 100,000 spans opens without decoding bodies.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

# ---- messages


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text of a message."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """What the model thought before it answered (`gen_ai` part type ``reasoning``)."""

    text: str


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A call that the model asked for. `arguments` is decoded JSON where it was JSON, else the text itself."""

    id: str | None
    name: str
    arguments: Any = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_call_response"):
    """What a tool answered. `is_error` is None where the trace does not say."""

    id: str | None
    content: Any = None
    is_error: bool | None = None
    name: str | None = None


class Blob(msgspec.Struct, frozen=True, tag="blob"):
    """Content that is not text (image, file, unknown part): shown by kind, kept as `data`."""

    kind: str
    data: Any = None


Part = Text | Reasoning | ToolCall | ToolResult | Blob


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation: `role` is the trace's own word (system, user, assistant, tool, developer …)."""

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
"""Characters of `Span.preview`, of a prompt, and of names that a trace makes up."""
MESSAGE_LIMIT: Final = 500
"""Characters of an error in a header; the body holds all of it."""
INHERITED: Final = "inherited"
"""A fact of `Span.note`: the run has this from its original, and keeps no history of its own."""
COPIED: Final = "copied"
"""A fact of `Span.note`: the run copied this from its original, which paid for it."""
COUNTS_HERE: Final = "counts here"
"""A fact of `Span.note` beside `COPIED`: no trace of the original holds it any more, so this run counts it."""
COUNTED_COPY: Final = f"{COPIED} · {COUNTS_HERE}"
"""Both facts."""


class Operation(StrEnum):
    """What kind of work a span is (`gen_ai.operation.name` where there is a standard value)."""

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
    """A node that decides where a graph goes on (not in the standard)."""
    TURN = "turn"
    """A turn of a conversation that contains calls (not in the standard)."""
    MESSAGE = "message"
    """A message that entered the conversation from outside: a user's prompt, a system message (not in the standard)."""
    META = "meta"
    """What a program notes about itself on the way: no work, and no cause of anything (not in the standard)."""
    UNKNOWN = "unknown"
    """A record of a kind that is not known yet: kept, shown and counted (not in the standard)."""
    OTHER = "other"


class Status(StrEnum):
    """How a run or span stands. The trace's own word is kept beside it as `status_word`."""

    RUNNING = "running"
    PAUSED = "paused"
    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class StatusSource(StrEnum):
    """Where a status comes from: nothing is guessed from text."""

    EXPLICIT = "explicit"
    """A status, error or is_error field says so."""
    POLICY = "policy"
    """A recorded policy violation says so."""
    EXIT = "exit≠0"
    """A recorded exit code says so."""
    DERIVED = "derived"
    """No field says so: from the end of the run and the errors it ended with, or their absence."""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Token counts and cost; None where the trace does not say.

    `input_tokens` includes cached input; `cache_read_tokens` says how much of it was. `cost_usd` is in US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def all_tokens(self) -> int | None:
        """All tokens: as stated, else input and output; None where the trace does not say."""
        if self.total_tokens is not None or (self.input_tokens is None and self.output_tokens is None):
            return self.total_tokens
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def __add__(self, other: Usage) -> Usage:
        """The sum; where only one states its total, what the other has counts as its own."""
        added = Usage(
            _plus(self.input_tokens, other.input_tokens),
            _plus(self.output_tokens, other.output_tokens),
            _plus(self.total_tokens, other.total_tokens),
            _plus(self.cache_read_tokens, other.cache_read_tokens),
            _plus(self.cache_creation_tokens, other.cache_creation_tokens),
            _plus(self.reasoning_tokens, other.reasoning_tokens),
            _plus(self.cost_usd, other.cost_usd),
        )
        if (self.total_tokens is None) is (other.total_tokens is None):
            return added
        return msgspec.structs.replace(added, total_tokens=(self.all_tokens or 0) + (other.all_tokens or 0))

    def or_else(self, other: Usage) -> Usage:
        """These counts; those of `other` where they are not known."""
        ours, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Usage(*(b if a is None else a for a, b in zip(ours, theirs, strict=True)))

    def __bool__(self) -> bool:
        return msgspec.structs.astuple(self) != _UNKNOWN


_UNKNOWN: Final = (None,) * len(Usage.__struct_fields__)


def _plus(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


class Error(msgspec.Struct, frozen=True, gc=False):
    """Why something failed: `type` as `error.type` of OpenTelemetry where the trace has one, and the trace's text."""

    message: str
    type: str | None = None

    @property
    def words(self) -> str:
        """Type and text, the type once."""
        return in_words(self.type, self.message)


def in_words(kind: str | None, message: str) -> str:
    """``TimeoutError: timed out``: type and text of an error, the type once also where the text begins with it."""
    if not kind or message.startswith(kind):
        return message or kind or ""
    return f"{kind}: {message}" if message else kind


class Link(msgspec.Struct, frozen=True, gc=False):
    """A named jump from one span to another of the same run (`span`), or to another run (`run`, a raw id)."""

    label: str
    span: str | None = None
    run: str | None = None


class Binding(msgspec.Struct, frozen=True):
    """A named, versioned input of a graph node, with the value that was current then and the span that wrote it."""

    name: str
    version: int | None = None
    value: Any = None
    known: bool = True
    """False where the trace does not hold the value."""
    writer: str | None = None
    """Id of the span that wrote it; None for a run input."""


class Check(msgspec.Struct, frozen=True, gc=False):
    """A stored value compared with the recomputed one: `matches` names the recipe that fits, None if none does."""

    name: str
    stored: str
    matches: str | None = None
    expected: tuple[tuple[str, str], ...] = ()
    """(recipe, recomputed value) for every recipe that was tried."""


class Body(msgspec.Struct, frozen=True):
    """Everything that the trace says about one span.

    Every value of the source record reappears in `input`, `output`, `error`, the messages or `attributes`.
    """

    input: Any = None
    output: Any = None
    input_messages: tuple[Message, ...] = ()
    """The effective context of a model call, or the message itself."""
    output_messages: tuple[Message, ...] = ()
    attributes: dict[str, Any] = {}
    """All the rest, under the trace's own names."""
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

    Where a format makes many with more than 15 fields, it gives the first four by position: for more keywords, Python
    3.11 makes a dict for each call, which takes five times as long.
    """

    id: str
    name: str
    operation: Operation = Operation.OTHER
    parent_id: str | None = None
    step: int | None = None
    """The trace's own number of the step that this span belongs to."""
    is_step: bool = False
    """True on the span that the trace itself counts as a step, turn or node execution."""
    status: Status = Status.UNKNOWN
    status_word: str | None = None
    status_source: StatusSource | None = None
    started_at: float | None = None
    duration_ms: float | None = None
    usage: Usage | None = None
    error: Error | None = None
    owner: str | None = None
    """Key of the run in the same file, listed on its own, that the span belongs to; None: the run that holds it."""
    nested_graph: bool = False
    """True on a node of a graph that is a graph itself: its operation is `INVOKE_WORKFLOW`."""
    input_hash: str | None = None
    model: str | None = None
    """The model that was called, as the trace names it."""
    preview: str = ""
    """What tells this call from the next one (argument, prompt, text): at most `PREVIEW` characters, not cleaned."""
    note: str = ""
    """Short facts that belong beside the name, between `` · ``: ``cached``, ``→ account_support``, ``max_tokens``."""
    at: Any = None
    """Where the body is. Only the format that made the span knows what this is; but that of an `Operation.UNKNOWN` is
    ``(offset, size)`` or has a `size`, in bytes, so that they can be counted."""

    @property
    def notes(self) -> list[str]:
        """The facts of `note`."""
        return self.note.split(" · ") if self.note else []

    @property
    def is_node(self) -> bool:
        """Whether it is the execution of a node of a graph."""
        return self.nested_graph or self.operation is Operation.NODE or self.operation is Operation.ROUTE

    @property
    def taken_over(self) -> bool:
        """Whether it is not of this run, but of the one that this run goes on from."""
        return bool(self.note) and not {INHERITED, COPIED}.isdisjoint(self.notes)


# ---- status words of the formats

WORDS: Final[dict[str, Status]] = {
    # still going
    "running": Status.RUNNING,
    "active": Status.RUNNING,
    "in_progress": Status.RUNNING,
    "started": Status.RUNNING,
    "pending": Status.RUNNING,
    # waits for somebody
    "paused": Status.PAUSED,
    "interrupted": Status.PAUSED,
    "waiting": Status.PAUSED,
    # went well
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
    # ended by a person, or never begun
    "cancelled": Status.CANCELLED,
    "canceled": Status.CANCELLED,
    "stopped": Status.CANCELLED,
    "aborted": Status.CANCELLED,
    "skipped": Status.CANCELLED,
    # the trace does not tell
    "unknown": Status.UNKNOWN,
    "incomplete": Status.UNKNOWN,
    "outcome_unknown": Status.UNKNOWN,
    "warn": Status.OK,
}


STATUS_WORDS: Final = tuple(dict.fromkeys((*(status.value for status in Status), *WORDS)))
"""Every status, and every word of a trace that means one."""


def plain_word(word: str) -> str:
    """A trace's word as it stands in the table: ``Max-Turns`` is ``max_turns``."""
    return word.strip().lower().replace(" ", "_").replace("-", "_")


def status_of(word: str) -> Status:
    """The status that a trace's word means, in any case; `Status.UNKNOWN` for a word that is not in the table."""
    return WORDS.get(plain_word(word), Status.UNKNOWN)

"""Records of opencode: sessions, messages and their parts, the same in each of its stores.

Facts: files of opencode 1.3 to 1.18.33, and its declarations. A message is a record of the speaker; its parts are what
was written and done: texts, reasoning, tool calls, steps, patches. Times are milliseconds since the epoch. opencode
counts in JavaScript: a whole number may be written as ``5.0``, and none is exact from 2⁵³ on.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta, Raw, Struct

from tracetui.errors import FormatError
from tracetui.formats.decode import record_on
from tracetui.formats.scalars import word
from tracetui.formats.schema import NULL, Finite, Schema, Unknown, tag_of
from tracetui.model import Usage

Milliseconds = Annotated[float, Meta(gt=0, lt=1e14)]
"""Milliseconds since the epoch, up to the year 5138."""
Record = dict[str, Any]


class Times(Struct, frozen=True, gc=False):
    """When something began and ended."""

    start: Milliseconds | None = None
    created: Milliseconds | None = None
    end: Milliseconds | None = None
    updated: Milliseconds | None = None
    completed: Milliseconds | None = None


class Cache(Struct, frozen=True, gc=False):
    """Cached tokens."""

    read: Finite | None = None
    write: Finite | None = None


class Tokens(Struct, frozen=True, gc=False):
    """The tokens of a step, a message or a session, cached ones left out of `input` and reasoning out of `output`."""

    input: Finite | None = None
    output: Finite | None = None
    reasoning: Finite | None = None
    cache: Cache = Cache()

    def counts(self) -> list[int | None]:
        """Input, output, reasoning, cache read and cache write."""
        return list(map(as_integer, (self.input, self.output, self.reasoning, self.cache.read, self.cache.write)))

    def usage(self, cost: float | None) -> Usage | None:
        """The same as the model has it: cached tokens are input, and reasoning is output."""
        fresh, text, reasoning, read, written = self.counts()
        used = Usage(
            input_tokens=None if fresh is read is written is None else (fresh or 0) + (read or 0) + (written or 0),
            output_tokens=None if text is reasoning is None else (text or 0) + (reasoning or 0),
            cache_read_tokens=read,
            cache_creation_tokens=written,
            reasoning_tokens=reasoning,
            cost_usd=cost,
        )
        return used or None


class Model(Struct, gc=False):
    """The model of a prompt or a session."""

    modelID: str | None = None
    id: str | None = None


def model_of(model: Model | str | None, ident: str | None = None) -> str | None:
    """The name of a model, in each of the ways in which it is recorded; `ident` is the field ``modelID``."""
    return word((model.modelID or model.id) if isinstance(model, Model) else ident or model)


# ---- sessions


class Revert(Struct, frozen=True, gc=False):
    """From which message, or part of it, on a session was reverted."""

    messageID: str | None = None
    partID: str = ""


class Info(Struct, gc=False):
    """The record of a session."""

    id: str = ""
    parent: str | None = msgspec.field(default=None, name="parentID")
    title: str = ""
    directory: str | None = None
    version: str | None = None
    agent: str | None = None
    model: Model | str | None = None
    modelID: str | None = None
    time: Times = Times()
    revert: Revert = Revert()
    tokens: Tokens = Tokens()
    cost: Finite | None = None
    branch: str | None = msgspec.field(default=None, name="branch of its workspace")
    fork: str | None = msgspec.field(default=None, name="fork_session_id")
    """The session that it was forked from, which only opencode 2 records."""
    counts_title: bool = msgspec.field(default=False, name="generation of its tables")
    """Its totals have the call that made its title, which is in no message: so does opencode 2."""
    store_key: Any = msgspec.field(default=None, name="place in its store")

    @property
    def model_name(self) -> str | None:
        """The model that the session was started with."""
        return model_of(self.model, self.modelID)


INFO: Final[Schema[Info]] = Schema(Info)


def info_of(record: Record, ident: str, store_key: Any = None, branch: str | None = None) -> Info:
    """The info of a session, as opencode itself calls that object."""
    info = INFO.convert(record, {})
    parent = info.parent or None
    return msgspec.structs.replace(info, id=ident, parent=parent, store_key=store_key, branch=branch)


# ---- messages


class User(Struct, tag_field="role", tag="user", gc=False):
    """A prompt, or a text of the program in the user's name."""

    other_fields: ClassVar = "sessionID metadata type editorContext format summary system tools variant"
    id: str | None = None
    time: Times = Times()
    agent: str | None = None
    model: Model | str | None = None


class Assistant(Struct, tag_field="role", tag="assistant", gc=False):
    """A response."""

    other_fields: ClassVar = (
        "sessionID metadata type path providerID structured system variant rawFinish snapshot reason recent"
    )
    id: str | None = None
    time: Times = Times()
    agent: str | None = None
    mode: str | None = None
    model: Model | str | None = None
    modelID: str | None = None
    parentID: str | None = None
    """The message that it answers."""
    summary: Any = None
    finish: str | None = None
    error: Any = None
    tokens: Tokens = Tokens()
    cost: Finite | None = None


class Note(Struct, tag_field="role", tag="note", gc=False):
    """What opencode 2 notes between messages: other agents and models, commands of the user, the end of a turn."""

    kind: str = ""
    time: Times = Times()
    text: str | None = None
    agent: str | None = None
    model: Model | str | None = None
    name: str | None = None
    command: str | None = None
    exit: Finite | None = None
    outcome: str | None = None


class OtherMessage(Struct, gc=False):
    """A message of another role, or of none."""

    id: str | None = None
    role: str | None = None
    time: Times = Times()


# ---- parts


class _Part(Struct, tag_field="type", gc=False):
    other_fields: ClassVar = "messageID sessionID metadata"
    in_response: ClassVar = False
    """The span of a response shows it; else it has a span of its own."""
    in_prompt: ClassVar = False
    """The same for a prompt."""
    id: str | None = None
    time: Times = Times()


class Text(_Part, tag="text"):
    in_response: ClassVar = True
    in_prompt: ClassVar = True
    text: str | None = None
    synthetic: Any = None
    ignored: Any = None


class Reasoning(_Part, tag="reasoning"):
    other_fields: ClassVar = f"{_Part.other_fields} state"
    in_response: ClassVar = True
    text: str | None = None


class ToolMetadata(Struct, frozen=True, gc=False):
    """Metadata of a tool's result."""

    sessionId: str | None = None
    sessionID: str | None = None
    exit: Finite | None = None
    interrupted: Any = None
    output: Raw = NULL

    @property
    def sub_agent(self) -> str | None:
        """The session that the call started: opencode 2 writes its name in another way."""
        return self.sessionId or self.sessionID


class ToolState(Struct, frozen=True, gc=False):
    """How far a tool call is."""

    status: str | None = None
    input: Raw = NULL
    output: Raw = NULL
    error: Raw = NULL
    time: Times = Times()
    metadata: ToolMetadata = ToolMetadata()


class Tool(_Part, tag="tool"):
    other_fields: ClassVar = f"{_Part.other_fields} executed providerState providerResultState"
    callID: str | None = None
    tool: str | None = None
    state: ToolState = ToolState()


class Attachment(_Part, tag="file"):
    in_response: ClassVar = True
    in_prompt: ClassVar = True
    other_fields: ClassVar = f"{_Part.other_fields} mime source name uri description"
    filename: str | None = None
    url: str | None = None


class Agent(_Part, tag="agent"):
    in_prompt: ClassVar = True
    other_fields: ClassVar = f"{_Part.other_fields} source"
    name: str | None = None


class Subtask(_Part, tag="subtask"):
    in_prompt: ClassVar = True
    other_fields: ClassVar = f"{_Part.other_fields} agent command model"
    prompt: str | None = None
    description: str | None = None


class Snapshot(_Part, tag="snapshot"):
    snapshot: str | None = None


class Patch(_Part, tag="patch"):
    files: Any = None
    hash: str | None = None


class Retry(_Part, tag="retry"):
    attempt: Finite | None = None
    error: Any = None


class StepStart(_Part, tag="step-start"):
    in_response: ClassVar = True
    snapshot: str | None = None


class StepFinish(_Part, tag="step-finish"):
    in_response: ClassVar = True
    other_fields: ClassVar = f"{_Part.other_fields} snapshot"
    reason: str | None = None
    tokens: Tokens = Tokens()
    cost: Finite | None = None


class Compaction(_Part, tag="compaction"):
    other_fields: ClassVar = f"{_Part.other_fields} overflow tail_start_id"
    auto: Any = None


class OtherPart(Struct, gc=False):
    """A part of an unknown kind: its possible previews."""

    in_response: ClassVar = False
    in_prompt: ClassVar = False

    type: str = "part"
    id: str | None = None
    time: Times = Times()
    text: str | None = None
    snapshot: str | None = None
    prompt: str | None = None
    name: str | None = None
    title: str | None = None
    hash: str | None = None
    files: Any = None


MESSAGES: Final[Schema[Any]] = Schema(User | Assistant | Note, OtherMessage)
PARTS: Final[Schema[Any]] = Schema(
    Text
    | Reasoning
    | Tool
    | Attachment
    | Agent
    | Subtask
    | Snapshot
    | Patch
    | Retry
    | StepStart
    | StepFinish
    | Compaction,
    OtherPart,
)


class Stored(Struct, frozen=True):
    """A record in its store."""

    id: str
    data: Any
    store_key: Any = None
    raw: bytes = b""
    own: Record = {}
    """Data of the store other than the record, and a record that is not an object."""
    created: float | None = None
    """When its row was written."""

    @property
    def kind(self) -> str:
        """The role of a message, the type of a part or a note."""
        if isinstance(self.data, Note):
            return self.data.kind
        return tag_of(self.data) or (
            self.data.role or "message" if isinstance(self.data, OtherMessage) else self.data.type or "part"
        )

    def record(self) -> Record:
        """All fields of the record."""
        return record_on(self.raw) or {}

    def fields(self) -> Record:
        """The fields and those of the envelope, named ``record.NAME`` on a conflict."""
        fields = self.record()
        return (
            {"id": self.id}
            | fields
            | {f"record.{key}" if key in fields else key: value for key, value in self.own.items()}
        )


class Part(Stored, frozen=True):
    """A part of a message."""

    def times(self) -> list[float]:
        """When it began and ended, as far as that is recorded."""
        both = (self.data.time, self.data.state.time) if isinstance(self.data, Tool) else (self.data.time,)
        times = [moment for time in both for moment in (time.start, time.created, time.end) if moment is not None]
        return times or ([] if self.created is None else [self.created])


class SourceMessage(Stored, frozen=True):
    """A message with its parts, in their order."""

    parts: tuple[Part, ...] = ()
    unknown: Unknown = {}

    @property
    def started(self) -> float | None:
        """When it was created."""
        created: float | None = self.data.time.created
        return self.created if created is None else created


def decode_record(schema: Schema[Any], data: Any, unknown: Unknown) -> tuple[Any, Record, str | None]:
    """The record in a column or file, the value if it is not an object, and its problem."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if not isinstance(data, bytes):
        return schema.convert({}, {}), {} if data is None else {"data": data}, "not JSON"
    try:
        record, value, note = schema.decode(data, unknown)
    except FormatError as error:
        return schema.convert({}, {}), {"data": data.decode("utf-8", "replace")}, error.reason
    if record is None:
        return schema.convert({}, {}), {} if value is None else {"data": value}, "not a JSON object"
    return record, {}, note and f"read leniently: {note}"


def as_integer(value: float | None) -> int | None:
    """`value` if it is an integer that is exact in JavaScript."""
    return int(value) if value is not None and value == int(value) and abs(value) < 1 << 53 else None


def changed(where: str) -> FormatError:
    """The error of a body whose record was replaced."""
    return FormatError("the session changed: the record was replaced", where)

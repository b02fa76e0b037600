"""Messages and parts of opencode, as each of its stores holds them: their spans, and what is shown in detail.

A message is a record of who spoke, and its parts are what was said and done: texts, thoughts, calls, steps, patches. It
is a response for each of its steps, and the calls that it asked for below that. No field can be trusted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.calls import argument, as_json
from tracetui.formats.decode import decode
from tracetui.formats.fields import Fields
from tracetui.formats.scalars import child, number, string, without, word
from tracetui.formats.schema import Unknown
from tracetui.model import (
    MESSAGE_LIMIT,
    PREVIEW,
    Blob,
    Body,
    Error,
    Link,
    Operation,
    Reasoning,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    Usage,
)
from tracetui.model import Message as Said
from tracetui.model import Part as SaidPart
from tracetui.model.status import status_of

_MOST: Final = 1 << 53
"""What JavaScript, which counted, holds exactly."""
_LATEST: Final = 1e14
"""Milliseconds since the epoch of times that are believed: up to the year 5138."""

Record = dict[str, Any]


class Part(msgspec.Struct, frozen=True):
    """One part of a message."""

    id: str
    data: Record
    own: Record = {}
    """What its row says besides, under the names of the columns; and data that is no object."""
    place: tuple[Any, ...] = ()
    """Where it is in its store."""
    kind: str = "part"
    """What kind of part it is, as it says itself."""
    size: int = 0
    """Bytes of it; 0 where they are within those of the message."""


class Message(msgspec.Struct, frozen=True):
    """One message with its parts, in their order."""

    id: str
    data: Record
    parts: tuple[Part, ...] = ()
    own: Record = {}
    place: tuple[Any, ...] = ()
    size: int = 0
    """Bytes of it, those of parts that have their own left out."""


class Info(msgspec.Struct, frozen=True):
    """What a store says of a session itself."""

    id: str
    parent: str | None = None
    title: str = ""
    directory: str | None = None
    version: str | None = None
    agent: str | None = None
    model: str | None = None
    created: float | None = None
    """Milliseconds since the epoch, as all times of opencode are."""
    updated: float | None = None
    revert: Record = {}
    tokens: Record = {}
    """Totals that it declares, as a step declares its tokens."""
    cost: Any = None
    branch: str | None = None
    place: tuple[Any, ...] = ()


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: the session, its message, the part of it; and what of that it shows."""

    session: tuple[Any, ...] = ()
    message: tuple[Any, ...] | None = None
    """None: the span is made of the session itself, or of nothing."""
    part: tuple[Any, ...] | None = None
    part_id: str = ""
    step: int = 0
    """Which of the steps of a message."""
    shows: str = ""
    """``session`` or ``revert``, of the session itself."""
    size: int = 0
    """Bytes of a record of an unknown kind."""


def info_of(told: Record, ident: str, place: tuple[Any, ...] = ()) -> Info:
    """What the object that opencode itself calls the info of a session says."""
    times = child(told, "time")
    return Info(
        id=ident,
        parent=word(told.get("parentID")),
        title=string(told.get("title")) or "",
        directory=word(told.get("directory")),
        version=word(told.get("version")),
        agent=word(told.get("agent")),
        model=model_of(told),
        created=moment(times.get("created")),
        updated=moment(times.get("updated")),
        revert=child(told, "revert"),
        tokens=child(told, "tokens"),
        cost=told.get("cost"),
        place=place,
    )


def part_with(ident: str, data: Record, own: Record, place: tuple[Any, ...], size: int = 0) -> Part:
    """A part of the kind that its data says."""
    kind = data.get("type")
    return Part(ident, data, own, place, kind if isinstance(kind, str) and kind else "part", size)


def size_of(value: Any) -> int:
    """Bytes of a text, or of bytes."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, bytes) else 0


def model_of(told: Record) -> str | None:
    """The model that a message or a session names, in each of the ways in which they do."""
    named = told.get("model")
    if isinstance(named, dict):
        return word(named.get("modelID")) or word(named.get("id"))
    return word(told.get("modelID")) or word(named)


def record_of(value: Any) -> tuple[Record, Record, str | None]:
    """(The object that a column or file holds, what it holds if that is none, what is wrong with it)."""
    try:
        found = msgspec.json.decode(value)
        note = None
    except (TypeError, ValueError, RecursionError):
        if not isinstance(value, str | bytes):
            return {}, {} if value is None else {"data": value}, "it holds no JSON"
        try:
            data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
            found, note = decode(data)
        except FormatError as error:
            shown = value if isinstance(value, str) else value.decode("utf-8", "replace")
            return {}, {"data": shown}, error.reason
    if not isinstance(found, dict):
        return {}, {"data": found}, "it is no JSON object"
    return found, {}, None if note is None else f"read leniently: {note}"


def usage_of(tokens: Record, cost: Any) -> Usage | None:
    """The tokens of a step: opencode leaves cached tokens out of the input, and thoughts out of the output."""
    cache = child(tokens, "cache")
    fresh, said, thought = (whole(tokens.get(name)) for name in ("input", "output", "reasoning"))
    read, written = whole(cache.get("read")), whole(cache.get("write"))
    used = Usage(
        input_tokens=None if fresh is read is written is None else (fresh or 0) + (read or 0) + (written or 0),
        output_tokens=None if said is thought is None else (said or 0) + (thought or 0),
        cache_read_tokens=read,
        cache_creation_tokens=written,
        reasoning_tokens=thought,
        cost_usd=number(cost),
    )
    return used or None


def whole(value: Any) -> int | None:
    """`value` if it is a whole number that JavaScript holds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        return None
    return int(value) if value == int(value) else None


def moment(value: Any) -> float | None:
    """A time in milliseconds since the epoch."""
    found = number(value)
    return found if found is not None and 0 < found < _LATEST else None


def seconds(milliseconds: float | None) -> float | None:
    """The same in seconds."""
    return None if milliseconds is None else milliseconds / 1000


def since(begin: float | None, end: float | None) -> float | None:
    """Milliseconds from `begin` to `end`, None where one is not told or they are the wrong way round."""
    return None if begin is None or end is None or end < begin else end - begin


# ---- fields that are known: by files of 1.3 to 1.18.33, and by what opencode declares

FIELDS: Final = Fields(
    {
        "user": "agent editorContext format model role summary system tools variant",
        "assistant": (
            "agent cost error finish mode model modelID parentID path providerID role structured summary system tokens "
            "variant"
        ),
        "text": "ignored synthetic text",
        "reasoning": "text",
        "tool": "callID state tool",
        "file": "filename mime source url",
        "agent": "name source",
        "subtask": "agent command description model prompt",
        "snapshot": "snapshot",
        "patch": "files hash",
        "retry": "attempt error",
        "step-start": "snapshot",
        "step-finish": "cost reason snapshot tokens",
        "compaction": "auto overflow tail_start_id",
    },
    "id messageID metadata sessionID time type",
)
"""By the role of a message, or the type of a part."""


def strange_in(message: Message) -> Unknown:
    """The fields of a message and its parts that are not known."""
    found: Unknown = {}
    FIELDS.count(found, word(message.data.get("role")) or "message", message.data)
    for part in message.parts:
        FIELDS.count(found, part.kind, part.data)
    return found


# ---- spans

STEP: Final = "step-start"
FINISH: Final = "step-finish"
COMPACTION: Final = "compaction"
_SAID: Final = frozenset({"text", "reasoning", "file", STEP, FINISH})
"""Parts of a response that are told with it."""
_ASKED: Final = frozenset({"text", "file", "agent", "subtask"})
"""Parts of what somebody asked."""
_NOTES: Final = frozenset({"patch", "snapshot", COMPACTION, "agent", "subtask"})
"""Parts that are known, and stand for themselves."""
KINDS: Final = _SAID | _ASKED | _NOTES | {"tool", "retry"}
"""All that are known."""
_QUIET: Final = frozenset({"stop", "tool-calls"})
"""Reasons to finish that go without saying."""
_ABORTED: Final = "MessageAbortedError"
_Outcome = tuple[Status, StatusSource | None, str | None, Error | None]


class Told(msgspec.Struct, frozen=True):
    """One message as spans that don't know where they stand, and what it says of the session."""

    id: str
    role: str
    spans: tuple[Span, ...]
    created: float | None = None
    parent: str | None = None
    """The message that it answers."""
    is_prompt: bool = False
    """Somebody asked something: a turn begins."""
    said: str = ""
    """What was asked or answered, without what the program put there."""
    model: str | None = None
    agent: str | None = None
    end: _Outcome | None = None
    """How a response ended; None while it goes on."""
    ended_at: float | None = None
    tasks: tuple[tuple[str, str], ...] = ()
    """(Session, span of the call) of the sub-agents that it started."""
    usage: Usage = Usage()
    """What all of its steps used."""
    size: int = 0
    """Bytes of it and of its parts."""
    strange: Unknown = {}

    @property
    def runs(self) -> bool:
        """Whether something in it is not over yet."""
        return any(span.status is Status.RUNNING for span in self.spans)


def tell(message: Message, session: tuple[Any, ...] = ()) -> Told:
    """The spans of a message of the session at that place."""
    size = message.size + sum([part.size for part in message.parts])
    role = word(message.data.get("role")) or "message"
    if role in ("assistant", "user"):
        told = _response(message, session) if role == "assistant" else _asked(message, session)
        return replace(told, size=size, strange=strange_in(message))
    at = At(session, message.place, size=message.size)
    span = Span(id=message.id, name=role[:PREVIEW], operation=Operation.UNKNOWN, at=at, **_when(message))
    rows = (_row(part, message, at, message.id) for part in message.parts)
    return Told(message.id, role, (span, *rows), size=size)


def end_of(data: Record) -> _Outcome | None:
    """How a response ended, by the record of it alone; None while it goes on."""
    failure = data.get("error")
    finish = word(data.get("finish"))
    if failure is not None and failure is not False:
        error = error_of(failure)
        if error.type == _ABORTED:
            return Status.CANCELLED, StatusSource.EXPLICIT, error.type, None
        return Status.ERROR, StatusSource.EXPLICIT, error.type and error.type[:PREVIEW], error
    if finish is None and moment(child(data, "time").get("completed")) is None:
        return None
    return Status.OK, StatusSource.DERIVED, finish and finish[:PREVIEW], None


def error_of(told: Any) -> Error:
    """What an error says of itself: ``{name, data: {message}}``, or a text."""
    inner = child(told, "data")
    kind = word(told.get("name")) if isinstance(told, dict) else None
    message = string(inner.get("message")) or string(told.get("message") if isinstance(told, dict) else told)
    return Error(_cut(message or kind or as_json(told)), kind and kind[:PREVIEW])


# ---- what was asked


def _asked(message: Message, session: tuple[Any, ...]) -> Told:
    """What stands in the user's name: a prompt, what the program adds to it, or that it compacts the session."""
    at = At(session, message.place)
    real = [part for part in message.parts if part.kind in _ASKED and not is_synthetic(part)]
    said = "\n".join(text for part in real if part.kind == "text" and (text := string(part.data.get("text"))))
    compacts = not real and any(part.kind == COMPACTION for part in message.parts)
    first = next((text for part in message.parts if (text := _preview(part))), "")
    spans = [
        Span(
            id=message.id,
            name=COMPACTION if compacts else "user",
            operation=Operation.META if compacts else Operation.MESSAGE,
            status=Status.OK,
            status_source=StatusSource.DERIVED,
            preview=(said or _asked_for(real) or first)[:PREVIEW],
            note="" if real or compacts or not message.parts else "synthetic",
            at=at,
            **_when(message),
        )
    ]
    kept = _ASKED | {COMPACTION} if compacts else _ASKED
    spans += [_row(part, message, at, message.id) for part in message.parts if part.kind not in kept]
    return Told(
        message.id,
        "user",
        tuple(spans),
        created=_created(message),
        is_prompt=bool(real),
        said=said or _asked_for(real),
        model=model_of(message.data),
        agent=word(message.data.get("agent")),
    )


def is_synthetic(part: Part) -> bool:
    """Whether the program put a part there, not the user."""
    return part.data.get("synthetic") is True or part.data.get("ignored") is True


def _asked_for(parts: Sequence[Part]) -> str:
    """What was asked for without a word: a task for a sub-agent, an agent by name, a file."""
    names = ("prompt", "description", "name", "filename", "url")
    return next((text for part in parts for name in names if (text := string(part.data.get(name)))), "")


# ---- what was answered


def _response(message: Message, session: tuple[Any, ...]) -> Told:
    data, steps = message.data, steps_of(message.parts)
    end = end_of(data)
    used = _used(data, steps)
    spans: list[Span] = []
    tasks: list[tuple[str, str]] = []
    for place, parts in enumerate(steps):
        last = place == len(steps) - 1
        at = At(session, message.place, step=place)
        span = _step(message, parts, at, end if last else _step_end(parts), alone=len(steps) == 1)
        spans.append(replace(span, usage=used[place]))
        for part in parts:
            if part.kind == "tool":
                call = _call(part, at, span.id)
                spans.append(call)
                if (named := child(child(part.data, "state"), "metadata").get("sessionId")) and isinstance(named, str):
                    tasks.append((named, call.id))
            elif part.kind not in _SAID:
                spans.append(_row(part, message, at, span.id))
    texts = [string(part.data.get("text")) for part in message.parts if part.kind == "text"]
    return Told(
        message.id,
        "assistant",
        tuple(spans),
        created=_created(message),
        parent=word(data.get("parentID")),
        said="\n".join(filter(None, texts)),
        model=model_of(data),
        agent=word(data.get("agent")) or word(data.get("mode")),
        end=end,
        ended_at=_ended(message),
        tasks=tuple(tasks),
        usage=total(used),
    )


def steps_of(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of a response by its steps: one each, in old messages several."""
    steps: list[list[Part]] = [[]]
    begun = False
    for part in parts:
        if part.kind == STEP:
            if begun:
                steps.append([])
            begun = True
        steps[-1].append(part)
    return steps


def _used(data: Record, steps: Sequence[Sequence[Part]]) -> list[Usage | None]:
    """What each step used, as it says at its end; where none does, what the message says of all."""
    used: list[Usage | None] = []
    for parts in steps:
        told = [usage_of(child(part.data, "tokens"), part.data.get("cost")) for part in parts if part.kind == FINISH]
        used.append(told[0] if len(told) == 1 else total(told) or None)
    if not any(used):
        whole_of = usage_of(child(data, "tokens"), data.get("cost"))
        if whole_of is not None and (end_of(data) is not None or any(msgspec.structs.astuple(whole_of))):
            used[0] = whole_of  # before it has ended all counts are zero, which says nothing
    return used


def total(used: Sequence[Usage | None]) -> Usage:
    """What all of these used."""
    if len(used) == 1:
        return used[0] or Usage()
    return sum((one for one in used if one is not None), Usage())


def _step_end(parts: Sequence[Part]) -> _Outcome:
    """How a step ended after which another one came."""
    reason = next((word(part.data.get("reason")) for part in parts if part.kind == FINISH), None)
    return Status.OK, StatusSource.DERIVED, reason and reason[:PREVIEW], None


def _step(message: Message, parts: Sequence[Part], at: At, end: _Outcome | None, *, alone: bool) -> Span:
    data = message.data
    status, source, name, error = end or (Status.RUNNING, StatusSource.DERIVED, None, None)
    begun = _created(message)
    length = since(begun, moment(child(data, "time").get("completed")))
    if not alone:
        times = [found for part in parts for found in _times(part) if found is not None]
        begun = min(times, default=None) if at.step else begun
        length = since(begun, max(times, default=None))
    model = model_of(data)
    notes = ["summary"] if data.get("summary") is True else []
    notes += [name] if name is not None and name not in _QUIET and status is Status.OK else []
    return Span(
        id=message.id if not at.step else parts[0].id,
        name=model or "assistant",
        operation=Operation.CHAT,
        status=status,
        status_word=name,
        status_source=source,
        error=error,
        started_at=seconds(begun),
        duration_ms=length,
        model=model,
        preview=_said(parts)[:PREVIEW],
        note=", ".join(notes),
        at=at,
    )


def _said(parts: Sequence[Part]) -> str:
    """The first text, else the first thought."""
    for kind in ("text", "reasoning"):
        for part in parts:
            if part.kind == kind and (text := string(part.data.get("text"))):
                return text
    return ""


def _call(part: Part, at: At, above: str) -> Span:
    """A call of a tool, with how it went."""
    state = child(part.data, "state")
    times = child(state, "time")
    begun = moment(times.get("start"))
    status, source, name, error = outcome_of(state)
    given = state.get("input")
    if isinstance(given, dict) and isinstance(given.get("filePath"), str):
        given = {"file_path": given["filePath"]} | given
    return Span(
        id=part.id,
        name=(word(part.data.get("tool")) or "tool")[:PREVIEW],
        operation=Operation.EXECUTE_TOOL,
        parent_id=above,
        status=status,
        status_word=name,
        status_source=source,
        error=error,
        started_at=seconds(begun if begun is not None else _time_of(part)),
        duration_ms=since(begun, moment(times.get("end"))),
        preview=argument(given),
        at=replace(at, part=part.place, part_id=part.id),
    )


def outcome_of(state: Record) -> _Outcome:
    """How a call went. opencode calls a command that failed ``completed``: its exit code tells."""
    name = word(state.get("status"))
    metadata = child(state, "metadata")
    if name == "error":
        if metadata.get("interrupted") is True:
            return Status.CANCELLED, StatusSource.EXPLICIT, "interrupted", None
        return Status.ERROR, StatusSource.EXPLICIT, name, _failure(state.get("error"))
    code = whole(metadata.get("exit"))
    if code:
        output = string(state.get("output")) or string(metadata.get("output")) or ""
        kind = f"exit {code}"
        return Status.ERROR, StatusSource.EXIT, name, Error(_cut(output[-MESSAGE_LIMIT * 4 :]) or kind, kind)
    status = Status.UNKNOWN if name is None else status_of(name)
    return status, None if name is None else StatusSource.EXPLICIT, name and name[:PREVIEW], None


def _failure(told: Any) -> Error:
    return Error(_cut(told) or "failed") if isinstance(told, str) else error_of(told)


def _row(part: Part, message: Message, at: At, above: str) -> Span:
    """A part that stands for itself, known or not."""
    data, kind = part.data, part.kind
    fields: dict[str, Any] = {}
    if kind == "tool":
        return _call(part, at, above)
    if kind == "retry":
        fields = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": error_of(data.get("error"))}
        attempt = whole(data.get("attempt"))
        fields |= {"note": "" if attempt is None else f"attempt {attempt}"}
        operation = Operation.OTHER
    else:
        operation = Operation.META if kind in _NOTES | _SAID else Operation.UNKNOWN
    return Span(
        id=part.id,
        name=kind[:PREVIEW],
        operation=operation,
        parent_id=above,
        started_at=seconds(next((found for found in _times(part) if found is not None), None)),
        preview=_preview(part),
        at=replace(at, part=part.place, part_id=part.id, size=part.size),
        **fields,
    )


def _preview(part: Part) -> str:
    data = part.data
    files = data.get("files")
    if isinstance(files, list):
        return ", ".join(name for name in files if isinstance(name, str))[:PREVIEW]
    if part.kind == COMPACTION:
        return "automatic" if data.get("auto") is True else "asked for"
    names = ("text", "snapshot", "prompt", "name", "title", "hash")
    return next((text for name in names if (text := string(data.get(name)))), "")[:PREVIEW]


# ---- times


def _created(message: Message) -> float | None:
    found = moment(child(message.data, "time").get("created"))
    return moment(message.own.get("time_created")) if found is None else found


def _when(message: Message) -> dict[str, Any]:
    return {"started_at": seconds(_created(message))}


def _time_of(part: Part) -> float | None:
    return moment(part.own.get("time_created"))


def _times(part: Part) -> list[float | None]:
    """When a part began and ended, as far as it is told."""
    own, state = child(part.data, "time"), child(child(part.data, "state"), "time")
    found = [moment(times.get(name)) for times in (own, state) for name in ("start", "created", "end")]
    return found if any(found) else [_time_of(part)]


def _ended(message: Message) -> float | None:
    """When a response ended, or was last heard of."""
    completed = moment(child(message.data, "time").get("completed"))
    if completed is not None:
        return completed
    return max((found for part in message.parts for found in _times(part) if found is not None), default=None)


def _cut(said: str) -> str:
    said = said.strip()
    return said if len(said) <= MESSAGE_LIMIT else said[: MESSAGE_LIMIT - 1] + "…"


def alone(part: Part) -> Told:
    """A part whose message is not there."""
    message = Message("", {})
    row = _row(part, message, At(), "")
    return Told(part.id, "part", (replace(row, parent_id=None),))


# ---- bodies

_OWN_SPAN = frozenset({"text", "reasoning", "file", "step-start", "step-finish"})
"""Parts of a response that no span of their own shows."""


def body_of(span: Span, message: Message, raw: bytes) -> Body:
    """The body of a span of `message`. Raises `FormatError` if its part is not there any more."""
    at: At = span.at
    if at.part is not None:
        return _part_body(next((part for part in message.parts if part.place == at.part), None), at, raw)
    if span.operation is Operation.CHAT:
        return _response_body(message, at.step, raw)
    return _asked_body(message, raw)


def changed(where: str) -> FormatError:
    """The error of a body whose record is not the one that was read."""
    return FormatError("the session changed: another record is there now", where)


def _asked_body(message: Message, raw: bytes) -> Body:
    said = [_said_part(part) for part in message.parts if part.kind != "tool"]
    texts = [
        text
        for part in message.parts
        if part.kind == "text" and not is_synthetic(part) and (text := string(part.data.get("text")))
    ]
    role = word(message.data.get("role")) or "message"
    parts = tuple(part for part in said if part is not None)
    return Body(
        input="\n".join(texts) or None,
        input_messages=(Said(role, parts, message.id),) if parts else (),
        attributes=_fields(message) | _rests(message.parts, frozenset({part.kind for part in message.parts})),
        raw=raw,
    )


def _response_body(message: Message, step: int, raw: bytes) -> Body:
    """One step as one message: what the model thought and said, and the calls that it asked for."""
    steps = steps_of(message.parts)
    if step >= len(steps):
        raise changed(f"message {message.id}")
    parts = steps[step]
    said = tuple(found for part in parts if (found := _said_part(part)) is not None)
    texts = [part.text for part in said if isinstance(part, Text)]
    finish = next((word(part.data.get("reason")) for part in parts if part.kind == "step-finish"), None)
    told = Said("assistant", said, message.id, finish or word(message.data.get("finish")))
    return Body(
        output="\n".join(texts) or None,
        output_messages=(told,) if said else (),
        attributes=(_fields(message) if step == 0 else {}) | _rests(parts, _OWN_SPAN),
        raw=raw,
    )


def _part_body(part: Part | None, at: At, raw: bytes) -> Body:
    if part is None or part.id != at.part_id:
        raise changed(f"part {at.part_id}")
    if part.kind != "tool":
        return Body(attributes=_all(part), raw=raw)
    told = part.data.get("state")
    state = child(part.data, "state")
    output = state.get("output")
    rest = without(state, "input", "output")
    metadata = child(state, "metadata")
    if isinstance(output, str) and metadata.get("output") == output:
        rest["metadata"] = without(metadata, "output")  # opencode keeps it twice
    named = metadata.get("sessionId")
    return Body(
        input=state.get("input"),
        output=output,
        attributes=_all(part) | {"state": rest if isinstance(told, dict) else told},
        links=(Link("sub-agent", run=named),) if isinstance(named, str) and named else (),
        raw=raw,
    )


def _said_part(part: Part) -> SaidPart | None:
    """A part as one of a message; None for what is not said."""
    text = string(part.data.get("text"))
    if part.kind == "text" and text is not None:
        return Text(text)
    if part.kind == "reasoning" and text is not None:
        return Reasoning(text) if text else None
    if part.kind == "tool":
        name = word(part.data.get("tool")) or "tool"
        return ToolCall(word(part.data.get("callID")), name, child(part.data, "state").get("input"))
    return Blob(part.kind, part.data) if part.kind in ("file", "agent", "subtask") else None


def _fields(message: Message) -> Record:
    """All that a message says of itself."""
    fields = without(message.data, "role") if isinstance(message.data.get("role"), str) else dict(message.data)
    return _joined(message.id, fields, message.own)


def _rests(parts: Any, kinds: frozenset[str]) -> Record:
    """What parts of these kinds say besides what they say aloud."""
    rests = [_rest(part) for part in parts if part.kind in kinds]
    return {"parts": rests} if rests else {}


def _rest(part: Part) -> Record:
    said = part.kind in ("text", "reasoning") and isinstance(part.data.get("text"), str)
    return without(_all(part), "text") if said else _all(part)


def _all(part: Part) -> Record:
    return _joined(part.id, part.data, part.own)


def _joined(ident: str, fields: Record, own: Record) -> Record:
    """Fields and those around them, which are called ``record.NAME`` where the name is taken."""
    return {"id": ident} | fields | {f"record.{key}" if key in fields else key: value for key, value in own.items()}


def rendered(value: Any) -> bytes:
    """`value` as JSON, for what is no text in its store."""
    try:
        return orjson.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):
        try:
            return json.dumps(value, default=repr).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            return b""

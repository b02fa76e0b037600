"""Messages of opencode as spans, and the bodies of these.

A response is one span for each of its steps, with the tool calls of that step below it; a prompt is one span. A part
that is neither text, reasoning, attachment nor tool call has a span of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.formats.bodies import argument, as_json, preview_of
from tracetui.formats.opencode.records import (
    Agent,
    Assistant,
    Attachment,
    Compaction,
    Note,
    OtherPart,
    Part,
    Reasoning,
    Record,
    Retry,
    SourceMessage,
    StepFinish,
    StepStart,
    Subtask,
    Text,
    Tool,
    ToolState,
    User,
    as_integer,
    changed,
    model_of,
)
from tracetui.formats.scalars import child, mapping, string, without, word
from tracetui.formats.schema import Unknown, plain
from tracetui.model import (
    PREVIEW,
    Blob,
    Body,
    Error,
    Link,
    Operation,
    Span,
    Status,
    StatusSource,
    ToolCall,
    Usage,
    excerpt,
)
from tracetui.model import Message as ModelMessage
from tracetui.model import Part as ModelPart
from tracetui.model import Reasoning as ModelReasoning
from tracetui.model import Text as ModelText
from tracetui.model.span import status_of

_EXPECTED: Final = frozenset({"stop", "tool-calls"})
"""Reasons to finish that need no note."""
_ABORTED: Final = frozenset({"MessageAbortedError", "aborted"})
_NO_USAGE: Final = Usage()


class SpanRef(msgspec.Struct, frozen=True, gc=False):
    """Where a span is in its store: the session, its message, the part of that."""

    session: Any = None
    message: Any = None
    """None: the span is made of the session itself, or of nothing."""
    part: Any = None
    part_id: str = ""
    step: int = 0
    """Which of the steps of a message."""
    shows: str = ""
    """``session`` or ``revert``, of the session itself."""
    size: int = 0
    """Bytes of a record of an unknown kind."""


class Outcome(NamedTuple):
    """How something ended, as the fields of a span."""

    status: Status = Status.UNKNOWN
    status_source: StatusSource | None = None
    status_word: str | None = None
    error: Error | None = None


_END_OF_TURN: Final = {"succeeded": Status.OK, "failed": Status.ERROR, "interrupted": Status.CANCELLED}
RUNNING: Final = Outcome(Status.RUNNING, StatusSource.DERIVED)


class Message(msgspec.Struct, frozen=True, eq=False):
    """A message: its spans, still without their turn, and its facts about the session.

    Two are the same only if they are one object: the body of one that was read again may differ.
    """

    id: str
    role: str
    spans: tuple[Span, ...]
    size: int
    """Bytes of it and of its parts."""
    unknown: Unknown
    """Unknown fields."""
    runs: bool
    """Something in it has not ended."""
    created: float | None = None
    parent: str | None = None
    """The message that it answers."""
    is_prompt: bool = False
    """The user asked for something: a turn begins."""
    text: str = ""
    """The prompt or response without additions of the program."""
    model: str | None = None
    agent: str | None = None
    end: Outcome | None = None
    """How a response ended; None while it runs."""
    ended_at: float | None = None
    """When a response ended, or when its last part did."""
    tasks: tuple[tuple[str, str], ...] = ()
    """(Session, span of the call) of the sub-agents that it started."""
    usage: Usage = _NO_USAGE
    tells_end: bool = True
    """As the last message, it tells how its session ended: no note, unknown record or completed summary does."""


def interpret(source: SourceMessage, session: Any = None) -> Message:
    """Make the spans of a message of the session with the key `session`."""
    at, data, facts = SpanRef(session, source.store_key), source.data, dict[str, Any]()
    if isinstance(data, Assistant):
        spans, facts = _response(source, data, at)
    elif isinstance(data, User):
        spans, facts = _prompt(source, data, at)
    elif isinstance(data, Note):
        spans, facts = [_note(source, data, at)], _facts_of(source, data)
    else:
        own = replace(at, size=len(source.raw))
        spans = [
            Span(
                id=source.id,
                name=source.kind[:PREVIEW],
                operation=Operation.UNKNOWN,
                at=own,
                started_at=seconds(source.started),
            )
        ]
        spans += [_part_span(part, at, source.id) for part in source.parts]
        facts = {"tells_end": False}
    return Message(
        id=source.id,
        role=source.kind,
        spans=tuple(spans),
        size=len(source.raw) + sum([len(part.raw) for part in source.parts]),
        unknown=source.unknown,
        runs=any(span.status is Status.RUNNING for span in spans),
        created=source.started,
        **facts,
    )


def _note(source: SourceMessage, data: Note, at: SpanRef) -> Span:
    code = as_integer(data.exit)
    preview = data.command or data.text or data.outcome or data.name or data.agent or model_of(data.model) or ""
    return Span(
        id=source.id,
        name=data.kind[:PREVIEW],
        operation=Operation.META,
        preview=preview[:PREVIEW],
        note=f"exit {code}" if code else "",
        at=at,
        started_at=seconds(source.started),
    )


def _facts_of(source: SourceMessage, data: Note) -> Record:
    """The end of a turn, if the note is one."""
    if data.kind != "idle":
        return {"tells_end": False}
    status = _END_OF_TURN.get(data.outcome or "", Status.UNKNOWN)
    end = Outcome(status, StatusSource.EXPLICIT, _short(data.outcome)) if status is not Status.UNKNOWN else Outcome()
    return {"end": end, "ended_at": source.started}


def part_alone(part: Part, unknown: Unknown) -> Message:
    """A part of which the message is missing."""
    span = replace(_part_span(part, SpanRef(), ""), parent_id=None)
    return Message(part.id, "part", (span,), len(part.raw), unknown, span.status is Status.RUNNING)


# ---- prompts


def _prompt(source: SourceMessage, data: User, at: SpanRef) -> tuple[list[Span], Record]:
    """A prompt, an addition of the program to it, or the point where it compacts the session."""
    asked = [part for part in source.parts if part.data.in_prompt and not is_synthetic(part)]
    compacts = not asked and any(isinstance(part.data, Compaction) for part in source.parts)
    text = "\n".join(_texts(asked)) or _first(asked, "prompt", "description", "name", "filename", "url")
    first = next((preview for part in source.parts if (preview := _preview(part))), "")
    span = Span(
        id=source.id,
        name="compaction" if compacts else "user",
        operation=Operation.META if compacts else Operation.MESSAGE,
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        preview=(text or first)[:PREVIEW],
        note="" if asked or compacts or not source.parts else "synthetic",
        at=at,
        started_at=seconds(source.started),
    )
    below = [
        _part_span(part, at, source.id)
        for part in source.parts
        if not (part.data.in_prompt or (compacts and isinstance(part.data, Compaction)))
    ]
    facts = {"is_prompt": bool(asked), "text": text, "model": model_of(data.model), "agent": word(data.agent)}
    return [span, *below], facts


def is_synthetic(part: Part) -> bool:
    """Whether the program added a part, not the user."""
    return isinstance(part.data, Text) and (part.data.synthetic is True or part.data.ignored is True)


def _texts(parts: Sequence[Part]) -> list[str]:
    """The texts of parts that are text."""
    return [part.data.text for part in parts if isinstance(part.data, Text) and part.data.text]


def _first(parts: Sequence[Part], *names: str) -> str:
    """The first of these fields with text."""
    return next((text for part in parts for name in names if (text := getattr(part.data, name, None))), "")


# ---- responses


def _response(source: SourceMessage, data: Assistant, at: SpanRef) -> tuple[list[Span], Record]:
    steps, end = steps_of(source.parts), end_of(data)
    used = [_used(parts) for parts in steps]
    if not any(used):
        stated = data.tokens.usage(data.cost)
        if stated is not None and (end is not None or any(msgspec.structs.astuple(stated))):
            used[0] = stated  # all counts are zero before the end
    spans: list[Span] = []
    tasks: list[tuple[str, str]] = []
    for number, parts in enumerate(steps):
        where = replace(at, step=number) if number else at
        outcome = (end or RUNNING) if number == len(steps) - 1 else _step_end(parts)
        span = _step(source, data, parts, where, outcome, used[number], alone=len(steps) == 1)
        spans.append(span)
        for part in parts:
            if not part.data.in_response:
                spans.append(_part_span(part, where, span.id))
                if isinstance(part.data, Tool) and part.data.state.metadata.sub_agent:
                    tasks.append((part.data.state.metadata.sub_agent, part.id))
    ended = data.time.completed
    return spans, {
        "parent": word(data.parentID),
        "text": "\n".join(_texts(source.parts)),
        "model": model_of(data.model, data.modelID),
        "agent": word(data.agent) or word(data.mode),
        "end": end,
        "ended_at": max((time for part in source.parts for time in part.times()), default=None)
        if ended is None
        else ended,
        "tasks": tuple(tasks),
        "usage": _total(used),
        "tells_end": not (data.summary is True and end is not None and end.status is Status.OK),
    }


def end_of(data: Assistant) -> Outcome | None:
    """How a response ended, by its record alone; None while it runs."""
    if data.error is not None and data.error is not False:
        error = error_of(data.error)
        if error.type in _ABORTED:
            return Outcome(Status.CANCELLED, StatusSource.EXPLICIT, error.type)
        return Outcome(Status.ERROR, StatusSource.EXPLICIT, error.type, error)
    if not data.finish and data.time.completed is None:
        return None
    return Outcome(Status.OK, StatusSource.DERIVED, _short(data.finish))


def error_of(value: Any) -> Error:
    """An error: ``{name, data: {message}}``, in opencode 2 ``{type, message}``, or a text."""
    kind = word(mapping(value).get("name")) or word(mapping(value).get("type"))
    message = string(child(value, "data").get("message")) or string(mapping(value).get("message", value))
    return Error(excerpt((message or kind or as_json(value)).strip()), kind and kind[:PREVIEW])


def steps_of(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of a response by its steps: one each, in old messages several."""
    steps: list[list[Part]] = [[]]
    begun = False
    for part in parts:
        if isinstance(part.data, StepStart):
            if begun:
                steps.append([])
            begun = True
        steps[-1].append(part)
    return steps


def _used(parts: Sequence[Part]) -> Usage | None:
    """The usage of a step, as stated at its end."""
    ends = [part.data for part in parts if isinstance(part.data, StepFinish)]
    return _total([end.tokens.usage(end.cost) for end in ends]) or None


def _total(used: Sequence[Usage | None]) -> Usage:
    if len(used) == 1:
        return used[0] or _NO_USAGE
    return sum((usage for usage in used if usage is not None), _NO_USAGE)


def _reason(parts: Sequence[Part]) -> str | None:
    """Why a step finished."""
    return next((word(part.data.reason) for part in parts if isinstance(part.data, StepFinish)), None)


def _step_end(parts: Sequence[Part]) -> Outcome:
    """How a step ended that another one follows."""
    return Outcome(Status.OK, StatusSource.DERIVED, _short(_reason(parts)))


def _step(
    source: SourceMessage,
    data: Assistant,
    parts: Sequence[Part],
    at: SpanRef,
    outcome: Outcome,
    usage: Usage | None,
    *,
    alone: bool,
) -> Span:
    begun, ended = source.started, data.time.completed
    if not alone:
        times = [time for part in parts for time in part.times()]
        begun = min(times, default=None) if at.step else begun
        ended = max(times, default=None)
    model = model_of(data.model, data.modelID)
    notes = ["summary"] if data.summary is True else []
    if outcome.status_word and outcome.status_word not in _EXPECTED and outcome.status is Status.OK:
        notes.append(outcome.status_word)
    return Span(
        id=parts[0].id if at.step else source.id,
        name=model or "assistant",
        operation=Operation.CHAT,
        started_at=seconds(begun),
        duration_ms=since(begun, ended),
        model=model,
        usage=usage,
        preview=_response_preview(parts)[:PREVIEW],
        note=", ".join(notes),
        at=at,
        **outcome._asdict(),
    )


def _response_preview(parts: Sequence[Part]) -> str:
    """The first text, else the first reasoning."""
    texts = _texts(parts)
    return texts[0] if texts else _first([part for part in parts if isinstance(part.data, Reasoning)], "text")


# ---- parts with spans of their own


def _part_span(part: Part, at: SpanRef, parent: str) -> Span:
    data, at = part.data, replace(at, part=part.store_key, part_id=part.id, size=len(part.raw))
    if isinstance(data, Tool):
        return _call(part, data, at, parent)
    operation, facts = Operation.META, dict[str, Any]()
    if isinstance(data, OtherPart):
        operation = Operation.UNKNOWN
    elif isinstance(data, Retry):
        operation, attempt = Operation.OTHER, as_integer(data.attempt)
        facts = Outcome(Status.ERROR, StatusSource.EXPLICIT, None, error_of(data.error))._asdict()
        facts["note"] = "" if attempt is None else f"attempt {attempt}"
    return Span(
        id=part.id,
        name=part.kind[:PREVIEW],
        operation=operation,
        parent_id=parent,
        started_at=seconds(next(iter(part.times()), None)),
        preview=_preview(part),
        at=at,
        **facts,
    )


def _preview(part: Part) -> str:
    files = getattr(part.data, "files", None)
    if isinstance(files, list):
        return ", ".join(name for name in files if isinstance(name, str))[:PREVIEW]
    if isinstance(part.data, Compaction):
        return "automatic" if part.data.auto is True else "asked for"
    return _first([part], "text", "snapshot", "prompt", "name", "title", "hash")[:PREVIEW]


def _call(part: Part, data: Tool, at: SpanRef, parent: str) -> Span:
    state = data.state
    begun, given = state.time.start, state.input
    if b'"filePath"' in bytes(given):
        fields = plain(given)
        path = fields.get("filePath") if isinstance(fields, dict) else None
        preview = argument({"file_path": path} | fields if isinstance(path, str) else fields)
    else:
        preview = preview_of(given)
    return Span(
        id=part.id,
        name=(word(data.tool) or "tool")[:PREVIEW],
        operation=Operation.EXECUTE_TOOL,
        parent_id=parent,
        started_at=seconds(part.created if begun is None else begun),
        duration_ms=since(begun, state.time.end),
        preview=preview,
        at=at,
        **_call_outcome(state)._asdict(),
    )


def _call_outcome(state: ToolState) -> Outcome:
    """The outcome of a call. opencode calls failed commands ``completed``, so the exit code decides."""
    name, metadata = word(state.status), state.metadata
    if name == "error":
        if metadata.interrupted is True:
            return Outcome(Status.CANCELLED, StatusSource.EXPLICIT, "interrupted")
        error = plain(state.error)
        failure = Error(excerpt(error.strip()) or "failed") if isinstance(error, str) else error_of(error)
        if failure.type in _ABORTED:
            return Outcome(Status.CANCELLED, StatusSource.EXPLICIT, failure.type)
        return Outcome(Status.ERROR, StatusSource.EXPLICIT, name, failure)
    if code := as_integer(metadata.exit):
        kind, output = f"exit {code}", string(plain(state.output)) or string(plain(metadata.output)) or ""
        error = Error(excerpt(output.strip()) or kind, kind)
        return Outcome(Status.ERROR, StatusSource.EXIT, name, error)
    return Outcome() if name is None else Outcome(status_of(name), StatusSource.EXPLICIT, _short(name))


# ---- times and texts


def seconds(milliseconds: float | None) -> float | None:
    """A time in seconds."""
    return None if milliseconds is None else milliseconds / 1000


def since(begin: float | None, end: float | None) -> float | None:
    """Milliseconds from `begin` to `end`; None if one is not recorded or they are the wrong way round."""
    return None if begin is None or end is None or end < begin else end - begin


def _short(name: str | None) -> str | None:
    return word(name[:PREVIEW]) if name else None


# ---- bodies


def body_of(span: Span, source: SourceMessage, raw: bytes) -> Body:
    """The body of a span of a message. Raises `FormatError` if its part is not there any more."""
    at: SpanRef = span.at
    if at.part is not None:
        part = next((part for part in source.parts if part.store_key == at.part), None)
        if part is None or part.id != at.part_id:
            raise changed(f"part {at.part_id}")
        return _part_body(part, raw)
    if span.operation is Operation.CHAT:
        return _response_body(source, at.step, raw)
    parts = [
        content
        for part in source.parts
        if not isinstance(part.data, Tool) and (content := _content_of(part)) is not None
    ]
    texts = _texts([part for part in source.parts if not is_synthetic(part)])
    return Body(
        input="\n".join(texts) or None,
        input_messages=(ModelMessage(source.kind, tuple(parts), source.id),) if parts else (),
        attributes=_fields(source) | _rest(source.parts),
        raw=raw,
    )


def _response_body(source: SourceMessage, step: int, raw: bytes) -> Body:
    """One step as one message: reasoning, text, and the calls that it asked for."""
    steps = steps_of(source.parts)
    if step >= len(steps):
        raise changed(f"message {source.id}")
    parts = steps[step]
    content = tuple(part_content for part in parts if (part_content := _content_of(part)) is not None)
    finish = _reason(parts) or word(getattr(source.data, "finish", None))
    return Body(
        output="\n".join(part.text for part in content if isinstance(part, ModelText)) or None,
        output_messages=(ModelMessage("assistant", content, source.id, finish),) if content else (),
        attributes=(_fields(source) if step == 0 else {}) | _rest([part for part in parts if part.data.in_response]),
        raw=raw,
    )


def _part_body(part: Part, raw: bytes) -> Body:
    fields = part.fields()
    if not isinstance(part.data, Tool):
        return Body(attributes=fields, raw=raw)
    state, named = fields.get("state"), part.data.state.metadata.sub_agent
    given, output = mapping(state).get("input"), mapping(state).get("output")
    if isinstance(state, dict):
        metadata, state = child(state, "metadata"), without(state, "input", "output")
        if isinstance(output, str) and metadata.get("output") == output:
            state["metadata"] = without(metadata, "output")  # opencode keeps it twice
        fields["state"] = state
    return Body(
        input=given,
        output=output,
        attributes=fields,
        links=(Link("sub-agent", run=named),) if named else (),
        raw=raw,
    )


def _content_of(part: Part) -> ModelPart | None:
    """A part of a message as the model has it; None if it is no content."""
    data = part.data
    if isinstance(data, Text):
        return None if data.text is None else ModelText(data.text)
    if isinstance(data, Reasoning):
        return ModelReasoning(data.text) if data.text else None
    if isinstance(data, Tool):
        return ToolCall(word(data.callID), word(data.tool) or "tool", plain(data.state.input))
    return Blob(part.kind, part.record()) if isinstance(data, (Attachment, Agent, Subtask)) else None


def _fields(source: SourceMessage) -> Record:
    """All fields of a message except its role."""
    fields = source.fields()
    return without(fields, "role") if isinstance(fields.get("role"), str) else fields


def _rest(parts: Sequence[Part]) -> Record:
    """All fields of these parts except their text."""
    rest = [part.fields() for part in parts]
    for part, fields in zip(parts, rest, strict=True):
        if isinstance(part.data, (Text, Reasoning)) and part.data.text is not None:
            fields.pop("text", None)
    return {"parts": rest} if rest else {}

"""Everything that a session says about one span: a message, the parts of one of its steps, one of its parts alone."""

from __future__ import annotations

import json
from typing import Any

import orjson

from tracetui.errors import FormatError
from tracetui.formats.opencode.records import At, Message, Part, Record
from tracetui.formats.opencode.spans import is_synthetic, steps_of
from tracetui.formats.scalars import child, string, without, word
from tracetui.model import Blob, Body, Link, Operation, Reasoning, Span, Text, ToolCall
from tracetui.model import Message as Said
from tracetui.model import Part as SaidPart

_OWN_SPAN = frozenset({"text", "reasoning", "file", "step-start", "step-finish"})
"""Parts of a response that no span of their own shows."""


def body_of(span: Span, message: Message, raw: bytes) -> Body:
    """The body of a span of `message`. Raises `FormatError` if its part is not there any more."""
    at: At = span.at
    if at.part is not None:
        return _part(next((part for part in message.parts if part.place == at.part), None), at, raw)
    if span.operation is Operation.CHAT:
        return _response(message, at.step, raw)
    return _asked(message, raw)


def changed(where: str) -> FormatError:
    """The error of a body whose record is not the one that was read."""
    return FormatError("the session changed: another record is there now", where)


def _asked(message: Message, raw: bytes) -> Body:
    said = [_said(part) for part in message.parts if part.kind != "tool"]
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


def _response(message: Message, step: int, raw: bytes) -> Body:
    """One step as one message: what the model thought and said, and the calls that it asked for."""
    steps = steps_of(message.parts)
    if step >= len(steps):
        raise changed(f"message {message.id}")
    parts = steps[step]
    said = tuple(found for part in parts if (found := _said(part)) is not None)
    texts = [part.text for part in said if isinstance(part, Text)]
    finish = next((word(part.data.get("reason")) for part in parts if part.kind == "step-finish"), None)
    told = Said("assistant", said, message.id, finish or word(message.data.get("finish")))
    return Body(
        output="\n".join(texts) or None,
        output_messages=(told,) if said else (),
        attributes=(_fields(message) if step == 0 else {}) | _rests(parts, _OWN_SPAN),
        raw=raw,
    )


def _part(part: Part | None, at: At, raw: bytes) -> Body:
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


def _said(part: Part) -> SaidPart | None:
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

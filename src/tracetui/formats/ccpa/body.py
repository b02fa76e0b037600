"""Everything that a ccpa trace says about one span, read again from the lines that it came from."""

from __future__ import annotations

from typing import Any

from tracetui.formats.ccpa.records import At, blocks_of, first_string, is_call, kind_of
from tracetui.formats.ccpa.spans import (
    call_span,
    hook_span,
    other_span,
    prompt_span,
    result_span,
    skill_span,
    turn_span,
)
from tracetui.formats.places import changed, record_at
from tracetui.formats.scalars import string, without
from tracetui.model import Blob, Body, Message, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File

Record = dict[str, Any]


def body_of(file: File, span: Span) -> Body:
    """The body of a span that `Ccpa.read` made; raises `FormatError` if the file holds another record there now."""
    at = span.at
    if not isinstance(at, At):
        raise changed()
    record, data = record_at(file, at.offset, at.size, many=at.block > 0)
    if at.block >= 0:
        return _call_body(file, span, data, record)
    _verify(span, _again(record, span))
    kind = kind_of(record)
    if kind == "user_prompt":
        return _prompt_body(record, data)
    if kind == "assistant_turn":
        return _turn_body(record, data)
    if kind == "tool_result":
        return Body(output=record.get("content"), attributes=_answer(record), raw=data)
    if kind == "hook_event":
        return Body(output=record.get("output"), attributes=without(record, "output"), raw=data)
    if kind == "skill_invocation":
        return Body(input=record.get("args"), attributes=without(record, "args"), raw=data)
    return Body(attributes=record, raw=data)


def _again(record: Record, span: Span) -> Span:
    """The span that this record would be now."""
    match kind_of(record):
        case "user_prompt":
            return prompt_span(record, 0, span.at)
        case "assistant_turn":
            return turn_span(record, 0, span.at, span.name)
        case "tool_result":
            return result_span(record, 0, span.at)
        case "hook_event":
            return hook_span(record, 0, span.at)
        case "skill_invocation":
            return skill_span(record, 0, span.at)
        case _:
            return other_span(record, 0, span.at)


def _verify(span: Span, again: Span) -> None:
    """Raise `FormatError` unless both tell the same call, turn or event."""
    if (span.operation, span.name, span.step, span.preview) != (again.operation, again.name, again.step, again.preview):
        raise changed(f"byte {span.at.offset}")


def _prompt_body(record: Record, data: bytes) -> Body:
    text, attached = record.get("text"), record.get("attachments")
    parts: list[Part] = [Text(text)] if isinstance(text, str) else []
    parts += [Blob("attachment", one) for one in attached] if isinstance(attached, list) else []
    messages = (Message("user", tuple(parts)),) if parts else ()
    return Body(input=text, input_messages=messages, attributes=without(record, "text"), raw=data)


def _turn_body(record: Record, data: bytes) -> Body:
    """The turn as a message; `output` is its text, or all its blocks where they are not only text."""
    blocks, attributes = blocks_of(record), without(record, "blocks")
    if not blocks:
        attributes["blocks"] = record.get("blocks")
    parts = []
    for place, block in enumerate(blocks):
        part, rest = _part(block)
        parts.append(part)
        if rest:
            attributes[f"blocks[{place}]"] = rest
    texts = [part.text for part in parts if isinstance(part, Text)]
    return Body(
        output=("\n".join(texts) if len(texts) == len(parts) else blocks) if parts else None,
        output_messages=(Message("assistant", tuple(parts), finish_reason=string(record.get("stop_reason"))),)
        if parts
        else (),
        attributes=attributes,
        raw=data,
    )


def _part(block: Any) -> tuple[Part, Record]:
    """A block as part of a message, and what the part has no place for."""
    if not isinstance(block, dict):
        return Blob("block", block), {}
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"]), without(block, "type", "text")
    if kind == "thinking":
        name = "thinking" if isinstance(block.get("thinking"), str) else "text"
        if isinstance(block.get(name), str):
            return Reasoning(block[name]), without(block, "type", name)
    if is_call(block) and isinstance(block.get("name"), str):
        ident = string(block.get("id"))
        shown = ("type", "name", "input") if ident is None else ("type", "name", "input", "id")
        return ToolCall(ident, block["name"], block.get("input")), without(block, *shown)
    return Blob(kind if isinstance(kind, str) else "block", block), {}


def _call_body(file: File, span: Span, data: bytes, record: Record) -> Body:
    """The call's block and its result's record as one; where both have a field, the result's is ``result.FIELD``."""
    at: At = span.at
    blocks = blocks_of(record)
    if at.block >= len(blocks) or not is_call(blocks[at.block]):
        raise changed(f"byte {at.offset}")
    block = blocks[at.block]
    _verify(span, call_span(block, "", at.block, at, span.step))
    attributes = without(block, "input")
    if at.answer < 0:
        return Body(input=block.get("input"), attributes=attributes, raw=data)
    answer, answer_data = record_at(file, at.answer, at.answer_size)
    if first_string(answer, "tool_use_id") != block.get("id"):
        raise changed(f"byte {at.answer}")
    for key, value in _answer(answer).items():
        attributes[f"result.{key}" if key in attributes else key] = value
    return Body(
        input=block.get("input"),
        output=answer.get("content"),
        attributes=attributes,
        raw=data + b"\n" + answer_data,
    )


def _answer(record: Record) -> Record:
    """The fields of a result beside its content, side effects among them."""
    effects = record.get("side_effects")
    if not isinstance(effects, dict):
        return without(record, "content")
    attributes = without(record, "content", "side_effects")
    for key, value in effects.items():
        attributes[f"side_effects.{key}" if key in attributes else key] = value
    return attributes

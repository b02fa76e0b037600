"""Bodies: the lines of a span, read again."""

from __future__ import annotations

from typing import Any

from tracetui.formats.ccpa.records import SCHEMA, Turn
from tracetui.formats.jsonl import At
from tracetui.formats.places import changed, record_at
from tracetui.formats.scalars import sequence, string, without
from tracetui.model import Blob, Body, Message, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File

Record = dict[str, Any]


def body_of(file: File, span: Span) -> Body:
    """The body of a span; raises `FormatError` if the file holds another record there now."""
    at = span.at
    if not isinstance(at, At):
        raise changed()
    record, data = record_at(file, at.offset, at.length, many=at.block > 0)
    typed = SCHEMA.convert(record, {})
    if at.block >= 0:
        return _call_body(file, span, data, record, typed)
    _verify(span, typed.row(span.id, at, span.name))
    kind = record.get("kind")
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


def _verify(span: Span, again: Span) -> None:
    """Raise `FormatError` unless both are the same call, turn or event."""
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
    blocks, attributes = sequence(record.get("blocks")), without(record, "blocks")
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
    if kind == "tool_use" and isinstance(block.get("name"), str):
        ident = string(block.get("id"))
        shown = ("type", "name", "input") if ident is None else ("type", "name", "input", "id")
        return ToolCall(ident, block["name"], block.get("input")), without(block, *shown)
    return Blob(kind if isinstance(kind, str) else "block", block), {}


def _call_body(file: File, span: Span, data: bytes, record: Record, turn: Any) -> Body:
    """The call's block and its result's record as one; where both have a field, the result's is ``result.FIELD``."""
    at: At = span.at
    typed = turn.blocks[at.block] if isinstance(turn, Turn) and at.block < len(turn.blocks) else None
    if typed is None or typed.type != "tool_use":
        raise changed(f"byte {at.offset}")
    _verify(span, typed.call("", at.block, at, span.step).span())
    block: Record = record["blocks"][at.block]
    attributes = without(block, "input")
    if not at.more:
        return Body(input=block.get("input"), attributes=attributes, raw=data)
    answer, answer_data = record_at(file, *at.more[0])
    if answer.get("tool_use_id") != block.get("id"):
        raise changed(f"byte {at.more[0][0]}")
    for key, value in _answer(answer).items():
        attributes[f"result.{key}" if key in attributes else key] = value
    return Body(
        input=block.get("input"),
        output=answer.get("content"),
        attributes=attributes,
        raw=data + b"\n" + answer_data,
    )


def _answer(record: Record) -> Record:
    """The fields of a result but its content, with its side effects."""
    effects = record.get("side_effects")
    if not isinstance(effects, dict):
        return without(record, "content")
    attributes = without(record, "content", "side_effects")
    for key, value in effects.items():
        attributes[f"side_effects.{key}" if key in attributes else key] = value
    return attributes

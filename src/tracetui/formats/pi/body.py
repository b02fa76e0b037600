"""Everything that a session says about one span, read again from the lines that it came from."""

from __future__ import annotations

from itertools import count
from typing import Any

from tracetui.formats.agent_log import Made, blocks_of, kind_of, type_of
from tracetui.formats.jsonl import At
from tracetui.formats.places import changed, record_at
from tracetui.formats.scalars import mapping, text, without
from tracetui.model import Blob, Body, Message, Operation, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File

Record = dict[str, Any]


def body_of(file: File, span: Span) -> Body:
    """The body of a span that `read` made; raises `FormatError` if the file holds other records there now."""
    at = span.at
    if isinstance(at, Made):
        return Body(attributes={key: value for key, value in at.facts if value})
    if not isinstance(at, At):
        raise changed()
    found = [record_at(file, *line, many=at.block > 0) for line in at.places]
    records, raw = [record for record, _ in found], b"\n".join(data for _, data in found)
    if span.operation is Operation.META:
        return Body(attributes={f"{n}. {kind_of(one)[:120]}": one for n, one in enumerate(records, 1)}, raw=raw)
    if at.block >= 0:
        return _call(records, at, raw)
    if span.operation in (Operation.CHAT, Operation.MESSAGE):
        return _said(records[0], raw, outside=span.operation is Operation.MESSAGE)
    if span.operation is Operation.EXECUTE_TOOL:
        return _answer(records[0], raw)
    summary = text(records[0].get("summary")) if kind_of(records[0]) == "compaction" else None
    return Body(output=summary, attributes=without(records[0], *(["summary"] if summary else [])), raw=raw)


def _said(record: Record, raw: bytes, *, outside: bool) -> Body:
    """What was said as one message; what is no part of it is among the attributes."""
    message = message_of(record)
    name = "content" if isinstance(message.get("content"), str | list) or "summary" not in message else "summary"
    told = [key for key in ("role", "stopReason") if text(message.get(key)) is not None]
    content, attributes = message.get(name), _envelope(record, name, *told)
    parts: list[Part] = []
    for place, block in enumerate(blocks_of(content)):
        part, rest = _part(block)
        parts.append(part)
        if rest:
            attributes[_free(f"content[{place}]", attributes)] = rest
    if not isinstance(content, str | list) and content is not None:
        attributes[name] = content
    said = "\n".join(part.text for part in parts if isinstance(part, Text)) or None
    whole = Message(
        text(message.get("role")) or kind_of(record),
        tuple(parts),
        text(message.get("responseId")),
        text(message.get("stopReason")),
    )
    if outside:
        return Body(input=said, input_messages=(whole,), attributes=attributes, raw=raw)
    return Body(output=said, output_messages=(whole,), attributes=attributes, raw=raw)


def _call(records: list[Record], at: At, raw: bytes) -> Body:
    """A call with its answers: what they say besides is under ``result``."""
    blocks = blocks_of(message_of(records[0]).get("content"))
    block = blocks[at.block] if at.block < len(blocks) else None
    if not isinstance(block, dict):
        raise changed(f"byte {at.offset}")
    attributes, output = without(block, "arguments"), None
    for answer in records[1:]:
        output = _output(message_of(answer).get("content"))
        attributes[_free("result", attributes)] = _envelope(answer, "role", "content")
    return Body(input=block.get("arguments"), output=output, attributes=attributes, raw=raw)


def _answer(record: Record, raw: bytes) -> Body:
    """A command of the user, or an answer whose call is not known."""
    message = message_of(record)
    given, name = ("command", "output") if "command" in message else ("", "content")
    attributes = _envelope(record, "role", given, name)
    return Body(input=message.get(given), output=_output(message.get(name)), attributes=attributes, raw=raw)


def _output(content: Any) -> Any:
    """What a tool answered: its text, where that is all of it."""
    blocks = blocks_of(content)
    return "\n".join([block["text"] for block in blocks]) if blocks and all(map(_is_plain, blocks)) else content


def _is_plain(block: Any) -> bool:
    """Whether a block is a text and nothing else."""
    return type_of(block) == "text" and isinstance(block.get("text"), str) and len(block) == 2


def _envelope(record: Record, *taken: str) -> Record:
    """The fields of a record, with those of its message but the ones that are `taken`."""
    if not isinstance(record.get("message"), dict):
        return without(record, *taken) if message_of(record) is record else dict(record)
    rest = without(record["message"], *taken)
    return {key: rest if key == "message" else value for key, value in record.items()}


def _free(name: str, attributes: Record) -> str:
    """`name`, or the same with a number, if it is taken."""
    return next(one for number in count(1) if (one := name if number == 1 else f"{name} {number}") not in attributes)


def _part(block: Any) -> tuple[Part, Any]:
    """A block of a message as a part of it, and what the part does not show."""
    kind = type_of(block)
    if isinstance(block, str):
        return Text(block), None
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"]), without(block, "type", "text")
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return Reasoning(block["thinking"]), without(block, "type", "thinking")
    if kind == "toolCall" and isinstance(block.get("name"), str):
        call = ToolCall(text(block.get("id")), block["name"], block.get("arguments"))
        return call, without(block, "type", "arguments", "name", *(["id"] if call.id else []))
    return Blob(kind or "block", block), None


def message_of(record: Record) -> Record:
    """The message of a record; that of an extension, or about a branch, is the record itself."""
    return record if kind_of(record) in ("custom_message", "branch_summary") else mapping(record.get("message"))

"""Bodies of spans, from the lines that they came from."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tracetui.formats.agent_log import CHAT, EXECUTE_TOOL, MESSAGE, META, Made
from tracetui.formats.bodies import (
    add_field,
    block_of,
    blocks_of,
    convert_each,
    kind_of,
    message_body,
    notes_body,
    part_of,
    records_of,
    type_of,
)
from tracetui.formats.jsonl import At
from tracetui.formats.scalars import mapping, text, without
from tracetui.model import Body, Message, Span
from tracetui.sources.base import File

Record = dict[str, Any]
_part: Final = partial(part_of, call="toolCall", arguments="arguments")


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if the file has other records there now."""
    at = span.at
    if isinstance(at, Made):
        return Body(attributes={key: value for key, value in at.facts if value})
    records, raw = records_of(file, at)
    if span.operation is META:
        return notes_body(records, raw)
    if at.block >= 0:
        return _call(records, at, raw)
    if span.operation in (CHAT, MESSAGE):
        return _message(records[0], raw, is_output=span.operation is CHAT)
    if span.operation is EXECUTE_TOOL:
        message = message_of(records[0])
        given, output = ("command", "output") if "command" in message else ("", "content")
        attributes = _envelope(records[0], "role", given, output)
        return Body(input=message.get(given), output=_output(message.get(output)), attributes=attributes, raw=raw)
    summary = text(records[0].get("summary")) if kind_of(records[0]) == "compaction" else None
    return Body(output=summary, attributes=without(records[0], *(["summary"] if summary else [])), raw=raw)


def _message(record: Record, raw: bytes, *, is_output: bool) -> Body:
    message = message_of(record)
    name = "content" if isinstance(message.get("content"), str | list) or "summary" not in message else "summary"
    content, role, reason = message.get(name), text(message.get("role")), text(message.get("stopReason"))
    attributes = _envelope(record, name, *(["role"] if role else []), *(["stopReason"] if reason else []))
    parts = convert_each("content", enumerate(blocks_of(content)), _part, attributes)
    if not isinstance(content, str | list) and content is not None:
        attributes[name] = content
    found = Message(role or kind_of(record), tuple(parts), text(message.get("responseId")), reason)
    return message_body(found, attributes, raw, is_output=is_output)


def _call(records: list[Record], at: At, raw: bytes) -> Body:
    """A tool call; the fields of each answer beside its output are under ``result``."""
    block = block_of(message_of(records[0]).get("content"), at)
    attributes, output = without(block, "arguments"), None
    for answer in records[1:]:
        output = _output(message_of(answer).get("content"))
        add_field(attributes, "result", _envelope(answer, "role", "content"))
    return Body(input=block.get("arguments"), output=output, attributes=attributes, raw=raw)


def _output(content: Any) -> Any:
    """The output of a tool: its text, where that is all of it."""
    blocks = blocks_of(content)
    is_text = all(
        type_of(block) == "text" and isinstance(block.get("text"), str) and len(block) == 2 for block in blocks
    )
    return "\n".join([block["text"] for block in blocks]) if blocks and is_text else content


def _envelope(record: Record, *names: str) -> Record:
    """The fields of a record, its message without the fields `names`."""
    if not isinstance(record.get("message"), dict):
        return without(record, *names) if message_of(record) is record else dict(record)
    return record | {"message": without(record["message"], *names)}


def message_of(record: Record) -> Record:
    """The message of a record; that of an extension, or about a branch, is the record itself."""
    return record if kind_of(record) in ("custom_message", "branch_summary") else mapping(record.get("message"))

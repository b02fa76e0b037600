"""Bodies of spans, from the lines that they came from."""

from __future__ import annotations

import re
from typing import Any, Final

from tracetui.formats.agent_log import CHAT, INVOKE_AGENT, MESSAGE, META, SyntheticRef
from tracetui.formats.bodies import (
    SpanRef,
    add_field,
    block_of,
    blocks_of,
    changed,
    kind_of,
    message_body,
    notes_body,
    part_of,
    records_of,
    type_of,
)
from tracetui.formats.claude_code.parts import meta_of, part_at
from tracetui.formats.scalars import mapping, text, without
from tracetui.model import Body, Link, Message, Part, Reasoning, Span, ToolCall
from tracetui.sources.base import File

Record = dict[str, Any]

SPILLED_LIMIT: Final = 8 << 20
"""Bytes that are read of a tool result that was too long to stay in the session."""
_SPILLED: Final = re.compile(r"tool-results[/\\]([A-Za-z0-9_.-]{1,160})")


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if the file has other records there now."""
    at = span.at
    if isinstance(at, SyntheticRef):
        return _made(file, span, at)
    records, raw = records_of(file, at)
    if span.operation in (CHAT, MESSAGE):
        return _message(records, raw, is_response=span.operation is CHAT)
    ref = SpanRef.of(at)
    if ref.block >= 0:
        return _call(file, records, ref, raw)
    return notes_body(records, raw) if span.operation is META else Body(attributes=records[0], raw=raw)


def _message(records: list[Record], raw: bytes, *, is_response: bool) -> Body:
    """The lines of a message as one; attributes that they share are there once.

    Tool results in the record of a prompt are the output of their calls.
    """
    parts: list[Part] = []
    attributes, index = _envelope(records[0]), 0
    for number, record in enumerate(records, 1):
        for block in blocks_of(_content(record)):
            if is_response or not _is_result(block):
                part, rest = part_of(block, call="tool_use", arguments="input")
                if isinstance(part, Reasoning) and not part.text:  # only the signature is recorded
                    rest = block
                else:
                    parts.append(part)
                    rest = {"type": block["type"], **rest} if rest or isinstance(part, ToolCall) else rest
                _add(attributes, f"content[{index}]", rest)
            index += 1
        changes = {key: value for key, value in _envelope(record).items() if records[0].get(key) != value}
        _add(attributes, f"line {number}", changes if number > 1 else None)
    message = mapping(records[-1].get("message"))
    role, reason = text(message.get("role")) or kind_of(records[-1]), text(message.get("stop_reason"))
    joined = Message(role, tuple(parts), text(message.get("id")), reason)
    return message_body(joined, attributes, raw, is_output=is_response)


def _call(main: File, records: list[Record], at: SpanRef, raw: bytes) -> Body:
    """A tool call with its results, or a result without a call.

    A field of a result that the call has too is ``result.FIELD`` or, of its record, ``record.FIELD``.
    """
    block, output = block_of(_content(records[0]), at), None
    if not _is_call(block):
        attributes = without(block, "content") | {
            f"record.{key}": value for key, value in _envelope(records[0]).items()
        }
        return Body(output=block.get("content"), attributes=attributes, raw=raw)
    attributes = without(block, "input")
    for record, line in zip(records[1:], at.ranges[1:], strict=True):
        same = (
            same_block
            for same_block in blocks_of(_content(record))
            if mapping(same_block).get("tool_use_id") == block.get("id")
        )
        result = next(filter(_is_result, same), None)
        if result is None:
            raise changed(f"byte {line[0]}")
        output = result.get("content")
        for prefix, fields in (("result.", without(result, "content")), ("record.", _envelope(record))):
            for key, value in fields.items():
                if key in attributes:
                    _add(attributes, f"{prefix}{key}", value)
                elif value is not None and value != {}:
                    attributes[key] = value
    spilled = _spilled(main, output)
    if spilled is not None:
        attributes["result.content"] = output
        attributes["result.file"], output = spilled
    return Body(input=block.get("input"), output=output, attributes=attributes, raw=raw)


def _spilled(main: File, output: Any) -> tuple[str, str] | None:
    """Path and text of the file with a tool result too long for the session, which names it."""
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks_of(output)]
    result = "\n".join(shown_text for shown_text in texts if isinstance(shown_text, str))
    named = _SPILLED.search(result) if "<persisted-output>" in result else None
    if named is None:
        return None
    folder = f"{main.name.removesuffix('.jsonl')}/tool-results"
    for entry in main.folder(folder).entries:
        if entry.name == named[1] and entry.skipped is None:
            try:
                with main.other(f"{folder}/{named[1]}") as other:
                    return f"{folder}/{named[1]}", other.read(0, SPILLED_LIMIT).decode("utf-8", "replace")
            except OSError:
                return None
    return None


def _made(file: File, span: Span, at: SyntheticRef) -> Body:
    """A span without a record: a sub-agent, an abandoned branch."""
    attributes: Record = {key: value for key, value in at.facts if value}
    if span.operation is not INVOKE_AGENT:
        return Body(attributes=attributes)
    raw = b""
    if at.part:
        _, meta, raw = meta_of(file, part_at(file, at.part))
        attributes |= {"file": at.part} | meta
    links = (Link("started by", span=span.parent_id),) if span.parent_id else ()
    return Body(attributes=attributes, links=links, raw=raw)


def _envelope(record: Record) -> Record:
    """The fields of a record, its message without the content if that is a text or blocks."""
    message, content = record.get("message"), _content(record)
    envelope = record | {"message": without(message, "content")} if isinstance(message, dict) else dict(record)
    return envelope if isinstance(content, str | list) else envelope | {"content": content}


def _add(attributes: Record, name: str, value: Any) -> None:
    if value is not None and value != {}:
        add_field(attributes, name, value)


def _content(record: Record) -> Any:
    """The content of a message, or the prompt in an attachment."""
    attachment = mapping(record.get("attachment"))
    return attachment.get("prompt") if attachment else mapping(record.get("message")).get("content")


def _is_call(block: Any) -> bool:
    """Whether a block is a tool call, ours or the server's."""
    return type_of(block).endswith("tool_use")


def _is_result(block: Any) -> bool:
    return type_of(block).endswith("tool_result")

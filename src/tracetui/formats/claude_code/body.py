"""Everything that a session says about one span, read again from the lines that it came from."""

from __future__ import annotations

import re
from typing import Any, Final

from tracetui.formats.agent_log import CHAT, INVOKE_AGENT, MESSAGE, META, Made, blocks_of, kind_of, type_of
from tracetui.formats.claude_code.parts import meta_of, part_at
from tracetui.formats.jsonl import At
from tracetui.formats.kept import opened
from tracetui.formats.places import changed, record_at
from tracetui.formats.scalars import mapping, text, without
from tracetui.model import Blob, Body, Link, Message, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File

Record = dict[str, Any]

SPILLED_LIMIT: Final = 8 << 20
"""Bytes that are read of an answer that was too long to stay in the session."""
_SPILLED: Final = re.compile(r"tool-results[/\\]([A-Za-z0-9_.-]{1,160})")


def body_of(file: File, span: Span) -> Body:
    """The body of a span that the reader made; raises `FormatError` if the file holds other records there now."""
    at = span.at
    if isinstance(at, Made):
        return _made_up(file, span, at)
    if not isinstance(at, At):
        raise changed()
    if not at.part:
        return _of_lines(file, file, span, at)
    with opened(file, at.part) as other:
        return _of_lines(file, other, span, at)


def _of_lines(main: File, file: File, span: Span, at: At) -> Body:
    found = [record_at(file, *line, many=at.block > 0) for line in at.places]
    records = [record for record, _ in found]
    raw = b"\n".join(data for _, data in found)
    if span.operation is CHAT:
        return _response(records, raw, at)
    if span.operation is MESSAGE:
        return _message(records[0], raw)
    if at.block >= 0:
        block = _block(records[0], at)
        return _call(main, block, records[1:], at, raw) if is_call(block) else _answer_alone(records[0], block, raw)
    if span.operation is not META:
        return Body(attributes=records[0], raw=raw)
    return Body(attributes={f"{n}. {kind_of(one)[:120]}": one for n, one in enumerate(records, 1)}, raw=raw)


def _message(record: Record, raw: bytes) -> Body:
    """What was said in the user's name; answers to calls in the same record are those calls' output."""
    content, attributes = content_of(record), _envelope(record)
    parts: list[Part] = []
    for place, block in enumerate(blocks_of(content)):
        if not is_answer(block):
            part, rest = _part(block)
            if part is not None:
                parts.append(part)
            _put(attributes, f"content[{place}]", rest)
    if not isinstance(content, str | list):
        attributes["content"] = content
    role = text(mapping(record.get("message")).get("role")) or kind_of(record)
    said = text_in(content)
    return Body(input=said or None, input_messages=(Message(role, tuple(parts)),), attributes=attributes, raw=raw)


def _response(records: list[Record], raw: bytes, at: At) -> Body:
    """A response as one message; `output` is its text. What its lines say alike stands there once."""
    if kind_of(records[0]) != "assistant":
        raise changed(f"byte {at.offset}")
    attributes: Record = {}
    parts: list[Part] = []
    place = 0
    for line, record in enumerate(records):
        content = content_of(record)
        for block in blocks_of(content):
            part, rest = _part(block)
            if part is not None:
                parts.append(part)
            _put(attributes, f"content[{place}]", rest)
            place += 1
        envelope = _envelope(record) if isinstance(content, str | list) else _envelope(record) | {"content": content}
        _put(attributes, f"line {line + 1}", {k: v for k, v in envelope.items() if line == 0 or records[0].get(k) != v})
    first = attributes.pop("line 1", {})
    texts = [part.text for part in parts if isinstance(part, Text)]
    message = mapping(records[-1].get("message"))
    said = Message(
        text(message.get("role")) or "assistant",
        tuple(parts),
        text(message.get("id")),
        text(message.get("stop_reason")),
    )
    return Body(output="\n".join(texts) or None, output_messages=(said,), attributes=first | attributes, raw=raw)


def _call(main: File, block: Record, answers: list[Record], at: At, raw: bytes) -> Body:
    """A call with its answers; where a name is taken, the answer's is ``result.FIELD``."""
    attributes, output = without(block, "input"), None
    for record, line in zip(answers, at.more, strict=True):
        same = (one for one in blocks_of(content_of(record)) if mapping(one).get("tool_use_id") == block.get("id"))
        answer = next(filter(is_answer, same), None)
        if answer is None:
            raise changed(f"byte {line[0]}")
        output = answer.get("content")
        for prefix, told in (("result.", without(answer, "content")), ("record.", _envelope(record))):
            for key, value in told.items():
                _put(attributes, f"{prefix}{key}" if key in attributes else key, value)
    spilled = _spilled(main, output)
    if spilled is not None:
        attributes["result.content"] = output
        attributes["result.file"], output = spilled
    return Body(input=block.get("input"), output=output, attributes=attributes, raw=raw)


def _answer_alone(record: Record, block: Record, raw: bytes) -> Body:
    attributes = without(block, "content") | {f"record.{key}": value for key, value in _envelope(record).items()}
    return Body(output=block.get("content"), attributes=attributes, raw=raw)


def _spilled(main: File, output: Any) -> tuple[str, str] | None:
    """Name and text of the file that holds an answer too long for the session, by its name among those there."""
    said = text_in(output)
    named = _SPILLED.search(said) if "<persisted-output>" in said else None
    if named is None:
        return None
    folder = f"{main.name.removesuffix('.jsonl')}/tool-results"
    for entry in main.folder(folder).entries:
        if entry.path.rpartition("/")[2] == named[1] and entry.skipped is None:
            try:
                with main.other(f"{folder}/{named[1]}") as other:
                    return f"{folder}/{named[1]}", other.read(0, SPILLED_LIMIT).decode("utf-8", "replace")
            except OSError:
                return None
    return None


def _made_up(file: File, span: Span, at: Made) -> Body:
    """A span that no record stands for: a sub-agent, an abandoned branch."""
    attributes: Record = {key: value for key, value in at.facts if value}
    if span.operation is not INVOKE_AGENT:
        return Body(attributes=attributes)
    raw = b""
    if at.part:
        _, found, raw = meta_of(file, part_at(file, at.part))
        attributes |= {"file": at.part} | found
    links = (Link("started by", span=span.parent_id),) if span.parent_id else ()
    return Body(attributes=attributes, links=links, raw=raw)


def _block(record: Record, at: At) -> Record:
    blocks = blocks_of(content_of(record))
    if at.block >= len(blocks) or not isinstance(blocks[at.block], dict):
        raise changed(f"byte {at.offset}")
    found: Record = blocks[at.block]
    return found


def _envelope(record: Record) -> Record:
    """The fields of a record around what was said."""
    message = record.get("message")
    if not isinstance(message, dict):
        return dict(record)
    rest = without(message, "content")
    return {key: rest if key == "message" else value for key, value in record.items()}


def _part(block: Any) -> tuple[Part | None, Any]:
    """A block of a message as a part of it, and what the part does not show. Of most thoughts only a seal is kept."""
    kind = type_of(block)
    if isinstance(block, str):
        return Text(block), None
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"]), without(block, "text") if len(block) > 2 else None
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        if not block["thinking"]:
            return None, block
        return Reasoning(block["thinking"]), without(block, "thinking") if len(block) > 2 else None
    if is_call(block) and isinstance(block.get("name"), str):
        call = ToolCall(text(block.get("id")), block["name"], block.get("input"))
        return call, without(block, "input", "name", *(["id"] if call.id else []))
    return Blob(kind or "block", block), None


def _put(attributes: Record, key: str, value: Any) -> None:
    """Put a value among the attributes, if there is one, under a name that is free."""
    if value is None or value == {}:
        return
    name, number = key, 2
    while name in attributes:
        name, number = f"{key} ({number})", number + 1
    attributes[name] = value


def content_of(record: Record) -> Any:
    """What the message of a record holds."""
    return mapping(record.get("message")).get("content")


def is_call(block: Any) -> bool:
    """Whether a block calls a tool, ours or the server's."""
    return type_of(block).endswith("tool_use")


def is_answer(block: Any) -> bool:
    """Whether a block is the answer to such a call."""
    return type_of(block).endswith("tool_result")


def text_in(content: Any) -> str:
    """The text of a message or of a tool's answer."""
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks_of(content)]
    return "\n".join(one for one in texts if isinstance(one, str))

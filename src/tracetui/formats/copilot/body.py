"""Bodies: the lines of a span, read again."""

from __future__ import annotations

from typing import Any, Final

from tracetui.formats.agent_log import CHAT, EXECUTE_TOOL, MESSAGE
from tracetui.formats.copilot.records import SCHEMA, Content, kind_of
from tracetui.formats.places import LinesAt, Named, changed, records_at
from tracetui.formats.scalars import mapping
from tracetui.model import Body, Message, Span, Text
from tracetui.sources.base import File

_ENCRYPTED: Final = ("encryptedContent", "reasoningOpaque")


def body_of(file: File, span: Span) -> Body:
    """The body of a span; calls and responses have their attributes by kind of event.

    Raises `FormatError` if something else is there now.
    """
    if not isinstance(span.at, LinesAt):
        raise changed()
    found = records_at(file, span.at.places)
    operation, content, attributes = span.operation, Content(), Named()
    is_flat = operation is MESSAGE or (len(found) == 1 and operation not in (CHAT, EXECUTE_TOOL))
    for record, _ in found:
        event, fields = SCHEMA.convert(record, {}), dict(mapping(record.get("data")))
        if operation in (CHAT, MESSAGE, EXECUTE_TOOL):
            event.data.show(content, fields)
        rest = attributes_of(record, fields)
        if is_flat:
            attributes.flat(rest)
        else:
            attributes.add(kind_of(event), rest)
    parts, raw = tuple(content.parts), b"\n".join(data for _, data in found)
    if operation is MESSAGE:
        message = Message(content.role, parts)
        return Body(input=content.input, input_messages=(message,), attributes=attributes.fields, raw=raw)
    if operation is CHAT:
        text = "\n".join(part.text for part in parts if isinstance(part, Text) and part.text)
        messages = (Message("assistant", parts, finish_reason=content.finish_reason),) if parts else ()
        return Body(output=text or None, output_messages=messages, attributes=attributes.fields, raw=raw)
    return Body(input=content.input, output=content.output, attributes=attributes.fields, raw=raw)


def attributes_of(record: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """`fields` of the data of an event, and all of its envelope; ``event.id`` where the data has an `id`."""
    data, kind = record.get("data"), record.get("type")
    around = {
        name: value
        for name, value in record.items()
        if not (name == "data" and isinstance(data, dict)) and not (name == "type" and kind and isinstance(kind, str))
    }
    found = fields | {f"event.{name}" if name in fields else name: value for name, value in around.items()}
    return {name: _masked(value) if name in _ENCRYPTED else value for name, value in found.items()}


def _masked(value: Any) -> Any:
    """The length of an encrypted text."""
    return f"encrypted, {len(value)} characters" if isinstance(value, str) and value else value

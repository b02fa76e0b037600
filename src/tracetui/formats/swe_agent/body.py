"""The body of one span, from its records as they are written."""

from __future__ import annotations

from typing import Any

from tracetui.errors import FormatError
from tracetui.formats.bodies import parts_in
from tracetui.formats.document import Record
from tracetui.formats.scalars import mapping, string, text, without
from tracetui.formats.schema import plain
from tracetui.formats.swe_agent.records import Call, calls_of, responded
from tracetui.formats.swe_agent.run import SpanRef
from tracetui.model import Body, Message, Reasoning, Text, ToolCall

_OF_COMMAND = ("action", "execution_time", "observation", "state")
"""Fields of a step that its command shows."""


def body_of(at: Any) -> Body:
    """Everything about the span that is at `at`. Raises `FormatError` if it is not one of this format."""
    if not isinstance(at, SpanRef):
        raise FormatError("this span comes from another format")
    if at.call is not None:
        return _command(at, at.call)
    return _message(at.message) if at.step is None and at.message is not None else _step(at)


def _fields(record: Record | None) -> dict[str, Any]:
    return {} if record is None else mapping(plain(record.raw))


def _raw(record: Record | None) -> bytes:
    return b"" if record is None else bytes(record.raw)


def _step(at: SpanRef) -> Body:
    """A response of SWE-agent's model; what only the history has is ``history``."""
    fields = _fields(at.step)
    response, thought = fields.get("response"), fields.get("thought")
    calls = calls_of(at.message.value if at.message else None, at.step.value if at.step else None)
    parts, rest = parts_in(response)
    shown = {"response", *(_OF_COMMAND if calls else ()), *(["thought"] if thought == response else [])}
    asked = _conversation(fields.get("query"))
    shown |= {"query"} if asked else set()
    attributes = without(fields, *shown) | ({} if rest is None else {"response": rest})
    same = {"content": response, "thought": thought, "action": fields.get("action")}
    more = {name: value for name, value in _fields(at.message).items() if name not in same or value != same[name]}
    attributes |= {"history": more} if more else {}
    answer = (Message("assistant", (*parts, *(ToolCall(one.id, one.name, one.arguments) for one in calls))),)
    return Body(output=response, input_messages=asked, output_messages=answer, attributes=attributes, raw=_raw(at.step))


def _conversation(query: Any) -> tuple[Message, ...]:
    """The messages that a model was sent; none where they say more than roles and texts."""
    found = []
    for item in query if isinstance(query, list) else ():
        content, role = mapping(item).get("content"), mapping(item).get("role")
        if not isinstance(content, str) or not isinstance(role, str) or len(item) > 2:
            return ()
        found.append(Message(role, (Text(content),)))
    return tuple(found)


def _command(at: SpanRef, call: Call) -> Body:
    """A command with what it printed."""
    answer = _fields(at.answer)
    if at.step is not None:
        step = _fields(at.step)
        output = step.get("observation")
        attributes = {name: step[name] for name in _OF_COMMAND if name in step and name != "observation"}
        if attributes.get("action") == call.arguments:
            attributes.pop("action", None)
        more = without(answer, "content") if answer.get("content") == output else answer
        attributes |= {"history": more} if more else {}
        return Body(input=call.arguments, output=output, attributes=attributes, raw=_raw(at.step))
    extra = mapping(answer.get("extra"))
    output, attributes = text(extra.get("raw_output")), answer | {"extra": without(extra, "raw_output")}
    if output is None:
        name = "content" if "content" in answer else "output"
        output, attributes = answer.get(name), without(answer, name)
    return Body(input=call.arguments, output=output, attributes=attributes, raw=_raw(at.answer or at.message))


def _message(record: Record) -> Body:
    """A message; everything but its text and what it asked for stays under its own name."""
    fields, message = _fields(record), record.value
    content, thought = fields.get("content"), text(fields.get("reasoning_content"))
    parts, rest = parts_in(content)
    answered = "" if parts else responded(fields.get("output"))
    parts = [*([Reasoning(thought)] if thought else []), *parts, *([Text(answered)] if answered else [])]
    shown = ["content", *(["role"] if string(fields.get("role")) else []), *(["reasoning_content"] if thought else [])]
    if fields.get("thought") == content:
        shown.append("thought")
    attributes = without(fields, *shown) | ({} if rest is None else {"content": rest})
    shown_text = content if content else answered or None
    if not message.is_response:
        found = (Message(message.author or "message", tuple(parts)),) if parts else ()
        return Body(input=shown_text, input_messages=found, attributes=attributes, raw=_raw(record))
    calls = calls_of(message, None)
    answer = (Message("assistant", (*parts, *(ToolCall(one.id, one.name, one.arguments) for one in calls))),)
    return Body(output=shown_text, output_messages=answer, attributes=attributes, raw=_raw(record))

"""Everything that a trajectory says about one span, read again from where it is told."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from zlib import crc32

from tracetui.errors import FormatError
from tracetui.formats.atif.document import root_of
from tracetui.formats.atif.fields import At, is_copied, rendered, text_in
from tracetui.formats.atif.spans import AGENT, answers_of, arguments_of, calls_of
from tracetui.formats.decode import strict
from tracetui.formats.kept import once, opened
from tracetui.formats.places import changed
from tracetui.formats.scalars import mapping, sequence, without, word
from tracetui.model import Blob, Body, Message, Part, Reasoning, Span, Text, ToolCall, ToolResult
from tracetui.sources.base import File


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if the file holds something else there now."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    if at.place is None and at.value is None:
        return Body()  # no record tells it
    if at.path is None:
        told = _told_at(file, at)
    else:
        with opened(file, at.path) as other:
            told = _told_at(other, at)
    raw, value = told.raw, told.value
    if at.whole:
        return Body(attributes=({"file": at.path} if at.path else {}) | mapping(value), raw=raw)
    step = mapping(value)
    if not step:
        return Body(output=value, raw=raw)
    if at.call is not None:
        return _call(told, at.call)
    if step.get("source") != AGENT or is_copied(step):
        return _heard(step, raw)
    return _agent(step, raw)


class _Told:
    """The bytes that tell a span, and what they say."""

    def __init__(self, raw: bytes, value: Any) -> None:
        self.raw, self.value = raw, value

    @cached_property
    def answers(self) -> dict[int, list[Any]]:
        """The results of each call of a step."""
        return answers_of(self.value)[0]


def _told_at(file: File, at: At) -> _Told:
    """What tells a span. A step of several calls is kept for the next of them."""
    if not at.call:
        return _record(file, at)
    return once(file, at.place or (id(at.value),), lambda: _record(file, at))


def _record(file: File, at: At) -> _Told:
    if at.place is None:
        return _Told(rendered(at.value), at.value)
    offset, size, check = at.place
    raw = file.read(offset, size)
    if crc32(raw) != check:
        raise changed(f"byte {offset}")
    return _Told(raw, root_of(raw) if at.whole else strict(raw))


def _heard(step: dict[str, Any], raw: bytes) -> Body:
    """A message; all that is told besides stays under its own name."""
    parts, rest = _parts(step.get("message"))
    attributes = without(step, "message") | ({} if rest is None else {"message": rest})
    copied = is_copied(step)
    if copied:
        parts = [*_thought(step), *parts, *_asked(step)]
    message = (Message(_role(step), tuple(parts)),) if parts else ()
    _, loose = answers_of(without(step, "tool_calls") if copied else step)
    return Body(
        input=step.get("message"),
        output=_told(loose),
        input_messages=(*message, *_answers(loose)),
        attributes=attributes,
        raw=raw,
    )


def _agent(step: dict[str, Any], raw: bytes) -> Body:
    """What the agent thought, said and called; results are told with their calls, those of no call here."""
    parts, rest = _parts(step.get("message"))
    attributes = without(step, "message", "tool_calls", "observation")
    thoughts = list(_thought(step))
    if thoughts:
        del attributes["reasoning_content"]
    if rest is not None:
        attributes["message"] = rest
    calls = step.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        attributes["tool_calls"] = calls
    odd = {f"tool_calls[{i}]": call for i, call in enumerate(sequence(calls)) if not isinstance(call, dict)}
    loose = answers_of(step)[1]
    observed = _observed(step.get("observation"), loose)
    said = (Message(_role(step), (*thoughts, *parts, *_asked(step))),)
    return Body(
        output=text_in(step.get("message")) or _told(loose),
        output_messages=(*said, *_answers(loose)),
        attributes=attributes | odd | observed,
        raw=raw,
    )


def _call(told: _Told, place: int) -> Body:
    """A call with its results; where a name is taken, a result's is ``result.FIELD``."""
    calls = calls_of(told.value)
    call = mapping(calls[place]) if place < len(calls) else {}
    attributes = without(call, "arguments")
    answers = told.answers.get(place, [])
    for number, answer in enumerate(answers):
        prefix = f"result {number + 1}." if number else "result."
        for key, value in mapping(answer).items():
            if key == "source_call_id" or (key == "content" and number == 0):
                continue
            attributes[f"{prefix}{key}" if number or key in attributes else key] = value
    output = mapping(answers[0]).get("content") if answers else None
    return Body(input=arguments_of(call), output=output, attributes=attributes, raw=told.raw)


def _observed(observation: Any, loose: list[Any]) -> dict[str, Any]:
    """What an observation says but for the results of calls."""
    if not isinstance(observation, dict):
        return {} if observation is None else {"observation": observation}
    rest: dict[str, Any] = {f"observation.{key}": value for key, value in observation.items() if key != "results"}
    results = observation.get("results")
    if loose or (results is not None and not isinstance(results, list)):
        rest["observation.results"] = loose or results
    return rest


def _role(step: dict[str, Any]) -> str:
    source = word(step.get("source"))
    return "assistant" if source == AGENT else source or "message"


def _thought(step: dict[str, Any]) -> tuple[Part, ...]:
    thought = step.get("reasoning_content")
    return (Reasoning(thought),) if isinstance(thought, str) and thought else ()


def _asked(step: dict[str, Any]) -> list[Part]:
    found: list[Part] = []
    for call in calls_of(step):
        name = word(mapping(call).get("function_name"))
        if name is not None:
            found.append(ToolCall(word(call.get("tool_call_id")), name, arguments_of(call)))
    return found


def _told(results: list[Any]) -> Any:
    """The contents of results: the one, or their texts."""
    contents = [mapping(result).get("content") for result in results]
    return contents[0] if len(contents) == 1 else "\n".join(filter(None, map(text_in, contents))) or None


def _answers(results: list[Any]) -> tuple[Message, ...]:
    """Results that belong to no call, as they stand in the conversation."""
    parts = [
        ToolResult(word(result.get("source_call_id")), result.get("content"))
        for result in results
        if isinstance(result, dict) and result.get("content") is not None
    ]
    return (Message("tool", tuple(parts)),) if parts else ()


def _parts(content: Any) -> tuple[list[Part], Any]:
    """A message as parts, and the message itself where these do not show all of it."""
    if isinstance(content, str):
        return ([Text(content)] if content else []), None
    if not isinstance(content, list):
        return [], content
    plain = True
    found: list[Part] = []
    for item in content:
        text = mapping(item).get("text")
        if isinstance(text, str):
            found.append(Text(text))
            plain = plain and item.keys() <= {"type", "text"}
        else:
            found.append(Blob(word(mapping(item).get("type")) or "part", item))
    return found, None if plain else content

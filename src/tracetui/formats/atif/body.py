"""The body of one span, from the source text of its record."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from zlib import crc32

from msgspec import Raw

from tracetui.errors import FormatError
from tracetui.formats.atif.records import AGENT, At, Document, answers_of, arguments_in, step_in
from tracetui.formats.bodies import parts_in, rendered, text_in
from tracetui.formats.record_cache import cached
from tracetui.formats.scalars import mapping, sequence, without, word
from tracetui.formats.schema import plain
from tracetui.model import Body, Message, Part, Reasoning, Span, ToolCall, ToolResult
from tracetui.sources.base import File


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` for a span of another format."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    if at.piece is None:
        return Body()  # no record holds it
    source = _source_of(file, at)
    if at.whole:
        return Body(attributes=({"file": at.path} if at.path else {}) | mapping(source.value), raw=source.raw)
    if not source.step:
        return Body(output=source.value, raw=source.raw)
    if at.call is not None:
        return _call(source, at.call)
    return _message(source) if source.copied or source.step.get("source") != AGENT else _agent(source)


class _Source:
    """The bytes of a record, and its value."""

    def __init__(self, raw: bytes, value: Any) -> None:
        self.raw, self.value = raw, value
        self.step = mapping(value)
        self.copied = self.step.get("is_copied_context") is True

    @property
    def calls(self) -> list[Any]:
        """The calls that a step of the agent asked for."""
        return sequence(self.step.get("tool_calls")) if self.step.get("source") == AGENT else []

    def answers(self, place: int) -> list[Any]:
        """The results of the call at that place."""
        return [self._results[number] for number in self._paired[0].get(place, ())]

    @property
    def loose(self) -> list[Any]:
        """The results of no call."""
        return [self._results[number] for number in self._paired[1]]

    @property
    def _results(self) -> list[Any]:
        return sequence(mapping(self.step.get("observation")).get("results"))

    @cached_property
    def _paired(self) -> tuple[dict[int, list[int]], list[int]]:
        step = step_in(self.step)
        return answers_of(step, () if self.copied else step.calls)


def _source_of(file: File, at: At) -> _Source:
    """What a span is recorded in. A step of several calls is kept for the next of them."""
    piece = at.piece
    if not isinstance(piece, Raw):
        return _Source(rendered(piece), piece)
    if at.whole:
        return _Source(bytes(piece), Document(piece, {}).root)
    if not at.call:
        return _Source(bytes(piece), plain(piece))
    return cached(file, (at.path, crc32(piece), at.size), lambda: _Source(bytes(piece), plain(piece)))


def _message(source: _Source) -> Body:
    """A message; everything else stays under its own name."""
    step, loose = source.step, source.loose
    parts, rest = parts_in(step.get("message"))
    attributes = without(step, "message") | ({} if rest is None else {"message": rest})
    if source.copied:
        parts = [*_thought(step), *parts, *_asked(source)]
    message = (Message(_role(step), tuple(parts)),) if parts else ()
    return Body(
        input=step.get("message"),
        output=_contents(loose),
        input_messages=(*message, *_answers(loose)),
        attributes=attributes,
        raw=source.raw,
    )


def _agent(source: _Source) -> Body:
    """The reasoning, message and calls of the agent; results are shown with their calls, those of no call here."""
    step, loose = source.step, source.loose
    parts, rest = parts_in(step.get("message"))
    attributes = without(step, "message", "tool_calls", "observation")
    thoughts = list(_thought(step))
    if thoughts:
        del attributes["reasoning_content"]
    if rest is not None:
        attributes["message"] = rest
    calls = step.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        attributes["tool_calls"] = calls
    others = {f"tool_calls[{i}]": call for i, call in enumerate(sequence(calls)) if not isinstance(call, dict)}
    observed = _observed(step.get("observation"), loose)
    answer = (Message(_role(step), (*thoughts, *parts, *_asked(source))),)
    return Body(
        output=text_in(step.get("message")) or _contents(loose),
        output_messages=(*answer, *_answers(loose)),
        attributes=attributes | others | observed,
        raw=source.raw,
    )


def _call(source: _Source, place: int) -> Body:
    """A call with its results; where a name is taken, a result's is ``result.FIELD``."""
    call = mapping(source.calls[place]) if place < len(source.calls) else {}
    attributes = without(call, "arguments")
    answers = source.answers(place)
    for number, answer in enumerate(answers):
        prefix = f"result {number + 1}." if number else "result."
        for key, value in mapping(answer).items():
            if key == "source_call_id" or (key == "content" and number == 0):
                continue
            attributes[f"{prefix}{key}" if number or key in attributes else key] = value
    output = mapping(answers[0]).get("content") if answers else None
    return Body(input=arguments_in(call.get("arguments")), output=output, attributes=attributes, raw=source.raw)


def _observed(observation: Any, loose: list[Any]) -> dict[str, Any]:
    """An observation without the results of calls."""
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


def _asked(source: _Source) -> list[Part]:
    found: list[Part] = []
    for call in map(mapping, source.calls):
        name = word(call.get("function_name"))
        if name is not None:
            found.append(ToolCall(word(call.get("tool_call_id")), name, arguments_in(call.get("arguments"))))
    return found


def _contents(results: list[Any]) -> Any:
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

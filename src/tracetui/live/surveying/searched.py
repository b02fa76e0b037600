"""What of a run is searched: its texts, each with the place where ``show --json`` has it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.model import Body, Operation, RunBody, Span

Keys = tuple[str | int, ...]
_UNSAID: Final = frozenset({"role", "id", "finish_reason"})
"""Fields of our own values that are no content."""


class Kind(StrEnum):
    """What sort of field a text is in."""

    ERROR = "error"
    INPUT = "input"
    OUTPUT = "output"
    MESSAGE = "message"
    ATTRIBUTE = "attribute"


class Field(NamedTuple):
    """One field of a span or run: `given` if it mostly holds what went before, as the context of a model call does."""

    kind: Kind
    keys: Keys
    value: Any
    given: bool = False


def span_fields(span: Span, body: Body) -> Iterator[Field]:
    """The fields of a span: its error first, as it mostly stands in the output too."""
    passed_on = span.operation is not Operation.EXECUTE_TOOL
    yield Field(Kind.ERROR, ("error",), span.error)
    yield Field(Kind.ERROR, ("attributes", "tracetui.traceback"), body.traceback)
    yield Field(Kind.INPUT, ("input",), body.input, passed_on)
    yield Field(Kind.OUTPUT, ("output",), body.output)
    given: Keys = ("input",) if body.input is None else ("attributes", "gen_ai.input.messages")
    made: Keys = ("output",) if body.output is None else ("attributes", "gen_ai.output.messages")
    yield Field(Kind.MESSAGE, given, body.input_messages, passed_on)
    yield Field(Kind.MESSAGE, made, body.output_messages)
    yield Field(Kind.ATTRIBUTE, ("attributes",), body.attributes)


def run_fields(body: RunBody) -> Iterator[Field]:
    """The fields of what a trace says about the run as a whole."""
    yield Field(Kind.ERROR, ("error",), body.error)
    yield Field(Kind.INPUT, ("input",), body.input)
    yield Field(Kind.OUTPUT, ("output",), body.output)
    for name in ("system_prompt", "goal", "reason", "criteria", "metrics", "findings", "limits", "attributes"):
        yield Field(Kind.ATTRIBUTE, (name,), getattr(body, name))


def leaves(value: Any, keys: Keys, *, names: bool = False) -> Iterator[tuple[Keys, str]]:
    """Every text and number in a value, in its order and without recursion, and (`names`) the names of its fields."""
    todo: list[tuple[Keys, Any]] = [(keys, value)]
    while todo:
        at, item = todo.pop()
        if isinstance(item, str):
            yield at, item
        elif isinstance(item, dict):
            if names:
                yield from (((*at, name), name) for name in item if isinstance(name, str))
            todo.extend(((*at, str(name)), below) for name, below in reversed(item.items()))
        elif isinstance(item, list | tuple):
            todo.extend(((*at, i), item[i]) for i in range(len(item) - 1, -1, -1))
        elif isinstance(item, msgspec.Struct):
            fields = [name for name in item.__struct_fields__ if name not in _UNSAID]
            todo.extend(((*at, name), getattr(item, name)) for name in reversed(fields))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield at, _digits(item)


def _digits(number: float) -> str:
    try:
        return str(number)
    except ValueError:  # Python's limit of digits
        return ""

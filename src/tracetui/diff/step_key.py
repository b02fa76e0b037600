"""Keys of steps: two steps of different runs have equal keys if a comparison finds no difference in what they do.

Comparing pairs cannot merge many runs; equal keys can. The output of a step is no part of its key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tracetui.diff.noise import Cache
from tracetui.diff.step import documents
from tracetui.diff.values import SHELL, encode_without_noise, encoded, is_shell
from tracetui.model import Body, Operation, Span, Text


class Header(NamedTuple):
    """The part of a key that needs no body. The name of a model call is its model, which is no part of it."""

    operation: str
    name: str


_WORDS: Final = {id(operation): operation.value for operation in Operation}
"""Operations as plain texts: to hash a member of an enumeration takes long."""
_UNNAMED: Final = (Operation.CHAT, Operation.MESSAGE)


def header_key(span: Span) -> Header:
    """Return the header part of the key of a step."""
    operation = span.operation
    if operation is Operation.EXECUTE_TOOL or not span.is_node:
        return Header(_WORDS[id(operation)], "" if operation in _UNNAMED else span.name)
    return Header(Operation.NODE.value, span.name)


class InputKeys:
    """Makes the body parts of keys: the arguments of a call, or the text of an answer or message, without noise.

    A node of a graph is its name alone, as its input is the state that all earlier steps have left.
    """

    def __init__(self) -> None:
        self._known: Cache[tuple[bytes, int, str | None], bytes] = Cache()

    def of(self, span: Span, load: Callable[[Span], Body], folder: str | None = None) -> bytes:
        """Return the body part of the key of a step. `folder` is the working directory of the run."""
        if span.is_node:
            return b""
        body = load(span)
        if span.operation is Operation.CHAT:
            given: Any = answer_text(body)
        else:
            given = body.input if body.input is not None else documents(body.input_messages) or None
        flags = SHELL if span.operation is Operation.EXECUTE_TOOL and is_shell(span.name) else 0
        raw = encoded(given)
        if raw is None:
            return encode_without_noise(given, flags, folder)
        found = self._known.get(key := (raw, flags, folder))
        if found is None:
            found = encode_without_noise(given, flags, folder)
            self._known.put(key, found, len(raw))
        return found


def answer_text(body: Body) -> str:
    """Return the text of a model's answer; empty if it only calls tools."""
    parts = [part.text for message in body.output_messages for part in message.parts if isinstance(part, Text)]
    return "\n".join(parts) if parts or not isinstance(body.output, str) else body.output

"""Keys of steps: two steps of different runs have equal keys if a comparison finds no difference in what they do.

Comparing pairs cannot merge many runs; equal keys can. The output of a step is no part of its key.
"""

from __future__ import annotations

from typing import NamedTuple

from tracetui.diff.calls import SHELL, is_shell
from tracetui.diff.compare import documents
from tracetui.diff.values import encode_without_noise
from tracetui.model import Body, Operation, Span, Text


class Header(NamedTuple):
    """The part of a key that needs no body. The name of a model call is its model, which is no part of it."""

    operation: str
    name: str


def header_key(span: Span) -> Header:
    """Return the header part of the key of a step."""
    name = "" if span.operation in (Operation.CHAT, Operation.MESSAGE) else span.name
    return Header(Operation.NODE.value if span.is_node else span.operation.value, name)


def input_key(span: Span, body: Body, folder: str | None = None) -> bytes:
    """Return the body part of the key: the arguments of a call, or the text of an answer or message, without noise.

    `folder` is the working directory of the run. A node of a graph is its name alone, as its input is the state that
    all earlier steps have left.
    """
    if span.is_node:
        return b""
    if span.operation is Operation.CHAT:
        return encode_without_noise(answer_text(body), folder=folder)
    given = body.input if body.input is not None else documents(body.input_messages) or None
    shell = SHELL if span.operation is Operation.EXECUTE_TOOL and is_shell(span.name) else 0
    return encode_without_noise(given, shell, folder)


def answer_text(body: Body) -> str:
    """Return the text of a model's answer; empty if it only calls tools."""
    parts = [part.text for message in body.output_messages for part in message.parts if isinstance(part, Text)]
    return "\n".join(parts) if parts or not isinstance(body.output, str) else body.output

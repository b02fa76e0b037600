"""Images and other binary parts of messages are compared as values."""

from __future__ import annotations

import pytest

from tests.diff.build import Step, run_of
from tracetui.diff.comparison import compare
from tracetui.model import Blob, Body, Message, Operation, Run, Text

CHAT = Operation.CHAT


def run_with_image(data: object, ident: str) -> Run:
    message = Message("user", (Text("what is this?"), Blob("image", data)))
    return run_of([Step(CHAT, "gpt")], bodies={"s0": Body(input_messages=(message,))}, ident=ident)


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        ("iVBORw0KGgo=", "iVBORw0KGgp=", "messages[0].content[1].data"),
        ({"mime": "image/png", "bytes": b"\x89PNG\x00"}, {"mime": "image/png", "bytes": b"\x89PNG\x01"}, ".data.bytes"),
        ({"source": {"url": "a.png"}}, {"source": {"url": "b.png"}}, ".data.source.url"),
    ],
)
def test_a_binary_part_differs_if_its_value_does(a: object, b: object, path: str) -> None:
    assert compare(run_with_image(a, "a"), run_with_image(a, "b")).same
    first = compare(run_with_image(a, "a"), run_with_image(b, "b")).first

    assert first is not None
    assert first.path.endswith(path)

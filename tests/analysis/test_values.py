"""What is said of two values that look the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.diff.build import Step, run_of
from tracetui.analysis.step_diff import step_sections
from tracetui.analysis.values import lookalike_labels, lookalike_note, with_label
from tracetui.diff.comparison import Comparison, Divergence
from tracetui.diff.step import Kind
from tracetui.export.diff import word_lines
from tracetui.model import Body, Message, Operation, ToolResult
from tracetui.text import exact


@pytest.mark.parametrize(
    ("a", "b", "labels"),
    [
        ("2", 2, ("string", "number")),
        (1, 1.0, ("integer", "float")),
        ("1.0", 1.0, ("string", "number")),
        ("true", True, ("string", "boolean")),
        ("null", None, ("string", "null")),
        ('{"a": [1]}', {"a": [1]}, ("string", "object")),
        ("caf\u00e9", "cafe\u0301", ("NFC", "NFD: e U+0301")),
        ("a\u00a0b", "a b", ("U+00A0 at 2", "U+0020 at 2")),
        ("a\u200bb", "ab", ("U+200B at 2", "nothing at 2")),
        ("a\r\nb\r\n", "a\nb\n", ("CRLF", "LF")),
        ("x  ", "x", ("2 trailing spaces", "nothing at 2")),
        ("a\tb", "a b", ("U+0009 at 2", "U+0020 at 2")),
        ("one  \ntwo", "one\ntwo", ("U+0020 U+0020 U+000A at 4", "U+000A at 4")),
        ("c1", "c1", ("", "different call")),
    ],
)
def test_lookalike_values_have_labels(a: Any, b: Any, labels: tuple[str, str]) -> None:
    assert lookalike_labels(a, b) == labels
    if a != b or type(a) is not type(b):
        assert lookalike_labels(b, a) == labels[::-1]


@pytest.mark.parametrize(("a", "b"), [("x", "y"), (1, 2), (True, 1), ("1", 2), (None, 0), ("a", "ab"), ({}, [])])
def test_values_that_do_not_need_no_words(a: Any, b: Any) -> None:
    assert lookalike_labels(a, b) is None
    assert lookalike_note(a, b) == ""


def test_how_they_are_written() -> None:
    assert with_label(exact("2"), exact("string")) == '"2" (string)'
    assert with_label(exact("2"), exact("number")) == "2 (number)"
    assert lookalike_note("\u00e9", "e\u0301") == "A NFC · B NFD: e U+0301"


def test_the_words_that_changed_say_what_does_not_show() -> None:
    text = Divergence(0, Kind.OUTPUT, "text", "one\nsame\ncaf\u00e9", "two\nsame\ncafe\u0301")
    value = Divergence(0, Kind.OUTPUT, "n", "2", 2)

    assert [*word_lines(value)][-1] == "    (A string · B number)"
    assert "    (A NFC · B NFD: e U+0301)" in [*word_lines(text)]


def test_a_result_that_is_of_another_call_is_shown() -> None:
    """Messages are distinguished by their text, which is the same here."""

    def body(ident: str) -> Body:
        return Body(
            input_messages=(Message("tool", (ToolResult("c1", "X"),)), Message("tool", (ToolResult(ident, "Y"),)))
        )

    a, b = body("c2"), body("c1")
    run, other = (
        run_of([Step(Operation.CHAT, "m")], bodies={"s0": body}, ident=name) for name, body in (("a", a), ("b", b))
    )
    comparison = Comparison(run, other)
    *_, last_step = comparison.steps()
    sections = step_sections(a, b, comparison.changes(last_step.rows[0]))

    assert not last_step.same
    assert [(section.path, section.sign.value) for section in sections if section.differs] == [
        ("messages[1].content[0].id", "edited")
    ]

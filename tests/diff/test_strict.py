"""With nothing ignored everything is listed, with its kind; the first divergence is the first that means something."""

from __future__ import annotations

from typing import Any

import pytest

from tests.diff.build import Step, run_of
from tests.views.build import text_of_line
from tracetui.diff.comparison import Comparison, compare
from tracetui.diff.noise import Noise
from tracetui.diff.values import changes_of
from tracetui.model import Body, Message, Operation, Run, Text
from tracetui.views.diff.steps import PairRows, sentence, summary
from tracetui.views.glyphs import UNICODE


def at(second: int, answer: str = "found", **more: Any) -> Body:
    return Body(input={"q": "x"}, output=answer, attributes={"timestamp": f"2026-01-01T10:00:{second:02d}Z", **more})


def runs(*bodies: tuple[Body, Body]) -> tuple[Run, Run]:
    sides = [{f"s{i}": pair[side] for i, pair in enumerate(bodies)} for side in (0, 1)]
    steps = [Step() for _ in bodies]
    return run_of(steps, bodies=sides[0]), run_of(steps, bodies=sides[1], ident="b")


def test_a_clock_is_listed_but_is_not_the_first_divergence() -> None:
    a, b = runs((at(1), at(11)), (at(2), at(12, "lost")), (at(3), at(13)))
    diff = compare(a, b, strict=True)

    assert diff.first is not None
    assert (diff.first.row, diff.first.path, diff.first.noise) == (1, "", "")
    assert [(row.kind.value, row.noise, row.changes, row.path) for row in diff.rows] == [
        ("output", "times", 1, "timestamp"),
        ("output", "", 2, ""),
        ("output", "times", 1, "timestamp"),
    ]
    assert (diff.downstream, diff.independent, diff.ignored) == (0, (), {})


def test_significant_changes_come_first_in_a_step() -> None:
    changes = Comparison(*(pair := runs((at(1), at(11, "lost")))), strict=True).changes(compare(*pair).rows[0])

    assert [(change.path, change.noise) for change in changes.changes] == [("", None), ("timestamp", "times")]


def test_the_first_ignored_difference_is_named_without_others() -> None:
    diff = compare(*runs((at(1), at(1)), (at(2), at(12, seen_id="r1"))), strict=True)

    assert not diff.same
    assert diff.first is not None
    assert (diff.first.row, diff.first.path, diff.first.noise) == (1, "timestamp", "times")
    phrase = text_of_line(sentence(diff, UNICODE, 120))
    assert phrase.startswith("= No differences except ignored values  ·  first: times: step 2 search")
    assert "1 usually ignored" in text_of_line(summary(diff))
    assert " time" in text_of_line(PairRows(diff).line(1, 120))
    assert PairRows(diff).mark(1) is None
    assert compare(*runs((at(1), at(1)), (at(2), at(12, seen_id="r1")))).same


@pytest.mark.parametrize(
    ("a", "b", "path", "kind"),
    [
        ({"usage": {"prompt_tokens": 3, "other": 1}}, {"usage": {"prompt_tokens": 4, "other": 2}}, "usage", "token"),
        ({"duration_ms": 1}, {}, "duration_ms", "durations"),
        ({"x": None}, {}, "x", "empty fields"),
        (["a "], ["a"], "[0]", "white space at ends"),
    ],
)
def test_every_difference_has_its_kind(a: Any, b: Any, path: str, kind: str) -> None:
    changes = changes_of(a, b, Noise(strict=True))

    assert changes
    assert all(change.path.startswith(path) and (change.noise or "").startswith(kind) for change in changes)
    assert changes_of(a, b, Noise()) == []


def test_wordings_of_a_student_are_listed_as_such() -> None:
    turn = Operation.TURN
    spoken = [
        {"s0": Body(output_messages=(Message("assistant", (Text(text),)),)), "s1": Body(input={"q": 1})}
        for text in ("Done, all is well.", "I did it.")
    ]
    steps = [Step(turn, "turn"), Step()]
    a, b = (run_of(steps, bodies=messages, ident=ident) for messages, ident in zip(spoken, "ab", strict=True))
    diff = compare(a, b, relation="student", strict=True)

    assert [(row.kind.value, row.noise) for row in diff.rows] == [("output", "a model's own words"), ("same", "")]
    assert diff.first is not None
    assert diff.first.noise

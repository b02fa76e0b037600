"""How scores and outcomes are drawn: wrong answers differ from errors by sign and word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.build import make_summary
from tracetui.analysis.arrangement import Arrangement, arrange
from tracetui.model import Outcome, RunSummary, Score, Status
from tracetui.views.glyphs import ASCII, UNICODE
from tracetui.views.labels import outcome_word, run_sign, score_cell, score_line, status_word
from tracetui.views.list.columns import fit_columns
from tracetui.views.list.runs import RunRows

OK, ERROR = Status.OK, Status.ERROR
PASSED, FAILED = Outcome.PASSED, Outcome.FAILED


def run(
    own: str, status: Status, outcome: Outcome | None = None, *scores: Score, headline: str | None = None, **rest: Any
) -> RunSummary:
    return make_summary(own, status=status, outcome=outcome, scores=scores, headline=headline, deep=True, **rest)


def reward(value: Any, passed: bool | None = None, name: str = "reward") -> Score:
    return Score(name, value, passed)


RIGHT = run("right", OK, PASSED, reward(1.0, True), task="t1")
WRONG = run("wrong", OK, FAILED, reward(0.0, False), task="t1")
BROKEN = run("broken", ERROR, FAILED, reward(0.0, False), task="t2")
LUCKY = run("lucky", ERROR, PASSED, reward(1.0, True), task="t2")
HALF = run("half", OK, None, reward(0.5))
PLAIN = run("plain", OK)


@pytest.mark.parametrize(
    ("scored", "sign", "status", "outcome", "cell"),
    [
        (RIGHT, "✓", "ok", "passed", "✓ 1"),
        (WRONG, "⊗", "wrong answer", "wrong answer", "⊗ 0"),
        (BROKEN, "✗", "error", "failed", "✗ 0"),
        (LUCKY, "✗", "error", "passed", "✓ 1"),
        (HALF, "✓", "ok", "—", "0.5"),
        (PLAIN, "✓", "ok", "—", "—"),
        (run("c", Status.CANCELLED, FAILED, reward("I", False)), "⊘", "cancelled", "wrong answer", "⊗ I"),
        (run("n", OK, PASSED, reward(None, True)), "✓", "ok", "passed", "✓ passed"),
        (run("m", OK, FAILED, reward("C", True), reward("I", False)), "⊗", "wrong answer", "wrong answer", "⊗ 1/2"),
        (
            run("h", OK, PASSED, reward(1, True), reward(0, False, "style"), headline="reward"),
            "✓", "ok", "passed", "✓ 1",
        ),
    ],
)  # fmt: skip
def test_signs_and_words(scored: RunSummary, sign: str, status: str, outcome: str, cell: str) -> None:
    assert run_sign(scored, scored.status)[0] == sign
    assert (status_word(scored), outcome_word(scored), score_cell(scored)) == (status, outcome, cell)


def test_a_wrong_answer_has_its_own_ascii_sign() -> None:
    signs = {str(run_sign(run, run.status, ASCII)[0]) for run in (RIGHT, WRONG, BROKEN)}
    assert len(signs) == 3


def test_a_score_in_one_line() -> None:
    score = Score("reward", 0.25, False, "result.json rewards.reward", "1 passed, 0 failed", "2 of 8 checks\npassed")
    assert (
        score_line(score) == "reward 0.25 failed (result.json rewards.reward; 1 passed, 0 failed): 2 of 8 checks passed"
    )
    assert score_line(Score("goal", passed=True)) == "goal passed"


def test_the_list_has_a_score_column_if_any_run_is_scored() -> None:
    assert "score" not in dict(fit_columns(100))
    assert "score" in dict(fit_columns(100, facts=("score", "time", "tok")))
    assert "score" not in dict(fit_columns(50, facts=("score", "time", "tok")))
    for width in range(34, 200):
        columns = fit_columns(width, facts=("score", "time", "tok"))
        assert sum(size for _, size in columns) + len(columns) - 1 <= width, width

    rows = RunRows([WRONG, PLAIN], now=0.0)
    line = "".join(piece.text for piece in rows.line(0, 90))
    assert line.startswith("⊗ ")
    assert "⊗ 0" in line
    assert "wrong answer" in line
    assert rows.mark(0) is not None
    assert rows.mark(1) is None


def arranged(*runs: RunSummary, **how: Any) -> list[str]:
    items = arrange(runs, [], Arrangement(**how), now=0.0)
    return [item.id if isinstance(item, RunSummary) else str(item[0]) for item in items if not hasattr(item, "reason")]


ALL = (RIGHT, WRONG, BROKEN, LUCKY, HALF, PLAIN)


def test_failures_are_errors_and_wrong_answers() -> None:
    assert arranged(*ALL, failures=True, group="none", sort="id") == ["broken", "lucky", "wrong"]


def test_sorted_by_score_and_outcome() -> None:
    assert arranged(*ALL, sort="score", group="none") == ["wrong", "broken", "half", "right", "lucky", "plain"]
    assert arranged(*ALL, sort="outcome", group="none") == ["broken", "lucky", "wrong", "half", "plain", "right"]


def test_groups_have_pass_rates() -> None:
    assert arranged(RIGHT, WRONG, BROKEN, HALF, group="task", sort="id") == [
        "t2 · 0 of 1 passed", "broken", "no task", "half", "t1 · 1 of 2 passed", "right", "wrong",
    ]  # fmt: skip
    assert [label for label in arranged(*ALL, group="outcome", sort="id") if "·" in label or "outcome" in label] == [
        "error · 1 of 2 passed", "no outcome", "passed · 1 of 1 passed", "wrong answer · 0 of 1 passed",
    ]  # fmt: skip
    child = run("child", ERROR, parent="right")
    assert "t1 · 1 of 1 passed" in arranged(RIGHT, child, group="task", sort="id")
    assert arranged(HALF, PLAIN, group="agent") == ["researcher", "half", "plain"]


def test_a_derived_task_is_named_by_its_first_input() -> None:
    first, second = (run(own, OK, repeats="k", prompt="book a flight") for own in ("a", "b"))
    assert arranged(first, second, group="task", sort="id") == ["book a flight · researcher (derived)", "a", "b"]


def test_glyphs_are_one_cell_wide() -> None:
    assert len(UNICODE.wrong) == len(ASCII.wrong) == 1

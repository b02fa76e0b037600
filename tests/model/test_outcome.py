"""What follows from scores, by the trace and by the user's own rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.errors import UsageError
from tracetui.model import Header, Outcome, PassRule, RunRef, RunSummary, Score, Status, judge
from tracetui.model.masked import masked_summary
from tracetui.model.run import number_of
from tracetui.model.tally import summary_of
from tracetui.redact import Redactor

PASSED, FAILED = Outcome.PASSED, Outcome.FAILED
REF = RunRef("any", "run.json")


def score(name: str, passed: bool | None, value: Any = None, rule: str = "") -> Score:
    return Score(name, value, passed, f"result.json {name}", rule)


def run(*scores: Score, headline: str | None = None, status: Status = Status.OK, ref: RunRef = REF) -> RunSummary:
    return summary_of(ref, Header(id="r", name="r", status=status, scores=scores, headline=headline), None)


@pytest.mark.parametrize(
    ("scores", "headline", "outcome"),
    [
        ([], None, None),
        ([("a", True)], None, PASSED),
        ([("a", False)], None, FAILED),
        ([("a", None)], None, None),
        ([("a", True), ("b", True)], None, PASSED),
        ([("a", True), ("b", False)], None, FAILED),
        ([("a", True), ("b", None)], None, None),
        ([("a", None), ("b", False)], None, FAILED),
        ([("a", True), ("b", False)], "a", PASSED),
        ([("a", False), ("b", True)], "a", FAILED),
        ([("a", None), ("b", False)], "a", None),
        ([("a", True), ("a", False)], "a", FAILED),
        ([("a", True)], "not there", PASSED),
    ],
)
def test_an_outcome_follows_from_the_headline_else_from_all(
    scores: list[tuple[str, bool | None]], headline: str | None, outcome: Outcome | None
) -> None:
    judgement = judge([score(name, passed) for name, passed in scores], headline)
    assert judgement.outcome is outcome
    assert bool(judgement.source) is (outcome is not None)


def test_the_source_names_the_score_and_the_rule_that_decided() -> None:
    assert judge([score("a", True)]).source == "result.json a (recorded in the trace)"
    two = [score("a", True, 1), score("b", False, 0, "1 passed, 0 failed")]
    assert judge(two).source == "result.json b (1 passed, 0 failed; all 2 scores must pass)"
    assert judge([Score("a", passed=True)]).source == "a (recorded in the trace)"


@pytest.mark.parametrize(
    ("value", "number"),
    [(None, None), (True, 1.0), (False, 0.0), (3, 3.0), ("0.9", 0.9), ("C", None), ("", None), (float("nan"), None)],
)
def test_numbers_of_values(value: Any, number: float | None) -> None:
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("rule", "accepted", "refused", "undecided"),
    [
        ("reward>=0.9", [0.9, 1, True, "1.0"], [0.89, False, -1, "0"], [None, "C", float("nan")]),
        ("reward > 0.9", [0.91], [0.9], [None]),
        ("reward<3", [2, -1], [3], ["P"]),
        ("reward<=3", [3], [3.1], ["P"]),
        ("accuracy=C", ["C", "c"], ["I", 1.0, True, "CC"], [None]),
        ("accuracy==C", ["C"], ["I"], [None]),
        ("accuracy!=I", ["C", 1.0], ["i"], [None]),
        ("done=true", [True, "True"], [False, "no"], [None]),
        ("reward=1", [1, 1.0, True, "1.00"], [0, "C"], [None]),
        ("word count>=2", [2], [1], [None]),
    ],
)
def test_pass_rules_accept_and_refuse_values(
    rule: str, accepted: list[Any], refused: list[Any], undecided: list[Any]
) -> None:
    parsed = PassRule.parse(rule)
    assert [parsed.accepts(value) for value in accepted] == [True] * len(accepted)
    assert [parsed.accepts(value) for value in refused] == [False] * len(refused)
    assert [parsed.accepts(value) for value in undecided] == [None] * len(undecided)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reward", "compares no score"),
        ("", "compares no score"),
        (">=0.9", "compares no score"),
        ("reward>=", "no value after >="),
        ("reward>=C", "'C' is not a number"),
        ("reward<nan", "'nan' is not a number"),
    ],
)
def test_a_wrong_rule_is_a_sentence(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PassRule.parse(text)


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_a_sentence(text: str) -> None:
    try:
        rule = PassRule.parse(text)
    except UsageError:
        return
    assert PassRule.parse(rule.text) == rule


values = st.none() | st.booleans() | st.floats() | st.text(max_size=5)


@given(values, st.floats(allow_nan=False))
def test_a_rule_and_its_opposite_exclude_each_other(value: Any, bound: float) -> None:
    for operator, other in (("<", ">="), (">", "<="), ("=", "!=")):
        a, b = (PassRule("a", compare, repr(bound)).accepts(value) for compare in (operator, other))
        assert (a is None and b is None) or a is not b


def test_a_rule_decides_the_runs_that_have_its_score() -> None:
    rule = PassRule.parse("Reward>=0.5")
    half = run(score("reward", None, 0.5), score("style", False, 0)).with_rule(rule)
    low = run(score("reward", True, 0.4), headline="reward").with_rule(rule)
    other = run(score("accuracy", False, "I"))
    text = run(score("reward", False, "I")).with_rule(rule)

    assert (half.outcome, half.headline, half.failed) == (PASSED, "reward", False)
    assert half.outcome_source == "result.json reward (pass rule Reward>=0.5)"
    assert [score.passed for score in half.scores] == [True, False]
    assert (low.outcome, low.is_wrong) == (FAILED, True)
    assert other.with_rule(rule) is other.with_rule(None) is other
    assert (text.outcome, text.outcome_source) == (FAILED, "result.json reward (recorded in the trace)")


def test_an_error_that_passed_is_a_failed_run() -> None:
    error = run(score("reward", True, 1.0), status=Status.ERROR)
    assert (error.outcome, error.failed, error.is_wrong) == (PASSED, True, False)
    both = run(score("reward", False, 0.0), status=Status.ERROR)
    assert (both.outcome, both.failed, both.is_wrong) == (FAILED, True, False)
    assert not run().failed


def test_equal_values_of_other_types_stay_apart() -> None:
    assert [type(run(score("reward", True, value)).scores[0].value) for value in (True, 1.0, 1)] == [bool, float, int]


def test_secrets_in_scores_are_masked() -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 6
    scored = run(Score("judge", f"key {secret}", False, "scores.judge", "", f"it printed {secret}"))
    masked = masked_summary(scored, Redactor())
    assert secret not in repr(masked)
    assert masked.scores[0].name == "judge"
    plain = run(score("reward", True, 1.0))
    assert masked_summary(plain, Redactor()) is plain

"""How a run was evaluated: its scores, the outcome that follows from them, and the user's own rule for it.

Status says how the execution ended, outcome how it was evaluated. They are separate facts: a run that raised may have
passed, and one that ended well may have given a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from math import isnan
from typing import Final

import msgspec

from tracetui.errors import UsageError

REASON_LIMIT: Final = 500
"""Maximum characters of the reason of a score: no more than the shortest summary of an evaluation holds."""


class Outcome(StrEnum):
    """How a run was evaluated; None where it was not."""

    PASSED = "passed"
    FAILED = "failed"


class Score(msgspec.Struct, frozen=True, gc=False):
    """One evaluation of a run, as the trace records it."""

    name: str
    """Of the scorer, metric or reward: ``accuracy``, ``reward``, ``goal``."""
    value: int | float | bool | str | None = None
    """As recorded; None where the trace states only pass or fail."""
    passed: bool | None = None
    """None where neither the trace nor a rule says so, as for a partial score."""
    source: str = ""
    """File and field that it comes from: ``result.json verifier_result.rewards.reward``."""
    rule: str = ""
    """How `passed` follows from `value` (``1 passed, 0 failed``); empty where the trace itself states pass or fail."""
    reason: str = ""
    """Why, in the words of the trace: an explanation, or the checks that failed. At most `REASON_LIMIT` characters."""


class Judgment(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a run, and the scores that decide it."""

    outcome: Outcome | None = None
    source: str = ""
    """The score and field or rule that decided; empty without an outcome."""


def deciding(scores: Sequence[Score], headline: str | None) -> list[Score]:
    """Return the scores that decide the outcome: those named `headline`, all of them where there is none."""
    return [score for score in scores if score.name == headline] or list(scores)


def judge(scores: Sequence[Score], headline: str | None = None) -> Judgment:
    """Return the outcome of a run with these scores.

    The score named `headline` decides, else the only one; of several all must pass: one that failed makes the run
    failed, otherwise one that neither passed nor failed leaves it without an outcome.
    """
    chosen = deciding(scores, headline)
    failed = [score for score in chosen if score.passed is False]
    if not failed and (not chosen or any(score.passed is None for score in chosen)):
        return Judgment()
    first = failed[0] if failed else chosen[0]
    how = first.rule or "recorded in the trace"
    if len(chosen) > 1:
        how = f"{how}; all {len(chosen)} scores must pass"
    return Judgment(Outcome.FAILED if failed else Outcome.PASSED, f"{first.source or first.name} ({how})")


def number_of(value: float | bool | str | None) -> float | None:
    """Return a recorded value as a number: true is 1, ``"0.9"`` is 0.9; None for other text and for NaN."""
    if value is None:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


_COMPARISON: Final = re.compile(r"\s*([^<>=!]*?)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
_ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}


class PassRule(msgspec.Struct, frozen=True):
    """A condition on the score of one name: ``reward>=0.9``, ``accuracy=C``. A run that meets it passed."""

    name: str
    compare: str
    """One of ``< <= > >= = !=``."""
    bound: str

    @classmethod
    def parse(cls, text: str) -> PassRule:
        """Parse ``NAME OP VALUE``. Raises `UsageError`."""
        found = _COMPARISON.fullmatch(text)
        if found is None or not found[1]:
            raise UsageError(f"{text!r} compares no score; write for example 'reward>=0.9' or 'accuracy=C'")
        name, compare, bound = found.groups()
        if not bound:
            raise UsageError(f"{text!r} has no value after {compare}; write for example '{name}{compare}0.9'")
        if compare in _ORDER and number_of(bound) is None:
            raise UsageError(f"{bound!r} is not a number; {compare} compares numbers, = and != also compare text")
        return cls(name, compare.replace("==", "="), bound)

    @property
    def text(self) -> str:
        """The rule without blanks around its operator."""
        return f"{self.name}{self.compare}{self.bound}"

    def applies_to(self, score: Score) -> bool:
        """Return whether it is about a score of this name; case doesn't count."""
        return score.name.casefold() == self.name.casefold()

    def accepts(self, value: float | bool | str | None) -> bool | None:
        """Return whether a recorded value meets the condition; None where it can't be compared.

        Numbers compare as numbers (`number_of`); other values are equal if their text is, in any case.
        """
        number, bound = number_of(value), number_of(self.bound)
        if number is not None and bound is not None and self.compare in _ORDER:
            return _ORDER[self.compare](number, bound)
        if value is None or self.compare in _ORDER:
            return None
        if number is not None and bound is not None:
            same = number == bound
        else:
            same = str(value).casefold() == self.bound.casefold()
        return same is (self.compare == "=")

    def apply(self, scores: Sequence[Score]) -> tuple[Score, ...]:
        """Return the scores with `Score.passed` set by this rule, where it can be compared."""
        return tuple(self._apply(score) for score in scores)

    def _apply(self, score: Score) -> Score:
        passed = self.accepts(score.value) if self.applies_to(score) else None
        return score if passed is None else msgspec.structs.replace(score, passed=passed, rule=f"pass rule {self.text}")

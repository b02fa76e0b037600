"""How a run was evaluated: its scores, and the outcome that follows from them.

Status says how the execution ended, outcome how it was evaluated. They are separate facts: a run that raised may have
passed, and one that ended well may have given a wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """How a run was evaluated; None where it was not."""

    PASSED = "passed"
    FAILED = "failed"


class Score(msgspec.Struct, frozen=True, gc=False):
    """One evaluation of a run, as the trace records it."""

    name: str
    """Of the scorer, metric or reward: ``accuracy``, ``reward``, ``goal``."""
    value: float | bool | str | None = None
    """As recorded; None where the trace states only pass or fail."""
    passed: bool | None = None
    """None where neither the trace nor a rule says so, as for a partial score."""
    source: str = ""
    """File and field that it comes from: ``result.json verifier_result.rewards.reward``."""
    rule: str = ""
    """How `passed` follows from `value` (``1 passed, 0 failed``); empty where the trace itself states pass or fail."""
    reason: str = ""
    """Why, in the words of the trace: an explanation, or the checks that failed. At most `MESSAGE_LIMIT` characters."""


class Judgment(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a run and what it follows from."""

    outcome: Outcome | None = None
    source: str = ""
    """The score and field or rule that decided; empty without an outcome."""


def judge(scores: Sequence[Score], headline: str | None = None) -> Judgment:
    """Return the outcome of a run with these scores.

    The score named `headline` decides, else the only one; of several all must pass: one that failed makes the run
    failed, otherwise one that neither passed nor failed leaves it without an outcome.
    """
    chosen = [score for score in scores if score.name == headline] or list(scores)
    failed = [score for score in chosen if score.passed is False]
    if not failed and (not chosen or any(score.passed is None for score in chosen)):
        return Judgment()
    deciding = failed[0] if failed else chosen[0]
    how = deciding.rule or "recorded in the trace"
    if len(chosen) > 1:
        how = f"{how}; all {len(chosen)} scores must pass"
    return Judgment(Outcome.FAILED if failed else Outcome.PASSED, f"{deciding.source or deciding.name} ({how})")

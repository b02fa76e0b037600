"""Summaries and runs of trials for the tests of analyses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.diff.build import Step, run_of
from tracetui.analysis.tasks import Result, Trial
from tracetui.model import Outcome, Run, RunRef, RunSummary, Status


def summary(task: str | None, trial: int, *, passed: bool | None = None, folder: str = "", **fields: Any) -> RunSummary:
    """The summary of one trial; `passed` None: not evaluated."""
    ident = f"{folder}{fields.get('repeats', task)}-{trial}"
    outcome = None if passed is None else Outcome.PASSED if passed else Outcome.FAILED
    values: dict[str, Any] = {"status": Status.OK, "name": "agent", "trial": str(trial), "outcome": outcome, **fields}
    return RunSummary.of(ref=RunRef("any", f"/traces/{ident}.json"), id=ident, task=task, **values)


def trials_of(task: str, passed: int, scored: int, folder: str = "", **fields: Any) -> list[RunSummary]:
    """So many trials of a task, of which the first ones passed."""
    return [summary(task, i, passed=i < passed, folder=folder, **fields) for i in range(scored)]


def trial(run: Run, passed: bool | None = None, excluded: str | None = None) -> Trial:
    """A run as a trial."""
    result = Result.UNSCORED if passed is None else Result.PASSED if passed else Result.FAILED
    return Trial(run.summary, result, excluded)


def calls(ident: str, arguments: Sequence[Any], name: str = "search") -> Run:
    """A run that calls one tool with each of these arguments."""
    return run_of([Step(name=name, input={"q": query}) for query in arguments], ident=ident)

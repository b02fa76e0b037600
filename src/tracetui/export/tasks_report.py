"""The matrix of tasks as a document: rates of every task, then its trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracetui.analysis.tasks import Matrix, Result, Task, Trial
from tracetui.export.page import NO_PAGES, Block, Cell, Facts, Heading, Link, Pages, Prose, Styled, Table, run_link
from tracetui.export.tasks import sentences, task_name
from tracetui.redact import Redactor
from tracetui.text import Clean, clean, cost, duration, grouped, one_line, tokens
from tracetui.views.tasks import percent

MAX_TASKS: Final = 500
MAX_TRIALS: Final = 100
"""Tasks in detail, and trials of each."""
_HEADING: Final = ("task", "trials", "passed", "failed", "rate", "pass^2", "pass^4", "tokens", "cost", "time")
_STYLES: Final = {Result.PASSED: "status.ok", Result.FAILED: "status.error"}
_TRIALS: Final = ("trial", "result", "not counted", "time", "run")


def tasks_report(
    matrix: Matrix, place: str, redactor: Redactor | None = None, pages: Pages = NO_PAGES
) -> Iterator[Block]:
    """The table of tasks, the least stable first, then the trials of each, which lead to their `pages`."""
    yield Heading(1, clean(f"Tasks of {place}", 300))
    for sentence in sentences(matrix):
        yield Prose(clean(sentence))
    shown = matrix.tasks[:MAX_TASKS]
    numbers = frozenset(range(1, len(_HEADING)))
    yield Table(_HEADING, [_row(task, f"task-{at}", redactor) for at, task in enumerate(shown, 1)], numbers)
    if len(matrix.tasks) > len(shown):
        yield Prose(Clean(f"… and {grouped(len(matrix.tasks) - len(shown))} more tasks, not listed"))
    for at, task in enumerate(shown, 1):
        yield Heading(2, _name(task, redactor), f"task-{at}")
        yield Facts([("task from", [clean(task.source)])])
        yield Table(_TRIALS, [_trial(trial, redactor, pages) for trial in task.trials[:MAX_TRIALS]], frozenset({3}))
        if len(task.trials) > MAX_TRIALS:
            yield Prose(Clean(f"… and {grouped(len(task.trials) - MAX_TRIALS)} more trials, not listed"))


def _name(task: Task, redactor: Redactor | None) -> Clean:
    return one_line(task_name(task, redactor), 200) or Clean("—")


def _row(task: Task, anchor: str, redactor: Redactor | None) -> Sequence[Cell]:
    counts, hat = task.counts, task.counts.pass_hat
    means = {name: spread.mean for name, spread in task.spreads.items()}
    used, spent, took = means.get("tokens"), means.get("cost_usd"), means.get("duration_ms")
    return (
        Link(_name(task, redactor), anchor),
        grouped(counts.runs),
        grouped(counts.passed),
        grouped(counts.failed),
        percent(counts.pass_rate),
        *(percent(hat[k]) if k in hat else Clean("") for k in (2, 4)),
        Clean("") if used is None else tokens(round(used)),
        Clean("") if spent is None else cost(spent),
        Clean("") if took is None else duration(took),
    )


def _trial(trial: Trial, redactor: Redactor | None, pages: Pages) -> Sequence[Cell]:
    run = trial.run
    name = run.trial or run.id
    return (
        one_line(name if redactor is None else redactor.header(name), 120),
        Styled(Clean(trial.result.value), _STYLES.get(trial.result, "dim")),
        Clean(trial.excluded or ""),
        Clean("") if run.duration_ms is None else duration(run.duration_ms),
        run_link(run.ref, pages),
    )

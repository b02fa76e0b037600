"""The matrix of tasks as a table, as JSON (``tracetui/tasks/1``, docs/json.md) and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from tracetui.analysis.run_tree import Fork, RunTree, decisive_by_chance
from tracetui.analysis.tasks import Counts, Group, Matrix, Rates, Result, Spread, Task, Trial
from tracetui.export.json import problem_value
from tracetui.export.page import NO_PAGES, Block, Cell, Facts, Heading, Link, Pages, Prose, Styled, Table, run_link
from tracetui.export.schemas import reports as schemas
from tracetui.export.table import Column, TextTable
from tracetui.masking import clean, masked_line, one_line
from tracetui.model import Problem, TaskKey
from tracetui.model.masked import masked_problem
from tracetui.redact import Redactor
from tracetui.text import Clean, cost, count, duration, exact, grouped, quantity, tokens
from tracetui.views.tasks import chance_note, labels_of, notes, percent

TASKS: Final = "tracetui/tasks/1"
_COLUMNS: Final = (
    Column("TRIALS", right=True),
    Column("PASSED", right=True),
    Column("FAILED", right=True),
    Column("RATE", right=True),
    Column("TOKENS", right=True, leaves=2),
    Column("COST", right=True, leaves=1),
    Column("TIME", right=True, leaves=3),
    Column("TASK", least=24),
)
_K: Final = 4
"""The largest k with a column."""


# ---- for people


def task_table(matrix: Matrix, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """One task a row, the least stable first; tokens, cost and time are means per trial.

    If there are several column groups, each has a column with its pass rate and its passed trials.
    """
    largest = min(_K, max(matrix.rates.pass_hat, default=1))
    powers = [Column(f"PASS^{k}", right=True, leaves=4) for k in range(2, largest + 1)]
    labels = labels_of(matrix.groups) if len(matrix.groups) > 1 else {}
    groups = [Column(masked_line(label, redactor, 24), right=True, leaves=5) for label in labels.values()]
    rows = [_cells(task, largest, [*labels], redactor) for task in matrix.tasks]
    return TextTable((*_COLUMNS[:4], *groups, *powers, *_COLUMNS[4:]), rows).lines(width)


def _cells(task: Task, largest: int, groups: Sequence[Group], redactor: Redactor) -> Sequence[Clean]:
    counts, hat = task.counts, task.counts.pass_hat
    means = {name: spread.mean for name, spread in task.spreads.items()}
    used = means.get("tokens")
    return (
        count(counts.runs),
        count(counts.passed),
        count(counts.failed),
        percent(counts.pass_rate),
        *(_group_cell(task.groups.get(group)) for group in groups),
        *(percent(hat.get(k)) for k in range(2, largest + 1)),
        tokens(None if used is None else round(used)),
        cost(means.get("cost_usd")),
        duration(means.get("duration_ms")),
        masked_line(task.name, redactor, 200),
    )


def _group_cell(counts: Counts | None) -> Clean:
    """``50% 2/4``; empty without a trial of the group."""
    if counts is None:
        return Clean("")
    return Clean(f"{percent(counts.pass_rate)} {counts.passed}/{counts.scored}") if counts.scored else percent(None)


def sentences(matrix: Matrix, unreadable: int = 0) -> Iterator[str]:
    """The rates of all tasks, then one sentence about each kind of trial that does not count."""
    counts, rates = matrix.rates.counts, matrix.rates
    hats = [
        f"pass^{k} {percent(value)} ({quantity(rates.pass_hat_tasks[k], 'task')})"
        for k, value in rates.pass_hat.items()
        if k <= _K
    ]
    yield " · ".join([f"{quantity(len(matrix.tasks), 'task')}, {quantity(counts.runs, 'trial')}", *hats])
    yield from filter(None, (*notes(matrix, unreadable), chance_note(matrix.tasks)))


# ---- JSON


def tasks_value(
    matrix: Matrix, trees: Mapping[TaskKey, RunTree], problems: Iterable[Problem], redactor: Redactor | None = None
) -> dict[str, Any]:
    """``tracetui/tasks/1``, masked if `redactor` is given. `trees` has the trees of the tasks with several trials."""
    return {
        "schema": TASKS,
        "tasks": [_task(task, trees.get(task.key), redactor) for task in matrix.tasks],
        "groups": [_group(group, redactor) | _rates(rates) for group, rates in matrix.groups.items()],
        "decisive_by_chance": decisive_by_chance(matrix.tasks),
        "without_task": [run.ref.address for run in matrix.without_task],
        "problems": [problem_value(item if redactor is None else masked_problem(item, redactor)) for item in problems],
        **_rates(matrix.rates),
    }


def task_name(task: Task, redactor: Redactor | None) -> str:
    """The name of a task, masked if `redactor` is given."""
    return task.name if redactor is None else redactor.header(task.name)


def _task(task: Task, tree: RunTree | None, redactor: Redactor | None) -> dict[str, Any]:
    fork = None if tree is None else tree.first_fork
    return {
        "task": task_name(task, redactor),
        "source": task.key.source,
        "runs": [trial.run.ref.address for trial in task.trials],
        "results": [trial.result for trial in task.trials],
        "excluded": {trial.run.ref.address: trial.excluded for trial in task.trials if trial.excluded is not None},
        **_counts(task.counts),
        "pass_hat": _by_k(task.counts.pass_hat),
        "instability": task.instability,
        "metrics": {name: _spread(spread) for name, spread in task.spreads.items()},
        "groups": [_group(group, redactor) | _counts(counts) for group, counts in task.groups.items()],
        "unreadable": [] if tree is None else [trial.run.ref.address for trial in tree.unreadable],
        "first_fork": None if tree is None or fork is None else _fork(tree, fork),
    }


def _counts(counts: Counts) -> schemas.Counts:
    return {
        "trials": counts.runs,
        "passed": counts.passed,
        "failed": counts.failed,
        "unscored": counts.unscored,
        "ungraded": counts.ungraded,
        "running": counts.running,
        "pass_rate": counts.pass_rate,
    }


def _rates(rates: Rates) -> dict[str, Any]:
    return _counts(rates.counts) | {
        "pass_hat": _by_k(rates.pass_hat),
        "pass_hat_tasks": _by_k(rates.pass_hat_tasks),
    }


def _by_k(values: Mapping[int, float]) -> dict[str, float]:
    return {str(k): value for k, value in values.items()}


def _group(group: Group, redactor: Redactor | None) -> dict[str, Any]:
    names = group._asdict()
    return names if redactor is None else {key: name and redactor.header(name) for key, name in names.items()}


def _spread(spread: Spread) -> dict[str, Any]:
    return {**msgspec.structs.asdict(spread), "mean": spread.mean}


def _fork(tree: RunTree, fork: Fork) -> schemas.Fork:
    return {
        "step": fork.step,
        "branches": [
            {
                "runs": [tree.trials[i].run.ref.address for i in side.branch.runs],
                "passed": side.scored.passed,
                "failed": side.scored.scored - side.scored.passed,
                "ends": side.branch.is_end,
            }
            for side in fork.sides
        ],
        "p": fork.p,
        "adjusted_p": fork.adjusted_p,
        "decisive": fork.is_decisive,
        "trials_to_decide": tree.trials_to_decide(fork),
    }


# ---- document


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
    yield Heading(1, exact(f"Tasks of {place}", 300))
    for sentence in sentences(matrix):
        yield Prose(clean(sentence))
    tasks = matrix.tasks[:MAX_TASKS]
    numbers = frozenset(range(1, len(_HEADING)))
    yield Table(_HEADING, [_row(task, f"task-{at}", redactor) for at, task in enumerate(tasks, 1)], numbers)
    if len(matrix.tasks) > len(tasks):
        yield Prose(Clean(f"… and {grouped(len(matrix.tasks) - len(tasks))} more tasks, not listed"))
    for at, task in enumerate(tasks, 1):
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
        masked_line(name, redactor, 120),
        Styled(Clean(trial.result.value), _STYLES.get(trial.result, "dim")),
        Clean(trial.excluded or ""),
        Clean("") if run.duration_ms is None else duration(run.duration_ms),
        run_link(run.ref, pages),
    )

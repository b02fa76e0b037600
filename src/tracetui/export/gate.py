"""The result of a gate as a table and as JSON: ``tracetui/gate/1`` (docs/json.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

from tracetui.analysis.chance import Interval
from tracetui.analysis.gate import Divergence, Gate, MetricTest, Pair, Verdict
from tracetui.analysis.tasks import Task
from tracetui.export.table import Column, Table
from tracetui.export.tasks import task_name
from tracetui.model import TaskKey
from tracetui.redact import Redactor
from tracetui.text import Clean, cost, duration, one_line, tokens, wrap
from tracetui.views.tasks import percent

GATE: Final = "tracetui/gate/1"
_METRIC_COLUMNS: Final = (
    Column(""),
    Column("BASE", right=True),
    Column("CANDIDATE", right=True),
    Column("CHANGE", right=True, least=12),
    Column("P", right=True),
)
_TASK_COLUMNS: Final = (
    Column("CHANGE"),
    Column("BASE", right=True),
    Column("CANDIDATE", right=True),
    Column("FIRST DIFFERENCE", least=8),
    Column("TASK", least=24),
)
_SHOWN: Final[dict[str, tuple[str, Callable[[float], Clean]]]] = {
    "tokens": ("tokens", lambda value: tokens(round(value))),
    "cost_usd": ("cost", cost),
    "duration_ms": ("time", duration),
    "steps": ("steps", lambda value: Clean(f"{value:.1f}")),
}
TITLES: Final = {
    Verdict.REGRESSION: "Regression",
    Verdict.NO_REGRESSION: "No regression",
    Verdict.INCONCLUSIVE: "Inconclusive",
}


class GateReport(NamedTuple):
    """A gate with everything that its documents say."""

    gate: Gate
    base: str
    """Where the runs of each set are, as given on the command line."""
    candidate: str
    divergences: Mapping[TaskKey, Divergence]
    """The first divergence of the regressed and fixed tasks; none where both sets have the same steps."""
    notes: Sequence[str] = ()
    """One sentence about each kind of trial that does not count."""

    def divergence(self, pair: Pair) -> Divergence | None:
        """The first divergence of a pair."""
        return self.divergences.get(pair.base.key)


def gate_lines(report: GateReport, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """The verdict with its reason, the rates and metrics, then every task that changed."""
    gate = report.gate
    for sentence in verdict_lines(gate):
        yield from [sentence] if width is None else wrap(sentence, width)
    yield Clean("")
    yield from Table(_METRIC_COLUMNS, metric_rows(gate)).lines(width)
    rows = [
        (Clean(word), passed(pair.base), passed(pair.candidate), step(report.divergence(pair)), name(pair, redactor))
        for word, pairs in (("regressed", gate.regressed), ("fixed", gate.fixed))
        for pair in pairs
    ]
    if rows:
        yield Clean("")
        yield from Table(_TASK_COLUMNS, rows).lines(width)
    rest = unpaired_rows(gate, redactor)
    if rest:
        yield Clean("")
        yield from Table((Column("NOT COMPARED"), Column("TASK", least=24)), rest).lines(width)


def verdict_lines(gate: Gate) -> Iterator[Clean]:
    """The verdict with its reason, and how far these trials reach."""
    yield Clean(f"{TITLES[gate.verdict]}: {gate.reason}")
    if gate.trials_needed is not None:
        yield Clean(f"About {gate.trials_needed} trials of each set would settle it")
    elif gate.verdict is Verdict.NO_REGRESSION:
        if gate.smallest_loss is None:
            yield Clean("The base passes too few tasks to show a loss")
        elif gate.smallest_loss > gate.min_effect:
            yield Clean(
                f"Few trials: only a loss of {100 * gate.smallest_loss:.3g} points or more could be significant"
            )


def metric_rows(gate: Gate) -> list[Sequence[Clean]]:
    """Pass rate and metrics: their name, both values, the change and its p."""
    low, high = (100 * end for end in gate.interval)
    change = f"{100 * gate.difference:+.1f} points ({low:+.1f} to {high:+.1f})"
    rates = [Clean("pass rate"), percent(gate.base_rate), percent(gate.candidate_rate), Clean(change), _p(gate.p)]
    return [rates, *(_metric(name, test) for name, test in gate.metrics.items())]


def _metric(name: str, test: MetricTest) -> list[Clean]:
    title, shown = _SHOWN[name]
    sign = "+" if test.difference >= 0 else "-"
    change = Clean(f"{sign}{shown(abs(test.difference))}")
    return [Clean(title), shown(test.base), shown(test.candidate), change, _p(test.adjusted_p)]


def _p(p: float) -> Clean:
    return Clean("<0.001" if p < 0.001 else f"{p:.3f}")


def passed(task: Task) -> Clean:
    """``2 of 4``: scored trials that passed."""
    return Clean(f"{task.counts.passed} of {task.counts.scored}")


def step(found: Divergence | None) -> Clean:
    """``step 3``."""
    return Clean("—" if found is None else f"step {found.step}")


def name(task: Pair | Task, redactor: Redactor) -> Clean:
    """The name of a task, masked, on one line."""
    return one_line(redactor.header(task.name), 200)


def unpaired_rows(gate: Gate, redactor: Redactor) -> list[Sequence[Clean]]:
    """The tasks that are not compared: why, and their names."""
    unscored = tuple(base for base, _ in gate.unscored)
    kinds = (("only in base", gate.only_base), ("only in candidate", gate.only_candidate), ("not scored", unscored))
    return [(Clean(why), name(task, redactor)) for why, tasks in kinds for task in tasks]


# ---- JSON


def gate_value(report: GateReport, redactor: Redactor | None = None) -> dict[str, Any]:
    """``tracetui/gate/1``, masked if `redactor` is given. Unbounded ends of intervals are null."""
    gate = report.gate

    def changed(pair: Pair) -> dict[str, Any]:
        found = report.divergence(pair)
        return {
            "task": task_name(pair.base, redactor),
            "base_passed": pair.base.counts.passed,
            "base_scored": pair.base.counts.scored,
            "candidate_passed": pair.candidate.counts.passed,
            "candidate_scored": pair.candidate.counts.scored,
            "first_divergence": None if found is None else _divergence(found),
        }

    return {
        "schema": GATE,
        "verdict": gate.verdict,
        "reason": gate.reason,
        "trials_needed": gate.trials_needed,
        "smallest_loss": gate.smallest_loss,
        "alpha": gate.alpha,
        "min_effect": gate.min_effect,
        "paired_tasks": len(gate.pairs),
        "base": {"pass_rate": gate.base_rate},
        "candidate": {"pass_rate": gate.candidate_rate},
        "difference": gate.difference,
        "interval": _interval(gate.interval),
        "p": gate.p,
        "regressed": [changed(pair) for pair in gate.regressed],
        "fixed": [changed(pair) for pair in gate.fixed],
        "metrics": {name: _metric_value(test) for name, test in gate.metrics.items()},
        "only_base": [task_name(task, redactor) for task in gate.only_base],
        "only_candidate": [task_name(task, redactor) for task in gate.only_candidate],
        "unscored": [task_name(base, redactor) for base, _ in gate.unscored],
        "notes": report.notes,
    }


def _divergence(found: Divergence) -> dict[str, Any]:
    return {
        "step": found.step,
        "base": found.base.address,
        "base_span": None if found.base_span is None else found.base_span.id,
        "candidate": found.candidate.address,
        "candidate_span": None if found.candidate_span is None else found.candidate_span.id,
    }


def _metric_value(test: MetricTest) -> dict[str, Any]:
    return {
        "tasks": test.tasks,
        "base": test.base,
        "candidate": test.candidate,
        "difference": test.difference,
        "interval": _interval(test.interval),
        "p": test.p,
        "adjusted_p": test.adjusted_p,
    }


def _interval(interval: Interval) -> list[float | None]:
    return [end if isfinite(end) else None for end in interval]

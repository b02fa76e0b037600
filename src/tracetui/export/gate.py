"""The result of a gate as a table and as JSON: ``tracetui/gate/1`` (docs/json.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, Final

from tracetui.analysis.chance import Interval
from tracetui.analysis.gate import Divergence, Gate, MetricTest, Pair, Verdict
from tracetui.analysis.tasks import Task
from tracetui.export.table import Column, Table
from tracetui.export.tasks import task_name
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
_TITLES: Final = {
    Verdict.REGRESSION: "Regression",
    Verdict.NO_REGRESSION: "No regression",
    Verdict.INCONCLUSIVE: "Inconclusive",
}

Diverged = Callable[[Pair], Divergence | None]
"""Returns the first divergence of a pair."""


def gate_lines(gate: Gate, diverged: Diverged, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """The verdict with its reason, the rates and metrics, then every task that changed."""
    verdict = [Clean(f"{_TITLES[gate.verdict]}: {gate.reason}")]
    if gate.trials_needed is not None:
        verdict.append(Clean(f"About {gate.trials_needed} trials of each set would settle it"))
    for sentence in verdict:
        yield from [sentence] if width is None else wrap(sentence, width)
    yield Clean("")
    low, high = (100 * end for end in gate.interval)
    change = f"{100 * gate.difference:+.1f} points ({low:+.1f} to {high:+.1f})"
    rates = [Clean("pass rate"), percent(gate.base_rate), percent(gate.candidate_rate), Clean(change), _p(gate.p)]
    yield from Table(_METRIC_COLUMNS, [rates, *(_metric(name, test) for name, test in gate.metrics.items())]).lines(
        width
    )
    rows = [
        (Clean(word), _passed(pair.base), _passed(pair.candidate), _step(diverged(pair)), _name(pair.base, redactor))
        for word, pairs in (("regressed", gate.regressed), ("fixed", gate.fixed))
        for pair in pairs
    ]
    if rows:
        yield Clean("")
        yield from Table(_TASK_COLUMNS, rows).lines(width)
    yield from _unpaired(gate, width, redactor)


def _metric(name: str, test: MetricTest) -> list[Clean]:
    title, shown = _SHOWN[name]
    sign = "+" if test.difference >= 0 else "-"
    change = Clean(f"{sign}{shown(abs(test.difference))}")
    return [Clean(title), shown(test.base), shown(test.candidate), change, _p(test.adjusted_p)]


def _p(p: float) -> Clean:
    return Clean("<0.001" if p < 0.001 else f"{p:.3f}")


def _passed(task: Task) -> Clean:
    return Clean(f"{task.counts.passed} of {task.counts.scored}")


def _step(found: Divergence | None) -> Clean:
    return Clean("—" if found is None else f"step {found.step}")


def _name(task: Task, redactor: Redactor) -> Clean:
    return one_line(redactor.header(task.name), 200)


def _unpaired(gate: Gate, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """The tasks that are not compared."""
    unscored = tuple(base for base, _ in gate.unscored)
    kinds = (("only in base", gate.only_base), ("only in candidate", gate.only_candidate), ("not scored", unscored))
    rows = [(Clean(why), _name(task, redactor)) for why, tasks in kinds for task in tasks]
    if rows:
        yield Clean("")
        yield from Table((Column("NOT COMPARED"), Column("TASK", least=24)), rows).lines(width)


# ---- JSON


def gate_value(gate: Gate, diverged: Diverged, redactor: Redactor | None = None) -> dict[str, Any]:
    """``tracetui/gate/1``, masked if `redactor` is given. Unbounded ends of intervals are null."""

    def changed(pair: Pair) -> dict[str, Any]:
        found = diverged(pair)
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
    }


def _divergence(found: Divergence) -> dict[str, Any]:
    return {
        "step": found.step,
        "base": found.base.address,
        "base_span": found.base_span,
        "candidate": found.candidate.address,
        "candidate_span": found.candidate_span,
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

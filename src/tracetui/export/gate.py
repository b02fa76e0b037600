"""The result of a gate as a table, as JSON (``tracetui/gate/1``, docs/json.md), as a document and as JUnit XML.

Documents, for people and for CI servers, are masked.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Final, Literal, NamedTuple, TypeAlias

from tracetui.analysis.contrast import Interval
from tracetui.analysis.gate import Divergence, Gate, MetricTest, Pair, Verdict, ends
from tracetui.analysis.gate_statistics import MOST_TRIALS
from tracetui.analysis.tasks import Task
from tracetui.export.json import encode
from tracetui.export.junit import Suite
from tracetui.export.page import Block, Code, Facts, Heading, Link, Prose, Table, html, markdown, masked_note
from tracetui.export.schemas import reports as schemas
from tracetui.export.table import Column, TextTable
from tracetui.export.tasks import task_name
from tracetui.masking import clean, masked_line
from tracetui.model import RunRef, Span, TaskKey, quote_key
from tracetui.redact import Redactor
from tracetui.text import Clean, cost, duration, exact, quantity, tokens, wrap
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
_METRICS: Final[dict[str, tuple[str, Callable[[float], Clean]]]] = {
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
    """The first divergence of the tasks that changed; none where both sets have the same steps."""
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
    yield from TextTable(_METRIC_COLUMNS, metric_rows(gate)).lines(width)
    rows = [
        (Clean(word), passed(pair.base), passed(pair.candidate), step(report.divergence(pair)), name(pair, redactor))
        for word, pairs in gate.changes
        for pair in pairs
    ]
    if rows:
        yield Clean("")
        yield from TextTable(_TASK_COLUMNS, rows).lines(width)
    rest = unpaired_rows(gate, redactor)
    if rest:
        yield Clean("")
        yield from TextTable((Column("NOT COMPARED"), Column("TASK", least=24)), rest).lines(width)


def verdict_lines(gate: Gate) -> Iterator[Clean]:
    """The verdict with its reason, what would settle it, and the tasks that changed beyond chance."""
    yield Clean(f"{TITLES[gate.verdict]}: {gate.reason}")
    if gate.verdict is Verdict.INCONCLUSIVE and not gate.lacks_grades:
        if gate.smallest_p >= gate.alpha:
            yield Clean(
                f"No result of the candidate could give p < {gate.alpha:g}: the smallest is {gate.smallest_p:.2g}"
            )
        needed = f"More than {MOST_TRIALS}" if gate.trials_per_task is None else f"About {gate.trials_per_task}"
        yield Clean(
            f"{needed} trials of each task, in both sets, would settle it in 80 % of cases on average;"
            f" in fewer if the true loss is about {50 * gate.min_effect:g} points"
        )
    if gate.verdict is not Verdict.REGRESSION and gate.regressed:
        number = len(gate.regressed)
        yield Clean(f"{number} task{' is' if number == 1 else 's are'} lower beyond chance: see regressed")


def metric_rows(gate: Gate) -> list[Sequence[Clean]]:
    """Pass rate and metrics: their name, both values, the change and its p."""
    change = f"{100 * gate.difference:+.1f} points ({ends(gate.interval)})"
    rates = [Clean("pass rate"), percent(gate.base_rate), percent(gate.candidate_rate), Clean(change), _p(gate.p)]
    return [rates, *(_metric(name, test) for name, test in gate.metrics.items())]


def _metric(name: str, test: MetricTest) -> list[Clean]:
    title, format_value = _METRICS[name]
    sign = "+" if test.difference >= 0 else "-"
    change = Clean(f"{sign}{format_value(abs(test.difference))}")
    return [Clean(title), format_value(test.base), format_value(test.candidate), change, _p(test.adjusted_p)]


def _p(p: float) -> Clean:
    return Clean("<0.001" if p < 0.001 else f"{p:.3f}")


def passed(task: Task) -> Clean:
    """``2 of 4``: scored trials that passed."""
    return Clean(f"{task.counts.passed} of {task.counts.scored}")


def step(divergence: Divergence | None) -> Clean:
    """``step 3``."""
    return Clean("—" if divergence is None else f"step {divergence.step}")


def name(task: Pair | Task, redactor: Redactor) -> Clean:
    """The name of a task, masked, on one line."""
    return masked_line(task.name, redactor, 200)


def unpaired_rows(gate: Gate, redactor: Redactor) -> list[Sequence[Clean]]:
    """The tasks that are not compared: why, and their names."""
    unscored = tuple(base for base, _ in gate.unscored)
    kinds = (("only in base", gate.only_base), ("only in candidate", gate.only_candidate), ("not scored", unscored))
    return [(Clean(why), name(task, redactor)) for why, tasks in kinds for task in tasks]


# ---- JSON


def gate_value(report: GateReport, redactor: Redactor | None = None) -> schemas.Gate:
    """``tracetui/gate/1``, masked if `redactor` is given. Unbounded ends of intervals are null."""
    gate = report.gate

    def changed(pair: Pair) -> schemas.TaskChange:
        divergence = report.divergence(pair)
        return {
            "task": task_name(pair.base, redactor),
            "base_passed": pair.base.counts.passed,
            "base_scored": pair.base.counts.scored,
            "candidate_passed": pair.candidate.counts.passed,
            "candidate_scored": pair.candidate.counts.scored,
            "first_divergence": None if divergence is None else _divergence_value(divergence),
        }

    return {
        "schema": GATE,
        "verdict": gate.verdict,
        "reason": gate.reason,
        "trials_per_task": gate.trials_per_task,
        "trials_needed": gate.trials_needed,
        "smallest_p": gate.smallest_p,
        "alpha": gate.alpha,
        "min_effect": gate.min_effect,
        "paired_tasks": len(gate.pairs),
        "base": {"pass_rate": gate.base_rate},
        "candidate": {"pass_rate": gate.candidate_rate},
        "ungraded": {"base": gate.base_ungraded, "candidate": gate.candidate_ungraded},
        "difference": gate.difference,
        "interval": _interval(gate.interval),
        "p": gate.p,
        "regressed": [changed(pair) for pair in gate.regressed],
        "lower": [changed(pair) for pair in gate.lower],
        "fixed": [changed(pair) for pair in gate.fixed],
        "higher": [changed(pair) for pair in gate.higher],
        "metrics": {name: _metric_value(test) for name, test in gate.metrics.items()},
        "only_base": [task_name(task, redactor) for task in gate.only_base],
        "only_candidate": [task_name(task, redactor) for task in gate.only_candidate],
        "unscored": [task_name(base, redactor) for base, _ in gate.unscored],
        "notes": report.notes,
    }


def _divergence_value(divergence: Divergence) -> schemas.TaskDivergence:
    return {
        "step": divergence.step,
        "base": divergence.base.address,
        "base_span": None if divergence.base_span is None else divergence.base_span.id,
        "candidate": divergence.candidate.address,
        "candidate_span": None if divergence.candidate_span is None else divergence.candidate_span.id,
    }


def _metric_value(test: MetricTest) -> schemas.MetricChange:
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


# ---- files


Form: TypeAlias = Literal["md", "html", "xml", "json"]
FORMS: Final[tuple[Form, ...]] = ("md", "html", "xml", "json")
_NUMBERS: Final = frozenset({1, 2, 3, 4})


def export_gate(report: GateReport, form: Form) -> Iterator[bytes]:
    """Write a gate as a document with its own redactor."""
    redactor = Redactor()
    if form == "json":
        value = gate_value(report, redactor)
        return iter([encode({**value, "masked": dict(sorted(redactor.counts.items()))}), b"\n"])
    if form == "xml":
        return iter([junit(report, redactor)])
    blocks = chain(gate_blocks(report, redactor), masked_note(redactor))
    return html(blocks, f"Gate: {TITLES[report.gate.verdict]}") if form == "html" else markdown(blocks)


# ---- document


def gate_blocks(report: GateReport, redactor: Redactor) -> Iterator[Block]:
    """The verdict, rates and metrics, the tasks that changed with their first divergence, and those not compared."""
    gate = report.gate
    title, *others = verdict_lines(gate)
    yield Heading(1, title)
    yield from map(Prose, others)
    yield Prose(_summary(report))
    yield Table(("", "base", "candidate", "change", "p"), metric_rows(gate), _NUMBERS)
    changed: list[tuple[str, Pair]] = []
    for word, pairs in gate.changes:
        anchored = [(f"{word}-{i}", pair) for i, pair in enumerate(pairs, 1)]
        chance = ", could be chance" if word in ("lower", "higher") else ""
        yield Heading(2, Clean(f"{word.capitalize()} ({len(pairs)}{chance})"))
        rows = [_row(report, anchor, pair, redactor) for anchor, pair in anchored]
        yield Table(("task", "base", "candidate", "first difference"), rows, frozenset({1, 2}))
        changed += anchored
    diverged = [(anchor, pair, fork) for anchor, pair in changed if (fork := report.divergence(pair)) is not None]
    if diverged:
        yield Heading(2, Clean("First differences"))
    for anchor, pair, fork in diverged:
        yield from _divergence(anchor, pair, fork, redactor)
    rest = unpaired_rows(gate, redactor)
    if rest or report.notes:
        yield Heading(2, Clean("Not compared"))
        yield from (Prose(masked_line(note, redactor, 300)) for note in report.notes)
    if rest:
        yield Table(("reason", "task"), rest)


def _summary(report: GateReport) -> Clean:
    gate = report.gate
    counts = [(word, len(pairs)) for word, pairs in gate.changes]
    counts.append(("unchanged", len(gate.pairs) - sum(number for _, number in counts)))
    paired = f"{quantity(len(gate.pairs), 'task')} compared"
    changes = ", ".join(f"{number} {word}" for word, number in counts)
    return exact(f"{report.base} (base) and {report.candidate} (candidate): {paired}, {changes}.", 1000)


def _row(report: GateReport, anchor: str, pair: Pair, redactor: Redactor) -> Sequence[Clean | Link]:
    divergence = report.divergence(pair)
    first_difference = Clean("same steps") if divergence is None else Link(step(divergence), anchor)
    return name(pair, redactor), passed(pair.base), passed(pair.candidate), first_difference


def _divergence(anchor: str, pair: Pair, divergence: Divergence, redactor: Redactor) -> Iterator[Block]:
    """The actions of both trials at the step, and the command that compares them."""
    yield Heading(3, Clean(f"{name(pair, redactor)}: {step(divergence)}"), anchor)
    sides = (
        ("base", divergence.base, divergence.base_span),
        ("candidate", divergence.candidate, divergence.candidate_span),
    )
    yield Facts([(side, [_action(span, redactor), exact(_address(ref, span))]) for side, ref, span in sides])
    yield Code([exact(shlex.join(["tracetui", "diff", divergence.base.address, divergence.candidate.address]))])


def _action(span: Span | None, redactor: Redactor) -> Clean:
    return Clean("ends here") if span is None else masked_line(f"{span.name} {span.preview}", redactor, 160)


def _address(ref: RunRef, span: Span | None) -> str:
    return ref.address if span is None else f"{ref.address}/{quote_key(span.id)}"


# ---- JUnit


def junit(report: GateReport, redactor: Redactor) -> bytes:
    """JUnit XML: a test case for the pass rate of all tasks, then one per task.

    The first is a failure if the verdict is `regression`, and skipped if it is `inconclusive`. A task is a failure only
    if the verdict is `regression` and its loss is beyond chance. Tasks that are not compared are skipped. Properties of
    the suite have the verdict and its numbers.
    """
    gate = report.gate
    fails = gate.regressed if gate.verdict is Verdict.REGRESSION else ()
    suite = Suite("tracetui gate", _properties(report))
    _add_overall(suite, gate)
    for pair in gate.pairs:
        lines = _changes(report, pair, redactor)
        spread = pair.candidate.spreads.get("duration_ms")
        seconds = None if spread is None else spread.mean / 1000
        if pair in fails:
            suite.failed(name(pair, redactor), "regression", lines[0], lines, seconds=seconds)
        else:
            suite.passed(name(pair, redactor), lines, seconds=seconds)
    for why, task in unpaired_rows(gate, redactor):
        suite.skipped(task, why)
    return suite.document((*verdict_lines(gate), *map(clean, report.notes)))


def _add_overall(suite: Suite, gate: Gate) -> None:
    """Add the test case that the exit status agrees with."""
    case, lines = "pass rate of all tasks", [*verdict_lines(gate)]
    if gate.verdict is Verdict.REGRESSION:
        suite.failed(case, "regression", lines[0], lines)
    elif gate.verdict is Verdict.INCONCLUSIVE:
        suite.skipped(case, lines[0])
    else:
        suite.passed(case, lines[:1])


def _properties(report: GateReport) -> Iterator[tuple[str, str]]:
    gate = report.gate
    numbers = {
        "p": gate.p,
        "base_pass_rate": gate.base_rate,
        "candidate_pass_rate": gate.candidate_rate,
        "difference": gate.difference,
        "interval_low": gate.interval.low,
        "interval_high": gate.interval.high,
        "alpha": gate.alpha,
        "min_effect": gate.min_effect,
    }
    yield "verdict", gate.verdict
    yield "reason", gate.reason
    yield "base", exact(report.base)
    yield "candidate", exact(report.candidate)
    yield from ((key, f"{number:.6g}") for key, number in numbers.items() if isfinite(number))
    if gate.trials_per_task is not None:
        yield "trials_per_task", str(gate.trials_per_task)
    for key, test in gate.metrics.items():
        yield f"{key}_difference", f"{test.difference:.6g}"
        yield f"{key}_adjusted_p", f"{test.adjusted_p:.6g}"


def _changes(report: GateReport, pair: Pair, redactor: Redactor) -> list[Clean]:
    """How often the task passed, then the first divergence."""
    chance = ", could be chance" if pair in (*report.gate.lower, *report.gate.higher) else ""
    lines = [Clean(f"passed {passed(pair.base)} in the base, {passed(pair.candidate)} in the candidate{chance}")]
    divergence = report.divergence(pair)
    if divergence is not None:
        lines.append(Clean(f"first difference: {step(divergence)}"))
        sides = (
            ("base", divergence.base, divergence.base_span),
            ("candidate", divergence.candidate, divergence.candidate_span),
        )
        lines += [
            Clean(f"{side}: {_action(span, redactor)} ({exact(_address(ref, span))})") for side, ref, span in sides
        ]
    return lines

"""Statistics over the spans of many runs: by tool, model, node, agent, operation, task, project or day.

Nothing is counted twice. The usage of a container (agent, workflow, turn) counts only if no call in it records its own.
A call nested in a call of the same name adds no time to the row. A span counts for the run that owns it
(`tracetui.model.build.ownership`), not for a fork that inherited it or for the parent of a nested run.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from itertools import accumulate, chain
from math import ceil, inf
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from tracetui.analysis import prices
from tracetui.model import Operation, Run, RunRef, RunSummary, Span, Status, TaskKey, Usage
from tracetui.model.build import Ownership, ownership
from tracetui.model.tally import CONTAINERS
from tracetui.store.facts import OutcomeCounts

UNNAMED: Final = ""
"""Row name for calls without a recorded agent or model."""


class By(StrEnum):
    """The grouping of the rows."""

    TOOL = "tool"
    MODEL = "model"
    NODE = "node"
    AGENT = "agent"
    """Sub-agents by name; other spans count for the run's own agent."""
    OPERATION = "operation"
    TASK = "task"
    """The calls are whole runs; so they are by project and day."""
    PROJECT = "project"
    """The recorded source of the run: the directory of a session."""
    DAY = "day"
    """Local date: of a run's start, and of the call for its usage."""


WHOLE_RUNS: Final = frozenset({By.TASK, By.PROJECT, By.DAY})


_NESTED: Final = frozenset({By.NODE, By.AGENT, By.OPERATION})
"""Groupings whose calls contain calls of other rows."""


class Row(msgspec.Struct, frozen=True):
    """Totals of all calls with one name. None if no trace has the value; times are milliseconds."""

    name: str
    count: int
    errors: int
    runs: int
    """Number of runs with such a call."""
    p50_ms: float | None
    """Median duration, exact, by nearest rank."""
    p95_ms: float | None
    total_ms: float | None
    usage: Usage
    """Tokens, and cost in US dollars."""
    estimated_cost_usd: float | None = None
    """Estimated cost of the calls without a recorded cost and with a listed price (`analysis.prices`)."""

    passed: int | None = None
    """Of its runs, how many passed; this and the next two are None where no run of any row has an outcome."""
    failed: int | None = None
    """Of its runs, how many ended in an error or gave a wrong answer."""
    pass_rate: float | None = None
    """`OutcomeCounts.pass_rate` of its runs; None where none can be rated."""
    prompt: str = ""
    """Of a derived task, which is named by a key: the first input of its first run."""

    @property
    def cost_usd(self) -> float | None:
        """Total cost, partly or fully estimated."""
        recorded, estimated = self.usage.cost_usd, self.estimated_cost_usd
        return recorded if estimated is None else estimated + (recorded or 0.0)


class Statistics:
    """Accumulates runs, eight bytes per span. Not thread-safe."""

    def __init__(
        self,
        by: By,
        listed: Container[RunRef] = (),
        inherited: Mapping[RunRef, TaskKey] = MappingProxyType({}),
    ) -> None:
        """`listed`: all runs to be added, including nested ones; `inherited`: the tasks of replays
        (`Relations.inherited_tasks`).
        """
        self.by = by
        self._listed, self._inherited = listed, inherited
        self._totals: dict[str, _Totals] = {}
        self._outcomes = OutcomeCounts()
        self.runs = 0

    def add(self, run: Run) -> None:
        """Add a whole run, in which what other runs count is marked (`tracetui.store.claims`); none that is a copy."""
        summary = run.summary
        has_counts = summary.usage or summary.llm_calls or summary.tool_calls
        if summary.identity is not None and summary.counts_in and not has_counts:
            return
        self.runs += 1
        seen: set[str] = set()
        task = self._inherited.get(run.summary.ref) or run.summary.task_key
        for call in _calls(run, self.by, self._listed, task):
            totals = self._totals.get(call.name)
            if totals is None:
                derived = self.by is By.TASK and task is not None and task.derived
                totals = self._totals[call.name] = _Totals(run.summary.prompt if derived else "")
            totals.add(call)
            if call.name not in seen:
                seen.add(call.name)
                totals.outcomes.add(run.summary)
        if seen:
            self._outcomes.add(summary)

    def rows(self) -> list[Row]:
        """One row per name: longest total first, then by count and name; of days the last one first."""
        rated = any(totals.outcomes.evaluated for totals in self._totals.values())
        rows = [totals.row(name, rated=rated) for name, totals in self._totals.items()]
        if self.by is By.DAY:
            return sorted(rows, key=lambda row: row.name, reverse=True)
        return sorted(rows, key=lambda row: (-(row.total_ms or 0.0), -row.count, row.name))

    def total(self) -> Row:
        """All calls together, without a name. Its time is None where calls of one row contain those of others."""
        rows = self.rows()
        times = [row.total_ms for row in rows if row.total_ms is not None]
        costs = [row.estimated_cost_usd for row in rows if row.estimated_cost_usd is not None]
        outcomes = self._outcomes
        rated = any(row.passed is not None for row in rows)
        durations = sorted(chain.from_iterable(totals.durations for totals in self._totals.values()))
        return Row(
            name=UNNAMED,
            count=sum(row.count for row in rows),
            errors=sum(row.errors for row in rows),
            runs=outcomes.runs,
            p50_ms=_rank(durations, 0.5),
            p95_ms=_rank(durations, 0.95),
            total_ms=sum(times) if times and self.by not in _NESTED else None,
            usage=sum((row.usage for row in rows), Usage()),
            estimated_cost_usd=sum(costs) if costs else None,
            passed=outcomes.passed if rated else None,
            failed=outcomes.failed if rated else None,
            pass_rate=outcomes.pass_rate if rated else None,
        )


class _Totals:
    """The accumulated values of one name."""

    __slots__ = ("count", "durations", "errors", "estimated", "outcomes", "prompt", "repeated", "total", "usage")

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.count = self.errors = 0
        self.outcomes = OutcomeCounts()
        """Of the runs that it occurs in."""
        self.durations = array("d")
        self.total: float | None = None
        self.repeated = 0.0
        """Part of `total` counted twice: calls of nested runs within a call of the same name."""
        self.estimated: float | None = None
        self.usage = Usage()

    def add(self, call: _Call) -> None:
        self.count += call.counts
        self.errors += call.failed
        self.repeated += call.repeats
        duration_ms = call.took
        if duration_ms is not None and 0 <= duration_ms < inf:
            self.durations.append(duration_ms)
            if not call.nested:
                self.total = (self.total or 0.0) + duration_ms
        if call.usage is not None:
            self.usage = self.usage + call.usage
            cost = prices.of_call(call.model, call.usage, call.at, call.tier)
            if cost is not None:
                self.estimated = (self.estimated or 0.0) + cost

    def row(self, name: str, *, rated: bool) -> Row:
        ordered, outcomes = sorted(self.durations), self.outcomes
        return Row(
            name=name,
            count=self.count,
            errors=self.errors,
            runs=outcomes.runs,
            p50_ms=_rank(ordered, 0.5),
            p95_ms=_rank(ordered, 0.95),
            total_ms=None if self.total is None else max(0.0, self.total - self.repeated),
            usage=self.usage,
            estimated_cost_usd=self.estimated,
            passed=outcomes.passed if rated else None,
            failed=outcomes.failed if rated else None,
            pass_rate=outcomes.pass_rate if rated else None,
            prompt=self.prompt,
        )


class Estimate(msgspec.Struct, frozen=True):
    """The estimated cost of a run without a recorded cost."""

    usd: float
    models: tuple[str, ...]
    """Models with listed prices."""
    unpriced: tuple[str, ...]
    """Models with tokens but no listed price."""


def estimate_of(run: Run) -> Estimate | None:
    """Estimate the cost of a run, call by call; None if the trace has a cost or no price is listed."""
    if run.summary.usage is None or run.summary.usage.cost_usd is not None:
        return None
    by_model = Statistics(By.MODEL)
    by_model.add(run)
    rows = [row for row in by_model.rows() if row.usage]
    costs = [row.estimated_cost_usd for row in rows if row.estimated_cost_usd is not None]
    if not costs:
        return None
    priced, unpriced = (
        tuple(row.name for row in rows if row.name and (row.estimated_cost_usd is not None) is has_price)
        for has_price in (True, False)
    )
    return Estimate(sum(costs), priced, unpriced)


def _rank(ordered: list[float], share: float) -> float | None:
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else None


class _Call(NamedTuple):
    """A contribution to a row: a call, or just the usage of an unnamed span."""

    name: str
    counts: bool = False
    failed: bool = False
    took: float | None = None
    nested: bool = False
    """Part of another call with the same name."""
    usage: Usage | None = None
    model: str | None = None
    at: float | None = None
    tier: str | None = None
    repeats: float = 0.0
    """Not a call: the duration of a call of a nested run, within a call of the same name here."""


def _calls(run: Run, by: By, listed: Container[RunRef], task: TaskKey | None) -> Iterator[_Call]:
    """The contributions of a run: together exactly the usage of its summary.

    What a run records beyond its spans counts for the run as a whole; a cost is shared among its calls without a
    recorded one, as an estimate weighs them.
    """
    summary = run.summary
    calls = _contributions(run, by, listed, task)
    if summary.usage is None:
        yield from calls
        return
    rest = _rest_of(run, summary.usage)
    has_calls = any(span.usage for span in run.spans)
    root = _root(summary, by, task)
    if has_calls and root is not None and (rest.all_tokens or rest.cache_read_tokens):
        tokens = msgspec.structs.replace(rest, cost_usd=None)
        calls = chain(calls, (_Call(root, usage=tokens, model=summary.model, at=summary.started_at),))
    yield from _shared_cost(list(calls), rest.cost_usd) if has_calls and rest.cost_usd else calls


def _rest_of(run: Run, usage: Usage) -> Usage:
    """What the usage of a run has beyond that of its spans."""
    spans = sum((span.usage for span in run.spans if span.usage and span.operation not in CONTAINERS), Usage())
    rest = usage.minus(spans)
    total = None
    if usage.total_tokens is not None and rest.input_tokens is None and rest.output_tokens is None:
        total = max(0, usage.total_tokens - (spans.all_tokens or 0)) or None
    return msgspec.structs.replace(rest, total_tokens=total)


def _shared_cost(calls: list[_Call], cost: float) -> Iterator[_Call]:
    """The calls with their shares of a cost in US dollars that was recorded for all of them."""
    unpaid = {i: call.usage for i, call in enumerate(calls) if call.usage and call.usage.cost_usd is None}
    weights = {i: prices.of_call(calls[i].model, used, calls[i].at, calls[i].tier) or 0.0 for i, used in unpaid.items()}
    if not any(weights.values()):
        weights = {i: float(used.all_tokens or 0) for i, used in unpaid.items()}
    total = sum(weights.values())
    for i, call in enumerate(calls):
        weight = weights.get(i, 0.0)
        if weight and call.usage is not None:
            call = call._replace(usage=msgspec.structs.replace(call.usage, cost_usd=cost * weight / total))
        yield call._replace(model=None)


def _contributions(run: Run, by: By, listed: Container[RunRef], task: TaskKey | None) -> Iterator[_Call]:
    """The calls, and the usage of unnamed spans: usage counts for the innermost call with a name, and for no other."""
    summary = run.summary
    root = _root(summary, by, task)
    if by is By.AGENT or by in WHOLE_RUNS:
        is_child = summary.parent is not None  # its parent waited meanwhile
        yield _Call(root or UNNAMED, True, summary.status is Status.ERROR, summary.duration_ms, is_child)
    with_usage = [0, *accumulate(bool(span.usage) for span in run.spans)]
    if not with_usage[-1] and root is not None and summary.usage:
        yield _Call(root, usage=summary.usage, model=summary.model, at=summary.started_at)
    open_names: list[tuple[int, str]] = []
    names: dict[str, list[bool]] = defaultdict(list)
    """By name: whether each enclosing call adds its time to the row here."""
    for i, (span, kind) in enumerate(zip(run.spans, ownership(run, listed), strict=True)):
        while open_names and open_names[-1][0] <= i:
            names[open_names.pop()[1]].pop()
        end = i + run.sizes[i]
        name, model, at, tier = _name(span, by), span.model or summary.model, span.started_at, span.tier
        if kind is not Ownership.OWN:
            if name is not None and kind is Ownership.LISTED:
                if names[name] and names[name][-1] and 0 <= (span.duration_ms or 0.0) < inf:
                    yield _Call(name, repeats=span.duration_ms or 0.0)
                open_names.append((end, name))
                names[name].append(False)
            continue
        usage = span.usage if span.operation not in CONTAINERS or with_usage[end] == with_usage[i + 1] else None
        if name is not None:
            yield _Call(
                name, True, span.status is Status.ERROR, span.duration_ms, bool(names[name]), usage, model, at, tier
            )
            open_names.append((end, name))
            names[name].append(span.duration_ms is not None)
        elif usage and by is By.DAY:
            yield _Call(_day(summary.started_at if at is None else at), usage=usage, model=model, at=at, tier=tier)
        elif usage and (owner := open_names[-1][1] if open_names else root) is not None:
            yield _Call(owner, usage=usage, model=model, at=at, tier=tier)


def _root(run: RunSummary, by: By, task: TaskKey | None) -> str | None:
    """The name of the row of the run as a whole."""
    if by is By.AGENT:
        return run.agent or UNNAMED
    if by is By.TASK:
        return UNNAMED if task is None else task.name
    if by is By.PROJECT:
        return run.source or UNNAMED
    if by is By.DAY:
        return _day(run.started_at)
    if by is By.MODEL:
        return run.model or UNNAMED
    return UNNAMED if by is By.OPERATION else None


def _day(at: float | None) -> str:
    """The local date of a time in UTC seconds."""
    try:
        return UNNAMED if at is None else datetime.fromtimestamp(at).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return UNNAMED


def _name(span: Span, by: By) -> str | None:
    operation = span.operation
    if by is By.OPERATION:
        return operation.value
    if by is By.MODEL:
        return (span.model or UNNAMED) if operation is Operation.CHAT else span.model
    if by is By.TOOL:
        return span.name if operation is Operation.EXECUTE_TOOL else None
    if by is By.NODE:
        return span.name if span.is_node else None
    return span.name if by is By.AGENT and operation is Operation.INVOKE_AGENT else None

"""The table of a graph's nodes: one row a step, or statistics per node where nodes ran many times.

Layout, titles and numbers are those that hypergraph's own RunLog and Workflow print (its execution-trace plan), but
nothing here knows a format: a run says with `RunBody.layout` under which title its table goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import Final

import msgspec

from tracetui.model import INHERITED, Operation, Run, Span, Status
from tracetui.model.part import own_spans
from tracetui.text import Clean, cells, pad
from tracetui.views.masking import one_line

NAME_LIMIT: Final = 60
ERROR_LIMIT: Final = 160
_NODES: Final = (Operation.NODE, Operation.ROUTE, Operation.INVOKE_WORKFLOW)
_DASH: Final = "—"


class NodeStats(msgspec.Struct, frozen=True):
    """How often a node ran and how long that took, in milliseconds."""

    count: int = 0
    total_ms: float = 0.0
    avg_ms: float | None = None
    """Mean over the runs that neither failed nor came from a cache; None if there are none."""
    errors: int = 0
    cached: int = 0


def node_spans(run: Run) -> list[Span]:
    """The node executions of a run: its steps; of a map, which has none of its own, the steps of its items."""
    steps = [span for span in run.spans if span.is_step]
    if steps:
        return steps
    return [span for span, depth in zip(run.spans, run.depths, strict=True) if depth == 1 and span.operation in _NODES]


def _work(run: Run) -> list[Span]:
    """The executions that are work of this run: not what it inherited or restored from one of before."""
    own = {span.id for span in own_spans(run)}
    return [span for span in node_spans(run) if span.id in own]


def node_stats(run: Run) -> dict[str, NodeStats]:
    """Statistics by node name, in the order in which the nodes first ran; what was inherited is no run of a node."""
    by_name: dict[str, list[Span]] = {}
    for span in _work(run):
        by_name.setdefault(span.name, []).append(span)
    return {name: _stats(spans) for name, spans in by_name.items()}


def table(run: Run) -> list[Clean]:
    """Title and table, as lines that passed the gate; only the title where no node ran."""
    spans = node_spans(run)
    lines = [title(run)]
    if spans:
        lines += [Clean(""), *(_stats_table(run) if _repeats(spans) else _step_table(spans))]
    return lines


def title(run: Run) -> Clean:
    """``RunLog: rag_pipeline [item 12] | 1.2s | 3 nodes | 1 error`` or ``Workflow: id | FAILED | 8 steps | 2m10s``."""
    summary = run.summary
    if run.body.layout == "Workflow":
        word = one_line(summary.status_word or summary.status.value, NAME_LIMIT)
        status = word.upper() if summary.status is Status.ERROR else word
        size = _items(run) or _plural(summary.steps or 0, "step")
        return Clean(f"Workflow: {one_line(summary.id)} | {status} | {size} | {_total(summary.duration_ms)}")
    name = " ".join(one_line(part) for part in (summary.name, summary.label) if part)
    spans, items = node_spans(run), _items(run)
    facts = [*([items] if items else []), _total(summary.duration_ms), _nodes(spans), _errors(spans)]
    return Clean(" | ".join([f"RunLog: {name}", *facts]))


def _items(run: Run) -> str:
    """How a map went: ``7 of 200 failed``, or ``200 items``; nothing for a run that is none."""
    items = 0 if run.summary.steps else sum(depth == 0 for depth in run.depths)
    return (one_line(run.summary.result) or _plural(items, "item")) if items else ""


def summary_line(run: Run) -> Clean:
    """``4 nodes, 2.1s, 0 errors | slowest: llm_call (1.8s)``."""
    spans = _work(run)
    line = f"{_nodes(spans)}, {_total(run.summary.duration_ms)}, {_errors(spans)}"
    stats = node_stats(run)
    slowest = max(stats, key=lambda name: stats[name].total_ms, default=None)
    if slowest is not None and stats[slowest].total_ms > 0:
        line += f" | slowest: {one_line(slowest, NAME_LIMIT)} ({_total(stats[slowest].total_ms)})"
    return Clean(line)


def _stats(spans: list[Span]) -> NodeStats:
    timed = [span.duration_ms for span in spans if span.duration_ms is not None]
    plain = [
        span.duration_ms
        for span in spans
        if span.duration_ms is not None and span.status is not Status.ERROR and not _is_cached(span)
    ]
    return NodeStats(
        count=len(spans),
        total_ms=sum(timed),
        avg_ms=sum(plain) / len(plain) if plain else None,
        errors=sum(span.status is Status.ERROR for span in spans),
        cached=sum(map(_is_cached, spans)),
    )


def _repeats(spans: list[Span]) -> bool:
    """True if a node ran more than once in this run (what a fork inherited does not count)."""
    return any(count > 1 for count in Counter(s.name for s in spans if not _is_inherited(s)).values())


def _step_table(spans: list[Span]) -> Iterator[Clean]:
    names = [one_line(span.name, NAME_LIMIT) for span in spans]
    statuses = [_status(span) for span in spans]
    decisions = [_decision(span) for span in spans]
    durations = [_milliseconds(span.duration_ms) for span in spans]
    name_width = max(cells(name) for name in names) + 1
    status_width = max(9, *map(cells, statuses))
    duration_width = max(8, *(len(text) + 1 for text in durations))
    columns = [("Step", 4), ("Node", max(name_width, 4)), ("Duration", duration_width), ("Status", status_width)]
    if any(decisions):
        columns.append(("Decision", max(8, *map(cells, decisions))))
    yield from _heading(columns)
    rows = zip(spans, names, durations, statuses, decisions, strict=True)
    for position, (span, name, spent, status, decision) in enumerate(rows):
        number = str(position if span.step is None else span.step)
        row = f"  {number:>4}  {pad(name, columns[1][1])}  {spent:>{duration_width - 1}}   {pad(status, status_width)}"
        yield Clean(f"{row}  {decision}".rstrip())


def _stats_table(run: Run) -> Iterator[Clean]:
    stats = {one_line(name, NAME_LIMIT): stat for name, stat in node_stats(run).items()}
    width = max(4, *map(cells, stats)) + 2
    yield from _heading([("Node", width), ("Runs", 5), ("Total", 7), ("Avg", 6), ("Errors", 6), ("Cached", 6)])
    for name, stat in stats.items():
        numbers = f"{stat.count:>6}{_total(stat.total_ms):>8}{_milliseconds(stat.avg_ms):>9}"
        yield Clean(f"  {pad(name, width)}{numbers}{stat.errors:>9}{stat.cached:>8}")


def _heading(columns: list[tuple[str, int]]) -> Iterator[Clean]:
    """Names of the columns and the rule below them."""
    yield Clean(("  " + "  ".join(name.ljust(width) for name, width in columns)).rstrip())
    yield Clean("  " + "  ".join("─" * width for _, width in columns))


def _status(span: Span) -> Clean:
    word = one_line(span.status_word or span.status.value, NAME_LIMIT)
    if span.status is Status.ERROR:
        message = one_line(span.error.message, ERROR_LIMIT) if span.error is not None else ""
        return Clean(f"FAILED: {message}" if message else "FAILED")
    facts = [fact for fact in span.notes if fact in ("cached", "partial", INHERITED)]
    if "cached" in facts:
        word = Clean("cached")
        facts.remove("cached")
    return Clean(f"{word} ({', '.join(facts)})" if facts else word)


def _decision(span: Span) -> Clean:
    return one_line(next((fact for fact in span.notes if fact.startswith("→")), ""))


def _is_cached(span: Span) -> bool:
    return "cached" in span.notes or span.status_word == "cached"


def _is_inherited(span: Span) -> bool:
    return INHERITED in span.notes


def _nodes(spans: list[Span]) -> str:
    return _plural(len({span.name for span in spans}), "node")


def _errors(spans: list[Span]) -> str:
    return _plural(sum(span.status is Status.ERROR for span in spans), "error")


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _milliseconds(ms: float | None) -> str:
    """A single execution: ``12ms``, ``2400ms``; with a fraction below 10 ms, and as a total from 10 s on."""
    if ms is None:
        return _DASH
    if ms >= 9999.5:
        return _total(ms)
    return f"{ms:.0f}ms" if ms >= 9.95 or ms <= 0 else f"{ms:.2g}ms"


def _total(ms: float | None) -> str:
    """A sum: ``62ms``, ``0.7s``, ``7m48s``, ``1h05m``; a dash for what is no time."""
    if ms is None or not isfinite(ms):
        return _DASH
    if ms < 100:
        return _milliseconds(ms)
    if ms < 59_950:
        return f"{ms / 1000:.1f}s"
    seconds = round(ms / 1000)
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"

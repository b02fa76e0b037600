"""The nodes of a graph: the *nodes* tab, and a text table.

The layout and numbers of the text table are those that hypergraph's RunLog and Workflow print. `RunBody.layout` selects
the title; nothing here depends on a format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import Final

from tracetui.analysis.assessment import NodeStats, is_inherited, node_spans, node_stats, own_node_spans
from tracetui.masking import one_line
from tracetui.model import INHERITED, Run, Span, Status
from tracetui.text import Clean, cells, count, duration, pad
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs, kind
from tracetui.views.rows import Jump, Line, ListRows, Piece, column, fit

NUMBERS = (("exec", 5), ("err", 4), ("cache", 6), ("avg", 6), ("total", 6))
_BLANK = Piece(Clean(" "))


def has_nodes(run: Run) -> bool:
    """True for a run of a graph."""
    return bool(run.summary.nodes)


def node_rows(run: Run, *, width: int, glyphs: Glyphs = UNICODE) -> ListRows:
    """A row per node in order of first execution, leading to that execution."""
    stats = node_stats(run)
    first = {span.name: span for span in reversed(node_spans(run))}
    numbers = sum(size + 1 for _, size in NUMBERS)
    bar = max(0, min(30, width - numbers - 24))
    name = max(12, width - numbers - (bar + 7 if bar else 0) - 2)
    whole = sum(stat.total_ms for stat in stats.values())
    heading = [column(Clean("  node"), name + 2, "dim")]
    heading += [piece for label, size in NUMBERS for piece in (_BLANK, column(Clean(label), size, "dim", right=True))]
    if bar:
        heading.append(Piece(Clean("  share of time"), "dim"))
    lines: list[Line] = [(Piece(summary_line(run), "text bold"),), (), tuple(heading)]
    keys: list[object] = ["summary", "blank", "heading"]
    for node, stat in stats.items():
        sign, style = kind(first[node], glyphs)
        row = [Piece(sign, style), _BLANK, Piece(pad(one_line(node, 200), name), "text"), *_number_pieces(stat, glyphs)]
        if bar:
            row += [Piece(Clean("  ")), *amount(stat.total_ms, whole, bar, "bar.tool", glyphs=glyphs)]
            row.append(Piece(Clean(f" {stat.total_ms / whole:4.0%}" if whole else ""), "sec"))
        lines.append(tuple(row))
        keys.append(Jump(node, (first[node].id,)))
    lines += [(), (Piece(Clean("averages exclude failed and cached executions"), "dim"),)]
    keys += ["blank 2", "note"]
    lines = [tuple(fit(line, width)) for line in lines]
    return ListRows(lines, keys=keys, headings=(0, 1, 2, len(lines) - 2, len(lines) - 1))


def _number_pieces(stat: NodeStats, glyphs: Glyphs) -> list[Piece]:
    cells = [
        (count(stat.count), "sec"),
        (count(stat.errors) if stat.errors else glyphs.zero, "status.error" if stat.errors else "dim"),
        (count(stat.cached) if stat.cached else glyphs.zero, "status.ok" if stat.cached else "dim"),
        (duration(stat.avg_ms) if stat.avg_ms is not None else glyphs.missing, "sec"),
        (duration(stat.total_ms), "text"),
    ]
    return [
        piece
        for (text, style), (_, size) in zip(cells, NUMBERS, strict=True)
        for piece in (_BLANK, column(text, size, style, right=True))
    ]


NAME_LIMIT: Final = 60
ERROR_LIMIT: Final = 160
_DASH: Final = "—"


def table(run: Run) -> list[Clean]:
    """Title and table as cleaned lines; only the title if no node ran."""
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
    """The result of a map: ``7 of 200 failed``, or ``200 items``; empty for other runs."""
    items = 0 if run.summary.steps else sum(depth == 0 for depth in run.depths)
    return (one_line(run.summary.result) or _plural(items, "item")) if items else ""


def summary_line(run: Run) -> Clean:
    """``4 nodes, 2.1s, 0 errors | slowest: llm_call (1.8s)``."""
    spans = own_node_spans(run)
    line = f"{_nodes(spans)}, {_total(run.summary.duration_ms)}, {_errors(spans)}"
    stats = node_stats(run)
    slowest = max(stats, key=lambda name: stats[name].total_ms, default=None)
    if slowest is not None and stats[slowest].total_ms > 0:
        line += f" | slowest: {one_line(slowest, NAME_LIMIT)} ({_total(stats[slowest].total_ms)})"
    return Clean(line)


def _repeats(spans: list[Span]) -> bool:
    """True if a node ran more than once, without inherited executions."""
    return any(count > 1 for count in Counter(s.name for s in spans if not is_inherited(s)).values())


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
    """Column headings and the rule below."""
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


def _nodes(spans: list[Span]) -> str:
    return _plural(len({span.name for span in spans}), "node")


def _errors(spans: list[Span]) -> str:
    return _plural(sum(span.status is Status.ERROR for span in spans), "error")


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _milliseconds(ms: float | None) -> str:
    """One duration: ``12ms``, ``2400ms``; fractions below 10 ms; as a total from 10 s on."""
    if ms is None:
        return _DASH
    if ms >= 9999.5:
        return _total(ms)
    return f"{ms:.0f}ms" if ms >= 9.95 or ms <= 0 else f"{ms:.2g}ms"


def _total(ms: float | None) -> str:
    """A total: ``62ms``, ``0.7s``, ``7m48s``, ``1h05m``; a dash for invalid times."""
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

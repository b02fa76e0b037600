"""The *nodes* tab: how often each node of a graph ran, failed or came from the cache, and where the time went."""

from __future__ import annotations

from tracetui.model import Run
from tracetui.text import Clean, count, duration, pad
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs, kind
from tracetui.views.masking import one_line
from tracetui.views.nodes import NodeStats, node_spans, node_stats, summary_line
from tracetui.views.rows import Jump, Line, ListRows, Piece, column, fit

NUMBERS = (("exec", 5), ("err", 4), ("cache", 6), ("avg", 6), ("total", 6))
_BLANK = Piece(Clean(" "))


def has_nodes(run: Run) -> bool:
    """True for a run of a graph."""
    return any(span.is_node for span in run.spans)


def node_rows(run: Run, *, width: int, glyphs: Glyphs = UNICODE) -> ListRows:
    """A row for each node, in the order in which they first ran; each leads to the span of its first execution."""
    stats = node_stats(run)
    first = {span.name: span for span in reversed(node_spans(run))}
    numbers = sum(size + 1 for _, size in NUMBERS)
    bar = max(0, min(30, width - numbers - 24))
    name = max(12, width - numbers - (bar + 7 if bar else 0) - 2)
    whole = sum(stat.total_ms for stat in stats.values())
    heading = [column(Clean("  node"), name + 2, "dim")]
    heading += [piece for label, size in NUMBERS for piece in (_BLANK, column(Clean(label), size, "dim", right=True))]
    if bar:
        heading.append(Piece(Clean("  share of their time"), "dim"))
    lines: list[Line] = [(Piece(summary_line(run), "text bold"),), (), tuple(heading)]
    keys: list[object] = ["summary", "blank", "heading"]
    for node, stat in stats.items():
        sign, style = kind(first[node], glyphs)
        row = [Piece(sign, style), _BLANK, Piece(pad(one_line(node, 200), name), "text"), *_numbers(stat, glyphs)]
        if bar:
            row += [Piece(Clean("  ")), *amount(stat.total_ms, whole, bar, "bar.tool", glyphs=glyphs)]
            row.append(Piece(Clean(f" {stat.total_ms / whole:4.0%}" if whole else ""), "sec"))
        lines.append(tuple(row))
        keys.append(Jump(node, (first[node].id,)))
    lines += [(), (Piece(Clean("the average leaves out failed and cached executions"), "dim"),)]
    keys += ["blank 2", "note"]
    lines = [tuple(fit(line, width)) for line in lines]
    return ListRows(lines, keys=keys, headings=(0, 1, 2, len(lines) - 2, len(lines) - 1))


def _numbers(stat: NodeStats, glyphs: Glyphs) -> list[Piece]:
    cells = [
        (count(stat.count), "sec"),
        (count(stat.errors) if stat.errors else glyphs.zero, "status.error" if stat.errors else "dim"),
        (count(stat.cached) if stat.cached else glyphs.zero, "status.ok" if stat.cached else "dim"),
        (duration(stat.avg_ms) if stat.avg_ms is not None else glyphs.unsaid, "sec"),
        (duration(stat.total_ms), "text"),
    ]
    return [
        piece
        for (text, style), (_, size) in zip(cells, NUMBERS, strict=True)
        for piece in (_BLANK, column(text, size, style, right=True))
    ]

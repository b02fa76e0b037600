"""The rows of a comparison as a tree for a document: equal steps are folded, differing ones have their changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracetui.analysis.step_diff import WORDS
from tracetui.diff.result import Diff, Divergence, Row
from tracetui.diff.step import Kind
from tracetui.diff.values import Change
from tracetui.export.diff import Changes, word_lines
from tracetui.export.steps import cut_lines
from tracetui.export.tree import Section, Step, Tree
from tracetui.store.address import step_number
from tracetui.text import Clean, grouped, one_line

MAX_ROWS: Final = 2_000
"""Differing rows; and equal ones in a fold."""
MAX_CHANGES: Final = 40
"""Changes of a row."""
_SIGNS: Final = {
    Kind.SAME: ("=", "dim"),
    Kind.ONLY_A: ("−", "diff.rem"),
    Kind.ONLY_B: ("+", "diff.add"),
    Kind.MOVED: ("~", "diff.chg"),
}


def diff_tree(diff: Diff, changes: Changes) -> Tree:
    """Every row of a comparison, up to `MAX_ROWS` differing ones."""
    return Tree(_rows(diff, changes), timed=False, counted=False)


def row_anchor(index: int) -> str:
    """The anchor of a row."""
    return f"row-{index + 1}"


def _rows(diff: Diff, changes: Changes) -> Iterator[Step | Clean]:
    position, shown, same = 0, 0, list[int]()
    for index, row in enumerate(diff.rows):
        if row.kind is Kind.SAME:
            same.append(index)
            continue
        if shown == MAX_ROWS:
            left = sum(one.kind is not Kind.SAME for one in diff.rows[index:])
            yield Clean(f"… {grouped(left)} more differing steps, not listed …")
            return
        yield from _same(diff, same, position)
        position += len(same) + 1
        same = []
        yield _row(diff, index, changes, position)
        position += 1
        shown += 1
    yield from _same(diff, same, position)


def _same(diff: Diff, rows: Sequence[int], position: int) -> Iterator[Step | Clean]:
    """Equal steps below one row that is folded."""
    if not rows:
        return
    end = position + 1 + len(rows)
    name = Clean(f"{grouped(len(rows))} same")
    yield Step(position, end, 0, row_anchor(rows[0]), Clean(""), Clean("="), "dim", name)
    for at, index in enumerate(rows[:MAX_ROWS]):
        row, place = diff.rows[index], position + 1 + at
        anchor = f"same-{index + 1}"
        yield Step(place, place + 1, 1, anchor, _number(diff, row), Clean("="), "dim", _name(diff, row))
    if len(rows) > MAX_ROWS:
        yield Clean(f"… {grouped(len(rows) - MAX_ROWS)} more same steps, not listed …")


def _row(diff: Diff, index: int, changes: Changes, position: int) -> Step:
    row = diff.rows[index]
    first = diff.first is not None and diff.first.row == index
    sign, style = _SIGNS.get(row.kind, ("≠", "diff.chg"))
    found = changes(row).changes if row.changes else ()
    sections = [section for change in found[:MAX_CHANGES] for section in _change(change, index, row.kind)]
    if len(found) > MAX_CHANGES:
        sections.append(Section(Clean(f"… {grouped(len(found) - MAX_CHANGES)} more changes, not listed …"), ()))
    alone = (diff.span_a(row) or diff.span_b(row)) if row.a is None or row.b is None else None
    words = [WORDS[row.kind], *([one_line(row.path, 120)] if row.path else [])]
    words += [one_line(alone.preview, 120)] if alone is not None and alone.preview else []
    return Step(
        position,
        position + 1,
        0,
        row_anchor(index),
        _number(diff, row),
        Clean(sign),
        style,
        _name(diff, row),
        Clean(" · ".join(words)),
        _relevance(row, first=first),
        sections=sections,
        open=first,
    )


def _relevance(row: Row, *, first: bool) -> Clean:
    if row.noise:
        return Clean(f"usually ignored: {row.noise}")
    return Clean("← first" if first else "downstream" if row.downstream else "independent")


def _number(diff: Diff, row: Row) -> Clean:
    span = diff.span_b(row) or diff.span_a(row)
    number = None if span is None else step_number(diff.a if row.b is None else diff.b, span)
    return Clean("" if number is None else str(number))


def _name(diff: Diff, row: Row) -> Clean:
    span = diff.span_b(row) or diff.span_a(row)
    return Clean("") if span is None else one_line(span.name or "(no name)", 80)


def _change(change: Change, index: int, kind: Kind) -> Iterator[Section]:
    """One changed value, line by line."""
    aside = f" (usually ignored: {change.noise})" if change.noise else ""
    title = Clean(f"{one_line(change.path, 200) or change.side}{aside}")
    lines = list(word_lines(Divergence(index, kind, change.path, change.a, change.b)))
    yield Section(title, cut_lines(lines), "diff")

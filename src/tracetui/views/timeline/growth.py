"""Detects new and changed spans of a growing run, and selects the spans that have a row."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tracetui.model import Run, Span
from tracetui.model.build import CONTAINERS


class Growth(NamedTuple):
    """Spans from position `start` on are new. `changed` are the positions before with a changed span or number of
    descendants, in order.
    """

    start: int
    changed: list[int]


def growth(before: Run, run: Run) -> Growth | None:
    """The growth from `before` to `run`; None if spans were removed, moved or inserted before the end."""
    start = len(before.spans)
    if start > len(run.spans) or next(before.depths.differing(run.depths), None) is not None:
        return None
    other = list(before.spans.differing(run.spans))
    if any(before.spans[i].id != run.spans[i].id for i in other):
        return None
    return Growth(start, sorted({*other, *before.sizes.differing(run.sizes)}))


Keep = Callable[[Span], bool]
"""A filter on span headers (`store.query.Query.matches`)."""


def visible(run: Run, tree: bool, folded: frozenset[str], keep: Keep | None) -> Sequence[int]:
    """Positions of the spans with a row, in order. A filtered timeline ignores folds."""
    if tree and keep is not None:
        return _asked_for(run, keep, folded)
    unfolded = _unfolded(run, folded) if keep is None else range(len(run.spans))
    if tree:
        return unfolded
    shows = _shows(run, keep)
    return array("L", [i for i in unfolded if shows(i)])


def _unfolded(run: Run, folded: frozenset[str]) -> Sequence[int]:
    """Positions of the spans without a folded ancestor."""
    if not folded:
        return range(len(run.spans))
    found: array[int] = array("L")
    at = 0
    for position in sorted(run.index[span_id] for span_id in folded if span_id in run.index):
        if position >= at:
            found.extend(range(at, position + 1))
            at = position + run.sizes[position]
    found.extend(range(at, len(run.spans)))
    return found


def update_visible(
    before: Sequence[int], delta: Growth, run: Run, tree: bool, folded: frozenset[str], keep: Keep | None
) -> Sequence[int]:
    """Update the result of `visible` for a run that grew."""
    if not isinstance(before, array) or (tree and keep is not None) or (folded and not tree):
        return visible(run, tree, folded, keep)
    if tree:
        found: array[int] = before[:]
        for position in range(delta.start, len(run.spans)):
            if not _folded_away(run, position, folded, found):
                found.append(position)
        return found
    return update_chosen(before, delta, len(run.spans), _shows(run, keep))


def update_chosen(before: array[int], delta: Growth, count: int, chosen: Callable[[int], bool]) -> array[int]:
    """Update the positions of chosen spans for a run that grew. The choice must depend on the span alone."""
    found = before[:]
    for position in delta.changed:
        at = bisect_left(found, position)
        there = at < len(found) and found[at] == position
        if there and not chosen(position):
            found.pop(at)
        elif not there and chosen(position):
            found.insert(at, position)
    found.extend(i for i in range(delta.start, count) if chosen(i))
    return found


def _shows(run: Run, keep: Keep | None) -> Callable[[int], bool]:
    """Whether a span has a row in the timeline."""
    spans, sizes = run.spans, run.sizes
    if keep is not None:
        return lambda i: (sizes[i] == 1 or spans[i].operation not in CONTAINERS) and keep(spans[i])
    return lambda i: sizes[i] == 1 or spans[i].operation not in CONTAINERS


def _folded_away(run: Run, position: int, folded: frozenset[str], found: Sequence[int]) -> bool:
    """Whether a span has a folded ancestor, if `found` is complete up to it."""
    above = run.parent(position) if run.depths[position] else None
    if above is None:
        return False
    at = bisect_left(found, above)
    return run.spans[above].id in folded or at == len(found) or found[at] != above


def _asked_for(run: Run, keep: Keep, folded: frozenset[str]) -> Sequence[int]:
    """The filtered spans with their ancestors, without folded ones."""
    positions = {i for i, span in enumerate(run.spans) if keep(span)}
    for position in list(positions):
        parent = run.parent(position)
        while parent is not None and parent not in positions:
            positions.add(parent)
            parent = run.parent(parent)
    found: array[int] = array("L")
    end = 0
    for position in sorted(positions):
        if position >= end:
            found.append(position)
            end = position + run.sizes[position] if run.spans[position].id in folded else end
    return found

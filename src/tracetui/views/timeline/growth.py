"""Detects new and changed spans of a growing run, and selects the spans that have a row."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from tracetui.model import Run, Span
from tracetui.model.build import CONTAINERS

_BLOCK: Final = 512


class Growth(NamedTuple):
    """The spans at positions from `kept` on are new; of those before, the ones at `changed` are not what they were.

    Changed means: another version of the span, or another number of spans below it. In order.
    """

    kept: int
    changed: list[int]


def growth(before: Run, run: Run) -> Growth | None:
    """How `run` came from `before`; None where spans went or moved, or came elsewhere than at the end."""
    kept = len(before.spans)
    if kept > len(run.spans) or run.depths[:kept] != before.depths:
        return None
    other = list(_differing(before.spans, run.spans))
    if any(before.spans[i].id != run.spans[i].id for i in other):
        return None
    return Growth(kept, sorted({*other, *_differing(before.sizes, run.sizes)}))


def _differing(before: Sequence[object], after: Sequence[object]) -> Iterator[int]:
    """Positions at which `after` does not begin as `before` does."""
    if before is after:
        return
    for start in range(0, len(before), _BLOCK):
        block = before[start : start + _BLOCK]
        now = after[start : start + len(block)]
        if block != now:
            yield from (start + i for i, (a, b) in enumerate(zip(block, now, strict=True)) if a is not b and a != b)


Keep = Callable[[Span], bool]
"""Whether a span is asked for, by what its header says (`store.query.Query.matches`)."""


def visible(run: Run, tree: bool, folded: frozenset[str], keep: Keep | None) -> Sequence[int]:
    """Positions of the spans that have a row, in order. In a timeline nothing that is asked for is folded away."""
    if tree and keep is not None:
        return _asked_for(run, keep, folded)
    unfolded = _unfolded(run, folded) if keep is None else range(len(run.spans))
    if tree:
        return unfolded
    shows = _shows(run, keep)
    return array("L", [i for i in unfolded if shows(i)])


def _unfolded(run: Run, folded: frozenset[str]) -> Sequence[int]:
    """Positions of the spans that are below none that is folded."""
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


def visible_now(
    before: Sequence[int], came: Growth, run: Run, tree: bool, folded: frozenset[str], keep: Keep | None
) -> Sequence[int]:
    """`visible` of a run that grew, from that of before."""
    if not isinstance(before, array) or (tree and keep is not None) or (folded and not tree):
        return visible(run, tree, folded, keep)
    if tree:
        found: array[int] = before[:]
        for position in range(came.kept, len(run.spans)):
            if not _folded_away(run, position, folded, found):
                found.append(position)
        return found
    return chosen_now(before, came, len(run.spans), _shows(run, keep))


def chosen_now(before: array[int], came: Growth, count: int, chosen: Callable[[int], bool]) -> array[int]:
    """Positions of the chosen spans among `count`, from those of the run before it grew. Each is chosen by itself."""
    found = before[:]
    for position in came.changed:
        at = bisect_left(found, position)
        there = at < len(found) and found[at] == position
        if there and not chosen(position):
            found.pop(at)
        elif not there and chosen(position):
            found.insert(at, position)
    found.extend(i for i in range(came.kept, count) if chosen(i))
    return found


def _shows(run: Run, keep: Keep | None) -> Callable[[int], bool]:
    """Whether a span has a row in the timeline."""
    spans, sizes = run.spans, run.sizes
    if keep is not None:
        return lambda i: (sizes[i] == 1 or spans[i].operation not in CONTAINERS) and keep(spans[i])
    return lambda i: sizes[i] == 1 or spans[i].operation not in CONTAINERS


def _folded_away(run: Run, position: int, folded: frozenset[str], found: Sequence[int]) -> bool:
    """Whether a span is below one that is folded, where `found` tells this of all spans before it."""
    above = run.parent(position) if run.depths[position] else None
    if above is None:
        return False
    at = bisect_left(found, above)
    return run.spans[above].id in folded or at == len(found) or found[at] != above


def _asked_for(run: Run, keep: Keep, folded: frozenset[str]) -> Sequence[int]:
    """What is asked for and what contains it, without what is folded away."""
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

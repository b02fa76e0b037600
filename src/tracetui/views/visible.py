"""Which spans of a run have a row: all, the work without what contains it, what is not folded away, what failed."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence

from tracetui.model import Run, Status
from tracetui.model.build import CONTAINERS
from tracetui.views.growth import Growth


def visible(run: Run, tree: bool, folded: frozenset[str], errors_only: bool) -> Sequence[int]:
    """Positions of the spans that have a row, in order."""
    if not tree:
        shows = _shows(run, errors_only)
        return array("L", [i for i in range(len(run.spans)) if shows(i)])
    if errors_only:
        return _failing(run)
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
    before: Sequence[int], came: Growth, run: Run, tree: bool, folded: frozenset[str], errors_only: bool
) -> Sequence[int]:
    """`visible` of a run that grew, from that of before."""
    if not isinstance(before, array) or (tree and errors_only):
        return visible(run, tree, folded, errors_only)
    if tree:
        found: array[int] = before[:]
        for position in range(came.kept, len(run.spans)):
            if not _folded_away(run, position, folded, found):
                found.append(position)
        return found
    return chosen_now(before, came, len(run.spans), _shows(run, errors_only))


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


def _shows(run: Run, errors_only: bool) -> Callable[[int], bool]:
    """Whether a span has a row in the timeline."""
    spans, sizes = run.spans, run.sizes
    if errors_only:
        return lambda i: spans[i].status is Status.ERROR and (sizes[i] == 1 or spans[i].operation not in CONTAINERS)
    return lambda i: sizes[i] == 1 or spans[i].operation not in CONTAINERS


def _folded_away(run: Run, position: int, folded: frozenset[str], found: Sequence[int]) -> bool:
    """Whether a span is below one that is folded, where `found` tells this of all spans before it."""
    above = run.parent(position) if run.depths[position] else None
    if above is None:
        return False
    at = bisect_left(found, above)
    return run.spans[above].id in folded or at == len(found) or found[at] != above


def _failing(run: Run) -> Sequence[int]:
    """What failed, and what contains it."""
    positions = {i for i, span in enumerate(run.spans) if span.status is Status.ERROR}
    for position in list(positions):
        parent = run.parent(position)
        while parent is not None and parent not in positions:
            positions.add(parent)
            parent = run.parent(parent)
    return sorted(positions)

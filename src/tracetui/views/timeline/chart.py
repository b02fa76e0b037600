"""The time axis of a run: computed once, queried per span.

`Growth` detects new and changed spans of a growing run.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from heapq import nlargest
from itertools import accumulate, islice
from math import ceil, log, nan
from typing import Final, NamedTuple

from tracetui.analysis.navigation import IDLE_SECONDS, WorkTime
from tracetui.model import Run, Span, Status, Usage
from tracetui.model.blocks import BLOCK
from tracetui.model.build import CONTAINERS
from tracetui.text import Clean
from tracetui.views.bars import Axis, Bar, axis, bar, container, gap_axis, instant, on_grid
from tracetui.views.glyphs import UNICODE, Glyphs, bar_style
from tracetui.views.rows import Piece

_LATEST: Final = 1e12
"""Later times and longer durations are invalid and don't extend the axis."""
_PAINTED: Final = 1000
"""Maximum spans painted individually in the overview; beyond that a sample, the longest and all failed ones."""
_SAMPLE_LONGEST: Final = 200
_AXIS_RATIO: Final = 1.2
"""The axis of a growing run is a power of this, in milliseconds, so that most new steps leave all bars in place."""


def tokens_of(usage: Usage | None) -> int | None:
    """All tokens of a usage; None if not recorded."""
    return None if usage is None else usage.all_tokens


_FEW: Final = 500
"""Spans that are searched for a duration."""


class Chart:
    """The time axis of a run and the position of each span on it.

    Idle time, in which no span but containers ran, is left out. Spans without start times but with durations are laid
    end to end (`end_to_end`).
    """

    def __init__(self, run: Run, now: float | None = None, *, before: tuple[Chart, Growth] | None = None) -> None:
        """Measure `run`. `before` is the chart of an earlier state and the growth since."""
        self._run = run
        self._now = now if now is not None and 0 < now < _LATEST else None
        self.end_to_end = False
        self._layout: Layout | None = None
        self._inherited_reach: tuple[float, float] | None = None
        """First start and last end with inherited spans, if no other span has a time."""
        self._base = 0.0
        self.total_ms = 0.0
        """Length of the axis, 0 without recorded times; longer than a run that goes on."""
        self._end_ms = 0.0
        """End of the run so far."""
        self._time_range = self._update_time_range(before, own=True)
        self._recorded = self._update_work_time(before)
        """The time worked as recorded, without what goes on."""
        self._work: WorkTime | None = None
        """The time worked; None without idle time."""
        if before is not None:
            self._take_over(*before)
        self._measure(before)
        self._end_ms = self.total_ms
        if run.summary.status is Status.RUNNING and self._end_ms > 0:
            self.total_ms = _AXIS_RATIO ** ceil(log(self._end_ms, _AXIS_RATIO))

    def _take_over(self, before: Chart, delta: Growth) -> None:
        """Update the cached values of the earlier state."""
        cached, spans = before.__dict__, self._run.spans
        if "_tokens_before" in cached:
            self._tokens_before = self._tokens_since(before, delta)
        if "_leaves" in cached:
            self._leaves = update_chosen(before._leaves, delta, len(spans), self._is_leaf)
        if "_longest" in cached and not any(self._length(i) < before._length(i) for i in delta.changed):
            new_leaves = (i for i in (*delta.changed, *range(delta.start, len(spans))) if self._is_leaf(i))
            self._longest = nlargest(_SAMPLE_LONGEST, {*before._longest, *new_leaves}, key=self._length)
        if "_running" in cached:
            self._running = update_chosen(before._running, delta, len(spans), self._is_running)
        if "_failed" in cached:
            self._failed = update_chosen(before._failed, delta, len(spans), self._is_failed)
        if cached.get("_takes_time") is False:
            new = (*(spans[i] for i in delta.changed), *spans[delta.start :])
            self._takes_time = any(span.duration_ms for span in new)

    def _measure(self, before: tuple[Chart, Growth] | None) -> None:
        first, last = self._time_range
        if not last:
            first, last = self._inherited_reach = self._update_time_range(before, own=False)
        if last:
            work = self._recorded
            if self._now is not None and self._run.summary.status is Status.RUNNING and self._running:
                last = max(last, self._now)
                work = work.extended(_periods([self._run.spans[i] for i in self._running], self._now))
            self._base = first
            self.total_ms = (last - first) * 1000
            if work.longest_gaps and work.worked > 0:
                self._work, self.total_ms = work, work.worked * 1000
        if not last or self.total_ms <= 0:
            self._lay_end_to_end(before)

    def _update_time_range(self, before: tuple[Chart, Growth] | None, *, own: bool) -> tuple[float, float]:
        """First start and last end. Remeasures everything only if a changed span had set one of them."""
        spans = self._run.spans
        if before is None:
            return _time_range(spans, own=own)
        chart, delta = before
        reach = chart._time_range if own else chart._inherited_reach
        if reach is None:
            return _time_range(spans, own=own)
        first, last = reach
        gone = _time_range([chart._run.spans[i] for i in delta.changed], own=own)
        new = _time_range([*(spans[i] for i in delta.changed), *spans[delta.start :]], own=own)
        if gone[0] <= first < new[0] or gone[1] >= last > new[1]:
            return _time_range(spans, own=own)
        return min(first, new[0]), max(last, new[1])

    def _update_work_time(self, before: tuple[Chart, Growth] | None) -> WorkTime:
        """The time worked. Remeasures everything only if a changed span is no longer where it was."""
        spans = self._run.spans
        if before is not None:
            chart, delta = before
            pairs = ((_periods([chart._run.spans[i]]), _periods([spans[i]])) for i in delta.changed)
            if all(not old or (new and new[0][0] <= old[0][0] and old[0][1] <= new[0][1]) for old, new in pairs):
                return chart._recorded.extended(_periods([*(spans[i] for i in delta.changed), *spans[delta.start :]]))
        return WorkTime(_periods(spans))

    def _lay_end_to_end(self, before: tuple[Chart, Growth] | None) -> None:
        """Each span begins at the end of the previous one, a container with its first span."""
        self.total_ms = 0.0
        if not self._takes_time:
            return
        earlier = before[0]._layout if before is not None else None
        if before is None or earlier is None:
            self._layout = Layout().grown(self._run, 0)
        else:
            self._layout = earlier.grown(self._run, _first_moved(before[0]._run, self._run, before[1]))
        self.total_ms = self._layout.total_ms
        self.end_to_end = True

    def extent(self, position: int) -> tuple[float, float | None] | None:
        """Start and end of a span in ms from the start of the axis; the end is None if not recorded.

        None for spans without a time, and for inherited spans before the start.
        """
        span = self._run.spans[position]
        if self._layout is not None:
            start = self._layout.offsets[position]
            return None if start != start else (start, start + (span.duration_ms or 0.0))
        started = span.started_at
        if started is None or not 0 < started < _LATEST:
            return None
        start = (started - self._base) * 1000
        if start < 0 and span.taken_over:
            return None
        length = span.duration_ms
        if length is not None and not 0 <= length < _LATEST:
            length = None
        if self._work is not None:
            start = self._work.at(started) * 1000
            length = length and max(0.0, self._work.at(started + length / 1000) * 1000 - start)
        if length is not None:
            return start, start + length
        return start, (self._end_ms if span.status is Status.RUNNING else None)

    def elapsed(self, span: Span) -> float | None:
        """The duration of a span, so far if it is running; None if not recorded."""
        goes_on = self._run.summary.status is Status.RUNNING and span.status is Status.RUNNING
        if span.duration_ms is None and goes_on and self._now and span.started_at:
            return max(0.0, self._now - span.started_at) * 1000
        return span.duration_ms

    def tokens(self, position: int) -> int | None:
        """Tokens of a span; for a container without usage, the sum of its descendants; None if not recorded."""
        own = tokens_of(self._run.spans[position].usage)
        if own is not None or self._run.sizes[position] == 1:
            return own
        sums, counts = self._tokens_before
        end = position + self._run.sizes[position]
        return sums[end] - sums[position] if counts[end] > counts[position] else None

    @property
    def may_have_times(self) -> bool:
        """False for a short run that records no duration."""
        spans = self._run.spans
        return len(spans) > _FEW or any(self.elapsed(span) is not None for span in spans)

    @property
    def has_tokens(self) -> bool:
        """True if any span has tokens."""
        return self._tokens_before[1][len(self._run.spans)] > 0

    @cached_property
    def _tokens_before(self) -> tuple[list[int], list[int]]:
        """Prefix sums over leaves: tokens, and number of spans with tokens. The chart of a newer state appends."""
        return _add_up([0], [0], self._run.spans)

    def _tokens_since(self, before: Chart, delta: Growth) -> tuple[list[int], list[int]]:
        spans, old = self._run.spans, before._run.spans
        same = next((i for i in delta.changed if _reported_tokens(spans[i]) != _reported_tokens(old[i])), delta.start)
        sums, counts = before._tokens_before
        if len(sums) != same + 1:  # they go on otherwise, or did already
            sums, counts = sums[: same + 1], counts[: same + 1]
        return _add_up(sums, counts, spans[same:])

    def axis(self, width: int, glyphs: Glyphs = UNICODE) -> Axis:
        """The heading and the grid: lengths of the idle times, else of the time."""
        if self._work is not None:
            return gap_axis(self._work.longest_gaps, self.total_ms / 1000, width, glyphs)
        goes_on = self.total_ms > self._end_ms
        return axis(self.total_ms, width, note="end to end" if self.end_to_end else "", total=not goes_on)

    def pieces(
        self, position: int, ticks: tuple[int, ...], width: int, glyphs: Glyphs = UNICODE, *, thin: bool = False
    ) -> list[Piece]:
        """The bar of a span in `width` cells with the time grid; `thin` for containers."""
        extent = self.extent(position)
        if extent is None:
            return on_grid(Bar(0, ""), "line", ticks, width, glyphs)
        start, end = extent
        span = self._run.spans[position]
        style = bar_style(span)
        if end is None:
            return on_grid(instant(start, self.total_ms, width, glyphs), style, ticks, width, glyphs)
        draw = container if thin else bar
        return on_grid(draw(start, end, self.total_ms, width, glyphs), style, ticks, width, glyphs)

    def overview(self, width: int, glyphs: Glyphs = UNICODE) -> list[Piece]:
        """The run in one row: each cell shows an operation, failures on top."""
        styles = ["line"] * width
        for position in self._painted_positions():
            extent = self.extent(position)
            if extent is None or extent[1] is None:
                continue
            first = min(width - 1, int(extent[0] / self.total_ms * width))
            last = max(first + 1, min(width, round(extent[1] / self.total_ms * width)))
            styles[first:last] = [bar_style(self._run.spans[position])] * (last - first)
        full = Clean(glyphs.ends[-1])
        return [Piece(full, style) if style != "line" else Piece(Clean(" ")) for style in styles]

    def _painted_positions(self) -> Sequence[int]:
        if self.total_ms <= 0:
            return ()
        leaves: Sequence[int] = self._leaves
        if len(leaves) > _PAINTED:
            leaves = sorted({*leaves[:: 1 + len(leaves) // _PAINTED], *self._longest})
        return (*leaves, *self._failed)

    @cached_property
    def _takes_time(self) -> bool:
        """Whether any span has a duration."""
        return any(span.duration_ms for span in self._run.spans)

    @cached_property
    def _leaves(self) -> array[int]:
        """Positions of the leaves (no containers)."""
        return array("L", [i for i in range(len(self._run.spans)) if self._is_leaf(i)])

    @cached_property
    def _longest(self) -> list[int]:
        return nlargest(_SAMPLE_LONGEST, self._leaves, key=self._length)

    @cached_property
    def _failed(self) -> array[int]:
        return array("L", [i for i in self._leaves if self._is_failed(i)])

    @cached_property
    def _running(self) -> array[int]:
        return array("L", [i for i in range(len(self._run.spans)) if self._is_running(i)])

    def _is_running(self, position: int) -> bool:
        span = self._run.spans[position]
        return span.status is Status.RUNNING and span.operation not in CONTAINERS

    def _length(self, position: int) -> tuple[float, int]:
        """Sort key of a leaf: duration, then position. Containers sort last."""
        length = self._run.spans[position].duration_ms
        valid = length is not None and 0 < length < _LATEST and self._is_leaf(position)
        return (length or 0.0) if valid else 0.0, -position

    def _is_leaf(self, position: int) -> bool:
        return self._run.sizes[position] == 1 and self._run.spans[position].operation not in CONTAINERS

    def _is_failed(self, position: int) -> bool:
        return self._run.spans[position].status is Status.ERROR and self._is_leaf(position)


def _time_range(spans: Sequence[Span], *, own: bool = True) -> tuple[float, float]:
    """First start and last end of spans with valid times; `own`: without inherited spans."""
    first, last = _LATEST, 0.0
    for span in spans:
        start = span.started_at
        if start is not None and 0 < start < _LATEST and not (own and span.taken_over):
            if start < first:
                first = start
            length = span.duration_ms
            end = start + length / 1000 if length is not None and 0 < length < _LATEST else start
            if end > last:
                last = end
    return first, last


def _periods(spans: Iterable[Span], until: float | None = None) -> list[tuple[float, float]]:
    """(Start, end) in UTC seconds of the spans but containers; those that follow soon are joined.

    A span without an end lasts `until`; None: no time.
    """
    intervals: list[tuple[float, float]] = []
    for span in spans:
        start = span.started_at
        if start is None or not 0 < start < _LATEST or span.operation in CONTAINERS or span.taken_over:
            continue
        length = span.duration_ms
        end = start + length / 1000 if length is not None and 0 < length < _LATEST else max(start, until or start)
        if intervals and intervals[-1][0] <= start < intervals[-1][1] + IDLE_SECONDS:
            if end > intervals[-1][1]:
                intervals[-1] = intervals[-1][0], end
        else:
            intervals.append((start, end))
    return intervals


class Layout:
    """Spans laid end to end: the start of each in milliseconds, NaN without a duration."""

    def __init__(self) -> None:
        self.offsets = array("d")
        self.total_ms = 0.0
        self._states: list[tuple[float, tuple[tuple[int, float], ...]]] = [(0.0, ())]
        """At every `BLOCK`th span: its start, and the containers that go on, with their end positions and times."""

    def grown(self, run: Run, first: int) -> Layout:
        """The layout of `run`, whose spans before position `first` are laid already. Costs time for the others."""
        layout, number = Layout(), min(first // BLOCK, len(self._states) - 1)
        layout._states, layout.offsets = self._states[: number + 1], self.offsets[: number * BLOCK]
        sizes, offsets = run.sizes, layout.offsets
        at, held = layout._states[-1]
        ends = list(held)
        for i, span in enumerate(run.spans[number * BLOCK :], number * BLOCK):
            while ends and ends[-1][0] <= i:
                at = max(at, ends.pop()[1])
            if i == len(layout._states) * BLOCK:
                layout._states.append((at, tuple(ends)))
            length = span.duration_ms
            if length is None or not 0 <= length < _LATEST:
                offsets.append(nan)
                continue
            offsets.append(at)
            if sizes[i] == 1:
                at += length
            else:
                ends.append((i + sizes[i], at + length))
        layout.total_ms = max([at, *(end for _, end in ends)])
        return layout


def _first_moved(old: Run, new: Run, delta: Growth) -> int:
    """The first span from which on a layout end to end differs."""

    def shape(run: Run, i: int) -> tuple[float | None, int]:
        length = run.spans[i].duration_ms
        return length, run.sizes[i] if length is not None else 0

    return next((i for i in delta.changed if shape(old, i) != shape(new, i)), delta.start)


def _reported_tokens(span: Span) -> int | None:
    """The tokens of a span that count for its containers."""
    return None if span.operation in CONTAINERS else tokens_of(span.usage)


def _add_up(sums: list[int], counts: list[int], spans: Sequence[Span]) -> tuple[list[int], list[int]]:
    """Extend the prefix sums."""
    stated = [_reported_tokens(span) for span in spans]
    sums += islice(accumulate((count or 0 for count in stated), initial=sums[-1]), 1, None)
    counts += islice(accumulate((count is not None for count in stated), initial=counts[-1]), 1, None)
    return sums, counts


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
        return _filtered(run, keep, folded)
    unfolded = _unfolded_positions(run, folded) if keep is None else range(len(run.spans))
    if tree:
        return unfolded
    shows = _row_filter(run, keep)
    return array("L", [i for i in unfolded if shows(i)])


def _unfolded_positions(run: Run, folded: frozenset[str]) -> Sequence[int]:
    """Positions of the spans without a folded ancestor."""
    if not folded:
        return range(len(run.spans))
    positions: array[int] = array("L")
    at = 0
    for position in sorted(run.index[span_id] for span_id in folded if span_id in run.index):
        if position >= at:
            positions.extend(range(at, position + 1))
            at = position + run.sizes[position]
    positions.extend(range(at, len(run.spans)))
    return positions


def update_visible(
    before: Sequence[int], delta: Growth, run: Run, tree: bool, folded: frozenset[str], keep: Keep | None
) -> Sequence[int]:
    """Update the result of `visible` for a run that grew."""
    if not isinstance(before, array) or (tree and keep is not None) or (folded and not tree):
        return visible(run, tree, folded, keep)
    if tree:
        positions: array[int] = before[:]
        for position in range(delta.start, len(run.spans)):
            if not _is_folded_away(run, position, folded, positions):
                positions.append(position)
        return positions
    return update_chosen(before, delta, len(run.spans), _row_filter(run, keep))


def update_chosen(before: array[int], delta: Growth, count: int, chosen: Callable[[int], bool]) -> array[int]:
    """Update the positions of chosen spans for a run that grew. The choice must depend on the span alone."""
    positions = before[:]
    for position in delta.changed:
        at = bisect_left(positions, position)
        is_present = at < len(positions) and positions[at] == position
        if is_present and not chosen(position):
            positions.pop(at)
        elif not is_present and chosen(position):
            positions.insert(at, position)
    positions.extend(i for i in range(delta.start, count) if chosen(i))
    return positions


def _row_filter(run: Run, keep: Keep | None) -> Callable[[int], bool]:
    """Whether a span has a row in the timeline."""
    spans, sizes = run.spans, run.sizes
    if keep is not None:
        return lambda i: (sizes[i] == 1 or spans[i].operation not in CONTAINERS) and keep(spans[i])
    return lambda i: sizes[i] == 1 or spans[i].operation not in CONTAINERS


def _is_folded_away(run: Run, position: int, folded: frozenset[str], positions: Sequence[int]) -> bool:
    """Whether a span has a folded ancestor, if `positions` is complete up to it."""
    above = run.parent(position) if run.depths[position] else None
    if above is None:
        return False
    at = bisect_left(positions, above)
    return run.spans[above].id in folded or at == len(positions) or positions[at] != above


def _filtered(run: Run, keep: Keep, folded: frozenset[str]) -> Sequence[int]:
    """The filtered spans with their ancestors, without folded ones."""
    positions = {i for i, span in enumerate(run.spans) if keep(span)}
    for position in list(positions):
        parent = run.parent(position)
        while parent is not None and parent not in positions:
            positions.add(parent)
            parent = run.parent(parent)
    selected: array[int] = array("L")
    end = 0
    for position in sorted(positions):
        if position >= end:
            selected.append(position)
            end = position + run.sizes[position] if run.spans[position].id in folded else end
    return selected

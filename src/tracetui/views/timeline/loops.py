"""Folds loops of the timeline into one row each."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from tracetui.analysis.assessment import Assessment, Loop
from tracetui.model import Run, Span, Status
from tracetui.text import Clean, duration, tokens, truncate
from tracetui.views.bars import bar, on_grid
from tracetui.views.glyphs import UNICODE, Glyphs, bar_style
from tracetui.views.labels import BLANK, Columns, argument, short_name, time_cell, token_cell
from tracetui.views.rows import Piece, fill, fit, width_of
from tracetui.views.timeline.chart import Chart
from tracetui.views.timeline.growth import Growth, growth


def loop_title(run: Run, loop: Loop, glyphs: Glyphs = UNICODE) -> Clean:
    """``search ×6 (identical)``, ``fetch → parse ×4 (same calls)``."""
    cycle = f" {glyphs.arrow} ".join(
        truncate(short_name(run.spans[call]), 40) or glyphs.missing for call in loop.calls[: loop.period]
    )
    calls = "same call" if loop.period == 1 else "same calls"
    return Clean(f"{cycle} {glyphs.times}{loop.times} ({'identical' if loop.identical else calls})")


def loop_cost(loop: Loop) -> Clean:
    """The cost of the repetitions: ``1.2s, 4.5k tokens``; empty if not recorded."""
    parts = []
    if loop.wasted_ms is not None:
        parts.append(duration(loop.wasted_ms))
    if loop.wasted_tokens is not None:
        parts.append(Clean(f"{tokens(loop.wasted_tokens)} tokens"))
    return Clean(", ".join(parts))


_WARN: Final = "status.warn"
_N = TypeVar("_N", int, float)


class Folds:
    """The loops of a run, by id of the first call. All are folded except those in `unfolded`."""

    def __init__(
        self, run: Run, loops: Sequence[Loop], doomed: str | None, unfolded: frozenset[str] = frozenset()
    ) -> None:
        self._run, self.loops, self._doomed, self.unfolded = run, loops, doomed, unfolded
        self._firsts = array("L", [loop.first for loop in loops])

    @classmethod
    def of(cls, assessment: Assessment, run: Run, *, going: bool) -> Folds:
        """The loops of a run, from the assessment of this or an earlier state.

        While the run is `running`, a last loop that may continue is left out.
        """
        point = assessment.early_point
        folds = cls(assessment.run, assessment.loops, point.span if point is not None else None)
        if run is not assessment.run:
            folds = folds.with_run(growth(assessment.run, run), run)
        if going and folds.loops and _may_grow(run, folds.loops[-1]):
            folds = cls(run, folds.loops[:-1], folds._doomed)
        return folds

    def with_run(self, delta: Growth | None, run: Run) -> Folds:
        """The loops that a newer state of the run didn't change."""
        loops = () if delta is None else [loop for loop in self.loops if not _touched(self._run, loop, delta)]
        return Folds(run, loops, self._doomed, self.unfolded)

    def with_unfolded(self, unfolded: frozenset[str]) -> Folds:
        """The same loops with another set of unfolded ones."""
        return Folds(self._run, self.loops, self._doomed, unfolded)

    @property
    def state(self) -> tuple[tuple[Loop, ...], str | None, frozenset[str]]:
        """Everything that the rows of a run depend on."""
        return tuple(self.loops), self._doomed, self.unfolded

    def key(self, loop: Loop) -> str:
        """The key of a loop: the id of its first call."""
        return self._run.spans[loop.first].id

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all loops."""
        return frozenset(map(self.key, self.loops))

    def loop_at(self, position: int) -> Loop | None:
        """The loop that contains a call."""
        at = bisect_right(self._firsts, position) - 1
        loop = self.loops[at] if at >= 0 else None
        return loop if loop is not None and position <= loop.last else None

    def is_folded(self, loop: Loop) -> bool:
        """Whether the loop has a single row."""
        return self.key(loop) not in self.unfolded

    def hidden_by(self, position: int) -> str | None:
        """The key of the folded loop that hides a call."""
        loop = self.loop_at(position)
        hides = loop is not None and position != loop.first and self.is_folded(loop)
        return self.key(loop) if loop is not None and hides else None

    def shown(self, calls: Sequence[int]) -> Sequence[int]:
        """Filter timeline positions to those that no fold hides."""
        if all(map(self.unfolded.__contains__, self.keys)):
            return calls
        found: array[int] = array("L")
        at = 0
        for loop in filter(self.is_folded, self.loops):
            first = bisect_left(calls, loop.first)
            found.extend(calls[at : first + 1])
            at = first + len(loop.calls)
        found.extend(calls[at:])
        return found

    def row(self, position: int) -> LoopRow | None:
        """The folded loop at the row of a call."""
        loop = self.loop_at(position)
        return LoopRow(self._run, loop, self._doomed) if loop is not None and self.is_folded(loop) else None

    def notes(self, position: int, glyphs: Glyphs) -> Iterator[Piece]:
        """Notes on a call's own row: start of a loop, point of no return."""
        loop = self.loop_at(position)
        if loop is not None and loop.first == position:
            yield Piece(Clean(f"  {glyphs.loop} {glyphs.times}{loop.times}"), _WARN)
        if self._doomed == self._run.spans[position].id:
            yield _doom(glyphs)


class LoopRow:
    """The row of a folded loop."""

    def __init__(self, run: Run, loop: Loop, doomed: str | None) -> None:
        self._run, self._loop = run, loop
        self._dooms = loop.first <= run.index.get(doomed or "", -1) <= loop.last

    @property
    def failed(self) -> int:
        """Number of failed calls."""
        return sum(span.status is Status.ERROR for span in self.calls)

    @property
    def calls(self) -> list[Span]:
        """All calls."""
        return [self._run.spans[call] for call in self._loop.calls]

    def plain(self, plain: Callable[[Span], str]) -> str:
        """The searchable text: the title and the text of each call."""
        return " ".join((loop_title(self._run, self._loop), *dict.fromkeys(map(plain, self.calls))))

    def cells(self, columns: Columns, chart: Chart, ticks: tuple[int, ...], glyphs: Glyphs) -> Iterator[Piece]:
        """The cells of the row, with the totals of all calls."""
        yield from fill(self._what(columns.what, glyphs), columns.what)
        if columns.tokens:
            yield from (BLANK, token_cell(_sum(map(chart.tokens, self._outer())), glyphs))
        if columns.time:
            times = (chart.elapsed(self._run.spans[call]) for call in self._outer())
            yield from (BLANK, time_cell(_sum(times), "sec", glyphs))
        if columns.bar:
            yield from (BLANK, *self._bar(chart, ticks, columns.bar, glyphs))

    def _what(self, width: int, glyphs: Glyphs) -> list[Piece]:
        """Glyph, title and failures; then argument, point of no return and cost if they fit."""
        run, loop = self._run, self._loop
        words = Clean(f"{glyphs.loop} {loop_title(run, loop, glyphs)}")
        pieces = [Piece(Clean(f"{glyphs.folded} "), "dim"), Piece(words, _WARN)]
        if self.failed:
            pieces.append(Piece(Clean(f" {self.failed}{glyphs.error}"), "status.error"))
        room, spent = width - width_of(pieces), loop_cost(loop)
        after = []
        if self._dooms:
            doom = _doom(glyphs)
            after.append(doom if width_of((doom,)) <= room else Piece(Clean(f" {glyphs.note}"), _WARN))
            room -= width_of(after)
        lost = Piece(Clean(f"  {spent} lost" if spent else ""), "dim")
        if width_of((lost,)) <= room:
            after.append(lost)
            room -= width_of((lost,))
        given = argument(run.spans[loop.first])
        arguments = fit([Piece(Clean(f" {given}"), "dim")], room) if given and loop.period == 1 and room > 3 else []
        return [*pieces, *arguments, *after]

    def _bar(self, chart: Chart, ticks: tuple[int, ...], width: int, glyphs: Glyphs) -> list[Piece]:
        """A bar from the first call to the end of the last."""
        extents = [extent for call in self._loop.calls if (extent := chart.extent(call)) is not None]
        start = min((start for start, _ in extents), default=0.0)
        stop = max((end if end is not None else begin for begin, end in extents), default=0.0)
        what = bar(start, stop, chart.total_ms if extents else 0.0, width, glyphs)
        return on_grid(what, bar_style(self._run.spans[self._loop.first]), ticks, width, glyphs)

    def _outer(self) -> Iterator[int]:
        """The calls that aren't descendants of other calls."""
        end = 0
        for call in self._loop.calls:
            if call >= end:
                end = call + self._run.sizes[call]
                yield call


def _sum(numbers: Iterable[_N | None]) -> _N | None:
    """The sum of the recorded values; None if there are none."""
    values = [number for number in numbers if number is not None]
    return sum(values) if values else None


def _touched(run: Run, loop: Loop, delta: Growth) -> bool:
    """Whether a call of the loop, or a descendant, changed."""
    at = bisect_left(delta.changed, loop.first)
    return at < len(delta.changed) and delta.changed[at] < loop.last + run.sizes[loop.last]


def _may_grow(run: Run, loop: Loop) -> bool:
    """Whether the loop may continue: no complete round follows it. Each call may have a turn container."""
    return len(run.spans) - (loop.last + run.sizes[loop.last]) < 2 * loop.period


def _doom(glyphs: Glyphs) -> Piece:
    return Piece(Clean(f"  {glyphs.note} doomed here"), _WARN)

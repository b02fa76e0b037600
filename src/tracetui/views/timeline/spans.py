"""The spans of a run as rows: the timeline (one line per step) and the span tree.

A row costs one array entry (its span's position), and a fold another: cheap for 100,000 spans.

Loops in the timeline are folded into one row each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tracetui.analysis import navigation
from tracetui.analysis.effects.actions import action_of
from tracetui.masking import one_line
from tracetui.model import Operation, Run, Span, Status
from tracetui.model.build import CONTAINERS
from tracetui.store.address import step_number
from tracetui.text import Clean, count, duration, pad, tokens, truncate
from tracetui.views.bars import bar, on_grid
from tracetui.views.glyphs import UNICODE, Glyphs, bar_style, kind
from tracetui.views.labels import BLANK, NO_TEXT, Columns, argument, name_beside, short_name, time_cell, token_cell
from tracetui.views.rows import Fold, Line, Piece, fill, fit, width_of
from tracetui.views.timeline.chart import Chart, Growth, Keep, growth, update_visible, visible
from tracetui.views.timeline.header import ending
from tracetui.views.timeline.work import step_pieces

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment, Loop

END: Final = ("end of run",)
"""Key of the last row. Span ids are strings, so it is unique."""

_STORY_BAR_FROM: Final = 90
"""Cells of rows in the words of a story that have room for bars too."""
_BAR_FROM, _TOKENS_FROM, _TIME_FROM, _NUMBER_FROM = 56, 66, 30, 16
_BOLD: Final = frozenset({Operation.INVOKE_AGENT, Operation.INVOKE_WORKFLOW})
_INSTANT: Final = {Operation.MESSAGE, Operation.META, Operation.UNKNOWN}
"""What takes no time, so that a missing duration says nothing."""
_THIN: Final = CONTAINERS | {Operation.NODE}
_QUIET: Final = {Operation.META: "dim", Operation.HOOK: "sec", Operation.UNKNOWN: "sec"}
"""Operations that aren't work of the agent are dimmed."""
_MAX_INDENT: Final = 16
"""Maximum indentation in cells; deeper spans show their depth as a number."""


class SpanRows:
    """Rows of a run's spans; see `tracetui.views.rows.Rows`. The key of a row is the id of its span.

    With `tree`, every span is below its parent, and the descendants of spans in `folded` are hidden. Otherwise the rows
    are flat, without non-empty containers, and only abandoned branches fold. `keep` filters spans (in a tree, ancestors
    stay). `longest_first` sorts the timeline by duration. `chart`, `positions` and `failed` (positions) are reused if
    given. Rows are in the words of a story if `as_story`. `folds` are the loops of a timeline without filter and sort
    order: a folded loop has one row, at its first call.
    """

    def __init__(
        self,
        run: Run,
        *,
        tree: bool,
        folded: frozenset[str] = frozenset(),
        glyphs: Glyphs = UNICODE,
        now: float | None = None,
        keep: Keep | None = None,
        longest_first: bool = False,
        chart: Chart | None = None,
        positions: Sequence[int] | None = None,
        failed: Sequence[int] | None = None,
        folds: Folds | None = None,
        as_story: bool = False,
    ) -> None:
        self.run = run
        self.tree = tree
        self.folded = folded if tree else navigation.abandoned_branches(run, folded)
        self._glyphs = glyphs
        self._now = now
        self.keep = keep
        self.longest_first = longest_first and not tree
        self._chart = chart
        self._failed = failed
        self._marked: Sequence[int] | None = None
        self._columns: tuple[int, Columns] | None = None
        self._ticks: tuple[int, ...] = ()
        self._path: Sequence[int] = ()
        """Positions of the span under the cursor of a tree and of those that contain it, from the root."""
        self._positions = visible(run, tree, self.folded, keep) if positions is None else positions
        self.folds = folds
        self._as_story = as_story
        self._loops = folds if not (tree or keep is not None or self.longest_first) else None
        self._visible = self._longest() if self.longest_first else self._positions
        if self._loops is not None:
            self._visible = self._loops.drop_hidden(self._positions)
        self._ranks: dict[int, int] | None = None
        self._ending = ending(run, glyphs)

    def refold(self, folded: frozenset[str]) -> SpanRows:
        """The same rows with other folds. Reuses the chart."""
        return self._copy(folded=folded)

    def fold_loops(self, folds: Folds | None) -> SpanRows:
        """The same rows with other loops or folded loops."""
        return self._copy(folds=folds, positions=self._positions)

    def reveal(self, key: Hashable) -> SpanRows:
        """Unfold the loop or branch that hides a span in the timeline. Tree folds stay."""
        position = self.run.index.get(key) if isinstance(key, str) else None
        if position is None or self.tree:
            return self
        branches = {self.run.spans[at].id for at in self._folded_ancestors(position)}
        rows = self.refold(self.folded - branches) if branches else self
        hides = rows._loops.hiding_loop(position) if rows._loops is not None else None
        if rows._loops is None or hides is None:
            return rows
        return rows.fold_loops(rows._loops.with_unfolded(rows._loops.unfolded | {hides}))

    def with_filter(self, keep: Keep | None, *, longest_first: bool = False) -> SpanRows:
        """The same spans with another filter or sort order. Reuses the chart."""
        return self._copy(keep=keep, longest_first=longest_first)

    def with_run(self, run: Run, *, now: float | None = None) -> SpanRows:
        """The rows of a newer state of the run. If the run only grew at the end, only new spans are measured."""
        delta = growth(self.run, run)
        folds = self.folds.with_run(delta, run) if self.folds is not None else None
        if delta is None:
            return self._copy(run, now=now, chart=None, failed=None, folds=folds)
        chart = Chart(run, now, before=(self._chart, delta)) if self._chart is not None else None
        positions = update_visible(self._positions, delta, run, self.tree, self.folded, self.keep)
        failed = _failed(run, self._failed, delta) if self._failed is not None else None
        return self._copy(run, now=now, chart=chart, positions=positions, failed=failed, folds=folds)

    def _copy(self, run: Run | None = None, **other: Any) -> SpanRows:
        """A copy with changes."""
        same = {
            "tree": self.tree,
            "folded": self.folded,
            "glyphs": self._glyphs,
            "now": self._now,
            "keep": self.keep,
            "longest_first": self.longest_first,
            "chart": self._chart,
            "failed": self._failed,
            "folds": self.folds,
            "as_story": self._as_story,
        }
        return SpanRows(run or self.run, **{**same, **other})

    @property
    def chart(self) -> Chart:
        """The time axis."""
        if self._chart is None:
            self._chart = Chart(self.run, self._now)
        return self._chart

    # ---- the rows

    def __len__(self) -> int:
        return len(self._visible) + (1 if self._ending else 0)

    def span(self, index: int) -> Span | None:
        """The span of a row, None for the last row."""
        return self.run.spans[self._visible[index]] if index < len(self._visible) else None

    def key(self, index: int) -> Hashable:
        span = self.span(index)
        return END if span is None else span.id

    def index(self, key: Hashable) -> int | None:
        """The row of a span; for a hidden span, the row that represents it (folded ancestor, first child)."""
        if key == END:
            return len(self._visible) if self._ending else None
        position = self.run.index.get(key) if isinstance(key, str) else None
        if position is None or not self._visible:
            return None
        if self.tree:
            return max(0, bisect_right(self._visible, position) - 1)
        position = min(self._folded_ancestors(position), default=position)
        place = min(len(self._positions) - 1, bisect_left(self._positions, position))
        span_index = self._positions[place]
        return self._rank(span_index) if self.longest_first else bisect_right(self._visible, span_index) - 1

    def selectable(self, index: int) -> bool:
        return index < len(self._visible)

    def mark(self, index: int) -> str | None:
        at = bisect_left(self.marked, index)
        return "status.error" if at < len(self.marked) and self.marked[at] == index else None

    @property
    def failed(self) -> Sequence[int]:
        """Positions of the failed spans."""
        if self._failed is None:
            self._failed = _failed(self.run)
        return self._failed

    @property
    def marked(self) -> Sequence[int]:
        """See `tracetui.views.rows.WithMarks`."""
        if self._marked is None:
            rows = {row for at in self.failed if (row := self.index(self.run.spans[at].id)) is not None}
            if self.folded and not self.tree:  # a branch may hide rows of others
                rows.update(range(len(self)))
            self._marked = sorted(filter(self._is_failure, rows))
        return self._marked

    def _is_failure(self, index: int) -> bool:
        """Whether the span of a row, or one that the row hides, failed."""
        span = self.span(index)
        if span is None or span.status is Status.ERROR:
            return span is not None
        position = self._visible[index]
        loop = self._loop(position)
        return loop.failed > 0 if loop is not None else span.id in self.folded and self._failed_inside(position) > 0

    def plain(self, index: int) -> str:
        span = self.span(index)
        if span is None:
            return " ".join(piece.text for piece in self._ending)
        loop = self._loop(self._visible[index])
        return loop.plain(plain) if loop is not None else plain(span)

    def line(self, index: int, width: int) -> Line:
        columns = self._layout(width)
        position = self._visible[index] if index < len(self._visible) else -1
        if position < 0:
            indent = Piece(Clean(" " * (columns.number + 1 if columns.number else 0)))
            return tuple(fit((indent, *self._ending), width))
        span, loop = self.run.spans[position], self._loop(position)
        pieces: list[Piece] = []
        if columns.number:
            failed = span.status is Status.ERROR or (loop is not None and loop.failed)
            number = self._number(index, position)
            pieces += (Piece(pad(number, columns.number, right=True), "status.error" if failed else "dim"), BLANK)
        if loop is not None:
            return (*pieces, *loop.cells(columns, self.chart, self._ticks, self._glyphs))
        pieces += fill(self._what(position, span, columns.what), columns.what)
        if columns.tokens:
            pieces += (BLANK, token_cell(self.chart.tokens(position), self._glyphs))
        if columns.time:
            pieces += (BLANK, self._time(span))
        if columns.bar:
            pieces.append(BLANK)
            thin = self.tree and self.run.sizes[position] > 1 and span.operation in _THIN
            pieces += self.chart.pieces(position, self._ticks, columns.bar, self._glyphs, thin=thin)
        return tuple(pieces)

    def header(self, width: int) -> Line:
        """The column headings and the time axis."""
        columns = self._layout(width)
        pieces: list[Piece] = []
        if columns.number:
            pieces += (Piece(pad(Clean("#"), columns.number, right=True), "dim"), BLANK)
        word = Clean(("  span" if self.tree else "  step") if columns.what > 8 else "")
        pieces.append(Piece(pad(word, columns.what), "dim"))
        if columns.tokens:
            pieces.append(Piece(Clean("   tok"), "dim"))
        if columns.time:
            pieces.append(Piece(Clean("  time"), "accent" if self.longest_first else "dim"))
        if columns.bar:
            pieces += (BLANK, *self.chart.axis(columns.bar, self._glyphs).heading)
        return tuple(fit(pieces, width))

    def overview(self, width: int) -> Line:
        """The whole run in one row, for wide screens; empty without durations."""
        bars = self.chart.overview(width - 11, self._glyphs) if width >= 40 else []
        return (Piece(Clean("whole run  "), "dim"), *bars) if any(bar.text.strip() for bar in bars) else ()

    # ---- folds

    def fold(self, index: int) -> Fold | None:
        """The fold of a row, with the id of a span or loop to toggle; None for none."""
        if index >= len(self._visible):
            return None
        position = self._visible[index]
        if self._loops is not None and (loop := self._loops.loop_at(position)) is not None:
            return Fold(self._loops.key(loop), not self._loops.is_folded(loop))
        span = self.run.spans[position]
        if self.run.sizes[position] == 1 or not (self.tree or navigation.is_abandoned_branch(self.run, position)):
            return None
        return Fold(span.id, span.id not in self.folded)

    def _folded_ancestors(self, position: int) -> list[int]:
        """The folded spans that hide a span."""
        if self.keep is not None and not self.tree:
            return []
        return [at for span_id in self.folded if (at := self.run.index[span_id]) < position < at + self.run.sizes[at]]

    def _loop(self, position: int) -> LoopRow | None:
        """The folded loop of a row."""
        return self._loops.row(position) if self._loops is not None else None

    def folded_calls(self, index: int) -> list[Span]:
        """The calls of a folded loop's row; empty for other rows."""
        loop = self._loop(self._visible[index]) if index < len(self._visible) else None
        return loop.calls if loop is not None else []

    def parent(self, index: int) -> int | None:
        """The row of the parent, None at the top and in the timeline."""
        if not self.tree or index >= len(self._visible):
            return None
        position = self.run.parent(self._visible[index])
        return None if position is None else self.index(self.run.spans[position].id)

    @property
    def hidden(self) -> int:
        """Number of spans without a row."""
        return len(self.run.spans) - len(self._visible)

    # ---- the order

    def _longest(self) -> Sequence[int]:
        """Visible positions, longest first, then those without a duration."""
        spans, elapsed = self.run.spans, self.chart.elapsed
        times = {i: elapsed(spans[i]) for i in self._positions}
        return array("L", sorted(self._positions, key=lambda i: (times[i] is None, -(times[i] or 0.0), i)))

    def _rank(self, position: int) -> int:
        """The row of a visible span."""
        if self._ranks is None:
            self._ranks = {position: row for row, position in enumerate(self._visible)}
        return self._ranks[position]

    # ---- one row

    def _layout(self, width: int) -> Columns:
        if self._columns is not None and self._columns[0] == width:
            return self._columns[1]
        steps = self.run.steps
        largest = max((len(_step(step.number)) for step in (steps[0], steps[-1])), default=1) if steps else 1
        number = max(3, min(largest, 6)) if width >= _NUMBER_FROM else 0
        bar = 0
        if width >= (_STORY_BAR_FROM if self._as_story else _BAR_FROM) and self.chart.total_ms > 0:
            bar = max(12, int(width * (0.35 if width < 90 else 0.42)))
        tok = 5 if width >= _TOKENS_FROM and self.chart.has_tokens else 0
        time = 5 if width >= _TIME_FROM and self.chart.may_have_times else 0
        taken = sum(size + 1 for size in (number, tok, time, bar) if size)
        columns = Columns(number, max(0, width - taken), tok, time, bar)
        self._ticks = self.chart.axis(bar, self._glyphs).ticks if bar else ()
        self._columns = width, columns
        return columns

    def _number(self, index: int, position: int) -> Clean:
        """The step number, on the first row of the step."""
        span = self.run.spans[position]
        if span.step is None:
            return Clean("")
        if not span.is_step and step_number(self.run, span) != span.step:
            return Clean("")  # a number of a nested graph or agent, which opens no step of this run
        if not span.is_step and not self.longest_first:
            before = self.run.parent(position) if self.tree else (self._visible[index - 1] if index else None)
            if before is not None and self.run.spans[before].step == span.step:
                return Clean("")
        return _step(span.step)

    def _what(self, position: int, span: Span, width: int) -> list[Piece]:
        """Guides, fold mark, glyph, name, argument and note. The note stays when the argument is truncated."""
        pieces = self._guides(position, span) if self.tree else self._agent_indent(position, span)
        sign, style = kind(span, self._glyphs)
        name_style = "text bold" if span.operation in _BOLD else _QUIET.get(span.operation, "text")
        if span.status in (Status.ERROR, Status.RUNNING):
            name_style = f"{style} bold"
        notes, argument_text = self._notes(position, span, style), argument(span)
        if not argument_text and span.operation is Operation.MESSAGE:
            argument_text = NO_TEXT
        pieces += (Piece(sign, style), BLANK)
        room = width - width_of((*pieces, *notes))
        if self._as_story:
            return [*pieces[:-2], *fit(step_pieces(span, action_of(span), room + 2, self._glyphs), room + 2), *notes]
        if span.operation is Operation.UNKNOWN:
            kind_name = "" if span.name in ("", "?") else f": {short_name(span)}"
            pieces.append(Piece(Clean(f"unknown kind of record{kind_name}"), "dim"))
        else:
            pieces.append(Piece(name_beside(span, argument_text, room) or self._glyphs.missing, name_style))
        if argument_text:
            room = width - width_of((*pieces, *notes))
            pieces += fit([Piece(Clean(" " + argument_text), "dim")], room) if room > 3 or not notes else ()
        return pieces + notes

    def _notes(self, position: int, span: Span, style: str) -> list[Piece]:
        """The span's note, and a summary of hidden spans."""
        gap = Piece(Clean("  " if span.preview else " "))
        pieces = [gap, Piece(one_line(span.note, 60), style if span.status in _LOUD else "accent")] if span.note else []
        if span.id in self.folded and self.run.sizes[position] > 1:
            pieces += (gap, Piece(Clean(f"{self.run.sizes[position] - 1} below"), "dim"))
            failed = self._failed_inside(position)
            if failed:
                pieces.append(Piece(Clean(f" {failed}{self._glyphs.error}"), "status.error"))
        if self.folds is not None and (notes := [*self.folds.notes(position, self._glyphs)]):
            pieces += notes
        return pieces

    def _failed_inside(self, position: int) -> int:
        """Number of failed descendants."""
        end = position + self.run.sizes[position]
        return bisect_left(self.failed, end) - bisect_left(self.failed, position + 1)

    def follow_cursor(self, index: int) -> bool:
        """Draw guides to the row of the cursor; whether they change others than that row."""
        before, path = self._path, list[int]()
        at = self._visible[index] if self.tree and index < len(self._visible) else None
        while at is not None:
            path.append(at)
            at = self.run.parent(at)
        self._path = path[::-1]
        return [at for at in before if self.run.sizes[at] > 1] != [at for at in path[::-1] if self.run.sizes[at] > 1]

    def _guides(self, position: int, span: Span) -> list[Piece]:
        """The indentation, with a guide below each span that contains the cursor; then the fold mark or blanks."""
        depth = self.run.depths[position]
        pieces = []
        if depth * 2 > _MAX_INDENT:
            pieces += [Piece(Clean(" " * _MAX_INDENT)), Piece(Clean(f"{depth}{self._glyphs.path} "), "dim")]
        elif depth:
            enclosing = sum(at < position < at + self.run.sizes[at] for at in self._path[1:depth])
            guides = f"{self._glyphs.guide} " * enclosing
            pieces.append(Piece(Clean(f"  {guides}".ljust(depth * 2)), "line"))
        return pieces + (self._fold_mark(position, span) or [Piece(Clean("  "))])

    def _agent_indent(self, position: int, span: Span) -> list[Piece]:
        """Two blanks for each sub-agent that made a step of the timeline, then the fold mark."""
        agents, above = 0, self.run.parent(position)
        while above is not None and agents * 2 < _MAX_INDENT:
            agents += navigation.is_lane(self.run, above)
            above = self.run.parent(above)
        indent = [Piece(Clean("  " * agents))] if agents and not self.longest_first else []
        return indent + self._fold_mark(position, span)

    def _fold_mark(self, position: int, span: Span) -> list[Piece]:
        """The fold mark; empty for other rows."""
        if self.run.sizes[position] == 1 or not (self.tree or navigation.is_abandoned_branch(self.run, position)):
            return []
        mark = self._glyphs.folded if span.id in self.folded else self._glyphs.unfolded
        return [Piece(Clean(f"{mark} "), "dim")]

    def _time(self, span: Span) -> Piece:
        style = "sec"
        if span.status is Status.ERROR:
            style = "status.error bold"
        elif span.status is Status.RUNNING:
            style = "status.running bold"
        elapsed = self.chart.elapsed(span)
        if elapsed is None and span.operation in _INSTANT:
            return Piece(pad(Clean(""), 5))
        return time_cell(elapsed, style, self._glyphs)


_LOUD: Final = frozenset({Status.ERROR, Status.RUNNING, Status.PAUSED})


def _failed(run: Run, before: Sequence[int] = (), delta: Growth | None = None) -> Sequence[int]:
    """Positions of the failed spans; of a run that grew, from those `before`."""
    changed = range(len(run.spans)) if delta is None else (*delta.changed, *range(delta.start, len(run.spans)))
    failed = set(before).difference(changed) if delta is not None else set()
    return sorted(failed.union(at for at in changed if run.spans[at].status is Status.ERROR))


def plain(span: Span) -> str:
    """The searchable text of a span."""
    error = f"{span.error.type or ''} {span.error.message}" if span.error else ""
    return " ".join(filter(None, (span.name, span.preview, span.note, error)))


def _step(number: int | None) -> Clean:
    return Clean("") if number is None else Clean(str(number)) if -999 < number < 1_000_000 else count(number)


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

        While the run is `going`, a last loop that may continue is left out.
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
        loops = () if delta is None else [loop for loop in self.loops if not _has_changed(self._run, loop, delta)]
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

    def hiding_loop(self, position: int) -> str | None:
        """The key of the folded loop that hides a call."""
        loop = self.loop_at(position)
        hides = loop is not None and position != loop.first and self.is_folded(loop)
        return self.key(loop) if loop is not None and hides else None

    def drop_hidden(self, calls: Sequence[int]) -> Sequence[int]:
        """Filter timeline positions to those that no fold hides."""
        if all(map(self.unfolded.__contains__, self.keys)):
            return calls
        positions: array[int] = array("L")
        at = 0
        for loop in filter(self.is_folded, self.loops):
            first = bisect_left(calls, loop.first)
            positions.extend(calls[at : first + 1])
            at = first + len(loop.calls)
        positions.extend(calls[at:])
        return positions

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
            yield from (BLANK, token_cell(_sum(map(chart.tokens, self._outermost_calls())), glyphs))
        if columns.time:
            times = (chart.elapsed(self._run.spans[call]) for call in self._outermost_calls())
            yield from (BLANK, time_cell(_sum(times), "sec", glyphs))
        if columns.bar:
            yield from (BLANK, *self._bar(chart, ticks, columns.bar, glyphs))

    def _what(self, width: int, glyphs: Glyphs) -> list[Piece]:
        """Glyph, title and failures; then argument, point of no return and cost if they fit."""
        run, loop = self._run, self._loop
        title = Clean(f"{glyphs.loop} {loop_title(run, loop, glyphs)}")
        pieces = [Piece(Clean(f"{glyphs.folded} "), "dim"), Piece(title, _WARN)]
        if self.failed:
            pieces.append(Piece(Clean(f" {self.failed}{glyphs.error}"), "status.error"))
        room, spent = width - width_of(pieces), loop_cost(loop)
        after = []
        if self._dooms:
            doom = _doom(glyphs)
            after.append(doom if width_of((doom,)) <= room else Piece(Clean(f" {glyphs.note}"), _WARN))
            room -= width_of(after)
        lost = Piece(Clean(f"  time lost {spent}" if spent else ""), "dim")
        if width_of((lost,)) <= room:
            after.append(lost)
            room -= width_of((lost,))
        argument_text = argument(run.spans[loop.first]) if loop.period == 1 and room > 3 else None
        arguments = fit([Piece(Clean(f" {argument_text}"), "dim")], room) if argument_text else []
        return [*pieces, *arguments, *after]

    def _bar(self, chart: Chart, ticks: tuple[int, ...], width: int, glyphs: Glyphs) -> list[Piece]:
        """A bar from the first call to the end of the last."""
        extents = [extent for call in self._loop.calls if (extent := chart.extent(call)) is not None]
        start = min((start for start, _ in extents), default=0.0)
        stop = max((end if end is not None else begin for begin, end in extents), default=0.0)
        loop_bar = bar(start, stop, chart.total_ms if extents else 0.0, width, glyphs)
        return on_grid(loop_bar, bar_style(self._run.spans[self._loop.first]), ticks, width, glyphs)

    def _outermost_calls(self) -> Iterator[int]:
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


def _has_changed(run: Run, loop: Loop, delta: Growth) -> bool:
    """Whether a call of the loop, or a descendant, changed."""
    at = bisect_left(delta.changed, loop.first)
    return at < len(delta.changed) and delta.changed[at] < loop.last + run.sizes[loop.last]


def _may_grow(run: Run, loop: Loop) -> bool:
    """Whether the loop may continue: no complete round follows it. Each call may have a turn container."""
    return len(run.spans) - (loop.last + run.sizes[loop.last]) < 2 * loop.period


def _doom(glyphs: Glyphs) -> Piece:
    return Piece(Clean(f"  {glyphs.note} likely lost"), _WARN)

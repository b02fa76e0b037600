"""The task matrix as rows: one line per task with a glyph for each of its runs, and the line about one run."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis.liveness import recorded_liveness
from tracetui.analysis.run_tree import decisive_by_chance
from tracetui.analysis.tasks import ORIGINAL, Group, Matrix, Result, Task, Trial
from tracetui.masking import one_line
from tracetui.model import Status
from tracetui.store.facts import total_tokens
from tracetui.text import Clean, cells, grouped, quantity, wrap
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.labels import WRONG_ANSWER, WRONG_STYLE, StateOf, status_now, value_of
from tracetui.views.rows import Line, Piece, Rows, column, fill, fit, width_of

COPIES: Final = ("copy", "part")
"""Exclusions of runs that are counted elsewhere; the other excluded runs inherit steps."""


def percent(rate: float | None) -> Clean:
    """A share from 0 to 1 as ``42%``; ``—`` for None. Only a share of exactly 0 or 1 is ``0%`` or ``100%``."""
    if rate is None:
        return Clean("—")
    rounded = round(100 * rate)
    return Clean(f"{min(99, max(1, rounded)) if 0 < rate < 1 else rounded}%")


def rate_style(rate: float | None) -> str:
    """Style of a pass rate: always, never, or sometimes passed."""
    if rate is None:
        return "dim"
    return "status.ok" if rate == 1 else "status.error" if rate == 0 else "status.warn"


def notes(matrix: Matrix, unreadable: int = 0) -> list[str]:
    """A phrase for each kind of task, trial and file that limits or misses the rates."""
    counts = matrix.rates.counts
    single = sum(task.counts.scored == 1 for task in matrix.tasks)
    unrated = (
        (counts.unscored, "no outcome"),
        (counts.ungraded, "not graded"),
        (counts.running, "still running"),
        (counts.excluded, "inherited or copied"),
    )
    kinds = [(number, reason) for number, reason in unrated if number]
    why = kinds[0][1] if len(kinds) == 1 else ", ".join(f"{grouped(number)} {reason}" for number, reason in kinds)
    phrases = (
        (single, "task", " with 1 scored trial: stability unknown"),
        (sum(number for number, _ in kinds), "trial", f" not rated: {why}"),
        (len(matrix.without_task), "run", " without a task"),
        (unreadable, "unreadable file", "; `tracetui doctor` lists them"),
    )
    return [quantity(number, word) + suffix for number, word, suffix in phrases if number]


def chance_note(tasks: Iterable[Task]) -> str:
    """How many forks chance alone makes decisive over these tasks; empty if none."""
    by_chance = decisive_by_chance(tasks)
    return f"chance alone makes up to {by_chance:.2g} forks of the run trees decisive" if by_chance else ""


def labels_of(groups: Iterable[Group]) -> dict[Group, str]:
    """Short, distinct names of column groups: as few parts as possible. Not sanitized."""
    groups = list(groups)
    folders = _short_paths({group.directory for group in groups if group.directory is not None})
    parts = [(group.directory and folders[group.directory], group.agent, group.model) for group in groups]
    chosen = next(
        indexes
        for indexes in ((0,), (2,), (1,), (0, 2), (0, 1), (1, 2), (0, 1, 2))
        if len({tuple(part[i] for i in indexes) for part in parts}) == len(parts)
    )
    labels = [" ".join(filter(None, (part[i] for i in chosen))) or part[1] or part[2] or "—" for part in parts]
    return dict(zip(groups, labels, strict=True))


def _short_paths(paths: Iterable[str]) -> dict[str, str]:
    """The last component of each path; the whole paths if these are equal."""
    last = {path: posixpath.basename(path.rstrip("/")) or path for path in paths}
    return last if len(set(last.values())) == len(last) else {path: path for path in last}


# ---- one run


def trial_sign(trial: Trial, glyphs: Glyphs = UNICODE, state_of: StateOf = recorded_liveness) -> tuple[Clean, str]:
    """Glyph and style of a trial: its result, of a running one its status. A replay or copy, which is in no rate, has
    the glyph of one in the style of its result.
    """
    sign, style = _result_sign(trial, glyphs, state_of)
    if trial.excluded is None or trial.excluded == ORIGINAL:
        return sign, style
    return (glyphs.same if trial.excluded in COPIES else glyphs.replay), style


def _result_sign(trial: Trial, glyphs: Glyphs, state_of: StateOf) -> tuple[Clean, str]:
    if trial.result is Result.PASSED:
        return glyphs.ok, "status.ok"
    if trial.result is Result.FAILED:
        return (glyphs.wrong, WRONG_STYLE) if trial.run.is_wrong else (glyphs.error, "status.error")
    if trial.result is Result.UNGRADED:
        return glyphs.ungraded, WRONG_STYLE
    if trial.result is Result.UNSCORED:
        return glyphs.missing, "sec"
    return status_glyph(status_now(trial.run, state_of(trial.run)), glyphs)


_RESULT_LABELS: Final = {
    Result.PASSED: "passed", Result.UNGRADED: "ungraded", Result.UNSCORED: "no outcome", Result.RUNNING: "running",
}  # fmt: skip


def trial_line(
    task: Task, trial: Trial, label: str, width: int, glyphs: Glyphs = UNICODE, state_of: StateOf = recorded_liveness
) -> tuple[Line, Line]:
    """The outcome of a run in one line, and facts about it, as many as fit. `label`: that of its column group."""
    run, (sign, style) = trial.run, _result_sign(trial, glyphs, state_of)
    word = _RESULT_LABELS.get(trial.result) or (WRONG_ANSWER if run.is_wrong else "error")
    peers = [peer for peer in task.trials if peer.group == trial.group]
    scores = [f"{one_line(score.name, 30)} {value_of(score, glyphs)}" for score in run.deciding_scores[:2]]
    error = run.first_error if run.failed else None
    left = [
        Piece(Clean(f"trial {peers.index(trial) + 1} of {len(peers)}  "), "sec"),
        Piece(Clean(f"{sign} {word}"), f"{style} bold"),
    ]
    if trial.result is Result.UNSCORED and run.status is not Status.OK:
        left.append(Piece(Clean(f"  {one_line(run.status_word or run.status.value, 30)}"), "sec"))
    if trial.excluded is not None:
        left.append(Piece(Clean(f"  {trial.excluded}, excluded from rates"), "status.warn"))
    if scores:
        left.append(Piece(Clean(f"  {', '.join(scores)}"), "text"))
    evidence = run.evidence if trial.result is Result.UNGRADED else None
    why = one_line(error.text if error else evidence.text if evidence else run.result or "", 200)
    why = Clean("") if why.strip() in scores else why
    if why:
        left.append(Piece(Clean(f"  {why}"), "text" if error is not None else "sec"))
    facts = [
        one_line(label, 40),
        f"{text.tokens(used)} tok" if (used := total_tokens(run)) is not None else "",
        text.cost(run.usage.cost_usd) if run.usage is not None and run.usage.cost_usd is not None else "",
        text.duration(run.duration_ms) if run.duration_ms is not None else "",
        quantity(run.steps, "step") if run.steps is not None else "",
    ]
    right = [Piece(Clean(" · ".join(filter(None, facts))), "sec")]
    room = width - width_of((*left, *right)) - 4
    if not why and run.prompt and room > _LEAST_PROMPT:
        left.append(Piece(Clean(f"  {text.truncate(one_line(run.prompt, 200), room - 2)}"), "sec"))
    room = max(0, width - min(width_of(left), width * 2 // 3) - 4)
    return tuple(left), tuple(right) if width_of(right) <= room else ()


# ---- the columns


class Block(NamedTuple):
    """A column group of cells: a slot for each trial of the group, in the task with the most of them."""

    group: Group | None
    """None: all trials are in one block."""
    label: str
    slots: int


class _Unit(NamedTuple):
    """Part of a block that is never cut: the cell of a trial, or the pass rate of the group (`slot` None)."""

    block: int
    slot: int | None
    width: int


class _Column(NamedTuple):
    """A column of numbers, right-aligned."""

    name: str
    size: int
    cell: Callable[[Task], tuple[Clean, str]]
    total: Clean


class _Plan(NamedTuple):
    """The columns that fit a width. `pages` are the units that fit together."""

    name: int
    pitch: int
    area: int
    pages: tuple[tuple[_Unit, ...], ...]
    columns: tuple[_Column, ...]
    gap: int
    """Blanks before each column."""
    bar: int
    prompt: int


_GAP: Final = 2
"""Blanks between the names, the cells and the numbers."""
_LEAST_NAME, _GOOD_NAME, _MOST_NAME = 14, 24, 44
_RATE: Final = 5
_BAR: Final = 10
_LEAST_PROMPT: Final = 24
_PROMPT: Final = Clean("first input")
_MOST_K: Final = 4
"""Up to this k every pass^k has a column; then only the largest."""
_LABELS: Final = (20, 15, 11, 0)
"""Cells for the name of a column group that has fewer: as many of these as leave room for all groups."""


_SAMPLE: Final = 2_000
"""Rows to measure names of."""
_EMPTY: Final = Piece(Clean(" "))


class TaskRows(Rows):
    """See `tracetui.views.rows.Rows`. Row keys are those of the tasks.

    A column is a slot of a block, counted over all blocks. `cursor` returns row and column of the cell cursor.
    """

    def __init__(
        self,
        matrix: Matrix,
        tasks: Sequence[Task],
        *,
        cursor: Callable[[], tuple[int, int]] = lambda: (-1, 0),
        glyphs: Glyphs = UNICODE,
        state_of: StateOf = recorded_liveness,
    ) -> None:
        """`tasks`: those of the matrix, in the order of the rows."""
        self.matrix, self.tasks = matrix, tasks
        self._cursor, self._glyphs, self._state_of = cursor, glyphs, state_of
        self.labels = labels_of(matrix.groups) if len(matrix.groups) > 1 else {}
        self._plan = lru_cache(8)(self._make_plan)

    @property
    def _has_rates(self) -> bool:
        """Whether any trial is scored."""
        return self.matrix.rates.counts.scored > 0

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {task.key: i for i, task in enumerate(self.tasks)}

    @cached_property
    def blocks(self) -> list[Block]:
        """The column groups."""
        if not self.labels:
            return [Block(None, "", max((len(task.trials) for task in self.tasks), default=0))]
        slots: dict[Group, int] = defaultdict(int)
        for task in self.tasks:
            for group, counts in task.groups.items():
                slots[group] = max(slots[group], counts.runs)
        return [Block(group, label, slots[group]) for group, label in self.labels.items()]

    @cached_property
    def _starts(self) -> list[int]:
        """The first column of each block, and the number of columns."""
        starts = [0]
        for block in self.blocks:
            starts.append(starts[-1] + block.slots)
        return starts

    def __len__(self) -> int:
        return len(self.tasks)

    def key(self, index: int) -> Hashable:
        return self.tasks[index].key

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def mark(self, index: int) -> str | None:
        counts = self.tasks[index].counts
        if not counts.failed:
            return None
        return "status.warn" if counts.passed else "status.error"

    def plain(self, index: int) -> str:
        task = self.tasks[index]
        counts = task.counts
        signs = "".join(trial_sign(trial, self._glyphs, self._state_of)[0] for trial in task.trials)
        return f"{task.name}  {signs}  {percent(counts.pass_rate)}  {counts.passed}/{counts.scored}"

    # ---- cells

    def cells(self, index: int) -> dict[int, Trial]:
        """The trials of a row by column."""
        task = self.tasks[index]
        if not self.labels:
            return dict(enumerate(task.trials))
        by_group: dict[Group, list[Trial]] = defaultdict(list)
        for trial in task.trials:
            by_group[trial.group].append(trial)
        return {
            start + i: trial
            for start, block in zip(self._starts, self.blocks, strict=False)
            if block.group is not None
            for i, trial in enumerate(by_group.get(block.group, ()))
        }

    def page(self, width: int) -> int:
        """Which page of cells has the cell cursor; 0 if all cells fit."""
        pages = self._plan(width).pages
        unit = self._unit_of(self._cursor()[1])
        matches = (
            i
            for i, units in enumerate(pages)
            if unit in {(visible_unit.block, visible_unit.slot) for visible_unit in units}
        )
        return next(matches, 0) if len(pages) > 1 else 0

    def _unit_of(self, place: int) -> tuple[int, int]:
        """(Block, slot) of a column."""
        block = bisect_right(self._starts, place) - 1
        return block, place - self._starts[block]

    # ---- lines

    def line(self, index: int, width: int) -> Line:
        task, plan = self.tasks[index], self._plan(width)
        counts = task.counts
        name = one_line(task.name, 200) or Clean("—")
        style = "text" if counts.scored else "sec"
        pieces = [*fill([Piece(text.truncate_middle(name, plan.name), style)], plan.name)]
        row, place = self._cursor()
        chosen = self._unit_of(place) if row == index else None
        pieces += self._area(plan, self.page(width), self._unit_pieces(index, task), chosen)
        if plan.bar:
            bar = amount(counts.pass_rate, 1, plan.bar, "status.ok", glyphs=self._glyphs) if counts.scored else ()
            pieces += [_EMPTY, *fill(bar, plan.bar)]
        for col in plan.columns:
            cell, style = col.cell(task)
            pieces.append(column(cell, col.size + plan.gap, style, right=True))
        if plan.prompt:
            pieces += [_EMPTY] * _GAP
            pieces += fit([Piece(_prompt(task), "dim")], plan.prompt)
        return tuple(fit(pieces, width))

    def _unit_pieces(self, index: int, task: Task) -> Callable[[_Unit], list[Piece]]:
        """The function that draws a unit of the row. The last piece of a cell is its glyph."""
        trials = self.cells(index)

        def pieces(unit: _Unit) -> list[Piece]:
            if unit.slot is None:
                group = self.blocks[unit.block].group
                counts = task.groups.get(group) if group is not None else None
                blank = counts is None or not self._has_rates
                return _rate_pieces(counts.pass_rate if counts is not None else None, unit.width, blank=blank)
            trial = trials.get(self._starts[unit.block] + unit.slot)
            sign = _EMPTY if trial is None else Piece(*trial_sign(trial, self._glyphs, self._state_of))
            return [sign] if unit.width == 1 else [_EMPTY, sign]

        return pieces

    def _area(
        self, plan: _Plan, page: int, make: Callable[[_Unit], list[Piece]], chosen: tuple[int, int] | None = None
    ) -> list[Piece]:
        """The cells of a row or of a heading, exactly `plan.area` wide; `chosen`: (block, slot) of the cell cursor."""
        last = len(plan.pages) - 1
        pieces = [Piece(self._glyphs.cut, "dim") if page else _EMPTY] if last else []
        at, block = None, -1
        for unit in plan.pages[page]:
            if unit.block != block and block >= 0:
                pieces += [_EMPTY] * _GAP
            block = unit.block
            pieces += make(unit)
            if (unit.block, unit.slot) == chosen:
                at = len(pieces) - 1
        pieces.append(_EMPTY)
        if last:
            pieces.append(Piece(self._glyphs.cut, "dim") if page < last else _EMPTY)
        if at is not None:
            _highlight(pieces, at, brackets=plan.pitch > 1)
        return fill(pieces, plan.area)

    def heading(self, width: int) -> list[Line]:
        """Names of the column groups, names of the columns, and the totals."""
        plan, page = self._plan(width), self.page(width)
        rates = self.matrix.groups
        lines = [self._group_names(plan, page)] if self.labels else []
        bar = [_EMPTY] * (plan.bar + 1 if plan.bar else 0)
        pieces = [column(Clean("task"), plan.name, "dim"), *self._area(plan, page, self._head_unit), *bar]
        pieces += [column(Clean(col.name), col.size + plan.gap, "dim", right=True) for col in plan.columns]
        if plan.prompt:
            pieces += [*[_EMPTY] * _GAP, Piece(_PROMPT, "dim")]
        lines.append(tuple(fit(pieces, width)))

        def total(unit: _Unit) -> list[Piece]:
            group = self.blocks[unit.block].group
            if unit.slot is not None or group is None:
                return [_EMPTY] * unit.width
            rate = rates[group].pass_hat.get(1)
            return _rate_pieces(rate, unit.width, blank=not self._has_rates, style=" bold")

        pieces = [column(self._title, plan.name, "sec bold")]
        pieces += [*self._area(plan, page, total), *bar]
        pieces += [column(col.total, col.size + plan.gap, "text bold", right=True) for col in plan.columns]
        lines.append(tuple(fit(pieces, width)))
        return lines

    def _head_unit(self, unit: _Unit) -> list[Piece]:
        """The number of a trial's column, or the heading of a group's rate."""
        if unit.slot is None:
            return _pad_left(Piece(Clean("rate" if self._has_rates else ""), "dim"), unit.width)
        number = unit.slot + 1
        digit = number if number < 10 else number % 10
        return [*[_EMPTY] * (unit.width - 1), Piece(Clean(str(digit)), "dim")]

    def _group_names(self, plan: _Plan, page: int) -> Line:
        """The name of each column group above its columns."""
        pieces = [*fill([], plan.name)]
        pieces += [_EMPTY] if len(plan.pages) > 1 else []
        for i, block in enumerate(self.blocks):
            size = sum(unit.width for unit in plan.pages[page] if unit.block == i)
            if size:
                label = text.truncate_middle(one_line(block.label, 100), size - 1)
                pieces += [_EMPTY, column(label, size - 1, "text bold"), *[_EMPTY] * _GAP]
        return tuple(pieces)

    # ---- what fits

    @cached_property
    def _columns(self) -> dict[str, _Column]:
        """The columns of numbers that any task has a value for, in order."""
        rates = self.matrix.rates
        counts = rates.counts
        if not self._has_rates:
            return _metric_columns(self.tasks)
        columns = {
            "pass^1": _Column("pass^1", 6, lambda task: _rate(task.counts.pass_rate), percent(rates.pass_hat.get(1)))
        }
        ratio = f"{counts.passed}/{counts.scored}"
        columns["passed"] = _Column("passed", max(6, len(ratio)), _passed_cell, Clean(ratio))
        most = max(rates.pass_hat, default=1)
        for k in [k for k in range(2, most + 1) if k <= _MOST_K or k == most]:
            columns[f"pass^{k}"] = _power(k, rates.pass_hat.get(k))
        return columns | _metric_columns(self.tasks)

    @property
    def _title(self) -> Clean:
        """Name of the row of totals."""
        return Clean(quantity(len(self.tasks), "task"))

    @property
    def _ranks(self) -> list[str]:
        """Names of columns, of the name's sizes and of the wide cells: the most important first."""
        powers = [name for name in self._columns if name.startswith("pass^")]
        return [
            *powers[:1], "passed", *powers[:0:-1][:1], "pitch", "tokens", "time", f"name {_GOOD_NAME}", "cost",
            *powers[1:-1], "steps", f"name {_MOST_NAME}", "bar", "prompt", "range", "gap",
        ]  # fmt: skip

    def _make_plan(self, width: int) -> _Plan:
        """Grant as much of the width as there is, by importance. Names shrink first; numbers are never cut."""
        longest = max(len(self._title), *(cells(one_line(task.name, 200)) for task in self.tasks[:_SAMPLE]))
        name, pitch, visible = min(_LEAST_NAME, longest), 1, set[str]()
        gap, bar, prompt = 1, 0, 0
        first = self._columns.get("pass^1")
        remaining = width - name - 2
        room = max(10, remaining - (first.size + 1 if first is not None else 0))
        label = next((size for size in _LABELS if self._area_width(1, size) <= room), 0)
        narrow, wide = self._area_width(1, label), self._area_width(2, label)
        area = min(narrow, room)
        remaining -= area
        for rank in self._ranks:
            kind, _, number = rank.partition(" ")
            wanted = min(longest, int(number or 0)) - name if kind == "name" else 0
            if kind == "pitch" and area == narrow and wide - narrow <= remaining:
                pitch, area, remaining = 2, wide, remaining - (wide - narrow)
            elif kind == "name" and wanted > 0:
                name, remaining = name + min(remaining, wanted), remaining - min(remaining, wanted)
            elif kind == "bar" and self._has_rates and remaining > _BAR:
                bar, remaining = _BAR, remaining - _BAR - 1
            elif kind == "gap" and len(visible) <= remaining:
                gap, remaining = 2, remaining - len(visible)
            elif kind == "prompt" and remaining > _LEAST_PROMPT:
                wanted = max(cells(_prompt(task)) for task in self.tasks[:_SAMPLE])
                prompt = min(max(wanted, len(_PROMPT)), remaining - _GAP) if wanted else 0
                remaining -= prompt + _GAP if prompt else 0
            elif (col := self._columns.get(kind)) is not None and col.size < remaining:
                visible.add(kind)
                remaining -= col.size + 1
        columns = tuple(col for key, col in self._columns.items() if key in visible)
        pages = tuple(self._pages(pitch, label, area))
        return _Plan(name + 1, pitch, area, pages, columns, gap, bar, prompt)

    def _units(self, pitch: int, label: int) -> Iterator[_Unit]:
        for i, block in enumerate(self.blocks):
            yield from (_Unit(i, slot, pitch) for slot in range(block.slots))
            if block.group is not None:
                filler = max(0, min(label, cells(one_line(block.label, 100)) + 1) - block.slots * pitch - _RATE)
                yield _Unit(i, None, _RATE + filler)

    def _area_width(self, pitch: int, label: int) -> int:
        return sum(unit.width for unit in self._units(pitch, label)) + _GAP * (len(self.blocks) - 1) + 1

    def _pages(self, pitch: int, label: int, area: int) -> Iterator[tuple[_Unit, ...]]:
        """The units that fit into the area together: all of them, else with a mark at either end."""
        units = list(self._units(pitch, label))
        if self._area_width(pitch, label) <= area:
            yield tuple(units)
            return
        page, used = list[_Unit](), 0
        for unit in units:
            size = unit.width + (_GAP if page and page[-1].block != unit.block else 0)
            if page and used + size > area - 3:
                yield tuple(page)
                page, used, size = [], 0, unit.width
            page.append(unit)
            used += size
        yield tuple(page)


def _prompt(task: Task) -> Clean:
    """The first input of a task, unless it is the name of the task."""
    return Clean("") if task.key.derived else one_line(task.trials[0].run.prompt, 200)


def _pad_left(piece: Piece, width: int) -> list[Piece]:
    return [*[_EMPTY] * (width - cells(piece.text)), piece]


def _rate_pieces(rate: float | None, width: int, *, blank: bool = False, style: str = "") -> list[Piece]:
    return _pad_left(Piece(Clean("") if blank else percent(rate), rate_style(rate) + style), width)


def _highlight(pieces: list[Piece], at: int, *, brackets: bool) -> None:
    """Mark the cell cursor: by brackets if there are blanks around the glyph."""
    if brackets:
        pieces[at - 1], pieces[at + 1] = Piece(Clean("["), "accent bold"), Piece(Clean("]"), "accent bold")
    pieces[at] = pieces[at]._replace(style=pieces[at].style + (" bold" if brackets else " reverse"))


def _rate(rate: float | None) -> tuple[Clean, str]:
    return percent(rate), rate_style(rate)


def _passed_cell(task: Task) -> tuple[Clean, str]:
    counts = task.counts
    return Clean(f"{counts.passed}/{counts.scored}" if counts.scored else "—"), "text" if counts.scored else "dim"


def _power(k: int, mean: float | None) -> _Column:
    def cell(task: Task) -> tuple[Clean, str]:
        rate = task.counts.pass_hat.get(k)
        return percent(rate), "dim" if rate is None else "sec"

    return _Column(f"pass^{k}", max(6, len(f"pass^{k}")), cell, percent(mean))


_METRICS: Final[dict[str, tuple[str, Callable[[float], Clean]]]] = {
    "steps": ("steps", lambda value: text.count(round(value))),
    "tokens": ("tokens", lambda value: text.tokens(round(value))),
    "cost": ("cost_usd", text.cost),
    "time": ("duration_ms", text.duration),
}
"""Columns of means per trial: the metric, and how it is shown."""
_RANGES: Final = ("tokens", "time", "steps")
"""What the range is of: the first that the traces have."""


def _metric_columns(tasks: Sequence[Task]) -> dict[str, _Column]:
    columns: dict[str, _Column] = {}
    for name, (metric, show) in _METRICS.items():
        spreads = [task.spreads[metric] for task in tasks if metric in task.spreads]
        if spreads:
            total = show(sum(spread.total for spread in spreads) / sum(spread.trials for spread in spreads))
            size = max(len(name), 6, *(len(show(spread.mean)) for spread in spreads), len(total))
            columns[name] = _Column(name, size, _mean_cell(metric, show), total)
    if (ranged := next((name for name in _RANGES if name in columns), None)) is not None:
        metric, show = _METRICS[ranged]
        heading = f"{ranged} min–max"
        columns["range"] = _Column(heading, max(len(heading), 12), _range_cell(metric, show), Clean(""))
    return columns


def _mean_cell(metric: str, show: Callable[[float], Clean]) -> Callable[[Task], tuple[Clean, str]]:
    def cell(task: Task) -> tuple[Clean, str]:
        spread = task.spreads.get(metric)
        return (Clean("—"), "dim") if spread is None else (show(spread.mean), "sec")

    return cell


def _range_cell(metric: str, show: Callable[[float], Clean]) -> Callable[[Task], tuple[Clean, str]]:
    def cell(task: Task) -> tuple[Clean, str]:
        spread = task.spreads.get(metric)
        if spread is None or spread.trials < 2:
            return Clean("—"), "dim"
        return Clean(f"{show(spread.low)}–{show(spread.high)}"), "sec"

    return cell


# ---- all tasks


def conclusion(matrix: Matrix) -> Line:
    """How many tasks pass always, sometimes and never."""
    scored = [task.counts for task in matrix.tasks if task.counts.scored > 1]
    mixed = sum(counts.passed > 0 and counts.failed > 0 for counts in scored)
    always, never = sum(not counts.failed for counts in scored), sum(not counts.passed for counts in scored)
    if not scored:
        label = "no task has two scored trials" if matrix.tasks else "no tasks"
        return (Piece(Clean(label), "text bold"),)
    if len(scored) == 1:
        share = "sometimes passed" if mixed else "always passed" if always else "never passed"
        style = rate_style(matrix.rates.counts.pass_rate)
        return (Piece(Clean("1 rated task: "), "text bold"), Piece(Clean(share), style))
    style = "status.warn bold" if mixed else "text bold"
    return (
        Piece(Clean(f"{grouped(mixed)} of {quantity(len(scored), 'task')} passed sometimes"), style),
        Piece(Clean("  ·  "), "dim"),
        Piece(Clean(f"{grouped(always)} always"), "status.ok"),
        Piece(Clean("  ·  "), "dim"),
        Piece(Clean(f"{grouped(never)} never"), "status.error"),
    )


def outcome_signs(matrix: Matrix, glyphs: Glyphs = UNICODE) -> Line:
    """How many tasks and trials there are, and how the trials ended, each with its sign."""
    counts = matrix.rates.counts
    wrong = sum(
        trial.run.is_wrong for task in matrix.tasks for trial in task.trials
        if trial.excluded is None and trial.result is Result.FAILED
    )  # fmt: skip
    pieces = [Piece(Clean(quantity(counts.runs, "trial")), "sec")]
    for number, sign, style in (
        (counts.passed, glyphs.ok, "status.ok"),
        (wrong, glyphs.wrong, WRONG_STYLE),
        (counts.failed - wrong, glyphs.error, "status.error"),
        (counts.ungraded, glyphs.ungraded, WRONG_STYLE),
        (counts.running, glyphs.running, "status.running"),
        (counts.unscored, glyphs.missing, "sec"),
        (counts.excluded, glyphs.replay, "sec"),
    ):
        if number:
            pieces += [Piece(Clean("  ")), Piece(Clean(f"{sign} {grouped(number)}"), style)]
    return tuple(pieces)


def note_lines(matrix: Matrix, unreadable: int, width: int) -> list[Line]:
    """The notes, wrapped."""
    paragraph = " · ".join(filter(None, (*notes(matrix, unreadable), chance_note(matrix.tasks))))
    paragraph = paragraph[:1].upper() + paragraph[1:]
    return [(Piece(part, "dim"),) for part in wrap(Clean(paragraph), max(20, width))] if paragraph else []

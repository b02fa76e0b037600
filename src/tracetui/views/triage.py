"""The triage screen as rows: the queue of causes with their runs, and the details of one cause."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from datetime import UTC, tzinfo
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from tracetui import text
from tracetui.analysis.contrast import NO_FINDINGS
from tracetui.analysis.triage import CauseOrder, Group, Task, replaced_values
from tracetui.masking import excerpt, mask, one_line
from tracetui.model import RunRef, RunSummary, Status, Who
from tracetui.store.facts import run_time
from tracetui.store.judgement import Judgement
from tracetui.text import Clean, cells, truncate, wrap
from tracetui.views.bars import amount, sparkline
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.labels import WRONG_ANSWER, clock, run_sign, short_id, short_model
from tracetui.views.list.runs import group_line
from tracetui.views.rows import Fold, Line, ListRows, Piece, break_line, column, fill, fit, width_of

if TYPE_CHECKING:
    from tracetui.analysis.contrast import Contrast, Finding


PLACEHOLDER: Final = re.compile(r"<[a-z]+>")
"""Placeholders in a normalized text."""

LETTERS: Final = {"real": "r", "flaky": "f", "known": "k", "ignore": "i"}
"""Verdicts by key."""

JudgementOf = Callable[[Group | Task | RunRef], Judgement]
"""The judgment of a cause, of the wrong answers to a task, or of a run (its own or its cause's)."""


class TaskRow(NamedTuple):
    """The wrong answers to one task, below their heading."""

    group: Group
    task: Task


class Member(NamedTuple):
    """A run in the queue, below its cause or task."""

    group: Group
    run: RunRef
    task: Task | None = None

    @property
    def parent(self) -> Hashable:
        """The key of the row that it is below."""
        return self.group.digest if self.task is None else self.task.digest


Item = Group | TaskRow | Member
"""A row with a cursor."""


class Details(NamedTuple):
    """The second row of a cause."""

    group: Group


_Row = Item | Details | tuple[str, int]
"""The last is the (label, count) of a group heading."""


def is_reviewed(group: Group, judge: JudgementOf) -> bool:
    """Whether a cause has a verdict; a heading of wrong answers if all of its tasks have one."""
    if group.tasks:
        return all(judge(task).verdict is not None for task in group.tasks)
    return judge(group).verdict is not None


class Sections:
    """The rows of `count` items, of which some have rows below. Costs nothing for the others."""

    def __init__(self, count: int, below: Mapping[int, int]) -> None:
        """`below`: how many rows are below an item, by its number."""
        self._numbers = sorted(below)
        self._before = [*accumulate((below[number] for number in self._numbers), initial=0)]
        self._rows = [number + before for number, before in zip(self._numbers, self._before, strict=False)]
        self._count = count + self._before[-1]

    def __len__(self) -> int:
        return self._count

    def find(self, row: int) -> tuple[int, int]:
        """The number of an item, and how many rows below it a row is: 0 for its own."""
        at = bisect_right(self._rows, row) - 1
        if at < 0:
            return row, 0
        number, after = self._numbers[at], row - self._rows[at]
        below = self._before[at + 1] - self._before[at]
        return (number, after) if after <= below else (row - self._before[at + 1], 0)

    def row(self, number: int) -> int:
        """The row of an item."""
        return number + self._before[bisect_left(self._numbers, number)]


class QueueRows:
    """See `tracetui.views.rows.Rows`. Row keys are digests of causes and tasks, and run references.

    Costs no more for more causes, nor for more runs: only unfolded rows are counted, and a row is made when it is read.
    """

    def __init__(
        self,
        order: CauseOrder,
        runs: Mapping[RunRef, RunSummary],
        judge: JudgementOf,
        *,
        unfolded: Collection[Hashable] = (),
        marked: Collection[Hashable] = (),
        details: int = 0,
        width: int = 0,
        now: float,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        """`details`: how many causes may have a second row with the end of the title, decisions, values and agents, in
        rows of `width` cells.
        """
        self._runs, self._unfolded, self._now, self._glyphs = runs, unfolded, now, glyphs
        self._judge, self._marked, self._order = judge, marked, order
        self._open = [order.rows[key] for key in unfolded if isinstance(key, str) and key in order.rows]
        """Unfolded causes."""
        detailed = (row for row in order.rows.values() if details and self._has_details(self._group_at(row), width))
        self._detailed = {*islice(detailed, details)}
        """Numbers of the causes with a second row: the first that have something to say there."""
        below = dict.fromkeys(self._detailed, 1)
        self._tasks: dict[int, Sections] = {}
        """The rows below unfolded headings of wrong answers."""
        for number in self._open:
            group = self._group_at(number)
            if group.tasks:
                tasks = {i: len(task.runs) for i, task in enumerate(group.tasks) if task.digest in unfolded}
                self._tasks[number] = Sections(len(group.tasks), tasks)
            below[number] = (number in self._detailed) + len(self._tasks[number] if group.tasks else group.runs)
        self._sections = Sections(len(order.items), below)

    def _group_at(self, number: int) -> Group:
        group = self._order.items[number]
        assert isinstance(group, Group), "only causes have rows below"
        return group

    def _item(self, index: int) -> _Row:
        number, below = self._sections.find(index)
        item = self._order.items[number]
        if not below or not isinstance(item, Group):
            return item
        if number in self._detailed and below == 1:
            return Details(item)
        below -= 1 + (number in self._detailed)
        if (tasks := self._tasks.get(number)) is None:
            return Member(item, item.runs[below])
        place, below = tasks.find(below)
        task = item.tasks[place]
        return Member(item, task.runs[below - 1], task) if below else TaskRow(item, task)

    def owner(self, index: int) -> int:
        """The row of the cause whose second row this is, else the row itself."""
        return index - isinstance(self._item(index), Details)

    def __len__(self) -> int:
        return len(self._sections)

    def item(self, index: int) -> Item | None:
        """The cause, task or run of a row; None of a heading and after the last row."""
        item = self._item(index) if 0 <= index < len(self) else None
        return item.group if isinstance(item, Details) else item if _has_cursor(item) else None

    def key(self, index: int) -> Hashable:
        return _key(self._item(index))

    def index(self, key: Hashable) -> int | None:
        if isinstance(key, str) and key in self._order.rows:
            return self._sections.row(self._order.rows[key])
        if isinstance(key, tuple):  # the second row of a cause, or a group heading
            return next((row for row in range(len(self)) if self.key(row) == key), None)
        return next((row for number in self._open if (row := self._child_row(number, key)) is not None), None)

    def _child_row(self, number: int, key: Hashable) -> int | None:
        """The row of a task or run below this cause."""
        group, tasks = self._group_at(number), self._tasks.get(number)
        first = self._sections.row(number) + 1 + (number in self._detailed)
        if tasks is None:
            return first + group.runs.index(key) if key in group.runs else None
        for place, task in enumerate(group.tasks):
            if task.digest == key:
                return first + tasks.row(place)
            if task.digest in self._unfolded and key in task.runs:
                return first + tasks.row(place) + 1 + task.runs.index(key)
        return None

    def selectable(self, index: int) -> bool:
        return _has_cursor(self._item(index))

    def mark(self, index: int) -> str | None:
        item = self._item(index)
        if isinstance(item, Group):
            return None if is_reviewed(item, self._judge) else _style(item)
        return "status.error" if isinstance(item, TaskRow) and self._judgment(item).verdict is None else None

    def _judgment(self, item: Item) -> Judgement:
        return self._judge(item if isinstance(item, Group) else item.task if isinstance(item, TaskRow) else item.run)

    def fold(self, index: int) -> Fold | None:
        """The fold of a cause or task; None for a run."""
        item = self._item(index)
        return Fold(_key(item), _key(item) in self._unfolded) if isinstance(item, Group | TaskRow) else None

    def plain(self, index: int) -> str:
        item = self._item(index)
        if isinstance(item, Details):  # its cause has the text
            return ""
        if isinstance(item, Group | TaskRow):
            judgment = self._judgment(item)
            title = excerpt(item.title) if isinstance(item, Group) else mask(item.task.name)
            name = (item.id if isinstance(item, Group) else item.task.id, title)
            return " ".join(filter(None, (*name, judgment.verdict, judgment.note, *judgment.tags)))
        if not isinstance(item, Member):
            return item[0]
        run = self._runs.get(item.run)
        return (
            "" if run is None else f"{run.id} {mask(run.name)} {mask(run.first_error.text) if run.first_error else ''}"
        )

    def line(self, index: int, width: int) -> Line:
        item = self._item(index)
        if isinstance(item, Group):
            return self._group(item, width)
        if isinstance(item, Details):
            return self._details(item.group, width)
        if isinstance(item, TaskRow):
            return self._task(item, width)
        return self._member(item, width) if isinstance(item, Member) else group_line(item, width, self._glyphs)

    def _group(self, group: Group, width: int) -> Line:
        judgment = self._judge(group)
        decided = is_reviewed(group, self._judge)
        mixed = [Piece(Clean("+"), "accent bold")] if decided and judgment.verdict is None else None
        pieces = [*(mixed or _verdict_mark(judgment, self._glyphs, group)), *self._fold_mark(group.digest)]
        has_details = self._order.rows[group.digest] in self._detailed
        new = group.is_new(self._now) and not has_details
        title, room = _title_pieces(group, quiet=decided, new=new), _title_room(width, self._order)
        pieces += fill(break_line(title, room)[0] if has_details else title, room)
        if _has_who_column(width, self._order):
            pieces.append(column(Clean(f" {group.who.value}"), _WHO, _WHO_STYLES[group.who]))
        if width >= _WITH_STARTS:
            pieces += [Piece(Clean("  ")), self._start_sparkline(group, quiet=decided)]
        return tuple(fit([*pieces, *self._numbers(group, group.starts[-1] if group.starts else None)], width))

    def _has_details(self, group: Group, width: int) -> bool:
        has_starts = width < _WITH_STARTS and len(group.starts) > 1
        has_more = any(piece is not _NEW for piece in self._detail_pieces(group, width))
        title = _title_pieces(group, quiet=False, new=group.is_new(self._now))
        return has_starts or has_more or width_of(title) > _title_room(width, self._order)

    def _details(self, group: Group, width: int) -> Line:
        """The second row of a cause: the end of its title, what is said of it, and its runs over time."""
        decided, blank = is_reviewed(group, self._judge), Piece(Clean(" "))
        starts = self._start_sparkline(group, quiet=decided)
        tail = [] if width >= _WITH_STARTS else [blank, blank, starts, blank]
        title = break_line(_title_pieces(group, quiet=decided, new=False), _title_room(width, self._order))[1]
        indent, details = Piece(Clean("    " if title else "  ")), self._detail_pieces(group, width)
        room = max(8, width - width_of((indent, *tail)))
        first, others = details[:1], details[1:]
        pieces = [*fit(title, max(0, room - width_of(first))), *first]
        others = others if room - width_of(pieces) >= _USEFUL else []
        return (indent, *fill([*pieces, *others], room), *tail)

    def _detail_pieces(self, group: Group, width: int) -> list[Piece]:
        """Who failed without a column for it, verdict or *new*, the values that vary, and the agents unless all causes
        share them.
        """
        judgment = self._judge(group)
        pieces: list[Piece] = []
        if self._order.names_who and not _has_who_column(width, self._order):
            pieces.append(Piece(Clean(f"  {group.who.value}"), _WHO_STYLES[group.who]))
        if judgment.verdict is not None:
            pieces.append(Piece(Clean(f"  {judgment.verdict.value}"), "accent"))
        elif group.is_new(self._now):
            pieces.append(_NEW)
        pieces += _judgment_pieces(judgment)
        if values := self._values(group):
            pieces.append(Piece(Clean("  " + ", ".join(values)), "sec"))
        if group.agents and self._order.names_agents:
            agents = ", ".join(group.agents[:MAX_AGENTS]) + (" …" if len(group.agents) > MAX_AGENTS else "")
            pieces.append(Piece(Clean(f"  {one_line(agents, 60)}"), "dim"))
        return pieces

    def _values(self, group: Group) -> list[Clean]:
        """The first values that differ between the newest runs of a cause, where its texts have placeholders."""
        runs = [run for ref in group.runs[:_COMPARED] if (run := self._runs.get(ref)) is not None]
        for places in zip(*map(replaced_values, runs), strict=False):
            values = [*dict.fromkeys(excerpt(original, 24) for _, original in places)]
            if len(values) > 1:
                return [*values[:3], Clean("…")] if len(values) > 3 or len(group.runs) > len(runs) else values
        return []

    def _start_sparkline(self, group: Group, *, quiet: bool) -> Piece:
        """Starts of its runs as a sparkline, from the first to the last run of all listed causes."""
        style = "dim" if quiet else "bar.error"
        if not group.starts:
            return column(Clean(""), SPARK_CELLS, style)
        first, last = self._order.period
        ends = [first + (last - first) * cell / SPARK_CELLS for cell in range(1, SPARK_CELLS)]
        at = [0, *(bisect_left(group.starts, end) for end in ends), len(group.starts)]
        return Piece(sparkline([b - a or None for a, b in pairwise(at)], self._glyphs), style)

    def _fold_mark(self, key: Hashable) -> list[Piece]:
        mark = self._glyphs.unfolded if key in self._unfolded else self._glyphs.folded
        chosen = key in self._marked
        return [Piece(Clean("*" if chosen else " "), "accent"), Piece(Clean(f"{mark} "), "dim")]

    def _task(self, row: TaskRow, width: int) -> Line:
        task, judgment = row.task, self._judge(row.task)
        marks = [*_verdict_mark(judgment, self._glyphs), Piece(Clean("  ")), *self._fold_mark(task.digest)]
        passed, more = Clean(f"  {passed_trials(task)}"), _judgment_pieces(judgment)
        if task.reasons:
            more.append(Piece(Clean(f"  {one_line('; '.join(task.reasons), 120)}"), "dim"))
        room = max(8, width - _TAIL + 1)
        name_room = max(1, room - width_of(marks) - cells(passed) - 2 * bool(more))
        name = truncate(one_line(task.name, 60) or Clean("—"), name_room)
        pieces = [*marks, Piece(name, "sec" if judgment.verdict else "text"), Piece(passed, "sec"), *more]
        return tuple(fit([*fill(pieces, room), *self._numbers(task, task.last_seen)], width))

    def _numbers(self, item: Group | Task, last_seen: float | None) -> list[Piece]:
        return [
            column(text.count(len(item.runs)), 5, "text bold", right=True),
            column(text.duration(item.wasted_ms), 10, "status.warn", right=True),
            column(text.age(None if last_seen is None else max(0.0, self._now - last_seen)), 6, "dim", right=True),
        ]

    def _member(self, member: Member, width: int) -> Line:
        run = self._runs.get(member.run)
        if run is None:  # until the causes are found again
            return (Piece(Clean("    no longer listed"), "dim"),)
        judgment = self._judge(member.run)
        own = judgment if judgment.source == "run" else Judgement()
        mark = _verdict_mark(own, self._glyphs) if own.verdict else [Piece(Clean(" "))]
        sign, style = run_sign(run, Status.ERROR if run.failed else run.status, self._glyphs)
        pieces = [
            *mark,
            Piece(Clean(f"   {sign} "), style),
            column(short_id(run.id, 9), 10, "sec"),
            *_judgment_pieces(judgment, after=False),
            Piece(one_line(run.agent or run.name, 40), "text"),
            Piece(Clean(f"  {one_line(run.label or run.prompt, 120)}"), "dim"),
        ]
        age = max(0.0, self._now - run_time(run))
        tail = [
            column(text.duration(run.duration_ms), 15, "sec", right=True),
            column(text.age(age, estimated=run.started_at is None), 6, "dim", right=True),
        ]
        return tuple(fit([*fill(pieces, max(8, width - _TAIL + 1)), *tail], width))


def _judgment_pieces(judgment: Judgement, *, after: bool = True) -> list[Piece]:
    """Tags and note of a row, `after` other parts or before them."""
    parts = [Piece(Clean(f"#{one_line(tag, 40)}"), "accent") for tag in judgment.tags]
    parts += [Piece(one_line(judgment.note, 60), "sec")] if judgment.note else []
    gap = Piece(Clean("  "))
    return [piece for part in parts for piece in ((gap, part) if after else (part, gap))]


_COMPARED: Final = 8
"""Runs of a cause that are looked at for values that vary."""
_TAIL: Final = 22
"""Cells of the numbers at the end of a row, and a blank."""
_USEFUL: Final = 8
"""Cells of a second row that are worth a piece of it."""
_NEW: Final = Piece(Clean("  new"), "status.warn")


def _has_cursor(item: _Row | None) -> TypeGuard[Item]:
    return isinstance(item, Group | TaskRow | Member)


def heading(width: int, order: CauseOrder) -> Line:
    """The column headings of the queue."""
    pieces = fill([Piece(Clean("    cause"), "dim")], 4 + _title_room(width, order))
    if _has_who_column(width, order):
        pieces.append(column(Clean(" who"), _WHO, "dim"))
    if width >= _WITH_STARTS:
        first, last = order.period
        pieces.append(column(Clean(f"  over {text.age(last - first)}" if last > first else ""), 2 + SPARK_CELLS, "dim"))
    return tuple(fit([*pieces, Piece(Clean(" runs time lost  last"), "dim")], width))


def details_heading(width: int, order: CauseOrder) -> Line:
    """The headings of the second rows; empty if they have no sparkline."""
    first, last = order.period
    if width >= _WITH_STARTS or last <= first:
        return ()
    details = fill([Piece(Clean("    tool, what differs"), "dim")], width - SPARK_CELLS - 1)
    return (*details, column(Clean(f"over {text.age(last - first)} "), SPARK_CELLS + 1, "dim"))


_WHO_STYLES: Final = {Who.AGENT: "accent", Who.GRADER: "status.warn", Who.ENVIRONMENT: "kind.tool"}
_WITH_WHO: Final = 70
"""Cells of a row with a column that says who failed; a narrower row has it in its second line."""


_WHO: Final = 12
"""Cells of that column."""
_WITH_STARTS: Final = 96
"""Cells of a row with a column of the runs over time; a narrower row has them in its second line."""


def _has_who_column(width: int, order: CauseOrder) -> bool:
    return width >= _WITH_WHO and order.names_who


def _title_room(width: int, order: CauseOrder) -> int:
    """Cells of a title between the marks and the columns."""
    starts = (2 + SPARK_CELLS) * (width >= _WITH_STARTS)
    return max(8, width - _TAIL - 3 - _WHO * _has_who_column(width, order) - starts)


def _style(group: Group) -> str:
    """Style of the runs of a cause: they failed, or were not graded."""
    return "status.warn" if group.ungraded else "status.error"


def placeholders(normalized: Clean, style: str) -> list[Piece]:
    """A normalized text in pieces, with highlighted placeholders."""
    pieces, at = [], 0
    for match in PLACEHOLDER.finditer(normalized):
        pieces += [Piece(Clean(normalized[at : match.start()]), style), Piece(Clean(match.group()), "status.warn")]
        at = match.end()
    return [piece for piece in (*pieces, Piece(Clean(normalized[at:]), style)) if piece.text]


def _title_pieces(group: Group, *, quiet: bool, new: bool) -> list[Piece]:
    """The deciding words first, the tool last."""
    cause = group.texts
    loud, plain = ("sec", "sec") if quiet else (f"{_style(group)} bold", "text")
    if cause.wrong:
        tasks = len(group.tasks)
        pieces = [Piece(excerpt(cause.kind, 200), loud), *([_NEW] if new else [])]
        pieces.append(Piece(Clean(f"  {text.quantity(tasks, 'task')}"), "dim"))
        if cause.kind != cause.title:
            pieces += [Piece(Clean("  ")), Piece(Clean(f"{WRONG_ANSWER} · {excerpt(cause.type, 40)}"), "dim")]
        return pieces
    pieces = placeholders(excerpt(cause.kind, 400), loud)
    if cause.text.exact and cause.text != cause.kind:
        pieces += [Piece(Clean(" ")), *placeholders(excerpt(cause.text, 400), plain)]
    if cause.part.exact:
        pieces.append(Piece(Clean(f" = {excerpt(cause.part, 37)}"), "status.warn"))
    pieces += [_NEW] if new else []
    has_tool = cause.name.exact and cause.name != cause.kind
    return [*pieces, Piece(Clean("  ")), Piece(excerpt(cause.name, 60), "dim")] if has_tool else pieces


def passed_trials(task: Task) -> Clean:
    """How many trials of a task passed: ``0 of 4 passed``."""
    return Clean(f"{task.passed} of {task.trials} passed" if task.trials else "—")


def _verdict_mark(judgment: Judgement, glyphs: Glyphs, group: Group | None = None) -> list[Piece]:
    if judgment.verdict is None and group is not None and group.ungraded:
        return [Piece(glyphs.ungraded, "status.warn bold")]
    if judgment.verdict is None:
        return [Piece(glyphs.error, "status.error bold")]
    return [Piece(Clean(LETTERS[judgment.verdict.value]), "accent bold")]


def _key(item: _Row) -> Hashable:
    if isinstance(item, Group):
        return item.digest
    if isinstance(item, TaskRow):
        return item.task.digest
    return (
        item.run if isinstance(item, Member) else ("details", item.group.digest) if isinstance(item, Details) else item
    )


SPARK_CELLS: Final = 12
"""Cells of the sparkline of a cause."""
MAX_BAR: Final = 16
"""Maximum cells of the bar of a share."""
MAX_AGENTS: Final = 3
_LINKS: Final = 7
"""Cells before the links of the example."""
MAX_REPLACED: Final = 8
_COUNTS: Final = 8


class Example(NamedTuple):
    """Key of a row with an example run."""

    number: int
    ref: RunRef
    span: str | None


_RUN_KEYS: Final = 1_000
"""Numbers of the keys of runs, beyond those of findings."""


class FailedRun(NamedTuple):
    """A run with a cause, and a replay of it that passed."""

    run: RunSummary
    replay: RunSummary | None


def cause_rows(
    group: Group,
    example: RunSummary | None,
    judgment: Judgement,
    shared: Contrast | None,
    progress: str = "",
    *,
    failures: Sequence[FailedRun] = (),
    width: int,
    now: float,
    zone: tzinfo = UTC,
    glyphs: Glyphs = UNICODE,
    task: Task | None = None,
    links: Sequence[tuple[Clean, str]] = (),
) -> ListRows:
    """The rows of the pane. `shared` is None until the contrast is known; `progress` describes the work in progress.

    With a `task` of wrong answers, `judgment` is about that, and the checks that failed come first. `failures` are the
    first runs with the cause; a cause of one run has no table of them.
    `links` of the example are labels with the ids of their steps.

    The key of a row with a target is an `Example`.
    """
    lines = _task_lines(task, width) if task is not None else []
    lines += [*_headline(group, width), *_numbers(group, width, now, zone), *_judgment_lines(judgment, width)]
    lines += _evidence(example, width)
    lines += _normalized(example, width)
    keys: list[Hashable] = list(range(len(lines)))
    for number, (label_text, span) in enumerate(links):
        key = Example(-1 - number, example.ref, span) if example is not None else None
        for part, piece in enumerate(wrap(label_text, max(20, width - _LINKS))):
            label = Clean(("" if number or part else "links").ljust(_LINKS))
            keys.append(len(lines) if part or key is None else key)
            lines.append((Piece(label, "dim"), Piece(piece, "sec")))
    for line, key in _shared(shared, width, glyphs, progress):
        keys.append(key if key is not None else len(lines))
        lines.append(line)
    if len(group.runs) > 1:
        for line, key in _failed_runs(failures, len(group.runs), width, now, glyphs):
            keys.append(key if key is not None else len(lines))
            lines.append(line)
    return ListRows(lines, keys=keys)


_WIDE_TABLE: Final = 90
"""Cells of a table of runs with the columns that any of them fills; a narrower one has where they failed."""
_RUN_COLUMNS: Final[Mapping[str, tuple[int, Callable[[RunSummary], str | None]]]] = {
    "agent": (16, lambda run: run.agent or run.name),
    "failed at": (20, lambda run: run.first_error.name if run.first_error is not None else None),
    "model": (16, lambda run: short_model(run.model) if run.model else None),
}
"""Cells and value of a column by its heading."""


def _failed_runs(
    failures: Sequence[FailedRun], count: int, width: int, now: float, glyphs: Glyphs
) -> list[tuple[Line, Example | None]]:
    """A table of the first runs with a cause, each with the replay of it that passed."""
    title = [Piece(Clean("Runs"), "text bold"), Piece(Clean(f"  {count} with this cause"), "dim")]
    headings = title
    columns = [name for name, (_, value) in _RUN_COLUMNS.items() if any(value(run) for run, _ in failures)]
    rows: list[tuple[Line, Example | None]] = [((), None)]
    if is_wide := width >= _WIDE_TABLE:
        rows.append((tuple(title), None))
        headings = [column(Clean(name), _RUN_COLUMNS[name][0], "dim") for name in columns]
        title_of = "task" if any(run.label for run, _ in failures) else "prompt"
        headings = [column(Clean("  id"), 12, "dim"), *headings, Piece(Clean(title_of), "dim")]
    rows.append(((*fill(headings, width - 14), Piece(Clean("    time   age"), "dim")), None))
    for number, (run, replay) in enumerate(failures):
        error = run.first_error
        sign, style = run_sign(run, Status.ERROR if run.failed else run.status, glyphs)
        pieces = [Piece(Clean(f"{sign} "), style), column(short_id(run.id, 9), 10, "sec")]
        if is_wide:
            for size, value in map(_RUN_COLUMNS.__getitem__, columns):
                pieces.append(column(truncate(one_line(value(run) or "—", 40), size - 1), size, "text"))
        else:
            place = error.name if error is not None else None
            pieces.append(Piece(Clean(f"{one_line(place or run.agent or run.name, 40)}  "), "text"))
        pieces.append(Piece(one_line(run.label or run.prompt, 120), "dim"))
        age = max(0.0, now - run_time(run))
        tail = (
            column(text.duration(run.duration_ms), 8, "sec", right=True),
            column(text.age(age, estimated=run.started_at is None), 6, "dim", right=True),
        )
        key = Example(_RUN_KEYS + number, run.ref, error.span if error is not None else None)
        rows.append(((*fill(pieces, width - 14), *tail), key))
        if replay is not None:
            rows.append((_passed_replay(run, replay, glyphs), None))
    return rows


def _passed_replay(run: RunSummary, replay: RunSummary, glyphs: Glyphs) -> Line:
    """How a replay that passed differs from its failed original, and the key that compares them."""
    changed = "with another model" if replay.models != run.models else ""
    changed = changed or ("with another prompt" if replay.prompt != run.prompt else "")
    ended = f"{(replay.outcome or replay.status).value} {changed}".rstrip()
    return (
        Piece(Clean(f"  {glyphs.replay} "), "accent"),
        Piece(short_id(replay.id, 9), "accent"),
        Piece(Clean(f"  {glyphs.ok} {ended}"), "status.ok"),
        Piece(Clean("  ·  "), "dim"),
        Piece(Clean("D"), "key bold"),
        Piece(Clean(" diff"), "sec"),
    )


def contrast_rows(shared: Contrast | None, *, width: int, glyphs: Glyphs = UNICODE) -> ListRows:
    """The contrast alone; see `cause_rows`."""
    rows = _shared(shared, width, glyphs)[1:]
    keys = [key if key is not None else i for i, (_, key) in enumerate(rows)]
    return ListRows(
        [line for line, _ in rows], keys=keys, headings=[i for i, (_, key) in enumerate(rows) if key is None]
    )


def _headline(group: Group, width: int) -> list[Line]:
    """The deciding words in full, then where it failed."""
    cause, room = group.texts, max(20, width)
    kind = wrap(excerpt(cause.kind, 600), room)
    lines: list[Line] = [tuple(placeholders(part, f"{_style(group)} bold")) for part in kind]
    if cause.text.exact and cause.text != cause.kind and not cause.wrong:
        lines += [tuple(placeholders(part, "text bold")) for part in wrap(excerpt(cause.text, 600), room)]
    place = "" if cause.wrong else " ".join(filter(None, (cause.operation, excerpt(cause.name, 80))))
    pieces = [Piece(Clean(f"in {place}  "), "sec")] if place else []
    if cause.frame.exact:
        pieces.append(Piece(Clean(f"at {excerpt(cause.frame, 80)}  "), "sec"))
    if group.ungraded:
        pieces.append(Piece(Clean(f"not graded: {group.who.value}"), _WHO_STYLES[group.who]))
    elif cause.wrong and cause.type.exact:
        pieces.append(Piece(Clean(f"{WRONG_ANSWER} · {excerpt(cause.type, 60)}"), "sec"))
    if group.merged:
        count = len(group.merged)
        pieces.append(Piece(Clean(f"with {text.quantity(count, 'merged cause')}"), "sec"))
    return [*lines, *(_flow(pieces, width) if pieces else [])]


def _task_lines(task: Task, width: int) -> list[Line]:
    """A task, its pass rate, and the first reasons of its scores in full."""
    passed = Piece(Clean(f"  {passed_trials(task)}"), "sec")
    lines: list[Line] = [(Piece(one_line(task.name, 80) or Clean("—"), "text bold"), passed)]
    for reason in task.reasons:
        lines += [(Piece(part, "status.error"),) for part in wrap(one_line(reason, 600), max(20, width))]
    return [*lines, ()]


def _numbers(group: Group, width: int, now: float, zone: tzinfo) -> list[Line]:
    runs = len(group.runs)
    agents = ", ".join(group.agents[:MAX_AGENTS]) + (" …" if len(group.agents) > MAX_AGENTS else "")
    agent = f" of {one_line(agents, 80)}" if agents else ""
    pieces = [Piece(Clean(f"{text.quantity(runs, 'run')}{agent}   "), "sec")]
    lost = [f"time lost {text.duration(group.wasted_ms)}"] if group.wasted_ms is not None else []
    lost += [f"{text.tokens(group.wasted_tokens)} tokens"] if group.wasted_tokens is not None else []
    if lost:
        pieces.append(Piece(Clean(f"{', '.join(lost)}   "), "status.warn"))
    lines = _flow(pieces, width)
    if group.appeared is not None:
        first, last = group.appeared, group.starts[-1]
        dates = f"{'first' if last > first else 'at'} {clock(first, 'UTC', now=now, zone=zone)}"
        if last > first:
            dates += f"  last {clock(last, 'UTC', now=first, zone=zone)}"
        new = [Piece(Clean("new  "), "status.warn")] if group.is_new(now) else []
        lines.append((*new, Piece(Clean(dates), "sec")))
    return lines


def _judgment_lines(judgment: Judgement, width: int) -> list[Line]:
    lines: list[Line] = []
    if judgment.verdict is not None:
        lines.append((Piece(Clean("verdict  "), "dim"), Piece(Clean(judgment.verdict.value), "accent bold")))
    if judgment.tags:
        lines.append((Piece(Clean("tags  "), "dim"), Piece(one_line("  ".join(sorted(judgment.tags)), 200), "accent")))
    if judgment.note:
        lines += [(Piece(part, "text"),) for part in wrap(one_line(judgment.note, 1000), max(20, width))]
    return lines


def _evidence(example: RunSummary | None, width: int) -> list[Line]:
    """What the grader left about the example, and where."""
    evidence = None if example is None else example.evidence
    if example is None or evidence is None:
        return []
    message = f"{evidence.text}" if evidence.type is None else f"{evidence.type}: {evidence.text}"
    place = Piece(one_line(f"{short_id(example.id)} · {evidence.place}", 120), "dim")
    return [(place,), *((Piece(part, "text"),) for part in wrap(one_line(message, 400), max(20, width)))]


def _normalized(example: RunSummary | None, width: int) -> list[Line]:
    """The values that were replaced by placeholders in the example."""
    replaced = [] if example is None else replaced_values(example)
    if example is None or not replaced:
        return []
    pieces = [Piece(Clean(f"e.g. {short_id(example.id)}: "), "dim")]
    for kind, original in replaced[:MAX_REPLACED]:
        pieces += [
            Piece(Clean(f"<{kind}>"), "status.warn"),
            Piece(Clean(" = "), "dim"),
            Piece(excerpt(original, 40), "text"),
            Piece(Clean("   ")),
        ]
    if len(replaced) > MAX_REPLACED:
        pieces.append(Piece(Clean(f"+{len(replaced) - MAX_REPLACED} more"), "dim"))
    return _flow(pieces, width)


def _flow(pieces: Sequence[Piece], width: int) -> list[Line]:
    lines: list[list[Piece]] = [[]]
    for piece in pieces:
        if lines[-1] and width_of(lines[-1]) + width_of((piece,)) > width:
            lines.append([])
        lines[-1].append(piece)
    return [tuple(line) for line in lines]


def _bar(width: int) -> int:
    """Cells of each of the two bars."""
    return max(0, min(MAX_BAR, (width // 2 - 2 * (_COUNTS + 2)) // 2))


def _shared(
    shared: Contrast | None, width: int, glyphs: Glyphs, progress: str = ""
) -> list[tuple[Line, Example | None]]:
    head = fill([Piece(Clean("Shared by these runs"), "text bold")], max(8, width - 2 * (_bar(width) + _COUNTS + 2)))
    others = "  passed runs" if _bar(width) > 1 else "  passed"
    columns = [Piece(Clean("  these".ljust(_bar(width) + _COUNTS + 2)), "dim"), Piece(Clean(others), "dim")]
    rows: list[tuple[Line, Example | None]] = [((), None), ((*head, *columns), None)]
    if shared is None:
        return [*rows, ((Piece(Clean("comparing with passed runs …"), "dim"),), None)]
    if not shared.findings and not progress:
        rows.append(((Piece(Clean(NO_FINDINGS), "dim"),), None))
    numbered = enumerate(shared.findings)
    rows += [(finding_line(finding, width, glyphs), Example(i, *finding.example)) for i, finding in numbered]
    if progress:
        rows.append(((Piece(one_line(progress, 80), "status.running"),), None))
    if shared.note:
        rows.append(((Piece(one_line(shared.note, 200), "dim"),), None))
    return rows


def finding_line(finding: Finding, width: int, glyphs: Glyphs = UNICODE) -> Line:
    """One finding, with its share on both sides."""
    telling = finding.in_a * (finding.of_b or 1) > 2 * finding.in_b * finding.of_a
    room = max(8, width - 2 * (_bar(width) + _COUNTS + 2))
    name = fill([Piece(one_line(finding.label, 200), "text" if telling else "sec")], room)
    return (
        *name,
        *_share(finding.in_a, finding.of_a, _bar(width), "bar.error" if telling else "bar.model", glyphs),
        *_share(finding.in_b, finding.of_b, _bar(width), "bar.model", glyphs),
    )


def _share(part: int, total: int, bar: int, style: str, glyphs: Glyphs) -> list[Piece]:
    return [
        Piece(Clean("  ")),
        *amount(part, total, bar, style, glyphs=glyphs),
        column(Clean(f" {text.count(part)}/{text.count(total)}"), _COUNTS, "text", right=False),
    ]


def example_of(key: Hashable) -> tuple[RunRef, str | None] | None:
    """The target of a row: a run, and the span in it."""
    return (key.ref, key.span) if isinstance(key, Example) else None

"""A run as a story: one row per turn of the user, which unfolds to its calls. Sub-agents are rows of their own.

Hooks and meta records of a turn are one row at its end. The axis shows the time worked: the time between turns is a
thin mark with its length.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from tracetui.analysis.effects.actions import Action, action_of, is_read
from tracetui.analysis.navigation import (
    BOOKKEEPING,
    CALLS,
    Digest,
    Turn,
    WorkTime,
    count_prompts,
    digest,
    grow,
    is_interruption,
    is_lane,
    is_prompt,
    same_work,
    turns_of,
)
from tracetui.masking import one_line
from tracetui.model import Operation, Run, Span, Status
from tracetui.text import Clean, duration, pad, quantity
from tracetui.views.bars import Bar, axis, bar, gap_axis, on_grid
from tracetui.views.glyphs import UNICODE, Glyphs, bar_style, kind
from tracetui.views.labels import BLANK, preview_text, time_cell
from tracetui.views.rows import Fold, Line, Piece, fill, fit, width_of
from tracetui.views.timeline.chart import growth
from tracetui.views.timeline.header import ending
from tracetui.views.timeline.spans import END, plain
from tracetui.views.timeline.work import outcome_pieces, reads_pieces, step_pieces, work_pieces

_BAR_FROM, _BAR_IF_FITS, _TIME_FROM, _NUMBER_FROM = 100, 60, 30, 16
_FEW_ROWS, _ENDLESS = 40, 1000
_BAR_SHARE: Final = 0.25
_OPEN_ROWS: Final = 12
"""A story with at most so many rows opens unfolded."""
_PROMPT_SHARE: Final = 0.38
"""Least share of the cell for the prompt, beside the work of the turn."""
_UNSETTLED: Final = 64
"""Spans at the end of a long turn that are read again when it grows: those that may still change."""
_MAX_READS: Final = 50
"""Most calls of a row of reads."""
_MAX_INDENT: Final = 24
_SILENT: Final = frozenset({Operation.TURN, Operation.INVOKE_AGENT})


Actions: TypeAlias = Mapping[str, tuple[Span, Action]]
"""Calls whose bodies were read, by id of the span, with the span as it was then."""


class Entry(NamedTuple):
    """A row: a turn, a lane, a span, consecutive reads, or the folded records from `start` to before `stop`."""

    what: Literal["turn", "lane", "span", "reads", "records"]
    position: int
    """Position of the span under the cursor."""
    start: int
    stop: int
    depth: int = 0
    number: int = 0
    """Number of a turn of the run, from 1."""
    records: tuple[int, ...] = ()
    hooks: int = 0
    """Number of hooks among the records."""
    failed: int = 0
    """Number of records that failed."""
    reads: int = 1
    """Number of consecutive reads."""


@dataclass
class Records:
    """The records of a turn."""

    positions: list[int]
    hooks: int = 0
    failed: int = 0

    def add(self, position: int, span: Span) -> None:
        """Add a record."""
        self.positions.append(position)
        self.hooks += span.operation is Operation.HOOK
        self.failed += span.status is Status.ERROR

    def cut(self, stop: int, run: Run) -> None:
        """Remove the records from position `stop` on."""
        kept = bisect_left(self.positions, stop)
        for position in self.positions[kept:]:
            self.hooks -= run.spans[position].operation is Operation.HOOK
            self.failed -= run.spans[position].status is Status.ERROR
        del self.positions[kept:]

    def __copy__(self) -> Records:
        return Records(self.positions[:], self.hooks, self.failed)


class Section(NamedTuple):
    """A turn of the run with its rows. Versions of a growing story share the sections of unchanged turns."""

    entries: list[Entry]
    rows: dict[int, int]
    """Rows in the section by position of their span."""
    marks: list[int]
    """Rows of the section that failed, but for its first."""
    records: Records
    """Those of an unfolded turn."""
    digests: dict[tuple[int, int], Digest]
    """Of the turn and its lanes, by `start` and `stop`, as far as they were needed."""
    settled: Settled
    """What a longer version of the turn takes over."""


class Settled(NamedTuple):
    """The beginning of a turn, which stays as it is while the turn grows."""

    stop: int
    """Position of the first span for which rows are made again, outside lanes."""
    entries: int
    marks: int
    records: Records
    work: Digest | None = None
    """The work up to another position, if the turn is long."""


class StoryRows:
    """Rows of a story; see `tracetui.views.rows.Rows`. The key of a row is the id of its span.

    `opened` holds the ids of the unfolded rows. From the rows `before`, of an earlier state of the run, everything is
    taken over but the turns of the numbers `changed`, each with the position of its first changed span. `actions` are
    the calls whose bodies are loaded, by id of their span.
    """

    def __init__(
        self,
        run: Run,
        *,
        opened: frozenset[str] = frozenset(),
        glyphs: Glyphs = UNICODE,
        now: float | None = None,
        turns: list[Turn] | None = None,
        actions: Actions = MappingProxyType({}),
        before: StoryRows | None = None,
        changed: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.run, self.opened, self._glyphs, self._now = run, opened, glyphs, now
        self.actions = actions
        self.turns = turns_of(run) if turns is None else turns
        self._sections: list[Section] = []
        self._starts = array("L", [0])
        """The first row of each section, and the number of rows."""
        self._settled, self._settled_time = 0, WorkTime(())
        """Number of sections whose work is settled: all but the last; their time worked."""
        self._checked, self._failing = 0, list[int]()
        """Number of sections that were searched for marked rows, and the numbers of those that have any."""
        if before is not None:
            self._take_over(before, changed)
        for number in range(len(self._sections), len(self.turns)):
            self._sections.append(self._update_section(number, before, changed))
            self._starts.append(self._starts[-1] + len(self._sections[-1].entries))
        self._ending = ending(run, glyphs)
        self._work_time: WorkTime | None = None
        self._ticks: tuple[int, ...] = ()
        self._heading: tuple[int, Line] | None = None
        self._text_width: int | None = None
        """Cells of the longest text of a row."""

    def refold(self, opened: frozenset[str]) -> StoryRows:
        """The same story with other unfolded rows."""
        index = self.run.index
        toggled = {self._number_at(index[key]): 0 for key in opened ^ self.opened if key in index}
        return self._version(self.run, self.turns, toggled, opened=opened, now=self._now)

    def with_run(self, run: Run, *, now: float | None = None) -> StoryRows:
        """The rows of a newer state of the run. If it only grew at the end, only changed turns are read again."""
        delta = growth(self.run, run)
        if delta is None:
            return StoryRows(run, opened=self.opened, glyphs=self._glyphs, now=now, actions=self.actions)
        turns = grow(self.turns, self.run, run, delta.start, delta.changed)
        positions = [position for position in delta.changed if not same_work(self.run, run, position)]
        if delta.start and is_lane(self.run, 0) != is_lane(run, 0):
            positions.insert(0, 0)  # the first span was the root of the whole run
        changed = {self._number_at(position): position for position in reversed(positions)}
        return self._version(run, turns, changed, opened=self.opened, now=now)

    def _version(
        self, run: Run, turns: list[Turn], changed: Mapping[int, int], *, opened: frozenset[str], now: float | None
    ) -> StoryRows:
        """The rows of `run`, which take over those of this version."""
        return StoryRows(
            run,
            opened=opened,
            glyphs=self._glyphs,
            now=now,
            turns=turns,
            actions=self.actions,
            before=self,
            changed=changed,
        )

    def _number_at(self, position: int) -> int:
        """Number of the section with a span."""
        return bisect_right(self.turns, position, key=lambda turn: turn.start) - 1

    # ---- building

    def _take_over(self, before: StoryRows, changed: Mapping[int, int]) -> None:
        """Share the sections of the same turns, and what is known of them together."""
        count = _shared(before.turns, self.turns)
        self._sections, self._starts = before._sections[:count], before._starts[: count + 1]
        self._checked = min(before._checked, count)
        self._failing = before._failing[: bisect_left(before._failing, self._checked)]
        stale = sorted(number for number in changed if number < count)
        for number in stale:
            known = before._sections[number].digests if self.run is before.run else {}
            self._sections[number] = self._section(number, known)
        if any(len(self._sections[number].entries) != len(before._sections[number].entries) for number in stale):
            self._starts = array("L", accumulate((len(section.entries) for section in self._sections), initial=0))
        if count >= before._settled and all(
            self._work(number).periods == before._work(number).periods for number in stale if number < before._settled
        ):
            self._settled, self._settled_time = before._settled, before._settled_time
        for number in stale:
            if number < self._checked:
                at = bisect_left(self._failing, number)
                was_failing = self._failing[at : at + 1] == [number]
                self._failing[at : at + was_failing] = [number] if self._marks(number) else []

    def _update_section(self, number: int, before: StoryRows | None, changed: Mapping[int, int]) -> Section:
        """The rows of a turn that is new or longer than before."""
        if before is None or number >= len(before.turns) or before.opened is not self.opened:
            return self._section(number)
        old, new = before.turns[number], self.turns[number]
        section = before._sections[number]
        if (old.start, old.head) != (new.start, new.head):
            return self._section(number)
        limit, settled = min(changed.get(number, new.stop), new.stop - _UNSETTLED), section.settled
        work = settled.work if settled.work is not None and settled.work.stop <= limit else None
        return self._section(number, work=work, before=section if settled.stop <= limit else None)

    def _section(
        self,
        number: int,
        digests: dict[tuple[int, int], Digest] | None = None,
        *,
        work: Digest | None = None,
        before: Section | None = None,
    ) -> Section:
        """The rows of a turn of the run; the settled ones are those of the section `before`."""
        turn, digests = self.turns[number], {} if digests is None else digests
        head = Entry("turn", turn.head, turn.start, turn.stop, 0, number + 1)
        section = Section([head], {turn.head: 0}, [], Records([]), digests, Settled(turn.start, 1, 0, Records([])))
        if before is not None and self.fold_is_open(head):
            settled = before.settled
            section.entries.extend(before.entries[1 : settled.entries])
            section.marks.extend(before.marks[: settled.marks])
            rows = before.rows.copy()
            for entry in before.entries[settled.entries :]:
                for position in range(entry.start, entry.stop) if entry.what == "reads" else (entry.position,):
                    rows.pop(position, None)
            section = section._replace(rows=rows, records=copy(settled.records), settled=settled)
        if turn.stop - turn.start > 2 * _UNSETTLED:
            section = self._settle(turn, section, work)
        if self.fold_is_open(head):
            self._add(section, self._inner_entries(section.settled.stop, turn.stop, 1, turn.head, section.records))
            self._add(section, self._record_rows(section.records, 1))
        return section

    def _settle(self, turn: Turn, section: Section, work: Digest | None) -> Section:
        """The section with the rows and the work of all but the last spans of a long turn as settled."""
        stop = turn.stop - _UNSETTLED
        for end in (stop, turn.stop):
            if (turn.start, end) not in section.digests:
                section.digests[turn.start, end] = digest(self.run, turn.start, end, work)
            work = section.digests[turn.start, end]
        above = self.run.parent(stop)
        while above is not None and above >= turn.start:
            if is_lane(self.run, above):
                stop = above
            above = self.run.parent(above)
        if self.fold_is_open(section.entries[0]):
            self._add(section, self._inner_entries(section.settled.stop, stop, 1, turn.head, section.records))
            stop = self._without_last_reads(section, stop)
        work = section.digests[turn.start, turn.stop - _UNSETTLED]
        settled = Settled(stop, len(section.entries), len(section.marks), copy(section.records), work)
        return section._replace(settled=settled)

    def _without_last_reads(self, section: Section, stop: int) -> int:
        """Remove a last row of reads, which may go on, from the rows up to `stop`; returns where they end then."""
        row = _head_of(section.entries, 1)
        head = section.entries[row]
        if head.depth != 1 or head.what not in ("span", "reads") or not is_reading(self.run.spans[head.position]):
            return stop
        for position in range(head.start, stop):
            section.rows.pop(position, None)
        del section.entries[row:]
        section.records.cut(head.start, self.run)
        return head.start

    def _add(self, section: Section, entries: Iterable[Entry]) -> None:
        """Add rows to a section; a call that reads joins the row of reads before it."""
        for entry in entries:
            if (row := self._row_to_join(section, entry)) is not None:
                head = section.entries[row]
                section.entries[row] = head._replace(what="reads", stop=entry.stop, reads=head.reads + 1)
                section.rows[entry.position] = row
                if not self.fold_is_open(head):
                    continue
                entry = entry._replace(depth=entry.depth + 1)
            if self._is_failure(entry, section.digests):
                section.marks.append(len(section.entries))
            section.rows[entry.position] = len(section.entries)
            section.entries.append(entry)

    def _row_to_join(self, section: Section, entry: Entry) -> int | None:
        """The row of a section with the reads that a call continues."""
        if entry.what != "span" or not is_reading(self.run.spans[entry.position]):
            return None
        row = _head_of(section.entries, entry.depth)
        head = section.entries[row]
        joins = head.depth == entry.depth and head.what in ("span", "reads") and head.reads < _MAX_READS
        return row if joins and is_reading(self.run.spans[head.position]) else None

    def _entry(self, index: int) -> Entry | None:
        """The entry of a row; None for the last row."""
        if not 0 <= index < self._starts[-1]:
            return None
        number = bisect_right(self._starts, index) - 1
        return self._sections[number].entries[index - self._starts[number]]

    def _row(self, position: int) -> int | None:
        """The row of a span that isn't hidden."""
        number = self._number_at(position)
        row = self._sections[number].rows.get(position)
        return None if row is None else self._starts[number] + row

    def _turn_entries(self, turn: Turn, depth: int, number: int) -> Iterator[Entry]:
        yield Entry("turn", turn.head, turn.start, turn.stop, depth, number)
        if self.run.spans[turn.head].id in self.opened:
            yield from self._child_entries(turn, depth + 1)

    def _child_entries(self, turn: Turn, depth: int) -> Iterator[Entry]:
        """The rows below a turn."""
        records = Records([])
        yield from self._inner_entries(turn.start, turn.stop, depth, turn.head, records)
        yield from self._record_rows(records, depth)

    def _inner_entries(self, start: int, stop: int, depth: int, head: int, records: Records) -> Iterator[Entry]:
        """The rows of the spans of a turn, except its head; adds the others to `records`."""
        run, position = self.run, start
        while position < stop:
            span = run.spans[position]
            if position != head and is_lane(run, position):
                yield from self._lane_entries(position, depth)
                position += run.sizes[position]
                continue
            if position != head:
                if is_record(span):
                    records.add(position, span)
                elif not _is_silent(span, run.sizes[position]) and not self._starts_lane(position):
                    yield Entry("span", position, position, position + 1, depth)
            position += 1

    def _record_rows(self, records: Records, depth: int) -> Iterator[Entry]:
        """The row of the records of a turn, and theirs if it is unfolded."""
        if positions := tuple(records.positions):
            first, last = positions[0], positions[-1]
            row = Entry("records", first, first, last + 1, depth, 0, positions, records.hooks, records.failed)
            yield row
            if self.fold_is_open(row):
                yield from (Entry("span", position, position, position + 1, depth + 1) for position in positions[1:])

    def _starts_lane(self, position: int) -> bool:
        """Whether a call did nothing but start the sub-agent below it."""
        run = self.run
        fine = run.spans[position].status not in (Status.ERROR, Status.RUNNING)
        return (
            fine and run.sizes[position] > 1 and is_lane(run, position + 1) and run.spans[position].operation in CALLS
        )

    def _lane_entries(self, position: int, depth: int) -> Iterator[Entry]:
        run = self.run
        yield Entry("lane", position, position, position + run.sizes[position], depth)
        if run.spans[position].id not in self.opened:
            return
        turns = turns_of(run, position)
        if len(turns) == 1:
            yield from self._child_entries(turns[0]._replace(head=-1), depth + 1)
        else:
            for turn in turns:
                yield from self._turn_entries(turn, depth + 1, 0)

    def _digest(self, start: int, stop: int, digests: dict[tuple[int, int], Digest] | None = None) -> Digest:
        """The work of a turn or lane, from the `digests` of its section."""
        digests = self._sections[self._number_at(start)].digests if digests is None else digests
        if (start, stop) not in digests:
            digests[start, stop] = digest(self.run, start, stop)
        return digests[start, stop]

    def _work(self, number: int) -> Digest:
        """The work of a turn of the run."""
        return self._digest(self.turns[number].start, self.turns[number].stop)

    @property
    def work_time(self) -> WorkTime:
        """The time worked, without the time between turns."""
        if self._work_time is None:
            last = max(0, len(self.turns) - 1)
            settled = [period for number in range(self._settled, last) for period in self._work(number).periods]
            self._settled, self._settled_time = last, self._settled_time.extended(settled)
            periods = list(self._work(last).periods) if self.turns else []
            if self.turns and (extent := self._extent(self.turns[last].start, self.turns[last].stop)) is not None:
                periods.append((periods[-1][1], extent[1]))
            self._work_time = self._settled_time.extended(periods)
        return self._work_time

    @property
    def entries(self) -> list[Entry]:
        """All rows but the last, for a document."""
        return [entry for section in self._sections for entry in section.entries]

    def seconds_worked(self, entry: Entry) -> float | None:
        """Seconds worked in a row; None if not recorded."""
        extent = self._extent(entry.start, entry.stop) if entry.what != "records" else None
        return self._worked_seconds(extent) if extent is not None else None

    def seconds_between(self, before: Entry, after: Entry) -> float | None:
        """Seconds from the end of a row to the start of another; None if not recorded."""
        first, second = (self._extent(entry.start, entry.stop) for entry in (before, after))
        return second[0] - first[1] if first is not None and second is not None else None

    def sentence(self, entry: Entry, room: int) -> list[Piece]:
        """Glyph, name, work and outcome of a sub-agent; of a turn inside one, its prompt."""
        span = self.run.spans[entry.position]
        if entry.what == "lane":
            return self._lane(entry, span, room)
        return [Piece(Clean("›"), "role.user"), BLANK, *self._turn(entry, span, room)]

    # ---- the rows

    def __len__(self) -> int:
        return self._starts[-1] + (1 if self._ending else 0)

    def span(self, index: int) -> Span | None:
        """The span of a row, None for the last row."""
        entry = self._entry(index)
        return None if entry is None else self.run.spans[entry.position]

    def key(self, index: int) -> Hashable:
        span = self.span(index)
        return END if span is None else span.id

    def index(self, key: Hashable) -> int | None:
        """The row of a span; for a hidden span, the row that contains it, else the row before."""
        if key == END:
            return self._starts[-1] if self._ending else None
        position = self.run.index.get(key) if isinstance(key, str) else None
        if position is None or (row := self._row(position)) is not None:
            return None if position is None else row
        number = self._number_at(position)
        if len(self._sections[number].entries) == 1:
            return self._starts[number]
        candidates = (self._row(self.run.index[above]) for above in reversed(self._path(position)))
        return next((row for row in candidates if row is not None), None)

    def _path(self, position: int, *, records: bool = True) -> list[str]:
        """Ids of the rows that contain a span, outermost first: its turn, lanes, and the row of its records."""
        run = self.run
        turn = self.turns[bisect_right(self.turns, position, key=lambda turn: turn.start) - 1]
        lanes, above = [], run.parent(position)
        while above is not None and above >= turn.start:
            if is_lane(run, above):
                lanes.append(above)
            above = run.parent(above)
        path = [run.spans[turn.head].id]
        for lane in reversed(lanes):
            path.append(run.spans[lane].id)
            inner = turns_of(run, lane)
            turn = inner[bisect_right(inner, position, key=lambda turn: turn.start) - 1] if position > lane else turn
            if len(inner) > 1:
                path.append(run.spans[turn.head].id)
        if records and is_record(run.spans[position]):
            known = [] if lanes else self._sections[self._number_at(position)].records.positions
            if not known:
                known = [entry.position for entry in self._child_entries(turn, 0) if entry.what == "records"]
            path += [run.spans[first].id for first in known[:1]]
        return path

    def reveal(self, key: Hashable, *, records: bool = False) -> StoryRows:
        """Unfold the turn and sub-agents that hide a span, and with `records` its row of records or reads."""
        position = self.run.index.get(key) if isinstance(key, str) else None
        if position is None:
            return self
        rows = self
        if self._row(position) is None:
            path = self._path(position, records=records)
            rows = self.refold(self.opened | {above for above in path if above != key})
        row = rows._row(position) if records else None
        entry = rows._entry(row) if row is not None else None
        if entry is None or entry.position == position:
            return rows
        return rows.refold(rows.opened | {self.run.spans[entry.position].id})

    def selectable(self, index: int) -> bool:
        return index < self._starts[-1]

    def mark(self, index: int) -> str | None:
        entry = self._entry(index)
        return "status.error" if entry is not None and self._is_failure(entry) else None

    @property
    def marked(self) -> Sequence[int]:
        """See `tracetui.views.rows.WithMarks`."""
        self._failing += filter(self._marks, range(self._checked, len(self._sections)))
        self._checked = len(self._sections)
        return [self._starts[number] + row for number in self._failing for row in self._marks(number)]

    def _marks(self, number: int) -> list[int]:
        """The marked rows of a section, from 0."""
        section = self._sections[number]
        return [0, *section.marks] if self._is_failure(section.entries[0]) else section.marks

    def _is_failure(self, entry: Entry, digests: dict[tuple[int, int], Digest] | None = None) -> bool:
        """Whether the span of a row, or the last of its work, failed."""
        if entry.what in ("records", "reads"):
            return False
        last = entry.position if entry.what == "span" else self._digest(entry.start, entry.stop, digests).last
        return last is not None and self.run.spans[last].status is Status.ERROR

    def plain(self, index: int) -> str:
        """The text of the row and of all spans that it hides."""
        entry = self._entry(index)
        if entry is None:
            return " ".join(piece.text for piece in self._ending)
        if self.fold_is_open(entry) or entry.what == "span":
            return plain(self.run.spans[entry.position])
        return "\n".join(plain(self.run.spans[position]) for position in self._members(entry))

    def hidden(self, index: int) -> list[Span]:
        """The spans that a folded row hides."""
        entry = self._entry(index)
        if entry is None or self.fold_is_open(entry) or entry.what == "span":
            return []
        return [self.run.spans[i] for i in self._members(entry)]

    def _members(self, entry: Entry) -> Iterable[int]:
        """Positions of the spans of a folded row."""
        return self.reads(entry) if entry.what == "reads" else entry.records or range(entry.start, entry.stop)

    def answer(self, index: int) -> Span | None:
        """The last model call of a turn; None for other rows, and without one."""
        entry = self._entry(index)
        if entry is None or entry.what != "turn" or not is_prompt(self.run.spans[entry.position]):
            return None
        answer = self._digest(entry.start, entry.stop).answer
        return None if answer is None else self.run.spans[answer]

    def call_without_body(self, index: int) -> Span | None:
        """The call of a row that `actions` doesn't have yet."""
        entry = self._entry(index)
        if (
            entry is None
            or entry.what not in ("span", "reads")
            or (entry.what == "reads" and not self.fold_is_open(entry))
        ):
            return None
        span = self.run.spans[entry.position]
        return span if span.operation is Operation.EXECUTE_TOOL and self._action(span) is None else None

    # ---- folds

    def fold_is_open(self, entry: Entry) -> bool:
        """Whether a row is unfolded."""
        return self.run.spans[entry.position].id in self.opened

    def fold(self, index: int) -> Fold | None:
        """The fold of a row, with the id of its span; None for none."""
        entry = self._entry(index)
        if entry is None or entry.what == "span" or entry.stop - entry.start <= 1 or len(entry.records) == 1:
            return None
        return Fold(self.run.spans[entry.position].id, self.fold_is_open(entry))

    def parent(self, index: int) -> int | None:
        """The row that contains a row; None for a turn of the run."""
        entry = self._entry(index)
        if entry is None or not entry.depth:
            return None
        rows = range(index - 1, -1, -1)
        return next((row for row in rows if (above := self._entry(row)) and above.depth < entry.depth), None)

    @property
    def all_folds(self) -> frozenset[str]:
        """Ids of all turns and sub-agents."""
        run = self.run
        lanes = {span.id for i, span in enumerate(run.spans) if is_lane(run, i)}
        return frozenset({run.spans[turn.head].id for turn in self.turns} | lanes)

    # ---- drawing

    def _widths(self, width: int) -> tuple[int, int, int]:
        """Cells of number, time and bar."""
        number = max(2, len(str(len(self.turns)))) if width >= _NUMBER_FROM else 0
        shows_time = self.work_time.worked > 0
        chart, time = int(width * _BAR_SHARE), 5 if width >= _TIME_FROM and shows_time else 0
        if (
            not shows_time
            or width < _BAR_IF_FITS
            or (width < _BAR_FROM and not self._fits(width - number - time - chart - 3))
        ):
            chart = 0
        return number, time, chart

    def _fits(self, room: int) -> bool:
        """Whether the texts of all rows fit; of a long story, of none."""
        if self._text_width is None:
            rows = self._starts[-1]
            entries = self._sections[0:] if rows <= _FEW_ROWS else []
            texts = (
                self._what(row, entry, self.run.spans[entry.position], _ENDLESS)
                for row, entry in enumerate(entry for section in entries for entry in section.entries)
            )
            self._text_width = _ENDLESS if rows > _FEW_ROWS else max(map(width_of, texts), default=0)
        return self._text_width <= room

    def line(self, index: int, width: int) -> Line:
        number, time, chart = self._widths(width)
        entry = self._entry(index)
        if entry is None:
            return tuple(fit((Piece(Clean(" " * (number + 1))), *self._ending), width))
        span = self.run.spans[entry.position]
        pieces: list[Piece] = []
        if number:
            pieces += (Piece(pad(Clean(str(entry.number or "")), number, right=True), "dim"), BLANK)
        room = width - number - time - chart - (number > 0) - (time > 0) - (chart > 0)
        pieces += fill(self._what(index, entry, span, room), room)
        extent = self._extent(entry.start, entry.stop) if entry.what != "records" else None
        if time:
            taken = self._worked_seconds(extent) * 1000 if extent is not None else None
            pieces += (BLANK, time_cell(taken, "sec", self._glyphs) if taken else Piece(Clean(" " * time)))
        if chart:
            pieces += (BLANK, *self._bar(entry, span, extent, chart))
        return tuple(pieces)

    def _extent(self, start: int, stop: int) -> tuple[float, float] | None:
        """First start and last end of the spans of a row in UTC seconds, so far if it runs; None if not recorded."""
        digest = self._digest(start, stop)
        if not digest.periods:
            return None
        end = max(end for _, end in digest.periods)
        runs = digest.last is not None and self.run.spans[digest.last].status is Status.RUNNING
        going = runs and self._now is not None and self.run.summary.status is Status.RUNNING
        return digest.periods[0][0], max(end, self._now or 0.0) if going else end

    def _worked_seconds(self, extent: tuple[float, float]) -> float:
        """Seconds worked in a row."""
        return self.work_time.at(extent[1]) - self.work_time.at(extent[0])

    def _bar(self, entry: Entry, span: Span, extent: tuple[float, float] | None, width: int) -> list[Piece]:
        self.header(width=width, bar_only=True)
        if extent is None:
            return on_grid(Bar(0, ""), "line", self._ticks, width, self._glyphs)
        time = self.work_time
        block = bar(time.at(extent[0]), time.at(extent[1]), time.worked, width, self._glyphs)
        style = "bar.agent" if entry.what in ("turn", "lane") else bar_style(span)
        if entry.what in ("turn", "lane") and self._is_failure(entry):
            style = "bar.error"
        return on_grid(block, style, self._ticks, width, self._glyphs)

    def header(self, width: int, *, bar_only: bool = False) -> Line:
        """The column headings, the time worked and the gaps between turns on the axis."""
        time = self.work_time
        if bar_only:
            if self._heading is None or self._heading[0] != width:
                self._heading = width, self._axis(width)
            return self._heading[1]
        number, elapsed, chart = self._widths(width)
        pieces = [Piece(pad(Clean("#"), number, right=True), "dim"), BLANK] if number else []
        worked, total = duration(time.worked * 1000), duration(time.total * 1000)
        title = f"  turn {self._glyphs.dot} {worked} worked" if time.worked else "  turn"
        if time.total - time.worked >= 1:
            title += f" of {total}"
        room = width - number - elapsed - chart - (number > 0) - (elapsed > 0) - (chart > 0)
        pieces.append(Piece(pad(Clean(title), room), "dim"))
        if elapsed:
            pieces.append(Piece(Clean("  time"), "dim"))
        if chart:
            pieces += (BLANK, *self.header(chart, bar_only=True))
        return tuple(fit(pieces, width))

    def _axis(self, width: int) -> Line:
        """Lengths of the longest gaps above their marks; without gaps, an axis of time."""
        time = self.work_time
        gaps, worked = time.longest_gaps, time.worked
        scale = gap_axis(gaps, worked, width, self._glyphs) if gaps else axis(worked * 1000, width)
        self._ticks = scale.ticks
        return scale.heading

    def overview(self, width: int) -> Line:
        """Empty: the rows of a story show the whole run."""
        return ()

    def _what(self, index: int, entry: Entry, span: Span, room: int) -> list[Piece]:
        fold = self.fold(index)
        mark = "  " if fold is None else f"{self._glyphs.unfolded if fold.open else self._glyphs.folded} "
        pieces = [Piece(Clean(" " * min(entry.depth * 2, _MAX_INDENT) + mark), "dim")]
        room -= width_of(pieces)
        if entry.what == "records" and not self.fold_is_open(entry):
            return pieces + self._records(entry)
        if entry.what == "turn":
            return pieces + self._turn(entry, span, room)
        return pieces + (self._lane(entry, span, room) if entry.what == "lane" else self._call(entry, span, room))

    def _turn(self, entry: Entry, span: Span, room: int) -> list[Piece]:
        is_quiet = span.taken_over or span.name == "command" or not is_prompt(span) or not span.preview.strip()
        return self._sentence([Piece(turn_label(span), "dim" if is_quiet else "role.user")], entry, room)

    def _lane(self, entry: Entry, span: Span, room: int) -> list[Piece]:
        sign, style = kind(span, self._glyphs)
        prompt = preview_text(span, 200)
        name = [Piece(sign, style), BLANK, Piece(one_line(span.name, 40), "text bold")]
        return self._sentence([*name, *([Piece(Clean(f" {prompt}"), "dim")] if prompt else [])], entry, room)

    def _sentence(self, head: list[Piece], entry: Entry, room: int) -> list[Piece]:
        """Prompt, work and outcome; of an unfolded row the prompt only.

        The prompt is truncated first, then the work, then an answer.
        """
        if self.fold_is_open(entry):
            return fit(head, room)
        digest = (
            self._digest(entry.start, entry.stop) if entry.what == "turn" else self._digest(entry.start + 1, entry.stop)
        )
        work, outcome = work_pieces(self.run, digest, self._glyphs), outcome_pieces(self.run, digest, self._glyphs)
        arrow = Piece(Clean(f" {self._glyphs.arrow} "), "dim")
        sizes = [width_of(part) for part in (head, work, outcome)]
        arrows = width_of((arrow,)) * ((sizes[1] > 0) + (sizes[2] > 0))
        first = min(sizes[0], max(int(room * _PROMPT_SHARE), room - arrows - sizes[1] - sizes[2]))
        rest = room - arrows - first
        last = min(sizes[2], max(rest // 2, rest - sizes[1]))
        pieces = fit(head, first)
        for part, size in ((work, rest - last), (outcome, last)):
            if part and size > 3:
                pieces += (arrow, *fit(part, size))
        return pieces

    def _call(self, entry: Entry, span: Span, room: int) -> list[Piece]:
        if entry.what == "reads" and not self.fold_is_open(entry):
            paths = [self.run.spans[i].preview for i in self.reads(entry)]
            return reads_pieces(span, paths, room, self._glyphs)
        return step_pieces(span, self._action(span) or action_of(span), room, self._glyphs)

    def _action(self, span: Span) -> Action | None:
        """What a call did, if its body was read since it changed."""
        known = self.actions.get(span.id)
        return known[1] if known is not None and known[0].status is span.status else None

    def reads(self, entry: Entry) -> Iterator[int]:
        """Positions of the calls of a row of reads."""
        return (i for i in range(entry.start, entry.stop) if is_reading(self.run.spans[i]))

    def _records(self, entry: Entry) -> list[Piece]:
        hooks, failed, others = entry.hooks, entry.failed, len(entry.records) - entry.hooks
        counts = [quantity(hooks, "hook")] if hooks else []
        counts += [quantity(others, "record")] if others else []
        pieces = [Piece(Clean(f" {self._glyphs.dot} ".join(counts)), "dim")]
        if failed:
            pieces.append(Piece(Clean(f" {failed}{self._glyphs.error}"), "status.error"))
        return pieces


def turn_label(span: Span, limit: int = 400) -> Clean:
    """The prompt of a turn, by the span at its head."""
    if not is_prompt(span):
        return Clean("before the first prompt")
    return preview_text(span, limit) or Clean("(no prompt)")


def is_record(span: Span) -> bool:
    """Whether a span belongs to the folded records of a turn: hooks, meta records, messages of the program."""
    if span.operation in BOOKKEEPING:
        return True
    return span.operation is Operation.MESSAGE and not is_prompt(span) and not is_interruption(span)


def is_reading(span: Span) -> bool:
    """Whether a call read a file and ended well: several in a row are one row."""
    return span.operation is Operation.EXECUTE_TOOL and is_read(span)


def _head_of(entries: Sequence[Entry], depth: int) -> int:
    """The last row, or the one of this depth that contains it as one of its reads."""
    row, least = len(entries) - 1, max(0, len(entries) - 1 - _MAX_READS)
    while row > least and entries[row].what == "span" and entries[row].depth == depth + 1:
        row -= 1
    return row


def _is_silent(span: Span, size: int) -> bool:
    """Whether a span has no row: a container, or a model call that only calls tools, which have rows."""
    if span.status in (Status.ERROR, Status.RUNNING):
        return span.operation in _SILENT and size > 1
    return span.operation in _SILENT or (span.operation is Operation.CHAT and size > 1 and not span.preview.strip())


def initially_open(run: Run, room: int = 0) -> frozenset[str]:
    """The turns of a story that is short or fits unfolded into `room` rows: all."""
    most = max(_OPEN_ROWS, room)
    if count_prompts(run, most + 1) > most:  # each turn has a row
        return frozenset()
    turns = turns_of(run)
    opened = frozenset(run.spans[turn.head].id for turn in turns)
    fits = len(turns) == 1 or len(StoryRows(run, opened=opened, turns=turns)) <= most
    return opened if fits else frozenset()


def _shared(before: list[Turn], turns: list[Turn]) -> int:
    """Number of turns at the beginning of both."""
    count = min(len(before), len(turns))
    for known in (count, count - 1):  # a run mostly grows in its last turn
        if before[:known] == turns[:known]:
            return known
    return next(number for number in range(count) if before[number] != turns[number])

"""Tables of cleaned text, at natural width or fitted to a terminal; first of all that of ``ls``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os.path import basename
from shlex import quote
from typing import Final, NamedTuple

from tracetui.masking import one_line
from tracetui.model import Problem, RunRef, RunSummary
from tracetui.store.facts import OutcomeCounts
from tracetui.store.relations import counted, split_traces
from tracetui.text import Clean, age, cells, count, duration, exact, pad, quantity, truncate, truncate_middle
from tracetui.views.labels import ending_texts, run_label, score_cell, start_label, tokens_label
from tracetui.views.list.result import result_phrase

_GAP: Final = 2


class Column(NamedTuple):
    """One column of a table."""

    name: str
    most: int = 400
    """Maximum width in cells; longer text overflows unless the table is fitted to a terminal."""
    right: bool = False
    least: int = 0
    """Minimum width when truncating; 0 = never truncate."""
    middle: bool = False
    """Truncate in the middle, for text with significant ends."""
    leaves: int = 0
    """Order in which columns are dropped if truncating isn't enough, 1 first; 0 = never drop."""


class TextTable:
    """A heading and rows. When space is short, the last column gets twice the share of the others."""

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[Clean]]) -> None:
        self._columns = columns
        self._rows = [tuple(Clean(column.name) for column in columns), *rows]
        self._needed = [
            min(column.most, max(cells(row[i]) for row in self._rows)) for i, column in enumerate(columns)
        ]  # fmt: skip

    @property
    def room(self) -> int:
        """The width at which only the last column is truncated, to its `Column.least`."""
        last = min(self._needed[-1], self._columns[-1].least)
        return sum(self._needed[:-1]) + last + _GAP * (len(self._columns) - 1)

    def lines(self, width: int | None = None) -> Iterator[Clean]:
        """The lines, none wider than `width`; None: natural width, nothing truncated."""
        visible = [*range(len(self._columns))]
        sizes = self._needed
        if width is not None:
            visible = self._visible(width)
            sizes = self._shared(visible, width)
        for row in self._rows:
            line = (self._cell(i, row[i], sizes[i], cut=width is not None) for i in visible)
            yield Clean((" " * _GAP).join(line).rstrip())

    def _cell(self, i: int, text: Clean, size: int, *, cut: bool) -> Clean:
        column = self._columns[i]
        if not cut and cells(text) > size:
            return text
        return pad(truncate_middle(text, size) if column.middle and cut else text, size, right=column.right)

    def _visible(self, width: int) -> list[int]:
        """The columns that fit when all are truncated to their minimum."""
        visible = [*range(len(self._columns))]
        for i in sorted((i for i in visible if self._columns[i].leaves), key=lambda i: self._columns[i].leaves):
            if sum(map(self._least_width, visible)) + _GAP * (len(visible) - 1) <= width:
                break
            visible.remove(i)
        return visible

    def _least_width(self, i: int) -> int:
        return min(self._needed[i], self._columns[i].least or self._needed[i])

    def _shared(self, visible: Sequence[int], width: int) -> list[int]:
        """The width of each column: truncatable ones share the remaining space, up to their natural width."""
        sizes = list(map(self._least_width, range(len(self._columns))))
        remaining = width - _GAP * (len(visible) - 1) - sum(sizes[i] for i in visible)
        wanting = [i for i in visible if self._needed[i] > sizes[i]]
        while remaining > 0 and wanting:
            smallest = min(wanting, key=lambda i: sizes[i] / (2 if i == visible[-1] else 1))
            sizes[smallest] += 1
            remaining -= 1
            wanting = [i for i in wanting if self._needed[i] > sizes[i]]
        sizes[visible[-1]] = max(0, sizes[visible[-1]] + min(remaining, 0))
        return sizes


# ---- runs as a table


class _Listing(NamedTuple):
    """What cells depend on beside the run."""

    notes: Mapping[RunRef, str]
    now: float
    names: Mapping[RunRef, str]
    """A short name for every run; empty for a list with addresses."""


class _RunColumn(NamedTuple):
    """A column of a table of runs."""

    column: Column
    cell: Callable[[RunSummary, _Listing], Clean]
    problem: Callable[[Problem], Clean] = lambda problem: Clean("—")
    """Its cell of an unreadable file."""


def _result(run: RunSummary, of: _Listing) -> Clean:
    phrase = "".join(piece.text for piece in result_phrase(run))
    place = run.counts_in or ""
    copied = f"[counts in {place if basename(place) == basename(run.ref.path) else basename(place)}]" if place else None
    return Clean(phrase + _suffix(of.notes.get(run.ref)) + _suffix(copied) + _problems_note(run.problems))


def _suffix(note: str | None) -> str:
    return f" {one_line(note, 200)}" if note else ""


def _problems_note(problems: int) -> str:
    return f" [{quantity(problems, 'problem')} inside]" if problems else ""


def _reason(problem: Problem) -> Clean:
    return one_line(f"{problem.where}: {problem.reason}" if problem.where else problem.reason, 200)


_NAME: Final = Column("NAME", 28)
_STATUS: Final = _RunColumn(
    Column("STATUS", 24),
    lambda run, of: Clean(" · ".join(ending_texts(run, of.now))),
    lambda problem: Clean("unreadable"),
)
_SCORE: Final = _RunColumn(Column("SCORE", 16, leaves=3), lambda run, of: score_cell(run))
"""Only where a run has scores."""
_TIME: Final = _RunColumn(Column("TIME", 6, right=True), lambda run, of: duration(run.duration_ms))
_STEPS: Final = _RunColumn(Column("STEPS", 5, right=True, leaves=2), lambda run, of: count(run.steps))
_TOKENS: Final = _RunColumn(Column("TOKENS", 6, right=True, leaves=1), lambda run, of: tokens_label(run))
_RESULT: Final = _RunColumn(Column("RESULT", least=20), _result, _reason)


def _name(run: RunSummary, of: _Listing) -> Clean:
    return truncate(run_label(run), _NAME.most)


_WHOLE: Final = (
    _STATUS,
    _SCORE,
    _RunColumn(Column("STARTED", 20), lambda run, of: started(run)),
    _TIME,
    _STEPS,
    _TOKENS,
    _RunColumn(_NAME, _name),
    _RunColumn(Column("ADDRESS"), lambda run, of: exact(run.ref.address), lambda problem: exact(problem.path)),
    _RESULT,
)
"""The columns where whole addresses fit."""
_NARROW: Final = (
    _STATUS,
    _SCORE,
    _RunColumn(Column("AGE", 4, right=True), lambda run, of: since(run, of.now)),
    _TIME,
    _STEPS,
    _TOKENS,
    _RunColumn(_NAME._replace(least=12, middle=True), _name),
    _RunColumn(Column("ID", least=8, middle=True), lambda run, of: exact(of.names[run.ref])),
    _RESULT,
)
"""The columns on narrower screens."""


class Screen(NamedTuple):
    """The terminal for a list."""

    width: int
    """Cells of a line."""
    now: float
    """UTC seconds."""
    places: Sequence[str]
    """Places of the runs; empty: the default place."""
    names: Mapping[RunRef, str]
    """A short unique name for every run (`tracetui.views.labels.short_names`)."""

    @property
    def usage(self) -> Clean:
        """How to use one of these names: ``tracetui show traces#ID``."""
        place = "PLACE#" if len(self.places) > 1 else "".join(f"{quote(place)}#" for place in self.places)
        return exact(f"tracetui show {place}ID")


def listing(
    runs: Sequence[RunSummary],
    problems: Sequence[Problem],
    screen: Screen | None = None,
    notes: Mapping[RunRef, str] | None = None,
    *,
    now: float,
) -> Iterator[Clean]:
    """Return the lines of the table; `now` is the time of the states, in UTC seconds.

    Addresses are never cut: if they don't fit on the `screen`, ids replace them, and a line above says how to use one.
    `notes` follow the result of a run.
    """
    full = _table(_WHOLE, runs, problems, _Listing(notes or {}, now, {}))
    if screen is None or full.room <= screen.width:
        return full.lines(None if screen is None else screen.width)
    narrow = _table(_NARROW, runs, (), _Listing(notes or {}, screen.now, screen.names)).lines(screen.width)
    broken = (_narrow_problem(problem, screen) for problem in problems)
    return chain(_usage_line(runs, problems, screen), narrow if runs else (), broken)


def _table(
    columns: Iterable[_RunColumn], runs: Sequence[RunSummary], problems: Iterable[Problem], of: _Listing
) -> TextTable:
    """Return the table, without its score column if no run has a score."""
    scored = any(run.scores for run in runs)
    shown = [column for column in columns if scored or column is not _SCORE]
    rows = chain(
        (tuple(column.cell(run, of) for column in shown) for run in runs),
        (tuple(column.problem(problem) for column in shown) for problem in problems),
    )
    return TextTable([column.column for column in shown], rows)


def _usage_line(runs: Sequence[RunSummary], problems: Sequence[Problem], screen: Screen) -> Iterator[Clean]:
    """``40 runs, 1 unreadable · tracetui show traces#ID``."""
    counts: str = quantity(len(runs), "run")
    counts += f", {len(problems)} unreadable" if problems else ""
    yield truncate_middle(Clean(f"{counts} · {screen.usage}"), screen.width)


def part_notes(runs: Iterable[RunSummary]) -> dict[RunRef, str]:
    """Return notes for runs that are parts of one trace: ``[part 1 of 2 of its trace, also in b.jsonl]``."""
    notes = {}
    for refs in split_traces(runs).values():
        for place, ref in enumerate(refs, 1):
            others = ", ".join(basename(other.path) for other in refs if other != ref)
            notes[ref] = f"[part {place} of {len(refs)} of its trace, also in {others}]"
    return notes


def _narrow_problem(problem: Problem, screen: Screen) -> Clean:
    """Format ``unreadable  2026/run.json  byte 0: empty file``; the path is cut before the reason."""
    status, reason = _STATUS.problem(problem), _reason(problem)
    below = next(
        (problem.path[len(place) :] for place in screen.places if problem.path.startswith(place)), problem.path
    )
    room = max(screen.width - cells(status) - 4, 0)
    path = truncate_middle(exact(below.lstrip("/") or problem.path), max(room - cells(reason), room // 2))
    return Clean(f"{status}  {path}  {truncate(reason, room - cells(path))}".rstrip())


def started(run: RunSummary) -> Clean:
    """Format the start of a run, to the second; ``—`` if not recorded."""
    return Clean((start_label(run) or "—").removesuffix(" local, zone unknown"))


def since(run: RunSummary | None, now: float) -> Clean:
    """Format the age of a run; ``—`` if its start isn't recorded."""
    return age(None if run is None or run.started_at is None else max(0.0, now - run.started_at))


def newest_first(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """Sort runs by start, newest first; runs without one last; then by address."""
    return sorted(runs, key=lambda run: (run.started_at is None, -(run.started_at or 0.0), run.ref.address))


def outcomes_of(runs: Iterable[RunSummary]) -> OutcomeCounts:
    """Count the outcomes of top-level runs (not started by another); a trace in several files is one run."""
    return OutcomeCounts.of(counted(list(runs)))


def triage(runs: Iterable[RunSummary], unreadable: int, causes: int = 0) -> str:
    """Return the summary sentence: ``7 of 40 runs failed · 2 causes``."""
    sentence = outcomes_of(runs).failures
    if unreadable:
        sentence += f", {unreadable} unreadable"
    return sentence if not causes else f"{sentence} · {quantity(causes, 'cause')}"

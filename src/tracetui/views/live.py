"""The live runs: state and usage of each, its open call and its last lines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis import spending
from tracetui.analysis.liveness import Liveness, SessionState, State, Turn, seconds
from tracetui.masking import one_line
from tracetui.model import Operation, Run, RunRef, RunSummary, Span
from tracetui.store.facts import total_tokens
from tracetui.text import Clean
from tracetui.views.glyphs import UNICODE, Glyphs, kind_of
from tracetui.views.labels import run_label
from tracetui.views.list.runs import cost_text
from tracetui.views.rows import Line, Piece, column, fill, fit, width_of

_NUMBERS: Final = (("silent", 7), ("step", 5), ("tok", 6), ("cost", 9))
"""Columns of numbers and their cells, each with a blank before it."""
_LOOK_BACK: Final = 50
"""Spans searched for the last lines."""
_MOST_LINES: Final = 8
"""Last lines of a run, if the page has room for as many of all."""
_CALL: Final = 40
_STYLES: Final = {
    State.RUNNING: "status.running",
    State.QUIET: "status.running",
    State.STALLED: "status.warn",
}


class LiveRun(NamedTuple):
    """A run of the dashboard."""

    summary: RunSummary
    state: State
    silent_ms: float | None
    session: SessionState | None = None
    run: Run | None = None
    """The part of it that was read."""
    liveness: Liveness | None = None
    """Of `run`."""

    @property
    def waits(self) -> bool:
        """Whether it waits for a person."""
        return self.session is not None and self.session.turn is Turn.WAITING

    @property
    def word(self) -> str:
        """Its state: ``running``, ``quiet``, ``stalled?`` or ``waiting``."""
        return "waiting" if self.waits else self.state.value

    @property
    def style(self) -> str:
        """Style of the word."""
        return "status.paused" if self.waits else _STYLES.get(self.state, "sec")


class LiveRows:
    """See `tracetui.views.rows.Rows`. The key of a run's first row is its reference, the others take no cursor."""

    def __init__(
        self, running: Sequence[LiveRun], waiting: Sequence[LiveRun], *, glyphs: Glyphs = UNICODE, room: int = 0
    ) -> None:
        """`room`: rows of the page, shared by the last lines of all runs; each has at least one."""
        self._glyphs = glyphs
        self._rows: list[tuple[LiveRun, int] | str] = []
        self._lines: dict[RunRef, list[Span]] = {}
        """The last lines of each run, newest first."""
        count = max(1, len(running) + len(waiting))
        most = min(_MOST_LINES, max(1, (room - 2) // count - 1))
        for label, runs in (("running", running), ("waiting for you", waiting)):
            if runs:
                self._rows.append(f"{label} {len(runs)}")
            for run in runs:
                lines = self._lines[run.summary.ref] = _last_lines(run.run, most)
                self._rows += [(run, part) for part in range(1 + max(1, len(lines)))]
        self._index = {self.key(i): i for i in range(len(self._rows))}

    def __len__(self) -> int:
        return len(self._rows)

    def run(self, index: int) -> LiveRun | None:
        """The run of a row; None for a heading."""
        row = self._rows[index] if 0 <= index < len(self._rows) else ""
        return None if isinstance(row, str) else row[0]

    def key(self, index: int) -> Hashable:
        row = self._rows[index]
        if isinstance(row, str):
            return (row.partition(" ")[0],)
        return row[0].summary.ref if not row[1] else (row[0].summary.ref, row[1])

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def selectable(self, index: int) -> bool:
        return isinstance(self.key(index), RunRef)

    def mark(self, index: int) -> str | None:
        run = self.run(index)
        return "status.warn" if run is not None and self.selectable(index) and run.state is State.STALLED else None

    def plain(self, index: int) -> str:
        return "".join(piece.text for piece in self.line(index, 400)).strip()

    def line(self, index: int, width: int) -> Line:
        row = self._rows[index]
        if isinstance(row, str):
            rule = self._glyphs.rule * max(0, width - len(row) - 1)
            return (Piece(Clean(row), "dim"), Piece(Clean(f" {rule}"), "line"))
        return tuple(fit(self._below(*row) if row[1] else self._first(row[0], width), width))

    def _first(self, one: LiveRun, width: int) -> list[Piece]:
        run = one.run.summary if one.run is not None else one.summary
        sign = self._glyphs.paused if one.waits else self._glyphs.running
        silent = seconds(one.silent_ms) if one.silent_ms is not None else self._glyphs.missing
        numbers = {
            "silent": (silent, "text bold" if one.state is State.STALLED else "sec"),
            "step": (text.count(run.steps), "sec"),
            "tok": (text.tokens(total_tokens(run)), "sec"),
            "cost": (cost_text(spending.of_run(run)), "sec"),
        }
        cells = [column(numbers[name][0], size, numbers[name][1], right=True) for name, size in _NUMBERS]
        name = [
            Piece(sign, one.style),
            Piece(Clean(f" {text.truncate(run_label(run), 40)}"), "text bold"),
            Piece(Clean(f" {one.word}"), one.style),
            Piece(Clean(f"  {one_line(run.title or run.prompt, 200)}"), "text"),
        ]
        return [*fill(name, max(0, width - width_of(cells))), *cells]

    def _below(self, one: LiveRun, part: int) -> Line:
        """The open call and the last line; then the lines before."""
        call = self._open_call(one) if part == 1 else []
        lines = self._lines[one.summary.ref]
        pieces = [Piece(Clean("    ")), *call]
        if not lines:
            return tuple(pieces) if call else (*pieces, Piece(Clean("reading …"), "dim"))
        last = lines[part - 1]
        sign, style = kind_of(last.operation, self._glyphs)
        gap = f"  {self._glyphs.dot}  " if call else ""
        words = one_line(last.preview, 400)
        if last.operation is Operation.EXECUTE_TOOL:
            words = Clean(f"{one_line(last.name, _CALL)} {words}")
        return (*pieces, Piece(Clean(gap), "dim"), Piece(sign, style), Piece(Clean(f" {words}"), "dim"))

    def _open_call(self, one: LiveRun) -> list[Piece]:
        """The open call and how long it has been open."""
        if one.waits:
            return []
        found, session = (one.liveness.open if one.liveness is not None else None), one.session
        if found is None:
            if session is None or not session.call or one.run is not None:
                return []
            since = f" {seconds(session.ms)}" if session.ms is not None else ""
            return [Piece(Clean(f"{one_line(session.call, _CALL)}{since}"), one.style)]
        sign, _ = kind_of(found.operation, self._glyphs)
        least = self._glyphs.at_least if found.at_least else ""
        since = f" {least}{seconds(found.ms)}" if found.ms is not None else ""
        given = one.run.span(found.span) if one.run is not None else None
        more = f" +{found.others}" if found.others else ""
        pieces = [
            Piece(sign, one.style),
            Piece(Clean(f" {one_line(found.name, _CALL)}{since}{more}"), f"{one.style} bold"),
        ]
        if given is not None and given.preview:
            pieces.append(Piece(Clean(f"  {one_line(given.preview, 60)}"), "sec"))
        return pieces


def _last_lines(run: Run | None, most: int) -> list[Span]:
    """The last finished calls and messages with a text, newest first."""
    if run is None:
        return []
    last, still_open = len(run.spans), {*islice(reversed(run.unended), _LOOK_BACK)}
    found = (i for i in range(last - 1, max(-1, last - 1 - _LOOK_BACK), -1) if i not in still_open)
    return [*islice((run.spans[i] for i in found if run.spans[i].preview), most)]


def heading(width: int) -> Line:
    """The column headings."""
    cells = [column(Clean(name), size, "dim", right=True) for name, size in _NUMBERS]
    return tuple(fit([*fill([Piece(Clean("  run"), "dim")], max(0, width - width_of(cells))), *cells], width))

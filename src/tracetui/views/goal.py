"""The turns of a conversation that was judged against a goal: what both sides said, and the criteria it decided."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from tracetui.masking import one_line
from tracetui.model import Body, Operation, Run, RunBody, Span, Status, text_of
from tracetui.text import Clean, grouped, pad, wrap
from tracetui.views.glyphs import UNICODE, Glyphs, kind
from tracetui.views.labels import outcome_word, time_cell
from tracetui.views.rows import Line, Piece, column, fill, fit

_NUMBER, _ROLE, _CRITERIA, _TIME = 3, 9, 5, 6
_LONGEST: Final = 4000
"""Characters of a message; the detail has all."""
_FOLDED: Final = 4
"""Rows of a message, if there is no room for all."""


class TurnMessage(NamedTuple):
    """A message of one side in a turn."""

    role: str
    text: str
    style: str = "text"


class _Row(NamedTuple):
    """A row of a turn: its label with a bar in a role's color, and pieces."""

    turn: int
    label: str
    style: str
    pieces: Line


def has_goal(body: RunBody) -> bool:
    """True if the trace has a goal or its evaluation."""
    return bool(body.criteria or body.metrics or body.findings or body.goal)


def has_turns(run: Run) -> bool:
    """Whether the run is a conversation of turns with a goal."""
    return has_goal(run.body) and next(_turns(run), None) is not None


def _turns(run: Run) -> Iterator[tuple[int | None, Span]]:
    """The turns and their numbers."""
    for step in run.steps:
        span = run.span(step.span)
        if span is not None and span.operation is Operation.TURN:
            yield step.number, span


def _descendants(run: Run, turn: Span) -> Sequence[Span]:
    position = run.index[turn.id]
    return run.spans[position + 1 : position + run.sizes[position]]


def _failure(run: Run, turn: Span) -> str | None:
    """The error of a turn or of its first failed call; None without one."""
    failed = (span for span in (turn, *_descendants(run, turn)) if span.status is Status.ERROR)
    return next((span.error.text if span.error is not None else "failed" for span in failed), None)


def first_turn(run: Run) -> str | None:
    """The first turn that an unmet criterion names, else the first turn."""
    turns = {number: turn.id for number, turn in _turns(run)}
    unmet = (criterion for criterion in run.body.criteria if criterion.met is False)
    named = (turns[number] for criterion in unmet for number in criterion.steps if number in turns)
    return next(named, next(iter(turns.values()), None))


class TurnRows:
    """Rows of turns; see `tracetui.views.rows.Rows`. The key of a turn is the id of its span; only its first row has a
    cursor.

    `bodies` has the bodies of turns, by id, as far as they are loaded. In a pane of `height` rows that can't show
    everything, long messages are folded.
    """

    def __init__(
        self, run: Run, bodies: Mapping[str, Body], *, width: int, height: int, glyphs: Glyphs = UNICODE
    ) -> None:
        self.run, self.bodies, self.width, self.height = run, bodies, width, height
        self._glyphs = glyphs
        self._numbers = [number for number, _ in _turns(run)]
        self.turns = [turn for _, turn in _turns(run)]
        self._index = {turn.id: i for i, turn in enumerate(self.turns)}
        self._criteria = self._named_criteria()
        self._rows = self._build(None)
        if len(self._rows) > height:
            self._rows = self._build(_FOLDED)
        sizes = [0] * len(self.turns)
        for row in self._rows:
            sizes[row.turn] += 1
        self._starts = list(accumulate(sizes, initial=0))

    def with_run(self, run: Run, *, now: float | None = None) -> TurnRows:
        """The rows of a newer state of the run."""
        return TurnRows(run, self.bodies, width=self.width, height=self.height, glyphs=self._glyphs)

    def reveal(self, key: Hashable) -> TurnRows:
        """The same rows: nothing is hidden."""
        return self

    def overview(self, width: int) -> Line:
        """No axis."""
        return ()

    def turn(self, index: int) -> int:
        """The turn of a row."""
        return self._rows[index].turn

    def block(self, index: int) -> range:
        """The rows of the turn of a row, without the blank one below."""
        turn = self.turn(index)
        return range(self._starts[turn], self._starts[turn + 1] - 1)

    def span(self, index: int) -> Span | None:
        """The turn of a row."""
        return self.turns[self.turn(index)]

    # ---- building

    def _named_criteria(self) -> dict[int, list[tuple[int, bool | None]]]:
        """Numbers of the criteria that name a turn, and whether they are met, by the number of the turn."""
        criteria: dict[int, list[tuple[int, bool | None]]] = {}
        for i, criterion in enumerate(self.run.body.criteria):
            for number in criterion.steps:
                criteria.setdefault(number, []).append((i + 1, criterion.met))
        return criteria

    def _build(self, most: int | None) -> list[_Row]:
        return [row for turn in range(len(self.turns)) for row in self._turn_rows(turn, most)]

    def _turn_rows(self, turn: int, most: int | None) -> Iterator[_Row]:
        room = max(10, self.width - _NUMBER - _ROLE - 4)
        for number, message in enumerate(self._messages(self.turns[turn])):
            least = room if number else max(10, room - self._right_cells)
            rows, style = wrap(one_line(message.text, _LONGEST), least), _ROLES.get(message.role, _OTHER)
            if most is not None and len(rows) > most + 1:
                rows[most:] = [Clean(f"{self._glyphs.folded} {grouped(len(rows) - most)} more lines")]
            for i, row in enumerate(rows):
                piece = Piece(row, "dim" if i == most else message.style)
                yield _Row(turn, "" if i else message.role, style, (piece,))
        if calls := self._calls(self.turns[turn]):
            yield _Row(turn, "tools", "role.tool", tuple(fit(calls, room)))
        yield _Row(turn, "", "", ())

    def _messages(self, turn: Span) -> Iterator[TurnMessage]:
        """The messages of both sides; of a turn that isn't loaded, the beginning of the prompt."""
        body, failed = self.bodies.get(turn.id), _failure(self.run, turn)
        if body is None:
            yield TurnMessage("tester", turn.preview)
        else:
            for message in (*body.input_messages, *body.output_messages):
                target = message.role == "assistant"
                if target and failed is not None:
                    continue
                if text := text_of(message):
                    yield TurnMessage(message.name or message.role, text, "sec" if target else "text")
        if failed is not None:
            yield TurnMessage("target", f"{self._glyphs.error} {failed}", "status.error")

    def _calls(self, turn: Span) -> list[Piece]:
        """The calls of a turn, without the one that sent the message."""
        pieces: list[Piece] = []
        for span in _descendants(self.run, turn):
            if span.operation is not Operation.EXECUTE_TOOL or span.preview == turn.preview:
                continue
            sign, style = kind(span, self._glyphs)
            failed = span.status is Status.ERROR
            end = (self._glyphs.error, "status.error") if failed else (self._glyphs.ok, "status.ok")
            pieces += [
                Piece(Clean(f"{sign} "), style),
                Piece(one_line(span.name, 40), "text"),
                Piece(Clean(f" {end[0]}  "), end[1]),
            ]
        return pieces

    # ---- the rows

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> Hashable:
        turn = self.turn(index)
        place = index - self._starts[turn]
        return self.turns[turn].id if not place else (self.turns[turn].id, place)

    def index(self, key: Hashable) -> int | None:
        """The row of a turn, or of the turn that contains a span."""
        if isinstance(key, tuple) and len(key) == 2 and key[0] in self._index:
            turn, place = self._index[key[0]], int(key[1])
            return min(self._starts[turn] + place, self._starts[turn + 1] - 1)
        position = self.run.index.get(key) if isinstance(key, str) else None
        if position is None or not self.turns:
            return None
        starts = [self.run.index[turn.id] for turn in self.turns]
        return self._starts[max(0, bisect_right(starts, position) - 1)]

    def selectable(self, index: int) -> bool:
        return index in self._first_rows

    @cached_property
    def _first_rows(self) -> frozenset[int]:
        return frozenset(self._starts[:-1])

    def mark(self, index: int) -> str | None:
        failed = self.selectable(index) and _failure(self.run, self.turns[self.turn(index)]) is not None
        return "status.error" if failed else None

    def plain(self, index: int) -> str:
        return "".join(piece.text for piece in self._rows[index].pieces)

    def line(self, index: int, width: int) -> Line:
        row, first = self._rows[index], self.selectable(index)
        if not row.pieces and not first:
            return ()
        turn = self.turns[row.turn]
        number = self._numbers[row.turn] if first else None
        step = Clean("" if number is None else str(number))
        failed = _failure(self.run, turn) is not None
        pieces = [
            column(step, _NUMBER, "status.error bold" if failed else "dim", right=True),
            Piece(pad(one_line(row.label, _ROLE), _ROLE + 1, right=True), f"{row.style} bold"),
            Piece(Clean(f" {self._glyphs.role} "), row.style),
            *row.pieces,
        ]
        if not first:
            return tuple(fit(pieces, width))
        return (*fill(pieces, max(0, width - self._right_cells)), *self._ends(turn, number))

    @cached_property
    def _right_cells(self) -> int:
        """Cells of the columns at the right."""
        return (_CRITERIA if self._criteria else 0) + (_TIME if self._has_times else 0)

    @cached_property
    def _has_times(self) -> bool:
        return any(turn.duration_ms is not None for turn in self.turns)

    def _ends(self, turn: Span, number: int | None) -> Iterator[Piece]:
        """The criteria that name a turn, and its time."""
        if self._criteria:
            named = self._criteria.get(number, []) if number is not None else []
            label = Clean(",".join(str(criterion) for criterion, _ in named) or self._glyphs.zero)
            met = {met for _, met in named}
            style = "status.error" if False in met else "status.ok" if True in met else "dim"
            yield column(label, _CRITERIA, style, right=True)
        if self._has_times:
            yield Piece(Clean(" "))
            yield time_cell(turn.duration_ms, "sec", self._glyphs)

    def header(self, width: int) -> Line:
        """The column headings."""
        pieces = [Piece(Clean("  #"), "dim"), Piece(Clean(f"{' ' * _ROLE}    message"), "dim")]
        right = [column(Clean("crit"), _CRITERIA, "dim", right=True)] if self._criteria else []
        if self._has_times:
            right.append(column(Clean("time"), _TIME, "dim", right=True))
        return (*fill(pieces, max(0, width - self._right_cells)), *right)


_ROLES: Final = {"target": "role.assistant", "assistant": "role.assistant"}
_OTHER: Final = "role.user"


def goal_sentence(run: Run, glyphs: Glyphs = UNICODE) -> Line:
    """How the goal was met: ``1 of 3 criteria met in 10 of 10 turns · score 0.33 of 0.70 needed``."""
    body, summary = run.body, run.summary
    style = "status.error bold" if summary.failed else "status.ok bold"
    pieces = [Piece(one_line(outcome_word(summary) if summary.outcome is not None else "goal", 60), style)]
    if body.criteria:
        met = sum(limit.met is True for limit in body.criteria)
        pieces = [Piece(Clean(f"{met} of {grouped(len(body.criteria))} criteria met"), style)]
    turns = list(_turns(run))
    limit = next((limit.limit for limit in body.limits if limit.name == "turns" and limit.limit), None)
    pieces.append(Piece(Clean(f" in {len(turns)}{f' of {limit:g}' if limit else ''} turns"), "text"))
    for metric in body.metrics[:1]:
        if metric.score is not None:
            needed = f" of {metric.threshold:.2f} needed" if metric.threshold is not None else ""
            pieces.append(Piece(Clean(f" {glyphs.dot} score {metric.score:.2f}{needed}"), "sec"))
    failed = [str(number) for number, turn in turns if number is not None and _failure(run, turn) is not None]
    if failed:
        errors = f" {glyphs.dot} error in turn{'s' if len(failed) > 1 else ''} {', '.join(failed[:8])}"
        pieces.append(Piece(Clean(errors), "status.warn"))
    return tuple(pieces)

"""The columns of the run list: what each shows, and which of them fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis import spending
from tracetui.masking import clean
from tracetui.model import RunSummary, Status
from tracetui.text import Clean
from tracetui.views.labels import outcome_sign, run_cost, score_cell, short_id, short_model, tokens_label
from tracetui.views.list.result import RunRow, result_cell
from tracetui.views.rows import Line, Piece, column

Facts = Collection[str]
"""The columns that runs of a list fill, by name: a list has no column for what no run has. And `TITLE`."""
TITLE: Final = "title"
"""The fact that any run has a title, which says more than an id."""
TITLES_FIRST: Final = 60
"""Cells of a list with lengths beside titles."""
_TITLES_ONLY: Final = 100
"""Cells of a list with ids beside titles."""


class Column(NamedTuple):
    """A column of the list."""

    name: str
    """Its heading, and its name in settings."""
    about: str
    """What it shows, for the column chooser."""
    cell: Callable[[RunRow, int], Sequence[Piece]]
    """The pieces of a run for so many cells: one piece, unless the width is flexible."""
    cells: int
    """Width of its values, which are never cut; 0: it takes the room that is left."""
    leaves: int
    """Order in which columns are dropped where there is no room, 1 first; 0: every list has it."""
    sort: str = ""
    """Its sort order in `arrangement.SORTS`; empty: none."""
    right: bool = False
    usual: Callable[[int, Facts], bool] = lambda width, facts: True
    """Whether a list of so many cells has it if the user chose no columns."""
    has_value: Callable[[RunSummary], object] = lambda run: True
    """Whether a run fills it, or may once it is counted."""

    def draw(self, row: RunRow, size: int) -> Sequence[Piece]:
        """The cell of a run in so many cells; a flexible one may be narrower."""
        pieces = self.cell(row, size)
        if not self.cells:
            return pieces
        return [column(piece.text, size, piece.style, right=self.right) for piece in pieces]


def _status(row: RunRow, size: int) -> Sequence[Piece]:
    return (Piece(row.standing.sign, row.standing.style),)


def _name(row: RunRow, size: int) -> Sequence[Piece]:
    run, bold, mark = row.run, row.bold, row.relationship.mark
    chip = (Piece(Clean(f" {mark} "), "onaccent bold"), Piece(Clean(" "))) if mark else ()
    size -= 4 * bool(mark)
    label = clean(run.label or run.name or run.id, 200)
    if row.nested:
        return *chip, column(Clean("  " + label), size, "text" + bold if bold else "sec")
    if run.label and run.name:  # keep the label visible
        room = max(size // 3, size - text.cells(label) - 1)
        label = Clean(f"{text.truncate(clean(run.name, 200), room)} {label}")
    return *chip, column(label, size, "text" + bold)


def _score(row: RunRow, size: int) -> Sequence[Piece]:
    score = text.truncate(score_cell(row.run, row.glyphs), size)
    return (Piece(score, outcome_sign(row.run, row.glyphs)[1]),)


def _time(row: RunRow, size: int) -> Sequence[Piece]:
    running, ms = row.standing.status is Status.RUNNING, row.run.duration_ms
    if running and ms is None:
        ms = _elapsed(row.run, row.now)
    return (Piece(text.duration(ms), "status.running" if running else "sec"),)


def _elapsed(run: RunSummary, now: float) -> float | None:
    """Milliseconds since the start; None if unknown."""
    if run.started_at is None or run.time_zone is None or run.started_at > now:
        return None
    return (now - run.started_at) * 1000


def _age(row: RunRow, size: int) -> Sequence[Piece]:
    age = text.age(max(0.0, row.now - row.since), estimated=row.run.started_at is None)
    return (Piece(age, "dim"),)


def _errors(row: RunRow, size: int) -> Sequence[Piece]:
    errors = row.run.errors
    return (Piece(text.count(errors), "status.error") if errors else Piece(_UNREAD, "dim"),)


def _cost(run: RunSummary, size: int) -> Clean:
    """The cost, rounded to dollars or thousands if it doesn't fit: a number is never cut."""
    label, spent = run_cost(run), spending.of_run(run)
    if len(label) <= size or spent.usd is None:
        return label
    sign = "~$" if spent.estimated else "$"
    dollars = f"{sign}{spent.usd:.0f}"
    return Clean(dollars if len(dollars) <= size else f"{sign}{text.tokens(int(spent.usd))}")


_UNREAD: Final = Clean("·")
"""A value that only the deep pass reads."""


def _model(run: RunSummary) -> Clean:
    return short_model(run.model) if run.model else Clean("—") if run.deep else _UNREAD


def _cell(value: Callable[[RunSummary, int], Clean], style: str = "sec") -> Callable[[RunRow, int], Sequence[Piece]]:
    """The cell of a value of a run, as text of so many cells."""
    return lambda row, size: (Piece(value(row.run, size), style),)


COLUMNS: Final = {
    column.name: column
    for column in (
        Column("status", "sign of the status", _status, cells=1, leaves=0, sort="outcome"),
        Column("name", "agent, program or task", _name, cells=0, leaves=0, sort="name"),
        Column(
            "score", "outcome and score", _score, cells=8, leaves=8, sort="score",
            usual=lambda width, facts: width >= 60,
            has_value=lambda run: run.scores,
        ),
        Column("result", "state, cause of failure, title or prompt", result_cell, cells=0, leaves=12, sort="outcome"),
        Column(
            "id", "start of the id", _cell(lambda run, size: short_id(run.id, size), "dim"),
            cells=9, leaves=4, sort="id",
            usual=lambda width, facts: width >= (_TITLES_ONLY if TITLE in facts else 66),
        ),
        Column(
            "tok", "tokens, input and output",
            _cell(lambda run, size: tokens_label(run) if run.deep or run.usage else _UNREAD),
            cells=5, leaves=6, sort="tokens", right=True,
            usual=lambda width, facts: width >= 100 or (68 <= width < 76 and "cost" not in facts),
            has_value=lambda run: run.usage or not run.deep,
        ),
        Column(
            "cost", "recorded or estimated (~) cost", _cell(_cost),
            cells=8, leaves=7, sort="cost", right=True,
            has_value=lambda run: spending.of_run(run).usd is not None,
        ),
        Column(
            "model", "model", _cell(lambda run, size: text.truncate_middle(_model(run), size)),
            cells=14, leaves=3, sort="model",
            usual=lambda width, facts: width >= 112,
            has_value=lambda run: run.model or not run.deep,
        ),
        Column(
            "format", "format of the trace", _cell(lambda run, size: Clean(run.ref.format), "dim"),
            cells=11, leaves=2, sort="format",
            usual=lambda width, facts: width >= 124,
        ),
        Column(
            "project", "recorded source: folder, repository",
            _cell(lambda run, size: text.truncate_middle(clean(run.source or "—", 200), size), "dim"),
            cells=18, leaves=1,
            usual=lambda width, facts: False,
        ),
        Column(
            "time", "duration", _time, cells=5, leaves=11, sort="time", right=True,
            usual=lambda width, facts: not _is_narrow(width, facts),
            has_value=lambda run: run.duration_ms is not None or run.status is Status.RUNNING,
        ),
        Column(
            "err", "failed calls inside the run", _errors, cells=4, leaves=5, sort="errors", right=True,
            usual=lambda width, facts: width >= 131,
            has_value=lambda run: run.errors or not run.deep,
        ),
        Column(
            "step", "number of steps",
            _cell(lambda run, size: text.count(run.steps) if run.deep or run.steps is not None else _UNREAD),
            cells=4, leaves=9, sort="steps", right=True,
            usual=lambda width, facts: width >= 39 and not _is_narrow(width, facts),
            has_value=lambda run: run.steps is not None or not run.deep,
        ),
        Column("age", "time since the start", _age, cells=4, leaves=10, sort="newest", right=True),
    )
}  # fmt: skip
"""The columns by name, from left to right unless the user chose them."""
FIXED: Final = tuple(name for name, column in COLUMNS.items() if not column.leaves)
"""Columns that every list has."""
USUAL_FACTS: Final = frozenset(COLUMNS) - {"score", "cost"}
"""Those of a list without runs."""
_BY_LOSS: Final = sorted((column for column in COLUMNS.values() if column.leaves), key=lambda column: column.leaves)
"""The others, those first that are dropped first."""
_OPTIONAL: Final = 7
"""How many of them give way to a result that can be read. A score does not: it tells wrong answers from passed runs."""


def _is_narrow(width: int, facts: Facts) -> bool:
    return TITLE in facts and width < TITLES_FIRST


_MIN_NAME, _MIN_RESULT = 8, 12
"""Minimum useful cells of a column."""
_NAMES: Final = (16, 18, 20, 24, 28, 32)
"""Widths of the name column: few, so that it rarely changes while runs arrive."""
_SHORT_NAMES: Final = (8, 11)
"""Widths of a column of short names."""
USUAL_NAME: Final = 14
"""Cells of the name in a list beside a run."""
_TITLE: Final = 18
"""Cells of a title beside cost, time and steps in the list of a home."""
_RESULT_FIRST: Final = 16
"""Cells of the result before the name column grows."""
_FAIR_RESULT: Final = 30
"""Cells of the result before columns are added that not every list has."""


def fit_columns(
    width: int, chosen: Sequence[str] = (), *, name: int = 0, facts: Facts = USUAL_FACTS
) -> list[tuple[str, int]]:
    """(column, cells) for a list of `width` cells, in order. Less important columns are dropped first.

    `chosen` names the columns of the user, in order. `name` is the desired width of the name column, granted if the
    result has enough room.
    """
    if chosen:
        return _fitting_columns(width, chosen, name)
    titled, costed = TITLE in facts, "cost" in facts
    usual = USUAL_NAME if width < 70 else USUAL_NAME + 1
    least = next((size for size in _SHORT_NAMES if name and size >= name), usual)
    fixed = [column.name for column in COLUMNS.values() if column.name in facts and column.usual(width, facts)]
    roomy = width - _cells(fixed) - least >= _TITLE
    if costed and width < 66 and not (titled and roomy):
        fixed.remove("cost")
    wanted = next((size for size in (least, *_NAMES) if size >= name), _NAMES[-1])
    for optional in _BY_LOSS[:_OPTIONAL]:
        if optional.name == "cost" and titled and roomy:
            continue
        taken = least if optional.right else wanted  # a text says less than a name and a result that can be read
        if width - _cells(fixed) - taken < _FAIR_RESULT and optional.name in fixed:
            fixed.remove(optional.name)
    room = width - _cells(fixed) - least
    size = max(least, min(wanted, least + max(0, room - _RESULT_FIRST)))
    size = max(_MIN_NAME, size - max(0, _MIN_RESULT - room))
    sizes = {"name": size, "result": max(_MIN_RESULT, room + least - size)}
    return [(key, sizes.get(key, COLUMNS[key].cells)) for key in fixed]


def _cells(names: Collection[str]) -> int:
    """Cells of these columns and the blanks between them, without the flexible ones."""
    return sum(COLUMNS[name].cells for name in names) + len(names) - 1


def _fitting_columns(width: int, chosen: Sequence[str], name: int) -> list[tuple[str, int]]:
    """The chosen columns that fit: whole columns are dropped before a name is cut."""
    visible = [*(key for key in FIXED if key not in chosen), *(key for key in chosen if key in COLUMNS)]
    wanted = max(_MIN_NAME, min(name, _NAMES[-1]))
    least = {"name": wanted, "result": _MIN_RESULT}
    for dropped in _BY_LOSS:
        if _cells(visible) + sum(least[key] for key in least if key in visible) <= width:
            break
        if dropped.name in visible:
            visible.remove(dropped.name)
    room = max(_MIN_NAME, width - _cells(visible))
    if "result" not in visible:
        return [(key, COLUMNS[key].cells or room) for key in visible]
    size = max(_MIN_NAME, min(wanted, room - _MIN_RESULT))
    sizes = {"name": size, "result": room - size}
    return [(key, COLUMNS[key].cells or sizes[key]) for key in visible]


_GOOD_RESULT: Final = 30
"""Cells of a result that can be read."""


def chosen_width(chosen: Sequence[str], name: int) -> int:
    """Cells of a list that shows all of these columns."""
    flexible = max(_MIN_NAME, min(name, _NAMES[-1])) + (_GOOD_RESULT if "result" in chosen else 0)
    return _cells({*FIXED, *chosen}) + flexible


def hidden_columns(width: int) -> int:
    """Number of columns dropped at that width, of those that a wide list has."""
    return len(fit_columns(1000)) - len(fit_columns(width))


def heading(columns: list[tuple[str, int]], sorted_by: str = "") -> Line:
    """The headings of these columns; the one that the list is sorted by stands out."""
    cells = []
    for key, size in columns:
        about = COLUMNS[key]
        style = "accent" if sorted_by and about.sort == sorted_by and key != "status" else "dim"
        cells.append(column(Clean("" if key == "status" else key), size, style, right=about.right))
        cells.append(Piece(Clean(" ")))
    return tuple(cells[:-1])

"""The run list as rows: sorted, grouped, filtered; one line a run, and one for every file that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from os.path import basename
from typing import Any, Final

import msgspec

from tracetui import text
from tracetui.model import Problem, RunRef, RunSummary, Status
from tracetui.text import Clean, clean, one_line
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.rows import Line, Piece, column, fill, fit

SORTS: Final = ("newest", "name", "outcome", "time", "steps", "tokens", "errors", "id", "model", "format")
"""What the list can be sorted by; each once more in reverse."""
GROUPS: Final = ("day", "agent", "format", "status", "none")
"""What the list can be grouped by."""


class Arrangement(msgspec.Struct, frozen=True):
    """How the list is arranged."""

    sort: str = "newest"
    reverse: bool = False
    group: str = "day"
    failures: bool = False
    """Only runs that failed."""
    words: str = ""
    """Blank-separated substrings that a run must hold; ``!word`` must not."""
    all_columns: bool = False


class RunRows:
    """Rows of the run list at one moment; see `tracetui.views.rows.Rows`."""

    def __init__(
        self,
        items: Sequence[RunSummary | Problem | tuple[str, int]],
        *,
        now: float,
        glyphs: Glyphs = UNICODE,
        all_columns: bool = False,
        marked: frozenset[RunRef] = frozenset(),
    ) -> None:
        self._items = items
        self._now = now
        self._glyphs = glyphs
        self._all = all_columns
        self._marked = marked
        self._index: dict[Hashable, int] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def item(self, index: int) -> RunSummary | Problem | tuple[str, int]:
        """The run, the problem, or the (label, count) of a group heading."""
        return self._items[index]

    def key(self, index: int) -> Hashable:
        item = self._items[index]
        return item.ref if isinstance(item, RunSummary) else item.path if isinstance(item, Problem) else item[0]

    def index(self, key: Hashable) -> int | None:
        if self._index is None:
            self._index = {self.key(i): i for i in range(len(self._items))}
        return self._index.get(key)

    def selectable(self, index: int) -> bool:
        return not isinstance(self._items[index], tuple)

    def mark(self, index: int) -> str | None:
        item = self._items[index]
        return "status.error" if isinstance(item, RunSummary) and item.status is Status.ERROR else None

    def plain(self, index: int) -> str:
        item = self._items[index]
        if isinstance(item, RunSummary):
            return " ".join(haystack(item))
        return f"{item.path} {item.reason}" if isinstance(item, Problem) else item[0]

    def line(self, index: int, width: int) -> Line:
        item = self._items[index]
        if isinstance(item, tuple):
            return _group_line(item, width, self._glyphs)
        columns = columns_for(width, self._all)
        if isinstance(item, Problem):
            return _problem_line(item, columns, width, self._glyphs)
        pieces: list[Piece] = []
        for name, size in columns:
            pieces.extend(fill(self._cell(item, name, size), size))
            pieces.append(Piece(Clean(" ")))
        return tuple(pieces[:-1])

    def _cell(self, run: RunSummary, name: str, size: int) -> list[Piece]:
        bold = " bold" if run.status in (Status.ERROR, Status.RUNNING) else ""
        if name == "status":
            glyph, style = status_glyph(run.status, self._glyphs)
            if run.ref in self._marked:
                return [Piece(Clean("*"), "accent bold")]
            return [Piece(glyph, style)]
        if name == "name":
            return _name(run, size, bold)
        if name == "outcome":
            return fit(outcome(run, self._glyphs), size)
        if name == "time":
            style = "status.running" if run.status is Status.RUNNING else "sec"
            return [column(text.duration(run.duration_ms), size, style, right=True)]
        return [_CELLS[name](run, size, self._now)]


def columns_for(width: int, everything: bool = False) -> list[tuple[str, int]]:
    """(column, cells) for a list of `width` cells, in order; what does not fit is left out, least important first."""
    name = 14 if width < 70 else 15
    fixed = [("status", 1), ("name", name), ("outcome", 0), ("time", 5), ("step", 4), ("age", 3)]
    if width >= 66 or everything:
        fixed.insert(3, ("id", 9))
    if width >= 100 or everything or 68 <= width < 76:
        fixed.insert(4, ("tok", 5))
    if width >= 112 or everything:
        fixed.insert(5, ("model", 14))
    if width >= 124 or everything:
        fixed.insert(6, ("format", 11))
    if width >= 130 or everything:
        fixed.insert(-2, ("err", 3))
    taken = sum(size for _, size in fixed) + len(fixed) - 1
    return [(key, max(12, width - taken) if key == "outcome" else size) for key, size in fixed]


def hidden_columns(width: int) -> int:
    """How many columns a list of that width leaves out."""
    return len(columns_for(1000)) - len(columns_for(width))


def heading(width: int, everything: bool = False) -> Line:
    """The names of the columns."""
    cells = []
    for name, size in columns_for(width, everything):
        label = "" if name == "status" else name
        cells.append(column(Clean(label), size, "dim", right=name in ("tok", "time", "step", "age", "err")))
        cells.append(Piece(Clean(" ")))
    return tuple(cells[:-1])


def _name(run: RunSummary, size: int, bold: str) -> list[Piece]:
    label = clean(run.label or run.name or run.id, 200)
    indent = Clean("  " if run.parent is not None else "")
    return [column(Clean(indent + label), size, "text" + bold if run.parent is None or bold else "sec")]


def _id(run: RunSummary, size: int, now: float) -> Piece:
    ident = clean(run.id, 200)
    short = Clean(ident[:8]) if len(ident) == 36 and ident.count("-") == 4 else text.truncate_middle(ident, size)
    return column(short, size, "dim")


_CELLS: Final[dict[str, Callable[[RunSummary, int, float], Piece]]] = {
    "id": _id,
    "step": lambda run, size, now: column(
        text.count(run.steps) if run.deep or run.steps is not None else Clean("·"), size, "sec", right=True
    ),
    "age": lambda run, size, now: column(text.age(_age(run, now)), size, "dim", right=True),
    "tok": lambda run, size, now: column(
        text.tokens(total_tokens(run)) if run.deep or run.usage else Clean("·"), size, "sec", right=True
    ),
    "model": lambda run, size, now: column(text.truncate_middle(clean(run.model or "—", 200), size), size, "sec"),
    "format": lambda run, size, now: column(Clean(run.ref.format), size, "dim"),
    "err": lambda run, size, now: column(
        text.count(run.errors) if run.errors else Clean("·"), size, "status.error" if run.errors else "dim", right=True
    ),
}


def _age(run: RunSummary, now: float) -> float | None:
    return max(0.0, now - moment(run))


def moment(run: RunSummary) -> float:
    """When a run was: its start, else when its file changed last (UTC seconds)."""
    start = run.started_at
    if start is None:
        return run.modified_at
    if run.time_zone is None:  # a naive time is the writer's local time: most likely ours
        try:
            return (datetime(1970, 1, 1) + timedelta(seconds=start)).timestamp()
        except (OverflowError, ValueError, OSError):
            return start
    return start


def total_tokens(run: RunSummary) -> int | None:
    """All tokens of a run, None where the trace does not say."""
    usage = run.usage
    if usage is None:
        return None
    if usage.total_tokens is not None:
        return usage.total_tokens
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def outcome(run: RunSummary, glyphs: Glyphs = UNICODE) -> Line:
    """How a run went, in one phrase: cause of the failure, relation to its original, or what it was asked."""
    pieces: list[Piece] = []
    if run.status is Status.ERROR:
        pieces = _cause(run)
    elif run.status is Status.RUNNING:
        pieces = [Piece(one_line(run.outcome or run.prompt or "running", 200), "status.running")]
    elif run.status is Status.PAUSED:
        pieces = [Piece(one_line(run.outcome or "waits for a human", 200), "status.paused")]
    elif run.status is Status.CANCELLED:
        pieces = [Piece(one_line(run.outcome or run.status_word or "cancelled", 200), "sec")]
    relation = _relation(run, glyphs)
    if pieces:
        return (*pieces, *([Piece(Clean(" ")), *relation] if relation else ()))
    if relation:
        return tuple(relation)
    if run.outcome:
        style = "status.ok" if run.status is Status.OK else "sec"
        return (Piece(one_line(run.outcome, 200), style),)
    if run.status is Status.UNKNOWN and run.deep:
        words = Piece(Clean("no end record"), "sec")
        return (words, Piece(Clean(" · "), "dim"), Piece(one_line(run.prompt, 200), "dim")) if run.prompt else (words,)
    return (Piece(one_line(run.prompt, 200), "dim"),)


def _cause(run: RunSummary) -> list[Piece]:
    error = run.first_error
    if error is None:
        return [Piece(one_line(run.outcome or run.status_word or "failed", 200), "status.error")]
    if run.outcome:
        return [Piece(one_line(run.outcome, 200), "status.error")]
    if error.type is None:
        return [Piece(one_line(error.message or run.status_word or "failed", 200), "status.error")]
    pieces = [Piece(one_line(error.type, 60), "status.error")]
    detail = error.name if error.name and error.name != error.type else error.message
    if detail:
        pieces.append(Piece(Clean(" " + one_line(detail, 200)), "sec"))
    return pieces


def _relation(run: RunSummary, glyphs: Glyphs) -> list[Piece]:
    if run.relation is None:
        return []
    if run.relation == "student":
        name = Clean("teacher")
    else:
        ident = clean(run.replay_of or "?", 80)
        name = Clean(ident[:8]) if len(ident) == 36 else text.truncate_middle(ident, 20)
    word = Clean(f" {run.relation}") if run.relation in ("fork", "retry") else Clean("")
    return [Piece(Clean(f"{glyphs.replay} {name}"), "accent"), Piece(word, "sec")]


def _group_line(item: tuple[str, int], width: int, glyphs: Glyphs) -> Line:
    label, number = clean(item[0], 60), str(item[1])
    rule = glyphs.rule * max(0, width - len(label) - len(number) - 3)
    return (Piece(label, "dim"), Piece(Clean(f" {rule} "), "line"), Piece(Clean(number), "dim"))


def _problem_line(problem: Problem, columns: list[tuple[str, int]], width: int, glyphs: Glyphs) -> Line:
    name = column(clean(basename(problem.path), 200), columns[1][1], "status.warn")
    place = f"{problem.reason}, {problem.where}" if problem.where else problem.reason
    what = Piece(one_line(f"unreadable: {place}", 300), "status.warn")
    return tuple(fit([Piece(glyphs.note, "status.warn bold"), Piece(Clean(" ")), name, Piece(Clean(" ")), what], width))


# ---- arranging


def arrange(
    runs: Iterable[RunSummary],
    problems: Iterable[Problem],
    arrangement: Arrangement,
    *,
    now: float,
    glyphs: Glyphs = UNICODE,
    marked: frozenset[RunRef] = frozenset(),
) -> RunRows:
    """The rows of the list: filtered, sorted and grouped. Children follow the run that started them."""
    wanted = filter_of(arrangement)
    kept = [run for run in runs if wanted(run)]
    broken: list[Problem] = []
    if not arrangement.failures:
        words = arrangement.words.lower().split()
        broken = [problem for problem in problems if all(_holds(problem, word) for word in words)]
    kept.sort(key=_SORT_KEYS[arrangement.sort], reverse=arrangement.reverse)
    nested = _nest(kept)
    items: list[RunSummary | Problem | tuple[str, int]] = []
    if arrangement.group == "none" or (arrangement.group == "day" and arrangement.sort != "newest"):
        items.extend(nested)
        items.extend(broken)
    else:
        items = _grouped(nested, broken, arrangement, now)
    return RunRows(items, now=now, glyphs=glyphs, all_columns=arrangement.all_columns, marked=marked)


def _nest(runs: list[RunSummary]) -> list[RunSummary]:
    """Put children below their parent (in the order they started), where both are shown."""
    if not any(run.parent is not None for run in runs):
        return runs
    shown = {(run.ref.path, run.id) for run in runs}
    children: dict[tuple[str, str], list[RunSummary]] = {}
    tops = []
    for run in runs:
        place = (run.ref.path, run.parent) if run.parent is not None else None
        if place is not None and place in shown and run.parent != run.id:
            children.setdefault((run.ref.path, run.parent or ""), []).append(run)
        else:
            tops.append(run)
    if not tops:
        return runs
    nested: list[RunSummary] = []
    stack = list(reversed(tops))
    seen: set[RunRef] = set()
    while stack:
        run = stack.pop()
        if run.ref in seen:
            continue
        seen.add(run.ref)
        nested.append(run)
        below = children.get((run.ref.path, run.id), [])
        stack.extend(sorted(below, key=lambda child: (moment(child), child.id), reverse=True))
    nested.extend(run for run in runs if run.ref not in seen)  # cycles of parents
    return nested


def _grouped(
    runs: list[RunSummary], problems: list[Problem], arrangement: Arrangement, now: float
) -> list[RunSummary | Problem | tuple[str, int]]:
    label_of = _group_label(arrangement.group, now)
    groups: dict[str, list[RunSummary | Problem]] = {}
    label = ""
    for run in runs:
        if run.parent is None or not groups:  # a child stays in the group of the run that started it
            label = label_of(run)
        groups.setdefault(label, []).append(run)
    if problems:
        groups.setdefault("unreadable", []).extend(problems)
    order = list(groups)
    if "live" in groups:
        order.remove("live")
        order.insert(0, "live")
    items: list[RunSummary | Problem | tuple[str, int]] = []
    for name in order:
        items.append((name, sum(not isinstance(one, RunSummary) or one.parent is None for one in groups[name])))
        items.extend(groups[name])
    return items


def _group_label(group: str, now: float) -> Callable[[RunSummary], str]:
    if group == "agent":
        return lambda run: run.agent or run.name
    if group == "format":
        return lambda run: run.ref.format
    if group == "status":
        return lambda run: run.status.value
    return _day_label(now)


def _day_label(now: float) -> Callable[[RunSummary], str]:
    """``live``, ``today`` (since 6:00), ``last night`` (18:00 to 6:00), then the date; all in local time."""
    here = datetime.fromtimestamp(now)
    morning = here.replace(hour=6, minute=0, second=0, microsecond=0)
    if here < morning:
        morning -= timedelta(days=1)
    today, night = morning.timestamp(), (morning - timedelta(hours=12)).timestamp()
    dates: dict[int, str] = {}  # by quarter of an hour: time zones differ by no less, and writing a date is slow

    def label(run: RunSummary) -> str:
        if run.status is Status.RUNNING:
            return "live"
        when = moment(run)
        if when >= today:
            return "today"
        if when >= night:
            return "last night"
        quarter = int(when // 900)
        if quarter not in dates:
            dates[quarter] = _date(when)
        return dates[quarter]

    return label


def _date(when: float) -> str:
    try:
        return datetime.fromtimestamp(when).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return "time unknown"


def _descending(value: float | int | None) -> tuple[bool, float]:
    return (value is None, -(value or 0))


_STATUS_ORDER: Final = {
    Status.ERROR: 0, Status.RUNNING: 1, Status.PAUSED: 2, Status.UNKNOWN: 3, Status.CANCELLED: 4, Status.OK: 5,
}  # fmt: skip
_SORT_KEYS: Final[dict[str, Callable[[RunSummary], Any]]] = {
    "newest": lambda run: (-moment(run), run.ref.path, run.ref.key or ""),
    "name": lambda run: (run.name.lower(), -moment(run)),
    "outcome": lambda run: (_STATUS_ORDER[run.status], run.first_error.type or "" if run.first_error else ""),
    "time": lambda run: _descending(run.duration_ms),
    "steps": lambda run: _descending(run.steps),
    "tokens": lambda run: _descending(total_tokens(run)),
    "errors": lambda run: _descending(run.errors),
    "id": lambda run: run.id,
    "model": lambda run: (run.model is None, run.model or ""),
    "format": lambda run: run.ref.format,
}


def filter_of(arrangement: Arrangement) -> Callable[[RunSummary], bool]:
    """The predicate of an arrangement: failures only, and the words."""
    words = [word for word in arrangement.words.lower().split() if word != "!"]
    has = [word for word in words if not word.startswith("!")]
    lacks = [word[1:] for word in words if word.startswith("!")]

    def wanted(run: RunSummary) -> bool:
        if arrangement.failures and run.status is not Status.ERROR:
            return False
        if not words:
            return True
        hay = "\n".join(haystack(run)).lower()
        return all(word in hay for word in has) and not any(word in hay for word in lacks)

    return wanted


def haystack(run: RunSummary) -> list[str]:
    """What the substring filter looks at."""
    error = run.first_error
    return [
        run.id, run.name, run.agent or "", run.model or "", run.status.value, run.status_word or "", run.ref.format,
        run.ref.path, run.prompt, run.outcome, run.label or "", run.relation or "", run.replay_of or "",
        (error.type or "") if error else "", error.message if error else "", (error.name or "") if error else "",
    ]  # fmt: skip


def _holds(problem: Problem, word: str) -> bool:
    hay = f"{problem.path} {problem.reason} unreadable".lower()
    return word[1:] not in hay if word.startswith("!") else word in hay

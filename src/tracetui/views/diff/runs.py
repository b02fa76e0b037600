"""Run-level differences as rows, and the list of a run's replays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Protocol

from tracetui.analysis.step_diff import WORDS, step_label
from tracetui.diff.comparison import Diff, Fact, JudgmentPair
from tracetui.masking import clean, one_line
from tracetui.model import Criterion, Metric, RunRef, RunSummary, Status, StatusSource
from tracetui.text import Clean, cost, count, duration, grouped, pad, tokens, truncate, wrap
from tracetui.views.bars import amount
from tracetui.views.detail.run import source_words
from tracetui.views.diff.steps import name_of
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.rows import Line, Piece, Rows, fill, fit, width_of
from tracetui.views.sheet import Sheet

_LABEL: Final = 10
_WIDE_LABEL: Final = 26
"""Cells of the labels, if there are criteria or metrics."""
_BAR, _MIN_BAR, _NUMBERS = 30, 8, 20
"""Cells of a bar, at most and at least, and of the numbers beside it."""
_LONG: Final = 2_000
_MAX_PLACES: Final = 50
_OWN_ROWS: Final = frozenset({"status", "steps", "result", "error"})
"""Facts that have rows of their own."""


def run_rows(diff: Diff, *, width: int, opened: frozenset[Hashable] = frozenset(), glyphs: Glyphs = UNICODE) -> Rows:
    """The rows of the pane below the steps."""
    sheet = Sheet("runs", width, opened=opened, glyphs=glyphs)
    table = _Table(sheet, width, _WIDE_LABEL if diff.judged and width >= 80 else _LABEL)
    a, b = diff.a.summary, diff.b.summary
    table.row("", _named("A", a, diff, glyphs), _named("B", b, diff, glyphs))
    table.row("ends", _ended(a, glyphs), _ended(b, glyphs))
    _amounts(table, a, b, glyphs)
    for fact in diff.facts:
        if fact.name not in _OWN_ROWS and not (fact.same and fact.name != "model"):
            _fact(table, fact)
    if any(width_of(_ended(run, glyphs)) > table.half for run in (a, b)):
        table.texts("in full", _why(a), _why(b))
    _judged(table, diff, glyphs)
    _apart(sheet, diff, glyphs)
    _not_as_stored(sheet, diff, glyphs)
    return sheet.rows()


class _Table:
    """Facts of A and B side by side."""

    def __init__(self, sheet: Sheet, width: int, label: int) -> None:
        self._sheet, self._label = sheet, label
        self.half = max(6, (width - label - 2) // 2)

    def texts(self, label: str, a: Clean, b: Clean) -> None:
        """Add long texts of both sides, wrapped."""
        left, right = (wrap(text, self.half) if text else [] for text in (a, b))
        for i, (one, other) in enumerate(zip_longest(left, right, fillvalue=Clean(""))):
            self.row("" if i else label, (Piece(one, "sec"),), (Piece(other, "sec"),))

    def row(self, label: str, a: Line, b: Line) -> None:
        """Add a label with both values."""
        head = Piece(pad(truncate(one_line(label, 60), self._label - 1), self._label), "dim")
        self._sheet.line(head, *fill(a, self.half), Piece(Clean("  ")), *fill(b, self.half))


def _named(letter: str, run: RunSummary, diff: Diff, glyphs: Glyphs) -> Line:
    style = "diff.rem" if letter == "A" else "diff.add"
    relation = f"  {one_line(diff.relation, 20)} of A" if letter == "B" and diff.relation else ""
    return (
        Piece(Clean(f"{letter} "), f"{style} bold"),
        Piece(name_of(run), "text bold"),
        Piece(Clean(f" {one_line(run.name, 60)}"), "sec"),
        Piece(Clean(relation), "accent"),
    )


def _ended(run: RunSummary, glyphs: Glyphs) -> Line:
    sign, style = status_glyph(run.status, glyphs)
    is_recorded = run.status_source in (StatusSource.EXPLICIT, None)
    source = "" if is_recorded else f"  {source_words(run.status, run.status_source)}"
    return (
        Piece(Clean(f"{sign} {run.status.value}"), f"{style} bold"),
        Piece(Clean(source), "dim"),
        Piece(Clean(f"  {_why(run)}"), "sec"),
    )


def _why(run: RunSummary) -> Clean:
    """The error or result of a run, at most `_LONG` characters."""
    failed = run.first_error is not None and run.status is Status.ERROR
    return one_line(run.first_error.words if failed and run.first_error is not None else run.result, _LONG)


def _amounts(table: _Table, a: RunSummary, b: RunSummary, glyphs: Glyphs) -> None:
    used_a, used_b = a.usage, b.usage
    for label, left, right, written in (
        ("steps", a.steps, b.steps, count),
        ("tools", a.tool_calls, b.tool_calls, count),
        ("tokens", used_a and used_a.all_tokens, used_b and used_b.all_tokens, tokens),
        ("time", a.duration_ms, b.duration_ms, duration),
        ("cost", used_a and used_a.cost_usd, used_b and used_b.cost_usd, cost),
    ):
        if left is not None or right is not None:
            most, bar = max(left or 0, right or 0), min(_BAR, table.half - _NUMBERS)
            more = _more(left, right, written)
            table.row(
                label,
                _amount(left, written, most, bar, glyphs),
                (*_amount(right, written, most, bar, glyphs), *more),
            )


def _amount(value: Any, written: Any, most: float, bar: int, glyphs: Glyphs) -> Line:
    number = Piece(pad(written(value), 7, right=True), "sec")
    if bar < _MIN_BAR or value is None or not most:
        return (number,)
    return number, Piece(Clean("  ")), *amount(value, most, bar, glyphs=glyphs)


def _more(a: Any, b: Any, written: Any) -> Line:
    if a is None or b is None:
        return ()
    sign = "−" if b < a else "+" if b > a else "±"
    return (Piece(Clean(f"  ({sign}{written(abs(b - a))})"), "text bold" if a != b else "dim"),)


def _fact(table: _Table, fact: Fact) -> None:
    def cell(value: Any, style: str) -> Line:
        return (Piece(one_line("—" if value is None else str(value), 200), "sec" if fact.same else style),)

    table.row(fact.name, cell(fact.a, "diff.rem"), cell(fact.b, "diff.add"))


def _judged(table: _Table, diff: Diff, glyphs: Glyphs) -> None:
    for one in diff.judged:
        left, right = _verdict(one, one.a, glyphs), _verdict(one, one.b, glyphs)
        table.row(f"{glyphs.same if one.same else glyphs.changed} {one_line(one.name, 60)}", left, right)


def _verdict(judged: JudgmentPair, side: Criterion | Metric | None, glyphs: Glyphs) -> Line:
    if side is None:
        return (Piece(glyphs.missing, "dim"),)
    if isinstance(side, Criterion):
        word, style = {True: ("met", "status.ok"), False: ("not met", "status.error"), None: ("not judged", "dim")}[
            side.met
        ]
        why = side.evidence
    else:
        passed = {True: "status.ok", False: "status.error", None: "sec"}[side.passed]
        word, style, why = ("—" if side.score is None else f"{side.score:.4g}"), passed, side.reason
    return Piece(Clean(word), style), Piece(Clean(f"  {one_line(why, 200)}"), "dim")


def _apart(sheet: Sheet, diff: Diff, glyphs: Glyphs) -> None:
    """Differences that don't follow from the first one."""
    places = diff.independent
    if not places:
        return
    sheet.title("Independent", "not caused by the first difference")
    for place in places[:_MAX_PLACES]:
        row = diff.rows[place]
        span = diff.span_b(row) or diff.span_a(row)
        path = f"  {one_line(row.path, 80)}" if row.path else ""
        words = Piece(Clean(f"{step_label(diff, row)}  {WORDS[row.kind]}{path}"), "text")
        sheet.line(Piece(Clean(f"{glyphs.changed} "), "diff.chg"), words, spans=(span.id,) if span else ())
    if len(places) > _MAX_PLACES:
        sheet.line(Piece(Clean(f"{glyphs.cut} {grouped(len(places) - _MAX_PLACES)} more; ]d next"), "dim"))


def _not_as_stored(sheet: Sheet, diff: Diff, glyphs: Glyphs) -> None:
    """Stored hashes that don't match the contents."""
    for row in (diff.rows[place] for place in diff.flagged[:_MAX_PLACES]):
        for flag in row.flags:
            span = diff.span_b(row) or diff.span_a(row)
            words = f"{glyphs.note} {one_line(flag, 60)} of {step_label(diff, row)} doesn't match its contents"
            sheet.line(Piece(Clean(words), "status.warn"), spans=(span.id,) if span is not None else ())
    if len(diff.flagged) > _MAX_PLACES:
        words = (
            f"{glyphs.cut} {grouped(len(diff.flagged) - _MAX_PLACES)} more steps with stored values that don't match"
        )
        sheet.line(Piece(Clean(words), "dim"))


def left_out(diff: Diff, glyphs: Glyphs) -> list[Line]:
    """Caveats: ignored differences, and limits of the comparison."""
    lines: list[Line] = []
    if diff.strict:
        lead = (Piece(Clean("nothing ignored  "), "status.warn"),)
        lines.append((*lead, *_key("i", "ignore ids, times and counters")))
    elif diff.ignored:
        words = " · ".join(f"{name} {grouped(number)}" for name, number in diff.ignored.items())
        lines.append((Piece(Clean(f"ignored: {words}  "), "sec"), *_key("i", "show")))
    return lines + [(Piece(Clean(f"{glyphs.note} {one_line(note, 200)}"), "status.warn"),) for note in diff.notes]


def _key(key: str, words: str) -> Line:
    return Piece(Clean(key), "key bold"), Piece(Clean(f" {words}"), "sec")


class PairResult(Protocol):
    """The result of a comparison (`tracetui.live.mailbox.Divergence`)."""

    @property
    def same(self) -> bool: ...
    @property
    def words(self) -> Clean: ...


class ReplayRows:
    """See `tracetui.views.rows.Rows`. The key of a row is the replay's reference."""

    def __init__(
        self,
        runs: Sequence[RunSummary],
        verdicts: Mapping[RunRef, PairResult | None],
        relation: Callable[[RunRef], str | None],
        *,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        self._runs, self._verdicts, self._relation, self._glyphs = runs, verdicts, relation, glyphs
        self._index = {run.ref: i for i, run in enumerate(runs)}

    def __len__(self) -> int:
        return len(self._runs)

    def key(self, index: int) -> Hashable:
        return self._runs[index].ref

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key) if isinstance(key, RunRef) else None

    def selectable(self, index: int) -> bool:
        return True

    def mark(self, index: int) -> str | None:
        result = self._verdicts.get(self._runs[index].ref)
        return "diff.chg" if result is not None and not result.same else None

    def plain(self, index: int) -> str:
        run = self._runs[index]
        result = self._verdicts.get(run.ref)
        words = "" if result is None else "same" if result.same else result.words
        return f"{run.id} {run.name} {self._relation(run.ref) or ''} {run.status.value} {words}"

    def heading(self, original: RunSummary, width: int) -> list[Line]:
        """The column headings, and the original."""
        names = (
            *fill([Piece(Clean("  run"))], _room(width) + 2),
            Piece(Clean(f" {pad(Clean('is a'), 8)} steps  time  vs. original")),
        )
        note = (Piece(Clean("compared with the others"), "dim"),)
        dim = tuple(Piece(piece.text, "dim") for piece in names)
        return [tuple(fit(dim, width)), tuple(fit([*self._head(original, "original", width), *note], width))]

    def line(self, index: int, width: int) -> Line:
        run, glyphs = self._runs[index], self._glyphs
        result = self._verdicts.get(run.ref)
        if result is None:
            verdict: Line = (Piece(Clean(f"{glyphs.zero} not compared yet"), "dim"),)
        elif result.same:
            verdict = (Piece(Clean(f"{glyphs.same} no differences"), "status.ok"),)
        else:
            verdict = (Piece(Clean(f"{glyphs.changed} "), "diff.chg bold"), Piece(result.words, "diff.chg"))
        return tuple(fit([*self._head(run, self._relation(run.ref) or "", width), *verdict], width))

    def _head(self, run: RunSummary, relation: str, width: int) -> list[Piece]:
        """The columns of a run."""
        sign, style = status_glyph(run.status, self._glyphs)
        room = _room(width)
        name = clean(run.id, 60) if len(run.id) <= room else name_of(run)
        return [
            Piece(sign, style),
            Piece(Clean(" ")),
            *fill([Piece(name, "text"), Piece(Clean(f" {one_line(run.name, 40)}"), "dim")], room),
            Piece(Clean(f" {pad(one_line(relation, 20), 8)}"), "accent"),
            Piece(pad(count(run.steps), 6, right=True), "sec"),
            Piece(Clean(f" {pad(duration(run.duration_ms), 5, right=True)}  "), "sec"),
        ]


def _room(width: int) -> int:
    """Cells of the name."""
    return 24 if width < 100 else 48

"""The aligned steps of two runs as rows, the headline of the diff, run-level differences, and the list of replays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple, Protocol

from tracetui.analysis.diff_description import DiffDescription, ignored_counts
from tracetui.analysis.step_diff import KIND_LABELS, difference_label, step_label
from tracetui.analysis.values import lookalike_labels, with_label
from tracetui.diff import noise
from tracetui.diff.comparison import Diff, Divergence, Fact, Row
from tracetui.diff.step import Kind
from tracetui.masking import clean, one_line
from tracetui.model import Criterion, Metric, RunRef, RunSummary, Span, Status, StatusSource
from tracetui.text import Clean, cost, count, duration, grouped, pad, quantity, tokens, truncate, wrap
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs, kind, status_glyph
from tracetui.views.labels import short_id, source_label
from tracetui.views.rows import Fold, Line, Piece, Rows, fill, fit, width_of
from tracetui.views.sheet import Sheet

NO_DESCRIPTION: Final = DiffDescription()
BESIDE: Final = 84
"""Minimum cells to show the steps side by side."""
_NOISE_LABELS: Final = {
    noise.IDS: "ids",
    noise.TIMES: "time",
    noise.DURATIONS: "duration",
    noise.TOKENS: "tokens",
    noise.SPACE: "space",
    noise.FOLDERS: "folder",
    noise.MASKED: "mask",
    noise.PLACES: "position",
    noise.EMPTY: "empty",
    noise.JSON_FORM: "format",
    noise.NUMBER_FORM: "number",
    noise.COMMANDS: "space",
    noise.HASHES: "hash",
    noise.RECORDS: "record",
    noise.ENVELOPE: "envelope",
    noise.WORDINGS: "words",
    noise.NOTES: "notes",
}
"""Short labels of ignored differences."""
_CHANGES: Final = {
    Kind.INPUT: "input changed",
    Kind.OUTPUT: "output changed",
    Kind.STATUS: "status changed",
    Kind.ONLY_A: "only in A",
    Kind.ONLY_B: "only in B",
    Kind.MOVED: "moved",
}
_STYLES: Final = {Kind.SAME: "dim", Kind.ONLY_A: "diff.rem", Kind.ONLY_B: "diff.add"}
PREFIX: Final = "prefix"
"""Key of the folded common prefix."""
_CONTEXT_ROWS: Final = 2
"""Common rows to keep before the first difference."""
_MIN_FOLD: Final = 4
"""Minimum rows of a fold."""
_MIDDLE: Final = 10
_MAX_INDENT: Final = 8


class PairKey(NamedTuple):
    """Key of a row: positions of its steps in A and B."""

    a: int | None
    b: int | None


class PairRows(Rows):
    """Rows of aligned steps; see `tracetui.views.rows.Rows`.

    The common prefix is a fold.
    """

    def __init__(self, diff: Diff, *, glyphs: Glyphs = UNICODE, unfolded: bool = False) -> None:
        self.diff = diff
        self._glyphs = glyphs
        self._unfolded = unfolded
        self._prefix = _prefix_size(diff)
        self._before = self._prefix - 1 if self._prefix and not unfolded else -1 if self._prefix else 0
        """Offset from row to pair."""
        number = max((abs(span.step or 0) for run in (diff.a, diff.b) for span in run.spans[-1:]), default=0)
        self._number = max(3, min(6, len(str(number))))

    def __len__(self) -> int:
        return len(self.diff.rows) - self._before

    def pair(self, index: int) -> int | None:
        """The pair of a row; None for the fold."""
        return None if self._is_fold(index) else index + self._before

    def row_of(self, pair: int) -> int:
        """The row of a pair, or the fold that contains it."""
        return max(0, pair - self._before)

    def _is_fold(self, index: int) -> bool:
        return self._prefix > 0 and index == 0

    def fold(self, index: int) -> Fold | None:
        """The fold of a row."""
        return Fold(PREFIX, self._unfolded) if self._is_fold(index) else None

    def parent(self, index: int) -> int | None:
        """The row that a row folds into."""
        return 0 if 0 < index <= self._prefix and self._unfolded else None

    def key(self, index: int) -> Hashable:
        if self._is_fold(index):
            return PREFIX
        row = self.diff.rows[index + self._before]
        return PairKey(row.a, row.b)

    def index(self, key: Hashable) -> int | None:
        if key == PREFIX and self._prefix:
            return 0
        pair = self._pair_of(key) if isinstance(key, PairKey) else None
        return None if pair is None else self.row_of(pair)

    def _pair_of(self, key: PairKey) -> int | None:
        rows = self.diff.rows
        matches = (i for i, row in enumerate(rows) if row.b == key.b and row.a == key.a)
        if (exact := next(matches, None)) is not None:
            return exact
        near = (i for i, row in enumerate(rows) if key.b is not None and row.b == key.b)
        return next(near, None)

    def mark(self, index: int) -> str | None:
        if self._is_fold(index):
            return None
        row = self.diff.rows[index + self._before]
        if row.kind is Kind.SAME or row.downstream or row.noise:
            return None
        return _STYLES.get(row.kind, "diff.chg")

    def plain(self, index: int) -> str:
        """A folded prefix includes its content, so that search finds it."""
        if not self._is_fold(index):
            return self._plain(self.diff.rows[index + self._before])
        return "" if self._unfolded else "\n".join(map(self._plain, self.diff.rows[: self._prefix]))

    def _plain(self, row: Row) -> str:
        spans = (span for span in (self.diff.span_a(row), self.diff.span_b(row)) if span is not None)
        texts = dict.fromkeys(text for span in spans for text in (span.name, span.preview) if text)
        return " ".join((KIND_LABELS[row.kind], row.noise, *texts, row.path)).strip()

    def differing(self) -> list[int]:
        """Visible rows with differences."""
        start = 0 if self._unfolded else self._prefix
        return [self.row_of(i) for i, row in enumerate(self.diff.rows) if i >= start and row.kind is not Kind.SAME]

    # ---- drawing

    def line(self, index: int, width: int) -> Line:
        if self._is_fold(index):
            return tuple(fit(self._folded_line(), width))
        pair = index + self._before
        row = self.diff.rows[pair]
        dim = row.downstream or bool(row.noise)
        first = self.diff.first is not None and self.diff.first.row == pair
        if width < BESIDE:
            return tuple(fit(self._narrow_line(row, pair, width, first), width))
        half = (width - _MIDDLE - 2) // 2
        left = self._step(self.diff.span_a(row), self._depth(row, in_b=False), half, dim, first)
        middle = fill(self._sign(row, pair), _MIDDLE)
        right_width = width - half - _MIDDLE - 2
        right = self._step(self.diff.span_b(row), self._depth(row, in_b=True), right_width, dim, first)
        blank = Piece(Clean(" "))
        return (*fill(left, half), blank, *middle, blank, *fill(right, right_width))

    def _folded_line(self) -> list[Piece]:
        mark = self._glyphs.unfolded if self._unfolded else self._glyphs.folded
        label = f" {grouped(self._prefix)} equal steps"
        return [Piece(mark, "sec"), Piece(Clean(label), "dim")]

    def _depth(self, row: Row, *, in_b: bool) -> int:
        run, place = (self.diff.b, row.b) if in_b else (self.diff.a, row.a)
        return 0 if place is None else min(2 * run.depths[place], _MAX_INDENT)

    def _sign(self, row: Row, pair: int) -> list[Piece]:
        """Glyph, downstream arrow, and kind of difference."""
        glyphs = self._glyphs
        if pair >= self.diff.compared and row.kind is Kind.SAME:
            return [Piece(Clean(f"{glyphs.zero} "), "dim")]  # only headers compared so far
        quiet = row.downstream or bool(row.noise)
        style = "dim" if quiet else _STYLES.get(row.kind, "diff.chg")
        arrow = glyphs.downstream if row.downstream else Clean(" ")
        word = KIND_LABELS[row.kind].rstrip("≠") if row.kind is not Kind.SAME else ""
        word = _NOISE_LABELS.get(row.noise, word)
        flag = Piece(glyphs.note, "status.warn") if row.flags else Piece(Clean(""))
        strong = style if quiet or row.kind is Kind.SAME else f"{style} bold"
        return [Piece(Clean(f"{self._glyph(row)}{arrow}"), strong), Piece(Clean(word), style), flag]

    def _glyph(self, row: Row) -> Clean:
        return _signs(self._glyphs).get(row.kind, self._glyphs.changed)

    def _step(self, span: Span | None, indent: int, width: int, dim: bool, first: bool) -> list[Piece]:
        """Number, kind, name, argument and time of a step."""
        if span is None:
            return [Piece(Clean(" " * (self._number + 1))), Piece(self._glyphs.zero, "line")]
        time = pad(duration(span.duration_ms), 5, right=True)
        pieces = [
            Piece(Clean(f"{self._step_number(span)} {' ' * indent}"), "dim"),
            *self._named(span, dim, first),
        ]
        return [*fill(pieces, max(4, width - 6)), Piece(Clean(f" {time}"), "dim" if dim else "sec")]

    def _step_number(self, span: Span) -> Clean:
        number = str(span.step) if span.step is not None and span.is_step else ""
        return pad(Clean(number), self._number, right=True)

    def _named(self, span: Span, dim: bool, first: bool) -> list[Piece]:
        sign, style = kind(span, self._glyphs)
        failed = span.status is Status.ERROR
        name = "status.error bold" if failed else "dim" if dim else "text bold" if first else "text"
        pieces = [
            Piece(sign, "dim" if dim and not failed else style),
            Piece(Clean(" ")),
            Piece(one_line(span.name, 120) or self._glyphs.missing, name),
        ]
        if span.preview:
            pieces.append(Piece(Clean(f" {one_line(span.preview, 200)}"), "dim"))
        return pieces

    def _narrow_line(self, row: Row, pair: int, width: int, first: bool) -> list[Piece]:
        """One column: glyph, both numbers, name, location of the difference."""
        diff, dim = self.diff, row.downstream or bool(row.noise)
        span = diff.span_b(row) or diff.span_a(row)
        assert span is not None
        sides = (diff.span_a(row), diff.span_b(row))
        numbers = " ".join(pad(Clean("") if side is None else self._step_number(side), self._number) for side in sides)
        indent = " " * self._depth(row, in_b=row.b is not None)
        lead = [*fill(self._sign(row, pair), _MIDDLE), Piece(Clean(f"{numbers} {indent}"), "dim")]
        named = self._named(span, dim, first)
        if not row.path:
            return [*lead, *named]
        path = Piece(Clean(f"  {one_line(row.path, 60)}"), "dim" if dim else "diff.chg")
        name = width_of((*lead, *named[:3]))
        return [*fit([*lead, *named], max(name, width - width_of((path,)))), path]


def _prefix_size(diff: Diff) -> int:
    """Number of equal pairs (ignoring noise) to fold at the start."""
    if diff.first is None:
        return 0
    loud = (i for i, row in enumerate(diff.rows) if row.kind is not Kind.SAME and (diff.strict or not row.noise))
    common = min(next(loud, 0), diff.first.row) - _CONTEXT_ROWS
    return common if common >= _MIN_FOLD else 0


def sentence(diff: Diff, glyphs: Glyphs, width: int, description: DiffDescription = NO_DESCRIPTION) -> Line:
    """The headline: no differences, or the first one."""
    progress = "" if diff.complete else f"  ·  comparing, {grouped(diff.compared)} of {grouped(len(diff.rows))}"
    going = Piece(Clean(progress), "status.running")
    if diff.first is None:
        if not diff.complete:
            return (Piece(Clean("no differences so far"), "text"), going)
        ignored = "" if diff.strict or not diff.ignored else " (ids, times and counters ignored)"
        return (
            Piece(Clean(f"{glyphs.same} No differences"), "status.ok bold"),
            Piece(Clean(f"{ignored}  ·  {quantity(len(diff.rows), 'step')}"), "sec"),
        )
    row = diff.rows[diff.first.row]
    if diff.complete and diff.apart:
        unpaired = f"{grouped(diff.counts[Kind.ONLY_A])} only in A, {grouped(diff.counts[Kind.ONLY_B])} only in B"
        return (
            Piece(Clean(f"{glyphs.changed} No steps in common"), "diff.chg bold"),
            Piece(Clean(f"  ·  {unpaired}, compared by {one_line(diff.by, 80)}"), "sec"),
        )
    if diff.first.noise:
        location = f"  ·  first: {diff.first.noise}: {difference_label(diff, diff.first)}"
        same = f"{glyphs.same} No differences except ignored values"
        return (Piece(Clean(same), "status.ok bold"), Piece(Clean(location), "sec"))
    pieces = [
        Piece(Clean(f"{glyphs.changed} First difference: {step_label(diff, row)}"), "diff.chg bold"),
        Piece(Clean(f", {description.first or _CHANGES[diff.first.kind]}"), "diff.chg"),
    ]
    if diff.first.path and not description.first:
        pieces.append(Piece(Clean(f": {one_line(diff.first.path, 80)}"), "text bold"))
    independent = len(diff.independent)
    facts = [f"{diff.downstream} downstream"] if diff.downstream else []
    facts += [f"{independent} independent"] if independent else []
    facts += ["nothing ignored"] if diff.strict and diff.complete else []
    if diff.decision is not None:
        pieces.append(Piece(Clean("  ·  "), "dim"))
        pieces += _decision(diff, diff.decision)
    elif description.first and description.phrases[0].detail and width >= 100:
        pieces.append(Piece(Clean(f": {description.phrases[0].detail}"), "text"))
    elif not description.first and diff.first.kind is not Kind.MOVED and width >= 100:
        pieces += _values(diff.first)
    pieces.append(going)
    pieces.append(Piece(Clean("".join(f"  ·  {fact}" for fact in facts)), "sec"))
    return tuple(pieces)


def _decision(diff: Diff, decision: Divergence) -> list[Piece]:
    step = step_label(diff, diff.rows[decision.row])
    return [
        Piece(Clean(f"{step} decided "), "sec"),
        *_value_pieces(decision),
    ]


def _values(first: Divergence) -> list[Piece]:
    """Both values, if short."""
    left, right = _short_text(first.a), _short_text(first.b)
    if first.kind in (Kind.ONLY_A, Kind.ONLY_B) or len(left) + len(right) > 40:
        return []
    return [Piece(Clean("  ")), *_value_pieces(first)]


def _value_pieces(difference: Divergence) -> list[Piece]:
    """Both values, labeled if they print alike."""
    left, right = one_line(_short_text(difference.a), 40), one_line(_short_text(difference.b), 40)
    if (labels := lookalike_labels(difference.a, difference.b)) is not None:
        left, right = with_label(left, labels[0]), with_label(right, labels[1])
    return [Piece(left, "diff.rem"), Piece(Clean(" → "), "dim"), Piece(right, "diff.add")]


def _short_text(value: Any) -> str:
    return value if isinstance(value, str) else "—" if value is None else repr(value)


def _signs(glyphs: Glyphs) -> dict[Kind, Clean]:
    """The signs of the kinds that aren't changes."""
    return {
        Kind.SAME: glyphs.same,
        Kind.ONLY_A: glyphs.only_a,
        Kind.ONLY_B: glyphs.only_b,
        Kind.MOVED: glyphs.edited,
    }


def summary(diff: Diff, glyphs: Glyphs = UNICODE) -> Line:
    """The legend of the rows with their counts, and the deltas from A to B."""
    counts = diff.counts
    pieces: list[Piece] = []
    formats = [run.summary.ref.format for run in (diff.a, diff.b)]
    if formats[0] != formats[1]:
        label = f"{formats[0]} and {formats[1]}: fields of both formats"
        pieces += [Piece(Clean(label), "text"), Piece(Clean(" · "), "dim")]
    for change in Kind:
        if counts[change] or change is Kind.SAME:
            style = "sec" if change is Kind.SAME else _STYLES.get(change, "diff.chg")
            sign = _signs(glyphs).get(change, glyphs.changed)
            label = f"{sign} {KIND_LABELS[change].rstrip('≠')} {grouped(counts[change])}"
            pieces += [Piece(Clean(label), style), Piece(Clean(" · "), "dim")]
    if diff.downstream:
        label = f"{glyphs.downstream} downstream {grouped(diff.downstream)}"
        pieces += [Piece(Clean(label), "dim"), Piece(Clean(" · "), "dim")]
    deltas = diff.deltas
    for name, value, written in (
        ("tokens", deltas.tokens, tokens),
        ("time", deltas.duration_ms, duration),
        ("cost", deltas.cost_usd, cost),
    ):
        if value is not None:
            pieces += [Piece(Clean(f"Δ {name} {_signed(value, written)}"), "sec"), Piece(Clean(" · "), "dim")]
    if noisy := sum(bool(row.noise) for row in diff.rows) if diff.strict else 0:
        pieces += [Piece(Clean(f"{grouped(noisy)} usually ignored"), "dim"), Piece(Clean(" · "), "dim")]
    if diff.ignored:
        label = f"{grouped(sum(diff.ignored.values()))} ignored"
        pieces += [Piece(Clean(label), "dim"), Piece(Clean(" · "), "dim")]
    if diff.notes:
        pieces += [Piece(Clean("bounded"), "status.warn"), Piece(Clean(" · "), "dim")]
    return tuple(pieces[:-1])


def _signed(value: Any, written: Any) -> str:
    sign = "−" if value < 0 else "+" if value > 0 else "±"
    return f"{sign}{written(abs(value))}"


def name_of(run: RunSummary) -> Clean:
    """The short id of a run."""
    return short_id(run.id)


_LABEL: Final = 10
_WIDE_LABEL: Final = 26
"""Cells of the labels, if there are criteria or metrics."""
_BAR, _MIN_BAR, _NUMBERS = 30, 8, 20
"""Cells of a bar, at most and at least, and of the numbers beside it."""
_LONG: Final = 2_000
_MAX_PLACES: Final = 50
_OWN_ROWS: Final = frozenset({"status", "steps", "result", "error"})
"""Facts that have rows of their own."""


def run_rows(
    diff: Diff,
    description: DiffDescription = NO_DESCRIPTION,
    *,
    width: int,
    opened: frozenset[Hashable] = frozenset(),
    glyphs: Glyphs = UNICODE,
) -> Rows:
    """The rows of the pane below the steps."""
    sheet = Sheet("runs", width, opened=opened, glyphs=glyphs)
    table = _Table(sheet, width, _WIDE_LABEL if diff.judgments and width >= 80 else _LABEL)
    a, b = diff.a.summary, diff.b.summary
    table.row("", _named("A", a, diff), _named("B", b, diff))
    table.row("ends", _run_end(a, glyphs), _run_end(b, glyphs))
    _amounts(table, a, b, glyphs)
    for fact in diff.facts:
        if fact.name not in _OWN_ROWS and not (fact.same and fact.name != "model"):
            _fact(table, fact)
    if any(width_of(_run_end(run, glyphs)) > table.half for run in (a, b)):
        table.texts("in full", _end_reason(a), _end_reason(b))
    _judgments(table, diff, glyphs)
    _independent_differences(sheet, diff, description, glyphs)
    _hash_mismatches(sheet, diff, glyphs)
    return sheet.rows()


class _Table:
    """Facts of A and B side by side."""

    def __init__(self, sheet: Sheet, width: int, label: int) -> None:
        self._sheet, self._label = sheet, label
        self.half = max(6, (width - label - 2) // 2)

    def texts(self, label: str, a: Clean, b: Clean) -> None:
        """Add long texts of both sides, wrapped."""
        left, right = (wrap(text, self.half) if text else [] for text in (a, b))
        for i, (a_line, b_line) in enumerate(zip_longest(left, right, fillvalue=Clean(""))):
            self.row("" if i else label, (Piece(a_line, "sec"),), (Piece(b_line, "sec"),))

    def row(self, label: str, a: Line, b: Line) -> None:
        """Add a label with both values."""
        head = Piece(pad(truncate(one_line(label, 60), self._label - 1), self._label), "dim")
        self._sheet.line(head, *fill(a, self.half), Piece(Clean("  ")), *fill(b, self.half))


def _named(letter: str, run: RunSummary, diff: Diff) -> Line:
    style = "diff.rem" if letter == "A" else "diff.add"
    relation = f"  {one_line(diff.relation, 20)} of A" if letter == "B" and diff.relation else ""
    return (
        Piece(Clean(f"{letter} "), f"{style} bold"),
        Piece(name_of(run), "text bold"),
        Piece(Clean(f" {one_line(run.name, 60)}"), "sec"),
        Piece(Clean(relation), "accent"),
    )


def _run_end(run: RunSummary, glyphs: Glyphs) -> Line:
    sign, style = status_glyph(run.status, glyphs)
    is_recorded = run.status_source in (StatusSource.EXPLICIT, None)
    source = "" if is_recorded else f"  {source_label(run.status, run.status_source)}"
    return (
        Piece(Clean(f"{sign} {run.status.value}"), f"{style} bold"),
        Piece(Clean(source), "dim"),
        Piece(Clean(f"  {_end_reason(run)}"), "sec"),
    )


def _end_reason(run: RunSummary) -> Clean:
    """The error or result of a run, at most `_LONG` characters."""
    failed = run.first_error is not None and run.status is Status.ERROR
    return one_line(run.first_error.text if failed and run.first_error is not None else run.result, _LONG)


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
            more = _delta(left, right, written)
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


def _delta(a: Any, b: Any, written: Any) -> Line:
    if a is None or b is None:
        return ()
    sign = "−" if b < a else "+" if b > a else "±"
    return (Piece(Clean(f"  ({sign}{written(abs(b - a))})"), "text bold" if a != b else "dim"),)


def _fact(table: _Table, fact: Fact) -> None:
    def cell(value: Any, style: str) -> Line:
        return (Piece(one_line("—" if value is None else str(value), 200), "sec" if fact.same else style),)

    table.row(fact.name, cell(fact.a, "diff.rem"), cell(fact.b, "diff.add"))


def _judgments(table: _Table, diff: Diff, glyphs: Glyphs) -> None:
    for judgment in diff.judgments:
        left, right = _verdict(judgment.a, glyphs), _verdict(judgment.b, glyphs)
        table.row(f"{glyphs.same if judgment.same else glyphs.changed} {one_line(judgment.name, 60)}", left, right)


def _verdict(side: Criterion | Metric | None, glyphs: Glyphs) -> Line:
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


def _independent_differences(sheet: Sheet, diff: Diff, description: DiffDescription, glyphs: Glyphs) -> None:
    """Differences that don't follow from the first one."""
    places = diff.independent
    if not places:
        return
    sheet.title("Independent", "not caused by the first difference")
    for place in places[:_MAX_PLACES]:
        row = diff.rows[place]
        span = diff.span_b(row) or diff.span_a(row)
        path = f"  {one_line(row.path, 80)}" if row.path else ""
        change = description.of_row(place) or f"{KIND_LABELS[row.kind]}{path}"
        label = Piece(Clean(f"{step_label(diff, row)}  {change}"), "text")
        sheet.line(Piece(Clean(f"{glyphs.changed} "), "diff.chg"), label, spans=(span.id,) if span else ())
    if len(places) > _MAX_PLACES:
        sheet.line(Piece(Clean(f"{glyphs.cut} {grouped(len(places) - _MAX_PLACES)} more; ]d next"), "dim"))


def _hash_mismatches(sheet: Sheet, diff: Diff, glyphs: Glyphs) -> None:
    """Stored hashes that don't match the contents."""
    for row in (diff.rows[place] for place in diff.flagged[:_MAX_PLACES]):
        for flag in row.flags:
            span = diff.span_b(row) or diff.span_a(row)
            note = f"{glyphs.note} {one_line(flag, 60)} of {step_label(diff, row)} doesn't match its contents"
            sheet.line(Piece(Clean(note), "status.warn"), spans=(span.id,) if span is not None else ())
    if len(diff.flagged) > _MAX_PLACES:
        note = f"{glyphs.cut} {grouped(len(diff.flagged) - _MAX_PLACES)} more steps with stored values that don't match"
        sheet.line(Piece(Clean(note), "dim"))


def caveats(diff: Diff, glyphs: Glyphs) -> list[Line]:
    """Caveats: ignored differences, and limits of the comparison."""
    lines: list[Line] = []
    if diff.strict:
        lead = (Piece(Clean("nothing ignored  "), "status.warn"),)
        lines.append((*lead, *_key("i", "ignore ids, times and counters")))
    elif diff.ignored:
        labels = " · ".join(ignored_counts(diff))
        lines.append((Piece(Clean(f"ignored: {labels}  "), "sec"), *_key("i", "show")))
    return lines + [(Piece(Clean(f"{glyphs.note} {one_line(note, 200)}"), "status.warn"),) for note in diff.notes]


def _key(key: str, label: str) -> Line:
    return Piece(Clean(key), "key bold"), Piece(Clean(f" {label}"), "sec")


class PairResult(Protocol):
    """The result of a comparison (`tracetui.live.mailbox.Divergence`)."""

    @property
    def same(self) -> bool: ...
    @property
    def label(self) -> Clean: ...


class ReplayRows(Rows):
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

    def mark(self, index: int) -> str | None:
        result = self._verdicts.get(self._runs[index].ref)
        return "diff.chg" if result is not None and not result.same else None

    def plain(self, index: int) -> str:
        run = self._runs[index]
        result = self._verdicts.get(run.ref)
        verdict = "" if result is None else "same" if result.same else result.label
        return f"{run.id} {run.name} {self._relation(run.ref) or ''} {run.status.value} {verdict}"

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
            verdict = (Piece(Clean(f"{glyphs.changed} "), "diff.chg bold"), Piece(result.label, "diff.chg"))
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

"""The page of a run's context as rows: the river of contents by call, the contents, the breaks and one call.

Three colors are the parts of the cost everywhere: new text, carrying it, breaks. A band is a group of contents with one
tint in all panes; bands are stacked in one order, and what is *not recorded* is always on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from msgspec.structs import astuple

from tracetui.analysis.context import SHRUNK, Account, Break, Call, Ledger, Totals, total
from tracetui.masking import clean
from tracetui.model.context import (
    AFTER_COMPACTION,
    ATTACHMENT,
    IMAGE,
    MEMORY,
    NOT_RECORDED,
    PROMPT,
    REPLY,
    REPORT,
    RESULT,
    START,
    SUMMARY,
    THINKING,
    TOOL_CALL,
    Cause,
)
from tracetui.model.summary import RunSummary
from tracetui.redact import Redactor
from tracetui.text import Clean, cells, grouped, pad, quantity, tokens, truncate, truncate_middle, wrap
from tracetui.views.bars import sparkline
from tracetui.views.context import (
    ERROR,
    cause_label,
    cause_name,
    content_label,
    explanation,
    file_label,
    hour_sentence,
    no_breaks,
    no_price,
    share_label,
    usd_label,
    worst_file,
)
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.rows import Line, Piece, fit, width_of

NEW, CARRY, BREAKS = "kind.model", "bar.agent", "status.warn"
"""Styles of the parts of a cost."""
_CONVERSATION: Final = frozenset({PROMPT, REPLY, THINKING, TOOL_CALL, ATTACHMENT, IMAGE})
_SUMMARIES: Final = frozenset({SUMMARY, AFTER_COMPACTION})
_DOT: Final = Piece(Clean("  ·  "), "dim")
_NARROW: Final = 96
"""Below this many cells, words are left out."""


class Band(NamedTuple):
    """Contents that are drawn as one."""

    name: Clean
    contents: frozenset[str]
    tint: int
    letter: str
    """Stands for it where there are only letters."""

    @property
    def style(self) -> str:
        """Style of its blocks."""
        return f"tint.{self.tint}"


def bands_of(ledger: Ledger, redactor: Redactor | None) -> list[Band]:
    """The bands of a run, from the bottom: at most eight, of the results those of the two largest tools alone."""
    contents = [account.content for account in ledger.contents()]
    results = [content for content in contents if content.startswith(RESULT)]
    chosen, others = results[:2], frozenset(results[2:]) | ({REPORT} & {*contents})
    bands = [
        Band(Clean("start (system, tools)"), frozenset({START}), 0, "S"),
        Band(Clean("memory files"), frozenset({MEMORY}), 1, "m"),
        Band(Clean("prompts, replies, calls"), _CONVERSATION, 2, "p"),
        Band(Clean("other results" if chosen else "sub-agent reports"), others, 5, "o"),
        *(
            Band(content_label(content, redactor), frozenset({content}), 3 + i, "")
            for i, content in reversed([*enumerate(chosen)])
        ),
        Band(Clean("summaries"), _SUMMARIES, 6, "s"),
        Band(Clean("not recorded"), frozenset({NOT_RECORDED}), 7, "?"),
    ]
    bands = [band for band in bands if not band.contents.isdisjoint(contents)]
    letters = {band.letter for band in bands}
    for i, band in enumerate(bands):
        if not band.letter:
            wanted = [letter for letter in (*band.name[:1].upper(), *"RBGTXYZ") if letter.isascii()]
            letter = next(letter for letter in (*wanted, "*") if letter not in letters)
            letters.add(letter)
            bands[i] = band._replace(letter=letter)
    return bands


# ---- the sentence and the parts of the cost


def sentence(ledger: Ledger, redactor: Redactor | None, *, done: str = "") -> Line:
    """What the context cost and why, in one line; `done`: how much of the run is read."""
    totals, breaks = ledger.totals, ledger.breaks
    pieces: list[Piece] = []
    if done:
        pieces += [Piece(Clean(done), "status.running"), _DOT]
    if not totals.calls:
        return (*pieces[:1],)
    of_total = "" if totals.usd is None else f" of {usd_label(totals.usd)}"
    if breaks:
        number = quantity(len(breaks), "cache break")
        paid = f"cost {usd_label(totals.usd_breaks)}" if totals.usd is not None else f"missed {tokens(totals.missed)}"
        pieces.append(Piece(Clean(f"{number} {paid}"), "status.warn bold"))
        cause, count = Counter(missed.cause for missed in breaks).most_common(1)[0]
        attribution = f", {count} of them by " if len(breaks) > 1 and count < len(breaks) else ", by "
        pieces.append(Piece(Clean(f"{of_total}{attribution}{_CAUSE_NOUNS.get(cause, cause_name(cause))}"), "text"))
        pieces += [_DOT, Piece(Clean("]k"), "key bold"), Piece(Clean(" next break"), "sec")]
    else:
        read = "no cache breaks" if totals.read is not None else "no cache reads recorded"
        calls = quantity(totals.calls, "model call")
        paid = "" if totals.usd is None else f" for {usd_label(totals.usd)}"
        pieces.append(Piece(Clean(f"{calls}, {tokens(totals.input)} input tokens{paid}"), "text bold"))
        pieces += [_DOT, Piece(Clean(read) if totals.calls > 1 else no_breaks(ledger), "sec")]
    if (worst := worst_file(ledger)) is not None:
        paid = f": {usd_label(worst.usd)}" if totals.usd is not None else f": {tokens(worst.entered)}"
        name = truncate_middle(file_label(worst.file or "", redactor), 40)
        pieces += [_DOT, Piece(Clean(f"{name} entered {worst.times}×{paid}"), "text")]
    if totals.usd is None:
        pieces += [_DOT, Piece(Clean(no_price()), "sec")]
    return tuple(pieces)


_CAUSE_NOUNS: Final = {
    Cause.IDLE: "idling",
    Cause.THINKING_SETTING: "the thinking setting",
    Cause.MODEL: "another model",
    Cause.UNKNOWN: "an unknown cause",
}


def split_lines(ledger: Ledger, width: int, glyphs: Glyphs = UNICODE) -> list[Line]:
    """The cost in its parts: a line of three colors, and what each is; nothing without a price."""
    totals = ledger.totals
    if not totals.usd:
        return []
    is_narrow = width < _NARROW
    parts = (
        ("new" if is_narrow else "new text", totals.usd_new or 0.0, NEW),
        ("carried" if is_narrow else "carried through later calls", totals.usd_carry or 0.0, CARRY),
        ("breaks", totals.usd_breaks or 0.0, BREAKS),
    )
    bar = parts_line([usd for _, usd, _ in parts], totals.usd, width, glyphs)
    legend: list[Piece] = []
    for name, usd, style in parts:
        if name == "breaks" and not totals.breaks:
            continue
        share = share_label(usd, totals.usd)
        legend += [
            Piece(Clean(f"{glyphs.amount} "), style),
            Piece(Clean(f"{name} "), "sec"),
            Piece(share, "text bold"),
            Piece(Clean(f" {usd_label(usd)}   "), "sec"),
        ]
    return [tuple(bar), tuple(legend)]


def parts_line(parts: Sequence[float], full: float, width: int, glyphs: Glyphs = UNICODE) -> list[Piece]:
    """New, carried and breaks as one thin line of at most `width` cells, which is `full`."""
    pieces, at, done = [], 0, 0.0
    for usd, style in zip(parts, (NEW, CARRY, BREAKS), strict=False):
        done += usd
        end = min(width, round(done / full * width)) if full > 0 else 0
        if not at and not end and usd > 0:
            end = 1
        if end > at:
            pieces.append(Piece(Clean(glyphs.amount * (end - at)), style))
            at = end
    return [*pieces, Piece(Clean(" " * (width - at)))] if at < width else pieces


# ---- the river


class _Column(NamedTuple):
    """Cells of the river that show one call, or the fullest of several."""

    at: int
    width: int
    calls: Sequence[Call]
    call: Call


_LABEL: Final = 7
"""Cells left of the river."""


def river_lines(
    calls: Sequence[Call],
    bands: Sequence[Band],
    width: int,
    height: int,
    selected: int | None,
    glyphs: Glyphs = UNICODE,
) -> list[Line]:
    """The input of the calls of one conversation by content; `selected` is the number of a call."""
    rows = height - 2
    if not calls or rows < 2 or width < _LABEL + 4:
        return []
    columns = _columns(calls, width - _LABEL - 1, selected)
    top = max(call.input for call in calls) * 1.02
    grid = [[(" ", "text")] * (width - _LABEL - 1) for _ in range(rows)]
    for column in columns:
        cells_ = _cells(column.call, bands, top, rows, glyphs)
        is_selected = any(call.number == selected for call in column.calls)
        for row in range(rows):
            cell = cells_[row]
            if cell is None and is_selected:
                grid[row][column.at + column.width // 2] = glyphs.guide, "accent"
            elif cell is not None:
                grid[row][column.at : column.at + column.width] = [cell] * column.width
    if glyphs is not ASCII:
        _write_names(grid, bands)
    ticks = _ticks(top, rows)
    lines = []
    for row in range(rows - 1, -1, -1):
        label = tokens(ticks[row]).replace(".0", "") if row in ticks else ""
        axis = Piece(Clean(f"{label:>{_LABEL - 2}} {glyphs.guide}"), "dim")
        lines.append((axis, *_merge(grid[row])))
    return [*lines, *_axis(columns, width - _LABEL - 1, selected, glyphs)]


def _columns(calls: Sequence[Call], width: int, selected: int | None) -> list[_Column]:
    count = len(calls)
    if count <= width:
        edges = [i * width // count for i in range(count + 1)]
        return [_Column(a, b - a, (call,), call) for (a, b), call in zip(pairwise(edges), calls, strict=True)]
    columns = []
    for i in range(width):
        part = calls[i * count // width : (i + 1) * count // width]
        columns.append(_Column(i, 1, part, max(part, key=lambda call: (call.number == selected, call.input))))
    return columns


def _cells(call: Call, bands: Sequence[Band], top: float, rows: int, glyphs: Glyphs) -> list[tuple[str, str] | None]:
    """Glyph and style of each cell of a column, from the bottom; None above its top."""
    edges, held, before = [], 0, 0
    for band in bands:
        held += sum(call.by.get(content, 0) for content in band.contents)
        end = round(held / top * rows * 8)
        if end > before:
            edges.append((before, end, band))
            before = end
    return [
        _cell([(max(a, 8 * row), min(b, 8 * row + 8), band) for a, b, band in edges], glyphs) for row in range(rows)
    ]


def _cell(edges: Iterable[tuple[int, int, Band]], glyphs: Glyphs) -> tuple[str, str] | None:
    parts = [(end - start, band) for start, end, band in edges if end > start]
    if not parts:
        return None
    filled = sum(size for size, _ in parts)
    largest = max(parts, key=lambda part: part[0])[1]
    if glyphs is ASCII:
        return (largest.letter, largest.style) if filled >= 4 else None
    if filled < 8 or len(parts) == 1:
        return glyphs.spark[filled - 1], largest.style if filled < 8 else f"on.{largest.style} {largest.style}"
    low, high = [part for part in parts if part in sorted(parts, key=lambda part: part[0])[-2:]][:2]
    return glyphs.spark[min(7, max(1, low[0])) - 1], f"on.{high[1].style} {low[1].style}"


def _write_names(grid: list[list[tuple[str, str]]], bands: Sequence[Band]) -> None:
    """Write the name of each band where whole cells have room for it."""
    for band in bands:
        full_cell, size = ("█", f"on.{band.style} {band.style}"), len(band.name) + 2
        runs = [(stop - start, y, start) for y, row in enumerate(grid) for start, stop in _runs(row, full_cell)]
        longest = max(runs, default=(0, 0, 0))[0]
        if longest >= size:
            same = [run for run in runs if run[0] == longest]
            _, y, start = same[len(same) // 2]
            at = start + (longest - size) // 2 + 1
            grid[y][at : at + size - 2] = [(letter, f"on.{band.style}") for letter in band.name]


def _runs(row: Sequence[tuple[str, str]], cell: tuple[str, str]) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of equal cells."""
    at = 0
    for value, group in groupby(row):
        size = sum(1 for _ in group)
        if value == cell:
            yield at, at + size
        at += size


def _round_step(extent: float, most: int) -> int:
    """The smallest of 1, 2, 5, 10 … that fits into `extent` at most `most` times."""
    return next(
        digit * int(10**power) for power in range(18) for digit in (1, 2, 5) if extent / (digit * 10**power) <= most
    )


def _ticks(top: float, rows: int) -> dict[int, int]:
    """Round values of the scale by row, from the bottom."""
    step = _round_step(top, max(2, min(5, rows // 2)))
    ticks = {}
    for i in range(1, 6):
        row = round(i * step / top * rows) - 1
        if i * step <= top and 0 <= row < rows:
            ticks[row] = i * step
    return ticks


def _merge(cells_: Iterable[tuple[str, str]]) -> Iterator[Piece]:
    """Pieces of cells of equal style."""
    for style, group in groupby(cells_, key=itemgetter(1)):
        yield Piece(Clean("".join(glyph for glyph, _ in group)), style)


def is_compaction(call: Call) -> bool:
    """Whether the conversation was replaced before a call."""
    return call.note in (Cause.COMPACTION, SHRUNK)


def _axis(columns: Sequence[_Column], width: int, selected: int | None, glyphs: Glyphs) -> list[Line]:
    """The marks of breaks and compactions, and the numbers of calls."""
    end = columns[-1].at + columns[-1].width
    marks = [(glyphs.rule, "line")] * end + [(" ", "text")] * (width - end)
    numbers = [(" ", "dim")] * (width + _LABEL)
    here = None
    for column in columns:
        middle = column.at + column.width // 2
        if any(map(is_compaction, column.calls)):
            marks[middle] = glyphs.downstream, f"{BREAKS} bold"
        elif any(call.missed is not None for call in column.calls):
            marks[middle] = glyphs.note, f"{BREAKS} bold"
        if any(call.number == selected for call in column.calls):
            here = column
    placed: list[tuple[int, int]] = []

    def place(column: _Column, number: int, style: str) -> None:
        text = str(number)
        at = min(column.at + column.width // 2, width - len(text))
        if all(at + len(text) < start or at > stop for start, stop in placed):
            placed.append((at, at + len(text)))
            numbers[at : at + len(text)] = [(letter, style) for letter in text]

    if here is not None and selected is not None:
        place(here, selected, "accent bold")
    place(columns[0], columns[0].calls[0].number, "dim")
    place(columns[-1], columns[-1].calls[-1].number, "dim")
    step = _round_step(sum(len(column.calls) for column in columns), max(1, width // 8))
    for column in columns:
        if (number := next((call.number for call in column.calls if call.number % step == 0), None)) is not None:
            place(column, number, "dim")
    margin = Piece(Clean(" " * (_LABEL - 1)), "dim")
    return [(margin, *_merge([(" ", "text"), *marks])), (Piece(Clean("call   "), "dim"), *_merge(numbers[:width]))]


def legend_of_marks(ledger: Ledger, glyphs: Glyphs = UNICODE) -> Line:
    """What the marks below the river mean."""
    marks = [
        (glyphs.note, "break ", ledger.breaks),
        (glyphs.downstream, "compaction", any(map(is_compaction, ledger.calls))),
    ]
    return tuple(
        piece
        for mark, word, occurs in marks
        if occurs
        for piece in (Piece(Clean(f"{mark} "), f"{BREAKS} bold"), Piece(Clean(word), "sec"))
    )


def swatch(band: Band, glyphs: Glyphs) -> str:
    """The sign of a band beside its name."""
    return band.letter if glyphs is ASCII else glyphs.tool


# ---- the contents


class _Number(NamedTuple):
    """A column of numbers."""

    name: str
    size: int
    needs_price: bool
    leaves: int
    """The highest leaves first where there is no room for all; 0: never."""


_NUMBERS: Final = (
    _Number("cost", 8, True, 0),
    _Number("%", 5, False, 0),
    _Number("new", 7, True, 4),
    _Number("carry", 7, True, 5),
    _Number("breaks", 7, True, 6),
    _Number("entered", 9, False, 1),
    _Number("carried", 9, False, 2),
    _Number("now", 8, False, 3),
)
SORTS: Final = ("cost", "entered", "carried", "now")
"""Sort orders of the contents, largest first; *cost* is tokens carried without a price."""
_BAR: Final = 12
_MOST_BAR: Final = 32
_NAME: Final = 28
_MOST_FILES: Final = 12


class ContentRow(NamedTuple):
    """A row of the contents: a band, or a content or file of it."""

    key: tuple[str, ...]
    name: Clean
    account: Account
    band: Band
    depth: int = 0
    unfolds: bool = False
    is_open: bool = False


def content_rows(
    ledger: Ledger, bands: Sequence[Band], redactor: Redactor | None, *, opened: frozenset[object], sort: str
) -> list[ContentRow]:
    """The bands, largest first and *not recorded* last; below those of `opened` their files and contents."""
    accounts, is_priced = ledger.accounts(), ledger.totals.usd is not None

    def size(account: Account) -> tuple[float, float]:
        number = getattr(account, sort) if sort != "cost" else account.usd if is_priced else account.carried
        return float(number), float(account.carried)

    groups = []
    for band in bands:
        parts = [account for account in accounts if account.content in band.contents]
        groups.append((total(parts), band, parts))
    groups.sort(key=lambda group: (NOT_RECORDED in group[1].contents, *(-number for number in size(group[0]))))
    rows = []
    for band_total, band, parts in groups:
        by_part: dict[tuple[str, str], list[Account]] = {}
        for account in parts:
            file = account.file or ""
            by_part.setdefault(("", file) if file else (account.content, ""), []).append(account)
        unfolds = len(by_part) > 1 or any(file for _, file in by_part)
        key, is_open = (band.name,), unfolds and (band.name,) in opened
        rows.append(ContentRow(key, band.name, band_total, band, unfolds=unfolds, is_open=is_open))
        if not is_open:
            continue
        inner = sorted(
            ((total(members), part) for part, members in by_part.items()), key=lambda part: [-n for n in size(part[0])]
        )
        for account, (content, file) in inner[:_MOST_FILES]:
            name = file_label(file, redactor) if file else content_label(content, redactor)
            name = Clean(f"{name} {account.times}×") if account.times > 1 and file else name
            rows.append(ContentRow((band.name, content, file), name, account, band, depth=1))
        if rest := [account for account, _ in inner[_MOST_FILES:]]:
            name = quantity(len(rest), "other")
            rows.append(ContentRow((band.name, "", ""), name, total(rest), band, depth=1))
    return rows


def full_bar(rows: Iterable[ContentRow], totals: Totals) -> float:
    """What the whole width of a bar is: a cost, without a price carried tokens."""
    return max((row.account.carried if totals.usd is None else row.account.usd for row in rows), default=0.0)


def _account_line(account: Account, totals: Totals, full: float, width: int, glyphs: Glyphs) -> list[Piece]:
    parts = (account.usd_new, account.usd_carry, account.usd_breaks)
    return parts_line(parts if totals.usd is not None else (0.0, account.carried), full, width, glyphs)


class ContentColumns:
    """The columns of the contents for a width."""

    def __init__(self, ledger: Ledger, width: int, sort: str, glyphs: Glyphs = UNICODE) -> None:
        totals = ledger.totals
        self._totals, self._glyphs, self._sort = totals, glyphs, sort
        self._decimals = 2 if (totals.usd or 0.0) >= 0.5 else 3
        is_priced = totals.usd is not None
        numbers = [number for number in _NUMBERS if is_priced or not number.needs_price]
        while sum(number.size for number in numbers) + _NAME > width and any(number.leaves for number in numbers):
            numbers.remove(max(numbers, key=lambda number: number.leaves))
        self.numbers = numbers
        rest = width - sum(number.size for number in numbers) - _NAME - 2
        self.bar = min(_MOST_BAR, rest) if rest >= _BAR else 0
        self.name = max(8, width - sum(number.size for number in numbers) - (self.bar + 2 if self.bar else 0))
        if self.bar:
            self.name = min(self.name, 48)

    def heading(self) -> Line:
        """The names of the columns."""
        bar = "cost: new, carried, breaks" if self._totals.usd is not None else "carried"
        pieces = [Piece(pad(Clean("    content"), self.name), "dim")]
        if self.bar:
            pieces.append(Piece(pad(truncate(Clean(bar), self.bar), self.bar + 2), "dim"))
        column_name = self._sort if self._totals.usd is not None or self._sort != "cost" else "carried"
        for number in self.numbers:
            style = "sec bold" if number.name == column_name else "dim"
            pieces.append(Piece(pad(Clean(number.name), number.size, right=True), style))
        return tuple(pieces)

    def line(self, row: ContentRow, full: float) -> Line:
        """A row; the bar of a row that cost `full` (carried so many tokens without a price) has the whole width."""
        glyphs, account = self._glyphs, row.account
        fold = (glyphs.unfolded if row.is_open else glyphs.folded) if row.unfolds else " "
        lead = "" if row.depth else f"{swatch(row.band, glyphs)} "
        style = "sec" if row.depth or row.band.letter == "?" else "text"
        room = self.name - 4 - 2 * row.depth - 1
        pieces = [
            Piece(Clean(lead), row.band.style),
            Piece(Clean("    " if row.depth else f"{fold} "), "dim"),
            Piece(pad(truncate_middle(row.name, room), self.name - 4), style),
        ]
        if self.bar:
            pieces += [*_account_line(account, self._totals, full, self.bar, glyphs), Piece(Clean("  "))]
        return (*pieces, *self._cells(account, "text bold" if not row.depth else "sec"))

    def sum_line(self, accounts: Iterable[Account]) -> Line:
        """The sum of all rows, which is what the trace records."""
        account = total(accounts)
        pieces = [Piece(pad(Clean("    all, as recorded"), self.name), "text bold")]
        if self.bar:
            pieces.append(Piece(Clean(" " * (self.bar + 2))))
        return (*pieces, *self._cells(account, "text bold"))

    def _cells(self, account: Account, style: str) -> Iterator[Piece]:
        totals = self._totals
        whole, part = (totals.input, account.carried) if totals.usd is None else (totals.usd, account.usd)
        values = {
            "cost": f"~{self._usd(account.usd)}",
            "%": share_label(part, whole).rstrip("%"),
            "new": self._usd(account.usd_new),
            "carry": self._usd(account.usd_carry),
            "breaks": self._usd(account.usd_breaks),
            "entered": tokens(account.entered),
            "carried": tokens(account.carried),
            "now": tokens(account.now) if account.now else "",
        }
        for number in self.numbers:
            strong = number.name in ("cost", self._sort)
            yield Piece(pad(Clean(values[number.name]), number.size, right=True), style if strong else "sec")

    def _usd(self, usd: float) -> str:
        return f"{usd:.{self._decimals}f}"


# ---- breaks


def break_heading(width: int) -> Line:
    """The names of the columns of the breaks."""
    return (
        Piece(Clean("  call  "), "dim"),
        Piece(pad(Clean("cause"), max(6, width - 30)), "dim"),
        Piece(Clean("basis"), "dim"),
        Piece(pad(Clean("missed"), 8, right=True), "dim"),
        Piece(pad(Clean("cost"), 9, right=True), "dim"),
    )


def break_line(missed: Break, width: int) -> Line:
    """A break: its call, cause, basis, the tokens that were not read, and their price."""
    room = max(6, width - 26 - len(missed.basis))
    return (
        Piece(pad(Clean(str(missed.call)), 6, right=True), "sec"),
        Piece(Clean("  ")),
        Piece(pad(truncate(cause_label(missed), room), room), "text"),
        Piece(Clean(f" {missed.basis}"), "dim"),
        Piece(pad(tokens(missed.missed), 8, right=True), "sec"),
        Piece(pad(usd_label(missed.usd), 9, right=True), f"{BREAKS} bold"),
    )


def break_total(ledger: Ledger, width: int) -> Line:
    """The sum of the breaks."""
    totals = ledger.totals
    number = quantity(totals.breaks, "break")
    return (
        Piece(Clean(" " * 8)),
        Piece(pad(number, max(6, width - 25)), "text bold"),
        Piece(pad(tokens(totals.missed), 8, right=True), "sec"),
        Piece(pad(usd_label(totals.usd_breaks), 9, right=True), "text bold"),
    )


def explanation_lines(missed: Break, width: int) -> list[Line]:
    """What was kept and lost at a break, why, and how well that is known."""
    reason = f"{explanation(missed)} ({missed.basis})"
    lines = wrap(clean(f"Call {missed.call}: {reason}"), max(10, width))
    return [(Piece(line, "sec"),) for line in lines]


def hour_lines(ledger: Ledger, width: int) -> list[Line]:
    """What a cache of an hour would have saved and cost, where that is known."""
    advice = hour_sentence(ledger)
    return [] if advice is None else [(Piece(line, "sec"),) for line in wrap(advice, max(10, width))]


# ---- one call


def call_lines(
    call: Call,
    bands: Sequence[Band],
    width: int,
    redactor: Redactor | None,
    *,
    glyphs: Glyphs = UNICODE,
    is_list: bool = False,
) -> list[Line]:
    """The input of a call, and the texts that it brought in; `is_list`: one text a row."""
    word = "grew " if call.growth >= 0 else "shrank "
    grew = (
        [Piece(Clean(word), "sec"), Piece(grouped(abs(call.growth)), "text bold")] if call.growth < call.input else []
    )
    usd = [] if call.usd is None else [Piece(Clean(f"   {usd_label(call.usd)}"), "text")]
    parts = [(call.read, "read"), (call.written, f"written{_lifetime(call)}")]
    sizes = [(size, word) for size, word in parts if size is not None]
    sizes += [(call.uncached, "uncached")] if sizes else []
    label = [Piece(grouped(call.input), "text bold"), Piece(Clean(" input"), "sec")]
    lines: list[Line]
    if is_list:
        lines = [_ends([Piece(Clean(word), "sec")], [Piece(grouped(size), "sec")], width) for size, word in sizes]
        lines += [_ends([Piece(Clean("input"), "text bold"), *usd], label[:1], width), _ends(grew[:1], grew[1:], width)]
        lines = [line for line in lines if line]
    else:
        sum_ = " + ".join(f"{grouped(size)} {word}" for size, word in sizes)
        line = [*label, *([Piece(Clean(f" = {sum_}"), "sec")] if sizes else []), *usd]
        lines = [_ends(line, grew, width)]
    if call.inherited:
        lines.append((Piece(Clean(f"inherited {tokens(call.inherited)} from the run that this one continues"), "sec"),))
    if call.note:
        lines.append((Piece(Clean(f"{cause_name(call.note)}: {tokens(call.removed)} left the context"), BREAKS),))
    items = [*_arrivals(call, bands, redactor, glyphs)]
    if is_list:
        lines += [(), (Piece(Clean("brought in"), "dim"),)]
        for sign, name, size in items:
            room = max(8, width - cells(size.text) - 4)
            lines.append(_ends([sign, Piece(truncate_middle(name, room), "text")], [size], width))
    elif items:
        line = [Piece(Clean("brought in  "), "dim")]
        for i, (sign, name, size) in enumerate(items):
            more = [sign, Piece(truncate_middle(name, 36), "text"), Piece(Clean(" ")), size, Piece(Clean("   "))]
            if width_of(line) + width_of(more) > width - 8 and i:
                line.append(Piece(Clean(f"and {grouped(len(items) - i)} more"), "dim"))
                break
            line += more
        lines.append(tuple(fit(line, width)))
    return lines


def _lifetime(call: Call) -> str:
    """For how long a call wrote to the cache, where the trace says so."""
    if not call.written or call.written_1h is None:
        return ""
    return " (5 min)" if not call.written_1h else " (1 h)" if call.written_1h == call.written else " (5 min and 1 h)"


def _arrivals(
    call: Call, bands: Sequence[Band], redactor: Redactor | None, glyphs: Glyphs
) -> Iterator[tuple[Piece, Clean, Piece]]:
    rest = (START, NOT_RECORDED, AFTER_COMPACTION)
    for content, file, size, exact in map(astuple, call.brought(by_file=True)):
        band = next((band for band in bands if content in band.contents), None)
        sign = Piece(Clean(f"{swatch(band, glyphs)} " if band else "  "), band.style if band else "dim")
        name = content_label(content, redactor)
        if file is not None:
            name = Clean(f"{name.removesuffix(' results')} {file_label(file, redactor)}")
        yield sign, name, Piece(Clean(f"{'' if exact or content in rest else '≈'}{grouped(size)}"), "sec")


def _ends(left: Sequence[Piece], right: Sequence[Piece], width: int) -> Line:
    """Pieces at both ends of a row."""
    gap = width - width_of(left) - width_of(right)
    return (*left, Piece(Clean(" " * max(2, gap))), *right) if right and gap >= 2 else (*left,)


def footnote(width: int) -> list[Line]:
    """What is recorded, and how well the rest is known."""
    caveat = f"Recorded: input, reads, writes, growth. Estimated (≈): the split ({ERROR})."
    return [(Piece(line, "dim"),) for line in wrap(Clean(caveat), max(10, width))]


def call_title(call: Call, step: int | None, zone: tzinfo, glyphs: Glyphs = UNICODE) -> Clean:
    """Where a call is in the run, and when it was made."""
    position = f"{glyphs.arrow} step {step}" if step is not None else ""
    when = "" if call.started_at is None else datetime.fromtimestamp(call.started_at, zone).strftime("%H:%M:%S")
    return Clean(f" {glyphs.dot} ".join(filter(None, (position, when))))


# ---- the panel of the run


_PANEL_ROWS: Final = 4
_SPARK: Final = 24


def panel_lines(ledger: Ledger, width: int, redactor: Redactor | None, glyphs: Glyphs = UNICODE) -> list[Line]:
    """The context in a few rows: the largest contents, the course of the input, and the breaks."""
    totals, bands = ledger.totals, bands_of(ledger, redactor)
    rows = content_rows(ledger, bands, redactor, opened=frozenset(), sort="cost")
    is_priced = totals.usd is not None
    name = min(26, max(12, width - 24))
    bar = max(0, min(24, width - name - 18))
    full = full_bar(rows, totals)
    lines: list[Line] = []
    for row in rows[:_PANEL_ROWS]:
        account = row.account
        share = share_label(account.usd, totals.usd) if is_priced else share_label(account.carried, totals.input)
        lines.append(
            (
                Piece(Clean(f"{swatch(row.band, glyphs)} "), row.band.style),
                Piece(pad(truncate(row.name, name - 1), name), "text"),
                *(_account_line(account, totals, full, bar, glyphs) if bar else ()),
                Piece(pad(share, 6, right=True), "sec"),
                Piece(pad(usd_label(account.usd) if is_priced else tokens(account.carried), 9, right=True), "sec"),
            )
        )
    if is_priced and bar:
        legend = [Piece(Clean("cost: "), "dim")]
        for word, style in (("new", NEW), ("carried", CARRY), ("breaks", BREAKS)):
            legend += [Piece(Clean(f"{glyphs.amount} "), style), Piece(Clean(f"{word} "), "dim")]
        lines.append(tuple(legend))
    main = [call for call in ledger.calls if call.agent == ledger.calls[0].agent]
    if len(main) > 1:
        most = max(main, key=lambda call: call.input)
        count = min(_SPARK, len(main), max(4, width - 40))
        edges = [i * len(main) // count for i in range(count + 1)]
        course = [float(max(call.input for call in main[a:b])) for a, b in pairwise(edges)]
        lines.append(
            (
                Piece(Clean("now "), "dim"),
                Piece(tokens(main[-1].input), "text"),
                Piece(Clean(" ")),
                Piece(sparkline(course, glyphs), NEW),
                Piece(Clean(" most "), "dim"),
                Piece(tokens(most.input), "text"),
                Piece(Clean(f" at call {grouped(most.number)}   "), "dim"),
                Piece(Clean("K"), "key bold"),
                Piece(Clean(" opens"), "sec"),
            )
        )
    if breaks := ledger.breaks:
        number = quantity(len(breaks), "break")
        paid = "" if totals.usd is None else f" {usd_label(totals.usd_breaks)}"
        counts = Counter(missed.cause for missed in breaks).most_common()
        causes = f" {glyphs.dot} ".join(f"{cause_name(cause)} {count}" for cause, count in counts)
        lines.append((Piece(Clean(f"{number}{paid}"), f"{BREAKS} bold"), Piece(Clean(f"  {causes}"), "sec")))
    elif len(main) > 1:
        lines.append((Piece(no_breaks(ledger), "dim"),))
    return lines


def panel_title(ledger: Ledger, run: RunSummary) -> Clean:
    """``61 calls · 3.7M in · ~$3.44``; ``10 of 11 calls`` if the others have no tokens."""
    totals, calls = ledger.totals, run.llm_calls or 0
    if not totals.calls:
        return Clean("")
    paid = "" if totals.usd is None else f" · {usd_label(totals.usd)}"
    counted = f"{grouped(totals.calls)} of {quantity(calls, 'call')}"
    label = counted if calls > totals.calls else quantity(totals.calls, "call")
    return Clean(f"{label} · {tokens(totals.input)} in{paid}")

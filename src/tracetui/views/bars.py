"""Bars: blocks are time, thin lines are amounts.

Works in cells and eighths of cells, and returns pieces of exactly the requested width.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import ceil, inf, isfinite
from typing import Final, NamedTuple

from tracetui.text import Clean, duration
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Line, Piece

_ROUND_MS: Final = tuple(
    sorted(
        {digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)}
        | {s * 1000.0 for s in (10, 20, 30, 60, 120, 300, 600, 1200, 1800)}
        | {h * 3_600_000.0 for h in (1, 2, 5, 6, 12, 24, 48, 120, 240)}
    )
)
_DAY_MS: Final = 86_400_000.0
_MAX_MS: Final = 1e15
_MAX_TICKS: Final = 5
_NEAR_TOTAL: Final = 5


class Bar(NamedTuple):
    """The cells of a bar: `text` from cell `at` on."""

    at: int
    text: str


def bar(start: float, end: float, total: float, width: int, glyphs: Glyphs = UNICODE) -> Bar:
    """The block from `start` to `end` on an axis of length `total` (any unit) and `width` cells.

    At least two eighths of a cell wide, and clamped to the axis.
    """
    if width <= 0 or total <= 0:
        return Bar(0, "")
    eighths = width * 8
    a = min(max(0, round(start / total * eighths)), eighths - 2)
    b = min(max(a + 2, round(end / total * eighths)), eighths)
    first, last = a // 8, (b - 1) // 8
    if first == last:
        return Bar(first, _one_cell(a - first * 8, b - first * 8, glyphs))
    head = a - first * 8
    sign = glyphs.ends[7] if head < 2 else glyphs.half if head < 6 else glyphs.sliver
    return Bar(first, sign + glyphs.ends[7] * (last - first - 1) + glyphs.ends[b - last * 8 - 1])


def _one_cell(a: int, b: int, glyphs: Glyphs) -> str:
    """The glyph nearest to eighths a to b of one cell: left blocks of any size, or the right half."""
    left_distance = a
    right_distance = abs(a - 4) + 8 - b
    return glyphs.half if right_distance < left_distance else glyphs.ends[b - 1 if a < 2 else b - a - 1]


def container(start: float, end: float, total: float, width: int, glyphs: Glyphs = UNICODE) -> Bar:
    """The thin line of a container span, in half cells."""
    if width <= 0 or total <= 0:
        return Bar(0, "")
    halves = width * 2
    a = min(max(0, round(start / total * halves)), halves - 1)
    b = min(max(a + 1, round(end / total * halves)), halves)
    first, last = a // 2, (b - 1) // 2
    if first == last and b - a == 1:
        return Bar(first, glyphs.container_start if a % 2 else glyphs.container_end)
    text = [glyphs.container] * (last - first + 1)
    if a % 2:
        text[0] = glyphs.container_start
    if b % 2:
        text[-1] = glyphs.container_end
    return Bar(first, "".join(text))


def instant(start: float, total: float, width: int, glyphs: Glyphs = UNICODE) -> Bar:
    """The start of a span with unknown duration: thinner than any bar."""
    if width <= 0 or total <= 0:
        return Bar(0, "")
    return Bar(min(width - 1, max(0, int(start / total * width))), glyphs.ends[0])


def on_grid(bar: Bar, style: str, ticks: Sequence[int], width: int, glyphs: Glyphs = UNICODE) -> list[Piece]:
    """A bar on the time grid: `width` cells, with dashed lines at the cells `ticks`."""
    stop = bar.at + len(bar.text)
    pieces = _grid(0, bar.at, ticks, glyphs)
    if bar.text:
        pieces.append(Piece(Clean(bar.text), style))
    return pieces + _grid(stop, width, ticks, glyphs)


def _grid(start: int, stop: int, ticks: Sequence[int], glyphs: Glyphs) -> list[Piece]:
    if stop <= start:
        return []
    blank = [" "] * (stop - start)
    for tick in ticks[bisect_left(ticks, start) :]:
        if tick >= stop:
            break
        blank[tick - start] = glyphs.grid
    return [Piece(Clean("".join(blank)), "line")]


class Axis(NamedTuple):
    """A time axis: its heading and the cells of its grid."""

    heading: Line
    ticks: tuple[int, ...]


def axis(total_ms: float, width: int, *, note: str = "", total: bool = True) -> Axis:
    """Three to five round ticks and, unless the axis is longer than the run, the total.

    Labels too close to the total are left out. A `note` replaces the labels if it fits.
    """
    if width <= 0:
        return Axis((), ())
    days = ceil(min(total_ms, _MAX_MS) / _MAX_TICKS / _DAY_MS)
    step = next((s for s in _ROUND_MS if total_ms / s <= _MAX_TICKS), days * _DAY_MS)
    marks = [(int(i * step / total_ms * width), i * step) for i in range(1, _MAX_TICKS + 1) if i * step < total_ms]
    end = duration(total_ms) if total else ""
    cells = [" "] * width
    free = _write(cells, 0, "0")
    total_at = width - len(end)
    if note and free + len(note) < total_at:
        free = _write(cells, free, note)
    for cell, ms in marks:
        label = _tick_label(ms)
        if max(cell + len(label) + 1, cell + _NEAR_TOTAL) <= total_at and cell >= free:
            free = _write(cells, cell, label)
    if total_at >= 2:
        _write(cells, total_at, end)
    return Axis((Piece(Clean("".join(cells)), "dim"),), tuple(sorted({cell for cell, _ in marks if 0 < cell < width})))


def gap_axis(gaps: Sequence[tuple[float, float]], worked: float, width: int, glyphs: Glyphs = UNICODE) -> Axis:
    """Lengths of idle times above their marks, on an axis of `worked` seconds; those without room are left out.

    `gaps` are (seconds worked before, length in seconds), the longest first.
    """
    cells = [" "] * max(0, width)
    ticks = []
    for number, (before, length) in enumerate(gaps if worked > 0 and width > 0 else ()):
        at, label = min(width - 1, int(before / worked * width)), duration(length * 1000)
        labels = (f"idle {label}", label) if not number else (label,)  # the longest one explains them all
        places = [pair for word in labels for pair in ((at, glyphs.grid + word), (at - len(word), word + glyphs.grid))]
        for start, text in places:
            stop = start + len(text)
            if start >= 0 and stop <= width and not "".join(cells[max(0, start - 1) : stop + 1]).strip():
                cells[start:stop] = text
                ticks.append(at)
                break
    return Axis((Piece(Clean("".join(cells)), "dim"),), tuple(sorted(ticks)))


def _write(cells: list[str], at: int, text: str) -> int:
    """Write `text`, if free; return the next free cell after a blank."""
    cells[at : at + len(text)] = text
    return at + len(text) + 1


def _tick_label(ms: float) -> str:
    if ms >= 5 * _DAY_MS and ms % _DAY_MS == 0:
        return f"{ms / _DAY_MS:.0f}d"
    for unit, size in (("h", 3_600_000), ("m", 60_000)):
        if ms >= size and ms % size == 0:
            return f"{ms / size:.0f}{unit}"
    if ms > 60_000:
        return duration(ms)
    if ms >= 1000:
        return f"{ms / 1000:g}s"
    return f"{ms:g}ms" if ms >= 1 else duration(ms)


def amount(
    value: float | None,
    full: float,
    width: int,
    style: str = "bar.agent",
    *,
    threshold: float | None = None,
    glyphs: Glyphs = UNICODE,
) -> list[Piece]:
    """A share of `full` as a thin line over its track, with an upright at the threshold."""
    if width <= 0:
        return []
    share = min(1.0, max(0.0, value / full)) if value is not None and full > 0 and isfinite(value) else 0.0
    filled = max(1, round(share * width)) if share > 0 else 0
    pieces = [Piece(Clean(glyphs.amount * filled), style), Piece(Clean(glyphs.rest * (width - filled)), "line")]
    if threshold is None or full <= 0 or not 0 <= threshold <= full < inf:
        return [piece for piece in pieces if piece.text]
    at = min(width - 1, int(threshold / full * width))
    return [*_slice(pieces, 0, at), Piece(glyphs.threshold, "text"), *_slice(pieces, at + 1, width)]


def _slice(pieces: Iterable[Piece], start: int, stop: int) -> list[Piece]:
    sliced, at = [], 0
    for piece in pieces:
        text = piece.text[max(0, start - at) : max(0, stop - at)]
        if text:
            sliced.append(Piece(Clean(text), piece.style))
        at += len(piece.text)
    return sliced


def sparkline(values: Sequence[float | None], glyphs: Glyphs = UNICODE) -> Clean:
    """One glyph per value, scaled to the maximum; ``·`` for None."""
    top = max((value for value in values if value is not None), default=0.0)
    steps = len(glyphs.spark)
    return Clean(
        "".join(
            glyphs.zero
            if value is None
            else glyphs.spark[min(steps - 1, max(0, int(value / top * steps)) if top > 0 else 0)]
            for value in values
        )
    )

"""Layout of the panes by screen size, level and zoom. See app.tcss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

NARROW: Final = 100
"""Below this many columns, one pane is shown at a time."""
WIDE: Final = 180
"""From this many columns, three panes are shown side by side."""
MIN_SIZE: Final = 40, 10
"""Minimum columns and rows."""

Width = Literal["narrow", "middle", "wide"]
Height = float | str
"""Rows, or a fraction of the free space (``1fr``)."""


def width_of(columns: int) -> Width:
    """Width class of a screen."""
    return "narrow" if columns < NARROW else "wide" if columns >= WIDE else "middle"


def is_tiny(width: int, height: int) -> bool:
    """Whether the screen is smaller than `MIN_SIZE`."""
    return width < MIN_SIZE[0] or height < MIN_SIZE[1]


def classes(width: int, height: int, level: int, zoomed: str | None, panes: Iterable[str]) -> dict[str, bool]:
    """CSS classes of the main screen, and whether each is set."""
    return {
        **{name: name == width_of(width) for name in ("narrow", "middle", "wide")},
        **{f"level-{number}": number == level for number in range(3)},
        **{f"zoom-{name}": name == zoomed for name in panes},
    }


MIN_SIDE: Final = 40
"""Columns that the panes beside the list keep."""
MIN_LIST: Final = 24
"""Columns of the narrowest list that can be dragged."""


def needs_headline(columns: int, level: int) -> bool:
    """Whether the steps pane shows the outcome of the run, because no other part of the screen does."""
    return columns >= WIDE or not level


FRAME: Final = 3
"""Rows of header, status line and footer."""


def is_short(height: int, rows: int) -> bool:
    """Whether a list of so many rows is above the run, as wide as the screen."""
    return rows <= height // 4


def is_beside(columns: int, level: int, *, turns: bool) -> bool:
    """Whether the detail is beside the steps: on wide screens, and of an open run beside its turns."""
    return columns >= WIDE or (turns and level > 0 and columns >= NARROW)


def list_width(columns: int, share: int, chosen: int, wanted: int, least: int = 0) -> Height:
    """Width of the list beside a run.

    `share`: the percentage that the user dragged it to, or 0. `chosen`: the cells that the chosen columns take, or 0.
    `wanted`: the width at which no result is cut. `least`: the cells that its columns need; granted up to a little
    more than half of the screen.
    """
    if columns < NARROW:
        return "1fr"
    limit = columns * 46 // 100 if columns < WIDE else columns * 38 // 100
    size = (
        round(columns * share / 100) if share else max(48, min(wanted, limit), min(least, columns * 52 // 100), chosen)
    )
    return max(MIN_LIST, min(size, columns - MIN_SIDE))


_MIN_STEPS: Final = 3


class Below(NamedTuple):
    """Rows of the pane below the steps."""

    wanted: int
    """For everything."""
    least: int
    """Without what another pane has too."""


def most_steps(columns: int, rows: int) -> int:
    """Rows that long steps get of `rows`, if the pane below is long too."""
    return int(max(1, rows) * (0.58 if columns < NARROW else 0.62))


def heights(
    columns: int,
    rows: int,
    level: int,
    zoomed: str | None,
    wanted: int,
    below: Below | None = None,
    current: Height = "1fr",
) -> tuple[Height, Height]:
    """Heights of the middle column and of the steps in it, of `rows` that both share.

    `wanted` is the height of all steps, `below` that of the whole pane below them, None if unknown: what one doesn't
    need, the other gets. Of two long ones, the steps get about 60%. While previewing, the steps get a multiple of 8 if
    nothing below is hidden, and the `current` height stays if it hides no step and at most `_SLACK` rows below: the
    line between the panes should not move with every run, and a new layout costs more than drawing the rows.
    """
    wide, narrow = columns >= WIDE, columns < NARROW
    max_height = most_steps(columns, rows)
    need, rest = wanted + 1, max(0, rows - (rows if below is None else below.least))
    if not level and rows - -(-need // 8) * 8 >= (0 if below is None else below.wanted):
        need = -(-need // 8) * 8
    height = max(_MIN_STEPS, min(need, max(max_height, rest)))
    if not level and isinstance(current, int):
        fits = below is not None and wanted < current <= rows - below.wanted
        height = current if fits or 0 <= current - height <= _SLACK else height
    is_single = zoomed is not None or (narrow and level == 2)
    return "1fr" if wide or is_single else height, height if wide and not is_single else "1fr"


_SLACK: Final = 2
_MIN_DETAIL: Final = 40


def detail_width(columns: int, steps: int, detail: int) -> int:
    """Width of the detail beside the steps, of `columns` that both share.

    `steps` is the width at which no step is cut, `detail` that of the longest line of the detail.
    """
    min_detail = min(max(_MIN_DETAIL, detail), columns * 45 // 100)
    return max(min_detail, min(columns - steps, columns * 6 // 10))


def share(rows: int, wanted: Sequence[int], parts: Sequence[float]) -> list[int]:
    """Heights of panes that are stacked in `rows`: what each wants, if that is not too much.

    Otherwise each gets its part of the rows, and of the rows that others don't need. Spare rows go to the last but
    one, or the first of two.
    """
    shares = [0] * len(wanted)
    remaining, pending = rows, [*range(len(wanted))]
    while pending:
        total = sum(parts[i] for i in pending)
        fair = {i: int(remaining * (parts[i] / total) + 1e-9) for i in pending}  # floats may round a row away
        satisfied = [i for i in pending if wanted[i] <= fair[i]]
        for i in satisfied or pending:
            shares[i] = wanted[i] if satisfied else fair[i]
            remaining -= shares[i]
        pending = [i for i in pending if i not in satisfied] if satisfied else []
    shares[-2] += remaining
    return shares

"""Layout of the panes by screen size, level and zoom. See app.tcss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

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


def list_width(columns: int, share: int, wanted: int) -> int | None:
    """Columns of the list; None: as the style sheet has it.

    `share`: the percentage that the user dragged it to. `wanted`: the cells that its chosen columns take.
    """
    if columns < NARROW or not (share or wanted):
        return None
    usual = 72 if columns >= WIDE else columns * 46 // 100
    size = round(columns * share / 100) if share else max(usual, wanted)
    return max(MIN_LIST, min(size, columns - MIN_SIDE))


def needs_headline(columns: int, level: int) -> bool:
    """Whether the steps pane shows the outcome of the run, because no other part of the screen does."""
    return columns >= WIDE or (columns >= NARROW and not level)


def heights(width: int, height: int, level: int, zoomed: str | None, wanted: int) -> tuple[Height, Height]:
    """Heights of the middle column and of the steps in it, for a run of `wanted` rows.

    The steps get at most about 60%, the pane below them the rest. While previewing, the height is a multiple of 8: a
    new layout for each run would cost more than drawing its rows.
    """
    wide, narrow = width >= WIDE, width < NARROW
    need = wanted + 1 if level else -(-(wanted + 1) // 8) * 8
    need = max(8, min(need, int(max(1, height - 3) * (0.58 if narrow else 0.62))))
    alone = zoomed is not None or (narrow and level == 2)
    return "1fr" if wide or alone else need, need if wide and not alone else "1fr"

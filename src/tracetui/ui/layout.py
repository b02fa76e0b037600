"""How the panes share the screen, by its size, by how far in the reader is, and by what is zoomed. See app.tcss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

NARROW: Final = 100
"""Columns below which one pane is shown at a time."""
WIDE: Final = 180
"""Columns from which three panes stand side by side."""
SMALLEST: Final = 40, 10
"""Columns and rows below which nothing useful fits."""

Width = Literal["narrow", "middle", "wide"]
Height = float | str
"""Rows, or a share of the room (``1fr``)."""


def width_of(columns: int) -> Width:
    """The class of a width."""
    return "narrow" if columns < NARROW else "wide" if columns >= WIDE else "middle"


def is_tiny(width: int, height: int) -> bool:
    """Whether nothing useful fits."""
    return width < SMALLEST[0] or height < SMALLEST[1]


def classes(width: int, height: int, level: int, zoomed: str | None, panes: Iterable[str]) -> dict[str, bool]:
    """Which classes of the style sheet hold for the main screen."""
    return {
        **{name: name == width_of(width) for name in ("narrow", "middle", "wide")},
        **{f"level-{number}": number == level for number in range(3)},
        **{f"zoom-{name}": name == zoomed for name in panes},
    }


def needs_headline(columns: int, level: int) -> bool:
    """Whether the steps say how the run ended: where no other part of the screen does."""
    return columns >= WIDE or (columns >= NARROW and not level)


def heights(width: int, height: int, level: int, zoomed: str | None, wanted: int) -> tuple[Height, Height]:
    """(Height of the middle column, of the steps in it), where the whole run would take `wanted` rows.

    The steps get what they need, at most about 60 %, and what stands below them the rest. While runs are only looked
    through they grow in eights: a layout for each run would cost more than its rows.
    """
    wide, narrow = width >= WIDE, width < NARROW
    need = wanted + 1 if level else -(-(wanted + 1) // 8) * 8
    need = max(8, min(need, int(max(1, height - 3) * (0.58 if narrow else 0.62))))
    alone = zoomed is not None or (narrow and level == 2)
    return "1fr" if wide or alone else need, need if wide and not alone else "1fr"

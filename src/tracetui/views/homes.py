"""The places in which there are traces on this machine, as rows: a number, a path, whose traces, how many, how new."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Final

from tracetui.formats.homes import Home
from tracetui.text import Clean, age, grouped, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, Piece, column, fit

ALL: Final = ""
"""Key of the last row: all of them. There is none where there is one place."""
_KEY, _FILES, _AGE = 5, 9, 5
"""Cells of these columns."""


class HomeRows:
    """See `tracetui.views.rows.Rows`. The key of a row is the path of its place."""

    def __init__(
        self,
        homes: Sequence[Home],
        names: Sequence[str],
        picked: Collection[Hashable],
        *,
        now: float,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        """`names` are the paths as people write them; `picked` holds keys."""
        self._homes, self._names, self._picked, self._now, self._glyphs = homes, names, picked, now, glyphs
        self._keys = [*(home.path for home in homes), *([ALL] if len(homes) > 1 else [])]

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, index: int) -> Hashable:
        return self._keys[index]

    def index(self, key: Hashable) -> int | None:
        return self._keys.index(key) if key in self._keys else None

    def selectable(self, index: int) -> bool:
        return True

    def mark(self, index: int) -> str | None:
        return None

    def plain(self, index: int) -> str:
        return str(self._keys[index])

    def line(self, index: int, width: int) -> Line:
        if index < len(self._homes):
            number = str(index + 1) if index < 9 else " "
            return self._line(self._homes[index], number, self._names[index], width)
        files, newest = sum(home.files for home in self._homes), max(home.changed_at for home in self._homes)
        title = f"{grouped(len(self._homes))} places"
        return self._line(Home(title, ALL, files, any(home.more for home in self._homes), newest), "a", "all", width)

    def _line(self, home: Home, key: str, name: str, width: int) -> Line:
        picked, (room, whose) = home.path in self._picked, _room(width)
        path = truncate_middle(clean(name, 500), room - 1)  # a blank before whose traces they are
        pieces = [
            Piece(Clean(f" {key} "), "key bold"),
            Piece(self._glyphs.ok if picked else Clean(" "), "accent bold"),
            Piece(Clean(" ")),
            column(path, room, "accent bold" if picked else "text"),
            column(one_line(home.title, whose), whose, "sec"),
            column(Clean(f"{grouped(home.files)}{'+' * home.more}"), _FILES, "text", right=True),
            column(age(max(0.0, self._now - home.changed_at)), _AGE, "dim", right=True),
        ]
        return tuple(fit(pieces, width))


def heading(width: int) -> Line:
    """The names of the columns."""
    room, whose = _room(width)
    cells = [
        column(Clean(" " * _KEY + "place"), _KEY + room, "dim"),
        column(Clean("traces" if whose else ""), whose, "dim"),
    ]
    cells += [column(Clean("files"), _FILES, "dim", right=True), column(Clean("age"), _AGE, "dim", right=True)]
    return tuple(fit(cells, width))


def _room(width: int) -> tuple[int, int]:
    """Cells of the path, and of whose traces are there."""
    whose = 24 if width >= 66 else 0
    return max(8, width - _KEY - whose - _FILES - _AGE), whose

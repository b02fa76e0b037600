"""The lanes of a run tree: a column per run, or per few runs where there is no room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from tracetui.analysis.run_tree import RunTree
from tracetui.analysis.tasks import Result, Trial
from tracetui.text import Clean
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Piece
from tracetui.views.scores import run_sign

_SHARE: Final = 5
"""One of so many cells of the width are lanes, at most."""
_WIDEST: Final = 3
"""Cells of a lane, at most."""
_WIDE: Final = 100
"""Width from which lanes may be that wide."""
_DIGITS: Final = 9
_NEUTRAL: Final = "kind.agent"


def trial_sign(trial: Trial, glyphs: Glyphs) -> tuple[Clean, str]:
    """Sign and style of the outcome of a trial."""
    if trial.result is Result.PASSED:
        return glyphs.ok, "status.ok"
    if trial.result is Result.FAILED:
        return (glyphs.wrong, "status.error") if trial.run.is_wrong else (glyphs.error, "status.error")
    return run_sign(trial.run, trial.run.status, glyphs) if trial.result is Result.RUNNING else (glyphs.zero, _NEUTRAL)


class Lanes:
    """The order of the lanes, and their cells in each row."""

    def __init__(self, tree: RunTree, numbers: Sequence[int], glyphs: Glyphs) -> None:
        """`numbers`: for each run, the number of its trial."""
        self._numbers, self._glyphs = numbers, glyphs
        self.order = _order(tree)
        """Positions in ``tree.runs``, from left to right."""
        self._lane = {run: lane for lane, run in enumerate(self.order)}
        self._signs = [trial_sign(tree.trials[run], glyphs) for run in self.order]

    def _slots(self, width: int) -> tuple[int, int]:
        """(Slots for lanes, cells of each)."""
        count, room = len(self.order), max(8, width // _SHARE)
        size = min(_WIDEST if width >= _WIDE else _WIDEST - 1, room // count)
        return (count, size) if size else (room, 1)

    def width(self, width: int) -> int:
        """Cells of all lanes in a row of `width` cells."""
        slots, size = self._slots(width)
        return slots * size

    def _groups(self, width: int) -> list[range]:
        """The lanes of each slot."""
        slots, _ = self._slots(width)
        count = len(self.order)
        return [range(i * count // slots, (i + 1) * count // slots) for i in range(slots)]

    def pieces(self, runs: Collection[int], width: int, selected: int | None, *, fork: bool = False) -> list[Piece]:
        """The lanes of a row: of `runs` in the colors of their outcomes, those of later rows thin, others blank."""
        lanes = {self._lane[run] for run in runs}
        low, high = min(lanes), max(lanes)
        chosen = self._lane.get(selected) if selected is not None else None
        _, size = self._slots(width)
        pieces = []
        for group in self._groups(width):
            here = [lane for lane in group if low <= lane <= high]
            if not here:
                glyph = " " if group[-1] < low else self._glyphs.track
                pieces.append(Piece(Clean(glyph.ljust(size)), "line"))
            else:
                pieces += self._cell(here, chosen, size, fork=fork, last=here[-1] == high)
        return pieces

    def _cell(self, lanes: Sequence[int], chosen: int | None, size: int, *, fork: bool, last: bool) -> list[Piece]:
        style = self._style(lanes, chosen)
        glyphs = self._glyphs
        glyph = glyphs.fork if fork else glyphs.ends[-1] if chosen in lanes else glyphs.thumb
        gap = self._glyphs.container if fork and not last else " "
        return [Piece(Clean(glyph), style), *([Piece(Clean(gap * (size - 1)), "dim")] if size > 1 else [])]

    def _style(self, lanes: Sequence[int], chosen: int | None) -> str:
        """The color of the selected lane, else of most lanes."""
        if chosen in lanes and chosen is not None:
            return self._signs[chosen][1]
        if len(lanes) == 1:
            return self._signs[lanes[0]][1]
        return Counter(self._signs[lane][1] for lane in lanes).most_common(1)[0][0]

    def labels(self, width: int, selected: int | None) -> list[Piece]:
        """The number of each trial if they fit; the selected one stands out."""
        chosen = self._lane.get(selected) if selected is not None else None
        _, size = self._slots(width)
        pieces = []
        for group in self._groups(width):
            here = chosen in group
            text = self._glyphs.unfolded if here else " "
            if max(self._numbers) <= _DIGITS:
                text = str(self._numbers[self.order[group[0]]])
            pieces.append(Piece(Clean(text), "accent bold" if here else "dim"))
            if size > 1:
                pieces.append(Piece(Clean(" " * (size - 1))))
        return pieces

    def signs(self, width: int, selected: int | None) -> list[Piece]:
        """The outcome of each lane."""
        chosen = self._lane.get(selected) if selected is not None else None
        _, size = self._slots(width)
        pieces = []
        for group in self._groups(width):
            lane = chosen if chosen in group and chosen is not None else group[0]
            sign = self._signs[lane][0]
            pieces.append(Piece(sign, self._style(group, chosen) + (" bold" if chosen in group else "")))
            if size > 1:
                pieces.append(Piece(Clean(" " * (size - 1))))
        return pieces


def _order(tree: RunTree) -> list[int]:
    """The runs in the order of the leaves, smaller branches first."""
    found: list[int] = []
    todo = [tree.root]
    while todo:
        branch = todo.pop()
        if branch.children:
            todo += sorted(branch.children, key=lambda child: len(child.runs))[::-1]
        else:
            found += branch.runs
    return found

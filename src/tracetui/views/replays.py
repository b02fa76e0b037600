"""The replays of a run as rows: how each ended, and where it first went differently."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

from tracetui.model import RunRef, RunSummary
from tracetui.text import Clean, count, duration, pad
from tracetui.views.diff import name_of
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, Piece, fill, fit


class Told(Protocol):
    """What is known of a pair (`tracetui.live.mailbox.Divergence`)."""

    @property
    def same(self) -> bool: ...
    @property
    def words(self) -> Clean: ...


class ReplayRows:
    """See `tracetui.views.rows.Rows`. The key of a row is the replay's reference."""

    def __init__(
        self,
        runs: Sequence[RunSummary],
        verdicts: Mapping[RunRef, Told | None],
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
        told = self._verdicts.get(self._runs[index].ref)
        return "diff.chg" if told is not None and not told.same else None

    def plain(self, index: int) -> str:
        run = self._runs[index]
        told = self._verdicts.get(run.ref)
        words = "" if told is None else "same" if told.same else told.words
        return f"{run.id} {run.name} {self._relation(run.ref) or ''} {run.status.value} {words}"

    def heading(self, original: RunSummary, width: int) -> list[Line]:
        """The names of the columns, and the original in them."""
        names = (
            *fill([Piece(Clean("  run"))], _room(width) + 2),
            Piece(Clean(f" {pad(Clean('is a'), 8)} steps  time  against the original")),
        )
        told = (Piece(Clean("what the others repeat"), "dim"),)
        dim = tuple(Piece(piece.text, "dim") for piece in names)
        return [tuple(fit(dim, width)), tuple(fit([*self._head(original, "original", width), *told], width))]

    def line(self, index: int, width: int) -> Line:
        run, glyphs = self._runs[index], self._glyphs
        told = self._verdicts.get(run.ref)
        if told is None:
            verdict: Line = (Piece(Clean(f"{glyphs.zero} not compared yet"), "dim"),)
        elif told.same:
            verdict = (Piece(Clean(f"{glyphs.same} went the same way"), "status.ok"),)
        else:
            verdict = (Piece(Clean(f"{glyphs.changed} "), "diff.chg bold"), Piece(told.words, "diff.chg"))
        return tuple(fit([*self._head(run, self._relation(run.ref) or "", width), *verdict], width))

    def _head(self, run: RunSummary, relation: str, width: int) -> list[Piece]:
        """What is said of a run itself."""
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
    """Cells for what a run is called."""
    return 24 if width < 100 else 48

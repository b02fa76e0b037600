"""What a search of all runs found, as rows: one a hit, below the run that it is in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import StrEnum
from typing import Final, Protocol

from tracetui.model import RunRef, RunSummary
from tracetui.text import Clean, truncate, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.masking import clean, one_line
from tracetui.views.naming import called, short_id
from tracetui.views.rows import Line, Piece, fit, width_of

_LEAST_PATH: Final = 12
"""Cells that the path of a value, and the name of a step, have at least: what was found has the rest."""


class Hit(Protocol):
    """A place that holds what was searched for (`tracetui.live.jobs.search.Hit`)."""

    @property
    def ref(self) -> RunRef: ...
    @property
    def span(self) -> str | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> StrEnum: ...
    @property
    def path(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def match(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def address(self) -> str: ...


class HitRows:
    """See `tracetui.views.rows.Rows`. It only grows: the key of a row is its number, which stays."""

    def __init__(self, summary: Callable[[RunRef], RunSummary | None], *, glyphs: Glyphs = UNICODE) -> None:
        self._summary, self._glyphs = summary, glyphs
        self._items: list[Hit | RunRef] = []
        self.runs = self.hits = 0

    def extend(self, hits: Iterable[Hit]) -> None:
        """Add what was found since."""
        for hit in hits:
            last = self._items[-1] if self._items else None
            if (last if isinstance(last, RunRef) or last is None else last.ref) != hit.ref:
                self._items.append(hit.ref)
                self.runs += 1
            self._items.append(hit)
            self.hits += 1

    def hit(self, index: int) -> Hit | None:
        """The hit of a row; None for the heading of a run."""
        item = self._items[index] if 0 <= index < len(self._items) else None
        return None if isinstance(item, RunRef) else item

    def __len__(self) -> int:
        return len(self._items)

    def key(self, index: int) -> Hashable:
        return index

    def index(self, key: Hashable) -> int | None:
        return key if isinstance(key, int) and key < len(self._items) else None

    def selectable(self, index: int) -> bool:
        return not isinstance(self._items[index], RunRef)

    def mark(self, index: int) -> str | None:
        return None

    def plain(self, index: int) -> str:
        item = self._items[index]
        if isinstance(item, RunRef):
            return item.address
        return f"{item.name} {item.path} {item.before}{item.match}{item.after}"

    def line(self, index: int, width: int) -> Line:
        item = self._items[index]
        return tuple(fit(self._run(item) if isinstance(item, RunRef) else self._hit(item, width), width))

    def _run(self, ref: RunRef) -> Line:
        run = self._summary(ref)
        if run is None:
            return (Piece(clean(ref.address, 300), "sec"),)
        sign, style = status_glyph(run.status, self._glyphs)
        return (
            Piece(sign, style),
            Piece(Clean(" ")),
            Piece(truncate(called(run), 60), "text bold"),
            Piece(Clean(f" {short_id(run.id)}"), "sec"),
            Piece(Clean(f"  {one_line(run.prompt, 120)}"), "dim"),
        )

    def _hit(self, hit: Hit, width: int) -> Line:
        step = f"{hit.step}" if hit.step is not None else ""
        path = truncate_middle(one_line(hit.path, 120), max(_LEAST_PATH, width * 3 // 8))  # both ends tell something
        head: Line = (
            Piece(Clean(f"{step:>6} "), "dim"),
            Piece(truncate(one_line(hit.name or "run", 40), max(_LEAST_PATH, width // 5)), "text"),
            Piece(Clean(f" {path}  "), "dim"),
        )
        room = max(0, width - width_of(head) - len(hit.match))
        before = one_line(hit.before, 200)
        if len(before) > room // 2:
            before = Clean(f"{self._glyphs.cut}{before[len(before) - room // 2 :]}") if room > 1 else Clean("")
        gap = Clean(" ") if before and hit.before[-1:].isspace() else Clean("")
        lead = Clean(" ") if hit.after[:1].isspace() else Clean("")
        return (
            *head,
            Piece(Clean(before + gap), "sec"),
            Piece(one_line(hit.match, 200), "hit"),
            Piece(Clean(lead + one_line(hit.after, 300)), "sec"),
        )

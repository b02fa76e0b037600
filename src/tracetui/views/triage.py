"""The triage as rows: the queue of signatures, each unfolding to its runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis.cause import Cause
from tracetui.analysis.triage import Group
from tracetui.model import RunRef, RunSummary
from tracetui.store.judgement import Judgement
from tracetui.text import Clean
from tracetui.views.arrange import moment
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import one_line
from tracetui.views.naming import short_id
from tracetui.views.rows import Fold, Line, Piece, column, fill, fit

PLACEHOLDER: Final = re.compile(r"<[a-z]+>")
"""What stands in a normalised text for what was taken out of it."""

LETTERS: Final = {"real": "r", "flaky": "f", "known": "k", "ignore": "i"}
"""Verdicts as the key that gives them."""

Judged = Callable[[Group | RunRef], Judgement]
"""What was judged of a signature, or of a run (by itself or by its signature)."""


class Member(NamedTuple):
    """A run in the queue, below its signature."""

    group: Group
    run: RunRef


class QueueRows:
    """See `tracetui.views.rows.Rows`. The key of a row is the key of a signature, or the reference of a run."""

    def __init__(
        self,
        groups: Sequence[Group],
        runs: Mapping[RunRef, RunSummary],
        judged: Judged,
        *,
        unfolded: Collection[Hashable] = (),
        now: float,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        self._runs, self._judged, self._unfolded, self._now, self._glyphs = runs, judged, unfolded, now, glyphs
        self._items: list[Group | Member] = []
        for group in groups:
            self._items.append(group)
            if group.digest in unfolded:
                self._items.extend(Member(group, ref) for ref in group.runs if ref in runs)
        self._index = {_key(item): i for i, item in enumerate(self._items)}

    def __len__(self) -> int:
        return len(self._items)

    def item(self, index: int) -> Group | Member | None:
        """The signature or the run of a row; None beyond the last."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def key(self, index: int) -> Hashable:
        return _key(self._items[index])

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def selectable(self, index: int) -> bool:
        return True

    def mark(self, index: int) -> str | None:
        item = self._items[index]
        undecided = isinstance(item, Group) and self._judged(item).verdict is None
        return "status.error" if undecided else None

    def fold(self, index: int) -> Fold | None:
        """What unfolding a signature means; None for a run."""
        item = self._items[index]
        return Fold(_key(item), _key(item) in self._unfolded) if isinstance(item, Group) else None

    def plain(self, index: int) -> str:
        item = self._items[index]
        if isinstance(item, Group):
            told = self._judged(item)
            return f"{item.id} {item.title} {told.verdict or ''} {told.note or ''} {' '.join(told.tags)}"
        run = self._runs[item.run]
        return f"{run.id} {run.name} {run.first_error.words if run.first_error else ''}"

    def line(self, index: int, width: int) -> Line:
        item = self._items[index]
        return self._group(item, width) if isinstance(item, Group) else self._member(item, width)

    def _group(self, group: Group, width: int) -> Line:
        told = self._judged(group)
        decided = told.verdict is not None
        mark = self._glyphs.unfolded if group.digest in self._unfolded else self._glyphs.folded
        room = max(8, width - _TAIL - 3)
        words = [*_verdict_mark(told, self._glyphs), Piece(Clean(f" {mark} "), "dim")]
        words += fill(_title_pieces(group.cause, quiet=decided), room)
        return tuple(fit([*words, *self._numbers(group)], width))

    def _numbers(self, group: Group) -> list[Piece]:
        last = None if group.last_seen is None else max(0.0, self._now - group.last_seen)
        return [
            column(text.count(len(group.runs)), 5, "text bold", right=True),
            column(text.duration(group.wasted_ms), 7, "status.warn", right=True),
            column(text.age(last), 6, "dim", right=True),
        ]

    def _member(self, member: Member, width: int) -> Line:
        run = self._runs[member.run]
        told = self._judged(member.run)
        own = told if told.source == "run" else Judgement()
        mark = _verdict_mark(own, self._glyphs) if own.verdict else [Piece(Clean(" "))]
        words = [
            *mark,
            Piece(Clean(f"   {self._glyphs.error} "), "status.error"),
            column(short_id(run.id, 9), 10, "sec"),
            Piece(one_line(run.agent or run.name, 40), "text"),
            *_said(told),
            Piece(Clean(f"  {one_line(run.label or run.prompt, 120)}"), "dim"),
        ]
        age = max(0.0, self._now - moment(run))
        tail = [
            column(text.duration(run.duration_ms), 12, "sec", right=True),
            column(text.age(age), 6, "dim", right=True),
        ]
        return tuple(fit([*fill(words, max(8, width - _TAIL + 1)), *tail], width))


def _said(told: Judgement) -> list[Piece]:
    """Tags and note of a run."""
    words = [Piece(Clean(f"  #{one_line(tag, 40)}"), "accent") for tag in told.tags]
    return [*words, Piece(Clean(f"  {one_line(told.note, 60)}"), "sec")] if told.note else words


_TAIL: Final = 19
"""Cells of the numbers at the end of a row, and one blank."""


def heading(width: int) -> Line:
    """The names of the columns of the queue."""
    words = fill([Piece(Clean("    signature"), "dim")], max(8, width - _TAIL + 1))
    return tuple(fit([*words, Piece(Clean(" runs   lost  last"), "dim")], width))


def placeholders(words: str, style: str) -> list[Piece]:
    """A normalised text in pieces: what stands for something else is told apart."""
    pieces, at, whole = [], 0, one_line(words, 400)
    for match in PLACEHOLDER.finditer(whole):
        pieces += [Piece(Clean(whole[at : match.start()]), style), Piece(Clean(match.group()), "status.warn")]
        at = match.end()
    return [piece for piece in (*pieces, Piece(Clean(whole[at:]), style)) if piece.text]


def _title_pieces(cause: Cause, *, quiet: bool) -> list[Piece]:
    kind = cause.type or cause.name or "failed"
    pieces = [Piece(one_line(kind, 60), "sec" if quiet else "status.error bold")]
    if cause.type and cause.name and cause.name != cause.type:
        pieces.append(Piece(Clean(f" {one_line(cause.name, 60)}"), "sec" if quiet else "text"))
    if cause.text and cause.text != kind:
        pieces += [Piece(Clean("  ")), *placeholders(cause.text, "dim")]
    return pieces


def _verdict_mark(told: Judgement, glyphs: Glyphs) -> list[Piece]:
    if told.verdict is None:
        return [Piece(glyphs.zero, "status.error bold")]
    return [Piece(Clean(LETTERS[told.verdict.value]), "accent bold")]


def _key(item: Group | Member) -> Hashable:
    return item.digest if isinstance(item, Group) else item.run

"""The changes of a comparison in words, as rows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from tracetui.analysis.diff_description import DiffDescription, Phrase, phrase_steps, rest_lines
from tracetui.diff.comparison import Diff
from tracetui.diff.step import Kind
from tracetui.text import Clean, cells
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Line, Piece, Rows, fill, fit, width_of

STYLES: Final = {Kind.ONLY_A: "diff.rem", Kind.ONLY_B: "diff.add"}
_LABEL: Final = 40
"""Maximum cells of the changes before their details."""


class PhraseRows(Rows):
    """Rows of the changes; see `tracetui.views.rows.Rows`."""

    def __init__(self, diff: Diff, description: DiffDescription, *, glyphs: Glyphs = UNICODE) -> None:
        self.phrases = description.phrases
        self._diff, self._glyphs = diff, glyphs
        self._rest = rest_lines(description)
        longest = max((cells(phrase.text) for phrase in description.phrases), default=0)
        self._label = min(_LABEL, longest) + 2

    def __len__(self) -> int:
        return len(self.phrases) + len(self._rest)

    def key(self, index: int) -> Hashable:
        if index >= len(self.phrases):
            return index - len(self.phrases)
        phrase = self.phrases[index]
        return phrase.kind, phrase.plural or phrase.singular

    def index(self, key: Hashable) -> int | None:
        return next((index for index in range(len(self)) if self.key(index) == key), None)

    def selectable(self, index: int) -> bool:
        return index < len(self.phrases)

    def plain(self, index: int) -> str:
        if index >= len(self.phrases):
            return self._rest[index - len(self.phrases)]
        phrase = self.phrases[index]
        return f"{phrase.text}  {phrase.detail}  {phrase_steps(self._diff, phrase)}".strip()

    def line(self, index: int, width: int) -> Line:
        if index >= len(self.phrases):
            return tuple(fit([Piece(Clean(f"  {self._rest[index - len(self.phrases)]}"), "dim")], width))
        phrase = self.phrases[index]
        steps = phrase_steps(self._diff, phrase)
        head = [Piece(Clean(f"{self._sign(phrase)} "), f"{STYLES.get(phrase.kind, 'diff.chg')} bold")]
        head.append(Piece(phrase.text, "text bold"))
        if width >= self._label + 30:
            head = [*fill(head, self._label + 2)]
        else:
            head.append(Piece(Clean("  ")))
        room = max(0, width - cells(steps) - 1)
        left = list(fit([*head, Piece(phrase.detail, "sec")], room))
        return (*left, Piece(Clean(" " * (max(0, width - width_of(left) - cells(steps))))), Piece(steps, "dim"))

    def _sign(self, phrase: Phrase) -> Clean:
        glyphs = self._glyphs
        signs = {Kind.ONLY_A: glyphs.only_a, Kind.ONLY_B: glyphs.only_b}
        signs |= {Kind.MOVED: glyphs.edited, Kind.INPUT: glyphs.edited}
        return signs.get(phrase.kind, glyphs.changed)

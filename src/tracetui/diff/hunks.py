"""Two texts compared as people read them: by lines first, then by words inside the lines that changed.

Nothing is cut. Words that stay the same between two changes are shown as changed where they are fewer than `FEW`: an
edit is read better in one piece than in crumbs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from tracetui.diff.sequence import Block, blocks_of

FEW: Final = 3
WORD_BITS: Final = 100_000_000
"""The most cells of one table of words: 13 MB."""
_SMALL: Final = 0.15
"""Where less of two blocks of lines is the same, they are shown as replaced: words would only confuse."""
_TOKEN: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|\w+|\s+|[^\w\s]"
)
"""Words; characters of scripts that are written without blanks count as one each."""


class Piece(NamedTuple):
    """Some text of a line, and whether it is only on this side."""

    text: str
    changed: bool


Line = tuple[Piece, ...]


class Hunk(NamedTuple):
    """A stretch of lines that are the same, or that stand against each other."""

    same: bool
    at_a: int
    """Number of its first line in A, from 0."""
    at_b: int
    a: tuple[Line, ...]
    b: tuple[Line, ...]


class TextDiff(NamedTuple):
    """The whole of both texts, in order. `bounded`: the shortest difference was too expensive to find."""

    hunks: list[Hunk]
    bounded: bool = False

    @property
    def changed(self) -> list[int]:
        """Positions of the hunks that differ."""
        return [i for i, hunk in enumerate(self.hunks) if not hunk.same]


def text_diff(a: str, b: str) -> TextDiff:
    """Compare two texts; lines end at ``\\n``."""
    left, right = a.split("\n"), b.split("\n")
    found = blocks_of(left, right)
    bounded = found.bounded
    hunks: list[Hunk] = []
    for block in found.blocks:
        lines_a, lines_b = left[block.a0 : block.a1], right[block.b0 : block.b1]
        if block.same:
            same = tuple((Piece(line, False),) for line in lines_a)
            hunks.append(Hunk(True, block.a0, block.b0, same, same))
        elif not lines_a or not lines_b:
            hunks.append(Hunk(False, block.a0, block.b0, _whole(lines_a), _whole(lines_b)))
        else:
            words_a, words_b, cut = _words(lines_a, lines_b)
            bounded = bounded or cut
            hunks.append(Hunk(False, block.a0, block.b0, words_a, words_b))
    return TextDiff(hunks, bounded)


def _whole(lines: Sequence[str]) -> tuple[Line, ...]:
    return tuple((Piece(line, True),) for line in lines)


def _words(a: Sequence[str], b: Sequence[str]) -> tuple[tuple[Line, ...], tuple[Line, ...], bool]:
    left, right = _TOKEN.findall("\n".join(a)), _TOKEN.findall("\n".join(b))
    found = blocks_of(left, right, bits=WORD_BITS)
    blocks = _merged(found.blocks, left)
    texts = [(block.same, "".join(left[block.a0 : block.a1]), "".join(right[block.b0 : block.b1])) for block in blocks]
    kept = sum(len(text) - text.count(" ") for same, text, _ in texts if same)
    if kept < _SMALL * min(sum(map(len, a)), sum(map(len, b))):
        return _whole(a), _whole(b), found.bounded
    one = _lines([(same, text) for same, text, _ in texts])
    return one, _lines([(same, text) for same, _, text in texts]), found.bounded


def _merged(blocks: list[Block], words: Sequence[str]) -> list[Block]:
    """Blocks without the crumbs: short stretches that are the same, between two changes."""
    merged: list[Block] = []
    for place, block in enumerate(blocks):
        crumb = block.same and 0 < place < len(blocks) - 1 and _is_crumb(words[block.a0 : block.a1])
        if merged and not merged[-1].same and (crumb or not block.same):
            merged[-1] = merged[-1]._replace(a1=block.a1, b1=block.b1)
        else:
            merged.append(block)
    return merged


def _is_crumb(words: Sequence[str]) -> bool:
    return len(words) < FEW and not any("\n" in word for word in words) and sum(map(len, words)) < 12


def _lines(parts: Sequence[tuple[bool, str]]) -> tuple[Line, ...]:
    lines: list[Line] = []
    line: list[Piece] = []
    for same, text in parts:
        first, *rest = text.split("\n")
        if first:
            line.append(Piece(first, not same))
        for more in rest:
            lines.append(tuple(line))
            line = [Piece(more, not same)] if more else []
    return (*lines, tuple(line))

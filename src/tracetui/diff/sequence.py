"""Compare sequences: the longest common subsequence of any two lists, and the difference of two texts built on it.

Common ends are trimmed first; the rest goes to a bit-parallel algorithm that costs N*M/8 bytes. Where that is too much,
items that occur exactly once in both divide the lists (patience diff), and parts that are still too large count as
replaced. The answer for ``(b, a)`` is the mirror of that for ``(a, b)``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from rapidfuzz.distance import Indel

BITS: Final = 500_000_000
"""Maximum cells of one comparison table: 63 MB."""


class Block(NamedTuple):
    """``a[a0:a1]`` corresponds to ``b[b0:b1]``: equal items, or a replacement (either may be empty)."""

    same: bool
    a0: int
    a1: int
    b0: int
    b1: int


class Blocks(NamedTuple):
    """Alternating equal and changed blocks, in order. `bounded`: an optimal result was too expensive."""

    blocks: list[Block]
    bounded: bool = False


def blocks_of(a: Sequence[Hashable], b: Sequence[Hashable], *, bits: int = BITS) -> Blocks:
    """Align `a` and `b` by their longest common subsequence."""
    head, tail = _common_ends(a, b)
    end_a, end_b = len(a) - tail, len(b) - tail
    pairs: list[tuple[int, int, int]] = [(0, 0, head)] if head else []
    bounded = False
    if head < end_a and head < end_b:
        swap = repr(a[head]) > repr(b[head])  # they differ: a canonical order of a and b
        first, second = (b, a) if swap else (a, b)
        ends = (end_b, end_a) if swap else (end_a, end_b)
        found, bounded = _middle(first, second, head, head, *ends, bits)
        pairs += [(j, i, size) for i, j, size in found] if swap else found
    if tail:
        pairs.append((end_a, end_b, tail))
    return Blocks(_alternating(pairs, len(a), len(b)), bounded)


def _common_ends(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int]:
    most = min(len(a), len(b))
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), most)
    most -= head
    tail = 0
    while tail < most and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return head, tail


def _middle(
    a: Sequence[Hashable], b: Sequence[Hashable], a0: int, b0: int, a1: int, b1: int, bits: int
) -> tuple[list[tuple[int, int, int]], bool]:
    """Runs of common items ``(index in a, index in b, length)`` in ``a[a0:a1]`` and ``b[b0:b1]``."""
    if a0 == a1 or b0 == b1:
        return [], False
    if a1 - a0 == b1 - b0 == 1:
        return ([(a0, b0, 1)] if a[a0] == b[b0] else []), False
    if (a1 - a0) * (b1 - b0) <= bits:
        names: dict[Hashable, int] = {}
        left = [names.setdefault(item, len(names)) for item in a[a0:a1]]
        right = [names.setdefault(item, len(names)) for item in b[b0:b1]]
        found = Indel.opcodes(left, right)
        return [
            (a0 + op.src_start, b0 + op.dest_start, op.src_end - op.src_start) for op in found if op.tag == "equal"
        ], False
    pairs: list[tuple[int, int, int]] = []
    for i, j in [*_anchors(a, b, a0, b0, a1, b1), (a1, b1)]:
        if (a0, b0) != (a1, b1) and (i - a0) * (j - b0) <= bits:
            pairs += _middle(a, b, a0, b0, i, j, bits)[0]
        if i < a1 or j < b1:
            pairs.append((i, j, 1))
            a0, b0 = i + 1, j + 1
    return pairs, True


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], a0: int, b0: int, a1: int, b1: int) -> list[tuple[int, int]]:
    """Positions of items unique in both lists: a longest subsequence in the same order."""
    left, right = a[a0:a1], b[b0:b1]
    once = {item for item, count in Counter(left).items() if count == 1}
    once &= {item for item, count in Counter(right).items() if count == 1}
    there = {item: b0 + j for j, item in enumerate(right) if item in once}
    places = [(a0 + i, there[item]) for i, item in enumerate(left) if item in once]
    return [places[i] for i in increasing([j for _, j in places])]


def increasing(values: Sequence[int]) -> list[int]:
    """Positions of a longest increasing subsequence of `values`."""
    tops: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for i, value in enumerate(values):
        place = bisect_left(tops, value)
        before.append(tails[place - 1] if place else -1)
        if place == len(tops):
            tops.append(value)
            tails.append(i)
        else:
            tops[place], tails[place] = value, i
    found: list[int] = []
    at = tails[-1] if tails else -1
    while at >= 0:
        found.append(at)
        at = before[at]
    return found[::-1]


def _alternating(pairs: list[tuple[int, int, int]], size_a: int, size_b: int) -> list[Block]:
    """Blocks for runs of common items and the gaps between them, adjacent runs joined."""
    blocks: list[Block] = []
    at_a = at_b = 0
    for i, j, size in [*pairs, (size_a, size_b, 0)]:
        if i > at_a or j > at_b:
            blocks.append(Block(False, at_a, i, at_b, j))
        if size and blocks and blocks[-1].same:
            blocks[-1] = blocks[-1]._replace(a1=i + size, b1=j + size)
        elif size:
            blocks.append(Block(True, i, i + size, j, j + size))
        at_a, at_b = i + size, j + size
    return blocks


# ---- texts: by lines, then by words within changed lines

FEW: Final = 3
"""Fewer equal words between two changes are shown as changed: one larger edit is easier to read."""
WORD_BITS: Final = 100_000_000
"""Maximum cells of one table of words: 13 MB."""
_SMALL: Final = 0.15
"""Below this share of common text, two blocks of lines count as replaced without a word diff."""
_TOKEN: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|\w+|\s+|[^\w\s]"
)
"""Words; in scripts without spaces, each character is one."""


class Piece(NamedTuple):
    """Part of a line, and whether it is only on this side."""

    text: str
    changed: bool


Line = tuple[Piece, ...]


class Hunk(NamedTuple):
    """A block of equal lines, or of changed lines of both sides."""

    same: bool
    at_a: int
    """Index of its first line in A."""
    at_b: int
    a: tuple[Line, ...]
    b: tuple[Line, ...]


class TextDiff(NamedTuple):
    """Both texts completely, in order. `bounded`: a minimal difference was too expensive."""

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
    common = sum(len(text) - text.count(" ") for same, text, _ in texts if same)
    if common < _SMALL * min(sum(map(len, a)), sum(map(len, b))):
        return _whole(a), _whole(b), found.bounded
    one = _lines([(same, text) for same, text, _ in texts])
    return one, _lines([(same, text) for same, _, text in texts]), found.bounded


def _merged(blocks: list[Block], words: Sequence[str]) -> list[Block]:
    """Blocks with crumbs (short equal stretches between two changes) merged into the changes."""
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

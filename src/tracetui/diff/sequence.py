"""The longest common subsequence of two lists of anything hashable, in blocks.

Common ends are trimmed first; the rest goes to a bit-parallel algorithm that costs N*M/8 bytes. Where that is too much,
what occurs exactly once in both divides the lists (patience), and what is still too large counts as replaced.
The answer for ``(b, a)`` is the mirror of that for ``(a, b)``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from rapidfuzz.distance import Indel

BITS: Final = 500_000_000
"""The most cells of one table of comparisons: 63 MB."""


class Block(NamedTuple):
    """``a[a0:a1]`` stands against ``b[b0:b1]``: the same items, or what was replaced (either may be empty)."""

    same: bool
    a0: int
    a1: int
    b0: int
    b1: int


class Blocks(NamedTuple):
    """The blocks in order; same and changed ones alternate. `bounded`: the shortest answer was too expensive."""

    blocks: list[Block]
    bounded: bool = False


def blocks_of(a: Sequence[Hashable], b: Sequence[Hashable], *, bits: int = BITS) -> Blocks:
    """What `a` and `b` have in common, in order."""
    head, tail = _common_ends(a, b)
    end_a, end_b = len(a) - tail, len(b) - tail
    pairs: list[tuple[int, int, int]] = [(0, 0, head)] if head else []
    bounded = False
    if head < end_a and head < end_b:
        swap = repr(a[head]) > repr(b[head])  # they differ: so a and b always come in the same order
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
    """Runs of common items ``(place in a, place in b, length)`` in ``a[a0:a1]`` and ``b[b0:b1]``."""
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
    """Places of the items that are there once in both, as many as keep their order."""
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
    """Runs of common items and what is between them, neighbours joined."""
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

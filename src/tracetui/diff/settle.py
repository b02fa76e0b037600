"""Alignments by header made exact by content: which of several equal calls is the new one, which step only moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from tracetui.diff.align import Pair

SLIDE: Final = 64
"""How far a gap among equal steps is moved at most."""
CANDIDATES: Final = 500
"""Steps that are looked at in search of those that moved."""

Same = Callable[[int, int], bool]
Keys = Sequence[Hashable]


def settled(pairs: list[Pair], keys_a: Keys, keys_b: Keys, same: Same) -> list[Pair]:
    """The pairs with every gap where the contents fit best, and with the steps that merely moved paired.

    `same` says whether the contents of two steps are equal; it is asked about few.
    """
    return _moved(_slid(pairs, keys_a, keys_b, same), keys_a, keys_b, same)


def _slid(pairs: list[Pair], keys_a: Keys, keys_b: Keys, same: Same) -> list[Pair]:
    found = list(pairs)
    start = 0
    while start < len(found):
        end = start
        in_b = found[start].a is None
        while end < len(found) and _only(found[end], in_b):
            end += 1
        if end > start:
            _slide(found, start, end, in_b, keys_b if in_b else keys_a, keys_a if in_b else keys_b, same)
            while end < len(found) and _only(found[end], in_b):  # it slid down
                end += 1
        start = max(end, start + 1)
    return found


def _only(pair: Pair, in_b: bool) -> bool:
    return pair.a is None if in_b else pair.b is None


def _slide(found: list[Pair], start: int, end: int, in_b: bool, own: Keys, other: Keys, same: Same) -> None:
    """Move the gap ``found[start:end]`` (steps of one side) up or down, to where the fewest contents differ."""
    mine = [pair.b if in_b else pair.a for pair in found[start:end]]
    first, size = mine[0], end - start
    if first is None:
        return
    up = _room(found, start - 1, -1, lambda t: _at(own, first + size - 1 - t), in_b, other)
    down = _room(found, end, 1, lambda t: _at(own, first + t), in_b, other)
    if not up and not down:
        return
    region = [*found[start - up : start], *found[end : end + down]]
    theirs = [pair.a if in_b else pair.b for pair in region]

    def differs(t: int, shift: int) -> bool:
        left, right = theirs[t], first - up + shift + t
        return left is not None and not (same(left, right) if in_b else same(right, left))

    above, below = [differs(t, 0) for t in range(up)], [differs(t, size) for t in range(up, up + down)]
    if not any(above) and not any(below):
        return  # it is right where it is
    above += [differs(t, 0) for t in range(up, up + down)]
    below = [differs(t, size) for t in range(up)] + below
    costs = [sum(above[:cut]) + sum(below[cut:]) for cut in range(len(theirs) + 1)]
    cut = min(range(len(costs)), key=lambda place: (costs[place], abs(place - up)))
    made: list[tuple[int | None, int | None]] = [(one, first - up + t) for t, one in enumerate(theirs[:cut])]
    made += [(None, first - up + cut + t) for t in range(size)]
    made += [(one, first - up + size + cut + t) for t, one in enumerate(theirs[cut:])]
    found[start - up : end + down] = [Pair(left, right) if in_b else Pair(right, left) for left, right in made]


def _at(keys: Keys, place: int) -> Hashable:
    return keys[place] if 0 <= place < len(keys) else None


def _room(found: list[Pair], at: int, step: int, key: Callable[[int], Hashable], in_b: bool, other: Keys) -> int:
    """How many pairs next to a gap have the key of the step that would take their place."""
    for count in range(SLIDE):
        place = at + count * step
        if not 0 <= place < len(found):
            return count
        pair = found[place]
        if pair.a is None or pair.b is None or pair.moved or other[pair.a if in_b else pair.b] != key(count):
            return count
    return SLIDE


def _moved(pairs: list[Pair], keys_a: Keys, keys_b: Keys, same: Same) -> list[Pair]:
    """What is on one side only here and, the same, on the other side only elsewhere."""
    gone: dict[Hashable, list[int]] = {}
    for pair in pairs:
        if pair.b is None and pair.a is not None:
            gone.setdefault(keys_a[pair.a], []).append(pair.a)
    if not gone:
        return pairs
    partner: dict[int, int] = {}
    looked = 0
    for pair in pairs:
        if pair.a is None and pair.b is not None and looked < CANDIDATES:
            there = gone.get(keys_b[pair.b], [])
            found = next((i for i in there[:4] if same(i, pair.b)), None)
            looked += len(there[:4])
            if found is not None:
                there.remove(found)
                partner[pair.b] = found
    taken = set(partner.values())
    return [
        Pair(partner[pair.b], pair.b, True) if pair.a is None and pair.b in partner else pair
        for pair in pairs
        if pair.b is not None or pair.a not in taken
    ]

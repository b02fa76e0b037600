"""What a fork or retry ran again: a step that it inherited, and then did itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NamedTuple

from tracetui.diff.sequence import blocks_of
from tracetui.model import INHERITED, Run, Span, Status

_Place = tuple[int | None, str]


class Repeats(NamedTuple):
    """Of A and of B."""

    keys: tuple[dict[int, Hashable], dict[int, Hashable]]
    """What tells a step, by its position: the same for one that was run again and for that of the original."""
    copies: tuple[frozenset[int], frozenset[int]]
    """Inherited copies of these, with all below them: they are the very steps that the original has."""

    def __bool__(self) -> bool:
        return bool(self.copies[0] or self.copies[1])


def repeats(a: Run, b: Run) -> Repeats:
    """What the one of two runs ran again of what it inherited from the other."""
    keys: tuple[dict[int, Hashable], dict[int, Hashable]] = ({}, {})
    copies: tuple[set[int], set[int]] = (set(), set())
    for side, fork, original in ((0, a, b), (1, b, a)):
        for own, there in _run_again(fork, original).items():
            keys[side][own] = keys[1 - side][there] = ("again", side, own)
            copy = fork.index[original.spans[there].id]
            keys[side][copy] = (INHERITED, side, copy)
            copies[side].update(range(copy, copy + fork.sizes[copy]))
    return Repeats(keys, (frozenset(copies[0]), frozenset(copies[1])))


def _run_again(fork: Run, original: Run) -> dict[int, int]:
    """``{position in the fork: position in the original}`` of the steps that the fork inherited and did itself.

    The same superstep and node tell it; else the name of a node that the original ran once, or that failed there. What
    a loop goes on with is not what it did before.
    """
    tops = _tops(fork)
    copies = [place for place in tops if _inherited(fork.spans[place])]
    if not copies:
        return {}
    own = [place for place in _tops(original) if not _inherited(original.spans[place])]
    sources = [original.index.get(fork.spans[place].id) for place in copies]
    inherited = sorted(set(own).intersection(place for place in sources if place is not None))
    exact = {_place(original.spans[i]): i for i in inherited}
    there = {_place(original.spans[i]) for i in own}
    found: dict[int, int] = {}
    rest: list[int] = []
    for place in tops:
        at = _place(fork.spans[place])
        if _inherited(fork.spans[place]):
            continue
        if at in exact:
            found[place] = exact.pop(at)
        elif at not in there:
            rest.append(place)
    times = Counter(original.spans[i].name for i in own)
    left = [i for i in inherited if i in exact.values() and _may_repeat(original.spans[i], times)]
    for block in blocks_of([original.spans[i].name for i in left], [fork.spans[i].name for i in rest]).blocks:
        if block.same:
            found.update(zip(rest[block.b0 : block.b1], left[block.a0 : block.a1], strict=True))
    return found


def _tops(run: Run) -> list[int]:
    return [place for place, depth in enumerate(run.depths) if depth == 0]


def _place(span: Span) -> _Place:
    return span.step, span.name


def _inherited(span: Span) -> bool:
    return INHERITED in span.notes


def _may_repeat(span: Span, times: Counter[str]) -> bool:
    return times[span.name] == 1 or span.status is Status.ERROR

"""Immutable sequences in blocks: a version of a growing sequence shares its unchanged blocks with the one before."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeVar, overload

T = TypeVar("T")

_BITS: Final = 9
BLOCK: Final = 1 << _BITS
"""Elements of each block but the last."""


class Blocks(Sequence[T]):
    """An immutable sequence in blocks of `BLOCK` elements. Equal to any tuple or `Blocks` with the same elements.

    Blocks of an array are arrays, which take less memory.
    """

    __slots__ = ("_blocks", "_count")

    def __init__(self, elements: Iterable[T] = ()) -> None:
        items = tuple(elements)
        self._count = len(items)
        self._blocks: tuple[Sequence[T], ...] = tuple([items[at : at + BLOCK] for at in range(0, len(items), BLOCK)])

    @classmethod
    def _of(cls, blocks: tuple[Sequence[T], ...], count: int) -> Blocks[T]:
        result = cls()
        result._blocks, result._count = blocks, count
        return result

    def updated(self, current: Sequence[T], changed: Iterable[int] = ()) -> Blocks[T]:
        """The newer version `current`, which may be longer, with other elements at `changed`. Copies those blocks."""
        numbers = {position >> _BITS for position in changed if position < self._count}
        if len(current) != self._count:
            numbers.update(range(self._count >> _BITS, (len(current) - 1 >> _BITS) + 1))
        if not numbers:
            return self
        blocks = list(self._blocks)
        for number in sorted(numbers):
            block = current[number << _BITS : (number + 1) << _BITS]
            blocks[number : number + 1] = [block if isinstance(block, array) else tuple(block)]
        return self._of(tuple(blocks), len(current))

    def replaced(self, elements: Mapping[int, T]) -> Blocks[T]:
        """The same sequence with other `elements` at some positions."""
        blocks = list(self._blocks)
        edited: dict[int, list[T]] = {}
        for position, element in elements.items():
            number = position >> _BITS
            if number not in edited:
                edited[number] = list(blocks[number])
            edited[number][position & BLOCK - 1] = element
        for number, block in edited.items():
            blocks[number] = tuple(block)
        return self._of(tuple(blocks), self._count)

    def differing(self, other: Blocks[Any]) -> Iterator[int]:
        """Positions in both sequences at which they differ, ascending. Compares shared blocks as a whole."""
        for number, (own, others) in enumerate(zip(self._blocks, other._blocks, strict=False)):
            if own is not others:
                pairs = enumerate(zip(own, others, strict=False), number << _BITS)
                yield from (position for position, (a, b) in pairs if a is not b and a != b)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if isinstance(at, slice):
            return self._slice(*at.indices(self._count))
        position = at if at >= 0 else at + self._count
        if not 0 <= position < self._count:
            raise IndexError(at)
        return self._blocks[position >> _BITS][position & BLOCK - 1]

    def _slice(self, start: int, stop: int, step: int) -> tuple[T, ...]:
        if step != 1:
            return tuple([self[position] for position in range(start, stop, step)])
        first = start >> _BITS
        blocks = self._blocks[first : (max(start, stop) - 1 >> _BITS) + 1]
        items = tuple(blocks[0] if len(blocks) == 1 else chain.from_iterable(blocks))
        return items[start - (first << _BITS) : max(start, stop) - (first << _BITS)]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._blocks)

    def __reversed__(self) -> Iterator[T]:
        return chain.from_iterable(map(reversed, reversed(self._blocks)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Blocks):
            return self._count == other._count and all(
                a is b or tuple(a) == tuple(b) for a, b in zip(self._blocks, other._blocks, strict=True)
            )
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


class Positions(Mapping[str, int]):
    """The positions of the first `count` ids of a shared, growing dict, so that versions of a run don't copy it."""

    __slots__ = ("_count", "_shared")

    def __init__(self, shared: dict[str, int], count: int) -> None:
        """`shared` only grows, by ids at positions from `count` on."""
        self._shared, self._count = shared, count

    def __getitem__(self, span_id: str) -> int:
        position = self._shared[span_id]
        if position >= self._count:
            raise KeyError(span_id)
        return position

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return iter([span_id for span_id, position in list(self._shared.items()) if position < self._count])

    def __repr__(self) -> str:
        return repr(dict(self))

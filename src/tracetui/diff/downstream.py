"""Trace diverged values downstream: a later difference is a consequence if its input contains one.

Values are traced by text: an input contains a value if it includes its text, is part of it, or shares most of the words
that were new in it. A difference without such a value is independent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from tracetui.diff.values import INPUT, Change

MOST: Final = 200
"""Maximum number of traced values: the first `FIRST`, then the latest."""
FIRST: Final = 50
TEXT: Final = 2_000_000
"""Maximum characters of all traced values."""
_LEAVES: Final = 50
_CHARACTERS: Final = 200_000
_SHORT: Final = 4
_WORD: Final = re.compile(r"\w{4,}|\w*\d\w*")


class _Sides(NamedTuple):
    """A value in A and B: its leaves, and the words that only one side has."""

    a: list[str]
    b: list[str]
    words_a: set[str]
    words_b: set[str]

    @property
    def size(self) -> int:
        """Characters of both sides."""
        return sum(map(len, self.a)) + sum(map(len, self.b))


def _sides(a: list[str], b: list[str]) -> _Sides:
    left, right = _words(a), _words(b)
    return _Sides(a, b, left - right, right - left)


class TaintTracker:
    """The diverged values of both runs. `full`: some are no longer traced."""

    def __init__(self) -> None:
        self._values: list[_Sides] = []
        self._seen: set[int] = set()
        self._size = 0
        self.full = False

    def __bool__(self) -> bool:
        """Whether any value diverged yet."""
        return bool(self._values)

    def add(self, changes: Iterable[Change]) -> None:
        """Add the changes of a diverged row."""
        for change in changes:
            self._put(leaves(change.a), leaves(change.b))

    def add_one_sided(self, values: Iterable[Any], *, in_b: bool) -> None:
        """Add values that only one run has."""
        found = [leaf for value in values for leaf in leaves(value)]
        self._put([], found) if in_b else self._put(found, [])

    def _put(self, a: list[str], b: list[str]) -> None:
        key = hash((*a, None, *b))
        if key in self._seen or not (a or b):
            return
        self._seen.add(key)
        value = _sides(a, b)
        self._values.append(value)
        self._size += value.size
        while len(self._values) > FIRST and (len(self._values) > MOST or self._size > TEXT):
            self._size -= self._values.pop(FIRST).size
            self.full = True

    def reaches(self, changes: Iterable[Change], *, outputs: bool = False) -> bool:
        """Whether the input (with `outputs`, also the output) of a row contains a diverged value."""
        return any(
            self._in(leaves(change.a), leaves(change.b)) for change in changes if outputs or change.side == INPUT
        )

    def reaches_one_sided(self, values: Iterable[Any], *, in_b: bool) -> bool:
        """Whether the input of a row of one run contains a diverged value."""
        found = [leaf for value in values for leaf in leaves(value)]
        return self._in([], found) if in_b else self._in(found, [])

    def _in(self, a: list[str], b: list[str]) -> bool:
        now = _sides(a, b)
        return any(_new_words(now, then) or _contains(now, then) for then in self._values)


def _new_words(now: _Sides, then: _Sides) -> bool:
    """Whether at least half of the words new on one side of an input were new in a diverged value."""
    if not now.a or not now.b:
        return False
    pairs = ((now.words_a, then.words_a), (now.words_b, then.words_b))
    return any(new and 2 * len(new & came) >= len(new) for new, came in pairs)


def _contains(now: _Sides, then: _Sides) -> bool:
    """Whether an input equals, contains, or is part of a diverged value of its side but not of the other side."""
    return _from(now.a, now.b, then.a, then.b) or _from(now.b, now.a, then.b, then.a)


def _from(now: list[str], other: list[str], then: list[str], then_other: list[str]) -> bool:
    for value in now:
        for diverged in then:
            if value == diverged:
                return True
            if len(diverged) >= _SHORT and diverged in value and not any(diverged in one for one in other):
                return True
            if len(value) >= _SHORT and value in diverged and not any(value in one for one in then_other):
                return True
    return False


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text)}


def leaves(value: Any) -> list[str]:
    """The first texts and numbers in a value, deduplicated, in order."""
    found: dict[str, None] = {}
    room = _CHARACTERS
    for text in _leaves(value):
        found[text[:room]] = None
        room -= len(text)
        if room <= 0 or len(found) == _LEAVES:
            break
    return list(found)


def _leaves(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(reversed(item.values()))
        elif isinstance(item, list | tuple):
            todo.extend(reversed(item))
        elif isinstance(item, str):
            if text := item[:_CHARACTERS].strip():
                yield text
        elif item is not None and not isinstance(item, bool):
            yield str(item)

"""How a query is evaluated: column by column over many items, with one test for each distinct value; or item by item.

A mask says of each of some items, in order, whether a part of the query holds. Where values are few, masks are made,
combined and used without a line of Python per item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import compress, repeat
from operator import and_, contains, not_, or_
from typing import Any, Generic, Protocol, TypeVar

from tracetui.store.query.keys import Getter
from tracetui.store.query.syntax import QueryError
from tracetui.store.query.values import Test

T = TypeVar("T")
Mask = Iterable[bool]
"""To be gone through once."""


class Columns(Generic[T]):
    """What took long to find out about items, kept for the next query over the same or nearly the same ones.

    Whoever filters the same runs again and again keeps one. Items must be immutable; what is kept holds on to them.
    """

    def __init__(self) -> None:
        self._items: list[T] = []
        self._whole: dict[str, list[Any]] = {}
        self._known: dict[str, dict[int, Any]] = {}
        self._held: dict[int, T] = {}

    def begin(self, items: list[T]) -> None:
        """A query over `items` begins: forget what is known of others, once that is more than half."""
        if items != self._items:
            self._items, self._whole = items[:], {}
        if len(self._held) > 2 * len(items) + 1_000:
            self._known, self._held = {}, {}

    @property
    def ready(self) -> bool:
        """Whether what is costly to find out is known of all items of this query."""
        return bool(self._whole)

    def of(self, name: str, get: Getter[T], items: list[T]) -> list[Any]:
        """What `get` finds in each of the items; never None. It is asked only of those that are new."""
        everything = len(items) == len(self._items)
        if everything and name in self._whole:
            return self._whole[name]
        known = self._known.setdefault(name, {})
        column = list(map(known.get, map(id, items)))
        if not all(column):
            new = [item for item, value in zip(items, column, strict=True) if value is None]
            places = list(map(id, new))
            known.update(zip(places, map(get, new), strict=True))
            self._held.update(zip(places, new, strict=True))
            column = list(map(known.__getitem__, map(id, items)))
        if everything:
            self._whole[name] = column
        return column


class Part(Protocol[T]):
    """A part of a plan."""

    costly: bool
    """Whether it is better asked last."""

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        """Whether it holds, for each of the items."""

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        """Those that it holds for, in order."""

    def holds(self, item: T) -> bool:
        """Whether it holds for one."""

    def holds_text(self, hay: str) -> bool:
        """Whether it holds for something of which nothing is known but a text in lower case: no key tells anything."""


class _Masked(Generic[T]):
    """Keeps what its mask says."""

    costly = False

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        raise NotImplementedError

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        return list(compress(items, self.mask(items, columns)))


class Compared(_Masked[T]):
    """What a key says, tested. Where there are few distinct values, each is tested once."""

    def __init__(self, get: Getter[T], test: Test, *, few: bool, kept_as: str = "") -> None:
        self._get = get
        self._test = test
        self._few = few
        self._kept_as = kept_as
        self.costly = bool(kept_as)

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        kept = self._kept_as
        column = columns.of(kept, self._get, items) if kept else list(map(self._get, items))
        if self._few:
            told = {value: self._test(value) for value in set(column)}
            return map(told.__getitem__, column)
        return map(self._test, column)

    def holds(self, item: T) -> bool:
        return self._test(self._get(item))

    def holds_text(self, hay: str) -> bool:
        return False


class Found(_Masked[T]):
    """A word found in the text of an item."""

    costly = True

    def __init__(self, hay: Getter[T], word: str) -> None:
        self._hay = hay
        self._word = word

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        return map(contains, columns.of("", self._hay, items), repeat(self._word))

    def holds(self, item: T) -> bool:
        return self._word in self._hay(item)

    def holds_text(self, hay: str) -> bool:
        return self._word in hay


class Without(_Masked[T]):
    """Everything but what a part holds for."""

    def __init__(self, part: Part[T]) -> None:
        self._part = part
        self.costly = part.costly

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        return map(not_, self._part.mask(items, columns))

    def holds(self, item: T) -> bool:
        return not self._part.holds(item)

    def holds_text(self, hay: str) -> bool:
        return not self._part.holds_text(hay)


class Every(_Masked[T]):
    """What all parts hold for: each is asked only of what the one before left.

    What is costly comes last, unless it is known of all items: then asking all is quicker than finding a part of them.
    """

    def __init__(self, parts: Iterable[Part[T]]) -> None:
        self._parts = tuple(parts)
        self.costly = any(part.costly for part in self._parts)

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        masks = (part.mask(items, columns) for part in self._parts)
        return reduce(lambda a, b: list(map(and_, a, b)), masks, [True] * len(items))

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        for part in sorted(self._parts, key=lambda part: part.costly is not columns.ready):
            items = part.keep(items, columns)
        return items

    def holds(self, item: T) -> bool:
        return all(part.holds(item) for part in self._parts)

    def holds_text(self, hay: str) -> bool:
        return all(part.holds_text(hay) for part in self._parts)


class Either(_Masked[T]):
    """What any of the parts holds for."""

    def __init__(self, parts: Iterable[Part[T]]) -> None:
        self._parts = tuple(parts)
        self.costly = any(part.costly for part in self._parts)

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        masks = (part.mask(items, columns) for part in self._parts)
        return reduce(lambda a, b: list(map(or_, a, b)), masks, [False] * len(items))

    def holds(self, item: T) -> bool:
        return any(part.holds(item) for part in self._parts)

    def holds_text(self, hay: str) -> bool:
        return any(part.holds_text(hay) for part in self._parts)


class Query(Generic[T]):
    """A query that was understood. It depends on the moment at which it was made (``since:2h``), and on its context."""

    def __init__(self, text: str, plan: Part[T]) -> None:
        self.text = text
        self._plan = plan

    def select(self, items: Iterable[T], columns: Columns[T] | None = None) -> list[T]:
        """The items that it holds for, in order. With `columns`, what the last query found out is used again."""
        items = items if isinstance(items, list) else list(items)
        columns = columns or Columns()
        columns.begin(items)
        return self._plan.keep(items, columns)

    def matches(self, item: T) -> bool:
        """Whether it holds for one item."""
        return self._plan.holds(item)

    def matches_text(self, text: str) -> bool:
        """Whether it holds for something of which nothing is known but a text: an unreadable file."""
        return self._plan.holds_text(text.lower())


def begun(text: str, make: Callable[[str], Query[T]]) -> tuple[Query[T], QueryError | None]:
    """The query, or what can be understood of it: all before the part that is wrong, and what is wrong with it."""
    first: QueryError | None = None
    while True:
        try:
            return make(text), first
        except QueryError as error:
            first = first or error
            text = text[: min(error.begin, len(text) - 1)]

"""How a query is evaluated: column by column over many items, with one test for each distinct value; or item by item.

A mask says of each of some items, in order, whether a part of the query holds. Where values are few, masks are made,
combined and used without a line of Python per item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import compress, repeat
from operator import and_, contains, not_, or_
from typing import Any, Final, Generic, Protocol, TypeVar

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
        self._known: dict[str, list[Any]] = {}
        self._before: tuple[list[T], dict[str, list[Any]]] = [], {}
        self._ahead: dict[str, list[Any]] = {}

    def begin(self, items: list[T]) -> None:
        """A query over `items` begins."""
        if items != self._items:
            if self._known:
                self._before = self._items, self._known
            self._items, self._known, self._ahead = items[:], {}, {}

    @property
    def ready(self) -> bool:
        """Whether what is costly to find out is known of all items of this query."""
        return bool(self._known)

    def of(self, name: str, get: Getter[T], items: list[T]) -> list[Any]:
        """What `get` finds in each of the items, never None. Where these are all items, only new ones are asked."""
        if len(items) < len(self._items):
            return list(map(get, items))
        if name not in self._known:
            self._known[name] = self._anew(name, get)
        return self._known[name]

    def ahead(self, name: str, get: Getter[T], items: list[T]) -> Iterator[None]:
        """Find out what `of` would, in small steps, before anybody asks; who asks earlier waits for the rest only."""
        self.begin(items)
        if name in self._known or name in self._before[1]:
            return
        column = self._ahead.setdefault(name, [])
        while self._ahead.get(name) is column and len(column) < len(self._items):
            column += map(get, self._items[len(column) : len(column) + _STEP])
            yield

    def _anew(self, name: str, get: Getter[T]) -> list[Any]:
        if begun := self._ahead.pop(name, None):
            return begun + list(map(get, self._items[len(begun) :]))
        items, columns = self._before
        if name not in columns:
            return list(map(get, self._items))
        known = dict(zip(map(id, items), columns[name], strict=True))
        column = list(map(known.get, map(id, self._items)))
        return [get(item) if value is None else value for item, value in zip(self._items, column, strict=True)]


_STEP: Final = 4_000
"""Items of which something is found out ahead in one step: a few milliseconds."""
_MANY: Final = 8
"""What is costly is found out for all items, and kept, unless the other parts leave fewer than one in so many."""


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
        column = columns.of(kept, self._get, items) if kept else map(self._get, items)
        return map(_Told(self._test).__getitem__ if self._few else self._test, column)

    def holds(self, item: T) -> bool:
        return self._test(self._get(item))

    def holds_text(self, hay: str) -> bool:
        return False


class _Told(dict[Any, bool]):
    """What a test says of each value, found out when it is first asked for."""

    def __init__(self, test: Test) -> None:
        self._test = test

    def __missing__(self, value: Any) -> bool:
        found = self[value] = self._test(value)
        return found


def _all_of(masks: Iterable[Mask], count: int) -> Mask:
    return reduce(lambda a, b: list(map(and_, a, b)), masks, [True] * count)


class Found(_Masked[T]):
    """Words in lower case, all of which the text of an item holds, and those of which it holds none."""

    costly = True

    def __init__(self, hay: Getter[T], words: Sequence[str], without: Sequence[str] = ()) -> None:
        self._hay = hay
        self._words = words
        self._without = without

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        hays = columns.of("", self._hay, items)
        there = [map(contains, hays, repeat(word)) for word in self._words]
        not_there = [map(not_, map(contains, hays, repeat(word))) for word in self._without]
        return _all_of((*there, *not_there), len(items))

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        hays = columns.of("", self._hay, items)
        for words, wanted in ((self._words, True), (self._without, False)):
            for word in words:
                found = list(map(contains, hays, repeat(word)))
                chosen = found if wanted else list(map(not_, found))
                items, hays = list(compress(items, chosen)), list(compress(hays, chosen))
        return items

    def holds(self, item: T) -> bool:
        return self.holds_text(self._hay(item))

    def holds_text(self, hay: str) -> bool:
        return all(word in hay for word in self._words) and not any(word in hay for word in self._without)


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
    """What all parts hold for: each is asked only of what the one before left."""

    def __init__(self, parts: Iterable[Part[T]]) -> None:
        self._parts = tuple(parts)
        self._quick = [part for part in self._parts if not part.costly]
        self._slow = [part for part in self._parts if part.costly]
        self.costly = bool(self._slow)

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        return _all_of((part.mask(items, columns) for part in self._parts), len(items))

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        if not columns.ready or not self._slow:
            few = _narrowed(items, self._quick, columns)
            if not self._slow or len(few) * _MANY < len(items):
                return _narrowed(few, self._slow, columns)
        return _narrowed(_narrowed(items, self._slow, columns), self._quick, columns)

    def holds(self, item: T) -> bool:
        return all(part.holds(item) for part in self._parts)

    def holds_text(self, hay: str) -> bool:
        return all(part.holds_text(hay) for part in self._parts)


def _narrowed(items: list[T], parts: Iterable[Part[T]], columns: Columns[T]) -> list[T]:
    for part in parts:
        items = part.keep(items, columns)
    return items


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

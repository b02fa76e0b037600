"""Evaluate queries: column by column over many items, with one test for each distinct value; or item by item.

A mask has one truth for each item, in order: whether a part of the query matches. With few distinct values, masks are
made, combined and applied without running Python code per item.

A store can apply a part of a query before it sends runs. It narrows by its own columns: texts, times, durations. It may
send runs that the query does not match, since the query is applied to what it sends; it never leaves out one that
matches. Terms that it can't decide are no part of the condition.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import compress, repeat
from operator import and_, contains, is_, not_, or_
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from tracetui.model import Operation
from tracetui.sources.base import (
    EVERYTHING,
    All,
    AnyOne,
    Condition,
    LastsAtLeast,
    MayBeScored,
    MayFail,
    Mentions,
    StartsBefore,
    StartsSince,
)
from tracetui.store.query.keys import Getter
from tracetui.store.query.kinds import Test, milliseconds, number, period
from tracetui.store.query.run_keys import RUN_KEYS
from tracetui.store.query.syntax import And, Node, Not, Or, QueryError, Term, Value, Word, parse, unparse

T = TypeVar("T")
Mask = Iterable[bool]
"""Can be iterated once."""


class Columns(Generic[T]):
    """Cache of costly values, for repeated queries over the same or nearly the same items.

    Items must be immutable; the cache keeps references to them.
    """

    def __init__(self) -> None:
        self._items: list[T] = []
        self._cached: dict[str, list[Any]] = {}
        self._previous: tuple[list[T], dict[str, list[Any]]] = [], {}
        self._pending: dict[str, list[Any]] = {}

    def begin(self, items: list[T]) -> None:
        """Begin a query over `items`."""
        if items != self._items:
            if self._cached:
                self._previous = self._items, self._cached
            self._items, self._cached, self._pending = items[:], {}, {}

    @property
    def ready(self) -> bool:
        """Whether costly values of all items of this query are cached."""
        return bool(self._cached)

    def get(self, name: str, get: Getter[T], items: list[T]) -> list[Any]:
        """Return the value of each item, never None. For all items of the query, only new items are computed."""
        if len(items) < len(self._items):
            return list(map(get, items))
        if name not in self._cached:
            self._cached[name] = self._compute(name, get)
        return self._cached[name]

    def ahead(self, name: str, get: Getter[T], items: list[T]) -> Iterator[None]:
        """Compute a column for `of` in advance, in small steps; an earlier `of` computes only the rest."""
        self.begin(items)
        if name in self._cached or name in self._previous[1]:
            return
        column = self._pending.setdefault(name, [])
        while self._pending.get(name) is column and len(column) < len(self._items):
            column += map(get, self._items[len(column) : len(column) + _STEP])
            yield

    def _compute(self, name: str, get: Getter[T]) -> list[Any]:
        if first := self._pending.pop(name, None):
            return first + list(map(get, self._items[len(first) :]))
        items, columns = self._previous
        if name not in columns:
            return list(map(get, self._items))
        values = dict(zip(map(id, items), columns[name], strict=True))
        column = list(map(values.get, map(id, self._items)))
        return [get(item) if value is None else value for item, value in zip(self._items, column, strict=True)]


_STEP: Final = 4_000
"""Items computed in advance per step: a few milliseconds."""
_MANY: Final = 8
"""Costly values are computed and cached for all items unless the other parts leave fewer than one in so many."""


class Part(Protocol[T]):
    """A part of a plan."""

    costly: bool
    """Whether to evaluate it last."""

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        """Return whether each of the items matches."""

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        """Return the matching items, in order."""

    def holds(self, item: T) -> bool:
        """Return whether one item matches."""

    def holds_text(self, hay: str) -> bool:
        """Return whether a text in lower case matches; it has no value for any key."""


class _Masked(Generic[T]):
    """Filters by its mask."""

    costly = False

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        raise NotImplementedError

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        return list(compress(items, self.mask(items, columns)))


class Comparison(_Masked[T]):
    """The value of a key, tested; each distinct value once if values repeat."""

    def __init__(self, get: Getter[T], test: Test, *, repeats: bool, cache_as: str = "") -> None:
        self._get = get
        self._test = test
        self._repeats = repeats
        self._cache_as = cache_as
        self.costly = bool(cache_as)

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        name = self._cache_as
        column = columns.get(name, self._get, items) if name else map(self._get, items)
        return map(_TestResults(self._test).__getitem__ if self._repeats else self._test, column)

    def holds(self, item: T) -> bool:
        return self._test(self._get(item))

    def holds_text(self, hay: str) -> bool:
        return False


class _TestResults(dict[Any, bool]):
    """Results of a test by value, computed on first use."""

    def __init__(self, test: Test) -> None:
        self._test = test

    def __missing__(self, value: Any) -> bool:
        answer = self[value] = self._test(value)
        return answer


def _all_of(masks: Iterable[Mask], count: int) -> Mask:
    return reduce(lambda a, b: list(map(and_, a, b)), masks, [True] * count)


class WordSearch(_Masked[T]):
    """Words in lower case: the text of an item must contain all of `words` and none of `without`."""

    costly = True

    def __init__(self, hay: Getter[T], words: Sequence[str], without: Sequence[str] = ()) -> None:
        self._hay = hay
        self._words = words
        self._without = without

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        hays = columns.get("", self._hay, items)
        there = [map(contains, hays, repeat(word)) for word in self._words]
        not_there = [map(not_, map(contains, hays, repeat(word))) for word in self._without]
        return _all_of((*there, *not_there), len(items))

    def keep(self, items: list[T], columns: Columns[T]) -> list[T]:
        hays = columns.get("", self._hay, items)
        for words, wanted in ((self._words, True), (self._without, False)):
            for word in words:
                contained = list(map(contains, hays, repeat(word)))
                chosen = contained if wanted else list(map(not_, contained))
                items, hays = list(compress(items, chosen)), list(compress(hays, chosen))
        return items

    def holds(self, item: T) -> bool:
        return self.holds_text(self._hay(item))

    def holds_text(self, hay: str) -> bool:
        return all(word in hay for word in self._words) and not any(word in hay for word in self._without)


class Negation(_Masked[T]):
    """Everything that a part doesn't match."""

    def __init__(self, part: Part[T]) -> None:
        self._part = part
        self.costly = part.costly

    def mask(self, items: list[T], columns: Columns[T]) -> Mask:
        return map(not_, self._part.mask(items, columns))

    def holds(self, item: T) -> bool:
        return not self._part.holds(item)

    def holds_text(self, hay: str) -> bool:
        return not self._part.holds_text(hay)


class AllOf(_Masked[T]):
    """Everything that all parts match; each part tests only the matches of the one before."""

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


class AnyOf(_Masked[T]):
    """Everything that any of the parts matches."""

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
    """A parsed query. It depends on the time of its parsing (``since:2h``) and on its context.

    `mask` returns an item as the reader may see it, which is what the query matches; None: every item as it is.
    """

    def __init__(self, text: str, plan: Part[T], mask: Callable[[T], T] | None = None) -> None:
        self.text = text
        self._plan = plan
        self._mask = mask

    def select(self, items: Iterable[T], columns: Columns[T] | None = None) -> list[T]:
        """Return the matching items, in order. `columns` caches values between queries."""
        items = items if isinstance(items, list) else list(items)
        masked = items if self._mask is None else [*map(self._mask, items)]
        columns = columns or Columns()
        columns.begin(masked)
        if all(map(is_, items, masked)):
            return self._plan.keep(items, columns)
        return [*compress(items, self._plan.mask(masked, columns))]

    def matches(self, item: T) -> bool:
        """Return whether one item matches."""
        return self._plan.holds(item if self._mask is None else self._mask(item))

    def matches_text(self, text: str) -> bool:
        """Return whether a bare text matches, such as that of an unreadable file."""
        return self._plan.holds_text(text.lower())


def parse_prefix(text: str, make: Callable[[str], Query[T]]) -> tuple[Query[T], QueryError | None]:
    """Return the query, or its valid beginning and the error in the rest."""
    first: QueryError | None = None
    while True:
        try:
            return make(text), first
        except QueryError as error:
            first = first or error
            text = text[: min(error.begin, len(text) - 1)]


_PIECE: Final = re.compile(r"[A-Za-z0-9_]+")
_FAILED: Final = AnyOne((MayFail(), MayBeScored()))
_FACTS: Final[dict[str, Condition]] = {"failed": _FAILED, "error": _FAILED, "errors": MayFail()}
_OTHERS: Final = frozenset({"relation", "task", "signature", "verdict", "note", "tag"})
"""Keys with values that depend on other runs, or on the user's decisions on them."""
_OTHER_FACTS: Final = frozenset({"replay", "repeat", "copy", "repeats", "original", "running"})
_NAMES: Final = frozenset({"agent", "model", "tool", "name", "id"})
_DEFAULTS: Final = ("trace", *Operation)
"""Names of runs and spans that the trace does not name."""
_MARGIN: Final = 1e-5
"""Seconds, for what rounding changes."""


class Candidates(NamedTuple):
    """The runs to request from a store."""

    condition: Condition
    rest: tuple[str, ...]
    """Parts of the query that the condition leaves out."""


def candidates(text: str, *, now: float | None = None) -> Candidates:
    """Return the condition of a query for runs. Raises `QueryError`."""
    node = parse(text)
    if any(_depends_on_others(term) for term in _terms(node)):
        return Candidates(EVERYTHING, (text,))
    parts = node.parts if isinstance(node, And) else (node,)
    conditions = [(part, _condition(part, time.time() if now is None else now)) for part in parts]
    condition = All(tuple(tested for _, tested in conditions if tested is not None))
    return Candidates(condition, tuple(unparse(part) for part, tested in conditions if tested is None))


def _terms(node: Node) -> list[Term]:
    if isinstance(node, Term):
        return [node]
    if isinstance(node, Not):
        return _terms(node.part)
    return [] if isinstance(node, Word) else [term for part in node.parts for term in _terms(part)]


def _depends_on_others(term: Term) -> bool:
    key = RUN_KEYS.find(term.key)
    name = term.key if key is None else key.name
    return name in _OTHERS or (
        name in ("is", "has") and any(value.text in _OTHER_FACTS | _OTHERS for value in term.values)
    )


def _condition(node: Node, now: float) -> Condition | None:
    """The condition for a part of the query; None if a store can't test it."""
    if isinstance(node, Or):
        conditions = [_condition(part, now) for part in node.parts]
        return (
            None
            if None in conditions
            else AnyOne(tuple(alternative for alternative in conditions if alternative is not None))
        )
    if isinstance(node, And):
        return All(
            tuple(
                part_condition
                for part_condition in (_condition(part, now) for part in node.parts)
                if part_condition is not None
            )
        )
    if not isinstance(node, Term):
        return None
    key = RUN_KEYS.find(node.key)
    if key is None:
        return None
    try:
        tests = [_compared(key.name, node.compare, value, now) for value in node.values]
    except (ValueError, OverflowError, OSError):  # a wrong value, which the query itself reports
        return None
    return None if None in tests else AnyOne(tuple(test for test in tests if test is not None))


def _compared(key: str, compare: str, value: Value, now: float) -> Condition | None:
    text = value.text.lower()
    if not value.quoted and text == "none":
        return None
    if key == "status":
        return MayFail() if text == "error" else None
    if key in ("is", "has"):
        return _FACTS.get(text)
    if key == "outcome" or key == "score":
        return MayBeScored()
    if key == "errors":
        least = number(value.text)
        return MayFail() if compare in (":", "=", ">", ">=") and (least > 0 or (compare == ">" and not least)) else None
    if key == "dur":
        return LastsAtLeast(milliseconds(value.text)) if compare in (":", "=", ">", ">=") else None
    if key in ("since", "before", "until", "on"):
        return _time(key, *period(value.text, now))
    if key == "error":
        mentions = _mentions(value)
        return AnyOne((MayBeScored(), All((MayFail(), mentions)))) if mentions is not None else _FAILED
    if key in _NAMES and not any(default in text or text in default for default in _DEFAULTS):
        return _mentions(value)
    return _mentions(value) if key == "prompt" else None


def _time(key: str, begin: float, end: float) -> Condition:
    since, before = StartsSince(begin - _MARGIN), StartsBefore(end + _MARGIN)
    if key == "since":
        return since
    if key == "before":
        return StartsBefore(begin + _MARGIN)
    return before if key == "until" else All((since, before))


def _mentions(value: Value) -> Mentions | None:
    """The longest piece of a text that every store writes unchanged."""
    pieces = _PIECE.findall(value.text)
    return Mentions(max(pieces, key=len)) if pieces else None

"""Keys of the query language.

`run_keys` and `span_keys` are tables of keys; everything else follows from a table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import msgspec

from tracetui.errors import UsageError, nearest
from tracetui.store.query.kinds import NONE, Kind, Operand, Test, pattern
from tracetui.store.query.syntax import QueryError, Term, Value

T = TypeVar("T")
Getter = Callable[[T], Any]
"""Returns the value of a run or span: None, a string, a number, a truth, or a tuple of them, any of which may match."""
Source = Callable[[Any], Getter[T]]
"""Returns a getter for a context."""


class Fact(msgspec.Struct, Generic[T], frozen=True):
    """A yes-or-no property: a word that ``is:`` or ``has:`` takes."""

    about: str
    get: Source[T]


class Key(msgspec.Struct, Generic[T], frozen=True):
    """One key: its names, its getter, and its text for help, completion and documentation."""

    name: str
    kind: Kind
    get: Source[T]
    about: str
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """Completions of a key without countable values."""
    choices: tuple[str, ...] = ()
    """The allowed values besides `none`; empty: any."""
    choices_of: Callable[[Any], Collection[str]] | None = None
    """The allowed values, if they depend on the context."""
    facts: Mapping[str, Fact[T]] = {}
    fold: Callable[[str], str] = str.lower
    """Normalizes names: names with equal results are equal."""
    unique: bool = False
    """Whether values rarely repeat, though those of its kind do."""
    cache_as: str = ""
    """Name of the column that caches a costly value between queries; empty: not cached."""
    common: bool = False
    """Whether items that have `Table.common` in common have this value in common: the getter takes that as well."""
    facet: bool = False
    """Whether its values can be picked from a list."""
    offered: Source[T] | None = None
    """Getter of the values to pick and complete, if it isn't `get`; text and id keys complete only with one."""
    offers_none: bool = False
    """Whether `none` can be picked as well."""

    @property
    def repeats(self) -> bool:
        """Whether values repeat so often that each distinct one is tested once."""
        return not self.unique and self.kind.value.repeats


class Table(Generic[T]):
    """The keys for one kind of item, the getter of the text that free words search, and that of the part that many
    items have in common.
    """

    def __init__(self, keys: tuple[Key[T], ...], hay: Getter[T], common: Getter[T] | None = None) -> None:
        self.keys = keys
        self.hay = hay
        self.common = common
        self._by_name = {name: key for key in keys for name in (key.name, *key.aliases)}

    def find(self, name: str) -> Key[T] | None:
        """Return the key with that name or alias."""
        return self._by_name.get(name)

    def like(self, name: str) -> str | None:
        """Return the key name most like a misspelled `name`."""
        return nearest(name, self._by_name)

    def names(self) -> Iterator[str]:
        """Yield every name and alias, the names first."""
        yield from (key.name for key in self.keys)
        yield from (alias for key in self.keys for alias in key.aliases)


def recorded(*names: str) -> Source[Any]:
    """Return the source of recorded fields, by attribute name."""
    return lambda context: attrgetter(*names)


def computed(get: Getter[T]) -> Source[T]:
    """Return the source of a value computed from the item alone."""
    return lambda context: get


def has_value(value: Any) -> bool:
    """Return whether a value is there: zero is, None and empty text aren't."""
    if isinstance(value, tuple):
        return any(has_value(part) for part in value)
    return value is not None and value != ""


def has_key(keys: tuple[Key[T], ...], more: Mapping[str, Fact[T]]) -> Key[T]:
    """Return the key ``has``, with a fact for each key; `more` overrides them."""
    facts = {
        key.name: Fact(key.about, _has_value(key)) for key in keys if key.kind not in (Kind.TIME, Kind.FACT, Kind.TRUTH)
    }
    about = "takes the name of another key: the run has a value for it"
    return Key("has", Kind.FACT, computed(has_value), about, facts=dict(sorted({**facts, **more}.items())))


def _has_value(key: Key[T]) -> Source[T]:
    def source(context: Any) -> Getter[T]:
        get = key.get(context)
        return lambda item: has_value(get(item))

    return source


_MAX_CHOICES: Final = 8


def test_of(key: Key[Any], term: Term, now: float, end: int) -> Test:
    """Return the test for a term of a key that isn't a fact. `end` is where the query ends.

    Raises `QueryError` for a value or comparison that the key doesn't take.
    """
    if term.compare not in ":=" and not key.kind.value.ordered:
        instead = "NAME" + term.compare if key.kind is Kind.SCORE else ""
        message = f"`{key.name}` isn't a number; write `{key.name}:{instead}…` instead of `{term.compare}`"
        raise QueryError(message, term.at + len(term.key), begin=term.at)
    tests = [_test(key, term, value, now, end) for value in term.values]
    return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)


def one_of(key: Key[Any], choices: Collection[str], term: Term, value: Value, end: int) -> str:
    """Return the choice that a value names. Raises `QueryError` if no choice has that name."""
    name = key.fold(value.text)
    if term.compare in ":=":
        if name in choices:
            return name
        if key.kind is not Kind.FACT and _fits_any(value, choices):
            return name
    like = nearest(name, choices)
    unfinished = term.end == end and any(choice.startswith(name) for choice in choices)
    allowed = ", ".join(list(choices)[:_MAX_CHOICES]) + (" …" if len(choices) > _MAX_CHOICES else "")
    hint = f"did you mean `{like}`?" if like else f"use {allowed}"
    message = f"`{key.name}:` has no value `{value.text}`; {hint}"
    raise QueryError(message, value.at, unfinished=unfinished, begin=term.at)


def _fits_any(value: Value, choices: Collection[str]) -> bool:
    """Return whether a value is `none` or a pattern that matches a choice."""
    fits = pattern(value)
    return any(map(fits, choices)) if fits else not value.quoted and value.text.lower() == NONE


def _test(key: Key[Any], term: Term, value: Value, now: float, end: int) -> Test:
    if key.choices:
        one_of(key, key.choices, term, value, end)
    values, is_last = key.kind.value, term.end == end
    try:
        return values.test(Operand(key.name, key.fold, term.compare, value, now))
    except UsageError as error:
        raise QueryError(str(error), value.at, unfinished=is_last, begin=term.at) from None
    except (ValueError, KeyError, OverflowError, OSError):
        unfinished = is_last and values.unfinished is not None and values.unfinished.fullmatch(value.text) is not None
        message = f"`{key.name}` doesn't take `{value.text}`; write {values.expects}"
        raise QueryError(message, value.at, unfinished=unfinished, begin=term.at) from None

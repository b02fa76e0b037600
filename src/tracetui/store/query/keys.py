"""Keys of the query language. `run_keys` and `span_keys` are tables of them; everything else follows from a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import msgspec

from tracetui.errors import nearest

T = TypeVar("T")
Getter = Callable[[T], Any]
"""Returns the value of a run or span: None, a string, a number, a truth, or a tuple of them, any of which may match."""
Source = Callable[[Any], Getter[T]]
"""Returns a getter for a context."""


class Kind(StrEnum):
    """How the values of a key are compared."""

    NAME = "name"
    TEXT = "text"
    ID = "id"
    NUMBER = "number"
    DURATION = "duration"
    TIME = "time"
    TRUTH = "truth"
    SCORE = "score"
    CAUSE = "cause"
    FACT = "fact"


MEASURES: Final = frozenset({Kind.NUMBER, Kind.DURATION})
"""Kinds that `<` and `>` compare."""

ABOUT_KINDS: Final = {
    Kind.NAME: "the whole value, in any case: `tool:bash`; `none` where there is none",
    Kind.TEXT: 'a part of the text, in any case: `error:"timed out"`; with `=` all of it',
    Kind.ID: "the beginning of the id; with `=` all of it",
    Kind.NUMBER: "a number, with `<`, `<=`, `>`, `>=` or `:`: `tokens>10k`, `tokens<2M`",
    Kind.DURATION: "a duration: `250ms`, `5s`, `2m`, `1h30m`, `3d`, `1w`; a bare number counts seconds",
    Kind.TIME: "ago (`2h`, `3d`), `today`, `yesterday`, `09:30`, a date (`2026-11-20`, `2026-11`, `2026-11-20T18:00`)",
    Kind.TRUTH: "`true` or `false`",
    Kind.SCORE: "a name, in any case, alone or compared: `score:reward`, `score:reward<0.5`, `score:accuracy=C`; "
    "in quotes if it has blanks; `none` for a run without scores",
    Kind.CAUSE: "the beginning of its id, or a part of its text, in any case; with `=` all of either",
    Kind.FACT: "one of the words below",
}
"""The values of each kind."""


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
    """Whether values rarely repeat; always so for numbers, times and scores."""
    cache_as: str = ""
    """Name of the column that caches a costly value between queries; empty: not cached."""
    facet: bool = False
    """Whether its values can be picked from a list."""
    offered: Source[T] | None = None
    """Getter of the values to pick and complete, if it isn't `get`; text and id keys complete only with one."""
    offers_none: bool = False
    """Whether `none` can be picked as well."""

    @property
    def repeats(self) -> bool:
        """Whether values repeat so often that each distinct one is tested once."""
        return not self.unique and self.kind not in (*MEASURES, Kind.TIME, Kind.SCORE)


class Table(Generic[T]):
    """The keys for one kind of item, and the getter of the text that free words search."""

    def __init__(self, keys: tuple[Key[T], ...], hay: Getter[T]) -> None:
        self.keys = keys
        self.hay = hay
        self._by_name = {name: key for key in keys for name in (key.name, *key.aliases)}

    def find(self, name: str) -> Key[T] | None:
        """Return the key with that name or alias."""
        return self._by_name.get(name)

    def like(self, name: str) -> str | None:
        """Return the key name most like a misspelled `name`."""
        return nearest(name, self._by_name)

    def names(self) -> Iterator[str]:
        """AllOf name and alias, the names first."""
        yield from (key.name for key in self.keys)
        yield from (alias for key in self.keys for alias in key.aliases)


def recorded(*names: str) -> Source[Any]:
    """Return the source of recorded fields, by attribute name."""
    return lambda context: attrgetter(*names)


def computed(get: Getter[T]) -> Source[T]:
    """Return the source of a value computed from the item alone."""
    return lambda context: get


def strings(value: Any) -> Iterator[str]:
    """Yield the strings in a value: itself, or those of a tuple."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from strings(part)


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

"""What a key of the language is. A table of them is all that there is to say of a language: `run_keys`, `span_keys`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import msgspec

from tracetui.errors import nearest

T = TypeVar("T")
Getter = Callable[[T], Any]
"""What a run or span says: None, a string, a number, a truth, or a tuple of these of which any may fit."""
Source = Callable[[Any], Getter[T]]
"""A getter, once the context is known."""


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
    FACT = "fact"


MEASURES: Final = frozenset({Kind.NUMBER, Kind.DURATION})
"""What is compared with `<` and `>`."""

ABOUT_KINDS: Final = {
    Kind.NAME: "the whole value, in any case: `tool:bash`; `none` where there is none",
    Kind.TEXT: 'a part of the text, in any case: `error:"timed out"`; with `=` the whole',
    Kind.ID: "the beginning of the id; with `=` the whole",
    Kind.NUMBER: "a number, with `<`, `<=`, `>`, `>=` or `:`: `tokens>10k`, `tokens<2M`",
    Kind.DURATION: "a duration: `250ms`, `5s`, `2m`, `1h30m`, `3d`, `1w`; a bare number counts seconds",
    Kind.TIME: "ago (`2h`, `3d`), `today`, `yesterday`, `09:30`, a date (`2026-11-20`, `2026-11`, `2026-11-20T18:00`)",
    Kind.TRUTH: "`true` or `false`",
    Kind.SCORE: "a name, in any case, alone or compared: `score:reward`, `score:reward<0.5`, `score:accuracy=C`; "
    "in quotes if it has blanks; `none` for a run without scores",
    Kind.FACT: "one of the words that follow",
}
"""What may stand after a key of each kind."""


class Fact(msgspec.Struct, Generic[T], frozen=True):
    """Something that is so or not: what ``is:`` and ``has:`` are followed by."""

    about: str
    get: Source[T]


class Key(msgspec.Struct, Generic[T], frozen=True):
    """One key: what it is called, what it looks at, and what help, completion and documentation say of it."""

    name: str
    kind: Kind
    get: Source[T]
    about: str
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """Offered where the values that are there cannot be counted."""
    choices: tuple[str, ...] = ()
    """The only names that there can be besides `none`; empty: any."""
    choices_of: Callable[[Any], Collection[str]] | None = None
    """The same, where only the context knows them."""
    facts: Mapping[str, Fact[T]] = {}
    fold: Callable[[str], str] = str.lower
    """Two names are the same if this makes the same of both."""
    few: bool = True
    """Whether distinct values are much fewer than runs, so that each is compared once."""
    kept_as: str = ""
    """A name under which the value is kept for the next query, where finding it out takes long."""
    facet: bool = False
    """Whether its values are offered to be picked."""
    offer: Source[T] | None = None
    """What is counted for that, if not what it looks at; texts and ids with one complete to its values."""
    lack: bool = False
    """Whether that there is none is picked as well."""


class Table(Generic[T]):
    """The keys of one language, and the text in which its free words are looked for."""

    def __init__(self, keys: tuple[Key[T], ...], hay: Getter[T]) -> None:
        self.keys = keys
        self.hay = hay
        self._by_name = {name: key for key in keys for name in (key.name, *key.aliases)}

    def find(self, name: str) -> Key[T] | None:
        """The key of that name or alias."""
        return self._by_name.get(name)

    def like(self, name: str) -> str | None:
        """The name of a key that somebody who wrote `name` may have meant."""
        return nearest(name, self._by_name)

    def names(self) -> Iterator[str]:
        """Every name and alias, the names first."""
        yield from (key.name for key in self.keys)
        yield from (alias for key in self.keys for alias in key.aliases)


def told(*names: str) -> Source[Any]:
    """A getter of what the item itself says, whatever the context."""
    return lambda context: attrgetter(*names)


def made(get: Getter[T]) -> Source[T]:
    """A getter of what is made of what the item says."""
    return lambda context: get


def strings(value: Any) -> Iterator[str]:
    """The strings that a value holds: itself, or those in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from strings(part)


def said(value: Any) -> bool:
    """Whether a value says anything: zero says something, nothing and an empty text don't."""
    if isinstance(value, tuple):
        return any(said(part) for part in value)
    return value is not None and value != ""


def having(keys: tuple[Key[T], ...], more: Mapping[str, Fact[T]]) -> Key[T]:
    """The key ``has``: whether there is anything to compare a key with; `more` has what differs."""
    facts = {
        key.name: Fact(key.about, _said_by(key)) for key in keys if key.kind not in (Kind.TIME, Kind.FACT, Kind.TRUTH)
    }
    about = "there is one: followed by any other key's name"
    return Key("has", Kind.FACT, made(said), about, facts=dict(sorted({**facts, **more}.items())))


def _said_by(key: Key[T]) -> Source[T]:
    def source(context: Any) -> Getter[T]:
        get = key.get(context)
        return lambda item: said(get(item))

    return source

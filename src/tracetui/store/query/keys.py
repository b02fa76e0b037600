"""Keys of the query language, and the values that they are compared with.

`run_keys` and `span_keys` are tables of keys; everything else follows from a table.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import msgspec

from tracetui.errors import UsageError, nearest
from tracetui.model import PassRule
from tracetui.store.query.syntax import QueryError, Term, Value

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
        return not self.unique and self.kind not in (*MEASURES, Kind.TIME, Kind.SCORE)


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


# ---- values of terms: numbers, durations, times and patterns as tests


Test = Callable[[Any], bool]
"""Returns whether a value of a run or span matches."""

_COMPARE: Final[dict[str, Callable[[float], Test]]] = {
    ":": lambda bound: lambda value: value is not None and value == bound,
    "=": lambda bound: lambda value: value is not None and value == bound,
    "<": lambda bound: lambda value: value is not None and value < bound,
    "<=": lambda bound: lambda value: value is not None and value <= bound,
    ">": lambda bound: lambda value: value is not None and value > bound,
    ">=": lambda bound: lambda value: value is not None and value >= bound,
}
_NUMBER: Final = re.compile(r"\$?(\d+(?:_\d+)*(?:\.\d*)?|\.\d+)([kmgb]?)", re.IGNORECASE)
_SIZES: Final = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "b": 1_000_000_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h|d|w)", re.IGNORECASE)
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PREFIXES: Final = {
    Kind.NUMBER: re.compile(r"\$?[\d_.]*"),
    Kind.DURATION: re.compile(r"[\d.msdhw]*", re.IGNORECASE),
    Kind.TIME: re.compile(r"[\d:TtZz.+-]*|t(od?|oda)?|y(est?|ester|esterd|esterda)?", re.IGNORECASE),
}
"""Texts that may become a value as typing goes on."""
_NEXT: Final = {
    Kind.NUMBER: "a number such as `10`, `1.5k` or `2M`",
    Kind.DURATION: "a duration such as `250ms`, `5s`, `2m` or `1h30m`",
    Kind.TIME: "`2h`, `3d`, `today`, `09:30` or a date such as `2026-11-20`",
    Kind.TRUTH: "`true` or `false`",
}
NONE: Final = "none"
"""Matches items without a name."""
_MAX_CHOICES: Final = 8
_COMPARISON: Final = re.compile("[<>=!]")
"""The form of a value of `score` that is a comparison."""
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def test_of(key: Key[Any], term: Term, now: float, end: int) -> Test:
    """Return the test for a term of a key that isn't a fact. `end` is where the query ends.

    Raises `QueryError` for a value or comparison that the key doesn't take.
    """
    if term.compare not in ":=" and key.kind not in MEASURES:
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
        if key.kind is not Kind.FACT and _fits_any(name, value, choices):
            return name
    like = nearest(name, choices)
    unfinished = term.end == end and any(choice.startswith(name) for choice in choices)
    allowed = ", ".join(list(choices)[:_MAX_CHOICES]) + (" …" if len(choices) > _MAX_CHOICES else "")
    hint = f"did you mean `{like}`?" if like else f"use {allowed}"
    message = f"`{key.name}:` has no value `{value.text}`; {hint}"
    raise QueryError(message, value.at, unfinished=unfinished, begin=term.at)


def _fits_any(name: str, value: Value, choices: Collection[str]) -> bool:
    """Return whether a value is `none` or a pattern that matches a choice."""
    if value.quoted:
        return False
    return name == NONE or (_has_stars(value) and any(map(_pattern(name), choices)))


def number(text: str) -> float:
    """Parse ``10``, ``1.5k``, ``2M`` or ``$0.05``; whole numbers as int, which compares faster. Raises ValueError."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError
    value = float(match[1]) * _SIZES[match[2].lower()]
    return int(value) if value.is_integer() else value


def milliseconds(text: str) -> float:
    """Parse ``250ms``, ``5s`` or ``1h30m``; a bare number is seconds. Raises ValueError."""
    if _NUMBER.fullmatch(text) and text[-1] in "0123456789.":
        return number(text) * 1_000
    at, total = 0, 0.0
    while match := _DURATION.match(text, at):
        total += float(match[1]) * _UNITS[match[2].lower()]
        at = match.end()
    if at == 0 or at < len(text):
        raise ValueError
    return total


def period(text: str, now: float) -> tuple[float, float]:
    """Parse a period in local time; return its begin and end in UTC seconds (``2h`` is a point). Raises ValueError."""
    here = datetime.fromtimestamp(now)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    if text.lower() in ("today", "yesterday"):
        begin = midnight - timedelta(days=text.lower() == "yesterday")
        return begin.timestamp(), (begin + timedelta(days=1)).timestamp()
    if _DURATION.match(text):
        ago = now - milliseconds(text) / 1_000
        return ago, ago
    if re.fullmatch(r"\d\d?:\d\d", text):
        begin = midnight.replace(hour=int(text[:-3]), minute=int(text[-2:]))
        return begin.timestamp(), begin.timestamp() + 60
    if match := re.fullmatch(r"(\d{4})(?:-(\d\d))?", text):
        year, month = int(match[1]), int(match[2] or 1)
        begin = datetime(year, month, 1)
        following = datetime(year + (not match[2] or month == 12), month % 12 + 1 if match[2] else 1, 1)
        return begin.timestamp(), following.timestamp()
    begin = datetime.fromisoformat(text)
    length = timedelta(days=1) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else timedelta(minutes=1)
    return begin.timestamp(), (begin + length).timestamp()


def _test(key: Key[Any], term: Term, value: Value, now: float, end: int) -> Test:
    try:
        if key.kind is Kind.NAME:
            if key.choices:
                one_of(key, key.choices, term, value, end)
            return _name_test(value, key.fold)
        if key.kind is Kind.TEXT or key.kind is Kind.ID:
            return _text_test(value, key.kind, term.compare)
        if key.kind is Kind.CAUSE:
            return _cause_test(value, term.compare)
        if key.kind is Kind.SCORE:
            return _score_test(value, term, end)
        if key.kind is Kind.TRUTH:
            wanted = _TRUTHS[value.text.lower()]
            return lambda value: bool(value) is wanted
        if key.kind is Kind.TIME:
            return _time_test(key.name, *period(value.text, now))
        bound = milliseconds(value.text) if key.kind is Kind.DURATION else number(value.text)
        return _COMPARE[term.compare](bound)
    except (ValueError, KeyError, OverflowError, OSError):
        prefix = _PREFIXES.get(key.kind)
        unfinished = prefix is not None and term.end == end and prefix.fullmatch(value.text) is not None
        message = f"`{key.name}` doesn't take `{value.text}`; write {_NEXT[key.kind]}"
        raise QueryError(message, value.at, unfinished=unfinished, begin=term.at) from None


def _time_test(name: str, begin: float, end: float) -> Test:
    """The test of a start; an undated run matches no time."""
    if name == "since":
        return lambda value: value is not None and value >= begin
    if name == "before":
        return lambda value: value is not None and value < begin
    if name == "until":
        return lambda value: value is not None and value < end
    return lambda value: value is not None and begin <= value < end


def _name_test(value: Value, fold: Callable[[str], str]) -> Test:
    wanted = fold(value.text)
    if _has_stars(value):
        fits = _pattern(wanted)
        return _any(lambda name: fits(fold(name)))
    same = _any(lambda name: fold(name) == wanted)
    if not value.quoted and wanted == NONE:
        return lambda value: not any(strings(value)) or same(value)
    return same


def _score_test(value: Value, term: Term, end: int) -> Test:
    if not _COMPARISON.search(value.text):
        named = _name_test(value, str.casefold)
        return lambda scores: named(tuple(score.name for score in scores))
    try:
        rule = PassRule.parse(value.text)
    except UsageError as error:
        raise QueryError(str(error), value.at, unfinished=term.end == end, begin=term.at) from None
    return lambda scores: any(rule.applies_to(score) and rule.accepts(score.value) for score in scores)


def _text_test(value: Value, kind: Kind, compare: str) -> Test:
    wanted = value.text.lower()
    if _has_stars(value):
        fits = _pattern(wanted)
        return _any(lambda text: fits(text.lower()))
    if compare == "=":
        return _any(lambda text: text.lower() == wanted)
    if kind is Kind.ID:
        return _any(lambda text: text.lower().startswith(wanted))
    return _any(lambda text: wanted in text.lower())


def _cause_test(value: Value, compare: str) -> Test:
    """Return the test of a title and ids."""
    by_title, by_id = _text_test(value, Kind.TEXT, compare), _text_test(value, Kind.ID, compare)
    return lambda cause: bool(cause) and (by_title(cause[0]) or by_id(cause[1:]))


def _any(fits: Callable[[str], bool]) -> Test:
    """Return a test that matches a string, or any of several."""
    return lambda value: fits(value) if isinstance(value, str) else value is not None and any(map(fits, strings(value)))


def _has_stars(value: Value) -> bool:
    return not value.quoted and ("*" in value.text or "?" in value.text)


def _pattern(text: str) -> Callable[[str], bool]:
    """Return a test of whole texts against a pattern of `*` and `?`, in linear time per piece."""
    compiled = re.compile(fnmatch.translate(text.replace("[", "[[]")))
    return lambda text: compiled.match(text) is not None

"""How a query that is being typed may go on, and which values there are to be picked: counted, most frequent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from tracetui.store.query.context import Told
from tracetui.store.query.keys import MEASURES, Getter, Key, Kind, Table, strings
from tracetui.store.query.syntax import KEY, quoted

T = TypeVar("T")
MOST: Final = 50
"""Completions that are offered at once."""
_FROM: Final = 2
"""Characters from which a word is also looked for among the values of all keys."""
_SAMPLE: Final = 10_000
"""Of how many runs, so that it does not slow down typing."""


class Completion(msgspec.Struct, frozen=True):
    """`text` may stand in place of what is from `start` to `end`. `hint` says what it is, or how often it is there."""

    text: str
    start: int
    end: int
    hint: str


class Facet(msgspec.Struct, frozen=True):
    """A key and the values that it has, with the number of runs or spans of each; None stands for those without one."""

    key: str
    values: list[tuple[str | None, int]]

    def term(self, value: str | None) -> str:
        """The term that asks for a value."""
        return f"{self.key}:{'none' if value is None else quoted(value)}"


def facets(table: Table[T], items: Iterable[T], context: Any = None) -> list[Facet]:
    """The keys whose values can be picked, as far as there are any."""
    items, context = list(items), context or Told()
    tallied = (Facet(key.name, _tally(key, items, (key.offer or key.get)(context))) for key in table.keys if key.facet)
    return [facet for facet in tallied if any(value is not None for value, _ in facet.values)]


def complete(text: str, cursor: int, table: Table[T], items: Iterable[T], context: Any = None) -> list[Completion]:
    """What may stand at the cursor: keys and comparisons, values that are there, ``or``. The likeliest first."""
    place = _Place(text[: max(0, cursor)])
    found = place.key and table.find(place.key)
    if found:
        pairs = _values(found, list(items), context or Told(), place.begun)
        offers: Iterator[tuple[str, str]] = (
            (value if literal else quoted(value), hint) for value, hint, literal in pairs
        )
    else:
        offers = _words(table, items, context or Told(), place)
    return [
        Completion(word, place.start, place.end, hint) for (word, hint), _ in zip(offers, range(MOST), strict=False)
    ]


class _Place:
    """What is being typed before the cursor: a value of a key, or a word that may become a key."""

    def __init__(self, before: str) -> None:
        begin = comma = 0
        mark = ""
        for at, character in enumerate(before):
            if mark:
                mark = "" if character == mark and before[at - 1] != "\\" else mark
            elif character in "\"'" and (at == begin or before[at - 1] in "!-:=<>,("):
                mark = character
            elif character.isspace() or (character == "(" and before[begin:at] in ("", "!", "-")):
                begin = at + 1
            elif character == ",":
                comma = at + 1
        if before[begin : begin + 1] in ("!", "-"):
            begin += 1
        term = KEY.match(before, begin)
        self.first = not before[:begin].strip(" \t(!-")
        self.key = term[1].lower() if term else ""
        self.start = max(term.end(), comma) if term else begin
        self.end = len(before)
        self.begun = before[self.start :].lstrip("\"'")


def _words(table: Table[T], items: Iterable[T], context: Any, place: _Place) -> Iterator[tuple[str, str]]:
    """Keys that begin so, then keys with values that do."""
    word = place.begun.lower()
    for key in table.keys:
        name = next((name for name in (key.name, *key.aliases) if name.startswith(word)), None)
        if name is not None and key.kind in MEASURES:
            yield from ((f"{name}{compare}", key.about) for compare in ((">", "<") if word == name else (">",)))
        elif name is not None:
            yield f"{name}:", key.about
    if "or".startswith(word) and not place.first:
        yield "or ", "one of both sides"
    if len(word) < _FROM:
        return
    abouts = {key.name: key.about for key in table.keys}
    found = [
        (facet.term(value), abouts[facet.key], count)
        for facet in facets(table, islice(items, _SAMPLE), context)
        for value, count in facet.values
        if value is not None and value.lower().startswith(word)
    ]
    yield from ((term, about) for term, about, _ in sorted(found, key=lambda offer: -offer[2]))


def _values(key: Key[T], items: list[T], context: Any, begun: str) -> Iterator[tuple[str, str, bool]]:
    """(value, hint, whether it is written as it is) of the values that begin so, then of those that hold it."""
    if key.kind is Kind.FACT:
        yield from _fitting(((name, fact.about, True) for name, fact in key.facts.items()), begun, str.lower)
    elif key.kind is Kind.NAME or key.offer is not None:
        get = key.get(context) if key.kind is Kind.NAME else (key.offer or key.get)(context)
        tallied = [(value or "none", str(count), value is None) for value, count in _tally(key, items, get)]
        yield from _fitting(tallied, begun, key.fold)
    elif key.kind is Kind.TRUTH:
        counts = Counter(map(key.get(context), items))
        yield from _fitting(
            [(str(truth).lower(), str(counts[truth]), True) for truth in (True, False)], begun, str.lower
        )
    else:
        yield from _fitting([(example, "", True) for example in key.examples], begun, str.lower)


def _fitting(
    offers: Iterable[tuple[str, str, bool]], begun: str, fold: Callable[[str], str]
) -> Iterator[tuple[str, str, bool]]:
    wanted, later = fold(begun), []
    for offer in offers:
        if fold(offer[0]).startswith(wanted):
            yield offer
        elif wanted in fold(offer[0]):
            later.append(offer)
    yield from later


def _tally(key: Key[T], items: list[T], get: Getter[T]) -> list[tuple[str | None, int]]:
    """The values of a key and how many items have each; what the language takes for the same is counted as one."""
    counts: Counter[str | None] = Counter()
    spellings: dict[str, Counter[str]] = {}
    for held, count in Counter(map(get, items)).items():
        names = {key.fold(name): name for name in strings(held) if name}
        for folded, name in names.items():
            counts[folded] += count
            spellings.setdefault(folded, Counter())[name] += count
        if not names and key.lack:
            counts[None] += count
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] or ""))
    return [(spellings[name].most_common(1)[0][0] if name is not None else None, count) for name, count in ordered]

"""Completions of a query that is being typed, and the values to pick, most frequent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from tracetui.store.query.keys import Getter, Key, Table
from tracetui.store.query.kinds import Kind, strings
from tracetui.store.query.run_keys import TraceContext
from tracetui.store.query.syntax import KEY, quoted

T = TypeVar("T")
MOST: Final = 50
"""Completions offered at once."""
_MIN_PREFIX: Final = 2
"""Characters of a word before it completes to values of all keys."""
_SAMPLE: Final = 10_000
"""Runs that this looks at, so that typing stays fast."""


class Completion(msgspec.Struct, frozen=True):
    """`text` replaces the characters from `start` to `end`. `hint` describes it, or says how often it occurs."""

    text: str
    start: int
    end: int
    hint: str


class Facet(msgspec.Struct, frozen=True):
    """A key and its values with the number of runs or spans of each; None: those without a value."""

    key: str
    values: list[tuple[str | None, int]]

    def term(self, value: str | None) -> str:
        """Return the term for a value."""
        return f"{self.key}:{'none' if value is None else quoted(value)}"


def facets(table: Table[T], items: Iterable[T], context: Any = None, prefix: str = "") -> list[Facet]:
    """Return the keys with values to pick, if any item has one; `prefix`: of values, in lower case."""
    context = context or TraceContext()
    items = [*map(context.masked, items)]
    common = Counter(map(table.common, items)) if table.common is not None else Counter()
    offered = []
    for key in table.keys:
        if key.facet and _may_begin_with(prefix, key, context):
            get = (key.offered or key.get)(context)
            tally = _tally(key, _counted(common, get) if key.common else Counter(map(get, items)), prefix)
            offered.append(Facet(key.name, tally))
    return [facet for facet in offered if any(value is not None for value, _ in facet.values)]


def _may_begin_with(prefix: str, key: Key[Any], context: Any) -> bool:
    """Return whether an allowed value of a key begins with a prefix in lower case."""
    choices = _choices(key, context)
    return not choices or any(choice.startswith(prefix) for choice in choices)


def _choices(key: Key[Any], context: Any) -> Collection[str]:
    """Return the allowed values of a key; empty: any."""
    return key.choices if key.choices_of is None else key.choices_of(context)


def _counted(items: Counter[Any], get: Getter[Any]) -> Counter[Any]:
    """Return the values of counted items and how often each occurs."""
    counts: Counter[Any] = Counter()
    for item, count in items.items():
        counts[get(item)] += count
    return counts


def complete(text: str, cursor: int, table: Table[T], items: Iterable[T], context: Any = None) -> list[Completion]:
    """Return the completions at the cursor: keys and comparisons, existing values, ``or``. The likeliest first."""
    at = _Cursor(text[: max(0, cursor)])
    key = at.key and table.find(at.key)
    if key:
        context = context or TraceContext()
        pairs = _values(key, [*map(context.masked, items)], context, at.prefix)
        offers: Iterator[tuple[str, str]] = (
            (value if literal else quoted(value), hint) for value, hint, literal in pairs
        )
    else:
        offers = _key_values(table, items, context or TraceContext(), at)
    return [Completion(word, at.start, at.end, hint) for (word, hint), _ in zip(offers, range(MOST), strict=False)]


class _Cursor:
    """The text before the cursor: a value of a key, or a word that may become a key."""

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
        self.prefix = before[self.start :].lstrip("\"'")


def _key_values(table: Table[T], items: Iterable[T], context: Any, cursor: _Cursor) -> Iterator[tuple[str, str]]:
    """Yield keys with this prefix, then values with it."""
    word = cursor.prefix.lower()
    for key in table.keys:
        name = next((name for name in (key.name, *key.aliases) if name.startswith(word)), None)
        if name is not None and key.kind.value.ordered:
            yield from ((f"{name}{compare}", key.about) for compare in ((">", "<") if word == name else (">",)))
        elif name is not None:
            yield f"{name}:", key.about
    if "or".startswith(word) and not cursor.first:
        yield "or ", "either side matches"
    if len(word) < _MIN_PREFIX:
        return
    abouts = {key.name: key.about for key in table.keys}
    terms = [
        (facet.term(value), abouts[facet.key], count)
        for facet in facets(table, islice(items, _SAMPLE), context, word)
        for value, count in facet.values
        if value is not None
    ]
    yield from ((term, about) for term, about, _ in sorted(terms, key=lambda term: -term[2]))


def _values(key: Key[T], items: list[T], context: Any, prefix: str) -> Iterator[tuple[str, str, bool]]:
    """Yield (value, hint, whether it needs no quotes) of values with the prefix, then of those that contain it; the
    values that occur before others that the key allows.
    """
    if key.kind is Kind.FACT:
        yield from _fitting(((name, fact.about, True) for name, fact in key.facts.items()), prefix, str.lower)
    elif key.kind is Kind.NAME or key.offered is not None:
        get = key.get(context) if key.kind is Kind.NAME else (key.offered or key.get)(context)
        tally = _tally(key, Counter(map(get, items)))
        tallied = [(value or "none", str(count), value is None) for value, count in tally]
        yield from _fitting(tallied, prefix, key.fold)
        taken = {key.fold(value) for value, _, _ in tallied}
        others = [(choice, "0", False) for choice in _choices(key, context) if key.fold(choice) not in taken]
        yield from _fitting(others, prefix, key.fold)
    elif key.kind is Kind.TRUTH:
        counts = Counter(map(key.get(context), items))
        yield from _fitting(
            [(str(truth).lower(), str(counts[truth]), True) for truth in (True, False)], prefix, str.lower
        )
    else:
        yield from _fitting([(example, "", True) for example in key.examples], prefix, str.lower)


def _fitting(
    offers: Iterable[tuple[str, str, bool]], prefix: str, fold: Callable[[str], str]
) -> Iterator[tuple[str, str, bool]]:
    wanted, later = fold(prefix), []
    for offer in offers:
        if fold(offer[0]).startswith(wanted):
            yield offer
        elif wanted in fold(offer[0]):
            later.append(offer)
    yield from later


def _tally(key: Key[T], values: Counter[Any], prefix: str = "") -> list[tuple[str | None, int]]:
    """Return the values of a key that begin with a prefix in lower case, and how many items have each; values that
    compare equal count as one.
    """
    counts: Counter[str | None] = Counter()
    spellings: dict[str, Counter[str]] = {}
    for value, count in values.items():
        names = {key.fold(name): name for name in strings(value) if name and name.lower().startswith(prefix)}
        for folded, name in names.items():
            counts[folded] += count
            spellings.setdefault(folded, Counter())[name] += count
        if not names and key.offers_none and not prefix:
            counts[None] += count
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] or ""))
    return [(spellings[name].most_common(1)[0][0] if name is not None else None, count) for name, count in ordered]

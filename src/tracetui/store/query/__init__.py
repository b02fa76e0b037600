"""The query language for runs and for the spans of a run: ``status:error tool:bash dur>5s``.

`for_runs` and `for_spans` parse a text into a `Query` or raise `QueryError`; `complete` returns completions, `facets`
the values to pick. docs/query.md is generated from the tables `RUN_KEYS` and `SPAN_KEYS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from tracetui.model import RunSummary, Span
from tracetui.store.facts import recorded_state
from tracetui.store.query.blind import BlindContext, MaskedFacts
from tracetui.store.query.complete import Completion, Facet, complete, facets
from tracetui.store.query.keys import Key, Table, one_of, test_of
from tracetui.store.query.kinds import Kind
from tracetui.store.query.plan import AllOf, AnyOf, Columns, Comparison, Negation, Part, Query, WordSearch
from tracetui.store.query.plan import parse_prefix as _parse_prefix
from tracetui.store.query.run_keys import RUN_KEYS, Context, TraceContext
from tracetui.store.query.span_keys import SPAN_KEYS
from tracetui.store.query.syntax import (
    ALMOST_TERM,
    COMPARED,
    And,
    Node,
    Not,
    Or,
    QueryError,
    Term,
    Word,
    parse,
    pointed,
    quoted,
)

T = TypeVar("T")


def for_runs(text: str, context: Context | None = None, *, now: float | None = None) -> Query[RunSummary]:
    """Parse a query for runs. Raises `QueryError`. ``since:2h`` counts from `now` (UTC seconds)."""
    planner = _Planner(RUN_KEYS, context or TraceContext(), time.time() if now is None else now)
    return planner.query(text, None if context is None else context.masked)


def for_spans(text: str, mask: Callable[[Span], Span] | None = None) -> Query[Span]:
    """Parse a query for spans; `mask` returns a span as the reader may see it. Raises `QueryError`."""
    return _Planner(SPAN_KEYS, None, 0.0).query(text, mask)


def parse_prefix(
    text: str, context: Context | None = None, *, now: float | None = None
) -> tuple[Query[RunSummary], QueryError | None]:
    """Parse a query that is being typed: return its valid beginning, and the error in the rest."""
    return _parse_prefix(text, partial(for_runs, context=context, now=now))


def parse_span_prefix(text: str, mask: Callable[[Span], Span] | None = None) -> tuple[Query[Span], QueryError | None]:
    """As `parse_prefix`, for spans."""
    return _parse_prefix(text, partial(for_spans, mask=mask))


class _Planner:
    """Turns syntax trees into plans."""

    def __init__(self, table: Table[Any], context: Any, now: float) -> None:
        self._table = table
        self._context = context
        self._now = now
        self._end = 0
        self._text = ""

    def query(self, text: str, mask: Callable[[Any], Any] | None) -> Query[Any]:
        self._end, self._text = len(text), text
        return Query(text, self._plan(parse(text)), mask)

    def _plan(self, node: Node) -> Part[Any]:
        if isinstance(node, Word | And):
            return self._every(node if isinstance(node, And) else And((node,)))
        if isinstance(node, Or):
            return AnyOf(map(self._plan, node.parts))
        if isinstance(node, Not):
            return self._every(And((node,))) if isinstance(node.part, Word) else Negation(self._plan(node.part))
        return self._term(node)

    def _every(self, node: And) -> Part[Any]:
        """Match all parts; words are searched together."""
        self._check_words(node)
        words = [part.text.lower() for part in node.parts if isinstance(part, Word)]
        negated = [part.part for part in node.parts if isinstance(part, Not)]
        without = [part.text.lower() for part in negated if isinstance(part, Word)]
        rest = [part for part in node.parts if not isinstance(part.part if isinstance(part, Not) else part, Word)]
        searches = [WordSearch(self._table.hay, words, without)] if words or without else []
        return AllOf([*map(self._plan, rest), *searches]) if rest or not searches else searches[0]

    def _check_words(self, node: And) -> None:
        """Raise `QueryError` for words that are certainly meant as a term: they would silently match nothing."""
        before = None
        for part in (part.part if isinstance(part, Not) else part for part in node.parts):
            word = part if isinstance(part, Word) and self._text[part.at] not in "\"'" else None
            if word is not None:
                match = ALMOST_TERM.match(word.text)
                if match is not None and self._table.find(match[1].lower()) is not None:
                    raise QueryError(f"write `{match[1]}:` with its value and nothing else around it", word.at)
            if before is not None:
                if word is not None and COMPARED.match(word.text) and self._table.find(before.text.lower()):
                    raise QueryError(f"write `{before.text}{word.text}` without a blank", word.at)
                if before.text.lower() == "not" and word is None and not isinstance(part, Word):
                    raise QueryError("write `-` or `!` in place of `not`", before.at)
            before = word

    def _term(self, term: Term) -> Part[Any]:
        key = self._table.find(term.key)
        if key is None:
            like = self._table.like(term.key)
            hint = f"did you mean `{like}`?" if like else "put it in quotes to search for the text"
            raise QueryError(f"no key `{term.key}`; {hint}", term.at)
        if key.kind is Kind.FACT:
            facts = [key.facts[one_of(key, key.facts, term, value, self._end)] for value in term.values]
            return AnyOf([Comparison(fact.get(self._context), bool, repeats=False) for fact in facts])
        if key.choices_of is not None:
            key = replace(key, choices=tuple(key.choices_of(self._context)))
        test = test_of(key, term, self._now, self._end)
        return Comparison(key.get(self._context), test, repeats=key.repeats, cache_as=key.cache_as)


__all__ = [
    "RUN_KEYS",
    "SPAN_KEYS",
    "BlindContext",
    "Columns",
    "Completion",
    "Context",
    "Facet",
    "Key",
    "Kind",
    "MaskedFacts",
    "Query",
    "QueryError",
    "Table",
    "TraceContext",
    "complete",
    "facets",
    "for_runs",
    "for_spans",
    "parse_prefix",
    "parse_span_prefix",
    "pointed",
    "quoted",
    "recorded_state",
]

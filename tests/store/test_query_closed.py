"""A query never finds nothing because of a slip: what is outside a closed set, or only looks like a term, is wrong."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.test_query_syntax import tree
from tracetui.model import Operation, Status
from tracetui.model.span import STATUS_WORDS
from tracetui.store import query
from tracetui.store.query import QueryError
from tracetui.store.query.syntax import parse, unparse

TABLES: Any = [(query.for_runs, query.RUN_KEYS), (query.for_spans, query.SPAN_KEYS)]
CLOSED = [(ask, key) for ask, table in TABLES for key in table.keys if key.choices or key.facts]


@pytest.mark.parametrize(("ask", "key"), CLOSED, ids=lambda key: getattr(key, "name", ""))
def test_a_closed_set_takes_its_words_and_no_other(ask: Any, key: Any) -> None:
    for name in (key.name, *key.aliases):
        for choice in key.choices or key.facts:
            quoted = f'"{choice}"' if " " in choice else choice
            ask(f"{name}:{quoted.upper()} -{name}:{quoted}")
            with pytest.raises(QueryError, match="has no value"):
                ask(f'{name}:{quoted},"{choice}x"')
        for wrong in ("zzzz", '"zzzz"', "zz*"):
            with pytest.raises(QueryError, match="has no value"):
                ask(f"{name}:{wrong} more")


def test_status_and_operation_are_closed() -> None:
    assert {key.name for _, key in CLOSED} >= {"status", "op", "verdict", "relation", "is", "has"}
    assert set(STATUS_WORDS) >= set(Status)
    assert set(query.SPAN_KEYS.find("op").choices) == set(Operation)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "status:(error", "status:(error or ok)", 'status:err"or', "status :error", "dur >5s", "dur > 5s", "dur >= 5s",
        "status = error", "--status:error", "!!status:error", "+status:error", "[status:error]", "status::error",
        "not status:error", "NOT (status:error)", "a status :error",
    ],
)  # fmt: skip
def test_text_meant_as_a_term_is_no_word(text: str) -> None:
    with pytest.raises(QueryError):
        query.for_runs(text)


@pytest.mark.parametrize(
    "text",
    ["std::string", "https://x.y", "->", "it's", "print(", "did not meet", '"status :error"', "not", ">", "x = y"],
)
def test_other_words_stay_words(text: str) -> None:
    query.for_runs(text)


PIECES = st.sampled_from(
    [
        "status",
        "dur",
        "tool",
        "not",
        "or",
        " ",
        ":",
        "::",
        "=",
        ">",
        "!",
        "-",
        "(",
        ")",
        '"',
        "'",
        ",",
        "*",
        "error",
        "5s",
    ]
)


@given(st.lists(PIECES, max_size=10).map("".join) | st.text(string.printable, max_size=20))
def test_a_query_is_understood_or_wrong_and_reads_the_same_again(text: str) -> None:
    try:
        matcher = query.for_runs(text)
    except QueryError:
        return
    unparsed = unparse(parse(text))
    query.for_runs(unparsed)
    assert tree(unparsed) == tree(matcher.text)

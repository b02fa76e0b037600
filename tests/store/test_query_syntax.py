"""The grammar of queries: what is a word, what a term, and where an error points."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.store.query import QueryError, for_runs, for_spans, pointed
from tracetui.store.query.syntax import And, Node, Not, Or, Term, Value, Word, parse, unparse


def without_places(node: Node) -> Node:
    """The tree without where its parts stand."""
    if isinstance(node, Word):
        return Word(node.text)
    if isinstance(node, Term):
        return Term(node.key, node.compare, tuple(Value(value.text, value.quoted) for value in node.values))
    if isinstance(node, Not):
        return Not(without_places(node.part))
    return type(node)(tuple(map(without_places, node.parts)))


def tree(text: str) -> Node:
    return without_places(parse(text))


def error_of(make: Callable[[str], object], text: str) -> QueryError | None:
    """What `make` says is wrong with the text."""
    try:
        make(text)
    except QueryError as error:
        return error
    return None


def term(key: str, compare: str, *values: str) -> Term:
    return Term(key, compare, tuple(map(Value, values)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", And(())),
        ("  ", And(())),
        ("timed", Word("timed")),
        ("timed out", And((Word("timed"), Word("out")))),
        ('"timed out"', Word("timed out")),
        ("'timed out'", Word("timed out")),
        ("it's", Word("it's")),
        (r'"a \"b\" \\ \n"', Word(r'a "b" \ \n')),
        ("!x", Not(Word("x"))),
        ("-x", Not(Word("x"))),
        ("--x", Word("--x")),
        ("->", Word("->")),
        ("a->b", Word("a->b")),
        ("!", And(())),
        ("-", Word("-")),
        ("max_steps(10)", Word("max_steps(10)")),
        ("print(", Word("print(")),
        ("(max_steps(10))", Word("max_steps(10)")),
        ("https://host/x", Word("https://host/x")),
        ("std::string", Word("std::string")),
        (r"C:\new", Word(r"C:\new")),
        ("12:30", Word("12:30")),
        ("a or b", Or((Word("a"), Word("b")))),
        ("a OR b | c", Or((Word("a"), Word("b"), Word("c")))),
        ("a|b", Word("a|b")),
        ("or", Word("or")),
        ("a b or c", Or((And((Word("a"), Word("b"))), Word("c")))),
        ("a and b", And((Word("a"), Word("b")))),
        ("a (b or c)", And((Word("a"), Or((Word("b"), Word("c")))))),
        ("!(a b)", Not(And((Word("a"), Word("b"))))),
        ("Status:error", term("status", ":", "error")),
        ("status:error,cancelled", term("status", ":", "error", "cancelled")),
        ("dur>5s", term("dur", ">", "5s")),
        ("dur:>=5s", term("dur", ">=", "5s")),
        ("a==b", term("a", "=", "b")),
        ("a!=b", Not(term("a", "=", "b"))),
        ("at:12:30", term("at", ":", "12:30")),
        ('error:"a, b",c', Term("error", ":", (Value("a, b", True), Value("c")))),
        ("-tag:known", Not(term("tag", ":", "known"))),
        ("(tool:f(x))", term("tool", ":", "f(x)")),
    ],
)
def test_query_parses_to_nodes(text: str, expected: Node) -> None:
    assert tree(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "message", "unfinished"),
    [
        ("status:", 7, "a value must follow `status:`", True),
        ("status: ", 7, "without a blank", True),
        ("status: error", 7, "without a blank", False),
        ("a status:error,", 15, "a value must follow `,`", True),
        ("dur>", 4, "a value must follow `dur>`", True),
        ("dur>5x", 4, "a duration such as", False),
        ("dur>1h3", 4, "a duration such as", True),
        ("dur>5x a", 4, "a duration such as", False),
        ("tokens>many", 7, "a number such as", False),
        ("since:2026-1", 6, "a date such as", True),
        ("since:2026-13-01 a", 6, "a date such as", False),
        ("since:yester", 6, "`today`", True),
        ("(status:error", 0, "not closed", True),
        ("a !(b (c)", 3, "not closed", True),
        ('error:"timed', 6, "not closed", True),
        ('"timed"out', 7, "a blank is missing", False),
        ("a )", 2, "no `(`", False),
        ("()", 0, "nothing between", False),
        ("a or", 2, "nothing follows `or`", True),
        ("(a or ) b", 3, "nothing follows `or`", False),
        ("stauts:error", 0, "did you mean `status`?", False),
        ("free qqqqqq:x", 5, "in quotes", False),
        ("agent>5", 5, "isn't a number", False),
        ("has:verdikt", 4, "did you mean `verdict`?", False),
        ("has:verd", 4, "verdict", True),
        ("verdict:realy", 8, "did you mean `real`?", False),
        ("is:", 3, "a value must follow", True),
        ("(" * 40, 32, "deep", False),
    ],
)
def test_errors_point_at_the_column(text: str, column: int, message: str, unfinished: bool) -> None:
    with pytest.raises(QueryError) as caught:
        for_runs(text, now=0)
    assert (caught.value.column, caught.value.unfinished) == (column, unfinished)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_a_caret_stands_below_the_place_however_wide_the_characters_are() -> None:
    with pytest.raises(QueryError) as caught:
        for_runs("東京\x07 toolz:x")
    assert pointed("東京\x07 toolz:x", caught.value).split("\n")[1:] == ["  東京␇ toolz:x", " " * 8 + "^"]


# ---- any text, any tree

NAMES = st.sampled_from(["status", "error", "dur", "tokens", "agent", "has", "since", "x", "verdict"])
BARE = st.text("abcäz09_.*?/-", min_size=1, max_size=6)
VALUES = st.builds(Value, BARE) | st.builds(Value, st.text(max_size=6), st.just(True))
TERMS = st.builds(
    Term, NAMES, st.sampled_from([":", "=", "<", "<=", ">", ">="]), st.lists(VALUES, min_size=1, max_size=3).map(tuple)
).filter(lambda term: not term.values[0].text.startswith(("=", "//", "\\")) or term.values[0].quoted)
TREES: st.SearchStrategy[Node] = st.recursive(
    TERMS | st.builds(Word, st.text(max_size=8)),
    lambda parts: (
        st.builds(Not, parts)
        | st.builds(And, st.lists(parts, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(parts, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)
TEXTS = st.text(max_size=40) | st.text("ab:<>=!-()\"'\\,| or*?5sk\n", max_size=30)


@given(TREES)
def test_a_tree_that_is_written_is_read_as_it_was(node: Node) -> None:
    assert tree(unparse(node)) == node


@given(TEXTS)
def test_any_text_is_a_query_or_an_error_that_points_into_it(text: str) -> None:
    for error in (error_of(for_runs, text), error_of(for_spans, text)):
        assert error is None or (error.message and 0 <= error.begin <= error.column <= len(text))


@given(TEXTS)
def test_unparsed_query_parses_to_the_same_nodes(text: str) -> None:
    try:
        parsed = tree(text)
    except QueryError:
        return
    assert tree(unparse(parsed)) == parsed


@pytest.mark.parametrize(
    "piece", ["a ", "!", "(", ")", "a or ", '"', "a:b,", "-(", "!(a or ", ",", "a|", "status:error or "]
)
def test_long_texts_end_soon_and_deep_ones_do_not_overflow(piece: str) -> None:
    text = piece * 20_000
    error = error_of(lambda text: for_runs(text).matches_text("a"), text)
    assert error is None or error.column <= len(text)

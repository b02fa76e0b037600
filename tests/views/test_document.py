"""Documents: JSON trees and long texts."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import HOSTILE, check_rows, texts
from tracetui.views.document import DocumentRows, document, json_compact, json_rows
from tracetui.views.glyphs import ASCII
from tracetui.views.rows import Fold
from tracetui.views.stack import Block, Stack, TextRows, fill_rows, hidden_rows

VALUE: dict[str, Any] = {
    "query": "KfW 442 budget",
    "none": None,
    "items": list(range(300)),
    "deep": {"a": {"b": {"c": [1, 2, {"d": "x" * 200}]}}},
    "text": "one\ntwo",
    "long": "y" * 3000,
}


def fold_at(rows: DocumentRows | TextRows, word: str) -> Fold:
    """The fold of the first row whose text holds `word`."""
    for i, text in enumerate(texts(rows, 70)):
        if word in text:
            fold = rows.fold(i)
            assert fold is not None
            return fold
    raise AssertionError(word)


def test_a_value_is_a_tree_with_small_things_open() -> None:
    assert texts(DocumentRows(VALUE, width=70), 70) == [
        '  query: "KfW 442 budget"',
        "  none: null",
        "▸ items: [… 300 items]",
        "▾ deep: 1 key",
        "  ▾ a: 1 key",
        "    ▸ b: {… 1 key}",
        "▾ text: 2 lines",
        "    one",
        "    two",
        '▸ long: "' + "y" * 52 + "… 3 000 B",
    ]


def test_opening_and_folding_toggle_one_key() -> None:
    rows = DocumentRows(VALUE, width=70)
    fold = fold_at(rows, "items")
    assert not fold.open
    opened = DocumentRows(VALUE, width=70, opened=frozenset({fold.key}))
    assert len(opened) == len(rows) + 300
    assert texts(opened, 70)[3] == "    0: 0"
    fold = fold_at(rows, "deep")
    assert fold.open
    assert len(DocumentRows(VALUE, width=70, opened=frozenset({fold.key}))) == len(rows) - 2


def test_a_long_string_opens_in_full() -> None:
    fold = fold_at(DocumentRows(VALUE, width=70), "long")
    lines = texts(DocumentRows(VALUE, width=70, opened=frozenset({fold.key})), 70)
    assert "".join(line.strip() for line in lines[10:]) == "y" * 3000


def test_an_opened_row_finds_its_parent() -> None:
    rows = DocumentRows(VALUE, width=70)
    assert rows.parent(5) == 4
    assert rows.parent(4) == 3
    assert rows.parent(3) is None
    assert rows.parent(7) == 6


def test_a_large_container_opens_entry_by_entry() -> None:
    value = {f"k{i}": {"a": i} for i in range(500)}
    rows = DocumentRows(value, width=60)
    assert len(rows) == 500
    fold = rows.fold(250)
    assert fold is not None
    assert not fold.open
    opened = DocumentRows(value, width=60, opened=frozenset({fold.key}))
    assert len(opened) == 501
    assert texts(opened, 60)[250:252] == ["▾ k250: 1 key", "    a: 250"]
    assert opened.index(fold.key) == 250


def test_search_reaches_folded_values() -> None:
    rows = DocumentRows(VALUE, width=70)
    assert list(rows.find(re.compile("xxx"))) == [5]
    assert "xxx" in rows.plain(5)
    assert "xxx" not in rows.plain(3)


def test_values_beyond_json_are_shown() -> None:
    assert texts(DocumentRows({"b": b"\x80\x81", "n": float("nan"), "s": {1}}, width=60)) == [
        "  b: b'\\x80\\x81'",
        "  n: nan",
        "  s: {1}",
    ]


def test_none_is_a_dash_and_empty_values_are_shown() -> None:
    assert texts(document(None, width=40)) == ["—"]
    assert texts(document({}, width=40)) == ["{}"]
    assert texts(document("", width=40)) == ['""']
    assert texts(document(0, width=40)) == ["0"]
    assert texts(document(None, width=40, glyphs=ASCII)) == ["-"]


def test_a_text_is_wrapped_and_folds_behind_its_first_rows() -> None:
    text = "\n".join(f"line {i}" for i in range(50))
    assert len(TextRows(text, 40)) == 50
    rows = TextRows(text, 40, most=11)
    assert texts(rows)[-1] == "▸ 39 more lines"
    assert "line 49" in rows.plain(11)
    fold = rows.fold(0)
    assert fold is not None
    assert not fold.open
    opened = TextRows(text, 40, most=11, opened=frozenset({fold.key}))
    assert len(opened) == 50
    assert opened.fold(3) == Fold(fold.key, True)


def test_a_row_more_than_the_limit_is_not_worth_a_fold() -> None:
    assert len(TextRows("a\nb\nc", 40, most=2)) == 3


def test_long_texts_lose_nothing() -> None:
    lines = ["The bonus has ended, so the budget line matters." * (i % 7) for i in range(9000)]
    text = "\n".join(lines)
    block = Block(text, 33)
    assert len(text) > 1 << 17
    joined = "".join(block.row(i) for i in range(len(block)))
    assert joined == "".join(lines)
    assert max(len(block.row(i)) for i in range(len(block))) == 33


def test_wide_characters_fit_in_long_texts() -> None:
    text = "日本語のテキスト" * 20_000
    rows = TextRows(text, 30)
    check_rows(rows, 30, most=50)
    assert "".join(rows.plain(i) for i in range(len(rows))) == text


def test_compact_is_all_or_nothing() -> None:
    pieces = json_compact({"a": [1, "x"], "b": None}, 40)
    assert pieces is not None
    assert "".join(piece.text for piece in pieces) == '{ a: [1, "x"], b: null }'
    assert json_compact({"a": "x" * 50}, 40) is None
    deep: Any = 1
    for _ in range(2000):
        deep = [deep]
    assert json_compact(deep, 10_000) is None


def test_arguments_in_a_few_rows() -> None:
    rows = json_rows({"query": "KfW 442 budget", "region": "DE", "timeout_s": 30, "ids": list(range(99))}, 40)
    assert ["".join(piece.text for piece in row) for row in rows] == [
        '{ query: "KfW 442 budget", region: "DE",',
        "  timeout_s: 30, ids: [… 99 items] }",
    ]


def test_long_texts_among_arguments_are_wrapped() -> None:
    rows = json_rows({"path": "a.py", "text": "one two three four five six\nseven", "n": 1}, 24)
    assert ["".join(piece.text for piece in row) for row in rows] == [
        '{ path: "a.py",',
        '  text: "one two three',
        "         four five six",
        '         seven", n: 1 }',
    ]


def test_deep_values_do_not_break_search() -> None:
    deep: Any = "needle"
    for _ in range(3000):
        deep = {"a": deep}
    rows = DocumentRows(deep, width=40)
    assert "needle" in rows.plain(len(rows) - 1)
    assert list(rows.find(re.compile("needle"))) == [len(rows) - 1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | HOSTILE,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(HOSTILE, inner, max_size=5),
    max_leaves=25,
)


@given(JSON, st.integers(1, 200), st.data())
def test_any_value_fits_any_width(value: Any, width: int, data: st.DataObject) -> None:
    rows = document(value, width=width)
    check_rows(rows, width)
    keys = [fold.key for i in range(len(rows)) if (fold := rows.fold(i)) is not None]
    if keys:
        toggled = data.draw(st.sets(st.sampled_from(keys)))
        rows = document(value, width=width, opened=frozenset(toggled))
        check_rows(rows, width)
        for i in range(len(rows)):
            above = rows.parent(i)
            assert above is None or above < i


def test_folded_texts_unfold_into_blank_rows_evenly() -> None:
    def rows() -> Stack:
        texts = ("\n".join(f"{name}{i}" for i in range(20)) for name in "ab")
        return Stack([TextRows(text, 40, name=text[0], most=3) for text in texts])

    assert len(rows()) == 8
    assert hidden_rows(rows()) == 34
    some = rows()
    fill_rows(some, 20)
    assert len(some) == 20
    assert [some.line(i, 40)[0].text for i in (8, 9, 10, 19)] == ["a8", "▸ 11 more lines", "b0", "▸ 11 more lines"]
    everything = rows()
    fill_rows(everything, 40)
    assert len(everything) == 40
    assert not hidden_rows(everything)
    assert everything.fold(0) is None  # nothing to fold: it was unfolded for room
    few = rows()
    fill_rows(few, 8)
    assert len(few) == 8


def test_a_long_text_folds_after_the_same_rows_at_every_width() -> None:
    assert {len(TextRows("word " * 40_000, width, most=12)) for width in (20, 120, 4_000)} == {13}

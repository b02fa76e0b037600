"""Pages of JSON documents."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from tracetui.export.json import ITEMS, TEXTS, encode, page

ITEM = some.dictionaries(some.text(max_size=5), some.text(max_size=300) | some.integers(0, 99), max_size=4)


@given(some.lists(ITEM, max_size=40), some.integers(500, 5_000))
def test_pages_together_are_the_document(items: list[Any], size: int) -> None:
    collected, offset = [], 0
    for _ in range(len(items) + 1):
        part = page({"schema": "x", "items": items}, ["items"], offset=offset, size=size)
        assert part.value["schema"] == "x"
        assert len(encode(part.value)) <= size + 4 * len(encode(items[offset : offset + 1]))
        collected += part.value["items"]
        if part.more is None:
            break
        assert part.more > offset
        offset = part.more
    assert collected == items


def test_a_long_string_is_read_in_pages() -> None:
    text = "".join(map(str, range(5_000)))
    collected, offset = "", 0
    while True:
        part = page(text, [], offset=offset, size=2_000)
        collected += part.value
        if part.more is None:
            break
        offset = part.more
    assert collected == text


def test_cut_values_are_named() -> None:
    items = [{"text": "x" * 10_000, "list": list(range(ITEMS + 7))}]
    got = page({"items": items}, ["items"], offset=0, size=20_000)
    assert got.value["items"][0]["text"] == "x" * TEXTS[0] + "…"
    assert got.value["items"][0]["list"] == list(range(ITEMS))
    assert got.cut == ["items[…].text: 4000 of 10000 characters", f"items[…].list: {ITEMS} of {ITEMS + 7} items"]
    assert got.more is None


def test_one_item_that_is_too_large_is_still_returned() -> None:
    items = [{str(i): "x" * 500 for i in range(60)}] * 3
    got = page({"items": items}, ["items"], offset=1, size=1_000)
    assert len(got.value["items"]) == 1
    assert got.more == 2

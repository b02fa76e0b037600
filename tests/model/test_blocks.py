"""Sequences in blocks equal tuples, and versions share what is the same."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from tracetui.model.blocks import BLOCK, Blocks, Positions

sizes = st.integers(0, 3 * BLOCK)


@given(sizes, st.integers(-4 * BLOCK, 4 * BLOCK), st.integers(-4 * BLOCK, 4 * BLOCK), st.sampled_from([1, 2, -1]))
def test_blocks_read_as_a_tuple(size: int, start: int, stop: int, step: int) -> None:
    items = tuple(range(size))
    blocks = Blocks(items)

    assert blocks == items
    assert (len(blocks), list(blocks), list(reversed(blocks))) == (size, list(items), list(items[::-1]))
    assert blocks[start:stop:step] == items[start:stop:step]
    for at in (start, stop):
        try:
            expected = items[at]
        except IndexError:
            continue
        assert blocks[at] == expected


@given(sizes, st.integers(0, 600), st.lists(st.integers(0, 3 * BLOCK), max_size=5))
def test_a_newer_version_shares_unchanged_blocks(size: int, more: int, places: list[int]) -> None:
    before = Blocks(range(size))
    current = list(range(size + more))
    changed = [place for place in places if place < size]
    for place in changed:
        current[place] = -1 - place

    after = before.updated(current, changed)

    assert after == tuple(current)
    assert before == tuple(range(size))
    assert list(before.differing(after)) == sorted(set(changed))
    assert before.replaced({place: current[place] for place in changed}) == tuple(current[:size])
    touched = {place // BLOCK for place in changed} | ({size // BLOCK} if more else set())
    same = [number for number in range(size // BLOCK) if number not in touched]
    assert all(before._blocks[number] is after._blocks[number] for number in same)


def test_blocks_of_an_array_are_arrays() -> None:
    numbers = array("i", range(BLOCK + 2))
    blocks = Blocks[int]().updated(numbers)

    assert [type(block) for block in blocks._blocks] == [array, array]
    assert blocks == tuple(numbers) == Blocks(numbers)
    assert blocks != Blocks(range(1, BLOCK + 3))
    assert (blocks[-1], blocks[BLOCK - 1 : BLOCK + 1], blocks[:2]) == (BLOCK + 1, (BLOCK - 1, BLOCK), (0, 1))


def test_an_older_version_has_no_later_ids() -> None:
    shared = {"a": 0, "b": 1}
    older = Positions(shared, 2)
    shared["c"] = 2

    assert (dict(older), older.get("c"), "c" in older) == ({"a": 0, "b": 1}, None, False)
    assert dict(Positions(shared, 3)) == shared

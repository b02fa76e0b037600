"""Tags and sources, wherever a trace's metadata has them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tracetui.formats.scalars import LENGTH, MAX_TAGS, source_in, tags_in

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["tags", "source"]), below, max_size=2),
)


def test_the_first_object_that_has_some_gives_all_tags() -> None:
    assert tags_in({"tags": "none"}, None, {"tags": ["a", 1, "", "b"]}, {"tags": ["c"]}) == ("a", "b")


def test_a_source_has_several_names() -> None:
    assert source_in({"source": None}, {"origin": "import", "source_uri": "s3://runs/1"}) == "s3://runs/1"
    assert source_in({"framework": "langgraph"}) == "langgraph"
    assert source_in({}, []) is None


@given(st.lists(VALUES, max_size=3))
def test_tags_and_source_of_any_metadata_are_texts(holders: list[Any]) -> None:
    source = source_in(*holders)

    assert all(isinstance(tag, str) and tag for tag in tags_in(*holders))
    assert source is None or (isinstance(source, str) and source)


def test_a_trace_cannot_fill_the_list_with_tags() -> None:
    tags = tags_in({"tags": ["x" * 10_000] * 10_000})

    assert (len(tags), {len(tag) for tag in tags}) == (MAX_TAGS, {LENGTH})

"""Fields are taken for what they say: the value if it is what was asked for, else nothing, whatever stands there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.formats import scalars

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("taken", "kind"),
    [
        (scalars.string, str),
        (scalars.text, str),
        (scalars.word, str),
        (scalars.version, str),
        (scalars.layout, str),
        (scalars.number, float),
        (scalars.integer, int),
        (scalars.natural, int),
        (scalars.moment, float),
    ],
)
@given(value=VALUES)
def test_a_value_is_what_was_asked_for_or_nothing(taken: Callable[[Any], object], kind: type, value: Any) -> None:
    parsed = taken(value)
    assert parsed is None or type(parsed) is kind


@given(value=VALUES)
def test_objects_and_arrays_are_empty_where_there_is_none(value: Any) -> None:
    assert scalars.mapping(value) == (value if isinstance(value, dict) else {})
    assert scalars.sequence(value) == (value if isinstance(value, list) else [])
    assert scalars.child({"a": value}, "a") == scalars.mapping(value)
    assert scalars.child(value, "a") == scalars.mapping(scalars.mapping(value).get("a"))


def test_truth_is_no_number() -> None:
    assert [taken(True) for taken in (scalars.number, scalars.integer, scalars.natural)] == [None] * 3


def test_numbers_have_their_limits() -> None:
    assert scalars.number(10**400) is scalars.number(math.nan) is scalars.number(math.inf) is None
    assert scalars.integer(2**63 - 1) == 2**63 - 1
    assert scalars.integer(2**63) is scalars.natural(2**53) is scalars.natural(-1) is None
    assert scalars.integer(1.0) is None


def test_a_time_without_a_zone_is_that_of_utc() -> None:
    assert (
        scalars.moment("2026-03-02T09:15:00.250Z") == scalars.moment("2026-03-02T10:15:00.250+01:00") == 1772442900.25
    )
    assert scalars.moment("2026-03-02T09:15:00.250") == 1772442900.25
    assert scalars.moment("yesterday") is scalars.moment("2026-03-02T09:15:00" + "0" * 60) is None


def test_the_time_between_is_in_milliseconds_and_never_negative() -> None:
    assert scalars.between(1_772_442_900.25, 1_772_442_901.5) == 1250.0
    assert scalars.between(2.0, 1.0) is scalars.between(None, 1.0) is scalars.between(1.0, None) is None

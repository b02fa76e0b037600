"""JSON as it is on disk: numbers come out exactly as they went in."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tracetui.formats.decode import decode, decode_value, skippable, strict

NUMBERS = st.one_of(
    st.integers(),
    st.integers(min_value=-(10**40), max_value=10**40),
    st.integers(min_value=2**63 - 2, max_value=2**64 + 2).flatmap(lambda n: st.sampled_from([n, -n])),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    st.one_of(NUMBERS, st.text(max_size=30), st.booleans(), st.none()),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=4), below, max_size=4),
    max_leaves=12,
)


def typed_repr(value: Any) -> str:
    """A value with the types of its numbers: 1, 1.0, True and -0.0 are four things."""
    return repr(value)


@settings(max_examples=examples(100))
@given(VALUES, st.integers(0, 20), st.booleans())
def test_strict_json_comes_out_exactly(value: Any, blanks: int, ascii_only: bool) -> None:
    text = " " * blanks + json.dumps(value, ensure_ascii=ascii_only)

    decoded, note = decode(text.encode())

    assert typed_repr(decoded) == typed_repr(value)
    assert note is None


@pytest.mark.parametrize("digits", [19, 20, 30, 308, 309, 4000])
def test_an_integer_of_any_length_is_exact(digits: int) -> None:
    number = int("9" * digits)

    assert decode(f'{{"n": {number}, "m": -{number}}}'.encode()) == ({"n": number, "m": -number}, None)
    assert decode_value(f"[{number}]") == [number]


def test_an_integer_that_python_cannot_hold_stays_text() -> None:
    digits = "7" * 5000

    value, note = decode(f'{{"n": {digits}, "good": 1}}'.encode())

    assert value == {"n": digits, "good": 1}
    assert note


def test_a_number_beyond_all_floats_is_read_leniently() -> None:
    value, note = decode(b'{"n": 1e999, "good": 1}')

    assert value == {"n": float("inf"), "good": 1}
    assert note


def test_a_document_nested_a_thousand_deep_is_read() -> None:
    value, note = decode(b"[" * 1000 + b"]" * 1000)

    assert isinstance(value, list)
    assert note is None


class _Passing(msgspec.Struct):
    """Typed decoding that passes over every field but one, which it leaves as it is written."""

    raw: msgspec.Raw = msgspec.Raw(b"null")


_PIECES = (
    "\\ud800",
    "\\udbff",
    "\\udc00",
    "\\uD83D",
    "\\uDE00",
    "\\u0041",
    "\\u00",
    "\\ud8",
    "a",
    "é",
    "\\n",
    "\\\\",
    '\\"',
)
_WRITTEN = st.lists(st.sampled_from((*_PIECES, "{", '"', "\x01", "\\x", "9" * 4400)), max_size=8).map("".join)


@settings(max_examples=examples(300))
@given(_WRITTEN, st.sampled_from(("other", "raw")), st.sampled_from(('"', "")), st.booleans())
def test_skipped_text_is_what_would_be_read(text: str, name: str, quote: str, broken: bool) -> None:
    data = f'{{"{name}":{quote}{text}{quote}}}'.encode()
    data = data.replace("é".encode(), b"\xe9") if broken else data
    try:
        strict(data)
    except ValueError:
        with pytest.raises(ValueError):
            _pass_over(data)


def _pass_over(data: bytes) -> None:
    skippable(data)
    msgspec.json.decode(data, type=_Passing)


@pytest.mark.parametrize("place", [0, 1, 65_534, 65_535, 65_536, 131_071, 131_072, 199_998])
def test_text_is_checked_in_pieces(place: int) -> None:
    text = ("x" * 65_535 + "é東" + "y" * 199_999).encode()
    skippable(text)
    with pytest.raises(ValueError, match="utf-8"):
        skippable(text[:place] + b"\xe9" + text[place + 1 :])
    with pytest.raises(ValueError, match="utf-8"):
        skippable(text + "東".encode()[:2])

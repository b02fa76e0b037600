"""Typed records: strict decoding and lenient conversion give the same record, and unknown fields are counted."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, ClassVar

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tracetui.errors import FormatError
from tracetui.formats.schema import NULL, Field, Finite, Loose, Natural, Schema, Unknown, loosen, plain, tagged


class Cost(msgspec.Struct, gc=False):
    total: Finite | None = None


class Said(msgspec.Struct, tag_field="role", tag="user"):
    other_fields: ClassVar = "lang"
    text: str | None = None


class Answered(msgspec.Struct, tag_field="role", tag="assistant", rename="camel"):
    other_fields: ClassVar = ""
    tool_name: str | None = None
    cost: Cost | Loose = None
    parts: list[Cost] | None = None


class AnyRole(msgspec.Struct):
    role: str | None = None


class Talk(msgspec.Struct, tag_field="type", tag="message"):
    other_fields: ClassVar = "id"
    message: tagged(Said, Answered, other=AnyRole) | None = None  # type: ignore[valid-type]
    count: Natural | None = None
    raw: Raw = NULL


class Note(msgspec.Struct, tag_field="type", tag="note"):
    text: str | None = None


class Other(msgspec.Struct):
    type: str | None = None


SCHEMA = Schema[Any](Talk | Note, Other)
KIND = SCHEMA._type


def decode(value: Any) -> tuple[Any, Unknown]:
    unknown: Unknown = {}
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return SCHEMA.decode(data, unknown)[0], unknown


def test_fields_of_the_declared_types_are_decoded_strictly() -> None:
    record, unknown = decode({"type": "message", "id": 1, "count": 3, "message": {"role": "user", "text": "x"}})
    assert isinstance(record, Talk)
    assert isinstance(record.message, Said)
    assert (record.count, record.message.text, unknown) == (3, "x", {})


def test_unknown_fields_are_counted_under_the_tag_of_a_closed_struct() -> None:
    record, unknown = decode({"type": "message", "new": 1, "message": {"role": "assistant", "new": 2, "toolName": "t"}})
    assert record.message.tool_name == "t"
    assert unknown == {"message.new": 1, "assistant.new": 1}
    assert decode({"type": "note", "new": 1, "text": "x"}) == (Note("x"), {})  # open


def test_a_mistyped_field_is_left_out_and_counted() -> None:
    record, unknown = decode({"type": "message", "count": -1, "message": {"role": "user", "text": ["x"]}})
    assert (record.count, record.message.text) == (None, None)
    assert unknown == {"message.count": 1, "user.text": 1}


def test_other_kinds_become_the_other_struct() -> None:
    assert decode({"type": "new"}) == (Other("new"), {})
    assert decode({"type": 5}) == (Other(None), {})
    assert decode({}) == (Other(None), {})
    record, unknown = decode({"type": "message", "message": {"role": "new", "x": 1}})
    assert (record.message, unknown) == (AnyRole("new"), {})


def test_values_allowed_in_place_of_an_object_are_not_counted() -> None:
    for given_cost in ("free", 5, None, [1], True):
        record, unknown = decode({"type": "message", "message": {"role": "assistant", "cost": given_cost}})
        assert (record.message.cost, unknown) == (given_cost, {})


def test_items_of_a_list_keep_their_places() -> None:
    parts = [{"total": 1}, "x", {"total": "y"}, {"total": 2.5}]
    record, _ = decode({"type": "message", "message": {"role": "assistant", "parts": parts}})
    assert [part.total for part in record.message.parts] == [1, None, None, 2.5]


@pytest.mark.parametrize("data", [b'{"type":"note","text":"\\ud800"}', b'{"type":"note","x":NaN,"text":"\\ud800"}'])
def test_values_outside_json_are_read_leniently(data: bytes) -> None:
    unknown: Unknown = {}
    record, _, note = SCHEMA.decode(data, unknown)
    assert record == Note("\ud800")
    assert note


def test_values_other_than_objects_are_reported() -> None:
    assert SCHEMA.decode(b"[1]", {})[:2] == (None, [1])
    with pytest.raises(FormatError):
        SCHEMA.decode(b'{"type":"note"', {})
    with pytest.raises(FormatError):
        SCHEMA.decode(b'{"a":' * 100_000, {})


def test_bytes_that_are_not_text_are_noticed_in_fields_that_are_not_decoded() -> None:
    record, _, note = SCHEMA.decode(b'{"type":"message","raw":"\xff"}', {})
    assert note is not None
    assert "not UTF-8" in note
    assert record is not None
    assert plain(record.raw) == "�"


def test_a_field_that_is_decoded_later() -> None:
    cost = Field[Cost](Cost)
    unknown: Unknown = {}
    assert cost.value(Raw(b'{"total":3}')) == Cost(3)
    assert cost.value(Raw(b'{"total":"x"}'), unknown) == Cost(None)
    assert cost.value(Raw(b'"x"')) == Cost(None)
    assert plain(Raw(b'{"a":1e999}')) == {"a": float("inf")}
    assert plain(NULL) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(
        ("type", "role", "message", "count", "raw", "text", "toolName", "cost", "parts", "total", "id", "new")
    )), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
RECORDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "note", "new"]) | VALUES},
    optional={
        "message": st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "new"])},
            optional={"text": VALUES, "toolName": VALUES, "cost": VALUES, "parts": VALUES, "new": VALUES},
        )
        | VALUES,
        "count": VALUES,
        "raw": VALUES,
        "text": VALUES,
        "new": VALUES,
    },
)


@given(RECORDS)
def test_strict_decoding_and_lenient_conversion_agree(value: dict[str, Any]) -> None:
    data, counted = orjson.dumps(value), dict[str, int]()
    lenient = loosen(value, KIND, counted)
    try:
        strict = SCHEMA.strict(data)
    except ValueError:
        unknown: Unknown = {}
        record, _, _ = SCHEMA.decode(data, unknown)
        assert (_seen(record), unknown) == (_seen(lenient), counted)
    else:
        assert not counted
        assert _seen(strict) == _seen(lenient)


def _seen(record: Any) -> Any:
    """The declared fields of a record, raw ones decoded."""
    if isinstance(record, Raw):
        return plain(record)
    if isinstance(record, list):
        return [_seen(item) for item in record]
    if not isinstance(record, msgspec.Struct):
        return record
    kinds: list[Any] = [cls for cls in type(record).__mro__ if cls.__module__ == __name__]
    return kinds[0].__name__, {name: _seen(getattr(record, name)) for name in kinds[0].__struct_fields__}


def test_threads_may_make_decoders_of_the_same_records_at_once() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.formats.decoders_at_once"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")

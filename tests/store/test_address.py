"""Addresses: what `ls` prints finds the same run again, whatever its id and path are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tracetui.errors import NothingReadable, UsageError
from tracetui.model import Body, Run, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.store.address import Address, Target, find, lookup, parse, pick, target


def listed(path: str, ident: str, key: str | None = None) -> RunSummary:
    return RunSummary.of(ref=RunRef("any", path, key), id=ident, name="run")


@settings(max_examples=examples(100))
@given(st.text(alphabet="ab/#%1.", max_size=8), st.lists(st.text(alphabet="ab%25", min_size=1, max_size=4), max_size=3))
def test_an_address_that_was_printed_is_taken_apart_again(key: str, parts: list[str]) -> None:
    path = "dir#1/a%2Fb.db"
    parts = [part.replace("%", "%25") for part in parts]
    text = "/".join([RunRef("any", path, key).address, *parts])

    parsed = parse(text, lambda name: name == path)

    assert parsed == Address(path, key, tuple(part.replace("%25", "%") for part in parts))


def test_the_longest_path_that_is_a_file_wins() -> None:
    files = {"a/b.json", "a/b.json#c"}

    assert parse("a/b.json#c/3", files.__contains__) == Address("a/b.json#c", None, ("3",))
    assert parse("a/b.json#d/3", files.__contains__) == Address("a/b.json", "d", ("3",))
    assert parse("a/b.json/3/x%2Fy", files.__contains__) == Address("a/b.json", None, ("3", "x/y"))
    assert parse("nowhere", files.__contains__) is None


RUNS = [listed("x/1.json", "ab"), listed("x/2.json", "abc"), listed("x/3.db", "k/1", "k/1"), listed("y/1.json", "z")]


def test_exact_beats_prefix_and_a_prefix_must_be_unambiguous() -> None:
    assert find("ab", RUNS, "x") == (RUNS[0], ())
    assert find("abc/2/output", RUNS, "x") == (RUNS[1], ("2", "output"))
    assert find("k/1/4", RUNS, "x") == (RUNS[2], ("4",))
    assert find("k%2F1/4", RUNS, "x") == (RUNS[2], ("4",))
    assert find("k", RUNS, "x") == (RUNS[2], ())
    with pytest.raises(UsageError, match=r"(?s)ambiguous.*x/1\.json\n  x/2\.json"):
        find("a", RUNS, "x")
    with pytest.raises(NothingReadable, match="'q' in x"):
        find("q", RUNS, "x")
    with pytest.raises(NothingReadable):
        find("", RUNS, "x")


def test_one_id_in_two_places_is_ambiguous() -> None:
    with pytest.raises(UsageError, match=r"(?s)y/1\.json\n  y/2\.json"):
        find("z", [*RUNS, listed("y/2.json", "z")], "x")


def test_a_file_with_several_runs_wants_a_name() -> None:
    rows = [listed("f.jsonl", "one", "1"), listed("f.jsonl", "two", "2")]

    assert pick(rows, "2", "f.jsonl") is rows[1]
    assert pick(rows, "one", "f.jsonl") is rows[0]
    assert pick(rows, "tw", "f.jsonl") is rows[1]
    assert pick(rows[:1], None, "f.jsonl") is rows[0]
    with pytest.raises(UsageError, match="contains 2 runs"):
        pick(rows, None, "f.jsonl")
    with pytest.raises(NothingReadable):
        pick(rows, "3", "f.jsonl")
    with pytest.raises(NothingReadable):
        pick([], None, "f.jsonl")


@pytest.fixture
def opened() -> Run:
    spans = [
        Span(id="t1", name="turn", step=1, is_step=True),
        Span(id="c1", name="search", parent_id="t1", step=1),
        Span(id="c2", name="search", parent_id="t1", step=1),
        Span(id="c/3", name="reader", parent_id="t1", step=1),
        Span(id="t2", name="left", step=2, is_step=True),
        Span(id="t3", name="right", step=2, is_step=True),
    ]
    builder = RunBuilder(RunRef("any", "f"), lambda span: Body())
    builder.add(spans)
    return builder.build()


@pytest.mark.parametrize(
    ("parts", "span", "keys"),
    [
        ([], None, ()),
        (["1"], "t1", ()),
        (["1", "c2"], "c2", ()),
        (["1", "c/3", "input", "0"], "c/3", ("input", "0")),
        (["1", "reader"], "c/3", ()),
        (["c2"], "c2", ()),
        (["2", "right", "output"], "t3", ("output",)),
        (["2", "t2"], "t2", ()),
        (["output", "x"], None, ("output", "x")),
        (["t2", "c2"], "t2", ("c2",)),
    ],
)
def test_parts_lead_to_steps_spans_and_fields(
    opened: Run, parts: list[str], span: str | None, keys: tuple[str, ...]
) -> None:
    assert target(opened, parts) == Target(None if span is None else opened.span(span), keys)


@pytest.mark.parametrize("parts", [["2"], ["2", "output"], ["1", "search"]])
def test_parts_that_mean_several_spans_name_them(opened: Run, parts: list[str]) -> None:
    with pytest.raises(UsageError, match="choose one"):
        target(opened, parts)


def test_keys_lead_into_values() -> None:
    value = {"a": [{"b": 1}, Span(id="s", name="n")]}

    assert lookup(value, ["a", "0", "b"], "it") == 1
    assert lookup(value, ["a", "1", "name"], "it") == "n"
    assert lookup(value, [], "it") is value
    for keys in (["x"], ["a", "2"], ["a", "-1"], ["a", "0", "b", "c"]):
        with pytest.raises(UsageError, match=r"^no "):
            lookup(value, keys, "it")


def test_steps_that_have_no_number_are_counted_from_1() -> None:
    builder = RunBuilder(RunRef("any", "x"), lambda span: Body())
    builder.add([Span(id=f"s{i}", name="turn", is_step=i != 1) for i in range(4)])
    run = builder.build()

    assert [target(run, [part]).span for part in ("1", "2", "3")] == [run.span("s0"), run.span("s2"), run.span("s3")]
    assert target(run, ["4"]) == Target(None, ("4",))

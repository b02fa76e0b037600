"""The parse ledger: what is counted of a run, and how ledgers are added up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.model import LAST_LINE, Header, Ledger, Operation, Problem, RunRef, RunSummary, Span, Unread
from tracetui.model.build import RunBuilder
from tracetui.model.ledger import MORE_KINDS, MOST_KINDS, MOST_WRITERS, kinds_of, total
from tracetui.model.span import Body

kinds = st.lists(st.tuples(st.text("abc", min_size=1, max_size=2), st.integers(1, 9)), max_size=9).map(kinds_of)
ledgers = st.builds(
    Ledger,
    st.none() | st.integers(100, 999),
    st.integers(0, 100),
    kinds,
    st.integers(0, 9),
    st.lists(st.sampled_from(["1.2", "1.10", "schema 2"]), unique=True, max_size=1).map(tuple),
)


def summary(*spans: Span, problems: tuple[Problem, ...] = (), moving: bool = False, **header: Any) -> RunSummary:
    builder = RunBuilder(RunRef("any", "/a"), lambda span: Body())
    builder.add(spans, header=Header(id="r", name="n", **header), problems=problems)
    return builder.summary(moving=moving)


def unknown(ident: str, kind: str, at: Any) -> Span:
    return Span(id=ident, name=kind, operation=Operation.UNKNOWN, at=at)


class Place:
    size = 7


def test_records_of_unknown_kinds_are_counted_with_their_bytes() -> None:
    spans = unknown("1", "gale", (40, 10)), unknown("2", "mist", Place()), unknown("3", "gale", None)
    ledger = summary(*spans, Span(id="4", name="gale", at=(50, 100)), size=80, writer="2.1").ledger
    assert ledger == Ledger(80, 17, (("gale", 2), ("mist", 1)), 0, ("2.1",))
    assert ledger.understood == 63
    assert ledger.share == pytest.approx(63 / 80)


def test_problems_say_what_is_lost_and_what_is_torn() -> None:
    problems = (
        Problem("/a", "line 1", "no", 9, True),
        Problem("/a", "line 2", "odd"),
        Problem("/a", "line 3", "long", 5),
    )
    assert summary(problems=problems, size=20).unread == Unread((), 1, 14)
    assert summary(problems=problems[1:2], size=20).unread is None


CUT = (Problem("/a", LAST_LINE, "cut off", 6, True),)


def test_a_line_that_is_being_written_is_not_torn() -> None:
    assert summary(size=20, unfinished=CUT, moving=True).problems == 0
    assert summary(size=20, unfinished=CUT).problems == 1
    assert summary(size=20, unfinished=CUT, moving=True).unread is None
    assert summary(size=20, unfinished=CUT).unread == Unread((), 1, 6)


def test_nothing_is_lost_of_a_size_that_is_not_known() -> None:
    ledger = summary(unknown("1", "gale", (0, 10))).ledger
    assert (ledger.size, ledger.lost, ledger.share, ledger.kinds) == (None, 0, None, (("gale", 1),))


def test_an_empty_file_is_understood() -> None:
    assert Ledger(0).share == 1


@given(st.lists(ledgers, max_size=6))
def test_a_sum_is_that_of_its_parts_in_any_order(parts: list[Ledger]) -> None:
    combined = total(parts)
    assert combined == total(reversed(parts)) == sum(parts, Ledger())
    sizes = [part.size for part in parts if part.size is not None]
    assert combined.size == (sum(sizes) if sizes else None)
    assert sum(count for _, count in combined.kinds) == sum(count for part in parts for _, count in part.kinds)
    assert combined.torn == sum(part.torn for part in parts)


def test_writers_are_in_the_order_of_their_numbers() -> None:
    ledger = total(Ledger(writers=(version,)) for version in ("2.1.10", "schema 2", "2.1.9", "2.1.10-beta", "dev"))
    assert ledger.writers == ("dev", "schema 2", "2.1.9", "2.1.10", "2.1.10-beta")


def test_many_kinds_and_writers_are_bounded_and_no_record_is_forgotten() -> None:
    many = [Ledger(1, 1, ((f"kind {i:03}", 1),), 0, (f"1.{i}",)) for i in range(100)]
    combined = total(many)
    assert combined == sum(many, Ledger())
    assert len(combined.kinds) == MOST_KINDS + 1
    assert combined.kinds[-1] == (MORE_KINDS, 100 - MOST_KINDS)
    assert combined.writers == tuple(f"1.{i}" for i in range(100 - MOST_WRITERS, 100))

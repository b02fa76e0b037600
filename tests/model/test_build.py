"""A run that is built again and again while it grows is the run that is built of everything at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracetui.model
from tracetui.analysis.navigation import above
from tracetui.export.text import span_lines
from tracetui.model import Body, Error, Header, Operation, Problem, Run, RunBody, RunRef, Span, Status, Usage
from tracetui.model.build import RunBuilder, Tree
from tracetui.model.tally import MOST_NAMES, NAME_LENGTH, GrowingTally, Tally

REF = RunRef("any", "run.json")
CHAT, TOOL, TURN = Operation.CHAT, Operation.EXECUTE_TOOL, Operation.TURN

times = st.none() | st.floats(0, 50) | st.sampled_from([float("nan"), float("inf"), -float("inf"), 0.0])
spans = st.builds(
    Span,
    id=st.integers(0, 90).map(str),
    name=st.sampled_from("ab"),
    operation=st.sampled_from([CHAT, TOOL, TURN, Operation.OTHER, Operation.NODE, Operation.UNKNOWN]),
    at=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 99)),
    model=st.sampled_from([None, "gpt-4o", "claude"]),
    parent_id=st.none() | st.integers(0, 91).map(str),
    step=st.none() | st.integers(0, 3),
    is_step=st.booleans(),
    status=st.sampled_from([Status.OK, Status.ERROR, Status.RUNNING]),
    started_at=times,
    duration_ms=times,
    usage=st.none()
    | st.builds(
        Usage, st.none() | st.integers(0, 9), cost_usd=st.none() | st.sampled_from([0.1, 0.2, 1e17, float("nan")])
    ),
    error=st.none() | st.builds(Error, st.sampled_from(["", "x"])),
)


@st.composite
def growth(draw: st.DrawFn) -> list[Span]:
    """Spans as a writer gives them: in order, below one of the last few, some of them given again."""
    came: list[Span] = []
    for number in range(draw(st.integers(1, 12))):
        span = draw(spans)
        below = came[-1 - draw(st.integers(0, 3)) % len(came)].id if number and draw(st.booleans()) else None
        old = draw(st.sampled_from(came)) if number and draw(st.integers(0, 3)) == 0 else None
        ident, parent = (old.id, old.parent_id) if old else (f"n{number}", below)
        came.append(msgspec.structs.replace(span, id=ident, parent_id=parent))
    return came


many = st.integers(60, 200).map(lambda count: [Span(id=f"m{i}", name="m", started_at=i + 1.0) for i in range(count)])
chunks = st.lists(st.lists(spans, max_size=6) | growth() | many | st.just("reset") | st.just("build"), max_size=12)


def outcome(run: Run) -> dict[str, Any]:
    """Everything of a run, as text (where NaN equals NaN), but its revision."""
    fields = ("summary", "body", "spans", "depths", "sizes", "steps", "problems", "index", "complete")
    return {field: repr(getattr(run, field)) for field in fields} | {"positions": sorted(run.index.items())}


def from_scratch(spans: Sequence[Span], problems: Sequence[Problem] = (), header: Header | None = None) -> Run:
    builder = RunBuilder(REF, lambda span: Body())
    builder.add(spans, problems=problems, header=header)
    return builder.build()


@given(chunks, st.booleans())
def test_a_growing_run_is_the_run_built_from_scratch(chunks: list[list[Span] | str], by_start: bool) -> None:
    builder = RunBuilder(REF, lambda span: Body())
    header = Header(id="r", name="n", by_start=by_start)
    so_far: list[Span] = []
    builder.build()
    for chunk in chunks:
        if chunk == "reset":
            builder.reset()
            builder.add([], header=header)
            so_far = []
        elif not isinstance(chunk, str):
            builder.add(chunk, header=header)
            so_far += chunk
            if len(chunk) % 2:
                continue  # several chunks come before somebody builds
        builder.add([], header=header)
        expected = from_scratch(so_far, header=header)
        assert repr(builder.summary()) == repr(expected.summary)
        assert outcome(builder.build()) == outcome(expected)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_of_calls_that_began_at_once_the_innermost_is_the_open_call(order: tuple[int, ...]) -> None:
    calls = [
        Span(id="chat", name="m", operation=CHAT, started_at=5.0, duration_ms=None, status=Status.RUNNING),
        Span(id="tool", name="bash", operation=TOOL, parent_id="chat", started_at=5.0, status=Status.RUNNING),
        Span(id="old", name="m", operation=CHAT, started_at=1.0, status=Status.RUNNING),
        Span(id="done", name="read", operation=TOOL, started_at=7.0, duration_ms=1.0),
    ]
    header = Header(id="s", name="s", is_session=True, ended=False, by_start=True)
    last = from_scratch([calls[i] for i in order], header=header).summary.last
    assert last is not None
    assert (last.open, last.open_since) == ("bash", 5.0)


def numbered(count: int, **fields: Any) -> list[Span]:
    return [Span(id=str(i), name="s", **fields) for i in range(count)]


def test_a_run_stays_what_it_was_while_its_builder_goes_on() -> None:
    builder = RunBuilder(REF, lambda span: Body())
    builder.add(numbered(5))
    first = builder.build()
    before = outcome(first)
    builder.add([Span(id="5", name="new", parent_id="4"), Span(id="2", name="changed")])
    second = builder.build()

    assert outcome(first) == before
    assert (len(second.spans), second.sizes[4], second.span("2")) == (6, 2, Span(id="2", name="changed"))


def test_spans_added_at_the_end_keep_the_order(monkeypatch: Any) -> None:
    builder = RunBuilder(REF, lambda span: Body())
    builder.add([Span(id="root", name="agent"), *numbered(200, parent_id="root")])
    builder.build()
    monkeypatch.setattr("tracetui.model.build.Tree", None)  # nobody can make another one
    builder.add([Span(id="turn", name="turn", parent_id="root"), Span(id="call", name="call", parent_id="turn")])
    builder.add([Span(id="root", name="agent", status=Status.ERROR), Span(id="next", name="turn", parent_id="root")])
    run = builder.build()

    assert [run.spans[i].id for i in range(-3, 0)] == ["turn", "call", "next"]
    assert (run.depths[-3:], run.sizes[0], run.sizes[-3:]) == ((1, 2, 1), 204, (2, 1, 1))
    assert (run.summary.spans, run.summary.errors) == (204, 1)


def test_a_span_that_comes_after_those_below_it_takes_them_in() -> None:
    builder = RunBuilder(REF, lambda span: Body())
    builder.add([*numbered(10), Span(id="call", name="call", parent_id="turn")])
    assert [problem.reason for problem in builder.build().problems] == [
        "1 spans name a parent that is not in the trace"
    ]
    builder.add([Span(id="turn", name="turn")])

    run = builder.build()
    assert (run.problems, run.depths[-1], run.spans[-1].id, run.summary.problems) == ((), 1, "call", 0)


def test_only_the_end_is_counted_again(monkeypatch: Any) -> None:
    builder = RunBuilder(REF, lambda span: Body())
    builder.add([Span(id="root", name="agent", operation=TURN), *numbered(5000, parent_id="root")])
    builder.summary()
    counted: list[str] = []
    monkeypatch.setattr("tracetui.model.tally.Tally.add", lambda self, span: counted.append(span.id))
    builder.add(
        [Span(id="root", name="agent", operation=TURN, started_at=1.0), Span(id="new", name="x", parent_id="root")]
    )
    builder.summary()

    assert len(counted) < 100


exchanges = st.lists(st.tuples(st.integers(0, 20), spans), max_size=8)


@given(st.lists(spans, min_size=3, max_size=12), exchanges)
def test_exchanged_spans_count_as_if_they_had_always_been_there(
    counted: list[Span], exchanges: list[tuple[int, Span]]
) -> None:
    growing = GrowingTally(unsettled=1)
    growing.of(counted)
    for place, span in exchanges:
        position = place % len(counted)
        kept = draw_from(counted[position], span, place)
        growing.exchange(position, counted[position], kept)
        counted[position] = kept
        total = Tally()
        for counted_span in counted:
            total.add(counted_span)
        assert counts(growing.of(counted)) == counts(total)


def counts(tally: Tally) -> str:
    """Everything of a tally, as text (where NaN equals NaN)."""
    values = (getattr(tally, name) for name in tally.__struct_fields__)
    plain = (sorted(value.items()) if isinstance(value, dict) else value for value in values)
    return repr([sorted(value) if isinstance(value, set) else value for value in plain])


def draw_from(old: Span, new: Span, choice: int) -> Span:
    """A newer version of a span in which not everything is new."""
    fields = ("operation", "is_step", "status", "started_at", "duration_ms", "usage", "error", "name", "model", "at")
    chosen = [field for i, field in enumerate(fields) if (i + choice) % 3 == 0]
    return msgspec.structs.replace(old, **{field: getattr(new, field) for field in chosen})


@given(st.lists(st.text("abc", max_size=5)), st.randoms(use_true_random=False))
def test_the_names_of_a_run_are_sorted_and_it_matters_not_in_which_order_they_came(
    names: list[str], random: Any
) -> None:
    called = [Span(id=str(i), name=name, operation=TOOL) for i, name in enumerate(names)]
    tools = summary_of_spans(called)
    random.shuffle(called)

    assert tools == tuple(sorted(set(names)))[:MOST_NAMES]
    assert summary_of_spans(called) is tools


def test_no_trace_fills_the_list_with_names() -> None:
    called = [Span(id=str(i), name=f"{i:06}" + "x" * 100_000, operation=TOOL) for i in range(200)]
    tools = summary_of_spans(called)

    assert len(tools) == MOST_NAMES
    assert {len(name) for name in tools} == {NAME_LENGTH}


def test_of_a_graph_the_nodes_are_known_and_not_the_tools() -> None:
    builder = RunBuilder(REF, lambda span: Body())
    nodes = [Span(id=name, name=name, operation=Operation.NODE) for name in ("rank", "fetch")]
    builder.add(nodes, header=Header(id="a", name="a", tells_calls=False))
    summary = builder.summary()

    assert (summary.tools, summary.models, summary.nodes) == (None, None, ("fetch", "rank"))


def summary_of_spans(spans: list[Span]) -> tuple[str, ...]:
    """The tools of a run of these spans."""
    builder = RunBuilder(REF, lambda span: Body())
    builder.add(spans, header=Header(id="a", name="a"))
    tools = builder.summary().tools
    assert tools is not None
    return tools


def test_a_failure_is_of_the_moment() -> None:
    builder = RunBuilder(REF, lambda span: Body())
    builder.add(numbered(3))
    cut = Problem("run.json", "byte 812", "cut off")

    assert builder.build(failure=cut).problems == (cut,)
    assert (builder.summary(failure=cut).problems, builder.summary().problems, builder.build().problems) == (1, 0, ())


def test_adding_says_whether_anything_came() -> None:
    builder = RunBuilder(REF, lambda span: Body())
    header, body = Header(id="r", name="n"), RunBody(input={"a": 1})
    assert builder.add([], header=header, body=body)
    assert not builder.add([], header=Header(id="r", name="n"), body=RunBody(input={"a": 1}))
    assert not builder.add([])
    assert builder.add([], header=Header(id="r", name="n", ended=False))
    assert builder.add([], problems=[Problem("p", "w", "r")])
    assert builder.add(numbered(1))
    assert builder.add(numbered(1))  # the same header; its body may be another


def test_siblings_are_in_the_order_in_which_they_began_where_the_header_says_so() -> None:
    times = {"c": 3.0, "top": 0.0, "a": 1.0, "?": None, "b": 2.0}
    came = [
        Span(id=name, name=name, started_at=time, parent_id="top" if name != "top" else None)
        for name, time in times.items()
    ]
    run = from_scratch(came, header=Header(id="r", name="n", by_start=True))
    assert [span.id for span in run.spans] == ["top", "a", "b", "c", "?"]
    assert [span.id for span in from_scratch(came).spans] == ["top", "c", "a", "?", "b"]


@given(st.lists(spans, max_size=30, unique_by=lambda span: span.id), st.booleans())
def test_a_tree_refuses_what_would_need_another_order(given_spans: list[Span], by_start: bool) -> None:
    grown = Tree({}, by_start=by_start)
    known: dict[str, Span] = {}
    for span in given_spans:
        known[span.id] = span
        tree = Tree(known, by_start=by_start)
        if not grown.put(span):
            grown = tree
        assert grown.shape() == tree.shape()
        assert (grown.index, grown.problems("p")) == (tree.index, tree.problems("p"))


def steps_of(work: Callable[[], object]) -> int:
    """How many lines of the model `work` runs: a measure of its cost that no load on the machine changes."""
    folder = os.path.dirname(tracetui.model.__file__)
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename.startswith(folder) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growing(count: int, parents: Callable[[int], str | None]) -> Run:
    """The run of so many spans that come in small chunks, built each time it has grown by half."""
    builder = RunBuilder(REF, lambda span: Body())
    built = 1
    for start in range(0, count, 20):
        builder.add(Span(id=str(i), name="n", parent_id=parents(i)) for i in range(start, start + 20))
        if len(builder) >= 1.5 * built:
            builder.build()
            built = len(builder)
    return builder.build()


@pytest.mark.parametrize(
    "parent",
    [
        pytest.param(lambda i, count: str((i - 1) % count), id="one cycle, each after its parent"),
        pytest.param(lambda i, count: str((i + 1) % count), id="one cycle, each before its parent"),
        pytest.param(lambda i, count: str(i ^ 1), id="cycles of two"),
        pytest.param(lambda i, count: str(i - 1) if i else None, id="one chain"),
    ],
)
def test_deep_and_cyclic_spans_cost_as_much_as_others(parent: Callable[[int, int], str | None]) -> None:
    def steps(count: int) -> int:
        return steps_of(lambda: growing(count, lambda i: parent(i, count)))

    few, many = steps(500), steps(2000)

    assert many < 6 * few, "four times as many spans take at most about four times as long"


@pytest.mark.parametrize("parent", [None, "0"])
def test_a_new_span_costs_the_same_in_a_long_run(parent: str | None) -> None:
    def steps(count: int) -> int:
        builder = RunBuilder(REF, lambda span: Body())
        builder.add(Span(id=str(i), name="n", parent_id=parent if i else None, step=i) for i in range(count))
        builder.build()

        def append() -> None:
            builder.add([Span(id="new", name="n", parent_id=parent, step=count)])
            builder.build()

        return steps_of(append)

    few, many = steps(2_000), steps(64_000)

    assert many < few + 200, "the lines that list blocks"


def test_the_root_of_a_cut_cycle_has_no_parent() -> None:
    run = from_scratch([Span(id=str(i), name="n", parent_id=str((i - 1) % 5)) for i in range(5)])

    assert run.depths == (0, 1, 2, 3, 4)
    assert [run.parent(position) for position in range(5)] == [None, 0, 1, 2, 3]
    assert above("4", run) == {"0", "1", "2", "3"}


def test_the_text_of_a_deep_run_grows_with_its_spans_and_not_with_their_depth() -> None:
    run = from_scratch([Span(id=str(i), name="n", parent_id=str(i - 1) if i else None) for i in range(500)])

    last = next(iter(span_lines(run, 499)))
    assert len(last) < 200
    assert "(depth 499) " in last

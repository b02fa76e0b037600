"""One trace in several files: its parts are known, and counted once, in whatever order they come."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tracetui.live.scan import ScannedFile
from tracetui.model import RunRef, RunSummary, Status, StatusSource
from tracetui.store.relations import Relations, split_traces, uncounted_parts
from tracetui.store.store import Store

TRACE = "0123456789abcdef" * 2
OTHER = TRACE[::-1]


def part(path: str, status: Status, trace: str = TRACE, *, split: bool = True, **fields: Any) -> RunSummary:
    return RunSummary.of(
        ref=RunRef("otlp", path, trace),
        split=split,
        id=trace,
        name="run",
        status=status,
        status_source=StatusSource.DERIVED,
        **fields,
    )


def test_the_part_that_ended_counts_for_all() -> None:
    first, second = part("a.jsonl", Status.UNKNOWN), part("b.jsonl", Status.RUNNING)
    ended, alone = part("c.jsonl", Status.ERROR), part("a.jsonl", Status.UNKNOWN, OTHER)
    for runs in permutations([first, second, ended, alone]):
        assert split_traces(runs) == {TRACE: [ended.ref, first.ref, second.ref]}
        assert uncounted_parts(runs) == {first.ref, second.ref}
        relations = Relations(runs)
        assert [*relations.parts(second.ref)] == [ended.ref, first.ref, second.ref]
        assert [*relations.parts(alone.ref)] == []
    assert split_traces([second, first]) == {TRACE: [first.ref, second.ref]}


def test_a_trace_that_ended_twice_is_no_part_of_the_other() -> None:
    twice = [part("a.jsonl", Status.OK), part("b.jsonl", Status.OK)]
    assert split_traces(twice) == {}
    assert uncounted_parts([*twice, part("c.jsonl", Status.UNKNOWN)]) == {RunRef("otlp", "c.jsonl", TRACE)}


def test_runs_whose_ids_others_may_have_are_no_parts() -> None:
    assert split_traces([part(path, Status.UNKNOWN, split=False) for path in ("a.db", "b.db")]) == {}


def test_the_part_that_counts_is_found_again_once_one_ends() -> None:
    store = Store()
    files = [
        ScannedFile(path=path, format="otlp", runs=(part(path, Status.RUNNING),)) for path in ("a.jsonl", "b.jsonl")
    ]
    store.apply(files, 0.0)
    first, second = (file.runs[0].ref for file in files)
    assert [*store.relations.parts(first)] == [first, second]
    store.apply([ScannedFile(path="b.jsonl", format="otlp", runs=(part("b.jsonl", Status.OK),))], 1.0)
    assert [*store.relations.parts(first)] == [second, first]


STATES = st.sampled_from([Status.OK, Status.ERROR, Status.UNKNOWN, Status.RUNNING, None])


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([TRACE, OTHER]), STATES), max_size=12))
def test_the_overview_counts_what_a_count_from_scratch_does(steps: list[tuple[str, str, Status | None]]) -> None:
    store, runs = Store(), dict[RunRef, RunSummary]()
    for path, trace, status in steps:
        ref = RunRef("otlp", path, trace)
        runs.pop(ref, None)
        if status is not None:
            runs[ref] = part(path, status, trace)
        here = tuple(run for run in runs.values() if run.ref.path == path)
        store.apply([ScannedFile(path=path, format="otlp", runs=here)], 0.0)
        counted = [run for run in runs.values() if run.ref not in uncounted_parts(runs.values())]
        overview = store.overview
        assert overview.runs == len(counted)
        assert sum(overview.by_status.values()) == len(counted)
        for status_, number in overview.by_status.items():
            assert number == sum(run.status is status_ for run in counted)

"""How the run list is arranged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tracetui.analysis.arrangement import GROUPS, SORTS, Arrangement, Item, Order, arrange, row_key_of
from tracetui.model import FirstError, Problem, RunRef, RunState, RunSummary, Status
from tracetui.store import query
from tracetui.store.facts import run_time

NOW = 1_800_000_000.0


def run(name: str, *, age: float = 0.0, **fields: object) -> RunSummary:
    values = {"ref": RunRef("x", f"{name}.json"), "id": name, "name": name, "started_at": NOW - age, "deep": True}
    return RunSummary.of(**{**values, **fields})  # type: ignore[arg-type]


def names(items: list[Item]) -> list[str]:
    return [
        item.name if isinstance(item, RunSummary) else item.path if isinstance(item, Problem) else item[0]
        for item in items
    ]


def test_newest_first_by_day_and_what_runs_above_all() -> None:
    runs = [run("old", age=400_000), run("new", age=60), run("live", age=9e6, status=Status.RUNNING)]
    listing = names(arrange(runs, [], Arrangement(), now=NOW))
    assert listing[:2] == ["live", "live"]
    assert listing.index("new") < listing.index("old")


def test_children_follow_the_run_that_started_them_in_the_order_they_began() -> None:
    place = {"ref": RunRef("x", "a.db", "p")}
    parent = run("p", age=10, **place)
    children = [run(f"c{i}", age=9 - i, ref=RunRef("x", "a.db", f"c{i}"), parent="p") for i in (1, 0, 2)]
    assert names(arrange([*children, run("other", age=1), parent], [], Arrangement(group="none"), now=NOW)) == [
        "other", "p", "c0", "c1", "c2",
    ]  # fmt: skip


def test_children_in_files_of_their_own_stand_below_their_parent_too_and_orphans_by_themselves() -> None:
    runs = [
        run("late", age=1, agent="x"),
        run("orphan", age=2, agent="y", parent="gone"),
        run("parent", age=9, agent="z"),
        run("child", age=5, agent="x", parent="parent"),
    ]
    assert names(arrange(runs, [], Arrangement(group="agent"), now=NOW)) == [
        "x", "late", "y", "orphan", "z", "parent", "child",
    ]  # fmt: skip
    assert names(arrange(runs, [], Arrangement(group="none"), now=NOW)) == ["late", "orphan", "parent", "child"]


def test_a_cycle_of_parents_loses_no_run() -> None:
    a = run("a", ref=RunRef("x", "f", "a"), parent="b")
    b = run("b", ref=RunRef("x", "f", "b"), parent="a")
    assert sorted(names(arrange([a, b], [], Arrangement(group="none"), now=NOW))) == ["a", "b"]


def test_runs_contain_all_words_and_no_excluded_word() -> None:
    runs = [
        run("a", model="gpt-4o", status=Status.ERROR, first_error=FirstError("timed out", "TimeoutError")),
        run("b", model="gpt-4o", status=Status.OK),
        run("c", model="claude"),
    ]
    for text, expected in {
        "gpt": "ab",
        "gpt timeout": "a",
        "!gpt": "c",
        "GPT !error": "b",
        "zzz": "",
        "!": "abc",
    }.items():
        listing = names(arrange(runs, [], Arrangement(query=text, group="none"), now=NOW))
        assert "".join(sorted(listing)) == expected, text


class FixedVerdicts(query.TraceContext):
    """The run named a is flaky; no other has a verdict."""

    def verdict(self, run: RunSummary) -> str | None:
        return "flaky" if run.name == "a" else None


def test_a_query_filters_the_list_as_far_as_it_is_valid() -> None:
    runs = [run("a", status=Status.ERROR, steps=3), run("b", status=Status.ERROR, steps=30), run("c", age=90_000)]
    columns: query.Columns[RunSummary] = query.Columns()
    context = FixedVerdicts(state=lambda run: RunState.QUIET if run.name == "c" else RunState.ENDED)
    for text, expected in {
        "status:error": "ab",
        "status:error steps>9": "b",
        "status:error steps>": "ab",
        "status:error (steps>9": "ab",
        "since:2h": "ab",
        "verdict:none": "bc",
        "is:running or verdict:flaky": "ac",
    }.items():
        arrangement = Arrangement(query=text, group="none")
        arranged = arrange(runs, [], arrangement, now=NOW, context=context, columns=columns)
        assert "".join(sorted(names(arranged))) == expected, text
        place = row_key_of(arrangement, now=NOW, context=context)
        assert "".join(run.name for run in runs if place(run)[0]) == expected
    live = arrange(runs, [], Arrangement(query="is:running", group="none"), now=NOW, state=lambda run: RunState.RUNNING)
    assert names(live) == ["a", "b", "c"]


def test_only_failures_are_filtered_as_well() -> None:
    runs = [run("a", status=Status.ERROR), run("b", status=Status.ERROR, agent="x"), run("c", agent="x")]
    arrangement = Arrangement(query="agent:x", failures=True, group="none")
    assert names(arrange(runs, [], arrangement, now=NOW)) == ["b"]
    place = row_key_of(arrangement, now=NOW)
    assert [place(run)[0] for run in runs] == [False, True, False]


def test_no_key_tells_anything_of_an_unreadable_file() -> None:
    problem = Problem("bad.json", "byte 3", "cut off")
    for text, is_listed in {
        "bad": True,
        "!bad": False,
        "unreadable": True,
        "status:error": False,
        "-status:ok": True,
    }.items():
        assert bool(arrange([], [problem], Arrangement(query=text), now=NOW)) is is_listed, text


def test_unreadable_files_have_rows_unless_only_failures_are_wanted() -> None:
    problem = Problem("bad.json", "byte 3", "cut off")
    assert "bad.json" in names(arrange([run("a")], [problem], Arrangement(), now=NOW))
    assert "bad.json" in names(arrange([run("a")], [problem], Arrangement(query="cut"), now=NOW))
    assert "bad.json" not in names(arrange([run("a")], [problem], Arrangement(failures=True), now=NOW))


summaries = st.builds(
    run,
    name=st.text(max_size=5),
    age=st.floats(-1e12, 1e12),
    status=st.sampled_from(Status),
    duration_ms=st.none() | st.floats(0, 1e9),
    steps=st.none() | st.integers(0, 100),
    errors=st.none() | st.integers(0, 3),
    parent=st.none() | st.text(max_size=5),
    started_at=st.none() | st.floats(-1e15, 1e15),
    time_zone=st.sampled_from(["UTC", None]),
)


@given(
    st.lists(summaries, max_size=12, unique_by=lambda run: run.ref),
    st.sampled_from([*SORTS]),
    st.sampled_from([*GROUPS]),
    st.booleans(),
)
def test_every_run_is_shown_exactly_once_however_it_is_arranged(
    runs: list[RunSummary], sort: str, group: str, reverse: bool
) -> None:
    items = arrange(runs, [], Arrangement(sort, reverse, group), now=NOW)
    listed = [item for item in items if isinstance(item, RunSummary)]
    assert sorted(run.ref for run in listed) == sorted(run.ref for run in runs)


def test_runs_of_a_dead_program_are_not_live() -> None:
    killed, quiet = run("killed", age=90_000, status=Status.RUNNING), run("quiet", age=60, status=Status.UNKNOWN)
    states = {"quiet": RunState.QUIET}
    listing = names(arrange([killed, quiet], [], Arrangement(), now=NOW, state=lambda run: states.get(run.name)))
    assert listing[:2] == ["live", "quiet"]
    assert listing[-1] == "killed"
    by_status = names(arrange([killed], [], Arrangement(group="status"), now=NOW, state=lambda run: RunState.UNKNOWN))
    assert by_status == ["unknown", "killed"]


def test_sessions_of_one_folder_stand_together_whoever_wrote_them() -> None:
    runs = [
        run("a", age=1, source="/home/me/one"),
        run("b", age=2, source="/home/me/two"),
        run("c", age=3, source="/home/me/one", ref=RunRef("other", "c.json")),
        run("d", age=4),
        run("e", age=5, source="/home/me/two", ref=RunRef("other", "e.json")),
    ]
    listing = names(arrange(runs, [], Arrangement(group="source"), now=NOW))
    assert listing == ["/home/me/one", "a", "c", "/home/me/two", "b", "e", "no source", "d"]


def test_an_order_that_is_kept_is_that_of_the_runs_and_of_the_arrangement() -> None:
    order = Order()
    runs = [run("b", age=1), run("a", age=2), run("c", age=3)]
    for arrangement in (
        Arrangement(group="none"),
        Arrangement("name", group="none"),
        Arrangement("name", reverse=True, group="none"),
    ):
        for subset in (runs, runs[:2], [*runs, run("d", age=0)], runs):
            fresh = arrange(subset, [], arrangement, now=NOW)
            assert names(arrange(subset, [], arrangement, now=NOW, order=order)) == names(fresh)
            assert names(arrange(subset, [], replace(arrangement, query="a", group="none"), now=NOW, order=order)) == [
                "a"
            ]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 1.0, 2.0]), st.none() | st.sampled_from("xy")))
)
def test_runs_of_one_time_stand_by_path(rows: list[tuple[str, float | None, str | None]]) -> None:
    runs = [RunSummary.of(RunRef("any", path, key), id="", name="", started_at=start) for path, start, key in {*rows}]
    for reverse in (False, True):
        paths = arrange(runs, (), Arrangement(group="none", reverse=reverse), now=0.0)
        wanted = sorted(runs, key=lambda run: (-run_time(run), run.ref.path, run.ref.key or ""), reverse=reverse)
        assert paths == wanted

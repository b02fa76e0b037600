"""Which run another one means: nearest place first, never itself, never a guess."""

from __future__ import annotations

import sys
import time
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tracetui.live.scan import ScannedFile
from tracetui.model import RunRef, RunSummary, Status, StatusSource
from tracetui.store.relations import MAX_REPEATS, Relations
from tracetui.store.store import Store


def run(path: str, ident: str, key: str | None = None, **fields: Any) -> RunSummary:
    return RunSummary.of(ref=RunRef("any", path, key), id=ident, name="run", **fields)


def address(runs: list[RunSummary], of: RunSummary) -> str | None:
    return Relations(runs).replay_addresses()[of.ref]


def test_a_run_of_the_same_file_comes_first() -> None:
    replay = run("a/x.db", "r", "r", replay_of="o")
    runs = [replay, run("a/x.db", "o", "o"), run("a/o.json", "o"), run("b/o.json", "o")]

    assert address(runs, replay) == "a/x.db#o"
    assert address([replay, *runs[2:]], replay) == "a/o.json"
    assert address([replay, runs[3]], replay) == "b/o.json"
    assert address([replay], replay) is None


def test_two_runs_that_are_as_near_are_none() -> None:
    replay = run("a/r.json", "r", replay_of="o")

    assert address([replay, run("a/1.json", "o"), run("a/2.json", "o"), run("b/3.json", "o")], replay) is None


def test_a_run_is_never_its_own_original() -> None:
    own = run("a/r.json", "r", replay_of="r")

    assert address([own], own) is None
    assert address([own, run("a/twin.json", "r")], own) == "a/twin.json"


def test_the_path_that_a_format_gives_wins_over_the_id() -> None:
    student = run("a/student.jsonl", "s", replay_of="s", replay_of_path="a/teacher.jsonl", relation="student")
    teacher = run("a/teacher.jsonl", "s")

    assert address([student, teacher, run("a/other.jsonl", "s")], student) == "a/teacher.jsonl"
    assert address([student], student) is None


def test_children_and_parents_answer_each_other() -> None:
    parent, other = run("x.db", "p", "p"), run("y.db", "p", "p")
    child = run("x.db", "p/0", "p/0", parent="p")
    relations = Relations([other, child, parent])

    assert relations.parent(child.ref) == parent.ref
    assert relations.children(parent.ref) == [child.ref]
    assert relations.children(other.ref) == []
    assert relations.replays(parent.ref) == []


def test_repetitions_are_those_of_the_earliest_run_of_a_task_in_whatever_order_they_come() -> None:
    first = run("b", "1", repeats="t", started_at=1.0)
    second = run("a", "2", repeats="t", started_at=2.0)
    timeless = run("a", "3", key="3", repeats="t")
    other, nothing = run("c", "4", repeats="u", started_at=0.0), run("d", "5")

    for runs in permutations((first, second, timeless, other, nothing)):
        relations = Relations(runs)
        assert relations.repeats(first.ref) == relations.variants(first.ref) == [second.ref, timeless.ref]
        assert [relations.original(run.ref) for run in (first, second, timeless, other, nothing)] == [
            None,
            first.ref,
            first.ref,
            None,
            None,
        ]
        assert [relations.relation(run.ref) for run in (first, second, nothing)] == [None, "repeat", None]
        assert relations.replays(first.ref) == []
        assert set(relations.replay_addresses().values()) == {None}


def test_a_run_that_names_its_original_is_no_repetition() -> None:
    first, second = run("a", "1", repeats="t", started_at=1.0), run("b", "2", repeats="t", started_at=2.0)
    fork = run("c", "3", repeats="t", replay_of="2", relation="fork", started_at=3.0)
    orphan = run("d", "4", repeats="t", replay_of="gone", started_at=0.0)
    relations = Relations([first, second, fork, orphan])

    assert relations.repeats(first.ref) == [second.ref]
    assert (relations.original(fork.ref), relations.relation(fork.ref)) == (second.ref, "fork")
    assert (relations.original(orphan.ref), relations.relation(orphan.ref)) == (None, "replay")
    assert relations.variants(second.ref) == [fork.ref]


def test_repeated_updates_cost_little() -> None:
    runs = [run(f"{i % 7}/{i:06}", str(i), repeats="health", started_at=float(i)) for i in range(20_000)]
    began = time.process_time()
    relations = Relations(reversed(runs))
    assert time.process_time() - began < 5

    assert relations.repeats(runs[0].ref) == [run.ref for run in runs[1 : MAX_REPEATS + 1]]
    assert relations.original(runs[MAX_REPEATS].ref) == runs[0].ref
    assert relations.original(runs[-1].ref) is None


IDS = st.sampled_from(["", "a", "b", "../c"])
RUNS = st.lists(
    st.tuples(st.sampled_from(["x/1", "x/2", "y/3"]), IDS, st.none() | IDS, st.none() | IDS), max_size=8
).map(
    lambda rows: [
        RunSummary.of(ref=RunRef("any", path, str(i)), id=ident, name="", replay_of=original, parent=parent)
        for i, (path, ident, original, parent) in enumerate(rows)
    ]
)


@settings(max_examples=examples(100))
@given(RUNS)
def test_relations_are_mutual_and_lead_elsewhere_for_any_ids(runs: list[RunSummary]) -> None:
    relations = Relations(runs)
    by_ref = {run.ref: run for run in runs}
    for run in runs:
        original, parent = relations.original(run.ref), relations.parent(run.ref)
        assert original != run.ref
        assert parent != run.ref
        assert original is None or by_ref[original].id == run.replay_of
        assert original is None or run.ref in relations.replays(original)
        assert parent is None or run.ref in relations.children(parent)


def test_copies_are_one_run_in_any_order() -> None:
    database = run("b/x.db", "s", "s", identity="i", repeats="t", started_at=5.0)
    export, older = (run(path, "s", identity="i", repeats="t", started_at=5.0) for path in ("a/s.json", "c/s.json"))
    other = run("a/o.json", "o", repeats="t", started_at=6.0)
    for runs in permutations([database, export, older, other]):
        relations = Relations(runs)
        assert {run.ref: relations.original(run.ref) for run in runs} == {
            database.ref: None,
            export.ref: database.ref,
            older.ref: database.ref,
            other.ref: database.ref,
        }
        assert [relations.relation(run.ref) for run in (database, export, older, other)] == [
            None,
            "copy",
            "copy",
            "repeat",
        ]
        assert {*relations.variants(database.ref)} == {export.ref, older.ref, other.ref}


def test_a_copy_that_names_an_original_is_a_replay_of_that() -> None:
    original = run("a/x.db", "o", "o")
    fork = run("a/x.db", "f", "f", identity="i", replay_of="o", relation="fork")
    copy = run("b/f.json", "f", identity="i", replay_of="o", relation="fork")
    relations = Relations([original, fork, copy])
    assert (relations.relation(copy.ref), relations.original(copy.ref)) == ("fork", original.ref)


# ---- changes


PATHS = ("x/1", "x/2", "y/3", "4")
FIELDS = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abc"),
        "replay_of": st.none() | st.sampled_from("abc"),
        "replay_of_path": st.sampled_from([None, None, *PATHS]),
        "parent": st.none() | st.sampled_from("ab"),
        "identity": st.sampled_from([None, None, "i", "j"]),
        "split": st.booleans(),
        "status": st.sampled_from([Status.OK, Status.UNKNOWN]),
        "task": st.none() | st.just("t"),
        "repeats": st.none() | st.sampled_from("kl"),
        "started_at": st.sampled_from([None, 1.0, 2.0, float("nan")]),
    }
)
FILES = st.tuples(st.sampled_from(PATHS), st.booleans(), st.lists(FIELDS, max_size=3), st.booleans())
"""A file: its path, whether it is one run, its runs, and whether relations are looked at then."""


def every_answer(relations: Relations, runs: dict[RunRef, RunSummary]) -> object:
    """All that can be asked."""
    return [
        relations.replay_addresses(),
        relations.inherited_tasks,
        *(
            (
                ref,
                relations.original(ref),
                relations.relation(ref),
                relations.variants(ref),
                relations.root(ref),
                [*relations.parts(ref)],
                relations.parent(ref),
                relations.children(ref),
                relations.named(ref, "a"),
            )
            for ref in runs
        ),
    ]


@settings(max_examples=examples(200))
@given(st.lists(FILES, max_size=10))
def test_relations_that_follow_changes_are_those_of_all_runs(files: list[Any]) -> None:
    store = Store()
    assert store.relations
    for path, alone, rows, asked in files:
        runs = [
            RunSummary.of(
                RunRef("any", path, None if alone else str(i)), name="", status_source=StatusSource.DERIVED, **fields
            )
            for i, fields in enumerate(rows[:1] if alone else rows)
        ]
        store.apply([ScannedFile(path=path, format="any", runs=tuple(runs), skipped=not runs)], 0.0)
        if asked:
            answers = every_answer(store.relations, store.runs)
            assert answers == every_answer(Relations([*store.runs.values()]), store.runs)


def test_a_new_run_costs_the_same_among_few_and_many() -> None:
    def calls(count: int) -> int:
        """Functions called to relate one more run."""
        store, called = Store(), 0
        runs = [run(f"{i:05}", str(i), repeats=str(i // 3), parent=str(i // 7 * 7 + 1)) for i in range(count)]
        store.apply([ScannedFile(path=run.ref.path, runs=(run,)) for run in runs], 0.0)
        new = run("new", "new", repeats="1", replay_of="5", parent="8")
        assert store.relations.named(runs[0].ref, "-") is None

        def count_call(*_: object) -> None:
            nonlocal called
            called += 1

        sys.setprofile(count_call)
        try:
            store.apply([ScannedFile(path="new", runs=(new,))], 0.0)
            answer = store.relations.original(new.ref), store.relations.parent(new.ref)
        finally:
            sys.setprofile(None)
        assert answer == (runs[5].ref, runs[8].ref)
        return called

    assert calls(3_000) < 1.5 * calls(100)

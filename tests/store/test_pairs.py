"""The pairs of a directory: several replays of one original side by side, missing originals said."""

from __future__ import annotations

from typing import Any

from tracetui.model import RunRef, RunSummary
from tracetui.store.relations import pairs_of


def run(path: str, ident: str, **fields: Any) -> RunSummary:
    return RunSummary.of(ref=RunRef("any", path), id=ident, name="run", **fields)


ORIGINAL = run("o.json", "o")
FIRST = run("1.json", "1", replay_of="o", relation="replay")
RETRY = run("2.json", "2", replay_of="o", relation="retry")
ORPHAN = run("3.json", "3", replay_of="gone", relation="fork")
STUDENT = run("s/b.jsonl", "x", replay_of="x", replay_of_path="s/a.jsonl", relation="student")


def test_replays_of_one_original_come_together() -> None:
    pairs = pairs_of([FIRST, STUDENT, ORIGINAL, RETRY, ORPHAN, run("s/a.jsonl", "x")])

    assert [(pair.replay.id, pair.original and pair.original.id, pair.relation) for pair in pairs] == [
        ("1", "o", "replay"),
        ("2", "o", "retry"),
        ("x", "x", "student"),
        ("3", None, "fork"),
    ]


def test_a_missing_original_is_an_error() -> None:
    (orphan,) = pairs_of([ORPHAN])
    (student,) = pairs_of([STUDENT])

    assert (orphan.original, orphan.missing) == (None, "gone")
    assert student.missing == "x"
    assert pairs_of([FIRST, ORIGINAL])[0].missing is None


def test_repetitions_of_a_task_are_pairs_only_if_they_are_asked_for() -> None:
    runs = [run(f"t/{i}.json", str(i), repeats="task", started_at=float(i)) for i in range(3)]

    assert pairs_of([*runs, FIRST, ORIGINAL]) == pairs_of([FIRST, ORIGINAL])
    pairs = pairs_of([*runs, FIRST, ORIGINAL], repeats=True)
    assert [(pair.replay.id, pair.original and pair.original.id, pair.relation) for pair in pairs] == [
        ("1", "0", "repeat"),
        ("2", "0", "repeat"),
        ("1", "o", "replay"),
    ]

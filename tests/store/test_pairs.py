"""The pairs of a directory: several replays of one original side by side, missing originals said."""

from __future__ import annotations

from typing import Any

from tracetui.model import RunRef, RunSummary
from tracetui.store.pairs import pairs_of, replays_of
from tracetui.store.relations import Relations


def run(path: str, ident: str, **fields: Any) -> RunSummary:
    return RunSummary(ref=RunRef("any", path), id=ident, name="run", **fields)


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


def test_a_missing_original_is_said() -> None:
    (orphan,) = pairs_of([ORPHAN])
    (student,) = pairs_of([STUDENT])

    assert (orphan.original, orphan.missing) == (None, "gone")
    assert student.missing == "x"
    assert pairs_of([FIRST, ORIGINAL])[0].missing is None


def test_the_replays_of_a_run() -> None:
    runs = [FIRST, ORIGINAL, RETRY]
    relations = Relations(runs)

    assert [pair.replay.id for pair in replays_of(ORIGINAL.ref, runs, relations)] == ["1", "2"]
    assert replays_of(FIRST.ref, runs, relations) == []

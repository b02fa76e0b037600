"""The accumulated state is folded on, not anew for each body; whatever is asked in whichever order."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.hypergraph_build import TO_V3, TO_V4, TO_V6, V2, at, database, insert
from tracetui import load
from tracetui.diff.comparison import compare
from tracetui.formats.hypergraph import body as bodies_of
from tracetui.formats.hypergraph.rows import Database
from tracetui.model import Run
from tracetui.sources import base

V6 = V2 + TO_V3 + TO_V4 + TO_V6
Written = tuple[int, int, dict[str, int]]
"""Superstep, second of completion, values."""


def make(path: Path, steps: list[Written], runs: tuple[str, ...] = ("r",)) -> None:
    with database(path, V6, 6) as db:
        for run in runs:
            insert(db, "runs", id=run, graph_name="g", status="completed", created_at=at(0), inputs_data={"i": 0})
            for index, (superstep, second, values) in enumerate(steps):
                insert(db, "steps", run_id=run, step_index=index, superstep=superstep, node_name=f"n{index}",
                       status="completed", values_data=values, input_versions=dict.fromkeys(values, 1),
                       created_at=at(second), completed_at=at(second))  # fmt: skip


def expected(steps: list[Written], upto: int) -> dict[str, int]:
    ordered = sorted(enumerate(steps), key=lambda item: (item[1][1], item[0]))
    state: dict[str, int] = {}
    for _, (superstep, _, values) in ordered:
        if superstep <= upto:
            state.update(values)
    return state


values = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), max_size=3)


@given(
    steps=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), values), max_size=8),
    asked=st.lists(st.integers(0, 7), min_size=1, max_size=6),
)
def test_asked_in_any_order_a_fold_is_that_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Written], asked: list[int]
) -> None:
    path = tmp_path_factory.mktemp("folds") / "workflows.db"
    make(path, steps)
    kept: dict[str, Any] = {}
    with sqlite3.connect(path, factory=_Settled) as connection:
        for superstep in asked:
            before, after = bodies_of.states(Database(connection), "r", superstep, kept)

            assert after == expected(steps, superstep)
            assert {name: write.value for name, write in before.items()} == {"i": 0} | expected(steps, superstep - 1)
    connection.close()


class _Settled(sqlite3.Connection):
    version = "always the same"


def bodies(run: Run) -> list[Any]:
    return [run.load(span) for span in run.spans]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every value that a fold decodes."""
    decoded_values: list[Any] = []
    real = bodies_of._undecoded

    def counting(data: Any) -> Any:
        decoded_values.append(data)
        return real(data)

    monkeypatch.setattr(bodies_of, "_undecoded", counting)
    monkeypatch.setattr(base, "TICK_NS", 0)
    return decoded_values


@pytest.mark.parametrize("parallel", [1, 20])
def test_a_comparison_decodes_each_step_a_few_times_however_many_there_are(
    tmp_path: Path, decoded: list[Any], parallel: int
) -> None:
    count = 200
    steps: list[Written] = [(index // parallel, index, {f"x{index % 7}": index}) for index in range(count)]
    make(tmp_path / "workflows.db", steps, ("a", "b"))
    a, b = (load(tmp_path / "workflows.db", run) for run in "ab")
    decoded.clear()

    assert compare(a, b).same
    assert len(decoded) <= 2 * 2 * count, "two runs, each step once before and once after its superstep"


def test_cached_folds_end_with_a_change(tmp_path: Path, decoded: list[Any]) -> None:
    path = tmp_path / "workflows.db"
    make(path, [(0, 1, {"x": 1}), (1, 2, {"y": 2})])
    run = load(path)

    assert [body.state for body in bodies(run)] == [{"x": 1}, {"x": 1, "y": 2}]
    with sqlite3.connect(path) as db:
        db.execute("UPDATE steps SET values_data = ? WHERE superstep = 0", (json.dumps({"x": 3}).encode(),))
    db.close()
    assert [body.state for body in bodies(run)] == [{"x": 3}, {"x": 3, "y": 2}]

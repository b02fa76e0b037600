"""A long run of hypergraph is followed by its latest rows; whatever happens to early ones, it equals a fresh read."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.hypergraph_build import TO_V3, TO_V4, TO_V6, V2, at, insert
from tests.shared import examples
from tracetui import load
from tracetui.formats import rowlog, sqlite
from tracetui.formats.hypergraph import Hypergraph, body, tree
from tracetui.live.load import Reader
from tracetui.live.scan import Scanner
from tracetui.model import Run, RunRef, RunSummary
from tracetui.model.run import GOING_ON
from tracetui.sources import base
from tracetui.sources.local import LocalSource
from tracetui.testing.reading import Follower, plain, plain_run

V6 = V2 + TO_V3 + TO_V4 + TO_V6


@pytest.fixture(scope="module", autouse=True)
def _small_pages() -> Iterator[None]:
    """A run of a dozen steps is long; every version of a file is settled at once."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (rowlog, "PAGE_BITS", 2),
            (rowlog, "FEW", 2),
            (tree, "PAGE_BITS", 2),
            (tree, "SMALL", 8),
            (tree, "UNSETTLED", 2),
            (body, "UNSETTLED", 2),
            (body, "NEAR", 2),
            (base, "TICK_NS", 0),
            (sqlite, "REST_SECONDS", 0.0),
        ):
            patch.setattr(module, name, value)
        yield


class Writer:
    """A program that runs a graph."""

    def __init__(self, path: Path, steps: int) -> None:
        self.ref = RunRef("hypergraph", str(path), "r")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {V6}")
        insert(self.db, "runs", id="r", status="active", created_at=at(0), inputs_data={"a": 0})
        insert(self.db, "runs", id="other", status="active", created_at=at(0))
        self.superstep = 0
        self.index = 0
        for _ in range(steps):
            self.step(1)

    def fork(self, last: int) -> None:
        """Another run goes on from a superstep of this one."""
        name = f"fork {self.superstep} {self.index}"
        insert(self.db, "runs", id=name, status="completed", created_at=at(self.superstep), completed_at=at(9),
               duration_ms=1.0, forked_from="r", fork_superstep=last)  # fmt: skip
        self.step(1, name)

    def step(self, parallel: int, run: str = "r", **more: Any) -> None:
        """One superstep of so many nodes, the last of them first."""
        for node in reversed(range(parallel)):
            key = {"run_id": run, "superstep": self.superstep, "node_name": f"n{node}"}
            insert(self.db, "pending_nodes", **key, created_at=at(self.superstep))
            values = {"abc"[(self.superstep + node) % 3]: self.superstep, "x": self.index}
            row: dict[str, Any] = {"status": "completed", "values_data": values, "input_versions": {"a": 1, "x": 1}}
            insert(self.db, "steps", **key, step_index=self.index + node, created_at=at(self.superstep),
                   completed_at=at(self.superstep), **row | more)  # fmt: skip
        self.superstep += 1
        self.index += parallel

    def begin(self) -> None:
        """A node begins that never ends."""
        key = {"run_id": "r", "superstep": self.superstep, "node_name": "begun"}
        insert(self.db, "pending_nodes", **key, created_at=at(self.superstep))
        self.superstep += 1

    def child(self, status: str) -> None:
        """A step with a run below it."""
        name = f"r/{self.superstep}"
        insert(self.db, "runs", id=name, status=status, created_at=at(self.superstep), parent_run_id="r")
        insert(self.db, "steps", run_id=name, superstep=0, node_name="below", step_index=0, status="completed",
               created_at=at(self.superstep), values_data={"y": self.superstep})  # fmt: skip
        self.step(1, node_type="GraphNode", child_run_id=name)

    def change(self, which: int, sql: str) -> None:
        """Change or delete a row, counted from the end; nothing without rows."""
        rows = [row for (row,) in self.db.execute("SELECT id FROM steps ORDER BY id DESC")]
        if rows:
            self.db.execute(sql, (rows[which % len(rows)],))


def listed(writer: Writer, cache: dict[str, Any]) -> list[RunSummary]:
    """The runs of the database, as the list counts them again."""
    source = LocalSource()
    entry = next(iter(source.list(writer.ref.path).entries))
    file = Scanner(source, [writer.ref.path]).look(entry, deep=True, cache=cache)
    return list(file.runs)


VALUES = json.dumps({"x": -7})
ACTIONS: dict[str, Callable[[Writer, int], object]] = {
    "step": lambda writer, which: writer.step(1 + which % 3),
    "routed": lambda writer, which: writer.step(1, decision=json.dumps(f"n{which}")),
    "steps": lambda writer, which: deque(map(writer.step, [1] * which)),
    "other": lambda writer, which: writer.step(1, "other"),
    "fork": lambda writer, which: writer.fork(which),
    "begin": lambda writer, which: writer.begin(),
    "child": lambda writer, which: writer.child("active" if which % 2 else "completed"),
    "values": lambda writer, which: writer.change(which, f"UPDATE steps SET values_data = '{VALUES}' WHERE id = ?"),
    "status": lambda writer, which: writer.change(which, "UPDATE steps SET status = 'failed' WHERE id = ?"),
    "delete": lambda writer, which: writer.change(which, "DELETE FROM steps WHERE id = ?"),
    "vanish": lambda writer, which: writer.db.execute("DELETE FROM pending_nodes WHERE node_name = 'begun'"),
    "end": lambda writer, which: writer.db.execute("UPDATE runs SET status = 'completed', completed_at = 'x'"),
    "go on": lambda writer, which: writer.db.execute("UPDATE runs SET status = 'active', completed_at = NULL"),
    "checkpoint": lambda writer, which: writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(),
}


@settings(max_examples=examples(16))
@given(
    steps=st.integers(0, 40),
    actions=st.lists(st.tuples(st.sampled_from(sorted(ACTIONS)), st.integers(0, 40)), max_size=8),
    asked=st.lists(st.integers(0, 100), min_size=1, max_size=4),
)
@example(7, [("routed", 0), ("delete", 0)], [0])
def test_a_followed_run_equals_a_fresh_read(steps: int, actions: list[tuple[str, int]], asked: list[int]) -> None:
    with TemporaryDirectory() as folder:
        writer = Writer(Path(folder, "w.db"), steps)
        with closing(writer.db):
            reader = Reader(LocalSource(), writer.ref)
            cache: dict[str, Any] = {}
            for name, which in [("step", 0), *actions]:
                ACTIONS[name](writer, which)
                for _ in range(6):  # until all early rows are compared
                    reader.catch_up()
                    runs = listed(writer, cache)
                assert runs == listed(writer, {}), f"after {name} {which}"
                check(reader.build(), asked, f"after {name} {which}")


def check(run: Run, asked: list[int], where: str) -> None:
    fresh = load(run.summary.ref.path, "r")
    for number in asked:
        if run.spans:
            span = run.spans[number % len(run.spans)]
            assert plain(run.load(span)) == plain(fresh.load(fresh.spans[fresh.index[span.id]])), (where, span.id)
    followed, expected = plain_run(run), plain_run(fresh)
    if fresh.summary.status in GOING_ON:  # in order of arrival until then
        for document in (followed, expected):
            document["spans"].sort(key=lambda span: str(span["id"]))
    assert followed == expected, where


def test_only_the_latest_steps_are_held_and_a_new_one_is_given_alone(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "w.db", 200)
    with closing(writer.db), LocalSource().open(writer.ref.path) as file:
        reader: Any = Hypergraph().open(file, writer.ref)
        assert len(reader.more(file).spans) == 200
        for _ in range(30):
            writer.step(1)
            with LocalSource().open(writer.ref.path) as now:
                chunk = reader.more(now)
            assert (len(chunk.spans), chunk.reset) == (1, False)
            assert len(reader._reader._last_state.spans) < 16


def test_an_early_step_that_changes_is_read_again_soon(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "w.db", 100)
    with closing(writer.db):
        follower = Follower(Hypergraph(), writer.ref)
        follower.read()
        writer.db.execute("UPDATE steps SET duration_ms = 7.5 WHERE superstep = 3")
        for _ in range(4):
            follower.read()
        follower.check("after the update")
        assert follower.resets == 1
        writer.step(1)
        follower.read()
        follower.check("after one more step")
        assert follower.resets == 1


def test_a_step_before_settled_ones_takes_its_place_when_the_run_ends(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "w.db", 40)
    with closing(writer.db):
        follower = Follower(Hypergraph(), writer.ref)
        follower.read()
        writer.index = 3
        writer.step(1)
        follower.read()
        assert follower.resets == 0
        writer.db.execute("UPDATE runs SET status = 'completed'")
        follower.read()
        follower.check("at the end")
        before = follower.resets
        writer.db.execute("UPDATE runs SET created_at = created_at || ' ' WHERE id = 'other'")
        follower.read()
        assert follower.resets == before, "once is enough"


def test_a_body_of_the_newest_step_folds_only_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path / "w.db", 300)
    folded: list[Any] = []
    real = body._undecoded

    def counting(data: Any) -> Any:
        folded.append(data)
        return real(data)

    monkeypatch.setattr(body, "_undecoded", counting)
    with closing(writer.db):
        reader = Reader(LocalSource(), writer.ref)
        reader.catch_up()
        run = reader.build()
        run.load(run.spans[-1])
        for _ in range(5):
            writer.step(1)
            reader.catch_up()
            run = reader.build()
            folded.clear()
            newest = run.load(run.spans[-1])
            assert len(folded) < 10
            assert newest.state == load(run.summary.ref.path, "r").load(run.spans[-1]).state
        folded.clear()
        for span in reversed(run.spans):
            run.load(span)
        assert len(folded) < 40 * len(run.spans), "the way up is not folded from the start each time"


def test_a_run_that_goes_on_has_no_declared_totals_yet(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "w.db", 3)
    with closing(writer.db):
        assert not load(writer.ref.path, "r").body.totals
        writer.db.execute("UPDATE runs SET status = 'completed', node_count = 3")
        assert [(total.name, total.declared, total.counted) for total in load(writer.ref.path, "r").body.totals] == [
            ("node_count", 3, 3),
            ("error_count", 0, 0),
        ]
        assert plain_run(load(writer.ref.path, "r"))

"""Files while they are written: faults of their writers, what following costs, and what it leaves on disk."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.formats.hypergraph_build import TO_V3, TO_V4, TO_V6, V2, insert
from tracetui.formats import registry
from tracetui.formats.base import Chunk
from tracetui.formats.ccpa import Ccpa
from tracetui.formats.hypergraph import Hypergraph
from tracetui.model import RunRef, Status
from tracetui.sources.local import LocalFile, LocalSource
from tracetui.testing import cases, copied
from tracetui.testing.reading import Follower

HERE = Path(__file__).parent
HEAD = {"kind": "session_start", "session_id": "s", "cwd": "/w"}


def session(first: int, last: int) -> bytes:
    """A session whose records differ, after a first line that is always the same."""
    records = [
        HEAD,
        *({"kind": "tool_result", "tool_use_id": f"t{i}", "content": f"m:{i:06}"} for i in range(first, last)),
    ]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as stream:
        stream.truncate(0)
        stream.write(data)


def by_rename(path: Path, data: bytes) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(data)
    other.replace(path)


def anew(path: Path, data: bytes) -> None:
    path.unlink()  # the same inode is often used again
    path.write_bytes(data)


def unnoticed(path: Path, data: bytes) -> None:
    """Same inode, same time."""
    before = path.stat()
    with path.open("r+b") as stream:
        stream.write(data)
        stream.truncate()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("how", [in_place, by_rename, anew, unnoticed])
@pytest.mark.parametrize("old", [20, 700])
@pytest.mark.parametrize("new", [0, 5, 20, 60, 700, 900])
def test_a_session_that_was_replaced_is_read_anew(
    tmp_path: Path, how: Callable[[Path, bytes], None], old: int, new: int
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(0, old))
    follower = Follower(Ccpa(), RunRef("ccpa", str(path)))
    follower.read()
    how(path, session(10_000, 10_000 + new))
    follower.read()
    follower.check("afterwards")
    assert follower.resets == 1


@pytest.mark.parametrize("middle", [1, 350, 698])
def test_one_record_that_changed_in_place_is_seen_by_its_ctime(tmp_path: Path, middle: int) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(0, 700))
    wait_until_settled(path)
    follower = Follower(Ccpa(), RunRef("ccpa", str(path)))
    follower.read()
    unnoticed(path, session(0, 700).replace(b"m:%06d" % middle, b"M:%06d" % middle))
    follower.read()
    follower.check("afterwards")
    assert follower.resets == 1


def test_a_session_that_was_only_touched_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(0, 700))
    follower = Follower(Ccpa(), RunRef("ccpa", str(path)))
    follower.read()
    os.utime(path, (1, 1))
    follower.read()
    assert (follower.resets, follower.given) == (0, 700)


def wait_until_settled(path: Path) -> None:
    """Until the clock of the file system has gone on since `path` was written."""
    deadline = time.monotonic() + 10
    while time.time_ns() - path.stat().st_ctime_ns < 60_000_000:
        assert time.monotonic() < deadline


class Counting(LocalFile):
    """Counts the bytes that are asked for."""

    def __init__(self, path: str, asked: list[int]) -> None:
        super().__init__(path)
        self._asked = asked

    def read(self, offset: int, size: int) -> bytes:
        self._asked.append(size)
        return super().read(offset, size)


def test_asking_again_reads_nothing_and_a_new_line_little(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    asked: list[int] = []
    reader = Ccpa().open(LocalFile(str(path)), RunRef("ccpa", str(path)))

    def more() -> Chunk:
        asked.clear()
        with Counting(str(path), asked) as file:
            return reader.more(file)

    path.write_bytes(session(0, 3000))
    while not more().done:
        pass
    wait_until_settled(path)
    more()
    more()
    assert asked == []
    with path.open("ab") as stream:
        stream.write(session(3000, 3001).split(b"\n", 1)[1])
    assert len(more().spans) == 1
    assert sum(asked) < 20_000


@pytest.mark.parametrize("name", [name for name in registry.BUILT_IN if name != "ccpa"])
def test_a_document_that_was_rewritten_is_read_anew_and_an_unchanged_one_not(name: str) -> None:
    fmt = registry.load(name)
    for case in cases(HERE / name):
        with copied(case) as root:
            for path in sorted(root.rglob("*.json")):
                ref = RunRef(name, str(path))
                follower, data = Follower(fmt, ref), path.read_bytes()
                follower.read()
                given = follower.given
                follower.read()
                assert (follower.given, follower.resets) == (given, 0)
                path.write_bytes(data[: len(data) // 2])
                follower.read()
                path.write_bytes(data.rstrip() + b"\n \n")
                follower.read()
                follower.check("rewritten")


# ---------------------------------------------------------------------------------------------------------- databases


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[str, sqlite3.Connection]]:
    """A database with a run that is going on, and its writer."""
    path = tmp_path / "w.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = OFF")
    writer.executescript(V2 + TO_V3 + TO_V4 + TO_V6)
    insert(writer, "_schema_version", version=6)
    insert(writer, "runs", id="r", status="active", created_at="2026-03-02T09:00:00+00:00")
    yield str(path), writer
    writer.close()


def begin(writer: sqlite3.Connection, number: int, node: str = "n") -> None:
    insert(
        writer, "pending_nodes", run_id="r", superstep=number, node_name=node, created_at="2026-03-02T09:00:01+00:00"
    )


def finish(writer: sqlite3.Connection, number: int, node: str = "n", **more: Any) -> None:
    row: dict[str, Any] = {"status": "completed", "completed_at": "2026-03-02T09:00:02+00:00", "step_index": number}
    insert(writer, "steps", run_id="r", superstep=number, node_name=node, created_at="2026-03-02T09:00:02+00:00",
           values_data={f"v{number}": node}, **row | more)  # fmt: skip


def follow(path: str) -> Follower:
    return Follower(Hypergraph(), RunRef("hypergraph", path, "r"))


def reading(path: str) -> Callable[[], Chunk]:
    """Reads on each time."""
    with LocalSource().open(path) as file:
        reader = Hypergraph().open(file, RunRef("hypergraph", path, "r"))

    def more() -> Chunk:
        with LocalSource().open(path) as file:
            return reader.more(file)

    return more


def test_a_node_that_runs_becomes_its_step_under_the_same_id(live: tuple[str, sqlite3.Connection]) -> None:
    path, writer = live
    more = reading(path)
    begin(writer, 0)
    first = more()
    finish(writer, 0)
    second = more()
    assert [(span.id, span.status) for span in first.spans] == [("r:0:n", Status.RUNNING)]
    assert [(span.id, span.status) for span in second.spans] == [("r:0:n", Status.OK)]
    assert not second.reset


def test_a_node_that_vanishes_is_forgotten(live: tuple[str, sqlite3.Connection]) -> None:
    path, writer = live
    follower = follow(path)
    begin(writer, 0)
    follower.read()
    writer.execute("DELETE FROM pending_nodes")
    follower.read()
    follower.check("after the node vanished")
    assert follower.resets == 1


def test_nodes_that_run_beside_each_other_may_finish_in_any_order(live: tuple[str, sqlite3.Connection]) -> None:
    path, writer = live
    follower = follow(path)
    for node in "abc":
        begin(writer, 0, node)
    for index, node in enumerate("bca"):
        finish(writer, 0, node, step_index=index)
        follower.read()
        follower.check(f"after {node}")


@pytest.mark.parametrize("steps", [30, 1500])
def test_one_step_more_costs_one_step(live: tuple[str, sqlite3.Connection], steps: int) -> None:
    path, writer = live
    writer.execute("BEGIN")
    for number in range(steps):
        begin(writer, number)
        finish(writer, number)
    writer.execute("COMMIT")
    more = reading(path)
    while not more().done:
        pass
    for number in range(steps, steps + 3):
        begin(writer, number)
        finish(writer, number)
        chunk = more()
        assert [span.step for span in chunk.spans] == [number]
        assert not chunk.reset
        assert list(more().spans) == []


def test_a_step_that_is_written_again_late_is_seen(live: tuple[str, sqlite3.Connection]) -> None:
    path, writer = live
    for number in range(40):
        finish(writer, number)
    follower = follow(path)
    follower.read()
    writer.execute("UPDATE steps SET duration_ms = 7.5 WHERE superstep = 3")
    follower.read()
    follower.check("after the update")


def test_following_makes_and_deletes_nothing_and_holds_nothing(live: tuple[str, sqlite3.Connection]) -> None:
    path, writer = live
    follower = follow(path)
    folder = Path(path).parent
    before = sorted(folder.iterdir())
    for number in range(5):
        begin(writer, number)
        finish(writer, number)
        follower.read()
        with LocalSource().open(path) as file:
            assert file.tables >= {"runs", "steps"}
            assert len(list(Hypergraph().summarize(file, deep=True))) == 1
        assert sorted(folder.iterdir()) == before
        if number % 2:
            assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    writer.close()
    follower.read()
    assert sorted(folder.iterdir()) == [Path(path)]
    follower.check("after the writer left")


def test_a_writer_that_locks_is_waited_for_and_no_fault(live: tuple[str, sqlite3.Connection]) -> None:
    path, writer = live
    finish(writer, 0)
    more = reading(path)
    more()
    writer.execute("PRAGMA journal_mode = DELETE")
    writer.execute("BEGIN EXCLUSIVE")
    finish(writer, 1)
    begun = time.monotonic()
    waiting = more()
    assert time.monotonic() - begun < 4.0  # SQLite itself would wait for five
    assert list(waiting.spans) == []
    writer.execute("COMMIT")
    assert [span.step for span in more().spans] == [1]

"""What a read of a database costs, in steps of SQLite's virtual machine: a new row costs the same in a long run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.formats import test_hypergraph_growth as hypergraph
from tests.formats.hypergraph_build import at, insert
from tests.formats.opencode_build import Writer, call, database, text
from tracetui.live.load import Reader
from tracetui.live.scan import Scanner
from tracetui.model import RunRef
from tracetui.sources import sqlite
from tracetui.sources.local import LocalSource

SHORT, LONG = 12 * 128, 48 * 128
"""Rows; the last page of sums is as full in both."""


class Steps:
    """Counts the steps of the virtual machine, by hundreds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        patch.setattr(sqlite, "_PROGRESS_OPS", 100)
        patch.setattr(sqlite.LimitedConnection, "_too_long", lambda connection: self._add())

    def _add(self) -> bool:
        self.count += 1
        return False

    def of(self, action: Callable[[], object]) -> int:
        before = self.count
        action()
        return self.count - before


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def answer(writer: Writer, number: int) -> None:
    message = f"msg_{number:06}"
    writer.answer(message, "ses_1", number, "msg_000000", end=number + 0.5)
    writer.part(message, "ses_1", number, **text("done", number))
    writer.part(message, "ses_1", number, **call("bash", {}, "x", number, exit=0))


def listed(source: LocalSource, path: Path, cache: dict[str, Any]) -> None:
    Scanner(source, [str(path)]).look(next(iter(source.list(str(path)).entries)), deep=True, cache=cache)


def opencode_costs(path: Path, messages: int, steps: Steps) -> tuple[int, int, int]:
    """Of the first read, of a read and of a listing after a new message (the median of five)."""
    source, reader = LocalSource(), Reader(LocalSource(), RunRef("opencode", str(path), "ses_1"))
    cache: dict[str, Any] = {}
    with database(path) as db:
        db.execute("BEGIN")
        writer = Writer(db)
        writer.session("ses_1", 0, "Long")
        writer.user("msg_000000", "ses_1", 0, "Go on")
        for number in range(1, messages):
            answer(writer, number)
        db.execute("COMMIT")
        first = steps.of(reader.catch_up)
        listed(source, path, cache)
        reads: list[int] = []
        lists: list[int] = []
        for number in range(messages, messages + 5):
            answer(writer, number)
            reads.append(steps.of(reader.catch_up))
            assert len(reader.fresh) == 3  # the turn, the response, the call
            lists.append(steps.of(lambda: listed(source, path, cache)))
    return first, sorted(reads)[2], sorted(lists)[2]


def test_a_new_message_of_opencode_costs_the_same_in_a_long_session(tmp_path: Path, steps: Steps) -> None:
    short = opencode_costs(tmp_path / "short.db", SHORT, steps)
    long = opencode_costs(tmp_path / "long.db", LONG, steps)
    assert long[0] <= 1.3 * short[0] * LONG / SHORT
    assert long[1] <= 1.3 * short[1]
    assert long[2] <= 1.3 * short[2]


def hypergraph_costs(path: Path, count: int, steps: Steps) -> tuple[int, int]:
    """Of a read and of a listing after a new step (the median of five)."""
    writer = hypergraph.Writer(path, 0)
    with closing(writer.db):
        writer.db.execute("BEGIN")
        for number in range(count):
            writer.step(1, **({"decision": '"n1"'} if number % 50 == 0 else {}))
        writer.db.execute("COMMIT")
        source, reader = LocalSource(), Reader(LocalSource(), writer.ref)
        cache: dict[str, Any] = {}
        reader.catch_up()
        listed(source, path, cache)
        reads: list[int] = []
        lists: list[int] = []
        for _ in range(5):
            writer.step(1, decision='"n1"')
            reads.append(steps.of(reader.catch_up))
            assert len(reader.fresh) == 1
            lists.append(steps.of(lambda: listed(source, path, cache)))
    return sorted(reads)[2], sorted(lists)[2]


def test_a_new_step_of_hypergraph_costs_the_same_in_a_long_run(tmp_path: Path, steps: Steps) -> None:
    short = hypergraph_costs(tmp_path / "short.db", SHORT, steps)
    long = hypergraph_costs(tmp_path / "long.db", LONG, steps)
    assert long[0] <= 1.3 * short[0]
    assert long[1] <= 1.3 * short[1]


def test_a_run_of_hypergraph_costs_the_same_in_a_large_database(tmp_path: Path, steps: Steps) -> None:
    costs: list[int] = []
    for others in (3 * 128, 30 * 128):
        writer = hypergraph.Writer(tmp_path / f"{others}.db", 20)
        with closing(writer.db):
            writer.db.execute("BEGIN")
            for _ in range(others):
                writer.step(1, "other")
            writer.db.execute("COMMIT")
            costs.append(steps.of(Reader(LocalSource(), writer.ref).catch_up))
    assert costs[1] <= 1.5 * costs[0]


def test_a_run_of_hypergraph_among_many_costs_one_look_at_their_parents_more(tmp_path: Path, steps: Steps) -> None:
    """The column has no index."""
    costs: list[int] = []
    for others in (30, 3_000):
        writer = hypergraph.Writer(tmp_path / f"{others}.db", 20)
        with closing(writer.db):
            writer.db.execute("BEGIN")
            for number in range(others):
                insert(writer.db, "runs", id=f"other {number}", status="completed", created_at=at(number))
                writer.step(1, f"other {number}")
            writer.db.execute("COMMIT")
            costs.append(steps.of(Reader(LocalSource(), writer.ref).catch_up))
    assert 100 * (costs[1] - costs[0]) <= 4 * 3_000

"""A long session of opencode is followed by its latest rows; whatever happens to early ones, it equals a fresh read."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.opencode_build import Writer, at, call, database, text
from tests.shared import examples
from tracetui.formats import rowlog, sqlite
from tracetui.formats.opencode import Opencode, reading, runs
from tracetui.live.load import Reader
from tracetui.model import RunRef
from tracetui.sources import base
from tracetui.sources.local import LocalSource
from tracetui.testing.reading import Follower


@pytest.fixture(scope="module", autouse=True)
def _small_pages() -> Iterator[None]:
    """Sessions of a dozen messages are long; every version of a file is settled at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowlog, "PAGE_BITS", 2)
        patch.setattr(rowlog, "FEW", 2)
        patch.setattr(reading, "KEPT", 3)
        patch.setattr(runs, "KEPT", 5)
        patch.setattr(base, "TICK_NS", 0)
        patch.setattr(sqlite, "REST_SECONDS", 0.0)
        yield


class Program:
    """An opencode that writes two sessions, the second one a sub-agent of the first."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db, self.write = db, Writer(db)
        self.write.session("ses_1", 0, "Long")
        self.messages = 0
        self.asked = ""
        self.running: list[tuple[str, str]] = []

    def _next(self) -> str:
        self.messages += 1
        return f"msg_{self.messages:05}"

    def prompt(self, which: int) -> None:
        self.asked = self._next()
        self.write.user(self.asked, "ses_1", self.messages, f"Do {which}")

    def answer(self, which: int, session: str = "ses_1") -> None:
        message = self._next()
        self.write.answer(message, session, self.messages, self.asked, end=self.messages + 0.5)
        self.write.part(message, session, self.messages, **text("done", self.messages))
        for _ in range(which % 3):
            self.write.part(message, session, self.messages, **call("bash", {}, "x", self.messages, exit=0))

    def begin(self, which: int) -> None:
        """A response with a call that runs; it starts the sub-agent now and then."""
        message = self._next()
        self.write.answer(message, "ses_1", self.messages, self.asked, end=None)
        metadata = {"sessionId": "ses_2"} if which % 3 == 0 else {}
        state: dict[str, Any] = {"status": "running", "input": {}, "metadata": metadata}
        state["time"] = {"start": at(self.messages)}
        part = self.write.part(message, "ses_1", self.messages, type="tool", tool="task", callID="c", state=state)
        self.running.append((message, part))

    def finish(self, which: int) -> None:
        """A call that runs ends."""
        if self.running:
            message, part = self.running.pop(which % len(self.running))
            self._update("part", part, lambda data: data["state"].update(status="completed", output="made"))
            self._update("message", message, lambda data: data["time"].update(completed=at(self.messages)))

    def edit(self, table: str, which: int) -> None:
        rows = [ident for (ident,) in self.db.execute(f"SELECT id FROM {table} ORDER BY rowid DESC")]
        if rows:
            self._update(table, rows[which % len(rows)], lambda data: data.update(text=f"changed {self.messages}"))

    def _update(self, table: str, ident: str, change: Callable[[Any], object]) -> None:
        row = self.db.execute(f"SELECT data FROM {table} WHERE id = ?", (ident,)).fetchone()
        if row is not None:
            data = json.loads(row[0])
            change(data)
            self.messages += 1
            sql = f"UPDATE {table} SET data = ?, time_updated = ? WHERE id = ?"
            self.db.execute(sql, (json.dumps(data), at(self.messages), ident))

    def delete(self, table: str, which: int) -> None:
        sql = f"DELETE FROM {table} WHERE id = (SELECT id FROM {table} ORDER BY rowid DESC LIMIT 1 OFFSET ?)"
        self.db.execute(sql, (which,))

    def child(self, which: int) -> None:
        if not self.db.execute("SELECT 1 FROM session WHERE id = 'ses_2'").fetchone():
            self.write.session("ses_2", self.messages, "Below", parent_id="ses_1")
        self.answer(which, "ses_2")

    def other(self) -> None:
        """A session that is not of this run."""
        self.messages += 1
        self.write.session(f"ses_x{self.messages}", self.messages, "Other")

    def revert(self, which: int) -> None:
        at_message = json.dumps({"messageID": f"msg_{which:05}"}) if which % 2 else None
        self.db.execute("UPDATE session SET revert = ? WHERE id = 'ses_1'", (at_message,))


ACTIONS: dict[str, Callable[[Program, int], object]] = {
    "prompt": Program.prompt,
    "answer": Program.answer,
    "answers": lambda program, which: deque(map(program.answer, range(which))),
    "begin": Program.begin,
    "finish": Program.finish,
    "edit part": lambda program, which: program.edit("part", which),
    "edit message": lambda program, which: program.edit("message", which),
    "delete part": lambda program, which: program.delete("part", which),
    "delete message": lambda program, which: program.delete("message", which),
    "child": Program.child,
    "revert": Program.revert,
    "title": lambda program, which: program.db.execute("UPDATE session SET title = ?, cost = ?", (f"T{which}", which)),
    "other": lambda program, which: program.other(),
}


@settings(max_examples=examples(16))
@example(actions=[("child", 0), ("prompt", 0), ("begin", 0)])
@given(actions=st.lists(st.tuples(st.sampled_from(sorted(ACTIONS)), st.integers(0, 30)), min_size=1, max_size=12))
def test_a_followed_session_equals_a_fresh_read(actions: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder, database(Path(folder, "opencode.db")) as db:
        program = Program(db)
        program.prompt(0)
        program.answer(1)
        follower = Follower(Opencode(), RunRef("opencode", str(Path(folder, "opencode.db")), "ses_1"))
        follower.read()
        for name, which in actions:
            ACTIONS[name](program, which)
            for _ in range(6):  # until all early rows are compared
                follower.read()
            follower.check(f"after {name} {which}")


def test_a_run_stays_as_it_was_while_it_is_read_again_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PIECE_SECONDS", 0.0)
    path = tmp_path / "opencode.db"
    with database(path) as db:
        program = Program(db)
        program.prompt(0)
        for number in range(3 * reading.BATCH):
            program.answer(number)
        reader = Reader(LocalSource(), RunRef("opencode", str(path), "ses_1"))
        reader.catch_up()
        spans = len(reader)
        program._update("message", "msg_00003", lambda data: data.update(error={"name": "APIError", "data": {}}))
        for _ in range(100):
            reader.read()
            if reader.more:
                break
        pieces = 0
        while reader.more:
            assert (len(reader), reader.fresh, reader.reset) == (spans, [], False)
            reader.read()
            pieces += 1
        assert pieces > 2
        assert not reader.reset
        assert 0 < len(reader.fresh) < 5

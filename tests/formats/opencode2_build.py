"""Databases of opencode 2: new ones, and those whose sessions were moved into the new tables."""

from __future__ import annotations

import sqlite3
from typing import Any

from tests.formats.opencode_build import CASES, Record, Writer, at, call, database, insert, text

SCHEMA_2 = """
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, fork_session_id text,
    fork_boundary text, directory text NOT NULL, title text, version text NOT NULL, agent text, model text,
    cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
    tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
    tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, time_created integer NOT NULL,
    time_updated integer NOT NULL, time_idle integer, idle_outcome text);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);
"""
MODEL = {"id": "acorn-2", "providerID": "acme"}
TOKENS = {"input": 40, "output": 6, "reasoning": 1, "cache": {"read": 200, "write": 3}}
COST = 0.02


class Writer2:
    """Writes rows as opencode 2 does: the order is in ``seq``, which has gaps."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.count = 0

    def session(self, ident: str, second: float, title: str | None, **more: Any) -> None:
        row: Record = {"project_id": "p1", "directory": "/home/ada/orchard", "version": "2.0.26"}
        row |= {"time_created": at(second), "time_updated": at(second)}
        insert(self.db, "session_v2", id=ident, title=title, **row | more)

    def row(self, session: str, kind: str, second: float, /, end: float | None = None, **data: Any) -> str:
        """A message of a kind; a response that is over at `end`."""
        self.count += 1
        ident = str(data.pop("id", f"msg_{self.count:04}"))
        times = {"created": at(second)} | ({} if end is None else {"completed": at(end)})
        updated = at(second if end is None else end)
        insert(self.db, "session_message", id=ident, session_id=session, type=kind, seq=2 * self.count,
               time_created=at(second), time_updated=updated, data={"time": times} | data)  # fmt: skip
        return ident

    def answer(self, session: str, second: float, *content: Record, end: float | None = None, **more: Any) -> str:
        """A response; it goes on where it has no `end`."""
        used = {} if end is None else {"tokens": TOKENS, "cost": COST, "finish": "stop"}
        data = {"agent": "build", "model": MODEL, "content": list(content)} | used | more
        return self.row(session, "assistant", second, end, **data)


def used(name: str, given: Record, output: str, second: float, **metadata: Any) -> Record:
    """A call that opencode calls completed."""
    state = {"status": "completed", "input": given, "content": [{"type": "text", "text": output}]}
    return _call(name, state | {"metadata": metadata}, second)


def refused(name: str, given: Record, error: Record, second: float) -> Record:
    """A call that failed."""
    return _call(name, {"status": "error", "input": given, "error": error}, second)


def _call(name: str, state: Record, second: float) -> Record:
    times = {"created": at(second), "ran": at(second + 0.1), "completed": at(second + 0.3)}
    return {"type": "tool", "id": f"call-{name}-{second}", "name": name, "executed": False, "state": state,
            "time": times}  # fmt: skip


def said(text: str) -> Record:
    return {"type": "text", "text": text}


def stories_2(write: Writer2) -> None:
    """A turn with a sub-agent, its fork, a failed and an interrupted turn, notes and a compaction."""
    _counted(write)
    write.session("ses_2fail", 50, None)
    write.row("ses_2fail", "user", 50, text="Fell the oak")
    error = {"type": "provider.error", "message": "429 rate limited"}
    retry = {"attempt": 3, "at": at(50.5), "error": error}
    write.row("ses_2fail", "assistant", 50.1, 51, model=MODEL, content=[], finish="error", error=error, retry=retry)
    write.row("ses_2fail", "idle", 51.1, outcome="failed")

    write.session("ses_2stop", 60, "Stopped")
    write.row("ses_2stop", "user", 60, text="Write a book", files=[{"uri": "file:///a.txt", "name": "a.txt"}])
    write.answer("ses_2stop", 60.1, said("Chapter 1"), error={"type": "aborted", "message": "Aborted"})
    write.row("ses_2stop", "idle", 61, outcome="interrupted")
    write.row("ses_2stop", "agent-switched", 62, agent="plan", previous="build")
    write.row("ses_2stop", "shell", 63, command="ls", status="exited", exit=2, output={"output": "no such file"})
    summary: Record = {"status": "completed", "reason": "manual", "model": MODEL, "summary": "A book was begun."}
    write.row("ses_2stop", "compaction", 64, **summary, tokens=TOKENS, cost=COST)
    write.row("ses_2stop", "hologram", 65, depth=3)


def _counted(write: Writer2) -> None:
    total = {"cost": 0.05, "tokens_input": 120, "tokens_output": 20, "tokens_cache_read": 400, "tokens_reasoning": 2}
    write.session("ses_2a", 1, "Count the trees", **total, tokens_cache_write=6)
    for session, suffix in (("ses_2a", ""), ("ses_2fork", "_4")):
        if suffix:
            write.session(session, 40, "Count the trees (fork #1)", fork_session_id="ses_2a",
                          fork_boundary={"type": "through", "messageID": "msg_a"})  # fmt: skip
        write.row(session, "system", 1.9, id=f"msg_s{suffix}", text="You are a gardener.")
        write.row(session, "user", 2, id=f"msg_p{suffix}", text="Count the trees")
        thought = {"type": "reasoning", "text": "Ask a helper.", "time": {"created": at(2.6), "completed": at(2.7)}}
        task = used("subagent", {"prompt": "Count the rows"}, "Seven rows.", 3, sessionID="ses_2sub")
        listed = used("shell", {"command": "ls trees"}, "ls: no such file", 3, exit=2)
        missing = refused("read", {"path": "trees"}, {"type": "tool.execution", "message": "File not found"}, 3)
        write.answer(session, 2.5, thought, task, listed, missing, end=4, id=f"msg_a{suffix}", finish="tool-calls")
        write.answer(session, 4.5, said("Seven."), end=5, id=f"msg_b{suffix}")
        write.row(session, "idle", 5.1, id=f"msg_i{suffix}", outcome="succeeded")
    write.row("ses_2fork", "user", 41, text="Now water them")
    write.answer("ses_2fork", 41.5, said("Watered."), end=42)
    write.row("ses_2fork", "idle", 42.1, outcome="succeeded")
    write.session("ses_2sub", 3.2, "Count the rows", parent_id="ses_2a", agent="explore")
    write.row("ses_2sub", "user", 3.2, text="Count the rows")
    write.answer("ses_2sub", 3.3, said("Seven rows."), end=3.9, agent="explore")
    write.row("ses_2sub", "idle", 3.95, outcome="succeeded")


def moved(db: sqlite3.Connection) -> None:
    """Two sessions of before: one went on in the new tables, where its old messages are too; one was not moved."""
    old, new = Writer(db), Writer2(db)
    for ident, title in (("ses_old", "Plant a tree"), ("ses_late", "Water it")):
        old.session(ident, 1, title)
        old.user(f"{ident}_1", ident, 2, title)
        old.answer(f"{ident}_2", ident, 3, f"{ident}_1", end=4)
        old.step(f"{ident}_2", ident, 3, 4, text("Dug."), call("bash", {"command": "dig"}, "", 3.1, exit=0))
    new.session("ses_old", 1, "Plant a tree", version="1.18.33")
    new.row("ses_old", "user", 2, id="ses_old_1", text="Plant a tree")
    new.answer("ses_old", 3, said("Dug."), used("bash", {"command": "dig"}, "", 3.1, exit=0), end=4, id="ses_old_2")
    new.row("ses_old", "user", 90, text="Go on")
    new.answer("ses_old", 91, said("Planted."), end=92)
    new.row("ses_old", "idle", 92.1, outcome="succeeded")


def main() -> None:
    """Write the file of the case."""
    with database(CASES / "version2" / "input" / "opencode.db", SCHEMA_2) as db:
        stories_2(Writer2(db))


if __name__ == "__main__":
    main()

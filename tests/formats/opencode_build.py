"""Sessions as opencode keeps them: in its database, as an export, and in the files that it had before 1.2."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

Record = dict[str, Any]
CASES = Path(__file__).parent / "opencode"
T0 = 1_767_258_000_000
"""2026-01-01 09:00 UTC, in milliseconds."""

SCHEMA = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, time_created integer NOT NULL,
    time_updated integer NOT NULL, sandboxes text NOT NULL);
CREATE TABLE workspace (id text PRIMARY KEY, type text NOT NULL, branch text, project_id text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text,
    slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL, summary_additions integer,
    cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
    tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
    tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text,
    time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL, position integer NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX session_parent_idx ON session (parent_id);
"""
TOKENS = {"input": 30, "output": 5, "reasoning": 2, "cache": {"read": 100, "write": 7}}
COST = 0.0125


def at(second: float) -> int:
    return T0 + round(second * 1000)


def insert(db: sqlite3.Connection, table: str, **values: Any) -> None:
    marks = ", ".join("?" * len(values))
    stored = [json.dumps(value) if isinstance(value, dict | list) else value for value in values.values()]
    db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", stored)


@contextmanager
def database(path: Path, schema: str = SCHEMA) -> Iterator[sqlite3.Connection]:
    """A new database in WAL mode, closed cleanly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;")
        db.executescript(schema)
        yield db


class Writer:
    """Writes rows as opencode does: ids rise, and the time of a row is that of its last change."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.parts = 0

    def session(self, ident: str, second: float, title: str, **more: Any) -> None:
        row: Record = {
            "project_id": "p1",
            "slug": f"slug-{ident}",
            "directory": "/home/ada/orchard",
            "version": "1.18.33",
        }
        model = {"id": "acorn-2", "providerID": "acme"}
        row |= {"agent": "build", "model": model, "time_created": at(second), "time_updated": at(second)}
        insert(self.db, "session", id=ident, title=title, **row | more)

    def user(self, ident: str, session: str, second: float, text: str | None = None, **more: Any) -> None:
        data: Record = {"role": "user", "time": {"created": at(second)}, "agent": "build"}
        data |= {"model": {"providerID": "acme", "modelID": "acorn-2"}} | more
        self.message(ident, session, second, data)
        if text is not None:
            self.part(ident, session, second, type="text", text=text)

    def answer(self, ident: str, session: str, second: float, asked: str, *, end: float | None, **more: Any) -> None:
        """A response that is over at `end`; it goes on where that is None."""
        times = {"created": at(second)} | ({} if end is None else {"completed": at(end)})
        data: Record = {
            "role": "assistant",
            "parentID": asked,
            "modelID": "acorn-2",
            "providerID": "acme",
            "mode": "build",
        }
        data |= {"agent": "build", "path": {"cwd": "/home/ada/orchard"}, "time": times}
        none = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        used = (
            {"tokens": none, "cost": 0}
            if end is None or "error" in more
            else {"tokens": TOKENS, "cost": COST, "finish": "stop"}
        )
        self.message(ident, session, second if end is None else end, data | used | more)

    def message(self, ident: str, session: str, updated: float, data: Record) -> None:
        created = data["time"]["created"]
        insert(self.db, "message", id=ident, session_id=session, time_created=created, time_updated=at(updated),
               data=data)  # fmt: skip

    def part(self, message: str, session: str, second: float, /, **data: Any) -> str:
        self.parts += 1
        ident = f"prt_{self.parts:04}"
        insert(self.db, "part", id=ident, message_id=message, session_id=session, time_created=at(second),
               time_updated=at(second), data=data)  # fmt: skip
        return ident

    def step(self, message: str, session: str, begin: float, end: float, *parts: Record, reason: str = "stop") -> None:
        """All parts of one step."""
        self.part(message, session, begin, type="step-start", snapshot="aa01")
        for number, part in enumerate(parts, 1):
            self.part(message, session, begin + number / 100, **part)
        self.part(message, session, end, type="step-finish", reason=reason, tokens=TOKENS, cost=COST)


def text(said: str, second: float = 0) -> Record:
    return {"type": "text", "text": said, "time": {"start": at(second), "end": at(second + 0.1)}}


def call(tool: str, given: Record, output: str, second: float, took: float = 0.5, /, **metadata: Any) -> Record:
    """A call that opencode calls completed."""
    times = {"start": at(second), "end": at(second + took)}
    state = {"status": "completed", "input": given, "output": output, "title": f"{tool}!", "metadata": metadata}
    return {"type": "tool", "tool": tool, "callID": f"call-{tool}-{second}", "state": state | {"time": times}}


def failed(tool: str, given: Record, error: str, second: float, **metadata: Any) -> Record:
    state = {"status": "error", "input": given, "error": error, "metadata": metadata}
    times = {"time": {"start": at(second), "end": at(second + 0.25)}}
    return {"type": "tool", "tool": tool, "callID": f"call-{tool}-{second}", "state": state | times}


def stories(write: Writer) -> None:
    """A session with a sub-agent, its fork, what goes wrong, what was reverted and what is not known."""
    insert(write.db, "project", id="p1", worktree="/home/ada/orchard", vcs="git", time_created=at(0),
           time_updated=at(0), sandboxes=[])  # fmt: skip
    insert(write.db, "workspace", id="w1", type="worktree", branch="grafting", project_id="p1")
    own = {"cost": 3 * COST, "tokens_input": 90, "tokens_output": 15, "tokens_reasoning": 6}
    own |= {"tokens_cache_read": 300, "tokens_cache_write": 21}
    write.session("ses_a", 1, "Count the trees", workspace_id="w1", **own)
    _counted(write, "ses_a", "a")
    write.user("msg_a5", "ses_a", 20, "Now prune them")
    write.answer("msg_a6", "ses_a", 20.5, "msg_a5", end=22)
    write.step("msg_a6", "ses_a", 21, 22, text("Pruned."))
    insert(write.db, "todo", session_id="ses_a", content="count", status="completed", position=0)

    write.session("ses_sub", 3.5, "Count the rows (@general subagent)", parent_id="ses_a", agent="general")
    write.user("msg_s1", "ses_sub", 3.6, "Count the rows")
    write.answer("msg_s2", "ses_sub", 3.7, "msg_s1", end=4.5)
    write.step("msg_s2", "ses_sub", 3.8, 4.5, text("Seven rows."))

    write.session("ses_fork", 40, "Count the trees (fork #1)", **own)
    _counted(write, "ses_fork", "f")
    write.user("msg_f5", "ses_fork", 41, "Now water them")
    write.answer("msg_f6", "ses_fork", 41.5, "msg_f5", end=43)
    write.step("msg_f6", "ses_fork", 42, 43, text("Watered."))

    _troubled(write)
    _reverted(write)
    write.session("ses_lost", 90, "Nobody knows who asked", parent_id="ses_gone", agent="explore")
    write.user("msg_l1", "ses_lost", 91, "Find the shed")
    _running(write)


def _counted(write: Writer, session: str, prefix: str) -> None:
    """A turn with two calls at once, one of which failed by its exit code, and a sub-agent."""
    asked, first, second = (f"msg_{prefix}{number}" for number in (1, 2, 3))
    write.user(asked, session, 2, "Count the trees")
    write.part(asked, session, 2, type="text", text="Called the Read tool", synthetic=True)
    url = "file:///home/ada/orchard/map.txt"
    write.part(asked, session, 2, type="file", mime="text/plain", filename="map.txt", url=url)
    write.answer(first, session, 2.5, asked, end=3.4, finish="tool-calls")
    thought = {"type": "reasoning", "text": "Two ways to do it.", "time": {"start": at(2.6), "end": at(2.7)}}
    tried = call(
        "bash", {"command": "ls trees"}, "ls: trees: No such file\n", 2.8, exit=2, output="ls: trees: No such file\n"
    )
    listing = call("bash", {"command": "ls orchard"}, "row1\nrow2\n", 2.9, exit=0, truncated=False)
    write.step(first, session, 2.6, 3.4, thought, text("I will look.", 2.7), tried, listing, reason="tool-calls")
    write.answer(second, session, 3.4, asked, end=5)
    given = {"description": "Count the rows", "prompt": "Count the rows", "subagent_type": "general"}
    task = call("task", given, "Seven rows.", 3.45, 1.1, sessionId="ses_sub", parentSessionId="ses_a")
    write.step(second, session, 3.42, 5, text("A helper counts.", 3.43), task)
    write.part(second, session, 5, type="patch", hash="c0ffee", files=["/home/ada/orchard/count.txt"])


def _troubled(write: Writer) -> None:
    """Errors of the model and of tools, retries, compaction, an old message of two steps, a part of another time."""
    write.session("ses_bad", 60, "Trouble", agent=None, model=None)
    write.user("msg_b0", "ses_bad", 60.5, None)
    write.part("msg_b0", "ses_bad", 60.5, type="compaction", auto=True)
    write.user("msg_b1", "ses_bad", 61, "Fell the oak", agent="plan")
    write.answer("msg_b2", "ses_bad", 61.5, "msg_b1", end=62.5, finish="length")
    refused = failed("edit", {"filePath": "/home/ada/oak", "oldString": "a"}, "oldString not found", 62)
    aborted = failed("bash", {"command": "sleep 60"}, "Tool execution aborted", 62.2, interrupted=True)
    retry = {"type": "retry", "attempt": 1, "time": {"created": at(61.7)}}
    retry |= {"error": {"name": "APIError", "data": {"message": "Overloaded", "statusCode": 529}}}
    odd = {"type": "hologram", "depth": 3}
    write.step("msg_b2", "ses_bad", 61.6, 62.5, retry, refused, aborted, odd)
    write.answer("msg_b3", "ses_bad", 63, "msg_b1", end=64)
    write.step("msg_b3", "ses_bad", 63, 63.4, text("First.", 63.1), reason="tool-calls")
    write.step("msg_b3", "ses_bad", 63.5, 64, text("Second.", 63.6))
    error = {"name": "ProviderAuthError", "data": {"providerID": "acme", "message": "no key"}}
    write.answer("msg_b4", "ses_bad", 65, "msg_b1", end=65.5, error=error, finish=None)


def _reverted(write: Writer) -> None:
    write.session("ses_back", 70, "Back again", revert={"messageID": "msg_r3", "snapshot": "beef"})
    for number, asked in ((1, "Dig a pond"), (3, "Dig it deeper")):
        write.user(f"msg_r{number}", "ses_back", 70 + number, asked)
        write.answer(f"msg_r{number + 1}", "ses_back", 70.5 + number, f"msg_r{number}", end=71 + number)
        write.step(f"msg_r{number + 1}", "ses_back", 70.6 + number, 71 + number, text("Dug."))


def _running(write: Writer) -> None:
    write.session("ses_now", 100, "Running", time_updated=at(103))
    write.user("msg_n1", "ses_now", 101, "Sweep the yard")
    write.answer("msg_n2", "ses_now", 102, "msg_n1", end=None)
    write.part("msg_n2", "ses_now", 102.5, type="step-start")
    state = {"status": "running", "input": {"command": "sweep"}, "time": {"start": at(103)}}
    write.part("msg_n2", "ses_now", 103, type="tool", tool="bash", callID="call-n", state=state)


def exported(db: sqlite3.Connection, session: str) -> Record:
    """What ``opencode export`` makes of a session."""
    db.row_factory = sqlite3.Row
    row = dict(db.execute("SELECT * FROM session WHERE id = ?", (session,)).fetchone())
    cache = {"read": row["tokens_cache_read"], "write": row["tokens_cache_write"]}
    tokens = {name: row[f"tokens_{name}"] for name in ("input", "output", "reasoning")} | {"cache": cache}
    info = {"id": session, "slug": row["slug"], "projectID": row["project_id"], "directory": row["directory"]}
    info |= {"title": row["title"], "version": row["version"], "cost": row["cost"], "tokens": tokens}
    info |= {"time": {"created": row["time_created"], "updated": row["time_updated"]}}
    info |= {name: json.loads(row[name]) for name in ("model", "revert") if row[name]}
    info |= {"parentID": row["parent_id"]} if row["parent_id"] else {}
    messages = []
    for message in db.execute("SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)):
        ids = {"id": message["id"], "sessionID": session}
        parts = db.execute("SELECT * FROM part WHERE message_id = ? ORDER BY id", (message["id"],)).fetchall()
        bodies = [json.loads(part["data"]) | {"id": part["id"], "sessionID": session, "messageID": message["id"]}
                for part in parts]  # fmt: skip
        messages.append({"info": json.loads(message["data"]) | ids, "parts": bodies})
    return {"info": info, "messages": messages}


def stored(document: Record, root: Path) -> Path:
    """The files in which opencode had a session before 1.2; the path of that of the session."""
    info = {key: value for key, value in document["info"].items() if key not in ("tokens", "cost", "model")}
    main = _write(root / "session" / info["projectID"] / f"{info['id']}.json", info)
    for message in document["messages"]:
        message_info = message["info"]
        _write(root / "message" / info["id"] / f"{message_info['id']}.json", message_info)
        for part in message["parts"]:
            _write(root / "part" / message_info["id"] / f"{part['id']}.json", part)
    return main


def _write(path: Path, value: Record) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def main() -> None:
    """Write the files of all cases."""
    shutil.rmtree(CASES / "storage" / "input", ignore_errors=True)
    path = CASES / "database" / "input" / "opencode.db"
    with database(path) as db:
        stories(Writer(db))
        _write(CASES / "export" / "input" / "session.json", exported(db, "ses_bad"))
        _write(CASES / "export" / "input" / "reverted.json", exported(db, "ses_back"))
        for session in ("ses_a", "ses_sub"):
            stored(exported(db, session), CASES / "storage" / "input" / "storage")


if __name__ == "__main__":
    main()

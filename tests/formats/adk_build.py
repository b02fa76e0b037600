"""Sessions as Google ADK keeps them: of SqliteSessionService, and of both schemas of DatabaseSessionService."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]
CASES = Path(__file__).parent / "google_adk"
T0 = 1_767_258_000.0
"""2026-01-01 09:00 UTC, in seconds."""

STATES = """
CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT NOT NULL, update_time {time} NOT NULL);
CREATE TABLE user_states (app_name TEXT NOT NULL, user_id TEXT NOT NULL, state TEXT NOT NULL,
    update_time {time} NOT NULL, PRIMARY KEY (app_name, user_id));
CREATE TABLE sessions (app_name TEXT NOT NULL, user_id TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL,
    create_time {time} NOT NULL, update_time {time} NOT NULL, PRIMARY KEY (app_name, user_id, id));
"""
EVENTS = """
CREATE TABLE events (id TEXT NOT NULL, app_name TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL,
    invocation_id TEXT NOT NULL, timestamp {time} NOT NULL, event_data TEXT,
    PRIMARY KEY (app_name, user_id, session_id, id));
"""
COLUMNS = """
CREATE TABLE events (id VARCHAR NOT NULL, app_name VARCHAR NOT NULL, user_id VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL, invocation_id VARCHAR NOT NULL, author VARCHAR NOT NULL, actions BLOB NOT NULL,
    long_running_tool_ids_json TEXT, branch VARCHAR, timestamp DATETIME NOT NULL, content TEXT, usage_metadata TEXT,
    error_code VARCHAR, error_message TEXT, PRIMARY KEY (id, app_name, user_id, session_id));
"""
PICKLE = b"\x80\x05\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07orchard\x94."


class Writer:
    """Writes rows as the session services do; `second` counts from `T0`."""

    def __init__(self, db: sqlite3.Connection, *, schema: int | None = None) -> None:
        self.db, self.schema = db, schema
        self.key = ("orchard", "ada", "")
        self.invocation = ""
        self.second = 0.0
        self.number = 0

    def at(self, second: float) -> Any:
        when = T0 + second
        return when if self.schema is None else f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M:%S.%f}"

    def states(self) -> None:
        self.db.execute("INSERT INTO app_states VALUES ('orchard', '{\"harvests\": 3}', ?)", (self.at(0),))
        self.db.execute("INSERT INTO user_states VALUES ('orchard', 'ada', '{\"visits\": 2}', ?)", (self.at(1),))

    def session(self, ident: str, second: float, *, user: str = "ada", state: Record | None = None) -> None:
        self.key, self.second = ("orchard", user, ident), second
        row = (*self.key, json.dumps(state or {}), self.at(second), self.at(second))
        self.db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)

    def event(self, author: str, *parts: Record, path: str | None = None, **more: Any) -> str:
        """An event of the invocation, half a second after the last one; returns its id."""
        self.number += 1
        self.second += 0.5
        ident, actions = f"ev-{self.number:03}", more.pop("actions", {})
        record: Record = {"author": author, "invocation_id": self.invocation, "actions": {"state_delta": {}} | actions}
        record |= {"node_info": {"path": (f"{author}@1" if author != "user" else "") if path is None else path}}
        record |= {"id": ident, "timestamp": T0 + self.second} | more
        if parts:
            role = "user" if author == "user" or "function_response" in parts[0] else "model"
            record["content"] = {"parts": list(parts), "role": role}
        self.insert(ident, record)
        app, user, session = self.key
        self.db.execute(
            "UPDATE sessions SET update_time = ? WHERE app_name = ? AND user_id = ? AND id = ?",
            (self.at(self.second), app, user, session),
        )
        return ident

    def insert(self, ident: str, record: Record) -> None:
        when = self.at(self.second)
        if self.schema != 0:
            event = (ident, *self.key, self.invocation, when, json.dumps(record, ensure_ascii=False))
            self.db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", event)
            return
        content, tokens = (
            json.dumps(record[name]) if name in record else None for name in ("content", "usage_metadata")
        )
        plain = (content, tokens, record.get("error_code"), record.get("error_message"))
        row = (ident, *self.key, self.invocation, record["author"], PICKLE, None, record.get("branch"), when, *plain)
        self.db.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(row))})", row)

    # ---- the events of an invocation

    def ask(self, text: str, invocation: str | None = None) -> None:
        self.invocation = invocation or f"inv-{self.number + 1:03}"
        self.event("user", {"text": text})

    def reply(self, agent: str, *parts: Record, tokens: Record | None = None, **more: Any) -> str:
        used = {"prompt_token_count": 100, "candidates_token_count": 10, "total_token_count": 110}
        facts: Record = {"model_version": "acorn-2", "finish_reason": "STOP", "usage_metadata": tokens or used}
        return self.event(agent, *parts, **facts | more)

    def result(self, agent: str, *results: Record, **more: Any) -> str:
        return self.event(agent, *({"function_response": result} for result in results), **more)


def text(said: str) -> Record:
    return {"text": said}


def call(ident: str, name: str, **args: Any) -> Record:
    return {"function_call": {"id": ident, "name": name, "args": args}}


def result(ident: str, name: str, **response: Any) -> Record:
    return {"id": ident, "name": name, "response": response}


@contextmanager
def database(path: Path, schema: int | None = None) -> Iterator[Writer]:
    """A new database with its tables; `schema` is that of DatabaseSessionService, None for SqliteSessionService."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA page_size = 512")
        time = "REAL" if schema is None else "DATETIME"
        db.executescript((STATES + (COLUMNS if schema == 0 else EVENTS)).format(time=time))
        if schema == 1:
            db.executescript(
                "CREATE TABLE adk_internal_metadata (key TEXT PRIMARY KEY, value TEXT);"
                "INSERT INTO adk_internal_metadata VALUES ('schema_version', '1');"
            )
        yield Writer(db, schema=schema)


CACHED = {
    "prompt_token_count": 140,
    "candidates_token_count": 9,
    "cached_content_token_count": 64,
    "thoughts_token_count": 8,
    "total_token_count": 157,
}


def stories(writer: Writer) -> None:
    """Sessions with everything that a database of SqliteSessionService has, one after another."""
    writer.states()
    writer.session("tools", 0, state={"row": 4})
    writer.ask("Count the trees in row 4")
    writer.reply(
        "keeper", {"text": "look first", "thought": True}, call("c1", "count", row=4), call("c2", "map", row=4)
    )
    writer.result("keeper", result("c1", "count", trees=12), result("c2", "map", status="error", error="no map"),
                  actions={"state_delta": {"trees": 12}})  # fmt: skip
    writer.reply("keeper", text("Twelve trees."), tokens=CACHED)
    writer.session("raises", 20)
    writer.ask("Read the ledger")
    writer.reply("keeper", call("c3", "read", path="ledger.csv"), long_running_tool_ids=[])
    writer.event("keeper", error_code="ValueError", error_message="cannot parse ledger.csv")
    writer.session("quota", 40)
    writer.ask("Hello")
    writer.event("keeper", model_version="acorn-2", error_code="RESOURCE_EXHAUSTED", error_message="quota exceeded")
    writer.session("agents", 60)
    writer.ask("Plan the harvest")
    writer.reply("keeper", call("c4", "transfer_to_agent", agent_name="crew"))
    writer.result("keeper", result("c4", "transfer_to_agent", result=None), actions={"transfer_to_agent": "crew"})
    for agent in ("ladders", "baskets"):
        writer.reply(agent, text(f"{agent} are ready"), path="keeper@1/crew@1", branch=f"gather.{agent}")
    writer.session("rewound", 80)
    writer.ask("One", "inv-one")
    writer.reply("keeper", text("1"))
    writer.ask("Two", "inv-two")
    writer.reply("keeper", text("2"))
    writer.invocation = "inv-back"
    writer.event("user", actions={"rewind_before_invocation_id": "inv-two"})
    writer.ask("Three")
    writer.reply("keeper", text("3"))
    writer.session("approved", 100)
    writer.ask("Buy a saw")
    writer.reply("keeper", call("c5", "ask_owner", price=90), long_running_tool_ids=["c5"])
    writer.result("keeper", result("c5", "ask_owner", status="pending"))
    writer.reply("keeper", text("Waiting."))
    writer.result("user", result("c5", "ask_owner", status="approved"))
    writer.reply("keeper", text("Bought."))
    writer.session("compacted", 120)
    writer.ask("First")
    writer.reply("keeper", text("yes"))
    writer.invocation = "inv-compaction"
    summary = {"start_timestamp": T0, "end_timestamp": T0 + 1, "compacted_content": {"parts": [text("they agreed")]}}
    used = {"prompt_token_count": 99, "candidates_token_count": 9, "total_token_count": 108}
    writer.event("user", actions={"compaction": summary}, usage_metadata=used)
    writer.session("silent", 140)
    writer.ask("Go")
    writer.reply("first", text("first is done"), path="")
    writer.session("resumable", 160)
    writer.ask("Go on")
    writer.event("chain", path="", actions={"agent_state": {"current_sub_agent": "first"}})
    writer.reply("first", text("done"), path="")
    writer.event("first", path="", actions={"end_of_agent": True})
    writer.event("chain", path="", actions={"end_of_agent": True})
    writer.session("cut", 180)
    writer.ask("At length please")
    writer.reply("keeper", text("Once upon"), finish_reason="MAX_TOKENS")
    writer.session("camel", 200)
    writer.ask("Old names")
    camel = {"modelVersion": "acorn-2", "finishReason": "STOP", "nodeInfo": {"path": "keeper@1"}}
    camel |= {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}, "author": "keeper"}
    camel |= {"content": {"parts": [{"functionCall": {"id": "c6", "name": "prune", "args": {"tree": 5}}}]}}
    writer.insert("ev-camel", camel)
    writer.session("tools", 220, user="bob")
    writer.ask("Another user's session of the same name")
    writer.reply("keeper", text("Yes."))
    for ident, last in (("workflow", "second"), ("stopped", "first")):
        writer.session(ident, 230)
        writer.ask("Graft, then prune")
        for agent in ("first", "second")[: 1 + (last == "second")]:
            paths = [f"flow@1/{agent}@1", *(["flow@1"] if agent == "second" else [])]
            writer.reply(agent, text("done"), node_info={"path": paths[0], "output_for": paths})
    writer.session("asks", 235)
    writer.ask("Fell the old tree")
    writer.reply("keeper", call("c8", "fell", tree=9))
    writer.result("keeper", result("c8", "fell", error="needs confirmation"), actions={"skip_summarization": True})
    asked = call("adk-c8", "adk_request_confirmation", originalFunctionCall={"id": "c8"})
    writer.event("keeper", asked, long_running_tool_ids=["adk-c8"])
    writer.session("empty", 240)
    writer.session("live", 260)
    writer.ask("Water them")
    writer.reply("keeper", call("c7", "water", row=1))


def service(writer: Writer) -> None:
    """A session of DatabaseSessionService."""
    writer.states()
    writer.session("then-raises", 0, state={"city": "Bern"})
    writer.ask("Weather in Bern?")
    writer.reply("keeper", call("c1", "weather", city="Bern"))
    writer.result("keeper", result("c1", "weather", report="17 °C"))
    writer.reply("keeper", text("17 °C."), tokens=CACHED)
    writer.ask("Parse c.csv")
    writer.reply("keeper", call("c2", "parse", path="c.csv"))
    writer.event("keeper", error_code="ValueError", error_message="cannot parse c.csv")


def write_cases() -> None:
    """Write the databases of all cases."""
    with database(CASES / "sqlite" / "input" / "session.db") as writer:
        stories(writer)
    for name, schema in (("service", 1), ("pickles", 0)):
        with database(CASES / name / "input" / "sessions.db", schema) as writer:
            service(writer)


if __name__ == "__main__":
    write_cases()

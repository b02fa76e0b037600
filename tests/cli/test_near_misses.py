"""Files that no format claims are counted, and those that look like traces are named."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

from tests.cli.run import Cli

CHAT = {"messages": [{"role": "user", "content": "Prune"}]}


def folder(tmp_path: Path) -> Path:
    root = tmp_path / "more"
    root.mkdir(parents=True)
    (root / "chat.json").write_text(json.dumps(CHAT))
    (root / "printed.txt").write_text(f"Starting\n{json.dumps({'type': 'thread.started'})}\n")
    (root / "settings.json").write_text('{"theme": "dark"}')
    (root / "notes.md").write_text("Cut the hedge")
    (root / ".hidden.json").write_text(json.dumps(CHAT))
    with closing(connect(root / "agent.db")) as database:
        database.execute("CREATE TABLE messages (id)")
        database.execute("CREATE TABLE sessions (id)")
    return root


def test_ls_counts_ignored_files_and_names_near_misses(cli: Cli, tmp_path: Path) -> None:
    root = folder(tmp_path)
    result = cli("ls", "traces", str(root), "--json")
    alone = cli("ls", "traces", "--json")
    assert result.status == 0
    assert result.data["counts"] == alone.data["counts"] | {"ignored": alone.data["counts"]["ignored"] + 5}
    assert result.data["near_misses"] == [
        {"path": str(root / "agent.db"), "reason": "holds tables messages, sessions, but no format claims it"},
        {"path": str(root / "chat.json"), "reason": "holds chat messages, but no format claims it"},
        {"path": str(root / "printed.txt"), "reason": "holds agent events, but no format claims it"},
    ]
    assert result.err.splitlines() == [
        "tracetui: 3 files look like traces, but no format claims them:",
        f"  {root / 'agent.db'} holds tables messages, sessions",
        f"  {root / 'chat.json'} holds chat messages",
        f"  {root / 'printed.txt'} holds agent events",
    ]
    assert alone.err == ""


def test_a_query_does_not_change_the_counts(cli: Cli, tmp_path: Path) -> None:
    root = folder(tmp_path)
    counts = cli("ls", "traces", str(root), "--json").data["counts"]
    assert cli("ls", "traces", str(root), "--json", "-q", "status:error").data["counts"] == counts


def test_without_a_run_near_misses_are_named_all_the_same(cli: Cli, tmp_path: Path) -> None:
    result = cli("ls", str(folder(tmp_path)))
    assert result.status == 1
    assert "chat.json holds chat messages" in result.err


def test_doctor_marks_near_misses(cli: Cli, tmp_path: Path) -> None:
    diagnosis = cli("doctor", str(folder(tmp_path)), "--json").data
    assert {Path(file["path"]).name for file in diagnosis["files"] if file["near_miss"]} == {
        "agent.db",
        "chat.json",
        "printed.txt",
    }
    assert diagnosis["near_misses"] == 3
    assert "3 of the ignored files look like traces" in cli("doctor", str(folder(tmp_path / "x"))).text


def test_an_unread_store_is_named_once(cli: Cli, tmp_path: Path) -> None:
    root = tmp_path / "home"
    store = root / "p" / "tasks"
    for name in ("a", "b"):
        (store / name).mkdir(parents=True)
        (store / name / "ui_messages.json").write_text(json.dumps([{"type": "say", "text": "hello"}]))
    listed = cli("ls", str(root), "--json").data
    assert listed["near_misses"] == [
        {"path": str(store), "reason": "holds Cline tasks, which no format reads"},
    ]
    assert listed["counts"]["ignored"] == 2
    diagnosis = cli("doctor", str(root), "--json").data
    assert diagnosis["near_misses"] == 1
    assert [file["reason"] for file in diagnosis["files"]] == [
        "holds Cline tasks, which no format reads",
        "belongs to the Cline tasks above",
    ]


def test_a_database_of_a_known_program_is_named_by_it(cli: Cli, tmp_path: Path) -> None:
    with closing(connect(tmp_path / "state.db")) as database:
        database.execute("CREATE TABLE sessions (id)")
        database.execute("CREATE TABLE messages (id, content_json)")
    assert "state.db holds Goose sessions" in cli("ls", str(tmp_path)).err


def test_doctor_says_what_companions_of_a_session_are(cli: Cli, tmp_path: Path) -> None:
    root = tmp_path / "s1" / "subagents" / "workflows" / "wf_1"
    root.mkdir(parents=True)
    (root / "journal.jsonl").write_text('{"type":"started","key":"k"}\n')
    (root / "agent-1.meta.json").write_text("{}")
    diagnosis = cli("doctor", str(root), "--json").data
    assert [file["reason"] for file in diagnosis["files"]] == [
        "describes a sub-agent of Claude Code",
        "journal of a workflow of Claude Code",
    ]
    assert (diagnosis["problem"], diagnosis["near_misses"]) == (0, 0)

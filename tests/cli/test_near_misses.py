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
    found = cli("ls", "traces", str(root), "--json")
    alone = cli("ls", "traces", "--json")
    assert found.status == 0
    assert found.data["counts"] == alone.data["counts"] | {"ignored": alone.data["counts"]["ignored"] + 5}
    assert found.data["near_misses"] == [
        {"path": str(root / "agent.db"), "reason": "holds tables messages, sessions, but no format claims it"},
        {"path": str(root / "chat.json"), "reason": "holds chat messages, but no format claims it"},
        {"path": str(root / "printed.txt"), "reason": "holds agent events, but no format claims it"},
    ]
    assert found.err.splitlines() == [
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
    found = cli("ls", str(folder(tmp_path)))
    assert found.status == 1
    assert "chat.json holds chat messages" in found.err


def test_doctor_marks_near_misses(cli: Cli, tmp_path: Path) -> None:
    found = cli("doctor", str(folder(tmp_path)), "--json").data
    assert {Path(one["path"]).name for one in found["files"] if one["near_miss"]} == {
        "agent.db",
        "chat.json",
        "printed.txt",
    }
    assert found["near_misses"] == 3
    assert "3 of the ignored files look like traces" in cli("doctor", str(folder(tmp_path / "x"))).text

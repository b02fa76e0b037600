"""``tracetui stats``: a table or data, of a folder, a file, a run or a sub-agent."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.run import Cli
from tests.formats import opencode_build
from tests.live.sessions import Session


def test_a_folder_by_tool(cli: Cli) -> None:
    for name, calls in (("a", 2), ("b", 3)):
        session = Session(Path(f"traces/made/{name}.ccpa-trace.jsonl"))
        for _ in range(calls):
            session.step(ok=name == "a")
        session.end()

    data = cli("stats", "traces/made", "--json").data
    result = cli("stats", "traces/made")

    assert (data["schema"], data["by"], data["runs"]) == ("tracetui/stats/1", "tool", 2)
    assert [(row["name"], row["count"], row["errors"], row["runs"]) for row in data["rows"]] == [("Bash", 5, 3, 2)]
    assert result.text.split("\n")[0].split()[:3] == ["TOOL", "COUNT", "ERRORS"]
    assert result.text.split("\n")[1].split()[:4] == ["Bash", "5", "3", "2"]
    assert result.err == "tracetui: 2 runs, by tool\n"


def test_one_run_and_some_runs(cli: Cli) -> None:
    all_runs = cli("stats", "traces/daily.db", "--by", "node", "--json").data
    single = cli("stats", "traces/daily.db#nightly-1", "--by", "node", "--json").data
    failed = cli("stats", "traces/daily.db", "--by", "node", "--json", "-q", "status:error").data

    assert all_runs["runs"] > single["runs"] == 1
    assert 0 < failed["runs"] < all_runs["runs"]
    assert sum(row["count"] for row in single["rows"]) > 0


def test_a_run_that_is_named_twice_counts_once(cli: Cli) -> None:
    once = cli("stats", "traces/daily.db", "--json").data
    assert (
        cli("stats", "traces/daily.db", "traces", "traces/daily.db#nightly-1", "--json").data["runs"]
        == (cli("stats", "traces", "--json").data["runs"])
    )
    assert cli("stats", "traces/daily.db", "traces/daily.db", "--json").data == once


def test_parts_of_runs_and_wrong_queries_are_wrong_usage(cli: Cli) -> None:
    result = cli("stats", "traces/daily.db#nightly-1/1")
    assert (result.status, result.out) == (2, b"")
    assert "traces/daily.db#nightly-1" in result.err
    assert cli("stats", "traces", "-q", "nokey:1").status == 2
    Path("empty").mkdir()
    assert cli("stats", "empty").status == 1


def test_hostile_names_are_made_harmless(cli: Cli) -> None:
    session = Session(Path("traces/made/a.ccpa-trace.jsonl"))
    session.answer(session.call("\x1b[31mBash\u202e"))

    assert not {"\x1b", "\u202e"} & set(cli("stats", "traces/made").text)


def test_a_run_recorded_twice_counts_once(cli: Cli) -> None:
    folder = Path("traces/opencode")
    folder.mkdir()
    case = opencode_build.CASES / "database" / "input" / "opencode.db"
    shutil.copy(case, folder / "opencode.db")
    alone = cli("stats", "traces/opencode", "--json").data
    with closing(sqlite3.connect(f"{case.as_uri()}?immutable=1", uri=True)) as db:
        (folder / "export.json").write_text(json.dumps(opencode_build.exported(db, "ses_a")))

    assert cli("stats", "traces/opencode", "--json").data == alone
    assert cli("stats", "traces/opencode/opencode.db", "traces/opencode/export.json", "--json").data == alone
    assert cli("stats", "traces/opencode/export.json", "--json").data["runs"] == 1
    copies = cli("ls", "traces/opencode", "-q", "is:copy", "--json").data["runs"]
    assert [run["path"] for run in copies] == ["traces/opencode/export.json"]

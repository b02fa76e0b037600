"""Contexts of many runs: `stats` by content, file and cache break, and queries about contexts."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import Cli
from tests.context_build import ClaudeSession, filler, text, tool_use
from tracetui.analysis.context_feed import Feed
from tracetui.live import contexts
from tracetui.sources.base import TICK_NS

BY = "content,context-file,break"


def write_session(path: Path, *, idle: bool = False, extra: int = 0) -> ClaudeSession:
    """A session that reads a file, and breaks the cache if it is `idle` for ten minutes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    session, name = ClaudeSession(path), path.stem
    session.prompt("read it")
    session.answer(f"msg_{name}_1", tool_use(f"t-{name}", "Read", file_path="/w/a.py"), written=10_000, output=60)
    session.result(f"t-{name}", filler(1_900))
    session.answer(f"msg_{name}_2", text("done"), read=10_000, written=2_060)
    session.prompt("again", seconds=600 if idle else 10)
    size = 12_120 + extra
    kept = 0 if idle else 12_060
    session.answer(f"msg_{name}_3", text("done"), read=kept, written=size - kept)
    os.utime(session.write(), (1_000 + extra, 1_000 + extra))  # a run that may go on isn't stored
    return session


def wait_for_the_clock(path: Path) -> None:
    """Until the clock of the disk has passed the last change: what was read in the same tick isn't stored."""
    while time.time_ns() - path.stat().st_ctime_ns <= TICK_NS:
        os.sched_yield()


def rows(cli: Cli, *arguments: str) -> dict[str, dict[str, Any]]:
    """The rows of all groupings by their name."""
    lines = cli("stats", "runs", "--by", BY, "--json", *arguments).out.decode()
    documents = [json.loads(document) for document in lines.replace("}\n{", "}\0{").split("\0")]
    return {row["name"]: row | {"of": document["runs"]} for document in documents for row in document["rows"]}


def test_contents_and_breaks_sum_over_runs(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"))
    write_session(Path("runs/two.jsonl"), idle=True)
    by_name = rows(cli)
    assert (by_name["result:Read"]["runs"], by_name["result:Read"]["entered"]) == (2, 4_000)
    assert (by_name["/w/a.py"]["count"], by_name["/w/a.py"]["carried"]) == (2, 8_000)
    assert (by_name["idle"]["runs"], by_name["idle"]["missed"], by_name["idle"]["of"]) == (1, 12_060, 2)
    carried = sum(row["carried"] or 0 for name, row in by_name.items() if not name.startswith("/"))
    assert carried == 2 * (10_003 + 12_063 + 12_123)


def write_fork() -> None:
    """The session ``one``, and ``two``, which continues a copy of it."""
    session = write_session(Path("runs/one.jsonl"), idle=True)
    lines = session.path.read_text().splitlines(keepends=True)
    copy = [line.replace('"sessionId": "one"', '"sessionId": "two"') for line in lines]
    later = session.records[-1] | {"uuid": "two-9", "parentUuid": session.records[-1]["uuid"], "sessionId": "two"}
    message = later["message"] | {"id": "msg_two_4", "usage": {**later["message"]["usage"]}}
    message["usage"] |= {"cache_read_input_tokens": 12_120, "cache_creation_input_tokens": 100}
    Path("runs/two.jsonl").write_text("".join(copy) + json.dumps(later | {"message": message}) + "\n")


def test_a_copied_beginning_counts_once(cli: Cli) -> None:
    write_fork()
    by_name = rows(cli)
    assert (by_name["result:Read"]["entered"], by_name["/w/a.py"]["count"]) == (2_000, 1)
    assert by_name["result:Read"]["carried"] == 3 * 2_000
    assert (by_name["idle"]["runs"], by_name["idle"]["count"]) == (1, 1)


def test_the_first_call_of_a_fork_inherits_the_context(cli: Cli) -> None:
    write_fork()
    document = cli("context", "two", "--trace-dir", "runs", "--json").data
    (call,) = document["calls"]
    assert (call["input"], call["inherited"], call["growth"]) == (12_223, 12_123, 100)
    assert (call["by"]["result:Read"], sum(call["by"].values())) == (2_000, 12_223)
    assert sum(arrival["tokens"] for arrival in call["arrivals"]) == 100
    assert "Inherited 12.1k tokens" in cli("context", "two", "--trace-dir", "runs").text


def test_an_unchanged_run_is_not_read_again(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(Path("runs/one.jsonl"))
    wait_for_the_clock(write_session(Path("runs/two.jsonl"), idle=True).path)
    cold = rows(cli)
    fed: list[str] = []

    def counting(run: Any, *more: Any) -> Any:
        fed.append(run.summary.id)
        return Feed(run, *more)

    monkeypatch.setattr(contexts, "Feed", counting)
    assert rows(cli) == cold
    assert fed == []
    write_session(Path("runs/one.jsonl"), extra=500)
    assert rows(cli)["not recorded"]["entered"] > 300
    assert fed == ["one"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("context>12k", {"one", "two"}),
        ("context>13k", set()),
        ("missed>10k", {"two"}),
        ("break:idle", {"two"}),
        ("break:none", {"one"}),
        ("grew>2k", {"one", "two"}),
        ("-break:idle grew>2k", {"one"}),
    ],
)
def test_runs_are_found_by_their_context(cli: Cli, query: str, ids: set[str]) -> None:
    write_session(Path("runs/one.jsonl"))
    write_session(Path("runs/two.jsonl"), idle=True)
    assert {run["id"] for run in cli("ls", "runs", "-q", query, "--json").data["runs"]} == ids


def test_people_get_a_table_for_each_grouping(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), idle=True)
    out = cli("stats", "runs", "--by", BY).out.decode()
    assert [word in out for word in ("Read results", "/w/a.py", "idle")] == [True] * 3


def test_a_misspelt_grouping_is_an_error(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"))
    result = cli("stats", "runs", "--by", "contents")
    assert result.status == 2
    assert "did you mean 'content'" in result.err

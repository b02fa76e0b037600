"""``tracetui context``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.run import LONG_AGO, Cli
from tests.context_build import ClaudeSession, filler, text, tool_use


def write_session(path: str = "session.jsonl") -> None:
    """Two calls; the second one misses the cache after idling, and carries a file."""
    session = ClaudeSession(Path(path))
    session.prompt("read it")
    session.answer("m1", tool_use("t1", "Read", file_path="/w/a.py"), written=10_000, output=60)
    session.result("t1", filler(1900))
    session.answer("m2", text("done"), written=12_060, seconds=2)
    session.prompt("again", seconds=400)
    session.answer("m3", text("done"), written=12_100)
    session.write()
    os.utime(path, (LONG_AGO, LONG_AGO))


def test_people_get_sentences_and_the_contents(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACETUI_PRICES", "off")
    write_session()
    result = cli("context", "session.jsonl")
    assert result.status == 0
    assert "No costs: TRACETUI_PRICES=off." in result.text
    assert "idle ×1" in result.text
    last = result.text.splitlines()[-1].split()
    assert last[:3] == ["12.1k", "34.2k", "100%"]


@pytest.mark.parametrize(("by", "content"), [("file", "/w/a.py"), ("break", "idle 6m40s"), ("call", "Read results")])
def test_rows_are_chosen_with_by(cli: Cli, by: str, content: str) -> None:
    write_session()
    assert content in cli("context", "session.jsonl", "--by", by).text


@pytest.mark.parametrize(
    ("by", "sentence"), [("file", "is known to be a file"), ("break", "nothing to read from a cache")]
)
def test_without_rows_there_is_a_sentence_and_no_table(cli: Cli, by: str, sentence: str) -> None:
    session = ClaudeSession(Path("session.jsonl"))
    session.prompt("hello")
    session.answer("m1", text("hello"), written=12_000)
    session.write()
    output = cli("context", "session.jsonl", "--by", by).text
    assert sentence in output
    assert "COST" not in output


def test_scripts_get_every_call_with_its_contents(cli: Cli) -> None:
    write_session()
    document = cli("context", "session.jsonl", "--json").data
    assert document["schema"] == "tracetui/context/1"
    assert [call["call"] for call in document["calls"]] == ["m1", "m2", "m3"]
    assert all(sum(call["by"].values()) == call["input"] for call in document["calls"])
    assert sum(row["carried"] for row in document["contents"]) == document["totals"]["input"]
    assert [(row["call"], row["cause"]) for row in document["breaks"]] == [("m2", "unknown"), ("m3", "idle")]


def test_a_run_without_usage_says_so(cli: Cli) -> None:
    session = ClaudeSession(Path("session.jsonl"))
    session.prompt("hello")
    session.write()
    result = cli("context", "session.jsonl")
    assert (result.status, "No model call of this run records its input tokens." in result.text) == (0, True)
    assert cli("context", "session.jsonl", "--json").data["calls"] == []


def test_a_folder_named_context_is_hinted_at(cli: Cli) -> None:
    Path("context").mkdir()
    result = cli("context")
    assert result.status == 2
    assert "`tracetui ./context` opens the folder" in result.err

"""A copied response counts once, and every command tells the same of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.claude_sessions import bash, write_session
from tests.cli.run import Cli

FACTS = ("usage", "llm_calls", "tool_calls", "counts_in", "relation", "replay_of", "steps", "errors", "status", "state")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A session, and a copy of it in another folder that went on."""
    home = tmp_path / "home"
    for name in ("a", "b"):
        (home / name).mkdir(parents=True)
    session = write_session(home / "a" / "11111111-1111-4111-8111-111111111111.jsonl", [bash("ls"), bash("pwd")])
    lines = [_with_usage(json.loads(line)) for line in session.read_text().splitlines()]
    session.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]))
    (home / "b" / session.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return home


def _with_usage(record: dict[str, Any]) -> dict[str, Any]:
    if record["type"] == "assistant":
        record["message"]["usage"] = {"input_tokens": 10, "output_tokens": 5}
    return record


def test_show_context_and_exports_tell_what_ls_tells(cli: Cli, home: Path) -> None:
    listed = cli("ls", str(home), "--json").data["runs"]
    copy, original = sorted(listed, key=lambda run: run["counts_in"] is None)
    assert (copy["counts_in"], original["counts_in"]) == (original["address"], None)
    for run in listed:
        document = cli("show", run["address"], "--trace-dir", str(home), "--json").data["run"]
        exported = cli("export", run["address"], "--trace-dir", str(home), "--as", "json").data["run"]
        assert {name: document[name] for name in FACTS} == {name: run[name] for name in FACTS}
        assert exported["usage"] == run["usage"]
    assert f"counts in  {original['address']}" in cli("show", copy["address"], "--trace-dir", str(home)).text
    assert "[counts in " in cli("ls", str(home)).text


def test_a_file_that_is_named_alone_counts_whole(cli: Cli, home: Path) -> None:
    address = next(run["address"] for run in cli("ls", str(home), "--json").data["runs"] if run["counts_in"])
    alone = cli("ls", address, "--json").data["runs"][0]
    document = cli("show", address, "--json").data["run"]
    assert document["counts_in"] is None
    assert document["usage"] == alone["usage"]


def test_a_comparison_says_where_a_run_counts(cli: Cli, home: Path) -> None:
    a, b = (str(next((home / name).glob("*.jsonl"))) for name in "ab")
    assert f"counts in {a}" in cli("diff", a, b).text

"""``tracetui grep``: hits as lines and as data, exit statuses as of grep, nothing that a terminal may act upon."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import Cli
from tests.live.sessions import Session, paprika


def lines_of(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_hit_is_its_step_its_place_and_its_line(cli: Cli) -> None:
    result = cli("grep", "limit", "traces/paprika")

    assert result.status == 0
    first = result.text.split("\n")[0]
    address, _, rest = first.partition("  ")
    path, _, excerpt = rest.partition(": ")
    assert "limit" in excerpt
    assert "limit" in cli("show", address, "--json").text
    assert path.split("[")[0].split(".")[0] in ("input", "output", "error", "attributes")


def test_the_address_of_each_hit_leads_to_its_value(cli: Cli) -> None:
    hits = [hit for hit in lines_of(cli("grep", "-i", "o", "traces", "--json").out) if hit["event"] == "hit"]

    assert len({hit["run"] for hit in hits}) > 5
    for hit in hits[::7]:
        value = cli("show", hit["address"], "--json").data
        assert hit["match"] in (value if isinstance(value, str) else str(value)), hit
        assert (hit["before"] + hit["match"] + hit["after"]) in str(value)


def test_the_last_line_of_data_counts(cli: Cli) -> None:
    *hits, end = lines_of(cli("grep", "e", "traces/lattice", "--json").out)

    assert end["event"] == "end"
    assert end["schema"] == hits[0]["schema"] == "tracetui/grep/1"
    assert end["hits"] == len(hits)
    assert end["runs"] == len({hit["run"] for hit in hits})
    assert end["files"]["searched"] == 1
    assert {*end["files"]} == {"passed", "searched", "foreign", "failed"}


def test_runs_and_counts(cli: Cli) -> None:
    data = [event for event in lines_of(cli("grep", "e", "traces", "--json").out) if event["event"] == "hit"]
    runs = list(dict.fromkeys(hit["run"] for hit in data))

    assert cli("grep", "-l", "e", "traces").text.split("\n") == [*runs, ""]
    assert cli("grep", "-c", "e", "traces").text.split("\n") == [
        *(f"{run}: {sum(hit['run'] == run for hit in data)}" for run in runs),
        "",
    ]
    assert cli("grep", "-c", "-m", "1", "e", "traces").text.split("\n") == [*(f"{run}: 1" for run in runs), ""]


@pytest.mark.parametrize(
    "arguments", [("-i", "timeout", "traces"), ("timeout", "-i", "traces"), ("timeout", "traces", "-i")]
)
def test_options_may_stand_anywhere(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("grep", "-l", *arguments).out == cli("grep", "-i", "-l", "timeout", "traces").out != b""


def test_status_is_that_of_grep(cli: Cli) -> None:
    assert cli("grep", "no such words", "traces").status == 1
    assert cli("grep", "limit", "traces").status == 0
    for arguments, message in (
        (["-e", "(", "traces"], "invalid regular expression"),
        (["", "traces"], "empty"),
        (["limit", "nowhere"], "No such file"),
    ):
        result = cli("grep", *arguments)
        assert (result.status, result.out) == (2, b"")
        assert message in result.err
        assert result.err.count("\n") == 1


def test_problems_are_printed_and_the_rest_is_searched(cli: Cli) -> None:
    complete = paprika(Path("traces/whole.json"), "whole")
    Path("traces/torn.json").write_bytes(complete[:-30])
    Path("notes.json").write_text("found 1 in something else")

    result = cli("grep", "found 1", "traces", "notes.json")
    data = lines_of(cli("grep", "found 1", "traces", "--json").out)

    assert result.status == 2
    assert result.text.count("\n") == 1
    assert "torn.json" in result.err
    assert "skipped 1 file that isn't a trace" in result.err
    assert [event["path"] for event in data if event["event"] == "problem"] == ["traces/torn.json"]


def test_nothing_reaches_the_terminal_that_it_may_act_upon(cli: Cli) -> None:
    session = Session(Path("traces/hostile.ccpa-trace.jsonl"))
    session.step("\x1b]0;owned\x07 needle \u202egnp.exe\r\x1b[2J")

    for arguments in (["grep", "needle", "traces"], ["grep", "needle", "traces", "--json"]):
        out = cli(*arguments).out.decode()
        assert "needle" in out
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(out)


def test_the_match_is_bold_on_a_terminal_only(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    piped = cli("grep", "limit", "traces/paprika").text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    bold = cli("grep", "limit", "traces/paprika").text
    monkeypatch.setenv("NO_COLOR", "1")
    plain = cli("grep", "limit", "traces/paprika").text

    assert "\x1b" not in piped
    assert bold.replace("\x1b[1mlimit\x1b[22m", "limit") == plain != bold


def test_only_the_runs_that_a_query_asks_for_are_searched(cli: Cli) -> None:
    everywhere = {hit["run"] for hit in lines_of(cli("grep", "e", "traces/daily.db", "--json").out)[:-1]}
    failed = {
        hit["run"] for hit in lines_of(cli("grep", "-q", "status:error", "e", "traces/daily.db", "--json").out)[:-1]
    }

    assert failed < everywhere
    assert failed == {
        run["address"] for run in cli("ls", "traces", "--json").data["runs"] if run["status"] == "error"
    } & (everywhere)
    assert cli("grep", "-q", "agent:nobody", "e", "traces").status == 1
    assert cli("grep", "-q", "nokey:1", "e", "traces").status == 2


def test_secrets_are_masked_for_people_and_exact_as_data(cli: Cli) -> None:
    session = Session(Path("traces/made/a.ccpa-trace.jsonl"))
    session.answer(session.call("login", api_key="hunter2-correct-horse"), "done")

    for options, is_exact in (([], False), (["--json"], True), (["--json", "--redact"], False)):
        result = cli("grep", "correct-horse", "traces/made", *options)
        assert result.status == int("--redact" in options)  # masked text is searched there
        assert ("hunter2" in result.text) == is_exact

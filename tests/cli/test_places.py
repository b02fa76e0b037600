"""Runs where places are taken: addresses, ids, and ``DIR#ID``."""

from __future__ import annotations

from tests.cli.run import Cli


def failed_run(cli: Cli) -> dict[str, str]:
    """A failed run of a database, which holds others beside it."""
    runs = cli("ls", "traces", "--json").data["runs"]
    return next(run for run in runs if run["status"] == "error" and "#" in run["address"])


def test_an_address_means_one_run_wherever_places_are_taken(cli: Cli) -> None:
    run = failed_run(cli)
    for word in (run["address"], f"traces#{run['id']}"):
        assert [listed["address"] for listed in cli("ls", word, "--json").data["runs"]] == [run["address"]]
        triage = cli("triage", word, "--json").data
        counts = {"runs": 1, "failed": 1, "errors": 1, "wrong_answers": 0, "causes": 1, "signatures": 1}
        assert triage["counts"].items() >= counts.items()
        assert triage["causes"][0]["runs"] == [run["address"]]
        assert set(cli("grep", "-e", ".", "-l", word).text.split()) == {run["address"]}
        assert cli("ls", word, "--fail-on", "error").status == 3
        assert cli("stats", word, "--by", "node", "--json").data["runs"] == 1
        assert cli("show", word, "--json").data["run"]["address"] == run["address"]


def test_a_run_stands_beside_places_and_ids_are_looked_for_in_the_trace_dir(cli: Cli) -> None:
    run = failed_run(cli)
    runs = cli("ls", run["id"], "--trace-dir", "traces", "--json").data["runs"]
    both = cli("ls", run["address"], "traces/paprika", "--json").data["runs"]

    assert [listed["address"] for listed in runs] == [run["address"]]
    assert run["address"] in {listed["address"] for listed in both}
    assert len(both) == 1 + len(cli("ls", "traces/paprika", "--json").data["runs"])


def test_the_beginning_of_an_id_and_what_follows_lead_below_a_run_of_a_folder(cli: Cli) -> None:
    run = failed_run(cli)
    value = cli("show", f"traces#{run['id']}/first_error/message", "--json")

    assert value.status == 0
    assert value.data == cli("show", f"{run['address']}/first_error/message", "--json").data is not None
    assert cli("show", "traces#nobody").status == 1
    assert "no run 'nobody' in traces" in cli("show", "traces#nobody").err


def test_a_part_of_a_run_is_no_place(cli: Cli) -> None:
    run = failed_run(cli)
    for command in (["ls"], ["triage"], ["grep", "x"]):
        result = cli(*command, f"{run['address']}/status")
        assert (result.status, result.out) == (2, b"")
        assert f"use the whole run: {run['address']}" in result.err


def test_arguments_that_are_neither_place_nor_run_are_unreadable(cli: Cli) -> None:
    result = cli("ls", "traces", "nothere", "--json")
    assert result.status == 0
    assert "nothere" in {problem["path"] for problem in result.data["problems"]}
    assert cli("ls", "nothere").status == 1


def test_a_query_may_begin_with_a_minus(cli: Cli) -> None:
    everything = cli("ls", "traces", "--json").data["runs"]
    others = [run["address"] for run in everything if run["status"] != "error"]
    for options in (["-q", "-status:error"], ["--query", "-status:error"], ["--query=-status:error"]):
        runs = cli("ls", "traces", "--json", *options).data["runs"]
        assert [run["address"] for run in runs] == others

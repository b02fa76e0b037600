"""Conversations of OpenHands V1: replies and calls, usage by response, sub-agents, outcomes, growth and damage."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.formats.openhands_build import CASES, Writer, agents, orphan, tools, waiting
from tests.shared import needs_shared, sample
from tracetui.formats import registry
from tracetui.formats.openhands import OpenHands
from tracetui.live.scan import scan
from tracetui.model import Operation, Run, RunRef, RunSummary, Span, Status, StatusSource, Total, Usage
from tracetui.sources.base import HEAD_SIZE
from tracetui.sources.local import LocalFile, LocalSource
from tracetui.testing import read_run
from tracetui.testing.reading import Follower

FORMAT = OpenHands()


def state_of(folder: Path) -> Path:
    """The one state directly below a conversation of `folder`."""
    (path,) = folder.glob("*/base_state.json")
    return path


def read(path: Path) -> Run:
    return read_run(FORMAT, RunRef(FORMAT.name, str(path)))


def case(name: str) -> Run:
    return read(state_of(CASES / name / "input"))


def listed(folder: Path) -> list[RunSummary]:
    return [run for file in scan(LocalSource(), [str(folder)], deep=True) for run in file.runs]


def named(run: Run, name: str, number: int = 0) -> Span:
    return [span for span in run.spans if span.name == name][number]


def outline(run: Run) -> list[str]:
    return [f"{'  ' * depth}{span.name}" for span, depth in zip(run.spans, run.depths, strict=True)]


# ---- what a conversation is


def test_parallel_calls_are_below_one_reply() -> None:
    run = case("tools")
    assert outline(run)[:5] == ["system", "user", "acme/acorn-2", "  terminal", "  terminal"]
    calls = [part for part in run.load(run.spans[2]).output_messages[0].parts if not hasattr(part, "text")]
    assert len(calls) == 2
    facts = run.summary
    assert (facts.name, facts.prompt, facts.model, facts.steps) == ("orchard", "Count the trees", "acme/acorn-2", 6)
    assert (facts.llm_calls, facts.tool_calls) == (8, 6)


def test_usage_belongs_to_the_response_and_calls_without_an_event_count() -> None:
    run = case("tools")
    assert named(run, "acme/acorn-2").usage == Usage(100, 10, None, 40, 0, 2, 0.001)
    assert named(run, "acme/acorn-2").duration_ms == 250.0
    assert named(run, "condensation").usage == named(run, "condenser").usage
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 800
    assert Total("input_tokens", 800.0, 800) in run.body.totals


@pytest.mark.parametrize(
    ("name", "number", "status", "source"),
    [
        ("terminal", 0, Status.OK, StatusSource.EXPLICIT),
        ("terminal", 1, Status.ERROR, StatusSource.EXIT),
        ("file_editor", 0, Status.ERROR, StatusSource.EXPLICIT),
        ("terminal", 2, Status.ERROR, StatusSource.EXPLICIT),
        ("terminal", 3, Status.CANCELLED, StatusSource.EXPLICIT),
        ("terminal", 4, Status.ERROR, StatusSource.EXPLICIT),
    ],
)
def test_a_call_fails_by_its_flag_exit_code_error_or_rejection(
    name: str, number: int, status: Status, source: StatusSource
) -> None:
    span = named(case("tools"), name, number)
    assert (span.status, span.status_source) == (status, source)


def test_events_of_unknown_kinds_are_counted() -> None:
    run = case("tools")
    assert named(run, "WeatherEvent").operation is Operation.UNKNOWN
    assert run.load(named(run, "WeatherEvent")).attributes["wind"] == "gale"
    assert run.summary.unread is not None


# ---- sub-agents


def test_sub_agents_are_below_their_calls_and_count_once() -> None:
    folder = CASES / "agents" / "input"
    runs = listed(folder)
    assert [run.ref.path for run in runs] == [str(state_of(folder))]
    usage = runs[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3 * 100 + 2 * 50, 50)
    assert usage.cost_usd == pytest.approx(3 * 0.001 + 2 * 0.0005)
    run = read(state_of(folder))
    assert outline(run)[1:7] == [
        *("acme/acorn-2", "  task", "    counter", "      user", "      acme/acorn-2", "        finish")
    ]
    assert [span.preview for span in run.spans if span.name == "counter"] == ["count the pears", "count the plums"]
    assert runs[0].steps == 3


def test_a_sub_agent_whose_files_are_lost_still_counts_once(tmp_path: Path) -> None:
    writer = agents(tmp_path)
    for path in sorted(writer.folder.glob("subagents/*/**/*.json")):
        path.unlink()
    run = read(writer.folder / "base_state.json")
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 400
    spans = [span for span in run.spans if span.name == "task:task_3"]
    assert [span.parent_id for span in spans] == [named(run, "task").id]


def test_an_event_names_the_outermost_conversation() -> None:
    folder = CASES / "agents" / "input"
    for path in folder.glob("*/subagents/*/events/*.json"):
        with LocalFile(str(path)) as file:
            assert FORMAT.whole_of(file) == str(state_of(folder))
    with LocalFile(str(state_of(folder))) as file:
        assert FORMAT.whole_of(file) is None


def test_events_without_a_state_are_one_run() -> None:
    (run,) = listed(CASES / "orphan" / "input")
    assert (run.prompt, run.status, run.status_source) == (
        *("Is anybody here?", Status.UNKNOWN),
        StatusSource.DERIVED,
    )
    assert run.steps == 1


# ---- outcomes


def test_a_failed_conversation_has_its_error() -> None:
    run = case("failed")
    assert (run.summary.status, run.summary.status_word) == (Status.ERROR, "error")
    assert run.summary.first_error is not None
    assert run.summary.first_error.text == "MaxIterationsReached: maximum of 20 reached"


def test_a_cost_that_is_not_recorded_is_unknown() -> None:
    usage = case("failed").summary.usage
    assert usage is not None
    assert usage.cost_usd is None


def test_costs_that_belong_to_no_response_count_as_a_whole(tmp_path: Path) -> None:
    writer = waiting(tmp_path)
    writer.use("agent", "r-2", cost=None)
    writer.save("paused")
    run = read(writer.folder / "base_state.json")
    assert run.summary.usage is not None
    assert (run.summary.usage.input_tokens, run.summary.usage.cost_usd) == (200, 0.001)
    assert named(run, "acme/acorn-2").usage == Usage(100, 10, None, 40, 0, 2)


@pytest.mark.parametrize(
    ("word", "status", "call"),
    [
        ("waiting_for_confirmation", Status.PAUSED, Status.PAUSED),
        ("paused", Status.PAUSED, Status.PAUSED),
        ("stuck", Status.ERROR, Status.UNKNOWN),
        ("idle", Status.UNKNOWN, Status.UNKNOWN),
        ("new word", Status.UNKNOWN, Status.UNKNOWN),
    ],
)
def test_a_conversation_stands_as_its_state_says(tmp_path: Path, word: str, status: Status, call: Status) -> None:
    run = read(waiting(tmp_path, word).folder / "base_state.json")
    assert (run.summary.status, run.summary.status_word) == (status, word)
    assert named(run, "terminal").status is call


def test_times_have_no_zone() -> None:
    assert case("tools").summary.time_zone is None


# ---- growth and damage


def test_a_followed_conversation_is_read_afresh(tmp_path: Path) -> None:
    written = agents(tmp_path / "whole").folder
    target = tmp_path / "grows" / written.name
    paths = sorted(written.rglob("*.json"), key=lambda path: (path.name == "base_state.json", path.name))
    state = target / "base_state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"execution_status": "running", "agent": {}, "persistence_dir": "x"}', encoding="utf-8")
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(state)))
    for path in paths:
        copy = target / path.relative_to(written)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        follower.read()
        follower.check(f"after {path.name}")
    before = follower.given
    follower.read()
    assert follower.given == before


def test_the_newest_event_may_be_unfinished_others_are_problems(tmp_path: Path) -> None:
    writer = tools(tmp_path)
    first, *_, last = sorted(writer.folder.glob("events/*.json"))
    last.write_bytes(last.read_bytes()[:40])
    (run,) = listed(tmp_path)
    assert run.problems == 0  # it is being written
    first.write_bytes(b"{")
    run = read(writer.folder / "base_state.json").summary
    assert read(writer.folder / "base_state.json").problems[0].where == f"events/{first.name}"
    assert run.steps == 5


def test_events_that_are_not_there_are_a_problem(tmp_path: Path) -> None:
    writer = tools(tmp_path)
    sorted(writer.folder.glob("events/*.json"))[3].unlink()
    problems = read(writer.folder / "base_state.json").problems
    assert [(problem.where, problem.reason) for problem in problems] == [("events", "1 events have no file")]


def test_a_state_that_is_being_written_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    writer = tools(tmp_path)
    state = writer.folder / "base_state.json"
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(state)))
    follower.read()
    whole, given = state.read_bytes(), follower.given
    state.write_bytes(whole[:100])
    follower.read()
    state.write_bytes(whole)
    follower.read()
    assert (follower.given, follower.resets) == (given, 0)


def test_a_folder_of_other_events_is_left_alone(tmp_path: Path) -> None:
    path = orphan(tmp_path).folder / "events" / "event-00009-x.json"
    path.write_text('{"kind": "party"}', encoding="utf-8")
    with LocalFile(str(path)) as file:
        assert FORMAT.sniff(file) == 0


def test_a_long_event_is_known_without_its_kind_which_comes_last(tmp_path: Path) -> None:
    path = orphan(tmp_path).folder / "events" / "event-00009-x.json"
    record = {
        "id": "x",
        "timestamp": "2026-01-01T09:00:00",
        "source": "user",
        "said": "x" * HEAD_SIZE,
        "kind": "MessageEvent",
    }
    for known in (True, False):
        path.write_text(json.dumps(record), encoding="utf-8")
        with LocalFile(str(path)) as file:
            assert (registry.score(FORMAT, file) > 0) is known
        record.pop("source", None)


def test_a_state_is_known_by_what_comes_after_a_long_agent(tmp_path: Path) -> None:
    path = tmp_path / "base_state.json"
    agent = {"kind": "Agent", "agent_context": {"skills": ["x" * HEAD_SIZE]}}
    for name in ("execution_status", "status"):
        path.write_text(json.dumps({"id": "x", "agent": agent, name: "finished"}), encoding="utf-8")
        with LocalFile(str(path)) as file:
            assert (registry.score(FORMAT, file) > 0) is (name == "execution_status")


def test_a_writer_makes_ids_that_are_unique(tmp_path: Path) -> None:
    writer = Writer.of(tmp_path, 1)
    writer.user("One")
    writer.count = 0
    writer.second = 9
    writer.folder.joinpath("events", "event-00001-again.json").write_bytes(
        next(writer.folder.glob("events/*.json")).read_bytes()
    )
    writer.save("finished")
    assert len(read(writer.folder / "base_state.json").spans) == 2


# ---- the SDK's own values


@needs_shared
@pytest.mark.shared
def test_the_samples_have_the_values_of_the_sdk() -> None:
    folder = sample("openhands-v1")
    for facts in json.loads((folder / "facts.json").read_text())["conversations"].values():
        run = read(folder / "conversations" / facts["dir"] / "base_state.json")
        label, usage = facts["name"], run.summary.usage or Usage()
        assert run.summary.status_word == facts["execution_status"], label
        chats = [span for span in run.spans if span.operation is Operation.CHAT]
        own = [span.name for span in run.spans if span.operation is Operation.EXECUTE_TOOL and span.step]
        assert Counter(own) == Counter(facts["tool_calls"]), label
        if "cost" not in facts:
            assert usage.cost_usd == pytest.approx(facts["cost_recorded_so_far"])
            continue
        assert len(chats) == facts["llm_calls_in_metrics"], label
        assert usage.cost_usd == pytest.approx(facts["cost"]), label
        assert (usage.input_tokens, usage.output_tokens) == (facts["input_tokens"], facts["output_tokens"]), label
        assert (usage.cache_read_tokens, usage.reasoning_tokens) == (facts["cache_read"], facts["reasoning"]), label
        errors = [[span.error.type, span.error.message] for span in run.spans
                  if span.error and span.operation is Operation.OTHER]  # fmt: skip
        assert errors == facts["conversation_errors"], label
        failed = sum(span.operation is Operation.EXECUTE_TOOL and span.status is Status.ERROR for span in run.spans)
        codes = sum(code != 0 for code in facts["exit_codes"])
        assert failed == len(facts["failed_observations"]) + len(facts["agent_errors"]) + codes, label
        agents_below = [span for span in run.spans if span.operation is Operation.INVOKE_AGENT]
        assert len(agents_below) == len(facts["sub_agents"]), label

"""ATIF trajectories: steps and calls, totals, copies, sub-agents and continuations in other files, growth, damage."""

from __future__ import annotations

import copy
import json
import math
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.formats.changes import VALUES, somewhere
from tests.shared import SHARED, needs_shared, sample
from tracetui.diff.comparison import compare
from tracetui.formats import registry
from tracetui.formats.atif import Atif
from tracetui.live.load import Reader
from tracetui.live.scan import ScannedFile, scan
from tracetui.model import Operation, Reasoning, Run, RunRef, Span, Status, StatusSource, Text, ToolCall, Usage
from tracetui.sources.local import LocalSource
from tracetui.testing import read_run as run_of
from tracetui.testing.reading import Follower

CASES = Path(__file__).parent / "atif"
FORMAT = Atif()
SOURCE = LocalSource()


with_case = partial(pytest.mark.parametrize, "case", indirect=True)


def read(path: Path) -> Run:
    return run_of(FORMAT, RunRef(FORMAT.name, str(path)))


def listed(folder: Path) -> dict[str, ScannedFile]:
    """What became of each file of a folder, by name."""
    return {Path(file.path).name: file for file in scan(SOURCE, [str(folder)], deep=True, only=FORMAT)}


def span(run: Run, name: str) -> Span:
    """The first span of that id or name."""
    return next(span for span in run.spans if name in (span.id, span.name))


def loaded(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def write(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def trajectory(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    agent = {"name": "newt", "version": "1"}
    return {"schema_version": "ATIF-v1.7", "session_id": "pond", "agent": agent, "steps": list(steps)} | fields


# ------------------------------------------------------------------------------------------------- steps and calls


@with_case(["turns"])
def test_a_step_is_a_span_and_its_calls_are_below_it(case: Path) -> None:
    run = read(case / "trajectory.json")
    assert [span.step for span in run.spans if span.is_step] == list(range(1, 11))
    assert [span.name for span in run.spans if span.parent_id == "4"] == ["look", "bash", "ask"]
    chat = span(run, "4")
    assert (chat.operation, chat.model, chat.preview) == (
        Operation.CHAT,
        "mock/small",
        "I look at the tree, and at the shears.",
    )
    parts = run.load(chat).output_messages[0].parts
    assert [type(part) for part in parts] == [Reasoning, Text, ToolCall, ToolCall, ToolCall]
    assert run.load(span(run, "4.2")).output == "ls: shed/shears: no such file"
    assert json.loads(run.load(chat).raw)["step_id"] == 4


@with_case(["turns"])
def test_only_a_field_says_that_something_failed(case: Path) -> None:
    run = read(case / "trajectory.json")
    known = {
        span.id: (span.status, span.status_source) for span in run.spans if span.operation is Operation.EXECUTE_TOOL
    }
    assert known == {
        "4.1": (Status.OK, StatusSource.DERIVED),
        "4.2": (Status.ERROR, StatusSource.EXIT),
        "4.3": (Status.UNKNOWN, StatusSource.DERIVED),
        "5.1": (Status.ERROR, StatusSource.EXPLICIT),
        "8.1": (Status.OK, StatusSource.DERIVED),
        "8.2": (Status.OK, StatusSource.EXPLICIT),
    }
    error = span(run, "4.2").error
    assert error is not None
    assert error.text == "exit 2: ls: shed/shears: no such file"


@with_case(["turns"])
def test_calls_of_one_id_have_their_results_in_order(case: Path) -> None:
    run = read(case / "trajectory.json")
    assert [run.load(span(run, name)).output for name in ("8.1", "8.2")] == ["cut the second", "cut the third"]
    assert run.load(span(run, "8")).attributes["observation.results"][0]["content"] == "a crow laughs"


@with_case(["turns"])
def test_a_run_is_called_by_what_a_person_asked(case: Path) -> None:
    summary = read(case / "trajectory.json").summary
    assert (summary.name, summary.prompt) == ("gardener", "Prune the old tree by the gate")
    assert (summary.tags, summary.source) == (("trees", "spring"), "orchard-bench")


@with_case(["turns"])
def test_a_step_without_the_model_is_no_call_of_it(case: Path) -> None:
    run = read(case / "trajectory.json")
    assert (span(run, "7").operation, span(run, "7").note) == (Operation.OTHER, "no model call")
    assert span(run, "8").note == "3 model calls"
    assert span(run, "6").note == "compaction"


@with_case(["turns"])
def test_an_unknown_source_is_a_row_of_its_own_and_no_problem(case: Path) -> None:
    path = case / "trajectory.json"
    document = loaded(path)
    document["steps"].append({"step_id": 11, "source": "weather", "message": "It stops."})
    write(path, document)
    run = read(path)
    rows = [span for span in run.spans if span.name == "weather"]
    assert [row.operation for row in rows] == [Operation.UNKNOWN] * 2
    assert run.problems == ()


# -------------------------------------------------------------------------------------------------------- the numbers


def raw_usage(path: Path) -> tuple[int, int, int, float]:
    """Prompt, completion and cached tokens and cost of the steps of one file, copies and sub-agents left out."""
    sums = [0.0] * 4
    for step in loaded(path)["steps"]:
        metrics = step.get("metrics") or {} if isinstance(step, dict) and not step.get("is_copied_context") else {}
        for place, name in enumerate(("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")):
            sums[place] += metrics.get(name) or 0
    return int(sums[0]), int(sums[1]), int(sums[2]), sums[3]


def counts(usage: Usage | None) -> tuple[int, int, int, float]:
    assert usage is not None
    return (
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_tokens or 0,
        usage.cost_usd or 0.0,
    )


def check_sums(path: Path) -> None:
    """What is counted is what the raw steps hold, and what `final_metrics` declares."""
    run = read(path)
    counted, raw = counts(run.summary.usage), raw_usage(path)
    assert counted[:3] == raw[:3]
    assert math.isclose(counted[3], raw[3], abs_tol=1e-9)
    assert run.body.totals
    assert not [total for total in run.body.totals if total.differs]
    final = loaded(path)["final_metrics"]
    for name, value in zip(("prompt_tokens", "completion_tokens", "cached_tokens"), counted, strict=False):
        assert final.get(f"total_{name}", value) == value


@with_case(["turns"])
def test_sums_are_those_of_the_final_metrics(case: Path) -> None:
    check_sums(case / "trajectory.json")
    usage = read(case / "trajectory.json").summary.usage
    assert usage is not None
    assert (usage.reasoning_tokens, usage.cache_creation_tokens) == (30, 200)


@with_case(["turns"])
def test_a_declared_number_that_is_wrong_stands_beside_the_sum(case: Path) -> None:
    path = case / "trajectory.json"
    document = loaded(path)
    document["final_metrics"] |= {"total_prompt_tokens": 1, "total_cost_usd": 0.5, "total_steps": 3}
    write(path, document)
    totals = {total.name: total for total in read(path).body.totals if total.differs}
    assert {name: total.counted for name, total in totals.items() if name != "total_cost_usd"} == {
        "total_prompt_tokens": 3290,
        "total_steps": 10,
    }
    assert "total_cost_usd" in totals


@with_case(["old"])
def test_a_trajectory_whose_steps_do_not_say_used_what_it_declares(case: Path) -> None:
    run = read(case / "owl.json")
    assert run.summary.usage == Usage(500, 50, cache_read_tokens=100, cost_usd=0.02)
    assert run.summary.time_zone is None
    assert [total.name for total in run.body.totals if total.differs] == ["total_steps"]


@with_case(["turns"])
def test_a_number_that_no_step_says_is_the_declared_one(case: Path) -> None:
    path = case / "trajectory.json"
    document = loaded(path)
    for step in document["steps"]:
        step.get("metrics", {}).pop("cost_usd", None)
    document["final_metrics"] |= {"total_prompt_tokens": 1, "total_cost_usd": 0.5}
    write(path, document)
    usage = read(path).summary.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cost_usd) == (3290, 0.5)


# ------------------------------------------------------------------------------------------------------- several files


@with_case(["continued"])
def test_a_run_that_goes_on_in_other_files_is_one(case: Path) -> None:
    files = listed(case)
    assert {name: Path(file.part_of or "").name for name, file in files.items()} == {
        "trajectory.json": "",
        "trajectory.cont-1.json": "trajectory.json",
        "trajectory.cont-2.json": "trajectory.json",
    }
    run = read(case / "ferry" / "trajectory.json")
    assert [span.id for span in run.spans if span.is_step] == ["1", "2", "cont-1/3", "cont-1/4", "cont-2/1"]
    assert [span.preview for span in run.spans if span.name == "continuation"] == [
        "trajectory.cont-1.json",
        "trajectory.cont-2.json",
    ]
    assert run.summary.duration_ms == 30_000


@with_case(["continued"])
def test_copied_context_counts_once(case: Path) -> None:
    folder = case / "ferry"
    run = read(folder / "trajectory.json")
    sums = [raw_usage(path) for path in folder.iterdir()]
    assert counts(run.summary.usage)[:3] == tuple(sum(column) for column in zip(*sums, strict=True))[:3]
    assert (run.summary.llm_calls, run.summary.tool_calls) == (3, 1)
    copies = [span for span in run.spans if span.parent_id == "cont-1/copied"]
    assert [(copy.operation, copy.note, copy.usage) for copy in copies] == [(Operation.MESSAGE, "copied", None)] * 2
    assert [total.name for total in run.body.totals if total.differs] == ["cont-2 total_prompt_tokens"]


@with_case(["agents"])
def test_sub_agents_are_below_the_calls_that_started_them(case: Path) -> None:
    files = listed(case)
    assert sorted(name for name, file in files.items() if file.part_of) == [
        "trajectory.summarization-1-summary.json",
        "trajectory.wasp.json",
    ]
    run = read(case / "trajectory.json")
    above = {span.name: span.parent_id for span in run.spans if span.operation is Operation.INVOKE_AGENT}
    assert above == {"bee": "2.1", "larva": "agent-1/2.1", "wasp": "2.2", "summary": "3", "drone": None}
    assert run.summary.steps == 4
    assert {span.step for span in run.spans if span.id.startswith("agent-")} == {None}
    assert ["trajectory.lost.json" in problem.reason for problem in run.problems] == [True]
    assert counts(run.summary.usage)[:3] == (357, 29, 140)
    assert run.load(span(run, "wasp")).attributes["file"] == "trajectory.wasp.json"
    assert run.load(span(run, "bee")).attributes["agent"]["name"] == "bee"


def test_a_reference_to_nothing_is_reported(tmp_path: Path) -> None:
    refs = [{"trajectory_id": "nobody"}, {"session_id": "twins"}]
    step = {"source": "system", "message": "", "observation": {"results": [{"subagent_trajectory_ref": refs}]}}
    subagents = [trajectory({"source": "agent", "message": "I"}, session_id="twins") for _ in range(2)]
    write(tmp_path / "t.json", trajectory(step, subagent_trajectories=subagents))
    run = read(tmp_path / "t.json")
    assert [problem.reason for problem in run.problems] == ["there is no trajectory 'nobody' within it"]
    agents = [span for span in run.spans if span.operation is Operation.INVOKE_AGENT]
    assert [(agent.parent_id, agent.note) for agent in agents] == [(None, "no call refers to it")] * 2
    assert run.load(run.spans[0]).attributes["observation"]["results"][0]["subagent_trajectory_ref"] == refs


@with_case(["agents"])
def test_a_file_that_somebody_names_is_nobodys_part(case: Path) -> None:
    path = str(case / "trajectory.wasp.json")
    (file,) = scan(SOURCE, [path], deep=True, only=FORMAT)
    assert [run.id for run in file.runs] == ["wasp-s"]


def test_files_that_refer_to_each_other_are_all_listed(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        write(tmp_path / f"{name}.json", trajectory(continued_trajectory_ref=f"{other}.json"))
    files = listed(tmp_path)
    assert sorted(name for name, file in files.items() if not file.part_of) == [
        "a.json",
        "b.json",
        "c.json",
        "d.json",
    ]
    assert len([span for span in read(tmp_path / "a.json").spans if span.name == "continuation"]) == 2


def test_a_path_in_a_reference_leads_nowhere_else(tmp_path: Path) -> None:
    inner = tmp_path / "in"
    inner.mkdir()
    write(tmp_path / "secret.json", trajectory({"source": "agent", "message": "secret"}))
    (inner / "link.json").symlink_to(tmp_path / "secret.json")
    os.mkfifo(inner / "pipe.json")
    for ref in ("../secret.json", str(tmp_path / "secret.json"), "link.json", "pipe.json", "..", "/", "\0", "C:\\x"):
        write(inner / "t.json", trajectory(continued_trajectory_ref=ref))
        run = read(inner / "t.json")
        assert not run.spans
        assert ["is missing" in problem.reason for problem in run.problems] == [True], ref


def test_a_part_in_a_folder_below_is_found_from_both_sides(tmp_path: Path) -> None:
    (tmp_path / "subagents").mkdir()
    refs = [{"trajectory_path": "subagents/one.json"}]
    results = [{"source_call_id": "c", "content": "x", "subagent_trajectory_ref": refs}]
    call = {"tool_call_id": "c", "function_name": "spawn", "arguments": {}}
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": [call], "observation": {"results": results}}
    write(tmp_path / "main.json", trajectory(step))
    write(tmp_path / "subagents" / "one.json", trajectory({"step_id": 1, "source": "agent", "message": "here"}))
    assert listed(tmp_path)["one.json"].part_of == str(tmp_path / "main.json")
    assert span(read(tmp_path / "main.json"), "agent-1/1").preview == "here"


# ------------------------------------------------------------------------------------------------- growth and damage


@with_case(["continued"])
def test_a_part_that_comes_or_changes_is_read(case: Path) -> None:
    folder = case / "ferry"
    later = (folder / "trajectory.cont-1.json").read_bytes()
    (folder / "trajectory.cont-1.json").unlink()
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(folder / "trajectory.json")))
    follower.read()
    follower.check("without what follows")
    for size in (len(later) // 2, len(later)):
        part = folder / "trajectory.cont-1.json.new"
        part.write_bytes(later[:size])
        part.rename(folder / "trajectory.cont-1.json")
        follower.read()
        follower.check(f"with {size} bytes of what follows")
    before = follower.given
    follower.read()
    assert follower.given == before
    (folder / "trajectory.cont-2.json").unlink()
    follower.read()
    follower.check("without the last file")


@with_case(["continued"])
def test_a_run_is_running_while_one_of_its_files_changes(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, part = (case / "ferry" / name for name in ("trajectory.json", "trajectory.cont-1.json"))
    for file in path.parent.iterdir():
        os.utime(file, (1_600_000_000, 1_600_000_000))
    reader = Reader(SOURCE, RunRef(FORMAT.name, str(path)))
    reader.catch_up()
    assert reader.build().summary.status is Status.OK
    os.utime(part)
    assert reader.read()
    assert reader.build().summary.status is Status.RUNNING
    monkeypatch.setattr("tracetui.sources.local.MOVING_SECONDS", -1.0)
    assert reader.read()
    assert reader.build().summary.status is Status.OK
    assert not reader.read()


def test_a_large_trajectory_is_known_by_its_head(tmp_path: Path) -> None:
    steps = [{"step_id": n, "source": "agent", "message": "x" * 500} for n in range(1, 400)]
    document = trajectory(*steps)
    for keys in (list(document), list(reversed(document))):
        write(tmp_path / "t.json", {key: document[key] for key in keys})
        with SOURCE.open(str(tmp_path / "t.json")) as file:
            assert FORMAT.sniff(file) >= 60
            chosen = registry.detect(file)
        assert chosen is not None
        assert chosen.name == "atif"


@pytest.mark.parametrize("data", [b"{}", b'{"steps": []}', b'{"schema_version": "1"}', b"[]", b"\xff", b""])
def test_other_json_is_not_claimed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t.json").write_bytes(data)
    with SOURCE.open(str(tmp_path / "t.json")) as file:
        assert FORMAT.sniff(file) == 0


def test_trajectories_within_trajectories_end_somewhere(tmp_path: Path) -> None:
    document = trajectory({"source": "agent", "message": "the last"})
    for _ in range(60):
        document = trajectory({"source": "agent", "message": "above"}, subagent_trajectories=[document])
    write(tmp_path / "t.json", document)
    run = read(tmp_path / "t.json")
    assert 10 < len([span for span in run.spans if span.operation is Operation.INVOKE_AGENT]) < 40
    assert [problem.where for problem in run.problems] == ["subagent_trajectories"]
    for span in run.spans:
        run.load(span)


_CASES = sorted(CASES.rglob("input/**/*.json"))
_RESULTS = ({"error": "boom"}, {"exit_code": 2}, {"is_error": True}, [{"type": "text", "text": "said"}])


def change(value: Any, chance: random.Random) -> None:
    """Give some place in a document another value, or none."""
    place, key = somewhere(value, chance)
    kind = chance.random()
    if kind < 0.6:
        place[key] = copy.deepcopy(chance.choice((*VALUES, *_RESULTS)))
    elif kind < 0.8:
        if not isinstance(place, dict) or key in place:
            del place[key]
    else:
        other, name = somewhere(value, chance)
        place[key] = copy.deepcopy(other[name])


@pytest.mark.parametrize("path", _CASES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_a_changed_trajectory_reads_the_same_where_it_must_be_read_leniently(path: Path, tmp_path: Path) -> None:
    chance = random.Random(path.name)
    changed = tmp_path / "trajectory.json"
    for _ in range(40):
        document = loaded(path)
        for _ in range(chance.choice((0, 1, 1, 2, 4))):
            change(document, chance)
        if not isinstance(document, dict):
            continue
        runs = []
        for notes in ("x", math.nan):
            write(changed, document | {"notes": notes})
            run = read(changed)
            summary = run.summary.replace(modified_at=0.0, size=None, problems=0, unread=None)
            runs.append((summary, [replace(span, at=None) for span in run.spans], run.body.totals))
        assert runs[0] == runs[1]


# -------------------------------------------------------------------------------------------------------- real files


def samples() -> list[Path]:
    return sorted(sample("atif").rglob("trajectory.json")) if SHARED is not None else []


@needs_shared
@pytest.mark.parametrize("path", samples(), ids=lambda path: path.parent.name)
def test_real_trajectories_add_up(path: Path) -> None:
    run = read(path)
    assert not run.problems
    assert [total for total in run.body.totals if total.differs] == []
    if path.parent.name != "multi-agent":  # there the sub-agent counts besides
        check_sums(path)


@needs_shared
def test_a_real_sub_agent_is_below_its_call() -> None:
    run = read(sample("atif", "multi-agent", "trajectory.json"))
    assert span(run, "counter").parent_id == span(run, "spawn").id
    assert run.summary.usage is not None
    assert (run.summary.steps, run.summary.usage.input_tokens) == (5, 1450)


@needs_shared
def test_a_real_rerun_differs_where_its_second_call_does() -> None:
    original, other = (read(sample("atif", name, "trajectory.json")) for name in ("trial-a__orig", "trial-b__rerun"))
    first = compare(original, other).first
    assert first is not None
    assert (first.path, first.a, first.b) == ("command", "cat missing-file.txt", "wc -l notes.txt")


@needs_shared
def test_atif_claims_no_real_file_of_another_format() -> None:
    for path in sorted(path for path in sample().rglob("*") if path.is_file()):
        mixed = {sample("atif"), sample("cases"), sample("terminal-bench")}  # with trajectories of its own
        if mixed & {*path.parents} or path.suffix == ".md":
            continue
        with SOURCE.open(str(path)) as file:
            assert FORMAT.sniff(file) == 0, path

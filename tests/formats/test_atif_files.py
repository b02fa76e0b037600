"""Trajectories in several files and folders: found from every side, listed once, searched whole, and counted once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_atif import listed, read, trajectory, write
from tracetui.analysis.search import Hit, Needle
from tracetui.live.scan import scan
from tracetui.live.search import Outcome, grep
from tracetui.sources.local import LocalSource

BURIED = "Rockall"


def step(message: str, **fields: Any) -> dict[str, Any]:
    return {"step_id": 1, "source": "agent", "message": message} | fields


def spawning(ref: dict[str, Any]) -> dict[str, Any]:
    call = {"tool_call_id": "c", "function_name": "spawn", "arguments": {}}
    results = [{"source_call_id": "c", "content": "x", "subagent_trajectory_ref": [ref]}]
    return step("", tool_calls=[call], observation={"results": results})


def put(folder: Path, files: dict[str, Any]) -> None:
    for path, document in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write(folder / path, document)


def hits(folder: Path) -> list[str]:
    """Where the needle is: paths from the folder, and spans."""
    hits = [hit for hit in grep(LocalSource(), [str(folder)], Needle(BURIED)) if isinstance(hit, Hit)]
    return [f"{Path(hit.ref.path).relative_to(folder)} {hit.span}" for hit in hits]


def test_a_chain_through_folders_is_one_run(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "trajectory.json": trajectory(step("1"), continued_trajectory_ref="b/trajectory.json"),
            "b/trajectory.json": trajectory(step("2"), continued_trajectory_ref="c/trajectory.json"),
            "b/c/trajectory.json": trajectory(step("3"), continued_trajectory_ref="d/last.json"),
            "b/c/d/last.json": trajectory(step(BURIED)),
        },
    )
    names = ("b/trajectory.json", "b/c/trajectory.json", "b/c/d/last.json")
    assert parts_of(tmp_path) == dict.fromkeys(names, str(tmp_path / "trajectory.json"))
    run = read(tmp_path / "trajectory.json")
    assert [span.preview for span in run.spans if span.is_step] == ["1", "2", "3", BURIED]
    assert not run.problems
    assert hits(tmp_path) == ["trajectory.json cont-3/1"]


def parts_of(folder: Path) -> dict[str, str]:
    """Files that are part of another one's run, with that."""
    files = scan(LocalSource(), [str(folder)], deep=True)
    return {str(Path(file.path).relative_to(folder)): file.part_of for file in files if file.part_of}


@pytest.mark.parametrize(
    "ref",
    [
        "/logs/agent/subs/bee.json",
        "C:\\logs\\agent\\subs\\bee.json",
        "s3://bucket/agent/subs/bee.json",
        "../../elsewhere/subs/bee.json",
        "./subs/bee.json",
    ],
)
def test_a_path_of_elsewhere_is_resolved_by_its_end(tmp_path: Path, ref: str) -> None:
    put(
        tmp_path,
        {
            "agent/trajectory.json": trajectory(spawning({"trajectory_id": "bee", "trajectory_path": ref})),
            "agent/subs/bee.json": trajectory(step(BURIED), trajectory_id="bee"),
        },
    )
    assert listed(tmp_path)["bee.json"].part_of == str(tmp_path / "agent" / "trajectory.json")
    assert not read(tmp_path / "agent" / "trajectory.json").problems
    assert hits(tmp_path) == ["agent/trajectory.json agent-1/1"]


@pytest.mark.parametrize("ref", ["../../two/agent/trajectory.json", "trajectory.json", "./trajectory.json"])
def test_a_trajectory_does_not_continue_in_itself(tmp_path: Path, ref: str) -> None:
    put(
        tmp_path,
        {
            "one/agent/trajectory.json": trajectory(step("1"), continued_trajectory_ref=ref),
            "two/agent/trajectory.json": trajectory(step("2")),
        },
    )
    run = read(tmp_path / "one" / "agent" / "trajectory.json")
    assert ["is missing" in problem.reason for problem in run.problems] == [True]
    assert [span.preview for span in run.spans] == ["1"]


def test_a_part_that_comes_before_its_main_file_is_searched_once(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.cont-1.json": trajectory(step(f"{BURIED} again")),
            "a.json": trajectory(step(BURIED), continued_trajectory_ref="a.cont-1.json"),
        },
    )
    assert hits(tmp_path) == ["a.json 1", "a.json cont-1/1"]
    items = [*grep(LocalSource(), [str(tmp_path)], Needle(BURIED))]
    assert [item for item in items if isinstance(item, Outcome)] == [Outcome.SEARCHED] * 2


@pytest.mark.parametrize(
    ("declared", "steps", "counts"),
    [
        pytest.param(250, 3, 250, id="of all files so far"),
        pytest.param(150, 1, 250, id="of its own"),
        pytest.param(150, None, 250, id="not said of what"),
    ],
)
def test_totals_of_a_later_file_count_once(tmp_path: Path, declared: int, steps: int | None, counts: int) -> None:
    first = {"total_prompt_tokens": 100, "total_cost_usd": 0.25, "total_steps": 2}
    later = {"total_prompt_tokens": declared, "total_cost_usd": declared / 400, "total_steps": steps}
    put(
        tmp_path,
        {
            "a.json": trajectory(step("1"), step("2"), final_metrics=first, continued_trajectory_ref="b.json"),
            "b.json": trajectory(step("3"), final_metrics=later),
        },
    )
    usage = read(tmp_path / "a.json").summary.usage
    assert usage is not None
    assert usage.input_tokens == counts
    assert usage.cost_usd == pytest.approx(counts / 400)


def test_extras_of_every_level_are_kept(tmp_path: Path) -> None:
    call = {"tool_call_id": "c", "function_name": "f", "arguments": {}, "extra": [["in a call"]]}
    result = {"source_call_id": "c", "content": None, "extra": {"exit_code": 0, "where": "in a result"}}
    record = step("m", extra="in a step", tool_calls=[call], metrics={"prompt_tokens": 5, "extra": {"k": "in metrics"}})
    record["observation"] = {"extra": "in an observation", "results": [result]}
    root = trajectory(record, extra=[1, {"k": "in the root"}], final_metrics={"extra": {"k": "in all metrics"}})
    root["agent"]["extra"] = "in the agent"
    put(tmp_path, {"t.json": root})
    run = read(tmp_path / "t.json")
    said = repr([run.body.attributes, *(run.load(span).attributes for span in run.spans)])
    for place in ("a call", "a result", "a step", "metrics", "an observation", "the root", "all metrics", "the agent"):
        assert f"in {place}" in said
    assert not run.problems

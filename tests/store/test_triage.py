"""The failures of a directory by cause."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.night import CAUSES, Night
from tests.shared import needs_shared, sample
from tracetui import demo
from tracetui.live.scan import scan
from tracetui.model import FirstError, Operation, RunRef, RunSummary, Status, Usage
from tracetui.sources.local import LocalSource
from tracetui.store.triage import Group, groups


def run(key: str, message: str | None = "boom", **more: Any) -> RunSummary:
    """A run that failed with that message, or one that did not (None)."""
    error = None if message is None else FirstError(message, "ValueError", "s", "search", Operation.EXECUTE_TOOL)
    status = Status.OK if message is None else Status.ERROR
    fields: dict[str, Any] = {"id": key, "name": "planner", "agent": "planner", "started_at": 5.0, **more}
    return RunSummary(ref=RunRef("any", "runs.db", key), status=status, first_error=error, **fields)


def listed(folder: Path) -> list[RunSummary]:
    """All runs below a folder, counted."""
    return [one for found in scan(LocalSource(), [str(folder)], deep=True) for one in found.runs]


def keys(group: Group) -> list[str | None]:
    """Which runs are in a group."""
    return [ref.key for ref in group.runs]


def test_runs_are_grouped_by_what_made_them_fail() -> None:
    first = run("1", "timed out after 30s", started_at=1.0, duration_ms=100.0, usage=Usage(2, 3))
    last = run("2", "timed out after 5ms", started_at=9.0, duration_ms=50.0)
    other, fine = run("3", "no such key", duration_ms=500.0, usage=None), run("4", None, duration_ms=9e9)
    biggest, group = groups([first, fine, other, last])

    assert keys(biggest) == ["3"]
    assert (biggest.wasted_ms, biggest.wasted_tokens) == (500.0, None)
    assert (keys(group), group.example.key, group.agents) == (["2", "1"], "2", ("planner",))
    assert (group.first_seen, group.last_seen, group.wasted_ms, group.wasted_tokens) == (1.0, 9.0, 150.0, 5)
    assert group.id.startswith("F-")


def test_a_run_that_is_told_twice_failed_once() -> None:
    told, copy = run("1", identity="i", duration_ms=100.0), run("2", identity="i", duration_ms=100.0)
    (group,) = groups([copy, told])
    assert (keys(group), group.wasted_ms) == (["1"], 100.0)
    assert groups([run("1", None, identity="i"), copy]) == []  # the telling that counts says that it went well


def test_what_no_run_says_is_not_known() -> None:
    (group,) = groups([run("1", started_at=None, agent=None)])

    assert (group.first_seen, group.last_seen, group.wasted_ms, group.wasted_tokens) == (None, None, None, None)
    assert group.agents == ()


def test_what_a_run_wasted_below_another_is_not_wasted_twice() -> None:
    batch = run("batch", "one", duration_ms=100.0, usage=Usage(total_tokens=50))
    same = run("batch/1", "one", parent="batch", duration_ms=30.0, usage=Usage(total_tokens=20))
    other = run("batch/2", "two", parent="batch", duration_ms=40.0)
    below = run("batch/2/a", "two", parent="batch/2", duration_ms=15.0)
    lost = run("lost", "three", parent="nobody", duration_ms=7.0)
    fine = run("batch/3", None, parent="batch", duration_ms=20.0)
    found = groups([below, batch, fine, same, other, lost])

    assert [(keys(group), group.wasted_ms, group.wasted_tokens) for group in found] == [
        (["batch", "batch/1"], 60.0, 50),
        (["batch/2", "batch/2/a"], 40.0, None),
        (["lost"], 7.0, None),
    ]


def test_what_a_run_wasted_below_one_that_went_well_is_not_wasted_twice() -> None:
    batch = run("batch", "one", duration_ms=100.0)
    fine = run("batch/1", None, parent="batch", duration_ms=40.0)
    below = run("batch/1/a", "two", parent="batch/1", duration_ms=15.0)
    found = groups([below, fine, batch])

    assert [(keys(group), group.wasted_ms) for group in found] == [(["batch"], 85.0), (["batch/1/a"], 15.0)]


def test_a_run_that_is_its_own_parent_wastes_what_it_took() -> None:
    (group,) = groups([run("a", parent="a", duration_ms=3.0)])

    assert group.wasted_ms == 3.0


messages = st.sampled_from(["one", "two 2", "two 3", "", "three 'x'", None])
runs = st.builds(
    lambda key, message, started, took, parent: run(
        str(key), message, started_at=started, duration_ms=took, parent=parent
    ),
    st.integers(0, 30),
    messages,
    st.none() | st.integers(0, 3).map(float),
    st.none() | st.floats(0, 1e9),
    st.none() | st.integers(0, 30).map(str),
)


@given(st.lists(runs, max_size=30, unique_by=lambda one: one.ref), st.randoms(use_true_random=False))
def test_the_order_in_which_runs_arrive_does_not_matter(given_runs: list[RunSummary], shuffled: random.Random) -> None:
    expected = groups(given_runs)
    shuffled.shuffle(given_runs)

    assert groups(given_runs) == expected
    assert sorted(ref for group in expected for ref in group.runs) == sorted(
        one.ref for one in given_runs if one.status is Status.ERROR
    )


def test_a_night_of_five_hundred_failures_has_its_twelve_causes(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.fill(500, 100)
    found = groups(listed(tmp_path))
    causes = [{night.causes[ref.path] for ref in group.runs} for group in found]

    assert sum(len(group.runs) for group in found) == 500
    assert sorted(cause for named in causes for cause in named) == sorted(CAUSES)
    assert all(len(named) == 1 for named in causes)
    assert len({group.id for group in found}) == len(found)
    wasted = [night.wasted_ms[cause] for (cause,) in causes]
    assert [group.wasted_ms for group in found] == pytest.approx(wasted)
    assert wasted == sorted(wasted, reverse=True)


@needs_shared
def test_the_causes_of_the_real_samples() -> None:
    found = {}
    for name in ("paprika", "ccpa", "hypergraph", "penelope", "latticeflow"):
        found[name] = {group.signature.title: len(group.runs) for group in groups(listed(sample(name)))}

    assert found == {
        "paprika": {
            "fail: tool exploded: connection reset": 2,
            "max_steps: Step limit exceeded: <n> > <n>": 2,
            "max_tokens: Token budget exceeded: <n> > <n>": 2,
        },
        "ccpa": {"max_tokens: session ended: max_tokens": 1, "wall_timeout: session ended: wall_timeout": 1},
        "hypergraph": {
            "RuntimeError in generate: [HG_NODE_FAILED]: Node <quoted> raised RuntimeError.": 16,
            "generate: <n> Gateway Timeout": 6,
            "rag: <n> Gateway Timeout": 1,
        },
        "penelope": {"goal not met: Politeness: Turn <n>": 1, "timeout: ended after <n> of <n> turns": 1},
        "latticeflow": {},
    }


def test_the_causes_of_the_built_in_samples(tmp_path: Path) -> None:
    demo.write(tmp_path, datetime(2026, 3, 2, 12, tzinfo=UTC))
    found = groups(listed(tmp_path))

    assert [(group.id, len(group.runs), group.signature.title) for group in found] == [
        ("F-4b94", 1, "timeout: ended after <n> of <n> turns"),
        ("F-2cfa", 3, "TimeoutError in search: search timed out after <time>"),
        ("F-d402", 2, "llm_call: <n> Gateway Timeout"),
        ("F-0a96", 2, "max_steps: Step limit exceeded: <n> > <n>"),
        ("F-44ff", 2, "RuntimeError in generate: [HG_NODE_FAILED]: Node <quoted> raised RuntimeError."),
        ("F-8938", 1, f"exit 101 in Bash: {PANIC}"),
        ("F-e5cb", 1, f"exit 101 in Bash: {PANIC}"),
        ("F-7576", 1, "max_tokens: Token budget exceeded: <n> > <n>"),
        ("F-3621", 1, "error: critic gave no verdict in <n> rounds"),
        ("F-1fc0", 1, "RuntimeError in generate: <n> Gateway Timeout"),
        ("F-53c4", 1, f"goal not met: {TURNS}"),
        ("F-65f9", 1, "goal not met: Says yes or no: No turn answers the question"),
        ("F-29cf", 1, "max_tokens: session ended: max_tokens"),
        ("F-4e0d", 1, "ConnectionError in export: warehouse refused the connection"),
        ("F-d738", 1, "max_repeat_hashes: Input hash <hex>... repeated <n> times (limit: <n>)"),
        ("F-a4e8", 1, "gpt-4o: Replay mismatch at step <n>: expected input_hash=<hex>, got input_hash=<hex>"),
    ]


PANIC = "running <n> tests test parse_empty ... FAILED thread <quoted> panicked at <path>:<n>:<n>"
TURNS = "States the deadline for an appeal: Turns <n> and <n> avoid the question, turn <n> failed"


def test_ten_thousand_runs_are_grouped_at_once() -> None:
    many = [
        run(str(i), f"call {2**40 * (i + 3):x} of job-{i} failed after {i}s" if i % 10 == 0 else None)
        for i in range(10_000)
    ]
    began = time.process_time()
    found = groups(many)

    assert [len(group.runs) for group in found] == [1_000]
    assert time.process_time() - began < 1  # measured: 0.02 s

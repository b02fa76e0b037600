"""Limits step by step, and where a run was doomed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.shared import needs_shared, sample
from tests.views.build import HOSTILE, make_run, make_span, runs
from tracetui import demo, load, load_all
from tracetui.analysis.assessment import Trajectory, assess, find_point_of_no_return, loops, trajectories
from tracetui.model import Body, Limit, Operation, Run, RunBody, Status, Usage
from tracetui.text import UNSAFE
from tracetui.views.detail.run import run_rows

TOOL, POLICY = Operation.EXECUTE_TOOL, Operation.POLICY


def limited(limit: Limit, number: int = 5, *, policy: bool = False, end: Status = Status.OK) -> Run:
    """A failed run of equal steps, each 2 s and 10 tokens, that ended as said."""
    spans = [
        make_span(str(i), "search", TOOL, i * 2, 2000, step=i, usage=Usage(total_tokens=10), preview=f"q{i // 3}",
                  status=end if i == number - 1 else Status.OK)
        for i in range(number)
    ]  # fmt: skip
    if policy:
        spans.append(make_span("p", limit.name, POLICY, status=Status.ERROR))
    return make_run(spans, status=Status.ERROR, body=RunBody(limits=(limit,)))


def course(run: Run) -> Trajectory:
    (only,) = trajectories(run)
    return only


def doom(run: Run) -> tuple[str, str] | None:
    point = find_point_of_no_return(run, loops(run, lambda span: Body(input=span.preview)))
    return None if point is None else (point.span, point.reason)


@pytest.mark.parametrize(
    ("limit", "measure", "values", "crossed"),
    [
        (Limit("max_steps", 3), "steps", [1, 2, 3, 4, 5], 3),
        (Limit("max_steps", 5), "steps", [1, 2, 3, 4, 5], None),
        (Limit("max_tokens", 25), "tokens", [10, 20, 30, 40, 50], 2),
        (Limit("max_repeat_hashes", 2), "repeats", [1, 2, 3], 2),
        (Limit("timeout_seconds", 5), "time", [2, 4, 6, 8, 10], 2),
        (Limit("maxDurationMs", 5000), "time", [2000, 4000, 6000, 8000, 10_000], 2),
        (Limit("max_minutes", 0.2), "time", [2 / 60, 4 / 60, 6 / 60, 8 / 60, 10 / 60], None),
        (Limit("max_cost_usd", 5), None, [], None),
        (Limit("max_steps"), "steps", [1, 2, 3, 4, 5], None),
        (Limit("\x1b]0;x", 5), None, [], None),
    ],
)
def test_a_limit_counts_what_its_name_says(
    limit: Limit, measure: str | None, values: list[float], crossed: int | None
) -> None:
    trajectory = course(limited(limit))
    assert trajectory.measure == measure
    assert list(trajectory.values) == pytest.approx(values)
    assert len(trajectory.positions) == len(values)
    assert trajectory.crossed == crossed


def test_a_step_that_was_refused_is_where_the_policy_says_so() -> None:
    violated = Limit("max_steps", 5, 6, violated=True)
    assert course(limited(violated, policy=True)).crossed == 5
    assert course(limited(violated)).crossed is None
    assert course(limited(Limit("max_steps", 5), policy=True)).crossed is None


def test_how_far_it_came_is_what_the_trace_says_else_what_was_counted() -> None:
    assert course(limited(Limit("max_steps", 5, 9))).reached == 9
    assert course(limited(Limit("max_steps", 5))).reached == 5
    assert course(limited(Limit("max_cost_usd", 5))).reached is None


def test_hashes_count_repetitions_where_there_are_some() -> None:
    spans = [make_span(str(i), "search", TOOL, preview="q", input_hash=str(i)) for i in range(4)]
    run = make_run(spans, body=RunBody(limits=(Limit("max_repeats", 2),)))
    assert list(course(run).values) == [1]


def test_a_run_was_doomed_by_the_loop_that_ran_into_the_limit() -> None:
    run = limited(Limit("max_steps", 5, 6, violated=True), policy=True)  # q0 q0 q0 q1 q1
    assert doom(run) == ("4", "same result 1 more time until max_steps 6 > 5")


def test_a_loop_that_the_run_left_did_not_doom_it() -> None:
    run = limited(Limit("max_steps", 4, 5, violated=True), 4, policy=True)  # q0 q0 q0 q1
    assert doom(run) == ("p", "exceeded max_steps 5 > 4")


def test_a_failure_at_the_end_doomed_it_where_no_limit_did() -> None:
    assert doom(limited(Limit("max_steps", 20), 4, end=Status.ERROR)) == ("3", "failed, and no step followed")
    assert doom(limited(Limit("max_steps", 20), 4)) is None
    looped = limited(Limit("max_steps", 20), 6)
    assert doom(looped) == ("4", "same result 2 more times to the end")


def test_a_run_that_did_not_fail_was_not_doomed() -> None:
    spans = [make_span(str(i), "search", TOOL, preview="q") for i in range(4)]
    assert doom(make_run(spans, status=Status.OK)) is None
    assert doom(make_run([], status=Status.ERROR)) is None


LIMITS = st.builds(
    Limit,
    st.sampled_from(["max_steps", "max_tokens", "max_repeats", "timeout", "timeout_ms"]) | HOSTILE,
    st.none() | st.floats(),
    st.none() | st.floats(),
    st.booleans(),
)


@given(runs(), st.lists(LIMITS, max_size=3))
def test_any_run_with_any_limits_has_a_course(run: Run, limits: list[Limit]) -> None:
    spans = list(run.spans)
    limited = make_run(spans, status=Status.ERROR, body=RunBody(limits=tuple(limits)))
    for trajectory in trajectories(limited):
        assert list(trajectory.values) == sorted(set(trajectory.values))
        assert list(trajectory.positions) == sorted(set(trajectory.positions))
        assert trajectory.crossed is None or 0 <= trajectory.crossed < len(spans)
    end = find_point_of_no_return(limited, loops(limited, lambda span: Body(input=span.name)))
    assert end is None or (end.span in limited.index and not UNSAFE.search(end.reason))


def named(run: Run) -> tuple[str, int] | None:
    end = find_point_of_no_return(run, loops(run, run.load))
    return None if end is None else (end.reason, run.index[end.span])


@needs_shared
@pytest.mark.parametrize("version", ["v0", "v1"])
def test_real_runs_that_a_policy_stopped(version: str) -> None:
    tokens = load(str(sample("paprika", version, "d65f3bf5-ce98-4e99-a48b-9e0a02a623f1.json")))
    steps = load(str(sample("paprika", version, "536d0a94-c641-4324-ad96-e580f431c0da.json")))

    assert list(course(tokens).values) == [150, 300, 450, 600]
    assert course(tokens).crossed == 3
    assert named(tokens) == ("same result 3 more times until max_tokens 600 > 500", 1)
    assert list(course(steps).values) == list(range(1, 12)), "the violation is a step of the format"
    assert named(steps) == ("exceeded max_steps 11 > 10", 10)


def test_the_samples_that_a_policy_stopped(tmp_path: Path) -> None:
    demo.write(tmp_path, datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    names = [named(run) for run in load_all(str(tmp_path)) if any(limit.violated for limit in run.body.limits)]

    assert sorted(filter(None, names)) == [
        ("exceeded max_steps 11 > 10", 10),
        ("exceeded max_steps 4 > 3", 3),
        ("exceeded max_tokens 13 394 > 12 000", 7),
        ("same result 3 more times until max_repeat_hashes 4 > 3", 2),
        ("same result 6 more times to the end", 5),
    ]


def test_assessment_of_an_earlier_state_stays_visible() -> None:
    first, second = Limit("max_steps", 3), Limit("max_tokens", 25)
    early, now = limited(first), limited(first)
    now = replace(now, body=RunBody(limits=(first, second)))
    rows = run_rows(now, width=80, assessment=assess(early, lambda span: Body()))
    lines = [rows.plain(i) for i in range(len(rows))]
    assert any("max_tokens" in line for line in lines)
    assert any("exceeded at" in line for line in lines)

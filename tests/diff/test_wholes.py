"""Two runs as wholes: goals and metrics, hashes of graphs, what it took, accumulated state."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.diff.build import Step, node, run_of
from tests.shared import needs_shared, sample
from tracetui import load, load_all
from tracetui.diff.comparison import compare, deltas, pair_judgments
from tracetui.diff.step import ended_before, state_after, state_diff
from tracetui.model import Body, Criterion, Metric, Operation, Run, RunBody, RunRef, RunSummary, Usage


def summary(**fields: Any) -> RunSummary:
    return RunSummary.of(ref=RunRef("any", "/a"), id="a", name="a", **fields)


def test_delta_is_unknown_unless_both_runs_record_it() -> None:
    little, much = Usage(total_tokens=10), Usage(input_tokens=20, output_tokens=5, cost_usd=0.5)

    difference = deltas(summary(usage=little, duration_ms=100.0), summary(usage=much, duration_ms=80.0))

    assert (difference.tokens, difference.duration_ms, difference.cost_usd) == (15, -20.0, None)
    assert deltas(summary(), summary(usage=much)).tokens is None


def test_criteria_and_metrics_are_paired_by_name() -> None:
    a = _with(
        run_of([]), criteria=(Criterion("polite", True), Criterion("short", False)), metrics=(Metric("goal", 1.0),)
    )
    b = _with(run_of([]), criteria=(Criterion("polite", False),), metrics=(Metric("goal", 1.0), Metric("new", 0.5)))

    pairs = pair_judgments(a, b)

    assert [(pair.name, pair.same) for pair in pairs] == [
        ("polite", False), ("short", False), ("goal", True), ("new", False),
    ]  # fmt: skip
    assert pairs[1].b is None


def test_a_changed_hash_of_the_graph_is_a_fact() -> None:
    a, b = (_with(run_of([]), attributes={"config": {"graph_struct_hash": letter * 8}}) for letter in "ab")

    assert [(fact.name, fact.a, fact.b) for fact in compare(a, b).facts if not fact.same] == [
        ("graph_struct_hash", "a" * 8, "b" * 8)
    ]


def _with(run: Run, **fields: Any) -> Run:
    return replace(run, body=RunBody(**fields))


def test_accumulated_state_is_compared_after_the_same_superstep() -> None:
    def graph(answer: str) -> Run:
        bodies = {"s0": Body(state={"docs": 3}), "s1": Body(state={"docs": 3, "answer": answer})}
        return run_of([node("retrieve"), node("generate")], bodies=bodies)

    a, b = graph("yes"), graph("no")

    assert [ended_before(a, number) for number in (1, 2, 3)] == [False, False, True]
    assert state_diff(a, b, 1).changes == ()
    (change,) = state_diff(a, b, 2).changes
    assert (change.path, change.a, change.b) == ("answer", "yes", "no")
    assert state_after(a, 0) is None
    assert state_after(a, 99) == {"docs": 3, "answer": "yes"}
    assert state_after(run_of([Step(Operation.CHAT)]), 1) is None


def test_inherited_state_is_part_of_the_state_of_a_fork() -> None:
    original = run_of([node("retrieve")], bodies={"s0": Body(state={"docs": 3, "answer": "no"})})
    fork = Body(state={"answer": "yes"}, attributes={"inherited_state": {"docs": 3, "answer": "no"}})

    (change,) = state_diff(original, run_of([node("generate")], bodies={"s0": fork}), 1).changes

    assert (change.path, change.a, change.b) == ("answer", "no", "yes")


@needs_shared
@pytest.mark.parametrize(("original", "replay"), [("rag-001", "rag-001-fork"), ("rag-fail-001", "rag-fail-001-r1")])
def test_a_real_fork_has_the_state_of_its_original(original: str, replay: str) -> None:
    runs = {run.summary.id: run for run in load_all(sample("hypergraph", "v6", "workflows.db"))}
    a, b = runs[original], runs[replay]

    supersteps = {step.number for run in (a, b) for step in run.steps if step.number is not None}
    removed = [change for at in supersteps for change in state_diff(a, b, at).changes if change.word == "removed"]

    assert removed == []


@needs_shared
def test_the_state_of_real_graphs() -> None:
    runs = {run.summary.id: run for run in load_all(sample("hypergraph", "v6", "workflows.db"))}

    diff = state_diff(runs["router-001"], runs["router-002"], 1)

    assert [change.path for change in diff.changes] == ["category", "_pick"]


@needs_shared
def test_goals_of_real_conversations() -> None:
    a, b = (load(sample("penelope", name, "test_result.json")) for name in ("success_3turns", "failure_toolerror"))

    diff = compare(a, b)

    assert [pair.name for pair in diff.judgments if not pair.same] == ["Politeness", "Goal Achievement"]
    assert diff.first is not None
    assert diff.span_b(diff.rows[diff.first.row]).name == "send_message_to_target"  # type: ignore[union-attr]

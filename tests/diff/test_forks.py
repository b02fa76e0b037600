"""Forks and retries: what they inherited is the original's, what they ran again stands beside what it was before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.diff.build import Step, node, run_of
from tests.formats.hypergraph_build import TO_V3, V2, at, database, insert
from tests.shared import needs_shared, sample
from tracetui import load_all
from tracetui.analysis.step_diff import step_sections
from tracetui.diff.comparison import Comparison, Diff, compare
from tracetui.model import Operation, Run

NodeOutput = tuple[int, str, Any]
"""Superstep, node, and what it put out: an exception if it failed, a text for the run that it started."""


class Graph:
    """A small database of runs of one graph."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._second = 0.0

    def runs(self, *stories: tuple[str, dict[str, Any], list[NodeOutput]]) -> dict[str, Run]:
        """All of them, read; a story is the id of a run, what else its row holds, and its steps."""
        with database(self.path, V2 + TO_V3, 3) as db:
            for run_id, more, steps in stories:
                insert(db, "runs", id=run_id, graph_name="g", status="completed", created_at=at(self._second), **more)
                for index, (superstep, node, output) in enumerate(steps):
                    self._second += 1
                    failed, child = isinstance(output, Exception), output if isinstance(output, str) else None
                    row = {"error": str(output), "status": "failed"} if failed else {"status": "completed"}
                    values = None if failed or child else json.dumps(output).encode()
                    insert(db, "steps", run_id=run_id, step_index=index, superstep=superstep, node_name=node,
                           node_type="GraphNode" if child else "FunctionNode", values_data=values, child_run_id=child,
                           input_versions={}, created_at=at(self._second), **row)  # fmt: skip
        return {run.summary.id: run for run in load_all(self.path)}


def rows(diff: Diff) -> list[tuple[str, str | None, str | None]]:
    """(Kind, step of A, step of B) of every row; a star marks what was inherited."""

    def name(run: Run, place: int | None) -> str | None:
        if place is None:
            return None
        span = run.spans[place]
        return f"{span.step} {span.name}{'*' if 'inherited' in span.note else ''}"

    return [(row.kind.value, name(diff.a, row.a), name(diff.b, row.b)) for row in diff.rows]


FORK: dict[str, Any] = {"forked_from": "a"}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph(tmp_path / "workflows.db")


def test_a_rerun_step_with_the_same_superstep_is_paired_with_the_original(graph: Graph) -> None:
    runs = graph.runs(
        ("a", {}, [(0, "get", {"x": 1}), (1, "make", {"y": 1})]),
        ("b", FORK, [(0, "get", {"x": 2}), (0, "make", {"y": 1}), (1, "make", {"y": 2})]),
    )
    diff = compare(runs["a"], runs["b"])

    assert diff.relation == "fork"
    assert rows(diff) == [
        ("output", "0 get", "0 get"),
        ("only_b", None, "0 make"),
        ("output", "1 make", "1 make"),
    ]
    assert "run again" in diff.by
    assert diff.first is not None
    assert (diff.first.row, diff.first.path) == (0, "x")


def test_reruns_with_continued_supersteps_are_paired_by_node(graph: Graph) -> None:
    runs = graph.runs(
        ("a", {}, [(0, "get", {"x": 1}), (1, "make", {"y": 1})]),
        ("b", FORK, [(2, "make", {"y": 2}), (3, "send", {"sent": True})]),
    )

    assert rows(compare(runs["a"], runs["b"])) == [
        ("same", "0 get", "0 get*"),
        ("output", "1 make", "2 make"),
        ("only_b", None, "3 send"),
    ]
    assert rows(compare(runs["b"], runs["a"])) == [
        ("same", "0 get*", "0 get"),
        ("output", "2 make", "1 make"),
        ("only_a", "3 send", None),
    ]


def test_a_retry_is_paired_with_the_failed_step_of_a_loop(graph: Graph) -> None:
    turns: list[NodeOutput] = [(0, "turn", {"n": 1}), (1, "turn", {"n": 2}), (2, "turn", ValueError("no"))]
    runs = graph.runs(("a", {}, turns), ("b", FORK | {"retry_of": "a"}, [(3, "turn", {"n": 3}), (4, "turn", {"n": 4})]))
    diff = compare(runs["a"], runs["b"])

    assert rows(diff) == [
        ("same", "0 turn", "0 turn*"),
        ("same", "1 turn", "1 turn*"),
        ("output", "2 turn", "3 turn"),
        ("only_b", None, "4 turn"),
    ]


def test_the_next_iteration_of_a_loop_is_no_rerun(graph: Graph) -> None:
    runs = graph.runs(("a", {}, [(0, "turn", {"n": 1}), (1, "turn", {"n": 2})]), ("b", FORK, [(2, "turn", {"n": 3})]))

    assert [row[0] for row in rows(compare(runs["a"], runs["b"]))] == ["same", "same", "only_b"]


def test_steps_inside_a_rerun_node_are_paired(graph: Graph) -> None:
    runs = graph.runs(
        ("a", {}, [(0, "plan", {"p": 1}), (1, "rag", "a/rag")]),
        ("a/rag", {"parent_run_id": "a"}, [(0, "get", {"x": 1}), (1, "get", {"x": 2}), (2, "say", {"y": 1})]),
        ("b", FORK, [(2, "rag", "b/rag")]),
        ("b/rag", {"parent_run_id": "b"}, [(0, "get", {"x": 1}), (1, "get", {"x": 3}), (2, "say", {"y": 1})]),
    )

    assert rows(compare(runs["a"], runs["b"])) == [
        ("same", "0 plan", "0 plan*"),
        ("same", "1 rag", "2 rag"),
        ("same", "0 get", "0 get"),
        ("output", "1 get", "1 get"),
        ("same", "2 say", "2 say"),
    ]


def test_two_forks_of_one_run_share_what_both_inherited(graph: Graph) -> None:
    runs = graph.runs(
        ("a", {}, [(0, "get", {"x": 1}), (1, "make", {"y": 1})]),
        ("b", FORK, [(2, "make", {"y": 2})]),
        ("c", FORK, [(2, "make", {"y": 3})]),
    )

    assert rows(compare(runs["b"], runs["c"])) == [
        ("same", "0 get*", "0 get*"),
        ("same", "1 make*", "1 make*"),
        ("output", "2 make", "2 make"),
    ]


def test_an_extra_attempt_is_not_the_cause_of_a_different_output() -> None:
    attempt = Step(Operation.OTHER, "attempt 1", depth=1)
    inputs = {"prompt": "x"}
    a = run_of([node("generate", None)._replace(failed=True), attempt])
    b = run_of([node("generate", inputs, {"answer": "42"})], ident="b")
    comparison = Comparison(a, b)
    *_, diff = comparison.steps()

    assert diff.first is not None
    assert (diff.first.row, diff.first.kind.value) == (0, "output")
    assert [(row.kind.value, row.downstream) for row in diff.rows] == [("output", False), ("only_a", True)]
    sections = step_sections(a.load(a.spans[0]), b.load(b.spans[0]), comparison.changes(diff.rows[0]))
    assert [(section.side, section.differs, section.note) for section in sections[:2]] == [
        ("input", False, "not recorded in A"),
        ("output", True, ""),
    ]


REAL: dict[str, dict[str, tuple[str | None, str | None, list[tuple[int | None, int | None]]]]] = {
    "v3": {
        "rag-001-fork": ("output", "docs[0].title", [(0, 0), (None, 0), (1, 1), (2, 2)]),
        "rag-fail-001-r1": ("output", "docs[0].title", [(0, 0), (1, 0), (2, 0)]),
    },
    "v6": {
        "rag-001-fork": ("input", "query", [(0, 3), (1, 4), (2, 5)]),
        "rag-fail-001-r1": ("input", "query", [(0, 3), (1, 4), (2, 5)]),
        "run-20261120-cb5801": (None, None, [(0, 0), (1, 1), (2, 3)]),
        "rag-001-fork-ee8223": (None, None, [(0, 0), (1, 1), (2, 2)]),
        "router-001-ck": (None, None, [(0, 0), (1, 1), (2, 2), (3, 3)]),
    },
}
"""By schema and fork: how and where it first differs, and the supersteps that stand beside each other."""


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize(("version", "fork"), [(version, fork) for version, forks in REAL.items() for fork in forks])
def test_real_forks_are_paired_with_their_originals(version: str, fork: str) -> None:
    runs = {run.summary.id: run for run in load_all(sample("hypergraph", version, "workflows.db"))}
    b = runs[fork]
    diff = compare(runs[b.summary.replay_of or ""], b)
    first = diff.first
    steps = [tuple(span and span.step for span in (diff.span_a(row), diff.span_b(row))) for row in diff.rows]

    assert (first and first.kind.value, first and first.path, steps) == REAL[version][fork]

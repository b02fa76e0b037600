"""Real pairs: what upstream's own differ says of them, and what a replay's own error says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared import SHARED, needs_shared, sample
from tracetui import load, load_all
from tracetui.diff.comparison import Diff, compare
from tracetui.model import Run

pytestmark = [needs_shared, pytest.mark.shared]

TEACHER, STUDENT = "teacher.ccpa-trace.jsonl", "student.ccpa-trace.jsonl"
CANONICAL = sorted(path.name for path in sample("ccpa", "canonical").iterdir()) if SHARED is not None else []

EXPECTED = {
    "0001-bash-different-cmd": ("MismatchedToolInput", "Bash", "command"),
    "0002-missing-edit": ("MissingToolCall", "Edit", ""),
    "0003-extra-tool": ("ExtraToolCall", "Read", ""),
    "0004-mismatched-tool-name": ("MismatchedToolName", "Read", "name"),
    "0005-missing-hook-event": ("MissingHookEvent", "PreToolUse", ""),
}
"""Category, the action that it is found at, and the path of the first value."""


def pair(folder: Path) -> Diff:
    return compare(load(folder / TEACHER), load(folder / STUDENT))


def category(diff: Diff) -> tuple[str, str, str]:
    """What upstream calls the first divergence."""
    assert diff.first is not None
    row = diff.rows[diff.first.row]
    span = diff.span_a(row) or diff.span_b(row)
    assert span is not None
    what = {"execute_tool": "ToolCall", "hook": "HookEvent", "other": "SkillInvocation"}[span.operation.value]
    word = {"only_a": "Missing", "only_b": "Extra", "input": "Mismatched"}[row.kind.value]
    if word == "Mismatched":
        what = "ToolName" if diff.first.path == "name" else "ToolInput"
    return word + what, span.name, diff.first.path


@pytest.mark.parametrize("name", EXPECTED)
def test_a_regression_pair_names_its_category_at_its_action(name: str) -> None:
    diff = pair(sample("ccpa", "regression", name))

    assert category(diff) == EXPECTED[name]
    assert sum(row.kind.value != "same" for row in diff.rows) == 1


def test_the_expected_categories_are_those_of_the_table() -> None:
    table = sample("ccpa", "regression", "EXPECTED.tsv").read_text().split("\n")[1:]

    assert {line.split("\t")[0]: line.split("\t")[2] for line in table if line} == {
        name: expected[0] for name, expected in EXPECTED.items()
    }


@pytest.mark.parametrize("name", CANONICAL)
def test_pairs_that_upstream_calls_equal_are_equal(name: str) -> None:
    diff = pair(sample("ccpa", "canonical", name))

    assert diff.relation == "student"
    assert diff.same
    assert diff.ignored["model turns left out"] > 0


def test_strict_shows_the_wordings_of_both() -> None:
    folder = sample("ccpa", "canonical", "0003-create-new-file")
    diff = compare(load(folder / TEACHER), load(folder / STUDENT), strict=True)

    assert not diff.same
    assert diff.ignored == {}


@pytest.mark.parametrize("dialects", [("v0", "v0"), ("v1", "v1"), ("v0", "v1"), ("v1", "v0")])
def test_an_exact_replay_is_identical_although_times_and_tokens_differ(dialects: tuple[str, str]) -> None:
    original = load(sample("paprika", dialects[0], "7e776ecf-1480-44b5-9832-18f4b17715dc.json"))
    replay = load(sample("paprika", dialects[1], "43d11309-dd62-4835-bdb5-7c8417f58d4c.json"))

    diff = compare(original, replay)

    assert diff.relation == "replay"
    assert diff.same
    assert {"durations", "times", "token counts"} <= set(diff.ignored)
    assert diff.deltas.tokens == -292


# ---- graphs


def graphs() -> dict[str, Run]:
    return {run.summary.id: run for run in load_all(sample("hypergraph", "v6", "workflows.db"))}


def test_a_changed_decision_is_named_and_its_effects_are_downstream() -> None:
    runs = graphs()
    diff = compare(runs["router-001"], runs["router-002"])

    assert diff.by == "superstep and node"
    assert diff.first is not None
    assert (diff.first.path, diff.first.b) == ("query", "hello")
    assert diff.decision is not None
    assert (diff.decision.path, diff.decision.a, diff.decision.b) == (
        "decision", "account_support", "general_support",
    )  # fmt: skip
    assert [row.downstream for row in diff.rows] == [False, True, True, True, True]
    assert diff.independent == ()


def test_a_fork_shares_inherited_steps_and_continues() -> None:
    runs = graphs()
    diff = compare(runs["router-001"], runs["router-001-ck"])

    assert diff.relation == "fork"
    assert diff.same

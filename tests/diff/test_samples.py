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


def category(found: Diff) -> tuple[str, str, str]:
    """What upstream calls the first divergence."""
    assert found.first is not None
    row = found.rows[found.first.row]
    span = found.span_a(row) or found.span_b(row)
    assert span is not None
    what = {"execute_tool": "ToolCall", "hook": "HookEvent", "other": "SkillInvocation"}[span.operation.value]
    word = {"only_a": "Missing", "only_b": "Extra", "input": "Mismatched"}[row.kind.value]
    if word == "Mismatched":
        what = "ToolName" if found.first.path == "name" else "ToolInput"
    return word + what, span.name, found.first.path


@pytest.mark.parametrize("name", EXPECTED)
def test_a_regression_pair_names_its_category_at_its_action(name: str) -> None:
    found = pair(sample("ccpa", "regression", name))

    assert category(found) == EXPECTED[name]
    assert sum(row.kind.value != "same" for row in found.rows) == 1


def test_the_expected_categories_are_those_of_the_table() -> None:
    table = sample("ccpa", "regression", "EXPECTED.tsv").read_text().split("\n")[1:]

    assert {line.split("\t")[0]: line.split("\t")[2] for line in table if line} == {
        name: expected[0] for name, expected in EXPECTED.items()
    }


@pytest.mark.parametrize("name", CANONICAL)
def test_pairs_that_upstream_calls_equal_are_equal(name: str) -> None:
    found = pair(sample("ccpa", "canonical", name))

    assert found.relation == "student"
    assert found.same
    assert found.ignored["model turns left out"] > 0


def test_with_nothing_ignored_the_words_of_both_show() -> None:
    folder = sample("ccpa", "canonical", "0003-create-new-file")
    found = compare(load(folder / TEACHER), load(folder / STUDENT), strict=True)

    assert not found.same
    assert found.ignored == {}


@pytest.mark.parametrize("dialects", [("v0", "v0"), ("v1", "v1"), ("v0", "v1"), ("v1", "v0")])
def test_an_exact_replay_is_identical_although_times_and_tokens_differ(dialects: tuple[str, str]) -> None:
    original = load(sample("paprika", dialects[0], "7e776ecf-1480-44b5-9832-18f4b17715dc.json"))
    replay = load(sample("paprika", dialects[1], "43d11309-dd62-4835-bdb5-7c8417f58d4c.json"))

    found = compare(original, replay)

    assert found.relation == "replay"
    assert found.same
    assert {"durations", "times", "token counts"} <= set(found.ignored)
    assert found.deltas.tokens == -292


# ---- graphs


def graphs() -> dict[str, Run]:
    return {run.summary.id: run for run in load_all(sample("hypergraph", "v6", "workflows.db"))}


def test_a_changed_decision_is_named_and_what_it_led_to_follows_from_it() -> None:
    runs = graphs()
    found = compare(runs["router-001"], runs["router-002"])

    assert found.by == "superstep and node"
    assert found.first is not None
    assert (found.first.path, found.first.b) == ("query", "hello")
    assert found.decision is not None
    assert (found.decision.path, found.decision.a, found.decision.b) == (
        "decision", "account_support", "general_support",
    )  # fmt: skip
    assert [row.downstream for row in found.rows] == [False, True, True, True, True]
    assert found.independent == ()


def test_a_fork_shares_what_it_inherited_and_goes_on() -> None:
    runs = graphs()
    found = compare(runs["router-001"], runs["router-001-ck"])

    assert found.relation == "fork"
    assert found.same

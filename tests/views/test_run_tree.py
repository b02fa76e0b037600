"""The rows of a run tree: the sentence of a fork, folds, lanes and widths."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.build import calls, trial
from tracetui.analysis.run_tree import RunTree, fork_arguments, run_tree
from tracetui.views.glyphs import ASCII, UNICODE
from tracetui.views.rows import width_of
from tracetui.views.run_tree import (
    Kind,
    TreeRows,
    chance_text,
    fork_sentence,
    has_rates,
    p_text,
    tree_sentence,
    trials_sentence,
)


def tree_of(*runs: str, passed: Sequence[bool | None] = (), excluded: Sequence[int] = ()) -> RunTree:
    """A tree of runs, each a text with a letter per call."""
    built = [calls(f"run-{i}", [*steps]) for i, steps in enumerate(runs)]
    outcomes = [*passed, *[None] * len(runs)]
    trials = [trial(run, outcomes[i], "fork" if i in excluded else None) for i, run in enumerate(built)]
    return run_tree(trials, {run.summary.ref: run for run in built}.get)


def rows_of(tree: RunTree, **more: object) -> TreeRows:
    needed = [*map(tree.trials_to_decide, tree.forks)]
    return TreeRows(tree, fork_arguments(tree), needed, **more)  # type: ignore[arg-type]


def text(rows: TreeRows, index: int, width: int = 100) -> str:
    return "".join(piece.text for piece in rows.line(index, width))


def fork_text(tree: RunTree, fork: int, side: int, width: int = 120) -> str:
    line = fork_sentence(tree.forks[fork], side, width, rates=has_rates(tree))
    return "".join(piece.text for piece in line)


FOUR = ("abc", "abd", "abde", "ax")


def test_a_fork_compares_a_branch_with_the_others() -> None:
    tree = tree_of(*FOUR, passed=(True, False, False, True))
    assert fork_text(tree, 0, 0) == "3 of 4 here, 1 of 3 passed · elsewhere 1 of 1 passed · could be chance"
    assert fork_text(tree, 0, 1) == "1 of 4 here, 1 of 1 passed · elsewhere 1 of 3 passed · could be chance"
    assert fork_text(tree, 0, 0, width=60) == "3/4 here, 1/3 passed · elsewhere 1/1 · could be chance"


def test_a_branch_without_scored_trials_has_no_test() -> None:
    tree = tree_of(*FOUR, passed=(True, False, False, None))
    assert fork_text(tree, 0, 0).endswith("elsewhere none scored · no test: scored trials in one branch only")
    assert "no test" in text(rows_of(tree), 1, 120)


def test_without_outcomes_a_fork_has_runs_only() -> None:
    tree = tree_of(*FOUR)
    assert fork_text(tree, 0, 0) == "3 of 4 here"
    rows = rows_of(tree)
    assert not rows.has_rates
    assert "chance" not in "".join(text(rows, i) for i in range(len(rows)))
    assert ["passed" in "".join(piece.text for piece in line) for line in rows.headings(100)] == [False, False]


def test_one_scored_trial_gives_no_rates() -> None:
    assert not has_rates(tree_of(*FOUR, passed=(True, None, None, None)))
    assert not has_rates(tree_of(*FOUR, passed=(True, False, None, None), excluded=(1,)))


def test_a_decisive_fork_needs_no_more_trials() -> None:
    tree = tree_of(*["ab"] * 8, *["ac"] * 8, passed=[True] * 8 + [False] * 8)
    assert chance_text(tree.forks[0]) == "decisive (p < 0.001)"
    rows = rows_of(tree)
    assert "decisive at" not in text(rows, 1)
    assert (rows.mark(0), rows.mark(1)) == (None, "accent")
    assert rows.forks(decisive=True) == [1]
    assert "1 decisive" in "".join(piece.text for piece in tree_sentence(tree))


def test_a_fork_that_only_the_correction_makes_chance_shows_both_p() -> None:
    runs = [f"{'b' if i < 5 else 'c'}{'xy'[i % 2]}" for i in range(10)]
    tree = tree_of(*runs, passed=[i < 5 or i == 9 for i in range(10)])
    fork = tree.forks[0]
    assert fork.p is not None
    assert fork.adjusted_p is not None
    assert fork.p < 0.05 <= fork.adjusted_p
    assert fork_text(tree, 0, 0, width=160).endswith("(p = 0.14, p = 0.048 before correction for the number of forks)")
    assert fork_text(tree, 0, 0, width=100).endswith("could be chance (p = 0.14)")


def test_the_number_of_trials_that_would_decide_stays_in_narrow_rows() -> None:
    tree = tree_of(*FOUR, passed=(True, False, False, True))
    needed = tree.trials_to_decide(tree.forks[0])
    for width in (78, 118):
        assert f"decisive at {needed} trials" in text(rows_of(tree), 1, width)


def test_p_values_have_the_digits_that_matter() -> None:
    assert [*map(p_text, (1.0, 0.25, 0.049, 0.0041, 0.0004))] == [
        "p = 1.00",
        "p = 0.25",
        "p = 0.049",
        "p = 0.004",
        "p < 0.001",
    ]


# ---- rows


def test_stretches_are_folded_and_smaller_branches_come_first() -> None:
    rows = rows_of(tree_of("abcd", "abxyz", "abxyw", "abxyw"))
    nodes = [rows.node(i) for i in range(len(rows))]
    assert [(node.kind, node.step, len(node.branch.runs)) for node in nodes if node is not None] == [
        (Kind.BRANCH, 1, 4),
        (Kind.FORK, 3, 4),
        (Kind.BRANCH, 3, 1),
        (Kind.BRANCH, 3, 3),
        (Kind.FORK, 5, 3),
        (Kind.BRANCH, 5, 1),
        (Kind.BRANCH, 5, 2),
    ]
    assert "1–2" in text(rows, 0)
    assert "3–4" in text(rows, 2)


def test_a_run_that_ends_is_a_branch() -> None:
    rows = rows_of(tree_of("ab", "abc", "abd"))
    ends = [i for i in range(len(rows)) if rows.key(i)[0] is Kind.END]  # type: ignore[index]
    assert len(ends) == 1
    assert "run ends" in text(rows, ends[0])
    assert "1/3" in text(rows, ends[0])


def test_no_trial_makes_a_step() -> None:
    rows = rows_of(tree_of("", ""))
    assert len(rows) == 1
    assert "no steps" in text(rows, 0)


def test_folds_toggle_and_everything_folds() -> None:
    tree = tree_of("abcd", "abxyz", "abxyw")
    rows = rows_of(tree)
    first = rows.fold(0)
    assert first is not None
    assert not first.open
    unfolded = rows_of(tree, opened=frozenset({first.key}))
    assert len(unfolded) == len(rows) + 1
    assert unfolded.parent(1) == 0
    assert len(rows_of(tree, opened=rows.toggles(open_=True))) == tree.nodes + len(tree.forks)
    assert len(rows_of(tree, opened=rows.toggles(open_=False))) == 2


def test_parents_lead_from_a_step_to_the_root() -> None:
    rows = rows_of(tree_of("abcd", "abxyz", "abxyw"))
    at, seen = len(rows) - 1, 0
    while (above := rows.parent(at)) is not None:
        assert above < at
        at, seen = above, seen + 1
    assert (at, seen) == (0, 4)


def test_the_selected_run_is_bold_and_selects_its_side_of_the_fork() -> None:
    tree = tree_of(*FOUR, passed=(True, False, False, True))
    rows = rows_of(tree, selected=3)
    styles = {piece.style for piece in rows.line(2, 100) if piece.text.strip() == "search"}
    assert styles == {"text bold"}
    fork = rows.node(1)
    assert fork is not None
    assert fork_text(tree, 0, fork.side).startswith("1 of 4 here")
    assert "trial 4 of 4" in "".join(piece.text for piece in rows.headings(100)[0])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1, 2), ["1", "2"]),
        (({"from": "JFK", "day": 20}, {"from": "JFK", "day": 21}), ["q.day=20", "q.day=21"]),
        (({"from": "JFK"}, {"from": "JFK", "day": 21}), ["without q.day", "q.day=21"]),
        (("The ticket is basic economy, so no", "The ticket is basic economy, so yes"), ["…so no", "…so yes"]),
    ],
)
def test_branches_with_the_same_tool_show_the_argument_that_differs(
    arguments: Sequence[object], expected: list[str]
) -> None:
    runs = [calls(f"run-{i}", ["first", argument]) for i, argument in enumerate(arguments)]
    tree = run_tree([trial(run) for run in runs], {run.summary.ref: run for run in runs}.get)
    labels = {step.run: label for step, label in fork_arguments(tree).items()}
    assert [labels[0], labels[1]] == expected
    rows = rows_of(tree)
    drawn = text(rows, 2) + text(rows, 3)
    assert all(label in drawn for label in expected)


def test_branches_with_different_tools_show_their_own_arguments() -> None:
    runs = [calls("a", [1]), calls("b", [1], name="other")]
    tree = run_tree([trial(run) for run in runs], {run.summary.ref: run for run in runs}.get)
    assert not fork_arguments(tree)


def test_the_header_counts_trials_outside_the_rates() -> None:
    tree = tree_of(*FOUR, passed=(True, False, None, True), excluded=(3,))
    text = "".join(piece.text for piece in trials_sentence(tree, 2))
    assert text == "1 passed · 1 failed · 1 unscored · 1 inherited or copied · 2 not read"
    assert not trials_sentence(tree_of(*FOUR, passed=(True,)))


# ---- lanes and widths


RUNS = st.lists(st.text("abc", max_size=6), min_size=1, max_size=60)


@given(RUNS, st.sampled_from([40, 78, 118, 198]), st.data())
def test_rows_fit_any_width_and_lanes_are_as_wide_as_their_branch(
    runs: list[str], width: int, data: st.DataObject
) -> None:
    outcomes = [data.draw(st.sampled_from([True, False, None])) for _ in runs]
    tree = tree_of(*runs, passed=outcomes)
    glyphs = data.draw(st.sampled_from([UNICODE, ASCII]))
    rows = rows_of(tree, selected=data.draw(st.integers(0, len(runs) - 1)), glyphs=glyphs)
    assert sorted(rows.lanes.order) == [*range(len(runs))]
    lanes = rows.lanes.width(width)
    assert lanes <= max(8, width // 5)
    for line in rows.headings(width):
        assert width_of(line) <= width
    for i in range(len(rows)):
        node = rows.node(i)
        assert node is not None
        assert width_of(rows.line(i, width)) <= width
        here = sorted(rows.lanes.order.index(run) for run in node.branch.runs)
        assert here == [*range(here[0], here[-1] + 1)]
        assert width_of(tuple(rows.lanes.pieces(node.branch.runs, width, rows.selected))) == lanes
    keys = [rows.key(i) for i in range(len(rows))]
    assert [rows.index(key) for key in keys] == [*range(len(rows))]


@pytest.mark.parametrize("count", [2, 8, 9, 30, 200])
def test_the_width_of_a_branch_is_its_share_of_the_runs(count: int) -> None:
    rows = rows_of(tree_of(*["ab"] * count, *["ac"] * count))
    lanes = rows.lanes.width(78)
    widths = []
    for branch in rows.tree.root.children:
        pieces = rows.lanes.pieces(branch.runs, 78, None)
        widths.append(sum(width_of((piece,)) for piece in pieces if piece.style == "kind.agent"))
    assert abs(widths[0] - widths[1]) <= 1
    assert sum(widths) <= lanes + 1  # a lane of runs of both

"""The tree of runs against its definition, and the honesty of its forks."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.analysis.build import calls, trial
from tests.analysis.reference import ForkFacts, forks_of, nodes_of, tau_steps
from tests.diff.build import Step, chat, node, run_of
from tests.shared import SHARED, needs_shared, sample
from tracetui import load
from tracetui.analysis.contrast import Side
from tracetui.analysis.run_tree import RunTree, run_tree
from tracetui.analysis.tasks import Trial
from tracetui.model import Body, Message, Operation, Run, RunRef, Span, Text, ToolCall

LABELS = st.none() | st.booleans()
RUNS = st.lists(st.tuples(st.lists(st.sampled_from("abc"), max_size=6), LABELS), min_size=1, max_size=7)


def tree_of(runs: Sequence[Run], passed: Sequence[bool | None] = (), *, texts: bool = False) -> RunTree:
    by_ref: dict[RunRef, Run] = {run.summary.ref: run for run in runs}
    labels = passed or [None] * len(runs)
    trials = [trial(run, label) for run, label in zip(runs, labels, strict=True)]
    return run_tree(trials, by_ref.get, texts=texts)


def tree_of_calls(runs: Sequence[Sequence[str]], passed: Sequence[bool | None] = ()) -> RunTree:
    return tree_of([calls(f"r{i}", steps) for i, steps in enumerate(runs)], passed)


def facts(tree: RunTree) -> list[ForkFacts]:
    facts = [
        ForkFacts(fork.step, sorted((len(side.branch.runs), *side.scored) for side in fork.sides), fork.p)
        for fork in tree.forks
    ]
    return sorted(facts, key=repr)


def same_facts(facts: list[ForkFacts], expected: list[ForkFacts]) -> bool:
    return [fact[:2] for fact in facts] == [fact[:2] for fact in expected] and [fact.p for fact in facts] == [
        None if fact.p is None else pytest.approx(fact.p) for fact in expected
    ]


def shape(tree: RunTree) -> list[Any]:
    """The tree with runs by id, whatever their order."""
    return [
        (
            sorted(tree.runs[i].summary.id for i in branch.runs),
            [
                sorted((tree.runs[i].summary.id, position) for i, position in zip(branch.runs, step, strict=True))
                for step in branch.steps
            ],
            len(branch.children),
        )
        for branch in tree.branches()
    ]


@given(RUNS)
def test_nodes_and_forks_are_those_of_the_definition(runs: list[tuple[list[str], bool | None]]) -> None:
    steps, passed = [names for names, _ in runs], [label for _, label in runs]
    tree = tree_of_calls(steps, passed)
    assert tree.nodes == nodes_of(steps)
    assert same_facts(facts(tree), forks_of(steps, passed))


@given(RUNS, st.randoms(use_true_random=False))
def test_the_tree_of_permuted_runs_is_the_same(
    runs: list[tuple[list[str], bool | None]], chance: random.Random
) -> None:
    trial_runs = [(calls(f"r{i}", steps), passed) for i, (steps, passed) in enumerate(runs)]
    shuffled = trial_runs[:]
    chance.shuffle(shuffled)
    first, second = (tree_of([run for run, _ in some], [label for _, label in some]) for some in (trial_runs, shuffled))
    assert shape(first) == shape(second)
    assert [(fork.step, fork.p, fork.adjusted_p) for fork in first.forks] == [
        (fork.step, fork.p, fork.adjusted_p) for fork in second.forks
    ]


@given(RUNS)
def test_a_run_twice_adds_nothing(runs: list[tuple[list[str], bool | None]]) -> None:
    steps = [names for names, _ in runs]
    once, twice = tree_of_calls(steps), tree_of_calls([*steps, *steps])
    assert once.nodes == twice.nodes
    assert [fork.step for fork in once.forks] == [fork.step for fork in twice.forks]


@given(RUNS)
def test_every_path_spells_the_steps_of_its_run(runs: list[tuple[list[str], bool | None]]) -> None:
    tree = tree_of_calls([names for names, _ in runs])
    for i, (steps, _) in enumerate(runs):
        assert tree.steps(i) == [*range(len(steps))]
        assert [i in branch.runs for branch in tree.path(i)] == [True] * len(tree.path(i))


def parallel(ident: str, *answers: Sequence[Any]) -> Run:
    """A run of model answers, each of which calls tools: names, or (name, names called below it)."""
    steps: list[Step] = []
    for answer in answers:
        steps.append(Step(Operation.CHAT, "gpt"))
        for call in answer:
            name, below = call if isinstance(call, tuple) else (call, "")
            steps.append(Step(name=name, depth=1))
            steps += [Step(name=inner, depth=2) for inner in below]
    return run_of(steps, ident=ident)


def names(tree: RunTree, run: int) -> str:
    return "".join(tree.runs[run].spans[position].name for position in tree.steps(run))


@given(st.lists(st.lists(st.lists(st.sampled_from("abcd"), max_size=4), max_size=3), min_size=1, max_size=5))
def test_parallel_calls_in_another_order_are_the_same_steps(runs: list[list[list[str]]]) -> None:
    reordered = [parallel(f"r{i}", *answers) for i, answers in enumerate(runs)]
    reordered += [parallel(f"reversed{i}", *(answer[::-1] for answer in answers)) for i, answers in enumerate(runs)]
    tree = tree_of(reordered)
    for i in range(len(runs)):
        assert tree.path(i)[-1] is tree.path(i + len(runs))[-1]
        start = 0
        for answer in runs[i]:
            assert Counter(names(tree, i)[start : start + len(answer)]) == Counter(answer)
            start += len(answer)
    assert shape(tree) == shape(tree_of(reordered[::-1]))


def test_steps_below_a_parallel_call_move_with_it() -> None:
    runs = [parallel("r0", [("A", "xy"), "b"], "c"), parallel("r1", ["b", ("A", "yx")], "c")]
    tree = tree_of(runs)
    assert names(tree, 0) == "Axybc"
    assert names(tree, 1) == "Ayxbc", "calls below one tool are not parallel unless a model asked for them at once"
    assert [fork.step for fork in tree.forks] == [2]


def test_a_deep_chain_of_calls() -> None:
    deep = run_of([Step(name="a", depth=depth) for depth in range(5_000)])
    tree = tree_of([deep])
    assert tree.steps(0) == [*range(5_000)]


def test_calls_of_different_answers_are_not_parallel() -> None:
    tree = tree_of([parallel("r0", "ab", "cd"), parallel("r1", "ba", "dc"), parallel("r2", "ac", "bd")])
    assert [(fork.step, [side.branch.runs for side in fork.sides]) for fork in tree.forks] == [(2, [(0, 1), (2,)])]
    assert tree.nodes == 7


def test_calls_beside_their_model_answer_are_parallel_too() -> None:
    runs = [
        run_of(
            [Step(Operation.CHAT, "gpt"), *(Step(name=name) for name in order), Step(Operation.CHAT, "gpt"), Step()],
            ident=order,
        )
        for order in ("ab", "ba")
    ]
    assert tree_of(runs).forks == ()
    assert tree_of([run_of([Step(name=name) for name in order], ident=order) for order in ("ab", "ba")]).forks != ()


def test_nodes_of_a_graph_are_compared_by_name() -> None:
    runs = [
        run_of([node("plan", {"state": i}), Step(Operation.ROUTE, "route"), node(name)], ident=f"r{i}")
        for i, name in enumerate(["search", "search", "answer"])
    ]
    tree = tree_of(runs)
    assert [(fork.step, len(fork.sides)) for fork in tree.forks] == [(3, 2)]


def test_the_agent_around_a_run_is_no_step_but_a_sub_agent_is() -> None:
    steps = [
        Step(Operation.INVOKE_AGENT, "main"),
        Step(name="a", depth=1),
        Step(Operation.INVOKE_AGENT, "sub", depth=1),
    ]
    assert tree_of([run_of(steps)]).steps(0) == [1, 2]


def test_texts_are_steps_on_request() -> None:
    bodies = {"s0": Body(input_messages=(Message("user", (Text("Hi"),)),)), "s2": Body()}
    steps = [Step(Operation.MESSAGE, "user"), Step(Operation.CHAT, "gpt"), Step(Operation.CHAT, "gpt"), Step(depth=1)]
    runs = [
        run_of(steps, ident=f"r{i}", bodies=bodies | {"s1": chat("Hi", answer=text)})
        for i, text in enumerate(["Yes.", "Yes. ", "No."])
    ]
    assert tree_of(runs).forks == ()
    tree = tree_of(runs, texts=True)
    assert tree.steps(0) == [0, 1, 3], "an answer without a text is no step"
    assert [(fork.step, [side.branch.runs for side in fork.sides]) for fork in tree.forks] == [(2, [(0, 1), (2,)])]
    only_call = Body(output_messages=(Message("assistant", (ToolCall("1", "x"),)),))
    assert tree_of([run_of(steps, bodies={"s1": only_call, "s2": only_call})], texts=True).steps(0) == [0, 3]


def test_a_run_that_ends_is_a_branch_of_its_own() -> None:
    tree = tree_of_calls(["ab", "abc", "abd", "abd"], [True, False, False, None])
    (fork,) = tree.forks
    assert fork is tree.first_fork
    assert [(side.branch.runs, side.branch.is_end, side.scored) for side in fork.sides] == [
        ((2, 3), False, Side(1, 0)),
        ((0,), True, Side(1, 1)),
        ((1,), False, Side(1, 0)),
    ]
    assert fork.elsewhere(1) == Side(2, 0)
    assert (fork.p, fork.adjusted_p, fork.is_decisive) == (1.0, 1.0, False)
    assert tree_of_calls(["ab", "ab"]).first_fork is None
    assert tree_of_calls([""]).nodes == 0
    assert (tree_of([]).nodes, tree_of([]).first_fork) == (0, None)


def test_excluded_trials_are_in_the_tree_but_in_no_test() -> None:
    runs = [calls(f"r{i}", steps) for i, steps in enumerate(["ab", "ac", "ac"])]
    trials = [trial(runs[0], True), trial(runs[1], False), trial(runs[2], False, "fork")]
    tree = run_tree(trials, {run.summary.ref: run for run in runs}.get)
    assert [(len(side.branch.runs), side.scored) for side in tree.forks[0].sides] == [(2, Side(1, 0)), (1, Side(1, 1))]
    assert tree.forks[0].p == 1.0


def test_unreadable_runs_are_listed() -> None:
    run = calls("r0", "ab")
    lost = Trial(calls("lost", "a").summary, trial(run, True).result)
    tree = run_tree([lost, trial(run, True)], {run.summary.ref: run}.get)
    assert (tree.unreadable, len(tree.runs), tree.nodes) == ((lost,), 1, 2)


def test_bodies_are_loaded_only_where_runs_could_share_a_step() -> None:
    loaded: list[str] = []

    def watched(run: Run) -> Run:
        def watched_load(span: Span) -> Body:
            loaded.append(span.name)
            return run.load(span)

        return replace(run, load=watched_load)

    runs = [
        watched(run_of([Step(name="a", input=i), Step(name=f"b{i}"), *[Step(name="c")] * 50], ident=f"r{i}"))
        for i in (0, 0, 1)
    ]
    tree_of([runs[0], runs[2]])
    assert loaded == ["a", "a"]


def test_representatives_have_the_outcome_of_their_branch() -> None:
    tree = tree_of_calls(["ab", "ab", "ac", "ac", "a", "ad"], [False, True, True, False, False, None])
    fork = tree.forks[0]
    first, second = tree.representatives(fork)
    assert [(run.run, run.span) for run in (first, second)] == [(1, 1), (4, None)]
    third, fourth = tree.representatives(fork, [side.branch.is_end for side in fork.sides].index(True))
    assert (third.run, fourth.run) == (4, 1)


def test_a_planted_fork_is_decisive_and_says_so() -> None:
    tree = tree_of_calls(["ab"] * 10 + ["ac"] * 10, [True] * 10 + [False] * 10)
    (fork,) = tree.forks
    assert fork.is_decisive
    assert fork.adjusted_p == pytest.approx(2 / 184756)
    assert tree.trials_to_decide(fork) is None


def test_the_number_of_trials_that_would_decide() -> None:
    tree = tree_of_calls(["ab", "ab", "ac", "ac"], [True, True, False, False])
    assert not tree.forks[0].is_decisive
    assert tree.trials_to_decide(tree.forks[0]) == 8
    equal = tree_of_calls(["ab", "ab", "ac", "ac"], [True, False, True, False])
    assert equal.trials_to_decide(equal.forks[0]) is None


def random_runs(chance: random.Random, trials: int, most: int) -> list[list[str]]:
    """Runs that share a beginning and then fork: once if `most` is 1, else often, some of them at their end."""
    return [
        ["a", *(chance.choice("bbbc") for _ in range(chance.randint((most + 1) // 2, most)))] for _ in range(trials)
    ]


def test_shuffled_outcomes_rarely_look_decisive() -> None:
    chance = random.Random(7)
    trees = [tree_of_calls(random_runs(chance, 20, most)) for most in (1, 1, 1, 2, 2, 3, 4, 8)]
    alarms = 0
    for shuffle in range(1_000):
        labels = [i < 9 for i in range(20)]
        chance.shuffle(labels)
        alarms += any(fork.is_decisive for fork in relabeled(trees[shuffle % len(trees)], labels).forks)
    assert 0 < alarms <= 50


def relabeled(tree: RunTree, labels: Sequence[bool]) -> RunTree:
    return tree_of(tree.runs, labels)


@needs_shared
@pytest.mark.shared
def test_the_trees_of_tau_bench_are_those_of_the_definition(tmp_path: Path) -> None:
    source = sample("tau-bench", "gpt-4o-airline-even.json")
    assert SHARED is not None
    subprocess.run([sys.executable, SHARED / "tools" / "tau_to_harbor.py", source, tmp_path], check=True)
    by_task: dict[int, list[Any]] = {}
    for record in json.loads(source.read_bytes()):
        by_task.setdefault(record["task_id"], []).append(record)
    nodes = 0
    for task, trials in by_task.items():
        runs = [
            load(tmp_path / f"airline-{task:02d}__t{trial['trial']}" / "agent" / "trajectory.json") for trial in trials
        ]
        steps, passed = [tau_steps(trial["traj"]) for trial in trials], [trial["reward"] == 1 for trial in trials]
        tree = tree_of(runs, passed)
        assert tree.nodes == nodes_of(steps)
        assert same_facts(facts(tree), forks_of(steps, passed))
        assert not any(fork.is_decisive for fork in tree.forks)
        nodes += tree.nodes
    assert 0 < nodes < sum(len(tau_steps(trial["traj"])) for trials in by_task.values() for trial in trials)

"""Many runs of one task: how fast the analyses are, and how often the gate is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.analysis.build import calls, trial, trials_of
from tests.bench import data, references, screen
from tests.bench.table import Row, cpu_ms, median, timed
from tracetui.analysis.contrast import ALPHA
from tracetui.analysis.gate import MIN_EFFECT, Verdict, gate, judge
from tracetui.analysis.gate_statistics import TaskCounts, agree, change_interval, mean_change, shuffle_test
from tracetui.analysis.run_tree import RunTree, fork_arguments, run_tree
from tracetui.analysis.tasks import matrix
from tracetui.model import RunSummary, Usage
from tracetui.ui.theme import Look
from tracetui.ui.widgets.lines import to_strip
from tracetui.views.run_tree import TreeRows

PASSED: Final = (0, 1, 0, 1, 0, 0, 4, 0, 1, 4, 4, 0, 4, 2, 0, 2, 0, 3, 4, 4, 3, 4, 2, 2, 4)
"""Passed trials of 4 for 25 tasks of the airline domain of tau-bench, as published for gpt-4o."""
WIDTH, HEIGHT = 200, 60
_RATES: Final = [passed / 4 for passed in PASSED] * 2


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about tasks; sizes are divided by `scale`."""
    yield from _screen(1_000 // scale, 10, rounds)
    yield from _trees(300 // scale, rounds)
    yield _gate_time(rounds)
    yield from _simulations(2_000 // scale)


def _screen(tasks: int, trials: int, rounds: int) -> Iterator[Row]:
    """From `M` to the painted matrix, all counted before; then a key in it."""

    def write(folder: Path) -> None:
        for task in range(tasks):
            for i in range(trials):
                _write_trial(folder / f"task-{task}__{i}", f"task-{task}", i < task % (trials + 1))

    folder, times = data.cached_folder(f"trials-{tasks}-{trials}", write), list[float]()
    keys: list[screen.Key] = []
    for _ in range(rounds):
        with screen.loaded(folder) as terminal:
            at = terminal.send("M")
            times.append((terminal.wait_for(r"passed sometimes(?:.*\n)+.*pass\^1(?:.*\n)+.*5/10") - at) * 1000)
            terminal.wait_quiet(0.5)
            keys += [screen.press(terminal, "pagedown", quiet=0.1) for _ in range(6)]
    what = f"M on {tasks} tasks × {trials} trials: the matrix"
    yield timed(what, median(times), 200, references.key(), "from the key")
    yield screen.p95_row("  a page down in the matrix", keys, 30)


def _write_trial(folder: Path, task: str, passed: bool) -> None:
    """A trial of Harbor with one answer."""
    steps = [{"step_id": 1, "source": "user", "message": "Prune"}, {"step_id": 2, "source": "agent", "message": "Done"}]
    agent = {"name": "gardener", "model_name": "oak-2"}
    log = {"schema_version": "ATIF-v1.7", "session_id": folder.name, "agent": agent, "steps": steps}
    result = {"task_name": task, "trial_name": folder.name, "verifier_result": {"rewards": {"reward": float(passed)}}}
    (folder / "agent").mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "agent" / "trajectory.json").write_text(json.dumps(log))


def _task(number: int, passed: int, trials: int, folder: str = "") -> list[RunSummary]:
    chance = random.Random(f"{folder} {number}")
    runs = trials_of(f"task-{number}", passed, trials, folder, agent="agent", model="model")
    return [
        run.replace(
            usage=Usage(total_tokens=chance.randint(1_000, 90_000), cost_usd=chance.random()),
            duration_ms=chance.random() * 1e5,
            steps=chance.randint(3, 40),
        )
        for run in runs
    ]


def _trees(length: int, rounds: int) -> Iterator[Row]:
    """Fifty runs with forks everywhere: the tree, and its first screen."""
    chance = random.Random(1)
    runs = [calls(f"run-{i}", [f"{chance.choice('aaab')}{step}" for step in range(length)]) for i in range(50)]
    by_ref = {run.summary.ref: run for run in runs}
    trials = [trial(run, i % 3 > 0) for i, run in enumerate(runs)]
    took = cpu_ms(lambda: run_tree(trials, by_ref.get), rounds)
    yield Row(f"tree of 50 × {length} steps", took, 100, "ms", "CPU time, runs in memory")
    painted = _paint(run_tree(trials, by_ref.get), rounds)
    yield Row(f"  shown at {WIDTH}×{HEIGHT}", painted, 20, "ms", "CPU time")


def _paint(tree: RunTree, rounds: int) -> float:
    """The time to draw the first screen of a tree, from its rows to strips."""
    arguments, needed, look = fork_arguments(tree), [*map(tree.trials_to_decide, tree.forks)], Look()

    def paint() -> None:
        drawn = TreeRows(tree, arguments, needed, selected=0)
        lines = [*drawn.headings(WIDTH), *(drawn.line(i, WIDTH) for i in range(min(HEIGHT, len(drawn))))]
        for line in lines:
            to_strip(line, WIDTH, look)

    return cpu_ms(paint, rounds)


def _gate_time(rounds: int) -> Row:
    sides = [
        [run for i in range(125) for run in _task(i, (i + shift) % 5, 4, folder)]
        for shift, folder in ((0, "a"), (1, "b"))
    ]
    took = cpu_ms(lambda: gate(*map(matrix, sides)), rounds)
    return Row("gate of 2 × 500 runs, from their summaries", took, 2_000, "ms", "CPU time")


def _simulations(draws: int) -> Iterator[Row]:
    """How often the gate is wrong or finds nothing, in the settings of docs/luck.md."""
    chance, detail = random.Random(2), f"{draws} suites"
    tau = (_RATES, (4, 4))
    few = ([0.95] * 20, (1, 8))
    clean = ([1.0] * 6, (4, 4))
    equal, unequal = _verdicts(*tau, 0, draws, chance), _verdicts(*few, 0, draws, chance)
    yield Row("gate, equal agents, 50 tasks × 4: regression", equal[Verdict.REGRESSION], 5, "%", detail)
    yield Row("gate, equal agents, 20 tasks × 1 against 8: regression", unequal[Verdict.REGRESSION], 5, "%", detail)
    lost = _verdicts(*clean, 0.1, draws, chance)
    yield Row("gate, drop of 10 points, 6 tasks × 4: no regression", lost[Verdict.NO_REGRESSION], 5, "%", detail)
    for points, most in ((10, 30), (20, 1)):
        lost = _verdicts(*tau, points / 100, draws, chance)
        missed = 100 - lost[Verdict.REGRESSION]
        yield Row(f"gate, drop of {points} points, 50 tasks × 4: missed", missed, most, "%", detail)


def _verdicts(
    rates: Sequence[float], trials: tuple[int, int], drop: float, draws: int, chance: random.Random
) -> dict[Verdict, float]:
    """Percentages of the verdicts over random suites whose mean rate drops by `drop`, in proportion to each rate."""
    factor, counts = 1 - drop / (sum(rates) / len(rates)), dict.fromkeys(Verdict, 0)
    for _ in range(draws):
        tasks = [
            TaskCounts(_passed(r, trials[0], chance), trials[0], _passed(r * factor, trials[1], chance), trials[1])
            for r in rates
        ]
        p, change = shuffle_test(tasks), mean_change(tasks)
        interval = agree(change_interval(tasks, ALPHA), p, change, ALPHA)
        counts[judge(tasks, p, interval, ALPHA, MIN_EFFECT)[0]] += 1
    return {verdict: 100 * number / draws for verdict, number in counts.items()}


def _passed(rate: float, trials: int, chance: random.Random) -> int:
    return sum(chance.random() < rate for _ in range(trials))

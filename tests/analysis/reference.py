"""The tree of runs computed from its definition: a step is a node for every different path that leads to it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

END = "end"


class ForkFacts(NamedTuple):
    """A fork: the number of its first different step, its branches as (runs, scored, passed), and p."""

    step: int
    sides: list[tuple[int, int, int]]
    p: float | None


def nodes_of(runs: Sequence[Sequence[Hashable]]) -> int:
    """The number of different prefixes."""
    return len({tuple(steps[:n]) for steps in runs for n in range(1, len(steps) + 1)})


def forks_of(runs: Sequence[Sequence[Hashable]], passed: Sequence[bool | None]) -> list[ForkFacts]:
    """The forks: prefixes after which runs differ, where to end is to differ as well. In order of step and size."""
    forks = []
    for prefix in {tuple(steps[:n]) for steps in runs for n in range(len(steps) + 1)}:
        branches: dict[Hashable, list[int]] = {}
        for i, steps in enumerate(runs):
            if tuple(steps[: len(prefix)]) == prefix:
                following = steps[len(prefix)] if len(steps) > len(prefix) else END
                branches.setdefault(following, []).append(i)
        if len(branches) > 1:
            groups = [[passed[i] for i in members] for members in branches.values()]
            sides = [(len(g), len(g) - g.count(None), g.count(True)) for g in groups]
            forks.append(ForkFacts(len(prefix) + 1, sorted(sides), permutation_p(groups)))
    return sorted(forks, key=repr)


def permutation_p(groups: Sequence[Sequence[bool | None]]) -> float | None:
    """The share of all ways to label the scored runs that are at most as likely as the observed one."""
    branch = [i for i, group in enumerate(groups) for label in group if label is not None]
    labels = [label for group in groups for label in group if label is not None]
    if len(set(branch)) < 2:
        return None
    tables: dict[tuple[int, ...], int] = {}
    for chosen in combinations(range(len(labels)), sum(labels)):
        table = tuple(sum(branch[i] == b for i in chosen) for b in range(len(groups)))
        tables[table] = tables.get(table, 0) + 1
    observed = tables[tuple(list(group).count(True) for group in groups)]
    return sum(n for n in tables.values() if n <= observed) / sum(tables.values())


def tau_steps(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The tool calls of one recorded conversation, name and arguments, however their JSON is written."""
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [f"{call['name']} {json.dumps(json.loads(call['arguments']), sort_keys=True)}" for call in calls]

"""Tree of the steps of all trials of a task: where they fork, and whether a fork goes with the outcome.

The steps are tool calls, graph nodes and calls of sub-agents; with texts, also model answers and the messages of users
and systems. Two runs share a step if all steps before it are the same and `tracetui.diff.step` gives both the same
key. Parallel calls that two runs make in a different order are the same steps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.analysis.contrast import ALPHA, Side, holm, outcome_test, trials_to_decide
from tracetui.analysis.tasks import Result, Task, Trial
from tracetui.analysis.values import value_text
from tracetui.diff.comparison import working_folder
from tracetui.diff.noise import Noise
from tracetui.diff.step import Header, InputKeys, answer_text, documents, header_key
from tracetui.diff.values import INPUT, changes_of
from tracetui.model import Body, Operation, Run, RunRef, Span

Key = tuple[Header, bytes] | None
"""Identity of a step after equal steps; None: the run has ended."""

_Keys = tuple[tuple[Header, bytes], ...]
_CHAT = Operation.CHAT
_MESSAGE = Operation.MESSAGE
_TOOL = Operation.EXECUTE_TOOL
_AGENT = Operation.INVOKE_AGENT


class Branch(msgspec.Struct):
    """A stretch of steps without a fork. Runs fork at its end if it has children, else they end there.

    A child without steps is the end of its runs where others continue.
    """

    runs: tuple[int, ...]
    """Positions in `RunTree.runs`."""
    steps: list[tuple[int, ...]] = []
    """For each step, its position in the spans of each run, in the order of `runs`."""
    children: list[Branch] = []
    """Most runs first; a run that ends comes before one that continues."""

    @property
    def is_end(self) -> bool:
        """Whether the runs of this branch end at the fork."""
        return not self.steps and not self.children


class ForkSide(NamedTuple):
    """A branch of a fork."""

    branch: Branch
    scored: Side
    """Its scored trials that count (`tracetui.analysis.tasks`)."""


class Fork(msgspec.Struct, frozen=True):
    """A place where runs with the same steps so far continue differently."""

    parent: Branch
    """The branch that ends here."""
    step: int
    """Number of the first different step, from 1."""
    sides: tuple[ForkSide, ...]
    p: float | None = None
    """Of the test of outcome against branch, over all branches; None with scored trials in fewer than two."""
    adjusted_p: float | None = None
    """With Holm's correction over the forks of the task."""

    @property
    def is_decisive(self) -> bool:
        """Whether more than chance links branch and outcome; otherwise it could be chance."""
        return self.adjusted_p is not None and self.adjusted_p < ALPHA

    def elsewhere(self, side: int) -> Side:
        """The scored trials that reach the fork and take another branch than ``sides[side]``."""
        others = [other.scored for i, other in enumerate(self.sides) if i != side]
        return Side(sum(other.scored for other in others), sum(other.passed for other in others))


def decisive_by_chance(tasks: Iterable[Task]) -> float:
    """Return how many of the tasks chance alone would give a decisive fork, at most, on average.

    Holm's correction holds for the forks of one task, so that each task has one by chance with a probability of up to
    `ALPHA`. Tasks whose scored trials could not give a p below it count as 0.
    """
    counts = [task.counts for task in tasks]
    best = (outcome_test((Side(c.passed, c.passed), Side(c.failed, 0))) for c in counts)
    return ALPHA * sum(p is not None and p < ALPHA for p in best)


class Representative(NamedTuple):
    """The representative of a branch: its position in `RunTree.runs`, and that of its first step in its spans."""

    run: int
    span: int | None
    """None where the run ends at the fork."""


class RunTree(msgspec.Struct, frozen=True):
    """All trials of a task merged by their steps."""

    trials: tuple[Trial, ...]
    """The trials that could be read."""
    runs: tuple[Run, ...]
    """Their runs, in the same order."""
    root: Branch
    forks: tuple[Fork, ...]
    """In pre-order."""
    unreadable: tuple[Trial, ...] = ()

    @property
    def first_fork(self) -> Fork | None:
        """The fork that all runs reach; None if all have the same steps."""
        return self.forks[0] if self.forks else None

    @property
    def nodes(self) -> int:
        """Number of different steps: a step that several runs share counts once."""
        return sum(len(branch.steps) for branch in self.branches())

    def branches(self) -> Iterator[Branch]:
        """All branches in pre-order."""
        todo = [self.root]
        while todo:
            branch = todo.pop()
            yield branch
            todo.extend(reversed(branch.children))

    def path(self, run: int) -> list[Branch]:
        """The branches that ``runs[run]`` takes, from the root."""
        branches = [self.root]
        while branches[-1].children:
            branches.append(next(child for child in branches[-1].children if run in child.runs))
        return branches

    def steps(self, run: int) -> list[int]:
        """The positions of the steps of ``runs[run]`` in its spans, in the order of the tree."""
        return [step[i] for branch in self.path(run) for i in [branch.runs.index(run)] for step in branch.steps]

    def trials_to_decide(self, fork: Fork) -> int | None:
        """How many trials of the task the same proportions need to be decisive at a fork.

        None where the fork is decisive, where its branches have equal pass rates, and where it is more than
        `tracetui.analysis.contrast.MOST_TRIALS`.
        """
        if fork.is_decisive:
            return None
        scored = sum(trial.excluded is None and _is_scored(trial) for trial in self.trials)
        tests = sum(tested.p is not None for tested in self.forks)
        return trials_to_decide([side.scored for side in fork.sides], scored, tests)

    def representatives(self, fork: Fork, side: int | None = None) -> tuple[Representative, Representative]:
        """Return one run each of two branches of a fork, to compare them.

        The branches are those with the highest and the lowest pass rate, or ``fork.sides[side]`` and the branch with
        the most different rate. The run of a branch has the outcome that most of its trials have, if one has.
        """
        rates = [_rate(branch_side.scored) for branch_side in fork.sides]
        first = max(range(len(rates)), key=lambda i: _distance(rates[i], 0.0)) if side is None else side
        others = [i for i in range(len(rates)) if i != first]
        second = max(others, key=lambda i: _distance(rates[first], rates[i]))
        return self._representative(fork.sides[first]), self._representative(fork.sides[second])

    def _representative(self, side: ForkSide) -> Representative:
        usual = Result.PASSED if 2 * side.scored.passed >= side.scored.scored else Result.FAILED
        branch = side.branch
        ranks = [(self.trials[i].excluded is not None, self.trials[i].result is not usual) for i in branch.runs]
        chosen = ranks.index(min(ranks))
        return Representative(branch.runs[chosen], branch.steps[0][chosen] if branch.steps else None)


def _rate(side: Side) -> float | None:
    return side.passed / side.scored if side.scored else None


def _distance(a: float | None, b: float | None) -> float:
    return -1.0 if a is None or b is None else abs(a - b)


def _is_scored(trial: Trial) -> bool:
    return trial.result in (Result.PASSED, Result.FAILED)


def run_tree(trials: Sequence[Trial], read: Callable[[RunRef], Run | None], *, texts: bool = False) -> RunTree:
    """Merge the trials of a task by their steps.

    `read` returns the whole run, None if it is unreadable. `texts`: model answers and messages are steps too. Loads the
    bodies of steps only as far as two runs could share them.
    """
    read_trials = [(trial, read(trial.run.ref)) for trial in trials]
    readable = [(trial, run) for trial, run in read_trials if run is not None]
    runs = tuple(run for _, run in readable)
    tree = RunTree(
        tuple(trial for trial, _ in readable),
        runs,
        _Merge(runs, texts).root,
        (),
        tuple(trial for trial, run in read_trials if run is None),
    )
    return msgspec.structs.replace(tree, forks=tuple(_forks(tree)))


def _forks(tree: RunTree) -> list[Fork]:
    forks: list[Fork] = []
    todo = [(tree.root, 0)]
    while todo:
        branch, before = todo.pop()
        depth = before + len(branch.steps)
        todo.extend((child, depth) for child in reversed(branch.children))
        if branch.children:
            sides = tuple(ForkSide(child, _scored(tree, child)) for child in branch.children)
            forks.append(Fork(branch, depth + 1, sides, outcome_test(side.scored for side in sides)))
    adjusted = holm([fork.p for fork in forks])
    return [msgspec.structs.replace(fork, adjusted_p=p) for fork, p in zip(forks, adjusted, strict=True)]


def _scored(tree: RunTree, branch: Branch) -> Side:
    trials = [tree.trials[i] for i in branch.runs]
    results = Counter(trial.result for trial in trials if trial.excluded is None)
    return Side(results[Result.PASSED] + results[Result.FAILED], results[Result.PASSED])


class Path:
    """The steps of one run, their keys, and which of them are parallel."""

    def __init__(self, run: Run, texts: bool, keys: InputKeys) -> None:
        self.run = run
        self._keys = keys
        self._folder = working_folder(run)
        self.steps: list[int] = []
        """Positions of spans. Parallel calls get the order in which the tree has them once it reaches them."""
        self.parallel: dict[int, list[int]] = {}
        """Positions of two or more parallel calls, by that of the first."""
        self._inputs: dict[int, bytes] = {}
        self._read(texts)

    def header(self, at: int) -> Header:
        """The header part of the key of the step at that place of the path."""
        return header_key(self.run.spans[self.steps[at]])

    def input(self, position: int) -> bytes:
        """The body part of the key of a step."""
        key = self._inputs.get(position)
        if key is None:
            key = self._inputs[position] = self._keys.of(self.run.spans[position], self.run.load, self._folder)
        return key

    def key(self, position: int) -> tuple[Header, bytes]:
        """The key of a step."""
        return header_key(self.run.spans[position]), self.input(position)

    def _read(self, texts: bool) -> None:
        run, spans = self.run, self.run.spans
        single_top = sum(depth == 0 for depth in run.depths) == 1
        issuers: dict[str | None, str] = {}  # the last model call below each span
        group: list[int] = []
        issuer: object = None
        outer: list[tuple[int, list[int], object]] = []  # where the spans below a call end, and the group of that call
        for i, span in enumerate(spans):
            while outer and i >= outer[-1][0]:
                self._close(group)
                _, group, issuer = outer.pop()
            if span.operation is _CHAT:
                issuers[span.parent_id] = span.id
            if not self._is_step(i, span, texts, single_top):
                continue
            self.steps.append(i)
            own = self._issuer(i, span, issuers)
            if own is None or own != issuer:
                self._close(group)
                group = []
            group.append(i)
            issuer = own
            if run.sizes[i] > 1:
                outer.append((i + run.sizes[i], group, issuer))
                group, issuer = [], None
        for open_group in (group, *(group for _, group, _ in outer)):
            self._close(open_group)

    def reorder(self, at: int, calls: Sequence[int]) -> None:
        """Put parallel calls, which begin at that place of the path, into this order, each with the steps below it."""
        blocks: dict[int, list[int]] = {}
        end = at
        for call in sorted(calls):
            block = blocks[call] = []
            while end < len(self.steps) and call <= self.steps[end] < call + self.run.sizes[call]:
                block.append(self.steps[end])
                end += 1
        self.steps[at:end] = [position for call in calls for position in blocks[call]]

    def _is_step(self, i: int, span: Span, texts: bool, single_top: bool) -> bool:
        operation = span.operation
        if operation is _TOOL or span.is_node:
            return True
        if operation is _AGENT:  # a single span at the top is the run itself
            return self.run.depths[i] > 0 or not single_top
        if not texts or not (operation is _CHAT or operation is _MESSAGE):
            return False
        return operation is _MESSAGE or bool(answer_text(self.run.load(span)).strip())

    def _issuer(self, i: int, span: Span, issuers: dict[str | None, str]) -> object:
        """The model answer that asked for a call, or the superstep of a node; None where the trace has neither."""
        if span.is_node:
            return None if span.step is None else (span.parent_id, span.step)
        if span.operation is _CHAT or span.operation is _MESSAGE:
            return None
        parent = self.run.parent(i)
        if parent is not None and self.run.spans[parent].operation is _CHAT:
            return span.parent_id
        return issuers.get(span.parent_id)

    def _close(self, group: list[int]) -> None:
        if len(group) > 1:
            self.parallel[group[0]] = group


class _Merge:
    """Merges the paths of runs into `root`. The result depends on the set of runs, not on their order."""

    def __init__(self, runs: Sequence[Run], texts: bool) -> None:
        keys = InputKeys()
        self._paths = [Path(run, texts, keys) for run in runs]
        self.root = Branch(tuple(range(len(runs))))
        todo = [(self.root, 0)]
        while todo:
            branch, at = todo.pop()
            todo += self._grow(branch, at)

    def _grow(self, branch: Branch, at: int) -> list[tuple[Branch, int]]:
        """Add steps to a branch until its runs fork or end; return the children that continue, and from where."""
        paths = [self._paths[i] for i in branch.runs]
        if len(paths) == 1:
            branch.steps += [(position,) for position in paths[0].steps[at:]]
            return []
        while True:
            self._order_parallel(paths, at)
            cells = self._cells(branch.runs, paths, at)
            if len(cells) > 1:
                order = sorted(cells, key=lambda key: (-len(cells[key]), key is not None, key or ()))
                branch.children = [Branch(tuple(cells[key])) for key in order]
                return [(child, at) for child, key in zip(branch.children, order, strict=True) if key is not None]
            if None in cells or not cells:
                return []
            branch.steps.append(tuple(path.steps[at] for path in paths))
            at += 1

    def _cells(self, runs: Sequence[int], paths: Sequence[Path], at: int) -> dict[Key, list[int]]:
        """The runs by their next step. A header that only one run has needs no body."""
        headers = [path.header(at) if at < len(path.steps) else None for path in paths]
        times = Counter(headers)
        cells: dict[Key, list[int]] = {}
        for run, path, header in zip(runs, paths, headers, strict=True):
            key = None if header is None else (header, path.input(path.steps[at]) if times[header] > 1 else b"")
            cells.setdefault(key, []).append(run)
        return cells

    def _order_parallel(self, paths: Sequence[Path], at: int) -> None:
        """Give parallel calls that begin here one order in all runs that make the same ones."""
        orders: dict[_Keys, _Keys] = {}
        reorderable: list[tuple[Path, list[int], _Keys]] = []
        for path in paths:
            group = path.parallel.pop(path.steps[at], None) if at < len(path.steps) else None
            if group is not None:
                keys = tuple(map(path.key, group))
                same = tuple(sorted(keys))
                orders[same] = min(keys, orders.get(same, keys))
                reorderable.append((path, group, keys))
        for path, group, keys in reorderable:
            wanted = orders[tuple(sorted(keys))]
            if keys != wanted:
                ranks: dict[tuple[Header, bytes], list[int]] = {}
                for rank, key in enumerate(wanted):
                    ranks.setdefault(key, []).append(rank)
                order = sorted((ranks[key].pop(0), call) for key, call in zip(keys, group, strict=True))
                path.reorder(at, [call for _, call in order])


# ---- the arguments that distinguish the branches of a fork


_LONGEST: Final = 400
"""Characters of an argument."""
_COMMON: Final = 24
"""Characters of a common beginning from which on it is cut."""
_CONTEXT: Final = 12
"""Characters of a cut beginning that stay."""


class StepRef(NamedTuple):
    """A step: the position of its run in `RunTree.runs`, and its position in the spans of that run."""

    run: int
    span: int


def fork_arguments(tree: RunTree) -> dict[StepRef, str]:
    """Return the argument that differs, for the first step of each branch that begins like another one of its fork.

    The text is neither masked (unless the runs are) nor sanitized. Loads the bodies of these steps.
    """
    return {step: text for fork in tree.forks for step, text in _of_fork(tree, fork)}


def _of_fork(tree: RunTree, fork: Fork) -> Iterator[tuple[StepRef, str]]:
    alike: dict[Header, list[StepRef]] = defaultdict(list)
    for side in fork.sides:
        if side.branch.steps:
            step = StepRef(side.branch.runs[0], side.branch.steps[0][0])
            alike[header_key(tree.runs[step.run].spans[step.span])].append(step)
    for steps in alike.values():
        if len(steps) > 1:
            yield from zip(steps, _differing([_given(tree, step) for step in steps]), strict=True)


def _given(tree: RunTree, step: StepRef) -> Any:
    run = tree.runs[step.run]
    span = run.spans[step.span]
    return _input(span, run.load(span))


def _input(span: Span, body: Body) -> Any:
    if span.operation is Operation.CHAT:
        return answer_text(body)
    if body.input is None and body.input_messages:
        return "\n".join(value_text(message) for message in documents(body.input_messages))
    return body.input


def _differing(values: Sequence[Any]) -> list[str]:
    """The part of each value that differs from the first value; of the first, from the second."""
    pairs = [(values[1], values[0]), *((values[0], other) for other in values[1:])]
    return [_difference(base, value) for base, value in pairs]


def _difference(base: Any, value: Any) -> str:
    changes = changes_of(base, value, Noise(), side=INPUT)
    change = next((candidate for candidate in changes if candidate.noise is None), None)
    if change is None:
        return value_text(value)[:_LONGEST]
    difference = _after_common(value_text(change.a), value_text(change.b))
    if change.path_b is None:
        return f"without {change.path}"
    is_only = isinstance(value, dict) and [*value] == [change.path]
    return difference if is_only or not change.path else f"{change.path}={difference}"


def _after_common(base: str, text: str) -> str:
    """A text without the long beginning that it has in common with another."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(base, text, strict=False)))
    start = common - _CONTEXT if common > _COMMON else 0
    if start:
        start = text.find(" ", start, common) + 1 or start
    return ("…" if start else "") + text[start : start + _LONGEST]

"""The run tree as rows: a lane per run, a row per branch, its steps or a fork.

The lanes are in the order of the rows, so that a branch is a group of neighboring lanes: its width is its runs. At a
fork the smaller branches come first and the largest one continues at the right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from enum import StrEnum
from itertools import groupby
from typing import Final, NamedTuple

from tracetui.analysis.fork_arguments import StepRef
from tracetui.analysis.run_tree import Branch, Fork, RunTree
from tracetui.analysis.tasks import Result
from tracetui.masking import one_line
from tracetui.model import Span
from tracetui.text import Clean, grouped, pad
from tracetui.views.glyphs import UNICODE, Glyphs, kind
from tracetui.views.labels import BLANK, argument, name_beside
from tracetui.views.rows import Fold, Line, Piece, fill, fit, width_of
from tracetui.views.run_tree_lanes import Lanes


class Kind(StrEnum):
    """Kind of a row."""

    BRANCH = "branch"
    """The first step of a branch; folded, all its steps."""
    STEP = "step"
    FORK = "fork"
    END = "end"
    """Runs end at a fork."""


class NodeKey(NamedTuple):
    """Key of a row: no other node of its kind has this run at this step."""

    kind: Kind
    run: int
    step: int


class Node(NamedTuple):
    """What a row shows."""

    kind: Kind
    branch: Branch
    """Of a fork, the branch that ends there."""
    step: int
    """Number of its (first) step from 1."""
    index: int = 0
    """Index of the step in the branch."""
    fork: Fork | None = None
    """The fork; of other rows, the fork at which the branch begins."""
    side: int = 0
    """Index of the branch in the sides of `fork`; of a fork, that of the selected run, else the first."""

    @property
    def key(self) -> NodeKey:
        """The key of the row."""
        return NodeKey(self.kind, self.branch.runs[0], self.step)


_STEPS: Final = 7
"""Cells of the range of steps."""
_LEAST: Final = 24
"""Cells of the text below which columns are hidden."""


class TreeRows:
    """See `tracetui.views.rows.Rows`. Stretches of steps are folded and forks unfolded, unless toggled in `opened`."""

    def __init__(
        self,
        tree: RunTree,
        arguments: Mapping[StepRef, str],
        *,
        selected: int | None = None,
        opened: Set[Hashable] = frozenset(),
        glyphs: Glyphs = UNICODE,
    ) -> None:
        """`selected` is a position in ``tree.runs``."""
        self.tree, self.selected = tree, selected
        self._arguments, self._opened, self._glyphs = arguments, opened, glyphs
        self._forks = {id(fork.parent): fork for fork in tree.forks}
        self.lanes = Lanes(tree, glyphs)
        self.has_rates = any(trial.result in (Result.PASSED, Result.FAILED) for trial in tree.trials)
        self._nodes = list(self._walk()) if tree.runs else []
        self._index = {node.key: i for i, node in enumerate(self._nodes)}
        total = str(len(tree.runs))
        self._runs_width = 2 * len(total) + 1

    def _walk(self) -> Iterator[Node]:
        todo: list[tuple[Branch, int, Fork | None, int]] = [(self.tree.root, 1, None, 0)]
        while todo:
            branch, step, origin, side = todo.pop()
            if branch.steps:
                first = Node(Kind.BRANCH, branch, step, 0, origin, side)
                yield first
                if first.key in self._opened:
                    for i in range(1, len(branch.steps)):
                        yield Node(Kind.STEP, branch, step + i, i, origin, side)
            elif branch.is_end:
                yield Node(Kind.END, branch, step, 0, origin, side)
            fork, after = self._forks.get(id(branch)), step + len(branch.steps)
            if fork is None:
                continue
            chosen = (i for i, one in enumerate(fork.sides) if self.selected in one.branch.runs)
            node = Node(Kind.FORK, branch, after, 0, fork, next(chosen, 0))
            yield node
            if node.key not in self._opened:
                sides = sorted(enumerate(fork.sides), key=lambda one: len(one[1].branch.runs))
                todo += [(side.branch, after, fork, i) for i, side in reversed(sides)]

    # ---- rows

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, index: int) -> Node | None:
        """What a row shows; None after the last one."""
        return self._nodes[index] if 0 <= index < len(self._nodes) else None

    def key(self, index: int) -> Hashable:
        return self._nodes[index].key

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key) if isinstance(key, NodeKey) else None

    def selectable(self, index: int) -> bool:
        return True

    def mark(self, index: int) -> str | None:
        node = self._nodes[index]
        return "accent" if node.kind is Kind.FORK and node.fork is not None and node.fork.is_decisive else None

    def fold(self, index: int) -> Fold | None:
        """The fold of a fork, or of a branch of several steps."""
        node = self._nodes[index]
        if node.kind is Kind.FORK:
            return Fold(node.key, node.key not in self._opened)
        if node.kind is Kind.BRANCH and len(node.branch.steps) > 1:
            return Fold(node.key, node.key in self._opened)
        return None

    def parent(self, index: int) -> int | None:
        """The branch of a step or a fork, the fork of a branch."""
        node = self._nodes[index]
        if node.kind in (Kind.STEP, Kind.FORK):
            start = node.step - (node.index or len(node.branch.steps))
            return self._index.get(NodeKey(Kind.BRANCH, node.branch.runs[0], start))
        if node.fork is None:
            return None
        return self._index.get(NodeKey(Kind.FORK, node.fork.parent.runs[0], node.fork.step))

    def forks(self) -> list[int]:
        """The rows of forks."""
        return [i for i, node in enumerate(self._nodes) if node.kind is Kind.FORK]

    def toggles(self, *, open_: bool) -> frozenset[Hashable]:
        """The toggled folds with which everything is unfolded or folded."""
        if not open_:
            return frozenset(NodeKey(Kind.FORK, fork.parent.runs[0], fork.step) for fork in self.tree.forks)
        starts = [(self.tree.root, 1), *((side.branch, fork.step) for fork in self.tree.forks for side in fork.sides)]
        return frozenset(NodeKey(Kind.BRANCH, branch.runs[0], step) for branch, step in starts if len(branch.steps) > 1)

    def on_path(self, node: Node) -> bool:
        """Whether the selected run goes through a row."""
        return self.selected in node.branch.runs

    def span(self, node: Node) -> tuple[int, Span] | None:
        """A run and its span at a row: those of the selected run if it goes there, else of the first run."""
        branch = node.branch
        if node.kind is Kind.FORK or not branch.steps:
            return None
        at = branch.runs.index(self.selected) if self.selected in branch.runs else 0
        return branch.runs[at], self.tree.runs[branch.runs[at]].spans[branch.steps[node.index][at]]

    # ---- one row

    def plain(self, index: int) -> str:
        node = self._nodes[index]
        if node.kind is Kind.FORK:
            return "".join(piece.text for piece in self._fork(node))
        if node.kind is Kind.END:
            return "ends"
        folded = node.kind is Kind.BRANCH and node.key not in self._opened
        run = self.tree.runs[node.branch.runs[0]]
        positions = node.branch.steps if folded else node.branch.steps[node.index : node.index + 1]
        spans = [run.spans[step[0]] for step in positions]
        return "\n".join(f"{span.name} {span.preview}" for span in spans)

    def line(self, index: int, width: int) -> Line:
        node = self._nodes[index]
        pieces = [*self.lanes.pieces(node.branch.runs, width, self.selected, fork=node.kind is Kind.FORK), BLANK]
        if node.kind is Kind.FORK:
            pieces += [Piece(pad(Clean(str(node.step)), _STEPS, right=True), "dim"), BLANK, *self._fork(node)]
            return tuple(fit(pieces, width))
        numbers = self._numbers(node) if width - width_of(tuple(pieces)) > _LEAST + _STEPS else []
        room = width - width_of((*pieces, *numbers))
        return (*pieces, *fill(self._text(node, room), room), *numbers)

    def headings(self, width: int, run: Line = ()) -> list[Line]:
        """The numbers of the trials beside `run`, a text on the selected one; the outcomes and the columns."""
        names = [Piece(pad(Clean("step"), _STEPS, right=True), "dim")]
        if width - self.lanes.width(width) > _LEAST + 2 * _STEPS:
            numbers = [Piece(pad(Clean("runs"), self._runs_width + 2, right=True), "dim")]
            numbers += [Piece(Clean("  passed"), "dim")] if self.has_rates else []
        else:
            numbers = []
        signs = [*self.lanes.signs(width, self.selected), BLANK, *names]
        room = width - width_of(tuple(numbers))
        return [
            tuple(fit([*self.lanes.labels(width, self.selected), BLANK, *run], width)),
            (*fill(signs, room), *numbers),
        ]

    def _fork(self, node: Node) -> list[Piece]:
        fork = node.fork
        assert fork is not None
        style = "text bold" if self.on_path(node) else "sec"
        pieces = [Piece(Clean(f"{self._glyphs.route} "), "accent"), Piece(Clean(f"{len(fork.sides)} ways"), style)]
        if node.key in self._opened:
            pieces.insert(0, Piece(Clean(f"{self._glyphs.folded} "), "dim"))
        verdict = chance_words(fork)
        if self.has_rates and verdict:
            pieces += [_dot(self._glyphs), Piece(verdict, "accent bold" if fork.is_decisive else "sec")]
            trials = self.tree.trials_to_decide(fork)
            if trials is not None:
                pieces += [_dot(self._glyphs), Piece(Clean(f"decisive at {grouped(trials)} trials"), "dim")]
        return pieces

    def _text(self, node: Node, room: int) -> list[Piece]:
        """Range of steps, fold mark, glyph, name and argument, and what is folded."""
        bold = self.on_path(node)
        folded = len(node.branch.steps) > 1 and node.kind is Kind.BRANCH and node.key not in self._opened
        last = node.step + len(node.branch.steps) - 1
        numbers = f"{node.step}–{last}" if folded else str(node.step)
        pieces = [Piece(pad(Clean(numbers), _STEPS, right=True), "dim"), BLANK]
        found = self.span(node)
        if found is None:
            ends = "runs end" if len(node.branch.runs) > 1 else "run ends"
            return [*pieces, Piece(self._glyphs.end, "dim"), BLANK, Piece(Clean(ends), "text bold" if bold else "sec")]
        _, span = found
        sign, style = kind(span, self._glyphs)
        pieces += [Piece(sign, style), BLANK]
        given = self._argument(node) or argument(span)
        room -= width_of(tuple(pieces))
        name = name_beside(span, given, room)
        pieces.append(Piece(name or self._glyphs.missing, "text bold" if bold else "sec"))
        if given:
            pieces.append(Piece(Clean(f" {given}"), "text" if bold else "dim"))
        if folded:
            pieces += self._rest(node)
        return pieces

    def _argument(self, node: Node) -> Clean:
        if node.kind is not Kind.BRANCH:
            return Clean("")
        return one_line(self._arguments.get(StepRef(node.branch.runs[0], node.branch.steps[0][0]), ""), 200)

    def _rest(self, node: Node) -> list[Piece]:
        """The folded steps: ``+ get_user ×2, think``."""
        run = self.tree.runs[node.branch.runs[0]]
        names = (run.spans[step[0]].name for step in node.branch.steps[1:])
        words = []
        for name, same in groupby(names):
            count = len(list(same))
            words.append(one_line(name, 40) + (f" {self._glyphs.times}{count}" if count > 1 else ""))
        return [Piece(Clean(f"  {self._glyphs.folded} "), "dim"), Piece(Clean(", ".join(words)), "dim")]

    def _numbers(self, node: Node) -> list[Piece]:
        """Runs of the branch of those that reach the fork, and how many passed."""
        first = node.kind in (Kind.BRANCH, Kind.END)
        runs = scored = Clean("")
        if first and node.fork is not None:
            side = node.fork.sides[node.side].scored
            runs = Clean(f"{len(node.branch.runs)}/{len(node.fork.parent.runs)}")
            scored = Clean(f"{side.passed}/{side.scored}") if side.scored else self._glyphs.missing
        elif first:
            runs = Clean(str(len(node.branch.runs)))
            counted = [trial for trial in self.tree.trials if trial.excluded is None]
            passed = sum(trial.result is Result.PASSED for trial in counted)
            total = passed + sum(trial.result is Result.FAILED for trial in counted)
            scored = Clean(f"{passed}/{total}") if total else self._glyphs.missing
        style = "text" if self.on_path(node) else "sec"
        pieces = [Piece(pad(runs, self._runs_width + 2, right=True), style)]
        if self.has_rates:
            pieces.append(Piece(pad(scored, 8, right=True), style))
        return pieces


# ---- sentences


def p_words(p: float) -> str:
    """A p-value: ``p = 1.00``, ``p = 0.004``, ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.01 else f"p = {p:.2f}"


def chance_words(fork: Fork) -> Clean:
    """The result of the test of a fork; empty without a test."""
    if fork.p is None or fork.adjusted_p is None:
        return Clean("")
    numbers = p_words(fork.p)
    if f"{fork.p:.2f}" != f"{fork.adjusted_p:.2f}":
        numbers += f", {p_words(fork.adjusted_p).removeprefix('p = ').removeprefix('p ')} after Holm"
    return Clean(f"{'decisive' if fork.is_decisive else 'could be chance'} ({numbers})")


def fork_sentence(tree: RunTree, fork: Fork, side: int, glyphs: Glyphs = UNICODE) -> Line:
    """``3 of 4 here, 1 of 3 passed · elsewhere 1 of 1 passed · could be chance (p = 1.00)``."""
    here, elsewhere = fork.sides[side], fork.elsewhere(side)
    pieces = [Piece(Clean(f"{len(here.branch.runs)} of {len(fork.parent.runs)} here"), "text bold")]
    if not any(one.scored.scored for one in fork.sides):
        return tuple(pieces)
    pieces.append(Piece(Clean(f", {_passed(here.scored.passed, here.scored.scored)}"), "text bold"))
    pieces += [_dot(glyphs), Piece(Clean(f"elsewhere {_passed(elsewhere.passed, elsewhere.scored)}"), "text")]
    verdict = chance_words(fork) or Clean("no test: scored trials in one branch only")
    return (*pieces, _dot(glyphs), Piece(verdict, "accent bold" if fork.is_decisive else "status.warn"))


def tree_sentence(tree: RunTree, glyphs: Glyphs = UNICODE) -> Line:
    """The whole tree: its trials, how many passed, its forks."""
    runs, forks = len(tree.runs), len(tree.forks)
    if not forks:
        return (Piece(Clean(f"no forks: {runs} trials with the same {_count(tree.nodes, 'step')}"), "text bold"),)
    decisive = sum(fork.is_decisive for fork in tree.forks)
    pieces = [Piece(Clean(f"{_count(runs, 'trial')}, {_count(forks, 'fork')}"), "text bold")]
    if any(fork.p is not None for fork in tree.forks):
        words = f"{grouped(decisive)} decisive" if decisive else "none decisive: all could be chance"
        pieces += [_dot(glyphs), Piece(Clean(words), "accent bold" if decisive else "sec")]
    return tuple(pieces)


def _passed(passed: int, scored: int) -> str:
    return f"{passed} of {scored} passed" if scored else "none scored"


def _count(number: int, word: str) -> str:
    return f"{grouped(number)} {word}{'s' if number != 1 else ''}"


def _dot(glyphs: Glyphs) -> Piece:
    return Piece(Clean(f" {glyphs.dot} "), "dim")

"""The run tree as rows: a lane per run, a row per branch, its steps or a fork.

The lanes are in the order of the rows, so that a branch is a group of neighboring lanes: its width is its runs. At a
fork the smaller branches come first and the largest one continues at the right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from itertools import groupby
from typing import Final, NamedTuple

from msgspec.structs import replace

from tracetui.analysis.contrast import ALPHA
from tracetui.analysis.run_tree import Branch, Fork, RunTree, StepRef
from tracetui.analysis.tasks import Result, Trial
from tracetui.masking import mask, one_line
from tracetui.model import Span
from tracetui.text import Clean, grouped, pad, quantity
from tracetui.views.glyphs import UNICODE, Glyphs, kind
from tracetui.views.labels import BLANK, argument, name_beside, outcome_word, run_sign, short_id, status_word
from tracetui.views.rows import Fold, Line, Piece, Rows, fill, fit, width_of


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


def is_fork(key: Hashable) -> bool:
    """Whether a row is a fork."""
    return isinstance(key, NodeKey) and key.kind is Kind.FORK


class Node(NamedTuple):
    """What a row shows."""

    kind: Kind
    branch: Branch
    """Of a fork, the branch that ends there."""
    step: int
    """Number of its (first) step from 1."""
    offset: int = 0
    """Index of the step in the branch."""
    fork: Fork | None = None
    """The fork; of other rows, the fork at which the branch begins."""
    side: int = 0
    """Index of the branch in the sides of `fork`; of a fork, that of the selected run, else the first."""

    @property
    def key(self) -> NodeKey:
        """The key of the row."""
        return NodeKey(self.kind, self.branch.runs[0], self.step)


_LEAST: Final = 38
"""Cells of the text below which the columns of numbers are hidden."""
_LEAST_REST: Final = 14
"""Cells for the names of folded steps."""
_ROOMIEST, _ROOMY, _TIGHT = 80, 71, 58
"""Cells of a fork in full, in fewer words, and without its p."""
_PASSED: Final = 8
_SAYS_NOTHING: Final = 0.995
"""p that is shown as 1.00: it adds nothing to *could be chance*."""
_NO_TEST: Final = Clean("no test: scored trials in one branch only")


class TreeRows(Rows):
    """See `tracetui.views.rows.Rows`. Stretches of steps are folded and forks unfolded, unless toggled in `opened`."""

    def __init__(
        self,
        tree: RunTree,
        arguments: Mapping[StepRef, str],
        decisive_at: Sequence[int | None],
        *,
        numbers: Sequence[int] = (),
        selected: int | None = None,
        opened: Set[Hashable] = frozenset(),
        glyphs: Glyphs = UNICODE,
    ) -> None:
        """`decisive_at`: for each fork, `RunTree.trials_to_decide`. `numbers`: for each run, the number of its trial.
        `selected`: a position in ``tree.runs``.
        """
        self.tree, self.selected = tree, selected
        self._arguments, self._opened, self._glyphs = arguments, opened, glyphs
        self._forks = {id(fork.parent): fork for fork in tree.forks}
        self._decisive_at = {id(fork): trials for fork, trials in zip(tree.forks, decisive_at, strict=True)}
        self._numbers_of = numbers or range(1, len(tree.runs) + 1)
        self.lanes = Lanes(tree, self._numbers_of, glyphs)
        self.has_rates = has_rates(tree)
        self._nodes = list(self._walk()) if tree.runs else []
        self._index = {node.key: i for i, node in enumerate(self._nodes)}
        self._runs_width = max(len("runs"), 2 * len(str(len(tree.runs))) + 1) + 2
        last = max((node.step + len(node.branch.steps) for node in self._nodes), default=1)
        self._steps_width = max(len("step"), 2 * len(str(last)) + 1)

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
            chosen = (i for i, side in enumerate(fork.sides) if self.selected in side.branch.runs)
            node = Node(Kind.FORK, branch, after, 0, fork, next(chosen, 0))
            yield node
            if node.key not in self._opened:
                sides = sorted(enumerate(fork.sides), key=lambda item: len(item[1].branch.runs))
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
            start = node.step - (node.offset or len(node.branch.steps))
            return self._index.get(NodeKey(Kind.BRANCH, node.branch.runs[0], start))
        if node.fork is None:
            return None
        return self._index.get(NodeKey(Kind.FORK, node.fork.parent.runs[0], node.fork.step))

    def forks(self, *, decisive: bool = False) -> list[int]:
        """The rows of forks, or of decisive ones only."""
        forks = ((i, node.fork) for i, node in enumerate(self._nodes) if node.kind is Kind.FORK)
        return [i for i, fork in forks if fork is not None and (fork.is_decisive or not decisive)]

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
        """A run and its span at a row: those of the selected run if it goes there, else of the first run.

        At the end of runs it is the last step; None at a fork and without steps.
        """
        branch = node.branch
        at = branch.runs.index(self.selected) if self.selected in branch.runs else 0
        run = branch.runs[at]
        if node.kind is Kind.END:
            position = next(reversed(self.tree.steps(run)), None)
        else:
            position = None if node.kind is Kind.FORK else branch.steps[node.offset][at]
        return None if position is None else (run, self.tree.runs[run].spans[position])

    def step(self, node: Node) -> tuple[int, Span] | None:
        """As `span`; at a fork the step that follows on the side of the node."""
        if node.kind is not Kind.FORK or node.fork is None:
            return self.span(node)
        branch = node.fork.sides[node.side].branch
        return self.span(Node(Kind.BRANCH if branch.steps else Kind.END, branch, node.step))

    # ---- one row

    def plain(self, index: int) -> str:
        node = self._nodes[index]
        if node.kind is Kind.FORK:
            return "".join(piece.text for piece in self._fork(node))
        if node.kind is Kind.END:
            return "ends"
        folded = node.kind is Kind.BRANCH and node.key not in self._opened
        run = self.tree.runs[node.branch.runs[0]]
        positions = node.branch.steps if folded else node.branch.steps[node.offset : node.offset + 1]
        spans = [run.spans[step[0]] for step in positions]
        return "\n".join(f"{mask(span.name)} {mask(span.preview or '')}" for span in spans)

    def line(self, index: int, width: int) -> Line:
        node = self._nodes[index]
        pieces = [*self.lanes.pieces(node.branch.runs, width, self.selected, fork=node.kind is Kind.FORK), BLANK]
        if node.kind is Kind.FORK:
            number = pad(Clean(str(node.step)), self._steps_width, right=True)
            pieces += [Piece(number, "dim"), BLANK, self._fold_mark(node)]
            return tuple(fit([*pieces, *self._fork(node, width - width_of(pieces))], width))
        numbers = self._numbers(node) if self._has_numbers(width) else []
        room = width - width_of((*pieces, *numbers))
        return (*pieces, *fill(self._text(node, room), room), *numbers)

    def _has_numbers(self, width: int) -> bool:
        taken = self.lanes.width(width) + self._steps_width + self._runs_width + self.has_rates * _PASSED
        return width - taken > _LEAST

    def headings(self, width: int) -> list[Line]:
        """The numbers of the trials beside a text on the selected one; the outcomes and the columns."""
        numbers: list[Piece] = []
        if self._has_numbers(width):
            numbers.append(Piece(pad(Clean("runs"), self._runs_width, right=True), "dim"))
            numbers += [Piece(pad(Clean("passed"), _PASSED, right=True), "dim")] if self.has_rates else []
        step = Piece(pad(Clean("step"), self._steps_width, right=True), "dim")
        signs = fill([*self.lanes.signs(width, self.selected), BLANK, step], width - width_of(numbers))
        top = [*self.lanes.labels(width, self.selected), BLANK, *self._selected_run()]
        return [tuple(fit(top, width)), (*signs, *numbers)]

    def _selected_run(self) -> list[Piece]:
        """The selected run in words."""
        if self.selected is None:
            return []
        trial = self.tree.trials[self.selected]
        run = trial.run
        sign, style = trial_sign(trial, self._glyphs)
        steps = sum(len(branch.steps) for branch in self.tree.path(self.selected))
        label = f"trial {self._numbers_of[self.selected]} of {len(self.tree.runs) + len(self.tree.unreadable)}"
        name = one_line(run.trial or "", 40) or short_id(run.id)
        facts = [outcome_word(run, self._glyphs)] if run.outcome is not None else [status_word(run)]
        facts += [Clean(trial.excluded)] if trial.excluded is not None else []
        facts.append(Clean(f"{quantity(steps, 'step')} compared"))  # a run has other steps: its model calls
        rest = f" {self._glyphs.dot} ".join(facts)
        return [
            Piece(Clean(f"{self._glyphs.folded} "), "accent"),
            Piece(Clean(label), "text bold"),
            Piece(Clean(f"  {name}  "), "sec"),
            Piece(Clean(f"{sign} "), style),
            Piece(Clean(rest), "sec"),
        ]

    def _fork(self, node: Node, room: int = _ROOMY) -> Line:
        """How many ways, whether it could be chance, and how many trials would decide: shorter if too wide."""
        fork = node.fork
        assert fork is not None
        style = "text bold" if self.on_path(node) else "sec"
        sign, ways = Piece(Clean(f"{self._glyphs.route} "), "accent"), f"{len(fork.sides)} ways"
        verdict = chance_text(fork) or (_NO_TEST if self.has_rates else Clean(""))
        if not verdict:
            return sign, Piece(Clean(f"fork, {ways}"), style)
        if room < _ROOMY:
            verdict = Clean(verdict.partition(" (")[0])
        line: Line = (
            sign,
            Piece(Clean(f"fork, {ways}" if room >= _TIGHT else ways), style),
            _dot(self._glyphs),
            Piece(verdict, "accent bold" if fork.is_decisive else "sec"),
        )
        trials = self._decisive_at[id(fork)]
        if trials is None:
            return line
        lead = "would be " if room >= _ROOMIEST else ""
        return *line, _dot(self._glyphs), Piece(Clean(f"{lead}decisive at {quantity(trials, 'trial')}"), "dim")

    def _text(self, node: Node, room: int) -> list[Piece]:
        """Range of steps, fold mark, glyph, name and argument, and what is folded."""
        bold = self.on_path(node)
        folded = len(node.branch.steps) > 1 and node.kind is Kind.BRANCH and node.key not in self._opened
        last = node.step + len(node.branch.steps) - 1
        numbers = f"{node.step}–{last}" if folded else str(node.step)
        pieces = [Piece(pad(Clean(numbers), self._steps_width, right=True), "dim"), BLANK, self._fold_mark(node)]
        located = self.span(node)
        if node.kind is Kind.END or located is None:
            ends = "no steps" if node.fork is None else "runs end" if len(node.branch.runs) > 1 else "run ends"
            return [*pieces, Piece(self._glyphs.end, "dim"), BLANK, Piece(Clean(ends), "text bold" if bold else "sec")]
        _, span = located
        sign, style = kind(span, self._glyphs)
        pieces += [Piece(sign, style), BLANK]
        argument_text = argument(self._fork_step(node, span))
        name = name_beside(span, argument_text, room - width_of(pieces))
        pieces.append(Piece(name or self._glyphs.missing, "text bold" if bold else "sec"))
        if argument_text:
            pieces.append(Piece(Clean(f" {argument_text}"), "text" if bold else "dim"))
        room -= width_of(pieces)
        if folded and room >= _LEAST_REST:
            pieces += self._folded_names(node, room)
        return pieces

    def _fork_step(self, node: Node, span: Span) -> Span:
        """The first step of a branch with the argument that differs as its preview."""
        if node.kind is not Kind.BRANCH:
            return span
        differing = self._arguments.get(StepRef(node.branch.runs[0], node.branch.steps[0][0]))
        return span if differing is None else replace(span, preview=differing)

    def _folded_names(self, node: Node, room: int) -> list[Piece]:
        """The names of the folded steps, as many as fit: ``+ get_user ×2, think``."""
        run = self.tree.runs[node.branch.runs[0]]
        names = (run.spans[step[0]].name for step in node.branch.steps[1:])
        label = "  +"
        for name, same in groupby(names):
            count = sum(1 for _ in same)
            label += f"{',' if label[-1] != '+' else ''} {one_line(name, 40)}"
            label += f" {self._glyphs.times}{count}" if count > 1 else ""
            if len(label) > room:
                break
        return [Piece(Clean(label), "dim")]

    def _fold_mark(self, node: Node) -> Piece:
        fold = self.fold(self._index[node.key])
        if fold is None or (fold.open and node.kind is Kind.FORK):
            return Piece(Clean("  "))
        return Piece(Clean(f"{self._glyphs.unfolded if fold.open else self._glyphs.folded} "), "dim")

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
        pieces = [Piece(pad(runs, self._runs_width, right=True), style)]
        if self.has_rates:
            pieces.append(Piece(pad(scored, _PASSED, right=True), style))
        return pieces


# ---- sentences


def p_text(p: float) -> str:
    """A p-value: ``p = 1.00``, ``p = 0.048``, ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def chance_text(fork: Fork, *, detail: bool = False) -> Clean:
    """The result of the test of a fork, with its p after Holm's correction unless it is 1; empty without a test.

    `detail`: also the p before the correction, if only the correction makes it chance.
    """
    if fork.p is None or fork.adjusted_p is None:
        return Clean("")
    numbers = [p_text(fork.adjusted_p)] if fork.adjusted_p < _SAYS_NOTHING else []
    if detail and fork.p < ALPHA <= fork.adjusted_p:
        numbers.append(f"{p_text(fork.p)} before correction for the number of forks")
    result = "decisive" if fork.is_decisive else "could be chance"
    return Clean(f"{result} ({', '.join(numbers)})" if numbers else result)


def has_rates(tree: RunTree) -> bool:
    """Whether at least two trials passed or failed and count, so that rates can be compared."""
    counted = (trial.result for trial in tree.trials if trial.excluded is None)
    return sum(result in (Result.PASSED, Result.FAILED) for result in counted) > 1


def fork_sentence(fork: Fork, side: int, width: int, *, rates: bool, glyphs: Glyphs = UNICODE) -> Line:
    """``3 of 4 here, 1 of 3 passed · elsewhere 1 of 1 passed · could be chance (p = 0.24)``; shorter if too wide.

    Without `rates` only the number of runs.
    """
    if not rates:
        count = f"{len(fork.sides[side].branch.runs)} of {len(fork.parent.runs)} here"
        return (Piece(Clean(count), "text bold"),)
    lines = [_fork_sentence(fork, side, glyphs, detail) for detail in (2, 1, 0)]
    return next((line for line in lines if width_of(line) <= width), lines[-1])


def _fork_sentence(fork: Fork, side: int, glyphs: Glyphs, detail: int) -> Line:
    """The sentence at a level of detail: 0 is the shortest, 2 has both p."""
    sep = " of " if detail else "/"
    here, elsewhere = fork.sides[side], fork.elsewhere(side)
    count = f"{len(here.branch.runs)}{sep}{len(fork.parent.runs)} here"
    passed = [
        f"{rate.passed}{sep}{rate.scored} passed" if rate.scored else "none scored" for rate in (here.scored, elsewhere)
    ]
    return (
        Piece(Clean(f"{count}, {passed[0]}"), "text bold"),
        _dot(glyphs),
        Piece(Clean(f"elsewhere {passed[1] if detail else passed[1].removesuffix(' passed')}"), "text"),
        _dot(glyphs),
        Piece(chance_text(fork, detail=detail > 1) or _NO_TEST, "accent bold" if fork.is_decisive else "text"),
    )


def tree_sentence(tree: RunTree, glyphs: Glyphs = UNICODE, by_chance: float = 0.0) -> Line:
    """The forks of the whole tree. `by_chance`: decisive forks that chance alone gives over all tasks shown."""
    runs, forks = len(tree.runs), len(tree.forks)
    if not forks:
        steps = quantity(tree.nodes, "step")
        return (Piece(Clean(f"no forks: {quantity(runs, 'trial')} with the same {steps}"), "sec"),)
    decisive = sum(fork.is_decisive for fork in tree.forks)
    pieces = [Piece(Clean(f"{quantity(runs, 'trial')}, {quantity(forks, 'fork')}"), "sec")]
    if any(fork.p is not None for fork in tree.forks):
        label = f"{grouped(decisive)} decisive" if decisive else "none decisive: all could be chance"
        pieces += [_dot(glyphs), Piece(Clean(label), "accent bold" if decisive else "sec")]
        if decisive and by_chance:
            pieces.append(Piece(Clean(f" (chance alone: up to {by_chance:.2g} over all tasks shown)"), "dim"))
    return tuple(pieces)


def trials_sentence(tree: RunTree, left_out: int = 0, glyphs: Glyphs = UNICODE) -> Line:
    """How many trials passed and failed, where there are rates; how many count in no rate or are not in the tree."""
    counted = Counter(trial.result for trial in tree.trials if trial.excluded is None)
    facts = [
        (counted[Result.PASSED], "passed", "status.ok"),
        (counted[Result.FAILED], "failed", "status.error"),
        (counted[Result.UNGRADED], "ungraded", "status.warn"),
        (counted[Result.UNSCORED], "unscored", "sec"),
        (counted[Result.RUNNING], "running", "status.running"),
    ]
    facts = facts if has_rates(tree) else []
    facts += [
        (sum(trial.excluded is not None for trial in tree.trials), "inherited or copied", "sec"),
        (len(tree.unreadable), "unreadable", "status.warn"),
        (left_out, "not read", "status.warn"),
    ]
    pieces: list[Piece] = []
    for number, label, style in facts:
        if number:
            pieces += [*([_dot(glyphs)] if pieces else []), Piece(Clean(f"{grouped(number)} {label}"), style)]
    return tuple(pieces)


def _dot(glyphs: Glyphs) -> Piece:
    return Piece(Clean(f" {glyphs.dot} "), "dim")


# ---- lanes: a column per run, or per few runs where there is no room


_SHARE: Final = 5
"""One of so many cells of the width are lanes, at most."""
_WIDEST: Final = 3
"""Cells of a lane, at most."""
_WIDE: Final = 100
"""Width from which lanes may be that wide."""
_DIGITS: Final = 9
_NEUTRAL: Final = "kind.agent"


def trial_sign(trial: Trial, glyphs: Glyphs) -> tuple[Clean, str]:
    """Sign and style of the outcome of a trial."""
    if trial.result is Result.PASSED:
        return glyphs.ok, "status.ok"
    if trial.result is Result.FAILED:
        return (glyphs.wrong, "status.error") if trial.run.is_wrong else (glyphs.error, "status.error")
    if trial.result is Result.UNGRADED:
        return glyphs.ungraded, "status.warn"
    return run_sign(trial.run, trial.run.status, glyphs) if trial.result is Result.RUNNING else (glyphs.zero, _NEUTRAL)


class Lanes:
    """The order of the lanes, and their cells in each row."""

    def __init__(self, tree: RunTree, numbers: Sequence[int], glyphs: Glyphs) -> None:
        """`numbers`: for each run, the number of its trial."""
        self._numbers, self._glyphs = numbers, glyphs
        self.order = _order(tree)
        """Positions in ``tree.runs``, from left to right."""
        self._lane = {run: lane for lane, run in enumerate(self.order)}
        self._signs = [trial_sign(tree.trials[run], glyphs) for run in self.order]

    def _slots(self, width: int) -> tuple[int, int]:
        """(Slots for lanes, cells of each)."""
        count, room = len(self.order), max(8, width // _SHARE)
        size = min(_WIDEST if width >= _WIDE else _WIDEST - 1, room // count)
        return (count, size) if size else (room, 1)

    def width(self, width: int) -> int:
        """Cells of all lanes in a row of `width` cells."""
        slots, size = self._slots(width)
        return slots * size

    def _groups(self, width: int) -> list[range]:
        """The lanes of each slot."""
        slots, _ = self._slots(width)
        count = len(self.order)
        return [range(i * count // slots, (i + 1) * count // slots) for i in range(slots)]

    def pieces(self, runs: Collection[int], width: int, selected: int | None, *, fork: bool = False) -> list[Piece]:
        """The lanes of a row: of `runs` in the colors of their outcomes, those of later rows thin, others blank."""
        lanes = {self._lane[run] for run in runs}
        low, high = min(lanes), max(lanes)
        chosen = self._lane.get(selected) if selected is not None else None
        _, size = self._slots(width)
        pieces = []
        for group in self._groups(width):
            here = [lane for lane in group if low <= lane <= high]
            if not here:
                glyph = " " if group[-1] < low else self._glyphs.track
                pieces.append(Piece(Clean(glyph.ljust(size)), "line"))
            else:
                pieces += self._cell(here, chosen, size, fork=fork, last=here[-1] == high)
        return pieces

    def _cell(self, lanes: Sequence[int], chosen: int | None, size: int, *, fork: bool, last: bool) -> list[Piece]:
        style = self._style(lanes, chosen)
        glyphs = self._glyphs
        glyph = glyphs.fork if fork else glyphs.ends[-1] if chosen in lanes else glyphs.thumb
        gap = self._glyphs.container if fork and not last else " "
        return [Piece(Clean(glyph), style), *([Piece(Clean(gap * (size - 1)), "dim")] if size > 1 else [])]

    def _style(self, lanes: Sequence[int], chosen: int | None) -> str:
        """The color of the selected lane, else of most lanes."""
        if chosen in lanes and chosen is not None:
            return self._signs[chosen][1]
        if len(lanes) == 1:
            return self._signs[lanes[0]][1]
        return Counter(self._signs[lane][1] for lane in lanes).most_common(1)[0][0]

    def labels(self, width: int, selected: int | None) -> list[Piece]:
        """The number of each trial if they fit; the selected one stands out."""
        chosen = self._lane.get(selected) if selected is not None else None
        _, size = self._slots(width)
        pieces = []
        for group in self._groups(width):
            here = chosen in group
            text = self._glyphs.unfolded if here else " "
            if max(self._numbers) <= _DIGITS:
                text = str(self._numbers[self.order[group[0]]])
            pieces.append(Piece(Clean(text), "accent bold" if here else "dim"))
            if size > 1:
                pieces.append(Piece(Clean(" " * (size - 1))))
        return pieces

    def signs(self, width: int, selected: int | None) -> list[Piece]:
        """The outcome of each lane."""
        chosen = self._lane.get(selected) if selected is not None else None
        _, size = self._slots(width)
        pieces = []
        for group in self._groups(width):
            lane = chosen if chosen in group and chosen is not None else group[0]
            sign = self._signs[lane][0]
            pieces.append(Piece(sign, self._style(group, chosen) + (" bold" if chosen in group else "")))
            if size > 1:
                pieces.append(Piece(Clean(" " * (size - 1))))
        return pieces


def _order(tree: RunTree) -> list[int]:
    """The runs in the order of the leaves, smaller branches first."""
    order: list[int] = []
    todo = [tree.root]
    while todo:
        branch = todo.pop()
        if branch.children:
            todo += sorted(branch.children, key=lambda child: len(child.runs))[::-1]
        else:
            order += branch.runs
    return order

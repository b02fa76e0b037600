"""From what formats read to what everybody else uses: `Chunk`s in, an immutable `Run` out.

`RunBuilder` is the only place that mends reality: newer versions of a span replace older ones, spans whose parent is
missing move to the top, cycles are cut, all without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tracetui.model.run import GOING_ON, Header, Problem, Run, RunBody, RunRef, RunSummary, Step, stand
from tracetui.model.span import Body, Span, Status
from tracetui.model.tally import CONTAINERS, NO_USAGE, GrowingTally, Tally, summary_of
from tracetui.model.tree import Tree

__all__ = ["CONTAINERS", "NO_USAGE", "RunBuilder", "Tally", "summary_of"]


class RunBuilder:
    """Collects what `Format.read` returns for one run; `build` makes the immutable `Run` of it at any time.

    Building again costs what came since: in Python for that, and copies of arrays for what was there. Only where spans
    came elsewhere than at the end of the tree, or moved in it, the whole order is made anew.
    """

    _tree: Tree
    _steps: list[Step]
    _tally: GrowingTally
    _shape: tuple[tuple[int, ...], tuple[int, ...], dict[str, int]] | None
    """Depths, sizes and index, as the last run has them; None when spans were added since."""

    def __init__(self, ref: RunRef, load: Callable[[Span], Body]) -> None:
        self._ref = ref
        self._load = load
        self._revision = 0
        self.reset()

    def __len__(self) -> int:
        """How many spans are known."""
        return len(self._spans)

    def reset(self) -> None:
        """Forget everything: the source was rewritten."""
        self._spans: dict[str, Span] = {}
        self._new: dict[str, None] = {}
        self._unended: set[str] = set()
        self._problems: list[Problem] = []
        self._torn = self._lost = 0
        self._header: Header | None = None
        self._body = RunBody()
        self._is_ordered = False

    def add(
        self,
        spans: Iterable[Span],
        *,
        header: Header | None = None,
        body: RunBody | None = None,
        problems: Iterable[Problem] = (),
    ) -> bool:
        """Take in one chunk: a span with a known id replaces its older version and keeps its place.

        True if the run may differ from what it was.
        """
        known = len(self._problems), self._header, self._body
        changed = False
        for span in spans:
            changed = True
            self._spans[span.id] = span
            self._new[span.id] = None
            if span.status is Status.RUNNING:
                self._unended.add(span.id)
            else:
                self._unended.discard(span.id)
        self._header = header or self._header
        self._body = body or self._body
        for problem in problems:
            self._problems.append(problem)
            self._torn += problem.torn
            self._lost += problem.lost or 0
        return changed or known != (len(self._problems), self._header, self._body)

    def summary(self, *, modified_at: float = 0.0, moving: bool = False, failure: Problem | None = None) -> RunSummary:
        """The summary of the run as known so far: that of `build`, for less."""
        self._bring_up()
        return self._summary(len(self._all_problems(failure, moving=moving)), modified_at, moving)

    def build(
        self,
        *,
        modified_at: float = 0.0,
        moving: bool = False,
        complete: bool = True,
        failure: Problem | None = None,
    ) -> Run:
        """The run as known so far; `failure` is a problem that it has now, and may not have the next time."""
        self._revision += 1
        self._bring_up()
        tree, problems = self._tree, self._all_problems(failure, moving=moving)
        if self._shape is None:
            self._shape = tuple(tree.depths), tuple(tree.sizes), tree.index.copy()
        depths, sizes, index = self._shape
        summary = self._summary(len(problems), modified_at, moving)
        spans, unended = tuple(tree.spans), tuple(sorted(tree.index[span_id] for span_id in self._unended))
        return Run(
            summary=summary,
            body=self._body,
            spans=spans if summary.status in GOING_ON else stand(spans, unended, going=False),
            unended=unended,
            depths=depths,
            sizes=sizes,
            steps=tuple(self._steps),
            problems=problems,
            index=index,
            load=self._load,
            revision=self._revision,
            complete=complete,
        )

    def _summary(self, problems: int, modified_at: float, moving: bool) -> RunSummary:
        tally = self._tally.of(self._tree.spans)
        tally.problems = problems
        tally.torn, tally.unread = self._torn, tally.unread + self._lost
        header = self._header or Header(id=self._ref.key or self._ref.path, name=self._ref.path, ended=False)
        return summary_of(self._ref, header, tally, modified_at=modified_at, moving=moving)

    def _all_problems(self, failure: Problem | None, *, moving: bool) -> tuple[Problem, ...]:
        header = self._header
        cut = header.unfinished if header is not None and not moving else ()
        to_come = header is not None and header.by_start and not header.ended  # a parent may come after those below it
        mended = self._tree.problems(self._ref.path, parents_to_come=to_come)
        return (*self._problems, *cut, *([failure] if failure else ()), *mended)

    def _bring_up(self) -> None:
        """Put what came since the last time in its place."""
        new, self._new = self._new, {}
        is_few = self._is_ordered and 2 * len(new) <= len(self._spans)
        if not is_few or not all(self._put(self._spans[span_id]) for span_id in new):
            self._order_anew()

    def _put(self, span: Span) -> bool:
        """Put one span in its place; False if that takes a new order."""
        tree = self._tree
        position = tree.index.get(span.id)
        if position is None:
            self._shape = None
            if span.is_step:
                self._steps.append(Step(span.step, span.id))
            return tree.put(span)
        old = tree.spans[position]
        self._tally.exchange(position, old, span)
        if not tree.put(span):
            return False
        if (old.is_step, old.step) != (span.is_step, span.step):
            self._steps = _steps(tree.spans)
        return True

    def _order_anew(self) -> None:
        self._tree = Tree(self._spans, by_start=self._header is not None and self._header.by_start)
        self._steps = _steps(self._tree.spans)
        self._tally = GrowingTally()
        self._shape = None
        self._is_ordered = True


def _steps(spans: Iterable[Span]) -> list[Step]:
    return [Step(span.step, span.id) for span in spans if span.is_step]

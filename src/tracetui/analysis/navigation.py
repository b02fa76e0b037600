"""Navigates the spans of a run by id: folds, errors, the next span of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

from tracetui.model import Operation, Run, Span, Status
from tracetui.model.build import CONTAINERS

_ABANDONED: Final = "abandoned"
"""Note on the spans of an abandoned branch."""


def fold_all(run: Run) -> frozenset[str]:
    """The folds that leave only top-level spans visible."""
    return fold_to_depth(run, 0)


def initial_folds(run: Run) -> frozenset[str]:
    """The initial folds of a run: abandoned branches."""
    return frozenset(span.id for i, span in enumerate(run.spans) if is_abandoned_branch(run, i))


def is_abandoned_branch(run: Run, position: int) -> bool:
    """Whether a span is the root of an abandoned branch."""
    if run.sizes[position] == 1 or _ABANDONED not in run.spans[position + 1].note:
        return False
    return _ABANDONED in run.spans[position + 1].notes and _ABANDONED not in run.spans[position].notes


def abandoned_branches(run: Run, ids: Iterable[str]) -> frozenset[str]:
    """Filter ids to roots of abandoned branches."""
    return frozenset(one for one in ids if one in run.index and is_abandoned_branch(run, run.index[one]))


def in_abandoned_branch(run: Run, span: Span) -> bool:
    """Whether a span is in an abandoned branch."""
    return _ABANDONED in span.notes or is_abandoned_branch(run, run.index[span.id])


def fold_to_depth(run: Run, depth: int) -> frozenset[str]:
    """The folds that leave the tree open down to `depth` (0: top level only)."""
    return frozenset(
        span.id for span, at, size in zip(run.spans, run.depths, run.sizes, strict=True) if size > 1 and at >= depth
    )


def above(span_id: str, run: Run) -> set[str]:
    """Ids of the ancestors of a span."""
    found, at = set(), run.parent(run.index[span_id])
    while at is not None:
        found.add(run.spans[at].id)
        at = run.parent(at)
    return found


def errors(run: Run) -> list[str]:
    """Ids of the failed spans in order, without containers that have a failed descendant."""
    found: list[str] = []
    for i, span in enumerate(run.spans):
        if span.status is not Status.ERROR:
            continue
        below = range(i + 1, i + run.sizes[i])
        if span.operation in CONTAINERS and any(run.spans[k].status is Status.ERROR for k in below):
            continue
        found.append(span.id)
    return found


def starting_span(run: Run) -> str | None:
    """The initial cursor: the first error of a failed run, the end of a running one, else the first prompt of the run's
    own spans, else its first step.
    """
    if not run.spans:
        return None
    if run.summary.status is Status.ERROR:
        error = run.summary.first_error
        if error is not None and error.span is not None and error.span in run.index:
            return error.span
        failed = errors(run)
        return failed[-1] if failed else run.spans[-1].id
    if run.summary.status is Status.RUNNING:
        return run.spans[-1].id
    return _first_prompt(run) or (run.steps[0].span if run.steps else run.spans[0].id)


def call_before(run: Run, span: Span) -> Span | None:
    """The model call before a failed span that isn't one, of the same agent: what the model had seen; None if there is
    none nearby.
    """
    if span.status is not Status.ERROR:
        return None
    position = run.index.get(span.id)
    if position is None or span.operation is Operation.CHAT:
        return None
    for at in range(position - 1, max(-1, position - _NEARBY), -1):
        if run.spans[at].operation is Operation.CHAT and run.depths[at] <= run.depths[position]:
            return run.spans[at]
    return None


_NEARBY: Final = 200


def _first_prompt(run: Run) -> str | None:
    """The first own prompt of a run; None if work began without one, since later prompts may belong to a sub-agent."""
    for span in run.spans:
        if span.taken_over:
            continue
        if span.operation is Operation.MESSAGE and span.name == "user":
            return span.id
        if span.operation in (Operation.CHAT, Operation.EXECUTE_TOOL):
            return None
    return None


def next_similar(run: Run, span_id: str, what: Literal["tool", "sibling", "model"], direction: int) -> str | None:
    """The next (`direction` 1) or previous (-1) span with the same name, the same parent, or of a model call."""
    position = run.index.get(span_id)
    if position is None:
        return None
    test = _TESTS[what]
    here = run.spans[position]
    stop = len(run.spans) if direction > 0 else -1
    for i in range(position + direction, stop, direction):
        if test(here, run.spans[i]):
            return run.spans[i].id
    return None


_TESTS: Final[dict[str, Callable[[Span, Span], bool]]] = {
    "tool": lambda here, there: there.name == here.name and there.operation is here.operation,
    "sibling": lambda here, there: there.parent_id == here.parent_id,
    "model": lambda here, there: there.operation is Operation.CHAT,
}

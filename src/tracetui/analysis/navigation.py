"""Navigates the spans of a run by id: folds, errors, the next span of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

from tracetui.model import Operation, Run, Span, Status
from tracetui.model.build import CONTAINERS

_ABANDONED: Final = "abandoned"
"""Note of spans of a branch that somebody went back from."""


def fold_all(run: Run) -> frozenset[str]:
    """The folds that leave only the top of the tree."""
    return to_depth(run, 0)


def first_folds(run: Run) -> frozenset[str]:
    """The folds of a run that is opened: of branches that somebody went back from, only the first row is seen."""
    return frozenset(span.id for i, span in enumerate(run.spans) if is_left_branch(run, i))


def is_left_branch(run: Run, position: int) -> bool:
    """Whether a span is a branch that somebody went back from."""
    if run.sizes[position] == 1 or _ABANDONED not in run.spans[position + 1].note:
        return False
    return _ABANDONED in run.spans[position + 1].notes and _ABANDONED not in run.spans[position].notes


def left_branches(run: Run, ids: Iterable[str]) -> frozenset[str]:
    """Those of some spans that are such branches."""
    return frozenset(one for one in ids if one in run.index and is_left_branch(run, run.index[one]))


def in_left_branch(run: Run, span: Span) -> bool:
    """Whether a span is such a branch, or in one."""
    return _ABANDONED in span.notes or is_left_branch(run, run.index[span.id])


def to_depth(run: Run, depth: int) -> frozenset[str]:
    """The folds that leave the tree open down to `depth` (0 = only the top)."""
    return frozenset(
        span.id for span, at, size in zip(run.spans, run.depths, run.sizes, strict=True) if size > 1 and at >= depth
    )


def above(span_id: str, run: Run) -> set[str]:
    """The spans that contain a span."""
    found, at = set(), run.parent(run.index[span_id])
    while at is not None:
        found.add(run.spans[at].id)
        at = run.parent(at)
    return found


def errors(run: Run) -> list[str]:
    """The failed spans in order; a container that only failed because of what is in it is left out."""
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
    """Where the cursor starts: at the failure of a failed run, at the end of one that runs, else at the first prompt
    of its own (not what a fork took over, nor what a program said first), else at its first step.
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


def _first_prompt(run: Run) -> str | None:
    """The first prompt of a run's own; None where work began without one: a later one may be that of a sub-agent."""
    for span in run.spans:
        if span.taken_over:
            continue
        if span.operation is Operation.MESSAGE and span.name == "user":
            return span.id
        if span.operation in (Operation.CHAT, Operation.EXECUTE_TOOL):
            return None
    return None


def next_same(run: Run, span_id: str, what: Literal["tool", "sibling", "model"], direction: int) -> str | None:
    """The next (`direction` 1) or previous (-1) span: with the same name, of the same parent, or a model call."""
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

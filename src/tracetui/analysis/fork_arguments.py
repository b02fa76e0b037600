"""The arguments that distinguish the branches of a fork that begin with the same tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from tracetui.analysis.run_tree import Fork, RunTree
from tracetui.analysis.values import value_text
from tracetui.diff.noise import Noise
from tracetui.diff.step import documents
from tracetui.diff.step_key import Header, answer_text, header_key
from tracetui.diff.values import INPUT, changes_of
from tracetui.model import Body, Operation, Span

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
        return "\n".join(value_text(one) for one in documents(body.input_messages))
    return body.input


def _differing(values: Sequence[Any]) -> list[str]:
    """The part of each value that differs from the first value; of the first, from the second."""
    pairs = [(values[1], values[0]), *((values[0], other) for other in values[1:])]
    return [_difference(base, value) for base, value in pairs]


def _difference(base: Any, value: Any) -> str:
    changes = changes_of(base, value, Noise(), side=INPUT)
    change = next((one for one in changes if one.noise is None), None)
    if change is None:
        return value_text(value)[:_LONGEST]
    words = _after_common(value_text(change.a), value_text(change.b))
    if change.path_b is None:
        return f"without {change.path}"
    is_only = isinstance(value, dict) and [*value] == [change.path]
    return words if is_only or not change.path else f"{change.path}={words}"


def _after_common(base: str, text: str) -> str:
    """A text without the long beginning that it has in common with another."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(base, text, strict=False)))
    start = common - _CONTEXT if common > _COMMON else 0
    if start:
        start = text.find(" ", start, common) + 1 or start
    return ("…" if start else "") + text[start : start + _LONGEST]

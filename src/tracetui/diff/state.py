"""What a graph had accumulated after a superstep, in A and in B."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.diff.noise import Noise
from tracetui.diff.values import Change, changes_of
from tracetui.model import Run

_INHERITED: Final = "inherited_state"
"""Attribute of a step of a fork: the values it began with that its original had written."""


class StateDiff(msgspec.Struct, frozen=True):
    """The accumulated state of both runs after one superstep; None where a run keeps none, or had not begun."""

    superstep: int
    a: dict[str, Any] | None
    b: dict[str, Any] | None
    changes: tuple[Change, ...] = ()
    ignored: dict[str, int] = {}


def supersteps(a: Run, b: Run) -> list[int]:
    """The numbers of the steps of both runs, in order."""
    return sorted({step.number for run in (a, b) for step in run.steps if step.number is not None})


def over_by_then(run: Run, superstep: int) -> bool:
    """Whether the last step of a run was before that superstep."""
    return max((step.number for step in run.steps if step.number is not None), default=superstep) < superstep


def state_diff(a: Run, b: Run, superstep: int, noise: Noise | None = None) -> StateDiff:
    """Compare what both had accumulated after `superstep`; a run that had ended by then keeps its last state."""
    noise = noise or Noise()
    left, right = state_after(a, superstep), state_after(b, superstep)
    changes = changes_of(left or {}, right or {}, noise)
    return StateDiff(superstep, left, right, tuple(changes), dict(noise.counts))


def state_after(run: Run, superstep: int) -> dict[str, Any] | None:
    """The accumulated state after the last step up to that number, with what a fork inherited; None if none is kept."""
    numbers = [step.number for step in run.steps if step.number is not None and step.number <= superstep]
    last = max(numbers, default=None)
    for step in reversed(run.steps):
        span = run.span(step.span) if step.number == last and last is not None else None
        if span is not None and (body := run.load(span)).state is not None:
            inherited = body.attributes.get(_INHERITED)
            return (inherited if isinstance(inherited, dict) else {}) | body.state
    return None

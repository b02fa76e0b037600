"""Events of followed runs.

A consumer that stores the latest version of every span by id, and clears a run on reset, always ends up with the same
state as reading the run from its start.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tracetui.model.run import Problem, Run, TaskKey
from tracetui.model.summary import RunSummary


class RunChanged(msgspec.Struct, frozen=True):
    """A run appeared or its summary changed. Precedes the first span of a run."""

    summary: RunSummary
    replay: str | None = None
    """Address of the run that it replays, if found."""
    task: TaskKey | None = None
    """Task of that run, if it is inherited."""


class SpanChanged(msgspec.Struct, frozen=True):
    """The span at `position` of `run` is new or changed."""

    run: Run
    position: int


class RunReset(msgspec.Struct, frozen=True):
    """Earlier events of the run or file at `address` are void: it was rewritten, repaired or deleted."""

    address: str


class RunEnded(msgspec.Struct, frozen=True):
    """A run ended: ok, error or cancelled."""

    summary: RunSummary


class ProblemMet(msgspec.Struct, frozen=True):
    """Something can't be read: a file that stopped changing, or a location inside a run."""

    problem: Problem


Event: TypeAlias = RunChanged | SpanChanged | RunReset | RunEnded | ProblemMet

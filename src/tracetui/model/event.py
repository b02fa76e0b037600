"""What happens to runs while somebody follows them, one thing at a time.

Who keeps the latest version of every span by its id, and empties a run when it is reset, has at any quiet moment what
reading the run from its start gives.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tracetui.model.run import Problem, Run, RunSummary


class RunChanged(msgspec.Struct, frozen=True):
    """A run appeared, or its summary is another one now. Comes before the first span of a run."""

    summary: RunSummary
    replay: str | None = None
    """Address of the run that it replays, if that is known."""


class SpanChanged(msgspec.Struct, frozen=True):
    """The span at `position` of `run` is new, or something about it is."""

    run: Run
    position: int


class RunReset(msgspec.Struct, frozen=True):
    """Nothing holds any more that was told of the run at `address`, or of its file: rewritten, healed or gone."""

    address: str


class RunEnded(msgspec.Struct, frozen=True):
    """A run came to its end: it is ok, failed or was cancelled."""

    summary: RunSummary


class ProblemMet(msgspec.Struct, frozen=True):
    """Something cannot be read: a file that has been still for a while, or a place inside a run."""

    problem: Problem


Event: TypeAlias = RunChanged | SpanChanged | RunReset | RunEnded | ProblemMet

"""Contrasts the runs of every cause with passed runs, for a document, which waits for all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tracetui.analysis.contrast import Contrast, comparable
from tracetui.analysis.triage import Group
from tracetui.live.jobs.aggregate import Contrasts
from tracetui.model import RunSummary
from tracetui.sources.base import Source
from tracetui.store.relations import Relations

MOST_READ: Final = 100
"""Maximum runs read per cause, and per set of runs that it is contrasted with."""


def shared_by(source: Source, runs: Sequence[RunSummary], groups: Iterable[Group]) -> dict[str, Contrast]:
    """The contrast of every cause of these runs with several of them, by its id.

    Raises `LinkLost`.
    """
    contrasts = Contrasts(source, original=Relations(runs).original, most=MOST_READ)
    several = [group for group in groups if len(group.runs) > 1]
    return {group.id: contrasts.of(group.runs, comparable(runs, set(group.runs))) for group in several}

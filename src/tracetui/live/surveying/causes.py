"""The contrast of each failure signature, for documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tracetui.analysis.contrast import Contrast, comparable
from tracetui.live.surveying.jobs import Contrasts
from tracetui.model import RunSummary
from tracetui.sources.base import Source
from tracetui.store.relations import Relations
from tracetui.store.triage import Group

MAX_READ: Final = 100
"""Maximum runs to read per signature, and to compare with."""


def shared_by(source: Source, runs: Sequence[RunSummary], groups: Iterable[Group]) -> dict[str, Contrast]:
    """The contrast of each signature with several runs, by signature id.

    Raises `LinkLost`.
    """
    contrasts = Contrasts(source, original=Relations(runs).original, most=MAX_READ)
    several = [group for group in groups if len(group.runs) > 1]
    return {group.id: contrasts.of(group.runs, comparable(runs, set(group.runs))) for group in several}

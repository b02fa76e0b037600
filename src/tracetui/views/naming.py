"""What a run is called where there are few cells: its name and label, and its id as people tell runs apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from tracetui.model import RunRef, RunSummary
from tracetui.text import Clean, truncate_middle
from tracetui.views.masking import clean

SHORT: Final = 20
"""Cells of an id beside a name."""
_HEAD: Final = 8
_RANDOM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}", re.I)
"""A UUID or the id of an OpenTelemetry trace: its head tells it from the others of a list."""


def called(run: RunSummary) -> Clean:
    """The name of a run, and what tells it from others of that name: ``errors_task bad #2``."""
    return clean(" ".join(filter(None, (run.name, run.label))) or run.id, 200)


def short_id(ident: str, size: int = SHORT) -> Clean:
    """An id in at most `size` cells: of a random one its head, of others both ends."""
    whole = clean(ident, 200)
    if _RANDOM.fullmatch(whole):
        return Clean(whole[:_HEAD])
    return truncate_middle(whole, size)


def telling(runs: Iterable[RunSummary]) -> dict[RunRef, str]:
    """What each run of a list can be named by: the shortest head of a random id that no other id begins with, eight
    characters at least; other ids whole. Runs that share an id share it."""
    ids = {run.ref: run.id for run in runs}
    ordered = sorted(set(ids.values()))
    shared = [0, *(_shared(one, other) for one, other in pairwise(ordered)), 0]
    heads = {one: max(_HEAD, 1 + max(shared[i : i + 2])) for i, one in enumerate(ordered)}
    return {ref: one[: heads[one]] if _RANDOM.fullmatch(one) else one for ref, one in ids.items()}


def _shared(one: str, other: str) -> int:
    """With how many of the same characters two ids begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))

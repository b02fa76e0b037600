"""``stats`` adds up what ``ls`` shows, in every grouping, over all samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.shared import SHARED
from tracetui.analysis.statistics import By, Row, Statistics
from tracetui.cli.reading import Listing, listing_of
from tracetui.live.load import FileCaches, read_run
from tracetui.model import Run, Status, Usage
from tracetui.model.claims import counts_elsewhere
from tracetui.sources.local import LocalSource

FORMATS = Path(__file__).parents[1] / "formats"
OWN: Final = sorted(FORMATS.glob("*/*/input"))
BESIDE: Final = [] if SHARED is None else sorted(path for path in SHARED.glob("samples/cases/*/in"))
CONTRADICTORY: Final = FORMATS / "paprika" / "shapes"
"""Has a run with a recorded total below the sum of its calls."""
PARTIAL: Final = {By.TOOL, By.NODE}
"""Groupings of some spans only."""
COUNTS: Final = [name for name in Usage.__struct_fields__ if name.endswith("_tokens")]


def _rows(listing: Listing, marked: Iterable[Run]) -> dict[By, Sequence[Row]]:
    listed = {run.ref for run in listing.runs}
    counters = {by: Statistics(by, listed) for by in By}
    for run in marked:
        for counter in counters.values():
            counter.add(run)
    return {by: counter.rows() for by, counter in counters.items()}


def _errors(run: Run) -> int:
    return sum(span.status is Status.ERROR and not counts_elsewhere(span) for span in run.spans)


def _sums(usages: Iterable[Usage | None]) -> dict[str, int]:
    total = sum((usage for usage in usages if usage is not None), Usage())
    return {name: getattr(total, name) or 0 for name in COUNTS}


@pytest.mark.parametrize("folder", [*OWN, *BESIDE], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_rows_of_every_grouping_add_up_to_the_list(folder: Path) -> None:
    listing = listing_of(LocalSource(), [str(folder)], None, deep=True)
    if folder.parent == CONTRADICTORY:
        listing.runs[:] = [run for run in listing.runs if not run.ref.path.endswith("named-otherwise.json")]
    source, caches = LocalSource(), FileCaches()
    marked = [listing.claims.mark(read_run(source, run.ref, caches.for_run(run.ref))) for run in listing.runs]
    assert [_errors(run) for run in marked] == [run.errors or 0 for run in listing.runs]
    assert [run.summary.errors for run in marked] == [run.errors for run in listing.runs]
    listed = _sums(run.usage for run in listing.runs)
    for by, rows in _rows(listing, marked).items():
        if by not in PARTIAL:
            assert _sums(row.usage for row in rows) == listed, by
        if by is By.TOOL:
            assert sum(row.count for row in rows) == sum(run.tool_calls or 0 for run in listing.runs)

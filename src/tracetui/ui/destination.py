"""Where the command line asked to go: ``tracetui runs.db#wf-1/3`` opens that run at its step 3."""

from __future__ import annotations

from tracetui.errors import UsageError
from tracetui.model import Run, RunRef, RunSummary
from tracetui.store import address
from tracetui.store.address import Address


def run_at(wanted: Address, runs: dict[RunRef, RunSummary]) -> RunRef | None:
    """The run that an address names, None while it is not listed."""
    for ref, run in runs.items():
        if ref.path == wanted.path and wanted.key in (None, ref.key, run.id):
            return ref
    return None


def follows(wanted: Address | None, follow: bool) -> bool | None:
    """Whether the run that an address names is followed: True, if it is still going (False), or never (None), because
    the address goes to one of its spans.
    """
    return None if wanted is not None and wanted.parts and not follow else follow


def span_at(wanted: Address, run: Run) -> tuple[str | None, str]:
    """(Id of the span that an address names in its run, what is wrong with the address)."""
    if wanted.path != run.summary.ref.path or not wanted.parts:
        return None, ""
    try:
        span = address.target(run, wanted.parts).span
    except UsageError as error:
        return None, str(error)
    return (span.id if span is not None else None), ""

"""Decides which spans of a run count as its own.

A run may hold spans that another run counts: those of a nested run that is listed by itself, and those that a fork or a
copy took over from its original.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum

from tracetui.model.run import Run, RunRef
from tracetui.model.span import COUNTS_HERE, Span


class Ownership(Enum):
    """To which run a span counts."""

    OWN = "own"
    """To the run that holds it."""
    LISTED = "listed"
    """To another run that is listed: a nested run, or the original of a fork."""
    TAKEN_OVER = "taken over"
    """To the original of this run, which may be listed or not."""


def ownership(run: Run, listed: Container[RunRef] = ()) -> list[Ownership]:
    """The ownership of every span of a run, if the runs of `listed` are counted (or searched) as well.

    What is below a span that another run owns is never the run's own. A nested run that is not listed counts to the
    innermost listed run that holds it.
    """
    ref, found = run.summary.ref, list[Ownership]()
    listed_end = taken_over_end = 0
    for i, span in enumerate(run.spans):
        if i >= listed_end:
            if span.owner is not None and RunRef(ref.format, ref.path, span.owner) in listed:
                listed_end = i + run.sizes[i]
            elif i >= taken_over_end and _is_taken_over(span):
                taken_over_end = i + run.sizes[i]
        taken_over = Ownership.TAKEN_OVER if i < taken_over_end else Ownership.OWN
        found.append(Ownership.LISTED if i < listed_end else taken_over)
    return found


def own_spans(run: Run, listed: Container[RunRef] = ()) -> list[Span]:
    """The spans that count to a run, if the runs of `listed` are counted as well."""
    owned = zip(run.spans, ownership(run, listed), strict=True)
    return [span for span, owner in owned if owner is Ownership.OWN]


def nested_runs(run: Run) -> frozenset[RunRef]:
    """The runs of the same file that own spans of this one."""
    ref = run.summary.ref
    return frozenset(RunRef(ref.format, ref.path, owner) for owner in {span.owner for span in run.spans} if owner)


def _is_taken_over(span: Span) -> bool:
    """Whether the run has it from another: inherited, copied, or restored instead of computed."""
    return (span.taken_over and COUNTS_HERE not in span.notes) or span.status_word == "restored"

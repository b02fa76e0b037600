"""The state of the triage as one immutable value, and the functions that compute the next one. No Textual here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from msgspec.structs import replace

from tracetui.analysis.triage import Group
from tracetui.model import RunRef
from tracetui.store.judgement import Judgement
from tracetui.ui.commands import QUEUE
from tracetui.ui.state import PanesState
from tracetui.views.triage import Member


class TriageState(PanesState, frozen=True, repr_omit_defaults=True):
    """The state of the triage."""

    pane: str = QUEUE
    unfolded: frozenset[Hashable] = frozenset()
    """Keys of the signatures that show their runs."""
    cursor: Hashable = None
    """The row to go to when the screen opens again."""


def go_back(state: TriageState) -> TriageState | None:
    """The state that Esc leads to; None: it leaves the screen."""
    if state.zoom is not None:
        return replace(state, zoom=None)
    return replace(state, pane=QUEUE) if state.pane != QUEUE else None


def fold_signatures(state: TriageState, keys: Iterable[Hashable], *, open_: bool) -> TriageState:
    """Show the runs of these signatures, or hide them."""
    unfolded = state.unfolded | {*keys} if open_ else state.unfolded - {*keys}
    return replace(state, unfolded=unfolded)


def failed_runs(
    groups: Sequence[Group], item: Group | Member | None, step: int
) -> tuple[list[tuple[Group, RunRef]], int]:
    """(The failed runs in the order of the queue, the place of the cursor in it for a step that way)."""
    order = [(group, ref) for group in groups for ref in group.runs]
    here = -1 if step > 0 else len(order)
    for i, (group, ref) in enumerate(order):
        if isinstance(item, Member) and ref == item.run:
            here = i
        elif isinstance(item, Group) and group is item and ref == group.runs[0]:
            here = i - 1 if step > 0 else i
    return order, here


def undecided(
    groups: Sequence[Group], item: Group | Member | None, judgement_of: Callable[[Group | RunRef], Judgement]
) -> Hashable:
    """The next row without a verdict: the next run of the signature, else the next signature; None if there is none."""
    if isinstance(item, Member):
        runs = item.group.runs
        after = runs[runs.index(item.run) + 1 :] if item.run in runs else ()
        following = next((ref for ref in after if judgement_of(ref).verdict is None), None)
        if following is not None:
            return following
    group = item.group if isinstance(item, Member) else item
    keys = [one.digest for one in groups]
    here = keys.index(group.digest) if group is not None else -1
    order = [*groups[here + 1 :], *groups[: here + 1]]
    following_group = next((one for one in order if judgement_of(one).verdict is None), None)
    return following_group.digest if following_group is not None else None

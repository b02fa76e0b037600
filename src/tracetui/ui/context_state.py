"""The state of the context page as one immutable value, and functions that compute the next one. No Textual here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from tracetui.analysis.context import Call
from tracetui.model import RunRef
from tracetui.ui.commands import RIVER
from tracetui.ui.state import PanesState
from tracetui.views.context_page import SORTS


class ContextState(PanesState, frozen=True, repr_omit_defaults=True):
    """The state of the context page."""

    pane: str = RIVER
    ref: RunRef | None = None
    call: int | None = None
    """Number of the selected call; None: that of `span`, else the latest of the run's own conversation."""
    span: str | None = None
    sort: str = SORTS[0]
    """One of `SORTS`."""
    unfolded: frozenset[Hashable] = frozenset()
    """Keys of the unfolded contents."""


def go_back(state: ContextState) -> ContextState | None:
    """The state that Esc leads to; None: it leaves the page."""
    if state.zoom is not None:
        return replace(state, zoom=None)
    return replace(state, pane=RIVER) if state.pane != RIVER else None


def current_call(state: ContextState, calls: Sequence[Call]) -> Call | None:
    """The selected call."""
    if state.call is not None and 0 < state.call <= len(calls):
        return calls[state.call - 1]
    latest = next((call for call in reversed(calls) if call.agent == calls[0].agent), None)
    return next((call for call in calls if call.span == state.span), latest)


def conversation(call: Call | None, calls: Sequence[Call]) -> list[Call]:
    """The calls of the agent of a call."""
    return [] if call is None else [other for other in calls if other.agent == call.agent]


def step_call(state: ContextState, calls: Sequence[Call], step: int) -> ContextState | None:
    """Select the call so many steps further in the same conversation, at most its first or last; None if selected."""
    here = current_call(state, calls)
    if here is None:
        return None
    chain = conversation(here, calls)
    at = next(i for i, call in enumerate(chain) if call.number == here.number)
    wanted = chain[min(max(0, at + step), len(chain) - 1)]
    return None if wanted is here else replace(state, call=wanted.number)


def step_break(state: ContextState, calls: Sequence[Call], step: int) -> ContextState | None:
    """Select the next call with a break, or the one before; None if there is none."""
    here = current_call(state, calls)
    numbers = [call.number for call in calls if call.missed is not None]
    if here is None:
        return None
    is_chosen = state.call is not None or here.span == state.span
    at = here.number if is_chosen else 0 if step > 0 else len(calls) + 1
    beyond = [number for number in numbers if (number - at) * step > 0]
    return replace(state, call=beyond[0] if step > 0 else beyond[-1]) if beyond else None


def step_conversation(state: ContextState, calls: Sequence[Call], step: int) -> ContextState | None:
    """Select the first call of the next agent, or of the one before; None if there is none."""
    here = current_call(state, calls)
    first: dict[str | None, int] = {}
    for call in calls:
        first.setdefault(call.agent, call.number)
    if here is None:
        return None
    order = [*first]
    at = order.index(here.agent) + step
    return replace(state, call=first[order[at]]) if 0 <= at < len(order) else None


def sort_by_next(state: ContextState) -> ContextState:
    """Sort the contents by the next column."""
    return replace(state, sort=SORTS[(SORTS.index(state.sort) + 1) % len(SORTS)])

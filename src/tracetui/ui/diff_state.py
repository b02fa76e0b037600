"""Immutable state of a comparison, and its transitions. Apart from `state`: it imports the comparison itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from tracetui.analysis.step_diff import CHANGES, CONTEXT, PREVIOUS
from tracetui.live.mailbox import Calls, Compare
from tracetui.ui.commands import PAIRS
from tracetui.ui.state import PanesState


class DiffState(PanesState, frozen=True, repr_omit_defaults=True, kw_only=True):
    """State of the comparison of two runs, or of the contexts of two model calls."""

    ask: Compare | Calls
    """The compared runs or calls."""
    pane: str = PAIRS
    """The focused pane; on a narrow screen, the only one."""
    tab: str = CHANGES
    """Preferred tab of the change, for every step that has it."""
    raw: bool = False
    """Whether the change shows values as recorded instead of messages."""
    backwards: bool = False
    """Whether the user walks backwards and enters the next change at its end."""


def go_back(state: DiffState, *, narrow: bool) -> DiffState | None:
    """State after Esc; None leaves the screen."""
    if state.zoom is not None:
        return replace(state, zoom=None)
    inside = narrow and isinstance(state.ask, Compare) and state.pane != PAIRS
    return replace(state, pane=PAIRS) if inside else None


def toggle_ignored(state: DiffState) -> DiffState:
    """Toggle ignoring ids, times and counters."""
    assert isinstance(state.ask, Compare)
    return replace(state, ask=replace(state.ask, strict=not state.ask.strict))


def next_context(state: DiffState, tabs: Collection[str], *, open_tab: str) -> DiffState | None:
    """Cycle context, previous context and changes; None if the step has no context."""
    order = [tab for tab in (CONTEXT, PREVIOUS) if tab in tabs]
    if not order:
        return None
    here = order.index(open_tab) if open_tab in order else -1
    return replace(state, tab=order[here + 1] if here + 1 < len(order) else CHANGES)


def next_tab(state: DiffState, tabs: Sequence[str], step: int, *, open_tab: str) -> DiffState:
    """Show the next or previous tab."""
    return replace(state, tab=tabs[(tabs.index(open_tab) + step) % len(tabs)]) if len(tabs) > 1 else state

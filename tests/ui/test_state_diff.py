"""What every command of a comparison makes of its state, without Textual."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tracetui.analysis.step_diff import CHANGES, CONTEXT, PREVIOUS
from tracetui.live.mailbox import Calls, Compare
from tracetui.model import RunRef
from tracetui.ui import diff_state
from tracetui.ui.commands import CHANGE, SIDES
from tracetui.ui.diff_state import DiffState
from tracetui.ui.state import describe, focus, toggle_zoom

A, B = RunRef("paprika", "/SECRET/a.json"), RunRef("paprika", "/SECRET/b.json")
STATE = DiffState(ask=Compare(A, B))
CONTEXTS = DiffState(ask=Calls(A, "1", "2"), pane=CHANGE)


def test_a_zoomed_pane_is_the_focused_one() -> None:
    zoomed = toggle_zoom(focus(STATE, CHANGE))
    assert (zoomed.pane, zoomed.zoom) == (CHANGE, CHANGE)
    assert focus(zoomed, SIDES).zoom == SIDES
    assert toggle_zoom(zoomed) == focus(STATE, CHANGE)


def test_back_undoes_the_zoom_and_leads_to_the_steps_where_one_pane_fits() -> None:
    zoomed = toggle_zoom(focus(STATE, CHANGE))
    assert diff_state.go_back(zoomed, narrow=True) == focus(STATE, CHANGE)
    assert diff_state.go_back(focus(STATE, CHANGE), narrow=True) == STATE
    assert diff_state.go_back(focus(STATE, CHANGE), narrow=False) is None
    assert diff_state.go_back(STATE, narrow=True) is None
    assert diff_state.go_back(CONTEXTS, narrow=True) is None


def test_ignored_differences_are_toggled() -> None:
    strict = diff_state.toggle_ignored(STATE)
    assert strict.ask == Compare(A, B, strict=True)
    assert diff_state.toggle_ignored(strict) == STATE


def test_c_goes_through_the_contexts_of_a_step_and_back_to_its_changes() -> None:
    tabs, state, seen = (CHANGES, CONTEXT, PREVIOUS), STATE, []
    for _ in range(3):
        following = diff_state.next_context(state, tabs, open_tab=state.tab)
        assert following is not None
        state = following
        seen.append(state.tab)
    assert seen == [CONTEXT, PREVIOUS, CHANGES]
    assert diff_state.next_context(STATE, (CHANGES,), open_tab=CHANGES) is None


@pytest.mark.parametrize(("step", "tab"), [(1, CONTEXT), (-1, PREVIOUS)])
def test_tabs_go_round_from_the_one_that_is_shown(step: int, tab: str) -> None:
    tabs = (CHANGES, CONTEXT, PREVIOUS)
    assert diff_state.next_tab(STATE, tabs, step, open_tab=CHANGES).tab == tab
    assert diff_state.next_tab(replace(STATE, tab=PREVIOUS), (CHANGES,), step, open_tab=CHANGES).tab == PREVIOUS


def test_a_bug_report_names_no_run() -> None:
    assert "SECRET" not in describe(STATE)
    assert "SECRET" not in describe(replace(CONTEXTS, ask=Calls(A, "SECRET", "SECRET")))

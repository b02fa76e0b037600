"""The state of the run tree."""

from __future__ import annotations

from tracetui.model import RunRef
from tracetui.ui.state import RunTreeState, describe, select_next, toggle_texts

REFS = [RunRef("any", f"/traces/{name}.json") for name in "abc"]


def test_the_selection_moves_in_the_order_of_the_lanes_and_stops_at_its_ends() -> None:
    state: RunTreeState | None = RunTreeState(selected=REFS[0])
    seen = []
    while state is not None:
        seen.append(state.selected)
        state = select_next(state, REFS, 1)
    assert seen == REFS
    assert select_next(RunTreeState(selected=REFS[0]), REFS, -1) is None


def test_without_a_selection_it_begins_at_an_end() -> None:
    for step, ref in ((1, REFS[0]), (-1, REFS[-1])):
        state = select_next(RunTreeState(), REFS, step)
        assert state is not None
        assert state.selected == ref


def test_texts_toggle_and_keep_the_selection() -> None:
    state = toggle_texts(RunTreeState(selected=REFS[1]))
    assert (state.texts, state.selected) == (True, REFS[1])
    assert not toggle_texts(state).texts


def test_a_crash_log_has_no_path_of_a_run() -> None:
    assert "/traces" not in describe(RunTreeState(selected=REFS[0], cursor=("branch", 0, 1)))

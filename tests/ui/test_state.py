"""What every command of the main screen makes of its state: values in, values out, without Textual."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec.structs import replace

from tests.store.build import make_summary
from tests.views.build import REF, make_run, make_span
from tracetui.analysis.arrangement import RUN_CHOICES, Arrangement, Choices
from tracetui.analysis.triage import CAUSE_CHOICES, CAUSES
from tracetui.model import Operation, RunRef, RunSummary, Status
from tracetui.store.address import Address
from tracetui.ui import state as states
from tracetui.ui.commands import DETAIL, FACTS, RUNS, STEPS
from tracetui.ui.layout import Width
from tracetui.ui.state import Arrival, Goal, MainState

OTHER, THIRD = RunRef("any", "/traces/b.json"), RunRef("any", "/traces/c.json")
LIST = MainState(ref=REF)
OPEN = MainState(pane=STEPS, level=1, ref=REF)
WHOLE = make_run(
    [
        make_span("1", "plan", Operation.CHAT, step=1),
        make_span("2", "search", Operation.EXECUTE_TOOL, step=2, status=Status.ERROR),
        make_span("3", "answer", Operation.CHAT, step=3, status=Status.ERROR),
    ]
)
PART = replace(make_run([make_span("1", "plan", Operation.CHAT, step=1)]), complete=False)


def summary(ref: RunRef, **fields: object) -> RunSummary:
    return make_summary(ref.path).replace(ref=ref, **fields)


def test_the_states_are_known_without_textual() -> None:
    modules = "tracetui.ui.state, tracetui.ui.diff_state, tracetui.ui.triage_state"
    code = f"import sys, {modules}; sys.exit(any(name.split('.')[0] == 'textual' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- panes


@pytest.mark.parametrize(
    ("before", "pane", "width", "after"),
    [
        ((RUNS, 0), STEPS, "middle", (STEPS, 0)),
        ((RUNS, 0), STEPS, "narrow", (STEPS, 1)),
        ((STEPS, 1), DETAIL, "narrow", (DETAIL, 1)),
        ((DETAIL, 2), DETAIL, "narrow", (DETAIL, 2)),
        ((DETAIL, 2), STEPS, "narrow", (STEPS, 1)),
        ((STEPS, 1), RUNS, "middle", (RUNS, 0)),
        ((DETAIL, 2), RUNS, "narrow", (RUNS, 0)),
        ((STEPS, 1), RUNS, "wide", (RUNS, 1)),
        ((STEPS, 1), FACTS, "wide", (FACTS, 1)),
    ],
)
def test_a_pane_is_focused_where_it_can_be_seen(
    before: tuple[str, int], pane: str, width: Width, after: tuple[str, int]
) -> None:
    state = states.focus_pane(MainState(pane=before[0], level=before[1], ref=REF), pane, width)
    assert (state.pane, state.level) == after
    assert state.zoom is None
    assert state.ref == REF


def test_zoom_goes_with_the_focus_and_is_taken_back() -> None:
    zoomed = states.toggle_zoom(OPEN)
    assert zoomed.zoom == STEPS
    assert states.focus_pane(zoomed, DETAIL, "middle").zoom == DETAIL
    assert states.toggle_zoom(zoomed) == OPEN


def test_the_detail_is_read_alone_only_where_one_pane_fits() -> None:
    assert states.read_detail(OPEN, "narrow") == replace(OPEN, pane=DETAIL, level=2)
    assert states.read_detail(OPEN, "middle") == replace(OPEN, pane=DETAIL)
    assert states.enter_problem(LIST) == replace(LIST, pane=DETAIL, level=1)


def test_back_undoes_one_thing_at_a_time() -> None:
    filtered = replace(OPEN, arrangement=Arrangement(query="refund", failures=True, sort="time"), marked=(REF,))
    state = replace(filtered, pane=DETAIL, level=2, zoom=DETAIL, origin=("hits",), goal=Goal(REF))
    seen = []
    while (following := states.go_back(state)) is not None:
        state = following
        seen.append((state.zoom, state.pane, state.level, state.origin, state.arrangement.query))
    assert seen == [
        (None, DETAIL, 2, ("hits",), "refund"),
        (None, STEPS, 1, ("hits",), "refund"),
        (None, RUNS, 0, (), "refund"),
        (None, RUNS, 0, (), ""),
    ]
    assert state.arrangement == Arrangement(sort="time")
    assert (state.ref, state.goal, state.marked) == (REF, None, (REF,))


def test_back_from_the_steps_beside_the_list_leads_to_the_list() -> None:
    assert states.go_back(replace(LIST, pane=STEPS)) == LIST


# ---- goals


def test_the_first_state_knows_where_the_command_line_asks_to_go() -> None:
    there = Address("/traces/a.json", None, ("2",))
    assert states.first_state(Arrangement()).goal is None
    assert states.first_state(Arrangement(), there, follow=True).goal == Goal(address=there, follow=True)
    assert states.first_state(Arrangement(), follow=True).goal == Goal(newest=True)
    assert states.first_state(Arrangement(), newest=True).goal == Goal(newest=True)


def test_a_preview_drops_a_goal_unless_its_run_is_not_listed_yet() -> None:
    waiting = replace(LIST, goal=Goal(newest=True))
    assert states.preview_run(waiting, OTHER) == replace(waiting, ref=OTHER)
    assert states.preview_run(replace(LIST, goal=Goal(REF, "1")), OTHER) == MainState(ref=OTHER)


def test_entering_a_run_says_what_is_to_be_done_in_it() -> None:
    state = states.enter_run(LIST, OTHER)
    assert (state.pane, state.level, state.ref, state.goal) == (STEPS, 1, OTHER, Goal(OTHER, follow=False))
    assert states.enter_run(LIST, OTHER, follow=True).goal == Goal(OTHER, follow=True)
    assert states.enter_run(LIST, OTHER, "s", follow=True).goal == Goal(OTHER, "s")
    walking = states.enter_run(replace(OPEN, pane=DETAIL, level=2), OTHER, "s", follow=None, walk=-1)
    assert (walking.pane, walking.level, walking.goal) == (DETAIL, 2, Goal(OTHER, "s", walk=-1))


def test_the_way_back_is_kept_until_the_run_is_left() -> None:
    visiting = states.enter_run(LIST, OTHER, "s", uncover=True, origin=("hits", "triage"))
    assert visiting.goal == Goal(OTHER, "s", uncover=True)
    assert states.enter_run(visiting, REF).origin == ("hits", "triage")


@pytest.mark.parametrize(
    ("parts", "asked", "follow"), [((), False, False), ((), True, True), (("2",), False, None), (("2",), True, True)]
)
def test_a_run_of_the_command_line_is_followed_unless_a_span_of_it_is_asked_for(
    parts: tuple[str, ...], asked: bool, follow: bool | None
) -> None:
    goal = Goal(address=Address(REF.path, None, parts), follow=asked)
    state = states.enter_listed(replace(MainState(), goal=goal), REF)
    assert (state.ref, state.level, state.pane) == (REF, 1, STEPS)
    assert state.goal == replace(goal, ref=REF, follow=follow)


def test_the_newest_run_is_always_followed() -> None:
    state = states.enter_listed(MainState(goal=Goal(newest=True)), OTHER)
    assert state.goal == Goal(OTHER, follow=True)


def test_the_run_of_a_goal_is_found_once_it_is_listed() -> None:
    runs = {ref: summary(ref, started_at=at) for ref, at in ((REF, 1.0), (OTHER, 3.0), (THIRD, 2.0))}
    there = Goal(address=Address(THIRD.path))
    assert states.find_goal_run(there, {}, listing=True) is None
    assert states.find_goal_run(there, runs, listing=True) == THIRD
    assert states.find_goal_run(Goal(newest=True), runs, listing=True) is None
    assert states.find_goal_run(Goal(newest=True), runs, listing=False) == OTHER
    assert states.find_goal_run(Goal(REF), runs, listing=False) is None


def test_a_goal_waits_for_its_span_and_then_for_the_end_of_its_run() -> None:
    asked = replace(OPEN, goal=Goal(REF, "2", uncover=True, walk=1))
    assert states.pursue_goal(asked, PART) == (asked, Arrival(uncover=True))
    assert states.pursue_goal(asked, WHOLE) == (OPEN, Arrival("2", uncover=True, walk=1))
    early = replace(OPEN, goal=Goal(REF, "1", follow=True))
    rest = replace(OPEN, goal=Goal(REF, follow=True))
    assert states.pursue_goal(early, PART) == (rest, Arrival("1"))
    assert states.pursue_goal(rest, PART) == (rest, Arrival())
    assert states.pursue_goal(rest, WHOLE) == (OPEN, Arrival(follow=True))


def test_a_goal_of_another_run_stays_and_a_span_that_never_comes_is_given_up() -> None:
    other = replace(OPEN, goal=Goal(OTHER, "1"))
    assert states.pursue_goal(other, WHOLE) == (other, Arrival())
    assert states.pursue_goal(OPEN, WHOLE) == (OPEN, Arrival())
    assert states.pursue_goal(replace(OPEN, goal=Goal(REF, "gone")), WHOLE) == (OPEN, Arrival())


def test_an_address_leads_to_its_step_or_says_what_is_wrong() -> None:
    there = replace(OPEN, goal=Goal(REF, address=Address(REF.path, None, ("2",))))
    assert states.pursue_goal(there, WHOLE) == (OPEN, Arrival("2", uncover=True))
    whole = replace(OPEN, goal=Goal(REF, address=Address(REF.path), follow=True))
    assert states.pursue_goal(whole, PART) == (replace(OPEN, goal=Goal(REF, follow=True)), Arrival(uncover=True))
    twice = make_run([make_span(ident, "x", Operation.CHAT, step=7) for ident in "ab"])
    wrong = replace(OPEN, goal=Goal(REF, address=Address(REF.path, None, ("7",))))
    state, arrival = states.pursue_goal(wrong, twice)
    assert state.goal is None
    assert "2 spans are step 7" in arrival.warning
    assert states.pursue_goal(wrong, replace(twice, complete=False))[0] == wrong


def test_a_moved_cursor_waits_for_no_span_but_the_rest_of_the_goal_holds() -> None:
    assert states.release_span(replace(OPEN, goal=Goal(REF, "2"))) == OPEN
    assert states.release_span(replace(OPEN, goal=Goal(REF, "2", walk=1))).goal == Goal(REF, walk=1)
    following = states.follow_run(OPEN, always=False)
    assert following.goal == Goal(REF, follow=False)
    assert states.release_span(following) is following


# ---- the list


@pytest.mark.parametrize(("first", "choices"), [(Arrangement(), RUN_CHOICES), (CAUSES, CAUSE_CHOICES)])
@pytest.mark.parametrize("field", ["sort", "group"])
def test_sorting_and_grouping_go_round(field: str, first: Arrangement, choices: Choices) -> None:
    order = choices.sorts if field == "sort" else choices.groups
    arrangement, seen = first, []
    for _ in order:
        seen.append(getattr(arrangement, field))
        arrangement = states.rearrange(arrangement, field, choices)
    assert sorted(seen) == sorted(order)
    assert arrangement == first


@pytest.mark.parametrize(
    ("command", "field"),
    [("reverse", "reverse"), ("failures", "failures"), ("new", "new")],
)
def test_switches_of_the_list_turn_on_and_off(command: str, field: str) -> None:
    on = states.rearrange(Arrangement(), command, RUN_CHOICES)
    assert on == replace(Arrangement(), **{field: True})
    assert states.rearrange(on, command, RUN_CHOICES) == Arrangement()


def test_another_sorting_is_not_reversed() -> None:
    reversed_ = states.rearrange(Arrangement(), "reverse", RUN_CHOICES)
    assert not states.rearrange(reversed_, "sort", RUN_CHOICES).reverse


def test_marks_are_letters_for_two_and_signs_for_more() -> None:
    state = LIST
    for ref, marks in ((REF, "A"), (OTHER, "AB"), (THIRD, "+++")):
        state = states.toggle_mark(state, ref)
        assert "".join(states.mark_label(state, ref) for ref in (REF, OTHER, THIRD)) == marks
    state = states.toggle_mark(state, REF)
    assert state.marked == (OTHER, THIRD)
    assert states.mark_label(state, REF) == ""


# ---- the error walk


def test_errors_of_a_run_come_in_order_both_ways() -> None:
    assert [states.next_error(WHOLE, here, 1) for here in (None, "1", "2", "3")] == ["2", "2", "3", None]
    assert [states.next_error(WHOLE, here, -1) for here in ("3", "2")] == ["2", None]


def test_the_walk_goes_on_in_the_next_failed_run() -> None:
    order = [REF, OTHER, THIRD]
    runs = {ref: summary(ref, status=Status.ERROR) for ref in order}
    runs[OTHER] = summary(OTHER, status=Status.OK)
    assert states.next_failed(LIST, order, runs, 1) == THIRD
    assert states.next_failed(LIST, order, runs, 1, here=True) == REF
    assert states.next_failed(MainState(ref=THIRD), order, runs, 1) is None
    assert states.next_failed(MainState(ref=THIRD), order, runs, -1) == REF
    assert states.next_failed(MainState(ref=REF), order, runs, -1) is None
    assert states.next_failed(MainState(), order, runs, 1) == REF


# ---- bug reports


def test_a_state_is_one_line_without_anything_of_a_trace_or_of_the_reader() -> None:
    secret = RunRef("paprika", "/home/SECRET/a.json", "SECRET", "SECRET")
    state = MainState(
        pane=STEPS,
        level=1,
        zoom=STEPS,
        ref=secret,
        arrangement=Arrangement(sort="time", query="SECRET"),
        marked=(secret,),
        goal=Goal(secret, "SECRET", address=Address("/SECRET", "SECRET", ("SECRET",))),
        origin=("SECRET",),
    )
    line = states.describe(state)
    assert "SECRET" not in line
    assert "\n" not in line
    assert all(text in line for text in ("pane=steps", "level=1", "ref=<a run of paprika>", "sort=time"))

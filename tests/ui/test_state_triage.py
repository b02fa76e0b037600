"""What every command of the triage makes of its state, without Textual."""

from __future__ import annotations

from collections.abc import Sequence

from tests.store.build import make_summary
from tracetui.analysis.triage import CauseOrder, Group, Task, groups
from tracetui.model import FirstError, Outcome, RunRef, Score, Status
from tracetui.model.run import Evidence, Who
from tracetui.store.judgement import Judgement, Verdict
from tracetui.ui import triage_state
from tracetui.ui.commands import FAILURE, QUEUE
from tracetui.ui.state import focus, toggle_zoom
from tracetui.ui.triage_state import TriageState
from tracetui.views.triage import Member, TaskRow

DECIDED, OPEN = Judgement(verdict=Verdict("real")), Judgement()


def queue() -> Sequence[Group]:
    """Two causes of two runs each."""
    runs = [
        make_summary(f"{name}{i}").replace(status=Status.ERROR, first_error=FirstError(name, type=name, name=name))
        for name in ("TimeoutError", "ValueError")
        for i in (1, 2)
    ]
    found = groups(runs)
    assert [len(group.runs) for group in found] == [2, 2]
    return found


def test_back_undoes_the_zoom_and_leads_to_the_queue() -> None:
    failure = focus(TriageState(), FAILURE)
    assert triage_state.go_back(toggle_zoom(failure)) == failure
    assert triage_state.go_back(failure) == TriageState(pane=QUEUE)
    assert triage_state.go_back(TriageState()) is None


def test_causes_fold_and_unfold() -> None:
    both = triage_state.fold_rows(TriageState(), "ab", open_=True)
    assert both.unfolded == {"a", "b"}
    assert triage_state.fold_rows(both, "a", open_=False).unfolded == {"b"}
    assert triage_state.fold_rows(both, both.unfolded, open_=False) == TriageState()


def test_the_walk_goes_through_all_failed_runs_whatever_is_folded() -> None:
    found = queue()
    order = CauseOrder(found)
    members = [Member(group, ref) for group in found for ref in group.runs]

    assert walk(order, 1) == members
    assert walk(order, -1) == members[::-1]
    assert triage_state.step_failed(order, found[1], 1) == (members[2], 2)
    assert triage_state.step_failed(order, found[1], -1) == (members[1], 1)
    assert triage_state.step_failed(order, members[3], 1) == (None, 4)


def walk(order: CauseOrder, step: int) -> list[Member]:
    """All failed runs, one after the other."""
    found: list[Member] = []
    while (member := triage_state.step_failed(order, found[-1] if found else None, step)[0]) is not None:
        found.append(member)
    return found


def test_the_walk_of_failed_runs_stops_at_ungraded_runs_that_failed_too() -> None:
    missing = Score.ungraded("reward", Evidence("uvx: command not found", "log line 1", Who.GRADER))
    late = make_summary("a").replace(status=Status.ERROR, first_error=FirstError("late", type="AgentTimeoutError"))
    both = late.replace(scores=(missing,), outcome=Outcome.UNGRADED)
    only = both.replace(status=Status.OK, first_error=None)
    named = zip("bcde", (both, only, both, only), strict=True)
    runs = [late, *(run.replace(ref=RunRef("any", name), started_at=None) for name, run in named)]
    order = CauseOrder(groups(runs))
    _, ungraded = sorted(order.groups, key=lambda group: group.ungraded)
    assert [ref.path for ref in ungraded.runs] == [*"bcde"]

    assert {member.run for member in walk(order, 1)} == {late.ref, ungraded.runs[0], ungraded.runs[2]}
    assert walk(order, -1) == walk(order, 1)[::-1]
    b, c, d, e = (Member(ungraded, ref) for ref in ungraded.runs)
    for here, step, reached in ((c, 1, d), (c, -1, b), (e, -1, d)):
        member, _ = triage_state.step_failed(order, here, step)
        assert member is not None
        assert member.run == reached.run
    steps = [triage_state.step_failed(order, here, 1, ungraded=True)[0] for here in (b, c, d)]
    assert [member and member.run for member in steps] == [c.run, d.run, e.run]


def test_after_a_verdict_comes_the_next_without_one() -> None:
    found = CauseOrder(queue())
    first, second = found.groups
    decided: set[object] = set()

    def told(what: Group | Task | RunRef) -> Judgement:
        return DECIDED if (what if isinstance(what, RunRef) else what.digest) in decided else OPEN

    assert triage_state.next_undecided(found, None, told) == first.digest
    assert triage_state.next_undecided(found, first, told) == second.digest
    assert triage_state.next_undecided(found, second, told) == first.digest
    assert triage_state.next_undecided(found, Member(first, first.runs[0]), told) == first.runs[1]
    decided |= {first.runs[1], second.digest}
    assert triage_state.next_undecided(found, Member(first, first.runs[0]), told) == first.digest
    decided.add(first.digest)
    assert triage_state.next_undecided(found, first, told) is None


def test_marks_are_toggled_and_go_with_escape() -> None:
    marked = triage_state.toggle_mark(triage_state.toggle_mark(TriageState(), "a"), "b")
    assert marked.marked == ("a", "b")
    assert triage_state.toggle_mark(marked, "a").marked == ("b",)
    assert triage_state.go_back(marked) == TriageState()


def test_wrong_answers_are_walked_and_judged_task_by_task() -> None:
    runs = [
        make_summary(name).replace(status=Status.OK, scores=SCORES, outcome=Outcome.FAILED, task=task)
        for name, task in (("a", "x"), ("b", "x"), ("c", "y"))
    ]
    (heading,) = groups(runs)
    x, y = heading.tasks
    order = CauseOrder([heading])
    every = [Member(heading, ref, task) for task in (x, y) for ref in task.runs]

    assert walk(order, 1) == every
    assert walk(order, -1) == every[::-1]
    assert triage_state.step_failed(order, TaskRow(heading, y), 1) == (every[2], 2)
    assert triage_state.step_failed(order, TaskRow(heading, y), -1) == (every[1], 1)
    assert triage_state.next_undecided(order, TaskRow(heading, x), lambda _: OPEN) == y.digest
    assert triage_state.next_undecided(order, TaskRow(heading, y), lambda _: OPEN) == x.digest


SCORES = (Score("reward", 0.0, False),)

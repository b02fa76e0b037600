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
    causes = groups(runs)
    assert [len(group.runs) for group in causes] == [2, 2]
    return causes


def test_back_undoes_the_zoom_and_leads_to_the_queue() -> None:
    failure = focus(TriageState(), FAILURE)
    assert triage_state.go_back(toggle_zoom(failure)) == failure
    assert triage_state.go_back(failure) == TriageState(pane=QUEUE)
    assert triage_state.go_back(TriageState()) is None


def test_causes_fold_and_unfold() -> None:
    unfolded = triage_state.fold_rows(TriageState(), "ab", open_=True)
    assert unfolded.unfolded == {"a", "b"}
    assert triage_state.fold_rows(unfolded, "a", open_=False).unfolded == {"b"}
    assert triage_state.fold_rows(unfolded, unfolded.unfolded, open_=False) == TriageState()


def test_the_walk_goes_through_all_failed_runs_whatever_is_folded() -> None:
    causes = queue()
    order = CauseOrder(causes)
    members = [Member(group, ref) for group in causes for ref in group.runs]

    assert walk(order, 1) == members
    assert walk(order, -1) == members[::-1]
    assert triage_state.step_failed(order, causes[1], 1) == (members[2], 2)
    assert triage_state.step_failed(order, causes[1], -1) == (members[1], 1)
    assert triage_state.step_failed(order, members[3], 1) == (None, 4)


def walk(order: CauseOrder, step: int) -> list[Member]:
    """All failed runs, one after the other."""
    members: list[Member] = []
    while (member := triage_state.step_failed(order, members[-1] if members else None, step)[0]) is not None:
        members.append(member)
    return members


def test_the_walk_of_failed_runs_stops_at_ungraded_runs_that_failed_too() -> None:
    missing = Score.ungraded("reward", Evidence("uvx: command not found", "log line 1", Who.GRADER))
    late = make_summary("a").replace(status=Status.ERROR, first_error=FirstError("late", type="AgentTimeoutError"))
    failed = late.replace(scores=(missing,), outcome=Outcome.UNGRADED)
    completed = failed.replace(status=Status.OK, first_error=None)
    named = zip("bcde", (failed, completed, failed, completed), strict=True)
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
    order = CauseOrder(queue())
    first, second = order.groups
    decided: set[object] = set()

    def judgement_of(what: Group | Task | RunRef) -> Judgement:
        return DECIDED if (what if isinstance(what, RunRef) else what.digest) in decided else OPEN

    assert triage_state.next_undecided(order, None, judgement_of) == first.digest
    assert triage_state.next_undecided(order, first, judgement_of) == second.digest
    assert triage_state.next_undecided(order, second, judgement_of) == first.digest
    assert triage_state.next_undecided(order, Member(first, first.runs[0]), judgement_of) == first.runs[1]
    decided |= {first.runs[1], second.digest}
    assert triage_state.next_undecided(order, Member(first, first.runs[0]), judgement_of) == first.digest
    decided.add(first.digest)
    assert triage_state.next_undecided(order, first, judgement_of) is None


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

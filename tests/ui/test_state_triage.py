"""What every command of the triage makes of its state, without Textual."""

from __future__ import annotations

from collections.abc import Sequence

from tests.store.build import make_summary
from tracetui.analysis.triage import Group, Task, groups
from tracetui.model import FirstError, Outcome, RunRef, Score, Status
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
    order, here = triage_state.failed_runs(found, None, 1)
    assert order == [Member(group, ref) for group in found for ref in group.runs]
    assert here == -1
    assert triage_state.failed_runs(found, None, -1)[1] == 4
    assert triage_state.failed_runs(found, found[1], 1)[1] == 1
    assert triage_state.failed_runs(found, found[1], -1)[1] == 2
    assert triage_state.failed_runs(found, Member(found[1], found[1].runs[1]), 1)[1] == 3


def test_after_a_verdict_comes_the_next_without_one() -> None:
    found = queue()
    first, second = found
    decided: set[object] = set()

    def told(what: Group | Task | RunRef) -> Judgement:
        return DECIDED if (what if isinstance(what, RunRef) else what.digest) in decided else OPEN

    assert triage_state.undecided(found, None, told) == first.digest
    assert triage_state.undecided(found, first, told) == second.digest
    assert triage_state.undecided(found, second, told) == first.digest
    assert triage_state.undecided(found, Member(first, first.runs[0]), told) == first.runs[1]
    decided |= {first.runs[1], second.digest}
    assert triage_state.undecided(found, Member(first, first.runs[0]), told) == first.digest
    decided.add(first.digest)
    assert triage_state.undecided(found, first, told) is None


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
    order, here = triage_state.failed_runs([heading], TaskRow(heading, y), 1)

    assert [(member.task, member.run) for member in order] == [(task, ref) for task in (x, y) for ref in task.runs]
    assert here == 1
    assert triage_state.undecided([heading], TaskRow(heading, x), lambda _: OPEN) == y.digest
    assert triage_state.undecided([heading], TaskRow(heading, y), lambda _: OPEN) == x.digest


SCORES = (Score("reward", 0.0, False),)

"""First divergence, what follows from it, what is independent; and that bodies are read one pair at a time."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tests.diff.build import Step, kinds, node, run_of
from tracetui.diff.comparison import Comparison, Diff, compare
from tracetui.diff.step import Kind
from tracetui.model import Body, Check, Operation, RunRef, Span, Status
from tracetui.model.build import RunBuilder

CHAT = Operation.CHAT


def differing(diff: Diff) -> list[tuple[int, str, bool]]:
    return [(i, row.kind.value, row.downstream) for i, row in enumerate(diff.rows) if row.kind is not Kind.SAME]


def test_the_first_divergence_has_row_path_and_both_values() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Paris, 2023"}]
    edited = [messages[0], {"role": "assistant", "content": "Paris, 2024"}]
    a = run_of([Step(), Step(CHAT, "gpt", {"messages": messages}, "ok")])
    b = run_of([Step(), Step(CHAT, "gpt", {"messages": edited}, "ok")], ident="b")

    first = compare(a, b).first

    assert first is not None
    assert (first.row, first.kind, first.path) == (1, Kind.INPUT, "messages[1].content")
    assert (first.a, first.b) == ("Paris, 2023", "Paris, 2024")


def test_steps_with_the_diverged_value_are_downstream_and_the_rest_independent() -> None:
    def steps(answer: str, other: str) -> list[Step]:
        return [
            Step(CHAT, "gpt", {"q": "which year?"}, {"text": f"the year is {answer} of course"}),
            Step(input={"query": f"subsidies {answer}"}, output=f"found {answer} pages"),
            Step(name="fetch", input={"url": other}, output="page"),
            Step(CHAT, "gpt", {"q": "so?", "pages": f"found {answer} pages"}, "done"),
        ]

    diff = compare(run_of(steps("2023", "x.org/one")), run_of(steps("2024", "y.com/other"), ident="b"))

    assert differing(diff) == [(0, "output", False), (1, "input", True), (2, "input", False), (3, "input", True)]
    assert diff.independent == (2,)


def test_a_model_call_without_input_answers_everything_before() -> None:
    def steps(result: str, answer: str) -> list[Step]:
        return [Step(input="ls", output=result), Step(CHAT, "claude", None, answer)]

    diff = compare(run_of(steps("a.txt", "one file")), run_of(steps("a.txt b.txt", "two files"), ident="b"))

    assert differing(diff) == [(0, "output", False), (1, "output", True)]


def test_difference_of_a_container_starts_inside_it() -> None:
    def steps(answer: str) -> list[Step]:
        workflow = Operation.INVOKE_WORKFLOW
        return [
            Step(workflow, "rag", {"q": "x"}, {"answer": answer}),
            node("retrieve", {"q": "x"}, {"docs": 3}, depth=1),
            node("generate", {"docs": 3}, {"answer": answer}, depth=1),
        ]

    diff = compare(run_of(steps("yes, certainly")), run_of(steps("no, never"), ident="b"))

    assert diff.first is not None
    assert diff.first.row == 2
    assert differing(diff) == [(0, "output", True), (2, "output", False)]


def test_later_differences_in_a_container_follow_from_its_first() -> None:
    def steps(docs: str, answer: str) -> list[Step]:
        return [
            Step(Operation.INVOKE_WORKFLOW, "rag", {"q": "x"}, {"answer": answer}),
            node("retrieve", {"q": "x"}, {"docs": docs}, depth=1),
            node("generate", {"docs": docs}, {"answer": answer}, depth=1),
        ]

    diff = compare(run_of(steps("one page", "yes, certainly")), run_of(steps("other book", "no, never"), ident="b"))

    assert diff.first is not None
    assert diff.first.row == 1
    assert differing(diff) == [(0, "output", True), (1, "output", False), (2, "input", True)]
    assert diff.independent == ()


def test_steps_after_the_end_of_one_run_are_downstream() -> None:
    steps = [Step(input={"q": i}, output=i) for i in range(5)]
    broken = [*steps[:2], Step(input={"q": "drifted"}, output=None, failed=True)]

    diff = compare(run_of(steps, hashed=True), run_of(broken, hashed=True, ident="b"))

    assert differing(diff) == [(2, "input", False), (3, "only_a", True), (4, "only_a", True)]


def test_a_decision_comes_before_the_output_that_repeats_it() -> None:
    def routed(target: str) -> Any:
        body = Body(input={"x": 1}, output={"_pick": target}, attributes={"decision": target, "status": "completed"})
        return run_of([Step(Operation.ROUTE, "pick")], bodies={"s0": body}, ident=target)

    diff = compare(routed("left"), routed("right"))

    assert diff.first is not None
    assert (diff.first.kind, diff.first.path, diff.first.b) == (Kind.OUTPUT, "decision", "right")
    assert diff.decision == diff.first


def test_a_hash_unlike_its_input_is_flagged_and_not_trusted() -> None:
    def checked(value: str, matches: str | None) -> Body:
        return Body(input=value, output="x", checks=(Check("input_hash", "0" * 16, matches),))

    steps = [Step(input="the same")]
    a = run_of(steps, hashed=True, bodies={"s0": checked("one", "runtime")})
    b = run_of(steps, hashed=True, bodies={"s0": checked("two", None)}, ident="b")

    (row,) = compare(a, b).rows

    assert row.kind is Kind.INPUT
    assert row.flags == ("B: input_hash",)


def test_status_comes_last() -> None:
    a = run_of([Step(input=1, output=None)])
    b = run_of([Step(input=1, output=None, failed=True)], ident="b")

    diff = compare(a, b)

    assert kinds(diff) == ["status"]
    assert diff.first is not None
    assert (diff.first.path, diff.first.a, diff.first.b) == ("status", "ok", "error")


def test_hooks_of_calls_that_changed_stay_with_them() -> None:
    a = run_of(
        [
            Step(input="ls"),
            Step(Operation.HOOK, "Pre", depth=1),
            Step(input="cat"),
            Step(Operation.HOOK, "Pre", depth=1),
        ]
    )
    b = run_of([Step(input="ls"), Step(input="cat"), Step(Operation.HOOK, "Pre", depth=1)], ident="b")

    assert differing(compare(a, b)) == [(1, "only_a", False)]


def test_an_added_equal_call_is_identified_by_its_result() -> None:
    poll = [Step(name="poll", input="job 7", output=f"{done} %") for done in (10, 40, 90)]
    a = run_of([Step(), *poll])

    for gone in range(3):
        b = run_of([Step(), *(step for i, step in enumerate(poll) if i != gone)], ident="b")
        assert differing(compare(a, b)) == [(1 + gone, "only_a", False)]
        assert differing(compare(b, a)) == [(1 + gone, "only_b", False)]


@pytest.mark.parametrize("relation", [None, "student"])
def test_a_student_may_use_other_words_but_not_other_calls(relation: str | None) -> None:
    def turns(answer: str) -> list[Step]:
        return [
            Step(Operation.MESSAGE, "user", "go"),
            Step(CHAT, "m", None, answer),
            Step(input="ls", output="x", depth=1),
        ]

    diff = compare(run_of(turns("I look")), run_of(turns("let me see"), ident="b"), relation=relation)

    assert diff.same == (relation == "student")


# ---- as it becomes known


def test_the_first_result_needs_headers_only() -> None:
    steps = [Step(input={"q": i}, output=i) for i in range(300)]
    other = [*steps[:200], Step(input={"q": "drift"}, output=200), *steps[201:]]
    loaded: list[str] = []
    a, b = _counted(run_of(steps, hashed=True), loaded), _counted(run_of(other, hashed=True, ident="b"), loaded)

    first = next(Comparison(a, b).steps())

    assert not first.complete
    assert first.first is not None
    assert (first.first.row, first.first.path) == (200, "q")
    assert len(loaded) == 2


def test_the_first_divergence_is_reported_immediately() -> None:
    steps = [Step(input={"q": i}, output=i) for i in range(500)]
    a, b = run_of(steps), run_of([*steps[:7], Step(input={"q": 7}, output="other"), *steps[8:]], ident="b")

    by_headers, located, *_ = Comparison(a, b).steps()

    assert by_headers.first is None
    assert located.first is not None
    assert (located.first.row, located.compared) == (7, 8)


def test_a_container_is_not_blamed_before_its_contents() -> None:
    def steps(result: str) -> list[Step]:
        return [node("outer", 1, result), Step(input=1, output="same", depth=1), Step(input=2, output=result, depth=1)]

    firsts = [diff.first for diff in Comparison(run_of(steps("x")), run_of(steps("y"), ident="b")).steps()]

    assert [first.row for first in firsts if first is not None] == [2]


def test_no_body_is_kept() -> None:
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    def load(span: Any) -> Body:
        nonlocal most
        value = Value(span.preview * 50)
        alive.add(value)
        most = max(most, len(alive))
        return Body(output={"text": str(value.text)}, attributes={"holder": value})

    steps = [Step(input={"q": i}) for i in range(500)]
    a, b = run_of(steps), run_of(steps, ident="b")
    diff = compare(_with(a, load), _with(b, load))
    gc.collect()

    assert diff.same
    assert most <= 6
    assert len(alive) == 0


class Value:
    """Something that can be watched."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and other.text == self.text

    def __hash__(self) -> int:
        return id(self)


def _with(run: Any, load: Any) -> Any:
    from msgspec.structs import replace

    return replace(run, load=load)


def _counted(run: Any, loaded: list[str]) -> Any:
    def load(span: Any) -> Body:
        loaded.append(span.id)
        body: Body = run.load(span)
        return body

    return _with(run, load)


def test_status_words_and_relations_are_facts_of_the_runs() -> None:
    a = run_of([Step()], status=Status.OK, model="gpt-4o")
    b = run_of([Step()], ident="b", status=Status.ERROR, model="gpt-5", replay_of="a", relation="retry")

    diff = compare(a, b)

    assert diff.relation == "retry"
    assert {fact.name for fact in diff.facts if not fact.same} == {"status", "model"}


def test_runs_that_differ_in_notes_of_the_program_alone_went_the_same_way() -> None:
    a = run_of([Step(Operation.META, "mode", output="plan"), Step()])
    b = run_of([Step(Operation.META, "mode", output="build"), Step()], ident="b")

    diff = compare(a, b)
    assert diff.first is not None
    assert diff.first.noise
    assert diff.same
    assert not compare(a, b, strict=True).same


def test_runs_of_one_task_are_repetitions_of_each_other() -> None:
    a, b = run_of([Step()], repeats="task"), run_of([Step()], ident="b", repeats="task")

    assert compare(a, b).relation == "repeat"
    assert compare(a, run_of([Step()], ident="b", repeats="other")).relation is None
    assert compare(a, run_of([Step()], ident="b", repeats="task", replay_of="x", relation="fork")).relation is None


def test_runs_with_a_cycle_of_parents_are_compared_to_their_end() -> None:
    cycle = RunBuilder(RunRef("any", "/traces/cycle.json"), lambda span: Body())
    cycle.add([Span(own, "search", Operation.EXECUTE_TOOL, parent_id=parent) for own, parent in ("ab", "bc", "ca")])

    diff = compare(cycle.build(), run_of([Step()], ident="b"))

    assert {row.a for row in diff.rows if row.a is not None} == {0, 1, 2}

"""Which calls are the same in what they were given and what came of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diff.build import VALUES, Step, chat, run_of
from tests.shared import needs_shared, sample
from tests.views.build import runs
from tracetui import load
from tracetui.analysis.assessment import Loop, candidates, loops
from tracetui.model import Body, Operation, Run, Span
from tracetui.text import UNSAFE
from tracetui.views.glyphs import ASCII
from tracetui.views.timeline.spans import loop_cost, loop_title


def loops_of(run: Run) -> list[tuple[str, int]]:
    return [(loop_title(run, loop), loop.first) for loop in loops(run, run.load)]


def search(arguments: Any, result: Any, **rest: Any) -> Step:
    return Step(input=arguments, output=result, **rest)


@pytest.mark.parametrize("hashed", [False, True])
def test_the_same_call_with_the_same_result_is_identical(hashed: bool) -> None:
    steps = [search("first", 0), *[search({"q": "EV"}, ["a", 1])] * 3, search("last", 0)]
    assert loops_of(run_of(steps, hashed=hashed)) == [("search ×3 (identical)", 1)]


def test_the_same_call_with_other_results_is_the_same_call() -> None:
    run = run_of([search("q", number) for number in range(4)])
    assert loops_of(run) == [("search ×4 (same call)", 0)]
    failing = run_of([search("q", 1), search("q", 1, failed=True), search("q", 1)])
    assert loops_of(failing) == [("search ×3 (same call)", 0)]


def test_another_argument_that_the_header_does_not_show_is_another_call() -> None:
    long = "x" * 200
    assert loops_of(run_of([search({"q": long + end}, 1) for end in "aabc"])) == [("search ×2 (identical)", 0)]


def test_ids_and_times_are_no_difference() -> None:
    steps = [
        search({"q": "EV"}, {"request_id": f"req_{number}x", "created_at": 1763730562 + number, "hits": 3})
        for number in range(3)
    ]
    assert loops_of(run_of(steps)) == [("search ×3 (identical)", 0)]


def test_a_cycle_is_written_as_one() -> None:
    steps = [search("q", 1, name="fetch"), search("p", 2, name="parse")] * 4
    run = run_of(steps)
    assert loops_of(run) == [("fetch → parse ×4 (identical)", 0)]
    assert loop_title(run, loops(run, run.load)[0], ASCII) == "fetch > parse x4 (identical)"


def test_a_model_that_says_the_same_again_in_a_conversation_that_grows_is_in_a_loop() -> None:
    steps = [step for _ in range(3) for step in (Step(Operation.CHAT, "gpt"), search("q", "nothing"))]
    bodies = {f"s{i}": chat(*["go on"] * (i + 1), answer="I search.") for i in (0, 2, 4)}
    bodies |= {f"s{i}": Body(input="q", output="nothing") for i in (1, 3, 5)}
    assert loops_of(run_of(steps, bodies=bodies)) == [("gpt → search ×3 (identical)", 0)]

    bodies["s4"] = chat(*["go on"] * 5, answer="I give up.")
    assert loops_of(run_of(steps, bodies=bodies)) == [("gpt → search ×2 (identical)", 0)]


def test_a_model_that_is_asked_the_same_again_and_says_something_else_repeats_the_call() -> None:
    bodies = {f"s{i}": chat("which?", answer=f"number {i}") for i in range(3)}
    run = run_of([Step(Operation.CHAT, "gpt")] * 3, bodies=bodies)
    assert loops_of(run) == [("gpt ×3 (same call)", 0)]


def test_a_model_that_answers_other_questions_alike_is_in_no_loop() -> None:
    questions = [chat(f"Is {town} large?", answer="Yes.") for town in ("Paris", "Lyon", "Nice")]
    bodies = {f"s{i}": body for i, body in enumerate(questions)}

    assert loops_of(run_of([Step(Operation.CHAT, "gpt")] * 3, bodies=bodies)) == []
    assert loops_of(run_of([Step(Operation.CHAT, "gpt")] * 3, bodies=dict.fromkeys(bodies, questions[0]))) == [
        ("gpt ×3 (identical)", 0)
    ]


def test_sub_agents_that_are_asked_other_questions_are_in_no_loop() -> None:
    def agent(question: str) -> Body:
        return Body(input={"agent": "critic"}, output="Fine.", input_messages=chat(question).input_messages)

    steps = [Step(Operation.INVOKE_AGENT, "critic", {"agent": "critic"})] * 3
    same = {f"s{i}": agent("Is it good?") for i in range(3)}
    assert loops_of(run_of(steps, bodies=same)) == [("critic ×3 (identical)", 0)]
    other = {f"s{i}": agent(f"Is chapter {i} good?") for i in range(3)}
    assert loops_of(run_of(steps, bodies=other)) == []


def test_calls_of_sub_agents_that_are_asked_other_questions_are_in_no_loop() -> None:
    steps = [
        step
        for _ in range(3)
        for step in (
            Step(Operation.INVOKE_AGENT, "critic"),
            Step(Operation.CHAT, "gpt", depth=1),
            search("q", 1, depth=1),
        )
    ]
    answer = Body(output="I search.")
    bodies = {f"s{i}": Body(input="q", output=1) for i in (2, 5, 8)} | {f"s{i}": answer for i in (1, 4, 7)}
    same = bodies | {f"s{i}": Body(input="Is it good?") for i in (0, 3, 6)}
    assert loops_of(run_of(steps, bodies=same)) == [("gpt → search ×3 (identical)", 1)]
    other = bodies | {f"s{i}": Body(input=f"Is chapter {i} good?") for i in (0, 3, 6)}
    assert loops_of(run_of(steps, bodies=other)) == []


def test_where_the_trace_says_nothing_nothing_is_the_same() -> None:
    run = run_of([search(None, None)] * 3)
    assert candidates(run)
    assert loops_of(run) == []


def test_only_bodies_of_candidates_are_loaded_and_each_once() -> None:
    run = run_of([search("first", 0), *[search("q", 1), search("p", 2)] * 4, search("last", 0)])
    asked: list[str] = []

    def body_of(span: Span) -> Body:
        asked.append(span.id)
        return run.load(span)

    assert len(loops(run, body_of)) == 1
    assert asked.count("s1") == 1
    assert sorted(asked) == [f"s{i}" for i in range(1, 9)]


@given(VALUES, VALUES, st.integers(2, 6), st.integers(1, 4))
def test_any_repeated_cycle_is_a_loop(arguments: Any, result: Any, times: int, period: int) -> None:
    if arguments is None and result is None:
        return
    cycle = [search(arguments, result, name=f"tool {number}") for number in range(period)]
    run = run_of(cycle * times)

    assert [(loop.period, loop.times, loop.identical) for loop in loops(run, run.load)] == [(period, times, True)]


@given(runs())
def test_any_run_has_loops_or_none(run: Run) -> None:
    for loop in loops(run, lambda span: Body(input=span.name)):
        assert not UNSAFE.search(loop_title(run, loop))
        assert not UNSAFE.search(loop_cost(loop))


def test_loop_label_has_the_known_costs() -> None:
    assert loop_cost(Loop((0, 1), 1, True, 1230.0, 4500)) == "1.2s, 4.5k tokens"
    assert loop_cost(Loop((0, 1), 1, True, None, 0)) == "0 tokens"
    assert loop_cost(Loop((0, 1), 1, True, None, None)) == ""


@needs_shared
@pytest.mark.parametrize("version", ["v0", "v1"])
def test_a_real_run_that_repeats_itself(version: str) -> None:
    repeating = load(str(sample("paprika", version, "d65f3bf5-ce98-4e99-a48b-9e0a02a623f1.json")))
    counting = load(str(sample("paprika", version, "536d0a94-c641-4324-ad96-e580f431c0da.json")))

    assert loops_of(repeating) == [("gpt-4o ×4 (identical)", 0)]
    assert loops(repeating, repeating.load)[0].wasted_tokens == 450
    assert loops_of(counting) == []

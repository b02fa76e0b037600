"""Repetitions in the headers of a run: found wherever they are, disjoint, and quickly."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import make_run, make_span
from tracetui.analysis.assessment import MAX_PERIOD, Loop, Sameness, candidates, loops_in
from tracetui.model import Operation, Run, Span, Usage

TOOL = Operation.EXECUTE_TOOL


def calls(names: str, **rest: object) -> Run:
    """A run of one call a letter."""
    spans = [make_span(str(i), name, TOOL, i, 100, step=i, **rest) for i, name in enumerate(names)]  # type: ignore[arg-type]
    return make_run(spans)


def always(_: Span, __: Span) -> Sameness:
    return Sameness.IDENTICAL


def find(run: Run, same: Callable[[Span, Span], Sameness]) -> list[Loop]:
    return [loop for candidate in candidates(run) for loop in loops_in(run, candidate, same)]


def repetitions(run: Run) -> list[tuple[int, int, int, int]]:
    return [(loop.first, loop.last, loop.period, loop.times) for loop in find(run, always)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("", []),
        ("a", []),
        ("ab", []),
        ("aa", [(0, 1, 1, 2)]),
        ("xaaaay", [(1, 4, 1, 4)]),
        ("abab", [(0, 3, 2, 2)]),
        ("abaxab", []),
        ("xabcabcabcy", [(1, 9, 3, 3)]),
        ("abcdabcd", [(0, 7, 4, 2)]),
        ("abcdeabcde", []),
        ("aabaabaab", [(0, 8, 3, 3)]),
        ("ababa", [(0, 3, 2, 2)]),
        ("aabb", [(0, 1, 1, 2), (2, 3, 1, 2)]),
        ("abababbbb", [(0, 5, 2, 3), (6, 8, 1, 3)]),
        ("aaaaaabaa", [(0, 5, 1, 6), (7, 8, 1, 2)]),
    ],
)
def test_repetitions_have_their_shortest_period(names: str, expected: list[tuple[int, ...]]) -> None:
    assert repetitions(calls(names)) == expected


@given(st.text("abc", max_size=40))
def test_loops_are_disjoint_whole_and_leave_no_repetition_of_one_call(names: str) -> None:
    run = calls(names)
    loops = find(run, always)
    covered = [call for loop in loops for call in loop.calls]

    assert covered == sorted(set(covered))
    for loop in loops:
        labels = "".join(names[call] for call in loop.calls)
        assert labels == labels[: loop.period] * loop.times
        assert loop.times >= 2
        assert 1 <= loop.period <= MAX_PERIOD
        assert list(loop.calls) == list(range(loop.first, loop.last + 1))
    for i in range(len(names) - 1):
        assert names[i] != names[i + 1] or {i, i + 1} & set(covered)


@given(
    st.text("uvwxyz", max_size=6, min_size=0),
    st.sampled_from(["a", "ab", "abb", "abc", "abcd", "aabc"]),
    st.integers(2, 9),
)
def test_a_planted_cycle_is_found_among_calls_that_happen_once(around: str, cycle: str, times: int) -> None:
    once = "".join(dict.fromkeys(around))
    run = calls(once + cycle * times + once.upper())
    longest = max(find(run, always), key=lambda loop: len(loop.calls))

    assert (longest.first, longest.period, longest.times) == (len(once), len(cycle), times)


def test_other_arguments_are_no_repetition() -> None:
    spans = [make_span(str(i), "search", TOOL, preview=f"q{i}") for i in range(6)]
    assert candidates(make_run(spans)) == []
    hashed = [make_span(str(i), "search", TOOL, preview="q", input_hash=str(i)) for i in range(6)]
    assert candidates(make_run(hashed)) == []


def test_a_conversation_that_grows_may_be_one() -> None:
    spans = [make_span(str(i), "gpt-4o", Operation.CHAT, preview="and now?", input_hash=str(i)) for i in range(3)]
    assert [list(loop.calls) for loop in candidates(make_run(spans))] == [[0, 1, 2]]


def test_other_spans_are_part_of_a_loop_but_no_loop_alone() -> None:
    hooks = [make_span(str(i), "guard", Operation.HOOK) for i in range(4)]
    assert candidates(make_run(hooks)) == []
    both = [make_span(str(i), "guard" if i % 2 else "search", Operation.HOOK if i % 2 else TOOL) for i in range(6)]
    assert [(loop.period, loop.times) for loop in find(make_run(both), always)] == [(2, 3)]


def test_calls_in_turns_follow_each_other() -> None:
    spans = []
    for i in range(3):
        spans.append(make_span(f"t{i}", f"turn {i}", Operation.TURN, i, 5000, usage=Usage(total_tokens=70)))
        spans.append(make_span(f"c{i}", "search", TOOL, i, 100, parent_id=f"t{i}", usage=Usage(total_tokens=7)))
    loop = find(make_run(spans), always)[0]

    assert (loop.first, loop.repeat, loop.last) == (1, 3, 5)
    assert (loop.wasted_ms, loop.wasted_tokens) == (200, 14)


def test_spans_below_a_call_take_no_time_of_their_own() -> None:
    spans = []
    for i in range(3):
        spans.append(make_span(f"s{i}", "search", TOOL, i, 100, usage=Usage(total_tokens=5)))
        spans.append(make_span(f"f{i}", "fetch", TOOL, i, 60, parent_id=f"s{i}", usage=Usage(total_tokens=2)))
    loop = find(make_run(spans), always)[0]

    assert (loop.period, loop.times) == (2, 3)
    assert (loop.wasted_ms, loop.wasted_tokens) == (200, 14)


def test_unrecorded_cost_is_unknown_not_zero() -> None:
    loop = find(make_run([make_span(str(i), "search", TOOL) for i in range(3)]), always)[0]
    assert (loop.wasted_ms, loop.wasted_tokens) == (None, None)
    odd = [make_span(str(i), "search", TOOL, 0, ms) for i, ms in enumerate([1, float("nan"), float("inf"), -5.0])]
    assert find(make_run(odd), always)[0].wasted_ms is None


def cut(run: Run, others: set[tuple[str, str]], calls: set[tuple[str, str]] = frozenset()) -> list[Loop]:  # type: ignore[assignment]
    def same(a: Span, b: Span) -> Sameness:
        pair = a.id, b.id
        return Sameness.OTHER if pair in others else Sameness.CALL if pair in calls else Sameness.IDENTICAL

    return find(run, same)


def test_a_candidate_is_cut_where_a_call_is_another() -> None:
    loops = cut(calls("aaaaaa"), {("2", "3")}, {("4", "5")})
    assert [(loop.first, loop.last, loop.identical) for loop in loops] == [(0, 2, True), (3, 5, False)]
    assert cut(calls("aa"), {("0", "1")}) == []
    loops = cut(calls("abababab"), {("4", "6")})
    assert [(loop.first, loop.last, loop.times) for loop in loops] == [(0, 5, 3)]


def test_a_hundred_thousand_calls_take_a_moment() -> None:
    run = calls("ab" * 20_000 + "cdef" * 5_000 + "g" * 40_000)
    best = 9.0
    for _ in range(5):
        begun = time.process_time()
        repetitions = candidates(run)
        best = min(best, time.process_time() - begun)

    assert [(repetition.period, len(repetition.calls)) for repetition in repetitions] == [
        (2, 40_000),
        (4, 20_000),
        (1, 40_000),
    ]
    assert best < 1  # 0.05 on an idle machine

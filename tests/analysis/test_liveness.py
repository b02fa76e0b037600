"""How a run stands that may be going on: the rules, and that they never raise and never go back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import HOSTILE, START, check_line, make_run, make_span, runs
from tracetui.analysis.liveness import Liveness, State, liveness, summary_state
from tracetui.model import Operation, Run, RunSummary, Span, Status, StatusSource
from tracetui.views.rows import Piece

CHAT, TOOL = Operation.CHAT, Operation.EXECUTE_TOOL
ORDER = [State.RUNNING, State.QUIET, State.STALLED, State.UNKNOWN]


def going_on(spans: list[Span], **header: Any) -> Run:
    """A run without an end."""
    return make_run(spans, **{"ended": False, **header})


def steps(number: int, seconds: float = 9.0) -> list[Span]:
    """Tool calls one after the other, each of so many seconds."""
    return [make_span(str(i), "Read", TOOL, i * seconds, seconds * 1000, step=i) for i in range(number)]


def opened(after: float, name: str = "Bash") -> Span:
    """A call that began so many seconds after `START` and is open."""
    return make_span("open", name, TOOL, after, step=99, status=Status.RUNNING)


def of_file_with_many(run: Run) -> Run:
    """The same run as one of several in its file."""
    ref = msgspec.structs.replace(run.summary.ref, key="run-1")
    return msgspec.structs.replace(run, summary=msgspec.structs.replace(run.summary, ref=ref))


def at(run: Run, silent: float, *, seen: bool = True, changed: float = START + 1000) -> Liveness:
    """How a run stands after so many seconds of silence."""
    return liveness(run, now=changed + silent, arrivals=[changed] if seen else [], changed_at=changed)


# ---- the rules


@pytest.mark.parametrize(
    ("silent", "state"),
    [
        (0, State.RUNNING),
        (18, State.RUNNING),  # twice the usual nine seconds
        (19, State.QUIET),
        (60, State.QUIET),  # a minute is no stall, and five times the usual is less
        (61, State.STALLED),
        (4000, State.STALLED),  # seen to move: it is never given up
    ],
)
def test_the_state_follows_the_silence_and_the_pace_of_the_run(silent: float, state: State) -> None:
    assert at(going_on(steps(8)), silent).state is state


def test_fast_steps_are_given_ten_seconds() -> None:
    run = going_on(steps(8, 0.1))
    assert [at(run, silent).state for silent in (10, 11)] == [State.RUNNING, State.QUIET]


def test_a_copy_of_an_old_run_is_not_live_because_its_file_is_new() -> None:
    run = going_on(steps(8))
    copied = START + 3 * 86_400
    naive = run.summary.replace(time_zone=None)
    assert at(run, 1, seen=False, changed=copied).state is State.UNKNOWN
    assert at(run, 1, changed=copied).state is State.RUNNING
    assert summary_state(run.summary, now=copied + 1, changed_at=copied)[0] is State.UNKNOWN
    assert summary_state(run.summary, now=copied + 1, changed_at=copied, seen=True)[0] is State.RUNNING
    assert summary_state(run.summary, now=START + 3_601, changed_at=START + 3_600)[0] is State.RUNNING
    assert summary_state(naive, now=copied + 1, changed_at=copied)[0] is State.RUNNING  # nobody knows when that was


def test_a_run_that_was_silent_for_long_before_may_be_so_again() -> None:
    run = going_on([*steps(40), make_span("long", "Read", TOOL, 360, 200_000)])
    stand = at(run, 390)
    assert stand.usual.p95_ms == pytest.approx(9000)
    assert stand.usual.longest_ms == pytest.approx(200_000)
    assert stand.state is State.QUIET
    assert at(run, 401).state is State.STALLED


def test_the_time_a_human_took_is_no_gap_of_the_run() -> None:
    asked = make_span("asked", "user", Operation.MESSAGE, 5000)
    run = going_on([*steps(8), asked, make_span("after", "Read", TOOL, 5000, 3000)])
    assert at(run, 0).usual.longest_ms == pytest.approx(9000)


def test_without_a_known_pace_minutes_are_waited() -> None:
    run = going_on(steps(3))
    assert at(run, 0).usual.p95_ms is None
    assert at(run, 0).usual.longest_ms == pytest.approx(9000)
    assert [at(run, silent).state for silent in (30, 31, 300, 301)] == [
        State.RUNNING,
        State.QUIET,
        State.QUIET,
        State.STALLED,
    ]


def test_the_state_of_a_trace_without_times_follows_from_arrivals() -> None:
    spans = [make_span(str(i), "Read", TOOL) for i in range(9)]
    run = going_on([*spans, make_span("open", "Bash", TOOL, status=Status.RUNNING)])
    arrivals = [START + 4 * i for i in range(9)]
    stand = liveness(run, now=arrivals[-1] + 30, arrivals=arrivals, changed_at=arrivals[-1])
    assert (stand.usual.p95_ms, stand.usual.source) == (4000, "measured live")
    assert stand.state is State.RUNNING, "nobody knows how long the call takes"
    assert stand.open is not None
    assert (stand.open.ms, stand.open.at_least) == (30_000, True)


def test_an_open_call_is_compared_with_its_own_earlier_calls() -> None:
    suites = [make_span(f"b{i}", "Bash", TOOL, 100 + i * 601, 600_000) for i in range(6)]
    run = going_on([*steps(90, 1), *suites, opened(3800)])
    stand = at(run, 590, changed=START + 3810)
    assert stand.open is not None
    assert (stand.open.name, stand.open.ms, stand.open.at_least) == ("Bash", 600_000, False)
    assert (stand.usual.p95_ms, stand.usual.source) == (600_000, "earlier calls")
    assert stand.state is State.RUNNING
    quick = at(going_on([*steps(90, 1), *suites, opened(3800, "Read")]), 590, changed=START + 3810)
    assert quick.state is State.STALLED
    assert "Read is open, earlier calls 1s" in quick.reason


def test_of_several_open_calls_the_one_that_may_take_longest_explains_the_silence() -> None:
    suites = [make_span(f"b{i}", "Bash", TOOL, i * 100, 90_000) for i in range(6)]
    both = [opened(600), msgspec.structs.replace(opened(599, "Read"), id="other")]
    stand = at(going_on([*steps(20, 1), *suites, *both]), 100, changed=START + 600)
    assert stand.open is not None
    assert (stand.open.name, stand.open.others) == ("Bash", 1)
    assert stand.state is State.RUNNING


def test_run_waits_for_the_innermost_open_call() -> None:
    agent = make_span("a", "planner", Operation.INVOKE_AGENT, 0, status=Status.RUNNING)
    task = make_span("t", "Agent", TOOL, 0, status=Status.RUNNING, parent_id="a")
    inner = msgspec.structs.replace(opened(5), parent_id="t")
    stand = at(going_on([agent, task, inner]), 1, changed=START + 10)
    assert stand.open is not None
    assert (stand.open.span, stand.open.others) == ("open", 0)
    assert at(going_on([agent, make_span("d", "Read", TOOL, 0, 1, parent_id="a")]), 1).open is None


def test_naive_times_say_nothing_about_now() -> None:
    run = going_on([*steps(8), opened(72)], time_zone=None)
    stand = at(run, 20, changed=START + 7200)
    assert stand.open is not None
    assert (stand.open.ms, stand.open.at_least) == (20_000, True)
    assert stand.usual.p95_ms == pytest.approx(9000)


def test_nothing_is_declared_dead_from_silence() -> None:
    for seen in (True, False):
        assert at(going_on(steps(8)), 1e9, seen=seen).state is not State.ENDED


@pytest.mark.parametrize("status", [Status.OK, Status.ERROR, Status.CANCELLED, Status.PAUSED])
def test_a_final_status_is_an_end_whatever_the_silence(status: Status) -> None:
    word: dict[str, Any] = {"status_word": status.value, "status_source": StatusSource.EXPLICIT}
    for silent in (0, 100_000):
        stand = at(make_run(steps(8), status=status, **word), silent)
        assert stand.state is State.ENDED
        assert stand.open is None
        assert stand.reason.startswith(("recorded as ", "paused, "))


def test_the_paused_wait_for_a_human() -> None:
    stand = at(make_run(steps(2), status=Status.PAUSED), 5)
    assert stand.reason == "paused, waiting for a human"


def test_a_crashed_run_is_unknown_although_its_file_says_active() -> None:
    run = going_on([*steps(8), opened(72)], status_word="active")
    stand = at(run, 3 * 86400, seen=False)
    assert stand.state is State.UNKNOWN
    assert stand.reason == "recorded as active; no writes for 3d"
    assert at(run, 3500, seen=False).state is State.STALLED
    assert at(going_on([]), 7200, seen=False).reason == "no end record; no writes for 2h"


def test_in_a_file_of_many_runs_what_the_others_write_is_no_sign_of_life() -> None:
    run = of_file_with_many(going_on([*steps(8), opened(72)], status_word="active"))
    now = START + 86_400
    assert liveness(run, now=now, arrivals=[], changed_at=now).state is State.UNKNOWN
    assert liveness(run, now=now, arrivals=[now - 1], changed_at=now).state is State.RUNNING


def test_a_word_that_nobody_knows_is_no_end_and_no_sign_of_life() -> None:
    run = make_run(steps(8), status=Status.UNKNOWN, status_word="ok?", status_source=StatusSource.EXPLICIT)
    assert at(run, 1).state is State.RUNNING
    stand = at(run, 100)
    assert stand.state is State.UNKNOWN
    assert stand.reason == "recorded as ok?, neither running nor ended"


def test_when_nobody_knows_the_last_change_nothing_is_claimed() -> None:
    stand = liveness(going_on([]), now=START, arrivals=[], changed_at=None)
    assert (stand.state, stand.silent_ms) == (State.UNKNOWN, None)


def test_a_clock_that_runs_ahead_is_no_silence() -> None:
    assert at(going_on(steps(8)), -500).silent_ms == 0


def test_reasons_are_plain_sentences() -> None:
    run = going_on([*steps(8), opened(72)])
    assert at(run, 3).reason == ("last change 3s ago; typical gap 9s, longest 9s (trace clock)")
    assert at(run, 0.1).reason.startswith("last change just now; ")
    assert at(run, 41).reason.startswith("last change 41s ago; typical gap 9s")
    assert at(going_on(steps(8)), 41).reason.startswith("no change for 41s; typical gap 9s")
    assert at(run, 221).reason.endswith("; it may still be working")


# ---- the row of the list


def test_a_summary_has_a_state_without_its_steps() -> None:
    summary = going_on([], status_word="active").summary
    assert summary.status is Status.UNKNOWN

    def state(silent: float, *, seen: bool = False) -> State:
        return summary_state(summary, now=START + silent, changed_at=START, seen=seen)[0]

    assert [state(silent) for silent in (1, 31, 301, 3601)] == ORDER
    assert state(3601, seen=True) is State.STALLED
    done = make_run([], status=Status.ERROR, status_word="failed").summary
    assert summary_state(done, now=START, changed_at=START) == (State.ENDED, "recorded as failed")


# ---- any run


SECONDS = st.floats(0, 1e7) | st.sampled_from([0.0, 10.0, 30.0, 60.0, 300.0, 3600.0])
ANY = st.floats() | st.none()


@given(runs(), st.lists(SECONDS, max_size=30).map(sorted), st.lists(SECONDS, min_size=2, max_size=8).map(sorted))
def test_states_only_go_down_while_the_silence_lasts(run: Run, arrived: list[float], silences: list[float]) -> None:
    for variant in (run, of_file_with_many(run)):
        arrivals = [START + at for at in arrived]
        changed = arrivals[-1] if arrivals else START
        states = [liveness(variant, now=changed + s, arrivals=arrivals, changed_at=changed).state for s in silences]
        if State.ENDED in states:
            assert set(states) == {State.ENDED}
        else:
            assert states == sorted(states, key=ORDER.index)


@given(runs(), st.lists(st.floats(), max_size=30), st.floats(), ANY, HOSTILE)
def test_nothing_raises(run: Run, arrivals: list[float], now: float, changed: float | None, word: str) -> None:
    run = msgspec.structs.replace(run, summary=run.summary.replace(status_word=word))
    stand = liveness(run, now=now, arrivals=arrivals, changed_at=changed)
    assert stand.silent_ms is None or stand.silent_ms >= 0
    check_line((Piece(stand.reason),), 500)
    if stand.open is not None:
        assert run.span(stand.open.span) is not None
        assert stand.state is not State.ENDED
    summary: RunSummary = run.summary
    state, reason = summary_state(summary, now=now, changed_at=changed)
    check_line((Piece(reason),), 500)
    assert (state is State.ENDED) is (stand.state is State.ENDED)

"""How often what arrives is painted, and how far a terminal is behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.ui.terminal.throttle import (
    ANSWER_TIMEOUT_SECONDS,
    BYTES_PER_SECOND,
    INTERVAL_SECONDS,
    MAX_INTERVAL_SECONDS,
    MIN_WINDOW_BYTES,
    WINDOW_BYTES,
    LagProbe,
    PaintThrottle,
)

PANE = 9_400
"""Bytes of a pane that scrolled by a row, at 120×40."""


def painted_in(throttle: PaintThrottle, seconds: float, *, lag: float = 0.0, size: int = PANE) -> tuple[int, int]:
    """Pictures and bytes while 20 steps a second arrive."""
    pictures = 0
    due: float | None = None
    for tick in range(int(seconds * 1000)):
        now = tick / 1000
        if tick % 50 == 0 and due is None:
            due = now + throttle.delay(now, lag)
        if due is not None and now >= due:
            throttle.record_frame(now)
            throttle.record_bytes(size)
            pictures, due = pictures + 1, None
    return pictures, pictures * size


def test_after_a_pause_it_is_painted_at_once() -> None:
    for throttle, frames in ((PaintThrottle(), 2), (PaintThrottle(slow=True), 1)):
        for start in (0.0, 10.0):
            for frame in range(frames):
                assert throttle.delay(start + frame / 100) == 0.0
                throttle.record_frame(start + frame / 100)
                throttle.record_bytes(PANE)
            assert throttle.delay(start + 0.05) > 0


def test_following_twenty_steps_a_second_costs_less_than_100_kB_a_second() -> None:
    pictures, size = painted_in(PaintThrottle(), 10)
    assert 60 <= pictures <= 81
    assert size < 10 * 100_000
    assert painted_in(PaintThrottle(), 10, size=40_000)[1] < 10 * 100_000, "a larger terminal is painted less often"


def test_on_a_slow_line_it_costs_less_than_20_kB_a_second() -> None:
    for pictures, size in (painted_in(PaintThrottle(slow=True), 20), painted_in(PaintThrottle(), 20, lag=0.5)):
        assert 20 <= pictures <= 30
        assert size < 20 * 20_000


def test_a_lag_that_is_over_slows_down_for_some_seconds_more() -> None:
    throttle = PaintThrottle()
    throttle.record_frame(0.0)
    throttle.record_bytes(PANE)
    assert throttle.delay(0.0, lag=1.0) == pytest.approx(1.0 - INTERVAL_SECONDS)
    throttle.record_frame(1.0)
    throttle.record_bytes(PANE)
    assert throttle.delay(1.0, lag=0.0) == pytest.approx(0.7, abs=0.05)
    assert throttle.is_slow(4.9)
    assert not throttle.is_slow(5.1)


def test_the_frame_after_a_large_one_waits_for_its_bytes() -> None:
    throttle = PaintThrottle()
    throttle.record_frame(1.0)
    throttle.record_bytes(BYTES_PER_SECOND // 2)
    throttle.record_bytes(BYTES_PER_SECOND // 2)
    assert throttle.delay(1.0) == pytest.approx(1.0 - INTERVAL_SECONDS)


def test_frames_that_answer_keys_delay_the_next_one_by_one_interval() -> None:
    throttle = PaintThrottle()
    for key in range(10):
        throttle.record_frame(key / 30)
    assert 0 < throttle.delay(9 / 30) <= INTERVAL_SECONDS


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 10**9), st.floats(0, 1e6)), max_size=30), st.booleans())
def test_a_picture_is_never_put_off_for_long(events: list[tuple[float, int, float]], slow: bool) -> None:
    throttle, now = PaintThrottle(slow=slow), 0.0
    for pause, size, lag in events:
        now += pause
        wait = throttle.delay(now, lag)
        assert 0.0 <= wait <= MAX_INTERVAL_SECONDS
        assert throttle.delay(now + wait + 1e-6) <= MAX_INTERVAL_SECONDS
        throttle.record_frame(now)
        throttle.record_bytes(size)


# ---- the probe


def asked(trip: float, sent: int = 1000) -> LagProbe:
    """A probe whose terminal took so long for its first answer."""
    probe = LagProbe()
    probe.record_query(0.0, sent)
    assert probe.record_answer(trip)
    return probe


def test_a_terminal_that_never_answered_is_not_probed() -> None:
    probe = LagProbe()
    assert not probe.due(1.0, 10**9)
    assert not probe.record_answer(1.0)
    probe.record_query(2.0, 0)
    assert not probe.is_full(3.0, 10**9)
    assert probe.lag(3.0) == 0.0


def test_the_round_trip_itself_is_no_lag() -> None:
    probe = asked(0.5)
    assert probe.due(1.0, 2000)
    probe.record_query(1.0, 2000)
    assert probe.lag(1.5) == pytest.approx(0.0)
    assert probe.lag(3.5) == pytest.approx(2.0)
    probe.record_answer(4.0)
    assert probe.lag(9.0) == pytest.approx(2.5)


def test_no_probe_is_sent_without_a_paint() -> None:
    probe = asked(0.01, sent=1000)
    assert not probe.due(100.0, 1000)
    assert probe.due(100.0, 1001)


def test_bytes_in_flight_are_limited() -> None:
    probe = asked(0.01, sent=0)
    assert probe.due(0.1, WINDOW_BYTES), "soon, where much was sent"
    probe.record_query(0.1, WINDOW_BYTES)
    assert not probe.is_full(0.2, WINDOW_BYTES)
    assert probe.is_full(0.2, WINDOW_BYTES + 1)
    assert probe.is_full(0.5, MIN_WINDOW_BYTES + 1), "an answer that is late tells as much as one that came late"
    probe.record_answer(0.12)
    assert not probe.is_full(0.2, WINDOW_BYTES + 1)


def test_the_window_is_small_while_the_terminal_lags_and_grows_where_it_is_used() -> None:
    probe = asked(0.01, sent=0)
    for turn in range(1, 6):
        probe.record_query(turn, turn)
        probe.record_answer(turn + 0.9)
    probe.record_query(10.0, 10)
    assert probe.is_full(10.0, MIN_WINDOW_BYTES + 6)
    probe.record_answer(10.01)
    probe.record_query(11.0, MIN_WINDOW_BYTES)
    probe.record_answer(11.01)
    probe.record_query(12.0, MIN_WINDOW_BYTES + 1)
    assert not probe.is_full(12.0, MIN_WINDOW_BYTES * 3 - 1)


def test_a_terminal_that_stops_answering_is_let_alone() -> None:
    probe = asked(0.01, sent=0)
    probe.record_query(1.0, 10)
    assert probe.is_full(2.0, 10**6)
    assert not probe.is_full(1.1 + ANSWER_TIMEOUT_SECONDS, 10**6)
    assert probe.lag(30.0) == 0.0
    assert not probe.due(31.0, 10**6)

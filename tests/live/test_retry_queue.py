"""Scheduled paths fall due once, at their latest time."""

from __future__ import annotations

import time

from tracetui.live.watch import STILL_SECONDS, RetryQueue, running_seconds, settle_seconds
from tracetui.sources.base import MOVING_SECONDS, Stat


def test_the_earliest_time_counts_unless_it_is_moved_or_dropped() -> None:
    retries, now = RetryQueue(), time.monotonic()
    past, later = now - 1, now + 100
    retries.schedule("added twice", past)
    retries.schedule("added twice", later)
    retries.schedule("moved", past)
    retries.reschedule("moved", later)
    retries.schedule("dropped", past)
    retries.cancel("dropped")
    retries.reschedule("moved back", later)
    retries.reschedule("moved back", past)

    assert retries.wait_seconds(5.0) == 0.0
    assert sorted(retries.pop_due()) == ["added twice", "moved back"]
    assert list(retries.pop_due()) == []
    assert retries.wait_seconds(5.0) == 5.0
    assert 50 < retries.wait_seconds(1000.0) <= 100


def test_an_empty_file_is_given_longer_than_one_that_is_half_written() -> None:
    assert settle_seconds(Stat(0, 0, 10, 0)) == settle_seconds(None) == STILL_SECONDS
    assert settle_seconds(Stat(0, 0, 0, 0)) == MOVING_SECONDS


def test_a_run_with_a_future_modification_time_is_checked_rarely() -> None:
    assert running_seconds(0.0) == MOVING_SECONDS
    assert running_seconds(MOVING_SECONDS - 0.1) == STILL_SECONDS
    assert running_seconds(MOVING_SECONDS) == running_seconds(3600.0) == MOVING_SECONDS

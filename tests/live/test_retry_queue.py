"""What is planned falls due once, at the moment that counts."""

from __future__ import annotations

import time

from tracetui.live.retry_queue import STILL_SECONDS, Agenda, patience, running_for
from tracetui.sources.base import MOVING_SECONDS, Stat


def test_of_several_moments_the_first_counts_unless_it_is_moved_or_dropped() -> None:
    agenda, now = Agenda(), time.monotonic()
    past, later = now - 1, now + 100
    agenda.add("added twice", past)
    agenda.add("added twice", later)
    agenda.add("moved", past)
    agenda.move("moved", later)
    agenda.add("dropped", past)
    agenda.drop("dropped")
    agenda.move("moved back", later)
    agenda.move("moved back", past)

    assert agenda.wait(5.0) == 0.0
    assert sorted(agenda.due()) == ["added twice", "moved back"]
    assert list(agenda.due()) == []
    assert agenda.wait(5.0) == 5.0
    assert 50 < agenda.wait(1000.0) <= 100


def test_an_empty_file_is_given_longer_than_one_that_is_half_written() -> None:
    assert patience(Stat(0, 0, 10, 0)) == patience(None) == STILL_SECONDS
    assert patience(Stat(0, 0, 0, 0)) == MOVING_SECONDS


def test_a_run_whose_file_comes_from_the_future_is_looked_at_seldom() -> None:
    assert running_for(0.0) == MOVING_SECONDS
    assert running_for(MOVING_SECONDS - 0.1) == STILL_SECONDS
    assert running_for(MOVING_SECONDS) == running_for(3600.0) == MOVING_SECONDS

"""How long a run has been silent is told by our clock, not by that of its machine."""

from __future__ import annotations

from tracetui.store.pulse import BEATS, Pulse


def test_a_run_of_a_machine_whose_clock_is_ahead_falls_silent_as_others_do() -> None:
    pulse = Pulse(3, changed_at=5_000.0)
    pulse.beat(1_000.0, 4)
    pulse.beat(1_010.0, 4)
    assert pulse.changed_at == 1_010.0
    assert list(pulse.arrivals) == [1_000.0]


def test_only_so_many_arrivals_are_remembered() -> None:
    pulse = Pulse(0, changed_at=0.0)
    for second in range(2 * BEATS):
        pulse.beat(float(second), second + 1)
    assert list(pulse.arrivals) == [float(second) for second in range(BEATS, 2 * BEATS)]

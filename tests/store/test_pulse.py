"""The silence of a run is measured by our clock, not by that of its machine."""

from __future__ import annotations

from msgspec.structs import replace

from tracetui.live.scan import ScannedFile
from tracetui.model import RunRef, RunSummary, Status, StatusSource
from tracetui.store.store import BEATS, Pulse, Store


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


def test_a_run_from_the_future_has_not_changed_since_it_was_first_seen() -> None:
    ref, store = RunRef("ccpa", "a.jsonl"), Store()
    run = RunSummary.of(ref=ref, id="a", name="a", status=Status.RUNNING, modified_at=5_000.0, deep=True)
    store.apply([ScannedFile(path=ref.path, runs=(run,))], 1_000.0)
    store.apply([ScannedFile(path=ref.path, runs=(run,))], 1_100.0)
    assert store.changed_at(run) == 1_000.0
    store.apply([ScannedFile(path=ref.path, runs=(replace(run, modified_at=5_200.0),))], 1_200.0)
    assert store.changed_at(run) == 1_200.0


def test_a_file_that_is_still_is_no_change_of_its_run() -> None:
    """Else a copied run would seem to be running for another while."""
    store, ref = Store(), RunRef("ccpa", "a.jsonl")
    running = RunSummary.of(
        ref=ref,
        id="a",
        name="run",
        status=Status.RUNNING,
        status_source=StatusSource.DERIVED,
        unfinished=True,
        modified_at=5.0,
        deep=True,
    )
    still = running.replace(status=Status.UNKNOWN, unfinished=False, problems=1)
    store.apply([ScannedFile(path=ref.path, runs=(running,))], 10.0)
    store.apply([ScannedFile(path=ref.path, runs=(still,))], 40.0)
    assert store.pulses == {}
    store.apply([ScannedFile(path=ref.path, runs=(still.replace(steps=2),))], 50.0)
    assert store.pulses.keys() == {ref}

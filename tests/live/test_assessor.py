"""The open run is assessed after it was read, by its exact values."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.diff.build import Step, run_of
from tests.shared import PATIENCE
from tracetui.analysis.assessment import Assessment, candidates
from tracetui.live import opener
from tracetui.live.engine import Engine
from tracetui.model import Body, Run, RunRef, Span
from tracetui.model.masked import masked_bodies
from tracetui.redact import Redactor
from tracetui.sources.local import LocalSource


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(LocalSource(), [])
    yield engine
    engine.stop()


def collect_assessments(engine: Engine, run: Run) -> dict[RunRef, Assessment]:
    """All mail until that state of a run is assessed."""
    assessments: dict[RunRef, Assessment] = {}
    end = time.monotonic() + PATIENCE
    while (known := assessments.get(run.summary.ref)) is None or known.run is not run:
        assert engine.wait(end - time.monotonic()), "nothing came"
        assessments |= engine.collect().assessments
    return assessments


def polling(ident: str, times: int, *, result: str = "queued") -> Run:
    return run_of([Step(input="build 5512", output=result)] * times, ident=ident)


def test_each_run_event_carries_its_own_state(engine: Engine) -> None:
    run = polling("a", 3)
    engine.assessor.assess(run)
    assert [loop.times for loop in collect_assessments(engine, run)[run.summary.ref].loops] == [3]

    grown = polling("a", 5)
    for state in (polling("a", 4), grown):
        engine.assessor.assess(state)
    assert [loop.times for loop in collect_assessments(engine, grown)[run.summary.ref].loops] == [5]


def test_a_context_is_read_as_soon_as_it_is_wanted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opener, "SHARE", 1_000_000)
    run = polling("a", 3)
    engine.assessor.assess(run)
    collect_assessments(engine, run)
    engine.assessor.assess(run, context=True)
    while run.summary.ref not in engine.collect().contexts:
        assert engine.wait(PATIENCE), "nothing came"


def test_an_unselected_run_is_abandoned(engine: Engine) -> None:
    begun, seen = threading.Event(), threading.Event()
    loaded: list[str] = []

    def slow(span: Span) -> Body:
        loaded.append(span.id)
        begun.set()
        assert seen.wait(PATIENCE)
        return Body(input="build 5512", output="queued")

    engine.assessor.assess(replace(polling("a", 500), load=slow))
    assert begun.wait(PATIENCE)
    other = polling("b", 2)
    engine.assessor.assess(other)
    seen.set()

    assert set(collect_assessments(engine, other)) == {other.summary.ref}
    assert len(loaded) == 1


def test_calls_with_other_secrets_are_other_calls_however_they_are_masked(engine: Engine) -> None:
    run = run_of([Step(input={"text": "x" * 200, "api_key": letter * 40}, output="no") for letter in "aabc"])
    assert len(candidates(run)[0].calls) == 4
    engine.assessor.assess(masked := masked_bodies(run, Redactor()))
    assert [(loop.first, loop.times) for loop in collect_assessments(engine, masked)[run.summary.ref].loops] == [(0, 2)]

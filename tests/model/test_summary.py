"""Summaries are compact, and hide it: every field reads as it was given."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.model import (
    FirstError,
    LastEvent,
    ModelUsage,
    Operation,
    Outcome,
    RunRef,
    RunSummary,
    Score,
    Status,
    Usage,
)
from tracetui.model.summary import FIELDS

REF = RunRef("any", "/traces/a.json")
FULL: dict[str, Any] = {
    "id": "a", "name": "researcher", "agent": "researcher", "status": Status.ERROR, "started_at": 5.0,
    "duration_ms": 2.5, "usage": Usage(1, 2, cost_usd=0.5), "steps": 3, "errors": 1, "prompt": "Find ☃ it",
    "first_error": FirstError("boom", "ValueError", "7", "search", Operation.EXECUTE_TOOL), "tools": ("a", "b"),
    "last": LastEvent(Operation.CHAT, "m", Status.OK), "scores": (Score("x", 1.0, True), Score("y", True)),
    "outcome": Outcome.PASSED, "model_usage": (ModelUsage("m", 1, Usage(3)),), "repeats": "k", "modified_at": 7.0,
    "deep": True,
}  # fmt: skip


def test_fields_read_as_they_were_given() -> None:
    run = RunSummary.of(REF, **FULL)
    assert {name: getattr(run, name) for name in FULL} == FULL
    assert {name for name in FIELDS if not hasattr(run, name)} == set()
    assert [type(score.value) for score in run.scores] == [float, bool]


@pytest.mark.parametrize("name", FULL)
def test_one_field_is_replaced(name: str) -> None:
    run = RunSummary.of(REF, id="b", name="b")
    changed = run.replace(**{name: FULL[name]})
    assert {field for field in FIELDS if getattr(changed, field) != getattr(run, field)} == {name}
    assert changed != run
    assert changed.replace(**{name: getattr(run, name)}) == run


@given(st.one_of(st.integers(), st.floats(), st.text(), st.characters(categories=["Cs"]), st.none(), st.booleans()))
def test_values_that_bytes_cannot_hold_stay_as_they_are(value: Any) -> None:
    for name in ("id", "steps", "prompt", "size", "result"):
        fields = {"id": "a", "name": "a", name: value}
        read = getattr(RunSummary.of(REF, **fields), name)
        assert repr(read) == repr(value)


def test_several_runs_read_in_turn() -> None:
    first, other = (RunSummary.of(REF, id=ident, name="n", prompt=ident * 3) for ident in "ab")
    assert [(run.id, run.prompt) for run in (first, other, first)] == [("a", "aaa"), ("b", "bbb"), ("a", "aaa")]


def test_a_listed_run_takes_few_bytes() -> None:
    def summaries(count: int) -> list[RunSummary]:
        return [
            RunSummary.of(
                RunRef("any", f"/home/me/traces/{i:036}.json"), id=f"{i:036}", name="researcher", started_at=float(i),
                duration_ms=i + 0.5, usage=Usage(i + 1000, i + 2000), steps=12, spans=12, prompt=f"{i:0100}",
                modified_at=i + 0.25, size=i + 1000, deep=True,
            )
            for i in range(count)
        ]  # fmt: skip

    summaries(10)
    tracemalloc.start()
    runs = summaries(1000)
    size = tracemalloc.get_traced_memory()[0] / len(runs)
    tracemalloc.stop()
    assert size < 560

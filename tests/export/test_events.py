"""Events as data and as lines."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import REF, make_run, make_span, researcher
from tracetui.export.json import Lines, event_line
from tracetui.model import Error, Operation, Problem, Status
from tracetui.model.run import Event, ProblemMet, RunChanged, RunEnded, RunReset, SpanChanged
from tracetui.text import UNSAFE
from tracetui.views.glyphs import ASCII


def data(event: Event) -> Any:
    line = event_line(event, now=1e9)
    assert line.count(b"\n") == 1
    return json.loads(line)


def texts(lines: Lines, *events: Event) -> list[str]:
    return [line for event in events for line in lines.lines(event)]


def test_events_as_data() -> None:
    run = researcher()
    address = REF.address

    event = data(RunChanged(run.summary, "b.json"))
    assert (event["event"], event["run"], event["id"]) == ("run", address, "0690e0f0")
    assert event["summary"]["replay_of_address"] == "b.json"
    assert event["summary"]["spans"] == 7

    event = data(SpanChanged(run, 4))
    assert list(event) == ["event", "run", "span"]
    assert (event["span"]["id"], event["span"]["depth"], event["span"]["name"]) == ("9a", 2, "robots")

    assert data(RunReset(address)) == {"event": "reset", "run": address}
    assert data(RunEnded(run.summary)) == {
        "event": "end",
        "run": address,
        "status": "error",
        "outcome": None,
        "scores": [],
    }
    problem = {"path": "p", "where": "line 3", "reason": "no"}
    assert data(ProblemMet(Problem("p", "line 3", "no"))) == {"event": "problem", **problem}


def test_a_line_a_step() -> None:
    run = researcher()
    steps = [SpanChanged(run, position) for position in range(len(run.spans))]

    lines = texts(Lines(), RunChanged(run.summary), *steps, RunEnded(run.summary))

    assert lines[0] == "▸ researcher · /traces/a.json"
    assert lines[2] == "13:09:22   a                        1   ◆ gpt-4o  plan the search  1.9s"
    assert lines[-2].endswith("✗ search  KfW 442 budget  ✗ TimeoutError: search timed out after 30s  30.0s")
    assert "✗ error  5 steps" in lines[-1]
    assert len(lines) == 9


def test_the_arrival_time_replaces_a_missing_one() -> None:
    now = iter([36_000.0, 36_001.0, 36_002.0])
    lines = Lines(now=lambda: next(now))
    span = make_span("1", "sleep", Operation.EXECUTE_TOOL, step=1)
    run = make_run([msgspec.structs.replace(span, started_at=None)])

    assert texts(lines, SpanChanged(run, 0))[0].startswith("~10:00:00  ")
    assert texts(lines, SpanChanged(run, 0)) == []  # another time alone prints nothing
    assert texts(lines, RunEnded(run.summary))[0].startswith("~10:00:01  ")


def test_a_step_is_printed_again_only_if_its_line_is_another() -> None:
    lines = Lines()
    begun, ended = (
        make_run([make_span("1", "sleep", Operation.EXECUTE_TOOL, step=1, status=status, ms=ms)])
        for status, ms in ((Status.RUNNING, None), (Status.OK, 12.0))
    )

    assert len(texts(lines, SpanChanged(begun, 0), SpanChanged(begun, 0))) == 1
    assert texts(lines, SpanChanged(ended, 0))[0].endswith("■ sleep  12ms")
    assert texts(lines, RunChanged(begun.summary), RunChanged(ended.summary)) == ["▸ researcher · /traces/a.json"]
    assert len(texts(lines, RunReset(REF.address), SpanChanged(ended, 0))) == 2


@given(st.text(max_size=30))
def test_every_line_passed_the_gate(text: str) -> None:
    span = make_span("1", text, Operation.CHAT, preview=text, status=Status.ERROR, error=Error(text, text))
    run = make_run([span], agent=text, status=Status.ERROR, time_zone=None)
    summary = msgspec.structs.replace(run.summary, ref=msgspec.structs.replace(REF, path=text, key=text))
    run = msgspec.structs.replace(run, summary=summary)
    problem = ProblemMet(Problem(text, text, text))
    for glyphs in (ASCII, None):
        lines = Lines(glyphs) if glyphs else Lines()
        for line in texts(lines, RunChanged(summary), SpanChanged(run, 0), RunEnded(summary), RunReset(text), problem):
            assert not UNSAFE.search(line)

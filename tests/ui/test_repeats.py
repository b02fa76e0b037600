"""Runs of one task: what the list tells of them, what ``D`` opens, and that a comparison opens where they part."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import NOW, Opener, settle, text_of, until
from tests.ui.test_diff import type_keys, wait_for_screen
from tracetui.model import RunRef
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.diff import DiffScreen
from tracetui.ui.screens.lists import ReplaysScreen
from tracetui.views.diff.steps import PREFIX

START = int(NOW.timestamp() - 7200) * 1_000_000_000


def attribute(name: str, value: str) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value}}


def trace(number: int, *, asked: str, answers: list[str], name: str = "check", failed: int | None = None) -> str:
    """A line of OTLP: an agent that is asked something, and calls a tool for each answer."""
    began = START + number * 60_000_000_000
    root: dict[str, Any] = {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number + 1:016x}",
        "name": name,
        "startTimeUnixNano": str(began),
    }
    root |= {"endTimeUnixNano": str(began + 10_000_000_000), "attributes": [attribute("input.value", asked)]}
    root["attributes"] += [attribute("openinference.span.kind", "AGENT"), attribute("output.value", answers[-1])]
    spans = [root]
    for place, answer in enumerate(answers):
        at = began + (place + 1) * 1_000_000
        span: dict[str, Any] = {
            **root,
            "spanId": f"{number + 1:08x}{place + 1:08x}",
            "parentSpanId": root["spanId"],
            "name": "probe",
        }
        span |= {"startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 1000)}
        span["attributes"] = [attribute("openinference.span.kind", "TOOL"), attribute("input.value", f"host {place}")]
        span["attributes"].append(attribute("output.value", answer))
        if place == failed:
            span["status"] = {"code": 2, "message": "down"}
        spans.append(span)
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n"


def write(path: Path, *traces: str) -> RunRef:
    """These traces as a file that nobody writes any more; the reference of the first."""
    path.write_text("".join(traces))
    os.utime(path, (NOW.timestamp() - 3600,) * 2)
    first = json.loads(traces[0])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"]
    return RunRef("otlp", str(path), first)


async def go_to(app: TraceApp, pilot: Pilot[int], ref: RunRef) -> None:
    app.main.runs.move_to_key(ref)
    await settle(pilot)


def relationship_of(app: TraceApp, ref: RunRef) -> tuple[str, str]:
    """What the list says before and after the outcome of a run."""
    column = app.main.runs.relationship(app.store.runs[ref], app.look.glyphs)
    return "".join(piece.text for piece in column.before).strip(), "".join(piece.text for piece in column.after).strip()


async def test_a_thousand_health_checks_are_one_sign_each(opened: Opener, tmp_path: Path) -> None:
    checks = [trace(number, asked="ping", answers=["pong"]) for number in range(1000)]
    first = write(tmp_path / "health.jsonl", *reversed(checks))
    other = write(tmp_path / "other.jsonl", trace(2000, asked="ping", answers=["pong"], name="elsewhere"))
    first = RunRef("otlp", first.path, f"{1:032x}")
    last = RunRef("otlp", first.path, f"{1000:032x}")
    async with opened(tmp_path) as (app, pilot):
        assert relationship_of(app, first) == ("↺×999", "")
        assert relationship_of(app, last) == ("↺", "")
        assert relationship_of(app, other) == ("", "")
        await go_to(app, pilot, last)
        drawn = app.main.runs.rows.line(app.main.runs.position, 120)
        assert "ping" in "".join(piece.text for piece in drawn)
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        assert screen.request.relation == "repeat"
        assert "No differences" in text_of(app)
        await type_keys(pilot, screen, "escape")
        assert relationship_of(app, last) == ("↺", "=")


async def test_d_on_the_first_of_several_lists_the_others(opened: Opener, tmp_path: Path) -> None:
    answers = [["a", "b"], ["a", "c"], ["a", "b"]]
    first = write(tmp_path / "t.jsonl", *(trace(i, asked="go", answers=answers[i]) for i in range(3)))
    async with opened(tmp_path) as (app, pilot):
        await go_to(app, pilot, first)
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, ReplaysScreen)
        await until(pilot, lambda: "comparing" not in text_of(app).splitlines()[1], what="all comparisons")
        assert text_of(app).count("repeat ") >= 2
        await type_keys(pilot, screen, "escape")
        assert relationship_of(app, first)[0] == "↺×2 ≠1"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_comparison_opens_at_the_first_difference_and_folds_the_common_prefix(
    opened: Opener, tmp_path: Path, size: tuple[int, int]
) -> None:
    answers = [f"fine {i}" for i in range(40)]
    two = [*answers[:30], "odd", *answers[31:]]
    first = write(tmp_path / "a.jsonl", trace(0, asked="go", answers=answers))
    second = write(tmp_path / "b.jsonl", trace(1, asked="go", answers=two, failed=35))
    assert first.path < second.path
    async with opened(tmp_path, size=size) as (app, pilot):
        await go_to(app, pilot, second)
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        pairs, diff = screen.pairs, screen.diff
        assert diff is not None
        assert diff.first is not None
        assert screen.pairs.row == diff.rows[diff.first.row]
        span = diff.a.spans[screen.pairs.row.a or 0]
        assert span.preview == "host 30"
        screen.focus_pane("pairs")
        await settle(pilot)
        drawn = text_of(app)
        assert "29 equal steps" in drawn
        assert "host 3 " not in drawn
        assert "host 29" in drawn

        await type_keys(pilot, screen, "g", "g")
        assert pairs.cursor == PREFIX
        assert screen.pairs.row is None
        before = len(pairs.rows)
        await type_keys(pilot, screen, "enter")
        assert len(pairs.rows) == before + 29
        assert "host 3 " in text_of(app)
        await type_keys(pilot, screen, "j", "j", "h", "h")
        assert (pairs.cursor, len(pairs.rows)) == (PREFIX, before)


async def test_folded_steps_are_searched(opened: Opener, tmp_path: Path) -> None:
    answers = [f"fine {i}" for i in range(40)]
    write(tmp_path / "a.jsonl", trace(0, asked="go", answers=answers))
    second = write(tmp_path / "b.jsonl", trace(1, asked="go", answers=[*answers[:30], "odd"]))
    async with opened(tmp_path) as (app, pilot):
        await go_to(app, pilot, second)
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        await type_keys(pilot, screen, "/", *"host", "space", "7", "enter")
        row = screen.pairs.row
        assert row is not None
        assert row.a is not None
        assert screen.diff is not None
        assert screen.diff.a.spans[row.a].preview == "host 7"

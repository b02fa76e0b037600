"""Repeated calls in the timeline, limits and the doomed step in the facts: by keys, on the built-in samples."""

from __future__ import annotations

import json
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.live.sessions import Session
from tests.ui.conftest import Opener, press, settle, text_of, until
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.triage import TriageScreen
from tracetui.views.timeline.spans import END

SUBSIDIES, POLLER = "paprika/0690e0f0*.json", "paprika/2c77f4*.json"
FOLDED = "search ×4 (identical)"


def sample(samples: Path, pattern: str) -> Path:
    return next(samples.glob(pattern))


def numbers(app: TraceApp) -> list[int | None]:
    """Numbers of the steps that have a row."""
    steps = app.main.steps
    keys = [steps.rows.key(i) for i in range(len(steps.rows))]
    assert steps.run is not None
    return [span.step for key in keys if isinstance(key, str) and (span := steps.run.span(key)) is not None]


def step(app: TraceApp) -> int | None:
    """Number of the step under the cursor."""
    span = app.main.steps.span
    return span.step if span is not None else None


UNFOLDED = [*range(1, 12)]
WITHOUT = [1, 2, 3, 4, 5, 9, 10, 11]


async def go_to(app: TraceApp, pilot: Pilot[int], number: int) -> None:
    """Move the cursor to the row of a step."""
    await press(pilot, "g", *["j"] * numbers(app).index(number))
    assert step(app) == number


async def test_a_loop_is_one_row_that_unfolds_and_folds(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, SUBSIDIES)) as (app, pilot):
        await press(pilot, "enter")
        assert numbers(app) == WITHOUT
        assert FOLDED in text_of(app)
        assert "time lost 1.6s" in text_of(app)
        assert step(app) == 11  # the failure, where the cursor begins

        await go_to(app, pilot, 5)
        await press(pilot, "l")
        assert numbers(app) == UNFOLDED
        assert (step(app), app.main.steps.left) == (5, 0)
        assert "↻ ×4" in text_of(app)

        await press(pilot, "j", "j", "h")
        assert (numbers(app), step(app)) == (WITHOUT, 5)
        assert app.main.detail.span is app.main.steps.span
        await press(pilot, "right", "j", "left")
        assert (numbers(app), step(app)) == (WITHOUT, 5)
        await press(pilot, "k", "l")
        assert app.main.steps.left == 0  # where nothing folds, it does nothing


async def test_all_loops_fold_and_unfold_and_the_folds_of_the_tree_stay(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, SUBSIDIES)) as (app, pilot):
        await press(pilot, "enter", "z", "R")
        assert (numbers(app), app.main.steps.as_tree, app.main.state.zoom) == (UNFOLDED, False, None)
        await press(pilot, "z", "M")
        assert (numbers(app), app.main.steps.as_tree, step(app)) == (WITHOUT, False, 11)

        await press(pilot, "t", "z", "M")
        tree = len(app.main.steps.rows)
        await press(pilot, "t", "z", "R", "z", "M", "t")
        assert len(app.main.steps.rows) == tree


async def test_the_tree_shows_every_call_and_the_cursor_stays_on_its_own(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, SUBSIDIES)) as (app, pilot):
        await press(pilot, "enter", "t", "G", "k", "k", "k", "k")
        here = app.main.steps.cursor
        assert step(app) == 7
        await press(pilot, "t")
        assert (app.main.steps.cursor, numbers(app)) == (here, UNFOLDED)


@pytest.mark.parametrize(("needle", "step_numbers"), [("identical", WITHOUT), ("remaining", UNFOLDED)])
async def test_a_search_unfolds_folds_around_its_hit(
    opened: Opener, samples: Path, needle: str, step_numbers: list[int]
) -> None:
    async with opened(sample(samples, SUBSIDIES), size=(80, 24)) as (app, pilot):
        await press(pilot, "enter", "g", "slash")
        await pilot.press(*needle, "enter")
        await settle(pilot)
        assert (step(app), numbers(app)) == (5, step_numbers)
        assert needle in text_of(app).partition("3 Detail")[0].partition("2 Steps")[2]


async def test_jumps_unfold_folds_around_their_target(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, SUBSIDIES)) as (app, pilot):
        await press(pilot, "enter")
        await go_to(app, pilot, 5)
        await press(pilot, "]", "t")
        assert (step(app), numbers(app)) == (6, UNFOLDED)

        ref, run = app.main.state.ref, app.main.steps.run
        assert ref is not None
        assert run is not None
        await press(pilot, "z", "M", "escape")
        assert numbers(app) == WITHOUT
        app.main.enter(ref, run.steps[6].span)
        await settle(pilot)
        assert (step(app), numbers(app)) == (7, UNFOLDED)


async def test_nothing_is_folded_where_steps_are_filtered_or_ordered(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, SUBSIDIES)) as (app, pilot):
        await press(pilot, "enter", "comma")
        assert sorted(number or 0 for number in numbers(app)) == UNFOLDED
        await press(pilot, "comma")
        assert numbers(app) == WITHOUT
        await press(pilot, "f")
        await pilot.press(*"tool:search", "enter")
        await settle(pilot)
        assert numbers(app) == [2, 3, 5, 6, 7, 8, 11]


async def test_limits_loops_and_the_doomed_step_lead_to_their_steps(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, POLLER), size=(120, 60)) as (app, pilot):
        await press(pilot, "enter")
        assert "! likely lost" in text_of(app)
        await press(pilot, "4")
        screen_text = text_of(app)
        assert "4 / 3  limit reached" in screen_text
        assert "loops    ↻ deploy_status ×4 (identical)  time lost 930ms" in screen_text
        assert "likely   → lost from step 3 deploy_status" in screen_text
        assert "likely point of no return (heuristic)" in screen_text

        detail = app.main.detail
        for text, number in (("exceeded at", 5), ("likely", 3), ("loops", 2)):
            await press(pilot, "3")
            rows = detail.rows
            detail.move_to(next(i for i in range(len(rows)) if text in rows.plain(i)))
            await press(pilot, "apostrophe")
            assert step(app) == number
            assert detail.tab == "run"


async def test_wide_screens_show_limits_beside(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, POLLER), size=(200, 60)) as (app, pilot):
        await press(pilot, "enter")
        assert "likely   → lost from step 3 deploy_status" in text_of(app)


async def test_the_error_walk_goes_through_a_loop(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    for number in range(4):
        session.answer(session.call(command="make"), "error: it broke", ok=number < 1)
    session.step("all is well")
    session.end("error")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter", "z", "M")
        assert "×4 (same calls) 3✗" in text_of(app) or "×4 (same call) 3✗" in text_of(app)
        await press(pilot, "g")
        seen = []
        for _ in range(3):
            await press(pilot, "e")
            assert app.main.steps.span is not None
            seen.append((app.main.steps.span.status.value, app.main.steps.rows.index(app.main.steps.span.id)))
        assert [status for status, _ in seen] == ["error"] * 3
        assert len({row for _, row in seen}) == 3


# ---- while an agent works


@pytest.fixture
def real_time(fixed_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written now is seen now, and still is when a busy machine comes to it."""
    now = time.time() + 2
    monkeypatch.setattr(TraceApp, "clock", lambda self: now)


@pytest.mark.usefixtures("real_time")
async def test_a_loop_folds_once_it_has_ended_and_the_cursor_stays(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    session.step("first")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        steps = app.main.steps
        assert steps.following
        for count in range(1, 5):
            session.answer(session.call(command="make"), "it is still building")
            await until(pilot, lambda count=count: numbers(app).count(None) + len(numbers(app)) > count)  # type: ignore[misc]
            await settle(pilot)
            assert steps.at_newest
            assert "×" not in text_of(app)
        session.step("now something else")
        session.step("and more")
        await until(pilot, lambda: "×4 (identical)" in text_of(app), what="a folded loop")
        assert steps.at_newest
        assert steps.cursor != END
        assert steps.following

        await press(pilot, "k")
        here = steps.cursor
        session.end()
        await settle(pilot)
        assert steps.cursor == here


async def test_loops_fold_in_the_triage_as_in_the_steps(opened: Opener, samples: Path) -> None:
    async with opened(sample(samples, SUBSIDIES)) as (app, pilot):
        await press(pilot, "enter")
        rows = [app.main.steps.rows.key(i) for i in range(len(app.main.steps.rows))]
        await press(pilot, "escape", "T")
        screen = app.screen
        assert isinstance(screen, TriageScreen)

        def visible_keys() -> list[Hashable]:
            return [screen.failure.rows.key(i) for i in range(len(screen.failure.rows))]

        await until(pilot, lambda: visible_keys() == rows, what="the loop as one row")
        assert FOLDED in text_of(app)

        await press(pilot, "3", "g", *["j"] * [str(key) for key in rows].index(str(loop_key(app))))
        screen.show_cause()  # as when it is found out what the runs share
        await press(pilot, "l")
        assert len(visible_keys()) == len(rows) + 3
        await press(pilot, "h")
        assert visible_keys() == rows
        await press(pilot, "z", "R")
        assert len(visible_keys()) == len(rows) + 3
        await press(pilot, "z", "M")
        assert visible_keys() == rows


def loop_key(app: TraceApp) -> Hashable:
    """The row of the loop in the steps."""
    rows = app.main.steps.rows
    return next(rows.key(i) for i in range(len(rows)) if "×4" in "".join(p.text for p in rows.line(i, 100)))


async def test_each_run_under_the_cursor_is_shown_once(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(samples / "paprika") as (app, pilot):
        await press(pilot, "g")
        drawn: list[object] = []
        show = app.main.steps.show

        def counting(rows: Any, **more: Any) -> None:
            drawn.append(rows)
            show(rows, **more)

        monkeypatch.setattr(app.main.steps, "show", counting)
        await press(pilot, "j", "j", "j")
        assert len(drawn) == 3


async def test_a_deep_run_says_how_many_spans_are_hidden(opened: Opener, tmp_path: Path) -> None:
    def span(level: int) -> dict[str, object]:
        operation = "chat" if level == 9 else "invoke_agent"
        return {
            "traceId": "a" * 32,
            "spanId": f"{level:016x}",
            **({"parentSpanId": f"{level - 1:016x}"} if level > 1 else {}),
            "name": f"{operation} level_{level}",
            "startTimeUnixNano": str(1_795_680_000_000_000_000 + level * 1_000_000),
            "endTimeUnixNano": str(1_795_680_099_000_000_000 - level * 1_000_000),
            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": operation}}],
        }

    spans = [span(level) for level in range(1, 10)]
    (tmp_path / "deep.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        assert "8 spans hidden" in text_of(app)
        await press(pilot, "t")
        assert "spans hidden" not in text_of(app)

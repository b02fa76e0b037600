"""Links of steps, and the origin of values, by keys."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from tests.desk import write_desk
from tests.ui.conftest import Opener, press, settle, text_of, until
from tracetui.ui.app import TraceApp


async def open_failed(app: TraceApp, pilot: Pilot[int], step: str) -> None:
    """Open the failed trial at a step, with the focus on the detail."""
    ref = next(run.ref for run in app.store.runs.values() if run.failed)
    app.main.enter(ref)
    await settle(pilot)
    app.main.steps.move_to_key(step)
    await until(pilot, lambda: app.main.detail.span is not None and app.main.detail.span.id == step, what=step)
    app.main.focus_pane("detail")
    await settle(pilot)


async def to_row(app: TraceApp, pilot: Pilot[int], text: str) -> None:
    detail = app.main.detail
    detail.move_to(next(i for i in range(len(detail.rows)) if text in detail.rows.plain(i)))
    await settle(pilot)


def sentence(app: TraceApp) -> str:
    return "".join(piece.text for piece in app.main.status_message)


async def test_a_refused_call_shows_what_it_was_about(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await open_failed(app, pilot, "4.1")
        await until(pilot, lambda: bool(app.main.detail.links), what="links")
        screen = text_of(app)
        assert "the answer names W2417" in screen
        assert "W2417 already changed by [3] modify_items" in screen
        await to_row(app, pilot, "already changed")
        await press(pilot, "'")
        assert app.main.steps.span is not None
        assert app.main.steps.span.id == "3.1"


async def test_a_step_shows_what_all_passed_trials_did_instead(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await open_failed(app, pilot, "3.1")
        await until(pilot, lambda: bool(app.main.detail.links), what="links")
        assert "no passed trial did this with card_481; all 2 have card_377" in text_of(app)


async def test_O_goes_to_the_origin_of_a_value_and_back(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await open_failed(app, pilot, "4.1")
        app.main.detail.choose("input")
        await to_row(app, pilot, "1250")
        row = app.main.detail.cursor
        await press(pilot, "O")
        await until(pilot, lambda: "first in" in sentence(app), what="the origin")
        assert "1250 first in [1] user (same number: 1,250.00)" in sentence(app)
        await until(pilot, lambda: app.main.detail.needle == "1,250.00", what="the search")
        assert app.main.steps.span is not None
        assert app.main.steps.span.id == "1"
        await press(pilot, "ctrl+o")
        await until(pilot, lambda: app.main.detail.span is not None and app.main.detail.span.id == "4.1", what="back")
        assert (app.main.detail.tab, app.main.detail.cursor) == ("input", row)


async def test_brackets_step_through_the_appearances_of_a_value(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await open_failed(app, pilot, "4.1")
        app.main.detail.choose("input")
        await to_row(app, pilot, "card_481")
        await press(pilot, "O")
        await until(pilot, lambda: sentence(app).startswith("1/3"), what="the first appearance")
        await press(pilot, "]", "v")
        await until(pilot, lambda: sentence(app).startswith("2/3"), what="the second appearance")
        assert app.main.steps.span is not None
        assert app.main.steps.span.id == "3.1"
        await press(pilot, "[", "v")
        assert sentence(app).startswith("1/3")
        await press(pilot, "[", "v")
        assert "no more appearances" in sentence(app)


async def test_a_value_without_earlier_appearance_has_a_message(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await open_failed(app, pilot, "5.1")
        app.main.detail.choose("input")
        await to_row(app, pilot, "77")
        await press(pilot, "O")
        await until(pilot, lambda: "no earlier recorded text" in sentence(app), what="the answer")
        assert app.main.detail.span is not None
        assert app.main.detail.span.id == "5.1"


async def test_keys_of_appearances_need_an_origin_first(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await open_failed(app, pilot, "4.1")
        await press(pilot, "]", "v")
        assert "O on a value" in sentence(app)
        await press(pilot, "ctrl+o")
        assert "O on a value" in sentence(app)


async def test_triage_shows_the_links_of_the_example(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path, size=(160, 50)) as (app, pilot):
        await press(pilot, "T")
        await until(pilot, lambda: "already changed by" in text_of(app), what="links in the cause")


async def test_a_link_to_trials_opens_the_step_of_a_passed_trial_and_returns(opened: Opener, tmp_path: Path) -> None:
    write_desk(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await open_failed(app, pilot, "3.1")
        await until(pilot, lambda: bool(app.main.detail.links), what="links")
        failed = app.main.state.ref
        for key in ("O", "enter"):
            await to_row(app, pilot, "no passed trial did this")
            await press(pilot, key)
            await until(pilot, lambda: app.main.detail.needle == "card_377", what="the argument of the passed trial")
            assert app.main.detail.run is not None
            assert app.main.detail.run.summary.ref.path.endswith("change-order__1/agent/trajectory.json")
            assert app.main.steps.span is not None
            assert app.main.steps.span.id == "3.1"
            await press(pilot, "ctrl+o")
            await until(
                pilot,
                lambda: app.main.detail.run is not None and app.main.detail.run.summary.ref == failed,
                what="the failed run",
            )
            await settle(pilot)

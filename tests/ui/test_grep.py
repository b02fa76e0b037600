"""The search of all runs by keys, on the built-in samples: from `&` to the word in view, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from textual.pilot import Pilot

from tests.shared import SEARCHES
from tests.ui.conftest import Opener, line, press, text_of, until
from tests.ui.test_filtering import keys
from tracetui.live.engine import Engine
from tracetui.model import Status
from tracetui.sources.local import LocalSource
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.lists import HitsScreen
from tracetui.views.list.tables import Hit, HitRows


def the_hits(app: TraceApp) -> HitsScreen:
    assert isinstance(app.screen, HitsScreen)
    return app.screen


def hits(screen: HitsScreen) -> list[tuple[int, Hit]]:
    """All hits with their rows."""
    rows = screen.list.rows
    assert isinstance(rows, HitRows)
    return [(i, hit) for i in range(len(rows)) if (hit := rows.hit(i)) is not None]


async def search(app: TraceApp, pilot: Pilot[int], text: str) -> HitsScreen:
    """Search all runs, and wait until all are searched."""
    await press(pilot, "ampersand", "ctrl+u", *keys(text), "enter")
    screen = the_hits(app)
    await until(pilot, lambda: "searching" not in line(app, 1), what="the end of the search")
    return screen


async def open_hit(app: TraceApp, pilot: Pilot[int], which: Callable[[Hit], bool]) -> Hit:
    """Open the first hit of a kind, and wait until it is shown."""
    screen = the_hits(app)
    row, hit = next((row, hit) for row, hit in hits(screen) if which(hit))
    screen.list.move_to(row)
    await press(pilot, "enter")
    main = app.main
    await until(pilot, lambda: app.screen is main and main.settled and not main.detail.search_target, what="the hit")
    assert main.state.ref == hit.ref
    return hit


def row_at_cursor(app: TraceApp) -> str:
    """What the row under the cursor of the detail shows."""
    detail = app.main.detail
    pieces = detail.rows.line(detail.position, detail.outer_size.width - 2)
    return "".join(piece.text for piece in pieces)


def assert_in_view(app: TraceApp, hit: Hit) -> None:
    """The word is on the screen, where it was found, at the step that has it."""
    main = app.main
    assert hit.span is None or (main.steps.span is not None and main.steps.span.id == hit.span)
    assert hit.match in row_at_cursor(app)
    assert any(hit.match in row for row in text_of(app).splitlines()[3:])
    assert main.detail.needle == hit.match


async def test_hits_stand_below_their_runs(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await search(app, pilot, "timed out")
        listed = hits(screen)
        assert len(listed) > 2
        assert f"{len(listed)} hits in 3 of {len(app.store.runs)} runs" in line(app, 1)
        assert {hit.match for _, hit in listed} == {"timed out"}
        text = text_of(app)
        assert "search timed out after 30s" in text
        assert "researcher" in text


async def test_small_letters_match_any_case_and_capitals_only_themselves(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        any_case = {hit.match for _, hit in hits(await search(app, pilot, "refund"))}
        await press(pilot, "escape")
        one_case = {hit.match for _, hit in hits(await search(app, pilot, "Refund"))}
        assert any_case == {"refund", "Refund"}
        assert one_case == {"Refund"}


PLACES: Final = (
    ("EV subsidies DE", "input.query", {"input"}),
    ("search timed out", "error.message", {"error"}),
    ("Plan a trip", "input[0].parts[0].text", {"messages"}),
    ("five working days", "output.docs[0].content", {"output"}),
    ("compute_offset", "output[0].input.pattern", {"output"}),
    ("compute_offset", "output[1].input.old_string", {"output"}),
    ("Malmö", "output.answer", {"output"}),
    ("Goal", "metrics[0].name", {"goal", "run"}),
)
"""Texts, the path of a hit of each, and the tabs of the detail that may show it."""


async def test_a_hit_is_opened_with_the_word_in_view(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        for text, place, tabs in PLACES:
            screen = await search(app, pilot, text)
            paths = [hit.path for _, hit in hits(screen)]
            assert any(path.startswith(place) for path in paths), paths
            hit = await open_hit(app, pilot, lambda hit, place=place: hit.path.startswith(place))  # type: ignore[misc]
            assert_in_view(app, hit)
            assert app.main.detail.tab in tabs
            await press(pilot, "escape", "escape")
            assert app.screen is app.main


@pytest.mark.parametrize(
    ("size", "texts"), [((80, 24), ("timed", "five working days")), ((160, 50), ("fn compute_offset",))]
)
async def test_the_word_is_in_view_on_every_screen(
    opened: Opener, samples: Path, size: tuple[int, int], texts: Sequence[str]
) -> None:
    async with opened(samples, size=size) as (app, pilot):
        for text in texts:
            await search(app, pilot, text)
            hit = await open_hit(app, pilot, lambda hit: True)
            assert_in_view(app, hit)
            await press(pilot, "escape", "escape")


async def test_the_one_hit_of_many_in_a_tab_is_in_view(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await search(app, pilot, "refund")
        hit = await open_hit(app, pilot, lambda hit: hit.path == "output.docs[1].content")
        assert_in_view(app, hit)
        assert hit.before.strip()[-10:] in row_at_cursor(app)


async def test_a_hit_in_folded_json_is_unfolded(opened: Opener, tmp_path: Path) -> None:
    deep: object = {"here": "a needle", "there": "the needle is here"}
    for depth in range(6):
        deep = {f"level {depth}": deep, "other": ["a needle", *range(100)]}
    items = [{"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": json.dumps(deep)}]
    items.append({"type": "function_call_output", "id": "o", "call_id": "c", "output": "ok"})
    (tmp_path / "deep.json").write_text(json.dumps({"items": items}))
    async with opened(tmp_path) as (app, pilot):
        await search(app, pilot, "needle")
        hit = await open_hit(app, pilot, lambda hit: hit.path.endswith("there"))
        assert_in_view(app, hit)
        assert "the needle is here" in row_at_cursor(app)


async def test_a_hit_that_only_the_tree_shows_is_opened_in_the_tree(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await search(app, pilot, "Malmö")
        hit = await open_hit(app, pilot, lambda hit: (hit.span or "").startswith("run:"))
        assert_in_view(app, hit)
        assert app.main.steps.as_tree
        await press(pilot, "escape")
        await open_hit(app, pilot, lambda other: other.ref != hit.ref)
        assert not app.main.steps.as_tree  # only that run needed it


async def test_escape_leads_back_to_the_hits_with_the_cursor_where_it_was(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await search(app, pilot, "refund")
        row, _ = hits(screen)[7]
        screen.list.move_to(row)
        await press(pilot, "enter")
        assert app.main.state.level == 1
        await press(pilot, "escape")
        reopened = the_hits(app)
        assert reopened.list.position == row
        assert "refund" in line(app, 0)
        await press(pilot, "escape")
        assert app.screen is app.main
        assert not app.main.state.level
        await press(pilot, "ampersand", "enter")  # what was searched for last is offered again, and known
        assert the_hits(app).list.position == row


async def test_hits_come_while_it_searches(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "ampersand", *"ref", "enter")
        screen = the_hits(app)
        await until(pilot, lambda: len(hits(screen)) > 0, what="the first hits")
        await press(pilot, "j", "j")
        cursor = screen.list.position
        await until(pilot, lambda: "searching" not in line(app, 1), what="the end of the search")
        assert screen.list.position == cursor
        assert len(hits(screen)) > 20


async def test_only_runs_that_are_shown_are_searched(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "exclamation_mark")
        screen = await search(app, pilot, "refund")
        assert {app.store.runs[hit.ref].status for _, hit in hits(screen)} == {Status.ERROR}


async def test_a_regular_expression_is_between_slashes_and_an_invalid_one_is_reported(
    opened: Opener, samples: Path
) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "ampersand", *"/(open/", "enter")
        assert app.screen is app.main
        assert "regular expression" in line(app, 1)
        await press(pilot, "j")
        assert "regular expression" not in line(app, 1)
        screen = await search(app, pilot, r"/timed out after \d+s/")
        assert {hit.match for _, hit in hits(screen)} == {"timed out after 30s"}


async def test_a_search_waits_until_the_list_is_read(samples: Path) -> None:
    engine = Engine(LocalSource(), [str(samples)])
    app = TraceApp(engine, [str(samples)])
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("ampersand", *keys("timed out"), "enter")
            await pilot.pause()
            assert app.screen is app.main
            assert "list still loading; the search starts when it is complete" in line(app, 1)
            engine.start()
            await until(pilot, lambda: isinstance(app.screen, HitsScreen), what="the search")
            await until(pilot, lambda: "searching" not in line(app, 1), what="the end of the search")
            assert hits(the_hits(app))
    finally:
        engine.stop()


async def test_a_search_that_is_given_up_or_without_hits_leads_back_to_the_list(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "ampersand", *"ref", "escape")
        assert app.screen is app.main
        assert app.surveys.search is None
        await search(app, pilot, "no such words anywhere")
        await until(pilot, lambda: "No matches for no such words anywhere" in text_of(app), what="the words")
        assert line(app, 1).strip().startswith("0 hits")
        await press(pilot, "enter", "j", "escape")
        assert app.screen is app.main


async def test_the_address_of_a_run_with_a_hit_is_copied(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    def copy(self: TraceApp, text: str) -> int:
        copied.append(text)
        return len(text)

    monkeypatch.setattr(TraceApp, "copy", copy)
    async with opened(samples) as (app, pilot):
        screen = await search(app, pilot, "timed out")
        _, hit = hits(screen)[0]
        await press(pilot, "y", "l", "y", "y")
        assert copied[0] == hit.ref.address
        assert "timed out" in copied[1]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)] if SEARCHES else [(80, 24), (200, 60)])
async def test_the_value_of_the_hit_is_beside_it_as_the_cursor_moves(
    opened: Opener, samples: Path, size: tuple[int, int]
) -> None:
    async with opened(samples, size=size) as (app, pilot):
        before = app.main.state.ref
        screen = await search(app, pilot, "timed out")
        for row, hit in hits(screen):
            screen.list.move_to(row)
            await until(pilot, lambda hit=hit: screen._previewed == (hit, True), what="the preview")  # type: ignore[misc]
            preview = screen._preview
            lines = [preview.strip_at(y).text for y in range(preview.outer_size.height)]
            at = next(i for i, text in enumerate(lines) if hit.match in text)
            assert lines[at].startswith(app.look.glyphs.cursor)
            assert any(text.strip() for text in lines[at + 1 :]) or any(text.strip() for text in lines[1:at])
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        assert app.main.state.ref == before
        assert "ago" in "".join("".join(p.text for p in screen.list.rows.line(0, 120)))


async def test_a_click_on_a_tab_of_the_preview_shows_it(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await search(app, pilot, "timed out")
        await until(pilot, lambda: screen._previewed is not None and screen._previewed[1])
        preview = screen._preview
        other = next(tab for tab in preview.tabs if tab != preview.tab)
        await pilot.click(preview, offset=(preview.strip_at(0).text.index(other), 0))
        assert preview.tab == other
        assert app.focused is screen.list

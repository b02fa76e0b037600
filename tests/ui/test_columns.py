"""The column chooser, the width of the list, and numbers that are never cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from tests.store.build import make_summary
from tests.ui.conftest import Opener, press, text_of, until
from tracetui.analysis.arrangement import SORTS
from tracetui.model import Usage
from tracetui.ui import config
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.overlay import ColumnsScreen
from tracetui.ui.state import arrange_runs
from tracetui.views.list.columns import COLUMNS, Column, fit_columns
from tracetui.views.list.runs import RunRows

SETTINGS = Path(__file__).parents[2] / "docs" / "settings.md"


async def choose(app: TraceApp, pilot: Pilot[int]) -> ColumnsScreen:
    await pilot.press("W")
    await until(pilot, lambda: isinstance(app.screen, ColumnsScreen) and len(app.screen._view.rows) > 0)
    assert isinstance(app.screen, ColumnsScreen)
    return app.screen


async def to(pilot: Pilot[int], screen: ColumnsScreen, column: str) -> None:
    """Move the cursor to a column, by keys."""
    await pilot.press("g")
    while screen._view.cursor != column:
        await pilot.press("j")


async def test_space_shows_a_column_and_the_list_widens(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        width = app.main.runs.outer_size.width
        screen = await choose(app, pilot)
        for name in ("cost", "model", "tok"):
            await to(pilot, screen, name)
            await pilot.press("space")
        await press(pilot, "enter")
        assert {"cost", "model", "tok"} <= set(app.main.runs.columns)
        assert app.main.runs.outer_size.width > width
        heading = next(line for line in text_of(app).split("\n") if line.startswith("   name"))
    for name in app.main.state.arrangement.columns:
        assert name in heading or name == "status"


async def test_more_than_fits_beside_the_steps_zooms_the_list(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await choose(app, pilot)
        for name in COLUMNS:
            if name not in screen._visible:
                await to(pilot, screen, name)
                await pilot.press("space")
        await press(pilot, "enter")
        assert app.main.state.zoom == "runs"
        assert app.main.runs.outer_size.width == 120
        await press(pilot, "W")
        await pilot.press("r", "enter")
        await until(pilot, lambda: app.screen is app.main)
        assert app.main.state.arrangement.columns == ()
        assert app.main.state.zoom is None


async def test_arrows_move_a_column_and_esc_takes_all_back(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        before = app.main.runs.columns
        screen = await choose(app, pilot)
        await to(pilot, screen, "age")
        await pilot.press("left", "left")
        assert app.main.runs.columns.index("age") == before.index("age") - 2
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        assert app.main.runs.columns == before


async def test_a_click_toggles_and_the_hints_are_clickable(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await choose(app, pilot)
        assert "step" in app.main.runs.columns
        row = screen._view.rows.index("step")
        assert row is not None
        await pilot.click(screen._view, offset=(6, row + 1))
        assert "step" not in app.main.runs.columns
        text = screen._footer.strip_at(0).text
        await pilot.click(screen._footer, offset=(text.index("reset"), 0))
        assert app.main.state.arrangement.columns == ()
        await pilot.click(screen._footer, offset=(text.index("done"), 0))
        await until(pilot, lambda: app.screen is app.main)


async def test_columns_and_width_are_saved(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, _):
        app.main.become(arrange_runs(app.main.state, columns=("status", "name", "cost"), share=60))
        config.save_arrangement(app.main.state.arrangement)
    arrangement = config.load_arrangement(config.Config())
    assert (arrangement.columns, arrangement.share) == (("status", "name", "cost"), 60)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_is_one_value(column: Column) -> None:
    name = column.name
    rows = RunRows([make_summary(deep=True)], now=4e9, chosen=(name,))
    assert config.load_arrangement(config.Config(list=config.ListConfig(columns=name))).columns == (name,)
    assert dict(rows.columns(300))[name] >= column.cells
    assert name in "".join(piece.text for piece in rows.heading(300)) or name == "status"
    assert column.sort in SORTS or name == "project"
    assert f"\n`{name}` | {column.about} |" in SETTINGS.read_text("utf-8")


def test_columns_are_dropped_in_one_order() -> None:
    leaves = sorted(column.leaves for column in COLUMNS.values() if column.leaves)
    assert leaves == [*range(1, len(leaves) + 1)]
    assert {name for name, column in COLUMNS.items() if not column.leaves} == {"status", "name"}


@pytest.mark.parametrize("chosen", [(), (*COLUMNS,), ("status", "name", "cost", "tok")])
def test_columns_are_dropped_whole(chosen: tuple[str, ...]) -> None:
    for width in range(34, 200):
        columns = fit_columns(width, chosen, name=18)
        assert sum(size for _, size in columns) + len(columns) - 1 <= width, width
        for name, size in columns:
            assert size == (COLUMNS[name].cells or size)
        if chosen == (*COLUMNS,) and len(columns) < len(COLUMNS):
            dropped = [name for name in COLUMNS if name not in dict(columns)]
            assert sorted(COLUMNS[name].leaves for name in dropped) == [*range(1, len(dropped) + 1)]


@given(
    ms=st.floats(0, 1e15),
    tokens=st.integers(0, 10**14),
    usd=st.floats(0, 1e6),
    steps=st.integers(0, 10**9),
    errors=st.integers(0, 10**9),
)
def test_no_number_is_cut(ms: float, tokens: int, usd: float, steps: int, errors: int) -> None:
    usage = Usage(input_tokens=tokens, cost_usd=usd)
    run = make_summary(duration_ms=ms, usage=usage, steps=steps, errors=errors, started_at=0.0, deep=True)
    for width in (80, 200):
        rows = RunRows([run], now=4e9, chosen=(*COLUMNS,))
        columns, text = rows.columns(width), "".join(piece.text for piece in rows.line(0, width))
        at = 0
        for name, size in columns:
            if COLUMNS[name].right:
                assert "…" not in text[at : at + size], (name, text)
            at += size + 1

"""The app on a store: it lists, opens, follows and filters, and answers keys while the server doesn't."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.stores import many
from tests.stores.conftest import Server, Store
from tests.stores.test_live import span
from tests.ui.conftest import press, settle, text_of, until
from tracetui.live.engine import Engine
from tracetui.sources.locations import open_source
from tracetui.text import grouped
from tracetui.ui.app import TraceApp


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No verdicts and settings of the user's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@asynccontextmanager
async def opened(store: Store, *, limit: int) -> AsyncIterator[tuple[TraceApp, Pilot[int]]]:
    """The app on a store, once everything is listed."""
    with open_source([store.url], limit=limit) as source:
        engine = Engine(source, [store.url])
        engine.start()
        app = TraceApp(engine, [store.url])
        try:
            async with app.run_test(size=(120, 40)) as pilot:
                await settle(pilot)
                yield app, pilot
        finally:
            engine.stop()


async def shows(app: TraceApp, pilot: Pilot[int], text: str) -> None:
    """Wait until the screen shows these words."""
    await until(pilot, lambda: text in text_of(app), what=f"{text!r} on the screen")


async def test_runs_open_and_new_ones_appear(map_store: Store) -> None:
    map_store.write([span(2, start=1)])
    async with opened(map_store, limit=5) as (app, pilot):
        await shows(app, pilot, "1 run")
        await press(pilot, "enter")
        await shows(app, pilot, "step 2")
        map_store.write([span(1, parent=None, seconds=10), span(3, start=3)])
        await shows(app, pilot, "step 3")
        await press(pilot, "escape")
        map_store.write([span(1, parent=None, start=60, trace="cd" * 16)])
        await shows(app, pilot, "2 runs")


async def test_a_filter_asks_the_database_too(server: Server, map_store: Store) -> None:
    server.send(many.insert(map_store.name, 200))
    async with opened(map_store, limit=3) as (app, pilot):
        await shows(app, pilot, "3 runs")
        app.main.filter_runs("status:error")
        await until(pilot, lambda: sum(run.failed for run in app.store.runs.values()) == 3, what="failed runs")
        assert len(app.store.runs) == 6
        app.main.filter_runs("is:running status:error")
        await shows(app, pilot, "the database can't filter by is:running status:error")


async def test_a_search_says_first_what_it_reads(server: Server, map_store: Store) -> None:
    server.send(many.insert(map_store.name, 200))
    async with opened(map_store, limit=150) as (app, pilot):
        await shows(app, pilot, "150 runs")
        server.log()
        await press(pilot, "ampersand")
        await shows(app, pilot, f"search all listed runs ({grouped(1500)} spans of the database)")
        assert not any("SpanId IN" in entry["sql"] for entry in server.log())  # nothing is read yet
        await pilot.press(*"149", "enter")
        await shows(app, pilot, "Book flight 149")


async def test_a_slow_server_holds_no_key_up(map_store: Store) -> None:
    map_store.write([span(1, parent=None), span(1, parent=None, start=9, trace="cd" * 16)])
    async with opened(map_store, limit=5) as (app, pilot):
        await shows(app, pilot, "2 runs")
        map_store.server.fault("refused")
        try:
            await shows(app, pilot, "broke the connection")
            await pilot.press("question_mark")
            await until(pilot, lambda: app.screen is not app.main, what="the help")
            await pilot.press("escape")
            assert len(app.store.runs) == 2
        finally:
            map_store.server.fault()
        await until(pilot, lambda: "broke the connection" not in text_of(app), what="a connection")

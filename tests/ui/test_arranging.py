"""A list of so many runs that a thread arranges it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import NOW, Opener, press, settle, text_of, until
from tracetui.analysis.arrangement import Arrangement, arrange
from tracetui.model import RunSummary, Status
from tracetui.ui.app import TraceApp
from tracetui.ui.panes.run_list import MANY
from tracetui.views.labels import arrangement_title
from tracetui.views.list.runs import RunRows


def record(number: int) -> dict[str, object]:
    at = datetime.fromtimestamp(NOW.timestamp() - 60 * (number * 7919 % 5003), UTC).isoformat()
    return {
        "schema_version": "1.0",
        "record_id": f"run-{number:04}",
        "parent_record_id": None,
        "replay_of": None,
        "agent": {"name": f"agent {number % 7}"},
        "execution": {"started_at": at, "ended_at": at, "status": "error" if number % 10 == 3 else "success"},
        "policy": None,
        "totals": None,
        "steps": [],
        "error": None,
    }


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More runs than the loop arranges itself, in files whose order says nothing about theirs."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(MANY + 200):
        (folder / f"{number:04}.json").write_text(json.dumps(record(number)))
    return folder


def in_order(app: TraceApp) -> bool:
    """Whether the rows are what arranging the runs at once would give."""
    runs = app.main.runs
    rows = arrange(app.store.runs.values(), [], runs.arrangement, now=NOW.timestamp(), state=app.liveness.run_state)
    return runs.refs() == [item.ref for item in rows if isinstance(item, RunSummary)]


async def wait_for_list(app: TraceApp, pilot: Pilot[int]) -> None:
    """Wait until the list is what the store is."""
    await until(pilot, lambda: app.main.runs.settled and not app.main.runs.due, what="the whole list")


async def test_all_are_listed_and_the_cursor_is_on_the_newest_failed_one(opened: Opener, many: Path) -> None:
    async with opened(many) as (app, pilot):
        await wait_for_list(app, pilot)
        assert len(app.main.runs.refs()) == MANY + 200
        assert in_order(app)
        failed = [run for run in app.store.runs.values() if run.status is Status.ERROR]
        assert app.main.runs.ref == max(failed, key=lambda run: run.started_at or 0).ref


async def test_a_key_does_not_wait_for_the_thread_nor_is_it_overruled(opened: Opener, many: Path) -> None:
    async with opened(many) as (app, pilot):
        await wait_for_list(app, pilot)
        for _ in range(3):
            app.main.runs.rearrange()
            assert not app.main.runs.settled
            before = app.main.runs.arrangement
            await pilot.press(";", ",")
            assert app.main.runs.arrangement != before
            await settle(pilot)
            assert in_order(app)


async def test_runs_that_change_while_a_thread_arranges_are_shown_as_they_are(opened: Opener, many: Path) -> None:
    async with opened(many) as (app, pilot):
        await wait_for_list(app, pilot)
        await press(pilot, "g")
        ref = app.main.runs.ref
        assert ref is not None
        app.main.runs.rearrange()
        changed = app.store.runs[ref].replace(steps=77)
        app.store.put(changed, NOW.timestamp())
        app.main.runs.store_changed(last=False)
        await wait_for_list(app, pilot)
        row = app.main.runs.rows.index(ref)
        assert row is not None
        assert isinstance(app.main.runs.rows, RunRows)
        assert app.main.runs.rows.item(row) == changed


async def test_keys_that_arrange_the_list_wait_for_no_run(opened: Opener, many: Path) -> None:
    """The order comes from a thread; the last one counts."""
    async with opened(many) as (app, pilot):
        await wait_for_list(app, pilot)
        before = app.main.runs.rows
        await press(pilot, "comma", "comma", "b")
        await wait_for_list(app, pilot)
        assert app.main.state.arrangement.sort == "outcome"
        assert app.main.runs.rows is not before
        assert in_order(app)
        await press(pilot, "exclamation_mark")
        await wait_for_list(app, pilot)
        assert all(app.store.runs[ref].failed for ref in app.main.runs.refs())


async def test_a_mark_and_a_verdict_leave_the_rows_as_they_are(opened: Opener, many: Path) -> None:
    async with opened(many) as (app, pilot):
        await wait_for_list(app, pilot)
        rows = app.main.runs.rows
        await press(pilot, "space")
        assert " A " in text_of(app)
        await press(pilot, "v", "k")
        assert "marked known" in text_of(app)
        await press(pilot, "u", "T", "v", "k", "escape", "escape")
        await until(pilot, lambda: app.screen is app.main, what="the list")
        assert app.main.runs.rows is rows
        assert " known" in text_of(app)


def test_a_filter_is_in_the_title_as_far_as_the_title_has_room() -> None:
    query = "status:error agent:rag_pipeline since:2026-11-21"
    title = arrangement_title(Arrangement(query=query), query, ungrouped="day")
    assert "".join(piece.text for piece in title) == f"newest  f {query} "

"""The *today* page: its sections and sums, reading and resuming from it, and its looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_textual_snapshot  # type: ignore[import-untyped]
from textual.pilot import Pilot

from tests.canaries import CANARY
from tests.sessions import Session, home
from tests.store.build import make_summary
from tests.ui.conftest import NOW, Opener, settle, until
from tests.ui.test_snapshots import Pictures
from tests.views.build import text_of_line
from tracetui.analysis import prices
from tracetui.analysis.liveness import State
from tracetui.live.engine import Engine
from tracetui.model import RunRef, RunSummary, Usage
from tracetui.redact import MASK
from tracetui.sources.local import LocalSource
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.today import TodayScreen
from tracetui.views.today import LiveRows, LiveRun, Sections, TodayRows, by_day, by_project, sections


def page(app: TraceApp, width: int = 96) -> list[str]:
    rows = app.screen.list.rows  # type: ignore[attr-defined]
    return ["".join(piece.text for piece in rows.line(i, width)).rstrip() for i in range(len(rows))]


async def on_today(pilot: Pilot[int]) -> None:
    """Open the page, and wait until every run on it was read."""
    app = pilot.app
    assert isinstance(app, TraceApp)
    await settle(pilot)
    await until(pilot, lambda: all(run.deep for run in app.store.runs.values()))
    if not isinstance(app.screen, TodayScreen):
        await pilot.press("H")
    await until(pilot, lambda: isinstance(app.screen, TodayScreen) and len(app.screen.list.rows) > 0)


async def with_contexts(pilot: Pilot[int]) -> None:
    """Open the page, and wait for the line about the contexts of the week and for the last messages."""
    await on_today(pilot)
    app: Any = pilot.app
    await until(pilot, lambda: any(line.startswith("  this week") for line in page(app)))
    await until(pilot, lambda: any(message for _, message in app.screen._messages.values()))
    await settle(pilot)


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    return home(tmp_path, NOW.timestamp())


def test_ages_by_the_time_of_a_file_are_marked() -> None:
    now = NOW.timestamp()
    runs = [
        RunSummary.of(
            ref=RunRef("pi", name), id=name, name="pi", modified_at=now - 240, started_at=start, time_zone="UTC"
        )
        for name, start in (("dated", now - 240), ("undated", None))
    ]
    rows = TodayRows(Sections([], [], [], runs), (), now=now)
    lines = ["".join(piece.text for piece in rows.line(i, 110)) for i in (1, 2)]
    assert [line.split()[-1] for line in lines] == ["4m", "~4m"]


async def test_every_run_is_in_one_section(opened: Opener, sessions: Path) -> None:
    Session("bbbb", cwd="/home/me/shop").prompt("x").fail().write(sessions.parents[1], NOW.timestamp(), 600)
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        lines = page(app)
    heads = [i for i, line in enumerate(lines) if "───" in line]
    assert [lines[i].split(" ──")[0].strip() for i in heads] == [
        "waiting for you", "running", "failed today", "recent", "Spent by project",
    ]  # fmt: skip
    for section, text in zip(
        heads,
        ("Fix the parser", "Run the migrations", "overloaded", "Rename the columns", "shop"),
        strict=True,
    ):
        assert text in lines[section + 1]
    assert not any("Write the changelog" in line for line in lines)  # a month ago


async def test_the_position_counts_no_headings(opened: Opener, sessions: Path) -> None:
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        assert isinstance(app.screen, TodayScreen)
        view = app.screen.list
        selectable = sum(map(view.rows.selectable, range(len(view.rows))))
        assert f" 1–{selectable}/{selectable} " in view.strip_at(0).text


def test_sections_fill_the_page() -> None:
    now = NOW.timestamp()
    failed = [make_summary(f"f{i}", modified_at=now) for i in range(12)]
    recent = [make_summary(f"r{i}", modified_at=now) for i in range(40)]
    page_sections = Sections([], [], failed, recent)
    assert [len(TodayRows(page_sections, (), now=now, room=room)) for room in (0, 43, 50, 99)] == [40, 43, 50, 54]
    rows = TodayRows(page_sections, (), now=now, room=46)
    heads = ["".join(piece.text for piece in rows.line(at, 80)) for at in (0, 13)]
    assert "newest" not in heads[0]
    assert "newest of 40" in heads[1]


async def test_enter_reads_and_q_comes_back(opened: Opener, sessions: Path) -> None:
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main and app.main.state.level == 1)
        assert app.store.runs[app.main.state.ref].id == "aaaa-2"  # type: ignore[index]
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, TodayScreen))


async def test_tab_goes_to_the_projects_and_back(opened: Opener, sessions: Path) -> None:
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        await until(pilot, lambda: any("Spent by project" in line for line in page(app)))
        assert isinstance(app.screen, TodayScreen)
        projects, first = app.screen.list, app.screen.list.cursor
        await pilot.press("tab")
        assert isinstance(projects.rows, TodayRows)
        await until(pilot, lambda: projects.cursor == ("/home/me/parser",))
        await pilot.press("tab")
        await until(pilot, lambda: projects.cursor == first)


async def test_enter_on_a_project_lists_its_runs(opened: Opener, sessions: Path) -> None:
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        at = next(i for i, line in enumerate(page(app)) if line.startswith("  /home/me/shop"))
        assert isinstance(app.screen, TodayScreen)
        app.screen.list.move_to(at)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main and len(app.main.runs.refs()) == 2)


async def test_yr_copies_the_command_of_the_run_under_the_cursor(
    opened: Opener, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    def copy(self: TraceApp, text: str) -> int:
        copied.append(text)
        return len(text)

    monkeypatch.setattr(TraceApp, "copy", copy)
    async with opened(sessions) as (_, pilot):
        await on_today(pilot)
        await pilot.press("y", "r")
    assert copied == ["cd /home/me/parser && claude --resume aaaa-2"]


@pytest.mark.skipif(not prices.installed(), reason="the extra `prices` is not installed")
async def test_sums_are_those_of_the_runs(opened: Opener, sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(prices.SWITCH)
    prices.load()
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        (total,) = [line for line in page(app) if line.startswith("  all")]
        runs = [run for run in app.store.runs.values() if NOW.timestamp() - (run.started_at or 0) < 6 * 86_400]
    usd = sum(prices.of_summary(run) or 0.0 for run in runs if (run.started_at or 0) > NOW.timestamp() - 36_000)
    assert f"~${usd:.2f}" in total


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_looks(
    size: tuple[int, int], sessions: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(pytest_textual_snapshot, "SVGImageExtension", Pictures)
    monkeypatch.chdir(sessions.parents[1])
    compare: Callable[..., Any] = request.getfixturevalue("snap_compare")
    engine = Engine(LocalSource(), [".claude"])
    engine.start()
    try:
        app = TraceApp(engine, ["~/.claude/projects"], today=True)
        assert compare(app, terminal_size=size, run_before=with_contexts)
    finally:
        engine.stop()


def test_a_run_ended_when_its_trace_says_so_and_not_when_its_database_changed() -> None:
    now = 1_763_730_562.0
    old, new = (
        make_summary(own, started_at=now - ago, duration_ms=1000.0, time_zone="UTC", modified_at=modified)
        for own, ago, modified in (("old", 9_000.0, now), ("new", 600.0, now - 599))
    )
    page_sections = sections([old, new], now=now)
    assert [run.id for run in (*page_sections.failed, *page_sections.recent)] == ["new", "old"]


async def test_the_contexts_of_the_week_are_a_line(opened: Opener, sessions: Path) -> None:
    async with opened(sessions) as (app, pilot):
        await with_contexts(pilot)
        (line,) = [line for line in page(app) if line.startswith("  this week")]
        assert "start" in line


async def test_escape_from_a_run_returns_to_its_row(opened: Opener, sessions: Path) -> None:
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        assert isinstance(app.screen, TodayScreen)
        await pilot.press("j")
        row = app.screen.list.cursor
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main and app.main.state.level == 1)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, TodayScreen) and app.screen.list.cursor == row)


async def test_last_messages_fill_the_rows_masked(opened: Opener, sessions: Path) -> None:
    said = Session("bbbb").prompt("Log in").answer(f"With password={CANARY}a1 it works.")
    said.write(sessions.parents[1], NOW.timestamp(), 600)
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        await until(pilot, lambda: any(f"“With password={MASK} it works" in line for line in page(app, 160)))
        assert not [line for line in page(app, 400) if CANARY in line]


async def test_today_is_sorted_grouped_and_filtered(opened: Opener, sessions: Path) -> None:
    async with opened(sessions) as (app, pilot):
        await on_today(pilot)
        await pilot.press("b")
        await until(pilot, lambda: any(line.startswith("/home/me/parser ") for line in page(app)))
        await pilot.press("comma")
        assert "name" in app.screen.list.strip_at(0).text  # type: ignore[attr-defined]
        await pilot.press("f", *"columns", "enter")
        await until(pilot, lambda: not any("Run the migrations" in line for line in page(app)))
        await until(pilot, lambda: any("Rename the columns" in line for line in page(app)))
        await pilot.press("escape")
        await until(pilot, lambda: any("Run the migrations" in line for line in page(app)))


def test_days_without_runs_cost_nothing() -> None:
    now = NOW.timestamp()
    run = make_summary("a", started_at=now - 86_400, time_zone="UTC", usage=Usage(10, 5, cost_usd=2.0), modified_at=now)
    days = by_day([run], now=now)
    assert len(days) == 14
    assert [day.spent.usd for day in days if day.spent] == [2.0]
    assert days[-2].spent.usd == 2.0


def test_tokens_of_a_project_are_split_by_cache() -> None:
    now = NOW.timestamp()
    used = Usage(1000, 50, cache_read_tokens=700, cache_creation_tokens=100)
    run = make_summary("a", started_at=now - 60, time_zone="UTC", usage=used, modified_at=now, source="/x")
    rows = TodayRows(Sections([], [], [], [run]), by_project([run], now=now), now=now)
    lines = ["".join(piece.text for piece in rows.line(i, 110)) for i in range(len(rows))]
    (total,) = [line.split() for line in lines if line.startswith("  all")]
    assert total[-4:] == ["200", "700", "100", "50"]


async def test_a_table_without_counted_runs_has_a_message(opened: Opener, tmp_path: Path) -> None:
    """Copies of an old session in this week cost nothing again."""
    for day, name in ((20, "aaaa"), (1, "bbbb"), (0, "cccc")):
        path = tmp_path / name / f"{name}.jsonl"
        path.parent.mkdir()
        when = (NOW - timedelta(days=day)).strftime("%Y-%m-%dT%H:%M")
        usage = {"input_tokens": 100, "output_tokens": 10}
        said = {"id": "msg_0123456789abcdefghij", "role": "assistant", "model": "m", "content": [], "usage": usage}
        records = (
            {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Hi"}},
            {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "requestId": "req_1", "message": said},
        )
        common = {"sessionId": name, "cwd": f"/home/me/{name}", "version": "2.1.0"}
        lines = [
            json.dumps({**record, **common, "timestamp": f"{when}:0{second}Z"}) for second, record in enumerate(records)
        ]
        path.write_text("\n".join(lines) + "\n")
    async with opened(tmp_path) as (app, pilot):
        await on_today(pilot)
        await until(pilot, lambda: any("2 copies, counted in other runs" in line for line in page(app)))
        (total,) = [line for line in page(app) if "counted in other runs" in line]
        assert {*total.partition("other runs")[2].split()} == {"—"}
        assert total.count("—") == 6, "also today and this week"


@pytest.mark.parametrize(("width", "first"), [(160, 23), (80, 0)])
def test_spending_is_at_the_bottom_of_a_wide_page(width: int, first: int) -> None:
    now = NOW.timestamp()
    runs = [
        make_summary(f"r{i}", source=f"p{i % 4}", started_at=now - i, usage=Usage(10, 5, cost_usd=0.5))
        for i in range(40)
    ]
    rows = TodayRows(
        Sections([], [], [], runs), by_project(runs, now=now), now=now, room=29, days=by_day(runs, now=now), width=width
    )
    heads = [i for i in range(len(rows)) if "Spent by project" in text_of_line(rows.line(i, width - 2))]
    assert heads == [first]
    assert [rows.project(first + 1 + i) for i in range(4)] == ["p0", "p1", "p2", "p3"]
    assert ("Cost per day" in text_of_line(rows.line(first, width - 2))) is (width == 160)
    assert len(rows) == (29 if width == 160 else 37)


@pytest.mark.parametrize("width", [70, 80, 90])
def test_headings_of_the_spending_are_above_their_numbers(width: int) -> None:
    now = NOW.timestamp()
    runs = [make_summary("r", source="p", started_at=now, usage=Usage(10, 5, cost_usd=0.5))]
    rows = TodayRows(
        Sections([], [], [], runs), by_project(runs, now=now), now=now, room=29, days=by_day(runs, now=now), width=width
    )
    texts = [text_of_line(rows.line(i, width - 2)).rstrip() for i in range(len(rows))]
    heading = next(text for text in texts if "Spent" in text)
    project = texts[texts.index(heading) + 1]
    assert (heading.index("today") + 5, len(heading)) == (project.index("$0.50") + 5, len(project))


def test_an_unknown_cost_of_a_live_run_is_a_dash_like_its_tokens() -> None:
    live = LiveRun(make_summary("r", usage=None), State.RUNNING, 1000.0)
    rows = LiveRows([], [live])
    assert text_of_line(rows.line(1, 100)).split()[-2:] == ["—", "—"]

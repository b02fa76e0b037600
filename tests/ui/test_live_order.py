"""The list of a live directory: soon in its order, and what is new is on the screen."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.live.sessions import paprika
from tests.sessions import session
from tests.ui.conftest import Opener, line, press, settle, until
from tests.ui.test_live import real_time, shows
from tests.ui.test_live_more import later, session_of
from tests.ui.test_live_runs import working
from tracetui.analysis.arrangement import arrange
from tracetui.model import RunRef, RunState, RunSummary
from tracetui.ui.app import TraceApp
from tracetui.ui.panes import run_list
from tracetui.views.rows import Line

__all__ = ["real_time"]


def in_order(app: TraceApp) -> bool:
    """Whether the rows are those that arranging the runs now gives."""
    runs = app.main.runs
    context = app.query_context() if runs.arrangement.query else None
    state = app.liveness.run_state
    items = arrange(app.store.runs.values(), [], runs.arrangement, now=app.clock(), state=state, context=context)
    return runs.refs() == [item.ref for item in items if isinstance(item, RunSummary)]


def listed(app: TraceApp, prefix: str) -> int:
    """How many runs of files with this prefix the list shows."""
    return sum(Path(ref.path).name.startswith(prefix) for ref in app.main.runs.refs())


def first_name(app: TraceApp) -> str:
    return Path(app.main.runs.refs()[0].path).name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixty runs that ended."""
    for number in range(60):
        paprika(tmp_path / f"old-{number:02}.json", f"run-{number:02}")
    return tmp_path


@pytest.fixture(params=["waits for the processor", "takes long"])
def slow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[TraceApp], None]:
    """Make showing the list take 100 s: by the clock alone, as on a busy machine, or of the processor too."""
    passed = {"monotonic": 0.0, "thread_time": 0.0}

    def advance() -> None:
        passed["monotonic"] += 100
        passed["thread_time"] += 100 * (request.param == "takes long")

    clocks = {
        "monotonic": lambda: time.monotonic() + passed["monotonic"],
        "thread_time": lambda: time.thread_time() + passed["thread_time"],
    }

    def slow_down(app: TraceApp) -> None:
        runs = app.main.runs
        arranged = runs._arranged

        def arrange_slowly() -> None:
            arranged()
            advance()

        monkeypatch.setattr(runs, "_arranged", arrange_slowly)
        runs.rearrange()

    monkeypatch.setattr(run_list, "time", SimpleNamespace(**clocks))
    return slow_down


@pytest.mark.parametrize("many", [run_list.MANY, 1], ids=["in the loop", "in a thread"])
async def test_new_runs_are_on_top_soon_however_long_the_last_arrangement_took(
    opened: Opener,
    folder: Path,
    slow: Callable[[TraceApp], None],
    many: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(folder) as (app, pilot):
        monkeypatch.setattr(run_list, "MANY", many)
        slow(app)
        await settle(pilot)
        for number in range(5):
            session_of(folder / f"new-{number}.jsonl", 2)
        await until(pilot, lambda: first_name(app).startswith("new"), what="a new run on top")
        await until(pilot, lambda: listed(app, "new") == 5 and in_order(app), what="the new runs in their places")
        await shows(app, pilot, "new above ▴ g")
        await press(pilot, "g")
        assert app.main.runs.ref == app.main.runs.refs()[0]


async def test_runs_that_appear_after_others_were_deleted_are_on_top(
    opened: Opener, folder: Path, slow: Callable[[TraceApp], None]
) -> None:
    first, second = folder / "first", folder / "second"
    async with opened(folder) as (app, pilot):
        for number in range(5):
            session_of(first / f"new-{number}.jsonl", 2)
        await until(pilot, lambda: listed(app, "new") == 5 and in_order(app), what="the first runs")
        await press(pilot, "g")
        slow(app)
        for _ in range(10):
            await pilot.press("down", "up")
        shutil.rmtree(first)
        await until(pilot, lambda: listed(app, "new") == 0, what="their end")
        for number in range(5):
            session_of(second / f"new-{number}.jsonl", 2)
        await until(pilot, lambda: Path(app.main.runs.refs()[0].path).parent == second, what="the second runs on top")
        await until(pilot, lambda: listed(app, "new") == 5 and in_order(app), what="all five in their places")
        await press(pilot, "g")
        assert app.main.runs.ref is not None
        assert Path(app.main.runs.ref.path).parent == second


@pytest.mark.parametrize(
    "keys",
    [
        ("G",),
        ("b",),
        ("b", "b", "b", "b", "b"),
        ("comma",),
        ("comma", "comma"),
        ("comma", "semicolon"),
        ("f", *"researcher", "enter"),
        ("j", "j", "space"),
    ],
    ids="-".join,
)
async def test_the_order_is_right_in_every_arrangement_and_the_cursor_stays_on_its_run(
    opened: Opener, folder: Path, keys: tuple[str, ...]
) -> None:
    going = session_of(folder / "going.jsonl", 2)
    async with opened(folder) as (app, pilot):
        runs = app.main.runs
        await press(pilot, *keys)
        runs.move_to_key(RunRef("paprika", str(folder / "old-30.json")))
        await settle(pilot)
        ref = runs.ref
        assert ref is not None

        async def in_their_places(what: str) -> None:
            await until(pilot, lambda: not runs.due and runs.settled and in_order(app), what=what)
            assert runs.ref == ref

        later(folder / "new.json")
        session_of(folder / "new.jsonl", 1)
        await until(pilot, lambda: app.store.overview.runs == 63, what="new runs")
        await in_their_places("new runs in their places")
        going.end()
        await until(pilot, lambda: not app.store.unended & {RunRef("ccpa", str(going.path))}, what="an end")
        await in_their_places("the ended run in its place")
        (folder / "old-10.json").unlink()
        await until(pilot, lambda: app.store.overview.runs == 62, what="a deletion")
        await in_their_places("the order after a deletion")
        (folder / "old-20.json").rename(folder / "zzz.json")
        await until(pilot, lambda: RunRef("paprika", str(folder / "zzz.json")) in app.store.runs, what="a new name")
        await in_their_places("the order after a rename")


async def test_a_list_that_was_hidden_is_in_order_when_it_is_shown_again(opened: Opener, folder: Path) -> None:
    async with opened(folder, size=(80, 24)) as (app, pilot):
        await press(pilot, "enter")
        assert not app.main.runs.is_on_screen
        later(folder / "new.json")
        await until(pilot, lambda: app.store.overview.runs == 61, what="a new run")
        await pilot.press("escape")
        assert app.main.runs.is_on_screen
        assert not app.main.runs.due
        assert first_name(app) == "new.json"


async def test_the_frame_of_a_covered_list_is_drawn_when_it_is_shown_again(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(folder) as (app, pilot):
        await press(pilot, "S")
        drawn: list[Line] = []
        show = app.main._header.show

        def note(left: Line, right: Line = ()) -> None:
            drawn.append(left)
            show(left, right)

        monkeypatch.setattr(app.main._header, "show", note)
        later(folder / "new.json")
        await until(pilot, lambda: app.store.overview.runs == 61, what="a new run")
        assert not drawn
        await press(pilot, "escape")
        assert drawn
        assert "61 runs" in line(app, 0)


async def test_a_run_whose_state_changes_with_time_changes_its_place_without_news(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(TraceApp, "clock", lambda self: now)
    session("answered", title="Answered").write(tmp_path, now, 3)
    working("going", 0, "parser").write(tmp_path, now, 2)
    async with opened(tmp_path / ".claude" / "projects") as (app, pilot):

        def states() -> list[RunState | None]:
            return [app.liveness.run_state(app.store.runs[ref]) for ref in app.main.runs.refs()]

        assert states() == [RunState.RUNNING, RunState.RUNNING]
        monkeypatch.setattr(TraceApp, "clock", lambda self: now + 120)
        await until(pilot, lambda: RunState.WAITING in states(), what="a run that waits")
        await until(pilot, lambda: in_order(app), what="its new place")

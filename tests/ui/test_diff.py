"""Two runs compared, by keys, on the built-in samples."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from tests import hostile
from tests.shared import SEARCHES
from tests.ui.conftest import NOW, Opener, press, settle, text_of, until
from tests.ui.test_hostile import assert_harmless, gate_holds
from tests.ui.test_keys import tried
from tracetui.diff.comparison import Comparison
from tracetui.model import RunRef, RunSummary
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import CHANGE, DIFF, PAIRS, PHRASES, SIDES
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.screens.diff import ContextScreen, DiffScreen
from tracetui.ui.screens.lists import ReplaysScreen
from tracetui.views.diff.steps import PairRows, summary

S = TypeVar("S", bound=BaseScreen)
MISMATCH = "e4417b8b"
"""A replay whose fourth step was given another prompt."""
EXACT = "a91f039c"

__all__ = ["gate_holds"]


def run_like(app: TraceApp, ident: str) -> RunSummary:
    """The run whose id begins so."""
    return next(run for run in app.store.runs.values() if run.id.startswith(ident))


async def go_to(app: TraceApp, pilot: Pilot[int], ident: str) -> None:
    """Put the cursor of the list on a run."""
    app.main.runs.move_to_key(run_like(app, ident).ref)
    await settle(pilot)


async def wait_for_screen(app: TraceApp, pilot: Pilot[int], kind: type[S]) -> S:
    """Wait for a screen of that kind and its contents."""
    await until(pilot, lambda: isinstance(app.screen, kind), what=kind.__name__)
    screen = app.screen
    assert isinstance(screen, kind)
    await quiet(pilot, screen)
    return screen


async def quiet(pilot: Pilot[int], screen: BaseScreen) -> None:
    """Wait until nothing that a comparison shows is on its way."""
    await until(pilot, lambda: bool(getattr(screen, "settled", True)), what="the comparison")
    await pilot.pause()


async def type_keys(pilot: Pilot[int], screen: BaseScreen, *keys: str) -> None:
    """Press keys, each on a quiet screen."""
    for key in keys:
        await pilot.press(key)
        await quiet(pilot, screen)


async def diff_of(app: TraceApp, pilot: Pilot[int], ident: str) -> DiffScreen:
    """The comparison of a replay with its original, opened by its key."""
    await go_to(app, pilot, ident)
    await pilot.press("D")
    return await wait_for_screen(app, pilot, DiffScreen)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)] if SEARCHES else [(80, 24), (120, 40)])
async def test_d_answers_before_anything_else_is_pressed(opened: Opener, samples: Path, size: tuple[int, int]) -> None:
    async with opened(samples, size=size) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        screen_text = text_of(app)
        assert "First difference: step 4 gpt-4o" in screen_text
        assert "system prompt changed" in screen_text
        assert screen.change.value_path == "messages[0]"
        detail = "".join(
            piece.text for i in range(5) for piece in screen.change.rows.line(i, 220) if "word" in piece.style
        )
        assert "Give at least two sources for every number." in detail
        assert screen.pane == (CHANGE if size[0] < 100 else PAIRS)


async def test_an_exact_replay_differs_in_ignored_values_only(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, EXACT)
        assert "No differences" in text_of(app)
        assert "next change" not in text_of(app)
        assert "next step" not in text_of(app)
        assert "ignored: " in text_of(app)
        assert screen.change.compared is not None
        await type_keys(pilot, screen, "i")
        assert "No differences except ignored values" in text_of(app)
        assert screen.diff is not None
        assert screen.diff.strict
        assert not screen.diff.same
        assert "nothing ignored" in text_of(app)
        await type_keys(pilot, screen, "i")
        assert screen.diff.same
        assert app.comparisons.verdicts[screen.request.a, screen.request.b].same
        await type_keys(pilot, screen, "escape")
        assert app.screen is app.main


async def test_the_list_marks_replays_and_their_divergence_after_a_comparison(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        original = run_like(app, "d20b6eb4")
        relationship = app.main.runs.relationship
        assert "".join(piece.text for piece in relationship(original, app.look.glyphs).before).strip() == "↺×1"
        screen = await diff_of(app, pilot, MISMATCH)
        await type_keys(pilot, screen, "q")
        assert "≠ step 4" in "".join(
            piece.text for piece in relationship(run_like(app, MISMATCH), app.look.glyphs).after
        )
        assert "≠1" in "".join(piece.text for piece in relationship(original, app.look.glyphs).before)
        await until(pilot, lambda: "≠ step 4" in text_of(app))


async def test_brackets_walk_through_differing_steps_and_n_through_every_difference(
    opened: Opener, samples: Path
) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, "rag-001-fork")
        assert screen.diff is not None
        first = screen.pairs.position
        assert first == screen.diff.first.row if screen.diff.first else False
        await type_keys(pilot, screen, "]", "d")
        assert screen.pairs.position == first + 1
        await type_keys(pilot, screen, "[", "d")
        assert screen.pairs.position == first
        await type_keys(pilot, screen, "[", "d")
        assert "no earlier differing step" in text_of(app)

        visited: list[tuple[object, object]] = []
        for _ in range(50):
            here = (screen.pairs.cursor, screen.change.cursor)
            assert here not in visited
            visited.append(here)
            await type_keys(pilot, screen, "n")
            if "no later differences" in text_of(app):
                break
        rows = {pair for pair, _ in visited}
        assert screen.diff is not None
        assert len(rows) == len([row for row in screen.diff.rows if row.kind != "same"])
        for _ in range(len(visited) - 1):
            await type_keys(pilot, screen, "N")
            assert (screen.pairs.cursor, screen.change.cursor) in visited
        await type_keys(pilot, screen, "N")
        assert "no earlier differences" in text_of(app)


async def test_s_and_c_choose_how_the_change_is_shown(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        beside = len(screen.change.rows)
        await type_keys(pilot, screen, "s")
        assert len(screen.change.rows) != beside
        assert "unified" in text_of(app)
        assert screen.change.value_path == "messages[0]"
        await type_keys(pilot, screen, "s")
        assert len(screen.change.rows) == beside
        tabs = []
        for _ in range(3):
            await pilot.press("c")
            wanted = screen.change.tab
            await until(pilot, lambda tab=wanted: _tab(screen) == tab, what=wanted)  # type: ignore[misc]
            tabs.append(wanted)
        assert tabs == ["context", "previous call", "changes"]
        await type_keys(pilot, screen, "c")
        assert "kept 4" in text_of(app)
        assert "~1 edited" in text_of(app)
        assert "cache breaks here" in text_of(app)


def _tab(screen: DiffScreen) -> str:
    return screen.change.compared.tab if screen.change.compared is not None else ""


async def test_folds_open_by_keys_and_for_the_hits_of_a_search(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        change = screen.change
        await type_keys(pilot, screen, "3")
        closed = len(change.rows)
        folded = next(i for i in range(closed) if "unchanged messages" in _row(screen, i))
        change.move_to(folded)
        await type_keys(pilot, screen, "l")
        assert len(change.rows) == closed + 4
        await type_keys(pilot, screen, "h")
        assert len(change.rows) == closed
        await type_keys(pilot, screen, "enter")
        assert len(change.rows) == closed + 4
        await type_keys(pilot, screen, "z", "R")
        everything = len(change.rows)
        assert everything > closed + 4
        assert screen.state.zoom is None
        await type_keys(pilot, screen, "z", "M")
        assert len(change.rows) < closed

        await type_keys(pilot, screen, "3", "/", *"battery", "enter")
        assert "hit 1 of" in text_of(app)
        await type_keys(pilot, screen, "n")
        assert "hit" in text_of(app)
        await type_keys(pilot, screen, "escape", "n")
        assert "hit" not in text_of(app).splitlines()[1]


def _row(screen: DiffScreen, index: int) -> str:
    return "".join(piece.text for piece in screen.change.rows.line(index, 100))


async def test_panes_are_focused_by_number_and_tab_and_zoomed(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        for key, name in (
            ("3", CHANGE),
            ("4", SIDES),
            ("1", PHRASES),
            ("2", PAIRS),
            ("tab", CHANGE),
            ("shift+tab", PAIRS),
        ):
            await type_keys(pilot, screen, key)
            assert screen.pane == name
        await type_keys(pilot, screen, "3", "z")
        assert screen.change.outer_size.height == 37
        assert not screen.pairs.is_on_screen
        await type_keys(pilot, screen, "escape")
        assert screen.pairs.is_on_screen
        assert app.screen is screen


async def test_a_narrow_screen_shows_one_pane_and_escape_goes_back_through_them(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(80, 24)) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        assert (screen.change.is_on_screen, screen.pairs.is_on_screen) == (True, False)
        assert "s side/unified" in text_of(app).splitlines()[23]
        await type_keys(pilot, screen, "escape")
        assert (screen.change.is_on_screen, screen.pairs.is_on_screen) == (False, True)
        assert "s side/unified" not in text_of(app).splitlines()[23], "it acts on a pane that isn't shown"
        await type_keys(pilot, screen, "k", "enter")
        assert screen.pane == CHANGE
        assert "step 3" in text_of(app)
        await type_keys(pilot, screen, "4")
        assert "Both runs" in text_of(app)
        await type_keys(pilot, screen, "2", "escape")
        assert app.screen is app.main


async def test_it_can_be_resized_at_any_moment(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        for size in ((80, 24), (200, 60), (30, 8), (120, 20), (120, 40)):
            await pilot.resize_terminal(*size)
            await quiet(pilot, screen)
            assert_harmless(app)
        assert screen.change.value_path == "messages[0]"


async def test_values_paths_and_addresses_are_copied(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    def copy(self: TraceApp, text: str) -> int:
        copied.append(text)
        return len(text)

    monkeypatch.setattr(TraceApp, "copy", copy)
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        await type_keys(pilot, screen, "3", "y", "y", "y", "p", "y", "l")
        assert "Give at least two sources" in copied[0]
        assert copied[1] == "messages[0]"
        assert copied[2].startswith(run_like(app, MISMATCH).ref.address + "/")


async def test_two_marked_runs_are_compared_whatever_their_formats(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await go_to(app, pilot, "appeal")
        await press(pilot, "space")
        assert "marked as A" in text_of(app)
        await go_to(app, pilot, "8d7464ab")
        await press(pilot, "space")
        assert " A  insurance" in text_of(app)
        assert app.main.state.marked == (run_like(app, "appeal").ref, app.main.runs.ref)
        await pilot.press("d")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        assert screen.diff is not None
        assert screen.diff.a.summary.id == "appeal"
        await type_keys(pilot, screen, "q")
        await press(pilot, "space")
        assert len(app.main.state.marked) == 1
        await press(pilot, "g", "G", "k", "k")
        await pilot.press("d")
        await wait_for_screen(app, pilot, DiffScreen)


async def test_goals_and_metrics_stand_side_by_side(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        app.main.state = replace(app.main.state, marked=(run_like(app, "appeal").ref, run_like(app, "coverage").ref))
        await pilot.press("d")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        lines = [screen.sides.rows.plain(i) for i in range(len(screen.sides.rows))]
        assert any("not met" in line for line in lines)
        assert screen.diff is not None
        assert len(lines) > len(screen.diff.judgments) > 0


async def test_the_state_of_graphs_is_compared(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, "router-001-ck")
        await pilot.press(">")
        await until(pilot, lambda: _tab(screen) == "state", what="the state")
        assert "accumulated state after superstep" in text_of(app)


async def test_a_missing_original_is_an_error(opened: Opener, samples: Path, tmp_path: Path) -> None:
    replay = next(path for path in (samples / "paprika").rglob("*.json") if path.name.startswith(MISMATCH))
    shutil.copy(replay, tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "D")
        assert "d20b6eb4" in text_of(app).splitlines()[1]
        assert "isn't in this directory" in text_of(app)
        assert "not here" in text_of(app)


@pytest.fixture
def replayed(samples: Path, tmp_path: Path) -> Path:
    """An original with three replays, one of which went differently."""
    for path in (samples / "paprika").rglob("*.json"):
        if path.name.startswith(("d20b6eb4", MISMATCH)):
            shutil.copy(path, tmp_path)
    original = next(tmp_path.glob("d20b6eb4*"))
    for number in (1, 2):
        record = json.loads(original.read_bytes())
        record["replay_of"], record["record_id"] = record["record_id"], f"replay-{number}"
        (tmp_path / f"replay-{number}.json").write_text(json.dumps(record))
    return tmp_path


async def test_the_footer_of_equal_runs_names_no_keys_of_differences(opened: Opener, replayed: Path) -> None:
    async with opened(replayed, size=(200, 60)) as (app, pilot):
        await go_to(app, pilot, "replay-1")
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        assert not screen.has_differences
        hints = text_of(app).splitlines()[-1]
        assert "ignored" in hints
        assert not any(hint in hints for hint in ("next change", "next step", "side/unified", "unfold"))


async def test_an_original_lists_its_replays_with_their_first_difference(opened: Opener, replayed: Path) -> None:
    async with opened(replayed) as (app, pilot):
        await go_to(app, pilot, "d20b6eb4")
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, ReplaysScreen)
        await until(pilot, lambda: "comparing" not in text_of(app).splitlines()[1], what="all verdicts")
        screen_text = text_of(app)
        assert "1 of 3 replays diverged" in screen_text
        assert screen_text.count("no differences") == 2
        assert "step 4 gpt-4o · system prompt changed" in screen_text
        screen.list.move_to_key(run_like(app, MISMATCH).ref)
        await pilot.press("enter")
        diff = await wait_for_screen(app, pilot, DiffScreen)
        assert "First difference" in text_of(app)
        assert "s side/unified" in text_of(app).splitlines()[-1]
        await type_keys(pilot, diff, "escape")
        assert app.screen is screen
        await type_keys(pilot, screen, "escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await until(pilot, lambda: "↺×3 ≠1" in text_of(app))


async def test_c_in_a_run_compares_a_model_call_with_the_one_before(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await go_to(app, pilot, "0690e0f0")
        await press(pilot, "enter", "g", "c")
        assert "first model call" in text_of(app)
        await press(pilot, "j", "c")
        assert "c works on model calls only" in text_of(app)
        await press(pilot, "]", "m")
        await pilot.press("c")
        screen = await wait_for_screen(app, pilot, ContextScreen)
        assert "since the previous call: kept" in text_of(app)
        assert screen.change.side_by_side
        first = screen.request
        await type_keys(pilot, screen, "]", "d")
        assert screen.request.a == first.b
        await type_keys(pilot, screen, "[", "d")
        assert screen.request == first
        await type_keys(pilot, screen, "s")
        assert not screen.change.side_by_side
        await type_keys(pilot, screen, "s", "n", "w", "w", "3", "tab", "i", "c", "z", "z", "N", "escape")
        assert app.screen is app.main


@pytest.mark.parametrize("pane", sorted(DIFF))
async def test_every_key_of_every_pane_does_something_without_breaking(
    opened: Opener, samples: Path, pane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TraceApp, "action_suspend_process", lambda self: None)
    monkeypatch.setattr(TraceApp, "edit", lambda self, text: None)
    async with opened(samples) as (app, pilot):
        for command in tried(pane, app.commands):
            if command.id in ("palette", "help", "interrupt", "end-now"):
                continue
            screen = app.screen if isinstance(app.screen, DiffScreen) else await diff_of(app, pilot, MISMATCH)
            screen.focus_pane(pane)
            await quiet(pilot, screen)
            assert pane in (screen.pane, pane)
            await screen.perform(command)
            await pilot.pause()
            if command.id == "search":
                await pilot.press("escape")
            if app.screen is screen:
                await quiet(pilot, screen)
            assert_harmless(app)


async def test_o_takes_all_of_the_change_to_the_editor(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited: list[str] = []
    monkeypatch.setattr(TraceApp, "edit", lambda self, text: edited.append(text))
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        await type_keys(pilot, screen, "o")

    (text,) = edited
    lines = text.split("\n")
    assert lines[0] == "~ messages[0] system  input"
    assert [line[:2] for line in lines[1:3]] == ["- ", "+ "]
    assert "Give at least two sources" in lines[2]
    assert sum(line.startswith("= messages[") for line in lines) == 4, "nothing is folded"


async def test_a_comparison_is_offered_where_there_is_one_else_its_keys_say_why(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(200, 60)) as (app, pilot):
        await go_to(app, pilot, MISMATCH)
        assert "diff original" in text_of(app).split("\n")[-1]
        run = next(
            run
            for run in app.store.runs.values()
            if not (run.replay_of or run.replay_of_path or app.store.relations.replays(run.ref))
        )
        await go_to(app, pilot, run.id)
        assert app.main.state.ref == run.ref
        assert "diff original" not in text_of(app).split("\n")[-1]
        await go_to(app, pilot, "appeal")
        await press(pilot, "D")
        assert "no original or replay" in text_of(app)
        await press(pilot, "d")
        assert "Space marks them" in text_of(app)


async def test_every_pane_says_which_rows_are_in_view(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(80, 24)) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        for number in "1234":
            await type_keys(pilot, screen, number)
            title = next(line for line in text_of(app).split("\n") if line.startswith(f"━ {number} "))
            assert f"/{len(screen.view.rows)} " in title


async def test_help_shows_the_keys_of_a_comparison(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        await pilot.press("?")
        await until(pilot, lambda: app.screen is not screen)
        assert "previous step" in text_of(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)


async def test_reading_again_finds_what_changed(opened: Opener, replayed: Path) -> None:
    async with opened(replayed) as (app, pilot):
        screen = await diff_of(app, pilot, "replay-1")
        assert screen.diff is not None
        assert screen.diff.same
        path = replayed / "replay-1.json"
        record = json.loads(path.read_bytes())
        record["steps"][0]["output_data"] = {"choices": "changed"}
        path.write_text(json.dumps(record))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "First difference: step 1" in text_of(app), what="the change")


async def test_an_unreadable_run_is_reported(opened: Opener, replayed: Path) -> None:
    async with opened(replayed) as (app, pilot):
        await go_to(app, pilot, "replay-1")
        ref = run_like(app, "replay-1").ref
        gone = RunRef(ref.format, str(replayed / "gone.json"))
        app.compare(ref, gone)
        await until(pilot, lambda: "comparison failed" in text_of(app), what="why not")


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every sample and its hostile twin."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile.write(folder, NOW)
    return folder


@pytest.mark.usefixtures("gate_holds")
@pytest.mark.parametrize("size", [(80, 24), (160, 40)])
async def test_hostile_runs_are_compared_without_a_leak(opened: Opener, attack: Path, size: tuple[int, int]) -> None:
    async with opened(attack, size=size) as (app, pilot):
        refs = sorted(app.store.runs, key=lambda ref: os.path.basename(ref.path).encode("utf-8", "surrogatepass"))
        by_format: dict[str, list[RunRef]] = {}
        for ref in refs:
            by_format.setdefault(ref.format, []).append(ref)
        pairs = [(runs[0], runs[-1]) for runs in by_format.values()]
        mixed = [(a[0], b[-1]) for a, b in zip(by_format.values(), list(by_format.values())[1:], strict=False)]
        narrow = size == (80, 24)
        for a, b in [*pairs, *mixed] if SEARCHES else [*pairs[narrow::2], mixed[narrow]]:
            app.compare(a, b)
            screen = await wait_for_screen(app, pilot, DiffScreen)
            assert_harmless(app)
            for keys in (
                ("n", "n", "n"),
                ("i",),
                ("s",),
                ("z", "R"),
                ("3", "G"),
                ("w",),
                ("c",),
                ("4", "G"),
                ("2", "G"),
            ):
                await type_keys(pilot, screen, *keys)
                assert_harmless(app)
            await type_keys(pilot, screen, "q")


async def test_partial_comparisons_draw_like_complete_ones(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, "rag-001-fork")
        diff = screen.diff
        assert diff is not None
        pairs = screen.pairs
        for partial in Comparison(diff.a, diff.b, relation=diff.relation, breathe=lambda: True).steps():
            pairs.show_diff(partial)
            here = [pairs.strip_at(y).text for y in range(1, pairs.outer_size.height)]
            pairs.show(PairRows(partial, glyphs=app.look.glyphs), heading=lambda width, diff=partial: (summary(diff),))  # type: ignore[misc]
            assert here == [pairs.strip_at(y).text for y in range(1, pairs.outer_size.height)]
            assert pairs.diff is partial


async def test_keys_in_one_breath_compare_the_run_that_the_cursor_came_to(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        runs = app.main.runs
        await go_to(app, pilot, MISMATCH)
        there = runs.position
        runs.move_to(there - 1)
        await settle(pilot)
        runs.action_move(1)  # what it moved is not heard of yet
        app.main.action_diff_original()
        screen = await wait_for_screen(app, pilot, DiffScreen)
        assert screen.request.b == run_like(app, MISMATCH).ref


async def test_the_changes_in_words_lead_to_their_steps_and_r_shows_the_json(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await diff_of(app, pilot, MISMATCH)
        assert "system prompt changed" in text_of(app)
        assert "no output in B" in text_of(app)
        assert "messages[0] assistant" in text_of(app)
        await type_keys(pilot, screen, "r")
        assert '"choices"' in screen.change.text
        await type_keys(pilot, screen, "r")
        assert '"choices"' not in screen.change.text
        screen.pairs.move_to(0)
        await type_keys(pilot, screen, "1", "j")
        assert screen.pairs.row is not None
        assert screen.pairs.pair_index == screen.description.phrases[1].rows[0]

"""What a user does, by keys, on the built-in samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.shared import SEARCHES
from tests.ui.conftest import Opener, press, settle, text_of, until
from tests.ui.test_live_more import wheel
from tracetui.model import RunRef, Status
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.overlay import Palette
from tracetui.views import stack


def focus(app: TraceApp) -> str:
    """Name of the focused pane and level, for one-line assertions."""
    return f"{app.main.pane} {app.main.state.level}"


async def test_it_opens_on_the_newest_failed_run_and_counts_the_top_level_ones(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, _):
        ref = app.main.runs.ref
        assert ref is not None
        assert app.store.runs[ref].status is Status.ERROR
        failed = [run for run in app.store.runs.values() if run.status is Status.ERROR and run.parent is None]
        assert app.store.runs[ref].started_at == max(run.started_at or 0 for run in failed)
        span = app.main.steps.span
        assert span is not None
        assert span.status is Status.ERROR
        assert app.main.detail.tab == "error"
        tops = [run for run in app.store.runs.values() if run.parent is None]
        assert f"{len(failed)} of {len(tops)} failed" in text_of(app)


async def test_the_preview_follows_the_cursor(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "g")
        first = app.main.steps.run
        await press(pilot, "j")
        assert first is not None
        assert app.main.steps.run is not None
        assert app.main.steps.run.summary.ref == app.main.runs.ref != first.summary.ref


async def test_enter_and_escape_go_in_and_out(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(80, 24)) as (app, pilot):
        assert focus(app) == "runs 0"
        await press(pilot, "enter")
        assert focus(app) == "steps 1"
        assert not app.main.runs.is_on_screen
        await press(pilot, "enter")
        assert focus(app) == "detail 2"
        assert not app.main.steps.is_on_screen
        await press(pilot, "escape", "escape")
        assert focus(app) == "runs 0"


async def test_q_quits_only_from_the_list(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter", "q")
        assert focus(app) == "runs 0"
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running)


@pytest.mark.parametrize("where", ["slash", "f", "ctrl+p", "question_mark", "enter"])
async def test_the_interrupt_key_quits_from_everywhere(opened: Opener, samples: Path, where: str) -> None:
    async with opened(samples) as (app, pilot):
        await pilot.press(where)
        await pilot.pause()
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.is_running)
        assert app.return_code == 0


async def test_the_error_walk_visits_every_failed_run_once_and_says_when_it_ends(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "g")
        seen: list[RunRef] = []
        for _ in range(300):
            await press(pilot, "e")
            if "Last error" in text_of(app):
                break
            assert app.main.state.ref is not None
            if app.main.state.ref not in seen:
                seen.append(app.main.state.ref)
        failed = {run.ref for run in app.store.runs.values() if run.status is Status.ERROR}
        assert set(seen) == failed
        await press(pilot, "E")
        assert app.main.state.ref in failed


async def test_the_tree_and_the_timeline_share_the_cursor(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter", "G", "k")
        before = app.main.steps.cursor
        await press(pilot, "t")
        assert app.main.steps.as_tree
        assert app.main.steps.cursor == before


async def test_folding_hides_what_is_below_and_the_cursor_stays_in_sight(opened: Opener, samples: Path) -> None:
    async with opened(samples / "latticeflow" / "trip.json") as (app, pilot):
        await press(pilot, "enter", "t")
        everything = len(app.main.steps.rows)
        await press(pilot, "z", "M")
        assert len(app.main.steps.rows) < everything
        assert app.main.state.zoom is None
        assert app.main.detail.span is app.main.steps.span
        await press(pilot, "z", "R")
        assert len(app.main.steps.rows) == everything


async def test_z_alone_zooms_the_pane(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "3", "z")
        assert app.main.detail.size.width == 120
        assert not app.main.runs.is_on_screen
        await press(pilot, "z")
        assert app.main.runs.is_on_screen


async def test_a_filter_hides_runs_and_says_if_none_match_and_escape_shows_all(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        everything = len(app.main.runs.refs())
        await press(pilot, "f", *"!ok", "enter")
        refs = app.main.runs.refs()
        assert 0 < len(refs) < everything
        assert all(app.store.runs[ref].status is not Status.OK for ref in refs)
        await press(pilot, "escape")
        assert len(app.main.runs.refs()) == everything
        await press(pilot, "f", *"zzzz", "enter")
        header, sentence, *_, footer = text_of(app).splitlines()
        total = app.store.overview.runs
        assert "No runs match" in text_of(app)
        assert f"0 of {total} runs" in header
        assert sentence.strip() == f"0 of {total} runs match  ·  Esc clear filter"
        assert "f filter" in footer
        assert "↵ open" not in footer
        assert "/ search" not in footer
        await press(pilot, "2")
        footer = text_of(app).splitlines()[-1]
        assert "Esc back" in footer
        assert "f filter" not in footer
        assert "] next" not in footer
        await press(pilot, "escape", "escape")
        assert app.main.runs.refs()
        await press(pilot, "!")
        assert {app.store.runs[ref].status for ref in app.main.runs.refs()} == {Status.ERROR}


async def test_the_cursor_keeps_its_run_when_the_list_is_sorted_and_grouped(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "j", "j")
        ref = app.main.runs.ref
        for key in (",", ",", ";", "b", "b", "b"):
            await press(pilot, key)
            assert app.main.runs.ref == ref


async def test_search_marks_and_walks_hits_and_hides_nothing(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        count = len(app.main.runs.rows)
        await press(pilot, "/", *"rag", "enter")
        assert len(app.main.runs.rows) == count
        assert "hit 1 of" in text_of(app) or "hit" in text_of(app)
        first = app.main.runs.position
        await press(pilot, "n")
        assert app.main.runs.position != first
        assert "rag" in app.main.runs.rows.plain(app.main.runs.position).lower()
        await press(pilot, "N")
        assert app.main.runs.position == first


async def test_tabs_of_the_detail_stay_chosen_from_span_to_span(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter", "r")
        assert app.main.detail.tab == "raw"
        await press(pilot, "k")
        assert app.main.detail.tab == "raw"


async def test_an_unreadable_file_has_a_row_with_its_reason(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "f", *"unreadable", "enter")
        assert app.main.runs.problem is not None
        assert "unreadable: cut off" in text_of(app)


async def test_an_empty_directory_offers_the_demo(opened: Opener, tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, _):
        assert "No traces in" in text_of(app)
        assert "tracetui demo" in text_of(app)


async def test_help_lists_the_keys_of_the_pane_and_closes(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(120, 60)) as (app, pilot):
        await pilot.press("?")
        await until(pilot, lambda: "failures only" in text_of(app), what="the page of keys")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)


async def test_the_palette_opens_a_run(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: app.screen is not app.main)
        await pilot.press(*"batch-001/2")
        palette = app.screen
        assert isinstance(palette, Palette)
        await until(pilot, lambda: "batch-001/2" in palette._view.rows.plain(0), what="the hit")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main)
        await settle(pilot)
        assert app.main.state.ref is not None
        assert app.main.state.ref.key == "batch-001/2"


SIZES: Final = ((80, 24), (120, 40), (200, 60), (40, 10), (20, 5), (1, 1))


@pytest.mark.parametrize("size", SIZES if SEARCHES else SIZES[::2] + SIZES[-1:])
async def test_every_size_is_usable(opened: Opener, samples: Path, size: tuple[int, int]) -> None:
    async with opened(samples, size=size) as (app, pilot):
        await press(pilot, "j", "enter", "j", "t", "enter", ">", "escape", "escape", "j")
        assert app.is_running


async def test_resizing_keeps_cursor_and_run(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter", "j")
        span, ref = app.main.steps.cursor, app.main.state.ref
        for size in ((80, 24), (200, 60), (30, 8), (120, 40)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert (app.main.steps.cursor, app.main.state.ref) == (span, ref)


async def test_jumping_from_a_criterion_to_its_turn(opened: Opener, samples: Path) -> None:
    async with opened(samples / "penelope" / "appeal") as (app, pilot):
        await press(pilot, "enter", "enter")
        assert app.main.detail.choose("goal")
        await pilot.pause()
        rows = app.main.detail.rows
        leading = next(i for i in range(len(rows)) if stack.target(rows, i))
        app.main.detail.move_to(leading)
        await press(pilot, "'")
        assert app.main.pane == "steps"
        assert app.main.steps.span is not None


async def test_no_panel_of_a_goal_is_hidden(opened: Opener, samples: Path) -> None:
    async with opened(samples / "penelope" / "appeal") as (app, pilot):
        await press(pilot, "enter")
        await until(pilot, lambda: app.main.facts.is_on_screen, what="the panels")
        assert 0 < len(app.main.facts.rows) <= app.main.facts.page


async def test_panels_that_come_later_are_above_the_cursor_of_unread_facts(opened: Opener, samples: Path) -> None:
    async with opened(samples / "paprika", size=(200, 60)) as (app, pilot):
        await press(pilot, "enter")
        facts = app.main.facts
        await until(pilot, lambda: facts.rows.plain(0).startswith("Context"), what="the panels")
        assert not any(facts.rows.selectable(row) for row in range(facts.position))


async def test_facts_keep_a_cursor_that_the_user_moved(opened: Opener, samples: Path) -> None:
    async with opened(samples / "paprika", size=(200, 60)) as (app, pilot):
        await press(pilot, "enter", "4", "j", "j", "2")
        facts = app.main.facts
        before = facts.cursor
        assert before != facts._first
        facts.draw_rows(keep=True)
        assert facts.cursor == before


async def test_spans_get_the_rows_before_facts_that_a_tab_has(opened: Opener, samples: Path) -> None:
    async with opened(samples / "latticeflow", size=(200, 60)) as (app, pilot):
        await press(pilot, "enter", "t")
        steps = app.main.steps
        assert steps.as_tree
        assert len(steps.rows) <= steps.page
        assert app.main.facts.is_on_screen


async def test_turns_that_the_wheel_shows_are_loaded(opened: Opener, samples: Path) -> None:
    async with opened(samples / "penelope" / "floods", size=(80, 24)) as (app, pilot):
        await press(pilot, "enter")
        steps = app.main.steps
        await wheel(pilot, steps, 10)
        await until(pilot, lambda: steps.missing_body is None, what="the turns on the screen")
        assert len(steps.bodies) > 4


async def test_reading_again_finds_what_came_and_drops_what_went(opened: Opener, samples: Path, tmp_path: Path) -> None:
    weather, trip = (samples / "latticeflow" / f"{name}.json" for name in ("weather", "trip"))
    (tmp_path / "weather.json").write_bytes(weather.read_bytes())
    async with opened(tmp_path) as (app, pilot):
        assert [ref.path for ref in app.main.runs.refs()] == [str(tmp_path / "weather.json")]
        (tmp_path / "trip.json").write_bytes(trip.read_bytes())
        (tmp_path / "weather.json").unlink()
        await pilot.press("ctrl+r")
        gone = str(tmp_path / "weather.json")
        await until(pilot, lambda: gone not in [ref.path for ref in app.main.runs.refs()], what="the new list")
        assert [ref.path for ref in app.main.runs.refs()] == [str(tmp_path / "trip.json")]


async def test_unwrapped_lines_run_on_and_scroll(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter", "r", "3")
        wrapped = len(app.main.detail.rows)
        await press(pilot, "w")
        assert len(app.main.detail.rows) <= wrapped
        await press(pilot, "l")
        assert app.main.detail.left > 0
        await press(pilot, "w")
        assert (len(app.main.detail.rows), app.main.detail.left) == (wrapped, 0)


async def test_a_hit_in_folded_json_is_unfolded(opened: Opener, tmp_path: Path) -> None:
    deep: object = "the needle is here"
    for depth in range(6):
        deep = {f"level {depth}": deep, "other": list(range(100))}
    items = [{"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": json.dumps(deep)}]
    items.append({"type": "function_call_output", "id": "o", "call_id": "c", "output": "ok"})
    (tmp_path / "deep.json").write_text(json.dumps({"items": items}))
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter", "enter")
        assert app.main.detail.choose("input")
        await press(pilot, "/", *"needle is", "enter")
        assert "the needle is here" in text_of(app)


async def test_jumping_from_a_replay_to_its_original(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        replay = next(run for run in app.store.runs.values() if run.relation == "retry")
        app.main.runs.move_to_key(replay.ref)
        await press(pilot, "enter", "4")
        rows = app.main.detail.rows
        naming = next(i for i in range(len(rows)) if stack.target_run(rows, i) == replay.replay_of)
        app.main.detail.move_to(naming)
        await press(pilot, "enter")
        assert app.main.state.ref is not None
        assert app.store.runs[app.main.state.ref].id == replay.replay_of


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
async def test_a_folder_without_readable_traces_counts_no_runs(
    opened: Opener, tmp_path: Path, size: tuple[int, int]
) -> None:
    (tmp_path / "run.db").write_bytes(b"SQLite")
    async with opened(tmp_path, size=size) as (app, pilot):
        await until(pilot, lambda: "run.db" in text_of(app))
        header, *_, footer = text_of(app).splitlines()
        assert "0 runs" in header
        assert not any(word in footer for word in ("diff original", "follow", "note", "context", "export", "next tab"))


async def test_an_unreadable_file_shows_its_own_text_at_the_place_where_reading_stopped(
    opened: Opener, samples: Path
) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "f", *"unreadable", "enter")
        await until(pilot, lambda: "reading stopped here" in text_of(app), what="the excerpt")


async def test_a_model_call_is_read_as_messages(opened: Opener, samples: Path) -> None:
    async with opened(samples / "latticeflow" / "trip.json") as (app, pilot):
        await press(pilot, "enter", "]", "m")
        assert app.main.detail.tab == "messages"


async def test_a_folder_of_broken_files_only_is_shown_over_the_whole_width(opened: Opener, tmp_path: Path) -> None:
    line = " ".join(["all of it in one line"] * 4)
    (tmp_path / "cut.json").write_text('{"record_id": "' + line)
    async with opened(tmp_path) as (app, pilot):
        await until(pilot, lambda: "reading stopped here" in text_of(app), what="the excerpt")
        assert "no readable traces" in text_of(app)
        assert line[:40] in text_of(app)
        await pilot.resize_terminal(150, 40)
        await until(pilot, lambda: line[:60] in text_of(app), what="the same text on a wider screen")


async def test_below_the_smallest_size_a_message_replaces_the_screen(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(80, 24)) as (app, pilot):
        for keys in ((), ("enter",), ("escape", "T"), ("escape", "S")):
            await press(pilot, *keys)
            await pilot.resize_terminal(39, 24)
            await until(pilot, lambda: "too small: 40×10 needed, 39×24 here" in text_of(app), what="the size")
            assert len(text_of(app).split()) == 6
            await pilot.resize_terminal(30, 9)
            await until(pilot, lambda: text_of(app).strip() == "40×10 needed, 30×9 here", what="the size in short")
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: "needed" not in text_of(app), what="the screen as before")
            await settle(pilot)


async def test_the_title_of_the_list_counts_runs_and_no_headings(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(120, 200)) as (app, _):
        assert len(app.main.runs.rows) > len(app.store.runs) + len(app.store.problems)
        assert f"/{len(app.store.runs) + len(app.store.problems)} " in text_of(app).splitlines()[2]


async def test_the_footer_names_only_keys_that_lead_somewhere(opened: Opener, samples: Path, tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, _):
        assert text_of(app).splitlines()[-1].split() == ["q", "quit", "?", "all", "keys"]
    async with opened(samples / "latticeflow" / "trip.json") as (app, pilot):
        hints = text_of(app).splitlines()[-1]
        assert "open" in hints
        assert not {"triage", "verdict"} & set(hints.split())  # a call inside failed: `e` goes there
        await press(pilot, "enter", "3")
        assert text_of(app).splitlines()[-1].split()[2:7] == [">", "next", "tab", "yy", "copy"]
    async with opened(samples, size=(200, 60)) as (app, _):
        assert {"triage", "error", "verdict"} <= set(text_of(app).splitlines()[-1].split())
        assert "no readable traces" not in text_of(app)


async def test_the_footer_names_the_keys_that_continue_a_sequence(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "v")
        assert text_of(app).splitlines()[-1].split()[:4] == ["v", "then", "r", "real"]
        assert text_of(app).splitlines()[-1].endswith("Esc cancel")
        await press(pilot, "escape")
        assert "open" in text_of(app).splitlines()[-1]


async def test_an_unbound_key_is_reported_once(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "X")
        assert "X is not bound · ? all keys" in text_of(app)
        await press(pilot, "j", "X")
        assert "is not bound" not in text_of(app)


async def test_help_starts_with_five_keys(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "?")
        lines = [line.strip() for line in text_of(app).splitlines()]
        first = next(i for i, line in enumerate(lines) if "Start here" in line)
        assert "keys in Runs" in lines[first - 1]
        assert "Open and go" in "".join(lines[first + 6 : first + 9])
        await press(pilot, "escape")
        assert "Start here" not in text_of(app)

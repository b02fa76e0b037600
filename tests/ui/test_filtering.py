"""The filter by keys, on the built-in samples: typed, completed, picked; of the list and of the steps."""

from __future__ import annotations

import json
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from tests.ui.conftest import Opener, line, press, settle, text_of, until
from tracetui.analysis.triage import groups
from tracetui.model import Status
from tracetui.redact import MASK
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import RUNS, STEPS
from tracetui.ui.screens.help import HelpScreen
from tracetui.ui.screens.lists import FacetsScreen
from tracetui.ui.widgets.prompt import Prompt

RESEARCHER = "paprika/0690e0f0*.json"


def keys(text: str) -> list[str]:
    """A text as keys to be pressed."""
    return ["space" if character == " " else character for character in text]


def agents(app: TraceApp) -> set[str]:
    """Agents of the runs that are shown."""
    runs = [app.store.runs[ref] for ref in app.main.runs.refs()]
    return {run.agent or run.name for run in runs}


def spans(app: TraceApp) -> list[str]:
    """Names of the spans that have a row."""
    steps = app.main.steps
    ids = [steps.rows.key(i) for i in range(len(steps.rows))]
    assert steps.run is not None
    return [span.name for key in ids if isinstance(key, str) and (span := steps.run.span(key)) is not None]


async def pick(screen: FacetsScreen, pilot: Pilot[int], term: str) -> None:
    """Put the cursor on a value, and pick it."""
    assert screen.list.move_to_key(term)
    await press(pilot, "space")


async def test_the_runs_are_filtered_and_counted_while_the_query_is_typed(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        whole = len(app.store.runs)
        await press(pilot, "f")
        assert f"{whole} of {whole} runs" in line(app, 2)
        await press(pilot, *keys("agent:planner"))
        assert agents(app) == {"planner"}
        assert f"{len(app.main.runs.refs())} of {whole} runs" in line(app, 2)
        await press(pilot, "backspace")  # now it is a name that nobody has
        assert f"0 of {whole} runs" in line(app, 2)
        await press(pilot, "r", "enter")
        assert app.main.pane == RUNS
        assert "planner" in agents(app)
        assert "agent:planner" in text_of(app)
        assert not app.main.hint.display


async def test_escape_gives_the_filter_up_and_a_filter_that_was_taken_is_cleared_by_it(
    opened: Opener, samples: Path
) -> None:
    async with opened(samples) as (app, pilot):
        whole = len(app.store.runs)
        await press(pilot, "f", *keys("status:error"), "escape")
        assert app.main.runs.arrangement.query == ""
        assert len(app.main.runs.refs()) == whole
        await press(pilot, "f", *keys("status:error"), "enter")
        assert {app.store.runs[ref].status for ref in app.main.runs.refs()} == {Status.ERROR}
        await press(pilot, "escape")
        assert len(app.main.runs.refs()) == whole
        assert app.screen is app.main


async def test_a_query_error_is_shown_below_its_column(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        for query, column, suggestion in (
            ("modle:x", 0, "did you mean `model`"),
            ("status:eror", 7, "did you mean `error`"),
            ("Zürich dur>soon", 7, "dur"),
        ):
            await press(pilot, "f", *keys(query))
            typed, hint = line(app, 1), line(app, 2)
            begin = typed.index(query[:3])
            assert hint[begin:].index("^") >= column
            assert suggestion in hint
            before = app.main.runs.refs()
            await press(pilot, "enter")
            assert app.screen.query_one(Prompt).display
            assert suggestion in line(app, 2)
            assert app.main.runs.refs() == before
            await press(pilot, "escape")
            assert not app.main.hint.display


async def test_an_unfinished_query_is_no_error_before_it_is_entered(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        for query in ("format:otl", "ok (a or"):
            await press(pilot, "f", *keys(query))
            assert "^" not in line(app, 2)
            assert " of " in line(app, 2)
            await press(pilot, "enter")
            assert app.screen.query_one(Prompt).display
            assert "^" in line(app, 2)
            await press(pilot, "escape")


async def test_tab_goes_through_what_may_follow_and_shift_tab_goes_back(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "f", *keys("statu"), "tab")
        prompt = app.screen.query_one(Prompt)
        assert prompt.value == "status:"
        offered = []
        for _ in range(3):
            await press(pilot, "tab")
            offered.append(prompt.value)
        assert offered[0] == "status:ok"
        assert len(set(offered)) == 3
        assert prompt.cursor_position == len(prompt.value)
        await press(pilot, "shift+tab")
        assert prompt.value == offered[1]
        await press(pilot, "shift+tab", "shift+tab")
        assert prompt.value not in offered  # from the first one it goes to the last
        await press(pilot, "tab")
        assert prompt.value == offered[0]
        await press(pilot, *keys(" a"), "tab")
        assert prompt.value == "status:ok agent:"


async def test_a_completion_filters_at_once_and_holds_while_a_run_is_read(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "f", *keys("agent:deploy"), "tab")
        assert app.screen.query_one(Prompt).value == "agent:deployer"
        assert agents(app) == {"deployer"}
        await press(pilot, "enter")
        assert app.main.runs.arrangement.query == "agent:deployer"
        await press(pilot, "enter")
        assert app.main.state.level == 1
        await settle(pilot)
        await press(pilot, "escape")
        assert agents(app) == {"deployer"}


async def test_completed_and_picked_values_keep_secrets_masked(opened: Opener, tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "Ab3dE6gH1jK4mN7pQ0sT" * 3
    record = {"run_id": "a", "agent_name": f"bot {secret}", "started_at": "2026-11-20T12:00:00Z", "events": []}
    (tmp_path / "a.json").write_text(json.dumps(record), "utf-8")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "f", *keys("agent:"))
        assert f'"bot {MASK}"' in line(app, 2)
        await press(pilot, "tab")
        assert app.screen.query_one(Prompt).value == f'agent:"bot {MASK}"'
        assert len(app.main.runs.refs()) == 1
        await press(pilot, "escape", "P")
        screen = app.screen
        assert isinstance(screen, FacetsScreen)
        await pick(screen, pilot, f'agent:"bot {MASK}"')
        await press(pilot, "enter", "f")
        assert len(app.main.runs.refs()) == 1
        assert secret[:20] not in text_of(app)


async def test_the_causes_of_the_triage_are_completed_by_id_and_text(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        cause = groups(app.store.runs.values())[0]
        for typed in (f"cause:{cause.id[:4]}", f'cause:"{cause.title.exact[:12]}'):
            await press(pilot, "f", *keys(typed), "tab", "enter")
            assert set(app.main.runs.refs()) == set(cause.runs)
            await press(pilot, "escape")


async def test_an_invalid_query_keeps_the_last_valid_one(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await settle(pilot)
        await pilot.press("f", *"status:error")
        await until(pilot, lambda: app.main.runs.arrangement.query == "status:error")
        refs = app.main.runs.refs()
        await pilot.press(*" dur>x")
        await until(
            pilot, lambda: app.focused is not None and getattr(app.focused, "value", "") == "status:error dur>x"
        )
        assert app.main.runs.refs() == refs
        assert "x" not in app.main.runs.arrangement.query.partition("dur")[2]


async def test_numbers_of_the_header_are_of_the_shown_runs(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await settle(pilot)
        total = app.store.overview.runs
        await pilot.press("f", *"status:ok", "enter")
        await until(pilot, lambda: app.main.runs.arrangement.query == "status:ok")
        await settle(pilot)
        rows = app.main.runs.filtered
        assert rows is not None
        header = app.main._header.strip_at(0).text
        assert f"{rows.overview.runs} of {total} runs" in header
        assert "✗" not in header
        assert "failed" not in app.main._sentence.strip_at(0).text


async def test_the_steps_of_a_run_are_filtered(opened: Opener, samples: Path) -> None:
    async with opened(next(samples.glob(RESEARCHER))) as (app, pilot):
        await press(pilot, "enter")
        assert app.main.pane == STEPS
        before = spans(app)
        await press(pilot, "f", *keys("tool:search"))
        assert set(spans(app)) == {"search"}
        assert "spans" in line(app, 2)
        await press(pilot, "enter")
        assert app.main.pane == STEPS
        assert set(spans(app)) == {"search"}
        await press(pilot, "f", "escape")
        assert spans(app) == before


async def test_a_step_filter_without_matches_has_a_message(opened: Opener, samples: Path) -> None:
    async with opened(next(samples.glob(RESEARCHER))) as (app, pilot):
        await press(pilot, "enter", "f", *keys("tool:nothing"))
        assert line(app, 2).strip().startswith("0 of")
        await press(pilot, "enter")
        assert "tool:nothing" in text_of(app)


async def test_the_timeline_is_sorted_by_duration_and_restored(opened: Opener, samples: Path) -> None:
    async with opened(next(samples.glob(RESEARCHER))) as (app, pilot):
        await press(pilot, "enter")
        steps = app.main.steps
        in_order = [steps.rows.key(i) for i in range(len(steps.rows))]
        await press(pilot, "comma")
        assert steps.run is not None
        spans = [steps.run.span(key) for i in range(len(steps.rows)) if isinstance(key := steps.rows.key(i), str)]
        times = [span.duration_ms or 0.0 for span in spans if span is not None]
        assert times == sorted(times, reverse=True)
        assert len(times) > 3
        assert "sorted by duration" in text_of(app)
        await press(pilot, "comma")
        assert [steps.rows.key(i) for i in range(len(steps.rows))] == in_order
        assert "in order" in text_of(app)


async def test_sorting_leaves_the_tree(opened: Opener, samples: Path) -> None:
    async with opened(next(samples.glob(RESEARCHER))) as (app, pilot):
        await press(pilot, "enter", "t")
        assert app.main.steps.as_tree
        await press(pilot, "comma")
        assert not app.main.steps.as_tree


async def test_picked_values_of_one_key_are_alternatives_and_escape_drops_them(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "P", "space", "escape")
        assert app.screen is app.main
        assert app.main.runs.arrangement.query == ""
        await press(pilot, "P", "q")
        assert app.screen is app.main

        await press(pilot, "P")
        screen = app.screen
        assert isinstance(screen, FacetsScreen)
        for term in ("agent:researcher", "agent:planner", "status:error", "agent:deployer"):
            await pick(screen, pilot, term)
        await pick(screen, pilot, "agent:deployer")  # not any more
        asked = "(agent:researcher or agent:planner) status:error"
        assert asked in line(app, 1)
        await press(pilot, "enter")
        assert app.main.runs.arrangement.query == asked
        runs = [app.store.runs[ref] for ref in app.main.runs.refs()]
        assert {run.agent for run in runs} == {"researcher", "planner"}
        assert {run.status for run in runs} == {Status.ERROR}
        assert len(runs) > len({run.agent for run in runs})


async def test_facets_count_the_runs_and_enter_filters_by_the_value_at_the_cursor(
    opened: Opener, samples: Path
) -> None:
    async with opened(samples) as (app, pilot):
        failed = sum(run.status is Status.ERROR for run in app.store.runs.values())
        await press(pilot, "P")
        assert f"error{'':>8}".strip() in text_of(app)
        row = next(text for text in text_of(app).splitlines() if " error " in text)
        assert f" {failed} " in row
        await press(pilot, "slash", *keys("deployer"), "enter")
        screen = app.screen
        assert isinstance(screen, FacetsScreen)
        assert screen.list.cursor == "agent:deployer"
        await press(pilot, "n", "N", "escape", "escape")
        assert app.screen is app.main

        await press(pilot, "P")
        reopened = app.screen
        assert isinstance(reopened, FacetsScreen)
        assert reopened.list.move_to_key("agent:deployer")
        await press(pilot, "enter")
        assert app.screen is app.main
        assert agents(app) == {"deployer"}
        assert app.main.runs.arrangement.query == "agent:deployer"


async def test_unreadable_files_are_not_counted_as_shown_runs(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "f", *keys("a or b or -a"), "enter")
        whole = len(app.store.runs)
        assert len(app.main.runs.rows) > whole  # headings, and a file that can't be read
        assert f"{whole}/{whole} shown" in text_of(app)


async def test_keys_that_come_faster_than_the_screen_are_typed_where_they_belong(opened: Opener, samples: Path) -> None:
    """As a slow line delivers them: in one piece, the prompt not there yet, and gone again before the last one."""
    async with opened(samples, size=(120, 40)) as (app, pilot):
        for key, character in (*(("f", "f"), ("x", "x"), ("ctrl+u", None)), *((letter, letter) for letter in "zebra")):
            app.post_message(events.Key(key, character))
        await until(pilot, lambda: line(app, 1).split()[-1] == "zebra", what="the words")
        for key, character in (("backspace", None), ("backspace", None), ("enter", "\r"), ("question_mark", "?")):
            app.post_message(events.Key(key, character))
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), what="the help")
        assert app.main.runs.arrangement.query == "zeb"

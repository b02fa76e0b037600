"""The story of a session in the app: it opens first, unfolds, and shows prompt, answer and edits beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.shared import ROOT
from tests.ui.conftest import Opener, line, press, text_of, until
from tracetui.ui.app import TraceApp

SESSION = ROOT / "tests" / "formats" / "claude_code" / "session" / "input"
CODEX = ROOT / "tests" / "formats" / "codex" / "turns" / "input"


@pytest.fixture
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    shutil.copytree(request.param, tmp_path / "in")
    return tmp_path / "in"


def keys(app: TraceApp) -> list[object]:
    return [app.main.steps.rows.key(i) for i in range(len(app.main.steps.rows))]


@pytest.mark.parametrize("home", [CODEX], indirect=True)
async def test_a_session_opens_as_a_story_and_t_switches_the_view(opened: Opener, home: Path) -> None:
    async with opened(home) as (app, pilot):
        await press(pilot, "enter")
        steps = app.main.steps
        assert (steps.shown_as, steps.pane_name) == ("story", "Story")
        assert "Now the pears" in text_of(app)
        cursor = steps.cursor
        for view, name, following in (
            ("timeline", "Steps", "tree"),
            ("tree", "Spans", "next view"),
            ("story", "Story", "timeline"),
        ):
            await press(pilot, "t")
            assert (steps.shown_as, steps.pane_name, steps.cursor) == (view, name, cursor)
            assert f"t {following}" in line(app, 39)
        await press(pilot, "comma")
        assert steps.shown_as == "timeline"


@pytest.mark.parametrize("home", [CODEX], indirect=True)
async def test_turns_fold_and_the_prompt_keys_work_in_every_view(opened: Opener, home: Path) -> None:
    async with opened(home) as (app, pilot):
        await press(pilot, "enter", "z", "M", "g")
        steps = app.main.steps
        turns = keys(app)[:3]
        await press(pilot, "l")
        assert len(keys(app)) > 4
        await press(pilot, "j", "h")
        assert steps.cursor == turns[0]
        await press(pilot, "h")
        assert keys(app)[:3] == turns
        for _ in range(3):
            steps.move_to_key(turns[0])
            await press(pilot, "right_square_bracket", "u", "right_square_bracket", "u")
            assert steps.cursor == turns[2]
            await press(pilot, "left_square_bracket", "u")
            assert steps.cursor == turns[1]
            await press(pilot, "t")


@pytest.mark.parametrize("home", [CODEX], indirect=True)
async def test_the_detail_of_a_turn_is_prompt_and_answer_and_an_edit_is_a_diff(opened: Opener, home: Path) -> None:
    async with opened(home) as (app, pilot):
        await press(pilot, "enter", "g")
        detail = app.main.detail
        await until(pilot, lambda: "Seven are ripe" in text_of(app) and detail.body is not None, what="the answer")
        patch = next(span for span in app.main.steps.run.spans if span.name == "apply_patch")  # type: ignore[union-attr]
        app.main.steps.move_to_key(patch.id)
        await until(pilot, lambda: detail.tab == "edit", what="the edit")
        lines = [detail.rows.plain(i) for i in range(len(detail.rows))]
        assert lines[0].startswith("ripe.py  +")
        assert any(line.startswith("+ ") for line in lines)
        await press(pilot, "r")
        assert detail.tab == "raw"


@pytest.mark.parametrize("home", [SESSION], indirect=True)
async def test_the_error_walk_and_the_search_unfold_what_they_find(opened: Opener, home: Path) -> None:
    async with opened(home) as (app, pilot):
        await press(pilot, "enter", "z", "M", "g", "e")
        steps = app.main.steps
        assert steps.shown_as == "story"
        assert steps.span is not None
        assert steps.span.status == "error"
        await press(pilot, "z", "M", "g", "slash", *"saw.log", "enter")
        assert steps.span.preview == "cat saw.log"


async def test_a_run_without_prompts_has_no_story(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter")
        views: list[str] = []
        for _ in range(3):
            views.append(app.main.steps.shown_as)
            await press(pilot, "t")
        assert views == ["timeline", "tree", "timeline"]

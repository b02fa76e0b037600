"""A branch that somebody went back from: one row in the timeline, its steps a key away."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.shared import ROOT
from tests.ui.conftest import Opener, press, text_of, until
from tracetui.analysis import navigation
from tracetui.ui.app import TraceApp

REWIND = ROOT / "tests" / "formats" / "claude_code" / "rewind" / "input"


def rows(app: TraceApp) -> list[object]:
    return [app.main.steps.rows.key(i) for i in range(len(app.main.steps.rows))]


async def test_a_branch_folds_in_the_timeline_and_unfolds_for_a_jump(opened: Opener, tmp_path: Path) -> None:
    shutil.copytree(REWIND, tmp_path / "in")
    async with opened(tmp_path / "in") as (app, pilot):
        await press(pilot, "enter", "t")  # from the story to the timeline
        steps = app.main.steps
        run = steps.run
        assert run is not None
        branch, *_ = sorted(navigation.initial_folds(run), key=run.index.__getitem__)
        position = run.index[branch]
        inside = run.spans[position + 1].id
        assert not steps.as_tree
        assert branch in rows(app)
        assert inside not in rows(app)
        assert f"{run.sizes[position] - 1} below" in text_of(app)

        steps.move_to_key(branch)
        await press(pilot, "l")
        assert inside in rows(app)
        steps.move_to_key(inside)
        await press(pilot, "h")
        assert steps.cursor == branch
        await press(pilot, "h")
        assert inside not in rows(app)

        steps.move_to_key(inside)
        await until(pilot, lambda: inside in rows(app), what="the row")
        await press(pilot, "t", "t", "t")
        assert inside in rows(app)

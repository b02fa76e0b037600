"""Real pairs, of every format that has some: ``D`` opens on the first divergence, what comes before it is folded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared import needs_shared, sample, settled
from tests.ui.conftest import Opener, press, settle, text_of
from tests.ui.test_diff import run_like, type_keys, wait_for_screen
from tracetui.ui.screens.diff import DiffScreen
from tracetui.views.diff.steps import PREFIX, PairRows

pytestmark = needs_shared
PAIRS = {
    "claude-code/generated-2.1.197": ("723b78ff", "1b25fa54", "fork", "compaction"),
    "codex/generated-0.169.0": ("01a1f8db-d1d4", "01a1f8dd-45dc", "fork", "turn"),
    "pi": ("01a1f8df", "01a1f8e0", "fork", "user"),
    "opencode": ("ses_e0723a", "ses_e0720a", "fork", "user"),
    "inspect-ai/generated-0.3.285": ("ZtgK4onp", "3P4v9cvsFh7HtyEfYEbj3a/good_epoch_2", "repeat", "mockllm/model"),
    "otel-otlp-json": ("cd9df532", "dd8f55db", "repeat", None),
}
"""By folder: the ids of original and replay, what that is, and the step at which it diverged (None: nowhere)."""
AFTER = 6
"""Steps that no differences, from which they are folded."""
BY_HAND = {"atif": ("t-1", "t-2", "bash")}


@pytest.mark.parametrize("folder", PAIRS)
async def test_d_opens_the_comparison_at_the_first_difference(opened: Opener, tmp_path: Path, folder: str) -> None:
    original, replay, relation, step = PAIRS[folder]
    async with opened(settled(sample(folder), tmp_path / "traces")) as (app, pilot):
        app.main.runs.move_to_key(run_like(app, replay).ref)
        await settle(pilot)
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        diff, pairs = screen.diff, screen.pairs
        assert diff is not None
        assert app.store.runs[screen.request.a].id.startswith(original)
        assert screen.request.relation == relation
        if step is None:
            assert "No differences" in text_of(app)
            return
        assert diff.first is not None
        assert pairs.row == diff.rows[diff.first.row]
        span = diff.span_b(pairs.row) or diff.span_a(pairs.row)
        assert span is not None
        assert span.name == step
        assert isinstance(pairs.rows, PairRows)
        assert (pairs.rows.index(PREFIX) == 0) == (diff.first.row >= AFTER)
        if diff.first.row < AFTER:
            return
        assert pairs.position <= 3
        assert "equal steps" in text_of(app)
        await type_keys(pilot, screen, "g", "g", "enter")
        assert len(pairs.rows) == len(diff.rows) + 1


@pytest.mark.parametrize("folder", BY_HAND)
async def test_two_runs_are_paired_by_hand(opened: Opener, tmp_path: Path, folder: str) -> None:
    first, second, step = BY_HAND[folder]
    async with opened(settled(sample(folder), tmp_path / "traces")) as (app, pilot):
        for ident in (first, second):
            app.main.runs.move_to_key(run_like(app, ident).ref)
            await press(pilot, "space")
        await pilot.press("d")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        diff, row = screen.diff, screen.pairs.row
        assert diff is not None
        assert diff.first is not None
        assert row == diff.rows[diff.first.row]
        assert row.b is not None
        assert diff.b.spans[row.b].name == step


async def test_runs_of_two_formats_are_paired_by_hand(opened: Opener, tmp_path: Path) -> None:
    traces = settled(sample("codex/generated-0.169.0"), tmp_path / "codex")
    others = settled(sample("claude-code/generated-2.1.197"), tmp_path / "claude")
    async with opened(traces, others) as (app, pilot):
        for ident in ("723b78ff", "01a1f8db-d1d4"):
            app.main.runs.move_to_key(run_like(app, ident).ref)
            await press(pilot, "space")
        await pilot.press("d")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        assert screen.diff is not None
        assert screen.diff.first is not None
        assert "claude-code and codex: fields of both formats" in text_of(app)

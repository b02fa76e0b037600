"""The app with the library of prices: estimates come when a run was assessed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.shared import ROOT
from tests.ui.conftest import Opener, press, settle, text_of
from tracetui.analysis import prices


async def test_the_open_run_is_estimated(opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(prices.SWITCH)
    shutil.copytree(ROOT / "tests" / "formats" / "codex" / "old" / "input", tmp_path / "traces")
    async with opened(tmp_path / "traces", size=(120, 40)) as (app, pilot):
        await press(pilot, "enter")
        assert "~$0.004" in text_of(app)
        assert app.main.detail.choose("run")
        await settle(pilot)
        assert f"estimated by {prices.origin()}, model gpt-5-codex" in text_of(app)

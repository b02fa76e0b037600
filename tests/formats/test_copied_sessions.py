"""A session whose file was copied just now is as old as its records say."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tracetui.analysis.liveness import GOING, summary_state
from tracetui.cli.reading import listing_of
from tracetui.model import Status
from tracetui.sources.local import LocalSource

HERE = Path(__file__).parent
CASES = [
    case
    for name in ("claude_code", "codex", "copilot", "gemini", "opencode", "pi", "qwen")
    for case in sorted((HERE / name).iterdir())
    if (case / "input").is_dir()
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
@pytest.mark.parametrize("deep", [False, True])
def test_copied_sessions_are_not_running(case: Path, tmp_path: Path, *, deep: bool) -> None:
    shutil.copytree(case / "input", tmp_path / "input", copy_function=shutil.copyfile)
    runs = listing_of(LocalSource(), [str(tmp_path / "input")], None, deep=deep).runs
    sessions = [run for run in runs if run.is_session and run.started_at is not None]

    assert [run.id for run in sessions if run.status is Status.RUNNING] == []
    now = time.time()
    states = {run.id: summary_state(run, now=now, changed_at=run.modified_at)[0] for run in sessions}
    assert {run: state for run, state in states.items() if state in GOING} == {}

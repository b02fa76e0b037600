"""Spans without an end are `unknown` once their run is not running any more, and `running` while it is."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tracetui.live.load import Reader, read_run
from tracetui.live.scan import scan
from tracetui.model import Run, Status, StatusSource
from tracetui.sources.local import LocalSource

CASES = Path(__file__).parent
NAMES = [
    *(
        "ccpa",
        "claude_code",
        "codex",
        "copilot",
        "gemini",
        "hypergraph",
        "inspect",
        "latticeflow",
        "opencode",
        "otlp",
        "pi",
        "qwen",
    )
]
OPEN = {"ccpa", "claude_code", "codex", "copilot", "hypergraph", "opencode", "pi"}
"""Formats with a case in which something has no end."""
SOURCE = LocalSource()


def touch(folder: Path, ago: float) -> None:
    at = time.time() - ago
    for path in (path for path in folder.rglob("*") if path.is_file()):
        os.utime(path, (at, at))


def runs_of(folder: Path) -> list[Run]:
    refs = [run.ref for file in scan(SOURCE, [str(folder)], deep=True) for run in file.runs]
    return [read_run(SOURCE, ref) for ref in refs]


def unfinished_spans(run: Run) -> set[str]:
    return {span.id for span in run.spans if span.status is Status.RUNNING}


@pytest.mark.parametrize("name", NAMES)
def test_spans_stand_as_their_run_does(tmp_path: Path, name: str) -> None:
    for case in (case for case in (CASES / name).iterdir() if (case / "input").is_dir()):
        shutil.copytree(case / "input", tmp_path / case.name)
    touch(tmp_path, 86_400)
    dead = runs_of(tmp_path)
    touch(tmp_path, 1)
    live = {run.summary.ref: run for run in runs_of(tmp_path)}

    assert any(run.unended for run in dead) is (name in OPEN)
    for run in dead:
        assert run.summary.status is not Status.RUNNING
        assert not unfinished_spans(run)
        for position in run.unended:
            assert run.spans[position].status is Status.UNKNOWN
            assert run.spans[position].status_source is StatusSource.DERIVED
        later = live[run.summary.ref]
        if later.summary.status is Status.RUNNING:
            assert unfinished_spans(later) == {later.spans[i].id for i in later.unended}
        else:
            assert not unfinished_spans(later)
        if run.summary.status is Status.UNKNOWN and name != "opencode":
            assert {run.spans[i].id for i in run.unended} <= {later.spans[i].id for i in later.unended}


def test_the_state_comes_back_when_the_run_goes_on(tmp_path: Path) -> None:
    shutil.copytree(CASES / "ccpa/live/input", tmp_path / "live")
    (path,) = (path for path in (tmp_path / "live").rglob("*.jsonl"))
    touch(tmp_path, 86_400)
    (summary,) = (run for file in scan(SOURCE, [str(path)], deep=True) for run in file.runs)
    reader = Reader(SOURCE, summary.ref)
    reader.catch_up()
    dead = reader.build()
    assert dead.unended
    assert (dead.summary.status, unfinished_spans(dead)) == (Status.UNKNOWN, set())

    touch(tmp_path, 0)
    assert reader.read()
    assert (reader.build().summary.status, unfinished_spans(reader.build())) == (
        Status.RUNNING,
        {dead.spans[i].id for i in dead.unended},
    )
    touch(tmp_path, 86_400)
    assert reader.read()
    assert [span.status for span in reader.build().spans] == [span.status for span in dead.spans]


def test_standing_depends_on_whether_a_run_goes_on(tmp_path: Path) -> None:
    shutil.copytree(CASES / "ccpa/live/input", tmp_path / "live")
    touch(tmp_path, 86_400)
    (run,) = runs_of(tmp_path)

    assert run.standing(going=False) is run
    at_work = run.standing(going=True)
    assert unfinished_spans(at_work) == {run.spans[i].id for i in run.unended}
    assert at_work.standing(going=False).spans == run.spans

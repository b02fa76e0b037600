"""The shell steps of action.yml, as a runner executes them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.conftest import ROOT
from tracetui import demo


def act(folder: Path, **variables: str) -> tuple[int, str]:
    """Run scripts/action.sh in `folder`; the exit status and the job summary."""
    defaults = {"TRACES": "trials/oak-3", "BASE": "", "VERDICTS": "", "OUTPUT": "report", "HOME": str(folder)}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = os.environ | defaults | variables | {"PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "action.sh")], cwd=folder, env=environment, check=False, capture_output=True
    )
    summary = folder / "summary.md"
    return done.returncode, summary.read_text("utf-8") if summary.exists() else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    demo.SETS["trials"](tmp_path / "trials", datetime(2026, 3, 4, 12, tzinfo=UTC))
    return tmp_path


def test_new_causes_fail_the_job_and_are_in_its_summary(folder: Path) -> None:
    status, summary = act(folder)

    assert status == 3
    assert summary.startswith("#")
    assert not (folder / "report" / "gate.xml").exists()


def test_gate_writes_markdown_and_junit(folder: Path) -> None:
    status, summary = act(folder, BASE="trials/oak-2")

    assert status == 3
    assert (folder / "report" / "gate.md").read_text("utf-8") in summary
    assert ElementTree.parse(folder / "report" / "gate.xml").getroot().tag in ("testsuite", "testsuites")


def test_missing_traces_are_an_error(folder: Path) -> None:
    assert act(folder, TRACES="missing")[0] in (1, 2)

"""The shell steps of action.yml, as a runner executes them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.claude_sessions import bash, write_session
from tests.docs.conftest import ROOT
from tracetui import demo


def act(folder: Path, **variables: str) -> tuple[int, str]:
    """Run scripts/action.sh in `folder`; the exit status and the job summary."""
    defaults = {
        "TRACES": "trials/oak-3",
        "BASE": "",
        "VERDICTS": "",
        "AUDIT": "",
        "OUTPUT": "report",
        "HOME": str(folder),
    }
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


def test_audit_writes_sarif_and_fails_the_job(folder: Path) -> None:
    write_session(folder / "runs" / "one.jsonl", [bash("git push --force origin main")])
    status, summary = act(folder, TRACES="runs", AUDIT="error")

    assert status == 3
    assert (folder / "report" / "audit.md").read_text("utf-8") in summary
    assert json.loads((folder / "report" / "audit.sarif").read_bytes())["version"] == "2.1.0"
    assert ElementTree.parse(folder / "report" / "audit.xml").getroot().tag in ("testsuite", "testsuites")
    assert act(folder, TRACES="runs", AUDIT="secret-read")[0] == 0


def test_pages_name_every_input_of_the_action() -> None:
    inputs = re.findall(r"^  (\w+):\n    description", (ROOT / "action.yml").read_text("utf-8"), re.MULTILINE)
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    assert inputs == re.findall(r"^`(\w+)` \|", page, re.MULTILINE)
    script = (ROOT / "scripts" / "action.sh").read_text("utf-8")
    assert {*re.findall(r"\$\{?([A-Z]+)\b", script)} == {name.upper() for name in inputs}


def test_the_example_workflow_uses_inputs_of_the_action() -> None:
    text = (ROOT / "docs" / "examples" / "ci" / "agents.yml").read_text("utf-8")
    step = text.partition("uses: OWNER/tracetui@")[2].partition("      - ")[0]
    inputs = re.findall(r"^  (\w+):\n    description", (ROOT / "action.yml").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"^          (\w+): ", step, re.MULTILINE)) == {*inputs} - {"output"}


def test_missing_traces_are_an_error(folder: Path) -> None:
    assert act(folder, TRACES="missing")[0] in (1, 2)

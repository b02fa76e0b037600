"""docs/writing-a-format.md: its example is a package that installs, is found, and conforms."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_tail import tailing
from tests.docs.conftest import ROOT, STEPLOG
from tests.terminal import TRACETUI, Terminal
from tracetui.formats.base import Format
from tracetui.testing import check_format

HELLO = STEPLOG / "cases" / "hello" / "input" / "hello.steplog.jsonl"


@pytest.fixture
def steplog(monkeypatch: pytest.MonkeyPatch) -> Format:
    monkeypatch.syspath_prepend(str(STEPLOG))
    from tracetui_steplog import Steplog

    return Steplog()


def python(site: Path, code: str) -> str:
    """What `code` prints where the example is installed."""
    paths = os.pathsep.join((str(site), str(ROOT / "src")))
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, env={**os.environ, "PYTHONPATH": paths}, check=True, capture_output=True, text=True
    ).stdout


def test_the_example_conforms(steplog: Format) -> None:
    check_format(steplog, STEPLOG / "cases")


def test_an_installed_format_is_found(site: Path) -> None:
    names = python(site, "from tracetui.formats import registry; print(*registry.names())")
    assert names.split()[-1] == "steplog"


def test_an_installed_format_is_used(site: Path) -> None:
    case = STEPLOG / "cases" / "hello" / "input" / "hello.steplog.jsonl"
    code = f"import tracetui; run = tracetui.load({str(case)!r}).summary; print(run.ref.format, run.status, run.errors)"
    assert python(site, code).split() == ["steplog", "ok", "1"]


def test_without_it_the_file_is_nobodys() -> None:
    names = python(ROOT, "from tracetui.formats import registry; print(*registry.names())")
    assert "steplog" not in names


# ---- in use, as a user has it


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with two runs: the example's, and one that went differently at its second step."""
    folder = tmp_path / "logs"
    folder.mkdir()
    data = HELLO.read_text("utf-8")
    (folder / "one.jsonl").write_text(data)
    (folder / "two.jsonl").write_text(data.replace('"error": "no such language"', '"output": "17 °C, in words"'))
    return folder


def environment(site: Path) -> dict[str, str]:
    """Variables of a process in which the example is installed."""
    return {"PYTHONPATH": os.pathsep.join((str(site), str(ROOT / "src")))}


def tracetui(site: Path, *arguments: str | Path) -> str:
    """What a command prints."""
    words = [sys.executable, "-m", "tracetui", *map(str, arguments)]
    done = subprocess.run(words, env=os.environ | environment(site), check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


def test_the_commands_know_it(site: Path, logs: Path) -> None:
    listed = tracetui(site, "formats").splitlines()
    assert any(line.startswith("steplog") and "tracetui-steplog 0.1.0" in line for line in listed)
    runs = json.loads(tracetui(site, "ls", logs, "--json"))["runs"]
    assert {(run["id"], run["format"], run["steps"], run["errors"]) for run in runs} == {
        ("one", "steplog", 3, 1),
        ("two", "steplog", 3, 0),
    }
    assert "translate" in tracetui(site, "show", logs / "one.jsonl")
    assert json.loads(tracetui(site, "show", logs / "one.jsonl/2", "--json"))["error"]["message"] == "no such language"
    assert "First difference: step 2 translate" in tracetui(site, "diff", logs / "one.jsonl", logs / "two.jsonl")
    assert str(logs / "two.jsonl") in tracetui(site, "grep", "in words", logs)
    assert all(one["scores"]["steplog"] == 100 for one in json.loads(tracetui(site, "doctor", logs, "--json"))["files"])


def test_its_files_are_tailed(site: Path, logs: Path) -> None:
    first, second, *_ = HELLO.read_bytes().splitlines(keepends=True)
    path = logs / "three.jsonl"
    with tailing(str(logs), "--json", **environment(site)) as tail:
        path.write_bytes(first)
        assert [tail.event()["event"] for _ in range(2)] == ["run", "span"]
        append(path, second[:20])
        append(path, second[20:])
        event = tail.event()
        while event["event"] != "span":
            event = tail.event()
        assert (event["run"], event["span"]["error"]["message"]) == (str(path), "no such language")
        append(path, b'{"end": "ok"}\n')
        while event["event"] != "end":
            event = tail.event()
        assert event["status"] == "ok"


@pytest.mark.e2e
def test_the_app_opens_follows_and_compares_them(site: Path, logs: Path) -> None:
    with Terminal(*TRACETUI, str(logs), env=environment(site), answers=True) as terminal:
        terminal.wait_for(r"live \d+ folder|polling")
        terminal.wait_for("2 runs")
        append(logs / "two.jsonl", b'{"step": 4, "tool": "whistle", "output": "a tune"}\n')
        terminal.wait_for("whistle")
        terminal.send("space", "j", "space", "d")
        terminal.wait_for("First difference: step 2 translate")


def append(path: Path, data: bytes) -> None:
    """Add bytes to a file."""
    with path.open("ab") as file:
        file.write(data)

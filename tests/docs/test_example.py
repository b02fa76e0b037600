"""docs/writing-a-format.md: its examples conform and run; the first is a package that installs and is found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_tail import tailing
from tests.docs.conftest import EXAMPLES, ROOT, STEPLOG
from tests.terminal import TRACETUI, Terminal
from tracetui import demo
from tracetui.plugin import Format, RunRef
from tracetui.testing import check_format, read_run

HELLO = STEPLOG / "cases" / "hello" / "input" / "hello.steplog.jsonl"


@pytest.fixture
def steplog(monkeypatch: pytest.MonkeyPatch) -> Format:
    monkeypatch.syspath_prepend(str(STEPLOG))
    from tracetui_steplog import Steplog

    return Steplog()


@pytest.fixture
def worklog(monkeypatch: pytest.MonkeyPatch) -> Format:
    monkeypatch.syspath_prepend(str(EXAMPLES / "worklog"))
    from tracetui_worklog import Worklog

    return Worklog()


def python(site: Path, code: str) -> str:
    """What `code` prints where the example is installed."""
    paths = os.pathsep.join((str(site), str(ROOT / "src")))
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, check=True, capture_output=True, text=True
    ).stdout


def test_the_example_conforms(steplog: Format) -> None:
    check_format(steplog, STEPLOG / "cases")


def test_the_example_of_an_agent_conforms(worklog: Format) -> None:
    check_format(worklog, EXAMPLES / "worklog" / "cases")


def test_code_of_the_page_runs(steplog: Format, worklog: Format, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "writing-a-format.md").read_text("utf-8")
    written = re.sub(r"<!-- generated.*?<!-- end -->", "", page, flags=re.DOTALL)
    blocks = re.findall(r"^```python\n(.*?)^```", written, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        names: dict[str, Any] = {"__file__": str(STEPLOG / "test_steplog.py"), "__name__": "page"}
        exec(block, names)
        for name, value in names.items():
            if name.startswith("test_"):
                value()
    for name in ("steplog", "worklog"):
        parts = re.findall(rf"<!-- generated: {name}\S* -->\n\n```python\n(.*?)```", page, re.DOTALL)
        imports = (EXAMPLES / name / f"tracetui_{name}.py").read_text("utf-8").partition("\n\n\n")[0]
        exec("\n".join(parts if "import" in parts[0] else [imports, *parts]), {"__name__": "page"})


def test_code_of_the_index_runs(steplog: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo.write(tmp_path / "samples", datetime(2026, 3, 4, 12, tzinfo=UTC))
    (sample,) = (tmp_path / "samples").rglob("0690e0f0*.json")
    (tmp_path / "traces").mkdir()
    sample.rename(tmp_path / "traces" / "0690e0f0.json")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["body"].attributes


def test_examples_import_the_facade_only(steplog: Format, worklog: Format) -> None:
    for path in EXAMPLES.glob("*/*.py"):
        assert {*re.findall(r"(?:from|import) (tracetui[\w.]*)", path.read_text("utf-8"))} == {"tracetui.plugin"}


def test_a_sub_agent_of_the_example_is_a_subtree(worklog: Format) -> None:
    (log,) = (EXAMPLES / "worklog" / "cases" / "review" / "input").iterdir()
    run = read_run(worklog, RunRef("worklog", str(log)))
    tree = [(depth, span.name, span.status.value) for span, depth in zip(run.spans, run.depths, strict=True)]
    assert tree[3:6] == [(1, "agent", "ok"), (2, "assistant", "ok"), (3, "search", "error")]
    assert run.load(run.spans[3]).output == "no callers found"
    assert (run.summary.steps, run.summary.repeats is not None) == (2, True)


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


def outputs(site: Path, *commands: tuple[str | Path, ...]) -> list[str]:
    """What each of these commands prints, all of one process."""
    code = "import json, sys\nfrom tracetui.cli import main\n"
    code += "for arguments in json.load(sys.stdin): main(arguments) and sys.exit(1); print(end='\\0', flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(commands, default=str),
        env=os.environ | environment(site),
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.split("\0")[:-1]


def test_the_commands_know_it(site: Path, logs: Path) -> None:
    formats, listing, story, step, difference, hits, report = outputs(
        site,
        ("formats",),
        ("ls", logs, "--json"),
        ("show", logs / "one.jsonl"),
        ("show", logs / "one.jsonl/2", "--json"),
        ("diff", logs / "one.jsonl", logs / "two.jsonl"),
        ("grep", "in words", logs),
        ("doctor", logs, "--json"),
    )
    assert any(line.startswith("steplog") and "tracetui-steplog 0.1.0" in line for line in formats.splitlines())
    runs = json.loads(listing)["runs"]
    assert {(run["id"], run["format"], run["steps"], run["errors"]) for run in runs} == {
        ("one", "steplog", 3, 1),
        ("two", "steplog", 3, 0),
    }
    assert "translate" in story
    assert json.loads(step)["error"]["message"] == "no such language"
    assert "First difference: step 2 translate" in difference
    assert str(logs / "two.jsonl") in hits
    assert all(file["scores"]["steplog"] == 100 for file in json.loads(report)["files"])


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

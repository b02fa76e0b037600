"""Agents write while the program looks: at the end its screen shows what ``tracetui show`` reads from scratch."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e import growing
from tests.shared import SEARCHES, SHARED, needs_shared
from tests.terminal import TRACETUI, Terminal
from tracetui.cli import main
from tracetui.views.labels import short_model

pytestmark = pytest.mark.e2e
_NOTE: Final = re.compile(r"^.\s*[╰…]")


@pytest.mark.parametrize(
    ("writer", "options"),
    [
        (growing.ccpa, ()),
        (growing.paprika_record, ()),
        (growing.penelope, ()),
        (growing.hypergraph, ()),
        (growing.latticeflow, ()),
        (growing.hypergraph, ("--polling",)),
        *([(growing.ccpa, ("--polling",))] if SEARCHES else []),
    ],
)
@pytest.mark.search
def test_a_run_that_is_followed(
    tmp_path: Path, writer: Callable[[Path], growing.Growing], options: tuple[str, ...]
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    agent = writer(folder)
    first = next(agent)
    with opened(folder, *options) as terminal:
        follow(terminal)
        terminal.expect(first)
        for name in agent:
            if name:
                terminal.expect(name)
            else:
                terminal.read(0.02)
        expect_all(terminal, listed(folder)[0]["address"])


def test_rows_that_are_appended(tmp_path: Path) -> None:
    """The list shows each row's run; one that is open stays as it is."""
    agent = growing.latticeflow_rows(tmp_path)
    next(agent)
    next(agent)
    with opened(tmp_path) as terminal:
        for parts in agent:
            if parts:
                terminal.wait_for(parts)
            else:
                terminal.read(0.02)
        terminal.wait_for(f"{growing.STEPS} runs")
        terminal.send("g")
        follow(terminal)
        question = re.search(r"Question \d+", terminal.text())
        assert question
        run = next(run for run in listed(tmp_path) if detail(run["address"])["run"]["last_user"] == question[0])
        expect_all(terminal, run["address"])


WAYS_OF_WRITING: Final = (("ccpa", ("--torn",)), ("hypergraph", ("--keep-wal",)))
AS_OUR_OWN: Final = (("ccpa", ("--buffered",)), ("paprika", ()), ("penelope", ()), ("latticeflow", ("--lf", "json")))


@needs_shared
@pytest.mark.search
@pytest.mark.shared
@pytest.mark.parametrize(("name", "options"), WAYS_OF_WRITING + (AS_OUR_OWN if SEARCHES else ()))
def test_beside_the_shared_generator(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    assert SHARED is not None
    tool = [sys.executable, str(SHARED / "tools" / "gen_traces.py"), name, str(tmp_path)]
    flags = ["--live", "--rate", "100", "--runs", "1", "--steps", "14", "--payload", "200", *options]
    with opened(tmp_path) as terminal, subprocess.Popen([*tool, *flags, "--replay", "0", "--nest", "0"]) as generator:
        try:
            terminal.wait_for(r"^.[◐✓✗?] ")
            terminal.send("g")
            follow(terminal)
            while generator.poll() is None:
                terminal.read(0.05)
        finally:
            generator.kill()
        runs = listed(tmp_path)
        terminal.wait_until(lambda text: any(run["id"][:8] in text for run in runs), what="the id of a run")
        visible_run = next(run for run in runs if run["id"][:8] in terminal.text())
        expect_all(terminal, visible_run["address"])


def opened(folder: Path, *options: str) -> Terminal:
    """The program, when it watches; its screen is high enough for every step of a run."""
    terminal = Terminal(*TRACETUI, *options, str(folder), size=(120, 70), answers=True)
    terminal.wait_for(r"● live|polling")
    return terminal


def follow(terminal: Terminal) -> None:
    """Follow the run under the cursor, as a tree that fills the screen."""
    terminal.send("F")
    terminal.wait_for("━ 2 .* FOLLOW ")  # and the pane has the focus: view() knows it by that
    terminal.send("z")
    while not re.search(r"2 Spans.* tree ", terminal.text()):
        others = {"Story", "Steps", "Spans"} - {view(terminal.text())}
        terminal.send("t")
        terminal.wait_for(f"━ 2 (?:{'|'.join(sorted(others))})\\b")


def view(text: str) -> str:
    """The view of the steps, by the title of their pane: a session starts as its story, another run as its timeline."""
    match = re.search(r"━ 2 (Story|Steps|Spans)\b", text)
    return match[1] if match else ""


def expect_all(terminal: Terminal, address: str) -> None:
    """Wait until the tree on the screen is that of the run, row by row, as it is read from scratch now."""
    run = detail(address)
    spans, status = run["spans"], run["run"]["status"]
    assert len(spans) >= 2
    numbers = {step["number"] for step in run["steps"]}
    expected = [row_of(spans, place, numbers) for place in range(len(spans))]

    def equal(text: str) -> bool:
        rows = tree_rows(text)
        same = len(rows) == len(expected) and all(
            pattern.match(row) for pattern, row in zip(expected, rows, strict=True)
        )
        return same and f" {status} " in text.split("\n")[0].replace("(", " ")

    wanted = "\n".join(pattern.pattern for pattern in expected)
    terminal.wait_until(equal, what=f"{status}, and all of\n{wanted}")


def tree_rows(text: str) -> list[str]:
    """The rows of the spans, without what is noted below them."""
    lines = text.split("\n")
    top = next((number for number, line in enumerate(lines) if re.match(r"\s+#\s+span\b", line)), len(lines))
    rows = []
    for line in lines[top + 1 :]:
        if not line.strip() or line.lstrip().startswith(("─", "↵", "◐ running")):
            break
        if not _NOTE.match(line):
            rows.append(line)
    return rows


def row_of(spans: list[dict[str, Any]], place: int, numbers: set[int]) -> re.Pattern[str]:
    """What the row of a span begins with: the number of a step of the run at its first span, a sign, the name."""
    span = spans[place]
    before = spans[place - 1]["step"] if place else None
    number = "" if span["step"] not in numbers or span["step"] == before else str(span["step"])
    sign = {"error": "✗", "running": "◐"}.get(span["status"], r"[^\s\w✗◐]")
    name = short_model(span["name"]) if span["operation"] == "chat" else span["name"]
    return re.compile(rf"^[▌ ]\s*{number}[ │▾▸]+{sign} {re.escape(name)}(?!\w)")


def listed(folder: Path) -> list[dict[str, Any]]:
    """The runs, as ``tracetui ls`` reads them."""
    runs: list[dict[str, Any]] = json.loads(_run("ls", "--json", str(folder)))["runs"]
    return runs


def detail(address: str) -> dict[str, Any]:
    """A run, as ``tracetui show`` reads it."""
    run: dict[str, Any] = json.loads(_run("show", "--json", address))
    return run


def _run(*arguments: str) -> bytes:
    """What a command prints, in this process: only the terminal needs the program in one of its own."""
    data = io.BytesIO()
    with io.TextIOWrapper(data) as out, redirect_stdout(out):
        assert main(arguments) == 0
        out.flush()
        return data.getvalue()

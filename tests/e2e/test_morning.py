"""The morning: somebody opens the runs of the night, judges every failure by keys, takes the triage along and quits."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.judge import leftovers
from tests.terminal import TRACETUI, Terminal

pytestmark = pytest.mark.e2e
DECIDED = re.compile(r"(\d+) of (\d+) causes? reviewed")
VERDICTS = {"r": "real", "f": "flaky", "k": "known", "i": "ignore"}


def opened(folder: Path, state: Path) -> Terminal:
    """The program, when everything is counted."""
    terminal = Terminal(*TRACETUI, str(folder), env={"XDG_STATE_HOME": str(state), "TZ": "UTC"})
    terminal.expect("triage")
    terminal.wait_quiet()
    return terminal


def verdict_lines(state: Path) -> list[dict[str, Any]]:
    """What the file of verdicts says, line by line."""
    return [json.loads(line) for line in (state / "tracetui" / "verdicts.jsonl").read_text().splitlines()]


def decided(terminal: Terminal) -> tuple[int, int]:
    """How many causes are decided, of how many."""
    terminal.expect(" reviewed")
    match = DECIDED.search(terminal.text())
    assert match is not None
    return int(match[1]), int(match[2])


def judge_all(terminal: Terminal) -> int:
    """Judge every cause by keys, with all four verdicts, the last one again, an undo and a note; how many."""
    terminal.type("T")
    terminal.expect("of 61 runs failed")  # all are counted: from now on nothing moves but by keys
    terminal.wait_quiet()
    done, count = decided(terminal)
    assert (done, count) == (0, 15)
    for letter, verdict in VERDICTS.items():
        terminal.type("v", letter)
        terminal.expect(f"marked {verdict}")
    terminal.type(".")
    terminal.expect("marked ignore")
    terminal.type("u")
    terminal.expect("Undone")
    terminal.type("1")
    terminal.expect(f"{len(VERDICTS)} of {count} causes reviewed")
    terminal.type("a")
    terminal.wait_quiet()
    terminal.type(*"ask Ana", "enter")
    terminal.expect("ask Ana")
    terminal.type("v", "r", "1")
    for number in range(len(VERDICTS) + 1, count):
        terminal.expect(f"{number} of {count} causes reviewed")
        terminal.type(".", "1")
    terminal.expect(f"{count} of {count} causes reviewed")
    terminal.expect("all reviewed")
    return count


def test_verdicts_given_by_keys_last_until_the_next_day(samples: Path, tmp_path: Path) -> None:
    state, exports = tmp_path / "state", {"triage.md", "triage.html", "triage.json"}
    before = {path: path.stat().st_mtime_ns for path in samples.rglob("*")}
    with opened(samples, state) as terminal:
        count = judge_all(terminal)
        for name in exports:
            target = tmp_path / name
            terminal.type("x", "\x15", str(target), "enter")
            terminal.wait_until(lambda text, target=target: "wrote " in text and target.exists(), what=name)  # type: ignore[misc]
        terminal.type("q", "q")
        assert terminal.wait_exit() == 0
        assert leftovers(terminal) == []

    verdicts = [line for line in verdict_lines(state) if line["do"] == "verdict"]
    undone = {line["undoes"] for line in verdict_lines(state) if line["do"] == "undo"}
    held = {line["signature"]: line["verdict"] for line in verdicts if line["event"] not in undone}
    assert len(held) == count
    assert set(held.values()) == set(VERDICTS.values())
    assert len(undone) == 1
    assert [line["note"] for line in verdict_lines(state) if line["do"] == "note"] == ["ask Ana"]
    assert stat.S_IMODE(os.stat(state / "tracetui" / "verdicts.jsonl").st_mode) == 0o600
    assert {path: path.stat().st_mtime_ns for path in samples.rglob("*")} == before

    with opened(samples, state) as terminal:
        terminal.type("T")
        terminal.expect(f"{count} of {count} causes reviewed")
        terminal.type("escape", "f", *"verdict:flaky", "enter")
        terminal.expect("/70 shown")
        terminal.type("escape", "q")
        assert terminal.wait_exit() == 0

    done = subprocess.run(
        [*TRACETUI, "triage", "--json", str(samples)],
        capture_output=True,
        check=True,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )
    signatures = json.loads(done.stdout)["causes"]
    assert len(signatures) == count
    assert {cause["verdict"] for cause in signatures} == set(VERDICTS.values())
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == exports  # nothing half written beside them
    for name in exports:
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        page = (tmp_path / name).read_text()
        assert "ask Ana" in page
        assert all(cause["id"] in page for cause in signatures)

"""Everything that writers do to files, by a driver that knows the truth: the output of ``tail`` is right after it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live.replay import Replay
from tests.shared import PATIENCE, SHARED, needs_shared

MARK = re.compile(r"m:\w+:\d+")


def report(replay: Replay) -> dict[str, Any]:
    """Input of the judge: the markers of every run in order, once a span, and the problems."""
    runs: dict[str, list[str]] = {}
    for address, run in replay.runs.items():
        marks_by_span = (MARK.findall(json.dumps(span)) for span in replay.spans[address].values())
        runs.setdefault(run["id"], []).extend(mark for marks in marks_by_span for mark in dict.fromkeys(marks))
    problems = [{"path": path, "reason": reason} for path, reasons in replay.problems.items() for reason in reasons]
    return {"runs": runs, "problems": problems}


@needs_shared
@pytest.mark.parametrize("mode", ["events", "polling"])
def test_every_fault_is_survived(tmp_path: Path, mode: str) -> None:
    assert SHARED is not None
    driver = [sys.executable, str(SHARED / "tools" / "tailfaults.py")]
    folder, truth, events = tmp_path / "traces", tmp_path / "truth.json", tmp_path / "events.jsonl"
    folder.mkdir()
    command = [sys.executable, "-m", "tracetui", "tail", str(folder), "--json", "--from-start"]
    with events.open("wb") as out:
        tail = subprocess.Popen([*command, *(["--polling"] if mode == "polling" else [])], stdout=out)
        try:
            write = [*driver, str(folder), "--truth", str(truth), "--lines", "40", "--hold", "0"]
            subprocess.run(write, check=True, timeout=PATIENCE, capture_output=True)
            verdict = _verdict(driver, truth, events, tmp_path / "report.json")
        finally:
            tail.send_signal(signal.SIGINT)
            try:
                status = tail.wait(timeout=PATIENCE)
            finally:
                tail.kill()

    assert verdict.startswith("19 of 19"), verdict
    assert status == 130


def _verdict(driver: list[str], truth: Path, events: Path, reported: Path) -> str:
    """The judge's verdict, once it is content or time is up."""
    deadline = time.monotonic() + PATIENCE
    verdict = ""
    while not verdict.startswith("19 of 19") and time.monotonic() < deadline:
        replay = Replay()
        for line in events.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                replay.line(line)
        reported.write_text(json.dumps(report(replay)))
        judge = [*driver, "--judge", str(truth), str(reported)]
        verdict = subprocess.run(judge, check=False, timeout=PATIENCE, capture_output=True, text=True).stdout
    return verdict

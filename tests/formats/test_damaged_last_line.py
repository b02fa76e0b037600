"""The last line of a file of JSON lines, where it is cut off: a problem, unless the file is being written."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.shared import ROOT
from tracetui.live.load import read_run
from tracetui.live.scan import ScannedFile, scan
from tracetui.sources.local import LocalSource

_FORMATS = ROOT / "tests" / "formats"
FILES = {
    "ccpa/students": "*.jsonl",
    "claude_code/session": "*.jsonl",
    "claude_code/agents": "agent-owl01.jsonl",
    "codex/turns": "rollout-*.jsonl",
    "codex/threads": "*000003.jsonl",
    "copilot/agents": "*.jsonl",
    "gemini/changes": "*.jsonl",
    "latticeflow/rows": "*.jsonl",
    "pi/session": "*.jsonl",
    "qwen/branches": "*.jsonl",
}
"""A case of each format, and the file of it that is damaged: that of the run itself, or of a part of it."""
LONG_AGO = 1_700_000_000


def damaged(case: str, folder: Path) -> Path:
    """A copy of a case that nobody has written for long, one file of which ends in the middle of a line."""
    source = _FORMATS / case / "input"
    shutil.copytree(source, folder, dirs_exist_ok=True)
    path = sorted(folder.rglob(FILES[case]))[0]
    data = path.read_bytes().rstrip(b"\n")
    last = data.rfind(b"\n") + 1
    path.write_bytes(data[: last + (len(data) - last) // 2])
    for file in folder.rglob("*"):
        os.utime(file, (LONG_AGO, LONG_AGO))
    return path


def listed(folder: Path) -> list[ScannedFile]:
    return [file for file in scan(LocalSource(), [str(folder)], deep=True) if file.runs or file.problems]


def problems(folder: Path) -> Counter[str]:
    """Why something of the damaged files cannot be read, in the list and in the full read alike."""
    reasons = list[str]()
    for file in listed(folder):
        of_file = [f"{problem.where}: {problem.reason}" for problem in file.problems]
        for run in file.runs:
            full = read_run(LocalSource(), run.ref)
            assert full.summary.problems == run.problems == len(full.problems)
            assert full.summary.unread == run.unread
            reasons += [f"{problem.where}: {problem.reason}" for problem in full.problems]
        reasons += of_file
    return Counter(reasons)


@pytest.mark.parametrize("case", FILES)
def test_a_last_line_that_is_cut_off_is_a_problem_unless_the_file_is_being_written(tmp_path: Path, case: str) -> None:
    damaged(case, tmp_path)
    at_rest = problems(tmp_path)
    for path in tmp_path.rglob("*"):
        os.utime(path, (time.time(), time.time()))
    moving = problems(tmp_path)
    about_the_end = at_rest - moving
    assert about_the_end
    assert moving <= at_rest
    assert all("line" in where and ("cut off" in where or "end of" in where) for where in about_the_end), about_the_end


@pytest.mark.parametrize("end", [b"", b"\n", b"\n  \t", b"\n\0\0"])
def test_a_whole_last_line_is_no_problem_with_or_without_a_newline(tmp_path: Path, end: bytes) -> None:
    shutil.copytree(_FORMATS / "pi" / "session" / "input", tmp_path, dirs_exist_ok=True)
    (path,) = tmp_path.rglob("*.jsonl")
    before = problems(tmp_path)
    path.write_bytes(path.read_bytes().rstrip(b"\n") + end)
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert problems(tmp_path) == before

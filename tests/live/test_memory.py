"""Files too large for memory are problems, and the runs beside them stay listed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from zstandard import ZstdCompressor

from tests.formats.inspect_build import archive
from tests.shared import PATIENCE, ROOT
from tracetui import load_all

CASES = ROOT / "tests" / "formats"
LIMIT = 2 << 30
"""Address space of the process that lists: enough for documents of any permitted size but the costliest ones."""

LISTED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.sources.local import LocalSource
results = {}
for file in scan(LocalSource(), [sys.argv[2]], deep=True):
    problems = [problem.reason for problem in file.problems]
    for run in file.runs:
        problems += [problem.reason for problem in read_run(LocalSource(), run.ref).problems] if run.problems else []
    results[file.path] = len(file.runs), problems
status = open("/proc/self/status").read() if sys.platform == "linux" else "VmHWM: 0"
results["peak"] = int(status.partition("VmHWM:")[2].split()[0]) >> 10
print(json.dumps(results))
"""


def listed(folder: Path) -> dict[str, tuple[int, list[str]]]:
    """Runs and problems by file, as a process with little memory lists them, and its peak memory (MiB)."""
    command = [sys.executable, "-c", LISTED, str(LIMIT), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, tuple[int, list[str]]] = json.loads(done.stdout)
    return {os.path.relpath(path, folder) if path != "peak" else path: result for path, result in results.items()}


def sparse(path: Path, head: bytes) -> None:
    """A file of a gigabyte, most of it a hole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head)
    os.truncate(path, 1 << 30)
    os.utime(path, (1e9, 1e9))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Valid runs for other tests."""
    good = next((CASES / "paprika").glob("*/input"))
    shutil.copytree(good, tmp_path / "good")
    return tmp_path


def good_runs(results: dict[str, tuple[int, list[str]]]) -> int:
    return sum(result[0] for path, result in results.items() if path.startswith("good"))


def test_documents_of_a_gigabyte_are_problems(folder: Path) -> None:
    before = len(load_all(folder))
    sparse(folder / "a" / "paprika.json", b'{"schema_version": "1", "record_id": "a", "steps": [')
    sparse(folder / "a" / "atif.json", b'{"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {}, "steps": [')
    sparse(folder / "b" / "prt_1.json", b'{"id":"prt_1","messageID":"msg_1","sessionID":"ses_1","type":"text","text":"')
    sparse(folder / "b" / "otlp.json", b'{\n "resourceSpans": [')
    sparse(folder / "b" / "rows.jsonl", b'{"trace":{"FORMAT":"open_responses","items":[]}}\n{"trace":"')
    results = listed(folder)

    assert before == good_runs(results) > 0
    assert results["peak"] < 900  # type: ignore[operator]
    for path, (_, problems) in ((path, result) for path, result in results.items() if path[:2] in ("a/", "b/")):
        assert any(
            "not read: " in problem or "too large" in problem or "too long" in problem for problem in problems
        ), (path, problems)


def test_bombs_are_problems(folder: Path) -> None:
    before = len(load_all(folder))
    head = {"version": 2, "status": "success", "eval": {"task": "t", "created": "2026-03-01T09:00:00Z"}}
    bomb = b'{"id":"' + b"a" * (300 << 20) + b'"}'
    data = archive({"header.json": head, "samples/1_epoch_1.json": bomb})
    for number in range(2):
        (folder / f"{number}.eval").write_bytes(data)
    line = b'{"timestamp":"2026-03-01T09:00:00Z","type":"session_meta","payload":{"id":"s"}}\n'
    (folder / "rollout-x.jsonl.zst").write_bytes(ZstdCompressor().compress(line + bomb))
    results = listed(folder)

    assert before == good_runs(results) > 0
    assert results["peak"] < 600  # type: ignore[operator]
    for name in ("0.eval", "1.eval", "rollout-x.jsonl.zst"):
        assert any("not read: " in problem for problem in results[name][1]), (name, results[name])


def test_a_file_larger_than_memory_is_a_problem(folder: Path) -> None:
    before = len(load_all(folder))
    case = next(path for path in sorted((CASES / "hypergraph").glob("*/input/*.json")) if "steps" in path.read_text())
    empty = b"{}," * (100 << 20 >> 2)  # decoded, it takes 27 times as much
    (folder / "a.json").write_bytes(case.read_bytes().replace(b"{", b'{"more": [' + empty + b"{}],", 1))
    results = listed(folder)

    assert before == good_runs(results) > 0
    assert len(results["a.json"][1]) == 1, results["a.json"]

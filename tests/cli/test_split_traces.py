"""A trace that rotation, or a file for each process, split over two files: both say so, and it counts once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.formats.test_otlp import request, span


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A failed trace whose top span is in another file than its first ones."""
    traces = tmp_path / "split"
    traces.mkdir()
    wilted = {"status": {"code": 2, "message": "wilted"}}
    files = {
        "traces-1.jsonl": [span(3, 2, 2, 3), span(2, 1, 1, 4)],
        "traces.jsonl": [span(4, 1, 5, 6, **wilted), span(1, None, 0, 9, **wilted)],
    }
    for name, spans in files.items():
        (traces / name).write_text("".join(json.dumps(request(span)) + "\n" for span in spans))
    return traces


def test_both_files_say_that_they_hold_a_part(cli: Cli, folder: Path) -> None:
    first, second = sorted(line for line in cli("ls", str(folder)).text.splitlines() if ".jsonl" in line)
    notes = {line[line.index("[part") :] for line in (first, second)}
    assert notes == {
        "[part 1 of 2 of its trace, also in traces-1.jsonl]",
        "[part 2 of 2 of its trace, also in traces.jsonl]",
    }


def test_it_counts_once(cli: Cli, folder: Path) -> None:
    assert "1 of 1 run failed" in cli("triage", str(folder)).err
    counts = cli("triage", str(folder), "--json").data["counts"]
    assert (counts["runs"], counts["failed"]) == (1, 1)


def test_a_part_whose_trace_has_no_other_counts(cli: Cli, folder: Path) -> None:
    (folder / "traces.jsonl").unlink()
    listed = cli("ls", str(folder)).text
    assert "[part" not in listed
    assert "0 of 1 run failed" in cli("triage", str(folder)).err

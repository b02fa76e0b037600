"""Formats grow: what this version does not know is shown, counted to the byte, and no problem."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.shared import settled
from tracetui.formats import registry
from tracetui.formats.schema import Fields, unknown_fields
from tracetui.live.scan import scan
from tracetui.model import Operation, RunRef, RunSummary, Unread
from tracetui.model.ledger import MORE_KINDS, MOST_KINDS
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing, read_run
from tracetui.testing.reading import MTIME

HERE = Path(__file__).parent
TORN = b'{"gale": "of the nor'


class Lines(NamedTuple):
    """A format of JSON lines: a case, and how a record of another kind looks."""

    name: str
    case: str
    make: Callable[[str], dict[str, Any]]


class Listed(NamedTuple):
    """A format of one document: a case, the list that holds the records, and how one of another kind looks."""

    name: str
    case: str
    field: str
    make: Callable[[str], dict[str, Any]]


LINES = [
    Lines("claude-code", "claude_code/plain", lambda kind: {"type": kind, "uuid": kind, "note": {"a": [1, "ü"]}}),
    Lines(
        "codex", "codex/turns", lambda kind: {"timestamp": "2026-08-01T07:00:00Z", "type": kind, "payload": {"n": 1}}
    ),
    Lines("codex", "codex/turns", lambda kind: {"type": "event_msg", "payload": {"type": kind, "ü": 1}}),
    Lines("pi", "pi/plain", lambda kind: {"type": kind, "strength": 9}),
    Lines(
        "copilot", "copilot/agents", lambda kind: {"type": kind, "data": {"ü": 1}, "timestamp": "2026-08-01T07:00:00Z"}
    ),
    Lines("ccpa", "ccpa/pair", lambda kind: {"v": 3, "kind": kind, "strength": 9}),
    Lines("pi", "pi/plain", lambda kind: {"type": kind, "id": kind, "parentId": "dd000025", "strength": [9, "ü"]}),
    Lines("gemini", "gemini/session", lambda kind: {"type": kind, "content": [9, "ü"]}),
    Lines("qwen", "qwen/session", lambda kind: {"type": kind, "strength": [9, "ü"]}),
]
LISTED = [
    Listed("atif", "atif/turns", "steps", lambda kind: {"step_id": 99, "source": kind, "message": "ü"}),
    Listed("latticeflow", "latticeflow/events", "events", lambda kind: {"type": kind, "id": kind, "strength": 9}),
    Listed("latticeflow", "latticeflow/items", "items", lambda kind: {"type": kind, "id": kind, "strength": 9}),
    Listed("paprika", "paprika/failed", "steps", lambda kind: {"step_type": kind, "step_index": 99, "strength": "ü"}),
]
of_lines = pytest.mark.parametrize("drift", LINES, ids=lambda drift: drift.name)
of_list = pytest.mark.parametrize("drift", LISTED, ids=lambda drift: f"{drift.name}-{drift.field}")


def encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def put(path: Path, data: bytes) -> None:
    """Write a file that nobody writes any more."""
    path.write_bytes(data)
    os.utime(path, (MTIME, MTIME))


def copied(tmp_path: Path, case: str) -> Path:
    return settled(HERE / case / "input", tmp_path / case)


def runs_in(folder: Path) -> list[RunSummary]:
    return [run for file in scan(LocalSource(), [str(folder)], deep=True) for run in file.runs]


def of_file(path: Path) -> RunSummary:
    """The run that is listed under a file; the full read and the summary count the same."""
    (summary,) = (run for run in runs_in(path.parent) if run.ref.path == str(path))
    run = read_run(registry.load(summary.ref.format), summary.ref)
    assert msgspec.structs.replace(run.summary, modified_at=summary.modified_at) == summary
    unknown = [span for span in run.spans if span.operation is Operation.UNKNOWN]
    assert all(run.load(span).raw for span in unknown)
    assert sum(count for _, count in (summary.unread.kinds if summary.unread else ())) == len(unknown)
    return summary


def largest(folder: Path) -> Path:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix in (".jsonl", ".json")]
    return max((path for path in paths if "subagents" not in path.parts), key=lambda path: path.stat().st_size)


def bytes_of(path: Path) -> int:
    """Bytes of a session and of the files of its sub-agents, which are in the folder of its name."""
    return path.stat().st_size + sum(part.stat().st_size for part in path.with_suffix("").rglob("*.jsonl"))


@of_lines
def test_lines_of_other_kinds_are_counted_and_no_problem(tmp_path: Path, drift: Lines) -> None:
    path = largest(copied(tmp_path, drift.case))
    before = of_file(path)
    assert before.unread is None
    lines = path.read_bytes().splitlines(keepends=True)
    strange = [encoded(drift.make(kind)) for kind in ("gale", "mist", "gale")]
    put(path, b"".join((*lines[:3], *(line + b"\n" for line in strange), *lines[3:])))
    summary = of_file(path)
    assert summary.problems == before.problems
    ledger = summary.ledger
    assert (ledger.kinds, ledger.torn) == ((("gale", 2), ("mist", 1)), 0)
    assert (ledger.size, ledger.lost) == (bytes_of(path), sum(map(len, strange)))
    assert ledger.share == pytest.approx(1 - sum(map(len, strange)) / bytes_of(path))
    assert (summary.steps, summary.llm_calls, summary.tool_calls) == (before.steps, before.llm_calls, before.tool_calls)


@of_lines
def test_torn_lines_are_counted_and_a_problem(tmp_path: Path, drift: Lines) -> None:
    path = largest(copied(tmp_path, drift.case))
    before = of_file(path)
    lines = path.read_bytes().splitlines(keepends=True)
    put(path, b"".join((*lines[:3], TORN + b"\n", *lines[3:-1], TORN + b"\n", lines[-1])))
    summary = of_file(path)
    assert summary.problems == before.problems + 2
    assert (summary.ledger.torn, summary.ledger.lost) == (2, 2 * len(TORN))
    assert summary.ledger.kinds == ()


@of_lines
def test_a_last_line_that_nobody_finishes_is_torn_once_the_file_is_still(tmp_path: Path, drift: Lines) -> None:
    path = largest(copied(tmp_path, drift.case))
    lines = path.read_bytes().splitlines(keepends=True)
    put(path, b"".join((*lines[:-1], TORN)))
    summary = of_file(path)
    assert (summary.ledger.torn, summary.ledger.lost) == (1, len(TORN))


@of_lines
def test_other_fields_lose_nothing(tmp_path: Path, drift: Lines) -> None:
    path = largest(copied(tmp_path, drift.case))
    lines = path.read_bytes().splitlines()
    records = [json.loads(line) for line in lines if line.strip()]
    put(path, b"".join(encoded({**record, "gale": "of the north"}) + b"\n" for record in records))
    ledger = of_file(path).ledger
    assert (ledger.lost, ledger.kinds, ledger.torn) == (0, (), 0)
    assert {name.rpartition(".")[2] for name, _ in ledger.fields} == {"gale"}
    counted = sum(count for _, count in ledger.fields)
    assert 0.8 * len(records) <= counted <= len(records)  # of some kinds too little is known


@of_lines
def test_other_fields_are_counted_while_a_file_grows(tmp_path: Path, drift: Lines) -> None:
    path = largest(copied(tmp_path, drift.case))
    records = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    lines = [encoded({**record, "gale": [1, {"mist": 2}]}) + b"\n" for record in records]
    put(path, b"")
    fmt, ref = registry.load(drift.name), RunRef(drift.name, str(path))
    growing = Growing(fmt, ref)
    for line in lines:
        with path.open("ab") as writer:
            writer.write(line)
        growing.read(whole=False)
    assert growing.run().summary.ledger == read_run(fmt, ref).summary.ledger


def test_fields_beyond_a_thousand_are_counted_together() -> None:
    known, strange = Fields({"storm": "name"}, "time"), dict[str, int]()
    for number in range(1_500):
        known.count(strange, "storm", ("name", "time", f"gust{number}"))
        known.count(strange, "calm", ("silence",))
    assert len(strange) == 1_001
    counted = unknown_fields(strange)
    assert (len(counted), sum(count for _, count in counted)) == (MOST_KINDS + 1, 1_500)
    assert counted[-1][0] == MORE_KINDS


@of_list
def test_records_of_other_kinds_in_a_document_are_counted(tmp_path: Path, drift: Listed) -> None:
    path = largest(copied(tmp_path, drift.case))
    before = of_file(path)
    old = before.unread.kinds if before.unread is not None else ()
    document = json.loads(path.read_bytes())
    holder = document["trace"] if drift.field not in document else document
    strange = [drift.make(kind) for kind in ("gale", "mist", "gale")]
    holder[drift.field][1:1] = strange
    put(path, encoded({**document, "gust": 1}))
    summary = of_file(path)
    ledger = summary.ledger
    assert summary.problems == before.problems
    assert ledger.kinds == tuple(sorted([*old, ("gale", 2), ("mist", 1)]))
    lost = sum(len(encoded(record)) for record in strange)
    there = (record for record in holder[drift.field] if record not in strange and record.get("source") in dict(old))
    lost += sum(len(encoded(record)) for record in there)
    assert (ledger.size, ledger.lost) == (path.stat().st_size, lost)


@pytest.mark.parametrize(
    ("case", "counted"),
    [
        ("penelope/failure", "result.gale"),
        ("atif/agents", "trajectory.gale"),
        ("paprika/violation", "executionrecord.gale"),
        ("latticeflow/failed", None),
    ],
)
def test_other_fields_of_a_document_lose_nothing(tmp_path: Path, case: str, counted: str | None) -> None:
    path = largest(copied(tmp_path, case))
    put(path, encoded({**json.loads(path.read_bytes()), "gale": {"strength": 9}}))
    summary = of_file(path)
    assert summary.unread == (None if counted is None else Unread(fields=((counted, 1),)))
    assert summary.size is not None
    assert summary.size >= path.stat().st_size


def test_a_table_and_a_column_more_lose_nothing(tmp_path: Path) -> None:
    folder = copied(tmp_path, "hypergraph/v6")
    path = next(path for path in folder.iterdir() if path.read_bytes()[:6] == b"SQLite")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE gale (strength)")
        database.execute("ALTER TABLE steps ADD COLUMN gale DEFAULT 'north'")
    database.close()
    runs = runs_in(folder)
    assert runs
    assert {run.unread for run in runs} == {None}
    assert {run.writer for run in runs} == {"schema 6"}


def test_torn_lines_of_otlp_are_counted_for_the_file(tmp_path: Path) -> None:
    folder = copied(tmp_path, "otlp/dialects")
    path = max(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    (before,) = (file for file in scan(LocalSource(), [str(folder)], deep=True) if file.path == str(path))
    put(path, TORN + b"\n" + path.read_bytes())
    (after,) = (file for file in scan(LocalSource(), [str(folder)], deep=True) if file.path == str(path))
    assert after.runs == tuple(
        msgspec.structs.replace(run, modified_at=old.modified_at)
        for run, old in zip(before.runs, after.runs, strict=True)
    )
    assert after.ledger.torn == before.ledger.torn + 1
    assert after.ledger.lost == before.ledger.lost + len(TORN)
    assert after.ledger.size == path.stat().st_size


def test_other_fields_in_a_session_of_opencode_are_counted(tmp_path: Path) -> None:
    path = largest(copied(tmp_path, "opencode/export"))
    document = json.loads(path.read_bytes())
    before = of_file(path).ledger
    for message in document["messages"]:
        message["info"]["gale"] = {"of": "the north"}
        for part in message["parts"]:
            part["gust"] = 1
    put(path, encoded(document))
    fields = dict(of_file(path).ledger.fields)
    assert before.fields == ()
    assert fields["user.gale"] == sum(message["info"]["role"] == "user" for message in document["messages"])
    assert fields["text.gust"] == sum(
        part["type"] == "text" for message in document["messages"] for part in message["parts"]
    )


def test_other_fields_in_events_of_inspect_are_counted(tmp_path: Path) -> None:
    path = largest(copied(tmp_path, "inspect/document"))
    document = json.loads(path.read_bytes())
    sample = document["samples"][0]
    for event in sample["events"]:
        event["gale"] = 1
        event["names"] = ["mist"]
    put(path, encoded(document))
    first, *others = runs_in(path.parent)
    kinds = Counter(event["event"] for event in sample["events"])
    counted = dict(first.ledger.fields)
    assert counted["model.gale"] == kinds["model"]
    assert all(name.partition(".")[2] in ("gale", "names") for name in counted)
    assert all(run.ledger.fields == () for run in others)
    assert read_run(registry.load("inspect"), first.ref).summary.ledger == first.ledger

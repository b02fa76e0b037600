"""A reader keeps reading: files that grow, are rewritten, half written, deleted and restored."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.live.load import Reader, read_run
from tracetui.model import RunRef
from tracetui.sources.local import LocalSource

SOURCE = LocalSource()
WHOLE = (Path(__file__).parents[1] / "cli" / "traces" / "paprika" / "plan-7.json").read_bytes()
START = {"v": 1, "kind": "session_start", "session_id": "s", "ts": "2026-03-01T09:00:00Z", "actor": "a"}


def record(turn: int, text: str = "hello") -> dict[str, Any]:
    block = {"type": "text", "text": text}
    return {"v": 1, "kind": "assistant_turn", "turn": turn, "blocks": [block], "stop_reason": "end_turn"}


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def why(reader: Reader) -> str:
    """Why the last read failed; empty if it did not."""
    return reader.failure.reason if reader.failure is not None else ""


def check_same(reader: Reader) -> None:
    """The reader's state equals that of a new one."""
    run, expected = reader.build(), read_run(SOURCE, reader.ref)
    assert repr(reader.summary()) == repr(run.summary)
    assert (repr(run.summary), run.body, run.problems) == (repr(expected.summary), expected.body, expected.problems)
    assert (run.spans, run.depths, run.sizes, run.steps) == (
        expected.spans,
        expected.depths,
        expected.sizes,
        expected.steps,
    )


def test_appended_spans_are_fresh(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(START) + line(record(0)))
    reader = Reader(SOURCE, RunRef("ccpa", str(path)))
    assert reader.read()
    known = {span.id for span in reader.build().spans}
    assert set(reader.fresh) == known
    assert not reader.read()
    assert reader.fresh == []

    append(path, line(record(1)))
    assert reader.read()
    assert (reader.reset, reader.more, reader.failure) == (False, False, None)
    now = {span.id for span in reader.build().spans}
    assert set(reader.fresh) >= now - known > set()
    assert len(reader) == len(now)
    check_same(reader)


def test_a_half_line_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(START) + line(record(0)) + line(record(1))[:40])
    reader = Reader(SOURCE, RunRef("ccpa", str(path)))
    reader.read()
    assert (reader.build().problems, reader.failure) == ((), None)
    append(path, line(record(1))[40:])
    assert reader.read()
    check_same(reader)


def test_a_half_written_file_heals(tmp_path: Path) -> None:
    path = tmp_path / "plan-7.json"
    path.write_bytes(WHOLE[: len(WHOLE) // 2])
    reader = Reader(SOURCE, RunRef("paprika", str(path)))
    assert reader.read()
    assert why(reader)
    assert (len(reader.build().problems), reader.summary().problems) == (1, 1)
    reader.read()
    assert len(reader.build().problems) == 1  # however often it fails

    path.write_bytes(WHOLE)
    assert reader.read()
    assert (why(reader), reader.build().problems) == ("", ())
    check_same(reader)


def test_a_file_that_cannot_be_read_is_still_seen_to_be_written_to(tmp_path: Path) -> None:
    path = tmp_path / "plan-7.json"
    path.write_bytes(WHOLE[:-100])
    reader = Reader(SOURCE, RunRef("paprika", str(path)))
    assert reader.read()
    assert not reader.read()
    path.write_bytes(WHOLE[:-50])
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))
    assert reader.read()
    assert reader.failure is not None
    assert not reader.read()


def test_a_broken_file_keeps_the_data_read_before(tmp_path: Path) -> None:
    path = tmp_path / "plan-7.json"
    path.write_bytes(WHOLE)
    reader = Reader(SOURCE, RunRef("paprika", str(path)))
    reader.read()
    spans = reader.build().spans
    path.write_bytes(WHOLE[:-20])
    assert reader.read()
    assert why(reader)
    assert (reader.build().spans, reader.fresh, reader.reset) == (spans, [], False)

    document = json.loads(WHOLE)
    document["steps"] = document["steps"][:1]
    path.write_bytes(json.dumps(document).encode())
    assert reader.read()
    assert (why(reader), reader.reset, len(reader)) == ("", True, len(reader.fresh))
    assert len(reader) < len(spans)
    check_same(reader)


@pytest.mark.parametrize("name", ["paprika", "ccpa"])
def test_a_file_that_is_gone_and_comes_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run"
    data = WHOLE if name == "paprika" else line(START) + line(record(0))
    path.write_bytes(data)
    reader = Reader(SOURCE, RunRef(name, str(path)))
    reader.read()
    path.unlink()
    assert reader.read()
    assert why(reader) == "No such file or directory"
    assert not reader.read()
    path.write_bytes(data)
    assert reader.read()
    check_same(reader)


def test_following_keeps_no_bodies(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(START))
    reader = Reader(SOURCE, RunRef("ccpa", str(path)))
    reader.read()
    reader.build()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for turn in range(100):
            append(path, line(record(turn, f"{turn} " * 10_000)))
            reader.read()
            reader.build()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 2_000_000
    assert after - before < 1_000_000


pieces = st.lists(st.sampled_from(["append", "torn", "rewrite", "cut", "remove", "read"]), min_size=1, max_size=12)


@given(pieces)
def test_after_any_change_the_reader_equals_a_full_read(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    path = tmp_path_factory.mktemp("live") / "s.jsonl"
    path.write_bytes(line(START))
    reader = Reader(SOURCE, RunRef("ccpa", str(path)))
    for turn, piece in enumerate(pieces):
        if not path.exists():
            path.write_bytes(line(START))
        if piece == "append":
            append(path, b"\n" * turn + line(record(turn)))
        elif piece == "torn":
            append(path, line(record(turn))[:30])
        elif piece == "rewrite":
            path.write_bytes(line(START) + line(record(100 + turn)))
        elif piece == "cut":
            path.write_bytes(path.read_bytes()[: -5 - turn])
        elif piece == "remove":
            path.unlink()
        else:
            reader.read()
    if not path.exists():
        path.write_bytes(line(START) + line(record(7)))
    while reader.read() or reader.more:
        pass
    check_same(reader)

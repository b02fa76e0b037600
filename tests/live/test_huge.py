"""Files of very many runs, and runs of very many spans: the first rows do not wait for the last byte."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.shared import PATIENCE
from tracetui.live.engine import Engine
from tracetui.live.scan import FIRST_RUNS, ScannedFile, Scanner, entries
from tracetui.model import Run, RunRef
from tracetui.sources.local import LocalSource
from tracetui.store.store import Store

SOURCE = LocalSource()


def rows(path: Path, count: int) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    line = json.dumps({"trace": {"FORMAT": "open_responses", "items": [item]}})
    path.write_text(f"{line}\n" * count)


def session(path: Path, turns: int) -> None:
    records = [{"v": 1, "kind": "session_start", "session_id": "s", "ts": "2026-03-01T09:00:00Z", "actor": "a"}]
    for turn in range(turns):
        text = {"type": "text", "text": f"turn {turn}"}
        records.append({"v": 1, "kind": "assistant_turn", "turn": turn, "blocks": [text], "stop_reason": "end_turn"})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_the_first_runs_of_a_file_are_reported_while_it_is_read(tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 60)
    partial: list[ScannedFile] = []
    (entry,) = entries(SOURCE, [str(tmp_path)])
    file = Scanner(SOURCE).look(entry, deep=False, on_partial=partial.append)
    assert [(len(file.runs), file.whole) for file in partial] == [(FIRST_RUNS, False)]
    assert (len(file.runs), file.whole) == (60, True)
    assert file.runs[:FIRST_RUNS] == partial[0].runs


def test_an_early_answer_replaces_nothing(tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 60)
    partial: list[ScannedFile] = []
    (entry,) = entries(SOURCE, [str(tmp_path)])
    whole = Scanner(SOURCE).look(entry, deep=False, on_partial=partial.append)
    store = Store()
    store.apply([whole], 0.0)
    store.apply(partial, 0.0)
    assert (len(store.runs), store.overview.runs) == (60, 60)
    store.apply([ScannedFile(path=entry.path, reason="no trace any more")], 0.0)
    assert (len(store.runs), store.overview.runs) == (0, 0)


def test_a_preview_reads_a_long_run_no_further_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.formats.jsonl.BUDGET", -1.0)
    monkeypatch.setattr("tracetui.formats.jsonl._CHECK", 0)  # one line a piece
    monkeypatch.setattr("tracetui.live.opener.PREVIEW_SPANS", 10)
    path = tmp_path / "s.jsonl"
    session(path, 50)
    ref = RunRef("ccpa", str(path))
    engine = Engine(SOURCE, [str(tmp_path)])
    engine.start()
    engine.open(ref)
    try:
        preview = run_of(engine, ref, at_least=10)
        assert not preview.complete
        assert len(preview.spans) < 50
        engine.enter(ref)
        assert len(run_of(engine, ref, at_least=50).spans) == 50
    finally:
        engine.stop()


def run_of(engine: Engine, ref: RunRef, *, at_least: int) -> Run:
    """The newest state of the run, as soon as it has so many spans."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if engine.wait(1):
            run = engine.collect().runs.get(ref)
            if run is not None and len(run.spans) >= at_least:
                return run
    raise AssertionError("the run was not read so far")

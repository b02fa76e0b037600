"""What was understood, in the app: of a directory, of a run, and the rows that were not."""

from __future__ import annotations

import json
from pathlib import Path

from tests.ui.conftest import Opener, line, press, text_of, until
from tests.ui.test_filtering import keys
from tracetui.ui.app import TraceApp

START = {"v": 1, "kind": "session_start", "session_id": "s", "actor": "apr-code", "model": "m"}
DRIFT = [START, {"kind": "gale", "strength": 9}, {"kind": "user_prompt", "text": "Hello"}, {"kind": "gale"}]


def written(folder: Path) -> int:
    """A directory with one session, of whose bytes so many are not understood."""
    lines = [json.dumps(record).encode() for record in DRIFT]
    torn = b'{"kind": "assis'
    (folder / "drift.jsonl").write_bytes(
        b"\n".join((*lines, torn, b'{"kind": "session_end", "reason": "end_turn"}', b""))
    )
    return len(lines[1]) + len(lines[3]) + len(torn)


def step_names(app: TraceApp) -> list[str]:
    """Names of the spans in the rows."""
    steps = app.main.steps
    rows = (steps.rows.key(i) for i in range(len(steps.rows)))
    spans = (steps.run.span(key) for key in rows if isinstance(key, str) and steps.run is not None)
    return [span.name for span in spans if span is not None]


async def test_a_key_shows_the_parse_coverage(opened: Opener, tmp_path: Path) -> None:
    lost = written(tmp_path)
    size = (tmp_path / "drift.jsonl").stat().st_size
    async with opened(tmp_path) as (app, pilot):
        await until(pilot, lambda: all(run.deep for run in app.store.runs.values()), what="counted runs")
        await press(pilot, "i")
        percent = int(1000 * (size - lost) / size) / 10
        assert f"parsed {percent} % of bytes · unknown kinds 1 (gale ×2) · torn lines 1" in line(app, 1)


async def test_unreadable_and_ignored_files_are_counted(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"no database" * 100)
    (tmp_path / "b.jsonl").write_text('{"neither": "trace"}\n')
    async with opened(tmp_path) as (app, pilot):
        await until(pilot, lambda: bool(app.store.problems), what="the unreadable file")
        await press(pilot, "i")
        assert "1 unreadable file · 1 file ignored" in line(app, 1)


async def test_rows_of_unknown_kinds_are_listed_and_can_be_filtered(opened: Opener, tmp_path: Path) -> None:
    written(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await until(pilot, lambda: "gale" in text_of(app), what="rows of unknown kinds")
        assert text_of(app).count("unknown kind of record: gale") == 2
        await press(pilot, "f", *keys("op:unknown"), "enter")
        await until(pilot, lambda: step_names(app) == ["gale", "gale"], what="only these")


async def test_ignored_files_are_counted_and_one_that_looks_like_a_trace_is_named(
    opened: Opener, tmp_path: Path
) -> None:
    written(tmp_path)
    (tmp_path / "chat.jsonl").write_text(
        '{"role": "user", "content": "Hello"}\n{"role": "assistant", "content": "Hi"}\n'
    )
    (tmp_path / "notes.txt").write_text("nothing")
    async with opened(tmp_path, size=(160, 40)) as (app, pilot):
        await until(pilot, lambda: "2 ignored · i" in text_of(app), what="the number of ignored files")
        await pilot.press("i")
        await until(pilot, lambda: "chat.jsonl (chat messages)" in text_of(app), what="the near miss")

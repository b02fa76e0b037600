"""Sessions let go of the rows that were collected, and make them again for late records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bench import data, formats
from tests.bench.data import TextGenerator
from tracetui.formats.agent_log import SpanRow
from tracetui.live.load import Reader, read_run
from tracetui.live.scan import scan
from tracetui.model import Operation, RunRef, Status
from tracetui.sources.local import LocalSource

CALLS = 100
SOURCE = LocalSource()


def codex() -> tuple[str, list[bytes]]:
    lines = list(formats.rollout(TextGenerator("late", 60), CALLS))
    late = [line for line in lines if b'"call_3"' in line or b'"id":"msg_3"' in line]
    return "rollout-2026-03-02T09-15-00-019cadd4-5620-7001-8000-000000000001.jsonl", [*lines[:-1], *late, lines[-1]]


def claude_code() -> tuple[str, list[bytes]]:
    lines = list(formats.session(TextGenerator("late", 60), CALLS))
    later = [b'"id":"msg_3"', b'"tool_use_id":"toolu_3"', b'"id":"toolu_4"', b'"tool_use_id":"toolu_5"']
    late = [orjson.loads(line) | {"uuid": f"late-{i}"} for i, line in enumerate(_with(lines, later))]
    late[0]["message"]["content"] = [{"type": "text", "text": "One more thing"}]
    asked = next(record for record in late if b"toolu_4" in orjson.dumps(record))  # by another response, and once more
    asked["message"]["id"] = "msg_late"
    prompt = {"type": "user", "uuid": "late-prompt", "message": {"role": "user", "content": "Again"}}
    prompt |= {"parentUuid": orjson.loads(lines[30])["uuid"], "timestamp": formats.stamp(9_000)}
    return "019cadd4-5620-7001-8000-000000000001.jsonl", [*lines, *map(_line, late), _line(prompt)]


def pi() -> tuple[str, list[bytes]]:
    lines = list(formats._entries(TextGenerator("late", 60), CALLS))
    late = _with(lines, [b'"toolCallId":"call_3"', b'"id":"call_4"', b'"toolCallId":"call_5"'])
    entries = [orjson.loads(line) | {"id": f"late-{i}"} for i, line in enumerate(late)]
    back = entries[0] | {"id": "late-back", "parentId": orjson.loads(lines[20])["id"]}
    return "2026-03-02T09-15-00-000Z_019cadd4.jsonl", [*lines, *map(_line, entries), _line(back)]


def copilot() -> tuple[str, list[bytes]]:
    lines = list(formats._events(TextGenerator("late", 60), CALLS))
    late = [line for line in lines if b'"call_3"' in line]
    return "events.jsonl", [*lines[:-1], *reversed(late), lines[-1]]


def ccpa() -> tuple[str, list[bytes]]:
    lines = list(data.session_lines(TextGenerator("late", 60), CALLS, 60))
    hook = {"v": 1, "kind": "hook_event", "turn": 7, "tool_use_id": "toolu_3", "decision": "block", "event": "Stop"}
    late = _with(lines, [b'"tool_use_id":"toolu_3"', b'"id":"toolu_4"', b'"tool_use_id":"toolu_4"'])
    return "s.ccpa-trace.jsonl", [*lines[:-1], _line(hook), *late, lines[-1]]


def _with(lines: list[bytes], parts: list[bytes]) -> list[bytes]:
    """The first line with each of these parts, followed by a newline or not."""
    return [next(line for line in lines if part in line) for part in parts]


def _line(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record) + b"\n"


MADE = [codex, claude_code, pi, copilot, ccpa]


@pytest.mark.parametrize("make", MADE, ids=lambda make: str(make.__name__))
def test_late_records_change_rows_that_were_collected(
    make: Callable[[], tuple[str, list[bytes]]], tmp_path: Path
) -> None:
    name, lines = make()
    path = tmp_path / name
    path.write_bytes(lines[0])
    reader = Reader(SOURCE, _ref(tmp_path))
    for line in lines[1:]:
        reader.catch_up()
        with path.open("ab") as file:
            file.write(line)
    reader.catch_up()
    run, whole = reader.build(), read_run(SOURCE, _ref(tmp_path))
    assert run.spans == whole.spans
    assert len(run.problems) == len(whole.problems)


@pytest.mark.parametrize("make", MADE, ids=lambda make: str(make.__name__))
def test_an_open_session_holds_no_rows_of_answered_calls(
    make: Callable[[], tuple[str, list[bytes]]], tmp_path: Path
) -> None:
    name, lines = make()
    (tmp_path / name).write_bytes(b"".join(lines))
    reader = Reader(SOURCE, _ref(tmp_path))
    reader.catch_up()
    run = reader.build()
    answered = [span for span in run.spans if span.operation is Operation.EXECUTE_TOOL]
    assert len(answered) >= CALLS
    assert all(span.status is not Status.RUNNING for span in answered)
    opened: Any = reader._reader
    session = getattr(opened, "_own", getattr(opened, "_main", opened)).session
    rows = [row for row in _rows(session.calls.values()) if row.operation is Operation.EXECUTE_TOOL]
    assert len(rows) < 70  # Codex: those whose output may turn out to be that of a failure


def _rows(calls: Any) -> Iterator[SpanRow]:
    for call in calls:
        row = getattr(call, "row", call)
        if isinstance(row, SpanRow):
            yield row


def _ref(folder: Path) -> RunRef:
    return next(file.runs[0].ref for file in scan(SOURCE, [str(folder)], deep=False) if file.runs)

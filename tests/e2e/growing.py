"""Writers of the five formats, as they really write: generators that write a little and yield what is then to be seen.

What is yielded is the name of a step that the screen must come to show before the writer goes on; empty where nothing
is sure yet: half a line, half a document.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.formats.hypergraph_build import TO_V3, TO_V4, TO_V6, V2, at, insert
from tests.live.sessions import Session, line_of, paprika

Json = dict[str, Any]
Growing = Iterator[str]
STEPS = 6
_BLOCK = 8 * 1024


def ccpa(folder: Path) -> Growing:
    """Through a buffer of 8 KiB, which cuts lines, and characters of several bytes."""
    path = folder / "teacher.ccpa-trace.jsonl"
    session = Session(path)
    first = session.call("Tool00")
    yield "Tool00"
    rest = b"".join(_call_and_result(number, first) for number in range(1, STEPS))
    for start in range(0, len(rest), _BLOCK):
        session.write_bytes(rest[start : start + _BLOCK])
        written = rest[: start + _BLOCK].rpartition(b"\n")[0].decode()
        yield f"Tool{written.count('assistant_turn'):02}"
    session.end()
    yield f"Tool{STEPS - 1:02}"


def _call_and_result(number: int, before: str) -> bytes:
    result = {"kind": "tool_result", "tool_use_id": f"toolu_{number}", "turn": 2 * number, "ok": number != 5}
    use = {"type": "tool_use", "id": f"toolu_{number + 1}", "name": f"Tool{number:02}", "input": {"path": "ä.py"}}
    call = {"kind": "assistant_turn", "turn": 2 * number + 1, "blocks": [use], "stop_reason": "tool_use"}
    return line_of(result | {"content": "世界 é " * 150}) + line_of(call)


def paprika_record(folder: Path) -> Growing:
    """The whole document anew for each step, in place, seen when half of it is there."""

    def state(steps: int) -> bytes:
        path = folder.with_name("aside.json")
        data = paprika(path, "rewritten", steps=steps, status="error" if steps == STEPS else "success")
        path.unlink()
        return data

    return _in_halves(folder / "record.json", state, lambda steps: f'search "q{steps}"')


def penelope(folder: Path) -> Growing:
    """The result of a test while it goes on, turn by turn, in place and in halves."""

    def state(turns: int) -> bytes:
        over = turns == STEPS
        head = {"status": "success" if over else "in_progress", "goal_achieved": over, "turns_used": turns}
        configuration = {"goal": "Get a refund", "instructions": "Insist.", "max_turns": 20, "min_turns": 2}
        result = {"findings": [], "history": [_turn(number) for number in range(1, turns + 1)], "metrics": {}}
        header = {
            "test_configuration": configuration,
            "model_info": {"model_name": "gemini-2.0-flash", "provider": "gemini"},
        }
        times = {"start_time": "2026-03-02T09:15:01.000000", "end_time": "2026-03-02T09:18:01.000000" if over else None}
        return json.dumps(head | result | header | times, indent=2).encode()

    (folder / "refund").mkdir()
    return _in_halves(folder / "refund" / "test_result.json", state, lambda turns: f"tool_{turns:02}")


def _turn(number: int) -> Json:
    name, moment = f"tool_{number:02}", f"2026-03-02T09:15:{number + 1:02}.120339"
    function = {"name": name, "arguments": json.dumps({"message": f"Where is it? {number}"})}
    called = [{"id": f"call_{number}", "type": "function", "function": function}]
    message = {"role": "assistant", "content": "Ask.", "tool_calls": called}
    answer = {"success": True, "output": {"response": "Soon."}, "error": None, "metadata": {}}
    tool_message = {"role": "tool", "tool_call_id": f"call_{number}", "name": name, "content": json.dumps(answer)}
    done = {"tool_name": name, "reasoning": "Ask.", "assistant_message": message, "tool_message": tool_message}
    execution = {**done, "timestamp": moment}
    return {"turn_number": number, "timestamp": moment, "executions": [execution], "target_interaction": execution,
            "evaluation": None}  # fmt: skip


def hypergraph(folder: Path) -> Growing:
    """A database in WAL mode: a node is pending while it runs, and a step once it is done."""
    writer = sqlite3.connect(folder / "workflows.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = OFF")
    writer.executescript(V2 + TO_V3 + TO_V4 + TO_V6)
    insert(writer, "_schema_version", version=6)
    insert(writer, "runs", id="run-1", graph_name="rag", status="active", created_at=at(0))
    for number in range(STEPS):
        node, key = f"node_{number:02}", {"run_id": "run-1", "superstep": number, "node_name": f"node_{number:02}"}
        insert(
            writer, "pending_nodes", **key, node_type="FunctionNode", created_at=at(number), dispatched_at=at(number)
        )
        yield node
        writer.execute("BEGIN")
        writer.execute("DELETE FROM pending_nodes WHERE superstep = ?", (number,))
        failed = {"status": "failed", "error": "it broke"} if number == STEPS - 1 else {"status": "completed"}
        insert(writer, "steps", **key, **failed, step_index=number, node_type="FunctionNode", duration_ms=120.5,
               values_data={"n": number}, created_at=at(number), completed_at=at(number + 1))  # fmt: skip
        writer.execute("COMMIT")
        yield node
    writer.execute("UPDATE runs SET status = 'failed', duration_ms = 900.0, completed_at = ?", (at(STEPS),))
    yield node
    writer.close()


def latticeflow(folder: Path) -> Growing:
    """A trace with one call more each time, by way of a name that is moved over the old one."""
    items: list[Json] = [_message("user", "input_text", "Plan a day.")]
    for number in range(STEPS):
        name = f"lookup_{number:02}"
        items.append({"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": name})
        items[-1]["arguments"] = "{}"
        _replace(folder / "trip.json", _trace("trip-1", items))
        yield name
        items.append({"type": "function_call_output", "call_id": f"c{number}", "output": "found", "id": f"o{number}"})
        _replace(folder / "trip.json", _trace("trip-1", items))
        yield ""
    items.append(_message("assistant", "output_text", "The Kunsthaus."))
    _replace(folder / "trip.json", _trace("trip-1", items))
    yield name


def latticeflow_rows(folder: Path) -> Growing:
    """Rows that are appended to one file, each a run of its own, in two pieces; yields the tags of the newest."""
    with (folder / "rows.jsonl").open("ab", buffering=0) as file:
        for number in range(STEPS):
            items = [
                _message("user", "input_text", f"Question {number}"),
                _message("assistant", "output_text", "Tokyo 東京"),
            ]
            row = json.dumps(
                {"task_id": f"geo/{number}", "trace": json.loads(_trace(f"qa-{number:02}", items))}
            ).encode()
            file.write(row[:-30])
            yield ""
            file.write(row[-30:] + b"\n")
            yield f"Question {number}"


def _message(role: str, kind: str, text: str) -> Json:
    return {"type": "message", "id": "", "role": role, "status": "completed", "content": [{"type": kind, "text": text}]}


def _trace(ident: str, items: list[Json]) -> bytes:
    metadata = {"trace_id": ident, "model": "gpt-4o", "agent": "planner"}
    return json.dumps({"FORMAT": "open_responses", "items": items, "metadata": metadata}).encode()


def _replace(path: Path, data: bytes) -> None:
    other = path.with_suffix(".part")
    other.write_bytes(data)
    other.replace(path)


def _in_halves(path: Path, state: Callable[[int], bytes], shows: Callable[[int], str]) -> Growing:
    """Rewrites a document for each step, in place; the first time it is there as a whole."""
    path.write_bytes(state(1))
    yield shows(1)
    for steps in range(2, STEPS + 1):
        data = state(steps)
        with path.open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            yield ""
            file.write(data[len(data) // 2 :])
        yield shows(steps)

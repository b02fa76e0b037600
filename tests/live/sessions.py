"""Writes ccpa sessions during a test: helpers for tests of a live directory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Session:
    """Writes a session record by record, as its agent would."""

    def __init__(self, path: Path, ident: str = "s-live", prompt: str = "Make the tests pass.") -> None:
        self.path = path
        self.calls = 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        start = {"kind": "session_start", "session_id": ident, "ts": "2026-11-21T09:00:00Z", "actor": "claude-code"}
        self.write({**start, "model": "claude-sonnet-4-6"}, {"kind": "user_prompt", "turn": 0, "text": prompt})

    def write(self, *records: dict[str, Any]) -> None:
        """Append whole records."""
        self.write_bytes(b"".join(line_of(record) for record in records))

    def write_bytes(self, data: bytes) -> None:
        """Append arbitrary bytes."""
        with self.path.open("ab") as file:
            file.write(data)

    def call(self, name: str = "Bash", **arguments: Any) -> str:
        """Append a turn that calls a tool; returns the id of the call, which is open until `answer`."""
        self.calls += 1
        ident = f"toolu_{self.calls}"
        use = {"type": "tool_use", "id": ident, "name": name, "input": arguments or {"command": f"make {self.calls}"}}
        turn = 2 * self.calls - 1
        self.write({"kind": "assistant_turn", "turn": turn, "blocks": [use], "stop_reason": "tool_use"})
        return ident

    def answer(self, ident: str, content: str = "done", *, ok: bool = True) -> None:
        """Append the result of a call."""
        turn = 2 * int(ident.rpartition("_")[2])
        self.write({"kind": "tool_result", "turn": turn, "tool_use_id": ident, "ok": ok, "content": content})

    def step(self, content: str = "done", *, ok: bool = True) -> None:
        """Append a call and its result."""
        self.answer(self.call(), content, ok=ok)

    def end(self, reason: str = "end_turn") -> None:
        """Append the end of the session."""
        self.write({"kind": "session_end", "turn": 2 * self.calls, "stop_reason": reason, "elapsed_ms": 4200})


def line_of(record: dict[str, Any]) -> bytes:
    """One line of a session."""
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def paprika(path: Path, ident: str, *, steps: int = 2, status: str = "success") -> bytes:
    """Write a Paprika record in one go; returns its bytes."""
    calls = [
        {"step_type": "tool_call", "step_index": i, "timestamp": "2026-11-21T09:00:00Z", "event_id": f"{ident}-{i}"}
        | {"tool_name": "search", "args": {"q": f"q{i}"}, "output_data": f"found {i}"}
        for i in range(1, steps + 1)
    ]
    record = {
        "schema_version": "1.0",
        "record_id": ident,
        "agent": {"name": "researcher", "version": None},
        "execution": {"started_at": "2026-11-21T09:00:00Z", "duration_ms": 1200.0, "status": status},
        "totals": {"step_count": steps, "tool_calls": steps},
        "steps": calls,
        "error": "it broke" if status == "error" else None,
    }
    data = json.dumps(record, indent=2).encode()
    path.write_bytes(data)
    os.utime(path)
    return data

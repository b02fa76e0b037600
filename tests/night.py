"""A night that went badly: hundreds of failed runs in three formats, by three agents each, of twelve causes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

EVENING: Final = datetime(2026, 11, 20, 19, tzinfo=UTC)


class Night:
    """Writes failed runs into a folder; `causes` says by path which of `CAUSES` it was."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder = folder
        self.random = Random(seed)
        self.causes: dict[str, str] = {}
        self.wasted_ms: dict[str, int] = {}

    def fill(self, failures: int, successes: int = 0, causes: Sequence[str] = ()) -> None:
        """So many failed runs, each cause as often as any other (one more or less), among runs that went well.

        `causes`: some of `CAUSES`; by default all.
        """
        causes = causes or [*CAUSES]
        names = [*causes] * (failures // len(causes) + 1)
        todo = names[:failures] + [""] * successes
        self.random.shuffle(todo)
        for number, name in enumerate(todo):
            path = self.folder / f"run-{number}.json"
            start = EVENING + timedelta(seconds=60 * number)
            took = self.random.randint(100, 99_999)
            if name:
                write, details = CAUSES[name]
                written = write(path, start, took, agent=self.agent(), **details(self))
                self.causes[str(written)] = name
                self.wasted_ms[name] = self.wasted_ms.get(name, 0) + took
            else:
                _paprika(path, start, took)

    # ---- what is never the same

    def number(self) -> int:
        """Of one to six digits."""
        return self.random.randrange(10 ** self.random.randint(1, 6))

    def ident(self) -> str:
        """One of the usual kinds of ids."""
        bits = self.random.getrandbits
        hexes = f"{bits(128):032x}"
        uuid = f"{hexes[:8]}-{hexes[8:12]}-4{hexes[13:16]}-a{hexes[17:20]}-{hexes[20:]}"
        letters = "".join(self.random.choices("abcdefghABCDEFGHijk0123456789", k=24))
        return self.random.choice([uuid, hexes[:8], hexes, f"req_{letters}", f"{bits(40)}", f"call-{hexes[:12]}"])

    def path(self) -> str:
        """Of a file, somewhere."""
        parts = ["srv", "build", "üben", self.ident(), "job-7", "a.b"]
        return "/" + "/".join(self.random.sample(parts, self.random.randint(1, 4))) + f"/{self.ident()}.py"

    def span(self) -> str:
        """A length of time."""
        return self.random.choice([f"{self.number()}ms", f"{self.number() / 10} seconds", f"{self.number()}s", "2m30s"])

    def moment(self) -> str:
        """A time of day."""
        when = EVENING + timedelta(seconds=self.number() / 7)
        return self.random.choice([when.isoformat(), when.isoformat().replace("T", " "), f"{when:%Y-%m-%dT%H:%M:%SZ}"])

    def agent(self) -> str:
        """One of three: who failed is no part of a cause."""
        return self.random.choice(["researcher", "clerk", "coder"])


def _times(start: datetime, took: int) -> dict[str, Any]:
    end = start + timedelta(milliseconds=took)
    return {"started_at": start.isoformat(), "ended_at": end.isoformat(), "duration_ms": took}


def _paprika(
    path: Path,
    start: datetime,
    took: int,
    *,
    agent: str = "researcher",
    tool: str = "search",
    error: str | None = None,
    violation: dict[str, Any] | None = None,
) -> Path:
    status = "policy_violation" if violation else "error" if error else "success"
    call = {"step_index": 1, "timestamp": start.isoformat(), "event_id": "e1", "input_hash": None, "error": None}
    ended = {"output_data": None if error else "found", "duration_ms": None if error else 3}
    steps: list[dict[str, Any]] = [
        {**call, **ended, "step_type": "tool_call", "tool_name": tool, "args": {"query": "q"}}
    ]
    if violation:
        steps.append({**call, "step_type": "policy_violation", **violation, "details": {}})
    record = {
        "schema_version": "1.0",
        "record_id": path.stem,
        "parent_record_id": None,
        "replay_of": None,
        "agent": {"name": agent},
        "execution": {**_times(start, took), "status": status},
        "policy": {"violation": violation} if violation else None,
        "totals": None,
        "steps": steps,
        "input": {"question": path.stem},
        "output": None,
        "error": error,
    }
    path.write_text(json.dumps(record))
    return path


def _lattice(
    path: Path,
    start: datetime,
    took: int,
    *,
    agent: str = "researcher",
    tool: str = "lookup",
    failed: str | None = None,
    error: str | None = None,
) -> Path:
    stamp = start.isoformat()
    said = {
        "type": "message",
        "id": "m",
        "role": "user",
        "status": "completed",
        "content": [{"type": "input_text", "text": "hi"}],
    }
    called = {
        "type": "function_call_event",
        "id": "e2",
        "timestamp": stamp,
        "call_id": "c",
        "function": tool,
        "arguments": "{}",
    }
    trace = {
        "FORMAT": "open_responses",
        "items": [said],
        "events": [
            {"type": "message_event", "id": "e1", "timestamp": stamp, "item": said},
            {**called, "result": None, "error": failed, "status": "completed"},
        ],
        "metadata": {
            "trace_id": path.stem,
            "agent": agent,
            "created_at": stamp,
            "total_time": took / 1000,
            "error": error,
        },
    }
    path.write_text(json.dumps(trace))
    return path


def _ccpa(
    path: Path,
    start: datetime,
    took: int,
    *,
    agent: str = "researcher",
    tool: str = "Bash",
    said: str = "",
    code: int | None = None,
    reason: str = "error",
    hook: str | None = None,
) -> Path:
    call = {"type": "tool_use", "id": "t", "name": tool, "input": {"command": "make"}}
    effects = {} if code is None else {"side_effects": {"exit_code": code}}
    lines: list[dict[str, Any]] = [
        {"kind": "session_start", "session_id": path.stem, "ts": start.isoformat(), "actor": agent, "model": "m-1"},
        {"kind": "user_prompt", "turn": 0, "text": "go"},
        {"kind": "assistant_turn", "turn": 1, "blocks": [call], "stop_reason": "tool_use"},
    ]
    if hook is not None:
        fired = {"event": "PreToolUse", "matcher": tool, "decision": "block", "exit_code": 2, "output": hook}
        lines.append({"kind": "hook_event", "turn": 1, **fired})
    lines.append({"kind": "tool_result", "turn": 2, "tool_use_id": "t", "ok": not said, "content": said, **effects})
    lines.append(
        {"kind": "session_end", "turn": 3, "stop_reason": reason, "elapsed_ms": took, "tokens_in": 5, "tokens_out": 6}
    )
    path = path.with_name(f"{path.stem}.ccpa-trace.jsonl")
    path.write_text("".join(json.dumps({"v": 1, **line}) + "\n" for line in lines))
    return path


def _timeout(night: Night) -> str:
    host = night.random.choice(["api.example.org", "10.0.3.7:8080", "search.local"])
    return f"no answer from https://{host}/v1/q?id={night.ident()} after {night.span()} (try {night.number()})"


def _traceback(night: Night) -> str:
    frame = f'  File "{night.path()}", line {night.number()}, in handle\n    raise ValueError(text)\n'
    return f"Traceback (most recent call last):\n{frame}ValueError: row {night.number()} of {night.path()} is empty"


CAUSES: Final[dict[str, tuple[Callable[..., Path], Callable[[Night], dict[str, Any]]]]] = {
    "timeout of search": (_paprika, lambda night: {"error": f"TimeoutError: {_timeout(night)}"}),
    "timeout of fetch": (_paprika, lambda night: {"error": f"TimeoutError: {_timeout(night)}", "tool": "fetch"}),
    "another type": (_paprika, lambda night: {"error": f"ConnectionError: {_timeout(night)}"}),
    "budget": (
        _paprika,
        lambda night: {
            "violation": {"policy_name": "max_tokens", "message": f"Token budget exceeded: {night.number()} > 500"}
        },
    ),
    "rate limit": (
        _lattice,
        lambda night: {
            "error": f"Rate limit reached for org-{night.ident()}: used {night.number()}. Retry in {night.span()}."
        },
    ),
    "traceback": (_lattice, lambda night: {"failed": _traceback(night)}),
    "key": (
        _lattice,
        lambda night: {"failed": night.random.choice(["KeyError: 'user name'", "KeyError('user name')"])},
    ),
    "key of another tool": (_lattice, lambda night: {"failed": "KeyError: 'user name'", "tool": "update"}),
    "tests": (
        _ccpa,
        lambda night: {"said": f"{night.number()} failed, {night.number()} passed in {night.span()}", "code": 1},
    ),
    "no such file": (
        _ccpa,
        lambda night: {"tool": "Read", "said": f"ENOENT at {night.moment()}: no such file, open {night.path()}"},
    ),
    "out of tokens": (_ccpa, lambda night: {"reason": "max_tokens"}),
    "hook": (_ccpa, lambda night: {"hook": f"{night.path()} is protected until {night.moment()}"}),
}

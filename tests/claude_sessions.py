"""Sessions of Claude Code for tests about what agents did: prompts, and tool calls with results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


class Step(NamedTuple):
    """A tool call with its result; without one, the result is missing."""

    tool: str
    input: dict[str, Any]
    result: str | None = "done"
    is_error: bool = False
    directory: str | None = None
    """The working directory after the call."""


def bash(command: str, result: str | None = "done", *, is_error: bool = False, directory: str | None = None) -> Step:
    """A call of the shell."""
    return Step("Bash", {"command": command}, result, is_error, directory)


def write_session(
    path: Path, steps: Sequence[Step], *, root: str = "/home/dev/shop", mode: str | None = None, hour: int = 9
) -> Path:
    """Write a session; its calls are a minute apart. Returns the path."""
    name, directory = path.stem, root
    records: list[dict[str, Any]] = []

    def add(kind: str, message: dict[str, Any], **fields: Any) -> None:
        number = len(records)
        records.append(
            {
                "parentUuid": records[-1]["uuid"] if records else None,
                "isSidechain": False,
                "cwd": directory,
                "sessionId": name,
                "version": "2.1.90",
                "gitBranch": "main",
                "type": kind,
                "message": message,
                "uuid": f"{name}-{number}",
                "timestamp": f"2026-05-04T{hour + number // 60:02}:{number % 60:02}:00.000Z",
                **fields,
            }
        )

    add("user", {"role": "user", "content": "Go"}, **({} if mode is None else {"permissionMode": mode}))
    for number, step in enumerate(steps):
        call = {"type": "tool_use", "id": f"{name}-t{number}", "name": step.tool, "input": step.input}
        message = {"id": f"{name}-m{number}", "role": "assistant", "model": "claude-sonnet-5", "content": [call]}
        add("assistant", message | {"stop_reason": "tool_use"})
        directory = step.directory or directory
        if step.result is not None:
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": step.result}
            add("user", {"role": "user", "content": [result | ({"is_error": True} if step.is_error else {})]})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path

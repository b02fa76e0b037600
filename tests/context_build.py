"""Sessions with known contexts, as Claude Code, Codex and pi write them. Times are UTC; a piece of text is a word."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]
MODEL = "claude-opus-4-6"
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def filler(count: int) -> str:
    """A text of so many words, each one piece."""
    return " ".join(["apple"] * count)


def text(value: str) -> Record:
    return {"type": "text", "text": value}


def tool_use(ident: str, name: str, **arguments: Any) -> Record:
    return {"type": "tool_use", "id": ident, "name": name, "input": arguments}


class ClaudeSession:
    """Writes a session of Claude Code, a second per record unless `seconds` says otherwise."""

    def __init__(self, path: Path) -> None:
        self.path, self.records = path, list[Record]()
        self.last: str | None = None
        self.time = START

    def add(self, kind: str, *, seconds: float = 1, parent: str | None = None, **fields: Any) -> str:
        self.time += timedelta(seconds=seconds)
        ident = f"{self.path.stem}-{len(self.records) + 1}"
        record: Record = {
            "type": kind,
            "uuid": ident,
            "parentUuid": parent or self.last,
            "sessionId": self.path.stem,
            "isSidechain": False,
            "version": "2.1.200",
            "timestamp": self.time.isoformat().replace("+00:00", ".000Z"),
        }
        self.records.append(record | fields)
        self.last = ident
        return ident

    def prompt(self, content: Any, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def result(self, call: str, content: Any, **fields: Any) -> str:
        return self.prompt([{"type": "tool_result", "tool_use_id": call, "content": content}], **fields)

    def answer(
        self,
        ident: str,
        *content: Record,
        plain: int = 3,
        read: int = 0,
        written: int = 0,
        hour: int = 0,
        output: int | None = 20,
        model: str = MODEL,
        **fields: Any,
    ) -> str:
        """A response; without `output` its usage is that of an unfinished one."""
        usage = {
            "input_tokens": plain,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": output or 1,
            "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
        }
        message: Record = {"id": ident, "role": "assistant", "type": "message", "model": model, "content": [*content]}
        message |= {"stop_reason": None if output is None else "end_turn", "usage": usage}
        return self.add("assistant", message=message, **fields)

    def write(self) -> Path:
        self.path.write_text("".join(json.dumps(record) + "\n" for record in self.records))
        return self.path


def pi_session(path: Path, entries: Iterable[Record]) -> Path:
    """A session of pi: entries follow each other, a second each."""
    begin = {"type": "session", "version": 3, "id": path.stem, "timestamp": "2026-03-02T09:00:00.000Z", "cwd": "/w"}
    lines, parent = [begin], None
    for number, entry in enumerate(entries, 1):
        ident = entry.get("id", f"e{number}")
        when = f"2026-03-02T09:00:{number:02}.000Z"
        lines.append({"id": ident, "parentId": parent, "timestamp": when, **entry})
        parent = ident
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def pi_user(value: str, **fields: Any) -> Record:
    return {"type": "message", "message": {"role": "user", "content": [text(value)]}, **fields}


def pi_answer(ident: str, *content: Record, plain: int, read: int = 0, written: int = 0, output: int = 20) -> Record:
    usage = {"input": plain, "output": output, "cacheRead": read, "cacheWrite": written}
    message = {"role": "assistant", "content": [*content], "model": MODEL, "provider": "anthropic", "usage": usage}
    return {"type": "message", "message": message | {"responseId": ident, "stopReason": "stop"}}


def pi_result(call: str, tool: str, value: str) -> Record:
    message = {"role": "toolResult", "toolCallId": call, "toolName": tool, "content": [text(value)], "isError": False}
    return {"type": "message", "message": message}

"""Rollouts as Codex writes them, a record at a time; and their tokens, counted without the format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
DAY = "2026/03/02"
FIRST, SECOND, THIRD = (f"019cadd4-5620-7001-8000-00000000000{n}" for n in range(1, 4))


def encoded(records: Iterable[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def record(kind: str, payload: Record, second: float = 0) -> Record:
    return {"timestamp": f"2026-03-02T09:15:{second:06.3f}Z", "type": kind, "payload": payload}


def meta(thread: str = FIRST, **fields: Any) -> Record:
    return record("session_meta", {"id": thread, "cwd": "/home/ada/orchard", "cli_version": "0.169.0", **fields})


def item(name: str, second: float = 1, /, **fields: Any) -> Record:
    return record("response_item", {"type": name, **fields}, second)


def event(name: str, second: float = 1, /, **fields: Any) -> Record:
    return record("event_msg", {"type": name, **fields}, second)


def done(name: str, second: float = 1, /, **fields: Any) -> Record:
    return event("item_completed", second, item={"type": name, **fields})


def message(role: str, text: str, second: float = 1) -> Record:
    content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
    return item("message", second, role=role, content=content)


def call(ident: str, command: str = "ls", second: float = 1) -> Record:
    arguments = json.dumps({"cmd": command})
    return item("function_call", second, name="exec_command", call_id=ident, arguments=arguments, status="completed")


def output(ident: str, text: Any = "fine", second: float = 2) -> Record:
    return item("function_call_output", second, call_id=ident, output=text)


def counts(given: int, cached: int, out: int) -> Record:
    return {
        "input_tokens": given,
        "cached_input_tokens": cached,
        "output_tokens": out,
        "reasoning_output_tokens": 0,
        "total_tokens": given + out,
    }


def token_count(last: Record | None, total: Record | None) -> Record:
    return event("token_count", info={"last_token_usage": last, "total_token_usage": total})


def rollout(folder: Path, thread: str, records: Iterable[Record], day: str = DAY) -> Path:
    """A file where Codex would have it."""
    path = folder / "sessions" / day / f"rollout-{day.replace('/', '-')}T09-15-00-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(records))
    return path


def used(path: Path) -> dict[str, int]:
    """Tokens of one thread by the raw lines alone.

    The tokens of a response are in a record of their own, or in an event with the total of the thread; an event
    that leaves the total as it was repeats the one before. Totals are never added.
    """
    records: list[Record] = []
    for line in path.read_bytes().split(b"\n"):
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    valid = [record for record in records if isinstance(record, dict) and isinstance(record.get("payload"), dict)]
    usages = [record["payload"]["usage"] for record in valid if record.get("type") == "token_usage_record"]
    if not usages:
        total = None
        for info in (
            record["payload"].get("info") for record in valid if record["payload"].get("type") == "token_count"
        ):
            if info and info.get("last_token_usage") and info["total_token_usage"] != total:
                total = info["total_token_usage"]
                usages.append(info["last_token_usage"])
    return {name: sum(usage.get(name) or 0 for usage in usages) for name in NAMES}


NAMES = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")

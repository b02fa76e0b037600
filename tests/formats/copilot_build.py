"""Sessions as Copilot writes them, an event at a time; and what they used, counted by somebody who knows no format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
SESSION = "0b5c1d7e-6a1f-4c52-9c3e-2f1a7d90e001"
AGENT = "5f0e7c11-0000-4000-8000-00000000a001"


def encoded(records: Iterable[Record]) -> bytes:
    """The events as a file, each with the one before as its parent."""
    lines, last = [], None
    for number, record in enumerate(records, 1):
        given = {"id": f"ev-{number:03d}", "timestamp": f"2026-03-02T09:15:{number % 60:02d}.500Z", "parentId": last}
        last = f"ev-{number:03d}"
        lines.append(json.dumps({**record, **{key: value for key, value in given.items() if key not in record}}))
    return "".join(f"{line}\n" for line in lines).encode()


def event(kind: str, agent: str | None = None, /, **data: Any) -> Record:
    return {"type": kind, "data": data} | ({} if agent is None else {"agentId": agent})


def start(**data: Any) -> Record:
    context = {"cwd": "/home/ada/orchard", "gitRoot": "/home/ada/orchard", "branch": "pears"}
    fields = {"sessionId": SESSION, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.102"}
    times = {"startTime": "2026-03-02T09:15:00.250Z", "selectedModel": "gpt-5", "context": context}
    return event("session.start", **(fields | times | data))


def user(text: str, agent: str | None = None, /, **data: Any) -> Record:
    return event("user.message", agent, content=text, transformedContent=f"<now>9:15</now>\n{text}", **data)


def turn(number: int = 0, agent: str | None = None) -> Record:
    return event("assistant.turn_start", agent, turnId=str(number))


def turn_end(number: int = 0, agent: str | None = None) -> Record:
    return event("assistant.turn_end", agent, turnId=str(number))


def says(text: str, *asks: Record, agent: str | None = None, **data: Any) -> Record:
    return event("assistant.message", agent, content=text, toolRequests=list(asks), **data)


def asks(ident: str, name: str = "bash", **arguments: Any) -> Record:
    return {"toolCallId": ident, "name": name, "arguments": arguments or {"command": "ls"}, "type": "function"}


def begins(ident: str, name: str = "bash", agent: str | None = None, **arguments: Any) -> Record:
    given = arguments or {"command": "ls"}
    return event("tool.execution_start", agent, toolCallId=ident, toolName=name, arguments=given)


def ends(ident: str, text: str = "fine", agent: str | None = None, **data: Any) -> Record:
    fields = {"toolCallId": ident, "success": True, "result": {"content": text}} | data
    return event("tool.execution_complete", agent, **fields)


def used(call: str, sequence: int, agent: str | None = None, **usage: Any) -> Record:
    tokens = {"model": "gpt-5", "inputTokens": 1200, "outputTokens": 85, "cacheReadTokens": 900, "cacheWriteTokens": 0}
    tokens |= {"reasoningTokens": 30, "cost": 1.0, "duration": 250, "apiCallId": call, "finishReason": "stop"}
    account = {"sourceSessionId": agent or SESSION, "sequence": sequence, "usageId": call}
    return event("session.usage_record", agent, usage=tokens | {"accounting": account} | usage)


def metrics(calls: int) -> Record:
    """The model metrics of a shutdown after so many calls like those of `used`."""
    usage = {"inputTokens": 1200, "outputTokens": 85, "cacheReadTokens": 900, "cacheWriteTokens": 0}
    tokens = {name: count * calls for name, count in (usage | {"reasoningTokens": 30}).items()}
    return {"gpt-5": {"requests": {"count": calls, "cost": calls}, "usage": tokens}}


def shutdown(calls: int = 0, **data: Any) -> Record:
    fields = {"shutdownType": "routine", "totalApiDurationMs": 250 * calls, "modelMetrics": metrics(calls)}
    return event("session.shutdown", **(fields | data))


NAMES = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")


def tokens(path: Path) -> dict[str, int]:
    """Tokens by the raw lines alone.

    Between two shutdowns count the records of usage, each once by who paid and its number; where there are none, the
    metrics of the shutdown that ends it; where there is none either, what the messages say of their output.
    """
    total = dict.fromkeys(NAMES, 0)
    seen: set[tuple[str, int]] = set()
    records: list[Record] = []
    output_tokens = 0
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        data = record["data"]
        if record["type"] == "session.usage_record":
            account = data["usage"]["accounting"]
            if (account["sourceSessionId"], account["sequence"]) not in seen:
                seen.add((account["sourceSessionId"], account["sequence"]))
                records.append(data["usage"])
        elif record["type"] == "assistant.message":
            output_tokens += data.get("outputTokens", 0)
        elif record["type"] == "session.shutdown":
            usages = records or _metrics(data)
            _sum(total, usages or [{"outputTokens": output_tokens}])
            records, output_tokens = [], 0
    _sum(total, records or [{"outputTokens": output_tokens}])
    return total


def _metrics(data: Record) -> list[Record]:
    models = [model["usage"] for model in data["modelMetrics"].values() if "usage" in model]
    details = {name: detail["tokenCount"] for name, detail in data.get("tokenDetails", {}).items()}
    if models or not details:
        return models
    cached = details["cache_read"], details["cache_write"]
    given = details["input"] + sum(cached)
    return [dict(zip(NAMES, (given, details["output"], *cached), strict=False))]


def _sum(total: dict[str, int], records: list[Record]) -> None:
    for usage in records:
        for name in NAMES:
            total[name] += usage.get(name, 0)

"""Messages of opencode 2 as those that it wrote before.

Facts: databases of 2.0.0-beta and 2.0.3 to 2.0.26, and the public source. A row of ``session_message`` is a whole
message: its role is the column ``type``, its order the column ``seq``, and texts, reasoning and tool calls are in the
list ``content``. Further types are notes, the summary of a compaction, and ``idle``: the end of a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tracetui.formats.opencode.records import Record
from tracetui.formats.scalars import mapping, string, without

NOTES: Final = frozenset(
    {"system", "synthetic", "skill", "agent-switched", "model-switched", "location-switched", "shell", "idle"}
)
"""Types of rows that are neither a prompt nor a model call."""


def converted(kind: str, record: Record) -> tuple[Record, list[Record]]:
    """A row of the type `kind` as a message and its parts, in which all fields that need no other name keep theirs."""
    if kind == "user":
        return {"role": kind} | without(record, "text", "files", "agents", "skills"), list(_parts_of_prompt(record))
    if kind == "assistant":
        return {"role": kind} | without(record, "content", "retry"), list(_parts_of_response(record))
    if kind == "compaction":
        return _summary(record)
    return ({"role": "note", "kind": kind} if kind in NOTES else {"role": kind}) | record, []


def _list(record: Record, name: str) -> list[Any]:
    value = record.get(name)
    return value if isinstance(value, list) else []


def _parts_of_prompt(record: Record) -> Iterator[Record]:
    if record.get("text") is not None:
        yield {"type": "text", "text": record["text"]}
    for name, kind in (("files", "file"), ("agents", "agent"), ("skills", "skill")):
        for item in _list(record, name):
            fields = item if isinstance(item, dict) else {"name": item}
            url = {"url": fields["uri"]} if "uri" in fields and "url" not in fields else {}
            filename = {"filename": fields["name"]} if kind == "file" and "name" in fields else {}
            yield filename | url | fields | {"type": kind}


def _parts_of_response(record: Record) -> Iterator[Record]:
    for item in _list(record, "content"):
        fields = item if isinstance(item, dict) else {"type": "text", "text": item}
        yield _call(fields) if fields.get("type") == "tool" else fields
    retry = record.get("retry")
    if isinstance(retry, dict):
        yield {"type": "retry", "time": {"created": retry.get("at")}} | without(retry, "at")


def _call(item: Record) -> Record:
    """A tool call; its result is the list ``content`` of its state: one text, unless there is anything else in it."""
    state, times = mapping(item.get("state")), mapping(item.get("time"))
    content = state.get("content")
    if isinstance(content, list) and "output" not in state:
        blocks = [mapping(block) for block in content]
        texts = [string(block.get("text")) for block in blocks if block.get("type") == "text"]
        said = [text for text in texts if text is not None]
        state = without(state, "content") | {"output": "\n".join(said) if len(said) == len(content) else content}
    start = times.get("created") if times.get("ran") is None else times["ran"]
    state = state | {"time": {"start": start, "end": times.get("completed")} | mapping(state.get("time"))}
    return without(item, "id", "name") | {"callID": item.get("id"), "tool": item.get("name"), "state": state}


def _summary(record: Record) -> tuple[Record, list[Record]]:
    """A compaction, which is a model call: its response is the summary."""
    status, times = record.get("status"), mapping(record.get("time"))
    message = {"role": "assistant", "agent": "compaction", "summary": True} | without(record, "summary", "status")
    if status == "completed":
        message |= {"finish": "stop"}
    elif status == "failed" and not record.get("error"):
        message |= {"error": {"message": "the compaction failed"}}
    elif status == "running":
        message["time"] = without(times, "completed")
    text = record.get("summary")
    return message, [] if text is None else [{"type": "text", "text": text}]

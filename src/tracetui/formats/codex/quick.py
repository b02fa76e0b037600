"""The list stage of a rollout: its first lines for the names, its last ones for how it stands."""

from __future__ import annotations

from typing import Final

import msgspec

from tracetui.formats.codex.records import EVENT, ITEM, Record, record_of
from tracetui.formats.codex.run import header_of
from tracetui.formats.codex.session import Session
from tracetui.formats.codex.turns import error_of
from tracetui.formats.codex.words import CALLS, DONE_CALLS, SAID
from tracetui.formats.lines import first_lines
from tracetui.formats.tail import record_on
from tracetui.model import Error, Header
from tracetui.sources.base import HEAD_SIZE, File

_HEAD: Final = 8 * HEAD_SIZE
"""Bytes in which the first prompt is looked for: instructions of any length may come before it."""
_ENDS: Final = (b"task_started", b"task_complete", b"turn_aborted")


def skim(file: File) -> Header | None:
    """The header from the first and last lines; None where they do not tell all of it."""
    session = Session(file.path)
    whole = file.stat.size <= HEAD_SIZE
    for line in first_lines(file, _HEAD):
        value = record_on(line.data)
        if value is not None:
            session.take(value, line)
        elif line.number == 1:
            return None
        if not whole and session.prompt is not None and session.first_model is not None:
            break
    if session.meta is None:
        return None
    if whole:
        return header_of(session, file)
    session.end = None
    found = _end(file)
    if found is None:
        return msgspec.structs.replace(header_of(session, file), ended=True)
    session.end, session.end_failure = found
    return header_of(session, file)


def _end(file: File) -> tuple[Record, Error | None] | None:
    """The last record that began or ended a turn, and the error after which the model said nothing before it."""
    size = file.stat.size
    tail = file.read(size - HEAD_SIZE, HEAD_SIZE).partition(b"\n")[2]
    end: Record | None = None
    for data in reversed(tail.split(b"\n")):
        if end is None and not any(name in data for name in _ENDS):
            continue
        value = record_on(data)
        record = None if value is None else record_of(value)
        if record is None:
            continue
        if end is None:
            if record.kind == EVENT and record.name.encode("utf-8", "replace") in _ENDS:
                end = record
                if record.name == "task_started":
                    return end, None
        elif record.kind == EVENT and record.name == "error":
            return end, error_of(record.payload)
        elif _is_said(record) or (record.kind == EVENT and record.name.encode("utf-8", "replace") in _ENDS):
            return end, None
    return None


def _is_said(record: Record) -> bool:
    """Whether the model did something."""
    if record.kind == ITEM:
        said = record.name == "message" and record.payload.get("role") == "assistant"
        return said or record.name == "reasoning" or record.name in CALLS or record.name in DONE_CALLS
    return record.kind == EVENT and record.name in SAID

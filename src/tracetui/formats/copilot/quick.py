"""The list stage of a session: its first lines for the names, its last ones for how it stands."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.copilot.records import Event, event_of
from tracetui.formats.copilot.run import header_of
from tracetui.formats.copilot.session import Session
from tracetui.formats.copilot.state import MAIN
from tracetui.formats.copilot.words import END, GOES_ON
from tracetui.formats.lines import Line, first_lines
from tracetui.formats.tail import record_on
from tracetui.model import Header
from tracetui.sources.base import HEAD_SIZE, File

_HEAD: Final = 8 * HEAD_SIZE
"""Bytes in which the first prompt is looked for."""
_TELLING: Final = (b'"session.', b'"assistant.message"', b'"user.message"', b'"abort"')
"""In lines that tell how a session stands."""


def skim(file: File) -> Header | None:
    """The header from the first and last lines; None where they do not tell all of it."""
    session = Session(file.path)
    size = file.stat.size
    for line in first_lines(file, _HEAD):
        value = record_on(line.data)
        if value is not None:
            session.take(value, line)
        elif line.number == 1:
            return None
        if size > HEAD_SIZE and session.prompt is not None and session.model is not None:
            break
    if session.start is None:
        return None
    if size <= HEAD_SIZE:
        return header_of(session, file)
    ended = _ended(file)
    if ended is None:  # it takes more than the last lines to say how it stands
        return msgspec.structs.replace(_headed(session, Session(file.path), file), ended=True)
    return _headed(session, ended, file)


def _headed(session: Session, ended: Session, file: File) -> Header:
    """The names of one and the end of the other; what both count is not known yet."""
    session.end, session.ledger = ended.end, ended.ledger
    talk = ended.talk(MAIN)
    session.put(MAIN, session.talk(MAIN), failure=talk.failure, failed=None, stopped=talk.stopped)
    return msgspec.structs.replace(header_of(session, file), usage=None)


def _ended(file: File) -> Session | None:
    """How the session stands by its last lines; None where they do not say."""
    size = file.stat.size
    tail = file.read(size - HEAD_SIZE, HEAD_SIZE).partition(b"\n")[2]
    session = Session(file.path)
    told: list[dict[str, Any]] = []
    shut = False
    for data in reversed(tail.split(b"\n")):
        if not shut and b'"type"' not in data:
            continue
        if shut and not any(name in data for name in _TELLING):
            continue
        value = record_on(data)
        if value is None:
            continue
        event = event_of(value)
        told.append(value)
        if event.kind == END:
            shut = True
        elif not shut and GOES_ON.fullmatch(event.kind):
            return session
        elif shut and _went_well(event):
            break
    else:
        return None
    for number, value in enumerate(reversed(told), 1):
        session.take(value, Line(0, number, b"", True))
    return session


def _went_well(event: Event) -> bool:
    """Whether an event is of the session itself and leaves nothing behind of what failed before it."""
    if "agentId" in event.outer or "parentToolCallId" in event.data:
        return False
    typed = event.kind == "user.message" and event.data.get("source") in (None, "user")
    return typed or event.kind == "assistant.message"

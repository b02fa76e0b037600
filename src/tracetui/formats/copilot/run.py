"""A session as a run: its header, what it says about itself, and what ``workspace.yaml`` beside it does."""

from __future__ import annotations

from typing import Any, Final

import orjson

from tracetui.formats.copilot.state import MAIN, State
from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import folder_of
from tracetui.formats.scalars import child, moment, string, version, word
from tracetui.model import PREVIEW, FirstError, Header, RunBody, Status, StatusSource
from tracetui.sources.base import File, LinkLost

AGENT: Final = "copilot"
_EVENTS: Final = "events.jsonl"
_WORKSPACE: Final = "workspace.yaml"
_MOST_BYTES: Final = 8192
_MOST_LINES: Final = 64


def header_of(session: State, file: File) -> Header:
    """The header as far as it is known."""
    start = {} if session.start is None else session.start.data
    context, space = child(start, "context"), workspace(file)
    ident = string(start.get("sessionId")) or space.get("id") or _stem(file)
    place = string(context.get("cwd")) or space.get("cwd")
    branch = word(context.get("branch")) or space.get("branch")
    status, name, error = end_of(session)
    began = moment(start.get("startTime"))
    return Header(
        id=ident,
        name=folder_of(place) or ident,
        agent=AGENT,
        model=session.model,
        status=status,
        status_word=name,
        status_source=None if status is None else StatusSource.EXPLICIT,
        ended=status is not None,
        started_at=session.first if began is None else began,
        usage=session.ledger.usage,
        parent=string(start.get("detachedFromSpawningParentSessionId")),
        error=error,
        prompt=session.prompt or "",
        label=(space.get("name") or "")[:PREVIEW] or None if space.get("user_named") == "true" else None,
        tags=(branch[:PREVIEW],) if branch else (),
        source=(place or "")[:PREVIEW] or None,
        writer=version(start.get("copilotVersion")),
        size=file.stat.size,
        fields=unknown_fields(session.strange),
    )


def end_of(session: State) -> tuple[Status | None, str | None, FirstError | None]:
    """(status, its word, the cause): none of it while there is no shutdown, or the session went on after it.

    A session that is shut down as usual failed if the model said nothing after an error, and was cancelled if it was
    stopped and said nothing since.
    """
    if session.end is None:
        return None, None, None
    name = (word(session.end.data.get("shutdownType")) or "shutdown")[:PREVIEW]
    talk = session.talk(MAIN)
    if talk.failure is not None:
        span = talk.failed
        failure = FirstError(talk.failure.message, talk.failure.type)
        if span is not None:
            failure = FirstError(failure.message, failure.type, span.id, span.name, span.operation)
        return Status.ERROR, name, failure
    return (Status.OK, name, None) if talk.stopped is None else (Status.CANCELLED, talk.stopped, None)


def body_of_run(session: State, file: File) -> RunBody:
    """All that the session says about itself in its first event, what it used, and what is known of its workspace."""
    attributes: dict[str, Any] = {}
    extent = None
    if session.start is not None:
        attributes = session.start.fields()
        extent = (session.start_at[0], session.start_at[1])
    if space := workspace(file):
        attributes = attributes | {_WORKSPACE: space}
    return RunBody(
        last_user=session.last_user,
        last_assistant=session.last_assistant,
        totals=session.ledger.totals(),
        system_prompt=session.system,
        attributes=attributes,
        extent=extent,
    )


def workspace(file: File) -> dict[str, str]:
    """What ``workspace.yaml`` beside a session says: its plain lines, read once while the file is open."""
    if file.name != _EVENTS:
        return {}
    known = file.memo.get(_WORKSPACE)
    if not isinstance(known, dict):
        known = file.memo[_WORKSPACE] = _read(file)
    return known


def _read(file: File) -> dict[str, str]:
    try:
        with file.other(_WORKSPACE) as other:
            data = other.read(0, _MOST_BYTES)
    except LinkLost:
        raise
    except OSError:  # there is none, or it is no file
        return {}
    found: dict[str, str] = {}
    last = ""
    for line in data.decode("utf-8", "replace").split("\n")[:_MOST_LINES]:
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t"):  # a text of several lines: its first one
            if last and not found[last]:
                found[last] = line.strip()
        elif colon and name.strip():
            last = name.strip()
            found[last] = _plain(value.strip())
    return {name: value for name, value in found.items() if value}


def _plain(value: str) -> str:
    """A value of one line, without its quotes."""
    if value[:1] in ("|", ">") or value == "null":
        return ""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(orjson.loads(value))
        except orjson.JSONDecodeError:
            return value[1:-1]
    return value


def _stem(file: File) -> str:
    """What a file is called that does not say whose it is: the folder of ``events.jsonl``, else its own name."""
    if file.name == _EVENTS:
        return folder_of(file.path[: -len(_EVENTS)]) or file.name
    return file.name.removesuffix(".jsonl") or file.name

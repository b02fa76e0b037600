"""What the user and the model said in a Codex thread: each message and each response once, however often it is told."""

from __future__ import annotations

from typing import Any

import msgspec

from tracetui.formats.codex.records import EVENT, text_in
from tracetui.formats.codex.state import Heard, Mark, State, Told
from tracetui.formats.codex.turns import close, open_turn, since
from tracetui.formats.codex.words import context_of, said
from tracetui.formats.scalars import child, string, word
from tracetui.model import PREVIEW, Operation, Status, StatusSource


def hear(session: State, mark: Mark) -> None:
    """A message that came from outside: a prompt, or what the program puts into the conversation as its user."""
    record, event = mark.record, mark.record.kind == EVENT
    told = child(record.payload, "item") or record.payload
    text = text_in(told.get("content")) or string(told.get("message")) or ""
    role = "user" if event else word(record.payload.get("role")) or "message"
    name = (context_of(record, text) or "user") if role == "user" else role
    heard = session.heard
    if role == "user" and heard is not None and _same(heard, text, event):
        _heard_again(session, mark, heard, record.name == "UserMessage" or name == "user")
        return
    real = name == "user"
    if real:
        if session.turn is None or (session.implicit and session.told is not None):
            open_turn(session, mark, implicit=True)
        _prompted(session, text)
    close(session)
    span = session.new(
        mark,
        name,
        Operation.MESSAGE,
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        preview=text.strip()[:PREVIEW],
    )
    if not real:
        session.early(span)
    if role == "user":
        session.heard = Heard(span, text, not event, event)


def _same(heard: Heard, text: str, event: bool) -> bool:
    """Whether this is what was heard already, told the other way."""
    return ((heard.item and event and not heard.event) or (heard.event and not event and not heard.item)) and (
        text in heard.text or heard.text in text
    )


def _heard_again(session: State, mark: Mark, heard: Heard, real: bool) -> None:
    fields: dict[str, Any] = {}
    if real and heard.span.name != "user":
        fields["name"] = "user"
        _prompted(session, heard.text)
    span = session.also(heard.span, mark, **fields) or heard.span
    session.heard = msgspec.structs.replace(heard, span=span, item=True, event=True)


def _prompted(session: State, text: str) -> None:
    session.last_user = text
    if session.prompt is None:
        session.prompt = text.strip()[:PREVIEW]
    if session.turn is not None and not session.turn.preview:
        session.turn = session.add(msgspec.structs.replace(session.turn, preview=text.strip()[:PREVIEW]))


def respond(session: State, mark: Mark, ids: tuple[str, ...], text: str, *, thought: bool = True) -> Told:
    """The response that this record is part of: the one that is open, or (for what it said already) the last one."""
    told = session.told
    session.heard = None
    ids = tuple([ident for ident in ids if ident])
    again = told is not None and any(ident in told.ids for ident in ids)
    if told is None or not (told.open or (again and mark.record.kind == EVENT)):
        span = session.new(
            mark,
            session.model or "model",
            Operation.CHAT,
            status=Status.OK,
            status_source=StatusSource.DERIVED,
            model=session.model,
            preview=text[:PREVIEW],
            started_at=mark.began,
            duration_ms=since(mark.began, mark.time),
        )
        session.told = Told(span, ids=ids, spoke=bool(text) and not thought)
        return session.told
    fields: dict[str, Any] = {} if not told.open else {"duration_ms": since(told.span.started_at, mark.time)}
    if text and (not told.span.preview or (not thought and not told.spoke)):
        fields["preview"] = text[:PREVIEW]
    span = session.also(told.span, mark, **fields) or told.span
    spoke = told.spoke or (bool(text) and not thought)
    session.told = Told(span, told.open, told.ids if again else (*told.ids[-64:], *ids), spoke)
    return session.told


def say(session: State, mark: Mark) -> None:
    ident, text, thought = said(mark.record)
    text = text.strip()
    session.failure = None
    respond(session, mark, (ident or "", text), text, thought=thought)
    if text and not thought:
        session.last_assistant = text


def use(session: State, mark: Mark) -> None:
    usage, session.meter = session.meter.read(mark.record)
    told = session.told
    if usage is None:
        span = session.also(told.span, mark) if told is not None else session.row(mark)
        if told is not None and span is not None:
            session.told = msgspec.structs.replace(told, span=span)
        return
    if told is None or told.span.usage is not None:  # of a call that left no words, such as a compaction
        session.told = None
        told = respond(session, mark, (), "(only its tokens were recorded)")
        span = session.add(msgspec.structs.replace(told.span, usage=usage))
    else:
        span = session.also(told.span, mark, usage=usage) or session.add(
            msgspec.structs.replace(told.span, usage=usage)
        )
    session.told = msgspec.structs.replace(told, span=span, open=False)

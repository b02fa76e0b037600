"""A ccpa session while its records come in: which answer belongs to which call, which hook to which call, how it ends.

A `Session` is what must be remembered between two reads, however long the file: the calls that still wait, the latest
turn, the texts that the run shows. Spans are handed out and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tracetui.formats.ccpa.records import At, blocks_of, content_text, first_string, kind_of
from tracetui.formats.ccpa.spans import (
    answered,
    call_spans,
    hook_span,
    other_span,
    prompt_span,
    result_span,
    skill_span,
    turn_span,
)
from tracetui.formats.layers import Layers
from tracetui.formats.lines import Line
from tracetui.formats.tail import object_of
from tracetui.model import PREVIEW, Problem, Span, Status


class End(msgspec.Struct, frozen=True, gc=False):
    """The record that ended the session, and where it is."""

    record: dict[str, Any]
    line: int
    at: At


class Session(msgspec.Struct):
    """What is known of a session so far."""

    path: str
    records: int = 0
    start: dict[str, Any] | None = None
    end: End | None = None
    closed: bool = False
    """The last record ended the session."""
    prompt: str | None = None
    """The beginning of the first prompt."""
    last_user: str | None = None
    last_assistant: str | None = None
    failed: bool = False
    """A span has failed."""
    turn: Span | None = None
    """The latest assistant turn."""
    recent: dict[str, Span] = {}
    """The calls of the latest turn by id, answered or not."""
    waiting: dict[str, Span] = {}
    """Calls without an answer by id."""
    called: Layers[str] = msgspec.field(default_factory=Layers)
    """Every call by id: the id of its span."""
    early: dict[str, tuple[Span, ...]] = {}
    """Hooks that name a call which has not come yet."""
    spans: dict[str, Span] = {}
    """New and changed spans by id, to be collected by the reader."""
    problems: list[Problem] = []
    """New problems, to be collected by the reader."""

    def copy(self) -> Session:
        """A session that goes on from here without changing this one; nothing is left to collect in it."""
        return msgspec.structs.replace(
            self,
            recent=dict(self.recent),
            waiting=dict(self.waiting),
            called=self.called.copy(),
            early=dict(self.early),
            spans={},
            problems=[],
        )

    @property
    def model(self) -> str | None:
        """The model that the session says it uses."""
        return first_string(self.start, "model") if self.start is not None else None

    @property
    def ended(self) -> bool:
        """Whether there was a ``session_end``."""
        return self.end is not None

    def take(self, value: Any, line: Line, note: str | None = None) -> None:
        """Take in the value on one line; what it means for the spans is in `spans` and `problems` afterwards."""
        record = object_of(self, value, line, note)
        if record is None:
            return
        number, at = line.number, At(line.offset, len(line.data))
        kind = kind_of(record)
        if self.records == 0 and kind != "session_start":
            self.problem(number, f"the first record is {kind}, not session_start")
        if self.closed and kind != "session_end":
            self.problem(number, f"{kind} after session_end")
            self.closed = False
        self.records += 1
        _TAKE.get(kind, _other)(self, record, number, at)

    def problem(self, line: int, reason: str) -> None:
        """Report one line."""
        self.problems.append(Problem(self.path, f"line {line}", reason))

    def add(self, span: Span) -> None:
        """Hand out a new span or a newer version of one."""
        self.spans[span.id] = span
        self.failed = self.failed or span.status is Status.ERROR


def _start(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    if session.start is not None:
        session.problem(line, "a second session_start")
        session.add(other_span(record, line, at))
        return
    if session.records > 1:
        session.problem(line, "session_start is not the first record")
    session.start = record


def _prompt(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    _settle(session)
    text = content_text(record.get("text"))
    if session.prompt is None:
        session.prompt = text[:PREVIEW]
    session.last_user = text
    session.add(prompt_span(record, line, at))


def _turn(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    _settle(session)
    session.turn = turn_span(record, line, at, session.model)
    session.recent = {}
    session.add(session.turn)
    for call_id, span in call_spans(record, line, at):
        _call(session, call_id, span, line)
    texts = [
        block.get("text") for block in blocks_of(record) if isinstance(block, dict) and block.get("type") == "text"
    ]
    said = "\n".join(text for text in texts if isinstance(text, str))
    session.last_assistant = said or session.last_assistant


def _call(session: Session, call_id: str | None, span: Span, line: int) -> None:
    if call_id is None:
        session.problem(line, f"a call of {span.name[:PREVIEW]} has no id: its answer cannot be told")
        session.add(_unsettled(span))
        return
    before = session.waiting.get(call_id)
    if before is not None:
        session.problem(line, f"call id {call_id[:PREVIEW]!r} is used again before its answer came")
        if before.status is Status.RUNNING:
            session.add(_unsettled(before))
    session.add(span)
    session.waiting[call_id] = session.recent[call_id] = span
    session.called[call_id] = span.id
    for hook in session.early.pop(call_id, ()):
        _attach(session, hook, call_id, span)


def _result(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    call_id = record.get("tool_use_id")
    call = session.waiting.pop(call_id, None) if isinstance(call_id, str) else None
    if call is None:
        shown = repr(call_id[:PREVIEW]) if isinstance(call_id, str) else "without an id"
        session.problem(line, f"a result, but no call {shown} waits for one")
        session.add(result_span(record, line, at))
        return
    span = answered(call, record, at)
    if call_id in session.recent:
        session.recent[call_id] = span
    session.add(span)


def _hook(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    span = hook_span(record, line, at)
    call_id = first_string(record, "tool_use_id")
    if call_id is None:
        call_id = _matched(session, record, span.step)
    call = None if call_id is None else session.recent.get(call_id) or session.waiting.get(call_id)
    if call_id is not None and call is not None:
        _attach(session, span, call_id, call)
        return
    called = None if call_id is None else session.called.get(call_id)
    if called is not None:  # long since answered
        span = msgspec.structs.replace(span, parent_id=called)
    elif call_id is not None:  # a hook may fire before the turn is written
        session.early[call_id] = (*session.early.get(call_id, ()), span)
    elif session.turn is not None and span.step is not None and session.turn.step == span.step:
        span = msgspec.structs.replace(span, parent_id=session.turn.id)
    session.add(span)


def _matched(session: Session, record: dict[str, Any], step: int | None) -> str | None:
    """Id of the only call of this turn that the hook's matcher fits."""
    if session.turn is None or step is None or session.turn.step != step:
        return None
    names = (first_string(record, "matcher") or "").split("|")
    calls = [call_id for call_id, call in session.recent.items() if call.name in names]
    return calls[0] if len(calls) == 1 else None


def _attach(session: Session, hook: Span, call_id: str, call: Span) -> None:
    """Put a hook under its call; one that blocks a call which has not run means that it never will."""
    session.add(msgspec.structs.replace(hook, parent_id=call.id))
    if hook.status is Status.ERROR and call.status is Status.RUNNING:
        blocked = msgspec.structs.replace(
            call,
            status=Status.CANCELLED,
            status_word=hook.status_word,
            status_source=hook.status_source,
            note="blocked",
        )
        session.recent[call_id] = session.waiting[call_id] = blocked
        session.add(blocked)


def _skill(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    session.add(skill_span(record, line, at))


def _end(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    if session.end is not None:
        session.problem(line, "a second session_end")
        session.add(other_span(session.end.record, session.end.line, session.end.at))
    session.end, session.closed = End(record, line, at), True
    _settle(session)


def _other(session: Session, record: dict[str, Any], line: int, at: At) -> None:
    session.add(other_span(record, line, at))


def _settle(session: Session) -> None:
    """The conversation went on: calls of the latest turn without an answer are not running any more."""
    for call_id, call in session.recent.items():
        if call.status is Status.RUNNING:
            span = _unsettled(call)
            session.recent[call_id] = session.waiting[call_id] = span
            session.add(span)


def _unsettled(call: Span) -> Span:
    """A call that nothing more will be heard of, as far as the trace tells."""
    return msgspec.structs.replace(call, status=Status.UNKNOWN, status_source=None)


_TAKE: Final[dict[str, Callable[[Session, dict[str, Any], int, At], None]]] = {
    "session_start": _start,
    "user_prompt": _prompt,
    "assistant_turn": _turn,
    "tool_result": _result,
    "hook_event": _hook,
    "skill_invocation": _skill,
    "session_end": _end,
}

"""A Copilot session while its events come in: which event says what about which span."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.formats.copilot import agents, tools
from tracetui.formats.copilot.known import ENVELOPE, FIELDS
from tracetui.formats.copilot.pairs import begin, end
from tracetui.formats.copilot.records import event_of
from tracetui.formats.copilot.state import MAIN, Mark, State
from tracetui.formats.copilot.talk import hear, say, think, use, use_model
from tracetui.formats.copilot.turns import abort, end_turn, fail, leave_all, open_turn
from tracetui.formats.copilot.words import END, GOES_ON, START
from tracetui.formats.lines import Line
from tracetui.formats.scalars import moment, string
from tracetui.formats.tail import object_of
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Status, StatusSource


class Session(State):
    """A session as `formats.tail` reads it."""

    @property
    def ended(self) -> bool:
        """Never for good: a session can be resumed at any time."""
        return False

    def copy(self) -> Session:
        """A session that goes on from here without changing this one; nothing is left to collect in it."""
        return msgspec.structs.replace(
            self,
            talks=self.talks.copy(),
            open=dict(self.open),
            strange=dict(self.strange),
            calls=self.calls.copy(),
            waiting={key: dict(idents) for key, idents in self.waiting.items()},
            agents=dict(self.agents),
            pairs=dict(self.pairs),
            counted=self.counted.copy(),
            spans={},
            problems=[],
        )

    def take(self, value: Any, line: Line, note: str | None = None) -> None:
        """Take in the value on one line; what it means for the spans is in `spans` and `problems` afterwards."""
        told = object_of(self, value, line, note)
        if told is None:
            return
        event = event_of(told)
        self.records += 1
        FIELDS.count(self.strange, event.kind, ENVELOPE.names(told))
        time = moment(told.get("timestamp"))
        if self.first is None:
            self.first = time
        place = (line.offset, len(line.data), crc32(line.data))
        mark = Mark(line.number, place, event, time, agents.whose(self, event))
        agents.join(self, mark)
        if self.end is not None and GOES_ON.fullmatch(event.kind):
            self.end = None
        _TAKE.get(event.kind, _row)(self, mark)


def _row(session: State, mark: Mark) -> None:
    session.row(mark)


def _start(session: State, mark: Mark) -> None:
    data = mark.event.data
    use_model(session, mark.key, data.get("selectedModel"))
    if session.start is not None or mark.key != MAIN:
        session.row(mark)
        return
    session.start, session.start_at = mark.event, mark.place


def _resume(session: State, mark: Mark) -> None:
    leave_all(session)
    use_model(session, mark.key, mark.event.data.get("selectedModel"))
    session.row(mark)


def _model(session: State, mark: Mark) -> None:
    use_model(session, mark.key, mark.event.data.get("newModel"))
    session.row(mark)


def _shut(session: State, mark: Mark) -> None:
    data = mark.event.data
    leave_all(session)
    session.ledger = session.ledger.shut(data)
    session.end = mark.event
    use_model(session, mark.key, data.get("currentModel"))
    if data.get("shutdownType") != "error":
        session.row(mark)
        return
    error = Error((string(data.get("errorReason")) or "crashed")[:MESSAGE_LIMIT])
    fields: dict[str, Any] = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": error}
    span = session.row(mark, Operation.OTHER, preview=error.message[:PREVIEW], **fields)
    session.put(MAIN, session.talk(MAIN), failure=error, failed=span)


_TAKE: Final[dict[str, Callable[[State, Mark], Any]]] = {
    START: _start,
    END: _shut,
    "session.resume": _resume,
    "session.model_change": _model,
    "session.usage_record": use,
    "assistant.usage": use,
    "session.error": fail,
    "model.call_failure": fail,
    "abort": abort,
    "user.message": hear,
    "system.message": hear,
    "assistant.message": say,
    "assistant.reasoning": think,
    "assistant.turn_start": open_turn,
    "assistant.turn_end": end_turn,
    "tool.user_requested": tools.begin,
    "tool.execution_start": tools.begin,
    "tool.execution_partial_result": tools.progress,
    "tool.execution_progress": tools.progress,
    "tool.execution_complete": tools.end,
    "session.compaction_start": begin,
    "session.compaction_complete": end,
    "hook.start": begin,
    "hook.progress": begin,
    "hook.end": end,
    "permission.requested": begin,
    "permission.completed": end,
    **dict.fromkeys(agents.LIFE, agents.live),
}
"""What is done with events of each kind; any other stands for itself."""

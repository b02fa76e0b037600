"""A Codex thread while its records come in: which record says what about which span."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from tracetui.formats.codex import tools
from tracetui.formats.codex.known import ENVELOPE, FIELDS
from tracetui.formats.codex.records import EVENT, ITEM, META, USAGE, Record, record_of
from tracetui.formats.codex.state import Mark, State
from tracetui.formats.codex.talk import hear, say, use
from tracetui.formats.codex.turns import close, end_turn, error_of, leave, open_turn
from tracetui.formats.codex.words import HEARD, SAID
from tracetui.formats.lines import Line
from tracetui.formats.scalars import child, moment, word
from tracetui.formats.tail import object_of
from tracetui.model import INHERITED, PREVIEW, Operation, Status, StatusSource


class Session(State):
    """A thread as `formats.tail` reads it."""

    @property
    def ended(self) -> bool:
        """Never for good: a thread can be resumed at any time."""
        return False

    def copy(self) -> Session:
        """A session that goes on from here without changing this one; nothing is left to collect in it."""
        return msgspec.structs.replace(
            self,
            calls=self.calls.copy(),
            waiting=dict(self.waiting),
            threads=dict(self.threads),
            between=dict(self.between),
            strange=dict(self.strange),
            spans={},
            problems=[],
        )

    def take(self, value: Any, line: Line, note: str | None = None) -> None:
        """Take in the value on one line; what it means for the spans is in `spans` and `problems` afterwards."""
        told = object_of(self, value, line, note)
        if told is None:
            return
        record = record_of(told)
        self.records += 1
        FIELDS.count(self.strange, record.type or record.kind, ENVELOPE.names(told))
        if self.copies is not None:
            self._copied(record)
        place = (line.offset, len(line.data), crc32(line.data))
        _take(self, Mark(line.number, place, record, moment(record.outer.get("timestamp"))))

    def _copied(self, record: Record) -> None:
        """Find out whether a record of an old fork was copied. With the first that was not its own part begins."""
        self.copies = None if self.copies is None else self.copies.after(record)
        if self.copies is None:
            leave(self)
            self.note, self.inherited = "", dict.fromkeys(self.threads, INHERITED)
        elif record.kind != META:
            self.note = INHERITED


def _take(session: Session, mark: Mark) -> None:
    kind, name = mark.record.kind, mark.record.name
    if kind == META:
        _meta(session, mark)
    elif kind == "turn_context":
        _context(session, mark)
    elif kind == USAGE or (kind == EVENT and name == "token_count"):
        use(session, mark)
    elif kind == "world_state":
        _beside(session, mark)
    elif kind in ("compacted", "compaction"):
        close(session)
        fields = {"status": Status.OK, "status_source": StatusSource.DERIVED}
        session.compaction = session.row(mark, Operation.OTHER, "compaction", **fields)
    elif kind == ITEM:
        _item(session, mark)
    elif kind == EVENT:
        _event(session, mark)
    else:
        session.row(mark)


def _meta(session: Session, mark: Mark) -> None:
    if session.meta is not None:
        session.row(mark)
        return
    if session.records > 1 and not session.prefix:
        session.problem(mark.line, "session_meta is not the first record")
    session.meta, session.meta_at = mark.record, mark.place
    if session.agent is not None:
        name = word(mark.record.payload.get("agent_nickname")) or session.agent.name
        span = session.also(session.agent, mark, name=name[:PREVIEW], started_at=mark.time)
        session.agent = span or session.agent


def _context(session: Session, mark: Mark) -> None:
    _use(session, mark.record.payload.get("model"))
    if session.turn is None:
        open_turn(session, mark, implicit=True)
    else:
        _beside(session, mark)


def _beside(session: Session, mark: Mark) -> None:
    """What the program notes about its surroundings belongs to the turn; a row of its own outside of one."""
    if session.turn is None:
        session.early(session.row(mark))
    else:
        session.turn = session.also(session.turn, mark) or session.turn


def _use(session: Session, model: Any) -> None:
    session.model = word(model) or session.model
    session.first_model = session.first_model or session.model


def _item(session: Session, mark: Mark) -> None:
    name = mark.record.name
    if name == "message":
        if mark.record.payload.get("role") == "assistant":
            say(session, mark)
        else:
            hear(session, mark)
    elif name == "reasoning":
        say(session, mark)
    elif not tools.take_item(session, mark):
        session.row(mark)


def _event(session: Session, mark: Mark) -> None:
    record = mark.record
    name = record.name
    if name in SAID:
        say(session, mark)
    elif name in HEARD:
        hear(session, mark)
    elif name == "task_started":
        session.end, session.end_failure = record, None
        open_turn(session, mark, implicit=False)
    elif name in ("task_complete", "turn_aborted"):
        end_turn(session, mark)
    elif name == "error":
        session.failure = error_of(record.payload)
        fields: dict[str, Any] = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT}
        session.row(mark, Operation.OTHER, error=session.failure, preview=session.failure.message[:PREVIEW], **fields)
    elif name == "thread_settings_applied":
        _use(session, child(record.payload, "thread_settings").get("model"))
        _beside(session, mark)
    elif name in ("context_compacted", "ContextCompaction") and session.compaction is not None:
        session.also(session.compaction, mark)
        session.compaction = None
    elif not tools.take_event(session, mark):
        session.row(mark)

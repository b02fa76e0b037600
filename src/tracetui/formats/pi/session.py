"""A session while its records come in: which record says what about which span."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from tracetui.formats.lines import Line
from tracetui.formats.pi.branches import Node
from tracetui.formats.pi.known import count_fields
from tracetui.formats.pi.records import FINAL, NOTES, SESSION, At, Record, blocks_of, kind_of, message_of, type_of
from tracetui.formats.pi.rewind import moved
from tracetui.formats.pi.spans import (
    ROLES,
    answer_span,
    answered,
    branch_span,
    call_span,
    command_span,
    compaction_span,
    label_of,
    message_span,
    meta_span,
    response_span,
    unknown_span,
    unsettled,
    usage_span,
)
from tracetui.formats.pi.state import State
from tracetui.formats.scalars import moment, text
from tracetui.formats.tail import object_of
from tracetui.model import PREVIEW

GROUP: Final = 64
"""Notes of the program that are one row."""


class Session(State):
    """A session as `formats.tail` reads it."""

    def take(self, value: Any, line: Line, note: str | None = None) -> None:
        record = object_of(self, value, line, note)
        if record is None:
            return
        self.records += 1
        count_fields(self.facts.strange, record)
        kind, ident = kind_of(record), text(record.get("id"))
        if kind == SESSION and self.facts.head is None:
            self.facts.begin(record)
            self.facts.extent = _extent(line)
            self.copies = self.find_copies(self.facts)
            return
        if ident is None or self.tree.get(ident) is not None:  # v1, or written twice
            ident = None
        elif "parentId" in record:
            moved(self, record["parentId"], ident, line.number)
        self.facts.take(record, self.ident_of(record, line))
        self.own = None
        _TAKE.get(kind, Session._other)(self, record, line)
        if ident is not None:
            self.tree.append(ident, Node(self.tree.leaf, self.top, self.own))

    # ---- kinds of records

    def _message(self, record: Record, line: Line) -> None:
        role = message_of(record).get("role")
        ident, at = self.ident_of(record, line), At((_extent(line),))
        if role == "assistant":
            self._response(record, line)
        elif role == "toolResult":
            self._answer(record, line)
        elif role == "bashExecution":
            self.put(command_span(record, ident, at))
        elif isinstance(role, str) and role in ROLES:
            if role == "user":
                self.settle()
            self.put(message_span(record, ident, ROLES[role], at))
        else:
            name = f"message {role}" if isinstance(role, str) and role else "message"
            self.put(unknown_span(record, ident, name, at))

    def _response(self, record: Record, line: Line) -> None:
        self.settle()
        self.steps += 1
        span = response_span(record, self.ident_of(record, line), At((_extent(line),)))
        span = self.put(replace(span, step=self.steps, is_step=True))
        written, called = moment(record.get("timestamp")), []
        for place, block in enumerate(blocks_of(message_of(record).get("content"))):
            if type_of(block) != "toolCall":
                continue
            ident, name = text(block.get("id")), f"l{line.number}.{place}"
            at = At((_extent(line),), block=place)
            if ident is None:
                self.problem(line.number, "a tool call without an id: its answer cannot be told")
                call = unsettled(call_span(block, span, written, name, at))
                self.spans[call.id] = call
                continue
            taken = ident == span.id or self.is_taken(ident)
            call = call_span(block, span, written, name if taken else ident, at)
            self.calls[ident] = self.spans[call.id] = call
            called.append(ident)
        self.waiting = self.below[span.id] = tuple(called)
        if span.status_word in FINAL:  # cut off before anything was called
            self.settle()

    def _answer(self, record: Record, line: Line) -> None:
        ident = text(message_of(record).get("toolCallId"))
        call = None if ident is None else self.calls.get(ident)
        if call is None or ident is None:
            shown = "without an id" if ident is None else repr(ident[:PREVIEW])
            self.problem(line.number, f"an answer, but there is no call {shown}")
            self.put(answer_span(record, self.ident_of(record, line), At((_extent(line),))))
            return
        self.group = None
        self.waiting = tuple(one for one in self.waiting if one != ident)
        call = answered(call, record, _extent(line))
        if self.facts.copying and self.copies.count_elsewhere(text(record.get("id"))):
            call = replace(call, usage=None)
        self.calls[ident] = self.spans[call.id] = call

    def _compaction(self, record: Record, line: Line) -> None:
        self.put(compaction_span(record, self.ident_of(record, line), At((_extent(line),))))

    def _branch_summary(self, record: Record, line: Line) -> None:
        self.put(branch_span(record, self.ident_of(record, line), At((_extent(line),))))

    def _custom_message(self, record: Record, line: Line) -> None:
        self.put(message_span(record, self.ident_of(record, line), ROLES["custom"], At((_extent(line),))))

    def _usage(self, record: Record, line: Line) -> None:
        self.hang(self.paid(usage_span(record, self.ident_of(record, line), At((_extent(line),)))))

    def _other(self, record: Record, line: Line) -> None:
        """Notes of the program, one row for those that follow each other, and records of unknown kinds."""
        ident, at = f"l{line.number}", At((_extent(line),))
        before = self.group
        if kind_of(record) not in NOTES:
            self.hang(unknown_span(record, ident, kind_of(record), at))
        elif before is None or len(before.at.lines) >= GROUP:
            self.group = self.hang(meta_span(record, ident, at))
        else:
            label = label_of(record)
            shown = before.preview if label in before.preview else f"{before.preview}, {label}"[:PREVIEW]
            self.group = self.hang(replace(before, preview=shown, at=At((*before.at.lines, _extent(line)))))


def _extent(line: Line) -> tuple[int, int]:
    """Offset and size in bytes."""
    return line.offset, len(line.data)


_TAKE: Final[dict[str, Callable[[Session, Any, Line], None]]] = {
    "message": Session._message,
    "compaction": Session._compaction,
    "branch_summary": Session._branch_summary,
    "custom_message": Session._custom_message,
    "usage": Session._usage,
}

"""Counting a regular ccpa session without making its spans: typed decoding passes over the long texts.

Regular means that every line is a record of the known kinds and fields, and that every answer finds its call. Of any
other session nothing is counted here: it is read in full, and both ways give the same numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.ccpa.records import At, end_word, first_string, kind_of, whole
from tracetui.formats.ccpa.session import End, Session
from tracetui.formats.ccpa.spans import hook_span, outcome, stopped
from tracetui.formats.counting import Failures, Irregular
from tracetui.formats.decode import strict
from tracetui.formats.lines import batches
from tracetui.formats.tail import MAX_LINE, parse
from tracetui.model import PREVIEW, Operation, Status
from tracetui.model.build import Tally
from tracetui.model.status import status_of
from tracetui.model.tally import keep
from tracetui.sources.base import File

_QUOTE: Final = ord('"')
_FINE: Final = frozenset({"tool_use", "end_turn", "stop_sequence"})

Position = tuple[int, int, int]
"""Where a span stands in pre-order: line of its top span, block of its call, its own line."""
_BELOW_TURN: Final = 1 << 40

_NULL: Final = msgspec.Raw(b"null")
_Int = Annotated[int, msgspec.Meta(ge=-(1 << 53), le=1 << 53)]


class _Block(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = _NULL


class _Effects(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    exit_code: _Int | None = None
    files_read: list[str] = []
    files_written: list[str] = []


class _Turn(msgspec.Struct, gc=False, forbid_unknown_fields=True, tag_field="kind", tag="assistant_turn"):
    v: _Int | None = None
    turn: _Int | None = None
    blocks: list[_Block] = []
    stop_reason: str | None = None


class _Result(msgspec.Struct, gc=False, forbid_unknown_fields=True, tag_field="kind", tag="tool_result"):
    v: _Int | None = None
    turn: _Int | None = None
    tool_use_id: str | None = None
    ok: bool | None = None
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw(b'""')
    side_effects: _Effects | None = None


class _Rare(msgspec.Struct, gc=False, tag_field="kind", tag="session_start"):
    """Kinds of which a session has few: decoded again, in full."""


class _Prompt(_Rare, tag="user_prompt"):
    pass


class _Hook(_Rare, tag="hook_event"):
    pass


class _Skill(_Rare, tag="skill_invocation"):
    pass


class _End(_Rare, tag="session_end"):
    pass


_decode: Final = msgspec.json.Decoder(_Turn | _Result | _Rare | _Prompt | _Hook | _Skill | _End).decode


def count(file: File) -> tuple[Session, Tally]:
    """What the header of a session is made of, and its spans' numbers; see `tracetui.formats.counting.regular`."""
    counter = _Counter(file.path)
    for batch, finished in batches(file, MAX_LINE):
        if finished:
            counter.take(batch)
        else:
            counter.look_ahead(batch)
    if counter.session.start is None:
        raise Irregular
    return counter.session, counter.tallied()


class _Counter:
    """Counts what `ccpa_session` would make spans of."""

    def __init__(self, path: str) -> None:
        self.session = Session(path)
        self.line = 0
        self.turn = _Turn()
        self.turn_line = 0
        self.recent: dict[str, tuple[Position, str]] = {}
        self.waiting: dict[str, tuple[Position, str]] = {}
        self.failures: Failures[Position] = Failures()
        self.tally = Tally()

    def take(self, block: bytes) -> None:
        """Count the records of some finished lines."""
        try:
            if not block.isascii():
                block.decode()
            for line in block[:-1].split(b"\n"):
                if self.session.end is not None:
                    raise Irregular
                self.line += 1
                record = _decode(line)
                if isinstance(record, _Turn):
                    self._turn(record)
                elif isinstance(record, _Result):
                    self._result(record)
                else:
                    self._rare(strict(line))
        except (ValueError, RecursionError):  # what is read leniently, or not at all
            raise Irregular from None

    def look_ahead(self, line: bytes) -> None:
        """Count a last line without newline, if it is a record already."""
        try:
            record, _ = parse(line)
        except FormatError:
            record = None
        if isinstance(record, dict):
            self.take(line + b"\n")
        else:
            raise Irregular

    def tallied(self) -> Tally:
        """The numbers, with the first failed span in the order in which they are shown."""
        tally = self.tally
        self.failures.count(tally)
        if tally.errors:
            self.session.failed = True
        return tally

    def _turn(self, record: _Turn) -> None:
        word, line = record.stop_reason, self.line
        if word not in _FINE and word is not None and status_of(word) is Status.ERROR:
            self.failures.add(
                (line, -1, 0), stopped(word), f"l{line}", self.session.model or "assistant", Operation.CHAT
            )
        calls: dict[str, tuple[Position, str]] = {}
        for place, block in enumerate(record.blocks):
            if block.input is not _NULL:
                strict(bytes(block.input))  # raises for a number that only the lenient decoder reads
            if block.type == "tool_use":
                if block.id is None or block.id in self.waiting or block.id in calls:
                    raise Irregular
                calls[block.id] = ((line, place, 0), block.name or "tool")
                keep(self.tally.tools, calls[block.id][1])
        self.turn, self.turn_line, self.recent = record, line, calls
        self.waiting |= calls
        self.tally.spans += 1 + len(calls)
        self.tally.tool_calls += len(calls)
        self.tally.steps += 1
        self.tally.llm_calls += 1

    def _result(self, record: _Result) -> None:
        call = self.waiting.pop(record.tool_use_id, None) if record.tool_use_id is not None else None
        if call is None or memoryview(record.content)[0] != _QUOTE:
            raise Irregular
        effects = record.side_effects
        if record.ok is False or record.is_error is True or (effects is not None and effects.exit_code):
            fields = {"ok": record.ok, "is_error": record.is_error, "content": strict(bytes(record.content))}
            fields["side_effects"] = None if effects is None else {"exit_code": effects.exit_code}
            error = outcome(fields)[3]
            if error is not None:
                (line, place, _), name = call
                self.failures.add(call[0], error, f"l{line}.{place}", name, Operation.EXECUTE_TOOL)

    def _rare(self, record: dict[str, Any]) -> None:
        session, kind = self.session, kind_of(record)
        if kind == "session_start" and self.line == 1:
            session.start = record
        elif self.line == 1:
            raise Irregular
        elif kind == "session_end":
            self._end(record)
        elif kind == "hook_event":
            self._hook(record)
        elif kind == "user_prompt" and isinstance(record.get("text"), str):
            session.prompt = record["text"][:PREVIEW] if session.prompt is None else session.prompt
            self.tally.spans += 1
        elif kind == "skill_invocation":
            self.tally.spans += 1
        else:
            raise Irregular

    def _end(self, record: dict[str, Any]) -> None:
        if end_word(record) is None:
            raise Irregular
        self.session.end = End(record, self.line, At(0, 0))

    def _hook(self, record: dict[str, Any]) -> None:
        self.tally.spans += 1
        span = hook_span(record, self.line, At(0, 0))
        if span.error is not None:
            self.failures.add(self._above(record, span.step), span.error, span.id, span.name, span.operation)

    def _above(self, record: dict[str, Any], step: int | None) -> Position:
        """Where a hook stands: see `ccpa_session`."""
        ident, here = first_string(record, "tool_use_id"), step is not None and whole(self.turn.turn) == step
        if ident is not None:
            call = self.recent.get(ident) or self.waiting.get(ident)
            if call is None:
                raise Irregular
            return (*call[0][:2], self.line)
        names = (first_string(record, "matcher") or "").split("|")
        calls = [position for position, name in self.recent.values() if name in names] if here else []
        if len(calls) == 1:
            return (*calls[0][:2], self.line)
        return (self.turn_line, _BELOW_TURN, self.line) if here else (self.line, -1, 0)

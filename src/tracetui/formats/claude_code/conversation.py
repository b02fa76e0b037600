"""A conversation while its records come in: which lines are one response, which answer belongs to which call.

A `Conversation` is what must be remembered between two reads: that of the session, or that of one of its sub-agents.
Spans are handed out and forgotten, but for those that may still change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from tracetui.formats.claude_code.branches import ROOT, Node, Trail
from tracetui.formats.claude_code.records import (
    KINDS,
    At,
    Record,
    blocks_of,
    content_of,
    is_answer,
    is_call,
    kind_of,
    role_of,
    spoken,
    type_of,
)
from tracetui.formats.claude_code.spans import (
    ABANDONED,
    SYSTEM,
    answer_span,
    answered,
    call_span,
    hook_span,
    label_of,
    message_span,
    meta_span,
    response_goes_on,
    response_span,
    unknown_span,
    unsettled,
)
from tracetui.formats.layers import Layers
from tracetui.formats.lines import Line
from tracetui.formats.scalars import mapping, text, word
from tracetui.model import COPIED, COUNTED_COPY, PREVIEW, Operation, Problem, Span, Status

GROUP: Final = 64
"""Records of housekeeping that are one row."""


class Copy(NamedTuple):
    """A record was copied from another session."""

    counts: bool
    """No session before this one tells what it cost."""

    @property
    def note(self) -> str:
        """What the notes of its spans say about it."""
        return COUNTED_COPY if self.counts else COPIED


class Place(NamedTuple):
    """The line that is taken in."""

    line: Line
    number: int
    copy: Copy | None

    @property
    def extent(self) -> tuple[int, int]:
        """Offset and size in bytes."""
        return self.line.offset, len(self.line.data)


class Conversation:
    """What is known of a conversation so far. `prefix` makes ids of spans unique, `root` is the span that it is in."""

    def __init__(self, path: str, *, part: str = "", prefix: str = "", root: str | None = None) -> None:
        self.path, self.part, self.prefix, self.root = path, part, prefix, root
        self.spans: dict[str, Span] = {}
        """New and changed spans by id, to be collected by the reader."""
        self.problems: list[Problem] = []
        """New problems, to be collected by the reader."""
        self.steps = 0
        self.top: str | None = root
        """The latest span that is not housekeeping: that hangs below it."""
        self.group: Span | None = None
        """The row of housekeeping that goes on."""
        self.response: str | None = None
        """The latest response."""
        self.waiting: tuple[str, ...] = ()
        """Calls of the latest response without an answer, by id of the call."""
        self.tops: Layers[Span] = Layers()
        """Every prompt, response and the like, by id of the span."""
        self.calls: Layers[Span] = Layers()
        """Every call by its own id."""
        self.below: Layers[tuple[str, ...]] = Layers()
        """Ids of the calls of a response."""
        self.tasks: Layers[str] = Layers()
        """The call that gave a sub-agent its task, by the task."""
        self.agents: Layers[str] = Layers()
        """The call that an agent or a workflow of that id was started by, as its answer tells."""
        self.started: tuple[str, ...] = ()
        """These agents."""
        self.starts = False
        """Whether any agent or workflow was started."""
        self.trail = Trail()

    def copy(self) -> Conversation:
        """A conversation that goes on from here without changing this one; nothing is left to collect in it."""
        made = Conversation.__new__(Conversation)
        made.__dict__.update(self.__dict__)
        made.spans, made.problems = {}, []
        for name in ("tops", "calls", "below", "tasks", "agents", "trail"):
            setattr(made, name, getattr(self, name).copy())
        return made

    def problem(self, line: int, reason: str) -> None:
        """Report one line."""
        self.problems.append(Problem(self.path, f"line {line}", reason))

    def take(self, record: Record, line: Line, copy: Copy | None = None) -> None:
        """Take in one record; what it means for the spans is in `spans` afterwards."""
        place = Place(line, line.number, copy)
        kind, uuid = kind_of(record), text(record.get("uuid"))
        if uuid is not None and uuid in self.trail:  # written twice around a crash
            self._housekeeping(record, place)
            return
        parent = text(record.get("parentUuid")) or text(record.get("logicalParentUuid"))
        is_prompt = kind == "user" and self._is_prompt(record)
        if is_prompt and parent is None and self.root is None:
            parent = ROOT
        if is_prompt and uuid is not None and parent is not None:
            self._rewind(parent, uuid, place)
        _TAKE.get(kind, Conversation._housekeeping)(self, record, place)
        if uuid is not None:
            self.trail.append(Node(uuid, parent, self.top, is_prompt))

    # ---- kinds of records

    def _user(self, record: Record, place: Place) -> None:
        content = content_of(record)
        rest = 0
        for number, block in enumerate(blocks_of(content)):
            if is_answer(block):
                self._answer(block, record, place, number)
            else:
                rest += 1
        if rest or not blocks_of(content):
            said = spoken(content)
            role = role_of(record, said, content)
            if role == "user":
                self._settle()
            self._put(message_span(record, self._ident(record, place), role, said, self._at(place)), place)

    def _is_prompt(self, record: Record) -> bool:
        content = content_of(record)
        if record.get("isMeta") is True or any(map(is_answer, blocks_of(content))):
            return False
        return role_of(record, spoken(content), content) == "user"

    def _assistant(self, record: Record, place: Place) -> None:
        message = mapping(record.get("message"))
        ident = text(message.get("id"))
        span = None if ident is None else self.tops.get(self.prefix + ident)
        if span is None or span.operation is not Operation.CHAT:
            ident = self._ident(record, place) if ident is None or span is not None else self.prefix + ident
            self._settle()
            span = response_span(record, ident, self._at(place))
            if self.root is None:
                self.steps += 1
                span = replace(span, step=self.steps, is_step=True)
        else:
            left = span.parent_id != self.root
            span = response_goes_on(span, record, place.extent)
            span = replace(span, note=ABANDONED) if left else span
        if place.copy is not None:
            span = replace(span, note=place.copy.note, usage=span.usage if place.copy.counts else None)
        self.response = span.id
        self._put(span, place)
        for number, block in enumerate(blocks_of(message.get("content"))):
            if is_call(block):
                self._call(block, record, span, place, number)
            elif is_answer(block):
                self._answer(block, record, place, number)

    def _call(self, block: Record, record: Record, span: Span, place: Place, number: int) -> None:
        ident = text(block.get("id"))
        if ident is None:
            self.problem(place.number, f"a call of {(text(block.get('name')) or 'a tool')[:PREVIEW]} has no id")
        made = self.prefix + ident if ident is not None and self.calls.get(ident) is None else None
        at = replace(self._at(place), block=number)
        call = call_span(block, record, span, made or f"{self.prefix}l{place.number}.{number}", at)
        if ident is None:
            self.spans[call.id] = unsettled(call)
            return
        self.calls[ident] = self.spans[call.id] = call
        self.below[span.id] = (*(self.below.get(span.id) or ()), ident)
        self.waiting = (*self.waiting, ident)
        if (task := text(mapping(block.get("input")).get("prompt"))) is not None:
            self.tasks[task] = ident

    def _answer(self, block: Record, record: Record, place: Place, number: int) -> None:
        ident = text(block.get("tool_use_id"))
        call = None if ident is None else self.calls.get(ident)
        if call is None or ident is None:
            shown = "without an id" if ident is None else repr(ident[:PREVIEW])
            self.problem(place.number, f"an answer, but there is no call {shown}")
            at = replace(self._at(place), block=number)
            self._put(answer_span(block, record, f"{self.prefix}l{place.number}.{number}", at), place)
            self._started(record, ident)
            return
        self.group = None
        self.waiting = tuple(one for one in self.waiting if one != ident)
        self.calls[ident] = self.spans[call.id] = answered(call, block, record, place.extent)
        self._started(record, ident)

    def _started(self, record: Record, ident: str | None) -> None:
        """The answer tells which agent or workflow the call has started."""
        for name in ("agentId", "runId"):
            if (started := text(mapping(record.get("toolUseResult")).get(name))) is not None:
                if name == "agentId" and started not in self.started:
                    self.started = (*self.started, started)
                self.agents[started] = ident or ""
                self.starts = True

    def _system(self, record: Record, place: Place) -> None:
        make = SYSTEM.get(text(record.get("subtype")) or "")
        if make is None:
            self._housekeeping(record, place)
        else:
            self._put(make(record, self._ident(record, place), self._at(place)), place)

    def _attachment(self, record: Record, place: Place) -> None:
        attached = mapping(record.get("attachment"))
        if type_of(attached).startswith("hook_"):
            call = self.calls.get(text(attached.get("toolUseID")) or "")
            self._below(hook_span(record, self._ident(record, place), self._at(place)), call)
        else:
            self._housekeeping(record, place)

    def _housekeeping(self, record: Record, place: Place) -> None:
        """Records that are no part of what was said and done: one row for those that follow each other."""
        kind = kind_of(record)
        if kind not in KINDS:
            self._below(unknown_span(record, f"{self.prefix}l{place.number}", self._at(place)))
            return
        before = self.group
        if before is None or len(before.at.lines) >= GROUP:
            self.group = self._below(meta_span(record, f"{self.prefix}l{place.number}", self._at(place)))
        else:
            label = label_of(record)
            shown = before.preview if label in before.preview else f"{before.preview}, {label}"[:PREVIEW]
            at = replace(before.at, lines=(*before.at.lines, place.extent))
            self.group = self._below(replace(before, preview=shown, at=at))

    # ---- what they have in common

    def _rewind(self, parent: str, uuid: str, place: Place) -> None:
        """A prompt that takes the place of an earlier one: what had followed that one is a branch of its own now."""
        gone = self.trail.leave(parent)
        found = {top: span for top in gone if (span := self.tops.get(top)) is not None and span.parent_id == self.root}
        if not found:
            return
        ident = f"{self.prefix}branch:{uuid}"
        facts = (("went_back_to", None if parent == ROOT else parent), ("went_on_with", uuid))
        for span in found.values():
            self.steps -= span.is_step
            left = replace(span, parent_id=ident, step=None, is_step=False, note=ABANDONED)
            self.tops[span.id] = self.spans[span.id] = left
            for called in self.below.get(span.id) or ():
                if (call := self.calls.get(called)) is not None:
                    self.calls[called] = self.spans[call.id] = replace(call, step=None)
        responses = sum(span.operation is Operation.CHAT for span in found.values())
        self.spans[ident] = Span(
            id=ident,
            name="abandoned branch",
            parent_id=self.root,
            preview=next((span.preview for span in found.values() if span.name == "user"), ""),
            note=f"{responses} responses" if responses != 1 else "1 response",
            at=replace(self._at(place), lines=(), facts=facts),
        )
        self.group = None

    def _settle(self) -> None:
        """The conversation went on: calls without an answer are not running any more."""
        for ident in self.waiting:
            call = self.calls.get(ident)
            if call is not None and call.status is Status.RUNNING:
                self.calls[ident] = self.spans[call.id] = unsettled(call)
        self.waiting = ()

    def _put(self, span: Span, place: Place) -> None:
        """Hand out a span of the conversation itself."""
        known = self.tops.get(span.id)
        note = span.note
        if place.copy is not None and COPIED not in span.notes:
            note = " · ".join(filter(None, (place.copy.note, note)))
        parent = self.root if known is None else known.parent_id
        self.top, self.group = span.id, None
        self.tops[span.id] = self.spans[span.id] = replace(span, parent_id=parent, note=note)

    def _below(self, span: Span, parent: Span | None = None) -> Span:
        """Hand out a span below another, the latest of the conversation if none is given."""
        self.group = None
        parent = parent or (self.tops.get(self.top) if self.top is not None else None)
        ident, step = (self.top, None) if parent is None else (parent.id, parent.step)
        made = self.spans[span.id] = replace(span, parent_id=ident, step=step)
        return made

    def _ident(self, record: Record, place: Place) -> str:
        return self.prefix + (word(record.get("uuid")) or f"l{place.number}")

    def _at(self, place: Place) -> At:
        return At((place.extent,), part=self.part)


_TAKE: Final[dict[str, Callable[[Conversation, Any, Place], None]]] = {
    "user": Conversation._user,
    "assistant": Conversation._assistant,
    "system": Conversation._system,
    "attachment": Conversation._attachment,
}

"""Counting a regular session without making its spans: typed decoding passes over the long texts.

Regular means that there is nothing to mend: no unknown kinds, no ids that come again, no answers without a call. Any
other session is read in full, and both ways give the same numbers.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, Final

import msgspec

from tracetui.formats.counting import Failures, Irregular
from tracetui.formats.decode import strict
from tracetui.formats.lines import lines
from tracetui.formats.pi.count_branches import Branches
from tracetui.formats.pi.facts import Facts
from tracetui.formats.pi.known import count_fields
from tracetui.formats.pi.lean import (
    Answer,
    Asked,
    Chosen,
    Counts,
    Entry,
    Left,
    Note,
    Response,
    Spent,
    Summary,
    Talk,
    lean,
)
from tracetui.formats.pi.originals import copies_of
from tracetui.formats.pi.records import SESSION, kind_of
from tracetui.formats.pi.session import GROUP
from tracetui.formats.pi.spans import outcome, stopped
from tracetui.formats.pi.state import OURS
from tracetui.formats.scalars import between, mapping, moment
from tracetui.formats.tail import MAX_LINE, records_in
from tracetui.model import Error, Operation, Usage
from tracetui.model.build import Tally
from tracetui.model.tally import keep
from tracetui.sources.base import File

_FINE: Final = frozenset({"stop", "toolUse", None})
Place = tuple[str | None, int, int]
"""Where a span comes from: its entry, if that has an id, its line, and the block of a call (-1: none)."""


def count(file: File) -> tuple[Facts, Tally]:
    """What the header of a session is made of, and its spans' numbers; see `tracetui.formats.counting.regular`."""
    counter = _Counter()
    head = next(records_in(file.head, 1), {})
    if kind_of(head) == SESSION:
        facts = Facts()
        facts.begin(head)
        if not copies_of(file, facts).all:
            raise Irregular  # what was copied counts in part
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        if not line.whole or line.skipped:
            raise Irregular
        if line.data:
            counter.take(line.data, line.number)
    return counter.facts, counter.tallied()


class _Counter:
    """Counts what a `Session` would make spans of."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.tally = Tally()
        self.branches = Branches()
        self.moved = False
        """Somebody went back, so that the order of spans is not that of the lines."""
        self.spent = False
        self.calls: dict[str, tuple[Place, str]] = {}
        self.answered: set[str] = set()
        self.failures: Failures[Place] = Failures()
        self.last_time: str | None = None
        self.last: tuple[Response, str] | None = None
        """The response that was the last thing that was said and done."""
        self.group = self.line = 0
        self.entry: str | None = None
        self.counts = [0, 0, 0, 0, 0]
        self.told = [False] * 5
        self.costs: list[tuple[Place, float]] = []
        self.responses: list[str] = []

    def take(self, data: bytes, number: int) -> None:
        """Count one entry."""
        self.line = number
        if self.facts.head is None:
            self._begin(mapping(strict(data)))
            return
        entry: Entry = lean(data, self.facts.strange)
        self._follow(entry)
        self._time(entry.timestamp)
        if isinstance(entry, Talk):
            self._said(entry.message)
        elif isinstance(entry, Note):
            if isinstance(entry, Chosen):
                self.facts.told_model = self.facts.told_model or entry.model_id or None
            self.tally.spans += not 0 < self.group < GROUP
            self.group = self.group + 1 if self.group < GROUP else 1
        else:
            self._other(entry)

    def tallied(self) -> Tally:
        """The numbers, when all entries were taken in."""
        facts, tally = self.facts, self.tally
        if self.last_time is not None:
            facts.time(moment(self.last_time))
        if self.last is not None:
            response, ident = self.last
            message = {"role": "assistant", "model": response.model, "stopReason": response.stop_reason}
            facts.end({"type": "message", "message": message | {"errorMessage": response.error_message}}, ident)
        if not between(facts.first, facts.last):
            raise Irregular
        if self.moved:
            self._arrange()
        given, made, read, written, thought = (
            count if told else None for count, told in zip(self.counts, self.told, strict=True)
        )
        cost = reduce(add, [cost for _, cost in self.costs]) if self.costs else None
        tally.usage = Usage(given, made, None, read, written, thought, cost)
        self.failures.count(tally, lambda place: self.branches.place(*place))
        return tally

    def _arrange(self) -> None:
        """Put what was found into the order of the spans: abandoned branches stand where they were left."""
        branches, tally = self.branches, self.tally
        if self.spent:  # stands below a span that may be in another branch than its own entry
            raise Irregular
        tally.spans += len(branches.opened)
        tally.steps -= sum(one in branches.gone for one in self.responses)
        self.costs.sort(key=lambda item: branches.place(*item[0]))

    # ---- what all entries have

    def _begin(self, record: dict[str, Any]) -> None:
        if kind_of(record) != SESSION:
            raise Irregular
        count_fields(self.facts.strange, record)
        self.facts.begin(record)

    def _follow(self, entry: Entry) -> None:
        """Find out which entry it follows."""
        ident, parent, branches = entry.id or None, entry.parent_id, self.branches
        self.entry = ident
        if ident is None:
            return
        if ident in branches.parents or ident in self.calls or ident.startswith(OURS):
            raise Irregular
        if branches.append(ident, branches.leaf if parent is msgspec.UNSET else parent, self.line):
            self.moved = True
            self.group = 0

    def _time(self, when: str | None) -> None:
        if self.facts.forked is None or self.facts.copying:
            self.facts.time(moment(when))
        elif when is not None:
            if not when.endswith("Z"):
                raise Irregular
            self.last_time = when

    # ---- kinds of entries

    def _said(self, message: Asked | Response | Answer) -> None:
        if isinstance(message, Answer):
            self._answer(message)
            self.last = None
            return
        self._top()
        if isinstance(message, Response):
            self._response(message)
            self.last = message, self._ident()
            return
        self.last = None
        if self.facts.prompt is None:
            content = message.content
            if not isinstance(content, str):
                content = "\n".join([one.text for one in content if one.type == "text" and one.text is not None])
            if said := content.strip():
                self.facts.asked(said)

    def _response(self, message: Response) -> None:
        tally, word, model = self.tally, message.stop_reason or None, message.model or None
        tally.steps += 1
        tally.llm_calls += 1
        if self.entry is not None:
            self.responses.append(self.entry)
        if model is not None:
            keep(tally.models, model)
        if self.facts.used_model is None:
            self.facts.answers(model, word)
        self._use(message.usage)
        if word not in _FINE:
            error = stopped({"stopReason": word, "errorMessage": message.error_message})[2]
            self._fail((self.entry, self.line, -1), error, self._ident(), model or "assistant", Operation.CHAT)
        if isinstance(message.content, str):
            return
        for place, block in enumerate(message.content):
            if block.type == "toolCall":
                self._call(block.id, block.name or "tool", place)

    def _call(self, ident: str | None, name: str, place: int) -> None:
        if not ident or ident in self.calls or ident in self.branches.parents or ident.startswith(OURS):
            raise Irregular
        self.calls[ident] = (self.entry, self.line, place), name
        keep(self.tally.tools, name)
        self.tally.tool_calls += 1
        self.tally.spans += 1

    def _answer(self, message: Answer) -> None:
        ident = message.tool_call_id
        call = self.calls.get(ident) if ident is not None else None
        if call is None or ident is None or ident in self.answered:
            raise Irregular
        self.answered.add(ident)
        self.group = 0
        code = message.details.exit_code if message.details is not None else None
        if message.is_error is True or code:
            told = {"content": strict(bytes(message.content)), "isError": message.is_error}
            error = outcome(told | {"details": {"exitCode": code}})[2]
            self._fail(call[0], error, ident, call[1], Operation.EXECUTE_TOOL)

    def _other(self, entry: Entry) -> None:
        """What an extension says, summaries, and usage outside of the conversation."""
        if isinstance(entry, Spent):
            self.spent = True
            self.tally.spans += 1
            self.group = 0
            if entry.model:
                keep(self.tally.models, entry.model)
        else:
            self._top()
        if isinstance(entry, Summary):
            self._use(entry.usage)
        if isinstance(entry, Left) or not isinstance(entry, Summary):
            self.last = None

    # ---- what they have in common

    def _top(self) -> None:
        self.tally.spans += 1
        self.group = 0
        if self.entry is not None:
            self.branches.own.add(self.entry)

    def _ident(self) -> str:
        return self.entry or f"l{self.line}"

    def _use(self, usage: Counts | None) -> None:
        """Add what was used, unless another session paid for it."""
        if usage is None or self.facts.copying:
            return
        given, read, written = usage.input, usage.cache_read, usage.cache_write
        known = [one for one in (given, read, written) if one is not None]
        for place, one in enumerate((sum(known) if known else None, usage.output, read, written, usage.reasoning)):
            if one is not None:
                self.counts[place] += one
                self.told[place] = True
        cost = usage.cost.total if usage.cost is not None else None
        if cost is not None:
            self.costs.append(((self.entry, self.line, -1), cost))

    def _fail(self, place: Place, error: Error | None, ident: str, name: str, operation: Operation) -> None:
        if error is not None:
            self.failures.add(place, error, ident, name, operation)

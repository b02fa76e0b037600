"""Counting a regular session without making its spans: typed decoding passes over the long texts.

Regular means that there is nothing to mend: each event is of a known kind and says whose it is, each result has a call
that began, each response has a turn. Any other session is read in full, and both ways give the same numbers.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.copilot.count_state import Bill, Call, Open, Position
from tracetui.formats.copilot.lean import (
    CLOSED,
    NULL,
    Agent,
    Begun,
    Ended,
    Event,
    Heard,
    Pair,
    Rare,
    Said,
    TurnEnd,
    TurnStart,
    Used,
    kind_of,
    lean,
)
from tracetui.formats.copilot.pairs import failure_of
from tracetui.formats.copilot.records import event_of
from tracetui.formats.copilot.run import header_of
from tracetui.formats.copilot.session import Session
from tracetui.formats.copilot.state import MAIN, Talk
from tracetui.formats.copilot.tools import outcome
from tracetui.formats.copilot.turns import error_of
from tracetui.formats.copilot.words import CUT, END, GOES_ON, START
from tracetui.formats.counting import Failures, Irregular
from tracetui.formats.decode import strict
from tracetui.formats.lines import lines
from tracetui.formats.scalars import moment, string, word
from tracetui.formats.tail import MAX_LINE
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Header, Operation, Span, Status
from tracetui.model.build import Tally
from tracetui.model.tally import keep
from tracetui.sources.base import File

_TIME: Final = len("2026-03-02T09:15:00.000Z")


def count(file: File) -> tuple[Header, Tally]:
    """The header of a session and the numbers of its spans; see `tracetui.formats.counting.regular`."""
    counter = _Counter(file.path)
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        if not line.whole or line.skipped:
            raise Irregular
        if line.data:
            counter.take(line.data, line.number)
    return counter.header(file), counter.tally


class _Counter:
    """Counts what a `Session` would make spans of."""

    def __init__(self, path: str) -> None:
        self.session = Session(path)
        """Holds what the header is made of."""
        self.tally = Tally()
        self.main = Open()
        self.talks: dict[str | None, Open] = {None: self.main}
        self.calls: dict[str, Call] = {}
        self.agent_calls: set[str] = set()
        self.pairs: dict[str, tuple[Position, str]] = {}
        self.paid: set[tuple[str, int]] = set()
        self.bill = Bill()
        self.failures: Failures[Position] = Failures()
        self.begun = self.ended = ""
        """The latest times at which something began, and at which something ended."""
        self.agents_end = 0.0
        self.line, self.data, self.time = 0, b"", ""
        self.ways: dict[type, Any] = {
            TurnStart: self._turn,
            TurnEnd: self._turn_end,
            Used: self._used,
            Said: self._said,
            Heard: self._heard,
            Begun: self._begun,
            Ended: self._ended,
        }
        self.ways |= {made: self.ways[event] for made, event in CLOSED.items() if event in self.ways}

    def take(self, data: bytes, line: int) -> None:
        """Count one event."""
        event: Event = lean(data, self.session.strange)
        self.line, self.data, self.time = line, data, event.timestamp
        if len(self.time) != _TIME or self.time[-1] != "Z":
            raise Irregular
        session, kind = self.session, kind_of(event)
        if session.first is None:
            session.records, session.first = 1, moment(self.time)
            if session.first is None:
                raise Irregular
        if session.end is not None and GOES_ON.fullmatch(kind):
            session.end = None
        way = self.ways.get(type(event))
        if way is None and isinstance(event, Agent):
            self._agent(event)
            return
        talk = self.talks.get(event.agent)
        if talk is None or (event.agent is None and event.data.parent_tool_call_id is not None):
            raise Irregular
        if way is not None:
            way(event, talk)
        elif isinstance(event, Pair):
            self._pair(event, talk)
        elif isinstance(event, Rare):
            self._rare(kind, talk)
        else:
            self._span()

    def header(self, file: File) -> Header:
        """The header; the numbers are whole then."""
        session, tally, main = self.session, self.tally, self.main
        session.ledger = msgspec.structs.replace(session.ledger, open=self.bill.stretch)
        session.put(MAIN, Talk(failure=main.failure, failed=main.failed, stopped=main.stopped))
        last = moment(self.begun)
        if session.start is None:
            raise Irregular
        if session.end is not None and (
            last is None or self.ended >= self.begun or self.agents_end > last - 0.001
        ):  # what ended last is known to a fraction of a millisecond only by its length
            raise Irregular
        tally.first_start, tally.last_end = session.first, last
        tally.usage = self.bill.usage
        self.failures.count(tally)
        return header_of(session, file)

    # ---- spans

    def _span(self) -> None:
        """One more, which begins now."""
        self.tally.spans += 1
        self.begun = max(self.begun, self.time)

    def _end(self) -> None:
        """One ends now."""
        self.ended = max(self.ended, self.time)

    def _fail(self, at: Position, error: Error | None, name: str, operation: Operation, suffix: str = "") -> Span:
        error = error or Error("")
        ident = f"l{at[-1]}{suffix}"
        self.failures.add(at, error, ident, name[:PREVIEW], operation)
        return Span(id=ident, name=name[:PREVIEW], operation=operation)

    def _model(self, talk: Open, model: str | None) -> None:
        if model and model != "auto":
            talk.model = model
            if talk is self.main and self.session.model is None:
                self.session.model = model

    # ---- turns, messages, responses

    def _turn(self, event: TurnStart, talk: Open) -> None:
        talk.leave()
        self._span()
        self.tally.steps += talk is self.main
        talk.turn = (*talk.at, self.line)

    def _turn_end(self, event: TurnEnd, talk: Open) -> None:
        if talk.turn is None:
            self._span()
            return
        self._end()
        if talk.stopped is None and talk.failure is not None:
            self._fail(talk.turn, talk.failure, "turn", Operation.TURN, "t")
        talk.leave()

    def _heard(self, event: Heard, talk: Open) -> None:
        self._span()
        if talk is self.main and event.data.source in (None, "", "user"):
            talk.failure = talk.failed = talk.stopped = None
            if self.session.prompt is None and (said := event.data.content.strip()):
                self.session.prompt = said[:PREVIEW]

    def _said(self, event: Said, talk: Open) -> None:
        data = event.data
        self._model(talk, data.model)
        call = data.api_call_id or None
        if talk.is_of(call, else_=not talk.spoke):
            talk.call = talk.call or call
            if talk.model is not None and not talk.named:
                raise Irregular
        elif talk.turn is None and talk is self.main:
            raise Irregular
        else:
            self._respond(talk, call)
            self._span()
        talk.spoke = True
        talk.failure = talk.failed = talk.stopped = None
        made, known = data.output_tokens, talk.made
        if not talk.recorded and made is not None and (known is None or made > known):
            talk.made, more = made, made - (known or 0)
            self.bill.say(more)
        for request in data.tool_requests:
            before = self.calls.get(request.tool_call_id)
            if before is not None and before.at is not None:
                raise Irregular
            self.calls[request.tool_call_id] = Call(talk.place)

    def _used(self, event: Used, talk: Open) -> None:
        told = event.data.usage
        self._model(talk, told.model)
        call = told.api_call_id or None
        same = talk.is_of(call, else_=not talk.recorded)
        paid = told.accounting.source_session_id, told.accounting.sequence
        if paid in self.paid or (same and talk.recorded):
            self.paid.add(paid)
            self._span()
            return
        if same:
            raise Irregular
        self.paid.add(paid)
        self.bill.pay(told)
        if (
            told.interaction_type
            and "compaction" in told.interaction_type
            and f"compaction {event.agent}" in self.pairs
        ):
            return
        self._respond(talk, call)
        self.tally.spans += 1
        talk.recorded = True
        if told.duration is None or told.duration < 0:
            self.begun = max(self.begun, self.time)
        else:
            self._end()
        if told.finish_reason in CUT:
            error = Error(f"stopped: {told.finish_reason}", told.finish_reason)
            self._fail((*talk.above, self.line), error, talk.model or "assistant", Operation.CHAT)

    def _respond(self, talk: Open, call: str | None) -> None:
        talk.respond((*talk.above, self.line), call)
        self.tally.llm_calls += 1
        talk.named = talk.model is not None
        if talk.model is not None:
            keep(self.tally.models, talk.model)

    # ---- calls and agents

    def _begun(self, event: Begun, talk: Open) -> None:
        ident = event.data.tool_call_id
        call = self.calls.get(ident)
        if not ident or ident in self.agent_calls or (call is not None and call.at is not None):
            raise Irregular
        if call is None:
            call = self.calls[ident] = Call(None)
        call.name = event.data.tool_name or "tool"
        call.at = (*(talk.above if call.above is None else call.above), self.line)
        self._span()
        self.tally.tool_calls += 1
        keep(self.tally.tools, call.name[:PREVIEW])

    def _ended(self, event: Ended, talk: Open) -> None:
        data = event.data
        self._model(talk, data.model)
        call = self.calls.get(data.tool_call_id)
        if call is None or call.at is None or call.done:
            raise Irregular
        call.done = True
        self._end()
        code = data.shell_execution.exit_code if data.shell_execution is not None else None
        if code is None and data.tool_telemetry is not None and data.tool_telemetry.metrics is not None:
            code = data.tool_telemetry.metrics.exit_code
        if not data.success or code:
            told = outcome(event_of(strict(self.data)).data)
            if told["status"] is Status.ERROR:
                self._fail(call.at, told["error"], call.name, Operation.EXECUTE_TOOL)

    def _agent(self, event: Agent) -> None:
        key, data, kind = event.agent, event.data, kind_of(event)
        talk = self.talks.get(key)
        if not key or key == "main" or (talk is None) != (kind == "subagent.started"):
            raise Irregular
        if talk is None:
            call = self.calls.get(data.tool_call_id or "")
            if call is None or call.at is None or not data.agent_name:
                raise Irregular
            self.agent_calls.add(data.tool_call_id or "")
            talk = self.talks[key] = Open((*call.at, self.line), data.agent_name)
            talk.began = moment(self.time)
            self._span()
        elif kind != "subagent.configured":
            self._agent_end(kind, talk, data.duration_ms)
        self._model(talk, data.model)

    def _agent_end(self, kind: str, talk: Open, took: float | None) -> None:
        if talk.over:
            raise Irregular
        talk.leave()
        talk.over = True
        if took is not None and took >= 0 and talk.began is not None:
            self.agents_end = max(self.agents_end, talk.began + took / 1000)
        if kind == "subagent.failed":
            said = string(event_of(strict(self.data)).data.get("error")) or "failed"
            self._fail(talk.at, Error(said[:MESSAGE_LIMIT]), talk.name, Operation.INVOKE_AGENT, "a")

    # ---- what there is few of

    def _pair(self, event: Pair, talk: Open) -> None:
        kind, data = kind_of(event), event.data
        what = "compaction" if "compaction" in kind else kind.partition(".")[0]
        ident = {"hook": data.hook_invocation_id or "", "permission": data.request_id or ""}.get(what, event.agent)
        key = f"{what} {ident}"
        name = (data.hook_type or "hook") if what == "hook" else what
        if kind.endswith((".start", "_start", ".requested")):
            if key not in self.pairs:
                self._span()
                self.pairs[key] = (*talk.above, self.line), name
            return
        if what == "compaction" and not self.bill.records:
            raise Irregular
        before = self.pairs.pop(key, None)
        if before is None:
            self._span()
        else:
            self._end()
        at, name = before or ((*talk.above, self.line), name)
        if what != "permission" and (data.success is False or data.error != NULL):
            error = failure_of(event_of(strict(self.data)).data)
            if error is not None:
                self._fail(at, error, name, Operation.HOOK if what == "hook" else Operation.OTHER)

    def _rare(self, kind: str, talk: Open) -> None:
        told = event_of(strict(self.data))
        data = told.data
        if kind == START and self.session.start is None and talk is self.main:
            self._model(talk, word(data.get("selectedModel")))
            self.session.start = told
            return
        names = {START: "selectedModel", "session.resume": "selectedModel", "session.model_change": "newModel"}
        if kind in (END, "session.resume"):
            for one in self.talks.values():
                one.leave()
            self.pairs = {}
        self._model(talk, word(data.get(names.get(kind, "currentModel" if kind == END else ""))))
        self._span()
        at = (*talk.above, self.line)
        if kind == END:
            self._shut(told, at)
        elif kind in ("session.error", "model.call_failure"):
            error = error_of(data)
            span = self._fail(at, error, kind, Operation.OTHER)
            if kind == "session.error":
                talk.failure, talk.failed = error, span
        elif kind == "abort":
            talk.stopped = (word(data.get("reason")) or "aborted")[:PREVIEW]
            talk.failure = talk.failed = None

    def _shut(self, told: Any, at: Position) -> None:
        session = self.session
        session.ledger = msgspec.structs.replace(session.ledger, open=self.bill.stretch).shut(told.data)
        session.end = told
        self.bill.begin()
        if told.data.get("shutdownType") == "error":
            error = Error((string(told.data.get("errorReason")) or "crashed")[:MESSAGE_LIMIT])
            self.main.failure = error
            self.main.failed = self._fail(at, error, END, Operation.OTHER)

"""A trajectory as a run: its header, its spans, and its run body."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from tracetui.formats.document import Record
from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import task_key
from tracetui.formats.messages import text_in
from tracetui.formats.scalars import between, child, layout, mapping, natural, text, version, word
from tracetui.formats.swe_agent.records import STEP, Call, Message, Step, Trace, calls_of
from tracetui.formats.swe_agent.report import scores_of
from tracetui.model import (
    MESSAGE_LIMIT,
    PREVIEW,
    Error,
    FirstError,
    Header,
    Operation,
    RunBody,
    Span,
    Status,
    StatusSource,
    Total,
    Usage,
)
from tracetui.sources.base import File

AHEAD: Final = 16  # steps, of which an item of the history may repeat one: SWE-agent asks again three times
Outcome = tuple[Status, StatusSource, Error | None]
_OK: Final = (Status.OK, StatusSource.DERIVED, None)
_OPEN: Final = (Status.RUNNING, StatusSource.DERIVED, None)


class At(Struct, frozen=True, gc=False):
    """What a span is recorded in."""

    step: Record | None = None
    message: Record | None = None
    """A message, or the item of the history that repeats the response of the step."""
    answer: Record | None = None
    call: Call | None = None

    @property
    def size(self) -> int:
        return len(memoryview(self.message.raw)) if self.message else 0


class Turn:
    """A response of the model, its calls, and their answers as they come."""

    def __init__(self, step: Record | None, record: Record | None) -> None:
        self.step, self.record = step, record
        self.message: Message = record.value if record else Message()
        self.calls = calls_of(self.message, step.value if step else None)
        self.answers: dict[int, Record] = {}

    def take(self, record: Record) -> bool:
        """Whether a message answers one of the calls: the one that it names, else the next one."""
        message: Message = record.value
        waiting = [i for i in range(len(self.calls)) if i not in self.answers]
        recorded = self.message.extra.actions is not None  # version 2 of mini-swe-agent, which records the exit code
        if ids := message.tool_call_ids or [one for one in (message.tool_call_id, message.call_id) if one]:
            waiting = [i for i in waiting if self.calls[i].id in ids]
        elif message.extra.interrupt_type is not None or (recorded and message.extra.returncode is None):
            return False
        if waiting and message.author in ("user", "tool") and message.message_type in (None, "observation"):
            return self.answers.setdefault(waiting[0], record) is record
        return False


class Reading:
    """All spans of a trajectory, in the order of its messages; steps that no message repeats where they come."""

    def __init__(self, trace: Trace) -> None:
        self.spans: list[Span] = []
        self.responses = self.idle = self.refused = 0
        self.texts: dict[str, str] = {}
        """The last text of the user and of the assistant, and the first of the system."""
        self._model, self._next = trace.model, 0
        self._steps = [] if trace.is_mini else list(trace.outline.records("trajectory", STEP))
        self._turn: Turn | None = None
        for record in trace.messages:
            self._take(record)
        self._close()
        self._until(len(self._steps))

    def _take(self, record: Record) -> None:
        message: Message = record.value
        if message.is_response:
            self._close()
            self._turn = Turn(self._step_of(message), record)
        elif self._turn is None or message.is_demo or not self._turn.take(record):
            self._close(message)
            self.spans.append(_message(record))
            self.refused += message.extra.interrupt_type is not None
            if not message.is_demo and (message.author != "system" or "system" not in self.texts):
                self.texts[message.author or ""] = message.text

    def _step_of(self, message: Message) -> Record | None:
        """The step whose response a message of the history repeats; those before it have no message."""
        for place in range(self._next, min(self._next + AHEAD, len(self._steps))):
            step: Step = self._steps[place].value
            action = (step.action or "").strip()
            alike = bool(action) or text_in(step.response) in (message.text, message.thought)
            if alike and (message.action or "").strip() == action:
                self._until(place)
                self._next = place + 1
                return self._steps[place]
        return None

    def _until(self, end: int) -> None:
        for step in self._steps[self._next : end]:
            self._turn = Turn(step, None)
            self._close()
        self._next = end

    def _close(self, then: Message | None = None) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            self.responses += 1
            self.idle += not turn.calls
            self.spans.append(top := self._response(turn))
            self.spans += [_call(turn, place, top, then) for place in range(len(turn.calls))]

    def _response(self, turn: Turn) -> Span:
        message, record = turn.message, turn.step or turn.record
        step: Step | None = turn.step.value if turn.step else None
        place = record.place + 1 if record else 0
        model = word(mapping(message.extra.response).get("model")) or self._model
        answer = (message.text if step is None else text_in(step.response)).strip()
        self.texts["assistant"] = answer or self.texts.get("assistant", "")
        number = place if step else None if self._steps else self.responses
        return Span(
            id=f"{place}" if step else f"m{place}",
            name=(model or "model")[:PREVIEW],
            operation=Operation.CHAT,
            step=number,
            is_step=number is not None,
            status=Status.OK,
            status_source=StatusSource.DERIVED,
            started_at=message.extra.timestamp,
            usage=_usage(message),
            model=model,
            preview=((step.thought if step else message.thought) or answer).strip()[:PREVIEW],
            at=At(turn.step, turn.record),
        )


def _message(record: Record) -> Span:
    """A message that is no answer; the last one of mini-swe-agent holds the exit status."""
    message: Message = record.value
    author, kind, shown = message.author, message.extra.interrupt_type or "", message.text.strip()
    failed = kind.endswith("Error")
    operation = (
        Operation.MESSAGE if author in ("system", "user", "assistant", "tool") or message.is_demo else Operation.UNKNOWN
    )
    if author == "exit":
        operation, kind = Operation.META, message.extra.exit_status or ""
    return Span(
        id=f"m{record.place + 1}",
        name=(author or message.type or message.object or "?")[:PREVIEW],
        operation=operation,
        status=Status.ERROR if failed else Status.OK,
        status_source=StatusSource.EXPLICIT if failed else StatusSource.DERIVED,
        started_at=message.extra.timestamp,
        error=Error(shown[:MESSAGE_LIMIT], kind) if failed else None,
        preview=shown[:PREVIEW],
        note="demonstration" if message.is_demo else kind[:PREVIEW],
        at=At(message=record),
    )


def _call(turn: Turn, place: int, top: Span, then: Message | None) -> Span:
    """A command. Only its exit code and its exception say that it failed, never what it printed."""
    call, answer, step = turn.calls[place], turn.answers.get(place), turn.step.value if turn.step else None
    status, source, error = _outcome(answer.value if answer else None, step, then)
    end = answer.value.extra.timestamp if answer and len(turn.calls) == 1 else None
    duration = between(top.started_at, end)  # the answers to several calls are written after the last of them
    if step is not None and step.execution_time is not None and 0 <= step.execution_time < 1e9:
        duration = round(step.execution_time * 1000, 3)
    return Span(
        id=f"{top.id}.{place + 1}",
        name=call.name[:PREVIEW],
        operation=Operation.EXECUTE_TOOL,
        parent_id=top.id,
        step=top.step,
        status=status,
        status_source=source,
        started_at=top.started_at,
        duration_ms=duration,
        error=error,
        preview=call.preview[:PREVIEW],
        at=At(turn.step, turn.record, answer, call),
    )


def _outcome(answer: Message | None, step: Step | None, then: Message | None) -> Outcome:
    if step is not None:
        return _OK if step.observation is not None else _OPEN
    if answer is None:  # the command that submits has no other answer
        return _OK if then is not None and then.extra.exit_status == "Submitted" else _OPEN
    more = answer.extra
    if more.exception_info:
        return Status.ERROR, StatusSource.EXPLICIT, Error(more.exception_info.strip()[:MESSAGE_LIMIT])
    if more.returncode:
        printed = more.raw_output if isinstance(more.raw_output, str) else answer.text
        return Status.ERROR, StatusSource.EXIT, Error(printed.strip()[:MESSAGE_LIMIT], f"exit {more.returncode}")
    return _OK if more.returncode is None else (Status.OK, StatusSource.EXIT, None)


def _usage(message: Message) -> Usage | None:
    """What one response used, as the chat API or the Responses API has it: cached input is within the input."""
    used = mapping(message.usage) or child(message.extra.response, "usage")
    given, made = ("prompt", "completion") if "prompt_tokens" in used else ("input", "output")
    found = Usage(
        input_tokens=natural(used.get(f"{given}_tokens")),
        output_tokens=natural(used.get(f"{made}_tokens")),
        cache_read_tokens=natural(child(used, f"{given}_tokens_details").get("cached_tokens")),
        cache_creation_tokens=natural(used.get("cache_creation_input_tokens")),
        reasoning_tokens=natural(child(used, f"{made}_tokens_details").get("reasoning_tokens")),
        cost_usd=message.extra.cost,
    )
    return found or None


def header_of(trace: Trace, file: File, size: int) -> Header:
    """The header. Both programs write the exit status last, and nothing else marks the end of a run.

    ``submitted (exit_cost)`` is a run that was cut off, and what it had changed until then was taken.
    """
    info, stats, problem = trace.about.info, trace.about.info.model_stats, child(trace.config, "problem_statement")
    exit_word = "" if info.exit_status is None else str(info.exit_status)
    status = None if not exit_word else Status.OK if exit_word.lower() == "submitted" else Status.ERROR
    agent = "mini-swe-agent" if trace.is_mini else "SWE-agent"
    messages = [one.value for one in trace.messages if not one.value.is_demo]
    prompt = text(problem.get("text")) or next((one.text for one in messages if one.author == "user"), "")
    stem = PurePath(file.path).name.removesuffix(".json").removesuffix(".traj")
    instance = word(trace.about.instance_id) or word(problem.get("id"))
    name = instance or stem
    why = (info.exception_str or info.traceback or "").strip()[:MESSAGE_LIMIT]
    empty = status is Status.OK and isinstance(info.submission, str) and not info.submission.strip()
    return Header(
        id=name,
        name=name,
        agent=agent,
        model=trace.model,
        status=status,
        status_word=exit_word or None,
        status_source=StatusSource.EXPLICIT if status else None,
        ended=status is not None,
        started_at=next((one.extra.timestamp for one in messages if one.extra.timestamp is not None), None),
        usage=Usage(stats.tokens_sent, stats.tokens_received, cost_usd=stats.instance_cost) or None,
        repeats=task_key(agent, prompt),
        error=FirstError(why, exit_word) if status is Status.ERROR else None,
        prompt=prompt.strip()[:PREVIEW],
        result=f"{exit_word[:PREVIEW]}, nothing" if empty else exit_word[:PREVIEW],
        scores=scores_of(file, name),
        task=instance and instance[:MESSAGE_LIMIT],
        writer=version(info.mini_version, info.swe_agent_version) or layout(trace.about.trajectory_format),
        size=size,
        fields=unknown_fields(trace.outline.unknown),
    )


def run_body(trace: Trace, reading: Reading) -> RunBody:
    """Everything in the document but its steps and messages."""
    stats = trace.about.info.model_stats
    costs = [span.usage.cost_usd for span in reading.spans if span.usage and span.usage.cost_usd is not None]
    totals = list[Total]()
    if (calls := stats.api_calls) is not None:
        # mini-swe-agent keeps no response that it refused, and the last step of SWE-agent may be none
        known = {reading.responses, reading.responses + reading.refused, reading.responses - reading.idle}
        totals.append(Total("api_calls", calls, calls if calls in known else reading.responses))
    if stats.instance_cost is not None and costs:
        same = math.isclose(sum(costs), stats.instance_cost, abs_tol=1e-9)
        totals.append(Total("instance_cost", stats.instance_cost, stats.instance_cost if same else sum(costs)))
    return RunBody(
        output=trace.about.info.submission,
        totals=tuple(totals),
        system_prompt=reading.texts.get("system"),
        last_user=reading.texts.get("user"),
        last_assistant=reading.texts.get("assistant") or None,
        attributes=trace.outline.values(*trace.lists) | trace.outline.rest,
    )

"""The records of a trajectory of SWE-agent or mini-swe-agent, and the trajectory as a run: header, spans, scores,
bodies.

Facts: SWE-agent (``sweagent/types.py``, ``agent/agents.py``, its documentation of output files) from 0.5 to 1.1;
mini-swe-agent (``agents/default.py``, ``models/``, ``run/utils/save.py``) 1 and 2, format ``mini-swe-agent-1.1``.
"""

from __future__ import annotations

import math
import re
from pathlib import PurePath
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct

from tracetui.errors import FormatError
from tracetui.formats.bodies import as_parts, text_in
from tracetui.formats.decode import decode, decode_value
from tracetui.formats.document import Outline, Record
from tracetui.formats.grading import MOST_BYTES, is_environment, plain_name, why_no_test_ran
from tracetui.formats.scalars import (
    between,
    child,
    layout,
    mapping,
    natural,
    sequence,
    string,
    task_key,
    text,
    version,
    without,
    word,
)
from tracetui.formats.schema import NULL, Finite, Integer, Schema, plain, unknown_fields
from tracetui.model import (
    MESSAGE_LIMIT,
    PREVIEW,
    REASON_LIMIT,
    Body,
    Error,
    FirstError,
    Header,
    Operation,
    Reasoning,
    RunBody,
    Score,
    Span,
    Status,
    StatusSource,
    Text,
    Total,
    Usage,
    excerpt,
)
from tracetui.model import Message as ModelMessage
from tracetui.model import ToolCall as CallPart
from tracetui.model.run import EVIDENCE_LIMIT, Evidence, Who
from tracetui.sources.base import File, LinkLost

Content = str | list[Any] | None
_BLOCK: Final = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)


class Extra(Struct, frozen=True, gc=False):
    """Extra fields of mini-swe-agent for a message; version 1 writes none, or the ``response`` alone."""

    other_fields: ClassVar[str] = "exception exception_str exception_type model_response n_actions submission traceback"
    actions: list[Any] | None = None
    """The commands that it found in a response: ``{"command", "tool_call_id"}``."""
    cost: Finite | None = None
    timestamp: Finite | None = None
    """Seconds since the epoch when the message was complete."""
    response: Any = None
    returncode: Integer | None = None
    raw_output: Any = None
    exception_info: str | None = None
    interrupt_type: str | None = None
    exit_status: str | None = None


class Message(Struct, gc=False):
    """A message of mini-swe-agent, or an item of SWE-agent's history.

    One of the Responses API has no role: ``object`` is ``response``, or ``type`` is ``function_call_output``.
    """

    other_fields: ClassVar[str] = (
        "annotations audio background cache_control completed_at created_at error frequency_penalty function_call id "
        "images incomplete_details instructions max_output_tokens max_tool_calls metadata model name output "
        "parallel_tool_calls presence_penalty previous_response_id prompt prompt_cache_key prompt_cache_retention "
        "provider_specific_fields reasoning reasoning_content refusal safety_identifier service_tier status store tags "
        "temperature text thinking_blocks tool_choice tools top_logprobs top_p truncation user"
    )
    role: str | None = None
    object: str | None = None
    type: str | None = None
    content: Content = None
    agent: str | None = None
    message_type: str | None = None
    is_demo: bool | None = None
    thought: str | None = None
    action: str | None = None
    tool_calls: list[Any] | None = None
    tool_call_ids: list[str] | None = None
    tool_call_id: str | None = None
    call_id: str | None = None
    output: Raw = NULL
    usage: Any = None
    extra: Extra = Extra()

    @property
    def author(self) -> str | None:
        """Its role; None for a message of an unknown kind."""
        if self.role is not None:
            return self.role
        return "assistant" if self.object == "response" else "tool" if self.type == "function_call_output" else None

    @property
    def is_response(self) -> bool:
        """Whether the model answered this now: a demonstration was written before."""
        return self.author == "assistant" and not self.is_demo

    @property
    def text(self) -> str:
        return text_in(self.content) or responded(plain(self.output))


class Step(Struct, gc=False):
    """A step of SWE-agent: a response, the command in it, and its output."""

    other_fields: ClassVar[str] = "extra_info messages output query state"
    action: str | None = None
    observation: Content = None
    response: Content = None
    thought: str | None = None
    execution_time: Finite | None = None
    """Seconds that the command took."""


class Stats(Struct, frozen=True, gc=False):
    """Of this run; ``total_cost`` is that of all that the process ran until then."""

    other_fields: ClassVar[str] = "total_cost"
    instance_cost: Finite | None = None
    tokens_sent: Integer | None = None
    tokens_received: Integer | None = None
    api_calls: Integer | None = None


class Info(Struct, frozen=True, gc=False):
    other_fields: ClassVar[str] = (
        "edited_files30 edited_files50 edited_files70 review summarizer swe_agent_hash swe_rex_hash swe_rex_version"
    )
    exit_status: str | int | None = None
    model_stats: Stats = Stats()
    config: Any = None
    mini_version: str | None = None
    swe_agent_version: str | None = None
    submission: Any = None
    exception_str: str | None = None
    traceback: str | None = None


class Document(Struct, gc=False):
    other_fields: ClassVar[str] = "attempts environment history messages trajectory"
    info: Info = Info()
    replay_config: Any = None
    """The configuration of SWE-agent, as an object or as JSON text."""
    instance_id: str | None = None
    trajectory_format: str | None = None


MESSAGE: Final = Schema[Message](Message)
STEP: Final = Schema[Step](Step)
DOCUMENT: Final = Schema[Document](Document)


class Trace:
    """A trajectory, decoded as it is asked for: steps and history of SWE-agent, or the messages of mini-swe-agent."""

    def __init__(self, data: bytes, path: str) -> None:
        """Raises `FormatError` unless it is an object or a list of messages."""
        if data.lstrip()[:1] == b"[":  # version 1 of mini-swe-agent could write the messages alone
            decode(data)
            data = b'{"messages":%b}' % data
        self.outline = Outline(data, path)
        self.is_mini = "messages" in self.outline.fields and not {"trajectory", "history"} & self.outline.fields.keys()
        self.lists = ("messages",) if self.is_mini else ("trajectory", "history")
        self.about = self.outline.record(DOCUMENT, *self.lists)
        given = self.about.replay_config
        self.config = mapping(decode_value(given) if isinstance(given, str) else given or self.about.info.config)
        """The configuration of either program."""
        model = child(self.config, "model") or child(child(self.config, "agent"), "model")
        self.model = word(model.get("model_name")) or word(model.get("name"))
        self.messages = list(self.outline.records(self.lists[-1], MESSAGE))


class Call(Struct, frozen=True, gc=False):
    name: str
    arguments: Any
    preview: str
    id: str | None = None


def calls_of(message: Message | None, step: Step | None) -> list[Call]:
    """The commands of a response: as the step has it, as mini-swe-agent found them, or as the model asked for them.

    Version 1 of mini-swe-agent does not record which command it found: the only fenced block, by its own rule.
    """
    message = message or Message()
    asked = [call for call in message.tool_calls or () if isinstance(call, dict)]
    action = message.action if step is None else step.action or ""
    if action is not None:
        return [_call_of(action, asked[0] if asked else {})] if action.strip() else []
    if message.extra.actions is not None:
        names = {string(call.get("id")): child(call, "function").get("name") for call in asked}
        commands = [
            (string(call.get("command")) or "", call.get("tool_call_id"))
            for call in map(mapping, message.extra.actions)
        ]
        return [Call(word(names.get(string(i))) or "bash", {"command": c}, c.strip(), string(i)) for c, i in commands]
    if asked:
        return [_call_of("", call) for call in asked]
    blocks = [] if message.agent is not None else _BLOCK.findall(text_in(message.content))
    return [Call("bash", {"command": blocks[0]}, blocks[0].strip())] if len(blocks) == 1 else []


def _call_of(action: str, asked: dict[str, Any]) -> Call:
    """A command, and the call of a tool that it was made of. SWE-agent's commands begin with the name of their tool."""
    given = child(asked, "function").get("arguments")
    arguments = decode_value(given) if isinstance(given, str) else given
    preview = action or next((value for value in mapping(arguments).values() if isinstance(value, str)), "")
    name = word(child(asked, "function").get("name")) or next(iter(action.split(maxsplit=1)), "bash")
    return Call(name, action if arguments is None else arguments, preview.strip(), string(asked.get("id")))


def responded(output: Any) -> str:
    """The text of ``output`` of the Responses API: that of an answer, or of the messages in a response."""
    items = [{"content": output}] if isinstance(output, str) else output if isinstance(output, list) else []
    return "\n".join(filter(None, (text_in(mapping(item).get("content")) for item in items)))


AHEAD: Final = 16  # steps, of which an item of the history may repeat one: SWE-agent asks again three times
Outcome = tuple[Status, StatusSource, Error | None]
_OK: Final = (Status.OK, StatusSource.DERIVED, None)
_OPEN: Final = (Status.RUNNING, StatusSource.DERIVED, None)


class SpanRef(Struct, frozen=True, gc=False):
    """The records of a span."""

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
        if ids := message.tool_call_ids or [call_id for call_id in (message.tool_call_id, message.call_id) if call_id]:
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
        """The step with the response that a message of the history repeats; skipped steps have no message."""
        for index in range(self._next, min(self._next + AHEAD, len(self._steps))):
            step: Step = self._steps[index].value
            action = (step.action or "").strip()
            alike = bool(action) or text_in(step.response) in (message.text, message.thought)
            if alike and (message.action or "").strip() == action:
                self._until(index)
                self._next = index + 1
                return self._steps[index]
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
            self.spans += [_call(turn, index, top, then) for index in range(len(turn.calls))]

    def _response(self, turn: Turn) -> Span:
        message, record = turn.message, turn.step or turn.record
        step: Step | None = turn.step.value if turn.step else None
        index = record.index + 1 if record else 0
        model = word(mapping(message.extra.response).get("model")) or self._model
        answer = (message.text if step is None else text_in(step.response)).strip()
        self.texts["assistant"] = answer or self.texts.get("assistant", "")
        number = index if step else None if self._steps else self.responses
        return Span(
            id=f"{index}" if step else f"m{index}",
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
            at=SpanRef(turn.step, turn.record),
        )


def _message(record: Record) -> Span:
    """A message that is no answer; the last one of mini-swe-agent has the exit status."""
    message: Message = record.value
    author, kind, text = message.author, message.extra.interrupt_type or "", message.text.strip()
    failed = kind.endswith("Error")
    operation = (
        Operation.MESSAGE if author in ("system", "user", "assistant", "tool") or message.is_demo else Operation.UNKNOWN
    )
    if author == "exit":
        operation, kind = Operation.META, message.extra.exit_status or ""
    return Span(
        id=f"m{record.index + 1}",
        name=(author or message.type or message.object or "?")[:PREVIEW],
        operation=operation,
        status=Status.ERROR if failed else Status.OK,
        status_source=StatusSource.EXPLICIT if failed else StatusSource.DERIVED,
        started_at=message.extra.timestamp,
        error=Error(excerpt(text), kind) if failed else None,
        preview=text[:PREVIEW],
        note="demonstration" if message.is_demo else kind[:PREVIEW],
        at=SpanRef(message=record),
    )


def _call(turn: Turn, index: int, top: Span, then: Message | None) -> Span:
    """A command. Its failure depends only on its exit code and exception, not on its output."""
    call, answer, step = turn.calls[index], turn.answers.get(index), turn.step.value if turn.step else None
    status, source, error = _outcome(answer.value if answer else None, step, then)
    end = answer.value.extra.timestamp if answer and len(turn.calls) == 1 else None
    duration = between(top.started_at, end)  # the answers to several calls are written after the last of them
    if step is not None and step.execution_time is not None and 0 <= step.execution_time < 1e9:
        duration = round(step.execution_time * 1000, 3)
    return Span(
        id=f"{top.id}.{index + 1}",
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
        at=SpanRef(turn.step, turn.record, answer, call),
    )


def _outcome(answer: Message | None, step: Step | None, then: Message | None) -> Outcome:
    if step is not None:
        return _OK if step.observation is not None else _OPEN
    if answer is None:  # the command that submits has no other answer
        return _OK if then is not None and then.extra.exit_status == "Submitted" else _OPEN
    more = answer.extra
    if more.exception_info:
        return Status.ERROR, StatusSource.EXPLICIT, Error(excerpt(more.exception_info.strip()))
    if more.returncode:
        printed = more.raw_output if isinstance(more.raw_output, str) else answer.text
        return Status.ERROR, StatusSource.EXIT, Error(excerpt(printed.strip()), f"exit {more.returncode}")
    return _OK if more.returncode is None else (Status.OK, StatusSource.EXIT, None)


def _usage(message: Message) -> Usage | None:
    """The usage of one response, in the chat API or the Responses API: input includes cached input."""
    used = mapping(message.usage) or child(message.extra.response, "usage")
    prompt, completion = ("prompt", "completion") if "prompt_tokens" in used else ("input", "output")
    usage = Usage(
        input_tokens=natural(used.get(f"{prompt}_tokens")),
        output_tokens=natural(used.get(f"{completion}_tokens")),
        cache_read_tokens=natural(child(used, f"{prompt}_tokens_details").get("cached_tokens")),
        cache_creation_tokens=natural(used.get("cache_creation_input_tokens")),
        reasoning_tokens=natural(child(used, f"{completion}_tokens_details").get("reasoning_tokens")),
        cost_usd=message.extra.cost,
    )
    return usage or None


def header_of(trace: Trace, file: File, size: int) -> Header:
    """The header. Both programs write the exit status last, and nothing else marks the end of a run.

    ``submitted (exit_cost)`` is a run that was cut off, with the changes until then.
    """
    info, stats, problem = trace.about.info, trace.about.info.model_stats, child(trace.config, "problem_statement")
    exit_word = "" if info.exit_status is None else str(info.exit_status)
    status = None if not exit_word else Status.OK if exit_word.lower() == "submitted" else Status.ERROR
    agent = "mini-swe-agent" if trace.is_mini else "SWE-agent"
    messages = [message.value for message in trace.messages if not message.value.is_demo]
    prompt = text(problem.get("text")) or next((message.text for message in messages if message.author == "user"), "")
    stem = PurePath(file.path).name.removesuffix(".json").removesuffix(".traj")
    instance = word(trace.about.instance_id) or word(problem.get("id"))
    name = instance or stem
    why = excerpt((info.exception_str or info.traceback or "").strip())
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
        started_at=next((message.extra.timestamp for message in messages if message.extra.timestamp is not None), None),
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
        counts = {reading.responses, reading.responses + reading.refused, reading.responses - reading.idle}
        totals.append(Total("api_calls", calls, calls if calls in counts else reading.responses))
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


# ---- evaluation report

_LARGEST: Final = 4 << 20
_ID: Final = re.compile(r"\w[\w.+-]{0,199}")
"""An instance id that can name a folder."""
_UNRESOLVED: Final = ("unresolved_ids", "empty_patch_ids", "completed_ids")
_COUNTED: Final = ("FAIL_TO_PASS", "PASS_TO_PASS")
"""Tests that must succeed; the harness runs others as well."""
_RULE: Final = "passed if resolved_ids lists the instance, failed if only the other lists of evaluated ones do"


_PATCH_RULE: Final = "failed: the patch does not apply"
_MARK: Final = re.compile(
    r"(?P<refused>>>>>> Patch Apply Failed)|(?P<applied>>>>>> Applied Patch)"
    r"|>>>>> (?:Tests Timed Out|Tests Errored|Init Failed|Reset Failed)"
    r"|\bTest timed out after \d+ seconds|\bTimeout error: \d+ seconds exceeded"
    r"|(?P<environment>\bBuildImageError\b.*|\bError (?:building image|creating container)\b.*)"
)
"""The marks of the SWE-bench harness in its logs; the last one decides."""
_STAMP: Final = re.compile(r"^\d{4}-\d\d-\d\d \S+ - [A-Z]+ - ")


def scores_of(file: File, instance: str) -> tuple[Score, ...]:
    """Whether a report next to the trajectory lists `instance` as resolved; the first match counts.

    Ignores a missing, too large or unreadable report. Raises `LinkLost`. Facts: the SWE-bench harness writes
    ``report.json`` per instance, ``{INSTANCE: {"resolved", "tests_status"}}``; its experiments repository has it in
    ``logs/INSTANCE/`` next to ``trajs``. SWE-agent (``swe_bench_evaluate.py``) moves the report of all instances, lists
    of their ids, to ``results.json`` in its output folder, the parent of the trajectory's; its inspector reads one next
    to the trajectory. The logs of the harness, beside ``report.json``, say whether a run that is not resolved was
    graded: an instance that is only among ``error_ids`` is not, unless its patch did not apply.
    """
    if not _ID.fullmatch(instance):
        return ()
    score, has_run = None, False
    for path in ("report.json", f"../logs/{instance}/report.json", "results.json", "../results.json"):
        report = _report(file, path)
        score = _score(path, report, instance)
        if score is not None:
            has_run = bool(_tests(mapping(report.get(instance)), "success"))
            break
    if score is None or not (score.passed or has_run):
        for folder in ("", f"../logs/{instance}/"):
            logged = _logged(file, folder, score)
            if logged is not None:
                return (logged,)
    return () if score is None else (score,)


def _logged(file: File, folder: str, score: Score | None) -> Score | None:
    """What the logs in a folder say of a run that is `score` by its report; None if nothing."""
    for name in ("run_instance.log", "test_output.txt"):
        place = folder + name
        log = _text(file, place)
        for number, line in reversed(list(enumerate(log.split("\n")))):
            mark = _MARK.search(line[:PREVIEW])
            where = f"{place} line {number + 1}"
            if mark is None and not is_environment(line):
                continue
            if mark is not None and mark["applied"]:
                break
            if mark is not None and mark["refused"]:
                refused = Evidence(mark[0][:EVIDENCE_LIMIT], where)
                return Score("resolved", False, False, where, _PATCH_RULE, reason=mark[0], evidence=refused)
            who = Who.GRADER if mark is not None and not mark["environment"] else Who.ENVIRONMENT
            reason_text = _STAMP.sub("", line) if mark is None else mark[0]
            return _ungraded(score, Evidence(reason_text.strip()[:EVIDENCE_LIMIT], where, who))
        reason = why_no_test_ran(log, place) if name == "test_output.txt" else None
        if reason is not None:
            return _ungraded(score, reason)
    return None


def _ungraded(score: Score | None, evidence: Evidence) -> Score:
    if score is None:
        return Score.ungraded("resolved", evidence, source=evidence.place)
    return Score.ungraded("resolved", evidence, value=score.value, source=score.source)


def _text(file: File, path: str) -> str:
    """The text of a log, empty if it cannot be read; of one longer than `MOST_BYTES` nothing but its last ones."""
    try:
        with file.other(path) as other:
            size = other.stat.size
            return other.read(max(0, size - MOST_BYTES), MOST_BYTES).decode("utf-8", "replace")
    except LinkLost:
        raise
    except (OSError, FormatError):
        return ""


def _report(file: File, path: str) -> dict[str, Any]:
    try:
        with file.other(path) as other:
            return mapping(decode(other.read_all())[0]) if other.stat.size <= _LARGEST else {}
    except LinkLost:
        raise
    except (OSError, FormatError):
        return {}


def _score(path: str, report: dict[str, Any], instance: str) -> Score | None:
    instance_report = mapping(report.get(instance))
    if isinstance(resolved := instance_report.get("resolved"), bool):
        evidence = None if resolved else _first_failed(instance_report, f"{path} {instance}.tests_status"[:PREVIEW])
        place = f"{path} {instance}.resolved"[:PREVIEW]
        return Score("resolved", resolved, resolved, place, reason=_failures(instance_report), evidence=evidence)
    if instance in sequence(report.get("resolved_ids")):
        resolved = True
    elif "resolved_ids" in report and any(instance in sequence(report.get(name)) for name in _UNRESOLVED):
        resolved = False
    else:
        return None
    return Score("resolved", resolved, resolved, f"{path} resolved_ids", _RULE)


def _tests(instance_report: dict[str, Any], result: str) -> list[str]:
    groups = (mapping(mapping(instance_report.get("tests_status")).get(name)) for name in _COUNTED)
    return [test for group in groups for test in sequence(group.get(result)) if isinstance(test, str)]


def _first_failed(instance_report: dict[str, Any], place: str) -> Evidence | None:
    tests = _tests(instance_report, "failure")
    return Evidence("", place, check=plain_name(tests[0])) if tests else None


def _failures(instance_report: dict[str, Any]) -> str:
    """The tests that should have succeeded, by the report of one instance."""
    tests = _tests(instance_report, "failure")
    return f"failed tests ({len(tests)}): {', '.join(tests)}"[:REASON_LIMIT] if tests else ""


# ---- bodies

_OF_COMMAND = ("action", "execution_time", "observation", "state")
"""Fields of a step that its command shows."""


def body_of(at: Any) -> Body:
    """Everything about the span that is at `at`. Raises `FormatError` if it is not one of this format."""
    if not isinstance(at, SpanRef):
        raise FormatError("this span comes from another format")
    if at.call is not None:
        return _command(at, at.call)
    return _message_body(at.message) if at.step is None and at.message is not None else _step_body(at)


def _fields(record: Record | None) -> dict[str, Any]:
    return {} if record is None else mapping(plain(record.raw))


def _raw(record: Record | None) -> bytes:
    return b"" if record is None else bytes(record.raw)


def _step_body(at: SpanRef) -> Body:
    """A response of SWE-agent's model; fields only in the history are in ``history``."""
    fields = _fields(at.step)
    response, thought = fields.get("response"), fields.get("thought")
    calls = calls_of(at.message.value if at.message else None, at.step.value if at.step else None)
    parts, rest = as_parts(response)
    excluded = {"response", *(_OF_COMMAND if calls else ()), *(["thought"] if thought == response else [])}
    asked = _conversation(fields.get("query"))
    excluded |= {"query"} if asked else set()
    attributes = without(fields, *excluded) | ({} if rest is None else {"response": rest})
    same = {"content": response, "thought": thought, "action": fields.get("action")}
    more = {name: value for name, value in _fields(at.message).items() if name not in same or value != same[name]}
    attributes |= {"history": more} if more else {}
    answer = (ModelMessage("assistant", (*parts, *(CallPart(call.id, call.name, call.arguments) for call in calls))),)
    return Body(output=response, input_messages=asked, output_messages=answer, attributes=attributes, raw=_raw(at.step))


def _conversation(query: Any) -> tuple[ModelMessage, ...]:
    """The messages sent to a model; none if they have more than roles and texts."""
    messages = []
    for item in query if isinstance(query, list) else ():
        content, role = mapping(item).get("content"), mapping(item).get("role")
        if not isinstance(content, str) or not isinstance(role, str) or len(item) > 2:
            return ()
        messages.append(ModelMessage(role, (Text(content),)))
    return tuple(messages)


def _command(at: SpanRef, call: Call) -> Body:
    """A command with its output."""
    answer = _fields(at.answer)
    if at.step is not None:
        step = _fields(at.step)
        output = step.get("observation")
        attributes = {name: step[name] for name in _OF_COMMAND if name in step and name != "observation"}
        if attributes.get("action") == call.arguments:
            attributes.pop("action", None)
        more = without(answer, "content") if answer.get("content") == output else answer
        attributes |= {"history": more} if more else {}
        return Body(input=call.arguments, output=output, attributes=attributes, raw=_raw(at.step))
    extra = mapping(answer.get("extra"))
    output, attributes = text(extra.get("raw_output")), answer | {"extra": without(extra, "raw_output")}
    if output is None:
        name = "content" if "content" in answer else "output"
        output, attributes = answer.get(name), without(answer, name)
    return Body(input=call.arguments, output=output, attributes=attributes, raw=_raw(at.answer or at.message))


def _message_body(record: Record) -> Body:
    """A message; all fields except its text and calls keep their names."""
    fields, message = _fields(record), record.value
    content, thought = fields.get("content"), text(fields.get("reasoning_content"))
    parts, rest = as_parts(content)
    answered = "" if parts else responded(fields.get("output"))
    parts = [*([Reasoning(thought)] if thought else []), *parts, *([Text(answered)] if answered else [])]
    excluded = [
        "content",
        *(["role"] if string(fields.get("role")) else []),
        *(["reasoning_content"] if thought else []),
    ]
    if fields.get("thought") == content:
        excluded.append("thought")
    attributes = without(fields, *excluded) | ({} if rest is None else {"content": rest})
    shown_text = content if content else answered or None
    if not message.is_response:
        messages = (ModelMessage(message.author or "message", tuple(parts)),) if parts else ()
        return Body(input=shown_text, input_messages=messages, attributes=attributes, raw=_raw(record))
    calls = calls_of(message, None)
    answer = (ModelMessage("assistant", (*parts, *(CallPart(call.id, call.name, call.arguments) for call in calls))),)
    return Body(output=shown_text, output_messages=answer, attributes=attributes, raw=_raw(record))

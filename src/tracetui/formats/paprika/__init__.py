"""Paprika: one agent run as one JSON object, ExecutionRecord v1 and the event file v0 that came before it.

Facts: vaibhavhariram/paprika, and its document "Execution Records": files ``<id>.json``, written once at the end of
the run. A missing ``schema_version`` means v0, a major version above 1 is refused; unknown fields and step types
are preserved.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os.path import basename, splitext
from pathlib import PurePath
from typing import Any, Final

import msgspec
import orjson
from msgspec import Raw

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.decode import top_names
from tracetui.formats.document import Fingerprint, Outline, fingerprint, unchanged
from tracetui.formats.otlp.messages import message_of, part_of
from tracetui.formats.paprika.records import (
    ByteRange,
    DocumentStart,
    Execution,
    ExecutionRecord,
    ModelCall,
    Step,
    Tokens,
    ToolCall,
    Trace,
    Violated,
    first_steps,
    quick_facts,
    ranges_of,
    skim,
    start_of,
    trace_of,
)
from tracetui.formats.scalars import layout, mapping, moment, number, source_in, string, tags_in, zoned
from tracetui.formats.schema import NULL, Unknown, plain, unknown_fields
from tracetui.model import (
    PREVIEW,
    Body,
    Check,
    Error,
    FirstError,
    Header,
    Limit,
    Message,
    Operation,
    Part,
    Problem,
    Reasoning,
    RunBody,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    ToolResult,
    Total,
    Usage,
    status_of,
    text_of,
)
from tracetui.model import ToolCall as Asked
from tracetui.model.build import Tally, summary_of
from tracetui.model.span import STATUS_BY_WORD
from tracetui.sources.base import HEAD_SIZE, File, Stat

_TYPED_ERROR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.]{0,99}(?:Error|Exception|Timeout|Interrupt|Exit))(?::|$)")
_ASKED: Final = ("question", "query", "prompt", "goal", "task", "topic", "message", "text", "input", "q", "url", "path")
"""Names under which the main one of several arguments goes, the likeliest first."""
_NOTHING: Final = Execution()
_OPEN: Final = (None, Status.UNKNOWN)
"""A status without meaning: whether the run ended follows from ``ended_at``. Its default is the word ``unknown``."""
_CHAT: Final = Operation.CHAT
_POLICY: Final = Operation.POLICY
_POLICED: Final = StatusSource.POLICY
_UNKNOWN: Final = Status.UNKNOWN
_OK: Final = Status.OK
_ERROR: Final = Status.ERROR
_EXPLICIT: Final = StatusSource.EXPLICIT
_DERIVED: Final = StatusSource.DERIVED


class SpanRef(msgspec.Struct, frozen=True, gc=False):
    """Location of the records of a step: byte ranges in a version of the file, or the records themselves."""

    version: Stat
    ranges: tuple[ByteRange, ...] = ()
    raws: tuple[msgspec.Raw, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the records."""
        return sum(byte_range.size for byte_range in self.ranges) + sum(memoryview(raw).nbytes for raw in self.raws)


# ---- spans


def spans_of(
    trace: Trace, ranges: Sequence[ByteRange], version: Stat, which: range, *, previews: bool = True
) -> Iterator[Span]:
    """The spans of these steps. Without `ranges`, their bodies come from the records themselves."""
    broken = failing_step(trace.facts, trace.steps)
    at = SpanRef(version)
    for i in which:
        if ranges:
            at = SpanRef(version, tuple([ranges[record] for record in trace.groups[i]]))
        elif trace.records:
            at = SpanRef(version, (), tuple([trace.records[record] for record in trace.groups[i]]))
        cause = error_of(trace.facts.error) if i == broken else None
        yield _span(trace.steps[i], i, cause, at, previews)


def _span(step: Step, position: int, cause: Error | None, at: SpanRef, previews: bool) -> Span:
    """One step. `cause`: the run's error, if this is the step that it broke off in."""
    operation, tokens, index = step.operation, step.token_usage, step.step_index
    error = cause if step.error is None else error_of(step.error)
    if operation is _POLICY:
        status, source, error = _ERROR, _POLICED, Error(step.message or "", step.policy_name)
    elif step.error is not None:
        status, source = _ERROR, _EXPLICIT
    elif step.status is not None:
        status, source = status_of(step.status), _EXPLICIT
    elif cause is not None:
        status, source = _ERROR, _DERIVED
    elif step.duration_ms is not None or step.output_data != NULL:
        status, source = _OK, _DERIVED
    else:
        status, source = _UNKNOWN, None
    return Span(
        f"s{position}",
        step.name,
        operation,
        step=index if type(index) is int else integer(index),
        is_step=operation is not _POLICY or integer(index) is not None,
        status=status,
        status_word=step.status,
        status_source=source,
        started_at=moment(step.timestamp),
        duration_ms=step.duration_ms,
        usage=None if tokens is None else _usage(tokens),
        error=error,
        input_hash=step.input_hash,
        model=(step.model or None) if operation is _CHAT else None,
        preview=preview(step) if previews else "",
        at=at,
    )


def failed(step: Step) -> bool:
    """Whether a step itself records a failure."""
    if step.operation is _POLICY or step.error is not None:
        return True
    return step.status is not None and status_of(step.status) is _ERROR


def failing_step(facts: ExecutionRecord, steps: Sequence[Step]) -> int | None:
    """Position of the step in which a failed run broke off: the last call, if it has neither output nor time.

    Paprika writes no error into the step itself: a call that raises leaves no end event, and the text goes to the run.
    """
    if facts.error is None or (facts.policy is not None and facts.policy.violation is not None):
        return None
    word = facts.execution.status if facts.execution is not None else None
    if word is not None and status_of(word) is not Status.ERROR:
        return None
    position = next((i for i in range(len(steps) - 1, -1, -1) if isinstance(steps[i], ModelCall | ToolCall)), None)
    if position is None:
        return None
    step = steps[position]
    has_no_result = step.output_data == NULL and step.duration_ms is None and step.status is None
    return position if has_no_result or step.error is not None else None


def _usage(tokens: Tokens) -> Usage | None:
    prompt = tokens.prompt_tokens if tokens.prompt_tokens is not None else tokens.input_tokens
    completion = tokens.completion_tokens if tokens.completion_tokens is not None else tokens.output_tokens
    total = tokens.total_tokens
    if type(prompt) is not int or type(completion) is not int or type(total) is not int:
        prompt, completion, total = integer(prompt), integer(completion), integer(total)
        if prompt is None and completion is None and total is None:
            return None
    return Usage(prompt, completion, total)


def integer(value: Any) -> int | None:
    """The value if it is a whole number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def error_of(value: Any) -> Error:
    """The recorded error, with a type only if its text has the plain form ``TimeoutError: …``."""
    if isinstance(value, dict):
        stated, text = string(value.get("type")) or None, string(value.get("message"))
        if text is not None:
            return Error(text, stated)
    text = as_text(value)
    match = _TYPED_ERROR.match(text)
    return Error(text, match.group(1) if match else None)


def as_text(value: Any) -> str:
    """A value as text: text as it is, everything else as JSON, nothing as an empty text."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


# ---- previews


def preview(step: Step) -> str:
    """The reply of a model (else the last message of a user to it), the main argument of a tool, the words of a
    policy. In an agent's loop the user's message is the same before each call.
    """
    if isinstance(step, Violated):
        return (step.message or "")[:PREVIEW]
    if step.args != NULL:
        return preview_of(plain(step.args))
    if step.output_data != NULL and (text := reply(plain(step.output_data))):
        return text[:PREVIEW]
    return "" if step.input_data == NULL else last_user(step.input_data)[:PREVIEW]


def preview_of(args: Any) -> str:
    """The main argument of a call; where none is text, all of them as JSON."""
    return main_text(args) or (as_text(args)[:PREVIEW] if args not in (None, {}, []) else "")


def main_text(value: Any) -> str:
    """The preview of a call: the argument with the question, else the first text."""
    if isinstance(value, dict) and ("args" in value or "kwargs" in value):
        value = mapping(value.get("kwargs")) or value.get("args")
    if isinstance(value, dict):
        value = [*(value.get(name) or None for name in _ASKED if name in value), *value.values()]
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, str)), "")
    return value[:PREVIEW] if isinstance(value, str) else ""


def reply(output: Any) -> str:
    """The first text that a model replied, else the calls that it asked for: ``→ search {"query": …}``."""
    messages = messages_out(output)
    if reply_text := next((text for message in messages if (text := text_of(message).strip())), ""):
        return reply_text
    calls = (part for message in messages for part in message.parts if isinstance(part, Asked))
    return ", ".join(f"→ {call.name} {preview_of(call.arguments)}".rstrip() for call in calls)


class _Sent(msgspec.Struct, gc=False):
    role: str
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Conversation(msgspec.Struct, gc=False):
    messages: list[_Sent]


_CONVERSATION: Final = msgspec.json.Decoder(_Conversation)


def last_user(data: msgspec.Raw) -> str:
    """The last text of a user in the input of a model call."""
    try:
        last = next(
            (message for message in reversed(_CONVERSATION.decode(data).messages) if message.role == "user"), None
        )
    except (ValueError, RecursionError):
        last = None
    if last is not None and isinstance(text := plain(last.content), str):
        return text
    return _text_of_role(reversed(messages_in(plain(data))), "user")


def _text_of_role(messages: Iterable[Message], *roles: str) -> str:
    return next((text for message in messages if message.role in roles and (text := text_of(message))), "")


# ---- the header


def header_of(
    facts: ExecutionRecord, file: File, steps: Sequence[Step] | None = None, unknown: Unknown | None = None
) -> Header:
    """The header; without `steps` (in the list stage) the cause of a failure names no span."""
    execution = facts.execution or _NOTHING
    ident = facts.record_id or PurePath(file.path).stem
    name = facts.agent.name if not isinstance(facts.agent, str | None) else facts.agent
    started, zone = zoned(execution.started_at)
    status, source = _status(execution.status or None, facts)
    ended = status not in _OPEN or zoned(execution.ended_at)[0] is not None
    labels = [{"tags": facts.tags, "source": facts.source}, plain(facts.extensions), plain(facts.metadata)]
    prompt = main_text(facts.input)
    if not prompt and steps and (call := next((step for step in steps if isinstance(step, ModelCall)), None)):
        prompt = _text_of_role(messages_in(plain(call.input_data)), "user")[:PREVIEW]
    return Header(
        id=ident,
        name=name or ident,
        agent=name or None,
        model=next((step.model for step in steps or () if step.model), None),
        status=status if ended else None,
        status_word=execution.status or None,
        status_source=source,
        ended=ended,
        started_at=started,
        time_zone="UTC" if started is None else zone,
        duration_ms=_duration(execution, started),
        usage=_totals_usage(facts),
        replay_of=facts.replay_of or None,
        relation="replay" if facts.replay_of else None,
        parent=facts.parent_record_id or None,
        error=None if status is not Status.ERROR else _cause(facts, steps),
        prompt=prompt,
        tags=tags_in(*labels),
        source=source_in(*labels),
        writer=layout(facts.schema_version),
        size=file.stat.size,
        fields=unknown_fields(unknown or {}),
    )


def _status(word: str | None, facts: ExecutionRecord) -> tuple[Status | None, StatusSource | None]:
    violated = facts.policy is not None and facts.policy.violation is not None
    if word is not None:
        status = STATUS_BY_WORD.get(word) or status_of(word)
        return status, StatusSource.POLICY if violated and status is Status.ERROR else StatusSource.EXPLICIT
    if violated:
        return Status.ERROR, StatusSource.POLICY
    return (None, None) if facts.error is None else (Status.ERROR, StatusSource.EXPLICIT)


def _duration(execution: Execution, started: float | None) -> float | None:
    stated = execution.duration_ms
    if stated is not None and stated >= 0:
        return stated
    ended = zoned(execution.ended_at)[0]
    return (ended - started) * 1000 if started is not None and ended is not None and ended >= started else None


def _totals_usage(facts: ExecutionRecord) -> Usage | None:
    """The tokens that the record declares, None if there are none; negative numbers do not count."""
    if facts.totals is None:
        return None
    totals = facts.totals.prompt_tokens, facts.totals.completion_tokens, facts.totals.total_tokens
    prompt, completion, total = (
        count if (count := integer(value)) is not None and count >= 0 else None for value in totals
    )
    return None if prompt is None and completion is None and total is None else Usage(prompt, completion, total)


def _cause(facts: ExecutionRecord, steps: Sequence[Step] | None) -> FirstError | None:
    """Why the run failed: the violated policy, or its own error, with the step that it happened in.

    Where there is neither, and no step failed, why it ended.
    """
    violation = None if facts.policy is None else facts.policy.violation
    if violation is not None:
        error = Error(violation.message or "", violation.policy_name)
    elif facts.error is not None:
        error = error_of(facts.error)
    elif steps is None or any(map(failed, steps)):
        return None
    else:
        reason = facts.execution.termination_reason if facts.execution is not None else None
        return FirstError(reason) if reason else None
    position = failing_step(facts, steps or ())
    if position is None:
        violated = (i for i, step in enumerate(steps or ()) if isinstance(step, Violated))
        position = max(violated, default=None)
    if steps is None or position is None:
        return FirstError(error.message, error.type)
    return FirstError(error.message, error.type, f"s{position}", steps[position].name, steps[position].operation)


# ---- the run as a whole


def run_body(trace: Trace, tally: Tally) -> RunBody:
    """The run as a whole: input and output, limits, totals recounted."""
    fields, calls = trace.fields, [step for step in trace.steps if isinstance(step, ModelCall)]
    first = messages_in(plain(calls[0].input_data)) if calls else ()
    last = messages_in(plain(calls[-1].input_data)) if calls else ()
    answers = messages_out(plain(calls[-1].output_data)) if calls else ()
    return RunBody(
        input=fields.get("input"),
        output=fields.get("output"),
        error=None if trace.facts.error is None else error_of(trace.facts.error),
        limits=_limits(mapping(fields.get("policy")), trace.steps, tally),
        totals=tuple(_totals(mapping(fields.get("totals")), tally, trace.steps)),
        system_prompt=_text_of_role(first, "system", "developer") or None,
        last_user=_text_of_role(reversed(last), "user") or None,
        last_assistant=_text_of_role((*answers, *reversed(last)), "assistant") or None,
        attributes=trace.attributes,
    )


def _totals(declared: dict[str, Any], tally: Tally, steps: Sequence[Step]) -> Iterator[Total]:
    """The declared totals, recounted. Recorders of version 1 don't count violations as steps, others may."""
    usage = tally.usage
    violations = sum(step.operation is _POLICY for step in steps)
    counts_violations = integer(declared.get("step_count")) == len(steps)
    counted = {
        "step_count": len(steps) - (0 if counts_violations else violations),
        "llm_calls": tally.llm_calls,
        "tool_calls": tally.tool_calls,
        "total_tokens": usage.total_tokens,
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
    }
    for name, count in counted.items():
        if name in declared:
            value = integer(declared[name])
            yield Total(name, number(declared[name]) if value is None else value, count)


def _limits(policy: dict[str, Any], steps: Sequence[Step], tally: Tally) -> tuple[Limit, ...]:
    """The configured limits with how far the run came, and the violated one with its details."""
    calls = (step for step in steps if isinstance(step, ModelCall | ToolCall))
    repeats = Counter(step.input_hash for step in calls if step.input_hash)
    total = tally.usage.total_tokens
    reached = {
        "max_steps": float(sum(not isinstance(step, Violated) for step in steps)),
        "max_tokens": None if total is None else float(total),
        "max_repeat_hashes": float(max(repeats.values(), default=0)),
    }
    config = mapping(policy.get("config"))
    limits = {n: Limit(n, number(value), reached.get(n)) for n, value in config.items() if value is not None}
    violation = mapping(policy.get("violation"))
    if violation:
        name = string(violation.get("policy_name")) or "policy"
        limits[name] = _violated(violation, limits.get(name, Limit(name, None, reached.get(name))))
    return tuple(limits.values())


def _violated(violation: dict[str, Any], before: Limit) -> Limit:
    """A limit with the numbers that the violation states, ``{current, limit}`` or ``{hash, count, limit}``."""
    details = mapping(violation.get("details"))
    limit, current, count = (number(details.get(name)) for name in ("limit", "current", "count"))
    current = count if current is None else current
    return Limit(
        before.name,
        before.limit if limit is None else limit,
        before.current if current is None else current,
        True,
        as_text(violation.get("message")),
        violation.get("details"),
    )


_INPUTS: Final = ("input_data", "args")
_OUTPUT: Final = "output_data"
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")
DOCUMENTED: Final = "documented"
RUNTIME: Final = "runtime"


def body_of(records: list[Raw], *, exact: bool = True) -> Body:
    """The body of a step from its record, or from its start and end event.

    `exact`: they are the original bytes. Raises `FormatError` for records that can't be decoded.
    """
    values = [plain(record) for record in records]
    if not all(isinstance(value, dict) for value in values):
        raise FormatError("the step can't be decoded", "")
    merged = {name: item for value in reversed(values) for name, item in value.items()}  # the start event wins
    sent = next((name for name in _INPUTS if name in merged), None)
    got = next((value[_OUTPUT] for value in reversed(values) if _OUTPUT in value), None)
    chat = "model" in merged or sent == "input_data"
    verdict = check(merged)
    return Body(
        input=None if sent is None else merged[sent],
        output=got,
        input_messages=messages_in(merged.get(sent)) if chat and sent else (),
        output_messages=messages_out(got) if chat else (),
        attributes=_rest(values, sent),
        checks=() if verdict is None else (verdict,),
        raw=b"\n".join(map(bytes, records) if exact else map(_rendered, values)),
    )


def _rendered(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")


def _rest(values: list[dict[str, Any]], sent: str | None) -> dict[str, Any]:
    """All fields except input and output; differing fields of the end event are next to those of the start."""
    rest: dict[str, Any] = {}
    for at, value in enumerate(values):
        for name, item in value.items():
            if (name == sent and at == 0) or (name == _OUTPUT and at == len(values) - 1):
                continue
            if name not in rest:
                rest[name] = item
            elif rest[name] != item:
                rest[f"{name} (end)"] = item
    return rest


# ---- the input hash


def check(record: dict[str, Any]) -> Check | None:
    """Compare the stored hash of a call with both recipes; None without a stored hash."""
    stored, name = record.get("input_hash"), next((name for name in _INPUTS if name in record), None)
    if not isinstance(stored, str) or name is None:
        return None
    wrapper, *names = _WRAPPERS[name]
    try:
        expected = tuple(_expected_hashes(_canonical(record[name]), wrapper, *map(record.get, names)))
    except RecursionError:  # the input is nested too deeply
        expected = ()
    return Check("input_hash", stored, next((name for name, value in expected if value == stored), None), expected)


_WRAPPERS: Final = {
    "input_data": ('{"input":%s,"model":%s,"provider":%s}', "model", "provider"),
    "args": ('{"args":%s,"name":%s}', "tool_name"),
}
"""What the runtime hashes of a call, by the name of its input, and which fields beside the input that has."""


def _expected_hashes(bare: str, wrapper: str, *values: Any) -> Iterator[tuple[str, str]]:
    """The hash of a call by each recipe; `bare` is its input as `_canonical` writes it. Raises `RecursionError`.

    By this fingerprint Paprika notices a replay that diverges and calls that repeat. The document says: SHA-256 over
    the sorted, compact JSON of the input, 16 hex digits. The runtime (``adapters/llm.py``, ``adapters/tools.py``)
    hashes the input *wrapped* together with the provider and model, or the tool's name. Both are tried.
    """
    yield RUNTIME, _digits(wrapper % (bare, *map(_canonical, values)))
    yield DOCUMENTED, _digits(bare)


_canonical: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
"""The JSON of a value as Paprika hashes it, with escapes for all but ASCII. Raises `RecursionError`."""


def _no_fraction(digits: str) -> Any:
    raise ValueError(digits)


_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])
_LIST: Final = msgspec.json.Decoder(list[Raw])
_WITHOUT_FRACTIONS: Final = msgspec.json.Decoder(float_hook=_no_fraction)


class CanonicalInputs:
    """`_canonical` for undecoded inputs of the calls of one run: a message that many calls send is written once."""

    def __init__(self) -> None:
        self._messages: dict[bytes, str] = {}

    def conversation(self, raw: Raw) -> str:
        """The input of a model call. Raises `RecursionError`."""
        try:
            fields = sorted(_OBJECT.decode(raw).items())
        except (ValueError, RecursionError):
            return canonical(raw)
        return "{" + ",".join([f"{_canonical(name)}:{self._field(value)}" for name, value in fields]) + "}"

    def _field(self, raw: Raw) -> str:
        try:
            messages = _LIST.decode(raw)
        except (ValueError, RecursionError):
            return canonical(raw)
        texts = []
        for message in map(bytes, messages):
            text = self._messages.get(message)
            if text is None:
                text = self._messages[message] = canonical(message)
            texts.append(text)
        return "[" + ",".join(texts) + "]"


def canonical(raw: Raw | bytes) -> str:
    """`_canonical` for undecoded JSON, with `orjson` unless that might write DEL, fractions or what is not ASCII
    otherwise. Raises `RecursionError`.
    """
    try:
        value = _WITHOUT_FRACTIONS.decode(raw)
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (ValueError, TypeError, RecursionError):
        return _canonical(plain(Raw(raw)))
    return data.decode() if data.isascii() and b"\x7f" not in data else _canonical(value)


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- messages: of the shapes of OpenAI (chat, responses) and Anthropic, and plain text


def messages_in(data: Any) -> tuple[Message, ...]:
    """The conversation that was sent: ``messages`` after ``system``, ``input`` after ``instructions``, or a prompt."""
    if not isinstance(data, dict):
        return (_message("user", data),) if isinstance(data, str) and data else ()
    messages = [_message("system", data[name]) for name in ("system", "instructions") if data.get(name)]
    for name in ("messages", "input", "prompt"):
        value = data.get(name)
        if isinstance(value, list):
            messages.extend(_messages(value, "user"))
        elif isinstance(value, str) and value:
            messages.append(_message("user", value))
    return tuple(messages)


def messages_out(data: Any) -> tuple[Message, ...]:
    """The response: ``choices[].message``, ``output`` items, a message with ``content``, or plain text."""
    if isinstance(data, str):
        return (_message("assistant", data),) if data else ()
    if not isinstance(data, dict):
        return ()
    choices = data.get("choices")
    if isinstance(choices, list):
        return tuple(_choice(choice) for choice in choices if isinstance(choice, dict))
    if isinstance(data.get("output"), list):
        return tuple(_messages(data["output"], "assistant"))
    if isinstance(data.get("message"), dict):
        return (_of(data["message"], "assistant", data),)
    if "content" in data:
        return (_of(data, "assistant", data),)
    text = next((data[name] for name in ("output_text", "text", "completion", "response") if name in data), None)
    return (_message("assistant", text),) if isinstance(text, str) else ()


def _choice(choice: dict[str, Any]) -> Message:
    message = choice.get("message")
    if isinstance(message, dict):
        return _of(message, "assistant", choice)
    return _message("assistant", choice.get("text"))


def _messages(values: list[Any], role: str) -> list[Message]:
    return [_of(value, role, value) if isinstance(value, dict) else _message(role, value) for value in values]


def _of(value: dict[str, Any], role: str, holder: dict[str, Any]) -> Message:
    """One message object; an item of the responses interface (a call, an output, reasoning) counts as one."""
    ident, name, role = string(value.get("id")), string(value.get("name")), string(value.get("role")) or role
    parts: Sequence[Part]
    if role == "tool" and "tool_call_id" in value:
        parts = (ToolResult(string(value["tool_call_id"]), value.get("content"), name=name),)
    elif "type" in value and "content" not in value:
        parts = (part_of(value)[0],)
    else:
        parts = message_of(value, role)[0].parts
    thoughts = [Reasoning(value[field]) for field in _REASONING if isinstance(value.get(field), str)]
    finish = string(holder.get("finish_reason")) or string(holder.get("stop_reason"))
    return Message(role, (*thoughts, *parts), ident, finish, name)


def _message(role: str, content: Any) -> Message:
    return message_of({"content": content}, role)[0]


LIKELY: Final = 70
HUGE: Final = 16 << 20
"""Bytes from which on the first steps are shown before the whole file is read."""
SLICE: Final = 1_000
"""Spans that are made in one call of `more`, about 50 ms worth."""
_MAJOR: Final = re.compile(r"\s*v?(\d+)")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_V1: Final = frozenset({b"schema_version", b"record_id"})
_V0: Final = frozenset({b"run_id", b"agent_name", b"events"})
_TYPICAL: Final = frozenset(
    {b"record_id", b"execution", b"policy", b"totals", b"steps", b"parent_record_id", b"replay_of"}
)


class Paprika:
    """The format; see `tracetui.formats.base.Format`."""

    name = "paprika"
    title = "Paprika ExecutionRecord"

    def sniff(self, file: File) -> int:
        start = start_of(file)
        if start is None:
            return _score(file.head)
        file.memo[self.name] = start
        return CERTAIN

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        start: DocumentStart | None = None if deep else file.memo.get(self.name) or start_of(file)
        facts, tally = None if start is None else quick_facts(file, start), None
        if facts is not None:
            _refuse_newer(facts.schema_version)
            header = header_of(facts, file)
        else:
            trace = _load(file, file.read_all(), bodies=False)
            header = header_of(trace.facts, file, trace.steps, trace.unknown)
            inputs = CanonicalInputs()
            differing = [i for i, step in enumerate(trace.steps) if not _has_hash_of_input(step, inputs)]
            tally = Tally(problems=len([*trace.problems, *_mismatches(file.path, differing)]))
            tally.add_all([*spans_of(trace, (), file.stat, range(len(trace.steps)), previews=False)])
        moving = not header.ended and file.moving
        yield summary_of(RunRef(self.name, file.path), header, tally, modified_at=file.stat.mtime, moving=moving)

    def open(self, file: File, ref: RunRef) -> Reader:
        return _Reader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the step's bytes; `raw` has them exactly, or a rendering if the file is not strict JSON."""
        at: SpanRef = span.at
        if at.raws:
            return body_of([*at.raws], exact=False)
        if file.stat != at.version:
            raise FormatError("the file changed while it was read", f"byte {at.ranges[0].offset}")
        return body_of([msgspec.Raw(file.read(byte_range.offset, byte_range.size)) for byte_range in at.ranges])


class _Reader:
    """Reads a file as a whole and gives its spans in slices; of a huge one the first steps before that."""

    def __init__(self) -> None:
        self._version: Fingerprint | None = None
        self._slices: Iterator[Chunk] = iter(())
        """Chunks of that version not returned yet."""
        self._begun: tuple[Stat, list[ByteRange]] | None = None
        """The first steps, where no more was read yet."""

    def more(self, file: File) -> Chunk:
        if self._version is not None and self._version.stat == file.stat and (chunk := next(self._slices, None)):
            return chunk
        if (same := unchanged(file, self._version)) is not None:
            self._version = same
            return Chunk()
        begun, self._begun = self._begun, None
        fresh = self._version is None
        if fresh and begun is None and file.stat.size > HUGE and (first := first_steps(file)) is not None:
            trace, ranges = first
            _refuse_newer(trace.facts.schema_version)
            self._begun = file.stat, ranges
            spans = [*spans_of(trace, ranges, file.stat, range(len(trace.steps)))]
            return Chunk(spans=spans, header=header_of(trace.facts, file), done=False)
        data = file.read_all()
        trace = _load(file, data)
        ranges = ranges_of(data, trace.records)
        leads = begun is not None and begun == (file.stat, ranges[: len(begun[1])])
        self._slices = _slices(trace, ranges, file)
        self._version = fingerprint(file, data)
        return msgspec.structs.replace(next(self._slices), reset=not leads and (begun is not None or not fresh))


def _slices(trace: Trace, ranges: list[ByteRange], file: File) -> Iterator[Chunk]:
    tally = Tally()
    count, version = len(trace.steps), file.stat
    header = header_of(trace.facts, file, trace.steps, trace.unknown)
    problems, inputs, differing = trace.problems, CanonicalInputs(), list[int]()
    for start in range(0, count or 1, SLICE):
        positions = range(start, min(count, start + SLICE))
        spans = [*spans_of(trace, ranges, version, positions)]
        tally.add_all(spans)
        differing += [i for i in positions if not _has_hash_of_input(trace.steps[i], inputs)]
        done = start + SLICE >= count
        yield Chunk(
            spans=spans,
            header=header if start == 0 else None,
            body=run_body(trace, tally) if done else None,
            problems=[*problems, *_mismatches(file.path, differing)] if done else problems,
            done=done,
        )
        problems = []


def _load(file: File, data: bytes, *, bodies: bool = True) -> Trace:
    """The trace in the file; may omit data that only `bodies` need."""
    trace = (None if bodies else skim(data)) or trace_of(Outline(data, file.path))
    _refuse_newer(trace.facts.schema_version)
    where, ident, reason = "run_id" if trace.is_old else "record_id", trace.facts.record_id, None
    if not ident:
        reason = "no id; using the file name"
    elif not _ID.fullmatch(ident):  # ``InvalidRunIdError``
        reason = f"the id {ident[:80]!r} doesn't match the pattern {_ID.pattern}"
    elif ident != splitext(basename(file.path))[0]:
        reason = f"the id {ident[:80]!r} differs from the file name"
    if reason is not None:
        trace.problems = [*trace.problems, Problem(file.path, where, reason)]
    return trace


def _mismatches(path: str, differing: list[int]) -> Iterator[Problem]:
    """One problem for all calls whose hash differs, by their positions."""
    if differing:
        first, more = differing[0], len(differing) - 1
        others = f" and {more} more" if more else ""
        yield Problem(path, f"steps[{first}]{others}", "the input hash doesn't match the input")


def _has_hash_of_input(step: Step, inputs: CanonicalInputs) -> bool:
    """Whether a recipe gives the stored hash of a step; true without hash or input."""
    is_tool = step.operation is Operation.EXECUTE_TOOL
    sent = step.args if is_tool else step.input_data
    if not step.input_hash or sent == NULL or step.operation is _POLICY:
        return True
    values = (step.tool_name,) if is_tool else (step.model, step.provider)
    wrapper = _WRAPPERS["args" if is_tool else "input_data"][0]
    try:
        bare = canonical(sent) if is_tool else inputs.conversation(sent)
        return any(hashed == step.input_hash for _, hashed in _expected_hashes(bare, wrapper, *values))
    except RecursionError:
        return False


def _refuse_newer(version: Any) -> None:
    if version == "1.0":
        return
    match = _MAJOR.match(version) if isinstance(version, str) else None
    major = int(match.group(1)[:9]) if match else version if isinstance(version, int | float) else 1
    if major >= 2:
        raise FormatError(f"schema_version {version} is newer than the supported 1.x", "schema_version")


def _score(head: bytes) -> int:
    """By the names at the top level of the object that `head` begins with, in any order."""
    if b'"record_id"' not in head and b'"events"' not in head and b'"steps"' not in head:
        return NO
    names: set[bytes] = set()
    for name in top_names(head):
        names.add(name)
        if names >= _V1 or names >= _V0:
            return CERTAIN
    if b"record_id" in names and b"steps" in names:
        return LIKELY
    if len(head) < HEAD_SIZE:
        return NO
    typical = len(names & _TYPICAL) > 1 or (b"steps" in names and b'"step_type"' in head)
    return LIKELY if typical or (b"events" in names and b'"event_type"' in head) else NO

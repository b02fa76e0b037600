"""OpenHands V1: conversations as its SDK keeps them, each a folder of files. See `tracetui.formats.openhands.files`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from zlib import crc32

from msgspec.structs import replace

from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.bodies import call_part, changed, message_body
from tracetui.formats.decode import decode, decode_value, record_on, top_names
from tracetui.formats.document import summary
from tracetui.formats.openhands.files import AGENTS, EVENTS, Reading, is_event, whole_of
from tracetui.formats.openhands.spans import At, Spans, error_of, message_of, prompts, standing_of, usages_of
from tracetui.formats.scalars import child, folder_of, mapping, moment, number, sequence, task_key, text, without, word
from tracetui.formats.schema import unknown_fields
from tracetui.formats.sqlite import ReadState, as_before, chunk_of
from tracetui.model import (
    PREVIEW,
    Body,
    FirstError,
    Header,
    Limit,
    Message,
    Part,
    Problem,
    Reasoning,
    RunBody,
    RunRef,
    RunSummary,
    Span,
    Status,
    Text,
    ToolResult,
    Total,
    Usage,
)
from tracetui.sources.base import File

_LEADING: Final = 8
"""Events at the beginning that describe a conversation: the list stage reads only these and the last one."""
_PIECE_SECONDS: Final = 0.03
_STATE: Final = frozenset({b"execution_status", b"persistence_dir", b"agent"})
_EVENT: Final = frozenset({b"id", b"timestamp", b"source", b"kind"})
_NAME: Final = "OpenHands"


class OpenHands:
    """The format; see `tracetui.formats.base.Format` and `Composed`."""

    name = "openhands"
    title = "OpenHands conversation"

    def sniff(self, file: File) -> int:
        head = file.head
        if is_event(file):
            return CERTAIN if b'"kind"' in head and (record_on(head) or {}).keys() >= _EVENT_NAMES else NO
        if b'"execution_status"' not in head and b'"persistence_dir"' not in head:
            return NO
        return CERTAIN if len(_STATE.intersection(top_names(head))) > 1 else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        reading = Reading(file, most=None if deep else _LEADING)
        state = _state(reading, None) if deep else ReadState(header=header_of(reading, ()))
        yield summary(RunRef(self.name, file.path), file, chunk_of(None, state), deep=deep)

    def open(self, file: File, ref: RunRef) -> Reader:
        return ConversationReader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return _body(file, span)

    def whole_of(self, file: File) -> str | None:
        """Events and sub-agents belong to the outermost conversation."""
        return whole_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        """Where events and sub-agents of a conversation are; none for an event."""
        return () if path.replace("\\", "/").rpartition("/")[2].startswith("event-") else (EVENTS, AGENTS)


_EVENT_NAMES: Final = {name.decode() for name in _EVENT}


class ConversationReader:
    """The `Reader` of a conversation: files that came or changed are read, and everything is interpreted again."""

    def __init__(self) -> None:
        self._reading: Reading | None = None
        self._state: ReadState | None = None

    def more(self, file: File) -> Chunk:
        before = self._reading
        reading = Reading(file, before, _PIECE_SECONDS)
        if not reading.done or (before is not None and before.done and reading.is_same(before)):
            self._reading = reading
            return Chunk(done=reading.done)
        state = _state(reading, self._state)
        chunk = chunk_of(self._state, state)
        self._reading, self._state = reading, state
        return chunk


def _state(reading: Reading, before: ReadState | None) -> ReadState:
    """The run of all files."""
    run_spans = Spans(reading.conversation)
    spans = as_before(() if before is None else before.spans, run_spans.spans)
    header = header_of(reading, spans, complete=run_spans.model_calls.complete)
    header = replace(
        header, size=reading.size, fields=unknown_fields(run_spans.unknown), unfinished=tuple(reading.unfinished)
    )
    return ReadState(spans=spans, problems=reading.problems, header=header, body=_run_body(reading, run_spans))


def header_of(reading: Reading, spans: Sequence[Span], *, complete: bool = True) -> Header:
    """The header, by the state, the first `_LEADING` events and the last one."""
    conversation = reading.conversation
    state, events = conversation.state, conversation.events
    standing = text(state.get("execution_status"))
    status, source = standing_of(standing)
    ident = text(state.get("id"))
    folder = folder_of(child(state, "workspace").get("working_dir"))
    prompt = next(prompts(events[:_LEADING]), "")
    first = mapping(events[0].record) if events else {}
    name = folder or _NAME
    return Header(
        id=ident or text(first.get("id")) or "conversation",
        name=name,
        agent=_NAME,
        model=word(child(child(state, "agent"), "llm").get("model")),
        status=status if state else None,
        status_word=standing,
        status_source=source,
        ended=bool(state) and status is not None,
        started_at=moment(first.get("timestamp")),
        time_zone=None,
        usage=None if complete else Usage(cost_usd=_declared_cost(state)),
        error=_cause(reading) if status is Status.ERROR else None,
        prompt=prompt[:PREVIEW],
        repeats=task_key(name, prompt),
        identity=None if ident is None else task_key("openhands", ident),
        source=text(child(state, "workspace").get("working_dir")),
    )


def _cause(reading: Reading) -> FirstError | None:
    """The error of the last event."""
    events = reading.conversation.events
    error = error_of(events[-1].record or {}) if events else None
    return None if error is None else FirstError(error.message, error.type)


def _declared_cost(state: dict[str, Any]) -> float | None:
    costs = [number(metrics.get("accumulated_cost")) for _, metrics in usages_of(state)]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if any(known) else None


def _declared(state: dict[str, Any], name: str) -> float | None:
    counts = [number(child(metrics, "accumulated_token_usage").get(name)) for _, metrics in usages_of(state)]
    return sum(count for count in counts if count is not None) if counts else None


def _run_body(reading: Reading, run_spans: Spans) -> RunBody:
    """The state, and its totals beside our own counts; they have those of sub-agents."""
    conversation = reading.conversation
    state, events = conversation.state, [event.record or {} for event in conversation.events]
    used = sum((span.usage for span in run_spans.spans if span.usage is not None), Usage())
    totals = [
        Total("input_tokens", _declared(state, "prompt_tokens"), used.input_tokens),
        Total("output_tokens", _declared(state, "completion_tokens"), used.output_tokens),
        Total("cost_usd", _rounded(_declared_cost(state)), _rounded(used.cost_usd)),
    ]
    most = number(state.get("max_iterations"))
    finished = next((child(event, "action") for event in reversed(events) if event.get("tool_name") == "finish"), {})
    answers = [message_of(event) for event in events if event.get("source") == "agent" and "llm_message" in event]
    system = next(
        (text(child(event, "system_prompt").get("text")) for event in events if "system_prompt" in event), None
    )
    return RunBody(
        output=text(finished.get("message")),
        limits=() if most is None else (Limit("max_iterations", most),),
        totals=tuple(total for total in totals if total.declared is not None),
        system_prompt=system,
        last_user=next(prompts(reversed(conversation.events)), None),
        last_assistant=answers[-1] if answers else None,
        attributes=state,
    )


def _rounded(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 9)


# ---- bodies


def _body(file: File, span: Span) -> Body:
    """A message, a reply with its calls, a call with its result, or a state. Raises `FormatError` if a file changed."""
    at = span.at
    if not isinstance(at, At):
        if at is None:
            return Body()
        raise changed()
    records, raws = [], []
    for path, check in at.files:
        try:
            with file.other(path) as other:
                data = other.read_all()
        except OSError:
            if at.shows == "state":
                return Body()
            raise
        value = decode(data)[0] if check < 0 or crc32(data) == check else None
        if not isinstance(value, dict):
            raise changed(path)
        records.append(value)
        raws.append(data)
    raw = b"\n".join(raws)
    if at.shows == "state":
        return Body(attributes=records[0], raw=raw)
    if at.shows == "reply":
        return _reply(records, raw)
    return _call(records, raw) if at.shows == "call" else _event(records[0], raw)


_OF_REPLY: Final = (
    *("action", "tool_call", "tool_name", "tool_call_id"),
    *("thought", "reasoning_content", "summary"),
)
"""Fields that a reply or its calls show."""


def _reply(records: list[dict[str, Any]], raw: bytes) -> Body:
    """A model call: what it thought, and the calls that it asked for."""
    first = records[0]
    thought, (said, rest) = text(first.get("reasoning_content")), _texts(first.get("thought"))
    attributes = without(first, *_OF_REPLY) | ({"thought": rest} if rest else {})
    parts: list[Part] = [*([] if thought is None else [Reasoning(thought)]), *said]
    for record in records:
        call = child(record, "tool_call")
        name, ident = text(call.get("name")) or text(record.get("tool_name")), text(record.get("tool_call_id"))
        parts.append(call_part(call | {"name": name, "id": ident or call.get("id")}))
    return message_body(Message("assistant", tuple(parts)), attributes, raw, is_output=True)


def _call(records: list[dict[str, Any]], raw: bytes) -> Body:
    """A call and its result, each field of the result under ``result``."""
    action = records[0] if records[0].get("kind") == "ActionEvent" else {}
    result = next((record for record in records if record is not action), {})
    given = action.get("action")
    if given is None:
        given = decode_value(text(child(action, "tool_call").get("arguments")) or "") or None
    observation = mapping(result.get("observation"))
    said, rest = _texts(observation.get("content"))
    output = "\n".join(part.text for part in said if isinstance(part, Text)) or None
    attributes = without(action, "action")
    if result:
        observed = without(observation, "content") | ({"content": rest} if rest else {})
        attributes["result"] = result | {"observation": observed}
    output = output or text(result.get("error")) or text(result.get("rejection_reason"))
    tool_result = ToolResult(text(result.get("tool_call_id")), output, observation.get("is_error") is True or None)
    messages = (Message("tool", (tool_result,)),) if result else ()
    return Body(input=given, output=output, output_messages=messages, attributes=attributes, raw=raw)


def _event(record: dict[str, Any], raw: bytes) -> Body:
    """A message, or an event of another kind."""
    if record.get("kind") == "SystemPromptEvent" and isinstance(record.get("system_prompt"), dict):
        said, rest = _texts([record["system_prompt"]])
        attributes = without(record, "system_prompt") | ({"system_prompt": rest} if rest else {})
        return Body(input_messages=(Message("system", tuple(said)),), attributes=attributes, raw=raw)
    content = record.get("llm_message")
    if not isinstance(content, dict):
        return Body(attributes=record, raw=raw)
    said, rest = _texts(content.get("content"))
    attributes = record | {"llm_message": without(content, "content") | ({"content": rest} if rest else {})}
    message = Message(text(content.get("role")) or "user", tuple(said))
    return message_body(message, attributes, raw, is_output=record.get("source") == "agent")


def _texts(content: Any) -> tuple[list[Part], list[Any]]:
    """The texts of a content list, and everything else in it."""
    if isinstance(content, str):
        return [Text(content)] if content else [], []
    if not isinstance(content, list):
        return [], [] if content is None else [content]
    parts: list[Part] = []
    rest: list[Any] = []
    for item in sequence(content):
        said = mapping(item).get("text")
        if isinstance(said, str):
            parts.append(Text(said))
            others = {name: value for name, value in without(item, "type", "text").items() if value}
            rest += [others] if others else []
        else:
            rest.append(item)
    return parts, rest

"""What a Paprika record says about its run as a whole, and what its steps add up to."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Final

import msgspec

from tracetui.formats.labels import source_in, tags_in
from tracetui.formats.paprika.fields import Raw, value_of
from tracetui.formats.paprika.messages import messages_in
from tracetui.formats.paprika.record import Execution, Facts, Record, Skim, Totals
from tracetui.formats.scalars import layout, mapping, number, string
from tracetui.model import Error, FirstError, Header, Operation, Status, StatusSource, Usage, status_of
from tracetui.model import text_of as message_text
from tracetui.model.build import NO_USAGE, Tally
from tracetui.model.status import WORDS
from tracetui.model.tally import NAME_LENGTH, kept

CALLS: Final = frozenset({"llm_call", "tool_call"})
POLICY: Final = "policy_violation"
_OPERATIONS: Final = {
    "llm_call": Operation.CHAT,
    "tool_call": Operation.EXECUTE_TOOL,
    POLICY: Operation.POLICY,
}
_TYPED_ERROR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.]{0,99}(?:Error|Exception|Timeout|Interrupt|Exit))(?::|$)")
_ASKED: Final = ("question", "query", "prompt", "goal", "task", "topic", "message", "text", "input", "q", "url", "path")
"""Names under which the main one of several arguments goes, the likeliest first."""
_TEXT: Final = 120


def header_of(facts: Facts, path: str, steps: list[Skim] | None, size: int | None = None) -> Header:
    """The header; without `steps` (in the list stage) the cause of a failure names no span. `size`: of the file."""
    execution = facts.execution or _NOTHING
    ident = facts.record_id or PurePath(path).stem
    name = facts.agent.name if facts.agent is not None else None
    started, zone = _moment(execution.started_at)
    said = _said(facts)
    word = execution.status or None
    status, source = _status(word, facts)
    ended = status not in _OPEN or moment(execution.ended_at) is not None
    return Header(
        id=ident,
        name=name or ident,
        agent=name or None,
        model=None if steps is None else next((step.model for step in steps if step.model), None),
        status=status if ended else None,
        status_word=word,
        status_source=source,
        ended=ended,
        started_at=started,
        time_zone=zone,
        duration_ms=_duration(execution, started),
        usage=None if facts.totals is None else _usage(facts.totals),
        replay_of=facts.replay_of or None,
        relation="replay" if facts.replay_of else None,
        parent=facts.parent_record_id or None,
        error=None if status is not Status.ERROR else _cause(facts, steps),
        prompt=main_text(facts.input),
        tags=tags_in(*said) if said else (),
        source=source_in(*said) if said else None,
        writer=layout(facts.schema_version),
        size=size,
    )


_EMPTY: Final = (Raw(b"null"), Raw(b"{}"), None)


def _said(facts: Facts) -> list[Any]:
    """The objects that may have tags and a source."""
    said: list[Any] = []
    if facts.tags is not None or facts.source is not None:
        said.append({"tags": facts.tags, "source": facts.source})
    return said + [value_of(raw) for raw in (facts.extensions, facts.metadata) if raw not in _EMPTY]


_NOTHING: Final = Execution()
_OPEN: Final = (None, Status.UNKNOWN)
"""A status that tells nothing: whether the run ended is told by ``ended_at``. Its default is the word ``unknown``."""


def _status(word: str | None, facts: Facts) -> tuple[Status | None, StatusSource | None]:
    violated = facts.policy is not None and facts.policy.violation is not None
    if word is not None:
        status = WORDS.get(word) or status_of(word)
        return status, StatusSource.POLICY if violated and status is Status.ERROR else StatusSource.EXPLICIT
    if violated:
        return Status.ERROR, StatusSource.POLICY
    return (None, None) if facts.error is None else (Status.ERROR, StatusSource.EXPLICIT)


def _moment(value: str | None) -> tuple[float | None, str | None]:
    """Seconds since the epoch, and the zone: None for a naive time, which counts as UTC for sorting."""
    if value is None:
        return None, "UTC"
    try:
        found = datetime.fromisoformat(value)
        if found.tzinfo is None:
            return found.replace(tzinfo=UTC).timestamp(), None
        return found.timestamp(), "UTC"
    except (ValueError, OverflowError):
        return None, "UTC"


def moment(value: str | None) -> float | None:
    """An ISO time as seconds since the epoch; None if it is none."""
    return _moment(value)[0]


def _duration(execution: Execution, started: float | None) -> float | None:
    stated = execution.duration_ms
    if stated is not None and stated >= 0:
        return stated
    ended = moment(execution.ended_at)
    return (ended - started) * 1000 if started is not None and ended is not None and ended >= started else None


def _usage(totals: Totals) -> Usage | None:
    """The tokens that the record says it used, None if it says nothing; a negative number says nothing."""
    given, made, total = _count(totals.prompt_tokens), _count(totals.completion_tokens), _count(totals.total_tokens)
    return None if given is None and made is None and total is None else Usage(given, made, total)


def _count(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None


def _cause(facts: Facts, steps: list[Skim] | None) -> FirstError | None:
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
    if steps is None:
        return FirstError(error.message, error.type)
    place = failing_step(facts, steps)
    return FirstError(error.message, error.type, *_named(steps, _last(steps, POLICY) if place is None else place))


def _named(steps: list[Skim], place: int | None) -> tuple[str | None, str | None, Operation | None]:
    if place is None:
        return None, None, None
    return span_id(place), name_of(steps[place]), operation_of(steps[place])


def _last(steps: list[Skim], kind: str) -> int | None:
    return next((i for i in range(len(steps) - 1, -1, -1) if steps[i].step_type == kind), None)


def failing_step(facts: Facts, steps: list[Skim]) -> int | None:
    """Position of the step in which a failed run broke off: the last call, if it has neither output nor time.

    Paprika writes no error into the step itself: a call that raises leaves no end event, and the text goes to the run.
    """
    if facts.error is None or (facts.policy is not None and facts.policy.violation is not None):
        return None
    word = facts.execution.status if facts.execution is not None else None
    if word is not None and status_of(word) is not Status.ERROR:
        return None
    place = next((i for i in range(len(steps) - 1, -1, -1) if steps[i].step_type in CALLS), None)
    if place is None:
        return None
    step = steps[place]
    silent = not step.has_output and step.duration_ms is None and step.status is None
    return place if silent or step.error is not None else None


def span_id(place: int) -> str:
    """Id of the span of the step at that position; event ids may repeat or be missing."""
    return f"s{place}"


def name_of(step: Skim) -> str:
    """Name of a step: its model, tool or policy, else its type."""
    kind = step.step_type or "?"
    if kind == "llm_call":
        return step.model or step.provider or kind
    return (step.tool_name if kind == "tool_call" else step.policy_name if kind == POLICY else None) or kind


def operation_of(step: Skim) -> Operation:
    """What kind of work a step is."""
    return _OPERATIONS.get(step.step_type or "", Operation.UNKNOWN)


def model_of(step: Skim) -> str | None:
    """The model that a step calls."""
    return (step.model or None) if step.step_type == "llm_call" else None


def error_of(value: Any) -> Error:
    """An error as the record holds it. A type only where the text has the plain form ``TimeoutError: …``."""
    if isinstance(value, dict):
        stated = string(value.get("type")) or None
        text = string(value.get("message"))
        if text is not None:
            return Error(text, stated)
    text = text_of(value)
    found = _TYPED_ERROR.match(text)
    return Error(text, found.group(1) if found else None)


def text_of(value: Any) -> str:
    """A value as text: text as it is, everything else as JSON, nothing as an empty text."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def main_text(value: Any) -> str:
    """What tells one call from the next: the argument that holds the question, else the first text; 120 characters."""
    if isinstance(value, dict) and ("args" in value or "kwargs" in value):
        value = mapping(value.get("kwargs")) or value.get("args")
    if isinstance(value, dict):
        for name in _ASKED:
            if name in value and isinstance(text := value[name], str) and text:
                return text[:_TEXT]
        value = [*value.values()]
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, str)), "")
    return value[:_TEXT] if isinstance(value, str) else ""


def preview_of(args: Any) -> str:
    """The main argument of a call; where none is text, all of them as JSON."""
    return main_text(args) or (text_of(args)[:_TEXT] if args not in (None, {}, []) else "")


def usage_of(step: Skim) -> Usage | None:
    """Tokens of one model call."""
    tokens = step.token_usage
    if tokens is None:
        return None
    given = tokens.prompt_tokens if tokens.prompt_tokens is not None else tokens.input_tokens
    made = tokens.completion_tokens if tokens.completion_tokens is not None else tokens.output_tokens
    usage = Usage(given, made, tokens.total_tokens)
    return usage or None


def failed(step: Skim) -> bool:
    """Whether a step itself says that it failed."""
    if step.step_type == POLICY or step.error is not None:
        return True
    return step.status is not None and status_of(step.status) is Status.ERROR


def tally_of(record: Record, header: Header) -> Tally:
    """What the steps add up to: the same as counting their spans one by one, without making them.

    How many bytes steps of unknown types have is only told of a record that knows its `places`.
    """
    steps = record.steps
    violations = llm_calls = tool_calls = 0
    tools, models = set(), set()
    for step in steps:
        kind = step.step_type
        if kind == "llm_call":
            llm_calls += 1
            models.add(step.model)
        elif kind == "tool_call":
            tool_calls += 1
            tools.add(step.tool_name or kind)
        elif kind == POLICY:
            violations += 1
    errors = [place for place, step in enumerate(steps) if step.error is not None or step.status is not None]
    if errors or violations or record.facts.error is not None:
        broken = failing_step(record.facts, steps)
        errors = [place for place, step in enumerate(steps) if place == broken or failed(step)]
    tally = Tally(
        steps=len(steps) - violations,
        spans=len(steps),
        llm_calls=llm_calls,
        tool_calls=tool_calls,
        errors=len(errors),
        ends_in_error=bool(errors) and errors[-1] == len(steps) - 1,
        problems=len(record.problems),
        tools=kept(tools),
        models=kept(filter(None, models)),
    )
    if llm_calls + tool_calls + violations < len(steps):
        _count_unknown(tally, record)
    if header.error is None:
        tally.first_error = _first_error(steps, errors)
    stated = header.usage
    if stated is None or None in (stated.input_tokens, stated.output_tokens, stated.total_tokens):
        tally.usage = sum((usage for step in steps if (usage := usage_of(step))), NO_USAGE)
    if header.started_at is None or header.duration_ms is None:
        _time(tally, steps)
    return tally


def _count_unknown(tally: Tally, record: Record) -> None:
    unknown = [place for place, step in enumerate(record.steps) if operation_of(step) is Operation.UNKNOWN]
    tally.unknown = dict(Counter(name_of(record.steps[place])[:NAME_LENGTH] for place in unknown))
    tally.unread = sum(one.size for place in unknown for one in record.places[place]) if record.places else 0


def _first_error(steps: list[Skim], errors: list[int]) -> FirstError | None:
    """The first step that failed; one without words gives way to the next that has some."""
    found = None
    for place in errors:
        error = own_error(steps[place])
        if found is None or (found.message == "" and error is not None):
            found = FirstError(error.message if error else "", error.type if error else None, *_named(steps, place))
    return found


def _time(tally: Tally, steps: list[Skim]) -> None:
    for step in steps:
        start = moment(step.timestamp)
        if start is not None:
            end = start + max(0.0, number(step.duration_ms) or 0.0) / 1000
            tally.first_start = start if tally.first_start is None else min(start, tally.first_start)
            tally.last_end = end if tally.last_end is None else max(end, tally.last_end)


def own_error(step: Skim) -> Error | None:
    """The error that a step itself holds; a violated policy is one."""
    if step.step_type == POLICY:
        return Error(step.message or "", step.policy_name)
    return None if step.error is None else error_of(step.error)


def first_prompt(header: Header, steps: list[Skim]) -> Header:
    """The header with the first thing that a user said to a model, where the run's input holds no text."""
    call = None if header.prompt else next((step for step in steps if step.step_type == "llm_call"), None)
    if call is None:
        return header
    messages = messages_in(value_of(call.input_data))
    text = next((text for one in messages if one.role == "user" and (text := message_text(one))), "")
    return msgspec.structs.replace(header, prompt=text[:_TEXT]) if text else header

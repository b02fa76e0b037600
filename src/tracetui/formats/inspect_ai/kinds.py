"""What each kind of event says in short: a span without place, parent and time of its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.calls import argument
from tracetui.formats.inspect_ai.events import Light, changed
from tracetui.formats.inspect_ai.fields import error_type, joined, prompt_in, text_in, usage_of
from tracetui.formats.inspect_ai.scores import value_words
from tracetui.formats.scalars import between, mapping, moment, number, sequence, whole, word
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource

Attached = Callable[[str], str]
Outcome = tuple[Status, StatusSource, Error | None]
_SPANS: Final = {
    "agent": Operation.INVOKE_AGENT,
    "handoff": Operation.INVOKE_AGENT,
    "tool": Operation.EXECUTE_TOOL,
    **dict.fromkeys(("init", "solvers", "solver", "scorers", "scorer", "subtask", "fork"), Operation.INVOKE_WORKFLOW),
}
_FINE: Final[Outcome] = (Status.OK, StatusSource.DERIVED, None)
_CUT: Final = ("max_tokens", "model_length", "content_filter", "unknown")
"""Reasons for which an answer ended that belong beside its name."""


def span_kind(kind: Any) -> Operation:
    """What kind of work a span is that only its beginning and end tell."""
    return _SPANS.get(kind, Operation.OTHER) if isinstance(kind, str) else Operation.OTHER


def made(light: Light, attached: Attached, version: tuple[int, ...] | None) -> Span:
    """The span of one event."""
    kind = light.event
    if kind == "model":
        return _model(light, attached, version)
    if kind in ("tool", "subtask"):
        return _call(light, attached)
    short = _SHORT.get(kind) if isinstance(kind, str) else None
    return _unknown(light) if short is None else short(light, attached)


def outcome_of_limit(kind: Any, message: str) -> Outcome:
    """How what a limit cut off ended: by the operator's hand, or by a policy."""
    name = f"{word(kind) or 'unknown'} limit"[:PREVIEW]
    if kind == "operator":
        return Status.CANCELLED, StatusSource.EXPLICIT, None
    return Status.ERROR, StatusSource.POLICY, Error(message[:MESSAGE_LIMIT], name)


def _model(light: Light, attached: Attached, version: tuple[int, ...] | None) -> Span:
    """A call of the model. An answer that Inspect had kept costs nothing."""
    output = mapping(light.output)
    choice = mapping(next(iter(sequence(output.get("choices"))), None))
    stop, told = word(choice.get("stop_reason")), light.error if light.error is not None else output.get("error")
    status, source, error = _failure(told, attached)
    tries = whole(light.retries)
    notes = (
        "cached" if light.cache == "read" else "",
        stop[:PREVIEW] if stop in _CUT else "",
        f"{tries} {'retry' if tries == 1 else 'retries'}" if tries else "",
        word(light.role) or "",
    )
    name = word(light.model) or word(output.get("model"))
    return Span(
        id="",
        name=(name or "model")[:PREVIEW],
        operation=Operation.CHAT,
        status=Status.RUNNING if light.pending is True else status,
        status_word=stop[:PREVIEW] if stop else None,
        status_source=source,
        duration_ms=_duration(light),
        usage=None if light.cache == "read" else usage_of(output.get("usage"), version),
        error=error,
        model=name[:PREVIEW] if name else None,
        preview=_answer(mapping(choice.get("message")), attached),
        note=joined(notes),
    )


def _answer(message: dict[str, Any], attached: Attached) -> str:
    """What the model said, or the calls that it asked for."""
    content = message.get("content")
    text = (
        attached(content)
        if isinstance(content, str)
        else text_in([_text_part(part, attached) for part in sequence(content)])
    )
    if text.strip():
        return text.strip()[:PREVIEW]
    calls = (word(mapping(call).get("function")) for call in sequence(message.get("tool_calls")))
    return joined((f"{name}()" for name in calls if name), " ")


def _text_part(part: Any, attached: Attached) -> Any:
    text = mapping(part).get("text") if mapping(part).get("type") == "text" else None
    return {"type": "text", "text": attached(text)} if isinstance(text, str) else None


def _call(light: Light, attached: Attached) -> Span:
    """A call of a tool; a sub-task of earlier logs."""
    status, source, error = _failure(light.error, attached)
    if error is None and light.failed is True:
        status, source = Status.ERROR, StatusSource.EXPLICIT
    tool = light.event == "tool"
    name = word(light.function) if tool else word(light.name)
    given = light.arguments if tool else _value(light, "input")
    notes = (f"→ {light.agent}" if isinstance(light.agent, str) and light.agent else "",)
    return Span(
        id="",
        name=(name or str(light.event))[:PREVIEW],
        operation=Operation.EXECUTE_TOOL if tool else Operation.INVOKE_WORKFLOW,
        status=Status.RUNNING if light.pending is True else status,
        status_source=source,
        duration_ms=_duration(light),
        error=error,
        preview=_telling(given, attached),
        note=joined(notes),
    )


def _telling(given: Any, attached: Attached) -> str:
    """What tells this call from the next: the argument that says most, or its only one."""
    if isinstance(given, dict) and len(given) == 1 and isinstance(value := next(iter(given.values())), str):
        given = value
    told = (
        {key: attached(value) if isinstance(value, str) else value for key, value in given.items()}
        if isinstance(given, dict)
        else given
    )
    return argument(attached(told) if isinstance(told, str) else told).strip()[:PREVIEW]


def _duration(light: Light) -> float | None:
    """Milliseconds that it took: to its end, else the time worked on it."""
    found = between(moment(light.timestamp), moment(light.completed))
    worked = number(light.working_time)
    return found if found is not None or worked is None else max(0.0, worked * 1000)


def _failure(error: Any, attached: Attached) -> Outcome:
    """Whether it failed: an error is a text, or has a type and a message."""
    if error in (None, "", {}):
        return _FINE
    said = error if isinstance(error, str) else mapping(error).get("message")
    message = attached(said) if isinstance(said, str) else ""
    kind = word(mapping(error).get("type")) or error_type(message)
    return Status.ERROR, StatusSource.EXPLICIT, Error(message[:MESSAGE_LIMIT], kind[:PREVIEW] if kind else None)


def _value(light: Light, name: str) -> Any:
    try:
        return light.value(name)
    except FormatError:
        return None


def _plain(
    light: Light,
    preview: str = "",
    *,
    operation: Operation = Operation.META,
    name: str | None = None,
    outcome: Outcome = _FINE,
    note: str = "",
    word_: str | None = None,
) -> Span:
    """An event that is neither a call of a model nor of a tool."""
    status, source, error = outcome
    return Span(
        id="",
        name=(name or str(light.event))[:PREVIEW],
        operation=operation,
        status=status,
        status_word=word_[:PREVIEW] if word_ else None,
        status_source=source,
        duration_ms=_duration(light) if light.completed is not None else None,
        error=error,
        preview=preview.strip()[:PREVIEW],
        note=note[:PREVIEW],
    )


def _unknown(light: Light) -> Span:
    """A kind of event that this version does not know."""
    name = word(light.event)
    return Span(
        id="",
        name=(name or "?")[:PREVIEW],
        operation=Operation.UNKNOWN,
        status=Status.OK,
        status_source=StatusSource.DERIVED,
    )


def _began(light: Light, attached: Attached) -> Span:
    given = mapping(light.sample).get("input")
    prompt = prompt_in(attached(given) if isinstance(given, str) else given)
    return _plain(light, attached(prompt), operation=Operation.MESSAGE)


def _changes(light: Light, attached: Attached) -> Span:
    paths = changed(light)
    return _plain(
        light, joined((path[:PREVIEW] for path in paths[:8]), " "), note=f"{len(paths)}" if len(paths) > 1 else ""
    )


def _score(light: Light, attached: Attached) -> Span:
    score = mapping(light.score)
    given = word(light.scorer)
    note = "intermediate" if light.intermediate is True else ""
    return _plain(
        light,
        value_words(score.get("value")),
        operation=Operation.OTHER,
        name=f"score {given}" if given else "score",
        note=note,
    )


def _error(light: Light, attached: Attached) -> Span:
    status, source, error = _failure(light.error, attached)
    outcome = (Status.ERROR, StatusSource.EXPLICIT, error) if error is not None else (status, source, None)
    return _plain(light, operation=Operation.OTHER, outcome=outcome)


def _logged(light: Light, attached: Attached) -> Span:
    said = mapping(light.message)
    text = said.get("message")
    return _plain(light, attached(text) if isinstance(text, str) else "", note=word(said.get("level")) or "")


def _info(light: Light, attached: Attached) -> Span:
    data = _value(light, "data")
    return _plain(light, attached(data) if isinstance(data, str) else argument(data), note=word(light.source) or "")


def _typed(light: Light, attached: Attached) -> Span:
    """What a person typed."""
    said = _value(light, "input")
    return _plain(light, attached(said) if isinstance(said, str) else "", operation=Operation.MESSAGE)


def _sandbox(light: Light, attached: Attached) -> Span:
    """What was done in a sandbox; a command says by its exit code how it went."""
    code = whole(_value(light, "result"))
    outcome: Outcome = _FINE
    if code is not None:
        failed = (Status.ERROR, StatusSource.EXIT, Error("", f"exit {code}"))
        outcome = failed if code else (Status.OK, StatusSource.EXIT, None)
    done = word(light.cmd) or word(light.file) or ""
    return _plain(
        light, attached(done), operation=Operation.OTHER, name=word(light.action), outcome=outcome, note="sandbox"
    )


def _approval(light: Light, attached: Attached) -> Span:
    decision = word(light.decision)
    refused = decision in ("reject", "terminate")
    why = word(light.explanation) or word(light.message) or ""
    failed = (Status.ERROR, StatusSource.POLICY, Error(attached(why)[:MESSAGE_LIMIT], f"approval: {decision}"))
    outcome: Outcome = failed if refused else (Status.OK, StatusSource.EXPLICIT, None)
    who = word(light.approver) or ""
    return _plain(light, attached(why), operation=Operation.POLICY, outcome=outcome, note=who, word_=decision)


def _limit(light: Light, attached: Attached) -> Span:
    message = word(light.message) or ""
    outcome = outcome_of_limit(light.type, attached(message))
    return _plain(
        light,
        attached(message),
        operation=Operation.POLICY,
        name=f"{word(light.type) or 'sample'} limit",
        outcome=outcome,
    )


def _compaction(light: Light, attached: Attached) -> Span:
    before, after = whole(light.tokens_before), whole(light.tokens_after)
    counts = f"{before} → {after} tokens" if before is not None and after is not None else ""
    return _plain(light, counts, note=word(light.type) or "")


def _interrupt(light: Light, attached: Attached) -> Span:
    return _plain(
        light,
        operation=Operation.OTHER,
        outcome=(Status.CANCELLED, StatusSource.EXPLICIT, None),
        note=word(light.source) or "",
    )


def _noted(light: Light, attached: Attached) -> Span:
    return _plain(light, word(light.name) or word(light.source) or "")


_SHORT: Final[dict[str, Callable[[Light, Attached], Span]]] = {
    "sample_init": _began,
    "state": _changes,
    "store": _changes,
    "score": _score,
    "error": _error,
    "logger": _logged,
    "info": _info,
    "input": _typed,
    "sandbox": _sandbox,
    "approval": _approval,
    "sample_limit": _limit,
    "compaction": _compaction,
    "interrupt": _interrupt,
    **dict.fromkeys(("score_edit", "branch", "anchor", "checkpoint", "span_begin", "span_end", "step"), _noted),
}


def kinds() -> Iterator[str]:
    """The kinds of events that are known."""
    yield from ("model", "tool", "subtask", *_SHORT)

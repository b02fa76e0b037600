"""Steps of a trajectory as spans."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.formats.atif.fields import At, Record, failure_in, is_copied, moment, text_in, usage_of
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import mapping, sequence, whole, without, word
from tracetui.model import COPIED, PREVIEW, Operation, Span, Status, StatusSource

AGENT: Final = "agent"
REF: Final = "subagent_trajectory_ref"
"""Field of a result with references to trajectories of sub-agents."""
_NOWHERE: Final = At()
_FINE: Final = {"status": Status.OK, "status_source": StatusSource.DERIVED}
_HEARD: Final = frozenset({"user", "system"})


class Scope(msgspec.Struct, frozen=True):
    """What holds for all steps of one trajectory."""

    prefix: str = ""
    """Before the ids of its spans."""
    parent: str | None = None
    path: str | None = None
    """Its file, where it is not that of the run; relative to its folder."""
    model: str | None = None
    below: bool = False
    """It is one of a sub-agent, whose steps are not those of the run."""
    lean: bool = False
    """Only what a summary shows is wanted: no previews, no places of bodies."""


def spans_of(record: Record, place: int, scope: Scope) -> list[Span]:
    """The step in `record`, which is the one at `place`, and its calls below it."""
    step = mapping(record.value)
    ident = f"{scope.prefix}{place + 1}"
    at = _NOWHERE if scope.lean else At(record.place, None if record.place else record.value, scope.path)
    if step and is_copied(step):
        return [_copied(step, ident, at, scope)]
    if step.get("source") == AGENT:
        top, calls = _agent(step, ident, at, scope), calls_of(step)
        answers = answers_of(step)[0] if calls else {}
        said = mapping(step.get("extra")).get("tool_result_is_error") if len(calls) == 1 else None
        made = ((call, j, answers.get(j, [])) for j, call in enumerate(calls) if isinstance(call, dict))
        return [top, *(_call(call, j, found, top, said, lean=scope.lean) for call, j, found in made)]
    return [_heard(step, ident, at, scope)]


def answers_of(step: dict[str, Any]) -> tuple[dict[int, list[Any]], list[Any]]:
    """The results of each call by its place, and those of none.

    A result belongs to the call that it names (in order, where several have that id); one that names none belongs to
    the only call, where there is one.
    """
    calls = calls_of(step)
    results = sequence(mapping(step.get("observation")).get("results"))
    if not results:
        return {}, []
    if len(calls) == len(results) == 1 and _answers(results[0], calls[0]):  # as nearly always
        return {0: results}, []
    named: dict[str, deque[int]] = {}
    for place, call in enumerate(calls):
        ident = word(mapping(call).get("tool_call_id"))
        if ident is not None:
            named.setdefault(ident, deque()).append(place)
    found: dict[int, list[Any]] = {}
    rest = []
    for result in results:
        said = mapping(result).get("source_call_id")
        places = named.get(said) if isinstance(said, str) else None
        if places:
            found.setdefault(places[0] if len(places) == 1 else places.popleft(), []).append(result)
        elif said is None and isinstance(result, dict) and len(calls) == 1 and isinstance(calls[0], dict):
            found.setdefault(0, []).append(result)
        else:
            rest.append(result)
    return found, rest


def _answers(result: Any, call: Any) -> bool:
    """Whether a result names a call."""
    ident = word(mapping(call).get("tool_call_id"))
    return ident is not None and mapping(result).get("source_call_id") == ident


def refs_of(result: Any) -> list[dict[str, Any]]:
    """The references to trajectories of sub-agents in a result."""
    refs = mapping(result).get(REF)
    return [ref for ref in (refs if isinstance(refs, list) else [refs]) if isinstance(ref, dict)]


def calls_of(step: dict[str, Any]) -> list[Any]:
    """The calls that a step of the agent asked for."""
    return sequence(step.get("tool_calls")) if step.get("source") == AGENT else []


def _base(step: dict[str, Any], ident: str, at: At, scope: Scope) -> dict[str, Any]:
    return {
        "id": ident,
        "parent_id": scope.parent,
        "step": None if scope.below else whole(step.get("step_id")),
        "is_step": not scope.below,
        "started_at": moment(step.get("timestamp"))[0],
        "at": at,
    }


def _outcome(step: dict[str, Any], text: str) -> dict[str, Any]:
    """The status of a step: ok unless a field says something else."""
    if step.get("extra") is None:
        return _FINE
    extra = without(mapping(step["extra"]), "tool_result_is_error")
    status, source, error = failure_in((extra,), text)
    return {"status": status or Status.OK, "status_source": source or StatusSource.DERIVED, "error": error}


def _heard(step: dict[str, Any], ident: str, at: At, scope: Scope) -> Span:
    """A message of the user or the system; anything that is neither of the three known sources is a row of its own."""
    source, text = word(step.get("source")), text_in(step.get("message"))
    known = source in _HEARD
    managed = word(mapping(mapping(step.get("extra")).get("context_management")).get("type"))
    return Span(
        name=(source or "?")[:PREVIEW],
        operation=Operation.MESSAGE if known else Operation.UNKNOWN,
        preview=text.strip()[:PREVIEW],
        note=(managed or "")[:PREVIEW] if known else "",
        **_base(step, ident, at, scope),
        **_outcome(step, text),
    )


def _copied(step: dict[str, Any], ident: str, at: At, scope: Scope) -> Span:
    """A step of the context that a trajectory was begun with: it happened, and was paid for, elsewhere."""
    base = _base(step, ident, at, scope) | {"step": None, "is_step": False}
    return Span(
        name=(word(step.get("source")) or "step")[:PREVIEW],
        operation=Operation.MESSAGE,
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        preview=_said(step),
        note=COPIED,
        **base,
    )


def _said(step: dict[str, Any]) -> str:
    texts = (text_in(step.get("message")), text_in(step.get("reasoning_content")))
    return next((text.strip()[:PREVIEW] for text in texts if text.strip()), "")


def _agent(step: dict[str, Any], ident: str, at: At, scope: Scope) -> Span:
    """What the agent did: a call of its model, several told as one, or none."""
    count, model = whole(step.get("llm_call_count")), word(step.get("model_name")) or scope.model
    none = count == 0
    return Span(
        name=AGENT if none else (model or "model")[:PREVIEW],
        operation=Operation.OTHER if none else Operation.CHAT,
        usage=usage_of(step.get("metrics")),
        model=None if none else model,
        preview="" if scope.lean else _said(step),
        note="no model call" if none else f"{count} model calls" if count is not None and count > 1 else "",
        **_base(step, ident, at, scope),
        **_outcome(step, text_in(step.get("message"))),
    )


def _call(call: dict[str, Any], place: int, answers: list[Any], top: Span, said: Any, *, lean: bool) -> Span:
    """A call of the step that is `top`, which has `said` whether the only one failed."""
    extras = [mapping(answer).get("extra") for answer in answers] + [call.get("extra"), said and {"is_error": said}]
    status = source = error = None
    if any(extras):
        status, source, error = failure_in(extras, [mapping(answer).get("content") for answer in answers])
    return Span(
        id=f"{top.id}.{place + 1}",
        name=(word(call.get("function_name")) or "tool")[:PREVIEW],
        operation=Operation.EXECUTE_TOOL,
        parent_id=top.id,
        step=top.step,
        status=status or (Status.OK if answers else Status.UNKNOWN),
        status_source=source or StatusSource.DERIVED,
        started_at=top.started_at,
        error=error,
        preview="" if lean else _telling(arguments_of(call)),
        at=top.at if lean else replace(top.at, call=place),
    )


def arguments_of(call: dict[str, Any]) -> Any:
    """The arguments of a call, decoded where they are JSON in a text."""
    found = call.get("arguments")
    return decode_value(found) if isinstance(found, str) else found


def _telling(arguments: Any) -> str:
    """What tells this call from the next: its first text."""
    if isinstance(arguments, str):
        return arguments[:PREVIEW]
    texts: Iterator[str] = (value for value in mapping(arguments).values() if isinstance(value, str) and value)
    return next(texts, "")[:PREVIEW]

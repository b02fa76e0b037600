"""A part of a run as a run of its own: the trace of a sub-agent within the trace of the agent that called it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tracetui.model.build import Tally, summary_of
from tracetui.model.message import Message, text_of
from tracetui.model.run import Header, Run, RunBody, RunSummary, Step
from tracetui.model.span import PREVIEW, Body, Operation, Span, Status, StatusSource


def is_part(span: Span) -> bool:
    """Whether a span opens as a trace of its own."""
    return span.operation is Operation.INVOKE_AGENT


def part_of(run: Run, position: int) -> Run:
    """What is below ``spans[position]``, as a run; its address is that of the span.

    Its steps are those of the run that lie within. A sub-agent mostly has none: then the messages that its user (the
    agent that called it) sent are the turns of its conversation, and its steps. Reads the bodies of its messages.
    """
    span, begin, end = run.spans[position], position + 1, position + run.sizes[position]
    above = run.depths[position] + 1
    depths = tuple(depth - above for depth in run.depths[begin:end])
    spans = _own_steps(run.spans[begin:end], depths)
    body = _body(run, position, spans, depths)
    return Run(
        summary=_summary(run, span, spans, body),
        body=body,
        spans=spans,
        depths=depths,
        sizes=run.sizes[begin:end],
        steps=tuple(Step(one.step, one.id) for one in spans if one.is_step),
        index={one.id: i for i, one in enumerate(spans)},
        load=run.load,
        unended=tuple(i - begin for i in run.unended if begin <= i < end),
        revision=run.revision,
        complete=run.complete,
    )


def _own_steps(spans: Sequence[Span], depths: Sequence[int]) -> tuple[Span, ...]:
    """The spans with those at the top freed of their parent, and with steps of their own if they have none."""
    counted = any(span.is_step for span in spans)
    made, number = [], 0
    for span, depth in zip(spans, depths, strict=True):
        asked = not counted and depth == 0 and _is_said_by(span, "user")
        number += asked
        step = span.step if counted else number or None
        parent = None if depth == 0 else span.parent_id
        made.append(replace(span, parent_id=parent, step=step, is_step=asked or span.is_step))
    return tuple(made)


def _is_said_by(span: Span, role: str) -> bool:
    return span.operation is Operation.MESSAGE and span.name == role


def _summary(run: Run, span: Span, spans: Sequence[Span], body: RunBody) -> RunSummary:
    tally = Tally()
    for one in spans:
        tally.add(one)
    whole = run.summary
    ended = span.status_source is StatusSource.DERIVED and span.duration_ms is not None
    # in the whole run an error is counted where it happened; here it is what the run ended with
    failed = ended and span.status is Status.UNKNOWN and tally.ends_in_error
    header = Header(
        id=span.id,
        name=span.name,
        agent=span.name,
        model=next((one.name for one in spans if one.operation is Operation.CHAT), None),
        status=Status.ERROR if failed else span.status,
        status_word=span.status_word,
        status_source=span.status_source,
        started_at=span.started_at,
        time_zone=whole.time_zone,
        duration_ms=span.duration_ms,
        usage=span.usage,
        parent=whole.id,
        prompt=(body.last_user or "")[:PREVIEW],
    )
    found = summary_of(replace(whole.ref, span=span.id), header, tally)
    return replace(found, modified_at=whole.modified_at)


def _body(run: Run, position: int, spans: Sequence[Span], depths: Sequence[int]) -> RunBody:
    """What went into the sub-agent and what came of it: by its own messages, else by the call that started it."""
    turns = {span.id for span in spans if span.operation is Operation.TURN}
    said = [span for span, depth in zip(spans, depths, strict=True) if depth == 0 or span.parent_id in turns]
    asked, answered, system = (_texts(run, said, role) for role in ("user", "assistant", "system"))
    caller = _caller(run, position)
    given, made = (None, None) if caller is None else (caller.input, caller.output)
    return RunBody(
        input=asked[0] if asked else given,
        output=answered[-1] if answered else made,
        error=run.spans[position].error,
        system_prompt=system[0] if system else None,
        last_user=asked[-1] if asked else None,
        last_assistant=answered[-1] if answered else None,
        attributes=run.load(run.spans[position]).attributes,
    )


def _caller(run: Run, position: int) -> Body | None:
    """The call that started it."""
    above = run.parent(position)
    if above is None or run.spans[above].operation is not Operation.EXECUTE_TOOL:
        return None
    return run.load(run.spans[above])


def _texts(run: Run, spans: Sequence[Span], role: str) -> list[str]:
    """What somebody said, by the messages and (what a model made) the model calls among these spans."""
    messages: list[Message] = []
    for span in spans:
        if span.operation in (Operation.MESSAGE, Operation.TURN, Operation.CHAT):
            body = run.load(span)
            context = () if span.operation is Operation.CHAT else body.input_messages
            messages += (*context, *body.output_messages)
    return [text for one in messages if one.role == role and (text := text_of(one))]

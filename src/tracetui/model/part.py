"""Parts of a run: a sub-agent opened as a run, and the spans that count in a run.

A run may contain spans that another run counts: those of a nested run that is listed separately, and those that a fork
or copy inherited from its original.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum

from msgspec.structs import replace

from tracetui.model.blocks import Blocks
from tracetui.model.build import Tally, summary_of
from tracetui.model.run import Header, Run, RunBody, RunRef, Step
from tracetui.model.span import COUNTS_HERE, PREVIEW, Body, Message, Operation, Span, Status, StatusSource, text_of
from tracetui.model.summary import RunSummary

# ---- sub-agents as runs


def is_part(span: Span) -> bool:
    """Whether a span can be opened as a run."""
    return span.operation is Operation.INVOKE_AGENT


def part_of(run: Run, position: int) -> Run:
    """The subtree of ``spans[position]`` as a run, with the address of the span.

    Its steps are the steps of the run inside the subtree. If there are none, as in most sub-agents, each user message
    (from the calling agent) is a step. Loads the bodies of its messages.
    """
    span, begin, end = run.spans[position], position + 1, position + run.sizes[position]
    above = run.depths[position] + 1
    depths = tuple(depth - above for depth in run.depths[begin:end])
    spans = _own_steps(run.spans[begin:end], depths)
    body = _body(run, position, spans, depths)
    return Run(
        summary=_summary(run, span, spans, body),
        body=body,
        spans=Blocks(spans),
        depths=Blocks(depths),
        sizes=Blocks(run.sizes[begin:end]),
        steps=Blocks(Step(one.step, one.id) for one in spans if one.is_step),
        index={one.id: i for i, one in enumerate(spans)},
        load=run.load,
        unended=tuple(i - begin for i in run.unended if begin <= i < end),
        revision=run.revision,
        complete=run.complete,
    )


def _own_steps(spans: Sequence[Span], depths: Sequence[int]) -> tuple[Span, ...]:
    """The spans without parents at the top, and with steps of their own if they have none."""
    counted = any(span.is_step for span in spans)
    made, number = [], 0
    for span, depth in zip(spans, depths, strict=True):
        asked = not counted and depth == 0 and _has_role(span, "user")
        number += asked
        step = span.step if counted else number or None
        parent = None if depth == 0 else span.parent_id
        made.append(replace(span, parent_id=parent, step=step, is_step=asked or span.is_step))
    return tuple(made)


def _has_role(span: Span, role: str) -> bool:
    return span.operation is Operation.MESSAGE and span.name == role


def _summary(run: Run, span: Span, spans: Sequence[Span], body: RunBody) -> RunSummary:
    tally = Tally()
    for one in spans:
        tally.add(one)
    whole = run.summary
    ended = span.status_source is StatusSource.DERIVED and span.duration_ms is not None
    # in the whole run the error belongs to its span; here it is the end of the run
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
    """Input and output of a sub-agent: from its messages, else from the call that started it."""
    turns = {span.id for span in spans if span.operation is Operation.TURN}
    messages = [span for span, depth in zip(spans, depths, strict=True) if depth == 0 or span.parent_id in turns]
    asked, answered, system = (_texts(run, messages, role) for role in ("user", "assistant", "system"))
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
    """The body of the call that started it."""
    above = run.parent(position)
    if above is None or run.spans[above].operation is not Operation.EXECUTE_TOOL:
        return None
    return run.load(run.spans[above])


def _texts(run: Run, spans: Sequence[Span], role: str) -> list[str]:
    """The texts of one role, from the messages and model calls among these spans."""
    messages: list[Message] = []
    for span in spans:
        if span.operation in (Operation.MESSAGE, Operation.TURN, Operation.CHAT):
            body = run.load(span)
            context = () if span.operation is Operation.CHAT else body.input_messages
            messages += (*context, *body.output_messages)
    return [text for one in messages if one.role == role and (text := text_of(one))]


# ---- ownership of spans


class Ownership(Enum):
    """Which run counts a span."""

    OWN = "own"
    """The run that contains it."""
    LISTED = "listed"
    """Another listed run: a nested run, or the original of a fork."""
    TAKEN_OVER = "taken over"
    """The original of this run, listed or not."""


def ownership(run: Run, listed: Container[RunRef] = ()) -> list[Ownership]:
    """The ownership of every span of a run, given that the runs of `listed` are counted separately.

    Descendants of a span owned by another run are never the run's own. An unlisted nested run counts to the innermost
    listed run that contains it.
    """
    ref, found = run.summary.ref, list[Ownership]()
    listed_end = taken_over_end = 0
    for i, span in enumerate(run.spans):
        if i >= listed_end:
            if span.owner is not None and RunRef(ref.format, ref.path, span.owner) in listed:
                listed_end = i + run.sizes[i]
            elif i >= taken_over_end and _is_taken_over(span):
                taken_over_end = i + run.sizes[i]
        taken_over = Ownership.TAKEN_OVER if i < taken_over_end else Ownership.OWN
        found.append(Ownership.LISTED if i < listed_end else taken_over)
    return found


def own_spans(run: Run, listed: Container[RunRef] = ()) -> list[Span]:
    """The spans that a run owns, given that the runs of `listed` are counted separately."""
    owned = zip(run.spans, ownership(run, listed), strict=True)
    return [span for span, owner in owned if owner is Ownership.OWN]


def nested_runs(run: Run) -> frozenset[RunRef]:
    """The runs of the same file that own spans of this one."""
    ref = run.summary.ref
    return frozenset(RunRef(ref.format, ref.path, owner) for owner in {span.owner for span in run.spans} if owner)


def _is_taken_over(span: Span) -> bool:
    """Whether a span comes from another run: inherited, copied, or restored instead of computed."""
    return (span.taken_over and COUNTS_HERE not in span.notes) or span.status_word == "restored"

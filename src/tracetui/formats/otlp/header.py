"""What is known of a trace as a whole."""

from __future__ import annotations

from math import inf
from typing import Any, Final

from tracetui.formats.fields import unknown_fields
from tracetui.formats.otlp.trace import Earliest, Trace
from tracetui.model import PREVIEW, FirstError, Header, RunBody, Span, Status, StatusSource, Usage

_NOTHING: Final = (None, None, None)
_ID_LENGTH: Final = 32
"""Hex digits of a trace id (16 bytes, as OTLP's ``trace.proto`` says), which is unique: rotation, or a file for each
process, spreads such a trace over several files."""


def header_of(trace: Trace) -> Header:
    """The header as far as it is known."""
    root: Span | None = trace.root.value
    final: Span | None = trace.final.value
    agent = trace.agent.value or trace.workflow.value or trace.service.value
    name = root.name if root is not None else agent or f"trace {trace.key[:8]}"
    failed = trace.failed()
    told = final is not None and (final.status is Status.ERROR or final.status_word is not None)
    status, word, source = (final.status, final.status_word, final.status_source) if final and told else _NOTHING
    if failed is not None:
        status, word, source = Status.ERROR, None, StatusSource.DERIVED
    return Header(
        id=trace.key,
        name=name,
        agent=agent[:PREVIEW] if agent else None,
        model=trace.model.value,
        status=status,
        status_word=word,
        status_source=source,
        ended=trace.final.at < inf,
        by_start=True,
        duration_ms=root.duration_ms if root is not None and final is not None and root.id == final.id else None,
        usage=_outermost(trace),
        repeats=trace.task,
        split=len(trace.key) == _ID_LENGTH,
        error=_cause(trace, failed or final),
        prompt=(trace.prompt.value or "")[:PREVIEW],
        tags=trace.tags,
        source=(trace.source.value or trace.service.value or "")[:PREVIEW] or None,
        writer=trace.sdk,
        fields=unknown_fields(trace.strange),
    )


def _outermost(trace: Trace) -> Usage | None:
    """What the outermost of the spans that say it say that they used; None where calls of models do."""
    found = Usage()
    for span_id, usage in trace.stated.items():
        above, seen = trace.parents.get(span_id), {span_id}
        while above is not None and above not in seen and above not in trace.stated:
            seen.add(above)
            above = trace.parents.get(above)
        if above is None or above in seen:
            found += usage
    return found or None


def _cause(trace: Trace, final: Span | None) -> FirstError | None:
    """Where the error that the run failed with came up first; else the first of all."""
    if final is not None and final.error is not None and (found := trace.failures.get(final.error.words[:PREVIEW])):
        return found.value if isinstance(found.value, FirstError) else None
    best = min(trace.failures.values(), key=lambda one: one.at, default=Earliest()).value
    return best if isinstance(best, FirstError) else None


def _findings(final: Span | None, failed: Span | None) -> tuple[str, ...]:
    """Why the run counts as failed where the span at the top says that it is OK."""
    if final is None or failed is None or final.status_word is None:
        return ()
    return (f"Top span says {final.status_word}, but {failed.operation} span {failed.name} ended in an error",)


def body_of_run(trace: Trace) -> RunBody:
    """What the trace says as a whole: resources and scopes, and what went into the span at the top."""
    final: Span | None = trace.final.value
    failed = trace.failed()
    kept: dict[str, Any] = {}
    times: dict[str, int] = {}
    for kind, fields in trace.around.values():
        if not fields:
            continue
        times[kind] = times.get(kind, 0) + 1
        kept[kind if times[kind] == 1 else f"{kind} {times[kind]}"] = fields
    return RunBody(
        input=trace.root_body[0],
        output=trace.root_body[1],
        error=None if final is None else (failed or final).error,
        findings=_findings(final, failed),
        system_prompt=trace.system.value,
        last_user=trace.prompt.value,
        last_assistant=trace.answer.value,
        attributes=kept,
    )

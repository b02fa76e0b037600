"""Names the places of a run so that the name opens them: the inverse of `store.address`.

A span's own step number is that of the trace, which may restart its count in a nested graph or agent, or give one
number to several steps that ran side by side. Such a number alone would open another span, or none.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import Final

from tracetui.errors import UsageError
from tracetui.model import Run, RunRef, Span, quote_key
from tracetui.model.blocks import Blocks
from tracetui.model.run import Step
from tracetui.store.address import target

_MAX_RUNS: Final = 4
_STEPS: Final[OrderedDict[RunRef, tuple[Blocks[Step], Counter[int]]]] = OrderedDict()
"""Cache: the steps of the last runs, and how many of them have each number."""
_ABOVE: Final[OrderedDict[RunRef, tuple[Blocks[Span], dict[int, int | None]]]] = OrderedDict()
"""Cache: the spans of the last runs, and the position of the step that contains the span at a position."""
_LOCK: Final = threading.Lock()


def span_title(run: Run, span: Span) -> str:
    """A span by step and name, not cleaned: ``step 3 search``, ``step 0/generate``; just its name without a step.

    ``ADDRESS/3`` opens that step; a path opens the span itself.
    """
    label = span_label(run, span)
    if not label:
        return span.name
    return label if label.rpartition("/")[2] == quote_key(span.name) else f"{label} {span.name}"


def span_label(run: Run, span: Span) -> str:
    """The prefix of a span's name: ``step 3``, ``step 0/generate``, ``rag/generate``; not cleaned.

    Empty if the span has no number, or its name alone opens it.
    """
    place = span_reference(run, span)
    if not place or place == quote_key(span.name):
        return ""
    return f"step {place}" if step_number(run, span) is not None else place


def span_reference(run: Run, span: Span) -> str:
    """The part after ``ADDRESS/``: the number of the span's step, else the path to the span.

    Empty if the span has no number.
    """
    if span.step is None or span.id not in run.index:
        return ""
    number = step_number(run, span)
    if number == span.step and _steps(run)[number] == 1 and (span.is_step or span.owner is None):
        return str(number)
    return span_path(run, span)


def step_number(run: Run, span: Span) -> int | None:
    """The number of the run's step that contains a span; None outside numbered steps."""
    position = run.index.get(span.id)
    step = None if position is None else _step_above(run, position)
    if step is not None:
        return run.spans[step].step
    return span.step if span.owner is None and span.step in _steps(run) else None


def span_path(run: Run, span: Span) -> str:
    """The path that opens a span below the address of its run: ``2``, ``2/fetch``, ``0/generate``, or its id."""
    parts: list[str] = []
    position: int | None = run.index[span.id]
    while position is not None:
        above = run.spans[position]
        number = above.step if above.is_step else None
        if number is not None and _steps(run)[number] == 1:
            parts.append(str(number))
            break
        parts.append(above.name)
        if number is not None:
            parts.append(str(number))
            break
        position = run.parent(position)
    for tried in (parts[::-1], [span.id]):
        try:
            found = target(run, tried)
        except UsageError:
            continue
        if found.span is not None and found.span.id == span.id and not found.keys:
            return "/".join(map(quote_key, tried))
    return quote_key(span.id)


def _step_above(run: Run, position: int | None) -> int | None:
    """The position of the step that contains a span. Walks up to the first span that was asked about before."""
    with _LOCK:
        spans, above = _ABOVE.pop(run.summary.ref, (run.spans, {}))
        if spans is not run.spans:
            above = {}
        _ABOVE[run.summary.ref] = run.spans, above
        while len(_ABOVE) > _MAX_RUNS:
            _ABOVE.popitem(last=False)
    walked: list[int] = []
    while position is not None and position not in above and not run.spans[position].is_step:
        walked.append(position)
        position = run.parent(position)
    step = position if position is None or run.spans[position].is_step else above[position]
    above.update(dict.fromkeys(walked, step))
    return step


def _steps(run: Run) -> Counter[int]:
    """How many steps have each number. For a newer state of a run, counts its new steps only."""
    with _LOCK:
        steps, counts = _STEPS.pop(run.summary.ref, (Blocks(), Counter()))
        if len(steps) > len(run.steps) or next(steps.differing(run.steps), None) is not None:
            steps, counts = Blocks(), Counter()
        counts.update(step.number for step in run.steps[len(steps) :] if step.number is not None)
        _STEPS[run.summary.ref] = run.steps, counts
        while len(_STEPS) > _MAX_RUNS:
            _STEPS.popitem(last=False)
    return counts

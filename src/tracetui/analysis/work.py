"""Sums up the work of a run: its tools, its context window and the nodes of its graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from tracetui.model import INHERITED, Operation, Run, Span, Status
from tracetui.model.build import own_spans
from tracetui.store.address import step_number

_TOOL_OPERATIONS: Final = frozenset({Operation.EXECUTE_TOOL, Operation.RETRIEVAL, Operation.EMBEDDINGS})
_MAX_WINDOWS: Final = 240
"""Maximum samples of the context window."""


class Tool(msgspec.Struct, gc=False):
    """Totals of all calls of one tool."""

    name: str
    operation: Operation
    span: str
    """Id of the first failed call, else of the first call."""
    calls: int = 0
    errors: int = 0
    ms: float | None = None
    """Total duration; None if the trace has none."""


class Window(msgspec.Struct, frozen=True, gc=False):
    """Input tokens of a model call."""

    span: str
    step: int | None
    tokens: int


class Work(msgspec.Struct, frozen=True, gc=False):
    """The work of a run: tools, longest total first; the context window of the top-level agent, in order."""

    tools: tuple[Tool, ...]
    windows: tuple[Window, ...]
    """Downsampled by maximum if there are very many calls."""


def work_of(run: Run) -> Work:
    """Sum up the work of a run. Reads the header of every span: too slow for the UI thread on long runs."""
    tools: dict[str, Tool] = {}
    windows: list[tuple[int, Window]] = []
    for position, span in enumerate(run.spans):
        if span.operation in _TOOL_OPERATIONS:
            tool = tools.setdefault(span.name, Tool(span.name, span.operation, span.id))
            if span.status is Status.ERROR:
                tool.span = tool.span if tool.errors else span.id
                tool.errors += 1
            tool.calls += 1
            if span.duration_ms is not None:
                tool.ms = (tool.ms or 0.0) + span.duration_ms
        elif span.operation is Operation.CHAT and span.usage is not None and span.usage.input_tokens is not None:
            windows.append((run.depths[position], Window(span.id, step_number(run, span), span.usage.input_tokens)))
    top = min((depth for depth, _ in windows), default=0)  # sub-agents have windows of their own
    own = [window for depth, window in windows if depth == top]
    ordered = sorted(tools.values(), key=lambda tool: (-(tool.ms or 0.0), -tool.calls, tool.name))
    return Work(tuple(ordered), tuple(fullest_windows(own, _MAX_WINDOWS)))


def fullest_windows(windows: Sequence[Window], most: int) -> list[Window]:
    """Downsample to `most` windows, the fullest of each stretch."""
    if len(windows) <= most:
        return list(windows)
    edges = [i * len(windows) // most for i in range(most + 1)]
    return [max(windows[start:stop], key=lambda window: window.tokens) for start, stop in pairwise(edges)]


_NODES: Final = (Operation.NODE, Operation.ROUTE, Operation.INVOKE_WORKFLOW)


class NodeStats(msgspec.Struct, frozen=True):
    """How often a node ran and how long that took, in milliseconds."""

    count: int = 0
    total_ms: float = 0.0
    avg_ms: float | None = None
    """Mean of the executions that neither failed nor came from a cache; None without any."""
    errors: int = 0
    cached: int = 0


def node_spans(run: Run) -> list[Span]:
    """The node executions of a run: its steps; for a map, the steps of its items."""
    steps = [span for span in run.spans if span.is_step]
    if steps:
        return steps
    return [span for span, depth in zip(run.spans, run.depths, strict=True) if depth == 1 and span.operation in _NODES]


def own_node_spans(run: Run) -> list[Span]:
    """The run's own node executions, without inherited or restored ones."""
    own = {span.id for span in own_spans(run)}
    return [span for span in node_spans(run) if span.id in own]


def node_stats(run: Run) -> dict[str, NodeStats]:
    """Statistics by node name, in order of first execution, without inherited executions."""
    by_name: dict[str, list[Span]] = {}
    for span in own_node_spans(run):
        by_name.setdefault(span.name, []).append(span)
    return {name: _stats(spans) for name, spans in by_name.items()}


def _stats(spans: list[Span]) -> NodeStats:
    timed = [span.duration_ms for span in spans if span.duration_ms is not None]
    plain = [
        span.duration_ms
        for span in spans
        if span.duration_ms is not None and span.status is not Status.ERROR and not is_cached(span)
    ]
    return NodeStats(
        count=len(spans),
        total_ms=sum(timed),
        avg_ms=sum(plain) / len(plain) if plain else None,
        errors=sum(span.status is Status.ERROR for span in spans),
        cached=sum(map(is_cached, spans)),
    )


def is_cached(span: Span) -> bool:
    return "cached" in span.notes or span.status_word == "cached"


def is_inherited(span: Span) -> bool:
    return INHERITED in span.notes

"""Where the work of a run went: calls, failures and time of each tool, and how full the model's window was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from tracetui.model import Operation, Run, Status
from tracetui.store.places import step_of
from tracetui.text import Clean, count, duration, pad, tokens, truncate_middle
from tracetui.views.bars import amount, sparkline
from tracetui.views.glyphs import kind_of
from tracetui.views.masking import one_line
from tracetui.views.rows import Piece
from tracetui.views.sheet import Sheet

_TOOLS: Final = frozenset({Operation.EXECUTE_TOOL, Operation.RETRIEVAL, Operation.EMBEDDINGS})
_MOST_TOOLS: Final = 8
_COURSE: Final = 240
"""Values that are kept of how the window filled."""
_NAME: Final = 24


class Tool(msgspec.Struct, gc=False):
    """What was called by one name."""

    name: str
    operation: Operation
    span: str
    """Id of the first call that failed, else of the first."""
    calls: int = 0
    errors: int = 0
    ms: float | None = None
    """How long all calls took together; None where the trace tells it of none."""


class Window(msgspec.Struct, frozen=True, gc=False):
    """The tokens that a model call was given."""

    span: str
    step: int | None
    tokens: int


class Work(msgspec.Struct, frozen=True, gc=False):
    """Where the work went: the tool that took longest first; the windows of the agent itself, in order."""

    tools: tuple[Tool, ...]
    windows: tuple[Window, ...]
    """Of very many calls the fullest of each stretch."""


def work_of(run: Run) -> Work:
    """Takes a look at the header of every span: not for the thread that draws, if the run is long."""
    tools: dict[str, Tool] = {}
    windows: list[tuple[int, Window]] = []
    for position, span in enumerate(run.spans):
        if span.operation in _TOOLS:
            tool = tools.setdefault(span.name, Tool(span.name, span.operation, span.id))
            if span.status is Status.ERROR:
                tool.span = tool.span if tool.errors else span.id
                tool.errors += 1
            tool.calls += 1
            if span.duration_ms is not None:
                tool.ms = (tool.ms or 0.0) + span.duration_ms
        elif span.operation is Operation.CHAT and span.usage is not None and span.usage.input_tokens is not None:
            windows.append((run.depths[position], Window(span.id, step_of(run, span), span.usage.input_tokens)))
    top = min((depth for depth, _ in windows), default=0)  # what agents below were given is a window of their own
    own = [window for depth, window in windows if depth == top]
    ordered = sorted(tools.values(), key=lambda tool: (-(tool.ms or 0.0), -tool.calls, tool.name))
    return Work(tuple(ordered), tuple(_fullest(own, _COURSE)))


def _fullest(windows: Sequence[Window], most: int) -> list[Window]:
    """At most so many, the fullest of each stretch."""
    if len(windows) <= most:
        return list(windows)
    edges = [i * len(windows) // most for i in range(most + 1)]
    return [max(windows[start:stop], key=lambda window: window.tokens) for start, stop in pairwise(edges)]


def work(sheet: Sheet, done: Work) -> None:
    """The tools as a table, each row leading to the call that failed; the window as a course."""
    _tools(sheet, done.tools)
    _windows(sheet, done.windows)


def _tools(sheet: Sheet, tools: tuple[Tool, ...]) -> None:
    size = max((len(one_line(tool.name, _NAME)) for tool in tools[:_MOST_TOOLS]), default=0)
    everything = sum(tool.ms or 0.0 for tool in tools)
    for i, tool in enumerate(tools[:_MOST_TOOLS]):
        sign, style = kind_of(tool.operation, sheet.glyphs)
        name = pad(truncate_middle(one_line(tool.name, 200), size), size)
        pieces = [Piece(Clean(f"{sign} "), style), Piece(name, "text")]
        pieces.append(Piece(Clean(f" {pad(count(tool.calls), 5, right=True)}×"), "sec"))
        failed = f"{count(tool.errors)}{sheet.glyphs.error}" if tool.errors else sheet.glyphs.zero
        pieces.append(Piece(pad(Clean(failed), 6, right=True), "status.error bold" if tool.errors else "dim"))
        pieces.append(Piece(pad(duration(tool.ms), 8, right=True), "sec"))
        if tool.ms and sheet.room > size + 40:
            pieces += (Piece(Clean("  ")), *amount(tool.ms, everything, sheet.bar, "bar.tool", glyphs=sheet.glyphs))
        sheet.fact("" if i else "tools", *pieces, spans=(tool.span,))
    if len(tools) > _MOST_TOOLS:
        sheet.fact("", Piece(Clean(f"and {count(len(tools) - _MOST_TOOLS)} more  "), "dim"))


def _windows(sheet: Sheet, windows: tuple[Window, ...]) -> None:
    if len(windows) < 2:
        return
    fullest = max(windows, key=lambda window: window.tokens)
    shown = _fullest(windows, max(8, min(sheet.room, 80)))
    course = sparkline([float(window.tokens) for window in shown], sheet.glyphs)
    sheet.fact("context", Piece(course, "kind.model"), spans=(fullest.span,))
    at = f" at step {fullest.step}" if fullest.step is not None else ""
    told = (("first", windows[0], ""), ("most", fullest, at), ("last", windows[-1], ""))
    pieces = []
    for word, window, where in told:
        pieces += [
            Piece(Clean(f"{word} "), "dim"),
            Piece(tokens(window.tokens), "sec"),
            Piece(Clean(f"{where}  "), "dim"),
        ]
    sheet.fact("", *pieces, Piece(Clean("tokens that a model call was given"), "dim"), spans=(fullest.span,))

"""Two steps side by side, under the tabs of a comparison: changes, contexts, the previous call, the state."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec.structs import replace

from tracetui.analysis.step_diff import (
    CHANGES,
    CONTEXT,
    PREVIOUS,
    STATE,
    Look,
    context_sections,
    state_sections,
    step_sections,
)
from tracetui.diff.comparison import Comparison, Row
from tracetui.diff.step import Kind, context_diff, ended_before, previous_call
from tracetui.model import Body, Operation, Run, Span
from tracetui.store.address import span_title

_NO_MATCH: Final = "the stored {} of {} doesn't match its contents"
_PREFIX: Final = "B is a prefix of A: all of it can be reused"


class _Side:
    """A step of one run with its body; both None if the run has no such step."""

    def __init__(self, run: Run, position: int | None) -> None:
        self.run, self.position = run, position
        self.span: Span | None = None if position is None else run.spans[position]
        self.body: Body | None = None if self.span is None else run.load(self.span)


class Pair(Protocol):
    """Two steps, by position; None on the side without the step."""

    @property
    def a(self) -> int | None: ...
    @property
    def b(self) -> int | None: ...


def look_at(comparison: Comparison, pair: Pair, tab: str, *, raw: bool = False) -> Look:
    """Compare two steps under a tab, or under the first one if that tab is empty.

    `raw`: the values as recorded instead of messages.
    """
    a, b = _Side(comparison.a, pair.a), _Side(comparison.b, pair.b)
    main = b if b.position is not None else a
    tabs = _tabs(a, b, main)
    notes = _flags(a, b)
    tab = tab if tab in tabs else CHANGES
    if tab == CONTEXT and a.body is not None and b.body is not None:
        look = _contexts(a, b)
    elif tab == PREVIOUS and main.position is not None:
        before = previous_call(main.run, main.position)
        look = _contexts(_Side(main.run, before), main)
    elif tab == STATE and main.span is not None and main.span.step is not None:
        state = comparison.state(main.span.step)
        about = f"accumulated state after superstep {main.span.step}"
        over = [letter for letter, side in (("A", a), ("B", b)) if ended_before(side.run, main.span.step)]
        about += "".join(f", {letter} at its end" for letter in over)
        look = Look(STATE, (), tuple(state_sections(state)), about=about)
    else:
        row = Row(Kind.ONLY_A if pair.b is None else Kind.ONLY_B if pair.a is None else Kind.SAME, pair.a, pair.b)
        difference = comparison.changes(row) if raw else comparison.messages(row)
        look = Look(CHANGES, (), tuple(step_sections(a.body, b.body, difference, raw=raw)))
    return _prepared(replace(look, tab=tab, tabs=tabs, notes=(*look.notes, *notes)))


def look_at_calls(run: Run, a: int, b: int) -> Look:
    """Compare the inputs of two model calls of a run."""
    return _prepared(_contexts(_Side(run, a), _Side(run, b)))


def _prepared(look: Look) -> Look:
    """Compute costly parts here, where they block no keys."""
    for section in look.sections:
        if section.differs:
            _ = section.compared
    return look


def _tabs(a: _Side, b: _Side, main: _Side) -> tuple[str, ...]:
    tabs = [CHANGES]
    body, span = main.body, main.span
    if a.body is not None and b.body is not None and a.body.input_messages and b.body.input_messages:
        tabs.append(CONTEXT)
    if span is None or body is None or main.position is None:
        return tuple(tabs)
    if span.operation is Operation.CHAT and body.input_messages and previous_call(main.run, main.position) is not None:
        tabs.append(PREVIOUS)
    if body.state is not None and span.step is not None:
        tabs.append(STATE)
    return tuple(tabs)


def _flags(a: _Side, b: _Side) -> tuple[str, ...]:
    """Return notes on stored checks that fail."""
    return tuple(
        _NO_MATCH.format(check.name, letter)
        for letter, side in (("A", a), ("B", b))
        for check in (side.body.checks if side.body is not None else ())
        if check.matches is None
    )


def _contexts(a: _Side, b: _Side) -> Look:
    left = a.body.input_messages if a.body is not None else ()
    right = b.body.input_messages if b.body is not None else ()
    difference = context_diff(left, right, a.span, b.span)
    notes = (_PREFIX,) if difference.break_at is not None and difference.break_at >= len(right) else ()
    sides = (_side_label(a), _side_label(b)) if a.run is b.run else ("A", "B")
    sections = tuple(context_sections(left, right, difference))
    return Look(CONTEXT, (CONTEXT,), sections, difference, notes=notes, sides=sides)


def _side_label(side: _Side) -> str:
    return "" if side.span is None else span_title(side.run, side.span)

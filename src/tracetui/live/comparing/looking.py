"""Reads what is needed to compare two steps, and makes a `Look` of it: what differs, contexts, accumulated states."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tracetui.analysis.step_diff import (
    CHANGES,
    CONTEXT,
    PREVIOUS,
    STATE,
    Look,
    context_sections,
    difference_label,
    state_sections,
    step_sections,
)
from tracetui.diff.compare import Kind
from tracetui.diff.comparison import Comparison
from tracetui.diff.context import context_diff, previous_call
from tracetui.diff.result import Diff, Row
from tracetui.diff.state import over_by_then
from tracetui.live.comparing.compared import LookAt, Verdict
from tracetui.model import Body, Operation, Run, Span
from tracetui.store.span_names import span_label, span_title

_NO_MATCH: Final = "the stored {} of {} is not that of its contents"
_SMALL_CONTEXT: Final = "B is how A begins: the whole of it can be reused"


class _Side:
    """A step of one run with its body; both None where the run has no such step."""

    def __init__(self, run: Run, position: int | None) -> None:
        self.run, self.position = run, position
        self.span: Span | None = None if position is None else run.spans[position]
        self.body: Body | None = None if self.span is None else run.load(self.span)


def look_at(comparison: Comparison, ask: LookAt) -> Look:
    """Compare two steps under a tab; under the first one where there is nothing for that."""
    a, b = _Side(comparison.a, ask.a), _Side(comparison.b, ask.b)
    main = b if b.position is not None else a
    tabs = _tabs(a, b, main)
    notes = _flags(a, b)
    tab = ask.tab if ask.tab in tabs else CHANGES
    if tab == CONTEXT and a.body is not None and b.body is not None:
        look = _contexts(a, b)
    elif tab == PREVIOUS and main.position is not None:
        before = previous_call(main.run, main.position)
        look = _contexts(_Side(main.run, before), main)
    elif tab == STATE and main.span is not None and main.span.step is not None:
        state = comparison.state(main.span.step)
        told = f"accumulated state after superstep {main.span.step}"
        over = [letter for letter, side in (("A", a), ("B", b)) if over_by_then(side.run, main.span.step)]
        told += "".join(f", {letter} at its end" for letter in over)
        look = Look(STATE, (), tuple(state_sections(state)), about=told)
    else:
        row = Row(Kind.ONLY_A if ask.b is None else Kind.ONLY_B if ask.a is None else Kind.SAME, ask.a, ask.b)
        look = Look(CHANGES, (), tuple(step_sections(a.body, b.body, comparison.changes(row))))
    return _prepared(replace(look, tab=tab, tabs=tabs, notes=(*look.notes, *notes)))


def calls(run: Run, a: int, b: int) -> Look:
    """Compare what two model calls of a run were given."""
    return _prepared(_contexts(_Side(run, a), _Side(run, b)))


def _prepared(look: Look) -> Look:
    """What is costly is done here, not where it would hold up keys."""
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
    """Stored values that are not what they should be."""
    return tuple(
        _NO_MATCH.format(check.name, letter)
        for letter, side in (("A", a), ("B", b))
        for check in (side.body.checks if side.body is not None else ())
        if check.matches is None
    )


def _contexts(a: _Side, b: _Side) -> Look:
    left = a.body.input_messages if a.body is not None else ()
    right = b.body.input_messages if b.body is not None else ()
    found = context_diff(left, right, a.span, b.span)
    notes = (_SMALL_CONTEXT,) if found.break_at is not None and found.break_at >= len(right) else ()
    sides = (_side_words(a), _side_words(b)) if a.run is b.run else ("A", "B")
    sections = tuple(context_sections(left, right, found))
    return Look(CONTEXT, (CONTEXT,), sections, found, notes=notes, sides=sides)


def _side_words(side: _Side) -> str:
    return "" if side.span is None else span_title(side.run, side.span)


def verdict(diff: Diff) -> Verdict:
    """What is said of a pair in one phrase."""
    if diff.first is None or diff.same:
        return Verdict(True)
    row = diff.rows[diff.first.row]
    span = diff.span_b(row) or diff.span_a(row)
    run = diff.a if row.b is None else diff.b
    return Verdict(False, difference_label(diff, diff.first), "" if span is None else span_label(run, span))

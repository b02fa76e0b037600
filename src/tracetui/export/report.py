"""What a document says of a run and of a comparison, in blocks. Runs that are given are masked already, or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracetui.analysis.navigation import errors
from tracetui.diff.result import Diff
from tracetui.export import diff as differences
from tracetui.export.diff import Changes
from tracetui.export.page import Block, Code, Facts, Heading, Prose, Table
from tracetui.export.text import facts, one_span_lines, title
from tracetui.model import Operation, Run, Span, Status
from tracetui.model.build import CONTAINERS
from tracetui.store.span_names import span_label
from tracetui.text import Clean, clean, duration, one_line, tokens
from tracetui.views.glyphs import kind
from tracetui.views.timeline.chart import tokens_of

MOST_ROWS: Final = 400
"""Rows of a timeline that is not asked for in full: the first of them, and as many at the end."""
MOST_LINES: Final = 200
"""Lines of a failing step that are told, likewise."""
_STEPS: Final = ("step", "what", "argument", "status", "time", "tokens")
_NUMBERS: Final = frozenset({0, 4, 5})


def run_report(run: Run, *, full: bool = False) -> Iterator[Block]:
    """How a run went and why: facts, timeline, its failures with what was said in them; `full`: every step."""
    yield Heading(1, title(run))
    yield Facts([one for one in facts(run) if one.lines])
    yield Heading(2, Clean("Timeline"))
    yield from _timeline(run, MOST_ROWS if not full else len(run.spans))
    failed = set(errors(run))
    shown = [i for i, span in enumerate(run.spans) if full or span.id in failed]
    if shown:
        yield Heading(2, Clean("Steps" if full else "Failures"))
    for position in shown:
        yield from _step(run, position, most=None if full else MOST_LINES)


def diff_report(diff: Diff, changes: Changes) -> Iterator[Block]:
    """Where two runs first went differently, in which words, and every step that differs."""
    yield Heading(1, Clean("The same" if diff.same else "Different"))
    yield Code(list(differences.run_lines(diff)))
    for line in differences.verdict_lines(diff):
        yield Prose(line)
    words = list(differences.word_lines(diff.first)) if diff.first is not None else []
    if words:
        yield Code(words, kind="diff")
    yield Prose(differences.summary_line(diff))
    asides = list(differences.aside_lines(diff))
    if asides:
        yield Heading(2, Clean("Beside the steps"))
        yield Code(asides)
    if not diff.same:
        yield Heading(2, Clean("Steps"))
        yield Code(list(differences.step_lines(diff, changes)), kind="diff")


def _timeline(run: Run, most: int) -> Iterator[Block]:
    shown = [i for i, span in enumerate(run.spans) if not (span.operation in CONTAINERS and run.sizes[i] > 1)]
    head, rest = shown[:most], shown[most:]
    tail = rest[-most:]
    yield Table(_STEPS, [_row(run, i) for i in head], _NUMBERS)
    if len(rest) > len(tail):
        yield Prose(Clean(f"… {len(rest) - len(tail)} more …"))
    if tail:
        yield Table(_STEPS, [_row(run, i) for i in tail], _NUMBERS)


def _row(run: Run, position: int) -> Sequence[Clean]:
    span = run.spans[position]
    total = tokens_of(span.usage)
    return (
        Clean(str(span.step)) if span.is_step and span.step is not None else Clean(""),
        Clean(f"{kind(span)[0]} {one_line(span.name or '(no name)', 80)}"),
        one_line(span.preview, 120),
        _ended(span),
        duration(span.duration_ms),
        tokens(total) if total is not None else Clean(""),
    )


def _ended(span: Span) -> Clean:
    words = span.error.words if span.error is not None else ""
    if span.status in (Status.OK, Status.UNKNOWN):
        return one_line(span.note, 80)
    return one_line(f"{span.status.value}: {words}" if words else span.status.value, 160)


def _step(run: Run, position: int, most: int | None) -> Iterator[Block]:
    """One step alone, and (of a failure) the model call before it, which asked for it."""
    span = run.spans[position]
    label = one_line(span_label(run, span), 80)
    number = f"{label[:1].upper()}{label[1:]}: " if label else ""
    yield Heading(3, Clean(f"{number}{one_line(span.name or '(no name)', 120)}"))
    yield Prose(clean(f"{run.summary.ref.address}/{span.id}"))
    yield _code(run, position, most)
    if most is not None and span.operation is not Operation.CHAT:
        before = next((i for i in range(position - 1, -1, -1) if run.spans[i].operation is Operation.CHAT), None)
        if before is not None:
            yield _code(run, before, most, title=Clean("The model call before it"))


def _code(run: Run, position: int, most: int | None, title: Clean = Clean("")) -> Code:  # noqa: B008 - a text
    lines = list(one_span_lines(run, position))
    hidden = 0 if most is None else len(lines) - most
    if hidden > 0 and most is not None:
        half = most // 2
        lines = [*lines[:half], Clean(f"… {hidden} more lines; the whole document has them …"), *lines[-half:]]
    return Code(lines, title)

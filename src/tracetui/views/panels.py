"""The facts of a run in panels, most relevant first: context, tools, limits, runs of the same failure, coverage."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui.masking import one_line
from tracetui.model import Run, RunSummary
from tracetui.text import Clean, age, cells, count, duration, grouped, pad, tokens, truncate
from tracetui.views.bars import amount
from tracetui.views.detail.assessment import add_doom, add_limits, add_loops, add_windows
from tracetui.views.detail.run import add_content, add_origin, add_outcome
from tracetui.views.glyphs import UNICODE, Glyphs, kind_of
from tracetui.views.goal import has_turns
from tracetui.views.labels import ledger_words, short_id
from tracetui.views.list.runs import result_phrase
from tracetui.views.rows import Piece, fill
from tracetui.views.sheet import Sheet
from tracetui.views.stack import Stack
from tracetui.views.standing import run_sign

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.triage import Group
    from tracetui.analysis.work import Tool, Window


class SameFailure(NamedTuple):
    """The cause of a failed run, and the newest runs that it made fail."""

    group: Group
    runs: Sequence[RunSummary]


MAX_RUNS: Final = 5
"""Runs of the panel *Same failure*."""
_MAX_CALLS, _MAX_TOOLS = 8, 8
_NAME: Final = 20
_CALL_CELLS = 22
"""Cells of a row of a model call besides its name and bar."""
_TOOL_CELLS, _TIME_CELLS = 13, 16
"""Cells of a row of a tool besides its name and bar, without and for times."""


def panel_rows(
    run: Run,
    *,
    width: int,
    opened: frozenset[Hashable] = frozenset(),
    glyphs: Glyphs = UNICODE,
    now: float | None = None,
    zone: tzinfo = UTC,
    assessment: Assessment | None = None,
    same: SameFailure | None = None,
) -> tuple[Stack, int]:
    """The panels, most relevant first, then all facts of the run; and the number of rows of the panels.

    The facts are also in the tab *run*. Those of a run with turns are only there: the turns need the room.
    """
    sheet = Sheet("panels", width, opened=opened, glyphs=glyphs)
    if assessment is not None and assessment.work is not None:
        _context(sheet, run, assessment.work.windows)
        _tools(sheet, assessment.work.tools)
    if run.body.limits or (assessment is not None and (assessment.loops or assessment.notable_point)):
        sheet.title("Limits and loops" if run.body.limits else "Loops")
        add_limits(sheet, run.body.limits, assessment)
        if assessment is not None:
            add_loops(sheet, assessment)
            add_doom(sheet, assessment)
    if same is not None and len(same.group.runs) > 1:
        _same(sheet, same, now)
    if run.summary.deep:
        sheet.title("Ledger", "what was read")
        sheet.prose(None, ledger_words(run.summary.ledger, glyphs=glyphs), "sec")
    panels = len(sheet.rows())
    if not has_turns(run):
        sheet.title("Facts")
        add_outcome(sheet, run, now, zone, assessment)
        sheet.blank()
        add_origin(sheet, run)
        add_content(sheet, run)
    return sheet.rows(), panels


def _context(sheet: Sheet, run: Run, windows: Sequence[Window]) -> None:
    """Input tokens of each model call; of many calls, their course."""
    if not windows:
        return
    sheet.title("Context", "input tokens of each model call")
    if len(windows) > _MAX_CALLS:
        add_windows(sheet, tuple(windows))
        return
    most, before = max(window.tokens for window in windows), 0
    spans = [run.span(window.span) for window in windows]
    names = [one_line(span.name, 200) if span is not None else Clean("") for span in spans]
    room = max(8, min(sheet.width - sheet.bar - _CALL_CELLS, max(_NAME, *map(cells, names))))
    for i, (window, span, name) in enumerate(zip(windows, spans, names, strict=True)):
        sign, style = kind_of(span.operation, sheet.glyphs) if span is not None else (Clean(""), "dim")
        step = Clean("" if window.step is None else str(window.step))
        more = window.tokens - before
        note = "first" if not i else f"{'+' if more >= 0 else '-'}{tokens(abs(more))}"
        sheet.line(
            Piece(pad(step, 4, right=True), "dim"),
            Piece(Clean(f" {sign} "), style),
            Piece(Clean(f"{pad(truncate(name, room), room)} "), "text"),
            *amount(window.tokens, most, sheet.bar, "bar.model", glyphs=sheet.glyphs),
            Piece(Clean(f" {pad(tokens(window.tokens), 5, right=True)}"), "sec"),
            Piece(Clean(f"  {note}"), "dim" if not i or more < 0 else "diff.add"),
            spans=(window.span,),
        )
        before = window.tokens


def _tools(sheet: Sheet, tools: Sequence[Tool]) -> None:
    """Calls, errors, time and share of time of each tool."""
    if not tools:
        return
    everything = sum(tool.ms or 0.0 for tool in tools)
    sheet.title("Tools")
    names = [one_line(tool.name, 200) for tool in tools[:_MAX_TOOLS]]
    timed = sheet.bar + _TIME_CELLS if everything else 0
    room = max(8, min(sheet.width - _TOOL_CELLS - timed, max(_NAME, *map(cells, names))))
    shown = "calls  err   time  share" if everything else "calls  err"
    sheet.line(Piece(Clean(f"{'tool':{room + 2}} {shown}"), "dim"), heading=True)
    for tool, name in zip(tools, names, strict=False):
        sign, style = kind_of(tool.operation, sheet.glyphs)
        failed = count(tool.errors) if tool.errors else sheet.glyphs.zero
        line = [
            Piece(Clean(f"{sign} "), style),
            Piece(Clean(f"{pad(truncate(name, room), room)} "), "text"),
            Piece(pad(count(tool.calls), 5, right=True), "sec"),
            Piece(pad(failed, 5, right=True), "status.error bold" if tool.errors else "dim"),
        ]
        if everything:
            line += [
                Piece(pad(duration(tool.ms), 7, right=True), "sec"),
                Piece(pad(Clean(f"{(tool.ms or 0.0) / everything:.0%}"), 7, right=True), "sec"),
                Piece(Clean("  ")),
                *amount(tool.ms, everything, sheet.bar, "bar.tool", glyphs=sheet.glyphs),
            ]
        sheet.line(*line, spans=(tool.span,))
    if len(tools) > _MAX_TOOLS:
        sheet.line(Piece(Clean(f"and {grouped(len(tools) - _MAX_TOOLS)} more"), "dim"))


def _same(sheet: Sheet, same: SameFailure, now: float | None) -> None:
    """The newest runs that the same cause made fail."""
    group, glyphs = same.group, sheet.glyphs
    number = len(group.runs)
    sheet.title("Same failure", f"{one_line(group.id)} in {grouped(number)} run{'' if number == 1 else 's'}")
    room = max(8, sheet.width - 28)
    for run in same.runs:
        sign, style = run_sign(run, run.status, glyphs)
        words = [Piece(one_line(run.prompt or run.title or "", 200), "sec")] if run.prompt or run.title else []
        since = age(now - run.started_at) if now is not None and run.started_at is not None else Clean("")
        line = [
            Piece(Clean(f"{sign} "), style),
            Piece(Clean(f"{pad(short_id(run.id), 9)} "), "text"),
            *fill(words or result_phrase(run, glyphs), room),
            Piece(Clean(f" {pad(duration(run.duration_ms), 6, right=True)}"), "sec"),
            Piece(Clean(f" {pad(since, 4, right=True)}"), "dim"),
        ]
        sheet.line(*line, run=run.id)
    if number > 1 and group.wasted_ms is not None:
        words = [Piece(Clean(f"{duration(group.wasted_ms)} lost in all  "), "sec")]
        sheet.line(*words, Piece(Clean("T"), "key bold"), Piece(Clean(" triage"), "sec"))

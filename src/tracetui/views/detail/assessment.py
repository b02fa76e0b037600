"""The assessment on the *run* tab: limits, loops, tools, context window, point of no return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracetui.analysis.assessment import Tool, Window, Work, fullest_windows
from tracetui.masking import one_line
from tracetui.model import Limit, Run
from tracetui.store.address import span_title
from tracetui.text import Clean, count, duration, grouped, pad, tokens, truncate_middle
from tracetui.views.bars import amount, sparkline
from tracetui.views.glyphs import kind_of
from tracetui.views.labels import number
from tracetui.views.rows import Piece
from tracetui.views.sheet import Sheet

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment


_MAX_LOOPS: Final = 8
_NUMBERS: Final = 19
"""Cells reserved for the numbers beside a limit's bar: ``6 548 / 50 000``."""


def add_limits(sheet: Sheet, policy: tuple[Limit, ...], assessment: Assessment | None = None) -> None:
    """The progress of the run toward each limit, and where it exceeded it."""
    size = max((len(one_line(limit.name, 24)) for limit in policy), default=0)
    courses = assessment.limits if assessment is not None else ()
    for i, limit in enumerate(policy):
        course = courses[i] if i < len(courses) else None  # the assessment may be of an earlier state of the run
        name = Piece(Clean(pad(one_line(limit.name, 24), size) + "  "), "sec")
        reached = course.reached if course is not None else limit.current
        sheet.fact("" if i else "policy", name, *_limit(limit, reached, sheet, max(4, sheet.room - size - _NUMBERS)))
        if assessment is not None and course is not None and course.crossed is not None:
            span = assessment.run.spans[course.crossed]
            sheet.fact("", *_leads(sheet, assessment.run, span.id, "exceeded at "), spans=(span.id,))
        if limit.message:
            sheet.prose("", limit.message, "status.error" if limit.violated else "dim", most=3)
        if limit.details:
            sheet.value("", limit.details, most=3)


def _limit(limit: Limit, reached: float | None, sheet: Sheet, room: int) -> list[Piece]:
    """Bar of at most `room` cells, and numbers."""
    most = limit.limit
    at_limit = reached is not None and most is not None and reached >= most
    bar = "bar.error" if limit.violated else "bar.running" if at_limit else "bar.agent"
    style = "status.error bold" if limit.violated else "status.warn bold" if at_limit else "text"
    pieces = []
    if most and reached is not None:
        beyond = most if reached > most else None
        pieces = amount(reached, max(reached, most), min(sheet.bar, room), bar, threshold=beyond, glyphs=sheet.glyphs)
        pieces.append(Piece(Clean("  ")))
    pieces += [Piece(number(reached, sheet.glyphs), style), Piece(Clean(f" / {number(most, sheet.glyphs)}"), "dim")]
    if limit.violated or at_limit:
        word = "violated" if limit.violated else "exceeded" if reached != most else "at limit"
        pieces.append(Piece(Clean(f"  {word}"), "status.error" if limit.violated else "status.warn"))
    elif limit.current is None and reached is not None:
        pieces.append(Piece(Clean("  counted"), "dim"))
    return pieces


def add_loops(sheet: Sheet, assessment: Assessment) -> None:
    """Loops and their cost."""
    from tracetui.views.timeline.spans import loop_cost, loop_title  # loaded by the assessment

    run, found, glyphs = assessment.run, assessment.loops, sheet.glyphs
    for i, loop in enumerate(found[:_MAX_LOOPS]):
        spent = loop_cost(loop)
        pieces = [Piece(Clean(f"{glyphs.loop} {loop_title(run, loop, glyphs)}"), "status.warn")]
        pieces.append(Piece(Clean(f"  {spent} lost" if spent else ""), "sec"))
        sheet.fact("" if i else "loops", *pieces, spans=(run.spans[loop.first].id,))
    if len(found) > _MAX_LOOPS:
        sheet.fact("", Piece(Clean(f"and {grouped(len(found) - _MAX_LOOPS)} more"), "dim"))
    if assessment.left_out:
        words = f"{grouped(assessment.left_out)} more similar calls not compared (too many)"
        sheet.fact("" if found else "loops", Piece(Clean(words), "dim"))


def add_doom(sheet: Sheet, assessment: Assessment) -> None:
    """The likely point of no return, with the reason."""
    point = assessment.notable_point
    if point is None:
        return
    sheet.fact("doomed", *_leads(sheet, assessment.run, point.span, "at "), spans=(point.span,))
    sheet.prose("", point.reason, "sec")
    sheet.fact("", Piece(Clean("likely point of no return (heuristic)"), "dim"))


def _leads(sheet: Sheet, run: Run, span_id: str, words: str) -> list[Piece]:
    """``→ exceeded at step 11 search``."""
    span = run.span(span_id)
    where = "" if span is None else span_title(run, span)
    return [Piece(Clean(f"{sheet.glyphs.arrow} {words}"), "dim"), Piece(one_line(where, 80), "accent")]


_MAX_TOOLS: Final = 8
_NAME: Final = 24


def add_work(sheet: Sheet, done: Work) -> None:
    """The tools as a table, each row leading to a failed call; the context window as a sparkline."""
    _tools(sheet, done.tools)
    add_windows(sheet, done.windows)


def _tools(sheet: Sheet, tools: tuple[Tool, ...]) -> None:
    size = max((len(one_line(tool.name, _NAME)) for tool in tools[:_MAX_TOOLS]), default=0)
    everything = sum(tool.ms or 0.0 for tool in tools)
    for i, tool in enumerate(tools[:_MAX_TOOLS]):
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
    if len(tools) > _MAX_TOOLS:
        sheet.fact("", Piece(Clean(f"and {count(len(tools) - _MAX_TOOLS)} more  "), "dim"))


def add_windows(sheet: Sheet, windows: tuple[Window, ...]) -> None:
    """The context window as a sparkline."""
    if len(windows) < 2:
        return
    fullest = max(windows, key=lambda window: window.tokens)
    shown = fullest_windows(windows, max(8, min(sheet.room, 80)))
    course = sparkline([float(window.tokens) for window in shown], sheet.glyphs)
    sheet.fact("context", Piece(course, "kind.model"), spans=(fullest.span,))
    at = f" at step {fullest.step}" if fullest.step is not None else ""
    points = (("first", windows[0], ""), ("most", fullest, at), ("last", windows[-1], ""))
    pieces = []
    for word, window, where in points:
        pieces += [
            Piece(Clean(f"{word} "), "dim"),
            Piece(tokens(window.tokens), "sec"),
            Piece(Clean(f"{where}  "), "dim"),
        ]
    sheet.fact("", *pieces, Piece(Clean("input tokens per model call"), "dim"), spans=(fullest.span,))

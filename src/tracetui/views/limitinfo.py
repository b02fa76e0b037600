"""What the *run* tab says of how a run went: each limit as a bar, what was repeated, the step that doomed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracetui.model import Limit, Run
from tracetui.store.places import words_of
from tracetui.text import Clean, grouped, pad
from tracetui.views.bars import amount
from tracetui.views.masking import one_line
from tracetui.views.quantities import number
from tracetui.views.rows import Piece
from tracetui.views.sheet import Sheet

if TYPE_CHECKING:
    from tracetui.views.assessment import Assessment

_MOST_LOOPS: Final = 8
_NUMBERS: Final = 19
"""Cells that are kept for what stands beside the bar of a limit: ``6 548 / 50 000``."""


def limits(sheet: Sheet, policy: tuple[Limit, ...], assessment: Assessment | None = None) -> None:
    """How far the run came against each limit of its policy, and where it went beyond."""
    size = max((len(one_line(limit.name, 24)) for limit in policy), default=0)
    courses = assessment.limits if assessment is not None else ()
    for i, limit in enumerate(policy):
        course = courses[i] if i < len(courses) else None  # what was found out may be of an earlier state of the run
        name = Piece(Clean(pad(one_line(limit.name, 24), size) + "  "), "sec")
        reached = course.reached if course is not None else limit.current
        sheet.fact("" if i else "policy", name, *_limit(limit, reached, sheet, max(4, sheet.room - size - _NUMBERS)))
        if assessment is not None and course is not None and course.crossed is not None:
            span = assessment.run.spans[course.crossed]
            sheet.fact("", *_leads(sheet, assessment.run, span.id, "beyond it at "), spans=(span.id,))
        if limit.message:
            sheet.prose("", limit.message, "status.error" if limit.violated else "dim", most=3)
        if limit.details:
            sheet.value("", limit.details, most=3)


def _limit(limit: Limit, reached: float | None, sheet: Sheet, room: int) -> list[Piece]:
    """Bar, which may take `room`, and numbers."""
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
        word = "violated" if limit.violated else "beyond" if reached != most else "at limit"
        pieces.append(Piece(Clean(f"  {word}"), "status.error" if limit.violated else "status.warn"))
    elif limit.current is None and reached is not None:
        pieces.append(Piece(Clean("  as counted"), "dim"))
    return pieces


def loops(sheet: Sheet, assessment: Assessment) -> None:
    """What was repeated, and what that cost."""
    from tracetui.views.loops import cost, title  # somebody has assessed: it is loaded

    run, found, glyphs = assessment.run, assessment.loops, sheet.glyphs
    for i, loop in enumerate(found[:_MOST_LOOPS]):
        spent = cost(loop)
        pieces = [Piece(Clean(f"{glyphs.loop} {title(run, loop, glyphs)}"), "status.warn")]
        pieces.append(Piece(Clean(f"  {spent} lost" if spent else ""), "sec"))
        sheet.fact("" if i else "loops", *pieces, spans=(run.spans[loop.first].id,))
    if len(found) > _MOST_LOOPS:
        sheet.fact("", Piece(Clean(f"and {grouped(len(found) - _MOST_LOOPS)} more"), "dim"))
    if assessment.left_out:
        words = f"{grouped(assessment.left_out)} more calls look alike; too many to compare"
        sheet.fact("" if found else "loops", Piece(Clean(words), "dim"))


def doom(sheet: Sheet, assessment: Assessment) -> None:
    """Where the run was doomed, and why that is thought."""
    point = assessment.told_doom
    if point is None:
        return
    sheet.fact("doomed", *_leads(sheet, assessment.run, point.span, "at "), spans=(point.span,))
    sheet.prose("", point.why, "sec")
    sheet.fact("", Piece(Clean("a guess from what happened; no trace says it"), "dim"))


def _leads(sheet: Sheet, run: Run, span_id: str, words: str) -> list[Piece]:
    """``→ beyond it at step 11 search``."""
    span = run.span(span_id)
    where = "" if span is None else words_of(run, span)
    return [Piece(Clean(f"{sheet.glyphs.arrow} {words}"), "dim"), Piece(one_line(where, 80), "accent")]

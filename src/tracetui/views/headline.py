"""What a run came to, in the two lines above its steps and in the row below the last of them."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from tracetui.model import FirstError, Run, RunSummary, Status, StatusSource
from tracetui.store.places import reference_of, words_of
from tracetui.text import Clean, cost, duration, grouped, tokens, truncate
from tracetui.views.chart import tokens_of
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.liveness import State
from tracetui.views.masking import clean, one_line
from tracetui.views.naming import called
from tracetui.views.quantities import measured, moment
from tracetui.views.rows import Line, Piece, fit, width_of
from tracetui.views.runs import status_now

if TYPE_CHECKING:
    from tracetui.views.assessment import Assessment


def heading(
    run: Run,
    width: int,
    *,
    now: float | None = None,
    zone: tzinfo = UTC,
    glyphs: Glyphs = UNICODE,
    state: State = State.ENDED,
    known: Assessment | None = None,
) -> list[Line]:
    """Two lines: how the run ended and where; model, time, tokens, cost, and at the right when it was.

    `state` is how it stands if the trace tells no end, `known` how a run went that may be this one.
    """
    return [tuple(fit(_verdict(run, glyphs, state), width)), _facts(run.summary, width, now, zone, glyphs, known)]


def ending(run: Run, glyphs: Glyphs = UNICODE) -> Line:
    """The row below the last step: why a failed run ended there, or that there is no end; else empty."""
    summary = run.summary
    if not run.complete:
        return (Piece(Clean(f"{glyphs.cut} reading on"), "dim"),)
    derived = summary.status_source is StatusSource.DERIVED
    if summary.status is Status.ERROR:
        words = Piece(Clean(f"{glyphs.end} run ends here"), "status.error")
        return (words, Piece(Clean(f"  {cause(run)}"), "dim"))
    if summary.status is Status.CANCELLED:
        return (Piece(Clean(f"{glyphs.end} run was ended here"), "sec"), Piece(Clean(f"  {_word(summary)}"), "dim"))
    if summary.status is Status.RUNNING or (summary.status is Status.UNKNOWN and derived):
        more = "no end record yet" if summary.status is Status.RUNNING else "no end record"
        return (Piece(Clean(f"{glyphs.cut} {more}"), "dim"),)
    return ()


def cause(run: Run) -> Clean:
    """Why a run failed, in one phrase: the violated limit, unmet criteria, else that no policy fired, or the error."""
    for limit in run.body.limits:
        if limit.violated:
            return Clean(f"policy {one_line(limit.name, 60)} {measured(limit.current, limit.limit)}".rstrip())
    unmet = sum(criterion.met is False for criterion in run.body.criteria)
    if unmet:
        return Clean(f"{unmet} of {len(run.body.criteria)} criteria not met")
    error = run.summary.first_error
    if run.body.limits and (error is None or error.span is not None):  # a call failed, and no limit stopped the run
        return Clean("no policy fired")
    return _error(error) if error is not None else _word(run.summary)


def _verdict(run: Run, glyphs: Glyphs, state: State) -> list[Piece]:
    summary = run.summary
    status = status_now(summary, state)
    sign, style = status_glyph(status, glyphs)
    loud = status in (Status.ERROR, Status.RUNNING)
    name = Clean(f" {truncate(called(summary), 60)}")
    pieces = [Piece(sign, style), Piece(name, f"{style} bold" if loud else "text bold")]
    if summary.status is Status.ERROR:
        return [*pieces, *_failure(run, glyphs)]
    pieces.append(Piece(Clean(f" {status.value if state is State.ENDED else state.value}"), style))
    if summary.status_word and summary.status_word.lower() != summary.status.value:
        pieces.append(Piece(Clean(f" ({_word(summary)})"), "dim"))
    if summary.steps is not None:
        steps = f" {glyphs.dot} {grouped(summary.steps)} step{'' if summary.steps == 1 else 's'}"
        pieces.append(Piece(Clean(steps), "text"))
    if summary.errors:
        pieces.append(Piece(Clean(f" {glyphs.dot} "), "dim"))
        pieces.append(Piece(Clean(f"{grouped(summary.errors)} failed inside"), "status.warn"))
    return pieces


def _failure(run: Run, glyphs: Glyphs) -> list[Piece]:
    """``failed at step 11 of 11 · search``: the first error's step, where it happened in one."""
    error = run.summary.first_error
    span = run.span(error.span) if error is not None and error.span is not None else None
    where = " failed"
    place = reference_of(run, span) if span is not None else ""
    if span is not None and place == str(span.step):
        last = max((step.number for step in run.steps if step.number is not None), default=span.step or 0)
        where = f" failed at step {place} of {max(last, span.step or 0)}"
    elif span is not None and place:
        where = f" failed at {one_line(words_of(run, span), 120)}"
        return [Piece(Clean(where), "text bold")]
    what = one_line(span.name, 80) if span is not None else cause(run)
    return [Piece(Clean(where), "text bold"), Piece(Clean(f" {glyphs.dot} {what}" if what else ""), "text")]


def _facts(
    summary: RunSummary, width: int, now: float | None, zone: tzinfo, glyphs: Glyphs, known: Assessment | None
) -> Line:
    facts = [clean(summary.model, 80)] if summary.model else []
    if summary.duration_ms is not None:
        facts.append(duration(summary.duration_ms))
    total = tokens_of(summary.usage)
    if total is not None:
        facts.append(Clean(f"{tokens(total)} tok"))
    facts += cost_of(summary, known)
    left = Clean(f" {glyphs.dot} ".join(facts)) or Clean("no model, time or tokens recorded")
    when = moment(summary, now=now, zone=zone)
    gap = width - width_of((Piece(left), Piece(when)))
    if gap < 2:
        return tuple(fit([Piece(left, "sec")], width))
    return (Piece(left, "sec"), Piece(Clean(" " * gap)), Piece(when, "dim"))


def cost_of(summary: RunSummary, known: Assessment | None) -> list[Clean]:
    """What a run cost, ``~$0.12`` where that is an estimate; nothing where nobody knows."""
    if summary.usage is not None and summary.usage.cost_usd is not None:
        return [cost(summary.usage.cost_usd)]
    if known is None or known.estimate is None or known.run.summary.ref != summary.ref:
        return []
    return [cost(known.estimate.usd, estimated=True)]


def _word(summary: RunSummary) -> Clean:
    return one_line(summary.status_word or summary.status.value, 60)


def _error(error: FirstError) -> Clean:
    return one_line(error.words, 240)

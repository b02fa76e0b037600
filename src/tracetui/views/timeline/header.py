"""The lines around the timeline: the run's heading, its last row, and the liveness strip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Final

from tracetui.analysis.liveness import Liveness, OpenCall, State, rounded, seconds
from tracetui.masking import excerpt, one_line
from tracetui.model import Run, RunSummary, Status, StatusSource
from tracetui.model.build import CONTAINERS
from tracetui.store.address import span_reference, span_title
from tracetui.text import Clean, cells, cost, duration, grouped, measured, quantity, tokens, truncate
from tracetui.views.bars import sparkline
from tracetui.views.glyphs import UNICODE, Glyphs, kind_of, status_glyph
from tracetui.views.labels import (
    deciding_excerpt,
    errors_inside,
    run_label,
    score_cell,
    short_model,
    standing_of,
    start_label,
)
from tracetui.views.rows import Line, Piece, fit, width_of
from tracetui.views.timeline.chart import tokens_of

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.triage import Group


def run_heading(
    run: Run,
    width: int,
    *,
    now: float | None = None,
    zone: tzinfo = UTC,
    glyphs: Glyphs = UNICODE,
    state: State = State.ENDED,
    assessment: Assessment | None = None,
) -> list[Line]:
    """Two lines: outcome and location; model, time, tokens and cost, with the start time on the right.

    `state` applies to a run without an end record. `assessment` is an assessment, possibly of another run.
    """
    return [
        tuple(fit(_verdict(run, glyphs, state, now), width)),
        _heading_facts(run.summary, width, now, zone, glyphs, assessment),
    ]


def ending(run: Run, glyphs: Glyphs = UNICODE) -> Line:
    """The row below the last step: why a failed run ended there, or that there is no end record; else empty."""
    summary = run.summary
    if not run.complete:
        return (Piece(Clean(f"{glyphs.cut} reading more"), "dim"),)
    derived = summary.status_source is StatusSource.DERIVED
    if summary.status is Status.ERROR:
        label = Piece(Clean(f"{glyphs.end} run ends here"), "status.error")
        return (label, Piece(Clean(f"  {cause(run)}"), "dim"))
    if summary.status is Status.CANCELLED:
        return (Piece(Clean(f"{glyphs.end} run stopped here"), "sec"), Piece(Clean(f"  {_word(summary)}"), "dim"))
    if summary.is_session and summary.last is not None:
        return ()  # sessions record no end: their state follows from the last event
    if summary.status is Status.RUNNING or (summary.status is Status.UNKNOWN and derived):
        more = "no end record yet" if summary.status is Status.RUNNING else "no end record"
        return (Piece(Clean(f"{glyphs.cut} {more}"), "dim"),)
    return ()


def cause(run: Run) -> Clean:
    """The cause of a failure in one phrase: violated limit, unmet criteria, that no limit ended it, or the error."""
    for limit in run.body.limits:
        if limit.violated:
            return Clean(f"policy {one_line(limit.name, 60)} {measured(limit.current, limit.limit)}".rstrip())
    unmet = sum(criterion.met is False for criterion in run.body.criteria)
    if unmet:
        return Clean(f"{unmet} of {len(run.body.criteria)} criteria not met")
    error = run.summary.first_error
    if run.body.limits and (error is None or error.span is not None):  # a call failed, within the limits
        return Clean("no limit ended it")
    return deciding_excerpt(error.text) if error is not None else _word(run.summary)


def _verdict(run: Run, glyphs: Glyphs, state: State, now: float | None) -> list[Piece]:
    summary = run.summary
    standing = standing_of(summary, state, now, glyphs)
    loud, style = standing.status in (Status.ERROR, Status.RUNNING), standing.style
    name = Clean(f" {truncate(run_label(summary), 60)}")
    pieces = [Piece(standing.sign, style), Piece(name, f"{style} bold" if loud else "text bold")]
    if summary.status is Status.ERROR:
        return [*pieces, *_failure(run, glyphs)]
    pieces.append(Piece(Clean(f" {standing.label}"), style))
    if summary.scores:
        pieces.append(Piece(Clean(f" {glyphs.dot} {score_cell(summary, glyphs)}"), style if summary.failed else "text"))
    if summary.status_word and summary.status_word.lower() != summary.status.value:
        pieces.append(Piece(Clean(f" ({_word(summary)})"), "dim"))
    if summary.steps is not None:
        steps = f" {glyphs.dot} {quantity(summary.steps, 'step')}"
        pieces.append(Piece(Clean(steps), "text"))
    if summary.errors:
        pieces.append(Piece(Clean(f" {glyphs.dot} "), "dim"))
        pieces.append(Piece(errors_inside(summary), "status.warn"))
    return pieces


def _failure(run: Run, glyphs: Glyphs) -> list[Piece]:
    """``failed at step 11 of 11 · search``: the step of the first error, if it has one."""
    error = run.summary.first_error
    span = run.span(error.span) if error is not None and error.span is not None else None
    outcome = " failed"
    place = span_reference(run, span) if span is not None else ""
    if span is not None and place == str(span.step):
        last = max((step.number for step in run.steps if step.number is not None), default=span.step or 0)
        outcome = f" failed at step {place} of {max(last, span.step or 0)}"
    elif span is not None and place:
        outcome = f" failed at {one_line(span_title(run, span), 120)}"
        return [Piece(Clean(outcome), "text bold")]
    detail = one_line(span.name, 80) if span is not None else cause(run)
    return [Piece(Clean(outcome), "text bold"), Piece(Clean(f" {glyphs.dot} {detail}" if detail else ""), "text")]


def _heading_facts(
    summary: RunSummary, width: int, now: float | None, zone: tzinfo, glyphs: Glyphs, assessment: Assessment | None
) -> Line:
    facts = [short_model(summary.model)] if summary.model else []
    if summary.duration_ms is not None:
        facts.append(duration(summary.duration_ms))
    total = tokens_of(summary.usage)
    if total is not None:
        facts.append(Clean(f"{tokens(total)} tok"))
    facts += cost_of(summary, assessment)
    left = Clean(f" {glyphs.dot} ".join(facts)) or Clean("no model, time or tokens recorded")
    when = start_label(summary, now=now, zone=zone)
    gap = width - width_of((Piece(left), Piece(when)))
    if gap < 2:
        return tuple(fit([Piece(left, "sec")], width))
    return (Piece(left, "sec"), Piece(Clean(" " * gap)), Piece(when, "dim"))


def cost_of(summary: RunSummary, assessment: Assessment | None) -> list[Clean]:
    """The cost of a run, ``~$0.12`` for an estimate; empty if unknown."""
    if summary.usage is not None and summary.usage.cost_usd is not None:
        return [cost(summary.usage.cost_usd)]
    if assessment is None or assessment.estimate is None or assessment.run.summary.ref != summary.ref:
        return []
    return [cost(assessment.estimate.usd, estimated=True)]


def _word(summary: RunSummary) -> Clean:
    return one_line(summary.status_word or summary.status.value, 60)


_TITLE, _MIN_TITLE = 28, 12
"""Useful and minimum cells for the title of a cause."""


def causes_line(causes: Sequence[Group], room: int) -> Line:
    """How many causes there are, and the most common one if it has several runs; shorter in less room."""
    if not causes:
        return ()
    number = quantity(len(causes), "cause")
    common = max(causes, key=lambda cause: len(cause.runs))
    if len(common.runs) == 1:
        return (Piece(Clean(f"  {number}"), "sec"),) if room >= len(number) + 2 else ()
    runs, title = f" ({quantity(len(common.runs), 'run')})", excerpt(common.title, 200)
    leads = (f"{number} · most common: ", "most common: ", "") if len(causes) > 1 else (f"{number}: ", "")
    for lead in leads:
        rest = room - len(lead) - len(runs) - 2
        if rest >= min(_TITLE, cells(title)) or (not lead and rest >= _MIN_TITLE):
            return Piece(Clean(f"  {lead}"), "sec"), Piece(truncate(title, rest), "text"), Piece(Clean(runs), "sec")
    return (Piece(Clean(f"  {number}"), "sec"),) if room >= len(number) + 2 else ()


FRAME: Final = 3
"""Blank cells of the strip: both ends, and before the right part."""
_NAME_CELLS: Final = 24
_STYLES: Final = {
    State.RUNNING: "status.running",
    State.QUIET: "status.running",
    State.STALLED: "status.warn",
    State.UNKNOWN: "status.unknown",
}


def liveness_strip(
    liveness: Liveness, width: int, glyphs: Glyphs = UNICODE, *, per_minute: Sequence[int] = ()
) -> tuple[Line, Line]:
    """The liveness strip for a bar of `width` cells: state on the left, arrivals on the right.

    `per_minute` is the result of `arrival_counts`. In a narrow bar the least important facts are dropped first; the
    result always fits.
    """
    room = max(0, width - FRAME)
    ways = _ended_variants(liveness, glyphs) if liveness.state is State.ENDED else _live_variants(liveness, glyphs)
    rights = _right_variants(liveness, per_minute, glyphs)
    for left, beside in ways:
        for right in rights[beside]:
            if width_of(left) + (width_of(right) + 1 if right else 0) <= room:
                return left, right
    return tuple(fit([_sign(liveness, glyphs)], room)), ()


_ANY: Final = slice(0, 3)
"""All right parts: sparkline, words, none."""


def _live_variants(liveness: Liveness, glyphs: Glyphs) -> Iterator[tuple[Line, slice]]:
    """Left parts, longest first, each with the right parts that may go with it."""
    stalled = liveness.state is State.STALLED
    if liveness.usual.p95_ms is not None:
        word = State.RUNNING if stalled else liveness.state  # the recorded state first, our guess last
        arrow = (Piece(Clean(f" {glyphs.arrow} "), "status.warn"), Piece(Clean(State.STALLED), "status.warn bold"))
        for label, beside in _usual_texts(liveness):
            facts = [*_facts(liveness, word, glyphs), (Piece(Clean(label), "dim"),)]
            yield (*_join(facts, glyphs), *(arrow if stalled else ())), beside
    facts = [*_facts(liveness, liveness.state, glyphs)]
    yield _join(facts, glyphs), _ANY
    yield facts[0], _ANY
    yield (_sign(liveness, glyphs), Piece(Clean(f" {liveness.state}"), f"{_STYLES[liveness.state]} bold")), _ANY


def _ended_variants(liveness: Liveness, glyphs: Glyphs) -> Iterator[tuple[Line, slice]]:
    sign, style = status_glyph(liveness.status, glyphs)
    word = (Piece(sign, style), Piece(Clean(f" {liveness.status.value}"), f"{style} bold"))
    if liveness.silent_ms is not None:
        paused = liveness.status is Status.PAUSED
        since = seconds(liveness.silent_ms)
        more = f"  waiting for a human, {since}" if paused else f"  ended, last change {since} ago"
        yield (*word, Piece(Clean(more), "sec")), _ANY
    yield word, _ANY


def _facts(liveness: Liveness, word: State, glyphs: Glyphs) -> Iterator[Line]:
    style = _STYLES[word]
    sign = status_glyph(Status.UNKNOWN, glyphs)[0] if word is State.UNKNOWN else glyphs.running
    first = [Piece(sign, style), Piece(Clean(f" {word}"), f"{style} bold")]
    if liveness.silent_ms is not None:
        first.append(Piece(Clean(f"  silent {seconds(liveness.silent_ms)}"), "text bold"))
    yield tuple(first)
    call = liveness.open
    if call is not None:
        sign, style = kind_of(call.operation, glyphs)
        yield (
            Piece(Clean("open "), "dim"),
            Piece(sign, style),
            Piece(Clean(f" {truncate(_name(call, glyphs), _NAME_CELLS)}{_open_time(call, glyphs)}"), "text"),
            *((Piece(Clean(f" +{call.others}"), "dim"),) if call.others else ()),
        )


def _usual_texts(liveness: Liveness) -> tuple[tuple[str, slice], ...]:
    """The usual pace, shorter and shorter."""
    usual = liveness.usual
    p95, most = rounded(usual.p95_ms), rounded(usual.longest_ms)
    label = "earlier calls" if usual.source == "earlier calls" else "typical gap"
    return (
        (f"{label} {p95}, longest {most}", slice(0, 2)),
        (f"{label} {p95}", slice(1, 2)),
        (f"gap {p95}", slice(1, 3)),
    )


def _right_variants(liveness: Liveness, per_minute: Sequence[int], glyphs: Glyphs) -> tuple[Line, ...]:
    """Right parts: sparkline, words, none."""
    if not per_minute:
        return (), (), ()
    now = grouped(per_minute[-1])
    style = "dim" if liveness.state in (State.ENDED, State.UNKNOWN) else "bar.running"
    picture = (
        Piece(Clean("events/min "), "dim"),
        Piece(sparkline(per_minute, glyphs), style),
        Piece(Clean(f" now {now}"), "sec"),
    )
    return picture, (Piece(Clean(f"{now}/min"), "sec"),), ()


def _sign(liveness: Liveness, glyphs: Glyphs) -> Piece:
    if liveness.state in (State.ENDED, State.UNKNOWN):
        return Piece(*status_glyph(liveness.status if liveness.state is State.ENDED else Status.UNKNOWN, glyphs))
    return Piece(glyphs.running, _STYLES[liveness.state])


def _join(facts: Sequence[Line], glyphs: Glyphs) -> Line:
    line: list[Piece] = []
    for fact in facts:
        line += ((Piece(Clean(f" {glyphs.dot} "), "dim"),) if line else ()) + fact
    return tuple(line)


def _name(call: OpenCall, glyphs: Glyphs) -> Clean:
    return one_line(call.name, 80) or glyphs.missing


def _open_time(call: OpenCall, glyphs: Glyphs) -> str:
    return "" if call.ms is None else f" {glyphs.at_least if call.at_least else ''}{seconds(call.ms)}"


# ---- the sentence


def liveness_sentence(liveness: Liveness, run: Run, width: int, glyphs: Glyphs = UNICODE, *, now: float) -> Line:
    """The cause of the silence and the progress so far, for stalled and unknown runs. Empty otherwise, and for runs
    without an end record or status word.

    In a narrow line, progress facts are dropped, last first.
    """
    if liveness.state not in (State.STALLED, State.UNKNOWN) or _is_old(liveness, run):
        return ()
    why = _why_stalled(liveness, glyphs) if liveness.state is State.STALLED else liveness.reason
    lead = (
        Piece(Clean(liveness.state), f"{_STYLES[liveness.state]} bold"),
        Piece(Clean(f" {why}"), "text"),
    )
    progress = _progress(run, now if liveness.state is State.STALLED else None)
    while progress:
        line = (*lead, Piece(Clean(f" {glyphs.dot} " + f" {glyphs.dot} ".join(progress)), "sec"))
        if width_of(line) <= width:
            return line
        progress.pop()
    return tuple(fit(lead, width))


def _is_old(liveness: Liveness, run: Run) -> bool:
    """True for runs of programs that write no end records."""
    summary = run.summary
    return liveness.state is State.UNKNOWN and summary.status is Status.UNKNOWN and not summary.status_word


def _why_stalled(liveness: Liveness, glyphs: Glyphs) -> Clean:
    call, usual = liveness.open, liveness.usual
    if call is None or call.ms is None:
        reason = f"no new events for {seconds(liveness.silent_ms)}"
    else:
        least = "at least " if call.at_least else ""
        reason = f"{truncate(_name(call, glyphs), _NAME_CELLS)} running for {least}{seconds(call.ms)}"
    if usual.p95_ms is None:
        return Clean(reason)
    p95 = rounded(usual.p95_ms)
    if usual.source == "earlier calls" and call is not None:
        name = truncate(_name(call, glyphs), _NAME_CELLS)
        return Clean(f"{reason}; {name} calls take {p95} (p95)")
    return Clean(f"{reason}; typical gap {p95} (p95)")


def _progress(run: Run, now: float | None) -> list[str]:
    """Steps in their time (up to `now`, else as recorded), and errors."""
    summary = run.summary
    facts = []
    if summary.steps is not None:
        steps = quantity(summary.steps, "step")
        start = summary.started_at if summary.time_zone is not None else None
        lasted = summary.duration_ms if now is None else None if start is None else (now - start) * 1000
        facts.append(f"{steps} in {seconds(lasted)}" if lasted is not None and 0 <= lasted < 1e12 else steps)
    if summary.errors:
        errors = quantity(summary.errors, "error")
        facts.append(f"{errors}, recovered" if _has_recovered(run) else errors)
    return facts


def _has_recovered(run: Run) -> bool:
    """True if the last finished call succeeded."""
    ends = (Status.OK, Status.ERROR)
    calls = (span for span in reversed(run.spans) if span.operation not in CONTAINERS)
    last = next((call for call in calls if call.status in ends), None)
    return last is not None and last.status is Status.OK


# ---- arrivals


def arrival_counts(arrivals: Sequence[float], now: float, minutes: int = 8) -> tuple[int, ...]:
    """Arrivals in each of the last minutes, oldest first.

    `arrivals` are ascending. Arrivals after `now` (a clock was set back) count as now.
    """
    counts = [0] * minutes
    for at in reversed(arrivals):
        if not now - at < minutes * 60:
            break
        counts[-1 - int(max(0.0, now - at) // 60)] += 1
    return tuple(counts)

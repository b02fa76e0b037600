"""Facts about a run as a whole: the tabs *run* and *goal*, and the panels of the pane *Run*, most relevant first.

The tab *run* has the assessment: limits, loops, tools, context window, point of no return.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui import masking, text
from tracetui.analysis import prices
from tracetui.analysis.work import Tool, Window, Work, fullest_windows
from tracetui.masking import clean, one_line
from tracetui.model import (
    Criterion,
    Limit,
    Metric,
    Problem,
    Run,
    RunBody,
    RunSummary,
    Status,
    StatusSource,
    Total,
    Usage,
)
from tracetui.store.address import span_title
from tracetui.text import Clean, age, cells, cost, duration, grouped, pad, tokens, truncate, truncate_middle
from tracetui.views.bars import amount, sparkline
from tracetui.views.glyphs import UNICODE, Glyphs, kind_of, status_glyph
from tracetui.views.goal import has_goal, has_turns
from tracetui.views.labels import (
    COPIES,
    Standing,
    errors_inside,
    ledger_text,
    number,
    outcome_sign,
    outcome_word,
    run_sign,
    score_line,
    short_id,
    short_model,
    source_label,
    start_label,
)
from tracetui.views.list.result import result_phrase
from tracetui.views.rows import Line, Piece, fill
from tracetui.views.sheet import Each, Sheet
from tracetui.views.stack import Stack

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.context import Ledger
    from tracetui.analysis.statistics import Estimate
    from tracetui.analysis.triage import Group
    from tracetui.analysis.work import Tool, Window


_MAX_ROWS: Final = 8
_TURNS: Final = 60
_MAX_WRAPPED: Final = 20
"""Notes that are wrapped; of many, the others are one row each, drawn on demand."""


def run_rows(
    run: Run,
    *,
    width: int,
    opened: frozenset[Hashable] = frozenset(),
    glyphs: Glyphs = UNICODE,
    now: float | None = None,
    zone: tzinfo = UTC,
    assessment: Assessment | None = None,
    standing: Standing | None = None,
) -> Stack:
    """The *run* tab: facts about the run, its results and its problems."""
    sheet = Sheet("run", width, opened=opened, glyphs=glyphs)
    add_outcome(sheet, run, now, zone, assessment, standing)
    if assessment is not None and assessment.work is not None:
        add_work(sheet, assessment.work)
    sheet.blank()
    add_origin(sheet, run)
    if run.summary.deep:
        sheet.prose("read", ledger_text(run.summary.ledger, glyphs=glyphs), "sec")
    sheet.blank()
    add_limits(sheet, run.body.limits, assessment)
    if assessment is not None:
        add_loops(sheet, assessment)
        add_doom(sheet, assessment)
    if has_goal(run.body):
        sheet.blank()
        _goal(sheet, run)
    add_content(sheet, run)
    return sheet.rows()


def add_outcome(
    sheet: Sheet,
    run: Run,
    now: float | None,
    zone: tzinfo,
    assessment: Assessment | None,
    standing: Standing | None = None,
) -> None:
    """How the run ended, and what it took."""
    _status(sheet, run, standing)
    _times(sheet, run.summary, now, zone)
    add_usage(sheet, run.summary.usage, missing="not recorded" if run.summary.counts_in is None else "copied")
    _cost(sheet, run.summary.usage, assessment)
    _counts(sheet, run.summary)


def add_origin(sheet: Sheet, run: Run) -> None:
    """Where the run comes from, and the totals that it declares."""
    _origin(sheet, run.summary)
    add_totals(sheet, run.body.totals)


def add_content(sheet: Sheet, run: Run) -> None:
    """Texts, attributes and problems of the run."""
    _texts(sheet, run.body)
    if run.body.attributes:
        sheet.title("Attributes", "as recorded")
        sheet.tree(run.body.attributes)
    _problems(sheet, run.problems)


def goal_rows(run: Run, *, width: int, opened: frozenset[Hashable] = frozenset(), glyphs: Glyphs = UNICODE) -> Stack:
    """The *goal* tab: goal, criteria with evidence and turns, metrics, findings."""
    sheet = Sheet("goal", width, opened=opened, glyphs=glyphs)
    _goal(sheet, run)
    return sheet.rows()


# ---- sections


def _status(sheet: Sheet, run: Run, standing: Standing | None) -> None:
    """The state, if it follows from the last event, and the status, unless it would only say so again."""
    summary = run.summary
    if standing is not None and standing.by_last_event:
        basis = Piece(Clean(f"  {standing.basis}"), "dim")
        sheet.fact("state", Piece(Clean(f"{standing.sign} {standing.short_label}"), standing.style), basis)
    if standing is None or standing.says_status(summary):
        add_status(sheet, summary.status, summary.status_word, summary.status_source)
    if summary.outcome is not None:
        sign, style = outcome_sign(summary, sheet.glyphs)
        source = Piece(Clean(f"  {one_line(summary.outcome_source)}"), "dim")
        sheet.fact("outcome", Piece(sign, style), Piece(Clean(f" {outcome_word(summary)}"), style), source)
    for score in summary.scores:
        sheet.fact("score", Piece(score_line(score), "sec"))
    error = summary.first_error
    if run.body.error is not None:
        sheet.prose("error", run.body.error.text, most=_MAX_ROWS)
    elif error is not None:
        message = error.text or error.name or ""
        spans = (error.span,) if error.span is not None else ()
        style = "status.error" if summary.status is Status.ERROR else "sec"
        sheet.fact("first ✗" if sheet.glyphs is UNICODE else "error", Piece(one_line(message), style), spans=spans)
    if summary.result:
        sheet.fact("result", Piece(one_line(summary.result), "sec"))
    if summary.errors and summary.status is Status.OK:
        sheet.fact("", Piece(Clean(f"{errors_inside(summary)}; the run continued"), "status.warn"))


def add_status(sheet: Sheet, status: Status, word: str | None, source: StatusSource | None) -> None:
    """A status with the recorded word, else with its source."""
    sign, style = status_glyph(status, sheet.glyphs)
    pieces = [Piece(Clean(f"{sign} {status.value}"), style)]
    if is_recorded_otherwise := word is not None and word.lower() != status.value:
        pieces += [Piece(Clean("  recorded as "), "dim"), Piece(one_line(word, 80), "sec")]
    if source is not StatusSource.EXPLICIT or not is_recorded_otherwise:
        pieces.append(Piece(Clean(f"  {source_label(status, source)}"), "dim"))
    sheet.fact("status", *pieces)


def _times(sheet: Sheet, run: RunSummary, now: float | None, zone: tzinfo) -> None:
    missing = sheet.glyphs.missing
    started = start_label(run, now=now, zone=zone)
    sheet.fact("started", Piece(started or missing, "sec" if started else "dim"))
    took = missing if run.duration_ms is None else duration(run.duration_ms)
    sheet.fact("time", Piece(took, "sec"))


def _origin(sheet: Sheet, run: RunSummary) -> None:
    missing = sheet.glyphs.missing
    for label, value in (("id", run.id), ("name", run.name), ("agent", run.agent)):
        sheet.fact(label, Piece(clean(value, 500) if value else missing, "sec" if value else "dim"))
    model, short = clean(run.model or "", 500), short_model(run.model or "")
    recorded = [Piece(Clean(f" ({model})"), "dim")] if short != model else []
    sheet.fact("model", Piece(short or missing, "sec" if model else "dim"), *recorded)
    for label, value in (("source", run.source), ("tags", ", ".join(run.tags))):
        if value:
            sheet.fact(label, Piece(clean(value, 500), "sec"))
    sheet.fact("format", Piece(clean(run.ref.format), "sec"))
    sheet.prose("address", run.ref.address, "sec")
    if run.replay_of is not None:
        original = Clean(f"{sheet.glyphs.replay} {clean(run.replay_of, 200)}")
        sheet.fact(run.relation or "replay", Piece(original, "accent"), run=run.replay_of)
    if run.counts_in is not None:
        sheet.prose("counts in", run.counts_in, "sec")
    if run.parent is not None:
        sheet.fact("parent", Piece(clean(run.parent, 200), "accent"), run=run.parent)


def add_usage(sheet: Sheet, used: Usage | None, label: str = "tokens", *, missing: str = "not recorded") -> None:
    """Tokens, ``—`` and why for `missing` ones."""
    sign = sheet.glyphs.missing
    if used is None:
        sheet.fact(label, Piece(sign, "dim"), Piece(Clean(f"  {missing}"), "dim"))
        return
    parts = [("in", used.input_tokens), ("out", used.output_tokens), ("total", used.total_tokens)]
    parts += [("cache read", used.cache_read_tokens), ("cache written", used.cache_creation_tokens)]
    parts += [("for an hour", used.cache_write_1h_tokens), ("reasoning", used.reasoning_tokens)]
    pieces = []
    for name, count in parts:
        if count is not None or name in ("in", "out", "reasoning"):
            value = sign if count is None else tokens(count)
            value = Clean(f"at least {value}") if name == "out" and used.output_at_least else value
            pieces += [Piece(Clean(f"{name} "), "dim"), Piece(Clean(f"{value}  "), "sec")]
    sheet.fact(label, *pieces)


def add_price(sheet: Sheet, recorded: float | None, estimate: Estimate | None) -> None:
    """The recorded cost, else an estimate and its source."""
    if recorded is not None:
        sheet.fact("cost", Piece(cost(recorded), "sec"))
    elif estimate is None:
        sheet.fact("cost", Piece(sheet.glyphs.missing, "dim"))
    else:
        models = f", {'models' if len(estimate.models) > 1 else 'model'} {', '.join(estimate.models)}"
        source = one_line(f"estimated by {prices.origin()}{models if estimate.models else ''}", 300)
        sheet.fact("cost", Piece(cost(estimate.usd, estimated=True), "sec"), Piece(Clean(f"  {source}"), "dim"))
        if estimate.unpriced:
            excluded = f"excludes {', '.join(estimate.unpriced)} (no known price)"
            sheet.fact("", Piece(one_line(excluded, 300), "dim"))


def _cost(sheet: Sheet, used: Usage | None, assessment: Assessment | None) -> None:
    """The cost of the run; if only the library is missing for an estimate, how to install it."""
    if used is None:
        return
    if used.cost_usd is None and assessment is not None and prices.wanted() and not prices.installed():
        hint = Clean(f"  pip install '{prices.EXTRA}' to estimate it")
        sheet.fact("cost", Piece(sheet.glyphs.missing, "dim"), Piece(hint, "dim"))
        return
    add_price(sheet, used.cost_usd, assessment.estimate if assessment is not None else None)


def _counts(sheet: Sheet, run: RunSummary) -> None:
    counted = (
        ("steps", run.steps),
        ("spans", run.spans),
        ("model calls", run.llm_calls),
        ("tool calls", run.tool_calls),
        ("errors", run.errors),
    )
    pieces: list[Piece] = []
    for name, count in counted:
        if name == "model calls" and run.counts_in is not None:
            pieces.append(Piece(Clean("without copies: "), "dim"))
        value = sheet.glyphs.missing if count is None else grouped(count)
        style = "status.error" if name == "errors" and count else "sec"
        word = name[:-1] if count == 1 else name
        pieces += [Piece(Clean(f"{value} "), style), Piece(Clean(f"{word}  "), "dim")]
    if run.counts_in is not None:
        pieces.append(Piece(COPIES, "dim"))
    sheet.fact("counted", *pieces)


def add_totals(sheet: Sheet, declared: tuple[Total, ...]) -> None:
    """Recorded totals beside our counts. A difference is highlighted."""
    for i, total in enumerate(declared):
        name = Piece(Clean(f"{one_line(total.name, 40)} "), "dim")
        stated = number(total.declared, sheet.glyphs)
        counted = number(total.counted, sheet.glyphs)
        if total.differs:
            counts = Piece(Clean(f"{stated} declared, {counted} counted"), "status.warn")
            sheet.fact("" if i else "declared", name, counts)
        elif total.counted is None or total.declared is None:
            counts = Piece(Clean(f"{stated} declared, {counted} counted"), "dim")
            sheet.fact("" if i else "declared", name, counts)
        else:
            sign = Piece(Clean(f" {sheet.glyphs.ok}"), "status.ok")
            sheet.fact("" if i else "declared", name, Piece(stated, "sec"), sign, Piece(Clean(" matches count"), "dim"))


def _goal(sheet: Sheet, run: Run) -> None:
    body = run.body
    if body.goal:
        sheet.prose("goal", body.goal, "text bold", most=_MAX_ROWS)
    if body.reason:
        sheet.prose("why", body.reason, "sec", most=_MAX_ROWS)
    if body.criteria:
        met = sum(criterion.met is True for criterion in body.criteria)
        sheet.title("Criteria", f"{met} of {len(body.criteria)} met")
    for i, criterion in enumerate(body.criteria):
        _criterion(sheet, run, i + 1, criterion)
    if body.metrics:
        sheet.title("Metrics")
    width = max((len(one_line(metric.name, 30)) for metric in body.metrics), default=0)
    for metric in body.metrics:
        _metric(sheet, metric, width)
    if body.findings:
        sheet.title("Findings", grouped(len(body.findings)))
    for finding in body.findings:
        sheet.bullet(finding, "sec", most=_MAX_ROWS)


def _criterion(sheet: Sheet, run: Run, position: int, criterion: Criterion) -> None:
    status = {True: Status.OK, False: Status.ERROR, None: Status.UNKNOWN}[criterion.met]
    sign, style = status_glyph(status, sheet.glyphs)
    spans = _spans_of(run, criterion.steps)
    if position > 1:
        sheet.blank()
    head = (Piece(sign, style), Piece(Clean(f" {position} "), "dim"))
    sheet.line(*head, Piece(one_line(criterion.text, 2000), "text bold"), spans=spans)
    if len(criterion.text) > sheet.width - 5:
        sheet.prose("", criterion.text, "sec")
    if criterion.evidence:
        sheet.prose("", criterion.evidence, "sec", most=_MAX_ROWS)
    if criterion.steps:
        sheet.fact("turns", *_turns(run, criterion, style, sheet.glyphs), spans=spans)


def _spans_of(run: Run, numbers: tuple[int, ...]) -> tuple[str, ...]:
    wanted = set(numbers)
    return tuple(step.span for step in run.steps if step.number in wanted)


def _turns(run: Run, criterion: Criterion, style: str, glyphs: Glyphs) -> list[Piece]:
    """All turns of the run, with the numbers of the criterion's turns: ``· · 3 4 ·``."""
    named = set(criterion.steps)
    steps = [step.number for step in run.steps if step.number is not None]
    if len(steps) > _TURNS or not named <= set(steps):
        return [Piece(Clean(" ".join(map(str, criterion.steps[:_TURNS]))), f"{style} bold")]
    return [
        Piece(Clean(f"{step} "), f"{style} bold") if step in named else Piece(Clean(f"{glyphs.zero} "), "dim")
        for step in steps
    ]


def _metric(sheet: Sheet, metric: Metric, width: int) -> None:
    status = {True: Status.OK, False: Status.ERROR, None: None}[metric.passed]
    sign, style = status_glyph(status, sheet.glyphs) if status else (sheet.glyphs.zero, "dim")
    pieces = [Piece(sign, style), Piece(Clean(" " + pad(one_line(metric.name, 30), width) + "  "), "text")]
    if metric.score is not None:
        top = next((scale for scale in (1, 10, 100) if max(metric.score, metric.threshold or 0) <= scale), metric.score)
        bar = "bar.error" if metric.passed is False else "bar.agent"
        pieces += amount(metric.score, top, sheet.bar, bar, threshold=metric.threshold, glyphs=sheet.glyphs)
        pieces.append(Piece(Clean("  ")))
    pieces.append(Piece(number(metric.score, sheet.glyphs), f"{style} bold" if metric.passed is False else "text"))
    if metric.threshold is not None:
        pieces.append(Piece(Clean(f" {sheet.glyphs.at_least} {number(metric.threshold)}"), "dim"))
    sheet.line(*pieces)
    if metric.reason:
        sheet.prose("", metric.reason, "sec", most=3)
    if metric.details:
        sheet.value("", metric.details, most=3)


def _texts(sheet: Sheet, body: RunBody) -> None:
    texts = (
        ("input", body.input),
        ("output", body.output),
        ("system", body.system_prompt),
        ("user", body.last_user),
        ("answer", body.last_assistant),
    )
    sheet.blank()
    for label, value in texts:
        if value is not None:
            sheet.value(label, value, most=_MAX_ROWS)


def _problems(sheet: Sheet, problems: tuple[Problem, ...]) -> None:
    if not problems:
        return
    sheet.title("Notes", f"{grouped(len(problems))} {sheet.glyphs.dot} parse problems and inconsistencies")
    for problem in problems[:_MAX_WRAPPED]:
        location = f"{one_line(problem.where, 60)}  " if problem.where else ""
        sheet.bullet(location + one_line(problem.reason), sign=Piece(sheet.glyphs.note, "status.warn bold"))
    rest = problems[_MAX_WRAPPED:]
    if rest:
        sheet.add(Each("problems", len(rest), lambda i: _problem(rest[i], sheet.glyphs)))


def _problem(problem: Problem, glyphs: Glyphs) -> Line:
    location = Piece(Clean(f"{one_line(problem.where, 60)}  " if problem.where else ""), "sec")
    return (Piece(glyphs.note, "status.warn bold"), Piece(Clean(" ")), location, Piece(one_line(problem.reason)))


# ---- panels


class SameFailure(NamedTuple):
    """The cause of a failed run, and the newest runs that it made fail."""

    group: Group
    runs: Sequence[RunSummary]


MAX_RUNS: Final = 5
"""Runs of the panel *Same failure*."""
_MAX_TOOLS = 8
_NAME: Final = 20
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
    ledger: Ledger | None = None,
    same: SameFailure | None = None,
    standing: Standing | None = None,
) -> tuple[Stack, int]:
    """The panels, most relevant first, then all facts of the run; and the number of rows of the panels.

    The facts are also in the tab *run*. Those of a run with turns are only there: the turns need the room.
    """
    sheet = Sheet("panels", width, opened=opened, glyphs=glyphs)
    if assessment is not None and assessment.work is not None:
        _context(sheet, run.summary, assessment.work.windows, ledger)
        _tools(sheet, assessment.work.tools)
    if run.body.limits or (assessment is not None and (assessment.loops or assessment.notable_point)):
        sheet.title("Limits and loops" if run.body.limits else "Loops")
        add_limits(sheet, run.body.limits, assessment)
        if assessment is not None:
            add_loops(sheet, assessment)
            add_doom(sheet, assessment)
    if same is not None and len(same.group.runs) > 1:
        _same_failures(sheet, same, now)
    if run.summary.deep:
        sheet.title("Coverage")
        sheet.prose(None, ledger_text(run.summary.ledger, glyphs=glyphs), "sec")
    panels = len(sheet.rows())
    if not has_turns(run):
        sheet.title("Facts")
        add_outcome(sheet, run, now, zone, assessment, standing)
        sheet.blank()
        add_origin(sheet, run)
        add_content(sheet, run)
    return sheet.rows(), panels


def _context(sheet: Sheet, run: RunSummary, windows: Sequence[Window], ledger: Ledger | None) -> None:
    """What fills the context of the model calls, in a few rows; `ledger` is None until it is read."""
    from tracetui.views.context_page import panel_lines, panel_title  # loaded by the assessment

    if ledger is None or not ledger.calls:
        if windows and ledger is None:
            sheet.title("Context", "reading …")
        return
    sheet.title("Context", panel_title(ledger, run))
    most = max(ledger.calls, key=lambda call: call.input)
    for line in panel_lines(ledger, sheet.width, masking.current(), sheet.glyphs):
        sheet.line(*line, spans=(most.span,))


def _tools(sheet: Sheet, tools: Sequence[Tool]) -> None:
    """Calls, errors, time and share of time of each tool."""
    if not tools:
        return
    everything = sum(tool.ms or 0.0 for tool in tools)
    sheet.title("Tools")
    names = [one_line(tool.name, 200) for tool in tools[:_MAX_TOOLS]]
    timed = sheet.bar + _TIME_CELLS if everything else 0
    room = max(8, min(sheet.width - _TOOL_CELLS - timed, max(_NAME, *map(cells, names))))
    columns = "calls  err   time  share" if everything else "calls  err"
    sheet.line(Piece(Clean(f"{'tool':{room + 2}} {columns}"), "dim"), heading=True)
    for tool, name in zip(tools, names, strict=False):
        sign, style = kind_of(tool.operation, sheet.glyphs)
        failed = text.count(tool.errors) if tool.errors else sheet.glyphs.zero
        line = [
            Piece(Clean(f"{sign} "), style),
            Piece(Clean(f"{pad(truncate(name, room), room)} "), "text"),
            Piece(pad(text.count(tool.calls), 5, right=True), "sec"),
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


def _same_failures(sheet: Sheet, same: SameFailure, now: float | None) -> None:
    """The newest runs that the same cause made fail."""
    group, glyphs = same.group, sheet.glyphs
    number = len(group.runs)
    sheet.title("Same failure", f"{one_line(group.id)} in {text.quantity(number, 'run')}")
    room = max(8, sheet.width - 28)
    for run in same.runs:
        sign, style = run_sign(run, run.status, glyphs)
        title = [Piece(one_line(run.prompt or run.title or "", 200), "sec")] if run.prompt or run.title else []
        since = age(now - run.started_at) if now is not None and run.started_at is not None else Clean("")
        line = [
            Piece(Clean(f"{sign} "), style),
            Piece(Clean(f"{pad(short_id(run.id), 9)} "), "text"),
            *fill(title or result_phrase(run, glyphs), room),
            Piece(Clean(f" {pad(duration(run.duration_ms), 6, right=True)}"), "sec"),
            Piece(Clean(f" {pad(since, 4, right=True)}"), "dim"),
        ]
        sheet.line(*line, run=run.id)
    if number > 1 and group.wasted_ms is not None:
        lost = [Piece(Clean(f"time lost {duration(group.wasted_ms)} in total  "), "sec")]
        sheet.line(*lost, Piece(Clean("T"), "key bold"), Piece(Clean(" triage"), "sec"))


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
        word = "limit reached" if limit.violated else "exceeded" if reached != most else "at limit"
        pieces.append(Piece(Clean(f"  {word}"), "status.error" if limit.violated else "status.warn"))
    elif limit.current is None and reached is not None:
        pieces.append(Piece(Clean("  counted"), "dim"))
    return pieces


def add_loops(sheet: Sheet, assessment: Assessment) -> None:
    """Loops and their cost."""
    from tracetui.views.timeline.spans import loop_cost, loop_title  # loaded by the assessment

    run, loops, glyphs = assessment.run, assessment.loops, sheet.glyphs
    for i, loop in enumerate(loops[:_MAX_LOOPS]):
        spent = loop_cost(loop)
        pieces = [Piece(Clean(f"{glyphs.loop} {loop_title(run, loop, glyphs)}"), "status.warn")]
        pieces.append(Piece(Clean(f"  time lost {spent}" if spent else ""), "sec"))
        sheet.fact("" if i else "loops", *pieces, spans=(run.spans[loop.first].id,))
    if len(loops) > _MAX_LOOPS:
        sheet.fact("", Piece(Clean(f"and {grouped(len(loops) - _MAX_LOOPS)} more"), "dim"))
    if assessment.left_out:
        note = f"{grouped(assessment.left_out)} more similar calls not compared (too many)"
        sheet.fact("" if loops else "loops", Piece(Clean(note), "dim"))


def add_doom(sheet: Sheet, assessment: Assessment) -> None:
    """The likely point of no return, with the reason."""
    point = assessment.notable_point
    if point is None:
        return
    sheet.fact("likely", *_leads(sheet, assessment.run, point.span, "lost from "), spans=(point.span,))
    sheet.prose("", point.reason, "sec")
    sheet.fact("", Piece(Clean("likely point of no return (heuristic)"), "dim"))


def _leads(sheet: Sheet, run: Run, span_id: str, label: str) -> list[Piece]:
    """``→ exceeded at step 11 search``."""
    span = run.span(span_id)
    title = "" if span is None else span_title(run, span)
    return [Piece(Clean(f"{sheet.glyphs.arrow} {label}"), "dim"), Piece(one_line(title, 80), "accent")]


_TOOL_NAME: Final = 24


def add_work(sheet: Sheet, done: Work) -> None:
    """The tools as a table, each row leading to a failed call; the context window as a sparkline."""
    _add_tools(sheet, done.tools)
    add_windows(sheet, done.windows)


def _add_tools(sheet: Sheet, tools: tuple[Tool, ...]) -> None:
    size = max((len(one_line(tool.name, _TOOL_NAME)) for tool in tools[:_MAX_TOOLS]), default=0)
    everything = sum(tool.ms or 0.0 for tool in tools)
    for i, tool in enumerate(tools[:_MAX_TOOLS]):
        sign, style = kind_of(tool.operation, sheet.glyphs)
        name = pad(truncate_middle(one_line(tool.name, 200), size), size)
        pieces = [Piece(Clean(f"{sign} "), style), Piece(name, "text")]
        pieces.append(Piece(Clean(f" {pad(text.count(tool.calls), 5, right=True)}×"), "sec"))
        failed = f"{text.count(tool.errors)}{sheet.glyphs.error}" if tool.errors else sheet.glyphs.zero
        pieces.append(Piece(pad(Clean(failed), 6, right=True), "status.error bold" if tool.errors else "dim"))
        pieces.append(Piece(pad(duration(tool.ms), 8, right=True), "sec"))
        if tool.ms and sheet.room > size + 40:
            pieces += (Piece(Clean("  ")), *amount(tool.ms, everything, sheet.bar, "bar.tool", glyphs=sheet.glyphs))
        sheet.fact("" if i else "tools", *pieces, spans=(tool.span,))
    if len(tools) > _MAX_TOOLS:
        sheet.fact("", Piece(Clean(f"and {text.count(len(tools) - _MAX_TOOLS)} more  "), "dim"))


def add_windows(sheet: Sheet, windows: tuple[Window, ...]) -> None:
    """The context window as a sparkline."""
    if len(windows) < 2:
        return
    fullest = max(windows, key=lambda window: window.tokens)
    busiest = fullest_windows(windows, max(8, min(sheet.room, 80)))
    course = sparkline([float(window.tokens) for window in busiest], sheet.glyphs)
    sheet.fact("context", Piece(course, "kind.model"), spans=(fullest.span,))
    at = f" at step {fullest.step}" if fullest.step is not None else ""
    points = (("first", windows[0], ""), ("most", fullest, at), ("last", windows[-1], ""))
    pieces = []
    for word, window, suffix in points:
        pieces += [
            Piece(Clean(f"{word} "), "dim"),
            Piece(tokens(window.tokens), "sec"),
            Piece(Clean(f"{suffix}  "), "dim"),
        ]
    sheet.fact("", *pieces, Piece(Clean("input tokens per model call"), "dim"), spans=(fullest.span,))

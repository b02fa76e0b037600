"""A run as plain text that reads well in a chat: status and cause first, then one span after the other.

Every line has passed the gate. Long values are cut with their length, and the last line says how to print them in full.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from shlex import quote
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from tracetui.analysis import prices
from tracetui.analysis.assessment import assess
from tracetui.analysis.statistics import estimate_of
from tracetui.export.json import encode, moment, plain
from tracetui.masking import clean, clean_lines, one_line
from tracetui.model import (
    Blob,
    Body,
    Message,
    Operation,
    Part,
    Reasoning,
    Run,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    quote_key,
)
from tracetui.model.masked import unmasked
from tracetui.store.address import span_title
from tracetui.text import Clean, cost, duration, exact, grouped, measured, quantity, tokens
from tracetui.views.labels import (
    COPIES,
    errors_inside,
    number,
    outcome_word,
    score_line,
    state_replaces_status,
    state_word,
)
from tracetui.views.timeline.chart import tokens_of
from tracetui.views.timeline.spans import loop_cost as cost_of
from tracetui.views.timeline.spans import loop_title as loop_title

# ---- values and messages, uncut


def value_lines(value: Any) -> list[Clean]:
    """Lines of a text, or of the indented JSON of another value."""
    return clean_lines(value if isinstance(value, str) else pretty(value))


def pretty(value: Any) -> str:
    """Indented JSON, not cleaned; on one line for values that only `encode` accepts (very deep, unusual types)."""
    try:
        return orjson.dumps(value, default=plain, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return encode(value).decode()


def messages_lines(messages: Iterable[Message]) -> Iterator[Clean]:
    """A conversation, each message below its role."""
    for message in messages:
        name = f" ({one_line(message.name, 60)})" if message.name else ""
        yield Clean(f"[{one_line(message.role, 40)}{name}]")
        for part in message.parts:
            yield from clean_lines(part_text(part, pretty))


def one_of_messages(messages: Iterable[Message]) -> str:
    """Messages joined on one line, not cleaned."""
    return " ".join(part_text(part, compact) for message in messages for part in message.parts)


def compact(value: Any) -> str:
    """A value on one line, not cleaned."""
    return value if isinstance(value, str) else encode(value).decode()


def part_text(part: Part, show: Any) -> str:
    """One part of a message as text, not cleaned; `show` formats values."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Reasoning):
        return f"(thinking) {part.text}"
    if isinstance(part, ToolCall):
        return f"→ {part.name}({show(part.arguments) if part.arguments is not None else ''})"
    if isinstance(part, ToolResult):
        failed = " (error)" if part.is_error else ""
        content: Any = part.content
        return f"←{failed} {content if isinstance(content, str) else show(content)}"
    assert isinstance(part, Blob)
    return f"[{part.kind}] {show(part.data)}"


# ---- the whole run

SHORT: Final = 240
"""Maximum characters of an input or output in the overview of a run."""
CUT: Final = " characters]"
MAX_DEPTH: Final = 40
"""Maximum indented depth; deeper spans print their depth, so a long chain of spans takes no quadratic space."""
LABEL: Final = 11

_MARKS: Final = {True: "met", False: "UNMET", None: "not judged"}


def run_lines(run: Run) -> Iterator[Clean]:
    """The run as text, long values cut."""
    cut = False
    for line in _all_lines(run):
        cut = cut or line.endswith(CUT)
        yield line
    if cut:
        step = quote(f"{run.summary.ref.address}/STEP")
        yield Clean("")
        yield clean(f"Full values: tracetui show {step} (or /attributes, /STEP/output …)")


def _all_lines(run: Run) -> Iterator[Clean]:
    yield title(run)
    for label, lines in facts(run):
        yield from _labeled_lines(label, lines)
    yield Clean("")
    if run.body.layout:
        from tracetui.views.detail.tabs import node_summary, node_table

        yield from node_table(run)
        yield from (Clean(""), node_summary(run), Clean(""))
    for position in range(len(run.spans)):
        yield from span_lines(run, position)


# ---- the run


class Fact(NamedTuple):
    """A label with its lines; often one, possibly none."""

    label: str
    lines: Sequence[Clean]


def title(run: Run) -> Clean:
    """Agent and name of a run."""
    summary = run.summary
    who = " · ".join(dict.fromkeys(one_line(part, 100) for part in (summary.agent, summary.name) if part))
    return Clean(" ".join((who or one_line(summary.id, 100), *([one_line(summary.label)] if summary.label else []))))


def facts(run: Run) -> Iterator[Fact]:
    """All facts of a run as a whole."""
    yield from _outcome(run)
    yield from _judgments(run)
    yield from _assessment(run)
    yield from _facts(run)
    yield from _values(run)


def _outcome(run: Run) -> Iterator[Fact]:
    summary = run.summary
    state = state_word(summary, time.time())
    is_recorded = summary.status_source is not StatusSource.DERIVED
    if is_recorded or not (state and state_replaces_status(summary)):
        yield Fact("status", [_status(run)])
    if state:
        yield Fact("state", [Clean(f"{state} ({StatusSource.DERIVED.label})")])
    if summary.outcome is not None:
        source = f": {one_line(summary.outcome_source, 300)}" if summary.outcome_source else ""
        yield Fact("outcome", [Clean(f"{outcome_word(summary)}{source}")])
    for score in summary.scores:
        yield Fact("score", [score_line(score)])
    if (error := summary.first_error) is not None:
        label = "cause" if summary.status is Status.ERROR else "inside"
        location = _location(run, error.span)
        named = location and error.type == error.name  # the name of the violated policy
        message = clean_lines(error.message if named and error.message else error.text)
        first = ": ".join(part for part in (location, message[0]) if part)
        yield Fact(label, [Clean(first), *message[1:]])


def _status(run: Run) -> Clean:
    summary = run.summary
    details = [f"recorded as {one_line(summary.status_word, 80)!r}"] if summary.status_word else []
    if summary.status_source and not (details and summary.status_source is StatusSource.EXPLICIT):
        details.append(summary.status_source.label)
    status = summary.status.value + (f" ({', '.join(details)})" if details else "")
    if summary.status is Status.OK and summary.errors:
        status += f" · {errors_inside(summary)}"
    return Clean(status)


def _location(run: Run, span_id: str | None) -> Clean:
    span = run.span(span_id) if span_id is not None else None
    if span is None:
        return Clean("")
    return one_line(span_title(run, span), 120)


def _judgments(run: Run) -> Iterator[Fact]:
    """Goal, limits, findings, criteria (unmet first, with evidence), reason and metrics."""
    body = run.body
    if body.goal:
        yield Fact("goal", clean_lines(body.goal))
    for limit in body.limits:
        label = f"{one_line(limit.name, 60)} {measured(limit.current, limit.limit)}".rstrip()
        label += " LIMIT REACHED" if limit.violated else ""
        yield Fact("limit", [Clean(label), *(clean_lines(limit.message) if limit.message else [])])
    for finding in body.findings:
        yield Fact("finding", clean_lines(finding))
    for criterion in sorted(body.criteria, key=lambda criterion: criterion.met is not False):
        turns = f" (turns {', '.join(map(str, criterion.steps))})" if criterion.steps else ""
        lines = clean_lines(f"{_MARKS[criterion.met]}: {criterion.text}{turns}")
        yield Fact("criterion", [*lines, *(clean_lines(criterion.evidence) if criterion.evidence else [])])
    if body.reason:
        yield Fact("reason", clean_lines(body.reason))
    for metric in body.metrics:
        passed = {True: " passed", False: " FAILED", None: ""}[metric.passed]
        score = "—" if metric.score is None else f"{metric.score:.4g}"
        threshold = "" if metric.threshold is None else f" of {metric.threshold:.4g}"
        yield Fact("metric", [Clean(f"{one_line(metric.name, 60)} {score}{threshold}{passed}")])


def _assessment(run: Run) -> Iterator[Fact]:
    """Loops, exceeded limits, and the likely point of no return."""
    assessment = assess(run, unmasked(run).load)
    for loop in assessment.loops:
        spent = f" · time lost {cost_of(loop)}" if cost_of(loop) else ""
        yield Fact("loop", [Clean(f"{loop_title(run, loop)} from {_location(run, run.spans[loop.first].id)}{spent}")])
    if assessment.left_out:
        yield Fact("loop", [Clean(f"{grouped(assessment.left_out)} more similar calls, not compared")])
    for course in assessment.limits:
        if course.crossed is not None:
            location = _location(run, run.spans[course.crossed].id)
            yield Fact("exceeded", [Clean(f"{one_line(course.limit.name, 60)} at {location}")])
    if (doom := assessment.notable_point) is not None:
        yield Fact("likely lost", [Clean(f"from {_location(run, doom.span)} (heuristic): {doom.reason}")])


def _facts(run: Run) -> Iterator[Fact]:
    summary, usage = run.summary, run.summary.usage
    numbers = {
        "step": summary.steps,
        "model call": summary.llm_calls,
        "tool call": summary.tool_calls,
        "error": summary.errors,
    }
    counts = [quantity(number, word) for word, number in numbers.items() if number]
    counts += [COPIES] if summary.counts_in else []
    yield Fact("model", [one_line(summary.model, 100)] if summary.model else [])
    yield Fact("counts", [Clean(" · ".join(counts))] if counts else [])
    if usage is not None:
        amounts = [*_token_counts(usage)]
        estimate = estimate_of(run)
        amounts += [] if usage.cost_usd is None else [cost(usage.cost_usd)]
        amounts += [] if estimate is None else [Clean(f"{cost(estimate.usd, estimated=True)} by {prices.origin()}")]
        yield Fact("tokens", [Clean(" · ".join(amounts))])
    when = moment(summary.started_at, zone=summary.time_zone)
    took = [f"took {duration(summary.duration_ms)}"] if summary.duration_ms is not None else []
    naive = ["local, zone unknown"] if when and summary.time_zone is None else []
    yield Fact("started", [Clean(" · ".join([when, *naive, *took]))] if when else [])
    yield Fact("took", [duration(summary.duration_ms)] if took and not when else [])
    yield Fact(summary.relation or "replay", [one_line(f"of {summary.replay_of}")] if summary.replay_of else [])
    yield Fact("counts in", [clean(summary.counts_in)] if summary.counts_in else [])
    if (task := summary.task_key) is not None and not task.derived:
        yield Fact("task", [one_line(task.name, 300)])
    yield Fact("trial", [one_line(summary.trial, 300)] if summary.trial else [])
    yield Fact("parent", [one_line(summary.parent)] if summary.parent else [])
    for total in run.body.totals:
        if total.differs:
            totals = f"{one_line(total.name, 60)}: declared {number(total.declared)}, counted {number(total.counted)}"
            yield Fact("total", [Clean(totals)])
    for problem in run.problems:
        yield Fact("problem", [one_line(f"{problem.where} {problem.reason}".strip())])
    yield Fact("id", [exact(summary.id, 300)])
    yield Fact("address", [exact(summary.ref.address)])


def _token_counts(usage: Usage) -> Iterator[str]:
    """``640 input``; ``at least 42 output`` where a trace may not have the last count."""
    for name, value in msgspec.structs.asdict(usage).items():
        if name.endswith("_tokens") and value is not None:
            at_least = "at least " if name == "output_tokens" and usage.output_at_least else ""
            yield f"{at_least}{grouped(value)} {name.removesuffix('_tokens')}"


def _values(run: Run) -> Iterator[Fact]:
    """Values of the run itself, shortened."""
    body, cause = run.body, run.summary.first_error
    for name in ("system_prompt", "input", "output", "error", "tags", "attributes"):
        value: Any = run.summary.tags if name == "tags" else getattr(body, name)
        is_cause = name == "error" and cause is not None and value is not None and value.message == cause.message
        if not is_cause and value not in (None, (), {}, ""):
            yield Fact(name.replace("_prompt", ""), [short(value)])


def _labeled_lines(label: str, lines: Iterable[Clean]) -> Iterator[Clean]:
    head = f"{clean(label):<{LABEL}}"
    for line in lines:
        yield Clean(head + line)
        head = " " * LABEL


# ---- spans


def span_lines(run: Run, position: int) -> Iterator[Clean]:
    """One span in the overview: its line, its error, and its input and output, shortened."""
    span, depth = run.spans[position], run.depths[position]
    indent = "  " * depth if depth <= MAX_DEPTH else f"{'  ' * MAX_DEPTH}(depth {depth}) "
    body = run.load(span)
    number = f"{span.step}. " if span.is_step and span.step is not None else "- "
    input_text, output_text = _input_text(body), _output_text(body)
    facts = [*span_facts(span)]
    yield Clean(indent + number + " · ".join([one_line(span.name or "(no name)", 120), *facts]))
    indent = "  " * min(depth, MAX_DEPTH) + "   "
    if span.error is not None:
        for line in clean_lines(span.error.text):
            yield Clean(f"{indent}! {line}")
    if span.operation is Operation.TURN and run.sizes[position] > 1:
        output_text = Clean("")  # its calls follow one by one
    for label, value in (("in ", input_text), ("out", output_text)):
        if value:
            yield Clean(f"{indent}{label}: {value}")
    if span.preview and not (input_text or output_text or span.error):
        yield Clean(indent + one_line(span.preview, SHORT))


def span_facts(span: Span) -> Iterator[Clean]:
    """Facts next to the name of a span: status unless ok, note, duration, tokens."""
    if span.status not in (Status.OK, Status.UNKNOWN):
        word = f" ({one_line(span.status_word, 40)})" if span.status_word and span.status_word != span.status else ""
        yield Clean(span.status.value + word)
    if span.note:
        yield one_line(span.note, 80)
    if span.duration_ms is not None:
        yield duration(span.duration_ms)
    if (total := tokens_of(span.usage)) is not None:
        yield Clean(f"{tokens(total)} tok")


def _input_text(body: Body) -> Clean:
    """The input; of a conversation its last message, which is the new one."""
    if body.input_messages:
        before = len(body.input_messages) - 1
        more = f" (after {quantity(before, 'message')})" if before else ""
        return Clean(short_text(one_of_messages(body.input_messages[-1:])) + more)
    return short(body.input) if body.input is not None else Clean("")


def _output_text(body: Body) -> Clean:
    if body.output_messages:
        return short_text(one_of_messages(body.output_messages))
    return short(body.output) if body.output is not None else Clean("")


def short(value: Any) -> Clean:
    """A value on one line, cut after `SHORT` characters with a note of its length."""
    return short_text(value if isinstance(value, str) else encode(value).decode())


def short_text(text: str) -> Clean:
    """Text on one line, cut like `short`."""
    if len(text) <= SHORT:
        return one_line(text, SHORT)
    return Clean(f"{one_line(text[:SHORT], SHORT)} … [{grouped(len(text))}{CUT}")


def one_span_lines(run: Run, position: int) -> Iterator[Clean]:
    """One span in full: everything the trace contains about it, uncut."""
    span, body = run.spans[position], run.load(run.spans[position])
    yield Clean(" · ".join([one_line(span.name or "(no name)", 200), span.operation.value, *span_facts(span)]))
    details = [one_line(span.status_word, 80)] if span.status_word else []
    details += [Clean(span.status_source.label)] if span.status_source else []
    yield from _labeled_lines("status", [Clean(span.status.value + (f" ({', '.join(details)})" if details else ""))])
    if (when := moment(span.started_at, zone=run.summary.time_zone)) is not None:
        yield from _labeled_lines("started", [Clean(when)])
    yield from _labeled_lines("id", [exact(span.id, 300)])
    yield from _labeled_lines("hash", [one_line(span.input_hash, 200)] if span.input_hash else [])
    yield from _labeled_lines("usage", [short(msgspec.structs.asdict(span.usage))] if span.usage else [])
    if span.error is not None:
        yield from _section("error", clean_lines(span.error.text))
    yield from _section("traceback", clean_lines(body.traceback) if body.traceback else [])
    yield from _section("input", _messages_or_value(body.input_messages, body.input))
    yield from _section("output", _messages_or_value(body.output_messages, body.output))
    for name in ("bindings", "checks", "links", "state", "attributes"):
        value = getattr(body, name)
        yield from _section(name, value_lines(value) if value not in ((), {}, None) else [])
    below = [run.spans[child] for child in run.children(position)]
    yield from _section("below", [one_line(f"{child.name}  …/{quote_key(child.id)}", 400) for child in below])


def _messages_or_value(messages: tuple[Message, ...], value: Any) -> Iterable[Clean]:
    """The conversation if there is one, else the value (``--json`` contains both)."""
    if messages:
        return messages_lines(messages)
    return value_lines(value) if value is not None else []


def _section(title: str, lines: Iterable[Clean]) -> Iterator[Clean]:
    following = iter(lines)
    first = next(following, None)
    if first is not None:
        yield from chain((Clean(""), Clean(title.upper()), first), following)

"""Events of runs as `tail` prints them: one JSON object (docs/json.md) or one line of text per event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from os.path import basename, splitext
from typing import Any, Final

from tracetui.export.json import encode, problem_value, run_value, span_document
from tracetui.masking import clean, one_line
from tracetui.model import Problem, Run, RunSummary, Status, quote_key
from tracetui.model.run import Event, ProblemMet, RunChanged, RunEnded, RunReset, SpanChanged
from tracetui.redact import Redactor
from tracetui.text import Clean, duration, grouped, pad, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs, kind, status_glyph
from tracetui.views.labels import clock
from tracetui.views.standing import score_cell, status_word

RUN_WIDTH: Final = 20
NAME: Final = 60
ARGUMENT: Final = 80


def event_line(event: Event, redactor: Redactor | None = None) -> bytes:
    """One event as a line of JSON, masked by `redactor` if given."""
    value = event_value(event)
    return encode(value if redactor is None else redactor.value(value)) + b"\n"


def event_value(event: Event) -> dict[str, Any]:
    """One event as a JSON value. Loads the body of a span."""
    if isinstance(event, RunChanged):
        run = event.summary
        return {
            "event": "run",
            "run": run.ref.address,
            "id": run.id,
            "summary": run_value(run, event.replay, inherited=event.task),
        }
    if isinstance(event, SpanChanged):
        address = event.run.summary.ref.address
        return {"event": "span", "run": address, "span": span_document(event.run, event.position)}
    if isinstance(event, RunReset):
        return {"event": "reset", "run": event.address}
    if isinstance(event, RunEnded):
        run = event.summary
        return {
            "event": "end",
            "run": run.ref.address,
            "status": run.status,
            "outcome": run.outcome,
            "scores": run.scores,
        }
    return {"event": "problem", **problem_value(event.problem)}


class Lines:
    """Formats events as cleaned lines: time, run, number, kind and name, argument, error, duration.

    A step is printed again when its line changes, for example when it ends.
    """

    def __init__(self, glyphs: Glyphs = UNICODE, now: Callable[[], float] | None = None) -> None:
        """`now` gives arrival times (UTC seconds), printed as ``~12:00:00`` where the trace has no time."""
        self._glyphs = glyphs
        self._now = now
        self._printed: dict[str, dict[str, bytes]] = {}
        """Digests of printed lines by span id, for each run (by address) that has not ended."""
        self._announced: set[str] = set()

    def lines(self, event: Event) -> Iterator[Clean]:
        """The lines for one event: usually one or none."""
        if isinstance(event, SpanChanged):
            yield from self._span(event.run, event.position)
        elif isinstance(event, RunChanged):
            yield from self._run(event.summary)
        elif isinstance(event, RunEnded):
            yield self._end(event.summary)
            self._printed.pop(event.summary.ref.address, None)
        elif isinstance(event, RunReset):
            self._printed.pop(event.address, None)
            self._announced.discard(event.address)
            yield clean(f"{self._glyphs.loop} {event.address}: rewritten or deleted; earlier output is void")
        elif isinstance(event, ProblemMet):
            yield self._problem(event.problem)

    def _run(self, run: RunSummary) -> Iterator[Clean]:
        """Announce a run once, with its address."""
        address = run.ref.address
        if address in self._announced:
            return
        self._announced.add(address)
        who = one_line(run.agent or run.name or run.id, NAME)
        yield Clean(f"{self._glyphs.folded} {who} {self._glyphs.dot} {clean(address)}")

    def _span(self, run: Run, position: int) -> Iterator[Clean]:
        span, summary = run.spans[position], run.summary
        step = self._step(run, position)
        digest = blake2b(f"{span.started_at} {step}".encode(), digest_size=8).digest()
        printed = self._printed.setdefault(summary.ref.address, {})
        if printed.get(span.id) != digest:
            printed[span.id] = digest
            yield Clean(f"{self._head(span.started_at, summary)}  {step}")

    def _step(self, run: Run, position: int) -> Clean:
        span, glyphs = run.spans[position], self._glyphs
        number = str(span.step) if span.is_step and span.step is not None else ""
        sign, _ = kind(span, glyphs)
        words = [f"{number:>4} {'  ' * min(run.depths[position], 8)}{sign} {one_line(span.name or '(no name)', NAME)}"]
        if span.preview:
            words.append(one_line(span.preview, ARGUMENT))
        if span.status is Status.ERROR:
            words.append(f"{glyphs.error} {one_line(span.error.words if span.error else span.status.value, ARGUMENT)}")
        if span.duration_ms is not None:
            words.append(duration(span.duration_ms))
        return Clean("  ".join(words))

    def _end(self, run: RunSummary) -> Clean:
        sign, _ = status_glyph(run.status, self._glyphs)
        words = [f"{self._glyphs.wrong if run.is_wrong else sign} {status_word(run)}"]
        if run.scores:
            words.append(score_cell(run, self._glyphs))
        if run.steps is not None:
            words.append(f"{grouped(run.steps)} step{'' if run.steps == 1 else 's'}")
        if run.first_error is not None and run.status is Status.ERROR:
            words.append(one_line(run.first_error.words, ARGUMENT))
        if run.duration_ms is not None:
            words.append(duration(run.duration_ms))
        return Clean("  ".join((self._head(None, run), " " * 4, *words)))

    def _head(self, at: float | None, run: RunSummary) -> Clean:
        time = clock(at, run.time_zone).removesuffix(" local, zone unknown")[11:19]
        if not time:
            time = f"~{clock(self._now(), 'UTC')[11:19]}" if self._now is not None else self._glyphs.missing
        key = run.ref.key
        name = clean(quote_key(key)) if key is not None else clean(splitext(basename(run.ref.path))[0])
        return Clean(f"{pad(Clean(time), 9)}  {pad(truncate_middle(name, RUN_WIDTH), RUN_WIDTH)}")

    def _problem(self, problem: Problem) -> Clean:
        place = f"{problem.path}: {problem.where}" if problem.where else problem.path
        return Clean(f"{self._glyphs.note} {clean(place)}: {one_line(problem.reason, 200)}")

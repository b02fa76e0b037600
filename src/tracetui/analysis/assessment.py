"""Assesses a run that was read: its loops, how close it came to its limits, and the likely point of no return.

Loops are repeated calls (``search ×6``) or cycles of up to four calls (``fetch → parse ×4``). `candidates` finds
repetitions by span headers alone; `confirm` compares the bodies of a candidate's calls.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import groupby, islice
from math import inf
from operator import eq
from typing import Final

import msgspec

from tracetui.analysis.statistics import Estimate, estimate_of
from tracetui.analysis.work import Work, work_of
from tracetui.diff.noise import Noise
from tracetui.diff.step import Kind, difference, documents
from tracetui.diff.values import INPUT, changes_of
from tracetui.masking import one_line
from tracetui.model import Body, Limit, Message, Operation, Run, Span, Status, Text
from tracetui.model.build import CONTAINERS
from tracetui.text import Clean, measured, quantity

MAX_PERIOD: Final = 4
"""Maximum calls in a cycle."""
_NO_CALLS: Final = frozenset({Operation.MESSAGE, Operation.HOOK, Operation.POLICY})
"""Operations that may be part of a cycle, but don't make one alone."""


class Sameness(IntEnum):
    """How far one call repeats another."""

    OTHER = 0
    CALL = 1
    """The same input; the result differs."""
    IDENTICAL = 2
    """The same input and the same result."""


class Candidate(msgspec.Struct, frozen=True):
    """Calls (by position) with headers that repeat every `period` calls."""

    calls: Sequence[int]
    period: int


class Loop(msgspec.Struct, frozen=True):
    """Calls (by position) that repeat every `period` calls, in complete rounds."""

    calls: Sequence[int]
    period: int
    identical: bool
    """The results repeat as well."""
    wasted_ms: float | None
    """Total duration of all rounds but the first; None if the trace has no durations."""
    wasted_tokens: int | None

    @property
    def first(self) -> int:
        """Position of the first call."""
        return self.calls[0]

    @property
    def repeat(self) -> int:
        """Position of the first repeated call."""
        return self.calls[self.period]

    @property
    def last(self) -> int:
        """Position of the last call."""
        return self.calls[-1]

    @property
    def times(self) -> int:
        """Number of rounds, including the first."""
        return len(self.calls) // self.period


def calls_of(run: Run) -> array[int]:
    """Positions of the timeline's spans: all but non-empty containers."""
    spans, sizes = run.spans, run.sizes
    return array("L", [i for i in range(len(spans)) if sizes[i] == 1 or spans[i].operation not in CONTAINERS])


def candidates(run: Run) -> list[Candidate]:
    """Find repetitions by names, hashes and previews. The candidates are disjoint and in order. Takes linear time."""
    calls = calls_of(run)
    numbers: dict[tuple[object, ...], int] = {}
    spans = run.spans
    keys = [numbers.setdefault(_key(spans[i]), len(numbers)) for i in calls]
    taken = bytearray(len(keys))
    selected = []
    for length, period, start in sorted(_stretches(keys), key=lambda stretch: (-stretch[0], stretch[1:])):
        end = start + length
        while start < end and taken[start]:
            start += 1
        while start < end and taken[end - 1]:
            end -= 1
        end -= (end - start) % period
        if end - start < 2 * period or all(spans[i].operation in _NO_CALLS for i in calls[start : start + period]):
            continue
        taken[start:end] = b"\1" * (end - start)
        selected.append((start, Candidate(calls[start:end], period)))
    return [candidate for _, candidate in sorted(selected, key=lambda pair: pair[0])]


def _key(span: Span) -> tuple[object, ...]:
    """The part of a header that repeats. A chat's input hash doesn't: the conversation grows."""
    identity = span.preview if span.operation is Operation.CHAT else span.input_hash or span.preview
    return span.name, identity, id(span.operation)  # hashing an enum member is slow


def _stretches(keys: list[int]) -> Iterator[tuple[int, int, int]]:
    """Repetitions in a list of keys: length in complete rounds, period, start."""
    for period in range(1, MAX_PERIOD + 1):
        start = 0
        for repeats, group in groupby(map(eq, keys, islice(keys, period, None))):
            count = sum(1 for _ in group)
            if repeats and count >= period:
                yield (count + period) // period * period, period, start
            start += count


def loops_in(run: Run, candidate: Candidate, same: Callable[[Span, Span], Sameness]) -> list[Loop]:
    """The loops of a candidate; `same` compares each call with the one a round earlier."""
    calls, period = candidate.calls, candidate.period
    samenesses = [same(run.spans[calls[i]], run.spans[calls[i + period]]) for i in range(len(calls) - period)]
    loops, start = [], 0
    for repeats, group in groupby(samenesses, key=bool):
        count = sum(1 for _ in group)
        end = start + (count + period) // period * period
        if repeats and count >= period:
            identical = min(samenesses[start : end - period]) is Sameness.IDENTICAL
            loops.append(Loop(calls[start:end], period, identical, *_wasted(run, calls[start + period : end])))
        start += count
    return loops


def _wasted(run: Run, calls: Sequence[int]) -> tuple[float | None, int | None]:
    """Total duration and tokens of calls and their descendants, nothing counted twice."""
    times: list[float] = []
    tokens: list[int] = []
    end = 0
    for call in calls:
        if call < end:
            continue  # a descendant of the previous call
        end = call + run.sizes[call]
        duration_ms = run.spans[call].duration_ms
        if duration_ms is not None and 0 <= duration_ms < inf:
            times.append(duration_ms)
        used = (
            span.usage.all_tokens for span in run.spans[call:end] if span.usage and span.operation not in CONTAINERS
        )
        tokens += (number for number in used if number is not None)
    return sum(times) if times else None, sum(tokens) if tokens else None


_CACHED_BODIES: Final = 16
"""Bodies to cache: two rounds, and the agents above them."""
_ASKED: Final = frozenset({Operation.CHAT, Operation.INVOKE_AGENT})
_INSTRUCTIONS: Final = frozenset({"system", "developer"})
_USER: Final = "user"


def loops(run: Run, body_of: Callable[[Span], Body]) -> list[Loop]:
    """All loops of a run. Loads each candidate's bodies once: too slow for the UI thread."""
    return [loop for candidate in candidates(run) for loop in confirm(run, candidate, body_of)]


def confirm(run: Run, candidate: Candidate, body_of: Callable[[Span], Body]) -> list[Loop]:
    """The loops of a candidate, by the bodies of its calls."""

    @lru_cache(_CACHED_BODIES)
    def cached(ident: str) -> Body:
        return body_of(run.spans[run.index[ident]])

    def same(a: Span, b: Span) -> Sameness:
        result = sameness(a, b, cached(a.id), cached(b.id))
        askers = (_asking(run, a), _asking(run, b)) if result else (None, None)
        if askers[0] is None or askers[1] is None or askers[0] is askers[1]:
            return result
        return result if _same_question(cached(askers[0].id), cached(askers[1].id)) else Sameness.OTHER

    return loops_in(run, candidate, same)


def _asking(run: Run, span: Span) -> Span | None:
    """The agent that made a call."""
    ancestor = run.parent(run.index[span.id])
    while ancestor is not None and run.spans[ancestor].operation is not Operation.INVOKE_AGENT:
        ancestor = run.parent(ancestor)
    return None if ancestor is None else run.spans[ancestor]


def _same_question(a: Body, b: Body) -> bool:
    """Whether two agent or model calls got the same question, as far as the bodies record it."""
    noise = Noise()
    before, now = _question(a.input_messages), _question(b.input_messages)
    if before and now:
        return not changes_of(documents(before), documents(now), noise, side=INPUT)
    if isinstance(a.input, str) and isinstance(b.input, str) and b.input.startswith(a.input):
        return True  # a growing prompt
    return a.input is None or b.input is None or not changes_of(a.input, b.input, noise, side=INPUT)


def _question(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The instructions and the last user message of a conversation."""
    texts = [message for message in messages if any(isinstance(part, Text) for part in message.parts)]
    instructions = next(([message] for message in texts if message.role in _INSTRUCTIONS), [])
    return (*instructions, *[message for message in texts if message.role == _USER][-1:])


def sameness(a: Span, b: Span, body_a: Body, body_b: Body) -> Sameness:
    """How far call `b` repeats call `a`, ignoring noise (ids, times).

    Model calls are compared by question and answer, since their context grows with every round. Calls without recorded
    input and output are never the same.
    """
    if not (_says(body_a) and _says(body_b)):
        return Sameness.OTHER
    if a.operation in _ASKED and a.operation is b.operation and not _same_question(body_a, body_b):
        return Sameness.OTHER
    answers = _answer(body_a), _answer(body_b)
    answered = a.operation is Operation.CHAT and all(map(_says, answers))
    if answered and difference(a, b, *answers, Noise()).kind is Kind.SAME:
        return Sameness.IDENTICAL
    kind = difference(a, b, body_a, body_b, Noise()).kind
    if kind is Kind.SAME:
        return Sameness.IDENTICAL
    return Sameness.CALL if kind in (Kind.OUTPUT, Kind.STATUS) else Sameness.OTHER


def _answer(body: Body) -> Body:
    return Body(output=body.output, output_messages=body.output_messages)


def _says(body: Body) -> bool:
    return any(value is not None for value in (body.input, body.output)) or bool(
        body.input_messages or body.output_messages
    )


_NO_WORK: Final = frozenset({Operation.POLICY, Operation.HOOK, Operation.MESSAGE})
"""Operations that aren't work of the agent."""
_MEASURES: Final = (
    ("repeats", re.compile(r"repeat|loop|duplicate|identical", re.IGNORECASE)),
    ("tokens", re.compile(r"token", re.IGNORECASE)),
    ("steps", re.compile(r"step|turn|iteration|superstep", re.IGNORECASE)),
    ("time", re.compile(r"time|duration|elapsed|second|minute", re.IGNORECASE)),
)
_MILLISECONDS: Final = re.compile(r"(?:^|_)(?:ms|millis\w*)$|Ms$|Millis$")
_MINUTES: Final = re.compile(r"(?:^|_)(?:min|mins|minutes)$|Minutes$")


class Trajectory(msgspec.Struct, frozen=True):
    """The course of one limited quantity: it is `values[i]` from the span at `positions[i]` on.

    The limit's name selects the `measure`: ``steps``, ``tokens``, ``repeats`` (count of the most frequent call) or
    ``time`` (in the limit's unit). None, without values, for a name that matches no measure.
    """

    limit: Limit
    measure: str | None
    positions: Sequence[int] = ()
    values: Sequence[float] = ()
    crossed: int | None = None
    """Position of the span that exceeded the limit, or where the trace records the violation."""

    @property
    def reached(self) -> float | None:
        """The final value: recorded, else counted."""
        return self.limit.current if self.limit.current is not None else self.values[-1] if self.values else None


class PointOfNoReturn(msgspec.Struct, frozen=True):
    """The likely point of no return of a failed run, with the reason."""

    span: str
    reason: Clean


def trajectories(run: Run) -> list[Trajectory]:
    """The trajectory of each limit, in the trace's order."""
    return [_trajectory(run, limit) for limit in run.body.limits]


def _trajectory(run: Run, limit: Limit) -> Trajectory:
    measure = next((name for name, pattern in _MEASURES if pattern.search(limit.name)), None)
    positions, values = array("L"), array("d")
    for position, value in _COUNTS[measure](run, limit) if measure else ():
        if not values or value > values[-1]:
            positions.append(position)
            values.append(value)
    return Trajectory(limit, measure, positions, values, _crossed(run, limit, positions, values))


def _crossed(run: Run, limit: Limit, positions: Sequence[int], values: Sequence[float]) -> int | None:
    """Where a limit was exceeded. A refused step isn't counted, so the policy's own span is the fallback."""
    if limit.limit is not None:
        for position, value in zip(positions, values, strict=True):
            if value > limit.limit:
                return position
    if not limit.violated:
        return None
    spans = run.spans
    violations = (i for i, span in enumerate(spans) if span.operation is Operation.POLICY and span.name == limit.name)
    return next(violations, None)


def _steps(run: Run, limit: Limit) -> Iterator[tuple[int, float]]:
    for count, step in enumerate(run.steps, 1):
        yield run.index[step.span], count


def _tokens(run: Run, limit: Limit) -> Iterator[tuple[int, float]]:
    used = 0
    for position, span in enumerate(run.spans):
        if span.usage is not None and span.operation not in CONTAINERS:
            used += span.usage.all_tokens or 0
            yield position, used


def _repeats(run: Run, limit: Limit) -> Iterator[tuple[int, float]]:
    """Identify calls by input hash if the trace has hashes."""
    hashed = any(span.input_hash for span in run.spans)
    seen: Counter[tuple[str, ...]] = Counter()
    most = 0
    for position in calls_of(run):
        span = run.spans[position]
        if span.operation in _NO_WORK or (hashed and not span.input_hash):
            continue
        key = (span.input_hash,) if span.input_hash else (span.name, span.operation.value, span.preview)
        seen[key] += 1
        if seen[key] > most:
            most = seen[key]
            yield position, most


def _time(run: Run, limit: Limit) -> Iterator[tuple[int, float]]:
    begin = run.summary.started_at
    unit = 1e-3 if _MILLISECONDS.search(limit.name) else 60.0 if _MINUTES.search(limit.name) else 1.0
    for position, span in enumerate(run.spans):
        if span.started_at is None or not 0 < span.started_at < inf or span.operation in CONTAINERS:
            continue
        begin = span.started_at if begin is None else begin
        duration_ms = span.duration_ms if span.duration_ms is not None and 0 <= span.duration_ms < inf else 0.0
        yield position, (span.started_at - begin + duration_ms / 1000) / unit


_COUNTS: Final[dict[str, Callable[[Run, Limit], Iterator[tuple[int, float]]]]] = {
    "steps": _steps,
    "tokens": _tokens,
    "repeats": _repeats,
    "time": _time,
}


def find_point_of_no_return(run: Run, loops: Sequence[Loop]) -> PointOfNoReturn | None:
    """Find the likely point of no return of a failed run. A heuristic, in this order:

    1. the first repetition of the loop that ran into a limit;
    2. the step that exceeded a limit;
    3. without a limit, the first repetition of a loop that lasted to the end of the run;
    4. the last step, if it failed.
    """
    if run.summary.status is not Status.ERROR:
        return None
    for course in trajectories(run):
        if course.limit.violated and course.crossed is not None:
            return _over_limit(run, loops, course, course.crossed)
    return _at_the_end(run, loops)


def _over_limit(run: Run, loops: Sequence[Loop], course: Trajectory, crossed: int) -> PointOfNoReturn:
    name = f"{one_line(course.limit.name, 60)} {measured(course.limit.current, course.limit.limit)}".rstrip()
    work = [i for i in _work_positions(run) if i <= crossed]
    loop = next((candidate for candidate in loops if work and candidate.repeat <= work[-1] <= candidate.last), None)
    if loop is not None:
        return _point(run, loop.repeat, f"{_repeats_text(loop)} until {name}")
    return _point(run, crossed, f"exceeded {name}")


def _at_the_end(run: Run, loops: Sequence[Loop]) -> PointOfNoReturn | None:
    work = _work_positions(run)
    if not work:
        return None
    last = run.spans[work[-1]]
    if loops and loops[-1].last >= work[-1]:
        return _point(run, loops[-1].repeat, f"{_repeats_text(loops[-1])} to the end")
    return _point(run, work[-1], "failed, and no step followed") if last.status is Status.ERROR else None


def _work_positions(run: Run) -> list[int]:
    return [i for i in calls_of(run) if run.spans[i].operation not in _NO_WORK]


def _repeats_text(loop: Loop) -> str:
    description = "same result" if loop.identical else "same call"
    return f"{description} {quantity(loop.times - 1, 'more time')}"


def _point(run: Run, position: int, why: str) -> PointOfNoReturn:
    return PointOfNoReturn(run.spans[position].id, Clean(why))


MAX_CALLS: Final = 5_000
"""Maximum number of calls to compare by body."""
MAX_BYTES: Final = 64 << 20
"""Maximum source bytes to read for that."""


class Assessment(msgspec.Struct, frozen=True, eq=False):
    """The assessment of one state of a run. Positions refer to `run`."""

    run: Run
    loops: tuple[Loop, ...]
    limits: tuple[Trajectory, ...]
    point_of_no_return: PointOfNoReturn | None
    left_out: int
    """Similar calls not compared because there were too many."""
    estimate: Estimate | None = None
    """Estimated cost of the run, if the trace has none."""
    work: Work | None = None
    """Tools and context window."""

    @property
    def notable_point(self) -> PointOfNoReturn | None:
        """The point of no return, if it says more than the failure itself: an earlier step, or a run that a limit
        stopped.
        """
        violated = any(limit.violated for limit in self.run.body.limits)
        return self.point_of_no_return if violated else self.early_point

    @property
    def early_point(self) -> PointOfNoReturn | None:
        """The point of no return, unless it is the failed step itself."""
        span = self.run.span(self.point_of_no_return.span) if self.point_of_no_return is not None else None
        return self.point_of_no_return if span is not None and span.status is not Status.ERROR else None


def assess(
    run: Run, body_of: Callable[[Span], Body], *, max_calls: int = MAX_CALLS, max_bytes: int = MAX_BYTES
) -> Assessment:
    """Assess a run, comparing at most so many calls and bytes. Too slow for the UI thread."""
    budget = _Budget(body_of, max_bytes)
    loops: list[Loop] = []
    left_out = 0
    for candidate in candidates(run):
        count = len(candidate.calls)
        room = min(max_calls, count)
        room -= room % candidate.period
        repeated = _within(run, Candidate(candidate.calls[:room], candidate.period), budget)
        compared = room if repeated is not None else 0
        max_calls -= compared
        left_out += count - compared
        loops += repeated or ()
    doom = find_point_of_no_return(run, loops)
    return Assessment(run, tuple(loops), tuple(trajectories(run)), doom, left_out, estimate_of(run), work_of(run))


def _within(run: Run, candidate: Candidate, budget: _Budget) -> list[Loop] | None:
    """The loops of a candidate; None if the budget is spent."""
    if len(candidate.calls) < 2 * candidate.period:
        return None
    try:
        return confirm(run, candidate, budget.load)
    except _SpentError:
        return None


class _SpentError(Exception):
    """The byte budget is spent."""


class _Budget:
    """Loads bodies up to a total size."""

    def __init__(self, body_of: Callable[[Span], Body], max_bytes: int) -> None:
        self._body_of, self._remaining = body_of, max_bytes

    def load(self, span: Span) -> Body:
        if self._remaining <= 0:
            raise _SpentError
        body = self._body_of(span)
        self._remaining -= len(body.raw)
        return body

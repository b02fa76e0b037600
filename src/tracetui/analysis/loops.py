"""Finds loops: repeated calls (``search ×6``) or cycles of up to four calls (``fetch → parse ×4``).

`candidates` finds repetitions by span headers alone; `confirm` compares the bodies of a candidate's calls.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import groupby, islice
from math import inf
from operator import eq
from typing import Final

import msgspec

from tracetui.diff.noise import Noise
from tracetui.diff.step import Kind, difference, documents
from tracetui.diff.values import INPUT, changes_of
from tracetui.model import Body, Message, Operation, Run, Span, Text
from tracetui.model.build import CONTAINERS

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
    found = []
    for length, period, start in sorted(_stretches(keys), key=lambda one: (-one[0], one[1:])):
        end = start + length
        while start < end and taken[start]:
            start += 1
        while start < end and taken[end - 1]:
            end -= 1
        end -= (end - start) % period
        if end - start < 2 * period or all(spans[i].operation in _NO_CALLS for i in calls[start : start + period]):
            continue
        taken[start:end] = b"\1" * (end - start)
        found.append((start, Candidate(calls[start:end], period)))
    return [candidate for _, candidate in sorted(found, key=lambda one: one[0])]


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
    how = [same(run.spans[calls[i]], run.spans[calls[i + period]]) for i in range(len(calls) - period)]
    loops, start = [], 0
    for repeats, group in groupby(how, key=bool):
        count = sum(1 for _ in group)
        end = start + (count + period) // period * period
        if repeats and count >= period:
            identical = min(how[start : end - period]) is Sameness.IDENTICAL
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
        took = run.spans[call].duration_ms
        if took is not None and 0 <= took < inf:
            times.append(took)
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
        how = sameness(a, b, cached(a.id), cached(b.id))
        above = (_asking(run, a), _asking(run, b)) if how else (None, None)
        if above[0] is None or above[1] is None or above[0] is above[1]:
            return how
        return how if _same_question(cached(above[0].id), cached(above[1].id)) else Sameness.OTHER

    return loops_in(run, candidate, same)


def _asking(run: Run, span: Span) -> Span | None:
    """The agent that made a call."""
    above = run.parent(run.index[span.id])
    while above is not None and run.spans[above].operation is not Operation.INVOKE_AGENT:
        above = run.parent(above)
    return None if above is None else run.spans[above]


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
    asked = [message for message in messages if any(isinstance(part, Text) for part in message.parts)]
    instructions = next(([one] for one in asked if one.role in _INSTRUCTIONS), [])
    return (*instructions, *[one for one in asked if one.role == _USER][-1:])


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

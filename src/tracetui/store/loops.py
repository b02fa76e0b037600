"""Calls that were made again and again: ``search ×6``, or a cycle of up to four, ``fetch → parse ×4``.

What may be a loop is seen in the headers alone (`candidates`); whether it is one is for whoever can compare bodies
(`confirmed`, and `tracetui.views.loops` for values).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby, islice
from math import inf
from operator import eq
from typing import Final

import msgspec

from tracetui.model import Operation, Run, Span
from tracetui.model.build import CONTAINERS

LONGEST: Final = 4
"""Calls in a cycle."""
_NO_CALLS: Final = frozenset({Operation.MESSAGE, Operation.HOOK, Operation.POLICY})
"""What happens around calls: it may be part of a cycle, but is none by itself."""


class Sameness(IntEnum):
    """How far a call repeats another."""

    OTHER = 0
    CALL = 1
    """The same was asked; the result differs."""
    IDENTICAL = 2
    """And the result was the same."""


class Candidate(msgspec.Struct, frozen=True):
    """A stretch of calls (`calls`: their positions) whose headers repeat every `period` calls."""

    calls: Sequence[int]
    period: int


class Loop(msgspec.Struct, frozen=True):
    """Calls that repeat every `period` calls: those at the positions `calls`, in order, whole rounds of them."""

    calls: Sequence[int]
    period: int
    identical: bool
    """The results repeat as well."""
    wasted_ms: float | None
    """What all rounds but the first took; None where the trace does not say of any."""
    wasted_tokens: int | None

    @property
    def first(self) -> int:
        """Position of the first call."""
        return self.calls[0]

    @property
    def again(self) -> int:
        """Position of the call that begins to repeat."""
        return self.calls[self.period]

    @property
    def last(self) -> int:
        """Position of the last call."""
        return self.calls[-1]

    @property
    def times(self) -> int:
        """Rounds, the first among them."""
        return len(self.calls) // self.period


def find(run: Run, same: Callable[[Span, Span], Sameness]) -> list[Loop]:
    """All loops of a run, in order."""
    return [loop for candidate in candidates(run) for loop in confirmed(run, candidate, same)]


def calls_of(run: Run) -> array[int]:
    """Positions of what the timeline shows: all but what only contains other spans."""
    spans, sizes = run.spans, run.sizes
    return array("L", [i for i in range(len(spans)) if sizes[i] == 1 or spans[i].operation not in CONTAINERS])


def candidates(run: Run) -> list[Candidate]:
    """What may be loops, by names, hashes and previews: disjoint, in order. Takes time in proportion to the run."""
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
    """What of a header is the same in repeated calls; the hash of a conversation changes while it grows."""
    told = span.preview if span.operation is Operation.CHAT else span.input_hash or span.preview
    return span.name, told, id(span.operation)  # to hash a member of an enumeration takes long


def _stretches(keys: list[int]) -> Iterator[tuple[int, int, int]]:
    """Wherever keys repeat: how many keys in whole rounds, the period and where it begins."""
    for period in range(1, LONGEST + 1):
        start = 0
        for repeats, group in groupby(map(eq, keys, islice(keys, period, None))):
            count = sum(1 for _ in group)
            if repeats and count >= period:
                yield (count + period) // period * period, period, start
            start += count


def confirmed(run: Run, candidate: Candidate, same: Callable[[Span, Span], Sameness]) -> list[Loop]:
    """The loops in a candidate, each call being compared with the one a round before it."""
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
    """Time and tokens of some calls and what is below them, nothing twice."""
    times: list[float] = []
    tokens: list[int] = []
    end = 0
    for call in calls:
        if call < end:
            continue  # it is below the one before
        end = call + run.sizes[call]
        took = run.spans[call].duration_ms
        if took is not None and 0 <= took < inf:
            times.append(took)
        used = (
            span.usage.all_tokens for span in run.spans[call:end] if span.usage and span.operation not in CONTAINERS
        )
        tokens += (number for number in used if number is not None)
    return sum(times) if times else None, sum(tokens) if tokens else None

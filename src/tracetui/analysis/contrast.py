"""Contrasts failed with passed runs: features that are more frequent in one set than chance explains.

A feature is a tool, model, node, argument, tag or call sequence of a run. Pure: the callers read the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from math import comb
from typing import Any, Final

import msgspec

from tracetui.model import Body, Operation, Outcome, Run, RunRef, RunSummary, Span
from tracetui.model.build import own_spans
from tracetui.model.run import GOING_ON

MAX_CALLS: Final = 500
"""Tool calls per run to take arguments from, first calls first."""
MAX_FEATURES: Final = 5_000
"""Maximum features per run."""
MAX_ARGUMENT: Final = 80
"""Maximum characters of an argument; longer ones are prose, which runs rarely share."""
MAX_P: Final = 0.01
"""A finding has a p below this by Fisher's exact test (one-sided), after Holm's correction for all features."""
NO_FINDINGS: Final = "Nothing sets these runs apart from passed runs."
MAX_FINDINGS: Final = 20


class Kind(IntEnum):
    """The kind of a feature. If several kinds select the same runs, the first explains best."""

    DIVERGENCE = 0
    """The first difference of a replay."""
    TOOL = 1
    MODEL = 2
    NODE = 3
    AGENT = 4
    TAG = 5
    ARGUMENT = 6
    SEQUENCE = 7
    STEPS = 8


class Feature(msgspec.Struct, frozen=True, gc=False, order=True):
    """A feature of a run. `words` is not cleaned."""

    kind: Kind
    words: str
    """``tool search``, ``search(query=q7)``, ``search → fetch`` …"""


Features = Mapping[Feature, str | None]
"""The features of a run, each with the id of the first span that has it; None for a feature of the whole run."""


class Finding(msgspec.Struct, frozen=True):
    """A feature that separates A from B: its count on both sides, and an example."""

    features: tuple[Feature, ...]
    """Features with the same runs; the first explains best."""
    in_a: int
    of_a: int
    in_b: int
    of_b: int
    p: float
    """The probability of such a difference by chance, before the correction."""
    example: tuple[RunRef, str | None]
    """The first run of A that has the feature, and the span in it; None for a feature of the whole run."""

    @property
    def words(self) -> str:
        """The finding on one line, not cleaned: ``search(query=q7), also fetch(id=7) +2``."""
        first, *others = [feature.words for feature in self.features]
        also = f", also {others[0]}" if others else ""
        return first + also + (f" +{len(others) - 1}" if len(others) > 1 else "")

    @property
    def weight(self) -> float:
        """The difference of the corrected shares. One run of two weighs less than ten of twenty."""
        return (self.in_a + 0.5) / (self.of_a + 1) - (self.in_b + 0.5) / (self.of_b + 1)


class Contrast(msgspec.Struct, frozen=True):
    """Features that are more frequent in A than in B, among the runs read."""

    findings: tuple[Finding, ...] = ()
    note: str = ""
    """A note that only some of the runs were read; empty if all were."""


def comparable(runs: Iterable[RunSummary], a: Collection[RunRef]) -> list[RunRef]:
    """Select the runs to compare A with: passed runs of the same agents, else all passed runs.

    A run passed if it has not failed and is over; where any run has an outcome, only runs scored as passed count.
    """
    listed = list(runs)
    scored = any(run.outcome is not None for run in listed)
    names = {run.agent or run.name for run in listed if run.ref in a}
    passed = [run for run in listed if run.ref not in a and _passed(run, scored=scored)]
    return [run.ref for run in passed if (run.agent or run.name) in names] or [run.ref for run in passed]


def _passed(run: RunSummary, *, scored: bool) -> bool:
    if run.failed or run.status in GOING_ON:
        return False
    return run.outcome is Outcome.PASSED if scored else True


def features(run: Run, body_of: Callable[[Span], Body], listed: Container[RunRef] = ()) -> Features:
    """The features of a run, from spans that it owns among the `listed` runs. Loads the bodies of its tool calls."""
    found: dict[Feature, str | None] = {}
    for kind, words, span in _features(run, own_spans(run, listed), body_of):
        found.setdefault(Feature(kind, words), span)
        if len(found) >= MAX_FEATURES:
            break
    return found


def _features(
    run: Run, spans: Sequence[Span], body_of: Callable[[Span], Body]
) -> Iterator[tuple[Kind, str, str | None]]:
    whole = run.summary
    if whole.agent is not None:
        yield Kind.AGENT, f"agent {whole.agent}", None
    if whole.model is not None:
        yield Kind.MODEL, f"model {whole.model}", None
    for tag in whole.tags or ():
        yield Kind.TAG, f"tag {tag}", None
    steps = len(run.steps)
    yield Kind.STEPS, _steps(steps), None
    calls = 0
    for span in spans:
        if span.operation is Operation.EXECUTE_TOOL:
            yield Kind.TOOL, f"tool {span.name}", span.id
            calls += 1
            if calls <= MAX_CALLS:
                for name, value in _arguments(body_of(span).input):
                    yield Kind.ARGUMENT, f"{span.name}({name}={value})", span.id
        elif span.is_node:
            yield Kind.NODE, f"node {span.name}", span.id
        elif span.operation is Operation.INVOKE_AGENT:
            yield Kind.AGENT, f"agent {span.name}", span.id
        if span.model is not None:
            yield Kind.MODEL, f"model {span.model}", span.id
    yield from _sequences(spans)


def _arguments(given: Any) -> Iterator[tuple[str, str]]:
    """The short scalar arguments of a call."""
    if not isinstance(given, dict):
        return
    for name, value in given.items():
        if isinstance(value, bool) or value is None:
            yield str(name), {True: "true", False: "false", None: "null"}[value]
        elif isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 1 << 64):
            text = str(value)
            if len(text) <= MAX_ARGUMENT:
                yield str(name), text


def _sequences(spans: Sequence[Span]) -> Iterator[tuple[Kind, str, str | None]]:
    """Sequences of two and three calls: of tools, else of nodes."""
    tools = [span for span in spans if span.operation is Operation.EXECUTE_TOOL]
    row = tools or [span for span in spans if span.is_node]
    for length in (2, 3):
        for i in range(len(row) - length + 1):
            yield Kind.SEQUENCE, " → ".join(span.name for span in row[i : i + length]), row[i].id


def _steps(count: int) -> str:
    """The step count, in powers of two: ``5–8 steps``."""
    if count <= 2:
        return f"{count} step{'' if count == 1 else 's'}"
    top = 1 << (count - 1).bit_length()
    return f"{top // 2 + 1}–{top} steps"


def contrast(a: Sequence[tuple[RunRef, Features]], b: Sequence[tuple[RunRef, Features]]) -> list[Finding]:
    """Features that are more frequent in A than in B, strongest first, at most `MAX_FINDINGS`.

    Only differences that pass `MAX_P` count. Features of the same runs are one hypothesis; those of a single run or of
    all runs are none. The order of the runs only decides the example.
    """
    in_a, in_b = _holders(a), _holders(b)
    alike: dict[tuple[int, int], list[Feature]] = {}
    for feature in {**in_a, **in_b}:
        alike.setdefault((in_a.get(feature, 0), in_b.get(feature, 0)), []).append(feature)
    tested = []
    for (of_a, of_b), same in alike.items():
        counts = of_a.bit_count(), len(a), of_b.bit_count(), len(b)
        if 1 < counts[0] + counts[2] < len(a) + len(b):
            tested.append((fisher(*counts), counts, of_a, same))
    tested.sort(key=lambda one: one[0])
    found = []
    for i, (p, counts, of_a, same) in enumerate(tested):
        if p * (len(tested) - i) >= MAX_P:
            break
        same.sort()
        ref, its = a[(of_a & -of_a).bit_length() - 1]
        found.append(Finding(tuple(same), *counts, p, (ref, its[same[0]])))
    return sorted(found, key=lambda one: (-one.weight, one.features))[:MAX_FINDINGS]


@lru_cache(maxsize=4096)
def fisher(in_a: int, of_a: int, in_b: int, of_b: int) -> float:
    """The p of Fisher's exact test, one-sided: that at least `in_a` of the runs with a feature are in A by chance."""
    having, total = in_a + in_b, of_a + of_b
    ways = sum(comb(having, k) * comb(total - having, of_a - k) for k in range(in_a, min(having, of_a) + 1))
    return ways / comb(total, of_a)


def _holders(side: Sequence[tuple[RunRef, Features]]) -> dict[Feature, int]:
    """The runs of each feature, as a bit set."""
    holders: dict[Feature, int] = {}
    for i, (_, its) in enumerate(side):
        for feature in its:
            holders[feature] = holders.get(feature, 0) | 1 << i
    return holders

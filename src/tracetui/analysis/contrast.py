"""Contrasts failed with passed runs: features that are more frequent in one set than chance explains.

A feature is a tool, model, node, argument, tag or call sequence of a run. Pure: the callers read the runs. What differs
from run to run anyway (ids, times, numbers, temporary files) is no feature; as a part of one it is a placeholder.

Chance is judged by permutation tests of outcomes or metrics. Every test is two-sided. Tests are exact where the
permutations can be counted; otherwise they use `DRAWS` random permutations with a fixed seed, so that the same data
give the same p.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache, reduce
from math import comb, erfc, exp, gcd, lgamma, log, prod, sqrt
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.analysis.error_text import PLACEHOLDER, normalize
from tracetui.model import Body, Operation, Outcome, Run, RunRef, RunSummary, Span
from tracetui.model.build import own_spans
from tracetui.model.run import GOING_ON
from tracetui.text import quantity

ALPHA: Final = 0.05
"""The level of significance: p below it is decisive."""
DRAWS: Final = 10_000
"""Random permutations of a test that is not exact. The smallest p is then 1 / (DRAWS + 1)."""
MOST_TRIALS: Final = 1_000
"""Trials up to which `trials_to_decide` searches."""
_SEED: Final = 15
_CELLS: Final = 20_000
"""Entries of the table of an exact test of outcomes up to which it is exact."""


class Side(NamedTuple):
    """Scored trials of one branch or group, and how many of them passed."""

    scored: int
    passed: int


class Interval(NamedTuple):
    """A confidence interval; an end is infinite where the trials are too few to bound it."""

    low: float
    high: float


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for multiple tests (Holm, step-down). None stands for no test and is not counted."""
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p, i) in enumerate(order):
        least = max(least, min(1.0, p * (len(order) - rank)))
        adjusted[i] = least
    return adjusted


# ---- outcome against branch


def outcome_test(sides: Iterable[Side]) -> float | None:
    """Return the two-sided p of a permutation test of outcome against branch, over all branches at once.

    The labels *passed* and *failed* are permuted over the trials: passed trials per branch then follow the multivariate
    hypergeometric distribution, and p is the chance of a table that is at most as likely as the observed one (Fisher,
    Freeman and Halton). None if fewer than two branches have a scored trial.
    """
    tested = _tested(sides)
    if len(tested) < 2:
        return None
    exact = _exact_p(tested)
    return _drawn_p(tested) if exact is None else exact


def _tested(sides: Iterable[Side]) -> tuple[Side, ...]:
    """The branches with scored trials, in an order that makes equal tests one cached test."""
    return tuple(sorted(side for side in sides if side.scored))


@lru_cache(4096)
def _exact_p(sides: tuple[Side, ...]) -> float | None:
    """None where the tables are too many to count."""
    sizes, passed = [side.scored for side in sides], sum(side.passed for side in sides)
    weights = _weights(sizes, passed)
    if weights is None:
        return None
    observed = _weight(sides)
    return float(Fraction(sum(w * n for w, n in weights.items() if w <= observed), comb(sum(sizes), passed)))


def _weight(sides: Iterable[Side]) -> int:
    """In how many ways the trials of each branch can be the passed ones: the likelihood of a table, not normalized."""
    return prod(comb(side.scored, side.passed) for side in sides)


def _weights(sizes: Sequence[int], passed: int) -> dict[int, int] | None:
    """Count the tables with these margins by weight, the product of ``C(size, passed)``; None if they are too many."""
    tables: dict[int, dict[int, int]] = {0: {1: 1}}
    rest = sum(sizes)
    for size in sizes:
        rest -= size
        grown: dict[int, dict[int, int]] = {}
        cells = 0
        for used, weights in tables.items():
            for c in range(max(0, passed - used - rest), min(size, passed - used) + 1):
                factor, into = comb(size, c), grown.setdefault(used + c, {})
                cells -= len(into)
                for weight, count in weights.items():
                    into[weight * factor] = into.get(weight * factor, 0) + count
                cells += len(into)
                if cells > _CELLS:
                    return None
        tables = grown
    return tables[passed]


@lru_cache(256)
def _drawn_p(sides: tuple[Side, ...]) -> float:
    branch_of = [branch for branch, side in enumerate(sides) for _ in range(side.scored)]
    weights = [[comb(side.scored, c) for c in range(side.scored + 1)] for side in sides]
    passed, observed = sum(side.passed for side in sides), _weight(sides)
    chance, extreme = random.Random(_SEED), 0  # noqa: S311 - statistics
    for _ in range(DRAWS):
        counts = [0] * len(sides)
        for branch in chance.sample(branch_of, passed):
            counts[branch] += 1
        extreme += prod(map(list.__getitem__, weights, counts)) <= observed
    return (extreme + 1) / (DRAWS + 1)


def trials_to_decide(sides: Iterable[Side], trials: int, tests: int = 1, alpha: float = ALPHA) -> int | None:
    """Return how many trials the same proportions need for a p below `alpha`.

    `trials` is the number of trials now, of which all or some reach the branches; `tests` is the number of tests of the
    family, for the strictest step of Holm's correction. None where all branches have equal pass rates, where there is
    nothing to test, and beyond `MOST_TRIALS`.
    """
    tested = [side for side in sides if side.scored]
    if len({Fraction(side.passed, side.scored) for side in tested}) < 2:
        return None
    unit = reduce(gcd, (number for side in tested for number in side))
    smallest = [Side(side.scored // unit, side.passed // unit) for side in tested]

    def is_enough(times: int) -> bool:
        return _planned_p(Side(side.scored * times, side.passed * times) for side in smallest) * tests < alpha

    low, high, most = 1, 1, max(1, MOST_TRIALS * unit // trials)
    while high < most and not is_enough(high):
        low, high = high + 1, min(2 * high, most)
    times_needed = low + bisect_left(range(low, high + 1), True, key=is_enough)
    return -(-trials * times_needed // unit) if times_needed <= high else None


def _planned_p(sides: Iterable[Side]) -> float:
    """The exact p, or its chi-square approximation where the tables are too many to count: drawing takes too long."""
    tested = _tested(sides)
    exact = _exact_p(tested)
    return _chi_square_p(tested) if exact is None else exact


def _chi_square_p(sides: Sequence[Side]) -> float:
    """The p of Pearson's chi-square test. Neither all trials passed nor all failed."""
    scored, passed = sum(side.scored for side in sides), sum(side.passed for side in sides)
    rate, freedom = passed / scored, len(sides) - 1
    half = sum((s.passed - s.scored * rate) ** 2 / s.scored for s in sides) / (rate * (1 - rate)) / 2
    start = freedom % 2 / 2
    tail = erfc(sqrt(half)) if freedom % 2 else 0.0
    return tail + sum(exp((i + start) * log(half) - half - lgamma(i + start + 1)) for i in range(freedom // 2))


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
    """A feature of a run. `label` is not cleaned."""

    kind: Kind
    label: str
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
    def label(self) -> str:
        """The finding on one line, not cleaned: ``search(query=q7), also fetch(id=7) +2``."""
        first, *others = [feature.label for feature in self.features]
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
    feature_spans: dict[Feature, str | None] = {}
    for kind, text, span in _features(run, own_spans(run, listed), body_of):
        feature_spans.setdefault(Feature(kind, text), span)
        if len(feature_spans) >= MAX_FEATURES:
            break
    return feature_spans


def _features(
    run: Run, spans: Sequence[Span], body_of: Callable[[Span], Body]
) -> Iterator[tuple[Kind, str, str | None]]:
    summary = run.summary
    if summary.agent is not None:
        yield Kind.AGENT, f"agent {summary.agent}", None
    if summary.model is not None:
        yield Kind.MODEL, f"model {summary.model}", None
    for tag in summary.tags or ():
        if (stable := without_noise(tag)) is not None:
            yield Kind.TAG, f"tag {stable}", None
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
            if (stable := without_noise(span.name)) is not None:
                yield Kind.NODE, f"node {stable}", span.id
        elif span.operation is Operation.INVOKE_AGENT:
            yield Kind.AGENT, f"agent {span.name}", span.id
        if span.model is not None:
            yield Kind.MODEL, f"model {span.model}", span.id
    yield from _sequences(spans)


def _arguments(arguments: Any) -> Iterator[tuple[str, str]]:
    """The short arguments of a call without their noise; `contrast` leaves out numbers that vary."""
    if not isinstance(arguments, dict):
        return
    for name, value in arguments.items():
        if isinstance(value, bool) or value is None:
            yield str(name), {True: "true", False: "false", None: "null"}[value]
        elif isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 1 << 64):
            text = str(value)
            if len(text) > MAX_ARGUMENT:
                continue
            stable = text if not text or _NUMBER.fullmatch(text) else without_noise(text, numbers=True)
            if stable is not None:
                yield str(name), stable


_TEMPORARY: Final = re.compile(
    r"(?<![\w./-])(?:file://)?"
    r"(?:(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)|\$\{?TMPDIR\}?|[A-Za-z]:[\\/](?:[^\s\"']*[\\/])?[Tt]e?mp)"
    r"(?:[\\/][^\s\"'`;|&<>()]*|(?![\w./-]))"
)
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_RANDOM: Final = frozenset({"id", "hex", "time"})
_PARTS: Final = re.compile(r"([/\\?&=#]+)")
_ALONE: Final = " \t\"'`([{)]},;"
_PUNCTUATION: Final = re.compile(r"[\W_]*")


@lru_cache(maxsize=1 << 14)
def without_noise(text: str, *, numbers: bool = False) -> str | None:
    """Return the text with placeholders for ids, times and temporary files, and for `numbers` that stand alone.

    None if nothing else is in it. Versions, ports and other paths stay: they may be what fails.
    """
    stable = _stable(_TEMPORARY.sub("<path>", text), numbers=numbers)
    return stable if PLACEHOLDER.search(stable) is None or _PUNCTUATION.sub("", PLACEHOLDER.sub("", stable)) else None


def _stable(text: str, *, numbers: bool) -> str:
    normalized = normalize(text)
    source, pieces, last = normalized.source, list[str](), 0
    for kind, start, end in normalized.template.noise:
        value = source[start:end]
        before, after = source[start - 1 : start], source[end : end + 1]
        pieces.append(source[last:start])
        last = end
        if kind in _RANDOM or (kind == "n" and numbers and before in _ALONE and after in _ALONE):
            pieces.append(f"<{kind}>")
        elif kind == "quoted" and len(value) > 2:
            pieces += (value[0], _stable(value[1:-1], numbers=numbers), value[-1])
        elif kind in ("path", "url"):
            pieces += [part if _PARTS.match(part) else _stable(part, numbers=False) for part in _PARTS.split(value)]
        else:
            pieces.append(value)
    return "".join([*pieces, source[last:]])


def _sequences(spans: Sequence[Span]) -> Iterator[tuple[Kind, str, str | None]]:
    """Sequences of two and three calls: of tools, else of nodes."""
    tools = [span for span in spans if span.operation is Operation.EXECUTE_TOOL]
    row = tools or [span for span in spans if span.is_node]
    for length in (2, 3):
        for i in range(len(row) - length + 1):
            names = (without_noise(span.name) or span.name for span in row[i : i + length])
            yield Kind.SEQUENCE, " → ".join(names), row[i].id


def _steps(count: int) -> str:
    """The step count, in powers of two: ``5–8 steps``."""
    if count <= 2:
        return quantity(count, "step")
    top = 1 << (count - 1).bit_length()
    return f"{top // 2 + 1}–{top} steps"


def contrast(a: Sequence[tuple[RunRef, Features]], b: Sequence[tuple[RunRef, Features]]) -> list[Finding]:
    """Features that are more frequent in A than in B, strongest first, at most `MAX_FINDINGS`.

    Only differences that pass `MAX_P` count. Features of the same runs are one hypothesis; those of a single run or of
    all runs are none. The order of the runs only decides the example.
    """
    in_a, in_b = _holders(a), _holders(b)
    alike: dict[tuple[int, int], list[Feature]] = {}
    for feature in _without_varying_numbers({**in_a, **in_b}):
        alike.setdefault((in_a.get(feature, 0), in_b.get(feature, 0)), []).append(feature)
    tested = []
    for (of_a, of_b), same in alike.items():
        counts = of_a.bit_count(), len(a), of_b.bit_count(), len(b)
        if 1 < counts[0] + counts[2] < len(a) + len(b):
            tested.append((fisher(*counts), counts, of_a, same))
    tested.sort(key=lambda test: test[0])
    findings = []
    for i, (p, counts, of_a, same) in enumerate(tested):
        if p * (len(tested) - i) >= MAX_P:
            break
        same.sort()
        ref, run_features = a[(of_a & -of_a).bit_length() - 1]
        findings.append(Finding(tuple(same), *counts, p, (ref, run_features[same[0]])))
    return sorted(findings, key=lambda finding: (-finding.weight, finding.features))[:MAX_FINDINGS]


def _without_varying_numbers(all_features: Iterable[Feature]) -> list[Feature]:
    """The features but for arguments of which the runs have several numbers: line numbers, limits, offsets."""
    numbers: dict[str, list[Feature]] = {}
    others = []
    for feature in all_features:
        name, _, value = feature.label.partition("=")
        if feature.kind is Kind.ARGUMENT and _NUMBER.fullmatch(value[:-1]):
            numbers.setdefault(name, []).append(feature)
        else:
            others.append(feature)
    return [*others, *(same[0] for same in numbers.values() if len(same) == 1)]


@lru_cache(maxsize=4096)
def fisher(in_a: int, of_a: int, in_b: int, of_b: int) -> float:
    """The p of Fisher's exact test, one-sided: that at least `in_a` of the runs with a feature are in A by chance."""
    having, total = in_a + in_b, of_a + of_b
    ways = sum(comb(having, k) * comb(total - having, of_a - k) for k in range(in_a, min(having, of_a) + 1))
    return ways / comb(total, of_a)


def _holders(side: Sequence[tuple[RunRef, Features]]) -> dict[Feature, int]:
    """The runs of each feature, as a bit set."""
    holders: dict[Feature, int] = {}
    for i, (_, run_features) in enumerate(side):
        for feature in run_features:
            holders[feature] = holders.get(feature, 0) | 1 << i
    return holders

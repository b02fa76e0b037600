"""The result of a comparison: rows, the first divergence, counts, ignored noise, and the two runs side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tracetui.diff.step import Kind
from tracetui.model import Criterion, Metric, Run, RunSummary, Span

# ---- run-level facts

_HASH: Final = "hash"


class Fact(msgspec.Struct, frozen=True):
    """A property of both runs; None if a trace lacks it."""

    name: str
    a: Any
    b: Any

    @property
    def same(self) -> bool:
        """Whether both values are equal."""
        return bool(self.a == self.b)


class Deltas(msgspec.Struct, frozen=True):
    """Usage of B minus that of A; None unless both traces have it."""

    tokens: int | None = None
    duration_ms: float | None = None
    cost_usd: float | None = None


class JudgmentPair(msgspec.Struct, frozen=True):
    """A criterion or metric in A and in B; None where it is missing."""

    name: str
    a: Criterion | Metric | None
    b: Criterion | Metric | None

    @property
    def same(self) -> bool:
        """Whether both have the same result."""
        return _verdict(self.a) == _verdict(self.b)


def _verdict(judged: Criterion | Metric | None) -> tuple[Any, ...]:
    if isinstance(judged, Criterion):
        return (judged.met,)
    return () if judged is None else (judged.score, judged.passed)


def deltas(a: RunSummary, b: RunSummary) -> Deltas:
    """Usage of B minus that of A."""
    used = [run.usage for run in (a, b)]
    tokens = [None if usage is None else usage.all_tokens for usage in used]
    costs = [None if usage is None else usage.cost_usd for usage in used]
    return Deltas(_minus(*tokens), _minus(a.duration_ms, b.duration_ms), _minus(*costs))


def _minus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else b - a


def facts(a: Run, b: Run) -> list[Fact]:
    """Properties of both runs: outcome first, then their build."""
    left, right = a.summary, b.summary
    found = [
        Fact("status", left.status_word or left.status.value, right.status_word or right.status.value),
        Fact("outcome", left.outcome, right.outcome),
        Fact("agent", left.agent or left.name, right.agent or right.name),
        Fact("model", left.model, right.model),
        Fact("result", left.result or None, right.result or None),
        Fact("steps", left.steps, right.steps),
        Fact("error", _error(left), _error(right)),
    ]
    hashes = dict(_hashes(a.body.attributes)), dict(_hashes(b.body.attributes))
    found += [Fact(name, hashes[0][name], hashes[1][name]) for name in hashes[0] if name in hashes[1]]
    return [fact for fact in found if (fact.a, fact.b) != (None, None)]


def _error(run: RunSummary) -> str | None:
    return None if run.first_error is None else run.first_error.words


def _hashes(attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fingerprints (of its graph, its code) in the top two levels of a run's attributes."""
    for name, value in attributes.items():
        inner = value if isinstance(value, dict) else {name: value}
        yield from ((key, one) for key, one in inner.items() if str(key).endswith(_HASH) and isinstance(one, str))


def judged(a: Run, b: Run) -> list[JudgmentPair]:
    """Criteria and metrics of both runs, paired by name, those of A first."""
    found = _by_name(a.body.criteria, b.body.criteria, "text")
    return found + _by_name(a.body.metrics, b.body.metrics, "name")


def _by_name(a: tuple[Any, ...], b: tuple[Any, ...], field: str) -> list[JudgmentPair]:
    left, right = ({getattr(one, field): one for one in side} for side in (a, b))
    names = dict.fromkeys([*left, *right])
    return [JudgmentPair(name, left.get(name), right.get(name)) for name in names]


# ---- rows


class Row(msgspec.Struct, frozen=True, gc=False):
    """A step of A paired with one of B, or unpaired. `a` and `b` are positions in the spans of the runs."""

    kind: Kind
    a: int | None
    b: int | None
    downstream: bool = False
    """A consequence of the first divergence: its input contains a diverged value, or the other run had ended."""
    changes: int = 0
    """Number of changes; `Comparison.changes` lists them."""
    path: str = ""
    """Path of the first change."""
    flags: tuple[str, ...] = ()
    """Stored values that failed their check: ``B: input_hash``."""
    noise: str = ""
    """The kind of noise if all changes are noise; else empty."""


class Divergence(msgspec.Struct, frozen=True):
    """A differing row with its first changed value; for an unpaired step, its name."""

    row: int
    kind: Kind
    path: str
    a: Any = None
    b: Any = None
    noise: str = ""
    """The kind of noise, if no row of the comparison differs significantly."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison. Rows from `compared` on are based on headers only."""

    a: Run
    b: Run
    relation: str | None
    """Relation of B to A: replay, fork, retry, student, repeat; None if unknown."""
    by: str
    """The evidence used to align steps."""
    rows: tuple[Row, ...]
    first: Divergence | None = None
    decision: Divergence | None = None
    """The first routing decision that differs."""
    ignored: dict[str, int] = {}
    """Ignored differences by kind."""
    compared: int = 0
    """Number of rows with compared contents."""
    counts: dict[Kind, int] = {}
    """Number of rows of every kind, in order."""
    downstream: int = 0
    """Number of downstream rows."""
    independent: tuple[int, ...] = ()
    """Rows that differ after the first divergence and aren't its consequence."""
    flagged: tuple[int, ...] = ()
    """Rows with flags."""
    notes: tuple[str, ...] = ()
    """Limits of the comparison, as sentences."""
    deltas: Deltas = Deltas()
    facts: tuple[Fact, ...] = ()
    judged: tuple[JudgmentPair, ...] = ()
    strict: bool = False
    """Whether nothing was ignored."""

    @property
    def complete(self) -> bool:
        """Whether every row was compared."""
        return self.compared == len(self.rows)

    @property
    def same(self) -> bool:
        """Whether no step differs significantly (strict: at all)."""
        return self.first is None or (bool(self.first.noise) and not self.strict)

    @property
    def apart(self) -> bool:
        """Whether the runs have steps but none in common."""
        alone = self.counts.get(Kind.ONLY_A, 0) + self.counts.get(Kind.ONLY_B, 0)
        return bool(self.rows) and alone == len(self.rows)

    def span_a(self, row: Row) -> Span | None:
        """The step of A in that row."""
        return None if row.a is None else self.a.spans[row.a]

    def span_b(self, row: Row) -> Span | None:
        """The step of B in that row."""
        return None if row.b is None else self.b.spans[row.b]

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
    """One thing that is said about both runs; None where a trace does not say."""

    name: str
    a: Any
    b: Any

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return bool(self.a == self.b)


class Deltas(msgspec.Struct, frozen=True):
    """What B took more than A (less: negative); None unless both traces say."""

    tokens: int | None = None
    duration_ms: float | None = None
    cost_usd: float | None = None


class Judged(msgspec.Struct, frozen=True):
    """One criterion or metric of a goal in A and in B; None where it is not judged."""

    name: str
    a: Criterion | Metric | None
    b: Criterion | Metric | None

    @property
    def same(self) -> bool:
        """Whether both were judged the same."""
        return _verdict(self.a) == _verdict(self.b)


def _verdict(judged: Criterion | Metric | None) -> tuple[Any, ...]:
    if isinstance(judged, Criterion):
        return (judged.met,)
    return () if judged is None else (judged.score, judged.passed)


def deltas(a: RunSummary, b: RunSummary) -> Deltas:
    """How much more B took."""
    used = [run.usage for run in (a, b)]
    tokens = [None if usage is None else usage.all_tokens for usage in used]
    costs = [None if usage is None else usage.cost_usd for usage in used]
    return Deltas(_less(*tokens), _less(a.duration_ms, b.duration_ms), _less(*costs))


def _less(a: Any, b: Any) -> Any:
    return None if a is None or b is None else b - a


def facts(a: Run, b: Run) -> list[Fact]:
    """What is said about the runs themselves: first how they ended, then what they were made with."""
    left, right = a.summary, b.summary
    found = [
        Fact("status", left.status_word or left.status.value, right.status_word or right.status.value),
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
    """Fingerprints of what a run was made of (its graph, its code), at the top of its attributes or one below."""
    for name, value in attributes.items():
        inner = value if isinstance(value, dict) else {name: value}
        yield from ((key, one) for key, one in inner.items() if str(key).endswith(_HASH) and isinstance(one, str))


def judged(a: Run, b: Run) -> list[Judged]:
    """The criteria and metrics of both runs by name, those of A first."""
    found = _by_name(a.body.criteria, b.body.criteria, "text")
    return found + _by_name(a.body.metrics, b.body.metrics, "name")


def _by_name(a: tuple[Any, ...], b: tuple[Any, ...], field: str) -> list[Judged]:
    left, right = ({getattr(one, field): one for one in side} for side in (a, b))
    names = dict.fromkeys([*left, *right])
    return [Judged(name, left.get(name), right.get(name)) for name in names]


# ---- rows


class Row(msgspec.Struct, frozen=True, gc=False):
    """A step of A beside the same of B, or alone. `a` and `b` are positions in the spans of the runs."""

    kind: Kind
    a: int | None
    b: int | None
    downstream: bool = False
    """Follows from the first divergence: its input holds a value that diverged, or the other run was over by then."""
    changes: int = 0
    """How many values differ; `Diff.changes` gives them."""
    path: str = ""
    """Where the first of them is."""
    flags: tuple[str, ...] = ()
    """Stored values that are not what they should be, with their side: ``B: input_hash``."""
    noise: str = ""
    """What kind of difference it is, where nothing differs but what is usually ignored."""


class Divergence(msgspec.Struct, frozen=True):
    """A row that differs, with its first value that does: of a step that only one run has, its name."""

    row: int
    kind: Kind
    path: str
    a: Any = None
    b: Any = None
    noise: str = ""
    """As of a row: it is of a row where nothing else differs, and nothing else differs anywhere."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs compared. As long as `compared` is less than the number of rows, later rows are known by header only."""

    a: Run
    b: Run
    relation: str | None
    """What B is to A: replay, fork, retry, student, repeat; None if nothing says so."""
    by: str
    """What told which step is which, in words."""
    rows: tuple[Row, ...]
    first: Divergence | None = None
    decision: Divergence | None = None
    """The first routing decision that differs."""
    ignored: dict[str, int] = {}
    """What was let pass as noise, by kind."""
    compared: int = 0
    """Rows whose contents were compared."""
    counts: dict[Kind, int] = {}
    """Rows by kind, every kind in its order."""
    downstream: int = 0
    """How many rows follow from the first divergence."""
    independent: tuple[int, ...] = ()
    """Rows that differ after the first divergence and do not follow from it."""
    flagged: tuple[int, ...] = ()
    """Rows with flags."""
    notes: tuple[str, ...] = ()
    """What limits the answer, as sentences."""
    deltas: Deltas = Deltas()
    facts: tuple[Fact, ...] = ()
    judged: tuple[Judged, ...] = ()
    strict: bool = False
    """Nothing was ignored."""

    @property
    def complete(self) -> bool:
        """Whether every row was compared."""
        return self.compared == len(self.rows)

    @property
    def same(self) -> bool:
        """Whether no step differs, or, unless nothing is ignored, none in what means something."""
        return self.first is None or (bool(self.first.noise) and not self.strict)

    @property
    def apart(self) -> bool:
        """Whether there are steps, and none that both runs have."""
        alone = self.counts.get(Kind.ONLY_A, 0) + self.counts.get(Kind.ONLY_B, 0)
        return bool(self.rows) and alone == len(self.rows)

    def span_a(self, row: Row) -> Span | None:
        """The step of A in that row."""
        return None if row.a is None else self.a.spans[row.a]

    def span_b(self, row: Row) -> Span | None:
        """The step of B in that row."""
        return None if row.b is None else self.b.spans[row.b]

"""Two runs as wholes, side by side: what they are, what they cost, how they were judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tracetui.model import Criterion, Metric, Run, RunSummary

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

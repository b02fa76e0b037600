"""Tokens and cost of runs, one by one and summed. A run in several files counts once.

The cost of a run is the recorded one, else an estimate (`analysis.prices`). A sum says if a part of it is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tracetui.analysis import prices
from tracetui.model import RunSummary
from tracetui.store.facts import total_tokens


class Spending(msgspec.Struct, frozen=True, gc=False):
    """Tokens and cost in US dollars; None if unknown."""

    tokens: int | None = None
    usd: float | None = None
    estimated: bool = False
    """The cost is an estimate, or part of it."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            other.tokens if self.tokens is None else self.tokens + (other.tokens or 0),
            other.usd if self.usd is None else self.usd + (other.usd or 0.0),
            self.estimated or other.estimated,
        )

    def changed(self, before: Spending, after: Spending) -> Spending:
        """This sum, after a part of it changed."""
        without = Spending(
            self.tokens if self.tokens is None else self.tokens - (before.tokens or 0),
            self.usd if self.usd is None else self.usd - (before.usd or 0.0),
            self.estimated,
        )
        return without + after

    def __bool__(self) -> bool:
        return bool(self.tokens) or bool(self.usd)


NOTHING = Spending()


def of_run(run: RunSummary) -> Spending:
    """The spending of a run. Estimates need the price library (`prices.load`): importing it takes a while."""
    usage = run.usage
    if usage is None:
        return NOTHING
    if usage.cost_usd is not None:
        return Spending(total_tokens(run), usage.cost_usd)
    usd = prices.of_summary(run) if prices.loaded() else None
    return Spending(total_tokens(run), usd, usd is not None)


def total(runs: Iterable[RunSummary]) -> Spending:
    """The spending of these runs together, of which each counts what no other does (`tracetui.store.claims`)."""
    return sum_of(map(of_run, runs))


def sum_of(spent: Iterable[Spending]) -> Spending:
    """The sum of spendings."""
    return sum(spent, NOTHING)

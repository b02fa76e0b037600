"""The contexts of many runs in sums: by content, by file and by cause of a cache break.

A run is kept as `ContextTotals`, small enough for the run cache. Nothing is counted twice: a response that several runs
have counts in the first (`tracetui.store.claims`), a run in several files once, and a nested run in its parent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from tracetui.analysis.context import Account, Ledger, Totals
from tracetui.model import Run, RunRef, RunSummary
from tracetui.model.build import nested_runs
from tracetui.model.context import CAUSES, Cause
from tracetui.store.facts import ContextUse


class ContextBy(StrEnum):
    """The grouping of the rows."""

    CONTENT = "content"
    FILE = "context-file"
    BREAK = "break"


class CauseTotals(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The cache breaks of one cause in one run. Missed tokens, cost in US dollars."""

    cause: str
    breaks: int
    missed: int
    usd: float | None


class ContextTotals(msgspec.Struct, frozen=True, array_like=True):
    """What the context of one run comes to."""

    totals: Totals
    accounts: tuple[Account, ...]
    """By content and file."""
    causes: tuple[CauseTotals, ...]
    grew: int | None
    """Most tokens that entered with one call after the first of its conversation; None without such a call."""
    nested: frozenset[RunRef]
    """Runs that are parts of this one."""

    @property
    def use(self) -> ContextUse:
        """What queries ask."""
        totals = self.totals
        missed = None if totals.read is None else totals.missed
        return ContextUse(totals.most or None, missed, self.grew, tuple(cause.cause for cause in self.causes))


def totals_of(run: Run, ledger: Ledger) -> ContextTotals:
    """The sums of a run."""
    causes: dict[str, CauseTotals] = {}
    for missed in ledger.breaks:
        cause = missed.cause if missed.cause in CAUSES else Cause.OTHER
        before = causes.get(cause, CauseTotals(cause, 0, 0, None))
        usd = before.usd if missed.usd is None else missed.usd + (before.usd or 0.0)
        causes[cause] = CauseTotals(cause, before.breaks + 1, before.missed + missed.missed, usd)
    grew = max((call.growth for call in ledger.calls if call.growth < call.input), default=None)
    return ContextTotals(ledger.totals, (*ledger.accounts(),), (*causes.values(),), grew, nested_runs(run))


class ContextRow(msgspec.Struct, frozen=True):
    """A content, a file or a cause, over all runs. Tokens; costs in US dollars, None without a price."""

    name: str
    runs: int
    """Runs that it occurs in."""
    count: int
    """Texts that entered, or breaks."""
    entered: int | None = None
    carried: int | None = None
    """Summed over all calls that held it."""
    missed: int | None = None
    """Cached tokens that were not read: of causes only."""
    share: float | None = None
    """Of the carried, or missed, tokens of all runs."""
    usd: float | None = None
    usd_new: float | None = None
    usd_carry: float | None = None
    usd_breaks: float | None = None


class ContextSums:
    """Accumulates runs. Not thread-safe."""

    def __init__(self, runs: Iterable[tuple[RunSummary, ContextTotals]] = ()) -> None:
        self._runs: dict[RunRef, ContextTotals] = {}
        self._identities: set[str] = set()
        self._rows: dict[ContextBy, list[ContextRow]] = {}
        for summary, totals in runs:
            self.add(summary, totals)

    def add(self, summary: RunSummary, totals: ContextTotals) -> None:
        """Add a run, unless a copy of it was added before."""
        if summary.identity is not None:
            if summary.identity in self._identities:
                return
            self._identities.add(summary.identity)
        self._runs[summary.ref] = totals
        self._rows = {}

    @property
    def counted(self) -> list[ContextTotals]:
        """Those of the runs that are no part of another."""
        nested = frozenset[RunRef]().union(*(totals.nested - {ref} for ref, totals in self._runs.items()))
        return [totals for ref, totals in self._runs.items() if ref not in nested]

    @property
    def runs(self) -> int:
        """Number of runs that count."""
        return len(self.counted)

    @property
    def input(self) -> int:
        """Input tokens of all calls."""
        return sum(run.totals.input for run in self.counted)

    @property
    def usd(self) -> float | None:
        """Cost of the input; None without a price."""
        costs = [run.totals.usd for run in self.counted if run.totals.usd is not None]
        return sum(costs) if costs else None

    def rows(self, by: ContextBy) -> list[ContextRow]:
        """One row a name: the most expensive first, then by tokens and name. Computed once."""
        if by not in self._rows:
            rows = self._causes() if by is ContextBy.BREAK else self._accounts(by)
            self._rows[by] = sorted(
                rows, key=lambda row: (-(row.usd or 0.0), -(row.carried or row.missed or 0), row.name)
            )
        return self._rows[by]

    def _accounts(self, by: ContextBy) -> Iterator[ContextRow]:
        sums: dict[str, Account] = {}
        runs = Counter[str]()
        priced = set[str]()
        for run in self.counted:
            names = set[str]()
            for account in run.accounts:
                name = account.content if by is ContextBy.CONTENT else account.file
                if name is not None:
                    sums.setdefault(name, Account(name)).add(account)
                    names.add(name)
            runs.update(names)
            if run.totals.usd is not None:
                priced |= names
        total = self.input
        for label, sum_ in sums.items():
            costs = (sum_.usd, sum_.usd_new, sum_.usd_carry, sum_.usd_breaks) if label in priced else (None,) * 4
            share = sum_.carried / total if total else None
            yield ContextRow(label, runs[label], sum_.times, sum_.entered, sum_.carried, None, share, *costs)

    def _causes(self) -> Iterator[ContextRow]:
        sums: dict[str, tuple[int, int, int, float | None]] = {}
        for run in self.counted:
            for cause in run.causes:
                runs, breaks, missed, usd = sums.get(cause.cause, (0, 0, 0, None))
                usd = usd if cause.usd is None else cause.usd + (usd or 0.0)
                sums[cause.cause] = runs + 1, breaks + cause.breaks, missed + cause.missed, usd
        total = sum(missed for _, _, missed, _ in sums.values())
        for name, (runs, breaks, missed, usd) in sums.items():
            share = missed / total if total else None
            yield ContextRow(name, runs, breaks, missed=missed, share=share, usd=usd, usd_breaks=usd)

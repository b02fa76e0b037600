"""Contexts of many runs: each run is read once, its sums are kept in the run cache."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

from tracetui.analysis import prices
from tracetui.analysis.context_feed import Feed
from tracetui.analysis.context_totals import ContextBy, ContextSums, ContextTotals, totals_of
from tracetui.live.jobs import Job, Step, read_steps
from tracetui.live.scan_cache import Reading, RunValues, version
from tracetui.model import RunRef, RunSummary
from tracetui.sources.base import Source
from tracetui.store.claims import Share, Shares


class RunTotals(NamedTuple):
    """The sums of a run."""

    run: RunSummary
    totals: ContextTotals


class Contexts(RunValues[ContextTotals]):
    """Sums up the contexts of runs, without the responses that others count, and stores what it had to read."""

    def __init__(self, source: Source, roots: Sequence[str], limit: int, shares: Shares) -> None:
        """Use the user's cache, of at most `limit` bytes; 0: none."""
        prices.load()
        listed = prices.origin() if prices.wanted() and prices.installed() else "no prices"
        super().__init__(ContextTotals, source, roots, limit, f"{version(None, 'analysis')} contexts {listed}")
        self._shares = shares

    def steps(self, ref: RunRef) -> Generator[Step, None, ContextTotals | None]:
        """Return the sums of a run, after problems; None if nothing of it is readable. Raises `LinkLost`."""
        share = self._shares.get(ref, Share())
        variant = blake2b(repr((share.whole, sorted(share.copied))).encode(), digest_size=8).digest()
        stored = self.find(ref, variant)
        if not isinstance(stored, Reading):
            return stored
        run = yield from read_steps(stored.source, ref, stored.cache)
        if run is None:
            return None
        run = share.mark(run)
        feed = Feed(run)
        for _ in feed:
            yield Step()
        totals = totals_of(run, feed.ledger)
        stored.store(totals)
        return totals

    def read(self, ref: RunRef) -> ContextTotals | None:
        """`steps` at once."""
        steps = self.steps(ref)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                totals: ContextTotals | None = stop.value
                return totals


def contexts_job(
    runs: Sequence[RunSummary],
    shares: Shares,
    roots: Sequence[str],
    limit: int,
    known: Mapping[RunRef, ContextTotals] = MappingProxyType({}),
) -> Job:
    """Return a job that sums up the contexts of these runs, without reading those of `known`.

    `JobProgress.new` has `RunTotals` and problems, `result` the `ContextSums` at the end. The values are stored in the
    user's cache for `roots`, of at most `limit` bytes; 0: it isn't used.
    """
    sums: ContextSums | None = None

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal sums
        every = ContextSums()
        with Contexts(source, roots, limit, shares) as contexts:
            for run in runs:
                totals = known.get(run.ref) or (yield from contexts.steps(run.ref))
                if totals is not None:
                    every.add(run, totals)
                yield Step((RunTotals(run, totals),) if totals is not None else (), done=1)
        for by in ContextBy:
            every.rows(by)
            yield Step()
        sums = every

    return Job("contexts", len(runs), work, lambda: sums)

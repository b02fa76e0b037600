"""Compare runs for the screen: one thread that works in small slices, visible comparisons first.

The first answer to a comparison comes from headers alone, and step diffs never wait for the rest of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Final

from tracetui import masking
from tracetui.analysis.diff_description import DiffDescription, describe
from tracetui.analysis.step_diff import CHANGES, difference_label
from tracetui.analysis.step_look import look_at, look_at_calls
from tracetui.diff.comparison import Comparison, Diff, Row
from tracetui.diff.step import Difference
from tracetui.live.load import Reader
from tracetui.live.mailbox import (
    Answer,
    Ask,
    Calls,
    Compare,
    Describe,
    Divergence,
    FindDivergence,
    LookAt,
    Mailbox,
    ReadFailure,
    Throttle,
)
from tracetui.model import Run, RunRef
from tracetui.sources.base import LinkLost, Source
from tracetui.store.address import span_label
from tracetui.store.claims import NO_SHARES, Share, Shares

NEWS_SECONDS: Final = 0.2
"""How often a running comparison is reported."""
FIRST_SECONDS: Final = 0.06
"""How long the first answer waits for the first divergence: two answers take longer."""
MAX_PREFETCH_BYTES: Final = 16_000_000
"""Largest file to read ahead."""
MAX_COMPARISONS: Final = 2
"""Comparisons to keep: the usual one, and the strict one."""


class Differ:
    """`run` is the thread's body; every other method may be called by the screen and returns at once."""

    def __init__(self, source: Source, mailbox: Mailbox, throttle: Throttle) -> None:
        self._source, self._mailbox, self._throttle = source, mailbox, throttle
        self._event = threading.Event()
        self._requested: tuple[Compare | None, dict[RunRef, Run], Shares, bool] | None = None
        self._look: LookAt | tuple[Calls, Run] | None = None
        self._pending_pairs: deque[FindDivergence] = deque()
        self._prefetch: RunRef | None = None
        self._work: Iterator[None] | None = None
        self._pair_work: Iterator[None] | None = None
        self._comparisons: OrderedDict[Compare, Comparison] = OrderedDict()

    # ---- for the screen

    def compare(
        self, ask: Compare | None, loaded: Iterable[Run] = (), shares: Shares = NO_SHARES, *, reload: bool = False
    ) -> None:
        """Compare these runs instead of the previous ones; None: drop those. `loaded` runs, which are net, and cached
        ones are not read again unless `reload`. `shares`: what other runs count of the runs that are read.
        """
        self._requested = ask, {run.summary.ref: run for run in loaded if run.complete}, shares, reload
        self._event.set()

    def look(self, ask: LookAt) -> None:
        """Compare two steps, replacing a request that has not started."""
        self._look = ask
        self._event.set()

    def calls(self, ask: Calls, run: Run) -> None:
        """Compare the contexts of two model calls of a run, replacing a request that has not started."""
        self._look = ask, run
        self._event.set()

    def find_divergences(self, asks: Iterable[FindDivergence]) -> None:
        """Find the first difference of each pair when idle, replacing earlier requests."""
        self._pending_pairs = deque(asks)
        self._event.set()

    def read_ahead(self, ref: RunRef) -> None:
        """Read a run that may be compared next when idle; delivered like any run.

        Skips remote and very large files.
        """
        self._prefetch = ref
        self._event.set()

    def stop(self) -> None:
        """End the thread."""
        self._event.set()

    # ---- the thread

    def run(self) -> None:
        """Answer requests until stopped."""
        while not self._throttle.stopped:
            self._event.wait()
            self._event.clear()
            while not self._throttle.stopped and self._turn():
                self._yield()

    def _yield(self) -> bool:
        """Yield to a key press; return True if a more urgent request is waiting."""
        if not self._is_asked:
            self._throttle.wait_until_idle(self._event)
            self._event.clear()  # whatever set it is handled in this turn
        return self._is_asked

    @property
    def _is_asked(self) -> bool:
        """Whether a request takes precedence over the comparison."""
        return self._requested is not None or (self._look is not None and self._can_look(self._look))

    def _turn(self) -> bool:
        """Do a slice of the most urgent work; return False if there is none."""
        if self._requested is not None:
            (ask, loaded, shares, reload), self._requested = self._requested, None
            self._work = self._compare(ask, loaded, shares) if ask is not None else None
            if ask is None or reload:
                self._comparisons.clear()
            return True
        if self._answer_look():
            return True
        if self._work is not None:
            self._work = self._work if _advance(self._work) else None
            return True
        self._look = None  # its comparison was dropped
        if self._prefetch is not None:
            ref, self._prefetch = self._prefetch, None
            self._work = self._read_ahead(ref)
            return True
        if self._pair_work is None and self._pending_pairs:
            self._pair_work = self._find_divergence(self._pending_pairs.popleft())
        if self._pair_work is not None:
            self._pair_work = self._pair_work if _advance(self._pair_work) else None
            return True
        return False

    def _answer(self, ask: Ask, answer: Answer) -> None:
        with self._mailbox.open(asked=True) as mail:
            mail.diffs[ask] = answer

    # ---- whole runs

    def _compare(self, ask: Compare, loaded: dict[RunRef, Run], shares: Shares) -> Iterator[None]:
        runs = yield from self._read(ask, loaded, shares)
        if runs is None:
            return
        comparison = Comparison(*runs, relation=ask.relation, strict=ask.strict, breathe=self._yield)
        self._comparisons[ask] = comparison
        while len(self._comparisons) > MAX_COMPARISONS:
            self._comparisons.popitem(last=False)
        due, located = time.monotonic() + FIRST_SECONDS, False
        for diff in comparison.steps():
            first = diff.first is not None and not located
            if first or diff.complete or time.monotonic() >= due:
                self._post(ask, diff, first=first)
                due, located = time.monotonic() + NEWS_SECONDS, located or first
            yield

    def _post(self, ask: Compare, diff: Diff, *, first: bool) -> None:
        """Deliver a diff; with the first divergence also its step diff, which the screen needs next."""
        look: dict[Ask, Answer] = {}
        if first and diff.first is not None:
            row = diff.rows[diff.first.row]
            at = LookAt(ask, row.a, row.b, CHANGES)
            look[at] = look_at(self._comparisons[ask], row, CHANGES)
        if first or diff.complete:
            look[Describe(ask)] = describe(diff, self._messages(self._comparisons[ask]))
        with self._mailbox.open(asked=True) as mail:
            mail.diffs[ask] = diff
            mail.diffs.update(look)
        if first:
            self._throttle.yield_to_key()

    def _messages(self, comparison: Comparison) -> Callable[[Row], Difference]:
        """The differences of a row as messages; before each, yields to keys and answers what they ask for."""

        def messages(row: Row) -> Difference:
            self._yield()
            self._answer_look()
            return comparison.messages(row)

        return messages

    def _read(
        self, ask: Compare | FindDivergence, loaded: dict[RunRef, Run], shares: Shares = NO_SHARES
    ) -> Generator[None, None, list[Run] | None]:
        """Read both runs; if one is unreadable, answer with the failure and return None."""
        runs: list[Run] = []
        for ref in (ask.a, ask.b):
            run = loaded.get(ref) or self._find_run(ref)
            if run is None:
                reader = yield from self._read_all(ref)
                why = reader.lost or (reader.failure.reason if reader.failure is not None else "")
                if why and not len(reader):
                    self._answer(ask, ReadFailure(f"{ref.address}: {why}"))
                    return None
                run = shares.get(ref, Share()).mark(reader.build())
            runs.append(run)
        return [masking.masked_headers(run) for run in runs]

    def _read_all(self, ref: RunRef) -> Generator[None, None, Reader]:
        reader = Reader(self._source, ref, redactor=masking.comparing())
        with suppress(LinkLost):
            for _ in reader.pieces():
                yield
        return reader

    def _read_ahead(self, ref: RunRef) -> Iterator[None]:
        path = self._source.local_path(ref.path)
        if path is None or not 0 < _size(path) <= MAX_PREFETCH_BYTES:
            return
        reader = yield from self._read_all(ref)
        if not reader.lost and reader.failure is None:
            with self._mailbox.open() as mail:
                mail.runs.setdefault(ref, reader.build())

    def _find_run(self, ref: RunRef) -> Run | None:
        both = (run for comparison in self._comparisons.values() for run in (comparison.a, comparison.b))
        return next((run for run in both if run.summary.ref == ref), None)

    def _find_divergence(self, ask: FindDivergence) -> Iterator[None]:
        runs = yield from self._read(ask, {})
        if runs is None:
            return
        last: Diff | None = None
        comparison = Comparison(*runs, relation=ask.relation, breathe=self._yield)
        for diff in comparison.steps():
            last = diff
            yield
        if last is not None:
            self._answer(ask, divergence_of(last, describe(last, self._messages(comparison))))

    # ---- one pair of steps

    def _can_look(self, ask: LookAt | tuple[Calls, Run]) -> bool:
        return isinstance(ask, tuple) or ask.of in self._comparisons

    def _answer_look(self) -> bool:
        """Compare the two steps or contexts that were asked for; return False if there are none."""
        ask = self._look
        if ask is None or not self._can_look(ask):
            return False
        self._look = None
        if isinstance(ask, tuple):
            pair, run = ask
            self._answer(pair, look_at_calls(run, run.index[pair.a], run.index[pair.b]))
        else:
            self._answer(ask, look_at(self._comparisons[ask.of], ask, ask.tab, raw=ask.raw))
        return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _advance(work: Iterator[None]) -> bool:
    try:
        next(work)
    except StopIteration:
        return False
    return True


def divergence_of(diff: Diff, description: DiffDescription) -> Divergence:
    """Summarize a diff in one phrase."""
    if diff.first is None or diff.same:
        return Divergence(True)
    row = diff.rows[diff.first.row]
    span = diff.span_b(row) or diff.span_a(row)
    run = diff.a if row.b is None else diff.b
    label = difference_label(diff, diff.first, description.first)
    return Divergence(False, label, description.first, "" if span is None else span_label(run, span))

"""Compares runs for the screen: one thread that does a little of one thing at a time, what is looked at first.

The first answer to a comparison comes from headers alone; what is looked at never waits for the rest of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Generator, Iterable, Iterator
from typing import Final

from tracetui import masking
from tracetui.analysis.step_diff import CHANGES
from tracetui.diff.comparison import Comparison
from tracetui.diff.result import Diff
from tracetui.live.comparing.compared import Answer, Ask, Calls, Compare, Failed, LookAt, Survey
from tracetui.live.comparing.looking import calls, look_at, verdict
from tracetui.live.load import Reader
from tracetui.live.mail import Mailbox
from tracetui.live.traffic import Traffic
from tracetui.model import Run, RunRef
from tracetui.sources.base import Source

NEWS_SECONDS: Final = 0.2
"""How often a comparison that goes on is told anew."""
FIRST_SECONDS: Final = 0.06
"""How long the first answer waits for the first divergence: telling twice takes longer."""
AHEAD_BYTES: Final = 16_000_000
"""The largest file that is read though nobody asked for it."""
KEPT: Final = 2
"""Comparisons that can be looked at: as it is, and with nothing ignored."""


class Differ:
    """`run` is the body of a thread; every other method may be called by the screen and returns at once."""

    def __init__(self, source: Source, mailbox: Mailbox, traffic: Traffic) -> None:
        self._source, self._mailbox, self._traffic = source, mailbox, traffic
        self._bell = threading.Event()
        self._wanted: tuple[Compare | None, dict[RunRef, Run], bool] | None = None
        self._look: LookAt | tuple[Calls, Run] | None = None
        self._surveys: deque[Survey] = deque()
        self._ahead: RunRef | None = None
        self._work: Iterator[None] | None = None
        self._survey: Iterator[None] | None = None
        self._comparisons: OrderedDict[Compare, Comparison] = OrderedDict()

    # ---- for the screen

    def compare(self, ask: Compare | None, known: Iterable[Run] = (), *, anew: bool = False) -> None:
        """Compare these runs in place of those before; None: forget them. What is `known` of them, or was read before,
        is not read again unless `anew`.
        """
        self._wanted = ask, {run.summary.ref: run for run in known if run.complete}, anew
        self._bell.set()

    def look(self, ask: LookAt) -> None:
        """Compare two steps of it; a request that was not begun yet is replaced."""
        self._look = ask
        self._bell.set()

    def calls(self, ask: Calls, run: Run) -> None:
        """Compare the contexts of two model calls of a run; a request that was not begun yet is replaced."""
        self._look = ask, run
        self._bell.set()

    def survey(self, asks: Iterable[Survey]) -> None:
        """Find out which pairs went the same way, when there is nothing else to do, in place of those asked before."""
        self._surveys = deque(asks)
        self._bell.set()

    def read_ahead(self, ref: RunRef) -> None:
        """Read a run that may be compared next, when there is nothing else to do: it comes as any run that was read.

        Not read is what is elsewhere or very large.
        """
        self._ahead = ref
        self._bell.set()

    def stop(self) -> None:
        """End the thread."""
        self._bell.set()

    # ---- the thread

    def run(self) -> None:
        """Answer what is asked, until everything is to end."""
        while not self._traffic.stopped:
            self._bell.wait()
            self._bell.clear()
            while not self._traffic.stopped and self._turn():
                self._breathe()

    def _breathe(self) -> bool:
        """Leave the machine to a key; True if something is asked for that comes before what is being done."""
        if not self._is_asked:
            self._traffic.give_way(self._bell)
            self._bell.clear()  # whatever rang is known, and done in turn
        return self._is_asked

    @property
    def _is_asked(self) -> bool:
        """Whether there is something that goes before comparing on."""
        return self._wanted is not None or (self._look is not None and self._can_look(self._look))

    def _turn(self) -> bool:
        """Do a little of what is most urgent; False if there is nothing to do."""
        if self._wanted is not None:
            (ask, known, anew), self._wanted = self._wanted, None
            self._work = self._compare(ask, known) if ask is not None else None
            if ask is None or anew:
                self._comparisons.clear()
            return True
        if self._look is not None and self._can_look(self._look):
            looked, self._look = self._look, None
            self._answer_look(looked)
            return True
        if self._work is not None:
            self._work = self._work if _goes_on(self._work) else None
            return True
        self._look = None  # at a comparison that is none any more
        if self._ahead is not None:
            ref, self._ahead = self._ahead, None
            self._work = self._read_for_later(ref)
            return True
        if self._survey is None and self._surveys:
            self._survey = self._find_out(self._surveys.popleft())
        if self._survey is not None:
            self._survey = self._survey if _goes_on(self._survey) else None
            return True
        return False

    def _answer(self, ask: Ask, answer: Answer) -> None:
        with self._mailbox.open(asked=True) as mail:
            mail.diffs[ask] = answer

    # ---- whole runs

    def _compare(self, ask: Compare, known: dict[RunRef, Run]) -> Iterator[None]:
        runs = yield from self._read(ask, known)
        if runs is None:
            return
        comparison = Comparison(*runs, relation=ask.relation, strict=ask.strict, breathe=self._breathe)
        self._comparisons[ask] = comparison
        while len(self._comparisons) > KEPT:
            self._comparisons.popitem(last=False)
        due, located = time.monotonic() + FIRST_SECONDS, False
        for diff in comparison.steps():
            first = diff.first is not None and not located
            if first or diff.complete or time.monotonic() >= due:
                self._tell(ask, diff, first=first)
                due, located = time.monotonic() + NEWS_SECONDS, located or first
            yield

    def _tell(self, ask: Compare, diff: Diff, *, first: bool) -> None:
        """Tell what is known; the first divergence with what differs there, which is looked at next."""
        look: dict[Ask, Answer] = {}
        if first and diff.first is not None:
            row = diff.rows[diff.first.row]
            at = LookAt(ask, row.a, row.b, CHANGES)
            look[at] = look_at(self._comparisons[ask], at)
        with self._mailbox.open(asked=True) as mail:
            mail.diffs[ask] = diff
            mail.diffs.update(look)
        if first:
            self._traffic.make_way()

    def _read(self, ask: Compare | Survey, known: dict[RunRef, Run]) -> Generator[None, None, list[Run] | None]:
        """Both runs; None where one cannot be read, which is then the answer."""
        runs: list[Run] = []
        for ref in (ask.a, ask.b):
            run = known.get(ref) or self._kept(ref)
            if run is None:
                reader = yield from self._read_all(ref)
                why = reader.lost or (reader.failure.reason if reader.failure is not None else "")
                if why and not len(reader):
                    self._answer(ask, Failed(f"{ref.address}: {why}"))
                    return None
                run = reader.build()
            runs.append(run)
        return [masking.masked_errors(run) for run in runs]

    def _read_all(self, ref: RunRef) -> Generator[None, None, Reader]:
        reader = Reader(self._source, ref, redactor=masking.current())
        reader.read()
        while reader.more and not reader.lost:
            yield
            reader.read()
        return reader

    def _read_for_later(self, ref: RunRef) -> Iterator[None]:
        path = self._source.local_path(ref.path)
        if path is None or not 0 < _size(path) <= AHEAD_BYTES:
            return
        reader = yield from self._read_all(ref)
        if not reader.lost and reader.failure is None:
            with self._mailbox.open() as mail:
                mail.runs.setdefault(ref, reader.build())

    def _kept(self, ref: RunRef) -> Run | None:
        both = (run for one in self._comparisons.values() for run in (one.a, one.b))
        return next((run for run in both if run.summary.ref == ref), None)

    def _find_out(self, ask: Survey) -> Iterator[None]:
        runs = yield from self._read(ask, {})
        if runs is None:
            return
        known: Diff | None = None
        for diff in Comparison(*runs, relation=ask.relation, breathe=self._breathe).steps():
            known = diff
            yield
        if known is not None:
            self._answer(ask, verdict(known))

    # ---- one pair of steps

    def _can_look(self, ask: LookAt | tuple[Calls, Run]) -> bool:
        return isinstance(ask, tuple) or ask.of in self._comparisons

    def _answer_look(self, ask: LookAt | tuple[Calls, Run]) -> None:
        if isinstance(ask, tuple):
            pair, run = ask
            self._answer(pair, calls(run, run.index[pair.a], run.index[pair.b]))
        else:
            self._answer(ask, look_at(self._comparisons[ask.of], ask))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _goes_on(work: Iterator[None]) -> bool:
    try:
        next(work)
    except StopIteration:
        return False
    return True

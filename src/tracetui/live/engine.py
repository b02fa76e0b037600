"""The only module with threads: it finds, summarizes and opens runs, and leaves the results in a mailbox.

Three daemon threads, so that what the user waits for never queues behind a scan: one walks and summarizes (list stage,
then the deep pass), one reads the run that is open, one loads bodies of spans. `notify` is called once when the mailbox
turns from empty to full, however much arrives; `collect` empties it.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from tracetui.formats import registry
from tracetui.formats.base import Format
from tracetui.live.excerpt import Excerpt, read_excerpt
from tracetui.live.load import Reader
from tracetui.live.scan import Found, entries, look
from tracetui.model import Body, Problem, Run, RunRef, Span
from tracetui.sources.base import Entry, Source
from tracetui.views.walk import starting_span

FIRST_BATCH: Final = 24
"""Files summarized before the first rows are shown: a small screenful, so that the first paint waits for no more."""
BATCH: Final = 256
PREVIEW_SPANS: Final = 30_000
"""Spans of a run that are read for a preview; the rest is read when the run is entered."""
SWITCH_SECONDS: Final = 0.0005
"""How long a thread that computes keeps the others waiting: a key passes through three, a tenth of the usual each."""
PAINT_SECONDS: Final = 0.05
"""What the first paint takes: until then scanning on would only slow it down."""
PATIENCE_SECONDS: Final = 0.5
"""How long the scan waits for an app that does not say that it goes on."""


class Mail(msgspec.Struct):
    """What arrived since the mailbox was last emptied."""

    found: list[Found] = []
    runs: dict[RunRef, Run] = {}
    bodies: dict[tuple[RunRef, str], Body] = {}
    excerpts: dict[str, Excerpt] = {}
    """Text around the place of a problem, by path of the file."""
    seen: int = 0
    """Files looked at so far by the current stage."""
    total: int | None = None
    """Files to look at in all; None while the walk still goes on."""
    stage: str = ""
    """``list``, ``deep``, or empty when everything is known."""
    listed: bool = False
    """The list stage ended: what it did not find is not there."""
    failure: BaseException | None = None
    """A bug in a worker, to be raised by the app."""


class Engine:
    """Owns the threads. Every method may be called from the UI loop; none of them blocks."""

    def __init__(
        self, source: Source, roots: Sequence[str], *, only: str | None = None, notify: Callable[[], None] | None = None
    ) -> None:
        self._source = source
        self._roots = list(roots)
        self._only: Format | None = registry.load(only) if only else None
        self._notify = notify
        self._lock = threading.Lock()
        self._mail = Mail()
        self._full = False
        self._waiting = threading.Event()
        self._stop = threading.Event()
        self._bound = threading.Event()
        self._painted = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._generation = 0
        self._wanted_run: RunRef | None = None
        self._entered: RunRef | None = None
        self._wanted_body: tuple[Run, Span] | Problem | None = None
        self._run_bell = threading.Event()
        self._read_on = threading.Event()
        self._body_bell = threading.Event()

    # ---- for the app

    def start(self) -> None:
        """Begin to scan and to take requests."""
        sys.setswitchinterval(SWITCH_SECONDS)
        for work in (self._read_runs, self._load_bodies):
            self._spawn(work)
        self.rescan()

    def bind(self, notify: Callable[[], None]) -> None:
        """Call `notify` whenever the mailbox turns full; at once if it is."""
        with self._lock:
            self._notify = notify
            full = self._full
        self._bound.set()
        if full:
            notify()

    def rescan(self) -> None:
        """Walk everything again; what an earlier scan still finds is dropped."""
        self._generation += 1
        generation = self._generation
        self._spawn(lambda: self._scan(generation))

    def open(self, ref: RunRef) -> None:
        """Read that run; a request that was not begun yet is replaced, one that is going on is left."""
        self._wanted_run = ref
        self._run_bell.set()
        self._read_on.set()

    def enter(self, ref: RunRef) -> None:
        """Read all of that run, if it is being read or held at the end of what a preview needs."""
        self._entered = ref
        self._read_on.set()

    def load_body(self, run: Run, span: Span) -> None:
        """Load the body of a span; a request that was not begun yet is replaced."""
        self._wanted_body = (run, span)
        self._body_bell.set()

    def load_excerpt(self, problem: Problem) -> None:
        """Read the text around the place of a problem; a request that was not begun yet is replaced."""
        self._wanted_body = problem
        self._body_bell.set()

    def collect(self) -> Mail:
        """Everything that arrived since the last call."""
        with self._lock:
            mail, self._mail, self._full = self._mail, Mail(stage=self._mail.stage), False
            self._waiting.clear()
        return mail

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hold the scan back while the app takes mail in: two that compute at once take twice as long each."""
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long for mail; True if there is some."""
        return seconds > 0 and self._waiting.wait(seconds)

    def stop(self) -> None:
        """Tell the threads to end; does not wait for them (they are daemons)."""
        self._stop.set()
        for bell in (self._run_bell, self._read_on, self._body_bell, self._idle, self._bound, self._painted):
            bell.set()

    # ---- threads

    def _spawn(self, work: Callable[[], None]) -> None:
        threading.Thread(target=self._guard, args=(work,), daemon=True).start()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as bug:  # hand our own bug to the app, which ends with it
            if not self._stop.is_set():
                with self._lock:
                    self._mail.failure = bug
                self._ring()

    def _scan(self, generation: int) -> None:
        gc.disable()  # summaries are many, small and acyclic: collecting them over and over is half the time
        try:
            entries = self._list_stage(generation)
            if entries is not None:
                self._deep_stage(generation, entries)
        finally:
            gc.enable()
            gc.freeze()

    def _list_stage(self, generation: int) -> list[tuple[Entry, str]] | None:
        batch: list[Found] = []
        shallow: list[tuple[Entry, str]] = []
        limit = FIRST_BATCH
        seen = 0
        last: Format | None = None
        for entry in entries(self._source, self._roots):
            if self._over(generation):
                return None
            found, last = look(self._source, entry, deep=False, last=last, only=self._only, tell=self._tell)
            batch.append(found)
            seen += 1
            if any(not run.deep for run in found.runs):
                shallow.append((entry, found.format or ""))
            if len(batch) >= limit:
                self._deliver(batch, "list", seen, None)
                self._let_it_paint()
                batch, limit = [], BATCH
        self._deliver(batch, "deep" if shallow else "", seen, seen, listed=True)
        self._let_it_paint()
        return shallow

    def _deep_stage(self, generation: int, entries: list[tuple[Entry, str]]) -> None:
        entries.sort(key=lambda pair: -(pair[0].stat.mtime_ns if pair[0].stat else 0))
        batch: list[Found] = []
        for done, (entry, name) in enumerate(entries, 1):
            if self._over(generation):
                return
            found, _ = look(self._source, entry, deep=True, only=registry.load(name))
            batch.append(found)
            if len(batch) >= BATCH:
                self._deliver(batch, "deep", done, len(entries))
                batch = []
        self._deliver(batch, "", len(entries), len(entries))

    def _over(self, generation: int) -> bool:
        """Whether the scan is to end; waits while the app is busy."""
        if not self._idle.is_set():
            self._idle.wait(PATIENCE_SECONDS)
        return self._stop.is_set() or generation != self._generation

    def _tell(self, found: Found) -> None:
        """The first runs of a file that holds many."""
        with self._lock:
            self._mail.found.append(found)
            self._mail.stage = "list"
        self._ring()
        self._let_it_paint()

    def _let_it_paint(self) -> None:
        """Wait, after the first rows, until they are on the screen."""
        if not self._painted.is_set() and self._bound.wait(PATIENCE_SECONDS):
            self._painted.wait(PAINT_SECONDS)
        self._painted.set()

    def _read_runs(self) -> None:
        while self._run_bell.wait() and not self._stop.is_set():
            self._run_bell.clear()
            ref = self._wanted_run
            if ref is None:
                continue
            shown: str | None = None
            for run in Reader(self._source, ref).steps():
                span_id = starting_span(run)
                body = None
                if span_id is not None and span_id != shown:  # what is shown at once comes with the run: one paint
                    body, shown = run.load(run.spans[run.index[span_id]]), span_id
                with self._lock:
                    self._mail.runs[ref] = run
                    if body is not None and span_id is not None:
                        self._mail.bodies[ref, span_id] = body
                self._ring()
                self._let_it_paint()
                if self._held(ref, run) or self._stop.is_set():
                    break

    def _held(self, ref: RunRef, run: Run) -> bool:
        """Wait, where a preview has enough, until the run is entered; true if another run is wanted instead."""
        while len(run.spans) >= PREVIEW_SPANS and self._entered != ref == self._wanted_run and not self._stop.is_set():
            self._read_on.wait()
            self._read_on.clear()
        return self._wanted_run != ref

    def _load_bodies(self) -> None:
        while self._body_bell.wait() and not self._stop.is_set():
            self._body_bell.clear()
            wanted = self._wanted_body
            if wanted is None:
                continue
            if isinstance(wanted, Problem):
                excerpt = read_excerpt(self._source, wanted)
                with self._lock:
                    self._mail.excerpts[wanted.path] = excerpt
            else:
                run, span = wanted
                body = run.load(span)
                with self._lock:
                    self._mail.bodies[run.summary.ref, span.id] = body
            self._ring()

    def _deliver(self, batch: list[Found], stage: str, seen: int, total: int | None, *, listed: bool = False) -> None:
        with self._lock:
            self._mail.found.extend(batch)
            self._mail.stage, self._mail.seen, self._mail.total = stage, seen, total
            self._mail.listed |= listed
        self._ring()

    def _ring(self) -> None:
        with self._lock:
            ring, self._full = not self._full, True
            self._waiting.set()
            notify = self._notify
        if ring and notify is not None:
            notify()

"""Read and tail the open run, and load span bodies. Two threads, so that a body never waits for a long run.
A third, of low priority, assesses the open run.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections import OrderedDict
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui.analysis import prices
from tracetui.analysis.navigation import call_before, starting_span
from tracetui.live.load import Reader
from tracetui.live.mailbox import Excerpt, Mailbox, Throttle
from tracetui.live.readers import Readers
from tracetui.live.scan import part_folders_of
from tracetui.live.watch import STILL_SECONDS, FileWatch
from tracetui.model import Body, Problem, Run, RunRef, Span
from tracetui.model.masked import unmasked
from tracetui.sources.base import LinkLost, Source
from tracetui.store.store import OPEN_RUNS

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.context_feed import GrowingLedger, RunContext


PREVIEW_SPANS: Final = 30_000
"""Spans read for a preview; the rest is read when the run is entered."""
LOOK_UP_SECONDS: Final = 1.0
"""How often the open run is read without a change event."""
SCREEN_SECONDS: Final = 0.1
"""How long reading waits for the screen to take the previous state."""
SLOW_BODY_SECONDS: Final = 0.03
"""A new span is delivered without its body if that takes longer to load: the screen asks for it then."""
WINDOW: Final = 16_384
"""Bytes before the problem; half as many after it."""
_BYTE_OR_LINE: Final = re.compile(r"(byte|line) (\d+)")


class Opener:
    """Serves the screen's reads. `read` and `load` are the bodies of two threads; nothing else blocks."""

    def __init__(self, source: Source, mailbox: Mailbox, throttle: Throttle, readers: Readers) -> None:
        self._source, self._readers = source, readers
        self._mailbox = mailbox
        self._throttle = throttle
        self._run: tuple[RunRef, bool] | None = None
        """The requested run, and whether to read it from its start."""
        self._entered: RunRef | None = None
        self._follow = False
        self._delivered = 0
        """Revision of the run as it was delivered last."""
        self._body_seconds = 0.0
        """How long loading the last body took."""
        self._body: tuple[Run, Span, bool] | Problem | None = None
        self._run_event = threading.Event()
        self._read_on_event = threading.Event()
        self._body_event = threading.Event()
        self._file_watch = FileWatch()

    # ---- for the screen

    def open(self, ref: RunRef, *, reload: bool = False) -> None:
        """Read and tail that run instead of the previous one; from its start if `reload`."""
        self._run = ref, reload
        self._run_event.set()
        self._wake()

    def enter(self, ref: RunRef) -> None:
        """Read the rest of that run if reading stopped at the end of the preview."""
        self._entered = ref
        self._read_on_event.set()

    def follow(self, on: bool) -> None:
        """Set whether the newest span's body is delivered with the run."""
        self._follow = on

    def load_body(self, run: Run, span: Span, *, unmasked: bool = False) -> None:
        """Load the body of a span, without masking if `unmasked`, replacing a request that has not started."""
        self._body = (run, span, unmasked)
        self._body_event.set()

    def load_excerpt(self, problem: Problem) -> None:
        """Read the text around a problem, replacing a request that has not started."""
        self._body = problem
        self._body_event.set()

    def stop(self) -> None:
        """End both threads."""
        self._run_event.set()
        self._body_event.set()
        self._wake()

    def _wake(self) -> None:
        self._read_on_event.set()
        self._file_watch.wake()

    # ---- a thread that reads the run

    def read(self) -> None:
        """Read one requested run after the other until stopped."""
        with closing(self._file_watch):
            while self._run_event.wait() and not self._throttle.stopped:
                self._run_event.clear()
                if self._run is not None:
                    ref, reload = self._run
                    reader = self._readers.open(ref, reload=reload)
                    if self._read_all(reader):
                        self._keep_up(reader)
                    self._readers.attend(None)

    def _wanted(self) -> bool:
        """Whether the run being read is still the requested one."""
        return not self._run_event.is_set() and not self._throttle.stopped

    def _read_all(self, reader: Reader) -> bool:
        """Read to the end; return False if another run is requested first."""
        self._readers.attend(reader)
        for run in reader.steps(self._rest):
            self._deliver(run, starting_span(run), asked=True)
            self._throttle.wait_for_paint()
            self._mailbox.wait_taken(SCREEN_SECONDS)
            if not self._wait_for_entry(reader, run):
                return False
        return self._wanted()

    def _rest(self) -> None:
        """Wait while the screen answers a key or shows what was delivered, unless another run is requested."""
        self._throttle.wait_until_idle(self._run_event)

    def _wait_for_entry(self, reader: Reader, run: Run) -> bool:
        """Wait at the end of a preview until the run is entered; return False if another run is requested instead."""
        if reader.more and len(run.spans) >= PREVIEW_SPANS and self._entered != reader.ref:
            self._readers.attend(None)
            while self._entered != reader.ref and self._wanted():
                self._read_on_event.wait()
                self._read_on_event.clear()
            self._readers.attend(reader)
        return self._wanted()

    def _keep_up(self, reader: Reader) -> None:
        """Read on whenever the file changes, until another run is requested."""
        path = self._source.local_path(reader.ref.path)
        if path is None:
            self._file_watch.follow(reader.ref.path, local=False)
        else:
            folder, parts = os.path.dirname(path), part_folders_of(path, reader.ref.format)
            self._file_watch.follow(path, parts=[os.path.join(folder, part) for part in parts])
        while self._wanted():
            self._read_rest(reader)
            is_settled = reader.failure is None or time.monotonic() - reader.changed_at >= STILL_SECONDS
            if reader.revision != self._delivered and is_settled:
                self._deliver_new(reader)
            else:
                self._file_watch.wait(LOOK_UP_SECONDS)

    def _read_rest(self, reader: Reader) -> None:
        """Read to the current end of the file, unless the source is lost or another run is requested."""
        with suppress(LinkLost):
            for _ in reader.pieces():
                if not self._wanted():
                    return

    def _deliver_new(self, reader: Reader) -> None:
        run = reader.build()
        follows = self._follow and run.spans and self._body_seconds < SLOW_BODY_SECONDS
        self._deliver(run, run.spans[-1].id if follows else None)
        self._mailbox.wait_taken(SCREEN_SECONDS)

    def _deliver(self, run: Run, span_id: str | None, *, asked: bool = False) -> None:
        """Deliver a run with the bodies that the selected span shows and its assessment, for a single paint."""
        self._delivered = run.revision
        span = run.span(span_id) if span_id is not None else None
        began = time.perf_counter()
        spans = () if span is None else filter(None, (span, call_before(run, span)))
        bodies = [(span, run.load(span)) for span in spans]
        self._body_seconds = time.perf_counter() - began if bodies else self._body_seconds
        assessment = at_once(run) if asked else None
        with self._mailbox.open(asked=asked) as mail:
            mail.runs[run.summary.ref] = run
            if assessment is not None:
                mail.assessments[run.summary.ref] = assessment
            for shown_span, body in bodies:
                mail.put_body(run.summary.ref, shown_span, body)

    # ---- a thread that loads bodies

    def load(self) -> None:
        """Load one requested body after the other until stopped."""
        while self._body_event.wait() and not self._throttle.stopped:
            self._body_event.clear()
            wanted = self._body
            if isinstance(wanted, Problem):
                excerpt = read_excerpt(self._source, wanted)
                with self._mailbox.open(asked=True) as mail:
                    mail.excerpts[wanted.path] = excerpt
            elif wanted is not None:
                self._load(*wanted)

    def _load(self, run: Run, span: Span, exact: bool) -> None:
        body: Body = (unmasked(run) if exact else run).load(span)
        with self._mailbox.open(asked=True) as mail:
            if exact:
                mail.unmasked = (run.summary.ref, span, body)
            else:
                mail.put_body(run.summary.ref, span, body)


def read_excerpt(source: Source, problem: Problem) -> Excerpt:
    """Read the text around ``byte N`` of the problem, else the start of the file; empty if unreadable."""
    place = _BYTE_OR_LINE.search(problem.where)
    byte = int(place[2]) if place is not None and place[1] == "byte" and len(place[2]) < 16 else None
    offset = max(0, (byte or 0) - WINDOW)
    try:
        with source.open(problem.path) as file:
            data = file.read(offset, WINDOW + WINDOW // 2)
            return Excerpt(data, offset, None if byte is None else byte - offset, file.stat.size)
    except OSError:
        return Excerpt()


SHARE: Final = 49
"""Pause between two assessments, as a multiple of the time spent: a growing run is assessed repeatedly."""

_SHORT: Final = 500
_FEW_CALLS, _FEW_BYTES = 40, 1 << 20
_MODULE: Final = "tracetui.analysis.assessment"


def at_once(run: Run) -> Assessment | None:
    """Assess a short run synchronously, so that it paints once; None if that would be slow or import modules."""
    if len(run.spans) > _SHORT or not run.complete or _MODULE not in sys.modules or not prices.loaded():
        return None
    from tracetui.analysis.assessment import assess

    assessment = assess(run, unmasked(run).load, max_calls=_FEW_CALLS, max_bytes=_FEW_BYTES)
    return assessment if not assessment.left_out else None


class _Request(NamedTuple):
    """A run to assess, and whether its context is wanted too."""

    run: Run
    context: bool

    def concerns(self, run: Run) -> bool:
        """Whether it is about a version of this run."""
        return self.run.summary.ref == run.summary.ref


CONTEXT_SECONDS: Final = 0.3
"""How often the context of a long run is delivered while it is read."""


class Assessor:
    """Assesses the open run. `run` is the thread's body; the other methods are for the UI thread and don't block."""

    def __init__(self, mailbox: Mailbox, throttle: Throttle) -> None:
        self._mailbox, self._throttle = mailbox, throttle
        self._bell = threading.Event()
        self._wanted: _Request | None = None
        self._assessed: Run | None = None
        self._ledgers: OrderedDict[RunRef, GrowingLedger] = OrderedDict()

    # ---- for the screen

    def assess(self, run: Run, *, context: bool = False) -> None:
        """Assess this run instead of the previous one; with `context`, then read what fills its context."""
        before = self._wanted
        self._wanted = _Request(run, context or (before is not None and before.context and before.concerns(run)))
        self._bell.set()

    def stop(self) -> None:
        """End the thread."""
        self._bell.set()

    # ---- the thread

    def run(self) -> None:
        """Assess requested runs until stopped."""
        self._throttle.wait_for_list()  # the first run imports the analysis modules
        while self._bell.wait() and not self._throttle.stopped:
            self._bell.clear()
            request, began = self._wanted, time.thread_time()
            if request is not None and self._serve(request):
                self._rest(request, SHARE * (time.thread_time() - began))

    def _serve(self, request: _Request) -> bool:
        """Deliver what was requested; False if another run was requested meanwhile."""
        run = request.run
        return (run is self._assessed or self._assess(run)) and (not request.context or self._read_context(run))

    def _is_looked_at(self, run: Run) -> bool:
        return self._wanted is not None and self._wanted.concerns(run) and not self._throttle.stopped

    def _rest(self, request: _Request, seconds: float) -> None:
        """Delay newer states of the same run, but not its context when it is first wanted."""
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0 and self._is_looked_at(request.run):
            if self._wanted is not None and self._wanted.context and not request.context:
                break
            self._bell.wait(remaining)
            self._bell.clear()
        if self._wanted is not request:
            self._bell.set()

    def _assess(self, run: Run) -> bool:
        """Assess a run and deliver the result; False if another run was requested meanwhile."""
        from tracetui.analysis.assessment import assess

        exact = unmasked(run)  # masks look alike

        def load(span: Span) -> Body:
            self._throttle.wait_until_idle(self._bell)
            if not self._is_looked_at(run):
                raise _UnwantedError
            return exact.load(span)

        try:
            assessment = assess(run, load)
        except _UnwantedError:
            return False
        with self._mailbox.open() as mail:
            mail.assessments[run.summary.ref] = assessment
        self._assessed = run
        return True

    def _read_context(self, run: Run) -> bool:
        """Read and deliver the context of a run; False if another run was requested meanwhile."""
        from tracetui.analysis.context_feed import GrowingLedger, RunContext

        prices.load()
        ref, posted = run.summary.ref, time.monotonic()
        ledger = self._ledgers.setdefault(ref, GrowingLedger())
        self._ledgers.move_to_end(ref)
        while len(self._ledgers) > OPEN_RUNS:
            self._ledgers.popitem(last=False)
        with closing(ledger.read(run)) as steps:
            for feed in steps:
                self._throttle.wait_until_idle(self._bell)
                if not self._is_looked_at(run):
                    return False
                if time.monotonic() - posted >= CONTEXT_SECONDS:
                    self._deliver_context(RunContext(run, feed.ledger.copy(), feed.position))
                    posted = time.monotonic()
            self._deliver_context(RunContext(run, feed.ledger.copy(), feed.position))
        return True

    def _deliver_context(self, context: RunContext) -> None:
        with self._mailbox.open() as mail:
            mail.contexts[context.run.summary.ref] = context


class _UnwantedError(Exception):
    """Another run was requested."""

"""Read and tail the open run, and load span bodies. Two threads, so that a body never waits for a long run."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from typing import Final

from tracetui.analysis.navigation import starting_span
from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.live.assessor import at_once
from tracetui.live.load import Reader
from tracetui.live.mailbox import Excerpt, Mailbox
from tracetui.live.open_run import OpenRun
from tracetui.live.retry_queue import STILL_SECONDS
from tracetui.live.throttle import Throttle
from tracetui.live.watch.file_watch import FileWatch
from tracetui.model import Body, Problem, Run, RunRef, Span
from tracetui.model.masked import unmasked
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.store.store import OPEN_RUNS

PREVIEW_SPANS: Final = 30_000
"""Spans read for a preview; the rest is read when the run is entered."""
LOOK_UP_SECONDS: Final = 1.0
"""How often the open run is read without a change event."""
SCREEN_SECONDS: Final = 0.1
"""How long tailing waits for the screen to take the previous state."""
SLOW_BODY_SECONDS: Final = 0.03
"""A new span is delivered without its body if that takes longer to load: the screen asks for it then."""
WINDOW: Final = 16_384
"""Bytes before the problem; half as many after it."""
_BYTE_OR_LINE: Final = re.compile(r"(byte|line) (\d+)")


class Opener:
    """Serves the screen's reads. `read` and `load` are the bodies of two threads; nothing else blocks."""

    def __init__(
        self,
        source: Source,
        mailbox: Mailbox,
        throttle: Throttle,
        redactor: Redactor | None = None,
        open_run: OpenRun | None = None,
    ) -> None:
        """`open_run` receives the state of the run that is read."""
        self._source = source
        self._open_run = OpenRun() if open_run is None else open_run
        self._redactor = redactor
        self._mailbox = mailbox
        self._throttle = throttle
        self._run: tuple[RunRef, bool] | None = None
        """The requested run, and whether to read it from its start."""
        self._entered: RunRef | None = None
        self._follow = False
        self._body_seconds = 0.0
        """How long loading the last body took."""
        self._readers: OrderedDict[RunRef, Reader] = OrderedDict()
        """Readers of recent runs, so that reading on costs only what is new; used by the first thread alone."""
        self._body: tuple[Run, Span, bool] | Problem | None = None
        self._run_event = threading.Event()
        self._read_on_event = threading.Event()
        self._body_event = threading.Event()
        self._file_watch: FileWatch | None = None

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
        file_watch = self._file_watch
        if file_watch is not None:
            file_watch.wake()

    # ---- a thread that reads the run

    def read(self) -> None:
        """Read one requested run after the other until stopped."""
        while self._run_event.wait() and not self._throttle.stopped:
            self._run_event.clear()
            if self._run is not None:
                reader = self._reader(*self._run)
                if self._read_all(reader):
                    self._keep_up(reader)
                self._open_run.end()

    def _reader(self, ref: RunRef, reload: bool) -> Reader:
        """Return the cached reader of that run, or a new one."""
        cached = self._readers.pop(ref, None)
        reader = Reader(self._source, ref, redactor=self._redactor) if cached is None or reload else cached
        self._readers[ref] = reader
        while len(self._readers) > OPEN_RUNS:
            self._readers.popitem(last=False)
        return reader

    def _wanted(self) -> bool:
        """Whether the run being read is still the requested one."""
        return not self._run_event.is_set() and not self._throttle.stopped

    def _read_all(self, reader: Reader) -> bool:
        """Read to the end; return False if another run is requested first."""
        if not reader.more:
            self._deliver(reader.build(), None, asked=True)
        self._open_run.begin(reader)
        for run in reader.steps():
            self._deliver(run, starting_span(run), asked=True)
            self._throttle.wait_for_paint()
            if not self._wait_for_entry(reader, run):
                return False
        self._open_run.publish(reader)
        return self._wanted()

    def _wait_for_entry(self, reader: Reader, run: Run) -> bool:
        """Wait at the end of a preview until the run is entered; return False if another run is requested instead."""
        if len(run.spans) >= PREVIEW_SPANS and self._entered != reader.ref:
            self._open_run.end()
            while self._entered != reader.ref and self._wanted():
                self._read_on_event.wait()
                self._read_on_event.clear()
            self._open_run.begin(reader)
        return self._wanted()

    def _keep_up(self, reader: Reader) -> None:
        """Read on whenever the file changes, until another run is requested."""
        path = self._source.local_path(reader.ref.path)
        self._file_watch = FileWatch(
            path or reader.ref.path, local=path is not None, parts=_part_folders(reader.ref, path)
        )
        new, changed_at = False, time.monotonic()
        try:
            while self._wanted():
                if self._read_new(reader):
                    new, changed_at = True, time.monotonic()
                    self._open_run.publish(reader)
                if new and (reader.failure is None or time.monotonic() - changed_at >= STILL_SECONDS):
                    new = False
                    self._deliver_new(reader)
                else:
                    self._file_watch.wait(LOOK_UP_SECONDS)
        finally:
            self._file_watch.close()
            self._file_watch = None

    def _read_new(self, reader: Reader) -> bool:
        new = reader.read()
        while reader.more and not reader.lost and self._wanted():
            new |= reader.read()
        return new

    def _deliver_new(self, reader: Reader) -> None:
        run = reader.build()
        follows = self._follow and run.spans and self._body_seconds < SLOW_BODY_SECONDS
        self._deliver(run, run.spans[-1].id if follows else None)
        self._mailbox.wait_taken(SCREEN_SECONDS)

    def _deliver(self, run: Run, span_id: str | None, *, asked: bool = False) -> None:
        """Deliver a run with the body of the selected span and its assessment, for a single paint."""
        span = run.span(span_id) if span_id is not None else None
        began = time.perf_counter()
        body = run.load(span) if span is not None else None
        self._body_seconds = time.perf_counter() - began if span is not None else self._body_seconds
        assessment = at_once(run) if asked else None
        with self._mailbox.open(asked=asked) as mail:
            mail.runs[run.summary.ref] = run
            if assessment is not None:
                mail.assessments[run.summary.ref] = assessment
            if span is not None and body is not None:
                mail.put_body(run.summary.ref, span, body)

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


def _part_folders(ref: RunRef, path: str | None) -> list[str]:
    """Return the local folders that may contain other files of the run at `path`."""
    if path is None:
        return []
    try:
        folders = guard.part_folders(registry.load(ref.format), path)
    except (OSError, FormatError):  # reported when the file was listed
        return []
    return [os.path.join(os.path.dirname(path), folder) for folder in folders]


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

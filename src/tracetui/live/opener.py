"""Reads the run that is looked at, and reads on as it grows; loads bodies of its spans. Two threads, so that a body
never waits for a long run.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import Final

from tracetui.analysis.navigation import starting_span
from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.live.agenda import STILL_SECONDS
from tracetui.live.assessor import at_once
from tracetui.live.excerpt import read_excerpt
from tracetui.live.load import Reader
from tracetui.live.mail import Mailbox
from tracetui.live.traffic import Traffic
from tracetui.live.watching.file_watch import FileWatch
from tracetui.model import Body, Problem, Run, RunRef, Span
from tracetui.model.masked import unmasked
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.store.store import OPEN_RUNS

PREVIEW_SPANS: Final = 30_000
"""Spans of a run that are read for a preview; the rest is read when the run is entered."""
LOOK_UP_SECONDS: Final = 1.0
"""How often a run that is looked at is read on although nothing told that it grew."""
SCREEN_SECONDS: Final = 0.1
"""How long reading on waits for a screen that has not yet taken what was read before."""


class Opener:
    """Reads what the screen asks for. `read` and `load` are the bodies of two threads; nothing else blocks."""

    def __init__(self, source: Source, mailbox: Mailbox, traffic: Traffic, redactor: Redactor | None = None) -> None:
        self._source = source
        self._redactor = redactor
        self._mailbox = mailbox
        self._traffic = traffic
        self._run: tuple[RunRef, bool] | None = None
        """The run to read, and whether from its start."""
        self._entered: RunRef | None = None
        self._newest = False
        self._readers: OrderedDict[RunRef, Reader] = OrderedDict()
        """Runs that were read, so that reading on costs only what is new; used by the first thread alone."""
        self._body: tuple[Run, Span, bool] | Problem | None = None
        self._run_bell = threading.Event()
        self._read_on = threading.Event()
        self._body_bell = threading.Event()
        self._ear: FileWatch | None = None

    # ---- for the screen

    def open(self, ref: RunRef, *, anew: bool = False) -> None:
        """Read that run, and read on as it grows, in place of the one before; from its start if `anew`."""
        self._run = ref, anew
        self._run_bell.set()
        self._wake()

    def enter(self, ref: RunRef) -> None:
        """Read all of that run, if it is being read or held at the end of what a preview needs."""
        self._entered = ref
        self._read_on.set()

    def follow(self, on: bool) -> None:
        """Whether the newest span is looked at: its body then comes with the run."""
        self._newest = on

    def load_body(self, run: Run, span: Span, *, unmasked: bool = False) -> None:
        """Load the body of a span, as the trace has it if `unmasked`; a request that was not begun yet is replaced."""
        self._body = (run, span, unmasked)
        self._body_bell.set()

    def load_excerpt(self, problem: Problem) -> None:
        """Read the text around the place of a problem; a request that was not begun yet is replaced."""
        self._body = problem
        self._body_bell.set()

    def stop(self) -> None:
        """End both threads."""
        self._run_bell.set()
        self._body_bell.set()
        self._wake()

    def _wake(self) -> None:
        self._read_on.set()
        ear = self._ear
        if ear is not None:
            ear.wake()

    # ---- a thread that reads the run

    def read(self) -> None:
        """Read one run after the other, until everything is to end."""
        while self._run_bell.wait() and not self._traffic.stopped:
            self._run_bell.clear()
            if self._run is not None:
                reader = self._reader(*self._run)
                if self._read_all(reader):
                    self._keep_up(reader)

    def _reader(self, ref: RunRef, anew: bool) -> Reader:
        """The reader of that run: the one at hand, which has read much of it already, if there is one."""
        known = self._readers.pop(ref, None)
        reader = Reader(self._source, ref, redactor=self._redactor) if known is None or anew else known
        self._readers[ref] = reader
        while len(self._readers) > OPEN_RUNS:
            self._readers.popitem(last=False)
        return reader

    def _wanted(self) -> bool:
        """Whether the run that is read is still the one to be read."""
        return not self._run_bell.is_set() and not self._traffic.stopped

    def _read_all(self, reader: Reader) -> bool:
        """Read to the end; False if another run is wanted before."""
        if not reader.more:
            self._deliver(reader.build(), None, asked=True)
        for run in reader.steps():
            self._deliver(run, starting_span(run), asked=True)
            self._traffic.let_it_paint()
            if not self._hold(reader, run):
                return False
        return self._wanted()

    def _hold(self, reader: Reader, run: Run) -> bool:
        """Wait, where a preview has enough, until the run is entered; false if another run is wanted instead."""
        while len(run.spans) >= PREVIEW_SPANS and self._entered != reader.ref and self._wanted():
            self._read_on.wait()
            self._read_on.clear()
        return self._wanted()

    def _keep_up(self, reader: Reader) -> None:
        """Read on whenever the file changes, until another run is wanted."""
        path = self._source.local_path(reader.ref.path)
        self._ear = FileWatch(path or reader.ref.path, local=path is not None, parts=_parts(reader.ref, path))
        new, changed_at = False, time.monotonic()
        try:
            while self._wanted():
                if self._read_new(reader):
                    new, changed_at = True, time.monotonic()
                if new and (reader.failure is None or time.monotonic() - changed_at >= STILL_SECONDS):
                    new = False
                    self._deliver_new(reader)
                else:
                    self._ear.wait(LOOK_UP_SECONDS)
        finally:
            self._ear.close()
            self._ear = None

    def _read_new(self, reader: Reader) -> bool:
        new = reader.read()
        while reader.more and not reader.lost and self._wanted():
            new |= reader.read()
        return new

    def _deliver_new(self, reader: Reader) -> None:
        run = reader.build()
        self._deliver(run, run.spans[-1].id if self._newest and run.spans else None)
        self._mailbox.wait_taken(SCREEN_SECONDS)

    def _deliver(self, run: Run, span_id: str | None, *, asked: bool = False) -> None:
        """Put a run in the box, with the body of what is looked at, and how it went: one paint shows all."""
        span = run.span(span_id) if span_id is not None else None
        body = run.load(span) if span is not None else None
        assessment = at_once(run) if asked else None
        with self._mailbox.open(asked=asked) as mail:
            mail.runs[run.summary.ref] = run
            if assessment is not None:
                mail.assessments[run.summary.ref] = assessment
            if span is not None and body is not None:
                mail.put_body(run.summary.ref, span, body)

    # ---- a thread that loads bodies

    def load(self) -> None:
        """Load one body after the other, until everything is to end."""
        while self._body_bell.wait() and not self._traffic.stopped:
            self._body_bell.clear()
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


def _parts(ref: RunRef, path: str | None) -> list[str]:
    """The folders on this machine in which other files of the run at `path` may be."""
    if path is None:
        return []
    try:
        folders = guard.part_folders(registry.load(ref.format), path)
    except (OSError, FormatError):  # reported when the file was listed
        return []
    return [os.path.join(os.path.dirname(path), folder) for folder in folders]

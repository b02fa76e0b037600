"""Start the worker threads and pass the screen's requests to them.

Nothing the user waits for queues behind a scan: one thread walks, counts and watches, one reads and tails the open
run, one loads span bodies, one compares runs and one runs jobs that read many. Results go to a mailbox.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tracetui import masking
from tracetui.formats import registry
from tracetui.live.lister import Lister
from tracetui.live.load import read_run
from tracetui.live.mailbox import Mail, Mailbox, Throttle
from tracetui.live.opener import Opener
from tracetui.live.readers import Readers
from tracetui.model import Problem, Run, RunRef, RunSummary, Span
from tracetui.sources.base import Source
from tracetui.sources.locations import MultiHostSource

if TYPE_CHECKING:
    from tracetui.analysis.audit import Finding
    from tracetui.analysis.contrast import Contrast
    from tracetui.analysis.triage import Group
    from tracetui.live.differ import Differ
    from tracetui.live.jobs import Job, JobRunner
    from tracetui.live.opener import Assessor

REST_SECONDS: Final = 1.0
"""Idle time after which background work may start."""
SWITCH_SECONDS: Final = 0.0005
"""Thread switch interval. A key press passes through three threads; this is a tenth of Python's default."""


class Engine:
    """Owns the threads. Every method may be called from the UI loop; none of them blocks."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        *,
        only: str | None = None,
        events: bool = True,
        cache_limit: int = 0,
    ) -> None:
        """Read `roots` of `source`, every file as the format `only` if given. Poll for changes if not `events`.

        Results of the deep pass are stored in the user's cache, of at most `cache_limit` bytes.
        """
        self._mailbox = Mailbox()
        self._throttle = Throttle()
        forced = registry.load(only) if only else None
        self.readers = Readers(source, masking.current())
        self._lister = Lister(
            source,
            roots,
            forced,
            self._mailbox,
            self._throttle,
            events=events,
            cache_limit=cache_limit,
            readers=self.readers,
        )
        self._opener = Opener(source, self._mailbox, self._throttle, self.readers)
        self._source = source
        self.cache_limit = cache_limit
        """Bytes that the user's cache may take; 0: it isn't used."""

    def start(self) -> None:
        """Start scanning and taking requests."""
        sys.setswitchinterval(SWITCH_SECONDS)
        for work in (self._lister.run, self._opener.read, self._opener.load):
            self._begin(work)

    def stop(self) -> None:
        """Signal the daemon threads to end, without waiting for them."""
        self._throttle.stop()
        self._lister.stop()
        self._opener.stop()
        if "differ" in vars(self):
            self.differ.stop()
        if "job_runner" in vars(self):
            self.job_runner.stop()
        if "assessor" in vars(self):
            self.assessor.stop()

    @cached_property
    def differ(self) -> Differ:
        """Compares runs; its methods return at once. Imported on first use."""
        from tracetui.live.differ import Differ

        differ = Differ(self._source, self._mailbox, self._throttle)
        self._begin(differ.run)
        return differ

    @cached_property
    def job_runner(self) -> JobRunner:
        """Runs jobs that read many runs; its methods return at once. Imported on first use."""
        from tracetui.live.jobs import JobRunner

        runner = JobRunner(self._source, self._mailbox, self._throttle)
        self._begin(runner.run)
        return runner

    @cached_property
    def assessor(self) -> Assessor:
        """Assesses runs; its methods return at once. Imported on first use."""
        from tracetui.live.opener import Assessor

        assessor = Assessor(self._mailbox, self._throttle)
        self._begin(assessor.run)
        return assessor

    def run_when_idle(self, work: Callable[[], None]) -> None:
        """Run `work` in its own thread once the screen is idle."""
        self._begin(lambda: None if self._throttle.wait_for_stop(REST_SECONDS) else work())

    def run_in_background(self, work: Callable[[], Callable[[], None]]) -> None:
        """Run `work` in its own thread, and call its result in the UI loop."""

        def done() -> None:
            callback = work()
            with self._mailbox.open(asked=True) as mail:
                mail.callbacks.append(callback)

        self._begin(done)

    def rest(self) -> None:
        """Wait while the app handles a key or mail; called often by what runs in the background."""
        self._throttle.wait_until_idle()

    def read(self, ref: RunRef) -> Run:
        """Read a whole run with exact, unmasked values. Blocks; use inside `run_in_background`.

        Raises `LinkLost`.
        """
        return read_run(self._source, ref)

    def record_lines(self, findings: Sequence[Finding]) -> dict[tuple[RunRef, str], int]:
        """Return the lines of the records of findings (`effects.record_lines`). Blocks, as `read` does."""
        from tracetui.live.effects import record_lines

        return record_lines(self._source, findings)

    def shared_features(self, runs: Sequence[RunSummary], groups: Iterable[Group]) -> dict[str, Contrast]:
        """Return the features shared by the runs of each cause (`causes.shared_features`). Blocks, as `read` does."""
        from tracetui.live.jobs import shared_features

        return shared_features(self._source, runs, groups)

    def _begin(self, work: Callable[[], None]) -> None:
        threading.Thread(target=self._guard, args=(work,), daemon=True).start()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as bug:  # the app raises our own bug and ends with it
            if not self._throttle.stopped:
                with self._mailbox.open() as mail:
                    mail.failure = bug

    # ---- mail

    def bind(self, notify: Callable[[], None]) -> None:
        """Call `notify` whenever the mailbox becomes non-empty; at once if it already is."""
        self._mailbox.bind(notify)

    def first_painted(self) -> None:
        """Report the first paint: the workers wait for it, because two threads that compute take twice as long each."""
        self._throttle.first_painted()

    def collect(self) -> Mail:
        """Return all mail since the last call."""
        return self._mailbox.collect()

    @property
    def urgent(self) -> bool:
        """Whether the mailbox contains an answer to a request."""
        return self._mailbox.urgent

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for mail; return True if there is some."""
        return self._mailbox.wait(seconds)

    def pause(self) -> None:
        """Suspend the scan while the app handles mail, until `resume`."""
        self._throttle.pause()

    def resume(self) -> None:
        """Go on with the scan."""
        self._throttle.resume()

    def key(self) -> None:
        """Make the workers yield to a key press."""
        self._throttle.yield_to_key()

    # ---- requests

    def rescan(self) -> None:
        """Walk everything again."""
        self._lister.rescan()

    @property
    def has_database(self) -> bool:
        """Whether runs of a database are listed."""
        return isinstance(self._source, MultiHostSource) and self._source.has_database

    def narrow(self, query: str) -> tuple[str, ...]:
        """Ask databases for runs that match a query, beside the newest ones; return the parts that they can't test."""
        if not (isinstance(self._source, MultiHostSource) and self._source.has_database):
            return ()
        from tracetui.store.query import QueryError
        from tracetui.store.query.plan import candidates

        try:
            candidate_runs = candidates(query)
        except QueryError:  # it is being typed
            return ()
        self._source.narrow(candidate_runs.condition, beside=True)
        return candidate_runs.rest

    def open(self, ref: RunRef, *, reload: bool = False) -> None:
        """Read and tail that run instead of the previous one; from its start if `reload`."""
        self._pause_job()
        self._opener.open(ref, reload=reload)

    def enter(self, ref: RunRef) -> None:
        """Read the rest of that run if reading stopped at the end of the preview."""
        self._pause_job()
        self._opener.enter(ref)

    def follow(self, on: bool) -> None:
        """Set whether the body of the newest span is delivered with the open run."""
        self._opener.follow(on)

    def load_body(self, run: Run, span: Span, *, unmasked: bool = False) -> None:
        """Load the body of a span, replacing a request that has not started.

        If `unmasked`, it comes as the trace has it, in `Mail.unmasked`: `views.detail.tabs` shows one value of it.
        """
        self._pause_job()
        self._opener.load_body(run, span, unmasked=unmasked)

    def load_excerpt(self, problem: Problem) -> None:
        """Read the text around a problem, replacing a request that has not started."""
        self._opener.load_excerpt(problem)

    def start_job(self, job: Job) -> None:
        """Run a job in place of the current one; `Mail.progress` reports on it."""
        self.job_runner.start(job)

    def stop_job(self) -> None:
        """Cancel the current job. It reports no further progress."""
        if "job_runner" in vars(self):
            self.job_runner.start(None)

    def _pause_job(self) -> None:
        if "job_runner" in vars(self):
            self.job_runner.pause()

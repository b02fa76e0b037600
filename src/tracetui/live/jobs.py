"""Run jobs that read or follow many runs: one thread, one job at a time.

A job yields to everything else: while the app handles mail, and for a moment after each key that causes a read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.errors import TracetuiError
from tracetui.live.load import Reader
from tracetui.live.mailbox import Mailbox
from tracetui.live.throttle import Throttle
from tracetui.model import Run, RunRef
from tracetui.sources.base import LinkLost, Source

NEWS_SECONDS: Final = 0.05
"""How often progress is reported."""
REST_SECONDS: Final = 0.1
"""Pause after a key that causes another read."""


class Step(NamedTuple):
    """The result of one step of a job."""

    new: tuple[Any, ...] = ()
    """New results, to add to earlier ones."""
    done: int = 0
    """Files or runs finished."""
    more: bool = False
    """Whether the job ended early because there are too many results."""


class Job(msgspec.Struct, frozen=True, eq=False):
    """A job that reads many runs. Compared by identity."""

    name: str
    """``grep``, ``statistics`` or ``contrast``."""
    total: int
    """Files or runs to read."""
    work: Callable[[Source], Generator[Step, None, None]]
    """Does the job in small steps. Closing the generator ends it."""
    result: Callable[[], Any] | None = None
    """Computes the result so far, for a job with a single result."""


class JobProgress(msgspec.Struct, frozen=True):
    """Progress of a job."""

    job: Job
    new: tuple[Any, ...] = ()
    """Hits and problems since the mailbox was last emptied."""
    result: Any = None
    """Latest result of a job with a single result."""
    done: int = 0
    total: int = 0
    finished: bool = False
    more: bool = False
    """The job ended early because there are too many results."""
    lost: str = ""
    """Why the source became unreachable, which ended the job early."""

    def advance(self, step: Step) -> JobProgress:
        """Return this plus one step."""
        return msgspec.structs.replace(self, new=self.new + step.new, done=self.done + step.done, more=step.more)

    def with_unread(self, before: JobProgress | None) -> JobProgress:
        """Return this plus the unread results of the same job."""
        if before is None or before.job is not self.job:
            return self
        return msgspec.structs.replace(self, new=before.new + self.new)


def by_file(refs: Sequence[RunRef]) -> list[RunRef]:
    """Return these runs grouped by file, in order of first appearance, so that each file is opened only once."""
    progress: dict[str, list[RunRef]] = {}
    for ref in refs:
        progress.setdefault(ref.path, []).append(ref)
    return [ref for same in progress.values() for ref in same]


class JobRunner:
    """`run` is the thread's body; every other method may be called by the screen and returns at once."""

    def __init__(self, source: Source, mailbox: Mailbox, throttle: Throttle) -> None:
        self._source, self._mailbox, self._throttle = source, mailbox, throttle
        self._event = threading.Event()
        self._job: Job | None = None
        self._paused_until = 0.0

    # ---- for the screen

    def start(self, job: Job | None) -> None:
        """Run this job instead of the current one; None: none."""
        self._job = job
        self._event.set()

    def pause(self) -> None:
        """Pause briefly: the screen reads something."""
        self._paused_until = time.monotonic() + REST_SECONDS

    def stop(self) -> None:
        """End the thread."""
        self._event.set()

    # ---- the thread

    def run(self) -> None:
        """Run one job after the other until stopped."""
        while self._event.wait() and not self._throttle.stopped:
            self._event.clear()
            if self._job is not None:
                self._run_job(self._job)

    def _run_job(self, job: Job) -> None:
        progress, posted = JobProgress(job, total=job.total), float("-inf")
        with closing(job.work(self._source)) as steps:
            try:
                for step in steps:
                    if not self._wanted(job):
                        return
                    progress = progress.advance(step)
                    if time.monotonic() - posted >= NEWS_SECONDS and (progress.new or step.done):
                        self._post(progress)
                        progress, posted = replace(progress, new=()), time.monotonic()
                    self._yield()
            except (LinkLost, TracetuiError) as error:
                progress = replace(progress, lost=str(error))
        self._post(replace(progress, finished=True), asked=True)

    def _wanted(self, job: Job) -> bool:
        return self._job is job and not self._throttle.stopped

    def _yield(self) -> None:
        self._throttle.wait_until_idle()
        while (left := self._paused_until - time.monotonic()) > 0 and not self._event.wait(left):
            pass

    def _post(self, progress: JobProgress, *, asked: bool = False) -> None:
        if progress.job.result is not None:
            progress = replace(progress, result=progress.job.result())
        with self._mailbox.open(asked=asked) as mail:
            if self._wanted(progress.job):
                mail.progress = progress.with_unread(mail.progress)


# ---- follow several runs


MAX_WATCHED: Final = 24
"""Runs that are read on at once."""


class WatchedRuns:
    """The readers of some runs, which stay open from job to job. Jobs of one object must not overlap."""

    def __init__(self) -> None:
        self._readers: dict[RunRef, Reader] = {}

    def job(self, refs: Sequence[RunRef]) -> Job:
        """Return a job that reads these runs to their current end; `JobProgress.new` has each changed `Run`.

        The readers of other runs are dropped. At most `MAX_WATCHED` runs are read.
        """
        wanted = refs[:MAX_WATCHED]

        def work(source: Source) -> Generator[Step, None, None]:
            for ref in self._readers.keys() - {*wanted}:
                del self._readers[ref]
            for ref in wanted:
                reader = self._readers.get(ref)
                changed = reader is None
                if reader is None:
                    reader = self._readers[ref] = Reader(source, ref)
                changed |= reader.read()
                while reader.more and not reader.lost:
                    yield Step()
                    changed |= reader.read()
                if reader.lost:
                    raise LinkLost(reader.lost)
                new: tuple[Run, ...] = (reader.build(),) if changed else ()
                yield Step(new, done=1)

        return Job("watch", len(wanted), work)

"""Does what reads many runs (full-text search, statistics, contrast): one thread, one job at a time.

Nothing of it is in anybody's way: it rests while the app takes mail in, and for a moment after each key that makes
something else read.
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
from tracetui.live.mailbox import Mailbox
from tracetui.live.throttle import Traffic
from tracetui.model import RunRef
from tracetui.sources.base import LinkLost, Source

NEWS_SECONDS: Final = 0.05
"""How often it is told what was found."""
REST_SECONDS: Final = 0.1
"""How long it rests after a key that makes something else read."""


class Step(NamedTuple):
    """A little of a job: what it brought."""

    new: tuple[Any, ...] = ()
    """What was found, to be added to what was found before."""
    done: int = 0
    """How many files or runs it finished."""
    more: bool = False
    """There is more to find than anybody wants; the job ends here."""


class Job(msgspec.Struct, frozen=True, eq=False):
    """Something that reads many runs. Each is another, though it asks the same."""

    name: str
    """``grep``, ``statistics`` or ``contrast``."""
    total: int
    """Files or runs that it is to read."""
    work: Callable[[Source], Generator[Step, None, None]]
    """Does it, a little at a time. Closing the generator ends it."""
    result: Callable[[], Any] | None = None
    """What is known so far as a whole, where that is not what was found one by one."""


class JobProgress(msgspec.Struct, frozen=True):
    """How far a job is."""

    job: Job
    new: tuple[Any, ...] = ()
    """What was found since the mailbox was last emptied: hits, problems."""
    result: Any = None
    """The newest whole answer of a job that has one."""
    done: int = 0
    total: int = 0
    finished: bool = False
    more: bool = False
    """It ended early: more was found than anybody wants."""
    lost: str = ""
    """It ended early: why the source could not be reached."""

    def and_then(self, step: Step) -> JobProgress:
        """This, and one step more."""
        return msgspec.structs.replace(self, new=self.new + step.new, done=self.done + step.done, more=step.more)

    def after(self, before: JobProgress | None) -> JobProgress:
        """This, with what nobody has taken yet of the same job."""
        if before is None or before.job is not self.job:
            return self
        return msgspec.structs.replace(self, new=before.new + self.new)


def by_file(refs: Sequence[RunRef]) -> list[RunRef]:
    """These runs, each file's where its first one is: a file of many is opened once for all that are read in turn."""
    found: dict[str, list[RunRef]] = {}
    for ref in refs:
        found.setdefault(ref.path, []).append(ref)
    return [ref for same in found.values() for ref in same]


class Surveyor:
    """`run` is the body of a thread; every other method may be called by the screen and returns at once."""

    def __init__(self, source: Source, mailbox: Mailbox, traffic: Traffic) -> None:
        self._source, self._mailbox, self._traffic = source, mailbox, traffic
        self._bell = threading.Event()
        self._job: Job | None = None
        self._rests_until = 0.0

    # ---- for the screen

    def begin(self, job: Job | None) -> None:
        """Do this in place of what is being done; None: nothing."""
        self._job = job
        self._bell.set()

    def give_way(self) -> None:
        """Rest for a moment: something is read that is looked at."""
        self._rests_until = time.monotonic() + REST_SECONDS

    def stop(self) -> None:
        """End the thread."""
        self._bell.set()

    # ---- the thread

    def run(self) -> None:
        """Do one job after the other, until everything is to end."""
        while self._bell.wait() and not self._traffic.stopped:
            self._bell.clear()
            if self._job is not None:
                self._do(self._job)

    def _do(self, job: Job) -> None:
        found, told = JobProgress(job, total=job.total), float("-inf")
        with closing(job.work(self._source)) as steps:
            try:
                for step in steps:
                    if not self._wanted(job):
                        return
                    found = found.and_then(step)
                    if time.monotonic() - told >= NEWS_SECONDS and (found.new or step.done):
                        self._tell(found)
                        found, told = replace(found, new=()), time.monotonic()
                    self._rest()
            except (LinkLost, TracetuiError) as error:
                found = replace(found, lost=str(error))
        self._tell(replace(found, finished=True), asked=True)

    def _wanted(self, job: Job) -> bool:
        return self._job is job and not self._traffic.stopped

    def _rest(self) -> None:
        self._traffic.give_way()
        while (left := self._rests_until - time.monotonic()) > 0 and not self._bell.wait(left):
            pass

    def _tell(self, found: JobProgress, *, asked: bool = False) -> None:
        if found.job.result is not None:
            found = replace(found, result=found.job.result())
        with self._mailbox.open(asked=asked) as mail:
            if self._wanted(found.job):
                mail.survey = found.after(mail.survey)

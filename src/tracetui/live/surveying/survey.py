"""Does what reads many runs (full-text search, statistics, contrast): one thread, one job at a time.

Nothing of it is in anybody's way: it rests while the app takes mail in, and for a moment after each key that makes
something else read.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Final

from msgspec.structs import replace

from tracetui.errors import TracetuiError
from tracetui.live.mail import Mailbox
from tracetui.live.surveying.surveyed import Job, Survey
from tracetui.live.traffic import Traffic
from tracetui.sources.base import LinkLost, Source

NEWS_SECONDS: Final = 0.05
"""How often it is told what was found."""
REST_SECONDS: Final = 0.1
"""How long it rests after a key that makes something else read."""


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
        found, told = Survey(job, total=job.total), float("-inf")
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

    def _tell(self, found: Survey, *, asked: bool = False) -> None:
        if found.job.result is not None:
            found = replace(found, result=found.job.result())
        with self._mailbox.open(asked=asked) as mail:
            if self._wanted(found.job):
                mail.survey = found.after(mail.survey)

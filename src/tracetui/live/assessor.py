"""Assesses the open run in a low-priority thread."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from tracetui.analysis import prices
from tracetui.live.mailbox import Mailbox
from tracetui.live.throttle import Throttle
from tracetui.model import Body, Run, Span
from tracetui.model.masked import unmasked

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment

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

    found = assess(run, unmasked(run).load, max_calls=_FEW_CALLS, max_bytes=_FEW_BYTES)
    return found if not found.left_out else None


class Assessor:
    """Assesses the open run. `run` is the thread's body; the other methods are for the UI thread and don't block."""

    def __init__(self, mailbox: Mailbox, throttle: Throttle) -> None:
        self._mailbox, self._throttle = mailbox, throttle
        self._bell = threading.Event()
        self._wanted: Run | None = None

    # ---- for the screen

    def assess(self, run: Run) -> None:
        """Assess this run instead of the previous one."""
        self._wanted = run
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
            run, began = self._wanted, time.monotonic()
            if run is not None and self._assess(run):
                self._rest(run, SHARE * (time.monotonic() - began))

    def _is_looked_at(self, run: Run) -> bool:
        wanted = self._wanted
        return wanted is not None and wanted.summary.ref == run.summary.ref and not self._throttle.stopped

    def _rest(self, run: Run, seconds: float) -> None:
        """Delay newer states of the same run."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self._is_looked_at(run):
            self._bell.wait(left)
            self._bell.clear()
        if self._wanted is not run:
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
            found = assess(run, load)
        except _UnwantedError:
            return False
        with self._mailbox.open() as mail:
            mail.assessments[run.summary.ref] = found
        return True


class _UnwantedError(Exception):
    """Another run was requested."""

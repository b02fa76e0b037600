"""Starts the workers, each in a daemon thread of its own, and passes on what the screen asks of them.

What the user waits for never queues behind a scan: one thread walks, counts and watches, one reads the run that is
open and follows it, one loads bodies of spans, one compares runs, one does what reads many. What they make is in a
mailbox.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tracetui.formats import registry
from tracetui.live.lister import Lister
from tracetui.live.load import read_run
from tracetui.live.mail import Mail, Mailbox
from tracetui.live.opener import Opener
from tracetui.live.traffic import Traffic
from tracetui.model import Problem, Run, RunRef, RunSummary, Span
from tracetui.sources.base import Source
from tracetui.views import masking

if TYPE_CHECKING:
    from tracetui.analysis.triage import Group
    from tracetui.live.assessor import Assessor
    from tracetui.live.comparing.differ import Differ
    from tracetui.live.surveying.survey import Surveyor
    from tracetui.live.surveying.surveyed import Job
    from tracetui.store.contrast import Contrast

REST_SECONDS: Final = 1.0
"""After which a screen on which all is listed has come to rest."""
SWITCH_SECONDS: Final = 0.0005
"""How long a thread that computes keeps the others waiting: a key passes through three, a tenth of the usual each."""


class Engine:
    """Owns the threads. Every method may be called from the UI loop; none of them blocks."""

    def __init__(self, source: Source, roots: Sequence[str], *, only: str | None = None, events: bool = True) -> None:
        """Read `roots` of `source`, every file as the format `only` if that is given; poll if not `events`."""
        self._mailbox = Mailbox()
        self._traffic = Traffic()
        forced = registry.load(only) if only else None
        self._lister = Lister(source, roots, forced, self._mailbox, self._traffic, events=events)
        self._opener = Opener(source, self._mailbox, self._traffic, masking.current())
        self._source = source

    def start(self) -> None:
        """Begin to scan and to take requests."""
        sys.setswitchinterval(SWITCH_SECONDS)
        for work in (self._lister.run, self._opener.read, self._opener.load):
            self._begin(work)

    def stop(self) -> None:
        """Tell the threads to end; does not wait for them (they are daemons)."""
        self._traffic.stop()
        self._lister.stop()
        self._opener.stop()
        if "differ" in vars(self):
            self.differ.stop()
        if "surveyor" in vars(self):
            self.surveyor.stop()
        if "assessor" in vars(self):
            self.assessor.stop()

    @cached_property
    def differ(self) -> Differ:
        """Compares runs; its methods return at once. What it takes is loaded when it is first asked for."""
        from tracetui.live.comparing.differ import Differ

        differ = Differ(self._source, self._mailbox, self._traffic)
        self._begin(differ.run)
        return differ

    @cached_property
    def surveyor(self) -> Surveyor:
        """Does what reads many runs; its methods return at once. What it takes is loaded when it is first asked for."""
        from tracetui.live.surveying.survey import Surveyor

        surveyor = Surveyor(self._source, self._mailbox, self._traffic)
        self._begin(surveyor.run)
        return surveyor

    @cached_property
    def assessor(self) -> Assessor:
        """Finds out how runs went; its methods return at once. What it takes is loaded when it is first asked for."""
        from tracetui.live.assessor import Assessor

        assessor = Assessor(self._mailbox, self._traffic)
        self._begin(assessor.run)
        return assessor

    def later(self, work: Callable[[], None]) -> None:
        """Do something that nobody waits for, in a thread of its own, when the screen has come to rest."""
        self._begin(lambda: None if self._traffic.rest(REST_SECONDS) else work())

    def apart(self, work: Callable[[], Callable[[], None]]) -> None:
        """Do something that the reader waits for, in a thread of its own; what it returns is called in the UI loop."""

        def done() -> None:
            then = work()
            with self._mailbox.open(asked=True) as mail:
                mail.then.append(then)

        self._begin(done)

    def read(self, ref: RunRef) -> Run:
        """All of a run, exactly as the trace has it. It takes as long as it takes: for what is done `apart`.

        Raises `LinkLost`.
        """
        return read_run(self._source, ref)

    def shared_by(self, runs: Sequence[RunSummary], groups: Iterable[Group]) -> dict[str, Contrast]:
        """What the runs of each signature share (`causes.shared_by`); as `read`, for what is done `apart`."""
        from tracetui.live.surveying.causes import shared_by

        return shared_by(self._source, runs, groups)

    def _begin(self, work: Callable[[], None]) -> None:
        threading.Thread(target=self._guard, args=(work,), daemon=True).start()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as bug:  # hand our own bug to the app, which ends with it
            if not self._traffic.stopped:
                with self._mailbox.open() as mail:
                    mail.failure = bug

    # ---- mail

    def bind(self, notify: Callable[[], None]) -> None:
        """Call `notify` whenever the mailbox turns full; at once if it is."""
        self._traffic.bound()
        self._mailbox.bind(notify)

    def collect(self) -> Mail:
        """Everything that arrived since the last call."""
        return self._mailbox.collect()

    @property
    def urgent(self) -> bool:
        """Whether there is mail that was asked for."""
        return self._mailbox.urgent

    def wait(self, seconds: float) -> bool:
        """Wait at most so long for mail; True if there is some."""
        return self._mailbox.wait(seconds)

    def pause(self) -> AbstractContextManager[None]:
        """Hold the scan back while the app takes mail in."""
        return self._traffic.pause()

    def key(self) -> None:
        """A key was pressed: the workers leave the machine to it for a moment."""
        self._traffic.make_way()

    # ---- requests

    def rescan(self) -> None:
        """Walk everything again."""
        self._lister.rescan()

    def open(self, ref: RunRef, *, anew: bool = False) -> None:
        """Read that run, and read on as it grows, in place of the one before; from its start if `anew`."""
        self._keys_first()
        self._opener.open(ref, anew=anew)

    def enter(self, ref: RunRef) -> None:
        """Read all of that run, if it is being read or held at the end of what a preview needs."""
        self._keys_first()
        self._opener.enter(ref)

    def follow(self, on: bool) -> None:
        """Whether the newest span of the open run is looked at: its body then comes with the run."""
        self._opener.follow(on)

    def load_body(self, run: Run, span: Span, *, unmasked: bool = False) -> None:
        """Load the body of a span; a request that was not begun yet is replaced.

        If `unmasked`, it comes as the trace has it, in `Mail.unmasked`: `views.reveal` shows one value of it.
        """
        self._keys_first()
        self._opener.load_body(run, span, unmasked=unmasked)

    def load_excerpt(self, problem: Problem) -> None:
        """Read the text around the place of a problem; a request that was not begun yet is replaced."""
        self._opener.load_excerpt(problem)

    def survey(self, job: Job) -> None:
        """Do a job that reads many runs, in place of the one before; `Mail.survey` tells how far it is."""
        self.surveyor.begin(job)

    def stop_survey(self) -> None:
        """End the job that reads many runs. Nothing more is told of it."""
        if "surveyor" in vars(self):
            self.surveyor.begin(None)

    def _keys_first(self) -> None:
        if "surveyor" in vars(self):
            self.surveyor.give_way()

"""Requests and results exchanged by the UI loop and the workers, and the mailbox for the results.

The app also throttles the workers: before the first paint, after a key press and while it handles mail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from tracetui.live.scan import ScannedFile
from tracetui.model import Body, Run, RunRef, Span
from tracetui.store.store import OPEN_BODIES
from tracetui.text import Clean

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.context_feed import RunContext
    from tracetui.analysis.diff_description import DiffDescription
    from tracetui.analysis.step_diff import Look
    from tracetui.diff.comparison import Diff
    from tracetui.live.jobs import JobProgress


# ---- requests, and the small answers


class Compare(msgspec.Struct, frozen=True):
    """Request: compare B with A. `relation` is B's relation to A; `strict` ignores nothing. Answered by a growing
    `Diff` until that is complete.
    """

    a: RunRef
    b: RunRef
    relation: str | None = None
    strict: bool = False


class LookAt(msgspec.Struct, frozen=True):
    """Request: compare two steps of runs under comparison, by position; None on the side without the step."""

    of: Compare
    a: int | None
    b: int | None
    tab: str
    raw: bool = False
    """Whether to compare the values as recorded instead of messages."""


class Describe(msgspec.Struct, frozen=True):
    """The changes of a comparison in words, answered by `DiffDescription` with the first difference and at the end."""

    of: Compare


class Calls(msgspec.Struct, frozen=True):
    """Request: compare the inputs of two model calls of one run, by span id, the earlier first."""

    run: RunRef
    a: str
    b: str


class FindDivergence(msgspec.Struct, frozen=True):
    """Request: find where two runs first differ. Answered once, by a `Divergence`."""

    a: RunRef
    b: RunRef
    relation: str | None = None


class Divergence(msgspec.Struct, frozen=True):
    """Whether two runs are the same; if not, a short description of the first difference."""

    same: bool
    label: Clean = Clean("")
    """The step and what changed: ``step 4 gpt-4o · system prompt changed``."""
    change: Clean = Clean("")
    """What changed: ``system prompt changed``."""
    step: str = ""
    """The step of the difference, as `store.address` names it."""


class ReadFailure(msgspec.Struct, frozen=True):
    """Why a run could not be read, not cleaned."""

    why: str


Ask: TypeAlias = Compare | Describe | LookAt | Calls | FindDivergence

Answer: TypeAlias = "Diff | DiffDescription | Look | Divergence | ReadFailure"


class Excerpt(msgspec.Struct, frozen=True):
    """Bytes of a file from `offset`; `at` is the index of the problem in them, None if the problem names no byte."""

    data: bytes = b""
    offset: int = 0
    at: int | None = None
    size: int = 0
    """Size of the whole file in bytes."""


class WatchState(msgspec.Struct, frozen=True):
    """How the directory is watched."""

    mode: str = ""
    """``events``, ``polling``, or empty before watching starts."""
    reason: str = ""
    """Why it polls."""
    folders: int = 0
    files: int = 0
    lost: str = ""
    """Why the source is unreachable; its last state stays."""


# ---- the mailbox


class Mail(msgspec.Struct):
    """Everything delivered since the mailbox was last emptied."""

    files: list[ScannedFile] = []
    runs: dict[RunRef, Run] = {}
    """Newest state of each run that was read."""
    bodies: dict[tuple[RunRef, str], tuple[Span, Body]] = {}
    """Bodies by run and span id, with the span version each belongs to."""
    unmasked: tuple[RunRef, Span, Body] | None = None
    """The unmasked body that was requested, to reveal one value. It is not cached."""
    excerpts: dict[str, Excerpt] = {}
    """Text around a problem, by path of the file."""
    diffs: dict[Ask, Answer] = {}
    """Newest answer to each diff request."""
    assessments: dict[RunRef, Assessment] = {}
    """Assessments of runs that were read."""
    contexts: dict[RunRef, RunContext] = {}
    """Contexts of runs that were read, as far as they are."""
    callbacks: list[Callable[[], None]] = []
    """Callbacks for the UI loop, from `Engine.run_in_background`."""
    progress: JobProgress | None = None
    """Progress of the current job."""
    watching: WatchState | None = None
    """The watch state, if it changed."""
    seen: int = 0
    """Files processed so far by the current stage."""
    total: int | None = None
    """Files to process; None while the walk is running."""
    asked: bool = False
    """Whether it answers a request."""
    stage: str = ""
    """``list``, ``deep``, or empty when done."""
    listed: bool = False
    """The list stage is complete: a file it did not find does not exist."""
    failure: BaseException | None = None
    """A bug in a worker, for the app to raise."""

    def put_body(self, ref: RunRef, span: Span, body: Body) -> None:
        """Add a body; keep at most `OPEN_BODIES`."""
        self.bodies[ref, span.id] = span, body
        while len(self.bodies) > OPEN_BODIES:
            del self.bodies[next(iter(self.bodies))]


class Mailbox:
    """One mailbox for all workers. Calls `notify` once when it becomes non-empty."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mail = Mail()
        self._full = False
        self._arrived = threading.Event()
        self._taken = threading.Event()
        self._taken.set()
        self._notify: Callable[[], None] | None = None

    def bind(self, notify: Callable[[], None]) -> None:
        """Call `notify` whenever the box becomes non-empty; at once if it already is."""
        with self._lock:
            self._notify = notify
            full = self._full
        if full:
            notify()

    @contextmanager
    def open(self, *, asked: bool = False) -> Iterator[Mail]:
        """Add mail. If it was `asked` for, notify in any case."""
        with self._lock:
            yield self._mail
            ring, self._full = asked or not self._full, True
            self._mail.asked |= asked
            self._arrived.set()
            self._taken.clear()
            notify = self._notify
        if ring and notify is not None:
            notify()

    def collect(self) -> Mail:
        """Return all mail since the last call."""
        with self._lock:
            mail, self._mail, self._full = self._mail, Mail(stage=self._mail.stage), False
            self._arrived.clear()
            self._taken.set()
        return mail

    @property
    def urgent(self) -> bool:
        """Whether it contains an answer to a request."""
        with self._lock:
            return self._mail.asked

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for mail; return True if there is some."""
        return seconds > 0 and self._arrived.wait(seconds)

    def wait_taken(self, seconds: float) -> bool:
        """Wait up to `seconds` until the mail is collected; return True if it was. Keeps workers from outrunning the
        screen.
        """
        return self._taken.wait(seconds)


# ---- pausing the workers

PAINT_SECONDS: Final = 0.05
"""Duration of a paint; computing meanwhile would only slow it down."""
PATIENCE_SECONDS: Final = 0.5
"""Longest wait for an app that does not resume the workers."""
KEY_SECONDS: Final = 0.015
"""Pause after a key press, long enough to paint it. A key held down leaves the workers half of the time."""


class Throttle:
    """Shared by the app and its workers."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._painted = threading.Event()
        self._listed = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._key_until = 0.0

    @property
    def stopped(self) -> bool:
        """True once the workers must end."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Signal the workers to end, and release all that wait."""
        for event in (self._stopped, self._painted, self._listed, self._idle):
            event.set()

    def first_painted(self) -> None:
        """Report that the first rows are painted."""
        self._painted.set()

    def pause(self) -> None:
        """Suspend the workers until `resume`: two threads that compute take twice as long each."""
        self._idle.clear()

    def resume(self) -> None:
        """Let the workers go on."""
        self._idle.set()

    def yield_to_key(self) -> None:
        """Make the workers pause briefly: a key was pressed, or its answer is ready to paint."""
        self._key_until = time.monotonic() + KEY_SECONDS

    def wait_until_idle(self, bell: threading.Event | None = None) -> None:
        """Wait while the app is busy; after a key press only until `bell` is set. Costs next to nothing otherwise."""
        if not self._idle.is_set():
            self._idle.wait(PATIENCE_SECONDS)
        if (rest := self._key_until - time.monotonic()) > 0:
            (bell or self._stopped).wait(min(rest, KEY_SECONDS))

    def wait_for_paint(self) -> None:
        """Wait until the first rows are painted. Waits no longer than `PATIENCE_SECONDS`, and once."""
        self._painted.wait(PATIENCE_SECONDS)
        self._painted.set()

    def list_complete(self) -> None:
        """Report that every run is counted."""
        self._listed.set()

    def wait_for_list(self) -> None:
        """Wait until the complete list is painted. Waits no longer than `PATIENCE_SECONDS`."""
        if self._listed.wait(PATIENCE_SECONDS):
            self._stopped.wait(PAINT_SECONDS)

    def wait_for_stop(self, seconds: float) -> bool:
        """Wait `seconds`, or until the workers must end; return whether they must."""
        return self._stopped.wait(seconds)

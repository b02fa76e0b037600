"""What the workers hand to the UI loop, and the box that they put it in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tracetui.live.comparing.compared import Answer, Ask
from tracetui.live.excerpt import Excerpt
from tracetui.live.scan import Found
from tracetui.live.surveying.surveyed import Survey
from tracetui.model import Body, Run, RunRef, Span
from tracetui.store.store import OPEN_BODIES

if TYPE_CHECKING:  # what assesses is loaded when a run was read
    from tracetui.analysis.assessment import Assessment


class Watching(msgspec.Struct, frozen=True):
    """How the directory is kept up to date."""

    how: str = ""
    """``events``, ``polling``, or empty while nothing is watched yet."""
    why: str = ""
    """Why it is polled, in words."""
    folders: int = 0
    files: int = 0
    lost: str = ""
    """Why the source cannot be reached just now; what is known is kept."""


class Mail(msgspec.Struct):
    """What arrived since the mailbox was last emptied."""

    found: list[Found] = []
    runs: dict[RunRef, Run] = {}
    """The newest state of each run that was read."""
    bodies: dict[tuple[RunRef, str], tuple[Span, Body]] = {}
    """Bodies by run and span id, with the state of the span that they are of."""
    unmasked: tuple[RunRef, Span, Body] | None = None
    """The body that was asked for as the trace has it, to reveal a value of it. Nobody keeps it."""
    excerpts: dict[str, Excerpt] = {}
    """Text around the place of a problem, by path of the file."""
    diffs: dict[Ask, Answer] = {}
    """The newest answer to each question about two runs."""
    assessments: dict[RunRef, Assessment] = {}
    """How runs went that were read."""
    then: list[Callable[[], None]] = []
    """What is to be done in the UI loop now that something was done apart from it (`Engine.apart`)."""
    survey: Survey | None = None
    """How far the job is that reads many runs."""
    watching: Watching | None = None
    """How the directory is watched, where that changed."""
    seen: int = 0
    """Files looked at so far by the current stage."""
    total: int | None = None
    """Files to look at in all; None while the walk still goes on."""
    asked: bool = False
    """Something in it was asked for: the reader waits."""
    stage: str = ""
    """``list``, ``deep``, or empty when everything is known."""
    listed: bool = False
    """The list stage ended: what it did not find is not there."""
    failure: BaseException | None = None
    """A bug in a worker, to be raised by the app."""

    def put_body(self, ref: RunRef, span: Span, body: Body) -> None:
        """Add a body. No more are kept than the store would, however long nobody collects them."""
        self.bodies[ref, span.id] = span, body
        while len(self.bodies) > OPEN_BODIES:
            del self.bodies[next(iter(self.bodies))]


class Mailbox:
    """One box for all workers. `notify` is called once when it turns from empty to full, however much arrives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mail = Mail()
        self._full = False
        self._arrived = threading.Event()
        self._taken = threading.Event()
        self._taken.set()
        self._notify: Callable[[], None] | None = None

    def bind(self, notify: Callable[[], None]) -> None:
        """Call `notify` whenever the box turns full; at once if it is."""
        with self._lock:
            self._notify = notify
            full = self._full
        if full:
            notify()

    @contextmanager
    def open(self, *, asked: bool = False) -> Iterator[Mail]:
        """Put something in; `asked` if somebody waits for it: that rings in any case."""
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
        """Take out everything that arrived since the last call."""
        with self._lock:
            mail, self._mail, self._full = self._mail, Mail(stage=self._mail.stage), False
            self._arrived.clear()
            self._taken.set()
        return mail

    @property
    def urgent(self) -> bool:
        """Whether it holds what somebody waits for."""
        with self._lock:
            return self._mail.asked

    def wait(self, seconds: float) -> bool:
        """Wait at most so long until there is something; True if there is."""
        return seconds > 0 and self._arrived.wait(seconds)

    def wait_taken(self, seconds: float) -> bool:
        """Wait at most so long until it was emptied, True if it was: no worker need be faster than the screen."""
        return self._taken.wait(seconds)

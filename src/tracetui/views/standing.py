"""The state of a run, with the same sign, style and words on every screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis.liveness import SessionState, State, Turn, session_state
from tracetui.masking import one_line
from tracetui.model import RunSummary, Status
from tracetui.text import Clean
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.scores import run_sign, status_word

StateOf = Callable[[RunSummary], State]
"""Returns the liveness state of a run."""

_TURNS: Final = {
    Turn.RUNNING: (Status.RUNNING, "status.running"),
    Turn.QUIET: (Status.RUNNING, "status.running"),
    Turn.STALLED: (Status.RUNNING, "status.warn"),
    Turn.WAITING: (Status.PAUSED, "status.paused"),
    Turn.DONE: (Status.OK, "sec"),
    Turn.INTERRUPTED: (Status.CANCELLED, "sec"),
}
"""For the state of a session: the status that the sign is for, and the style."""


class Standing(NamedTuple):
    """The displayed state of a run."""

    status: Status
    """Status that the sign is for."""
    sign: Clean
    style: str
    words: Clean
    """``ok``, ``wrong answer``, ``stalled?``, ``~running: Bash 3m``, ``~waiting for you``."""
    by_last_event: bool
    """Whether it is inferred from the last event: the state of a session or of an open call."""

    @property
    def word(self) -> str:
        """The words without the open call."""
        return self.words.partition(":")[0]


StandingOf = Callable[[RunSummary, Glyphs], Standing]


def standing_of(run: RunSummary, state: State, now: float | None, glyphs: Glyphs = UNICODE) -> Standing:
    """The displayed state of a run with that liveness; without `now`, from its status alone."""
    found = session_state(run, state, now=now) if now is not None else None
    if found is not None:
        status, style = _TURNS[found.turn]
        sign = run_sign(run, status, glyphs)[0]
        return Standing(status, sign, style, session_words(found, sign="~" if run.is_session else ""), True)
    status = status_now(run, state)
    words = status_word(run) if state is State.ENDED else Clean(state.value)
    return Standing(status, *run_sign(run, status, glyphs), words, False)


def recorded_state(run: RunSummary) -> State:
    """The state of a run from its recorded status alone."""
    return State.RUNNING if run.status is Status.RUNNING else State.ENDED


def status_now(run: RunSummary, state: State) -> Status:
    """The status to show: running or unknown for a run without an end record."""
    if state is State.ENDED:
        return run.status
    return Status.UNKNOWN if state is State.UNKNOWN else Status.RUNNING


def session_words(found: SessionState, *, sign: str = "~") -> Clean:
    """The state of a session: ``~running: Bash 3m``. The sign marks it as inferred, as it does times."""
    call = f": {one_line(found.call, 30)}" if found.call else ""
    since = f" {text.age(found.ms / 1000)}" if found.call and found.ms is not None else ""
    return Clean(f"{sign}{found.turn.value}{call}{since}")

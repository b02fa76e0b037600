"""Status, outcome and scores of a run, with the same signs, styles and words on every screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis.liveness import SessionState, State, Turn, session_state
from tracetui.masking import one_line
from tracetui.model import Outcome, RunSummary, Score, Status
from tracetui.text import Clean
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.labels import number

# ---- scores and outcomes


WRONG_ANSWER = Clean("wrong answer")
WRONG_STYLE = "status.warn"
_HIDDEN = (Status.OK, Status.UNKNOWN)
"""Statuses that say less than a wrong answer."""
_VERDICTS = {True: Clean("passed"), False: Clean("failed")}
_LONGEST = 40
"""Characters of a value that is text."""


def run_sign(run: RunSummary, status: Status, glyphs: Glyphs = UNICODE) -> tuple[Clean, str]:
    """Sign and style of a run that is shown with this status: a wrong answer has its own."""
    if run.is_wrong and status in _HIDDEN:
        return glyphs.wrong, WRONG_STYLE
    return status_glyph(status, glyphs)


def status_word(run: RunSummary) -> Clean:
    """The status of a run; ``wrong answer`` where it ended well, or nothing says how, and its outcome is failed."""
    return WRONG_ANSWER if run.is_wrong and run.status in _HIDDEN else Clean(run.status.value)


def outcome_word(run: RunSummary, glyphs: Glyphs = UNICODE) -> Clean:
    """``passed``, ``wrong answer``, or ``failed`` of an error; ``—`` without an outcome."""
    if run.outcome is None:
        return glyphs.missing
    return WRONG_ANSWER if run.is_wrong else Clean(run.outcome.value)


def value_of(score: Score, glyphs: Glyphs = UNICODE) -> Clean:
    """The value of a score as recorded, else whether it passed."""
    if isinstance(score.value, str):
        return one_line(score.value, _LONGEST)
    if score.value is None and score.passed is not None:
        return _VERDICTS[score.passed]
    return number(score.value, glyphs)


def score_cell(run: RunSummary, glyphs: Glyphs = UNICODE) -> Clean:
    """``✓ 1``, ``⊗ 0`` for a wrong answer, ``0.5`` without an outcome, ``⊗ 2/3`` where several decide; ``—``: none."""
    scores = run.deciding_scores
    if not scores:
        return glyphs.missing
    value = value_of(scores[0], glyphs) if len(scores) == 1 else _share(scores)
    sign, _ = outcome_sign(run, glyphs)
    return Clean(f"{sign} {value}") if sign else value


def _share(scores: list[Score]) -> Clean:
    """How many of several scores passed."""
    return Clean(f"{sum(score.passed is True for score in scores)}/{len(scores)}")


def outcome_sign(run: RunSummary, glyphs: Glyphs = UNICODE) -> tuple[Clean, str]:
    """Sign and style of an outcome; no sign without one."""
    if run.outcome is None:
        return Clean(""), "dim"
    if run.outcome is Outcome.PASSED:
        return glyphs.ok, "status.ok"
    return (glyphs.wrong, WRONG_STYLE) if run.is_wrong else (glyphs.error, "status.error")


def score_line(score: Score) -> Clean:
    """``reward 0 failed (result.json rewards.reward; pass rule reward>=0.9)``, then why."""
    passed = f" {_VERDICTS[score.passed]}" if score.passed is not None and score.value is not None else ""
    origin = "; ".join(one_line(part, 160) for part in (score.source, score.rule) if part)
    reason = f": {one_line(score.reason, 240)}" if score.reason else ""
    return Clean(f"{one_line(score.name, 60)} {value_of(score)}{passed}{f' ({origin})' if origin else ''}{reason}")


# ---- standing


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

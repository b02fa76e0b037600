"""Scores and outcomes in words."""

from __future__ import annotations

from tracetui.masking import one_line
from tracetui.model import Outcome, RunSummary, Score, Status
from tracetui.text import Clean
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.labels import number

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

"""The result of a run in one phrase, and what the cells of its row draw from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis.liveness import State
from tracetui.masking import one_line
from tracetui.model import RunRef, RunSummary, Status, StatusSource
from tracetui.text import Clean
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.labels import UNGRADED, WRONG_ANSWER, WRONG_STYLE, Standing, deciding_excerpt, prompt_text, short_id
from tracetui.views.rows import Line, Piece, fit, width_of


class Relationship(NamedTuple):
    """Relations of a run to others: its letter if marked, and text before and after its result."""

    mark: str = ""
    before: Line = ()
    after: Line = ()


RelationshipOf = Callable[[RunSummary, Glyphs], Relationship]


def no_relationship(run: RunSummary, glyphs: Glyphs) -> Relationship:
    """No relations."""
    return Relationship()


MessageOf = Callable[[RunRef], Clean]


def no_message(ref: RunRef) -> Clean:
    """No message."""
    return Clean("")


class RunRow(NamedTuple):
    """A run and what its row knows beside it."""

    run: RunSummary
    state: State
    standing: Standing
    relationship: Relationship
    nested: bool
    """Below its parent."""
    now: float
    since: float
    """The time from which the age counts; both are UTC seconds."""
    glyphs: Glyphs
    shows_state: bool
    """The result begins with the state, unless the sign has all of it."""
    message_of: MessageOf

    @property
    def bold(self) -> str:
        """The style that failed and running runs add."""
        return " bold" if self.standing.status in (Status.ERROR, Status.RUNNING) else ""


_STATE_AND_TITLE: Final = 34
"""Least cells of a state in words beside a title."""
_NAMED_RELATIONS: Final = ("fork", "retry")
"""Relations shown as a word."""
_MIN_PROMPT: Final = 12
"""Minimum cells for a prompt."""
_MIN_TASK, _MAX_TASK = 7, 32
"""Cells for the name of a task."""


def result_cell(row: RunRow, size: int) -> list[Piece]:
    """The state, result or title of the run, then what there is room for: its prompt and its last message."""
    run, standing, relationship = row.run, row.standing, row.relationship
    room = size - width_of(relationship.after)
    prompt = prompt_text(run)
    wordless = not row.shows_state or room < _STATE_AND_TITLE
    if standing.by_last_event and prompt and wordless and standing.status is not Status.RUNNING:  # the sign has it
        phrase: Line = (*relationship.before, Piece(prompt, "text"))
        return [*fit((*phrase, *_message(row, room - width_of(phrase))), room), *relationship.after]
    if standing.by_last_event:
        state = Piece(standing.label, standing.style)
        phrase = (state, *((Piece(Clean(" ")), *relationship.before) if relationship.before else ()))
    else:
        before = (*_silence_word(run, row.state), *relationship.before)
        phrase = (*before, *result_phrase(run, row.glyphs))
        if run.relation in _NAMED_RELATIONS and room - width_of(phrase) < _MIN_PROMPT:
            phrase = (*before, *result_phrase(run, row.glyphs, named=False))  # the prompt says more than an id
    phrase = (*phrase, *_prompt(run, phrase, room))
    return [*fit((*phrase, *_message(row, room - width_of(phrase))), max(8, room)), *relationship.after]


def _message(row: RunRow, room: int) -> Line:
    """The last message, where it can be read."""
    message = row.message_of(row.run.ref) if room >= _MIN_PROMPT + 4 else Clean("")
    if not message:
        return ()
    first, last = '""' if row.glyphs is ASCII else "“”"
    return Piece(Clean("  ")), Piece(Clean(f"{first}{text.truncate(message, room - 4)}{last}"), "dim")


def _silence_word(run: RunSummary, state: State) -> Line:
    """The word for a silent run."""
    if state in (State.QUIET, State.STALLED):
        return (Piece(Clean(state), "status.warn" if state is State.STALLED else "status.running"), Piece(Clean(" ")))
    if state is State.UNKNOWN and run.status is Status.RUNNING:
        return (Piece(one_line(f"{run.status_word or 'no end'}, silent", 60), "status.unknown"), Piece(Clean(" ")))
    return ()


def result_phrase(run: RunSummary, glyphs: Glyphs = UNICODE, *, named: bool = True) -> Line:
    """The result of a run in one phrase: cause of failure, relation to its original (with its id if `named`), or
    prompt.
    """
    pieces: list[Piece] = []
    if run.is_ungraded and not run.failed:
        evidence = run.evidence
        pieces = [Piece(one_line(UNGRADED if evidence is None else f"{UNGRADED}: {evidence.text}", 200), WRONG_STYLE)]
    elif run.status is Status.ERROR:
        pieces = _cause(run)
    elif run.status is Status.RUNNING:
        pieces = [Piece(one_line(run.result or run.title or run.prompt or "running", 200), "status.running")]
    elif run.status is Status.PAUSED:
        pieces = [Piece(one_line(run.result or "waiting for a human", 200), "status.paused")]
    elif run.status is Status.CANCELLED:
        pieces = [Piece(one_line(run.result or run.status_word or "cancelled", 200), "sec")]
    elif run.is_wrong:
        pieces = [Piece(one_line(run.result or WRONG_ANSWER, 200), WRONG_STYLE)]
    relation = _relation(run, named=named)
    if pieces and relation:  # show that it is a replay even if only the error fits
        return (Piece(Clean(f"{glyphs.replay} "), "accent"), *pieces, Piece(Clean(" ")), *relation)
    if pieces:
        return tuple(pieces)
    if relation:
        return (Piece(Clean(f"{glyphs.replay} "), "accent"), *relation)
    if run.result:
        style = "status.ok" if run.status is Status.OK else "sec"
        return (Piece(one_line(run.result, 200), style),)
    if run.status is Status.UNKNOWN and run.deep:
        word = run.status_word if run.status_source is StatusSource.EXPLICIT else None
        if not run.prompt and not run.title:
            return (Piece(one_line(word or "no end record", 60), "sec"),)
        title = Piece(prompt_text(run), "text")
        return (title,) if word is None else (title, Piece(Clean(" · "), "dim"), Piece(one_line(word, 60), "sec"))
    return (Piece(one_line(run.prompt, 200) if run.prompt or run.deep else Clean("·"), "dim"),)


def _prompt(run: RunSummary, phrase: Line, size: int) -> Line:
    """The task and the prompt of a run after its result, if they fit."""
    pieces: list[Piece] = []
    room = size - width_of(phrase) - 2
    if run.task and not run.title and not run.task.startswith(run.name) and room >= _MIN_TASK:
        task = text.truncate_middle(one_line(run.task, 200), max(_MIN_TASK, min(room, _MAX_TASK)))
        pieces += [Piece(Clean("  ")), Piece(task, "sec")]
        room -= width_of(pieces)
    prompt = prompt_text(run)
    if prompt and room + 2 >= _MIN_PROMPT and all(piece.text != prompt for piece in phrase):
        pieces += [Piece(Clean("  ")), Piece(prompt, "dim")]
    return tuple(pieces)


def _cause(run: RunSummary) -> list[Piece]:
    error = run.first_error
    if error is None:
        return [Piece(one_line(run.result or run.status_word or "failed", 200), "status.error")]
    if run.result:
        return [Piece(one_line(run.result, 200), "status.error")]
    pieces = [Piece(deciding_excerpt(error.text or run.status_word or "failed"), "status.error")]
    if error.message in ("", error.type) and error.name and error.name != error.type:
        pieces.append(Piece(Clean(f" {one_line(error.name, 200)}"), "sec"))
    return pieces


def _relation(run: RunSummary, *, named: bool) -> list[Piece]:
    if run.relation is None:
        return []
    name = Clean("teacher") if run.relation == "student" else short_id(run.replay_of or "?")
    if not named:
        return [Piece(one_line(run.relation, 20), "sec")]
    word = Clean(f" {run.relation}") if run.relation in _NAMED_RELATIONS else Clean("")
    return [Piece(name, "accent"), Piece(word, "sec")]

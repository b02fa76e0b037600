"""How a session stands: from its last event and its silence, in every format alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions import ANSWER, OPEN, PROMPT, TOOL, Session, session
from tracetui.analysis.liveness import SessionState, State, Turn, session_state, summary_state
from tracetui.formats.claude_code import ClaudeCode
from tracetui.model import RunSummary
from tracetui.sources.local import LocalSource

NOW = 1_800_000_000.0
DAY = 8 * 3600.0


def summary_of(made: Session, folder: Path, ago: float) -> RunSummary:
    path = made.write(folder, NOW, ago)
    with LocalSource().open(str(path)) as file:
        (found,) = ClaudeCode().summarize(file, deep=True)
    assert isinstance(found, RunSummary)
    return found


def stands(made: Session, folder: Path, ago: float) -> tuple[State, SessionState | None]:
    run = summary_of(made, folder, ago)
    state, _ = summary_state(run, now=NOW, changed_at=run.modified_at)
    return state, session_state(run, state, now=NOW)


@pytest.mark.parametrize(
    ("end", "ago", "state", "turn"),
    [
        (OPEN, 5, State.RUNNING, Turn.RUNNING),
        (TOOL, 5, State.RUNNING, Turn.RUNNING),
        (ANSWER, 5, State.RUNNING, Turn.RUNNING),  # the next call may follow
        (ANSWER, 60, State.ENDED, Turn.WAITING),
        (ANSWER, DAY - 60, State.ENDED, Turn.WAITING),
        (ANSWER, DAY + 60, State.ENDED, Turn.DONE),
        (OPEN, 200, State.RUNNING, Turn.RUNNING),
        (OPEN, 400, State.STALLED, Turn.STALLED),
        (TOOL, 200, State.QUIET, Turn.QUIET),
        (OPEN, 2 * 3600, State.UNKNOWN, Turn.INTERRUPTED),
        (TOOL, 2 * 3600, State.UNKNOWN, Turn.INTERRUPTED),
        (PROMPT, 2 * 3600, State.UNKNOWN, Turn.INTERRUPTED),
    ],
)
def test_the_last_event_and_the_silence_decide(end: str, ago: float, state: State, turn: Turn, tmp_path: Path) -> None:
    found, stand = stands(session("s", end), tmp_path, ago)
    assert stand is not None
    assert (found, stand.turn) == (state, turn)


def test_an_open_call_has_its_name_and_age(tmp_path: Path) -> None:
    assert stands(session("s", OPEN), tmp_path, 200)[1] == SessionState(Turn.RUNNING, "Bash", 200_000.0)


def test_a_question_waits_while_it_is_open(tmp_path: Path) -> None:
    asked = Session("s").prompt("Which one?").call("AskUserQuestion")
    stand = stands(asked, tmp_path, 200)[1]
    assert stand is not None
    assert (stand.turn, stand.call) == (Turn.WAITING, "AskUserQuestion")


def test_output_of_a_command_after_the_answer_changes_nothing(tmp_path: Path) -> None:
    after = session("s").prompt("<local-command-stdout>cost: 1</local-command-stdout>")
    stand = stands(after, tmp_path, 600)[1]
    assert stand is not None
    assert stand.turn is Turn.WAITING


def test_nothing_is_concluded_of_other_runs(tmp_path: Path) -> None:
    run = summary_of(session("s"), tmp_path, 600)
    for other in (
        run.replace(last=None),
        run.replace(is_session=False),
    ):
        assert session_state(other, State.UNKNOWN, now=NOW) is None


def test_the_title_is_that_of_the_program(tmp_path: Path) -> None:
    assert summary_of(session("s", title="Fix the parser"), tmp_path, 600).title == "Fix the parser"

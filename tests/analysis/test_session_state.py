"""The state of a session: from its last event and its silence, in every format alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions import ANSWER, OPEN, PROMPT, TOOL, Session, session
from tracetui.analysis.liveness import CurrentState, State, current_state, summary_state
from tracetui.formats.claude_code import ClaudeCode
from tracetui.model import RunState, RunSummary, Status
from tracetui.sources.local import LocalSource

NOW = 1_800_000_000.0
DAY = 8 * 3600.0


def summary_of(session: Session, folder: Path, ago: float) -> RunSummary:
    path = session.write(folder, NOW, ago)
    with LocalSource().open(str(path)) as file:
        (summary,) = ClaudeCode().summarize(file, deep=True)
    assert isinstance(summary, RunSummary)
    return summary


def standing(session: Session, folder: Path, ago: float) -> tuple[State, CurrentState]:
    run = summary_of(session, folder, ago)
    state, _ = summary_state(run, now=NOW, changed_at=run.modified_at)
    return state, current_state(run, state, now=NOW)


@pytest.mark.parametrize(
    ("end", "ago", "state", "turn"),
    [
        (OPEN, 5, State.RUNNING, RunState.RUNNING),
        (TOOL, 5, State.RUNNING, RunState.RUNNING),
        (ANSWER, 5, State.RUNNING, RunState.RUNNING),  # the next call may follow
        (ANSWER, 60, State.ENDED, RunState.WAITING),
        (ANSWER, DAY - 60, State.ENDED, RunState.WAITING),
        (ANSWER, DAY + 60, State.ENDED, RunState.DONE),
        (OPEN, 200, State.RUNNING, RunState.RUNNING),
        (OPEN, 400, State.STALLED, RunState.STALLED),
        (TOOL, 200, State.QUIET, RunState.QUIET),
        (OPEN, 2 * 3600, State.UNKNOWN, RunState.INTERRUPTED),
        (TOOL, 2 * 3600, State.UNKNOWN, RunState.INTERRUPTED),
        (PROMPT, 2 * 3600, State.UNKNOWN, RunState.INTERRUPTED),
    ],
)
def test_the_last_event_and_the_silence_decide(
    end: str, ago: float, state: State, turn: RunState, tmp_path: Path
) -> None:
    actual, stand = standing(session("s", end), tmp_path, ago)
    assert (actual, stand.state) == (state, turn)


def test_an_open_call_has_its_name_and_age(tmp_path: Path) -> None:
    stand = standing(session("s", OPEN), tmp_path, 200)[1]
    assert stand == CurrentState(RunState.RUNNING, True, "Bash", NOW - 200, 200_000.0)


def test_a_question_waits_while_it_is_open(tmp_path: Path) -> None:
    asked = Session("s").prompt("Which one?").call("AskUserQuestion")
    stand = standing(asked, tmp_path, 200)[1]
    assert (stand.state, stand.call) == (RunState.WAITING, "AskUserQuestion")


def test_output_of_a_command_after_the_answer_changes_nothing(tmp_path: Path) -> None:
    after = session("s").prompt("<local-command-stdout>cost: 1</local-command-stdout>")
    stand = standing(after, tmp_path, 600)[1]
    assert stand.state is RunState.WAITING


def test_a_run_that_is_no_session_is_concluded_from_its_status_and_silence(tmp_path: Path) -> None:
    run = summary_of(session("s"), tmp_path, 600).replace(is_session=False)
    assert current_state(run, State.UNKNOWN, now=NOW) == CurrentState(RunState.UNKNOWN)
    assert current_state(run, State.ENDED, now=NOW) == CurrentState(RunState.ENDED)
    paused = run.replace(status=Status.PAUSED)
    assert current_state(paused, State.ENDED, now=NOW) == CurrentState(RunState.PAUSED)


def test_a_session_that_is_not_read_has_no_state_unless_it_is_silent_or_failed(tmp_path: Path) -> None:
    unread = summary_of(session("s"), tmp_path, 600).replace(last=None)
    assert current_state(unread, State.ENDED, now=NOW).state is None
    assert current_state(unread, State.QUIET, now=NOW).state is RunState.QUIET
    assert current_state(unread.replace(status=Status.ERROR), State.ENDED, now=NOW).state is RunState.ENDED


def test_the_title_is_that_of_the_program(tmp_path: Path) -> None:
    assert summary_of(session("s", title="Fix the parser"), tmp_path, 600).title == "Fix the parser"

"""``/exit`` closes a session, until it is continued."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tracetui.analysis.liveness import GOING, current_state, summary_state
from tracetui.cli.reading import listing_of
from tracetui.model import RunState, RunSummary, Status
from tracetui.sources.local import LocalSource

IDENT = "7d1c9e50-0c41-4d7a-9d0e-2f6a30c7e777"


def _command(name: str) -> str:
    parts = {"name": name, "message": name[1:], "args": ""}
    return "\n".join(f"<command-{part}>{text}</command-{part}>" for part, text in parts.items())


def _session(folder: Path, *messages: tuple[str, str]) -> RunSummary:
    """A session of Claude Code that is written now; each message is a role and a text."""
    now, lines = time.time() - len(messages), []
    for number, (role, text) in enumerate(messages):
        when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now + number))
        message: dict[str, Any] = {"role": role, "content": text}
        if role == "assistant":
            message = {**message, "id": f"msg_{number}", "model": "claude-oak-4", "stop_reason": "end_turn"}
            message["content"] = [{"type": "text", "text": text}]
        ident = f"{number:08}-aaaa-4bbb-8ccc-000000000000"
        before = f"{number - 1:08}-aaaa-4bbb-8ccc-000000000000" if number else None
        head = {"type": role, "uuid": ident, "parentUuid": before, "sessionId": IDENT, "timestamp": when}
        lines.append(json.dumps({**head, "version": "2.1.0", "cwd": "/home/ada", "message": message}) + "\n")
    (folder / f"{IDENT}.jsonl").write_text("".join(lines))
    (run,) = listing_of(LocalSource(), [str(folder)], None, deep=True).runs
    return run


@pytest.mark.parametrize("command", ["/exit", "/quit"])
def test_exit_closes_a_session(command: str, tmp_path: Path) -> None:
    goodbye = "<local-command-stdout>See ya!</local-command-stdout>"
    run = _session(tmp_path, ("user", "Hi"), ("assistant", "Hello"), ("user", _command(command)), ("user", goodbye))
    state, reason = summary_state(run, now=time.time(), changed_at=time.time())

    assert run.status is not Status.RUNNING
    assert state not in GOING
    assert reason == "the session was closed"
    assert current_state(run, state, now=time.time()).state is RunState.DONE


def test_a_session_that_goes_on_after_exit_is_running(tmp_path: Path) -> None:
    run = _session(tmp_path, ("user", "Hi"), ("assistant", "Hello"), ("user", _command("/exit")), ("user", "One more"))
    assert run.status is Status.RUNNING


def test_other_commands_close_nothing(tmp_path: Path) -> None:
    run = _session(tmp_path, ("user", "Hi"), ("assistant", "Hello"), ("user", _command("/context")))
    assert run.status is Status.RUNNING

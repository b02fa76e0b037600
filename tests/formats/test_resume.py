"""The command that resumes a session: quoted, and only of ids and folders that are plain."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.formats.programs import resume_command as command
from tracetui.model import RunRef, RunSummary
from tracetui.text import exact

COMMANDS = {
    "claude-code": "claude --resume 1234-ab",
    "codex": "codex resume 1234-ab",
    "copilot": "copilot --resume 1234-ab",
    "gemini": "gemini --resume 1234-ab",
    "qwen": "qwen --resume 1234-ab",
    "opencode": "opencode -s 1234-ab",
    "pi": "pi --session '/home/me/my logs/x.jsonl'",
}


def run(form: str = "claude-code", ident: str = "1234-ab", path: str = "/home/me/my logs/x.jsonl", **more: Any) -> Any:
    return RunSummary.of(ref=RunRef(form, path), id=ident, name="shop", **{"is_session": True, **more})


@pytest.mark.parametrize(("form", "expected"), COMMANDS.items())
def test_each_program_has_its_own_command(form: str, expected: str) -> None:
    assert command(run(form)) == expected


def test_a_resumed_session_runs_in_its_project() -> None:
    assert command(run(source="/home/me/it's mine")) == "cd '/home/me/it'\"'\"'s mine' && claude --resume 1234-ab"
    assert command(run(source="relative")) == command(run(source="/" + "x" * 119)) == COMMANDS["claude-code"]


def test_only_sessions_have_one() -> None:
    assert command(run("harbor")) is None
    assert command(run(is_session=False)) is None


@pytest.mark.parametrize("ident", ["--dangerously-skip-permissions", "a;id", "a b", "a\nid", "$(id)", "", "a\x1b[201~"])
def test_an_id_that_could_do_something_else_gives_no_command(ident: str) -> None:
    assert command(run(ident=ident)) is None


def test_a_path_with_control_characters_gives_no_command() -> None:
    assert command(run("pi", path="/home/\x1b[201~\nid")) is None


@given(st.text(max_size=40), st.text(max_size=60).map("/".__add__), st.sampled_from(list(COMMANDS)))
def test_the_shell_reads_only_the_words_that_were_quoted(ident: str, folder: str, form: str) -> None:
    command_line = command(run(form, ident, source=folder))
    if command_line is not None:
        arguments = shlex.split(command_line)
        plain = shlex.split(COMMANDS[form].replace("1234-ab", ident))
        assert arguments in (plain, ["cd", folder, "&&", *plain])
        assert exact(command_line) == command_line

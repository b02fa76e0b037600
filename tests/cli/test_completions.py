"""Completions in real shells, and the man page in mandoc; shells that are missing are skipped."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shared import ROOT
from tests.terminal import Terminal
from tracetui.cli.completions import SHELLS, script
from tracetui.cli.parser import COMMANDS, parser_of

SHARE = ROOT / "share"


def program(name: str) -> str:
    """The path of a program; skips the test without it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def output(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


def bash(line: str) -> list[str]:
    """What bash offers at the end of `line`."""
    quoted = " ".join(f"'{word}'" for word in line.split(" "))
    last = len(line.split(" ")) - 1
    code = f"source {SHARE}/bash-completion/completions/tracetui; COMP_WORDS=({quoted}); COMP_CWORD={last}; "
    return output(program("bash"), "-c", code + '_tracetui; printf "%s\\n" "${COMPREPLY[@]}"').split()


def fish(line: str) -> list[str]:
    """What fish offers at the end of `line`."""
    code = f"source {SHARE}/fish/vendor_completions.d/tracetui.fish; complete -C '{line}'"
    return [offer.split("\t")[0] for offer in output(program("fish"), "-N", "-c", code).splitlines()]


OFFERS = [
    ("tracetui tri", "triage"),
    ("tracetui --the", "--theme"),
    ("tracetui ls --verd", "--verdicts"),
    ("tracetui ls --fail-on ne", "new"),
    ("tracetui --theme hi", "high-contrast"),
    ("tracetui completions z", "zsh"),
]


@pytest.mark.parametrize(("line", "offer"), OFFERS)
@pytest.mark.parametrize("complete", [bash, fish])
def test_shells_complete_commands_options_and_values(
    complete: Callable[[str], list[str]], line: str, offer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert complete(line) == [offer]


@pytest.mark.e2e
def test_zsh_completes_commands_options_and_values(tmp_path: Path) -> None:
    with Terminal(program("zsh"), "-f", "-i", env={"HOME": str(tmp_path), "ZDOTDIR": str(tmp_path)}) as terminal:
        terminal.send(
            f"cd {tmp_path}; fpath=({SHARE}/zsh/site-functions $fpath); autoload -U compinit; compinit -u -D", "enter"
        )
        terminal.send("echo ready", "tab", "enter")
        terminal.wait_for(r"^ready")
        for line, offer in OFFERS:
            terminal.send(line, "tab")
            terminal.wait_for(f"{line[: line.rindex(' ')]} {offer}")
            terminal.send("ctrl+u")


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_name_every_option_that_help_shows(shell: str) -> None:
    text = script(shell)
    flags = {
        flag for name in (None, *COMMANDS) for action in parser_of(name)._actions for flag in action.option_strings
    }

    assert "served" not in text
    assert [flag for flag in flags - {"--served"} if flag.lstrip("-") not in text] == []


def test_man_page_is_clean_and_names_every_command() -> None:
    page = SHARE / "man" / "man1" / "tracetui.1"
    lint = subprocess.run(
        [program("mandoc"), "-T", "lint", "-W", "warning", page], check=False, capture_output=True, text=True
    )
    warnings = [line for line in lint.stdout.splitlines() if "missing date" not in line]

    assert warnings == []  # the page has no date: it would be stale with every commit
    for name in COMMANDS:
        assert f".SS {name}\n" in page.read_text("utf-8")

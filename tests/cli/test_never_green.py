"""A wrong word on the command line, or a file that cannot be read, never looks as if all went well."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tracetui.store.query import RUN_KEYS

FAIL_ON = ("--fail-on", "error")


@pytest.mark.parametrize("name", [key.name for key in RUN_KEYS.keys if key.choices or key.choices_of])
@pytest.mark.parametrize("command", [("ls", *FAIL_ON), ("stats",), ("grep", "x")])
def test_a_value_outside_a_closed_set_is_wrong_usage(cli: Cli, name: str, command: tuple[str, ...]) -> None:
    result = cli(*command, "traces", "-q", f"{name}:zzzz")

    assert result.status == 2
    assert f"`{name}:` has no value `zzzz`" in result.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("ls", "traces", "-q", "status:eror"), "did you mean `error`?"),
        (("ls", "traces", "-q", "format:otl"), "did you mean `otlp`?"),
        (("ls", "traces", "-q", "has:eror"), "did you mean `error`?"),
        (("ls", "traces", "-q", "is:faild"), "did you mean `failed`?"),
        (("ls", "traces", "-q", "status:(error"), "not closed"),
        (("ls", "traces", "-q", "status :error"), "`status:error` without a blank"),
        (("ls", "traces", "--fail-on", "eror"), "did you mean 'error'?"),
        (("stats", "traces", "--by", "tol"), "did you mean 'tool'?"),
        (("ls", "traces", "--format", "otl"), "did you mean `otlp`?"),
        (("export", "traces", "--as", "htm"), "did you mean 'html'?"),
        (("--theme", "ligth", "traces"), "did you mean 'light'?"),
        (("lss", "traces"), "did you mean `tracetui ls`?"),
        (("--ascii", "dem"), "did you mean `tracetui demo`?"),
    ],
)
def test_misspelled_names_get_a_suggestion(cli: Cli, arguments: tuple[str, ...], hint: str) -> None:
    result = cli(*arguments)

    assert (result.status, result.out) == (2, b"")
    assert hint in result.err


def test_a_path_that_is_much_like_a_command_is_a_path(cli: Cli) -> None:
    os.rename("traces/lattice", "lss")

    assert cli("lss").status == 0


def test_options_may_precede_the_command(cli: Cli) -> None:
    assert cli("--format", "latticeflow", "ls", "traces/lattice").out == cli("ls", "traces/lattice").out
    assert cli("--theme", "light", "ls", "traces").status == 2  # which has no such option


def test_fail_on_names_unreadable_files(cli: Cli) -> None:
    result = cli("ls", "traces", "-q", "status:ok", *FAIL_ON)

    assert result.status == 1
    assert "cannot read traces/paprika/cut.json: cut off" in result.err
    assert cli("ls", "traces", "-q", "status:ok").status == 0
    assert cli("ls", "traces/lattice", *FAIL_ON).status == 0


def test_a_problem_in_a_file_that_was_read_is_not_called_unreadable(cli: Cli) -> None:
    path = Path("traces/paprika/plan-7.json")
    plan = json.loads(path.read_bytes())
    plan["steps"][0]["input_hash"] = "0" * 64
    path.write_text(json.dumps(plan))
    result = cli("audit", str(path), "--fail-on", "sudo")

    assert result.status == 1
    assert f"problem in {path}: steps[0]: the input hash doesn't match the input" in result.err
    assert "cannot read" not in result.err


@pytest.mark.parametrize("command", ["ls", "triage"])
def test_a_failed_run_wins_over_an_unreadable_file(cli: Cli, command: str) -> None:
    result = cli(command, "traces", *FAIL_ON)

    assert result.status == 3
    assert "cannot read traces/paprika/cut.json" in result.err


def test_pairs_of_a_folder_with_an_unreadable_file_are_trouble(cli: Cli) -> None:
    result = cli("diff", "--replays", "traces/paprika", "--exit-code")

    assert result.status == 2
    assert "cannot read traces/paprika/cut.json" in result.err


# ---- nothing is written among traces


@pytest.fixture
def trace(cli: Cli) -> Path:
    """A trace, with links to its folder beside that."""
    Path("traces/paprika/below").mkdir()
    Path("link").symlink_to("traces/paprika")
    Path("deep").symlink_to("traces/paprika/below")
    return Path("traces/paprika/stuck-9.json")


@pytest.mark.parametrize(
    "to",
    ["traces/paprika/o.md", "./link/o.html", "deep/../o.md", "traces/lattice/../paprika/o.json", "deep/o.md"],
)
@pytest.mark.parametrize("more", [(), ("--force",)])
def test_an_export_beside_its_trace_is_refused(cli: Cli, trace: Path, to: str, more: tuple[str, ...]) -> None:
    result = cli("export", str(trace), "--to", to, *more)

    assert result.status == 2
    assert "contains traces" in result.err
    assert not list(Path("traces").rglob("o.*"))


def test_the_folders_of_both_runs_and_the_default_are_trace_folders(
    cli: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("beside").mkdir()
    Path("beside/b.json").write_bytes(trace.read_bytes())
    for folder in ("beside", "traces/paprika"):
        assert cli("export", "--diff", str(trace), "beside/b.json", "--to", f"{folder}/o.md").status == 2
    monkeypatch.setenv("PAPRIKA_TRACE_DIR", "traces")
    assert cli("export", "beside/b.json", "--to", "traces/o.md").status == 2
    assert cli("export", "stuck-9", "--to", "traces/paprika/below/o.md").status == 2


def test_elsewhere_and_to_standard_output_it_is_written(cli: Cli, trace: Path) -> None:
    assert cli("export", str(trace), "--to", "o.md").status == 0
    assert cli("export", str(trace), "--to", "-").out == cli("export", str(trace)).out == Path("o.md").read_bytes()
    assert not Path("-").exists()

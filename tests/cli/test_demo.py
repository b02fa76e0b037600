"""``tracetui demo --write``: samples in a folder of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.run import Cli


@pytest.mark.parametrize(("arguments", "runs"), [(["trials"], 120), ([], 61)])
def test_samples_are_written_to_a_new_folder(cli: Cli, arguments: list[str], runs: int) -> None:
    result = cli("demo", *arguments, "--write", "samples")
    assert (result.status, result.out, result.err) == (0, b"", "tracetui: wrote samples\n")
    listed = cli("ls", "samples", "--json").data["runs"]
    assert sum(run["parent"] is None for run in listed) == runs
    second = cli("demo", "--write", "samples")
    assert (second.status, second.err) == (2, "tracetui: samples already exists; name a new folder\n")


def test_a_folder_that_cannot_be_made_is_an_error(cli: Cli) -> None:
    Path("file").write_text("")
    result = cli("demo", "--write", "file/samples")
    assert result.status != 0
    assert "file/samples can't be written" in result.err


def test_without_a_terminal_the_samples_are_listed(cli: Cli) -> None:
    result = cli("demo")
    assert result.status in (0, 1), result.err
    assert "tracetui-demo-" in result.text

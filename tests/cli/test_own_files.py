"""Files of ours that are not what they should be: a sentence at once, by every command that reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import Cli, write_traces
from tests.terminal import TRACETUI
from tracetui.store.settings import MAX_SIZE, read_own_file
from tracetui.store.sidecar import MAX_FILE, Sidecar
from tracetui.ui import config

INVALID = (
    *('theme = "nope"', "keys = 3", "sort = 5", "[list]\nsort = 5", '[keys]\nfly = "x"', 'columns = "name"'),
    *("cache_mb = -1", 'pass = "reward>>1"', "x = " + "[" * 100_000, "x = {" * 50_000, "\x00", 'theme = "\udcff"'),
)
"""Contents of a settings file."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of the settings file, which doesn't exist yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for folder in ("config", "state"):
        (tmp_path / folder / "tracetui").mkdir(parents=True)
    write_traces(tmp_path / "traces")
    return tmp_path / "config" / "tracetui" / "config.toml"


@pytest.mark.parametrize("text", INVALID, ids=lambda text: ascii(text)[:20])
@pytest.mark.parametrize("command", ["ls", "triage", "cache"])
def test_an_invalid_settings_file_ends_every_command(
    settings: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], text: str, command: str
) -> None:
    settings.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = Cli(capsysbinary)(command, *([] if command == "cache" else [str(tmp_path / "traces")]))
    assert (done.status, done.out) == (2, b"")
    assert done.err.startswith(f"tracetui: {settings}: ") or "config.toml: " in done.err
    assert len(done.err.splitlines()) == 1


def test_a_settings_file_that_is_no_file_or_endless_is_refused_at_once(
    settings: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    cli = Cli(capsysbinary)
    for make, reason in (
        (lambda: os.mkfifo(settings), "not a regular file"),
        (lambda: settings.symlink_to("/dev/zero"), "not a regular file"),
        (lambda: settings.mkdir(), "directory"),
        (lambda: sparse(settings, 1 << 40), "larger than"),
    ):
        make()
        done = cli("ls", str(tmp_path / "traces"))
        assert done.status == 2
        assert reason in done.err.lower()
        settings.rmdir() if settings.is_dir() else settings.unlink()


def test_a_linked_settings_file_is_read(settings: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.toml").write_text('theme = "light"\n')
    settings.symlink_to(tmp_path / "dotfiles.toml")
    assert config.load().theme == "light"


def test_valid_settings_load_no_textual(settings: Path, tmp_path: Path) -> None:
    settings.write_text('theme = "light"\n[keys]\nfailures = "x"\n')
    code = "import sys; from tracetui.cli import main; main(['ls', sys.argv[1]]); print('textual' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "traces")], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def sparse(path: Path, size: int) -> None:
    """Make a file of that size that takes no space."""
    with path.open("wb") as file:
        file.truncate(size)


def test_a_verdict_file_of_a_terabyte_is_a_problem_and_is_not_written(settings: Path, tmp_path: Path) -> None:
    path = tmp_path / "state" / "tracetui" / "verdicts.jsonl"
    sparse(path, 1 << 40)
    done = subprocess.run([*TRACETUI, "triage", str(tmp_path / "traces")], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    (problem,) = Sidecar().problems
    assert problem.reason == f"larger than {MAX_FILE >> 20} MB"
    assert path.stat().st_size == 1 << 40


def test_nested_lines_of_a_verdict_file_are_problems_of_these_lines(settings: Path, tmp_path: Path) -> None:
    path = tmp_path / "state" / "tracetui" / "verdicts.jsonl"
    path.write_bytes(b"[" * 60_000 + b'\n{"a":' + b"[" * 50_000 + b"\n")
    assert [problem.where for problem in Sidecar().problems] == ["line 1", "line 2"]


def test_the_arrangement_of_the_list_is_read_and_saved_whatever_its_file_is(settings: Path, tmp_path: Path) -> None:
    path = tmp_path / "state" / "tracetui" / "list.json"
    chosen = config.Arrangement("tokens")
    for make in (
        lambda: os.mkfifo(path),
        lambda: path.symlink_to("/dev/full"),
        lambda: path.write_bytes(b"[" * 100_000),
        lambda: sparse(path, 1 << 40),
    ):
        make()
        assert config.load_arrangement(config.Config()) == config.Arrangement()
        config.save_arrangement(chosen)
        assert config.load_arrangement(config.Config()) == chosen
        assert [*path.parent.iterdir()] == [path]
        path.unlink()


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    sparse(tmp_path / "a", MAX_SIZE)
    assert len(read_own_file(tmp_path / "a")) == MAX_SIZE
    sparse(tmp_path / "a", MAX_SIZE + 1)
    with pytest.raises(OSError, match="larger than 1 MB"):
        read_own_file(tmp_path / "a")

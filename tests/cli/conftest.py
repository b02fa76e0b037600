"""Fixtures of the command-line tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.run import Cli, write_traces


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line in a folder that holds ``traces``, with no directory of the user's own."""
    write_traces(tmp_path / "traces")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PAPRIKA_TRACE_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return Cli(capsysbinary)

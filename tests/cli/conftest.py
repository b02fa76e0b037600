"""Fixtures of the command-line tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.run import Cli, write_traces
from tracetui.analysis import prices
from tracetui.formats import programs


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line in a folder that holds ``traces``, with no directory of the user's own."""
    write_traces(tmp_path / "traces")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("PAPRIKA_TRACE_DIR", "XDG_STATE_HOME", *programs.variables()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(prices.SWITCH, "off")  # they change with the library
    return Cli(capsysbinary)

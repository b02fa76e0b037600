"""The command line in this process, and a folder of small traces of every format."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.schemas import schema_errors
from tracetui.cli import main

HERE = Path(__file__).parent
LONG_AGO = 1_700_000_000


class Result(NamedTuple):
    """What one command printed and how it ended."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.out.decode()

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


class Cli:
    """Runs commands in a folder that holds ``traces``."""

    def __init__(self, capture: Any) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> Result:
        status = main(arguments)
        captured = self._capture.readouterr()
        if "--json" in arguments and captured.out.startswith(b'{"schema":'):
            errors = schema_errors(captured.out)
            assert not errors, errors
        return Result(status, captured.out, captured.err.decode())


def write_traces(folder: Path) -> None:
    """The traces of this folder, and a database made of daily.sql; none of them changed just now."""
    shutil.copytree(HERE / "traces", folder)
    with closing(sqlite3.connect(folder / "daily.db")) as connection:
        connection.executescript((HERE / "daily.sql").read_text())
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))

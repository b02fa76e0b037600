"""The program opens nothing below the traces for writing and creates nothing there, live databases included.

Two observers prove it: inotify tells of every file that was open for writing and is closed, and strace (where it is
installed) shows how each file was opened.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.formats.hypergraph_build import insert
from tests.shared import PATIENCE, ROOT
from tests.terminal import TRACETUI, Terminal

pytestmark = pytest.mark.e2e

_TRACES: Final = ROOT / "tests" / "cli" / "traces"
_SCHEMA: Final = ROOT / "tests" / "cli" / "daily.sql"
_EVENTS: Final = {0x8: "closed after writing", 0x40: "moved", 0x80: "moved", 0x100: "created", 0x200: "deleted"}
_CALL: Final = re.compile(r"^\d+ +(?P<name>\w+)\((?P<arguments>.*)")
_READING: Final = re.compile(
    r"(?!.*\b(O_RDWR|O_WRONLY|O_CREAT|O_TRUNC)\b)"
    r"(open|openat|openat2|stat|lstat|newfstatat|statx|access|faccessat2?|readlink|readlinkat|statfs|chdir"
    r"|execve|getcwd|inotify_add_watch|l?getxattr)\("
)


class Inotify:
    """What happened in the traces that no writer of them did: all of those keep their files open."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for directory in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
            assert self._libc.inotify_add_watch(self._fd, os.fsencode(directory), sum(_EVENTS)) >= 0

    def writes(self) -> list[str]:
        written = []
        try:
            data = os.read(self._fd, 1 << 20)
        except BlockingIOError:
            data = b""
        while data:
            _, mask, _, size = struct.unpack_from("iIII", data)
            written.append(f"{_EVENTS.get(mask & 0xFFF, mask)}: {os.fsdecode(data[16 : 16 + size].rstrip(bytes(1)))}")
            data = data[16 + size :]
        os.close(self._fd)
        return written


class Strace:
    """What the system was asked for of files among the traces that is no reading."""

    def __init__(self, folder: Path, logs: Path) -> None:
        self._folder, self._logs, self._count = folder, logs, 0
        logs.mkdir()

    def command(self, *argv: str) -> list[str]:
        self._count += 1  # with -D the program itself is our child
        return ["strace", "-D", "-f", "-s", "4096", "-e", "trace=%file", "-o", f"{self._logs}/{self._count}", *argv]

    def writes(self) -> list[str]:
        lines, seen = [], 0
        for log in self._logs.iterdir():
            for line in log.read_text(errors="replace").splitlines():
                call = _CALL.match(line)
                if call and f'"{self._folder}' in call["arguments"]:
                    seen += 1
                    if not _READING.match(f"{call['name']}({call['arguments']}"):
                        lines.append(line)
        assert seen, "strace saw no file among the traces"
        return lines


@cache
def strace_works() -> bool:
    """Whether it is installed, and may trace."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-e", "trace=%file", "true"], capture_output=True).returncode == 0


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    shutil.copytree(_TRACES, folder)
    with closing(sqlite3.connect(folder / "plain.db")) as plain:
        plain.executescript(_SCHEMA.read_text())
    return folder


@pytest.fixture
def writer(traces: Path) -> Iterator[sqlite3.Connection]:
    """The writer of a live database: its log restarts every few runs."""
    with closing(sqlite3.connect(traces / "live.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 8")
        connection.executescript(_SCHEMA.read_text())
        yield connection


class Observer:
    """What any observer that is there saw of the same runs of the program."""

    def __init__(self, folder: Path, logs: Path) -> None:
        self._inotify = Inotify(folder)
        self._strace = Strace(folder, logs) if strace_works() else None

    def command(self, *argv: str) -> list[str]:
        return self._strace.command(*argv) if self._strace else list(argv)

    def writes(self) -> list[str]:
        return [*self._inotify.writes(), *(self._strace.writes() if self._strace else ())]


@pytest.fixture
def observer(tmp_path: Path, traces: Path, writer: sqlite3.Connection) -> Observer:
    if sys.platform != "linux":
        pytest.skip("inotify and strace are part of Linux")
    return Observer(traces, tmp_path / "strace")


def write(writer: sqlite3.Connection, name: str) -> None:
    """One run more."""
    insert(writer, "runs", id=name, graph_name=name, status="completed", duration_ms=10.0, node_count=1,
           created_at="2026-03-08T01:00:00+00:00", completed_at="2026-03-08T01:00:01+00:00")  # fmt: skip
    insert(writer, "steps", run_id=name, step_index=0, superstep=0, node_name="embed", status="completed",
           values_data={"text": name * 100}, created_at="2026-03-08T01:00:00+00:00")  # fmt: skip


def test_commands(traces: Path, writer: sqlite3.Connection, observer: Observer) -> None:
    for number, arguments in enumerate(
        (["ls"], ["show", f"{traces}/live.db#fresh-0"], ["grep", "embed"], ["stats", "--by", "node"], ["doctor"])
    ):
        write(writer, f"fresh-{number}")
        argv = observer.command(*TRACETUI, *arguments, *([] if arguments[0] == "show" else [str(traces)]))
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        assert "fresh-0" in done.stdout or arguments[0] in ("stats", "doctor")
    assert observer.writes() == []


@pytest.mark.parametrize("options", [(), ("--polling",)], ids=["events", "polling"])
def test_tail(traces: Path, writer: sqlite3.Connection, observer: Observer, options: tuple[str, ...]) -> None:
    with Terminal(*observer.command(*TRACETUI, "tail", "--json", str(traces), *options)) as terminal:
        terminal.wait_for("following")
        for number in range(6):
            write(writer, f"fresh-{number}")
            terminal.wait_for(f"fresh-{number}")
        terminal.send("ctrl+c")
        assert terminal.wait_exit() == 130
    assert observer.writes() == []


def test_the_app(traces: Path, writer: sqlite3.Connection, observer: Observer) -> None:
    with Terminal(*observer.command(*TRACETUI, str(traces))) as terminal:
        terminal.wait_for("nightly-2")
        for number in range(6):
            write(writer, f"fresh-{number}")
            terminal.wait_for(f"fresh-{number}")
        terminal.send("g", "enter")
        terminal.wait_for("embed")
        insert(writer, "steps", run_id="fresh-0", step_index=1, superstep=1, node_name="retrieve",
               status="completed", values_data={}, created_at="2026-03-08T01:00:01+00:00")  # fmt: skip
        terminal.wait_for("retrieve")
        terminal.send("escape")
        terminal.wait_quiet(0.5)  # together they would be Alt+q
        terminal.send("q")
        assert terminal.wait_exit() == 0
    assert observer.writes() == []

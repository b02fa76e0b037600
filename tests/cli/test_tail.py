"""``tracetui tail`` as a process: what it prints, for whom, and how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import Cli
from tests.live.sessions import Session
from tests.shared import PATIENCE


class Tailing:
    """The command, and the lines that it has printed so far."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tracetui", "tail", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self._pending = b""
        assert self.process.stderr is not None
        self.greeting = self.process.stderr.readline().decode()

    def line(self) -> str:
        """The next line that is printed."""
        deadline = time.monotonic() + PATIENCE
        assert self.process.stdout is not None
        while b"\n" not in self._pending:
            remaining = deadline - time.monotonic()
            assert remaining > 0, self._pending
            assert select.select([self.process.stdout], [], [], remaining)[0], "nothing was printed"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, self.process.stderr and self.process.stderr.read()
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode()

    def event(self) -> Any:
        """The next line, as data."""
        return json.loads(self.line())


@contextmanager
def tailing(*arguments: str, **environment: str) -> Iterator[Tailing]:
    """The command at work; interrupted at the end."""
    tail = Tailing(*arguments, **environment)
    try:
        yield tail
        tail.process.send_signal(signal.SIGINT)
        assert tail.process.wait(PATIENCE) == 130
        assert tail.process.stderr is not None
        assert tail.process.stderr.read() == b""
    finally:
        tail.process.kill()
        tail.process.communicate()


@pytest.mark.parametrize("mode", [[], ["--polling"]])
def test_events_are_printed_as_they_happen(tmp_path: Path, mode: list[str]) -> None:
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    with tailing(str(tmp_path), "--json", *mode) as tail:
        assert tail.greeting.startswith(f"tracetui: following {tmp_path} ({'polling' if mode else 'events'}")
        session.call(command="make")
        events = [tail.event() for _ in range(3)]

    assert [event["event"] for event in events] == ["run", "span", "span"]
    assert events[0]["summary"]["address"] == events[1]["run"] == str(session.path)
    assert events[2]["span"]["input"] == {"command": "make"}


def test_lines_for_people(tmp_path: Path) -> None:
    with tailing(str(tmp_path)) as tail:
        session = Session(tmp_path / "s.ccpa-trace.jsonl")
        session.step("broken", ok=False)
        session.end()
        lines = [tail.line() for _ in range(5)]

    assert lines[0] == f"▸ claude-code · {session.path}"
    assert "Make the tests pass." in lines[1]
    assert "✗ Bash  make 1" in lines[3]
    assert "✓ ok  1 step" in lines[4] or "✗ error  1 step" in lines[4]


def test_one_run_from_its_start(tmp_path: Path) -> None:
    first, other = Session(tmp_path / "a.ccpa-trace.jsonl", "aaa"), Session(tmp_path / "b.ccpa-trace.jsonl", "bbb")
    with tailing("aaa", "--trace-dir", str(tmp_path), "--json", "--from-start") as tail:
        assert [tail.event()["run"] for _ in range(2)] == [str(first.path)] * 2
        other.step()
        first.step()
        assert tail.event()["run"] == str(first.path)


def test_the_newest_run(tmp_path: Path) -> None:
    Session(tmp_path / "a.ccpa-trace.jsonl", "old")
    new = Session(tmp_path / "b.ccpa-trace.jsonl", "new")
    new.path.write_bytes(new.path.read_bytes().replace(b"2026-11-21T09", b"2026-11-21T10"))
    with tailing(str(tmp_path), "--newest", "--json", "--from-start") as tail:
        assert tail.event()["id"] == "new"


def test_the_first_run_that_appears(tmp_path: Path) -> None:
    with tailing(str(tmp_path), "--newest", "--json") as tail:
        first = Session(tmp_path / "a.ccpa-trace.jsonl", "first")
        assert tail.event()["id"] == "first"
        assert tail.event()["event"] == "span"
        Session(tmp_path / "b.ccpa-trace.jsonl", "second")
        first.step()
        assert tail.event()["id"] == "first"


def test_nobody_reads(tmp_path: Path) -> None:
    tail = Tailing(str(tmp_path), "--json")
    assert tail.process.stdout is not None
    assert tail.process.stderr is not None
    tail.process.stdout.close()

    assert tail.process.wait(PATIENCE) == 141
    assert tail.process.stderr.read() == b""
    tail.process.stderr.close()


def test_wrong_usage(cli: Cli) -> None:
    for arguments, status, message in (
        (["-"], 2, "standard input can't be followed"),
        (["nowhere/x.json"], 1, "nowhere/x.json"),
        (["traces/paprika/plan-7.json/2"], 2, "use the whole run"),
        (["traces/daily.db#nightly-1", "--newest"], 2, "not a run"),
        (["traces", "--format", "none"], 2, "no format"),
    ):
        result = cli("tail", *arguments)
        assert (result.status, result.out) == (status, b""), arguments
        assert message in result.err

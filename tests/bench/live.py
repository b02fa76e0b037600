"""While agents work: another run than the open one, bytes, fifty agents at once, and doing nothing."""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench import data, process, references, screen, writers
from tests.bench.screen import press
from tests.bench.table import Row, median, p95, say, timed
from tests.live.sessions import Session
from tests.terminal import NotShown, Terminal

PROBES: Final = 20
"""Steps that are written and waited for, in each round."""
AGENTS: Final = 50
RATE: Final = 20
"""Steps a second, of each agent."""
LOST_SECONDS: Final = 2.0
"""A key that shows no effect for so long has none."""
STEP_COUNT: Final = r"^.{{3}}claude-code .* {} +\S+◂?"
IN_LIST: Final = r"new above|^.◐"
"""What shows that runs that appeared are in their places: in view, or counted above the first row."""
_CHANCE: Final = random.Random(3)


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about a directory that is live."""
    yield from latency(scale, rounds)
    yield from throttle()
    yield from load(scale)


@contextmanager
def folder_of(files: int) -> Iterator[Path]:
    """A folder to write in, with so many Paprika runs; the files are those of the cache, linked."""
    data.CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="live-", dir=data.CACHE))
    try:
        if files:
            for path in data.paprika_runs(files, size=20_000).iterdir():
                os.link(path, folder / path.name)
        yield folder
    finally:
        shutil.rmtree(folder)


def opened(folder: Path, *options: str) -> Terminal:
    """The app, when everything is listed, counted and watched."""
    terminal = screen.loaded(*options, folder)
    terminal.wait_for(r"● live", timeout=30)  # the number of folders is shown if there is room
    terminal.wait_quiet(0.5)
    return terminal


def followed(folder: Path, *options: str) -> Terminal:
    """The app, following the newest run."""
    terminal = opened(folder, *options)
    terminal.send("g", "down", "up", "enter")
    terminal.wait_for(" FOLLOW ")
    terminal.wait_quiet(0.5)
    return terminal


# ---- from write() to the screen


def latency(scale: int, rounds: int) -> Iterator[Row]:
    """The row of another run than the open one, in a large directory."""
    files, times = 10_000 // scale, list[float]()
    for _ in range(rounds):
        with folder_of(files) as folder:
            session = writers.begin(folder / "live.ccpa-trace.jsonl", 100)
            with opened(folder) as terminal:
                times += [_probe(terminal, session, number) for number in range(101, 101 + PROBES)]
    what = f"write() to the screen, another run among {files} files: p95"
    yield timed(what, p95(times), 30, references.key(), f"p50 {median(times):.1f}")


def _probe(terminal: Terminal, session: Session, number: int) -> float:
    """Write a step at a random moment, after quiet; milliseconds until the list counts it."""
    terminal.wait_quiet(0.2 + _CHANCE.random() / 2, timeout=2, at_rest=False)
    lines = writers.step_lines(number)
    at = time.perf_counter()
    session.write_bytes(lines)
    return (terminal.wait_for(STEP_COUNT.format(number), timeout=20) - at) * 1000


# ---- bytes


def throttle() -> Iterator[Row]:
    """What a key and a second cost on the line."""
    with folder_of(100) as folder:
        with opened(folder) as terminal:
            press(terminal, "down", quiet=0.3)
            sizes = [press(terminal, "down").size for _ in range(10)]
        what = "bytes of a cursor move in the list, preview following"
        yield Row(what, p95(sizes), 10_000, "B", f"median {median(sizes):.0f}")
        for options, limit in (((), 100), (("--slow",), 20)):
            writers.begin(folder / "agent-000.ccpa-trace.jsonl", 100)
            with (
                followed(folder, *options) as terminal,
                writers.Writer(folder, runs=1, rate=RATE, seconds=10) as writer,
            ):
                before = len(terminal.output)
                began = time.perf_counter()
                while writer.at_work:
                    terminal.read(0.1)
                size = len(terminal.output) - before
                a_second = size / (time.perf_counter() - began) / 1000
            what = " ".join(("following 20 steps a second", *options))
            yield Row(what, a_second, limit, "kB/s", f"{size / 1000:.0f} kB in all")
            (folder / "agent-000.ccpa-trace.jsonl").unlink()


# ---- fifty agents at once


class Moves(NamedTuple):
    """Keys that lead to what is watched, what it then shows, two keys that move the cursor there, by so many rows."""

    first: tuple[str, ...]
    until: str
    keys: tuple[str, str]
    by: int


def load(scale: int, seconds: int = 20) -> Iterator[Row]:
    """Fifty runs grow among ten thousand while keys are pressed, in the list and in one of them; then nothing moves."""
    if not Path("/proc/self/fdinfo").is_dir():
        say("        this system has no /proc: load is not measured")
        return
    files = 10_000 // scale
    with folder_of(files) as folder, opened(folder) as terminal:
        usage = process.Usage(terminal.process.pid)
        _read_for(terminal, seconds)
        yield Row(f"idle in a directory of {files} runs", 100 * usage.cores, 1, "%", f"of a core, over {seconds} s")
        what = f"{AGENTS} runs of {RATE} steps a second among {files}: keys"
        in_list = Moves(("g",), r"^▌◐", ("down", "up"), 1)
        yield from _beside(terminal, folder / "first", f"{what} in the list", seconds, in_list)
        shutil.rmtree(folder / "first")
        terminal.wait_for(r"◐ \d+", gone=True)
        in_run = Moves(("g", "enter"), r"probe-00(?:0[4-9]|[1-9])", ("up", "G"), -1)
        yield from _beside(terminal, folder / "second", f"{what}, following one", seconds, in_run)


def _beside(terminal: Terminal, folder: Path, what: str, seconds: int, moves: Moves) -> Iterator[Row]:
    """What keys cost while the agents write, and what is known of them at the end."""
    usage = process.Usage(terminal.process.pid)
    before = process.memory(terminal.process.pid)
    with writers.Writer(folder, runs=AGENTS, rate=RATE, seconds=seconds) as writer:
        terminal.wait_for(rf"◐ {AGENTS} ", timeout=30)
        terminal.wait_for(IN_LIST, timeout=20)
        for key in moves.first:
            terminal.send(key)
            terminal.wait_quiet(0.1, timeout=1, at_rest=False)
        terminal.wait_for(moves.until, timeout=20)
        _read_for(terminal, 1)  # until the panes have their heights
        cursor = Cursor(terminal, moves.keys, moves.by)
        while writer.at_work:
            cursor.press()
            _read_for(terminal, 0.05 + _CHANCE.random() / 10)
        cores, written, times = usage.cores, writer.written() / 1e6, cursor.times
    detail = f"p95 of {len(times)}; median {median(times):.1f}, worst {max(times):.0f}"
    yield timed(what, p95(times), 20, references.key(), detail)
    yield Row("  cores", cores, 1, "", f"{written:.1f} MB written in {seconds} s")
    yield Row("  runs whose steps are not all there", _incomplete(terminal, RATE * seconds), 0, "")
    grown = process.memory(terminal.process.pid) - before
    yield Row("  memory grown, against what was written", grown / written, 10, "×", f"{grown:.0f} MB")


def _read_for(terminal: Terminal, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while (remaining := end - time.perf_counter()) > 0:
        terminal.read(remaining)


class Cursor:
    """Moves the cursor to and fro, and sees it in the bytes: drawing them would make this a terminal that lags."""

    _PAINTED: Final = re.compile(rb"\x1b\[(\d+);1H(?:\x1b\[[\d;]*m)*\xe2\x96\x8c")

    def __init__(self, terminal: Terminal, keys: tuple[str, str], by: int) -> None:
        """Press these `keys` in turn: the first moves the cursor `by` so many rows, the second back again."""
        self.times: list[float] = []
        """Milliseconds from each key until the cursor was seen where it leads to; a key without effect counts fully."""
        self._terminal, self._keys, self._looked, self._part = terminal, keys, 0, b""
        lines = terminal.text().split("\n")
        self._home = next((row for row, line in enumerate(lines, 1) if line.startswith("▌")), 0)
        self._away = self._home + by

    def press(self) -> None:
        """Press a key, and wait for the cursor."""
        self._terminal.read(0)
        self._looked = len(self._terminal.received)
        away = len(self.times) % 2 == 0
        at = self._terminal.send(self._keys[0 if away else 1])
        end, seen = at + LOST_SECONDS, 0.0
        while not seen and time.perf_counter() < end:
            self._terminal.read(0.05)
            seen = self._seen(self._away if away else self._home)
        self.times.append(((seen or end) - at) * 1000)

    def _seen(self, row: int) -> float:
        """When the cursor was painted in that row, since the last call; 0 if it was not."""
        for at, output in self._terminal.received[self._looked :]:
            self._looked += 1
            output = self._part + output
            self._part = output[-60:]
            if any(int(match[1]) == row for match in self._PAINTED.finditer(output)):
                return at
        return 0.0


def _incomplete(terminal: Terminal, steps: int) -> int:
    """How many of the agents' rows in the list do not come to show so many steps."""
    columns, lines = terminal.size
    terminal.send("escape")
    terminal.resize(columns, AGENTS + 40)
    terminal.send("1", "g")
    complete = re.compile(rf"^.{{3}}claude-code +agent-\d+ .* {steps} ", re.MULTILINE)
    missing = AGENTS
    try:
        terminal.wait_until(lambda text: len(complete.findall(text)) == AGENTS, timeout=15)
        missing = 0
    except NotShown:
        missing -= len(complete.findall(terminal.text()))
    terminal.resize(columns, lines)
    terminal.wait_quiet(0.5)
    return missing

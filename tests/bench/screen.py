"""The program under a pseudo-terminal, against the least that Textual can do: start, keys, large runs, the end."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench import data, references
from tests.bench.table import Row, median, p95, timed
from tests.terminal import Received, Terminal, plain

SIZE: Final = (120, 40)
CELLS: Final = SIZE[0] * SIZE[1]
APPS: Final = ("-m", "tests.bench.apps")
ENVIRONMENT: Final = {
    "XDG_STATE_HOME": str(data.CACHE / f"state-{os.getpid()}"),  # how somebody left the list must not matter
    "XDG_CONFIG_HOME": str(data.CACHE / "config"),
    "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX") or str(data.CACHE / "pycache"),
}
EMPTY: Final = (*APPS, "empty")
A_RUN: Final = r"^(?:▌| )[✓✗◐?●] +(?:" + "|".join((*data.AGENTS, "trace", "claude-code")) + r")\b"
LOADING: Final = r"scanning|counting"
_FRAME: Final = re.compile(rb"\x1b\[\?2026h(.*?)\x1b\[\?2026l", re.DOTALL)


def start(*arguments: str, size: tuple[int, int] = SIZE, cache: str = "") -> Terminal:
    """A Python program in a fresh process; with a `cache` folder if given."""
    env = {**ENVIRONMENT, **({"XDG_CACHE_HOME": cache} if cache else {})}
    return Terminal(sys.executable, *arguments, size=size, env=env, answers=True)


def tracetui(*paths: Path) -> Terminal:
    """Our program on these paths."""
    return start("-m", "tracetui", *map(str, paths))


# ---- start


class Start(NamedTuple):
    """One start: until the first row was sent (ms), and what was painted until nothing more came."""

    ms: float
    frames: int
    """Updates that painted nine tenths of the screen or more."""
    size: int
    """Bytes of what was painted."""
    peak_mb: float


def first_paint(scale: int, rounds: int) -> Iterator[Row]:
    """A directory of 10 and one of 10,000 runs, and JSONL files of 500 MB, against an empty app."""
    few, many = data.paprika_runs(10, size=20_000), data.paprika_runs(10_000 // scale, size=20_000)
    rows = data.conversation_rows(f"rows-{scale}", rows=29_000 // scale, size=20_000)
    session = data.session_file(f"session-{scale}", calls=250_000 // scale, payload=1_600)
    cases: dict[str, Callable[[], Start]] = {
        "empty": lambda: _start(lambda: start(*EMPTY), "ready"),
        "few": lambda: _start(lambda: tracetui(few), A_RUN),
        "many": lambda: _start(lambda: tracetui(many), A_RUN),
        "rows": lambda: _start(lambda: tracetui(rows), A_RUN),
        "session": lambda: _start(lambda: tracetui(session), A_RUN),
    }
    for run in cases.values():
        run()  # compiled once, files in the page cache
    starts: dict[str, list[Start]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, run in cases.items():
            starts[name].append(run())
    ms = {name: median([sample.ms for sample in samples]) for name, samples in starts.items()}
    floor = f"empty app {ms['empty']:.0f} ms"
    megabytes = 500 // scale
    names = {
        "few": "first paint, 10 runs",
        "many": f"first paint, {10_000 // scale} runs",
        "rows": f"first rows of {megabytes} MB JSONL, many runs",
        "session": f"first rows of {megabytes} MB JSONL, one session",
    }
    for name, what in names.items():
        yield Row(what, ms[name] / ms["empty"], 1.5, "×", f"{ms[name]:.0f} ms; {floor}")
    yield Row("first paint, 10,000 runs against 10", ms["many"] / ms["few"], 1.1, "×", "the same for both")
    for name in ("few", "many"):
        size = median([sample.size for sample in starts[name]])
        frames = median([sample.frames for sample in starts[name]])
        yield Row(f"whole frames painted, {names[name][13:]}", frames, 2, "", f"{size / 1000:.0f} kB until settled")
    for name in ("rows", "session"):
        yield Row(f"peak memory, {names[name][14:]}", median([sample.peak_mb for sample in starts[name]]), 150, "MB")


def _start(begin: Callable[[], Terminal], row: str) -> Start:
    """Start until a row shows, and on until everything is loaded."""
    with begin() as terminal:
        row_at = terminal.wait_for(row, timeout=60)
        terminal.wait_quiet(0.3, at_rest=False)
        frames = _frames(terminal.received)
        terminal.wait_for(LOADING, gone=True, timeout=180)
        return Start((row_at - terminal.started) * 1000, frames, len(terminal.output), peak(terminal))


def _frames(received: list[Received]) -> int:
    updates = _FRAME.findall(b"".join(data for _, data in received))
    return sum(len(plain(update)) > 0.9 * CELLS for update in updates)


def peak(terminal: Terminal) -> float:
    """Most memory that the process ever held, in MB; 0 where the system does not say."""
    status = Path(f"/proc/{terminal.process.pid}/status")
    match = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(match.group(1)) / 1024 if match else 0.0


# ---- keys


class Key(NamedTuple):
    """What one key cost: until its last byte came (ms), bytes, cells painted."""

    ms: float
    size: int
    cells: int


def press(terminal: Terminal, *keys: str, quiet: float = 0.08) -> Key:
    """Type and wait until nothing more comes, whatever else the program is doing."""
    before = len(terminal.received)
    at = terminal.send(*keys)
    last = terminal.wait_quiet(quiet, at_rest=False)
    new = terminal.received[before:]
    output = b"".join(data for _, data in new)
    return Key((last - at) * 1000 if new else 0.0, len(output), len(plain(output)))


def line_view(scale: int, rounds: int) -> Iterator[Row]:
    """`LineView` alone, over a thousand and a million rows."""
    times: dict[tuple[int, str], list[Key]] = {}
    for count in (1_000, 1_000_000):
        with start(*APPS, "rows", str(count)) as terminal:
            terminal.wait_for(r"step +0 ")
            terminal.wait_quiet(0.15)
            for name in ("down", "pagedown"):
                press(terminal, name)
                times[count, name] = [press(terminal, name) for _ in range(24)]
    million = {name: times[1_000_000, name] for name in ("down", "pagedown")}
    yield p95_row("LineView of 1,000,000 rows: cursor down", million["down"], 4)
    yield Row("  bytes of cursor down", p95([key.size for key in million["down"]]), 900, "B")
    yield p95_row("LineView of 1,000,000 rows: page down", million["pagedown"], 8)
    yield Row("  frames of page down", p95([key.cells / CELLS for key in million["pagedown"]]), 1.3, "")
    for name in ("down", "pagedown"):
        small, big = (median([key.ms for key in times[count, name]]) for count in (1_000, 1_000_000))
        yield Row(f"  {name}, 1,000,000 rows against 1,000", big / small, 1.3, "×", f"{big:.1f} ms, {small:.1f} ms")


def p95_row(what: str, keys: list[Key], limit: float, name: str = "down") -> Row:
    """A row of what keys cost, by time: `limit` is a ratio to the key `name` in a bare `LineView`."""
    times = [key.ms for key in keys]
    detail = f"p95; median {median(times):.1f} ms, {median([k.size for k in keys]):.0f} B"
    return timed(what, p95(times), limit, references.key(name), detail)


def run_list(scale: int, rounds: int) -> Iterator[Row]:
    """The cursor goes down the real list, the preview with it."""
    with tracetui(data.paprika_runs(10_000 // scale, size=20_000)) as terminal:
        terminal.wait_for(A_RUN)
        terminal.wait_for(LOADING, gone=True, timeout=60)
        terminal.wait_quiet(0.3)
        press(terminal, "down")
        yield p95_row("cursor down in the run list, preview following", [press(terminal, "down") for _ in range(60)], 8)
        pages = [press(terminal, "pagedown") for _ in range(20)]
        yield p95_row("page down in the run list, preview following", pages, 8, "pagedown")


# ---- large runs


def large_runs(scale: int, rounds: int) -> Iterator[Row]:
    """A run of 2 MB and runs of 100,000 spans: first rows after Enter with nothing read before, pages of the tree."""
    spans = 100_000 // scale
    session = data.coding_session(f"session-{spans}", calls=spans // 2, payload=200)
    record = data.one_record(f"record-{spans}", steps=spans)
    yield from _opened("run of 2 MB", data.one_record("record-2mb", size=2_000_000), 24, rounds)
    yield from _opened(f"session of {spans} spans", session, 120, rounds)
    yield from _opened(f"record of {spans} spans", record, 120, rounds)


def _opened(what: str, folder: Path, limit: float, rounds: int) -> Iterator[Row]:
    times: list[float] = []
    pages: list[Key] = []
    for number in range(rounds):
        with tracetui(folder) as terminal:
            _settle(terminal)
            at = terminal.send("down", "enter")
            times.append((terminal.wait_for(rf"^.* Steps .*\n(?:.*\n){{0,8}}.*(?:{data.BIG}|Bash)") - at) * 1000)
            if not number:
                terminal.wait_for(r"reading …", gone=True, timeout=60)
                terminal.wait_quiet(0.3)
                press(terminal, "t", quiet=0.5)
                pages = [key for _ in range(15) for key in (press(terminal, "pagedown"), press(terminal, "pageup"))]
    detail = "median; down and Enter at once, nothing read before"
    yield timed(f"open a {what}: first rows", median(times), limit, references.key(), detail)
    yield p95_row(f"  page through the tree of the {what}", pages, 8)


def _settle(terminal: Terminal) -> None:
    terminal.wait_for(A_RUN)
    terminal.wait_for(LOADING, gone=True, timeout=60)
    terminal.wait_quiet(0.3)


def large_values(scale: int, rounds: int) -> Iterator[Row]:
    """The cursor goes to a step with a value of 1 MB: until the detail pane shows it."""
    seen: dict[str, list[float]] = {"JSON value": [], "message": []}
    for _ in range(rounds):
        with tracetui(data.large_values(1_000_000)) as terminal:
            _settle(terminal)
            press(terminal, "down", quiet=0.3)
            press(terminal, "enter", quiet=0.3)
            message = r"(?s)the long answer.*the long answer"  # the row of the step has it too
            for name, shows in (("JSON value", r"\brows\b"), ("message", message)):
                at = terminal.send("down")
                seen[name].append((terminal.wait_for(shows) - at) * 1000)
                terminal.wait_quiet(0.3)
    for name, times in seen.items():
        detail = "median, from the key that leads to it"
        yield timed(f"a 1 MB {name} in the detail pane", median(times), 12, references.key(), detail)


# ---- while it loads


def loading(scale: int, rounds: int) -> Iterator[Row]:
    """The loop while 10,000 runs load; keys then; the end at any time."""
    folder = data.paprika_runs(10_000 // scale, size=20_000)
    worst: list[float] = []
    keys: list[Key] = []
    for _ in range(rounds):
        with tempfile.NamedTemporaryFile() as result, start(*APPS, "watch", result.name, str(folder)) as terminal:
            terminal.wait_for(A_RUN)
            while re.search(LOADING, terminal.text()):
                keys.append(press(terminal, "down", quiet=0.02))
            terminal.wait_quiet(0.3)
            terminal.send("q")
            terminal.wait_exit()
            worst.append(max((float(line) for line in Path(result.name).read_text().split()), default=0.0))
    detail = "median of the runs' worst"
    yield timed("longest stall of the loop while runs load", median(worst), 12, references.key(), detail)
    yield p95_row("  cursor down while runs load", keys, 16)
    for name, begin in _LOADS.items():
        times = [_quit(begin(scale)) for _ in range(rounds)]
        yield timed(f"quit while {name}", median(times), 1.25, references.empty_app())


_LOADS: Final[dict[str, Callable[[int], Path]]] = {
    "10,000 runs load": lambda scale: data.paprika_runs(10_000 // scale, size=20_000),
    "a 500 MB JSONL of many runs loads": lambda scale: data.conversation_rows(
        f"rows-{scale}", rows=29_000 // scale, size=20_000
    ),
    "a 500 MB session loads": lambda scale: data.session_file(
        f"session-{scale}", calls=250_000 // scale, payload=1_600
    ),
}


def _quit(folder: Path) -> float:
    with tracetui(folder) as terminal:
        terminal.wait_for(r"^.*Runs ")
        at = terminal.send("q")
        terminal.wait_exit()
        return (time.perf_counter() - at) * 1000

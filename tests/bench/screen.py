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

from tests.bench import data, process, references
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
A_RUN: Final = r"^[▌ ][✓✗◐?●·] +\w"
START: Final = "the modules of the app are imported and its panes styled, of which the empty app has none"
VALUE: Final = "all of a value is decoded and masked before its first lines are painted"
ANSWER_SECONDS: Final = 10.0
"""How long an answer to a key is waited for."""
LOADING: Final = r"scanning|counting"
_FRAME: Final = re.compile(rb"\x1b\[\?2026h(.*?)\x1b\[\?2026l", re.DOTALL)


def start(*arguments: str, size: tuple[int, int] = SIZE, cache: str = "") -> Terminal:
    """A Python program in a fresh process; with a `cache` folder if given."""
    env = {**ENVIRONMENT, **({"XDG_CACHE_HOME": cache} if cache else {})}
    return Terminal(sys.executable, *arguments, size=size, env=env, answers=True)


def tracetui(*arguments: str | Path) -> Terminal:
    """Our program, with these options and paths."""
    return start("-m", "tracetui", *map(str, arguments))


def loaded(*arguments: str | Path) -> Terminal:
    """Our program, when everything is listed and counted and nothing moves."""
    terminal = tracetui(*arguments)
    terminal.wait_for(A_RUN, timeout=120)
    terminal.wait_for(LOADING, gone=True, timeout=180)
    terminal.wait_quiet(0.5)
    return terminal


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
    folders = {
        "10 runs": data.paprika_runs(10, size=20_000),
        f"{10_000 // scale} runs": many_runs(scale),
        f"{500 // scale} MB JSONL, many runs": data.conversation_rows(
            f"rows-{scale}", rows=29_000 // scale, size=20_000
        ),
        f"{500 // scale} MB JSONL, one session": large_session(scale),
    }
    starts: dict[str, list[Start]] = {}
    for number in range(rounds + 1):
        for what, folder in folders.items():
            sample = _start(lambda folder=folder: tracetui(folder), A_RUN)  # type: ignore[misc]
            if number:  # compiled once, files in the page cache
                starts.setdefault(what, []).append(sample)
    for what, samples in starts.items():
        ms, floor = median([sample.ms for sample in samples]), references.empty_app()
        yield timed(f"first rows of {what}", ms, 1.5, floor, why=START)
        if "JSONL" in what:
            yield Row(f"peak memory, {what}", median([sample.peak_mb for sample in samples]), 150, "MB")
        else:
            frames, size = (median([sample[i] for sample in samples]) for i in (1, 2))
            yield Row(f"whole frames painted, {what}", frames, 2, "", f"{size / 1000:.0f} kB until settled")


def many_runs(scale: int) -> Path:
    """A folder of 10,000 runs."""
    return data.paprika_runs(10_000 // scale, size=20_000)


def large_session(scale: int) -> Path:
    """A folder with a session of 500 MB."""
    return data.session_file(f"session-{scale}", calls=250_000 // scale, payload=1_600)


def _start(begin: Callable[[], Terminal], row: str) -> Start:
    """Start until a row shows, and on until everything is loaded."""
    with begin() as terminal:
        shown = terminal.wait_for(row, timeout=60)
        terminal.wait_quiet(0.3, at_rest=False)
        frames = _frames(terminal.received)
        terminal.wait_for(LOADING, gone=True, timeout=180)
        return Start(
            (shown - terminal.started) * 1000,
            frames,
            len(terminal.output),
            process.memory(terminal.process.pid, peak=True),
        )


def _frames(received: list[Received]) -> int:
    updates = _FRAME.findall(b"".join(data for _, data in received))
    return sum(len(plain(update)) > 0.9 * CELLS for update in updates)


# ---- keys


class Key(NamedTuple):
    """What one key cost: until its last byte came (ms), bytes, cells painted."""

    ms: float
    size: int
    cells: int


def press(terminal: Terminal, *keys: str, quiet: float = 0.08, answered: bool = False) -> Key:
    """Type and wait until nothing more comes, whatever else the program is doing; `answered`: something must come."""
    before = len(terminal.received)
    at = terminal.send(*keys)
    while answered and len(terminal.received) == before and time.perf_counter() < at + ANSWER_SECONDS:
        terminal.read(0.05)
    last = terminal.wait_quiet(quiet, at_rest=False)
    new = terminal.received[before:]
    output = b"".join(data for _, data in new)
    return Key((last - at) * 1000 if new else 0.0, len(output), len(plain(output)))


def line_view(scale: int, rounds: int) -> Iterator[Row]:
    """`LineView` alone, over a million rows."""
    with start(*APPS, "rows", "1000000") as terminal:
        terminal.wait_for(r"step +0 ")
        terminal.wait_quiet(0.15)
        for name, limit in (("down", 4), ("pagedown", 8)):
            press(terminal, name)
            keys = [press(terminal, name) for _ in range(24)]
            yield p95_row(f"LineView of 1,000,000 rows: {name}", keys, limit)
            if name == "down":
                yield Row("  bytes of cursor down", p95([key.size for key in keys]), 900, "B")


def p95_row(what: str, keys: list[Key], limit: float, name: str = "down") -> Row:
    """A row of what keys cost, by time: `limit` is a ratio to the key `name` in a bare `LineView`."""
    times = [key.ms for key in keys if key.size]  # at an end nothing moves
    detail = f"p95; median {median(times):.1f} ms, {median([k.size for k in keys]):.0f} B"
    return timed(what, p95(times), limit, references.key(name), detail)


def run_list(scale: int, rounds: int) -> Iterator[Row]:
    """The cursor goes down the real list, the preview with it."""
    with loaded(many_runs(scale)) as terminal:
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
        with loaded(folder) as terminal:
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


def large_values(scale: int, rounds: int) -> Iterator[Row]:
    """The cursor goes to a step with a value of 1 MB: until the detail pane shows it."""
    seen: dict[str, list[float]] = {"JSON value": [], "message": []}
    for _ in range(rounds):
        with loaded(data.large_values(1_000_000)) as terminal:
            press(terminal, "down", quiet=0.3)
            press(terminal, "enter", quiet=0.3)
            message = r"(?s)the long answer.*the long answer"  # the row of the step has it too
            for name, shows in (("JSON value", r"\brows\b"), ("message", message)):
                at = terminal.send("down")
                seen[name].append((terminal.wait_for(shows) - at) * 1000)
                terminal.wait_quiet(0.3)
    for name, times in seen.items():
        detail = "median, from the key that leads to it"
        yield timed(f"a 1 MB {name} in the detail pane", median(times), 12, references.key(), detail, VALUE)


# ---- while it loads


def loading(scale: int, rounds: int) -> Iterator[Row]:
    """The loop while 10,000 runs load; keys then; the end at any time."""
    folder = many_runs(scale)
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
    for what, loading_folder in (("10,000 runs load", folder), ("a 500 MB session loads", large_session(scale))):
        times = [_quit(loading_folder) for _ in range(rounds)]
        yield timed(f"quit while {what}", median(times), 1.25, references.empty_app())


def _quit(folder: Path) -> float:
    with tracetui(folder) as terminal:
        terminal.wait_for(r"^.*Runs ")
        at = terminal.send("q")
        terminal.wait_exit()
        return (time.perf_counter() - at) * 1000

"""The screen that compares two runs, under a pseudo-terminal: from `D` to the first words, scrolling, the largest."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.bench import data, process, references, screen
from tests.bench.screen import press
from tests.bench.table import Row, median, p95, timed
from tests.terminal import Terminal
from tracetui.formats.paprika import check

REPLAY: Final = "replay"
"""Name of the agent of the replay: its row of the list is found by it."""
LINES: Final = 1_000
"""Lines of a text of about 100 kB."""
_WORDS: Final = re.compile(r"[+−] +\d+ changed 0\.")
_GOING_ON: Final = "comparing, "
_CURSOR: Final = re.compile(r"^▌ *(\d+) ", re.MULTILINE)

Edit = Callable[[data.TextGenerator, dict[str, Any]], None]


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about the screen; sizes are divided by `scale`."""
    count = 5_000 // scale
    replay = data.cached_folder(f"diff-{count}", lambda folder: _write(folder, count, _edit_some))
    yield _first_words(replay, count, rounds)
    where = f"a comparison of {count} steps, its change following"
    yield from _keys(replay, (), ("down", "pagedown", "n"), where)
    texts = data.cached_folder("diff-texts", lambda folder: _write(folder, 4, _edit_lines))
    yield from _keys(texts, ("3", "z"), ("down", "pagedown", "s"), "a change of two texts of 100 kB")
    count = 20_000 // scale
    others = data.cached_folder(f"diff-others-{count}", lambda folder: _write(folder, count, _edit_all))
    yield from _large(others, count)


# ---- records


def _write(folder: Path, count: int, edit: Edit) -> None:
    """An original of so many steps, its replay with some of them edited, and a run on which the cursor starts."""
    generator = data.TextGenerator(f"diff {count}")
    original = ""
    for name in ("original", REPLAY):
        record = data.record(data.TextGenerator("replay"), 1, steps=count)
        record["agent"]["name"] = name
        record["replay_of"] = original or None
        if original:
            record["record_id"] = generator.uid()
        original = record["record_id"]
        for step in record["steps"]:
            if name == REPLAY or edit is _edit_lines:
                edit(generator, step)
            checked = check(step | {"input_hash": ""})
            assert checked is not None
            step["input_hash"] = dict(checked.expected)["documented"]
        data.save(folder, record)
    data.save(folder, data.record(generator, 100_003, size=8_000))


def _edit_some(generator: data.TextGenerator, step: dict[str, Any]) -> None:
    """Another time, and in one of fifty steps another output."""
    step.update(timestamp="2027-01-01T00:00:00Z", duration_ms=0.0)
    if generator.random.random() < 0.02:
        step["output_data"] = {"text": f"changed {generator.random.random()}"}


def _edit_all(generator: data.TextGenerator, step: dict[str, Any]) -> None:
    """What goes in and what comes out are others."""
    arguments = step.get("args") or step["input_data"]
    arguments["query"] = f"changed {generator.random.random()}"
    step["output_data"] = {"text": f"changed {generator.random.random()}"}


def _edit_lines(generator: data.TextGenerator, step: dict[str, Any]) -> None:
    """A long text; of thirty lines one is in this run alone."""
    chance = random.Random(4)
    lines = [f"{chance.getrandbits(320):x}" for _ in range(LINES)]
    share, chance = 1 / 30, generator.random
    step["output_data"] = {
        "text": "\n".join(f"changed {chance.random()} {line}" if chance.random() < share else line for line in lines)
    }


# ---- what is measured


def _compared(terminal: Terminal) -> float:
    """Go to the replay and press `D` once nothing moves any more; when that was."""
    for _ in range(3):
        if re.search(rf"^▌.*{REPLAY}", terminal.text(), re.MULTILINE):
            break
        press(terminal, "down", quiet=0.4)
    terminal.wait_quiet(1.0)
    return terminal.send("D")


def _first_words(folder: Path, count: int, rounds: int) -> Row:
    times: list[float] = []
    for _ in range(max(3, rounds)):
        with screen.loaded(folder) as terminal:
            at = _compared(terminal)
            times.append((_shown(terminal) - at) * 1000)
    detail = f"median of {len(times)}, at most {max(times):.0f} ms; the cursor was on the replay for a second"
    return timed(f"D to the first changed words, {count} steps", median(times), 40, references.key(), detail)


def _shown(terminal: Terminal) -> float:
    return terminal.wait_until(lambda text: bool(_WORDS.search(text)), what="the words that changed", timeout=30)


def _keys(folder: Path, first: tuple[str, ...], names: tuple[str, ...], where: str) -> Iterator[Row]:
    """Keys in a comparison that is done; the keys `first` lead to the pane."""
    with screen.loaded(folder) as terminal:
        _compared(terminal)
        _shown(terminal)
        terminal.wait_for(_GOING_ON, gone=True, timeout=120)
        terminal.wait_quiet(0.5)
        for key in first:
            press(terminal, key, quiet=0.3)
        for name in names:
            press(terminal, "g", quiet=0.3)
            yield screen.p95_row(f"{name} in {where}", [press(terminal, name) for _ in range(24)], 16)


def _large(folder: Path, count: int) -> Iterator[Row]:
    """Two runs that have nothing in common: keys while they are compared, and memory."""
    what = f"{count} steps against {count} others"
    with screen.loaded(folder) as terminal:
        at = _compared(terminal)
        shown = _shown(terminal)
        waits = []
        while _GOING_ON in terminal.text():
            waits.append(_move(terminal))
        took = time.perf_counter() - at
        terminal.wait_quiet(0.5)
        peak = process.memory(terminal.process.pid, peak=True)
    yield timed(f"{what}: first words", (shown - at) * 1000, 400, references.key(), f"all of it: {took:.1f} s")
    detail = f"p95 {p95(waits):.0f} ms, median {median(waits):.0f} ms of {len(waits)}"
    if waits:  # else all of it was compared at once
        yield timed("  longest wait of a key meanwhile", max(waits), 40, references.key(), detail)
    yield Row("  peak memory", peak, 300, "MB")


def _move(terminal: Terminal) -> float:
    """Move the cursor down; milliseconds until it is seen on another row."""
    before = _cursor(terminal.text())
    at = terminal.send("down")
    return (terminal.wait_until(lambda text: _cursor(text) not in (before, ""), what="the cursor") - at) * 1000


def _cursor(text: str) -> str:
    """The step under the cursor: what tells it from the others."""
    match = _CURSOR.search(text)
    return match.group(1) if match else ""

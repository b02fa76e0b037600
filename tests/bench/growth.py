"""The open run while it grows: two sizes, logs and a database, from `write()` to the paint, its bytes, CPU and memory.

The run is shown in the view that opens by default: a conversation as a story, a run of a graph as a timeline.
"""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from tests.bench import data, live, process, screen
from tests.bench.table import Row, median, p95, say
from tests.formats import codex_build, hypergraph_build
from tests.terminal import Terminal

SMALL: Final = 400
LARGE: Final = 100_000
PAYLOAD: Final = 4_500
"""Bytes of a step's result: 100,000 steps are 500 MB."""
TURN: Final = 4
"""Steps after each prompt of the user."""
LINES: Final = 24
"""Steps that are appended and waited for."""
BURST_SECONDS: Final = 0.004
"""Silence before the first byte of a paint."""
STEP_SECONDS: Final = 1.3
FIRST_STEPS: Final = r"━ 2 .*\d/\d+ ━"
"""The screen shows the first steps of the run, and keys move among them."""
_CHANCE: Final = random.Random(5)
_THREAD: Final = "019cadd4-5620-7001-8000-000000000001"
_LONG: Final = data.TextGenerator("growth").text(PAYLOAD * 2)


class Log:
    """A run in one file of JSON lines."""

    name = ""

    def __init__(self, root: Path, steps: int) -> None:
        """Write a run of so many steps, the last of which ended now."""
        self.root, self.path = root, root / self.name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._began = time.time() - steps * STEP_SECONDS
        with self.path.open("wb") as file:
            file.writelines(self._line(record) for record in self.first())
            for number in range(1, steps + 1):
                at = (number * 131) % PAYLOAD
                file.writelines(self._line(record) for record in self.step(number, _LONG[at : at + PAYLOAD]))
        self._file = self.path.open("ab", buffering=0)

    def append(self, number: int) -> None:
        """Write one step."""
        self._file.write(
            b"".join(self._line(record) for record in self.step(number, f"what probe-{number:06} printed"))
        )

    def shown(self, number: int) -> str:
        """A pattern of the screen that shows a step."""
        return f"probe-{number:06}"

    @staticmethod
    def prompt(number: int) -> str:
        """The prompt before a step; empty for none."""
        return f"Rename compute_offset in part {number // TURN}" if number % TURN == 1 else ""

    def begin_shown(self, number: int) -> str:
        """A pattern of the screen that shows the first hundred characters of a line of a step."""
        raise NotImplementedError

    def close(self) -> None:
        self._file.close()

    def first(self) -> Iterator[dict[str, Any]]:
        """The records before the first step."""
        yield from ()

    def step(self, number: int, output: str) -> Iterator[dict[str, Any]]:
        """The records of one step."""
        raise NotImplementedError

    def at(self, number: float) -> str:
        """When a step was made."""
        when = datetime.fromtimestamp(self._began + number * STEP_SECONDS, UTC)
        return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @staticmethod
    def _line(record: dict[str, Any]) -> bytes:
        return orjson.dumps(record) + b"\n"


class ClaudeCode(Log):
    """A session of Claude Code."""

    name = f"projects/-home-ada-orchard/{_THREAD}.jsonl"

    def step(self, number: int, output: str) -> Iterator[dict[str, Any]]:
        ident = f"toolu_{number}"
        if prompt := self.prompt(number):
            yield self._node("user", number - 0.95, {"role": "user", "content": prompt})
        use = {"type": "tool_use", "id": ident, "name": "Bash", "input": {"command": f"probe-{number:06}"}}
        usage = {"input_tokens": 9, "output_tokens": 90, "cache_read_input_tokens": 9_000}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": data.BIG, "content": [use]}
        yield self._node("assistant", number - 0.9, message | {"stop_reason": "tool_use", "usage": usage})
        answer = {"type": "tool_result", "tool_use_id": ident, "content": output}
        yield self._node("user", number, {"role": "user", "content": [answer]})

    def begin_shown(self, number: int) -> str:
        return f'"parentUuid":"user-{number - 1}"'

    def _node(self, kind: str, number: float, message: dict[str, Any]) -> dict[str, Any]:
        ident = f"{kind}-{number}"
        before, self._last = getattr(self, "_last", None), ident
        node = {"parentUuid": before, "isSidechain": False, "type": kind, "message": message, "uuid": ident}
        return node | {"timestamp": self.at(number), "cwd": "/home/ada", "sessionId": _THREAD, "version": "2.1.197"}


class Codex(Log):
    """A rollout of Codex."""

    name = f"sessions/2026/03/02/rollout-2026-03-02T09-15-00-{_THREAD}.jsonl"

    def first(self) -> Iterator[dict[str, Any]]:
        yield codex_build.meta(_THREAD) | {"timestamp": self.at(0)}

    def step(self, number: int, output: str) -> Iterator[dict[str, Any]]:
        ident, turn = f"call_{number}", f"t{number}"
        records = [
            codex_build.call(ident, f"probe-{number:06}"),
            codex_build.output(ident, f"Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}"),
        ]
        if prompt := self.prompt(number):
            records = [
                codex_build.event("task_started", turn_id=turn),
                codex_build.record("turn_context", {"turn_id": turn, "cwd": "/home/ada", "model": data.BIG}),
                codex_build.message("user", prompt),
                codex_build.event("user_message", message=prompt),
                *records,
            ]
        for place, record in enumerate(records, 1):
            yield record | {"timestamp": self.at(number - 1 + place / len(records))}

    def begin_shown(self, number: int) -> str:
        return self.at(number)


class Hypergraph:
    """A run of hypergraph in its database."""

    def __init__(self, root: Path, steps: int) -> None:
        """Write a run of so many steps, the last of which ended now."""
        self.root, self.path = root, root / "checkpoints.db"
        self._began = time.time() - steps * STEP_SECONDS
        schema = hypergraph_build.V2 + hypergraph_build.TO_V3
        with hypergraph_build.database(self.path, schema, 3, page_size=4096) as db:  # SQLite's own
            db.execute("PRAGMA synchronous = OFF")
            db.execute("BEGIN")
            run = {"id": "run-1", "graph_name": "rag", "status": "active", "created_at": self._at(0)}
            hypergraph_build.insert(db, "runs", **run)
            for number in range(1, steps):
                at = (number * 131) % PAYLOAD
                self._insert(db, number, _LONG[at : at + PAYLOAD])
            db.execute("COMMIT")
        self._db = sqlite3.connect(self.path, isolation_level=None)
        self.append(steps)  # into the log, which a program at work has

    def append(self, number: int) -> None:
        self._insert(self._db, number, "little")

    def shown(self, number: int) -> str:
        return rf"^.? *{number} . node-{number % 9} "

    def close(self) -> None:
        self._db.close()

    def _insert(self, db: sqlite3.Connection, number: int, output: str) -> None:
        step = {"run_id": "run-1", "step_index": number, "superstep": number, "node_name": f"node-{number % 9}"}
        done = {"node_type": "FunctionNode", "status": "completed", "duration_ms": 1200.0}
        at = self._at(number)
        values = {"values_data": {"answer": output}}
        hypergraph_build.insert(db, "steps", **step, **done, **values, created_at=at, completed_at=at)

    def _at(self, number: float) -> str:
        return datetime.fromtimestamp(self._began + number * STEP_SECONDS, UTC).isoformat()


Writer = Log | Hypergraph
"""An agent that writes its run."""
FORMATS: Final[dict[str, Callable[[Path, int], Writer]]] = {
    "claude-code": ClaudeCode,
    "codex": Codex,
    "hypergraph": Hypergraph,
}


class Grown(NamedTuple):
    """What the appended steps cost: milliseconds to the first byte and bytes of each, CPU (ms) a step, memory (MB)."""

    times: list[float]
    sizes: list[int]
    cpu: float = 0.0
    memory: float = 0.0


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about the open run, whatever its size."""
    for name, make in FORMATS.items():
        with run_of(make, SMALL) as writer:
            small = followed(writer, SMALL)
            others = beside_others(writer, SMALL + LINES)
        if lnav := others.get("lnav"):
            detail = ", ".join(f"{other} {median(times):.0f} / {p95(times):.0f}" for other, times in others.items())
            detail = f"{median(small.times):.0f} / {p95(small.times):.0f} ms; {detail}"
            what = f"{name}, {SMALL} steps: first byte of the paint, p50"
            yield Row(what, median(small.times) / median(lnav), 0.15, "×", detail)
            yield Row("  p95", p95(small.times) / median(lnav), 0.3, "×")
        with run_of(make, LARGE // scale) as writer:
            yield from _large(name, writer, LARGE // scale, small)


def _large(name: str, writer: Writer, steps: int, small: Grown) -> Iterator[Row]:
    """A large run against a small one."""
    megabytes = writer.path.stat().st_size / 1e6
    yield keys_while_it_loads(writer, f"{name}, {megabytes:.0f} MB: cursor while it loads, p95")
    busy = followed(writer, steps, at_once=True)
    large = followed(writer, steps + LINES)
    for what, times in ((f"{name}, {steps} steps: p50", large.times), ("  while it is counted", busy.times)):
        detail = f"{median(times):.0f} / {p95(times):.0f} ms"
        yield Row(what, median(times) / median(small.times), 1.3, "×", detail)
    yield Row("  CPU of a step", large.cpu / small.cpu, 1.3, "×", f"{large.cpu:.0f} ms, {small.cpu:.0f} ms")
    yield Row("  bytes of a new row", median(large.sizes), 1000, "B", f"p95 {p95(large.sizes):.0f}")
    if megabytes > 100:
        detail = f"{large.memory:.0f} MB, small {small.memory:.0f}"
        yield Row("  memory, of the file", (large.memory - small.memory) / megabytes, 0.3, "×", detail)


def keys_while_it_loads(writer: Writer, what: str) -> Row:
    """The cursor moves in a run while it is read and counted, and after."""
    with screen.tracetui(writer.root) as terminal:
        terminal.wait_for(screen.A_RUN, timeout=60)
        terminal.send("g", "enter")
        terminal.wait_for(FIRST_STEPS, timeout=60)
        keys = cycle(("down", "up"))
        loading = [screen.press(terminal, next(keys), answered=True).ms]
        while len(loading) < LINES or re.search(rf"{screen.LOADING}|reading …", terminal.text()):
            loading.append(screen.press(terminal, next(keys), answered=True).ms)
        terminal.wait_quiet(0.5, timeout=10)
        loaded = [screen.press(terminal, next(keys), answered=True).ms for _ in range(2 * LINES)]
    detail = f"{p95(loading):.0f} ms of {len(loading)}, {p95(loaded):.0f} ms when loaded"
    return Row(what, p95(loading) / p95(loaded), 2, "×", detail)


@contextmanager
def run_of(make: Callable[[Path, int], Writer], steps: int) -> Iterator[Writer]:
    """A run of so many steps in a folder of its own."""
    with live.folder_of(0) as folder:
        writer = make(folder, steps)
        yield writer
        writer.close()


def followed(writer: Writer, steps: int, *, at_once: bool = False) -> Grown:
    """Follow a run of so many steps; `at_once`, while it is still being counted."""
    with screen.tracetui(writer.root) if at_once else live.opened(writer.root) as terminal:
        terminal.wait_for(screen.A_RUN, timeout=60)
        terminal.send("g", "enter", "G")
        terminal.wait_for(FIRST_STEPS, timeout=60)
        terminal.wait_quiet(0.5, timeout=3, at_rest=False)
        if " FOLLOW " not in terminal.text():  # by itself it follows only a run that is written to
            terminal.send("F")
            terminal.wait_for(" FOLLOW ", timeout=120)
        terminal.wait_for(writer.shown(steps), timeout=120)
        terminal.wait_quiet(0.5, timeout=10)
        return appended(terminal, writer, steps, rest=0.0 if at_once else 0.3)


def appended(
    terminal: Terminal, writer: Writer, steps: int, *, rest: float = 0.3, shown: Callable[[int], str] | None = None
) -> Grown:
    """Append steps one by one; the screen then shows the pattern `shown`."""
    shows = writer.shown if shown is None else shown
    usage = process.Usage(terminal.process.pid)
    times, sizes = [], []
    for number in range(steps + 1, steps + 1 + LINES):
        terminal.wait_quiet(0.15 + _CHANCE.random() * rest, timeout=3, at_rest=False)
        before = len(terminal.received)
        at = time.perf_counter()
        writer.append(number)
        seen = terminal.wait_for(shows(number), timeout=20)
        times.append((_first_byte(terminal, at, seen) - at) * 1000)
        terminal.wait_quiet(0.06, timeout=1, at_rest=False)
        sizes.append(sum(len(output) for _, output in terminal.received[before:]))
    return Grown(times, sizes, usage.cpu * 1000 / LINES, process.memory(terminal.process.pid))


def _first_byte(terminal: Terminal, since: float, shown: float) -> float:
    """When the burst of bytes began that showed the step at `shown`."""
    first = shown
    for at, _ in reversed(terminal.received):
        if at > shown or at < since:
            continue
        if first - at > BURST_SECONDS:
            break
        first = at
    return first


def beside_others(writer: Writer, steps: int) -> dict[str, list[float]]:
    """The same in lnav and `less +F`, as far as they are installed and read such a file."""
    times: dict[str, list[float]] = {}
    if not isinstance(writer, Log):
        return times
    for name, start in {"lnav": _lnav, "less +F": _less}.items():
        if not shutil.which(name.split()[0]):
            say(f"        {name} is not installed: not measured")
            continue
        with start(writer.path) as terminal:
            terminal.wait_quiet(1.0)
            times[name] = appended(terminal, writer, steps, shown=writer.begin_shown).times
            steps += LINES
    return times


def _lnav(path: Path) -> Terminal:
    home = path.parent / "home"  # else it leaves its files in the folder where it was started
    home.mkdir(exist_ok=True)
    terminal = Terminal("lnav", str(path), env={"HOME": str(home)}, answers=True)
    terminal.wait_quiet(1.0)
    terminal.send("G")
    return terminal


def _less(path: Path) -> Terminal:
    return Terminal("less", "-S", "+F", str(path))

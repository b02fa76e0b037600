"""``python -m tests.bench.soak --minutes 30``: the app among writers, faults, keys and resizes, and whether it grows.

What is written is removed again, so that nothing that the app uses may grow in the long run: memory, descriptors,
watches and threads are to be steady once a fifth of the time is over.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench import live, writers
from tests.bench.table import median, say
from tests.shared import SHARED
from tests.terminal import Terminal

KEYS: Final = (
    *("down", "up", "pagedown", "pageup", "enter", "escape", "tab", "g", "G", "F", "t", "z", "e", "E", "!", "!"),
    *("r", ">", "<", "i", "l", "h", "n", ",", "1", "2", "3"),
)
SIZES: Final = ((120, 40), (80, 24), (200, 60), (100, 30))
SAMPLE_SECONDS: Final = 10
CYCLE_SECONDS: Final = 30
"""How long agents write; then what they wrote is removed, and others begin."""


class Sample(NamedTuple):
    """What the app uses."""

    megabytes: float
    descriptors: int
    watches: int
    threads: int


class Work:
    """Writers and, where the driver of faults lies beside the checkout, faults; each begins anew when it has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._round = 0
        self._writer: writers.Writer | None = None
        self._faults: subprocess.Popen[bytes] | None = None

    def restart_ended(self) -> None:
        """Begin what has ended."""
        if self._writer is None or not self._writer.at_work:
            self._clean("agents")
            self._round += 1
            place = self._folder / "agents" / str(self._round % 7)
            self._writer = writers.Writer(place, runs=10, rate=5, seconds=CYCLE_SECONDS)
        if SHARED is not None and (self._faults is None or self._faults.poll() is not None):
            self._clean("faults")
            driver = [sys.executable, str(SHARED / "tools" / "tailfaults.py"), str(self._folder / "faults")]
            options = ["--seed", str(self._round), "--lines", "80", "--hold", "0"]
            self._faults = subprocess.Popen([*driver, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        """End what still writes."""
        if self._writer is not None:
            with self._writer:
                pass
        if self._faults is not None:
            self._faults.kill()
            self._faults.wait()

    def _clean(self, name: str) -> None:
        shutil.rmtree(self._folder / name, ignore_errors=True)
        (self._folder / name).mkdir()


def soak(terminal: Terminal, work: Work, seconds: float, chance: random.Random) -> list[Sample]:
    """Press keys and change the size, at random, while agents work; a sample every now and then."""
    samples: list[Sample] = []
    began = time.monotonic()
    usage = live.Usage(terminal.process.pid)
    while (now := time.monotonic() - began) < seconds:
        work.restart_ended()
        if chance.random() < 0.03:
            terminal.resize(*chance.choice(SIZES))
        terminal.send(chance.choice(KEYS))
        end = time.monotonic() + chance.random() / 2
        while time.monotonic() < end:
            terminal.read(0.05)
        if terminal.process.poll() is not None:
            raise SystemExit(f"the app ended with {terminal.process.returncode}:\n{terminal.text()}")
        terminal.forget()
        if now >= len(samples) * SAMPLE_SECONDS:
            sample = Sample(usage.megabytes, usage.descriptors, usage.watches, usage.threads)
            samples.append(sample)
            say(f"{now:7.0f} s  {sample.megabytes:7.1f} MB  {sample.descriptors:4} descriptors  "
                f"{sample.watches:4} watches  {sample.threads:3} threads  {usage.cores:5.2f} cores")  # fmt: skip
    return samples


def grown(samples: Sequence[Sample]) -> list[str]:
    """What was not steady after the first fifth: the last fifth against the second, with some room."""
    fifth = max(1, len(samples) // 5)
    before, after = samples[fifth : 2 * fifth], samples[-fifth:]
    wrong: list[str] = []
    for name, room in (("megabytes", 1.1), ("descriptors", 1.25), ("watches", 1.25), ("threads", 1.25)):
        first, last = (median([getattr(sample, name) for sample in side]) for side in (before, after))
        say(f"{name:12} {first:8.1f} in the second fifth, {last:8.1f} in the last")
        if last > first * room + 2:
            wrong.append(name)
    return wrong


def main() -> int:
    """Print the table; exit status 1 if something grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", default="soak")
    options = parser.parse_args()
    if SHARED is None:
        say("the driver of faults is not beside this checkout: writers, keys and resizes only")
    with live.folder_of(200) as folder, live.opened(folder) as terminal:
        work = Work(folder)
        try:
            samples = soak(terminal, work, options.minutes * 60, random.Random(options.seed))
        finally:
            work.stop()
        terminal.send("ctrl+c")
        status = terminal.wait_exit()
    wrong = grown(samples)
    say(f"grew: {', '.join(wrong)}" if wrong else "steady")
    return 1 if wrong or status else 0


if __name__ == "__main__":
    sys.exit(main())

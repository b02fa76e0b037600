"""Helpers for tests of watching."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.shared import PATIENCE
from tracetui.live.watch import Watch
from tracetui.sources.base import Entry
from tracetui.sources.local import LocalSource

Seen = dict[str, Entry | None]


def collect(watch: Watch, until: Callable[[Seen], bool]) -> Seen:
    """The changes until that is true; fails after a timeout."""
    seen: Seen = {}
    deadline = time.monotonic() + PATIENCE
    while not until(seen):
        assert time.monotonic() < deadline, sorted(seen)
        for change in watch.changes(0.2):
            seen[change.path] = change.entry
    return seen


def settled(watch: Watch) -> Watch:
    """A watch that has seen the whole tree."""
    watch.sweep()
    return watch


def descriptors() -> int:
    """Number of open files of this process after garbage collection."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def until_open(count: int) -> None:
    """Wait until at most so many files are open: threads of earlier tests close theirs late."""
    deadline = time.monotonic() + PATIENCE
    while (now := descriptors()) > count:
        assert time.monotonic() < deadline, f"{now} files are open"


def walked(*roots: Path) -> dict[str, Entry]:
    """The result of a fresh walk."""
    return {entry.path: entry for root in roots for entry in LocalSource().walk(str(root))}


def rewrite_in_secret(path: Path, data: bytes) -> None:
    """Other bytes of the same length under the same modification time: only ctime shows it."""
    before = path.stat()
    assert before.st_size == len(data)
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # until the clock of the file system ticks
        with path.open("r+b") as file:
            file.write(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

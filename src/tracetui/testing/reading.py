"""Cases on disk: a private copy of one, the files that a format claims in it, and runs read as a file grows."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tracetui.errors import FormatError
from tracetui.formats.base import NO, Chunk, Format, Reader
from tracetui.model import Body, Run, RunRef, Span
from tracetui.model.build import RunBuilder
from tracetui.sources.local import LocalSource

MTIME: Final = 1_700_000_000
"""Modification time of every file under test: long ago, so that no run counts as running."""
ALLOWED: Final = (FormatError, OSError, sqlite3.Error)
"""What a format may raise for a file that it cannot read."""


class Growing:
    """Reads one run as its file grows, as the program does it."""

    def __init__(self, fmt: Format, ref: RunRef) -> None:
        self._format = fmt
        self._ref = ref
        self._builder = RunBuilder(ref, self._load)
        self._reader: Reader | None = None

    def read(self, *, whole: bool = True) -> None:
        """Read all that is there now. Only a file that is not `whole` may be unreadable."""
        done = False
        while not done:
            with LocalSource().open(self._ref.path) as file:
                try:
                    self._reader = self._reader or self._format.open(file, self._ref)
                    chunk = self._reader.more(file)
                except ALLOWED:
                    if whole:
                        raise
                    return
            self.take(chunk)
            done = chunk.done

    def take(self, chunk: Chunk) -> None:
        """Take in what one read gave."""
        if chunk.reset:
            self._builder.reset()
        self._builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)

    def run(self) -> Run:
        """The run as known so far."""
        return self._builder.build(modified_at=MTIME, moving=False)

    def _load(self, span: Span) -> Body:
        with LocalSource().open(self._ref.path) as file:
            return self._format.body(file, self._ref, span)


def read_run(fmt: Format, ref: RunRef) -> Run:
    """The whole run, read at once."""
    growing = Growing(fmt, ref)
    growing.read()
    return growing.run()


@contextmanager
def copied(case: Path) -> Iterator[Path]:
    """A private copy of the input of a case, with old modification times."""
    with TemporaryDirectory(prefix="tracetui-case-") as folder:
        root = Path(folder).resolve() / "input"
        shutil.copytree(case / "input", root)
        for path in root.rglob("*"):
            os.utime(path, (MTIME, MTIME))
        yield root


def claimed(fmt: Format, root: Path) -> list[str]:
    """Paths of the files below `root` that the format claims."""
    found = []
    for path in files(root):
        with LocalSource().open(path) as file:
            if fmt.sniff(file) > NO:
                found.append(path)
    return found


def files(root: Path) -> list[str]:
    """Paths of the regular files below `root`, those that the program passes over left out."""
    return sorted(entry.path for entry in LocalSource().walk(str(root)) if entry.skipped is None)


def write(path: str, data: bytes, mtime: int, *, again: bool = False) -> None:
    """Make the file hold `data`; `again`: by appending to what it holds, as a writer does."""
    target = Path(path)
    if not again:
        target.unlink(missing_ok=True)  # emptied instead, it would be written through to the disk at once
    with target.open("ab" if again else "wb") as stream:
        stream.write(data[target.stat().st_size :] if again else data)
    os.utime(target, (mtime, mtime))

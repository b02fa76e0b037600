"""Test cases on disk: a private copy of one, the files that a format claims, runs read as a file grows, and the normal
form in which runs are compared.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import NO, Chunk, Format, Reader
from tracetui.model import Body, Run, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.model.summary import FIELDS
from tracetui.sources.local import LocalSource

MTIME: Final = 1_700_000_000
"""Modification time of every file under test: old, so no run counts as running."""
ALLOWED: Final = (FormatError, OSError, sqlite3.Error)
"""Exceptions that a format may raise for an unreadable file."""


class Growing:
    """Reads one run incrementally, as the program does."""

    def __init__(self, fmt: Format, ref: RunRef) -> None:
        self._format = fmt
        self._ref = ref
        self._builder = RunBuilder(ref, self._load)
        self._reader: Reader | None = None

    def read(self, *, whole: bool = True) -> None:
        """Read everything available. Only a file that is not `whole` may be unreadable."""
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
        """Add a chunk."""
        if chunk.reset:
            self._builder.reset()
        self._builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)

    def run(self) -> Run:
        """The current run."""
        return self._builder.build(modified_at=MTIME, moving=False)

    def _load(self, span: Span) -> Body:
        with LocalSource().open(self._ref.path) as file:
            return self._format.body(file, self._ref, span)


def read_run(fmt: Format, ref: RunRef) -> Run:
    """Read a whole run."""
    growing = Growing(fmt, ref)
    growing.read()
    return growing.run()


@contextmanager
def copied(case: Path) -> Iterator[Path]:
    """Context: a private copy of the input of a case, with old modification times."""
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
    """Paths of the regular files below `root`, without those that the program skips."""
    return sorted(entry.path for entry in LocalSource().walk(str(root)) if entry.skipped is None)


def write(path: str, data: bytes, mtime: int, *, again: bool = False) -> None:
    """Write `data` to the file; `again`: by appending the rest, as a writer does."""
    target = Path(path)
    if not again:
        target.unlink(missing_ok=True)  # truncation would force a write to disk
    with target.open("ab" if again else "wb") as stream:
        stream.write(data[target.stat().st_size :] if again else data)
    os.utime(target, (mtime, mtime))


# ---- normal form

_UNCOMPARED: Final = frozenset({"at", "modified_at", "deep"})
"""Fields excluded from comparison: opaque locations, and values that differ between stages."""


def plain(value: Any) -> Any:
    """`value` as JSON: empty struct fields are dropped, bytes become their length and a digest."""
    if isinstance(value, msgspec.Struct):
        names = FIELDS if isinstance(value, RunSummary) else value.__struct_fields__
        fields = ((name, getattr(value, name)) for name in names if name not in _UNCOMPARED)
        return {name: plain(item) for name, item in fields if not _is_empty(item)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:16]}"
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def plain_run(run: Run) -> dict[str, Any]:
    """A whole run with the bodies of all its spans; problems in a stable order."""
    return {
        "summary": plain(run.summary),
        "body": plain(run.body),
        "spans": [
            {**plain(span), "depth": depth, "body": plain(run.load(span))}
            for span, depth in zip(run.spans, run.depths, strict=True)
        ],
        "problems": sorted((plain(problem) for problem in run.problems), key=repr),
    }


def relative(value: Any, root: str) -> Any:
    """The value with the prefix `root` removed from every path."""
    if isinstance(value, str):
        return value.replace(root + "/", "")
    if isinstance(value, dict):
        return {key: relative(item, root) for key, item in value.items()}
    return [relative(item, root) for item in value] if isinstance(value, list) else value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str | int | float]]:
    """Every string and number in a JSON value with its path (``steps.*.args.query``), without blank strings."""
    todo = [(path, value)]
    while todo:
        where, item = todo.pop()
        if isinstance(item, dict):
            todo.extend((f"{where}.{key}" if where else str(key), below) for key, below in item.items())
        elif isinstance(item, list | tuple):
            todo.extend((f"{where}.*" if where else "*", below) for below in item)
        elif isinstance(item, str):
            if item.strip():
                yield where, item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield where, item


class Shown:
    """Everything shown of some runs, to check whether it includes a source value."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._values: set[str | int | float] = set()
        for run in runs:
            for part in (run.summary, run.body, *run.spans, *map(run.load, run.spans)):
                self._values.update(value for _, value in leaves(_without_raw(part)))
        self._text = "\0".join(value for value in self._values if isinstance(value, str))

    def has(self, value: str | int | float) -> bool:
        """Whether `value` is shown: unchanged, within a longer text, or (JSON in a string) leaf by leaf."""
        if value != value or value in self._values:
            return True
        if not isinstance(value, str):
            return str(value) in self._text
        if value in self._text or value.strip() in self._text:
            return True
        return value.lstrip()[:1] in ("{", "[") and self._has_all(value)

    def _has_all(self, text: str) -> bool:
        try:
            inner = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return False
        return all(self.has(value) for _, value in leaves(inner))


def _without_raw(value: Any) -> Any:
    found = plain(value)
    found.pop("raw", None)
    return found


def _is_empty(value: Any) -> bool:
    """Whether a field is empty; zero isn't."""
    return value is None or value is False or (isinstance(value, str | tuple | dict | bytes) and not value)

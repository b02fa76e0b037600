"""The readers of runs, shared by the threads of the app: what one of them reads of a file, no other reads again.

A file with several runs has a reader for each run that is opened; the list scans such a file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

from tracetui.live.load import Reader
from tracetui.live.scan import ScannedFile
from tracetui.model import RunRef
from tracetui.redact import Redactor
from tracetui.sources.base import BudgetSpent, Source
from tracetui.sources.file_views import Budget
from tracetui.store.store import OPEN_RUNS

READERS: Final = 128
SPANS: Final = 400_000
"""Spans of the readers of files together; the least recently used one goes first."""


class Readers:
    """One reader per run, for all threads of the app. Thread-safe.

    A reader is shared as long as anybody has it. These are kept here: those of the runs opened last, and of files that
    contain one run and changed more than once. No lock is held while data is read, but that of the reader, for one
    piece.
    """

    def __init__(self, source: Source, redactor: Redactor | None = None) -> None:
        """`redactor` masks the bodies of the runs."""
        self._source, self._redactor = source, redactor
        self._lock = threading.Lock()
        self._readers: WeakValueDictionary[RunRef, Reader] = WeakValueDictionary()
        self._opened: OrderedDict[RunRef, Reader] = OrderedDict()
        """Opening one of these again costs only the new data."""
        self._followed: OrderedDict[str, Reader | RunRef] = OrderedDict()
        """Of each file that changed, which has one run. There is no reader before the next change."""
        self._attended: Reader | None = None

    def lease(self, ref: RunRef) -> Reader:
        """Return the reader of a run."""
        with self._lock:
            return self._reader(ref)

    # ---- for the opener

    def open(self, ref: RunRef, *, reload: bool = False) -> Reader:
        """Return the reader of a run; a new one if `reload`."""
        with self._lock:
            if reload:
                self._readers.pop(ref, None)
            reader = self._opened[ref] = self._reader(ref)
            self._opened.move_to_end(ref)
            if len(self._opened) > OPEN_RUNS:
                self._opened.popitem(last=False)
            if isinstance(self._followed.get(ref.path), Reader) and ref.key is None:
                self._followed[ref.path] = reader
            return reader

    def attend(self, reader: Reader | None) -> None:
        """This reader is read on to its end from now on, and as it grows, instead of the one before."""
        with self._lock:
            self._attended = reader

    # ---- for the list

    def attended(self, path: str) -> Reader | None:
        """The reader that the opener reads on, if it is of this file and the file has no other run."""
        reader = self._attended
        return reader if reader is not None and reader.ref.path == path and reader.ref.key is None else None

    def is_read(self, path: str) -> bool:
        """Whether the opener reads a run of the file and has not come to its end."""
        reader = self._attended
        return reader is not None and reader.ref.path == path and reader.more

    def follow(self, result: ScannedFile) -> None:
        """Read the file of this scan on from its next change, if it contains a single run."""
        with self._lock:
            self._followed.pop(result.path, None)
            if len(result.runs) == 1 and not result.problems and result.runs[0].ref.key is None:
                self._followed[result.path] = result.runs[0].ref
            self._evict()

    def read_new(self, path: str) -> ScannedFile | None:
        """Read new data and return the result; None if the file must be scanned. Raises `LinkLost`."""
        with self._lock:
            reader = self._followed.get(path)
            if reader is None:
                reader = self.attended(path)
                if reader is None or reader.more:  # the opener may stop at the end of its preview
                    return None
            elif isinstance(reader, RunRef):
                reader = self._reader(reader)
            self._followed[path] = reader
            self._followed.move_to_end(path)
        reader.catch_up()
        is_readable = reader.failure is None
        with self._lock:
            if not is_readable:
                self._followed.pop(path, None)
            self._evict()
        return ScannedFile(path=path, format=reader.ref.format, runs=(reader.summary(),)) if is_readable else None

    def forget(self, path: str) -> None:
        """Drop the readers of a deleted or replaced file: it may contain another run now."""
        with self._lock:
            self._followed.pop(path, None)
            for ref in [ref for ref in self._readers if ref.path == path]:
                self._opened.pop(ref, None)
                self._readers.pop(ref, None)  # it may be gone with the last that had it
            if self._attended is not None and self._attended.ref.path == path:
                self._attended = None

    def _reader(self, ref: RunRef) -> Reader:
        reader = self._readers.get(ref)
        if reader is None:
            reader = self._readers[ref] = Reader(self._source, ref, redactor=self._redactor)
        return reader

    def _evict(self) -> None:
        sizes = {path: len(reader) for path, reader in self._followed.items() if isinstance(reader, Reader)}
        spans = sum(sizes.values())
        while len(self._followed) > READERS or (spans > SPANS and len(self._followed) > 1):
            path, _ = self._followed.popitem(last=False)
            spans -= sizes.get(path, 0)


class UntilOpened(Budget):
    """An unlimited budget that is spent once the opener reads the file itself."""

    def __init__(self, readers: Readers, path: str) -> None:
        super().__init__(1 << 62)
        self._readers, self._path = readers, path

    def spend(self, size: int) -> None:
        if self.spend_ops():
            raise BudgetSpent

    def spend_ops(self) -> bool:
        self.spent = self.spent or self._readers.attended(self._path) is not None
        return self.spent

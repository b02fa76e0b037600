"""A log that is one JSON document, written anew as a whole; and which kind of log a file holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.inspect_ai.archive_log import ArchiveLog
from tracetui.formats.inspect_ai.fields import Record, field, items_of, record_of
from tracetui.formats.inspect_ai.log import MOST, MOST_ATTEMPTS, Entry, Log, key_of
from tracetui.formats.inspect_ai.samples import Items, Sample, sample_of
from tracetui.model import Problem
from tracetui.sources.archive import MAGIC
from tracetui.sources.base import KEPT, File, Stat

_OPENED: Final = "inspect log"


class Opened(NamedTuple):
    """A log, and the version of the file that it is."""

    stat: Stat
    log: Log


def open_log(file: File, *, keep: bool = False) -> Log:
    """The log that a file holds: the same one for all of its runs, if the first that are read `keep` it.

    Raises `FormatError` if nothing of it can be read.
    """
    shared = file.memo.get(KEPT)
    known = None if shared is None else shared.get(_OPENED)
    if isinstance(known, Opened) and known.stat == file.stat:
        known.log.through(file)
        return known.log
    log: Log = ArchiveLog(file) if file.head.startswith(MAGIC) else DocumentLog(file, file.read_all())
    if keep and shared is not None:
        shared[_OPENED] = Opened(file.stat, log)
    return log


class DocumentLog:
    """A log that is one JSON document."""

    def __init__(self, file: File, data: bytes) -> None:
        self.path = file.path
        self.problems: list[Problem] = []
        self._data = data
        self._places: dict[str, tuple[int, int]] = {}
        record = self._decoded()
        told = record.pop("samples", None)
        if isinstance(told, msgspec.Raw) and bytes(memoryview(told)) == b"null":
            told = None
        self.header = record
        self.ended = field(record, "status") != "started"
        self._samples: dict[str, Any] = {}
        self._latest: tuple[str, Sample] | None = None
        items = [] if told is None else items_of(told)
        if items is None:
            self.header["samples"] = told
            items = []
        self.samples = dict(self._listed(items))

    def entry(self, key: str) -> Entry | None:
        return self.samples.get(key)

    def through(self, file: File) -> None:
        """All of the document was read."""

    def sample(self, key: str) -> Sample:
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._sample(key)
        return self._latest[1]

    def _sample(self, key: str) -> Sample:
        item = self._samples.get(key)
        if item is None:
            raise FormatError("the sample is not in the log", key)
        if not isinstance(item, msgspec.Raw):
            return sample_of(record_of(item), check=crc32(self._data), size=len(self._data))
        data = bytes(memoryview(item))  # of its own: the rest of the document is not kept for it
        return sample_of(record_of(msgspec.Raw(data)), check=crc32(data), size=len(data))

    def check(self, key: str) -> int:
        return crc32(self._data)

    def more(self) -> dict[str, Any]:
        """Nothing is told anywhere else."""
        return {}

    def _decoded(self) -> Record:
        try:
            return dict(msgspec.json.decode(self._data, type=dict[str, msgspec.Raw]))
        except (ValueError, RecursionError):
            value, note = decode(self._data)
        if not isinstance(value, dict):
            raise FormatError("not a JSON object")
        if note is not None and not note.startswith("values that JSON does not allow"):  # Inspect itself writes NaN
            self.problems.append(Problem(self.path, "", f"read leniently: {note}"))
        return dict(value)

    def _listed(self, items: Items) -> Iterator[tuple[str, Entry]]:
        for number, item in enumerate(items):
            told = record_of(item)
            key = key_of(told) if told is not None else None
            if told is None or key is None or key in self._samples or number >= MOST:
                again = "a sample that is there twice" if key in self._samples else "it names no sample"
                lost = len(memoryview(item)) if isinstance(item, msgspec.Raw) else None
                self.problems.append(Problem(self.path, f"samples[{number}]", again, lost=lost))
                continue
            self._samples[key] = item
            attempts = items_of(told["error_retries"]) if "error_retries" in told else None
            size = len(memoryview(item)) if isinstance(item, msgspec.Raw) else None
            yield key, Entry(key, told, min(len(attempts or []), MOST_ATTEMPTS), size=size)

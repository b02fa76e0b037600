"""A log as a file holds it, an archive (``.eval``) or one JSON document: what it says of the eval, and its samples.

Both are written anew, or extended, on each flush. An archive that is still being written has no ``header.json``; what
is known by then is in ``_journal``, which has a summary of each sample that is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.inspect_ai.fields import Record, field, items_of, record_of, whole
from tracetui.formats.inspect_ai.samples import Items, Sample, sample_of
from tracetui.model import Problem
from tracetui.sources.archive import MAGIC, Archive
from tracetui.sources.base import File

MOST: Final = 100_000
"""Samples of a log, and failed attempts at one."""
START: Final = "_journal/start.json"
HEADER: Final = "header.json"
SUMMARIES: Final = "summaries.json"
REDUCTIONS: Final = "reductions.json"
_JOURNALED: Final = re.compile(r"_journal/summaries/(\d{1,9})\.json")
_UPDATES: Final = re.compile(r"_journal/config_updates/(\d{1,9})\.json")
_SAMPLE: Final = re.compile(
    r"samples/(?P<key>(?P<id>.*)_epoch_(?P<epoch>\d{1,9}))(?P<pieces>/sample)?\.json", re.DOTALL
)
_PIECE: Final = re.compile(r"/(\d{1,12})\.json")


class Entry(msgspec.Struct, frozen=True):
    """A sample of a log; or one of the attempts at it that failed."""

    key: str
    told: Record
    """What the log says of it without reading it: its summary, or in a document its own fields."""
    attempts: int = 0
    """How many failed before."""
    attempt: int | None = None
    """Which of these it is, from 1; None for the sample itself."""
    size: int | None = None
    """Bytes of the sample."""

    @property
    def sample(self) -> str:
        """The key of the sample that it is, or is an attempt at."""
        return self.key if self.attempt is None else self.key.removesuffix(attempt_suffix(self.attempt))


class Log(Protocol):
    """One log, as it is now."""

    path: str
    header: Record
    """What it says of the eval: ``eval``, ``plan``, ``results``, ``status`` …"""
    ended: bool
    """It says how the eval ended."""
    samples: dict[str, Entry]
    problems: list[Problem]

    def sample(self, key: str) -> Sample:
        """One of its samples. Raises `FormatError` if it cannot be read."""
        ...

    def check(self, key: str) -> int:
        """Checksum of all that is told about a run; of the eval that is all but what its samples hold."""
        ...

    def more(self) -> dict[str, Any]:
        """What is told of the eval elsewhere than in its header."""
        ...


def attempt_suffix(number: int) -> str:
    """What the key of a failed attempt has after that of its sample."""
    return f"_attempt_{number}"


def is_archive(file: File) -> bool:
    """Whether a log is an archive."""
    return file.head.startswith(MAGIC)


def open_log(file: File) -> Log:
    """The log that a file holds. Raises `FormatError` if nothing of it can be read."""
    return ArchiveLog(file) if is_archive(file) else DocumentLog(file, file.read_all())


def entries_of(log: Log) -> Iterator[Entry]:
    """All runs of a log in order: each sample, after the failed attempts at it."""
    for key, entry in log.samples.items():
        for number in range(1, entry.attempts + 1):
            name = key + attempt_suffix(number)
            if name not in log.samples:
                yield msgspec.structs.replace(entry, key=name, attempt=number)
        yield entry


def find(log: Log, key: str) -> Entry | None:
    """The run of that key."""
    if key in log.samples:
        return log.samples[key]
    sample, _, number = key.rpartition("_attempt_")
    entry = log.samples.get(sample)
    if entry is None or not number.isdecimal() or len(number) > 6 or not 0 < int(number) <= entry.attempts:
        return None
    return msgspec.structs.replace(entry, key=key, attempt=int(number))


def _key_of(told: Record) -> str | None:
    """``ID_epoch_N``, as members of archives are called; None for what names no sample."""
    ident, epoch = field(told, "id"), field(told, "epoch")
    if not isinstance(ident, str | int) or isinstance(ident, bool) or whole(epoch) is None:
        return None
    return f"{ident!s}_epoch_{epoch}" if isinstance(ident, str) or whole(ident) is not None else None


# ---- archives


class Piece(NamedTuple):
    """Of a sample in pieces: where the items of a piece begin, and the member that it is."""

    begin: int
    member: str


class ArchiveLog:
    """A log that is an archive. Members are read when they are asked for, the list of them and summaries at once."""

    def __init__(self, file: File) -> None:
        self.path = file.path
        self._archive = Archive(file)
        self._members = self._archive.members
        self.problems: list[Problem] = []
        if self._archive.damage is not None:
            self._problem("", self._archive.damage)
        self.ended = HEADER in self._members
        self._named = HEADER if self.ended else START
        self.header = self._record(self._named) or {}
        if not self.header and self.ended and START in self._members:
            self.header = self._record(START) or {}
        found = {match["key"]: match for name in self._members if (match := _SAMPLE.fullmatch(name)) is not None}
        if not self.header and not found:
            raise FormatError("nothing of the eval can be read", self.problems[0].where if self.problems else "")
        self._found = found
        self.samples = self._listed()

    def sample(self, key: str) -> Sample:
        match = self._found.get(key)
        if match is None:
            raise FormatError("the sample is not in the log", f"samples/{key}.json")
        name, member = match.string, self._members[match.string]
        data = self._archive.read(name)
        record = _record(data)
        if match["pieces"] is None:
            return sample_of(record, check=member.check, size=member.size)
        below = name.removesuffix("/sample.json")
        if record is not None and f"{below}/metadata.json" in self._members:
            record = {**record, "metadata": self._value(f"{below}/metadata.json")}
        check = crc32(repr(self._versions(key)).encode())
        return sample_of(record, check=check, size=self._size(key) or 0, pieces=_Pieces(self._archive, below))

    def check(self, key: str) -> int:
        entry = find(self, key)
        names = (name for name in self._members if not name.startswith("samples/"))
        if entry is None:
            return crc32(repr(([self._members[name].check for name in names], [*self.samples])).encode())
        about = [self._members[name].check for name in names if name != SUMMARIES and not _JOURNALED.fullmatch(name)]
        return crc32(repr((about, self._versions(entry.sample), entry.attempts, _check(entry.told))).encode())

    def more(self) -> dict[str, Any]:
        """What members tell besides: reductions of scores, changes of the configuration, what is not known here."""
        found: dict[str, Any] = {}
        if REDUCTIONS in self._members:
            found["reductions"] = self._value(REDUCTIONS)
        updates = _numbered(_UPDATES, self._members)
        if updates and not self.ended:
            found["config_updates"] = [self._value(name) for name in updates]
        others = [name for name in self._members if not _is_known(name)]
        if others:
            found["other members"] = others[:MOST]
        return found

    def _listed(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for told in self._summaries():
            if (key := _key_of(told)) is None:
                self._problem(SUMMARIES, "a summary that names no sample")
            else:
                attempts = min(whole(field(told, "retries")) or 0, MOST)
                found[key] = Entry(key, told, max(0, attempts), size=self._size(key))
        for key, match in self._found.items():
            if key not in found:  # complete, and its summary yet to come
                found[key] = self._unsummed(key, match)
            if len(found) >= MOST:
                self._problem("", f"more than {MOST} samples: the others are not read")
                break
        return found

    def _unsummed(self, key: str, match: re.Match[str]) -> Entry:
        """A sample that no summary tells of; its own fields do."""
        try:
            sample = self.sample(key)
        except FormatError:
            return Entry(key, {"id": match["id"], "epoch": int(match["epoch"])}, size=self._size(key))
        return Entry(key, sample.record, len(sample.attempts), size=self._size(key))

    def _summaries(self) -> Iterator[Record]:
        names = [SUMMARIES] if SUMMARIES in self._members else _numbered(_JOURNALED, self._members)
        for name in names:
            for item in self._items_of(name):
                told = record_of(item)
                if told is not None:
                    yield told

    def _items_of(self, name: str) -> Items:
        try:
            return _items(self._archive.read(name))
        except FormatError as fault:
            self._problem(fault.where or name, fault.reason)
            return []

    def _record(self, name: str) -> Record | None:
        if name not in self._members:
            return None
        try:
            return _record(self._archive.read(name))
        except FormatError as fault:
            self._problem(fault.where or name, fault.reason)
            return None

    def _value(self, name: str) -> Any:
        try:
            return decode(self._archive.read(name))[0]
        except FormatError as fault:
            return f"not read: {fault.reason}"

    def _parts(self, key: str) -> Iterator[str]:
        match = self._found.get(key)
        if match is not None and match["pieces"] is None:
            yield match.string
        elif match is not None:
            below = match.string.removesuffix("sample.json")
            yield from (name for name in self._members if name.startswith(below))

    def _versions(self, key: str) -> list[int]:
        return [self._members[name].check for name in self._parts(key)]

    def _size(self, key: str) -> int | None:
        return sum(self._members[name].size for name in self._parts(key)) if key in self._found else None

    def _problem(self, where: str, reason: str) -> None:
        self.problems.append(Problem(self.path, where, reason))


class _Pieces:
    """A sample in pieces; see `tracetui.formats.inspect_ai.samples.Pieces`."""

    def __init__(self, archive: Archive, folder: str) -> None:
        self._archive, self._folder = archive, folder

    def through(self, file: File) -> None:
        self._archive.through(file)

    def items(self, part: str) -> Items:
        folder = f"{self._folder}/{part}"
        pieces = sorted(
            Piece(int(number[1]), name)
            for name in self._archive.members
            if name.startswith(folder) and (number := _PIECE.fullmatch(name, len(folder)))
        )
        found: Items = []
        for piece in pieces:
            if piece.begin != len(found):
                raise FormatError("a piece of the sample is missing", f"{folder}/{len(found)}.json")
            found += _items(self._archive.read(piece.member))
        return found


def _numbered(pattern: re.Pattern[str], names: Iterable[str]) -> list[str]:
    found = [(int(match[1]), name) for name in names if (match := pattern.fullmatch(name)) is not None]
    return [name for _, name in sorted(found)]


def _is_known(name: str) -> bool:
    known = name in (START, HEADER, SUMMARIES, REDUCTIONS) or name.startswith("samples/")
    return known or any(pattern.fullmatch(name) for pattern in (_JOURNALED, _UPDATES))


def _check(told: Record) -> int:
    """Checksum of a summary."""
    found = 0
    for value in told.values():
        found = crc32(value if isinstance(value, msgspec.Raw) else repr(value).encode("utf-8", "replace"), found)
    return found


def _record(data: bytes) -> Record | None:
    return record_of(msgspec.Raw(data))


def _items(data: bytes) -> Items:
    found = items_of(msgspec.Raw(data))
    if found is None:
        raise FormatError("not a list")
    return found


# ---- documents


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
        items = [] if told is None else items_of(told)
        if items is None:
            self.header["samples"] = told
            items = []
        self.samples = dict(self._listed(items))

    def sample(self, key: str) -> Sample:
        item = self._samples.get(key)
        if item is None:
            raise FormatError("the sample is not in the log", key)
        if not isinstance(item, msgspec.Raw):
            return sample_of(record_of(item), check=crc32(self._data), size=len(self._data))
        data = bytes(memoryview(item))  # of its own: the rest of the document is not kept for it
        return sample_of(_record(data), check=crc32(data), size=len(data))

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
            key = _key_of(told) if told is not None else None
            if told is None or key is None or key in self._samples or number >= MOST:
                again = "a sample that is there twice" if key in self._samples else "it names no sample"
                lost = len(memoryview(item)) if isinstance(item, msgspec.Raw) else None
                self.problems.append(Problem(self.path, f"samples[{number}]", again, lost=lost))
                continue
            self._samples[key] = item
            attempts = items_of(told["error_retries"]) if "error_retries" in told else None
            size = len(memoryview(item)) if isinstance(item, msgspec.Raw) else None
            yield key, Entry(key, told, min(len(attempts or []), MOST), size=size)

"""A log that is an archive (``.eval``), written anew or extended on each flush.

One that is still being written has no ``header.json``; what is known by then is in ``_journal``, which has a summary of
each sample that is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.inspect_ai.fields import Record, field, items_of, record_of
from tracetui.formats.inspect_ai.log import MOST, MOST_ATTEMPTS, Entry, find, key_from, key_of
from tracetui.formats.inspect_ai.samples import Items, Sample, sample_of
from tracetui.formats.scalars import whole
from tracetui.model import Problem
from tracetui.sources.archive import Archive
from tracetui.sources.base import File

START: Final = "_journal/start.json"
HEADER: Final = "header.json"
SUMMARIES: Final = "summaries.json"
REDUCTIONS: Final = "reductions.json"
_SUMMED: Final = "_journal/summaries/"
_JOURNALED: Final = re.compile(r"_journal/summaries/(\d{1,9})\.json")
_UPDATES: Final = re.compile(r"_journal/config_updates/(\d{1,9})\.json")
_SAMPLE: Final = re.compile(
    r"samples/(?P<key>(?P<id>.*)_epoch_(?P<epoch>\d{1,9}))(?P<pieces>/sample)?\.json", re.DOTALL
)
_PIECE: Final = re.compile(r"/(\d{1,12})\.json")


class Piece(NamedTuple):
    """Of a sample in pieces: where the items of a piece begin, and the member that it is."""

    begin: int
    member: str


class _Named(msgspec.Struct):
    """What of a summary tells which sample it is of."""

    id: Any = None
    epoch: Any = None


class ArchiveLog:
    """A log that is an archive. All but the list of its members is read when it is asked for."""

    def __init__(self, file: File) -> None:
        self.path = file.path
        self._archive = Archive(file)
        self._members = self._archive.members
        self.problems: list[Problem] = []
        self._latest: tuple[str, Sample] | None = None
        if self._archive.damage is not None:
            self._problem("", self._archive.damage)
        self.ended = HEADER in self._members
        self.header = self._record(HEADER) or self._record(START) or {}
        if not self.header and not self._found:
            raise FormatError("nothing of the eval can be read", self.problems[0].where if self.problems else "")

    @cached_property
    def samples(self) -> dict[str, Entry]:
        keys = dict.fromkeys([*self._told, *self._found])  # of one that is complete the summary may be yet to come
        if len(keys) > MOST:
            self._problem("", f"more than {MOST} samples: the others are not read")
        return {key: entry for key in islice(keys, MOST) if (entry := self.entry(key)) is not None}

    def entry(self, key: str) -> Entry | None:
        size = self._size(key)
        if key in self._told:
            told = record_of(self._told[key]) or {}
            return Entry(key, told, max(0, min(whole(field(told, "retries")) or 0, MOST_ATTEMPTS)), size=size)
        match = self._match(key)
        if match is None:
            return None
        try:
            sample = self.sample(key)
        except FormatError:
            return Entry(key, {"id": match["id"], "epoch": int(match["epoch"])}, size=size)
        return Entry(key, sample.record, min(len(sample.attempts), MOST_ATTEMPTS), size=size)

    def through(self, file: File) -> None:
        self._archive.through(file)

    def sample(self, key: str) -> Sample:
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._sample(key)
        return self._latest[1]

    def _sample(self, key: str) -> Sample:
        match = self._match(key)
        if match is None:
            raise FormatError("the sample is not in the log", f"samples/{key}.json")
        name, member = match.string, self._members[match.string]
        record = record_of(msgspec.Raw(self._archive.read(name)))
        if match["pieces"] is None:
            return sample_of(record, check=member.check, size=member.size)
        below = name.removesuffix("/sample.json")
        if record is not None and f"{below}/metadata.json" in self._members:
            record = {**record, "metadata": self._value(f"{below}/metadata.json")}
        check = crc32(repr(self._versions(key)).encode())
        return sample_of(record, check=check, size=self._size(key) or 0, pieces=_Pieces(self._archive, below))

    def check(self, key: str) -> int:
        entry = find(self, key)
        if entry is None:
            checks = [self._members[name].check for name in self._members if not name.startswith("samples/")]
            return crc32(repr((checks, self._found)).encode())
        return crc32(repr((self._about, self._versions(entry.sample), entry.attempts, _check(entry.told))).encode())

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

    @cached_property
    def _told(self) -> dict[str, Any]:
        """Summaries of samples by key, each undecoded where it can be."""
        found: dict[str, Any] = {}
        names = [SUMMARIES] if SUMMARIES in self._members else _numbered(_JOURNALED, self._members)
        for name in names:
            for item, key in self._summaries(name):
                if key is None:
                    self._problem(name, "a summary that names no sample")
                else:
                    found[key] = item
        return found

    def _summaries(self, name: str) -> list[tuple[Any, str | None]]:
        try:
            data = self._archive.read(name)
            items = items_in(data)
        except FormatError as fault:
            self._problem(fault.where or name, fault.reason)
            return []
        try:
            keys = [key_from(one.id, one.epoch) for one in msgspec.json.decode(data, type=list[_Named])]
        except (ValueError, RecursionError):
            records = map(record_of, items)
            keys = [key_of(record) if record is not None else None for record in records]
        return list(zip(items, keys, strict=True))

    @cached_property
    def _about(self) -> list[int]:
        """Checksums of the members that say the same of all samples."""
        others = ("samples/", SUMMARIES, _SUMMED)
        return [member.check for name, member in self._members.items() if not name.startswith(others)]

    @cached_property
    def _found(self) -> list[str]:
        """Keys of the samples that are there."""
        matches = (_SAMPLE.fullmatch(name) for name in self._members if name.startswith("samples/"))
        return [match["key"] for match in matches if match is not None]

    def _match(self, key: str) -> re.Match[str] | None:
        """The member that is a sample, or that in which the pieces of one begin."""
        names = (f"samples/{key}.json", f"samples/{key}/sample.json")
        return next((_SAMPLE.fullmatch(name) for name in names if name in self._members), None)

    def _record(self, name: str) -> Record | None:
        if name not in self._members:
            return None
        try:
            return record_of(msgspec.Raw(self._archive.read(name)))
        except FormatError as fault:
            self._problem(fault.where or name, fault.reason)
            return None

    def _value(self, name: str) -> Any:
        try:
            return decode(self._archive.read(name))[0]
        except FormatError as fault:
            return f"not read: {fault.reason}"

    def _parts(self, key: str) -> list[str]:
        """The members that a sample is in."""
        match = self._match(key)
        if match is None or match["pieces"] is None:
            return [] if match is None else [match.string]
        below = match.string.removesuffix("sample.json")
        return [name for name in self._members if name.startswith(below)]

    def _versions(self, key: str) -> list[int]:
        return [self._members[name].check for name in self._parts(key)]

    def _size(self, key: str) -> int | None:
        return sum(self._members[name].size for name in self._parts(key)) or None

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
            found += items_in(self._archive.read(piece.member))
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


def items_in(data: bytes) -> Items:
    found = items_of(msgspec.Raw(data))
    if found is None:
        raise FormatError("not a list")
    return found

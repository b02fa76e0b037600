"""A log: what it says of the eval, and its samples. The file that holds it is an archive or one JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from tracetui.formats.inspect_ai.fields import Record, field
from tracetui.formats.inspect_ai.samples import Sample
from tracetui.formats.scalars import whole
from tracetui.model import Problem
from tracetui.sources.base import File

MOST: Final = 100_000
"""Samples of a log."""
MOST_ATTEMPTS: Final = 1_000
"""Failed attempts at a sample."""


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
    problems: list[Problem]

    @property
    def samples(self) -> Mapping[str, Entry]:
        """All of its samples in order, by key."""
        ...

    def entry(self, key: str) -> Entry | None:
        """One of them, for less."""
        ...

    def through(self, file: File) -> None:
        """Go on reading through `file`, the same one opened again."""
        ...

    def sample(self, key: str) -> Sample:
        """One of its samples, the latest of which is kept. Raises `FormatError` if it cannot be read."""
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
    if (entry := log.entry(key)) is not None:
        return entry
    sample, _, number = key.rpartition("_attempt_")
    entry = log.entry(sample)
    if entry is None or not number.isdecimal() or len(number) > 6 or not 0 < int(number) <= entry.attempts:
        return None
    return msgspec.structs.replace(entry, key=key, attempt=int(number))


def key_of(told: Record) -> str | None:
    """``ID_epoch_N``, as members of archives are called; None for what names no sample."""
    return key_from(field(told, "id"), field(told, "epoch"))


def key_from(ident: Any, epoch: Any) -> str | None:
    """The same of an id and an epoch, whatever these are."""
    if not isinstance(ident, str | int) or isinstance(ident, bool) or whole(epoch) is None:
        return None
    return f"{ident!s}_epoch_{epoch}" if isinstance(ident, str) or whole(ident) is not None else None

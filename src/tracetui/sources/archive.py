"""Members of a zip archive, read through any `File`. Extracts nothing to disk and writes nothing.

Python's own `zipfile` cannot read Zstandard (method 93) before 3.14. Archives are untrusted: every field is checked
against the data, and a member may not exceed `MAX_MEMBER`. Member names are never used as paths.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from struct import Struct
from typing import Final

import msgspec

from tracetui.errors import FormatError
from tracetui.sources.base import MAX_DOCUMENT, File
from tracetui.sources.file_views import spend, unpack_zstandard

MAGIC: Final = b"PK\3\4"
"""First bytes of a non-empty archive."""
MAX_MEMBER: Final = MAX_DOCUMENT
"""Largest member in bytes."""
MAX_RATIO: Final = 1_000
"""Largest compression ratio of a large member: text never exceeds it, a bomb by far."""
MAX_DIRECTORY: Final = 64 << 20
"""Largest central directory in bytes."""
MAX_MEMBERS: Final = 200_000
STORED, DEFLATED, ZSTANDARD = 0, 8, 93

_END: Final = Struct("<4s4H2LH")
_LOCATOR: Final = Struct("<4sLQL")
_END_64: Final = Struct("<4sQ2H2L4Q")
_ENTRY: Final = Struct("<4s6H3L5H2L")
_LOCAL: Final = Struct("<4s5H3L2H")
_COMMENT: Final = 65_535
_ENCRYPTED: Final = 1
_UTF_8: Final = 1 << 11
_LARGE: Final = 0xFFFFFFFF
_PIECE: Final = 4 << 20
_ALLOWANCE: Final = 1 << 16
"""Bytes of a member's local header and name to read along with it."""


class Member(msgspec.Struct, frozen=True, gc=False):
    """A member, as listed in the central directory."""

    name: str
    method: int
    check: int
    """CRC-32 of its contents."""
    packed: int
    size: int
    offset: int
    flags: int = 0


class Archive:
    """The members of one archive."""

    def __init__(self, file: File) -> None:
        """Read the central directory. Raises `FormatError` if there is none, or `OSError`."""
        self._file = file
        self.damage: str | None = None
        """Why the members were recovered without a central directory; None if the archive has one."""
        try:
            entries = list(_directory(file))
        except FormatError as fault:
            entries = list(_salvaged(file))
            if not entries:
                raise
            self.damage = f"{fault.reason}: recovered from the members"
        self.members = {member.name: member for member in entries}
        """By name; the last of several members with the same name counts."""
        self._overlapping = _overlapping(self.members.values())

    def through(self, file: File) -> None:
        """Continue with `file`, the same file opened again."""
        self._file = file

    def read(self, name: str) -> bytes:
        """Return the contents of a member. Raises `FormatError` if it does not exist or cannot be read."""
        member = self.members.get(name)
        if member is None:
            raise FormatError("no such member in the archive", name)
        if member.size > MAX_MEMBER:
            raise FormatError(f"not read: {member.size} bytes, more than {MAX_MEMBER >> 20} MiB", name)
        if member.size > max(_PIECE, MAX_RATIO * member.packed):
            raise FormatError(f"not read: compression ratio above {MAX_RATIO}", name)
        if member.offset in self._overlapping:
            raise FormatError("not read: overlaps with other members", name)
        spend(self._file.memo, member.size)
        return _unpacked(member, _packed(self._file, member))


def _directory(file: File) -> Iterator[Member]:
    """Yield the members of the central directory. Raises `FormatError`."""
    count, size, offset = _end(file)
    if size > MAX_DIRECTORY or count > MAX_MEMBERS:
        raise FormatError(f"too many members in the archive: {count}")
    data = file.read(offset, size)
    place = 0
    for _ in range(count):
        if data[place : place + 4] != b"PK\1\2" or place + _ENTRY.size > len(data):
            raise FormatError("broken central directory", f"byte {offset + place}")
        (_, _, _, flags, method, _, _, check, packed, unpacked, named, extra, comment, *_, at) = _ENTRY.unpack_from(
            data, place
        )
        place += _ENTRY.size
        name = _name(data[place : place + named], flags)
        more = data[place + named : place + named + extra]
        unpacked, packed, at = _large(more, unpacked, packed, at)
        place += named + extra + comment
        yield Member(name, method, check, packed, unpacked, at, flags)


def _end(file: File) -> tuple[int, int, int]:
    """Return member count, size and offset of the central directory. Raises `FormatError`."""
    file_size = file.stat.size
    begin = max(0, file_size - _END.size - _COMMENT - _LOCATOR.size)
    tail = file.read(begin, file_size - begin)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) < at + _END.size:
        raise FormatError("truncated: the archive has no central directory")
    _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, at)
    if _LARGE in (size, offset) or count == 0xFFFF:
        count, size, offset = _end_64(file, tail, at) or (count, size, offset)
    if offset + size > begin + at:
        raise FormatError("the central directory is not where it should be")
    return count, size, offset


def _end_64(file: File, tail: bytes, at: int) -> tuple[int, int, int] | None:
    if at < _LOCATOR.size or tail[at - _LOCATOR.size : at - _LOCATOR.size + 4] != b"PK\6\7":
        return None
    where = _LOCATOR.unpack_from(tail, at - _LOCATOR.size)[2]
    data = file.read(where, _END_64.size) if where < file.stat.size else b""
    if len(data) < _END_64.size or data[:4] != b"PK\6\6":
        raise FormatError("the central directory is not where it should be")
    *_, count, size, offset = _END_64.unpack(data)
    return count, size, offset


def _large(extra: bytes, *fields: int) -> list[int]:
    """Replace fields of more than 32 bits with their zip64 values, which are stored in this order."""
    numbers = list(fields)
    place = 0
    while place + 4 <= len(extra):
        kind, size = int.from_bytes(extra[place : place + 2], "little"), extra[place + 2] | extra[place + 3] << 8
        place += 4
        if kind == 1:
            values = iter(extra[i : i + 8] for i in range(place, place + size, 8))
            for number, field in enumerate(fields):
                if field == _LARGE and len(value := next(values, b"")) == 8:
                    numbers[number] = int.from_bytes(value, "little")
            break
        place += size
    return numbers


def _salvaged(file: File) -> Iterator[Member]:
    """Recover the members stored in sequence from the start, for an archive without a central directory."""
    place = 0
    for _ in range(MAX_MEMBERS):
        head = file.read(place, _LOCAL.size + _ALLOWANCE)
        if head[:4] != MAGIC or len(head) < _LOCAL.size:
            return
        _, _, flags, method, _, _, check, packed, unpacked, named, extra = _LOCAL.unpack_from(head)
        name = head[_LOCAL.size : _LOCAL.size + named]
        unpacked, packed = _large(head[_LOCAL.size + named : _LOCAL.size + named + extra], unpacked, packed)
        end = place + _LOCAL.size + named + extra + packed
        if end > file.stat.size or len(name) < named or flags & 8:  # its size follows it
            return
        yield Member(_name(name, flags), method, check, packed, unpacked, place, flags)
        place = end


def _overlapping(members: Iterable[Member]) -> frozenset[int]:
    """Return the offsets of members that share bytes with another: a small archive may claim to be huge that way."""
    ordered = sorted(members, key=lambda member: member.offset)
    pairs = ((a, b) for a, b in pairwise(ordered) if a.offset + _LOCAL.size + a.packed > b.offset)
    return frozenset(member.offset for pair in pairs for member in pair)


def _packed(file: File, member: Member) -> bytes:
    """Return the compressed bytes of a member, without its local header."""
    if member.offset + member.packed > file.stat.size:
        raise FormatError("truncated: the archive ends first", member.name)
    data = file.read(member.offset, _LOCAL.size + member.packed + _ALLOWANCE)
    if data[:4] != MAGIC or len(data) < _LOCAL.size:
        raise FormatError("not at its offset in the archive", member.name)
    named, extra = _LOCAL.unpack_from(data)[-2:]
    begin = _LOCAL.size + named + extra
    if begin + member.packed > len(data):  # name and extra field of many kB
        return file.read(member.offset + begin, member.packed)
    return data[begin : begin + member.packed]


def _unpacked(member: Member, packed: bytes) -> bytes:
    if member.flags & _ENCRYPTED:
        raise FormatError("not read: encrypted", member.name)
    unpack = _METHODS.get(member.method)
    if unpack is None:
        raise FormatError(f"not read: unsupported compression method ({member.method})", member.name)
    data = unpack(packed, member)
    if len(data) != member.size or zlib.crc32(data) != member.check:
        raise FormatError("broken: checksum mismatch", member.name)
    return data


def _stored(packed: bytes, member: Member) -> bytes:
    return packed


def _deflated(packed: bytes, member: Member) -> bytes:
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)  # no more than it claims
    except zlib.error as fault:
        raise FormatError(f"broken: cannot be decompressed ({fault})", member.name) from fault


def _zstandard(packed: bytes, member: Member) -> bytes:
    try:
        return unpack_zstandard(packed, member.size + 1)  # no more than it claims
    except FormatError as fault:
        raise FormatError(fault.reason, member.name) from fault


_METHODS: Final[dict[int, Callable[[bytes, Member], bytes]]] = {
    STORED: _stored,
    DEFLATED: _deflated,
    ZSTANDARD: _zstandard,
}


def _name(data: bytes, flags: int) -> str:
    return data.decode("utf-8" if flags & _UTF_8 else "cp437", "replace")

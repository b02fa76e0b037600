"""What a file begins with if its first records do not end in its head: the same records, shortened.

Formats know a file by the fields of its first records. Keys may come in any order, and after a prompt or a result that
is longer than the head.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.decode import BLANK, decode, lines, parse, records_in
from tracetui.sources.base import HEAD_SIZE, File, FileView, Stat
from tracetui.sources.file_views import is_packed

MAX_OPENING: Final = 3 << 20
"""Bytes that are read at most: a document is read twice, and again for its summary, within `LIST_BUDGET`."""
_LINES: Final = 16
_DEPTH: Final = 6
_FIELDS: Final = 200
_CUTS: Final = ((2000, 16), (200, 4), (80, 1))
"""Characters of a text and items of a list that are left; the first that make everything fit are taken."""
_MEMO: Final = "opening"


class _Opening(FileView):
    """A file with another head."""

    __slots__ = ("_head", "_memo")

    def __init__(self, file: File, head: bytes) -> None:
        super().__init__(file)
        self._head = head
        self._memo = {**file.memo}

    @property
    def head(self) -> bytes:
        return self._head

    @property
    def memo(self) -> dict[str, Any]:
        return self._memo

    @property
    def stat(self) -> Stat:
        return self._file.stat

    def read(self, offset: int, size: int) -> bytes:
        return self._file.read(offset, size)

    def read_all(self) -> bytes:
        return self._file.read_all()


def opening(file: File) -> File:
    """`file` with the shortened first records as its head, made once; `file` itself if its head holds all of it, no
    record can be read in the first `MAX_OPENING` bytes, or it is compressed.
    """
    head = file.head
    if len(head) < HEAD_SIZE or is_packed(file) or head.lstrip(BLANK + b"\n")[:1] not in (b"{", b"["):
        return file
    if _MEMO not in file.memo:
        try:
            records = list(_records(file))
        except (FormatError, OSError):
            records = []
        file.memo[_MEMO] = _shortened(records) if records else None
    shortened = file.memo[_MEMO]
    return file if shortened is None else _Opening(file, shortened)


def beginning(file: File, most: int) -> Iterator[dict[str, Any]]:
    """The objects on the first `most` lines, as `records_in`: those that end in the head, then those of `opening`."""
    yield from records_in(file.head, most)
    if (opened := opening(file)) is not file:
        yield from records_in(opened.head, most)


def _records(file: File) -> Iterator[Any]:
    """The values on the first lines, or the one document. Raises `FormatError` for a document that is cut."""
    size, first = file.stat.size, True
    for line in islice(lines(file, end=min(MAX_OPENING, size)), _LINES):
        if not line.data.strip(BLANK):
            continue
        if not line.whole and line.next_offset < size:
            return
        try:
            yield parse(line.data)[0]
        except FormatError:
            if first and line.whole and size <= MAX_OPENING:
                yield decode(file.read_all())[0]
                return
        first = False


def _shortened(records: list[Any]) -> bytes:
    head = b""
    for length, items in _CUTS:
        head = b"".join(json.dumps(_short(record, length, items, _DEPTH)).encode() + b"\n" for record in records)
        if len(head) < HEAD_SIZE:
            break
    return head[:HEAD_SIZE]


def _short(value: Any, length: int, items: int, depth: int) -> Any:
    if isinstance(value, str):
        return value[:length]
    if isinstance(value, list):
        return [_short(item, length, items, depth - 1) for item in value[:items]] if depth else []
    if isinstance(value, dict):
        fields = islice(value.items(), _FIELDS if depth else 0)
        return {name[:length]: _short(item, length, items, depth - 1) for name, item in fields}
    return value

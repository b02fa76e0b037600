"""A source whose files end early: what a file held before it grew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tracetui.sources.base import Entry, File, Folder, Source, Stat, View


class Prefix:
    """`source`, with files that end at byte `size` while that is not None; see `tracetui.sources.base.Source`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size: int | None = None

    def walk(self, root: str) -> Iterator[Entry]:
        return self._source.walk(root)

    def list(self, path: str) -> Folder:
        return self._source.list(path)

    def expect(self, paths: Sequence[str]) -> None:
        self._source.expect(paths)

    def is_file(self, path: str) -> bool:
        return self._source.is_file(path)

    def is_folder(self, path: str) -> bool:
        return self._source.is_folder(path)

    def local_path(self, path: str) -> str | None:
        return self._source.local_path(path)

    def open(self, path: str, stat: Stat | None = None) -> File:
        file = self._source.open(path, stat)
        return file if self.size is None else _Beginning(file, self.size)


class _Beginning(View):
    """The first bytes of a file; see `tracetui.sources.base.File`."""

    __slots__ = ("_memo", "_size")

    def __init__(self, file: File, size: int) -> None:
        super().__init__(file)
        self._size = size
        self._memo: dict[str, Any] = {}

    @property
    def memo(self) -> dict[str, Any]:
        return self._memo

    @property
    def stat(self) -> Stat:
        found = self._file.stat
        return msgspec.structs.replace(found, size=min(found.size, self._size))

    @property
    def head(self) -> bytes:
        return self._file.head[: self._size]

    def read(self, offset: int, size: int) -> bytes:
        return self._file.read(offset, min(size, max(0, self._size - offset)))

    def read_all(self) -> bytes:
        return self.read(0, self._size)

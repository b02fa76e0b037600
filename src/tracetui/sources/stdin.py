"""Standard input as a file: copied to a private folder, since formats seek."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, Final

from tracetui.sources.base import Entry, File, Folder, Stat
from tracetui.sources.local import LocalFile, LocalSource

STDIN: Final = "-"


class StdinSource(LocalSource):
    """Local files, plus the contents of `stream` at the path ``-``. A context manager: its end deletes the copy."""

    def __init__(self, stream: BinaryIO) -> None:
        self._folder = tempfile.mkdtemp(prefix="tracetui-")
        self._copy = os.path.join(self._folder, "stdin")
        with os.fdopen(os.open(self._copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)

    def __enter__(self) -> StdinSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def open(self, path: str, stat: Stat | None = None) -> File:
        return LocalFile(path, stat, self._copy) if path == STDIN else super().open(path, stat)

    def is_file(self, path: str) -> bool:
        return path == STDIN or super().is_file(path)

    def local_path(self, path: str) -> str | None:
        return None if path == STDIN else super().local_path(path)

    def list(self, path: str) -> Folder:
        return super().list(path) if path != STDIN else Folder([*self.walk(STDIN)], [])

    def walk(self, root: str) -> Iterator[Entry]:
        if root != STDIN:
            yield from super().walk(root)
            return
        with self.open(STDIN) as file:
            yield Entry(STDIN, file.stat)

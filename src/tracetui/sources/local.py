"""Files of this machine, and standard input."""

from __future__ import annotations

import errno
import os
import stat as modes
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import TracebackType
from typing import BinaryIO, Final, Self

from tracetui.sources.base import (
    HEAD_SIZE,
    HIDDEN,
    HIDDEN_FOLDER,
    MOVING_SECONDS,
    SKIPPED_ENDS,
    SQLITE_MAGIC,
    BaseFile,
    Entry,
    File,
    Folder,
    Stat,
    check_document_size,
    check_path,
    is_hidden,
    reason_of,
    resolve_relative,
    skip_reason,
)
from tracetui.sources.file_views import readable

_FLAGS: Final = (
    os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
)  # a FIFO must not block, and a link must not be followed
_CHUNK: Final = 1 << 20
STDIN: Final = "-"
WITHIN: Final = "TRACETUI_WITHIN"
"""Environment variable: paths separated by `os.pathsep`; if set, nothing outside of them is read."""


@cache
def _allowed() -> tuple[str, ...]:
    return tuple(os.path.realpath(path) for path in os.environ.get(WITHIN, "").split(os.pathsep) if path)


def is_confined() -> bool:
    """Whether this process may only read some paths (`WITHIN`)."""
    return bool(_allowed())


def _is_allowed(path: str) -> bool:
    if not _allowed():
        return True
    real = os.path.realpath(path)
    return any(real == root or real.startswith(os.path.join(root, "")) for root in _allowed())


def check_allowed(path: str) -> None:
    """Raise `PermissionError` for a path that this process may not read (`WITHIN`), links resolved."""
    if not _is_allowed(path):
        raise PermissionError(errno.EACCES, "outside of the paths that may be read", path)


def _check_opened(fd: int, path: str) -> None:
    """Raise `PermissionError` if what was opened lies outside of the paths that may be read, and close it.

    A path that `check_allowed` let pass may lead elsewhere when it is opened: someone exchanged a folder for a link.
    """
    if not _allowed():
        return
    try:
        check_allowed(_path_of(fd) or path)
    except BaseException:
        os.close(fd)
        raise


def open_checked(path: str) -> int:
    """Open a file for reading; the descriptor. Raises `PermissionError` outside of the paths that may be read."""
    fd = os.open(path, _FLAGS)
    _check_opened(fd, path)
    return fd


def _path_of(fd: int) -> str | None:
    """The path of an open file as the system knows it, None if it doesn't say."""
    try:
        if sys.platform == "darwin":
            import fcntl

            return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


@contextmanager
def _entries(path: str) -> Iterator[Iterator[tuple[os.DirEntry[str], str]]]:
    """Context: the names in a folder, each with its path. Raises `OSError`."""
    if not _allowed():
        with os.scandir(path) as names:
            yield ((item, item.path) for item in names)
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    _check_opened(fd, path)
    try:
        with os.scandir(fd) as names:
            yield ((item, os.path.join(path, item.name)) for item in names)
    finally:
        os.close(fd)


class LocalFile(BaseFile):
    """A regular file; see `tracetui.sources.base.File`."""

    __slots__ = ("_at", "_fd", "_fresh", "_newest")

    def __init__(self, path: str, stat: Stat | None = None, at: str | None = None) -> None:
        """The file at `path`; `at` is the path of its bytes, if different. A `stat` must be current."""
        super().__init__(path, stat)
        self._at = at or path
        self._fresh = stat is not None
        self._fd = -1
        self._newest = 0.0

    def _find_stat(self) -> Stat:
        self._open()
        assert self._stat is not None
        return self._stat

    @property
    def moving(self) -> bool:
        changed = max(self.stat.mtime, self._newest)
        if self.head.startswith(SQLITE_MAGIC):  # a live database grows in its log
            changed = max(changed, _mtime(self._at + "-wal"))
        return time.time() - changed < MOVING_SECONDS

    def read(self, offset: int, size: int) -> bytes:
        fd = self._fd if self._fd >= 0 else self._open()
        try:
            data = os.pread(fd, size, offset)
        except (MemoryError, OverflowError) as error:  # the size comes from the stat, or from the trace
            raise OSError(errno.ENOMEM, "larger than memory") from error
        if len(data) == size or not data or (self._stat is not None and offset + len(data) >= self._stat.size):
            return data
        parts = [data]  # a short read is not yet the end
        got = len(data)
        while got < size and (data := os.pread(fd, size - got, offset + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts) if len(parts) > 1 else parts[0]

    def read_all(self) -> bytes:
        head = self._head
        size = self.stat.size
        if head is not None and len(head) < HEAD_SIZE and len(head) >= size:
            return head
        check_document_size(size)
        return self.read(0, max(size, 1))

    def next_data(self, offset: int) -> int:
        fd = self._fd if self._fd >= 0 else self._open()
        try:
            return os.lseek(fd, offset, os.SEEK_DATA)
        except OSError as error:  # only a hole follows, or the file system does not know holes
            return max(offset, self.stat.size) if error.errno == errno.ENXIO else offset
        except AttributeError:  # nor does the operating system
            return offset

    def sibling(self, name: str) -> str | None:
        path = os.path.join(os.path.dirname(self.path), name)
        try:
            check_allowed(path)
            return path if modes.S_ISREG(os.lstat(path).st_mode) else None
        except (OSError, ValueError):
            return None

    def folder(self, path: str = "") -> Folder:
        try:
            at, ways = resolve_relative(self.path, path, os.path.dirname, os.path.join)
            return Folder() if any(map(os.path.islink, ways)) else LocalSource().list(at or os.curdir)
        except (OSError, ValueError):
            return Folder()

    def other(self, path: str, stat: Stat | None = None) -> File:
        if stat is not None:
            self._newest = max(self._newest, stat.mtime)
        return _readable(LocalFile(resolve_relative(self.path, path, os.path.dirname, os.path.join)[0], stat))

    def _database_arguments(self) -> tuple[str]:
        check_allowed(self._at)
        return (self._at,)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> int:
        check_path(self._at)
        check_allowed(self._at)
        fd = open_checked(self._at)
        if self._fresh:  # another fstat is a third of the cost of opening
            self._fd, self._fresh = fd, False
            return fd
        status = os.fstat(fd)
        if not modes.S_ISREG(status.st_mode):
            os.close(fd)
            raise OSError(f"not a regular file: {self.path}")
        self._stat = _stat_of(status)
        self._fd = fd
        return fd


def _readable(file: LocalFile) -> File:
    return readable(file, partial(file.read, 0, 4))  # reading a body needs no more of the head


class LocalSource:
    """The file system; see `tracetui.sources.base.Source`."""

    def open(self, path: str, stat: Stat | None = None) -> File:
        return _readable(LocalFile(path, stat))

    def is_file(self, path: str) -> bool:
        return _is_allowed(path) and os.path.isfile(path)

    def is_folder(self, path: str) -> bool:
        return _is_allowed(path) and os.path.isdir(path)

    def prefetch(self, paths: Sequence[str]) -> None:
        """Do nothing: local folders need no prefetching."""

    def local_path(self, path: str) -> str | None:
        return path

    def list(self, path: str) -> Folder:
        check_path(path)
        check_allowed(path)
        status = os.stat(path)
        if not modes.S_ISDIR(status.st_mode):
            return Folder([_named(path, status)], [])
        entries: list[Entry] = []
        folders: list[str] = []
        with _entries(path) as names:
            for item, at in names:
                if (entry := _look(item, at)) is not None:
                    entries.append(entry)
                else:
                    folders.append(at)
        return Folder(entries, folders)

    def walk(self, root: str) -> Iterator[Entry]:
        try:
            check_allowed(root)
            status = os.stat(root)  # a link is followed here, where the user named it, and nowhere else
        except (OSError, ValueError) as error:
            yield Entry(root, skipped=reason_of(error), failed=True)
            return
        if not modes.S_ISDIR(status.st_mode):
            yield _named(root, status)
            return
        folders = [root]
        while folders:
            folder = folders.pop()
            below: list[str] = []
            try:
                with _entries(folder) as names:
                    for item, at in names:
                        if (entry := _look(item, at)) is not None:
                            yield entry
                        else:
                            below.append(at)
            except OSError as error:
                yield Entry(folder, skipped=reason_of(error), failed=True)
            folders.extend(sorted(below, reverse=True))


class StdinSource(LocalSource):
    """Local files, plus the contents of `stream` at the path ``-``. A context manager: its end deletes the copy."""

    def __init__(self, stream: BinaryIO) -> None:
        import shutil
        import tempfile  # both are slow to import

        self._folder = tempfile.mkdtemp(prefix="tracetui-")
        self._copy = os.path.join(self._folder, "stdin")
        with os.fdopen(os.open(self._copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
            shutil.copyfileobj(stream, copy, _CHUNK)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        import shutil

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


def _look(item: os.DirEntry[str], path: str) -> Entry | None:
    """The entry of a name in a folder, at `path`; None for a folder to enter."""
    try:
        name = item.name
        if name.startswith(".") and is_hidden(name, is_folder=item.is_dir(follow_symlinks=False)):
            return Entry(path, skipped=HIDDEN_FOLDER if item.is_dir(follow_symlinks=False) else HIDDEN)
        if item.is_file(follow_symlinks=False):  # first, because most are
            status = item.stat(follow_symlinks=False)
            stat = Stat(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            return Entry(path, stat, skip_reason(name) if name.endswith(SKIPPED_ENDS) else None)
        if item.is_symlink():
            return Entry(path, skipped="symbolic link, not followed", failed=item.is_file())
        if item.is_dir(follow_symlinks=False):
            return None
        return Entry(path, skipped="not a regular file")
    except OSError as error:
        return Entry(path, skipped=reason_of(error), failed=True)


def _mtime(path: str) -> float:
    """Return the modification time, 0 if there is no such file."""
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _named(path: str, status: os.stat_result) -> Entry:
    """Return the entry of a path that the user named."""
    if not modes.S_ISREG(status.st_mode):
        return Entry(path, skipped="not a regular file")
    return Entry(path, _stat_of(status))


def _stat_of(status: os.stat_result) -> Stat:
    return Stat(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

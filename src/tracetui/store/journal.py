"""An append-only file of lines: several processes append to it, and readers follow it as it grows."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat as modes
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from tracetui.errors import NotWritten

MAX_LINE: Final = 64 * 1024
"""Maximum bytes read of a line; one more of a longer line, so that it is recognizable."""
LOCK_SECONDS: Final = 2.0
"""How long to wait for the lock of another instance."""

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_TAIL: Final = 256
"""Bytes before the read offset that identify the file when it grows."""

_State = tuple[int, int, int, int]


class Lines(msgspec.Struct, frozen=True):
    """New lines without newlines, numbered from `first`. `restarted`: lines read earlier are void."""

    restarted: bool
    first: int
    lines: list[bytes]
    rest: bytes = b""
    """An incomplete last line: its writer is still writing, or was killed."""


class Journal:
    """The file at `path`: created on the first write, mode 0600, never a link or device."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._start()

    def _start(self) -> None:
        self._state: _State | None = None
        self._offset = 0
        self._count = 0
        self._tail = b""

    def read(self) -> Lines | None:
        """Read the lines since the last call; None, at the cost of one stat, if the file is unchanged.

        Raises `OSError` if it can't be read; the next call then returns the lines.
        """
        try:
            if _state_of(os.lstat(self.path)) == self._state:
                return None
            fd = _opened(self.path, _READ)
        except FileNotFoundError:
            was_read = self._state is not None
            self._start()
            return Lines(restarted=True, first=1, lines=[]) if was_read else None
        try:
            return self.read_from(fd)
        finally:
            os.close(fd)

    def read_from(self, fd: int) -> Lines:
        """As `read`, of the file open as `fd`."""
        now = os.fstat(fd)
        restarted = self._state is not None and not self._continues(fd, now)
        if restarted:
            self._start()
        first, lines = self._count + 1, []
        rest, offset = b"", self._offset
        while offset < now.st_size and (data := os.pread(fd, min(_CHUNK, now.st_size - offset), offset)):
            start = 0
            while (end := data.find(b"\n", start)) >= 0:
                lines.append((rest + data[start:end])[: MAX_LINE + 1])
                rest, start = b"", end + 1
                self._offset = offset + start
            rest = (rest + data[start:])[: MAX_LINE + 1]
            offset += len(data)
        self._count += len(lines)
        self._tail = os.pread(fd, min(_TAIL, self._offset), max(0, self._offset - _TAIL))
        self._state = _state_of(now)
        return Lines(restarted, first, lines, rest)

    def _continues(self, fd: int, now: os.stat_result) -> bool:
        """Whether the file only grew since the last read."""
        state = _state_of(now)
        if state == self._state:
            return True
        if self._state is None or self._state[:2] != state[:2] or now.st_size <= self._state[2]:
            return False  # also if it was written to without growing
        return os.pread(fd, len(self._tail), self._offset - len(self._tail)) == self._tail

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Context: the file open for `append` under an exclusive lock.

        Raises `NotWritten` if it can't be opened or locked, and for any `OSError` inside.
        """
        try:
            os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
            fd = self._open_locked()
            try:
                yield fd
            finally:
                os.close(fd)
        except OSError as error:
            raise NotWritten(f"{self.path}: {reason_of(error)}; nothing was saved") from error

    def _open_locked(self) -> int:
        """Open and lock the file; it may be replaced while waiting for the lock."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            fd = _opened(self.path, _APPEND)
            try:
                _lock(fd, deadline)
                if os.path.samestat(os.fstat(fd), os.lstat(self.path)):
                    return fd
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "replaced repeatedly")

    def append(self, fd: int, line: bytes) -> None:
        """Append a line (with its newline) in one write, or nothing; an incomplete last line is ended first."""
        before = os.fstat(fd).st_size
        data = line if before == 0 or os.pread(fd, 1, before - 1) == b"\n" else b"\n" + line
        try:
            while data:  # on a full disk the second write raises the error
                data = data[os.write(fd, data) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, before)
            raise


def _opened(path: str, flags: int) -> int:
    """Open a regular file. Raises `OSError`, also for anything else."""
    fd = os.open(path, flags, 0o600)
    if modes.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file")


def _lock(fd: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "locked by another instance") from None
        select.select((), (), (), 0.002)


def _state_of(found: os.stat_result) -> _State:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def reason_of(error: OSError) -> str:
    """The reason of an OS error as text."""
    return "is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)

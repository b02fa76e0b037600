"""A file of lines that is only ever added to, by several programs at once, and read on as it grows."""

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
"""Bytes of a line that are read; of a longer one, one more."""
LOCK_SECONDS: Final = 2.0
"""How long another instance may take to write."""

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_TAIL: Final = 256
"""Bytes before the place up to which was read, by which the file is known again."""

_State = tuple[int, int, int, int]


class Lines(msgspec.Struct, frozen=True):
    """What is new: lines without their ends, the first of them number `first`; `anew`: what was read before is void."""

    anew: bool
    first: int
    lines: list[bytes]
    rest: bytes = b""
    """The beginning of a line that has no end yet: of somebody who writes at this moment, or who was killed."""


class Journal:
    """The file at `path`, made when it is first written to, for its owner alone. It is no link and no device."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._start()

    def _start(self) -> None:
        self._state: _State | None = None
        self._offset = 0
        self._count = 0
        self._tail = b""

    def read(self) -> Lines | None:
        """What came since the last time, None if the file was not touched. One stat then.

        Raises `OSError` where it can't be read; what came is then told the next time.
        """
        try:
            if _state_of(os.lstat(self.path)) == self._state:
                return None
            fd = _opened(self.path, _READ)
        except FileNotFoundError:
            known = self._state is not None
            self._start()
            return Lines(anew=True, first=1, lines=[]) if known else None
        try:
            return self.read_from(fd)
        finally:
            os.close(fd)

    def read_from(self, fd: int) -> Lines:
        """The same of the file that is open as `fd`."""
        now = os.fstat(fd)
        anew = self._state is not None and not self._continues(fd, now)
        if anew:
            self._start()
        first, lines = self._count + 1, []
        rest, place = b"", self._offset
        while place < now.st_size and (data := os.pread(fd, min(_CHUNK, now.st_size - place), place)):
            start = 0
            while (end := data.find(b"\n", start)) >= 0:
                lines.append((rest + data[start:end])[: MAX_LINE + 1])
                rest, start = b"", end + 1
                self._offset = place + start
            rest = (rest + data[start:])[: MAX_LINE + 1]
            place += len(data)
        self._count += len(lines)
        self._tail = os.pread(fd, min(_TAIL, self._offset), max(0, self._offset - _TAIL))
        self._state = _state_of(now)
        return Lines(anew, first, lines, rest)

    def _continues(self, fd: int, now: os.stat_result) -> bool:
        """Whether the file still begins with what was read: one that was written to otherwise is another."""
        state = _state_of(now)
        if state == self._state:
            return True
        if self._state is None or self._state[:2] != state[:2] or now.st_size <= self._state[2]:
            return False  # also where nothing was added, and yet it was written to
        return os.pread(fd, len(self._tail), self._offset - len(self._tail)) == self._tail

    @contextmanager
    def locked(self) -> Iterator[int]:
        """The file, open for `append`, while nobody else adds to it.

        Raises `NotWritten` where that can't be had, and for any `OSError` on the way.
        """
        try:
            os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
            fd = self._held()
            try:
                yield fd
            finally:
                os.close(fd)
        except OSError as error:
            raise NotWritten(f"{self.path}: {reason_of(error)}; nothing was kept") from error

    def _held(self) -> int:
        """The file that has that name now, locked: it may be replaced while one waits."""
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
                raise OSError(errno.EAGAIN, "it is replaced again and again")

    def append(self, fd: int, line: bytes) -> None:
        """Add a whole line with its end in one write, or nothing; one that somebody left unfinished is ended first."""
        before = os.fstat(fd).st_size
        data = line if before == 0 or os.pread(fd, 1, before - 1) == b"\n" else b"\n" + line
        try:
            while data:  # the second write of a full disk tells what is wrong
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
                raise OSError(errno.EAGAIN, "another instance does not let go of it") from None
        select.select((), (), (), 0.002)


def _state_of(found: os.stat_result) -> _State:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def reason_of(error: OSError) -> str:
    """Why a file can't be read or written, in words."""
    return "a link, which is not followed" if error.errno == errno.ELOOP else error.strerror or str(error)

"""Write exports atomically: private to their owner, never in a trace directory, never over another file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from tracetui.errors import NotWritten, UsageError

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o600


def write(path: str, pieces: Iterable[bytes], *, roots: Sequence[str] = (), replace: bool = False) -> int:
    """Write `pieces` to a file and return the number of bytes.

    Raises `UsageError` if `path` is inside one of `roots` (open trace directories, or files, which count as their
    directories), or exists and `replace` is False; `NotWritten` if writing fails. No partial file remains.
    """
    wanted = path
    above, name = os.path.split(path)
    folder = os.path.realpath(above or os.curdir)  # `link/..` is the parent of the link's target
    path = os.path.join(folder, name)
    check_outside(folder, roots)
    if not name or os.path.isdir(path):
        raise UsageError(f"{wanted} is a directory; name a file in it")
    if not replace and os.path.lexists(path):
        raise UsageError(f"{wanted} already exists; choose another name")
    temporary = os.path.join(folder, f".{name[:100]}.{token_hex(4)}.tmp")
    try:
        size = _write(temporary, pieces)
        _publish(temporary, path, replace=replace)
    except FileExistsError:
        raise UsageError(f"{wanted} already exists; choose another name") from None
    except OSError as error:
        raise NotWritten(f"{wanted} can't be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    with suppress(OSError):  # not supported by every file system; the file is complete anyway
        _sync_directory(folder)
    return size


def create_directory(path: str, *, roots: Sequence[str] = ()) -> None:
    """Create a directory for several files, private to its owner; one that is there stays.

    Raises `UsageError` if `path` is inside one of `roots` (see `write`), `NotWritten` if creating it fails.
    """
    folder = os.path.realpath(path)
    check_outside(path, roots)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise NotWritten(f"{path} can't be created: {error.strerror or error}") from None


def check_outside(path: str, roots: Sequence[str]) -> None:
    """Raise `UsageError` if the directory `path`, which needn't exist, is inside one of `roots` (see `write`)."""
    folder = os.path.realpath(path)
    for root in roots:
        for place in _directories_of(root):
            if any(os.path.samefile(place, one) for one in (Path(folder), *Path(folder).parents) if os.path.isdir(one)):
                raise UsageError(f"{place} contains traces and is never written to; choose another directory")


def _directories_of(root: str) -> Iterator[str]:
    """The directory `root`, or those that contain the file: that of a link, and that of its target."""
    if os.path.isdir(root):
        yield root
    elif os.path.lexists(root):
        yield from dict.fromkeys((os.path.dirname(root) or os.curdir, os.path.dirname(os.path.realpath(root))))


def _write(path: str, pieces: Iterable[bytes]) -> int:
    descriptor = os.open(path, _CREATE, _MODE)
    with os.fdopen(descriptor, "wb") as file:
        size = sum(file.write(piece) for piece in pieces)
        file.flush()
        os.fsync(file.fileno())
    return size


def _publish(temporary: str, path: str, *, replace: bool) -> None:
    """Rename the finished file. Raises `FileExistsError` if the name was taken meanwhile."""
    if replace:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError from None
        os.rename(temporary, path)


def _sync_directory(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Writes an export: all of it or nothing, for its owner alone, never among the traces and never over another file."""

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
    """Write `pieces` to a file; how many bytes they were.

    Raises `UsageError` if `path` lies in one of `roots` (the folders of traces that are open, and files, whose folders
    count), or is there already unless `replace`; `NotWritten` if it can't be written. Then there is no file, nor a
    part of one.
    """
    wanted = path
    above, name = os.path.split(path)
    folder = os.path.realpath(above or os.curdir)  # as the system resolves it: `link/..` is beside what the link names
    path = os.path.join(folder, name)
    _stay_outside(folder, roots)
    if not name or os.path.isdir(path):
        raise UsageError(f"{wanted} is a folder; name a file in it")
    if not replace and os.path.lexists(path):
        raise UsageError(f"{wanted} is there already; choose another name")
    temporary = os.path.join(folder, f".{name[:100]}.{token_hex(4)}.tmp")
    try:
        size = _written(temporary, pieces)
        _put(temporary, path, replace=replace)
    except FileExistsError:
        raise UsageError(f"{wanted} is there already; choose another name") from None
    except OSError as error:
        raise NotWritten(f"{wanted} can't be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    with suppress(OSError):  # not every file system has this; the file is whole in any case
        _sync_folder(folder)
    return size


def _stay_outside(folder: str, roots: Sequence[str]) -> None:
    for root in roots:
        for place in _folders_of(root):
            if any(os.path.samefile(place, one) for one in (Path(folder), *Path(folder).parents) if os.path.isdir(one)):
                raise UsageError(f"{place} holds traces, and nothing is written there; choose another folder")


def _folders_of(root: str) -> Iterator[str]:
    """The folder that `root` is, or those in which the file lies: that of a link, and that of what it names."""
    if os.path.isdir(root):
        yield root
    elif os.path.lexists(root):
        yield from dict.fromkeys((os.path.dirname(root) or os.curdir, os.path.dirname(os.path.realpath(root))))


def _written(path: str, pieces: Iterable[bytes]) -> int:
    descriptor = os.open(path, _CREATE, _MODE)
    with os.fdopen(descriptor, "wb") as file:
        size = sum(file.write(piece) for piece in pieces)
        file.flush()
        os.fsync(file.fileno())
    return size


def _put(temporary: str, path: str, *, replace: bool) -> None:
    """Give the finished file its name; `FileExistsError` if another one took it meanwhile."""
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


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The files of a repository that the user names: read-only, regular files beneath its root, of a bounded size."""

from __future__ import annotations

import os
import stat
from typing import Final

MAX_SIZE: Final = 4 << 20
"""Larger files are not looked at."""
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def repository_of(folder: str) -> str | None:
    """Return the root of the repository that contains a folder, without running git; None if there is none."""
    path = os.path.realpath(folder)
    while True:
        if os.path.lexists(os.path.join(path, ".git")):
            return path
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above


class Checkout:
    """A working tree."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file at a relative path with ``/``; None if there is none.

        Links are not followed, in any part of the path. Raises `OSError` for what is not looked at: another kind of
        file, a link, a large or unreadable file, a path that leaves the root.
        """
        *folders, name = path.split("/")
        if path.startswith("/") or not name or {"..", ""} & {*folders, name} or "\0" in path:
            raise OSError(f"not beneath the repository: {path!r}")
        folder = os.open(self.root, _OPEN | os.O_DIRECTORY)
        try:
            for part in folders:
                if part == ".":
                    continue
                below = os.open(part, _OPEN | os.O_DIRECTORY, dir_fd=folder)
                os.close(folder)
                folder = below
            descriptor = os.open(name, _OPEN, dir_fd=folder)
        except FileNotFoundError:
            return None
        finally:
            os.close(folder)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SIZE:
                raise OSError("not a regular file of a supported size")
            return file.read(MAX_SIZE)

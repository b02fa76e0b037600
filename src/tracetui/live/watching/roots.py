"""Which root a path belongs to, where roots overlap: to the first that leads to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence


class Roots:
    """The roots as they were given, and where they really are. There may be thousands: a shell writes them out."""

    def __init__(self, roots: Sequence[str], local_path: Callable[[str], str | None]) -> None:
        given = list(dict.fromkeys(roots))
        self._numbers = {root: i for i, root in enumerate(given)}
        self._reals = [_real(root, local_path(root)) for root in given]
        self._first: dict[str, int] = {}
        """The number of the first root that really is at a path."""
        for i, real in enumerate(self._reals):
            self._first.setdefault(real, i)
        self._names = {name: root for root in given for name in _names(root)}
        self.tops = dict.fromkeys(root for root, i in self._numbers.items() if self._owner(self._reals[i]) == i)
        """The roots that no earlier one leads to, in order."""

    def named(self, path: str) -> str:
        """The root that a hint calls so; any other path as it is."""
        return self._names.get(path, path)

    def owns(self, root: str, path: str) -> bool:
        """Whether what that root leads to under `path` belongs to it."""
        if len(self._numbers) == 1:
            return True
        number = self._numbers[root]
        owner = self._owner(self._reals[number].rstrip("/") + path[len(root.rstrip("/")) :] or "/")
        return owner is None or owner == number

    def _owner(self, real: str) -> int | None:
        """The first root that leads to a path without links."""
        return min((self._first[top] for top in _above(real) if top in self._first), default=None)


def _above(real: str) -> Iterator[str]:
    """A path and all that lead to it by walking, nearest first: what is hidden is not walked into."""
    yield real
    while True:
        head, slash, name = real.rpartition("/")
        if not slash or name.startswith("."):
            return
        yield head or "/"
        if not head:
            return
        real = head


def _real(root: str, local: str | None) -> str:
    return os.path.realpath(local) if local is not None else os.path.normpath(root)


def _names(root: str) -> tuple[str, ...]:
    """How hints may call a root: they know folders, and its folder may have been watched because it is a file."""
    head, name = os.path.split(root)
    return root.rstrip("/"), os.path.abspath(root), os.path.join(head or os.curdir, name), root + "-wal"

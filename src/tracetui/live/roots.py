"""Which root a path belongs to, where roots overlap: to the first that leads to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence


class Roots:
    """The roots as they were given, and where they really are."""

    def __init__(self, roots: Sequence[str], local_path: Callable[[str], str | None]) -> None:
        self._given = list(dict.fromkeys(roots))
        self._reals = [_real(root, local_path(root)) for root in self._given]
        self._names = {name: root for root in self._given for name in _names(root)}
        self.tops = [root for i, root in enumerate(self._given) if self._owner(self._reals[i]) == i]
        """The roots that no earlier one leads to."""

    def named(self, path: str) -> str:
        """The root that a hint calls so; any other path as it is."""
        return self._names.get(path, path)

    def index(self, root: str) -> int:
        """The number of a root."""
        return self._given.index(root)

    def owns(self, index: int, path: str) -> bool:
        """Whether what that root leads to under `path` belongs to it."""
        if len(self._given) == 1:
            return True
        owner = self._owner(self._reals[index] + path[len(self._given[index].rstrip("/")) :])
        return owner is None or owner == index

    def _owner(self, real: str) -> int | None:
        """The first root that leads to a path without links."""
        for i, top in enumerate(self._reals):
            below = real[len(top.rstrip("/")) :]
            if real == top or (real.startswith(top.rstrip("/") + "/") and "/." not in below):
                return i
        return None


def _real(root: str, local: str | None) -> str:
    return os.path.realpath(local) if local is not None else os.path.normpath(root)


def _names(root: str) -> tuple[str, ...]:
    """How hints may call a root: they know folders, and its folder may have been watched because it is a file."""
    head, name = os.path.split(root)
    return root.rstrip("/"), os.path.abspath(root), os.path.join(head or os.curdir, name), root + "-wal"

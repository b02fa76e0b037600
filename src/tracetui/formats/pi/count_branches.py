"""Where the spans of a session will stand, while its entries are only counted: what `rewind` does with spans."""

from __future__ import annotations

from typing import Final

from tracetui.formats.pi.branches import EACH, FREE

DEEPEST: Final = 64
"""So many branches within branches are counted."""
Position = tuple[tuple[int, ...], ...]
"""Where a span stands in pre-order: the branches that it is in, then itself; of each the line that it began with."""


class Branches:
    """Which entry follows which, and which are abandoned."""

    def __init__(self) -> None:
        self.leaf: str | None = None
        self.parents: dict[str, str | None] = {}
        self.own: set[str] = set()
        """Entries that have spans of the conversation."""
        self.gone: dict[str, str] = {}
        """Abandoned entries, and the first entry of the branch that each is in."""
        self.opened: dict[str, tuple[str | None, int]] = {}
        """Branches that have spans, by their first entries: the entry that they left after, and the line that left."""
        self.forks: set[str | None] = set()
        """Entries that such branches left after."""
        self.rest = FREE
        """Entries that may still be abandoned or taken up again."""

    def append(self, ident: str, parent: str | None, line: int) -> bool:
        """Put an entry after `parent`; whether that is not the leaf, so that what followed it is abandoned.

        Raises `ValueError` where somebody went back too often.
        """
        moved = parent != self.leaf and (parent is None or parent in self.parents)
        if moved:
            self._go(parent, line)
        self.parents[ident] = self.leaf
        self.rest += EACH
        self.leaf = ident
        return moved

    def place(self, entry: str | None, line: int, block: int) -> Position:
        """Where a span of an entry stands. Raises `ValueError` for one in more than `DEEPEST` branches."""
        found: list[tuple[int, ...]] = [(line, 1, block)]
        branch = self._branch_of(entry)
        while branch is not None:
            fork, left = self.opened[branch]
            found.append((left, 0))
            if len(found) > DEEPEST:
                raise ValueError
            branch = self._branch_of(fork)
        return tuple(found[::-1])

    def _branch_of(self, entry: str | None) -> str | None:
        return None if entry is None else self.gone.get(entry)

    def _go(self, to: str | None, line: int) -> None:
        back, left = [], []
        fork, at = to, self.leaf
        while fork is not None and fork in self.gone:
            back.append(fork)
            fork = self.parents[fork]
        while at is not None and at != fork:
            left.append(at)
            at = self.parents[at]
        self.rest -= len(left) + len(back)
        if self.rest < 0:
            raise ValueError
        if left and left[-1] not in self.opened and any(one in self.own or one in self.forks for one in left):
            self.opened[left[-1]] = fork, line
            self.forks.add(fork)
        self.gone |= dict.fromkeys(left, left[-1] if left else "")
        for one in back:
            del self.gone[one]
        self.leaf = to

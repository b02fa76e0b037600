"""The tree of a session: an entry names the one that it follows, and one that names an earlier one begins a new branch.

The last entry is the leaf. What leads to it is the live branch; all else is abandoned until somebody goes back to it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tracetui.formats.layers import Layers

FREE: Final = 50_000
"""So many entries may be abandoned and taken up again in any session, and `EACH` more for each entry that it has."""
EACH: Final = 8


class Node(NamedTuple):
    """An entry: the one that it follows, the latest span of the conversation, and that which it added itself."""

    parent: str | None
    top: str | None
    own: str | None


class Move(NamedTuple):
    """What going back to an earlier entry means; entries in the order in which they follow each other."""

    fork: str | None
    """The last entry that both branches have; None where they have none."""
    left: list[str]
    """Abandoned now."""
    back: list[str]
    """Abandoned before, and taken up again."""


class Tree:
    """All entries that were met. Copies share what they have in common."""

    __slots__ = ("_gone", "_left", "_nodes", "is_worn", "leaf")

    def __init__(self) -> None:
        self._nodes: Layers[Node] = Layers()
        self._gone: Layers[bool] = Layers()
        self._left = FREE
        """Entries that may still be abandoned or taken up again."""
        self.is_worn = False
        """Somebody went back and forth so often that it is not followed any more."""
        self.leaf: str | None = None

    def copy(self) -> Tree:
        """A tree that goes on from here without changing this one."""
        made = Tree()
        made._nodes, made._gone, made.leaf = self._nodes.copy(), self._gone.copy(), self.leaf
        made._left, made.is_worn = self._left, self.is_worn
        return made

    def get(self, ident: str) -> Node | None:
        """The entry of that id."""
        return self._nodes.get(ident)

    def append(self, ident: str, node: Node) -> None:
        """Put an entry after the leaf: it is the leaf then."""
        self._nodes[ident] = node
        self._left += EACH
        self.leaf = ident

    def go(self, to: str | None) -> Move | None:
        """Make entry `to` the leaf (None: begin anew); None where it is, where nobody knows it, or if this is worn."""
        if self.is_worn or to == self.leaf or (to is not None and self._nodes.get(to) is None):
            return None
        back: list[str] = []
        left: list[str] = []
        fork, at = to, self.leaf
        while fork is not None and self._gone.get(fork):
            back.append(fork)
            fork = self._parent(fork)
        while at is not None and at != fork:
            left.append(at)
            at = self._parent(at)
        self._left -= len(left) + len(back)
        self.is_worn = self._left < 0
        for ident in left:
            self._gone[ident] = True
        for ident in back:
            self._gone[ident] = False
        self.leaf = to
        return Move(fork, left[::-1], back[::-1])

    def _parent(self, ident: str) -> str | None:
        node = self._nodes.get(ident)
        return None if node is None else node.parent

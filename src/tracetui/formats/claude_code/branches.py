"""The tree of a conversation: records name the one before them, and a rewind is a prompt that names an earlier one."""

from __future__ import annotations

from typing import NamedTuple

from tracetui.formats.layers import Layers


class Node(NamedTuple):
    """A record of the conversation, the one that it follows, the span that it belongs to."""

    uuid: str
    parent: str | None
    top: str | None
    is_prompt: bool


class Trail:
    """The records of a conversation in the order in which they were written. Copies share what they have in common."""

    __slots__ = ("_nodes", "_places", "_size")

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._size = 0
        self._places: Layers[int] = Layers()

    def __contains__(self, uuid: str) -> bool:
        return self._places.get(uuid) is not None

    def copy(self) -> Trail:
        """A trail that goes on from here without changing this one."""
        made = Trail()
        made._nodes, made._size, made._places = self._nodes, self._size, self._places.copy()
        return made

    def append(self, node: Node) -> None:
        """Put a record at the end."""
        if len(self._nodes) != self._size:  # a copy went another way
            self._nodes = self._nodes[: self._size]
        self._nodes.append(node)
        self._places[node.uuid] = self._size
        self._size += 1

    def after(self, uuid: str) -> list[str]:
        """The spans of what followed record `uuid`, if that is where the conversation goes on from, not at its end.

        Nothing unless a prompt was among it: only what somebody asked can be taken back. Lines of parallel calls name
        each other in a way that looks alike.
        """
        place = self._places.get(uuid)
        if place is None or place == self._size - 1:
            return []
        at, followed, prompted = self._nodes[place].top, {uuid}, False
        found: dict[str, None] = {}
        for node in self._nodes[place + 1 : self._size]:
            if node.parent in followed:
                followed.add(node.uuid)
                prompted |= node.is_prompt
                if node.top is not None and node.top != at:
                    found[node.top] = None
        return list(found) if prompted else []

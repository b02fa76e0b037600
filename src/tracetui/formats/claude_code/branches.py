"""The tree of a conversation: records name the one before them, and a rewind is a prompt that names an earlier one."""

from __future__ import annotations

from typing import Final, NamedTuple

from tracetui.formats.layers import Layers

ROOT: Final = "\0root"
"""What prompts follow that name no record: the first one, and what took its place. No record is called so."""


class Node(NamedTuple):
    """A record of the conversation, the one that it follows, the span that it belongs to."""

    uuid: str
    parent: str | None
    top: str | None
    is_prompt: bool
    before: int = -1
    """The place of the record that named the same parent before this one, -1 if there is none that counts."""


class Trail:
    """The records of a conversation in the order in which they were written. Copies share what they have in common."""

    __slots__ = ("_latest", "_nodes", "_places", "_size")

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._size = 0
        self._places: Layers[int] = Layers()
        self._latest: Layers[int] = Layers()
        """The last record that follows one, where it is not just the next: -1 where nothing does any more."""

    def __contains__(self, uuid: str) -> bool:
        return self._places.get(uuid) is not None

    def copy(self) -> Trail:
        """A trail that goes on from here without changing this one."""
        made = Trail()
        made._nodes, made._size = self._nodes, self._size
        made._places, made._latest = self._places.copy(), self._latest.copy()
        return made

    def append(self, node: Node) -> None:
        """Put a record at the end."""
        if node.parent == ROOT and ROOT not in self:
            self.append(Node(ROOT, None, None, False))
        if len(self._nodes) != self._size:  # a copy went another way
            self._nodes = self._nodes[: self._size]
        parent = node.parent
        place = None if parent is None else self._places.get(parent)
        if parent is not None and place is not None and place != self._size - 1:
            node = node._replace(before=self._last(place))
            self._latest[parent] = self._size
        self._nodes.append(node)
        self._places[node.uuid] = self._size
        self._size += 1

    def leave(self, uuid: str) -> list[str]:
        """The spans of what followed record `uuid`, if that is where the conversation goes on from, not at its end.

        Nothing unless a prompt was among it: only what somebody asked can be taken back. Lines of parallel calls name
        each other in a way that looks alike. What was left follows nothing any more: it is found once. A prompt took
        the place of the first one only where something had followed that: some files leave out what follows what.
        """
        start = self._places.get(uuid)
        if start is None or start == self._size - 1:
            return []
        places, todo = [], [start]
        while todo:
            place = todo.pop()
            follower = self._last(place)
            while follower > place:  # what stands before the record that it names cannot have followed it
                places.append(follower)
                todo.append(follower)
                follower = self._nodes[follower].before
        if not any(self._nodes[place].is_prompt for place in places):
            return []
        if uuid == ROOT and all(self._nodes[place].parent == ROOT for place in places):
            return []
        self._latest[uuid] = -1
        at = self._nodes[start].top
        tops = dict.fromkeys(self._nodes[place].top for place in sorted(places))
        return [top for top in tops if top is not None and top != at]

    def _last(self, place: int) -> int:
        """The place of the last record that follows the one there, -1 if none does."""
        uuid, following = self._nodes[place].uuid, place + 1
        known = self._latest.get(uuid)
        if known is not None:
            return known
        return following if following < self._size and self._nodes[following].parent == uuid else -1

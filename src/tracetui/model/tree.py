"""The order in which the spans of a run are shown: mended once, and kept up cheaply while the run grows at its end."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from tracetui.model.run import TREE, Problem
from tracetui.model.span import Span


class Tree:
    """Pre-order, depth and subtree size of the spans of a run; siblings keep the order in which they came.

    With `by_start` they have that in which they began; those of which nobody knows when come last.
    Spans whose parent is missing are at the top, cycles of parents are cut; `problems` says so.
    """

    def __init__(self, by_id: Mapping[str, Span], *, by_start: bool = False) -> None:
        self._missing: set[str] = set()
        self._orphans = self._cut = 0
        self._by_start = by_start
        self.spans: list[Span] = []
        self.depths: list[int] = []
        self._sizes: list[int] = []
        self._open: list[int] = []
        """Positions of the last span and its ancestors, top first."""
        self.index: dict[str, int] = {}
        if by_start or not self._append_all(by_id):
            self._order(by_id)

    def _append_all(self, by_id: Mapping[str, Span]) -> bool:
        """Put the spans in the order in which they came; False if that is not their pre-order."""
        depths, index, open_positions, sizes = self.depths, self.index, self._open, self._sizes
        for position, span in enumerate(by_id.values()):
            parent, depth = span.parent_id, 0
            if parent is not None:
                above = index.get(parent)
                if above is None:
                    return False
                depth = depths[above] + 1
                if depth > len(open_positions) or open_positions[depth - 1] != above:
                    return False
            while len(open_positions) > depth:
                closed = open_positions.pop()
                sizes[closed] = position - closed
            open_positions.append(position)
            depths.append(depth)
            sizes.append(1)
            index[span.id] = position
        self.spans = list(by_id.values())
        return True

    def _order(self, by_id: Mapping[str, Span]) -> None:
        """Order the spans anew."""
        children: dict[str, list[Span]] = {}
        roots: list[Span] = []
        for span in by_id.values():
            parent = span.parent_id
            if parent is None:
                roots.append(span)
            elif parent in by_id and parent != span.id:
                children.setdefault(parent, []).append(span)
            else:
                self._orphan(parent)
                roots.append(span)
        for siblings in (roots, *children.values()) if self._by_start else ():
            siblings.sort(key=_began)
        self.spans, self.depths = roots, [0] * len(roots)
        if children:
            self.spans, self.depths = self._ordered(by_id, roots, children)
        self._sizes, self._open = _sizes(self.depths)
        self.index = {span.id: i for i, span in enumerate(self.spans)}

    @property
    def sizes(self) -> list[int]:
        """Subtree size of each position. Costs the depth of the last span."""
        for position in self._open:
            self._sizes[position] = len(self.spans) - position
        return self._sizes

    def put(self, span: Span) -> bool:
        """Add a span at the end, or put a newer version of one in its place; False where the order must be made anew.

        At the end is what has no parent (or none that is known), or the last span or an ancestor of it as its parent.
        """
        parent = span.parent_id
        position = self.index.get(span.id)
        if position is not None:
            before = self.spans[position]
            if before.parent_id != parent or (self._by_start and _began(before) != _began(span)):
                return False
            self.spans[position] = span
            return True
        if self._cut or span.id in self._missing:  # it would stand before what hung on a cycle; it has children already
            return False
        depth = 0
        if parent is not None:
            above = self.index.get(parent)
            if above is None:
                self._orphan(parent)
            else:
                depth = self.depths[above] + 1
                if depth > len(self._open) or self._open[depth - 1] != above:
                    return False
        if self._by_start and depth < len(self._open) and _began(self.spans[self._open[depth]]) > _began(span):
            return False
        self._append(span, depth)
        return True

    def problems(self, path: str, *, parents_to_come: bool = False) -> list[Problem]:
        """What was mended, told of the trace at `path`; that parents are missing is no problem if they are to come."""
        found = []
        if self._orphans and not parents_to_come:
            found.append(Problem(path, TREE, f"{self._orphans} spans name a parent that is not in the trace"))
        if self._cut:
            found.append(Problem(path, TREE, f"{self._cut} cycles of parents were cut"))
        return found

    def _append(self, span: Span, depth: int) -> None:
        position = len(self.spans)
        for closed in self._open[depth:]:  # the sizes of those that stay open are filled in on demand
            self._sizes[closed] = position - closed
        del self._open[depth:]
        self._open.append(position)
        self.spans.append(span)
        self.depths.append(depth)
        self._sizes.append(1)
        self.index[span.id] = position

    def _orphan(self, parent: str) -> None:
        self._orphans += 1
        self._missing.add(parent)

    def _ordered(
        self, by_id: Mapping[str, Span], roots: list[Span], children: dict[str, list[Span]]
    ) -> tuple[list[Span], list[int]]:
        order: list[Span] = []
        depths: list[int] = []
        seen: set[str] = set()
        _walk(roots, children, order, depths, seen)
        if len(order) < len(by_id):  # what no root reaches hangs on a cycle: cut it at its first span
            for span in by_id.values():
                if span.id not in seen:
                    self._cut += 1
                    _walk([span], children, order, depths, seen)
        return order, depths


def _began(span: Span) -> float:
    start = span.started_at
    return inf if start is None or start != start else start  # NaN is before and after nothing


def _walk(
    roots: list[Span], children: dict[str, list[Span]], order: list[Span], depths: list[int], seen: set[str]
) -> None:
    stack = [(span, 0) for span in reversed(roots)]
    while stack:
        span, depth = stack.pop()
        if span.id in seen:
            continue
        seen.add(span.id)
        order.append(span)
        depths.append(depth)
        below = children.get(span.id)
        if below:
            stack.extend((child, depth + 1) for child in reversed(below))


def _sizes(depths: list[int]) -> tuple[list[int], list[int]]:
    """Subtree size of each position of a pre-order, and the positions of the last span and its ancestors, top first."""
    sizes = [1] * len(depths)
    open_positions: list[int] = []
    for i, depth in enumerate(depths):
        while len(open_positions) > depth:
            position = open_positions.pop()
            sizes[position] = i - position
        open_positions.append(i)
    for position in open_positions:
        sizes[position] = len(depths) - position
    return sizes, open_positions

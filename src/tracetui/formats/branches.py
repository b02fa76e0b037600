"""Branches of a conversation. Its records form a tree: each follows another one, mostly the last.

A record that follows an earlier one begins a new branch. The records that followed that one until then are abandoned:
their rows move below the row of the branch, are no steps any more, and have the note `ABANDONED`; their usage still
counts. A record that follows an abandoned one takes up its branch again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import CHAT, Call, Conversation, SpanRow, SyntheticRef
from tracetui.formats.jsonl import Line
from tracetui.model import Span
from tracetui.sources.base import File

ROOT: Final = ""
"""The record that first records follow."""
ABANDONED: Final = "abandoned"
ABANDONED_BRANCH: Final = "abandoned branch"
"""Name of the row of a branch."""
_BETWEEN: Final = " · "
_FREE: Final = 50_000
"""So many records may be abandoned and taken up again in any session, and `_EACH` more for each record that it has."""
_EACH: Final = 8


class Node(Struct, gc=False):
    """A record in the tree."""

    ident: str
    parent: str | None
    """The record that it follows."""
    number: int
    """Nodes before it."""
    top: str | None
    """The latest row of the conversation when it was written."""
    previous: Node | None = None
    """The live record with the same parent before this one."""
    latest: Node | None = None
    """The last live record that follows this one."""


class Branch(Struct, gc=False):
    """An abandoned branch: its row, and how many rows and responses are below that."""

    row: Span
    rows: int = 0
    responses: int = 0


class Path(NamedTuple):
    """The way from the live branch to a record: the last live record on it, and the records (in order) that are
    abandoned and taken up again by going there.
    """

    fork: Node
    abandoned: list[Node]
    back: list[Node]


class BranchedConversation(Conversation):
    """A conversation with branches. Formats add a node per record that others can follow."""

    def __init__(self, file: File, *, root: str | None = None, part: str = "") -> None:
        """`root` and `part` as in `Conversation`."""
        super().__init__(file, root=root, part=part)
        self.rows: dict[str, Any] = {}
        """Rows of the conversation by id, each a `Span` or `SpanRow`."""
        self.abandoned: set[str] = set()
        """Records of abandoned branches."""
        self._branches: dict[str, Branch] = {}
        """By the ids of their rows."""
        self._first: dict[str, Branch] = {}
        """By their first records."""
        self._after: dict[str, list[Branch]] = {}
        """By the last live records before them."""
        self._new_calls: list[str] = []
        """Keys of the calls that `_keys` does not have yet."""
        self._keys: dict[str, list[str]] = {}
        """Keys of calls by the id of their response: filled when the conversation goes back."""
        self._reused: dict[str, list[Call]] = {}
        """Calls with a key that a later call has too, by the id of their response."""
        self.leaf: Node
        """The last record."""
        self.nodes: dict[str, Node]
        self.clear_nodes()
        self._moves = 0
        """Records that were abandoned or taken up again."""
        self._has_branches = True

    def call(self, key: str | None, call: Call, line: Line) -> None:
        if key is not None:
            if key in self.calls:
                before: Any = self.open_call(key)
                self._reused.setdefault(before.parent_id or "", []).append(before)
            self._new_calls.append(key)
        super().call(key, call, line)

    def calls_of(self, row: Any) -> Iterable[Call]:
        """The calls below a response."""
        for key in self._new_calls:
            self._keys.setdefault(self.calls[key].parent_id or "", []).append(key)
        self._new_calls.clear()
        opened = map(self.open_call, self._keys.get(row.id, ()))
        return [call for call in opened if call and call.parent_id == row.id] + self._reused.get(row.id, [])

    def add_node(self, ident: str, parent: str | None, top: str | None) -> None:
        """Add the record `ident`, which follows the record `parent` (None: unknown); `top` is the latest row now."""
        node = Node(ident, parent, len(self.nodes), top)
        above = self.nodes.get(parent)  # type: ignore[arg-type]
        if above is not None:
            node.parent = above.ident  # a record has a copy of it
            if above.latest is not None:
                node.previous = above.latest
            above.latest = node
        if ident in self.abandoned:  # another record with the same id
            self.abandoned.discard(ident)
            self._first.pop(ident, None)
        self.nodes[ident] = self.leaf = node

    def clear_nodes(self) -> None:
        """Begin a new tree; the rows stay where they are."""
        self.leaf = Node(ROOT, None, 0, None)
        self.nodes = {ROOT: self.leaf}
        self.abandoned.clear()
        self._first.clear()
        self._after.clear()

    def is_live(self, ident: str) -> bool:
        """Whether it is a record that wasn't abandoned."""
        return ident in self.nodes and ident not in self.abandoned

    def ignore_branches(self) -> None:
        """Show all later records as live."""
        self._has_branches = False

    def path_of_record(self, ident: str) -> Path:
        """The way to a record, at a cost of its length."""
        if not self._has_branches:
            return Path(self.leaf, [], [])
        fork, back, abandoned = self.nodes[ident], list[Node](), list[Node]()
        while fork.ident in self.abandoned:
            back.append(fork)
            fork = self.nodes[fork.parent]  # type: ignore[index]
        todo = [fork]
        while todo:
            follower = todo.pop().latest
            while follower is not None:
                abandoned.append(follower)
                todo.append(follower)
                follower = follower.previous
        abandoned.sort(key=lambda node: node.number)
        return Path(fork, abandoned, back[::-1])

    def abandoned_rows(self, path: Path) -> list[Span | SpanRow]:
        """The rows that are abandoned by going that way, in order."""
        return [row for row in self._rows_of(path.abandoned, path.fork) if row.parent_id == self.root]

    def go(self, path: Path, name: str, follower: str, line: Line, at: Any = None) -> bool:
        """Go to a record, after which the record `follower` comes; False if no rows were abandoned.

        `name` is the id for the row of a new branch, and `at` the location of its body if a record describes it.
        """
        fork, abandoned, back = path
        if not self._has_branches:
            return False
        self._moves += len(abandoned) + len(back)
        if self._moves > _FREE + _EACH * len(self.nodes):
            self.ignore_branches()
            self.problem(line, "too many returns to earlier entries: this line's abandoned entries are shown as normal")
            return False
        self.settle()
        self.notes = None
        rows = self.abandoned_rows(path)
        self.abandoned.update(node.ident for node in abandoned)
        fork.latest = None
        if rows:
            branch = self._branch(abandoned[0].ident, name, rows, fork, follower, at)
            for row in rows:
                self._move(row, branch.row.id)
        self.leaf = fork
        for row in self._rows_of(back, fork):
            self._move(row, self.root)
        for node in back:
            self.abandoned.discard(node.ident)
            node.previous, self.leaf.latest = None, node
            self.leaf = node
        self.top = self.rows.get(self.leaf.top or "")
        return bool(rows)

    def _branch(self, first: str, name: str, rows: list[Any], fork: Node, follower: str, at: Any) -> Branch:
        """The branch that begins with the record `first`: a new one, unless it was taken up again."""
        branch = self._first.get(first)
        if branch is None:
            asked = next((row.preview for row in rows if row.name == "user"), "")
            facts = (("went_back_to", fork.ident or None), ("went_on_with", follower))
            row = Span(name, ABANDONED_BRANCH, preview=asked, at=at or SyntheticRef(facts, self.part))
            branch = self._branches[name] = self._first[first] = Branch(replace(row, parent_id=self.root))
            self._after.setdefault(fork.ident, []).append(branch)
        return branch

    def _rows_of(self, nodes: list[Node], fork: Node) -> list[Any]:
        """The rows of records after `fork`, and of the branches that left after each of them."""
        rows: dict[str, Any] = {}
        for node in nodes:
            if node.top is not None and node.top != fork.top and node.top in self.rows:
                rows[node.top] = self.rows[node.top]
            for branch in self._after.get(node.ident, ()):
                rows[branch.row.id] = branch.row
        return list(rows.values())

    def _move(self, row: Any, to: str | None) -> None:
        """Put a row into a branch, or back into the conversation, with the step numbers that follow from it."""
        is_response, is_live = row.operation is CHAT, to == self.root
        self._count(row.parent_id, -1, is_response=is_response)
        self._count(to, 1, is_response=is_response)
        branch = self._branches.get(row.id)
        if branch is not None:
            branch.row = replace(branch.row, parent_id=to)
            self.emit(branch.row)
            return
        if is_response:
            self.steps += 1 if is_live else -1
        step = self.steps if is_response and is_live and self.root is None else None
        notes = [part for part in row.note.split(_BETWEEN) if part and part != ABANDONED]
        note = _BETWEEN.join(notes if is_live else [*notes, ABANDONED])
        if isinstance(row, Span):
            row = replace(row, parent_id=to, note=note, step=step, is_step=step is not None)
            self.rows[row.id] = row
        else:
            row.parent_id, row.note, row.step = to, note, step
        self.emit(row)
        for call in self.calls_of(row):
            call.step = step
            self.emit(call)

    def _count(self, ident: str | None, more: int, *, is_response: bool) -> None:
        """Add `more` rows to a branch."""
        branch = None if ident is None else self._branches.get(ident)
        if branch is None:
            return
        branch.rows += more
        branch.responses += more * is_response
        responses = "1 response" if branch.responses == 1 else f"{branch.responses} responses"
        branch.row = replace(branch.row, note=responses if branch.rows else "taken up again")
        self.emit(branch.row)

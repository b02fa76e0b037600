"""Forks: sessions that begin with copies of records of another session.

A copied record counts in the session that had it first. If that is gone, it counts in the earliest fork that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from tracetui.formats.lines import MAX_LINE, lines
from tracetui.sources.base import HEAD_SIZE, Entry, File

Order = tuple[Any, ...]
"""Sorts the sessions with the same beginning: a copy comes after what it was copied from."""


class Copies:
    """The records of a session that earlier sessions have, too: they count there."""

    def __init__(self, keys: Callable[[bytes], Iterable[Hashable]]) -> None:
        """`keys` identifies the record on a line: a copy has the same keys."""
        self._keys = keys
        self.has_all = False
        """All copied records count elsewhere, whatever their keys."""
        self.earlier: tuple[tuple[Order, str], ...] = ()
        """The earlier sessions, the first one first, by path relative to the folder of the session."""
        self.keys: frozenset[Hashable] = frozenset()
        """Keys of all their records."""
        self._orders: dict[tuple[str, int], Order | None] = {}

    def __contains__(self, key: Hashable) -> bool:
        return self.has_all or key in self.keys

    def look(
        self,
        file: File,
        others: Mapping[str, Entry],
        order_of: Callable[[str, Entry], Order | None],
        own: Callable[[], Order],
    ) -> None:
        """Find the earlier ones among the sessions `others`, by relative path. A session is opened once.

        `order_of` returns None for a session with another beginning, and may raise `OSError`; `own` is the order of the
        session in `file`.
        """
        known, self._orders = self._orders, {}
        for path, entry in others.items():
            version = path, 0 if entry.stat is None else min(entry.stat.size, HEAD_SIZE)
            try:
                self._orders[version] = known[version] if version in known else order_of(path, entry)
            except OSError:
                continue
        same = sorted((order, path) for (path, _), order in self._orders.items() if order is not None)
        limit = own() if same else ()
        earlier = tuple(one for one in same if one[0] < limit)
        if earlier != self.earlier:
            self.earlier = earlier
            self.keys = frozenset(key for _, path in earlier for key in keys_in(file, path, self._keys))

    def forget(self) -> None:
        """Begin again, for another session."""
        self.earlier, self.keys, self._orders = (), frozenset(), {}


def keys_in(file: File, path: str, keys: Callable[[bytes], Iterable[Hashable]]) -> Iterator[Hashable]:
    """The keys of all records of another session, `path` relative to the folder of `file`; none if it is gone."""
    try:
        with file.other(path) as other:
            for line in lines(other, limit=MAX_LINE, end=other.stat.size):
                if not line.skipped:
                    yield from keys(line.data)
    except OSError:
        return


def sessions_beside(file: File, folder: str = "") -> dict[str, Entry]:
    """The other files of JSON lines in a folder, by path relative to the folder of `file`."""
    found = (one for one in file.folder(folder).entries if one.skipped is None and one.path != file.path)
    return {f"{folder}/{one.name}" if folder else one.name: one for one in found if one.name.endswith(".jsonl")}

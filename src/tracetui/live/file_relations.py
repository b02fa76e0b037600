"""Which files stand alone, which are parts of another file's run, and which contain forks.

A part may appear before its main file, or before the record that names it; a fork before its original. Main files and
originals may vanish. In each case other files must be read again.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Final

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import is_composed
from tracetui.formats.harbor import logs
from tracetui.live.scan import Found
from tracetui.sources.base import Source

RECENT: Final = 16
"""Newest files that may still turn out to be parts of a changing file."""


class FileRelations:
    """Used by one thread."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._alone: dict[str, str] = {}
        """Format of each file that stands alone, for formats with runs in several files."""
        self._recent: OrderedDict[str, None] = OrderedDict()
        """The newest of them."""
        self._mains: dict[str, str] = {}
        """Main file of each part."""
        self._forks: dict[str, tuple[str | None, str | None]] = {}
        """Files that contain forks, with the id and path of the original that each names."""
        self._ids: dict[str, frozenset[str | None]] = {}
        """Run ids of files that appeared or changed."""

    def __contains__(self, path: str) -> bool:
        """Whether a file stands alone although other files could be parts of its run."""
        return path in self._alone

    def add(self, found: Found, *, appeared: bool = True) -> list[str]:
        """Record a result; return the files to read again because of it: parts, a main file, forks.

        Unless it `appeared`, the file existed when watching began, and no other file is read again.
        """
        related = self._take(found, appeared=appeared)
        return [*related, *self.identify(found.path, {run.id for run in found.runs})] if appeared else related

    def _take(self, found: Found, *, appeared: bool) -> list[str]:
        """Record a result except for its ids; return the parts of its run, or its main file."""
        path, name = found.path, found.format or ""
        self._mains.pop(path, None)
        self._forks.pop(path, None)
        if found.part_of:
            self._mains[path] = found.part_of
        for run in found.runs:
            if run.relation == "fork":
                self._forks[path] = run.replay_of, run.replay_of_path
        if found.part_of or not found.runs or not is_composed(registry.load(name)):
            self._alone.pop(path, None)
            self._recent.pop(path, None)
            return [found.part_of, *self._logs_of(found)] if found.part_of else []
        is_new = path not in self._alone
        self._alone[path] = name
        if not is_new or not appeared:
            return self.joining(path) if appeared else []
        self._recent[path] = None
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return self._parts_among(path, [*self._recent, *self._near(path, name)])

    def joining(self, path: str) -> list[str]:
        """Return recent standalone files that are parts of the run of `path`, which has changed."""
        return self._parts_among(path, self._recent) if path in self._alone else []

    def remove(self, path: str) -> list[str]:
        """Forget a file that is gone; return the parts of its run."""
        for table in (self._alone, self._recent, self._mains, self._forks, self._ids):
            table.pop(path, None)
        return [part for part, main in self._mains.items() if main == path]

    def identify(self, path: str, ids: Collection[str | None]) -> list[str]:
        """Record the run ids of a new or changed file; return the forks of new ids."""
        new = frozenset(ids) - self._ids.get(path, frozenset())
        self._ids[path] = frozenset(ids)
        return self.forks(path, new) if new else []

    def forks(self, path: str, ids: Collection[str | None]) -> list[str]:
        """Return files with forks of these runs, or of those of the file at `path`."""
        return [
            fork for fork, (original, at) in self._forks.items() if fork != path and (original in ids or at == path)
        ]

    def forks_near(self, path: str, ids: Collection[str | None]) -> list[str]:
        """The same plus all forks in its folder: which file counts copied records depends on its neighbors."""
        folder = os.path.dirname(path)
        beside = [fork for fork in self._forks if fork != path and os.path.dirname(fork) == folder]
        return list(dict.fromkeys((*self.forks(path, ids), *beside)))

    def _near(self, path: str, name: str) -> list[str]:
        """Return standalone files in the folders for parts of the run of `path`."""
        own = os.path.dirname(path)
        try:
            parts = guard.part_folders(registry.load(name), path)
        except (OSError, FormatError):
            return []  # reported when the file is read
        folders = {os.path.normpath(os.path.join(own, folder)) for folder in ("", *parts)}
        below = tuple(os.path.join(folder, "") for folder in folders if folder != os.path.normpath(own))
        return [one for one in self._alone if os.path.dirname(one) in {*folders, own} or one.startswith(below)]

    def _logs_of(self, found: Found) -> list[str]:
        """Files below the folder of the result of a trial, which may be parts of its run now."""
        folder = os.path.join(os.path.dirname(found.path), "")
        known = dict.fromkeys((*self._alone, *self._ids)) if found.format == logs.NAME else ()
        return [path for path in known if path.startswith(folder) and path not in (found.path, found.part_of)]

    def _parts_among(self, path: str, candidates: Iterable[str]) -> list[str]:
        name, parts = self._alone[path], list[str]()
        fmt = registry.load(name)
        for other in dict.fromkeys(candidates):
            if other != path and self._alone[other] == name:
                try:
                    with self._source.open(other) as file:
                        parts += [other] if guard.main_file(fmt, file) == path else []
                except (OSError, FormatError):
                    continue  # reported when the file is read
        return parts

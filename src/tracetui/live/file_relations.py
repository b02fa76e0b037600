"""Which files stand alone, which are parts of another file's run, and which contain forks.

A part may appear before its main file, or before the record that names it; a fork before its original. Main files and
originals may vanish. In each case other files must be read again.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import is_composed
from tracetui.formats.harbor.files import NAME
from tracetui.live.scan import Found
from tracetui.sources.base import LinkLost, Source

_CHAIN: Final = 64
"""Longest chain of main files that are parts of others."""
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
        self._mains: dict[str, tuple[str, str]] = {}
        """Main file and format of each part."""
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
        before = self._mains.pop(path, None)
        self._forks.pop(path, None)
        if found.part_of:
            self._mains[path] = found.part_of, name
        for run in found.runs:
            if run.relation == "fork":
                self._forks[path] = run.replay_of, run.replay_of_path
        if found.part_of or not found.runs or not is_composed(registry.load(name)):
            self._alone.pop(path, None)
            self._recent.pop(path, None)
            if not found.part_of:
                return []
            through = self._joining_through(path) if appeared and self._mains[path] != before else []
            return [found.part_of, *through, *self._logs_of(found)]
        is_new = path not in self._alone
        self._alone[path] = name
        if not is_new or not appeared:
            return self.joining(path) if appeared else []
        self._recent[path] = None
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        near = _inside(self._alone, path, ["", *_part_folders(path, name)])
        return self._parts_among(path, name, [*self._recent, *near])

    def joining(self, path: str) -> list[str]:
        """Return recent standalone files that are parts of the run of `path`, which has changed."""
        return self._parts_among(path, self._alone[path], self._recent) if path in self._alone else []

    def remove(self, path: str) -> list[str]:
        """Forget a deleted file; return the files to read again: the parts of its run or, if it was a part itself,
        its main file, the forks of that and the parts that may have belonged to it through this one.
        """
        related = self._parts_of(path)
        if path in self._mains:
            main = self._main_of(path)
            related += [main, *self._forks_of(main)]
            if self._mains[path][1] == NAME:  # without the result they may be runs again
                folder = os.path.join(os.path.dirname(path), "")
                related += [part for part in self._mains if part.startswith(folder) and part != path]
        for table in (self._alone, self._recent, self._mains, self._forks, self._ids):
            table.pop(path, None)
        return related

    def _parts_of(self, path: str) -> list[str]:
        """Return the parts of the run of `path`; for a part, those that may belong to the run through it."""
        folders = _part_folders(path, self._mains[path][1]) if path in self._mains else None
        if folders is not None and not folders:
            return []
        main = self._main_of(path)
        parts = [part for part in self._mains if part != path and self._main_of(part) == main]
        return parts if folders is None else _inside(parts, path, folders)

    def _main_of(self, path: str) -> str:
        """Return the file that lists the run of `path`: the recorded main file may be a part itself by now."""
        for _ in range(_CHAIN):
            if path not in self._mains:
                break
            path = self._mains[path][0]
        return path

    def _joining_through(self, path: str) -> list[str]:
        """Return standalone files that belong to the run of the new part at `path` through it, and forks of the run.

        The main file did not reveal them: it may be older than the part.
        """
        main, name = self._mains[path]
        inside = _inside(self._alone, path, _part_folders(path, name))
        return [*self._parts_among(main, name, inside), *self._forks_of(main)]

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

    def _forks_of(self, path: str) -> list[str]:
        """Return files with forks of the runs that a file was last found to contain."""
        return self.forks(path, self._ids.get(path, ()))

    def forks_near(self, path: str) -> list[str]:
        """Return forks of the file's runs, and all forks in its folder: which file counts copied records depends on its
        neighbors.
        """
        folder = os.path.dirname(path)
        beside = [fork for fork in self._forks if fork != path and os.path.dirname(fork) == folder]
        return list(dict.fromkeys((*self._forks_of(path), *beside)))

    def _logs_of(self, found: Found) -> list[str]:
        """Files below the folder of the result of a trial, which may be parts of its run now."""
        folder = os.path.join(os.path.dirname(found.path), "")
        listed = dict.fromkeys((*self._alone, *self._ids)) if found.format == NAME else ()
        return [path for path in listed if path.startswith(folder) and path not in (found.path, found.part_of)]

    def _parts_among(self, path: str, name: str, candidates: Iterable[str]) -> list[str]:
        """Return those of the standalone files that are parts of the run of `path`, of the format `name`."""
        parts = list[str]()
        for other in dict.fromkeys(candidates):
            if other != path and self._alone[other] == name:
                try:
                    with self._source.open(other) as file:
                        parts += [other] if guard.main_file(registry.load(name), file) == path else []
                except LinkLost:
                    parts.append(other)  # it is read again once the source is reachable
                except (OSError, FormatError):
                    continue  # reported when the file is read
        return parts


def _part_folders(path: str, name: str) -> Sequence[str]:
    """Return the folders for parts of the run of `path`, relative to its own; none without a format."""
    try:
        return guard.part_folders(registry.load(name), path) if name else ()
    except (OSError, FormatError):
        return ()  # reported when the file is read


def _inside(paths: Iterable[str], path: str, folders: Sequence[str]) -> list[str]:
    """Return the `paths` in or below `folders`, which are relative to that of `path`; of that one, only those in it."""
    own = os.path.dirname(path)
    normal = {os.path.normpath(os.path.join(own, folder)) for folder in folders}
    below = tuple(os.path.join(folder, "") for folder in normal if folder != os.path.normpath(own))
    beside = {own} if os.path.normpath(own) in normal else set()
    return [one for one in paths if one.startswith(below) or os.path.dirname(one) in beside]

"""Which files stand for themselves, which are parts of another file's run, and which hold forks.

A part may appear before its main file, or before the record of it that names the part, a fork before its original; and
main files and originals may vanish. Each time other files have to be looked at again.
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
"""Files that appeared last and may still turn out to be parts of one that changes."""


class FileRelations:
    """Used by one thread."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._alone: dict[str, str] = {}
        """Format of each file that stands for itself, where its runs may be in several files."""
        self._recent: OrderedDict[str, None] = OrderedDict()
        """Those of them that appeared last."""
        self._mains: dict[str, str] = {}
        """Main file of each part."""
        self._forks: dict[str, tuple[str | None, str | None]] = {}
        """Files that hold forks, and the original that each names: id and path."""
        self._ids: dict[str, frozenset[str | None]] = {}
        """Ids of the runs of files that appeared or changed."""

    def __contains__(self, path: str) -> bool:
        """Whether a file stands for itself, although others might be parts of its run."""
        return path in self._alone

    def add(self, found: Found, *, appeared: bool = True) -> list[str]:
        """Take in what a file is now; returns the files to look at again because of it: parts, a main file, forks.

        Unless it `appeared`, it is one of those that are there when watching begins, of which none is looked at again.
        """
        related = self._take(found, appeared=appeared)
        return [*related, *self.identify(found.path, {run.id for run in found.runs})] if appeared else related

    def _take(self, found: Found, *, appeared: bool) -> list[str]:
        """Take in what a file is now, but for its ids; returns the parts of its run, or its main file."""
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
        """Files that appeared on their own lately, and are parts of the run of `path`, which has changed."""
        return self._parts_among(path, self._recent) if path in self._alone else []

    def remove(self, path: str) -> list[str]:
        """Forget a file that is gone; returns the parts of its run."""
        for known in (self._alone, self._recent, self._mains, self._forks, self._ids):
            known.pop(path, None)
        return [part for part, main in self._mains.items() if main == path]

    def identify(self, path: str, ids: Collection[str | None]) -> list[str]:
        """Note the run ids of a file that appeared or changed; returns the forks of those that are new in it."""
        new = frozenset(ids) - self._ids.get(path, frozenset())
        self._ids[path] = frozenset(ids)
        return self.forks(path, new) if new else []

    def forks(self, path: str, ids: Collection[str | None]) -> list[str]:
        """Files with forks of these runs, or of those of the file at `path`."""
        return [
            fork for fork, (original, at) in self._forks.items() if fork != path and (original in ids or at == path)
        ]

    def forks_near(self, path: str, ids: Collection[str | None]) -> list[str]:
        """The same, and all forks in its folder: which file counts copied records depends on which others have them."""
        folder = os.path.dirname(path)
        beside = [fork for fork in self._forks if fork != path and os.path.dirname(fork) == folder]
        return list(dict.fromkeys((*self.forks(path, ids), *beside)))

    def _near(self, path: str, name: str) -> list[str]:
        """Files that stand for themselves where parts of the run of `path` are found."""
        own = os.path.dirname(path)
        try:
            parts = guard.part_folders(registry.load(name), path)
        except (OSError, FormatError):
            return []  # reported where the file is read
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
                    continue  # reported where the file is read
        return parts

"""What is known of the folders below some roots, kept equal to what walking them now would give.

Links are not followed, names that begin with a dot not entered. Where roots overlap, each file belongs to the first
root that leads to it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from tracetui.live.watch.notify import Notify
from tracetui.sources.base import Entry, Folder, LinkLost, Source, Stat, reason_of

_WAL: Final = "-wal"
_GONE: Final = (FileNotFoundError, NotADirectoryError, PermissionError)
"""What makes a folder unreadable for everybody; any other fault may be ours, and passing."""
_COARSE_NS: Final = 50_000_000
"""A folder that changed so shortly before it was listed may change again without showing it."""
_REST: Final = 4
"""A folder that something happens in all the time is listed for a fifth of the time at most."""


class Change(msgspec.Struct, frozen=True):
    """One file to look at again."""

    path: str
    entry: Entry | None
    """What is there now; None: it is gone."""


class _Held(msgspec.Struct):
    root: str
    entries: dict[str, Entry]
    folders: set[str]
    stamp: tuple[int, ...] | None
    """What tells that names came or went; None where that cannot be told."""
    rested: float
    """Not to be listed again before (monotonic), however much happens in it."""
    is_folder: bool

    @property
    def files(self) -> int:
        """How many of the entries are files to read."""
        return sum(entry.skipped is None for entry in self.entries.values())


class Tree:
    """The folders and their entries. Used by one thread; `folders` and `files` may be read by any."""

    def __init__(self, source: Source, roots: Sequence[str], known: Mapping[str, Stat]) -> None:
        self._source = source
        self._held: dict[str, _Held] = {}
        self._known = dict(known)
        self._roots = Roots(roots, source.local_path)
        self.notify: Notify | None = None
        """Whom to tell of every folder before it is listed, and when it is gone."""
        self.roots = self._roots.tops
        """The roots that no earlier one leads to."""
        self.found: dict[str, Change] = {}
        """What changed, by path, until somebody takes it."""
        self.folders = 0
        self.files = 0

    def local_path(self, path: str) -> str | None:
        """Where it lies on this machine."""
        return self._source.local_path(path)

    def paths(self) -> list[str]:
        """All folders that are held, and the roots that are files."""
        return list(self._held)

    def rested(self, folder: str) -> float:
        """When (monotonic) the folder may be listed again for a hint."""
        held = self._held.get(folder)
        return held.rested if held is not None else 0.0

    def stale(self, folder: str) -> bool | None:
        """True: it is another folder now; False: names may have come or gone; None: nothing new.

        For local folders only, at the cost of one call.
        """
        held = self._held.get(folder)
        stamp = self._stamp(folder)
        if held is None or held.stamp is None or stamp is None:
            return False
        return None if stamp == held.stamp else stamp[:2] != held.stamp[:2]

    def owner_of(self, path: str) -> tuple[str | None, bool]:
        """The folder to list because of a hint about `path`; None if none is ours. True: it is that folder itself."""
        path = self._roots.named(path)
        if path in self._held:
            return path, True
        head = os.path.dirname(path)
        head = self._roots.named(head)
        return (head, False) if head in self._held else (None, False)

    def look(self, path: str) -> bool:
        """Compare one file alone, with its log; false if only listing its folder can tell."""
        folder, itself = self.owner_of(path)
        if folder is None or itself:
            return False
        entries = self._held[folder].entries
        if path + _WAL in entries and not self._look(path + _WAL, entries):
            return False
        return self._look(path, entries)

    def _look(self, path: str, entries: dict[str, Entry]) -> bool:
        old = entries.get(path)
        local = self.local_path(path)
        if old is None or old.stat is None or local is None or os.path.islink(local):
            return False
        try:
            (new,) = self._source.list(path).entries
        except (OSError, ValueError):
            return False
        if new.skipped is not None:
            return False
        new = Entry(path, new.stat, old.skipped)
        if new != old:
            entries[path] = new
            self._tell(path, old, new, entries)
        return True

    def skips(self, path: str) -> bool:
        """Whether what is written to this file is nothing to us."""
        folder, _ = self.owner_of(path)
        old = self._held[folder].entries.get(path) if folder is not None else None
        return old is not None and old.stat is None

    def visit(self, path: str, *, deep: bool) -> list[str]:
        """List one folder and compare; gives the folders in it to go on to: all with `deep`, else those that are new.

        Raises `LinkLost`; any other failure is an entry, as it is in walking.
        """
        held = self._held.get(path)
        root = self.root_of(path)
        is_root = path in self.roots
        local = self.local_path(path)
        if root is None or (not is_root and local is not None and os.path.islink(local)):
            self.drop(path)
            return []
        if self.notify is not None and local is not None:
            self.notify.add(path, follow=is_root)
        began = time.monotonic()
        stamp = self._stamp(path, fresh=True)
        try:
            listed = self._source.list(path)
        except LinkLost:
            raise
        except OSError as error:
            if not is_root and isinstance(error, FileNotFoundError | NotADirectoryError):
                self.drop(path)  # the folder above tells whether it is back
                return []
            listed = self._failed(path, error, held)
            stamp = None
        entries, folders = self._mine(listed, root)
        if is_root and path in entries and entries[path].stat is not None:
            entries |= self._beside(path)
        old = held or _Held(root, {}, set(), None, 0.0, is_folder=False)
        for gone in old.folders - folders:
            self.drop(gone)
        if entries != old.entries:
            self._compare(old.entries, entries)
        now = time.monotonic()
        self._hold(path, _Held(root, entries, folders, stamp, now + _REST * (now - began), path not in entries))
        return sorted(folders if deep else (folder for folder in folders if folder not in self._held))

    def drop(self, path: str) -> None:
        """The folder and everything below is gone."""
        for below in self.below(path):
            held = self._held.pop(below)
            self.folders -= held.is_folder
            self.files -= held.files
            if self.notify is not None:
                self.notify.remove(below)
            for name in held.entries:
                self.found[name] = Change(name, None)

    def below(self, path: str) -> list[str]:
        """The folder and all that are held below it."""
        paths: list[str] = []
        pending = [path]
        while pending:
            path = pending.pop()
            if path in self._held:
                paths.append(path)
                pending.extend(self._held[path].folders)
        return paths

    def forget_known(self) -> None:
        """Everything was listed once: what was known before and was not found is gone."""
        for path in self._known:
            self.found[path] = Change(path, None)
        self._known = {}

    def _hold(self, path: str, held: _Held) -> None:
        old = self._held.get(path)
        self.folders += held.is_folder - (old.is_folder if old is not None else 0)
        self.files += held.files - (old.files if old is not None else 0)
        self._held[path] = held

    def _failed(self, path: str, error: OSError, held: _Held | None) -> Folder:
        """What a folder holds that cannot be listed: the reason; where that may pass, also what it held before."""
        if self.notify is not None:
            self.notify.remove(path)
        reason = Entry(path, skipped=reason_of(error), failed=True)
        if held is None or isinstance(error, _GONE):
            return Folder([reason], [])
        return Folder([*(entry for entry in held.entries.values() if entry.path != path), reason], list(held.folders))

    def _beside(self, path: str) -> dict[str, Entry]:
        """The log beside a root that is a file. Its folder is watched for both: it tells of names that come and go."""
        local = self.local_path(path)
        if self.notify is not None and local is not None:
            self.notify.add(os.path.dirname(local) or os.curdir, follow=True)
        try:
            log = self._source.list(path + _WAL).entries
        except LinkLost:
            raise
        except OSError:
            return {}
        return {entry.path: Entry(entry.path, entry.stat, "belongs to a database") for entry in log if entry.stat}

    def _compare(self, old: dict[str, Entry], new: dict[str, Entry]) -> None:
        for path, entry in new.items():
            before = old.get(path)
            if before == entry:
                continue
            if before is None and entry.stat is not None and _same(path, self._known.pop(path, None), entry.stat):
                continue
            self._tell(path, before, entry, new)
        for path in old.keys() - new.keys():
            self._tell(path, old[path], None, new)

    def _tell(self, path: str, old: Entry | None, new: Entry | None, entries: dict[str, Entry]) -> None:
        """One entry is not what it was. What belongs to a database is told as the database, and only of its log."""
        base = _database(path, old or new)
        stays = old is not None and new is not None and old.skipped == new.skipped
        if base is None or (not stays and base not in self.roots):
            self.found[path] = Change(path, new)
        if base in entries and path.endswith(_WAL):
            if stays and old is not None and new is not None and _same(path, old.stat, new.stat):
                return
            self.found[base] = Change(base, entries[base])

    def _mine(self, listed: Folder, root: str) -> tuple[dict[str, Entry], set[str]]:
        """What of a folder belongs to this root."""
        owns = self._roots.owns
        entries = {entry.path: entry for entry in listed.entries if owns(root, entry.path)}
        return entries, {folder for folder in listed.folders if owns(root, folder)}

    def root_of(self, path: str) -> str | None:
        """The root that a folder belongs to, None if to none."""
        held = self._held.get(path)
        if held is not None:
            return held.root
        if path in self.roots:
            return path
        parent = self._held.get(self._roots.named(os.path.dirname(path)))
        return parent.root if parent is not None else None

    def _stamp(self, path: str, *, fresh: bool = False) -> tuple[int, ...] | None:
        """Identity and times of a local folder; None if it changed just now, when `fresh`."""
        local = self.local_path(path)
        try:
            found = os.stat(local) if local is not None else None
        except (OSError, ValueError):
            return None
        if found is None or (fresh and time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _COARSE_NS):
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _same(path: str, old: Stat | None, new: Stat | None) -> bool:
    """Whether a file was not written to. To read a log, SQLite gives it its owner again: that changes its ctime."""
    if old is None or new is None or not path.endswith(_WAL):
        return old == new
    return (old.inode, old.size, old.mtime_ns) == (new.inode, new.size, new.mtime_ns)


def _database(path: str, entry: Entry | None) -> str | None:
    """The database that a file belongs to, None if to none."""
    if entry is None or entry.stat is None or entry.skipped is None:
        return None
    base, dash, _ = path.rpartition("-")
    return base if dash else None


class Roots:
    """The roots as they were given, and where they really are. There may be thousands: a shell writes them out."""

    def __init__(self, roots: Sequence[str], local_path: Callable[[str], str | None]) -> None:
        given = list(dict.fromkeys(roots))
        self._numbers = {root: i for i, root in enumerate(given)}
        self._reals = [_real(root, local_path(root)) for root in given]
        self._first: dict[str, int] = {}
        """The number of the first root that really is at a path."""
        for i, real in enumerate(self._reals):
            self._first.setdefault(real, i)
        self._names = {name: root for root in given for name in _names(root)}
        self.tops = dict.fromkeys(root for root, i in self._numbers.items() if self._owner(self._reals[i]) == i)
        """The roots that no earlier one leads to, in order."""

    def named(self, path: str) -> str:
        """The root that a hint calls so; any other path as it is."""
        return self._names.get(path, path)

    def owns(self, root: str, path: str) -> bool:
        """Whether what that root leads to under `path` belongs to it."""
        if len(self._numbers) == 1:
            return True
        number = self._numbers[root]
        owner = self._owner(self._reals[number].rstrip("/") + path[len(root.rstrip("/")) :] or "/")
        return owner is None or owner == number

    def _owner(self, real: str) -> int | None:
        """The first root that leads to a path without links."""
        return min((self._first[top] for top in _above(real) if top in self._first), default=None)


def _above(real: str) -> Iterator[str]:
    """A path and all that lead to it by walking, nearest first: what is hidden is not walked into."""
    yield real
    while True:
        head, slash, name = real.rpartition("/")
        if not slash or name.startswith("."):
            return
        yield head or "/"
        if not head:
            return
        real = head


def _real(root: str, local: str | None) -> str:
    return os.path.realpath(local) if local is not None else os.path.normpath(root)


def _names(root: str) -> tuple[str, ...]:
    """How hints may call a root: they know folders, and its folder may have been watched because it is a file."""
    head, name = os.path.split(root)
    return root.rstrip("/"), os.path.abspath(root), os.path.join(head or os.curdir, name), root + "-wal"

"""A snapshot of the folders below some roots, updated to equal a fresh walk.

Links are not followed, and hidden folders not entered. Where roots overlap, each file belongs to the first root that
reaches it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from tracetui.live.notify import Notify
from tracetui.sources.base import Entry, Folder, LinkLost, Source, Stat, reason_of

_WAL: Final = "-wal"
_GONE: Final = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors that make a folder unreadable for everybody; any other error may be ours and temporary."""
_COARSE_NS: Final = 50_000_000
"""A folder that changed this shortly before listing may change again without showing it."""
_REST: Final = 4
"""Rest after listing a busy folder, as a multiple of the time it took."""


class Change(msgspec.Struct, frozen=True):
    """A file to read again."""

    path: str
    entry: Entry | None
    """Its current entry; None: deleted."""


class _FolderState(msgspec.Struct):
    root: str
    entries: dict[str, Entry]
    folders: set[str]
    stamp: tuple[int, ...] | None
    """Fingerprint of its names; None if unreliable."""
    listable_at: float
    """Earliest time (monotonic) to list it again."""
    is_folder: bool

    @property
    def files(self) -> int:
        """Number of entries that are files to read."""
        return sum(entry.skipped is None for entry in self.entries.values())


class Tree:
    """Folders and their entries. Used by one thread; `folders` and `files` are thread-safe."""

    def __init__(self, source: Source, roots: Sequence[str], seen: Mapping[str, Stat]) -> None:
        self._source = source
        self._states: dict[str, _FolderState] = {}
        self._seen = dict(seen)
        self._roots = Roots(roots, source.local_path)
        self.notify: Notify | None = None
        """Notified of every folder before it is listed, and when it is deleted."""
        self.roots = self._roots.tops
        """The roots that no earlier root reaches."""
        self.changes: dict[str, Change] = {}
        """Changes by path, until taken."""
        self.folders = 0
        self.files = 0

    def local_path(self, path: str) -> str | None:
        """Return the path on this machine."""
        return self._source.local_path(path)

    def paths(self) -> list[str]:
        """Return all folders, and the roots that are files."""
        return list(self._states)

    def listable_at(self, folder: str) -> float:
        """Return when (monotonic) a hint may cause the folder to be listed again."""
        state = self._states.get(folder)
        return state.listable_at if state is not None else 0.0

    def stale(self, folder: str) -> bool | None:
        """True: the folder was replaced; False: names may have changed; None: no change.

        For local folders only, at the cost of one call.
        """
        state = self._states.get(folder)
        stamp = self._stamp(folder)
        if state is None or state.stamp is None or stamp is None:
            return False
        return None if stamp == state.stamp else stamp[:2] != state.stamp[:2]

    def owner_of(self, path: str) -> tuple[str | None, bool]:
        """Return the folder to list for a hint about `path`, None if outside; True if `path` is that folder."""
        path = self._roots.named(path)
        if path in self._states:
            return path, True
        head = os.path.dirname(path)
        head = self._roots.named(head)
        return (head, False) if head in self._states else (None, False)

    def check_file(self, path: str) -> bool:
        """Compare one file and its log; return False if its folder must be listed."""
        folder, itself = self.owner_of(path)
        if folder is None or itself:
            return False
        entries = self._states[folder].entries
        if path + _WAL in entries and not self._check_file(path + _WAL, entries):
            return False
        return self._check_file(path, entries)

    def _check_file(self, path: str, entries: dict[str, Entry]) -> bool:
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
            self._add_change(path, old, new, entries)
        return True

    def skips(self, path: str) -> bool:
        """Whether writes to this file are irrelevant."""
        folder, _ = self.owner_of(path)
        old = self._states[folder].entries.get(path) if folder is not None else None
        return old is not None and old.stat is None

    def visit(self, path: str, *, deep: bool) -> list[str]:
        """List one folder and compare; return its subfolders to visit: all if `deep`, else the new ones.

        Raises `LinkLost`; any other failure becomes an entry, as in walking.
        """
        state = self._states.get(path)
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
                self.drop(path)  # listing its parent shows whether it is back
                return []
            listed = self._failed(path, error, state)
            stamp = None
        entries, folders = self._owned(listed, root)
        if is_root and path in entries and entries[path].stat is not None:
            entries |= self._beside(path)
        old = state or _FolderState(root, {}, set(), None, 0.0, is_folder=False)
        for gone in old.folders - folders:
            self.drop(gone)
        if entries != old.entries:
            self._compare(old.entries, entries)
        now = time.monotonic()
        self._set_state(
            path, _FolderState(root, entries, folders, stamp, now + _REST * (now - began), path not in entries)
        )
        return sorted(folders if deep else (folder for folder in folders if folder not in self._states))

    def drop(self, path: str) -> None:
        """Remove a folder and everything below."""
        for below in self.descendants(path):
            state = self._states.pop(below)
            self.folders -= state.is_folder
            self.files -= state.files
            if self.notify is not None:
                self.notify.remove(below)
            for name in state.entries:
                self.changes[name] = Change(name, None)

    def descendants(self, path: str) -> list[str]:
        """Return the folder and all folders below it."""
        paths: list[str] = []
        pending = [path]
        while pending:
            path = pending.pop()
            if path in self._states:
                paths.append(path)
                pending.extend(self._states[path].folders)
        return paths

    def report_missing(self) -> None:
        """Report files of the initial `seen` that the first full listing did not find."""
        for path in self._seen:
            self.changes[path] = Change(path, None)
        self._seen = {}

    def _set_state(self, path: str, state: _FolderState) -> None:
        old = self._states.get(path)
        self.folders += state.is_folder - (old.is_folder if old is not None else 0)
        self.files += state.files - (old.files if old is not None else 0)
        self._states[path] = state

    def _failed(self, path: str, error: OSError, state: _FolderState | None) -> Folder:
        """Return the entries of an unlistable folder: the error and, if that may pass, the earlier entries."""
        if self.notify is not None:
            self.notify.remove(path)
        reason = Entry(path, skipped=reason_of(error), failed=True)
        if state is None or isinstance(error, _GONE):
            return Folder([reason], [])
        return Folder([*(entry for entry in state.entries.values() if entry.path != path), reason], list(state.folders))

    def _beside(self, path: str) -> dict[str, Entry]:
        """Return the log of a root that is a file. Its folder is watched for both."""
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
            if before is None and entry.stat is not None and _same(path, self._seen.pop(path, None), entry.stat):
                continue
            self._add_change(path, before, entry, new)
        for path in old.keys() - new.keys():
            self._add_change(path, old[path], None, new)

    def _add_change(self, path: str, old: Entry | None, new: Entry | None, entries: dict[str, Entry]) -> None:
        """Record a changed entry. Files of a database count as the database, and only if its log changed."""
        base = _database(path, old or new)
        stays = old is not None and new is not None and old.skipped == new.skipped
        if base is None or (not stays and base not in self.roots):
            self.changes[path] = Change(path, new)
        if base in entries and path.endswith(_WAL):
            if stays and old is not None and new is not None and _same(path, old.stat, new.stat):
                return
            self.changes[base] = Change(base, entries[base])

    def _owned(self, listed: Folder, root: str) -> tuple[dict[str, Entry], set[str]]:
        """Return the part of a folder that belongs to this root."""
        owns = self._roots.owns
        entries = {entry.path: entry for entry in listed.entries if owns(root, entry.path)}
        return entries, {folder for folder in listed.folders if owns(root, folder)}

    def root_of(self, path: str) -> str | None:
        """Return the root of a folder, None if outside."""
        state = self._states.get(path)
        if state is not None:
            return state.root
        if path in self.roots:
            return path
        parent = self._states.get(self._roots.named(os.path.dirname(path)))
        return parent.root if parent is not None else None

    def _stamp(self, path: str, *, fresh: bool = False) -> tuple[int, ...] | None:
        """Return identity and times of a local folder; None if `fresh` and it changed just now."""
        local = self.local_path(path)
        try:
            stat = os.stat(local) if local is not None else None
        except (OSError, ValueError):
            return None
        if stat is None or (fresh and time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) < _COARSE_NS):
            return None
        return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def _same(path: str, old: Stat | None, new: Stat | None) -> bool:
    """Whether a file is unchanged. SQLite changes the ctime of a log by setting its owner when it reads it."""
    if old is None or new is None or not path.endswith(_WAL):
        return old == new
    return (old.inode, old.size, old.mtime_ns) == (new.inode, new.size, new.mtime_ns)


def _database(path: str, entry: Entry | None) -> str | None:
    """Return the database that a file belongs to, None if to none."""
    if entry is None or entry.stat is None or entry.skipped is None:
        return None
    base, dash, _ = path.rpartition("-")
    return base if dash else None


class Roots:
    """The roots as given, and their real paths. There may be thousands from a shell glob."""

    def __init__(self, roots: Sequence[str], local_path: Callable[[str], str | None]) -> None:
        given = list(dict.fromkeys(roots))
        self._numbers = {root: i for i, root in enumerate(given)}
        self._reals = [_real(root, local_path(root)) for root in given]
        self._first: dict[str, int] = {}
        """Index of the first root at each real path."""
        for i, real in enumerate(self._reals):
            self._first.setdefault(real, i)
        self._names = {name: root for root in given for name in _names(root)}
        self.tops = dict.fromkeys(root for root, i in self._numbers.items() if self._owner(self._reals[i]) == i)
        """The roots that no earlier root reaches, in order."""

    def named(self, path: str) -> str:
        """Return the root that a hint names; any other path unchanged."""
        return self._names.get(path, path)

    def owns(self, root: str, path: str) -> bool:
        """Whether `path` below that root belongs to it."""
        if len(self._numbers) == 1:
            return True
        number = self._numbers[root]
        owner = self._owner(self._reals[number].rstrip("/") + path[len(root.rstrip("/")) :] or "/")
        return owner is None or owner == number

    def _owner(self, real: str) -> int | None:
        """Return the first root that reaches a real path."""
        return min((self._first[top] for top in _above(real) if top in self._first), default=None)


def _above(real: str) -> Iterator[str]:
    """Yield a path and the ancestors that reach it by walking, nearest first: hidden folders are not entered."""
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
    """Return the names of a root in hints, which name folders: its folder may be watched because it is a file."""
    head, name = os.path.split(root)
    return root.rstrip("/"), os.path.abspath(root), os.path.join(head or os.curdir, name), root + "-wal"

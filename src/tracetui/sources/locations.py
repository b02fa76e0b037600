"""Resolve command-line paths to this machine, a remote one, a bucket, a database or the checkpoints of a repository."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from tracetui.errors import NothingReadable, UsageError
from tracetui.sources.base import Closable, Entry, File, Folder, Source, Stat, reason_of
from tracetui.sources.local import WITHIN, LocalSource, is_confined

if TYPE_CHECKING:
    from tracetui.sources.base import Condition
    from tracetui.sources.bucket import Bucket
    from tracetui.sources.checkpoints import CheckpointSource
    from tracetui.sources.clickhouse.source import ClickHouseSource
    from tracetui.sources.objects import ObjectSource
    from tracetui.sources.remote import SshSource
    from tracetui.sources.ssh import Host

_URLS = ("ssh://", "s3://", "gs://", "az://")

DATABASES: Final = ("clickhouse://", "clickhouses://")
"""Schemes of databases."""
CHECKPOINTS: Final = "entire://"
"""Scheme of the checkpoints in a repository of this machine."""
_T = TypeVar("_T")


def is_remote(word: str) -> bool:
    """Whether a path is one of another machine or in a database. Raises `UsageError` for an invalid one."""
    return word.startswith(DATABASES) or host_of(word) is not None


def host_of(word: str) -> Host | Bucket | None:
    """Return the machine or bucket of a path, or of an address that starts with one; None for this machine.

    A local path takes precedence over ``host:dir``; a URL is always remote. Raises `UsageError` for an invalid name.
    """
    if word.startswith((*DATABASES, CHECKPOINTS)):
        return None
    if not word.startswith(_URLS) and (":" not in word.partition("/")[0] or _exists_locally(word)):
        return None
    return _parse_remote(word)


def _parse_remote(word: str) -> Host | Bucket | None:
    from tracetui.sources.bucket import parse_bucket  # don't load them for local use
    from tracetui.sources.ssh import parse_remote_path

    bucket = parse_bucket(word)
    if bucket is not None:
        return bucket
    place = parse_remote_path(word)
    return place.host if place is not None else None


def _open_remote(host: Host | Bucket) -> SshSource | ObjectSource:
    from tracetui.sources.bucket import Bucket

    if isinstance(host, Bucket):
        from tracetui.sources.objects import ObjectSource

        return ObjectSource(host)
    from tracetui.sources.remote import SshSource

    return SshSource(host)


def _exists_locally(word: str) -> bool:
    """True if the word starts with an existing local path (a name may contain ``#`` as well)."""
    first = word.partition("/")[0]
    return os.path.lexists(_path_prefix(word)) or os.path.lexists(first)


def _path_prefix(path: str) -> str:
    """Return the first part of a path, or of an address that starts with one."""
    return path.partition("/")[0].partition("#")[0]


def parent(path: str) -> str:
    """Return the folder of a path as the user would write it; ``.`` for a bare name."""
    if path.startswith(DATABASES):
        return _database_folder(path)
    if path.startswith(CHECKPOINTS):
        return _repository(path)
    host = host_of(path)
    if host is None:
        return os.path.dirname(path) or os.curdir
    from tracetui.sources import bucket, ssh

    return bucket.parent(path) if isinstance(host, bucket.Bucket) else ssh.parent(path)


def _database_folder(path: str) -> str:
    from tracetui.sources.clickhouse import parse  # only for such a place

    return parse(path)[0].folder


def _repository(path: str) -> str:
    from tracetui.sources.checkpoints import repository  # only for such a place

    return repository(path)


def checkpoint_repository(place: str) -> str | None:
    """Return the path of the repository with checkpoints that an address names; None for any other place."""
    if not place.startswith(CHECKPOINTS):
        return None
    from tracetui.sources.checkpoints import repository, root_of

    return root_of(repository(place))


def local_folders(place: str) -> list[str]:
    """Return the paths that reading a place of this machine needs. Raises `OSError`."""
    if not place.startswith(CHECKPOINTS):
        return [place]
    from tracetui.sources.checkpoints import git_folders, root_of

    return git_folders(root_of(place))


class MultiHostSource(Closable):
    """Several machines, buckets, databases and repositories as one source; each path goes to its own. A context
    manager: its end closes them.

    Only connects to the places of `roots`, never to one that a trace names.
    """

    def __init__(self, roots: Sequence[str], local: LocalSource | None = None, *, limit: int = 500) -> None:
        """`limit`: how many runs of a database are listed.

        Raises `UsageError` for a root with an invalid name, or that needs a package.
        """
        self._local = local or LocalSource()
        self._databases: dict[str, ClickHouseSource] = {}
        """By what their paths begin with."""
        self._repositories: dict[str, CheckpointSource] = {}
        """Likewise."""
        for root in roots:
            if is_confined() and is_remote(root):
                raise UsageError(f"{root} is not on this machine, and {WITHIN} allows nothing else")
            if root.startswith(DATABASES):
                self._add_database(root, limit)
            elif root.startswith(CHECKPOINTS):
                self._add_repository(_repository(root))
        roots = [root for root in roots if not root.startswith((*DATABASES, CHECKPOINTS))]
        self._local_roots = {_path_prefix(root) for root in roots if host_of(root) is None}
        self._hosts: dict[Host | Bucket, SshSource | ObjectSource] = {}
        for root in roots:
            host = host_of(root)
            if host is not None and host not in self._hosts:
                self._hosts[host] = _open_remote(host)

    def _add_database(self, root: str, limit: int) -> None:
        from tracetui.sources.clickhouse import parse
        from tracetui.sources.clickhouse.source import ClickHouseSource

        database = parse(root)[0]
        if database.folder not in self._databases:
            self._databases[database.folder] = ClickHouseSource(database, limit=limit)

    def _add_repository(self, folder: str) -> None:
        from tracetui.sources.checkpoints import CheckpointSource

        if folder not in self._repositories:
            self._repositories[folder] = CheckpointSource(folder)

    @property
    def received(self) -> int:
        """Bytes received from other machines."""
        return sum(source.received for source in self._elsewhere)

    @property
    def has_database(self) -> bool:
        """Whether one of the roots is a database, which lists a part of its runs."""
        return bool(self._databases)

    def narrow(self, condition: Condition, *, beside: bool = False) -> None:
        """List the newest runs of databases that may meet a condition, from now on; `beside` the newest of all."""
        for database in self._databases.values():
            database.narrow(condition, beside=beside)

    def cost(self) -> tuple[int, int]:
        """Return how many runs databases list, and how many spans they have."""
        costs = [database.cost() for database in self._databases.values()]
        return sum(runs for runs, _ in costs), sum(spans for _, spans in costs)

    def unlisted(self) -> dict[str, int]:
        """Return how many more runs of databases failed with the error of a listed one, by the path of the newest."""
        return {path: more for database in self._databases.values() for path, more in database.unlisted().items()}

    def connect(self) -> None:
        """Connect to every place. Raises `NothingReadable`, with the reason and the next step."""
        try:
            for source in self._elsewhere:
                source.connect()
        except OSError as error:
            raise NothingReadable(reason_of(error)) from error

    def close(self) -> None:
        """Close the connections, and delete copies."""
        for source in self._elsewhere:
            source.close()

    @property
    def _elsewhere(self) -> list[SshSource | ObjectSource | ClickHouseSource | CheckpointSource]:
        return [*self._hosts.values(), *self._databases.values(), *self._repositories.values()]

    def is_file(self, path: str) -> bool:
        return self._source(path).is_file(path)

    def is_folder(self, path: str) -> bool:
        return self._source(path).is_folder(path)

    def walk(self, root: str) -> Iterator[Entry]:
        return self._source(root).walk(root)

    def list(self, path: str) -> Folder:
        return self._source(path).list(path)

    def prefetch(self, paths: Sequence[str]) -> None:
        for path in paths:
            if (database := self._database_of(path)) is not None:
                database.prefetch([path])
        for there, group in groupby(paths, self._remote_of):
            if there is not None:
                there.prefetch(list(group))
            return  # the next machine's folders are prefetched in turn

    def local_path(self, path: str) -> str | None:
        return self._source(path).local_path(path)

    def open(self, path: str, stat: Stat | None = None) -> File:
        return self._source(path).open(path, stat)

    def _source(self, path: str) -> Source:
        there = self._database_of(path) or _beginning(self._repositories, path) or self._remote_of(path)
        return there or self._local

    def _database_of(self, path: str) -> ClickHouseSource | None:
        """Return the database of a path, None for any other path."""
        return _beginning(self._databases, path)

    def _remote_of(self, path: str) -> SshSource | ObjectSource | None:
        """Return the remote source of a path, None if local."""
        if not self._hosts or path.startswith(CHECKPOINTS):
            return None
        if _path_prefix(path) in self._local_roots and not path.startswith(_URLS):
            return None
        host = _parse_remote(path) if ":" in _path_prefix(path) else None
        return self._hosts.get(host) if host is not None else None


def _beginning(sources: Mapping[str, _T], path: str) -> _T | None:
    """The source with the address that a path begins with."""
    for folder, source in sources.items():
        if path.startswith(folder) and path[len(folder) : len(folder) + 1] in ("", "/", "#"):
            return source
    return None


def open_source(roots: Sequence[str], local: LocalSource | None = None, *, limit: int = 500) -> MultiHostSource:
    """Return a connected source for these roots, for use in a ``with``.

    `local` reads the paths of this machine; `limit` is that of `MultiHostSource`. Raises `UsageError` or
    `NothingReadable`, one sentence each.
    """
    places = MultiHostSource(roots, local, limit=limit)
    try:
        places.connect()
    except BaseException:
        places.close()
        raise
    return places

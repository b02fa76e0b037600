"""Resolve command-line paths to this machine, a remote one or a bucket."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from tracetui.errors import NothingReadable, UsageError
from tracetui.sources.base import Closable, Entry, File, Folder, Source, Stat, reason_of
from tracetui.sources.local import WITHIN, LocalSource, is_confined

if TYPE_CHECKING:
    from tracetui.sources.bucket import Bucket
    from tracetui.sources.objects import ObjectSource
    from tracetui.sources.remote import SshSource
    from tracetui.sources.ssh import Host

_URLS = ("ssh://", "s3://", "gs://", "az://")


def host_of(word: str) -> Host | Bucket | None:
    """Return the machine or bucket of a path, or of an address that starts with one; None for this machine.

    A local path takes precedence over ``host:dir``; a URL is always remote. Raises `UsageError` for an invalid name.
    """
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
    host = host_of(path)
    if host is None:
        return os.path.dirname(path) or os.curdir
    from tracetui.sources import bucket, ssh

    return bucket.parent(path) if isinstance(host, bucket.Bucket) else ssh.parent(path)


class MultiHostSource(Closable):
    """Several machines and buckets as one source; each path goes to its own. A context manager: its end closes them.

    Only connects to the machines and buckets of `roots`, never to one that a trace names.
    """

    def __init__(self, roots: Sequence[str], local: LocalSource | None = None) -> None:
        """Raises `UsageError` for a root with an invalid name, or that needs a package."""
        self._local = local or LocalSource()
        self._local_roots = {_path_prefix(root) for root in roots if host_of(root) is None}
        self._hosts: dict[Host | Bucket, SshSource | ObjectSource] = {}
        for root in roots:
            host = host_of(root)
            if host is not None and is_confined():
                raise UsageError(f"{root} is not on this machine, and {WITHIN} allows nothing else")
            if host is not None and host not in self._hosts:
                self._hosts[host] = _open_remote(host)

    @property
    def received(self) -> int:
        """Bytes received from other machines."""
        return sum(source.received for source in self._hosts.values())

    def connect(self) -> None:
        """Connect to every machine and bucket. Raises `NothingReadable`, with the reason and the next step."""
        try:
            for source in self._hosts.values():
                source.connect()
        except OSError as error:
            raise NothingReadable(reason_of(error)) from error

    def close(self) -> None:
        """Close the connections, and delete copies."""
        for source in self._hosts.values():
            source.close()

    def is_file(self, path: str) -> bool:
        return self._source(path).is_file(path)

    def is_folder(self, path: str) -> bool:
        return self._source(path).is_folder(path)

    def walk(self, root: str) -> Iterator[Entry]:
        return self._source(root).walk(root)

    def list(self, path: str) -> Folder:
        return self._source(path).list(path)

    def prefetch(self, paths: Sequence[str]) -> None:
        for there, group in groupby(paths, self._remote_for):
            if there is not None:
                there.prefetch(list(group))
            return  # the next machine's folders are prefetched in turn

    def local_path(self, path: str) -> str | None:
        return self._source(path).local_path(path)

    def open(self, path: str, stat: Stat | None = None) -> File:
        return self._source(path).open(path, stat)

    def _source(self, path: str) -> Source:
        return self._remote_for(path) or self._local

    def _remote_for(self, path: str) -> SshSource | ObjectSource | None:
        """Return the remote source of a path, None if local."""
        if not self._hosts or (_path_prefix(path) in self._local_roots and not path.startswith(_URLS)):
            return None
        host = _parse_remote(path) if ":" in _path_prefix(path) else None
        return self._hosts.get(host) if host is not None else None


def source_for(roots: Sequence[str], local: LocalSource | None = None) -> MultiHostSource:
    """Return a connected source for these roots, for use in a ``with``.

    `local` reads the paths of this machine. Raises `UsageError` or `NothingReadable`, one sentence each.
    """
    places = MultiHostSource(roots, local)
    try:
        places.connect()
    except BaseException:
        places.close()
        raise
    return places

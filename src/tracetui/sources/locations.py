"""What a word on the command line means: a path of this machine, or a place on another one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from tracetui.errors import NothingReadable
from tracetui.sources.base import Closing, Entry, File, Folder, LinkLost, Source, Stat
from tracetui.sources.local import LocalSource

if TYPE_CHECKING:
    from tracetui.sources.remote import SshSource
    from tracetui.sources.ssh import Host, Place


def host_of(word: str) -> Host | None:
    """The machine that a path, or an address that begins with one, lies on; None for this one.

    What exists here wins over ``host:dir``; ``ssh://`` always means another machine. Raises `UsageError` for what is
    no name of a host.
    """
    if not word.startswith("ssh://") and (":" not in word.partition("/")[0] or _is_here(word)):
        return None
    place = _place_of(word)
    return place.host if place is not None else None


def _place_of(word: str) -> Place | None:
    from tracetui.sources.ssh import place_of  # nothing of SSH is loaded for those who stay on this machine

    return place_of(word)


def _is_here(word: str) -> bool:
    """True if the word is a path of this machine: what it begins with is here (a name may hold ``#`` as well)."""
    first = word.partition("/")[0]
    return os.path.lexists(_first(word)) or os.path.lexists(first)


def _first(path: str) -> str:
    """What a path, or an address that begins with one, begins with."""
    return path.partition("/")[0].partition("#")[0]


def parent(path: str) -> str:
    """The folder of a path, as it would be written; ``.`` for that of a bare name."""
    if host_of(path) is None:
        return os.path.dirname(path) or os.curdir
    from tracetui.sources.ssh import parent as remote_parent

    return remote_parent(path)


class Places(Closing):
    """Several machines as one source; each path goes where it belongs. A context manager: it ends the connections.

    Only the machines of `roots` are ever spoken to: what a trace names leads to no other.
    """

    def __init__(self, roots: Sequence[str], local: LocalSource | None = None) -> None:
        """Raises `UsageError` for a root that names no host properly."""
        self._local = local or LocalSource()
        self._here = {_first(root) for root in roots if host_of(root) is None}
        self._hosts: dict[Host, SshSource] = {}
        for root in roots:
            host = host_of(root)
            if host is not None and host not in self._hosts:
                from tracetui.sources.remote import SshSource

                self._hosts[host] = SshSource(host)

    @property
    def received(self) -> int:
        """Bytes that came from other machines."""
        return sum(source.received for source in self._hosts.values())

    def connect(self) -> None:
        """Reach every machine. Raises `NothingReadable`, with the reason and the next step."""
        try:
            for source in self._hosts.values():
                source.client()
        except LinkLost as error:
            raise NothingReadable(str(error)) from error

    def close(self) -> None:
        """End the connections, and remove what was copied."""
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

    def expect(self, paths: Sequence[str]) -> None:
        for there, group in groupby(paths, self._there):
            if there is not None:
                there.expect(list(group))
            return  # those of the next machine are expected when it is their turn

    def local_path(self, path: str) -> str | None:
        return self._source(path).local_path(path)

    def open(self, path: str, stat: Stat | None = None) -> File:
        return self._source(path).open(path, stat)

    def _source(self, path: str) -> Source:
        return self._there(path) or self._local

    def _there(self, path: str) -> SshSource | None:
        """The machine that a path lies on, None for this one."""
        if not self._hosts or (_first(path) in self._here and not path.startswith("ssh://")):
            return None
        place = _place_of(path) if ":" in _first(path) else None
        return self._hosts.get(place.host) if place is not None else None


def source_for(roots: Sequence[str], local: LocalSource | None = None) -> Places:
    """The source of these roots, connected: to be used in a ``with``.

    `local` is what reads the paths of this machine. Raises `UsageError` or `NothingReadable`, one sentence each.
    """
    places = Places(roots, local)
    try:
        places.connect()
    except BaseException:
        places.close()
        raise
    return places

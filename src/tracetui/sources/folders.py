"""What folders of another machine hold. Several that are expected are asked for at once, for the time of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from tracetui.sources.base import HIDDEN, HIDDEN_FOLDER, Entry, Folder, LinkLost, left_out
from tracetui.sources.recall import Recall
from tracetui.sources.sftp import Attributes, Client
from tracetui.sources.ssh import join, path_there

AT_ONCE: Final = 32
"""Folders that are asked for at once."""
FRESH_SECONDS: Final = 3.0
"""How long what was asked for ahead is good."""
_Names = Iterator[tuple[str, Attributes]]
_T = TypeVar("_T")


class _Expected(msgspec.Struct, frozen=True):
    """One folder that was asked for ahead."""

    client: Client
    when: float
    names: _Names | OSError


class Folders:
    """Lists the folders of one machine. Used by any thread."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall
        self._expected: dict[str, _Expected] = {}

    def expect(self, client: Client, paths: Sequence[str]) -> None:
        """These folders are listed next, in that order: ask for them, unless that was done. Raises `LinkLost`."""
        if not paths or paths[0] in self._expected:
            return
        now = time.monotonic()
        for path in [path for path, one in self._expected.items() if now - one.when > FRESH_SECONDS]:
            _take_rest(self._expected.pop(path))
        missing = [path for path in paths[:AT_ONCE] if path not in self._expected]
        for path, opened in [(path, client.folder(path_there(path))) for path in missing]:
            self._expected[path] = _Expected(client, now, _names(client, path_there(path), opened))

    def list(self, client: Client, path: str, *, watched: bool = False) -> Folder:
        """What is directly below a folder. Raises `OSError`."""
        now = time.monotonic()
        ahead = self._expected.pop(path, None)
        if ahead is not None and (ahead.client is not client or now - ahead.when > FRESH_SECONDS):
            _take_rest(ahead)
            ahead = None
        if ahead is None:
            ahead = _Expected(client, now, _names(client, path_there(path), client.folder(path_there(path))))
        if isinstance(ahead.names, OSError):
            raise ahead.names
        return self._sorted(client, path, ahead.names, asked=ahead.when, watched=watched)

    def is_expected(self, path: str) -> bool:
        """True if the folder was asked for ahead."""
        return path in self._expected

    def _sorted(self, client: Client, path: str, names: _Names, *, asked: float, watched: bool) -> Folder:
        entries: list[Entry] = []
        folders: list[str] = []
        links = []
        for name, found in names:
            below = join(path, name)
            if "/" in name or "\0" in name:
                entries.append(Entry(below, skipped="a name that cannot be", failed=True))
            elif name.startswith("."):
                entries.append(Entry(below, skipped=HIDDEN_FOLDER if found.is_folder else HIDDEN))
            elif found.is_folder:
                folders.append(below)
            elif found.is_link:
                links.append((below, client.look(path_there(below), follow=True)))
            elif not found.is_file:
                entries.append(Entry(below, skipped="not a regular file"))
            else:
                stat = self._recall.saw(below, found.size, found.mtime, watched=watched, asked=asked)
                entries.append(Entry(below, stat, left_out(name)))
        for below, look in links:
            entries.append(Entry(below, skipped="symbolic link, not followed", failed=_leads_to_file(look)))
        return Folder(entries, folders)


def _names(client: Client, there: str, opened: Callable[[], bytes]) -> _Names | OSError:
    """The names in a folder that is being opened, or why there are none. Raises `LinkLost`."""
    try:
        return client.names(opened(), there)
    except LinkLost:
        raise
    except OSError as error:
        return error


def _take_rest(one: _Expected) -> None:
    """Take the answers that nobody wants any more."""
    if not isinstance(one.names, OSError):
        with suppress(OSError):
            for _ in one.names:
                pass


def answer(asked: Callable[[], _T]) -> _T | None:
    """What was asked for; None if it is refused. Raises `LinkLost`."""
    try:
        return asked()
    except LinkLost:
        raise
    except OSError:
        return None


def _leads_to_file(asked: Callable[[], Attributes]) -> bool:
    found = answer(asked)
    return found is not None and found.is_file

"""Where traces are on this machine: what formats say of the programs that write them, and what of it is there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Final

import msgspec

from tracetui.formats import registry
from tracetui.formats.base import Homed
from tracetui.sources.base import Source
from tracetui.text import Clean, grouped

MOST_FILES: Final = 50_000
MOST_SECONDS: Final = 0.3
"""No more is counted in one place: somebody waits."""


class Home(msgspec.Struct, frozen=True):
    """A place in which there are traces."""

    title: str
    """Of the format that names it."""
    path: str
    files: int
    more: bool
    """There are more files than were counted; the newest may be among them."""
    changed_at: float
    """When the newest of the counted files was changed (UTC seconds)."""

    @property
    def counted(self) -> Clean:
        """How many files there are, as people read it: ``1 file``, ``over 50 000 files``."""
        return Clean(f"{'over ' * self.more}{grouped(self.files)} file{'' if self.files == 1 else 's'}")


def variables() -> list[str]:
    """The environment variables that say where traces are, in the order of the formats; each once."""
    homed = (one for one in registry.formats() if isinstance(one, Homed))
    return list(dict.fromkeys(name for one in homed for name in one.home_variables))


def found(source: Source, environ: Mapping[str, str], home: PurePath) -> list[Home]:
    """The places that hold files, in the order of the formats; each once."""
    named: dict[str, str] = {}
    for candidate in registry.formats():
        for path in _homes(candidate, environ, home):
            named.setdefault(str(path), candidate.title)
    there = ((title, path) for path, title in named.items() if source.is_folder(path))
    return [one for title, path in there if (one := _counted(source, title, path)).files]


def _homes(candidate: object, environ: Mapping[str, str], home: PurePath) -> Iterator[PurePath]:
    """What a format says; nothing where it says nothing. A plug-in that raises names no place."""
    if isinstance(candidate, Homed):
        try:
            yield from candidate.homes(environ, home)
        except Exception:  # a plug-in may fail in any way
            return


def _counted(source: Source, title: str, path: str) -> Home:
    files, more, newest, end = 0, False, 0.0, time.monotonic() + MOST_SECONDS
    for entry in source.walk(path):
        if entry.skipped is not None or entry.stat is None:
            continue
        files, newest = files + 1, max(newest, entry.stat.mtime)
        if files >= MOST_FILES or time.monotonic() > end:
            more = True
            break
    return Home(title, path, files, more, newest)

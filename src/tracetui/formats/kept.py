"""What is kept of a record that tells many spans, so that it is not decoded again for the body of each."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple, TypeVar

from tracetui.sources.base import CACHE, File

T = TypeVar("T")

MOST: Final = 3
"""Records of a run: the calls of a response may be told by one, their answers by others."""
_RECORDS: Final = "records"


class _Kept(NamedTuple):
    place: tuple[Hashable, ...]
    value: Any


def once(file: File, place: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    """What `make` makes of the record at `place`: the same for all spans of it, as long as the file stays what it is.

    The latest few are kept while a run is looked at (`CACHE`), nothing otherwise. Nobody may change what is returned.
    """
    shared = file.memo.get(CACHE)
    if shared is None:
        return make()
    version = (file.path, file.stat, *place)
    known: tuple[_Kept, ...] = shared.get(_RECORDS, ())
    found = next((one for one in known if one.place == version), None) or _Kept(version, make())
    if not known or known[0] is not found:  # one assignment: several threads may be here
        shared[_RECORDS] = (found, *(one for one in known if one is not found))[:MOST]
    value: T = found.value
    return value


def opened(file: File, path: str) -> File:
    """Another file of the run, relative to the folder of `file`: of its records as much is kept."""
    found = file.other(path)
    if CACHE in file.memo:
        found.memo[CACHE] = file.memo[CACHE]
    return found

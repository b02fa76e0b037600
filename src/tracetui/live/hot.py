"""Files that change again and again: what is new of them is read, not all of them each time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from tracetui.live.load import Reader
from tracetui.live.scan import Found
from tracetui.model import RunRef
from tracetui.sources.base import Source

READERS: Final = 128
SPANS: Final = 400_000
"""Spans that all readers together may hold: the one that was used least goes first."""


class Hot:
    """Keeps a reader for each file that holds one run and has changed more than once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._readers: OrderedDict[str, Reader | RunRef] = OrderedDict()

    def remember(self, found: Found) -> None:
        """The file has changed, and this is what all of it turned out to be."""
        self._readers.pop(found.path, None)
        if len(found.runs) == 1 and not found.problems and found.runs[0].ref.key is None:
            self._readers[found.path] = found.runs[0].ref
            self._tidy_up()

    def forget(self, path: str) -> None:
        """The file is gone, or another one has its name."""
        self._readers.pop(path, None)

    def look(self, path: str) -> Found | None:
        """What the file is now; None if it must be looked at as if for the first time. Raises `LinkLost`."""
        known = self._readers.get(path)
        if known is None:
            return None
        reader = known if isinstance(known, Reader) else Reader(self._source, known)
        self._readers[path] = reader
        self._readers.move_to_end(path)
        reader.catch_up()
        if reader.failure is not None:
            del self._readers[path]
            return None
        self._tidy_up()
        return Found(path=path, format=reader.ref.format, runs=(reader.summary(),))

    def _tidy_up(self) -> None:
        sizes = {path: len(one) for path, one in self._readers.items() if isinstance(one, Reader)}
        spans = sum(sizes.values())
        while len(self._readers) > READERS or (spans > SPANS and len(self._readers) > 1):
            path, _ = self._readers.popitem(last=False)
            spans -= sizes.get(path, 0)

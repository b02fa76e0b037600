"""Counting a run without making its spans: what formats that do so have in common.

Typed decoding passes over the long texts of a regular file, in which nothing is to be mended. Any other file is read
in full, and both ways give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tracetui.model import Error, FirstError, Operation
from tracetui.model.build import Tally
from tracetui.sources.base import File

Counted = TypeVar("Counted")
Place = TypeVar("Place")


class Irregular(Exception):
    """There is something in this file that only reading it in full tells."""


def regular(count: Callable[[File], Counted], file: File) -> Counted | None:
    """What `count` gives for a regular file; None for one that must be read in full.

    That is one for which `count` raises `Irregular`, or an error of decoding: what is read leniently, or not at all.
    """
    try:
        return count(file)
    except (Irregular, ValueError, RecursionError):
        return None


class Failures(Generic[Place]):
    """The spans that failed, and where each stands among all spans."""

    def __init__(self) -> None:
        self.found: list[tuple[Place, FirstError]] = []

    def add(self, place: Place, error: Error, ident: str, name: str, operation: Operation) -> None:
        """The span `ident` failed."""
        self.found.append((place, FirstError(error.message, error.type, ident, name, operation)))

    def count(self, tally: Tally, order: Callable[[Place], Any] = lambda place: place) -> None:
        """Put into `tally` how many failed, and which first; `order` says how places compare."""
        tally.errors = len(self.found)
        tally.first_error = min(self.found, key=lambda one: order(one[0]))[1] if self.found else None

"""The text of a file around the place where it could not be read."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tracetui.model import Problem
from tracetui.sources.base import Source

WINDOW: Final = 16_384
"""Bytes before the place; half as many after it."""
_PLACE: Final = re.compile(r"(byte|line) (\d+)")


class Excerpt(msgspec.Struct, frozen=True):
    """Bytes of a file from `offset`; `at` is where in them the problem lies, None if the problem names no byte."""

    data: bytes = b""
    offset: int = 0
    at: int | None = None
    size: int = 0
    """Size of the whole file in bytes."""


def read_excerpt(source: Source, problem: Problem) -> Excerpt:
    """What stands around ``byte N`` of the problem, else the beginning of the file; empty if it cannot be read."""
    place = _PLACE.search(problem.where)
    byte = int(place[2]) if place is not None and place[1] == "byte" and len(place[2]) < 16 else None
    offset = max(0, (byte or 0) - WINDOW)
    try:
        with source.open(problem.path) as file:
            data = file.read(offset, WINDOW + WINDOW // 2)
            return Excerpt(data, offset, None if byte is None else byte - offset, file.stat.size)
    except OSError:
        return Excerpt()

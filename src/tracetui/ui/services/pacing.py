"""How long work that data causes rests before it is done again, so that keys never wait for it."""

from __future__ import annotations

from math import inf
from typing import Final

SHARE: Final = 12
"""Such work takes at most one part in so many of the time."""


def rest_seconds(took: float, least: float = 0.0, most: float = inf) -> float:
    """Seconds to rest after work that took so many seconds of the processor, between `least` and `most`.

    Not by the clock: on a busy machine, work waits for the processor, and would rest for that as well.
    """
    return min(most, max(least, SHARE * took))

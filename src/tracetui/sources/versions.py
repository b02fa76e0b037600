"""Telling whether a file is still the one that was read."""

from __future__ import annotations

import time
from typing import Final

from tracetui.sources.base import MOVING_SECONDS, Stat

TICK_NS: Final = 50_000_000
"""File systems count time in ticks (of 1 to 10 ms on Linux): two changes within one may leave the same stat behind."""


def settled(stat: Stat) -> bool:
    """True if any later change must show in the stat; of a file that changed just now it need not."""
    return stat.ctime_ns > 0 and time.time_ns() - max(stat.mtime_ns, stat.ctime_ns) > TICK_NS


def cacheable(stat: Stat) -> bool:
    """True if what was read of the file may be reused for as long as its stat stays the same.

    Where the source has no time of change, a file that has not changed for a while is trusted.
    """
    return settled(stat) or (stat.ctime_ns == 0 and time.time() - stat.mtime > MOVING_SECONDS)

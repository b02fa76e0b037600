"""When something new was seen of a run while it was watched."""

from __future__ import annotations

from collections import deque
from typing import Final

BEATS: Final = 600
"""Arrivals remembered per run."""


class Pulse:
    """The arrivals of one run. Times are seconds since the epoch, by this machine's clock."""

    __slots__ = ("arrivals", "changed_at", "spans")

    def __init__(self, spans: int | None, changed_at: float) -> None:
        self.arrivals: deque[float] = deque(maxlen=BEATS)
        """When spans came: one time for all that came at once."""
        self.changed_at = changed_at
        """When the run was last seen to be written to; before it was watched, the time of its file."""
        self.spans = spans

    def beat(self, now: float, spans: int | None) -> None:
        """The run changed; it has so many spans now (None: not counted)."""
        self.changed_at = now  # whatever the file says: the clock of its machine may be ahead
        if spans is not None and self.spans is not None and spans > self.spans:
            self.arrivals.append(now)
        self.spans = spans if spans is not None else self.spans

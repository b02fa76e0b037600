"""When something new was seen of a run while it was watched."""

from __future__ import annotations

from collections import deque
from typing import Final

BEATS: Final = 600
"""Maximum arrivals per run."""


class Pulse:
    """Recent arrivals of one run, in seconds since the epoch by the local clock."""

    __slots__ = ("arrivals", "changed_at", "spans")

    def __init__(self, spans: int | None, changed_at: float) -> None:
        self.arrivals: deque[float] = deque(maxlen=BEATS)
        """Arrival times of spans, one per batch."""
        self.changed_at = changed_at
        """Time of the last observed write; before that, the modification time of the file."""
        self.spans = spans

    def beat(self, now: float, spans: int | None) -> None:
        """Record a change of the run, which now has so many spans (None: not counted)."""
        self.changed_at = now  # not the file's time: its machine's clock may be ahead
        if spans is not None and self.spans is not None and spans > self.spans:
            self.arrivals.append(now)
        self.spans = spans if spans is not None else self.spans

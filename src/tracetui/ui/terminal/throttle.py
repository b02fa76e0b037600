"""Throttle of repaints for arriving data and of garbage collection, and lag probe of the terminal. Callers pass the
time.

Responses to keys are never throttled. Arriving data is painted at once after a pause, then at a rate that the line can
carry. After a pause, two frames may follow each other: the list and the open run learn of a change at different times.
A step of a followed run costs about 2 KB at 120x40.

Garbage is collected while nothing is painted: in the response to a key, it would add 1 to 10 ms to one key in ten.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Final

INTERVAL_SECONDS: Final = 0.125
"""Minimum interval: eight frames a second."""
BYTES_PER_SECOND: Final = 70_000
"""Rate limit of large frames; with ticks and keys, the total stays below 100 KB/s."""
SLOW_INTERVAL_SECONDS: Final = 0.7
SLOW_BYTES_PER_SECOND: Final = 14_000
"""Rate limit on a slow line: below 20 KB/s in total."""
LAG_SECONDS: Final = 0.3
"""Lag above which a line counts as slow; a frame on a good line takes some hundredths."""
SLOW_FOR_SECONDS: Final = 5.0
"""A line counts as slow until this long after the last lag."""
MAX_INTERVAL_SECONDS: Final = 3.0
"""Maximum interval at any lag."""


class PaintThrottle:
    """Decides when arrived data may be painted. `slow`: assume a slow line."""

    def __init__(self, *, slow: bool = False) -> None:
        self._always_slow = slow
        self._slow_until = float("-inf")
        self._due = float("-inf")
        """When the last frame was due; after a pause, one interval before it began."""
        self._frame_bytes = 0
        self._lag = 0.0

    def delay(self, now: float, lag: float = 0.0) -> float:
        """Seconds until the next frame may be painted, 0 for at once. `lag`: lag of the terminal in seconds."""
        if lag > LAG_SECONDS:
            self._slow_until = now + SLOW_FOR_SECONDS
        self._lag = lag
        return min(MAX_INTERVAL_SECONDS, max(0.0, self._due + self._interval(now) - now))

    def record_frame(self, now: float) -> None:
        """Record that a frame for arrived data begins, due or not: answers to keys are painted early."""
        pause = 0.0 if self.is_slow(now) else INTERVAL_SECONDS
        self._due = min(now, max(self._due + self._interval(now), now - pause))
        self._frame_bytes = 0

    def record_bytes(self, size: int) -> None:
        """Record the size of the last frame, which is known once it is painted."""
        self._frame_bytes += size

    def is_slow(self, now: float) -> bool:
        """Whether the line is slow, by the user's setting or a recent lag."""
        return self._always_slow or now < self._slow_until

    def _interval(self, now: float) -> float:
        if not self.is_slow(now):
            return min(MAX_INTERVAL_SECONDS, max(INTERVAL_SECONDS, self._frame_bytes / BYTES_PER_SECOND))
        return min(
            MAX_INTERVAL_SECONDS, max(SLOW_INTERVAL_SECONDS, self._frame_bytes / SLOW_BYTES_PER_SECOND, self._lag)
        )


QUERY_INTERVAL_SECONDS: Final = 0.5
"""Minimum interval between two queries."""
WINDOW_BYTES: Final = 32_000
"""Initial window of unanswered bytes: a full repaint of the screen."""
MIN_WINDOW_BYTES: Final = 12_000
"""One frame. The window halves down to this while the terminal lags, and doubles up to the largest while it doesn't."""
MAX_WINDOW_BYTES: Final = 64_000
ANSWER_TIMEOUT_SECONDS: Final = 15.0
"""Timeout of an answer; a terminal that exceeds it is not queried again."""


class LagProbe:
    """Measures the lag of a terminal by queries that it answers in the order of the output.

    A returned write proves little: SSH buffers megabytes. In tmux, tmux answers, and skips output that its terminal
    can't keep up with. One thread may query while another handles the answer.
    """

    def __init__(self) -> None:
        self.answering = False
        """Whether the terminal answers queries."""
        self._pending_since: float | None = None
        self._last_query_at = float("-inf")
        self._queried_bytes = 0
        self._answered_bytes = 0
        self._round_trip = 0.0
        self._min_round_trip = float("inf")
        self._window = WINDOW_BYTES

    @property
    def open(self) -> bool:
        """Whether an answer is pending."""
        return self._pending_since is not None

    def due(self, now: float, sent: int) -> bool:
        """Whether to query now; False if the terminal doesn't answer. `sent`: total bytes written."""
        if not self.answering or self.open or sent == self._queried_bytes:
            return False
        return now - self._last_query_at >= QUERY_INTERVAL_SECONDS or sent - self._answered_bytes > self._window // 2

    def record_query(self, now: float, sent: int) -> None:
        """Record a query, sent after `sent` total bytes."""
        self._pending_since = self._last_query_at = now
        self._queried_bytes = sent

    def record_answer(self, now: float) -> bool:
        """Record an answer; False if no query was pending."""
        since = self._pending_since
        if since is None:
            return False
        self._round_trip = max(0.0, now - since)
        self._min_round_trip = min(self._min_round_trip, self._round_trip)
        used, self._answered_bytes = self._queried_bytes - self._answered_bytes, self._queried_bytes
        self._pending_since, self.answering = None, True
        if self._round_trip - self._min_round_trip > LAG_SECONDS:
            self._window = max(MIN_WINDOW_BYTES, self._window // 2)
        elif used > self._window // 2:
            self._window = min(MAX_WINDOW_BYTES, self._window * 2)
        return True

    def lag(self, now: float) -> float:
        """Lag in seconds: the round trip minus the shortest one seen."""
        self._expire(now)
        if not self.answering:
            return 0.0
        since = self._pending_since
        round_trip = self._round_trip if since is None else max(self._round_trip, now - since)
        return max(0.0, round_trip - self._min_round_trip)

    def is_full(self, now: float, sent: int) -> bool:
        """Whether the unanswered bytes exceed the window."""
        limit = MIN_WINDOW_BYTES if self.lag(now) > LAG_SECONDS else self._window
        return self.answering and sent - self._answered_bytes > limit

    def _expire(self, now: float) -> None:
        since = self._pending_since
        if since is not None and now - since > ANSWER_TIMEOUT_SECONDS:
            self.answering, self._pending_since = False, None


PAUSE_SECONDS: Final = 0.025
"""Pause after a frame: the response to a key has two, and a held key comes 30 times a second."""
REST_SECONDS: Final = 1.5
"""Pause after a key before a full collection, which can take 50 ms."""
YOUNG: Final = 500
"""New objects that are worth a collection."""
MIDDLE, FULL = 10, 20
"""Collections of a generation after which the next one is collected too, as Python does."""


class GarbageCollector:
    """Collects garbage after frames. Python's own collections remain, with a high threshold, for a busy app."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._due = self._key_at = 0.0

    def key(self) -> None:
        """A key was pressed."""
        self._key_at = time.monotonic()

    def frame_painted(self) -> None:
        """A frame was painted: collect after a pause. Needs a running event loop."""
        self._due = time.monotonic() + PAUSE_SECONDS
        if self._timer is None:
            self._wait(PAUSE_SECONDS)

    @property
    def rests(self) -> bool:
        """Whether no collection is due."""
        return self._timer is None

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._collect)

    def _collect(self) -> None:
        self._timer, now = None, time.monotonic()
        if now < self._due:
            self._wait(self._due - now)
        elif gc.isenabled():  # not while the list is read
            young, middle, full = gc.get_count()
            if full >= FULL and now - self._key_at >= REST_SECONDS:
                gc.collect()
            elif young >= YOUNG:
                gc.collect(1 if middle >= MIDDLE else 0)

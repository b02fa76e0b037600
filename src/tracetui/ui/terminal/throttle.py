"""Throttle of repaints for arriving data, and lag probe of the terminal. Pure: callers pass the time.

Responses to keys are never throttled. Arriving data is painted at once after a pause, then at a rate that the line can
carry. Scrolling a pane costs 10 to 17 KB, because Textual paints all of its rows.
"""

from __future__ import annotations

from typing import Final

INTERVAL_SECONDS: Final = 0.125
"""Minimum interval: eight frames a second."""
BYTES_A_SECOND: Final = 70_000
"""Rate limit of large frames; with ticks and keys, the total stays below 100 KB/s."""
SLOW_INTERVAL_SECONDS: Final = 0.7
SLOW_BYTES_A_SECOND: Final = 14_000
"""Rate limit on a slow line: below 20 KB/s in total."""
LAGS_SECONDS: Final = 0.3
"""Lag above which a line counts as slow; a frame on a good line takes some hundredths."""
SLOW_FOR_SECONDS: Final = 5.0
"""A line counts as slow until this long after the last lag."""
LONGEST_SECONDS: Final = 3.0
"""Maximum interval at any lag."""


class PaintThrottle:
    """Decides when arrived data may be painted. `slow`: assume a slow line."""

    def __init__(self, *, slow: bool = False) -> None:
        self._always_slow = slow
        self._slow_until = float("-inf")
        self._painted_at = float("-inf")
        self._size = 0
        self._lag = 0.0

    def delay(self, now: float, lag: float = 0.0) -> float:
        """Seconds until the next frame may be painted, 0 for at once. `lag`: lag of the terminal in seconds."""
        if lag > LAGS_SECONDS:
            self._slow_until = now + SLOW_FOR_SECONDS
        self._lag = lag
        return min(LONGEST_SECONDS, max(0.0, self._painted_at + self._interval(now) - now))

    def painted(self, now: float, size: int) -> None:
        """Record a frame of `size` bytes for arrived data; frames at the same time count as one."""
        self._size = self._size + size if now == self._painted_at else size
        self._painted_at = now

    def is_slow(self, now: float) -> bool:
        """Whether the line is slow, by the user's setting or a recent lag."""
        return self._always_slow or now < self._slow_until

    def _interval(self, now: float) -> float:
        if not self.is_slow(now):
            return min(LONGEST_SECONDS, max(INTERVAL_SECONDS, self._size / BYTES_A_SECOND))
        return min(LONGEST_SECONDS, max(SLOW_INTERVAL_SECONDS, self._size / SLOW_BYTES_A_SECOND, self._lag))


ASK_SECONDS: Final = 0.5
"""Minimum interval between two queries."""
WINDOW_BYTES: Final = 32_000
"""Initial window of unanswered bytes: a full repaint of the screen."""
SMALLEST_WINDOW: Final = 12_000
"""One frame. The window halves down to this while the terminal lags, and doubles up to the largest while it doesn't."""
LARGEST_WINDOW: Final = 64_000
SILENT_SECONDS: Final = 15.0
"""Timeout of an answer; a terminal that exceeds it is not queried again."""


class LagProbe:
    """Measures the lag of a terminal by queries that it answers in the order of the output.

    A returned write proves little: SSH buffers megabytes. In tmux, tmux answers, and skips output that its terminal
    can't keep up with. One thread may query while another handles the answer.
    """

    def __init__(self) -> None:
        self.answers = False
        """Whether the terminal answers queries."""
        self._asked_at: float | None = None
        self._last_asked = float("-inf")
        self._sent = 0
        self._arrived = 0
        self._trip = 0.0
        self._shortest = float("inf")
        self._window = WINDOW_BYTES

    @property
    def open(self) -> bool:
        """Whether an answer is pending."""
        return self._asked_at is not None

    def due(self, now: float, sent: int) -> bool:
        """Whether to query now; False if the terminal doesn't answer. `sent`: total bytes written."""
        if not self.answers or self.open or sent == self._sent:
            return False
        return now - self._last_asked >= ASK_SECONDS or sent - self._arrived > self._window // 2

    def asked(self, now: float, sent: int) -> None:
        """Record a query, sent after `sent` total bytes."""
        self._asked_at = self._last_asked = now
        self._sent = sent

    def answered(self, now: float) -> bool:
        """Record an answer; False if no query was pending."""
        asked = self._asked_at
        if asked is None:
            return False
        self._trip = max(0.0, now - asked)
        self._shortest = min(self._shortest, self._trip)
        used, self._arrived = self._sent - self._arrived, self._sent
        self._asked_at, self.answers = None, True
        if self._trip - self._shortest > LAGS_SECONDS:
            self._window = max(SMALLEST_WINDOW, self._window // 2)
        elif used > self._window // 2:
            self._window = min(LARGEST_WINDOW, self._window * 2)
        return True

    def lag(self, now: float) -> float:
        """Lag in seconds: the round trip minus the shortest one seen."""
        self._give_up(now)
        if not self.answers:
            return 0.0
        asked = self._asked_at
        trip = self._trip if asked is None else max(self._trip, now - asked)
        return max(0.0, trip - self._shortest)

    def is_full(self, now: float, sent: int) -> bool:
        """Whether the unanswered bytes exceed the window."""
        most = SMALLEST_WINDOW if self.lag(now) > LAGS_SECONDS else self._window
        return self.answers and sent - self._arrived > most

    def _give_up(self, now: float) -> None:
        asked = self._asked_at
        if asked is not None and now - asked > SILENT_SECONDS:
            self.answers, self._asked_at = False, None

"""How often what arrives by itself is painted, and how far the terminal lags behind: pure, all times are given.

What a key does is painted at once, always. What the agents do is painted at once after a pause, then at a rate that
the line can bear. A pane that scrolls costs 10 to 17 KB, because Textual paints all of its rows.
"""

from __future__ import annotations

from typing import Final

INTERVAL_SECONDS: Final = 0.125
"""Eight pictures a second: more than anybody reads."""
BYTES_A_SECOND: Final = 70_000
"""Of large pictures fewer: what ticks, and keys, come on top, and all together stays below 100 KB/s."""
SLOW_INTERVAL_SECONDS: Final = 0.7
SLOW_BYTES_A_SECOND: Final = 14_000
"""The same for a slow line: below 20 KB/s, with room for what ticks and for keys."""
LAGS_SECONDS: Final = 0.3
"""A terminal that is farther behind than this lags; a picture on a good line takes some hundredths."""
SLOW_FOR_SECONDS: Final = 5.0
"""A line counts as slow until it was not seen to lag for so long: it doesn't change from picture to picture."""
LONGEST_SECONDS: Final = 3.0
"""The longest interval, however far the terminal is behind."""


class PaintThrottle:
    """Says when what arrived may be painted. `slow` is for a line of which the user knows that it is slow."""

    def __init__(self, *, slow: bool = False) -> None:
        self._always_slow = slow
        self._slow_until = float("-inf")
        self._painted_at = float("-inf")
        self._size = 0
        self._lag = 0.0

    def delay(self, now: float, lag: float = 0.0) -> float:
        """Seconds until the next picture may be painted, 0 for at once. `lag`: seconds that the terminal is behind."""
        if lag > LAGS_SECONDS:
            self._slow_until = now + SLOW_FOR_SECONDS
        self._lag = lag
        return min(LONGEST_SECONDS, max(0.0, self._painted_at + self._interval(now) - now))

    def painted(self, now: float, size: int) -> None:
        """A picture of `size` bytes was painted because something arrived; several of one moment count as one."""
        self._size = self._size + size if now == self._painted_at else size
        self._painted_at = now

    def is_slow(self, now: float) -> bool:
        """True if the line is known or was lately seen to be slow."""
        return self._always_slow or now < self._slow_until

    def _interval(self, now: float) -> float:
        if not self.is_slow(now):
            return min(LONGEST_SECONDS, max(INTERVAL_SECONDS, self._size / BYTES_A_SECOND))
        return min(LONGEST_SECONDS, max(SLOW_INTERVAL_SECONDS, self._size / SLOW_BYTES_A_SECOND, self._lag))


ASK_SECONDS: Final = 0.5
"""Between two questions, while something is painted."""
WINDOW_BYTES: Final = 32_000
"""What may be on its way without an answer, at first: the whole screen, painted anew."""
SMALLEST_WINDOW: Final = 12_000
"""A picture. It is halved down to this while the terminal lags, and where it was used without a lag doubled up to
the largest."""
LARGEST_WINDOW: Final = 64_000
SILENT_SECONDS: Final = 15.0
"""A terminal that leaves a question open for so long is not asked again."""


class LagProbe:
    """How far a terminal is behind, by questions that it answers when it comes to them.

    That a write returns says little: between us and a terminal behind SSH there is room for megabytes. Over tmux it is
    tmux who answers, and tmux who skips what a slow terminal can't take. One thread asks, another may answer.
    """

    def __init__(self) -> None:
        self.answers = False
        """Whether the terminal is one that answers."""
        self._asked_at: float | None = None
        self._last_asked = float("-inf")
        self._sent = 0
        self._arrived = 0
        self._trip = 0.0
        self._shortest = float("inf")
        self._window = WINDOW_BYTES

    @property
    def open(self) -> bool:
        """True while an answer is awaited."""
        return self._asked_at is not None

    def due(self, now: float, sent: int) -> bool:
        """Whether to ask now. `sent`: bytes that were written in all. False for terminals that never answered."""
        if not self.answers or self.open or sent == self._sent:
            return False
        return now - self._last_asked >= ASK_SECONDS or sent - self._arrived > self._window // 2

    def asked(self, now: float, sent: int) -> None:
        """A question was written, after `sent` bytes in all."""
        self._asked_at = self._last_asked = now
        self._sent = sent

    def answered(self, now: float) -> bool:
        """The terminal answered; True if it had been asked."""
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
        """Seconds that the terminal is behind, without the time that the line itself takes to and fro."""
        self._give_up(now)
        if not self.answers:
            return 0.0
        asked = self._asked_at
        trip = self._trip if asked is None else max(self._trip, now - asked)
        return max(0.0, trip - self._shortest)

    def is_full(self, now: float, sent: int) -> bool:
        """True if so much is on its way, unanswered, that more would only make the terminal later."""
        most = SMALLEST_WINDOW if self.lag(now) > LAGS_SECONDS else self._window
        return self.answers and sent - self._arrived > most

    def _give_up(self, now: float) -> None:
        asked = self._asked_at
        if asked is not None and now - asked > SILENT_SECONDS:
            self.answers, self._asked_at = False, None

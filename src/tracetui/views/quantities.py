"""Numbers against their limits and moments on a clock, as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from tracetui.model import RunSummary
from tracetui.text import Clean, age, grouped
from tracetui.views.glyphs import UNICODE, Glyphs


def measured(current: float | None, limit: float | None) -> Clean:
    """A number against its limit: ``11 > 10``, ``7 of 10``; empty where the trace says neither."""
    if current is None:
        return Clean("" if limit is None else f"limit {number(limit)}")
    if limit is None:
        return number(current)
    return Clean(f"{number(current)} {'>' if current > limit else 'of'} {number(limit)}")


def number(value: float | int | None, glyphs: Glyphs = UNICODE) -> Clean:
    """A number as people read it: whole ones in groups of three, others with four digits; ``—`` for None."""
    if value is None:
        return glyphs.unsaid
    if isinstance(value, bool):
        return Clean("true" if value else "false")
    if isinstance(value, int) or (abs(value) < 1e15 and value == int(value)):
        return grouped(int(value))
    return Clean(f"{value:.4g}")


def moment(summary: RunSummary, *, now: float | None = None, zone: tzinfo = UTC) -> Clean:
    """When a run started: ``13:09:22Z, 3m ago``; the date where it is not today's; empty where nobody knows."""
    start = summary.started_at
    text = clock(start, summary.time_zone, now=now, zone=zone)
    if start is None or now is None or summary.time_zone is None or not text:
        return text
    return Clean(f"{text}, {_ago(now - start)}")


def clock(at: float | None, time_zone: str | None, *, now: float | None = None, zone: tzinfo = UTC) -> Clean:
    """A moment on the clock of `zone` (``Z`` marks UTC), with the date where it is not that of `now`.

    A naive time (`time_zone` None) is printed as the trace has it, and said to be one. Empty for None.
    """
    if at is None:
        return Clean("")
    naive = time_zone is None
    try:
        when = datetime.fromtimestamp(at, UTC if naive else zone)
        today = now is not None and datetime.fromtimestamp(now, zone).date() == when.date()
    except (OverflowError, ValueError, OSError):
        return Clean("a time out of range")
    text = when.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")
    return Clean(f"{text} local, zone unknown" if naive else f"{text}Z" if zone is UTC else text)


def _ago(seconds: float) -> str:
    words = age(max(0.0, seconds))
    return words if words == "now" else f"{words} ago"

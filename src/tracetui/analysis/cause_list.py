"""Filters, sorts and groups causes by an `Arrangement`, as `analysis.arrangement` does with runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

from tracetui.analysis.arrangement import Arrangement, Choices, day_label
from tracetui.analysis.triage import Group, biggest_first

CAUSE_CHOICES: Final = Choices(
    ("lost", "runs", "newest", "first seen", "tokens", "name", "id"),
    ("none", "kind", "agent", "verdict", "format", "day"),
)
"""How causes can be sorted and grouped; ``day`` is the one on which a cause was first seen."""
CAUSES: Final = Arrangement(sort="lost", group="none")
"""The order of `analysis.triage.groups`."""

CauseItem = Group | tuple[str, int]
"""A cause, or the (label, count) of a group heading."""


class CauseOrder:
    """The causes in the order of the queue, and where each is. Reads every cause: any thread may make it."""

    def __init__(self, items: Sequence[CauseItem] = ()) -> None:
        self.items = items
        self.groups = [one for one in items if isinstance(one, Group)]
        self.places = {group.digest: place for place, group in enumerate(self.groups)}
        """Indices in `groups` by digest."""
        self.rows = {item.digest: row for row, item in enumerate(items) if isinstance(item, Group)}
        """Indices in `items` by digest."""
        self.headings = [group for group in self.groups if group.tasks]
        """Headings of wrong answers."""
        self.runs_before = [*accumulate((len(group.runs) for group in self.groups), initial=0)]
        """Number of runs before each cause; at the end, of all runs."""
        starts = [group.starts for group in self.groups if group.starts]
        self.period = min((one[0] for one in starts), default=0.0), max((one[-1] for one in starts), default=0.0)
        """When the first and the last run started, in UTC seconds."""


def arrange_causes(
    causes: Iterable[Group], arrangement: Arrangement, *, now: float, verdict_of: Callable[[Group], str | None]
) -> list[CauseItem]:
    """Filter, sort and group causes, which are in the order of `analysis.triage.groups`.

    `verdict_of` returns None for a cause without a verdict.
    """
    shown = [cause for cause in causes if not arrangement.new or cause.is_new(now)]
    if arrangement.sort != CAUSES.sort or arrangement.reverse:
        shown.sort(key=_SORT_KEYS[arrangement.sort], reverse=arrangement.reverse)
    if arrangement.group == "none":
        return [*shown]
    label = _label_of(arrangement.group, now, verdict_of)
    grouped: dict[str, list[Group]] = {}
    for cause in shown:
        grouped.setdefault(label(cause), []).append(cause)
    items: list[CauseItem] = []
    for name, members in grouped.items():
        items += [(name, len(members)), *members]
    return items


def _label_of(group: str, now: float, verdict_of: Callable[[Group], str | None]) -> Callable[[Group], str]:
    if group == "kind":
        return _kind
    if group == "agent":
        return lambda cause: ", ".join(cause.agents) or "no agent"
    if group == "verdict":
        return lambda cause: verdict_of(cause) or "to review"
    if group == "format":
        return lambda cause: ", ".join(cause.formats)
    day = day_label(now)
    return lambda cause: f"first seen {day(cause.starts[0])}" if cause.starts else "first seen unknown"


def _kind(cause: Group) -> str:
    if cause.cause.wrong:
        return "wrong answers"
    operation = cause.cause.operation
    return "errors of runs" if operation is None else f"errors in {operation.value}"


def _descending(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)


_SORT_KEYS: Final[dict[str, Callable[[Group], Any]]] = {
    "lost": biggest_first,
    "runs": lambda cause: (-len(cause.runs), biggest_first(cause)),
    "newest": lambda cause: (_descending(cause.starts[-1] if cause.starts else None), biggest_first(cause)),
    "first seen": lambda cause: (_descending(cause.starts[0] if cause.starts else None), biggest_first(cause)),
    "tokens": lambda cause: (_descending(cause.wasted_tokens), biggest_first(cause)),
    "name": lambda cause: (cause.title.lower(), cause.digest),
    "id": lambda cause: cause.digest,
}

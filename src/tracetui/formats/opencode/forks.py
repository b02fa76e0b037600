"""Which session a fork was made from: opencode copies the messages, with new ids and no word of where they are from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tracetui.formats.opencode.records import Info
from tracetui.formats.opencode.session import FORK


class Opening(NamedTuple):
    """How a session begins."""

    first: float | None
    """When its first message was made, which a copy of it says too."""
    said: Callable[[], str]
    """What was asked first."""


def is_suspect(info: Info, first: float | None) -> bool:
    """Whether a session may be a fork: its title says so, or its first message is older than it is."""
    return FORK.match(info.title) is not None or (
        first is not None and info.created is not None and first < info.created
    )


class Originals:
    """Finds what sessions were forked from: one that began earlier with the same words.

    Its first message was copied with its time, or by its title the fork is one of it.
    """

    def __init__(self, infos: Iterable[Info], opening: Callable[[Info], Opening]) -> None:
        self._opening = opening
        self._alike: dict[float | str, list[Info]] = {}
        """By the time of the first message, and by title."""
        for info in infos:
            self._alike.setdefault(info.title, []).append(info)
            if (first := opening(info).first) is not None:
                self._alike.setdefault(first, []).append(info)

    def of(self, info: Info) -> str | None:
        """Id of the original, None if there is none."""
        opening = self._opening(info)
        if opening.first is None or info.created is None or not is_suspect(info, opening.first):
            return None
        wanted, said = titled(info.title), opening.said()
        found: list[tuple[bool, bool, float, str]] = []
        for other in (*self._alike.get(opening.first, ()), *self._alike.get(wanted or 0.0, ())):
            begins = self._opening(other)
            same = begins.first == opening.first
            if other.created is not None and other.created < info.created and (said or same) and begins.said() == said:
                found.append((other.title != wanted, not same, other.created, other.id))
        return min(found)[-1] if found else None


def titled(title: str) -> str | None:
    """The title of what a session of that title is a fork of; None where it is none by its title."""
    match = FORK.match(title)
    if match is None:
        return None
    number = int(match[2])
    return match[1] if number <= 1 else f"{match[1]} (fork #{number - 1})"


def listed(infos: Sequence[Info]) -> tuple[list[Info], list[Info]]:
    """(The sessions that are runs of their own, those of them whose parents go round in a circle).

    A sub-agent is told below the session that started it; where that is missing it stands for itself.
    """
    parents = {info.id: info.parent for info in infos}
    circular: set[str] = set()
    clear: set[str] = set()
    for info in infos:
        way: dict[str, None] = {}
        at: str | None = info.id
        while at is not None and at in parents and at not in way and at not in clear:
            way[at] = None
            at = parents[at]
        if at is not None and at in way:
            names = list(way)
            circular.update(names[names.index(at) :])
        clear.update(way)
    runs = [info for info in infos if info.parent not in parents or info.id in circular]
    return runs, [info for info in runs if info.id in circular]

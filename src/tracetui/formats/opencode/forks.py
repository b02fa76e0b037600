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


def original_of(info: Info, opening: Opening, others: Iterable[tuple[Info, Opening]]) -> str | None:
    """Id of the session that began earlier with the same words: copied, or by its title what this one is a fork of."""
    if not is_suspect(info, opening.first) or opening.first is None:
        return None
    wanted = titled(info.title)
    found: list[tuple[bool, bool, float, str]] = []
    said: str | None = None
    for other, begins in others:
        if other.id == info.id or other.created is None or info.created is None or other.created >= info.created:
            continue
        same = begins.first == opening.first
        if not same and other.title != wanted:
            continue
        said = opening.said() if said is None else said
        if begins.said() == said and (said or same):
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

"""The files of an OpenHands conversation: its state, one file for each event, and the conversations of its sub-agents.

``ID/base_state.json``, rewritten whole; ``ID/events/event-00000-UUID.json``, written once; ``ID/subagents/ID/…``, laid
out alike. A file that is read while it is written is read again with the next change.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from math import inf
from typing import Any, Final
from zlib import crc32

from msgspec import Struct

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.document import Documents, is_there
from tracetui.formats.scalars import mapping
from tracetui.model import Problem
from tracetui.sources.base import Entry, File, Stat, file_name

STATE: Final = "base_state.json"
EVENTS: Final = "events"
AGENTS: Final = "subagents"
EVENT: Final = re.compile(r"event-(\d{1,9})-[\w-]{1,64}\.json")
_DEPTH: Final = 8
"""Sub-agents of sub-agents are followed so far."""
_MOST: Final = 1_000
"""Sub-agents of one conversation."""
_AT_ONCE: Final = 16
"""Files that are read however long they take."""


class Event(Struct, frozen=True):
    """A JSON file that was read; `record` is None if it can't be read, or is no object."""

    path: str
    """Relative to the folder of the run's file."""
    check: int
    size: int
    """Bytes of the file."""
    record: dict[str, Any] | None
    problem: str = ""
    torn: bool = False


class Conversation(Struct, frozen=True):
    """A conversation with its sub-agents, the first one first. `state` is empty if it has none."""

    path: str
    """Of its state, relative to the folder of the run's file; empty for events without a state."""
    state: dict[str, Any]
    events: list[Event]
    agents: list[Conversation]

    def all(self) -> Iterator[Conversation]:
        """This one and all below it."""
        yield self
        for agent in self.agents:
            yield from agent.all()


class Reading(Documents):
    """A run as far as it was read: the files that changed since `before`, for about `seconds`; all without it.

    `most` limits the events to so many at the beginning, and the last one. Raises `FormatError` if the state of the
    run can't be read.
    """

    def __init__(
        self, file: File, before: Reading | None = None, seconds: float = inf, most: int | None = None
    ) -> None:
        super().__init__(file, _event, None if before is None else before.read)
        self._deadline, self._most, self._made = time.monotonic() + seconds, most, 0
        self.unfinished: list[Problem] = []
        self.done = True
        if not is_event(file):
            own: Event = self.take(file.name, file).value
            if own.record is None:
                raise FormatError(own.problem)
            self.conversation = self._conversation("", own.record)
        else:
            listed = self._listed("")
            if is_there(file, f"../{STATE}") or listed[0].name != file.name:
                listed = [entry for entry in listed if entry.name == file.name]
            self.conversation = Conversation("", {}, self._events("", listed), [])

    def is_same(self, before: Reading) -> bool:
        """Whether nothing has changed since a reading `before`; both are done."""
        checks = [[(path, doc and doc.check) for path, doc in reading.read.items()] for reading in (before, self)]
        same = checks[0] == checks[1] and before.problems == self.problems
        return same and before.unfinished == self.unfinished

    def _conversation(self, folder: str, state: dict[str, Any], depth: int = 0) -> Conversation:
        events = self._events(f"{folder}{EVENTS}/", self._listed(f"{folder}{EVENTS}"))
        agents = []
        below = self.file.folder(f"{folder}{AGENTS}").folders if depth < _DEPTH and self._most is None else []
        for path in sorted(below)[:_MOST]:
            own = f"{folder}{AGENTS}/{file_name(path)}/"
            document = self._other(f"{own}{STATE}")
            record = {} if document is None else document.record or {}
            if document is not None and document.record is None:
                self._report(document, moving=True)
            agents.append(self._conversation(own, record, depth + 1))
        agents = [agent for agent in agents if agent.events or agent.state]
        agents.sort(key=lambda agent: (began(agent), agent.path))
        return Conversation(f"{folder}{STATE}", state, events, agents)

    def _listed(self, folder: str) -> list[Entry]:
        """The events in a folder, in their order. The run moves while its newest event does."""
        there = self.file.folder(folder).entries
        entries = [entry for entry in there if entry.skipped is None and EVENT.fullmatch(entry.name)]
        if entries:
            newest = max(entries, key=lambda entry: entry.stat.mtime if entry.stat is not None else 0.0)
            self.file.other(f"{folder}/{newest.name}" if folder else newest.name, newest.stat)
        return sorted(entries, key=lambda entry: _number(entry.name))

    def _events(self, folder: str, entries: list[Entry]) -> list[Event]:
        wanted = entries
        if self._most is not None and len(entries) > self._most:
            wanted = [*entries[: self._most], entries[-1]]
        documents = []
        for entry in wanted:
            document = self._other(f"{folder}{entry.name}", entry.stat)
            if document is not None and document.record is not None:
                documents.append(document)
            elif document is not None:
                self._report(document, moving=entry is entries[-1])
        numbers = [_number(entry.name)[0] for entry in entries]
        if numbers and (lost := numbers[-1] + 1 - numbers[0] - len(numbers)) > 0:
            self.problems.append(Problem(self.file.path, folder.rstrip("/"), f"{lost} events have no file"))
        return documents

    def _report(self, document: Event, *, moving: bool) -> None:
        """A file that can't be read: the newest one may be being written."""
        problem = Problem(self.file.path, document.path, document.problem, document.size, document.torn)
        (self.unfinished if moving else self.problems).append(problem)

    def _other(self, path: str, stat: Stat | None = None) -> Event | None:
        """A file; None if there was no time for it, or it isn't there."""
        known = self.before.get(path) is not None
        if not known and self._made >= _AT_ONCE and time.monotonic() > self._deadline:
            self.done = False
            return None
        self._made += not known
        document = self.get(path, stat, needed=known or not path.endswith(STATE))
        return None if document is None else document.value


def _event(path: str, data: bytes) -> Event:
    check, size = crc32(data), len(data)
    try:
        value, _ = decode(data)
    except FormatError as error:
        return Event(path, check, size, None, error.reason, torn=True)
    if not isinstance(value, dict):
        return Event(path, check, size, None, "not a JSON object")
    return Event(path, check, size, value)


def _number(name: str) -> tuple[int, str]:
    match = EVENT.fullmatch(name)
    return (int(match[1]) if match is not None else 0), name


def began(conversation: Conversation) -> str:
    """The recorded time of its first event."""
    return next((str(mapping(event.record).get("timestamp", "")) for event in conversation.events), "")


# ---- which files belong together


def is_event(file: File) -> bool:
    """Whether `file` is called like an event."""
    return EVENT.fullmatch(file.name) is not None


def whole_of(file: File) -> str | None:
    """Path of the file of the run that `file` is a part of: the state of the outermost conversation, else the first
    event of a conversation without a state; None if that is the file itself.
    """
    above = "../" if is_event(file) else ""
    folders = re.split(r"[/\\]", file.path)[:-1]
    for _ in range(_DEPTH):
        if folders[-2 - above.count("../") :][:1] != [AGENTS] or not is_there(file, f"{above}../../{STATE}"):
            break
        above += "../../"
    path = f"{above}{STATE}" if above else file.name
    if above == "../" and not is_there(file, path):
        names = [entry.name for entry in file.folder().entries if entry.skipped is None and EVENT.fullmatch(entry.name)]
        path = min(names, key=_number, default=file.name)
    if path == file.name:
        return None
    with file.other(path) as other:
        return other.path

"""The files of an OpenHands conversation: its state, one file for each event, and the conversations of its sub-agents.

``ID/base_state.json``, rewritten whole; ``ID/events/event-00000-UUID.json``, written once; ``ID/subagents/ID/…``, laid
out alike. A file that is read while it is written is read again with the next change.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

from msgspec import Struct

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.document import Fingerprint, fingerprint, unchanged
from tracetui.formats.scalars import mapping
from tracetui.model import Problem
from tracetui.sources.base import Entry, File, LinkLost, Stat, file_name, reason_of

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


class Document(Struct, frozen=True):
    """A JSON file that was read; `record` is None if it can't be read, or is no object."""

    path: str
    """Relative to the folder of the run's file."""
    version: Fingerprint
    check: int
    record: dict[str, Any] | None
    problem: str = ""
    torn: bool = False

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.version.stat.size


class Conversation(Struct, frozen=True):
    """A conversation with its sub-agents, the first one first. `state` is empty if it has none."""

    path: str
    """Of its state, relative to the folder of the run's file; empty for events without a state."""
    state: dict[str, Any]
    events: list[Document]
    agents: list[Conversation]

    def all(self) -> Iterator[Conversation]:
        """This one and all below it."""
        yield self
        for agent in self.agents:
            yield from agent.all()


class Reading(Struct, frozen=True):
    """A run as far as it was read."""

    conversation: Conversation
    documents: dict[str, Document]
    problems: list[Problem]
    unfinished: tuple[Problem, ...]
    done: bool

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(document.size for document in self.documents.values())


class Files:
    """Reads the files of a run, those that changed since `before`, for about `seconds`; all without it.

    `most` limits the events to so many at the beginning, and the last one.
    """

    def __init__(
        self, file: File, before: Reading | None = None, seconds: float | None = None, most: int | None = None
    ) -> None:
        self._file = file
        self._before = {} if before is None else before.documents
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._most = most
        self._read = 0
        self._done = True
        self._documents: dict[str, Document] = {}
        self._problems: list[Problem] = []
        self._unfinished: list[Problem] = []

    def read(self) -> Reading:
        """The run of the file. Raises `FormatError` if its state can't be read."""
        file = self._file
        if not is_event(file):
            own = self._document(file.name, file)
            if own.record is None:
                raise FormatError(own.problem)
            conversation = self._conversation("", own.record)
        else:
            listed = self._listed("")
            if _exists(file, f"../{STATE}") or listed[0].name != file.name:
                listed = [entry for entry in listed if entry.name == file.name]
            conversation = Conversation("", {}, self._events("", listed), [])
        unfinished = tuple(self._unfinished)
        return Reading(conversation, self._documents, self._problems, unfinished, self._done)

    def _conversation(self, folder: str, state: dict[str, Any], depth: int = 0) -> Conversation:
        events = self._events(f"{folder}{EVENTS}/", self._listed(f"{folder}{EVENTS}"))
        agents = []
        below = self._file.folder(f"{folder}{AGENTS}").folders if depth < _DEPTH and self._most is None else []
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
        there = self._file.folder(folder).entries
        entries = [entry for entry in there if entry.skipped is None and EVENT.fullmatch(entry.name)]
        if entries:
            newest = max(entries, key=lambda entry: entry.stat.mtime if entry.stat is not None else 0.0)
            self._file.other(f"{folder}/{newest.name}" if folder else newest.name, newest.stat)
        return sorted(entries, key=lambda entry: _number(entry.name))

    def _events(self, folder: str, entries: list[Entry]) -> list[Document]:
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
            self._problems.append(Problem(self._file.path, folder.rstrip("/"), f"{lost} events have no file"))
        return documents

    def _report(self, document: Document, *, moving: bool) -> None:
        """A file that can't be read: the newest one may be being written."""
        problem = Problem(self._file.path, document.path, document.problem, document.size, document.torn)
        (self._unfinished if moving else self._problems).append(problem)

    def _other(self, path: str, stat: Stat | None = None) -> Document | None:
        """A file; None if there was no time for it, or it isn't there. It isn't opened if its `stat` is settled."""
        before = self._before.get(path)
        if before is not None and stat is not None and before.version == Fingerprint(stat, None):
            self._documents[path] = before
            return before
        late = self._deadline is not None and time.monotonic() > self._deadline
        if before is None and late and self._read >= _AT_ONCE:
            self._done = False
            return None
        try:
            with self._file.other(path) as other:
                return self._document(path, other)
        except LinkLost:
            raise
        except OSError as error:
            if before is not None or not path.endswith(STATE):
                self._problems.append(Problem(self._file.path, path, reason_of(error)))
            return None

    def _document(self, path: str, file: File) -> Document:
        before = self._before.get(path)
        if before is not None and (same := unchanged(file, before.version)) is not None:
            document = before if same is before.version else _with_version(before, same)
        else:
            self._read += 1
            data = file.read_all()
            document = _document(path, fingerprint(file, data), data)
        self._documents[path] = document
        return document


def _with_version(document: Document, version: Fingerprint) -> Document:
    return Document(document.path, version, document.check, document.record, document.problem, document.torn)


def _document(path: str, version: Fingerprint, data: bytes) -> Document:
    check = crc32(data)
    try:
        value, _ = decode(data)
    except FormatError as error:
        return Document(path, version, check, None, error.reason, torn=True)
    if not isinstance(value, dict):
        return Document(path, version, check, None, "not a JSON object")
    return Document(path, version, check, value)


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


def _exists(file: File, path: str) -> bool:
    try:
        with file.other(path) as other:
            return other.stat.size > 0
    except OSError:
        return False


def whole_of(file: File) -> str | None:
    """Path of the file of the run that `file` is a part of: the state of the outermost conversation, else the first
    event of a conversation without a state; None if that is the file itself.
    """
    above = "../" if is_event(file) else ""
    folders = re.split(r"[/\\]", file.path)[:-1]
    for _ in range(_DEPTH):
        if folders[-2 - above.count("../") :][:1] != [AGENTS] or not _exists(file, f"{above}../../{STATE}"):
            break
        above += "../../"
    path = f"{above}{STATE}" if above else file.name
    if above == "../" and not _exists(file, path):
        names = [entry.name for entry in file.folder().entries if entry.skipped is None and EVENT.fullmatch(entry.name)]
        path = min(names, key=_number, default=file.name)
    if path == file.name:
        return None
    with file.other(path) as other:
        return other.path

"""The session files of opencode before 1.2: one for each session, message and part.

``storage/session/PROJECT/SESSION.json``, ``storage/message/SESSION/MESSAGE.json``, ``storage/part/MESSAGE/PART.json``.
A run is listed under the file of its session; those of its sub-agents are next to it. A message names its session and
a part its message, and they lie in folders that are called so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import NO, Chunk
from tracetui.formats.decode import decode, record_on, top_names
from tracetui.formats.document import Fingerprint, fingerprint, unchanged
from tracetui.formats.opencode.messages import SpanRef, body_of, interpret, part_alone
from tracetui.formats.opencode.records import (
    MESSAGES,
    PARTS,
    Info,
    Part,
    Record,
    SourceMessage,
    changed,
    decode_record,
    info_of,
)
from tracetui.formats.opencode.runs import RunSpans, Session, Tree, header_of_tree, run_body
from tracetui.formats.scalars import child, mapping, word
from tracetui.formats.schema import Schema, Unknown
from tracetui.model import Body, Problem, Span
from tracetui.sources.base import File, Stat, is_file_name, reason_of

SURE: Final = 90
MAYBE: Final = 40
_SESSION: Final = frozenset({b"id", b"title", b"time"})
_MESSAGE: Final = frozenset({b"id", b"sessionID", b"role", b"time"})
_PART: Final = frozenset({b"id", b"sessionID", b"messageID", b"type"})
_KIND: Final = re.compile(rb'"type"\s*:\s*"(?:text|reasoning|tool|file|step-start|step-finish|patch|snapshot|agent)"')


def sniff(file: File) -> int:
    """Sure of an object that has the fields of a session, a message or a part."""
    head = file.head
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{" or b'"id"' not in head:
        return NO
    names = frozenset(top_names(head))
    if names >= _MESSAGE or names >= _PART:
        return SURE
    if names >= _SESSION and (b"projectID" in names or (b"version" in names and b"directory" in names)):
        return SURE
    folder = re.split(r"[/\\]", file.path)[-3:-2]
    if {b"id", b"type"} <= names and folder == ["part"] and _KIND.search(head):
        return MAYBE
    return MAYBE if {b"id", b"role"} <= names and folder == ["message"] else NO


# ---- the files of a run


class Version(msgspec.Struct, frozen=True):
    """All files of a run as they were read."""

    own: Fingerprint
    parts: dict[str, Fingerprint | None]
    """By path, relative to the folder of the run's file; None for one that could not be read."""
    folders: tuple[str, ...]
    """Where they are."""
    others: dict[str, Stat]
    """Files in the same folders that belong to other runs."""


class _Files:
    """The files of a run, each read once."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._seen: set[str] = set()
        self.problems: list[Problem] = []
        self.parts: dict[str, Fingerprint | None] = {}
        self.folders: dict[str, None] = {}
        self.others: dict[str, Stat] = {}

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        own = 0 if self._file.name in self.parts else self._file.stat.size
        return own + sum(part.stat.size for part in self.parts.values() if part is not None)

    def names(self, folder: str) -> list[str]:
        """Paths of the JSON files in a folder, in their order, relative to the folder of the run's file."""
        self.folders[folder] = None
        return sorted(listed_in(self._file, folder))

    def content(self, path: str) -> bytes | None:
        """The bytes of a file; None, and a problem, if it cannot be read."""
        try:
            with self._file.other(path) as other:
                data = other.read_all()
                self.parts[path] = fingerprint(other, data)
                self._file.other(path, other.stat)  # the run moves while this file does
                return data
        except OSError as error:
            self.parts[path] = None
            self.problems.append(Problem(self._file.path, path, reason_of(error)))
            return None

    def _record(self, path: str, schema: Schema[Any], unknown: Unknown) -> tuple[str, str, Any, bytes, Record]:
        """(Id of the record in a file, a unique id, the record, its bytes, other data)."""
        content = self.content(path)
        data, beside, problem = decode_record(schema, content, unknown)
        if problem is not None and content is not None:
            with self._file.other(path) as other:
                self.problems.append(Problem(other.path, "", problem))
        ident = word(data.id) or stem_of(path)
        own = path if ident in self._seen else ident
        return ident, own, data, content or b"", beside

    def message(self, path: str) -> SourceMessage:
        """The message in a file, with its parts."""
        unknown: Unknown = {}
        ident, own, data, content, beside = self._record(path, MESSAGES, unknown)
        paths = self.names(f"../../part/{ident}") if is_file_name(ident) and ident not in self._seen else []
        self._seen.add(own)
        parts = tuple([self.part(one, unknown) for one in paths])
        return SourceMessage(own, data, path, content, beside, None, parts, unknown)

    def part(self, path: str, unknown: Unknown) -> Part:
        """The part in a file."""
        _, own, data, content, beside = self._record(path, PARTS, unknown)
        self._seen.add(own)
        return Part(own, data, path, content, beside)


# ---- reading


class StorageReader:
    """The `Reader` of a run in files: all of them at once, and again when one of them has changed."""

    def __init__(self) -> None:
        self._version: Version | None = None

    def more(self, file: File) -> Chunk:
        if self._version is not None and (same := _same(file, self._version)) is not None:
            self._version = same
            return Chunk()
        data = file.read_all()
        own, files = fingerprint(file, data), _Files(file)
        record, tree = _tree(file, data, files)
        chunk = Chunk(
            spans=RunSpans(tree).spans,
            header=replace(header_of_tree(tree, stale=False), size=files.size),
            body=run_body(tree, record if kind_of(record) == "session" else {}),
            problems=files.problems,
            reset=self._version is not None,
        )
        self._version = Version(own, files.parts, tuple(files.folders), files.others)
        return chunk


def _same(file: File, before: Version) -> Version | None:
    """The version to remember if nothing changed, None if it must be read again."""
    own = unchanged(file, before.own)
    if own is None:
        return None
    there: dict[str, Stat] = {}
    for folder in before.folders:
        there |= listed_in(file, folder)
    read = before.parts.keys() - {file.name}
    others = {path: stat for path, stat in there.items() if path not in read}
    if read - there.keys() or any(
        before.others.get(path) != stat and _names_parent(file, path) for path, stat in others.items()
    ):
        return None
    parts: dict[str, Fingerprint | None] = {}
    for path in read:
        part = before.parts[path]
        if part is None or part.stat != there[path]:
            return None
        with file.other(path, part.stat) as other:
            parts[path] = part if part.check is None else unchanged(other, part)
            if parts[path] is None:
                return None
    return Version(own, parts, before.folders, others)


def _names_parent(file: File, path: str) -> bool:
    """Whether a file that came is one of this run: of a message, a part, or a session that names a parent."""
    if "/" in path:
        return True
    try:
        with file.other(path) as other:
            return b'"parentID"' in other.head
    except OSError:
        return False


def _tree(file: File, data: bytes, files: _Files) -> tuple[Record, Tree]:
    """The record in `file`, and the run that it is: that of a session, else of a message or part without one."""
    value, note = decode(data)
    if not isinstance(value, dict):
        raise FormatError("not a JSON object")
    if note is not None:
        files.problems.append(Problem(file.path, "", f"read leniently: {note}"))
    kind, ident = kind_of(value), word(value.get("id")) or stem_of(file.name)
    if kind == "session":
        return value, Tree(_sessions(file, files, info_of(value, ident, file.name)))
    problems, unknown = list(files.problems), dict[str, int]()
    message = (
        interpret(files.message(file.name))
        if kind == "message"
        else part_alone(files.part(file.name, unknown), unknown)
    )
    files.problems = problems + [one for one in files.problems[len(problems) :] if one.path != file.path]
    session = Info(id=word(value.get("sessionID")) or ident)
    return value, Tree({session.id: Session(session, (message,))})


def _sessions(file: File, files: _Files, root: Info) -> dict[str, Session]:
    """A session and those of its sub-agents, each after the session that started it."""
    beside = _beside(file, files)
    found: dict[str, Session] = {}
    queue, above, parents = [root], {root.id}, {one.id: one.parent for one in beside}
    parent = root.parent
    while parent is not None and parent not in above:  # each session of a cycle is a run of its own
        above.add(parent)
        parent = parents.get(parent)
    for info in queue:
        if info.id in found:
            continue
        paths = files.names(f"../../message/{info.id}") if is_file_name(info.id) else []
        messages = sorted(map(files.message, paths), key=lambda one: (one.started or 0.0, one.id))
        found[info.id] = Session(info, tuple([interpret(one, info.store_key) for one in messages]))
        queue += [one for one in beside if one.parent == info.id and one.id not in above]
    return found


def _beside(file: File, files: _Files) -> list[Info]:
    """The sessions that name another one as their parent, in the folder of the run's file."""
    found = []
    files.folders[""] = None
    for path, stat in sorted(listed_in(file, "").items()):
        if not _names_parent(file, path):
            files.others[path] = stat
        else:
            record = record_on(files.content(path) or b"") or {}
            found.append(info_of(record, word(record.get("id")) or stem_of(path), path))
    return sorted((one for one in found if one.parent is not None), key=lambda one: (one.time.created or 0, one.id))


# ---- one span


def body(file: File, span: Span) -> Body:
    """Everything about one span, from the files of its message or part."""
    at = span.at
    if not isinstance(at, SpanRef):
        raise FormatError("this span comes from another format")
    files = _Files(file)
    if at.message is None and at.part is None:
        record = record_on(files.content(at.session) or b"") or {} if at.shows and at.session else {}
        return Body(attributes=child(record, "revert") if at.shows == "revert" else record)
    if at.part is None:
        source = files.message(at.message)
    else:
        source = SourceMessage("", None, parts=(replace(files.part(at.part, {}), id=at.part_id),))
    raw = source.raw if at.part is None else source.parts[0].raw
    if not raw:
        raise changed(files.problems[0].path)
    return body_of(span, source, raw)


# ---- which files belong together: no record names the project that has the session in its folder

MOST: Final = 200
"""Files that are looked into, where the name of none is the one that is looked for."""
CHAIN: Final = 64
"""Sub-agents of sub-agents are followed so far."""


def kind_of(record: Record) -> str:
    """The kind of a file: ``session``, ``message`` or ``part``."""
    if "role" in record:
        return "message"
    return "part" if "type" in record or "messageID" in record else "session"


def listed_in(file: File, folder: str) -> dict[str, Stat]:
    """The JSON files in a folder, by their paths relative to the folder of `file`; without that itself."""
    found: dict[str, Stat] = {}
    for entry in file.folder(folder).entries:
        name = re.split(r"[/\\]", entry.path)[-1]
        if entry.skipped is None and entry.stat is not None and name.endswith(".json"):
            found[f"{folder}/{name}" if folder else name] = entry.stat
    found.pop(file.name, None)
    return found


def stem_of(path: str) -> str:
    return re.split(r"[/\\]", path)[-1].removesuffix(".json")


def whole_of(file: File) -> str | None:
    """Path of the file of the session that `file` belongs to; None if it is a run of its own."""
    record = record_on(file.read_all()) or {}
    kind = kind_of(record)
    path: str | None = file.name
    if kind == "message":
        path = _session_file(file, word(record.get("sessionID")) or "")
    elif kind == "part":
        found = _message_file(file, record)
        if found is None:
            return None
        path = _session_file(file, found[0])
        if path is None:
            with file.other(found[1]) as other:
                return other.path
    if path is None:
        return None
    path = _top(file, path)
    if path == file.name:
        return None
    with file.other(path) as other:
        return other.path


def _top(file: File, path: str) -> str:
    """The session above that at `path`; that itself where parents go round in a circle."""
    seen, at = [path], path
    while len(seen) < CHAIN:
        with file.other(at) as other:
            parent = word(mapping(record_on(other.read_all())).get("parentID")) or ""
        folder = at.rpartition("/")[0]
        above = _there(file, [f"{folder}/{name}" if folder else name for name in _names(parent)])
        if above is None:
            return at
        if above in seen:
            return path
        seen.append(above)
        at = above
    return at


def _names(ident: str) -> list[str]:
    """Possible file names of a session."""
    return [f"{ident}.json", f"ses_{ident}.json"] if is_file_name(ident) else []


def _there(file: File, paths: Sequence[str]) -> str | None:
    """The first of these files that is there."""
    for path in paths:
        try:
            with file.other(path) as other:
                if other.stat.size:
                    return path
        except OSError:
            continue
    return None


def _session_file(file: File, ident: str) -> str | None:
    """The file of a session, in the folder of one of the projects."""
    projects = [re.split(r"[/\\]", path)[-1] for path in sorted(file.folder("../../session").folders)]
    return _there(file, [f"../../session/{project}/{name}" for project in projects for name in _names(ident)])


def _message_file(file: File, part: Record) -> tuple[str, str] | None:
    """(Session, file) of the message that a part belongs to: it is in the folder of its message."""
    folder = re.split(r"[/\\]", file.path)[-2:-1]
    ident = word(part.get("messageID")) or "".join(folder)
    session = word(part.get("sessionID"))
    if session is not None:
        sessions = [session] if is_file_name(session) else []
    else:
        sessions = [re.split(r"[/\\]", path)[-1] for path in sorted(file.folder("../../message").folders)]
    if is_file_name(ident):
        for one in sessions:
            if (path := _there(file, [f"../../message/{one}/{ident}.json"])) is not None:
                return one, path
    for one in sessions[:MOST]:  # file names may differ from ids
        for path in sorted(listed_in(file, f"../../message/{one}"))[:MOST]:
            with file.other(path) as other:
                if mapping(record_on(other.read_all())).get("id") == ident:
                    return one, path
    return None

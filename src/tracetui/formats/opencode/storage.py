"""The session files of opencode before 1.2: one for each session, message and part.

``storage/session/PROJECT/SESSION.json``, ``storage/message/SESSION/MESSAGE.json``, ``storage/part/MESSAGE/PART.json``.
A run is listed under the file of its session; those of its sub-agents are next to it. A message names its session and
a part its message, and they lie in folders that are called so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import NO, Chunk
from tracetui.formats.decode import decode, record_on, top_names
from tracetui.formats.document import Documents, is_there
from tracetui.formats.opencode.messages import body_of, interpret, part_alone
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
from tracetui.sources.base import File, Stat, file_name, is_file_name

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


class _Files(Documents):
    """The files of a run, each read once."""

    def __init__(self, file: File, before: Documents | None = None) -> None:
        super().__init__(file, lambda path, data: data, None if before is None else before.read)
        self._seen: set[str] = set()
        self.folders: dict[str, None] = {}
        """Where they are."""
        self.others: dict[str, Stat] = {}
        """Files in the same folders that belong to other runs."""

    def names(self, folder: str) -> list[str]:
        """Paths of the JSON files in a folder, in their order."""
        self.folders[folder] = None
        return sorted(self.listed(folder))

    def content(self, path: str) -> bytes | None:
        """The bytes of a file; None, and a problem, if it cannot be read."""
        document = self.get(path)
        if document is None:
            return None
        self.file.other(path, document.version.stat)  # the run moves while this file does
        data: bytes = document.value
        return data

    def forget(self) -> None:
        """Keep only what shows whether files have changed."""
        self.read = {path: doc and (replace(doc, value=None) if doc.value else doc) for path, doc in self.read.items()}

    def is_now(self, file: File) -> bool:
        """Whether nothing has changed since."""
        now = _Files(file, self)
        main = self.read[file.name]
        if main is None or now.take(file.name, file).check != main.check:
            return False
        there: dict[str, Stat] = {}
        for folder in self.folders:
            there |= now.listed(folder)
        others = {path: stat for path, stat in there.items() if path not in self.read}
        if any(self.others.get(path) != stat and _names_parent(file, path) for path, stat in others.items()):
            return False
        for path, before in self.read.items():
            if path == file.name:
                continue
            document = now.get(path, there[path]) if path in there and before is not None else None
            if document is None or before is None or document.check != before.check:
                return False
        now.forget()
        self.read, self.others = now.read, others
        return True

    def _record(self, path: str, schema: Schema[Any], unknown: Unknown) -> tuple[str, str, Any, bytes, Record]:
        """(Id of the record in a file, a unique id, the record, its bytes, other data)."""
        content = self.content(path)
        data, beside, problem = decode_record(schema, content, unknown)
        if problem is not None and content is not None:
            with self.file.other(path) as other:
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
        parts = tuple([self.part(path, unknown) for path in paths])
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
        self._files: _Files | None = None

    def more(self, file: File) -> Chunk:
        if self._files is not None and self._files.is_now(file):
            return Chunk()
        files = _Files(file)
        record, tree = _tree(file, files.take(file.name, file).value, files)
        chunk = Chunk(
            spans=RunSpans(tree).spans,
            header=replace(header_of_tree(tree, stale=False), size=files.size),
            body=run_body(tree, record if kind_of(record) == "session" else {}),
            problems=files.problems,
            reset=self._files is not None,
        )
        files.forget()
        self._files = files
        return chunk


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
    files.problems = problems + [problem for problem in files.problems[len(problems) :] if problem.path != file.path]
    session = Info(id=word(value.get("sessionID")) or ident)
    return value, Tree({session.id: Session(session, (message,))})


def _sessions(file: File, files: _Files, root: Info) -> dict[str, Session]:
    """A session and those of its sub-agents, each after the session that started it."""
    beside = _beside(file, files)
    sessions: dict[str, Session] = {}
    queue, above, parents = [root], {root.id}, {info.id: info.parent for info in beside}
    parent = root.parent
    while parent is not None and parent not in above:  # each session of a cycle is a run of its own
        above.add(parent)
        parent = parents.get(parent)
    for info in queue:
        if info.id in sessions:
            continue
        paths = files.names(f"../../message/{info.id}") if is_file_name(info.id) else []
        messages = sorted(map(files.message, paths), key=lambda message: (message.started or 0.0, message.id))
        sessions[info.id] = Session(info, tuple([interpret(message, info.store_key) for message in messages]))
        queue += [child for child in beside if child.parent == info.id and child.id not in above]
    return sessions


def _beside(file: File, files: _Files) -> list[Info]:
    """The sessions that name another one as their parent, in the folder of the run's file."""
    infos = []
    files.folders[""] = None
    for path, stat in sorted(files.listed("").items()):
        if not _names_parent(file, path):
            files.others[path] = stat
        else:
            record = record_on(files.content(path) or b"") or {}
            infos.append(info_of(record, word(record.get("id")) or stem_of(path), path))
    return sorted(
        (info for info in infos if info.parent is not None), key=lambda info: (info.time.created or 0, info.id)
    )


# ---- one span


def body(file: File, span: Span) -> Body:
    """Everything about one span, from the files of its message or part."""
    at, files = span.at, _Files(file)
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


def stem_of(path: str) -> str:
    return file_name(path).removesuffix(".json")


def whole_of(file: File) -> str | None:
    """Path of the file of the session that `file` belongs to; None if it is a run of its own."""
    record = record_on(file.read_all()) or {}
    kind, session, message = kind_of(record), word(record.get("sessionID")) or "", None
    if kind == "part":
        session, message = _message_file(file, record) or ("", None)
    own = file.name if kind == "session" else _session_file(file, session)
    path = message if own is None else _top(file, own)
    if path is None or path == file.name:
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
    return next((path for path in paths if is_there(file, path)), None)


def _session_file(file: File, ident: str) -> str | None:
    """The file of a session, in the folder of one of the projects."""
    projects = map(file_name, sorted(file.folder("../../session").folders))
    return _there(file, [f"../../session/{project}/{name}" for project in projects for name in _names(ident)])


def _message_file(file: File, part: Record) -> tuple[str, str] | None:
    """(Session, file) of the message that a part belongs to: it is in the folder of its message."""
    folder = re.split(r"[/\\]", file.path)[-2:-1]
    ident = word(part.get("messageID")) or "".join(folder)
    session = word(part.get("sessionID"))
    if session is not None:
        sessions = [session] if is_file_name(session) else []
    else:
        sessions = [file_name(path) for path in sorted(file.folder("../../message").folders)]
    if is_file_name(ident):
        for name in sessions:
            if (path := _there(file, [f"../../message/{name}/{ident}.json"])) is not None:
                return name, path
    for name in sessions[:MOST]:  # file names may differ from ids
        for path in sorted(_Files(file).listed(f"../../message/{name}"))[:MOST]:
            with file.other(path) as other:
                if mapping(record_on(other.read_all())).get("id") == ident:
                    return name, path
    return None

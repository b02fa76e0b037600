"""The files in which opencode kept sessions before 1.2: one a session, one a message, one a part.

``storage/session/PROJECT/SESSION.json``, ``storage/message/SESSION/MESSAGE.json``, ``storage/part/MESSAGE/PART.json``.
A run is listed under the file of its session; those of its sub-agents lie beside that. A message names its session and
a part its message, and they lie in folders that are called so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import NO, Chunk
from tracetui.formats.decode import top_names
from tracetui.formats.document import Whole, unchanged, whole
from tracetui.formats.opencode.messages import (
    At,
    Info,
    Message,
    Part,
    Record,
    alone,
    body_of,
    changed,
    info_of,
    part_with,
    record_of,
    tell,
)
from tracetui.formats.opencode.runs import Memory, Session, Teller, Tree, header_of_tree, run_body
from tracetui.formats.scalars import child, word
from tracetui.model import Body, Header, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
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
    place = re.split(r"[/\\]", file.path)[-3:-2]
    if {b"id", b"type"} <= names and place == ["part"] and _KIND.search(head):
        return MAYBE
    return MAYBE if {b"id", b"role"} <= names and place == ["message"] else NO


# ---- the files of a run


class Mark(msgspec.Struct, frozen=True):
    """All files of a run as they were read."""

    own: Whole
    parts: dict[str, Whole | None]
    """By path, relative to the folder of the run's file; None for one that could not be read."""
    folders: tuple[str, ...]
    """Where they are."""
    others: dict[str, Stat]
    """Files that lie there as well, and are those of other runs."""


class _Files:
    """The files of a run, each read once."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._seen: set[str] = set()
        self.problems: list[Problem] = []
        self.parts: dict[str, Whole | None] = {}
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

    def record(self, path: str) -> tuple[Record, Record]:
        """The object in a file, and what is there instead."""
        try:
            with self._file.other(path) as other:
                data = other.read_all()
                self.parts[path] = whole(other, data)
                self._file.other(path, other.stat)  # the run moves while this file does
                found, rest, problem = record_of(data)
                if problem is not None:
                    self.problems.append(Problem(other.path, "", problem))
                return found, rest
        except OSError as error:
            self.parts[path] = None
            self.problems.append(Problem(self._file.path, path, reason_of(error)))
            return {}, {}

    def message(self, path: str) -> Message:
        """The message in a file, with its parts."""
        data, rest = self.record(path)
        ident = word(data.get("id")) or stem_of(path)
        paths = self.names(f"../../part/{ident}") if is_file_name(ident) and ident not in self._seen else []
        own = self._own(ident, path)
        return Message(own, data, tuple([self.part(one) for one in paths]), rest, (path,))

    def part(self, path: str) -> Part:
        """The part in a file."""
        data, rest = self.record(path)
        read = self.parts[path]
        size = 0 if read is None else read.stat.size
        return part_with(self._own(word(data.get("id")) or stem_of(path), path), data, rest, (path,), size)

    def _own(self, ident: str, path: str) -> str:
        """An id that nothing before has: those of spans are to be different."""
        own = path if ident in self._seen else ident
        self._seen.add(own)
        return own


# ---- reading


def summarize(file: File, name: str) -> Iterator[RunSummary | Problem]:
    """The one run of a session and all that belongs to it; both stages read everything."""
    tree, files = _tree(file)
    builder = RunBuilder(RunRef(name, file.path), lambda span: Body())
    builder.add(Teller(tree, Memory()).spans, header=_header(tree, files), problems=files.problems)
    yield builder.summary(modified_at=file.stat.mtime, moving=file.moving)


class StorageReader:
    """The `Reader` of a run in files: all of them at once, and again when one of them has changed."""

    def __init__(self) -> None:
        self._mark: Mark | None = None

    def more(self, file: File) -> Chunk:
        if self._mark is not None and (same := _same(file, self._mark)) is not None:
            self._mark = same
            return Chunk()
        own = whole(file, file.read_all())
        tree, files = _tree(file)
        about = record_of(file.read_all())[0]
        chunk = Chunk(
            spans=Teller(tree, Memory()).spans,
            header=_header(tree, files),
            body=run_body(tree, about if kind_of(about) == "session" else {}),
            problems=files.problems,
            reset=self._mark is not None,
        )
        self._mark = Mark(own, files.parts, tuple(files.folders), files.others)
        return chunk


def _header(tree: Tree, files: _Files) -> Header:
    return msgspec.structs.replace(header_of_tree(tree, stale=False), size=files.size)


def _same(file: File, mark: Mark) -> Mark | None:
    """The mark to go on with if nothing changed, None if it must be read again."""
    own = unchanged(file, mark.own)
    if own is None:
        return None
    there: dict[str, Stat] = {}
    for folder in mark.folders:
        there |= listed_in(file, folder)
    known = mark.parts.keys() - {file.name}
    others = {path: stat for path, stat in there.items() if path not in known}
    if known - there.keys() or any(
        mark.others.get(path) != stat and _names_parent(file, path) for path, stat in others.items()
    ):
        return None
    parts: dict[str, Whole | None] = {}
    for path in known:
        part = mark.parts[path]
        if part is None or part.stat != there[path]:
            return None
        with file.other(path, part.stat) as other:
            parts[path] = part if part.check is None else unchanged(other, part)
            if parts[path] is None:
                return None
    return Mark(own, parts, mark.folders, others)


def _names_parent(file: File, path: str) -> bool:
    """Whether a file that came is one of this run: of a message, a part, or a session that names a parent."""
    if "/" in path:
        return True
    try:
        with file.other(path) as other:
            return b'"parentID"' in other.head
    except OSError:
        return False


def _tree(file: File) -> tuple[Tree, _Files]:
    """The run whose file this is: that of a session, else what stands for itself."""
    record, rest, problem = record_of(file.read_all())
    if problem is not None and not record:
        raise FormatError(problem)
    files = _Files(file)
    if problem is not None:
        files.problems.append(Problem(file.path, "", problem))
    kind = kind_of(record)
    ident = word(record.get("id")) or stem_of(file.name)
    if kind == "session":
        return Tree(_sessions(file, files, info_of(record, ident, (file.name,)))), files
    above = Info(word(record.get("sessionID")) or ident, directory=None)
    told = tell(files.message(file.name)) if kind == "message" else alone(part_with(ident, record, rest, (file.name,)))
    return Tree({above.id: Session(above, (told,))}), files


def _sessions(file: File, files: _Files, root: Info) -> dict[str, Session]:
    """A session and those of its sub-agents, each after the one that started it."""
    beside = _beside(file, files)
    found: dict[str, Session] = {}
    queue, above, parents = [root], {root.id}, {one.id: one.parent for one in beside}
    parent = root.parent
    while parent is not None and parent not in above:  # where they go round in a circle each stands for itself
        above.add(parent)
        parent = parents.get(parent)
    for info in queue:
        if info.id in found:
            continue
        messages = (
            [files.message(path) for path in files.names(f"../../message/{info.id}")] if is_file_name(info.id) else []
        )
        messages.sort(key=lambda one: (_created(one), one.id))
        found[info.id] = Session(info, tuple([tell(one, info.place) for one in messages]))
        queue += [one for one in beside if one.parent == info.id and one.id not in above]
    return found


def _created(message: Message) -> float:
    times = message.data.get("time")
    created = times.get("created") if isinstance(times, dict) else None
    return created if isinstance(created, int | float) and created == created else 0.0


def _beside(file: File, files: _Files) -> list[Info]:
    """The sessions that name another one as their parent, in the folder of the run's file."""
    found = []
    files.folders[""] = None
    for path, stat in sorted(listed_in(file, "").items()):
        if not _names_parent(file, path):
            files.others[path] = stat
        else:
            data, _ = files.record(path)
            found.append(info_of(data, word(data.get("id")) or stem_of(path), (path,)))
    return sorted((one for one in found if one.parent is not None), key=lambda one: (one.created or 0, one.id))


# ---- one span


def body(file: File, span: Span) -> Body:
    """Everything about one span, from the files that tell it."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    files = _Files(file)
    if at.message is None and at.part is None:
        data = files.record(at.session[0])[0] if at.shows and at.session else {}
        return Body(attributes=child(data, "revert") if at.shows == "revert" else data)
    if at.part is not None:
        message = Message("", {}, (msgspec.structs.replace(files.part(at.part[0]), id=at.part_id),))
    else:
        assert at.message is not None
        message = files.message(at.message[0])
    if files.problems and not message.data and not message.parts:
        raise changed(files.problems[0].path)
    return body_of(span, message, _raw(file, at))


def _raw(file: File, at: At) -> bytes:
    """The file of the part, else of the message."""
    place = at.part or at.message or ("",)
    with file.other(place[0]) as other:
        return other.read_all()


# ---- which files belong together: nothing names the project in whose folder a session is

MOST: Final = 200
"""Files that are looked into, where the name of none is the one that is looked for."""
CHAIN: Final = 64
"""Sub-agents of sub-agents are followed so far."""


def kind_of(record: Record) -> str:
    """What a file is: ``session``, ``message`` or ``part``."""
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
    """Path of the file of the session that `file` belongs to; None where it stands for itself."""
    record, _, _ = record_of(file.read_all())
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
            parent = word(record_of(other.read_all())[0].get("parentID")) or ""
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
    """What the file of a session may be called."""
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
    for one in sessions[:MOST]:  # a file need not be called like what is in it
        for path in sorted(listed_in(file, f"../../message/{one}"))[:MOST]:
            with file.other(path) as other:
                if record_of(other.read_all())[0].get("id") == ident:
                    return one, path
    return None

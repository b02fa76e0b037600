"""Which of the files that opencode had before 1.2 belong together.

A message names its session and a part its message, and they lie in folders that are called so. Nothing names the
project in whose folder the session is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tracetui.formats.opencode.records import Record, record_of
from tracetui.formats.scalars import word
from tracetui.sources.base import File, Stat, is_file_name

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

"""Where the file of a thread is.

Each thread is in a file of its own, ``sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl``, which Codex may pack
(``.jsonl.zst``) once nobody has gone on with it for long. A thread's id tells when it began (UUID version 7), and so in
which folder its file is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from tracetui.sources.base import Entry, File

PACKED: Final = ".zst"
LISTED: Final = "codex.folders"
"""In the memo of a file, while it is read: what is in the folders around it."""
_UUID: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def find(file: File, thread: str) -> str | None:
    """Path of a thread's file, relative to the folder of `file`; None if there is none."""
    if _UUID.fullmatch(thread) is None:
        return None
    ends = (f"-{thread}.jsonl", f"-{thread}.jsonl{PACKED}")
    known: dict[str, list[Entry]] = file.memo.setdefault(LISTED, {})
    for folder in _folders(thread):
        if folder not in known:
            known[folder] = file.folder(folder).entries
        paths = (one.path for one in known[folder] if one.stat is not None and one.path.endswith(ends))
        names = [name for path in paths if (name := re.split(r"[/\\]", path)[-1]).startswith("rollout-")]
        if names:
            name = min(names, key=len)  # one that is packed and there unpacked as well is read unpacked
            return f"{folder}/{name}" if folder else name
    return None


def _folders(thread: str) -> Iterator[str]:
    """Where the file of a thread may be: beside that of another, in the folder of its day, among what was put away."""
    yield ""
    found = _UUID.fullmatch(thread)
    try:
        began = datetime.fromtimestamp(int(found[1] + found[2], 16) / 1000, UTC) if found else None
    except (ValueError, OverflowError, OSError):
        began = None
    for days in (0, -1, 1) if began is not None and began.year < 9999 else ():  # the folder is that of the local day
        assert began is not None
        day = (began + timedelta(days)).strftime("%Y/%m/%d")
        yield f"../{day[8:]}"  # the way over the folders above is not known to somebody who stands in them
        yield f"../../{day[5:]}"
        yield f"../../../{day}"
        yield f"../sessions/{day}"
    yield "../../../../archived_sessions"

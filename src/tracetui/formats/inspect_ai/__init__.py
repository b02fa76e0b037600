"""Inspect: logs of evals, archives (``.eval``) and documents (``.json``), one run a sample and epoch.

Facts: the logs of Inspect 0.3.285 and earlier ones, and its source of August 2026. A log is written anew, or extended,
whenever samples are complete; of one that goes on nothing is known yet but these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.decode import top_names
from tracetui.formats.inspect_ai.body import body_of
from tracetui.formats.inspect_ai.document_log import open_log
from tracetui.formats.inspect_ai.log import Log, entries_of, find
from tracetui.formats.inspect_ai.run import EVAL, Task, Told, eval_body, eval_header, header_of, is_shown
from tracetui.model import Body, Header, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.archive import MAGIC
from tracetui.sources.base import File, Stat
from tracetui.sources.versions import settled

LIKELY: Final = 60
_MEMBER: Final = re.compile(rb"(?:_journal/|samples/[^\0]{1,999}?_epoch_\d|(?:header|summaries|reductions)\.json)")
_NAME_AT: Final = 30
"""Bytes of the header before the name of the first member."""
_OWN: Final = frozenset({b"version", b"eval", b"samples", b"plan", b"results", b"stats", b"status"})
_TASK: Final = re.compile(rb'"task"\s*:\s*"')
_SPEC: Final = re.compile(rb'"(?:task_id|run_id|eval_id)"\s*:\s*"')


class Mark(msgspec.Struct, frozen=True):
    """Cursor: which version of the file was read, and a checksum of all that it said of the run."""

    stat: Stat
    check: int
    current: bool
    """No change can leave the same stat behind."""


class Inspect:
    """The format; see `tracetui.formats.base.Format` and `Homed`."""

    name = "inspect"
    title = "Inspect AI log"
    home_variables = ("INSPECT_LOG_DIR",)

    def sniff(self, file: File) -> int:
        head = file.head
        if head.startswith(MAGIC):
            if not _MEMBER.match(head, _NAME_AT):
                return NO
            return CERTAIN if b"_journal/start.json" in head or file.name.endswith(".eval") else LIKELY
        if b'"eval"' not in head or not _TASK.search(head):
            return NO
        found = _OWN.intersection(top_names(head))
        if b"eval" not in found or len(found) < 3:
            return NO
        return CERTAIN if _SPEC.search(head) else LIKELY

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        """The list stage reads what a log says of its samples in short, the deep stage each sample."""
        log = open_log(file)
        shown = is_shown(log)
        yield from log.problems
        if shown:
            yield (_counted if deep else _quick)(file, RunRef(self.name, file.path, EVAL), eval_header(log))
        task = Task(log)
        for entry in entries_of(log):
            ref = RunRef(self.name, file.path, entry.key)
            if deep:
                told = Told(log, entry)
                yield _counted(file, ref, told.header, told)
            else:
                yield _quick(file, ref, header_of(task, entry, entry.told))

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """All of a run in one chunk, once the log has it. Nothing while what it says of the run stays the same."""
        if isinstance(cursor, Mark) and cursor.current and cursor.stat == file.stat:
            return Chunk(cursor=cursor)
        log = open_log(file, keep=True)
        mark = Mark(file.stat, log.check(ref.key or ""), settled(file.stat))
        if isinstance(cursor, Mark) and cursor.check == mark.check:
            return Chunk(cursor=mark)
        chunk = _chunk(log, ref)
        return msgspec.structs.replace(chunk, cursor=mark, reset=cursor is not START)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the events that tell the span, and what these refer to."""
        return body_of(file, ref.key, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        """Not in the home folder: below the folder that one works in."""
        return (PurePath(environ.get("INSPECT_LOG_DIR") or "logs"),)


def _chunk(log: Log, ref: RunRef) -> Chunk:
    if ref.key == EVAL:
        return Chunk(header=eval_header(log), body=eval_body(log))
    entry = find(log, ref.key or "")
    if entry is None:
        raise FormatError("the sample is not in the log", ref.key or "")
    told = Told(log, entry)
    return Chunk(spans=told.spans, header=told.header, body=told.body(), problems=told.problems)


def _counted(file: File, ref: RunRef, header: Header, told: Told | None = None) -> RunSummary:
    builder = RunBuilder(ref, lambda span: Body())
    if told is None:
        builder.add((), header=header)
    else:
        builder.add(told.spans, header=header, problems=told.problems)
    return builder.summary(modified_at=file.stat.mtime, moving=file.moving)


def _quick(file: File, ref: RunRef, header: Header) -> RunSummary:
    return summary_of(ref, header, None, modified_at=file.stat.mtime, moving=file.moving)

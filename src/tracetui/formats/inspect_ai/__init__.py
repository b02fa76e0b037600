"""Inspect: logs of evals, archives (``.eval``) and documents (``.json``), one run a sample and epoch.

Facts: the logs of Inspect 0.3.285 and earlier ones, and its source of August 2026. Inspect rewrites or extends a log
whenever samples are complete; a running log has only these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.decode import top_names
from tracetui.formats.document import summary
from tracetui.formats.inspect_ai.log import Log, open_log
from tracetui.formats.inspect_ai.run import EVAL, SampleRun, Task, body_of, eval_body, eval_header, header_of, is_shown
from tracetui.model import Body, Header, Problem, RunRef, RunSummary, Span
from tracetui.sources.archive import MAGIC
from tracetui.sources.base import File, Stat, settled

LIKELY: Final = 60
_MEMBER: Final = re.compile(rb"(?:_journal/|samples/[^\0]{1,999}?_epoch_\d|(?:header|summaries|reductions)\.json)")
_NAME_OFFSET: Final = 30
"""Bytes of the header before the name of the first member."""
_OWN: Final = frozenset({b"version", b"eval", b"samples", b"plan", b"results", b"stats", b"status"})
_TASK: Final = re.compile(rb'"task"\s*:\s*"')
_SPEC: Final = re.compile(rb'"(?:task_id|run_id|eval_id)"\s*:\s*"')


class Inspect:
    """The format; see `tracetui.formats.base.Format` and `Homed`."""

    name = "inspect"
    title = "Inspect AI log"
    home_variables = ("INSPECT_LOG_DIR",)

    def sniff(self, file: File) -> int:
        head = file.head
        if head.startswith(MAGIC):
            if not _MEMBER.match(head, _NAME_OFFSET):
                return NO
            return CERTAIN if b"_journal/start.json" in head or file.name.endswith(".eval") else LIKELY
        if b'"eval"' not in head or not _TASK.search(head):
            return NO
        names = _OWN.intersection(top_names(head))
        if b"eval" not in names or len(names) < 3:
            return NO
        return CERTAIN if _SPEC.search(head) else LIKELY

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        """The list stage reads the summaries of an archive's samples, the deep stage each sample."""
        log = open_log(file)
        is_listed, task = is_shown(log), Task(log)
        yield from log.problems
        if is_listed:
            yield self._summary(file, EVAL, eval_header(log, task))
        for entry in log.runs():
            run = SampleRun(log, entry, task) if deep else None
            yield self._summary(file, entry.key, run.header if run else header_of(task, entry, entry.record), run)

    def open(self, file: File, ref: RunRef) -> LogReader:
        return LogReader(ref.key or "")

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the events of the span, and their references."""
        return body_of(file, ref.key, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        """Not in the home folder: below the folder that one works in."""
        return (PurePath(environ.get("INSPECT_LOG_DIR") or "logs"),)

    def _summary(self, file: File, key: str, header: Header, run: SampleRun | None = None) -> RunSummary:
        spans, problems = ([], []) if run is None else (run.spans, run.problems)
        chunk = Chunk(spans=spans, header=header, problems=problems)
        return summary(RunRef(self.name, file.path, key), file, chunk, deep=run is not None or key == EVAL)


class LogReader:
    """Reads one run in one chunk when the log has it, and again when it changes."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._stat: Stat | None = None
        """The version of the file that was read; None while a change may leave the same stat behind."""
        self._check: int | None = None

    def more(self, file: File) -> Chunk:
        if self._stat == file.stat:
            return Chunk()
        log = open_log(file, cache=True)
        check = log.check(self._key)
        chunk = Chunk() if check == self._check else self._read(log)
        self._stat, self._check = file.stat if settled(file.stat) else None, check
        return chunk

    def _read(self, log: Log) -> Chunk:
        task = Task(log)
        if self._key == EVAL:
            chunk = Chunk(header=eval_header(log, task), body=eval_body(log))
        else:
            entry = log.find(self._key)
            if entry is None:
                raise FormatError("the sample is not in the log", self._key)
            chunk = SampleRun(log, entry, task).chunk()
        return chunk if self._check is None else msgspec.structs.replace(chunk, reset=True)

"""Trials of Harbor (formerly Terminal-Bench): how a run of an agent on a task was scored, in ``result.json``.

A trial directory is one run. It is listed under the agent's log, in the format of that log, with rewards, failed
checks, exception and phases of the trial; under ``result.json`` where no log can be read. Facts: Harbor's models.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.decode import decode, top_names
from tracetui.formats.document import DocumentReader, summary
from tracetui.formats.harbor.files import AGENT, NAME, is_result, trial_of
from tracetui.formats.harbor.trial import PhaseRef, Trial
from tracetui.model import Body, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.sources.base import HEAD_SIZE, File, file_name

LIKELY: Final = 60
_NAMES: Final = frozenset({b"task_name", b"trial_name"})
_OTHERS: Final = frozenset({b"agent_info", b"agent_result", b"exception_info", b"task_checksum", b"verifier_result"})
_NAMED: Final = 8
"""Files of the agent that a problem names."""


class Harbor:
    """The format; see `tracetui.formats.base.Format`."""

    name = NAME
    title = "Harbor trial"

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"trial_name"' not in head:
            return NO
        names = frozenset(top_names(head))
        if not names >= _NAMES:
            return NO
        return CERTAIN if names & _OTHERS else LIKELY if len(head) == HEAD_SIZE else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        chunk = _read(file, file.read_all())
        yield summary(RunRef(self.name, file.path), file, chunk, deep=deep)

    def open(self, file: File, ref: RunRef) -> Reader:
        return DocumentReader(_read)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the record of the phase."""
        if not isinstance(span.at, PhaseRef):
            raise FormatError("this span comes from another format")
        return _trial(file, file.read_all())[0].phase_body(span.at)


def _trial(file: File, data: bytes) -> tuple[Trial, str | None]:
    """The trial, and a note if its result had to be read leniently."""
    result: Any
    result, note = decode(data)
    if not isinstance(result, dict) or not is_result(result):
        raise FormatError("not the result of a trial")
    return trial_of(file, "", None, result, len(data), {}), note


def _read(file: File, data: bytes) -> Chunk:
    """A trial without the spans of its agent."""
    trial, note = _trial(file, data)
    header = trial.header(trial.opening(file.name.removesuffix(".json"), len(data)))
    problems = [] if note is None else [Problem(file.path, "", f"read leniently: {note}")]
    return Chunk(
        spans=trial.spans,
        header=replace(header, usage=trial.usage),
        body=trial.body(RunBody()),
        problems=(*problems, *trial.problems(file.path), *_unread_logs(file)),
    )


def _unread_logs(file: File) -> list[Problem]:
    """That the agent left files, which are not read here."""
    folder = file.folder(AGENT)
    names = [file_name(entry.path) for entry in folder.entries if entry.skipped is None]
    names = sorted([*names, *(f"{file_name(path)}/" for path in folder.folders)])
    if not names:
        return []
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [Problem(file.path, f"{AGENT}/", f"read without the agent log: {', '.join(names[:_NAMED])}{more}")]

"""An agent log in a trial directory, read by the format that it is of, with what the trial says about the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tracetui.formats.base import Chunk, Format, Reader
from tracetui.formats.harbor.files import Position, Snapshot, load, log_position, position, reload
from tracetui.formats.harbor.trial import AGENT_PHASE, PhaseRef, Trial
from tracetui.formats.record_cache import changed
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.tally import CONTAINERS
from tracetui.sources.base import File


class InTrial:
    """A format of agent logs: a log that is that of a trial gives the run of the trial."""

    def __init__(self, fmt: Format) -> None:
        self.name, self.title = fmt.name, fmt.title
        self._format = fmt

    def sniff(self, file: File) -> int:
        return self._format.sniff(file)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        at = position(file.path)
        trial, parent = (None, None) if at is None else membership(file, at, load(file, at.root, at.step))
        for item in self._format.summarize(file, deep=deep):
            if isinstance(item, RunSummary) and item.ref.key is None:
                yield trial.summary(item) if trial is not None else _below(item, parent)
            else:
                yield item

    def open(self, file: File, ref: RunRef) -> Reader:
        at = position(file.path)
        if at is None or ref.key is not None:
            return self._format.open(file, ref)
        return TrialReader(self._format, ref, at)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        if not isinstance(span.at, PhaseRef):
            return self._format.body(file, ref, _outside(span))
        at = position(file.path)
        trial = None if at is None else load(file, at.root, at.step).trial
        if trial is None:
            raise changed()
        return trial.phase_body(span.at)


def _below(run: RunSummary, parent: str | None) -> RunSummary:
    """The run of a further log of a trial, below the run of the trial."""
    if parent is None:
        return run
    return run.replace(parent=run.parent or parent, is_session=False, last=None)


def in_trial(fmt: Format, file: File) -> Format:
    """The format to read `file` with, which is of the format `fmt`: with its trial if it may be in one."""
    return fmt if log_position(file.path, fmt.name) is None else InTrial(fmt)


def trial_folders(fmt: Format, path: str) -> Sequence[str]:
    """Folders, relative to that of the file at `path`, in which files of its trial may be."""
    at = log_position(path, fmt.name)
    return () if at is None else (at.root, f"{at.root}verifier")


def membership(file: File, at: Position, snapshot: Snapshot) -> tuple[Trial | None, str | None]:
    """The trial whose log `file` is; else the id of the run in that log, if it is another file of such a trial."""
    if not snapshot.begun:
        return None, None
    from tracetui.formats.harbor.logs import (
        find_log,
    )  # which asks all formats, and so needs the guard, which needs this

    log = find_log(file, at.agent)
    if log is None:
        return None, None
    return (snapshot.trial, None) if not log.run else (None, log.run)


class TrialReader:
    """Reads an agent log on, and gives all of it again when what the trial says has changed."""

    def __init__(self, fmt: Format, ref: RunRef, at: Position) -> None:
        self._format, self._ref, self._at = fmt, ref, at
        self._log: Reader | None = None
        self._snapshot: Snapshot | None = None
        self._trial: Trial | None = None
        self._parent: str | None = None
        self._reset = self._begun = self._has_usage = False
        self._header: Header | None = None
        """Of the log, as it was given last."""

    def more(self, file: File) -> Chunk:
        self._look_at_trial(file)
        if self._log is None:
            self._log = self._format.open(file, self._ref)
        chunk = self._log.more(file)
        reset, self._reset = self._reset or chunk.reset, False
        if chunk.reset:
            self._begun = self._has_usage = False
        if self._trial is None:
            header = chunk.header
            if header is not None and self._parent is not None:
                header = replace(header, parent=header.parent or self._parent)
            return replace(chunk, header=header, reset=reset)
        return self._complete(chunk, self._trial, reset)

    def _look_at_trial(self, file: File) -> None:
        """Begin again if the trial has changed."""
        root, step = self._at.root, self._at.step
        before = self._snapshot
        now = load(file, root, step) if before is None else reload(file, root, step, before)
        if now is before:
            return
        self._snapshot = now
        trial = self._trial, self._parent
        self._trial, self._parent = membership(file, self._at, now)
        if self._log is not None and trial != (self._trial, self._parent):
            self._log, self._reset = None, True
            self._begun = self._has_usage = False

    def _complete(self, chunk: Chunk, trial: Trial, reset: bool) -> Chunk:
        begins, self._begun = not self._begun, True
        phases = trial.spans if begins else ()
        has_agent = any(span.id == AGENT_PHASE for span in trial.spans)
        self._has_usage |= any(span.usage and span.operation not in CONTAINERS for span in chunk.spans)
        self._header = chunk.header or self._header
        header = self._header if begins or chunk.spans or chunk.header else None
        if header is not None:
            usage = header.usage if header.usage or self._has_usage else trial.usage
            header = trial.header(replace(header, usage=usage))
        return replace(
            chunk,
            spans=(*phases, *(map(_inside, chunk.spans) if has_agent else chunk.spans)),
            header=header,
            body=trial.body(chunk.body or RunBody()) if begins or chunk.body else None,
            problems=(*chunk.problems, *(trial.problems(self._ref.path) if begins else ())),
            reset=reset,
        )


def _inside(span: Span) -> Span:
    """A span of the log, below the phase in which the agent ran."""
    return span if span.parent_id is not None else replace(span, parent_id=AGENT_PHASE)


def _outside(span: Span) -> Span:
    """The same as its format made it."""
    return replace(span, parent_id=None) if span.parent_id == AGENT_PHASE else span

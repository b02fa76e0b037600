"""The files of a trial directory: where they are, what was read of them, and its agent log as the run of the trial.

Layout (Harbor's ``TrialPaths``): ``config.json``, written first; ``agent/``, the logs of the agent; ``verifier/``, in
which tests may write ``ctrf.json``; ``result.json``, written when the trial has ended. A trial of several steps has
``agent`` and ``verifier`` in ``steps/NAME`` instead. A job is a folder of trials, with a ``result.json`` of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk, Format, Reader
from tracetui.formats.bodies import changed
from tracetui.formats.decode import decode
from tracetui.formats.document import Fingerprint, fingerprint, unchanged
from tracetui.formats.harbor.trial import (
    AGENT_PHASE,
    CHECKS,
    HARNESS_LOG,
    RESULT,
    VERIFIER_LOGS,
    PhaseRef,
    Trial,
    in_step,
)
from tracetui.formats.scalars import child, mapping, sequence
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.tally import CONTAINERS
from tracetui.sources.base import File, LinkLost

NAME: Final = "harbor"
"""Of the format: its files are results."""
AGENT: Final = "agent"
_OF_VERIFIER: Final = frozenset({CHECKS, *VERIFIER_LOGS})
_COMPANIONS: Final = (RESULT, HARNESS_LOG, *(path.rpartition("/")[2] for path in _OF_VERIFIER))
"""Names of results, of reports of checks, and of logs of the verifier and the harness."""
LARGEST: Final = 32 << 20
"""Bytes of a result or report that is read."""
_MAX_RESULT: Final = 1 << 20
"""Bytes of a result up to which token ids and probabilities of the model calls are shown as well."""
_ROLLOUTS: Final = "rollout_details"
_MEMO: Final = "harbor trial"
_OWN: Final = frozenset({"exception_info", "trial_name", "verifier_result"})
"""Fields that identify a result."""


_CONFIG: Final = "config.json"
_CONFIGURED: Final = frozenset({"agent", "task", "trial_name"})
"""Fields that identify the configuration of a trial."""


class Position(NamedTuple):
    """Where a file of a trial is: paths relative to its own folder."""

    root: str
    """The trial directory."""
    agent: str
    """The agent's log folder in it."""
    step: str | None
    """Name of the step that it is of; None in a trial of one step."""


def companion(path: str) -> Position | None:
    """The position of a file of a trial that is no agent log; None for any other file, going by its name."""
    if not path.endswith(_COMPANIONS):  # nearly every file
        return None
    *folders, name = re.split(r"[/\\]", path)
    if name in (RESULT, HARNESS_LOG):
        return Position("", f"{AGENT}/", None)
    if "/".join([*folders[-1:], name]) not in _OF_VERIFIER:
        return None
    step = _step(folders[:-1])
    return Position("../" if step is None else "../../../", f"../{AGENT}/", step)


def position(path: str) -> Position | None:
    """The position of the file at `path`, None for one that is in no folder ``agent``."""
    folders = re.split(r"[/\\]", path)[:-1] if AGENT in path else ()
    if AGENT not in folders:
        return None
    below = folders[::-1].index(AGENT)
    step = _step(folders[: len(folders) - 1 - below])
    return Position("../" * (below + (1 if step is None else 3)), "../" * below, step)


def log_position(path: str, name: str) -> Position | None:
    """The position of an agent log that the format `name` claims, None in no folder ``agent``.

    None for a result as well: it is a trial of its own, even below the ``agent`` folder of another trial.
    """
    return None if name == NAME else position(path)


def _step(folders: Sequence[str]) -> str | None:
    """Name of the step that a folder is of; None for the folder of a trial."""
    return folders[-1] if len(folders) > 1 and folders[-2] == "steps" else None


def is_result(record: dict[str, Any]) -> bool:
    """Whether an object is the result of a trial (that of a job has other fields)."""
    return not _OWN.isdisjoint(record)


class Snapshot(msgspec.Struct, frozen=True):
    """A trial as it was read, and the versions of its files."""

    trial: Trial | None
    """None while it has no result."""
    begun: bool
    """There is a trial."""
    versions: dict[str, Fingerprint | None]
    """By path; None for a file that could not be read."""


def load(file: File, root: str, step: str | None = None) -> Snapshot:
    """The trial in the directory `root`, relative to the folder of `file`. Raises `LinkLost`.

    It is read once per open file. A result that cannot be read, or is of something else, gives no trial.
    """
    cache: dict[tuple[str, str | None], Snapshot] = file.memo.setdefault(_MEMO, {})
    if (root, step) not in cache:
        cache[root, step] = _load(file, root, step)
    return cache[root, step]


def _load(file: File, root: str, step: str | None) -> Snapshot:
    versions: dict[str, Fingerprint | None] = {}
    result, _ = _read(file, root + RESULT, versions)
    if not isinstance(result, dict) or not is_result(result):
        config, _ = _read(file, root + _CONFIG, versions)
        return Snapshot(None, isinstance(config, dict) and config.keys() >= _CONFIGURED, versions)
    version = versions[root + RESULT]
    size = 0 if version is None else version.stat.size
    return Snapshot(trial_of(file, root, step, result, size, versions), True, versions)


def trial_of(
    file: File, root: str, step: str | None, result: dict[str, Any], size: int, versions: dict[str, Fingerprint | None]
) -> Trial:
    """The trial with that result of `size` bytes; adds the versions of the other files that are read."""
    notes: list[tuple[str, str]] = []
    where = in_step(step) + CHECKS
    checks, failure = _read(file, root + where, versions)
    if failure:
        notes.append((where, failure))
    if size > _MAX_RESULT and _drop_rollouts(result):
        notes.append((RESULT, f"{_ROLLOUTS} not shown: the file has {size >> 20} MiB"))
    logs = {
        name: log
        for name in (*(in_step(step) + log for log in VERIFIER_LOGS), HARNESS_LOG)
        if (log := _read_log(file, root + name, versions))
    }
    return Trial(result, checks, step, tuple(notes), logs)


def reload(file: File, root: str, step: str | None, before: Snapshot) -> Snapshot:
    """`before` itself, if no file of the trial has changed since; else the current trial. Raises `LinkLost`."""
    for path, version in before.versions.items():
        if not _is_same(file, path, version):
            file.memo.pop(_MEMO, None)
            return load(file, root, step)
    return before


def _is_same(file: File, path: str, version: Fingerprint | None) -> bool:
    try:
        with file.other(path) as other:
            stat = other.stat  # raises for a file that is not there
            return version is not None and version.stat == stat and unchanged(other, version) is not None
    except LinkLost:
        raise
    except OSError:  # perhaps it never could be read
        return version is None


def _read(file: File, path: str, versions: dict[str, Fingerprint | None]) -> tuple[Any, str]:
    """The decoded JSON file at `path`, None where there is none; and why one that is there cannot be read."""
    versions[path] = None
    try:
        with file.other(path) as other:
            if other.stat.size > LARGEST:
                versions[path] = Fingerprint(other.stat, None)
                return None, f"not read: {other.stat.size >> 20} MiB, more than {LARGEST >> 20} MiB"
            data = other.read_all()
            versions[path] = fingerprint(other, data)
    except LinkLost:
        raise
    except OSError:
        return None, ""
    try:
        return decode(data)[0], ""
    except FormatError as error:  # it may be being written
        return None, error.reason


def _read_log(file: File, path: str, versions: dict[str, Fingerprint | None]) -> str:
    """The text of the file at `path`, of a long one its last `MOST_BYTES`; empty where there is none."""
    from tracetui.formats.grading import MOST_BYTES  # see `Trial`

    versions[path] = None
    try:
        with file.other(path) as other:
            size = other.stat.size
            data = other.read_all() if size <= MOST_BYTES else other.read(size - MOST_BYTES, MOST_BYTES)
            versions[path] = fingerprint(other, data) if size <= MOST_BYTES else Fingerprint(other.stat, None)
    except LinkLost:
        raise
    except OSError:
        return ""
    return data.decode("utf-8", "replace")


def _drop_rollouts(result: dict[str, Any]) -> bool:
    """Remove the token ids and probabilities from a result; whether there were any."""
    records = (result, *map(mapping, sequence(result.get("step_results"))))
    dropped = [child(record, "agent_result").pop(_ROLLOUTS, None) for record in records]
    return dropped.count(None) < len(dropped)


# ---- an agent log in a trial directory, read by its format, with what the trial says about the run


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
    from tracetui.formats.harbor.logs import find_log  # asks all formats, so it needs the guard, which needs this

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

"""Which file of a trial directory its run is listed under.

Harbor leaves up to three logs of one agent: ``agent/trajectory.json``, which it converts from the agent's own sessions
when the agent has ended; those sessions (``agent/sessions/…``); what the agent printed (``agent/*.txt``). The first
of these that can be read is the log of the trial. The others repeat it and are parts of its run; only sessions
without a trajectory are listed as well, as runs that it started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import NO, Format
from tracetui.formats.harbor.files import AGENT, NAME, Position, companion, load, log_position
from tracetui.formats.harbor.trial import RESULT, Trial
from tracetui.model import RunSummary
from tracetui.sources.base import SHARED, BudgetSpent, File, LinkLost, file_name
from tracetui.sources.file_views import shared

TRAJECTORY: Final = "trajectory.json"
_ATIF: Final = "atif"
_MOST: Final = 256
"""Files of an agent that are considered."""
_DEPTH: Final = 8
_CACHED: Final = 4_096
_CACHE: Final = "harbor logs"
"""Key in `SHARED`: the id of the run in each version of a file, None where it holds not one run."""
_LATER: Final = {"jsonl": 0, "json": 0, "txt": 2}


class Log(NamedTuple):
    """The log of a trial."""

    path: str
    run: str
    """Id of its run; empty for a file that is its own trial's log."""


def main_file(file: File, chosen: Format | None) -> str | None:
    """Path of the file that lists the trial which `file` is a part of; None for a file that is no part of another.

    `chosen` is the format that claims `file`. Raises `LinkLost`, or `FormatError` if that is unknown.
    """
    with guard.BOUNDARY:
        at = companion(file.path)
        trial = None if at is None else load(file, at.root, at.step).trial
        if at is not None and trial is not None:
            return _owner(file, at, trial)
        if chosen is None:
            return None
        at = log_position(file.path, chosen.name)
        if at is None or not load(file, at.root, at.step).begun:
            return None
        log = find_log(file, at.agent)
        if log is None or not log.run:
            return None
        converted = file_name(log.path) == TRAJECTORY and chosen.name != _ATIF
        printed = file.name.endswith(".txt") and not log.path.endswith(".txt")
        return log.path if converted or printed else None


def _owner(file: File, at: Position, trial: Trial) -> str | None:
    """The file that lists the trial of a result, or of a report of checks.

    None for a result that lists it itself, and for the report beside a result that the format does not claim.
    """
    log = None if trial.steps and at.step is None else find_log(file, at.agent)
    if log is not None:
        return log.path
    if not at.root and file.name == RESULT:
        return None
    with file.other(at.root + RESULT) as result:
        return result.path if registry.score(registry.load(NAME), result) > NO else None


def find_log(file: File, agent: str) -> Log | None:
    """The log of the trial whose agent wrote to the folder `agent`, relative to that of `file`; None without one."""
    own = os.path.normpath(file.path)
    for path in _candidates(file, agent):
        with file.other(path) as other:
            if os.path.normpath(other.path) == own:
                return Log(other.path, "")
            run = _only_run_id(file, other)
            if run:
                return Log(other.path, run)
    return None


def _candidates(file: File, agent: str) -> Iterator[str]:
    """Files that may be the log, the likeliest first: relative to the folder of `file`."""
    names = [file_name(entry.path) for entry in file.folder(agent).entries if entry.skipped is None]
    if TRAJECTORY in names:
        yield agent + TRAJECTORY
    paths = [agent + name for name in names if name != TRAJECTORY]
    folders = [(path, 1) for path in _folders(file, agent)]
    while folders and len(paths) < _MOST:
        folder, depth = folders.pop()
        paths += [folder + file_name(entry.path) for entry in file.folder(folder).entries if entry.skipped is None]
        if depth < _DEPTH:
            folders += [(path, depth + 1) for path in _folders(file, folder)]
    ranked = [
        (_LATER[ending], path.count("/") == agent.count("/"), path)
        for path in paths[:_MOST]
        if (ending := path.rpartition(".")[2]) in _LATER
    ]
    yield from (path for *_, path in sorted(ranked))


def _folders(file: File, at: str) -> list[str]:
    """The folders in that of an agent; one named ``agent`` is the log folder of another trial (see `position`)."""
    names = map(file_name, sorted(file.folder(at).folders))
    return [f"{at}{name}/" for name in names if name != AGENT]


def _only_run_id(file: File, other: File) -> str:
    """The id of the only run in another file; empty where it holds none, several, or a part of one."""
    cache: dict[Any, Any] = file.memo.get(SHARED, {}).setdefault(_CACHE, {})
    try:
        if len(cache) >= _CACHED:
            cache.clear()
        return shared(file, cache, (other.path, other.stat), lambda: _only_run(other))
    except LinkLost:
        raise
    except BudgetSpent:  # a large log is a log
        return other.name
    except (OSError, FormatError):
        return ""


def _only_run(other: File) -> str:
    fmt = registry.detect(other, registry.load(_ATIF) if other.name == TRAJECTORY else None)
    if fmt is None or log_position(other.path, fmt.name) is None or guard.main_file(fmt, other) is not None:
        return ""
    items = guard.summarize(fmt, other, deep=False, alone=True)
    runs = [item for item in items if isinstance(item, RunSummary)]
    return runs[0].id if len(runs) == 1 and runs[0].ref.key is None else ""

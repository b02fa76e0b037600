"""Effects of many runs: read each run once, derive its effects, and forget it."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tracetui.analysis.audit import Audit, Finding, effect_facts
from tracetui.analysis.effects import RunEffects, run_effects
from tracetui.analysis.files import (
    FileChanges,
    FileHistory,
    FilesReport,
    Look,
    repository_look,
    standing_roots,
    state_of,
)
from tracetui.live.jobs import GROWTH, Job, Step, by_file, read_steps
from tracetui.live.load import FileCaches, kept_open, read_run
from tracetui.model import Problem, Run, RunRef, RunSummary
from tracetui.sources.base import Source
from tracetui.sources.checkout import Checkout, repository_of
from tracetui.sources.local import STDIN, is_confined
from tracetui.sources.locations import checkpoint_repository, is_remote
from tracetui.store.facts import EffectFacts
from tracetui.store.relations import copies_of

_HEAD: Final = 8 << 10
"""Bytes of a file that show whether it is text."""
_LEAST_RECORD: Final = 16
"""Bytes of the first line of a record by which it is looked for."""


def effects_of_runs(
    source: Source, runs: Sequence[RunSummary], problems: list[Problem]
) -> Iterator[tuple[RunSummary, RunEffects]]:
    """Yield the effects of the runs, oldest first; copies of a run are skipped. Adds what can't be read to `problems`.

    Raises `LinkLost`.
    """
    caches, known = FileCaches(), set(problems)
    for summary in oldest_first(runs):
        cache = caches.for_run(summary.ref)
        run = read_run(source, summary.ref, cache)
        problems += [problem for problem in run.problems if problem not in known]
        if run.spans or not run.problems:
            yield summary, effects_of(source, run, cache)


def effects_of(source: Source, run: Run, cache: dict[str, Any] | None = None) -> RunEffects:
    """The effects of a run; `cache` as in `live.load.Reader`."""
    with kept_open(source, run, cache) as opened:
        return run_effects(opened)


def record_lines(source: Source, findings: Sequence[Finding]) -> dict[tuple[RunRef, str], int]:
    """The line in the file, from 1, at which the record of each finding's call begins, by run and span.

    Left out are databases, files that can't be read at once, and records that aren't in the file as such.
    """
    lines: dict[tuple[RunRef, str], int] = {}
    calls = {(finding.run, finding.span): None for finding in findings if finding.span is not None}
    caches = FileCaches()
    for ref in by_file([*dict.fromkeys(ref for ref, _ in calls)]):
        try:
            with source.open(ref.path) as file:
                data = file.read_all()
        except OSError:
            continue
        if b"\0" in data[:_HEAD]:
            continue
        run = read_run(source, ref, caches.for_run(ref))
        at = line = 0
        for span in run.spans:
            if (ref, span.id) not in calls:
                continue
            record = run.load(span).raw.partition(b"\n")[0]
            begin = data.find(record, at) if len(record) >= _LEAST_RECORD else -1
            if begin >= 0:
                line += data.count(b"\n", at, begin)
                lines[ref, span.id], at = line + 1, begin
    return lines


def oldest_first(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """The runs without copies of others, oldest first."""
    copies = copies_of(runs)
    ordered = sorted(runs, key=lambda run: (run.started_at is None, run.started_at or 0.0, run.ref))
    return [run for run in ordered if run.ref not in copies]


def named_repository(repo: str | None, places: Sequence[str]) -> str | None:
    """Return the repository that the user named: `repo`, that of the checkpoints, else that of the current folder.

    None if there is none, for traces of other machines, and in a process that may only read some paths (for agents).
    """
    if is_confined() or any(place == STDIN or is_remote(place) for place in places):
        return None
    return repo or repository_of(next(filter(None, map(checkpoint_repository, places)), os.curdir))


def find_look(repo: str | None, places: Sequence[str], histories: Sequence[FileHistory]) -> Look | None:
    """Return a look into the repository of `named_repository`; None without one."""
    folder = named_repository(repo, places)
    if folder is None:
        return None
    checkout = Checkout(folder)
    standing = standing_roots(checkout.root, histories, checkout.read, is_named=repo is not None)
    return repository_look(checkout.root, checkout.read, standing)


def read_facts(source: Source, ref: RunRef) -> EffectFacts:
    """Read a run, and return what queries ask about its effects. Raises `LinkLost`."""
    return effect_facts(ref, effects_of(source, read_run(source, ref)))


class EffectsResult(NamedTuple):
    """What the runs read so far did."""

    audit: Audit
    files: FilesReport
    runs: int
    """Number of runs read."""
    facts: Mapping[RunRef, EffectFacts]
    """For queries."""


def effects_job(runs: Sequence[RunSummary], places: Sequence[str]) -> Job:
    """Return a job that finds the files that runs changed and the findings of the audit.

    `places`: the roots of the traces. Files are compared with the repository of the current folder, see `find_look`.
    """
    wanted = oldest_first(runs)
    changes, audit, problems = FileChanges(), Audit(findings=[], runs=[]), list[Problem]()
    facts: dict[RunRef, EffectFacts] = {}
    latest: EffectsResult | None = None

    def work(source: Source) -> Generator[Step, None, None]:
        caches = FileCaches()
        for summary in wanted:
            for_run = caches.for_run(summary.ref)
            run = yield from _read(source, summary, for_run, problems)
            if run is not None:
                changes.add(summary, run)
                audit.add(summary, run)
                facts[summary.ref] = effect_facts(summary.ref, run)
            yield Step(done=1)

    def result() -> EffectsResult:
        nonlocal latest
        number = len(audit.runs)
        if latest is None or number >= max(latest.runs + 1, latest.runs * GROWTH) or number == len(wanted):
            histories = changes.histories()
            look = find_look(None, places, histories)
            files = [(history, state_of(history, look)) for history in histories]
            snapshot = Audit([*audit.findings], [*audit.runs], audit.allowed)
            latest = EffectsResult(snapshot, FilesReport(files, changes.tried, (*problems,)), number, {**facts})
        return latest

    return Job("effects", len(wanted), work, result)


def _read(
    source: Source, summary: RunSummary, cache: dict[str, Any], problems: list[Problem]
) -> Generator[Step, None, RunEffects | None]:
    steps = read_steps(source, summary.ref, cache)
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            return None if stop.value is None else effects_of(source, stop.value, cache)
        problems += [problem for problem in step.new if isinstance(problem, Problem)]
        yield step

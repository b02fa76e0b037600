"""Run jobs that read or follow many runs: one thread, one job at a time.

A job yields to everything else: while the app handles mail, and for a moment after each key that causes a read.

The jobs here aggregate over whole runs: statistics, contrast and run trees. Searches are in `live.search`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Set
from contextlib import closing
from itertools import islice, zip_longest
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.analysis.contrast import Contrast, Feature, Features, Kind, comparable, contrast, features
from tracetui.analysis.run_tree import RunTree, StepRef, fork_arguments, run_tree
from tracetui.analysis.statistics import By, Row, Statistics
from tracetui.analysis.tasks import Trial
from tracetui.analysis.triage import Group
from tracetui.diff.comparison import Comparison
from tracetui.errors import TracetuiError
from tracetui.live.load import FileCaches, Reader
from tracetui.live.mailbox import Mailbox, Throttle
from tracetui.live.readers import Readers
from tracetui.model import Operation, PassRule, Run, RunRef, RunSummary, TaskKey
from tracetui.model.build import nested_runs
from tracetui.model.masked import masked_bodies, unmasked
from tracetui.redact import Redactor
from tracetui.sources.base import LinkLost, Source
from tracetui.store.address import span_title
from tracetui.store.claims import NO_SHARES, Share, Shares
from tracetui.store.relations import Relations

NEWS_SECONDS: Final = 0.05
"""How often progress is reported."""
REST_SECONDS: Final = 0.1
"""Pause after a key that causes another read."""


class Step(NamedTuple):
    """The result of one step of a job."""

    new: tuple[Any, ...] = ()
    """New results, to add to earlier ones."""
    done: int = 0
    """Files or runs finished."""
    more: bool = False
    """Whether the job ended early because there are too many results."""


class Job(msgspec.Struct, frozen=True, eq=False):
    """A job that reads many runs. Compared by identity."""

    name: str
    """``grep``, ``statistics`` or ``contrast``."""
    total: int
    """Files or runs to read."""
    work: Callable[[Source], Generator[Step, None, None]]
    """Does the job in small steps. Closing the generator ends it."""
    result: Callable[[], Any] | None = None
    """Computes the result so far, for a job with a single result."""


class JobProgress(msgspec.Struct, frozen=True):
    """Progress of a job."""

    job: Job
    new: tuple[Any, ...] = ()
    """Hits and problems since the mailbox was last emptied."""
    result: Any = None
    """Latest result of a job with a single result."""
    done: int = 0
    total: int = 0
    finished: bool = False
    more: bool = False
    """The job ended early because there are too many results."""
    lost: str = ""
    """Why the source became unreachable, which ended the job early."""

    def advance(self, step: Step) -> JobProgress:
        """Return this plus one step."""
        return msgspec.structs.replace(self, new=self.new + step.new, done=self.done + step.done, more=step.more)

    def with_unread(self, before: JobProgress | None) -> JobProgress:
        """Return this plus the unread results of the same job."""
        if before is None or before.job is not self.job:
            return self
        return msgspec.structs.replace(self, new=before.new + self.new)


def by_file(refs: Sequence[RunRef]) -> list[RunRef]:
    """Return these runs grouped by file, in order of first appearance, so that each file is opened only once."""
    progress: dict[str, list[RunRef]] = {}
    for ref in refs:
        progress.setdefault(ref.path, []).append(ref)
    return [ref for same in progress.values() for ref in same]


class JobRunner:
    """`run` is the thread's body; every other method may be called by the screen and returns at once."""

    def __init__(self, source: Source, mailbox: Mailbox, throttle: Throttle) -> None:
        self._source, self._mailbox, self._throttle = source, mailbox, throttle
        self._event = threading.Event()
        self._job: Job | None = None
        self._paused_until = 0.0

    # ---- for the screen

    def start(self, job: Job | None) -> None:
        """Run this job instead of the current one; None: none."""
        self._job = job
        self._event.set()

    def pause(self) -> None:
        """Pause briefly: the screen reads something."""
        self._paused_until = time.monotonic() + REST_SECONDS

    def stop(self) -> None:
        """End the thread."""
        self._event.set()

    # ---- the thread

    def run(self) -> None:
        """Run one job after the other until stopped."""
        while self._event.wait() and not self._throttle.stopped:
            self._event.clear()
            if self._job is not None:
                self._run_job(self._job)

    def _run_job(self, job: Job) -> None:
        progress, posted = JobProgress(job, total=job.total), float("-inf")
        with closing(job.work(self._source)) as steps:
            try:
                for step in steps:
                    if not self._wanted(job):
                        return
                    progress = progress.advance(step)
                    if time.monotonic() - posted >= NEWS_SECONDS and (progress.new or step.done):
                        self._post(progress)
                        progress, posted = replace(progress, new=()), time.monotonic()
                    self._yield()
            except (LinkLost, TracetuiError) as error:
                progress = replace(progress, lost=str(error))
        self._post(replace(progress, finished=True), asked=True)

    def _wanted(self, job: Job) -> bool:
        return self._job is job and not self._throttle.stopped

    def _yield(self) -> None:
        self._throttle.wait_until_idle()
        while (seconds := self._paused_until - time.monotonic()) > 0 and not self._event.wait(seconds):
            pass

    def _post(self, progress: JobProgress, *, asked: bool = False) -> None:
        if progress.job.result is not None:
            progress = replace(progress, result=progress.job.result())
        with self._mailbox.open(asked=asked) as mail:
            if self._wanted(progress.job):
                mail.progress = progress.with_unread(mail.progress)


# ---- follow several runs


MAX_WATCHED: Final = 24
"""Runs that are read on at once."""


class WatchedRuns:
    """Runs that are read on from job to job. Jobs of one object must not overlap."""

    def __init__(self) -> None:
        self._watched: dict[RunRef, tuple[Reader, int]] = {}
        """Readers, and the revisions that were delivered."""

    def job(self, readers: Readers, refs: Sequence[RunRef]) -> Job:
        """Return a job that reads these runs to their current end; `JobProgress.new` has each changed `Run`.

        The readers of other runs are released. At most `MAX_WATCHED` runs are read.
        """
        wanted = refs[:MAX_WATCHED]

        def work(source: Source) -> Generator[Step, None, None]:
            self._watched = {ref: self._watched.get(ref) or (readers.lease(ref), 0) for ref in wanted}
            for ref, (reader, delivered) in self._watched.items():
                for _ in reader.pieces():
                    yield Step()
                run = reader.build() if reader.revision != delivered else None
                self._watched[ref] = reader, reader.revision if run is None else run.revision
                yield Step(() if run is None else (run,), done=1)

        return Job("watch", len(wanted), work)


def messages_job(refs: Sequence[RunRef]) -> Job:
    """Read the last message of each of these runs; `JobProgress.new` has pairs of reference and text."""

    def work(source: Source) -> Generator[Step, None, None]:
        shared = FileCaches()
        for ref in refs:
            run = yield from read_steps(source, ref, shared.for_run(ref))
            yield Step(() if run is None else ((ref, _last_message(run)),), done=1)

    return Job("messages", len(refs), work)


def _last_message(run: Run) -> str:
    """What the agent said last; empty if that isn't recorded."""
    if run.body.last_assistant:
        return run.body.last_assistant
    last = islice(reversed(run.spans), _LOOK_BACK)
    return next((span.preview for span in last if span.operation is Operation.CHAT and span.preview), "")


_LOOK_BACK: Final = 50
"""Spans searched for the last message."""
_HOW: Final = {"only_a": "left out", "only_b": "new"}
"""How a replay differs, without A and B."""
MAX_RUNS: Final = 200
"""Runs of each side that a contrast reads."""
MAX_RUNS_OF_CAUSE: Final = 100
"""The same for each cause of a document."""
GROWTH: Final = 1.5
"""Results are recomputed each time this factor more was read."""


# ---- statistics


class Counted(NamedTuple):
    """Statistics, and the number of runs counted."""

    runs: int
    rows: dict[By, list[Row]]
    totals: dict[By, Row]


def statistics_job(
    refs: Sequence[RunRef],
    rule: PassRule | None = None,
    inherited: Mapping[RunRef, TaskKey] = MappingProxyType({}),
    shares: Shares = NO_SHARES,
) -> Job:
    """Count these runs; `JobProgress.result` is a `Counted`, `new` each `Problem`.

    `rule` decides outcomes, `inherited` has the tasks of replays (`Relations.inherited_tasks`), `shares` what other
    runs count of them.
    """
    listed = {*refs}
    counters = {by: Statistics(by, listed, inherited) for by in By}
    counts, ended = Counted(0, {}, {}), False

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal ended
        shared = FileCaches()
        for ref in by_file(refs):
            run = yield from read_steps(source, ref, shared.for_run(ref))
            if run is not None:
                counted = shares.get(ref, Share()).mark(run.with_rule(rule))
                for statistics in counters.values():
                    statistics.add(counted)
            yield Step(done=1)
        ended = True

    def result() -> Counted:
        nonlocal counts
        runs = counters[By.TOOL].runs
        if (ended and runs != counts.runs) or runs >= max(1, counts.runs * GROWTH):
            rows = {by: statistics.rows() for by, statistics in counters.items()}
            counts = Counted(runs, rows, {by: statistics.total() for by, statistics in counters.items()})
        return counts

    return Job("statistics", len(refs), work, result)


# ---- contrast


Original = Callable[[RunRef], RunRef | None]
"""Maps a run to the one it replays or repeats, None for an original."""


def no_original(ref: RunRef) -> None:
    """Return no original."""


def contrast_job(
    a: Sequence[RunRef], b: Sequence[RunRef], *, original: Original = no_original, most: int = MAX_RUNS
) -> Job:
    """Contrast A with B; `JobProgress.result` is a `Contrast`, `new` each `Problem`. Reads both sides in turn.

    The first difference of a replay from its original is one of the features.
    """
    sides = _Sides(a, b, most, original=original)
    return Job("contrast", sides.total, sides.work, sides.result)


class Contrasts:
    """Contrasts one group of runs after the other for a command, without reading a run twice."""

    def __init__(self, source: Source, *, original: Original = no_original, most: int = MAX_RUNS) -> None:
        self._source, self._original, self._most = source, original, most
        self._cache: dict[RunRef, _RunFeatures] = {}

    def compute(self, a: Sequence[RunRef], b: Sequence[RunRef]) -> Contrast:
        """Return the features of A that B doesn't have. Unreadable runs count on neither side. Raises `LinkLost`."""
        sides = _Sides(a, b, self._most, self._cache, original=self._original)
        for _ in sides.work(self._source):
            pass
        return sides.result()


class _RunFeatures(NamedTuple):
    """Features of a run. They depend on which of its nested runs are compared as well."""

    nested: frozenset[RunRef]
    features: dict[frozenset[RunRef], Features]

    def get(self, listed: Set[RunRef]) -> Features | None:
        """Return the features if the runs of `listed` are compared as well; None if not computed."""
        return self.features.get(self.nested & listed)


class _Sides:
    """The features of two sides, as far as they were read."""

    def __init__(
        self,
        a: Sequence[RunRef],
        b: Sequence[RunRef],
        most: int,
        cache: dict[RunRef, _RunFeatures] | None = None,
        *,
        original: Original = no_original,
    ) -> None:
        self._original = original
        self._refs = _spread(a, most), _spread(b, most)
        self._listed = {*self._refs[0], *self._refs[1]}
        self._notes = [_note(len(chosen), len(all_)) for chosen, all_ in zip(self._refs, (a, b), strict=True)]
        self._read: tuple[list[tuple[RunRef, Features]], list[tuple[RunRef, Features]]] = ([], [])
        self._cache = {} if cache is None else cache
        self._original_run: tuple[RunRef, Run | None] | None = None
        """The original read last: repetitions of a task share one."""
        self._ended = False
        self._made = 0, Contrast()
        self.total = sum(map(len, self._refs))

    def work(self, source: Source) -> Generator[Step, None, None]:
        """Read both sides."""
        sides = FileCaches(), FileCaches()
        for pair in zip_longest(*self._refs):
            for ref, read, shared in zip(pair, self._read, sides, strict=True):
                if ref is None:
                    continue
                values = self._cache[ref].get(self._listed) if ref in self._cache else None
                if values is None:
                    run = yield from read_steps(source, ref, shared.for_run(ref))
                    if run is not None:
                        first = yield from self._divergence(source, run)
                        values = {**features(run, run.load, self._listed), **first}
                        cached = self._cache.setdefault(ref, _RunFeatures(nested_runs(run), {}))
                        cached.features[cached.nested & self._listed] = values
                if values is not None:
                    read.append((ref, values))
                yield Step(done=1)
        self._ended, self._original_run = True, None

    def _divergence(self, source: Source, run: Run) -> Generator[Step, None, Features]:
        """Return the first difference of a replay from its original, if any."""
        original = self._original(run.summary.ref)
        if original is None:
            return {}
        if self._original_run is None or self._original_run[0] != original:
            self._original_run = original, (yield from read_steps(source, original))
        other = self._original_run[1]
        if other is None:
            return {}
        diff = None
        for diff in Comparison(other, run, relation=run.summary.relation).steps():
            yield Step()
            if diff.first is not None and diff.compared:
                break
        if diff is None or diff.first is None or diff.same:
            return {}
        row = diff.rows[diff.first.row]
        span = diff.span_b(row) or diff.span_a(row)
        assert span is not None
        kind = diff.first.kind.value
        place = span_title(other if row.b is None else run, span)
        difference = f"first differs from its original at {place} ({_HOW.get(kind, kind)})"
        return {Feature(Kind.DIVERGENCE, difference): None if row.b is None else span.id}

    def result(self) -> Contrast:
        """Return the contrast so far; empty until both sides have runs, unless all were read."""
        a, b = self._read
        last, current = self._made
        grown = len(a) + len(b)
        if (self._ended and grown != last) or (a and b and grown >= last * GROWTH):
            current = Contrast(tuple(contrast(a, b)), "; ".join(filter(None, self._notes)))
            self._made = grown, current
        return current


def _spread(refs: Sequence[RunRef], most: int) -> Sequence[RunRef]:
    """Return at most `most` of them, spread evenly."""
    return refs if len(refs) <= most else [refs[i * len(refs) // most] for i in range(most)]


def _note(read: int, of: int) -> str:
    return f"{read} of {of} runs were read" if read < of else ""


def shared_features(source: Source, runs: Sequence[RunSummary], groups: Iterable[Group]) -> dict[str, Contrast]:
    """Contrast the runs of every cause that has several with the passed runs; by the id of the cause.

    Raises `LinkLost`.
    """
    contrasts = Contrasts(source, original=Relations(runs).original, most=MAX_RUNS_OF_CAUSE)
    several = [group for group in groups if len(group.runs) > 1]
    return {group.id: contrasts.compute(group.runs, comparable(runs, set(group.runs))) for group in several}


# ---- reading


def read_steps(source: Source, ref: RunRef, cache: dict[str, Any] | None = None) -> Generator[Step, None, Run | None]:
    """Read a whole run step by step; return None, after a problem, if nothing of it is readable. Raises `LinkLost`.

    `cache`: see `Reader`.
    """
    reader = Reader(source, ref, cache=cache)
    for _ in reader.pieces():
        yield Step()
    if reader.failure is not None:
        yield Step((reader.failure,))
        if not len(reader):
            return None
    return reader.build()


# ---- run tree


MAX_TRIALS: Final = 200
"""Trials that a tree reads."""


class TreeResult(msgspec.Struct, frozen=True, eq=False):
    """A run tree and the texts that it needs beside it."""

    tree: RunTree
    arguments: Mapping[StepRef, str]
    """Of the first steps of branches (`tracetui.analysis.run_tree`)."""
    decisive_at: tuple[int | None, ...]
    """For each fork, how many trials would be decisive (`RunTree.trials_to_decide`)."""
    numbers: tuple[int, ...]
    """For each run of the tree, the number of its trial among all trials, from 1."""
    texts: bool
    """Whether model answers and messages are steps."""
    left_out: int = 0
    """Trials beyond `MAX_TRIALS`, which were not read."""


def run_tree_job(
    trials: Sequence[Trial],
    *,
    texts: bool = False,
    loaded: Mapping[RunRef, Run] = MappingProxyType({}),
    redactor: Redactor | None = None,
) -> Job:
    """Read these trials, except `loaded` ones, and merge them; `JobProgress.result` is a `TreeResult` at the end.

    `JobProgress.new` has a `Problem` for each unreadable run. The steps are compared exactly; `redactor` masks the
    bodies of the tree in the result.
    """
    chosen = trials[:MAX_TRIALS]
    result: TreeResult | None = None

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal result
        caches, runs = FileCaches(), {ref: unmasked(run) for ref, run in loaded.items()}
        for ref in by_file([trial.run.ref for trial in chosen]):
            if ref not in runs:
                run = yield from read_steps(source, ref, caches.for_run(ref))
                if run is not None:
                    runs[ref] = run
            yield Step(done=1)
        tree = run_tree(chosen, runs.get, texts=texts)
        yield Step()
        decisive_at = []
        for fork in tree.forks:
            decisive_at.append(tree.trials_to_decide(fork))
            yield Step()
        masked_tree = _masked(tree, redactor)
        arguments = fork_arguments(masked_tree)
        numbers = tuple(i for i, trial in enumerate(chosen, 1) if trial.run.ref in runs)
        result = TreeResult(masked_tree, arguments, tuple(decisive_at), numbers, texts, len(trials) - len(chosen))

    return Job("run tree", len(chosen), work, lambda: result)


def _masked(tree: RunTree, redactor: Redactor | None) -> RunTree:
    """The tree with masked bodies."""
    if redactor is None:
        return tree
    return replace(tree, runs=tuple(masked_bodies(run, redactor, run.body) for run in tree.runs))

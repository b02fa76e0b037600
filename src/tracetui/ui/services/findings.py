"""Results of background work, shared by all screens: assessments, comparisons, searches, contrasts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui import masking
from tracetui.live.mailbox import Compare, Divergence, FindDivergence, Mail
from tracetui.masking import one_line
from tracetui.model import Problem, Run, RunRef, RunSummary
from tracetui.sources.local import is_confined
from tracetui.store.facts import NO_EFFECTS, EffectFacts
from tracetui.store.relations import COPY, Relations, has_original
from tracetui.store.store import OPEN_RUNS, Store
from tracetui.text import Clean, grouped, quantity
from tracetui.ui.commands import Command
from tracetui.views.glyphs import Glyphs
from tracetui.views.list.result import Relationship
from tracetui.views.rows import Line, Piece

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.context_feed import RunContext
    from tracetui.analysis.contrast import Contrast
    from tracetui.analysis.diff_description import DiffDescription
    from tracetui.diff.comparison import Diff
    from tracetui.live.engine import Engine
    from tracetui.live.jobs import Job, JobProgress
    from tracetui.views.list.tables import HitRows

SLASHES: Final = 2


class Assessments:
    """Cache of the assessments of the last opened runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cache: OrderedDict[RunRef, Assessment] = OrderedDict()
        self._requested: Run | None = None
        self._contexts: OrderedDict[RunRef, RunContext] = OrderedDict()
        self._context_of: Run | None = None
        """The run whose context was requested last."""

    def assessment_of(self, run: Run) -> Assessment | None:
        """Assessment of this or an earlier state of a run; requests a missing one."""
        cached = self._cache.get(run.summary.ref)
        if (cached is None or cached.run is not run) and run.complete and self._requested is not run:
            self._requested = run
            self._engine.assessor.assess(run)
        return cached

    def context_of(self, run: Run) -> RunContext | None:
        """Context of this or an earlier state of a run, as far as it is read; requests a missing one."""
        cached = self._contexts.get(run.summary.ref)
        is_current = cached is not None and cached.run is run and cached.is_complete
        is_requested = self._context_of is run and self._requested is run
        if not is_current and run.complete and not is_requested:
            self._requested = self._context_of = run
            self._engine.assessor.assess(run, context=True)
        return cached

    def receive(self, mail: Mail, open_run: Run | None) -> bool:
        """Cache new assessments and contexts; True if one is for `open_run`, the run of the main screen."""
        for ref, context in mail.contexts.items():
            self._contexts[ref] = context
            self._contexts.move_to_end(ref)
        while len(self._contexts) > OPEN_RUNS:
            self._contexts.popitem(last=False)
        for ref, assessment in mail.assessments.items():
            self._cache[ref] = assessment
            self._cache.move_to_end(ref)
        while len(self._cache) > OPEN_RUNS:
            del self._cache[next(ref for ref in self._cache if open_run is None or ref != open_run.summary.ref)]
        if open_run is None or open_run.summary.ref in mail.assessments or open_run.summary.ref in mail.contexts:
            return open_run is not None
        if self._requested is not None and self._requested.summary.ref in mail.assessments:
            self.assessment_of(open_run)  # another screen's request superseded this one
        return False


class Comparisons:
    """Results of run comparisons, and the partners to compare a run with."""

    def __init__(self, store: Store, counted: Callable[[], bool]) -> None:
        """`counted`: whether every run is counted. Relating runs as they arrive would delay the list."""
        self._store, self._counted = store, counted
        self.verdicts: dict[tuple[RunRef, RunRef], Divergence] = {}
        """By (original, replay)."""

    def receive(self, mail: Mail) -> bool:
        """Store new results; True if there are any for new pairs."""
        before = len(self.verdicts)
        for ask, answer in mail.diffs.items():
            if isinstance(ask, FindDivergence) and isinstance(answer, Divergence):
                self.verdicts[ask.a, ask.b] = answer
        return len(self.verdicts) != before

    def record(self, diff: Diff, description: DiffDescription) -> None:
        """Store the result of a complete comparison."""
        from tracetui.live.differ import divergence_of

        self.verdicts[diff.a.summary.ref, diff.b.summary.ref] = divergence_of(diff, description)

    def likely_partner(self, ref: RunRef) -> RunRef | None:
        """The most likely comparison partner of a run."""
        relations = self._store.relations
        variants = relations.variants(ref)
        return relations.original(ref) or (variants[0] if len(variants) == 1 else None)

    def request(self, a: RunRef, b: RunRef) -> Compare:
        """The comparison request for two runs."""
        relations = self._store.relations
        return Compare(a, b, relations.relation(b) if relations.original(b) == a else None)

    def loaded_runs(self, *refs: RunRef) -> list[Run]:
        """The runs that are in the cache and up to date."""
        store, loaded = self._store, []
        for ref in refs:
            run, listed = store.opened(ref), store.runs.get(ref)
            if run is not None and (listed is None or listed.modified_at <= run.summary.modified_at):
                loaded.append(run)
        return loaded

    def partners(self, run: RunSummary) -> tuple[RunRef, Sequence[RunRef]] | str:
        """Returns the original and the runs to compare with it, or a message why there are none."""
        relations = self._store.relations
        original, replays = relations.original(run.ref), relations.variants(run.ref)
        if original is not None:
            return original, (run.ref,)
        if has_original(run):
            return f"its original, {run.replay_of or run.replay_of_path}, isn't in this directory"
        if replays:
            return run.ref, replays
        return "no original or replay  ·  in the list of runs, Space marks two  ·  d compares them"

    def available_commands(self, commands: Sequence[Command], ref: RunRef | None) -> Sequence[Command]:
        """The commands applicable to a run: without ``D`` if it has no partner, or none yet."""
        run = self._store.runs.get(ref) if ref is not None else None
        if run is None or has_original(run):
            return commands
        if self._counted() and (self._store.relations.original(run.ref) or self._store.relations.variants(run.ref)):
            return commands
        return [command for command in commands if command.id != "diff-original"]

    def relationship(self, run: RunSummary, mark: str, glyphs: Glyphs) -> Relationship:
        """Relationship column of a run: a replay and its divergence, an original and its replays.

        A repetition of a task gets only a glyph: there may be thousands of them.
        """
        relations = self._store.relations
        if parts := relations.parts(run.ref):
            label = f"part {parts.index(run.ref) + 1}/{len(parts)}  "
            return Relationship(mark, before=(Piece(Clean(label), "accent"),))
        original = relations.original(run.ref)
        if original is not None:
            verdict = self.verdicts.get((original, run.ref))
            word = " copy" if relations.relation(run.ref) == COPY else ""
            repeat = () if has_original(run) else (Piece(Clean(f"{glyphs.replay}{word} "), "dim"),)
            return Relationship(mark, before=repeat, after=_short_label(verdict, glyphs) if verdict is not None else ())
        if has_original(run):
            return Relationship(mark, after=(Piece(Clean(" not here"), "status.warn"),))
        replays = relations.variants(run.ref)
        if not replays:
            return Relationship(mark)
        verdicts = [self.verdicts[run.ref, replay] for replay in replays if (run.ref, replay) in self.verdicts]
        pieces = [Piece(Clean(f"{glyphs.replay}{glyphs.times}{len(replays)}"), "accent")]
        if diverged := sum(not verdict.same for verdict in verdicts):
            pieces.append(Piece(Clean(f" {glyphs.changed}{diverged}"), "diff.chg"))
        elif len(verdicts) == len(replays):
            pieces.append(Piece(Clean(f" {glyphs.same}"), "status.ok"))
        return Relationship(mark, before=(*pieces, Piece(Clean("  "))))


def _short_label(verdict: Divergence, glyphs: Glyphs) -> Line:
    if verdict.same:
        return (Piece(Clean(f" {glyphs.same}"), "status.ok"),)
    step = f" {one_line(verdict.step, 40)}" if verdict.step else ""
    change = f" {verdict.change}" if verdict.change else ""
    return (Piece(Clean(f" {glyphs.changed}{step}{change}"), "diff.chg"),)


class Pattern(NamedTuple):
    """Pattern of a search of all runs."""

    text: str
    regex: bool
    ignore_case: bool

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Parse a search: ``/…/`` is a regular expression; case-insensitive without a capital letter."""
        regex = len(text) > SLASHES and text[0] == text[-1] == "/"
        return cls(text[1:-1] if regex else text, regex, text == text.lower())


class Search:
    """A search of all runs and its hits so far."""

    def __init__(self, text: str, job: Job, rows: HitRows, runs: int) -> None:
        self.text, self.job, self.rows, self.runs = text, job, rows, runs
        self.problems: list[Problem] = []
        self.progress: JobProgress | None = None
        self.cursor: int | None = None

    def receive(self, progress: JobProgress) -> None:
        """Append new hits and problems."""
        self.progress = progress
        self.problems += [item for item in progress.new if isinstance(item, Problem)]
        self.rows.extend(item for item in progress.new if not isinstance(item, Problem))


class JobService:
    """Runs one job over many runs at a time; stores the last search and the contrasts."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine
        self.search: Search | None = None
        self.latest: JobProgress | None = None
        self._contrasts: dict[Hashable, tuple[Sequence[RunRef], Contrast]] = {}
        """Contrasts computed so far, with their runs."""
        self._contrast: tuple[Sequence[RunRef], Job | None] | None = None
        """The runs of the current or last contrast, and its job once that is prepared."""
        self._job: Job | None = None
        """The current or last job."""
        self._compared: dict[Hashable, Sequence[RunRef]] = {}
        """Runs with a complete contrast."""
        self.effects: JobProgress | None = None
        """What the runs did that were asked about last."""
        self._effects_of: tuple[Hashable, Job] | None = None
        """Those runs as they were, and the job."""
        self._effects_runs: Sequence[RunSummary] = ()
        self._facts: dict[RunRef, tuple[float, EffectFacts]] = {}
        """What the runs did that were read, for queries, with the time of the version that was read."""

    def receive(self, mail: Mail) -> None:
        """Store the progress of the job."""
        progress = mail.progress
        if progress is None:
            return
        self.latest = progress
        if self._effects_of is not None and progress.job is self._effects_of[1]:
            self.effects = progress
            if progress.finished and not progress.lost:
                read = progress.result.facts
                self._facts |= {run.ref: (run.modified_at, read.get(run.ref, NO_EFFECTS)) for run in self._effects_runs}
        if self.search is not None and progress.job is self.search.job:
            self.search.receive(progress)
        if self._contrast is not None and progress.job is self._contrast[1]:
            refs = self._contrast[0]
            self._contrasts[_fingerprint(refs)] = refs, progress.result
            if progress.finished:
                self._compared[_fingerprint(refs)] = refs

    def find_effects(self, runs: Sequence[RunSummary], places: Sequence[str], *, reread: bool = False) -> Job:
        """Find what these runs did, unless the last result is of them as they are now; see `effects_job`.

        The progress of the job is `effects` until other runs are asked about.
        """
        from tracetui.live.effects import effects_job

        state = tuple((run.ref, run.modified_at) for run in runs)
        latest = self.effects
        is_current = self._effects_of is not None and self._effects_of[0] == state and not reread
        if is_current and latest is not None and latest.finished and not latest.lost:
            return latest.job
        job = effects_job(runs, places)
        self._effects_of, self.effects = (state, job), None
        self._effects_runs = [*runs]
        self.ask(job)
        return job

    def facts_of(self, run: RunSummary) -> tuple[EffectFacts | None, bool]:
        """(What a run did, None if it wasn't read; whether that is about the run as it is now)."""
        at, facts = self._facts.get(run.ref, (None, None))
        return facts, at == run.modified_at

    def find_facts(self, places: Sequence[str]) -> bool:
        """Read the runs that were never read, or changed since; return whether new ones are. Changed ones wait for the
        job that is under way.
        """
        stale = [run for run in self._store.runs.values() if not self.facts_of(run)[1]]
        is_new = any(self.facts_of(run)[0] is None for run in stale)
        if not stale or self.is_finding_effects or (self.is_busy and not is_new):
            return False
        self.find_effects(stale, places, reread=True)
        return is_new

    @property
    def is_busy(self) -> bool:
        """Whether a job is under way."""
        return self._job is not None and (self.latest is None or not self.latest.finished)

    @property
    def is_finding_effects(self) -> bool:
        """Whether the effects of runs are being read."""
        is_current = self._effects_of is not None and self._job is self._effects_of[1]
        return is_current and (self.effects is None or not self.effects.finished)

    def contrast_of(self, refs: Sequence[RunRef]) -> Contrast | None:
        """The latest contrast of runs, maybe incomplete; None before the first result."""
        entry = self._contrasts.get(_fingerprint(refs))
        return entry[1] if entry is not None and entry[0] == tuple(refs) else None

    def has_contrast(self, refs: Sequence[RunRef]) -> bool:
        """Whether the contrast of runs is complete."""
        return self._compared.get(_fingerprint(refs)) == tuple(refs)

    def is_asked(self, refs: Sequence[RunRef]) -> bool:
        """Whether the contrast of runs is complete or running."""
        return self._is_current(refs) or self.has_contrast(refs)

    def _is_current(self, refs: Sequence[RunRef]) -> bool:
        if self._contrast is None or self._contrast[0] != tuple(refs):
            return False
        return self._contrast[1] is None or self._contrast[1] is self._job

    def progress(self, refs: Sequence[RunRef]) -> str:
        """Progress of the contrast of runs as text; empty once it is complete."""
        progress = self.latest
        if self.has_contrast(refs):
            return ""
        if progress is None or self._contrast is None or self._contrast != (tuple(refs), progress.job):
            return "comparing …"
        if progress.lost:
            return f"comparison stopped: {progress.lost}"
        return f"comparing, {grouped(progress.done)} of {quantity(progress.total, 'run')} read"

    def contrast(self, refs: Sequence[RunRef]) -> None:
        """Start the contrast of runs with all comparable runs, which a thread looks for."""
        refs, listed = tuple(refs), list(self._store.runs.values())
        asked: tuple[Sequence[RunRef], Job | None] = (refs, None)
        self._contrast = asked

        def work() -> Callable[[], None]:
            from tracetui.analysis.contrast import comparable
            from tracetui.live.jobs import contrast_job

            job = contrast_job(refs, comparable(listed, {*refs}), original=Relations(listed).original)
            return lambda: self._begin_contrast(asked, job)

        self._engine.run_in_background(work)

    def _begin_contrast(self, asked: tuple[Sequence[RunRef], Job | None], job: Job) -> None:
        """Start a contrast unless another job was asked for meanwhile."""
        if self._contrast is asked:
            self._contrast = asked[0], job
            self._start(job)

    def begin_search(self, text: str, refs: Sequence[RunRef], rows: HitRows) -> None:
        """Start a search of runs, whose hits go to `rows`.

        Raises `UsageError` for an invalid regular expression.
        """
        from tracetui.analysis.search import Needle, Options
        from tracetui.live.search import grep_job

        pattern, self.search = Pattern.parse(text), None
        needle = Needle(pattern.text, regex=pattern.regex, ignore_case=pattern.ignore_case, blind=is_confined())
        job = grep_job(refs, needle, Options(redactor=masking.current()))
        self.search = Search(text, job, rows, len(refs))
        self.ask(job)

    def ask(self, job: Job) -> None:
        """Start a job, replacing the current one."""
        self._contrast = None
        self._start(job)

    def _start(self, job: Job) -> None:
        self.latest, self._job = None, job
        self._engine.start_job(job)

    def stop(self) -> None:
        """Stop the job of a closed screen."""
        self.latest = self._job = self._contrast = None
        self._engine.stop_job()


def _fingerprint(refs: Sequence[RunRef]) -> Hashable:
    """A key of runs that costs the same for any number of them; equal keys need a second look."""
    return len(refs), refs[0] if refs else None, refs[-1] if refs else None

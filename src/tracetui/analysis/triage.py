"""Groups the failed runs of a directory by cause, and filters, sorts and groups the causes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from math import fsum, inf
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.analysis.arrangement import Arrangement, Choices, day_label
from tracetui.analysis.cause import (
    BY_TEXT,
    Cause,
    Failure,
    deciding_score,
    digests_of,
    failure_of,
    of_wrong_answer,
    old_digest_of,
    previous_digest_of,
    shared_cause,
    short_ids,
)
from tracetui.analysis.error_text import PLACEHOLDER
from tracetui.masking import excerpt
from tracetui.model import Operation, Outcome, RunRef, RunState, RunSummary, Status, Who
from tracetui.redact import Excerpt, Redactor
from tracetui.store.facts import NO_CONTEXT, NO_EFFECTS, ContextUse, EffectFacts, run_time
from tracetui.store.judgement import NOTHING, CauseRef, Judgement, start_of
from tracetui.store.query import TraceContext, recorded_state
from tracetui.store.relations import Relations, copies_of
from tracetui.store.sidecar import Sidecar
from tracetui.text import grouped, quantity

MAX_VARIANTS: Final = 20
MAX_REASONS: Final = 3
NOT_FAILURES: Final = "ungraded: the grader did not grade; not failures"
NEW_SECONDS: Final = 24 * 3600.0
"""A cause is new for so long after its first run started."""
CAUSES: Final = Arrangement(sort="lost", group="none")
"""The order of `groups`."""


class Task(msgspec.Struct, frozen=True, gc=False):
    """The wrong answers to one task that have one cause: one row below their heading."""

    name: str
    """Empty where the trace names no task."""
    digest: str
    id: str
    """``T-`` and four digits or more."""
    runs: tuple[RunRef, ...]
    """Runs with a wrong answer, newest first."""
    passed: int
    """Runs of the task that passed, among all that are listed."""
    trials: int
    """Runs of the task that passed or failed in any way; 0 without a name."""
    reasons: tuple[str, ...]
    """The first reasons that its scores record: the checks that failed."""
    wasted_ms: float | None = None
    """As that of a group, which is the sum of its tasks'."""
    last_seen: float | None = None
    """When the newest run with a recorded start started."""
    plain: str = ""
    """Digest of all wrong answers to the task, whatever check failed: a verdict may be on that."""

    @property
    def ref(self) -> CauseRef:
        """The task as a verdict file names it, secrets masked."""
        return CauseRef(self.digest, self.id, Redactor().header(self.name))


_ERRNO: Final = re.compile(r"\[Errno -?\d+\] ")
_OF_COMMAND: Final = re.compile(r"\A(?:[Cc]ommand|process) (?P<how>.+) · (?P<command>.+)\Z", re.DOTALL)
_EXIT_STATUS: Final = re.compile(
    r"\A(?:returned (?:a )?non-zero exit status|returned a non-zero code:?|failed with exit code) (-?\d+|<n>)\.?"
)


def _deciding(text: str) -> str:
    """A normalized text with its deciding words first: what happened without its number, the command before how it
    ended.
    """
    if of_command := _OF_COMMAND.match(text):
        ending = _EXIT_STATUS.sub(r"exit \1", of_command["how"])
        return f"{of_command['command']} · {ending}"
    return _ERRNO.sub("", text)


class CauseTexts(msgspec.Struct, frozen=True, gc=False):
    """What views show of a cause: parts of the text that the trace of an example recorded."""

    operation: Operation | None
    who: Who
    wrong: bool
    ungraded: bool
    title: Excerpt
    """Type and text in one line, then the tool."""
    kind: Excerpt
    """The deciding word: the failed check of a wrong answer, the type of an error, else its text."""
    name: Excerpt
    """Name of the tool, node, policy or hook; empty if it has none."""
    type: Excerpt
    """Type of the error; of a wrong answer the scorer."""
    text: Excerpt
    """With a placeholder only where the runs differ."""
    frame: Excerpt
    """The last frame of its traceback in user code; empty if it has none."""
    part: Excerpt
    """The value that the user split by; empty without a split."""

    @classmethod
    def of(cls, cause: Cause, example: Failure) -> CauseTexts:
        """The texts of a cause that a failure is an example of."""
        check = ": ".join(filter(None, (cause.name, cause.text))) if cause.wrong else ""
        kind = (check or cause.title) if cause.wrong else cause.type or cause.text or cause.name or "failed"
        part = cause.part[-1] if cause.part else ""
        texts = cause.title, _deciding(kind), cause.name, cause.type, _deciding(cause.text), cause.frame, part
        cuts = [example.excerpt(text or "") for text in texts]
        return cls(cause.operation, cause.who, cause.wrong, cause.ungraded, *cuts)


class Group(msgspec.Struct, frozen=True, gc=False):
    """Failed runs of one cause, the wrong answers of one scorer that failed alike, or ungraded runs of one cause.

    Time and tokens of failed runs that another of them started count there, and nowhere else: nothing is wasted twice.
    """

    texts: CauseTexts
    digest: str
    """That of the cause; of merged causes that of the one they were merged into."""
    id: str
    """``F-`` and four digits or more, so that no two listed groups share it."""
    runs: tuple[RunRef, ...]
    """All of them, newest first; also those that another run started."""
    failed: tuple[RunRef, ...]
    """Those that failed, newest first: of an ungraded cause the runs whose agent ended in an error as well."""
    first_seen: float | None
    """The earliest start, in UTC seconds since the epoch; None where no run says when it started."""
    last_seen: float | None
    starts: tuple[float, ...]
    """When its runs started, earliest first, in UTC seconds (`run_time`); runs without a recorded start are missing."""
    appeared: float | None
    """When the first run of the cause started, in UTC seconds, also where a filter leaves that run out."""
    agents: tuple[str, ...]
    formats: tuple[str, ...]
    wasted_ms: float | None
    """None where no run says how long it took."""
    wasted_tokens: int | None
    example: RunRef
    """The newest."""
    merged: tuple[str, ...] = ()
    """Digests of the causes that the user merged into it."""
    split_of: str = ""
    """Digest of the cause that it is a part of, where the user split one."""
    old: tuple[str, ...] = ()
    """Signatures of its runs in version 0.1, where a verdict was given to one."""
    previous: tuple[str, ...] = ()
    """Digests of the causes of its runs before their shapes were recognized, where a verdict was given to any cause."""
    tasks: tuple[Task, ...] = ()
    """Of wrong answers: the tasks, those with most failed runs first."""

    @property
    def title(self) -> Excerpt:
        """Type and text in one line, then the tool."""
        return self.texts.title

    @property
    def who(self) -> Who:
        """Who failed."""
        return self.texts.who

    @property
    def wrong(self) -> bool:
        """Whether its runs gave wrong answers."""
        return self.texts.wrong

    @property
    def ungraded(self) -> bool:
        """Whether its runs were not graded; they did not fail, but for those whose agent ended in an error as well."""
        return self.texts.ungraded

    def is_new(self, now: float) -> bool:
        """Whether it appeared in the last `NEW_SECONDS`. False where no run says when it started."""
        return self.appeared is not None and now - self.appeared <= NEW_SECONDS

    @property
    def ref(self) -> CauseRef:
        """The cause as a verdict file names it, secrets masked."""
        return CauseRef(self.digest, self.id, Redactor().excerpt(self.title))


class Variant(msgspec.Struct, frozen=True):
    """A text of a cause, with its noise."""

    text: Excerpt
    count: int
    example: RunRef


class Split(msgspec.Struct, frozen=True):
    """A way to split a cause."""

    by: str
    """As `Failure.part` takes it."""
    label: str
    """The placeholder that varies, or ``text``."""
    parts: int


_Member = tuple[RunSummary, Failure]
_Members = tuple[str, Cause, list[_Member]]
"""The failures of a cause, after its digest."""


def groups(runs: Iterable[RunSummary], decisions: Sidecar | None = None) -> list[Group]:
    """The failed and ungraded runs by cause, the biggest waste first: in time, then tokens, then number of runs.

    The order of `runs` does not matter. Before the deep pass a cause may change. Copies of a run count once.
    `decisions` say which causes the user merged or split.
    """
    listed = list(runs)
    copies = copies_of(listed)
    counted = [run for run in listed if run.ref not in copies]
    failed = [(run, failure) for run in counted if (failure := failure_of(run)) is not None]
    merged = _regroup(failed, decisions)
    waste = _waste(counted, [run for run, _ in failed])
    tasks = _tasks(counted, failed, waste)
    ids = short_ids([*merged])
    has_old = decisions is not None and decisions.has_old_digests
    has_previous = decisions is not None and decisions.has_causes
    merged_groups = [
        _group(digest, name, causes, waste, tasks, has_old, has_previous)
        for name, (digest, causes) in zip(ids, merged.items(), strict=True)
    ]
    return sorted(merged_groups, key=biggest_first)


def _regroup(failed: Iterable[_Member], decisions: Sidecar | None) -> dict[str, list[_Members]]:
    """Causes and their failures, by the digest of the cause that they were merged into."""
    alike: dict[str, tuple[Cause, list[_Member]]] = {}
    for run, failure in failed:
        cause, digest = failure.cause, failure.digest
        if cause.wrong:
            cause = msgspec.structs.replace(cause, part=())
            digest = cause.digest
        alike.setdefault(digest, (cause, []))[1].append((run, failure))
    if decisions is not None:
        for digest, (_, members) in list(alike.items()):
            if split := decisions.split_part(digest):
                del alike[digest]
                for member in members:
                    part = member[1].part(split)
                    alike.setdefault(part.digest, (part, []))[1].append(member)
    merged: dict[str, list[_Members]] = {}
    for digest, cause_members in alike.items():
        merged.setdefault(digest if decisions is None else decisions.merged_into(digest), []).append(
            (digest, *cause_members)
        )
    return merged


def by_who(groups: Iterable[Group]) -> Counter[Who]:
    """How many failed or ungraded runs are the agent's, the grader's and the environment's."""
    counts: Counter[Who] = Counter()
    for group in groups:
        counts[group.who] += len(group.runs)
    return counts


def failure_counts(groups: Sequence[Group]) -> tuple[str, str]:
    """Who made runs fail, and how many were not graded: ``14 failures by the agent, 6 by the environment``, and
    ``6 runs not graded``.

    Both are empty where nothing but the agent is known to have failed, and each where it would say 0.
    """
    ungraded = sum(len(group.runs) for group in groups if group.ungraded)
    failures = by_who(group for group in groups if not group.ungraded)
    is_known = ungraded or failures[Who.AGENT] < failures.total()
    counts = [(failures[who], who) for who in Who if failures[who] and is_known]
    first = [f"{quantity(count, 'failure')} by the {who}" for count, who in counts[:1]]
    others = [f"{grouped(count)} by the {who}" for count, who in counts[1:]]
    return ", ".join([*first, *others]), f"{quantity(ungraded, 'run')} not graded" if ungraded else ""


def sections(groups: Sequence[Group]) -> list[CauseItem]:
    """The causes of failures, then those of ungraded runs below a heading of their own."""
    ungraded = [group for group in groups if group.ungraded]
    failed: list[CauseItem] = [group for group in groups if not group.ungraded]
    return [*failed, (NOT_FAILURES, len(ungraded)), *ungraded] if ungraded else failed


def biggest_first(group: Group) -> tuple[float, int, int, str]:
    """Sort key: time lost, then tokens, then number of runs."""
    return -(group.wasted_ms or 0.0), -(group.wasted_tokens or 0), -len(group.runs), group.digest


Waste = tuple[float | None, int | None]
"""Milliseconds and tokens."""


def _group(
    digest: str,
    name: str,
    causes: list[_Members],
    waste: dict[RunRef, Waste],
    tasks: dict[str, list[Task]],
    has_old: bool,
    has_previous: bool,
) -> Group:
    causes.sort(key=lambda group: (group[0] != digest, group[0]))
    first, cause, own = causes[0]
    runs = _newest_first(run for _, _, members in causes for run, _ in members)
    started = [run for run in runs if run.started_at is not None]  # newest first
    starts = sorted(map(run_time, started))
    wasted = _wasted(runs, waste)
    tokens = [count for _, count in wasted if count is not None]
    failures = [failure for _, failure in own]
    example = min(failures, key=lambda failure: (failure.plain.text, failure.whole))  # whatever the order of the runs
    return Group(
        texts=CauseTexts.of(shared_cause(cause, failures), example),
        digest=digest,
        id=name,
        runs=tuple(run.ref for run in runs),
        failed=tuple(run.ref for run in runs if run.failed),
        first_seen=started[-1].started_at if started else None,
        last_seen=started[0].started_at if started else None,
        starts=tuple(starts),
        appeared=starts[0] if starts else None,
        agents=tuple(sorted({agent for run in runs if (agent := run.agent) is not None})),
        formats=tuple(sorted({run.ref.format for run in runs})),
        wasted_ms=_total_ms(wasted),
        wasted_tokens=sum(tokens) if tokens else None,
        example=runs[0].ref,
        merged=tuple(sorted({merged for merged, _, _ in causes} - {digest})),
        split_of="" if cause.wrong or own[0][1].digest == first else own[0][1].digest,
        old=tuple(sorted({old for run in runs if (old := old_digest_of(run)) is not None})) if has_old else (),
        previous=_previous(causes) if has_previous else (),
        tasks=tuple(task for cause_digest, *_ in causes for task in tasks.get(cause_digest, ())),
    )


def _previous(causes: list[_Members]) -> tuple[str, ...]:
    members = [member for _, _, members in causes for member in members]
    if not any(failure.changed for _, failure in members):
        return ()
    return tuple(sorted({previous_digest_of(run) or failure.digest for run, failure in members}))


def _newest_first(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """Sort by start, newest first and those without one last; runs of one moment by address."""
    listed = list(runs)
    times = [-inf if run.started_at is None else run.started_at for run in listed]
    if len({*times}) < len(times):
        listed.sort(key=lambda run: run.ref.address)
    return sorted(listed, key=lambda run: inf if run.started_at is None else -run.started_at)


def _tasks(counted: list[RunSummary], failed: Iterable[_Member], waste: dict[RunRef, Waste]) -> dict[str, list[Task]]:
    """The rows of wrong answers, by the digest of their heading."""
    wrong_answers: dict[str, tuple[Cause, list[RunSummary]]] = {}
    for run, failure in failed:
        if failure.cause.wrong:
            wrong_answers.setdefault(failure.cause.digest, (failure.cause, []))[1].append(run)
    passed: Counter[str] = Counter()
    trials: Counter[str] = Counter()
    for run in counted if wrong_answers else ():
        if run.task and run.rated is not None:
            trials[run.task] += 1
            passed[run.task] += run.rated is Outcome.PASSED
    rows: dict[str, list[Task]] = {}
    for name, (digest, (cause, runs)) in zip(short_ids([*wrong_answers], "T-"), wrong_answers.items(), strict=True):
        runs = _newest_first(runs)
        (task,) = cause.part
        reasons = dict.fromkeys(score.reason for run in runs if (score := deciding_score(run)).reason)
        refs = tuple(run.ref for run in runs)
        row = Task(
            name=task,
            digest=digest,
            id=name,
            runs=refs,
            passed=passed[task],
            trials=trials[task],
            reasons=tuple(reasons)[:MAX_REASONS],
            wasted_ms=_total_ms(_wasted(runs, waste)),
            last_seen=next((run.started_at for run in runs if run.started_at is not None), None),
            plain=of_wrong_answer(cause)[-1],
        )
        rows.setdefault(msgspec.structs.replace(cause, part=()).digest, []).append(row)
    for task_rows in rows.values():
        task_rows.sort(key=lambda row: (-len(row.runs), row.name))
    return rows


def variants_of(runs: Iterable[RunSummary]) -> list[Variant]:
    """The texts of these runs of one group, the most frequent first: at most `MAX_VARIANTS`."""
    examples: dict[str, Failure] = {}
    refs_by_text: dict[str, list[RunRef]] = {}
    for run in _newest_first(runs):
        if (failure := failure_of(run)) is not None and not failure.cause.wrong:
            examples.setdefault(failure.text, failure)
            refs_by_text.setdefault(failure.text, []).append(run.ref)
    ordered = sorted(refs_by_text.items(), key=lambda variant: (-len(variant[1]), variant[0]))
    return [Variant(examples[text].excerpt(text), len(refs), refs[0]) for text, refs in ordered[:MAX_VARIANTS]]


def replaced_values(run: RunSummary) -> list[tuple[str, Excerpt]]:
    """(Kind, original) of every placeholder in the text of the cause of a run."""
    failure = failure_of(run)
    return [] if failure is None else [(kind, failure.excerpt(value)) for kind, value in failure.values]


def splits_of(runs: Iterable[RunSummary]) -> list[Split]:
    """The ways to split the cause of these runs: by text, or by a placeholder that varies."""
    failures = [failure for run in runs if (failure := failure_of(run)) is not None and not failure.cause.wrong]
    plain = {failure.plain.key: failure.plain for failure in failures}
    if len(plain) != 1:
        return [Split(BY_TEXT, "text", len(plain))] if plain else []
    kinds = PLACEHOLDER.findall(next(iter(plain.values())).text)
    columns = zip(*{failure.values for failure in failures}, strict=False)
    counts = [len({value for _, value in column}) for column in columns]
    return [
        Split(str(number), label, parts)
        for number, (label, parts) in enumerate(zip(kinds, counts, strict=False), 1)
        if parts > 1
    ]


class CauseVerdicts:
    """The decisions of a verdict file on failed runs and the groups of a triage."""

    def __init__(self, decisions: Sidecar) -> None:
        self.decisions = decisions

    def of_run(self, run: RunSummary) -> Judgement:
        """The decisions on a run: its own before those of its cause."""
        return self.decisions.of(run, *digests_of(run, self.decisions))

    def of_task(self, task: Task) -> Judgement:
        """The decisions on the wrong answers to a task."""
        return self.decisions.of_causes(*dict.fromkeys(filter(None, (task.digest, task.plain))))

    def of_group(self, group: Group) -> Judgement:
        """The decisions on a cause.

        Digests of rules before, and signatures of version 0.1, count where those of all runs have the same verdict. The
        heading of wrong answers has the verdict that all of its tasks have.
        """
        if group.tasks:
            verdict = self.of_task(group.tasks[0]).verdict
            same = verdict is not None and all(self.of_task(task).verdict is verdict for task in group.tasks)
            return Judgement(verdict, "cause") if same else NOTHING
        digests = group.digest, *group.merged, group.split_of
        judgment = self.decisions.of_causes(*digests)
        for earlier in (group.previous, group.old):
            if judgment.verdict is None and len({self.decisions.of_causes(digest).verdict for digest in earlier}) == 1:
                judgment = self.decisions.of_causes(*digests, *earlier)
        return judgment

    def is_new(self, group: Group) -> bool:
        """Whether a cause has no verdict; a heading is new while one of its tasks has none."""
        return self.of_group(group).verdict is None if not group.tasks else bool(self.unjudged(group))

    def unjudged(self, group: Group) -> list[Task]:
        """The tasks of a heading without a verdict."""
        causes = {*self.decisions.decided_causes}  # few of very many tasks
        return [
            task
            for task in group.tasks
            if causes.isdisjoint((task.digest, task.plain)) or self.of_task(task).verdict is None
        ]


def new_causes(groups: Sequence[Group], verdicts: CauseVerdicts) -> list[Group]:
    """The groups without a verdict: what ``--fail-on new`` reports."""
    return [group for group in groups if verdicts.is_new(group)]


def _waste(runs: list[RunSummary], failed: list[RunSummary]) -> dict[RunRef, Waste]:
    """The own waste of failed runs that started others which failed."""
    parents = _parents(runs, failed)
    spent = {run.ref: _spent(run) for run in failed} if parents else {}
    below: dict[RunRef, list[Waste]] = {}
    for ref, parent in parents.items():
        below.setdefault(parent, []).append(spent[ref])
    return {ref: _less(spent[ref], inner) for ref, inner in below.items()}


def _wasted(runs: Iterable[RunSummary], waste: dict[RunRef, Waste]) -> list[Waste]:
    return [waste.get(run.ref) or _spent(run) for run in runs] if waste else [*map(_spent, runs)]


def _total_ms(wasted: Iterable[Waste]) -> float | None:
    times = [ms for ms, _ in wasted if ms is not None]
    return fsum(times) if times else None


def _spent(run: RunSummary) -> Waste:
    return run.duration_ms, run.usage.all_tokens if run.usage is not None else None


def _less(spent: Waste, inner: list[Waste]) -> Waste:
    ms, tokens = spent
    return (
        None if ms is None else max(0.0, ms - fsum(part or 0.0 for part, _ in inner)),
        None if tokens is None else max(0, tokens - sum(part or 0 for _, part in inner)),
    )


def _parents(runs: list[RunSummary], failed: list[RunSummary]) -> dict[RunRef, RunRef]:
    """The nearest failed run above each failed one that another run started, where there is one."""
    involved = {run.ref: run for run in failed if run.parent is not None}
    if not involved:
        return {}
    refs = {run.ref for run in failed}
    started, named = [*involved], {run.parent for run in involved.values()}
    while named:
        parents = [run for run in runs if run.id in named and run.ref not in involved]
        involved |= {run.ref: run for run in parents}
        named = {run.parent for run in parents if run.parent is not None}
    relations = Relations(involved.values())
    nearest = {}
    for ref in started:
        seen, parent = {ref}, relations.parent(ref)
        while parent is not None and parent not in refs and parent not in seen:
            seen.add(parent)
            parent = relations.parent(parent)
        if parent in refs and parent != ref:
            nearest[ref] = parent
    return nearest


# ---- the query fields that come from the user: verdicts, notes, tags and ids of causes


_ERROR: Final = Status.ERROR
_NOT_PASSED: Final = (Outcome.FAILED, Outcome.UNGRADED)


class QueryContext(TraceContext):
    """A query context over all listed `runs`, which also decide the ids and titles of causes."""

    def __init__(
        self,
        sidecar: Sidecar,
        runs: Callable[[], Iterable[RunSummary]],
        relations: Callable[[], Relations] | None = None,
        state: Callable[[RunSummary], RunState | None] = recorded_state,
        formats: Callable[[], Collection[str]] = tuple,
        effects: Callable[[RunSummary], EffectFacts] = lambda run: NO_EFFECTS,
        context_use: Callable[[RunSummary], ContextUse] = lambda run: NO_CONTEXT,
    ) -> None:
        super().__init__(relations, state)
        self._effects, self._context_use = effects, context_use
        self._formats = formats
        self._sidecar, self._runs = sidecar, runs
        self._causes: dict[str, tuple[str, ...]] | None = None
        """Titles and ids of all causes, by digest."""

    def formats(self) -> Collection[str]:
        return self._formats()

    def effects(self, run: RunSummary) -> EffectFacts:
        return self._effects(run)

    def context_use(self, run: RunSummary) -> ContextUse:
        return self._context_use(run)

    def verdict(self, run: RunSummary) -> str | None:
        return self._judgement(run).verdict

    def tags(self, run: RunSummary) -> Sequence[str]:
        return self._judgement(run).tags

    def has_tags(self) -> bool:
        return self._sidecar.has_tags

    def note(self, run: RunSummary) -> str | None:
        return self._judgement(run).note or None

    def cause(self, run: RunSummary) -> Sequence[str]:
        if run.who is None:
            return ()
        if self._causes is None:
            self._causes = {}
            for group in groups(self._runs(), self._sidecar):
                title = excerpt(group.title)
                self._causes[group.digest] = (title, group.id)
                self._causes.update((task.digest, (title, group.id, task.id)) for task in group.tasks)
        return self._causes.get(digests_of(run, self._sidecar)[0], ())

    def _judgement(self, run: RunSummary) -> Judgement:
        shared, decisions = run.shared, self._sidecar
        unmarked = shared.status is not _ERROR and shared.outcome not in _NOT_PASSED
        if unmarked and start_of(run) not in decisions.starts:
            return NOTHING  # nearly all runs
        return decisions.of(run, *digests_of(run, decisions))


CauseItem = Group | tuple[str, int]
"""A cause, or the (label, count) of a group heading."""


class CauseOrder:
    """The causes in the order of the queue, and where each is. Reads every cause: any thread may make it."""

    def __init__(self, items: Sequence[CauseItem] = ()) -> None:
        self.items = items
        self.groups = [item for item in items if isinstance(item, Group)]
        self.places = {group.digest: place for place, group in enumerate(self.groups)}
        """Indices in `groups` by digest."""
        self.rows = {item.digest: row for row, item in enumerate(items) if isinstance(item, Group)}
        """Indices in `items` by digest."""
        self.headings = [group for group in self.groups if group.tasks]
        """Headings of wrong answers."""
        self.runs_before = [*accumulate((len(group.runs) for group in self.groups), initial=0)]
        """Number of runs before each cause; at the end, of all runs."""
        self.names_who = len({group.who for group in self.groups}) > 1
        """Whether *who* tells causes apart."""
        self.names_agents = len({(*group.agents,) for group in self.groups}) > 1
        """Whether the agents tell causes apart."""
        self._halves: dict[bool, CauseOrder] = {}
        starts = [group.starts for group in self.groups if group.starts]
        self.period = (
            min((times[0] for times in starts), default=0.0),
            max((times[-1] for times in starts), default=0.0),
        )
        """When the first and the last run started, in UTC seconds."""

    def half(self, *, ungraded: bool) -> CauseOrder:
        """The causes of ungraded runs, or those of failures with the ungraded runs that failed too, in the same order.

        It is made once.
        """
        if ungraded not in self._halves:
            if ungraded:
                groups = [group for group in self.groups if group.ungraded]
            else:
                groups = [_failed_part(group) for group in self.groups if group.failed]
            self._halves[ungraded] = CauseOrder(groups)
        return self._halves[ungraded]


def _failed_part(group: Group) -> Group:
    if group.tasks or len(group.failed) == len(group.runs):
        return group
    return msgspec.structs.replace(group, runs=group.failed)


def arrange_causes(
    causes: Iterable[Group], arrangement: Arrangement, *, now: float, verdict_of: Callable[[Group], str | None]
) -> list[CauseItem]:
    """Filter, sort and group causes, which are in the order of `groups`.

    `verdict_of` returns None for a cause without a verdict.
    """
    selected = [cause for cause in causes if not arrangement.new or cause.is_new(now)]
    if arrangement.sort != CAUSES.sort or arrangement.reverse:
        selected.sort(key=_SORTS[arrangement.sort], reverse=arrangement.reverse)
    if arrangement.group == "none":
        return sections(selected)
    label, moment = _GROUPS[arrangement.group], _Moment(day_label(now), verdict_of)
    by_label: dict[str, list[Group]] = {}
    for cause in selected:
        by_label.setdefault(label(cause, moment), []).append(cause)
    items: list[CauseItem] = []
    for name, members in by_label.items():
        items += [(name, len(members)), *members]
    return items


class _Moment(NamedTuple):
    """What the label of a group depends on beside its cause."""

    day: Callable[[float], str]
    """See `day_label`."""
    verdict_of: Callable[[Group], str | None]


def _kind(cause: Group) -> str:
    if cause.ungraded:
        return "ungraded"
    if cause.wrong:
        return "wrong answers"
    operation = cause.texts.operation
    return "errors of runs" if operation is None else f"errors in {operation.value}"


def _descending(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)


_SORTS: Final[dict[str, Callable[[Group], Any]]] = {
    "lost": biggest_first,
    "runs": lambda cause: (-len(cause.runs), biggest_first(cause)),
    "newest": lambda cause: (_descending(cause.starts[-1] if cause.starts else None), biggest_first(cause)),
    "first seen": lambda cause: (_descending(cause.appeared), biggest_first(cause)),
    "tokens": lambda cause: (_descending(cause.wasted_tokens), biggest_first(cause)),
    "name": lambda cause: (cause.title.exact.lower(), cause.digest),
    "id": lambda cause: cause.digest,
}
_GROUPS: Final[dict[str, Callable[[Group, _Moment], str]]] = {
    "none": lambda cause, moment: "",
    "kind": lambda cause, moment: _kind(cause),
    "who": lambda cause, moment: cause.who.value,
    "agent": lambda cause, moment: ", ".join(cause.agents) or "no agent",
    "verdict": lambda cause, moment: moment.verdict_of(cause) or "to review",
    "format": lambda cause, moment: ", ".join(cause.formats),
    "day": lambda cause, moment: f"first seen {'unknown' if cause.appeared is None else moment.day(cause.appeared)}",
}
CAUSE_CHOICES: Final = Choices(tuple(_SORTS), tuple(_GROUPS))
"""How causes can be sorted and grouped; ``day`` is the one on which a cause was first seen."""

"""JSON of conclusions: tasks, gate, context, diff, triage, files, audit and blame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

from tracetui.analysis.gate import Verdict as GateVerdict
from tracetui.analysis.tasks import Result
from tracetui.export.schemas.runs import Masked, Problem
from tracetui.store.judgement import Verdict

# ---- tasks and gate


class Counts(TypedDict):
    """Trials by result."""

    trials: int
    passed: int
    failed: int
    unscored: int
    ungraded: int
    running: int
    pass_rate: float | None


class Rates(Counts):
    """Trials by result, and pass^k by k."""

    pass_hat: dict[str, float]
    pass_hat_tasks: dict[str, int]


class TaskGroup(Counts):
    """The trials of a task by one agent and model, in one of the directories."""

    agent: str | None
    model: str | None
    directory: str | None


class RateGroup(Rates):
    """The trials of all tasks by one agent and model, in one of the directories."""

    agent: str | None
    model: str | None
    directory: str | None


class Spread(TypedDict):
    """A metric over the trials of a task."""

    trials: int
    total: float
    low: float
    high: float
    mean: float


class Branch(TypedDict):
    """The trials that went one way at a fork."""

    runs: Sequence[str]
    passed: int
    failed: int
    ends: bool


class Fork(TypedDict):
    """The first step at which the trials of a task differ."""

    step: int
    branches: Sequence[Branch]
    p: float | None
    adjusted_p: float | None
    decisive: bool
    trials_to_decide: int | None


class Task(Counts):
    """A task and its trials."""

    task: str
    source: str
    runs: Sequence[str]
    results: Sequence[Result]
    excluded: dict[str, str]
    pass_hat: dict[str, float]
    instability: float | None
    metrics: dict[str, Spread]
    groups: Sequence[TaskGroup]
    unreadable: Sequence[str]
    first_fork: Fork | None


class Tasks(Rates, Masked):
    """``tracetui tasks --json``."""

    schema: Literal["tracetui/tasks/1"]
    tasks: Sequence[Task]
    groups: Sequence[RateGroup]
    decisive_by_chance: float
    without_task: Sequence[str]
    problems: Sequence[Problem]


class PassRate(TypedDict):
    """The mean of the pass rates of the paired tasks."""

    pass_rate: float | None


class UngradedCounts(TypedDict):
    """Trials that a grader was to grade and did not."""

    base: int
    candidate: int


class TaskDivergence(TypedDict):
    """The first step at which a passed and a failed trial differ; null spans: the trial has ended before it."""

    step: int
    base: str
    base_span: str | None
    candidate: str
    candidate_span: str | None


class TaskChange(TypedDict):
    """A task with another rate in the candidate."""

    task: str
    base_passed: int
    base_scored: int
    candidate_passed: int
    candidate_scored: int
    first_divergence: TaskDivergence | None


class MetricChange(TypedDict):
    """A metric in both sets."""

    tasks: int
    base: float
    candidate: float
    difference: float
    interval: Sequence[float | None]
    p: float
    adjusted_p: float


class Gate(Masked):
    """``tracetui gate --json``."""

    schema: Literal["tracetui/gate/1"]
    verdict: GateVerdict
    reason: str
    trials_per_task: int | None
    trials_needed: int | None
    smallest_p: float | None
    alpha: float
    min_effect: float
    paired_tasks: int
    base: PassRate
    candidate: PassRate
    ungraded: UngradedCounts
    difference: float | None
    interval: Sequence[float | None]
    p: float | None
    regressed: Sequence[TaskChange]
    lower: Sequence[TaskChange]
    fixed: Sequence[TaskChange]
    higher: Sequence[TaskChange]
    metrics: dict[str, MetricChange]
    only_base: Sequence[str]
    only_candidate: Sequence[str]
    unscored: Sequence[str]
    notes: Sequence[str]


# ---- context


class ContextTotals(TypedDict):
    """Sums over the model calls of a run."""

    calls: int
    input: int
    read: int | None
    written: int | None
    missed: int
    breaks: int
    most: int
    now: int
    usd: float | None
    usd_new: float | None
    usd_carry: float | None
    usd_breaks: float | None
    unpriced_calls: int


class ContextShare(TypedDict):
    """What one content or file took of the context."""

    content: str | None
    file: str | None
    times: int
    entered: int
    carried: int
    share: float | None
    now: int
    usd: float | None
    usd_new: float | None
    usd_carry: float | None
    usd_breaks: float | None
    basis: str


class CacheBreak(TypedDict):
    """A call that missed the prompt cache."""

    call: str
    number: int
    span: str
    cause: str | None
    basis: str
    reported: str | None
    missed: int
    cached: int
    kept: int
    where: str
    broke_at: str | None
    idle_s: float | None
    ttl_s: float
    ttl_recorded: bool
    usd: float | None


class Arrival(TypedDict):
    """A text that entered the context."""

    content: str
    file: str | None
    tokens: int
    recorded: bool


class ContextCall(TypedDict):
    """A model call and its input."""

    call: str
    number: int
    span: str
    agent: str | None
    started_at: float | None
    model: str | None
    input: int
    read: int | None
    written: int | None
    written_1h: int | None
    uncached: int
    output: int | None
    by: dict[str, int]
    growth: int
    estimated: int
    not_recorded: int
    removed: int
    inherited: int
    note: str | None
    arrivals: Sequence[Arrival]
    usd: float | None
    usd_new: float | None
    missed: int


class Context(Masked):
    """``tracetui context --json``."""

    schema: Literal["tracetui/context/1"]
    run: str
    id: str
    totals: ContextTotals
    contents: Sequence[ContextShare]
    files: Sequence[ContextShare]
    breaks: Sequence[CacheBreak]
    calls: Sequence[ContextCall]


# ---- diff


class Divergence(TypedDict):
    """The first differing value, or the name of a step that only one side has."""

    row: int
    kind: str
    path: str
    a: Any
    b: Any


class Phrase(TypedDict):
    """A change in words, its detail, and the rows that have it (of ``diff A B``)."""

    words: str
    detail: str | None
    rows: Sequence[int]


class Pair(TypedDict):
    """Two compared runs."""

    a: str | None
    b: str
    relation: str | None
    same: bool | None
    first_divergence: Divergence | None
    in_words: Sequence[Phrase]
    counts: dict[str, int] | None


class ReplayPair(Pair):
    """A replay and its original; `missing` is the raw id of an original that isn't there."""

    missing: str | None


class Replays(Masked):
    """``tracetui diff --replays DIR --json``."""

    schema: Literal["tracetui/replays/1"]
    pairs: Sequence[ReplayPair]


class Fact(TypedDict):
    """A run-level value, or a judgment, of both runs."""

    name: str
    a: Any
    b: Any


class Change(TypedDict):
    """A value that differs."""

    path: str
    side: str
    change: str
    a: Any
    b: Any
    ignored: NotRequired[str]


class DiffRow(TypedDict):
    """A step of both runs, or of one."""

    kind: str
    a: str | None
    b: str | None
    step: int | None
    name: str | None
    downstream: bool
    flags: Sequence[str]
    changes: Sequence[Change]


class Diff(Pair, Masked):
    """``tracetui diff A B --json``."""

    schema: Literal["tracetui/diff/1"]
    first_decision: Divergence | None
    deltas: dict[str, float | None]
    aligned_by: str
    ignored: dict[str, int]
    envelope: Sequence[str]
    notes: Sequence[str]
    facts: Sequence[Fact]
    judged: Sequence[Fact]
    rows: Sequence[DiffRow]


# ---- triage


class Decision(TypedDict):
    """What a person decided."""

    verdict: Verdict | None
    note: str | None
    tags: Sequence[str]


class WrongTask(Decision):
    """A task with wrong answers."""

    id: str
    digest: str
    task: str | None
    runs: Sequence[str]
    passed: int | None
    trials: int | None
    reasons: Sequence[str]


class Variant(TypedDict):
    """A text of a cause."""

    text: str
    count: int
    example: str


class Split(TypedDict):
    """A way to divide a cause."""

    by: int | str
    label: str
    parts: int


Finding = TypedDict(
    "Finding",
    {
        "features": Sequence[str],
        "in": int,
        "of": int,
        "in_others": int,
        "of_others": int,
        "p": float,
        "example": str,
    },
)


class Contrast(TypedDict):
    """What the runs of a cause share, strongest first."""

    findings: Sequence[Finding]
    note: str | None


class Cause(Decision):
    """A group of failed runs."""

    id: str
    digest: str
    kind: str
    who: str
    title: str
    count: int
    runs: Sequence[str]
    first_seen: str | None
    last_seen: str | None
    agents: Sequence[str]
    wasted_ms: float | None
    wasted_tokens: int | None
    example: str
    new: bool
    judged: dict[str, Decision]
    merged: Sequence[str]
    split_of: str | None
    variants: Sequence[Variant]
    splits: Sequence[Split]
    tasks: Sequence[WrongTask]
    contrast: Contrast | None


class TriageCounts(TypedDict):
    """Runs by outcome, over all listed runs."""

    runs: int
    failed: int
    errors: int
    wrong_answers: int
    ungraded: int
    failed_ungraded: int
    passed: int
    graded: int
    who: dict[str, int]
    causes: int
    signatures: int


class Triage(Masked):
    """``tracetui triage --json``."""

    schema: Literal["tracetui/triage/1"]
    counts: TriageCounts
    causes: Sequence[Cause]
    new_causes: Sequence[str]
    signatures: Sequence[Cause]
    next: str


# ---- files, audit, blame


class Place(TypedDict):
    """A span of a run."""

    run: str
    span: str


class ChangedFile(TypedDict):
    """A file that agents changed."""

    path: str
    runs: int
    edits: int
    added: int | None
    removed: int | None
    last_writer: Place
    state: str
    lines: Sequence[int | None] | None
    kind: str
    certainty: str
    outside: bool
    tried: int
    at: str | None


class Files(Masked):
    """``tracetui files --json``."""

    schema: Literal["tracetui/files/1"]
    files: Sequence[ChangedFile]
    tried: int
    problems: Sequence[Problem]


class AuditFinding(TypedDict):
    """An effect that a rule names."""

    rule: str
    severity: str
    run: str
    span: str | None
    target: str
    command: str | None
    certainty: str
    outcome: str
    folded: bool


class AuditedRun(TypedDict):
    """A run with its folder and its permission modes."""

    run: str
    root: str | None
    modes: Sequence[str]


class Audit(Masked):
    """``tracetui audit --json``."""

    schema: Literal["tracetui/audit/1"]
    findings: Sequence[AuditFinding]
    runs: Sequence[AuditedRun]
    effects: dict[str, int]
    allowed: int
    problems: Sequence[Problem]


class Answer(TypedDict):
    """Who wrote it; null without an answer."""

    run: str | None
    span: str | None
    candidates: Sequence[Place]
    rung: str | None


class Why(TypedDict):
    """What ``--why`` adds."""

    prompt: str | None
    because: str
    commit: str | None


class BlamedLine(Answer):
    """A line and who wrote it."""

    path: str
    line: int
    moved: bool
    why: NotRequired[Why]


class BlamedCommit(Answer):
    """A commit and who made it."""

    hash: str
    subject: str
    at: str | None


class Blame(Masked):
    """``tracetui blame --json``."""

    schema: Literal["tracetui/blame/1"]
    lines: Sequence[BlamedLine]
    commit: BlamedCommit | None
    problems: NotRequired[Sequence[Problem]]

"""JSON of runs, spans, problems and events, and of the commands that print little else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

from tracetui.model import Criterion, Error, Limit, Metric, Outcome, RunState, Score, Status, StatusSource, Step, Total


class Masked(TypedDict):
    """What exports add to a document."""

    masked: NotRequired[dict[str, int] | None]


class Problem(TypedDict):
    """An unreadable file or part."""

    path: str
    where: str
    reason: str


class Ledger(TypedDict):
    """How much of a file or run was understood."""

    bytes: int | None
    understood_bytes: int | None
    understood: float | None
    unknown_kinds: dict[str, int]
    unknown_fields: dict[str, int]
    torn_lines: int
    writers: Sequence[str]


class Usage(TypedDict):
    """Tokens, and cost in US dollars; null if not recorded."""

    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    cache_write_1h_tokens: int | None
    output_at_least: bool


# ---- runs and spans


class FirstError(TypedDict):
    """The cause of a failed run, or its first recovered error."""

    span: str | None
    name: str | None
    operation: str | None
    type: str | None
    message: str


class OpenCall(TypedDict):
    """The call that a run waits for."""

    name: str
    since: str | None


class PlainRun(TypedDict):
    """A run without its state at a time."""

    address: str
    path: str
    format: str
    id: str
    name: str
    title: str | None
    agent: str | None
    model: str | None
    status: Status
    status_word: str | None
    status_source: StatusSource | None
    outcome: Outcome | None
    outcome_source: str | None
    scores: Sequence[Score]
    result: str | None
    task: str | None
    task_source: str | None
    trial: str | None
    started_at: str | None
    time_zone: str | None
    duration_ms: float | None
    steps: int | None
    spans: int | None
    llm_calls: int | None
    tool_calls: int | None
    errors: int | None
    usage: Usage
    estimated_cost_usd: float | None
    replay_of: str | None
    replay_of_address: str | None
    relation: str | None
    repeats: str | None
    identity: str | None
    counts_in: str | None
    parent: str | None
    first_error: FirstError | None
    tools: Sequence[str] | None
    models: Sequence[str] | None
    nodes: Sequence[str] | None
    tags: Sequence[str]
    source: str | None
    writer: str | None
    problems: int


class Run(PlainRun):
    """A run of ``ls``."""

    state: RunState | None
    state_source: StatusSource | None
    open_call: OpenCall | None


class FileCounts(TypedDict):
    """Files by class."""

    listed: int
    problem: int
    ignored: int


class NearMiss(TypedDict):
    """An ignored file that looks like a trace."""

    path: str
    reason: str


class Runs(Masked):
    """``tracetui ls --json``."""

    schema: Literal["tracetui/runs/1"]
    runs: Sequence[Run]
    problems: Sequence[Problem]
    counts: NotRequired[FileCounts]
    near_misses: NotRequired[Sequence[NearMiss]]


class Span(TypedDict):
    """``tracetui show ADDRESS/SPAN --json``, and each span of a run."""

    id: str
    parent_id: str | None
    depth: int
    step: int | None
    name: str
    operation: str
    status: Status
    status_word: str | None
    status_source: StatusSource | None
    started_at: str | None
    duration_ms: float | None
    usage: Usage
    input: Any
    output: Any
    error: Error | None
    input_hash: str | None
    model: str | None
    attributes: dict[str, Any]


class WholeRun(PlainRun):
    """A run that was read to its end. A sub-agent that is shown as a run has no state of its own."""

    state: NotRequired[RunState | None]
    state_source: NotRequired[StatusSource | None]
    open_call: NotRequired[OpenCall | None]
    ledger: Ledger
    input: Any
    output: Any
    error: Error | None
    goal: str | None
    reason: str | None
    criteria: Sequence[Criterion]
    metrics: Sequence[Metric]
    findings: Sequence[str]
    limits: Sequence[Limit]
    totals: Sequence[Total]
    system_prompt: str | None
    last_user: str | None
    last_assistant: str | None
    attributes: dict[str, Any]
    node_stats: NotRequired[dict[str, dict[str, Any]]]


class LinkEnd(TypedDict):
    """A place in a run that a link starts from or leads to."""

    run: str | None
    span: str
    part: str
    quote: str


StepLink = TypedDict(
    "StepLink", {"kind": str, "from": LinkEnd, "to": Sequence[LinkEnd], "quote": str, "match": str}
)  # a link of a step, see docs/links.md


class RunDocument(Masked):
    """``tracetui show ADDRESS --json``."""

    schema: Literal["tracetui/run/1"]
    run: WholeRun
    steps: Sequence[Step]
    spans: Sequence[Span]
    problems: Sequence[Problem]
    links: NotRequired[Sequence[StepLink]]


class RunEvent(TypedDict):
    """A new run, or a changed summary."""

    event: Literal["run"]
    run: str
    id: str
    summary: Run


class SpanEvent(TypedDict):
    """A span, which replaces the one with its id."""

    event: Literal["span"]
    run: str
    span: Span


class ResetEvent(TypedDict):
    """What was printed of the run is void."""

    event: Literal["reset"]
    run: str


class EndEvent(TypedDict):
    """The run ended."""

    event: Literal["end"]
    run: str
    status: Status
    outcome: Outcome | None
    scores: Sequence[Score]


class ProblemEvent(Problem):
    """Something is unreadable."""

    event: Literal["problem"]


# ---- grep, stats, doctor, cache, formats


class Hit(TypedDict):
    """A matching text."""

    schema: Literal["tracetui/grep/1"]
    event: Literal["hit"]
    run: str
    span: str | None
    step: int | None
    name: str | None
    kind: str
    path: str
    address: str
    line: int
    before: str
    match: str
    after: str


class GrepProblem(Problem):
    """A file that couldn't be searched."""

    schema: Literal["tracetui/grep/1"]
    event: Literal["problem"]


class GrepEnd(TypedDict):
    """The last line."""

    schema: Literal["tracetui/grep/1"]
    event: Literal["end"]
    hits: int
    runs: int
    files: dict[str, int]


class StatsRow(TypedDict):
    """Totals of the calls of one name."""

    name: str | None
    count: int
    errors: int
    runs: int
    p50_ms: float | None
    p95_ms: float | None
    total_ms: float | None
    usage: Usage
    estimated_cost_usd: float | None
    passed: int | None
    failed: int | None
    pass_rate: float | None
    prompt: str


class Stats(TypedDict):
    """``tracetui stats --json``, a document per grouping."""

    schema: Literal["tracetui/stats/1"]
    by: str
    runs: int
    rows: Sequence[StatsRow]
    total: StatsRow
    problems: Sequence[Problem]


class ContextStatsRow(TypedDict):
    """What one content, file or cause of a cache break comes to in all runs."""

    name: str
    runs: int
    count: int
    entered: int | None
    carried: int | None
    missed: int | None
    share: float | None
    usd: float | None
    usd_new: float | None
    usd_carry: float | None
    usd_breaks: float | None


class ContextStats(TypedDict):
    """``tracetui stats --by content,context-file,break --json``, a document per grouping."""

    schema: Literal["tracetui/context-stats/1"]
    by: str
    runs: int
    rows: Sequence[ContextStatsRow]
    problems: Sequence[Problem]


DiagnosedFile = TypedDict(
    "DiagnosedFile",
    {
        "path": str,
        "class": Literal["listed", "problem", "ignored"],
        "format": str | None,
        "scores": dict[str, int],
        "runs": int,
        "reason": str | None,
        "near_miss": str | None,
        "problems": Sequence[Problem],
        "ledger": Ledger | None,
    },
)


class Doctor(FileCounts):
    """``tracetui doctor --json``."""

    schema: Literal["tracetui/doctor/1"]
    files: Sequence[DiagnosedFile]
    seen: int
    near_misses: int
    ledger: Ledger


class Cache(TypedDict):
    """``tracetui cache --json``."""

    schema: Literal["tracetui/cache/1"]
    path: str
    size: int
    rows: int
    hits: int
    misses: int
    limit: int


class Format(TypedDict):
    """A format; `title` is null if it can't be loaded."""

    name: str
    title: str | None
    origin: str
    broken: str | None


class Formats(TypedDict):
    """``tracetui formats --json``."""

    schema: Literal["tracetui/formats/1"]
    formats: Sequence[Format]

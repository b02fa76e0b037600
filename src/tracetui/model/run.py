"""Runs: what `tracetui ls` lists and `tracetui show` opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tracetui.model.ledger import Kinds, Ledger, Unread, ledger
from tracetui.model.outcome import Outcome, Score
from tracetui.model.span import Body, Error, Operation, Span, Status, StatusSource, Usage, error_text


class RunRef(msgspec.Struct, frozen=True, gc=False, order=True):
    """Which run: identity is the file and, where a file holds several runs, the run's key in it."""

    format: str
    path: str
    key: str | None = None
    span: str | None = None
    """Set for a part of a run that is shown as a trace of its own: the id of the span that it is."""

    @property
    def address(self) -> str:
        """``PATH`` where a file holds one run, else ``PATH#RUN``; then ``/SPAN``. ``/ # %`` in ids are encoded."""
        run = self.path if self.key is None else f"{self.path}#{quote_key(self.key)}"
        return run if self.span is None else f"{run}/{quote_key(self.span)}"


def quote_key(key: str) -> str:
    """Percent-encode what an address uses itself: ``/``, ``#`` and ``%``."""
    return key.replace("%", "%25").replace("/", "%2F").replace("#", "%23")


TREE: Final = "spans"
"""Where problems of the tree of spans are: a parent that is not there."""
LAST_LINE: Final = "last line"
"""Where a file ends that was cut off."""


class Problem(msgspec.Struct, frozen=True, gc=False):
    """Something that could not be read: in which file, where in it (``line 3``, ``byte 812``, ``steps[2]``), why."""

    path: str
    where: str
    reason: str
    lost: int | None = None
    """Bytes of the file that nothing is shown of because of it; None where all that was said is shown all the same."""
    torn: bool = False
    """It is a line (or a document) that is cut off or broken: the writer, not the reader, is at fault."""

    @property
    def may_pass(self) -> bool:
        """Whether what comes next may mend it: it is about the tree of spans, or about the last line."""
        return self.where in (TREE, LAST_LINE)


class FirstError(msgspec.Struct, frozen=True, gc=False):
    """The cause of a failed run: the span it happened in (None for the run itself), its type and text."""

    message: str
    type: str | None = None
    span: str | None = None
    name: str | None = None
    """Name of that span, for one-line summaries."""
    operation: Operation | None = None
    """What kind of work that span is."""

    @property
    def words(self) -> str:
        """Type and text, the type once."""
        return error_text(self.type, self.message)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace says about the run as a whole, before anything is counted.

    Formats fill it in both stages, so that a summary from a file's head and tail equals that of the full read.
    """

    id: str
    name: str
    agent: str | None = None
    model: str | None = None
    status: Status | None = None
    """None: to be derived (ok if it ended and nothing failed at its end)."""
    status_word: str | None = None
    status_source: StatusSource | None = None
    ended: bool = True
    """False: there is no end record; the run is `running` while its file moves, else `unknown`."""
    started_at: float | None = None
    time_zone: str | None = "UTC"
    """None for naive local times: printed without ``Z``."""
    duration_ms: float | None = None
    usage: Usage | None = None
    """Usage as the run states it; what is None, here or in it, is the sum over its spans."""
    steps: int | None = None
    """Number of steps as far as the head of the file tells; None: counted."""
    by_start: bool = False
    """Spans come in any order, parents after those below them: siblings are shown in that in which they began."""
    tells_calls: bool = True
    """False: the trace does not tell calls of models and tools from other work, so that they cannot be counted."""
    replay_of: str | None = None
    """Raw id of the original."""
    replay_of_path: str | None = None
    """Path of the original's file, where the format knows it (a sibling file)."""
    relation: str | None = None
    """replay, fork, retry or student."""
    repeats: str | None = None
    """Key of the task that was done, as `formats.labels.task_key` makes it: runs with the same key are repetitions of
    each other. None where the trace does not say what went in: then nothing is a repetition of it."""
    identity: str | None = None
    """Key of this very run, the same wherever it is told, as `formats.labels.task_key` makes it of the program's name
    and an id that is unique in the world: runs of one key are one run, told several times. None where there is none."""
    split: bool = False
    """Other files may hold parts of the run, under the same `id`, which no other run has."""
    parent: str | None = None
    """Raw id of the run that started this one."""
    error: FirstError | None = None
    """The cause as the run itself states it."""
    prompt: str = ""
    """First real user prompt, goal or input: at most 120 characters, not cleaned."""
    result: str = ""
    """One phrase that says how it went, where the format has one (``goal met 2/2``, ``→ account_support``)."""
    scores: tuple[Score, ...] = ()
    """Every evaluation of the run that the trace records, in its order."""
    headline: str | None = None
    """Name of the score that the trace itself calls the result; None where it singles none out."""
    task: str | None = None
    """Name of the task that was done, where the trace says it: runs of one task are repetitions of each other."""
    trial: str | None = None
    """Which of the repetitions it is, where the trace says it: an epoch, the name of a trial."""
    label: str | None = None
    """How a run is called beside its siblings (``[item 12]``)."""
    tags: tuple[str, ...] = ()
    """The trace's own tags, as `formats.labels` reads them."""
    source: str | None = None
    """Where the trace says that it comes from: a framework, a data set, a place."""
    writer: str | None = None
    """Version of the program that wrote it, as the trace says it (the last one, where several wrote)."""
    size: int | None = None
    """Bytes of the run's files, or of its part of a file that holds several; None where that cannot be told."""
    unfinished: tuple[Problem, ...] = ()
    """Last lines that are no record yet: they are problems once the file is still."""
    fields: Kinds = ()
    """Unknown fields of records of known kinds, as `formats.fields` counts them; nothing before the deep pass."""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of the run list, and one element of ``tracetui ls --json``.

    `deep` is False after the list stage: counts that are None then are *not yet known*; afterwards None means that the
    trace does not say.
    """

    ref: RunRef
    id: str
    name: str
    agent: str | None = None
    model: str | None = None
    status: Status = Status.UNKNOWN
    status_word: str | None = None
    status_source: StatusSource | None = None
    started_at: float | None = None
    time_zone: str | None = "UTC"
    duration_ms: float | None = None
    usage: Usage | None = None
    steps: int | None = None
    spans: int | None = None
    llm_calls: int | None = None
    tool_calls: int | None = None
    errors: int | None = None
    problems: int = 0
    replay_of: str | None = None
    replay_of_path: str | None = None
    relation: str | None = None
    repeats: str | None = None
    """Key of the task: equal for repetitions of it."""
    identity: str | None = None
    """Key of the run: equal where it is told several times."""
    split: bool = False
    """Other files may hold parts of it, under the same `id`."""
    parent: str | None = None
    first_error: FirstError | None = None
    prompt: str = ""
    result: str = ""
    scores: tuple[Score, ...] = ()
    outcome: Outcome | None = None
    """How the run was evaluated; None where it was not."""
    outcome_source: str = ""
    """The score and field or rule that decided the outcome."""
    task: str | None = None
    """Name of the task, where the trace says it."""
    trial: str | None = None
    label: str | None = None
    tools: tuple[str, ...] | None = None
    """Names of the tools that were called, sorted: the first `tally.MOST_NAMES`. Equal ones are one object."""
    models: tuple[str, ...] | None = None
    """The same of the models."""
    nodes: tuple[str, ...] | None = None
    """The same of the nodes of a graph."""
    tags: tuple[str, ...] = ()
    """The trace's own; none before the deep pass where the list stage does not see them."""
    source: str | None = None
    """Where the trace says that it comes from."""
    writer: str | None = None
    """Version of the program that wrote it."""
    size: int | None = None
    """Bytes of what was read of it."""
    unread: Unread | None = None
    """What of it was not understood; None for nothing, as nearly always, and before the deep pass."""
    unfinished: bool = False
    """Its file changed just now, and its last line is no record yet."""
    modified_at: float = 0.0
    """Modification time of the file: the order until start times are known, and for runs without one."""
    deep: bool = False

    @property
    def seems_running(self) -> bool:
        """Whether it counts as running only because its file has changed lately."""
        return self.status is Status.RUNNING and self.status_source is StatusSource.DERIVED

    @property
    def ledger(self) -> Ledger:
        """How much of it was understood, as far as that was found out (`deep`)."""
        return ledger(self.size, self.unread, self.writer)


class Limit(msgspec.Struct, frozen=True, gc=False):
    """A policy's limit and how far the run came; `violated` where the trace says so."""

    name: str
    limit: float | None = None
    current: float | None = None
    violated: bool = False
    message: str = ""
    details: Any = None


class Criterion(msgspec.Struct, frozen=True, gc=False):
    """One criterion of a goal: met or not, by what evidence, in which steps (`spans`: their ids)."""

    text: str
    met: bool | None
    evidence: str = ""
    steps: tuple[int, ...] = ()


class Metric(msgspec.Struct, frozen=True):
    """A score that the trace holds; `threshold` and `passed` are None where it does not say."""

    name: str
    score: float | None = None
    threshold: float | None = None
    passed: bool | None = None
    reason: str = ""
    details: Any = None


class Total(msgspec.Struct, frozen=True, gc=False):
    """A number that the trace declares, recounted: a difference shows both."""

    name: str
    declared: float | int | None
    counted: float | int | None

    @property
    def differs(self) -> bool:
        """True where both are known and not the same."""
        return self.declared is not None and self.counted is not None and self.declared != self.counted


class RunBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the trace says about the run as a whole: the *Run* tab."""

    input: Any = None
    output: Any = None
    error: Error | None = None
    goal: str | None = None
    reason: str | None = None
    """Why the goal counts as met or not."""
    criteria: tuple[Criterion, ...] = ()
    metrics: tuple[Metric, ...] = ()
    findings: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    totals: tuple[Total, ...] = ()
    system_prompt: str | None = None
    last_user: str | None = None
    last_assistant: str | None = None
    attributes: dict[str, Any] = {}
    """All the rest under the trace's own names: environment, extensions, versions, working directory, metadata …"""
    layout: str = ""
    """``RunLog`` or ``Workflow`` where the format's document lays out a table under that name."""
    extent: tuple[int, int] | None = None
    """Offset and length in bytes of the run's own record, in a file that holds several; None: no such range."""
    raw: bytes = b""
    """Of a run in a database, where there is no such range: its own row as JSON."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """What the trace counts as a step: its own number and the span that is it."""

    number: int | None
    span: str


GOING_ON: Final = frozenset({Status.RUNNING, Status.PAUSED})
"""Statuses of a run with spans that may go on as well."""


class Run(msgspec.Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """A whole run: its summary, its spans in pre-order, and how to get at their bodies.

    ``depths[i]`` is the depth of ``spans[i]`` (0 = top), ``sizes[i]`` the number of spans of its subtree with itself,
    so that ``i + sizes[i]`` is the next span that is not below it.
    """

    summary: RunSummary
    body: RunBody
    spans: tuple[Span, ...]
    depths: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...] = ()
    index: dict[str, int]
    """Position of each span by id."""
    load: Callable[[Span], Body]
    """Reads the body of one span from the source; an unreadable one is an empty body with a ``problem`` attribute."""
    unended: tuple[int, ...] = ()
    """Positions of the spans without an end in the trace: `running` while the run goes on, else `unknown`."""
    revision: int = 0
    complete: bool = True
    """False while more of the source is still to be read."""

    def span(self, span_id: str) -> Span | None:
        """The span with that id, or None."""
        position = self.index.get(span_id)
        return None if position is None else self.spans[position]

    def children(self, position: int) -> list[int]:
        """Positions of the direct children of ``spans[position]``."""
        found, i, end = [], position + 1, position + self.sizes[position]
        while i < end:
            found.append(i)
            i += self.sizes[i]
        return found

    def parent(self, position: int) -> int | None:
        """Position of the parent of ``spans[position]``, None at the top."""
        parent_id = self.spans[position].parent_id if self.depths[position] else None  # at the top a cycle was cut
        return None if parent_id is None else self.index.get(parent_id)

    def standing(self, *, going: bool) -> Run:
        """The run with its unended spans `running` if it is `going` on, else `unknown`."""
        spans = stand(self.spans, self.unended, going=going)
        return self if spans is self.spans else msgspec.structs.replace(self, spans=spans)


def stand(spans: tuple[Span, ...], unended: tuple[int, ...], *, going: bool) -> tuple[Span, ...]:
    """The spans, of which those that have no end have the status of a run that is `going` on, or of one that is not."""
    status = Status.RUNNING if going else Status.UNKNOWN
    changed = [i for i in unended if spans[i].status is not status]
    if not changed:
        return spans
    made = list(spans)
    for i in changed:
        made[i] = msgspec.structs.replace(spans[i], status=status, status_source=StatusSource.DERIVED)
    return tuple(made)


__all__ = [
    "GOING_ON",
    "Criterion",
    "FirstError",
    "Header",
    "Limit",
    "Metric",
    "Problem",
    "Run",
    "RunBody",
    "RunRef",
    "RunSummary",
    "Step",
    "Total",
    "quote_key",
    "stand",
]

"""Runs, as `tracetui ls` lists and `tracetui show` opens them.

A run may be evaluated: it has scores, an outcome that follows from them, and the user may have a rule for it. Status
says how the execution ended, outcome how it was evaluated. They are separate facts: a run that raised may have passed,
and one that ended well may have given a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import isnan
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from tracetui.errors import UsageError
from tracetui.model.blocks import Blocks
from tracetui.model.ledger import Kinds
from tracetui.model.span import Body, Error, Operation, Span, Status, StatusSource, Usage, error_text

if TYPE_CHECKING:
    from tracetui.model.summary import RunSummary


EVIDENCE_LIMIT: Final = 300
"""Maximum characters of a quoted line of evidence."""
REASON_LIMIT: Final = 500
"""Maximum characters of the reason of a score: no more than the shortest summary of an evaluation holds."""


class Outcome(StrEnum):
    """How a run was evaluated; None where it was not to be."""

    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"
    """It was to be evaluated, and the grader did not: no test ran, the scorer raised, the sandbox broke."""


class Who(StrEnum):
    """Who failed: the cause of a failed or ungraded run is there."""

    AGENT = "agent"
    GRADER = "grader"
    """The scorer or verifier, and the tools that it needs."""
    ENVIRONMENT = "environment"
    """Sandbox, image or network, before or around the agent."""


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """What a grader left that tells why a score is what it is."""

    text: str
    """Quoted: the assertion that failed, or why nothing was graded. At most `EVIDENCE_LIMIT` characters."""
    place: str
    """File and line or field: ``verifier/test-stdout.txt line 13``."""
    who: Who = Who.AGENT
    check: str = ""
    """Name of the failed test, without its file."""
    type: str | None = None
    """Type of the exception: ``AssertionError``."""


class Score(msgspec.Struct, frozen=True, gc=False):
    """One evaluation of a run, as the trace records it."""

    name: str
    """Of the scorer, metric or reward: ``accuracy``, ``reward``, ``goal``."""
    value: int | float | bool | str | None = None
    """As recorded; None where the trace states only pass or fail."""
    passed: bool | None = None
    """None where neither the trace nor a rule says so, as for a partial score."""
    source: str = ""
    """File and field that it comes from: ``result.json verifier_result.rewards.reward``."""
    rule: str = ""
    """How `passed` follows from `value` (``1 passed, 0 failed``); empty where the trace itself states pass or fail."""
    reason: str = ""
    """Why, in the words of the trace: an explanation, or the checks that failed. At most `REASON_LIMIT` characters."""
    evidence: Evidence | None = None
    """Of a score that failed: the first failed check. Of one that no grader gave: why."""
    graded: bool = True
    """False: a grader was to give it and did not, as `evidence` says. What is recorded as `value` is then no grade."""

    @classmethod
    def ungraded(
        cls, name: str, evidence: Evidence, *, value: int | float | bool | str | None = None, source: str = ""
    ) -> Score:
        """Return the score that a grader did not give, with the value that is recorded nevertheless."""
        return cls(name, value, None, source, reason=evidence.text, evidence=evidence, graded=False)


class Judgment(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a run, and the scores that decide it."""

    outcome: Outcome | None = None
    source: str = ""
    """The score and field or rule that decided; empty without an outcome."""


def deciding(scores: Sequence[Score], headline: str | None) -> list[Score]:
    """Return the scores that decide the outcome: those named `headline`, all of them where there is none."""
    return [score for score in scores if score.name == headline] or list(scores)


def judge(scores: Sequence[Score], headline: str | None = None) -> Judgment:
    """Return the outcome of a run with these scores.

    The score named `headline` decides, else the only one; of several all must pass: one that failed makes the run
    failed, otherwise one that was not graded makes it ungraded, otherwise one that neither passed nor failed leaves it
    without an outcome.
    """
    chosen = deciding(scores, headline)
    failed = [score for score in chosen if score.passed is False and score.graded]
    missing = next((score.evidence for score in chosen if not score.graded and score.evidence is not None), None)
    if missing is not None and not failed:
        return Judgment(Outcome.UNGRADED, f"{missing.place}: {missing.text}")
    if not failed and (not chosen or any(score.passed is None for score in chosen)):
        return Judgment()
    first = failed[0] if failed else chosen[0]
    rule = first.rule or "recorded in the trace"
    if len(chosen) > 1:
        rule = f"{rule}; all {len(chosen)} scores must pass"
    return Judgment(Outcome.FAILED if failed else Outcome.PASSED, f"{first.source or first.name} ({rule})")


def number_of(value: float | bool | str | None) -> float | None:
    """Return a recorded value as a number: true is 1, ``"0.9"`` is 0.9; None for other text and for NaN."""
    if value is None:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


_COMPARISON: Final = re.compile(r"\s*([^<>=!]*?)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
_ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}


class PassRule(msgspec.Struct, frozen=True):
    """A condition on the score of one name: ``reward>=0.9``, ``accuracy=C``. A run that meets it passed."""

    name: str
    compare: str
    """One of ``< <= > >= = !=``."""
    bound: str

    @classmethod
    def parse(cls, text: str) -> PassRule:
        """Parse ``NAME OP VALUE``. Raises `UsageError`."""
        match = _COMPARISON.fullmatch(text)
        if match is None or not match[1]:
            raise UsageError(f"{text!r} compares no score; write for example 'reward>=0.9' or 'accuracy=C'")
        name, compare, bound = match.groups()
        if not bound:
            raise UsageError(f"{text!r} has no value after {compare}; write for example '{name}{compare}0.9'")
        if compare in _ORDER and number_of(bound) is None:
            raise UsageError(f"{bound!r} is not a number; {compare} compares numbers, = and != also compare text")
        return cls(name, compare.replace("==", "="), bound)

    @property
    def text(self) -> str:
        """The rule without blanks around its operator."""
        return f"{self.name}{self.compare}{self.bound}"

    def applies_to(self, score: Score) -> bool:
        """Return whether it is about a score of this name; case doesn't count."""
        return score.name.casefold() == self.name.casefold()

    def accepts(self, value: float | bool | str | None) -> bool | None:
        """Return whether a recorded value meets the condition; None where it can't be compared.

        Numbers compare as numbers (`number_of`); other values are equal if their text is, in any case.
        """
        number, bound = number_of(value), number_of(self.bound)
        if number is not None and bound is not None and self.compare in _ORDER:
            return _ORDER[self.compare](number, bound)
        if value is None or self.compare in _ORDER:
            return None
        if number is not None and bound is not None:
            same = number == bound
        else:
            same = str(value).casefold() == self.bound.casefold()
        return same is (self.compare == "=")

    def apply(self, scores: Sequence[Score]) -> tuple[Score, ...]:
        """Return the scores with `Score.passed` set by this rule, where it can be compared."""
        return tuple(self._apply(score) for score in scores)

    def _apply(self, score: Score) -> Score:
        passed = self.accepts(score.value) if score.graded and self.applies_to(score) else None
        return score if passed is None else msgspec.structs.replace(score, passed=passed, rule=f"pass rule {self.text}")


class RunRef(msgspec.Struct, frozen=True, gc=False, order=True, array_like=True):
    """Reference to a run: its file and, in a file of several runs, its key."""

    format: str
    path: str
    key: str | None = None
    span: str | None = None
    """Id of the span, for a part of a run that is shown as a trace of its own."""

    @property
    def address(self) -> str:
        """``PATH`` where a file holds one run, else ``PATH#RUN``; then ``/SPAN``. ``/ # %`` in ids are encoded."""
        run = self.path if self.key is None else f"{self.path}#{quote_key(self.key)}"
        return run if self.span is None else f"{run}/{quote_key(self.span)}"


def quote_key(key: str) -> str:
    """Percent-encode the separators of an address: ``/``, ``#`` and ``%``."""
    return key.replace("%", "%25").replace("/", "%2F").replace("#", "%23")


TREE: Final = "spans"
"""`Problem.where` for the tree of spans: a missing parent."""
LAST_LINE: Final = "last line"
"""`Problem.where` for the end of a file that was cut off."""


class Problem(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Something unreadable: its file, where in it (``line 3``, ``byte 812``, ``steps[2]``), and why."""

    path: str
    where: str
    reason: str
    lost: int | None = None
    """Bytes of the file that are not shown because of it; None if everything is shown."""
    torn: bool = False
    """A line or document is cut off or broken: the writer is at fault, not the reader."""

    @property
    def may_pass(self) -> bool:
        """Whether more data may fix it: it is about the tree of spans, or about the last line."""
        return self.where in (TREE, LAST_LINE)


class FirstError(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The cause of a failed run: the span it happened in (None for the run itself), its type and text."""

    message: str
    type: str | None = None
    span: str | None = None
    name: str | None = None
    """Name of that span, for one-line summaries."""
    operation: Operation | None = None
    """Kind of work of that span."""

    @property
    def text(self) -> str:
        """Type and text, without repeating the type."""
        return error_text(self.type, self.message)


class LastEvent(msgspec.Struct, frozen=True, gc=False):
    """The end of a session, or of another run with an open call: the last message or call, and the latest call
    without an end.
    """

    operation: Operation
    name: str
    status: Status
    open: str | None = None
    """Name of the open call; None if there is none."""
    open_since: float | None = None
    """When the open call began (UTC seconds); None if unknown."""
    closed: bool = False
    """The user closed the session after it."""


class ModelUsage(msgspec.Struct, frozen=True, gc=False):
    """Calls of one model in a run that are of about one size, and their usage."""

    model: str
    calls: int
    usage: Usage
    size: int = 0
    """Class of the size of the calls, by `tally.size_class`."""
    tier: str | None = None
    """As in `Span`."""


class TaskKey(msgspec.Struct, frozen=True, gc=False, order=True):
    """Which task a run did: runs with equal keys are repetitions of each other."""

    name: str
    """The trace's name of the task; of a derived one the key of its name and first input."""
    derived: bool = False
    """The trace names no task."""

    @property
    def source(self) -> str:
        """``trace`` or ``derived``."""
        return "derived" if self.derived else "trace"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a trace records about the run as a whole, before anything is counted.

    Formats fill it in both stages, so that a summary from a file's head and tail equals that of the full read.
    """

    id: str
    name: str
    agent: str | None = None
    model: str | None = None
    status: Status | None = None
    """None: derived (ok if it ended and nothing failed at its end)."""
    status_word: str | None = None
    status_source: StatusSource | None = None
    ended: bool = True
    """False: there is no end record; the run is `running` while its file changes, else `unknown`."""
    closed: bool = False
    """The user closed the session, and nothing came after it: it is not running, however new its file is."""
    settled_status: Status | None = None
    """Status of a run without an end record once its file stops changing; None: `unknown`."""
    is_part: bool = False
    """Parents of the spans at the top are not in the trace: they belong to another program, or still come."""
    started_at: float | None = None
    time_zone: str | None = "UTC"
    """None for naive local times: printed without ``Z``."""
    duration_ms: float | None = None
    usage: Usage | None = None
    """Recorded usage; fields that are None, or all of it, are summed over the spans."""
    steps: int | None = None
    """Number of steps, if the head of the file has it; None: counted."""
    by_start: bool = False
    """Spans come in any order, parents after children: siblings are sorted by start."""
    tells_calls: bool = True
    """False: the trace doesn't distinguish calls of models and tools from other work, so they can't be counted."""
    tells_steps: bool = True
    """False: the trace doesn't contain the steps of the run, so they can't be counted."""
    replay_of: str | None = None
    """Raw id of the original."""
    replay_of_path: str | None = None
    """Path of the original's file, if the format records it (a sibling file)."""
    relation: str | None = None
    """replay, fork, retry or student."""
    repeats: str | None = None
    """Key of name and first input, by `formats.scalars.task_key`: the derived task of a run without a named one.
    None if the trace doesn't record the input."""
    identity: str | None = None
    """Key of the run, equal in all its copies: made by `formats.scalars.task_key` of the program's name and a globally
    unique id. None without such an id."""
    origin: str | None = None
    """Id of the first record of the run, which a copy of its beginning has too, however it is called."""
    split: bool = False
    """Other files may contain parts of the run, under the same `id`, which no other run has."""
    parent: str | None = None
    """Raw id of the run that started this one."""
    error: FirstError | None = None
    """The cause that the run itself records."""
    prompt: str = ""
    """First real user prompt, goal or input: at most 120 characters, not cleaned."""
    is_session: bool = False
    """People talk with the agent of the run, and can continue it."""
    title: str | None = None
    """Name that the program or its user gave the session; None if there is none, or before the deep pass."""
    result: str = ""
    """The format's own phrase for the result (``goal met 2/2``, ``→ account_support``); empty without one."""
    scores: tuple[Score, ...] = ()
    """Every evaluation of the run that the trace records, in its order."""
    headline: str | None = None
    """Name of the score that the trace calls the result; None if it names none."""
    excused: bool = False
    """The error that it ended in is that of the grader or the environment, not of the agent."""
    task: str | None = None
    """Name of the task, if recorded: runs of one task are repetitions of each other."""
    trial: str | None = None
    """Which repetition it is, if recorded: an epoch, the name of a trial."""
    label: str | None = None
    """Name among its siblings (``[item 12]``)."""
    tags: tuple[str, ...] = ()
    """The trace's own tags, as `formats.scalars` reads them."""
    source: str | None = None
    """Recorded origin: a framework, a data set, a place."""
    writer: str | None = None
    """Recorded version of the program that wrote it (of several, the last)."""
    size: int | None = None
    """Bytes of the run's files, or of its part of a file of several runs; None if unknown."""
    unfinished: tuple[Problem, ...] = ()
    """Last lines that aren't complete records: problems once the file stops changing."""
    fields: Kinds = ()
    """Unknown fields of records of supported kinds, as `formats.schema` counts them; empty before the deep pass."""


class Limit(msgspec.Struct, frozen=True, gc=False):
    """A policy's limit and the run's value; `violated` as recorded."""

    name: str
    limit: float | None = None
    current: float | None = None
    violated: bool = False
    message: str = ""
    details: Any = None


class Criterion(msgspec.Struct, frozen=True, gc=False):
    """One criterion of a goal: met or not, the evidence and its steps."""

    text: str
    met: bool | None
    evidence: str = ""
    steps: tuple[int, ...] = ()


class Metric(msgspec.Struct, frozen=True):
    """A recorded metric; `threshold` and `passed` are None if not recorded."""

    name: str
    score: float | None = None
    threshold: float | None = None
    passed: bool | None = None
    reason: str = ""
    details: Any = None


class Total(msgspec.Struct, frozen=True, gc=False):
    """A number that the trace declares, and our own count of it."""

    name: str
    declared: float | int | None
    counted: float | int | None

    @property
    def differs(self) -> bool:
        """Whether both are recorded and differ."""
        return self.declared is not None and self.counted is not None and self.declared != self.counted


class RunBody(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded content of the run as a whole: the *Run* tab."""

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
    """All other fields under the trace's own names: environment, extensions, versions, working directory, metadata …"""
    commits: tuple[tuple[str, float], ...] = ()
    """Commits of the run that its source records: hash, and when the commit was made (UTC seconds)."""
    layout: str = ""
    """``RunLog`` or ``Workflow`` if the format's document has a table of that name."""
    extent: tuple[int, int] | None = None
    """Offset and length in bytes of the run's record in a file of several; None: no such range."""
    raw: bytes = b""
    """The run's row as JSON, in a database; empty otherwise."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A step as the trace counts it: its recorded number and its span."""

    number: int | None
    span: str


GOING_ON: Final = frozenset({Status.RUNNING, Status.PAUSED})
"""Statuses of runs that may continue."""


class Run(msgspec.Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """A whole run: its summary, its spans in pre-order, and a loader of their bodies.

    ``depths[i]`` is the depth of ``spans[i]`` (0 = top), ``sizes[i]`` the number of spans of its subtree with itself,
    so ``i + sizes[i]`` is the next span outside of it.
    """

    summary: RunSummary
    body: RunBody
    spans: Blocks[Span]
    depths: Blocks[int]
    sizes: Blocks[int]
    steps: Blocks[Step]
    problems: tuple[Problem, ...] = ()
    index: Mapping[str, int]
    """Position of each span by id."""
    load: Callable[[Span], Body]
    """Reads the body of a span from the source; an unreadable body is empty with a ``problem`` attribute."""
    unended: tuple[int, ...] = ()
    """Positions of the spans without a recorded end: `running` while the run continues, else `unknown`."""
    gross: Blocks[Span] | None = None
    """The spans with the usage that other runs count; None: `spans`."""
    revision: int = 0
    """Increases with each reading that changed the run."""
    complete: bool = True
    """False while the source isn't read to its end."""

    def span(self, span_id: str) -> Span | None:
        """Return the span with that id, or None."""
        position = self.index.get(span_id)
        return None if position is None else self.spans[position]

    def children(self, position: int) -> list[int]:
        """Return the positions of the direct children of ``spans[position]``."""
        positions, i, end = [], position + 1, position + self.sizes[position]
        while i < end:
            positions.append(i)
            i += self.sizes[i]
        return positions

    def parent(self, position: int) -> int | None:
        """Return the position of the parent of ``spans[position]``, None at the top."""
        parent_id = self.spans[position].parent_id if self.depths[position] else None  # at the top a cycle was cut
        return None if parent_id is None else self.index.get(parent_id)

    def with_rule(self, rule: PassRule | None) -> Run:
        """Return the run with the outcome by the user's rule (`RunSummary.with_rule`)."""
        summary = self.summary.with_rule(rule)
        return self if summary is self.summary else msgspec.structs.replace(self, summary=summary)

    def standing(self, *, going: bool) -> Run:
        """Return the run with its unended spans `running` if it is still `going`, else `unknown`."""
        spans = stand(self.spans, self.unended, going=going)
        return self if spans is self.spans else msgspec.structs.replace(self, spans=spans)


def stand(spans: Blocks[Span], unended: tuple[int, ...], *, going: bool) -> Blocks[Span]:
    """Return the spans, those without an end `running` if the run is still `going`, else `unknown`."""
    status = Status.RUNNING if going else Status.UNKNOWN
    changed = [i for i in unended if spans[i].status is not status]
    if not changed:
        return spans
    derived = StatusSource.DERIVED
    return spans.replaced({i: msgspec.structs.replace(spans[i], status=status, status_source=derived) for i in changed})


# ---- events of followed runs
#
# A consumer that stores the latest version of every span by id, and clears a run on reset, always ends up with the same
# state as reading the run from its start.


class RunChanged(msgspec.Struct, frozen=True):
    """A run appeared or its summary changed. Precedes the first span of a run."""

    summary: RunSummary
    replay: str | None = None
    """Address of the run that it replays, if found."""
    task: TaskKey | None = None
    """Task of that run, if it is inherited."""


class SpanChanged(msgspec.Struct, frozen=True):
    """The span at `position` of `run` is new or changed."""

    run: Run
    position: int


class RunReset(msgspec.Struct, frozen=True):
    """Earlier events of the run or file at `address` are void: it was rewritten, repaired or deleted."""

    address: str


class RunEnded(msgspec.Struct, frozen=True):
    """A run ended: ok, error or cancelled."""

    summary: RunSummary


class ProblemMet(msgspec.Struct, frozen=True):
    """Something can't be read: a file that stopped changing, or a location inside a run."""

    problem: Problem


Event: TypeAlias = RunChanged | SpanChanged | RunReset | RunEnded | ProblemMet


__all__ = [
    "GOING_ON",
    "Criterion",
    "Event",
    "FirstError",
    "Header",
    "LastEvent",
    "Limit",
    "Metric",
    "ModelUsage",
    "Problem",
    "ProblemMet",
    "Run",
    "RunBody",
    "RunChanged",
    "RunEnded",
    "RunRef",
    "RunReset",
    "SpanChanged",
    "Step",
    "TaskKey",
    "Total",
    "quote_key",
    "stand",
]

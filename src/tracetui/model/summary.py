"""Summaries of runs. A list holds hundreds of thousands, so they are compact.

Values that many runs have in common are in a `SharedFacts`, one object for all of them. Values of one run that only
its row and details need are packed into bytes (`OwnFacts`). The properties of `RunSummary` hide both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar, cast, overload

import msgspec

from tracetui.model.ledger import Ledger, Unread, ledger
from tracetui.model.run import (
    Evidence,
    FirstError,
    LastEvent,
    ModelUsage,
    Outcome,
    PassRule,
    RunRef,
    Score,
    TaskKey,
    Who,
    deciding,
    judge,
    number_of,
)
from tracetui.model.span import Status, StatusSource, Usage

_T = TypeVar("_T")
_Value = TypeVar("_Value", covariant=True)


class SharedFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The fields of `RunSummary` that many runs have in common."""

    name: str
    agent: str | None = None
    model: str | None = None
    status: Status = Status.UNKNOWN
    status_word: str | None = None
    status_source: StatusSource | None = None
    time_zone: str | None = "UTC"
    relation: str | None = None
    split: bool = False
    """Other files may contain parts of it, under the same `id`."""
    is_part: bool = False
    """Parents of the spans at its top are not in it: they may be in another file."""
    parent: str | None = None
    is_session: bool = False
    """People talk with the agent of the run, and can continue it: not of a sub-agent."""
    outcome: Outcome | None = None
    """How the run was evaluated; None if it wasn't."""
    headline: str | None = None
    """Name of the score that decides the outcome; None: all of them do."""
    outcome_source: str = ""
    """The score and field or rule that decided the outcome."""
    excused: bool = False
    """The error that it ended in is that of the grader or the environment, not of the agent."""
    task: str | None = None
    """Name of the task, if recorded; see `task_key`."""
    tools: tuple[str, ...] | None = None
    """Names of the called tools, sorted: the first `tally.MOST_NAMES`."""
    models: tuple[str, ...] | None = None
    """Names of the called models, likewise."""
    nodes: tuple[str, ...] | None = None
    """Names of the graph nodes that ran, likewise."""
    tags: tuple[str, ...] = ()
    """Recorded tags; empty before the deep pass if the list stage doesn't see them."""
    source: str | None = None
    """Recorded origin."""
    writer: str | None = None
    """Version of the program that wrote it."""
    unfinished: bool = False
    """Its file changed just now, and its last line isn't a complete record."""
    deep: bool = False


class OwnHead(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The own facts by which runs are judged and related. They are the first, and unpacked without the others."""

    id: str
    first_error: FirstError | None = None
    scores: tuple[Score, ...] = ()
    replay_of: str | None = None
    replay_of_path: str | None = None
    identity: str | None = None
    """Key of the run, equal in all its copies."""
    counts_in: str | None = None
    """Address of the run that counts what this one copied, the most of it; set by the store (`store.claims`)."""


class OwnTexts(OwnHead, frozen=True, kw_only=True, gc=False, array_like=True):
    """The own facts by which runs are found. They are unpacked without those after them."""

    prompt: str = ""
    title: str | None = None
    """Name that the program or its user gave the session."""
    result: str = ""
    trial: str | None = None
    label: str | None = None


class OwnFacts(OwnTexts, frozen=True, kw_only=True, gc=False, array_like=True):
    """The fields of `RunSummary` that differ from run to run."""

    usage: Usage | None = None
    steps: int | None = None
    spans: int | None = None
    llm_calls: int | None = None
    tool_calls: int | None = None
    errors: int | None = None
    problems: int = 0
    last: LastEvent | None = None
    """Last event of a session; None before the deep pass, and without messages and calls."""
    model_usage: tuple[ModelUsage, ...] = ()
    """Usage by model and size of call, if there are several: what calls cost depends on both."""
    size: int | None = None
    """Bytes that were read of it."""
    unread: Unread | None = None
    """Parts that were not understood; None if there are none, and before the deep pass."""


class _Field(Protocol[_Value]):
    """A read-only property."""

    @overload
    def __get__(self, instance: None, owner: Any) -> _Field[_Value]: ...
    @overload
    def __get__(self, instance: object, owner: Any) -> _Value: ...


def _shared(member: _T) -> _Field[_T]:
    name: str = cast("Any", member).__name__
    return cast("_Field[_T]", property(attrgetter(f"shared.{name}")))


def _own(member: _T) -> _Field[_T]:
    get: Callable[[OwnFacts], _T] = attrgetter(cast("Any", member).__name__)

    def read(run: RunSummary) -> _T:
        return get(run.own)

    return cast("_Field[_T]", property(read))


class RunSummary(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One row of the run list, and one element of ``tracetui ls --json``. Make one with `of` or `summary_of`.

    `deep` is False after the list stage: None in a count means *not yet known* then, and *not recorded* afterwards.
    """

    ref: RunRef
    shared: SharedFacts
    packed: bytes | OwnFacts
    """The own facts; as they are if packing would change them."""
    started_at: float | None = None
    duration_ms: float | None = None
    repeats: str | None = None
    """Key of name and first input; see `task_key`."""
    modified_at: float = 0.0
    """Modification time of the file: sorts runs whose start is unknown."""
    claims: bytes = b""
    """Its responses and calls that copies may have too, packed by `model.claims`."""

    name = _shared(SharedFacts.name)
    agent = _shared(SharedFacts.agent)
    model = _shared(SharedFacts.model)
    status = _shared(SharedFacts.status)
    status_word = _shared(SharedFacts.status_word)
    status_source = _shared(SharedFacts.status_source)
    time_zone = _shared(SharedFacts.time_zone)
    relation = _shared(SharedFacts.relation)
    split = _shared(SharedFacts.split)
    is_part = _shared(SharedFacts.is_part)
    parent = _shared(SharedFacts.parent)
    is_session = _shared(SharedFacts.is_session)
    outcome = _shared(SharedFacts.outcome)
    headline = _shared(SharedFacts.headline)
    outcome_source = _shared(SharedFacts.outcome_source)
    excused = _shared(SharedFacts.excused)
    task = _shared(SharedFacts.task)
    tools = _shared(SharedFacts.tools)
    models = _shared(SharedFacts.models)
    nodes = _shared(SharedFacts.nodes)
    tags = _shared(SharedFacts.tags)
    source = _shared(SharedFacts.source)
    writer = _shared(SharedFacts.writer)
    unfinished = _shared(SharedFacts.unfinished)
    deep = _shared(SharedFacts.deep)

    id = _own(OwnFacts.id)
    usage = _own(OwnFacts.usage)
    steps = _own(OwnFacts.steps)
    spans = _own(OwnFacts.spans)
    llm_calls = _own(OwnFacts.llm_calls)
    tool_calls = _own(OwnFacts.tool_calls)
    errors = _own(OwnFacts.errors)
    problems = _own(OwnFacts.problems)
    replay_of = _own(OwnFacts.replay_of)
    replay_of_path = _own(OwnFacts.replay_of_path)
    identity = _own(OwnFacts.identity)
    counts_in = _own(OwnFacts.counts_in)
    first_error = _own(OwnFacts.first_error)
    prompt = _own(OwnFacts.prompt)
    title = _own(OwnFacts.title)
    last = _own(OwnFacts.last)
    result = _own(OwnFacts.result)
    scores = _own(OwnFacts.scores)
    trial = _own(OwnFacts.trial)
    label = _own(OwnFacts.label)
    model_usage = _own(OwnFacts.model_usage)
    size = _own(OwnFacts.size)
    unread = _own(OwnFacts.unread)

    @classmethod
    def of(cls, ref: RunRef, **fields: Any) -> RunSummary:
        """Return a summary with these fields; at least `id` and `name`."""
        shared = {name: fields.pop(name) for name in SharedFacts.__struct_fields__ if name in fields}
        own = {name: fields.pop(name) for name in OwnFacts.__struct_fields__ if name in fields}
        return cls(ref, intern_facts(SharedFacts(**shared)), pack(OwnFacts(**own)), **fields)

    def replace(self, **fields: Any) -> RunSummary:
        """Return the summary with these fields changed."""
        shared = {name: fields.pop(name) for name in SharedFacts.__struct_fields__ if name in fields}
        own = {name: fields.pop(name) for name in OwnFacts.__struct_fields__ if name in fields}
        if shared:
            fields["shared"] = intern_facts(msgspec.structs.replace(self.shared, **shared))
        if own:
            fields["packed"] = pack(msgspec.structs.replace(self.own, **own))
        return msgspec.structs.replace(self, **fields)

    @property
    def own(self) -> OwnFacts:
        """The own facts, unpacked. Those of the last run are cached: callers read several fields of a run."""
        global _unpacked
        packed = self.packed
        if packed.__class__ is not bytes:
            return cast("OwnFacts", packed)
        last, facts = _unpacked
        if last is not packed:
            facts = _decode(packed)
            _unpacked = packed, facts
        return facts

    @property
    def head(self) -> OwnHead:
        """The first own facts, unpacked: for code that asks them of all runs."""
        packed = self.packed
        return _decode_head(packed) if packed.__class__ is bytes else cast("OwnHead", packed)

    @property
    def texts(self) -> OwnTexts:
        """The own facts to search, unpacked: for code that asks them of all runs."""
        packed = self.packed
        return _decode_texts(packed) if packed.__class__ is bytes else cast("OwnTexts", packed)

    @property
    def failed(self) -> bool:
        """Whether the agent ended in an error or was evaluated as failed; also an error that passed."""
        shared = self.shared
        return shared.outcome is Outcome.FAILED or (shared.status is Status.ERROR and not shared.excused)

    @property
    def rated(self) -> Outcome | None:
        """The outcome that rates count: its own, else failed if it ended in an error; None: it is in no rate."""
        outcome = self.outcome
        if outcome is Outcome.UNGRADED:
            return None
        return Outcome.FAILED if outcome is None and self.failed else outcome

    @property
    def is_ungraded(self) -> bool:
        """Whether it was to be graded and was not; it failed as well if the agent itself ended in an error."""
        return self.shared.outcome is Outcome.UNGRADED

    @property
    def evidence(self) -> Evidence | None:
        """What the grader left about the score that decided: why it did not grade, or the check that failed."""
        wanted = not self.is_ungraded
        scores = deciding(self.head.scores, self.shared.headline)
        return next((score.evidence for score in scores if score.graded is wanted and score.evidence is not None), None)

    @property
    def who(self) -> Who | None:
        """Who failed: of an ungraded run as its evidence says; None of a run that neither failed nor is ungraded."""
        if self.is_ungraded and (evidence := self.evidence) is not None:
            return evidence.who
        return Who.AGENT if self.failed else None

    @property
    def is_wrong(self) -> bool:
        """Whether it failed without an error of the agent: a wrong answer."""
        return self.outcome is Outcome.FAILED and (self.status is not Status.ERROR or self.excused)

    @property
    def deciding_scores(self) -> list[Score]:
        """The scores that decide the outcome."""
        return deciding(self.scores, self.headline)

    @property
    def score(self) -> float | None:
        """The deciding score as a number; of several the share that passed. None if there is no number."""
        scores = self.deciding_scores
        if len(scores) == 1:
            return number_of(scores[0].passed if scores[0].value is None else scores[0].value)
        return sum(score.passed is True for score in scores) / len(scores) if scores else None

    @property
    def task_key(self) -> TaskKey | None:
        """The task that its trace names, else the one derived from its name and first input; None where neither is."""
        if self.task is not None:
            return TaskKey(self.task)
        return None if self.repeats is None else TaskKey(self.repeats, derived=True)

    def with_rule(self, rule: PassRule | None) -> RunSummary:
        """Return the summary with scores and outcome by the user's rule; unchanged if it has no score of that name."""
        if rule is None:
            return self
        headline = next((score.name for score in self.scores if rule.applies_to(score)), None)
        if headline is None:
            return self
        return self.with_scores(rule.apply(self.scores), headline)

    def with_scores(self, scores: tuple[Score, ...], headline: str | None) -> RunSummary:
        """Return the summary with these scores and the outcome that follows from them (`judge`)."""
        judgment = judge(scores, headline)
        return self.replace(scores=scores, headline=headline, outcome=judgment.outcome, outcome_source=judgment.source)

    @property
    def seems_running(self) -> bool:
        """Whether it counts as running only because its file changed recently."""
        return self.status is Status.RUNNING and self.status_source is StatusSource.DERIVED

    @property
    def ledger(self) -> Ledger:
        """Share of it that was understood, as far as counted (`deep`)."""
        return ledger(self.size, self.unread, self.writer)


FIELDS: Final = (
    *(name for name in RunSummary.__struct_fields__ if name not in ("shared", "packed")),
    *SharedFacts.__struct_fields__,
    *OwnFacts.__struct_fields__,
)
"""Names of all fields of a summary."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(OwnFacts).decode
_decode_head: Final = msgspec.msgpack.Decoder(OwnHead).decode
_decode_texts: Final = msgspec.msgpack.Decoder(OwnTexts).decode
_unpacked: tuple[bytes, OwnFacts] = b"", OwnFacts(id="")
"""The last facts that were unpacked. Replaced as a whole, so that threads see both or neither."""


@lru_cache(maxsize=4096)
def intern_facts(facts: SharedFacts) -> SharedFacts:
    """Return the object that stands for all equal ones."""
    return facts


def pack(facts: OwnFacts) -> bytes | OwnFacts:
    """Return the facts as bytes; as they are if the bytes would not give exactly them: numbers that are too large,
    text that isn't Unicode, values of another type.
    """
    try:
        data = _encode(facts)
        return bytes(memoryview(data)) if _encode(_decode(data)) == data else facts  # a copy: the encoder's has room
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return facts

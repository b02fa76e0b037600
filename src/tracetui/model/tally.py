"""Counts of a run, and its summary. `summary_of` is the only place that combines header and counts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import inf
from sys import intern
from typing import Any, Final

import msgspec

from tracetui.model.claims import ClaimColumns, claim_of, counts_elsewhere
from tracetui.model.ledger import Unread, size_of, unread
from tracetui.model.run import FirstError, Header, LastEvent, ModelUsage, RunRef, judge
from tracetui.model.span import Operation, Span, Status, StatusSource, Usage
from tracetui.model.summary import OwnFacts, RunSummary, SharedFacts, intern_facts, pack

CONTAINERS: Final = frozenset({Operation.INVOKE_AGENT, Operation.INVOKE_WORKFLOW, Operation.TURN})
"""Operations with usage and time that include those of the spans below them."""

_CHAT: Final = Operation.CHAT
_EXECUTE_TOOL: Final = Operation.EXECUTE_TOOL
_UNKNOWN: Final = Operation.UNKNOWN
_ERROR: Final = Status.ERROR

_Kind = tuple[str, int, str | None]
"""Calls of one price: their model, size and tier."""

NO_USAGE: Final = Usage()
_NO_CLAIMS: Final = ClaimColumns()
_LARGE_CALLS: Final = 200_000, 256_000, 272_000
"""Input tokens of a call above which many models cost more a token, so that usage is summed apart."""
COPY_SECONDS: Final = 600.0
"""Seconds by which a file is younger than the last record of its session if it was copied, not written."""
MOST_NAMES: Final = 64
"""Maximum of stored names per kind and run: the first in alphabetical order, whatever order they came in."""
NAME_LENGTH: Final = 120
"""Maximum characters of a stored name."""


_FEW_CLAIMS: Final = 1_000
"""Claims of a run that are packed anew at each of its steps."""


class Tally(msgspec.Struct, kw_only=True):
    """Counts of a run: the same whether a format skimmed the file or read all of it."""

    steps: int = 0
    spans: int = 0
    llm_calls: int = 0
    tool_calls: int = 0
    errors: int = 0
    usage: Usage = NO_USAGE
    first_error: FirstError | None = None
    ends_in_error: bool = False
    """The last span failed."""
    first_start: float | None = None
    last_end: float | None = None
    problems: int = 0
    tools: set[str] = set()
    models: set[str] = set()
    by_model: dict[_Kind, ModelUsage] = {}
    """Usage of the calls of each model, of their size by `_LARGE_CALLS`, and of their tier."""
    nodes: set[str] = set()
    claims: ClaimColumns = msgspec.field(default_factory=ClaimColumns)
    """Those after `copied_claims`."""
    copied_claims: tuple[ClaimColumns, int] = (_NO_CLAIMS, 0)
    """The claims of the tally that this is a copy of, which may grow, and how many of them belong to the copy."""
    packed_claims: dict[int, bytes] = {}
    """The last table of claims, by how many it has; shared by copies (`pack_claims`)."""
    unknown: dict[str, int] = {}
    """Records of unknown kinds, by kind."""
    torn: int = 0
    """Lines that are cut off or broken."""
    unread: int = 0
    """Bytes of both."""

    def copy(self) -> Tally:
        """Return a copy to which spans can be added independently, while spans are added to this tally."""
        names: dict[str, Any] = {"tools": set(self.tools), "models": set(self.models), "nodes": set(self.nodes)}
        claims = self._all_claims()
        names |= {"claims": ClaimColumns(), "copied_claims": (claims, len(claims))}
        return msgspec.structs.replace(self, unknown=dict(self.unknown), by_model=dict(self.by_model), **names)

    def _all_claims(self) -> ClaimColumns:
        copied, count = self.copied_claims
        return copied.with_others(count, self.claims) if count else self.claims

    def pack_claims(self, origin: str | None) -> bytes:
        """The table of the claims of the run; of a long one that grows, of all but the last eighth.

        So a step of a run of any length costs the same; a copy of what is newest counts twice until then.
        """
        total = self.copied_claims[1] + len(self.claims)
        for count, packed in self.packed_claims.items():
            if _FEW_CLAIMS <= count <= total < count + count // 8:
                return packed
        packed = self._all_claims().packed(origin)
        self.packed_claims.clear()
        self.packed_claims[total] = packed
        return packed

    def add(self, span: Span) -> None:
        """Count one span."""
        self.add_all((span,))

    def add_all(self, spans: Sequence[Span]) -> None:
        """Count spans that follow those counted so far."""
        steps = calls = tool_calls = errors = 0
        first, last = self.first_start, self.last_end
        usages: list[Usage] = []
        by_model: dict[_Kind, list[Usage]] = {}
        for span in spans:
            operation, model, usage, start = span.operation, span.model, span.usage, span.started_at
            steps += span.is_step
            counts = not span.note or not counts_elsewhere(span)
            if operation is _CHAT:
                calls += counts
            elif operation is _EXECUTE_TOOL:
                tool_calls += counts
                if span.name not in self.tools:
                    keep(self.tools, span.name)
            elif span.is_node:
                keep(self.nodes, span.name)
            elif operation is _UNKNOWN:
                self.unread += size_of(span.at) or 0
                kind = span.name[:NAME_LENGTH]
                self.unknown[kind] = self.unknown.get(kind, 0) + 1
            if span.claim is not None and (claim := claim_of(span)) is not None:
                self.claims.add(claim)
            if model is not None and model not in self.models:
                keep(self.models, model)
            failed = span.status is _ERROR
            if failed:
                errors += counts
                self._add_error(span)
            if operation not in CONTAINERS:
                self.ends_in_error = failed
                if usage is not None and counts:
                    usages.append(usage)
                    if model is not None:
                        key = model, size_class(usage), span.tier
                        by_model.setdefault(key, []).append(usage)
            if start is not None and -inf < start < inf:
                duration = span.duration_ms
                end = start + duration / 1000 if duration and duration > 0 else start
                if first is None or start < first:
                    first = start
                if last is None or end > last:
                    last = end
        self.spans += len(spans)
        self.steps, self.llm_calls = self.steps + steps, self.llm_calls + calls
        self.tool_calls, self.errors = self.tool_calls + tool_calls, self.errors + errors
        self.first_start, self.last_end = first, last
        self._add_usage(usages, by_model)

    def _add_usage(self, usages: list[Usage], by_model: dict[_Kind, list[Usage]]) -> None:
        """Add usages in their order, on which sums of costs depend."""
        total = None
        for (model, size, tier), grouped in by_model.items():
            key = model[:NAME_LENGTH], size, tier
            before = self.by_model.get(key)
            if before is None and len(self.by_model) >= MOST_NAMES:
                continue
            calls, usage = (0, NO_USAGE) if before is None else (before.calls, before.usage)
            added = sum(grouped, usage)
            self.by_model[key] = ModelUsage(key[0], calls + len(grouped), added, size, tier)
            if len(grouped) == len(usages) and usage == self.usage:
                total = added
        self.usage = sum(usages, self.usage) if total is None else total

    def _add_error(self, span: Span) -> None:
        error = span.error
        if self.first_error is None or (self.first_error.message == "" and error is not None):
            message, kind = ("", None) if error is None else (error.message, error.type)
            self.first_error = FirstError(message, kind, span.id, span.name, span.operation)

    def exchange(self, old: Span, new: Span) -> bool:
        """Replace `old` with `new`, another version of it; return False, without a change, if that takes a recount."""
        if _weight(old) != _weight(new):
            return False
        before, after = _extent(old), _extent(new)
        if before is not None and self.first_start is not None and self.last_end is not None:
            start, end = after or (inf, -inf)
            if before[0] <= self.first_start < start or before[1] >= self.last_end > end:
                return False
        self.steps += new.is_step - old.is_step
        for span, by in ((new, 1), (old, -1)):
            if not counts_elsewhere(span):
                self.llm_calls += by * (span.operation is Operation.CHAT)
                self.tool_calls += by * (span.operation is Operation.EXECUTE_TOOL)
        if after is not None:
            self.first_start = after[0] if self.first_start is None else min(self.first_start, after[0])
            self.last_end = after[1] if self.last_end is None else max(self.last_end, after[1])
        return True


def _weight(span: Span) -> tuple[Any, ...]:
    """Return the parts of a span that count by their position, or can't be subtracted."""
    failure = (span.error, span.name, span.operation, counts_elsewhere(span)) if span.status is Status.ERROR else None
    named = span.operation is Operation.EXECUTE_TOOL, span.is_node
    unknown = (span.name, size_of(span.at)) if span.operation is Operation.UNKNOWN else None
    names = (*named, span.name if any(named) else None, span.model, unknown, claim_of(span))
    return (failure, names) if span.operation in CONTAINERS else (failure, names, span.usage, span.tier)


def size_class(usage: Usage) -> int:
    """The class of the size of a call, on which its price may depend."""
    return bisect_left(_LARGE_CALLS, usage.input_tokens or 0)


def keep(names: set[str], name: str) -> None:
    """Add a name to those of its kind."""
    name = name[:NAME_LENGTH]
    if name not in names:
        names.add(name)
        if len(names) > MOST_NAMES:
            names.remove(max(names))


def bounded(names: Iterable[str]) -> set[str]:
    """Return the names that are stored of these."""
    stored = {name[:NAME_LENGTH] for name in names}
    return stored if len(stored) <= MOST_NAMES else set(sorted(stored)[:MOST_NAMES])


def _extent(span: Span) -> tuple[float, float] | None:
    """Return start and end in seconds."""
    start = span.started_at
    if start is None or not -inf < start < inf:
        return None
    return start, start + max(0.0, span.duration_ms or 0.0) / 1000


class GrowingTally:
    """The tally of a growing list of spans: the last `unsettled` are counted each time, earlier ones once."""

    def __init__(self, unsettled: int = 32) -> None:
        self._unsettled = unsettled
        self._settled = Tally()

    def exchange(self, position: int, old: Span, new: Span) -> None:
        """Take in that a span was replaced with a newer version."""
        if position < self._settled.spans and not self._settled.exchange(old, new):
            self._settled = Tally()

    def of(self, spans: Sequence[Span]) -> Tally:
        """Return the tally of all spans; since the last call, earlier spans changed only by `exchange`."""
        if len(spans) - self._settled.spans > 2 * self._unsettled:
            self._settled.add_all(spans[self._settled.spans : -self._unsettled])
        tally = self._settled.copy()
        tally.add_all(spans[tally.spans :])
        return tally


def summary_of(
    ref: RunRef,
    header: Header,
    tally: Tally | None,
    *,
    last: LastEvent | None = None,
    modified_at: float = 0.0,
    moving: bool = False,
) -> RunSummary:
    """Combine a header, counts and the last event into a summary.

    `tally` is None in the list stage: counts stay unknown and ``deep`` is False. `moving`: the file changed just now;
    only then is a run without an end `running`, unless its file was copied or the user closed it.
    """
    moving = moving and not header.closed and not _is_copied(header, tally, modified_at)
    has_ended = header.ended or (header.settled_status is not None and not moving)
    started, duration = _duration(header, tally, has_ended=has_ended)
    repeats = None if header.repeats is None else intern(header.repeats)
    shared = intern_facts(_shared_facts(header, tally, moving=moving))
    own = pack(_own_facts(header, tally, last, moving=moving))
    claims = _NO_CLAIMS.packed(header.origin) if tally is None else tally.pack_claims(header.origin)
    return RunSummary(ref, shared, own, started, duration, repeats, modified_at, claims)


def _is_copied(header: Header, tally: Tally | None, modified_at: float) -> bool:
    """Whether the file of a session is much younger than its records: the time of a record beats that of the file."""
    if not header.is_session or header.time_zone is None:
        return False
    start, length = header.started_at, header.duration_ms or 0.0
    last = max(
        -inf if start is None else start + length / 1000,
        -inf if tally is None or tally.last_end is None else tally.last_end,
    )
    return last > -inf and modified_at - last >= COPY_SECONDS


def _shared_facts(header: Header, tally: Tally | None, *, moving: bool) -> SharedFacts:
    status, source = _standing(header, tally, moving=moving)
    judgment = judge(header.scores, header.headline)
    return SharedFacts(
        name=header.name,
        agent=header.agent,
        model=header.model,
        status=status or Status.UNKNOWN,
        status_word=header.status_word,
        status_source=source,
        time_zone=header.time_zone,
        relation=header.relation,
        split=header.split,
        is_part=tally is not None and header.is_part,  # known when all spans are read
        parent=header.parent,
        is_session=header.is_session and header.parent is None,
        outcome=judgment.outcome,
        headline=header.headline,
        outcome_source=judgment.source,
        excused=header.excused,
        task=header.task,
        tools=_names(tally.tools) if tally is not None and header.tells_calls else None,
        models=_models(header, tally),
        nodes=_names(tally.nodes) if tally is not None else None,
        tags=header.tags,
        source=header.source,
        writer=header.writer,
        unfinished=tally is not None and moving and bool(header.unfinished),
        deep=tally is not None,
    )


def _own_facts(header: Header, tally: Tally | None, last: LastEvent | None, *, moving: bool) -> OwnFacts:
    usage, error = header.usage, header.error
    if tally is not None:
        if tally.usage:
            usage = tally.usage if usage is None else usage.or_else(tally.usage)
        error = error or tally.first_error
    steps = header.steps if tally is None or not header.tells_steps else tally.steps
    if not steps and tally is not None and (tally.llm_calls or tally.tool_calls):  # the trace doesn't number its steps
        steps = (tally.llm_calls or tally.tool_calls) if header.tells_steps and header.tells_calls else None
    return OwnFacts(
        id=header.id,
        usage=usage,
        steps=steps,
        spans=None if tally is None else tally.spans,
        llm_calls=tally.llm_calls if tally is not None and header.tells_calls else None,
        tool_calls=tally.tool_calls if tally is not None and header.tells_calls else None,
        errors=None if tally is None else tally.errors,
        problems=0 if tally is None else tally.problems,
        replay_of=header.replay_of,
        replay_of_path=header.replay_of_path,
        identity=header.identity,
        first_error=error,
        prompt=header.prompt,
        title=header.title,
        last=last,
        result=header.result,
        scores=header.scores,
        trial=header.trial,
        label=header.label,
        model_usage=() if tally is None else _model_usage(tally),
        size=header.size,
        unread=None if tally is None else _unread(header, tally, moving=moving),
    )


def _standing(header: Header, tally: Tally | None, *, moving: bool) -> tuple[Status | None, StatusSource | None]:
    """Return status and its source: recorded, else derived from the end of the run."""
    if header.status is not None:
        return header.status, header.status_source
    if not header.ended:
        return (Status.RUNNING if moving else header.settled_status or Status.UNKNOWN), StatusSource.DERIVED
    if tally is None:
        return None, header.status_source
    return (Status.ERROR if tally.ends_in_error else Status.OK), StatusSource.DERIVED


def _duration(header: Header, tally: Tally | None, *, has_ended: bool) -> tuple[float | None, float | None]:
    """Return start (seconds since the epoch) and duration (milliseconds)."""
    started, duration = header.started_at, header.duration_ms
    if tally is None:
        return started, duration
    started = tally.first_start if started is None else started
    if duration is None and has_ended and started is not None and tally.last_end is not None:
        duration = max(0.0, tally.last_end - started) * 1000 or None
    return started, duration


def _model_usage(tally: Tally) -> tuple[ModelUsage, ...]:
    """Usage by price; nothing if the run's own model and usage say the same."""
    usages = tuple(tally.by_model.values())
    return usages if len(usages) > 1 or any(usage.tier for usage in usages) else ()


def _unread(header: Header, tally: Tally, *, moving: bool) -> Unread | None:
    cut = [] if moving else [problem.lost or 0 for problem in header.unfinished]
    return unread(tally.unknown, tally.torn + len(cut), tally.unread + sum(cut), header.fields)


def _models(header: Header, tally: Tally | None) -> tuple[str, ...] | None:
    """Return the models of the spans and of the run as a whole."""
    if tally is None or not (header.tells_calls or header.model or tally.models):
        return None
    if header.model is None or header.model in tally.models:
        return _names(tally.models)
    return _names(bounded((*tally.models, header.model)))


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names)) if names else ()

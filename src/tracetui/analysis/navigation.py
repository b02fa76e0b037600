"""Navigates the spans of a run by id: folds, errors, the next span of the same kind.

A turn is a prompt of the user, and the work until the next prompt. Sub-agents and abandoned branches are *lanes*: their
spans belong to the turn that contains them, and have turns of their own (`turns_of` with the position of the lane).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import accumulate, islice, pairwise
from operator import itemgetter
from typing import Final, Literal, NamedTuple

import msgspec

from tracetui.model import Body, Operation, Run, Span, Status
from tracetui.model.build import CONTAINERS

PROMPTS: Final = frozenset({"user", "command"})
"""Names of the messages that begin a turn."""
BOOKKEEPING: Final = frozenset({Operation.HOOK, Operation.META})
"""Operations of the program itself, not of its agent."""
CALLS: Final = frozenset({Operation.EXECUTE_TOOL, Operation.RETRIEVAL, Operation.EMBEDDINGS})
WORK: Final = CALLS | {Operation.CHAT}
_MIN_PROMPTS: Final = 2
_LATEST: Final = 1e12


class Turn(NamedTuple):
    """The spans from position `start` to before `stop`; `head` is its prompt, else its first span."""

    start: int
    stop: int
    head: int
    prompted: bool


def is_prompt(span: Span) -> bool:
    """Whether a span is a prompt of the user."""
    return span.operation is Operation.MESSAGE and span.name in PROMPTS


def is_lane(run: Run, position: int) -> bool:
    """Whether a span is the root of a sub-agent or an abandoned branch. The root of the whole run is neither."""
    if run.spans[position].operation is Operation.INVOKE_AGENT:
        return run.sizes[position] < len(run.spans)
    return is_abandoned_branch(run, position)


def turns_of(run: Run, lane: int | None = None) -> list[Turn]:
    """The turns of a run, or of a lane: every span is in exactly one. Empty if there are no spans."""
    start, stop = (0, len(run.spans)) if lane is None else (lane + 1, lane + run.sizes[lane])
    return _extend([], run, start, stop, start)


def grow(before: list[Turn], old: Run, run: Run, start: int, changed: Sequence[int]) -> list[Turn]:
    """`turns_of(run)`, from those of `old`: spans from `start` on are new, those at `changed` differ."""
    touched = {i for position in (*changed, start, 0) for i in (position - 1, position) if 0 <= i < start}
    if not before or any(_kind(old, i) != _kind(run, i) for i in touched):
        return turns_of(run)
    return _extend(before[:], run, start, len(run.spans), 0)


def _kind(run: Run, position: int) -> tuple[bool, bool, bool, bool]:
    span = run.spans[position]
    return is_prompt(span), span.operation is Operation.TURN, is_lane(run, position), _works(run, position)


def _extend(turns: list[Turn], run: Run, position: int, stop: int, first: int) -> list[Turn]:
    """Add the spans from `position` to before `stop`; the first turn begins at `first`."""
    if turns:
        turns[-1] = turns[-1]._replace(stop=stop)
    elif first < stop:
        turns.append(Turn(first, stop, first, False))
    for prompt in _prompts(run, position, stop, first):
        last = turns[-1]
        begin = _begin(run, prompt, last.head if last.prompted else first - 1)
        if not last.prompted and not any(_works(run, i) for i in range(last.start, begin)):
            turns[-1] = Turn(last.start, stop, prompt, True)
        else:
            turns[-1] = last._replace(stop=begin)
            turns.append(Turn(begin, stop, prompt, True))
    return turns


def _prompts(run: Run, position: int, stop: int, first: int) -> Iterator[int]:
    """Positions of the prompts outside lanes."""
    ancestor: int | None = run.parent(position) if position < stop else None
    while ancestor is not None and ancestor >= first:
        if is_lane(run, ancestor):
            position = max(position, ancestor + run.sizes[ancestor])
        ancestor = run.parent(ancestor)
    spans = run.spans
    while position < stop:
        if is_prompt(spans[position]):
            yield position
        position += run.sizes[position] if is_lane(run, position) else 1


def _begin(run: Run, prompt: int, after: int) -> int:
    """Where the turn of a prompt begins: at the outermost turn span that contains no earlier prompt."""
    begin, ancestor = prompt, run.parent(prompt)
    while ancestor is not None and ancestor > after:
        if run.spans[ancestor].operation is Operation.TURN:
            begin = ancestor
        ancestor = run.parent(ancestor)
    return begin


def _works(run: Run, position: int) -> bool:
    return run.spans[position].operation in WORK or is_lane(run, position)


def next_prompt(run: Run, span_id: str, direction: int) -> str | None:
    """The next (`direction` 1) or previous (-1) prompt outside sub-agents; None past the last."""
    position = run.index.get(span_id)
    if position is None:
        return None
    prompts = [turn.head for turn in turns_of(run) if turn.prompted]
    prompt = next((head for head in prompts[::direction] if (head - position) * direction > 0), None)
    return None if prompt is None else run.spans[prompt].id


def count_prompts(run: Run, most: int) -> int:
    """The number of turns with a prompt, counted up to `most`: a long run is not read on."""
    return sum(1 for _ in islice(_prompts(run, 0, len(run.spans), 0), most))


def is_session(run: Run) -> bool:
    """Whether a run is a session of a coding agent, which opens as a story.

    That is a run with prompts and tool calls, and several turns, sub-agents or records of the program (hooks, meta).
    """
    operations = {span.operation for span in run.spans}
    prompted = count_prompts(run, _MIN_PROMPTS) if operations & CALLS else 0
    if not prompted:
        return False
    if prompted >= _MIN_PROMPTS or operations & BOOKKEEPING:
        return True
    return Operation.INVOKE_AGENT in operations and any(is_lane(run, i) for i in range(len(run.spans)))


def with_answer(prompt: Body, answer: Body) -> Body:
    """The body of a prompt, with the messages of the model call that answered it."""
    return msgspec.structs.replace(prompt, output_messages=(*prompt.output_messages, *answer.output_messages))


class Group(msgspec.Struct, gc=False):
    """Consecutive calls of one tool, or one lane."""

    name: str
    first: int
    """Position of the first call."""
    count: int = 0
    failed: int = 0
    lane: bool = False


class Digest(msgspec.Struct, gc=False):
    """The work of a range of spans outside its lanes."""

    stop: int = 0
    """Position after the last span."""
    groups: list[Group] = []
    """In order; of very many, all but the latest are one group for each name."""
    answer: int | None = None
    """Position of the last model call."""
    last: int | None = None
    """Position of the last model call, tool call, failure or interruption."""
    periods: list[tuple[float, float]] = []
    """(start, end) in UTC seconds while any span ran, in order; pauses under `IDLE_SECONDS` count."""


def digest(run: Run, start: int, stop: int, before: Digest | None = None) -> Digest:
    """Sum up the spans from `start` to before `stop`; `before` has those from `start` to before `before.stop`."""
    total = Digest(stop=stop) if before is None else _copy(before, stop)
    periods: list[tuple[float, float]] = []
    first = start if before is None else before.stop
    lane_until = _lane_until(run, start, first)
    for position in range(first, stop):
        span = run.spans[position]
        if run.sizes[position] == 1 or span.operation is Operation.CHAT:
            periods += _period(span)
        if position < lane_until or span.operation in BOOKKEEPING:
            continue
        if is_lane(run, position):
            lane_until = position + run.sizes[position]
            _join_lane(total, run, position)
        else:
            _add(total, span, position)
    total.periods = joined([*total.periods, *periods])
    return total


def _copy(before: Digest, stop: int) -> Digest:
    """The digest, to be continued: only the last group changes."""
    groups = [*before.groups[:-1], *map(msgspec.structs.replace, before.groups[-1:])]
    return msgspec.structs.replace(before, stop=stop, groups=groups)


def _lane_until(run: Run, start: int, position: int) -> int:
    """Where the outermost lane from `start` on ends that contains a span before `position` and goes on there."""
    until, ancestor = position, position if start < position < len(run.spans) else None
    while ancestor is not None and (ancestor := run.parent(ancestor)) is not None and ancestor >= start:
        if is_lane(run, ancestor):
            until = ancestor + run.sizes[ancestor]
    return until


def same_work(old: Run, new: Run, position: int) -> bool:
    """Whether a span is the same for digests: containers of the work may change as long as they don't fail."""
    before, after = old.spans[position], new.spans[position]
    if min(old.sizes[position], new.sizes[position]) == 1:
        return old.sizes[position] == new.sizes[position] and before == after
    lane = is_lane(old, position)
    if lane != is_lane(new, position) or before == after:
        return before == after and lane == is_lane(new, position)
    contains = before.operation is after.operation and before.operation in (Operation.TURN, Operation.INVOKE_AGENT)
    return contains and not lane and Status.ERROR not in (before.status, after.status)


def _period(span: Span) -> list[tuple[float, float]]:
    began, length = span.started_at, span.duration_ms
    if began is None or not 0 < began < _LATEST or span.taken_over:
        return []
    return [(began, began + length / 1000 if length is not None and 0 < length < _LATEST else began)]


_LONGEST: Final = 100
"""Idle times that a scale can show at most."""
_MOST_GROUPS: Final = 128
"""As many groups of a digest are joined by name."""
IDLE_SECONDS: Final = 60.0
"""Longer pauses, in which no span ran, are idle time."""


def joined(periods: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The periods in order; those with pauses under `IDLE_SECONDS` are joined."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(periods):
        if merged and start - merged[-1][1] < IDLE_SECONDS:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _join_lane(total: Digest, run: Run, position: int) -> None:
    """Add a lane; the call that started it is the lane."""
    parent = run.parent(position)
    if total.groups and parent is not None and run.spans[parent].operation in CALLS:
        group = total.groups[-1]
        if parent >= group.first and group.count:
            group.count -= 1
            if not group.count:
                total.groups.pop()
    total.last = position
    failed = run.spans[position].status is Status.ERROR
    _begin_group(total, Group(run.spans[position].name, position, 1, int(failed), lane=True))


def _begin_group(total: Digest, group: Group) -> None:
    if total.groups and len(total.groups) % _MOST_GROUPS == 0:
        by_name: dict[tuple[str, bool], Group] = {}
        for earlier in total.groups[:-1]:
            same = by_name.setdefault(
                (earlier.name, earlier.lane), Group(earlier.name, earlier.first, lane=earlier.lane)
            )
            same.count += earlier.count
            same.failed += earlier.failed
        total.groups = [*by_name.values(), total.groups[-1]]
    total.groups.append(group)


def _add(total: Digest, span: Span, position: int) -> None:
    failed = span.status is Status.ERROR
    if span.operation is Operation.CHAT:
        total.answer = total.last = position
    elif span.operation in CALLS:
        groups = total.groups
        if not groups or groups[-1].name != span.name or groups[-1].lane:
            _begin_group(total, Group(span.name, position))
        total.groups[-1].count += 1
        total.groups[-1].failed += failed
        total.last = position
    elif is_interruption(span) or (failed and span.operation is not Operation.TURN):
        total.last = position


def is_interruption(span: Span) -> bool:
    """Whether a message says that the user interrupted the agent."""
    return span.operation is Operation.MESSAGE and span.name in _INTERRUPTIONS


_INTERRUPTIONS: Final = frozenset({"interrupted", "turn_aborted"})


class WorkTime:
    """Maps times to the time worked until then: idle time is left out."""

    def __init__(self, periods: Sequence[tuple[float, float]]) -> None:
        """From the periods of the turns (`Digest.periods`)."""
        self._periods: list[tuple[float, float]] = []
        self._worked = [0.0]
        """Seconds worked before each period, and in all."""
        self.longest_gaps: list[tuple[float, float]] = []
        """(Seconds worked before, length in seconds) of the longest idle times, the longest first."""
        self._append(joined(periods))

    def _append(self, periods: Sequence[tuple[float, float]]) -> None:
        """Add later periods; the gap before them is known."""
        first = len(self._worked)
        self._periods += periods
        lengths = (end - start for start, end in periods)
        self._worked += islice(accumulate(lengths, initial=self._worked[-1]), 1, None)
        gaps = [(self._worked[i], after[0] - before[1]) for i, (before, after) in enumerate(pairwise(periods), first)]
        self.longest_gaps = nlargest(_LONGEST, [*self.longest_gaps, *gaps], key=itemgetter(1))

    def extended(self, periods: Sequence[tuple[float, float]]) -> WorkTime:
        """The time worked with further periods. That is quick, unless one begins before the last period so far."""
        if not self._periods or not periods:
            return WorkTime(periods) if periods else self
        last = self._periods[-1]
        if min(periods)[0] < last[0]:
            return WorkTime([*self._periods, *periods])
        work_time = WorkTime(())
        work_time._periods, work_time._worked = self._periods[:-1], self._worked[:-1]
        work_time.longest_gaps = self.longest_gaps
        work_time._append(joined([last, *periods]))
        return work_time

    @property
    def worked(self) -> float:
        """Seconds worked."""
        return self._worked[-1]

    @property
    def total(self) -> float:
        """Seconds from the first start to the last end."""
        return self._periods[-1][1] - self._periods[0][0] if self._periods else 0.0

    def at(self, time: float) -> float:
        """Seconds worked until `time`."""
        number = bisect_right(self._periods, time, key=lambda period: period[0]) - 1
        if number < 0:
            return 0.0
        start, end = self._periods[number]
        return self._worked[number] + min(time, end) - start


_ABANDONED: Final = "abandoned"
"""Note on the spans of an abandoned branch."""


def fold_all(run: Run) -> frozenset[str]:
    """The folds that leave only top-level spans visible."""
    return fold_to_depth(run, 0)


def initial_folds(run: Run) -> frozenset[str]:
    """The initial folds of a run: abandoned branches."""
    return frozenset(span.id for i, span in enumerate(run.spans) if is_abandoned_branch(run, i))


def is_abandoned_branch(run: Run, position: int) -> bool:
    """Whether a span is the root of an abandoned branch."""
    if run.sizes[position] == 1 or _ABANDONED not in run.spans[position + 1].note:
        return False
    return _ABANDONED in run.spans[position + 1].notes and _ABANDONED not in run.spans[position].notes


def abandoned_branches(run: Run, ids: Iterable[str]) -> frozenset[str]:
    """Filter ids to roots of abandoned branches."""
    return frozenset(
        span_id for span_id in ids if span_id in run.index and is_abandoned_branch(run, run.index[span_id])
    )


def in_abandoned_branch(run: Run, span: Span) -> bool:
    """Whether a span is in an abandoned branch."""
    return _ABANDONED in span.notes or is_abandoned_branch(run, run.index[span.id])


def fold_to_depth(run: Run, depth: int) -> frozenset[str]:
    """The folds that leave the tree open down to `depth` (0: top level only)."""
    return frozenset(
        span.id for span, at, size in zip(run.spans, run.depths, run.sizes, strict=True) if size > 1 and at >= depth
    )


def above(span_id: str, run: Run) -> set[str]:
    """Ids of the ancestors of a span."""
    ancestors, position = set(), run.parent(run.index[span_id])
    while position is not None:
        ancestors.add(run.spans[position].id)
        position = run.parent(position)
    return ancestors


def errors(run: Run) -> list[str]:
    """Ids of the failed spans in order, without containers that have a failed descendant."""
    failed: list[str] = []
    for i, span in enumerate(run.spans):
        if span.status is not Status.ERROR:
            continue
        below = range(i + 1, i + run.sizes[i])
        if span.operation in CONTAINERS and any(run.spans[k].status is Status.ERROR for k in below):
            continue
        failed.append(span.id)
    return failed


def starting_span(run: Run) -> str | None:
    """The initial cursor: the first error of a failed run, the end of a running one, else the first prompt of the run's
    own spans, else its first step.
    """
    if not run.spans:
        return None
    if run.summary.status is Status.ERROR:
        error = run.summary.first_error
        if error is not None and error.span is not None and error.span in run.index:
            return error.span
        failed = errors(run)
        return failed[-1] if failed else run.spans[-1].id
    if run.summary.status is Status.RUNNING:
        return run.spans[-1].id
    return _first_prompt(run) or (run.steps[0].span if run.steps else run.spans[0].id)


def call_before(run: Run, span: Span) -> Span | None:
    """The model call before a failed span that isn't one, of the same agent: what the model had seen; None if there is
    none nearby.
    """
    if span.status is not Status.ERROR:
        return None
    position = run.index.get(span.id)
    if position is None or span.operation is Operation.CHAT:
        return None
    for at in range(position - 1, max(-1, position - _NEARBY), -1):
        if run.spans[at].operation is Operation.CHAT and run.depths[at] <= run.depths[position]:
            return run.spans[at]
    return None


_NEARBY: Final = 200


def _first_prompt(run: Run) -> str | None:
    """The first own prompt of a run; None if work began without one, since later prompts may belong to a sub-agent."""
    for span in run.spans:
        if span.taken_over:
            continue
        if span.operation is Operation.MESSAGE and span.name == "user":
            return span.id
        if span.operation in (Operation.CHAT, Operation.EXECUTE_TOOL):
            return None
    return None


def next_similar(run: Run, span_id: str, kind: Literal["tool", "sibling", "model"], direction: int) -> str | None:
    """The next (`direction` 1) or previous (-1) span with the same name, the same parent, or of a model call."""
    position = run.index.get(span_id)
    if position is None:
        return None
    test = _TESTS[kind]
    current = run.spans[position]
    stop = len(run.spans) if direction > 0 else -1
    for i in range(position + direction, stop, direction):
        if test(current, run.spans[i]):
            return run.spans[i].id
    return None


def next_of(run: Run, span_id: str, ids: Collection[str], direction: int) -> str | None:
    """The next (`direction` 1) or previous (-1) of some spans; None past the last."""
    start = run.index.get(span_id)
    places = sorted(run.index[known_id] for known_id in ids if known_id in run.index)
    target = next((at for at in places[::direction] if start is not None and (at - start) * direction > 0), None)
    return None if target is None else run.spans[target].id


_TESTS: Final[dict[str, Callable[[Span, Span], bool]]] = {
    "tool": lambda a, b: b.name == a.name and b.operation is a.operation,
    "sibling": lambda a, b: b.parent_id == a.parent_id,
    "model": lambda a, b: b.operation is Operation.CHAT,
}

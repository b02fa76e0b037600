"""Build an immutable `Run` from the `Chunk`s that a format reads.

`RunBuilder` is the only place that repairs input: newer versions of a span replace older ones, spans without their
parent move to the top, cycles are cut, all without recursion.

A part of a run, such as a sub-agent, may be built as a run. A run may contain spans that another run counts: those of a
nested run that is listed separately, and those that a fork or copy inherited from its original.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import Enum
from math import inf
from typing import Final, NamedTuple

from msgspec.structs import replace

from tracetui.model.blocks import Blocks, Positions
from tracetui.model.run import GOING_ON, TREE, Header, LastEvent, Problem, Run, RunBody, RunRef, Step, stand
from tracetui.model.span import COUNTS_HERE, PREVIEW, Body, Message, Operation, Span, Status, StatusSource, text_of
from tracetui.model.summary import RunSummary
from tracetui.model.tally import CONTAINERS, NO_USAGE, GrowingTally, Tally, summary_of

# ---- order of the spans


class Shape(NamedTuple):
    """One version of a `Tree`."""

    spans: Blocks[Span]
    depths: Blocks[int]
    sizes: Blocks[int]


class Tree:
    """Pre-order, depth and subtree size of the spans of a run. Siblings are in order of arrival.

    With `by_start` siblings are sorted by start time, unknown ones last. Spans with a missing parent move to the top,
    and parent cycles are cut; `problems` reports both.
    """

    def __init__(self, by_id: Mapping[str, Span], *, by_start: bool = False) -> None:
        self._missing: set[str] = set()
        self._orphans = self._cut = 0
        self._by_start = by_start
        self.spans: list[Span] = []
        self.depths = array("i")
        self._sizes = array("i")
        self._open: list[int] = []
        """Positions of the last span and its ancestors, top first."""
        self.index: dict[str, int] = {}
        """Positions by id. It only grows, since versions of the run share it."""
        self._replaced: set[int] = set()
        self._closed: set[int] = set()
        """Positions of replaced spans, and of spans with an ended subtree, since `shape`."""
        self._shape = Shape(Blocks(), Blocks(), Blocks())
        self.in_order_of_arrival = not by_start and self._append_all(by_id)
        if not self.in_order_of_arrival:
            self._order(by_id)

    def _append_all(self, by_id: Mapping[str, Span]) -> bool:
        """Append the spans in order of arrival; False if that isn't their pre-order."""
        depths, index, open_positions, sizes = self.depths, self.index, self._open, self._sizes
        for position, span in enumerate(by_id.values()):
            parent, depth = span.parent_id, 0
            if parent is not None:
                parent_position = index.get(parent)
                if parent_position is None:
                    return False
                depth = depths[parent_position] + 1
                if depth > len(open_positions) or open_positions[depth - 1] != parent_position:
                    return False
            while len(open_positions) > depth:
                closed = open_positions.pop()
                sizes[closed] = position - closed
            open_positions.append(position)
            depths.append(depth)
            sizes.append(1)
            index[span.id] = position
        self.spans = list(by_id.values())
        return True

    def _order(self, by_id: Mapping[str, Span]) -> None:
        """Rebuild the order of all spans."""
        children: dict[str, list[Span]] = {}
        roots: list[Span] = []
        for span in by_id.values():
            parent = span.parent_id
            if parent is None:
                roots.append(span)
            elif parent in by_id and parent != span.id:
                children.setdefault(parent, []).append(span)
            else:
                self._orphan(parent)
                roots.append(span)
        for siblings in (roots, *children.values()) if self._by_start else ():
            siblings.sort(key=_began)
        self.spans, self.depths = roots, array("i", [0]) * len(roots)
        if children:
            self.spans, self.depths = self._ordered(by_id, roots, children)
        self._sizes, self._open = _subtree_sizes(self.depths)
        self.index = {span.id: i for i, span in enumerate(self.spans)}

    def shape(self) -> Shape:
        """Return the current version. Costs time for new and replaced spans and the ancestors of new ones."""
        for position in self._open:
            self._sizes[position] = len(self.spans) - position
        spans, depths, sizes = self._shape
        self._closed.update(self._open)
        self._shape = Shape(
            spans.updated(self.spans, self._replaced),
            depths.updated(self.depths),
            sizes.updated(self._sizes, self._closed) if len(self.spans) != len(spans) else sizes,
        )
        self._replaced, self._closed = set(), set()
        return self._shape

    def put(self, span: Span) -> bool:
        """Append a span, or replace an older version of it; False if the order must be rebuilt.

        A span can be appended if its parent is missing, the last span, or an ancestor of that.
        """
        parent = span.parent_id
        position = self.index.get(span.id)
        if position is not None:
            before = self.spans[position]
            if before.parent_id != parent or (self._by_start and _began(before) != _began(span)):
                return False
            self.spans[position] = span
            self._replaced.add(position)
            return True
        if self._cut or span.id in self._missing:  # it belongs before spans of a cycle, or has children already
            return False
        depth = 0
        if parent is not None:
            parent_position = self.index.get(parent)
            if parent_position is None:
                self._orphan(parent)
            else:
                depth = self.depths[parent_position] + 1
                if depth > len(self._open) or self._open[depth - 1] != parent_position:
                    return False
        if self._by_start and depth < len(self._open) and _began(self.spans[self._open[depth]]) > _began(span):
            return False
        self._append(span, depth)
        return True

    def problems(self, path: str, *, parents_to_come: bool = False) -> list[Problem]:
        """The repairs to the trace at `path`. With `parents_to_come`, missing parents aren't a problem yet."""
        problems = []
        if self._orphans and not parents_to_come:
            problems.append(Problem(path, TREE, f"{self._orphans} spans name a parent that is not in the trace"))
        if self._cut:
            problems.append(Problem(path, TREE, f"{self._cut} cycles of parents were cut"))
        return problems

    def _append(self, span: Span, depth: int) -> None:
        position = len(self.spans)
        for closed in self._open[depth:]:  # `shape` fills in those that stay open
            self._sizes[closed] = position - closed
            self._closed.add(closed)
        del self._open[depth:]
        self._open.append(position)
        self.spans.append(span)
        self.depths.append(depth)
        self._sizes.append(1)
        self.index[span.id] = position

    def _orphan(self, parent: str) -> None:
        self._orphans += 1
        self._missing.add(parent)

    def _ordered(
        self, by_id: Mapping[str, Span], roots: list[Span], children: dict[str, list[Span]]
    ) -> tuple[list[Span], array[int]]:
        order: list[Span] = []
        depths = array("i")
        seen: set[str] = set()
        _walk(roots, children, order, depths, seen)
        if len(order) < len(by_id):  # spans unreachable from a root form a cycle: cut it at its first span
            for span in by_id.values():
                if span.id not in seen:
                    self._cut += 1
                    _walk([span], children, order, depths, seen)
        return order, depths


def _began(span: Span) -> float:
    start = span.started_at
    return inf if start is None or start != start else start  # NaN doesn't sort


def _walk(
    roots: list[Span], children: dict[str, list[Span]], order: list[Span], depths: array[int], seen: set[str]
) -> None:
    stack = [(span, 0) for span in reversed(roots)]
    while stack:
        span, depth = stack.pop()
        if span.id in seen:
            continue
        seen.add(span.id)
        order.append(span)
        depths.append(depth)
        below = children.get(span.id)
        if below:
            stack.extend((child, depth + 1) for child in reversed(below))


def _subtree_sizes(depths: array[int]) -> tuple[array[int], list[int]]:
    """Subtree size of each position of a pre-order, and the positions of the last span and its ancestors, top first."""
    sizes = array("i", [1]) * len(depths)
    open_positions: list[int] = []
    for i, depth in enumerate(depths):
        while len(open_positions) > depth:
            position = open_positions.pop()
            sizes[position] = i - position
        open_positions.append(i)
    for position in open_positions:
        sizes[position] = len(depths) - position
    return sizes, open_positions


# ---- builder

__all__ = ["CONTAINERS", "NO_USAGE", "RunBuilder", "Tally", "summary_of"]


SPEAKERS: Final = frozenset({"user", "assistant", "agent", "interrupted"})
"""Names of messages that people and agents wrote; those of programs, such as the output of a command, are others."""
_LAST_SPANS: Final = 256
"""Spans among which the last event is: notes and hooks may follow it."""


def _is_event(span: Span) -> bool:
    """Whether a span moves the conversation on."""
    operation = span.operation
    if operation is Operation.MESSAGE:
        return span.name in SPEAKERS
    return operation is Operation.CHAT or operation is Operation.EXECUTE_TOOL


class RunBuilder:
    """Collects the chunks of one run; `build` returns an immutable `Run` at any time.

    Rebuilding costs time for new and replaced spans only. The whole order is rebuilt only if spans were inserted or
    moved within the tree.
    """

    _tree: Tree
    _steps: list[Step]
    _built_steps: Blocks[Step]
    """The steps of the last built run."""
    _tally: GrowingTally

    def __init__(self, ref: RunRef, load: Callable[[Span], Body]) -> None:
        self._ref = ref
        self._load = load
        self.reset()

    def __len__(self) -> int:
        """Number of spans."""
        return self._count

    def reset(self) -> None:
        """Discard everything: the source was rewritten."""
        self._arrived: dict[str, Span] | None = {}
        """The spans in order of arrival, but for new ones; None if the tree has them in this order."""
        self._new: dict[str, Span] = {}
        self._count = 0
        self._unended: set[str] = set()
        self._problems: list[Problem] = []
        self._torn = self._lost = 0
        self._header: Header | None = None
        self._body = RunBody()
        self._is_ordered = False

    def add(
        self,
        spans: Iterable[Span],
        *,
        header: Header | None = None,
        body: RunBody | None = None,
        problems: Iterable[Problem] = (),
    ) -> bool:
        """Add one chunk: a span with an existing id replaces the older version at the same position.

        Returns whether the run may have changed.
        """
        before = len(self._problems), self._header, self._body
        changed, running = False, Status.RUNNING
        present: Container[str] = self._tree.index if self._arrived is None else self._arrived
        new, unended = self._new, self._unended
        for span in spans:
            changed, ident = True, span.id
            if ident not in new and ident not in present:
                self._count += 1
            new[ident] = span
            if span.status is running:
                unended.add(ident)
            elif unended:
                unended.discard(ident)
        self._header = header or self._header
        self._body = body or self._body
        for problem in problems:
            self._problems.append(problem)
            self._torn += problem.torn
            self._lost += problem.lost or 0
        return changed or before != (len(self._problems), self._header, self._body)

    def summary(self, *, modified_at: float = 0.0, moving: bool = False, failure: Problem | None = None) -> RunSummary:
        """The current summary: that of `build`, at lower cost."""
        self._update()
        return self._summary(len(self._all_problems(failure, moving=moving)), modified_at, moving)

    def build(
        self,
        *,
        modified_at: float = 0.0,
        moving: bool = False,
        complete: bool = True,
        failure: Problem | None = None,
        revision: int = 0,
    ) -> Run:
        """The current run; `failure` is a problem of this build only."""
        self._update()
        tree, problems = self._tree, self._all_problems(failure, moving=moving)
        spans, depths, sizes = tree.shape()
        self._built_steps = self._built_steps.updated(self._steps)
        summary = self._summary(len(problems), modified_at, moving)
        unended = tuple(sorted(tree.index[span_id] for span_id in self._unended))
        return Run(
            summary=summary,
            body=self._body,
            spans=spans if summary.status in GOING_ON else stand(spans, unended, going=False),
            unended=unended,
            depths=depths,
            sizes=sizes,
            steps=self._built_steps,
            problems=problems,
            index=Positions(tree.index, len(spans)),
            load=self._load,
            revision=revision,
            complete=complete,
        )

    def _summary(self, problems: int, modified_at: float, moving: bool) -> RunSummary:
        tally = self._tally.of(self._tree.spans)
        tally.problems = problems
        tally.torn, tally.unread = self._torn, tally.unread + self._lost
        header = self._header or Header(id=self._ref.key or self._ref.path, name=self._ref.path, ended=False)
        last = self._last_event(header) if header.parent is None else None
        return summary_of(self._ref, header, tally, last=last, modified_at=modified_at, moving=moving)

    def _last_event(self, header: Header) -> LastEvent | None:
        """The last event of a session, or of another run that has an open call."""
        if not header.is_session and (header.ended or header.status not in (None, Status.RUNNING)):
            return None
        spans, index = self._tree.spans, self._tree.index
        unended = sorted((index[span_id] for span_id in self._unended), reverse=True)
        calls = [spans[position] for position in unended if spans[position].operation not in CONTAINERS]
        call = max(calls, key=_began, default=None)  # of calls that began at once the last one, the innermost
        last = next((span for span in reversed(spans[-_LAST_SPANS:]) if _is_event(span)), None)
        if last is None or (call is None and not header.is_session):
            return None
        if call is None or header.closed:
            return LastEvent(last.operation, last.name, last.status, closed=header.closed)
        return LastEvent(last.operation, last.name, last.status, call.name, call.started_at)

    def _all_problems(self, failure: Problem | None, *, moving: bool) -> tuple[Problem, ...]:
        header = self._header
        cut = header.unfinished if header is not None and not moving else ()
        to_come = header is not None and header.is_part
        repaired = self._tree.problems(self._ref.path, parents_to_come=to_come)
        return (*self._problems, *cut, *([failure] if failure else ()), *repaired)

    def _update(self) -> None:
        """Add the spans that arrived since the last call to the tree."""
        new, self._new = self._new, {}
        is_few = self._is_ordered and 2 * len(new) <= self._count
        if self._arrived is not None:
            self._arrived |= new
        if not is_few or not all(map(self._put, new.values())):
            self._rebuild(
                {span.id: span for span in self._tree.spans} | new if self._arrived is None else self._arrived
            )

    def _put(self, span: Span) -> bool:
        """Add or replace one span; False if the order must be rebuilt."""
        tree = self._tree
        position = tree.index.get(span.id)
        if position is None:
            if span.is_step:
                self._steps.append(Step(span.step, span.id))
            return tree.put(span)
        old = tree.spans[position]
        self._tally.exchange(position, old, span)
        if not tree.put(span):
            return False
        if (old.is_step, old.step) != (span.is_step, span.step):
            self._steps, self._built_steps = _steps(tree.spans), Blocks()
        return True

    def _rebuild(self, arrived: dict[str, Span]) -> None:
        self._tree = Tree(arrived, by_start=self._header is not None and self._header.by_start)
        self._arrived = None if self._tree.in_order_of_arrival else arrived
        self._steps = _steps(self._tree.spans)
        self._built_steps = Blocks()
        self._tally = GrowingTally()
        self._is_ordered = True


def _steps(spans: Iterable[Span]) -> list[Step]:
    return [Step(span.step, span.id) for span in spans if span.is_step]


# ---- sub-agents as runs


def is_part(span: Span) -> bool:
    """Whether a span can be opened as a run."""
    return span.operation is Operation.INVOKE_AGENT


def part_of(run: Run, position: int) -> Run:
    """The subtree of ``spans[position]`` as a run, with the address of the span.

    Its steps are the steps of the run inside the subtree. If there are none, as in most sub-agents, each user message
    (from the calling agent) is a step. Loads the bodies of its messages.
    """
    span, begin, end = run.spans[position], position + 1, position + run.sizes[position]
    base = run.depths[position] + 1
    depths = tuple(depth - base for depth in run.depths[begin:end])
    spans = _own_steps(run.spans[begin:end], depths)
    body = _body(run, position, spans, depths)
    return Run(
        summary=_summary(run, span, spans, body),
        body=body,
        spans=Blocks(spans),
        depths=Blocks(depths),
        sizes=Blocks(run.sizes[begin:end]),
        steps=Blocks(Step(own.step, own.id) for own in spans if own.is_step),
        index={own.id: i for i, own in enumerate(spans)},
        load=run.load,
        unended=tuple(i - begin for i in run.unended if begin <= i < end),
        revision=run.revision,
        complete=run.complete,
    )


def _own_steps(spans: Sequence[Span], depths: Sequence[int]) -> tuple[Span, ...]:
    """The spans without parents at the top, and with steps of their own if they have none."""
    counted = any(span.is_step for span in spans)
    steps, number = [], 0
    for span, depth in zip(spans, depths, strict=True):
        begins_step = not counted and depth == 0 and span.operation is Operation.MESSAGE and span.name == "user"
        number += begins_step
        step = span.step if counted else number or None
        parent = None if depth == 0 else span.parent_id
        steps.append(replace(span, parent_id=parent, step=step, is_step=begins_step or span.is_step))
    return tuple(steps)


def _summary(run: Run, span: Span, spans: Sequence[Span], body: RunBody) -> RunSummary:
    tally = Tally()
    for own in spans:
        tally.add(own)
    run_summary = run.summary
    ended = span.status_source is StatusSource.DERIVED and span.duration_ms is not None
    # in the whole run the error belongs to its span; here it is the end of the run
    failed = ended and span.status is Status.UNKNOWN and tally.ends_in_error
    header = Header(
        id=span.id,
        name=span.name,
        agent=span.name,
        model=next((own.name for own in spans if own.operation is Operation.CHAT), None),
        status=Status.ERROR if failed else span.status,
        status_word=span.status_word,
        status_source=span.status_source,
        started_at=span.started_at,
        time_zone=run_summary.time_zone,
        duration_ms=span.duration_ms,
        usage=span.usage,
        parent=run_summary.id,
        prompt=(body.last_user or "")[:PREVIEW],
    )
    summary = summary_of(replace(run_summary.ref, span=span.id), header, tally)
    return replace(summary, modified_at=run_summary.modified_at)


def _body(run: Run, position: int, spans: Sequence[Span], depths: Sequence[int]) -> RunBody:
    """Input and output of a sub-agent: from its messages, else from the call that started it."""
    turns = {span.id for span in spans if span.operation is Operation.TURN}
    messages = [span for span, depth in zip(spans, depths, strict=True) if depth == 0 or span.parent_id in turns]
    questions, answered, system = (_texts(run, messages, role) for role in ("user", "assistant", "system"))
    caller = _caller(run, position)
    caller_input, caller_output = (None, None) if caller is None else (caller.input, caller.output)
    return RunBody(
        input=questions[0] if questions else caller_input,
        output=answered[-1] if answered else caller_output,
        error=run.spans[position].error,
        system_prompt=system[0] if system else None,
        last_user=questions[-1] if questions else None,
        last_assistant=answered[-1] if answered else None,
        attributes=run.load(run.spans[position]).attributes,
    )


def _caller(run: Run, position: int) -> Body | None:
    """The body of the call that started it."""
    parent_position = run.parent(position)
    if parent_position is None or run.spans[parent_position].operation is not Operation.EXECUTE_TOOL:
        return None
    return run.load(run.spans[parent_position])


def _texts(run: Run, spans: Sequence[Span], role: str) -> list[str]:
    """The texts of one role, from the messages and model calls among these spans."""
    messages: list[Message] = []
    for span in spans:
        if span.operation in (Operation.MESSAGE, Operation.TURN, Operation.CHAT):
            body = run.load(span)
            context = () if span.operation is Operation.CHAT else body.input_messages
            messages += (*context, *body.output_messages)
    return [text for message in messages if message.role == role and (text := text_of(message))]


# ---- ownership of spans


class Ownership(Enum):
    """Which run counts a span."""

    OWN = "own"
    """The run that contains it."""
    LISTED = "listed"
    """Another listed run: a nested run, or the original of a fork."""
    TAKEN_OVER = "taken over"
    """The original of this run, listed or not."""


def ownership(run: Run, listed: Container[RunRef] = ()) -> list[Ownership]:
    """The ownership of every span of a run, given that the runs of `listed` are counted separately.

    Of the descendants of a span owned by another run only those are the run's own that have a claim which no other run
    counts. An unlisted nested run counts to the innermost
    listed run that contains it.
    """
    ref, owners = run.summary.ref, list[Ownership]()
    listed_end = taken_over_end = 0
    for i, span in enumerate(run.spans):
        if i >= listed_end:
            if span.owner is not None and RunRef(ref.format, ref.path, span.owner) in listed:
                listed_end = i + run.sizes[i]
            elif i >= taken_over_end and is_taken_over(span):
                taken_over_end = i + run.sizes[i]
        is_own = i >= taken_over_end or (span.claim is not None and not is_taken_over(span))
        kind = Ownership.OWN if is_own else Ownership.TAKEN_OVER
        owners.append(Ownership.LISTED if i < listed_end else kind)
    return owners


def own_spans(run: Run, listed: Container[RunRef] = ()) -> list[Span]:
    """The spans that a run owns, given that the runs of `listed` are counted separately."""
    owned = zip(run.spans, ownership(run, listed), strict=True)
    return [span for span, owner in owned if owner is Ownership.OWN]


def nested_runs(run: Run) -> frozenset[RunRef]:
    """The runs of the same file that own spans of this one."""
    ref = run.summary.ref
    return frozenset(RunRef(ref.format, ref.path, owner) for owner in {span.owner for span in run.spans} if owner)


def is_taken_over(span: Span) -> bool:
    """Whether a span comes from another run: inherited, copied, or restored instead of computed."""
    return (span.taken_over and COUNTS_HERE not in span.notes) or span.status_word == "restored"

"""From what formats read to what everybody else uses: `Chunk`s in, an immutable `Run` out.

`RunBuilder` is the only place that mends reality: newer versions of a span replace older ones, spans whose parent is
missing move to the top, cycles are cut, all without recursion. `summary_of` is the only place that rolls up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from sys import intern
from typing import Final

import msgspec

from tracetui.model.run import FirstError, Header, Problem, Run, RunBody, RunRef, RunSummary, Step
from tracetui.model.span import Body, Operation, Span, Status, StatusSource, Usage

CONTAINERS: Final = frozenset({Operation.INVOKE_AGENT, Operation.INVOKE_WORKFLOW, Operation.TURN})
"""Operations whose usage and time repeat those of the spans below them."""

NO_USAGE: Final = Usage()


class Tally(msgspec.Struct, kw_only=True):
    """What was counted in a run: the same numbers whether a format skimmed the file or read all of it."""

    steps: int = 0
    spans: int = 0
    llm_calls: int = 0
    tool_calls: int = 0
    errors: int = 0
    usage: Usage = NO_USAGE
    first_error: FirstError | None = None
    ends_in_error: bool = False
    """The last thing that happened failed."""
    first_start: float | None = None
    last_end: float | None = None
    problems: int = 0

    def add(self, span: Span) -> None:
        """Count one span."""
        self.spans += 1
        operation = span.operation
        if span.is_step:
            self.steps += 1
        if operation is Operation.CHAT:
            self.llm_calls += 1
        elif operation is Operation.EXECUTE_TOOL:
            self.tool_calls += 1
        if operation not in CONTAINERS:
            if span.usage is not None:
                self.usage = self.usage + span.usage
            self.ends_in_error = span.status is Status.ERROR
        if span.status is Status.ERROR:
            self.errors += 1
            if self.first_error is None or (self.first_error.message == "" and span.error is not None):
                error = span.error
                self.first_error = FirstError(
                    error.message if error else "", error.type if error else None, span.id, span.name
                )
        start = span.started_at
        if start is not None:
            if self.first_start is None or start < self.first_start:
                self.first_start = start
            end = start + max(0.0, span.duration_ms or 0.0) / 1000
            if self.last_end is None or end > self.last_end:
                self.last_end = end


def summary_of(
    ref: RunRef, header: Header, tally: Tally | None, *, modified_at: float = 0.0, moving: bool = False
) -> RunSummary:
    """Roll a header and what was counted up into a summary.

    `tally` is None in the list stage: counts stay unknown and ``deep`` is False. `moving` says whether the file changed
    just now: only then is a run without an end `running`.
    """
    status, source = header.status, header.status_source
    if status is None and not header.ended:
        status, source = (Status.RUNNING if moving else Status.UNKNOWN), StatusSource.DERIVED
    elif status is None and tally is not None:
        status, source = (Status.ERROR if tally.ends_in_error else Status.OK), StatusSource.DERIVED
    started, duration = header.started_at, header.duration_ms
    if tally is not None:
        if started is None:
            started = tally.first_start
        if duration is None and header.ended and started is not None and tally.last_end is not None:
            duration = max(0.0, tally.last_end - started) * 1000 or None
    usage = header.usage
    if tally is not None and tally.usage:
        usage = tally.usage if usage is None else usage.or_else(tally.usage)
    error = header.error
    if error is None and tally is not None:
        error = tally.first_error
    agent = _shared(header.agent)
    return RunSummary(
        ref=ref,
        id=header.id,
        name=agent if agent is not None and agent == header.name else header.name,
        agent=agent,
        model=_shared(header.model),
        status=status or Status.UNKNOWN,
        status_word=_shared(header.status_word),
        status_source=source,
        started_at=started,
        time_zone=header.time_zone,
        duration_ms=duration,
        usage=usage,
        steps=header.steps if tally is None else tally.steps,
        spans=None if tally is None else tally.spans,
        llm_calls=tally.llm_calls if tally is not None and header.tells_calls else None,
        tool_calls=tally.tool_calls if tally is not None and header.tells_calls else None,
        errors=None if tally is None else tally.errors,
        problems=0 if tally is None else tally.problems,
        replay_of=header.replay_of,
        replay_of_path=header.replay_of_path,
        relation=header.relation,
        parent=header.parent,
        first_error=error,
        prompt=header.prompt,
        outcome=header.outcome,
        label=header.label,
        modified_at=modified_at,
        deep=tally is not None,
    )


def _shared(text: str | None) -> str | None:
    """The same text, one object for all runs that have it."""
    return None if text is None else intern(text)


class RunBuilder:
    """Collects what `Format.read` returns for one run; `build` makes the immutable `Run` of it at any time."""

    def __init__(self, ref: RunRef, load: Callable[[Span], Body]) -> None:
        self._ref = ref
        self._load = load
        self._revision = 0
        self.reset()

    def __len__(self) -> int:
        """How many spans are known."""
        return len(self._spans)

    def reset(self) -> None:
        """Forget everything: the source was rewritten."""
        self._spans: dict[str, Span] = {}
        self._problems: list[Problem] = []
        self._header: Header | None = None
        self._body = RunBody()

    def add(
        self,
        spans: Iterable[Span],
        *,
        header: Header | None = None,
        body: RunBody | None = None,
        problems: Iterable[Problem] = (),
    ) -> bool:
        """Take in one chunk: a span with a known id replaces its older version and keeps its place.

        True if the run may differ from what it was.
        """
        known = len(self._problems), self._header, self._body
        changed = False
        for span in spans:
            changed = True
            self._spans[span.id] = span
        self._header = header or self._header
        self._body = body or self._body
        self._problems.extend(problems)
        return changed or known != (len(self._problems), self._header, self._body)

    def summary(self, *, modified_at: float = 0.0, moving: bool = False, failure: Problem | None = None) -> RunSummary:
        """The summary of the run as known so far: that of `build`."""
        return self.build(modified_at=modified_at, moving=moving, failure=failure).summary

    def build(
        self,
        *,
        modified_at: float = 0.0,
        moving: bool = False,
        complete: bool = True,
        failure: Problem | None = None,
    ) -> Run:
        """The run as known so far; `failure` is a problem that it has now, and may not have the next time."""
        self._revision += 1
        spans, depths, sizes, found = _pre_order(self._spans, self._ref.path)
        problems = (*self._problems, *([failure] if failure else []), *found)
        tally = Tally(problems=len(problems))
        for span in spans:
            tally.add(span)
        header = self._header or Header(id=self._ref.key or self._ref.path, name=self._ref.path, ended=False)
        return Run(
            summary=summary_of(self._ref, header, tally, modified_at=modified_at, moving=moving),
            body=self._body,
            spans=tuple(spans),
            depths=tuple(depths),
            sizes=tuple(sizes),
            steps=tuple(Step(span.step, span.id) for span in spans if span.is_step),
            problems=problems,
            index={span.id: i for i, span in enumerate(spans)},
            load=self._load,
            revision=self._revision,
            complete=complete,
        )


def _pre_order(by_id: dict[str, Span], path: str) -> tuple[list[Span], list[int], list[int], list[Problem]]:
    """Pre-order, depth and subtree size of every span; siblings keep the order in which they came."""
    children: dict[str, list[Span]] = {}
    roots: list[Span] = []
    orphans = 0
    for span in by_id.values():
        parent = span.parent_id
        if parent is None:
            roots.append(span)
        elif parent in by_id and parent != span.id:
            children.setdefault(parent, []).append(span)
        else:
            orphans += 1
            roots.append(span)
    if not children:
        return roots, [0] * len(roots), [1] * len(roots), _tree_problems(path, orphans, 0)
    order: list[Span] = []
    depths: list[int] = []
    seen: set[str] = set()
    cut = 0
    _walk(roots, children, order, depths, seen)
    if len(order) < len(by_id):  # what no root reaches hangs on a cycle: cut it at its first span
        for span in by_id.values():
            if span.id not in seen:
                cut += 1
                _walk([span], children, order, depths, seen)
    return order, depths, _sizes(depths), _tree_problems(path, orphans, cut)


def _walk(
    roots: list[Span], children: dict[str, list[Span]], order: list[Span], depths: list[int], seen: set[str]
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


def _sizes(depths: list[int]) -> list[int]:
    """Subtree size of each position, from the depths of a pre-order."""
    sizes = [1] * len(depths)
    open_positions: list[int] = []
    for i, depth in enumerate(depths):
        while len(open_positions) > depth:
            position = open_positions.pop()
            sizes[position] = i - position
        open_positions.append(i)
    while open_positions:
        position = open_positions.pop()
        sizes[position] = len(depths) - position
    return sizes


def _tree_problems(path: str, orphans: int, cut: int) -> list[Problem]:
    problems = []
    if orphans:
        problems.append(Problem(path, "spans", f"{orphans} spans name a parent that is not in the trace"))
    if cut:
        problems.append(Problem(path, "spans", f"{cut} cycles of parents were cut"))
    return problems

"""The spans of a thread: turns, the nodes of each superstep, sub-graphs below their node, messages and calls.

Facts: databases of langgraph 0.2.28 and 1.2.24. Ids of checkpoints sort by time. The tasks of a superstep write below
the checkpoint that they start from; its child of source ``loop`` is their result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import DERIVED, DONE, EXPLICIT, claim_of_call
from tracetui.formats.agent_log import Outcome as Ending
from tracetui.formats.langgraph.records import (
    CHANGES,
    ERROR,
    INPUT,
    INTERRUPT,
    LOOP,
    RESUME,
    SPECIAL,
    START,
    Checkpoint,
    Key,
    Message,
    Place,
    Row,
    RowRef,
    Write,
    error_of,
    node_of,
    started_nodes,
)
from tracetui.formats.scalars import UUID, between, text
from tracetui.formats.sqlite import Outcome
from tracetui.model import PREVIEW, Error, Operation, Span, Status, excerpt

OTHER_BRANCH: Final = "other branch"
"""`Span.note` of everything that does not lead to the newest checkpoint."""
RESUMED: Final = "resumed"
"""`Span.note` of a node that went on after an answer."""
_CUT: Final = frozenset({"length", "max_tokens", "content_filter", "refusal"})
"""Finish reasons of answers that are not whole."""


class At(Struct, frozen=True, gc=False):
    """Where a body is: rows; of a message also its channel and place in the first row."""

    rows: tuple[RowRef, ...]
    channel: str | None = None
    place: Place | None = None
    call: int = -1
    """The number of a call of that message."""
    answer: tuple[str, Place] | None = None
    """Channel and place, in the last row, of the result of that call."""
    size: int = 0


class RecordedMessage(NamedTuple):
    """A message where it was recorded first."""

    key: str
    row: Checkpoint | Write
    channel: str
    place: Place
    message: Message
    time: float | None


def state_of(writes: Sequence[Write]) -> str:
    """What the last row of a task is: `ERROR`, `INTERRUPT`, ``done``, or empty without one; retries write later."""
    last = max((write for write in writes if write.channel != RESUME), key=lambda write: write.rowid, default=None)
    return "" if last is None else last.channel if last.channel in (ERROR, INTERRUPT) else "done"


def tasks_of(writes: Sequence[Write]) -> dict[str, list[Write]]:
    """Writes of nodes, by task."""
    tasks: dict[str, list[Write]] = {}
    for write in writes:
        if write.of_node:
            tasks.setdefault(write.task, []).append(write)
    return tasks


def without_edges(checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
    """The nodes (2024) after which no node is scheduled: an input took what was, and took nothing."""
    by_key = {row.key: row for row in checkpoints}
    inputs = [(by_key.get((row.ns, row.parent or "")), row) for row in checkpoints if row.source == INPUT]
    return frozenset(name for last, row in inputs if last is not None for name in last.undecided - row.starting)


def outcome_of(
    last: Checkpoint | None, pending: Sequence[Write], before: Sequence[Write], final: frozenset[str]
) -> Outcome:
    """The outcome by the last checkpoint, the writes of tasks that started from it, and those that made it.

    Without an error or interrupt it ended well only if no node is scheduled: an exceeded recursion limit, a killed
    process and a static breakpoint leave a scheduled node, and no record. Where the checkpoint itself does not show
    whether one is (2024), it may be after each node but those in `final` (`without_edges`).
    """
    states = {state_of(rows) for rows in tasks_of(pending).values()}
    if ERROR in states:
        return Outcome(Status.ERROR, EXPLICIT)
    if INTERRUPT in states:
        return Outcome(Status.PAUSED, EXPLICIT, "interrupt")
    if last is None or last.source == INPUT:
        return Outcome()
    scheduled = last.scheduled
    if scheduled is None and before:
        scheduled = started_nodes(before)
    if scheduled != ():
        return Outcome()
    return Outcome(Status.UNKNOWN if last.undecided - final else Status.OK, DERIVED)


class Tree:
    """The spans of a thread, in order."""

    def __init__(self, checkpoints: Sequence[Checkpoint], writes: Sequence[Write], *, outcome: Outcome) -> None:
        self.spans: list[Span] = []
        self._outcome = outcome
        self._rows = sorted(checkpoints, key=lambda row: (row.checkpoint, row.ns))
        self._final = without_edges(self._rows)
        self._by_key = {row.key: row for row in self._rows}
        self._writes: defaultdict[Key, list[Write]] = defaultdict(list)
        for write in sorted(writes, key=lambda write: write.rowid):
            self._writes[write.key].append(write)
        self._children: defaultdict[Key, list[Checkpoint]] = defaultdict(list)
        self._results: defaultdict[Key, list[Checkpoint]] = defaultdict(list)
        """By checkpoint: those that the nodes which started from it made; several after it was resumed."""
        for row in self._rows:
            if (before := self._before(row)) is not None:
                self._children[before.key].append(row)
                if row.source not in CHANGES and row.source != INPUT:
                    self._results[before.key].append(row)
        roots = [row for row in self._rows if not row.ns]
        self._live = roots[-1] if roots else None
        self._line = {row.key for row in self._ancestors(self._live)}
        named = {task: name for row in self._rows for name, task in map(_named, row.ns.split("|")) if task}
        self._tasks = {key: _tasks(rows, self._by_key.get(key), named) for key, rows in self._writes.items()}
        """By checkpoint: the name and writes of the nodes that started from it, by task."""
        self._graphs: defaultdict[Key, dict[str, str]] = defaultdict(dict)
        """By checkpoint: sub-graphs that started from it, by task (or node), with the name of their node."""
        self._containers: dict[Key, str | None] = {}
        self._turns: dict[str, list[Checkpoint]] = {}
        for row in self._rows:
            self._containers[row.key] = self._container(row)
        self._raised: defaultdict[str, set[str]] = defaultdict(set)
        """By error: the graphs in which a node has it. The innermost one raised it."""
        for write in writes:
            if write.channel == ERROR:
                self._raised[write.content].add(write.ns)
        self._seen: set[str] = set()
        self._loose: Counter[bytes] = Counter()
        """Messages of writes without an id, by content: a checkpoint has them again, with one."""
        self._owned: defaultdict[str | None, list[RecordedMessage]] = defaultdict(list)
        self._attribute()
        self._answers: defaultdict[str, list[RecordedMessage]] = defaultdict(list)
        for entry in (entry for owned in self._owned.values() for entry in owned if entry.message.answers):
            self._answers[entry.message.answers or ""].append(entry)
        self._answered: set[str] = set()
        self._calls: set[str] = {
            ident for owned in self._owned.values() for entry in owned for ident, *_ in entry.message.calls if ident
        }
        self._emit_all()

    # ---- relations

    def _before(self, row: Checkpoint) -> Checkpoint | None:
        """The checkpoint before; a parent that is not older is none."""
        if row.parent is None or row.parent >= row.checkpoint:
            return None
        return self._by_key.get((row.ns, row.parent))

    def _ancestors(self, row: Checkpoint | None) -> Iterator[Checkpoint]:
        while row is not None:
            yield row
            row = self._before(row)

    def _container(self, row: Checkpoint) -> str | None:
        """The span above those of a checkpoint: its turn, or the node that its graph is."""
        if row.ns:
            return self._node_above(row)
        before = self._before(row)
        turn = None if row.source == INPUT or before is None else self._containers[before.key]
        turn = turn or f"turn:{row.checkpoint}"
        self._turns.setdefault(turn, []).append(row)
        return turn

    def _node_above(self, row: Checkpoint) -> str | None:
        """The id of the node that runs the graph of `row`. Further graphs of one node have numbers at the end."""
        parts = row.ns.split("|")
        while len(parts) > 1 and parts[-1].isdigit():
            parts.pop()
        above, (name, task) = "|".join(parts[:-1]), _named(parts[-1])
        key = (above, text(row.parents.get(above)) or "")
        if key not in self._by_key and key not in self._writes:
            return None
        if not task:
            task = next((ident for ident, (node, _) in self._tasks.get(key, {}).items() if node == name), name)
        self._graphs[key][task] = name
        return _node_id(key, task)

    def _names(self, key: Key) -> dict[str, str]:
        """The nodes that started from a checkpoint: their names, by task."""
        nodes = {**self._graphs[key], **{task: name for task, (name, _) in self._tasks.get(key, {}).items()}}
        known = {*nodes.values()}
        return {**nodes, **{name: name for row in self._results[key] for name in row.names if name not in known}}

    # ---- messages

    def _attribute(self) -> None:
        """Give each message to the span that recorded it first: a node, else the turn or graph."""
        done: set[Key] = set()
        for row in self._rows:
            before, fresh = self._before(row), self._fresh(row)
            if before is not None and before.key not in done and row in self._results[before.key]:
                done.add(before.key)
                self._of_tasks(before.key, fresh)
            for entry in fresh.values():
                self._own(self._owner(row, before), entry, loose=True)
        for key in sorted(self._writes.keys() - done, key=lambda key: (-key[0].count("|"), key[1])):
            self._of_tasks(key, {})

    def _fresh(self, row: Checkpoint) -> dict[str, RecordedMessage]:
        """The messages of a checkpoint that are new."""
        fresh: dict[str, RecordedMessage] = {}
        for channel, placed in row.messages:
            times: Counter[bytes] = Counter()
            for place, message in placed:
                key = message.id or f"{message.content.hex()}:{times[message.content]}"
                times[message.content] += 1
                if key not in self._seen and key not in fresh:
                    fresh[key] = RecordedMessage(key, row, channel, place, message, row.time)
        return fresh

    def _of_tasks(self, key: Key, fresh: dict[str, RecordedMessage]) -> None:
        before = self._by_key.get(key)
        for task, (_, rows) in self._tasks.get(key, {}).items():
            for write in rows:
                for channel, placed in write.messages:
                    for number, (place, message) in enumerate(placed):
                        same = (ident for ident, entry in fresh.items() if entry.message.content == message.content)
                        ident = message.id or next(same, None)
                        if ident is None:
                            ident = f"{task}:{write.index}:{number}"
                            self._loose[message.content] += ident not in self._seen
                        applied = fresh.pop(ident, None)
                        time = applied.time if applied is not None else before.time if before is not None else None
                        entry = RecordedMessage(ident, write, channel, place, message, time)
                        self._own(_node_id(key, task), entry, loose=False)

    def _owner(self, row: Checkpoint, before: Checkpoint | None) -> str | None:
        """The span of a message that no write has."""
        if row.source in CHANGES:
            return _change_id(row)
        names = self._names(before.key) if before is not None and row.source == LOOP else {}
        if before is not None and len(names) == 1:
            return _node_id(before.key, next(iter(names)))
        return self._containers[row.key]

    def _own(self, owner: str | None, entry: RecordedMessage, *, loose: bool) -> None:
        content = entry.message.content
        if entry.key in self._seen:
            return
        self._seen.add(entry.key)
        if loose and self._loose[content] > 0:
            self._loose[content] -= 1
        else:
            self._owned[owner].append(entry)

    # ---- spans

    def _emit_all(self) -> None:
        for row in self._rows:
            container = self._containers[row.key]
            if container == f"turn:{row.checkpoint}":
                self._turn(container, row)
            if row.source in CHANGES:
                self._change(row, container)
            elif row.source not in (INPUT, LOOP):
                at = At((row.ref,), size=row.size)
                self.spans.append(Span(_change_id(row), row.source[:PREVIEW], Operation.UNKNOWN, container, at=at))
            elif row.ns and row.source == INPUT:
                self._note(_change_id(row), INPUT, row, [], container)
            if row.source == LOOP and self._before(row) is None:
                self._superstep(f"step:{_path(row.key)}", row, [], container)
            self._step(row.key, container)
        for key in [key for key in self._writes if key not in self._by_key]:
            self._step(key, None)
        for owner in [owner for owner in self._owned if owner is None]:
            self._messages(owner)

    def _turn(self, ident: str, first: Checkpoint) -> None:
        rows = self._turns[ident]
        last = rows[-1]
        outcome = self._outcome
        if last is not self._live:
            before = self._before(last)
            made_by = self._writes[before.key] if before is not None else []
            outcome = outcome_of(last, self._writes[last.key], made_by, self._final)
            outcome = Outcome() if outcome.status is Status.PAUSED else outcome  # nobody will answer
        runs = last is self._live and outcome.status is None
        said = (entry.message for entry in self._owned[ident] if entry.message.role == "user")
        asked = first.asked or next((message.text for message in said), "")
        self.spans.append(
            Span(ident, "turn", Operation.TURN, None, started_at=first.time,
                 status=outcome.status or (Status.RUNNING if runs else Status.UNKNOWN),
                 status_source=outcome.source, status_word=outcome.word, preview=asked[:PREVIEW],
                 duration_ms=between(first.time, last.time) or None if outcome.status is Status.OK else None,
                 at=At((first.ref,)) if first.source == INPUT else None)
        )  # fmt: skip
        self._messages(ident)

    def _change(self, row: Checkpoint, container: str | None) -> None:
        """A state that a program changed, or an earlier one; it is a fork if another checkpoint has the same parent."""
        before = self._before(row)
        name = row.source
        if before is not None:
            name = "fork" if self._children[before.key][0] is not row else "update"
        extra = [] if before is None or self._results[before.key] else self._extra(before.key)
        self._note(_change_id(row), name, row, extra, container)
        self._messages(_change_id(row))

    def _note(
        self, ident: str, name: str, row: Checkpoint | None, writes: Sequence[Write], container: str | None,
        operation: Operation = Operation.META, **facts: Any,
    ) -> None:  # fmt: skip
        rows = (*(() if row is None else (row,)), *writes)
        time, at = row.time if row is not None else None, At(tuple(row.ref for row in rows))
        self.spans.append(
            Span(ident, name, operation, container, started_at=time, note=self._branch(row), at=at, **facts)
        )

    def _superstep(self, ident: str, row: Checkpoint, writes: Sequence[Write], container: str | None) -> None:
        """A superstep whose nodes are not recorded."""
        name = "superstep" if row.step is None else f"superstep {row.step}"
        self._note(ident, name, row, writes, container, Operation.OTHER, step=row.step, is_step=True, **DONE)

    def _extra(self, key: Key) -> list[Write]:
        tasks = self._tasks.get(key, {})
        return [write for write in self._writes[key] if not write.of_node or write.task not in tasks]

    def _step(self, key: Key, container: str | None) -> None:
        """Everything that started from a checkpoint: its nodes, or the input that became its state."""
        results, extra, names = self._results[key], self._extra(key), self._names(key)
        for task, name in names.items():
            self._node(key, task, name, extra, container)
        starts = any(write.path.endswith(START) for write in extra)
        first = self._by_key.get(key)
        starts = starts or (first is not None and first.scheduled == (START,))
        for number, row in enumerate(results):
            ident = f"step:{_path(key)}" + (f"~{number + 1}" if number else "")
            if starts and not names:
                self._note(ident, "start", row, extra, container)
            elif not names or number:
                self._superstep(ident, row, extra if not number else [], container)
        changed = any(row.source in CHANGES for row in self._children[key])
        if extra and not results and not names and not changed:
            self._note(f"step:{_path(key)}", "start" if starts else "writes", None, extra, container)

    def _node(self, key: Key, task: str, name: str, extra: Sequence[Write], container: str | None) -> None:
        _, writes = self._tasks.get(key, {}).get(task, (name, []))
        before, result = self._by_key.get(key), next(iter(self._results[key]), None)
        may_go_on = before is None or before is self._live or before.ns != ""
        live = result is None and may_go_on and self._outcome.status in (None, Status.PAUSED)
        state = state_of(writes)
        status, source, error = self._ending(key, writes, state, live=live, has_result=result is not None)
        asks = [write.content for write in writes if write.channel == INTERRUPT]
        channels = [write.channel for write in writes if write.channel not in SPECIAL and "__" not in write.channel]
        preview = "\n".join(asks) or ", ".join(name for name in channels if not name.startswith(("branch:", "join:")))
        notes = (
            RESUMED if any(write.channel == RESUME for write in writes) else "",
            "interrupted" if state == INTERRUPT and not live else "",
            self._branch(result or before),
        )
        step = result.step if result is not None else None
        if step is None and before is not None and before.step is not None:
            step = before.step + 1
        rows = (*writes, *extra, *(() if result is None else (result,)))
        nested = task in self._graphs[key]
        self.spans.append(
            Span(_node_id(key, task), name[:PREVIEW], Operation.INVOKE_WORKFLOW if nested else Operation.NODE,
                 container, step, True, status, None, source, before.time if before is not None else None,
                 error=error, nested_graph=nested, preview=preview[:PREVIEW], note=" · ".join(filter(None, notes)),
                 at=At(tuple(row.ref for row in rows)))
        )  # fmt: skip
        self._messages(_node_id(key, task))

    def _ending(self, key: Key, writes: Sequence[Write], state: str, *, live: bool, has_result: bool) -> Ending:
        """How a node ended; `live` if it may go on."""
        if state == ERROR:
            raised = next((write.content for write in writes if write.channel == ERROR), "")
            is_copy = any(ns.startswith(key[0]) and ns != key[0] for ns in self._raised[raised])
            return Status.ERROR, EXPLICIT, None if is_copy else error_of(raised)
        if state == INTERRUPT:
            return (Status.PAUSED, EXPLICIT, None) if live else (Status.UNKNOWN, None, None)
        if state or has_result:
            return Status.OK, DERIVED, None
        return Status.RUNNING if live else Status.UNKNOWN, None, None

    def _branch(self, row: Checkpoint | None) -> str:
        return OTHER_BRANCH if row is not None and not row.ns and row.key not in self._line else ""

    # ---- spans of messages

    def _messages(self, owner: str | None) -> None:
        for entry in self._owned[owner]:
            message, ident = entry.message, f"message:{entry.key}"
            at = At((entry.row.ref,), entry.channel, entry.place)
            if message.role == "assistant":
                self._reply(entry, ident, owner, at)
            elif message.answers is None or message.answers not in self._calls:
                operation = Operation.MESSAGE if message.role != "tool" else Operation.OTHER
                name = (message.name if message.role == "tool" else None) or message.role
                status, source, error = _result(message) if message.role == "tool" else (Status.UNKNOWN, None, None)
                self.spans.append(
                    Span(ident, name[:PREVIEW], operation, owner, None, False, status, None, source, entry.time,
                         error=error, preview=message.text[:PREVIEW], at=at)
                )  # fmt: skip

    def _reply(self, entry: RecordedMessage, ident: str, owner: str | None, at: At) -> None:
        message = entry.message
        claim = message.id if message.id and UUID.search(message.id) else None
        note = message.finish if message.finish in _CUT and message.finish else ""
        self.spans.append(
            Span(ident, (message.model or message.name or "assistant")[:PREVIEW], Operation.CHAT, owner, None, False,
                 Status.OK, message.finish, DERIVED, entry.time, None, message.usage, model=message.model,
                 preview=message.text[:PREVIEW], note=note, claim=claim, at=at)
        )  # fmt: skip
        for number, (call, name, preview) in enumerate(message.calls):
            waiting = [entry for entry in self._answers[call or ""] if entry.key not in self._answered]
            answer = waiting[0] if call and waiting else None
            status, source, error = (Status.UNKNOWN, None, None) if answer is None else _result(answer.message)
            if answer is None and self._outcome.status is None:
                status = Status.RUNNING
            place = replace(at, call=number)
            if answer is not None:
                self._answered.add(answer.key)
                rows = (*at.rows, answer.row.ref)
                place = replace(place, rows=rows, answer=(answer.channel, answer.place))
            self.spans.append(
                Span(f"{ident}/{number}", name, Operation.EXECUTE_TOOL, owner, None, False, status, None, source,
                     entry.time, error=error, preview=preview, claim=claim_of_call(claim, call), at=place)
            )  # fmt: skip


def _result(message: Message) -> Ending:
    """Status and error of a call by its result."""
    if message.failed:
        return Status.ERROR, EXPLICIT, Error(excerpt(message.text))
    return Status.OK, DERIVED if message.failed is None else EXPLICIT, None


def _tasks(
    writes: Sequence[Write], before: Checkpoint | None, named: Mapping[str, str]
) -> dict[str, tuple[str, list[Write]]]:
    """The name and writes of each node that wrote, by task."""
    tasks = {task: (node_of(rows, before, named), rows) for task, rows in tasks_of(writes).items()}
    return {task: (name, rows) for task, (name, rows) in tasks.items() if name != START}


def _named(part: str) -> tuple[str, str]:
    """Node and task of a part of a namespace: ``worker:8a3f…``; the task may be missing."""
    name, colon, task = part.rpartition(":")
    return (name, task) if colon else (part, "")


def _path(key: Key) -> str:
    return f"{key[0]}/{key[1]}" if key[0] else key[1]


def _node_id(key: Key, task: str) -> str:
    return f"node:{_path(key)}/{task}"


def _change_id(row: Row) -> str:
    return f"{row.ns}/{row.checkpoint}" if row.ns else f"checkpoint:{row.checkpoint}"

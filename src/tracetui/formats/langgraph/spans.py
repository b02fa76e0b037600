"""The spans of a thread: turns, the nodes of each superstep, sub-graphs below their node, messages and calls.

Facts: databases of langgraph 0.2.28 and 1.2.24. Ids of checkpoints sort by time. The tasks of a superstep write below
the checkpoint that they start from; its child of source ``loop`` is their result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import claim_of_call
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
    Message,
    Place,
    Row,
    Write,
    error_of,
    node_of,
    scheduled_by,
)
from tracetui.formats.scalars import UUID, between, text
from tracetui.formats.sqlite import Outcome
from tracetui.model import PREVIEW, Error, Operation, Span, Status, StatusSource, excerpt

Key = tuple[str, str]
"""Namespace and id of a checkpoint."""
OTHER_BRANCH: Final = "other branch"
"""`Span.note` of everything that does not lead to the newest checkpoint."""
RESUMED: Final = "resumed"
"""`Span.note` of a node that went on after an answer."""
_CUT: Final = frozenset({"length", "max_tokens", "content_filter", "refusal"})
"""Finish reasons of answers that are not whole."""
_DERIVED, _EXPLICIT = StatusSource.DERIVED, StatusSource.EXPLICIT


class At(Struct, frozen=True, gc=False):
    """Where a body is: rows by table, rowid and id; of a message also its channel and place in the first row."""

    rows: tuple[tuple[str, int, str], ...]
    channel: str | None = None
    place: Place | None = None
    call: int = -1
    """The number of a call of that message."""
    answer: tuple[str, Place] | None = None
    """Channel and place, in the last row, of the result of that call."""
    size: int = 0


def row_of(row: Checkpoint | Write) -> tuple[str, int, str]:
    """The row, as in `At`."""
    if isinstance(row, Checkpoint):
        return "checkpoints", row.rowid, row.checkpoint
    return "writes", row.rowid, f"{row.task}:{row.index}"


class Found(NamedTuple):
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
        return Outcome(Status.ERROR, _EXPLICIT)
    if INTERRUPT in states:
        return Outcome(Status.PAUSED, _EXPLICIT, "interrupt")
    if last is None or last.source == INPUT:
        return Outcome()
    scheduled = last.scheduled
    if scheduled is None and before:
        scheduled = scheduled_by(before)
    if scheduled != ():
        return Outcome()
    return Outcome(Status.UNKNOWN if last.undecided - final else Status.OK, _DERIVED)


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
        for row in self._rows:
            if (before := self._before(row)) is not None:
                self._children[before.key].append(row)
        roots = [row for row in self._rows if not row.ns]
        self._live = roots[-1] if roots else None
        self._line = {row.key for row in self._ancestors(self._live)}
        self._named = {task: name for row in self._rows for name, task in map(_named, row.ns.split("|")) if task}
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
                self._raised[write.words].add(write.ns)
        self._seen: set[str] = set()
        self._loose: Counter[bytes] = Counter()
        """Messages of writes without an id, by content: a checkpoint has them again, with one."""
        self._owned: defaultdict[str | None, list[Found]] = defaultdict(list)
        self._attribute()
        self._answers: defaultdict[str, list[Found]] = defaultdict(list)
        for found in (found for owned in self._owned.values() for found in owned if found.message.answers):
            self._answers[found.message.answers or ""].append(found)
        self._answered: set[str] = set()
        self._calls: set[str] = {
            ident for owned in self._owned.values() for found in owned for ident, *_ in found.message.calls if ident
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
            task = next((ident for ident, (node, _) in self._tasks(key).items() if node == name), name)
        self._graphs[key][task] = name
        return _node_id(key, task)

    def _tasks(self, key: Key) -> dict[str, tuple[str, list[Write]]]:
        """The name and writes of the nodes that started from a checkpoint, by task."""
        tasks, before = tasks_of(self._writes[key]), self._by_key.get(key)
        named = {task: (node_of(rows, before, self._named), rows) for task, rows in tasks.items()}
        return {task: (name, rows) for task, (name, rows) in named.items() if name != START}

    def _results(self, key: Key) -> list[Checkpoint]:
        return [row for row in self._children[key] if row.source not in CHANGES and row.source != INPUT]

    def _names(self, key: Key) -> dict[str, str]:
        """The nodes that started from a checkpoint: their names, by task."""
        nodes = {**self._graphs[key], **{task: name for task, (name, _) in self._tasks(key).items()}}
        known = {*nodes.values()}
        return {**nodes, **{name: name for row in self._results(key) for name in row.names if name not in known}}

    # ---- messages

    def _attribute(self) -> None:
        """Give each message to the span that recorded it first: a node, else the turn or graph."""
        done: set[Key] = set()
        for row in self._rows:
            before, fresh = self._before(row), self._fresh(row)
            if before is not None and before.key not in done and row in self._results(before.key):
                done.add(before.key)
                self._of_tasks(before.key, fresh)
            for found in fresh.values():
                self._own(self._owner(row, before), found, loose=True)
        for key in sorted(self._writes.keys() - done, key=lambda key: (-key[0].count("|"), key[1])):
            self._of_tasks(key, {})

    def _fresh(self, row: Checkpoint) -> dict[str, Found]:
        """The messages of a checkpoint that are new."""
        fresh: dict[str, Found] = {}
        for channel, placed in row.messages:
            times: Counter[bytes] = Counter()
            for place, message in placed:
                key = message.id or f"{message.content.hex()}:{times[message.content]}"
                times[message.content] += 1
                if key not in self._seen and key not in fresh:
                    fresh[key] = Found(key, row, channel, place, message, row.time)
        return fresh

    def _of_tasks(self, key: Key, fresh: dict[str, Found]) -> None:
        before = self._by_key.get(key)
        for task, (_, rows) in self._tasks(key).items():
            for write in rows:
                for channel, placed in write.messages:
                    for number, (place, message) in enumerate(placed):
                        same = (ident for ident, found in fresh.items() if found.message.content == message.content)
                        ident = message.id or next(same, None)
                        if ident is None:
                            ident = f"{task}:{write.index}:{number}"
                            self._loose[message.content] += ident not in self._seen
                        applied = fresh.pop(ident, None)
                        time = applied.time if applied is not None else before.time if before is not None else None
                        found = Found(ident, write, channel, place, message, time)
                        self._own(_node_id(key, task), found, loose=False)

    def _owner(self, row: Checkpoint, before: Checkpoint | None) -> str | None:
        """The span of a message that no write has."""
        if row.source in CHANGES:
            return _change_id(row)
        names = self._names(before.key) if before is not None and row.source == LOOP else {}
        if before is not None and len(names) == 1:
            return _node_id(before.key, next(iter(names)))
        return self._containers[row.key]

    def _own(self, owner: str | None, found: Found, *, loose: bool) -> None:
        content = found.message.content
        if found.key in self._seen:
            return
        self._seen.add(found.key)
        if loose and self._loose[content] > 0:
            self._loose[content] -= 1
        else:
            self._owned[owner].append(found)

    # ---- spans

    def _emit_all(self) -> None:
        for row in self._rows:
            container = self._containers[row.key]
            if container == f"turn:{row.checkpoint}":
                self._turn(container, row)
            if row.source in CHANGES:
                self._change(row, container)
            elif row.source not in (INPUT, LOOP):
                at = At((row_of(row),), size=row.size)
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
        said = (found.message for found in self._owned[ident] if found.message.role == "user")
        asked = first.asked or next((message.text for message in said), "")
        self.spans.append(
            Span(ident, "turn", Operation.TURN, None, started_at=first.time,
                 status=outcome.status or (Status.RUNNING if runs else Status.UNKNOWN),
                 status_source=outcome.source, status_word=outcome.word, preview=asked[:PREVIEW],
                 duration_ms=between(first.time, last.time) or None if outcome.status is Status.OK else None,
                 at=At((row_of(first),)) if first.source == INPUT else None)
        )  # fmt: skip
        self._messages(ident)

    def _change(self, row: Checkpoint, container: str | None) -> None:
        """A state that a program changed, or an earlier one; it is a fork if another checkpoint has the same parent."""
        before = self._before(row)
        name = row.source
        if before is not None:
            name = "fork" if self._children[before.key][0] is not row else "update"
        extra = [] if before is None or self._results(before.key) else self._extra(before.key)
        self._note(_change_id(row), name, row, extra, container)
        self._messages(_change_id(row))

    def _note(
        self, ident: str, name: str, row: Checkpoint | None, writes: Sequence[Write], container: str | None
    ) -> None:
        at = At((*([row_of(row)] if row is not None else []), *map(row_of, writes)))
        time = row.time if row is not None else None
        self.spans.append(Span(ident, name, Operation.META, container, started_at=time, note=self._branch(row), at=at))

    def _superstep(self, ident: str, row: Checkpoint, writes: Sequence[Write], container: str | None) -> None:
        """A superstep whose nodes are not recorded."""
        name = "superstep" if row.step is None else f"superstep {row.step}"
        at = At((row_of(row), *map(row_of, writes)))
        self.spans.append(
            Span(ident, name, Operation.OTHER, container, row.step, True, Status.OK, None, _DERIVED, row.time,
                 note=self._branch(row), at=at)
        )  # fmt: skip

    def _extra(self, key: Key) -> list[Write]:
        tasks = self._tasks(key)
        return [write for write in self._writes[key] if not write.of_node or write.task not in tasks]

    def _step(self, key: Key, container: str | None) -> None:
        """Everything that started from a checkpoint: its nodes, or the input that became its state."""
        results, extra, names = self._results(key), self._extra(key), self._names(key)
        for task, name in names.items():
            self._node(key, task, name, results, extra, container)
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

    def _node(
        self, key: Key, task: str, name: str, results: Sequence[Checkpoint], extra: Sequence[Write],
        container: str | None,
    ) -> None:  # fmt: skip
        _, rows = self._tasks(key).get(task, (name, []))
        before, result = self._by_key.get(key), results[0] if results else None
        state, waits = state_of(rows), self._outcome.status in (None, Status.PAUSED)
        live = waits and result is None and (before is None or before is self._live or before.ns != "")
        status, source, error = Status.RUNNING if live else Status.UNKNOWN, None, None
        if state == ERROR:
            words = next((write.words for write in rows if write.channel == ERROR), "")
            status, source = Status.ERROR, _EXPLICIT
            error = (
                None if any(ns.startswith(key[0]) and ns != key[0] for ns in self._raised[words]) else error_of(words)
            )
        elif state == INTERRUPT:
            status, source = (Status.PAUSED, _EXPLICIT) if live else (Status.UNKNOWN, None)
        elif state or result is not None:
            status, source = Status.OK, _DERIVED
        asks = [write.words for write in rows if write.channel == INTERRUPT]
        channels = [write.channel for write in rows if write.channel not in SPECIAL and "__" not in write.channel]
        preview = "\n".join(asks) or ", ".join(name for name in channels if not name.startswith(("branch:", "join:")))
        notes = [RESUMED] if any(write.channel == RESUME for write in rows) else []
        notes += ["interrupted"] if state == INTERRUPT and not live else []
        notes += [branch] if (branch := self._branch(result or before)) else []
        step = result.step if result is not None else None
        if step is None and before is not None and before.step is not None:
            step = before.step + 1
        at = [row_of(write) for write in (*rows, *extra)] + ([row_of(result)] if result is not None else [])
        nested = task in self._graphs[key]
        self.spans.append(
            Span(_node_id(key, task), name[:PREVIEW], Operation.INVOKE_WORKFLOW if nested else Operation.NODE,
                 container, step, True, status, None, source, before.time if before is not None else None,
                 error=error, nested_graph=nested, preview=preview[:PREVIEW], note=" · ".join(notes),
                 at=At(tuple(at)))
        )  # fmt: skip
        self._messages(_node_id(key, task), running=status is Status.RUNNING)

    def _branch(self, row: Checkpoint | None) -> str:
        return OTHER_BRANCH if row is not None and not row.ns and row.key not in self._line else ""

    # ---- spans of messages

    def _messages(self, owner: str | None, *, running: bool = False) -> None:
        for found in self._owned[owner]:
            message, ident = found.message, f"message:{found.key}"
            at = At((row_of(found.row),), found.channel, found.place)
            if message.role == "assistant":
                self._reply(found, ident, owner, at)
            elif message.answers is None or message.answers not in self._calls:
                operation = Operation.MESSAGE if message.role != "tool" else Operation.OTHER
                name = (message.name if message.role == "tool" else None) or message.role
                status, source, error = _result(message) if message.role == "tool" else (Status.UNKNOWN, None, None)
                self.spans.append(
                    Span(ident, name[:PREVIEW], operation, owner, None, False, status, None, source, found.time,
                         error=error, preview=message.text[:PREVIEW], at=at)
                )  # fmt: skip

    def _reply(self, found: Found, ident: str, owner: str | None, at: At) -> None:
        message = found.message
        claim = message.id if message.id and UUID.search(message.id) else None
        note = message.finish if message.finish in _CUT and message.finish else ""
        self.spans.append(
            Span(ident, (message.model or message.name or "assistant")[:PREVIEW], Operation.CHAT, owner, None, False,
                 Status.OK, message.finish, _DERIVED, found.time, None, message.usage, model=message.model,
                 preview=message.text[:PREVIEW], note=note, claim=claim, at=at)
        )  # fmt: skip
        for number, (call, name, preview) in enumerate(message.calls):
            waiting = [one for one in self._answers[call or ""] if one.key not in self._answered]
            answer = waiting[0] if call and waiting else None
            status, source, error = (Status.UNKNOWN, None, None) if answer is None else _result(answer.message)
            if answer is None and self._outcome.status is None:
                status = Status.RUNNING
            place = replace(at, call=number)
            if answer is not None:
                self._answered.add(answer.key)
                rows = (*at.rows, row_of(answer.row))
                place = replace(place, rows=rows, answer=(answer.channel, answer.place))
            self.spans.append(
                Span(f"{ident}/{number}", name, Operation.EXECUTE_TOOL, owner, None, False, status, None, source,
                     found.time, error=error, preview=preview, claim=claim_of_call(claim, call), at=place)
            )  # fmt: skip


def _result(message: Message) -> tuple[Status, StatusSource | None, Error | None]:
    """Status and error of a call by its result."""
    if message.failed:
        return Status.ERROR, _EXPLICIT, Error(excerpt(message.text))
    return Status.OK, _DERIVED if message.failed is None else _EXPLICIT, None


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

"""Rows of LangGraph's tables: checkpoints, writes of tasks, and the messages in both.

Facts: databases of langgraph 0.2.28 and 1.2.24. Every checkpoint repeats all messages of the thread. A write may have a
message before it gets its id, which only the next checkpoint has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from tracetui.errors import FormatError
from tracetui.formats.bodies import argument, rendered, text_in
from tracetui.formats.decode import decode
from tracetui.formats.langgraph.blobs import TYPE, fields_of, items_of, packed, value_of
from tracetui.formats.scalars import integer, mapping, moment, natural, sequence, text, without, word
from tracetui.model import PREVIEW, Error, Usage, excerpt

START: Final = "__start__"
ERROR: Final = "__error__"
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
TASKS: Final = "__pregel_tasks"
SPECIAL: Final = frozenset({ERROR, INTERRUPT, RESUME, "__scheduled__", "__error_source_node__"})
"""Channels of writes that are no results of a task."""
INPUT, LOOP = "input", "loop"
"""Sources of checkpoints: the input of a turn, and a superstep."""
CHANGES: Final = frozenset({"update", "fork"})
"""Sources of checkpoints that a program made: a changed state, or an earlier one to go on from."""
_WITHOUT_MESSAGES: Final = frozenset({START, TASKS, *SPECIAL})
"""Channels whose messages are copies, some of them before they get an id."""
_ROLES: Final = {"ai": "assistant", "human": "user", "system": "system", "tool": "tool", "function": "tool"}
_CLASS: Final = re.compile(r"(\w+?)Message(?:Chunk)?")
_ERROR: Final = re.compile(r"([A-Za-z_][\w.]*)\(.*\)", re.DOTALL)
_PULL: Final = "~__pregel_pull, "
_PUSH: Final = "~__pregel_push, "
_TEXT: Final = 4_000
"""Characters of a message that are kept to find out what a run was asked."""


# ---- messages


class Message(Struct, frozen=True):
    """What the rows of the tree need of a message."""

    id: str | None
    content: bytes
    """Digest of all but the id."""
    role: str
    name: str | None
    text: str
    usage: Usage | None
    model: str | None
    finish: str | None
    calls: tuple[tuple[str | None, str, str], ...]
    """Id, name and preview of each call that it asks for."""
    answers: str | None
    """Id of the call whose result it is."""
    failed: bool | None


class Place(NamedTuple):
    """A message in a value: its item of a list, by digest, and its number in that item."""

    item: bytes
    number: int


Placed = tuple[tuple[Place, Message], ...]


class Messages:
    """Finds messages in values. Equal items of lists are decoded once, however many checkpoints repeat them."""

    def __init__(self) -> None:
        self._by_item: dict[bytes, Placed] = {}

    def find(self, blob: bytes) -> Placed:
        """The messages in a value, in order."""
        return tuple(pair for item in items_of(blob) for pair in self._placed_messages(item))

    def _placed_messages(self, item: bytes) -> Placed:
        key = _digest(item)
        if key not in self._by_item:
            try:
                messages = enumerate(map(message_of, objects_in(value_of(item))))
            except FormatError:  # a problem of the row, whose body says so
                messages = enumerate(())
            self._by_item[key] = tuple((Place(key, number), message) for number, message in messages)
        return self._by_item[key]


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=12).digest()


def object_at(blob: bytes, place: Place) -> dict[str, Any] | None:
    """The message at a place in a value, None if there is none."""
    for item in items_of(blob):
        if _digest(item) == place.item:
            return next(
                (message for number, message in enumerate(objects_in(value_of(item))) if number == place.number), None
            )
    return None


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """The messages in a decoded value, in order."""
    if isinstance(value, dict):
        if role_of(value) is not None:
            yield value
        else:
            for item in value.values():
                yield from objects_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from objects_in(item)


def role_of(value: dict[str, Any]) -> str | None:
    """The role of a message; None for any other object, and for an order to remove messages."""
    name = value.get(TYPE)
    if not isinstance(name, str) or "content" not in value:
        return None
    kind = value.get("type")
    if not isinstance(kind, str):
        match = _CLASS.fullmatch(name.rpartition(".")[2])
        kind = match[1].lower() if match else ""
    kind = kind.removesuffix("MessageChunk").lower()
    return _ROLES.get(kind) or (text(value.get("role")) or "user" if kind == "chat" else None)


def message_of(value: dict[str, Any]) -> Message:
    """A message as the tree needs it."""
    facts, role = mapping(value.get("response_metadata")), role_of(value) or "user"
    calls = [mapping(call) for call in sequence(value.get("tool_calls"))]
    status = value.get("status")
    content = text_in(value.get("content"))
    named = tuple((text(call.get("id")), (text(call.get("name")) or "call")[:PREVIEW], argument(call.get("args")))
                  for call in calls if role == "assistant")  # fmt: skip
    return Message(
        text(value.get("id")), _digest(rendered(without(value, "id"))), role, text(value.get("name")), content[:_TEXT],
        usage_of(mapping(value.get("usage_metadata"))), word(facts.get("model_name")) or word(facts.get("model")),
        finish_of(value), named,
        text(value.get("tool_call_id")) if role == "tool" else None,
        status == "error" if isinstance(status, str) else None,
    )  # fmt: skip


def finish_of(value: dict[str, Any]) -> str | None:
    """Why the model ended a message."""
    facts = mapping(value.get("response_metadata"))
    return word(facts.get("finish_reason")) or word(facts.get("stop_reason"))


def usage_of(counts: dict[str, Any]) -> Usage | None:
    """Usage of a model call: input includes what was read from or written to the cache, output includes reasoning."""
    inputs, outputs = mapping(counts.get("input_token_details")), mapping(counts.get("output_token_details"))
    hour, short = natural(inputs.get("ephemeral_1h_input_tokens")), natural(inputs.get("ephemeral_5m_input_tokens"))
    written = natural(inputs.get("cache_creation"))
    if not written and (hour or short):
        written = (hour or 0) + (short or 0)
    total, cached = natural(counts.get("total_tokens")), natural(inputs.get("cache_read"))
    read, wrote = natural(counts.get("input_tokens")), natural(counts.get("output_tokens"))
    usage = Usage(read, wrote, total, cached, written, natural(outputs.get("reasoning")), cache_write_1h_tokens=hour)
    return usage or None


# ---- rows

Key = tuple[str, str]
"""Namespace and id of a checkpoint."""
RowRef = tuple[str, int, str]
"""Where a row is: its table, its rowid, and its id there."""


class Row(Struct, frozen=True):
    """A row of a table, or the reason why its value is not read."""

    rowid: int
    ns: str
    """Namespace: empty, or the path of a sub-graph."""
    checkpoint: str
    size: int
    problem: str | None
    messages: tuple[tuple[str, Placed], ...]
    """By channel."""

    @property
    def stamp(self) -> int:
        """As in `tracetui.formats.sqlite.Row`."""
        return self.size

    @property
    def key(self) -> Key:
        """The checkpoint that it is, or from which the task that wrote it started."""
        return self.ns, self.checkpoint


class Checkpoint(Row, frozen=True):
    """A row of ``checkpoints``."""

    parent: str | None
    source: str
    step: int | None
    time: float | None
    version: Any
    """Of the layout."""
    parents: dict[str, Any]
    """By namespace: the checkpoint from which the graph above started this one."""
    names: tuple[str, ...]
    """Nodes that made it, where its metadata has them (2024)."""
    scheduled: tuple[str, ...] | None
    """Nodes that run next; None if that can't be read."""
    sends: tuple[str, ...]
    """The scheduled nodes of ``Send`` objects, by number."""
    starting: frozenset[str]
    """Channels that started a node so far."""
    undecided: frozenset[str]
    """Nodes that ended (2024), whose edges no record shows: a static breakpoint may wait after them."""
    asked: str
    """The input of a turn."""
    graph: str | None
    """Name of the graph, which only LangGraph's server records."""

    @property
    def ref(self) -> RowRef:
        """As in `tracetui.formats.langgraph.spans.At`."""
        return "checkpoints", self.rowid, self.checkpoint


class Write(Row, frozen=True):
    """A row of ``writes``."""

    task: str
    path: str
    index: int
    channel: str
    content: str
    """An error, what an interrupt asks, or the name of the node, to the channel of which nodes wrote it until 2024."""
    sends: tuple[str, ...]

    @property
    def ref(self) -> RowRef:
        """As in `tracetui.formats.langgraph.spans.At`."""
        return "writes", self.rowid, f"{self.task}:{self.index}"

    @property
    def of_node(self) -> bool:
        """Whether a node wrote it: not the input, not an answer to an interrupt, not a program."""
        return not self.path.startswith((_PULL + START, "~__interrupt__")) and self.task.strip("0-") != ""


def checkpoint_of(
    rowid: int, ns: Any, ident: str, parent: Any, kind: Any, data: Any, metadata: Any, *, messages: Messages
) -> Checkpoint:
    """A checkpoint. Raises nothing: what can't be read is its problem."""
    facts: dict[str, Any] = {}
    problem: str | None = None
    try:
        facts = mapping(metadata_of(metadata))
    except FormatError as error:
        problem = f"metadata: {error.reason}"
    size = sum(len(blob) for blob in (data, metadata) if isinstance(blob, bytes | str))
    values: dict[str, bytes] = {}
    fields: dict[str, bytes] = {}
    scheduled: tuple[str, ...] | None = None
    sends: tuple[str, ...] = ()
    seen: dict[str, Any] = {}
    asked = ""
    try:
        fields = fields_of(packed(kind, data))
        seen = _seen(fields)
        values = fields_of(fields["channel_values"]) if "channel_values" in fields else {}
        sends = sends_in(values.get(TASKS, b"\xc0"))
        scheduled = scheduled_in(values, seen) + sends
        asked = input_text(value_of(values[START])) if START in values else ""
    except FormatError as error:
        problem = error.reason
    names = tuple(name for name in mapping(facts.get("writes")) if name != START)
    starting = frozenset(channel for channels in seen.values() for channel in channels)
    return Checkpoint(
        rowid, ns if isinstance(ns, str) else "", ident, size, problem, _messages(values, messages), text(parent),
        text(facts.get("source")) or LOOP, integer(facts.get("step")), moment(_value(fields, "ts")),
        _value(fields, "v"), mapping(facts.get("parents")), names, scheduled, sends, starting,
        undecided_in(values, seen, starting), asked, text(facts.get("graph_id")),
    )  # fmt: skip


def write_of(
    rowid: int, ns: Any, ident: Any, task: Any, path: Any, index: Any, channel: Any, kind: Any, data: Any, *,
    messages: Messages,
) -> Write:  # fmt: skip
    """A write. Raises nothing: what can't be read is its problem."""
    name, content, problem = text(channel) or "", "", None
    placed: tuple[tuple[str, Placed], ...] = ()
    sends: tuple[str, ...] = ()
    try:
        blob = packed(kind, data)
        if name in (ERROR, INTERRUPT):
            value = value_of(blob)
            asks = [mapping(item).get("value", item) for item in sequence(value)] or [value]
            content = "\n".join(item if isinstance(item, str) else argument(item) for item in asks)
        elif name == TASKS:
            sends = sends_in(blob)
        elif blob == msgspec.msgpack.encode(name):
            content = name
        placed = _messages({name: blob}, messages)
    except FormatError as error:
        problem = error.reason
    size = len(data) if isinstance(data, bytes | str) else 0
    return Write(
        rowid, ns if isinstance(ns, str) else "", text(ident) or "", size, problem, placed, text(task) or "",
        text(path) or "", integer(index) or 0, name, content, sends,
    )  # fmt: skip


def metadata_of(data: Any) -> Any:
    """The metadata of a checkpoint: JSON, as text or bytes. Raises `FormatError`."""
    return decode(data if isinstance(data, bytes) else str(data or "{}").encode("utf-8", "surrogatepass"))[0]


def _value(fields: Mapping[str, bytes], name: str) -> Any:
    try:
        return value_of(fields.get(name, b"\xc0"))
    except FormatError:
        return None


def _messages(values: Mapping[str, bytes], messages: Messages) -> tuple[tuple[str, Placed], ...]:
    kept = [(name, blob) for name, blob in values.items() if name not in _WITHOUT_MESSAGES]
    return tuple((name, placed) for name, blob in kept if (placed := messages.find(blob)))


def input_text(value: Any) -> str:
    """The text of an input: its first message of a user, else the whole."""
    for item in objects_in(value):
        if role_of(item) == "user":
            return text_in(item.get("content"))[:_TEXT]
    return (_pair(value) or (value if isinstance(value, str) else rendered(value).decode("utf-8", "replace")))[:_TEXT]


def _pair(value: Any) -> str | None:
    """The text of ``["user", text]`` or ``{"role": "user", "content": text}``."""
    if isinstance(value, dict):
        if value.get("role") in ("user", "human"):
            return text_in(value.get("content"))
        return next((content for item in value.values() if (content := _pair(item))), None)
    if not isinstance(value, list):
        return None
    if len(value) == 2 and value[0] in ("user", "human") and isinstance(value[1], str):
        return value[1]
    return next((content for item in value if (content := _pair(item))), None)


# ---- nodes


def sends_in(blob: bytes) -> tuple[str, ...]:
    """The nodes that ``Send`` objects name."""
    value = value_of(blob)
    sends = [mapping(item) for item in (value if isinstance(value, list) else [value])]
    sends = [send for send in sends if str(send.get(TYPE)).endswith("Send")]
    names = [sequence(send.get("value")) or [send.get("node")] for send in sends]
    return tuple(text(name[0]) or "node" for name in names)


def _seen(fields: Mapping[str, bytes]) -> dict[str, Any]:
    """By node: the channels that started it."""
    return {name: mapping(value) for name, value in mapping(_value(fields, "versions_seen")).items()}


def scheduled_in(values: Mapping[str, bytes], seen: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes that run next, by the channels that have a value.

    ``branch:to:NODE`` starts a node, ``join:A+B:NODE`` when all that it names have written; until 2024 also
    ``start:NODE``, ``branch:NODE:CONDITION:NODE``, and a channel with the name of the node before.
    """
    names: dict[str, None] = {}
    for channel, blob in values.items():
        kind, _, rest = channel.partition(":")
        target = rest.rpartition(":")[2]
        if channel == START or (kind in ("branch", "start") and target):
            names[target or channel] = None
        elif kind == "join" and target:
            joined = _value({channel: blob}, channel)
            there = {str(name) for name in sequence(mapping(joined).get("value", joined))}
            if there >= set(rest.rpartition(":")[0].split("+")):
                names[target] = None
        elif channel in seen:
            names |= dict.fromkeys(node for node, channels in seen.items() if channel in channels)
    return tuple(names)


def undecided_in(values: Iterable[str], seen: Iterable[str], starting: Iterable[str]) -> frozenset[str]:
    """The nodes of 2024 that ended and may have started another one.

    They write a channel of their own name, to the end of the graph too. A node that an edge starts is known once it
    ran. If a condition of a node started others, its edges would have started theirs in the same superstep.
    """
    decided = {*starting, *(channel.split(":")[1] for channel in starting if channel.startswith("branch:"))}
    return frozenset(values) & frozenset(seen) - decided - {START}


def started_nodes(writes: Iterable[Write]) -> tuple[str, ...]:
    """The nodes that writes start, for a checkpoint that can't be read itself."""
    names = [write.channel.rpartition(":")[2] for write in writes if write.channel.startswith(("branch:", "join:"))]
    return tuple(dict.fromkeys([*names, *(name for write in writes for name in write.sends)]))


def node_of(writes: Sequence[Write], before: Checkpoint | None, named: Mapping[str, str]) -> str:
    """The name of the node that a task runs; `named` has those of sub-graphs, by task.

    ``~__pregel_pull, NODE``, ``~__pregel_push, I, J`` (the I-th ``Send``), or a call in a function. Tasks of 2024 have
    no path, but wrote their name.
    """
    path, task = writes[0].path, writes[0].task
    if path.startswith(_PULL):
        return path.removeprefix(_PULL)
    parts = path.removeprefix(_PUSH).split(", ") if path.startswith(_PUSH) else []
    if parts and parts[0].isdecimal():
        number = int(parts[0][-9:])
        if before is not None and number < len(before.sends):
            return before.sends[number]
    elif len(parts) > 3 and parts[-2].isdecimal():
        return f"{parts[-3]} call {int(parts[-2][-9:]) + 1}"
    name = named.get(task) or next((write.content for write in writes if write.content == write.channel), None)
    scheduled = before.scheduled if before is not None else None
    return name or (scheduled[0] if scheduled and len(scheduled) == 1 else "node")


def error_of(message: str) -> Error:
    """An error, which is recorded as the ``repr`` of an exception."""
    match = _ERROR.fullmatch(message)
    return Error(excerpt(message), match[1][:PREVIEW] if match else None)

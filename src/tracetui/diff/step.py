"""Compare one step of A with one step of B: input, output and status; and the state of a graph after a superstep.

The contexts of two model calls are compared too: which messages are unchanged, new, dropped, edited or moved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.diff.align import Block, blocks_of
from tracetui.diff.noise import ENVELOPE, ENVELOPE_FIELD, HASHES, ID_FIELD, IDS, RECORDS, Cache, Noise
from tracetui.diff.values import (
    INPUT,
    OUTPUT,
    SHELL,
    STATUS,
    Change,
    changes_of,
    encode_without_noise,
    encoded,
    equal,
    is_shell,
    names_call,
)
from tracetui.model import Blob, Body, Check, Message, Operation, Part, Reasoning, Run, Span, Text, ToolCall, ToolResult

Json = dict[str, Any]


class Kind(StrEnum):
    """How a row differs: one kind per row, in this order."""

    SAME = "same"
    INPUT = "input"
    OUTPUT = "output"
    STATUS = "status"
    ONLY_A = "only_a"
    ONLY_B = "only_b"
    MOVED = "moved"


_ORDER: Final = ((INPUT, Kind.INPUT), (OUTPUT, Kind.OUTPUT), (STATUS, Kind.STATUS))

_SENT: Final = frozenset({
    "model", "provider", "tools", "tool_choice", "temperature", "top_p", "max_tokens", "seed", "system", "matcher",
    "event", "source", "trigger", "instructions_injected", "span_type",
})  # fmt: skip
"""Record fields that belong to the request."""
_ENDED: Final = frozenset({"status", "is_error", "ok", "success", "error", "stop_reason", "finish_reason", "exit_code"})
"""Record fields that belong to the outcome, which the span's status and error normalize."""
_FIRST: Final = ("decision",)
"""Fields more significant than the output itself."""
_BOOKKEEPING: Final = frozenset({
    "input_hash", "name", "node_name", "node_type", "step_type", "event_type", "tool_name", "kind", "type", "v",
    "cached", "input_versions", "partial", "inherited_state", "side_effect", "response_id", "annotations", "logprobs",
})  # fmt: skip
"""Record fields that the header contains, or that describe the recording."""


class Difference(msgspec.Struct, frozen=True):
    """The differences of two steps: `changes` lists input, then output, then status; noise last."""

    kind: Kind
    changes: tuple[Change, ...] = ()
    flags: tuple[str, ...] = ()
    """Stored values that failed their check: ``A: input_hash``."""

    @property
    def noise(self) -> str:
        """The kind of noise of the first change if all changes are noise; else empty."""
        return (self.changes[0].noise or "") if self.changes else ""

    @property
    def significant(self) -> tuple[Change, ...]:
        """The changes that are not noise."""
        return tuple(change for change in self.changes if change.noise is None)

    def as_noise(self, kind: str) -> Difference:
        """A copy with every change marked as noise of that kind."""
        return replace(self, changes=tuple(replace(change, noise=kind) for change in self.changes))


SAME: Final = Difference(Kind.SAME)


def difference(a: Span, b: Span, body_a: Body, body_b: Body, noise: Noise, *, alike: bool = True) -> Difference:
    """Compare two steps. `alike`: the same format wrote both records."""
    ignored = noise.counts.total()
    input_changes = _input(a, b, body_a, body_b, noise, alike)
    hashed = a.input_hash and b.input_hash and a.input_hash != b.input_hash
    if hashed and not input_changes and noise.counts.total() == ignored:  # no ignored difference explains it
        noise.ignores(HASHES)
    changes = [*input_changes, *_output(body_a, body_b, noise, alike)]
    attributes = _attributes(body_a.attributes, body_b.attributes, noise)
    first = [change for change in attributes if change.path in _FIRST]
    changes = [*_on_side(changes, INPUT), *_on_side(attributes, INPUT), *first, *_on_side(changes, OUTPUT)]
    changes += [change for change in _on_side(attributes, OUTPUT) if change not in first]
    changes += _status(a, b, noise)
    flags = (*_flags("A", body_a.checks), *_flags("B", body_b.checks))
    if not changes:
        return Difference(Kind.SAME, (), flags) if flags else SAME
    if noise.strict:
        changes.sort(key=lambda change: change.noise is not None)
    significant = [change for change in changes if change.noise is None] or changes
    kind = next(kind for side, kind in _ORDER if any(change.side == side for change in significant))
    return Difference(kind, tuple(changes), flags)


_IN_MESSAGES: Final = re.compile(
    r"(?:.*[.\]])?(?:messages?|input_context|contents?|system(?:_?[iI]nstructions?)?|instructions|prompts?|parts|text"
    r"|tool_calls|input|output|generations|outputs)(?:[.\[].*)?"
)
"""Paths inside the messages of a provider's JSON: ``choices[0].message.content``, ``candidates[0].content.parts``."""
_MAX_PATH: Final = 1_000


def as_messages(difference: Difference, body_a: Body, body_b: Body, noise: Noise) -> Difference:
    """The same difference with changes of the messages (``messages[2].content``) instead of those in their JSON."""
    changes: list[Change] = []
    for side, values, messages in (
        (INPUT, (body_a.input, body_b.input), (body_a.input_messages, body_b.input_messages)),
        (OUTPUT, (body_a.output, body_b.output), (body_a.output_messages, body_b.output_messages)),
    ):
        own = _on_side([*difference.changes], side)
        recorded = [bool(listed) or value is None for listed, value in zip(messages, values, strict=True)]
        if own and any(messages) and all(recorded):
            left, right = map(documents, messages)
            inner = changes_of(left, right, noise, side=side, under="messages")
            if any(change.noise is None for change in inner):
                own = inner + [change for change in own if not _is_in_messages(change.path)]
        changes += own
    return replace(difference, changes=(*changes, *_on_side([*difference.changes], STATUS)))


def _is_in_messages(path: str) -> bool:
    return not path or _IN_MESSAGES.fullmatch(path[:_MAX_PATH]) is not None


def same_record(a: Span, b: Span) -> bool:
    """Whether two spans of one file have the same source record, as in a fork with inherited steps."""
    return a.id == b.id and a.at is not None and a.at == b.at and a.operation is b.operation


def _on_side(changes: list[Change], side: str) -> list[Change]:
    return [change for change in changes if change.side == side]


def _input(a: Span, b: Span, body_a: Body, body_b: Body, noise: Noise, alike: bool) -> list[Change]:
    changes: list[Change] = []
    if a.name != b.name and a.operation is not Operation.CHAT and noise.counterpart(a.name) != b.name:
        changes.append(Change(INPUT, "name", "name", a.name, b.name))
    values = (body_a.input, body_b.input)
    messages = (body_a.input_messages, body_b.input_messages)
    if (not alike or a.status is not b.status) and _is_missing(values, messages):
        return changes  # some traces omit the input of a failed step
    if _by_messages(values, messages, alike):
        left, right = map(documents, messages)
        return changes + changes_of(left, right, noise, side=INPUT, under="messages")
    shell = SHELL if a.operation is Operation.EXECUTE_TOOL and is_shell(a.name) else 0
    return changes + changes_of(*values, noise, side=INPUT, flags=shell)


def _output(a: Body, b: Body, noise: Noise, alike: bool) -> list[Change]:
    values, messages = (a.output, b.output), (a.output_messages, b.output_messages)
    if not alike and _is_missing(values, messages):
        return []
    if _by_messages(values, messages, alike):
        left, right = map(documents, messages)
        return changes_of(left, right, noise, side=OUTPUT, under="messages")
    return changes_of(*values, noise, side=OUTPUT)


def _is_missing(values: tuple[Any, Any], messages: tuple[Any, Any]) -> bool:
    """Whether one side has neither a value nor messages."""
    return any(value is None and not listed for value, listed in zip(values, messages, strict=True))


def _by_messages(values: tuple[Any, Any], messages: tuple[Any, Any], alike: bool) -> bool:
    """Whether to compare messages instead of values: if there are no values, or the formats differ."""
    if values == (None, None):
        return True
    return not alike and all(messages)


def _attributes(a: Json, b: Json, noise: Noise) -> list[Change]:
    """Changes in the attributes that both records have (strict: in all)."""
    names = [name for name in a if name in b] if not noise.strict else [*a, *(name for name in b if name not in a)]
    changes: list[Change] = []
    for name in names:
        call = names_call(name)
        skipped = not call and (name in _ENDED or name in _BOOKKEEPING or ID_FIELD.fullmatch(name))
        if skipped and not noise.strict:
            continue
        noise_kind = None
        if ENVELOPE_FIELD.fullmatch(name) and not call:
            noise_kind = ENVELOPE
        elif skipped or name not in a or name not in b:
            noise_kind = IDS if ID_FIELD.fullmatch(name) else RECORDS
        side = INPUT if call or name in _SENT else STATUS if name in _ENDED else OUTPUT
        left, right = {name: a[name]} if name in a else {}, {name: b[name]} if name in b else {}
        changes += changes_of(left, right, noise, side=side, recorded=True, all_noise=noise_kind)
        if noise_kind is ENVELOPE and not equal(left, right):
            noise.envelope[name] = None
    return changes


def _status(a: Span, b: Span, noise: Noise) -> list[Change]:
    changes: list[Change] = []
    word_a, word_b = (span.status_word or span.status.value for span in (a, b))
    if a.status is not b.status or (word_a != word_b and a.status_word and b.status_word):
        changes.append(Change(STATUS, "status", "status", word_a, word_b))
    left, right = (
        None
        if span.error is None
        else span.error.text
        if other.error is None
        else {"type": span.error.type, "message": span.error.message}
        for span, other in ((a, b), (b, a))
    )
    return changes + changes_of(left, right, noise, side=STATUS, under="error")


def _flags(side: str, checks: tuple[Check, ...]) -> list[str]:
    return [f"{side}: {check.name}" for check in checks if check.matches is None]


# ---- messages as documents


def documents(messages: tuple[Message, ...]) -> list[Json]:
    """Messages as JSON in the usual chat form."""
    return [document(message) for message in messages]


def document(message: Message) -> Json:
    """One message; content that is a single text part becomes a string."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    content: Any = texts[0] if len(texts) == 1 == len(message.parts) else [_part(part) for part in message.parts]
    named = {"name": message.name} if message.name else {}
    return {"role": message.role, **named, "content": content}


def _part(part: Part) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Reasoning():
            return {"type": "reasoning", "text": part.text}
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            return {"type": "tool_result", "id": part.id, "is_error": part.is_error, "content": part.content}
        case Blob():
            return {"type": part.kind, "data": part.data}


# ---- the state of a graph

_INHERITED: Final = "inherited_state"
"""Attribute of a fork's step: the initial values written by its original."""


class StateDiff(msgspec.Struct, frozen=True):
    """The accumulated state of both runs after a superstep; None if a run has none or hasn't started."""

    superstep: int
    a: dict[str, Any] | None
    b: dict[str, Any] | None
    changes: tuple[Change, ...] = ()
    ignored: dict[str, int] = {}


def ended_before(run: Run, superstep: int) -> bool:
    """Whether a run ended before that superstep."""
    return max((step.number for step in run.steps if step.number is not None), default=superstep) < superstep


def state_diff(a: Run, b: Run, superstep: int, noise: Noise | None = None) -> StateDiff:
    """Compare the states after `superstep`; for a run that ended earlier, its last state counts."""
    noise = noise or Noise()
    left, right = state_after(a, superstep), state_after(b, superstep)
    changes = changes_of(left or {}, right or {}, noise)
    return StateDiff(superstep, left, right, tuple(changes), dict(noise.counts))


def state_after(run: Run, superstep: int) -> dict[str, Any] | None:
    """The state after the last step up to `superstep`, including inherited values; None if not recorded."""
    numbers = [step.number for step in run.steps if step.number is not None and step.number <= superstep]
    last = max(numbers, default=None)
    for step in reversed(run.steps):
        span = run.span(step.span) if step.number == last and last is not None else None
        if span is not None and (body := run.load(span)).state is not None:
            inherited = body.attributes.get(_INHERITED)
            return (inherited if isinstance(inherited, dict) else {}) | body.state
    return None


# ---- keys
#
# Two steps of different runs have equal keys if a comparison finds no difference in what they do. Comparing pairs
# cannot merge many runs; equal keys can. The output of a step is no part of its key.


class Header(NamedTuple):
    """The part of a key that needs no body. The name of a model call is its model, which is no part of it."""

    operation: str
    name: str


_OPERATION_NAMES: Final = {id(operation): operation.value for operation in Operation}
"""Operations as plain texts: to hash a member of an enumeration takes long."""
_UNNAMED: Final = (Operation.CHAT, Operation.MESSAGE)


def header_key(span: Span) -> Header:
    """Return the header part of the key of a step."""
    operation = span.operation
    if operation is Operation.EXECUTE_TOOL or not span.is_node:
        return Header(_OPERATION_NAMES[id(operation)], "" if operation in _UNNAMED else span.name)
    return Header(Operation.NODE.value, span.name)


class InputKeys:
    """Makes the body parts of keys: the arguments of a call, or the text of an answer or message, without noise.

    A node of a graph is its name alone, as its input is the state that all earlier steps have left.
    """

    def __init__(self) -> None:
        self._cache: Cache[tuple[bytes, int, str | None], bytes] = Cache()

    def of(self, span: Span, load: Callable[[Span], Body], folder: str | None = None) -> bytes:
        """Return the body part of the key of a step. `folder` is the working directory of the run."""
        if span.is_node:
            return b""
        body = load(span)
        if span.operation is Operation.CHAT:
            value: Any = answer_text(body)
        else:
            value = body.input if body.input is not None else documents(body.input_messages) or None
        flags = SHELL if span.operation is Operation.EXECUTE_TOOL and is_shell(span.name) else 0
        raw = encoded(value)
        key = (raw or b"", flags, folder)
        key_part = None if raw is None else self._cache.get(key)
        if key_part is None:
            key_part = encode_without_noise(value, flags, folder)
            if key_part is None:  # too deep to compare: equal to itself only
                return f"{id(load)} {span.id}".encode("utf-8", "replace")
            if raw is not None:
                self._cache.put(key, key_part, len(raw))
        return key_part


def answer_text(body: Body) -> str:
    """Return the text of a model's answer; empty if it only calls tools."""
    parts = [part.text for message in body.output_messages for part in message.parts if isinstance(part, Text)]
    return "\n".join(parts) if parts or not isinstance(body.output, str) else body.output


_HEAD: Final = 2000
_MIN_SIMILARITY: Final = 0.2
_CELLS: Final = 10_000


class MessageChange(StrEnum):
    """How a message changed."""

    KEPT = "kept"
    NEW = "new"
    DROPPED = "dropped"
    EDITED = "edited"
    MOVED = "moved"


class MessagePair(NamedTuple):
    """A message of A and its counterpart in B: positions, None on a side without one."""

    change: MessageChange
    a: int | None
    b: int | None


class ContextDiff(msgspec.Struct, frozen=True):
    """Two contexts, message by message, in the order of B; a dropped message keeps its position."""

    pairs: tuple[MessagePair, ...]
    break_at: int | None = None
    """Position in B of the first message that differs from A, where a cached prompt ends. None: A is a prefix of B."""
    tokens: int | None = None
    """Input tokens of B minus those of A; None if a trace lacks them."""

    @property
    def counts(self) -> dict[MessageChange, int]:
        """Number of messages by change."""
        counts = dict.fromkeys(MessageChange, 0)
        for pair in self.pairs:
            counts[pair.change] += 1
        return counts


def context_diff(
    a: Sequence[Message], b: Sequence[Message], span_a: Span | None = None, span_b: Span | None = None
) -> ContextDiff:
    """Compare the messages of two model calls; the headers `span_a` and `span_b` provide the tokens."""
    sizes = [None if span is None or span.usage is None else span.usage.input_tokens for span in (span_a, span_b)]
    before, after = sizes
    tokens = None if before is None or after is None else after - before
    return ContextDiff(tuple(message_pairs(a, b)), _break(a, b), tokens)


def previous_call(run: Run, position: int) -> int | None:
    """Position of the preceding model call by the same agent; None if ``spans[position]`` is its first."""
    agent = _agent(run, position)
    for before in range(position - 1, -1, -1):
        if run.spans[before].operation is Operation.CHAT and _agent(run, before) == agent:
            return before
    return None


def _agent(run: Run, position: int) -> int | None:
    """The nearest enclosing agent or graph run of a span."""
    above = run.parent(position)
    while above is not None:
        if run.spans[above].operation in (Operation.INVOKE_AGENT, Operation.INVOKE_WORKFLOW):
            return above
        above = run.parent(above)
    return None


def message_pairs(a: Sequence[Message], b: Sequence[Message]) -> list[MessagePair]:
    """Pair the messages, in the order of B. Ids of messages and calls are ignored."""
    left, right = [_key(message) for message in a], [_key(message) for message in b]
    blocks = blocks_of(left, right).blocks
    moved = _moved_positions(blocks, left, right)
    gone = set(moved.values())
    pairs: list[MessagePair] = []
    for block in blocks:
        if block.same:
            indices = zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True)
            pairs += [MessagePair(MessageChange.KEPT, i, j) for i, j in indices]
            continue
        rest_a = [i for i in range(block.a0, block.a1) if i not in gone]
        rest_b = [j for j in range(block.b0, block.b1) if j not in moved]
        edited = dict(_edits(a, b, rest_a, rest_b))
        pairs += _changed_pairs(block, rest_a, edited, moved)
    return pairs


def _moved_positions(blocks: Sequence[Block], left: Sequence[str], right: Sequence[str]) -> dict[int, int]:
    """Moved messages: ``{position in B: position in A}``."""
    positions: dict[str, list[int]] = {}
    for block in blocks:
        for i in range(block.a0, block.a1) if not block.same else ():
            positions.setdefault(left[i], []).append(i)
    moved: dict[int, int] = {}
    for block in blocks:
        for j in range(block.b0, block.b1) if not block.same else ():
            if positions.get(right[j]):
                moved[j] = positions[right[j]].pop(0)
    return moved


def _edits(a: Sequence[Message], b: Sequence[Message], rest_a: list[int], rest_b: list[int]) -> list[tuple[int, int]]:
    """``(position in B, position in A)`` of edited messages, in order, with maximal total similarity."""
    if len(rest_a) * len(rest_b) > _CELLS:
        return [
            (j, i)
            for i, j in zip(rest_a, rest_b, strict=False)
            if _similarity(_MessageWords(a[i]), _MessageWords(b[j]))
        ]
    words_a, words_b = [_MessageWords(a[i]) for i in rest_a], [_MessageWords(b[j]) for j in rest_b]
    best = [[0.0] * (len(rest_b) + 1)]
    for x in words_a:
        above, row = best[-1], [0.0]
        for j, y in enumerate(words_b):
            row.append(max(above[j] + _similarity(x, y), above[j + 1], row[j]))
        best.append(row)
    pairs: list[tuple[int, int]] = []
    i, j = len(rest_a), len(rest_b)
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((rest_b[j], rest_a[i]))
    return pairs


class _MessageWords:
    """A message's role and its first words."""

    def __init__(self, message: Message) -> None:
        self.role = message.role
        self.words = frozenset(_plain(message)[:_HEAD].split())


def _similarity(a: _MessageWords, b: _MessageWords) -> float:
    """Similarity from 0 to 1: the share of common words in the shorter message; below a fifth it is 0."""
    if a.role != b.role:
        return 0.0
    least = min(len(a.words), len(b.words))
    share = len(a.words & b.words) / least if least else float(a.words == b.words)
    return share if share >= _MIN_SIMILARITY else 0.0


def _changed_pairs(block: Block, rest_a: list[int], edited: dict[int, int], moved: dict[int, int]) -> list[MessagePair]:
    """The messages of a changed block in the order of B, dropped ones before their replacements."""
    pairs: list[MessagePair] = []
    dropped = [i for i in rest_a if i not in edited.values()]
    for j in range(block.b0, block.b1):
        if j in edited:
            pairs += [MessagePair(MessageChange.DROPPED, i, None) for i in dropped if i < edited[j]]
            dropped = [i for i in dropped if i > edited[j]]
            pairs.append(MessagePair(MessageChange.EDITED, edited[j], j))
        elif j in moved:
            pairs.append(MessagePair(MessageChange.MOVED, moved[j], j))
        else:
            pairs.append(MessagePair(MessageChange.NEW, None, j))
    first = next((i for i, pair in enumerate(pairs) if pair.change is MessageChange.NEW), len(pairs))
    after = first if not edited else len(pairs)
    return [*pairs[:after], *(MessagePair(MessageChange.DROPPED, i, None) for i in dropped), *pairs[after:]]


def _break(a: Sequence[Message], b: Sequence[Message]) -> int | None:
    for i, message in enumerate(a):
        if i >= len(b) or not equal(document(message), document(b[i])):
            return i
    return None


def _key(message: Message) -> str:
    """The content of a message without ids."""
    return f"{message.role}\0{message.name or ''}\0{_plain(message).strip()}"


def _plain(message: Message) -> str:
    return "\n".join(_part_text(part) for part in _contents(document(message)["content"]))


def _contents(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    fields = {name: value for name, value in part.items() if name != "id"}
    if set(fields) == {"type", "text"}:
        return f"{fields['text']}" if fields["type"] == "text" else f"{fields['type']}: {fields['text']}"
    try:
        return msgspec.json.encode(fields, order="deterministic").decode()
    except (ValueError, TypeError, RecursionError, OverflowError):
        return repr(sorted(fields))

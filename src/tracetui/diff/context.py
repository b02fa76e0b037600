"""What a model was given at one call compared with another call: which messages stayed, came, went, changed, moved."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.diff.compare import document
from tracetui.diff.sequence import blocks_of
from tracetui.diff.values import equal
from tracetui.model import Message, Operation, Run, Span

_HEAD: Final = 2000


class Fate(StrEnum):
    """What became of a message."""

    KEPT = "kept"
    NEW = "new"
    DROPPED = "dropped"
    EDITED = "edited"
    MOVED = "moved"


class MessagePair(NamedTuple):
    """A message of A and the same of B: positions, None on the side that has none."""

    fate: Fate
    a: int | None
    b: int | None


class ContextDiff(msgspec.Struct, frozen=True):
    """Two contexts, message by message, in the order of B; a dropped message stands where it was."""

    pairs: tuple[MessagePair, ...]
    break_at: int | None = None
    """Position in B of the first message that A does not have there: a cached prompt is good up to it. None: A is how B
    begins, so that the whole of it can be reused."""
    tokens: int | None = None
    """Input tokens of B's call less those of A's; None where a trace does not say."""

    @property
    def counts(self) -> dict[Fate, int]:
        """Messages by what became of them."""
        found = dict.fromkeys(Fate, 0)
        for pair in self.pairs:
            found[pair.fate] += 1
        return found


def context_diff(
    a: Sequence[Message], b: Sequence[Message], span_a: Span | None = None, span_b: Span | None = None
) -> ContextDiff:
    """Compare the messages of two model calls; `span_a` and `span_b` are their headers, which tell the tokens."""
    given = [None if span is None or span.usage is None else span.usage.input_tokens for span in (span_a, span_b)]
    before, after = given
    tokens = None if before is None or after is None else after - before
    return ContextDiff(tuple(message_pairs(a, b)), _break(a, b), tokens)


def previous_call(run: Run, position: int) -> int | None:
    """Position of the model call before ``spans[position]`` that the same agent made; None if it is the first."""
    agent = _agent(run, position)
    for before in range(position - 1, -1, -1):
        if run.spans[before].operation is Operation.CHAT and _agent(run, before) == agent:
            return before
    return None


def _agent(run: Run, position: int) -> int | None:
    """The nearest agent, or run of a graph, above a span."""
    above = run.parent(position)
    while above is not None:
        if run.spans[above].operation in (Operation.INVOKE_AGENT, Operation.INVOKE_WORKFLOW):
            return above
        above = run.parent(above)
    return None


def message_pairs(a: Sequence[Message], b: Sequence[Message]) -> list[MessagePair]:
    """Which message became which. Ids of messages and of calls do not count."""
    left, right = [_key(message) for message in a], [_key(message) for message in b]
    pairs: list[MessagePair] = []
    for block in blocks_of(left, right).blocks:
        if block.same:
            both = zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True)
            pairs += [MessagePair(Fate.KEPT, i, j) for i, j in both]
        else:
            pairs += _replaced(a, b, *block[1:])
    return _moved(pairs, left, right)


def _replaced(a: Sequence[Message], b: Sequence[Message], a0: int, a1: int, b0: int, b1: int) -> list[MessagePair]:
    """Messages of one role that share words, in order, were edited; the others were dropped or are new."""
    shapes_a, shapes_b = [one.role for one in a[a0:a1]], [one.role for one in b[b0:b1]]
    pairs: list[MessagePair] = []
    i, j = a0, b0
    for block in blocks_of(shapes_a, shapes_b).blocks:
        if block.same:
            for left, right in zip(
                range(a0 + block.a0, a0 + block.a1), range(b0 + block.b0, b0 + block.b1), strict=True
            ):
                if _related(a[left], b[right]):
                    pairs += _alone(i, left, j, right)
                    pairs.append(MessagePair(Fate.EDITED, left, right))
                    i, j = left + 1, right + 1
    return pairs + _alone(i, a1, j, b1)


def _alone(i: int, a1: int, j: int, b1: int) -> list[MessagePair]:
    dropped = [MessagePair(Fate.DROPPED, one, None) for one in range(i, a1)]
    return dropped + [MessagePair(Fate.NEW, None, one) for one in range(j, b1)]


def _related(a: Message, b: Message) -> bool:
    """Whether one message looks like an edit of the other: a fifth of the words of the shorter one are in both."""
    left, right = (set(_plain(one)[:_HEAD].split()) for one in (a, b))
    return not left or not right or 5 * len(left & right) >= min(len(left), len(right))


def _moved(pairs: list[MessagePair], left: list[Any], right: list[Any]) -> list[MessagePair]:
    """Dropped here and new there, the same: moved."""
    gone: dict[Any, list[int]] = {}
    for pair in pairs:
        if pair.b is None and pair.a is not None:
            gone.setdefault(left[pair.a], []).append(pair.a)
    partner: dict[int, int] = {}
    for pair in pairs:
        if pair.a is None and pair.b is not None and gone.get(right[pair.b]):
            partner[pair.b] = gone[right[pair.b]].pop(0)
    taken = set(partner.values())
    return [
        MessagePair(Fate.MOVED, partner[pair.b], pair.b) if pair.a is None and pair.b in partner else pair
        for pair in pairs
        if pair.b is not None or pair.a not in taken
    ]


def _break(a: Sequence[Message], b: Sequence[Message]) -> int | None:
    for place, message in enumerate(a):
        if place >= len(b) or not equal(document(message), document(b[place])):
            return place
    return None


def _key(message: Message) -> str:
    """What a message says, ids aside."""
    return f"{message.role}\0{message.name or ''}\0{_plain(message).strip()}"


def _plain(message: Message) -> str:
    return "\n".join(_said(one) for one in _contents(document(message)["content"]))


def _contents(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _said(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    told = {name: value for name, value in part.items() if name != "id"}
    if set(told) == {"type", "text"}:
        return f"{told['text']}" if told["type"] == "text" else f"{told['type']}: {told['text']}"
    try:
        return msgspec.json.encode(told, order="deterministic").decode()
    except (ValueError, TypeError, RecursionError, OverflowError):
        return repr(sorted(told))

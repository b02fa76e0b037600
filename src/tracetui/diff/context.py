"""What a model was given at one call compared with another call: which messages stayed, came, went, changed, moved."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.diff.sequence import Block, blocks_of
from tracetui.diff.step import document
from tracetui.diff.values import equal
from tracetui.model import Message, Operation, Run, Span

_HEAD: Final = 2000
_LIKE: Final = 0.2
_CELLS: Final = 10_000


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
    """Which message became which, in the order of B. Ids of messages and of calls do not count."""
    left, right = [_key(message) for message in a], [_key(message) for message in b]
    blocks = blocks_of(left, right).blocks
    moved = _moved(blocks, left, right)
    gone = set(moved.values())
    pairs: list[MessagePair] = []
    for block in blocks:
        if block.same:
            both = zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True)
            pairs += [MessagePair(Fate.KEPT, i, j) for i, j in both]
            continue
        rest_a = [i for i in range(block.a0, block.a1) if i not in gone]
        rest_b = [j for j in range(block.b0, block.b1) if j not in moved]
        edited = dict(_edited(a, b, rest_a, rest_b))
        pairs += _arranged(block, rest_a, edited, moved)
    return pairs


def _moved(blocks: Sequence[Block], left: Sequence[str], right: Sequence[str]) -> dict[int, int]:
    """Messages that are gone here and new there: place in A by place in B."""
    there: dict[str, list[int]] = {}
    for block in blocks:
        for i in range(block.a0, block.a1) if not block.same else ():
            there.setdefault(left[i], []).append(i)
    moved: dict[int, int] = {}
    for block in blocks:
        for j in range(block.b0, block.b1) if not block.same else ():
            if there.get(right[j]):
                moved[j] = there[right[j]].pop(0)
    return moved


def _edited(a: Sequence[Message], b: Sequence[Message], rest_a: list[int], rest_b: list[int]) -> list[tuple[int, int]]:
    """``(place in B, place in A)`` of the messages that became another, in order, as like each other as can be."""
    if len(rest_a) * len(rest_b) > _CELLS:
        return [(j, i) for i, j in zip(rest_a, rest_b, strict=False) if _likeness(_Told(a[i]), _Told(b[j]))]
    told_a, told_b = [_Told(a[i]) for i in rest_a], [_Told(b[j]) for j in rest_b]
    best = [[0.0] * (len(rest_b) + 1)]
    for x in told_a:
        above, row = best[-1], [0.0]
        for j, y in enumerate(told_b):
            row.append(max(above[j] + _likeness(x, y), above[j + 1], row[j]))
        best.append(row)
    found: list[tuple[int, int]] = []
    i, j = len(rest_a), len(rest_b)
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            found.append((rest_b[j], rest_a[i]))
    return found


class _Told:
    """A message's role and the words at its beginning."""

    def __init__(self, message: Message) -> None:
        self.role = message.role
        self.words = frozenset(_plain(message)[:_HEAD].split())


def _likeness(a: _Told, b: _Told) -> float:
    """From 0 (another message) to 1: the share of common words in the shorter one, if it is a fifth at least."""
    if a.role != b.role:
        return 0.0
    least = min(len(a.words), len(b.words))
    share = len(a.words & b.words) / least if least else float(a.words == b.words)
    return share if share >= _LIKE else 0.0


def _arranged(block: Block, rest_a: list[int], edited: dict[int, int], moved: dict[int, int]) -> list[MessagePair]:
    """The messages of a block that changed: in the order of B, dropped ones before what came in their place."""
    pairs: list[MessagePair] = []
    dropped = [i for i in rest_a if i not in edited.values()]
    for j in range(block.b0, block.b1):
        if j in edited:
            pairs += [MessagePair(Fate.DROPPED, i, None) for i in dropped if i < edited[j]]
            dropped = [i for i in dropped if i > edited[j]]
            pairs.append(MessagePair(Fate.EDITED, edited[j], j))
        elif j in moved:
            pairs.append(MessagePair(Fate.MOVED, moved[j], j))
        else:
            pairs.append(MessagePair(Fate.NEW, None, j))
    first = next((place for place, pair in enumerate(pairs) if pair.fate is Fate.NEW), len(pairs))
    after = first if not edited else len(pairs)
    return [*pairs[:after], *(MessagePair(Fate.DROPPED, i, None) for i in dropped), *pairs[after:]]


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

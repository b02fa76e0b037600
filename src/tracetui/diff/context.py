"""Compare the contexts of two model calls: which messages are unchanged, new, dropped, edited or moved."""

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
        found = dict.fromkeys(MessageChange, 0)
        for pair in self.pairs:
            found[pair.change] += 1
        return found


def context_diff(
    a: Sequence[Message], b: Sequence[Message], span_a: Span | None = None, span_b: Span | None = None
) -> ContextDiff:
    """Compare the messages of two model calls; the headers `span_a` and `span_b` provide the tokens."""
    given = [None if span is None or span.usage is None else span.usage.input_tokens for span in (span_a, span_b)]
    before, after = given
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
    moved = _moved(blocks, left, right)
    gone = set(moved.values())
    pairs: list[MessagePair] = []
    for block in blocks:
        if block.same:
            both = zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True)
            pairs += [MessagePair(MessageChange.KEPT, i, j) for i, j in both]
            continue
        rest_a = [i for i in range(block.a0, block.a1) if i not in gone]
        rest_b = [j for j in range(block.b0, block.b1) if j not in moved]
        edited = dict(_edited(a, b, rest_a, rest_b))
        pairs += _in_order(block, rest_a, edited, moved)
    return pairs


def _moved(blocks: Sequence[Block], left: Sequence[str], right: Sequence[str]) -> dict[int, int]:
    """Moved messages: ``{position in B: position in A}``."""
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
    """``(position in B, position in A)`` of edited messages, in order, with maximal total similarity."""
    if len(rest_a) * len(rest_b) > _CELLS:
        return [(j, i) for i, j in zip(rest_a, rest_b, strict=False) if _similarity(_Words(a[i]), _Words(b[j]))]
    words_a, words_b = [_Words(a[i]) for i in rest_a], [_Words(b[j]) for j in rest_b]
    best = [[0.0] * (len(rest_b) + 1)]
    for x in words_a:
        above, row = best[-1], [0.0]
        for j, y in enumerate(words_b):
            row.append(max(above[j] + _similarity(x, y), above[j + 1], row[j]))
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


class _Words:
    """A message's role and its first words."""

    def __init__(self, message: Message) -> None:
        self.role = message.role
        self.words = frozenset(_plain(message)[:_HEAD].split())


def _similarity(a: _Words, b: _Words) -> float:
    """Similarity from 0 to 1: the share of common words in the shorter message; below a fifth it is 0."""
    if a.role != b.role:
        return 0.0
    least = min(len(a.words), len(b.words))
    share = len(a.words & b.words) / least if least else float(a.words == b.words)
    return share if share >= _MIN_SIMILARITY else 0.0


def _in_order(block: Block, rest_a: list[int], edited: dict[int, int], moved: dict[int, int]) -> list[MessagePair]:
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
    return "\n".join(_part_text(one) for one in _contents(document(message)["content"]))


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

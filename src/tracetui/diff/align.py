"""Which step of A is which step of B, told by their headers alone; no body is read.

What tells the steps is what both runs have: the hash of their input, the superstep and node of a graph, what an agent
did where the other only imitates it, else the operation with its name and argument.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from tracetui.diff.forks import repeats
from tracetui.diff.sequence import Block, blocks_of, increasing
from tracetui.model import Operation, Run, Span

BY_HASH: Final = "input hash and step"
BY_NODE: Final = "superstep and node"
BY_AGAIN: Final = "superstep and node, what was run again by node"
BY_ACTION: Final = "actions in order"
BY_NAME: Final = "operation, name and arguments"

CELLS: Final = 50_000
"""The most cells, over all gaps, of the tables in which the steps of a gap are weighed against each other."""
_CHAT: Final = Operation.CHAT
_NUMBERS: Final = {id(operation): number for number, operation in enumerate(Operation)}
"""Operations as small numbers: many are compared, and to hash a member of an enumeration takes long."""
WORDS: Final = frozenset({Operation.CHAT, Operation.TURN})
"""What a model said: an imitation says it in its own words."""
_GRAPH: Final = frozenset({Operation.NODE, Operation.ROUTE})


class Pair(NamedTuple):
    """Positions in the spans of A and B; None on the side that has no such step."""

    a: int | None
    b: int | None
    moved: bool = False
    """Other steps that both have are before it in A and after it in B, or the reverse."""


class Alignment(NamedTuple):
    """Every span of both runs once, in the order of B; what only A has follows what it followed in A.

    Where a fork ran a step again, the copy that it inherited is left out: it is the step that stands in the other run.
    """

    pairs: list[Pair]
    by: str
    """What told which step is which."""
    bounded: bool = False
    """The best alignment was too expensive; this one may call more changed than was."""
    left_out: int = 0
    """Spans that were not compared: the turns of models, which may say the same in other words."""
    keys: tuple[list[Hashable], list[Hashable]] | None = None
    """What each span of A and B was told by; None where that leaves nothing to choose."""


def align(a: Run, b: Run, *, actions: bool = False) -> Alignment:
    """Pair the spans of two runs. With `actions`, what models said is left out: only what was done counts."""
    by = _evidence(a.spans, b.spans)
    if by == BY_NODE:
        return _by_node(a, b)
    keys = _keys(a.spans, by), _keys(b.spans, by)
    if not actions:
        found = _Aligner(a.spans, b.spans, *keys)
        return Alignment(found.pairs, by, found.bounded, keys=keys)
    left, right = _doings(a.spans), _doings(b.spans)
    found = _Aligner(
        [a.spans[i] for i in left], [b.spans[j] for j in right], [keys[0][i] for i in left], [keys[1][j] for j in right]
    )
    pairs = [Pair(None if i is None else left[i], None if j is None else right[j]) for i, j, _ in found.pairs]
    left_out = len(a.spans) + len(b.spans) - len(left) - len(right)
    return Alignment(pairs, BY_ACTION, found.bounded, left_out, keys)


def _evidence(a: Sequence[Span], b: Sequence[Span]) -> str:
    """What both runs have to tell their steps by."""
    if all(any(span.input_hash for span in spans) for spans in (a, b)):
        return BY_HASH
    if all(any(span.operation in _GRAPH and span.step is not None for span in spans) for spans in (a, b)):
        return BY_NODE
    return BY_NAME


def _doings(spans: Sequence[Span]) -> list[int]:
    """Positions of all but the turns of a model."""
    return [i for i, span in enumerate(spans) if span.operation not in WORDS]


def _keys(spans: Sequence[Span], by: str) -> list[Hashable]:
    if by == BY_HASH:
        return [span.input_hash or _name_key(span) for span in spans]
    return [  # _name_key of each, without so many calls
        (_NUMBERS[id(span.operation)], "" if span.operation is _CHAT else span.name, span.preview.strip())
        for span in spans
    ]


def _name_key(span: Span) -> tuple[int, str, str]:
    """What a step is; that of a model call is not its name, which is the model."""
    return _NUMBERS[id(span.operation)], "" if span.operation is _CHAT else span.name, span.preview.strip()


class _Aligner:
    """Pairs two lists of spans: those with equal keys, then in each gap between them those that are alike."""

    def __init__(
        self, a: Sequence[Span], b: Sequence[Span], keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]
    ) -> None:
        self.a, self.b = a, b
        self.pairs: list[Pair] = []
        self._cells = CELLS
        found = blocks_of(keys_a, keys_b)
        self.bounded = found.bounded
        for block in found.blocks:
            same, a0, a1, b0, b1 = block
            if same:
                self.pairs += map(Pair, range(a0, a1), range(b0, b1))
            elif a0 == a1 or b0 == b1:
                self._only(a0, a1, b0, b1)
            else:
                self._gap(block)

    def _gap(self, gap: Block) -> None:
        """Pair what is alike in a gap; the rest is on one side only."""
        i, j = gap.a0, gap.b0
        for left, right in self._alike(gap):
            self._only(i, left, j, right)
            self.pairs.append(Pair(left, right))
            i, j = left + 1, right + 1
        self._only(i, gap.a1, j, gap.b1)

    def _only(self, i: int, a1: int, j: int, b1: int) -> None:
        for one in range(i, a1):
            self.pairs.append(Pair(one, None))
        for one in range(j, b1):
            self.pairs.append(Pair(None, one))

    def _alike(self, gap: Block) -> list[tuple[int, int]]:
        _, a0, a1, b0, b1 = gap
        if a1 - a0 == b1 - b0 == 1:
            return [(a0, b0)] if self.a[a0].operation is self.b[b0].operation else []
        a, b = self.a[a0:a1], self.b[b0:b1]
        if len(a) == len(b) and all(map(_same_kind, a, b)):
            return list(zip(range(a0, a1), range(b0, b1), strict=True))
        self._cells -= len(a) * len(b)
        if self._cells >= 0:
            return [(a0 + i, b0 + j) for i, j in weigh(a, b)]
        self._cells += len(a) * len(b)
        self.bounded = True
        found = blocks_of([_kind(span) for span in a], [_kind(span) for span in b])
        same = [block for block in found.blocks if block.same]
        return [
            (a0 + i, b0 + j) for _, i0, i1, j0, j1 in same for i, j in zip(range(i0, i1), range(j0, j1), strict=True)
        ]


def _kind(span: Span) -> tuple[int, str]:
    return _name_key(span)[:2]


def _same_kind(a: Span, b: Span) -> bool:
    return a.operation is b.operation and (a.name == b.name or a.operation is _CHAT)


# ---- a gap weighed: global alignment with affine gaps

_NEVER: Final = -1_000_000
_OPEN: Final = -12
_EXTEND: Final = -1
_NAME: Final = 30
_OTHER_NAME: Final = -15
_STEP: Final = 4
_ARGUMENT: Final = 8


def weigh(a: Sequence[Span], b: Sequence[Span]) -> list[tuple[int, int]]:
    """The pairs of the best global alignment (Gotoh), in order; the same whichever side comes first."""
    if len(a) == 1 or len(b) == 1:
        return _nearest(a, b)
    if [(_name_key(span), span.step or 0) for span in a] > [(_name_key(span), span.step or 0) for span in b]:
        return [(i, j) for j, i in _weigh(b, a)]
    return _weigh(a, b)


def _nearest(a: Sequence[Span], b: Sequence[Span]) -> list[tuple[int, int]]:
    """The one step of the one side with the first that goes best with it on the other."""
    scores = [score for row in _scores(a, b) for score in row]
    best = max(scores)
    place = scores.index(best)
    return [] if best == _NEVER else [(place, 0) if len(b) == 1 else (0, place)]


def _scores(a: Sequence[Span], b: Sequence[Span]) -> Iterator[list[int]]:
    """How well every step of A goes with every step of B: never where they are different kinds of work."""
    words = [set(span.preview.split()) for span in b]
    for left in a:
        own = set(left.preview.split())
        row: list[int] = []
        for right, other in zip(b, words, strict=True):
            if left.operation is not right.operation:
                row.append(_NEVER)
                continue
            score = _NAME if left.name == right.name or left.operation is _CHAT else _OTHER_NAME
            if left.step == right.step and left.step is not None:
                score += _STEP
            if own and other and not own.isdisjoint(other):
                score += _ARGUMENT * len(own & other) // len(own | other)
            row.append(score)
        yield row


def _weigh(a: Sequence[Span], b: Sequence[Span]) -> list[tuple[int, int]]:
    # three scores a cell: the last move paired two steps, left one of A alone, left one of B alone
    best: list[list[tuple[int, int, int]]] = [[(0, _NEVER, _NEVER)]]
    best[0] += [(_NEVER, _NEVER, _OPEN + j * _EXTEND) for j in range(len(b))]
    for i, scores in enumerate(_scores(a, b)):
        above = best[-1]
        row = [(_NEVER, _OPEN + i * _EXTEND, _NEVER)]
        for j, score in enumerate(scores):
            p, q, r = above[j + 1]
            x, y, z = row[j]
            alone_a = max(max(p, r) + _OPEN, q + _EXTEND)
            alone_b = max(max(x, y) + _OPEN, z + _EXTEND)
            row.append((max(above[j]) + score, alone_a, alone_b))
        best.append(row)
    return _trace(best, len(a), len(b))


def _trace(best: list[list[tuple[int, int, int]]], i: int, j: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    state = best[i][j].index(max(best[i][j]))
    while i and j:
        if state == 0:
            i, j = i - 1, j - 1
            pairs.append((i, j))
            state = best[i][j].index(max(best[i][j]))
            continue
        here = best[i][j][state]
        i, j = (i - 1, j) if state == 1 else (i, j - 1)
        costs = [_EXTEND if before == state else _OPEN for before in range(3)]
        state = next(before for before in range(3) if best[i][j][before] + costs[before] == here)
    return pairs[::-1]


# ---- graphs


def _by_node(a: Run, b: Run) -> Alignment:
    """Steps of the same superstep and node below the same parents; then those of one node that are left, in order.

    A step that a fork ran again stands beside that of the original, which is what it inherited.
    """
    again = repeats(a, b)
    gone_a, gone_b = again.copies
    exact: dict[Hashable, int] = {}
    left, right = (_node_keys(run, exact, known) for run, known in zip((a, b), again.keys, strict=True))
    there = {key: j for j, key in enumerate(right)}
    partner = {j: i for i, key in enumerate(left) if (j := there.get(key)) is not None}
    rest_a = sorted(set(range(len(left))).difference(partner.values(), gone_a))
    rest_b = [j for j in range(len(right)) if j not in partner and j not in gone_b]
    by_name: dict[Hashable, int] = {}
    names_a, names_b = _name_paths(a, by_name), _name_paths(b, by_name)
    found = blocks_of([names_a[i] for i in rest_a], [names_b[j] for j in rest_b])
    for block in found.blocks:
        if block.same:
            spans = zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True)
            partner.update((rest_b[j], rest_a[i]) for i, j in spans)
    pairs = arranged(partner, a.spans, b.spans)
    if not again:
        return Alignment(pairs, BY_NODE, found.bounded)
    pairs = [pair for pair in pairs if pair.a not in gone_a and pair.b not in gone_b]
    return Alignment(pairs, BY_AGAIN, found.bounded)


def _node_keys(run: Run, ids: dict[Hashable, int], known: dict[int, Hashable]) -> list[int]:
    """A number for every span: that of (its parent, its superstep, its name, the how manyth of these).

    `known` says of some positions what tells them instead.
    """
    keys: list[int] = []
    seen: dict[Hashable, int] = {}
    path: list[int] = []
    for place, (span, depth) in enumerate(zip(run.spans, run.depths, strict=True)):
        del path[depth:]
        what = known.get(place)
        if what is None:
            told = (path[-1] if path else None, span.step, span.name)
            number = seen[told] = seen.get(told, -1) + 1
            what = (*told, number)
        keys.append(ids.setdefault(what, len(ids)))
        path.append(keys[-1])
    return keys


def _name_paths(run: Run, ids: dict[Hashable, int]) -> list[int]:
    """A number for every span: that of the names from the top down to it."""
    keys: list[int] = []
    path: list[int] = []
    for span, depth in zip(run.spans, run.depths, strict=True):
        del path[depth:]
        keys.append(ids.setdefault((path[-1] if path else None, span.name), len(ids)))
        path.append(keys[-1])
    return keys


def arranged(partner: dict[int, int], a: Sequence[Span], b: Sequence[Span]) -> list[Pair]:
    """Pairs in the order of B from ``{place in b: place in a}``; steps of one superstep have no order among them."""
    matched = sorted(partner)
    kept = {matched[i] for i in increasing([partner[j] for j in matched])}
    after: dict[int, list[int]] = {}  # what only A has, by the step of A that it follows
    anchors = {partner[j] for j in kept}
    last, taken = -1, set(partner.values())
    for i in range(len(a)):
        if i in anchors:
            last = i
        elif i not in taken:
            after.setdefault(last, []).append(i)
    pairs = [Pair(i, None) for i in after.get(-1, ())]
    for j in range(len(b)):
        i_ = partner.get(j)
        if i_ is None:
            pairs.append(Pair(None, j))
            continue
        moved = j not in kept and (a[i_].step is None or a[i_].step != b[j].step)
        pairs.append(Pair(i_, j, moved))
        if j in kept:
            pairs += [Pair(one, None) for one in after.get(i_, ())]
    return pairs

"""Pair the steps of A with the steps of B: first by their headers, then by content where headers are ambiguous.

A header identifies a step by the strongest evidence that both runs have: the hash of its input; the superstep and node
of a graph; for an imitation, the actions in order; else the operation with its name and argument. No body is read,
except by `refine`.

Sequences of any kind are compared by their longest common subsequence, and texts by that of their words. Common ends
are trimmed first; the rest goes to a bit-parallel algorithm that costs N*M/8 bytes. Where that is too much, items that
occur exactly once in both divide the lists (patience diff), and parts that are still too large count as replaced. The
answer for ``(b, a)`` is the mirror of that for ``(a, b)``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from rapidfuzz.distance import Indel

from tracetui.model import INHERITED, Operation, Run, Span, Status

BITS: Final = 500_000_000
"""Maximum cells of one comparison table: 63 MB."""


class Block(NamedTuple):
    """``a[a0:a1]`` corresponds to ``b[b0:b1]``: equal items, or a replacement (either may be empty)."""

    same: bool
    a0: int
    a1: int
    b0: int
    b1: int


class Blocks(NamedTuple):
    """Alternating equal and changed blocks, in order. `bounded`: an optimal result was too expensive."""

    blocks: list[Block]
    bounded: bool = False


def blocks_of(a: Sequence[Hashable], b: Sequence[Hashable], *, bits: int = BITS) -> Blocks:
    """Align `a` and `b` by their longest common subsequence."""
    head, tail = _common_ends(a, b)
    end_a, end_b = len(a) - tail, len(b) - tail
    pairs: list[tuple[int, int, int]] = [(0, 0, head)] if head else []
    bounded = False
    if head < end_a and head < end_b:
        swap = repr(a[head]) > repr(b[head])  # they differ: a canonical order of a and b
        first, second = (b, a) if swap else (a, b)
        ends = (end_b, end_a) if swap else (end_a, end_b)
        common, bounded = _common_runs(first, second, head, head, *ends, bits)
        pairs += [(j, i, size) for i, j, size in common] if swap else common
    if tail:
        pairs.append((end_a, end_b, tail))
    return Blocks(_alternating(pairs, len(a), len(b)), bounded)


def _common_ends(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int]:
    most = min(len(a), len(b))
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), most)
    most -= head
    tail = 0
    while tail < most and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return head, tail


def _common_runs(
    a: Sequence[Hashable], b: Sequence[Hashable], a0: int, b0: int, a1: int, b1: int, bits: int
) -> tuple[list[tuple[int, int, int]], bool]:
    """Runs of common items ``(index in a, index in b, length)`` in ``a[a0:a1]`` and ``b[b0:b1]``."""
    if a0 == a1 or b0 == b1:
        return [], False
    if a1 - a0 == b1 - b0 == 1:
        return ([(a0, b0, 1)] if a[a0] == b[b0] else []), False
    if (a1 - a0) * (b1 - b0) <= bits:
        names: dict[Hashable, int] = {}
        left = [names.setdefault(item, len(names)) for item in a[a0:a1]]
        right = [names.setdefault(item, len(names)) for item in b[b0:b1]]
        opcodes = Indel.opcodes(left, right)
        return [
            (a0 + op.src_start, b0 + op.dest_start, op.src_end - op.src_start) for op in opcodes if op.tag == "equal"
        ], False
    pairs: list[tuple[int, int, int]] = []
    for i, j in [*_anchors(a, b, a0, b0, a1, b1), (a1, b1)]:
        if (a0, b0) != (a1, b1) and (i - a0) * (j - b0) <= bits:
            pairs += _common_runs(a, b, a0, b0, i, j, bits)[0]
        if i < a1 or j < b1:
            pairs.append((i, j, 1))
            a0, b0 = i + 1, j + 1
    return pairs, True


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], a0: int, b0: int, a1: int, b1: int) -> list[tuple[int, int]]:
    """Positions of items unique in both lists: a longest subsequence in the same order."""
    left, right = a[a0:a1], b[b0:b1]
    unique = {item for item, count in Counter(left).items() if count == 1}
    unique &= {item for item, count in Counter(right).items() if count == 1}
    positions_b = {item: b0 + j for j, item in enumerate(right) if item in unique}
    places = [(a0 + i, positions_b[item]) for i, item in enumerate(left) if item in unique]
    return [places[i] for i in increasing([j for _, j in places])]


def increasing(values: Sequence[int]) -> list[int]:
    """Positions of a longest increasing subsequence of `values`."""
    tops: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for i, value in enumerate(values):
        place = bisect_left(tops, value)
        before.append(tails[place - 1] if place else -1)
        if place == len(tops):
            tops.append(value)
            tails.append(i)
        else:
            tops[place], tails[place] = value, i
    positions: list[int] = []
    last = tails[-1] if tails else -1
    while last >= 0:
        positions.append(last)
        last = before[last]
    return positions[::-1]


def _alternating(pairs: list[tuple[int, int, int]], size_a: int, size_b: int) -> list[Block]:
    """Blocks for runs of common items and the gaps between them, adjacent runs joined."""
    blocks: list[Block] = []
    at_a = at_b = 0
    for i, j, size in [*pairs, (size_a, size_b, 0)]:
        if i > at_a or j > at_b:
            blocks.append(Block(False, at_a, i, at_b, j))
        if size and blocks and blocks[-1].same:
            blocks[-1] = blocks[-1]._replace(a1=i + size, b1=j + size)
        elif size:
            blocks.append(Block(True, i, i + size, j, j + size))
        at_a, at_b = i + size, j + size
    return blocks


# ---- texts: by lines, then by words within changed lines

FEW: Final = 3
"""Fewer equal words between two changes are shown as changed: one larger edit is easier to read."""
WORD_BITS: Final = 100_000_000
"""Maximum cells of one table of words: 13 MB."""
_SMALL: Final = 0.15
"""Below this share of common text, two blocks of lines count as replaced without a word diff."""
_TOKEN: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|\w+|\s+|[^\w\s]"
)
"""Words; in scripts without spaces, each character is one."""


class Piece(NamedTuple):
    """Part of a line, and whether it is only on this side."""

    text: str
    changed: bool


Line = tuple[Piece, ...]


class Hunk(NamedTuple):
    """A block of equal lines, or of changed lines of both sides."""

    same: bool
    at_a: int
    """Index of its first line in A."""
    at_b: int
    a: tuple[Line, ...]
    b: tuple[Line, ...]


class TextDiff(NamedTuple):
    """Both texts completely, in order. `bounded`: a minimal difference was too expensive."""

    hunks: list[Hunk]
    bounded: bool = False

    @property
    def changed(self) -> list[int]:
        """Positions of the hunks that differ."""
        return [i for i, hunk in enumerate(self.hunks) if not hunk.same]


def text_diff(a: str, b: str) -> TextDiff:
    """Compare two texts; lines end at ``\\n``."""
    left, right = a.split("\n"), b.split("\n")
    aligned = blocks_of(left, right)
    bounded = aligned.bounded
    hunks: list[Hunk] = []
    for block in aligned.blocks:
        lines_a, lines_b = left[block.a0 : block.a1], right[block.b0 : block.b1]
        if block.same:
            same = tuple((Piece(line, False),) for line in lines_a)
            hunks.append(Hunk(True, block.a0, block.b0, same, same))
        elif not lines_a or not lines_b:
            hunks.append(Hunk(False, block.a0, block.b0, _changed_lines(lines_a), _changed_lines(lines_b)))
        else:
            marked_a, marked_b, cut = _word_hunks(lines_a, lines_b)
            bounded = bounded or cut
            hunks.append(Hunk(False, block.a0, block.b0, marked_a, marked_b))
    return TextDiff(hunks, bounded)


def _changed_lines(lines: Sequence[str]) -> tuple[Line, ...]:
    return tuple((Piece(line, True),) for line in lines)


def _word_hunks(a: Sequence[str], b: Sequence[str]) -> tuple[tuple[Line, ...], tuple[Line, ...], bool]:
    left, right = _TOKEN.findall("\n".join(a)), _TOKEN.findall("\n".join(b))
    aligned = blocks_of(left, right, bits=WORD_BITS)
    blocks = _merge_crumbs(aligned.blocks, left)
    texts = [(block.same, "".join(left[block.a0 : block.a1]), "".join(right[block.b0 : block.b1])) for block in blocks]
    common = sum(len(text) - text.count(" ") for same, text, _ in texts if same)
    if common < _SMALL * min(sum(map(len, a)), sum(map(len, b))):
        return _changed_lines(a), _changed_lines(b), aligned.bounded
    line_a = _lines([(same, text) for same, text, _ in texts])
    return line_a, _lines([(same, text) for same, _, text in texts]), aligned.bounded


def _merge_crumbs(blocks: list[Block], tokens: Sequence[str]) -> list[Block]:
    """Blocks with crumbs (short equal stretches between two changes) merged into the changes."""
    merged: list[Block] = []
    for place, block in enumerate(blocks):
        crumb = block.same and 0 < place < len(blocks) - 1 and _is_crumb(tokens[block.a0 : block.a1])
        if merged and not merged[-1].same and (crumb or not block.same):
            merged[-1] = merged[-1]._replace(a1=block.a1, b1=block.b1)
        else:
            merged.append(block)
    return merged


def _is_crumb(tokens: Sequence[str]) -> bool:
    return len(tokens) < FEW and not any("\n" in word for word in tokens) and sum(map(len, tokens)) < 12


def _lines(parts: Sequence[tuple[bool, str]]) -> tuple[Line, ...]:
    lines: list[Line] = []
    line: list[Piece] = []
    for same, text in parts:
        first, *rest = text.split("\n")
        if first:
            line.append(Piece(first, not same))
        for more in rest:
            lines.append(tuple(line))
            line = [Piece(more, not same)] if more else []
    return (*lines, tuple(line))


BY_HASH: Final = "input hash and step"
BY_NODE: Final = "superstep and node"
BY_RERUN: Final = "superstep and node, what was run again by node"
BY_ACTION: Final = "actions in order"
BY_NAME: Final = "operation, name and arguments"

CELLS: Final = 50_000
"""Maximum cells, over all gaps, of the tables for aligning the steps of a gap."""
_CHAT: Final = Operation.CHAT
_NUMBERS: Final = {id(operation): number for number, operation in enumerate(Operation)}
"""Operations as small integers, which hash much faster than enumeration members."""
WORDED_OPERATIONS: Final = frozenset({Operation.CHAT, Operation.TURN})
"""Operations with a model's wording as output, which differs in an imitation."""
_GRAPH: Final = frozenset({Operation.NODE, Operation.ROUTE})


class Pair(NamedTuple):
    """Positions in the spans of A and B; None on the side that has no such step."""

    a: int | None
    b: int | None
    moved: bool = False
    """Its order relative to other common steps differs in A and B."""


class Alignment(NamedTuple):
    """Every span of both runs once, in the order of B; steps only in A follow their predecessor in A.

    If a fork ran a step again, its inherited copy is omitted: that is the step of the other run.
    """

    pairs: list[Pair]
    by: str
    """The evidence used."""
    bounded: bool = False
    """An optimal alignment was too expensive; more steps than necessary may count as changed."""
    left_out: int = 0
    """Number of spans not compared: model turns, which may differ in wording."""
    keys: tuple[list[Hashable], list[Hashable]] | None = None
    """The key of each span of A and B, for `refine`; None if the keys are unambiguous."""


def align(a: Run, b: Run, *, actions: bool = False) -> Alignment:
    """Pair the spans of two runs. With `actions`, model turns are omitted."""
    by = _evidence(a.spans, b.spans)
    if by == BY_NODE:
        return _by_node(a, b)
    keys = _keys(a.spans, by), _keys(b.spans, by)
    if not actions:
        aligner = _Aligner(a.spans, b.spans, *keys)
        return Alignment(aligner.pairs, by, aligner.bounded, keys=keys)
    left, right = _actions(a.spans), _actions(b.spans)
    aligner = _Aligner(
        [a.spans[i] for i in left], [b.spans[j] for j in right], [keys[0][i] for i in left], [keys[1][j] for j in right]
    )
    pairs = [Pair(None if i is None else left[i], None if j is None else right[j]) for i, j, _ in aligner.pairs]
    left_out = len(a.spans) + len(b.spans) - len(left) - len(right)
    return Alignment(pairs, BY_ACTION, aligner.bounded, left_out, keys)


def _evidence(a: Sequence[Span], b: Sequence[Span]) -> str:
    """The strongest evidence that both runs have."""
    if all(any(span.input_hash for span in spans) for spans in (a, b)):
        return BY_HASH
    if all(any(span.operation in _GRAPH and span.step is not None for span in spans) for spans in (a, b)):
        return BY_NODE
    return BY_NAME


def _actions(spans: Sequence[Span]) -> list[int]:
    """Positions of all spans except model turns."""
    return [i for i, span in enumerate(spans) if span.operation not in WORDED_OPERATIONS]


def _keys(spans: Sequence[Span], by: str) -> list[Hashable]:
    if by == BY_HASH:
        return [span.input_hash or _name_key(span) for span in spans]
    return [  # `_name_key`, inlined for speed
        (_NUMBERS[id(span.operation)], "" if span.operation is _CHAT else span.name, span.preview.strip())
        for span in spans
    ]


def _name_key(span: Span) -> tuple[int, str, str]:
    """The key of a step. The name of a model call, which is the model, is left out."""
    return _NUMBERS[id(span.operation)], "" if span.operation is _CHAT else span.name, span.preview.strip()


class _Aligner:
    """Pairs two lists of spans: those with equal keys, then similar ones in the gaps between them."""

    def __init__(
        self, a: Sequence[Span], b: Sequence[Span], keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]
    ) -> None:
        self.a, self.b = a, b
        self.pairs: list[Pair] = []
        self._cells = CELLS
        aligned = blocks_of(keys_a, keys_b)
        self.bounded = aligned.bounded
        for block in aligned.blocks:
            same, a0, a1, b0, b1 = block
            if same:
                self.pairs += map(Pair, range(a0, a1), range(b0, b1))
            elif a0 == a1 or b0 == b1:
                self._only(a0, a1, b0, b1)
            else:
                self._gap(block)

    def _gap(self, gap: Block) -> None:
        """Pair similar steps in a gap; the others stay unpaired."""
        i, j = gap.a0, gap.b0
        for left, right in self._similar_pairs(gap):
            self._only(i, left, j, right)
            self.pairs.append(Pair(left, right))
            i, j = left + 1, right + 1
        self._only(i, gap.a1, j, gap.b1)

    def _only(self, i: int, a1: int, j: int, b1: int) -> None:
        for position_a in range(i, a1):
            self.pairs.append(Pair(position_a, None))
        for position_b in range(j, b1):
            self.pairs.append(Pair(None, position_b))

    def _similar_pairs(self, gap: Block) -> list[tuple[int, int]]:
        _, a0, a1, b0, b1 = gap
        if a1 - a0 == b1 - b0 == 1:
            return [(a0, b0)] if self.a[a0].operation is self.b[b0].operation else []
        a, b = self.a[a0:a1], self.b[b0:b1]
        if len(a) == len(b) and all(map(_same_kind, a, b)):
            return list(zip(range(a0, a1), range(b0, b1), strict=True))
        self._cells -= len(a) * len(b)
        if self._cells >= 0:
            return [(a0 + i, b0 + j) for i, j in align_gap(a, b)]
        self._cells += len(a) * len(b)
        self.bounded = True
        aligned = blocks_of([_kind(span) for span in a], [_kind(span) for span in b])
        same = [block for block in aligned.blocks if block.same]
        return [
            (a0 + i, b0 + j) for _, i0, i1, j0, j1 in same for i, j in zip(range(i0, i1), range(j0, j1), strict=True)
        ]


def _kind(span: Span) -> tuple[int, str]:
    return _name_key(span)[:2]


def _same_kind(a: Span, b: Span) -> bool:
    return a.operation is b.operation and (a.name == b.name or a.operation is _CHAT)


# ---- gaps: global alignment with affine gap costs

_NEVER: Final = -1_000_000
_OPEN: Final = -12
_EXTEND: Final = -1
_NAME: Final = 30
_OTHER_NAME: Final = -15
_STEP: Final = 4
_ARGUMENT: Final = 8


def align_gap(a: Sequence[Span], b: Sequence[Span]) -> list[tuple[int, int]]:
    """The pairs of the best global alignment (Gotoh), in order; symmetric in `a` and `b`."""
    if len(a) == 1 or len(b) == 1:
        return _pair_single(a, b)
    if [(_name_key(span), span.step or 0) for span in a] > [(_name_key(span), span.step or 0) for span in b]:
        return [(i, j) for j, i in _gotoh(b, a)]
    return _gotoh(a, b)


def _pair_single(a: Sequence[Span], b: Sequence[Span]) -> list[tuple[int, int]]:
    """Pair the single step of one side with its best match on the other."""
    scores = [score for row in _scores(a, b) for score in row]
    best = max(scores)
    place = scores.index(best)
    return [] if best == _NEVER else [(place, 0) if len(b) == 1 else (0, place)]


def _scores(a: Sequence[Span], b: Sequence[Span]) -> Iterator[list[int]]:
    """Similarity scores of every step of A with every step of B; `_NEVER` for different operations."""
    words_b = [set(span.preview.split()) for span in b]
    for left in a:
        own = set(left.preview.split())
        row: list[int] = []
        for right, other in zip(b, words_b, strict=True):
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


def _gotoh(a: Sequence[Span], b: Sequence[Span]) -> list[tuple[int, int]]:
    # three scores per cell, by the last move: a pair, an unpaired step of A, an unpaired step of B
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
    """Pair steps by superstep and node below the same parents, then the remaining steps of each node in order.

    A step that a fork ran again pairs with the original step that it inherited.
    """
    reruns = find_reruns(a, b)
    gone_a, gone_b = reruns.copies
    exact: dict[Hashable, int] = {}
    left, right = (_node_keys(run, exact, keys) for run, keys in zip((a, b), reruns.keys, strict=True))
    by_key = {key: j for j, key in enumerate(right)}
    partner = {j: i for i, key in enumerate(left) if (j := by_key.get(key)) is not None}
    rest_a = sorted(set(range(len(left))).difference(partner.values(), gone_a))
    rest_b = [j for j in range(len(right)) if j not in partner and j not in gone_b]
    by_name: dict[Hashable, int] = {}
    names_a, names_b = _name_paths(a, by_name), _name_paths(b, by_name)
    aligned = blocks_of([names_a[i] for i in rest_a], [names_b[j] for j in rest_b])
    for block in aligned.blocks:
        if block.same:
            spans = zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True)
            partner.update((rest_b[j], rest_a[i]) for i, j in spans)
    pairs = in_order(partner, a.spans, b.spans)
    if not reruns:
        return Alignment(pairs, BY_NODE, aligned.bounded)
    pairs = [pair for pair in pairs if pair.a not in gone_a and pair.b not in gone_b]
    return Alignment(pairs, BY_RERUN, aligned.bounded)


def _node_keys(run: Run, ids: dict[Hashable, int], overrides: dict[int, Hashable]) -> list[int]:
    """Number the spans by (parent, superstep, name, occurrence); `overrides` has other keys for some positions."""
    keys: list[int] = []
    seen: dict[Hashable, int] = {}
    path: list[int] = []
    for place, (span, depth) in enumerate(zip(run.spans, run.depths, strict=True)):
        del path[depth:]
        key = overrides.get(place)
        if key is None:
            name = (path[-1] if path else None, span.step, span.name)
            number = seen[name] = seen.get(name, -1) + 1
            key = (*name, number)
        keys.append(ids.setdefault(key, len(ids)))
        path.append(keys[-1])
    return keys


def _name_paths(run: Run, ids: dict[Hashable, int]) -> list[int]:
    """Number the spans by their path of names from the top."""
    keys: list[int] = []
    path: list[int] = []
    for span, depth in zip(run.spans, run.depths, strict=True):
        del path[depth:]
        keys.append(ids.setdefault((path[-1] if path else None, span.name), len(ids)))
        path.append(keys[-1])
    return keys


def in_order(partner: dict[int, int], a: Sequence[Span], b: Sequence[Span]) -> list[Pair]:
    """Pairs in the order of B, from ``{position in b: position in a}``; steps of one superstep are unordered."""
    matched = sorted(partner)
    ordered = {matched[i] for i in increasing([partner[j] for j in matched])}
    after: dict[int, list[int]] = {}  # steps only in A, by their predecessor in A
    anchors = {partner[j] for j in ordered}
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
        moved = j not in ordered and (a[i_].step is None or a[i_].step != b[j].step)
        pairs.append(Pair(i_, j, moved))
        if j in ordered:
            pairs += [Pair(position, None) for position in after.get(i_, ())]
    return pairs


# ---- steps that a fork or retry ran again

_Place = tuple[int | None, str]


class Reruns(NamedTuple):
    """Steps that a fork ran again, for A and B."""

    keys: tuple[dict[int, Hashable], dict[int, Hashable]]
    """Keys by position, equal for a rerun step and its original."""
    copies: tuple[frozenset[int], frozenset[int]]
    """Positions of their inherited copies, with descendants, which duplicate the original."""

    def __bool__(self) -> bool:
        return bool(self.copies[0] or self.copies[1])


def find_reruns(a: Run, b: Run) -> Reruns:
    """Find the steps that either run inherited from the other and ran again."""
    keys: tuple[dict[int, Hashable], dict[int, Hashable]] = ({}, {})
    copies: tuple[set[int], set[int]] = (set(), set())
    for side, fork, original in ((0, a, b), (1, b, a)):
        for own, source in _rerun_steps(fork, original).items():
            keys[side][own] = keys[1 - side][source] = ("again", side, own)
            copy = fork.index[original.spans[source].id]
            keys[side][copy] = (INHERITED, side, copy)
            copies[side].update(range(copy, copy + fork.sizes[copy]))
    return Reruns(keys, (frozenset(copies[0]), frozenset(copies[1])))


def _rerun_steps(fork: Run, original: Run) -> dict[int, int]:
    """``{position in the fork: position in the original}`` of the steps that the fork inherited and ran again.

    They match by superstep and node, else by the name of a node that the original ran once or that failed there. The
    next iteration of a loop isn't a rerun.
    """
    tops = _tops(fork)
    copies = [place for place in tops if _inherited(fork.spans[place])]
    if not copies:
        return {}
    own = [place for place in _tops(original) if not _inherited(original.spans[place])]
    sources = [original.index.get(fork.spans[place].id) for place in copies]
    inherited = sorted(set(own).intersection(place for place in sources if place is not None))
    exact = {_place(original.spans[i]): i for i in inherited}
    original_places = {_place(original.spans[i]) for i in own}
    partner: dict[int, int] = {}
    rest: list[int] = []
    for place in tops:
        key = _place(fork.spans[place])
        if _inherited(fork.spans[place]):
            continue
        if key in exact:
            partner[place] = exact.pop(key)
        elif key not in original_places:
            rest.append(place)
    times = Counter(original.spans[i].name for i in own)
    unmatched = [i for i in inherited if i in exact.values() and _may_repeat(original.spans[i], times)]
    for block in blocks_of([original.spans[i].name for i in unmatched], [fork.spans[i].name for i in rest]).blocks:
        if block.same:
            partner.update(zip(rest[block.b0 : block.b1], unmatched[block.a0 : block.a1], strict=True))
    return partner


def _tops(run: Run) -> list[int]:
    return [place for place, depth in enumerate(run.depths) if depth == 0]


def _place(span: Span) -> _Place:
    return span.step, span.name


def _inherited(span: Span) -> bool:
    return INHERITED in span.notes


def _may_repeat(span: Span, times: Counter[str]) -> bool:
    return times[span.name] == 1 or span.status is Status.ERROR


# ---- ambiguous pairs settled by content

SLIDE: Final = 64
"""Maximum distance that a gap among equal steps is moved."""
CANDIDATES: Final = 500
"""Maximum comparisons in the search for moved steps."""

Same = Callable[[int, int], bool]
Keys = Sequence[Hashable]


def refine(pairs: list[Pair], keys_a: Keys, keys_b: Keys, same: Same) -> list[Pair]:
    """Move every gap to where contents fit best, and pair steps that only moved.

    `same` compares the contents of two steps; it is called for few pairs.
    """
    return _pair_moved(_move_gaps(pairs, keys_a, keys_b, same), keys_a, keys_b, same)


def _move_gaps(pairs: list[Pair], keys_a: Keys, keys_b: Keys, same: Same) -> list[Pair]:
    moved = list(pairs)
    start = 0
    while start < len(moved):
        end = start
        in_b = moved[start].a is None
        while end < len(moved) and _only(moved[end], in_b):
            end += 1
        if end > start:
            _move_gap(moved, start, end, in_b, keys_b if in_b else keys_a, keys_a if in_b else keys_b, same)
            while end < len(moved) and _only(moved[end], in_b):  # the gap moved down
                end += 1
        start = max(end, start + 1)
    return moved


def _only(pair: Pair, in_b: bool) -> bool:
    return pair.a is None if in_b else pair.b is None


def _move_gap(pairs: list[Pair], start: int, end: int, in_b: bool, own: Keys, other: Keys, same: Same) -> None:
    """Move the gap ``pairs[start:end]`` (steps of one side) to the position with the fewest content differences."""
    gap_steps = [pair.b if in_b else pair.a for pair in pairs[start:end]]
    first, size = gap_steps[0], end - start
    if first is None:
        return
    up = _room(pairs, start - 1, -1, lambda t: _key_at(own, first + size - 1 - t), in_b, other)
    down = _room(pairs, end, 1, lambda t: _key_at(own, first + t), in_b, other)
    if not up and not down:
        return
    region = [*pairs[start - up : start], *pairs[end : end + down]]
    partners = [pair.a if in_b else pair.b for pair in region]

    def differs(t: int, shift: int) -> bool:
        left, right = partners[t], first - up + shift + t
        return left is not None and not (same(left, right) if in_b else same(right, left))

    above, below = [differs(t, 0) for t in range(up)], [differs(t, size) for t in range(up, up + down)]
    if not any(above) and not any(below):
        return  # already optimal
    above += [differs(t, 0) for t in range(up, up + down)]
    below = [differs(t, size) for t in range(up)] + below
    costs = [sum(above[:cut]) + sum(below[cut:]) for cut in range(len(partners) + 1)]
    cut = min(range(len(costs)), key=lambda place: (costs[place], abs(place - up)))
    moved: list[tuple[int | None, int | None]] = [(partner, first - up + t) for t, partner in enumerate(partners[:cut])]
    moved += [(None, first - up + cut + t) for t in range(size)]
    moved += [(partner, first - up + size + cut + t) for t, partner in enumerate(partners[cut:])]
    pairs[start - up : end + down] = [Pair(left, right) if in_b else Pair(right, left) for left, right in moved]


def _key_at(keys: Keys, place: int) -> Hashable:
    return keys[place] if 0 <= place < len(keys) else None


def _room(pairs: list[Pair], at: int, step: int, key: Callable[[int], Hashable], in_b: bool, other: Keys) -> int:
    """Number of pairs next to a gap with the same key as the step that would replace them."""
    for count in range(SLIDE):
        place = at + count * step
        if not 0 <= place < len(pairs):
            return count
        pair = pairs[place]
        if pair.a is None or pair.b is None or pair.moved or other[pair.a if in_b else pair.b] != key(count):
            return count
    return SLIDE


def _pair_moved(pairs: list[Pair], keys_a: Keys, keys_b: Keys, same: Same) -> list[Pair]:
    """Pair steps that are only in A at one position and, with equal contents, only in B at another."""
    gone: dict[Hashable, list[int]] = {}
    for pair in pairs:
        if pair.b is None and pair.a is not None:
            gone.setdefault(keys_a[pair.a], []).append(pair.a)
    if not gone:
        return pairs
    partner: dict[int, int] = {}
    compared = 0
    for pair in pairs:
        if pair.a is None and pair.b is not None and compared < CANDIDATES:
            candidates = gone.get(keys_b[pair.b], [])
            match = next((i for i in candidates[:4] if same(i, pair.b)), None)
            compared += len(candidates[:4])
            if match is not None:
                candidates.remove(match)
                partner[pair.b] = match
    taken = set(partner.values())
    return [
        Pair(partner[pair.b], pair.b, True) if pair.a is None and pair.b in partner else pair
        for pair in pairs
        if pair.b is not None or pair.a not in taken
    ]

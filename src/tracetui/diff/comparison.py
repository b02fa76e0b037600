"""Compare two runs: align their steps, compare the bodies pair by pair, find the first divergence.

The result: rows, the first divergence, counts, ignored noise, and the two runs side by side.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.diff.align import WORDED_OPERATIONS, Alignment, Pair, align, refine
from tracetui.diff.noise import NOTES, WORDINGS, Noise
from tracetui.diff.step import (
    SAME,
    Difference,
    Kind,
    StateDiff,
    as_messages,
    difference,
    documents,
    same_record,
    state_diff,
)
from tracetui.diff.values import INPUT, Change
from tracetui.model import Body, Criterion, Metric, Operation, Run, RunSummary, Span

# ---- run-level facts

_HASH: Final = "hash"


class Fact(msgspec.Struct, frozen=True):
    """A property of both runs; None if a trace lacks it."""

    name: str
    a: Any
    b: Any

    @property
    def same(self) -> bool:
        """Whether both values are equal."""
        return bool(self.a == self.b)


class Deltas(msgspec.Struct, frozen=True):
    """Usage of B minus that of A; None unless both traces have it."""

    tokens: int | None = None
    duration_ms: float | None = None
    cost_usd: float | None = None


class JudgmentPair(msgspec.Struct, frozen=True):
    """A criterion or metric in A and in B; None where it is missing."""

    name: str
    a: Criterion | Metric | None
    b: Criterion | Metric | None

    @property
    def same(self) -> bool:
        """Whether both have the same result."""
        return _verdict(self.a) == _verdict(self.b)


def _verdict(judgment: Criterion | Metric | None) -> tuple[Any, ...]:
    if isinstance(judgment, Criterion):
        return (judgment.met,)
    return () if judgment is None else (judgment.score, judgment.passed)


def deltas(a: RunSummary, b: RunSummary) -> Deltas:
    """Usage of B minus that of A."""
    used = [run.usage for run in (a, b)]
    tokens = [None if usage is None else usage.all_tokens for usage in used]
    costs = [None if usage is None else usage.cost_usd for usage in used]
    return Deltas(_subtract(*tokens), _subtract(a.duration_ms, b.duration_ms), _subtract(*costs))


def _subtract(a: Any, b: Any) -> Any:
    return None if a is None or b is None else b - a


def facts(a: Run, b: Run) -> list[Fact]:
    """Properties of both runs: outcome first, then their build."""
    left, right = a.summary, b.summary
    listed = [
        Fact("status", left.status_word or left.status.value, right.status_word or right.status.value),
        Fact("outcome", left.outcome, right.outcome),
        Fact("agent", left.agent or left.name, right.agent or right.name),
        Fact("model", left.model, right.model),
        Fact("result", left.result or None, right.result or None),
        Fact("steps", left.steps, right.steps),
        Fact("error", _error(left), _error(right)),
    ]
    hashes = dict(_hashes(a.body.attributes)), dict(_hashes(b.body.attributes))
    listed += [Fact(name, hashes[0][name], hashes[1][name]) for name in hashes[0] if name in hashes[1]]
    return [fact for fact in listed if (fact.a, fact.b) != (None, None)]


def _error(run: RunSummary) -> str | None:
    return None if run.first_error is None else run.first_error.text


def _hashes(attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fingerprints (of its graph, its code) in the top two levels of a run's attributes."""
    for name, value in attributes.items():
        inner = value if isinstance(value, dict) else {name: value}
        yield from (
            (key, inner_value)
            for key, inner_value in inner.items()
            if str(key).endswith(_HASH) and isinstance(inner_value, str)
        )


def pair_judgments(a: Run, b: Run) -> list[JudgmentPair]:
    """Criteria and metrics of both runs, paired by name, those of A first."""
    criteria = _by_name(a.body.criteria, b.body.criteria, "text")
    return criteria + _by_name(a.body.metrics, b.body.metrics, "name")


def _by_name(a: tuple[Any, ...], b: tuple[Any, ...], field: str) -> list[JudgmentPair]:
    left, right = ({getattr(judgment, field): judgment for judgment in side} for side in (a, b))
    names = dict.fromkeys([*left, *right])
    return [JudgmentPair(name, left.get(name), right.get(name)) for name in names]


# ---- rows


class Row(msgspec.Struct, frozen=True, gc=False):
    """A step of A paired with one of B, or unpaired. `a` and `b` are positions in the spans of the runs."""

    kind: Kind
    a: int | None
    b: int | None
    downstream: bool = False
    """A consequence of the first divergence: its input contains a diverged value, or the other run had ended."""
    changes: int = 0
    """Number of changes; `Comparison.changes` lists them."""
    path: str = ""
    """Path of the first change."""
    flags: tuple[str, ...] = ()
    """Stored values that failed their check: ``B: input_hash``."""
    noise: str = ""
    """The kind of noise if all changes are noise; else empty."""


class Divergence(msgspec.Struct, frozen=True):
    """A differing row with its first changed value; for an unpaired step, its name."""

    row: int
    kind: Kind
    path: str
    a: Any = None
    b: Any = None
    noise: str = ""
    """The kind of noise, if no row of the comparison differs significantly."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison. Rows from `compared` on are based on headers only."""

    a: Run
    b: Run
    relation: str | None
    """Relation of B to A: replay, fork, retry, student, repeat; None if unknown."""
    by: str
    """The evidence used to align steps."""
    rows: tuple[Row, ...]
    first: Divergence | None = None
    decision: Divergence | None = None
    """The first routing decision that differs."""
    ignored: dict[str, int] = {}
    """Ignored differences by kind."""
    envelope: tuple[str, ...] = ()
    """The names of the ignored envelope fields."""
    compared: int = 0
    """Number of rows with compared contents."""
    counts: dict[Kind, int] = {}
    """Number of rows of every kind, in order."""
    downstream: int = 0
    """Number of downstream rows."""
    independent: tuple[int, ...] = ()
    """Rows that differ after the first divergence and aren't its consequence."""
    flagged: tuple[int, ...] = ()
    """Rows with flags."""
    notes: tuple[str, ...] = ()
    """Limits of the comparison, as sentences."""
    deltas: Deltas = Deltas()
    facts: tuple[Fact, ...] = ()
    judgments: tuple[JudgmentPair, ...] = ()
    strict: bool = False
    """Whether nothing was ignored."""

    @property
    def complete(self) -> bool:
        """Whether every row was compared."""
        return self.compared == len(self.rows)

    @property
    def same(self) -> bool:
        """Whether no step differs significantly (strict: at all)."""
        return self.first is None or (bool(self.first.noise) and not self.strict)

    @property
    def apart(self) -> bool:
        """Whether the runs have steps but none in common."""
        unpaired = self.counts.get(Kind.ONLY_A, 0) + self.counts.get(Kind.ONLY_B, 0)
        return bool(self.rows) and unpaired == len(self.rows)

    def span_a(self, row: Row) -> Span | None:
        """The step of A in that row."""
        return None if row.a is None else self.a.spans[row.a]

    def span_b(self, row: Row) -> Span | None:
        """The step of B in that row."""
        return None if row.b is None else self.b.spans[row.b]


# ---- diverged values downstream
#
# A later difference is a consequence if its input contains a diverged value. Values are traced by text: an input
# contains a value if it includes its text, is part of it, or shares most of the words that were new in it. A difference
# without such a value is independent.


MAX_VALUES: Final = 200
"""Maximum number of traced values: the first `FIRST_VALUES`, then the latest."""
FIRST_VALUES: Final = 50
MAX_TEXT: Final = 2_000_000
"""Maximum characters of all traced values."""
_LEAVES: Final = 50
_CHARACTERS: Final = 200_000
_SHORT: Final = 4
_WORD: Final = re.compile(r"\w{4,}|\w*\d\w*")


class _Sides(NamedTuple):
    """A value in A and B: its leaves, and the words that only one side has."""

    a: list[str]
    b: list[str]
    words_a: set[str]
    words_b: set[str]

    @property
    def size(self) -> int:
        """Characters of both sides."""
        return sum(map(len, self.a)) + sum(map(len, self.b))


def _sides(a: list[str], b: list[str]) -> _Sides:
    left, right = _word_set(a), _word_set(b)
    return _Sides(a, b, left - right, right - left)


class TaintTracker:
    """The diverged values of both runs. `full`: some are no longer traced."""

    def __init__(self) -> None:
        self._values: list[_Sides] = []
        self._seen: set[int] = set()
        self._size = 0
        self.full = False

    def __bool__(self) -> bool:
        """Whether any value diverged yet."""
        return bool(self._values)

    def add(self, changes: Iterable[Change]) -> None:
        """Add the changes of a diverged row."""
        for change in changes:
            self._put(leaves(change.a), leaves(change.b))

    def add_one_sided(self, values: Iterable[Any], *, in_b: bool) -> None:
        """Add values that only one run has."""
        texts = [leaf for value in values for leaf in leaves(value)]
        self._put([], texts) if in_b else self._put(texts, [])

    def _put(self, a: list[str], b: list[str]) -> None:
        key = hash((*a, None, *b))
        if key in self._seen or not (a or b):
            return
        self._seen.add(key)
        value = _sides(a, b)
        self._values.append(value)
        self._size += value.size
        while len(self._values) > FIRST_VALUES and (len(self._values) > MAX_VALUES or self._size > MAX_TEXT):
            self._size -= self._values.pop(FIRST_VALUES).size
            self.full = True

    def reaches(self, changes: Iterable[Change], *, outputs: bool = False) -> bool:
        """Whether the input (with `outputs`, also the output) of a row contains a diverged value."""
        return any(
            self._has(leaves(change.a), leaves(change.b)) for change in changes if outputs or change.side == INPUT
        )

    def reaches_one_sided(self, values: Iterable[Any], *, in_b: bool) -> bool:
        """Whether the input of a row of one run contains a diverged value."""
        texts = [leaf for value in values for leaf in leaves(value)]
        return self._has([], texts) if in_b else self._has(texts, [])

    def _has(self, a: list[str], b: list[str]) -> bool:
        now = _sides(a, b)
        return any(_new_words(now, then) or _contains(now, then) for then in self._values)


def _new_words(now: _Sides, then: _Sides) -> bool:
    """Whether at least half of the words new on one side of an input were new in a diverged value."""
    if not now.a or not now.b:
        return False
    pairs = ((now.words_a, then.words_a), (now.words_b, then.words_b))
    return any(new and 2 * len(new & diverged) >= len(new) for new, diverged in pairs)


def _contains(now: _Sides, then: _Sides) -> bool:
    """Whether an input equals, contains, or is part of a diverged value of its side but not of the other side."""
    return _shares_value(now.a, now.b, then.a, then.b) or _shares_value(now.b, now.a, then.b, then.a)


def _shares_value(now: list[str], other: list[str], then: list[str], then_other: list[str]) -> bool:
    for value in now:
        for diverged in then:
            if value == diverged:
                return True
            if len(diverged) >= _SHORT and diverged in value and not any(diverged in text for text in other):
                return True
            if len(value) >= _SHORT and value in diverged and not any(value in text for text in then_other):
                return True
    return False


def _word_set(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text)}


def leaves(value: Any) -> list[str]:
    """The first texts and numbers in a value, deduplicated, in order."""
    texts: dict[str, None] = {}
    room = _CHARACTERS
    for text in _leaves(value):
        texts[text[:room]] = None
        room -= len(text)
        if room <= 0 or len(texts) == _LEAVES:
            break
    return list(texts)


def _leaves(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(reversed(item.values()))
        elif isinstance(item, list | tuple):
            todo.extend(reversed(item))
        elif isinstance(item, str):
            if text := item[:_CHARACTERS].strip():
                yield text
        elif item is not None and not isinstance(item, bool):
            yield str(item)


SLICE: Final = 0.02
"""Seconds of work between two intermediate results."""
_LEFT_OUT: Final = "model turns left out"
_BOUNDED: Final = "runs too large for an optimal alignment: some steps may be reported as changed"
_TRACED: Final = "too many diverged values: not all were traced downstream"
_STUDENT: Final = "student"


def compare(a: Run, b: Run, *, relation: str | None = None, strict: bool = False) -> Diff:
    """Compare two runs completely."""
    return Comparison(a, b, relation=relation, strict=strict).result()


def relation_of(a: Run, b: Run) -> str | None:
    """The relation of B to A as recorded in B, or ``repeat`` for runs of the same task; None if unknown."""
    later, earlier = b.summary, a.summary
    same_task = later.task_key is not None and later.task_key == earlier.task_key
    if later.replay_of is None and same_task and later.ref != earlier.ref:
        return "repeat"
    named = later.replay_of == earlier.id or (
        later.replay_of_path is not None and later.replay_of_path == earlier.ref.path
    )
    return later.relation if later.replay_of is not None and named and later.ref != earlier.ref else None


class Comparison:
    """A comparison in progress. With `strict`, nothing is ignored and no step is left out.

    `relation` is that of B to A. A student imitates its teacher in its own words, so its turns are not compared.
    `breathe` is called after each row; if it returns True, `steps` yields an intermediate result.
    """

    def __init__(
        self,
        a: Run,
        b: Run,
        *,
        relation: str | None = None,
        strict: bool = False,
        breathe: Callable[[], bool] = lambda: False,
    ) -> None:
        self.a, self.b = a, b
        self.strict, self._breathe = strict, breathe
        self.relation = relation if relation is not None else relation_of(a, b)
        ref_a, ref_b = a.summary.ref, b.summary.ref
        self._imitates = _STUDENT in (self.relation, relation_of(b, a))
        self._alike = ref_a.format == ref_b.format
        self._one_file = self._alike and ref_a.path == ref_b.path
        self._folders = _folders(a, b)
        self._noise = self._new_noise()
        self._tainted = TaintTracker()
        self._pairs: list[Pair] = []
        self._end = -1  # the last row before one of the runs ended
        self._rows: list[Row] = []
        self._first: Divergence | None = None
        self._quiet: Divergence | None = None
        """The first row with nothing but noise."""
        self._decision: Divergence | None = None
        self._diverged_spans: set[tuple[bool, str]] = set()
        self._counts = dict.fromkeys(Kind, 0)
        self._downstream = 0
        self._independent: list[int] = []
        self._flagged: list[int] = []
        self._deltas = deltas(a.summary, b.summary)
        self._facts, self._judgments = tuple(facts(a, b)), tuple(pair_judgments(a, b))

    def steps(self) -> Iterator[Diff]:
        """Yield results: at once by headers, when the first divergence is certain, every 20 ms, and complete."""
        alignment = align(self.a, self.b, actions=self._imitates and not self.strict)
        self._take(alignment.pairs)
        yield self._by_headers(alignment)
        if alignment.keys is not None:
            self._take(refine(alignment.pairs, *alignment.keys, self._same))
        until = time.monotonic() + SLICE
        reported = False
        for index, row in enumerate(self._rows):
            self._put(index, self._compare_row(index, row))
            news = not reported and self._is_certain()
            if (self._breathe() or news or time.monotonic() > until) and index + 1 < len(self._rows):
                yield self._result(alignment, index + 1)
                until = time.monotonic() + SLICE
                reported |= news
        yield self._result(alignment, len(self._rows))

    def result(self) -> Diff:
        """The complete comparison."""
        *_, last = self.steps()
        return last

    def changes(self, row: Row) -> Difference:
        """All differences of a row, recomputed. A step that only one run has is not compared."""
        if row.a is None or row.b is None:
            return Difference(row.kind)
        difference = self._difference(row.a, row.b, self._noise.fork())
        noise = self._noise_kind(self.a.spans[row.a])
        return difference.as_noise(noise) if noise else difference

    def messages(self, row: Row) -> Difference:
        """All differences of a row, with changes of messages instead of those in the JSON of a provider."""
        difference = self.changes(row)
        if row.a is None or row.b is None or not difference.changes or difference.noise:
            return difference
        bodies = self.a.load(self.a.spans[row.a]), self.b.load(self.b.spans[row.b])
        return as_messages(difference, *bodies, self._noise.fork())

    def state(self, superstep: int) -> StateDiff:
        """Compare the accumulated state of both graphs after a superstep."""
        return state_diff(self.a, self.b, superstep, self._noise.fork())

    def _take(self, pairs: list[Pair]) -> None:
        only_a = {(position, None) for position in _left_out(self.a, self.b)}
        only_b = {(None, position) for position in _left_out(self.b, self.a)}
        pairs = self._pairs = [pair for pair in pairs if pair[:2] not in only_a and pair[:2] not in only_b]
        ends = [max((i for i, pair in enumerate(pairs) if pair[side] is not None), default=-1) for side in (0, 1)]
        self._end = min(ends)
        self._rows = [self._guess(pair) for pair in pairs]
        counts = Counter(row.kind for row in self._rows)
        self._counts = {kind: counts[kind] for kind in Kind}

    def _put(self, index: int, row: Row) -> None:
        """Replace a row with its compared version, updating the counts incrementally."""
        before, self._rows[index] = self._rows[index], row
        self._counts[before.kind] -= 1
        self._counts[row.kind] += 1
        self._downstream += row.downstream
        if row.flags:
            self._flagged.append(index)
        first = self._first
        if first is not None and first.row < index and row.kind is not Kind.SAME and not (row.downstream or row.noise):
            self._independent.append(index)

    def _is_certain(self) -> bool:
        """Whether the first divergence is final: no step inside it can still turn out to be the cause."""
        first = self._first
        if first is None or first.kind not in (Kind.OUTPUT, Kind.STATUS):
            return first is not None
        row = self._rows[first.row]
        return not (_has_children(self.a, row.a) or _has_children(self.b, row.b))

    # ---- one row

    def _guess(self, pair: Pair) -> Row:
        """A row based on headers only."""
        if pair.a is None or pair.b is None:
            return Row(Kind.ONLY_B if pair.a is None else Kind.ONLY_A, pair.a, pair.b)
        a, b = self.a.spans[pair.a], self.b.spans[pair.b]
        if a.input_hash and b.input_hash and a.input_hash != b.input_hash:
            return Row(Kind.INPUT, pair.a, pair.b)
        if a.status is not b.status:
            return Row(Kind.STATUS, pair.a, pair.b)
        return Row(Kind.MOVED if pair.moved else Kind.SAME, pair.a, pair.b)

    def _compare_row(self, index: int, row: Row) -> Row:
        if row.a is None or row.b is None:
            return self._one_sided(index, row)
        a, b = self.a.spans[row.a], self.b.spans[row.b]
        if self._one_file and same_record(a, b):
            return replace(row, kind=Kind.SAME)
        body_a, body_b = self.a.load(a), self.b.load(b)
        result = difference(a, b, body_a, body_b, self._noise, alike=self._alike)
        if self._noise.renamed and not self._noise.tracking:
            self._restart(index)
            result = difference(a, b, body_a, body_b, self._noise, alike=self._alike)
        if noise := self._noise_kind(a):
            result = result.as_noise(noise)
        kind = result.kind
        if (kind is Kind.SAME or result.noise) and self._pairs[index].moved:
            self._first = self._first or Divergence(index, Kind.MOVED, "", a.name, b.name)
            return replace(row, kind=Kind.MOVED, flags=result.flags)
        if kind is Kind.SAME:
            return replace(row, kind=kind, flags=result.flags)
        path = result.changes[0].path
        if result.noise:
            self._quiet = self._quiet or _divergence(index, kind, result.changes[0])
            return Row(kind, row.a, row.b, False, len(result.changes), path, result.flags, result.noise)
        self._blame_inner(index)
        self._first = self._first or _divergence(index, kind, result.changes[0])
        downstream = self._first.row != index and self._is_downstream(a, b, result.significant, (body_a, body_b))
        if downstream or self._first.row == index or not self._tainted:
            self._tainted.add(result.significant)
            self._diverged_spans |= {(False, a.id), (True, b.id)}
        if self._decision is None:
            decided = next((change for change in result.changes if change.path == "decision"), None)
            self._decision = None if decided is None else _divergence(index, kind, decided)
        return Row(kind, row.a, row.b, downstream, len(result.changes), path, result.flags)

    def _restart(self, index: int) -> None:
        """Judge the rows before `index` again, now also tracking call ids that are equal in A and B."""
        self._noise = self._noise.restart()
        for row in self._rows[:index]:
            if row.a is not None and row.b is not None:
                self._difference(row.a, row.b, self._noise)

    def _is_downstream(self, a: Span, b: Span, changes: tuple[Change, ...], bodies: tuple[Body, Body]) -> bool:
        """Whether a difference is a consequence of the first divergence."""
        inside = (False, a.parent_id) in self._diverged_spans or (True, b.parent_id) in self._diverged_spans
        return _answers_all(a, *bodies) or self._tainted.reaches(changes, outputs=inside)

    def _blame_inner(self, index: int) -> None:
        """If the first divergence is the output of a container, a difference inside it replaces it."""
        first = self._first
        if first is None or first.kind not in (Kind.OUTPUT, Kind.STATUS):
            return
        outer, inner = self._rows[first.row], self._rows[index]
        if _is_inside(self.a, outer.a, inner.a) or _is_inside(self.b, outer.b, inner.b):
            self._rows[first.row] = replace(outer, downstream=True)
            self._downstream += 1
            self._independent.clear()
            self._first = None

    def _one_sided(self, index: int, row: Row) -> Row:
        """A row for a step that only one run has."""
        in_b = row.a is None
        run, position = (self.b, row.b) if in_b else (self.a, row.a)
        assert position is not None
        span = run.spans[position]
        if noise := self._noise_kind(span):
            self._quiet = self._quiet or Divergence(index, row.kind, "", noise=noise)
            return replace(row, noise=noise)
        body = run.load(span)
        if span.operation is not Operation.OTHER:  # for example an extra retry attempt, which is no cause
            self._blame_inner(index)
        names = (None, span.name) if in_b else (span.name, None)
        self._first = self._first or Divergence(index, row.kind, "", *names)
        inputs = (body.input, span.name, *_input_messages(body))
        downstream = self._first.row != index and (
            index > self._end
            or (in_b, span.parent_id) in self._diverged_spans
            or _answers_all(span, body)
            or self._tainted.reaches_one_sided(inputs, in_b=in_b)
        )
        if downstream or self._first.row == index or not self._tainted:
            self._tainted.add_one_sided((body.output, body.input), in_b=in_b)
            self._diverged_spans.add((in_b, span.id))
        flags = tuple(f"{'B' if in_b else 'A'}: {check.name}" for check in body.checks if check.matches is None)
        return replace(row, downstream=downstream, flags=flags)

    def _difference(self, a: int, b: int, noise: Noise) -> Difference:
        left, right = self.a.spans[a], self.b.spans[b]
        if self._one_file and same_record(left, right):
            return SAME
        return difference(left, right, self.a.load(left), self.b.load(right), noise, alike=self._alike)

    def _same(self, a: int, b: int) -> bool:
        """Whether two steps have equal contents."""
        return self._difference(a, b, self._new_noise()).kind is Kind.SAME

    def _noise_kind(self, span: Span) -> str:
        """The kind of noise that every difference of a span is (a note, an imitation's wording); else empty."""
        if span.operation is Operation.META and not self.strict:
            return NOTES
        return WORDINGS if self._imitates and span.operation in WORDED_OPERATIONS else ""

    def _is_note(self, row: Row) -> bool:
        sides = ((self.a, row.a), (self.b, row.b))
        return all(index is None or self._noise_kind(run.spans[index]) == NOTES for run, index in sides)

    def _new_noise(self) -> Noise:
        return Noise(strict=self.strict, folders=self._folders, imitates=self._imitates)

    # ---- results

    def _by_headers(self, alignment: Alignment) -> Diff:
        """The first result: only the first row that differs by header is compared."""
        rows = enumerate(self._rows)
        index = next((i for i, row in rows if row.kind not in (Kind.SAME, Kind.MOVED) and not self._is_note(row)), None)
        first = None
        if index is not None:
            row = self._rows[index]
            change = next(iter(self.changes(row).changes), None)
            span = self.a.spans[row.a] if row.a is not None else None
            other = self.b.spans[row.b] if row.b is not None else None
            if change is not None:
                first = _divergence(index, row.kind, change)
            elif span is None or other is None:
                first = Divergence(index, row.kind, "", span and span.name, other and other.name)
        return replace(self._result(alignment, 0), first=first)

    def _result(self, alignment: Alignment, compared: int) -> Diff:
        ignored = dict(sorted(self._noise.counts.items()))
        if alignment.left_out:
            ignored[_LEFT_OUT] = alignment.left_out
        notes = [_BOUNDED] if alignment.bounded else []
        notes += [_TRACED] if self._tainted.full else []
        return Diff(
            a=self.a,
            b=self.b,
            relation=self.relation,
            by=alignment.by,
            rows=tuple(self._rows),
            first=self._first or (self._quiet if compared == len(self._rows) else None),
            decision=self._decision,
            ignored=ignored,
            envelope=tuple(self._noise.envelope),
            compared=compared,
            counts=dict(self._counts),
            downstream=self._downstream,
            independent=tuple(self._independent),
            flagged=tuple(self._flagged),
            notes=tuple(notes),
            deltas=self._deltas,
            facts=self._facts,
            judgments=self._judgments,
            strict=self.strict,
        )


def _divergence(index: int, kind: Kind, change: Change) -> Divergence:
    return Divergence(index, kind, change.path, change.a, change.b, change.noise or "")


def _input_messages(body: Body) -> tuple[object, ...]:
    """The messages of the input."""
    return tuple(documents(body.input_messages)) if body.input is None else ()


def _left_out(own: Run, other: Run) -> Iterator[int]:
    """The steps of `own` below a call that `other` copied without its agent; the closest call of both decides."""
    left_out = bytearray(len(own.spans))
    for position, span in enumerate(own.spans):
        copy, below = other.index.get(span.id), range(position + 1, position + own.sizes[position])
        if copy is not None and below:
            is_left_out = other.spans[copy].taken_over and not _has_children(other, copy)
            if left_out[below.start] != is_left_out:
                left_out[below.start : below.stop] = bytes([is_left_out]) * len(below)
    return (position for position, is_left_out in enumerate(left_out) if is_left_out)


def _has_children(run: Run, position: int | None) -> bool:
    """Whether a span has children."""
    return position is not None and run.sizes[position] > 1


def _is_inside(run: Run, outer: int | None, inner: int | None) -> bool:
    """Whether a span is below another one. Model calls don't count: their children are calls they requested."""
    if outer is None or inner is None or run.spans[outer].operation is Operation.CHAT:
        return False
    return outer < inner < outer + run.sizes[outer]


def _answers_all(span: Span, *bodies: Body) -> bool:
    """Whether a model answers the whole conversation so far, which its record doesn't repeat."""
    silent = all(body.input is None and not body.input_messages for body in bodies)
    answers = any(message.role == "assistant" for body in bodies for message in body.output_messages)
    return silent and (answers or span.operation is Operation.CHAT)


def working_folder(run: Run) -> str | None:
    """The working directory of a run, None where the trace states none."""
    folder = run.body.attributes.get("cwd")
    return folder if isinstance(folder, str) else None


def _folders(a: Run, b: Run) -> tuple[str, str] | None:
    left, right = working_folder(a), working_folder(b)
    return None if left is None or right is None else (left, right)

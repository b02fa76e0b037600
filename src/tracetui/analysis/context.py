"""The context ledger: what filled the input of every model call, what that cost, and why the cache was missed.

The input of a call is recorded. It grows from call to call of one *chain* (an agent's conversation) by exactly
``input − input of the previous call``; the texts that entered share that growth in proportion to their estimated size,
so the contents of every call sum to its recorded input. What no text explains is *not recorded*.

A token costs what its position in the prompt says: first comes the part read from the cache, then the part written to
it, then the uncached rest. The cost of the input is the sum of ``new`` (first call that held a text), ``breaks`` (paid
again because a cached part was not read) and ``carry`` (all else). Estimates are in US dollars, by the list of
`tracetui.analysis.prices`; scaled to the recorded cost where the trace has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Final

import msgspec

from tracetui.analysis.context_costs import Costs
from tracetui.analysis.context_estimate import apportion, estimate
from tracetui.analysis.prices import Rates
from tracetui.model.context import (
    AFTER_COMPACTION,
    ATTACHMENT,
    CAUSES,
    NO_FACTS,
    NOT_RECORDED,
    PROMPT,
    REPLY,
    REPORT,
    RESULT,
    START,
    THINKING,
    TOOL_CALL,
    Cause,
    ContextFacts,
    ContextItem,
)

_BAND: Final = (0.75, 1.35)
"""Growth within these multiples of the estimate, give or take `_SLACK` tokens, is shared by the texts."""
_SLACK: Final = 150

# ---- results

BREAK_TOKENS: Final = 1024
"""A break misses more: the smallest prefix that providers cache."""
DEFAULT_CACHE_SECONDS: Final = 300
"""How long a cache lasts unless the trace says otherwise."""
_HOUR: Final = 3600
_LOOKBACK: Final = 20
"""Content blocks that a cache lookup of Anthropic's API goes back."""


class Basis:
    """How well the cause of a break is known."""

    RECORDED: Final = "recorded"
    RULE: Final = "rule"
    """It follows from recorded facts and documented behavior of caches."""
    INFERRED: Final = "inferred"
    """From how the input changed."""
    COINCIDES: Final = "coincides"
    """Something happened at the same time."""
    UNKNOWN: Final = "unknown"


_BASES: Final = {
    Cause.COMPACTION: Basis.RECORDED,
    Cause.CLEARED: Basis.RECORDED,
    Cause.MODEL: Basis.RULE,
    Cause.EDITED: Basis.RULE,
    Cause.IDLE: Basis.RULE,
    Cause.THINKING_SETTING: Basis.RULE,
    Cause.THINKING_DROPPED: Basis.INFERRED,
    Cause.LONG_STEP: Basis.INFERRED,
    Cause.UNKNOWN: Basis.UNKNOWN,
}

EVERYTHING: Final = "everything"
AFTER_START: Final = "all after the start"
MIDDLE: Final = "the middle"
LAST_WRITE: Final = "the last write"


class Break(msgspec.Struct, frozen=True, gc=False):
    """A call that did not read what the previous one had cached. Times in seconds, cost in US dollars."""

    call: int
    """Number of the call, from 1."""
    cause: str
    """A `Cause`."""
    basis: str
    """A `Basis`."""
    missed: int
    """Tokens that were cached and not read."""
    cached: int
    """Tokens that the previous call had cached, at most the input of this one."""
    kept: int
    """Tokens that were read."""
    where: str
    """What was lost: `EVERYTHING`, `AFTER_START`, `MIDDLE` or `LAST_WRITE`."""
    broke_at: str | None
    """The content at the first token that was not read."""
    reported: str | None = None
    """The recorded reason in the words of the trace."""
    idle: float | None = None
    """From the previous answer to this request; None also if they overlap."""
    cache_seconds: int = DEFAULT_CACHE_SECONDS
    """How long the cache lasts."""
    cache_known: bool = False
    """`cache_seconds` is recorded."""
    usd: float | None = None


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """Tokens that entered with one call."""

    content: str
    file: str | None
    tokens: int
    exact: bool
    """Recorded, not estimated."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A model call and its input. Tokens; costs of the input in US dollars, None without a price."""

    number: int
    """From 1, in the order of the run."""
    id: str
    """The provider's id of the response, else that of the span."""
    span: str
    agent: str | None
    """Span of the sub-agent that called; None for the run's own conversation."""
    started_at: float | None
    model: str | None
    input: int
    read: int | None
    """Read from a cache; None if not recorded."""
    written: int | None
    """Written to a cache; None if not recorded."""
    written_1h: int | None
    """Of these for an hour; None if not recorded."""
    output: int | None
    by: dict[str, int]
    """Input by content: sums to `input`."""
    growth: int
    """Compared with the previous call of the chain."""
    estimated: int
    """Estimated size of the texts that entered."""
    not_recorded: int
    """Tokens that entered and are in no text."""
    removed: int
    """Tokens that left the context."""
    note: str
    """What changed the context besides texts: a `Cause`, or ``removed, not recorded``."""
    arrivals: tuple[Arrival, ...]
    inherited: int = 0
    """Tokens that another run brought in, of which this one is a fork: of the first call."""
    usd: float | None = None
    usd_new: float | None = None
    missed: Break | None = None
    rates: Rates | None = None

    def brought(self, *, by_file: bool) -> list[Arrival]:
        """What it brought in, by content, or by content and file; most tokens first."""
        groups: dict[_Key, Arrival] = {}
        for arrival in self.arrivals:
            file = arrival.file if by_file else None
            before = groups.get((arrival.content, file), Arrival(arrival.content, file, 0, exact=True))
            groups[arrival.content, file] = Arrival(
                arrival.content, file, before.tokens + arrival.tokens, before.exact and arrival.exact
            )
        return sorted(groups.values(), key=lambda arrival: -arrival.tokens)

    @property
    def uncached(self) -> int:
        """Input that was neither read from nor written to a cache."""
        return self.input - (self.read or 0) - (self.written or 0)


class Account(msgspec.Struct, gc=False):
    """Totals of one content, or of one file in it. Costs in US dollars."""

    content: str
    file: str | None = None
    times: int = 0
    """How often it entered."""
    entered: int = 0
    """Tokens that entered."""
    carried: int = 0
    """Tokens summed over all calls that held them."""
    now: int = 0
    """Tokens in the last call of each chain."""
    usd: float = 0.0
    usd_new: float = 0.0
    usd_breaks: float = 0.0
    is_exact: bool = True
    """All of its tokens are recorded."""

    @property
    def usd_carry(self) -> float:
        """What carrying it through later calls cost."""
        return max(0.0, self.usd - self.usd_new - self.usd_breaks)

    def add(self, other: Account) -> None:
        """Add the totals of another account."""
        self.times += other.times
        self.entered += other.entered
        self.carried += other.carried
        self.now += other.now
        self.usd += other.usd
        self.usd_new += other.usd_new
        self.usd_breaks += other.usd_breaks
        self.is_exact &= other.is_exact


# ---- one conversation


class _Entry(msgspec.Struct, eq=False):
    """A text in the context; entries are in the order of the prompt, and never changed there: branches share them."""

    content: str
    estimate: float
    file: str | None = None
    key: str | None = None
    origin: str = ""
    """Id of its span."""
    exact: bool = False
    inherited: bool = False
    """Another run brought it in."""
    tokens: int = 0
    answers: bool = False
    """Part of the last answer, counted in its recorded output."""


_Key = tuple[str, str | None]
"""Content and file."""


class _Holding(msgspec.Struct):
    """The tokens of one content and file in a chain, and since when they are there."""

    since: int
    """Calls before."""
    rate: float
    """`Chain.rate` before."""
    tokens: int = 0


class _Last(msgspec.Struct, frozen=True):
    """The previous call of a chain."""

    size: int
    cached: int
    read: int
    model: str | None
    started_at: float | None
    ended_at: float | None
    cache_seconds: int
    cache_known: bool


class Chain:
    """The conversation of one agent: its context, and what enters with its next call."""

    def __init__(self, agent: str | None, accounts: dict[_Key, Account]) -> None:
        """`accounts` are those of the run."""
        self.agent = agent
        self._accounts = accounts
        self.entries: list[_Entry] = []
        self.by: Counter[str] = Counter()
        self.held = 0
        """Sum of `by`."""
        self.size = 0
        self.last: _Last | None = None
        """The call whose input this context was: an ancestor, after a rewind."""
        self.latest: _Last | None = None
        """The call that was made last."""
        self.calls = 0
        self.holdings: dict[_Key, _Holding] = {}
        self.rate = 0.0
        """Sum of the prices of a read token over all calls."""
        self.pending: list[_Entry] = []
        self.pending_at: float | None = None
        """When the last of these entered."""
        self.compacts = False
        self.kept_from: str | None = None
        self.cleared: set[str] = set()
        self.signs: set[str] = set()
        self.settings: dict[str, str] = {}
        self.settled: dict[str, str] = {}
        """The settings of the last call."""
        self.seen: set[str] = set()
        self.answered: Sequence[ContextItem] = ()
        """The last answer."""
        self.output: int | None = None
        """The recorded tokens of the last answer."""
        self.sizes: list[float] = []
        """The estimated tokens of its parts."""
        self.went_back = False
        """The next call follows an earlier one than the last."""

    # ---- what enters

    def take(
        self,
        facts: ContextFacts,
        items: Iterable[ContextItem],
        at: float | None,
        origin: str = "",
        *,
        inherited: bool = False,
    ) -> None:
        """Take what the span `origin` between two calls says and brings in, at `at` (UTC seconds)."""
        if facts.compacts and not self.compacts:
            self.compacts, self.kept_from = True, facts.kept_from or self.kept_from
            self.pending = _entries_since(self.pending, self.kept_from, otherwise=self.kept_from in self._origins())
        self.cleared |= facts.cleared
        self.signs |= facts.signs
        self.settings = dict(facts.defaults) | self.settings | dict(facts.settings)
        for item in items:
            if item.key is not None:
                if item.key in self.seen:
                    continue
                self.seen.add(item.key)
            size, exact = estimate(item), item.tokens is not None
            self.pending.append(_Entry(item.content, size, item.file, item.key, origin, exact, inherited))
        if facts.cache_seconds and self.latest is not None:
            latest = msgspec.structs.replace(self.latest, cache_seconds=facts.cache_seconds, cache_known=True)
            self.last, self.latest = latest if self.last is self.latest else self.last, latest
        at = facts.entered_at if facts.entered_at is not None else at
        if at is not None:
            self.pending_at = at

    def _origins(self) -> set[str]:
        return {entry.origin for entry in self.entries}

    def answer(self, items: Sequence[ContextItem], output: int | None, origin: str = "") -> None:
        """Take the answer of a call, which enters with the next one; `output` is its recorded size in tokens."""
        self.answered, self.output, self.sizes = items, output or None, []
        self.answer_more(items, origin, is_counted=bool(output))

    def answer_more(
        self, items: Sequence[ContextItem], origin: str, *, inherited: bool = False, is_counted: bool = False
    ) -> None:
        """Take a further part of the last answer. Its recorded size includes the part if `is_counted`, or if that
        comes closer to it.
        """
        entries = [_Entry(item.content, estimate(item), None, item.key, origin, inherited=inherited) for item in items]
        sizes = [*self.sizes, *(entry.estimate for entry in entries)]
        parts = [entry for entry in self.pending if entry.answers]
        self.pending += entries
        if not entries or self.output is None or len(parts) != len(self.sizes):
            return
        if is_counted or abs(self.output - sum(sizes)) < abs(self.output - sum(self.sizes)):
            self.sizes = sizes
            for entry, tokens in zip([*parts, *entries], apportion(self.output, sizes), strict=True):
                entry.estimate, entry.exact, entry.answers = float(tokens), True, True

    # ---- branches

    def snapshot(self) -> tuple[Any, ...]:
        """The context as it is now, for `restore`."""
        return self.entries[:], self.pending[:], self.last, dict(self.settled)

    def restore(self, before: tuple[Any, ...]) -> None:
        """Go back to an earlier context: its later calls are abandoned."""
        (entries, pending, self.last, self.settled), self.output = before, None
        self._replace(entries)
        self.pending, self.size = [copy(entry) for entry in pending], sum(entry.tokens for entry in entries)
        self.went_back = self.latest is not self.last

    def copy(self, accounts: dict[_Key, Account]) -> Chain:
        """The chain as it is now, with these accounts; what has entered is shared."""
        duplicate = copy(self)
        duplicate._accounts = accounts
        duplicate.entries, duplicate.pending = [*self.entries], [copy(entry) for entry in self.pending]
        duplicate.by = Counter(self.by)
        duplicate.holdings = {key: copy(holding) for key, holding in self.holdings.items()}
        duplicate.cleared, duplicate.signs, duplicate.seen = {*self.cleared}, {*self.signs}, {*self.seen}
        duplicate.settings, duplicate.settled = dict(self.settings), dict(self.settled)
        return duplicate

    # ---- one call

    def call(self, call: ModelCall) -> Call:
        """Take a model call: what is pending enters with it. An inherited one changes no account."""
        new, self.pending, self.output, counts = self.pending, [], None, not call.inherited
        for entry in new:
            entry.inherited |= call.inherited
        blocks = len(new)
        size, before = call.size, self.size
        change = self._fit(size, new)
        read, written = min(call.read or 0, size), call.written or 0
        written = min(written, size - read)
        missed = self._missed(call, change, blocks) if counts else None
        first = size - sum(entry.tokens for entry in new)
        rates = call.rates
        usd = usd_new = None
        if rates is not None and counts:
            costs = Costs(
                rates, size, read, written, min(call.written_1h or 0, written), missed.missed if missed else 0
            )
            usd, usd_new = costs.total, self._charge(costs, new, first)
            self.rate += rates.read
            if missed is not None:
                missed = msgspec.structs.replace(missed, usd=costs.lost(read, read + missed.missed))
        inherited = 0 if self.calls else sum(entry.tokens for entry in self.entries if entry.inherited)
        self.calls += counts
        self._finish(call, read, written)
        by = {content: tokens for content, tokens in self.by.items() if tokens}
        arrivals = tuple(
            Arrival(entry.content, entry.file, entry.tokens, entry.exact)
            for entry in new
            if entry.tokens and not entry.inherited
        )
        return Call(
            call.number, call.id, call.span, self.agent, call.started_at, call.model, size, call.read, call.written,
            call.written_1h, call.output, by, size - before, round(change.estimated), change.rest, change.removed,
            change.note, arrivals, inherited, usd, usd_new, missed, rates,
        )  # fmt: skip

    def _finish(self, call: ModelCall, read: int, written: int) -> None:
        seconds, known = call.facts.cache_seconds, True
        if seconds is None and call.written and call.written_1h is not None:
            seconds = _HOUR if call.written_1h else DEFAULT_CACHE_SECONDS
        if seconds is None:
            latest = self.latest
            seconds, known = (latest.cache_seconds, latest.cache_known) if latest else (DEFAULT_CACHE_SECONDS, False)
        self.size = call.size
        self.last = self.latest = _Last(
            call.size, read + written, read, call.model, call.started_at, call.ended_at, seconds, known
        )
        self.settings |= dict(call.facts.settings)
        self.settled = dict(self.settings)
        self.signs.clear()
        self.cleared.clear()
        self.compacts, self.kept_from, self.pending_at, self.went_back = False, None, None, False

    # ---- which texts the input holds

    def _fit(self, size: int, new: list[_Entry]) -> _Change:
        """Let `new` enter and others leave, so that all entries sum to `size`."""
        change = _Change()
        if self.last is None:
            self._begin(size, new)
        else:
            if self.went_back:
                change.note = Cause.EDITED
            if self.compacts or size < self.size / 2:
                change.note = Cause.COMPACTION if self.compacts else SHRUNK
                change.removed += self._compact(size, new)
            elif self.cleared:
                change.removed += self._remove(entry for entry in self.entries if entry.key in self.cleared)
                change.note = change.note or Cause.CLEARED
            if not change.note or change.note == Cause.EDITED:
                self._drop_thinking(size, new, change)
            change.estimated = sum(entry.estimate for entry in new)
            growth = size - self.held
            if growth < 0:
                change.note = change.note or REMOVED
                change.removed += self._shrink(-growth)
                growth = 0
            change.rest = _share(growth, new, change.estimated)
            if change.rest:
                content = AFTER_COMPACTION if change.note in (Cause.COMPACTION, SHRUNK) else NOT_RECORDED
                new.append(_Entry(content, change.rest, tokens=change.rest))
        self._enter(new)
        return change

    def _begin(self, size: int, new: list[_Entry]) -> None:
        """The first call: what is in no text is the start."""
        visible = sum(entry.estimate for entry in new)
        rest = max(0, size - round(visible))
        _share(size - rest, new, visible, fits=True)
        new.insert(0, _Entry(START, rest, inherited=any(entry.inherited for entry in new), tokens=rest))

    def _compact(self, size: int, new: list[_Entry]) -> int:
        """All but the start and what was kept leaves, the answer before it too."""
        kept = {id(entry) for entry in _entries_since(self.entries, self.kept_from)}
        if not self.compacts:  # without a record: the texts that entered since are those of the new conversation
            new[:] = [entry for entry in new if entry.content not in (REPLY, THINKING, TOOL_CALL)]
        removed = self._remove(entry for entry in self.entries if entry.content != START and id(entry) not in kept)
        if (more := self.held - size) > 0:
            removed += self._shrink(more)
        return removed

    def _drop_thinking(self, size: int, new: list[_Entry], change: _Change) -> None:
        """Thinking of earlier turns may leave the context with a new prompt, and that of some models never enters: it
        did so if that explains the growth.
        """
        growth, expected = size - self.held, sum(entry.estimate for entry in new)
        if growth >= expected * _BAND[0] - _SLACK:
            return
        is_prompted = any(entry.content == PROMPT for entry in new)
        old = [entry for entry in self.entries if entry.content == THINKING and is_prompted]
        fresh = [entry for entry in new if entry.content == THINKING]
        dropped = sum(entry.tokens for entry in old)
        rest = expected - sum(entry.estimate for entry in fresh)
        if (dropped or fresh) and abs(growth + dropped - rest) < abs(growth - expected):
            change.removed += self._remove(old)
            new[:] = [entry for entry in new if entry.content != THINKING]
            change.note = Cause.THINKING_DROPPED if is_prompted else ""

    def _enter(self, new: Iterable[_Entry]) -> None:
        for entry in new:
            if not entry.tokens:
                continue
            key = entry.content, entry.file
            account = self._accounts.get(key)
            if account is None:
                account = self._accounts[key] = Account(*key)
            if not entry.inherited:
                account.times += 1
                account.entered += entry.tokens
            account.is_exact &= entry.exact
            self.entries.append(entry)
            self._hold(key, entry.tokens)

    def _remove(self, leaving: Iterable[_Entry]) -> int:
        """Remove entries; return their tokens."""
        removed = {id(entry): entry for entry in leaving}
        if not removed:
            return 0
        self.entries = [entry for entry in self.entries if id(entry) not in removed]
        for entry in removed.values():
            self._hold((entry.content, entry.file), -entry.tokens)
        return sum(entry.tokens for entry in removed.values())

    def _shrink(self, tokens: int) -> int:
        """Remove tokens that left without a record: first those in no text, then thinking, then the oldest results."""
        remaining, changed = tokens, dict[int, _Entry]()
        for group in _LEAVING:
            for entry in self.entries:
                if remaining <= 0:
                    break
                if id(entry) in changed or not entry.content.startswith(group):
                    continue
                if entry.content == START and group != START:
                    continue
                cut = min(remaining, entry.tokens)
                remaining -= cut
                changed[id(entry)] = msgspec.structs.replace(entry, tokens=entry.tokens - cut, exact=False)
                self._hold((entry.content, entry.file), -cut)
        self.entries = [
            current_entry for entry in self.entries if (current_entry := changed.get(id(entry), entry)).tokens
        ]
        return tokens - remaining

    def _replace(self, entries: list[_Entry]) -> None:
        """Let exactly these entries be the context."""
        tokens: Counter[_Key] = Counter()
        for entry in entries:
            tokens[entry.content, entry.file] += entry.tokens
        self.entries = [*entries]
        for key in {*tokens, *self.holdings}:
            self._hold(key, tokens[key] - (self.holdings[key].tokens if key in self.holdings else 0))

    # ---- accounts

    def _hold(self, key: _Key, more: int) -> None:
        """Change the tokens of a content and file, after booking what they cost until the last call."""
        if not more:
            return
        holding = self.holdings.get(key)
        if holding is None:
            holding = self.holdings[key] = _Holding(self.calls, self.rate)
        self._book(key, holding)
        holding.tokens += more
        self.by[key[0]] += more
        self.held += more
        self._accounts[key].now += more

    def _book(self, key: _Key, holding: _Holding) -> None:
        account = self._accounts[key]
        account.carried += holding.tokens * (self.calls - holding.since)
        account.usd += holding.tokens * (self.rate - holding.rate)
        holding.since, holding.rate = self.calls, self.rate

    def book(self) -> None:
        """Bring the accounts up to date with the last call."""
        for key, holding in self.holdings.items():
            self._book(key, holding)

    def _charge(self, costs: Costs, new: Sequence[_Entry], first: int) -> float:
        """Charge the accounts for what was not read, beyond the price of a read; return the cost of `new` texts, which
        follow the first `first` tokens.
        """
        position, usd_new = first, 0.0
        for entry in new:
            if not entry.tokens:
                continue
            end = position + entry.tokens
            extra, loss = costs.surcharge(position, end), costs.lost(position, end)
            account = self._accounts[entry.content, entry.file]
            account.usd += extra
            account.usd_breaks += loss
            paid = 0.0 if entry.inherited else entry.tokens * costs.rates.read + extra - loss
            account.usd_new += paid
            usd_new += paid
            position = end
        for start, stop in costs.zones(first):
            for key, tokens in self._between(start, stop).items():
                share = tokens / (stop - start)
                account = self._accounts[key]
                account.usd += costs.surcharge(start, stop) * share
                account.usd_breaks += costs.lost(start, stop) * share
        return usd_new

    def _between(self, start: int, stop: int) -> Counter[_Key]:
        """Tokens by content and file at these positions of the prompt, at the cost of the smaller part."""
        size = self.held
        if 2 * (stop - start) > size:
            totals = Counter({key: holding.tokens for key, holding in self.holdings.items() if holding.tokens})
            totals.subtract(self._between(0, start))
            totals.subtract(self._between(stop, size))
            return totals
        tokens, end = Counter[_Key](), 0
        is_late = start + stop >= size
        start, stop = (size - stop, size - start) if is_late else (start, stop)
        for entry in reversed(self.entries) if is_late else self.entries:
            begin, end = end, end + entry.tokens
            if begin >= stop:
                break
            if end > start:
                tokens[entry.content, entry.file] += min(end, stop) - max(begin, start)
        return tokens

    # ---- breaks

    def _missed(self, call: ModelCall, change: _Change, blocks: int) -> Break | None:
        """The break of a call, if it is one."""
        last, latest = self.last, self.latest
        if last is None or latest is None or call.read is None or not latest.cached:
            return None
        cached = min(latest.cached, call.size)
        missed = cached - call.read
        if missed <= BREAK_TOKENS or min(last.cached, call.size) - call.read <= BREAK_TOKENS:
            return None
        idle = self._idle(call, latest)
        cause, basis = self._cause(call, change, latest, idle, blocks)
        start = self.by[START]
        region = MIDDLE
        if not call.read:
            region = EVERYTHING
        elif call.read == latest.read:
            region = LAST_WRITE
        elif call.read < start:
            region = AFTER_START
        at = next(iter(self._between(call.read, call.read + 1)), None)
        return Break(
            call.number, cause, basis, missed, cached, call.read, region, at[0] if at else None, call.facts.reported,
            idle, latest.cache_seconds, latest.cache_known,
        )  # fmt: skip

    def _idle(self, call: ModelCall, latest: _Last) -> float | None:
        """Seconds from the answer before to the request: a request can't precede its last input."""
        if latest.started_at is None or call.started_at is None:
            return None
        times = [at for at in (self.pending_at, latest.ended_at) if at is not None]
        idle = min(max(times, default=call.started_at), call.started_at) - latest.started_at
        return idle if idle >= 0 else None

    def _cause(
        self, call: ModelCall, change: _Change, latest: _Last, idle: float | None, blocks: int
    ) -> tuple[str, str]:
        """The cause of a break, the best known first, and its basis; `blocks` entered since the previous call."""
        facts = call.facts
        if facts.reported:
            return facts.cause or facts.reported, Basis.RECORDED
        if change.note == SHRUNK:
            return Cause.COMPACTION, Basis.INFERRED
        signs = self.signs | facts.signs | self._changed_settings(facts) | {change.note, Cause.UNKNOWN}
        signs |= {Cause.MODEL} if latest.model != call.model else set()
        signs |= {Cause.EDITED} if self.went_back else set()
        signs |= {Cause.IDLE} if idle is not None and idle > latest.cache_seconds else set()
        signs |= {Cause.LONG_STEP} if blocks > _LOOKBACK and call.written is not None else set()
        cause = next(cause for cause in CAUSES if cause in signs)
        if cause == Cause.IDLE and not latest.cache_known:
            return cause, Basis.INFERRED
        return cause, _BASES.get(cause, Basis.COINCIDES)

    def _changed_settings(self, facts: ContextFacts) -> set[str]:
        now = self.settings | dict(facts.settings)
        return {cause for cause, value in self.settled.items() if now.get(cause) != value}


REMOVED: Final = "removed, not recorded"
SHRUNK: Final = "shrunk"
"""The input is less than half of that before, without a record of a compaction."""
_LEAVING: Final = (NOT_RECORDED, AFTER_COMPACTION, THINKING, RESULT, REPORT, ATTACHMENT, "", START)
"""Contents in the order in which they leave without a record."""


class _Change(msgspec.Struct):
    """How the context of a call differs from that before, besides its new texts."""

    estimated: float = 0.0
    rest: int = 0
    removed: int = 0
    note: str = ""


def _entries_since(entries: list[_Entry], origin: str | None, *, otherwise: bool = False) -> list[_Entry]:
    """The entries since the first one of the span `origin`; if it has none, all entries if `otherwise`, else none."""
    first = next((i for i, entry in enumerate(entries) if entry.origin == origin), None) if origin else None
    return entries[first:] if first is not None else entries if otherwise else []


def _share(growth: int, new: Sequence[_Entry], estimated: float, *, fits: bool = False) -> int:
    """Give the texts their part of the growth; return the rest, that no text explains. `fits`: there is none."""
    if not new:
        return growth
    most = estimated * _BAND[1] + _SLACK
    share = growth if fits or growth <= most else round(estimated)
    exact = [entry for entry in new if entry.exact]
    others = [entry for entry in new if not entry.exact]
    known = round(sum(entry.estimate for entry in exact))
    if known > share or (not others and known != share):  # a recorded answer that was not carried in full
        for entry in exact:
            entry.exact = False
        exact, others, known = [], [*new], 0
    for group, tokens in ((exact, known), (others, share - known)):
        for entry, count in zip(group, apportion(tokens, [entry.estimate for entry in group]), strict=True):
            entry.tokens = count
    return growth - share


class ModelCall(msgspec.Struct, frozen=True):
    """A recorded model call, as the ledger takes it. Times are UTC seconds."""

    number: int
    id: str
    span: str
    size: int
    """Input tokens, cached ones included."""
    model: str | None = None
    read: int | None = None
    written: int | None = None
    written_1h: int | None = None
    output: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    rates: Rates | None = None
    facts: ContextFacts = NO_FACTS
    inherited: bool = False
    """Another run counts it."""


# ---- all conversations


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Sums over the calls of a run. Tokens; costs of input in US dollars, None without a price for any call."""

    calls: int = 0
    input: int = 0
    read: int | None = None
    written: int | None = None
    missed: int = 0
    breaks: int = 0
    most: int = 0
    """The largest input."""
    most_call: int = 0
    now: int = 0
    """The input of the last call of the run's own conversation."""
    usd: float | None = None
    usd_new: float | None = None
    usd_breaks: float | None = None
    unpriced: int = 0
    """Calls without a price."""

    @property
    def usd_carry(self) -> float | None:
        """What carrying texts through later calls cost."""
        if self.usd is None:
            return None
        return max(0.0, self.usd - (self.usd_new or 0.0) - (self.usd_breaks or 0.0))


class Ledger:
    """The context of all model calls of a run, fed in the order of the run."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._accounts: dict[_Key, Account] = {}
        self._chains: dict[tuple[str | None, int], Chain] = {}
        self._totals = Totals()

    def copy(self) -> Ledger:
        """The ledger as it is now."""
        duplicate = Ledger()
        duplicate.calls, duplicate._totals = [*self.calls], self._totals
        duplicate._accounts = {key: copy(account) for key, account in self._accounts.items()}
        duplicate._chains = {key: chain.copy(duplicate._accounts) for key, chain in self._chains.items()}
        return duplicate

    def chain(self, agent: str | None, conversation: int = 0) -> Chain:
        """The chain of an agent; `conversation` tells apart several of one agent."""
        chain = self._chains.get((agent, conversation))
        if chain is None:
            chain = self._chains[agent, conversation] = Chain(agent, self._accounts)
        return chain

    def add(self, chain: Chain, call: ModelCall) -> Call:
        """Take a model call of a chain; an inherited one is in no row and no sum."""
        row = chain.call(call)
        if call.inherited:
            return row
        self.calls.append(row)
        before, missed = self._totals, row.missed
        has_more = row.input > before.most
        self._totals = Totals(
            before.calls + 1,
            before.input + row.input,
            _sum(before.read, row.read),
            _sum(before.written, row.written),
            before.missed + (missed.missed if missed else 0),
            before.breaks + (missed is not None),
            row.input if has_more else before.most,
            row.number if has_more else before.most_call,
            row.input if row.agent == self.calls[0].agent else before.now,
            _sum(before.usd, row.usd),
            _sum(before.usd_new, row.usd_new),
            _sum(before.usd_breaks, missed.usd if missed else None if row.usd is None else 0.0),
            before.unpriced + (row.usd is None),
        )
        return row

    @property
    def totals(self) -> Totals:
        """The sums over all calls so far."""
        return self._totals

    @property
    def breaks(self) -> list[Break]:
        """All breaks, in order."""
        return [call.missed for call in self.calls if call.missed is not None]

    def accounts(self) -> list[Account]:
        """The totals of every content and file, most tokens carried first."""
        for chain in self._chains.values():
            chain.book()
        return _largest_first(self._accounts.values())

    def contents(self) -> list[Account]:
        """The totals of every content, most tokens carried first."""
        return _grouped((account.content, None, account) for account in self.accounts())

    def files(self) -> list[Account]:
        """The totals of every file, most tokens carried first; `Account.content` is empty."""
        return _grouped(("", account.file, account) for account in self.accounts() if account.file is not None)


def _grouped(rows: Iterable[tuple[str, str | None, Account]]) -> list[Account]:
    groups: dict[_Key, Account] = {}
    for content, file, account in rows:
        groups.setdefault((content, file), Account(content, file)).add(account)
    return _largest_first(groups.values())


def _largest_first(accounts: Iterable[Account]) -> list[Account]:
    return sorted(accounts, key=lambda account: (-account.carried, account.content, account.file or ""))


def total(accounts: Iterable[Account]) -> Account:
    """The sum of accounts, as one without a name."""
    combined = Account("")
    for account in accounts:
        combined.add(account)
    return combined


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b

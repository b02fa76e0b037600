"""Derives the liveness of a run from its trace and from how long it has been silent.

Silence is the time since the last change of the run.

- *ended*: the trace has an end record or a final status. A paused run counts as ended: it waits for a human, and its
  silence means nothing. Silence alone never ends a run.
- *running*: silent for at most 10 s, or twice the usual gap (p95) between its steps.
- *quiet*: silent for longer than that.
- *stalled?*: silent for longer than a minute, than five usual gaps and than twice the longest gap so far.
- *unknown*: the trace has no end record, we never saw the run change, and it has been silent for an hour (and long
  enough to count as stalled). A killed program leaves its run `active` for ever. A file more than a day newer than the
  last event in it is a copy, and its modification time is ignored.

While a call is open that this run made at least five times before, the durations of those calls replace the gaps of
the run: a test suite that takes ten minutes each time isn't stalled after five. With fewer than five gaps, a run counts
as running for 30 seconds and as stalled after five minutes, since model calls can take minutes. While the silence
lasts, a state only moves down this list: running, quiet, stalled?, unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import islice, pairwise
from math import ceil, isfinite
from typing import Final, Literal, NamedTuple

import msgspec

from tracetui.masking import one_line
from tracetui.model import Operation, Run, RunSummary, Span, Status, StatusSource
from tracetui.model.build import CONTAINERS
from tracetui.text import Clean, age, duration

RUNNING_MS: Final = 10_000.0
"""Silence that is never worth a word: an ordinary call of a model takes as long."""
STALLED_MS: Final = 60_000.0
"""Silence that is never called a stall, however fast the steps came before."""
RUNNING_BLIND_MS: Final = 30_000.0
STALLED_BLIND_MS: Final = 300_000.0
"""The same two for a run of whose pace nothing is known yet."""
UNKNOWN_MS: Final = 3_600_000.0
"""Silence after which nobody can say whether a run that we never saw move is still there."""
COPY_SECONDS: Final = 86_400.0
"""A file that nobody saw change, and that is so much newer than what it tells, was copied here."""
ENOUGH: Final = 5
"""Gaps (or earlier calls) that it takes to say what is usual; of fewer, one odd one would decide."""
_RECENT: Final = 2_000
"""Spans, or arrivals, that are looked at: the latest. What a run of 100,000 steps did hours ago tells less."""
_LATEST: Final = 1e12
"""Times and lengths beyond are nonsense (or infinite)."""
_NAME: Final = 60


class State(StrEnum):
    """How a run stands. The value is what is shown."""

    RUNNING = "running"
    QUIET = "quiet"
    STALLED = "stalled?"
    ENDED = "ended"
    UNKNOWN = "unknown"


class OpenCall(msgspec.Struct, frozen=True, gc=False):
    """What a run waits for: the call that may take longest of those that are open."""

    span: str
    name: str
    """As the trace has it: not cleaned."""
    operation: Operation
    ms: float | None
    """How long it has been open, as far as anybody knows; None where nobody does."""
    at_least: bool
    """The trace doesn't say when it began: it has been open for as long as the run was silent, or longer."""
    others: int
    """How many more calls are open."""


UsualFrom = Literal["trace clock", "measured live", "earlier calls"]


class Usual(msgspec.Struct, frozen=True, gc=False):
    """How long it usually takes until something happens, in milliseconds."""

    p95_ms: float | None = None
    """None where too few gaps are known."""
    longest_ms: float | None = None
    source: UsualFrom | None = None
    """Where it comes from; ``earlier calls`` are those of the call that is open."""

    @property
    def running_ms(self) -> float:
        """The longest silence of a run that counts as running."""
        return RUNNING_BLIND_MS if self.p95_ms is None else max(RUNNING_MS, 2 * self.p95_ms)

    @property
    def stalled_ms(self) -> float:
        """The longest silence of a run that doesn't count as stalled."""
        twice = 2 * (self.longest_ms or 0.0)
        return max(STALLED_BLIND_MS, twice) if self.p95_ms is None else max(STALLED_MS, 5 * self.p95_ms, twice)


class Liveness(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a run stands at one moment."""

    state: State
    status: Status
    """What the trace says: of a run that ended, how."""
    silent_ms: float | None
    """Since anything of the run was last seen to change; None where nobody knows."""
    open: OpenCall | None
    """None where nothing is open, and for a run that ended."""
    usual: Usual
    reason: Clean
    """One plain sentence that says why it is in this state."""


class _Facts(NamedTuple):
    """What the state and its reason are made of."""

    silent_ms: float | None
    usual: Usual
    seen: bool
    """Something of the run was seen to change."""
    open: OpenCall | None = None


def liveness(run: Run, *, now: float, arrivals: Sequence[float], changed_at: float | None) -> Liveness:
    """How a run stands.

    `now`, `arrivals` and `changed_at` are seconds since the epoch. `arrivals` are the times at which something of this
    run was seen to come since it is watched, in order, equal ones for what came together. `changed_at` is when the run
    (else its file) last changed, whether anybody watched or not. Costs a look at the status of every span.
    """
    summary = run.summary
    moments = _moments(run)
    zoned = summary.time_zone is not None
    last = moments[-1].at if moments and zoned else None
    silent = _silence(now, _last_change(summary, arrivals, changed_at, last))
    gaps = _usual(_gaps_between(moments), "trace clock")
    if gaps.p95_ms is None:
        watched = _usual(_differences([*islice(reversed(arrivals), _RECENT)][::-1]), "measured live")
        gaps = watched if watched.p95_ms is not None else gaps
    open_call: OpenCall | None = None
    usual = gaps
    if not _ended(summary):
        open_call, usual = _open_call(run, gaps, now if zoned else None, silent)
    facts = _Facts(silent, usual, bool(arrivals), open_call)
    state, reason = _judge(summary, facts)
    return Liveness(
        state=state, status=summary.status, silent_ms=silent, open=open_call, usual=usual, reason=Clean(reason)
    )


def summary_state(
    summary: RunSummary, *, now: float, changed_at: float | None, seen: bool = False
) -> tuple[State, Clean]:
    """The state of a run of which only the summary is known, and the reason: cheap, for a row of the list.

    `changed_at` is when something of this run last changed: where a file holds many runs, not what the others did.
    `seen`: it was seen to change since it is watched.
    """
    if not seen:
        changed_at = _unless_copied(changed_at, _told_last(summary))
    state, reason = _judge(summary, _Facts(_silence(now, changed_at), Usual(), seen))
    return state, Clean(reason)


# ---- the state, and why


def _ended(summary: RunSummary) -> bool:
    """True where the trace tells an end, or that it waits for a human."""
    if summary.status is Status.UNKNOWN:
        return summary.status_source is None  # not derived from a missing end, and no word that we don't know
    return summary.status is not Status.RUNNING


def _judge(summary: RunSummary, facts: _Facts) -> tuple[State, str]:
    if _ended(summary):
        return State.ENDED, _why_ended(summary)
    silent, usual = facts.silent_ms, facts.usual
    if silent is None:
        return State.UNKNOWN, f"{_says(summary)}; last change unknown"
    if silent <= usual.running_ms:
        return State.RUNNING, f"last change {_ago(silent)}; {_pace(facts)}"
    if summary.status is Status.UNKNOWN and summary.status_source is not StatusSource.DERIVED:
        return State.UNKNOWN, f"{_says(summary)}, neither running nor ended"
    if not facts.seen and silent > max(UNKNOWN_MS, usual.stalled_ms):
        return State.UNKNOWN, f"{_says(summary)}; no writes for {age(silent / 1000)}"
    if silent <= usual.stalled_ms:
        return State.QUIET, f"no change for {seconds(silent)}; {_pace(facts)}"
    return State.STALLED, f"no change for {seconds(silent)}; {_pace(facts)}; it may still be working"


def _why_ended(summary: RunSummary) -> str:
    if summary.status is Status.PAUSED:
        return "paused, waiting for a human"
    if summary.status is Status.UNKNOWN:
        return "complete, but no outcome recorded"
    word = one_line(summary.status_word or summary.status.value, _NAME)
    if summary.status_source is StatusSource.DERIVED:
        return f"{word}, inferred from the last event"
    source = "" if summary.status_source in (None, StatusSource.EXPLICIT) else f" ({summary.status_source.value})"
    return f"recorded as {word}{source}"


def _says(summary: RunSummary) -> str:
    word = one_line(summary.status_word or "", _NAME)
    return f"recorded as {word}" if word else "no end record"


def _pace(facts: _Facts) -> str:
    """What is usual, in words."""
    usual, call = facts.usual, facts.open
    if usual.p95_ms is None:
        return "usual step gap unknown"
    p95, most = rounded(usual.p95_ms), rounded(usual.longest_ms)
    if usual.source == "earlier calls" and call is not None:
        return f"{one_line(call.name, _NAME)} is open, earlier calls p95 {p95}, max {most}"
    return f"step gap p95 {p95}, max {most} ({usual.source})"


# ---- silence


def _last_change(
    summary: RunSummary, arrivals: Sequence[float], changed_at: float | None, last: float | None
) -> float | None:
    """When the run last changed. Of a file of many runs that is watched in vain, when the trace was last at work on it:
    the file may change by others.
    """
    if arrivals:
        return arrivals[-1] if changed_at is None else max(changed_at, arrivals[-1])
    if summary.ref.key is not None and last is not None:
        return last if changed_at is None else min(changed_at, last)
    return _unless_copied(changed_at, last)


def _unless_copied(changed_at: float | None, last: float | None) -> float | None:
    """When a file changed; when the last thing in it happened, if the file is a copy of one that is older."""
    if changed_at is None or last is None or changed_at - last < COPY_SECONDS:
        return changed_at
    return last


def _told_last(summary: RunSummary) -> float | None:
    """When the trace itself was last at work on a run, as far as its summary says and its times have a zone."""
    start, length = _time(summary.started_at), summary.duration_ms
    if start is None or summary.time_zone is None:
        return None
    return start + length / 1000 if length is not None and 0 <= length < _LATEST else start


def _silence(now: float, since: float | None) -> float | None:
    """Milliseconds; 0 where a clock is ahead, None where no time is one."""
    if since is None:
        return None
    silent = (now - since) * 1000
    return max(0.0, silent) if isfinite(silent) else None


# ---- what is usual


class _Moment(NamedTuple):
    """When a step was done, and whether a human did it."""

    at: float
    human: bool


def _moments(run: Run) -> list[_Moment]:
    """When the latest steps were done, in order; where the trace doesn't say when, when they began."""
    found = []
    for i in range(max(0, len(run.spans) - _RECENT), len(run.spans)):
        span = run.spans[i]
        start = _time(span.started_at)
        if start is None or (span.operation in CONTAINERS and run.sizes[i] > 1):
            continue
        length = span.duration_ms
        end = start + length / 1000 if length is not None and 0 <= length < _LATEST else start
        found.append(_Moment(end, span.operation is Operation.MESSAGE))
    found.sort()
    return found


def _gaps_between(moments: Sequence[_Moment]) -> list[float]:
    """Milliseconds between steps. How long a human took to write is no pace of the run's."""
    return [(b.at - a.at) * 1000 for a, b in pairwise(moments) if b.at > a.at and not b.human]


def _differences(times: Iterable[float]) -> list[float]:
    return [(b - a) * 1000 for a, b in pairwise(times) if b > a]


def _usual(lengths: Iterable[float], source: UsualFrom) -> Usual:
    known = sorted(ms for ms in lengths if 0 < ms < _LATEST)
    if not known:
        return Usual()
    p95 = known[ceil(0.95 * len(known)) - 1] if len(known) >= ENOUGH else None
    return Usual(p95, known[-1], source)


def _open_call(run: Run, gaps: Usual, now: float | None, silent: float | None) -> tuple[OpenCall | None, Usual]:
    """The open call that may take longest, because it explains the silence best, and what is usual meanwhile.

    `now` is None where trace clock are naive, and tell nothing about now.
    """
    spans = _waited_for(run)
    if not spans:
        return None, gaps
    lengths: dict[str, list[float]] = {span.name: [] for span in spans}
    for one in run.spans[-_RECENT:]:
        if one.name in lengths and one.duration_ms is not None:
            lengths[one.name].append(one.duration_ms)
    own = {name: _usual(known, "earlier calls") for name, known in lengths.items()}
    usual = {name: known if known.p95_ms is not None else gaps for name, known in own.items()}
    span = max(spans, key=lambda one: (usual[one.name].stalled_ms, -(_time(one.started_at) or _LATEST)))
    start = _time(span.started_at)
    told = _silence(now, start) if now is not None else None
    ms = silent if told is None else max(told, silent or 0.0)
    call = OpenCall(span.id, span.name, span.operation, ms, at_least=told is None, others=len(spans) - 1)
    return call, usual[span.name]


def _waited_for(run: Run) -> list[Span]:
    """Open calls in which no other is open; what only contains others that are done is no call."""
    found = run.unended
    return [
        run.spans[i]
        for i, following in pairwise([*found, len(run.spans)])
        if following >= i + run.sizes[i] and (run.sizes[i] == 1 or run.spans[i].operation not in CONTAINERS)
    ]


def _time(at: float | None) -> float | None:
    return at if at is not None and 0 < at < _LATEST else None


# ---- numbers


def seconds(ms: float | None) -> Clean:
    """How long something has lasted, in whole seconds: ``41s 3m41s 12m30``; such a number ticks once a second."""
    if ms is None or not 0 <= ms < 60_000:
        return duration(ms if ms is None else ms // 1000 * 1000)
    return Clean(f"{ms // 1000:.0f}s")


def rounded(ms: float | None) -> Clean:
    """A usual length: ``9s`` where `duration` writes ``9.0s``, and nothing finer than a millisecond."""
    return Clean(duration(ms if ms is None else max(1.0, ms)).replace(".0s", "s"))


def _ago(ms: float) -> str:
    return "just now" if ms < 1000 else f"{seconds(ms)} ago"

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

A session waits for people once its agent has answered: it counts as ended as soon as it isn't running.
`current_state` infers whether it waits, is done or was interrupted.

While a call is open that this run made at least five times before, the durations of those calls replace the gaps of
the run: a test suite that takes ten minutes each time isn't stalled after five. Any other open call explains the
silence: its run is running until it counts as stalled. With fewer than five gaps, a run counts
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
from tracetui.model import Operation, Run, RunState, RunSummary, Span, Status, StatusSource
from tracetui.model.build import CONTAINERS
from tracetui.model.tally import COPY_SECONDS as SESSION_COPY_SECONDS
from tracetui.store.facts import changed_at, recorded_state
from tracetui.text import Clean, age, duration

RUNNING_MS: Final = 10_000.0
"""Silence up to this never counts as quiet: model calls take as long."""
STALLED_MS: Final = 60_000.0
"""Silence up to this never counts as a stall, however fast earlier steps were."""
RUNNING_BLIND_MS: Final = 30_000.0
STALLED_BLIND_MS: Final = 300_000.0
"""The same two limits for a run with an unknown pace."""
UNKNOWN_MS: Final = 3_600_000.0
"""Silence after which a run that we never saw change is unknown."""
COPY_SECONDS: Final = 86_400.0
"""A file this much newer than its last event is a copy; that of a session already after `SESSION_COPY_SECONDS`."""
ENOUGH: Final = 5
"""Gaps (or earlier calls) needed for a percentile."""
WAITING_SECONDS: Final = 8 * 3600.0
"""A session that was answered waits for so long: a working day."""
QUESTIONS: Final = frozenset({"AskUserQuestion", "ExitPlanMode", "ask_user", "question", "request_user_input"})
"""Tools of coding agents that ask the user and wait."""
_ANSWERS: Final = frozenset({"assistant", "agent"})
"""Names of messages of the agent."""
_RECENT: Final = 400
"""Number of latest spans or arrivals to consider."""
_LATEST: Final = 1e12
"""Later times and longer durations are invalid."""
_NAME: Final = 60


class State(StrEnum):
    """The liveness of a run, from its end record and its silence alone. The value is the label."""

    RUNNING = "running"
    QUIET = "quiet"
    STALLED = "stalled?"
    ENDED = "ended"
    UNKNOWN = "unknown"


def recorded_liveness(run: RunSummary) -> State:
    """The liveness of a run as its trace records it, without a clock."""
    return State.RUNNING if recorded_state(run) is RunState.RUNNING else State.ENDED


GOING: Final = (State.RUNNING, State.QUIET, State.STALLED)
"""States of a run that may go on."""
_STATES: Final = {
    State.RUNNING: RunState.RUNNING,
    State.QUIET: RunState.QUIET,
    State.STALLED: RunState.STALLED,
    State.UNKNOWN: RunState.UNKNOWN,
}
"""The states that follow from silence alone."""


class CurrentState(msgspec.Struct, frozen=True, gc=False):
    """The state of a run at one moment, and its open call."""

    state: RunState | None
    """None for a session that the deep pass hasn't read."""
    by_last_event: bool = False
    """Whether it is inferred from the last event: the state of a session or of an open call."""
    call: str | None = None
    """Name of the open call, not cleaned."""
    since: float | None = None
    """Start of the call in UTC seconds; None if unknown."""
    ms: float | None = None
    """Time since the call began; None if unknown, or if the trace's times have no zone."""


class OpenCall(msgspec.Struct, frozen=True, gc=False):
    """The open call that a run is waiting for: of several, the one that may take longest."""

    span: str
    name: str
    """From the trace, not cleaned."""
    operation: Operation
    ms: float | None
    """Time since the call began; None if unknown."""
    at_least: bool
    """The trace has no start time: `ms` is a lower bound, the silence of the run."""
    others: int
    """Number of other open calls."""


UsualFrom = Literal["trace clock", "measured live", "earlier calls"]


class UsualDuration(msgspec.Struct, frozen=True, gc=False):
    """Usual duration between events, in milliseconds."""

    p95_ms: float | None = None
    """None with too few samples."""
    longest_ms: float | None = None
    source: UsualFrom | None = None
    """The source of the samples; ``earlier calls`` are those of the open call."""

    @property
    def running_ms(self) -> float:
        """Maximum silence of a running run."""
        return RUNNING_BLIND_MS if self.p95_ms is None else max(RUNNING_MS, 2 * self.p95_ms)

    @property
    def stalled_ms(self) -> float:
        """Maximum silence before a run counts as stalled."""
        twice = 2 * (self.longest_ms or 0.0)
        return max(STALLED_BLIND_MS, twice) if self.p95_ms is None else max(STALLED_MS, 5 * self.p95_ms, twice)


UNKNOWN_PACE: Final = UsualDuration()
"""The pace of a run that wasn't read."""


class Liveness(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The liveness of a run at one moment."""

    state: State
    status: Status
    """The recorded status."""
    silent_ms: float | None
    """Milliseconds since the last change; None if unknown."""
    open: OpenCall | None
    """None if no call is open, or the run has ended."""
    usual: UsualDuration
    reason: Clean
    """The reason for the state, one phrase."""


class _Facts(NamedTuple):
    """Input for the state and its reason."""

    silent_ms: float | None
    usual: UsualDuration
    seen: bool
    """We saw the run change."""
    open: OpenCall | None = None


def liveness(run: Run, *, now: float, arrivals: Sequence[float], changed_at: float | None) -> Liveness:
    """Derive the liveness of a run.

    All times are seconds since the epoch. `arrivals` are the times at which we saw spans arrive, ascending, one time
    per batch. `changed_at` is the last change of the run (else of its file). Reads the status of every span.
    """
    summary = run.summary
    ends = _step_ends(run)
    zoned = summary.time_zone is not None
    last = ends[-1].at if ends and zoned else None
    silent = _silence(now, _last_change(summary, arrivals, changed_at, last))
    gaps = _usual(_gaps_between(ends), "trace clock")
    if gaps.p95_ms is None:
        watched = _usual(_differences([*islice(reversed(arrivals), _RECENT)][::-1]), "measured live")
        gaps = watched if watched.p95_ms is not None else gaps
    open_call: OpenCall | None = None
    usual = gaps
    if not has_ended(summary):
        open_call, usual = _open_call(run, gaps, now if zoned else None, silent)
    facts = _Facts(silent, usual, bool(arrivals), open_call)
    state, reason = _judge(summary, facts)
    return Liveness(
        state=state, status=summary.status, silent_ms=silent, open=open_call, usual=usual, reason=Clean(reason)
    )


def summary_state(
    summary: RunSummary,
    *,
    now: float,
    changed_at: float | None,
    seen: bool = False,
    usual: UsualDuration = UNKNOWN_PACE,
) -> tuple[State, Clean]:
    """The state of a run from its summary, and the reason. Cheap enough for every row of the list.

    `changed_at` is the last change of this run, not of other runs in its file. `seen`: we saw it change. `usual` is its
    pace when it was last read.
    """
    if not seen:
        changed_at = _unless_copied(summary, changed_at, _last_activity(summary))
    state, reason = _judge(summary, _Facts(_silence(now, changed_at), usual, seen))
    return state, Clean(reason)


def current_state(summary: RunSummary, state: State, *, now: float) -> CurrentState:
    """Conclude the state of a run from its liveness, its status and its last event.

    A format states only what the last event is; this is the one place that concludes from it.
    """
    last = summary.last
    if last is None or summary.status is Status.ERROR:
        return CurrentState(_plain_state(summary, state))
    if last.closed:
        return CurrentState(RunState.DONE, True)
    asks = last.open in QUESTIONS
    if state in GOING:
        ms = None if summary.time_zone is None else _silence(now, last.open_since)
        return CurrentState(
            RunState.WAITING if asks else _STATES[state], True, last.open, last.open_since if last.open else None, ms
        )
    if not summary.is_session:
        return CurrentState(_plain_state(summary, state))
    if summary.status is Status.CANCELLED or not (asks or _answered(summary)):
        return CurrentState(RunState.INTERRUPTED, True)
    since = _last_activity(summary) or summary.modified_at
    if now - since < WAITING_SECONDS:
        return CurrentState(RunState.WAITING, True, last.open, last.open_since if last.open else None)
    return CurrentState(RunState.INTERRUPTED if asks else RunState.DONE, True)


def state_of_summary(summary: RunSummary, now: float) -> CurrentState:
    """The state of a run that nobody watches, from its summary: for commands, which have only that."""
    return current_state(summary, summary_state(summary, now=now, changed_at=changed_at(summary))[0], now=now)


def _plain_state(summary: RunSummary, state: State) -> RunState | None:
    """The state of a run whose last event says nothing."""
    if state is not State.ENDED:
        return _STATES[state]
    if summary.status is Status.PAUSED:
        return RunState.PAUSED
    unread = summary.last is None and summary.is_session and summary.status is not Status.ERROR
    return None if unread else RunState.ENDED


def _waits(summary: RunSummary) -> bool:
    """True if a session waits for people, whatever time passed."""
    asks = summary.last is not None and summary.last.open in QUESTIONS
    return summary.is_session and (asks or _answered(summary))


def _answered(summary: RunSummary) -> bool:
    """True if the last event of a session is the answer of its agent."""
    last = summary.last
    if last is None or last.open is not None or last.status in (Status.CANCELLED, Status.RUNNING):
        return False
    return last.operation is Operation.CHAT or (last.operation is Operation.MESSAGE and last.name in _ANSWERS)


# ---- state and reason


def has_ended(summary: RunSummary) -> bool:
    """True if the trace records an end, or the run waits for a human."""
    if summary.status is Status.UNKNOWN:
        return summary.status_source is None  # neither inferred nor an unrecognized word
    return summary.status is not Status.RUNNING


def _judge(summary: RunSummary, facts: _Facts) -> tuple[State, str]:
    if has_ended(summary):
        return State.ENDED, _why_ended(summary)
    if summary.last is not None and summary.last.closed:
        return State.ENDED, "the session was closed"
    silent, usual = facts.silent_ms, facts.usual
    if silent is None:
        return State.UNKNOWN, f"{_recorded_word(summary)}; last change unknown"
    unknown_call = usual.source != "earlier calls" and _has_open_call(summary, facts)
    if silent <= (usual.stalled_ms if unknown_call else usual.running_ms):
        return State.RUNNING, f"last change {_ago(silent)}; {_pace(facts)}"
    if _waits(summary):
        return State.ENDED, "waiting for you, inferred from the last message"
    if summary.status is Status.UNKNOWN and summary.status_source is not StatusSource.DERIVED:
        return State.UNKNOWN, f"{_recorded_word(summary)}, neither running nor ended"
    if not facts.seen and silent > max(UNKNOWN_MS, usual.stalled_ms):
        return State.UNKNOWN, f"{_recorded_word(summary)}; no writes for {age(silent / 1000)}"
    if silent <= usual.stalled_ms:
        return State.QUIET, f"no change for {seconds(silent)}; {_pace(facts)}"
    return State.STALLED, f"no change for {seconds(silent)}; {_pace(facts)}; it may still be working"


def _has_open_call(summary: RunSummary, facts: _Facts) -> bool:
    """True if a call is open, by the spans or by the summary."""
    return facts.open is not None or (summary.last is not None and summary.last.open is not None)


def _why_ended(summary: RunSummary) -> str:
    if summary.status is Status.PAUSED:
        return "paused, waiting for a human"
    if summary.status is Status.UNKNOWN:
        return "complete, but no outcome recorded"
    word = one_line(summary.status_word or summary.status.value, _NAME)
    if summary.status_source is StatusSource.DERIVED:
        return f"{word}, inferred from the last event"
    source = "" if summary.status_source in (None, StatusSource.EXPLICIT) else f" ({summary.status_source.label})"
    return f"recorded as {word}{source}"


def _recorded_word(summary: RunSummary) -> str:
    word = one_line(summary.status_word or "", _NAME)
    return f"recorded as {word}" if word else "no end record"


def _pace(facts: _Facts) -> str:
    """The usual pace in words."""
    usual, call = facts.usual, facts.open
    if usual.p95_ms is None:
        return "typical gap unknown"
    p95, most = rounded(usual.p95_ms), rounded(usual.longest_ms)
    if usual.source == "earlier calls" and call is not None:
        return f"{one_line(call.name, _NAME)} is open, earlier calls {p95}, longest {most}"
    return f"typical gap {p95}, longest {most} ({usual.source})"


# ---- silence


def _last_change(
    summary: RunSummary, arrivals: Sequence[float], changed_at: float | None, last: float | None
) -> float | None:
    """The last change of the run; in a shared file by the trace's times, since other runs change the file too."""
    if arrivals:
        return arrivals[-1] if changed_at is None else max(changed_at, arrivals[-1])
    if summary.ref.key is not None and last is not None:
        return last if changed_at is None else min(changed_at, last)
    return _unless_copied(summary, changed_at, last)


def _unless_copied(summary: RunSummary, changed_at: float | None, last: float | None) -> float | None:
    """The modification time of a file; for a copy, the time of its last event.

    Other runs than sessions may not record when their last event was: only one of an old run shows a copy.
    """
    least = SESSION_COPY_SECONDS if summary.is_session else COPY_SECONDS
    if changed_at is None or last is None or changed_at - last < least:
        return changed_at
    return last


def _last_activity(summary: RunSummary) -> float | None:
    """The last recorded activity of a run, if its times have a zone."""
    start, length = _time(summary.started_at), summary.duration_ms
    if start is None or summary.time_zone is None:
        return None
    return start + length / 1000 if length is not None and 0 <= length < _LATEST else start


def _silence(now: float, since: float | None) -> float | None:
    """Milliseconds since `since`; 0 if a clock is ahead, None for an invalid time."""
    if since is None:
        return None
    silent = (now - since) * 1000
    return max(0.0, silent) if isfinite(silent) else None


# ---- pace


class _StepEnd(NamedTuple):
    """The end of a step, and whether a human made it."""

    at: float
    human: bool


def _step_ends(run: Run) -> list[_StepEnd]:
    """The end times of the latest steps, ascending; the start time if the end is unknown."""
    ends = []
    for i in range(max(0, len(run.spans) - _RECENT), len(run.spans)):
        span = run.spans[i]
        start = _time(span.started_at)
        if start is None or (span.operation in CONTAINERS and run.sizes[i] > 1):
            continue
        length = span.duration_ms
        end = start + length / 1000 if length is not None and 0 <= length < _LATEST else start
        ends.append(_StepEnd(end, span.operation is Operation.MESSAGE))
    ends.sort()
    return ends


def _gaps_between(ends: Sequence[_StepEnd]) -> list[float]:
    """Gaps between steps in milliseconds, without the time that a human took to write."""
    return [(b.at - a.at) * 1000 for a, b in pairwise(ends) if b.at > a.at and not b.human]


def _differences(times: Iterable[float]) -> list[float]:
    return [(b - a) * 1000 for a, b in pairwise(times) if b > a]


def _usual(lengths: Iterable[float], source: UsualFrom) -> UsualDuration:
    samples = sorted(ms for ms in lengths if 0 < ms < _LATEST)
    if not samples:
        return UsualDuration()
    p95 = samples[ceil(0.95 * len(samples)) - 1] if len(samples) >= ENOUGH else None
    return UsualDuration(p95, samples[-1], source)


def _open_call(
    run: Run, gaps: UsualDuration, now: float | None, silent: float | None
) -> tuple[OpenCall | None, UsualDuration]:
    """The open call that may take longest, and the usual durations that apply meanwhile.

    `now` is None if the trace's times have no zone.
    """
    spans = _innermost_open(run)
    if not spans:
        return None, gaps
    lengths: dict[str, list[float]] = {span.name: [] for span in spans}
    for recent in run.spans[-_RECENT:]:
        if recent.name in lengths and recent.duration_ms is not None:
            lengths[recent.name].append(recent.duration_ms)
    own = {name: _usual(samples, "earlier calls") for name, samples in lengths.items()}
    usual = {name: samples if samples.p95_ms is not None else gaps for name, samples in own.items()}
    span = max(spans, key=lambda recent: (usual[recent.name].stalled_ms, -(_time(recent.started_at) or _LATEST)))
    start = _time(span.started_at)
    elapsed = _silence(now, start) if now is not None else None
    ms = silent if elapsed is None else max(elapsed, silent or 0.0)
    call = OpenCall(span.id, span.name, span.operation, ms, at_least=elapsed is None, others=len(spans) - 1)
    return call, usual[span.name]


def _innermost_open(run: Run) -> list[Span]:
    """The innermost open calls. A container with finished spans only is not a call."""
    unended = run.unended
    return [
        run.spans[i]
        for i, following in pairwise([*unended, len(run.spans)])
        if following >= i + run.sizes[i] and (run.sizes[i] == 1 or run.spans[i].operation not in CONTAINERS)
    ]


def _time(at: float | None) -> float | None:
    return at if at is not None and 0 < at < _LATEST else None


# ---- numbers


def seconds(ms: float | None) -> Clean:
    """A duration in whole seconds: ``41s 3m41s 12m30``. It ticks once a second."""
    if ms is None or not 0 <= ms < 60_000:
        return duration(ms if ms is None else ms // 1000 * 1000)
    return Clean(f"{ms // 1000:.0f}s")


def rounded(ms: float | None) -> Clean:
    """A usual duration: ``9s`` where `duration` prints ``9.0s``; at least one millisecond."""
    return Clean(duration(ms if ms is None else max(1.0, ms)).replace(".0s", "s"))


def _ago(ms: float) -> str:
    return "just now" if ms < 1000 else f"{seconds(ms)} ago"

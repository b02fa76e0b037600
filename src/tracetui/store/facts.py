"""Facts of runs that several parts need: time, tokens, searchable text, and the outcomes of many runs counted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Final

import msgspec

from tracetui.model import FirstError, Outcome, RunState, RunSummary, Status
from tracetui.model.run import GOING_ON
from tracetui.model.summary import SharedFacts
from tracetui.text import grouped, quantity


class EffectFacts(msgspec.Struct, frozen=True):
    """What the tool calls of a run did, done ones only: normalized paths, hosts, commands, rules of the audit."""

    changed: tuple[str, ...] = ()
    """Written, edited, deleted or moved."""
    written: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Hosts, URLs and remotes."""
    commands: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Also of refused calls."""


NO_EFFECTS: Final = EffectFacts()


class ContextUse(msgspec.Struct, frozen=True):
    """How a run used the context window of its models, in tokens."""

    most: int | None = None
    """The largest input of a call."""
    missed: int | None = None
    """Cached tokens that were not read; None without recorded reads."""
    grew: int | None = None
    """The most that entered with one call after the first."""
    causes: tuple[str, ...] = ()
    """Of cache breaks."""


NO_CONTEXT: Final = ContextUse()
_STATE_BY_STATUS: Final = {Status.RUNNING: RunState.RUNNING, Status.PAUSED: RunState.PAUSED}


def run_time(run: RunSummary) -> float:
    """Sort key of a run by time: its start, else the modification time of its file (UTC seconds)."""
    start = start_of(run)
    return run.modified_at if start is None else start


def start_of(run: RunSummary) -> float | None:
    """The start of a run in UTC seconds; None if it is undated."""
    start = run.started_at
    if start is not None and run.shared.time_zone is None:  # a naive time is the writer's local time: most likely ours
        try:
            return (datetime(1970, 1, 1) + timedelta(seconds=start)).timestamp()
        except (OverflowError, ValueError, OSError):
            return start
    return start


def changed_at(run: RunSummary) -> float:
    """Time of the last change of a run, in seconds since the epoch, as far as its summary has it.

    The modification time of a file with several runs says nothing about one of them: its start counts.
    """
    return run.modified_at if run.ref.key is None or run.started_at is None else run.started_at


def recorded_state(run: RunSummary) -> RunState:
    """The state of a run from its recorded status alone. A killed program leaves it running forever."""
    return _STATE_BY_STATUS.get(run.status, RunState.ENDED)


def total_tokens(run: RunSummary) -> int | None:
    """All tokens of a run, None if not recorded."""
    return None if run.usage is None else run.usage.all_tokens


_SHARED_TEXTS: Final = attrgetter(
    "name", "agent", "model", "status._value_", "status_word", "relation", "source", "task"
)
_OWN_TEXTS: Final = attrgetter("id", "prompt", "result", "label", "replay_of", "trial", "title")


def failure(run: RunSummary) -> FirstError | None:
    """The error of a failed run; None for other runs, even with failed spans."""
    return run.head.first_error if run.shared.status is Status.ERROR else None


def haystack(run: RunSummary) -> list[str]:
    """The texts that a free-text query searches."""
    shared, own, ref = run.shared, run.texts, run.ref
    error = own.first_error if shared.status is Status.ERROR else None
    texts = [ref.format, ref.path, *_texts_of(shared), *filter(None, _OWN_TEXTS(own))]
    if error is not None:
        texts += filter(None, (error.type, error.message, error.name))
    return texts


@lru_cache(maxsize=4096)
def _texts_of(shared: SharedFacts) -> tuple[str, ...]:
    return (*filter(None, _SHARED_TEXTS(shared)), *shared.tags)


# ---- counts of outcomes


class OutcomeCounts(msgspec.Struct):
    """Counts of runs. Status and outcome are separate facts: an error that passed is in `passed` and in `failed`."""

    runs: int = 0
    passed: int = 0
    """Evaluated as passed."""
    failed: int = 0
    """Ended in an error of the agent or evaluated as failed."""
    errors: int = 0
    """Ended in an error of the agent."""
    ok: int = 0
    """Ended well, neither evaluated as failed nor ungraded."""
    ungraded: int = 0
    """To be graded, but not graded: in no rate. Those whose agent ended in an error are in `failed` too."""
    both: int = 0
    """Failed and ungraded: the agent ended in an error, and the grader did not grade."""
    evaluated: int = 0
    """With an outcome: passed, failed or ungraded."""
    rated: int = 0
    """Those that `pass_rate` is about: with an outcome, or without one and ended in an error."""
    running: int = 0
    """Without an outcome and still going on."""

    @classmethod
    def of(cls, runs: Iterable[RunSummary]) -> OutcomeCounts:
        """Count these runs."""
        counts = cls()
        for run in runs:
            counts.add(run)
        return counts

    def add(self, run: RunSummary, by: int = 1) -> None:
        """Count a run in (1) or out (-1)."""
        error = run.status is Status.ERROR and not run.excused
        evaluated, rated = run.outcome is not None, run.rated is not None
        self.runs += by
        self.passed += by * (run.outcome is Outcome.PASSED)
        self.failed += by * run.failed
        self.errors += by * error
        self.ok += by * (run.status is Status.OK and not run.failed and not run.is_ungraded)
        self.ungraded += by * run.is_ungraded
        self.both += by * (run.failed and run.is_ungraded)
        self.evaluated += by * evaluated
        self.rated += by * rated
        self.running += by * (not evaluated and run.status in GOING_ON)

    @property
    def wrong(self) -> int:
        """Wrong answers: evaluated as failed, without an error."""
        return self.failed - self.errors

    @property
    def unscored(self) -> int:
        """Ended without an error and without an outcome."""
        return self.runs - self.rated - self.ungraded - self.running

    @property
    def pass_rate(self) -> float | None:
        """The share of runs that passed, by their outcome; None where nothing can be rated.

        A run without an outcome counts as failed if it ended in an error, else not at all.
        """
        return self.passed / self.rated if self.rated else None

    @property
    def failures(self) -> str:
        """``51 of 100 runs failed (3 errors, 48 wrong answers)``; without the parenthesis where all are errors."""
        return f"{grouped(self.failed)} of {quantity(self.runs, 'run')} failed{self.kinds}{self.not_graded}"

    @property
    def not_graded(self) -> str:
        """``, 30 ungraded (1 of them failed too)``; empty where all are graded."""
        too = f" ({self.both} of them failed too)" if self.both else ""
        return f", {self.ungraded} ungraded{too}" if self.ungraded else ""

    @property
    def kinds(self) -> str:
        """`` (3 errors, 48 wrong answers)``; empty if all failures are errors."""
        parts = [quantity(self.errors, "error")] if self.errors else []
        return f" ({', '.join([*parts, quantity(self.wrong, 'wrong answer')])})" if self.wrong else ""

    @property
    def passes(self) -> str:
        """``1 of 4 passed``, of the rated runs; ``4 of 59 graded passed, of 89`` where some are ungraded."""
        if self.ungraded:
            return f"{self.passed} of {self.rated} graded passed, of {self.rated + self.ungraded}"
        return f"{self.passed} of {self.rated} passed" if self.rated else ""

"""Facts of runs that several parts need: the time of a run, its tokens, the text that words are searched in."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Final

from tracetui.model import FirstError, RunSummary, Status
from tracetui.model.summary import SharedFacts


def run_time(run: RunSummary) -> float:
    """The time of a run: its start, else the modification time of its file (UTC seconds)."""
    start = run.started_at
    if start is None:
        return run.modified_at
    if run.time_zone is None:  # a naive time is the writer's local time: most likely ours
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


def recorded_running(run: RunSummary) -> bool:
    """Whether the trace says that a run is running. A killed program leaves it so forever."""
    return run.status is Status.RUNNING


def total_tokens(run: RunSummary) -> int | None:
    """All tokens of a run, None if not recorded."""
    return None if run.usage is None else run.usage.all_tokens


_SHARED_WORDS: Final = attrgetter(
    "name", "agent", "model", "status._value_", "status_word", "relation", "source", "task"
)
_OWN_WORDS: Final = attrgetter("id", "prompt", "result", "label", "replay_of", "trial", "title")


def failure(run: RunSummary) -> FirstError | None:
    """The error of a failed run; None for other runs, even with failed spans."""
    return run.first_error if run.status is Status.ERROR else None


def haystack(run: RunSummary) -> list[str]:
    """The texts that a free-text query searches."""
    shared, own, ref = run.shared, run.texts, run.ref
    error = own.first_error if shared.status is Status.ERROR else None
    found = [ref.format, ref.path, *_words_of(shared), *filter(None, _OWN_WORDS(own))]
    if error is not None:
        found += filter(None, (error.type, error.message, error.name))
    return found


@lru_cache(maxsize=4096)
def _words_of(shared: SharedFacts) -> tuple[str, ...]:
    return (*filter(None, _SHARED_WORDS(shared)), *shared.tags)

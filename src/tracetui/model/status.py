"""The one table that maps the words of every format to a `Status`.

The words come from: Paprika `execution.status` and v0 `run_end.status`; ccpa `stop_reason` and `reason`; hypergraph
`runs.status`, `steps.status`, `attempt_records.status` and RunLog step status; Penelope `status`; LatticeFlow item and
call status. Case does not count, nor do blanks, ``-`` and ``_``.
"""

from __future__ import annotations

from typing import Final

from tracetui.model.span import Status

WORDS: Final[dict[str, Status]] = {
    # still going
    "running": Status.RUNNING,
    "active": Status.RUNNING,
    "in_progress": Status.RUNNING,
    "started": Status.RUNNING,
    "pending": Status.RUNNING,
    # waits for somebody
    "paused": Status.PAUSED,
    "interrupted": Status.PAUSED,
    "waiting": Status.PAUSED,
    # went well
    "ok": Status.OK,
    "success": Status.OK,
    "succeeded": Status.OK,
    "completed": Status.OK,
    "complete": Status.OK,
    "passed": Status.OK,
    "done": Status.OK,
    "end_turn": Status.OK,
    "stop_sequence": Status.OK,
    "tool_use": Status.OK,
    "allow": Status.OK,
    "cached": Status.OK,
    "restored": Status.OK,
    # failed
    "error": Status.ERROR,
    "failed": Status.ERROR,
    "failure": Status.ERROR,
    "policy_violation": Status.ERROR,
    "timeout": Status.ERROR,
    "timed_out": Status.ERROR,
    "wall_timeout": Status.ERROR,
    "driver_error": Status.ERROR,
    "max_turns": Status.ERROR,
    "max_iterations": Status.ERROR,
    "max_tokens": Status.ERROR,
    "partial": Status.ERROR,
    "block": Status.ERROR,
    # ended by a person, or never begun
    "cancelled": Status.CANCELLED,
    "canceled": Status.CANCELLED,
    "stopped": Status.CANCELLED,
    "aborted": Status.CANCELLED,
    "skipped": Status.CANCELLED,
    # the trace does not tell
    "unknown": Status.UNKNOWN,
    "incomplete": Status.UNKNOWN,
    "outcome_unknown": Status.UNKNOWN,
    "warn": Status.OK,
}


STATUS_WORDS: Final = tuple(dict.fromkeys((*(status.value for status in Status), *WORDS)))
"""Every status, and every word of a trace that means one."""


def plain_word(word: str) -> str:
    """A trace's word as it stands in the table: ``Max-Turns`` is ``max_turns``."""
    return word.strip().lower().replace(" ", "_").replace("-", "_")


def status_of(word: str) -> Status:
    """The status that a trace's word means, in any case; `Status.UNKNOWN` for a word that is not in the table."""
    return WORDS.get(plain_word(word), Status.UNKNOWN)

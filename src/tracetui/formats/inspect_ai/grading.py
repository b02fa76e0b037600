"""Why a sample was not graded: its scorer raised or was cut off, no test ran in its sandbox, or the sandbox broke.

Facts: Inspect opens a span of type ``scorers`` after the solvers, and in it one of type ``scorer`` for each (a ``step``
in early logs), which ends with a ``score`` event. An exception or a limit ends the sample: an ``error`` or
``sample_limit`` event follows. Commands of a scorer are ``sandbox`` events of its span.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tracetui.formats.grading import is_environment, why_no_test_ran
from tracetui.formats.inspect_ai.log import error_type
from tracetui.formats.scalars import mapping
from tracetui.formats.schema import tag_of
from tracetui.model import PREVIEW
from tracetui.model.run import EVIDENCE_LIMIT, Evidence, Who

_SCORING: Final = ("scorers", "scorer")
_SOLVING: Final = ("solvers", "solver", "agent")
UNNAMED: Final = "score"
"""Name of the score of a sample that broke before a scorer began."""


class Break(NamedTuple):
    """What ended a sample before it was graded."""

    scorer: str
    """The scorer that was at work; `UNNAMED` if none had begun."""
    evidence: Evidence


def _begun(event: Any, tag: str) -> str | None:
    """The type of the span or step that an event begins."""
    begins = tag == "span_begin" or (tag == "step" and event.action == "begin")
    return event.type if begins else None


def ended_ungraded(events: Sequence[Any], message: str | None) -> Break | None:
    """Return what ended a sample while it was not the agent that worked; None if nothing says so.

    `message` is the error that the sample states; None for one that a limit ended. An error before scoring is the
    agent's, unless no solver had begun or the message is one of the sandbox.
    """
    last, scorer, worked, scoring = None, UNNAMED, False, False
    for index, event in enumerate(events):
        tag = tag_of(event)
        kind = _begun(event, tag)
        if kind in _SCORING:
            if last is not None:  # the agent failed, and is scored nevertheless
                return None
            scoring = True
            scorer = event.name if kind == "scorer" and event.name else scorer
        elif kind in _SOLVING or (tag in ("model", "tool") and not scoring):
            worked = True
        elif tag == "score" and not event.intermediate:
            scorer = UNNAMED
        elif tag == ("sample_limit" if message is None else "error"):
            last = index
    if message is None:
        if last is None or not scoring or scorer == UNNAMED:
            return None
        event = events[last]
        description = ": ".join(
            text for text in (f"{event.type or 'unknown'} limit", event.message) if isinstance(text, str)
        )
        return Break(scorer, Evidence(description[:EVIDENCE_LIMIT], f"events[{last}].message", Who.GRADER))
    broken = is_environment(message)
    if not broken and (last is None or (worked and not scoring)):
        return None
    who = Who.ENVIRONMENT if broken or not scoring else Who.GRADER
    place = "error.message" if last is None else f"events[{last}].error.message"
    kind = error_type(message)
    return Break(scorer[:PREVIEW], Evidence(message[:EVIDENCE_LIMIT], place, who, type=kind and kind[:PREVIEW]))


def without_tests(events: Sequence[Any]) -> dict[str, Evidence]:
    """Return why no test ran, by the scorer whose last command in the sandbox says so."""
    reasons: dict[str, Evidence] = {}
    scorer, command = "", None
    for index, event in enumerate(events):
        tag = tag_of(event)
        if _begun(event, tag) == "scorer":
            scorer, command = event.name or "", None
        elif tag == "sandbox" and scorer and isinstance(event.output, str) and event.output.strip():
            command = index
        elif tag == "score" and not event.intermediate:
            value = mapping(event.score).get("value")
            if command is not None and value in (0, False, "I", "N"):
                reason = why_no_test_ran(events[command].output, f"events[{command}].output")
                if reason is not None:
                    reasons[event.scorer or scorer] = reason
            scorer, command = "", None
    return reasons

"""A Penelope result's fields under one name each, and the header of its run. Nothing here needs the turns."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any, Final

from tracetui.formats.labels import source_in, tags_in
from tracetui.formats.penelope.fields import boolean, merged, milliseconds, moment, number, whole
from tracetui.formats.scalars import mapping, sequence, string
from tracetui.model import PREVIEW, FirstError, Header, Status, StatusSource, Usage, status_of
from tracetui.model.status import plain_word

TURNS: Final = ("history", "conversation_summary")
GENERIC: Final = ("test_result", "trace", "execution_trace")
"""File stems that name no run: the folder does."""
TURN_LIMIT: Final = ("max_turns", "max_iterations")
"""Words of a test that used all its turns, today's and the early one."""
_HOLLOW: Final = re.compile(r"[✓✗] Test \w+$|(Test c|C)ompleted in \d+ turn\(s\)$|Confidence: |Failed criteria: ")
"""Findings of Penelope's own making that only repeat other fields: the status, the number of turns …"""
_USAGE: Final = (
    ("input_tokens", ("input_tokens", "prompt_tokens")),
    ("output_tokens", ("output_tokens", "completion_tokens")),
    ("total_tokens", ("total_tokens",)),
)


class Result:
    """The fields of a result under one name each, whichever dialect wrote it."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.config = merged(root.get("config"), root.get("test_configuration"))
        self.stats = merged(root.get("stats"), root.get("execution_stats"))
        evaluation = mapping(root.get("goal_evaluation"))
        self.evaluation = merged(evaluation.get("details"), evaluation)
        """The goal evaluation; early ones keep most of it under ``details``."""
        self.word = string(root.get("status")) or None
        self.criteria = [item for item in sequence(self.evaluation.get("criteria_evaluations")) if is_criterion(item)]
        self.achieved = next(
            (
                found
                for found in (
                    boolean(root.get("goal_achieved")),
                    boolean(self.evaluation.get("is_successful")),
                    boolean(self.evaluation.get("all_criteria_met")),
                )
                if found is not None
            ),
            None,
        )

    @property
    def status(self) -> Status | None:
        """By its word, else by whether the goal was achieved; None: still going, or nothing says."""
        if self.word is not None:
            status = status_of(self.word)
            return None if status is Status.RUNNING else status
        return None if self.achieved is None else Status.OK if self.achieved else Status.ERROR

    @property
    def ended(self) -> bool:
        """False: the result was written in the middle of the test."""
        return self.word is None or status_of(self.word) is not Status.RUNNING

    @property
    def is_judged(self) -> bool:
        """False for a test that broke down before anything was judged: that its goal is not met is no finding then."""
        if plain_word(self.word or "") != "error":
            return True
        return bool(self.evaluation) and self.has_turns

    @property
    def has_turns(self) -> bool:
        """Whether there is any turn, readable or not."""
        return any(sequence(self.root.get(name)) for name in TURNS)

    @property
    def times(self) -> tuple[float | None, str | None, float | None]:
        """Start, zone and milliseconds."""
        start, zone = moment(self.root.get("start_time"))
        end, _ = moment(self.root.get("end_time"))
        if start is not None and end is not None and end >= start:
            return start, zone, round((end - start) * 1000, 3)  # microseconds are what is written
        return start, zone, milliseconds(self.stats.get("execution_time_seconds"))


def is_criterion(item: Any) -> bool:
    """Whether this can be shown as a criterion."""
    return isinstance(item, dict) and isinstance(item.get("criterion"), str)


def header_of(result: Result, path: str, *, call_failed: bool | None, last_failed: bool | None) -> Header:
    """The header; `call_failed` and `last_failed` are None while the turns were not read."""
    started, zone, duration = result.times
    model = _model(result)
    return Header(
        id=_id(result, path),
        name=string(mapping(result.root.get("target_info")).get("target_id")) or model or "penelope",
        agent="penelope",
        model=model,
        status=result.status,
        status_word=result.word,
        status_source=None if result.status is None else _source(result),
        ended=result.ended,
        started_at=started,
        time_zone=zone,
        duration_ms=duration,
        usage=_usage(result),
        error=_cause(result, call_failed, last_failed),
        prompt=(string(result.config.get("goal")) or "")[:PREVIEW],
        outcome=_outcome(result),
        tags=tags_in(result.root, result.root.get("metadata")),
        source=source_in(result.root, result.root.get("metadata")),
    )


def _source(result: Result) -> StatusSource:
    return StatusSource.DERIVED if result.word is None else StatusSource.EXPLICIT


def _model(result: Result) -> str | None:
    info = mapping(result.root.get("model_info"))
    return string(info.get("model_name")) or string(result.config.get("model_name")) or None


def _id(result: Result, path: str) -> str:
    """``test_id``; today's results have none: the file's stem, or its folder where the stem is a generic one."""
    own = result.root.get("test_id")
    if isinstance(own, str) and own:
        return own
    if number(own) is not None:
        return str(own)
    place = PurePath(path)
    return (place.parent.name if place.stem in GENERIC else "") or place.stem


def _usage(result: Result) -> Usage | None:
    """Tokens of ``stats``, or of ``token_usage`` (today a note that says there are none)."""
    spent = merged(result.stats.get("token_usage"), result.stats)
    found = {
        name: next((n for n in (whole(spent.get(key)) for key in keys) if n is not None), None) for name, keys in _USAGE
    }
    usage = Usage(**found)
    return usage if usage else None


def counts_of(result: Result) -> tuple[int | None, int | None]:
    """Criteria met and in all: counted, else as the evaluation declares them."""
    if result.criteria:
        return sum(item.get("met") is True for item in result.criteria), len(result.criteria)
    return whole(result.evaluation.get("criteria_met")), whole(result.evaluation.get("criteria_total"))


def _outcome(result: Result) -> str:
    if result.achieved is None or not result.ended or not result.is_judged:
        return ""
    met, total = counts_of(result)
    score = number(result.evaluation.get("score"))
    words = "goal met" if result.achieved else "goal not met"
    counts = f" {met}/{total}" if met is not None and total is not None else ""
    return words + counts + (f" · {score:.2f}" if score is not None and abs(score) < 1e6 else "")


def _cause(result: Result, call_failed: bool | None, last_failed: bool | None) -> FirstError | None:
    """Why the run failed, where the result itself says so; None leaves it to the first failed call.

    A judged failure is the criterion that was not met, whatever calls failed on the way. An error is the call that
    failed. A timeout or a turn limit is the call only if the run ended on it.
    """
    if result.status is not Status.ERROR:
        return None
    word = plain_word(result.word or "failure")
    if word == "failure" and (unmet := _unmet(result)):
        return unmet
    if not result.is_judged and (call_failed is False or not result.has_turns):
        return _end(result)
    blamed = last_failed if word in ("timeout", *TURN_LIMIT) else call_failed
    return (_unmet(result) or _end(result)) if blamed is False else None


def _unmet(result: Result) -> FirstError | None:
    for item in result.criteria:
        if item.get("met") is False:
            evidence = string(item.get("evidence"))
            return FirstError(f"{item['criterion']}: {evidence}" if evidence else item["criterion"], "goal not met")
    return None


def _end(result: Result) -> FirstError:
    """The end reason: that of the evaluation, else what was found, else how far it came."""
    reason = string(result.evaluation.get("reason"))
    if reason and result.is_judged:
        return FirstError(reason, "goal not met")
    findings = [item for item in sequence(result.root.get("findings")) if isinstance(item, str) and item]
    telling = [item for item in findings if not _HOLLOW.match(item)]
    word = (result.word or "goal not met") if result.is_judged else None  # that it is an error goes without saying
    used, limit = whole(result.root.get("turns_used")), whole(result.config.get("max_turns"))
    if telling:
        return FirstError("; ".join(telling), word)
    if reason:
        return FirstError(reason, word)
    if used is not None and limit is not None:
        return FirstError(f"ended after {used} of {limit} turns", word)
    return FirstError(findings[0] if findings else result.word or "goal not met", word)

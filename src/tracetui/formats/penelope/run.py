"""Everything that a Penelope result says about the run as a whole, and its totals recounted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tracetui.formats.penelope.fields import boolean, number, whole
from tracetui.formats.penelope.result import TURN_LIMIT, TURNS, Result, counts_of, is_criterion
from tracetui.formats.penelope.turns import Turn
from tracetui.formats.scalars import mapping, sequence, string, without
from tracetui.model import Criterion, Error, Header, Limit, Metric, RunBody, Total
from tracetui.model.status import plain_word


def run_body(result: Result, header: Header, turns: Sequence[Turn], rest: dict[str, Any]) -> RunBody:
    """Everything about the run; `rest` is what could not be read as turns."""
    findings = result.root.get("findings")
    texts = isinstance(findings, list) and all(isinstance(item, str) for item in findings)
    attributes = without(result.root, *TURNS, "metrics", "goal_evaluation", *(["findings"] if texts else []))
    metrics = result.root.get("metrics")
    if metrics is not None and not isinstance(metrics, dict):
        attributes["metrics"] = metrics
    if "goal_evaluation" in result.root:
        evaluation = _evaluation_rest(result.root["goal_evaluation"])
        if evaluation != {}:
            attributes["goal_evaluation"] = evaluation
    return RunBody(
        error=None if header.error is None else Error(header.error.message, header.error.type),
        goal=string(result.config.get("goal")),
        reason=string(result.evaluation.get("reason")),
        criteria=tuple(map(_criterion, result.criteria)),
        metrics=tuple(_metric(name, value) for name, value in mapping(metrics).items()),
        findings=tuple(item for item in sequence(findings) if isinstance(item, str)),
        limits=_limits(result, turns),
        totals=tuple(_totals(result, turns)),
        last_user=next((turn.said for turn in reversed(turns) if turn.said), None),
        last_assistant=next((turn.heard for turn in reversed(turns) if turn.heard), None),
        attributes={**attributes, **rest},
    )


def _criterion(item: dict[str, Any]) -> Criterion:
    steps = tuple(turn for turn in map(_turn, sequence(item.get("relevant_turns"))) if turn is not None)
    return Criterion(item["criterion"], boolean(item.get("met")), string(item.get("evidence")) or "", steps)


def _turn(value: Any) -> int | None:
    """The number of a turn, also where it is written as text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return whole(value)


def _evaluation_rest(evaluation: Any) -> Any:
    """The goal evaluation without what `RunBody` has a place for; all of it where a type is not the expected one."""
    if not isinstance(evaluation, dict):
        return evaluation
    rest = dict(evaluation)
    if isinstance(rest.get("reason"), str):
        del rest["reason"]
    criteria = rest.get("criteria_evaluations")
    if isinstance(criteria, list) and all(map(_is_plain, criteria)):
        del rest["criteria_evaluations"]
    return rest


def _is_plain(item: Any) -> bool:
    """Whether a `Criterion` holds everything that this one says."""
    if not is_criterion(item) or item.keys() - {"criterion", "met", "evidence", "relevant_turns"}:
        return False
    turns = item.get("relevant_turns", [])
    numbers = isinstance(turns, list) and all(whole(turn) is not None for turn in turns)
    return numbers and isinstance(item.get("met"), bool) and isinstance(item.get("evidence", ""), str)


def _metric(name: str, value: Any) -> Metric:
    if not isinstance(value, dict):
        score = number(value)
        return Metric(name, score, details=value if score is None else None)
    score, threshold = number(value.get("score")), number(value.get("threshold"))
    passed, reason = boolean(value.get("is_successful")), string(value.get("reason"))
    typed = {"score": score, "threshold": threshold, "is_successful": passed, "reason": reason}
    details = without(value, *(key for key, found in typed.items() if found is not None))
    return Metric(name, score, threshold, passed, reason or "", details or None)


def _limits(result: Result, turns: Sequence[Turn]) -> tuple[Limit, ...]:
    limit = number(result.config.get("max_turns"))
    if limit is None:
        return ()
    used = number(result.root.get("turns_used"))
    violated = plain_word(result.word or "") in TURN_LIMIT
    return (Limit("turns", limit, len(turns) if used is None else used, violated),)


def _totals(result: Result, turns: Sequence[Turn]) -> Iterable[Total]:
    """What the result declares, recounted: turns, criteria, interactions and the calls of each tool."""
    yield from _total("turns_used", result.root, len(turns))
    yield from _total("total_turns", result.stats, len(turns))
    yield from _total("successful_interactions", result.stats, sum(_succeeded(turn) for turn in turns))
    if result.criteria:
        met, total = counts_of(result)
        yield from _total("criteria_met", result.evaluation, met)
        yield from _total("criteria_total", result.evaluation, total)
        for name, metric in mapping(result.root.get("metrics")).items():
            yield from _total("criteria_met", mapping(metric), met, of=name)
            yield from _total("criteria_total", mapping(metric), total, of=name)
    usage = mapping(result.stats.get("tool_usage"))
    if usage:
        calls = Counter((call.name, call.success) for turn in turns for call in turn.calls)
        for tool, declared in usage.items():
            good, bad, open_ = (calls[tool, success] for success in (True, False, None))
            yield from _total("total_calls", mapping(declared), good + bad + open_, of=tool)
            yield from _total("successful_calls", mapping(declared), good, of=tool)
            yield from _total("failed_calls", mapping(declared), bad, of=tool)


def _total(name: str, record: dict[str, Any], counted: int | None, *, of: str = "") -> Iterable[Total]:
    declared = number(record.get(name))
    if declared is not None:
        yield Total(f"{of} {name}" if of else name, declared, counted)


def _succeeded(turn: Turn) -> bool:
    if turn.target_call is not None and turn.target_call.success is not None:
        return turn.target_call.success
    return turn.line.get("success") is True

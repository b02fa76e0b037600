"""The part of a query that a store can apply before it sends runs.

A store narrows by its own columns: texts, times, durations. It may send runs that the query does not match, since the
query is applied to what it sends; it never leaves out one that matches. Terms that it can't decide are no part of the
condition.
"""

from __future__ import annotations

import re
import time
from typing import Final, NamedTuple

from tracetui.model import Operation
from tracetui.sources.conditions import (
    EVERYTHING,
    All,
    AnyOne,
    Condition,
    LastsAtLeast,
    MayBeScored,
    MayFail,
    Mentions,
    StartsBefore,
    StartsSince,
)
from tracetui.store.query.keys import milliseconds, number, period
from tracetui.store.query.run_keys import RUN_KEYS
from tracetui.store.query.syntax import And, Node, Not, Or, Term, Value, Word, parse, unparse

_PIECE: Final = re.compile(r"[A-Za-z0-9_]+")
_FAILED: Final = AnyOne((MayFail(), MayBeScored()))
_FACTS: Final[dict[str, Condition]] = {"failed": _FAILED, "error": _FAILED, "errors": MayFail()}
_OTHERS: Final = frozenset({"relation", "task", "signature", "verdict", "note", "tag"})
"""Keys with values that depend on other runs, or on the user's decisions on them."""
_OTHER_FACTS: Final = frozenset({"replay", "repeat", "copy", "repeats", "original", "running"})
_NAMES: Final = frozenset({"agent", "model", "tool", "name", "id"})
_DEFAULTS: Final = ("trace", *Operation)
"""Names of runs and spans that the trace does not name."""
_MARGIN: Final = 1e-5
"""Seconds, for what rounding changes."""


class Candidates(NamedTuple):
    """The runs to request from a store."""

    condition: Condition
    left: tuple[str, ...]
    """Parts of the query that the condition leaves out."""


def candidates(text: str, *, now: float | None = None) -> Candidates:
    """Return the condition of a query for runs. Raises `QueryError`."""
    node = parse(text)
    if any(_depends_on_others(term) for term in _terms(node)):
        return Candidates(EVERYTHING, (text,))
    parts = node.parts if isinstance(node, And) else (node,)
    found = [(part, _condition(part, time.time() if now is None else now)) for part in parts]
    condition = All(tuple(one for _, one in found if one is not None))
    return Candidates(condition, tuple(unparse(part) for part, one in found if one is None))


def _terms(node: Node) -> list[Term]:
    if isinstance(node, Term):
        return [node]
    if isinstance(node, Not):
        return _terms(node.part)
    return [] if isinstance(node, Word) else [term for part in node.parts for term in _terms(part)]


def _depends_on_others(term: Term) -> bool:
    key = RUN_KEYS.find(term.key)
    name = term.key if key is None else key.name
    return name in _OTHERS or (name in ("is", "has") and any(one.text in _OTHER_FACTS | _OTHERS for one in term.values))


def _condition(node: Node, now: float) -> Condition | None:
    """The condition for a part of the query; None if a store can't test it."""
    if isinstance(node, Or):
        found = [_condition(part, now) for part in node.parts]
        return None if None in found else AnyOne(tuple(one for one in found if one is not None))
    if isinstance(node, And):
        return All(tuple(one for one in (_condition(part, now) for part in node.parts) if one is not None))
    if not isinstance(node, Term):
        return None
    key = RUN_KEYS.find(node.key)
    if key is None:
        return None
    try:
        found = [_compared(key.name, node.compare, value, now) for value in node.values]
    except (ValueError, OverflowError, OSError):  # a wrong value, which the query itself reports
        return None
    return None if None in found else AnyOne(tuple(one for one in found if one is not None))


def _compared(key: str, compare: str, value: Value, now: float) -> Condition | None:
    text = value.text.lower()
    if not value.quoted and text == "none":
        return None
    if key == "status":
        return MayFail() if text == "error" else None
    if key in ("is", "has"):
        return _FACTS.get(text)
    if key == "outcome" or key == "score":
        return MayBeScored()
    if key == "errors":
        least = number(value.text)
        return MayFail() if compare in (":", "=", ">", ">=") and (least > 0 or (compare == ">" and not least)) else None
    if key == "dur":
        return LastsAtLeast(milliseconds(value.text)) if compare in (":", "=", ">", ">=") else None
    if key in ("since", "before", "until", "on"):
        return _time(key, *period(value.text, now))
    if key == "error":
        mentions = _mentions(value)
        return AnyOne((MayBeScored(), All((MayFail(), mentions)))) if mentions is not None else _FAILED
    if key in _NAMES and not any(default in text or text in default for default in _DEFAULTS):
        return _mentions(value)
    return _mentions(value) if key == "prompt" else None


def _time(key: str, begin: float, end: float) -> Condition:
    since, before = StartsSince(begin - _MARGIN), StartsBefore(end + _MARGIN)
    if key == "since":
        return since
    if key == "before":
        return StartsBefore(begin + _MARGIN)
    return before if key == "until" else All((since, before))


def _mentions(value: Value) -> Mentions | None:
    """The longest piece of a text that every store writes unchanged."""
    pieces = _PIECE.findall(value.text)
    return Mentions(max(pieces, key=len)) if pieces else None

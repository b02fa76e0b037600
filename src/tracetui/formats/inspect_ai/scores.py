"""Scores of a sample, and what they come to: metrics, and a phrase that says how it went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tracetui.formats.inspect_ai.fields import joined
from tracetui.formats.scalars import mapping, number, sequence, without, word
from tracetui.model import Metric

LETTERS: Final = {"C": (1.0, True), "I": (0.0, False), "P": (0.5, None), "N": (0.0, False)}
"""Correct, incorrect, partial, no answer: Inspect's letters and what it counts them as."""
_WORD: Final = 24
"""Characters of a score in a phrase."""
_DEPTH: Final = 3
"""How deep a value of several values is told in a phrase."""


def scores_of(fields: dict[str, Any]) -> dict[str, Any]:
    """The scores of a sample by scorer; early logs have one, without a name."""
    single = fields.get("score")
    return mapping(fields.get("scores")) or ({"score": single} if isinstance(single, dict) else {})


def outcome_of(scores: dict[str, Any]) -> str:
    """``includes C · f1 0.75``."""
    told = ((name, value_words(mapping(score).get("value"))) for name, score in list(scores.items())[:8])
    return joined(f"{name[:_WORD]} {value}" for name, value in told if value)


def value_words(value: Any, depth: int = _DEPTH) -> str:
    """The value of a score in short; what is nested deeper than `depth` is left out."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value[:_WORD]
    if (found := number(value)) is not None:
        return f"{found:.4g}"
    if not depth or not isinstance(value, dict | list):
        return ""
    if isinstance(value, dict):
        return joined((f"{key} {value_words(item, depth - 1)}" for key, item in list(value.items())[:4]), " ")
    return joined((value_words(item, depth - 1) for item in value[:4]), " ")


def metrics_of(scores: dict[str, Any]) -> tuple[Metric, ...]:
    """Every score as a number where it is one; a score of several values is several."""
    return tuple(metric for name, score in scores.items() for metric in _metrics(name, score))


def _metrics(name: str, score: Any) -> Iterator[Metric]:
    said = mapping(score)
    if not said:
        yield Metric(name, details=score)
        return
    value, reason = said.get("value"), word(said.get("explanation")) or ""
    details = without(said, "explanation") if reason else said
    if isinstance(value, dict) and value:
        for number_, (key, item) in enumerate(value.items()):
            found, passed = _graded(item)
            first = number_ == 0
            yield Metric(f"{name} {key}", found, None, passed, reason if first else "", details if first else item)
        return
    found, passed = _graded(value)
    yield Metric(name, found, None, passed, reason, details)


def _graded(value: Any) -> tuple[float | None, bool | None]:
    if isinstance(value, str):
        return LETTERS.get(value, (None, None))
    if isinstance(value, bool):
        return float(value), value
    return number(value), None


def results_of(results: Any) -> tuple[Metric, ...]:
    """The metrics of an eval as a whole: ``includes accuracy``."""
    found = []
    for score in sequence(mapping(results).get("scores")):
        name = word(mapping(score).get("name")) or word(mapping(score).get("scorer")) or "score"
        for key, metric in mapping(mapping(score).get("metrics")).items():
            found.append(Metric(f"{name} {key}", number(mapping(metric).get("value")), details=metric))
    return tuple(found)

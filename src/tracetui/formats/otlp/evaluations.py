"""Evaluations in a trace: events of the GenAI conventions, and the feedback attributes of OpenInference.

Facts: ``gen_ai.evaluation.result`` of the GenAI conventions (earlier ones name the evaluation in the event's name), and
``spec/annotations.md`` of OpenInference. Both leave the meaning of scores and labels to the evaluator: only the labels
that the GenAI conventions give as examples, and their past tense, pass or fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tracetui.formats.otlp.records import Event
from tracetui.formats.otlp.vocabulary import Attributes, first
from tracetui.formats.scalars import boolean, number, word
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Score

_EVENT: Final = "gen_ai.evaluation."
_NAME: Final = "gen_ai.evaluation.name"
_VALUES: Final = ("gen_ai.evaluation.score.value", "gen_ai.evaluation.score")
_LABELS: Final = ("gen_ai.evaluation.score.label", "gen_ai.evaluation.label")
_REASONS: Final = ("gen_ai.evaluation.explanation", "gen_ai.evaluation.reasoning", "error.type")
_FIRST: Final = frozenset(
    f"{scope}{form}s.0.{form}.name" for scope in ("", "trace.") for form in ("annotation", "evaluation")
)
"""Attributes of a span with feedback: indexes begin at 0. Feedback on a session is that of no single trace."""
_FEEDBACK: Final = re.compile(r"((?:trace\.)?(annotation|evaluation)s\.\d{1,4}\.\2)\.name")
_LABEL_RULE: Final = "label pass, passed or correct; fail, failed or incorrect"
_PASSED: Final = {"pass": True, "passed": True, "correct": True, "fail": False, "failed": False, "incorrect": False}


def scores_of_span(span_id: str | None, attrs: Attributes, events: Sequence[Event]) -> tuple[Score, ...]:
    """The evaluations of a span; one that both terms of OpenInference record counts once."""
    found = [] if attrs.keys().isdisjoint(_FIRST) else list(_feedback(span_id, attrs))
    found += [score for event in events for score in scores_of_event(span_id, event)]
    if _NAME in attrs:  # libraries without events write one as a span
        found += scores_of_event(span_id, Event(_EVENT, None, attrs, {}))
    if len(found) < 2:
        return tuple(found)
    return tuple({(one.name, one.value, one.passed, one.reason): one for one in reversed(found)}.values())[::-1]


def scores_of_event(span_id: str | None, event: Event) -> Iterator[Score]:
    """The evaluation that an event of a span, or of the whole trace, is."""
    if event.name.startswith(_EVENT):
        attrs = event.attrs
        name = word(attrs.get(_NAME)) or event.name.removeprefix(_EVENT)
        value = next((attrs[key] for key in _VALUES if key in attrs), None)
        yield _score(span_id, event.name, name, value, first(attrs, _LABELS), first(attrs, _REASONS))


def _feedback(span_id: str | None, attrs: Attributes) -> Iterator[Score]:
    for match in filter(None, map(_FEEDBACK.fullmatch, attrs)):
        name, value, label, reason = (
            attrs.get(f"{match[1]}.{one}") for one in ("name", "score", "label", "explanation")
        )
        yield _score(span_id, match[1], word(name) or match[2], value, word(label), word(reason))


def _score(span_id: str | None, field: str, name: str, value: Any, label: str | None, reason: str | None) -> Score:
    passed = _PASSED.get(label.lower()) if label else None
    shown = value if number(value) is not None else boolean(value)
    if shown is None and label:
        shown = label[:PREVIEW]
    return Score(
        name[:PREVIEW],
        shown,
        passed,
        (field if span_id is None else f"span {span_id}: {field}")[:PREVIEW],
        "" if passed is None else _LABEL_RULE,
        (reason or "")[:MESSAGE_LIMIT],
    )

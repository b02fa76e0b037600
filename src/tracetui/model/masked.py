"""Mask the secrets of a run: headers at once, bodies when they are loaded.

The model is masked, not the trace; exact values (`--json`, a revealed value) come from the unmasked run. Source records
stay exact, since they are large and mostly used for their size: whoever shows one masks it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from msgspec.structs import replace

from tracetui.model.blocks import Blocks
from tracetui.model.ledger import Kinds, Unread
from tracetui.model.run import FirstError, Problem, Run, RunBody, Score, TaskKey
from tracetui.model.span import Body, Error, Span
from tracetui.model.summary import RunSummary
from tracetui.redact import Redactor

_B = TypeVar("_B", Body, RunBody)


class _Originals:
    """Loads bodies of masked spans, by passing the original span to the format."""

    __slots__ = ("run",)

    def __init__(self, run: Run) -> None:
        self.run = run

    def __call__(self, span: Span) -> Body:
        return self.run.load(self.run.span(span.id) or span)


class MaskedLoad:
    """`Run.load` of a run with masked bodies."""

    __slots__ = ("body", "load", "redactor")

    def __init__(self, load: Callable[[Span], Body], body: RunBody, redactor: Redactor) -> None:
        self.load, self.body, self.redactor = load, body, redactor

    def __call__(self, span: Span) -> Body:
        return masked_body(self.load(span), self.redactor)


def masked_bodies(run: Run, redactor: Redactor, body: RunBody | None = None) -> Run:
    """A run with its own body masked (`body`, if given), and the bodies of its spans masked on load.

    Headers stay exact: the views mask them.
    """
    load = MaskedLoad(run.load, run.body, redactor)
    return replace(run, body=body or masked_body(run.body, redactor), load=load)


def masked(run: Run, redactor: Redactor) -> Run:
    """A run with summary, spans, problems and bodies masked."""
    return replace(
        run,
        body=masked_body(run.body, redactor),
        load=MaskedLoad(_Originals(run), run.body, redactor),
        summary=masked_summary(run.summary, redactor),
        spans=Blocks(masked_span(span, redactor) for span in run.spans),
        problems=tuple(masked_problem(problem, redactor) for problem in run.problems),
    )


def masked_headers(run: Run, redactor: Redactor) -> Run:
    """A run with a masked summary, and spans without secrets in the texts that a comparison treats as values."""
    mask = cache(redactor.header)  # few names and models

    def masked(span: Span) -> Span:
        name, model, word = (text and mask(text) for text in (span.name, span.model, span.status_word))
        error = None if span.error is None else masked_error(span.error, redactor)
        same = error is span.error and (name, model, word) == (span.name, span.model, span.status_word)
        return span if same else replace(span, name=name, model=model, status_word=word, error=error)

    spans = Blocks(map(masked, run.spans))
    return replace(run, summary=masked_summary(run.summary, redactor), spans=spans, load=_Originals(run))


def unmasked(run: Run) -> Run:
    """A run with exact bodies; masked headers stay masked."""
    load = run.load
    if not isinstance(load, MaskedLoad):
        return run
    return replace(run, load=load.load, body=load.body if run.summary.ref.span is None else run.body)


def masked_body(body: _B, redactor: Redactor) -> _B:
    """A body with every secret masked except those in its source record; the same object if it has none."""
    values = replace(body, raw=b"")
    masked = redactor.value(values)
    return body if masked is values else replace(masked, raw=body.raw)


def masked_summary(run: RunSummary, redactor: Redactor) -> RunSummary:
    """A masked summary. Id and address stay exact, since they identify the run."""
    mask = redactor.header
    texts = {"name": run.name, "agent": run.agent, "status_word": run.status_word, "label": run.label}
    texts |= {"prompt": run.prompt, "result": run.result, "model": run.model, "source": run.source}
    texts |= {
        "title": run.title,
        "task": run.task,
        "trial": run.trial,
        "headline": run.headline,
        "outcome_source": run.outcome_source,
    }
    masked = {name: mask(text) for name, text in texts.items() if text}
    changed = {name: text for name, text in masked.items() if text is not texts[name]}
    lists = {"tools": run.tools, "models": run.models, "nodes": run.nodes, "tags": run.tags}
    masked_lists = {name: tuple(map(mask, values)) for name, values in lists.items() if values}
    changed_lists = {name: values for name, values in masked_lists.items() if values != lists[name]}
    error = None if run.first_error is None else _masked_cause(run.first_error, redactor)
    unread = None if run.unread is None else _masked_unread(run.unread, redactor)
    scores = tuple([_masked_score(score, redactor) for score in run.scores])
    last = run.last
    if last is not None and last.open and (name := mask(last.open)) != last.open:
        last = replace(last, open=name)
    same = error is run.first_error and unread is run.unread and scores == run.scores and last is run.last
    if same and not changed and not changed_lists:
        return run
    return run.replace(first_error=error, unread=unread, scores=scores, last=last, **changed, **changed_lists)


def masked_task(task: TaskKey, redactor: Redactor) -> TaskKey:
    """The name of a task."""
    return replace(task, name=redactor.header(task.name))


def _masked_score(score: Score, redactor: Redactor) -> Score:
    """A score; its name, value and reason may quote anything."""
    texts = {"name": score.name, "value": score.value, "source": score.source, "reason": score.reason}
    masked_texts = {name: redactor.header(text) for name, text in texts.items() if isinstance(text, str) and text}
    changed: dict[str, Any] = {name: text for name, text in masked_texts.items() if text is not texts[name]}
    evidence = score.evidence
    if evidence is not None:
        parts = {"text": evidence.text, "place": evidence.place, "check": evidence.check, "type": evidence.type}
        masked = {name: redactor.header(text) for name, text in parts.items() if text}
        if any(text is not parts[name] for name, text in masked.items()):
            changed["evidence"] = replace(evidence, **masked)
    return replace(score, **changed) if changed else score


def _masked_unread(unread: Unread, redactor: Redactor) -> Unread:
    """Unread data with masked kinds and fields: their names come from the trace."""
    kinds, fields = _masked_names(unread.kinds, redactor), _masked_names(unread.fields, redactor)
    same = kinds == unread.kinds and fields == unread.fields
    return unread if same else replace(unread, kinds=kinds, fields=fields)


def _masked_names(kinds: Kinds, redactor: Redactor) -> Kinds:
    """Masked names, numbered where they become equal, so that none is lost."""
    counts: dict[str, int] = {}
    for name, count in kinds:
        masked = redactor.header(name)
        number = 1
        while (key := masked if number == 1 else f"{masked} {number}") in counts:
            number += 1
        counts[key] = count
    return tuple(counts.items())


def masked_span(span: Span, redactor: Redactor) -> Span:
    """A masked span header; the id stays exact."""
    mask = redactor.header
    texts: dict[str, str | None] = {"name": span.name, "preview": span.preview, "note": span.note}
    texts |= {"model": span.model, "status_word": span.status_word}
    masked = {name: mask(text) for name, text in texts.items() if text}
    changed = {name: text for name, text in masked.items() if text is not texts[name]}
    error = None if span.error is None else masked_error(span.error, redactor)
    return span if error is span.error and not changed else replace(span, error=error, **changed)


def masked_error(error: Error, redactor: Redactor) -> Error:
    """An error with masked type and message."""
    message, kind = redactor.header(error.message), error.type and redactor.header(error.type)
    return error if message is error.message and kind is error.type else Error(message, kind)


def masked_problem(problem: Problem, redactor: Redactor) -> Problem:
    """A problem with a masked reason, which may quote the trace."""
    reason = redactor.header(problem.reason)
    return problem if reason is problem.reason else replace(problem, reason=reason)


def _masked_cause(error: FirstError, redactor: Redactor) -> FirstError:
    mask = redactor.header
    message, kind, name = mask(error.message), error.type and mask(error.type), error.name and mask(error.name)
    if message is error.message and kind is error.type and name is error.name:
        return error
    return replace(error, message=message, type=kind, name=name)

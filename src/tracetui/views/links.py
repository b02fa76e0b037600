"""Links between steps in words, on one line each."""

from __future__ import annotations

from typing import Final

from tracetui.analysis.links import Kind, Origin, StepLink
from tracetui.analysis.writings import Match
from tracetui.masking import one_line
from tracetui.model import Run
from tracetui.store.address import span_reference
from tracetui.text import Clean

_QUOTE: Final = 60


def step_words(run: Run, span_id: str) -> Clean:
    """A step as links name it: ``[16] modify_items``."""
    span = run.span(span_id)
    if span is None:
        return one_line(span_id, 60)
    place = span_reference(run, span) or str(run.index[span_id] + 1)
    return Clean(f"[{one_line(place, 40)}] {one_line(span.name, 60)}")


def link_words(run: Run, link: StepLink, span_id: str | None = None) -> Clean:
    """What a link says; `span_id`: of the step that it stands below, if that is its target."""
    quote = one_line(link.source.quote, _QUOTE)
    if link.kind is Kind.NO_ORIGIN:
        return Clean(f"{quote} is {link.match}")
    if link.kind is Kind.NAMED:
        return Clean(f"the answer names {quote}")
    if link.kind is Kind.TRIALS:
        return _trial_words(link, quote)
    there = step_words(run, link.targets[0].span)
    if link.kind is Kind.SUB_AGENT:
        is_target = span_id is not None and link.source.span != span_id
        return Clean(f"failed inside: {step_words(run, link.source.span)}" if is_target else f"called by {there}")
    if link.kind is Kind.CHANGED:
        return Clean(f"{quote} already changed by {there}")
    return Clean(f"{quote} first in {there}{_match_words(link)}")


def _trial_words(link: StepLink, quote: Clean) -> Clean:
    count = len(link.targets)
    passed = f"all {count} have" if link.match is Match.ARGUMENT else f"all {count} called"
    return Clean(f"no passed trial has {quote}; {passed} {one_line(link.targets[0].quote, _QUOTE)}")


def _match_words(link: StepLink) -> str:
    if link.match is Match.EXACT:
        return ""
    quotes = [one_line(end.quote, _QUOTE) for end in link.targets]
    if link.match in (Match.SUM, Match.DIFFERENCE):
        return f" ({link.match} of {' and '.join(quotes)})"
    return f" ({link.match}: {quotes[0]})"


def origin_words(run: Run, origin: Origin) -> Clean:
    """Where a value comes from, and what could hide it if it is in no earlier text."""
    words = link_words(run, origin.first)
    if origin.first.targets:
        return Clean(f"{words}  ·  {len(origin.places)} appearances")
    hidden = "".join(f"  ·  {one_line(one, 80)}" for one in origin.hidden)
    return Clean(f"{words}{hidden}")

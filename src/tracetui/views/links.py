"""Links between steps in words, on one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracetui.analysis.links import Kind, Origin, Part, StepLink
from tracetui.analysis.writings import Match
from tracetui.masking import one_line
from tracetui.model import Operation, Run
from tracetui.store.address import step_number
from tracetui.text import Clean

_QUOTE: Final = 60


def step_text(run: Run, span_id: str) -> Clean:
    """A step as links name it: ``[16] modify_items``."""
    span = run.span(span_id)
    if span is None:
        return one_line(span_id, 60)
    place = span.step if span.step is not None else step_number(run, span)
    name = one_line(span.name, 60)
    return name if place is None else Clean(f"[{place}] {name}")


def link_text(run: Run, link: StepLink, span_id: str | None = None) -> Clean:
    """What a link says; `span_id`: of the step that it stands below, if that is its target."""
    quote = one_line(link.source.quote, _QUOTE)
    if link.kind is Kind.NO_ORIGIN:
        return Clean(f"{quote} is {link.match}")
    if link.kind is Kind.NAMED:
        return Clean(f"the answer names {quote}")
    if link.kind is Kind.TRIALS:
        return _trial_text(link, quote)
    target = step_text(run, link.targets[0].span)
    if link.kind is Kind.SUB_AGENT:
        is_target = span_id is not None and link.source.span != span_id
        if is_target:
            return Clean(f"failed inside: {step_text(run, link.source.span)}")
        called = run.spans[run.index[link.targets[0].span]]
        return Clean(f"{'inside' if called.operation is Operation.INVOKE_AGENT else 'called by'} {target}")
    if link.kind is Kind.CHANGED:
        return Clean(f"{quote} already changed by {target}")
    return Clean(f"{quote} first in {target}{_match_text(link)}")


def other_steps(link: StepLink, span_id: str) -> tuple[str, ...]:
    """Ids of the other steps, in the same run, that a link of a step leads to."""
    ends = [end.span for end in (*link.targets, link.source) if end.run is None]
    return tuple(dict.fromkeys(span for span in ends if span != span_id))


def run_link_lines(run: Run, links: Sequence[StepLink], most: int) -> list[tuple[Clean, str]]:
    """The links of a run, those to other steps first, each with its step, whose id stands beside it.

    The last of `most` lines says how many more there are.
    """
    links = sorted(links, key=lambda link: not other_steps(link, link.source.span) and link.kind is not Kind.TRIALS)
    steps = ((link, link.source.span) for link in links)
    lines = [(Clean(f"{step_text(run, step)}: {link_text(run, link)}"), step) for link, step in steps]
    if len(lines) > most:
        more = Clean(f"… and {len(lines) - most + 1} more below its steps")
        lines[most - 1 :] = [(more, links[most - 1].source.span)]
    return lines


def _trial_text(link: StepLink, quote: Clean) -> Clean:
    count, instead = len(link.targets), one_line(link.targets[0].quote, _QUOTE)
    if link.match is Match.CALL:
        return Clean(f"no passed trial did this; all {count} called {instead}")
    if link.source.part is Part.NAME:
        return Clean(f"no passed trial did this with these arguments; all {count} called {instead} with others")
    return Clean(f"no passed trial did this with {quote}; all {count} have {instead}")


def _match_text(link: StepLink) -> str:
    if link.match is Match.EXACT:
        return ""
    quotes = [one_line(end.quote, _QUOTE) for end in link.targets]
    if link.match in (Match.SUM, Match.DIFFERENCE):
        return f" ({link.match} of {' and '.join(quotes)})"
    return f" ({link.match}: {quotes[0]})"


def origin_text(run: Run, origin: Origin) -> Clean:
    """Where a value comes from, and what could hide it if it is in no earlier text."""
    label = link_text(run, origin.first)
    if origin.first.targets:
        return Clean(f"{label}  ·  {len(origin.places)} appearances")
    hidden = "".join(f"  ·  {one_line(place, 80)}" for place in origin.hidden)
    return Clean(f"{label}{hidden}")

"""Repeated calls of a run: which are the same in what they were given and what came of it, and how that is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from tracetui.diff.compare import Kind, difference
from tracetui.diff.noise import Noise
from tracetui.model import Body, Operation, Run, Span
from tracetui.store.loops import Candidate, Loop, Sameness, candidates, confirmed
from tracetui.text import Clean, duration, tokens, truncate
from tracetui.views.cells import short_name
from tracetui.views.glyphs import UNICODE, Glyphs

_KEPT: Final = 8
"""Bodies kept while neighbours are compared: those of two rounds."""


def loops(run: Run, body_of: Callable[[Span], Body]) -> list[Loop]:
    """All loops of a run. Loads the bodies of what may be one, each once: not for the thread that draws."""
    return [loop for candidate in candidates(run) for loop in confirm(run, candidate, body_of)]


def confirm(run: Run, candidate: Candidate, body_of: Callable[[Span], Body]) -> list[Loop]:
    """The loops in a candidate, by the values of its calls."""

    @lru_cache(_KEPT)
    def kept(ident: str) -> Body:
        return body_of(run.spans[run.index[ident]])

    return confirmed(run, candidate, lambda a, b: sameness(a, b, kept(a.id), kept(b.id)))


def sameness(a: Span, b: Span, body_a: Body, body_b: Body) -> Sameness:
    """How far the call `b` repeats the call `a`; what differs without meaning anything (ids, times) is let pass.

    A model call is known by its answer: what it is given grows with every round. Where a trace says neither what was
    given nor what came of it, nothing is taken for the same.
    """
    if not (_says(body_a) and _says(body_b)):
        return Sameness.OTHER
    answers = _answer(body_a), _answer(body_b)
    answered = a.operation is Operation.CHAT and all(map(_says, answers))
    if answered and difference(a, b, *answers, Noise()).kind is Kind.SAME:
        return Sameness.IDENTICAL
    kind = difference(a, b, body_a, body_b, Noise()).kind
    if kind is Kind.SAME:
        return Sameness.IDENTICAL
    return Sameness.CALL if kind in (Kind.OUTPUT, Kind.STATUS) else Sameness.OTHER


def _answer(body: Body) -> Body:
    return Body(output=body.output, output_messages=body.output_messages)


def _says(body: Body) -> bool:
    return any(value is not None for value in (body.input, body.output)) or bool(
        body.input_messages or body.output_messages
    )


def title(run: Run, loop: Loop, glyphs: Glyphs = UNICODE) -> Clean:
    """``search ×6 (identical)``, ``fetch → parse ×4 (same calls)``."""
    cycle = f" {glyphs.arrow} ".join(
        truncate(short_name(run.spans[call]), 40) or glyphs.unsaid for call in loop.calls[: loop.period]
    )
    calls = "same call" if loop.period == 1 else "same calls"
    return Clean(f"{cycle} {glyphs.times}{loop.times} ({'identical' if loop.identical else calls})")


def cost(loop: Loop) -> Clean:
    """What the repetitions took: ``1.2s, 4.5k tokens``; empty where the trace does not say."""
    told = []
    if loop.wasted_ms is not None:
        told.append(duration(loop.wasted_ms))
    if loop.wasted_tokens is not None:
        told.append(Clean(f"{tokens(loop.wasted_tokens)} tokens"))
    return Clean(", ".join(told))

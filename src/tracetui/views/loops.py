"""Repeated calls of a run: which are the same in what they were given and what came of it, and how that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from tracetui.diff.noise import Noise
from tracetui.diff.step import Kind, difference, documents
from tracetui.diff.values import INPUT, changes_of
from tracetui.model import Body, Message, Operation, Run, Span, Text
from tracetui.store.loops import Candidate, Loop, Sameness, candidates, confirmed
from tracetui.text import Clean, duration, tokens, truncate
from tracetui.views.cells import short_name
from tracetui.views.glyphs import UNICODE, Glyphs

_KEPT: Final = 16
"""Bodies kept while neighbours are compared: those of two rounds, and of the agents above them."""
_ASKED: Final = frozenset({Operation.CHAT, Operation.INVOKE_AGENT})
_INSTRUCTIONS: Final = frozenset({"system", "developer"})
_USER: Final = "user"


def loops(run: Run, body_of: Callable[[Span], Body]) -> list[Loop]:
    """All loops of a run. Loads the bodies of what may be one, each once: not for the thread that draws."""
    return [loop for candidate in candidates(run) for loop in confirm(run, candidate, body_of)]


def confirm(run: Run, candidate: Candidate, body_of: Callable[[Span], Body]) -> list[Loop]:
    """The loops in a candidate, by the values of its calls."""

    @lru_cache(_KEPT)
    def kept(ident: str) -> Body:
        return body_of(run.spans[run.index[ident]])

    def same(a: Span, b: Span) -> Sameness:
        how = sameness(a, b, kept(a.id), kept(b.id))
        above = (_asking(run, a), _asking(run, b)) if how else (None, None)
        if above[0] is None or above[1] is None or above[0] is above[1]:
            return how
        return how if _same_question(kept(above[0].id), kept(above[1].id)) else Sameness.OTHER

    return confirmed(run, candidate, same)


def _asking(run: Run, span: Span) -> Span | None:
    """The agent that a call was made by."""
    above = run.parent(run.index[span.id])
    while above is not None and run.spans[above].operation is not Operation.INVOKE_AGENT:
        above = run.parent(above)
    return None if above is None else run.spans[above]


def _same_question(a: Body, b: Body) -> bool:
    """Whether an agent or a model was asked the same, as far as both bodies say what."""
    noise = Noise()
    before, now = _question(a.input_messages), _question(b.input_messages)
    if before and now:
        return not changes_of(documents(before), documents(now), noise, side=INPUT)
    if isinstance(a.input, str) and isinstance(b.input, str) and b.input.startswith(a.input):
        return True  # a prompt that grows
    return a.input is None or b.input is None or not changes_of(a.input, b.input, noise, side=INPUT)


def _question(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The instructions and the last question of a conversation; what came of calls in between is no question."""
    asked = [message for message in messages if any(isinstance(part, Text) for part in message.parts)]
    instructions = next(([one] for one in asked if one.role in _INSTRUCTIONS), [])
    return (*instructions, *[one for one in asked if one.role == _USER][-1:])


def sameness(a: Span, b: Span, body_a: Body, body_b: Body) -> Sameness:
    """How far the call `b` repeats the call `a`; what differs without meaning anything (ids, times) is let pass.

    A model call is known by its question and its answer: what it is given besides grows with every round. Where a trace
    says neither what was given nor what came of it, nothing is taken for the same.
    """
    if not (_says(body_a) and _says(body_b)):
        return Sameness.OTHER
    if a.operation in _ASKED and a.operation is b.operation and not _same_question(body_a, body_b):
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

"""What messages of opencode say about the context: the answer of a *summary* call replaces the conversation.

Facts: versions 0.3 to 1.18. The point where a session compacts itself is a message of its own; the call after it still
has the whole conversation.
"""

from __future__ import annotations

from tracetui.model import Body, Operation, Span
from tracetui.model.context import ContextFacts


def context_of(span: Span, body: Body) -> ContextFacts | None:
    """What a span says about the context; None: nothing but its messages."""
    if span.operation is Operation.CHAT and "summary" in span.note.split(", "):
        return ContextFacts(compacts=True)
    return ContextFacts(()) if span.name == "compaction" else None

"""What entries of pi say about the context: compactions with the first kept entry, and the thinking level.

Facts: sessions of versions 0.50 to 0.80.
"""

from __future__ import annotations

from tracetui.formats.agent_log import META
from tracetui.formats.bodies import kind_of
from tracetui.formats.scalars import mapping, text
from tracetui.model import Body, Span
from tracetui.model.context import SUMMARY, Cause, ContextFacts, ContextItem


def context_of(span: Span, body: Body) -> ContextFacts | None:
    """What a span says about the context; None: nothing but its messages."""
    if span.name == "compaction":
        items = () if body.output is None else (ContextItem(SUMMARY, body.output),)
        return ContextFacts(items, compacts=True, kept_from=text(body.attributes.get("firstKeptEntryId")))
    if span.name == "branch summary":
        return ContextFacts(tuple(ContextItem(SUMMARY, body.input) for _ in (1,) if body.input is not None))
    if body.attributes.get("excludeFromContext") is True:
        return ContextFacts(())
    if span.operation is META:
        records = [mapping(record) for record in body.attributes.values()]
        levels = [text(record.get("thinkingLevel")) for record in records if kind_of(record) == "thinking_level_change"]
        if levels and levels[-1]:
            return ContextFacts(settings=((Cause.THINKING_SETTING, levels[-1]),))
        return ContextFacts(())
    return None

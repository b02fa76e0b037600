"""What events of Copilot say about the context: life of the cache, compactions and truncations.

Facts: versions 0.0.330 to 1.0.102; ``session.usage_checkpoint`` has the life of each model's cache in seconds.
"""

from __future__ import annotations

from typing import Any, Final

from tracetui.formats.agent_log import CHAT, EXECUTE_TOOL, MESSAGE
from tracetui.formats.scalars import mapping, natural, sequence, string
from tracetui.model import Body, Span
from tracetui.model.context import SUMMARY, Cause, ContextFacts, ContextItem

_DEPTH: Final = 3


def context_of(span: Span, body: Body) -> ContextFacts | None:
    """What a span says about the context; None: nothing but its messages."""
    if span.operation in (CHAT, EXECUTE_TOOL, MESSAGE):
        return None
    if span.name == "compaction":
        summary = string(_first(body.attributes, "summaryContent"))
        items = () if summary is None else (ContextItem(SUMMARY, summary),)
        return ContextFacts(items, compacts=True)
    caches = sequence(_first(body.attributes, "modelCacheState"))
    seconds = [lifetime for cache in caches if (lifetime := natural(mapping(cache).get("cacheTtlSeconds")))]
    is_truncation = _first(body.attributes, "tokensRemovedDuringTruncation") or "truncation" in span.name
    signs = frozenset({Cause.CLEARED} if is_truncation else ())
    return ContextFacts((), signs=signs, cache_seconds=seconds[-1] if seconds else None)


def _first(value: Any, name: str, depth: int = _DEPTH) -> Any:
    """The first value of that field in nested objects; None without one."""
    record = mapping(value)
    if name in record:
        return record[name]
    if depth:
        for item in record.values():
            if isinstance(item, dict) and (inner := _first(item, name, depth - 1)) is not None:
                return inner
    return None

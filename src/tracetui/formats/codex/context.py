"""What records of Codex say about the context: instructions and environment in the user's name, and compactions.

Facts: rollouts of versions 0.40 to 0.169. A compaction replaces the history by its ``replacement_history`` (messages of
the user and the summary) where the record has one, else by its message.
"""

from __future__ import annotations

from typing import Final

from tracetui.formats.agent_log import MESSAGE
from tracetui.formats.bodies import text_in
from tracetui.formats.scalars import mapping, sequence, string
from tracetui.model import Body, Span, text_of
from tracetui.model.context import ATTACHMENT, MEMORY, PROMPT, SUMMARY, ContextFacts, ContextItem

_INSTRUCTIONS: Final = frozenset({"AGENTS.md", "user_instructions"})
_ROLES: Final = frozenset({"user", "system", "developer", "assistant", "message"})


def context_of(span: Span, body: Body) -> ContextFacts | None:
    """What a span says about the context; None: nothing but its messages."""
    if span.name == "compaction":
        history = sequence(body.attributes.get("replacement_history"))
        summary = string(body.attributes.get("message")) or ""
        items = [ContextItem(PROMPT, text) for message in history if (text := text_in(mapping(message).get("content")))]
        if summary and not any(summary in str(item.value) for item in items):
            items.append(ContextItem(SUMMARY, summary))
        elif items:  # the last message of the history is the summary
            items[-1] = ContextItem(SUMMARY, items[-1].value)
        return ContextFacts(tuple(items), compacts=True)
    if span.operation is not MESSAGE or span.name in _ROLES:
        return None
    content = MEMORY if span.name in _INSTRUCTIONS else ATTACHMENT
    return ContextFacts(tuple(ContextItem(content, text_of(message)) for message in body.input_messages))

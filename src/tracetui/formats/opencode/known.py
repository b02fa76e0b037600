"""Which fields of messages and parts are known: by files of 1.3 to 1.18.33, and by what opencode declares."""

from __future__ import annotations

from typing import Final

from tracetui.formats.fields import Fields, Strange
from tracetui.formats.opencode.records import Message
from tracetui.formats.scalars import word

FIELDS: Final = Fields(
    {
        "user": "agent editorContext format model role summary system tools variant",
        "assistant": (
            "agent cost error finish mode model modelID parentID path providerID role structured summary system tokens "
            "variant"
        ),
        "text": "ignored synthetic text",
        "reasoning": "text",
        "tool": "callID state tool",
        "file": "filename mime source url",
        "agent": "name source",
        "subtask": "agent command description model prompt",
        "snapshot": "snapshot",
        "patch": "files hash",
        "retry": "attempt error",
        "step-start": "snapshot",
        "step-finish": "cost reason snapshot tokens",
        "compaction": "auto overflow tail_start_id",
    },
    "id messageID metadata sessionID time type",
)
"""By the role of a message, or the type of a part."""


def strange_in(message: Message) -> Strange:
    """The fields of a message and its parts that are not known."""
    found: Strange = {}
    FIELDS.count(found, word(message.data.get("role")) or "message", message.data)
    for part in message.parts:
        FIELDS.count(found, part.kind, part.data)
    return found

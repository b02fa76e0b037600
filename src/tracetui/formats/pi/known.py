"""Which fields of pi's entries are known: by files of 0.74.2 and of version 1, and by what pi documents."""

from __future__ import annotations

from typing import Final

from tracetui.formats.fields import Envelope, Fields, Strange
from tracetui.formats.pi.records import SESSION, Record, kind_of
from tracetui.formats.scalars import child, word

ENVELOPE: Final = Envelope("message", "id parentId timestamp type")
FIELDS: Final = Fields(
    {
        SESSION: "branchedFrom cwd modelId parentSession provider thinkingLevel version",
        "compaction": "details firstKeptEntryId fromHook summary tokensBefore usage",
        "branch_summary": "details fromHook fromId summary usage",
        "model_change": "modelId provider",
        "thinking_level_change": "thinkingLevel",
        "label": "label targetId",
        "session_info": "name",
        "custom": "customType data",
        "custom_message": "content customType details display",
        "user": "content",
        "assistant": ("api content diagnostics errorMessage model provider responseId responseModel stopReason usage"),
        "toolResult": "content details isError toolCallId toolName usage",
        "bashExecution": ("cancelled command excludeFromContext exitCode fullOutputPath output truncated"),
    },
    "id parentId role timestamp type",
)
"""By the kind of the entry, or the role of its message. Of other kinds too little is known."""


def count_fields(strange: Strange, record: Record) -> None:
    """Count the fields of an entry that are not known."""
    kind = kind_of(record)
    if kind == "message":
        FIELDS.count(strange, word(child(record, "message").get("role")) or kind, ENVELOPE.names(record))
    else:
        FIELDS.count(strange, kind, record)

"""What a span brings into the context of the model calls after it, beyond its messages.

Formats state it (`tracetui.formats.base.Contextual`), `tracetui.analysis.context` counts it. *Content* is the kind of a
text in the context, such as ``prompt`` or ``result:Read``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

START: Final = "start"
"""What precedes the first message: system prompt, tool definitions, and memory that no record holds."""
MEMORY: Final = "memory"
PROMPT: Final = "prompt"
REPLY: Final = "reply"
THINKING: Final = "thinking"
TOOL_CALL: Final = "tool call"
ATTACHMENT: Final = "attachment"
IMAGE: Final = "image"
REPORT: Final = "report"
"""The result of a sub-agent."""
SUMMARY: Final = "summary"
AFTER_COMPACTION: Final = "after compaction"
NOT_RECORDED: Final = "not recorded"
RESULT: Final = "result:"
"""Prefix of the content of a tool result; the name of the tool follows."""


class Cause:
    """Why a call did not read what the previous one had cached."""

    COMPACTION: Final = "compaction"
    CLEARED: Final = "results cleared"
    MODEL: Final = "model"
    EDITED: Final = "edited prefix"
    IDLE: Final = "idle"
    TOOLS: Final = "tools"
    SYSTEM: Final = "system prompt"
    THINKING_SETTING: Final = "thinking setting"
    THINKING_DROPPED: Final = "thinking dropped"
    RESUME: Final = "resume"
    MODE: Final = "mode"
    INTERRUPTED: Final = "interrupted"
    LONG_STEP: Final = "long step"
    UNKNOWN: Final = "unknown"
    OTHER: Final = "other"
    """One that the trace states in other words."""


CAUSES: Final = (
    Cause.COMPACTION, Cause.CLEARED, Cause.MODEL, Cause.EDITED, Cause.IDLE, Cause.TOOLS, Cause.SYSTEM,
    Cause.THINKING_SETTING, Cause.THINKING_DROPPED, Cause.RESUME, Cause.MODE, Cause.INTERRUPTED, Cause.LONG_STEP,
    Cause.OTHER, Cause.UNKNOWN,
)  # fmt: skip
"""The best known cause first."""


class Hidden(msgspec.Struct, frozen=True, gc=False):
    """A thought of which only the signature is recorded, of so many characters."""

    characters: int


class ContextItem(msgspec.Struct, frozen=True, gc=False):
    """A text, or other value, that enters the context."""

    content: str
    value: Any = None
    file: str | None = None
    """Path of the file that it shows."""
    key: str | None = None
    """Id of its record or tool call: the same key never enters twice."""
    tokens: int | None = None
    """Recorded tokens; None: estimated from `value`."""


class ContextFacts(msgspec.Struct, frozen=True):
    """What the records of a span say about the context. For a model call: about that call."""

    items: tuple[ContextItem, ...] | None = None
    """All that enters with the span; None: its messages, or the result of its tool call."""
    compacts: bool = False
    """The conversation so far leaves the context: before the items enter; for a model call, with its answer."""
    kept_from: str | None = None
    """Id of the first span whose texts a compaction keeps; None: it keeps none, or that isn't recorded."""
    cleared: frozenset[str] = frozenset()
    """Keys of items that leave the context."""
    settings: tuple[tuple[str, str], ...] = ()
    """Pairs of a `Cause` and a value: the cause is a sign of a break if the value differs at the next call."""
    defaults: tuple[tuple[str, str], ...] = ()
    """As `settings`, unless there is a value already."""
    signs: frozenset[str] = frozenset()
    """Causes of which the span itself is a sign."""
    reported: str | None = None
    """The recorded reason why the call missed the cache, in the words of the trace."""
    cause: str | None = None
    """The `Cause` that `reported` means."""
    cache_seconds: int | None = None
    """How long the cache of the latest call lasts, where the trace records it."""
    partial_output: bool = False
    """The output tokens of the call may be incomplete."""
    entered_at: float | None = None
    """When it entered (UTC seconds); None: at the end of the span."""


NO_FACTS: Final = ContextFacts()

"""What records of Claude Code say about the context: attachments, compactions, and signs of a lost cache.

Facts from 284 sessions of versions 2.0 to 2.1: a command or skill runs without thinking (its prompt is a *meta* record
of blocks), other prompts name their thinking setting; a resumed session begins with another version, or with an answer
that the program made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tracetui.formats.agent_log import CHAT, EXECUTE_TOOL, META
from tracetui.formats.bodies import as_json, blocks_of, type_of
from tracetui.formats.claude_code.records import SYNTHETIC
from tracetui.formats.decode import record_on
from tracetui.formats.scalars import child, mapping, moment, text
from tracetui.model import Blob, Body, Reasoning, Span, Status, Text, ToolCall
from tracetui.model.context import (
    ATTACHMENT,
    IMAGE,
    MEMORY,
    PROMPT,
    REPLY,
    REPORT,
    SUMMARY,
    THINKING,
    TOOL_CALL,
    Cause,
    ContextFacts,
    ContextItem,
    Hidden,
)

_AGENT_TOOLS: Final = frozenset({"Task", "Agent"})
_REPORTED: Final = {
    "model_changed": Cause.MODEL,
    "system_changed": Cause.SYSTEM,
    "tools_changed": Cause.TOOLS,
    "messages_changed": Cause.EDITED,
}
_NO_REASON: Final = frozenset({"none", "unavailable", "previous_message_not_found"})
_TOOL_LISTS: Final = frozenset(
    {"deferred_tools_delta", "agent_listing_delta", "mcp_instructions_delta", "skill_listing"}
)
_NOT_SENT: Final = frozenset({"hook_success", "budget_usd", "command_permissions"})
"""Attachments that the model does not get."""
_NO_TEXT: Final = frozenset({"type", "toolUseID", "hookName", "hookEvent", "command", "stderr", "stdout"})
_OFF: Final = "off"


def context_of(span: Span, body: Body) -> ContextFacts | None:
    """What a span says about the context; None: nothing but its messages."""
    if span.operation is CHAT:
        return _call(span, body)
    attributes = body.attributes
    if span.operation is EXECUTE_TOOL:
        settings = _settings(attributes, "version")
        at = moment(text(attributes.get("record.timestamp")) or text(attributes.get("timestamp")))
        items = None
        if span.name in _AGENT_TOOLS and body.output is not None:
            items = (ContextItem(REPORT, body.output, key=span.id),)
        return ContextFacts(items, settings=settings, entered_at=at)
    if span.operation is META:
        return _notes(attributes)
    if attributes.get("type") == "user":
        return _message(body)
    if attributes.get("type") in ("system", "attachment"):
        return _notes({"": attributes})
    return None


# ---- model calls


def _call(span: Span, body: Body) -> ContextFacts:
    message = mapping(body.attributes.get("message"))
    items = list(_answer(body))
    signs = set()
    if message.get("model") == SYNTHETIC and span.status is not Status.ERROR:
        signs.add(Cause.RESUME)
    said = text(child(child(message, "diagnostics"), "cache_miss_reason").get("type"))
    if said in _NO_REASON:
        said = None
    if child(message, "context_management").get("applied_edits"):
        signs.add(Cause.CLEARED)
    finished = any(answer.finish_reason is not None for answer in body.output_messages)
    return ContextFacts(
        tuple(items),
        settings=_settings(body.attributes, "version"),
        signs=frozenset(signs),
        reported=said,
        cause=_REPORTED.get(said or ""),
        partial_output=not finished,
    )


def _answer(body: Body) -> Iterator[ContextItem]:
    for message in body.output_messages:
        for part in message.parts:
            if isinstance(part, Text):
                yield ContextItem(REPLY, part.text)
            elif isinstance(part, Reasoning):
                yield ContextItem(THINKING, part.text)
            elif isinstance(part, ToolCall):
                yield ContextItem(TOOL_CALL, part.arguments)
            elif isinstance(part, Blob) and "thinking" in part.kind:
                yield ContextItem(THINKING, Hidden(len(text(mapping(part.data).get("data")) or "")))
    for name, block in body.attributes.items():
        if name.startswith("content[") and type_of(block) == "thinking" and "thinking" in block:
            yield ContextItem(THINKING, Hidden(len(text(block.get("signature")) or "")))


# ---- messages


def _message(body: Body) -> ContextFacts:
    record = body.attributes
    texts = [part.text for message in body.input_messages for part in message.parts if isinstance(part, Text)]
    is_summary = record.get("isCompactSummary") is True
    is_meta = record.get("isMeta") is True
    settings = [*_settings(record, "version"), *_settings(record, "permissionMode", Cause.MODE)]
    thinking = record.get("thinkingMetadata")
    defaults: tuple[tuple[str, str], ...] = ()
    if thinking is not None:
        settings.append((Cause.THINKING_SETTING, as_json(thinking)))
    elif not _has_blocks(body.raw):
        defaults = ((Cause.THINKING_SETTING, _OFF),)
    elif is_meta and not is_summary and texts:
        settings.append((Cause.THINKING_SETTING, _OFF))
    signs = {sign for line in texts for beginnings, sign in _SIGNS if line.startswith(beginnings)}
    items = tuple(_items(body, is_summary=is_summary, is_meta=is_meta))
    if record.get("isVisibleInTranscriptOnly") is True and not is_summary:
        items = ()
    at = moment(text(record.get("timestamp")))
    return ContextFacts(
        items,
        compacts=is_summary,
        settings=tuple(settings),
        defaults=defaults,
        signs=frozenset(signs),
        entered_at=at,
    )


_SIGNS: Final = (
    (("[Request interrupted",), Cause.INTERRUPTED),
    (("<command-name>/exit",), Cause.RESUME),
    (("<command-name>/mcp", "<command-name>/plugin"), Cause.TOOLS),
)
"""Beginnings of texts in the user's name, and the causes of which they are signs."""


def _items(body: Body, *, is_summary: bool, is_meta: bool) -> Iterator[ContextItem]:
    for message in body.input_messages:
        for part in message.parts:
            if isinstance(part, Text):
                added = is_meta or part.text.startswith("<system-reminder>")
                yield ContextItem(SUMMARY if is_summary else ATTACHMENT if added else PROMPT, part.text)
            elif isinstance(part, Blob):
                yield ContextItem(IMAGE) if part.kind == "image" else ContextItem(ATTACHMENT, part.data)


def _has_blocks(raw: bytes) -> bool:
    """Whether the content of a message is a list of blocks, not a text."""
    return isinstance(child(record_on(raw), "message").get("content"), list)


# ---- attachments and events of the program


def _notes(records: dict[str, Any]) -> ContextFacts | None:
    items: list[ContextItem] = []
    signs: set[str] = set()
    cleared: set[str] = set()
    settings: tuple[tuple[str, str], ...] = ()
    compacts, at = False, None
    for record in map(mapping, records.values()):
        kind, when = record.get("type"), moment(text(record.get("timestamp")))
        if kind == "attachment":
            attachment = mapping(record.get("attachment"))
            item = _attachment(attachment, text(record.get("uuid")))
            if item is not None:
                items.append(item)
            at = when or at
            is_change = attachment.get("type") in _TOOL_LISTS and not attachment.get("isInitial")
            if is_change and (attachment.get("addedNames") or attachment.get("removedNames")):
                signs.add(Cause.TOOLS)
        elif kind == "permission-mode":
            settings = _settings(record, "permissionMode", Cause.MODE)
        elif kind == "system":
            subtype, content = record.get("subtype"), text(record.get("content")) or ""
            compacts |= subtype == "compact_boundary"
            if subtype == "microcompact_boundary":
                ids = child(record, "microcompactMetadata").get("compactedToolIds")
                cleared.update(ident for ident in blocks_of(ids) if isinstance(ident, str))
            elif subtype == "session_start":
                signs.add(Cause.RESUME)
            elif subtype == "local_command" and ("/mcp" in content or "/plugin" in content):
                signs.add(Cause.TOOLS)
    if not (items or signs or cleared or compacts or settings or at):
        return None
    return ContextFacts(
        tuple(items),
        compacts=compacts,
        cleared=frozenset(cleared),
        settings=settings,
        signs=frozenset(signs),
        entered_at=at,
    )


def _attachment(attachment: dict[str, Any], key: str | None) -> ContextItem | None:
    kind = attachment.get("type")
    if kind in _NOT_SENT:
        return None
    if kind == "nested_memory":
        content = attachment.get("content")
        value = content.get("content") if isinstance(content, dict) else content
        return ContextItem(MEMORY, value, text(attachment.get("path")), key)
    if kind in _TOOL_LISTS:
        value = [attachment[name] for name in ("addedLines", "addedBlocks", "content") if attachment.get(name)]
        return ContextItem(ATTACHMENT, value, key=key)
    file = text(attachment.get("filename")) if kind in ("file", "edited_text_file") else None
    value = {name: item for name, item in attachment.items() if name not in _NO_TEXT}
    return ContextItem(ATTACHMENT, value, file if kind == "file" else None, key)


def _settings(record: dict[str, Any], name: str, cause: str = Cause.RESUME) -> tuple[tuple[str, str], ...]:
    value = text(record.get(name)) or text(record.get(f"record.{name}"))
    return ((cause, value),) if value else ()

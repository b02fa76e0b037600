"""What the records of a rollout are called, which of them tell the same thing, and how each looks in one line."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from tracetui.formats.codex.records import Record, text_in
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import child, sequence, string, word
from tracetui.model import PREVIEW

CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Items that are calls with an output to come."""
DONE_CALLS: Final = frozenset({"web_search_call", "image_generation_call"})
"""Items that are calls of tools on the model's side: no output comes."""
SAID: Final = frozenset(
    {"AgentMessage", "Reasoning", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"}
)
"""Events that repeat what the model said."""
HEARD: Final = frozenset({"UserMessage", "user_message"})
"""Events that repeat what the user said."""
_ITEMS: Final = frozenset(
    {
        "CommandExecution",
        "McpToolCall",
        "FileChange",
        "WebSearch",
        "CollabAgentToolCall",
        "ImageView",
        "ImageGeneration",
    }
    | {"DynamicToolCall", "Extension"}
)
_STEMS: Final = {
    "CommandExecution": "exec_command",
    "exec_command": "exec_command",
    "FileChange": "apply_patch",
    "patch_apply": "apply_patch",
    "WebSearch": "web_search",
    "web_search": "web_search",
    "ImageView": "view_image",
    "view_image_tool_call": "view_image",
    "ImageGeneration": "image_generation",
    "image_generation": "image_generation",
    "mcp_tool_call": "mcp_tool_call",
    "dynamic_tool_call": "dynamic_tool_call",
    "collab_agent_spawn": "spawn_agent",
    "collab_agent_interaction": "send_input",
    "collab_waiting": "wait",
    "collab_close": "close_agent",
    "collab_resume": "resume_agent",
}
_SUFFIX: Final = re.compile(r"_(?:begin|end|request|response|output_delta)$")
KNOWN: Final = frozenset(
    {"world_state", "turn_context", "compacted", "session_meta", "inter_agent_communication_metadata", "ghost_snapshot"}
    | {"agent_message", "compaction", "compaction_summary", "compaction_trigger", "other", "additional_tools"}
    | {
        "thread_settings_applied",
        "context_compacted",
        "error",
        "warning",
        "stream_error",
        "background_event",
        "token_count",
    }
    | {"thread_goal_updated", "thread_name_updated", "thread_rolled_back", "entered_review_mode", "exited_review_mode"}
    | {"guardian_assessment", "guardian_warning", "sub_agent_activity", "undo_started", "undo_completed", "turn_diff"}
    | {
        "plan_update",
        "plan_delta",
        "Plan",
        "model_reroute",
        "deprecation_notice",
        "shutdown_complete",
        "token_usage_record",
    }
    | {"EnteredReviewMode", "ExitedReviewMode", "ContextCompaction", "HookPrompt", "session_configured", "item_started"}
    | {"task_complete", "turn_aborted", "task_started", "Sleep", "SubAgentActivity", "state"}
)
"""Records that stand for themselves: shown as they are, and nothing to report."""
_CONTEXT: Final = re.compile(r"<([A-Za-z_][\w-]{0,60})>")
_AGENTS: Final = "# AGENTS.md instructions"
_FILE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_ARGUMENTS: Final = (
    "cmd",
    "command",
    "query",
    "path",
    "file_path",
    "pattern",
    "url",
    "message",
    "prompt",
    "input",
    "task_name",
)
"""Arguments that tell one call from the next, the most telling first."""


def is_known(record: Record) -> bool:
    """Whether this version knows records of that kind."""
    name = record.name
    known = name in KNOWN or name in CALLS or name in DONE_CALLS or name in SAID or name in HEARD or name in _ITEMS
    return known or name in ("message", "reasoning") or name.endswith("_output") or _SUFFIX.sub("", name) in _STEMS


def tool_of(record: Record) -> tuple[str, str] | None:
    """(id of the call, name of the tool) that an event tells of; None for other events."""
    item = record.payload.get("item")
    if record.type == "item_completed" or record.type == "item_started":
        ident = word(child(record.payload, "item").get("id"))
        return (ident, _tool_name(record.name, item)) if ident and record.name in _ITEMS else None
    ident = word(record.payload.get("call_id")) or word(record.payload.get("callId"))
    stem = _SUFFIX.sub("", record.type)
    return (ident, _tool_name(stem, record.payload)) if ident and stem in _STEMS else None


def _tool_name(kind: str, told: Any) -> str:
    """``server.tool`` of a call through MCP, the tool where one is named, else what the kind stands for."""
    invocation = child(told, "invocation") or (told if isinstance(told, dict) else {})
    server, tool = word(invocation.get("server")), word(invocation.get("tool"))
    if tool is not None:
        return (f"{server}.{tool}" if server else tool)[:PREVIEW]
    return _STEMS.get(kind) or (string(invocation.get("kind")) or kind)[:PREVIEW]


def context_of(record: Record, text: str) -> str | None:
    """What a message of role user is that no user wrote (``environment_context``, ``AGENTS.md``); None for a prompt."""
    told = child(record.payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    kinds = [kind for kind in sequence(told) if isinstance(kind, str)]
    if any(kind.startswith("user.") for kind in kinds):
        return None
    if text.startswith(_AGENTS):
        return "AGENTS.md"
    begin = _CONTEXT.match(text.lstrip()[:PREVIEW])
    if begin is not None and text.rstrip().endswith(f"</{begin[1]}>"):
        return begin[1]
    kind = string(record.payload.get("kind"))
    if kind not in (None, "plain", ""):
        return kind
    return "context" if kinds and kinds != ["unknown"] else None


def said(record: Record) -> tuple[str | None, str, bool]:
    """(id, text, whether it is a thought) of an item or event that is what the model said."""
    told = child(record.payload, "item") or record.payload
    ident, kind = word(told.get("id")), record.name
    if kind in ("reasoning", "Reasoning"):
        thought = text_in(told.get("summary")) or text_in(told.get("summary_text")) or text_in(told.get("content"))
        return ident, thought or text_in(told.get("raw_content")), True
    if kind in ("message", "AgentMessage"):
        return ident, text_in(told.get("content")), False
    return None, string(told.get("message")) or string(told.get("text")) or "", kind != "agent_message"


def arguments(payload: dict[str, Any]) -> Any:
    """What a call was made with, decoded."""
    for name in ("arguments", "input", "action"):
        value = payload.get(name)
        if value is not None:
            return decode_value(value) if isinstance(value, str) and name == "arguments" else value
    return None


def call_preview(value: Any) -> str:
    """What tells a call from the next one."""
    if isinstance(value, str):
        touched = _FILE.search(value[:4096])
        return (touched[1] if touched else value.lstrip().partition("\n")[0])[:PREVIEW]
    if not isinstance(value, dict):
        return "" if value is None else _json(value)
    for name in _ARGUMENTS:
        found = value.get(name)
        if isinstance(found, list) and found and all(isinstance(part, str) for part in found):
            shell = len(found) == 3 and found[1] in ("-lc", "-c")
            return (found[2] if shell else " ".join(part[:PREVIEW] for part in found[:PREVIEW]))[:PREVIEW]
        if isinstance(found, str) and found:
            return found[:PREVIEW]
    return _json(value) if value else ""


def event_preview(record: Record) -> str:
    """The same of a call of which only an event tells."""
    told = child(record.payload, "item") or record.payload
    within = child(told, "invocation").get("arguments", told.get("arguments"))
    if within is not None:
        return call_preview(within)
    changes = told.get("changes")
    if isinstance(changes, dict) and changes:
        return str(next(iter(changes)))[:PREVIEW]
    return call_preview({name: told[name] for name in _ARGUMENTS if isinstance(told.get(name), str | list)})


def row_preview(record: Record) -> str:
    """What a record that stands for itself says."""
    told = child(record.payload, "item") or record.payload
    for name in ("message", "reason", "thread_name", "text", "user_facing_hint", "model", "status"):
        found = told.get(name)
        if isinstance(found, str) and found:
            return found[:PREVIEW]
    settings, goal = child(told, "thread_settings"), child(told, "goal")
    return (string(settings.get("model")) or string(goal.get("objective")) or text_in(told.get("content")))[:PREVIEW]


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value)[: PREVIEW * 4].decode("utf-8", "ignore")[:PREVIEW]
    except orjson.JSONEncodeError:  # lone surrogates, depth, integers over 64 bits
        return repr(value)[:PREVIEW] if isinstance(value, int) else "…"

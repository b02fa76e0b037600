"""What the events of a session are called, and how each looks in one line."""

from __future__ import annotations

import re
from typing import Any, Final

from tracetui.formats.calls import argument
from tracetui.formats.copilot.records import Event, whole
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import child, string
from tracetui.model import PREVIEW

START: Final = "session.start"
END: Final = "session.shutdown"
ABORT: Final = "abort"
_SESSION: Final = (
    "start resume remote_steerable_changed error idle title_changed schedule_created schedule_cancelled "
    "schedule_rearmed autopilot_objective_changed info warning model_change mode_changed mode_notice_delivered "
    "session_limits_changed permissions_changed plan_changed todos_changed workspace_file_changed handoff truncation "
    "snapshot_rewind shutdown usage_checkpoint usage_record usage_info context_changed context_cleared "
    "compaction_start compaction_complete task_complete auto_mode_resolved managed_settings_resolved "
    "managed_settings_enforced tools_updated background_tasks_changed skills_loaded custom_agents_updated "
    "custom_notification mcp_servers_loaded mcp_server_status_changed extensions_loaded binary_asset canvas.opened "
    "canvas.closed canvas.recorded canvas.removed canvas.unavailable canvas.registry_changed "
    "extensions.attachments_pushed fusion_route_started fusion_route_failed fusion_resolved fusion_completed"
)
_OTHERS: Final = {
    "assistant": "turn_start turn_end message message_start message_delta streaming_delta tool_call_delta intent "
    "reasoning reasoning_delta usage idle server_tool_progress fusion_phase_started fusion_phase_completed "
    "fusion_phase_failed",
    "tool": "user_requested execution_start execution_partial_result execution_progress execution_complete",
    "subagent": "started configured completed failed selected deselected",
    "hook": "start end progress",
    "system": "message notification",
    "user": "message",
    "model": "call_failure call_finished model_call_failure",
    "permission": "requested completed",
    "user_input": "requested completed",
    "elicitation": "requested completed",
    "sampling": "requested completed",
    "external_tool": "requested completed",
    "exit_plan_mode": "requested completed",
    "auto_mode_switch": "requested completed",
    "session_limits_exhausted": "requested completed",
    "mcp": "oauth_required oauth_completed headers_refresh_required headers_refresh_completed tools.list_changed "
    "resources.list_changed prompts.list_changed",
    "command": "queued execute completed",
    "factory": "run_updated run_started run_settled",
    "skill": "invoked",
    "tool_search": "activated",
    "commands": "changed",
    "capabilities": "changed",
    "pending_messages": "modified",
    "ui": "ephemeral_query",
    "mcp_app": "tool_call_complete",
}
KINDS: Final = frozenset(
    {f"{group}.{name}" for group, names in {"session": _SESSION, **_OTHERS}.items() for name in names.split()} | {ABORT}
)
"""Kinds of events that are known, of those that are written and those that are not said to be."""

GOES_ON: Final = re.compile(r"session\.resume|(?:user|assistant|tool|subagent)\..+")
"""Events after which a session that was shut down goes on."""
QUIET: Final = frozenset({"stop", "tool_calls", "end_turn", "tool_use", "stop_sequence"})
"""Why a response ended, where that goes without saying."""
CUT: Final = frozenset({"length", "content_filter", "max_tokens", "refusal"})
"""Why a response ended before it was whole."""
_TEXTS: Final = ("message", "content", "summary", "intent", "title", "name", "reason", "error", "newModel", "path")


def arguments(told: dict[str, Any]) -> Any:
    """What a tool is called with; some versions write it as JSON inside a text."""
    given = told.get("arguments")
    return decode_value(given) if isinstance(given, str) else given


def call_preview(told: dict[str, Any]) -> str:
    """What tells a call from the next one."""
    return argument(arguments(told))


def row_preview(event: Event) -> str:
    """An event in one line: what it says about itself."""
    data = event.data
    if event.kind == "session.model_change":
        before, after = string(data.get("previousModel")), string(data.get("newModel"))
        return (f"{before} → {after}" if before and after else after or "")[:PREVIEW]
    if event.kind == "session.truncation":
        return fewer(data.get("preTruncationTokensInMessages"), data.get("postTruncationTokensInMessages"))
    if event.kind == END:
        return (string(data.get("shutdownType")) or "")[:PREVIEW]
    if event.kind == "session.permissions_changed":
        mode = data.get("allowAllPermissionMode", data.get("mode"))
        return f"allow all: {mode}"[:PREVIEW] if isinstance(mode, str) else ""
    return next((text.strip()[:PREVIEW] for name in _TEXTS if (text := string(data.get(name)))), "")


def fewer(before: Any, after: Any) -> str:
    """``150000 → 20000 tokens``, as far as it is told."""
    counts = [str(count) for count in (whole(before), whole(after)) if count is not None]
    return f"{' → '.join(counts)} tokens" if counts else ""


def permission_preview(data: dict[str, Any]) -> str:
    """What is asked for."""
    asked = child(data, "permissionRequest")
    names = ("fullCommandText", "path", "fileName", "url", "toolName", "intention", "kind")
    return next((text[:PREVIEW] for name in names if (text := string(asked.get(name)))), "")

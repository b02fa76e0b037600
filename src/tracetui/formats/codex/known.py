"""Which fields of the records of a rollout are known: by files of 0.50 to 0.169.0."""

from __future__ import annotations

from typing import Final

from tracetui.formats.fields import Envelope, Fields

ENVELOPE: Final = Envelope("payload", "timestamp ordinal type")
FIELDS: Final = Fields(
    {
        "session_meta": (
            "account_scoped agent_nickname agent_path agent_role base_instructions cli_version context_window cwd "
            "dynamic_tools forked_from_id forked_from_ordinal_exclusive git history_base history_mode id instructions "
            "memory_mode model_provider multi_agent_version originator parent_thread_id runtime_workspace_roots "
            "session_id source thread_source timestamp"
        ),
        "turn_context": (
            "active_permission_profile approval_policy approvals_reviewer base_instructions collaboration_mode "
            "comp_hash current_date cwd developer_instructions disabled_plugin_ids effort file_system_sandbox_policy "
            "final_output_json_schema model multi_agent_mode multi_agent_version network permission_profile "
            "personality realtime_active root_turn_id sandbox_policy summary timezone truncation_policy turn_id "
            "user_instructions workspace_roots"
        ),
        "world_state": "full state",
        "compacted": ("first_window_id message previous_window_id replacement_history window_id window_number"),
        "token_usage_record": (
            "response_id root_turn_id session_id thread_id thread_token_usage turn_id turn_token_usage usage"
        ),
        "message": "content end_turn phase role status",
        "reasoning": "content encrypted_content summary",
        "function_call": "arguments call_id name namespace status",
        "function_call_output": "call_id output",
        "custom_tool_call": "call_id input name status",
        "custom_tool_call_output": "call_id name output",
        "local_shell_call": "action call_id status",
        "tool_search_call": "arguments call_id execution status",
        "tool_search_output": "call_id execution status tools",
        "web_search_call": "action status",
        "image_generation_call": "result revised_prompt status",
        "ghost_snapshot": "ghost_commit",
        "agent_message": "author content memory_citation message phase recipient",
        "agent_reasoning": "text",
        "agent_reasoning_raw_content": "text",
        "user_message": "audio client_id images kind local_audio local_images message text_elements",
        "task_started": (
            "collaboration_mode_kind model_context_window root_turn_id started_at turn_attribution turn_id"
        ),
        "task_complete": (
            "completed_at duration_ms error last_agent_message root_turn_id started_at time_to_first_token_ms turn_id"
        ),
        "turn_aborted": "completed_at duration_ms reason root_turn_id started_at turn_id",
        "token_count": "info rate_limits",
        "item_completed": "completed_at_ms item started_at_ms thread_id turn_id",
        "error": "codex_error_info error message",
        "context_compacted": "",
        "thread_settings_applied": "thread_id thread_settings",
        "exec_command_end": (
            "aggregated_output call_id command cwd duration exit_code formatted_output interaction_input parsed_cmd "
            "process_id source status stderr stdout turn_id"
        ),
        "mcp_tool_call_end": (
            "action_name app_name call_id connector_id duration invocation link_id plugin_id read_only_hint result"
        ),
        "patch_apply_end": "call_id changes status stderr stdout success turn_id",
        "web_search_end": "action call_id query results",
        "view_image_tool_call": "call_id path",
    },
    "id internal_chat_message_metadata_passthrough metadata type",
)
"""By the type of the payload, or the kind of the record. Of other kinds too little is known."""

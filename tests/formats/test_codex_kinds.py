"""Every kind of record that Codex's protocol defines (2025 to November 2026) is known, also those not kept in files."""

from __future__ import annotations

from pathlib import Path

from tests.formats.codex_build import Record, counts, done, encoded, event, item, message, meta, record
from tracetui.formats.codex import Codex
from tracetui.model import Operation, Run, RunRef
from tracetui.testing import read_run

LINES = """
    compacted inter_agent_communication inter_agent_communication_metadata realtime_item retained_context
    security_risk_score session_meta token_usage_record turn_context world_state
"""
ITEMS = """
    additional_tools agent_message compaction compaction_summary compaction_trigger configuration_update
    context_compaction custom_tool_call custom_tool_call_output function_call function_call_output ghost_snapshot
    image_generation_call local_shell_call message other reasoning tool_search_call tool_search_output web_search_call
"""
COMPLETED = """
    AgentMessage CollabAgentToolCall CommandExecution ContextCompaction DynamicToolCall EnteredReviewMode
    ExitedReviewMode Extension FileChange FunctionCallOutput HookPrompt ImageGeneration ImageView McpToolCall Plan
    Reasoning Sleep SubAgentActivity UserAgentControl UserMessage WebSearch
"""
EVENTS = """
    agent_message agent_message_content_delta agent_message_delta agent_reasoning agent_reasoning_delta
    agent_reasoning_raw_content agent_reasoning_raw_content_delta agent_reasoning_section_break
    apply_patch_approval_request auth_recovery_completed auth_recovery_started background_event
    collab_agent_interaction_begin collab_agent_interaction_end collab_agent_spawn_begin collab_agent_spawn_end
    collab_close_begin collab_close_end collab_resume_begin collab_resume_end collab_waiting_begin collab_waiting_end
    context_compacted conversation_path deprecation_notice dynamic_tool_call_request dynamic_tool_call_response
    elicitation_request entered_review_mode environment_connected environment_disconnected error exec_approval_request
    exec_command_begin exec_command_end exec_command_output_delta exited_review_mode get_history_entry_response
    guardian_assessment guardian_warning hook_completed hook_started image_generation_begin image_generation_end
    item_started list_custom_prompts_response list_remote_skills_response list_skills_response mcp_list_tools_response
    mcp_startup_complete mcp_startup_update mcp_tool_call_begin mcp_tool_call_end mcp_tool_call_progress model_reroute
    model_verification patch_apply_begin patch_apply_end patch_apply_updated plan_delta plan_update
    raw_response_completed raw_response_item realtime_conversation_closed realtime_conversation_list_voices_response
    realtime_conversation_realtime realtime_conversation_sdp realtime_conversation_started reasoning_content_delta
    reasoning_raw_content_delta remote_skill_downloaded request_permissions request_user_input safety_buffering
    session_configured shutdown_complete skills_update_available stream_error sub_agent_activity task_complete
    task_started terminal_interaction thread_goal_updated thread_name_updated thread_queue_changed thread_rolled_back
    thread_settings_applied token_count turn_aborted turn_complete turn_diff turn_moderation_metadata turn_started
    undo_completed undo_started user_message view_image_tool_call warning web_search_begin web_search_end
"""


def read(tmp_path: Path, *records: Record) -> Run:
    path = tmp_path / "rollout-2026-03-02T09-15-00-019cadd4-5620-7001-8000-000000000001.jsonl"
    path.write_bytes(encoded([meta(), *records]))
    return read_run(Codex(), RunRef("codex", str(path)))


def test_every_kind_of_the_protocol_is_known(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        *(record(name, {}) for name in LINES.split()),
        *(item(name, id=name, call_id=f"{name} 1") for name in ITEMS.split()),
        *(done(name, id=name) for name in COMPLETED.split()),
        *(event(name, call_id=f"{name} 2") for name in EVENTS.split()),
        event("gust"),
    )
    assert [span.name for span in run.spans if span.operation is Operation.UNKNOWN] == ["gust"]
    assert run.summary.ledger.kinds == (("gust", 1),)


def test_preview_of_a_message_between_agents_is_its_text(tmp_path: Path) -> None:
    payload = {"author": "/root", "recipient": "/root/scout", "content": "Count the apples.", "trigger_turn": True}
    [row] = (row for row in read(tmp_path, record("inter_agent_communication", payload)).spans if "agent" in row.name)
    assert row.preview == "Count the apples."


def test_a_turn_may_start_and_complete_by_its_newer_names(tmp_path: Path) -> None:
    run = read(tmp_path, event("turn_started", 1), message("user", "Hi", 2), event("turn_complete", 3))
    assert (run.spans[0].operation, run.spans[0].status_word) == (Operation.TURN, "task_complete")


def test_responses_have_the_service_tier_that_the_thread_asks_for(tmp_path: Path) -> None:
    records: list[Record] = []
    for number, tier in enumerate(("fast", "flex", "priority", "default", None), 1):
        settings = {"model": "gpt-5.5", **({} if tier is None else {"service_tier": tier})}
        records += (
            event("thread_settings_applied", thread_settings=settings),
            message("assistant", f"Answer {number}."),
            record("token_usage_record", {"usage": counts(number, 0, number)}),
        )
    run = read(tmp_path, *records)
    tiers = [span.tier for span in run.spans if span.operation is Operation.CHAT]
    assert tiers == ["priority", "flex", "priority", None, None]
    assert {usage.tier: usage.calls for usage in run.summary.model_usage} == {"priority": 2, "flex": 1, None: 2}

"""Which fields of events are known: by logs of 0.3.41 to 0.3.285, and by what Inspect declares."""

from __future__ import annotations

from typing import Final

from tracetui.formats.fields import Fields

_KINDS: Final = (
    "model tool subtask span_begin span_end step state store sample_init score score_edit error info logger input "
    "approval sandbox sample_limit compaction interrupt"
)
_ALL: Final = (
    "action agent agent_span_id approver arguments cache call changes cmd completed config data decision edit error "
    "event events explanation failed file function id input input_ansi input_refs intermediate internal interrupted "
    "limit message message_id metadata model model_usage modified name options output parent_id pending result retries "
    "role role_usage sample score score_name scorer scorer_args source span_id state style target timestamp "
    "tokens_after tokens_before tool_choice tools traceback traceback_ansi truncated type uuid view "
    "working_start working_time"
)
FIELDS: Final = Fields(dict.fromkeys(_KINDS.split(), _ALL))
"""By the kind of event. They share one list: so it is found out at no cost that a log has no others."""
KNOWN: Final = frozenset(_ALL.split())

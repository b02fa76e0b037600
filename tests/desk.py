"""Trials of a service desk as a Harbor job leaves them: refused calls, values in several writings, a wrong card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

Call = tuple[str, dict[str, Any], str]
"""Tool, arguments and result."""

PROMPT: Final = "Please change order W-2417 to 3 lamps, to arrive on May 20th. I have $1,250.00."
LOOKUP: Final[Call] = ("get_order", {"order_id": "W2417"}, '{"prices": [152, 103], "cards": ["card_481", "card_377"]}')
MODIFY: Final[Call] = ("modify_items", {"order_id": "W2417", "card": "card_481", "amount": 255}, "done")
REPEATED: Final[Call] = (
    "modify_items",
    {"order_id": "W2417", "card": "card_481", "amount": 1250},
    "Error: order W2417 is not pending",
)
INVENTED: Final[Call] = ("modify_address", {"order_id": "W9", "fee": 77}, "done")
OTHER_CARD: Final[Call] = ("modify_items", {"order_id": "W2417", "card": "card_377", "amount": 255}, "done")
DATED: Final[Call] = ("set_date", {"day": "2026-05-20"}, "done")

FAILED: Final = (LOOKUP, MODIFY, REPEATED, INVENTED, DATED)
PASSED: Final = (LOOKUP, OTHER_CARD)


def write_trial(folder: Path, name: str, calls: Sequence[Call], *, passed: bool, task: str = "change-order") -> Path:
    """Write a trial and return the file of its trajectory."""
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": PROMPT}]
    for number, (tool, arguments, result) in enumerate(calls, 2):
        call = {"tool_call_id": f"call-{number}", "function_name": tool, "arguments": arguments}
        results = [{"source_call_id": call["tool_call_id"], "content": result}]
        steps.append(
            {
                "step_id": number,
                "source": "agent",
                "message": "",
                "tool_calls": [call],
                "observation": {"results": results},
            }
        )
    agent = {"name": "desk", "version": "1", "model_name": "gpt-4o"}
    path = folder / name / "agent" / "trajectory.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"schema_version": "ATIF-v1.4", "session_id": name, "agent": agent, "steps": steps}))
    graded = {"task_name": task, "trial_name": name, "verifier_result": {"rewards": {"reward": float(passed)}}}
    (folder / name / "result.json").write_text(json.dumps(graded))
    return path


def write_desk(folder: Path) -> Path:
    """Write a failed trial and two passed ones, and return the file of the failed one."""
    for number in (1, 2):
        write_trial(folder, f"change-order__{number}", PASSED, passed=True)
    return write_trial(folder, "change-order__0", FAILED, passed=False)

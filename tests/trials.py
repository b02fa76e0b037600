"""A small set of repeated runs with outcomes: four trials of a task as a Harbor job leaves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

Call = tuple[str, dict[str, Any]]

LOOKUP: Final[Call] = ("get_user", {"user_id": "mia_li_3668"})
BOOKING: Final[Call] = ("get_reservation", {"reservation_id": "QX7LKB"})
SEARCH: Final[Call] = ("search_flights", {"origin": "JFK", "destination": "SEA", "date": "2026-05-20"})
LATER: Final[Call] = ("search_flights", {"origin": "JFK", "destination": "SEA", "date": "2026-05-21"})
BOOK: Final[Call] = ("update_reservation", {"reservation_id": "QX7LKB", "flight": "HAT083"})
REFUND: Final[Call] = ("send_certificate", {"user_id": "mia_li_3668", "amount": 150})
HUMAN: Final[Call] = ("transfer_to_human", {"summary": "cannot rebook"})

FOUR: Final[Sequence[tuple[Sequence[Call], bool | None]]] = (
    ((LOOKUP, BOOKING, SEARCH, BOOK), True),
    ((LOOKUP, BOOKING, SEARCH, BOOK, REFUND), False),
    ((LOOKUP, BOOKING, LATER, BOOK, REFUND), False),
    ((LOOKUP, HUMAN), False),
)
"""Calls and outcome of each trial: one leaves at step 2, one more at step 3, and one ends before another."""


def write_trials(
    folder: Path, trials: Sequence[tuple[Sequence[Call], bool | None]] = FOUR, task: str = "rebook-flight"
) -> None:
    """Write each trial as a folder of a Harbor job."""
    for number, (calls, passed) in enumerate(trials):
        name = f"{task}__{number}"
        (folder / name / "agent").mkdir(parents=True)
        (folder / name / "agent" / "trajectory.json").write_text(json.dumps(_trajectory(name, calls)))
        rewards = {} if passed is None else {"reward": float(passed)}
        result = {"task_name": task, "trial_name": name, "verifier_result": {"rewards": rewards}}
        (folder / name / "result.json").write_text(json.dumps(result))


def _trajectory(name: str, calls: Sequence[Call]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "Please move my flight by a day."}]
    for number, (tool, arguments) in enumerate(calls, 2):
        call = {"tool_call_id": f"{name}-{number}", "function_name": tool, "arguments": arguments}
        made = {"results": [{"source_call_id": call["tool_call_id"], "content": f"result {number}"}]}
        steps.append({"step_id": number, "source": "agent", "message": "", "tool_calls": [call], "observation": made})
    return {
        "schema_version": "ATIF-v1.4",
        "session_id": name,
        "agent": {"name": "desk", "version": "1", "model_name": "gpt-4o"},
        "steps": steps,
    }

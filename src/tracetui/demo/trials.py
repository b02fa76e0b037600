"""Sample trials as Harbor writes them: a help desk agent does ten tasks six times with each of two models.

In `refund-late`, who reads the policy first passes: that fork is decisive. In `swap-size` the first fork could be
chance. In `track-parcel` a trial gives a wrong answer after the same steps as the others.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from tracetui.demo.files import pretty, put, uid, zulu

Call = tuple[str, dict[str, Any], str]
MODELS: Final = ("oak-2", "oak-3")
"""The models, which are also the names of their folders."""
SYSTEM: Final = "You are the help desk of a mail-order shop. Follow its policy."
ORDER: Final = {"order_id": "W-2081"}
FIND: Final[Call] = (
    "find_order",
    ORDER,
    '{"item": "rain jacket", "paid": 84.0, "shipping": 6.5, "delivered": "12 days ago"}',
)
POLICY: Final[Call] = (
    "get_policy",
    {"topic": "refunds"},
    "Late parcels: refund the shipping. Refund items only when returned.",
)


class Task(NamedTuple):
    """A task, the ways to do it, and which way each trial takes."""

    prompt: str
    routes: dict[str, tuple[Call, ...]]
    trials: tuple[str, str]
    """For each model one letter a trial: the key of its route, as a capital letter if the trial passed."""


TASKS: Final = {
    "refund-late": Task(
        "My order W-2081 came nine days late. I want a refund.",
        {
            "p": (FIND, POLICY, ("refund", {**ORDER, "amount": 6.5}, "refunded 6.50")),
            "s": (FIND, ("refund", {**ORDER, "amount": 90.5}, "refunded 90.50")),
        },
        ("PPPPsP", "ssPsss"),
    ),
    "double-charge": Task(
        "I was charged twice for W-2081.",
        {
            "l": (
                ("list_payments", ORDER, '[{"id": "P-1", "amount": 90.5}, {"id": "P-2", "amount": 90.5}]'),
                ("get_payment", {"payment_id": "P-2"}, '{"status": "authorized, expires tomorrow"}'),
                ("release_payment", {"payment_id": "P-2"}, "released"),
            ),
            "r": (
                ("list_payments", ORDER, '[{"id": "P-1", "amount": 90.5}, {"id": "P-2", "amount": 90.5}]'),
                ("refund", {**ORDER, "amount": 90.5}, "refunded 90.50"),
            ),
        },
        ("LLLLRl", "rLrRlr"),
    ),
    "swap-size": Task(
        "The jacket of W-2081 is too small. Swap it for L, please.",
        {
            "c": (
                FIND,
                ("check_stock", {"item": "rain jacket", "size": "L"}, "3 in stock"),
                ("create_exchange", {**ORDER, "size": "L"}, "X-77 created"),
            ),
            "x": (FIND, ("create_exchange", {**ORDER, "size": "L"}, "X-77 created")),
            "o": (
                FIND,
                ("check_stock", {"item": "rain jacket", "size": "L"}, "3 in stock"),
                ("refund", {**ORDER, "amount": 84.0}, "refunded 84.00"),
            ),
        },
        ("CCxCcX", "xCcXxo"),
    ),
    "warranty": Task(
        "The zip of my jacket broke after a year (W-2081).",
        {
            "w": (
                FIND,
                ("get_warranty", {"item": "rain jacket"}, "2 years, wear excluded"),
                ("create_claim", {**ORDER, "reason": "zip"}, "C-12 created"),
            ),
            "n": (FIND, ("create_claim", {**ORDER, "reason": "zip"}, "C-12 created")),
            "d": (
                ("get_warranty", {"item": "rain jacket"}, "2 years, wear excluded"),
                ("transfer_to_human", {"summary": "zip broke after a year"}, "transferred"),
            ),
        },
        ("WWwnWd", "nWndwn"),
    ),
    "cancel-order": Task(
        "Cancel W-2081.",
        {
            "c": (FIND, ("cancel_order", ORDER, "delivered orders can't be canceled")),
            "k": (FIND, POLICY, ("cancel_order", ORDER, "delivered orders can't be canceled")),
        },
        ("CCKCCC", "CCcKCC"),
    ),
    "change-address": Task(
        "I moved to 5 Mill Lane. Send W-2081 there.",
        {
            "v": (
                FIND,
                ("validate_address", {"address": "5 Mill Lane"}, "valid"),
                ("update_address", {"address": "5 Mill Lane"}, "updated"),
            ),
            "a": (FIND, ("update_address", {"address": "5 Mill Lane"}, "updated")),
        },
        ("VVVAVV", "AVAVaV"),
    ),
    "track-parcel": Task(
        "Where is my parcel W-2081?",
        {"t": (FIND, ("track_parcel", ORDER, "delivered to a neighbor, 3 Mill Lane"))},
        ("TTTTTT", "TTTTTt"),
    ),
    "gift-card": Task(
        "Pay W-2081 with my gift card.",
        {
            "g": (
                ("get_balance", {"card": "G-40"}, "40.00"),
                ("apply_card", {**ORDER, "card": "G-40"}, "40.00 paid, 50.50 open"),
            ),
            "b": (
                ("get_balance", {"card": "G-40"}, "40.00"),
                POLICY,
                ("apply_card", {**ORDER, "card": "G-40"}, "40.00 paid, 50.50 open"),
            ),
        },
        ("GgGgbG", "GBGgBg"),
    ),
    "opening-hours": Task(
        "When are you open?",
        {"h": (("get_policy", {"topic": "opening hours"}, "Mon to Fri, 9 to 17"),)},
        ("HHHHHH", "HHHHHH"),
    ),
    "lost-parcel": Task(
        "My parcel W-2081 never came, and the neighbor doesn't have it.",
        {
            "t": (FIND, ("track_parcel", ORDER, "delivered to a neighbor, 3 Mill Lane")),
            "r": (FIND, ("refund", {**ORDER, "amount": 90.5}, "refunded 90.50")),
        },
        ("ttrttt", "rtrrtr"),
    ),
}


def write(folder: Path, now: datetime) -> None:
    """Write the trials below ``folder/oak-2`` and ``folder/oak-3``, the last one ending just before `now`."""
    start = now - timedelta(minutes=5 + 4 * len(TASKS) * len(MODELS) * 6)
    for number, model in enumerate(MODELS):
        for name, task in TASKS.items():
            for i, letter in enumerate(task.trials[number]):
                _write_trial(folder / model, name, i, letter, model, start)
                start += timedelta(minutes=4)


def _write_trial(folder: Path, name: str, number: int, letter: str, model: str, start: datetime) -> None:
    task = TASKS[name]
    trial = f"{name}__{number}{uid(f'{model} {name} {number}')[:6]}"
    calls = task.routes[letter.lower()]
    steps = _steps(task.prompt, calls, model, start)
    used = [step["metrics"] for step in steps if "metrics" in step]
    end = start + timedelta(seconds=4 * len(steps))
    trajectory = {
        "schema_version": "ATIF-v1.7",
        "session_id": uid(trial),
        "agent": {"name": "helpdesk", "version": "2.4.0", "model_name": model},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": sum(usage["prompt_tokens"] for usage in used),
            "total_completion_tokens": sum(usage["completion_tokens"] for usage in used),
            "total_cost_usd": round(sum(usage["cost_usd"] for usage in used), 6),
            "total_steps": len(steps),
        },
    }
    result = {
        "id": uid(f"result {trial}"),
        "task_name": name,
        "trial_name": trial,
        "source": "helpdesk-bench",
        "agent_info": {"name": "helpdesk", "version": "2.4.0", "model_info": {"name": model, "provider": "acme"}},
        "verifier_result": {"rewards": {"reward": float(letter.isupper())}},
        "exception_info": None,
        "started_at": zulu(start),
        "finished_at": zulu(end),
        "agent_execution": {"started_at": zulu(start), "finished_at": zulu(end)},
    }
    put(folder / trial / "agent" / "trajectory.json", pretty(trajectory), end)
    put(folder / trial / "result.json", pretty(result), end)


def _steps(prompt: str, calls: tuple[Call, ...], model: str, start: datetime) -> list[dict[str, Any]]:
    """System prompt and question, a step per call, and the answer."""
    steps: list[dict[str, Any]] = [{"source": "system", "message": SYSTEM}, {"source": "user", "message": prompt}]
    for i, (tool, arguments, answer) in enumerate(calls, 1):
        call = {"tool_call_id": f"call_{i}", "function_name": tool, "arguments": arguments}
        observation = {"results": [{"source_call_id": f"call_{i}", "content": answer}]}
        steps.append({"source": "agent", "message": "", "tool_calls": [call], "observation": observation})
    steps.append({"source": "agent", "message": f"Done: {calls[-1][2]}."})
    for i, step in enumerate(steps):
        step |= {"step_id": i + 1, "timestamp": zulu(start + timedelta(seconds=4 * i))}
        if step["source"] == "agent":
            given = 420 + 110 * i + (60 if model == MODELS[1] else 0)
            step["metrics"] = {"prompt_tokens": given, "completion_tokens": 48, "cost_usd": given * 2e-6 + 48 * 8e-6}
    return steps

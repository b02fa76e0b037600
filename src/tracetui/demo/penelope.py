"""Penelope: results of tests in which an agent talks to a chatbot until its goal is met, or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tracetui.demo.files import pretty, put, zulu

Json = dict[str, Any]
Turn = tuple[str, str, str | None]
"""The tester's reasoning, its message, and the target's answer (None: it failed)."""
Criterion = tuple[str, bool, str, list[int]]


@dataclass
class Test:
    """One test, ended at `ended`; times in its file are naive, as `ended` has them."""

    folder: str
    ended: datetime
    target: str
    goal: str
    status: str
    turns: list[Turn]
    criteria: list[Criterion]
    seconds: float = 2.1
    reason: str = ""

    @property
    def score(self) -> float:
        """Share of the criteria that were met, kept below 1 as a judge's confidence is."""
        return round(0.97 * sum(met for _, met, _, _ in self.criteria) / max(1, len(self.criteria)), 2)

    def at(self, turn: float) -> str:
        """Local time at which `turn` ended."""
        time = self.ended - timedelta(seconds=self.seconds * (len(self.turns) - turn))
        return time.replace(tzinfo=None).isoformat(timespec="microseconds")


def write(folder: Path, now: datetime) -> None:
    """Six tests of two chatbots; the last one as the documentation has it."""
    for test in (_coverage(now), _unmet(now), _refund(now), _timeout(now), _endless(now)):
        put(folder / "penelope" / test.folder / "test_result.json", pretty(_result(test)), test.ended)
    ended = now - timedelta(days=1, hours=2)
    put(folder / "penelope" / "documented" / "trace.json", pretty(_documented(ended)), ended)


def _coverage(now: datetime) -> Test:
    turns: list[Turn] = [
        ("Ask openly first.", "What insurance do you offer?", "We offer auto, home, life and health insurance."),
        (
            "Go deeper on cars.",
            "What does auto insurance cover?",
            "Liability, collision, comprehensive, uninsured motorists.",
        ),
        (
            "Confirm the price.",
            "What would it cost me, 34, no claims?",
            "About €412 a year, depending on your postcode.",
        ),
    ]
    criteria: list[Criterion] = [
        ("Names every kind of cover", True, "Turn 1 lists four kinds", [1]),
        ("Gives a price or says what it depends on", True, "Turn 3: €412, depends on the postcode", [3]),
    ]
    return Test(
        "coverage",
        now - timedelta(minutes=31),
        "insurance-bot",
        "Find out what auto insurance covers and costs",
        "success",
        turns,
        criteria,
        reason="Both criteria are met",
    )


def _unmet(now: datetime) -> Test:
    turns: list[Turn] = [
        (
            "Open with the complaint.",
            "My claim was rejected. Why?",
            "I'm sorry to hear that. Could you give me the number?",
        ),
        ("Give it.", "It's CL-20931.", "Thank you. It was rejected because of a missing photo."),
        ("Now the deadline.", "Until when can I appeal?", "You can appeal."),
        ("Insist.", "By which date?", None),
        ("Once more.", "Please tell me the date.", "Our team will be happy to help you."),
    ]
    criteria: list[Criterion] = [
        ("States why the claim was rejected", True, "Turn 2: missing photo", [2]),
        ("States the deadline for an appeal", False, "Turns 3 and 5 avoid the question, turn 4 failed", [3, 4, 5]),
        ("Offers a person to talk to", False, "No turn names a person or a number", []),
    ]
    return Test(
        "appeal",
        now - timedelta(minutes=33),
        "insurance-bot",
        "Learn why claim CL-20931 was rejected and how to appeal",
        "failure",
        turns,
        criteria,
        seconds=3.7,
        reason="Two of three criteria are not met",
    )


def _refund(now: datetime) -> Test:
    turns: list[Turn] = [
        (
            "State the case.",
            "The shoes arrived in the wrong size.",
            "Sorry about that! Would you like a refund or another size?",
        ),
        ("Choose.", "A refund, please.", "Done: 89,00 € back to your card within five days."),
        ("Check the label.", "Who pays the return?", "We do. The label is in your mail: 返品ラベル.pdf"),
    ]
    criteria: list[Criterion] = [
        ("Offers a choice", True, "Turn 1", [1]),
        ("Confirms amount and time", True, "Turn 2: 89,00 €, five days", [2]),
        ("Return is free", True, "Turn 3", [3]),
    ]
    return Test(
        "refund",
        now - timedelta(hours=7, minutes=12),
        "refund-bot",
        "Get a refund for shoes of the wrong size",
        "success",
        turns,
        criteria,
        seconds=2.9,
        reason="All criteria are met",
    )


def _timeout(now: datetime) -> Test:
    turns: list[Turn] = [
        ("Start.", "Can I insure a scooter for one month?", "Let me check that for you."),
        ("Wait for it.", "Any news?", "One moment, please."),
    ]
    return Test(
        "scooter",
        now - timedelta(hours=9),
        "insurance-bot",
        "Insure a scooter for one month",
        "timeout",
        turns,
        [],
        seconds=60.0,
    )


def _endless(now: datetime) -> Test:
    turns: list[Turn] = [
        (f"Ask again, attempt {n}.", "Is my house covered against floods?", "Could you rephrase that?")
        for n in range(1, 9)
    ]
    criteria: list[Criterion] = [("Says yes or no", False, "No turn answers the question", list(range(1, 9)))]
    return Test(
        "floods",
        now - timedelta(hours=10),
        "insurance-bot",
        "Learn whether floods are covered",
        "max_turns",
        turns,
        criteria,
        reason="The question was never answered",
    )


def _result(test: Test) -> Json:
    answered = sum(answer is not None for _, _, answer in test.turns)
    calls = {"total_calls": len(test.turns), "successful_calls": answered, "failed_calls": len(test.turns) - answered}
    note = {"note": "not recorded by this version"}
    timings = [
        {"turn_number": n, "duration_seconds": test.seconds, "timestamp": test.at(n)}
        for n in range(1, len(test.turns) + 1)
    ]
    return {
        "status": test.status,
        "goal_achieved": test.status == "success",
        "turns_used": len(test.turns),
        "findings": _findings(test),
        "history": [_turn(test, n, *turn) for n, turn in enumerate(test.turns, 1)],
        "conversation_summary": [_summary(test, n, *turn) for n, turn in enumerate(test.turns, 1)],
        "goal_evaluation": _evaluation(test) if test.criteria else None,
        "metrics": _metrics(test) if test.criteria else {},
        "test_configuration": {
            "goal": test.goal,
            "instructions": "Be polite. One question a turn.",
            "scenario": "A customer who writes on a phone",
            "restrictions": None,
            "context": {"language": "en"},
            "max_turns": 8,
            "min_turns": 2,
        },
        "model_info": {"model_name": "gemini-2.0-flash", "provider": "gemini", "temperature": 0.3, "max_tokens": None},
        "target_info": {"target_id": test.target, "target_type": "endpoint", "endpoint_id": f"ep_{test.target}"},
        "execution_stats": {
            "turn_timings": timings,
            "tool_usage": {_SEND: calls},
            "total_turns": len(test.turns),
            "successful_interactions": answered,
            "token_usage": note,
            "estimated_cost": note,
        },
        "metadata": {"suite": "nightly"},
        "start_time": test.at(0),
        "end_time": test.at(len(test.turns)),
    }


_SEND = "send_message_to_target"


def _findings(test: Test) -> list[str]:
    met = sum(one for _, one, _, _ in test.criteria)
    first = {"timeout": "✗ Test timeout", "max_turns": "✗ Maximum turns reached"}.get(test.status)
    counted = f"{'✓' if test.status == 'success' else '✗'} {met}/{len(test.criteria)} criteria met"
    return [first or counted, f"Test completed in {len(test.turns)} turn(s)"]


def _turn(test: Test, number: int, thought: str, asked: str, answer: str | None) -> Json:
    call = f"call_{number}_{_SEND}"
    said = {"message": asked} if number == 1 else {"message": asked, "conversation_id": f"conv-{test.folder}"}
    output = {} if answer is None else {"response": answer, "conversation_id": f"conv-{test.folder}", "metadata": None}
    error = "HTTP 502 from target" if answer is None else None
    content = {"success": answer is not None, "output": output, "error": error, "metadata": {}}
    function = {"name": _SEND, "arguments": json.dumps(said)}
    execution = {
        "tool_name": _SEND,
        "reasoning": thought,
        "assistant_message": {
            "role": "assistant",
            "content": thought,
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        },
        "tool_message": {"role": "tool", "tool_call_id": call, "name": _SEND, "content": json.dumps(content)},
        "timestamp": test.at(number),
    }
    return {
        "turn_number": number,
        "timestamp": test.at(number),
        "executions": [execution],
        "target_interaction": execution,
        "evaluation": None,
    }


def _summary(test: Test, number: int, thought: str, asked: str, answer: str | None) -> Json:
    return {
        "turn": number,
        "timestamp": test.at(number),
        "penelope_reasoning": thought,
        "penelope_message": asked,
        "target_response": "Error: HTTP 502 from target" if answer is None else answer,
        "conversation_id": f"conv-{test.folder}",
        "success": answer is not None,
    }


def _evaluation(test: Test) -> Json:
    met = sum(one for _, one, _, _ in test.criteria)
    return {
        "score": test.score,
        "name": "goal_achievement",
        "reason": test.reason,
        "confidence": 0.9,
        "is_successful": test.status == "success",
        "all_criteria_met": met == len(test.criteria),
        "threshold": 0.7,
        "threshold_operator": ">=",
        "score_type": "numeric",
        "criteria_evaluations": [
            {"criterion": text, "met": one, "evidence": evidence, "relevant_turns": turns}
            for text, one, evidence, turns in test.criteria
        ],
        "criteria_met": met,
        "criteria_total": len(test.criteria),
    }


def _metrics(test: Test) -> Json:
    whole = _evaluation(test)
    brief = {name: whole[name] for name in whole if name not in ("all_criteria_met", "criteria_evaluations")}
    relevancy = {"score": 0.82, "name": "turn_relevancy", "reason": "on topic", "is_successful": True}
    return {"Goal Achievement": brief, "Turn Relevancy": relevancy}


def _documented(ended: datetime) -> Json:
    """A result in the words of the documentation: flat turns, ``config`` and ``stats``, a ``test_id``."""
    function = {"name": _SEND, "arguments": '{"message":"Hello, can I change my address?"}'}
    call = {"id": "call_123", "type": "function", "function": function}
    answer = "Yes, under Profile → Address."
    evaluation = {"criterion": "Says where", "met": True, "evidence": "Turn 1", "relevant_turns": [1]}
    return {
        "test_id": "550e8400-e29b-41d4-a716-446655440000",
        "status": "success",
        "goal_achieved": True,
        "turns_used": 1,
        "findings": ["All success criteria met"],
        "goal_evaluation": {
            "score": 1.0,
            "all_criteria_met": True,
            "confidence": 1.0,
            "reason": "All criteria satisfied",
            "criteria_evaluations": [evaluation],
        },
        "history": [
            {
                "turn_number": 1,
                "reasoning": "Ask directly",
                "assistant_message": {"role": "assistant", "content": "Ask directly", "tool_calls": [call]},
                "tool_message": {"role": "tool", "tool_call_id": "call_123", "content": answer},
            }
        ],
        "conversation_summary": [
            {
                "turn": 1,
                "timestamp": zulu(ended),
                "penelope_reasoning": "Ask directly",
                "penelope_message": "Hello, can I change my address?",
                "target_response": answer,
                "session_id": "abc123",
                "success": True,
            }
        ],
        "metrics": {
            "Penelope Goal Evaluation": {"score": 1.0, "is_successful": True, "criteria_met": 1, "criteria_total": 1}
        },
        "config": {"goal": "Learn where to change the address", "max_turns": 10, "model_name": "gemini-2.0-flash"},
        "stats": {"total_turns": 1, "tools_used": 1, "total_tokens": 1250, "execution_time_seconds": 5.2},
    }

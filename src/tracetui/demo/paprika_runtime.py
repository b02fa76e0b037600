"""A small Paprika runtime: what an agent does, call by call, becomes a record or an event file."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tracetui.demo.files import uid, zulu

Json = dict[str, Any]

PROMPT_OVERHEAD = 1900
"""Tokens that the tool descriptions take in every call."""


@dataclass
class Execution:
    """One run of an agent. The methods are what the agent does, in order; each takes its time in milliseconds."""

    name: str
    """How the stories call it; its ids derive from that."""
    start: str
    """First digits of its id."""
    agent: str
    started: datetime
    question: str
    system: str = "You answer with sources. Say what you could not find."
    provider: str = "openai"
    model: str = "gpt-4o"
    version: str | None = "2.3.0"
    limits: Json | None = None
    legacy: bool = False
    schema: str = "1.0"
    replay_of: str | None = None
    extensions: Json = field(default_factory=dict)
    steps: list[Json] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)
    status: str = "success"
    output: Any = None
    error: str | None = None
    violation: Json | None = None

    def __post_init__(self) -> None:
        self.clock = self.started
        self.messages = [{"role": "system", "content": self.system}, {"role": "user", "content": self.question}]

    @property
    def ident(self) -> str:
        """The run's id."""
        return uid(self.name + (self.replay_of or ""), self.start)

    @property
    def ended(self) -> datetime:
        """When the last step ended."""
        return self.clock

    def think(self, text: str, ms: float, call: tuple[str, Json] | None = None) -> None:
        """Ask the model; it answers `text`, and may ask for a tool."""
        request = {"messages": copy.deepcopy(self.messages), "temperature": 0.2}
        answer: Json = {"role": "assistant", "content": text}
        if call is not None:
            function = {"name": call[0], "arguments": json.dumps(call[1], ensure_ascii=False)}
            answer["tool_calls"] = [{"id": f"call_{len(self.steps) + 1}", "type": "function", "function": function}]
        prompt = PROMPT_OVERHEAD + sum(len(json.dumps(message)) for message in self.messages) // 4
        completion = 12 + len(json.dumps(answer)) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        self.messages.append(answer)
        self._step(
            ms,
            step_type="llm_call",
            provider=self.provider,
            model=self.model,
            input_data=request,
            input_hash=input_hash({"provider": self.provider, "model": self.model, "input": request}),
            output_data={"choices": [{"message": answer}], "usage": usage},
            token_usage=usage,
            duration_ms=ms,
            side_effect="pure",
            error=None,
        )

    def use(self, tool: str, args: Json, output: Any, ms: float) -> None:
        """Call a tool."""
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        self.messages.append({"role": "tool", "tool_call_id": f"call_{len(self.steps)}", "content": text})
        self._step(ms, **_tool(tool, args), output_data=output, duration_ms=ms, side_effect=None, error=None)

    def breaks(self, tool: str, args: Json, error: str, ms: float, *, told: bool = False) -> None:
        """Call a tool that raises: the run ends. Only where `told` does the step itself say why and how long."""
        stated = {"duration_ms": ms, "error": error} if told else {"duration_ms": None, "error": None}
        self._step(ms, **_tool(tool, args), output_data=None, side_effect=None, **stated)
        self.status, self.error = "error", error

    def refused(self, policy: str, message: str, details: Json, *, next_index: bool = False) -> None:
        """A policy stops the run. ``max_steps`` takes the index of the call that it refused."""
        self.violation = {"policy_name": policy, "message": message, "details": details}
        self._step(0, step_type="policy_violation", **self.violation, index=len(self.steps) + next_index)
        self.status, self.error = "policy_violation", message

    def other(self, kind: str, ms: float, **fields: Any) -> None:
        """A step of a kind that schema 1.0 does not know."""
        self._step(ms, step_type=kind, **fields)

    def answers(self, output: Any) -> Execution:
        """The run ends well."""
        self.output = output
        return self

    def _step(self, ms: float, *, index: int | None = None, **fields: Any) -> None:
        number = len(self.steps) + 1 if index is None else index
        event = uid(f"{self.ident}/{len(self.steps)}")
        self.steps.append({"step_index": number, "timestamp": zulu(self.clock), "event_id": event, **fields})
        self.clock += timedelta(milliseconds=ms + 4)


def _tool(tool: str, args: Json) -> Json:
    return {
        "step_type": "tool_call",
        "tool_name": tool,
        "args": args,
        "input_hash": input_hash({"name": tool, "args": args}),
    }


def input_hash(value: Any) -> str:
    """Paprika's hash of a call: the first 16 hex digits of SHA-256 over its sorted, compact, ASCII JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def replay(
    original: Execution,
    start: str,
    started: datetime,
    *,
    mismatch_at: int = 0,
    changed: Callable[[Json], Json] | None = None,
) -> Execution:
    """A replay of `original`: recorded outputs at once, no tokens. At step `mismatch_at` the input is `changed`."""
    run = copy.copy(original)
    run.start, run.started, run.clock, run.replay_of, run.steps = start, started, started, original.ident, []
    for step in original.steps[: mismatch_at or None]:
        again = {**step, "timestamp": zulu(run.clock), "event_id": uid(f"{run.ident}/{len(run.steps)}")}
        if "duration_ms" in again:
            again["duration_ms"] = 0.0
        if "token_usage" in again:
            again["token_usage"] = None
        run.steps.append(again)
        run.clock += timedelta(milliseconds=1.5)
    if mismatch_at and changed is not None:
        _diverge(run, changed)
    return run


def _diverge(run: Execution, changed: Callable[[Json], Json]) -> None:
    """The last step asked for something else than the recording holds: the run ends there."""
    last = run.steps[-1]
    request = changed(copy.deepcopy(last["input_data"]))
    got = input_hash({"provider": last["provider"], "model": last["model"], "input": request})
    expected = last["input_hash"]
    last.update(input_data=request, input_hash=got, output_data=None, duration_ms=None)
    run.status, run.output = "error", None
    run.error = f"Replay mismatch at step {last['step_index']}: expected input_hash={expected}, got input_hash={got}"


def record(run: Execution) -> Json:
    """The ExecutionRecord of a run."""
    calls = [step for step in run.steps if step["step_type"] == "llm_call"]
    tools = sum(step["step_type"] == "tool_call" for step in run.steps)
    usages = [step["token_usage"] for step in calls if step["token_usage"]]
    totals = {name: sum(usage[name] for usage in usages) for name in _USAGE}
    return {
        "schema_version": run.schema,
        "record_id": run.ident,
        "parent_record_id": None,
        "replay_of": run.replay_of,
        "agent": {"name": run.agent, "version": run.version},
        "execution": {
            "started_at": zulu(run.started),
            "ended_at": zulu(run.ended),
            "duration_ms": (run.ended - run.started).total_seconds() * 1000,
            "status": run.status,
            "termination_reason": None,
        },
        "policy": {"config": run.limits, "violation": run.violation},
        "totals": {"step_count": len(calls) + tools, "llm_calls": len(calls), "tool_calls": tools, **totals},
        "environment": {"python": "3.12.7", "host": "runner-04"},
        "steps": run.steps,
        "input": {"args": [], "kwargs": {"question": run.question}},
        "output": run.output,
        "error": run.error,
        "extensions": run.extensions,
    }


_USAGE = ("total_tokens", "prompt_tokens", "completion_tokens")


def event_file(run: Execution) -> Json:
    """The v0 event file of a run."""
    first = {"agent_name": run.agent, "input_args": {"args": [], "kwargs": {"question": run.question}}}
    events = [_event(run, "start", run.started, 0, "run_start", first)]
    for step in run.steps:
        events += _step_events(run, step)
    tokens = sum(step["token_usage"]["total_tokens"] for step in run.steps if step.get("token_usage"))
    last = {"status": run.status, "output": run.output, "error": run.error, "total_tokens": tokens}
    events.append(_event(run, "end", run.ended, len(run.steps), "run_end", last))
    return {
        "run_id": run.ident,
        "agent_name": run.agent,
        "started_at": zulu(run.started),
        "ended_at": zulu(run.ended),
        "events": events,
        "metadata": {"replay_of": run.replay_of} if run.replay_of else {},
    }


def _event(run: Execution, seed: str, time: datetime, index: int, kind: str, fields: Json) -> Json:
    ident = uid(f"{run.ident}/{seed}")
    base = {"event_id": ident, "timestamp": zulu(time), "run_id": run.ident, "step_index": index}
    return {**base, "event_type": kind, **fields}


def _step_events(run: Execution, step: Json) -> list[Json]:
    """The start of a call, and its end where it came to one."""
    kind, index, at = step["step_type"], step["step_index"], datetime.fromisoformat(step["timestamp"])
    if kind == "policy_violation":
        fields = {name: step[name] for name in ("policy_name", "message", "details")}
        return [_event(run, f"{index}v", at, index, kind, fields)]
    asked = ("provider", "model", "input_data") if kind == "llm_call" else ("tool_name", "args")
    begin = {name: step[name] for name in (*asked, "input_hash")}
    events = [_event(run, f"{index}a", at, index, f"{kind}_start", begin)]
    if step["output_data"] is not None:
        told = ("output_data", "token_usage") if kind == "llm_call" else ("output_data",)
        end = {name: step[name] for name in (*told, "duration_ms")}
        after = at + timedelta(milliseconds=step["duration_ms"])
        events.append(_event(run, f"{index}b", after, index, f"{kind}_end", end))
    return events

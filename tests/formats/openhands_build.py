"""Conversations as the SDK of OpenHands V1 keeps them: a state, a file for each event, and those of sub-agents."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]
CASES = Path(__file__).parent / "openhands"
T0 = 1_767_258_000.0
MODEL = "acme/acorn-2"


def ident(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


class Writer:
    """Writes one conversation, event by event, half a second apart. Its state is written by `save`."""

    def __init__(self, folder: Path, number: int, *, second: float = 0) -> None:
        self.folder, self.id = folder, ident(number)
        self.first, self.count, self.second = number * 100, 0, second
        self.metrics: dict[str, Record] = {}
        (folder / "events").mkdir(parents=True)

    @classmethod
    def of(cls, folder: Path, number: int) -> Writer:
        return cls(folder / ident(number).replace("-", ""), number)

    def agent(self, number: int) -> Writer:
        return Writer(self.folder / "subagents" / ident(number).replace("-", ""), number, second=self.second)

    def event(self, kind: str, source: str, **fields: Any) -> str:
        self.second += 0.5
        when = f"{datetime.fromtimestamp(T0 + self.second, UTC):%Y-%m-%dT%H:%M:%S.%f}"
        own = ident(self.first + self.count)
        record = {"id": own, "timestamp": when, "source": source, "kind": kind} | fields
        path = self.folder / "events" / f"event-{self.count:05}-{own}.json"
        path.write_text(json.dumps(record), encoding="utf-8")
        self.count += 1
        return own

    def system(self) -> None:
        tools = [{"description": "Run a command", "name": "terminal"}]
        self.event("SystemPromptEvent", "agent", system_prompt=text("You keep the orchard."), tools=tools)

    def user(self, said: str) -> None:
        self.event("MessageEvent", "user", llm_message={"role": "user", "content": [text(said)]}, activated_skills=[])

    def answer(self, said: str, response: str) -> None:
        message = {"role": "assistant", "content": [text(said)]}
        self.event("MessageEvent", "agent", llm_message=message, llm_response_id=response)

    def act(self, tool: str, response: str, action: Record | None, *, said: str = "", **more: Any) -> tuple[str, str]:
        """A call of a tool; returns the ids of event and call."""
        call = f"call-{self.count}"
        arguments = json.dumps({} if action is None else action)
        fields: Record = {"thought": [text(said)] if said else [], "tool_name": tool, "tool_call_id": call}
        fields |= {"tool_call": {"id": call, "name": tool, "arguments": arguments}, "llm_response_id": response}
        if action is not None:
            fields["action"] = action | {"kind": f"{tool.title()}Action"}
        return self.event("ActionEvent", "agent", **fields | more), call

    def observe(self, tool: str, of: tuple[str, str], said: str, **observation: Any) -> None:
        result = {"content": [text(said)], "is_error": False} | observation
        action, call = of
        self.event("ObservationEvent", "environment", tool_name=tool, tool_call_id=call, action_id=action,
                   observation=result)  # fmt: skip

    def use(self, usage: str, *responses: str, tokens: int = 100, cost: float | None = 0.001) -> None:
        """Add model calls to the metrics."""
        empty: Record = {"accumulated_cost": 0.0, "costs": [], "token_usages": [], "response_latencies": []}
        metrics = self.metrics.setdefault(usage, empty | {"model_name": MODEL, "accumulated_token_usage": {}})
        for response in responses:
            used: Record = {"model": MODEL, "prompt_tokens": tokens, "completion_tokens": 10, "cache_read_tokens": 40}
            used |= {"cache_write_tokens": 0, "reasoning_tokens": 2, "response_id": response}
            metrics["token_usages"].append(used)
            metrics["response_latencies"].append({"model": MODEL, "latency": 0.25, "response_id": response})
            if cost is not None:
                metrics["costs"].append({"model": MODEL, "cost": cost, "timestamp": T0 + self.second})
                metrics["accumulated_cost"] += cost
        count = len(metrics["token_usages"])
        metrics["accumulated_token_usage"] = {"prompt_tokens": tokens * count, "completion_tokens": 10 * count}

    def save(self, status: str) -> None:
        state: Record = {"id": self.id, "agent": {"llm": {"model": MODEL, "api_key": "**********"}, "kind": "Agent"}}
        state |= {"workspace": {"working_dir": "/home/ada/orchard", "kind": "LocalWorkspace"}, "max_iterations": 20}
        state |= {"persistence_dir": "conversations", "execution_status": status, "tags": {}}
        state |= {"stats": {"usage_to_metrics": self.metrics}}
        (self.folder / "base_state.json").write_text(json.dumps(state), encoding="utf-8")


def text(said: str) -> Record:
    return {"cache_prompt": False, "type": "text", "text": said}


def tools(folder: Path) -> Writer:
    """Parallel calls, every way in which a call fails, a condensation, a note and an unknown event."""
    writer = Writer.of(folder, 1)
    writer.system()
    writer.user("Count the trees")
    asked = [writer.act("terminal", "r-1", {"command": f"count {row}"}, said="Two rows.") for row in "ab"]
    writer.observe("terminal", asked[0], "12", exit_code=0, metadata={"hostname": "devbox"})
    writer.observe("terminal", asked[1], "no row b", exit_code=1)
    view = writer.act("file_editor", "r-2", {"command": "view", "path": "map.md"}, reasoning_content="perhaps a map")
    writer.observe("file_editor", view, "no such file", is_error=True)
    _, call = writer.act("terminal", "r-3", None)
    writer.event("AgentErrorEvent", "agent", tool_name="terminal", tool_call_id=call, error="arguments are no JSON")
    action, call = writer.act("terminal", "r-4", {"command": "rm -rf rows"})
    writer.event("UserRejectObservation", "environment", tool_name="terminal", tool_call_id=call, action_id=action,
                 rejection_reason="not allowed", rejection_source="user")  # fmt: skip
    slow = writer.act("terminal", "r-5", {"command": "sleep 99"})
    writer.observe("terminal", slow, "still running", exit_code=-1, timeout=True)
    writer.event("Condensation", "environment", llm_response_id="r-6", summary="rows were counted")
    writer.event("PauseEvent", "user")
    writer.event("WeatherEvent", "environment", wind="gale")
    writer.answer("Twelve trees.", "r-7")
    writer.use("agent", "r-1", "r-2", "r-3", "r-4", "r-5", "r-7")
    writer.use("condenser", "r-6", "r-8")
    writer.save("finished")
    return writer


def agents(folder: Path) -> Writer:
    """Two sub-agents, whose usage the state of the parent repeats."""
    writer = Writer.of(folder, 2)
    writer.user("Delegate")
    for number, prompt in ((3, "count the pears"), (4, "count the plums")):
        action = {"description": "count", "prompt": prompt, "subagent_type": "counter"}
        asked = writer.act("task", f"r-{number}", action)
        child = writer.agent(number)
        child.user(prompt)
        done = child.act("finish", f"child-{number}", {"message": "7"})
        child.observe("finish", done, "7")
        child.use("agent", f"child-{number}", tokens=50, cost=0.0005)
        child.save("finished")
        writer.observe("task", asked, "7", task_id=f"task_{number}", subagent="counter", status="completed")
        writer.use("agent", f"r-{number}")
        writer.use(f"task:task_{number}", f"child-{number}", tokens=50, cost=0.0005)
    writer.act("finish", "r-9", {"message": "fourteen"})
    writer.use("agent", "r-9")
    writer.save("finished")
    return writer


def failed(folder: Path) -> Writer:
    writer = Writer.of(folder, 5)
    writer.user("Loop")
    writer.observe("terminal", writer.act("terminal", "r-1", {"command": "echo"}), "", exit_code=0)
    writer.event("ConversationErrorEvent", "environment", code="MaxIterationsReached", detail="maximum of 20 reached")
    writer.use("agent", "r-1", cost=None)
    writer.save("error")
    return writer


def waiting(folder: Path, status: str = "waiting_for_confirmation") -> Writer:
    writer = Writer.of(folder, 6)
    writer.user("Sleep")
    writer.act("terminal", "r-1", {"command": "sleep 9"})
    writer.use("agent", "r-1")
    writer.save(status)
    return writer


def orphan(folder: Path) -> Writer:
    """Events whose state is lost."""
    writer = Writer.of(folder, 7)
    writer.user("Is anybody here?")
    writer.answer("Yes.", "r-1")
    return writer


def write_cases() -> None:
    """Write the files of all cases."""
    for build in (tools, agents, failed, waiting, orphan):
        folder = CASES / build.__name__ / "input"
        shutil.rmtree(folder, ignore_errors=True)
        build(folder)


if __name__ == "__main__":
    write_cases()

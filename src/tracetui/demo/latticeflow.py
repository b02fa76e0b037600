"""LatticeFlow: traces with nested agents, bare ones, and a dataset of rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tracetui.demo.files import line, pretty, put, zulu

Json = dict[str, Any]


@dataclass
class Trace:
    """One trace in the making: events in order, and the items of the outermost conversation."""

    ident: str
    agent: str
    started: datetime
    model: str = "gpt-4o"
    tags: tuple[str, ...] = ()
    events: list[Json] = field(default_factory=list)
    items: list[Json] = field(default_factory=list)
    contexts: dict[str | None, list[Json]] = field(default_factory=dict)
    spans: list[str] = field(default_factory=list)
    tokens: int = 0
    calls: int = 0

    def __post_init__(self) -> None:
        self.clock = self.started

    @property
    def span(self) -> str | None:
        """The innermost open span."""
        return self.spans[-1] if self.spans else None

    def says(self, role: str, text: str, model_call: str | None = None) -> None:
        """A message enters the conversation of the current span."""
        item = message(role, text, f"{self.ident}-m{len(self.events)}")
        self._item(item)
        self._event("message_event", 20, item=item, model_call_id=model_call)

    def asks(self, ms: float, text: str = "", call: tuple[str, Json] | None = None) -> str:
        """A model call that ends in a text, or in a call of a tool; returns the event's id."""
        context = list(self.contexts.get(self.span, []))
        size = 200 + len(json.dumps(context)) // 4
        event = f"{self.ident}-e{len(self.events)}"
        output = self._call(*call) if call else message("assistant", text, f"{event}-out")
        usage = {"num_prompt_tokens": size, "num_completion_tokens": 30 + len(text) // 4}
        self.tokens += sum(usage.values())
        self._event(
            "model_call_event",
            ms,
            model=self.model,
            input_context=context,
            output_items=[output],
            usage=usage,
            tools=["hotels", "research_agent", "web_search"],
            total_time=ms / 1000,
            error=None,
        )
        if call is None:
            self.says("assistant", text, event)
        return event

    def answers(
        self,
        name: str,
        arguments: Json,
        result: str,
        ms: float,
        *,
        by: str | None = None,
        error: str | None = None,
        agent_span: str | None = None,
    ) -> None:
        """The tool that was asked for by model call `by` ends."""
        call, status = self._call(name, arguments), "incomplete" if error else "completed"
        self._event(
            "function_call_event",
            ms,
            call_id=call["call_id"],
            function=name,
            arguments=call["arguments"],
            result=result,
            status=status,
            working_time=ms / 1000,
            error=error,
            agent=name if agent_span else None,
            agent_span_id=agent_span,
            model_call_id=by,
        )
        self.calls += 1
        self._item({**call, "status": status})
        if not error:
            output = {"type": "function_call_output", "id": f"{call['id']}-out", "call_id": call["call_id"]}
            self._item({**output, "output": result, "status": "completed"})

    def begins(self, name: str, kind: str = "agent") -> str:
        """A span opens below the current one."""
        span, parent = f"{self.ident}-s{len(self.events)}", self.span
        self.spans.append(span)
        self._event("span_begin", 5, parent_span_id=parent, name=name, span_type=kind)
        return span

    def ends(self) -> None:
        """The current span closes."""
        self._event("span_end", 5)
        self.spans.pop()

    def note(self, kind: str, **fields: Any) -> None:
        """Any other event: ``compaction``, ``error``, ``custom``."""
        self._event(kind, 10, **fields)

    def done(self, error: str | None = None, *, events: bool = True) -> Json:
        """The document; while a span is open, it has no total time."""
        seconds = None if self.spans else round((self.clock - self.started).total_seconds(), 3)
        metadata = {
            "trace_id": self.ident,
            "source_type": "latticeflow",
            "agent": self.agent,
            "model": self.model,
            "tags": list(self.tags),
            "created_at": zulu(self.started),
            "total_time": seconds,
            "total_tokens": self.tokens,
            "message_count": sum(item["type"] == "message" for item in self.items),
            "error": error,
            "extra": None,
        }
        document = {"FORMAT": "open_responses", "items": self.items, "metadata": metadata}
        return {**document, "events": self.events} if events else document

    def _call(self, name: str, arguments: Json) -> Json:
        ident = f"{self.ident}-call{self.calls + 1}"
        text = json.dumps(arguments, ensure_ascii=False)
        call = {"type": "function_call", "id": f"fc-{ident}", "call_id": ident, "name": name, "arguments": text}
        return {**call, "status": "completed"}

    def _item(self, item: Json) -> None:
        self.contexts.setdefault(self.span, []).append(item)
        if not self.spans:
            self.items.append(item)

    def _event(self, kind: str, ms: float, **fields: Any) -> None:
        head = {"id": f"{self.ident}-e{len(self.events)}", "span_id": self.span, "timestamp": zulu(self.clock)}
        self.events.append({**head, "metadata": None, "type": kind, **fields})
        self.clock += timedelta(milliseconds=ms)


def message(role: str, text: str, ident: str) -> Json:
    """A message item."""
    part: Json = {"type": "input_text", "text": text}
    if role == "assistant":
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": None}
    return {"type": "message", "id": ident, "status": "completed", "role": role, "content": [part]}


def write(folder: Path, now: datetime) -> None:
    """A trip planned by three agents, one that failed, one still open, a bare dump and a dataset of three rows."""
    place = folder / "latticeflow"
    for name, trace, error in (
        ("trip", _trip(now), None),
        ("audit", _audit(now), "critic gave no verdict in 3 rounds"),
    ):
        put(place / f"{name}.json", pretty(trace.done(error)), trace.clock)
    unfinished = _unfinished(now)
    put(place / "visa.json", pretty(unfinished.done()), unfinished.clock)
    put(place / "weather.json", pretty(_bare()), now - timedelta(hours=12))
    rows = b"".join(line(row) for row in _airline(now))
    put(place / "tau-airline.jsonl", rows, now - timedelta(hours=5, minutes=40))


def _trip(now: datetime) -> Trace:
    """The planner hands over to a researcher (one search fails) and to a critic."""
    trace = Trace("trip-zurich-1", "trip-planner", now - timedelta(hours=1, minutes=2), tags=("multi-agent", "travel"))
    trace.says("system", "You plan trips. Use the research agent for facts and the critic before you answer.")
    trace.says("user", "Plan a trip to Zürich, three days in May, under CHF 900.")
    topic = {"topic": "Zürich in May: museums, weather, fares"}
    asked = trace.asks(1_900, call=("research_agent", topic))
    span = _research(trace)
    trace.answers(
        "research_agent",
        topic,
        "Kunsthaus, Üetliberg, ZVV day pass CHF 9.20; 17 °C, rain on day two.",
        30,
        by=asked,
        agent_span=span,
    )
    hotels = {"city": "Zürich", "max_chf": 160}
    asked = trace.asks(1_200, call=("hotels", hotels))
    trace.answers("hotels", hotels, '[{"name": "Hotel Limmat", "chf": 149}]', 840, by=asked)
    trace.note("custom", name="approval", data={"approved": True, "by": "budget-policy"})
    span = trace.begins("critic")
    trace.says("user", "Is the plan under CHF 900 and possible in the rain?")
    trace.asks(2_100, "Yes: 447 for the hotel, 28 for fares, museums on day two.")
    trace.ends()
    trace.asks(3_400, "Day 1 Üetliberg, day 2 Kunsthaus, day 3 the lake. About CHF 780.")
    return trace


def _research(trace: Trace) -> str:
    """The researcher's span: one search fails, the next succeeds; its context is compacted in between."""
    span = trace.begins("research_agent")
    trace.says("user", "Research Zürich in May.")
    query = {"q": "zürich may weather museums"}
    asked = trace.asks(900, call=("web_search", query))
    trace.begins("web_search", "function_call")
    trace.answers("web_search", query, "", 400, by=asked, error="HTTP 503")
    trace.note(
        "error",
        message="web_search failed: HTTP 503",
        traceback="Traceback (most recent call last):\n  …\nHTTPError: 503",
    )
    trace.ends()
    trace.note("compaction", strategy="summary", tokens_before=9_000, tokens_after=1_200)
    asked = trace.asks(1_100, call=("web_search", query))
    trace.answers("web_search", query, "Kunsthaus open Tue–Sun; May: 17 °C, 11 days of rain", 700, by=asked)
    trace.asks(1_600, "Kunsthaus, Üetliberg, ZVV day pass; rain is likely on one day.")
    trace.ends()
    return span


def _audit(now: datetime) -> Trace:
    """Writer and critic never agree: the trace ends with an error."""
    trace = Trace("audit-44", "contract-audit", now - timedelta(hours=10, minutes=20), tags=("multi-agent",))
    trace.says("system", "A writer drafts, a critic judges. At most three rounds.")
    trace.says("user", "Audit clause 7 of the supplier contract.")
    for round_number in (1, 2, 3):
        trace.begins("writer")
        trace.says("user", f"Draft {round_number}.")
        trace.asks(4_200, "Clause 7 lets either side end the contract within 30 days.")
        trace.ends()
        trace.begins("critic")
        trace.asks(2_700, "Unclear: which 30 days? Working days or calendar days?")
        trace.ends()
    trace.note("error", message="critic gave no verdict in 3 rounds", traceback=None)
    return trace


def _unfinished(now: datetime) -> Trace:
    """Exported while its agent was at work: two spans are open."""
    trace = Trace("visa-9", "visa-helper", now - timedelta(hours=8, minutes=40))
    trace.says("user", "Do I need a visa for Japan, from Brazil, ten days?")
    asked = trace.asks(1_300, call=("research_agent", {"topic": "visa Japan Brazil"}))
    trace.note("custom", name="handoff", data={"model_call": asked})
    trace.begins("research_agent")
    trace.says("user", "Visa rules for Brazilian citizens, Japan.")
    trace.begins("web_search", "function_call")
    return trace


def _bare() -> Json:
    """The default dump of the library, without format, types and roles."""
    call = {"id": "fc_1", "call_id": "call_1", "status": "completed"}
    return {
        "items": [
            {"id": "msg_1", "status": "completed", "content": [{"text": "Do I need an umbrella in Seoul tomorrow?"}]},
            {**call, "name": "get_weather", "arguments": '{"city": "서울"}'},
            {**call, "id": "fco_1", "output": '{"rain": 0.7, "celsius": 11}'},
            {"id": "msg_2", "status": "completed", "content": [{"text": "Yes: rain is likely.", "annotations": []}]},
        ]
    }


def _airline(now: datetime) -> list[Json]:
    """Rows of a benchmark: trace, expected answer and score."""
    tasks = (
        (12, "How many bags may I bring to Lisbon?", "baggage_rules", {"fare": "basic"}, "One cabin bag, 8 kg.", 1.0),
        (13, "I want a refund for flight QX 302.", "cancel", {"booking": "K7P2LM"}, "Refunded: $212.40.", 1.0),
        (
            14,
            "Put me on an aisle seat, please.",
            "change_seat",
            {"booking": "K7P2LM", "row": 14},
            "Seat 14C is yours.",
            0.0,
        ),
    )
    rows = []
    for number, asked, tool, arguments, answer, score in tasks:
        trace = Trace(
            f"tau-airline-{number}", "tau-airline", now - timedelta(hours=6, minutes=number), model="gpt-4o-mini"
        )
        trace.says("system", "You are an airline agent. Never promise what the policy forbids.")
        trace.says("user", asked)
        call = trace.asks(3_800, call=(tool, arguments))
        trace.answers(tool, arguments, json.dumps({"ok": True}), 1_100, by=call)
        trace.asks(5_200, answer)
        trace.says("user", "Thanks, that is all.")
        trace.asks(2_400, "You're welcome. Safe travels!")
        rows.append({"task_id": number, "target": answer, "reward": score, "trace": trace.done(events=False)})
    return rows

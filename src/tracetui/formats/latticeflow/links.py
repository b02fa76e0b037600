"""What belongs together in a trace: names for its spans, answers to calls, sub-agents, and jumps between spans."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from tracetui.formats.latticeflow.outline import EventAt, ItemAt, Outline
from tracetui.formats.latticeflow.records import ident
from tracetui.model import Link

LONGEST: Final = 200
"""Characters of an id that may be part of an address."""


class Names:
    """Ids of spans, unique within the run: the trace's own where they are unique, else numbered ones."""

    def __init__(self, outline: Outline) -> None:
        self._used: set[str] = set()
        begins = {begin.index: self.claim(span, f"event-{begin.index}") for span, begin in outline.begins.items()}
        self.events = [
            begins[event.index] if event.index in begins else self.claim(event.record.id, f"event-{event.index}")
            for event in outline.events
        ]

    def claim(self, own: Any, otherwise: str) -> str:
        """`own` if it is an id that nobody has, else `otherwise`."""
        name = ident(own) or otherwise
        if name in self._used or len(name) > LONGEST:
            name = otherwise
        while name in self._used:
            name += "~"
        self._used.add(name)
        return name


def answers(outline: Outline) -> dict[str, list[ItemAt]]:
    """Outputs that no event shows, by the call that they answer."""
    found: dict[str, list[ItemAt]] = defaultdict(list)
    calls = {str(item.record.call_id) for item in outline.items if item.kind == "function_call" and item.order}
    for item in outline.items:
        call_id = str(item.record.call_id)
        if item.kind == "function_call_output" and item.order is not None and call_id in calls:
            found[call_id].append(item)
    return found


def hand_offs(outline: Outline) -> dict[str, EventAt]:
    """The call that started each sub-agent, by the agent's span."""
    found: dict[str, EventAt] = {}
    for event in outline.events:
        span = ident(event.record.agent_span_id) if event.kind == "function_call_event" else None
        if span is not None and span in outline.begins and span != event.level:
            found.setdefault(span, event)
    return found


def link_up(outline: Outline, ids: list[str], handed: dict[str, EventAt]) -> dict[str, list[Link]]:
    """Jumps in both directions: between a model call and what it asked for or said, a call and its sub-agent."""
    links: dict[str, list[Link]] = defaultdict(list)
    models, by_output = _model_calls(outline, ids)
    for event in outline.events:
        record, own = event.record, ids[event.index]
        if event.kind == "message_event":
            produced, label = record.said.id, "message"
        elif event.kind == "function_call_event":
            produced, label = record.call_id, f"tool call {record.function}"
        else:
            continue
        model = models.get(ident(record.model_call_id) or "") or by_output.get(ident(produced) or "")
        if model is not None:
            links[own].append(Link("model call", model))
            links[model].append(Link(label, own))
    for span, call in handed.items():
        agent, own = ids[outline.begins[span].index], ids[call.index]
        links[own].append(Link("sub-agent", agent))
        links[agent].append(Link("started by", own))
    return links


def _model_calls(outline: Outline, ids: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Spans of the model calls: by their own id, and by the ids of what they produced."""
    models: dict[str, str] = {}
    by_output: dict[str, str] = {}
    for event in outline.events:
        if event.kind != "model_call_event":
            continue
        own = ids[event.index]
        if (name := ident(event.record.id)) is not None:
            models.setdefault(name, own)
        for item in event.record.outputs:
            if (name := ident(item.call_id) or ident(item.id)) is not None:
                by_output.setdefault(name, own)
    return models, by_output

"""Messages in all the ways in which spans tell them: as JSON in an attribute, flattened into many, or as events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from tracetui.formats.bodies import add_field
from tracetui.formats.otlp.records import Event, parse_int
from tracetui.formats.otlp.vocabulary import OUTPUTS, Attributes, decoded
from tracetui.formats.scalars import without, word
from tracetui.model import Blob, Message, Part, Reasoning, Text, ToolCall, ToolResult, text_of

Fields = dict[str, Any]

_TEXT_KINDS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_THOUGHT: Final = frozenset({"reasoning", "thinking", "thought"})
_CALL: Final = frozenset({"tool_call", "tool_use", "tool-call", "function_call", "function"})
_RESULT: Final = frozenset(
    {"tool_call_response", "tool_result", "tool-result", "tool_response", "function_call_output"}
)
_BLOCKS: Final = {
    "text": "text",
    "toolUse": "tool_use",
    "toolResult": "tool_result",
    "reasoningContent": "reasoning",
}
"""Parts as Bedrock has them: an object of one field, which is their kind."""
_WRAPPERS: Final = ("message_content", "tool_call")
SYSTEM: Final = "gen_ai.system_instructions"
_GIVEN: Final = ("gen_ai.input.messages", "ai.prompt.messages")
_MADE: Final = ("gen_ai.output.messages",)
_CONVERSATIONS: Final = ("pydantic_ai.all_messages", "all_messages_events")
_OUTPUTS: Final = (*OUTPUTS, *_MADE)
_EVENTS: Final = ("events",)
"""Events of a span as JSON in an attribute of it."""
_GIVEN_FLAT: Final = ("llm.input_messages.", "gen_ai.prompt.", "llm.prompts.")
_MADE_FLAT: Final = ("llm.output_messages.", "gen_ai.completion.", "llm.completions.")
_ROLES: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_SYSTEMS: Final = ("system", "developer")
_USERS: Final = ("user", "human")
_ASKING: Final = (*_SYSTEMS, *_USERS)
_NEW: Final = "pydantic_ai.new_message_index"
_CHOICE: Final = "gen_ai.choice"
_TEXTS: Final = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
_RETRY: Final = "Fix the errors and try again."
"""How Pydantic AI ends what it says to a model in the user's place."""
_MOST: Final = 100_000
"""Messages of a span."""


class Side(msgspec.Struct, frozen=True):
    """The messages that went into a span, or those that came of it."""

    messages: tuple[Message, ...] = ()
    taken: tuple[str, ...] = ()
    """The attributes that hold them."""
    rest: dict[str, Any] = {}
    """What of these has no place in a message."""
    events: tuple[int, ...] = ()
    """The events that hold them."""
    since: int | None = None
    """Where the new ones begin; None where that is not in the trace."""
    partial: bool = False
    """It is a part of a conversation, which may end in the middle of the work."""

    def __bool__(self) -> bool:
        """Whether any message has content: one of a role alone must not hide the same side in other attributes."""
        return any(not isinstance(part, Text | Reasoning) or part.text for one in self.messages for part in one.parts)

    @property
    def text(self) -> str | None:
        """The text of the last message that has some."""
        return next((found for one in reversed(self.messages) if (found := text_of(one).strip())), None)

    @property
    def answer(self) -> str | None:
        """The text that is the output as a whole; None for a conversation that ends in a question or a tool call."""
        if not self.partial:
            return "\n".join(text for one in self.messages if (text := text_of(one))) or None
        last = self.messages[-1] if self.messages else None
        if last is None or last.role in _ASKING or any(isinstance(part, ToolCall | ToolResult) for part in last.parts):
            return None
        return self.text


NO_MESSAGES: Final = Side()
_HOLDERS: Final = frozenset(
    (*_GIVEN, *_MADE, *_EVENTS, *_CONVERSATIONS, SYSTEM, "ai.response.text", "ai.response.toolCalls")
)
_FLAT: Final = re.compile(f"^(?:{'|'.join(map(re.escape, (*_GIVEN_FLAT, *_MADE_FLAT)))})", re.MULTILINE)


def may_have_messages(attrs: Attributes, events: Sequence[Event]) -> bool:
    """Whether a span may have messages: most have none."""
    return bool(events) or not attrs.keys().isdisjoint(_HOLDERS) or _FLAT.search("\n".join(attrs)) is not None


def given(attrs: Attributes, events: Sequence[Event]) -> Side:
    """What the model, agent or tool was told."""
    side = (
        _listed(attrs, _GIVEN, "user")
        or _flat(attrs, _GIVEN_FLAT, "user")
        or _detailed(events, _GIVEN, "user")
        or _heard(events)
        or _exchange(attrs)[0]
        or _conversation(attrs)[0]
        or NO_MESSAGES
    )
    return _with_system(side, attrs)


def made(attrs: Attributes, events: Sequence[Event]) -> Side:
    """What the model or agent said."""
    return (
        _listed(attrs, _MADE, "assistant")
        or _flat(attrs, _MADE_FLAT, "assistant")
        or _detailed(events, _MADE, "assistant")
        or _chosen(events)
        or _exchange(attrs)[1]
        or _conversation(attrs)[1]
        or _answered(attrs)
        or NO_MESSAGES
    )


def has_output(attrs: Attributes) -> bool:
    """Whether an attribute holds what came of a span, found out without decoding it."""
    return not attrs.keys().isdisjoint(_OUTPUTS)


def prompt_of(side: Side) -> str | None:
    """What the user asked: in a conversation that goes on, the latest question."""
    place = _prompt_in(side)
    return None if place is None else text_of(side.messages[place]).strip()


def question_of(side: Side) -> list[tuple[str, str]] | None:
    """The conversation up to that, so that two turns of one can be told apart; without what the system says."""
    place = _prompt_in(side)
    if place is None:
        return None
    return [(one.role, text_of(one)) for one in side.messages[: place + 1] if one.role not in _SYSTEMS]


def _prompt_in(side: Side) -> int | None:
    """Where the text of a user is: the first of those that stand together at the end, else the first new one."""
    new = range(side.since or 0, len(side.messages))
    if side.since is not None:
        return next((i for i in new if _is_asked(side.messages[i])), None)
    found = None
    for place in reversed(new):
        if _is_asked(side.messages[place]):
            found = place
        elif found is not None and side.messages[place].role not in _SYSTEMS:
            break
    return found


def _is_asked(message: Message) -> bool:
    text = text_of(message).strip() if message.role in _USERS else ""
    return bool(text) and not text.endswith(_RETRY)


def system_of(side: Side) -> str | None:
    """The first text of the system."""
    told = (one for one in side.messages if one.role in _SYSTEMS)
    return next((text for one in told if (text := text_of(one).strip())), None)


def may_instruct(attrs: Attributes, events: Sequence[Event]) -> bool:
    """Whether the system may be among what a span was given: found out without decoding that."""
    if SYSTEM in attrs or any(event.name not in ("exception", _CHOICE) for event in events):
        return True
    if any(attrs.get(name) in _SYSTEMS for name in ("llm.input_messages.0.message.role", "gen_ai.prompt.0.role")):
        return True
    told = [value for name in (*_GIVEN, *_EVENTS, *_CONVERSATIONS) if (value := attrs.get(name)) is not None]
    return any(not isinstance(one, str) or any(f'"{role}"' in one for role in _SYSTEMS) for one in told)


def preview_of(side: Side) -> str:
    """What tells these messages from others: their text, else the tools that are asked for."""
    calls = [part.name for one in side.messages for part in one.parts if isinstance(part, ToolCall)]
    return side.text or ("→ " + ", ".join(calls) if calls else "")


# ---- as JSON in an attribute


def _listed(attrs: Attributes, names: Iterable[str], role: str, *, chosen: bool | None = None) -> Side | None:
    """The messages of the first of these attributes; `chosen`: only those that are answers, or only the others."""
    for name in names:
        found = decoded(attrs.get(name))
        if isinstance(found, dict):
            found = [found]
        if isinstance(found, list) and found:
            if chosen is not None and not any(_is_choice(one) is chosen for one in found):
                return None
            messages, rest = _messages(
                ((i, one) for i, one in enumerate(found[:_MOST]) if chosen is None or _is_choice(one) is chosen),
                role,
                name,
            )
            if len(found) > _MOST:
                rest[name] = found[_MOST:]
            if side := Side(messages, (name,), rest):
                return side
    return None


def _exchange(attrs: Attributes) -> tuple[Side, Side]:
    """Both sides of a call as events in an attribute. Without a choice among them the last messages are the answer."""
    given = _listed(attrs, _EVENTS, "user", chosen=False) or NO_MESSAGES
    made = _listed(attrs, _EVENTS, "assistant", chosen=True)
    if made is not None or not given:
        return given, made or NO_MESSAGES
    asked = (place for place, one in enumerate(given.messages) if one.role != "assistant")
    cut = max(asked, default=-1) + 1
    return msgspec.structs.replace(given, messages=given.messages[:cut]), Side(given.messages[cut:], given.taken)


def _conversation(attrs: Attributes) -> tuple[Side, Side]:
    """Both sides of a whole conversation: all up to the new question, and what the agent made of it.

    The index of the first new message counts messages of the library, of which each may become several here: the
    question is there or later. Versions that write the index leave it out where it is 0; they also write
    ``gen_ai.agent.name``. Before them the latest question is the new one.
    """
    side = _listed(attrs, _CONVERSATIONS, "user")
    if side is None:
        return NO_MESSAGES, NO_MESSAGES
    since = parse_int(attrs.get(_NEW))
    if since is not None or "gen_ai.agent.name" in attrs:
        side = msgspec.structs.replace(side, since=max(0, since or 0))
    asked = _prompt_in(side)
    begin = asked if asked is not None else side.since or 0
    cut = next((i for i, one in enumerate(side.messages) if i >= begin and one.role == "assistant"), len(side.messages))
    made = Side(side.messages[cut:], side.taken, partial=True)
    return msgspec.structs.replace(side, messages=side.messages[:cut]), made


def _messages(found: Iterable[tuple[int, Any]], role: str, name: str) -> tuple[tuple[Message, ...], dict[str, Any]]:
    messages, rests = [], {}
    for place, value in found:
        message, rest = message_of(value, _role(value, role))
        messages.append(message)
        if rest:
            rests[f"{name}[{place}]"] = rest
    return tuple(messages), rests


def _is_choice(value: Any) -> bool:
    return isinstance(value, dict) and value.get("event.name") == _CHOICE


def _role(value: Any, role: str) -> str:
    """Who says it, where a message has an event's name and no role."""
    told = value.get("event.name") if isinstance(value, dict) else None
    return "assistant" if told == _CHOICE else _ROLES.get(told, role) if isinstance(told, str) else role


def _with_system(side: Side, attrs: Attributes) -> Side:
    """With the instructions of the system before all else."""
    found = decoded(attrs.get(SYSTEM))
    if not found or not isinstance(found, str | list):
        return side
    parts: list[Part] = []
    rests = dict(side.rest)
    for place, value in enumerate([found] if isinstance(found, str) else found):
        part, rest = part_of(value)
        parts.append(part)
        if rest:
            rests[f"{SYSTEM}[{place}]"] = rest
    message = Message("system", tuple(parts))
    since = None if side.since is None else side.since + 1
    return Side((message, *side.messages), (SYSTEM, *side.taken), rests, side.events, since)


def _answered(attrs: Attributes) -> Side | None:
    """The answer as the AI SDK tells it: a text, and calls as JSON."""
    text, calls = attrs.get("ai.response.text"), decoded(attrs.get("ai.response.toolCalls"))
    parts: list[Part] = [Text(text)] if isinstance(text, str) and text else []
    taken = ["ai.response.text"] if parts else []
    rests: dict[str, Any] = {}
    if isinstance(calls, list) and calls:
        taken.append("ai.response.toolCalls")
        for place, value in enumerate(calls):
            part, rest = part_of({"type": "tool-call", **value} if isinstance(value, dict) else value)
            parts.append(part)
            if rest:
                rests[f"ai.response.toolCalls[{place}]"] = rest
    return Side((Message("assistant", tuple(parts)),), tuple(taken), rests) if parts else None


# ---- flattened: ``llm.input_messages.0.message.role``


def _flat(attrs: Attributes, prefixes: Iterable[str], role: str) -> Side | None:
    for prefix in prefixes:
        names = [name for name in attrs if name.startswith(prefix)]
        if names and (found := _numbered(attrs, prefix, names)):
            messages, rest = _messages(sorted(found.items()), role, prefix.removesuffix("."))
            used = tuple(name for name in names if name[len(prefix) :].partition(".")[0].isdecimal())
            if side := Side(messages, used, rest):
                return side
    return None


def _numbered(attrs: Attributes, prefix: str, names: list[str]) -> dict[int, Any]:
    """The messages by their numbers, nested again."""
    found: dict[int, dict[str, Any]] = {}
    for name in names:
        place, _, path = name[len(prefix) :].partition(".")
        if len(place) < 8 and place.isdecimal():
            tree = found.setdefault(int(place), {})
            _put(tree, path or "content", attrs[name])
    return {place: _nested(tree) for place, tree in found.items()}


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".", 12)
    for step in above:
        below = tree.get(step)
        if below is not None and not isinstance(below, _Tree):
            add_field(tree, path, value)  # a value and a branch under one name
            return
        tree = tree.setdefault(step, _Tree())
    add_field(tree, last, value)


class _Tree(dict[str, Any]):
    """A branch; a dict that is a value is none."""


def _nested(tree: dict[str, Any]) -> Any:
    """Branches under numbers as lists."""
    made = {key: _nested(value) if isinstance(value, _Tree) else value for key, value in tree.items()}
    if made and all(key.isdecimal() and len(key) < 8 for key in made):
        return [made[key] for key in sorted(made, key=int)]
    return made


# ---- as events


def _detailed(events: Sequence[Event], names: Sequence[str], role: str) -> Side | None:
    """Messages in an attribute of an event (``gen_ai.client.inference.operation.details``)."""
    for place, event in enumerate(events):
        side = _listed(event.attrs, names, role)
        if side is not None:
            side = _with_system(side, event.attrs) if names is _GIVEN else side
            others = {key: value for key, value in event.attrs.items() if key not in side.taken}
            return (
                Side(side.messages, (), side.rest)
                if others or event.rest
                else Side(side.messages, (), side.rest, (place,))
            )
    return None


def _heard(events: Sequence[Event]) -> Side | None:
    return _told(events, _ROLES, "gen_ai.content.prompt")


def _chosen(events: Sequence[Event]) -> Side | None:
    return _told(events, {_CHOICE: "assistant"}, "gen_ai.content.completion")


def _told(events: Sequence[Event], roles: dict[str, str], plain: str) -> Side | None:
    messages: list[Message] = []
    rests: dict[str, Any] = {}
    taken = []
    for place, event in enumerate(events):
        if event.name not in roles and event.name != plain:
            continue
        for message, rest in _of_event(event, roles):
            messages.append(message)
            if rest:
                add_field(rests, event.name, rest)
        if fields := without(event.rest, "timeUnixNano", "time_unix_nano"):
            add_field(rests, event.name, fields)
        taken.append(place)
    return Side(tuple(messages), (), rests, tuple(taken)) or None


def _of_event(event: Event, roles: dict[str, str]) -> Iterator[tuple[Message, dict[str, Any]]]:
    if event.name in roles:
        yield message_of(event.attrs, roles[event.name])
        return
    name = _TEXTS[event.name]
    role = "user" if name == "gen_ai.prompt" else "assistant"
    found = decoded(event.attrs.get(name))
    others = without(event.attrs, name)
    for place, value in enumerate(found if isinstance(found, list) and found else [found]):
        message, rest = message_of("" if value is None else value, role)
        yield message, rest | (others if place == 0 else {})


# ---- messages and their parts, in the words of each convention; what has no place in them is handed back


def message_of(value: Any, role: str) -> tuple[Message, Fields]:
    """A message, and what of it has no place there. `role` is whose it is if it does not say."""
    if isinstance(value, str):
        return Message(role, (Text(value),)), {}
    if not isinstance(value, dict):
        return Message(role, (Blob("message", value),)), {}
    rest = _opened(value)
    role = _text(rest, "role") or role
    if role == "tool" or isinstance(rest.get("tool_call_id"), str):
        found = _answer(rest)
        if found is not None:
            return Message(role, (found,), id=_text(rest, "id"), name=found.name), rest
    parts = [*_contents(rest), *_calls(rest)]
    reason = _text(rest, "finish_reason")
    return Message(role, tuple(parts), id=_text(rest, "id"), finish_reason=reason, name=_text(rest, "name")), rest


def _opened(value: Fields) -> Fields:
    """The fields of a message that may be within another object, beside what that says."""
    inner = decoded(value.get("message"))
    if not isinstance(inner, dict):
        if isinstance(inner, list):
            inner = value["message"]  # parts
        if isinstance(inner, str | list) and "content" not in value:
            return {"content": inner, **{key: item for key, item in value.items() if key != "message"}}
        return dict(value)
    fields = dict(inner)
    for key, item in value.items():
        if key != "message":
            add_field(fields, key, item)
    return fields


def _answer(rest: Fields) -> ToolResult | None:
    """What a message of a tool answers; None where its parts say so themselves."""
    if "content" not in rest and "contents" not in rest:
        return None
    name = "content" if "content" in rest else "contents"
    content = rest[name]
    if isinstance(content, list) and any(_kind(part) in _RESULT for part in content if isinstance(part, dict)):
        return None
    del rest[name]
    ident = _text(rest, "tool_call_id") or _text(rest, "id")
    return ToolResult(ident, decoded(content), name=_text(rest, "name"))


def _contents(rest: Fields) -> list[Part]:
    parts: list[Part] = []
    for name in ("parts", "contents", "content"):
        value = decoded(rest[name]) if name in rest and name != "content" else rest.get(name)
        if name == "content" and isinstance(value, str) and value.lstrip()[:1] == "[":
            value = _parts_in(value)
        if isinstance(value, str):
            if value and value not in [part.text for part in parts if isinstance(part, Text)]:
                parts.append(Text(value))
        elif isinstance(value, list):
            for place, one in enumerate(value):
                part, left = part_of(one)
                parts.append(part)
                if left:
                    rest[f"{name}[{place}]"] = left
        elif isinstance(value, dict):
            part, left = part_of(value)
            parts.append(part)
            if left:
                rest[f"{name}[0]"] = left
        elif value is not None:
            continue
        rest.pop(name, None)
    return parts


def _parts_in(text: str) -> Any:
    """Parts that are written as JSON; a text that only looks like it stays one."""
    found = decoded(text)
    return found if isinstance(found, list) and found and all(_is_part(one) for one in found) else text


def _is_part(value: Any) -> bool:
    return bool(_kind(value)) or (isinstance(value, dict) and len(value) == 1 and not value.keys().isdisjoint(_BLOCKS))


def _calls(rest: Fields) -> list[Part]:
    calls: list[Part] = []
    found = decoded(rest.get("tool_calls"))
    if isinstance(found, list):
        del rest["tool_calls"]
        for place, value in enumerate(found):
            part, left = part_of({"type": "tool_call", **value} if isinstance(value, dict) else value)
            calls.append(part)
            if left:
                rest[f"tool_calls[{place}]"] = left
    single = rest.get("function_call")
    if isinstance(single, dict) and isinstance(single.get("name"), str):
        call, left = _call(dict(rest.pop("function_call")))
        calls.append(call)
        if left:
            rest["function_call"] = left
    if isinstance(rest.get("function_call_name"), str):
        name = rest.pop("function_call_name")
        calls.append(ToolCall(None, name, decoded(rest.pop("function_call_arguments_json", None))))
    return calls


def part_of(value: Any) -> tuple[Part, Fields]:
    """A part of a message, and what of it has no place there."""
    if isinstance(value, str):
        return Text(value), {}
    if not isinstance(value, dict):
        return Blob("part", value), {}
    rest = dict(value)
    for name in _WRAPPERS:
        inner = rest.get(name)
        if isinstance(inner, dict):
            del rest[name]
            outer, rest = rest, dict(inner)
            for key, item in outer.items():
                if key != "type" or "type" not in rest:
                    add_field(rest, key, item)
    kind = _kind(rest)
    if len(rest) == 1 and (block := next(iter(rest))) in _BLOCKS:
        kind, rest = _BLOCKS[block], _unblocked(rest, block)
    if kind in _TEXT_KINDS or (not kind and isinstance(rest.get("text"), str)):
        text = _one(rest, "content", "text", "refusal")
        return (Text(text), _typeless(rest)) if text is not None else (Blob(kind or "text", value), {})
    if kind in _THOUGHT:
        text = _one(rest, "content", "text", "thinking", "reasoning")
        return (Reasoning(text), _typeless(rest)) if text is not None else (Blob(kind, value), {})
    if kind in _CALL:
        return _call(_typeless(rest))
    if kind in _RESULT:
        return _result(_typeless(rest))
    return Blob(kind or "part", value), {}


def _unblocked(rest: Fields, block: str) -> Fields:
    """The fields of such a part: those of the one object in it, if it is one."""
    inner = rest[block]
    thought = inner.get("reasoningText") if block == "reasoningContent" and isinstance(inner, dict) else None
    if isinstance(thought, dict):
        return {**{key: value for key, value in inner.items() if key != "reasoningText"}, **thought}
    return dict(inner) if isinstance(inner, dict) else rest


def _call(rest: Fields) -> tuple[Part, Fields]:
    inner = rest.get("function")
    if isinstance(inner, dict):
        del rest["function"]
        for key, item in inner.items():
            add_field(rest, key, item)
    ident = _one(rest, "id", "call_id", "toolCallId", "tool_call_id", "toolUseId")
    name = _one(rest, "name", "toolName") or "call"
    found = next((key for key in ("arguments", "args", "input") if key in rest), None)
    given = decoded(rest.pop(found)) if found is not None else None
    return ToolCall(ident, name, given), rest


def _result(rest: Fields) -> tuple[Part, Fields]:
    ident = _one(rest, "id", "call_id", "toolCallId", "tool_call_id", "tool_use_id", "toolUseId")
    name = _one(rest, "name", "toolName")
    found = next((key for key in ("response", "result", "output", "content") if key in rest), None)
    content = decoded(rest.pop(found)) if found is not None else None
    failed = next((rest.pop(key) for key in ("is_error", "isError") if isinstance(rest.get(key), bool)), None)
    return ToolResult(ident, content, failed, name), rest


def _kind(value: Any) -> str:
    found = value.get("type", value.get("kind")) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _typeless(rest: Fields) -> Fields:
    return {key: value for key, value in rest.items() if key != "type" or not isinstance(value, str)}


def _text(rest: Fields, name: str) -> str | None:
    """Take a field that is text."""
    return word(rest.pop(name)) if isinstance(rest.get(name), str) else None


def _one(rest: Fields, *names: str) -> str | None:
    """Take the first of these fields that is text."""
    return next((rest.pop(name) for name in names if isinstance(rest.get(name), str)), None)

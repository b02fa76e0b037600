"""Messages of spans, in all their layouts: JSON in an attribute, flattened into many attributes, or events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.formats.bodies import add_field, convert_each
from tracetui.formats.otlp.cut_json import decode_cut
from tracetui.formats.otlp.records import (
    CONVERSATIONS,
    EVENTS,
    INPUTS_FLAT,
    MESSAGES_IN,
    MESSAGES_OUT,
    OUTPUTS_FLAT,
    SYSTEM,
    Attributes,
    Event,
    content,
    decoded,
    parse_int,
)
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
"""Parts in Bedrock: an object of one field, which is their kind."""
_WRAPPERS: Final = ("message_content", "tool_call")
_ROLES: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_SYSTEMS: Final = ("system", "developer")
_FIRST_ROLES: Final = ("llm.input_messages.0.message.role", "gen_ai.prompt.0.role")
_TALKS: Final = (*MESSAGES_IN, *EVENTS, *CONVERSATIONS)
"""Attributes with messages among which those of the system may be."""
_NO_SYSTEM: Final = re.compile(rb'\{"stringValue": ?"\[\{\\"role\\": ?\\"(?:user|assistant|tool)\\"')
"""The beginning of a conversation that has no system message before its first other message."""
_USERS: Final = ("user", "human")
_NEW: Final = "pydantic_ai.new_message_index"
_CHOICE: Final = "gen_ai.choice"
_TEXTS: Final = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
_RETRY: Final = "Fix the errors and try again."
"""The end of Pydantic AI's own messages in the user's role."""
CUT: Final = "cut off in the trace"
"""Note on an attribute whose messages are not all there."""
_LISTS: Final = ("messages", "choices")
"""Names of the list of messages in the request and in the answer of a chat API."""
_MOST: Final = 100_000
"""Messages of a span that are read."""


class Messages(msgspec.Struct, frozen=True):
    """The input messages of a span, or its output messages."""

    messages: tuple[Message, ...] = ()
    taken: tuple[str, ...] = ()
    """The attributes that hold them."""
    rest: Fields = {}
    """Their fields that don't fit a message."""
    events: tuple[int, ...] = ()
    """The events that hold them."""
    since: int | None = None
    """Index of the first new one; None if that is not in the trace."""
    partial: bool = False
    """A part of a conversation, which may end in the middle of the work."""

    def __bool__(self) -> bool:
        """Whether any message has content: one of a role alone must not hide messages in other attributes."""
        for message in self.messages:
            for part in message.parts:
                if not isinstance(part, Text | Reasoning) or part.text:
                    return True
        return False

    @property
    def text(self) -> str | None:
        """The text of the last message that has some."""
        for message in reversed(self.messages):
            if text := text_of(message).strip():
                return text
        return None

    @property
    def preview(self) -> str:
        """The text, else the tools that are called."""
        if text := self.text:
            return text
        calls = [part.name for message in self.messages for part in message.parts if isinstance(part, ToolCall)]
        return "→ " + ", ".join(calls) if calls else ""

    @property
    def answer(self) -> str | None:
        """The text that is the output as a whole; None for a conversation that ends in a question or a tool call."""
        if not self.partial:
            return "\n".join(text for message in self.messages if (text := text_of(message))) or None
        last = self.messages[-1] if self.messages else None
        if last is None or last.role in (*_SYSTEMS, *_USERS):
            return None
        return None if any(isinstance(part, ToolCall | ToolResult) for part in last.parts) else self.text

    @property
    def prompt(self) -> str | None:
        """The user's prompt: in a conversation with several turns, the latest one."""
        index = self._prompt_index()
        return None if index is None else text_of(self.messages[index]).strip()

    @property
    def question(self) -> list[tuple[str, str]] | None:
        """Roles and texts up to the prompt, which distinguish two turns of a conversation; without system messages."""
        index = self._prompt_index()
        if index is None:
            return None
        return [
            (message.role, text_of(message)) for message in self.messages[: index + 1] if message.role not in _SYSTEMS
        ]

    @property
    def system(self) -> str | None:
        """The first text of the system messages that the conversation begins with."""
        texts = (
            text_of(message).strip() for message in takewhile(lambda message: message.role in _SYSTEMS, self.messages)
        )
        return next(filter(None, texts), None)

    def _prompt_index(self) -> int | None:
        """The first new message of the user; without an index, the first of its last consecutive ones."""
        new = range(self.since or 0, len(self.messages))
        if self.since is not None:
            return next((i for i in new if _is_prompt(self.messages[i])), None)
        prompt = None
        for index in reversed(new):
            if _is_prompt(self.messages[index]):
                prompt = index
            elif prompt is not None and self.messages[index].role not in _SYSTEMS:
                break
        return prompt


def _is_prompt(message: Message) -> bool:
    text = text_of(message).strip() if message.role in _USERS else ""
    return bool(text) and not text.endswith(_RETRY)


NO_MESSAGES: Final = Messages()


def inputs_of(attrs: Attributes, events: Sequence[Event]) -> Messages:
    """The input messages of a model, agent or tool."""
    messages = (
        _from_json(attrs, MESSAGES_IN, "user")
        or _from_flat(attrs, INPUTS_FLAT, "user")
        or _from_details(events, MESSAGES_IN, "user")
        or _from_events(events, _ROLES, "gen_ai.content.prompt")
        or _exchange(attrs)[0]
        or _conversation(attrs)[0]
        or NO_MESSAGES
    )
    return _with_system(messages, attrs)


def outputs_of(attrs: Attributes, events: Sequence[Event]) -> Messages:
    """The output messages of a model or agent."""
    return (
        _from_json(attrs, MESSAGES_OUT, "assistant")
        or _from_flat(attrs, OUTPUTS_FLAT, "assistant")
        or _from_details(events, MESSAGES_OUT, "assistant")
        or _from_events(events, {_CHOICE: "assistant"}, "gen_ai.content.completion")
        or _exchange(attrs)[1]
        or _conversation(attrs)[1]
        or _from_ai_sdk(attrs)
        or NO_MESSAGES
    )


def may_have_system(attrs: Attributes, events: Sequence[Event]) -> bool:
    """Whether there may be a system message, found out without decoding the messages."""
    if SYSTEM in attrs or (events and any(event.name not in ("exception", _CHOICE) for event in events)):
        return True
    if any(name in attrs and attrs[name] in _SYSTEMS for name in _FIRST_ROLES):
        return True
    return any(name in attrs and not _is_without_system(attrs[name]) for name in _TALKS)


def _is_without_system(value: Any) -> bool:
    if isinstance(value, msgspec.Raw):
        return _NO_SYSTEM.match(value) is not None
    return isinstance(value, str) and not any(f'"{role}"' in value for role in _SYSTEMS)


# ---- as JSON in an attribute


def _from_json(attrs: Attributes, names: Iterable[str], role: str, *, choices: bool | None = None) -> Messages | None:
    """The messages of the first of these attributes; `choices`: only those that are choices, or only the others."""
    for name in names:
        value, is_cut = _decoded(content(attrs, name))
        others: Fields = {}
        if isinstance(value, dict):
            holder = next((key for key in _LISTS if isinstance(value.get(key), list)), None)
            value, others = ([value], {}) if holder is None else (value[holder], without(value, holder))
        if isinstance(value, list) and value:
            items = list(enumerate(value[:_MOST]))
            if choices is not None:
                items = [(i, item) for i, item in items if (_event_name(item) == _CHOICE) is choices]
                if not items:
                    return None
            rest: Fields = {name: value[_MOST:]} if len(value) > _MOST else {}
            if others:
                add_field(rest, name, others)
            if is_cut:
                rest[name] = CUT
            if messages := Messages(_messages(name, items, role, rest), (name,), rest):
                return messages
    return None


def _decoded(value: Any) -> tuple[Any, bool]:
    """The value of an attribute with JSON, and whether that was cut off."""
    parsed = decoded(value)
    if isinstance(parsed, str) and parsed.lstrip()[:1] in ("{", "["):
        cut = decode_cut(parsed)
        if cut is not None:
            return cut, True
    return parsed, False


def _messages(name: str, items: Iterable[tuple[int, Any]], role: str, rest: Fields) -> tuple[Message, ...]:
    return tuple(convert_each(name, items, lambda item: message_of(item, _role(item, role)), rest))


def _event_name(value: Any) -> Any:
    return value.get("event.name") if isinstance(value, dict) else None


def _role(value: Any, role: str) -> str:
    """The role of a message that has an event's name and no role."""
    name = _event_name(value)
    return "assistant" if name == _CHOICE else _ROLES.get(name, role) if isinstance(name, str) else role


def _exchange(attrs: Attributes) -> tuple[Messages, Messages]:
    """Input and output as events in an attribute. Without a choice among them the last messages are the output."""
    given = _from_json(attrs, EVENTS, "user", choices=False) or NO_MESSAGES
    answer = _from_json(attrs, EVENTS, "assistant", choices=True)
    if answer is not None or not given:
        return given, answer or NO_MESSAGES
    cut = max((i for i, message in enumerate(given.messages) if message.role != "assistant"), default=-1) + 1
    return replace(given, messages=given.messages[:cut]), Messages(given.messages[cut:], given.taken)


def _conversation(attrs: Attributes) -> tuple[Messages, Messages]:
    """Input and output of a whole conversation: all up to the new question, and the agent's answer to it.

    The index of the first new message counts messages of the library, of which each may become several here: the
    question is there or later. Versions that write the index leave it out where it is 0; they also write
    ``gen_ai.agent.name``. Before them the latest question is the new one.
    """
    conversation = _from_json(attrs, CONVERSATIONS, "user")
    if conversation is None:
        return NO_MESSAGES, NO_MESSAGES
    since = parse_int(attrs.get(_NEW))
    if since is not None or "gen_ai.agent.name" in attrs:
        conversation = replace(conversation, since=max(0, since or 0))
    begin = conversation._prompt_index()
    begin = begin if begin is not None else conversation.since or 0
    places = range(begin, len(conversation.messages))
    cut = next((i for i in places if conversation.messages[i].role == "assistant"), len(conversation.messages))
    answer = Messages(conversation.messages[cut:], conversation.taken, partial=True)
    return replace(conversation, messages=conversation.messages[:cut]), answer


def _with_system(conversation: Messages, attrs: Attributes) -> Messages:
    """The messages after the system instructions, where these have an attribute of their own."""
    system, is_cut = _decoded(content(attrs, SYSTEM))
    if not system or not isinstance(system, str | list):
        return conversation
    rest = dict(conversation.rest)
    if is_cut:
        rest[SYSTEM] = CUT
    parts = convert_each(SYSTEM, enumerate([system] if isinstance(system, str) else system), part_of, rest)
    since = None if conversation.since is None else conversation.since + 1
    messages = (Message("system", tuple(parts)), *conversation.messages)
    return Messages(messages, (SYSTEM, *conversation.taken), rest, conversation.events, since)


def _from_ai_sdk(attrs: Attributes) -> Messages | None:
    """The output in the AI SDK: a text, and calls as JSON."""
    text, (calls, is_cut) = content(attrs, "ai.response.text"), _decoded(content(attrs, "ai.response.toolCalls"))
    parts: list[Part] = [Text(text)] if isinstance(text, str) and text else []
    taken = ["ai.response.text"] if parts else []
    rest: Fields = {"ai.response.toolCalls": CUT} if is_cut else {}
    if isinstance(calls, list) and calls:
        taken.append("ai.response.toolCalls")
        parts += convert_each("ai.response.toolCalls", enumerate(calls), _call_part, rest)
    return Messages((Message("assistant", tuple(parts)),), tuple(taken), rest) if parts else None


# ---- flattened: ``llm.input_messages.0.message.role``


def _from_flat(attrs: Attributes, prefixes: Iterable[str], role: str) -> Messages | None:
    for prefix in prefixes:
        taken, trees = [], dict[int, _Tree]()
        for name in attrs:
            index, _, path = name[len(prefix) :].partition(".")
            if name.startswith(prefix) and index.isdecimal() and len(index) < 8:
                taken.append(name)
                _put(trees.setdefault(int(index), _Tree()), path or "content", attrs[name])
        items = [(index, _nested(trees[index])) for index in sorted(trees)]
        rest: Fields = {}
        if messages := Messages(_messages(prefix.removesuffix("."), items, role, rest), tuple(taken), rest):
            return messages
    return None


class _Tree(dict[str, Any]):
    """A branch; a dict that is a value is none."""


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".", 12)
    for step in above:
        below = tree.get(step)
        if below is not None and not isinstance(below, _Tree):
            add_field(tree, path, value)  # a value and a branch under one name
            return
        tree = tree.setdefault(step, _Tree())
    add_field(tree, last, value)


def _nested(tree: dict[str, Any]) -> Any:
    """Branches under numbers as lists."""
    nested = {key: _nested(value) if isinstance(value, _Tree) else value for key, value in tree.items()}
    if nested and all(key.isdecimal() and len(key) < 8 for key in nested):
        return [nested[key] for key in sorted(nested, key=int)]
    return nested


# ---- as events


def _from_details(events: Sequence[Event], names: Sequence[str], role: str) -> Messages | None:
    """Messages in an attribute of an event (``gen_ai.client.inference.operation.details``)."""
    for index, event in enumerate(events):
        messages = _from_json(event.attrs, names, role)
        if messages is not None:
            messages = _with_system(messages, event.attrs) if names is MESSAGES_IN else messages
            all_taken = not event.rest and event.attrs.keys() <= set(messages.taken)
            return Messages(messages.messages, (), messages.rest, (index,) if all_taken else ())
    return None


def _from_events(events: Sequence[Event], roles: dict[str, str], plain: str) -> Messages | None:
    """Messages that are an event each; `plain` is the name of an event with messages as a text or as JSON."""
    messages: list[Message] = []
    rests: Fields = {}
    taken = []
    for index, event in enumerate(events):
        if event.name not in roles and event.name != plain:
            continue
        for message, rest in _messages_in(event, roles):
            messages.append(message)
            if rest:
                add_field(rests, event.name, rest)
        if fields := without(event.rest, "timeUnixNano", "time_unix_nano"):
            add_field(rests, event.name, fields)
        taken.append(index)
    return Messages(tuple(messages), (), rests, tuple(taken)) or None


def _messages_in(event: Event, roles: dict[str, str]) -> Iterator[tuple[Message, Fields]]:
    if event.name in roles:
        yield message_of(event.attrs, roles[event.name])
        return
    name = _TEXTS[event.name]
    texts = decoded(event.attrs.get(name))
    others = without(event.attrs, name)
    for value in texts if isinstance(texts, list) and texts else [texts]:
        message, rest = message_of("" if value is None else value, "user" if name == "gen_ai.prompt" else "assistant")
        yield message, rest | others
        others = {}


# ---- messages and their parts in each convention, with the fields that don't fit them


def message_of(value: Any, role: str) -> tuple[Message, Fields]:
    """A message and its other fields; `role` is for one without a role."""
    if isinstance(value, str):
        return Message(role, (Text(value),)), {}
    if not isinstance(value, dict):
        return Message(role, (Blob("message", value),)), {}
    rest = _unwrapped(value)
    role = _take_text(rest, "role") or role
    if role == "tool" or isinstance(rest.get("tool_call_id"), str):
        result = _tool_result(rest)
        if result is not None:
            return Message(role, (result,), id=_take_text(rest, "id"), name=result.name), rest
    parts = (*_contents(rest), *_calls(rest))
    ident, reason, name = _take_text(rest, "id"), _take_text(rest, "finish_reason"), _take_text(rest, "name")
    return Message(role, parts, id=ident, finish_reason=reason, name=name), rest


def _unwrapped(value: Fields) -> Fields:
    """The fields of a message, also where it is within another object."""
    if "message" not in value:
        return dict(value)
    inner = decoded(value["message"])
    if isinstance(inner, dict):
        fields = dict(inner)
        for key, item in value.items():
            if key != "message":
                add_field(fields, key, item)
        return fields
    if isinstance(inner, str | list) and "content" not in value:
        return {"content": value["message"], **without(value, "message")}
    return dict(value)


def _tool_result(rest: Fields) -> ToolResult | None:
    """The result that a message of a tool is; None if it has parts that are results."""
    name = "content" if "content" in rest else "contents"
    content = rest.get(name)
    if name not in rest or (isinstance(content, list) and any(_kind(part) in _RESULT for part in content)):
        return None
    del rest[name]
    ident = _take_text(rest, "tool_call_id", "id")
    return ToolResult(ident, decoded(content), name=_take_text(rest, "name"))


def _contents(rest: Fields) -> list[Part]:
    parts: list[Part] = []
    for name in ("parts", "contents", "content"):
        if name not in rest:
            continue
        value = rest[name]
        if name != "content" or (isinstance(value, str) and value.lstrip()[:1] == "["):
            inner = decoded(value)
            # content that only looks like JSON of parts is a text
            value = inner if name != "content" or (inner and all(map(_is_part, inner))) else value
        if isinstance(value, str):
            if value and Text(value) not in parts:
                parts.append(Text(value))
        elif isinstance(value, list | dict):
            parts += convert_each(name, enumerate([value] if isinstance(value, dict) else value), part_of, rest)
        elif value is not None:
            continue
        del rest[name]
    return parts


def _is_part(value: Any) -> bool:
    return bool(_kind(value)) or (isinstance(value, dict) and len(value) == 1 and not value.keys().isdisjoint(_BLOCKS))


def _calls(rest: Fields) -> list[Part]:
    calls: list[Part] = []
    requests = decoded(rest["tool_calls"]) if "tool_calls" in rest else None
    if isinstance(requests, list):
        del rest["tool_calls"]
        calls += convert_each("tool_calls", enumerate(requests), _call_part, rest)
    single = rest.get("function_call")
    if isinstance(single, dict) and isinstance(single.get("name"), str):
        call, unknown = _call(dict(rest.pop("function_call")))
        calls.append(call)
        if unknown:
            rest["function_call"] = unknown
    if isinstance(rest.get("function_call_name"), str):
        name = rest.pop("function_call_name")
        calls.append(ToolCall(None, name, decoded(rest.pop("function_call_arguments_json", None))))
    return calls


def _call_part(value: Any) -> tuple[Part, Fields]:
    """An item of a list of calls, which may have no kind."""
    return part_of({"type": "tool_call", **value} if isinstance(value, dict) else value)


def part_of(value: Any) -> tuple[Part, Fields]:
    """A part of a message and its other fields."""
    if isinstance(value, str):
        return Text(value), {}
    if not isinstance(value, dict):
        return Blob("part", value), {}
    rest = dict(value)
    for name in _WRAPPERS:
        if name in rest and isinstance(rest[name], dict):
            outer, rest = rest, dict(rest[name])
            for key, item in outer.items():
                if key != name and (key != "type" or "type" not in rest):
                    add_field(rest, key, item)
    kind = _kind(rest)
    if len(rest) == 1 and (block := next(iter(rest))) in _BLOCKS:
        kind, rest = _BLOCKS[block], _unwrapped_block(rest, block)
    if kind in _TEXT_KINDS or (not kind and isinstance(rest.get("text"), str)):
        text = _take_string(rest, "content", "text", "refusal")
        return (Text(text), _typeless(rest)) if text is not None else (Blob(kind or "text", value), {})
    if kind in _THOUGHT:
        text = _take_string(rest, "content", "text", "thinking", "reasoning")
        return (Reasoning(text), _typeless(rest)) if text is not None else (Blob(kind, value), {})
    if kind in _CALL:
        return _call(_typeless(rest))
    if kind in _RESULT:
        return _result(_typeless(rest))
    return Blob(kind or "part", value), {}


def _unwrapped_block(rest: Fields, block: str) -> Fields:
    """The fields of a part of Bedrock: those of the object in it, if it is one."""
    inner = rest[block]
    if not isinstance(inner, dict):
        return rest
    thought = inner.get("reasoningText") if block == "reasoningContent" else None
    return without(inner, "reasoningText") | thought if isinstance(thought, dict) else dict(inner)


def _call(rest: Fields) -> tuple[Part, Fields]:
    if isinstance(rest.get("function"), dict):
        for key, item in rest.pop("function").items():
            add_field(rest, key, item)
    ident = _take_string(rest, "id", "call_id", "toolCallId", "tool_call_id", "toolUseId")
    name = _take_string(rest, "name", "toolName") or "call"
    return ToolCall(ident, name, _take_value(rest, "arguments", "args", "input")), rest


def _result(rest: Fields) -> tuple[Part, Fields]:
    ident = _take_string(rest, "id", "call_id", "toolCallId", "tool_call_id", "tool_use_id", "toolUseId")
    name = _take_string(rest, "name", "toolName")
    content = _take_value(rest, "response", "result", "output", "content")
    failed = next((rest.pop(key) for key in ("is_error", "isError") if isinstance(rest.get(key), bool)), None)
    return ToolResult(ident, content, failed, name), rest


def _kind(value: Any) -> str:
    kind = value.get("type", value.get("kind")) if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def _typeless(rest: Fields) -> Fields:
    if isinstance(rest.get("type"), str):
        del rest["type"]
    return rest


def _take_text(rest: Fields, *names: str) -> str | None:
    """Take these fields up to the first that is a text with something in it."""
    for name in names:
        if name in rest and isinstance(rest[name], str) and (text := word(rest.pop(name))):
            return text
    return None


def _take_string(rest: Fields, *names: str) -> str | None:
    """Take the first of these fields that is a text, even an empty one."""
    for name in names:
        if name in rest and isinstance(rest[name], str):
            text: str = rest.pop(name)
            return text
    return None


def _take_value(rest: Fields, *names: str) -> Any:
    """Take the first of these fields, decoded."""
    return next((decoded(rest.pop(name)) for name in names if name in rest), None)

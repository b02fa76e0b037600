"""Records of a trajectory of SWE-agent or mini-swe-agent, and their document.

Facts: SWE-agent (``sweagent/types.py``, ``agent/agents.py``, its documentation of output files) from 0.5 to 1.1;
mini-swe-agent (``agents/default.py``, ``models/``, ``run/utils/save.py``) 1 and 2, format ``mini-swe-agent-1.1``.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct

from tracetui.formats.bodies import text_in
from tracetui.formats.decode import decode, decode_value
from tracetui.formats.document import Outline
from tracetui.formats.scalars import child, mapping, string, word
from tracetui.formats.schema import NULL, Finite, Integer, Schema, plain

Content = str | list[Any] | None
_BLOCK: Final = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)


class Extra(Struct, frozen=True, gc=False):
    """Extra fields of mini-swe-agent for a message; version 1 writes none, or the ``response`` alone."""

    other_fields: ClassVar[str] = "exception exception_str exception_type model_response n_actions submission traceback"
    actions: list[Any] | None = None
    """The commands that it found in a response: ``{"command", "tool_call_id"}``."""
    cost: Finite | None = None
    timestamp: Finite | None = None
    """Seconds since the epoch when the message was complete."""
    response: Any = None
    returncode: Integer | None = None
    raw_output: Any = None
    exception_info: str | None = None
    interrupt_type: str | None = None
    exit_status: str | None = None


class Message(Struct, gc=False):
    """A message of mini-swe-agent, or an item of SWE-agent's history.

    One of the Responses API has no role: ``object`` is ``response``, or ``type`` is ``function_call_output``.
    """

    other_fields: ClassVar[str] = (
        "annotations audio background cache_control completed_at created_at error frequency_penalty function_call id "
        "images incomplete_details instructions max_output_tokens max_tool_calls metadata model name output "
        "parallel_tool_calls presence_penalty previous_response_id prompt prompt_cache_key prompt_cache_retention "
        "provider_specific_fields reasoning reasoning_content refusal safety_identifier service_tier status store tags "
        "temperature text thinking_blocks tool_choice tools top_logprobs top_p truncation user"
    )
    role: str | None = None
    object: str | None = None
    type: str | None = None
    content: Content = None
    agent: str | None = None
    message_type: str | None = None
    is_demo: bool | None = None
    thought: str | None = None
    action: str | None = None
    tool_calls: list[Any] | None = None
    tool_call_ids: list[str] | None = None
    tool_call_id: str | None = None
    call_id: str | None = None
    output: Raw = NULL
    usage: Any = None
    extra: Extra = Extra()

    @property
    def author(self) -> str | None:
        """Its role; None for a message of an unknown kind."""
        if self.role is not None:
            return self.role
        return "assistant" if self.object == "response" else "tool" if self.type == "function_call_output" else None

    @property
    def is_response(self) -> bool:
        """Whether the model answered this now: a demonstration was written before."""
        return self.author == "assistant" and not self.is_demo

    @property
    def text(self) -> str:
        return text_in(self.content) or responded(plain(self.output))


class Step(Struct, gc=False):
    """A step of SWE-agent: a response, the command in it, and its output."""

    other_fields: ClassVar[str] = "extra_info messages output query state"
    action: str | None = None
    observation: Content = None
    response: Content = None
    thought: str | None = None
    execution_time: Finite | None = None
    """Seconds that the command took."""


class Stats(Struct, frozen=True, gc=False):
    """Of this run; ``total_cost`` is that of all that the process ran until then."""

    other_fields: ClassVar[str] = "total_cost"
    instance_cost: Finite | None = None
    tokens_sent: Integer | None = None
    tokens_received: Integer | None = None
    api_calls: Integer | None = None


class Info(Struct, frozen=True, gc=False):
    other_fields: ClassVar[str] = (
        "edited_files30 edited_files50 edited_files70 review summarizer swe_agent_hash swe_rex_hash swe_rex_version"
    )
    exit_status: str | int | None = None
    model_stats: Stats = Stats()
    config: Any = None
    mini_version: str | None = None
    swe_agent_version: str | None = None
    submission: Any = None
    exception_str: str | None = None
    traceback: str | None = None


class Document(Struct, gc=False):
    other_fields: ClassVar[str] = "attempts environment history messages trajectory"
    info: Info = Info()
    replay_config: Any = None
    """The configuration of SWE-agent, as an object or as JSON text."""
    instance_id: str | None = None
    trajectory_format: str | None = None


MESSAGE: Final = Schema[Message](Message)
STEP: Final = Schema[Step](Step)
DOCUMENT: Final = Schema[Document](Document)


class Trace:
    """A trajectory, decoded as it is asked for: steps and history of SWE-agent, or the messages of mini-swe-agent."""

    def __init__(self, data: bytes, path: str) -> None:
        """Raises `FormatError` unless it is an object or a list of messages."""
        if data.lstrip()[:1] == b"[":  # version 1 of mini-swe-agent could write the messages alone
            decode(data)
            data = b'{"messages":%b}' % data
        self.outline = Outline(data, path)
        self.is_mini = "messages" in self.outline.fields and not {"trajectory", "history"} & self.outline.fields.keys()
        self.lists = ("messages",) if self.is_mini else ("trajectory", "history")
        self.about = self.outline.record(DOCUMENT, *self.lists)
        given = self.about.replay_config
        self.config = mapping(decode_value(given) if isinstance(given, str) else given or self.about.info.config)
        """The configuration of either program."""
        model = child(self.config, "model") or child(child(self.config, "agent"), "model")
        self.model = word(model.get("model_name")) or word(model.get("name"))
        self.messages = list(self.outline.records(self.lists[-1], MESSAGE))


class Call(Struct, frozen=True, gc=False):
    name: str
    arguments: Any
    preview: str
    id: str | None = None


def calls_of(message: Message | None, step: Step | None) -> list[Call]:
    """The commands of a response: as the step has it, as mini-swe-agent found them, or as the model asked for them.

    Version 1 of mini-swe-agent does not record which command it found: the only fenced block, by its own rule.
    """
    message = message or Message()
    asked = [one for one in message.tool_calls or () if isinstance(one, dict)]
    action = message.action if step is None else step.action or ""
    if action is not None:
        return [_call(action, asked[0] if asked else {})] if action.strip() else []
    if message.extra.actions is not None:
        names = {string(one.get("id")): child(one, "function").get("name") for one in asked}
        found = [
            (string(one.get("command")) or "", one.get("tool_call_id")) for one in map(mapping, message.extra.actions)
        ]
        return [Call(word(names.get(string(i))) or "bash", {"command": c}, c.strip(), string(i)) for c, i in found]
    if asked:
        return [_call("", one) for one in asked]
    blocks = [] if message.agent is not None else _BLOCK.findall(text_in(message.content))
    return [Call("bash", {"command": blocks[0]}, blocks[0].strip())] if len(blocks) == 1 else []


def _call(action: str, asked: dict[str, Any]) -> Call:
    """A command, and the call of a tool that it was made of. SWE-agent's commands begin with the name of their tool."""
    given = child(asked, "function").get("arguments")
    arguments = decode_value(given) if isinstance(given, str) else given
    shown = action or next((one for one in mapping(arguments).values() if isinstance(one, str)), "")
    name = word(child(asked, "function").get("name")) or next(iter(action.split(maxsplit=1)), "bash")
    return Call(name, action if arguments is None else arguments, shown.strip(), string(asked.get("id")))


def responded(output: Any) -> str:
    """The text of ``output`` of the Responses API: that of an answer, or of the messages in a response."""
    items = [{"content": output}] if isinstance(output, str) else output if isinstance(output, list) else []
    return "\n".join(filter(None, (text_in(mapping(item).get("content")) for item in items)))

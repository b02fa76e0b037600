"""Records of a rollout decoded for counting: what is counted, and nothing of the long texts beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final

import msgspec

from tracetui.formats.codex.known import ENVELOPE, FIELDS
from tracetui.formats.codex.words import CALLS, DONE_CALLS
from tracetui.formats.decode import skippable, strict
from tracetui.formats.fields import Strange, Typed, closed

NULL: Final = msgspec.Raw(b"null")
_BEFORE: Final = ("Chunk ID: ", "Exit code: ", "Wall time: ", "Process exited with code ", "{")
"""What may stand before the output of a command."""
_WRITTEN: Final = tuple(one.encode() for one in _BEFORE)
_LONGEST: Final = max(map(len, _WRITTEN))
_WELL: Final = re.compile(
    rb'"(?:(?:Chunk ID: \w{1,40}|Wall time: [\d.]{1,20} seconds|(Exit code: 0|Process exited with code 0)'
    rb"|Process running with session ID \d{1,20}|(?:Original token count|Total output lines): \d{1,20})\\n){1,7}"
    rb'Output:(?:\\n|"$)'
)
"""What stands before the output of a command that went well."""
_START: Final = 32
"""Bytes of an output that say whether something stands before it."""
_LONG: Final = 1 << 20
_Count = Annotated[int, msgspec.Meta(gt=-(1 << 53), lt=1 << 53)]


class Part(msgspec.Struct, gc=False):
    """A part of a content."""

    text: str | None = None


Content = str | list[Part | str] | None


class Counts(msgspec.Struct, gc=False, frozen=True):
    """Tokens, in the order of the fields of `Usage`."""

    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    total_tokens: _Count | None = None
    cached_input_tokens: _Count | None = None
    cache_write_input_tokens: _Count | None = None
    reasoning_output_tokens: _Count | None = None


NOTHING: Final = Counts()


# A field that is `None` says something that is not counted here: where it is there, the record is another kind.


class Payload(msgspec.Struct, gc=False, tag_field="type", kw_only=True):
    """What a record says."""

    item: None = None
    started_at_ms: float | None = None


class Message(Payload, tag="message"):
    """An item that somebody said."""

    role: str | None = None
    content: Content = None
    message: None = None
    id: str | None = None
    kind: msgspec.Raw = NULL
    internal_chat_message_metadata_passthrough: msgspec.Raw = NULL


class Thought(Payload, tag="reasoning"):
    """An item that the model thought."""

    id: str | None = None
    summary: Content = None
    summary_text: Content = None
    content: Content = None
    raw_content: Content = None


class Call(Payload, tag=False):
    """An item that is a call of a tool."""

    call_id: str | None = None
    id: str | None = None
    name: str | None = None
    status: str | None = None


class Output(Payload, tag=False):
    """An item that is what a tool answered."""

    call_id: str | None = None
    output: msgspec.Raw = NULL
    success: None = None
    receiver_thread_ids: None = None
    new_thread_id: None = None


class Talk(Payload, tag="agent_message"):
    """An event that repeats what the model said."""

    message: str | None = None
    text: str | None = None


class Musing(Talk, tag="agent_reasoning"):
    """An event that repeats what it thought."""


class Murmur(Talk, tag="agent_reasoning_raw_content"):
    """The same, where it is told as it came."""


class Prompt(Payload, tag="user_message"):
    """An event that repeats what the user said."""

    message: str | None = None
    content: Content = None
    kind: msgspec.Raw = NULL
    internal_chat_message_metadata_passthrough: msgspec.Raw = NULL


class _Info(msgspec.Struct, gc=False):
    last_token_usage: Counts | None = None
    total_token_usage: Counts | None = None


class Tokens(Payload, tag="token_count"):
    """An event that tells tokens."""

    info: _Info | None = None
    started_at_ms: None = None


class UserMessage(msgspec.Struct, gc=False, tag_field="type"):
    """What the user said, as it was completed."""

    content: Content = None
    message: None = None


class AgentMessage(msgspec.Struct, gc=False, tag_field="type"):
    """What the model said."""

    id: str | None = None
    content: Content = None


class Reasoning(msgspec.Struct, gc=False, tag_field="type"):
    """What it thought."""

    id: str | None = None
    summary: Content = None
    summary_text: Content = None
    content: Content = None
    raw_content: Content = None


class CommandExecution(msgspec.Struct, gc=False, tag_field="type"):
    """What a command did."""

    id: str | None = None
    status: str | None = None
    exit_code: _Count | None = None
    success: None = None
    error: None = None
    result: None = None
    output: None = None
    duration: None = None
    invocation: None = None
    server: None = None
    tool: None = None
    receiver_thread_ids: None = None
    new_thread_id: None = None


Item = UserMessage | AgentMessage | Reasoning | CommandExecution


class Completed(msgspec.Struct, gc=False, tag_field="type", tag="item_completed"):
    """An event that tells of an item as it was completed."""

    item: Item
    kind: msgspec.Raw = NULL
    internal_chat_message_metadata_passthrough: msgspec.Raw = NULL
    started_at_ms: float | None = None
    completed_at_ms: float | None = None


class Context(msgspec.Struct, gc=False):
    """What a turn begins with."""

    type: None = None
    model: str | None = None


class Used(msgspec.Struct, gc=False):
    """What a response cost."""

    type: None = None
    usage: Counts | None = None
    thread_token_usage: Counts | None = None
    started_at_ms: None = None


class Plain(msgspec.Struct, gc=False):
    """What need not be looked at."""

    type: None = None


class Compacted(Plain):
    """What a compaction left."""


def _kinds(base: type[Payload], kinds: Iterable[str]) -> dict[type, str]:
    return {msgspec.defstruct(kind, [], bases=(base,), tag=kind, gc=False): kind for kind in sorted(kinds)}


CALL_KINDS: Final = _kinds(Call, CALLS | DONE_CALLS)
OUTPUT_KINDS: Final = _kinds(Output, ("function_call_output", "custom_tool_call_output", "tool_search_output"))


class Line(msgspec.Struct, gc=False, tag_field="type"):
    """A record; `payload` is one of the classes above."""

    timestamp: str


def _line(kind: str, payload: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct(kind, [("payload", payload)], bases=(Line,), tag=kind, gc=False)


CLOSED: Final[dict[type, type]] = {}
"""Classes of payloads of which each field is known, and those of the same payloads whatever they hold."""


def _open(payload: Any, kind: str = "") -> Any:
    return payload


def _closed(payload: Any, kind: str = "") -> Any:
    known = FIELDS.of(kind or str(payload.__struct_config__.tag))
    if known is None:
        return payload
    made = closed(payload, known)
    CLOSED[made] = payload
    return made


def _decoder(of: Callable[..., Any], line: Callable[[type[msgspec.Struct]], Any]) -> Callable[[bytes], Any]:
    items = reduce(or_, map(of, (Message, Thought, *CALL_KINDS, *OUTPUT_KINDS)))
    kinds = {
        "response_item": items,
        "event_msg": reduce(or_, map(of, (Completed, Tokens, Talk, Musing, Murmur, Prompt))),
        "token_usage_record": of(Used, "token_usage_record"),
        "turn_context": of(Context, "turn_context"),
        "world_state": of(Plain, "world_state"),
        "compacted": of(Compacted, "compacted"),
    }
    return msgspec.json.Decoder(reduce(or_, (line(_line(kind, payload)) for kind, payload in kinds.items()))).decode


def _count(strange: Strange, record: Any, data: bytes) -> None:
    kind = record.payload.__struct_config__.tag or record.__struct_config__.tag
    FIELDS.count(strange, str(kind), ENVELOPE.names_on(data))


decode: Final = Typed(
    _decoder(_open, lambda line: line), _decoder(_closed, lambda line: closed(line, ENVELOPE.known)), _count
)
"""The record on a line. Raises `msgspec.ValidationError` for one that may be of another kind, else `ValueError`."""


class _Ended(msgspec.Struct, gc=False):
    exit_code: _Count


class _Old(msgspec.Struct, gc=False):
    metadata: _Ended
    agent_id: None = None


_old: Final = msgspec.json.Decoder(_Old).decode
_content: Final = msgspec.json.Decoder(list[Part | str]).decode


def text_of(content: Content) -> str:
    """The text of a content; see `text_in`."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = [part if isinstance(part, str) else part.text for part in content]
    return "\n".join([text for text in texts if text is not None])


def went_well(output: msgspec.Raw) -> tuple[bool, int | None]:
    """Whether an output need not be looked at, and the exit code that it tells; see `of_output`."""
    head = bytes(memoryview(output)[:_START])
    if head[:1] == b"[":
        return not text_of(_content(output)).startswith(_BEFORE), None
    if head[:1] != b'"':
        return head == b"null", None
    plain = head[1:].partition(b"\\")[0]
    if plain[:1] == b"{":
        return _ended_well(output)
    if not plain.startswith(_WRITTEN):
        return len(plain) > _LONGEST or not any(one.startswith(plain) for one in _WRITTEN), None
    found = _WELL.match(output)
    return found is not None, None if found is None or found[1] is None else 0


def _ended_well(output: msgspec.Raw) -> tuple[bool, int | None]:
    """The same, of an output that is JSON itself."""
    data = strict(bytes(output)).encode()
    try:
        told = _old(data)
        skippable(data)
    except ValueError:
        return False, None
    well = told.metadata.exit_code == 0 and told.agent_id is None and len(data) < _LONG
    return well, 0 if well else None

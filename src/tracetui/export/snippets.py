"""Code generated from a step: a curl command, a JSON fixture, a pytest stub, code that resumes from it.

Output gets pasted into shells, editors and chats: it is ASCII without control characters, trace text appears only
inside quotes that it can't end, and the redactor, if given, masks secrets. Input is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tracetui.export.json import encode, span_document
from tracetui.export.text import compact
from tracetui.formats import guard, registry
from tracetui.model import Body, Message, Operation, Reasoning, Run, Span, Text, ToolCall, ToolResult, text_of
from tracetui.model.masked import masked, masked_body, masked_span
from tracetui.redact import Redactor
from tracetui.store.address import step_number

_WORD: Final = re.compile(r"[^A-Za-z0-9]+")
_MOST_TOKENS: Final = 4096


class _Provider(NamedTuple):
    """An API that serves models: its URL and headers."""

    url: str
    headers: tuple[str, ...] = ("Authorization: Bearer $API_KEY",)
    own: bool = False
    """Whether it has its own message format (not that of chat completions)."""


_ANTHROPIC: Final = _Provider(
    "https://api.anthropic.com/v1/messages", ("x-api-key: $API_KEY", "anthropic-version: 2023-06-01"), own=True
)
_PROVIDERS: Final = (
    (re.compile(r"claude"), _ANTHROPIC),
    (re.compile(r"gpt-|chatgpt|o[134](-|$)|text-embedding"), _Provider("https://api.openai.com/v1/chat/completions")),
    (
        re.compile(r"gemini"),
        _Provider("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
    ),
    (re.compile(r"mistral|codestral"), _Provider("https://api.mistral.ai/v1/chat/completions")),
)
_UNKNOWN: Final = _Provider("https://YOUR-PROVIDER.example/v1/chat/completions")


def curl(span: Span, body: Body, redactor: Redactor | None) -> str | None:
    """A curl command that repeats a model call, with ``$API_KEY`` for the key; None for other spans."""
    if span.operation is not Operation.CHAT:
        return None
    if redactor is not None:
        span, body = masked_span(span, redactor), masked_body(body, redactor)
    provider = next((provider for model, provider in _PROVIDERS if model.match(span.name.lower())), _UNKNOWN)
    payload = _payload(span, body, provider)
    if payload is None:
        return None
    headers = "".join(f' \\\n  -H "{header}"' for header in (*provider.headers, "content-type: application/json"))
    return f"curl {provider.url}{headers} \\\n  -d {_quoted(payload)}\n"


def fixture(run: Run, position: int, redactor: Redactor | None) -> str:
    """A step with its body as indented JSON."""
    masked_run = run if redactor is None else masked(run, redactor)
    return _indented(encode(span_document(masked_run, position)))


def pytest_stub(run: Run, position: int, redactor: Redactor | None) -> str:
    """A pytest test with the recorded step, which compares its output."""
    masked_run = run if redactor is None else masked(run, redactor)
    span = masked_run.spans[position]
    name = "_".join(filter(None, _WORD.split(span.name.lower())))[:40] or "step"
    step = step_number(masked_run, span)
    number = f"_step_{step}" if step is not None and step >= 0 else ""
    source = ascii(f"{run.summary.ref.address}/{span.id}")
    return (
        "import json\n\n"
        f"STEP = json.loads(\n    {encode(span_document(masked_run, position)).decode()!a}\n)\n"
        f"FROM = {source}\n\n\n"
        f"def test_{name}{number}():\n"
        '    given, expected = STEP["input"], STEP["output"]\n'
        "    output = ...  # call the code under test with `given`\n"
        "    assert output == expected, FROM\n"
    )


def fork(run: Run, position: int) -> str | None:
    """Code that resumes from a step in a new run; None if the format has none. Raises `FormatError`."""
    return guard.fork(registry.load(run.summary.ref.format), run, run.spans[position])


# ---- JSON


def _indented(data: bytes) -> str:
    import json  # the standard library escapes invisible characters

    try:
        return json.dumps(json.loads(data), indent=2) + "\n"
    except (RecursionError, ValueError):  # very deep: `encode` wrote ASCII on one line
        return data.decode() + "\n"


def _quoted(payload: Any) -> str:
    """A value as JSON in single quotes, which nothing in it can end in any shell."""
    text = _indented(encode(payload)).rstrip("\n").replace("'", "\\u0027")
    return f"'{text}'"


# ---- the payload of a model call


def _payload(span: Span, body: Body, provider: _Provider) -> dict[str, Any] | None:
    """The recorded request if the trace has one, else a request built from the messages."""
    if isinstance(body.input, Mapping) and "messages" in body.input:
        return {"model": span.name, **body.input}
    if not body.input_messages:
        return None
    if not provider.own:
        return {"model": span.name, "messages": [chat for message in body.input_messages for chat in _chat(message)]}
    system = "\n\n".join(text_of(message) for message in body.input_messages if message.role in ("system", "developer"))
    rest = [_anthropic(message) for message in body.input_messages if message.role not in ("system", "developer")]
    return {
        "model": span.name,
        "max_tokens": _MOST_TOKENS,
        **({"system": system} if system else {}),
        "messages": [message for message in rest if message["content"]],
    }


def _chat(message: Message) -> Iterable[dict[str, Any]]:
    """A message for chat completions, where a tool result is a separate message."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for part in results:
        yield {"role": "tool", "tool_call_id": part.id or "", "content": compact(part.content)}
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    text = text_of(message)
    if text or calls or not results:
        chat: dict[str, Any] = {"role": message.role, "content": text}
        if calls:
            chat["tool_calls"] = [_call(part) for part in calls]
        yield chat


def _call(part: ToolCall) -> dict[str, Any]:
    function = {"name": part.name, "arguments": compact(part.arguments)}
    return {"id": part.id or "", "type": "function", "function": function}


def _anthropic(message: Message) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Text):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, ToolCall):
            content.append({"type": "tool_use", "id": part.id or "", "name": part.name, "input": part.arguments or {}})
        elif isinstance(part, ToolResult):
            result = {"tool_use_id": part.id or "", "content": compact(part.content)}
            content.append({"type": "tool_result", **result, **({"is_error": True} if part.is_error else {})})
        elif not isinstance(part, Reasoning):
            content.append({"type": "text", "text": compact(part.data)})
    return {"role": "assistant" if message.role in ("assistant", "model", "ai") else "user", "content": content}

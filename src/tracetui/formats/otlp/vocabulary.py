"""Which attribute says what.

By the GenAI conventions of OpenTelemetry, today's and earlier ones, OpenInference, OpenLLMetry (``traceloop.*``),
Pydantic AI, the AI SDK (``ai.*``) and Claude Code.
"""

from __future__ import annotations

from typing import Any, Final

from tracetui.formats.calls import as_json
from tracetui.formats.decode import decode_value
from tracetui.formats.labels import LENGTH, tags_in
from tracetui.formats.otlp.records import parse_int
from tracetui.formats.scalars import number, word
from tracetui.model import PREVIEW, Operation, Usage

Attributes = dict[str, Any]

_GEN_AI: Final = {
    "chat": Operation.CHAT,
    "text_completion": Operation.CHAT,
    "generate_content": Operation.CHAT,
    "embeddings": Operation.EMBEDDINGS,
    "execute_tool": Operation.EXECUTE_TOOL,
    "invoke_agent": Operation.INVOKE_AGENT,
    "invoke_workflow": Operation.INVOKE_WORKFLOW,
    "retrieval": Operation.RETRIEVAL,
}
_OPEN_INFERENCE: Final = {
    "LLM": Operation.CHAT,
    "AGENT": Operation.INVOKE_AGENT,
    "TOOL": Operation.EXECUTE_TOOL,
    "RETRIEVER": Operation.RETRIEVAL,
    "RERANKER": Operation.RETRIEVAL,
    "EMBEDDING": Operation.EMBEDDINGS,
    "GUARDRAIL": Operation.POLICY,
}
_TRACELOOP: Final = {
    "workflow": Operation.INVOKE_WORKFLOW,
    "agent": Operation.INVOKE_AGENT,
    "tool": Operation.EXECUTE_TOOL,
}
_REQUESTS: Final = {
    "chat": Operation.CHAT,
    "completion": Operation.CHAT,
    "embedding": Operation.EMBEDDINGS,
    "rerank": Operation.RETRIEVAL,
}
_CLAUDE_CODE: Final = {
    "interaction": Operation.INVOKE_AGENT,
    "llm_request": Operation.CHAT,
    "tool": Operation.EXECUTE_TOOL,
    "hook": Operation.HOOK,
}
"""What Claude Code calls its own spans (``span.type``); it counts cached input apart."""
_NO_CALLS: Final = frozenset({"create_agent", "plan"})
"""Operations that name a model and don't call it."""
_LOGFIRE: Final = {
    "OpenAI Agents trace: {name}": Operation.INVOKE_WORKFLOW,
    "Agent run: {name!r}": Operation.INVOKE_AGENT,
    "Function: {name}": Operation.EXECUTE_TOOL,
    "Guardrail {name!r} {triggered=}": Operation.POLICY,
}
"""What Logfire calls the spans of openai-agents (``logfire.msg_template``): what fills the gap is in ``name``."""
_AGENTS_SDK: Final = {"task": Operation.INVOKE_WORKFLOW, "turn": Operation.TURN}
"""What openai-agents calls its own spans (``sdk_span_type``)."""
_PENDING: Final = "pending_span"
"""What Logfire writes when a span begins, below the span itself, which comes when it has ended."""
_NAMES: Final = {
    Operation.EXECUTE_TOOL: ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "tool_name", "traceloop.entity.name"),
    Operation.INVOKE_AGENT: ("gen_ai.agent.name", "agent.name", "agent_name", "traceloop.entity.name"),
    Operation.INVOKE_WORKFLOW: ("gen_ai.workflow.name", "traceloop.entity.name"),
}
MODELS: Final = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "embedding.model_name",
    "ai.model.id",
    "model_name",
)
AGENTS: Final = ("gen_ai.agent.name", "agent.name", "agent_name")
WORKFLOWS: Final = ("traceloop.workflow.name",)
_CONVERSATIONS: Final = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
INPUTS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "ai.toolCall.args",
    "input.value",
    "traceloop.entity.input",
    "ai.prompt",
    "user_prompt",
    "input",
)
OUTPUTS: Final = (
    "gen_ai.tool.call.result",
    "tool_response",
    "ai.toolCall.result",
    "final_result",
    "output.value",
    "traceloop.entity.output",
    "ai.response.text",
    "output",
)
_COUNTS: Final = (
    (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
        "ai.usage.tokens",
        "gen_ai.aggregated_usage.input_tokens",
        "input_tokens",
    ),
    (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
        "gen_ai.aggregated_usage.output_tokens",
        "output_tokens",
    ),
    ("gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens", "ai.usage.totalTokens"),
    (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "gen_ai.usage.details.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
        "ai.usage.inputTokenDetails.cacheReadTokens",
        "gen_ai.aggregated_usage.cache_read.input_tokens",
        "cache_read_tokens",
    ),
    (
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
        "gen_ai.aggregated_usage.cache_creation.input_tokens",
        "cache_creation_tokens",
    ),
    (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "llm.usage.reasoning_tokens",
        "ai.usage.reasoningTokens",
        "ai.usage.outputTokenDetails.reasoningTokens",
    ),
)
"""In the order of the fields of `Usage`."""
_COSTS: Final = ("gen_ai.usage.cost", "llm.cost.total", "operation.cost")
_USED: Final = frozenset(name for names in (*_COUNTS, _COSTS) for name in names)
_COUNTED: Final = frozenset(
    {
        Operation.CHAT,
        Operation.EMBEDDINGS,
        Operation.RETRIEVAL,
        Operation.EXECUTE_TOOL,
        Operation.INVOKE_AGENT,
        Operation.INVOKE_WORKFLOW,
        Operation.TURN,
    }
)
"""What uses tokens, or contains what does; elsewhere their counts repeat those of other spans."""
_ARGUMENTS: Final = ("command", "cmd", "query", "path", "file_path", "pattern", "url", "question", "message", "prompt")
"""Arguments that tell one call from the next, the most telling first."""


def first(attrs: Attributes, names: tuple[str, ...]) -> str | None:
    """The first of these attributes that is text with something in it."""
    for name in names:
        if name in attrs and (found := word(attrs[name])) is not None:
            return found
    return None


def tags_of(attrs: Attributes) -> tuple[str, ...]:
    """The tags of a trace, as each convention names them, and the conversation or session that it is of."""
    lists = ({"tags": decoded(attrs.get(name))} for name in ("tag.tags", "logfire.tags", "tags", "langsmith.tags"))
    found, conversation = tags_in(*lists), first(attrs, _CONVERSATIONS)
    return found if conversation is None else (*found, conversation[:LENGTH])


def operation_of(attrs: Attributes, name: str) -> Operation:
    """What kind of work a span is."""
    if attrs.get("logfire.span_type") == _PENDING:
        return Operation.META
    told = word(attrs.get("ai.operationId"))
    if told is not None and told.startswith("ai."):
        return _ai_sdk(told)
    told = word(attrs.get("gen_ai.operation.name"))
    if told in _GEN_AI:
        return _GEN_AI[told]
    if told in _NO_CALLS:
        return Operation.OTHER
    kind = word(attrs.get("openinference.span.kind"))
    if kind is not None:
        return _open_inference(kind.upper(), attrs, name)
    told = word(attrs.get("traceloop.span.kind"))
    if told is not None:
        return _TRACELOOP.get(told, Operation.OTHER)
    told = word(attrs.get("llm.request.type"))
    if told in _REQUESTS:
        return _REQUESTS[told]
    if name.startswith("claude_code.") and (told := word(attrs.get("span.type"))) is not None:
        return _CLAUDE_CODE.get(told, Operation.OTHER)
    if (told := word(attrs.get("logfire.msg_template"))) in _LOGFIRE:
        return _LOGFIRE[told]
    if (told := word(attrs.get("sdk_span_type"))) in _AGENTS_SDK:
        return _AGENTS_SDK[told]
    if "gen_ai.tool.name" in attrs:
        return Operation.EXECUTE_TOOL
    if "pydantic_ai.all_messages" in attrs or "all_messages_events" in attrs or "agent_name" in attrs:
        return Operation.INVOKE_AGENT
    called = "gen_ai.request.model" in attrs and ("gen_ai.system" in attrs or "gen_ai.provider.name" in attrs)
    return Operation.CHAT if called else Operation.OTHER


def _open_inference(kind: str, attrs: Attributes, name: str) -> Operation:
    if kind == "CHAIN":
        if name == "turn":
            return Operation.TURN
        return Operation.NODE if "graph.node.id" in attrs else Operation.INVOKE_WORKFLOW
    return _OPEN_INFERENCE.get(kind, Operation.OTHER)


def _ai_sdk(told: str) -> Operation:
    if told == "ai.toolCall":
        return Operation.EXECUTE_TOOL
    if told.endswith((".doGenerate", ".doStream")):
        return Operation.CHAT
    if told.startswith("ai.embed"):
        return Operation.EMBEDDINGS if told.endswith(".doEmbed") else Operation.OTHER
    return Operation.INVOKE_WORKFLOW


def name_of(attrs: Attributes, operation: Operation, name: str) -> str:
    """What a span is called: the tool, agent or model, else as the trace calls it."""
    names = MODELS if operation is Operation.CHAT else _NAMES.get(operation, ())
    if attrs.get("logfire.msg_template") == name:  # several spans have a template in common
        names = (*names, "name" if name in _LOGFIRE or "sdk_span_type" in attrs else "logfire.msg")
    return (first(attrs, names) or name or str(operation))[:PREVIEW]


def usage_of(attrs: Attributes, operation: Operation) -> Usage | None:
    """The tokens of a span. Input includes what was read from and written to a cache."""
    if operation not in _COUNTED or attrs.keys().isdisjoint(_USED):
        return None
    counts = [_count(attrs, names) for names in _COUNTS]
    given, made, total, read, written, thought = counts
    cached = (read or 0) + (written or 0)
    if given is not None and (cached > given or attrs.get("span.type") == "llm_request"):  # it is no part of it
        total = None if total == given + (made or 0) else total
        given += cached
    cost = None if attrs.keys().isdisjoint(_COSTS) else _cost(attrs)
    return Usage(given, made, total, read, written, thought, cost) or None


def _cost(attrs: Attributes) -> float | None:
    return next((found for name in _COSTS if (found := number(attrs.get(name))) is not None), None)


def _count(attrs: Attributes, names: tuple[str, ...]) -> int | None:
    for name in names:
        found = parse_int(attrs[name]) if name in attrs else None
        if found is not None and found >= 0:
            return found
    return None


def find_value(attrs: Attributes, names: tuple[str, ...]) -> tuple[str, Any] | None:
    """The attribute with the input (`INPUTS`) or output (`OUTPUTS`) of a span, and its value, decoded."""
    for name in names:
        if (value := attrs.get(name)) is not None:
            return name, decoded(value)
    return None


def decoded(value: Any) -> Any:
    """What a text holds if it is a JSON object or array, else the value itself."""
    return decode_value(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value


def telling(value: Any) -> str:
    """What tells one call from the next, by what it was given."""
    if isinstance(value, str):
        return value.strip()[:PREVIEW]
    if isinstance(value, dict):
        found = next((text for name in _ARGUMENTS if (text := word(value.get(name))) is not None), None)
        if found is None and len(value) == 1:
            found = word(next(iter(value.values())))
        if found is not None:
            return found.strip()[:PREVIEW]
    return "" if value is None or value in ({}, []) else as_json(value)

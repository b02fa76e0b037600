"""The meaning of attributes.

By the GenAI conventions of OpenTelemetry, today's and earlier ones, OpenInference, OpenLLMetry (``traceloop.*``),
Pydantic AI, the AI SDK (``ai.*``), MLflow and Claude Code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from tracetui.formats.bodies import as_json
from tracetui.formats.otlp.records import (
    FLAT,
    HOLDERS,
    INPUTS,
    MESSAGES_OUT,
    OUTPUTS,
    Attributes,
    Event,
    content,
    decoded,
    parse_int,
)
from tracetui.formats.scalars import LENGTH, boolean, number, tags_in, word
from tracetui.model import PREVIEW, REASON_LIMIT, Operation, Score, Usage
from tracetui.model.run import EVIDENCE_LIMIT, Evidence, Who

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
"""Claude Code's own spans (``span.type``); its input tokens leave out cached ones."""
_LANGFUSE: Final = {
    "generation": Operation.CHAT,
    "agent": Operation.INVOKE_AGENT,
    "tool": Operation.EXECUTE_TOOL,
    "chain": Operation.INVOKE_WORKFLOW,
    "retriever": Operation.RETRIEVAL,
    "embedding": Operation.EMBEDDINGS,
    "guardrail": Operation.POLICY,
    "event": Operation.META,
}
"""Types of observations of Langfuse's SDK 3 (``langfuse.observation.type``)."""
_MLFLOW: Final = {
    "LLM": Operation.CHAT,
    "CHAT_MODEL": Operation.CHAT,
    "AGENT": Operation.INVOKE_AGENT,
    "CHAIN": Operation.INVOKE_WORKFLOW,
    "WORKFLOW": Operation.INVOKE_WORKFLOW,
    "TASK": Operation.NODE,
    "TOOL": Operation.EXECUTE_TOOL,
    "RETRIEVER": Operation.RETRIEVAL,
    "RERANKER": Operation.RETRIEVAL,
    "EMBEDDING": Operation.EMBEDDINGS,
    "GUARDRAIL": Operation.POLICY,
}
"""Types of spans of MLflow (``mlflow.spanType``)."""
_NO_CALLS: Final = frozenset({"create_agent", "plan"})
"""Operations that name a model without a call of it."""
_LOGFIRE: Final = {
    "OpenAI Agents trace: {name}": Operation.INVOKE_WORKFLOW,
    "Agent run: {name!r}": Operation.INVOKE_AGENT,
    "Function: {name}": Operation.EXECUTE_TOOL,
    "Guardrail {name!r} {triggered=}": Operation.POLICY,
}
"""Logfire's templates of spans of openai-agents (``logfire.msg_template``), which are filled with ``name``."""
_AGENTS_SDK: Final = {"task": Operation.INVOKE_WORKFLOW, "turn": Operation.TURN}
"""The own spans of openai-agents (``sdk_span_type``)."""
_KINDS: Final = (
    ("langfuse.observation.type", _LANGFUSE, True),
    ("mlflow.spanType", _MLFLOW, True),
    ("traceloop.span.kind", _TRACELOOP, True),
    ("llm.request.type", _REQUESTS, False),
    ("span.type", _CLAUDE_CODE, True),
    ("logfire.msg_template", _LOGFIRE, False),
    ("sdk_span_type", _AGENTS_SDK, False),
)
"""Attributes with the kind of a span, and whether a kind that is not in the table is some other work."""
_PENDING: Final = "pending_span"
"""Logfire writes such a span when another begins, as its child; that one follows when it has ended."""
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
    "langfuse.observation.model.name",
    "mlflow.llm.model",
    "model_name",
)
AGENTS: Final = ("gen_ai.agent.name", "agent.name", "agent_name")
WORKFLOWS: Final = ("traceloop.workflow.name",)
_TAGS: Final = "langfuse.trace.tags"
_CONVERSATIONS: Final = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
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
        "gen_ai.usage.cache_write_input_tokens",
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
_DETAILS: Final = ("langfuse.observation.usage_details", "mlflow.chat.tokenUsage")
"""Objects of counts, in which input leaves out cached tokens unless the total says otherwise."""
_COST_DETAILS: Final = ("langfuse.observation.cost_details", "mlflow.llm.cost")
"""Objects of costs in US dollars."""
_DETAIL_NAMES: Final = (
    ("input", "prompt_tokens", "input_tokens", "promptTokens"),
    ("output", "completion_tokens", "output_tokens", "completionTokens"),
    ("total", "total_tokens", "totalTokens"),
    ("input_cached_tokens", "input_cache_read", "cache_read_input_tokens", "cache_read"),
    ("input_cache_creation", "cache_creation_input_tokens", "cache_creation"),
    ("output_reasoning_tokens", "output_reasoning", "reasoning_tokens", "reasoning"),
)
"""Names in such an object, in the order of the fields of `Usage`."""
_COSTS: Final = ("gen_ai.usage.cost", "llm.cost.total", "operation.cost")
_USED: Final = frozenset(name for names in (*_COUNTS, _COSTS) for name in names)
_NAMES_OF_USAGE: Final = (*_DETAILS, *_COST_DETAILS)
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
"""Operations with a usage; in other spans, token counts repeat those of other spans."""
_ARGUMENTS: Final = ("command", "cmd", "query", "path", "file_path", "pattern", "url", "question", "message", "prompt")
"""Arguments that distinguish one call from the next, the most specific first."""


def first(attrs: Attributes, names: Sequence[str]) -> str | None:
    """The first of these attributes that is text with something in it."""
    for name in names:
        if name in attrs and (text := word(attrs[name])) is not None:
            return text
    return None


class Names(NamedTuple):
    """The attributes of a span by meaning, those of one meaning in the order in which they are tried."""

    models: Sequence[str]
    agents: Sequence[str]
    workflows: Sequence[str]
    inputs: Sequence[str]
    outputs: Sequence[str]
    counts: Sequence[tuple[int, str]]
    """With the field of `Usage` that each counts."""
    costs: Sequence[str]
    has_details: bool
    """Some may be an object of counts or costs."""
    has_messages: bool
    """They may have messages."""
    has_output: bool
    has_scores: bool


_SHAPES: Final = 256
"""Sets of names that are remembered: the spans of a library have few."""


class NamesByShape:
    """The `Names` of attributes. Remembers only what follows from the names, so an instance can be a constant."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], Names] = {}

    def get(self, attrs: Attributes) -> Names:
        """The names in `attrs`."""
        shape = tuple(attrs)
        names = self._names.get(shape)
        if names is None:
            if len(self._names) >= _SHAPES:
                self._names.clear()
            names = self._names[shape] = _names_in(attrs)
        return names


def _names_in(attrs: Attributes) -> Names:
    return Names(
        [name for name in MODELS if name in attrs],
        [name for name in AGENTS if name in attrs],
        [name for name in WORKFLOWS if name in attrs],
        [name for name in INPUTS if name in attrs],
        [name for name in OUTPUTS if name in attrs],
        [(field, name) for field, names in enumerate(_COUNTS) for name in names if name in attrs],
        [name for name in _COSTS if name in attrs],
        has_details=not attrs.keys().isdisjoint(_NAMES_OF_USAGE),
        has_messages=not HOLDERS.isdisjoint(attrs) or any(name.startswith(FLAT) for name in attrs),
        has_output=not attrs.keys().isdisjoint((*OUTPUTS, *MESSAGES_OUT)),
        has_scores=_NAME in attrs or not attrs.keys().isdisjoint(_FIRST),
    )


NAMES: Final = NamesByShape()


def tags_of(attrs: Attributes) -> tuple[str, ...]:
    """The tags of a trace, as each convention names them, and the conversation or session that it is of."""
    lists = (
        {"tags": decoded(attrs.get(name))} for name in ("tag.tags", "logfire.tags", "tags", "langsmith.tags", _TAGS)
    )
    tags, conversation = tags_in(*lists), first(attrs, _CONVERSATIONS)
    return tags if conversation is None else (*tags, conversation[:LENGTH])


def operation_of(attrs: Attributes, name: str) -> Operation:
    """The operation of a span, by the first convention that it follows."""
    if attrs.get("logfire.span_type") == _PENDING:
        return Operation.META
    kind = word(attrs.get("ai.operationId"))
    if kind is not None and kind.startswith("ai."):
        return _ai_sdk(kind)
    kind = word(attrs.get("gen_ai.operation.name"))
    if kind in _GEN_AI or kind in _NO_CALLS:
        return _GEN_AI.get(kind, Operation.OTHER)
    kind = word(attrs.get("openinference.span.kind"))
    if kind is not None and kind.upper() == "CHAIN":
        workflow = Operation.NODE if "graph.node.id" in attrs else Operation.INVOKE_WORKFLOW
        return Operation.TURN if name == "turn" else workflow
    if kind is not None:
        return _OPEN_INFERENCE.get(kind.upper(), Operation.OTHER)
    for key, table, is_closed in _KINDS:
        kind = word(attrs.get(key))
        if kind is None or (key == "span.type" and not name.startswith("claude_code.")):
            continue
        if kind in table or is_closed:
            return table.get(kind, Operation.OTHER)
    if "gen_ai.tool.name" in attrs:
        return Operation.EXECUTE_TOOL
    if "pydantic_ai.all_messages" in attrs or "all_messages_events" in attrs or "agent_name" in attrs:
        return Operation.INVOKE_AGENT
    is_call = "gen_ai.request.model" in attrs and ("gen_ai.system" in attrs or "gen_ai.provider.name" in attrs)
    return Operation.CHAT if is_call else Operation.OTHER


def _ai_sdk(kind: str) -> Operation:
    if kind == "ai.toolCall":
        return Operation.EXECUTE_TOOL
    if kind.endswith((".doGenerate", ".doStream")):
        return Operation.CHAT
    if kind.startswith("ai.embed"):
        return Operation.EMBEDDINGS if kind.endswith(".doEmbed") else Operation.OTHER
    return Operation.INVOKE_WORKFLOW


def name_of(attrs: Attributes, operation: Operation, name: str) -> str:
    """The tool, agent or model, else the span's own name."""
    names = MODELS if operation is Operation.CHAT else _NAMES.get(operation, ())
    if attrs.get("logfire.msg_template") == name:  # several spans have a template in common
        names = (*names, "name" if name in _LOGFIRE or "sdk_span_type" in attrs else "logfire.msg")
    return (first(attrs, names) or name or str(operation))[:PREVIEW]


def usage_of(attrs: Attributes, names: Names, operation: Operation) -> Usage | None:
    """The tokens of a span. Input includes cache reads and writes, output includes reasoning."""
    if not (names.counts or names.costs or names.has_details) or operation not in _COUNTED:
        return None
    counts: list[int | None] = [None] * len(_COUNTS)
    for field, name in names.counts:
        if counts[field] is None and (count := parse_int(attrs[name])) is not None and count >= 0:
            counts[field] = count
    cost = next((usd for name in names.costs if (usd := number(attrs[name])) is not None), None)
    is_apart = attrs.get("span.type") == "llm_request"
    if names.has_details:
        details, costs = (
            next((decoded(attrs[name]) for name in names if name in attrs), None) for names in (_DETAILS, _COST_DETAILS)
        )
        if isinstance(details, dict) and counts[:3] == [None, None, None]:
            counts = [next(filter(_is_count, map(parse_int, map(details.get, some))), None) for some in _DETAIL_NAMES]
            is_apart = counts[2] is None
        if isinstance(costs, dict) and cost is None:
            cost = number(costs.get("total", costs.get("total_cost")))
            parts = [usd for value in costs.values() if (usd := number(value)) is not None]
            cost = cost if cost is not None or not parts else sum(parts)
    return _completed(counts, cost, is_apart=is_apart) or None


def _is_count(value: int | None) -> bool:
    return value is not None and value >= 0


def _completed(counts: Sequence[int | None], cost: float | None, *, is_apart: bool) -> Usage:
    """The usage, with cache reads and writes in the input and reasoning in the output.

    The total, where it is the sum of input, output and some of these, shows which of them are apart. Without such a
    total they are included, except for cached tokens that exceed the input, or if `is_apart`.
    """
    prompt, completion, total, read, written, thought = counts
    cached, reasoning = (read or 0) + (written or 0), thought or 0
    added = (0, 0)
    rest = None if total is None or prompt is None else total - prompt - (completion or 0)
    if prompt is not None and (rest is None or rest <= 0 or is_apart) and (cached > prompt or is_apart):
        total = None if rest == 0 else total
        added = cached, 0
    elif rest:
        sums = ((cached, 0), (0, reasoning), (cached, reasoning), (read or 0, 0), (written or 0, 0))
        added = next((extra for extra in sums if sum(extra) == rest), (cached if cached > (prompt or 0) else 0, 0))
    prompt = prompt if prompt is None else prompt + added[0]
    completion = completion + added[1] if completion is not None else completion
    return Usage(prompt, completion, total, read, written, thought, cost)


def find_value(attrs: Attributes, names: Sequence[str]) -> tuple[str, Any] | None:
    """The attribute with the input (`INPUTS`) or output (`OUTPUTS`) of a span, and its value, decoded."""
    for name in names:
        if name in attrs and (value := content(attrs, name)) is not None:
            return name, decoded(value)
    return None


def preview_of(value: Any) -> str:
    """The most specific argument of a call."""
    if isinstance(value, str):
        return value.strip()[:PREVIEW]
    if isinstance(value, dict):
        preview = next((text for name in _ARGUMENTS if (text := word(value.get(name))) is not None), None)
        if preview is None and len(value) == 1:
            preview = word(next(iter(value.values())))
        if preview is not None:
            return preview.strip()[:PREVIEW]
    return "" if value is None or value in ({}, []) else as_json(value)


# ---- scores: events of the GenAI conventions, and the feedback attributes of OpenInference
#
# Facts: ``gen_ai.evaluation.result`` of the GenAI conventions (earlier ones name the evaluation in the event's name),
# and ``spec/annotations.md`` of OpenInference. Both leave the meaning of scores and labels to the evaluator: only the
# labels that the GenAI conventions give as examples, and their past tense, pass or fail.

_EVENT: Final = "gen_ai.evaluation."
_NAME: Final = "gen_ai.evaluation.name"
_VALUES: Final = ("gen_ai.evaluation.score.value", "gen_ai.evaluation.score")
_LABELS: Final = ("gen_ai.evaluation.score.label", "gen_ai.evaluation.label")
_REASONS: Final = ("gen_ai.evaluation.explanation", "gen_ai.evaluation.reasoning", "error.type")
NUMBERS: Final = _USED | frozenset(_VALUES)
"""Attributes that are numbers."""
_FIRST: Final = frozenset(
    f"{scope}{form}s.0.{form}.name" for scope in ("", "trace.") for form in ("annotation", "evaluation")
)
"""Attributes of a span with feedback: indexes begin at 0. Feedback on a session is that of no single trace."""
_FEEDBACK: Final = re.compile(r"((?:trace\.)?(annotation|evaluation)s\.\d{1,4}\.\2)\.name")
_LABEL_RULE: Final = "label pass, passed or correct; fail, failed or incorrect"
_PASSED: Final = {"pass": True, "passed": True, "correct": True, "fail": False, "failed": False, "incorrect": False}


def scores_of_span(span_id: str | None, attrs: Attributes, events: Sequence[Event]) -> tuple[Score, ...]:
    """The evaluations of a span; one that both terms of OpenInference record counts once."""
    scores = [] if attrs.keys().isdisjoint(_FIRST) else list(_feedback(span_id, attrs))
    scores += [score for event in events for score in scores_of_event(span_id, event)]
    if _NAME in attrs:  # libraries without events write one as a span
        scores += scores_of_event(span_id, Event(_EVENT, None, attrs, {}))
    if len(scores) < 2:
        return tuple(scores)
    return tuple({(item.name, item.value, item.passed, item.reason): item for item in reversed(scores)}.values())[::-1]


def scores_of_event(span_id: str | None, event: Event) -> Iterator[Score]:
    """The evaluation that an event of a span, or of the whole trace, is."""
    if event.name.startswith(_EVENT):
        attrs = event.attrs
        name = word(attrs.get(_NAME)) or event.name.removeprefix(_EVENT)
        value = next((attrs[key] for key in _VALUES if key in attrs), None)
        label, reason = first(attrs, _LABELS), first(attrs, _REASONS)
        if value is None and not label and (kind := word(attrs.get("error.type"))):  # the evaluator raised
            place = event.name if span_id is None else f"span {span_id}: {event.name}"
            text = kind if not reason or reason == kind else f"{kind}: {reason}"
            evidence = Evidence(text[:EVIDENCE_LIMIT], f"{place} error.type"[:PREVIEW], Who.GRADER, type=kind[:PREVIEW])
            yield Score.ungraded(name[:PREVIEW], evidence, source=place[:PREVIEW])
            return
        yield _score(span_id, event.name, name, value, label, reason)


def _feedback(span_id: str | None, attrs: Attributes) -> Iterator[Score]:
    for match in filter(None, map(_FEEDBACK.fullmatch, attrs)):
        name, value, label, reason = (
            attrs.get(f"{match[1]}.{field}") for field in ("name", "score", "label", "explanation")
        )
        yield _score(span_id, match[1], word(name) or match[2], value, word(label), word(reason))


def _score(span_id: str | None, field: str, name: str, value: Any, label: str | None, reason: str | None) -> Score:
    passed = _PASSED.get(label.lower()) if label else None
    value_or_label = value if number(value) is not None else boolean(value)
    if value_or_label is None and label:
        value_or_label = label[:PREVIEW]
    return Score(
        name[:PREVIEW],
        value_or_label,
        passed,
        (field if span_id is None else f"span {span_id}: {field}")[:PREVIEW],
        "" if passed is None else _LABEL_RULE,
        (reason or "")[:REASON_LIMIT],
    )

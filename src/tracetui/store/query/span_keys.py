"""Query keys for the spans of a run. They look at headers only: filtering reads no body.

The note of a header has facts with ``·`` between them; ``→ x, y`` is the target of a route. Hooks and policies record
their decision as status word.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from tracetui.model import Operation, Span, Status
from tracetui.model.span import STATUS_WORDS, plain_word
from tracetui.store.query.keys import Fact, Getter, Key, Table, computed, has_key, has_value, recorded
from tracetui.store.query.kinds import Kind

SpanKey = Key[Span]
_DECIDING: Final = frozenset({Operation.HOOK, Operation.POLICY})
_MODELS: Final = (Operation.CHAT, Operation.EMBEDDINGS)
_ARROW: Final = "→"
_TOKENS: Final = ("1k", "10k", "100k")


def _named(*operations: Operation) -> Getter[Span]:
    """Return the getter of the name of spans with one of these operations."""
    return lambda span: span.name if span.operation in operations else None


def _usage(name: str) -> Getter[Span]:
    get = attrgetter(name)
    return lambda span: None if span.usage is None else get(span.usage)


def facts_of(span: Span) -> list[str]:
    """Return the facts of a span's note."""
    return [fact for fact in map(str.strip, span.note.split("·")) if fact]


def cached(span: Span) -> bool:
    """Return whether its result came from a cache."""
    texts = [*facts_of(span), span.status_word or ""]
    return any(plain_word(word) == "cached" for word in texts)


def decisions(span: Span) -> tuple[str, ...] | None:
    """Return its decisions: the targets of a route, the word of a hook or policy. None if it decides nothing."""
    routes = [fact.removeprefix(_ARROW) for fact in facts_of(span) if fact.startswith(_ARROW)]
    texts = [span.status_word] if span.operation in _DECIDING and span.status_word else []
    targets = tuple(filter(None, (name.strip() for route in routes for name in route.split(",")))) + tuple(texts)
    return targets or None


def _error(span: Span) -> tuple[str | None, ...] | None:
    error = span.error
    return None if error is None else (error.text, error.type, error.message)


def _error_type(span: Span) -> str | None:
    return None if span.error is None else span.error.type


def _hay(span: Span) -> str:
    error = span.error.text if span.error is not None else ""
    word = span.status_word or ""
    parts = (span.name, span.operation.value, span.status.value, word, span.preview, span.note, error)
    return "\n".join(parts).lower()


_VALUES: Final[tuple[SpanKey, ...]] = (
    Key("name", Kind.TEXT, recorded("name"), "its name", offered=recorded("name")),
    Key(
        "op", Kind.NAME, recorded("operation._value_"), "kind of work: chat, execute_tool, node …",
        ("operation",), choices=tuple(Operation), fold=plain_word, facet=True,
    ),
    Key(
        "status", Kind.NAME, recorded("status._value_", "status_word"), "its status, or the status as recorded",
        choices=STATUS_WORDS, fold=plain_word, facet=True, offered=recorded("status._value_"),
    ),
    Key("tool", Kind.NAME, computed(_named(Operation.EXECUTE_TOOL)), "the tool that was called", facet=True),
    Key("model", Kind.NAME, computed(_named(*_MODELS)), "the model that was called", facet=True),
    Key("agent", Kind.NAME, computed(_named(Operation.INVOKE_AGENT)), "the agent that was called", facet=True),
    Key(
        "node", Kind.NAME, computed(_named(Operation.NODE, Operation.ROUTE, Operation.INVOKE_WORKFLOW)),
        "the node of a graph that ran", facet=True,
    ),
    Key("decision", Kind.NAME, computed(decisions), "target of a route, decision of a hook or policy", facet=True),
    Key("dur", Kind.DURATION, recorded("duration_ms"), "duration", ("duration", "time"), ("1s", "10s")),
    Key("tokens", Kind.NUMBER, computed(_usage("all_tokens")), "all tokens", (), _TOKENS),
    Key("input_tokens", Kind.NUMBER, computed(_usage("input_tokens")), "tokens of input", ("in",), _TOKENS),
    Key("output_tokens", Kind.NUMBER, computed(_usage("output_tokens")), "tokens of output", ("out",), _TOKENS),
    Key(
        "cost", Kind.NUMBER, computed(_usage("cost_usd")),
        "recorded cost in US dollars, without estimates", (), ("0.01",),
    ),
    Key("step", Kind.NUMBER, recorded("step"), "the trace's number of its step", ("steps",), ("1", "10")),
    Key("error", Kind.TEXT, computed(_error), "type and text of its error", ("cause",), offered=computed(_error_type)),
    Key("note", Kind.TEXT, recorded("note"), "the short fact beside its name"),
    Key("preview", Kind.TEXT, recorded("preview"), "beginning of its argument, prompt or text", ("arg",), unique=True),
    Key("id", Kind.ID, recorded("id"), "its id", unique=True),
    Key("hash", Kind.ID, recorded("input_hash"), "hash of its input"),
)  # fmt: skip


def _status(status: Status) -> Fact[Span]:
    return Fact(f"status {status.value}", computed(lambda span: span.status is status))


_IS: Final[dict[str, Fact[Span]]] = {
    "failed": _status(Status.ERROR),
    "ok": _status(Status.OK),
    "running": _status(Status.RUNNING),
    "paused": _status(Status.PAUSED),
    "cached": Fact("its result came from a cache", computed(cached)),
    "step": Fact("the trace counts it as a step", computed(lambda span: span.is_step)),
}
SPAN_KEYS: Final[Table[Span]] = Table(
    (
        *_VALUES,
        Key("cached", Kind.TRUTH, computed(cached), "whether its result came from a cache"),
        Key("is", Kind.FACT, computed(has_value), "status", facts=_IS),
        has_key(_VALUES, {}),
    ),
    _hay,
)
"""The query keys for spans."""

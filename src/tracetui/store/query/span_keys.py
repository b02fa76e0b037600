"""The keys of the language for the spans of one run, from their headers alone: no body is read to filter.

What a header says beside the name is its note: facts with ``·`` between them, of which ``→ x, y`` tells where a route
went. A hook or policy that decides says so with its status word.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from tracetui.model import Operation, Span, Status
from tracetui.model.span import STATUS_WORDS, plain_word
from tracetui.store.query.keys import Fact, Getter, Key, Kind, Table, having, made, said, told

SpanKey = Key[Span]
_DECIDING: Final = frozenset({Operation.HOOK, Operation.POLICY})
_MODELS: Final = (Operation.CHAT, Operation.EMBEDDINGS)
_ARROW: Final = "→"
_TOKENS: Final = ("1k", "10k", "100k")


def _named(*operations: Operation) -> Getter[Span]:
    """The name of spans that do one of these."""
    return lambda span: span.name if span.operation in operations else None


def _usage(name: str) -> Getter[Span]:
    get = attrgetter(name)
    return lambda span: None if span.usage is None else get(span.usage)


def facts_of(span: Span) -> list[str]:
    """The facts of a span's note, one by one."""
    return [fact for fact in map(str.strip, span.note.split("·")) if fact]


def cached(span: Span) -> bool:
    """Whether its result was not computed but taken from a cache."""
    words = [*facts_of(span), span.status_word or ""]
    return any(plain_word(word) == "cached" for word in words)


def decisions(span: Span) -> tuple[str, ...] | None:
    """What it decided: where a route went, what a hook or policy said. None if it decides nothing."""
    routes = [fact.removeprefix(_ARROW) for fact in facts_of(span) if fact.startswith(_ARROW)]
    words = [span.status_word] if span.operation in _DECIDING and span.status_word else []
    found = tuple(filter(None, (name.strip() for route in routes for name in route.split(",")))) + tuple(words)
    return found or None


def _error(span: Span) -> tuple[str | None, ...] | None:
    error = span.error
    return None if error is None else (error.words, error.type, error.message)


def _error_type(span: Span) -> str | None:
    return None if span.error is None else span.error.type


def _hay(span: Span) -> str:
    error = span.error.words if span.error is not None else ""
    word = span.status_word or ""
    parts = (span.name, span.operation.value, span.status.value, word, span.preview, span.note, error)
    return "\n".join(parts).lower()


_VALUES: Final[tuple[SpanKey, ...]] = (
    Key("name", Kind.TEXT, told("name"), "its name", offer=told("name")),
    Key(
        "op", Kind.NAME, told("operation._value_"), "what kind of work it is: chat, execute_tool, node …",
        ("operation",), choices=tuple(Operation), fold=plain_word, facet=True,
    ),
    Key(
        "status", Kind.NAME, told("status._value_", "status_word"), "its status, or the trace's own word for it",
        choices=STATUS_WORDS, fold=plain_word, facet=True, offer=told("status._value_"),
    ),
    Key("tool", Kind.NAME, made(_named(Operation.EXECUTE_TOOL)), "the tool that was called", facet=True),
    Key("model", Kind.NAME, made(_named(*_MODELS)), "the model that was called", facet=True),
    Key("agent", Kind.NAME, made(_named(Operation.INVOKE_AGENT)), "the agent that was called", facet=True),
    Key(
        "node", Kind.NAME, made(_named(Operation.NODE, Operation.ROUTE, Operation.INVOKE_WORKFLOW)),
        "the node of a graph that ran", facet=True,
    ),
    Key("decision", Kind.NAME, made(decisions), "where a route went, what a hook or policy said", facet=True),
    Key("dur", Kind.DURATION, told("duration_ms"), "how long it took", ("duration", "time"), ("1s", "10s"), few=False),
    Key("tokens", Kind.NUMBER, made(_usage("all_tokens")), "all tokens", (), _TOKENS, few=False),
    Key("input_tokens", Kind.NUMBER, made(_usage("input_tokens")), "tokens of input", ("in",), _TOKENS, few=False),
    Key("output_tokens", Kind.NUMBER, made(_usage("output_tokens")), "tokens of output", ("out",), _TOKENS, few=False),
    Key(
        "cost", Kind.NUMBER, made(_usage("cost_usd")),
        "what the trace says it cost, in US dollars: estimates are not asked", (), ("0.01",), few=False,
    ),
    Key("step", Kind.NUMBER, told("step"), "the trace's number of its step", ("steps",), ("1", "10"), few=False),
    Key("error", Kind.TEXT, made(_error), "type and text of its error", ("cause",), offer=made(_error_type)),
    Key("note", Kind.TEXT, told("note"), "the short fact beside its name"),
    Key("preview", Kind.TEXT, told("preview"), "the beginning of its argument, prompt or text", ("arg",), few=False),
    Key("id", Kind.ID, told("id"), "its id", few=False),
    Key("hash", Kind.ID, told("input_hash"), "the hash of its input"),
)  # fmt: skip


def _status(status: Status) -> Fact[Span]:
    return Fact(f"its status is {status.value}", made(lambda span: span.status is status))


_IS: Final[dict[str, Fact[Span]]] = {
    "failed": _status(Status.ERROR),
    "ok": _status(Status.OK),
    "running": _status(Status.RUNNING),
    "paused": _status(Status.PAUSED),
    "cached": Fact("its result was taken from a cache", made(cached)),
    "step": Fact("the trace counts it as a step", made(lambda span: span.is_step)),
}
SPAN_KEYS: Final[Table[Span]] = Table(
    (
        *_VALUES,
        Key("cached", Kind.TRUTH, made(cached), "whether its result was taken from a cache"),
        Key("is", Kind.FACT, made(said), "how it stands", facts=_IS),
        having(_VALUES, {}),
    ),
    _hay,
)
"""What can be asked of spans."""

"""The keys of the language for runs. Evaluation, completion, help and documentation are made from this table."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from tracetui.model import RunSummary, Status
from tracetui.model.span import STATUS_WORDS, plain_word
from tracetui.store.facts import failure, haystack, run_time, total_tokens
from tracetui.store.query.keys import Fact, Getter, Key, Kind, Table, having, made, said, told
from tracetui.store.relations import COPY, REPEAT, has_original

RunKey = Key[RunSummary]


def _error(run: RunSummary) -> tuple[str | None, ...] | None:
    error = failure(run)
    return None if error is None else (error.words, error.type, error.message)


def _error_type(run: RunSummary) -> str | None:
    error = failure(run)
    return None if error is None else error.type


def _signature(context: Any) -> Getter[RunSummary]:
    signature: Getter[RunSummary] = context.signature
    return signature


def _usage(name: str) -> Getter[RunSummary]:
    return lambda run: None if run.usage is None else getattr(run.usage, name)


def _tags(context: Any) -> Getter[RunSummary]:
    own = context.tags

    def get(run: RunSummary) -> tuple[str, ...]:
        mine = own(run)
        return (*run.tags, *mine) if mine else run.tags

    return get


def _formats(context: Any) -> Collection[str]:
    formats: Collection[str] = context.formats()
    return formats


def _going(context: Any) -> Getter[RunSummary]:
    going: Getter[RunSummary] = context.going
    return going


def _replayed(context: Any) -> Getter[RunSummary]:
    replayed: Getter[RunSummary] = context.replayed
    return replayed


def _repeated(context: Any) -> Getter[RunSummary]:
    repeated: Getter[RunSummary] = context.repeated
    return repeated


def _repeat(context: Any) -> Getter[RunSummary]:
    relation = context.relation
    return lambda run: run.repeats is not None and relation(run) == REPEAT


def _copy(context: Any) -> Getter[RunSummary]:
    relation = context.relation
    return lambda run: run.identity is not None and relation(run) == COPY


def _status(status: Status) -> Fact[RunSummary]:
    return Fact(f"its status is {status.value}", made(lambda run: run.status is status))


_TIMES: Final = ("1h", "24h", "7d", "today", "yesterday")
_TOKENS: Final = ("1k", "10k", "100k")

_NAMES: Final[tuple[RunKey, ...]] = (
    Key(
        "status", Kind.NAME, told("status._value_", "status_word"), "its status, or the trace's own word for it",
        choices=STATUS_WORDS, fold=plain_word, facet=True, offer=told("status._value_"),
    ),
    Key(
        "verdict", Kind.NAME, lambda context: context.verdict, "your verdict: real, flaky, known, ignore or none",
        choices=("real", "flaky", "known", "ignore"), facet=True, lack=True,
    ),
    Key("agent", Kind.NAME, made(lambda run: run.agent or run.name), "the agent, else the run's name", facet=True),
    Key("model", Kind.NAME, told("model", "models"), "a model that it called", facet=True),
    Key("tool", Kind.NAME, told("tools"), "a tool that it called", facet=True),
    Key("node", Kind.NAME, told("nodes"), "a node of its graph that ran", facet=True),
    Key("format", Kind.NAME, told("ref.format"), "the format of its trace", facet=True, choices_of=_formats),
    Key("tag", Kind.NAME, _tags, "a tag of the trace, or your own", ("tags",), facet=True),
    Key("source", Kind.NAME, told("source"), "where the trace says that it comes from", facet=True),
    Key(
        "relation", Kind.NAME, lambda context: context.relation,
        "what it is to its original: replay, fork, retry, student, copy, repeat",
        choices=("replay", "fork", "retry", "student", COPY, REPEAT),
    ),
)  # fmt: skip
_TEXTS: Final[tuple[RunKey, ...]] = (
    Key(
        "error",
        Kind.TEXT,
        made(_error),
        "type and text of the error it failed with",
        ("cause",),
        offer=made(_error_type),
    ),
    Key("signature", Kind.ID, _signature, "the signature of its failure", ("sig",), offer=_signature),
    Key("note", Kind.TEXT, lambda context: context.note, "your note"),
    Key("name", Kind.TEXT, told("name", "label"), "its name", offer=told("name")),
    Key("prompt", Kind.TEXT, told("prompt"), "the beginning of its first prompt or input", ("input",), few=False),
    Key("result", Kind.TEXT, told("result"), "how it went, where the format has a phrase for it"),
    Key("path", Kind.TEXT, told("ref.path"), "the path of its file", ("file",), few=False),
    Key("id", Kind.ID, told("id"), "its id", few=False),
    Key("original", Kind.ID, told("replay_of"), "the id of the run that it replays, forks or retries", ("of",)),
    Key("parent", Kind.ID, told("parent"), "the id of the run that started it"),
)
_NUMBERS: Final[tuple[RunKey, ...]] = (
    Key(
        "dur", Kind.DURATION, told("duration_ms"), "how long it took", ("duration", "time"), ("1s", "10s", "1m"),
        few=False,
    ),
    Key("tokens", Kind.NUMBER, made(total_tokens), "all tokens", (), _TOKENS, few=False),
    Key("input_tokens", Kind.NUMBER, made(_usage("input_tokens")), "tokens of input", ("in",), _TOKENS, few=False),
    Key("output_tokens", Kind.NUMBER, made(_usage("output_tokens")), "tokens of output", ("out",), _TOKENS, few=False),
    Key(
        "cost", Kind.NUMBER, made(_usage("cost_usd")),
        "what its trace says it cost, in US dollars: estimates are not asked", (), ("0.01", "1"), few=False,
    ),
    Key("steps", Kind.NUMBER, told("steps"), "number of steps", ("step",), ("10", "50"), few=False),
    Key("spans", Kind.NUMBER, told("spans"), "number of spans", (), ("100", "1k"), few=False),
    Key("calls", Kind.NUMBER, told("llm_calls"), "calls of models", ("llm_calls",), ("10",), few=False),
    Key("tool_calls", Kind.NUMBER, told("tool_calls"), "calls of tools", (), ("10",), few=False),
    Key("errors", Kind.NUMBER, told("errors"), "spans that failed", (), ("0", "1"), few=False),
    Key("problems", Kind.NUMBER, told("problems"), "what could not be read of it", (), ("0",), few=False),
)  # fmt: skip
_TIME_KEYS: Final[tuple[RunKey, ...]] = tuple(
    Key(name, Kind.TIME, made(run_time), about, aliases, _TIMES, few=False, kept_as="moment")
    for name, about, aliases in (
        ("since", "it began then or later", ("after",)),
        ("until", "it began by then: at the end of that day, where it is a date", ()),
        ("before", "it began earlier", ()),
        ("on", "it began on that day, in that month or year", ()),
    )
)
_IS: Final[dict[str, Fact[RunSummary]]] = {
    "running": Fact("it goes on, as far as anybody can tell", _going),
    "failed": _status(Status.ERROR),
    "ok": _status(Status.OK),
    "paused": _status(Status.PAUSED),
    "cancelled": _status(Status.CANCELLED),
    "unknown": _status(Status.UNKNOWN),
    "child": Fact("another run started it", made(lambda run: run.parent is not None)),
    "replay": Fact(
        "it replays, forks or retries another",
        made(has_original),
    ),
    "repeat": Fact("it does the task of an earlier run: same name, same input", _repeat),
    "copy": Fact("another file tells the same run", _copy),
}
_HAS: Final[dict[str, Fact[RunSummary]]] = {
    "replay": Fact("another run replays, forks or retries it", _replayed),
    "repeats": Fact("later runs do its task again", _repeated),
    "original": _IS["replay"],
    "error": Fact("it tells why it failed", made(lambda run: failure(run) is not None)),
    "errors": Fact("a span failed", made(lambda run: bool(run.errors))),
    "problems": Fact("something of it could not be read", made(lambda run: run.problems > 0)),
}

_VALUES: Final = (*_NAMES, *_TEXTS, *_NUMBERS)
RUN_KEYS: Final[Table[RunSummary]] = Table(
    (
        *_VALUES,
        *_TIME_KEYS,
        Key("is", Kind.FACT, made(said), "how it stands, or what it is to others", facts=_IS),
        having(_VALUES, _HAS),
    ),
    lambda run: "\n".join(haystack(run)).lower(),
)
"""What can be asked of runs."""

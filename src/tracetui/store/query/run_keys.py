"""Query keys for runs, and the facts beyond a summary that they need: verdicts, notes, tags, relations.

Evaluation, completion, help and documentation follow from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol

from tracetui.model import RUNNING_STATES, Outcome, RunState, RunSummary, Status, Who
from tracetui.model.context import CAUSES
from tracetui.model.span import STATUS_WORDS, plain_word
from tracetui.store.facts import (
    NO_CONTEXT,
    NO_EFFECTS,
    ContextUse,
    EffectFacts,
    failure,
    haystack,
    recorded_state,
    start_of,
    total_tokens,
)  # fmt: skip
from tracetui.store.query.keys import Fact, Getter, Key, Table, computed, has_key, has_value, recorded
from tracetui.store.query.kinds import Kind
from tracetui.store.relations import COPY, REPEAT, STUDENT, Relations, has_original


class Context(Protocol):
    """Answers once per run and query, for the keys of the query only; each answer should take O(1)."""

    def masked(self, run: RunSummary) -> RunSummary:
        """The run as the reader may see it, which the query matches: itself, or masked."""

    def verdict(self, run: RunSummary) -> str | None:
        """The user's verdict, in lower case."""

    def tags(self, run: RunSummary) -> Sequence[str]:
        """The user's own tags, without those of the trace."""

    def has_tags(self) -> bool:
        """Whether the user gave any tag; `tags` need not be asked otherwise."""

    def note(self, run: RunSummary) -> str | None:
        """The user's note."""

    def cause(self, run: RunSummary) -> Sequence[str]:
        """The title of the cause of its failure and the ids of that, as triage shows them; empty if it did not fail."""

    def relation(self, run: RunSummary) -> str | None:
        """Its relation to its original: the trace's word, ``copy`` or ``repeat``."""

    def replayed(self, run: RunSummary) -> bool:
        """Whether another run replays, forks or retries it."""

    def repeated(self, run: RunSummary) -> bool:
        """Whether it is the first of several runs of its task."""

    def task(self, run: RunSummary) -> str | None:
        """The name of its task, or the key of a derived one; that of its original where it inherits it."""

    def state(self, run: RunSummary) -> RunState | None:
        """What it does now; None if unknown because it isn't read."""

    def formats(self) -> Collection[str]:
        """The names of all formats; empty if unknown."""

    def effects(self, run: RunSummary) -> EffectFacts:
        """What its tool calls did; the first question about a run may read all of it."""

    def context_use(self, run: RunSummary) -> ContextUse:
        """How it used the context window; the first question about a run may read all of it."""


class TraceContext:
    """A `Context` of recorded facts, without verdicts, notes and tags of the user. Base of the others."""

    def __init__(
        self,
        relations: Callable[[], Relations] | None = None,
        state: Callable[[RunSummary], RunState | None] = recorded_state,
    ) -> None:
        self._relations = relations
        self._state = state

    def masked(self, run: RunSummary) -> RunSummary:
        return run

    def verdict(self, run: RunSummary) -> str | None:
        return None

    def tags(self, run: RunSummary) -> Sequence[str]:
        return ()

    def has_tags(self) -> bool:
        return False

    def note(self, run: RunSummary) -> str | None:
        return None

    def cause(self, run: RunSummary) -> Sequence[str]:
        return ()

    def relation(self, run: RunSummary) -> str | None:
        if (run.task_key is None and run.identity is None) or self._relations is None:
            return run.relation or ("replay" if has_original(run) else None)
        return self._relations().relation(run.ref)

    def replayed(self, run: RunSummary) -> bool:
        return self._relations is not None and bool(self._relations().replays(run.ref))

    def repeated(self, run: RunSummary) -> bool:
        return run.task_key is not None and self._relations is not None and bool(self._relations().repeats(run.ref))

    def task(self, run: RunSummary) -> str | None:
        if self._relations is None or run.shared.task is not None:
            return run.repeats if run.shared.task is None else run.shared.task
        inherited = self._relations().inherited_tasks.get(run.ref)
        return run.repeats if inherited is None else inherited.name

    def state(self, run: RunSummary) -> RunState | None:
        return self._state(run)

    def formats(self) -> Collection[str]:
        return ()

    def effects(self, run: RunSummary) -> EffectFacts:
        return NO_EFFECTS

    def context_use(self, run: RunSummary) -> ContextUse:
        return NO_CONTEXT


RunKey = Key[RunSummary]


def _error(run: RunSummary) -> tuple[str | None, ...] | None:
    error = failure(run)
    return None if error is None else (error.text, error.type, error.message)


def _error_type(run: RunSummary) -> str | None:
    error = failure(run)
    return None if error is None else error.type


def _cause(context: Any) -> Getter[RunSummary]:
    cause: Getter[RunSummary] = context.cause
    return cause


def _usage(name: str) -> Getter[RunSummary]:
    return lambda run: None if run.usage is None else getattr(run.usage, name)


def _tags(context: Any) -> Getter[RunSummary]:
    if not context.has_tags():
        return attrgetter("shared.tags")
    own = context.tags

    def get(run: RunSummary) -> tuple[str, ...]:
        mine = own(run)
        return (*run.tags, *mine) if mine else run.tags

    return get


def _formats(context: Any) -> Collection[str]:
    formats: Collection[str] = context.formats()
    return formats


def _state(context: Any) -> Getter[RunSummary]:
    state: Getter[RunSummary] = context.state
    return state


def _in_states(*states: RunState) -> Callable[[Any], Getter[RunSummary]]:
    """The source of whether a run is in one of these states."""

    def source(context: Any) -> Getter[RunSummary]:
        state = context.state
        return lambda run: state(run) in states

    return source


def _replayed(context: Any) -> Getter[RunSummary]:
    replayed: Getter[RunSummary] = context.replayed
    return replayed


def _repeated(context: Any) -> Getter[RunSummary]:
    repeated: Getter[RunSummary] = context.repeated
    return repeated


def _is_replay(run: RunSummary) -> bool:
    return has_original(run) and run.relation != STUDENT


def _repeat(context: Any) -> Getter[RunSummary]:
    relation = context.relation
    return lambda run: run.task_key is not None and relation(run) == REPEAT


def _copy(context: Any) -> Getter[RunSummary]:
    relation = context.relation
    return lambda run: run.identity is not None and relation(run) == COPY


def _task(context: Any) -> Getter[RunSummary]:
    task: Getter[RunSummary] = context.task
    return task


def _score_names(run: RunSummary) -> tuple[str, ...]:
    scores = run.head.scores
    return tuple([score.name for score in scores]) if scores else ()


def _status(status: Status) -> Fact[RunSummary]:
    return Fact(f"status {status.value}", computed(lambda run: run.status is status))


def _effects(name: str) -> Callable[[Any], Getter[RunSummary]]:
    """The source of a field of `EffectFacts`."""

    def source(context: Any) -> Getter[RunSummary]:
        effects = context.effects
        return lambda run: getattr(effects(run), name)

    return source


def _context(name: str) -> Callable[[Any], Getter[RunSummary]]:
    """The source of a field of `ContextUse`."""

    def source(context: Any) -> Getter[RunSummary]:
        use = context.context_use
        return lambda run: getattr(use(run), name)

    return source


AUDIT_RULES: Final = (
    "push-force", "git-discard", "delete-outside", "secret-read", "pipe-to-shell", "permission-bypass", "delete",
    "write-outside", "kill", "sudo", "send", "push", "network", "install", "denied", "not-parsed",
)  # fmt: skip
"""Names of the rules of the audit, worst first: those of `tracetui.analysis.audit.RULES`."""
_TIMES: Final = ("1h", "24h", "7d", "today", "yesterday")
_TOKENS: Final = ("1k", "10k", "100k")

_NAMES: Final[tuple[RunKey, ...]] = (
    Key(
        "status", Kind.NAME, recorded("status._value_", "status_word"), "its status, or the status as recorded",
        choices=STATUS_WORDS, fold=plain_word, common=True, facet=True, offered=recorded("status._value_"),
    ),
    Key(
        "outcome", Kind.NAME, recorded("outcome"), "how it was evaluated: passed, failed, ungraded or none",
        choices=tuple(Outcome), common=True, facet=True, offers_none=True,
    ),
    Key(
        "verdict", Kind.NAME, lambda context: context.verdict, "your verdict: real, flaky, known, ignore or none",
        choices=("real", "flaky", "known", "ignore"), facet=True, offers_none=True,
    ),
    Key(
        "state", Kind.NAME, _state, "what it does now: " + ", ".join(RunState), choices=tuple(RunState), facet=True,
    ),
    Key(
        "who", Kind.NAME, computed(lambda run: run.who), "who failed: agent, grader, environment; none of other runs",
        choices=tuple(Who), facet=True, offers_none=True,
    ),
    Key(
        "agent", Kind.NAME, computed(lambda run: run.agent or run.name), "the agent, else the run's name",
        common=True, facet=True,
    ),
    Key("model", Kind.NAME, recorded("model", "models"), "a model that it called", common=True, facet=True),
    Key("tool", Kind.NAME, recorded("tools"), "a tool that it called", common=True, facet=True),
    Key("node", Kind.NAME, recorded("nodes"), "a node of its graph that ran", common=True, facet=True),
    Key("format", Kind.NAME, recorded("ref.format"), "the format of its trace", facet=True, choices_of=_formats),
    Key("tag", Kind.NAME, _tags, "a tag, from the trace or your own", ("tags",), facet=True),
    Key("source", Kind.NAME, recorded("source"), "the origin that its trace records", common=True, facet=True),
    Key(
        "relation", Kind.NAME, lambda context: context.relation,
        "its relation to its original: replay, fork, retry, student, copy, repeat",
        choices=("replay", "fork", "retry", STUDENT, COPY, REPEAT),
    ),
    Key(
        "score", Kind.SCORE, recorded("scores"), "a score of that name, alone or compared with a value",
        facet=True, offered=computed(_score_names),
    ),
    Key("task", Kind.NAME, _task, "its task, else that of its original", facet=True),
    Key("trial", Kind.NAME, recorded("trial"), "the trace's name for this repetition of its task"),
)  # fmt: skip
_TEXTS: Final[tuple[RunKey, ...]] = (
    Key(
        "error",
        Kind.TEXT,
        computed(_error),
        "type and text of the error it failed with",
        offered=computed(_error_type),
    ),
    Key(
        "cause",
        Kind.CAUSE,
        _cause,
        "the cause of its failure, by its id or text in triage",
        ("signature", "sig"),
        offered=_cause,
    ),
    Key("note", Kind.TEXT, lambda context: context.note, "your note"),
    Key("name", Kind.TEXT, recorded("name"), "its name", offered=recorded("name")),
    Key("prompt", Kind.TEXT, recorded("prompt"), "beginning of its first prompt or input", ("input",), unique=True),
    Key("result", Kind.TEXT, recorded("result"), "the trace's own phrase for how it went"),
    Key("path", Kind.TEXT, recorded("ref.path"), "the path of its file", ("file",), unique=True),
    Key("id", Kind.ID, recorded("id"), "its id", unique=True),
    Key("original", Kind.ID, recorded("replay_of"), "id of the run that it replays, forks or retries", ("of",)),
    Key("parent", Kind.ID, recorded("parent"), "id of the run that started it"),
)
_NUMBERS: Final[tuple[RunKey, ...]] = (
    Key(
        "dur", Kind.DURATION, recorded("duration_ms"), "duration", ("duration", "time"), ("1s", "10s", "1m"),
    ),
    Key("tokens", Kind.NUMBER, computed(total_tokens), "all tokens", (), _TOKENS),
    Key("input_tokens", Kind.NUMBER, computed(_usage("input_tokens")), "tokens of input", ("in",), _TOKENS),
    Key("output_tokens", Kind.NUMBER, computed(_usage("output_tokens")), "tokens of output", ("out",), _TOKENS),
    Key(
        "cost", Kind.NUMBER, computed(_usage("cost_usd")),
        "recorded cost in US dollars, without estimates", (), ("0.01", "1"),
    ),
    Key("steps", Kind.NUMBER, recorded("steps"), "number of steps", ("step",), ("10", "50")),
    Key("spans", Kind.NUMBER, recorded("spans"), "number of spans", (), ("100", "1k")),
    Key("calls", Kind.NUMBER, recorded("llm_calls"), "calls of models", ("llm_calls",), ("10",)),
    Key("tool_calls", Kind.NUMBER, recorded("tool_calls"), "calls of tools", (), ("10",)),
    Key("errors", Kind.NUMBER, recorded("errors"), "spans that failed", (), ("0", "1")),
    Key("problems", Kind.NUMBER, recorded("problems"), "parts of it that could not be read", (), ("0",)),
)  # fmt: skip
_EFFECTS: Final[tuple[RunKey, ...]] = (
    *(
        Key(name, Kind.TEXT, _effects(field), about, unique=True, offered=_effects(field))
        for name, field, about in (
            ("touched", "changed", "the path of a file that it changed in any way"),
            ("wrote", "written", "the path of a file that it wrote or edited"),
            ("read", "read", "the path of a file that it read"),
            ("deleted", "deleted", "the path of a file that it deleted"),
            ("net", "hosts", "a host, URL or remote that it connected to"),
        )
    ),
    Key("cmd", Kind.TEXT, _effects("commands"), "a shell command that it ran", unique=True),
    Key("does", Kind.NAME, _effects("rules"), "a rule of the audit that it matches", choices=AUDIT_RULES, unique=True),
)
_CONTEXTS: Final[tuple[RunKey, ...]] = (
    Key("context", Kind.NUMBER, _context("most"), "tokens of its largest input", (), ("100k", "150k")),
    Key("missed", Kind.NUMBER, _context("missed"), "cached tokens that it paid for again", (), ("10k", "100k")),
    Key("grew", Kind.NUMBER, _context("grew"), "most tokens that entered with one call after the first", (), ("5k",)),
    Key(
        "break", Kind.NAME, _context("causes"), "the cause of a cache break; none of a run without one",
        choices=CAUSES, offers_none=True,
    ),
)  # fmt: skip
_TIME_KEYS: Final[tuple[RunKey, ...]] = tuple(
    Key(name, Kind.TIME, computed(start_of), about, aliases, _TIMES, cache_as="moment")
    for name, about, aliases in (
        ("since", "started then or later; runs without a recorded start are undated: they match no time", ("after",)),
        ("until", "started by then; of a date, by the end of that day", ()),
        ("before", "started earlier", ()),
        ("on", "started on that day, in that month or year", ()),
    )
)
_IS: Final[dict[str, Fact[RunSummary]]] = {
    "running": Fact("probably still running: state running, quiet or stalled", _in_states(*RUNNING_STATES)),
    "failed": Fact("outcome failed, or status error of the agent", computed(lambda run: run.failed)),
    "ungraded": Fact("its grader did not grade it", computed(lambda run: run.is_ungraded)),
    "waiting": Fact("state waiting: its agent answered or asks", _in_states(RunState.WAITING)),
    "ok": _status(Status.OK),
    "paused": _status(Status.PAUSED),
    "cancelled": _status(Status.CANCELLED),
    "unknown": _status(Status.UNKNOWN),
    "child": Fact("another run started it", computed(lambda run: run.parent is not None)),
    "replay": Fact("replays, forks or retries another run", computed(_is_replay)),
    "student": Fact("repeats the session of a teacher", computed(lambda run: run.relation == STUDENT)),
    "repeat": Fact("does the task of an earlier run", _repeat),
    "copy": Fact("the same run is in another file, too", _copy),
}
_HAS: Final[dict[str, Fact[RunSummary]]] = {
    "replay": Fact("another run replays, forks or retries it", _replayed),
    "repeats": Fact("later runs do its task again", _repeated),
    "original": Fact("names the run that it replays, forks, retries or imitates", computed(has_original)),
    "error": Fact("its trace says why it failed", computed(lambda run: failure(run) is not None)),
    "errors": Fact("a span failed", computed(lambda run: bool(run.errors))),
    "problems": Fact("parts of it could not be read", computed(lambda run: run.problems > 0)),
}

_VALUES: Final = (*_NAMES, *_TEXTS, *_NUMBERS)
RUN_KEYS: Final[Table[RunSummary]] = Table(
    (
        *_VALUES,
        *_EFFECTS,
        *_CONTEXTS,
        *_TIME_KEYS,
        Key("is", Kind.FACT, computed(has_value), "status, or relation to other runs", facts=_IS),
        has_key((*_VALUES, *_EFFECTS, *_CONTEXTS), _HAS),
    ),
    lambda run: "\n".join(haystack(run)).lower(),
    attrgetter("shared"),
)
"""The query keys for runs."""

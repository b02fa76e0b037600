"""Which formats there are: built-in ones and those of other packages (entry points). What looks like a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tracetui.errors import FormatError, PluginError, UsageError, nearest
from tracetui.formats import guard
from tracetui.formats.base import CERTAIN, NO, Format
from tracetui.formats.opening import opening
from tracetui.formats.scalars import mapping, sequence
from tracetui.sources.base import File

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


GROUP: Final = "tracetui.formats"
"""Entry-point group under which a package offers a format class."""

BUILT_IN: Final[dict[str, str]] = {
    "paprika": "tracetui.formats.paprika:Paprika",
    "ccpa": "tracetui.formats.ccpa:Ccpa",
    "hypergraph": "tracetui.formats.hypergraph:Hypergraph",
    "penelope": "tracetui.formats.penelope:Penelope",
    "latticeflow": "tracetui.formats.latticeflow:LatticeFlow",
    "claude-code": "tracetui.formats.claude_code:ClaudeCode",
    "codex": "tracetui.formats.codex:Codex",
    "otlp": "tracetui.formats.otlp.format:Otlp",
    "inspect": "tracetui.formats.inspect_ai:Inspect",
    "opencode": "tracetui.formats.opencode:Opencode",
    "atif": "tracetui.formats.atif:Atif",
    "harbor": "tracetui.formats.harbor:Harbor",
    "pi": "tracetui.formats.pi:Pi",
    "copilot": "tracetui.formats.copilot:Copilot",
    "swe-agent": "tracetui.formats.swe_agent:SweAgent",
    "gemini": "tracetui.formats.gemini:Gemini",
    "qwen": "tracetui.formats.gemini.qwen:Qwen",
    "google-adk": "tracetui.formats.google_adk:GoogleAdk",
    "openhands": "tracetui.formats.openhands:OpenHands",
    "codex-exec": "tracetui.formats.codex.stream:CodexExec",
    "hf-sts": "tracetui.formats.hf_sts:HfSts",
    "langgraph": "tracetui.formats.langgraph:LangGraph",
    "mlflow": "tracetui.formats.mlflow:MLflow",
    "antigravity": "tracetui.formats.antigravity:Antigravity",
    "cursor": "tracetui.formats.cursor:Cursor",
}
"""Name → ``module:class``, in the order that decides ties."""


@cache
def _plugins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # 10 ms, and most directories need no plug-in

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def names() -> list[str]:
    """Names of all formats, the built-in ones first; imports none of them."""
    return [*BUILT_IN, *_plugins()]


def origin(name: str) -> str:
    """Where a format comes from: ``built in``, or the package and object of a plug-in."""
    point = _plugins().get(name)
    if point is None:
        return "built in"
    return f"{point.dist.name} {point.dist.version}: {point.value}" if point.dist else point.value


@cache
def load(name: str) -> Format:
    """The format of that name. Raises `UsageError` if there is none, `PluginError` if it cannot be imported."""
    target = BUILT_IN.get(name)
    if target is not None:
        module, _, attribute = target.partition(":")
        built_in: Format = getattr(import_module(module), attribute)()
        return built_in
    plugin = _plugins().get(name)
    if plugin is None:
        like = nearest(name, names())
        hint = f"did you mean `{like}`? " if like else ""
        raise UsageError(f"there is no format {name!r}; {hint}`tracetui formats` lists them")
    try:
        with guard.BOUNDARY:
            fmt = plugin.load()()
            is_format = isinstance(fmt, Format) and isinstance(fmt.title, str)
            named = fmt.name if is_format else name
    except (FormatError, OSError) as error:
        raise PluginError(f"format {name!r} from {plugin.value} cannot be loaded: {error}") from error
    if not is_format:
        raise PluginError(f"format {name!r} from {plugin.value} doesn't implement the format protocol")
    if named != name:
        raise PluginError(f"format {name!r} from {plugin.value} calls itself {named!r}")
    return fmt  # type: ignore[no-any-return]


@cache
def formats() -> tuple[Format, ...]:
    """All formats that can be loaded; a plug-in that cannot is left out (`tracetui formats` reports it)."""
    loaded = []
    for name in names():
        try:
            loaded.append(load(name))
        except PluginError:
            continue
    return tuple(loaded)


def scores(file: File) -> tuple[dict[str, int], list[str]]:
    """The score of each format for `file`, and a sentence for each format that failed. Raises `OSError`."""
    by_format: dict[str, int] = {}
    failures: list[str] = []
    for candidate in formats():
        try:
            by_format[candidate.name] = _score(candidate, file)
        except FormatError as error:
            failures.append(_failure(candidate, error))
    return by_format, failures


def detect(file: File, first: Format | None = None) -> Format | None:
    """The format that claims `file` most surely, None if none does. `first` is asked before the others.

    Formats are asked in the order that decides ties, and imported only when they are: one that is certain ends it.
    Raises `OSError` if the file cannot be read, `FormatError` if none claims it and one failed.
    """
    if first is not None:
        with suppress(FormatError):
            if guard.sniff(first, file) >= CERTAIN:
                return first
    best, best_score, failure = _claimant(file)
    if best_score < CERTAIN and (opened := opening(file)) is not file:
        best = _claimant(opened)[0] or best
    if best is None and failure:
        raise FormatError(failure)
    return best


def _claimant(file: File) -> tuple[Format | None, int, str]:
    """The format that claims `file` most surely, its score, and a sentence about the first one that failed."""
    best: Format | None = None
    best_score = NO
    failure = ""
    for name in _lazy_names():
        try:
            candidate = load(name)
        except PluginError:
            continue
        try:
            claim = guard.sniff(candidate, file)
        except FormatError as error:
            failure = failure or _failure(candidate, error)
            continue
        if claim > best_score:
            best, best_score = candidate, claim
            if claim >= CERTAIN:
                break
    return best, best_score, failure


def _lazy_names() -> Iterator[str]:
    yield from BUILT_IN
    yield from _plugins()


def score(candidate: Format, file: File) -> int:
    """How surely `candidate` claims `file`; one that fails claims nothing. Raises `OSError`."""
    try:
        return _score(candidate, file)
    except FormatError:
        return NO


def _score(candidate: Format, file: File) -> int:
    claim = guard.sniff(candidate, file)
    if claim >= CERTAIN or (opened := opening(file)) is file:
        return claim
    return guard.sniff(candidate, opened) or claim


def _failure(candidate: Format, error: FormatError) -> str:
    return f"format {candidate.name} failed to recognize the file: {error}"


_SHAPES: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("OpenTelemetry spans", frozenset({"resourceSpans"})),
    ("OpenTelemetry spans", frozenset({"resource_spans"})),
    ("spans", frozenset({"trace_id", "span_id"})),
    ("spans", frozenset({"traceId", "spanId"})),
    ("agent steps", frozenset({"action", "observation"})),
    ("chat messages", frozenset({"role", "content"})),
    ("chat messages", frozenset({"role", "parts"})),
    ("chat messages", frozenset({"role", "tool_calls"})),
)
"""What objects with all of these fields look like."""
_EVENTS: Final = re.compile(r"(?:thread|turn|item|session|message|tool|step|response|assistant|user)[._].+")
"""Types of events that programs print about an agent: ``thread.started``, ``tool_use``."""
_TABLES: Final = re.compile(r"(?:.*_)?(?:events?|generations?|messages?|runs?|sessions?|spans?|steps?|traces?)")
_DEPTH: Final = 4
_ITEMS: Final = 4
"""Items of a list that are looked at."""
_FIELDS: Final = 64


def shape_of(values: Iterable[Any]) -> str:
    """What decoded JSON values look like, as in ``chat messages``; empty if they look like no trace."""
    for item in (item for value in values for item in _objects(value, _DEPTH)):
        for shape, names in _SHAPES:
            if names <= item.keys():
                return shape
        kind = item.get("type")
        if isinstance(kind, str) and _EVENTS.fullmatch(kind):
            return "agent events"
    return ""


def shape_of_tables(names: Iterable[str]) -> str:
    """The same of the tables of a database: two of them must be called like parts of a trace."""
    tables = sorted(name for name in names if _TABLES.fullmatch(name.lower()))
    return f"tables {', '.join(tables[:_ITEMS])}" if len(tables) > 1 else ""


def _objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The objects in a value: the first items of lists, and fields that hold lists or objects."""
    if isinstance(value, dict):
        yield value
    below = sequence(value)[:_ITEMS] or list(mapping(value).values())[:_FIELDS]
    for item in below if depth else ():
        if isinstance(item, dict | list):
            yield from _objects(item, depth - 1)

"""Which formats there are: the built-in ones and those that other packages bring (entry points)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tracetui.errors import PluginError, UsageError, nearest
from tracetui.formats.base import CERTAIN, Format
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
    "otlp": "tracetui.formats.otlp:Otlp",
    "inspect": "tracetui.formats.inspect_ai:Inspect",
    "opencode": "tracetui.formats.opencode:Opencode",
    "atif": "tracetui.formats.atif:Atif",
    "pi": "tracetui.formats.pi:Pi",
    "copilot": "tracetui.formats.copilot:Copilot",
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
        made = plugin.load()()
    except Exception as error:  # a plug-in may fail in any way; everything else must go on
        raise PluginError(f"format {name!r} from {plugin.value} cannot be loaded: {error!r}") from error
    if not isinstance(made, Format):
        raise PluginError(f"format {name!r} from {plugin.value} lacks part of the protocol")
    return made


@cache
def formats() -> tuple[Format, ...]:
    """All formats that can be loaded; a plug-in that cannot is left out (`tracetui formats` reports it)."""
    found = []
    for name in names():
        try:
            found.append(load(name))
        except PluginError:
            continue
    return tuple(found)


def scores(file: File) -> dict[str, int]:
    """How surely each format claims `file`."""
    return {candidate.name: score(candidate, file) for candidate in formats()}


def detect(file: File, first: Format | None = None) -> Format | None:
    """The format that claims `file` most surely, None if none does. `first` is asked before the others.

    Formats are asked in the order that decides ties, and imported only when they are: one that is certain ends it.
    Raises `OSError` if the file cannot be read.
    """
    if first is not None and first.sniff(file) >= CERTAIN:
        return first
    best: Format | None = None
    best_score = 0
    for name in _lazy_names():
        try:
            candidate = load(name)
        except PluginError:
            continue
        claim = score(candidate, file)
        if claim >= CERTAIN:
            return candidate
        if claim > best_score:
            best, best_score = candidate, claim
    return best


def _lazy_names() -> Iterator[str]:
    yield from BUILT_IN
    yield from _plugins()


def score(candidate: Format, file: File) -> int:
    """How surely `candidate` claims `file`; a plug-in that raises claims nothing. Raises `OSError`."""
    try:
        return candidate.sniff(file)
    except OSError:
        raise
    except Exception:  # a plug-in may fail in any way (the conformance suite proves that ours do not)
        return 0

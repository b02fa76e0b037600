"""Which formats there are: the built-in ones and those that other packages bring (entry points)."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from tracetui.errors import PluginError, UsageError
from tracetui.formats.base import CERTAIN, Format
from tracetui.sources.base import File

GROUP: Final = "tracetui.formats"
"""Entry-point group under which a package offers a format class."""

BUILT_IN: Final[dict[str, str]] = {
    "paprika": "tracetui.formats.paprika:Paprika",
    "ccpa": "tracetui.formats.ccpa:Ccpa",
    "hypergraph": "tracetui.formats.hypergraph:Hypergraph",
    "penelope": "tracetui.formats.penelope:Penelope",
    "latticeflow": "tracetui.formats.latticeflow:LatticeFlow",
}
"""Name → ``module:class``, in the order that decides ties."""


@cache
def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def names() -> list[str]:
    """Names of all formats, the built-in ones first; imports none of them."""
    return [*BUILT_IN, *_plugins()]


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
        raise UsageError(f"there is no format {name!r}; `tracetui formats` lists them")
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
    """How surely each format claims `file`. A plug-in that raises claims nothing."""
    found = {}
    for candidate in formats():
        try:
            found[candidate.name] = candidate.sniff(file)
        except OSError:
            raise
        except Exception:  # see load(); built-in formats never raise here, which the conformance suite proves
            found[candidate.name] = 0
    return found


def detect(file: File, first: Format | None = None) -> Format | None:
    """The format that claims `file` most surely, None if none does. `first` is asked before the others.

    Raises `OSError` if the file cannot be read.
    """
    if first is not None and first.sniff(file) >= CERTAIN:
        return first
    found = scores(file)
    best = max(found, key=lambda name: found[name], default=None)
    return load(best) if best is not None and found[best] > 0 else None

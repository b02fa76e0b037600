"""Which places in a value hold the id of a tool call, and which hold the arguments of a shell.

The id of a call looks like anything (``toolu_01A``, ``functions.search:0``, ``c12``), so its place decides: a field
such as ``tool_call_id`` or ``gen_ai.tool.call.id``, or the ``id`` of an object that is a call or the result of one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

CALL: Final = 1
"""A place that holds the id of a call."""
SHELL: Final = 2
"""A place in the arguments of a shell."""
ARGUMENT: Final = 4
"""A place in the arguments of any tool: what a model asked for, so that no field there makes an id of a value."""

Path = tuple[Any, str | int] | None
"""A place in a value: the place above it, and the key or index there; None is the whole value."""

_FIELD: Final = re.compile(r".*(?:calls?|tooluses?|toolresults?)\d*ids?")
_CALL: Final = re.compile(
    r".*(?:tool|function)(?:calls?|uses?|results?|responses?|returns?|requests?|invocations?)"
    r"(?:parts?|outputs?|results?|responses?)?"
)
_CALL_KIND: Final = re.compile(rf"{_CALL.pattern}|.*call(?:outputs?|results?|responses?)?")
_KINDS: Final = ("type", "kind", "part_kind")
_NAMES: Final = ("name", "tool_name", "toolName")
_ARGUMENTS: Final = ("arguments", "args", "input")
SHELLS: Final = frozenset({"bash", "shell", "sh", "zsh"})
"""Tools that run a command, in lower case."""


def place_of(key: Any, holder: dict[Any, Any], path: Path, above: int) -> int:
    """What is under `key` in `holder`, which is at `path`; `above` is what the holder is."""
    found = above & (SHELL | ARGUMENT)
    if key in _ARGUMENTS and _is_call(holder, path):
        shell = any(isinstance(name := holder.get(field), str) and is_shell(name) for field in _NAMES)
        return found | ARGUMENT | (SHELL if shell else 0)
    if found & ARGUMENT or not isinstance(key, str):
        return found
    return found | CALL if (_is_call(holder, path) if key == "id" else names_call(key)) else found


@lru_cache(4096)
def names_call(field: str) -> bool:
    """Whether a field of that name holds the id of a call, or several."""
    return len(field) < 200 and _FIELD.fullmatch(_plain(field)) is not None


def is_shell(tool: str) -> bool:
    """Whether a tool of that name runs shell commands."""
    return len(tool) < 8 and tool.lower() in SHELLS


def _is_call(holder: dict[Any, Any], path: Path) -> bool:
    """Whether an object is a call or the result of one, by what it says or by where it is."""
    while path is not None and isinstance(path[1], int):
        path = path[0]
    if path is not None and (path[1] == "function" or _matches(_CALL, path[1])):
        return True
    if any(isinstance(kind := holder.get(field), str) and _matches(_CALL_KIND, kind) for field in _KINDS):
        return True
    if isinstance(holder.get("function"), dict):
        return True
    return any(field in holder for field in _NAMES) and any(field in holder for field in _ARGUMENTS)


@lru_cache(4096)
def _matches(pattern: re.Pattern[str], word: Any) -> bool:
    return isinstance(word, str) and len(word) < 200 and pattern.fullmatch(_plain(word)) is not None


def _plain(word: str) -> str:
    return "".join(filter(str.isalnum, word)).lower()

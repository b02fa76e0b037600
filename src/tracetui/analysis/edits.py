"""File edits in the arguments of tool calls: of the common shapes, whatever the tool and format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any, Final

import msgspec

_OLD: Final = ("old_string", "oldString", "old_str", "oldText", "old_text")
_NEW: Final = ("new_string", "newString", "new_str", "newText", "new_text")
_PATH: Final = ("file_path", "filePath", "path", "filename", "file")
_CONTENT: Final = ("content", "file_text", "contents")
_PATCH: Final = ("input", "patch", "patchText", "diff")
_BEGIN: Final = "*** Begin Patch"
_MAX_LINES: Final = 600
"""Larger texts are shown as removed and added as a whole."""


class Edit(msgspec.Struct, frozen=True, gc=False):
    """The change of one file, as lines of a unified diff without headers."""

    path: str
    lines: tuple[str, ...]

    @property
    def added(self) -> int:
        """Number of added lines."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """Number of removed lines."""
        return sum(line.startswith("-") for line in self.lines)


def edits_of(arguments: Any) -> list[Edit]:
    """The edits that a tool call asks for; empty if its arguments are no edit."""
    patch = _patch_in(arguments)
    if patch is not None:
        return _of_patch(patch)
    if not isinstance(arguments, Mapping):
        return []
    path = _text(arguments, _PATH) or ""
    several = arguments.get("edits")
    if isinstance(several, Sequence) and not isinstance(several, str):
        pairs = [_pair(one) for one in several if isinstance(one, Mapping)]
        return [Edit(path, compare(*pair)) for pair in pairs if pair is not None]
    pair = _pair(arguments)
    if pair is not None:
        return [Edit(path, compare(*pair))]
    content = _text(arguments, _CONTENT)
    return [Edit(path, compare("", content))] if content is not None and path else []


def _pair(arguments: Mapping[Any, Any]) -> tuple[str, str] | None:
    old, new = _text(arguments, _OLD), _text(arguments, _NEW)
    return None if new is None or old is None else (old, new)


def _text(arguments: Mapping[Any, Any], names: Sequence[str]) -> str | None:
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def _patch_in(arguments: Any) -> str | None:
    """A patch in the syntax of ``apply_patch``."""
    values: Sequence[Any] = (arguments,)
    if isinstance(arguments, Mapping):
        command = arguments.get("command")
        listed = command if isinstance(command, list) else ()
        values = (*(arguments.get(name) for name in _PATCH), *listed)
    return next((one for one in values if isinstance(one, str) and one.lstrip().startswith(_BEGIN)), None)


def _of_patch(patch: str) -> list[Edit]:
    found: list[tuple[str, list[str]]] = []
    for line in patch.rstrip("\n").split("\n"):
        head, _, path = line.partition(" File: ")
        if head in ("*** Add", "*** Update", "*** Delete"):
            found.append((path.strip(), []))
        elif found and not line.startswith("***"):
            found[-1][1].append(line)
    return [Edit(path, tuple(lines)) for path, lines in found]


def compare(old: str, new: str) -> tuple[str, ...]:
    """The lines of the unified diff of two texts, without its file headers."""
    before, after = (text.split("\n") if text else [] for text in (old, new))
    if after and after[-1] == "" and (not before or before[-1] == ""):  # both end with a newline
        before, after = before[:-1], after[:-1]
    if not before or len(before) > _MAX_LINES or len(after) > _MAX_LINES:
        return (*(f"-{line}" for line in before), *(f"+{line}" for line in after))
    lines = list(unified_diff(before, after, lineterm="", n=3))[2:]
    return tuple(lines[1:] if sum(line.startswith("@@") for line in lines) == 1 else lines)

"""File edits in the arguments of tool calls, as unified diffs: of the common shapes, whatever the tool and format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tracetui.analysis.effects.vocabulary import Edit, Kind

PATH: Final = (
    "file_path", "filePath", "path", "filename", "file", "filepath", "file_name", "absolute_path", "target_file",
    "notebook_path", "TargetFile", "AbsolutePath", "dir_path", "DirectoryPath",
)  # fmt: skip
OLD: Final = ("old_string", "oldString", "old_str", "oldText", "old_text", "old_content", "TargetContent", "search")
NEW: Final = (
    "new_string", "newString", "new_str", "newText", "new_text", "new_content", "ReplacementContent", "replace",
)  # fmt: skip
CONTENT: Final = ("content", "file_text", "contents", "new_source", "CodeContent")
INSERTED: Final = (*NEW, "insert_text", "text")
_EDITS: Final = ("edits", "ReplacementChunks", "replacements")
_PATCH: Final = ("input", "patch", "patchText", "diff")
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_KINDS: Final = {"*** Add": Kind.WRITE, "*** Update": Kind.EDIT, "*** Delete": Kind.DELETE}


def edits_of(arguments: Any) -> list[Edit]:
    """The edits that a tool call asks for; empty if its arguments are no edit."""
    patch = _patch_in(arguments)
    if patch is not None:
        return _of_patch(patch)
    if not isinstance(arguments, Mapping):
        return []
    path = text_of(arguments, PATH) or ""
    edits = next((arguments[name] for name in _EDITS if _is_list(arguments.get(name))), None)
    if edits is not None:
        pairs = [_pair(item) for item in edits if isinstance(item, Mapping)]
        return [_replacement(path, *pair) for pair in pairs if pair is not None]
    pair = _pair(arguments)
    if pair is not None:
        replaces_all = arguments.get("replace_all") is True or arguments.get("replaceAll") is True
        return [_replacement(path, *pair, replaces_all=replaces_all)]
    if arguments.get("command") == "insert" and path:
        inserted = text_of(arguments, INSERTED)
        return [] if inserted is None else [Edit(path, old="", new=inserted)]
    if path and isinstance(replacement := arguments.get("replacement_text"), str):  # of lines by their numbers
        return [Edit(path, new=replacement)]
    content = text_of(arguments, CONTENT)
    if content is None or not path:
        return []
    kind = Kind.EDIT if "notebook_path" in arguments else Kind.WRITE
    return [Edit(path, kind, new=content)]


def text_of(arguments: Mapping[Any, Any], names: Sequence[str]) -> str | None:
    """The first of these arguments that is a text."""
    for name in names:
        if name in arguments and isinstance(value := arguments[name], str):
            return value
    return None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _replacement(path: str, old: str, new: str, *, replaces_all: bool = False) -> Edit:
    return Edit(path, old=old, new=new, replaces_all=replaces_all)


def _pair(arguments: Mapping[Any, Any]) -> tuple[str, str] | None:
    old, new = text_of(arguments, OLD), text_of(arguments, NEW)
    return None if new is None or old is None else (old, new)


def _patch_in(arguments: Any) -> str | None:
    """A patch in the syntax of ``apply_patch``; also one in a here document."""
    values: Sequence[Any] = (arguments,)
    if isinstance(arguments, Mapping):
        command = arguments.get("command")
        listed = command if isinstance(command, list) else (command, arguments.get("cmd"))
        values = (*(arguments.get(name) for name in _PATCH), *listed)
    for value in values:
        if isinstance(value, str) and _BEGIN in value:
            before = value[: value.index(_BEGIN)].strip()
            if not before or before.startswith("apply_patch"):
                return value[value.index(_BEGIN) :].partition(_END)[0]
    return None


def _of_patch(patch: str) -> list[Edit]:
    files: list[tuple[str, str, list[str]]] = []
    moves: dict[int, str] = {}
    for line in patch.rstrip("\n").split("\n"):
        head, _, path = line.partition(" File: ")
        if head in _KINDS:
            files.append((head, path.strip(), []))
        elif files and line.startswith("*** Move to: "):
            moves[len(files) - 1] = line.partition(": ")[2].strip()
        elif files and not line.startswith("***"):
            files[-1][2].append(line)
    return [
        Edit(path, _KINDS[head], moves.get(number), new=_content_of(head, lines), patch=tuple(lines))
        for number, (head, path, lines) in enumerate(files)
    ]


def _content_of(head: str, lines: Sequence[str]) -> str | None:
    """The text of an added file."""
    return "".join(f"{line[1:]}\n" for line in lines if line.startswith("+")) if head == "*** Add" else None

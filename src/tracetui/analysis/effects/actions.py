"""A tool call as a person would tell it: a verb, its object and its result.

The verb comes from the table of tool names (`tools`). The header of a span has the object, as far as its preview does;
counts of lines, exit codes and items need the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from tracetui.analysis.effects.calls import outcome_of
from tracetui.analysis.effects.edits import PATH, edits_of, text_of
from tracetui.analysis.effects.tools import QUERY, URL, Tool, command_text, parse_arguments, tool_of
from tracetui.analysis.effects.vocabulary import Outcome
from tracetui.model import Body, Span, Status, ToolResult
from tracetui.model.span import PREVIEW

_VERBS: Final[Mapping[Tool, tuple[str, str]]] = {
    Tool.SHELL: ("ran", "running"),
    Tool.POWERSHELL: ("ran", "running"),
    Tool.PATCH: ("edited", "editing"),
    Tool.EDIT: ("edited", "editing"),
    Tool.WRITE: ("wrote", "writing"),
    Tool.READ: ("read", "reading"),
    Tool.DELETE: ("deleted", "deleting"),
    Tool.MOVE: ("moved", "moving"),
    Tool.NET: ("fetched", "fetching"),
    Tool.WEB_SEARCH: ("searched the web", "searching the web"),
    Tool.AGENT: ("delegated", "delegating"),
    Tool.KILL: ("stopped", "stopping"),
    Tool.SEARCH: ("searched", "searching"),
    Tool.LIST: ("listed", "listing"),
    Tool.PLAN: ("planned", "planning"),
    Tool.ASK: ("asked the user", "asking the user"),
}
"""What a call of such a tool did, and what an open one does."""
_PATTERN: Final = ("pattern", "regex", "glob", *QUERY)
_TITLE: Final = ("subject", "title", "question", "task", "plan", "description", "explanation", "taskId")
_TODOS: Final = ("todos", "plan", "items", "tasks", "questions")
_TODO_TEXT: Final = ("content", "step", "text", "title", "task", "description", "question")
_TODO_STATES: Final[Mapping[str, Literal["done", "now"]]] = {
    "completed": "done",
    "complete": "done",
    "done": "done",
    "in_progress": "now",
    "in-progress": "now",
    "active": "now",
}
_EXIT_FIELDS: Final = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_EXIT: Final = re.compile(
    r"\A\s*(?:Error: )?(?:Exit code:?|Process exited with code|Command failed with exit code) (-?\d{1,5})\b[:.]?\s*"
)
"""How programs begin the output of a command that ended."""
_EXIT_LINE: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,5})\b", re.MULTILINE)
_ERROR_TAG: Final = re.compile(r"</?tool_use_error>")
_COUNT: Final = re.compile(r"\b(\d{1,7}) (passed|failed|skipped|errors?|xfailed)\b")
_COMMIT: Final = re.compile(r"^\[[^\]\n]{1,200} ([0-9a-f]{7,40})\] (.{1,200})$", re.MULTILINE)
_MATCHES: Final = re.compile(r"\AFound (\d{1,7} [a-z]{1,20}(?: across \d{1,7} [a-z]{1,20})?)\b")
_ENTER: Final = re.compile(r"\A\s*cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)\s*")
_SEARCHED: Final = 20_000
"""Characters at each end of an output in which a result is looked for."""
_MAX_TODOS: Final = 200
_MAX_SHOWN: Final = 400


class Todo(NamedTuple):
    """An item of a plan."""

    text: str
    state: Literal["done", "now", "open"]


class Action(msgspec.Struct, frozen=True, gc=False):
    """What a call did. Texts are as recorded, not cleaned."""

    verb: str
    object: str = ""
    added: int | None = None
    removed: int | None = None
    """Lines added and removed by an edit that didn't fail; None if not recorded."""
    exit_code: int | None = None
    result: str = ""
    """``2 failed, 56 passed``, ``5 files``: a count that the output has."""
    todos: tuple[Todo, ...] = ()

    @property
    def done(self) -> int:
        """Number of finished items of a plan."""
        return sum(todo.state == "done" for todo in self.todos)


def verb(name: str) -> str:
    """What a tool of this name does: ``ran``, ``read``; for an unlisted tool its name."""
    tool = tool_of(name)
    return name if tool is None else _VERBS.get(tool, (name,))[0]


_GOING: Final = dict(_VERBS.values())


def open_text(span: Span) -> str:
    """What an open call does, without its body: ``running pytest -q``; of an unlisted tool its name and argument."""
    action = action_of(span)
    return f"{_GOING.get(action.verb, action.verb)} {action.object}".rstrip()


def is_read(span: Span) -> bool:
    """Whether a call read a file and ended well."""
    return span.status in (Status.OK, Status.UNKNOWN) and tool_of(span.name) is Tool.READ


def action_of(span: Span, body: Body | None = None) -> Action:
    """Tell a call; without its body as far as the header knows it."""
    action = _action_of(span, body)
    is_denied = body is not None and outcome_of(span, body) is Outcome.DENIED
    return msgspec.structs.replace(action, result="declined") if is_denied else action


def _action_of(span: Span, body: Body | None) -> Action:
    tool, preview = tool_of(span.name), span.preview
    word = verb(span.name)
    code = _exit_in_error(span)
    if body is None:
        return Action(word, _short(_object_in(preview, tool)), exit_code=code)
    arguments = parse_arguments(body.input, tool)
    output = _output_of(body)
    fields = arguments if isinstance(arguments, Mapping) else {}
    if tool in (Tool.EDIT, Tool.PATCH, Tool.WRITE) and (edits := edits_of(arguments)):
        failed = span.status is Status.ERROR
        paths = list(dict.fromkeys(edit.path for edit in edits))
        added = None if failed else sum(edit.added for edit in edits)
        removed = None if failed or word == "wrote" else sum(edit.removed for edit in edits)
        if word == "wrote" and "created" in output[:200]:
            word = "created"
        return Action(word, _short(", ".join(map(last_part, paths))), added, removed)
    if tool in (Tool.SHELL, Tool.POWERSHELL):
        command = command_text(arguments)
        text = command[1] if command is not None else _object_in(preview, tool)
        exit_code = _exit_code(body, output) if code is None else code
        return Action(word, _short(_ENTER.sub("", text)), exit_code=exit_code, result=_result_of(output))
    if tool in (Tool.PLAN, Tool.ASK):
        todos = tuple(_todos_in(fields))
        is_list = tool is Tool.PLAN and len(todos) > 0
        title = "" if is_list else next((todo.text for todo in todos), text_of(fields, _TITLE) or "")
        return Action(word, _short(title), todos=todos if is_list else ())
    if tool is Tool.SEARCH:
        matches = _MATCHES.match(output)
        return Action(
            word, _short(text_of(fields, _PATTERN) or _object_in(preview, tool)), result=matches[1] if matches else ""
        )
    target = _object_in(preview, tool) or _values_in(fields)
    return Action(word, _short(target), exit_code=code)


def plain_error(text: str) -> str:
    """The words of an error without ``Exit code 1`` at their beginning and the tags of Claude Code around them."""
    return _EXIT.sub("", _ERROR_TAG.sub("", text))


def last_part(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1] or path


def _short(text: str) -> str:
    return text[:_MAX_SHOWN]


def _object_in(preview: str, tool: Tool | None) -> str:
    """The object that a preview names; empty for JSON, which no person would say."""
    if preview.lstrip()[:1] in ("{", "["):
        return ""
    if len(preview) >= PREVIEW:
        preview = f"{preview}…"
    if tool in _OF_FILES and "\n" not in preview:
        return last_part(preview)
    return _ENTER.sub("", preview) if tool is Tool.SHELL else preview


_OF_FILES: Final = (Tool.READ, Tool.EDIT, Tool.PATCH, Tool.WRITE, Tool.DELETE, Tool.MOVE)


def _values_in(fields: Mapping[Any, Any]) -> str:
    """The arguments of an unknown tool in words: ``city Oslo · days 3``."""
    named = []
    for name, value in fields.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            named.append(f"{name} {value}" if len(fields) > 1 or name not in (*PATH, *URL, *QUERY) else str(value))
    return " · ".join(named)


def _todos_in(fields: Mapping[Any, Any]) -> Iterator[Todo]:
    items: list[Any] = next((fields[name] for name in _TODOS if isinstance(fields.get(name), list)), [])
    for item in items[:_MAX_TODOS]:
        text = item if isinstance(item, str) else text_of(item, _TODO_TEXT) if isinstance(item, Mapping) else None
        state = str(item.get("status", "")) if isinstance(item, Mapping) else ""
        if text:
            yield Todo(_short(text), _TODO_STATES.get(state.lower(), "open"))


def _exit_in_error(span: Span) -> int | None:
    match = _EXIT.match(span.error.message) if span.error is not None else None
    return None if match is None else int(match[1])


def _exit_code(body: Body, output: str) -> int | None:
    """The recorded exit code of a command."""
    for fields in _mappings_in(body):
        code = next((fields[name] for name in _EXIT_FIELDS if name in fields), None)
        if isinstance(code, int) and not isinstance(code, bool):
            return code
    match = _EXIT.match(output) or _EXIT_LINE.search(output[:_SEARCHED])
    return None if match is None else int(match[1])


def _mappings_in(body: Body) -> Iterator[Mapping[str, Any]]:
    for value in (body.output, body.attributes):
        if isinstance(value, Mapping):
            yield value
            yield from (inner for inner in value.values() if isinstance(inner, Mapping))


def _output_of(body: Body) -> str:
    """The text of the output of a call: of a long one its ends."""
    value = body.output
    if value is None:
        parts = [part for message in body.output_messages for part in message.parts]
        value = next((part.content for part in parts if isinstance(part, ToolResult)), None)
    text = "\n".join(_texts_in(value, 3))
    return text if len(text) <= 2 * _SEARCHED else f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"


def _texts_in(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts_in(inner, depth - 1)
    elif depth and isinstance(value, Sequence) and not isinstance(value, bytes):
        for inner in value[:_MAX_TODOS]:
            yield from _texts_in(inner, depth - 1)


def _result_of(output: str) -> str:
    """The tests that an output counts, else the commit that it names."""
    lines = output[-_SEARCHED:].split("\n")
    counted = next((counts for line in reversed(lines) if (counts := _COUNT.findall(line[:500]))), None)
    if counted is not None:
        return ", ".join(f"{number} {word}" for number, word in counted)
    commit = _COMMIT.search(output)
    return f"{commit[1][:7]} “{commit[2]}”" if commit is not None else ""

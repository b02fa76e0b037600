"""Effects of tool calls, by a table of tool names and argument names.

The name decides, whatever the program: the last part after ``__``, ``.``, ``/`` or ``:``, in lower case. A tool that is
not in the table is judged by the names of its arguments (`Certainty.ARGUMENTS`); any other one is a `Kind.CALL`.
Names are those of Claude Code, Codex, Copilot, Cursor, Cline, Gemini, Qwen, OpenCode, Pi, SWE-agent, OpenHands and of
common MCP servers.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import msgspec

from tracetui.analysis.effects.edits import CONTENT, OLD, PATH, edits_of, text_of
from tracetui.analysis.effects.paths import Place, file_effect
from tracetui.analysis.effects.vocabulary import Certainty, Edit, Effect, Flag, Kind


class Tool(StrEnum):
    """What a tool is for."""

    SHELL = "shell"
    POWERSHELL = "powershell"
    PATCH = "patch"
    EDIT = "edit"
    WRITE = "write"
    READ = "read"
    DELETE = "delete"
    MOVE = "move"
    NET = "net"
    WEB_SEARCH = "web_search"
    AGENT = "agent"
    KILL = "kill"
    SEARCH = "search"
    LIST = "list"
    PLAN = "plan"
    ASK = "ask"
    """A question to the user."""
    NONE = "none"
    """Anything else without effect."""

    @property
    def has_effect(self) -> bool:
        """Whether such a tool does something to the world, or reads from it."""
        return self not in _WITHOUT_EFFECT


_WITHOUT_EFFECT: Final = (Tool.SEARCH, Tool.LIST, Tool.PLAN, Tool.ASK, Tool.NONE)


_NAMES: Final = {
    name: tool
    for tool, names in {
        Tool.SHELL: "bash shell local_shell exec_command execute_command run_shell_command run_command "
        "run_terminal_cmd run_in_terminal terminal shell_exec execute exec unified_exec shell_command run_bash "
        "runcommand bash_command executebash execute_bash command execute_shell run_shell sh zsh python_shell",
        Tool.POWERSHELL: "powershell pwsh run_powershell cmd",
        Tool.PATCH: "apply_patch applypatch patch apply_diff",
        Tool.EDIT: "edit multiedit multi_edit str_replace replace replace_in_file edit_file search_replace "
        "replace_file_content multi_replace_file_content insert insert_edit_into_file notebookedit notebook_edit "
        "edit_notebook edit_and_lint insert_line str_replace_based_edit_tool str_replace_editor file_editor editor "
        "undo_edit edit_block apply_edit insert_content replace_string_in_file multi_replace_string_in_file "
        "append_file",
        Tool.WRITE: "write write_file create create_file writefile write_to_file save_file file_write fswrite fs_write "
        "new_file createfile create_directory mkdir",
        Tool.READ: "read read_file readfile view view_file open open_file cat read_many_files fsread fs_read "
        "get_file_contents view_image read_text_file read_multiple_files notebookread",
        Tool.DELETE: "delete delete_file remove_file rm deletefile",
        Tool.MOVE: "move move_file rename rename_file",
        Tool.NET: "webfetch web_fetch fetch fetch_url http_request "
        "browser_navigate read_url_content open_url visit_url goto_url curl url_fetch fetch_webpage",
        Tool.WEB_SEARCH: "websearch web_search google_web_search search_web",
        Tool.AGENT: "task agent spawn_agent invoke_agent agentswarm delegate spawn dispatch_agent sub_agent subagent "
        "run_subagent as_tool launch_agent workflow new_task",
        Tool.KILL: "killshell kill_shell kill_bash killbash stop_process stop_bash",
        Tool.SEARCH: "grep glob search_files grep_search file_search codebase_search search_file_content search_dir "
        "search_file find_file find rg toolsearch tool_search",
        Tool.LIST: "list_dir ls list_directory list_files",
        Tool.PLAN: "todowrite todo_write todoread taskcreate taskupdate tasklist taskget update_plan write_todos "
        "exitplanmode enterplanmode",
        Tool.ASK: "askuserquestion ask_user",
        Tool.NONE: "think taskoutput taskstop skill structuredoutput submit complete_task finish "
        "attempt_completion save_memory report_intent bashoutput bash_output read_bash sendmessage wait goto "
        "scroll_down scroll_up tool_result function_call_output custom_tool_call_output",
    }.items()
    for name in names.split()
}
COMMAND: Final = (
    "command", "cmd", "script", "bash_command", "CommandLine", "code_block", "shell_command", "keystrokes", "chars",
    "input",
)  # fmt: skip
URL: Final = ("url", "urls", "uri", "href", "link", "endpoint", "Url")
DIRECTORY: Final = (
    "workdir",
    "cwd",
    "working_directory",
    "workingDirectory",
    "directory",
    "dir_path",
    "Cwd",
    "work_dir",
)
QUERY: Final = ("query", "q", "search_term", "prompt")
_TASK: Final = (
    "subagent_type",
    "agent_type",
    "agent_name",
    "agent",
    "description",
    "task",
    "name",
    "prompt",
    "message",
)
_PROCESS: Final = ("shell_id", "shellId", "bash_id", "pid", "process_id", "id")
_SOURCE: Final = ("source", "source_path", "old_path", "from", "src", *PATH)
_TARGET: Final = ("destination", "destination_path", "new_path", "to", "dst")
_LAST: Final = re.compile(r".*(?:__|[/:.])")
_EDITOR: Final = {
    "view": Tool.READ,
    "create": Tool.WRITE,
    "str_replace": Tool.EDIT,
    "insert": Tool.EDIT,
    "undo_edit": Tool.EDIT,
}
"""Values of ``command`` of editors that are one tool."""
_SHELL_LIKE: Final = re.compile(r"shell|bash|exec|command|terminal|run")
_WRITE_LIKE: Final = re.compile(r"write|create|save|edit|put|append|update")
_READ_LIKE: Final = re.compile(r"read|view|open|cat|load")
_REMOTE: Final = ("owner", "repo", "repository", "project_id", "bucket")
"""Arguments that say that a path is not on this machine."""


@lru_cache(maxsize=2_048)
def tool_of(name: str) -> Tool | None:
    """What the tool of that name is for; None if it isn't in the table."""
    return _NAMES.get(_LAST.sub("", name.strip()).lower())


def command_line(name: str, text: str) -> Mapping[str, Any]:
    """The arguments of a call that is recorded as a command line with the tool's name (SWE-agent)."""
    head, _, body = text.strip().partition("\n")
    words = head.split()
    if name == "edit" and re.fullmatch(r"\d+:\d+", words[1] if len(words) > 1 else ""):
        return {"replacement_text": body.removesuffix("\nend_of_edit"), "range": words[1]}
    return {"path": words[1]} if name in ("open", "create") and len(words) > 1 else {"command": text.strip()}


def in_open_file(name: str, arguments: Any, opened: str | None) -> Any:
    """The arguments of a call, with the file that the program had open if it edits that (SWE-agent)."""
    if isinstance(arguments, str) and arguments.split(None, 1)[:1] == [name]:
        arguments = command_line(name, arguments)
    if opened is None or tool_of(name) is not Tool.EDIT or not isinstance(arguments, Mapping):
        return arguments
    if text_of(arguments, PATH) is not None or not set(arguments) & {"replacement_text", "search", "text"}:
        return arguments
    inserts = {"command": "insert"} if name == "insert" else {}
    return {**arguments, **inserts, "path": opened}


def call_effects(name: str, arguments: Any, place: Place) -> list[Effect]:
    """Return the effects that a call of the tool `name` asks for; outcome and span are not set."""
    tool, certainty = tool_of(name), Certainty.RECORDED
    if tool is not None and not tool.has_effect:
        return []
    arguments = parse_arguments(arguments, tool)
    if not isinstance(arguments, Mapping):
        return [] if tool is None and arguments is None else [Effect(Kind.CALL, name)]
    if (
        set(arguments) == {"command"}
        and tool is not Tool.SHELL
        and str(arguments["command"]).split(None, 1)[:1] == [name]
    ):
        tool = Tool.SHELL  # a command line that is recorded with its program as the name of the tool
    edits = [] if tool is Tool.READ else edits_of(arguments)
    if edits and (tool in (Tool.PATCH, Tool.EDIT, Tool.WRITE, Tool.SHELL) or _is_patch(arguments)):
        return [effect for edit in edits for effect in _edit_effects(edit, place, certainty)]
    if tool in (Tool.EDIT, Tool.SHELL, None) and text_of(arguments, PATH) is not None:
        tool = _EDITOR.get(str(arguments.get("command")), tool)
    if tool is None:
        tool, certainty = _guess(name, arguments, bool(edits)), Certainty.ARGUMENTS
        if tool is Tool.EDIT or tool is Tool.WRITE:
            return [effect for edit in edits for effect in _edit_effects(edit, place, certainty)]
    handler = _EFFECTS.get(tool) if tool is not None else None
    return [Effect(Kind.CALL, name)] if handler is None else [*handler(name, arguments, place, certainty)]


def command_text(arguments: Any) -> tuple[str, str] | None:
    """The argument with a shell command, and its text: a list of words is quoted, that of a shell is its command."""
    if isinstance(arguments, str):
        return "", arguments
    if not isinstance(arguments, Mapping):
        return None
    for name in COMMAND:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return name, value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            is_shell = len(value) >= 3 and re.search(r"(?:^|/)(?:ba|z|da|k)?sh$", value[0]) and value[1].startswith("-")
            return name, value[-1] if is_shell else shlex.join(value)
    return None


def parse_arguments(text: Any, tool: Tool | None) -> Any:
    """Arguments recorded as text: JSON, else what the only argument of such a tool is called."""
    if not isinstance(text, str):
        return text
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):  # half of a surrogate pair can't be encoded
        value = None
    if isinstance(value, dict):
        return value
    named = {
        Tool.SHELL: "command",
        Tool.READ: "path",
        Tool.WRITE: "path",
        Tool.DELETE: "path",
        Tool.NET: "url",
        Tool.WEB_SEARCH: "query",
    }
    return {"input": text} if tool is None or tool not in named else {named[tool]: text}


def _is_patch(arguments: Mapping[Any, Any]) -> bool:
    return not any(name in arguments for name in (*OLD, *CONTENT))


def _guess(name: str, arguments: Mapping[Any, Any], has_edits: bool) -> Tool | None:
    """What an unknown tool is for, by its arguments and name."""
    label = _LAST.sub("", name).lower()
    if any(key in arguments for key in _REMOTE):
        return None
    has_path = text_of(arguments, PATH) is not None
    if has_path and has_edits and any(key in arguments for key in OLD):
        return Tool.EDIT
    if has_path and has_edits and _WRITE_LIKE.search(label):
        return Tool.WRITE
    if _SHELL_LIKE.search(label) and command_text({key: arguments[key] for key in arguments if key != "input"}):
        return Tool.SHELL
    if (url := text_of(arguments, URL)) is not None and "://" in url:
        return Tool.NET
    return Tool.READ if has_path and _READ_LIKE.search(label) else None


def _edit_effects(edit: Edit, place: Place, certainty: Certainty) -> Iterator[Effect]:
    if not edit.path:
        return
    effect = file_effect(edit.kind, edit.path, place, certainty=certainty)
    if effect is None:
        return
    yield msgspec.structs.replace(effect, argument="path", edit=edit)
    if edit.moved_to:
        for kind, path in ((Kind.MOVE, edit.path), (Kind.WRITE, edit.moved_to)):
            yield from _moved(kind, path, edit.path, place, certainty)


def _moved(kind: Kind, path: str, source: str, place: Place, certainty: Certainty) -> Iterator[Effect]:
    """One end of a move."""
    effect = file_effect(kind, path, place, certainty=certainty)
    if effect is not None:
        source = place.resolve(source)
        yield effect if kind is Kind.MOVE else msgspec.structs.replace(effect, moved_from=source)


def _shell(name: str, arguments: Mapping[Any, Any], place: Place, certainty: Certainty) -> Iterator[Effect]:
    from tracetui.analysis.effects.shell import shell_effects  # its patterns take 10 ms to compile

    command = command_text(arguments)
    if command is None:
        return iter([Effect(Kind.RUN, name, certainty=certainty)])
    directory = text_of(arguments, DIRECTORY)
    effects = shell_effects(command[1], place.enter(directory) if directory else place)
    if certainty is Certainty.ARGUMENTS:
        effects = tuple(
            msgspec.structs.replace(effect, certainty=certainty) if effect.certainty is Certainty.PARSED else effect
            for effect in effects
        )
    return (msgspec.structs.replace(effect, argument=command[0]) for effect in effects)


def _power_shell(name: str, arguments: Mapping[Any, Any], place: Place, certainty: Certainty) -> Iterator[Effect]:
    yield Effect(Kind.RUN, name, frozenset({Flag.NOT_PARSED}), argument="command", certainty=Certainty.PATTERN)


def _file(kind: Kind) -> Any:
    def effects(name: str, arguments: Mapping[Any, Any], place: Place, certainty: Certainty) -> Iterator[Effect]:
        for argument, path in _paths(arguments):
            effect = file_effect(kind, path, place, certainty=certainty)
            if effect is not None:
                yield msgspec.structs.replace(effect, argument=argument, range=(0, len(path)))

    return effects


def _paths(arguments: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    path = next(((name, arguments[name]) for name in PATH if isinstance(arguments.get(name), str)), None)
    if path is not None:
        yield path
        return
    for name in ("paths", "files", "file_paths"):
        values = arguments.get(name)
        yield from ((name, value) for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _move(name: str, arguments: Mapping[Any, Any], place: Place, certainty: Certainty) -> Iterator[Effect]:
    source, target = text_of(arguments, _SOURCE), text_of(arguments, _TARGET)
    for kind, path in ((Kind.MOVE, source), (Kind.WRITE, target)):
        if path:
            yield from _moved(kind, path, source or "", place, certainty)


def _net(name: str, arguments: Mapping[Any, Any], place: Place, certainty: Certainty) -> Iterator[Effect]:
    from tracetui.analysis.effects.shell_tables import LOCAL  # see `_shell`

    urls = arguments.get("urls")
    targets = [url for url in urls if isinstance(url, str)] if isinstance(urls, list) else []
    for target in targets or [text_of(arguments, URL) or text_of(arguments, QUERY) or name]:
        flags = frozenset({Flag.LOCAL} if LOCAL.match(target) else ())
        yield Effect(Kind.NET, target, flags, argument="url", certainty=certainty)


def _agent(name: str, arguments: Mapping[Any, Any], place: Place, certainty: Certainty) -> Iterator[Effect]:
    yield Effect(Kind.AGENT, text_of(arguments, _TASK) or name, certainty=certainty)


def _kill(name: str, arguments: Mapping[Any, Any], place: Place, certainty: Certainty) -> Iterator[Effect]:
    yield Effect(Kind.KILL, text_of(arguments, _PROCESS) or name, certainty=certainty)


_EFFECTS: Final[Mapping[Tool, Any]] = {
    Tool.SHELL: _shell,
    Tool.POWERSHELL: _power_shell,
    Tool.PATCH: _file(Kind.EDIT),
    Tool.EDIT: _file(Kind.EDIT),
    Tool.WRITE: _file(Kind.WRITE),
    Tool.READ: _file(Kind.READ),
    Tool.DELETE: _file(Kind.DELETE),
    Tool.MOVE: _move,
    Tool.NET: _net,
    Tool.WEB_SEARCH: _net,
    Tool.AGENT: _agent,
    Tool.KILL: _kill,
}

"""Tool calls in words: verb, object and result, whatever the format calls its tools."""

from __future__ import annotations

from typing import Any

import pytest

from tracetui.analysis.effects.actions import Action, Todo, action_of, open_text, plain_error, verb
from tracetui.model import Body, Error, Operation, Span, Status


def call(name: str, preview: str = "", status: Status = Status.OK, error: Error | None = None) -> Span:
    return Span("s", name, Operation.EXECUTE_TOOL, preview=preview, status=status, error=error)


def done(name: str, arguments: Any, output: Any = None, **facts: Any) -> Action:
    return action_of(call(name, **facts), Body(input=arguments, output=output))


def test_an_edit_has_its_file_and_counts_of_lines() -> None:
    arguments = {"file_path": "/home/a/parser.py", "old_string": "a\nb", "new_string": "a\nc\nd"}
    assert done("Edit", arguments) == Action("edited", "parser.py", 2, 1)
    failed = action_of(call("Edit", status=Status.ERROR), Body(input=arguments))
    assert (failed.added, failed.removed) == (None, None)


def test_an_open_call_has_the_verb_of_its_tool() -> None:
    assert open_text(call("Bash", "pytest -q", Status.RUNNING)) == "running pytest -q"
    assert open_text(call("KillShell", "bash_1", Status.RUNNING)) == "stopping bash_1"
    assert open_text(call("remember", "", Status.RUNNING)) == "remember"


def test_a_new_file_is_created_and_another_written() -> None:
    arguments = {"file_path": "t.py", "content": "1\n2\n"}
    assert done("Write", arguments, "File created successfully at: t.py") == Action("created", "t.py", 2)
    assert done("write_file", arguments, "ok").verb == "wrote"


def test_a_patch_of_several_files_names_them_and_sums_their_lines() -> None:
    patch = "*** Begin Patch\n*** Update File: a/x.py\n-1\n+2\n*** Update File: y.py\n+3\n*** End Patch"
    assert done("apply_patch", {"input": patch}) == Action("edited", "x.py, y.py", 2, 1)


@pytest.mark.parametrize(
    ("output", "code", "result"),
    [
        ({"exit_code": 1, "stdout": "2 failed, 56 passed in 3s"}, 1, "2 failed, 56 passed"),
        ("Exit code 2\nno such test", 2, ""),
        ("Process exited with code 0\nOutput:\n58 passed", 0, "58 passed"),
        ("[main 5d0e771aa] Keep the last token", None, "5d0e771 “Keep the last token”"),
        ("fine", None, ""),
    ],
)
def test_a_command_has_its_recorded_exit_code_and_result(output: Any, code: int | None, result: str) -> None:
    assert done("Bash", {"command": "cd /a/b && pytest -q"}, output) == Action(
        "ran", "pytest -q", exit_code=code, result=result
    )


def test_a_failed_command_has_its_exit_code_without_the_body() -> None:
    span = call("exec_command", "pytest", Status.ERROR, Error("Exit code 1\nboom"))
    assert action_of(span) == Action("ran", "pytest", exit_code=1)
    assert plain_error("Exit code 1\nboom") == "boom"
    assert plain_error("<tool_use_error>not read</tool_use_error>") == "not read"


def test_a_plan_is_a_checklist_of_every_format() -> None:
    states = {"fix": "completed", "test": "in_progress", "doc": "pending"}
    todos = [{"content": text, "status": state} for text, state in states.items()]
    expected = (Todo("fix", "done"), Todo("test", "now"), Todo("doc", "open"))
    assert done("TodoWrite", {"todos": todos}).todos == expected
    steps = [{"step": todo["content"], "status": todo["status"]} for todo in todos]
    plan = done("update_plan", {"plan": steps})
    assert (plan.verb, plan.todos, plan.done) == ("planned", expected, 1)


def test_json_is_never_the_object_of_a_call() -> None:
    assert action_of(call("TodoWrite", '{"todos":[{"content"')).object == ""
    assert done("weather", {"city": "Oslo", "days": 3}, preview='{"city": "Oslo"').object == "city Oslo · days 3"


def test_a_refused_call_is_declined() -> None:
    error = Error("The user doesn't want to proceed with this tool use.")
    assert done("Bash", {"command": "rm x"}, status=Status.ERROR, error=error).result == "declined"


def test_tools_of_several_agents_have_the_same_verb() -> None:
    assert {verb(name) for name in ("Read", "read_file", "view", "mcp__fs__read_text_file")} == {"read"}
    assert {verb(name) for name in ("Grep", "search_files", "codebase_search")} == {"searched"}

"""What is taken along can be pasted anywhere: it is ASCII, does nothing that the trace wants, and holds no secret."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.canaries import CANARY, SHAPED
from tests.shared import examples
from tests.views.test_masking import SECRETS, SOURCE, secret_trace
from tracetui import demo, load_all
from tracetui.export.snippets import curl, fixture, fork, pytest_stub
from tracetui.live.load import read_run
from tracetui.model import Body, Message, Operation, Reasoning, Run, Span, Text, ToolCall, ToolResult
from tracetui.redact import Redactor

EVIL = "'; touch PWNED; $(touch PWNED) `touch PWNED` \\'\" \n\x1b]0;x\x07\x03 \u202e é 😀 %s {x}"


def call(model: str, *texts: str) -> tuple[Span, Body]:
    span = Span(id="1", name=model, operation=Operation.CHAT)
    parts = tuple(Text(text) for text in texts)
    return span, Body(input_messages=(Message("system", (Text("be brief"),)), Message("user", parts)))


def run_it(command: str, folder: Path) -> tuple[list[str], dict[str, object]]:
    """The arguments that a shell gives to curl, and the data that it would send."""
    (folder / "bin").mkdir(exist_ok=True)
    fake = folder / "bin" / "curl"
    fake.write_text('#!/bin/sh\nfor one in "$@"; do printf "%s\\0" "$one"; done\n')
    fake.chmod(0o755)
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "API_KEY": "key-of-the-user"}
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True, timeout=30, check=True
    )
    arguments = done.stdout.decode().split("\0")[:-1]
    return arguments, json.loads(arguments[arguments.index("-d") + 1])


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4", "gemini-2.0-flash", "local/model", EVIL])
def test_a_model_call_as_curl_sends_the_conversation_only(model: str, tmp_path: Path) -> None:
    command = curl(*call(model, EVIL), Redactor())
    assert command is not None
    assert command.isascii()
    assert command.replace("\n", "").isprintable()
    arguments, data = run_it(command, tmp_path)
    assert not (tmp_path / "PWNED").exists()
    assert data["model"] == model
    assert EVIL in _texts(data["messages"])
    assert any("key-of-the-user" in argument for argument in arguments)
    assert "key-of-the-user" not in command


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]


def test_the_provider_of_a_model_is_guessed_from_its_name() -> None:
    hosts = {"claude-3": "api.anthropic.com", "gpt-4o": "api.openai.com", "o3-mini": "api.openai.com"}
    hosts |= {"gemini-pro": "googleapis.com", "qwen": "YOUR-PROVIDER"}
    for model, host in hosts.items():
        assert host in (curl(*call(model, "hi"), None) or "")


def test_tools_are_encoded_for_each_provider(tmp_path: Path) -> None:
    conversation = (
        Message("user", (Text("look"),)),
        Message("assistant", (Reasoning("hm"), ToolCall("c1", "search", {"q": "x"}))),
        Message("tool", (ToolResult("c1", {"found": 1}),)),
    )
    for model in ("gpt-4o", "claude-3"):
        span = Span(id="1", name=model, operation=Operation.CHAT)
        command = curl(span, Body(input_messages=conversation), None)
        assert command is not None
        _, data = run_it(command, tmp_path)
        messages = data["messages"]
        assert isinstance(messages, list)
        if model == "gpt-4o":
            assert messages[1]["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"q":"x"}'}
            assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": '{"found":1}'}
        else:
            assert messages[1]["content"] == [{"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "x"}}]
            assert messages[2]["content"][0]["type"] == "tool_result"
            assert messages[2]["role"] == "user"


def test_a_recorded_request_is_sent_as_it_was(tmp_path: Path) -> None:
    request = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0.2}
    command = curl(Span(id="1", name="gpt-4o", operation=Operation.CHAT), Body(input=request), None)
    assert run_it(command or "", tmp_path)[1] == {"model": "gpt-4o", **request}


def test_only_model_calls_have_a_command() -> None:
    assert curl(Span(id="1", name="search", operation=Operation.EXECUTE_TOOL), Body(input={"a": 1}), None) is None
    assert curl(Span(id="1", name="gpt-4o", operation=Operation.CHAT), Body(), None) is None


@settings(max_examples=examples(30))
@given(st.text())
def test_no_text_ends_the_quotes(text: str) -> None:
    command = curl(*call("gpt-4o", text), None)
    assert command is not None
    data = command[command.index("-d '") + 4 : -2]
    assert "'" not in data
    assert command.endswith("'\n")
    json.loads(data)


def secret_step(folder: Path) -> tuple[Run, int]:
    run = read_run(SOURCE, secret_trace(folder))
    return run, next(i for i, span in enumerate(run.spans) if span.name == "login")


def test_secrets_are_masked_in_everything(tmp_path: Path) -> None:
    run, position = secret_step(tmp_path)
    span = Span(id="1", name="gpt-4o", operation=Operation.CHAT)
    body = Body(input={"messages": [{"role": "user", "content": "; ".join(SHAPED.values())}], "api_key": CANARY})
    for taken in (
        fixture(run, position, Redactor()), pytest_stub(run, position, Redactor()), curl(span, body, Redactor()),
    ):  # fmt: skip
        assert taken is not None
        assert taken.isascii()
        assert CANARY not in taken
    assert json.loads(fixture(run, position, None))["input"] == SECRETS


def test_a_stub_embeds_the_step_and_fails_until_completed(tmp_path: Path) -> None:
    run, position = secret_step(tmp_path)
    text = pytest_stub(run, position, Redactor())
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert len(names) == 1
    assert names[0].startswith("test_login")
    held: dict[str, object] = {}
    exec(compile(text, "stub", "exec"), held)
    assert json.loads(fixture(run, position, Redactor())) == held["STEP"]
    with pytest.raises(AssertionError):
        held[names[0]]()  # type: ignore[operator]


def test_only_graphs_can_resume_from_a_step(tmp_path: Path) -> None:
    demo.write(tmp_path, datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    code: list[tuple[Run, int, str | None]] = []
    for run in load_all(str(tmp_path)):
        position = next((i for i, span in enumerate(run.spans) if span.step is not None), None)
        if position is not None:
            code.append((run, position, fork(run, position)))
    known = [entry for entry in code if entry[2] is not None]
    assert {run.summary.ref.format for run, _, _ in known} == {"hypergraph"}
    assert len(known) < len(code)
    for run, position, text in known:
        assert text is not None
        compile(text, "fork", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        assert f"get_checkpoint({run.summary.ref.key!r}, superstep={run.spans[position].step})" in text

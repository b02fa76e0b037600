"""``tracetui mcp``: the official client talks to the server, in this process and as the real program."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.claude_sessions import Step, bash, write_session
from tests.cli.run import Cli, write_traces
from tests.desk import LOOKUP, write_trial
from tests.shared import PATIENCE
from tests.terminal import TRACETUI
from tracetui.cli.mcp import CALLS, SMALLEST, Commands, make_server
from tracetui.cli.parser import COMMANDS
from tracetui.cli.reading import served_paths
from tracetui.sources import local

if TYPE_CHECKING:
    from mcp import ClientSession

SECRET = "sk-proj-" + "Ab1" * 16


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Traces of the contract's formats, and one with a secret."""
    write_traces(tmp_path / "traces")
    plan = json.loads((tmp_path / "traces" / "paprika" / "plan-7.json").read_bytes())
    text = json.dumps(plan).replace("rain", f"rain {SECRET}").replace('"plan-7', '"secret-7')
    (tmp_path / "traces" / "paprika" / "secret.json").write_text(text)
    return tmp_path / "traces"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Servers in this process run commands in it, too. That they start programs is tested with the other fixtures."""
    cli = Cli(capsysbinary)

    async def run(commands: Commands, command: str, arguments: Sequence[str]) -> tuple[bytes, bytes]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(local.WITHIN, commands._environment[local.WITHIN])
            local._allowed.cache_clear()
            result = cli(command, *arguments)
        local._allowed.cache_clear()
        return result.out, result.err.encode()

    monkeypatch.setattr(Commands, "_run", run)
    return cli


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[ClientSession]:
    """A session with the real program."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    server = StdioServerParameters(command=sys.executable, args=["-m", "tracetui", "mcp", *arguments])
    streams = stdio_client(server, errlog=sys.__stderr__ or sys.stderr)  # pytest captures the other
    async with streams as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def server(folder: Path) -> AsyncIterator[ClientSession]:
    """A session with a server in this process."""
    from mcp import Client

    async with Client(make_server(served_paths([str(folder)], "mcp"))) as client:
        yield client.session


async def call(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await session.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def failure(session: ClientSession, tool: str, **arguments: Any) -> str:
    result = await session.call_tool(tool, arguments)
    assert result.is_error
    return "".join(getattr(part, "text", "") for part in result.content)


async def test_every_tool_answers_with_the_json_of_its_command(traces: Path, in_process: Cli) -> None:
    cli = in_process
    run = str(traces / "paprika" / "plan-7.json")
    replay = str(traces / "paprika" / "plan-7-again.json")
    async with server(traces) as session:
        assert {tool.name for tool in (await session.list_tools()).tools} == {
            *("list", "show", "links", "grep", "triage", "tasks", "context", "diff", "files", "audit", "blame")
        }
        listed = await call(session, "list", size=400_000)
        assert listed["data"] == cli("ls", str(traces), "--json", "--redact").data
        assert "instructions" in listed["notice"]
        failed = (await call(session, "list", query="status:error"))["data"]["runs"]
        assert failed
        assert {run["status"] for run in failed} == {"error"}
        answer = await call(session, "show", address=run)
        assert answer["data"] == cli("show", run, "--json", "--redact").data
        assert (await call(session, "show", address="plan-7-a"))["data"]["run"]["id"].startswith("plan-7-a")
        links = (await call(session, "links", address=run))["data"]
        assert links == cli("show", f"{run}/links", "--json", "--redact", "--trace-dir", str(traces)).data
        assert (await call(session, "links", address=f"{run}/1", value="rain"))["data"]["value"] == "rain"
        causes = (await call(session, "triage"))["data"]["causes"]
        assert causes == cli("triage", str(traces), "--json", "--redact").data["causes"]
        assert (await call(session, "tasks"))["data"]["tasks"]
        assert (await call(session, "diff", a=replay))["data"]["relation"] == "replay"
        hits = (await call(session, "grep", text="rain"))["data"]["hits"]
        assert {hit["match"] for hit in hits} == {"rain"}


@pytest.mark.usefixtures("in_process")
async def test_answers_are_pages(traces: Path) -> None:
    async with server(traces) as session:
        everything = (await call(session, "list", size=400_000))["data"]["runs"]
        runs: list[Any] = []
        offset: int | None = 0
        while offset is not None:
            answer = await call(session, "list", size=10_000, offset=offset)
            assert len(json.dumps(answer, separators=(",", ":"))) < 20_000
            runs += answer["data"]["runs"]
            offset = answer.get("more")
            assert offset is None or any("runs: items" in note for note in answer["cut"])
        assert [run["address"] for run in runs] == [run["address"] for run in everything]


@pytest.mark.usefixtures("in_process")
async def test_secrets_are_masked(traces: Path) -> None:
    address = str(traces / "paprika" / "secret.json")
    async with server(traces) as session:
        for tool, arguments in (("show", {"address": address}), ("grep", {"text": "rain"}), ("list", {})):
            assert SECRET not in json.dumps(await call(session, tool, size=400_000, **arguments))


async def test_an_exact_program_shows_secrets_but_nothing_outside_of_its_paths(traces: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes((traces / "paprika" / "plan-7.json").read_bytes())
    async with program("--exact", str(traces)) as session:
        answer = await call(session, "show", address=str(traces / "paprika" / "secret.json"), size=400_000)
        assert SECRET in json.dumps(answer)
        assert "plan" not in (await failure(session, "show", address=str(outside))).replace(str(tmp_path), "")


async def test_no_tool_tells_a_secret_on_any_page(tmp_path: Path, in_process: Cli) -> None:
    """A secret that links steps, is a cause, a command and written to a file, whatever a page or excerpt cuts."""
    text = f"Error: {SECRET} of K-2417 is in use {SECRET}"
    updates = [("update_key", {"key": SECRET, "id": "K-2417"}, text)] * 2
    desk = write_trial(tmp_path / "runs", "t__0", (LOOKUP, *updates), passed=False)
    write_trial(tmp_path / "runs", "t__1", (LOOKUP, *updates), passed=True)
    write = Step("Write", {"file_path": "/home/dev/shop/a.py", "content": f"key = '{SECRET}'\n"})
    write_session(tmp_path / "runs" / "one.jsonl", [write, bash(f"curl -H 'x-api-key: {SECRET}' x.io; git push -f")])
    repo = tmp_path / "shop"
    repo.mkdir()
    subprocess.run(["git", "init", "-q", repo], check=True)
    (repo / "a.py").write_text(f"key = '{SECRET}'\n")
    other = next(path for path in (tmp_path / "runs").rglob("*.json") if "t__1" in str(path))
    calls: dict[str, list[dict[str, Any]]] = {
        **{tool: [{}] for tool in ("list", "triage", "tasks", "files", "audit")},
        "show": [{"address": f"{desk}{step}"} for step in ("", "/2", "/3", "/3.1")],
        "links": [{"address": str(desk)}, {"address": f"{desk}/3.1", "value": "K-2417"}],
        "grep": [{"text": "in use"}, {"text": "[a-zA-Z0-9]{9} of K-2417", "regex": True}, {"text": "curl"}],
        "context": [{"address": str(desk)}],
        "diff": [{"a": str(desk), "b": str(other)}],
        "blame": [{"target": "a.py"}],
    }
    from mcp import Client

    paths = served_paths([str(tmp_path / "runs")], "mcp")
    async with Client(make_server(paths, repo=str(repo))) as client:
        assert {tool.name for tool in (await client.session.list_tools()).tools} == calls.keys()
        for tool, argument_sets in calls.items():
            for arguments, size in product(argument_sets, (SMALLEST, 400_000)):
                answer = json.dumps(await call(client.session, tool, size=size, **arguments))
                assert not [part for part in (SECRET[:12], SECRET[-12:]) if part in answer], (tool, arguments, size)
    assert SECRET in in_process("show", f"{desk}/links", "--json").text


@pytest.mark.usefixtures("in_process")
async def test_nothing_outside_of_the_paths_is_read(traces: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes((traces / "paprika" / "plan-7.json").read_bytes())
    (traces / "link.json").symlink_to(outside)
    (traces / "folder").symlink_to(tmp_path)
    async with server(traces) as session:
        for address in (
            str(outside),
            f"{traces}/../outside.json",
            str(traces / "link.json"),
            str(traces / "folder" / "outside.json"),
            "box:traces/a.json",
            "s3://bucket/a.json",
            "ssh://box/a.json",
            "-",
            "--raw",
        ):
            message = await failure(session, "show", address=address)
            assert "plan" not in message.replace(str(tmp_path), "")
        for path in (str(tmp_path), "/", "s3://bucket", "box:/", "~"):
            result = await session.call_tool("list", {"path": path})
            assert "plan-7" not in str(result.content)
        assert "no-such-run" in await failure(session, "show", address="no-such-run")
        assert "did you mean `error`" in await failure(session, "list", query="status:eror")


def test_places_that_cannot_be_served_are_refused(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    cli = Cli(capsysbinary)
    (tmp_path / "a:b").mkdir()
    assert "can't limit reading" in cli("mcp", str(tmp_path / "a:b")).err
    for path, message in (("box:traces", "local files only"), ("-", "local files only"), ("nothing", "no such file")):
        result = cli("mcp", path)
        assert (result.status, message in result.err) == (2, True)


# ---- lines of standard input, as any program may send them

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def talk(folder: Path, *lines: bytes, waits: int) -> tuple[list[Any], str]:
    """Send lines and read `waits` answers; return them, and the errors printed until the server ends."""
    command = [*TRACETUI, "mcp", str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        process.stdin.write(b"".join(line + b"\n" for line in lines))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(waits)]
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        return answers, process.stderr.read().decode()


def test_lines_that_are_no_messages_get_an_error(traces: Path) -> None:
    lone = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "show\\ud800", "arguments": {}}}'
    ping = b'{"jsonrpc": "2.0", "id": 99, "method": "ping"}'
    lines = (b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b'{"id": 5}', lone, b'"' + b"x" * 5_000_000 + b'"', b"", ping)
    answers, errors = talk(traces, *lines, waits=len(lines) - 1)
    codes = [(answer["id"], answer.get("error", {}).get("code")) for answer in answers]
    nothing, wrong = -32700, -32600
    assert sorted(codes, key=str) == sorted(
        [(None, nothing)] * 3 + [(None, wrong)] * 2 + [(5, wrong), (7, wrong), (99, None)], key=str
    )
    assert errors == ""


def call_line(number: int, tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def test_standard_input_that_ends_during_calls_ends_the_server_quietly(traces: Path) -> None:
    _, errors = talk(traces, *(call_line(number, "list") for number in range(1, 9)), waits=0)
    assert errors == ""


@pytest.mark.parametrize("seconds", [0, 0.001, 0.05])
async def test_cancelled_calls_have_ended_their_processes(
    traces: Path, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a call that is cancelled while its process starts."""
    processes: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def record(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        processes.append(await start(*arguments, **options))
        return processes[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", record)
    commands = Commands([str(traces)], exact=False)
    async with anyio.create_task_group() as calls:
        for _ in range(CALLS):
            calls.start_soon(commands._run, "ls", [str(traces), "--json"])
        await anyio.sleep(seconds)
        calls.cancel_scope.cancel()
    assert len(processes) == CALLS
    assert {process.returncode for process in processes} == {-signal.SIGKILL}


async def test_arguments_that_no_command_can_get_have_a_reason(traces: Path) -> None:
    async with server(traces) as session:
        for path in ("a\0b", "x" * 300_000):
            assert "can't be passed to a command: " in await failure(session, "list", path=path)
            assert "can't be passed to a command: " in await failure(session, "show", address=path)


async def test_calls_at_once_are_limited(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands([str(traces)], exact=False)
    most, now = 0, 0

    async def run(command: str, arguments: Any) -> tuple[bytes, bytes]:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return b'{"runs": []}', b""

    monkeypatch.setattr(commands, "_run", run)
    await asyncio.gather(*(commands.answer("ls", [], [], ["runs"], 0, 1_000) for _ in range(3 * CALLS)))
    assert most == CALLS


def test_skill_needs_no_path_and_names_real_commands(cli: Cli) -> None:
    result = cli("mcp", "--skill")
    commands = set(re.findall(r"`tracetui ([a-z]+)", result.text))

    assert (result.status, result.err) == (0, "")
    assert result.text.startswith("---\nname: tracetui\n")
    assert {"ls", "show", "triage", "grep", "diff"} <= commands <= {*COMMANDS}


@pytest.mark.usefixtures("in_process")
async def test_effects_are_answered_without_looking_at_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "shop"
    (repo / ".git").mkdir(parents=True)
    (repo / "a.py").write_text("limit = 12\n")
    steps = [Step("Write", {"file_path": "/home/dev/shop/a.py", "content": "limit = 12\n"}), bash("git push -f")]
    write_session(tmp_path / "runs" / "one.jsonl", steps)
    monkeypatch.chdir(repo)
    async with server(tmp_path / "runs") as session:
        (file,) = (await call(session, "files"))["data"]["files"]
        assert (file["path"], file["state"], file["lines"]) == ("a.py", "not looked at", None)
        findings = (await call(session, "audit"))["data"]["findings"]
        assert [finding["rule"] for finding in findings] == ["push-force", "push", "network"]
        assert "--repo DIR" in await failure(session, "blame", target="a.py")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.usefixtures("in_process")
async def test_blame_answers_for_the_repository_of_the_user(tmp_path: Path) -> None:
    from mcp import Client

    runs, repo = tmp_path / "runs", tmp_path / "shop"
    repo.mkdir()
    subprocess.run(["git", "init", "-q", repo], check=True)
    (repo / "a.py").write_text("limit = 12\n")
    steps = [Step("Write", {"file_path": "/home/dev/shop/a.py", "content": "limit = 12\n"})]
    path = write_session(runs / "one.jsonl", steps)
    async with Client(make_server(served_paths([str(runs)], "mcp"), repo=str(repo))) as client:
        (line,) = (await call(client.session, "blame", target="a.py"))["data"]["lines"]
        assert (line["run"], line["rung"], line["why"]["prompt"]) == (str(path), "lines", "Go")
        assert "no such file or commit" in await failure(client.session, "blame", target="/etc/passwd")

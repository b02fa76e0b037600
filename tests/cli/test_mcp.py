"""``tracetui mcp``: the official client talks to the server, in this process and as the real program."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.run import Cli, write_traces
from tracetui.cli.mcp import make_server
from tracetui.cli.reading import served_paths

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


@asynccontextmanager
async def program(*words: str) -> AsyncIterator[ClientSession]:
    """A session with the real program."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    server = StdioServerParameters(command=sys.executable, args=["-m", "tracetui", "mcp", *words])
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
    return "".join(getattr(one, "text", "") for one in result.content)


async def test_every_tool_answers_with_the_json_of_its_command(
    traces: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    cli = Cli(capsysbinary)
    run = str(traces / "paprika" / "plan-7.json")
    replay = str(traces / "paprika" / "plan-7-again.json")
    async with program(str(traces)) as session:
        assert {tool.name for tool in (await session.list_tools()).tools} == {
            *("list", "show", "grep", "triage", "tasks", "context", "diff")
        }
        listed = await call(session, "list", size=400_000)
        assert listed["data"] == cli("ls", str(traces), "--json", "--redact").data
        assert "instructions" in listed["notice"]
        failed = (await call(session, "list", query="status:error"))["data"]["runs"]
        assert failed
        assert {one["status"] for one in failed} == {"error"}
        shown = await call(session, "show", address=run)
        assert shown["data"] == cli("show", run, "--json", "--redact").data
        assert (await call(session, "show", address="plan-7-a"))["data"]["run"]["id"].startswith("plan-7-a")
        causes = (await call(session, "triage"))["data"]["causes"]
        assert causes == cli("triage", str(traces), "--json", "--redact").data["causes"]
        assert (await call(session, "tasks"))["data"]["tasks"]
        assert (await call(session, "diff", a=replay))["data"]["relation"] == "replay"
        hits = (await call(session, "grep", text="rain"))["data"]["hits"]
        assert {hit["match"] for hit in hits} == {"rain"}


async def test_answers_are_pages(traces: Path) -> None:
    async with server(traces) as session:
        everything = (await call(session, "list", size=400_000))["data"]["runs"]
        found: list[Any] = []
        offset: int | None = 0
        while offset is not None:
            answer = await call(session, "list", size=10_000, offset=offset)
            assert len(json.dumps(answer, separators=(",", ":"))) < 20_000
            found += answer["data"]["runs"]
            offset = answer.get("more")
            assert offset is None or any("runs: items" in note for note in answer["cut"])
        assert [run["address"] for run in found] == [run["address"] for run in everything]


async def test_secrets_are_masked_unless_exact(traces: Path) -> None:
    address = str(traces / "paprika" / "secret.json")
    async with server(traces) as session:
        for tool, arguments in (("show", {"address": address}), ("grep", {"text": "rain"}), ("list", {})):
            assert SECRET not in json.dumps(await call(session, tool, size=400_000, **arguments))
    async with program("--exact", str(traces)) as session:
        assert SECRET in json.dumps(await call(session, "show", address=address, size=400_000))


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


def test_what_cannot_be_served_is_refused(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    cli = Cli(capsysbinary)
    (tmp_path / "a:b").mkdir()
    assert "can't limit reading" in cli("mcp", str(tmp_path / "a:b")).err
    for path, words in (("box:traces", "local files only"), ("-", "local files only"), ("nothing", "no such file")):
        found = cli("mcp", path)
        assert (found.status, words in found.err) == (2, True)

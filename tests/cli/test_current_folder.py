"""The current folder may hold traces of anybody: nothing that lies there is run."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.cli.run import write_traces
from tests.shared import PATIENCE
from tracetui.processes import own_command, program_path

MODULES = (
    *("orjson", "msgspec", "regex", "zstandard", "watchfiles", "textual", "rich", "mcp", "anyio", "aiohttp"),
    *("copy", "json", "asyncio", "argparse", "sqlite3", "random", "typing", "sitecustomize", "usercustomize"),
)
"""Modules that the commands import, installed ones and those of the standard library."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a trace, and with modules, a plug-in and programs that leave a file `ran`."""
    folder = tmp_path / "here"
    write_traces(folder)
    text = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__ + ' ')\nraise ImportError(__name__)\n"
    for name in (*MODULES, "evil"):
        (folder / f"{name}.py").write_text(text)
    (folder / "evil-1.0.dist-info").mkdir()
    (folder / "evil-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (folder / "evil-1.0.dist-info" / "entry_points.txt").write_text("[tracetui.formats]\nevil = evil:Evil\n")
    for name in ("ssh", "sh", "git", "vi", "python", "python3", "tracetui"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path / 'ran'}\n")
        (folder / name).chmod(0o755)
    return folder


def started(folder: Path, *arguments: str, flags: tuple[str, ...] = ("-P",)) -> subprocess.Popen[str]:
    """The program, started in the folder, with an environment in which the current folder is on `PATH`."""
    return subprocess.Popen(
        [sys.executable, *flags, "-m", "tracetui", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PATH": f":.:{os.environ['PATH']}", "HOME": str(folder.parent / "home")},
    )


def ran(folder: Path) -> str:
    """What ran of that which lies in the folder."""
    path = folder.parent / "ran"
    return path.read_text() if path.exists() else ""


async def test_tools_for_agents_load_nothing_from_the_current_folder(folder: Path) -> None:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    command = StdioServerParameters(command=sys.executable, args=["-P", "-m", "tracetui", "mcp", "."], cwd=str(folder))
    streams = stdio_client(command, errlog=sys.__stderr__ or sys.stderr)
    async with streams as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        result = await session.call_tool("grep", {"text": "rain"})
        assert not result.is_error, result.content
    assert ran(folder) == ""


@pytest.mark.e2e
async def test_apps_in_a_browser_load_nothing_from_the_current_folder(folder: Path) -> None:
    with started(folder, "serve", ".", "--port", "0") as server:
        try:
            assert server.stdout is not None
            base, _, token = server.stdout.readline().strip().partition("/?token=")
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as reader:
                async with reader.get(f"{base}/?token={token}") as page:
                    assert page.status == 200
                async with reader.ws_connect(f"{base}/ws", headers={"Origin": base}) as socket:
                    painted = b""
                    async with asyncio.timeout(PATIENCE):
                        while b"plan-7" not in painted:
                            data = (await socket.receive()).data
                            painted += data if isinstance(data, bytes) else b""
        finally:
            server.terminate()
    assert ran(folder) == ""


@pytest.mark.parametrize("arguments", [("formats",), ("ls", "box:traces"), ("triage", ".")])
def test_commands_run_nothing_from_the_current_folder(folder: Path, arguments: tuple[str, ...]) -> None:
    with started(folder, *arguments) as command:
        command.communicate(timeout=PATIENCE)
    assert ran(folder) == ""


def test_a_module_run_in_a_hostile_folder_leaves_it_at_once(folder: Path) -> None:
    with started(folder, "ls", ".", flags=()) as command:
        output, errors = command.communicate(timeout=PATIENCE)
    assert "plan-7" in output, errors
    assert ran(folder) == ""


def test_the_module_path_of_the_user_stays(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.py").write_text("print('mine')")
    environment = {**os.environ, "PYTHONPATH": str(own)}
    done = subprocess.run(own_command("mine"), cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "mine\n"


def test_programs_are_looked_up_on_absolute_paths_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f":.::{folder.name}:..")
    assert program_path("ssh") is None
    monkeypatch.setenv("PATH", f":.:{folder}")
    assert program_path("ssh") == str(folder / "ssh")
    assert program_path("./ssh") == "./ssh"


def test_every_child_is_started_through_one_function() -> None:
    source = Path(sys.modules["tracetui.processes"].__file__ or "").parent
    starting = re.compile(r"sys\.executable|create_subprocess_shell|os\.system|os\.popen|shell=True|multiprocessing")
    places = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if starting.search(path.read_text("utf-8"))
    }
    assert places == {"processes.py", "cli/__init__.py"}  # the latter repeats the command that the user gave

"""``tracetui serve``: the real program, asked by a plain client and used in Chromium."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.browser import Page, browser, missing
from tests.canaries import CANARY
from tests.cli.run import Cli, write_traces
from tests.redact.test_reach import write_run
from tests.shared import PATIENCE
from tracetui.cli.serve_guard import HEADERS, WIDEST, cells
from tracetui.redact import MASK
from tracetui.ui.commands import COMMANDS, allowed_in_browser

pytestmark = pytest.mark.e2e
RECORD = """(() => {
  const Old = WebSocket; window.received = '';
  window.WebSocket = class extends Old {
    constructor(...words) {
      super(...words); window.socket = this;
      this.addEventListener('message', async event => {
        const data = event.data instanceof Blob ? await event.data.arrayBuffer() : event.data;
        window.received += typeof data === 'string' ? data : new TextDecoder().decode(data);
      });
    }
  };
})()"""
"""Collects what the app paints: the terminal in the page is a canvas."""


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The program and the URL that it prints."""
    command = [sys.executable, "-m", "tracetui", "serve", str(folder), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            process.terminate()


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Traces, and a home folder of their own."""
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    write_traces(tmp_path / "traces")
    return tmp_path / "traces"


def apps(server: subprocess.Popen[str]) -> list[int]:
    """Processes of apps below a server."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(pid) for pid, parent in map(str.split, table.splitlines()) if int(parent) == server.pid]


async def until(condition: object, description: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.05)
    assert condition(), description  # type: ignore[operator]


async def test_only_the_page_with_the_token_gets_in(traces: Path) -> None:
    with serving(traces, "--sessions", "1") as (url, server):
        base, _, token = url.partition("/?token=")
        assert len(token) >= 40
        assert base.startswith("http://127.0.0.1:")
        address = base.removeprefix("http://")
        async with aiohttp.ClientSession() as stranger:

            async def status(path: str, **headers: str) -> int:
                async with stranger.get(base + path, headers=headers, allow_redirects=False) as answer:
                    return answer.status

            assert await status("/") == 403
            assert await status("/?token=wrong") == 403
            assert await status("/static/js/textual.js") == 403
            assert await status("/download/x") == 403
            assert await status("/ws", Origin=base) == 403
            assert await status(f"/?token={token}", Host="evil.example") == 403
            assert await status(f"/?token={token}", Origin="http://evil.example") == 403
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as reader:
            async with reader.get(url) as page:
                assert (page.status, page.url.query_string) == (200, "")
                assert {name: page.headers[name] for name in HEADERS} == HEADERS
                cookie = page.history[0].headers["Set-Cookie"]
                assert "HttpOnly" in cookie
                assert "SameSite=Strict" in cookie
            for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": f"https://{address}"}):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await reader.ws_connect(f"{base}/ws", headers=headers)
                assert refused.value.status == 403
            assert apps(server) == []
            async with reader.ws_connect(f"{base}/ws", headers={"Origin": base}) as socket:
                assert (await socket.receive()).data
                assert len(apps(server)) == 1
                with pytest.raises(aiohttp.WSServerHandshakeError) as full:
                    await reader.ws_connect(f"{base}/ws", headers={"Origin": base})
                assert full.value.status == 503
            await until(lambda: apps(server) == [], "the app goes on without its page")


@pytest.mark.skipif(bool(missing()), reason=missing())
async def test_the_app_is_used_in_chromium(traces: Path, tmp_path: Path) -> None:
    with serving(traces) as (url, server):
        async with browser() as page:
            await page.send("Page.addScriptToEvaluateOnNewDocument", source=RECORD)
            await page.resize(1280, 1800)
            await page.open(url)
            await page.until("window.received.includes('plan-7')")
            assert "token" not in await page.value("location.href + document.cookie")
            await page.click(300, 300)
            await press(page, "T", "Causes")
            await press(page, "vrx?", "Copy and export")  # neither a verdict nor an export, but the help
            assert "failure as real" not in await page.value("window.received")
            await page.value("window.received = ''")
            await page.resize(900, 500)
            await page.until("window.received.includes('type to search')")
            assert all(url.startswith("http://127.0.0.1:") for url in page.requests if "fonts.googleapis" not in url)
            await page.send("Page.navigate", url="about:blank")
            await until(lambda: apps(server) == [], "the app goes on without its page")
    assert not list((tmp_path / "home").rglob("verdicts*"))


async def press(page: Page, keys: str, text: str) -> None:
    """Press keys, and wait until the app paints a text."""
    await page.value("window.received = ''")
    await page.type(keys)
    await page.until(f"window.received.includes({text!r})")


def test_a_browser_gets_no_command_that_starts_reveals_or_writes() -> None:
    offered = {command.id for command in COMMANDS if allowed_in_browser(command, write=False)}
    writing = {command.id for command in COMMANDS if allowed_in_browser(command, write=True)}
    assert not offered & {"editor", "suspend", "reveal", "export", "real", "known", "note", "tag", "merge", "undo"}
    assert not writing & {"editor", "suspend", "reveal"}
    assert {"export", "real", "note"} <= writing
    assert {"open", "triage", "copy", "filter", "diff"} <= offered


def test_the_server_refuses_other_machines(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    cli = Cli(capsysbinary)
    for path in ("box:traces", "s3://bucket", "-"):
        refused = cli("serve", path)
        assert refused.status == 2
        assert "serve reads local files only" in refused.err


@asynccontextmanager
async def page(url: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """The connection of a page, as soon as its app paints."""
    base = url.partition("/?token=")[0]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as reader:
        async with reader.get(url) as answer:
            assert answer.status == 200
        async with reader.ws_connect(f"{base}/ws", headers={"Origin": base}) as socket:
            assert (await socket.receive()).data
            yield socket


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and wasn't waited for doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system doesn't end processes with their parent")
@pytest.mark.parametrize(
    ("exit_signal", "stopped"), [(signal.SIGKILL, True), (signal.SIGTERM, False), (signal.SIGTERM, True), (None, True)]
)
async def test_apps_end_with_the_server_and_with_their_page(
    traces: Path, exit_signal: signal.Signals | None, stopped: bool
) -> None:
    with serving(traces) as (url, server):
        async with page(url):
            (app,) = apps(server)
            if stopped:
                os.kill(app, signal.SIGSTOP)
            if exit_signal is not None:
                server.send_signal(exit_signal)
                await until(lambda: not is_alive(app), "the app outlives the server")
        await until(lambda: not is_alive(app), "the app outlives its page")


async def test_frames_hold_no_secret_and_a_killed_app_leaves_a_sentence(traces: Path) -> None:
    write_run(traces, f"login failed: password={CANARY}a1 (try 3)")
    with serving(traces) as (url, server):
        async with page(url) as socket:
            seen = b""
            for text, keys in ((b"LoginError", "T"), (b"login failed", ""), (MASK.encode(), "")):
                async with asyncio.timeout(PATIENCE):
                    while text not in seen:
                        data = (await socket.receive()).data
                        seen += data if isinstance(data, bytes) else b""
                await socket.send_json(["stdin", keys])
            assert CANARY.encode() not in seen
            os.kill(apps(server)[0], signal.SIGKILL)
            painted = b"".join([message.data async for message in socket if isinstance(message.data, bytes)])
        assert b"was ended by signal 9; reload the page" in painted


async def test_frames_that_are_no_messages_close_the_page_only(traces: Path) -> None:
    with serving(traces) as (url, _):
        for text in ("{", '["stdin", "\\ud800"]'):
            async with page(url) as socket:
                await socket.send_str(text)
                async with asyncio.timeout(PATIENCE):
                    while not socket.closed:
                        await socket.receive()
        async with page(url) as socket:
            for size in (10**5, 10**400, -1, "x", None, 1.5, True):
                await socket.send_json(["resize", {"width": size, "height": size}])
            await socket.send_json(["ping", 1])
            async with asyncio.timeout(PATIENCE):
                while (await socket.receive()).data != '["pong", 1]':
                    pass


def test_sizes_of_a_terminal_are_bounded() -> None:
    assert [cells(value, 80, WIDEST) for value in (10**5, "120", -1, "x", None, float("inf"))] == [
        *(WIDEST, 120, 1, 80, 80, 80)
    ]


async def test_the_name_localhost_leads_to_the_address_that_the_cookie_is_for(traces: Path) -> None:
    with serving(traces) as (url, _):
        jar = aiohttp.CookieJar(unsafe=True)
        named = url.replace("127.0.0.1", "localhost")
        async with aiohttp.ClientSession(cookie_jar=jar) as reader, reader.get(named) as answer:
            assert (answer.status, answer.url.host, answer.url.query_string) == (200, "127.0.0.1", "")

"""A headless Chromium, driven over its own protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.shared import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """The browser's program; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str:
    """Why there can be no browser; empty if there can."""
    return "" if program() else "chromium is not installed (Debian's package chromium)"


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.requests: list[str] = []
        """URLs that it requested."""
        self.errors: list[str] = []
        """Messages of its console, and refusals of its content security policy."""

    async def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE):
            while True:
                message = json.loads(await self._socket.receive_str())
                if message.get("id") == self._number:
                    assert "error" not in message, message["error"]
                    return message["result"]
                self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message.get("method") == "Log.entryAdded":
            self.errors.append(message["params"]["entry"]["text"])

    async def open(self, url: str) -> None:
        """Load a page."""
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def value(self, expression: str) -> Any:
        """Evaluate JavaScript."""
        reply = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return reply["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until JavaScript is true."""
        async with asyncio.timeout(PATIENCE):
            while not await self.value(expression):
                await asyncio.sleep(0.01)

    async def type(self, text: str) -> None:
        """Press the keys of a text."""
        for character in text:
            for kind in ("keyDown", "keyUp"):
                await self.send("Input.dispatchKeyEvent", type=kind, text=character, key=character)

    async def click(self, x: int, y: int) -> None:
        """Click at a pixel."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def resize(self, width: int, height: int) -> None:
        """Resize the window, in pixels."""
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def screenshot(self, path: Path) -> None:
        """Save a picture."""
        reply = await self.send("Page.captureScreenshot", captureBeyondViewport=False)
        path.write_bytes(base64.b64decode(reply["data"]))


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """A new browser with one empty tab and a profile of its own."""
    name = program()
    assert name is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            *(name, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"),
            *(f"--user-data-dir={profile}", "--no-first-run", "--disable-background-networking", "about:blank"),
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "HOME": profile},
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(PATIENCE):
                while not (address := re.search(rb"ws://([^/]+)/", await process.stderr.readline())):
                    pass
            drain = asyncio.create_task(process.stderr.read())
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://{address[1].decode()}/json/list") as answer:
                    tabs = await answer.json()
                url = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
                async with session.ws_connect(url, max_msg_size=0) as socket:
                    page = Page(socket)
                    for domain in ("Page", "Network", "Log", "Runtime"):
                        await page.send(f"{domain}.enable")
                    yield page
            drain.cancel()
        finally:
            process.kill()
            await process.wait()

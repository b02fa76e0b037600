"""The server of ``tracetui serve``: textual-serve behind a guard.

As released, textual-serve accepts every WebSocket, also from other sites. The guard refuses requests for another host,
from another origin, and without the random token, and limits the number of sessions.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final

import orjson
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server

from tracetui.errors import UsageError
from tracetui.processes import with_parent

HOST: Final = "127.0.0.1"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' "
    "'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Nothing is loaded from other sites, such as the font that the page of textual-serve names."""
PAGES: Final = Path(__file__).with_name("served")
"""Our page instead of that of textual-serve."""
WIDEST: Final = 1_000
HIGHEST: Final = 500
"""Largest size of a terminal in cells. Windows on several 4K screens have fewer."""
MAX_MESSAGE: Final = 1 << 20
"""Bytes of one message of a page."""
END_SECONDS: Final = 2.0
"""How long an app may take to quit; then it is killed."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def cells(value: object, usual: int, most: int) -> int:
    """Return a width or height that the page gave, from 1 to `most`; `usual` if it is no number."""
    try:
        number: int = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return usual
    return min(max(number, 1), most)


class ServedApp(AppService):
    """The process of one page. It ends with the page and with the server, also if either is killed or it is stopped."""

    def __init__(self, command: str, **options: Any) -> None:
        super().__init__(command, **options)
        self._is_ending = False

    async def _open_app_process(self, width: int = 80, height: int = 24) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            *shlex.split(self.command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=with_parent(self._build_environment(width=width, height=height)),
        )
        self._stdin = self._process.stdin
        return self._process

    async def set_terminal_size(self, width: object, height: object) -> None:
        await super().set_terminal_size(cells(width, 80, WIDEST), cells(height, 24, HIGHEST))

    async def on_meta(self, data: bytes) -> None:
        self._is_ending = self._is_ending or orjson.loads(data).get("type") == "exit"
        await super().on_meta(data)

    async def run(self) -> None:
        """Pass on what the app paints; if it ends unasked, say so on its page."""
        await super().run()
        if not self._is_ending:
            assert self._process is not None
            status = await self._process.wait()
            end = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            with suppress(ConnectionError):
                await self.remote_write_bytes(f"{_RESET}tracetui {end}; reload the page to start it again\r\n".encode())
                await self.remote_close()

    async def stop(self) -> None:
        """End the process: it may quit, then it is killed."""
        self._is_ending = True
        try:
            with suppress(TimeoutError, ConnectionError):
                await asyncio.wait_for(super().stop(), END_SECONDS)
        finally:
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()


_RESET: Final = "\x1b[?1000l\x1b[?1003l\x1b[0m\x1b[2J\x1b[H"
"""Mouse off, plain text, cleared screen."""


class GuardedServer(Server):
    """Serves an app on loopback to whoever has the token."""

    def __init__(self, command: Sequence[str], *, port: int, sessions: int) -> None:
        """`command` starts the app; `port` 0 is any free one. Raises `UsageError` if the port is taken."""
        try:
            self._socket = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot listen at port {port}: {error}") from None
        super().__init__(
            shlex.join(command),
            host=HOST,
            port=self._socket.getsockname()[1],
            title="tracetui",
            templates_path=PAGES,
        )
        self.token = token_urlsafe(32)
        self._most = sessions
        self._sessions = 0
        self._cookie = f"tracetui-{self.port}"

    def initialize_logging(self) -> None:
        logging.getLogger("textual-serve").addHandler(logging.NullHandler())

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    async def on_startup(self, app: web.Application) -> None:
        sys.stdout.write(f"{self.public_url}/?token={self.token}\n")
        sys.stdout.write("Whoever has this URL can read the traces. Ctrl+C stops.\n")
        sys.stdout.flush()

    def serve(self, debug: bool = False) -> None:
        """Serve until interrupted."""
        self.initialize_logging()
        web.run_app(self._make_app(), sock=self._socket, print=None, access_log=None, shutdown_timeout=2.0)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an app for as long as its page is open."""
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=MAX_MESSAGE)
        await socket.prepare(request)
        app = ServedApp(
            self.command,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=socket.close,
            download_manager=self.download_manager,
        )
        try:
            query = request.query
            await app.start(cells(query.get("width"), 80, WIDEST), cells(query.get("height"), 24, HIGHEST))
            await self._process_messages(socket, app)
        except (LookupError, TypeError, ValueError, AttributeError, AssertionError, RecursionError):
            pass  # the page sent what isn't a message; it is closed
        finally:
            await app.stop()
            await socket.close()
        return socket

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse what may not pass; see the module."""
        if request.host not in (f"{HOST}:{self.port}", f"localhost:{self.port}"):
            raise web.HTTPForbidden(text="wrong host")
        if request.host != f"{HOST}:{self.port}" and request.path == "/":  # the cookie is valid for one host
            raise web.HTTPFound(f"http://{HOST}:{self.port}{request.path_qs}")
        is_socket = request.path == "/ws"
        origin = request.headers.get("Origin")
        if origin != f"http://{request.host}" and (is_socket or origin is not None):
            raise web.HTTPForbidden(text="wrong origin")
        token = request.query.get("token", "")
        if request.path == "/" and compare_digest(token.encode(), self.token.encode()):
            redirect = web.HTTPFound(f"http://{HOST}:{self.port}/")  # the token must not stay in the history
            redirect.set_cookie(self._cookie, self.token, httponly=True, samesite="Strict")
            raise redirect
        if not compare_digest(request.cookies.get(self._cookie, "").encode(), self.token.encode()):
            raise web.HTTPForbidden(text="open the URL that `tracetui serve` printed: it has a token")
        if not is_socket:
            response = await handler(request)
            if not response.prepared:
                response.headers.update(HEADERS)
            return response
        if self._sessions >= self._most:
            raise web.HTTPServiceUnavailable(text=f"{self._most} sessions are open; close one, or use --sessions")
        self._sessions += 1
        try:
            return await handler(request)
        finally:
            self._sessions -= 1

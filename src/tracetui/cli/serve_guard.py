"""The server of ``tracetui serve``: textual-serve behind a guard.

As released, textual-serve accepts every WebSocket, also from other sites. The guard refuses requests for another host,
from another origin, and without the random token, and limits the number of sessions.
"""

from __future__ import annotations

import logging
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Final

from aiohttp import web
from textual_serve.server import Server

from tracetui.errors import UsageError

HOST: Final = "127.0.0.1"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' "
    "'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Nothing is loaded from other sites, such as the font that the page of textual-serve names."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GuardedServer(Server):
    """Serves an app on loopback to whoever has the token."""

    def __init__(self, command: Sequence[str], *, port: int, sessions: int) -> None:
        """`command` starts the app; `port` 0 is any free one. Raises `UsageError` if the port is taken."""
        try:
            self._socket = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot listen at port {port}: {error}") from None
        super().__init__(shlex.join(command), host=HOST, port=self._socket.getsockname()[1], title="tracetui")
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

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse what may not pass; see the module."""
        if request.host not in (f"{HOST}:{self.port}", f"localhost:{self.port}"):
            raise web.HTTPForbidden(text="wrong host")
        is_socket = request.path == "/ws"
        origin = request.headers.get("Origin")
        if origin != f"http://{request.host}" and (is_socket or origin is not None):
            raise web.HTTPForbidden(text="wrong origin")
        given = request.query.get("token", "")
        if request.path == "/" and compare_digest(given.encode(), self.token.encode()):
            redirect = web.HTTPFound(self.public_url + "/")  # the token must not stay in the history
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

"""Bounded HTTP: what a server answers ends after so many bytes and so much time, and leads to no other server."""

from __future__ import annotations

import http.client
import io
import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ERROR_BYTES: Final = 64 << 10
"""Bytes read of an answer that is an error."""
_PIECE: Final = 256 << 10
_HEADERS: Final = 100
"""Header lines of an answer; of at most 64 KiB each."""


class AnswerTooLarge(OSError):
    """The answer has more bytes than allowed."""


class AnswerTooSlow(TimeoutError):
    """The answer didn't end in time, although bytes arrived."""


class Redirected(OSError):
    """The server names another place, which may belong to someone else: the login isn't sent there."""


def _close(answer: Future[BaseHTTPResponse]) -> None:
    if answer.exception() is None:
        answer.result().close()


class BoundedPool:
    """Connections to a server for clickhouse_connect, which takes this for a pool manager of urllib3.

    Raises `AnswerTooLarge`, `AnswerTooSlow` or `Redirected` besides the errors of urllib3.
    """

    def __init__(self, host: str, port: int, *, secure: bool, most_bytes: int, seconds: float) -> None:
        """`most_bytes`: of an answer, unpacked; `seconds`: until the end of its header, and from there to its end."""
        from clickhouse_connect.driver import httputil

        http.client._MAXHEADERS = _HEADERS  # type: ignore[attr-defined]  # clickhouse_connect sets 10,000
        scheme = "https" if secure else "http"
        proxy: dict[str, Any] = {f"{scheme}_proxy": httputil.check_env_proxy(scheme, host, port)}
        self._pool = httputil.get_pool_manager(ca_cert=os.environ.get("SSL_CERT_FILE") or "certifi", **proxy)
        self._most_bytes, self._seconds = most_bytes, seconds

    def request(self, method: str, url: str, **options: Any) -> BaseHTTPResponse:
        """Send a request and read the whole answer, as `urllib3.PoolManager.request` does with `preload_content`."""
        from urllib3 import HTTPResponse

        options["preload_content"] = False
        answer = self._header(partial(self._pool.request, method, url, redirect=False, **options))
        if answer.status in _REDIRECTS:
            answer.close()
            raise Redirected(f"HTTP status {answer.status}")
        succeeded = 200 <= answer.status < 300
        try:
            data = self._body(answer, self._most_bytes if succeeded else _ERROR_BYTES, cut=not succeeded)
        except BaseException:
            answer.close()
            raise
        headers = {name: value for name, value in answer.headers.items() if name.lower() != "content-encoding"}
        return HTTPResponse(io.BytesIO(data), headers, answer.status, reason=answer.reason, preload_content=True)

    def clear(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _header(self, send: Callable[[], BaseHTTPResponse]) -> BaseHTTPResponse:
        """Send a request and wait for the header: timeouts of urllib3 are for each piece of it."""
        answer: Future[BaseHTTPResponse] = Future()

        def work() -> None:
            try:
                answer.set_result(send())
            except BaseException as error:
                answer.set_exception(error)

        Thread(target=work, name="clickhouse", daemon=True).start()
        try:
            return answer.result(self._seconds)
        except TimeoutError:
            if answer.done():
                raise
            answer.add_done_callback(_close)
            raise AnswerTooSlow from None

    def _body(self, answer: BaseHTTPResponse, most: int, *, cut: bool) -> bytes:
        encoding = answer.headers.get("content-encoding", "")
        if encoding == "lz4":  # not asked for, and urllib3 would leave it packed
            raise OSError("an answer in an encoding that wasn't asked for")
        data, end = bytearray(), time.monotonic() + self._seconds
        read: Callable[[int], bytes] = answer.read1  # returns what has arrived
        while piece := read(_PIECE):
            data += piece
            if len(data) > most:
                if not cut:
                    raise AnswerTooLarge
                answer.close()  # the connection can't be used again
                return bytes(data[:most])
            if time.monotonic() > end:
                raise AnswerTooSlow
        answer.release_conn()
        return bytes(data)

"""Servers that are no ClickHouse: endless, too slow, packed, or leading to another server. One sentence each."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import Cli
from tests.stores.test_faults import sentence
from tracetui.sources.clickhouse import credentials, parse, source

HEADERS = ("many-headers", "slow-header")
ANSWERS = (
    "endless",
    "endless-error",
    "long",
    "packed",
    "lz4",
    "slow",
    "redirect",
    "many-headers",
    "half",
    "slow-header",
)


class HostileServer:
    """A server with one kind of answer to everything. `sent` counts the bytes that clients took."""

    def __init__(self, kind: str, other: str = "") -> None:
        self.kind, self.other = kind, other
        self.sent = self.requests = 0
        self.stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"server_state": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.port = self._server.server_address[1]
        self.url = f"clickhouse://rose@127.0.0.1:{self.port}/otel"

    def stop(self) -> None:
        """End it."""
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_state: HostileServer

    def log_message(self, *_: Any) -> None:
        """Stay quiet."""

    def do_POST(self) -> None:
        state = self.server_state
        state.requests += 1
        try:
            self._answer(state.kind)
        except OSError:
            return  # the client has left

    do_GET = do_POST

    def _answer(self, kind: str) -> None:
        state = self.server_state
        if kind == "redirect":
            self.send_response(307)
            self.send_header("Location", state.other)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if kind == "slow-header":
            for piece in [b"HTTP/1.1 200 OK\r\nX-Slow: ", *[b"x"] * 1000]:
                self.wfile.write(piece)
                if state.stopped.wait(0.05):
                    return
        self.send_response(500 if kind == "endless-error" else 200)
        if kind == "many-headers":
            for i in range(5000):
                self.send_header(f"X-{i}", "x" * 1000)
        if kind == "long":
            self.send_header("Content-Length", str(10**12))
        if kind == "half":
            self.send_header("Content-Length", "1000")
        if kind in ("packed", "lz4"):
            self.send_header("Content-Encoding", "gzip" if kind == "packed" else "lz4")
        self.end_headers()
        if kind == "half":
            self.wfile.write(b"{")
            return
        packer = zlib.compressobj(1, wbits=31)
        piece = b'{"a":"' + b"x" * (1 << 20) + b'"}\n'
        while not state.stopped.is_set():
            data = packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) if kind == "packed" else piece
            if kind == "slow":
                data = b"{"
                time.sleep(0.01)
            self.wfile.write(data)
            state.sent += len(data)


@pytest.fixture(params=ANSWERS)
def hostile_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileServer]:
    """A server of each kind, and smaller limits."""
    monkeypatch.setattr(source, "MAX_BYTES", 4 << 20)
    monkeypatch.setattr(source, "QUERY_SECONDS", 1)
    monkeypatch.setattr(source, "CONNECT_SECONDS", 1)
    running = HostileServer(request.param, "http://127.0.0.1:9/")
    yield running
    running.stop()


def test_an_answer_is_bounded_and_the_reason_one_sentence(hostile_server: HostileServer, cli: Cli) -> None:
    reason = sentence(cli("ls", hostile_server.url).err)
    assert reason.startswith(f"127.0.0.1:{hostile_server.port}")
    if hostile_server.kind in ("endless", "long", "packed"):
        assert reason.endswith("the answer is larger than 500,000 rows or 512 MiB; narrow it with since:")
    if hostile_server.kind in ("slow", "slow-header"):
        assert reason.endswith("doesn't answer in time")
    assert hostile_server.sent < 64 << 20  # what the system's buffers take included
    assert hostile_server.requests <= 4


def test_the_login_is_not_sent_to_another_server(cli: Cli) -> None:
    other = HostileServer("half")
    redirecting = HostileServer("redirect", f"http://127.0.0.1:{other.port}/")
    reason = sentence(cli("ls", redirecting.url).err)
    redirecting.stop()
    other.stop()
    assert reason == f"127.0.0.1:{redirecting.port} redirects to another address; name that one"
    assert other.requests == 0


def test_a_netrc_that_is_a_pipe_has_no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "netrc")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert credentials(parse("clickhouse://box/otel")[0]) == ("default", "")

"""ClickHouse's HTTP interface on loopback, over the real engine in process (chdb): ``engine.py FOLDER [PEM]``.

Prints its port when it is ready, and with a certificate and its key in the file `PEM` the port of TLS before it. One
query at a time. A query's limits reach the engine; ``/fault?kind=…`` makes the next answers fail: ``half`` (cut off),
``late`` (an error after the first rows), ``slow`` (later than any timeout), ``refused`` (the connection is closed),
``login`` (wrong password), ``denied`` (no grant), ``timeout`` (the limit of time), ``gateway`` (a proxy's own error),
``idle`` (the connection is closed after each answer, as one that rested too long is); ``/log`` lists the parameters of
all queries since the last time.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl
import sys
import threading
import time
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

from chdb import session  # type: ignore[import-not-found, import-untyped, unused-ignore]

FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*;?\s*$", re.I)
LIMITS = ("max_execution_time", "max_result_rows", "max_result_bytes", "result_overflow_mode")
SLOW_SECONDS = 60.0
ERRORS = {
    "login": (403, "Code: 516. DB::Exception: default: Authentication failed: password is incorrect."),
    "denied": (403, "Code: 497. DB::Exception: otel: Not enough privileges. To execute this query, grant SELECT(…)."),
    "timeout": (500, "Code: 159. DB::Exception: Timeout exceeded: elapsed 30.1 seconds, maximum: 30."),
    "gateway": (502, "<html>Bad Gateway</html>"),
}
LATE = b"Code: 241. DB::Exception: Memory limit (for query) exceeded. (MEMORY_LIMIT_EXCEEDED) (version 25.8.1.1)\n"


class State:
    """The engine, and the fault to make."""

    def __init__(self, folder: str) -> None:
        self.session: Any = session.Session(folder)  # type: ignore[no-untyped-call, unused-ignore]
        self.lock = threading.Lock()
        self.fault = ""
        self.log: list[dict[str, Any]] = []
        self.stopped = threading.Event()

    def query(self, sql: str, output: str, asked: dict[str, list[str]]) -> bytes:
        """Run a statement with its parameters and limits."""
        for name, (value, *_) in asked.items():
            if name.startswith("param_"):
                escaped = value.replace("\\", "\\\\").replace("'", "\\'")
                sql = f"SET {name}='{escaped}';{sql}"
        with self.lock:
            return bytes(self.session.query(sql, output).bytes() or b"")


STATE: State


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def log_message(self, *_: Any) -> None:
        """Stay quiet."""

    def do_GET(self) -> None:
        url = urlparse(self.path)
        if url.path == "/ping":
            self.answer(b"Ok.\n")
        elif url.path == "/fault":
            STATE.fault = parse_qs(url.query).get("kind", [""])[0]
            self.answer(b"")
        elif url.path == "/log":
            log, STATE.log = STATE.log, []
            self.answer(json.dumps(log).encode())
        else:
            self.do_POST()

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = parse_qs(urlparse(self.path).query)
        if (kind := self.headers.get("Content-Type", "")).startswith("multipart/"):  # many parameters come as a form
            form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + data)
            parts: Any = form.get_payload()
            for part in parts:
                name = part.get_param("name", header="content-disposition")
                asked[str(name)] = [part.get_payload(decode=True).decode()]
            data = b""
        body = data.decode("utf8", "replace")
        sql = (asked.get("query", [""])[0] + "\n" + body).strip()
        noted: dict[str, Any] = {name: values[0] for name, values in asked.items()}
        noted["sql"] = sql
        STATE.log.append(noted)
        if STATE.fault == "refused":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if STATE.fault == "slow":
            STATE.stopped.wait(SLOW_SECONDS)
        if STATE.fault in ERRORS:
            code, text = ERRORS[STATE.fault]
            self.answer(text.encode(), code)
            return
        match = FORMAT.search(sql)
        output = match[1] if match else asked.get("default_format", ["TabSeparated"])[0]
        limits = [f"{name}='{asked[name][0]}'" for name in LIMITS if name in asked]
        if limits and match and "SETTINGS" not in sql:
            sql = f"{sql[: match.start()]} SETTINGS {', '.join(limits)} {match[0]}"
        began = time.perf_counter()
        try:
            data = STATE.query(sql, output, asked)
            noted["seconds"] = time.perf_counter() - began
        except Exception as error:
            self.answer(str(error).encode(), 500)
            return
        self.answer(data, 200, output)

    def answer(self, data: bytes, code: int = 200, output: str = "") -> None:
        """Send an answer, or half of one."""
        if STATE.fault == "late" and output:
            data = data[: data.find(b"\n") + 1] + LATE
        packed = code != 502 and "gzip" in self.headers.get("Accept-Encoding", "")
        data = gzip.compress(data, 1) if packed else data
        self.send_response(code)
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-ClickHouse-Summary", "{}")
        if output:
            self.send_header("X-ClickHouse-Format", output)
        self.end_headers()
        if STATE.fault == "half" and output:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(data)
            if STATE.fault == "idle":  # the client has read that it may go on
                self.wfile.flush()
                self.close_connection = True


if __name__ == "__main__":
    STATE = State(sys.argv[1])
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler)]
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2])
        servers.insert(0, ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        servers[0].socket = context.wrap_socket(servers[0].socket, server_side=True, do_handshake_on_connect=False)
    for server in servers:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client may leave
        print(server.server_address[1], flush=True)
    if len(servers) > 1:
        threading.Thread(target=servers[0].serve_forever, daemon=True).start()
    servers[-1].serve_forever()

"""ClickHouse's HTTP interface on loopback, over the real engine in process (chdb): ``engine.py FOLDER``.

Prints its port when it is ready. One query at a time. A query's limits reach the engine; ``/fault?kind=…`` makes the
next answers fail: ``half`` (cut off), ``slow`` (later than any timeout), ``refused`` (the connection is closed),
``login`` (wrong password); ``/log`` tells the parameters of all queries since the last time.
"""

from __future__ import annotations

import json
import re
import socket
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
LOGIN = b"Code: 516. DB::Exception: default: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)"


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
        if STATE.fault == "login":
            self.answer(LOGIN, 403)
            return
        found = FORMAT.search(sql)
        output = found[1] if found else asked.get("default_format", ["TabSeparated"])[0]
        limits = [f"{name}='{asked[name][0]}'" for name in LIMITS if name in asked]
        if limits and found and "SETTINGS" not in sql:
            sql = f"{sql[: found.start()]} SETTINGS {', '.join(limits)} {found[0]}"
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
        self.send_response(code)
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


if __name__ == "__main__":
    STATE = State(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client may leave
    print(server.server_address[1], flush=True)
    server.serve_forever()

"""Queries to a ClickHouse server through its HTTP interface: read only, within limits.

Facts: "HTTP interface" of the ClickHouse documentation. The standard library speaks it: a client library would start
with queries of its own, and takes a quarter of the time until the first rows to import.
"""

from __future__ import annotations

import re
import secrets
import socket
import ssl
import zlib
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, RemoteDisconnected
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from tracetui.sources.base import LinkLost
from tracetui.sources.clickhouse.sql import Statement
from tracetui.sources.clickhouse.url import PASSWORD, Database, credentials

CONNECT_SECONDS: Final = 5
QUERY_SECONDS: Final = 30
"""The server ends a longer query."""
MAX_ROWS: Final = 500_000
"""Rows of an answer; the server refuses a larger one."""
MAX_BYTES: Final = 1 << 30
LIMITS: Final = {
    "readonly": 2,
    "max_execution_time": QUERY_SECONDS,
    "max_result_rows": MAX_ROWS,
    "max_result_bytes": MAX_BYTES,
    "result_overflow_mode": "throw",
    "output_format_json_quote_64bit_integers": 0,
}
_OPTIONS: Final = {
    "database": "system",  # which every server has; statements name theirs
    "enable_http_compression": 1,
    "wait_end_of_query": 1,  # else an error that comes late would follow rows, with status 200
}
_LONGEST_URL: Final = 4096
"""Bytes of parameters in a URL; proxies refuse longer ones. Others are sent as a form."""
_CODE: Final = re.compile(r"\b[Cc]ode: (\d+)")
_REFUSED: Final = {
    47: "its table has other columns than the OpenTelemetry exporter writes",
    60: "there is no such table; is it the database of the OpenTelemetry exporter?",
    81: "there is no such database; `SHOW DATABASES` lists them",
    158: "too many rows to read; narrow it with since: or a smaller --limit",
    159: f"the query took more than {QUERY_SECONDS} s; narrow it with since: or a smaller --limit",
    160: f"the query would take more than {QUERY_SECONDS} s; narrow it with since: or a smaller --limit",
    164: "its user may not set limits (readonly=1); give it readonly=2",
    241: "the server is out of memory for this query; narrow it with since: or a smaller --limit",
    396: f"the answer is larger than {MAX_ROWS:,} rows or {MAX_BYTES >> 30} GiB; narrow it with since:",
    497: "its user may not read the table; `GRANT SELECT` on it and on its _trace_id_ts",
}
"""Error codes of the server, in one sentence each."""
_NO_LOGIN: Final = frozenset({192, 193, 194, 516})
_TRANSIENT: Final = frozenset({159, 202, 209, 210, 241, 425})
"""Errors that may pass: too slow, too many queries, network, out of memory."""


class Refused(OSError):
    """The server refuses a query; the message says why, and the next step."""


class Client:
    """Sends queries to one server, from any thread. Connects on first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._idle: list[HTTPConnection] = []
        self.received = 0
        """Bytes received."""

    def close(self) -> None:
        """Close the connections that aren't used."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def query(self, statement: Statement) -> bytes:
        """Return the answer as lines of JSON. Raises `LinkLost` if trying again may help, else `Refused`."""
        try:
            status, data = self._ask(statement)
        except (OSError, HTTPException, zlib.error) as error:
            raise self._explained(error) from None
        if status != 200:
            raise self._refused(status, data)
        if data and not data.endswith(b"}\n"):
            raise self._refused(status, data[-4096:])
        return data

    # ---- HTTP

    def _ask(self, statement: Statement) -> tuple[int, bytes]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        try:
            if connection is not None:
                try:
                    return self._send(connection, statement)
                except (RemoteDisconnected, ConnectionError):  # the server closes connections that rest for seconds
                    connection.close()
            connection = self._connected()
            return self._send(connection, statement)
        except BaseException:
            if connection is not None:
                connection.close()
            raise

    def _send(self, connection: HTTPConnection, statement: Statement) -> tuple[int, bytes]:
        parameters = {f"param_{name}": text_of(value) for name, value in statement.values.items()}
        options, encoded, headers = {**_OPTIONS, **LIMITS}, urlencode(parameters), dict(self._headers())
        text, kind = f"{statement.text}\nFORMAT JSONEachRow", "text/plain; charset=utf-8"
        body = text.encode()
        if len(encoded) > _LONGEST_URL:
            body, kind = _form({"query": text, **parameters})
            encoded = ""
        path = "?".join((self._path(connection), "&".join(filter(None, (urlencode(options), encoded)))))
        connection.request("POST", path, body, {**headers, "Content-Type": kind})
        with connection.getresponse() as answer:
            data = answer.read()
            self.received += len(data)
            status, rests = answer.status, not answer.will_close
            if answer.getheader("Content-Encoding") == "gzip":
                data = zlib.decompress(data, zlib.MAX_WBITS | 16)
            if status != 200:
                data = _code(answer) + data
        if rests:
            with self._lock:
                self._idle.append(connection)
        else:
            connection.close()
        return status, data

    def _connected(self) -> HTTPConnection:
        """Return a new connection: direct, or through the proxy of the environment."""
        database = self._database
        scheme, made = ("https", HTTPSConnection) if database.secure else ("http", HTTPConnection)
        proxy = "" if proxy_bypass(database.host) else getproxies().get(scheme, "")
        there = urlsplit(proxy if "://" in proxy else f"//{proxy}")
        host, port = (there.hostname, there.port or 80) if there.hostname else (database.host, database.port)
        options: dict[str, Any] = {"context": ssl.create_default_context()} if database.secure else {}
        connection = made(host, port, timeout=CONNECT_SECONDS, **options)
        if there.hostname and database.secure:
            connection.set_tunnel(database.host, database.port)
        connection.connect()
        connection.sock.settimeout(QUERY_SECONDS + CONNECT_SECONDS)
        return connection

    def _path(self, connection: HTTPConnection) -> str:
        """The path of a request; a proxy gets the whole URL."""
        database = self._database
        if database.secure or (connection.host, connection.port) == (database.host, database.port):
            return "/"
        return f"http://{_bracketed(database.host)}:{database.port}/"

    def _headers(self) -> dict[str, str]:
        user, password = credentials(self._database)
        login = b64encode(f"{user}:{password}".encode()).decode()
        return {"Authorization": f"Basic {login}", "Accept-Encoding": "gzip", "User-Agent": "tracetui"}

    # ---- errors

    def _refused(self, status: int, data: bytes) -> OSError:
        """Return an answer that is an error as a sentence. The server's own text may quote the query and the login."""
        database = self._database
        found = _CODE.search(data.decode(errors="replace"))
        code = int(found[1]) if found is not None else 0
        if code in _NO_LOGIN or (not code and status in (401, 403)):
            user = credentials(database)[0]
            return Refused(
                f"{database.server} refuses the user {user!r}; set {PASSWORD}, or name another: "
                f"clickhouse://USER@{database.host}/{database.name}"
            )
        if code:
            reason = _REFUSED.get(code, f"ClickHouse error {code}; see the server's log")
            made = LinkLost if code in _TRANSIENT else Refused
            return made(f"{database.server}/{database.name}: {reason}")
        if status == 200:
            return LinkLost(f"{database.server} sent half an answer")
        return LinkLost(f"{database.server} answers with HTTP status {status}; is it the HTTP port of ClickHouse?")

    def _explained(self, error: Exception) -> OSError:
        """Return an error of the connection as a sentence."""
        server = self._database.server
        if isinstance(error, ssl.SSLCertVerificationError):
            return Refused(f"{server} has no valid certificate; set SSL_CERT_FILE to that of its authority")
        if isinstance(error, ssl.SSLError):
            return Refused(f"{server} doesn't speak TLS as expected; is it the HTTPS port of ClickHouse?")
        if isinstance(error, TimeoutError):
            return LinkLost(f"{server} doesn't answer in time")
        if isinstance(error, ConnectionRefusedError | socket.gaierror):
            return LinkLost(f"can't reach {server}; is it the HTTP port of ClickHouse?")
        return LinkLost(f"{server} broke the connection ({type(error).__name__})")


def text_of(value: Any) -> str:
    """A value as the text of a parameter."""
    if isinstance(value, list):
        return f"[{','.join(_quoted(one) for one in value)}]"
    return _escaped(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return f"'{_escaped(text)}'"


def _escaped(text: str) -> str:
    for character, escape in (("\\", "\\\\"), ("'", "\\'"), ("\t", "\\t"), ("\n", "\\n")):
        text = text.replace(character, escape)
    return text


def _form(fields: dict[str, str]) -> tuple[bytes, str]:
    """Fields as the body of a form, and its type."""
    boundary = secrets.token_hex(16)
    parts = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{quote(name)}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    return f"{''.join(parts)}--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _code(answer: HTTPResponse) -> bytes:
    """The server's code of an error, as its text has it."""
    code = answer.getheader("X-ClickHouse-Exception-Code", "")
    return f"Code: {code}. ".encode() if code.isdecimal() else b""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

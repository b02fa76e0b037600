"""A connection to a ClickHouse server: read only, within limits. The only code that imports ``clickhouse_connect``."""

from __future__ import annotations

import logging
import os
import re
from threading import Lock
from typing import TYPE_CHECKING, Final

from tracetui.errors import NothingReadable
from tracetui.sources.base import LinkLost
from tracetui.sources.clickhouse.sql import Statement
from tracetui.sources.clickhouse.url import PASSWORD, Database, credentials

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client as HttpClient

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
    "wait_end_of_query": 1,  # else an error that comes late would follow rows, with status 200
}
_CODE: Final = re.compile(r"\b[Cc]ode: (\d+)")
_STATUS: Final = re.compile(r"\bstatus[ :=]+(\d{3})\b")
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
        self._client: HttpClient | None = None
        self.received = 0
        """Bytes received."""

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def query(self, statement: Statement) -> bytes:
        """Return the answer as lines of JSON. Raises `LinkLost` if trying again may help, else `Refused`."""
        client = self._connected()
        try:
            data: bytes = client.raw_query(
                statement.text, parameters=statement.values, settings=dict(LIMITS), fmt="JSONEachRow"
            )
        except Exception as error:  # of the client, of urllib3 below it, or of the socket
            raise self._explained(error) from None
        if data and not data.endswith(b"}\n"):
            raise self._explained(OSError(data[-4096:].decode(errors="replace")))
        self.received += len(data)
        return data

    def _connected(self) -> HttpClient:
        with self._lock:
            if self._client is None:
                try:
                    from clickhouse_connect import common, get_client
                except ImportError:
                    message = "reading ClickHouse needs a package; run `pip install 'tracetui[clickhouse]'`"
                    raise NothingReadable(message) from None
                common.set_setting("invalid_setting_action", "send")
                for name in ("clickhouse_connect", "urllib3"):  # they would write over the screen
                    logging.getLogger(name).addHandler(logging.NullHandler())
                    logging.getLogger(name).propagate = False
                database = self._database
                user, password = credentials(database)
                try:
                    self._client = get_client(
                        host=database.host,
                        port=database.port,
                        username=user,
                        password=password,
                        database="system",  # which every server has; statements name theirs
                        secure=database.secure,
                        verify=True,
                        ca_cert=os.environ.get("SSL_CERT_FILE"),
                        connect_timeout=CONNECT_SECONDS,
                        send_receive_timeout=QUERY_SECONDS + CONNECT_SECONDS,
                        client_name="tracetui",
                        query_retries=0,
                        autogenerate_session_id=False,
                        form_encode_query_params=True,  # many ids are longer than the URLs that proxies accept
                    )
                except Exception as error:
                    raise self._explained(error) from None
            return self._client

    def _explained(self, error: Exception) -> OSError:
        """Return the error as a sentence. The client's own texts may quote the query and the login."""
        database, text = self._database, f"{error} {error.__cause__ or ''} {error.__context__ or ''}"
        found = _CODE.search(text)
        code = int(found[1]) if found is not None else 0
        if code in _NO_LOGIN:
            user = credentials(database)[0]
            return Refused(
                f"{database.server} refuses the user {user!r}; set {PASSWORD}, or name another: "
                f"clickhouse://USER@{database.host}/{database.name}"
            )
        if code:
            reason = _REFUSED.get(code, f"ClickHouse error {code}; see the server's log")
            made = LinkLost if code in _TRANSIENT else Refused
            return made(f"{database.server}/{database.name}: {reason}")
        if "certificate" in text.lower():
            return Refused(f"{database.server} has no valid certificate; set SSL_CERT_FILE to that of its authority")
        if "SSLError" in text:
            return Refused(f"{database.server} doesn't speak TLS as expected; is it the HTTPS port of ClickHouse?")
        if (status := _STATUS.search(text)) is not None:
            return LinkLost(
                f"{database.server} answers with HTTP status {status[1]}; is it the HTTP port of ClickHouse?"
            )
        if "IncompleteRead" in text:
            return LinkLost(f"{database.server} sent half an answer")
        if isinstance(error, TimeoutError) or "timed out" in text.lower():
            return LinkLost(f"{database.server} doesn't answer in time")
        if "refused" in text.lower() or "NewConnection" in text or "NameResolution" in text:
            return LinkLost(f"can't reach {database.server}; is it the HTTP port of ClickHouse?")
        return LinkLost(f"{database.server} broke the connection ({type(error).__name__})")

"""The real engine behind its HTTP interface, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.run import Cli
from tests.stores import exporter
from tracetui.analysis import prices

_numbers = count(1)


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._process = process
        self.port = int(process.stdout.readline())

    def send(self, sql: str) -> bytes:
        """Run a statement."""
        try:
            with urlopen(Request(f"http://127.0.0.1:{self.port}/", sql.encode()), timeout=120) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from None

    def get(self, path: str) -> bytes:
        """Ask for anything but a query."""
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return bytes(answer.read())

    def fault(self, kind: str = "") -> None:
        """Make the next answers fail; nothing: no longer."""
        self.get(f"/fault?kind={kind}")

    def log(self) -> list[dict[str, Any]]:
        """The queries since the last call."""
        found: list[dict[str, Any]] = json.loads(self.get("/log"))
        return found

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


class Store:
    """A database with the exporter's tables."""

    def __init__(self, server: Server, name: str, *, typed: bool) -> None:
        self.server, self.name, self.typed = server, name, typed
        self.url = f"clickhouse://127.0.0.1:{server.port}/{name}"
        for statement in exporter.tables(name, typed=typed):
            server.send(statement)

    def write(self, requests: Iterable[dict[str, Any]]) -> None:
        """Write requests of OTLP JSON as the exporter does."""
        self.insert([row for request in requests for row in exporter.rows(request, typed=self.typed)])

    def insert(self, rows: list[dict[str, Any]]) -> None:
        """Insert rows."""
        self.server.send(exporter.insert(self.name, rows))


def start(folder: Path) -> Server:
    """Start a server with its data in a folder."""
    script = Path(__file__).with_name("engine.py")
    return Server(subprocess.Popen([sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, text=True))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests; each makes its own database."""
    for name in ("chdb", "clickhouse_connect"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed: python3 dev.py stores")
    running = start(tmp_path_factory.mktemp("clickhouse"))
    yield running
    running.stop()


@pytest.fixture(params=["map", "json"])
def store(request: pytest.FixtureRequest, server: Server) -> Store:
    """An empty database in each variant of the schema."""
    return make(server, typed=request.param == "json")


@pytest.fixture
def map_store(server: Server) -> Store:
    """An empty database with attributes as ``Map``."""
    return make(server)


def make(server: Server, *, typed: bool = False) -> Store:
    """Make an empty database."""
    server.fault()
    return Store(server, f"otel{next(_numbers)}", typed=typed)


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line."""
    return Cli(capsysbinary)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings or passwords of the user's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(prices.SWITCH, "off")
    for name in ("CLICKHOUSE_USER", "CLICKHOUSE_PASSWORD", "NETRC", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)

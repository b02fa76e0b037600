"""The real engine behind its HTTP interface, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from ipaddress import ip_address
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

    pem: Path
    """Its certificate."""

    def __init__(self, process: subprocess.Popen[str], *, tls: bool) -> None:
        assert process.stdout is not None
        self._process = process
        self.tls_port = int(process.stdout.readline()) if tls else 0
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
        entries: list[dict[str, Any]] = json.loads(self.get("/log"))
        return entries

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


def start(folder: Path, pem: Path | None = None) -> Server:
    """Start a server with its data in a folder; also with TLS if there is a certificate, with its key in one file."""
    command = [sys.executable, str(Path(__file__).with_name("engine.py")), str(folder), *([str(pem)] if pem else [])]
    return Server(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), tls=pem is not None)


def certificate(pem: Path, host: str) -> None:
    """Write a self-signed certificate for a host, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    pem.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of this folder; each makes its own database. It takes 3 % of a core while nobody asks."""
    for name in ("chdb", "cryptography"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed: python3 dev.py stores")
    folder = tmp_path_factory.mktemp("clickhouse")
    certificate(folder / "server.pem", "127.0.0.1")
    running = start(folder / "data", folder / "server.pem")
    running.pem = folder / "server.pem"
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
    for name in ("CLICKHOUSE_USER", "CLICKHOUSE_PASSWORD", "NETRC", "SSL_CERT_FILE", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)

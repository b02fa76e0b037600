"""Servers that are no object store: endless, of an absurd length, or silent. Each is one sentence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cli.run import Cli
from tests.sources.cloud import DATE
from tests.sources.s3 import KEYS
from tests.sources.test_cloud import forget_credentials
from tracetui.sources import bucket, bucket_process, objects
from tracetui.sources.base import LinkLost
from tracetui.sources.bucket import Bucket
from tracetui.sources.objects import ObjectSource

PIECE = b" " * (1 << 20)


class HostileStore:
    """A server that gives one kind of answer to everything."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.requests = 0
        self.stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        """End it."""
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: HostileStore

    def log_message(self, *_: Any) -> None:
        """Stay quiet."""

    def do_GET(self) -> None:
        self.store.requests += 1
        try:
            self._answer(self.store.kind)
        except OSError:
            self.close_connection = True  # the client has left

    do_HEAD = do_GET

    def _answer(self, kind: str) -> None:
        listing = "list-type" in self.path
        if kind.endswith("pages") and listing:
            self._page(kind)
            return
        self.send_response(404 if kind == "long error" else 206 if not listing else 200)
        self.send_header("Last-Modified", DATE)
        self.send_header("ETag", '"x"')
        self.send_header("Connection", "close")
        self.close_connection = True
        if not listing and self.command == "GET":
            self.send_header("Content-Range", f"bytes 0-9/{10**12}")
        if kind != "endless":
            self.send_header("Content-Length", str(10**12))
        self.end_headers()
        while self.command == "GET" and not self.store.stopped.is_set() and kind != "silent":
            self.wfile.write(PIECE)
        if kind == "silent":
            self.store.stopped.wait(60)

    def _page(self, kind: str) -> None:
        number = self.store.requests
        keys = [] if kind == "empty pages" else [f"runs/{number:06}-{i:03}.json" for i in range(1000)]
        listed = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-11-02T10:00:00.000Z</LastModified>"
            f'<ETag>"x"</ETag><Size>2</Size></Contents>'
            for key in keys
        )
        token = f"<NextContinuationToken>{number}</NextContinuationToken>"
        data = f"<ListBucketResult>{listed}{token}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def hostile_store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HostileStore]:
    """A server of the kind that the test names, and smaller limits."""
    running = HostileStore(request.param)
    forget_credentials(monkeypatch, tmp_path_factory.mktemp("home"))
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": running.url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(bucket, "_RETRIES", 0)
    monkeypatch.setattr(bucket_process, "MEMORY", 160 << 20)
    monkeypatch.setattr(bucket_process, "ANSWER_SECONDS", 4.0)
    monkeypatch.setattr(bucket_process, "FOLDER_SECONDS", 2.0)
    monkeypatch.setattr(bucket_process, "MAX_PAGES", 3)
    yield running
    running.stop()


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line."""
    return Cli(capsysbinary)


@pytest.mark.parametrize("hostile_store", ["long", "endless", "long error", "silent", "empty pages"], indirect=True)
def test_a_command_ends_with_one_sentence(hostile_store: HostileStore, cli: Cli) -> None:
    result = cli("ls", "s3://traces/runs")
    assert result.status == 1
    assert result.err.startswith("tracetui: ")
    assert result.err.count("\n") == 1
    assert "s3://traces" in result.err


@pytest.mark.parametrize("hostile_store", ["long", "endless", "long error", "silent"], indirect=True)
def test_every_request_is_bounded(hostile_store: HostileStore) -> None:
    source = ObjectSource(Bucket("s3", "traces"))
    requests = (
        lambda: list(source.walk("s3://traces/runs")),
        lambda: source.list_now("s3://traces/runs"),
        lambda: source.open("s3://traces/a").read(0, 10),
    )
    for request in requests:
        with pytest.raises(OSError, match="s3://traces"):
            request()
    source.close()


@pytest.mark.parametrize("hostile_store", ["endless pages"], indirect=True)
def test_a_listing_ends_after_so_many_pages(hostile_store: HostileStore) -> None:
    source = ObjectSource(Bucket("s3", "traces"))
    *entries, last = source.walk("s3://traces/runs")
    source.close()
    assert len(entries) == 3 * bucket.PAGE
    assert last.failed
    assert last.skipped == "more than 3,000 objects below s3://traces/runs; name a longer prefix"


@pytest.mark.parametrize("hostile_store", ["endless pages", "empty pages"], indirect=True)
def test_a_folder_without_an_end_is_given_up(hostile_store: HostileStore) -> None:
    source = ObjectSource(Bucket("s3", "traces"))
    with pytest.raises(LinkLost, match=r"s3://traces doesn't answer in time|takes more than"):
        source.list_now("s3://traces/runs")
    source.close()


@pytest.mark.parametrize("hostile_store", ["long"], indirect=True)
def test_the_bucket_is_read_again_after_a_hostile_answer(hostile_store: HostileStore) -> None:
    source = ObjectSource(Bucket("s3", "traces"))
    with pytest.raises(LinkLost, match=r"claims a size that can't be read|takes more than"):
        next(source.walk("s3://traces/runs"))
    hostile_store.kind = "endless pages"
    assert next(source.walk("s3://traces/runs")).path.startswith("s3://traces/runs/")
    source.close()


@pytest.mark.parametrize("hostile_store", ["long"], indirect=True)
def test_a_database_of_an_absurd_size_is_not_downloaded(hostile_store: HostileStore) -> None:
    source = ObjectSource(Bucket("s3", "traces"))
    assert source.stat("s3://traces/a.db").size > objects.MAX_DATABASE
    with pytest.raises(OSError, match="a database of more than 4 GiB isn't downloaded"):
        source.copy("s3://traces/a.db")
    source.close()


def test_a_refused_connection_is_tried_again_for_15_seconds() -> None:
    """The number of attempts is not what ends them: the waits before them take longer than 15 s."""
    _, longest = bucket._BACKOFF_SECONDS
    assert bucket._RETRY_SECONDS == 15
    assert bucket._RETRIES * longest / 4 > bucket._RETRY_SECONDS

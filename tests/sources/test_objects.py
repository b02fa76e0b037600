"""Reading from an object store: a real S3 server on loopback."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Final

import obstore
import pytest
from msgspec.structs import replace
from obstore.store import S3Store

from tests.cli.run import Cli, write_traces
from tests.shared import ROOT, SEARCHES
from tests.sources.s3 import KEYS, S3, missing, upload
from tracetui.errors import NothingReadable, UsageError
from tracetui.live.load import Reader, read_run
from tracetui.live.scan import ScannedFile, scan
from tracetui.live.watch import Watch
from tracetui.model import RunRef
from tracetui.sources import local, objects
from tracetui.sources.base import LinkLost, Source, Stat
from tracetui.sources.bucket import Bucket, join, parent, parse_bucket
from tracetui.sources.local import LocalSource
from tracetui.sources.locations import open_source
from tracetui.sources.objects import BLOCK, BlockCache, ObjectSource

served = pytest.mark.skipif(bool(missing()), reason=missing())
CASES: Final = ROOT / "tests" / "formats"


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    s3 = S3()
    yield s3
    s3.stop()


@pytest.fixture
def store(server: S3, monkeypatch: pytest.MonkeyPatch) -> S3Store:
    """An empty bucket ``traces``, and an environment that leads to its server."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server.bucket("traces")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line."""
    monkeypatch.setenv("PAPRIKA_TRACE_DIR", str(tmp_path / "nothing"))
    return Cli(capsysbinary)


def scanned(source: Source, root: str) -> dict[str, ScannedFile]:
    return {file.path.removeprefix(root): file for file in scan(source, [root], deep=True)}


@served
@pytest.mark.search
def test_a_bucket_is_read_like_a_directory(store: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases of all formats side by side, each a folder of its own: all of them, or in the suite the largest of each.

    Nor are all bodies loaded there: each is a request.
    """
    every = 1 if SEARCHES else 10
    folder = tmp_path / "here"
    for module in (local, objects):  # however long this takes, the copies are as new as the objects
        monkeypatch.setattr(module, "MOVING_SECONDS", inf)
    for cases in ([*path.glob("*/input")] for path in sorted(CASES.iterdir())):
        most_files = sorted(cases, key=lambda case: len([*case.rglob("*")]), reverse=True)
        for case in most_files if SEARCHES else most_files[:1]:
            shutil.copytree(case, folder / case.relative_to(CASES).parent, copy_function=shutil.copyfile)
    session = next((CASES / "codex_exec" / "turns").rglob("*.jsonl"))
    (folder / "wide.jsonl").write_bytes(session.read_text().encode("utf-16"))
    upload(store, folder, "in/here")
    root = "s3://traces/in/here"
    here = scanned(LocalSource(), str(folder))
    with open_source([root]) as source:
        far = scanned(source, root)
        files = {path: file for path, file in here.items() if not (file.skipped and file.reason == "symbolic link")}
        assert far.keys() == files.keys()
        for path, file in far.items():
            same = here[path]
            assert (file.kind, file.format, file.part_of.removeprefix(root), file.near_miss) == (
                same.kind,
                same.format,
                same.part_of.removeprefix(str(folder)),
                same.near_miss,
            )
            for run, original in zip(file.runs, same.runs, strict=True):
                remote, other = read_run(source, run.ref), read_run(LocalSource(), original.ref)
                assert [replace(span, at=None) for span in remote.spans] == [
                    replace(span, at=None) for span in other.spans
                ]
                for span, local_span in zip(remote.spans[::every], other.spans[::every], strict=True):
                    assert remote.load(span) == other.load(local_span)


@served
def test_commands_take_a_bucket(store: S3Store, tmp_path: Path, cli: Cli) -> None:
    here, place = str(tmp_path / "t"), "s3://traces/t"
    write_traces(tmp_path / "t")
    upload(store, tmp_path / "t", "t")
    for arguments in (
        ("show", f"{place}/paprika/plan-7-again.json", "--json"),
        ("show", f"{place}/daily.db#nightly-1/1"),
        ("show", "plan-7-a", "--trace-dir", place),
        ("triage", place, "--json"),
        ("grep", "weather", place),
    ):
        far, local = cli(*arguments), cli(*(argument.replace(place, here) for argument in arguments))
        assert far.text.replace(place, here) == local.text
        assert (far.status, far.err) == (local.status, local.err)
        assert far.text
    far, local = cli("ls", place, "--json"), cli("ls", here, "--json")
    assert {run["id"] for run in json.loads(far.text)["runs"]} == {run["id"] for run in local.data["runs"]}


@served
def test_a_growing_object_is_followed(store: S3Store) -> None:
    case = ROOT / "tests" / "formats" / "claude_code" / "session" / "input"
    path = next(path for path in sorted(case.rglob("*.jsonl")))
    lines = path.read_bytes().splitlines(keepends=True)
    obstore.put(store, "p/a.jsonl", b"".join(lines[:-3]))
    with open_source(["s3://traces/p"]) as source:
        reader = Reader(source, RunRef("claude-code", "s3://traces/p/a.jsonl"))
        reader.catch_up()
        before = len(reader)
        obstore.put(store, "p/a.jsonl", b"".join(lines))
        reader.catch_up()
        whole = read_run(source, RunRef("claude-code", "s3://traces/p/a.jsonl"))
        assert len(reader) == len(whole.spans) > before
        assert not reader.reset


@served
def test_bodies_take_no_request_for_their_version_unless_the_object_was_replaced(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ROOT / "tests" / "formats" / "claude_code" / "session" / "input"
    log = next(path for path in sorted(case.rglob("*.jsonl"))).read_bytes()
    obstore.put(store, "p/b.jsonl", log)
    source = ObjectSource(Bucket("s3", "traces"))
    run = read_run(source, RunRef("claude-code", "s3://traces/p/b.jsonl"))
    asked: list[str] = []
    stat = ObjectSource.stat

    def counted(source: ObjectSource, path: str) -> Stat:
        asked.append(path)
        return stat(source, path)

    monkeypatch.setattr(ObjectSource, "stat", counted)
    bodies = [run.load(span) for span in run.spans]
    assert run.summary.ref.path not in asked
    obstore.put(store, "p/b.jsonl", log + b'{"type": "summary", "summary": "later"}\n')
    monkeypatch.setattr(source, "_blocks", BlockCache())
    assert [run.load(span) for span in run.spans] == bodies
    assert asked.count(run.summary.ref.path) == 1


@served
def test_changes_are_found_by_listing(store: S3Store) -> None:
    obstore.put(store, "w/a/one.json", b"1")
    obstore.put(store, "w/b/two.json", b"2")
    with open_source(["s3://traces/w"]) as source:
        watch = Watch(source, ["s3://traces/w"])
        assert {change.path for change in watch.sweep()} == {"s3://traces/w/a/one.json", "s3://traces/w/b/two.json"}
        assert watch.sweep() == []
        obstore.put(store, "w/a/one.json", b"3")  # as long, and within the same second
        obstore.delete(store, "w/b/two.json")
        obstore.put(store, "w/c/d/three.json", b"3")
        assert {(change.path, change.entry is None) for change in watch.sweep()} == {
            ("s3://traces/w/a/one.json", False),
            ("s3://traces/w/b/two.json", True),
            ("s3://traces/w/c/d/three.json", False),
        }
        watch.stop()


@served
def test_odd_keys_are_listed_with_a_reason(store: S3Store, server: S3) -> None:
    keys = ("sp ace.json", "h#ash.json", "p%41.json", "é/ü.json", "q?x.json", "star*.json", ".hidden/x/y.json", ".dot")
    for key in keys:
        obstore.put(store, f"o/{key}", b"{}")
    obstore.put(store, "o/back\\slash", b"{}")
    entries = {entry.path: entry for entry in ObjectSource(Bucket("s3", "traces")).walk("s3://traces/o/")}
    assert {path.removeprefix("s3://traces/o/"): entry.skipped for path, entry in entries.items()} == {
        "sp ace.json": None,
        "h#ash.json": None,
        "p%41.json": None,
        "é/ü.json": None,
        "q?x.json": None,
        "star*.json": None,
        ".hidden": "hidden folder, not walked into",
        ".dot": "hidden",
        "back\\slash": "invalid file name",
    }


@served
def test_a_key_that_is_no_path_hides_only_its_siblings(store: S3Store, server: S3) -> None:
    obstore.put(store, "k/good/a.json", b"{}")
    obstore.put(store, "k/bad/b.json", b"{}")
    obstore.put(store, "k/zoo/c.json", b"{}")
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/traces/k/bad/%2E/x", data=b"{}", method="PUT"))
    entries = [(entry.path, entry.failed) for entry in ObjectSource(Bucket("s3", "traces")).walk("s3://traces/k")]
    assert ("s3://traces/k/zoo/c.json", False) in entries
    assert ("s3://traces/k/good/a.json", False) in entries
    assert any(failed and "bad" in path for path, failed in entries)


@served
def test_a_replaced_object_is_not_mixed_with_its_earlier_version(store: S3Store) -> None:
    obstore.put(store, "r/a.json", b"a" * (3 * BLOCK))
    source = ObjectSource(Bucket("s3", "traces"))
    file = source.open("s3://traces/r/a.json")
    assert file.head == b"a" * BLOCK
    obstore.put(store, "r/a.json", b"b" * (3 * BLOCK))
    with pytest.raises(OSError, match="replaced"):
        file.read(2 * BLOCK, 10)
    assert source.open("s3://traces/r/a.json").read(2 * BLOCK, 10) == b"b" * 10
    obstore.put(store, "r/a.json", b"b")
    with pytest.raises(OSError, match=r"replaced|shrank"):
        file.read(BLOCK, 10)


@served
def test_ranges_are_read_and_cached_by_blocks(store: S3Store) -> None:
    data = bytes(range(256)) * 1024  # 256 KiB
    obstore.put(store, "c/a.bin", data)
    source = ObjectSource(Bucket("s3", "traces"))
    file = source.open("s3://traces/c/a.bin")
    assert file.read(BLOCK - 5, 10) == data[BLOCK - 5 : BLOCK + 5]
    assert source.received == 2 * BLOCK
    assert file.read(10, BLOCK) == data[10 : 10 + BLOCK]
    assert source.received == 2 * BLOCK
    assert file.read(len(data) - 3, 100) == data[-3:]
    assert file.read(len(data), 1) == b""
    assert file.read_all() == data
    assert source.received == len(data)


@served
def test_a_batch_is_fetched_when_its_first_file_is_read(store: S3Store) -> None:
    for i in range(5):
        obstore.put(store, f"b/{i}.json", b'{"a": 1}')
    source = ObjectSource(Bucket("s3", "traces"))
    entries = list(source.walk("s3://traces/b"))
    assert source.received == 0
    assert source.open(entries[0].path, entries[0].stat).head == b'{"a": 1}'
    assert source.received == 5 * 8
    assert [source.open(entry.path, entry.stat).read_all() for entry in entries] == [b'{"a": 1}'] * 5
    assert source.received == 5 * 8


@served
def test_a_database_is_read_from_a_private_copy(store: S3Store, tmp_path: Path, cli: Cli) -> None:
    write_traces(tmp_path / "t")
    obstore.put(store, "d/daily.db", (tmp_path / "t" / "daily.db").read_bytes())
    source = ObjectSource(Bucket("s3", "traces"))
    file = source.open("s3://traces/d/daily.db")
    assert file.tables
    with file.database() as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    first = source.copy("s3://traces/d/daily.db")
    assert source.copy("s3://traces/d/daily.db") == first
    assert Path(first).parent.stat().st_mode & 0o777 == 0o700
    source.close()
    assert not Path(first).exists()


@served
def test_a_missing_bucket_or_prefix_is_one_sentence(store: S3Store, cli: Cli) -> None:
    assert cli("ls", "s3://no-such-bucket/x").err.count("\n") == 1
    absent = cli("ls", "s3://traces/nothing/here")
    assert absent.status == 1
    assert "no such object" in absent.err


def test_a_server_that_is_gone_is_one_sentence(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setattr("tracetui.sources.bucket._RETRIES", 0)
        with pytest.raises(NothingReadable, match="cannot reach s3://traces"), open_source(["s3://traces/x"]):
            pass
        result = cli("ls", "s3://traces/x")
        assert result.status == 1
        assert result.err.count("\n") == 1
        assert KEYS["AWS_SECRET_ACCESS_KEY"] not in result.err


def answering(*answers: bytes) -> tuple[str, threading.Thread]:
    """A server that gives these answers, one a connection; returns its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", thread


HEADERS = b'ETag: "x"\r\nLast-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\nConnection: close\r\n'


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", PermissionError, "access to s3://traces denied"),
        (b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n", LinkLost, "cannot read s3://traces"),
        (b"HTTP/1.1 400 Bad\r\nContent-Length: 36\r\n\r\n<Message>wrong \x1b[31mregion</Message> ", OSError, "wrong"),
        (
            b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10\r\n" + HEADERS + b"\r\nhalf",
            OSError,
            "s3://traces",
        ),
    ],
)
def test_bad_answers_become_errors(
    monkeypatch: pytest.MonkeyPatch, answer: bytes, error: type[OSError], message: str
) -> None:
    url, thread = answering(answer)
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tracetui.sources.bucket._RETRIES", 0)
    client = ObjectSource(Bucket("s3", "traces"))._client
    with pytest.raises(error, match=message) as caught:
        client.get("a", 0, 10)
    assert "\x1b" not in str(caught.value)
    thread.join()


@served
def test_many_keys_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    server = S3(keys=1_200)
    try:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        source = ObjectSource(Bucket("s3", "many"))
        entries = source.walk("s3://many/runs")
        first = next(entries)
        assert first.path == "s3://many/runs/000/000000.json"
        assert len(source._batches) == 1000  # only one page has been requested
        assert len({entry.path for entry in entries} | {first.path}) == 1_200
        source.prefetch(["s3://many/runs"])
        folders = source.list("s3://many/runs").folders
        assert len(folders) == 20
        assert [len(source.list(folder).entries) for folder in folders] == [60] * 20
    finally:
        server.stop()


def test_an_address_names_a_bucket_and_a_key() -> None:
    bucket = parse_bucket("s3://traces/a/b.json")
    assert bucket == Bucket("s3", "traces")
    assert bucket.key("s3://traces/a/b.json") == "a/b.json"
    assert bucket.key("s3://traces/") == bucket.key("s3://traces") == ""
    assert join("s3://traces/", "a") == join("s3://traces", "a") == "s3://traces/a"
    assert parent("s3://traces/a/b.json") == "s3://traces/a"
    assert parent("s3://traces/a") == parent("s3://traces") == "s3://traces"
    assert parse_bucket("traces/s3") is None
    assert parse_bucket("box:traces") is None


@pytest.mark.parametrize("word", ["s3://", "s3:///a", "s3://user:password@bucket/a", "gs://a b/c", "az://-x"])
def test_an_invalid_bucket_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="is not a valid bucket name"):
        parse_bucket(word)


def test_without_the_package_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(UsageError, match=r"pip install 'tracetui\[cloud\]'"):
        ObjectSource(Bucket("s3", "traces"))


def test_the_cache_drops_the_least_recently_used_block() -> None:
    cache = BlockCache(2)
    stat = Stat(0, 0, 1, 2)
    cache.put("a", stat, 0, b"a")
    cache.put("b", stat, 0, b"b")
    assert cache.get("a", stat, 0) == b"a"
    cache.put("c", stat, 0, b"c")
    assert (cache.get("a", stat, 0), cache.get("b", stat, 0), cache.get("c", stat, 0)) == (b"a", None, b"c")

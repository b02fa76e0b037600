"""The three object stores through their own clients, against a server that answers as they do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.run import Cli, write_traces
from tests.sources.cloud import CHANGED, PAGE, Cloud
from tracetui.errors import UsageError
from tracetui.sources.base import LinkLost
from tracetui.sources.bucket import SCHEMES, Bucket
from tracetui.sources.objects import BLOCK, ObjectSource

SECRETS = ("a-secret-key-of-tests", "YS1zZWNyZXQta2V5LW9mLXRlc3Rz")


@pytest.fixture(params=SCHEMES)
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    """An empty bucket ``traces`` of each store, and an environment that leads to it and to no other."""
    server = Cloud(request.param)
    forget_credentials(monkeypatch, tmp_path)
    for name, value in server.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tracetui.sources.bucket._RETRIES", 0)
    yield server
    server.stop()


def forget_credentials(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Take all settings of object stores away."""
    monkeypatch.setenv("HOME", str(home))
    for name in [*os.environ]:
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line."""
    monkeypatch.setenv("PAPRIKA_TRACE_DIR", str(tmp_path / "nothing"))
    return Cli(capsysbinary)


def source_of(cloud: Cloud) -> ObjectSource:
    """The source of its bucket."""
    return ObjectSource(Bucket(cloud.scheme, cloud.bucket))


def test_commands_read_a_bucket_like_a_directory(cloud: Cloud, tmp_path: Path, cli: Cli) -> None:
    write_traces(tmp_path / "t")
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            cloud.put(f"p/t/{path.relative_to(tmp_path / 't').as_posix()}", path.read_bytes())
            os.utime(path, (CHANGED, CHANGED))
    place, here = f"{cloud.scheme}://traces/p/t", str(tmp_path / "t")
    for arguments in (
        ("show", f"{place}/paprika/plan-7-again.json", "--json"),
        ("show", f"{place}/daily.db#nightly-1/1"),
    ):
        far, local = cli(*arguments), cli(*(argument.replace(place, here) for argument in arguments))
        assert (far.text.replace(place, here), far.status, far.err) == (local.text, 0, "")
    listed = cli("ls", place, "--json").data["runs"]
    assert {run["id"] for run in listed} == {run["id"] for run in cli("ls", here, "--json").data["runs"]}


def test_many_keys_are_listed_page_by_page(cloud: Cloud) -> None:
    cloud.objects = {f"runs/{i % 100:03}/{i:06}.json": b"{}" for i in range(20 * PAGE)}
    cloud.keys = sorted(cloud.objects)
    root = f"{cloud.scheme}://traces/runs"
    entries = source_of(cloud).walk(root)
    assert next(entries).path == f"{root}/000/000000.json"
    assert len(cloud.requests) <= 3  # the first page, and what is asked for ahead
    assert 1 + sum(1 for _ in entries) == 20 * PAGE
    assert len(cloud.requests) == 20


def test_ranges_are_read(cloud: Cloud) -> None:
    data = bytes(range(256)) * 1024
    cloud.put("a.bin", data)
    file = source_of(cloud).open(f"{cloud.scheme}://traces/a.bin")
    assert file.read(BLOCK - 5, 10) == data[BLOCK - 5 : BLOCK + 5]
    assert file.read(len(data) - 3, 100) == data[-3:]


def test_an_answer_that_is_cut_in_the_middle_is_an_error(cloud: Cloud) -> None:
    cloud.put("a.bin", b"12345678" * BLOCK)
    source = source_of(cloud)
    file = source.open(f"{cloud.scheme}://traces/a.bin")
    assert file.stat.size == 8 * BLOCK
    cloud.cuts = True
    with pytest.raises(OSError, match=f"{cloud.scheme}://traces"):
        file.read(0, BLOCK)
    cloud.cuts = False
    assert file.read(0, 8) == b"12345678"


def test_a_refusal_is_one_sentence_without_the_key(cloud: Cloud, cli: Cli) -> None:
    cloud.denies = True
    refused = cli("ls", f"{cloud.scheme}://traces/a")
    assert refused.status == 1
    assert f"access to {cloud.scheme}://traces denied; check the credentials" in refused.err
    assert refused.err.count("\n") == 1
    assert not any(secret in refused.err for secret in SECRETS)


def test_a_missing_bucket_and_a_missing_key_are_one_sentence(cloud: Cloud, cli: Cli) -> None:
    for place in ("traces/no/such", "no-such-bucket/x"):
        result = cli("ls", f"{cloud.scheme}://{place}")
        assert (result.status, result.err.count("\n")) == (1, 1)


def test_a_store_that_is_gone_is_not_a_missing_object(cloud: Cloud) -> None:
    cloud.put("a", b"1")
    source = source_of(cloud)
    assert source.is_file(f"{cloud.scheme}://traces/a")
    assert not source.is_file(f"{cloud.scheme}://traces/b")
    cloud._server.server_close()
    cloud._server.shutdown()
    with pytest.raises(LinkLost, match=f"{cloud.scheme}://traces"):
        list(source_of(cloud).walk(f"{cloud.scheme}://traces"))


@pytest.mark.parametrize(
    ("scheme", "settings"),
    [("az", {}), ("gs", {"GOOGLE_SERVICE_ACCOUNT": "/no/such/file"}), ("gs", {"GOOGLE_SERVICE_ACCOUNT_KEY": "{"})],
)
def test_wrong_settings_are_named(
    scheme: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forget_credentials(monkeypatch, tmp_path)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=f"cannot open {scheme}://traces: "):
        ObjectSource(Bucket(scheme, "traces"))

"""The SFTP client, against OpenSSH's own server and against bytes that are not SFTP."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.shared import examples
from tracetui.sources.base import LinkLost
from tracetui.sources.sftp import MAX_PACKET, READ_SIZE, WINDOW, Attributes, Channel, Client, Pipes

SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server")
SERVER = next((path for path in SERVERS if os.access(path, os.X_OK)), "")
VERSION = struct.pack(">IBI", 5, 2, 3)
HANDLE, DATA, ATTRIBUTES, NAMES = 102, 103, 105, 104

needs_server = pytest.mark.skipif(not SERVER, reason="there is no sftp-server; Debian's openssh-server brings it")


@pytest.fixture
def client() -> Iterator[Client]:
    """A connection to a real server."""
    with subprocess.Popen(
        [SERVER, "-R"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        pipes = Pipes(process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno())
        for descriptor in pipes:
            os.set_blocking(descriptor, False)
        yield Client(Channel(pipes, "there"))
        process.stdin.close()


@contextmanager
def answers(data: bytes, *, seconds: float = 5.0) -> Iterator[Channel]:
    """The other side has sent `data`, and then closed its end."""
    requests, replies, errors = os.pipe(), os.pipe(), os.pipe()
    descriptors = {*requests, *replies, *errors}
    for descriptor in descriptors:
        os.set_blocking(descriptor, False)
    os.write(replies[1], data)
    for end in (replies[1], errors[1]):
        os.close(end)
        descriptors.remove(end)
    try:
        yield Channel(Pipes(requests[1], replies[0], errors[0]), "there", seconds)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def packet(kind: int, body: bytes, number: int = 4) -> bytes:
    return struct.pack(">IBI", len(body) + 5, kind, number) + body


def string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


@needs_server
@pytest.mark.parametrize("size", [0, 1, READ_SIZE - 1, READ_SIZE, READ_SIZE + 1, READ_SIZE * (WINDOW + 3) + 7])
def test_a_file_is_read_whole(client: Client, tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "f").write_bytes(data)
    handle = client.open(str(tmp_path / "f"))()

    assert client.read(handle, 0, size + 100)() == data
    assert client.read(handle, size // 2, 10)() == data[size // 2 : size // 2 + 10]
    assert client.look_at(handle)().size == size
    client.close(handle)


@needs_server
def test_many_names_are_listed(client: Client, tmp_path: Path) -> None:
    names = {f"run {i} \u00e4.json" for i in range(777)} | {os.fsdecode(b"bad\xff")}
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "below").mkdir()

    entries = dict(names_in(client, str(tmp_path)))

    assert set(entries) == names | {"below"}
    assert entries["below"].is_folder
    assert all(entries[name].is_file for name in names)


@needs_server
def test_a_refusal_has_a_reason(client: Client, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        client.open(str(tmp_path / "none"))()
    with pytest.raises(FileNotFoundError):
        client.look(str(tmp_path / "none"))()
    with pytest.raises(OSError, match=r"the server refuses|no such file"):
        names_in(client, str(tmp_path / "none"))
    (tmp_path / "link").symlink_to(tmp_path)
    assert client.look(str(tmp_path / "link"))().is_link
    assert client.look(str(tmp_path / "link"), follow=True)().is_folder


@pytest.mark.parametrize(
    "greeting",
    [b"", b"Welcome to this machine!\r\n", VERSION[:4], struct.pack(">IBI", 5, 2, 2), struct.pack(">IB", 1, 2) * 9],
)
def test_a_server_without_sftp_is_refused(greeting: bytes) -> None:
    with answers(greeting) as channel, pytest.raises(LinkLost):
        Client(channel)


def names_in(client: Client, path: str) -> list[tuple[str, Attributes]]:
    return list(client.names(client.folder(path)(), path))


def handle_of(client: Client) -> object:
    return client.open("f")()


def data_of(client: Client) -> object:
    return client.read(b"h", 0, 10)()


def attributes_of(client: Client) -> object:
    return client.look("f")()


@pytest.mark.parametrize(
    ("ask", "reply"),
    [
        (handle_of, packet(HANDLE, string(b"x" * 257))),
        (handle_of, packet(HANDLE, struct.pack(">I", 1 << 31))),
        (handle_of, packet(DATA, string(b"x"))),
        (data_of, packet(DATA, string(b"x" * 11))),
        (data_of, packet(DATA, struct.pack(">I", 0xFFFF_FFFF) + b"x")),
        (data_of, struct.pack(">IBI", MAX_PACKET + 1, DATA, 4) + b"x" * 100),
        (data_of, packet(DATA, string(b"x"), number=99)),
        (attributes_of, packet(ATTRIBUTES, struct.pack(">II", 0x8000_0000, 0xFFFF_FFFF))),
        (attributes_of, packet(ATTRIBUTES, struct.pack(">I", 1))),
        (attributes_of, packet(NAMES, b"")),
        (attributes_of, packet(101, b"")),
    ],
)
def test_lengths_are_not_believed(ask: Callable[[Client], object], reply: bytes) -> None:
    with answers(VERSION + reply) as channel, pytest.raises(LinkLost):
        ask(Client(channel))


def test_a_silent_side_is_given_up() -> None:
    requests, replies, errors = os.pipe(), os.pipe(), os.pipe()
    for descriptor in (*requests, *replies, *errors):
        os.set_blocking(descriptor, False)

    with pytest.raises(LinkLost, match="no answer"):
        Client(Channel(Pipes(requests[1], replies[0], errors[0]), "there", 0.05))

    for descriptor in (*requests, *replies, *errors):
        os.close(descriptor)


@settings(max_examples=examples(150))
@given(some.lists(some.binary(max_size=80), max_size=4), some.sampled_from([101, HANDLE, DATA, NAMES, ATTRIBUTES]))
def test_any_bytes_are_an_answer_or_an_error(bodies: list[bytes], kind: int) -> None:
    data = b"".join(packet(kind, body, number) for number, body in enumerate(bodies, 4))
    for ask in (handle_of, data_of, attributes_of, lambda client: names_in(client, "d")):
        with answers(VERSION + data) as channel, suppress(OSError):
            ask(Client(channel))

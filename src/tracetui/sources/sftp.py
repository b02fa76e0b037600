"""A read-only SFTP client (version 3) over the pipes of a process. The server is not trusted.

Independent requests are sent at once: a request method returns a function that waits for the answer. There is no code
for requests that write, rename or remove.

There is no reader thread: one of the threads that wait for an answer reads, and hands the others theirs. Threads share
one connection, and a long transfer delays another thread's small request by no more than the requests in flight.
"""

from __future__ import annotations

import os
import select
import stat as modes
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition, Lock
from typing import Final, NamedTuple

from tracetui.sources.base import LinkLost, check_path

READ_SIZE: Final = 32_768
"""Bytes of one READ; every server supports that many."""
WINDOW: Final = 16
"""Requests in flight per caller: half a megabyte per round trip."""
MAX_HANDLE: Final = 256
MAX_NAMES: Final = 1_000_000
"""Names to accept of one folder."""

_INIT, _OPEN, _CLOSE, _READ, _LSTAT, _FSTAT, _OPENDIR, _READDIR, _STAT = 1, 3, 4, 5, 7, 8, 11, 12, 17

_VERSION, _STATUS, _HANDLE, _DATA, _NAME, _ATTRS = 2, 101, 102, 103, 104, 105

_EOF, _NO_SUCH_FILE, _PERMISSION_DENIED = 1, 2, 3

_SIZE, _OWNER, _PERMISSIONS, _TIMES, _EXTENDED = 1, 2, 4, 8, 0x8000_0000

_FOR_READING: Final = struct.pack(">II", 1, 0)
REPLY_SECONDS: Final = 15.0
"""Longest wait for an answer while nothing at all arrives."""
PATIENCE_SECONDS: Final = 60.0
"""Longest wait for an answer while others get theirs."""
MAX_PACKET: Final = (1 << 18) + 1024
"""Longest packet of OpenSSH. Anything longer is not SFTP."""
STDERR_BYTES: Final = 8192
GREETING: Final = 3
"""The version, which both greetings carry in place of a request number."""
_U32: Final = struct.Struct(">I")
_CHUNK: Final = 1 << 16


class Attributes(NamedTuple):
    """Attributes of a file. Times are whole seconds; missing values are 0."""

    size: int
    mode: int
    mtime: int

    @property
    def is_file(self) -> bool:
        return modes.S_ISREG(self.mode)

    @property
    def is_folder(self) -> bool:
        return modes.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return modes.S_ISLNK(self.mode)


class Client:
    """One connection. Thread-safe; all methods raise `LinkLost` once it breaks."""

    def __init__(self, channel: Channel) -> None:
        """Negotiate the version."""
        self.channel = channel
        if channel.greet(_INIT) != _VERSION:
            raise channel.fail("not an SFTP server")

    def look(self, path: str, *, follow: bool = False) -> Callable[[], Attributes]:
        """Request the attributes of a path (of a link itself, unless `follow`)."""
        number = self.channel.send(_STAT if follow else _LSTAT, _string(_bytes(path)))
        return lambda: self._attributes(number, path)

    def look_at(self, handle: bytes) -> Callable[[], Attributes]:
        """Request the attributes of an open file."""
        number = self.channel.send(_FSTAT, _string(handle))
        return lambda: self._attributes(number, "")

    def open(self, path: str) -> Callable[[], bytes]:
        """Request to open a file for reading; returns its handle."""
        number = self.channel.send(_OPEN, _string(_bytes(path)) + _FOR_READING)
        return lambda: self._handle(number, path)

    def close(self, handle: bytes) -> None:
        """Close a handle without waiting for the answer."""
        self.channel.forget(self.channel.send(_CLOSE, _string(handle)))

    def read(self, handle: bytes, offset: int, size: int) -> Callable[[], bytes]:
        """Request `size` bytes; returns fewer only at the end of the file."""
        parts = [
            (at, min(READ_SIZE, offset + size - at), self._send_read(handle, at, min(READ_SIZE, offset + size - at)))
            for at in range(offset, min(offset + size, offset + WINDOW * READ_SIZE), READ_SIZE)
        ]
        return lambda: b"".join(self._parts(handle, deque(parts), offset + size))

    def folder(self, path: str) -> Callable[[], bytes]:
        """Request to open a folder; returns its handle, which `names` uses and closes."""
        number = self.channel.send(_OPENDIR, _string(_bytes(path)))
        return lambda: self._handle(number, path)

    def names(self, handle: bytes, path: str) -> Iterator[tuple[str, Attributes]]:
        """Yield the names in an open folder, without ``.`` and ``..``. Sends requests at once; consume all of it."""
        return self._names_in(handle, path, deque(self._send_readdir(handle) for _ in range(2)))

    def _names_in(self, handle: bytes, path: str, asked: deque[int]) -> Iterator[tuple[str, Attributes]]:
        count, ahead = 0, len(asked)
        try:
            while page := self._names(asked.popleft(), path):
                count += len(page)
                if count > MAX_NAMES:
                    raise OSError(f"more than {MAX_NAMES} names in {path}")
                yield from ((name, attributes) for name, attributes in page if name not in (".", ".."))
                ahead = min(ahead * 2, WINDOW)  # a folder of thousands must not cost one round trip per hundred names
                asked.extend(self._send_readdir(handle) for _ in range(ahead - len(asked)))
        finally:  # pending requests would only report the end
            for number in asked:
                self.channel.forget(number)
            if not self.channel.broken:
                self.close(handle)

    def _send_readdir(self, handle: bytes) -> int:
        return self.channel.send(_READDIR, _string(handle))

    def _send_read(self, handle: bytes, offset: int, size: int) -> int:
        return self.channel.send(_READ, _string(handle) + struct.pack(">QI", offset, size))

    def _parts(self, handle: bytes, asked: deque[tuple[int, int, int]], end: int) -> Iterator[bytes]:
        """Yield the answers to READs in order, sending further ones as they arrive."""
        following = asked[-1][0] + asked[-1][1] if asked else end
        try:
            while asked:
                at, size, number = asked.popleft()
                data = self._data(number, size)
                yield data
                if not data:
                    return
                if len(data) < size:  # a short answer is not yet the end
                    rest = at + len(data), size - len(data)
                    asked.appendleft((*rest, self._send_read(handle, *rest)))
                elif following < end:
                    size = min(READ_SIZE, end - following)
                    asked.append((following, size, self._send_read(handle, following, size)))
                    following += size
        finally:
            for _, _, number in asked:
                self.channel.forget(number)

    # ---- answers

    def _attributes(self, number: int, path: str) -> Attributes:
        return self._reply(number, _ATTRS, path).attributes()

    def _handle(self, number: int, path: str) -> bytes:
        handle = self._reply(number, _HANDLE, path).string()
        if len(handle) > MAX_HANDLE:
            raise self.channel.fail("not an SFTP server: a handle is too long")
        return handle

    def _data(self, number: int, size: int) -> bytes:
        fields = self._reply(number, _DATA, "", end=True)
        data = fields.string() if fields.remaining else b""
        if len(data) > size:
            raise self.channel.fail("not an SFTP server: more data than requested")
        return data

    def _names(self, number: int, path: str) -> list[tuple[str, Attributes]]:
        fields = self._reply(number, _NAME, path, end=True)
        return fields.names() if fields.remaining else []

    def _reply(self, number: int, expected: int, path: str, *, end: bool = False) -> _Fields:
        """Return the fields of an answer; empty if `end` is acceptable and was reached."""
        kind, body = self.channel.wait(number)
        fields = _Fields(body, self.channel)
        if kind == expected:
            return fields
        if kind != _STATUS:
            raise self.channel.fail(f"not an SFTP server: packet {kind} instead of {expected}")
        code = fields.number()
        if code == _EOF and end:
            return _Fields(b"", self.channel)
        raise _error(code, fields.string().decode("utf-8", "replace") if fields.remaining else "", path)


class _Fields:
    """Parses the body of a packet field by field, never past its end."""

    def __init__(self, body: bytes, channel: Channel) -> None:
        self._body = body
        self._at = 0
        self._channel = channel

    @property
    def remaining(self) -> int:
        return len(self._body) - self._at

    def _take(self, size: int) -> bytes:
        if size > self.remaining:
            raise self._channel.fail("not an SFTP server: a packet ends too early")
        self._at += size
        return self._body[self._at - size : self._at]

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self._take(size), "big")

    def string(self) -> bytes:
        return self._take(self.number())

    def attributes(self) -> Attributes:
        flags = self.number()
        size = self.number(8) if flags & _SIZE else 0
        if flags & _OWNER:
            self._take(8)
        mode = self.number() if flags & _PERMISSIONS else 0
        times = self.number(8) if flags & _TIMES else 0
        for _ in range(self.number() if flags & _EXTENDED else 0):
            self.string()
            self.string()
        return Attributes(size, mode, times & 0xFFFF_FFFF)

    def names(self) -> list[tuple[str, Attributes]]:
        names = []
        for _ in range(self.number()):
            name = self.string()
            self.string()  # a line as `ls -l` prints it
            names.append((name.decode("utf-8", "surrogateescape"), self.attributes()))
        return names


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _bytes(path: str) -> bytes:
    check_path(path)
    return path.encode("utf-8", "surrogateescape")


def _error(code: int, message: str, path: str) -> OSError:
    if code == _NO_SUCH_FILE:
        return FileNotFoundError(2, "no such file on the server", path)
    if code == _PERMISSION_DENIED:
        return PermissionError(13, "permission denied on the server", path)
    return OSError(f"the server refuses: {message[:200] or f'error {code}'}")


class ProtocolError(Exception):
    """The server sent something that is not SFTP."""


class Pipes(NamedTuple):
    """The non-blocking pipes of a process that speaks SFTP."""

    requests: int
    replies: int
    errors: int


class Channel:
    """Matches numbered answers to requests. Thread-safe; all waiting threads raise `LinkLost` once it breaks."""

    def __init__(self, pipes: Pipes, who: str, seconds: float = REPLY_SECONDS) -> None:
        """`who` names the other side in errors."""
        self._pipes = pipes
        self._who = who
        self._seconds = seconds
        self._turn = Condition()
        self._reading = False
        self._replies: dict[int, tuple[int, bytes] | None] = {}
        self._unwanted: set[int] = set()
        self._number = GREETING
        self._writing = Lock()
        self._buffer = bytearray()
        self._heard = time.monotonic()
        self._stderr_tail = b""
        self.received = 0
        """Bytes received so far."""
        self.broken = ""
        """Why the connection is down; empty while it is up."""

    def fail(self, reason: str) -> LinkLost:
        """Mark the connection as broken; return the exception to raise."""
        with self._turn:
            self.broken = self.broken or reason
            self._turn.notify_all()
        return self._lost()

    def _lost(self) -> LinkLost:
        return LinkLost(f"the connection to {self._who} is lost: {self.broken}")

    def is_up(self) -> bool:
        """True unless the process has closed its end."""
        with self._turn:
            if self.broken:
                return False
            poll = select.poll()
            poll.register(self._pipes.replies, select.POLLIN)
            return not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def retire(self) -> None:
        """Wait until no thread uses the pipes, so that they can be closed. The process must have ended."""
        self.fail("the connection was closed")
        with self._writing, self._turn:
            while self._reading:
                self._turn.wait(REPLY_SECONDS)

    @property
    def stderr_tail(self) -> bytes:
        """The end of the standard error output."""
        self._take_errors()
        return self._stderr_tail

    def greet(self, kind: int) -> int:
        """Send the greeting; return the kind of the answer."""
        with self._turn:
            self._replies[GREETING] = None
        self._write(_packet(kind, GREETING, b""))
        return self.wait(GREETING)[0]

    def send(self, kind: int, body: bytes) -> int:
        """Send a request; return its number, for `wait` or `forget`."""
        with self._turn:
            if self.broken:
                raise self._lost()
            self._number = number = self._number + 1 & 0xFFFF_FFFF
            self._replies[number] = None
        self._write(_packet(kind, number, body))
        return number

    def forget(self, number: int) -> None:
        """Ignore this answer."""
        with self._turn:
            if self._replies.pop(number, None) is None:
                self._unwanted.add(number)

    def _write(self, data: bytes) -> None:
        """Write a request. Requests are short and few: the pipe fills up only on a stuck connection."""
        with self._writing:
            if self.broken:
                raise self._lost()
            deadline = time.monotonic() + self._seconds
            unsent = memoryview(data)
            while unsent:
                try:
                    unsent = unsent[os.write(self._pipes.requests, unsent) :]
                except BlockingIOError as error:
                    rest = deadline - time.monotonic()
                    if rest <= 0 or not _ready(self._pipes.requests, select.POLLOUT, rest):
                        raise self.fail("cannot send") from error
                except OSError as error:
                    raise self.fail("the connection was closed") from error

    def wait(self, number: int) -> tuple[int, bytes]:
        """Return kind and body of an answer, read by this thread or by another waiting one."""
        began = time.monotonic()
        while True:
            with self._turn:
                while True:
                    reply = self._replies.get(number)
                    if reply is not None:
                        del self._replies[number]
                        return reply
                    if self.broken:
                        raise self._lost()
                    now = time.monotonic()
                    rest = min(max(began, self._heard) + self._seconds, began + PATIENCE_SECONDS) - now
                    if rest <= 0:
                        self.broken = f"no answer within {now - max(began, self._heard):.0f} s"
                        self._turn.notify_all()
                    elif not self._reading:
                        self._reading = True
                        break
                    else:
                        self._turn.wait(rest)
            try:
                self._pump(rest)
            finally:
                with self._turn:
                    self._reading = False
                    self._turn.notify_all()

    def _pump(self, seconds: float) -> None:
        """Read available data, waiting for it at most `seconds`."""
        poll = select.poll()
        poll.register(self._pipes.replies, select.POLLIN)
        poll.register(self._pipes.errors, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        if self._pipes.errors in ready and not self._take_errors():
            ready.add(self._pipes.replies)  # it is closed, and would always be ready
        if self._pipes.replies not in ready:
            return
        try:
            data = os.read(self._pipes.replies, _CHUNK)
        except BlockingIOError:
            if not _ready(self._pipes.replies, select.POLLIN, min(seconds, 1.0)):
                return
            data = os.read(self._pipes.replies, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self.fail("the connection was closed")
            return
        self._heard = time.monotonic()
        self.received += len(data)
        self._buffer += data
        try:
            self._dispatch()
        except ProtocolError as error:
            self.fail(f"not an SFTP server: {error}")

    def _dispatch(self) -> None:
        """Dispatch complete packets."""
        buffer, start = self._buffer, 0
        with self._turn:
            while len(buffer) - start >= 9:
                (length,) = _U32.unpack_from(buffer, start)
                if not 5 <= length <= MAX_PACKET:
                    raise ProtocolError("the login may print something")
                if len(buffer) - start < 4 + length:
                    break
                kind = buffer[start + 4]
                (number,) = _U32.unpack_from(buffer, start + 5)
                body = bytes(memoryview(buffer)[start + 9 : start + 4 + length])
                start += 4 + length
                if number in self._unwanted:
                    self._unwanted.remove(number)
                elif number in self._replies and self._replies[number] is None:
                    self._replies[number] = (kind, body)
                else:
                    raise ProtocolError("unexpected answer")
        del buffer[:start]

    def _take_errors(self) -> bool:
        """Keep the end of standard error, one pipe full at a time, as it may never end. Return False if closed."""
        try:
            data = os.read(self._pipes.errors, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._stderr_tail = (self._stderr_tail + data)[-STDERR_BYTES:]
        return bool(data)


def _ready(descriptor: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(seconds * 1000))


def _packet(kind: int, number: int, body: bytes) -> bytes:
    return _U32.pack(len(body) + 5) + bytes((kind,)) + _U32.pack(number) + body

"""Questions and answers by number over the pipes of a process: how SFTP's packets come and go.

No thread reads for the others: of those who wait for an answer, one reads, and hands the others theirs. So several
threads share one connection, and one that reads a long file with many requests on the way keeps the next thread's small
one waiting for no more than these.
"""

from __future__ import annotations

import os
import select
import struct
import time
from threading import Condition, Lock
from typing import Final, NamedTuple

from tracetui.sources.base import LinkLost

REPLY_SECONDS: Final = 15.0
"""How long one waits for an answer while nothing at all comes."""
PATIENCE_SECONDS: Final = 60.0
"""How long one waits for an answer while others get theirs."""
MAX_PACKET: Final = (1 << 18) + 1024
"""What the longest packet of OpenSSH takes. A longer one is no SFTP."""
STDERR_KEPT: Final = 8192
GREETING: Final = 3
"""The version, which both greetings carry in the place where all other packets carry their number."""

_U32: Final = struct.Struct(">I")
_CHUNK: Final = 1 << 16


class ProtocolError(Exception):
    """The other side sent what is no SFTP."""


class Pipes(NamedTuple):
    """The three pipes of a process that speaks SFTP, all of them non-blocking."""

    requests: int
    replies: int
    errors: int


class Channel:
    """Any thread may call every method; when the link breaks, all that wait raise `LinkLost`."""

    def __init__(self, pipes: Pipes, who: str, seconds: float = REPLY_SECONDS) -> None:
        """`who` is on the other side, for the sentences of errors."""
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
        self._last_words = b""
        self.received = 0
        """Bytes that came so far."""
        self.broken = ""
        """Why the link is down, in words; empty while it is up."""

    def fail(self, reason: str) -> LinkLost:
        """Declare the link broken; the exception to raise."""
        with self._turn:
            self.broken = self.broken or reason
            self._turn.notify_all()
        return self._lost()

    def _lost(self) -> LinkLost:
        return LinkLost(f"the link to {self._who} is down: {self.broken}")

    def is_up(self) -> bool:
        """True as far as can be known without asking: the process has not closed its end."""
        with self._turn:
            if self.broken:
                return False
            poll = select.poll()
            poll.register(self._pipes.replies, select.POLLIN)
            return not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def retire(self) -> None:
        """Wait until no thread uses the pipes any more: they can be closed then. The process must have ended."""
        self.fail("the connection was closed")
        with self._writing, self._turn:
            while self._reading:
                self._turn.wait(REPLY_SECONDS)

    @property
    def last_words(self) -> bytes:
        """The end of what was written to standard error."""
        self._take_errors()
        return self._last_words

    def greet(self, kind: int) -> int:
        """Send the greeting; the kind of the answer."""
        with self._turn:
            self._replies[GREETING] = None
        self._write(_packet(kind, GREETING, b""))
        return self.wait(GREETING)[0]

    def send(self, kind: int, body: bytes) -> int:
        """Send a request; the number by which its answer is waited for, or forgotten."""
        with self._turn:
            if self.broken:
                raise self._lost()
            self._number = number = self._number + 1 & 0xFFFF_FFFF
            self._replies[number] = None
        self._write(_packet(kind, number, body))
        return number

    def forget(self, number: int) -> None:
        """Nobody waits for this answer any more."""
        with self._turn:
            if self._replies.pop(number, None) is None:
                self._unwanted.add(number)

    def _write(self, data: bytes) -> None:
        """Requests are short and few are on the way: the pipe is full only where the link is stuck."""
        with self._writing:
            if self.broken:
                raise self._lost()
            deadline = time.monotonic() + self._seconds
            left = memoryview(data)
            while left:
                try:
                    left = left[os.write(self._pipes.requests, left) :]
                except BlockingIOError as error:
                    rest = deadline - time.monotonic()
                    if rest <= 0 or not _ready(self._pipes.requests, select.POLLOUT, rest):
                        raise self.fail("nothing more can be sent") from error
                except OSError as error:
                    raise self.fail("the connection was closed") from error

    def wait(self, number: int) -> tuple[int, bytes]:
        """Kind and body of an answer: read by this thread, or by another one that waits as well."""
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
        """Read what is there, after waiting for it at most so long."""
        poll = select.poll()
        poll.register(self._pipes.replies, select.POLLIN)
        poll.register(self._pipes.errors, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        if self._pipes.errors in ready and not self._take_errors():
            ready.add(self._pipes.replies)  # it is closed, and would be ready for ever
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
            self._sort()
        except ProtocolError as error:
            self.fail(f"it does not speak SFTP: {error}")

    def _sort(self) -> None:
        """Give out the packets that are complete."""
        buffer, start = self._buffer, 0
        with self._turn:
            while len(buffer) - start >= 9:
                (length,) = _U32.unpack_from(buffer, start)
                if not 5 <= length <= MAX_PACKET:
                    raise ProtocolError("does the login print something there?")
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
                    raise ProtocolError("an answer to no question")
        del buffer[:start]

    def _take_errors(self) -> bool:
        """Keep the end of what standard error holds, one pipe full: it may never end. False if it is closed."""
        try:
            data = os.read(self._pipes.errors, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._last_words = (self._last_words + data)[-STDERR_KEPT:]
        return bool(data)


def _ready(descriptor: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(seconds * 1000))


def _packet(kind: int, number: int, body: bytes) -> bytes:
    return _U32.pack(len(body) + 5) + bytes((kind,)) + _U32.pack(number) + body

"""Requests to a bucket in a process of their own, which bounds memory and time.

obstore reads listings and errors as a whole, ends its process where a server claims a length that there is no memory
for, and follows page after page without an end. Here that ends the process that made the requests, and the request
fails with one sentence. ``python -m tracetui.sources.bucket_process`` is that process.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from threading import Event, Lock, Thread
from typing import IO, Any, Final

import msgspec

from tracetui.errors import UsageError
from tracetui.processes import own_command
from tracetui.sources import bucket as requests
from tracetui.sources.base import LinkLost, Stat
from tracetui.sources.bucket import Bucket, BucketClient, Object

MAX_PAGES: Final = 1000
"""Pages of a listing, of 1,000 objects."""
MEMORY: Final = 512 << 20
"""Bytes that the process may take."""
ANSWER_SECONDS: Final = 60.0
"""Until a request is given up, with all that it was tried again."""
FOLDER_SECONDS: Final = 180.0
"""The same for a folder, which may have many pages."""
_WORKERS: Final = 24
_START_SECONDS: Final = 60.0
_OVER_MEMORY: Final = 3
"""Exit status."""
_LENGTH: Final = 8
"""Bytes of the length before each message."""
_ERRORS: Final[dict[str, type[Exception]]] = {
    error.__name__: error for error in (FileNotFoundError, PermissionError, LinkLost, OSError, ValueError, UsageError)
}


class Settings(msgspec.Struct):
    """The first message to the process."""

    bucket: Bucket
    retries: int
    memory: int


class Request(msgspec.Struct):
    """What is to be done. A `listing` is the id of the request that began it; `ended_listings` go on no more."""

    id: int
    method: str
    key: str = ""
    start: int = 0
    end: int = 0
    listing: int = 0
    ended_listings: list[int] = []


class Answer(msgspec.Struct):
    """The result of a request, or the name and arguments of an exception."""

    id: int
    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: str = ""
    arguments: list[str | int] = []


class BucketProcess:
    """The methods of `BucketClient`, carried out by another process. Thread-safe.

    The process is started anew after it was ended by an answer; `LinkLost` says which.
    """

    def __init__(self, bucket: Bucket) -> None:
        """Raises `UsageError` if obstore is not installed, or the environment configures it wrongly."""
        self.bucket = bucket
        self.received = 0
        """Bytes received of objects."""
        self._lock = Lock()
        self._ids = count(1)
        self._running: _Process | None = None
        requests.require_package(bucket)
        self._start()

    def close(self) -> None:
        """End the process; it is started again by the next request."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.end()

    def head(self, key: str) -> Stat:
        """Return the stat of an object. Raises `FileNotFoundError` if there is none."""
        stat: Stat = self._ask(Request(next(self._ids), "head", key), Stat)
        return stat

    def get(self, key: str, start: int, end: int) -> tuple[bytes, Stat]:
        """Return the bytes of a non-empty range, and the stat of the version that they are from."""
        data, stat = self._ask(Request(next(self._ids), "get", key, start, end), tuple[bytes, Stat])
        self.received += len(data)
        return data, stat

    def pages(self, prefix: str) -> Iterator[Sequence[Object]]:
        """Yield all objects below a prefix, ordered by key, some 1,000 at a time.

        Raises `ValueError` for a key that no path can express (``a//b``, ``./a``), `OSError` after `MAX_PAGES`.
        """
        begin = Request(next(self._ids), "list", prefix)
        process = self._start()
        page = self._ask(begin, list[Object] | None, process=process)
        try:
            for _ in range(MAX_PAGES):
                if page is None:
                    return
                yield page
                following = Request(next(self._ids), "next", prefix, listing=begin.id)
                page = self._ask(following, list[Object] | None, process=process)
            place = self.bucket.path(prefix)
            raise OSError(f"more than {MAX_PAGES * requests.PAGE:,} objects below {place}; name a longer prefix")
        finally:
            process.ended_listings.append(begin.id)  # sends nothing: this may run anywhere, as a finalizer

    def folder(self, prefix: str) -> tuple[Sequence[Object], Sequence[str]]:
        """Return the objects directly below a prefix, and the prefixes of deeper ones. Raises `ValueError` as above."""
        request = Request(next(self._ids), "folder", prefix)
        listing: tuple[list[Object], list[str]] = self._ask(
            request, tuple[list[Object], list[str]], seconds=FOLDER_SECONDS
        )
        return listing

    def _start(self) -> _Process:
        with self._lock:
            if self._running is None or self._running.ended:
                self._running = _Process(Settings(self.bucket, requests._RETRIES, MEMORY))
            return self._running

    def _ask(
        self, request: Request, kind: Any, *, seconds: float | None = None, process: _Process | None = None
    ) -> Any:
        running = process or self._start()
        answer = running.ask(request, seconds or ANSWER_SECONDS)
        if answer.error:
            raise _ERRORS[answer.error](*answer.arguments)
        return msgspec.msgpack.decode(answer.result, type=kind)


class _Process:
    """One process, and the requests that it has not answered yet."""

    def __init__(self, settings: Settings) -> None:
        self._bucket = settings.bucket
        self._memory = settings.memory
        self._sending, self._lock = Lock(), Lock()
        self._waiting: dict[int, Future[Answer]] = {}
        self._reason = ""
        """Why the process was ended."""
        self.ended_listings = deque[int]()
        """Listings that are asked for no more."""
        self.ended = False
        command = own_command(__name__)
        self._process = subprocess.Popen(  # noqa: S603 — our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        Thread(target=self._receive, name="bucket", daemon=True).start()
        answer = self.ask(settings, _START_SECONDS)
        if answer.error:
            self.end()
            raise _ERRORS[answer.error](*answer.arguments)

    def ask(self, message: Request | Settings, seconds: float) -> Answer:
        """Send a request and wait for its answer. Raises `LinkLost`."""
        future = Future[Answer]()
        number = message.id if isinstance(message, Request) else 0
        with self._lock:
            if self.ended:
                raise LinkLost(self._reason or f"the connection to {self._bucket} is closed")
            self._waiting[number] = future
        self._send(message)
        try:
            return future.result(seconds)
        except TimeoutError:
            self._reason = f"{self._bucket} doesn't answer in time"
            self.end()
            raise LinkLost(self._reason) from None

    def _send(self, message: Request | Settings) -> None:
        """Send a request. If the process has ended, the thread that reads its answers notices."""
        if isinstance(message, Request):
            message.ended_listings = [self.ended_listings.popleft() for _ in range(len(self.ended_listings))]
        with self._sending, suppress(OSError, ValueError):
            _write(self._input, message)

    def end(self) -> None:
        """End the process. What it has not answered fails."""
        self._process.kill()

    def _receive(self) -> None:
        decode = msgspec.msgpack.Decoder(Answer).decode
        with suppress(OSError, msgspec.MsgspecError):
            while (data := _read(self._output)) is not None:
                answer = decode(data)
                with self._lock:
                    future = self._waiting.pop(answer.id, None)
                if future is not None:
                    future.set_result(answer)
        self._process.kill()
        status = self._process.wait()
        with self._lock:
            self.ended = True
            waiting, self._waiting = [*self._waiting.values()], {}
            self._reason = self._reason or self._explain(status)
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()
        for future in waiting:
            future.set_exception(LinkLost(self._reason))

    def _explain(self, status: int) -> str:
        if status == _OVER_MEMORY:
            return f"{self._bucket}: an answer takes more than {self._memory >> 20} MiB"
        if status == -signal.SIGKILL:
            return f"the connection to {self._bucket} is closed"
        return f"{self._bucket}: an answer claims a size that can't be read"


# ---- messages: a length, then MessagePack


def _write(pipe: IO[bytes], message: Any) -> None:
    data = msgspec.msgpack.encode(message)
    pipe.write(len(data).to_bytes(_LENGTH, "big") + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    """Return the next message; None at the end."""
    length = pipe.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    size = int.from_bytes(length, "big")
    data = pipe.read(size)
    return data if len(data) == size else None


# ---- in the process


class _Server:
    """Answers requests through obstore."""

    def __init__(self, settings: Settings, output: IO[bytes]) -> None:
        self._client = BucketClient(settings.bucket, retries=settings.retries)
        self._output, self._lock = output, Lock()
        self._listings: dict[int, Iterator[Sequence[Object]]] = {}
        self._under_way = 0
        self.busy = Event()
        """Set while requests are under way."""

    def answer(self, request: Request) -> None:
        """Carry out a request and send its answer."""
        self._count(1)
        try:
            result = msgspec.Raw(msgspec.msgpack.encode(self._result(request)))
            self.send(Answer(request.id, result))
        except Exception as error:
            self.send(_failed(request.id, error))
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._under_way += change
            (self.busy.set if self._under_way else self.busy.clear)()

    def send(self, answer: Answer) -> None:
        """Send an answer."""
        with self._lock:
            _write(self._output, answer)

    def _result(self, request: Request) -> Any:
        client = self._client
        for listing in request.ended_listings:
            self._listings.pop(listing, None)
        match request.method:
            case "head":
                return client.head(request.key)
            case "get":
                return client.get(request.key, request.start, request.end)
            case "folder":
                return client.folder(request.key)
            case "list":
                self._listings[request.id] = client.pages(request.key)
                return next(self._listings[request.id], None)
            case _:
                return next(self._listings[request.listing], None)


def _failed(number: int, error: Exception) -> Answer:
    kinds = (kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
    arguments: list[str | int] = [value if isinstance(value, int) else str(value) for value in error.args]
    if isinstance(error, OSError) and error.filename is not None:
        arguments.append(str(error.filename))
    return Answer(number, error=next(kinds, "OSError"), arguments=arguments)


def _resident() -> int:
    """Return the bytes of memory that this process has now; at most those that it had, where there is no /proc."""
    with suppress(OSError, ValueError), open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _watch_memory(most: int, busy: Event) -> None:
    """End the process once it takes too much memory; looks again and again, but only while it is `busy`."""
    never = Event()  # nothing tells when memory grows
    while _resident() < most:
        never.wait(0.02)
        busy.wait()
    os._exit(_OVER_MEMORY)


def main() -> None:
    """Answer requests on standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the one who asks
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # where obstore ends it
    source, output = sys.stdin.buffer, sys.stdout.buffer
    data = _read(source)
    if data is None:
        return
    settings = msgspec.msgpack.decode(data, type=Settings)
    try:
        server = _Server(settings, output)
    except UsageError as error:
        _write(output, _failed(0, error))
        return
    Thread(target=_watch_memory, args=(settings.memory, server.busy), daemon=True).start()
    server.send(Answer(0))
    decode: Callable[[bytes], Request] = msgspec.msgpack.Decoder(Request).decode
    pool = ThreadPoolExecutor(_WORKERS)
    while (data := _read(source)) is not None:
        pool.submit(server.answer, decode(data))
    os._exit(0)  # what is under way has nobody to go to


if __name__ == "__main__":
    main()

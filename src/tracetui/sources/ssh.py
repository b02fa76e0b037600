"""Remote addresses, and the connection to a host: the user's own OpenSSH with its SFTP subsystem.

The user's config, keys, agent, jump hosts and known hosts apply. Added options forbid prompts (nobody could answer
them), unknown hosts, and everything that reading doesn't need. No remote shell runs, and nothing is written there.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from threading import Lock
from typing import Final

import msgspec

from tracetui.errors import UsageError
from tracetui.processes import program_path
from tracetui.redact import Redactor
from tracetui.sources.base import LinkLost
from tracetui.sources.sftp import Channel, Client, Pipes
from tracetui.text import one_line

CONNECT_SECONDS: Final = 10
BACKOFF: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Delays in seconds after consecutive failures."""
END_SECONDS: Final = 1.0
OPTIONS: Final = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "ControlMaster=no",  # use an existing one, but leave none behind
    f"ConnectTimeout={CONNECT_SECONDS}",
    "ConnectionAttempts=1",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")
_V6: Final = re.compile(r"[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?\Z")
_SCHEME: Final = "ssh://"
_SCP: Final = re.compile(r"((?:[^/:@]*@)?(?:\[[^/\]]*\][^/:]*|[^/:\[\]]*)):(.*)\Z", re.DOTALL)
_REASON_CELLS: Final = 200
_NOISE: Final = re.compile(r"\s*(@+|Warning: Permanently added .*|\*\* .*)?\s*\Z")


class Host(msgspec.Struct, frozen=True):
    """A machine and its login. Raises `UsageError` for an invalid host name."""

    name: str
    user: str | None = None
    port: int | None = None

    def __post_init__(self) -> None:
        for what, word in (("host", self.name), ("user", self.user)):
            if word is not None and not _NAME.match(word) and not (what == "host" and _V6.match(word)):
                raise UsageError(f"{word!r} is not a valid {what} name; write ssh://[user@]host[:port]/dir or host:dir")
        if self.port is not None and not 0 < self.port < 65_536:
            raise UsageError(f"{self.port} is not a valid port; write ssh://[user@]host[:port]/dir")

    def __str__(self) -> str:
        return f"{self.user}@{self.name}" if self.user else self.name

    def arguments(self) -> list[str]:
        """Return the arguments of `ssh` that start SFTP."""
        port = [] if self.port is None else ["-p", str(self.port)]
        return [*(f"-o{option}" for option in OPTIONS), *port, "-s", "--", str(self), "sftp"]

    def manual_command(self) -> str:
        """Return a command for the user to check the connection."""
        return f"ssh {'' if self.port is None else f'-p {self.port} '}{self}"


class RemotePath(msgspec.Struct, frozen=True):
    """A host, and a path on it; a relative path starts from the home folder."""

    host: Host
    path: str


def parse_remote_path(word: str) -> RemotePath | None:
    """Parse ``ssh://[user@]host[:port]/dir`` or ``[user@]host:dir``; return None for any other word.

    ``~/`` is the home folder in both. Nothing is percent-decoded. Raises `UsageError` for an invalid host name.
    """
    if word.startswith(_SCHEME):
        login, slash, path = word[len(_SCHEME) :].partition("/")
        return RemotePath(
            _host(login, with_port=True), _from_home(path[1:] if path[:1] == "~" else slash + path, path[:1])
        )
    match = _SCP.match(word)
    if match is None:
        return None
    login, path = match[1], match[2]
    return RemotePath(_host(login, with_port=False), _from_home(path.removeprefix("~"), path[:1]))


def remote_path(word: str) -> str:
    """Return the path of a remote word on its host."""
    place = parse_remote_path(word)
    if place is None:
        raise UsageError(f"{word} is not a remote path")
    return place.path


def join(folder: str, name: str) -> str:
    """Append a name to a remote folder, as the user would write it."""
    bare = folder.startswith(_SCHEME) and "/" not in folder[len(_SCHEME) :]
    return folder + ("/~/" if bare else "" if _is_start(folder) or folder.endswith("/") else "/") + name


def parent(path: str) -> str:
    """Return the folder of a remote path, as the user would write it."""
    head, slash, _ = path.rpartition("/")
    if path.startswith(_SCHEME):
        return head if "/" in head[len(_SCHEME) :] else head + slash
    if slash and ":" in head:
        return head + slash if head.endswith(":") else head
    return path[: path.index(":") + 1 if not path.startswith("[") else path.index("]:") + 2]


def _is_start(folder: str) -> bool:
    """True for ``host:`` without a path."""
    match = None if folder.startswith(_SCHEME) else _SCP.match(folder)
    return match is not None and not match[2]


def _host(login: str, *, with_port: bool) -> Host:
    user, at, name = login.rpartition("@")
    port: int | None = None
    if name.startswith("["):
        name, _, rest = name[1:].partition("]")
        if not _V6.match(name) or (rest and not (with_port and rest.startswith(":"))):
            raise UsageError(f"{login!r} is not a valid host name; write [address]:dir or ssh://[address]:port/dir")
        number = rest[1:]
    elif with_port:
        name, _, number = name.partition(":")
    else:
        number = ""
    if number:
        port = int(number) if number.isdecimal() and number.isascii() and len(number) < 6 else 0
    return Host(name, user if at else None, port)


def _from_home(path: str, first: str) -> str:
    """Resolve a remote path; `path` is the part after ``~`` if that was `first`."""
    if first != "~":
        return path or "."
    if path and not path.startswith("/"):
        raise UsageError(f"~{path} is another user's home folder; write the full path")
    return path.lstrip("/") or "."


class Link:
    """The connection to one host, opened on first use and again after it broke. Thread-safe."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._client: Client | None = None
        self._failures = 0
        self._next = 0.0
        self._reason = ""
        self._received = 0
        self._closed = False

    @property
    def received(self) -> int:
        """Bytes received over all connections."""
        channel = self._channel
        return self._received + (channel.received if channel is not None else 0)

    def client(self) -> Client:
        """Return an open connection, opening one if necessary. Raises `LinkLost`, at once during backoff."""
        client = self._client
        if client is not None and client.channel.is_up():
            return client
        if not self._lock.acquire(timeout=CONNECT_SECONDS):
            raise LinkLost(self._reason or f"{self.host} does not answer")
        try:
            return self._connected()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection finally, even while other threads wait for an answer or for a connection."""
        self._closed = True
        process = self._process
        if process is not None:
            _end(process)
        with self._lock:
            self._drop()

    def _connected(self) -> Client:
        """Return the connection, reconnecting if necessary; called by one thread at a time."""
        client = self._client
        if client is not None:
            if client.channel.is_up():
                return client
            was_in_use = bool(client.channel.broken)  # else it broke while idle: retry at once
            self._reason = self._explain(client.channel.broken)
            self._drop()
            if was_in_use:
                self._back_off()
        if self._closed or time.monotonic() < self._next:
            raise LinkLost(self._reason or f"the connection to {self.host} is closed")
        try:
            self._client = self._connect()
        except LinkLost as error:
            self._reason = self._explain(self._channel.broken if self._channel is not None else str(error))
            self._drop()
            self._back_off()
            raise LinkLost(self._reason) from error
        self._failures = 0
        return self._client

    def _connect(self) -> Client:
        ssh = program_path("ssh")
        try:
            if ssh is None:
                raise FileNotFoundError(errno.ENOENT, "not on PATH", "ssh")
            process = subprocess.Popen(  # noqa: S603 — no shell, and the host was looked at
                [ssh, *self.host.arguments()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is meant for us, and there is no terminal for prompts
            )
        except OSError as error:
            raise LinkLost("cannot run `ssh`; install the OpenSSH client") from error
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        pipes = Pipes(process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno())
        for descriptor in pipes:
            os.set_blocking(descriptor, False)
        self._process, self._channel = process, Channel(pipes, str(self.host))
        if self._closed:  # `close` may have come before there was a process to end
            raise LinkLost(f"the connection to {self.host} is closed")
        return Client(self._channel)

    def _back_off(self) -> None:
        self._next = time.monotonic() + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1

    def _explain(self, reason: str) -> str:
        """Explain in one sentence why there is no connection, with the next step."""
        if self._process is None or self._channel is None:
            return reason
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)  # its message comes last
        return explain_failure(self.host, reason, self._channel.stderr_tail.decode("utf-8", "replace"))

    def _drop(self) -> None:
        """End the process and close its pipes."""
        process, channel = self._process, self._channel
        self._process = self._channel = self._client = None
        if process is None or channel is None:
            return
        channel.fail("it was closed")
        _end(process)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            _end(process, signal.SIGKILL)
            process.wait()
        channel.retire()
        self._received += channel.received
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def _end(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> None:
    """End ssh and its child processes, also stopped ones."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
            os.killpg(process.pid, signal.SIGCONT)


def explain_failure(host: Host, reason: str, output: str) -> str:
    """Explain why `host` cannot be read from the failure and ssh's output, with the next step."""
    lines = [line for line in output.replace("\r", "\n").split("\n") if not _NOISE.match(line)]
    answer = one_line(Redactor().text(lines[-1] if lines else reason), _REASON_CELLS)
    hand = host.manual_command()
    if "IDENTIFICATION HAS CHANGED" in output:
        return f"the host key of {host} has changed; run `{hand}` and see why before you trust it"
    if "host key is known for" in output:
        return f"{host} is not a known host; run `{hand}` once and check its key"
    if "Permission denied" in output:
        return f"cannot log in to {host} without a prompt ({answer}); run `{hand}`, or load your key with ssh-add"
    if "subsystem request failed" in output:
        return f"{host} does not offer SFTP; its sshd_config needs a line `Subsystem sftp internal-sftp`"
    return f"cannot read from {host}: {answer}; run `{hand}` to see more"

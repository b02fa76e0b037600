"""A real sshd on loopback as the current user, and a slow line to it. Nothing of the user's own is touched."""

from __future__ import annotations

import os
import pwd
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.shared import PATIENCE


def missing() -> str:
    """Why there can be no server here; empty where there can."""
    for name in ("sshd", "ssh", "ssh-keygen"):
        if _program(name) is None:
            return f"there is no {name}; Debian's openssh-server brings it"
    return ""


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin")


class Sshd:
    """A server with keys of its own, and a folder with an `ssh` that knows the host ``there``.

    The product runs the first `ssh` of the PATH: that one is a script that adds ``-F`` with a config like a user's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = self.folder / "home"
        """Where paths that are not absolute begin."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._key("host_key")
        self._key("user_key")
        shutil.copy(self.folder / "user_key.pub", self.folder / "authorized_keys")
        self.path = self.folder / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        for self.port in _ports():
            if self._serves():
                break
        else:
            raise AssertionError(f"sshd listens nowhere: {self.log()}")
        self.trust((self.folder / "host_key.pub").read_text())
        self.connect_to(self.port)
        self._wrap()

    def start(self) -> None:
        """Serve at the same port as before."""
        until(self._serves, f"sshd does not listen: {self.log()}")

    def _serves(self) -> bool:
        """Whether it listens, in the foreground of our process; False if the port is taken."""
        config = self.folder / "sshd_config"
        config.write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            f"PasswordAuthentication no\nPidFile none\nSubsystem sftp internal-sftp -d {self.home}\nMaxStartups 100\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # required by sshd when run by root
        sshd = _program("sshd")
        assert sshd is not None
        (self.folder / "log").unlink(missing_ok=True)
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen([sshd, "-D", "-e", "-f", str(config)], stderr=log, start_new_session=True)
        until(lambda: process.poll() is not None or "Server listening" in self.log(), "sshd does not come up")
        self._process = process if process.poll() is None else None
        return self._process is not None

    def stop(self) -> None:
        """End the server and every connection."""
        if self._process is not None:
            self.cut()
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None

    def cut(self) -> None:
        """Kill the connections; the server itself keeps running."""
        assert self._process is not None
        for pid in _below(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def sessions(self) -> int:
        """Processes that serve connections now."""
        return len(_below(self._process.pid)) if self._process is not None else 0

    def trust(self, *keys: str) -> None:
        """The keys that the user knows ``there`` by."""
        lines = [f"there {key}" for key in keys]
        (self.folder / "known_hosts").write_text("".join(lines))

    def connect_to(self, port: int) -> None:
        """The target of ``there`` in the user's config."""
        user = pwd.getpwuid(os.getuid()).pw_name
        (self.folder / "ssh_config").write_text(
            f"Host there\n  HostName 127.0.0.1\n  HostKeyAlias there\n  Port {port}\n  User {user}\n"
            f"  IdentityFile {self.folder}/user_key\n  IdentitiesOnly yes\n"
            f"Host *\n  UserKnownHostsFile {self.folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        )

    def new_key(self) -> str:
        """Another public key of a host."""
        self._key("other_key")
        return (self.folder / "other_key.pub").read_text()

    def log(self) -> str:
        """The server's output."""
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def calls(self) -> list[str]:
        """The command lines with which `ssh` was started."""
        path = self.folder / "calls"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def _key(self, name: str) -> None:
        keygen = _program("ssh-keygen")
        assert keygen is not None
        path = self.folder / name
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)

    def _wrap(self) -> None:
        self.path.mkdir()
        script = self.path / "ssh"
        script.write_text(
            f'#!/bin/sh\necho "$@" >> "{self.folder}/calls"\n'
            f'exec {_program("ssh")} -F "{self.folder}/ssh_config" "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)


class SlowLine:
    """A line to a port of this machine on which every byte takes `seconds` each way, and which counts round trips."""

    def __init__(self, port: int, seconds: float) -> None:
        self._target, self._seconds = port, seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._late: deque[tuple[float, socket.socket, bytes]] = deque()
        self._near: set[object] = set()
        self.trips = 0
        """Round trips: what is asked before the answer to the first question can be back is one of them."""
        self._answered = 0.0
        self._over = False
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cut it."""
        self._over = True
        self._thread.join(PATIENCE)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _carry(self) -> None:
        while not self._over:
            wait = max(0.0, self._late[0][0] - time.monotonic()) if self._late else 0.05
            for key, _ in self._selector.select(min(wait, 0.05)):
                if key.data is None:
                    self._accept()
                else:
                    self._take(key.fileobj, key.data)  # type: ignore[arg-type]
            while self._late and self._late[0][0] <= time.monotonic():
                _, target, data = self._late.popleft()
                with suppress(OSError):
                    target.sendall(data) if data else target.shutdown(socket.SHUT_WR)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        far = socket.create_connection(("127.0.0.1", self._target))
        self._near.add(near)
        self._selector.register(near, selectors.EVENT_READ, far)
        self._selector.register(far, selectors.EVENT_READ, near)

    def _take(self, source: socket.socket, target: socket.socket) -> None:
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        now = time.monotonic()
        if source in self._near and now >= self._answered:
            self.trips += 1
            self._answered = now + 2 * self._seconds
        self._late.append((now + self._seconds, target, data))
        if not data:
            self._selector.unregister(source)


class Proxy:
    """A line to a port of this machine that can swallow everything, also of those who connect later."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        self._muted = False
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def mute(self) -> None:
        """Pass nothing on any more."""
        self._muted = True

    def close(self) -> None:
        """Cut it."""
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.accepted += 1
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if not self._muted:
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def until(holds: object, why: str) -> None:
    """Wait for a state, with a deadline."""
    assert callable(holds)
    end = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < end, why
        pause.wait(0.01)


def _ports() -> Iterator[int]:
    """Ports that no system gives away by itself: other tests take them only on purpose, and begin elsewhere."""
    for number in range(20):
        yield 20_000 + (7 * os.getpid() + number) % 10_000


def _below(pid: int) -> list[int]:
    """The processes below a process."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(above) for child, above in (line.split() for line in table.split("\n") if line.strip())}
    pids = [child for child, above in parents.items() if above == pid]
    for parent in pids:
        pids += [other for other, above in parents.items() if above == parent]
    return pids

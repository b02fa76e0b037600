"""Checkpoints of Entire as a source: a folder of the sessions on the checkpoint branch of a repository.

Facts: Entire's `checkpoint` package, and its public branch. ``<2>/<10>/<n>/`` (hexadecimal digits of the checkpoint,
number of the session in it) has ``metadata.json`` and ``full.jsonl``, a copy of the agent's own log up to then; parts
of a long one are ``full.jsonl.001`` … The commit that a checkpoint was made for has its id in the message.

Everything comes from ``git`` (`tracetui.sources.git`), within limits of bytes and time. Names on the branch that aren't
of this form are not read, and none is used as a path.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from threading import Lock, Timer
from typing import Any, Final, NoReturn
from urllib.parse import quote
from zlib import crc32

import msgspec

from tracetui.errors import UsageError
from tracetui.sources.base import (
    FACTS,
    MAX_DOCUMENT,
    BaseFile,
    Closable,
    Entry,
    Facts,
    File,
    Folder,
    Stat,
    is_file_name,
    reason_of,
)
from tracetui.sources.git import SECONDS, command, environment
from tracetui.sources.local import check_allowed, is_confined

SCHEME: Final = "entire://"
BRANCH: Final = "entire/checkpoints/v1"
MAX_SESSIONS: Final = 10_000
MAX_OUTPUT: Final = 64 << 20
"""Bytes of a list that git prints."""
MAX_METADATA: Final = 1 << 20
"""Bytes of the metadata of one copy."""
CACHED: Final = 64 << 20
"""Bytes of logs kept in memory; the last one in any case."""
_LINK: Final = 4096
_BLOB: Final = re.compile(
    rb"100(?:644|755) blob ([0-9a-f]{40,64}) +(\d+|-|BAD)\t"
    rb"([0-9a-f]{2})/([0-9a-f]{10})/(\d{1,6})/(?:(metadata\.json)|full\.jsonl(?:\.(\d{3}))?)"
)
_OBJECT: Final = re.compile(rb"[0-9a-f]{40,64} blob (\d+)\n")
_TRAILER: Final = re.compile(rb"^Entire-Checkpoint: ([0-9a-f]{12})\s*$", re.MULTILINE)
_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d-(?=[0-9a-f]{8}-[0-9a-f-]{27}$)")
"""What early versions wrote before the agent's id of the session."""
_MAIN: Final = b"000"


def repository(path: str) -> str:
    """Return the part of a path or address that names the repository; all of it if none is there.

    Raises `UsageError` without one.
    """
    ends = [match.start() for match in re.finditer("[/#]|$", path) if match.start() > len(SCHEME)]
    if not ends:
        raise UsageError(f"{SCHEME} needs the path of a repository: {SCHEME}PATH")
    repository = next((path[:end] for end in reversed(ends) if is_repository(root_of(path[:end]))), path)
    return repository.rstrip("/") or repository


def root_of(folder: str) -> str:
    """Return the path on this machine of an address."""
    return os.path.expanduser(folder.removeprefix(SCHEME))


def is_repository(root: str) -> bool:
    """Whether a folder is the root of a repository or of a working tree; git isn't asked."""
    return os.path.lexists(os.path.join(root, ".git")) or _is_git_folder(root)


def _is_git_folder(folder: str) -> bool:
    return all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))


def git_folders(root: str) -> list[str]:
    """Return the folders of a repository in which git keeps its data. Raises `OSError` if they don't look like that."""
    git = os.path.join(root, ".git")
    if os.path.isfile(git):
        git = os.path.join(root, _first_line(git).removeprefix("gitdir:").strip())
    elif not os.path.isdir(git):
        git = root
    link = os.path.join(git, "commondir")
    common = os.path.join(git, _first_line(link)) if os.path.isfile(link) else git
    if not _is_git_folder(common) or not os.path.isfile(os.path.join(git, "HEAD")):
        raise FileNotFoundError(errno.ENOENT, f"{root} is not the root of a git repository")
    return [*dict.fromkeys((git, common))]


def _first_line(path: str) -> str:
    with Path(path).open("rb") as file:
        return os.fsdecode(file.read(_LINK).partition(b"\n")[0])


class _Metadata(msgspec.Struct):
    """``metadata.json`` of a copy."""

    session_id: str = ""
    created_at: str = ""
    agent: str | None = None
    branch: str | None = None


class _Copy(msgspec.Struct):
    """A session as one checkpoint has it."""

    checkpoint: str
    number: int
    metadata: str = ""
    """Object."""
    parts: dict[bytes, str] = {}
    """Objects of the log, by the number of the part."""
    size: int = 0
    """Bytes of the log."""
    lacks: bool = False
    """An object isn't in this repository."""
    facts: _Metadata = msgspec.field(default_factory=_Metadata)

    @property
    def rank(self) -> tuple[bool, int, float, str]:
        """The copy with the greatest one is shown: the longest."""
        return not self.lacks, self.size, self.created, self.checkpoint

    @property
    def created(self) -> float:
        """Seconds since the epoch; 0 if it isn't recorded."""
        try:
            return max(0.0, datetime.fromisoformat(self.facts.created_at).timestamp())
        except (ValueError, OverflowError, OSError):
            return 0.0


class _Session(msgspec.Struct, frozen=True):
    """A session: its longest copy, as a file."""

    objects: tuple[str, ...]
    stat: Stat
    facts: Facts


class Objects(Closable):
    """Read-only git in one repository. Raises `OSError`, within limits; can be used from any thread."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def output(self, *arguments: str) -> bytes:
        """Return what a command prints, at most `MAX_OUTPUT` bytes."""
        with self._started(arguments) as process, _ended_in_time(process):
            assert process.stdout is not None
            data = process.stdout.read(MAX_OUTPUT + 1)
            if len(data) > MAX_OUTPUT:
                process.kill()
                raise OSError(f"git {arguments[0]} prints more than {MAX_OUTPUT >> 20} MiB")
            if process.wait():
                raise OSError(f"git {arguments[0]} failed, or took more than {SECONDS} s")
        return data

    def read(self, name: str, most: int) -> bytes:
        """Return the content of an object of at most so many bytes."""
        with self._lock:
            if self._process is None:
                self._process = self._started(("cat-file", "--batch"))
            process = self._process
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                with _ended_in_time(process):
                    process.stdin.write(f"{name}\n".encode())
                    process.stdin.flush()
                    header = process.stdout.readline(_LINK)
                    match = _OBJECT.fullmatch(header)
                    if match is None and header.endswith(b" missing\n"):
                        raise FileNotFoundError(errno.ENOENT, "this object isn't in the repository")
                    size = most + 1 if match is None else int(match[1])
                    if size > most:
                        raise OSError(f"not read: an object of more than {most >> 20} MiB, or git gave no answer")
                    data = process.stdout.read(size + 1)
                    if len(data) <= size:
                        raise OSError("git ended while it read an object")
            except FileNotFoundError:
                raise
            except OSError:
                self._end()
                raise
        return data[:-1]

    def _started(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        ceiling = {"GIT_CEILING_DIRECTORIES": os.path.dirname(self._root)}  # no repository above this one
        return subprocess.Popen(  # noqa: S603 — no shell, fixed flags, in the repository that the user named
            command(*arguments),
            cwd=self._root,
            env=environment() | ceiling,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


@contextmanager
def _ended_in_time(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Context: the process is killed if that takes too long."""
    timer = Timer(SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class CheckpointSource(Closable):
    """The sessions of a repository; see `tracetui.sources.base.Source`. Paths are ``entire://PATH/SESSION.jsonl``."""

    def __init__(self, folder: str) -> None:
        """`folder`: the address of the repository."""
        self.folder = folder
        self.received = 0
        self._objects = Objects(root_of(folder))
        self._lock = Lock()
        self._state: bytes | None = None
        """All branches with their commits, as they were when the sessions were listed."""
        self._sessions: dict[str, _Session] = {}
        """By path."""
        self._problems: list[Entry] = []
        self._logs: OrderedDict[tuple[str, ...], bytes] = OrderedDict()

    def connect(self) -> None:
        """List the sessions. Raises `OSError` if that's impossible or not allowed."""
        self._listed()

    def close(self) -> None:
        """End the process that reads objects."""
        self._objects.close()

    def prefetch(self, paths: Sequence[str]) -> None:
        """Do nothing."""

    def local_path(self, path: str) -> str | None:
        return None

    def is_file(self, path: str) -> bool:
        return path in (self._sessions or self._listed())

    def is_folder(self, path: str) -> bool:
        return path.rstrip("/") == self.folder

    def walk(self, root: str) -> Iterator[Entry]:
        try:
            yield from self.list(root).entries
        except OSError as error:
            yield Entry(root, skipped=reason_of(error), failed=True)

    def list(self, path: str) -> Folder:
        sessions = self._listed()
        if self.is_folder(path):
            return Folder([*(Entry(name, session.stat) for name, session in sessions.items()), *self._problems])
        if path not in sessions:
            raise FileNotFoundError(errno.ENOENT, "no such session in the checkpoints")
        return Folder([Entry(path, sessions[path].stat)])

    def open(self, path: str, stat: Stat | None = None) -> File:
        return CheckpointFile(self, path, (self._sessions or self._listed()).get(path))

    def log(self, objects: tuple[str, ...]) -> bytes:
        """Return the log in these objects. Raises `OSError`."""
        with self._lock:
            if objects in self._logs:
                self._logs.move_to_end(objects)
                return self._logs[objects]
        parts: list[bytes] = []
        for name in objects:
            parts.append(self._objects.read(name, MAX_DOCUMENT - sum(map(len, parts))))
        data = b"\n".join(parts)
        with self._lock:
            self._logs[objects] = data
            while len(self._logs) > 1 and sum(map(len, self._logs.values())) > CACHED:
                self._logs.popitem(last=False)
        return data

    def _listed(self) -> Mapping[str, _Session]:
        """The sessions as they are now."""
        with self._lock:
            self._check_place()
            heads = ("refs/heads", "refs/remotes")
            state = self._objects.output("for-each-ref", "--format=%(objectname) %(refname)", *heads)
            if state != self._state:
                self._list(_tip(state))
                self._state = state
            return self._sessions

    def _check_place(self) -> None:
        """Raise `OSError` for what is no repository, or outside of the paths that may be read."""
        root = root_of(self.folder)
        folders = git_folders(root)
        for folder in folders if is_confined() else ():
            check_allowed(folder)
            if os.path.lexists(os.path.join(folder, "objects", "info", "alternates")):
                raise PermissionError(errno.EACCES, f"{root} has objects of another repository, which may be outside")

    def _list(self, tip: str) -> None:
        copies = _copies(self._objects.output("ls-tree", "-r", "-z", "-l", tip))
        self._problems = []
        by_session: dict[str, list[_Copy]] = {}
        for copy in copies:
            by_session.setdefault(self._identify(copy), []).append(copy)
        newest = sorted(by_session.items(), key=lambda item: max(copy.created for copy in item[1]), reverse=True)
        if more := len(newest[MAX_SESSIONS:]):
            self._report(self.folder, f"{more} older sessions are not listed")
        commits = self._commits(copies)
        sessions: dict[str, _Session] = {}
        for name, group in newest[:MAX_SESSIONS]:
            path = f"{self.folder}/{name}.jsonl"
            longest = max((copy for copy in group if copy.parts), key=attrgetter("rank"), default=None)
            if longest is None or longest.lacks:
                self._report(
                    path, "no checkpoint has its log" if longest is None else "its log isn't in this repository"
                )
            else:
                sessions[path] = _session(longest, group, commits)
        self._sessions = sessions

    def _report(self, path: str, reason: str) -> None:
        self._problems.append(Entry(path, skipped=reason, failed=True))

    def _identify(self, copy: _Copy) -> str:
        """Read the metadata of a copy, and return the name of its session."""
        name = f"{copy.checkpoint}-{copy.number}"
        try:
            copy.facts = msgspec.json.decode(self._objects.read(copy.metadata, MAX_METADATA), type=_Metadata)
            quoted = quote(_DATED.sub("", copy.facts.session_id), safe="")
        except (OSError, ValueError) as error:
            self._report(f"{self.folder}/{name}.jsonl", f"the session isn't known: {reason_of(error)}")
            return name
        return quoted if quoted and is_file_name(f"{quoted}.jsonl") else name

    def _commits(self, copies: Sequence[_Copy]) -> Mapping[str, Sequence[str]]:
        """The commits of each checkpoint, oldest first. Those made long before the first of these can have none."""
        since = min((copy.created for copy in copies), default=0.0) - 7 * 86_400
        options = (f"--since=@{max(0, int(since))}", "--branches", "--remotes", "--no-notes", "--no-color")
        grep = ("--extended-regexp", "--grep=^Entire-Checkpoint: [0-9a-f]{12}")
        try:
            log = self._objects.output("log", "--reverse", "-z", "--format=%H%n%B", *options, *grep)
        except OSError as error:
            self._report(self.folder, f"the commits of the checkpoints aren't known: {reason_of(error)}")
            return {}
        return _commits_in(log)


def _commits_in(log: bytes) -> dict[str, list[str]]:
    """The commits of each checkpoint, from their hashes and messages."""
    commits: dict[str, list[str]] = {}
    for record in log.split(b"\0"):
        name, _, message = record.partition(b"\n")
        for checkpoint in dict.fromkeys(_TRAILER.findall(message)):
            commits.setdefault(checkpoint.decode(), []).append(name.decode())
    return commits


def _tip(state: bytes) -> str:
    """The commit of the checkpoint branch: the own one, else that of a remote."""
    tips = {name: commit for commit, _, name in (line.partition(" ") for line in os.fsdecode(state).split("\n"))}
    own = tips.get(f"refs/heads/{BRANCH}")
    for name in sorted(tips):
        if own is None and name.startswith("refs/remotes/") and name.endswith(f"/{BRANCH}"):
            own = tips[name]
    if own is None:
        raise FileNotFoundError(errno.ENOENT, f"the repository has no branch {BRANCH}; `git fetch` may bring it")
    return own


def _copies(tree: bytes) -> list[_Copy]:
    """The copies in the output of ``ls-tree -r -z -l``."""
    copies: dict[tuple[str, int], _Copy] = {}
    for line in tree.split(b"\0"):
        if (match := _BLOB.fullmatch(line)) is None:
            continue
        name, size, *digits = (part.decode() for part in match.group(1, 2, 3, 4))
        key = "".join(digits), int(match[5])
        copy = copies.setdefault(key, _Copy(*key))
        if match[6]:
            copy.metadata = name
        else:
            copy.size += int(size) + bool(copy.parts) if size.isdigit() else 0
            copy.lacks |= not size.isdigit()
            copy.parts[match[7] or _MAIN] = name
    return [*copies.values()]


def _session(copy: _Copy, group: Sequence[_Copy], commits: Mapping[str, Sequence[str]]) -> _Session:
    """A session from its longest copy and all copies."""
    copies = sorted(group, key=attrgetter("created"))
    checkpoints = [
        {
            "checkpoint": member.checkpoint,
            "commits": [*commits.get(member.checkpoint, ())],
            "created_at": member.facts.created_at,
        }
        for member in copies
    ]
    own = commits.get(copy.checkpoint, ())
    attributes: dict[str, Any] = {
        "checkpoint": copy.checkpoint,
        "commit": own[0] if own else None,
        "agent": copy.facts.agent,
        "branch": copy.facts.branch,
        "checkpoints": checkpoints,
    }
    facts = Facts(
        (f"checkpoint:{copy.checkpoint}", *(f"commit:{name}" for name in own[:1])),
        {"entire": {name: value for name, value in attributes.items() if value}},
        tuple((name, other.created) for other in copies for name in commits.get(other.checkpoint, ())),
    )
    objects = tuple(copy.parts[part] for part in sorted(copy.parts))
    version = crc32(msgspec.json.encode(facts))
    inode = int(objects[0][:15], 16)
    return _Session(objects, Stat(version, inode, copy.size, int(copy.created * 1e9)), facts)


class CheckpointFile(BaseFile):
    """The log of a session. It never changes: a later copy is another file at the same path."""

    __slots__ = ("_session", "_source")

    moving = False

    def __init__(self, source: CheckpointSource, path: str, session: _Session | None) -> None:
        super().__init__(path, None if session is None else session.stat)
        self._source, self._session = source, session
        if session is not None:
            self.memo[FACTS] = session.facts

    def read(self, offset: int, size: int) -> bytes:
        if self._session is None:
            self._fail()
        return self._source.log(self._session.objects)[offset : offset + size]

    def _find_stat(self) -> Stat:
        self._fail()

    def _fail(self) -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "no such session in the checkpoints")

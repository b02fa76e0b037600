"""Read-only ``git``, only in the repository that the user names: commits, lines, who wrote a line, objects.

The configuration of a repository can name programs (monitors, diff drivers, text converters, signature checkers); the
flags and the environment here keep git from running them, and from fetching what the repository lacks.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from tracetui.errors import UsageError
from tracetui.processes import program_path

SECONDS: Final = 60
"""Longest time for one call of git."""
_SAFE: Final = (
    *("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"),
    *("--no-optional-locks", "--no-pager"),
)
_COMMIT: Final = "%H%x00%at%x00%ct%x00%an%x00%ae%x00%s"
_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_LINE: Final = re.compile(rb"([0-9a-f]{40,64}) \d+ (\d+)")
_OWN_VARIABLES: Final = frozenset({"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"})


class Commit(msgspec.Struct, frozen=True):
    """A commit, as git has it. Times are UTC seconds."""

    hash: str
    authored_at: float
    committed_at: float
    author: str
    subject: str

    @property
    def is_by_bot(self) -> bool:
        """Whether its author is an app of a code host."""
        return "[bot]" in self.author


class CommitLine(msgspec.Struct, frozen=True):
    """A line that a commit adds or removes."""

    path: str
    number: int
    """In the new file; in the old one if the line is removed."""
    text: str


class BlamedLine(msgspec.Struct, frozen=True):
    """A line of a file, with the commit that wrote it."""

    number: int
    text: str
    commit: Commit
    path: str
    """The path of the file when the line was written."""


class Git:
    """The repository with the root `root`."""

    def __init__(self, root: str) -> None:
        self.root = root

    def commit(self, name: str) -> Commit | None:
        """Return the commit with that hash, branch or other name; None if there is none."""
        if not name or name.startswith("-") or "\0" in name:
            return None
        output = self._output("log", "-1", f"--format={_COMMIT}", "--end-of-options", name, "--")
        return None if output is None else _commit(output.rstrip(b"\n"))

    def changes(self, commit: Commit) -> tuple[list[CommitLine], list[CommitLine]]:
        """Return the lines that a commit adds and those that it removes. A merge has none."""
        output = self._output(
            "show", "--format=", "-U0", "-M", "--no-ext-diff", "--no-textconv", "--no-color",
            "--src-prefix=a/", "--dst-prefix=b/", commit.hash, "--",
        )  # fmt: skip
        added: list[CommitLine] = []
        removed: list[CommitLine] = []
        for line, is_added in _changed_lines(output or b""):
            (added if is_added else removed).append(line)
        return added, removed

    def blame(self, path: str, *, moves: bool = True) -> list[BlamedLine]:
        """Return the lines of a file in ``HEAD``; empty if it isn't there.

        With `moves`, lines that were moved or copied keep the commit that wrote them first.
        """
        moved = ("-M", "-C") if moves else ()
        output = self._output("blame", "--line-porcelain", *moved, "--no-textconv", "HEAD", "--", path)
        return [*_blamed_lines(output or b"")]

    def _output(self, *arguments: str) -> bytes | None:
        """Run a command; None if it fails. Raises `UsageError` if git is missing, slow, or refuses the repository."""
        try:
            result = subprocess.run(  # noqa: S603 — no shell, fixed flags, in the repository that the user named
                command(*arguments),
                cwd=self.root,
                env=environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"git {arguments[0]} gave no answer within {SECONDS} s") from None
        if b"dubious ownership" in result.stderr:
            raise UsageError(f"git refuses the repository {self.root}: another user owns it (see safe.directory)")
        return result.stdout if result.returncode == 0 else None


def command(*arguments: str) -> list[str]:
    """Return the words that run a git command read-only. Raises `UsageError` if git is missing."""
    git = program_path("git")
    if git is None:
        raise UsageError("this needs git, which isn't installed")
    return [git, *_SAFE, *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a git command: nothing of git's own, no prompt, no connection, no helper of one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _OWN_VARIABLES}
    safe = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # older versions ignore that, and would run programs of the configuration
        "GIT_OPTIONAL_LOCKS": "0",
    }
    return kept | {"LC_ALL": "C"} | safe


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _commit(output: bytes) -> Commit | None:
    fields = output.split(b"\0", 5)
    if len(fields) < 6:
        return None
    name, authored, committed, author, mail, subject = map(_text, fields)
    return Commit(name, float(authored), float(committed), f"{author} <{mail}>", subject)


def _changed_lines(output: bytes) -> Iterator[tuple[CommitLine, bool]]:
    """The lines of a diff without context, with whether each is added."""
    paths = ["", ""]
    numbers = [0, 0]
    remaining = [0, 0]
    """Lines of the hunk that follow: their texts may look like headers."""
    for line in output.split(b"\n"):
        side = {b"-": 0, b"+": 1}.get(line[:1])
        if side is not None and remaining[side]:
            remaining[side] -= 1
            yield CommitLine(paths[side], numbers[side], _text(line[1:])), side == 1
            numbers[side] += 1
        elif line.startswith((b"--- ", b"+++ ")) and side is not None:
            paths[side] = _path(line[4:].rstrip(b"\t"))[2:]
        elif match := _HUNK.match(line):
            numbers = [int(match[1]), int(match[2])]
            remaining = [int(count or 1) for count in _counts(line)]


def _counts(line: bytes) -> list[bytes]:
    ranges = line.split(b" ")[1:3]
    return [text.partition(b",")[2] for text in ranges]


_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES: Final[Mapping[bytes, bytes]] = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f"}


def _path(field: bytes) -> str:
    """A path as git prints it: quoted if it has special characters."""
    if field.startswith(b'"') and field.endswith(b'"'):
        field = _ESCAPE.sub(
            lambda match: bytes([int(match[1], 8) & 255]) if len(match[1]) > 1 else _ESCAPES.get(match[1], match[1]),
            field[1:-1],
        )
    return os.fsdecode(field)


def _blamed_lines(output: bytes) -> Iterator[BlamedLine]:
    """The lines of ``blame --line-porcelain``."""
    commits: dict[str, Commit] = {}
    name, number = "", 0
    fields: dict[bytes, bytes] = {}
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            if name not in commits:
                author = f"{_text(fields.get(b'author', b''))} {_text(fields.get(b'author-mail', b''))}"
                authored, committed = (float(fields.get(key, b"0")) for key in (b"author-time", b"committer-time"))
                commits[name] = Commit(name, authored, committed, author, _text(fields.get(b"summary", b"")))
            path = _path(fields.get(b"filename", b""))
            yield BlamedLine(number, _text(line[1:]), commits[name], path)
            name, fields = "", {}
        elif not name:
            if match := _LINE.match(line):
                name, number = match[1].decode(), int(match[2])
        else:
            key, _, value = line.partition(b" ")
            fields[key] = value

"""Stores verdicts, notes, tags and marks in one append-only file of the user.

``$XDG_STATE_HOME/tracetui/verdicts.jsonl`` (else ``~/.local/state``). docs/verdicts.md documents its format.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import select
import stat as modes
import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from tracetui.errors import NotWritten, UsageError
from tracetui.model import Problem, RunSummary
from tracetui.redact import Redactor
from tracetui.store.judgement import (
    MAX_NOTE,
    MAX_TAG,
    SCHEMA,
    CauseRef,
    Event,
    Judgement,
    Judgements,
    Mark,
    Verdict,
    after,
    event_of,
    identity,
    line_of,
)
from tracetui.store.settings import verdicts_file
from tracetui.text import Clean, exact, one_line

# ---- an append-only file of lines: several processes append to it, and readers follow it as it grows


MAX_FILE: Final = 256 << 20
"""Maximum bytes of the file: about a million decisions."""
MAX_LINE: Final = 64 * 1024
"""Maximum bytes read of a line; one more of a longer line, so that it is recognizable."""
LOCK_SECONDS: Final = 2.0
"""How long to wait for the lock of another instance."""

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_TAIL: Final = 256
"""Bytes before the read offset that identify the file when it grows."""

_State = tuple[int, int, int, int]


class Lines(msgspec.Struct, frozen=True):
    """New lines without newlines, numbered from `first`. `restarted`: lines read earlier are void."""

    restarted: bool
    first: int
    lines: list[bytes]
    rest: bytes = b""
    """An incomplete last line: its writer is still writing, or was killed."""


class Journal:
    """The file at `path`: created on the first write, mode 0600, never a link or device."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._start()

    def _start(self) -> None:
        self._state: _State | None = None
        self._offset = 0
        self._count = 0
        self._tail = b""

    def read(self) -> Lines | None:
        """Read the lines since the last call; None, at the cost of one stat, if the file is unchanged.

        Raises `OSError` if it can't be read; the next call then returns the lines.
        """
        try:
            if _state_of(os.lstat(self.path)) == self._state:
                return None
            fd = _opened(self.path, _READ)
        except FileNotFoundError:
            was_read = self._state is not None
            self._start()
            return Lines(restarted=True, first=1, lines=[]) if was_read else None
        try:
            return self.read_from(fd)
        finally:
            os.close(fd)

    def read_from(self, fd: int) -> Lines:
        """As `read`, of the file open as `fd`."""
        now = os.fstat(fd)
        if now.st_size > MAX_FILE:
            raise OSError(errno.EFBIG, f"larger than {MAX_FILE >> 20} MB")
        restarted = self._state is not None and not self._continues(fd, now)
        if restarted:
            self._start()
        first, lines = self._count + 1, []
        rest, offset = b"", self._offset
        while offset < now.st_size and (data := os.pread(fd, min(_CHUNK, now.st_size - offset), offset)):
            start = 0
            while (end := data.find(b"\n", start)) >= 0:
                lines.append((rest + data[start:end])[: MAX_LINE + 1])
                rest, start = b"", end + 1
                self._offset = offset + start
            rest = (rest + data[start:])[: MAX_LINE + 1]
            offset += len(data)
        self._count += len(lines)
        self._tail = os.pread(fd, min(_TAIL, self._offset), max(0, self._offset - _TAIL))
        self._state = _state_of(now)
        return Lines(restarted, first, lines, rest)

    def _continues(self, fd: int, now: os.stat_result) -> bool:
        """Whether the file only grew since the last read."""
        state = _state_of(now)
        if state == self._state:
            return True
        if self._state is None or self._state[:2] != state[:2] or now.st_size <= self._state[2]:
            return False  # also if it was written to without growing
        return os.pread(fd, len(self._tail), self._offset - len(self._tail)) == self._tail

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Context: the file open for `append` under an exclusive lock.

        Raises `NotWritten` if it can't be opened or locked, and for any `OSError` inside.
        """
        try:
            os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
            fd = self._open_locked()
            try:
                yield fd
            finally:
                os.close(fd)
        except OSError as error:
            raise NotWritten(f"{self.path}: {reason_of(error)}; nothing was saved") from error

    def _open_locked(self) -> int:
        """Open and lock the file; it may be replaced while waiting for the lock."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            fd = _opened(self.path, _APPEND)
            try:
                _lock(fd, deadline)
                if os.path.samestat(os.fstat(fd), os.lstat(self.path)):
                    return fd
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "replaced repeatedly")

    def append(self, fd: int, line: bytes) -> None:
        """Append a line (with its newline) in one write, or nothing; an incomplete last line is ended first."""
        before = os.fstat(fd).st_size
        data = line if before == 0 or os.pread(fd, 1, before - 1) == b"\n" else b"\n" + line
        try:
            while data:  # on a full disk the second write raises the error
                data = data[os.write(fd, data) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, before)
            raise


def _opened(path: str, flags: int) -> int:
    """Open a regular file. Raises `OSError`, also for anything else."""
    fd = os.open(path, flags, 0o600)
    if modes.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file")


def _lock(fd: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "locked by another instance") from None
        select.select((), (), (), 0.002)


def _state_of(status: os.stat_result) -> _State:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def reason_of(error: OSError) -> str:
    """The reason of an OS error as text."""
    return "is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)


MAX_PROBLEMS: Final = 100
"""Unreadable lines reported one by one; the rest are only counted."""
# ---- the decisions in it


_TITLE: Final = 120

Subject = RunSummary | CauseRef


class Sidecar:
    """The verdicts, notes, tags and marks in `folder`. Not thread-safe.

    `roots` are open trace directories, which are never written to. Methods that write raise `NotWritten` if the file
    can't be written and `UsageError` for invalid input; nothing changes then. An unreadable file is reported in
    `problems`.
    """

    def __init__(
        self,
        folder: Path | None = None,
        roots: Sequence[str] = (),
        *,
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        usual = verdicts_file()
        self.folder = file.parent if file is not None else folder or usual.parent
        self.path = str(file or self.folder / usual.name)
        self.revision = 0
        """Increases with every change of the stored state."""
        self._roots = roots
        self._clock = clock
        self._journal = Journal(self.path)
        self._mine: list[list[str]] = []
        """Events of every change of this instance."""
        self._unreadable: Problem | None = None
        self._begin()
        self.refresh()

    def _begin(self) -> None:
        self._state = Judgements()
        self._wrong: list[Problem] = []
        self._more_problems = 0
        self._unfinished: Problem | None = None

    # ---- reading

    @property
    def starts(self) -> Set[int | None]:
        """Starts of the runs with decisions of their own (`start_of`); other runs inherit those of their cause."""
        return self._state.starts

    def of(self, run: RunSummary, *causes: str | None) -> Judgement:
        """The decisions on a run with these causes (`Judgements.of`)."""
        return self._state.of(run, *causes)

    def of_causes(self, *causes: str | None) -> Judgement:
        """The decisions on several digests of one cause (`Judgements.of_causes`)."""
        return self._state.of_causes(*causes)

    @property
    def decided_causes(self) -> list[str]:
        """Digests of all causes with a verdict, note or tag, also one that was undone."""
        return self._state.decided_causes

    def merged_into(self, cause: str) -> str:
        """The cause that this one was merged into, itself if it was not."""
        return self._state.merged_into(cause)

    def split_part(self, cause: str) -> str:
        """The part that a cause is split by; empty if it is not split."""
        return self._state.split_part(cause)

    @property
    def regrouped(self) -> bool:
        """Whether causes were merged or split."""
        return self._state.regrouped

    @property
    def has_old_digests(self) -> bool:
        """Whether something was decided on a signature of version 0.1."""
        return self._state.has_old_digests

    @property
    def has_causes(self) -> bool:
        """Whether something was decided on a cause."""
        return self._state.has_causes

    @property
    def has_tags(self) -> bool:
        """Whether the user ever gave a tag, also one that was undone."""
        return self._state.has_tags

    def marked(self, letter: str) -> Mark | None:
        """The mark of a letter, None if unset; `Mark.among` finds its run."""
        return self._state.mark(letter)

    def marks(self) -> list[Mark]:
        """All marks, by letter."""
        return self._state.marks()

    def tags(self) -> list[str]:
        """Every tag ever added and not undone, sorted."""
        return self._state.tags()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Lines of the file that could not be read; the others apply."""
        more = Problem(self.path, "", f"{self._more_problems} more unreadable lines") if self._more_problems else None
        return tuple(
            problem for problem in (self._unreadable, *self._wrong, more, self._unfinished) if problem is not None
        )

    # ---- writing

    def judge(self, subject: Subject, verdict: Verdict | None) -> None:
        """Set the verdict of a run or cause; None removes it (a run then inherits that of its cause)."""
        self._record(do="verdict", verdict=verdict, **_about(subject))

    def judge_all(self, subjects: Sequence[Subject], verdict: Verdict | None) -> None:
        """Set the verdict of several runs or causes; `undo` undoes all of it."""
        changes: list[str] = []
        self._mine.append(changes)
        for subject in subjects:
            changes.append(self._append(do="verdict", verdict=verdict, **_about(subject)))  # noqa: PERF401

    def note(self, subject: Subject, text: str) -> None:
        """Replace the note; an empty text removes it."""
        if len(text) > MAX_NOTE:
            raise UsageError(f"a note has at most {MAX_NOTE} characters; this one has {len(text)}")
        self._record(do="note", note=text, **_about(subject))

    def tag(self, subject: Subject, tag: str) -> None:
        """Add a tag: one word."""
        self._record(do="tag", tag=_word(tag), **_about(subject))

    def untag(self, subject: Subject, tag: str) -> None:
        """Remove a tag. A tag of the cause stays on its runs."""
        self._record(do="untag", tag=_word(tag), **_about(subject))

    def merge(self, cause: CauseRef, into: CauseRef | None) -> None:
        """Treat a cause as the same as another; None takes the merge back."""
        self._record(do="merge", into=into.digest if into is not None else "", **_about(cause))

    def split(self, cause: CauseRef, by: str) -> None:
        """Split a cause by what varies (`analysis.cause.Failure.part`); an empty `by` takes the split back."""
        self._record(do="split", by=by, **_about(cause))

    def is_allowed(self, fingerprint: str) -> bool:
        """Whether findings of the audit with that rule and target are allowed."""
        return self._state.is_allowed(fingerprint)

    def allow(self, fingerprint: str, title: str, *, is_allowed: bool) -> None:
        """Allow findings of the audit by rule and target, or no longer; `title`: both, secrets masked."""
        self._record(do="allow" if is_allowed else "disallow", signature=fingerprint, title=title[:_TITLE])

    def mark(self, letter: str, run: RunSummary, span: str | None = None) -> None:
        """Set the mark of a letter or digit to a run or a span of it."""
        if len(letter) != 1 or not (letter.isascii() and letter.isalnum()):
            raise UsageError(f"a mark is one letter or digit, not {exact(letter, 20)!r}")
        self._record(do="mark", letter=letter, span=span, **_about(run))

    @property
    def can_undo(self) -> bool:
        """Whether this instance made a change that it did not undo."""
        return bool(self._mine)

    def undo(self) -> Clean | None:
        """Undo the last change of this instance that is still in effect; returns a message, None if there is none.

        Changes by other instances and by earlier sessions are not undone.
        """
        self.refresh()
        while self._mine:
            last = [event for own in self._mine[-1] if (event := self._state.event(own)) is not None]
            for event in reversed(last):
                self._append(do="undo", undoes=event.event)
            self._mine.pop()
            if last:
                more = f" and {len(last) - 1} more" if len(last) > 1 else ""
                return one_line(Redactor().header(f"Undone: {_describe(last[0])}{more}"))
        return None

    def _record(self, **fields: Any) -> None:
        self._mine.append([self._append(**fields)])

    def _append(self, **fields: Any) -> str:
        """Append one event, later than all others in the file, and read it back: the file is the source of truth."""
        self._check_outside()
        with self._journal.locked() as fd:
            self._apply(self._journal.read_from(fd))
            at = after(self._clock(), self._state.last)
            event = Event(at=at, event=secrets.token_hex(8), schema=SCHEMA, **fields)
            line = line_of(event)
            try:
                event_of(line.rstrip(b"\n"))
            except ValueError as error:
                raise UsageError(f"this can't be saved: {error}") from error
            self._journal.append(fd, line)
            self._apply(self._journal.read_from(fd))
        return event.event

    def _check_outside(self) -> None:
        folder = Path(os.path.realpath(self.folder))
        for root in self._roots:
            if folder.is_relative_to(os.path.realpath(root)):
                raise UsageError(
                    f"verdicts would be stored in {self.folder}, inside the trace directory {root}, which is never "
                    "written to; set XDG_STATE_HOME to another directory"
                )

    # ---- changes by other instances

    def refresh(self) -> bool:
        """Read new events; returns whether anything changed. Costs one stat if the file is unchanged."""
        before = self.revision, self._unreadable
        try:
            lines = self._journal.read()
            self._unreadable = None
        except OSError as error:
            lines, self._unreadable = None, Problem(self.path, "", reason_of(error))
        if lines is not None:
            self._apply(lines)
        self.revision += self._unreadable != before[1]
        return self.revision != before[0]

    def _apply(self, new: Lines) -> None:
        if new.restarted:
            self._begin()
        unfinished, self._unfinished = self._unfinished, None
        for number, line in enumerate(new.lines, new.first):
            problem = self._read(number, line)
            if problem is not None and len(self._wrong) < MAX_PROBLEMS:
                self._wrong.append(problem)
            else:
                self._more_problems += problem is not None
        if new.rest:  # an editor may omit the final newline; the line is read again once it has one
            self._unfinished = self._read(new.first + len(new.lines), new.rest)
        self.revision += bool(new.restarted or new.lines or new.rest or unfinished)

    def _read(self, number: int, line: bytes) -> Problem | None:
        if not line.strip():
            return None
        try:
            if len(line) > MAX_LINE:
                raise ValueError(f"longer than {MAX_LINE // 1024} KB")
            self._state.add(event_of(line))
        except RecursionError:
            return Problem(self.path, f"line {number}", "nested too deeply")
        except ValueError as error:
            return Problem(self.path, f"line {number}", str(error))
        return None


def _about(subject: Subject) -> dict[str, Any]:
    """The subject of an event, with a title for human readers; no prompt or error text, which may be secret."""
    if isinstance(subject, RunSummary):
        return {"run": identity(subject), "title": subject.name[:_TITLE]}
    return {"signature": subject.digest, "title": f"{subject.id} {subject.title}".strip()[:_TITLE]}


def _word(tag: str) -> str:
    if not tag or len(tag) > MAX_TAG or tag != "".join(tag.split()):
        raise UsageError(f"a tag is one word of at most {MAX_TAG} characters")
    return tag


def _describe(event: Event) -> str:
    """An event as text."""
    if event.do == "mark":
        return f"mark {event.letter}"
    change = {
        "verdict": f"verdict {event.verdict}" if event.verdict else "remove verdict",
        "note": "note" if event.note else "remove note",
        "tag": f"tag {event.tag}",
        "untag": f"remove tag {event.tag}",
        "merge": "merge" if event.into else "remove merge",
        "split": "split" if event.by else "remove split",
        "allow": "allow",
        "disallow": "don't allow",
    }[event.do]
    return f"{change} on {event.title}" if event.title else change

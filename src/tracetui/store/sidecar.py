"""Stores verdicts, notes, tags and marks in one append-only file of the user.

``$XDG_STATE_HOME/tracetui/verdicts.jsonl`` (else ``~/.local/state``). docs/verdicts.md documents its format.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any, Final

from tracetui.errors import UsageError
from tracetui.model import Problem, RunSummary
from tracetui.store.journal import MAX_LINE, Journal, Lines, reason_of
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
from tracetui.text import Clean, one_line

MAX_PROBLEMS: Final = 100
"""Unreadable lines reported one by one; the rest are only counted."""
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
    def runs(self) -> Set[str]:
        """Ids of runs with a judgment of their own, as stored; other runs inherit that of their cause."""
        return self._state.runs

    def of(self, run: RunSummary, *causes: str | None) -> Judgement:
        """The decisions on a run with these causes (`Judgements.of`)."""
        return self._state.of(run, *causes)

    def of_causes(self, *causes: str | None) -> Judgement:
        """The decisions on several digests of one cause (`Judgements.of_causes`)."""
        return self._state.of_causes(*causes)

    @property
    def judged_causes(self) -> list[str]:
        """Digests of all causes with a verdict, note or tag, also one that was undone."""
        return self._state.judged_causes

    def merged_into(self, cause: str) -> str:
        """The cause that this one was merged into, itself if it was not."""
        return self._state.merged_into(cause)

    def split_by(self, cause: str) -> str:
        """The part that a cause is split by; empty if it is not split."""
        return self._state.split_by(cause)

    @property
    def regrouped(self) -> bool:
        """Whether causes were merged or split."""
        return self._state.regrouped

    @property
    def has_old_digests(self) -> bool:
        """Whether something was decided on a signature of version 0.1."""
        return self._state.has_old_digests

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
        return tuple(one for one in (self._unreadable, *self._wrong, more, self._unfinished) if one is not None)

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

    def mark(self, letter: str, run: RunSummary, span: str | None = None) -> None:
        """Set the mark of a letter or digit to a run or a span of it."""
        if len(letter) != 1 or not (letter.isascii() and letter.isalnum()):
            raise UsageError(f"a mark is one letter or digit, not {one_line(letter, 20)!r}")
        self._record(do="mark", letter=letter, span=span, **_about(run))

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
                return one_line(f"Undone: {_describe(last[0])}{more}")
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
        left, self._unfinished = self._unfinished, None
        for number, line in enumerate(new.lines, new.first):
            problem = self._read(number, line)
            if problem is not None and len(self._wrong) < MAX_PROBLEMS:
                self._wrong.append(problem)
            else:
                self._more_problems += problem is not None
        if new.rest:  # an editor may omit the final newline; the line is read again once it has one
            self._unfinished = self._read(new.first + len(new.lines), new.rest)
        self.revision += bool(new.restarted or new.lines or new.rest or left)

    def _read(self, number: int, line: bytes) -> Problem | None:
        if not line.strip():
            return None
        try:
            if len(line) > MAX_LINE:
                raise ValueError(f"longer than {MAX_LINE // 1024} KB")
            self._state.add(event_of(line))
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
    }[event.do]
    return f"{change} on {event.title}" if event.title else change

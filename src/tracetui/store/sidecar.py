"""Where verdicts, notes, tags and marks are kept: one file of the user's own, to which lines are only ever added.

``$XDG_STATE_HOME/tracetui/verdicts.jsonl`` (else ``~/.local/state``). docs/verdicts.md describes it for those who read
it, merge it or keep it under git.
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
from tracetui.text import Clean, one_line

NAME: Final = "verdicts.jsonl"
MAX_PROBLEMS: Final = 100
"""Lines that are told one by one; of more, only how many they are."""
_TITLE: Final = 120

Subject = RunSummary | CauseRef


def state_folder() -> Path:
    """``$XDG_STATE_HOME/tracetui``, else ``~/.local/state/tracetui``."""
    base = os.environ.get("XDG_STATE_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "tracetui"


class Sidecar:
    """What was decided, as kept in `folder`; used by one thread.

    `roots` are the directories of traces that are open on this machine: nothing is written in them. What writes raises
    `NotWritten` where the file can't be written, `UsageError` for what makes no sense; then nothing has changed. A file
    that can't be read is one of the `problems`.
    """

    def __init__(
        self,
        folder: Path | None = None,
        roots: Sequence[str] = (),
        *,
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = file.parent if file is not None else folder or state_folder()
        self.path = str(file or self.folder / NAME)
        self.revision = 0
        """Grows with every change of what holds."""
        self._roots = roots
        self._clock = clock
        self._journal = Journal(self.path)
        self._mine: list[str] = []
        self._unreadable: Problem | None = None
        self._begin()
        self.refresh()

    def _begin(self) -> None:
        self._state = Judgements()
        self._wrong: list[Problem] = []
        self._untold = 0
        self._unfinished: Problem | None = None

    # ---- what holds

    @property
    def runs(self) -> Set[str]:
        """Ids of runs of which something was ever said, as they are kept; of any other only its signature can tell."""
        return self._state.runs

    def of(self, run: RunSummary, *causes: str | None) -> Judgement:
        """The decisions on a run with these causes (`Judgements.of`)."""
        return self._state.of(run, *causes)

    def of_causes(self, *causes: str | None) -> Judgement:
        """The decisions on several digests of one cause (`Judgements.of_causes`)."""
        return self._state.of_causes(*causes)

    def merged_into(self, cause: str) -> str:
        """The cause that this one was merged into, itself if it was not."""
        return self._state.merged_into(cause)

    def split_by(self, cause: str) -> str:
        """What a cause is split by; empty if it is not split."""
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
        """Where a letter leads, None if nowhere; `Mark.among` finds the run."""
        return self._state.mark(letter)

    def marks(self) -> list[Mark]:
        """All marks, by letter."""
        return self._state.marks()

    def tags(self) -> list[str]:
        """Every tag that was ever given and not undone, sorted."""
        return self._state.tags()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What of the file could not be read; the rest holds."""
        more = Problem(self.path, "", f"{self._untold} more lines can't be read") if self._untold else None
        return tuple(one for one in (self._unreadable, *self._wrong, more, self._unfinished) if one is not None)

    # ---- what is done

    def judge(self, subject: Subject, verdict: Verdict | None) -> None:
        """Give a verdict on a run or a signature; None takes it back (that of a run's signature then holds again)."""
        self._keep(do="verdict", verdict=verdict, **_about(subject))

    def note(self, subject: Subject, text: str) -> None:
        """Put a note in place of the one there was; an empty one takes it away."""
        if len(text) > MAX_NOTE:
            raise UsageError(f"a note has at most {MAX_NOTE} characters; this one has {len(text)}")
        self._keep(do="note", note=text, **_about(subject))

    def tag(self, subject: Subject, tag: str) -> None:
        """Add a tag: one word."""
        self._keep(do="tag", tag=_word(tag), **_about(subject))

    def untag(self, subject: Subject, tag: str) -> None:
        """Take a tag away. One that the signature has stays with its runs."""
        self._keep(do="untag", tag=_word(tag), **_about(subject))

    def merge(self, cause: CauseRef, into: CauseRef | None) -> None:
        """Treat a cause as the same as another; None takes the merge back."""
        self._keep(do="merge", into=into.digest if into is not None else "", **_about(cause))

    def split(self, cause: CauseRef, by: str) -> None:
        """Split a cause by what varies (`analysis.cause.Failure.part`); an empty `by` takes the split back."""
        self._keep(do="split", by=by, **_about(cause))

    def mark(self, letter: str, run: RunSummary, span: str | None = None) -> None:
        """Let a letter or digit lead to a run, and to a span of it, wherever it led before."""
        if len(letter) != 1 or not (letter.isascii() and letter.isalnum()):
            raise UsageError(f"a mark is one letter or digit, not {one_line(letter, 20)!r}")
        self._keep(do="mark", letter=letter, span=span, **_about(run))

    def undo(self) -> Clean | None:
        """Make the last thing void that was done here and still holds; the sentence that says so, None if none does.

        What other instances did, and this one before it was started anew, is left alone.
        """
        self.refresh()
        while self._mine:
            last = self._state.event(self._mine[-1])
            if last is not None:
                self._append(do="undo", undoes=last.event)
            self._mine.pop()
            if last is not None:
                return one_line(f"Undone: {_said(last)}")
        return None

    def _keep(self, **fields: Any) -> None:
        self._mine.append(self._append(**fields))

    def _append(self, **fields: Any) -> str:
        """Write one event, later than all that the file holds, and read it back: only what is there holds."""
        self._stay_outside()
        with self._journal.locked() as fd:
            self._take(self._journal.read_from(fd))
            at = after(self._clock(), self._state.last)
            event = Event(at=at, event=secrets.token_hex(8), schema=SCHEMA, **fields)
            line = line_of(event)
            try:
                event_of(line.rstrip(b"\n"))
            except ValueError as error:
                raise UsageError(f"this can't be kept: {error}") from error
            self._journal.append(fd, line)
            self._take(self._journal.read_from(fd))
        return event.event

    def _stay_outside(self) -> None:
        folder = Path(os.path.realpath(self.folder))
        for root in self._roots:
            if folder.is_relative_to(os.path.realpath(root)):
                raise UsageError(
                    f"verdicts would be kept in {self.folder}, among the traces of {root}, where nothing is written; "
                    "set XDG_STATE_HOME to a folder elsewhere, or open a folder that does not contain it"
                )

    # ---- what others did

    def refresh(self) -> bool:
        """Take in what others wrote; True if something changed. Costs one stat where the file was not touched."""
        before = self.revision, self._unreadable
        try:
            lines = self._journal.read()
            self._unreadable = None
        except OSError as error:
            lines, self._unreadable = None, Problem(self.path, "", reason_of(error))
        if lines is not None:
            self._take(lines)
        self.revision += self._unreadable != before[1]
        return self.revision != before[0]

    def _take(self, new: Lines) -> None:
        if new.anew:
            self._begin()
        left, self._unfinished = self._unfinished, None
        for number, line in enumerate(new.lines, new.first):
            problem = self._read(number, line)
            if problem is not None and len(self._wrong) < MAX_PROBLEMS:
                self._wrong.append(problem)
            else:
                self._untold += problem is not None
        if new.rest:  # an editor may have left out the end of the last line; it is read again once it has one
            self._unfinished = self._read(new.first + len(new.lines), new.rest)
        self.revision += bool(new.anew or new.lines or new.rest or left)

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
    """What an event is about, with a title for the reader of the file; no prompt or error text, which may be secret."""
    if isinstance(subject, RunSummary):
        return {"run": identity(subject), "title": subject.name[:_TITLE]}
    return {"signature": subject.digest, "title": f"{subject.id} {subject.title}".strip()[:_TITLE]}


def _word(tag: str) -> str:
    if not tag or len(tag) > MAX_TAG or tag != "".join(tag.split()):
        raise UsageError(f"a tag is one word of at most {MAX_TAG} characters")
    return tag


def _said(event: Event) -> str:
    """What an event did, in words."""
    if event.do == "mark":
        return f"mark {event.letter}"
    what = {
        "verdict": f"verdict {event.verdict}" if event.verdict else "taking back a verdict",
        "note": "note" if event.note else "taking away a note",
        "tag": f"tag {event.tag}",
        "untag": f"taking away tag {event.tag}",
        "merge": "merge" if event.into else "taking back a merge",
        "split": "split" if event.by else "taking back a split",
    }[event.do]
    return f"{what}, of {event.title}" if event.title else what

"""Walk sources, detect formats, summarize: every file ends in exactly one class — listed, problem or ignored."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import NO, Format
from tracetui.formats.guard import problem_of
from tracetui.formats.harbor import logs
from tracetui.live import stray
from tracetui.model import Header, Ledger, Problem, RunRef, RunSummary
from tracetui.model.build import summary_of
from tracetui.model.ledger import total
from tracetui.sources.base import KEPT, SHARED, BudgetSpent, Entry, File, LinkLost, Source, Stat
from tracetui.sources.budget import Budget, is_spent
from tracetui.sources.budgeted import BudgetedFile

_MAIN_FILES: Final = "main files"
"""Key in `SHARED`: whether each version of a file lists the run of its parts."""
FIRST_RUNS: Final = 24
"""Runs of one file after which it is told what was found so far; then each time there are eight times as many."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one file turned out to be. `listed` if it has runs, else `problem` if it has problems, else `ignored`: so is
    one that is gone.
    """

    path: str
    format: str | None = None
    runs: tuple[RunSummary, ...] = ()
    problems: tuple[Problem, ...] = ()
    reason: str = ""
    """Why it was ignored, in words."""
    skipped: bool = False
    """True where the file was not opened: a link, a hidden or a deleted file, a folder that could not be walked …"""
    part_of: str = ""
    """Path of the main file of the run that this file is a part of: the run is listed there, and this one ignored."""
    near_miss: str = ""
    """What a file that no format claims looks like, if it looks like a trace: ``chat messages``."""
    whole: bool = True
    """False: the first runs of a file that holds many; what the whole file turned out to be follows."""
    size: int = 0
    """Bytes of the file, where a format has claimed it."""
    unread: bool = False
    """The budget of the list stage ended before the file did: only the deep pass reads what is in it."""

    @property
    def kind(self) -> str:
        """``listed``, ``problem`` or ``ignored``."""
        return "listed" if self.runs else "problem" if self.problems else "ignored"

    @property
    def unclaimed(self) -> bool:
        """Whether it was looked into and no format claims it: ignored, but no part of another file's run."""
        return self.kind == "ignored" and not (self.skipped or self.part_of or self.unread)

    @property
    def ledger(self) -> Ledger:
        """What was made of the bytes of the file and of others that its runs are in; of an ignored one nothing."""
        if self.kind == "ignored" or self.format is None:
            return Ledger()
        runs = total(run.ledger for run in self.runs)
        size = max(self.size, runs.size or 0)
        lost = sum(run.unread.size for run in self.runs if run.unread is not None)
        lost += sum(problem.lost or 0 for problem in self.problems)
        torn = runs.torn + sum(problem.torn for problem in self.problems)
        return Ledger(size, min(size, lost) if self.runs else size, runs.kinds, torn, runs.writers, runs.fields)


def scan(source: Source, roots: Iterable[str], *, deep: bool, only: Format | None = None) -> Iterator[Found]:
    """Every file below `roots`, in walking order. `only` forces one format instead of detection."""
    last: Format | None = None
    roots, shared = list(roots), dict[str, Any]()
    for entry in entries(source, roots):
        named = entry.path in roots
        found, last = look(source, entry, deep=deep, last=last, only=only, named=named, roots=roots, shared=shared)
        yield found


def entries(source: Source, roots: Iterable[str]) -> Iterator[Entry]:
    """Every name below `roots`; a file that an earlier root led to already is there to be skipped.

    Hard links below one root are two names of a file and both are read: each has an address of its own.
    """
    roots = list(roots)
    if len(roots) == 1:
        yield from source.walk(roots[0])
        return
    before: dict[Hashable, str] = {}
    for root in roots:
        here: dict[Hashable, str] = {}
        for entry in source.walk(root):
            if entry.skipped is not None or entry.stat is None:
                yield entry
                continue
            identity: Hashable = (entry.stat.device, entry.stat.inode) if entry.stat.inode else entry.path
            here[identity] = entry.path
            if identity not in before:
                yield entry
            elif before[identity] != entry.path:
                yield Entry(entry.path, skipped="the same file as one before it")
        before |= here


def look(
    source: Source,
    entry: Entry,
    *,
    deep: bool,
    last: Format | None = None,
    only: Format | None = None,
    tell: Callable[[Found], None] | None = None,
    kept: dict[str, Any] | None = None,
    named: bool = False,
    roots: Collection[str] = (),
    shared: dict[str, Any] | None = None,
    budget: Budget | None = None,
) -> tuple[Found, Format | None]:
    """What `entry` turned out to be, and its format (to be asked first for the next file).

    `tell` is called with the first runs of a file that holds many, while the rest is still read. `kept` is a dict, the
    same each time, for a file that is read again while it changes. A file that was `named` on its own
    is no part, nor is one whose main file is not below the `roots` that are listed. `shared` is a dict that is the
    same for all files of a walk (`SHARED`). With a `budget` no more is read than that, and `Found.unread` says if it
    did not do. Raises `LinkLost`.
    """
    if entry.skipped is not None:
        reason = entry.skipped or ""
        problems = (Problem(entry.path, "", reason),) if entry.failed else ()
        return Found(path=entry.path, problems=problems, reason=reason, skipped=True), last
    chosen: Format | None = None
    try:
        opened = source.open(entry.path, None if deep else entry.stat)  # the walk was just now, or long ago
        with opened if budget is None else BudgetedFile(opened, budget) as file:
            if kept is not None:
                file.memo[KEPT] = kept
            if shared is not None:
                file.memo[SHARED] = shared
            try:
                chosen = only or registry.detect(file, last)
                in_trial = None if named or only is not None else logs.main_file(file, chosen)
                if in_trial is not None and _is_within(in_trial, roots):
                    return _part(file, in_trial, chosen), last or chosen  # the next file is a log, as before this
                if chosen is None:
                    return _unclaimed(file), last
                main = None if named else guard.main_file(chosen, file)
                if main is not None and _is_within(main, roots) and _is_listed(source, main, file, chosen, only):
                    return _part(file, main, chosen), chosen
                return _summarize(file, entry, chosen, deep=deep, tell=tell), chosen
            except BudgetSpent:
                return _not_read_yet(file, entry, chosen), chosen or last
    except LinkLost:
        raise
    except (OSError, FormatError) as error:
        name = chosen.name if chosen is not None else None
        return Found(path=entry.path, format=name, problems=(problem_of(entry.path, error),)), last


def _part(file: File, main: str, chosen: Format | None) -> Found:
    name = None if chosen is None else chosen.name
    return Found(path=file.path, format=name, reason="part of another file's run", part_of=main)


def _is_within(path: str, roots: Collection[str]) -> bool:
    """Whether a path leads to one of the roots or into it, by their names alone; to anywhere where there are none."""
    path = os.path.abspath(path)
    return not roots or any(
        path == root or path.startswith(os.path.join(root, "")) for root in map(os.path.abspath, roots)
    )


def _is_listed(source: Source, main: str, part: File, chosen: Format, only: Format | None) -> bool:
    """Whether the run of a part is found in its main file: that is another one, it is there, the format claims it, and
    it isn't a part itself.

    Else the part is listed by itself, so that nothing is lost.
    """
    if os.path.normpath(main) == os.path.normpath(part.path):
        return False
    verdicts: dict[tuple[str, Stat], bool] = part.memo.get(SHARED, {}).setdefault(_MAIN_FILES, {})
    try:
        with source.open(main) as file:
            version = main, file.stat
            if version not in verdicts:
                claimed = only is not None or guard.sniff(chosen, file) > NO
                verdicts[version] = claimed and guard.main_file(chosen, file) is None
            return verdicts[version]
    except LinkLost:
        raise
    except (OSError, FormatError):
        return False


def _summarize(file: File, entry: Entry, chosen: Format, *, deep: bool, tell: Callable[[Found], None] | None) -> Found:
    runs: list[RunSummary] = []
    problems: list[Problem] = []
    told, due = 0, FIRST_RUNS
    try:
        for item in guard.summarize(chosen, file, deep=deep):
            if not isinstance(item, RunSummary):
                problems.append(item)
                continue
            runs.append(item)
            if tell is not None and len(runs) == due:
                tell(Found(path=file.path, format=chosen.name, runs=tuple(runs[told:]), whole=False))
                told, due = due, due * 8
        guard.part_folders(chosen, file.path)  # asked for later, by threads that cannot report a failure
    except BudgetSpent:
        pass  # what was summarized before stands
    except LinkLost:
        raise
    except (OSError, FormatError) as error:  # one bad file must not hide the good ones, nor a bad run those before it
        problems.append(problem_of(file.path, error))
    if is_spent(file):
        return _not_read_yet(file, entry, chosen, runs)
    if not runs and not problems:
        problems.append(Problem(file.path, "", f"claimed by {chosen.name}, but no run in it"))
    size = file.stat.size
    return Found(path=file.path, format=chosen.name, runs=tuple(runs), problems=tuple(problems), size=size)


def _not_read_yet(file: File, entry: Entry, chosen: Format | None, runs: Sequence[RunSummary] = ()) -> Found:
    """What the list stage says of a file that its budget does not suffice for: `runs`, else one row without values."""
    if chosen is None:
        return Found(path=file.path, reason="not read yet", unread=True)
    if not runs:
        header = Header(id=file.name.partition(".")[0], name=file.name)
        modified = 0.0 if entry.stat is None else entry.stat.mtime  # asking a packed file would unpack it
        ref = RunRef(chosen.name, file.path)
        runs = [summary_of(ref, header, None, modified_at=modified, moving=file.moving)]
    return Found(path=file.path, format=chosen.name, runs=tuple(runs), unread=True)


def _unclaimed(file: File) -> Found:
    try:
        with guard.BOUNDARY:  # it decodes documents that may be too deep, or larger than memory
            reason, shape = stray.look_at(file)
            return Found(path=file.path, reason=reason, near_miss=shape)
    except FormatError as error:
        return Found(path=file.path, problems=(problem_of(file.path, error),))

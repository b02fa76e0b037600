"""Walk sources, detect formats, summarize: every file ends in exactly one class — listed, problem or ignored."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import NO, Format
from tracetui.formats.guard import problem_of
from tracetui.live import stray
from tracetui.model import Ledger, Problem, RunSummary
from tracetui.model.ledger import total
from tracetui.sources.base import FOLLOWED, KEPT, Entry, File, LinkLost, Source

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
    """True where the file was not opened: a link, a hidden file, a folder that could not be walked …"""
    part_of: str = ""
    """Path of the main file of the run that this file is a part of: the run is listed there, and this one ignored."""
    whole: bool = True
    """False: the first runs of a file that holds many; what the whole file turned out to be follows."""
    size: int = 0
    """Bytes of the file, where a format has claimed it."""

    @property
    def kind(self) -> str:
        """``listed``, ``problem`` or ``ignored``."""
        return "listed" if self.runs else "problem" if self.problems else "ignored"

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
    roots = list(roots)
    for entry in entries(source, roots):
        found, last = look(source, entry, deep=deep, last=last, only=only, named=entry.path in roots, roots=roots)
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
    followed: bool = False,
    named: bool = False,
    roots: Collection[str] = (),
) -> tuple[Found, Format | None]:
    """What `entry` turned out to be, and its format (to be asked first for the next file).

    `tell` is called with the first runs of a file that holds many, while the rest is still read. `followed` says that
    the file is looked at again and again while it changes, and `kept` is a dict of its own then, the same each time. A
    file that somebody `named` is nobody's part, nor is one whose main file is not below the `roots` that are listed.
    Raises `LinkLost`.
    """
    if entry.skipped is not None:
        reason = entry.skipped or ""
        problems = (Problem(entry.path, "", reason),) if entry.failed else ()
        return Found(path=entry.path, problems=problems, reason=reason, skipped=True), last
    chosen: Format | None = None
    try:
        with source.open(entry.path, None if deep else entry.stat) as file:  # the walk was just now, or long ago
            if followed:
                file.memo[FOLLOWED] = True
            if kept is not None:
                file.memo[KEPT] = kept
            chosen = only or registry.detect(file, last)
            if chosen is None:
                return _unclaimed(file), last
            main = None if named else guard.main_file(chosen, file)
            is_part = main is not None and (not roots or _is_below(main, roots))
            if main is not None and is_part and _is_listed(source, main, file, chosen, only):
                return Found(
                    path=entry.path, format=chosen.name, reason="part of another file's run", part_of=main
                ), chosen
            return _summarize(file, chosen, deep=deep, tell=tell), chosen
    except LinkLost:
        raise
    except (OSError, FormatError) as error:
        name = chosen.name if chosen is not None else None
        return Found(path=entry.path, format=name, problems=(problem_of(entry.path, error),)), last


def _is_below(path: str, roots: Collection[str]) -> bool:
    """Whether a path leads to one of the roots or into it, by their names alone."""
    path = os.path.abspath(path)
    return any(path == root or path.startswith(os.path.join(root, "")) for root in map(os.path.abspath, roots))


def _is_listed(source: Source, main: str, part: File, chosen: Format, only: Format | None) -> bool:
    """Whether the run of a part is found in its main file: that is another one, it is there, and the format claims it.

    Else the part is listed by itself, so that nothing is lost.
    """
    if os.path.normpath(main) == os.path.normpath(part.path):
        return False
    try:
        with source.open(main) as file:
            return only is not None or guard.sniff(chosen, file) > NO
    except LinkLost:
        raise
    except (OSError, FormatError):
        return False


def _summarize(file: File, chosen: Format, *, deep: bool, tell: Callable[[Found], None] | None) -> Found:
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
        guard.part_folders(chosen, file.path)  # asked for later, by threads that can tell nobody that it fails
    except LinkLost:
        raise
    except (OSError, FormatError) as error:  # one bad file must not hide the good ones, nor a bad run those before it
        problems.append(problem_of(file.path, error))
    if not runs and not problems:
        problems.append(Problem(file.path, "", f"claimed by {chosen.name}, but no run in it"))
    size = file.stat.size
    return Found(path=file.path, format=chosen.name, runs=tuple(runs), problems=tuple(problems), size=size)


def _unclaimed(file: File) -> Found:
    try:
        with guard.BOUNDARY:  # it decodes documents that may be too deep, or larger than memory
            return Found(path=file.path, reason=stray.why(file))
    except FormatError as error:
        return Found(path=file.path, problems=(problem_of(file.path, error),))

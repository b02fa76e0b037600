"""Blame: reads the sessions, keeps what each wrote in the run cache, and answers for lines and commits.

The pages have hashes with a key of this user's cache, no text. An unchanged session isn't read again.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from difflib import SequenceMatcher
from typing import Final, NamedTuple

import msgspec

from tracetui.analysis.blame import NOBODY, Answer, LineAnswer, LineIndex, blame_commit, blame_lines
from tracetui.analysis.effects import CHANGES, Kind, run_effects
from tracetui.analysis.files import FileChanges, repository_path, standing_roots
from tracetui.analysis.written_lines import KEY_BYTES, WrittenLines, line_hash, written_lines
from tracetui.errors import UsageError
from tracetui.live.effects import effects_of, named_repository, oldest_first
from tracetui.live.jobs import Job, Step, read_steps
from tracetui.live.scan_cache import Reading, RunValues, version
from tracetui.model import Problem, Run, RunRef, RunSummary
from tracetui.sources.base import Source
from tracetui.sources.checkout import Checkout
from tracetui.sources.git import BlamedLine, Commit, CommitLine, Git
from tracetui.store.run_cache import Page, Storage

_PARTS: Final = ("analysis",)
"""Of this package: they decide what is in the pages, beside the readers."""


_MOST_LINES: Final = 50_000
"""Larger files are compared with HEAD without looking for moved blocks."""


class _Page(msgspec.Struct, frozen=True, array_like=True):
    written: WrittenLines
    problems: tuple[Problem, ...]


def _key(roots: Sequence[str], limit: int) -> bytes:
    """The key of the user's cache; a new one if there is none, or nothing can be stored."""
    new = secrets.token_bytes(KEY_BYTES)
    if not limit:
        return new
    with closing(Storage("blame key", roots, limit=limit)) as storage:
        if not storage.pages(""):
            storage.put([Page("", new)])
        return next(iter(storage.pages("").values()), new)


def new_index(runs: Iterable[RunSummary], roots: Sequence[str], limit: int) -> LineIndex:
    """Return an empty index for these runs, with the key of the cache; `roots` and `limit` as in `fill`."""
    index = LineIndex(_key(roots, limit))
    index.relate(runs)
    return index


def fill(
    index: LineIndex, source: Source, runs: Sequence[RunSummary], roots: Sequence[str], limit: int
) -> Generator[Step, None, None]:
    """Add the lines of runs below `roots`, from the user's cache of at most `limit` bytes; 0: it isn't used.

    New results are problems. Raises `LinkLost`.
    """
    key = index.key
    versions = f"{version(None, *_PARTS)} {line_hash('', key).hex()}"
    with RunValues(_Page, source, roots, limit, versions) as pages:
        for summary in oldest_first(runs):
            stored = pages.find(summary.ref)
            page = (yield from _read(stored, summary, key)) if isinstance(stored, Reading) else stored
            if page is not None:
                index.add(summary, page.written)
            yield Step(() if page is None else page.problems, done=1)


def _read(reading: Reading, summary: RunSummary, key: bytes) -> Generator[Step, None, _Page | None]:
    run = yield from read_steps(reading.source, summary.ref, reading.cache)
    if run is None:
        return None
    page = _Page(written_lines(run, effects_of(reading.source, run, reading.cache), key), run.problems)
    reading.store(page)
    return page


def build_index(
    source: Source,
    runs: Sequence[RunSummary],
    roots: Sequence[str],
    limit: int,
    problems: list[Problem],
    advance: Callable[[int], None],
) -> LineIndex:
    """Return the index of these runs, see `fill`; add what can't be read to `problems`. Raises `LinkLost`.

    Calls `advance` with the number of runs that were read since. What was read until an interrupt stays in the cache.
    """
    index, known = new_index(runs, roots, limit), set(problems)
    with closing(fill(index, source, runs, roots, limit)) as steps:
        for step in steps:
            problems += [problem for problem in step.new if isinstance(problem, Problem) and problem not in known]
            advance(step.done)
    return index


# ---- answers


class Target(NamedTuple):
    """What the user asks about: lines of a file, or a commit."""

    git: Git
    path: str | None
    """Relative to the root of the repository; None for a commit."""
    first: int = 1
    last: int = sys.maxsize
    commit: Commit | None = None


def answers(index: LineIndex, target: Target) -> tuple[Answer, list[LineAnswer]]:
    """The answer for the commit, and those for the lines of the target."""
    git = target.git
    if target.commit is not None:
        return blame_commit(index, target.commit, *git.changes(target.commit))
    path = target.path or ""
    committed = git.blame(path)
    lines = current_lines(committed, _text_now(git.root, path), path)
    unmoved = {line.number: line.commit.hash for line in git.blame(path, moves=False)}
    before = {line.number: unmoved.get(old.number, "") for line, old in lines if old is not None}
    wanted = [line for line, _ in lines if target.first <= line.number <= target.last]
    if not wanted and target.first > 1:
        raise UsageError(f"{path} has {len(lines)} lines")
    return NOBODY, blame_lines(index, path, wanted, before, git.changes)


def _text_now(root: str, path: str) -> str | None:
    """The text of the file now; None if there is none. Raises `UsageError` if it can't be looked at."""
    try:
        data = Checkout(root).read(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    return None if data is None else data.decode("utf-8", "replace")


def current_lines(
    committed: list[BlamedLine], text: str | None, path: str
) -> list[tuple[BlamedLine | CommitLine, BlamedLine | None]]:
    """The lines of the file now, with their line in ``HEAD``; one that isn't committed is a `CommitLine`."""
    if text is None:
        return [(line, line) for line in committed]
    now = text.split("\n")
    if now and now[-1] == "":
        now.pop()
    then = [line.text for line in committed]
    lines: list[tuple[BlamedLine | CommitLine, BlamedLine | None]] = [
        (CommitLine(path, number, line), None) for number, line in enumerate(now, 1)
    ]
    if max(len(now), len(then)) > _MOST_LINES:
        pairs = [(number, number) for number, (old, new) in enumerate(zip(then, now, strict=False)) if old == new]
    else:
        blocks = SequenceMatcher(None, then, now).get_matching_blocks() if then != now else [(0, 0, len(now))]
        pairs = [(a + number, b + number) for a, b, size in blocks for number in range(size)]
    for old, new in pairs:
        blamed = committed[old]
        lines[new] = BlamedLine(new + 1, blamed.text, blamed.commit, blamed.path), blamed
    return lines


# ---- a file in the app


class FileBlame(NamedTuple):
    """Who wrote the lines of a file."""

    path: str
    """In the repository."""
    lines: Sequence[LineAnswer]
    sessions: int
    """Number of sessions that were read."""
    oldest: float | None
    """Start of the oldest one: UTC seconds."""


class Subject(NamedTuple):
    """The file that a step read or changed."""

    run: RunRef
    span: str
    path: str | None = None
    """As in the trace; None: the first file of the step."""


def file_job(subject: Subject, runs: Sequence[RunSummary], roots: Sequence[str], limit: int) -> Job:
    """Return a job that answers for a file in the repository of the current folder; its result is a `FileBlame`, None
    until it is done. Without such a file it ends early, with the reason. `roots` and `limit` as in `fill`.
    """
    wanted = oldest_first(runs)
    blame: FileBlame | None = None

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal blame
        folder = named_repository(None, roots)
        if folder is None:
            raise UsageError("blame needs the repository: start tracetui in it")
        run = yield from read_steps(source, subject.run)
        path = _place_of(subject, run, folder)
        index = new_index(runs, roots, limit)
        yield from fill(index, source, wanted, roots, limit)
        _, lines = answers(index, Target(Git(folder), path))
        if not lines:
            raise UsageError(f"{path} isn't in the repository {folder}, or is empty")
        blame = FileBlame(path, lines, index.sessions, index.oldest)

    return Job("blame", len(wanted), work, lambda: blame)


def _place_of(subject: Subject, run: Run | None, folder: str) -> str:
    """The path in the repository at `folder` of the file of a step. Raises `UsageError` if there is none."""
    if run is None:
        raise UsageError("the run can't be read")
    effects, root = run_effects(run), os.path.realpath(folder)
    calls = [call for call in effects.calls if call.span.id == subject.span]
    paths = [
        effect.target for call in calls for effect in call.effects if effect.kind in CHANGES or effect.kind is Kind.READ
    ]
    path = subject.path or next(iter(paths), None)
    if path is None:
        raise UsageError("the step neither reads nor changes a file")
    changes = FileChanges()
    changes.add(run.summary, effects)
    standing = standing_roots(root, changes.histories(), Checkout(root).read, is_named=False)
    place = repository_path(root, standing, effects.root, path)
    if place is None:
        raise UsageError(f"{path} isn't in the repository {root}; start tracetui in its own")
    return place

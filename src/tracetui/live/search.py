"""Full-text search in the inputs, outputs, messages and errors of many runs.

The raw bytes of a file, or of each member of an archive, are prefiltered with `Needle.may_match`. Only a file that
passes is read through its format, and only decoded values count. Files that do not start like JSON (databases, files
of plug-ins) are always read, since their bytes prove nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Generator, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from os.path import basename
from typing import Any, Final, TypeAlias

from tracetui.analysis.search import PLAIN, Hit, Needle, Options, hits_in
from tracetui.errors import FormatError
from tracetui.formats import guard, registry, wrappers
from tracetui.formats.base import Format
from tracetui.formats.guard import problem_of
from tracetui.live.jobs import Job, Step, by_file
from tracetui.live.load import Reader
from tracetui.live.scan import Scanner, entries, part_folders_of
from tracetui.model import Problem, RunRef
from tracetui.sources.archive import MAGIC, Archive
from tracetui.sources.base import SHARED, Entry, File, LinkLost, Source, Stat

PIECE: Final = 4 << 20
"""Bytes of a file scanned at once."""
DEPTH: Final = 3
"""Levels of subfolders searched for other files of a run."""
MAX_HITS: Final = 50_000
_JSON: Final = re.compile(rb'\xef\xbb\xbf|[\s{\["0-9tfn-]')


class Outcome(StrEnum):
    """How the search of one file ended."""

    PASSED = "passed"
    """Its bytes rule out a match."""
    SEARCHED = "searched"
    FOREIGN = "foreign"
    """It may match, but is not a trace."""
    FAILED = "failed"
    """It, or a run or step in it, could not be read."""


Item: TypeAlias = Hit | Problem | Outcome | None
"""Yielded by a search: hits and problems as they occur, an outcome after each file, None for a step without news."""


def grep(
    source: Source, roots: Iterable[str], needle: Needle, options: Options = PLAIN, *, only: Format | None = None
) -> Iterator[Item]:
    """Search every file below `roots`, in walking order; `only` reads all of them as that format. Raises `LinkLost`."""
    scanner = Scanner(source, only=only)
    searched = set[str]()
    """Main files of the runs searched, along with all of their parts."""
    for entry in entries(source, roots):
        if entry.skipped is not None:
            if entry.failed:
                yield Problem(entry.path, "", entry.skipped)
                yield Outcome.FAILED
            continue
        may_match = yield from _scan(source, entry.path, entry.stat, needle)
        if not may_match:
            yield Outcome.PASSED if may_match is False else Outcome.FAILED
            continue
        result = scanner.look(entry, deep=False)
        yield from result.problems
        if (result.part_of or result.path) in searched:
            yield Outcome.SEARCHED
            continue
        if result.part_of:
            result = scanner.look(Entry(result.part_of), deep=False)
        searched.add(result.path)
        is_readable, cache = bool(result.runs) or not result.problems, {SHARED: scanner.shared}
        listed = {run.ref: None for run in result.runs if options.wanted is None or options.wanted(run)}
        for ref in listed:
            is_readable &= yield from grep_run(
                source, ref, needle, options, listed, reported=result.problems, cache=cache
            )
        yield (Outcome.SEARCHED if result.runs else Outcome.FOREIGN) if is_readable else Outcome.FAILED


def grep_runs(source: Source, refs: Iterable[RunRef], needle: Needle, options: Options = PLAIN) -> Iterator[Item]:
    """Search these runs; consecutive runs of a file share one scan of its bytes. Raises `LinkLost`."""
    mains: dict[str, str] = {}
    listed = dict.fromkeys(refs)
    for path, group in groupby(listed, key=lambda ref: ref.path):
        may_match = yield from _scan(source, path, None, needle)
        runs = list(group)
        if may_match is False:
            may_match = yield from _part_may_match(source, runs[0], needle, mains)
        if not may_match:
            yield Outcome.PASSED if may_match is False else Outcome.FAILED
            continue
        is_readable, cache = True, dict[str, Any]()
        for ref in runs:
            is_readable &= yield from grep_run(source, ref, needle, options, listed, cache=cache)
        yield Outcome.SEARCHED if is_readable else Outcome.FAILED


def grep_job(refs: Sequence[RunRef], needle: Needle, options: Options, *, most: int = MAX_HITS) -> Job:
    """Return a job that searches these runs in this order, grouped by file.

    `JobProgress.new` contains each `Hit` and `Problem`; `done` counts files.
    """
    ordered = by_file(refs)

    def work(source: Source) -> Generator[Step, None, None]:
        hits = 0
        for item in grep_runs(source, ordered, needle, options):
            if isinstance(item, Hit):
                hits += 1
                if hits > most:
                    yield Step(more=True)
                    return
            if isinstance(item, Outcome):
                yield Step(done=1)
            else:
                yield Step(() if item is None else (item,))

    return Job("grep", len({ref.path for ref in refs}), work)


def _part_may_match(
    source: Source, ref: RunRef, needle: Needle, mains: dict[str, str]
) -> Generator[Problem | None, None, bool]:
    """Whether another file of a run may match. Adds the main file of each match to `mains`."""
    folders = [(folder, DEPTH) for folder in part_folders_of(ref.path, ref.format)]
    if not folders:
        return False
    with source.open(ref.path) as file:
        while folders:
            folder, depth = folders.pop()
            listed = file.folder(folder)
            folders += ((f"{folder}/{basename(path)}", depth - 1) for path in listed.folders if depth)
            for entry in listed.entries:
                if entry.skipped is None and entry.path != ref.path and entry.path not in mains:
                    mains[entry.path] = ""
                    if (yield from _scan(source, entry.path, entry.stat, needle)):
                        try:
                            with source.open(entry.path) as part:
                                in_trial = wrappers.main_file(part, registry.detect(part))
                                mains[entry.path] = in_trial or guard.main_file(registry.load(ref.format), part) or ""
                        except LinkLost:
                            raise
                        except (OSError, FormatError) as error:
                            yield problem_of(entry.path, error)
    return ref.path in mains.values()


def _scan(source: Source, path: str, stat: Stat | None, needle: Needle) -> Generator[Problem | None, None, bool | None]:
    """Whether the bytes of a file may match; None, after a problem, if they cannot be read."""
    try:
        with source.open(path, stat) as file:
            data = file.read(0, min(file.stat.size, PIECE))  # a larger size would allocate as much for every file
            if data.startswith(MAGIC):
                return (yield from _scan_members(file, needle))
            if not _JSON.match(data) or needle.may_match(data):
                return bool(data)
            return (yield from _scan_rest(file, needle)) if len(data) == PIECE else False
    except LinkLost:
        raise
    except OSError as error:
        yield problem_of(path, error)
        return None


def _scan_rest(file: File, needle: Needle) -> Generator[None, None, bool]:
    """Scan the rest after the first piece; consecutive pieces overlap by the needle's longest encoding."""
    offset = PIECE
    while True:
        yield None
        begin = max(0, offset - needle.overlap)
        data = file.read(begin, PIECE + offset - begin)
        if needle.may_match(data):
            return True
        if begin + len(data) < offset + PIECE:
            return False
        offset += PIECE
        if data[-1] == 0:  # perhaps the start of a hole, which contains nothing
            offset = max(offset, file.next_data(offset))


def _scan_members(file: File, needle: Needle) -> Generator[None, None, bool]:
    """Scan the members of an archive; an unreadable one may match, and reading it reports why."""
    try:
        archive = Archive(file)
        if needle.may_match(json.dumps([*archive.members]).encode()):
            return True
        for name in archive.members:
            data = archive.read(name)
            if not _JSON.match(data) or needle.may_match(data):
                return True
            yield None
    except FormatError:
        return True
    return archive.damage is not None


def grep_run(
    source: Source,
    ref: RunRef,
    needle: Needle,
    options: Options = PLAIN,
    listed: Container[RunRef] = (),
    *,
    reported: Iterable[Problem] = (),
    cache: dict[str, Any] | None = None,
) -> Generator[Item, None, bool]:
    """Search one run and yield its problems, except for those `reported`. Return False if a part of it was unreadable.

    Spans of other runs in `listed` are searched there. `cache`: see `Reader`. Raises `LinkLost`.
    """
    reader = Reader(source, ref, cache=cache)
    for _ in reader.pieces():
        yield None
    run = reader.build()
    yield from (problem for problem in run.problems if problem not in reported)
    is_readable = yield from hits_in(run, needle, options, listed)
    return is_readable and reader.failure is None

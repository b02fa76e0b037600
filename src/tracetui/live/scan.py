"""Walk sources, detect formats, summarize: every file is listed, a problem, or ignored.

`FileRelations` knows which files stand alone, are parts of another file's run, or contain forks. A part may appear
before its main file, or before the record that names it; a fork before its original. Main files and originals may
vanish. In each case other files must be read again.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from tracetui.errors import FormatError
from tracetui.formats import guard, registry, wrappers
from tracetui.formats.base import NO, Format, is_composed
from tracetui.formats.guard import problem_of
from tracetui.formats.unclaimed import explain_unclaimed
from tracetui.model import Header, Ledger, Problem, RunRef, RunSummary
from tracetui.model.build import summary_of
from tracetui.model.ledger import total
from tracetui.sources.base import CACHE, SHARED, BudgetSpent, Entry, File, LinkLost, Source
from tracetui.sources.file_views import Budget, BudgetedFile, Observations, is_spent, observations_of, observe, shared

_MAIN_FILES: Final = "main files"
"""Key in `SHARED`: the versions of files that were found to list the run of their parts. Only this is cached: a file
that does not list it may do so as soon as another file is gone.
"""
WITHIN: Final = "within"
"""Kind of `Observations`: whether a path is within the roots."""
FIRST_RUNS: Final = 24
"""Runs of one file after which a partial result is reported; then at each eightfold."""


class ScannedFile(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The result of scanning one file: `listed` if it has runs, else `problem` if it has problems, else `ignored`, as
    is a deleted file.
    """

    path: str
    format: str | None = None
    runs: tuple[RunSummary, ...] = ()
    problems: tuple[Problem, ...] = ()
    reason: str = ""
    """Why it was ignored."""
    skipped: bool = False
    """True if the file was not opened: a link, a hidden or deleted file, an unreadable folder …"""
    part_of: str = ""
    """Path of the main file if this file is a part of its run: the run is listed there, and this file is ignored."""
    near_miss: str = ""
    """The shape of an unclaimed file that resembles a trace: ``chat messages``."""
    store: str = ""
    """The folder of the unread store that the file belongs to: `near_miss` is what that holds."""
    whole: bool = True
    """False for a partial result with the first runs of a file; the complete one follows."""
    size: int = 0
    """Bytes of the file, if a format has claimed it."""
    unread: bool = False
    """The list-stage budget was spent before the end of the file: only the deep pass reads the rest."""

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
        """Parse coverage of the file and of other files of its runs; empty for an ignored file."""
        if self.kind == "ignored" or self.format is None:
            return Ledger()
        runs = total(run.ledger for run in self.runs)
        size = max(self.size, runs.size or 0)
        lost = sum(run.unread.size for run in self.runs if run.unread is not None)
        lost += sum(problem.lost or 0 for problem in self.problems)
        torn = runs.torn + sum(problem.torn for problem in self.problems)
        return Ledger(size, min(size, lost) if self.runs else size, runs.kinds, torn, runs.writers, runs.fields)


class DeepCache(Protocol):
    """Results of earlier deep passes (`tracetui.live.scan_cache`)."""

    def find(self, entry: Entry) -> ScannedFile | None:
        """Return the result of reading a file in full; None if it must be read. Raises `LinkLost`."""
        ...

    def store(self, result: ScannedFile, seen: Observations, began: int) -> None:
        """Store the result of a reading that began then (`time.time_ns`) and depends on what was `seen`."""
        ...


def scan(
    source: Source, roots: Iterable[str], *, deep: bool, only: Format | None = None, cache: DeepCache | None = None
) -> Iterator[ScannedFile]:
    """Scan every file below `roots`, in walking order. `only` forces one format instead of detection.

    `cache` gives and takes the results of a deep pass with the same `source`, `roots` and `only`.
    """
    roots = list(roots)
    scanner = Scanner(source, roots, only, cache if deep else None)
    for entry in entries(source, roots):
        result = None if scanner.cache is None else scanner.cache.find(entry)
        yield result or (scanner.read(entry) if deep else scanner.look(entry, deep=False))


def entries(source: Source, roots: Iterable[str]) -> Iterator[Entry]:
    """Yield every name below `roots`; a file already reached from an earlier root is skipped.

    Hard links below one root are separate files: each has its own address.
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
                yield Entry(entry.path, skipped="duplicate of an earlier file")
        before |= here


CACHED_FILES: Final = 8
"""Changing files with a format cache."""


class Scanner:
    """Scans files below some roots, one after the other. Used by one thread."""

    def __init__(
        self, source: Source, roots: Iterable[str] = (), only: Format | None = None, cache: DeepCache | None = None
    ) -> None:
        """Files are read as the format `only`, if given. A root that is a file is no part of another one's run, nor is
        a file whose main file is outside the roots. The `cache` takes the results of `read`.
        """
        self.cache = cache
        self._source, self._roots, self._only = source, frozenset(roots), only
        self._last: Format | None = None
        """The format to try first on the next file."""
        self.shared: dict[str, Any] = {}
        """Format cache across neighboring files (`SHARED`)."""
        self._caches: OrderedDict[str, dict[str, Any]] = OrderedDict()
        """Format caches of files that change repeatedly."""

    def read(self, entry: Entry, budget: Budget | None = None, *, name: str = "") -> ScannedFile:
        """Read a file in full, and store the result unless the `budget` was spent. Raises `LinkLost`.

        `name`: the format that probably claims it.
        """
        self._last = registry.load(name) if name else self._last
        if self.cache is None:
            return self.look(entry, deep=True, budget=budget)
        began, seen = time.time_ns(), Observations()
        result = self.look(entry, deep=True, budget=budget, observations=seen)
        if not result.unread:
            self.cache.store(result, seen, began)
        return result

    def rescan(self, entry: Entry, *, deep: bool = True, budget: Budget | None = None) -> ScannedFile:
        """Scan a file that has changed. Raises `LinkLost`."""
        cache = self._caches.pop(entry.path, {})
        result = self.look(entry, deep=deep, cache=cache, budget=budget)
        if cache:
            self._caches[entry.path] = cache
            if len(self._caches) > CACHED_FILES:
                self._caches.popitem(last=False)
        return result

    def forget(self, path: str) -> None:
        """Drop the cache of a deleted or replaced file."""
        self._caches.pop(path, None)

    def look(
        self,
        entry: Entry,
        *,
        deep: bool,
        on_partial: Callable[[ScannedFile], None] | None = None,
        cache: dict[str, Any] | None = None,
        budget: Budget | None = None,
        observations: Observations | None = None,
    ) -> ScannedFile:
        """Scan one entry.

        `on_partial` is called with the first runs of a file with many, while the rest is being read. `cache` is a dict,
        the same each time, for a file that is read again as it changes. A `budget` limits the bytes read;
        `unread` of the result reports that it was spent. `observations` get all that it depends on. Raises `LinkLost`.
        """
        if entry.skipped is not None:
            problems = (Problem(entry.path, "", entry.skipped),) if entry.failed else ()
            return ScannedFile(path=entry.path, problems=problems, reason=entry.skipped, skipped=True)
        chosen: Format | None = None
        try:
            # a deep read may come long after the walk
            opened = self._source.open(entry.path, None if deep else entry.stat)
            with observe(opened if budget is None else BudgetedFile(opened, budget), observations) as file:
                file.memo[SHARED] = self.shared
                if cache is not None:
                    file.memo[CACHE] = cache
                try:
                    first = registry.load(entry.format) if entry.format else self._last
                    chosen = self._only or registry.detect(file, first)
                    if entry.path not in self._roots and (part := self._part(file, chosen)) is not None:
                        return part
                    self._last = chosen or self._last
                    if chosen is None:
                        return _explain_unclaimed(file)
                    return _summarize(file, entry, chosen, deep=deep, on_partial=on_partial)
                except BudgetSpent:
                    self._last = chosen or self._last
                    return _unread_result(file, entry, chosen)
        except LinkLost:
            raise
        except (OSError, FormatError) as error:
            if observations is not None:
                observations.failed = True
            name = chosen.name if chosen is not None else None
            return ScannedFile(path=entry.path, format=name, problems=(problem_of(entry.path, error),))

    def _part(self, file: File, chosen: Format | None) -> ScannedFile | None:
        """Return the result of a backup, or of a part of another file's run; None for any other file."""
        if original := _original_of_backup(file):
            return ScannedFile(path=file.path, reason=f"backup of {original}", part_of=file.sibling(original) or "")
        main = wrappers.main_file(file, chosen) if self._only is None else None
        if main is not None and _is_listed(main, file, self._roots):
            self._last = self._last or chosen  # the next file is a log, as before this
            return _part_of(main, file, chosen)
        main = None if chosen is None else guard.main_file(chosen, file)
        if chosen is None or main is None or not _is_listed(main, file, self._roots):
            return None
        if not _main_lists_run(self._source, main, file, chosen, self._only):
            return None
        self._last = chosen
        return _part_of(main, file, chosen)


BACKUPS: Final = (".bak", ".backup", ".orig", "~")
"""Ends of the names of backups."""


def _original_of_backup(file: File) -> str:
    """The name of the file that `file` is a backup of; empty if it is none, or has more than its original."""
    name = next((file.name.removesuffix(end) for end in BACKUPS if file.name.endswith(end)), "")
    try:
        if not name or file.sibling(name) is None:
            return ""
        with file.other(name) as original:
            return name if original.stat.size >= file.stat.size else ""
    except LinkLost:
        raise
    except OSError:
        return ""


def _part_of(main: str, file: File, chosen: Format | None) -> ScannedFile:
    name = None if chosen is None else chosen.name
    return ScannedFile(path=file.path, format=name, reason="part of another file's run", part_of=main)


def _is_listed(main: str, part: File, roots: Collection[str]) -> bool:
    """Whether the main file of a part is within the roots."""
    is_listed, observations = is_within(main, roots), observations_of(part)
    if observations is not None:
        observations.add(WITHIN, main, "", is_listed)
    return is_listed


def is_within(path: str, roots: Collection[str]) -> bool:
    """Whether a path is one of the roots or below one, by name alone; always without roots."""
    path = os.path.abspath(path)
    return not roots or any(
        path == root or path.startswith(os.path.join(root, "")) for root in map(os.path.abspath, roots)
    )


def _main_lists_run(source: Source, main: str, part: File, chosen: Format, only: Format | None) -> bool:
    """Whether the part's main file lists its run: it is another file, exists, is claimed by the format and is not a
    part itself.

    Otherwise the part is listed by itself, so that nothing is lost.
    """
    if os.path.normpath(main) == os.path.normpath(part.path):
        return False
    answers: dict[Any, Any] = part.memo.get(SHARED, {}).setdefault(_MAIN_FILES, {})

    def lists_run() -> bool:
        return (only is not None or registry.score(chosen, file) > NO) and guard.main_file(chosen, file) is None

    try:
        with observe(source.open(main), observations_of(part)) as file:
            version = main, file.stat
            if not shared(part, answers, version, lists_run):
                del answers[version]
                return False
            return True
    except LinkLost:
        raise
    except (OSError, FormatError):
        return False


def _summarize(
    file: File, entry: Entry, chosen: Format, *, deep: bool, on_partial: Callable[[ScannedFile], None] | None
) -> ScannedFile:
    runs: list[RunSummary] = []
    problems: list[Problem] = []
    reported, due = 0, FIRST_RUNS
    try:
        for item in guard.summarize(chosen, file, deep=deep):
            if not isinstance(item, RunSummary):
                problems.append(item)
                continue
            runs.append(item)
            if on_partial is not None and len(runs) == due:
                on_partial(ScannedFile(path=file.path, format=chosen.name, runs=tuple(runs[reported:]), whole=False))
                reported, due = due, due * 8
        guard.part_folders(chosen, file.path)  # other threads ask later, and cannot report a failure
    except BudgetSpent:
        pass  # the runs summarized so far stand
    except LinkLost:
        raise
    except (OSError, FormatError) as error:  # one bad file must not hide the good ones, nor a bad run those before it
        problems.append(problem_of(file.path, error))
        _set_failed(file)
    if is_spent(file):
        return _unread_result(file, entry, chosen, runs)
    if not runs and not problems:
        problems.append(Problem(file.path, "", f"claimed by {chosen.name}, but no run in it"))
    size = file.stat.size
    return ScannedFile(path=file.path, format=chosen.name, runs=tuple(runs), problems=tuple(problems), size=size)


def _unread_result(file: File, entry: Entry, chosen: Format | None, runs: Sequence[RunSummary] = ()) -> ScannedFile:
    """Return the list-stage result of a file beyond its budget: `runs`, else one row without values."""
    if chosen is None:
        return ScannedFile(path=file.path, reason="not read yet", unread=True)
    if not runs:
        header = Header(id=file.name.partition(".")[0], name=file.name)
        modified = 0.0 if entry.stat is None else entry.stat.mtime  # the stat of a compressed file would decompress it
        ref = RunRef(chosen.name, file.path)
        runs = [summary_of(ref, header, None, modified_at=modified, moving=file.moving)]
    return ScannedFile(path=file.path, format=chosen.name, runs=tuple(runs), unread=True)


def _explain_unclaimed(file: File) -> ScannedFile:
    try:
        with guard.BOUNDARY:  # it decodes documents that may be too deep, or larger than memory
            reason, shape, store = explain_unclaimed(file)
            return ScannedFile(path=file.path, reason=reason, near_miss=shape, store=store)
    except FormatError as error:
        _set_failed(file)
        return ScannedFile(path=file.path, problems=(problem_of(file.path, error),))


def _set_failed(file: File) -> None:
    """Record that reading failed, perhaps for a reason that passes."""
    observations = observations_of(file)
    if observations is not None:
        observations.failed = True


# ---- several files of one run

_CHAIN: Final = 64
"""Longest chain of main files that are parts of others."""
RECENT: Final = 16
"""Newest files that may still turn out to be parts of a changing file."""


class FileRelations:
    """Which files are parts of others, and which contain forks. Used by one thread."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._alone: dict[str, str] = {}
        """Format of each file that stands alone, for formats with runs in several files."""
        self._recent: OrderedDict[str, None] = OrderedDict()
        """The newest of them."""
        self._mains: dict[str, tuple[str, str]] = {}
        """Main file and format of each part."""
        self._forks: dict[str, tuple[str | None, str | None]] = {}
        """Files that contain forks, with the id and path of the original that each names."""
        self._ids: dict[str, frozenset[str | None]] = {}
        """Run ids of files that appeared or changed."""

    def __contains__(self, path: str) -> bool:
        """Whether a file stands alone although other files could be parts of its run."""
        return path in self._alone

    def add(self, result: ScannedFile, *, appeared: bool = True) -> list[str]:
        """Record a result; return the files to read again because of it: parts, a main file, forks.

        Unless it `appeared`, the file existed when watching began, and no other file is read again.
        """
        related = self._take(result, appeared=appeared)
        return [*related, *self.identify(result.path, {run.id for run in result.runs})] if appeared else related

    def _take(self, result: ScannedFile, *, appeared: bool) -> list[str]:
        """Record a result except for its ids; return the parts of its run, or its main file."""
        path, name = result.path, result.format or ""
        before = self._mains.pop(path, None)
        self._forks.pop(path, None)
        if result.part_of:
            self._mains[path] = result.part_of, name
        for run in result.runs:
            if run.relation == "fork":
                self._forks[path] = run.replay_of, run.replay_of_path
        if result.part_of or not result.runs or not is_composed(registry.load(name)):
            self._alone.pop(path, None)
            self._recent.pop(path, None)
            if not result.part_of:
                return []
            through = self._joining_through(path) if appeared and self._mains[path] != before else []
            return [result.part_of, *through, *self._logs_of(result)]
        is_new = path not in self._alone
        self._alone[path] = name
        if not is_new or not appeared:
            return self.joining(path) if appeared else []
        self._recent[path] = None
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        near = _inside(self._alone, path, ["", *part_folders_of(path, name)])
        return self._parts_among(path, name, [*self._recent, *near])

    def joining(self, path: str) -> list[str]:
        """Return recent standalone files that are parts of the run of `path`, which has changed."""
        return self._parts_among(path, self._alone[path], self._recent) if path in self._alone else []

    def remove(self, path: str) -> list[str]:
        """Forget a deleted file; return the files to read again: the parts of its run or, if it was a part itself,
        its main file, the forks of that and the parts that may have belonged to it through this one.
        """
        related = [*self._forks_of(path), *self._parts_of(path)]
        if path in self._mains:
            main = self._main_of(path)
            related += [main, *self._forks_of(main)]
            if wrappers.wraps(self._mains[path][1]):  # without the result they may be runs again
                folder = os.path.join(os.path.dirname(path), "")
                related += [part for part in self._mains if part.startswith(folder) and part != path]
        for table in (self._alone, self._recent, self._mains, self._forks, self._ids):
            table.pop(path, None)
        return related

    def _parts_of(self, path: str) -> list[str]:
        """Return the parts of the run of `path`; for a part, those that may belong to the run through it."""
        folders = part_folders_of(path, self._mains[path][1]) if path in self._mains else None
        if folders is not None and not folders:
            return []
        main = self._main_of(path)
        parts = [part for part in self._mains if part != path and self._main_of(part) == main]
        return parts if folders is None else _inside(parts, path, folders)

    def _main_of(self, path: str) -> str:
        """Return the file that lists the run of `path`: the recorded main file may be a part itself by now."""
        for _ in range(_CHAIN):
            if path not in self._mains:
                break
            path = self._mains[path][0]
        return path

    def _joining_through(self, path: str) -> list[str]:
        """Return standalone files that belong to the run of the new part at `path` through it, and forks of the run.

        The main file did not reveal them: it may be older than the part.
        """
        main, name = self._mains[path]
        inside = _inside(self._alone, path, part_folders_of(path, name))
        return [*self._parts_among(main, name, inside), *self._forks_of(main)]

    def identify(self, path: str, ids: Collection[str | None]) -> list[str]:
        """Record the run ids of a new or changed file; return the forks of new ids."""
        new = frozenset(ids) - self._ids.get(path, frozenset())
        self._ids[path] = frozenset(ids)
        return self.forks(path, new) if new else []

    def forks(self, path: str, ids: Collection[str | None]) -> list[str]:
        """Return files with forks of these runs, or of those of the file at `path`."""
        return [
            fork for fork, (original, at) in self._forks.items() if fork != path and (original in ids or at == path)
        ]

    def _forks_of(self, path: str) -> list[str]:
        """Return files with forks of the runs that a file was last found to contain."""
        return self.forks(path, self._ids.get(path, ()))

    def _logs_of(self, result: ScannedFile) -> list[str]:
        """Files below the folder of the result of a trial, which may be parts of its run now."""
        folder = os.path.join(os.path.dirname(result.path), "")
        listed = dict.fromkeys((*self._alone, *self._ids)) if wrappers.wraps(result.format) else ()
        return [path for path in listed if path.startswith(folder) and path not in (result.path, result.part_of)]

    def _parts_among(self, path: str, name: str, candidates: Iterable[str]) -> list[str]:
        """Return those of the standalone files that are parts of the run of `path`, of the format `name`."""
        parts = list[str]()
        for other in dict.fromkeys(candidates):
            if other != path and self._alone[other] == name:
                try:
                    with self._source.open(other) as file:
                        parts += [other] if guard.main_file(registry.load(name), file) == path else []
                except LinkLost:
                    parts.append(other)  # it is read again once the source is reachable
                except (OSError, FormatError):
                    continue  # reported when the file is read
        return parts


def part_folders_of(path: str, name: str) -> Sequence[str]:
    """Return the folders for parts of the run of `path`, relative to its own; none without a format."""
    try:
        return guard.part_folders(registry.load(name), path) if name else ()
    except (OSError, FormatError):
        return ()  # reported when the file is read


def _inside(paths: Iterable[str], path: str, folders: Sequence[str]) -> list[str]:
    """Return the `paths` in or below `folders`, which are relative to that of `path`; of that one, only those in it."""
    own = os.path.dirname(path)
    normal = {os.path.normpath(os.path.join(own, folder)) for folder in folders}
    below = tuple(os.path.join(folder, "") for folder in normal if folder != os.path.normpath(own))
    beside = {own} if os.path.normpath(own) in normal else set()
    return [other for other in paths if other.startswith(below) or os.path.dirname(other) in beside]

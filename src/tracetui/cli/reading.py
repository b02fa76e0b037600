"""Reading for commands: open sources, list runs, resolve addresses."""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tracetui.cli.output import nothing, terminal_width
from tracetui.cli.parser import default_directory, roots
from tracetui.errors import NothingReadable, UsageError, nearest
from tracetui.export.table import Screen, newest_first
from tracetui.formats import registry
from tracetui.formats.base import Format
from tracetui.live.load import read_run
from tracetui.live.scan import ScannedFile, Scanner, scan
from tracetui.model import PassRule, Problem, Run, RunRef, RunSummary
from tracetui.redact import Redactor
from tracetui.sources.base import Entry, Source, reason_of
from tracetui.sources.local import STDIN, LocalSource, StdinSource
from tracetui.sources.locations import CHECKPOINTS, MultiHostSource, is_remote, local_folders, open_source, parent
from tracetui.store import address
from tracetui.store.claims import Claims
from tracetui.store.relations import Relations, has_original
from tracetui.store.settings import load_cache_limit, load_pass_rule
from tracetui.views.labels import short_names

LIMIT: Final = 500
"""Runs of a database that are listed unless ``--limit`` says otherwise."""
if TYPE_CHECKING:
    from tracetui.live.scan_cache import Outlines, ScanCache

NAMED: Final = 3
"""Near misses that are named."""


class FileCounts(msgspec.Struct, frozen=True):
    """Number of files of each kind: `ScannedFile.kind`, but `ignored` are only those that no format claims."""

    listed: int = 0
    problem: int = 0
    ignored: int = 0
    near_misses: tuple[ScannedFile, ...] = ()
    """Those of the ignored that look like traces; of the files of an unread store, one with the path of the store."""

    @property
    def fields(self) -> dict[str, Any]:
        """As fields of ``ls --json``."""
        counts = {"listed": self.listed, "problem": self.problem, "ignored": self.ignored}
        return {
            "counts": counts,
            "near_misses": [{"path": file.path, "reason": file.reason} for file in self.near_misses],
        }

    @property
    def near_miss_sentence(self) -> str:
        """Names the near misses, each on a line (``a.jsonl holds chat messages``); empty without one."""
        if not self.near_misses:
            return ""
        count, named = len(self.near_misses), self.near_misses[:NAMED]
        subject = "1 file looks like a trace" if count == 1 else f"{count} files look like traces"
        names = "".join(f"\n  {file.path} holds {file.near_miss}" for file in named)
        more = "\n  …" if count > NAMED else ""
        return f"{subject}, but no format claims {'it' if count == 1 else 'them'}:{names}{more}"


class Listing(msgspec.Struct, frozen=True):
    """Runs, newest first, and problems of files."""

    runs: list[RunSummary]
    problems: list[Problem]
    files: FileCounts = FileCounts()
    read: frozenset[str] = frozenset()
    """Paths of the files with runs, also of runs that a query leaves out."""
    claims: Claims = Claims()
    """Which run counts what several have: of all runs that were read. `runs` has net summaries."""


class Aim(msgspec.Struct):
    """The target of PATH arguments: places, and for some files only certain runs."""

    places: list[str]
    chosen: dict[str, set[RunRef]] = {}

    def wants(self, ref: RunRef) -> bool:
        """Return whether a run is in the target."""
        return ref.path not in self.chosen or ref in self.chosen[ref.path]


@contextmanager
def source_of(paths: Sequence[str], *, limit: int | None = None) -> Iterator[MultiHostSource]:
    """Open the sources of paths or addresses: this machine, others, databases, standard input for ``-``.

    `limit`: how many runs of a database are listed. Raises `UsageError` or `NothingReadable` for a machine that cannot
    be reached.
    """
    with ExitStack() as stack:
        local = stack.enter_context(StdinSource(sys.stdin.buffer)) if STDIN in paths else LocalSource()
        yield stack.enter_context(open_source(paths, local, limit=limit or LIMIT))


def served_paths(paths: Sequence[str], command: str) -> list[str]:
    """Return the real paths that a server may read, or the addresses of repositories (`within`).

    Raises `UsageError` for one that is missing, not a path of this machine, or can't stand in a list of paths.
    """
    real_paths: list[str] = []
    for path in paths:
        if path == STDIN or is_remote(path):
            raise UsageError(f"{command} reads local files only, not {path}")
        scheme, local = (CHECKPOINTS, path[len(CHECKPOINTS) :]) if path.startswith(CHECKPOINTS) else ("", path)
        local = os.path.expanduser(local) if scheme else local
        if not os.path.exists(local):
            raise UsageError(f"no such file or directory: {local}")
        real_paths.append(scheme + os.path.realpath(local))
    if wrong_path := next((path for path in real_paths if os.pathsep in path.removeprefix(CHECKPOINTS)), None):
        raise UsageError(f"{command} can't limit reading to a path with {os.pathsep!r} in it: {wrong_path}")
    return real_paths


def within(paths: Sequence[str]) -> str:
    """Return what `served_paths` need as the value of `tracetui.sources.local.WITHIN`; of a repository git's data only.

    Raises `UsageError`.
    """
    try:
        return os.pathsep.join(folder for path in paths for folder in local_folders(path))
    except OSError as error:
        raise UsageError(reason_of(error)) from error


def source_at(text: str, args: argparse.Namespace) -> AbstractContextManager[MultiHostSource]:
    """Open the source of the address `text`, or the places to search for a run with that id."""
    return sources_at([text], args)


def sources_at(texts: Sequence[str], args: argparse.Namespace) -> AbstractContextManager[MultiHostSource]:
    """Open the sources of several addresses."""
    places = [re.split("[/#]", text)[0] if text.startswith(STDIN) else text for text in texts]
    return source_of([*places, *args.trace_dir], limit=args.limit)


def only(args: argparse.Namespace) -> Format | None:
    """Return the format of ``--format``."""
    return registry.load(args.format) if args.format else None


def rule_of(args: argparse.Namespace) -> PassRule | None:
    """Return the rule of ``--pass``, else of the settings. Raises `UsageError`."""
    rule: PassRule | None = args.rule
    return rule or load_pass_rule()


def check_rule(args: argparse.Namespace, runs: Sequence[RunSummary]) -> None:
    """Raise `UsageError` if no run has the score of ``--pass``, which would silently have no effect."""
    scores = [score for run in runs for score in run.scores] if args.rule is not None else []
    if args.rule is None or not runs or any(map(args.rule.applies_to, scores)):
        return
    names = sorted({score.name for score in scores})
    like = nearest(args.rule.name, names)
    hint = f"did you mean {like!r}?" if like else f"scores: {', '.join(names[:_MOST_NAMES])}" if names else ""
    message = f"no run has a score {args.rule.name!r}; {hint or 'no run has scores'}"
    raise UsageError(Redactor().header(message))


_MOST_NAMES: Final = 8
"""Names of scores in an error."""


def cache_limit(args: argparse.Namespace) -> int:
    """Return the bytes that the cache may take; 0 with ``--no-cache``. Raises `UsageError` for invalid settings."""
    return 0 if args.no_cache else load_cache_limit()


def scan_files(
    source: Source, paths: Sequence[str], forced: Format | None, *, deep: bool, cache_bytes: int = 0
) -> Iterator[ScannedFile]:
    """Scan every file below `paths`, without garbage collection: summaries are many, small and acyclic.

    A deep pass uses the user's cache, of at most `cache_bytes`.
    """
    cache: ScanCache | None = None
    if deep and cache_bytes:
        from tracetui.live.scan_cache import open_cache  # it loads SQLite

        cache = open_cache(source, paths, forced, cache_bytes)
    gc.disable()
    try:
        yield from scan(source, paths, deep=deep, only=forced, cache=cache)
    finally:
        gc.enable()
        if cache is not None:
            cache.close()


def outlines(source: Source, paths: Sequence[str], args: argparse.Namespace) -> Outlines:
    """Return a reader of outlines of the runs below `paths`, for use in a ``with``; it uses the user's cache."""
    from tracetui.live.scan_cache import Outlines  # it loads SQLite

    return Outlines(source, [*paths], cache_limit(args))


def listing_of(
    source: Source,
    paths: Sequence[str],
    forced: Format | None,
    *,
    deep: bool,
    rule: PassRule | None = None,
    cache_bytes: int = 0,
) -> Listing:
    """List all runs and problems below `paths`, with outcomes by `rule`; `cache_bytes` as in `scan_files`."""
    runs: list[RunSummary] = []
    problems: list[Problem] = []
    kinds, near_misses = Counter[str](), dict[str, ScannedFile]()
    for file in scan_files(source, paths, forced, deep=deep, cache_bytes=cache_bytes):
        runs.extend(run.with_rule(rule) for run in file.runs)
        problems.extend(file.problems)
        kinds["unclaimed" if file.unclaimed else file.kind] += 1
        if file.near_miss:
            near_misses[file.store or file.path] = msgspec.structs.replace(file, path=file.store or file.path)
    named = tuple([near_misses[path] for path in sorted(near_misses)])
    files = FileCounts(kinds["listed"], kinds["problem"], kinds["unclaimed"], named)
    claims, read = Claims(runs), frozenset(run.ref.path for run in runs)
    runs = newest_first(map(claims.net, runs))
    return Listing(runs, sorted(problems, key=lambda problem: problem.path), files, read, claims)


def aim_of(source: Source, args: argparse.Namespace, *, strict: bool = False) -> Aim:
    """Resolve the PATH arguments of a command: places, and addresses or ids of runs.

    An unknown word counts as a place, and reading it reports the error; with `strict` it raises `NothingReadable`.
    Raises `UsageError` for an id of several runs, and for a part of a run.
    """
    if not args.paths:
        return Aim(roots(args))
    aim = Aim([])
    for word in args.paths:
        is_place = word == STDIN or source.is_file(word) or source.is_folder(word)
        ref = None if is_place else _run_named(source, word, args, strict=strict)
        if ref is None:
            aim.places.append(word)
        else:
            aim.chosen.setdefault(ref.path, set()).add(ref)
    extra = aim.chosen or args.trace_dir  # with a run, --trace-dir is where to search for it
    aim.places += [path for path in extra if path not in aim.places]
    return aim


def _run_named(source: Source, word: str, args: argparse.Namespace, *, strict: bool) -> RunRef | None:
    try:
        return whole_run_at(source, word, args).ref
    except NothingReadable:
        if strict:
            raise
        return None


def narrow(source: MultiHostSource, text: str | None, args: argparse.Namespace) -> str:
    """Restrict databases to runs that may match a query; return a note for the user, if any."""
    if not text or not source.has_database:
        return ""
    from tracetui.store.query.plan import candidates

    filters = candidates(text)
    source.narrow(filters.condition)
    if not filters.rest:
        return ""
    limit = args.limit or LIMIT
    return f"the database can't filter by {' '.join(filters.rest)}: only the newest {limit} runs were searched"


def list_runs(
    source: Source, places: Sequence[str], args: argparse.Namespace, *, deep: bool = True, rule: PassRule | None = None
) -> Listing:
    """List the runs and problems below `places` as `listing_of`, with the format and the cache of `args`."""
    return listing_of(source, places, only(args), deep=deep, rule=rule, cache_bytes=cache_limit(args))


def listing_at(
    source: Source, aim: Aim, args: argparse.Namespace, *, deep: bool = True, rule: PassRule | None = None
) -> Listing:
    """List the runs of a target, and the problems of its places; see `list_runs`."""
    listing = list_runs(source, aim.places, args, deep=deep, rule=rule)
    return msgspec.structs.replace(listing, runs=[run for run in listing.runs if aim.wants(run.ref)])


def require_runs(listing: Listing, places: Sequence[str]) -> None:
    """Raise `NothingReadable` if no run of `places` is listed."""
    if not listing.runs:
        raise nothing(places, listing.problems)


def terminal_screen(places: Sequence[str], runs: Sequence[RunSummary]) -> Screen | None:
    """Return the terminal for a list of the `runs` in `places`; None without a terminal."""
    width = terminal_width()
    named = [] if [*places] == [default_directory()] else places
    return None if width is None else Screen(width, time.time(), named, short_names(runs))


def run_at(source: Source, text: str, args: argparse.Namespace) -> tuple[RunSummary, tuple[str, ...]]:
    """Resolve an address, an id or the beginning of one to its run, and return the parts that follow.

    Raises `NothingReadable` if no run matches, `UsageError` if several do.
    """
    forced = only(args)
    parsed = address.parse(text, source.is_file)
    if parsed is not None:
        runs = runs_in(source, parsed.path, forced)
        return address.pick(runs, parsed.key, parsed.path), parsed.parts
    folder, wanted = in_folder(source, text)
    if folder:
        return address.find(wanted, listing_of(source, [folder], forced, deep=False).runs, folder)
    places = [text] if source.is_folder(text) else _search_places(text, args)
    listing = listing_of(source, places, forced, deep=False)
    if not listing.runs:
        if places != [text] and os.sep in text:
            raise NothingReadable(f"no such file: {text}")
        raise nothing(places, listing.problems)
    if places == [text]:
        return address.pick(listing.runs, None, text), ()
    return address.find(text, listing.runs, ", ".join(places))


def whole_run_at(source: Source, text: str, args: argparse.Namespace) -> RunSummary:
    """Resolve an address as `run_at` does. Raises `UsageError` for a part of a run too."""
    summary, parts = run_at(source, text, args)
    if parts:
        raise UsageError(f"{text} is part of a run; use the whole run: {summary.ref.address}")
    return summary


def read_counted(
    source: Source, runs: Sequence[RunSummary], texts: Sequence[str], args: argparse.Namespace
) -> list[Run]:
    """Read whole runs, with the same net counts as `ls` of the places in which `texts`, their addresses, were looked
    up: those places are listed if other files may have responses of the runs. Raises `LinkLost`.
    """
    opened = [read_run(source, run.ref) for run in runs]
    places = dict.fromkeys(place for text in texts for place in places_of(source, text, args))
    paths = {run.ref.path for run in runs if run.ref.key is None}
    claims = Claims()
    if not places.keys() <= paths and any(run.summary.claims for run in opened):
        claims = list_runs(source, [*places], args).claims
    for run in opened:
        claims.add(run.summary)
    return [claims.mark(run) for run in opened]


def places_of(source: Source, text: str, args: argparse.Namespace) -> list[str]:
    """Return the places in which `run_at` looks up an address or id, and those beside it."""
    parsed = address.parse(text, source.is_file)
    if parsed is not None:
        return [parsed.path, *args.trace_dir]
    folder, _ = in_folder(source, text)
    place = folder or (text if source.is_folder(text) else "")
    return [place, *args.trace_dir] if place else _search_places(text, args)


def _search_places(text: str, args: argparse.Namespace) -> list[str]:
    """Return the places to search for a run id."""
    try:
        return roots(args)
    except UsageError as error:
        if os.sep in text:
            raise NothingReadable(f"no such file: {text}") from None
        raise UsageError(f"no such file or directory: {text}; to find a run by id: {error}") from None


def in_folder(source: Source, text: str) -> tuple[str, str]:
    """Split ``DIR#RUN/…`` into the folder and the rest: the id of a run in it, or the beginning of one."""
    for place in (match.start() for match in re.finditer("#", text)):
        if source.is_folder(text[:place]):
            return text[:place], text[place + 1 :]
    return "", text


def runs_in(source: Source, path: str, forced: Format | None) -> tuple[RunSummary, ...]:
    """Return the runs of a file after the list stage. Raises `NothingReadable` with the reason if there are none."""
    entry = next(iter(source.walk(path)), Entry(path, skipped="no such file"))
    file = Scanner(source, [path], forced).look(entry, deep=False)
    if not file.runs:
        reason = file.problems[0].reason if file.problems else file.reason
        raise NothingReadable(f"no readable run in {path}: {reason}; see `tracetui doctor`")
    return file.runs


def original_of(
    source: Source, run: RunSummary, forced: Format | None, places: Sequence[str] = ()
) -> RunSummary | None:
    """Find the run that `run` replays, forks, retries, imitates, copies or repeats: in its folder, else below `places`.

    Returns None if there is none, or several candidates.
    """
    if run.task_key is None and run.identity is None and not has_original(run):
        return None
    path = run.ref.path
    folder = path if path == STDIN else parent(run.replay_of_path or path)
    for searched in ([folder], places):
        near = {other.ref: other for other in _runs_near(source, searched, folder, forced) if other.ref != run.ref}
        original = Relations([run, *near.values()]).original(run.ref)
        if original is not None:
            return near.get(original)
    return None


def replays_of(source: Source, run: RunSummary, forced: Format | None, places: Sequence[str] = ()) -> list[RunSummary]:
    """Find the runs that replay, fork, retry or imitate `run`: in its folder and below `places`."""
    path = run.ref.path
    folder = path if path == STDIN else parent(path)
    near = {other.ref: other for other in _runs_near(source, [folder, *places], folder, forced)}
    replays = Relations([run, *(other for ref, other in near.items() if ref != run.ref)]).replays(run.ref)
    return [near[ref] for ref in replays]


def _runs_near(source: Source, places: Sequence[str], folder: str, forced: Format | None) -> list[RunSummary]:
    """List the runs of `places`, with paths as the user would write them if the run's own `folder` is ``.``."""
    near = listing_of(source, places, forced, deep=False).runs if places else []
    return [_without_dot(run) for run in near] if folder == os.curdir else near


def _without_dot(run: RunSummary) -> RunSummary:
    """Return a run found below ``.`` with its path as the user would write it."""
    path = run.ref.path.removeprefix(os.curdir + os.sep)
    return msgspec.structs.replace(run, ref=msgspec.structs.replace(run.ref, path=path))

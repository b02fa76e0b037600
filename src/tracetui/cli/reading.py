"""What the commands read with: the source, one whole scan, and the run that an address means."""

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
from typing import Any, Final

import msgspec

from tracetui.cli.output import nothing, terminal_width
from tracetui.cli.parser import default_directory, roots
from tracetui.errors import NothingReadable, UsageError
from tracetui.export.listing import Screen, newest_first
from tracetui.formats import registry
from tracetui.formats.base import Format
from tracetui.live.scan import Found, look, scan
from tracetui.model import Problem, RunRef, RunSummary
from tracetui.sources.base import Entry, Source
from tracetui.sources.local import STDIN, LocalSource, StdinSource
from tracetui.sources.locations import MultiHostSource, parent, source_for
from tracetui.store import address
from tracetui.store.relations import Relations, has_original
from tracetui.views.labels import short_names

NAMED: Final = 3
"""Near misses that are named."""


class FileCounts(msgspec.Struct, frozen=True):
    """How many files there are of each kind: `Found.kind`, but `ignored` are only those that no format claims."""

    listed: int = 0
    problem: int = 0
    ignored: int = 0
    near_misses: tuple[Found, ...] = ()
    """Those of the ignored that look like traces."""

    @property
    def fields(self) -> dict[str, Any]:
        """As fields of ``ls --json``."""
        counts = {"listed": self.listed, "problem": self.problem, "ignored": self.ignored}
        return {"counts": counts, "near_misses": [{"path": one.path, "reason": one.reason} for one in self.near_misses]}

    @property
    def near_miss_sentence(self) -> str:
        """Names the near misses, each on a line (``a.jsonl holds chat messages``); empty without one."""
        if not self.near_misses:
            return ""
        count, named = len(self.near_misses), self.near_misses[:NAMED]
        words = "1 file looks like a trace" if count == 1 else f"{count} files look like traces"
        names = "".join(f"\n  {one.path} holds {one.near_miss}" for one in named)
        more = "\n  …" if count > NAMED else ""
        return f"{words}, but no format claims {'it' if count == 1 else 'them'}:{names}{more}"


class Listing(msgspec.Struct, frozen=True):
    """Everything that was found: runs newest first, and the problems of files."""

    runs: list[RunSummary]
    problems: list[Problem]
    files: FileCounts = FileCounts()


class Aim(msgspec.Struct):
    """What words on the command line mean: places, and of some files only certain runs."""

    places: list[str]
    chosen: dict[str, set[RunRef]] = {}

    def wants(self, ref: RunRef) -> bool:
        """Whether a run is meant."""
        return ref.path not in self.chosen or ref in self.chosen[ref.path]


@contextmanager
def source_of(paths: Sequence[str]) -> Iterator[MultiHostSource]:
    """What these paths or addresses are read from: this machine, others, standard input for ``-``.

    Raises `UsageError` or `NothingReadable` for a machine that cannot be reached.
    """
    with ExitStack() as stack:
        local = stack.enter_context(StdinSource(sys.stdin.buffer)) if STDIN in paths else LocalSource()
        yield stack.enter_context(source_for(paths, local))


def source_at(text: str, args: argparse.Namespace) -> AbstractContextManager[MultiHostSource]:
    """What the address `text` is read from, or the places in which a run of that id is looked for."""
    return sources_at([text], args)


def sources_at(texts: Sequence[str], args: argparse.Namespace) -> AbstractContextManager[MultiHostSource]:
    """What several addresses are read from."""
    places = [re.split("[/#]", text)[0] if text.startswith(STDIN) else text for text in texts]
    return source_of([*places, *args.trace_dir])


def only(args: argparse.Namespace) -> Format | None:
    """The format that ``--format`` forces."""
    return registry.load(args.format) if args.format else None


def found_in(source: Source, paths: Sequence[str], forced: Format | None, *, deep: bool) -> Iterator[Found]:
    """Every file below `paths`. Garbage collection rests: summaries are many, small and acyclic."""
    gc.disable()
    try:
        yield from scan(source, paths, deep=deep, only=forced)
    finally:
        gc.enable()


def listing_of(source: Source, paths: Sequence[str], forced: Format | None, *, deep: bool) -> Listing:
    """All runs and problems below `paths`."""
    runs: list[RunSummary] = []
    problems: list[Problem] = []
    kinds, near_misses = Counter[str](), list[Found]()
    for found in found_in(source, paths, forced, deep=deep):
        runs.extend(found.runs)
        problems.extend(found.problems)
        kinds["unclaimed" if found.unclaimed else found.kind] += 1
        if found.near_miss:
            near_misses.append(found)
    near_misses.sort(key=lambda one: one.path)
    files = FileCounts(kinds["listed"], kinds["problem"], kinds["unclaimed"], tuple(near_misses))
    return Listing(newest_first(runs), sorted(problems, key=lambda problem: problem.path), files)


def aim_of(source: Source, args: argparse.Namespace) -> Aim:
    """What the words of a command mean that takes places, and addresses or ids of runs.

    What is neither stays a place: that it can't be read is told where it is read. Raises `UsageError` for an id that
    several runs have, and for a part of a run.
    """
    if not args.paths:
        return Aim(roots(args))
    aim = Aim([])
    for word in args.paths:
        found = (
            None if word == STDIN or source.is_file(word) or source.is_folder(word) else _one_run(source, word, args)
        )
        if found is None:
            aim.places.append(word)
        else:
            aim.chosen.setdefault(found.path, set()).add(found)
    beside = aim.chosen or args.trace_dir  # with a run, --trace-dir says where to look for it
    aim.places += [path for path in beside if path not in aim.places]
    return aim


def _one_run(source: Source, word: str, args: argparse.Namespace) -> RunRef | None:
    try:
        found, parts = run_at(source, word, args)
    except NothingReadable:
        return None
    if parts:
        raise UsageError(f"{word} is a part of a run; a whole one is taken: {found.ref.address}")
    return found.ref


def listing_at(source: Source, aim: Aim, forced: Format | None, *, deep: bool) -> Listing:
    """All runs that are meant, and the problems of the places that they are in."""
    found = listing_of(source, aim.places, forced, deep=deep)
    return msgspec.structs.replace(found, runs=[run for run in found.runs if aim.wants(run.ref)])


def screen_for(places: Sequence[str], runs: Sequence[RunSummary]) -> Screen | None:
    """The terminal for a list of what was found in `places`, which are `runs`; None where there is no terminal."""
    width = terminal_width()
    named = [] if [*places] == [default_directory()] else places
    return None if width is None else Screen(width, time.time(), named, short_names(runs))


def run_at(source: Source, text: str, args: argparse.Namespace) -> tuple[RunSummary, tuple[str, ...]]:
    """The run that an address, a bare id or a prefix of one means, and the parts that follow it.

    Raises `NothingReadable` if there is none, `UsageError` if several are meant.
    """
    forced = only(args)
    parsed = address.parse(text, source.is_file)
    if parsed is not None:
        runs = runs_in(source, parsed.path, forced)
        return address.pick(runs, parsed.key, parsed.path), parsed.parts
    folder, wanted = in_folder(source, text)
    if folder:
        return address.find(wanted, listing_of(source, [folder], forced, deep=False).runs, folder)
    places = [text] if source.is_folder(text) else _places_for(text, args)
    listing = listing_of(source, places, forced, deep=False)
    if not listing.runs:
        if places != [text] and os.sep in text:
            raise NothingReadable(f"there is no file {text}")
        raise nothing(places, listing.problems)
    if places == [text]:
        return address.pick(listing.runs, None, text), ()
    return address.find(text, listing.runs, ", ".join(places))


def _places_for(text: str, args: argparse.Namespace) -> list[str]:
    """Where a run is looked for that was named by its id."""
    try:
        return roots(args)
    except UsageError as error:
        if os.sep in text:
            raise NothingReadable(f"there is no file {text}") from None
        raise UsageError(f"there is no file or folder {text}; to look for a run of that id, {error}") from None


def in_folder(source: Source, text: str) -> tuple[str, str]:
    """``DIR#RUN/…`` as the folder and what follows it: the id of a run in it, or the beginning of one."""
    for place in (found.start() for found in re.finditer("#", text)):
        if source.is_folder(text[:place]):
            return text[:place], text[place + 1 :]
    return "", text


def runs_in(source: Source, path: str, forced: Format | None) -> tuple[RunSummary, ...]:
    """The runs of one file, as its list stage tells. Raises `NothingReadable` with the reason if there are none."""
    entry = next(iter(source.walk(path)), Entry(path, skipped="no such file"))
    found, _ = look(source, entry, deep=False, only=forced, named=True)
    if not found.runs:
        reason = found.problems[0].reason if found.problems else found.reason
        raise NothingReadable(f"no run could be read in {path}: {reason}; `tracetui doctor` tells more")
    return found.runs


def replay_address(source: Source, run: RunSummary, forced: Format | None) -> str | None:
    """`replay_of_address` of one run: the original that it names is looked for in its own folder."""
    found = original_of(source, run, forced) if has_original(run) else None
    return None if found is None else found.ref.address


def original_of(
    source: Source, run: RunSummary, forced: Format | None, places: Sequence[str] = ()
) -> RunSummary | None:
    """The run that `run` replays, forks, retries, imitates, copies or repeats: in its own folder, else below `places`.

    None if it names none and is the first of its task, or if none there is certainly meant.
    """
    if run.repeats is None and run.identity is None and not has_original(run):
        return None
    path = run.ref.path
    folder = path if path == STDIN else parent(run.replay_of_path or path)
    for there in ([folder], places):
        near = listing_of(source, there, forced, deep=False).runs if there else []
        if folder == os.curdir:
            near = [_without_dot(one) for one in near]
        found = Relations([run, *(one for one in near if one.ref != run.ref)]).original(run.ref)
        if found is not None:
            return next((one for one in near if one.ref == found), None)
    return None


def _without_dot(run: RunSummary) -> RunSummary:
    """A run found below ``.`` under the path that the user would write."""
    path = run.ref.path.removeprefix(os.curdir + os.sep)
    return msgspec.structs.replace(run, ref=msgspec.structs.replace(run.ref, path=path))

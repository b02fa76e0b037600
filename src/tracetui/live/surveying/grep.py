"""Full-text search: every place in the inputs, outputs, messages and errors of many runs that holds a needle.

The bytes of a file are scanned before anything in it is decoded (`Needle.may_hold`), those of an archive member by
member; only a file that may hold the needle is read, through its format, and only what is in the decoded values counts.
Files that do not begin as JSON does (databases, whatever a plug-in reads) are always read: their bytes tell nothing for
sure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from enum import StrEnum
from functools import partial
from itertools import groupby
from os.path import basename
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import Format
from tracetui.formats.guard import problem_of
from tracetui.formats.harbor import logs
from tracetui.live.load import Reader
from tracetui.live.scan import entries, look
from tracetui.live.surveying.needle import Needle
from tracetui.live.surveying.searched import Field, Keys, Kind, leaves, run_fields, span_fields
from tracetui.model import Body, Problem, Run, RunBody, RunRef, RunSummary, Span, quote_key
from tracetui.model.masked import masked_body, masked_run_body, masked_span
from tracetui.model.ownership import Ownership, ownership
from tracetui.redact import MASK, Redactor
from tracetui.sources.archive import MAGIC, Archive
from tracetui.sources.base import SHARED, Entry, File, LinkLost, Source, Stat
from tracetui.store.places import step_of

PIECE: Final = 4 << 20
"""Bytes of a file that are scanned at once."""
BEFORE: Final = 60
"""Characters of the line that a hit shows before the match, at most."""
AFTER: Final = 160
"""The same for what follows it, and for the match itself."""
DEPTH: Final = 3
"""Folders below the one in which other files of a run are that are looked into."""
TICK: Final = 32
"""Spans after which a search that found nothing gives others a turn."""
_JSON: Final = re.compile(rb'\xef\xbb\xbf|[\s{\["0-9tfn-]')


class Options(msgspec.Struct, frozen=True):
    """What counts as a hit."""

    names: bool = False
    """Also the names of fields, not only values."""
    repeats: bool = False
    """Also what a model or node was given though an earlier step of the run showed it."""
    wanted: Callable[[RunSummary], bool] | None = None
    """Which runs are searched, by what the list stage knows of them; None: all."""
    redactor: Redactor | None = None
    """Masks what hits show; what is searched is exact. None: hits are exact too."""


PLAIN: Final = Options()


class Hit(msgspec.Struct, frozen=True):
    """One line of one value that holds the needle. No text in it is cleaned."""

    ref: RunRef
    span: str | None
    """Id of the span; None for what the trace says about the run as a whole."""
    step: int | None
    name: str
    """Name of the span; empty for the run."""
    kind: Kind
    keys: tuple[str | int, ...]
    """Where the value is, by the names that ``show --json`` has: ``("input", "messages", 3, "content")``."""
    line: int
    """Number of the line within the value, from 1."""
    before: str
    """What stands before the match in that line, `BEFORE` characters at most."""
    match: str
    after: str

    @property
    def path(self) -> str:
        """The place in short: ``input.messages[3].content``."""
        parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.keys)
        return "".join(parts).removeprefix(".")

    @property
    def address(self) -> str:
        """The address of the whole value, as ``tracetui show`` takes it."""
        parts = [*([] if self.span is None else [self.span]), *map(str, self.keys)]
        return "/".join((self.ref.address, *map(quote_key, parts)))


class Outcome(StrEnum):
    """What became of one file."""

    PASSED = "passed"
    """Its bytes cannot hold the needle."""
    SEARCHED = "searched"
    FOREIGN = "foreign"
    """It may hold the needle, and is no trace."""
    FAILED = "failed"
    """It, or a run or step in it, could not be read."""


Item: TypeAlias = Hit | Problem | Outcome | None
"""What a search yields: hits and problems as they are met, an outcome after each file, None where nothing is new."""


def grep(
    source: Source, roots: Iterable[str], needle: Needle, options: Options = PLAIN, *, only: Format | None = None
) -> Iterator[Item]:
    """Search every file below `roots`, in walking order; `only` reads all of them as that format. Raises `LinkLost`."""
    last: Format | None = None
    searched, shared = set[str](), dict[str, Any]()
    """Main files of runs that were searched: each of their parts was searched with them, as they were with a part."""
    for entry in entries(source, roots):
        if entry.skipped is not None:
            if entry.failed:
                yield Problem(entry.path, "", entry.skipped)
                yield Outcome.FAILED
            continue
        holds = yield from _scan(source, entry.path, entry.stat, needle)
        if not holds:
            yield Outcome.PASSED if holds is False else Outcome.FAILED
            continue
        found, last = look(source, entry, deep=False, last=last, only=only, shared=shared)
        yield from found.problems
        if (found.part_of or found.path) in searched:
            yield Outcome.SEARCHED
            continue
        if found.part_of:
            found, last = look(source, Entry(found.part_of), deep=False, last=last, only=only, shared=shared)
        searched.add(found.path)
        whole, kept = bool(found.runs) or not found.problems, {SHARED: shared}
        listed = {run.ref: None for run in found.runs if options.wanted is None or options.wanted(run)}
        for ref in listed:
            whole &= yield from grep_run(source, ref, needle, options, listed, told=found.problems, kept=kept)
        yield (Outcome.SEARCHED if found.runs else Outcome.FOREIGN) if whole else Outcome.FAILED


def grep_runs(source: Source, refs: Iterable[RunRef], needle: Needle, options: Options = PLAIN) -> Iterator[Item]:
    """Search these runs, those of a file that stand together after one scan of its bytes. Raises `LinkLost`."""
    mains: dict[str, str] = {}
    listed = dict.fromkeys(refs)
    for path, group in groupby(listed, key=lambda ref: ref.path):
        holds = yield from _scan(source, path, None, needle)
        runs = list(group)
        if holds is False:
            holds = yield from _part_holds(source, runs[0], needle, mains)
        if not holds:
            yield Outcome.PASSED if holds is False else Outcome.FAILED
            continue
        whole, kept = True, dict[str, Any]()
        for ref in runs:
            whole &= yield from grep_run(source, ref, needle, options, listed, kept=kept)
        yield Outcome.SEARCHED if whole else Outcome.FAILED


def _part_holds(
    source: Source, ref: RunRef, needle: Needle, mains: dict[str, str]
) -> Generator[Problem | None, None, bool]:
    """Whether another file of a run may hold the needle. `mains` is kept: the main file of each that does."""
    fmt = registry.load(ref.format)
    try:
        folders = [(folder, DEPTH) for folder in guard.part_folders(fmt, ref.path)]
    except (OSError, FormatError):  # reported when the file was listed
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
                                in_trial = logs.main_file(part, registry.detect(part))
                                mains[entry.path] = in_trial or guard.main_file(fmt, part) or ""
                        except LinkLost:
                            raise
                        except (OSError, FormatError) as error:
                            yield problem_of(entry.path, error)
    return ref.path in mains.values()


def _scan(source: Source, path: str, stat: Stat | None, needle: Needle) -> Generator[Problem | None, None, bool | None]:
    """Whether the bytes of a file may hold the needle; None where they cannot be read, which is then told."""
    try:
        with source.open(path, stat) as file:
            data = file.read(0, min(file.stat.size, PIECE))  # room for more would be made for every file
            if data.startswith(MAGIC):
                return (yield from _scan_members(file, needle))
            if not _JSON.match(data) or needle.may_hold(data):
                return bool(data)
            return (yield from _scan_on(file, needle)) if len(data) == PIECE else False
    except LinkLost:
        raise
    except OSError as error:
        yield problem_of(path, error)
        return None


def _scan_on(file: File, needle: Needle) -> Generator[None, None, bool]:
    """The same of what follows the first piece; each shares with the one before what a needle may take."""
    offset = PIECE
    while True:
        yield None
        begin = max(0, offset - needle.overlap)
        data = file.read(begin, PIECE + offset - begin)
        if needle.may_hold(data):
            return True
        if begin + len(data) < offset + PIECE:
            return False
        offset += PIECE
        if data[-1] == 0:  # perhaps the beginning of a hole, which holds nothing
            offset = max(offset, file.next_data(offset))


def _scan_members(file: File, needle: Needle) -> Generator[None, None, bool]:
    """The same of the members of an archive; one that cannot be read may hold anything, which reading it will tell."""
    try:
        archive = Archive(file)
        if needle.may_hold(json.dumps([*archive.members]).encode()):
            return True
        for name in archive.members:
            data = archive.read(name)
            if not _JSON.match(data) or needle.may_hold(data):
                return True
            yield None
    except FormatError:
        return True
    return archive.damage is not None


# ---- one run


def grep_run(
    source: Source,
    ref: RunRef,
    needle: Needle,
    options: Options = PLAIN,
    listed: Container[RunRef] = (),
    *,
    told: Iterable[Problem] = (),
    kept: dict[str, Any] | None = None,
) -> Generator[Item, None, bool]:
    """Search one run, and tell its problems (but for what was `told`). False if a part of it could not be read.

    What belongs to another run of `listed` is searched there. `kept`: see `Reader`. Raises `LinkLost`.
    """
    reader = Reader(source, ref, kept=kept)
    while reader.more:
        reader.read()
        if reader.lost:
            raise LinkLost(reader.lost)
        yield None
    run, redactor = reader.build(), options.redactor
    yield from (problem for problem in run.problems if problem not in told)
    whole = reader.failure is None
    seen = _Seen()
    for number, (span, owner) in enumerate(zip(run.spans, ownership(run, listed), strict=True)):
        if owner is Ownership.LISTED:
            continue
        body = run.load(span)
        if (problem := _unreadable(run, span, body)) is not None:
            yield problem
            whole = False
        shown = None if redactor is None else partial(_masked_texts, span, body, redactor)
        yield from _hits(run, span, span_fields(span, body), needle, options, seen, shown)
        if not number % TICK:
            yield None
    shown = None if redactor is None else partial(_masked_run_texts, run.body, redactor)
    yield from _hits(run, None, run_fields(run.body), needle, options, seen, shown)
    return whole


def _masked_texts(span: Span, body: Body, redactor: Redactor) -> dict[Keys, str]:
    fields = span_fields(masked_span(span, redactor), masked_body(body, redactor))
    return {keys: text for field in fields for keys, text in leaves(field.value, field.keys)}


def _masked_run_texts(body: RunBody, redactor: Redactor) -> dict[Keys, str]:
    return {
        keys: text
        for field in run_fields(masked_run_body(body, redactor))
        for keys, text in leaves(field.value, field.keys)
    }


def _unreadable(run: Run, span: Span, body: Body) -> Problem | None:
    if body.raw or body.attributes.keys() != {"problem"}:
        return None
    return Problem(run.summary.ref.path, f"span {span.id}", str(body.attributes["problem"]))


def _hits(
    run: Run,
    span: Span | None,
    fields: Iterable[Field],
    needle: Needle,
    options: Options,
    seen: _Seen,
    shown: Callable[[], dict[Keys, str]] | None,
) -> Iterator[Hit]:
    """The hits in one span, or (None) in the run's own fields; `seen` is what was searched of the run before.

    A text is told once a span. What a model or node is given again, and what the run repeats, is told where it first
    stood, unless all `repeats` are wanted. `shown` gives the texts as they are to be shown, where that is not exactly.
    """
    here: set[str] = set()
    texts: dict[Keys, str] | None = None
    redactor = options.redactor
    for field in fields:
        value = field.value if options.repeats or not field.given else seen.new(field.value)
        for keys, text in leaves(value, field.keys, names=options.names):
            if next(needle.matches(text), None) is None:
                continue
            again = text in here or (text in seen.texts and (field.given or span is None))
            if again and not options.repeats:
                continue
            here.add(text)
            visible = text
            if redactor is not None and options.names and text == keys[-1]:
                visible = redactor.text(text)
            elif shown is not None:
                texts = shown() if texts is None else texts
                visible = texts.get(keys, MASK)
            for line in _lines(visible, needle):
                yield Hit(
                    ref=run.summary.ref,
                    span=None if span is None else span.id,
                    step=None if span is None else step_of(run, span),
                    name="" if span is None else span.name if redactor is None else redactor.header(span.name),
                    kind=field.kind,
                    keys=keys,
                    line=line.number,
                    before=line.before,
                    match=line.match,
                    after=line.after,
                )
    seen.texts |= here


class _Seen:
    """What was searched of a run."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        """Texts that had hits."""
        self._given: tuple[Any, ...] = ()

    def new(self, given: Any) -> Any:
        """What a call was given, without the very messages that the one before it was given: None in their place."""
        if not isinstance(given, tuple):
            return given
        before, self._given = {id(one) for one in self._given}, given or self._given
        return tuple(None if id(one) in before else one for one in given)


class _Line(NamedTuple):
    number: int
    before: str
    match: str
    after: str


def _lines(text: str, needle: Needle) -> Iterator[_Line]:
    """The lines of a text that hold the needle; its beginning where the needle is in what is masked of it."""
    end, number, counted = -1, 1, 0
    for match in needle.matches(text):
        start = match.start()
        if start < end:
            continue  # in a line that was told
        number += text.count("\n", counted, start)
        counted = start
        begin = text.rfind("\n", 0, start) + 1
        newline = text.find("\n", start)
        stop = min(match.end(), start + AFTER)
        last = max(stop, len(text) if newline < 0 else newline)
        end = len(text) if newline < 0 else newline + 1
        before, after = text[max(begin, start - BEFORE) : start], text[stop : min(last, stop + AFTER)]
        yield _Line(number, before, text[start:stop], after)
    if end < 0:
        yield _Line(1, "", "", text.partition("\n")[0][:AFTER])

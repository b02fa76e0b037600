"""The user's decisions on runs and causes: verdicts, notes, tags, marks, merges and splits, as events and their result.

An event is one line of JSON; `store.sidecar` stores them in a file. The result depends on the set of events alone, not
on the order in which they are read: files of two machines can be concatenated.
"""

from __future__ import annotations

import contextlib
import re
from bisect import insort
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Final, Literal

import msgspec

from tracetui.model import RunSummary
from tracetui.text import UNSAFE

SCHEMA: Final = "tracetui/verdicts/1"
MAX_NOTE: Final = 4_000
MAX_NAME: Final = 1_000
"""Characters of whatever names a thing: ids, titles, tags."""
MAX_TAG: Final = 60

_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
_LONG_ID: Final = 200
_TIME: Final = re.compile(r"[0-8]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_EPOCH: Final = datetime(1970, 1, 1)
_TICK: Final = timedelta(microseconds=1)
_END: Final = (datetime(9000, 1, 1) - _EPOCH) // _TICK - 1
_FIRST: Final = (datetime(1, 1, 2) - _EPOCH).total_seconds()
_LAST: Final = (datetime(9000, 1, 1) - _EPOCH).total_seconds() - 1
_LETTER: Final = re.compile(r"[A-Za-z0-9]")


class Verdict(StrEnum):
    """The user's decision on a failure."""

    REAL = "real"
    FLAKY = "flaky"
    KNOWN = "known"
    IGNORE = "ignore"


class Identity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Identifies a run independent of its path: by id, agent, start and first input.

    The agent distinguishes a student from its teacher, which share all else. Copies of a file are one run, as are two
    runs that agree in all of these.
    """

    format: _Name
    id: _Name
    agent: _Name = ""
    start: _Name = ""
    """UTC, to the microsecond; empty where the trace does not say."""
    input: _Name = ""
    """A digest; empty if there is no input or it isn't read yet: then it agrees with any."""

    def agrees(self, other: Identity) -> bool:
        """Whether both identify the same run."""
        return (self.id, self.start, self.agent, self.format) == (
            other.id,
            other.start,
            other.agent,
            other.format,
        ) and (self.input == other.input or not self.input or not other.input)


class CauseRef(msgspec.Struct, frozen=True):
    """A cause as the verdict file names it."""

    digest: str
    id: str = ""
    """Its short id, for the reader of the file."""
    title: str = ""


OLD_DIGEST_LENGTH: Final = 32
"""Digits of a signature digest of version 0.1; digests of causes are longer."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One action of the user. `at` is UTC to the microsecond and sorts as text; `event` is the id of the event.

    A verdict, note or tag is about a `run` or a cause (`signature`); verdict None and an empty note take back the one
    before. A mark puts a `letter` to a run and one of its spans. A merge joins a cause to the one `into`, a split
    divides it `by` what varies; without them, they take back the one before. An undo voids the event `undoes`.
    """

    at: _Name
    do: Literal["verdict", "note", "tag", "untag", "mark", "merge", "split", "allow", "disallow", "undo"]
    verdict: Verdict | None = None
    note: Annotated[str, msgspec.Meta(max_length=MAX_NOTE)] = ""
    tag: Annotated[str, msgspec.Meta(max_length=MAX_TAG)] = ""
    letter: Annotated[str, msgspec.Meta(max_length=1)] = ""
    title: _Name = ""
    """For the reader of the file; means nothing."""
    run: Identity | None = None
    span: _Name | None = None
    signature: _Name = ""
    """Digest of the cause (the field is older than the word), or of rule and target of a finding of the audit."""
    into: _Name = ""
    by: _Name = ""
    undoes: _Name = ""
    event: _Name
    schema: _Name

    @property
    def order(self) -> tuple[str, str]:
        """Where it comes among others: by time, then by id."""
        return self.at, self.event


class Judgement(msgspec.Struct, frozen=True):
    """The decisions on a run or a cause. `source` says which of them the verdict was given to."""

    verdict: Verdict | None = None
    source: Literal["run", "cause"] | None = None
    note: str = ""
    tags: tuple[str, ...] = ()
    at: str | None = None
    """When the verdict was given: UTC, as ISO 8601."""


class Mark(msgspec.Struct, frozen=True):
    """Target of a letter: a run, and optionally a span of it."""

    letter: str
    run: Identity
    span: str | None = None
    title: str = ""

    def among(self, runs: Iterable[RunSummary]) -> RunSummary | None:
        """The marked run, the first where several agree; None if it is not there."""
        near = (run for run in runs if _short(run.id) == self.run.id)
        return next((run for run in near if identity(run).agrees(self.run)), None)


NOTHING: Final = Judgement()


def identity(run: RunSummary) -> Identity:
    """The identity of a run, independent of its path."""
    return _identity(run.ref.format, run.id, run.agent or "", start_of(run), run.prompt)


def start_of(run: RunSummary) -> int | None:
    """The start of a run as its identity has it, in microseconds since the epoch."""
    start = run.started_at
    return round(start * 1e6) if start is not None and _FIRST < start < _LAST else None


@lru_cache(maxsize=8192)
def _identity(form: str, own: str, agent: str, start: int | None, prompt: str) -> Identity:
    asked = sha256(_plain(prompt).encode()).hexdigest()[:16] if prompt else ""
    return Identity(_short(form), _short(own), _short(agent), _written(start), asked)


def _short(name: str) -> str:
    """A shortened name, unique by a digest of the whole."""
    if len(name) <= _LONG_ID and name.isascii():
        return name
    if len(name) > _LONG_ID:
        name = f"{name[:_LONG_ID]}…{sha256(_plain(name).encode()).hexdigest()[:16]}"
    return _plain(name)


def _plain(text: str) -> str:
    """Text that can be written as UTF-8: halves of surrogate pairs are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _micros(seconds: float | None) -> int | None:
    """Microseconds since the epoch; None outside of the calendar's range."""
    return round(seconds * 1e6) if seconds is not None and _FIRST < seconds < _LAST else None


def _written(micros: int | None) -> str:
    """A time as ISO 8601 in UTC to the microsecond; always of one width, so that times sort as text."""
    return "" if micros is None else f"{(_EPOCH + micros * _TICK).isoformat(timespec='microseconds')}Z"


def _read(time: str) -> int | None:
    """Inverse of `_written`; None for other text."""
    with contextlib.suppress(ValueError):
        if _TIME.fullmatch(time):
            return (datetime.fromisoformat(time).replace(tzinfo=None) - _EPOCH) // _TICK
    return None


def after(seconds: float, last: str) -> str:
    """The time of an event of now that comes after that of `last` (empty: none), also where a clock was ahead."""
    now, before = _micros(seconds) or 0, _read(last)
    return _written(now if before is None else max(now, min(before + 1, _END)))


def line_of(event: Event) -> bytes:
    """The line of the file that says this, with its end. What a terminal may act upon is written as ``\\uXXXX``."""
    texts = {name: _plain(value) for name in ("note", "title", "span") if (value := getattr(event, name))}
    line = msgspec.json.encode(msgspec.structs.replace(event, **texts)).decode()
    return UNSAFE.sub(_escaped, line).encode() + b"\n"


def _escaped(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def event_of(line: bytes) -> Event:
    """The event that a line says. Raises `ValueError` with the reason, also for lines of a later version."""
    try:
        kind = msgspec.json.decode(line, type=_Kind)
        if kind.schema != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}" if kind.schema else "it names no schema")
        event = _DECODER.decode(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    wrong = _wrong(event)
    if wrong:
        raise ValueError(wrong)
    return event


class _Kind(msgspec.Struct):
    schema: str = ""


_DECODER: Final = msgspec.json.Decoder(Event)


def _wrong(event: Event) -> str:
    """The rules for an event that its types don't express."""
    if _read(event.at) is None:
        return "its time is not like 2026-11-21T09:00:00.000000Z"
    if not event.event:
        return "it has no id"
    if event.do == "undo":
        return "" if event.undoes else "it does not say what it undoes"
    if event.do == "mark":
        return "" if event.run is not None and _LETTER.fullmatch(event.letter) else "a mark needs a letter and a run"
    if (event.run is None) == (not event.signature):
        return "it must be about either a run or a signature"
    if event.do in ("merge", "split", "allow", "disallow"):
        return "" if event.signature else f"a {event.do} needs a signature"
    return "it has no tag" if event.do in ("tag", "untag") and not event.tag else ""


_About = tuple[str, str]
"""The subject of an event: ``run``, ``signature``, ``merge``, ``split``, ``allow``, ``letter``, ``event``; its id."""


class Judgements:
    """The result of a set of events; each may be added any number of times and in any order."""

    def __init__(self) -> None:
        self.last = ""
        """The latest time of an event."""
        self.starts: set[int | None] = set()
        """`start_of` all runs with an event: nothing was decided on a run with another start."""
        self.has_old_digests = False
        """Whether a verdict, note or tag was given to a signature of version 0.1."""
        self.has_causes = False
        """Whether a verdict, note or tag was given to a cause."""
        self.has_tags = False
        """Whether the user ever gave a tag."""
        self.regrouped = False
        """Whether causes were merged or split."""
        self.has_allowed = False
        """Whether a finding of the audit was ever allowed."""
        self._events: dict[str, Event] = {}
        self._about: dict[_About, list[Event]] = {}
        self._folded: dict[_About, dict[Identity | None, Judgement]] = {}

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event) -> bool:
        """Add an event; False if it is a duplicate."""
        before = self._events.get(event.event)
        if before is not None:
            if before == event or (before.at, line_of(before)) <= (event.at, line_of(event)):
                return False  # of two that claim one id, the earlier
            self._about[_about(before)].remove(before)
            self._forget(before)
        self._events[event.event] = event
        if event.run is not None:
            self.starts.add(_read(event.run.start))
        self.has_old_digests |= len(event.signature) == OLD_DIGEST_LENGTH
        self.has_causes |= bool(event.signature)
        self.has_tags |= event.do == "tag"
        self.regrouped |= event.do in ("merge", "split")
        self.has_allowed |= event.do == "allow"
        self.last = max(self.last, event.at)
        insort(self._about.setdefault(_about(event), []), event, key=lambda other: other.order)
        self._forget(event)
        return True

    def of(self, run: RunSummary, *causes: str | None) -> Judgement:
        """The decisions on a run with these causes: its own before those of a cause, the first cause first."""
        own = NOTHING
        if start_of(run) in self.starts and (about := ("run", _short(run.id))) in self._about:
            own = self._settled(about, identity(run))
        shared = self.of_causes(*causes)
        return shared if own is NOTHING else _joined(own, shared)

    def of_causes(self, *causes: str | None) -> Judgement:
        """The decisions on several digests of one cause, those of the first before those of the next."""
        result = NOTHING
        for cause in causes:
            about = "signature", cause or ""
            if about in self._about:
                result = _joined(result, self._settled(about, None))
        return result

    @property
    def decided_causes(self) -> list[str]:
        """Digests of all causes with an event."""
        return [digest for kind, digest in self._about if kind == "signature"]

    def merged_into(self, cause: str) -> str:
        """The cause that this one was merged into, itself if it was not. Of causes merged in a circle, the smallest."""
        path = [cause]
        while self.regrouped and (events := self._valid(("merge", path[-1]))) and (into := events[-1].into):
            if into in path:
                return min(path[path.index(into) :])
            path.append(into)
        return path[-1]

    def split_part(self, cause: str) -> str:
        """The part that a cause is split by (`analysis.cause.Failure.part`); empty if it is not split."""
        events = self._valid(("split", cause)) if self.regrouped else []
        return events[-1].by if events else ""

    def is_allowed(self, fingerprint: str) -> bool:
        """Whether findings of the audit with that rule and target are allowed."""
        events = self._valid(("allow", fingerprint)) if self.has_allowed else []
        return bool(events) and events[-1].do == "allow"

    def mark(self, letter: str) -> Mark | None:
        """The meaning of a letter: the last one given."""
        for event in reversed(self._valid(("letter", letter))):
            if event.run is not None:
                return Mark(letter, event.run, event.span, event.title)
        return None

    def marks(self) -> list[Mark]:
        """All marks, by letter."""
        letters = sorted(name for kind, name in self._about if kind == "letter")
        return [mark for letter in letters if (mark := self.mark(letter)) is not None]

    def tags(self) -> list[str]:
        """Every tag ever added and not undone, sorted, for completion."""
        return sorted({event.tag for about in self._about for event in self._valid(about) if event.do == "tag"})

    def event(self, own: str) -> Event | None:
        """The event with that id, unless it was undone."""
        return None if self._is_void(own) else self._events.get(own)

    def _is_void(self, event: str) -> bool:
        return bool(self._about.get(("event", event)))

    def _forget(self, event: Event) -> None:
        """Invalidate the cached decisions on the subject of `event`."""
        self._folded.pop(_about(event), None)
        undone = self._events.get(event.undoes)
        if undone is not None:
            self._folded.pop(_about(undone), None)

    def _valid(self, about: _About) -> list[Event]:
        return [event for event in self._about.get(about, ()) if not self._is_void(event.event)]

    def _settled(self, about: _About, run: Identity | None) -> Judgement:
        folded = self._folded.setdefault(about, {})
        if run not in folded:
            events = self._valid(about)
            if run is not None:
                events = [event for event in events if event.run is not None and event.run.agrees(run)]
            folded[run] = _fold(events, "cause" if run is None else "run")
        return folded[run]


def _about(event: Event) -> _About:
    if event.do == "undo":
        return "event", event.undoes
    if event.do == "mark":
        return "letter", event.letter
    if event.do in ("merge", "split"):
        return event.do, event.signature
    if event.do in ("allow", "disallow"):
        return "allow", event.signature
    return ("signature", event.signature) if event.run is None else ("run", event.run.id)


def _fold(events: list[Event], source: Literal["run", "cause"]) -> Judgement:
    """The result of events about one thing, in their order."""
    verdict, at, note = None, None, ""
    tags: set[str] = set()
    for event in events:
        if event.do == "verdict":
            verdict, at = event.verdict, event.at
        elif event.do == "note":
            note = event.note
        elif event.do == "tag":
            tags.add(event.tag)
        elif event.do == "untag":
            tags.discard(event.tag)
    if verdict is None and not note and not tags:
        return NOTHING
    return Judgement(verdict, None if verdict is None else source, note, tuple(sorted(tags)), verdict and at)


def _joined(own: Judgement, cause: Judgement) -> Judgement:
    if own is NOTHING or cause is NOTHING:
        return cause if own is NOTHING else own
    decided = cause if own.verdict is None else own
    tags = tuple(sorted({*own.tags, *cause.tags}))
    return Judgement(decided.verdict, decided.source, own.note or cause.note, tags, decided.at)

"""Logs of an eval and its samples. A log is an archive (``.eval``) or one JSON document.

Inspect rewrites or extends an archive on each flush. A running log has no ``header.json``; its
state is in ``_journal``, which has a summary of each complete sample.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from math import isnan
from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode, strict
from tracetui.formats.scalars import integer, mapping, number, sequence
from tracetui.formats.schema import NULL, Field, Finite, Integer, Loose, loosen
from tracetui.model import PREVIEW, Problem
from tracetui.sources.archive import MAGIC, Archive
from tracetui.sources.base import CACHE, File, Stat

MAX_SAMPLES: Final = 100_000
"""Samples of a log that are read."""
MAX_ATTEMPTS: Final = 1_000
"""Failed attempts at a sample that are listed."""
MAX_MESSAGES: Final = 100_000
"""Messages that one call may be given."""
START: Final = "_journal/start.json"
HEADER: Final = "header.json"
SUMMARIES: Final = "summaries.json"
REDUCTIONS: Final = "reductions.json"
_JOURNAL: Final = "_journal/summaries/"
_JOURNALED: Final = re.compile(r"_journal/summaries/(\d{1,9})\.json")
_UPDATES: Final = re.compile(r"_journal/config_updates/(\d{1,9})\.json")
_SAMPLE: Final = re.compile(
    r"samples/(?P<key>(?P<id>.*)_epoch_(?P<epoch>\d{1,9}))(?P<pieces>/sample)?\.json", re.DOTALL
)
_PIECE: Final = re.compile(r"/(\d{1,12})\.json")
_ATTACHED: Final = ("attachment://", "tc://")
_SHARED: Final[dict[str, tuple[str, ...]]] = {
    "attachments": (),
    "events_data": ("messages", "calls"),
    "transcript": ("events", "content"),
}
"""Fields with referenced values, and the names of references to them; any name refers to attachments."""
_EXCEPTION: Final = re.compile(r"([A-Za-z_][\w.]{0,99})(?:\(|:|$)")
_OPEN_LOG: Final = "inspect log"
_SCORE_LENGTH: Final = 24
"""Characters of a score in a phrase."""

Record = dict[str, Any]
"""An object whose values are decoded on use: `msgspec.Raw`, or the value itself."""


# ---- values


def value_of(item: Any) -> Any:
    """`item`, decoded if it is `msgspec.Raw`. Raises `FormatError`."""
    if not isinstance(item, msgspec.Raw):
        return item
    data = bytes(item)
    try:
        return strict(data)
    except (ValueError, RecursionError):
        return decode(data)[0]


def record_of(item: Any) -> Record | None:
    """The fields of the object that `item` is, None if it is none. Raises `FormatError`."""
    decoded = _decoded(item, dict[str, msgspec.Raw])
    return decoded if isinstance(decoded, dict) else None


def items_of(item: Any) -> list[Any] | None:
    """The elements of the list that `item` is, undecoded where possible; None if it is none. Raises `FormatError`."""
    decoded = _decoded(item, list[msgspec.Raw])
    return decoded if isinstance(decoded, list) else None


def _decoded(item: Any, kind: Any) -> Any:
    if isinstance(item, msgspec.Raw):
        try:
            return msgspec.json.decode(item, type=kind)
        except (ValueError, RecursionError):
            return value_of(item)
    return item


def field(record: Record, name: str) -> Any:
    """The value of a field, None where it is missing or cannot be decoded."""
    try:
        return value_of(record.get(name))
    except FormatError:
        return None


def text_in(content: Any) -> str:
    """The text of a message: itself, or that of its parts; other parts by their kind, as in summaries."""
    if isinstance(content, str):
        return content
    texts = []
    for part in sequence(content):
        kind, text = mapping(part).get("type"), mapping(part).get("text")
        if isinstance(text, str):
            texts.append(text)
        elif isinstance(kind, str) and kind != "text":
            texts.append(f"({kind[:PREVIEW].capitalize()})")
    return "\n".join(texts)


def completion_of(output: Any) -> str | None:
    """The text of the output of a model: its completion, else the text of its first choice."""
    completion = mapping(output).get("completion")
    if isinstance(completion, str) and completion:
        return completion
    choice = mapping(next(iter(sequence(mapping(output).get("choices"))), None))
    return text_in(mapping(choice.get("message")).get("content")) or None


def prompt_in(given: Any) -> str:
    """The task of a sample: its input, or the first message of the user in a conversation."""
    if isinstance(given, str):
        return given.strip()
    texts = [
        (mapping(message).get("role"), text)
        for message in sequence(given)
        if (text := text_in(mapping(message).get("content")).strip())
    ]
    return next((text for role, text in texts if role == "user"), texts[0][1] if texts else "")


def error_type(message: str) -> str | None:
    """The type of an exception, which messages begin with: ``RuntimeError('…')``, ``ValueError: …``."""
    exception = _EXCEPTION.match(message)
    return (
        exception[1]
        if exception and exception[1].endswith(("Error", "Exception", "Group", "Exit", "Interrupt"))
        else None
    )


NAN: Final = "NaN"
"""The value of a score that the scorer could not give, as Inspect writes it."""


def is_nan(value: Any) -> bool:
    """Whether a value is not a number, as a number."""
    return isinstance(value, float) and isnan(value)


def score_text(value: Any, depth: int = 3) -> str:
    """The value of a score in short, nested values to that depth."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value[:_SCORE_LENGTH]
    if (score := number(value)) is not None:
        return f"{score:.4g}"
    if is_nan(value):
        return NAN
    if not depth or not isinstance(value, dict | list):
        return ""
    if isinstance(value, dict):
        texts = ((key, score_text(item, depth - 1)) for key, item in list(value.items())[:4])
        return joined((f"{key} {text}" for key, text in texts if text), " ")
    return joined((score_text(item, depth - 1) for item in value[:4]), " ")


def joined(texts: Iterable[str], separator: str = " · ") -> str:
    """The texts that are not empty, as one of at most `PREVIEW` characters."""
    return separator.join(text for text in texts if text)[:PREVIEW]


def resolved(value: Any, resolve: Callable[[str], str]) -> Any:
    """`value` with every reference in it replaced by the text that it refers to. Changes `value` itself."""
    if isinstance(value, str):
        return resolve(value)
    todo = [value]
    while todo:
        item = todo.pop()
        keys: Iterable[Any] = item if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            below = item[key]
            if isinstance(below, str):
                if below.startswith(_ATTACHED):
                    item[key] = resolve(below)
            elif isinstance(below, dict | list):
                todo.append(below)
    return value


# ---- samples


class SampleRecord(msgspec.Struct, gc=False):
    """A sample, or its summary, which has shorter texts and only counts failed attempts."""

    id: Loose = None
    epoch: Loose = None
    uuid: str | None = None
    input: msgspec.Raw = NULL
    scores: msgspec.Raw = NULL
    score: msgspec.Raw = NULL
    """The only score in early logs."""
    error: msgspec.Raw = NULL
    limit: msgspec.Raw = NULL
    model_usage: msgspec.Raw = NULL
    started_at: str | None = None
    completed_at: str | None = None
    total_time: Finite | None = None
    retries: Integer | None = None
    error_retries: msgspec.Raw = NULL
    events: msgspec.Raw = NULL
    events_data: msgspec.Raw = NULL
    attachments: msgspec.Raw = NULL
    transcript: msgspec.Raw = NULL

    @property
    def key(self) -> str | None:
        """``ID_epoch_N``, as members of archives are called; None without a sample id."""
        if isinstance(self.id, bool) or not isinstance(self.id, str | int) or integer(self.epoch) is None:
            return None
        return f"{self.id}_epoch_{self.epoch}" if isinstance(self.id, str) or integer(self.id) is not None else None

    def or_else(self, other: SampleRecord) -> SampleRecord:
        """The same, with the fields of `other` where it has none."""
        if self is other:
            return self
        own = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return SampleRecord(**{name: getattr(other, name) if v is None or v is NULL else v for name, v in own})


_RECORD: Final[Field[SampleRecord]] = Field(SampleRecord)


def decode_sample(item: Any) -> SampleRecord | None:
    """The sample or summary that `item` is; None if it is no object. Raises `FormatError`."""
    if isinstance(item, msgspec.Raw):
        try:
            return _RECORD.strict(item)
        except (ValueError, RecursionError):
            item = value_of(item)
    return loosen(item, SampleRecord, {}) if isinstance(item, dict) else None


class Entry(msgspec.Struct, frozen=True):
    """A run of a log: a sample, or one of the attempts at it that failed."""

    key: str
    record: SampleRecord
    """The sample in the log: its summary in an archive, the sample itself in a document."""
    item: Any = None
    """The same undecoded; None where there is no summary."""
    attempts: int = 0
    """How many failed before."""
    attempt: int | None = None
    """Which of these it is, from 1; None for the sample itself."""
    size: int | None = None
    """Bytes of the sample."""

    @property
    def sample(self) -> str:
        """The key of the sample that it is, or is an attempt at."""
        return self.key if self.attempt is None else self.key.removesuffix(attempt_suffix(self.attempt))


class Sample:
    """One sample; references are looked up where they are used.

    Events share messages (``input_refs``), requests (``call_refs``) and long texts (``attachment://…``); earlier logs
    have all in place, or call attachments ``tc://…``. A sample is one record, or many: its events and what they share
    in pieces of a thousand, members of `archive` in `folder`.
    """

    def __init__(self, item: Any, *, check: int, size: int, archive: Archive | None = None, folder: str = "") -> None:
        """`check` and `size`: checksum and size of its bytes. Raises `FormatError` if it is no sample."""
        record = decode_sample(item)
        if record is None:
            raise FormatError("sample is not a JSON object")
        self.record, self.check, self.size = record, check, size
        self._item, self._archive, self._folder = item, archive, folder
        self._parts: dict[str, list[Any]] = {}

    def through(self, file: File) -> None:
        """Go on reading through `file`, the same one opened again."""
        if self._archive is not None:
            self._archive.through(file)

    @property
    def fields(self) -> dict[str, Any]:
        """All fields except the events and their references, decoded."""
        record = dict(record_of(self._item) or {})
        if self._archive is not None and f"{self._folder}/metadata.json" in self._archive.members:
            record["metadata"] = read_value(self._archive, f"{self._folder}/metadata.json")
        names = [name for name in record if name not in (*_SHARED, "events", "error_retries")]
        decoded = {name: resolved(field(record, name), self.resolve) for name in names}
        for name, shared in _SHARED.items():
            value = field(record, name)
            if isinstance(value, dict):
                value = {key: item for key, item in value.items() if key not in shared} if shared else None
            if value not in (None, {}):
                decoded[name] = value
        if self._archive is not None and isinstance(refs := decoded.get("message_refs"), list):
            try:
                decoded["messages"] = resolved(
                    [value_of(item) for _, item in self.shared("messages", refs)], self.resolve
                )
            except FormatError as fault:
                decoded["messages"] = f"not read: {fault}"
        return decoded

    def events(self, attempt: int | None = None) -> list[Any]:
        """Lists that hold the events of the sample, or of one of its failed attempts. Raises `FormatError`."""
        if attempt is not None:
            return [self.attempt(attempt).get("events")]
        if self._archive is not None and self.record.events is NULL:
            return self._pieces("events")
        return [self.record.events if items_of(self.record.events) else self._transcript.get("events")]

    @cached_property
    def attempts(self) -> list[Any]:
        """The attempts that failed before this one."""
        retries = self.record.error_retries
        return [] if retries is NULL else items_of(retries) or []

    def attempt(self, index: int) -> Record:
        """One of them, the first of which is 1; nothing if there is none."""
        return (record_of(self.attempts[index - 1]) or {}) if 0 < index <= len(self.attempts) else {}

    def shared(self, part: str, refs: Any) -> Iterator[tuple[int, Any]]:
        """The ``messages`` or ``calls`` that `refs` mean: ranges of those that events share, each with its index."""
        ranges = [
            (integer(span[0]), integer(span[1])) for span in sequence(refs) if isinstance(span, list) and len(span) == 2
        ]
        items = self._part(part)
        indices = (
            i for a, b in ranges if a is not None and b is not None for i in range(max(0, a), min(b, len(items)))
        )
        return ((i, items[i]) for i in islice(indices, MAX_MESSAGES))

    def resolve(self, text: str) -> str:
        """The text that `text` refers to; itself where it refers to nothing that is there."""
        if not text.startswith(_ATTACHED):
            return text
        name = text.partition("://")[2]
        try:
            resolved_text = None
            if self._archive is not None and name.isdecimal() and len(name) < 10:
                listed = self._part("attachments")
                resolved_text = value_of(listed[int(name)]) if int(name) < len(listed) else None
            resolved_text = field(self._attachments, name) if resolved_text is None else resolved_text
        except FormatError:
            return text
        return resolved_text if isinstance(resolved_text, str) else text

    @cached_property
    def _attachments(self) -> Record:
        return record_of(self.record.attachments) or record_of(self._transcript.get("content")) or {}

    @cached_property
    def _transcript(self) -> Record:
        return record_of(self.record.transcript) or {}

    def _part(self, name: str) -> list[Any]:
        if name not in self._parts:
            if self._archive is not None:
                self._parts[name] = [item for items in self._pieces(name) for item in items_of(items) or ()]
            else:
                self._parts[name] = items_of((record_of(self.record.events_data) or {}).get(name)) or []
        return self._parts[name]

    def _pieces(self, part: str) -> list[msgspec.Raw]:
        """The lists that a part of a sample in pieces consists of, each named by the index of its first item."""
        assert self._archive is not None
        folder = f"{self._folder}/{part}"
        pieces, count = [], 0
        for first, name in _numbered(_PIECE, self._archive.members, folder):
            if first != count:
                raise FormatError("a piece of the sample is missing", f"{folder}/{count}.json")
            pieces.append(msgspec.Raw(self._archive.read(name)))
            items = items_of(pieces[-1])
            if items is None:
                raise FormatError("not a list")
            count += len(items)
        return pieces


# ---- logs


class Log:
    """One log, as it is now."""

    header: Record
    """Fields of the eval: ``eval``, ``plan``, ``results``, ``status`` …"""
    ended: bool
    """Whether the end of the eval is recorded."""
    samples: dict[str, Entry]
    """All of its samples in order, by key."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._latest: tuple[str, Sample] | None = None

    def runs(self) -> Iterator[Entry]:
        """All runs in order: each sample, after the failed attempts at it."""
        for key, entry in self.samples.items():
            for index in range(1, entry.attempts + 1):
                name = key + attempt_suffix(index)
                if name not in self.samples:
                    yield msgspec.structs.replace(entry, key=name, attempt=index)
            yield entry

    def find(self, key: str) -> Entry | None:
        """The run of that key."""
        if (entry := self.entry(key)) is not None:
            return entry
        sample, _, index = key.rpartition("_attempt_")
        entry = self.entry(sample)
        if entry is None or not index.isdecimal() or len(index) > 6 or not 0 < int(index) <= entry.attempts:
            return None
        return msgspec.structs.replace(entry, key=key, attempt=int(index))

    def sample(self, key: str) -> Sample:
        """One of its samples, the latest of which is cached. Raises `FormatError` if it cannot be read."""
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._read_sample(key)
        return self._latest[1]

    @cached_property
    def fields(self) -> dict[str, Any]:
        """All fields of the eval, decoded."""
        return {**{name: field(self.header, name) for name in self.header}, **self._extra()}

    def entry(self, key: str) -> Entry | None:
        """One of its samples, without reading all of them."""
        return self.samples.get(key)

    def through(self, file: File) -> None:
        """Go on reading through `file`, the same one opened again."""

    def check(self, key: str) -> int:
        """Checksum of all data of a run; for the eval, of all but the content of its samples."""
        raise NotImplementedError

    def _read_sample(self, key: str) -> Sample:
        raise NotImplementedError

    def _extra(self) -> dict[str, Any]:
        """Fields of the eval outside its header."""
        return {}

    def _add_problem(self, where: str, reason: str, lost: int | None = None) -> None:
        self.problems.append(Problem(self.path, where, reason, lost=lost))


class ArchiveLog(Log):
    """A log that is an archive. All but the list of its members is read when it is asked for."""

    def __init__(self, file: File) -> None:
        super().__init__(file.path)
        self._archive = Archive(file)
        self._members = self._archive.members
        if self._archive.damage is not None:
            self._add_problem("", self._archive.damage)
        self.ended = HEADER in self._members
        self.header = self._record(HEADER) or self._record(START) or {}
        if not self.header and not self._keys:
            raise FormatError("the eval can't be read", self.problems[0].where if self.problems else "")

    @cached_property
    def samples(self) -> dict[str, Entry]:  # type: ignore[override]
        keys = dict.fromkeys([*self._summaries, *self._keys])  # the summary of a complete sample may be yet to come
        if len(keys) > MAX_SAMPLES:
            self._add_problem("", f"more than {MAX_SAMPLES} samples; the others are not read")
        return {key: entry for key in islice(keys, MAX_SAMPLES) if (entry := self.entry(key)) is not None}

    def entry(self, key: str) -> Entry | None:
        size = sum(self._members[name].size for name in self._parts(key)) or None
        if key in self._summaries:
            item, record = self._summaries[key]
            return Entry(key, record, item, max(0, min(record.retries or 0, MAX_ATTEMPTS)), size=size)
        match = self._match(key)
        if match is None:
            return None
        try:
            sample = self.sample(key)
        except FormatError:
            return Entry(key, SampleRecord(match["id"], int(match["epoch"])), size=size)
        return Entry(key, sample.record, attempts=min(len(sample.attempts), MAX_ATTEMPTS), size=size)

    def through(self, file: File) -> None:
        self._archive.through(file)

    def check(self, key: str) -> int:
        entry = self.find(key)
        if entry is None:
            checks = [self._members[name].check for name in self._members if not name.startswith("samples/")]
            return crc32(repr((checks, self._keys)).encode())
        item = entry.item
        summary = crc32(item if isinstance(item, msgspec.Raw) else repr(item).encode("utf-8", "replace"))
        return crc32(repr((self._common, self._versions(entry.sample), entry.attempts, summary)).encode())

    def _read_sample(self, key: str) -> Sample:
        match = self._match(key)
        if match is None:
            raise FormatError("the sample is not in the log", f"samples/{key}.json")
        name, member = match.string, self._members[match.string]
        item = msgspec.Raw(self._archive.read(name))
        if match["pieces"] is None:
            return Sample(item, check=member.check, size=member.size)
        check, size = (
            crc32(repr(self._versions(key)).encode()),
            sum(self._members[part].size for part in self._parts(key)),
        )
        return Sample(item, check=check, size=size, archive=self._archive, folder=name.removesuffix("/sample.json"))

    def _extra(self) -> dict[str, Any]:
        """Reductions of scores, changes of the configuration, and the names of unknown members."""
        extra: dict[str, Any] = {}
        if REDUCTIONS in self._members:
            extra["reductions"] = read_value(self._archive, REDUCTIONS)
        updates = _numbered(_UPDATES, self._members)
        if updates and not self.ended:
            extra["config_updates"] = [read_value(self._archive, name) for _, name in updates]
        own = (START, HEADER, SUMMARIES, REDUCTIONS)
        others = [name for name in self._members if name not in own and not name.startswith("samples/")]
        others = [name for name in others if not _JOURNALED.fullmatch(name) and not _UPDATES.fullmatch(name)]
        if others:
            extra["other members"] = others[:MAX_SAMPLES]
        return extra

    @cached_property
    def _summaries(self) -> dict[str, tuple[Any, SampleRecord]]:
        """Summaries of samples by key, undecoded and decoded."""
        summaries: dict[str, tuple[Any, SampleRecord]] = {}
        names = (
            [SUMMARIES] if SUMMARIES in self._members else [name for _, name in _numbered(_JOURNALED, self._members)]
        )
        for name in names:
            try:
                items = items_of(msgspec.Raw(self._archive.read(name)))
            except FormatError as fault:
                self._add_problem(fault.where or name, fault.reason)
                continue
            if items is None:
                self._add_problem(name, "not a list")
            for item in items or ():
                record = decode_sample(item)
                key = None if record is None else record.key
                if record is None or key is None:
                    self._add_problem(name, "summary names no sample")
                else:
                    summaries[key] = item, record
        return summaries

    @cached_property
    def _common(self) -> list[int]:
        """Checksums of the members shared by all samples."""
        others = ("samples/", SUMMARIES, _JOURNAL)
        return [member.check for name, member in self._members.items() if not name.startswith(others)]

    @cached_property
    def _keys(self) -> list[str]:
        """Keys of the samples that are there."""
        matches = (_SAMPLE.fullmatch(name) for name in self._members if name.startswith("samples/"))
        return [match["key"] for match in matches if match is not None]

    def _match(self, key: str) -> re.Match[str] | None:
        """The member that is a sample, or that in which the pieces of one begin."""
        names = (f"samples/{key}.json", f"samples/{key}/sample.json")
        return next((_SAMPLE.fullmatch(name) for name in names if name in self._members), None)

    def _record(self, name: str) -> Record | None:
        if name not in self._members:
            return None
        try:
            return record_of(msgspec.Raw(self._archive.read(name)))
        except FormatError as fault:
            self._add_problem(fault.where or name, fault.reason)
            return None

    def _parts(self, key: str) -> list[str]:
        """The members that a sample is in."""
        match = self._match(key)
        if match is None or match["pieces"] is None:
            return [] if match is None else [match.string]
        folder = match.string.removesuffix("sample.json")
        return [name for name in self._members if name.startswith(folder)]

    def _versions(self, key: str) -> list[int]:
        return [self._members[name].check for name in self._parts(key)]


class DocumentLog(Log):
    """A log that is one JSON document, rewritten as a whole."""

    def __init__(self, file: File, data: bytes) -> None:
        super().__init__(file.path)
        self._data = data
        self.header = self._decode()
        recorded = self.header.pop("samples", None)
        items = items_of(recorded)
        if (
            items is None
            and recorded is not None
            and bytes(memoryview(recorded) if isinstance(recorded, msgspec.Raw) else b"") != b"null"
        ):
            self.header["samples"] = recorded
        self.ended = field(self.header, "status") != "started"
        self.samples = {}
        for index, item in enumerate(items or ()):
            self._add(index, item)

    @cached_property
    def _check(self) -> int:
        return crc32(self._data)

    def check(self, key: str) -> int:
        return self._check

    def _read_sample(self, key: str) -> Sample:
        entry = self.samples.get(key)
        if entry is None:
            raise FormatError("the sample is not in the log", key)
        if not isinstance(entry.item, msgspec.Raw):
            return Sample(entry.item, check=self._check, size=len(self._data))
        data = bytes(entry.item)  # a copy: the sample may be cached for longer than the document
        return Sample(msgspec.Raw(data), check=crc32(data), size=len(data))

    def _decode(self) -> Record:
        try:
            top: Any = msgspec.json.decode(self._data, type=dict[str, msgspec.Raw])
            note = None
        except (ValueError, RecursionError):
            top, note = decode(self._data)
        if not isinstance(top, dict):
            raise FormatError("not a JSON object")
        if note is not None and not note.startswith("values that JSON does not allow"):  # Inspect itself writes NaN
            self._add_problem("", f"read leniently: {note}")
        return top

    def _add(self, index: int, item: Any) -> None:
        size = len(memoryview(item)) if isinstance(item, msgspec.Raw) else None
        record = decode_sample(item)
        key = None if record is None else record.key
        if record is None or key is None or key in self.samples or index >= MAX_SAMPLES:
            reason = "duplicate sample" if key in self.samples else "names no sample"
            self._add_problem(f"samples[{index}]", reason, size)
            return
        attempts = items_of(record.error_retries) if record.error_retries is not NULL else None
        self.samples[key] = Entry(key, record, item, min(len(attempts or ()), MAX_ATTEMPTS), size=size)


def open_log(file: File, *, cache: bool = False) -> Log:
    """The log in a file. `cache` shares it between all runs of the file, if the caller has a cache (`CACHE`).

    Raises `FormatError` if nothing of it can be read.
    """
    shared = file.memo.get(CACHE)
    cached: tuple[Stat, Log] | None = None if shared is None else shared.get(_OPEN_LOG)
    if cached is not None and cached[0] == file.stat:
        cached[1].through(file)
        return cached[1]
    log: Log = ArchiveLog(file) if file.head.startswith(MAGIC) else DocumentLog(file, file.read_all())
    if cache and shared is not None:
        shared[_OPEN_LOG] = file.stat, log
    return log


def attempt_suffix(index: int) -> str:
    """The suffix of a failed attempt's key."""
    return f"_attempt_{index}"


def read_value(archive: Archive, name: str) -> Any:
    """The value of a member, or the reason that it can't be read."""
    try:
        return decode(archive.read(name))[0]
    except FormatError as fault:
        return f"not read: {fault.reason}"


def _numbered(pattern: re.Pattern[str], names: Iterable[str], folder: str = "") -> list[tuple[int, str]]:
    """The names in `folder` that have a number, in its order."""
    matches = ((name, pattern.fullmatch(name, len(folder))) for name in names if name.startswith(folder))
    return sorted((int(match[1]), name) for name, match in matches if match is not None)

"""JSON documents: read as a whole, and again whenever the file changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk
from tracetui.formats.decode import decode
from tracetui.formats.schema import Schema, Unknown, keys_of, plain, raw_of
from tracetui.model import Body, Problem, RunRef, RunSummary
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import File, LinkLost, Stat, reason_of, settled

_T = TypeVar("_T")
_JSON: Final = re.compile(r".*\.json", re.DOTALL)


class Record(msgspec.Struct, frozen=True):
    """One object of a list: its index, as a Struct, and its bytes (a rendering if the document is not
    strict JSON).
    """

    index: int
    value: Any
    raw: msgspec.Raw


class Outline:
    """The object of a document, or the object at `where` in it; decodes fields on demand.

    `data` is the document, or the fields of an object of which the rest was read (leniently, if there is a `note`).
    Raises `FormatError` for a document that is no object.
    """

    def __init__(self, data: bytes | dict[str, Any], path: str, where: str = "", note: str | None = None) -> None:
        self.unknown: Unknown = {}
        """Counts of unknown fields."""
        self.rest: dict[str, Any] = {}
        """Values found instead of records, by location."""
        self._path, self._where = path, where
        self._problems: dict[Problem, None] = {}
        """In order; a value that is read again adds none."""
        self._note = note
        self.fields: dict[str, Any]
        """Decoded where the document is not strict JSON, else as they are written."""
        if not isinstance(data, bytes):
            self.fields = data
            return
        try:
            self.fields = dict(keys_of(data))
            return
        except msgspec.ValidationError:
            raise FormatError("not a JSON object") from None
        except (ValueError, RecursionError):
            value, self._note = decode(data)
        if not isinstance(value, dict):
            raise FormatError("not a JSON object")
        self.fields = value

    @property
    def problems(self) -> list[Problem]:
        """Problems found so far."""
        lenient = [Problem(self._path, self._where, f"read leniently: {self._note}")] if self._note else []
        return [*lenient, *self._problems]

    def values(self, *without: str) -> dict[str, Any]:
        """The fields but for those, decoded."""
        return {name: plain(value) for name, value in self.fields.items() if name not in without}

    def record(self, schema: Schema[_T], *without: str) -> _T:
        """The object as one of the Structs of `schema`, those fields left out."""
        fields = {name: value for name, value in self.fields.items() if name not in without}
        if all(isinstance(value, msgspec.Raw) for value in fields.values()):
            data = b",".join(msgspec.json.encode(name) + b":" + bytes(value) for name, value in fields.items())
            try:
                return schema.strict(b"{" + data + b"}")
            except (ValueError, RecursionError):
                record, _, note = schema.decode(b"{" + data + b"}", self.unknown)
            self._note = self._note or note
            if record is not None:
                return record
        return schema.convert({name: plain(value) for name, value in fields.items()}, self.unknown)

    def items(self, name: str) -> list[msgspec.Raw]:
        """The source text of each item of a list; a field that isn't a list has none."""
        value = self.fields.get(name)
        if isinstance(value, msgspec.Raw):
            try:
                return msgspec.json.decode(value, type=list[msgspec.Raw])
            except (ValueError, RecursionError):
                value = plain(value)
        if isinstance(value, list):
            return [raw_of(item) for item in value]
        if value is not None:
            self._leave(name, value, "not a list")
        return []

    def records(self, name: str, schema: Schema[Any]) -> Iterator[Record]:
        """The objects of a list as Structs of `schema`."""
        items, value = self.items(name), self.fields.get(name)
        try:
            decoded = schema.many(value) if isinstance(value, msgspec.Raw) else None
        except (ValueError, RecursionError):
            decoded = None
        if decoded is not None and len(decoded) == len(items):
            yield from map(Record, range(len(items)), decoded, items)
            return
        for index, raw in enumerate(items):
            try:
                record, other, note = schema.decode(bytes(raw), self.unknown)
                self._note = self._note or note
                if record is not None:
                    yield Record(index, record, raw)
                else:
                    self._leave(f"{name}[{index}]", other, "not an object")
            except FormatError as error:
                self._leave(f"{name}[{index}]", None, error.reason)

    def _leave(self, where: str, value: Any, reason: str) -> None:
        self.rest[where] = value
        self.note(where, reason)

    def note(self, where: str, reason: str) -> None:
        """Add to the problems."""
        self._problems[Problem(self._path, f"{self._where}, {where}" if self._where else where, reason)] = None


class Fingerprint(msgspec.Struct, frozen=True):
    """Identifies a version of a file."""

    stat: Stat
    check: int | None
    """Checksum of its bytes while a change may leave the same stat; None after that."""


def fingerprint(file: File, data: bytes | None = None) -> Fingerprint:
    """The fingerprint of `file`; `data` is its content, read if needed and not given."""
    if settled(file.stat):
        return Fingerprint(file.stat, None)
    return Fingerprint(file.stat, crc32(file.read_all() if data is None else data))


def unchanged(file: File, before: Fingerprint | None) -> Fingerprint | None:
    """Return the fingerprint to remember if `file` has not changed since `before`, else None."""
    if before is None or before.stat != file.stat:
        return None
    if before.check is None:
        return before
    current = fingerprint(file, data := file.read_all())
    return current if crc32(data) == before.check else None


class Document(msgspec.Struct, frozen=True):
    """A file that was read."""

    version: Fingerprint
    check: int
    """Checksum of its bytes."""
    value: Any
    """What was made of them."""


class Documents:
    """The files of a run that is in several: `make` gets the path and the bytes of those that differ from `before`.

    Paths are relative to the folder of the main file.
    """

    def __init__(
        self, file: File, make: Callable[[str, bytes], Any], before: Mapping[str, Document | None] | None = None
    ) -> None:
        self.file, self.before, self._make = file, before or {}, make
        self.read: dict[str, Document | None] = {}
        """By path; None for one that could not be read."""
        self.problems: list[Problem] = []

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(document.version.stat.size for document in self.read.values() if document is not None)

    def listed(self, folder: str, name: re.Pattern[str] = _JSON) -> dict[str, Stat]:
        """The files in a folder that are called so, in any order; without the main file."""
        listed: dict[str, Stat] = {}
        for entry in self.file.folder(folder).entries:
            if entry.skipped is None and entry.stat is not None and name.fullmatch(own := entry.name):
                listed[f"{folder}/{own}" if folder else own] = entry.stat
        listed.pop(self.file.name, None)
        return listed

    def get(self, path: str, stat: Stat | None = None, *, needed: bool = True) -> Document | None:
        """A file; None, and a problem if it is `needed`, if it can't be read. It isn't opened if its `stat` is settled
        and the same as before.
        """
        known = self.before.get(path)
        if known is not None and stat is not None and known.version == Fingerprint(stat, None):
            self.read[path] = known
        if path not in self.read:
            try:
                with self.file.other(path) as other:
                    self.take(path, other)
            except LinkLost:
                raise
            except OSError as error:
                self.read[path] = None
                self.problems += [Problem(self.file.path, path, reason_of(error))] if needed else []
        return self.read[path]

    def take(self, path: str, file: File) -> Document:
        """The same for a file that is open. Raises `OSError`."""
        known = self.before.get(path)
        if known is not None and (same := unchanged(file, known.version)) is not None:
            document = known if same is known.version else msgspec.structs.replace(known, version=same)
        else:
            data = file.read_all()
            document = Document(fingerprint(file, data), crc32(data), self._make(path, data))
        self.read[path] = document
        return document


def is_there(file: File, path: str) -> bool:
    """Whether there is a file with bytes at `path`, relative to the folder of `file`."""
    try:
        with file.other(path) as other:
            return other.stat.size > 0
    except OSError:
        return False


def summary(ref: RunRef, file: File, chunk: Chunk, *, deep: bool) -> RunSummary:
    """The summary of a run: counted from `chunk`, the complete run, if `deep`; else from its header alone."""
    if not deep and chunk.header is not None:
        return summary_of(ref, chunk.header, None, modified_at=file.stat.mtime, moving=file.moving)
    builder = RunBuilder(ref, lambda span: Body())
    builder.add(chunk.spans, header=chunk.header, problems=chunk.problems)
    return builder.summary(modified_at=file.stat.mtime, moving=file.moving)


class DocumentReader:
    """The `Reader` of a run that is one document, which `read` makes a complete chunk of.

    `read` gets the file and all of its bytes; it raises `FormatError` for unreadable content. The last
    version stays until a later one can be read.
    """

    def __init__(self, read: Callable[[File, bytes], Chunk]) -> None:
        self._read = read
        self._version: Fingerprint | None = None

    def more(self, file: File) -> Chunk:
        if (same := unchanged(file, self._version)) is not None:
            self._version = same
            return Chunk()
        data = file.read_all()
        chunk = msgspec.structs.replace(self._read(file, data), reset=self._version is not None)
        self._version = fingerprint(file, data)
        return chunk

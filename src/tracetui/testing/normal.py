"""The normal form of what a format read: plain JSON values that can be compared, stored and searched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from tracetui.model import Run

_UNCOMPARED: Final = frozenset({"at", "modified_at", "deep"})
"""Fields that say nothing about the trace: a format's own place mark, and what differs between stages."""


def plain(value: Any) -> Any:
    """`value` as JSON: fields of structs that are empty are left out, bytes become their length and a digest."""
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__ if name not in _UNCOMPARED)
        return {name: plain(item) for name, item in fields if not _is_empty(item)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:16]}"
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def plain_run(run: Run) -> dict[str, Any]:
    """A whole run with the bodies of all its spans; problems in a stable order."""
    return {
        "summary": plain(run.summary),
        "body": plain(run.body),
        "spans": [
            {**plain(span), "depth": depth, "body": plain(run.load(span))}
            for span, depth in zip(run.spans, run.depths, strict=True)
        ],
        "problems": sorted((plain(problem) for problem in run.problems), key=repr),
    }


def relative(value: Any, root: str) -> Any:
    """The same value with the folder `root` taken out of every path that begins with it."""
    if isinstance(value, str):
        return value.replace(root + "/", "")
    if isinstance(value, dict):
        return {key: relative(item, root) for key, item in value.items()}
    return [relative(item, root) for item in value] if isinstance(value, list) else value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str | int | float]]:
    """Every string and number within a JSON value with its path (``steps.*.args.query``); blank strings left out."""
    todo = [(path, value)]
    while todo:
        where, item = todo.pop()
        if isinstance(item, dict):
            todo.extend((f"{where}.{key}" if where else str(key), below) for key, below in item.items())
        elif isinstance(item, list | tuple):
            todo.extend((f"{where}.*" if where else "*", below) for below in item)
        elif isinstance(item, str):
            if item.strip():
                yield where, item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield where, item


class Shown:
    """All that is shown of some runs, to be asked whether a value of the source is among it."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._values: set[str | int | float] = set()
        for run in runs:
            for part in (run.summary, run.body, *run.spans, *map(run.load, run.spans)):
                self._values.update(value for _, value in leaves(_without_raw(part)))
        self._text = "\0".join(value for value in self._values if isinstance(value, str))

    def has(self, value: str | int | float) -> bool:
        """True if `value` is shown: as it is, within a longer text, or (JSON inside a string) leaf by leaf."""
        if value != value or value in self._values:
            return True
        if not isinstance(value, str):
            return str(value) in self._text
        if value in self._text or value.strip() in self._text:
            return True
        return value.lstrip()[:1] in ("{", "[") and self._has_all(value)

    def _has_all(self, text: str) -> bool:
        try:
            inner = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return False
        return all(self.has(value) for _, value in leaves(inner))


def _without_raw(value: Any) -> Any:
    kept = plain(value)
    kept.pop("raw", None)
    return kept


def _is_empty(value: Any) -> bool:
    """Whether a field holds its usual default; a zero is no such thing."""
    return value is None or value is False or (isinstance(value, str | tuple | dict | bytes) and not value)

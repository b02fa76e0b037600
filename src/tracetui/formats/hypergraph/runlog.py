"""RunLog and MapLog: the timing of a hypergraph result, as a user's ``json.dump(result.log.to_dict())`` leaves it.

A RunLog has ``steps``; a step of a nested graph carries an ``inner_log`` of its own. A MapLog has ``items``, one RunLog
for each. Neither has values, times of day or a status, which is derived from the steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import getitem
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.bodies import as_json, cached
from tracetui.formats.decode import decode, top_names
from tracetui.formats.hypergraph.runs import arrow, error_type, items_failed
from tracetui.formats.scalars import integer, mapping, sequence
from tracetui.formats.schema import Finite, Integer, Unknown, loosen, unknown_fields
from tracetui.model import (
    Body,
    Error,
    Header,
    Operation,
    Problem,
    RunBody,
    Span,
    Status,
    StatusSource,
    Total,
    status_of,
)
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 70
_STEP_KEYS: Final = (b'"node_name"', b'"superstep"', b'"duration_ms"')

Path = tuple[str | int, ...]
"""Where a record is in the document: ``("steps", 1, "inner_log", "steps", 0)``."""


class Log(Struct, gc=False):
    """A RunLog or a MapLog. Nested logs are read one level at a time, because the depth is unlimited."""

    other_fields: ClassVar = ""
    graph_name: str | None = None
    run_id: str | None = None
    total_duration_ms: Finite | None = None
    steps: Any = None
    items: Any = None
    restored_count: Integer | None = None
    status: str | None = None
    error: Any = None
    node_stats: Any = None


class Step(Struct, gc=False):
    """One execution of a node."""

    other_fields: ClassVar = "span_id"
    node_name: str | None = None
    superstep: Integer | None = None
    duration_ms: Finite | None = None
    status: str | None = None
    error: str | None = None
    cached: Any = None
    decision: Any = None
    inner_log: Any = None

    @property
    def outcome(self) -> Status:
        """How it ended."""
        status = status_of(self.status) if self.status else Status.UNKNOWN
        return Status.ERROR if status is Status.UNKNOWN and self.error else status

    @property
    def operation(self) -> Operation:
        """The operation of the step."""
        if isinstance(self.inner_log, dict):
            return Operation.INVOKE_WORKFLOW
        return Operation.NODE if self.decision is None else Operation.ROUTE

    def span(self, path: Path, parent: str | None) -> Span:
        """The span of the step at `path`."""
        status, duration, message = self.outcome, self.duration_ms, self.error or ""
        facts = ["" if self.decision is None else arrow(self.decision), "cached" if self.cached is True else ""]
        return Span(
            id=_id(path),
            name=self.node_name or "step",
            operation=self.operation,
            nested_graph=self.operation is Operation.INVOKE_WORKFLOW,
            parent_id=parent,
            step=self.superstep,
            is_step=len(path) == 2,
            status=status,
            status_word=self.status or None,
            status_source=StatusSource.EXPLICIT if self.status or status is Status.ERROR else None,
            duration_ms=None if duration == 0 and status in (Status.ERROR, Status.PAUSED) else duration,
            error=Error(message, error_type(message)) if status is Status.ERROR else None,
            note=" · ".join(filter(None, facts)),
            at=path,
        )


def sniff(file: File) -> int:
    """Certain of an object with the keys of a RunLog or MapLog; of a long one, likely from those in its head."""
    head = file.head
    if b'"graph_name"' not in head and not all(key in head for key in _STEP_KEYS):
        return NO
    names = set(top_names(head))
    if names >= {b"graph_name", b"steps", b"node_stats"} or names >= {b"graph_name", b"items", b"restored_count"}:
        return CERTAIN
    cut = len(head) >= HEAD_SIZE
    enough = {b"graph_name", b"total_duration_ms"} & names and {b"steps", b"items"} & names
    return LIKELY if enough or (cut and b"steps" in names and all(key in head for key in _STEP_KEYS)) else NO


def read(file: File, data: bytes) -> Chunk:
    """The whole run."""
    value, note = decode(data)
    if not isinstance(value, dict):
        raise FormatError("not a JSON object")
    unknown: Unknown = {}
    log: Log = loosen(value, Log, unknown)
    spans = list(_spans(log, unknown))
    return Chunk(
        spans=spans,
        header=_header(log, file, spans, unknown),
        body=RunBody(totals=tuple(_totals(log, spans)), attributes=_rest(value), layout="RunLog"),
        problems=[] if note is None else [Problem(file.path, "", f"read leniently: {note}")],
    )


def body(file: File, span: Span) -> Body:
    """Everything about one step or item."""
    *path, number = span.at
    try:
        record = cached(file, tuple(path), lambda: _list_at(file.read_all(), path))[number]
    except (LookupError, TypeError):
        raise FormatError("the step is no longer in the file", ".".join(map(str, span.at))) from None
    if isinstance(record, msgspec.Raw):
        return Body(attributes=_rest(decode(raw := bytes(record))[0]), raw=raw)
    return Body(attributes=_rest(record))


def _spans(root: Log, unknown: Unknown) -> Iterator[Span]:
    """Every item and step in order, nested ones after their parents, without recursion."""
    waiting: list[tuple[Log, Path, str | None]] = [(root, (), None)]
    while waiting:
        log, path, parent = waiting.pop()
        below: list[tuple[Log, Path, str | None]] = []
        for number, record in enumerate(sequence(log.steps)):
            step: Step = loosen(mapping(record), Step, unknown)
            step_path = (*path, "steps", number)
            yield step.span(step_path, parent)
            if isinstance(step.inner_log, dict):
                below.append((loosen(step.inner_log, Log, unknown), (*step_path, "inner_log"), _id(step_path)))
        for number, record in enumerate(sequence(log.items)):
            item: Log = loosen(mapping(record), Log, unknown)
            step_path = (*path, "items", number)
            yield _item_span(item, number, step_path, parent)
            below.append((item, step_path, _id(step_path)))
        waiting.extend(reversed(below))


def _item_span(item: Log, number: int, path: Path, parent: str | None) -> Span:
    steps: list[Step] = [loosen(mapping(record), Step, {}) for record in sequence(item.steps)]
    status = status_of(item.status) if item.status else _derived(step.outcome for step in steps)
    message = "" if item.error is None else item.error if isinstance(item.error, str) else as_json(item.error)
    status = Status.ERROR if message and status in (Status.OK, Status.UNKNOWN) else status
    return Span(
        id=_id(path),
        name=f"[item {number}]",
        operation=Operation.INVOKE_WORKFLOW,
        parent_id=parent,
        step=number,
        status=status,
        status_word=item.status or None,
        status_source=StatusSource.EXPLICIT if item.status else StatusSource.DERIVED,
        error=Error(message, error_type(message)) if status is Status.ERROR and message else None,
        duration_ms=item.total_duration_ms,
        at=path,
    )


def _derived(outcomes: Iterable[Status]) -> Status:
    """The status of a log without one: failed or paused if a step of it is."""
    distinct = set(outcomes)
    return next((status for status in (Status.ERROR, Status.PAUSED) if status in distinct), Status.OK)


def _header(log: Log, file: File, spans: list[Span], unknown: Unknown) -> Header:
    stem = file.name.removesuffix(".json") or file.name
    tops = [span for span in spans if span.parent_id is None]
    items = [span for span in tops if not span.is_step]
    bad = sum(span.status is Status.ERROR for span in items)
    routes = ["", *(span.note for span in tops if span.operation is Operation.ROUTE)]
    status = _derived(span.status for span in tops)
    route = "" if status is Status.ERROR else routes[-1].partition(" · ")[0]
    return Header(
        id=log.run_id or stem,
        name=log.graph_name or stem,
        status=status,
        status_source=StatusSource.DERIVED,
        duration_ms=log.total_duration_ms,
        tells_calls=False,
        result=items_failed(len(items), bad) if items else route,
        size=file.stat.size,
        fields=unknown_fields(unknown),
    )


def _totals(log: Log, spans: list[Span]) -> Iterator[Total]:
    """The counts in the log, recounted."""
    if log.restored_count is not None:
        restored = {span.parent_id for span in spans if span.status_word == "restored"}
        yield Total("restored_count", log.restored_count, len(restored))
    for name, stat in mapping(log.node_stats).items():
        runs = [span for span in spans if span.is_step and span.name == name and span.status_word != "restored"]
        counted = {"count": len(runs), "errors": sum(span.status is Status.ERROR for span in runs)}
        for key, count in counted.items():
            if (stated := integer(mapping(stat).get(key))) is not None:
                yield Total(f"{name} {key}", stated, count)


def _rest(record: Any) -> dict[str, Any]:
    """A record without the lists that are spans of their own, that of its inner log too."""
    if not isinstance(record, dict):
        return {"value": record}
    rest = {key: value for key, value in record.items() if not (key in ("steps", "items") and isinstance(value, list))}
    inner = rest.get("inner_log")
    if isinstance(inner, dict):
        rest["inner_log"] = _rest({key: value for key, value in inner.items() if key != "inner_log"})
    return rest


def _id(path: Path) -> str:
    """``steps.1.steps.0``: the path in the document, without its constant parts."""
    return ".".join(str(part) for part in path if part != "inner_log")


def _list_at(data: bytes, path: Sequence[str | int]) -> Any:
    """The list at `path` in the document: undecoded elements, or values if it is read leniently."""
    value: Any = data
    try:
        for key in path:
            kind = list[msgspec.Raw] if isinstance(key, int) else dict[str, msgspec.Raw]
            value = msgspec.json.decode(value, type=kind)[key]  # type: ignore[index]
        return msgspec.json.decode(value, type=list[msgspec.Raw])
    except (ValueError, RecursionError):
        return reduce(getitem, path, decode(data)[0])

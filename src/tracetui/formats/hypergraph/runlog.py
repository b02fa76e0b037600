"""RunLog and MapLog: the timing of a hypergraph result, as a user's ``json.dump(result.log.to_dict())`` leaves it.

A RunLog has ``steps``; a step of a nested graph carries an ``inner_log`` of its own. A MapLog has ``items``, one RunLog
for each. Neither holds values, times of day or a status: that is derived from the steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.decode import decode
from tracetui.formats.hypergraph.rows import integer
from tracetui.formats.hypergraph.runs import arrow, error_type, items_failed
from tracetui.formats.kept import once
from tracetui.formats.scalars import number, text
from tracetui.model import (
    Body,
    Error,
    Header,
    Operation,
    Problem,
    RunBody,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    Total,
    status_of,
)
from tracetui.model.build import RunBuilder
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 70
_TOKEN: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')
_STEP_KEYS: Final = (b'"node_name"', b'"superstep"', b'"duration_ms"')

Path = tuple[str | int, ...]
"""Where a record is in the document: ``("steps", 1, "inner_log", "steps", 0)``."""


def sniff(file: File) -> int:
    """Certain of an object with the keys of a RunLog or MapLog; of a long one, likely from those in its head."""
    head = file.head
    if b'"graph_name"' not in head and not all(key in head for key in _STEP_KEYS):
        return NO
    names = set(_top_names(head))
    if names >= {b"graph_name", b"steps", b"node_stats"} or names >= {b"graph_name", b"items", b"restored_count"}:
        return CERTAIN
    cut = len(head) >= HEAD_SIZE
    whole = {b"graph_name", b"total_duration_ms"} & names and {b"steps", b"items"} & names
    return LIKELY if whole or (cut and b"steps" in names and all(key in head for key in _STEP_KEYS)) else NO


def summarize(file: File, name: str) -> Iterator[RunSummary | Problem]:
    """The one run of the dump; it is small, so that both stages read all of it."""
    builder = RunBuilder(RunRef(name, file.path), lambda span: Body())
    chunk = read(file, file.read_all())
    builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
    yield builder.summary(modified_at=file.stat.mtime, moving=file.moving)


def read(file: File, data: bytes) -> Chunk:
    """The whole run."""
    root, note = decode(data)
    if not isinstance(root, dict):
        raise FormatError("not a JSON object")
    spans = list(_spans(root))
    problems = [] if note is None else [Problem(file.path, "", f"read leniently: {note}")]
    body = RunBody(totals=tuple(_totals(root, spans)), attributes=_rest(root), layout="RunLog")
    return Chunk(spans=spans, header=_header(root, file, spans), body=body, problems=problems)


def body(file: File, span: Span) -> Body:
    """Everything about one step or item."""
    *path, number = span.at
    try:
        record = once(file, tuple(path), lambda: _list_at(file.read_all(), path))[number]
    except (LookupError, TypeError):
        raise FormatError("the step is no longer in the file", ".".join(map(str, span.at))) from None
    if isinstance(record, msgspec.Raw):
        return Body(attributes=_rest(decode(raw := bytes(record))[0]), raw=raw)
    return Body(attributes=_rest(record))


def _spans(root: dict[str, Any]) -> Iterator[Span]:
    """Every item and step in order, nested ones after their parents, without recursion."""
    waiting: list[tuple[Any, Path, str | None]] = [(root, (), None)]
    while waiting:
        log, path, parent = waiting.pop()
        below: list[tuple[Any, Path, str | None]] = []
        for key, make in (("steps", _step_span), ("items", _item_span)):
            for number_, record in enumerate(_listed(log, key)):
                place = (*path, key, number_)
                span = make(record, place, parent)
                yield span
                inner = (record.get("inner_log"), (*place, "inner_log")) if key == "steps" else (record, place)
                below.append((*inner, span.id))
        waiting.extend(reversed(below))


def _listed(log: Any, key: str) -> list[dict[str, Any]]:
    """The records under `key`; what is no object becomes one, so that it is shown."""
    found = log.get(key) if isinstance(log, dict) else None
    if not isinstance(found, list):
        return []
    return [record if isinstance(record, dict) else {"value": record} for record in found]


def _step_span(record: dict[str, Any], path: Path, parent: str | None) -> Span:
    word = text(record.get("status"))
    message = text(record.get("error"))
    status = Status.UNKNOWN if word is None else status_of(word)
    if status is Status.UNKNOWN and message:
        status = Status.ERROR
    duration = number(record.get("duration_ms"))
    decision = record.get("decision")
    facts = ["" if decision is None else arrow(decision), "cached" if record.get("cached") is True else ""]
    operation = _operation(record)
    return Span(
        id=_id(path),
        name=text(record.get("node_name")) or "step",
        operation=operation,
        nested_graph=operation is Operation.INVOKE_WORKFLOW,
        parent_id=parent,
        step=integer(record.get("superstep")),
        is_step=len(path) == 2,
        status=status,
        status_word=word,
        status_source=StatusSource.EXPLICIT if word or status is Status.ERROR else None,
        duration_ms=None if duration == 0 and status in (Status.ERROR, Status.PAUSED) else duration,
        error=Error(message or "", error_type(message or "")) if status is Status.ERROR else None,
        note=" · ".join(filter(None, facts)),
        at=path,
    )


def _item_span(record: dict[str, Any], path: Path, parent: str | None) -> Span:
    position = path[-1]
    return Span(
        id=_id(path),
        name=f"[item {position}]",
        operation=Operation.INVOKE_WORKFLOW,
        parent_id=parent,
        step=position if isinstance(position, int) else None,
        status=_derived(_step_span(step, (*path, "steps", i), None) for i, step in enumerate(_listed(record, "steps"))),
        status_source=StatusSource.DERIVED,
        duration_ms=number(record.get("total_duration_ms")),
        at=path,
    )


def _operation(record: dict[str, Any]) -> Operation:
    if isinstance(record.get("inner_log"), dict):
        return Operation.INVOKE_WORKFLOW
    return Operation.NODE if record.get("decision") is None else Operation.ROUTE


def _derived(spans: Iterable[Span]) -> Status:
    """The status of a log without one: failed or paused if a step of it is."""
    found = {span.status for span in spans}
    return next((status for status in (Status.ERROR, Status.PAUSED) if status in found), Status.OK)


def _header(root: dict[str, Any], file: File, spans: list[Span]) -> Header:
    stem = file.name.removesuffix(".json") or file.name
    tops = [span for span in spans if span.parent_id is None]
    items = [span for span in tops if not span.is_step]
    bad = sum(span.status is Status.ERROR for span in items)
    routes = [span.note for span in tops if span.operation is Operation.ROUTE]
    status = _derived(tops)
    route = routes[-1].partition(" · ")[0] if routes and status is not Status.ERROR else ""
    return Header(
        id=text(root.get("run_id")) or stem,
        name=text(root.get("graph_name")) or stem,
        status=status,
        status_source=StatusSource.DERIVED,
        duration_ms=number(root.get("total_duration_ms")),
        tells_calls=False,
        outcome=items_failed(len(items), bad) if items else route,
        size=file.stat.size,
    )


def _totals(root: dict[str, Any], spans: list[Span]) -> Iterator[Total]:
    """What the log counts itself, counted again."""
    if (declared := integer(root.get("restored_count"))) is not None:
        restored = {span.parent_id for span in spans if span.status_word == "restored"}
        yield Total("restored_count", declared, len(restored))
    stats = root.get("node_stats")
    for name, stat in stats.items() if isinstance(stats, dict) else ():
        runs = [span for span in spans if span.is_step and span.name == name and span.status_word != "restored"]
        counted = {"count": len(runs), "errors": sum(span.status is Status.ERROR for span in runs)}
        for key, found in counted.items():
            if isinstance(stat, dict) and (stated := integer(stat.get(key))) is not None:
                yield Total(f"{name} {key}", stated, found)


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
    """``steps.1.steps.0``: the place in the document, without the words that are always the same."""
    return ".".join(str(part) for part in path if part != "inner_log")


def _list_at(data: bytes, path: Sequence[str | int]) -> Any:
    """The list at a place of the document: its elements undecoded, or values where it can only be read leniently."""
    try:
        found: Any = data
        for key in path:
            one = list[msgspec.Raw] if isinstance(key, int) else dict[str, msgspec.Raw]
            found = msgspec.json.decode(found, type=one)[key]  # type: ignore[index]
        return msgspec.json.decode(found, type=list[msgspec.Raw])
    except (ValueError, RecursionError):
        found = decode(data)[0]
        for key in path:
            found = found[key]
        return found


def _top_names(head: bytes) -> Iterator[bytes]:
    """Keys of the outermost object, as far as `head` goes."""
    depth = 0
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and match[2]:
            yield match[1]

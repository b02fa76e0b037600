"""Runs, spans and problems as JSON: the output of `--json` and the program's public contract (docs/json.md).

Values are exact. Invisible characters and terminal controls are written as ``\\uXXXX``, so the output is safe to print.
Values that orjson refuses (depth, lone surrogates, integers over 64 bits, keys that aren't strings) go through a
non-recursive encoder based on the standard library.

Events of runs are one JSON object or one line of text each, as `tail` prints them.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from hashlib import blake2b
from math import isfinite
from os.path import basename, splitext
from types import MappingProxyType
from typing import Any, Final, cast

import msgspec
import orjson

from tracetui.analysis import prices
from tracetui.analysis.links import StepLink, link_value
from tracetui.analysis.liveness import state_of_summary
from tracetui.analysis.statistics import estimate_of
from tracetui.export.schemas import runs as schemas
from tracetui.masking import clean, one_line
from tracetui.model import (
    Body,
    FirstError,
    Ledger,
    Problem,
    Run,
    RunBody,
    RunState,
    RunSummary,
    Span,
    Status,
    StatusSource,
    TaskKey,
    Usage,
    quote_key,
)
from tracetui.model.run import Event, ProblemMet, RunChanged, RunEnded, RunReset, SpanChanged
from tracetui.redact import Redactor
from tracetui.text import UNSAFE, Clean, duration, pad, quantity, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs, kind, status_glyph
from tracetui.views.labels import clock, score_cell, status_word

RUNS: Final = "tracetui/runs/1"
RUN: Final = "tracetui/run/1"

Masked = Callable[[], dict[str, int] | None]
"""Returns the number of secrets masked so far, by rule; None without masking."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_USAGE: Final = Usage()
_FOREIGN: Final = re.compile("[\x7f-\U0010ffff]+")  # JSON escapes the rest; skips most text quickly


def runs_document(
    runs: Iterable[RunSummary],
    problems: Iterable[Problem],
    replays: Mapping[Any, str | None],
    estimates: Mapping[Any, float | None] = MappingProxyType({}),
    tasks: Mapping[Any, TaskKey] = MappingProxyType({}),
    files: Mapping[str, Any] = MappingProxyType({}),
    *,
    now: float,
) -> Iterator[bytes]:
    """Yield the output of ``ls --json``, one run a line; `files` are fields about the files, added at the end.

    `now` is the time of the states, in UTC seconds.

    By `RunRef`: `replays` has each `replay_of_address`, `estimates` costs that summaries lack, `tasks` inherited tasks.
    """
    yield b'{"schema":' + encode(RUNS) + b',"runs":['
    yield from _listed(
        run_value(run, replays.get(run.ref), estimates.get(run.ref), tasks.get(run.ref)) | state_value(run, now)
        for run in runs
    )
    yield b'],"problems":['
    yield from _listed(problem_value(problem) for problem in problems)
    yield b"]" + b"".join(b"," + encode(name) + b":" + encode(value) for name, value in files.items()) + b"}\n"


def run_document(
    run: Run,
    replay: str | None,
    extra: Mapping[str, Any] | None = None,
    masked: Masked | None = None,
    inherited: TaskKey | None = None,
    links: Iterable[StepLink] | None = None,
) -> Iterator[bytes]:
    """Yield the output of ``show --json``, one span a line; `extra` fields belong to the run, `masked` ends it.

    `links` of its steps follow the problems, if given.
    """
    value = {**read_run_value(run, replay, inherited), **(extra or {})}
    yield b'{"schema":' + encode(RUN) + b',"run":' + encode(value) + b',"steps":['
    yield from _listed({"number": step.number, "span": step.span} for step in run.steps)
    yield b'],"spans":['
    yield from _listed(span_document(run, position) for position in range(len(run.spans)))
    yield b'],"problems":['
    yield from _listed(problem_value(problem) for problem in run.problems)
    if links is not None:
        yield b'],"links":['
        yield from _listed(map(link_value, links))
    yield b"]" + masked_field(masked) + b"}\n"


def masked_field(masked: Masked | None) -> bytes:
    """Return the last field of a document in which secrets may be masked."""
    return b"" if masked is None else b',"masked":' + encode(masked())


def _listed(values: Iterable[Any]) -> Iterator[bytes]:
    before = b"\n"
    for value in values:
        yield before + encode(value)
        before = b",\n"


# ---- values


def run_value(
    run: RunSummary, replay: str | None, estimated: float | None = None, inherited: TaskKey | None = None
) -> schemas.PlainRun:
    """Return a run as ``ls`` does; `estimated` is a cost that the summary lacks, `inherited` the original's task."""
    task = inherited or run.task_key
    return {
        "address": run.ref.address,
        "path": run.ref.path,
        "format": run.ref.format,
        "id": run.id,
        "name": run.name,
        "title": run.title,
        "agent": run.agent,
        "model": run.model,
        "status": run.status,
        "status_word": run.status_word,
        "status_source": run.status_source,
        "outcome": run.outcome,
        "outcome_source": run.outcome_source or None,
        "scores": run.scores,
        "result": run.result or None,
        "task": None if task is None else task.name,
        "task_source": None if task is None else task.source,
        "trial": run.trial,
        "started_at": moment(run.started_at, zone=run.time_zone),
        "time_zone": None if run.started_at is None else run.time_zone,
        "duration_ms": run.duration_ms,
        "steps": run.steps,
        "spans": run.spans,
        "llm_calls": run.llm_calls,
        "tool_calls": run.tool_calls,
        "errors": run.errors,
        "usage": _usage(run.usage),
        "estimated_cost_usd": prices.of_summary(run) if estimated is None else estimated,
        "replay_of": run.replay_of,
        "replay_of_address": replay,
        "relation": run.relation,
        "repeats": run.repeats,
        "identity": run.identity,
        "counts_in": run.counts_in,
        "parent": run.parent,
        "first_error": _first_error(run.first_error),
        "tools": run.tools,
        "models": run.models,
        "nodes": run.nodes,
        "tags": run.tags,
        "source": run.source,
        "writer": run.writer,
        "problems": run.problems,
    }


def _usage(usage: Usage | None) -> schemas.Usage:
    return cast("schemas.Usage", msgspec.structs.asdict(usage or _NO_USAGE))


def state_value(run: RunSummary, now: float) -> dict[str, Any]:
    """Return the state of a run at `now` (UTC seconds), where it comes from, and the open call."""
    current = state_of_summary(run, now)
    recorded = current.state in (RunState.ENDED, RunState.PAUSED)
    source = None if current.state is None else run.status_source if recorded else StatusSource.DERIVED
    call = {"name": current.call, "since": moment(current.since, zone=run.time_zone)} if current.call else None
    return {"state": current.state, "state_source": source, "open_call": call}


def read_run_value(run: Run, replay: str | None, inherited: TaskKey | None = None) -> dict[str, Any]:
    """Return an opened run as ``show`` prints it: its cost is estimated call by call."""
    estimate = estimate_of(run)
    estimated = estimate.usd if estimate is not None else None
    more = {"estimated_cost_usd": estimated, "ledger": ledger_value(run.summary.ledger)}
    return {**run_value(run.summary, replay, inherited=inherited), **more, **run_body_value(run.body)}


def _first_error(error: FirstError | None) -> schemas.FirstError | None:
    if error is None:
        return None
    return {
        "span": error.span,
        "name": error.name,
        "operation": error.operation,
        "type": error.type,
        "message": error.message,
    }


def run_body_value(body: RunBody) -> dict[str, Any]:
    """Return the fields that ``show`` adds to a run."""
    fields = msgspec.structs.asdict(body)
    del fields["layout"], fields["commits"], fields["extent"], fields["raw"]
    return fields


def span_document(run: Run, position: int) -> schemas.Span:
    """Return a span of a run with its body."""
    span = run.spans[position]
    return span_value(span, run.depths[position], run.load(span), zone=run.summary.time_zone)


def span_value(span: Span, depth: int, body: Body, *, zone: str | None = "UTC") -> schemas.Span:
    """Return a span as ``show`` prints it."""
    input_value, attributes = body.input, dict(body.attributes)
    if input_value is None:
        input_value = body.input_messages or None
    elif body.input_messages:
        attributes["gen_ai.input.messages"] = body.input_messages
    output_value = body.output
    if output_value is None:
        output_value = body.output_messages or None
    elif body.output_messages:
        attributes["gen_ai.output.messages"] = body.output_messages
    attributes.update(_derived(span, body))
    return {
        "id": span.id,
        "parent_id": span.parent_id,
        "depth": depth,
        "step": span.step,
        "name": span.name,
        "operation": span.operation,
        "status": span.status,
        "status_word": span.status_word,
        "status_source": span.status_source,
        "started_at": moment(span.started_at, zone=zone),
        "duration_ms": span.duration_ms,
        "usage": _usage(span.usage),
        "input": input_value,
        "output": output_value,
        "error": span.error,
        "input_hash": span.input_hash,
        "model": span.model,
        "attributes": attributes,
    }


def _derived(span: Span, body: Body) -> dict[str, Any]:
    """Return derived values without a field in the contract, under names that no trace uses."""
    values = {
        "note": span.note,
        "bindings": body.bindings,
        "links": body.links,
        "checks": body.checks,
        "state": body.state,
        "traceback": body.traceback,
    }
    return {f"tracetui.{name}": value for name, value in values.items() if value not in ((), "", None)}


def ledger_value(ledger: Ledger) -> schemas.Ledger:
    """Return a ledger: how much was understood."""
    return {
        "bytes": ledger.size,
        "understood_bytes": ledger.understood,
        "understood": ledger.share,
        "unknown_kinds": dict(ledger.kinds),
        "unknown_fields": dict(ledger.fields),
        "torn_lines": ledger.torn,
        "writers": ledger.writers,
    }


def problem_value(problem: Problem) -> schemas.Problem:
    """Return a problem as JSON."""
    return {"path": problem.path, "where": problem.where, "reason": problem.reason}


def moment(seconds: float | None, *, zone: str | None = "UTC") -> str | None:
    """Format seconds since the epoch as ISO 8601, with ``Z`` unless `zone` is None (a naive time).

    Returns None for None and for years before 1 or after 9999.
    """
    if seconds is None:
        return None
    try:
        when = _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None
    return when.replace(tzinfo=None).isoformat() + ("" if zone is None else "Z")


# ---- bytes


def encode(value: Any) -> bytes:
    """Encode any value of the model as one line of JSON. Never raises for its content."""
    try:
        data = orjson.dumps(value, default=plain)
    except TypeError:  # raised for every value that orjson refuses
        return "".join(_pieces(value)).encode("ascii")
    if data.isascii() and b"\x7f" not in data:
        return data
    return _FOREIGN.sub(_escape_all, data.decode()).encode()


def _escape_all(match: re.Match[str]) -> str:
    return UNSAFE.sub(_escape, match.group())


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1] if match.group() != "\x7f" else "\\u007f"


def plain(value: Any) -> Any:
    """Convert a value that isn't JSON by itself, one level deep."""
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        tag = type(value).__struct_config__.tag
        return fields if tag is None else {"type": tag, **fields}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return list(value)
    return str(value)


def _pieces(value: Any) -> Iterator[str]:
    """Yield the JSON text of `value` in ASCII, without recursion."""
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _JsonText):
            yield item
        elif item is None or isinstance(item, str | int | float):
            yield _scalar(item)
        elif isinstance(item, dict):
            todo.append(_JsonText("}"))
            _push(todo, [(_JsonText(f"{_key(key)}:"), below) for key, below in item.items()])
            yield "{"
        elif isinstance(item, list | tuple):
            todo.append(_JsonText("]"))
            _push(todo, [(below,) for below in item])
            yield "["
        else:
            todo.append(plain(item))


class _JsonText(str):
    """Text that is already JSON."""

    __slots__ = ()


def _push(todo: list[Any], groups: Sequence[tuple[Any, ...]]) -> None:
    for place in range(len(groups) - 1, -1, -1):
        todo.extend(reversed(groups[place]))
        if place:
            todo.append(_JsonText(","))


def _key(key: Any) -> str:
    return json.dumps(key if isinstance(key, str) else str(key)).replace("\x7f", "\\u007f")


def _scalar(item: Any) -> str:
    if isinstance(item, Enum):
        item = item.value
    if isinstance(item, float) and not isfinite(item):
        return "null"  # as orjson does: JSON has no NaN and no infinities
    return json.dumps(item).replace("\x7f", "\\u007f")


# ---- documents of bounded size


TEXTS: Final = (4_000, 1_000, 200)
"""Longest string in characters; the first with which an item fits."""
ITEMS: Final = 50
"""Longest list inside of an item."""


class Page(msgspec.Struct, frozen=True):
    """A document of bounded size."""

    value: Any
    """The document; strings that were cut end with ``…``."""
    cut: list[str]
    """Each omission, with its place."""
    more: int | None = None
    """The offset of the next page; None: this was the last."""


def page(value: Any, pages: Sequence[str], *, offset: int, size: int) -> Page:
    """Cut a document to about `size` bytes.

    `pages` names the lists in it that are divided into pages: `offset` is the number of items to skip of each. Of a
    string, it is the number of characters.
    """
    if isinstance(value, str):
        end = min(len(value), offset + size // 2)
        cut = [f"{len(value) - end} more characters"] if end < len(value) else []
        return Page(value[offset:end], cut, end if cut else None)
    lists = [name for name in pages if isinstance(value, dict) and isinstance(value.get(name), list)]
    for longest in TEXTS:
        cuts: list[str] = []
        rest = {key: item for key, item in value.items() if key not in lists} if isinstance(value, dict) else value
        document = _cut(rest, longest, "", cuts)
        room = size - len(encode(document))
        if room < 0 and longest != TEXTS[-1]:
            continue
        ends = []
        for name in lists:
            items = value[name]
            document[name], used = _fill(items[offset:], longest, f"{name}[…]", cuts, room)
            room -= used
            ends.append(offset + len(document[name]))
            if ends[-1] < len(items):
                cuts.append(f"{name}: items {offset} to {ends[-1] - 1} of {len(items)}")
        remaining = [end for end, name in zip(ends, lists, strict=True) if end < len(value[name])]
        if longest == TEXTS[-1] or not remaining or min(remaining) > offset:
            return Page(document, cuts, min(remaining) if remaining else None)
    raise AssertionError("the last of TEXTS always returns")


def _fill(items: list[Any], longest: int, path: str, cuts: list[str], room: int) -> tuple[list[Any], int]:
    """Return the first items that fit into `room` bytes, at least one, and their size."""
    kept: list[Any] = []
    used = 0
    for item in items:
        notes: list[str] = []
        short = _cut(item, longest, path, notes)
        used += len(encode(short)) + 1
        if kept and used > room:
            break
        kept.append(short)
        cuts.extend(note for note in notes if note not in cuts)
    return kept, used


def _cut(value: Any, longest: int, path: str, cuts: list[str]) -> Any:
    """Return a copy with shorter strings and lists. Documents are no deeper than JSON that could be decoded."""
    if isinstance(value, str) and len(value) > longest:
        cuts.append(f"{path or 'text'}: {longest} of {len(value)} characters")
        return value[:longest] + "…"
    if isinstance(value, dict):
        return {key: _cut(item, longest, f"{path}.{key}" if path else key, cuts) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) > ITEMS:
            cuts.append(f"{path}: {ITEMS} of {len(value)} items")
        return [_cut(item, longest, f"{path}[{i}]", cuts) for i, item in enumerate(value[:ITEMS])]
    return value


RUN_WIDTH: Final = 20
NAME: Final = 60
ARGUMENT: Final = 80


def event_line(event: Event, redactor: Redactor | None = None, *, now: float) -> bytes:
    """One event as a line of JSON at `now` (UTC seconds), masked by `redactor` if given."""
    value = event_value(event, now=now)
    return encode(value if redactor is None else redactor.value(value)) + b"\n"


def event_value(event: Event, *, now: float) -> dict[str, Any]:
    """One event as a JSON value; `now` is the time of its state in UTC seconds. Loads the body of a span."""
    if isinstance(event, RunChanged):
        run = event.summary
        return {
            "event": "run",
            "run": run.ref.address,
            "id": run.id,
            "summary": run_value(run, event.replay, inherited=event.task) | state_value(run, now),
        }
    if isinstance(event, SpanChanged):
        address = event.run.summary.ref.address
        return {"event": "span", "run": address, "span": span_document(event.run, event.position)}
    if isinstance(event, RunReset):
        return {"event": "reset", "run": event.address}
    if isinstance(event, RunEnded):
        run = event.summary
        return {
            "event": "end",
            "run": run.ref.address,
            "status": run.status,
            "outcome": run.outcome,
            "scores": run.scores,
        }
    return {"event": "problem", **problem_value(event.problem)}


class Lines:
    """Formats events as cleaned lines: time, run, number, kind and name, argument, error, duration.

    A step is printed again when its line changes, for example when it ends.
    """

    def __init__(self, glyphs: Glyphs = UNICODE, now: Callable[[], float] | None = None) -> None:
        """`now` gives arrival times (UTC seconds), printed as ``~12:00:00`` where the trace has no time."""
        self._glyphs = glyphs
        self._now = now
        self._printed: dict[str, dict[str, bytes]] = {}
        """Digests of printed lines by span id, for each run (by address) that has not ended."""
        self._announced: set[str] = set()

    def lines(self, event: Event) -> Iterator[Clean]:
        """The lines for one event: usually one or none."""
        if isinstance(event, SpanChanged):
            yield from self._span(event.run, event.position)
        elif isinstance(event, RunChanged):
            yield from self._run(event.summary)
        elif isinstance(event, RunEnded):
            yield self._end(event.summary)
            self._printed.pop(event.summary.ref.address, None)
        elif isinstance(event, RunReset):
            self._printed.pop(event.address, None)
            self._announced.discard(event.address)
            yield clean(f"{self._glyphs.loop} {event.address}: rewritten or deleted; earlier output is void")
        elif isinstance(event, ProblemMet):
            yield self._problem(event.problem)

    def _run(self, run: RunSummary) -> Iterator[Clean]:
        """Announce a run once, with its address."""
        address = run.ref.address
        if address in self._announced:
            return
        self._announced.add(address)
        who = one_line(run.agent or run.name or run.id, NAME)
        yield Clean(f"{self._glyphs.folded} {who} {self._glyphs.dot} {clean(address)}")

    def _span(self, run: Run, position: int) -> Iterator[Clean]:
        span, summary = run.spans[position], run.summary
        step = self._step(run, position)
        digest = blake2b(f"{span.started_at} {step}".encode(), digest_size=8).digest()
        printed = self._printed.setdefault(summary.ref.address, {})
        if printed.get(span.id) != digest:
            printed[span.id] = digest
            yield Clean(f"{self._head(span.started_at, summary)}  {step}")

    def _step(self, run: Run, position: int) -> Clean:
        span, glyphs = run.spans[position], self._glyphs
        number = str(span.step) if span.is_step and span.step is not None else ""
        sign, _ = kind(span, glyphs)
        parts = [f"{number:>4} {'  ' * min(run.depths[position], 8)}{sign} {one_line(span.name or '(no name)', NAME)}"]
        if span.preview:
            parts.append(one_line(span.preview, ARGUMENT))
        if span.status is Status.ERROR:
            parts.append(f"{glyphs.error} {one_line(span.error.text if span.error else span.status.value, ARGUMENT)}")
        if span.duration_ms is not None:
            parts.append(duration(span.duration_ms))
        return Clean("  ".join(parts))

    def _end(self, run: RunSummary) -> Clean:
        sign, _ = status_glyph(run.status, self._glyphs)
        parts = [f"{self._glyphs.wrong if run.is_wrong else sign} {status_word(run)}"]
        if run.scores:
            parts.append(score_cell(run, self._glyphs))
        if run.steps is not None:
            parts.append(quantity(run.steps, "step"))
        if run.first_error is not None and run.status is Status.ERROR:
            parts.append(one_line(run.first_error.text, ARGUMENT))
        if run.duration_ms is not None:
            parts.append(duration(run.duration_ms))
        return Clean("  ".join((self._head(None, run), " " * 4, *parts)))

    def _head(self, at: float | None, run: RunSummary) -> Clean:
        time = clock(at, run.time_zone).removesuffix(" local, zone unknown")[11:19]
        if not time:
            time = f"~{clock(self._now(), 'UTC')[11:19]}" if self._now is not None else self._glyphs.missing
        key = run.ref.key
        name = clean(quote_key(key)) if key is not None else clean(splitext(basename(run.ref.path))[0])
        return Clean(f"{pad(Clean(time), 9)}  {pad(truncate_middle(name, RUN_WIDTH), RUN_WIDTH)}")

    def _problem(self, problem: Problem) -> Clean:
        place = f"{problem.path}: {problem.where}" if problem.where else problem.path
        return Clean(f"{self._glyphs.note} {clean(place)}: {one_line(problem.reason, 200)}")

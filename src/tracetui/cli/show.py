"""``tracetui show``: print a run, step, span or value."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from tracetui.analysis.links import (
    StepLink,
    link_value,
    links_at,
    links_of,
    origin_of,
    origin_value,
    passed_trials,
    trial_links,
)
from tracetui.cli.failing import add_fail_on, status_of
from tracetui.cli.output import write_bytes, write_lines
from tracetui.cli.parser import add_pass, add_place, add_redact
from tracetui.cli.reading import (
    check_rule,
    list_runs,
    only,
    original_of,
    places_of,
    read_counted,
    rule_of,
    run_at,
    source_at,
)
from tracetui.errors import UsageError
from tracetui.export import json, text
from tracetui.export.text import value_lines
from tracetui.live.load import read_run
from tracetui.model import Run, RunRef, RunSummary, Span
from tracetui.model.build import is_part, part_of
from tracetui.model.masked import masked, masked_task
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.store.address import Target, lookup, target
from tracetui.store.relations import Relations, has_original
from tracetui.views.links import origin_text, step_text

HELP = "print a run, or a step, span or value of it"
EXAMPLES = """\
ADDRESS is an address from `tracetui ls`, a run id or the beginning of one. Append /STEP, /SPAN or names of fields.

examples:
  tracetui show traces/0690.json            the run as text
  tracetui show traces/0690.json --json     the run as data
  tracetui show runs.db#wf-1/3              step 3 of a run in a database
  tracetui show 0690/3/output               one value
  tracetui show runs.db#wf-1 --state 2      what had accumulated after step 2
  tracetui show 0690/links --json           links of its failed and refused calls, see docs/links.md
  tracetui show 0690/7 --origin QX7LKB      where that value of step 7 comes from
"""
LINKS = "links"
"""The field with the links of a run or step, which `ADDRESS/links` prints alone."""
_CHUNK = 1 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``show``."""
    parser.add_argument("address", metavar="ADDRESS", help="address from ls, run id, or the beginning of one")
    add_place(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print JSON (tracetui/run/1, see docs/json.md)")
    group.add_argument("--raw", action="store_true", help="print the exact bytes of the source record")
    add_redact(parser)
    add_pass(parser)
    add_fail_on(parser)
    parser.add_argument("--origin", metavar="VALUE", help="print where VALUE, at this step, appears in the run")
    parser.add_argument("--state", metavar="N", type=int, help="print the accumulated state of a graph after step N")


def run(args: argparse.Namespace) -> int:
    """Print the run, step, span or value at the address."""
    rule = rule_of(args)
    with source_at(args.address, args) as source:
        summary, parts = run_at(source, args.address, args)
        (whole_run,) = read_counted(source, [summary], [args.address], args)
        opened = exact = whole_run.with_rule(rule)
        check_rule(args, [opened.summary])
        if args.redact or not (args.json or args.raw):
            opened = masked(opened, Redactor())
        wanted = target(opened, parts)
        if args.origin is not None:
            _origin(opened, wanted, args)
        elif args.state is not None:
            _value(_state(opened, args.state), wanted.keys, "the state", args)
        elif args.raw:
            _raw(source, opened, wanted, args)
        elif wanted.keys[:1] == (LINKS,):
            _value(_link_values(source, opened, wanted, args), wanted.keys[1:], "the links", args)
        elif wanted.keys or wanted.span is not None:
            _part(opened, wanted, args)
        elif args.json:
            write_bytes(_document(source, opened, exact.summary, args))
        else:
            write_lines(text.run_lines(opened))
    return status_of(args, [opened.summary])


def _document(source: Source, run: Run, exact: RunSummary, args: argparse.Namespace) -> Iterator[bytes]:
    """Return the run as JSON; `exact` is its summary before masking, by which its original is found."""
    places = places_of(source, args.address, args)
    original = original_of(source, exact, only(args), places) if has_original(exact) else None
    task = Relations([exact, original]).task(exact) if original is not None else exact.task_key
    if task is not None and args.redact:
        task = masked_task(task, Redactor())
    replay = None if original is None else original.ref.address
    extra = json.state_value(run.summary, time.time()) | _node_stats(run)
    return json.run_document(run, replay, extra, inherited=task, links=_links(source, run, args))


def _links(source: Source, run: Run, args: argparse.Namespace) -> Iterator[StepLink]:
    """Yield the links of a run; with ``--trace-dir``, also those to passed trials of its task there."""
    yield from links_of(run)
    if args.trace_dir and run.summary.failed and run.summary.task_key is not None:
        rule = rule_of(args)
        near = list_runs(source, args.trace_dir, args).runs
        trials = passed_trials(run.summary, [summary.with_rule(rule) for summary in near])
        redactor = Redactor() if args.redact else None
        read = [read_run(source, trial.ref) for trial in trials]
        yield from trial_links(run, [trial if redactor is None else masked(trial, redactor) for trial in read])


def _link_values(source: Source, run: Run, wanted: Target, args: argparse.Namespace) -> list[dict[str, Any]]:
    links = _links(source, run, args)
    return [link_value(link) for link in (links if wanted.span is None else links_at(links, wanted.span.id))]


def _origin(run: Run, wanted: Target, args: argparse.Namespace) -> None:
    """Print where a value of a step appears in the run."""
    if wanted.span is None or wanted.keys:
        raise UsageError("--origin takes the address of a step: ADDRESS/STEP")
    origin = origin_of(run, wanted.span.id, args.origin)
    if args.json:
        write_bytes([json.encode(origin_value(origin)), b"\n"])
    else:
        write_lines([origin_text(run, origin), *(step_text(run, end.span) for end in origin.places)])


def _part(run: Run, wanted: Target, args: argparse.Namespace) -> None:
    """Print a span, or a value in it or in the run. A sub-agent is printed as a run."""
    if wanted.span is None:
        _value(_run_value(run), wanted.keys, "the run", args)
        return
    position = run.index[wanted.span.id]
    if is_part(wanted.span):
        part = part_of(run, position)
        if wanted.keys:
            value = {**json.span_document(run, position), **_run_value(part)}
            _value(value, wanted.keys, f"span {wanted.span.id}", args)
        elif args.json:
            write_bytes(json.run_document(part, None))
        else:
            write_lines(text.run_lines(part))
    elif wanted.keys or args.json:
        _value(json.span_document(run, position), wanted.keys, f"span {wanted.span.id}", args)
    else:
        write_lines(text.one_span_lines(run, position))


def _run_value(run: Run) -> dict[str, Any]:
    return json.read_run_value(run, None)


def _value(value: Any, keys: tuple[str, ...], noun: str, args: argparse.Namespace) -> None:
    part = lookup(value, keys, noun)
    if args.json:
        write_bytes([json.encode(part), b"\n"])
    else:
        write_lines(value_lines(part))


def _state(run: Run, number: int) -> dict[str, Any]:
    """Return the state after step `number`, or after the last step before it."""
    address = run.summary.ref.address
    numbers = [step.number for step in run.steps if step.number is not None]
    if numbers and number < min(numbers):
        raise UsageError(f"no step up to {number} in {address}; the first is {min(numbers)}")
    last = max((earlier for earlier in numbers if earlier <= number), default=None)
    for step in reversed(run.steps):
        span = run.span(step.span)
        if step.number == last and span is not None and (state := run.load(span).state) is not None:
            return state
    raise UsageError(f"no accumulated state after step {number} in {address}; only graphs have it")


def _node_stats(run: Run) -> dict[str, Any]:
    if not run.body.layout:
        return {}
    from tracetui.analysis.work import node_stats

    return {"node_stats": node_stats(run)}


# ---- raw


def _raw(source: Source, run: Run, wanted: Target, args: argparse.Namespace) -> None:
    """Print the source record: exact bytes to a pipe or file, cleaned text to a terminal."""
    if wanted.keys:
        raise UsageError("--raw takes the address of a run, step or span; leave out the field")
    records = _run_record(source, run) if wanted.span is None else _span_record(run, wanted.span)
    if args.redact:
        records = iter([Redactor().raw(b"".join(records))])
    if sys.stdout.isatty():
        write_lines(value_lines(b"".join(records).decode("utf-8", "replace")))
    else:
        write_bytes(records)


def _span_record(run: Run, span: Span) -> Iterator[bytes]:
    raw = run.load(span).raw
    if not raw:
        raise UsageError(f"span {span.id} has no record in {run.summary.ref.path}; try its parent, or the run")
    yield raw


def _run_record(source: Source, run: Run) -> Iterator[bytes]:
    """Return the bytes of a run: its file, its range of the file, or (databases) its row and those of its steps."""
    ref, extent = run.summary.ref, run.body.extent
    if extent is None and ref.key is not None:
        if run.body.raw:
            yield run.body.raw + b"\n"
        for position, depth in enumerate(run.depths):
            if depth == 0 and (raw := run.load(run.spans[position]).raw):
                yield raw + b"\n"
        return
    yield from _bytes(source, ref, *(extent or (0, None)))


def _bytes(source: Source, ref: RunRef, offset: int, length: int | None) -> Iterator[bytes]:
    with source.open(ref.path) as file:
        end = None if length is None else offset + length
        while data := file.read(offset, _CHUNK if end is None else min(_CHUNK, end - offset)):
            yield data
            offset += len(data)

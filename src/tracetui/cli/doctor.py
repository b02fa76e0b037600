"""``tracetui doctor``: how each file was classified: the format that claimed it, or why it was skipped."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from tracetui.cli.output import complain, write_bytes, write_lines
from tracetui.cli.parser import add_paths, roots
from tracetui.cli.reading import cache_limit, only, scan_files, source_of
from tracetui.export.json import encode, ledger_value, problem_value
from tracetui.formats import registry
from tracetui.live.scan import ScannedFile
from tracetui.masking import clean, one_line
from tracetui.model import Ledger, Problem
from tracetui.sources.base import Source
from tracetui.text import Clean, exact, quantity
from tracetui.views.labels import ledger_text

HELP = "show how each file was classified"
EXAMPLES = """\
examples:
  tracetui doctor traces/
  tracetui doctor traces/odd.json --json
"""
CLASSES = ("listed", "problem", "ignored")


class Diagnosis(msgspec.Struct, frozen=True):
    """One file: its class, and the score of each format that claims it."""

    file: ScannedFile
    scores: dict[str, int] = {}
    problems: Sequence[Problem] = ()
    """Problems of the file, and of formats that failed to score it."""


class Total(msgspec.Struct):
    """Totals of all files."""

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    """Files by class."""
    near_misses: int = 0
    """Ignored files that look like traces."""
    ledger: Ledger = Ledger()


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``doctor``."""
    add_paths(parser)
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/doctor/1, see docs/json.md")


def run(args: argparse.Namespace) -> int:
    """Print the diagnosis; exit status 1 if no run could be read."""
    places = roots(args)
    total = Total()
    with source_of(places) as source:
        diagnoses = _count(_diagnoses(source, scan_files(source, places, only(args), deep=True)), total)
        if args.json:
            write_bytes(_document(diagnoses, total))
        else:
            write_lines(_lines(diagnoses, total))
    _check_cache(args, places)
    return 0 if total.counts["listed"] else 1


def _check_cache(args: argparse.Namespace, places: Sequence[str]) -> None:
    """Complain if results for these places can't be stored."""
    limit = cache_limit(args)
    if limit:
        from tracetui.store.run_cache import Storage

        storage = Storage("", places, limit=limit)
        if storage.check():
            complain(exact(f"the cache {storage.path} isn't used: {storage.trouble}"))
        storage.close()


def _diagnoses(source: Source, files: Iterable[ScannedFile]) -> Iterator[Diagnosis]:
    stores: set[str] = set()
    for file in sorted(files, key=lambda file: file.path):
        if file.store in stores:
            yield Diagnosis(replace(file, reason=f"belongs to the {file.near_miss} above", near_miss=""))
            continue
        if file.store:
            stores.add(file.store)
        yield Diagnosis(file, problems=file.problems) if file.skipped else _diagnosis(source, file)


def _diagnosis(source: Source, file: ScannedFile) -> Diagnosis:
    try:
        with source.open(file.path) as opened:
            scores, failures = registry.scores(opened)
    except OSError:
        return Diagnosis(file, problems=file.problems)
    problems = dict.fromkeys((*file.problems, *(Problem(file.path, "", reason) for reason in failures)))
    return Diagnosis(file, scores, tuple(problems))


def _count(diagnoses: Iterable[Diagnosis], total: Total) -> Iterator[Diagnosis]:
    for diagnosis in diagnoses:
        total.counts[diagnosis.file.kind] += 1
        total.near_misses += bool(diagnosis.file.near_miss)
        total.ledger += diagnosis.file.ledger
        yield diagnosis


def _document(diagnoses: Iterable[Diagnosis], total: Total) -> Iterator[bytes]:
    yield b'{"schema":"tracetui/doctor/1","files":['
    before = b"\n"
    for diagnosis in diagnoses:
        yield before + encode(_value(diagnosis))
        before = b",\n"
    counts: dict[str, int] = {name: total.counts[name] for name in CLASSES}
    counts |= {"seen": total.counts.total(), "near_misses": total.near_misses}
    yield b"]," + encode({**counts, "ledger": ledger_value(total.ledger)})[1:] + b"\n"


def _value(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "path": diagnosis.file.path,
        "class": diagnosis.file.kind,
        "format": diagnosis.file.format,
        "scores": diagnosis.scores,
        "runs": len(diagnosis.file.runs),
        "reason": diagnosis.file.reason or None,
        "near_miss": diagnosis.file.near_miss or None,
        "problems": [problem_value(problem) for problem in diagnosis.problems],
        "ledger": None if diagnosis.file.kind == "ignored" else ledger_value(diagnosis.file.ledger),
    }


def _lines(diagnoses: Iterable[Diagnosis], total: Total) -> Iterator[Clean]:
    for diagnosis in diagnoses:
        claims = sorted(((score, name) for name, score in diagnosis.scores.items() if score), reverse=True)
        scores = ", ".join(f"{name} {score}" for score, name in claims) or "no claim"
        file, runs = diagnosis.file, len(diagnosis.file.runs)
        result = {"listed": f"{quantity(runs, 'run')} ({scores})", "problem": f"({scores})"}
        yield clean(f"{file.kind:<8} {file.path}  {result.get(file.kind, file.reason)}")
        for problem in diagnosis.problems:
            yield Clean(" " * 9 + one_line(f"{problem.where}: {problem.reason}" if problem.where else problem.reason))
    counts = " + ".join(f"{total.counts[name]} {name}" for name in CLASSES)
    yield Clean(f"{total.counts.total()} files: {counts}")
    if total.near_misses:
        look = "looks like a trace" if total.near_misses == 1 else "look like traces"
        yield Clean(f"{total.near_misses} of the ignored files {look}")
    if total.ledger.size is not None:
        yield ledger_text(total.ledger)

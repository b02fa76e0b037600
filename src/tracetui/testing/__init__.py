"""Conformance checks for formats, built-in or from other packages.

::

    from tracetui.testing import check_format
    check_format(MyFormat(), "tests/myformat")

A directory of cases has ``<case>/input/…`` (files as users have them) and ``<case>/expected.json`` (the normal form of
the result; with ``TRACETUI_GOLDEN=1`` it is written instead of compared: read the diff). An optional
``exceptions.txt`` lists source values that are deliberately not shown, one pattern per line
(``steps.*.internal  # why``), and values of a summary that only a full read has (``list stage: prompt  # why``); those
in `COUNTED` need no line. Every check raises `AssertionError` with the location of the failure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError, PluginError
from tracetui.formats import registry
from tracetui.formats.base import CERTAIN, NO, Format
from tracetui.formats.guard import check_fields
from tracetui.model import Operation, Problem, Run, RunRef, RunSummary, Status, Unread
from tracetui.model.claims import unpack_keys
from tracetui.model.ledger import kinds_of, size_of
from tracetui.model.summary import FIELDS
from tracetui.model.tally import NAME_LENGTH
from tracetui.sources.local import LocalSource
from tracetui.testing import hostile, reading
from tracetui.testing.reading import (
    ALLOWED,
    MTIME,
    DisplayedValues,
    Growing,
    claimed,
    copied,
    files,
    kept_open,
    leaves,
    plain,
    plain_run,
    read_run,
    relative,
    write,
)

__all__ = [
    "Growing",
    "cases",
    "check_expected",
    "check_format",
    "check_growth",
    "check_hostile",
    "check_ledger",
    "check_nothing_lost",
    "check_sniff",
    "check_summaries",
    "check_unknown_fields",
    "claimed",
    "copied",
    "read_run",
]

GOLDEN: Final = "TRACETUI_GOLDEN"
UNKNOWN_FIELD: Final = "tracetui_unknown"
LIST_STAGE: Final = "list stage:"
_COUNTS: Final = ("errors", "llm_calls", "nodes", "problems", "size", "spans", "steps", "tool_calls")
_SUMS: Final = ("claims", "duration_ms", "model_usage", "models", "tools", "unread", "usage")
COUNTED: Final = frozenset({*_COUNTS, *_SUMS, "deep", "first_error", "last", "title"})
"""Fields of a summary that the list stage of any format may leave empty: they are counted, or known at the end."""


def check_format(fmt: Format, cases_dir: str | os.PathLike[str], *, seed: int = 1) -> None:
    """Run every check on every case below `cases_dir`. Raises `AssertionError`, also if there is no case."""
    case_dirs = cases(cases_dir)
    assert case_dirs, f"no <case>/input folder below {os.fspath(cases_dir)}"
    for case in case_dirs:
        check_sniff(fmt, case)
        check_summaries(fmt, case)
        check_ledger(fmt, case)
        check_expected(fmt, case)
        check_nothing_lost(fmt, case)
        check_unknown_fields(fmt, case)
        check_hostile(fmt, case, seed=seed)
        check_growth(fmt, case, seed=seed)


def cases(folder: str | os.PathLike[str]) -> list[Path]:
    """The case folders directly below `folder`."""
    return sorted(path.parent for path in Path(folder).glob("*/input") if any(path.iterdir()))


def check_sniff(fmt: Format, case: Path) -> None:
    """Check that the format claims files of its case, and no other format scores higher on them."""
    with copied(case) as root:
        assert claimed(fmt, root), f"{fmt.name} claims no file of {case}"
        for path in files(root):
            for other in _others(fmt):
                with LocalSource().open(path) as mine, LocalSource().open(path) as theirs:
                    score, rival = fmt.sniff(mine), other.sniff(theirs)
                assert NO <= score <= CERTAIN, f"{fmt.name} scores {score} for {path}"
                assert rival <= score, f"{other.name} claims {path} with {rival}, {fmt.name} with {score}"


def check_summaries(fmt: Format, case: Path) -> None:
    """Check that both stages of `summarize` agree with the summary of the whole run, and that values which only the
    whole run has are named.
    """
    lines = _exceptions(case)
    deferred = {line.removeprefix(LIST_STAGE).strip() for line in lines if line.startswith(LIST_STAGE)}
    with copied(case) as root:
        for path in claimed(fmt, root):
            quick, deep = _stages(fmt, path)
            _check_stages(fmt, path, quick, deep)
            for first, second in zip(quick, deep, strict=True):
                empty = {
                    name for name in FIELDS if _is_empty(getattr(first, name)) and not _is_empty(getattr(second, name))
                }
                unnamed = sorted(empty - COUNTED - deferred)
                assert not unnamed, f"{path}: empty in the list stage, and not named in exceptions.txt: {unnamed}"


def check_ledger(fmt: Format, case: Path) -> None:
    """Check that records of unknown kinds are counted with their bytes, and lost bytes don't exceed the size."""
    with copied(case) as root:
        for path in claimed(fmt, root):
            for ref in _refs(fmt, path):
                _check_unread(read_run(fmt, ref))


def check_expected(fmt: Format, case: Path) -> None:
    """Check that the result equals ``expected.json``."""
    with copied(case) as root:
        document = relative(_everything(fmt, root), str(root))
    expected = case / "expected.json"
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    if os.environ.get(GOLDEN):
        expected.write_text(text, encoding="utf-8")
    assert expected.exists(), f"{expected} is missing; create it with {GOLDEN}=1 and review it"
    assert json.loads(text) == json.loads(expected.read_text(encoding="utf-8")), (
        f"{case} differs from its expected.json; if intended, update it with {GOLDEN}=1"
    )


def check_growth(fmt: Format, case: Path, *, seed: int = 1, stops: int = 40) -> None:
    """Check that an incremental reader of a growing file always agrees with a fresh reader, bodies included.

    A span must be returned again whenever anything about it changes. Files grow byte by byte, as in a copy, and are
    read at up to 8 random sizes; databases also receive their rows from a real writer, and are read about `stops`
    times meanwhile.
    """
    random = Random(seed)  # noqa: S311 - to cut files, not to keep secrets
    with copied(case) as root:
        for path in claimed(fmt, root):
            refs = _refs(fmt, path)
            reading.check_bytes(fmt, path, refs[:5], random, min(stops, 8))
            if hostile.is_database(Path(path).read_bytes()):
                reading.check_rows(fmt, path, refs, random, stops)


def check_hostile(fmt: Format, case: Path, *, seed: int = 1, count: int = 120) -> None:
    """Check that broken variants of the files only cause problems or `FormatError`, and consistent summaries."""
    random = Random(seed)  # noqa: S311
    with copied(case) as root:
        for path, label, data in hostile.variants(claimed(fmt, root), random, count):
            write(path, data, MTIME)
            try:
                _exercise(fmt, path)
            except Exception as error:
                raise AssertionError(f"{fmt.name}, {case.name}, {label}: {error!r}") from error


def check_nothing_lost(fmt: Format, case: Path) -> None:
    """Check that every string and number of the source is shown, except those in ``exceptions.txt``."""
    exceptions = _exceptions(case)
    with copied(case) as root:
        paths = claimed(fmt, root)
        visible = DisplayedValues(read_run(fmt, ref) for path in paths for ref in _refs(fmt, path))
        for path in paths:
            for where, value in _source_leaves(Path(path)):
                if not any(fnmatchcase(where, pattern) for pattern in exceptions):
                    assert visible.has(value), f"{path}: {where} = {value!r} is not shown"


def check_unknown_fields(fmt: Format, case: Path) -> None:
    """Check that an unknown field in any object of a JSON source is shown."""
    exceptions = _exceptions(case)
    with copied(case) as root:
        for path in claimed(fmt, root):
            records, document = hostile.parse(Path(path).read_bytes())
            objects = [item for item in _objects(records) if item]
            for number, item in enumerate(objects):
                item[UNKNOWN_FIELD] = f"unknown {number}."
            if objects:
                write(path, hostile.dumps(records, document), MTIME)
        refs = [ref for path in claimed(fmt, root) for ref in _refs(fmt, path)]
        visible = DisplayedValues(read_run(fmt, ref) for ref in refs)
        for path in claimed(fmt, root):
            for where, value in _source_leaves(Path(path)):
                if where.endswith(UNKNOWN_FIELD) and not any(fnmatchcase(where, pattern) for pattern in exceptions):
                    assert visible.has(value), f"{path}: the unknown field {where} is not shown"


def _others(fmt: Format) -> Iterator[Format]:
    for name in registry.names():
        if name != fmt.name:
            try:
                yield registry.load(name)
            except (PluginError, ImportError):
                continue


def _summaries(fmt: Format, path: str, *, deep: bool) -> tuple[list[RunSummary], list[Problem]]:
    with LocalSource().open(path) as file:
        fmt.sniff(file)  # as in the program, so the memo of `sniff` is used
        items = list(fmt.summarize(file, deep=deep))
    return [item for item in items if isinstance(item, RunSummary)], [i for i in items if isinstance(i, Problem)]


def _refs(fmt: Format, path: str) -> list[RunRef]:
    return [summary.ref for summary in _summaries(fmt, path, deep=False)[0]]


def _stages(fmt: Format, path: str) -> tuple[list[RunSummary], list[RunSummary]]:
    return _summaries(fmt, path, deep=False)[0], _summaries(fmt, path, deep=True)[0]


def _check_stages(fmt: Format, path: str, quick: list[RunSummary], deep: list[RunSummary]) -> list[Run]:
    """Check both stages against the whole runs; returns these."""
    runs = []
    assert len({run.ref for run in deep}) == len(deep), f"{path}: two runs share an address"
    _same([run.ref for run in quick], [run.ref for run in deep], f"{path}: runs of both stages")
    for first, second in zip(quick, deep, strict=True):
        check_fields(first)
        check_fields(second)
        runs.append(run := read_run(fmt, second.ref))
        full = msgspec.structs.replace(run.summary, modified_at=second.modified_at)
        _same(plain(second), plain(full), f"{path}: summarize(deep=True) and the whole run")
        check_quick(first, second, path)
    return runs


def _check_unread(run: Run) -> None:
    where, size, lost = run.summary.ref.address, run.summary.size, run.summary.unread or Unread()
    unknown = [span for span in run.spans if span.operation is Operation.UNKNOWN]
    for span in unknown if size is not None else ():
        assert size_of(span.at), f"{where}: Span.at of {span.id}, a record of unknown kind, has no size"
    assert lost.kinds == kinds_of((span.name[:NAME_LENGTH], 1) for span in unknown), f"{where}: {lost.kinds}"
    assert size is None or lost.size <= size, f"{where}: {lost.size} of {size} bytes are lost"


def check_quick(quick: RunSummary, deep: RunSummary, path: str) -> None:
    """Check values of the list stage; None, 0, an empty text and an unknown status mean *not determined yet*."""
    for name in FIELDS:
        value, right = getattr(quick, name), getattr(deep, name)
        if name == "deep" or _is_empty(value) or (name == "time_zone" and not quick.started_at):
            continue
        if name == "usage" and right is not None:
            value = value.or_else(right)
        if name == "claims" and value:  # the list stage knows the origin only
            value, right = unpack_keys(value).origin, unpack_keys(right).origin if right else None
        if name == "first_error" and value.span is None and right is not None:
            right = msgspec.structs.replace(right, span=None, name=value.name, operation=value.operation)
        assert value == right, f"{path}: {name} is {value!r} in the list stage, {right!r} in the run"


def _is_empty(value: Any) -> bool:
    """Whether a value of a summary is not determined."""
    return value in (None, 0, "", b"", (), Status.UNKNOWN)


def _everything(fmt: Format, root: Path) -> dict[str, Any]:
    runs: list[Any] = []
    problems: list[Any] = []
    for path in claimed(fmt, root):
        try:
            summaries, noted = _summaries(fmt, path, deep=False)
        except FormatError as error:
            problems.append(plain(Problem(path, error.where, error.reason)))
            continue
        problems.extend(plain(problem) for problem in noted)
        runs.extend(plain_run(read_run(fmt, summary.ref)) for summary in summaries)
    return {"runs": runs, "problems": problems}


def _exercise(fmt: Format, path: str) -> None:
    """Call everything that the program may call for a file; the format may only raise `ALLOWED`."""
    with LocalSource().open(path) as file:
        score = fmt.sniff(file)
    assert isinstance(score, int), "sniff returned no number"
    try:
        stages = _stages(fmt, path)
    except ALLOWED:
        return
    for run in _check_stages(fmt, path, *stages)[:20]:
        for item in (run.summary, run.body, *run.spans, *run.problems):
            check_fields(item)
        with kept_open(fmt, run) as loading:
            for span in run.spans:
                with suppress(*ALLOWED):
                    check_fields(loading.load(span))


def _source_leaves(path: Path) -> Iterator[tuple[str, str | int | float]]:
    data = path.read_bytes()
    if hostile.is_database(data):
        for where, value in hostile.rows(path):
            if isinstance(value, bytes):
                yield from (leaf for record in hostile.parse(value)[0] for leaf in leaves(record, where))
            else:
                yield from leaves(value, where)
    else:
        for record in hostile.parse(data)[0]:
            yield from leaves(record)


def _objects(records: Iterable[Any]) -> list[dict[str, Any]]:
    listed = list(records)
    values = [*listed, *(where[key] for where, key in hostile.places(listed))]
    return [value for value in {id(value): value for value in values}.values() if isinstance(value, dict)]


def _exceptions(case: Path) -> list[str]:
    path = case.parent / "exceptions.txt"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [pattern for line in lines if (pattern := line.partition("#")[0].strip())]


def _same(actual: Any, expected: Any, what: str) -> None:
    """Assert equality; the error names the first difference."""
    assert actual == expected, f"{what}: {_difference(actual, expected, '')}"


def _difference(actual: Any, expected: Any, path: str) -> str:
    if isinstance(actual, dict) and isinstance(expected, dict):
        for key in [*expected, *actual]:
            if actual.get(key) != expected.get(key):
                return _difference(actual.get(key), expected.get(key), f"{path}.{key}")
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        for i, (item, expected_item) in enumerate(zip(actual, expected, strict=True)):
            if item != expected_item:
                return _difference(item, expected_item, f"{path}[{i}]")
    return f"{path} is {str(actual)[:300]!r}, expected {str(expected)[:300]!r}"

"""A trace is listed as what is read of it, whatever is in its spans."""

from __future__ import annotations

import copy
import os
import random
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from msgspec.structs import replace

from tests.formats.changes import VALUES, somewhere
from tests.shared import SEARCHES, needs_shared, sample
from tracetui.errors import FormatError
from tracetui.formats.otlp.format import Otlp
from tracetui.model import Problem, RunSummary
from tracetui.sources.local import LocalSource
from tracetui.testing import read_run
from tracetui.testing.reading import MTIME

_CASES: Final = sorted(path for path in (Path(__file__).parent / "otlp").rglob("input/**/*") if path.is_file())
_ATTRIBUTES: Final[tuple[Any, ...]] = (
    {"stringValue": "x"},
    {"intValue": "7"},
    {"intValue": 7},
    {"code": 2},
    {"arrayValue": {"values": []}},
)
FORMAT = Otlp()


def _summaries(path: Path) -> Any:
    """The summaries and problems that the list shows; why there are none."""
    with LocalSource().open(str(path)) as file:
        try:
            runs = list(FORMAT.summarize(file, deep=True))
        except FormatError as error:
            return str(error)
    return runs


def _agree(path: Path) -> bool:
    """Whether there are runs; fails where one is listed as something else than what is read of it."""
    runs = [run for run in _summaries(path) if isinstance(run, RunSummary)]
    for summary in runs:
        assert read_run(FORMAT, summary.ref).summary == replace(summary, modified_at=MTIME)
    return bool(runs)


def _change(records: list[Any], chance: random.Random) -> None:
    place, key = somewhere(chance.choice(records), chance)
    kind = chance.random()
    if kind < 0.5:
        place[key] = copy.deepcopy(chance.choice((*VALUES, *_ATTRIBUTES)))
    elif kind < 0.7:
        if not isinstance(place, dict) or key in place:
            del place[key]
    elif kind < 0.9:
        other, name = somewhere(chance.choice(records), chance)
        place[key] = copy.deepcopy(other.get(name) if isinstance(other, dict) else other[name])
    else:
        records.insert(chance.randrange(len(records) + 1), copy.deepcopy(chance.choice(records)))


def _changed(path: Path, folder: Path, rounds: int) -> int:
    """How many of so many changed files have runs."""
    chance, checked = random.Random(path.name), 0
    data = path.read_bytes()
    try:
        whole = [orjson.loads(data)]
    except ValueError:
        whole = [orjson.loads(line) for line in data.splitlines() if line.startswith(b"{") and line.endswith(b"}")]
    changed = folder / "traces.jsonl"
    for _ in range(rounds):
        records = copy.deepcopy(whole)
        for _ in range(chance.choice((0, 1, 1, 2, 4))):
            _change(records, chance)
        changed.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
        os.utime(changed, (MTIME, MTIME))  # nobody is writing it
        checked += _agree(changed)
    return checked


@pytest.mark.search
@pytest.mark.parametrize("path", _CASES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_changed_cases_are_counted_as_they_are_read(path: Path, tmp_path: Path) -> None:
    _agree(path)
    _changed(path, tmp_path, 60 if SEARCHES else 20)


@pytest.mark.parametrize(
    "place",
    ["name", "kind", "traceState", "unheardOf", "links", "events", "value", "key", "scope", "resource", "schemaUrl"],
)
def test_damaged_text_is_reported_wherever_it_is(place: str, tmp_path: Path) -> None:
    bad: Any = "a¤b"
    attribute = {"key": bad if place == "key" else "k", "value": {"stringValue": bad if place == "value" else "v"}}
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "x", "attributes": [attribute]}
    span |= {place: bad} if place in ("name", "kind", "traceState", "unheardOf") else {}
    span |= {place: [{"name": bad}]} if place in ("links", "events") else {}
    scopes = {"scope": {"name": bad if place == "scope" else "s"}, "spans": [span]}
    resource = {"resource": {"note": bad if place == "resource" else "r"}, "scopeSpans": [scopes]}
    request = {"resourceSpans": [resource | ({"schemaUrl": bad} if place == "schemaUrl" else {})]}
    path = tmp_path / "traces.jsonl"
    path.write_bytes(orjson.dumps(request).replace("¤".encode(), b"\xff") + b"\n")
    (problem,) = (run for run in _summaries(path) if isinstance(run, Problem))
    assert "not UTF-8" in problem.reason


@needs_shared
def test_changed_samples_are_counted_as_they_are_read(tmp_path: Path) -> None:
    paths = sorted(path for path in sample("otel-otlp-json").rglob("*.json*") if b"resourceSpans" in path.read_bytes())
    assert sum(map(_agree, paths)) > len(paths) // 2
    assert sum(_changed(path, tmp_path, 25) for path in paths) > 30

"""Every value of a source, wherever it stands and of whatever type, is in what ``show --json`` prints, exactly."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tracetui.export.json import run_document
from tracetui.live.load import read_run
from tracetui.live.scan import Scanner
from tracetui.sources.local import LocalSource

SOURCE = LocalSource()
HERE = Path(__file__).parent
CASES: Final = (
    "ccpa/documented",
    "ccpa/pair",
    "penelope/documented",
    "penelope/early",
    "penelope/failure",
    "latticeflow/events",
    "latticeflow/items",
    "latticeflow/lean",
    "latticeflow/failed",
)
FILES = [path for case in CASES for path in sorted((HERE / case / "input").rglob("*.json*"))]
MARKS: list[Any] = ["a mark", 7654321987, 10**25 + 7, -(2**64), 1234.0625, ["in a mark"], {"of": {"a": 10**19 + 1}}]


def loaded(path: Path) -> Any:
    """The document, or all records of a file of lines."""
    text = path.read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line] if path.suffix == ".jsonl" else json.loads(text)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something else might stand."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def leaves(value: Any) -> Iterator[tuple[type, Any]]:
    """Every value that holds no others, with its type: 1, 1.0 and True differ."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield type(value), value


PLACES = [(path, place) for path in FILES for place in places(loaded(path))]


def test_no_case_is_missing() -> None:
    assert {path.relative_to(HERE).as_posix().partition("/input/")[0] for path, _ in PLACES} == set(CASES)


@settings(max_examples=examples(100))
@given(where=st.sampled_from(PLACES), mark=st.sampled_from(MARKS))
def test_a_value_in_any_place_is_printed_exactly(tmp_path: Path, where: tuple[Path, Any], mark: Any) -> None:
    path, place = where
    lines = path.suffix == ".jsonl"
    assume(not (lines and len(place) == 1))  # a line that is no record at all is a problem, not a value
    document = copy.deepcopy(loaded(path))
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = mark
    target = tmp_path / path.name
    target.write_text("".join(json.dumps(line) + "\n" for line in document) if lines else json.dumps(document))
    os.utime(target, (1, 1))

    file = Scanner(SOURCE).look(next(iter(SOURCE.walk(str(target)))), deep=True)
    assume(file.runs)  # without the fields that identify a format, nobody claims it
    (summary,) = file.runs
    printed = json.loads(b"".join(run_document(read_run(SOURCE, summary.ref), None)))

    assert set(leaves(mark)) <= set(leaves(printed)), f"{path.parent.parent.name}: {place} = {mark!r} is not shown"


@pytest.mark.parametrize("number", ["0", "-0.0", "1.0", "1e2", "5e-324", "18446744073709551616", "0.1"])
def test_a_number_is_printed_as_what_it_is(tmp_path: Path, number: str) -> None:
    target = tmp_path / "run.json"
    target.write_text(
        '{"FORMAT": "open_responses", "items": [], "metadata": {"extra": [NUMBER]}}'.replace("NUMBER", number)
    )

    file = Scanner(SOURCE).look(next(iter(SOURCE.walk(str(target)))), deep=True)
    printed = json.loads(b"".join(run_document(read_run(SOURCE, file.runs[0].ref), None)))

    assert repr(printed["run"]["attributes"]["metadata"]["extra"]) == repr(json.loads(f"[{number}]"))

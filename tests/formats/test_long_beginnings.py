"""A file is of the same format when its first records are long, its keys come in another order, or it is indented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_conformance import HERE
from tests.shared import SEARCHES
from tracetui import testing
from tracetui.formats import guard, registry
from tracetui.formats.opening import MAX_OPENING, opening
from tracetui.model import RunSummary
from tracetui.sources.base import HEAD_SIZE
from tracetui.sources.local import LocalSource
from tracetui.testing.hostile import dumps, parse, places
from tracetui.testing.reading import MTIME, claimed, copied, write

LONG = "Lorem ipsum dolor sit amet.\n" * 7500
"""200 KB."""
PROSE = ("content", "text", "output", "instructions", "system_prompt", "result", "goal", "message", "description")
CASES, FEW = (4, 2) if SEARCHES else (2, 2)
"""Cases of each format, and files of each case."""


def lengthened(records: list[Any]) -> list[Any]:
    """The records, the first text in them 200 KB longer."""
    records = json.loads(json.dumps(records))
    fields = [place for record in records for place in places(record)]
    for name in PROSE:
        for holder, key in fields:
            if key == name and isinstance(holder[key], str):
                holder[key] += LONG
                return records
    return records


def turned(value: Any) -> Any:
    """The value, the keys of every object in the opposite order, but for those with a long text: they come first."""
    if isinstance(value, dict):
        fields = {key: turned(value[key]) for key in reversed(value)}
        return dict(sorted(fields.items(), key=lambda field: not is_long(field[1])))
    return [turned(item) for item in value] if isinstance(value, list) else value


def is_long(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) >= len(LONG)
    return any(map(is_long, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()))


def shapes(records: list[Any], document: bool) -> Iterator[tuple[str, bytes]]:
    """The same file, written in other ways."""
    long = lengthened(records)
    long_first = turned(long)
    yield "long", dumps(long, document)
    yield "turned", dumps(turned(records), document)
    yield "long first", dumps(long_first, document)
    if document:
        yield "long, indented", dumps(long, document, indent=2)
        yield "long first, indented", dumps(long_first, document, indent=2)
    else:
        yield "long, after a mark and blank lines", b"\xef\xbb\xbf\n \n" + dumps(long, document)


def reading(path: str) -> tuple[str | None, list[Any]]:
    """The format that claims a file, and facts about it: whether it is a part of another, and its runs."""
    with LocalSource().open(path) as file:
        fmt = registry.detect(file)
        if fmt is None:
            return None, []
        quick, deep = (
            [run for run in guard.summarize(fmt, file, deep=deep) if isinstance(run, RunSummary)]
            for deep in (False, True)
        )
        return fmt.name, [guard.main_file(fmt, file), len(quick), *((run.status, run.usage) for run in deep)]


@pytest.mark.search
@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_a_file_written_in_another_way_is_the_same_run(name: str) -> None:
    fmt = registry.load(name)
    failures = []
    for case in testing.cases(HERE / name.replace("-", "_"))[:CASES]:
        with copied(case) as root:
            for path in claimed(fmt, root)[:FEW]:
                records, document = parse(Path(path).read_bytes())
                expected = reading(path)
                if not records or expected[0] != name:
                    continue
                for shape, changed in shapes(records, document):
                    write(path, changed, MTIME)
                    if (actual := reading(path)) != expected:
                        failures.append((f"{case.name}/{Path(path).name}, {shape}", actual, expected))
    assert not failures


X = b"x" * HEAD_SIZE
MANY = b",".join(b'"%d": "%s"' % (number, X[:999]) for number in range(300))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1}', None),
        (X, None),
        (b'{"a": "' + X * (MAX_OPENING // HEAD_SIZE) + b'"}', None),
        (b'{"a": "' + X, None),
        (b'not JSON\n{"a": "' + X + b'"}', None),
        (b"[" * 900 + b"]" * 900 + b" " * HEAD_SIZE, [[[[[[[]]]]]]]),
        (b'\xef\xbb\xbf\n{"a": "' + X + b'", "b": [' + b"1," * 99 + b"1]}", {"a": "x" * 2000, "b": [1] * 16}),
        (b'{\n"a": "' + X + b'",\n"b": NaN}', {"a": "x" * 2000, "b": None}),
        (b'{"a": {' + MANY + b"}}", {"a": {str(number): "x" * 200 for number in range(200)}}),
    ],
    ids=["short", "text", "too long", "cut", "second line", "deep", "after a mark", "indented", "many fields"],
)
def test_an_opening_is_the_first_record_shortened(tmp_path: Path, data: bytes, expected: Any) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with LocalSource().open(str(path)) as file:
        opened = opening(file)
        assert (opened is file) is (expected is None)
        if expected is not None:
            assert json.loads(opened.head, parse_constant=lambda _: None) == expected
        assert opened.read_all() == data

"""Counting a trajectory without what its tools answered gives what reading it in full gives, whatever is in it."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson
import pytest

from tests.formats.changes import VALUES, somewhere
from tracetui.errors import FormatError
from tracetui.formats.atif import Atif
from tracetui.formats.atif.document import document
from tracetui.model import Body, RunRef
from tracetui.model.build import RunBuilder
from tracetui.sources.local import LocalSource

_CASES: Final = sorted((Path(__file__).parent / "atif").rglob("input/**/*.json"))
_TOLD: Final = ({"error": "boom"}, {"exit_code": 2}, {"is_error": True}, [{"type": "text", "text": "said"}])
FORMAT = Atif()


def _counted(path: Path) -> Any:
    with LocalSource().open(str(path)) as file:
        try:
            return list(FORMAT.summarize(file, deep=True))
        except FormatError as error:
            return str(error)


def _read(path: Path) -> Any:
    with LocalSource().open(str(path)) as file:
        ref = RunRef("atif", file.path)
        try:
            chunk = FORMAT.read(file, ref)
        except FormatError as error:
            return str(error)
        builder = RunBuilder(ref, lambda span: Body())
        builder.add(chunk.spans, header=chunk.header, problems=chunk.problems)
        return [builder.build(modified_at=file.stat.mtime, moving=file.moving).summary]


def _change(value: Any, chance: random.Random) -> None:
    place, key = somewhere(value, chance)
    kind = chance.random()
    if kind < 0.6:
        place[key] = copy.deepcopy(chance.choice((*VALUES, *_TOLD)))
    elif kind < 0.8:
        if not isinstance(place, dict) or key in place:
            del place[key]
    else:
        other, name = somewhere(value, chance)
        place[key] = copy.deepcopy(other[name])


@pytest.mark.parametrize("path", _CASES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_changed_trajectories_are_counted_as_they_are_read(path: Path, tmp_path: Path) -> None:
    chance = random.Random(path.name)
    changed = tmp_path / "trajectory.json"
    for _ in range(60):
        value = orjson.loads(path.read_bytes())
        for _ in range(chance.choice((0, 1, 1, 2, 4))):
            _change(value, chance)
        changed.write_bytes(orjson.dumps(value))
        assert _counted(changed) == _read(changed)


def test_what_tools_answered_is_passed_over() -> None:
    result = {"source_call_id": "c", "content": "x" * 100}
    data = orjson.dumps({"steps": [{"source": "agent", "observation": {"results": [result]}}]})
    (step,) = document(data, placed=False)[0].steps
    assert isinstance(step.value["observation"]["results"][0]["content"], msgspec.Raw)

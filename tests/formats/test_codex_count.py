"""Counting a rollout without its spans gives what reading it in full gives, whatever happened to its records."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.changes import VALUES, somewhere
from tests.shared import needs_shared, sample
from tracetui.formats.codex import Codex
from tracetui.formats.codex.count import count
from tracetui.formats.counting import regular
from tracetui.formats.scalars import child
from tracetui.model import RunRef, RunSummary
from tracetui.model.build import summary_of
from tracetui.sources.local import LocalSource

_CASES: Final = sorted((Path(__file__).parent / "codex").rglob("*.jsonl"))
FORMAT = Codex()
_OUTPUTS: Final = """Chunk ID: 2da565|Wall time: 0.1 seconds|Wall time: long|Process exited with code 0|Exit code: 0|
Exit code: 1|Process exited with code 137|Process exited with code -1|Exit code: 00|Exit code: |
Process running with session ID 7|Original token count: 4|Output:|Output: none|\\|{|"|Exit|[1]|é東|
{"agent_id":"x"}|{"output":"1","metadata":{"exit_code":1}}|C|\t|\r"""
lines = st.sampled_from(("x" * 990, *_OUTPUTS.replace("|\n", "||").split("|")))
texts = st.lists(lines, max_size=6).map("\n".join)
old = st.builds(
    lambda text, code, more: orjson.dumps({"output": text, "metadata": {"exit_code": code}} | more).decode(),
    texts,
    st.sampled_from((0, 0, 0, 1, None, "0", 0.0, True)),
    st.sampled_from(({}, {}, {"agent_id": None}, {"agent_id": 1}, {"metadata": None})),
)
parts = st.one_of(texts.map(lambda text: {"type": "input_text", "text": text}), texts, st.just({"image_url": "x"}))
outputs = st.one_of(
    texts, old, st.lists(parts, max_size=3), st.none(), st.builds(lambda text: {"content": text}, texts)
)


def counted(path: Path) -> RunSummary | None:
    """What counting gives; None for a rollout that must be read in full."""
    with LocalSource().open(str(path)) as file:
        found = regular(count, file)
        if found is None:
            return None
        return summary_of(RunRef("codex", file.path), *found, modified_at=file.stat.mtime, moving=file.moving)


def in_full(path: Path) -> RunSummary:
    with LocalSource().open(str(path)) as file:
        return FORMAT._full(file, RunRef("codex", file.path))


def agree(path: Path) -> bool:
    """Whether it was counted; fails where that gives something else."""
    found = counted(path)
    if found is not None:
        assert found == in_full(path)
    return found is not None


# ------------------------------------------------------------------------------------------------------ what may happen


def _other(records: list[Any], chance: random.Random) -> None:
    """A value becomes another."""
    place, key = somewhere(chance.choice(records), chance)
    place[key] = copy.deepcopy(chance.choice(VALUES))


def _gone(records: list[Any], chance: random.Random) -> None:
    """A field is not there."""
    place, key = somewhere(chance.choice(records), chance)
    if not isinstance(place, dict) or key in place:
        del place[key]


def _borrowed(records: list[Any], chance: random.Random) -> None:
    """A field has the value that it has in another record."""
    (one, key), other = somewhere(chance.choice(records), chance), chance.choice(records)
    for place in (other, child(other, "payload"), child(child(other, "payload"), "item")):
        if key in place:
            one[key] = copy.deepcopy(place[key])


def _lost(records: list[Any], chance: random.Random) -> None:
    """A record is not there."""
    del records[chance.randrange(len(records))]


def _twice(records: list[Any], chance: random.Random) -> None:
    """A record is there twice."""
    at = chance.randrange(len(records))
    records.insert(chance.randrange(at, len(records)) + 1, copy.deepcopy(records[at]))


def _moved(records: list[Any], chance: random.Random) -> None:
    """A record is elsewhere; it was written at the time at which it is there."""
    one = records.pop(chance.randrange(len(records)))
    at = chance.randrange(1, len(records)) if len(records) > 1 else 0
    one["timestamp"] = records[at - 1].get("timestamp")
    records.insert(at, one)


def _unknown(records: list[Any], chance: random.Random) -> None:
    """A record is of a kind that this version does not know."""
    one = chance.choice(records)
    place = one["payload"] if isinstance(one.get("payload"), dict) and chance.random() < 0.7 else one
    place["type"] = chance.choice(("brand_new", "plan_update", "ghost_snapshot", "error", "brand_new_output"))


CHANGES: Final[tuple[Callable[[list[Any], random.Random], None], ...]] = (
    _other,
    _other,
    _gone,
    _borrowed,
    _borrowed,
    _lost,
    _lost,
    _twice,
    _moved,
    _moved,
    _unknown,
)


def changed(data: bytes, folder: Path, rounds: int, seed: str) -> int:
    """How many of so many changed rollouts were counted; fails where that gives something else."""
    chance, regular = random.Random(seed), 0
    path = folder / "rollout-x.jsonl"
    for _ in range(rounds):
        records = [orjson.loads(line) for line in data.splitlines()]
        for _ in range(chance.choice((1, 1, 2, 3, 6))):
            if len(records) > 1:
                chance.choice(CHANGES)(records, chance)
        path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in records))
        regular += agree(path)
    return regular


def regular_part(data: bytes, folder: Path) -> bytes:
    """The records of a rollout but those that make it irregular, each a while after the one before."""
    path, kept = folder / "rollout-x.jsonl", b""
    for number, line in enumerate(data.splitlines()):
        value = orjson.loads(line)
        child(value, "payload").pop("history_base", None)
        if "timestamp" in value:
            value["timestamp"] = f"2026-03-02T09:{number // 60 % 60:02}:{number % 60:02}.{number * 37 % 1000:03}Z"
        path.write_bytes(kept + orjson.dumps(value) + b"\n")
        if counted(path) is not None:
            kept = path.read_bytes()
    return kept


def _records(path: Path) -> bytes:
    """The lines of a file that are objects."""
    return b"\n".join(line for line in path.read_bytes().splitlines() if _is_object(line))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


# ----------------------------------------------------------------------------------------------------------- the tests


def test_what_is_regular_is_counted() -> None:
    assert [path.parents[4].parent.name for path in _CASES if agree(path)] == ["old", "threads", "turns"]


@pytest.mark.parametrize("path", _CASES, ids=lambda path: path.parts[-7] + path.stem[-1])
def test_changed_cases_are_counted_as_they_are_read(path: Path, tmp_path: Path) -> None:
    data = regular_part(_records(path), tmp_path)
    assert changed(data, tmp_path, 120, path.name) > 40


@needs_shared
def test_changed_samples_are_counted_as_they_are_read(tmp_path: Path) -> None:
    paths = sorted(sample("codex").rglob("*.jsonl"))
    parts = [regular_part(_records(path), tmp_path) for path in paths]
    found = [changed(data, tmp_path, 60, path.name) for path, data in zip(paths, parts, strict=True) if data]
    assert len(found) >= 8
    assert min(found) > 20


@needs_shared
def test_samples_are_counted_as_they_are_read() -> None:
    counted = [agree(path) for path in sorted(sample("codex").rglob("*.jsonl"))]
    assert sum(counted) >= 6


@given(outputs, st.booleans())
def test_any_output_is_taken_for_what_it_says(
    tmp_path_factory: pytest.TempPathFactory, output: Any, told: bool
) -> None:
    path = tmp_path_factory.mktemp("output") / "rollout-x.jsonl"
    ran = {"type": "CommandExecution", "id": "c", "status": "completed", "aggregated_output": "", "exit_code": 0}
    event = {"type": "item_completed", "item": ran}
    records = [
        ("session_meta", {"id": "t", "timestamp": "2026-03-02T09:00:00Z"}),
        ("event_msg", {"type": "task_started"}),
        ("response_item", {"type": "function_call", "name": "sh", "call_id": "c", "arguments": "{}"}),
        *([("event_msg", event)] if told else []),
        ("response_item", {"type": "function_call_output", "call_id": "c", "output": output}),
        ("event_msg", {"type": "task_complete"}),
    ]
    stamped = [
        {"timestamp": f"2026-03-02T09:00:0{i}.000Z", "type": k, "payload": p} for i, (k, p) in enumerate(records)
    ]
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in stamped))
    assert agree(path) or "agent_id" in str(output) or isinstance(output, dict)


def test_spans_are_named_by_their_lines_in_a_long_file_too(tmp_path: Path) -> None:
    def line(second: int, kind: str, payload: Any) -> bytes:
        stamp = f"2026-03-02T09:{second // 60:02}:{second % 60:02}.000Z"
        return orjson.dumps({"timestamp": stamp, "type": kind, "payload": payload}) + b"\n"

    path = tmp_path / "rollout-x.jsonl"
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "é" * 100_000}]}
    records = [line(0, "session_meta", {"id": "t", "timestamp": "2026-03-02T09:00:00.000Z"}), b"\n"]
    records += [line(second, "response_item", said) for second in range(1, 30)]
    records.append(line(30, "event_msg", {"type": "error", "message": "overloaded"}))
    path.write_bytes(b"".join(records))
    assert agree(path)
    found = counted(path)
    assert found is not None
    assert found.first_error is not None
    assert found.first_error.span == "l32"

"""A record of many spans is read and decoded once for the bodies of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.formats import inspect_build
from tracetui.formats import registry
from tracetui.formats.bodies import CACHE_SIZE, SpanRef, cached, pack_block
from tracetui.formats.jsonl import Line
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.sources.base import CACHE, Stat
from tracetui.sources.local import LocalFile, LocalSource

CALLS = 300
SESSION = "019cadd4-5620-7001-8000-000000000001"
NAMES = [f"call_{number}" for number in range(CALLS)]


class Counted(LocalSource):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        self.read = 0

    def open(self, path: str, stat: Stat | None = None) -> LocalFile:
        return CountedFile(path, self)


class CountedFile(LocalFile):
    """A file whose reads are counted, and those of others that are opened through it."""

    def __init__(self, path: str, source: Counted) -> None:
        super().__init__(path)
        self._source = source

    def read(self, offset: int, size: int) -> bytes:
        data = super().read(offset, size)
        self._source.read += len(data)
        return data

    def other(self, path: str, stat: Stat | None = None) -> LocalFile:
        return CountedFile(super().other(path, stat).path, self._source)


def lines(path: Path, *records: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records))


def claude(folder: Path) -> None:
    lines(folder / f"{SESSION}.jsonl", *_claude())


def claude_agent(folder: Path) -> None:
    asked = {"type": "tool_use", "id": "toolu_a", "name": "Agent", "input": {"prompt": "Prune"}}
    lines(folder / f"{SESSION}.jsonl", *_claude(asked))
    more = {"agentId": "a1", "isSidechain": True}
    lines(folder / SESSION / "subagents" / "agent-a1.jsonl", *(record | more for record in _claude()))
    (folder / SESSION / "subagents" / "agent-a1.meta.json").write_text('{"toolUseId": "toolu_a"}')


def _claude(*asked: Any) -> list[dict[str, Any]]:
    calls = [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}} for name in NAMES]
    said = {"id": "msg_1", "role": "assistant", "model": "m", "content": [*asked] or calls}
    given = [{"type": "tool_result", "tool_use_id": name, "content": f"{name} " * 9} for name in NAMES]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Prune"},
        said,
        {"role": "user", "content": [] if asked else given},
    ]
    time = "2026-03-02T09:15:00.000Z"
    return [
        {"type": message["role"], "message": message, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None}
        | {"sessionId": SESSION, "isSidechain": False, "version": "2.1.197", "timestamp": time}
        for n, message in enumerate(messages)
    ]


def pi(folder: Path) -> None:
    calls = [{"type": "toolCall", "id": name, "name": "bash", "arguments": {"command": name}} for name in NAMES]
    said = [{"role": "user", "content": "Prune"}, {"role": "assistant", "content": calls, "model": "m"}]
    said += [{"role": "toolResult", "toolCallId": name, "content": name} for name in NAMES]
    head = {"type": "session", "version": 3, "id": SESSION, "timestamp": "2026-03-02T09:15:00.000Z", "cwd": "/oak"}
    entries = [
        {"type": "message", "id": f"e{n}", "parentId": f"e{n - 1}" if n else None, "message": message}
        for n, message in enumerate(said)
    ]
    lines(folder / f"2026-03-02T09-15-00-000Z_{SESSION}.jsonl", head, *entries)


def ccpa(folder: Path) -> None:
    blocks = [{"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": name}} for name in NAMES]
    head = {"kind": "session_start", "v": 2, "session_id": SESSION, "ts": "2026-05-11T11:02:03Z", "actor": "a"}
    said = {"kind": "assistant_turn", "v": 2, "turn": 1, "blocks": blocks, "stop_reason": "tool_use"}
    given = [
        {"kind": "tool_result", "v": 2, "turn": 2 + n, "tool_use_id": name, "ok": True, "content": name}
        for n, name in enumerate(NAMES)
    ]
    lines(folder / "s.ccpa-trace.jsonl", head, {"kind": "user_prompt", "v": 2, "turn": 0, "text": "Read"}, said, *given)


def atif(folder: Path) -> None:
    lines(folder / "trajectory.json", _trajectory())


def atif_agent(folder: Path) -> None:
    lines(folder / "agent.json", _trajectory())
    trajectory = _trajectory(0)
    ref = {"trajectory_path": "agent.json"}
    trajectory["steps"][1]["observation"] = {"results": [{"subagent_trajectory_ref": [ref]}]}
    lines(folder / "trajectory.json", trajectory)


def _trajectory(count: int = CALLS) -> dict[str, Any]:
    calls = [{"tool_call_id": name, "function_name": "bash", "arguments": {"cmd": name}} for name in NAMES[:count]]
    given = [{"source_call_id": name, "content": f"{name} " * 9} for name in NAMES[:count]]
    said = {"step_id": 2, "source": "agent", "message": "go", "tool_calls": calls, "observation": {"results": given}}
    steps = [{"step_id": 1, "source": "user", "message": "Prune"}, said]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "g", "version": "1"}, "steps": steps}


def otlp(folder: Path) -> None:
    spans = [
        {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"{n + 1:016x}", "name": name}
        | {"startTimeUnixNano": "1772442900000000000", "endTimeUnixNano": "1772442901000000000"}
        | {"attributes": [{"key": "gen_ai.tool.name", "value": {"stringValue": name}}]}
        for n, name in enumerate(NAMES)
    ]
    lines(folder / "traces.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def inspect(folder: Path) -> None:
    log = inspect_build.EventLog("k")
    for name in NAMES:
        log.add("tool", id=name, function="bash", arguments={"cmd": name}, result=name, events=[])
    samples = [inspect_build.sample("s1", events=log.events)]
    lines(folder / "log.json", {**inspect_build.ended(inspect_build.head("e"), samples), "samples": samples})


def hypergraph(folder: Path) -> None:
    steps = [
        {"node_name": name, "superstep": n, "status": "completed", "cached": False} for n, name in enumerate(NAMES)
    ]
    inner = {"graph_name": "inner", "run_id": "r2", "steps": steps}
    lines(folder / "a.json", {"graph_name": "g", "run_id": "r1", "steps": [*steps, steps[0] | {"inner_log": inner}]})


def latticeflow(folder: Path) -> None:
    """One that strict JSON refuses: it has no finer places."""
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": name}]} for name in NAMES]
    trace = {"FORMAT": "open_responses", "items": items, "metadata": {"trace_id": "one", "score": float("nan")}}
    (folder / "row.json").write_text(json.dumps({"task_id": "t", "trace": trace}))


MADE = [claude, claude_agent, pi, ccpa, atif, atif_agent, otlp, inspect, hypergraph, latticeflow]


@pytest.mark.parametrize("make", MADE, ids=lambda make: str(make.__name__))
def test_bodies_of_one_record_cost_it_once(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    refs = [run.ref for file in scan(LocalSource(), [str(tmp_path)], deep=False) for run in file.runs]
    assert len(refs) == 1
    source = Counted()
    run = read_run(source, refs[0])
    assert len(run.spans) >= CALLS

    source.read = 0
    bodies = [run.load(span) for span in run.spans]
    assert source.read < 12 * size + 80 * CALLS, f"{source.read / size:.0f} times the file"

    fmt = registry.load(refs[0].format)
    for span, body in zip(run.spans, bodies, strict=True):
        assert "problem" not in body.attributes
        with LocalSource().open(refs[0].path) as file:  # keeps nothing
            assert fmt.body(file, refs[0], span) == body


@pytest.mark.parametrize("make", [claude, claude_agent, pi, ccpa], ids=lambda make: str(make.__name__))
def test_a_record_replaced_by_one_of_the_same_size_has_no_body(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path)
    refs = [run.ref for file in scan(LocalSource(), [str(tmp_path)], deep=False) for run in file.runs]
    run = read_run(LocalSource(), refs[0])
    spans = [span for span in run.spans if b"call_7 " in run.load(span).raw or b'"call_7"' in run.load(span).raw]
    for path in tmp_path.rglob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"call_7", b"call_X"))
    assert spans
    assert all("was replaced" in run.load(span).attributes["problem"] for span in spans)


@pytest.mark.parametrize("block", [0, 1, 255, 256, 70_000])
def test_a_reference_has_the_block_and_every_line(block: int) -> None:
    first = Line(1 << 40, 1, b"{}", 4_000_000_000)
    lines = first.packed() + Line(7, 2, b"[1]", 5).packed()
    ref = SpanRef.of(pack_block(block) + lines)
    assert (ref.block, ref.size, SpanRef.of(lines).block) == (block, 5, -1)
    assert ref.ranges == ((1 << 40, 2, 4_000_000_000), (7, 3, 5))


def test_only_the_latest_are_kept_and_only_of_what_the_file_is_now(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    kept: dict[str, Any] = {}
    counts: list[int] = []

    def ask(place: int) -> int:
        with LocalSource().open(str(path)) as file:
            file.memo[CACHE] = kept
            return cached(file, (place,), lambda: counts.append(place) or place)  # type: ignore[func-returns-value]

    assert [ask(0), ask(0), *map(ask, range(1, CACHE_SIZE)), ask(0)] == [0, 0, *range(1, CACHE_SIZE), 0]
    assert counts == [*range(CACHE_SIZE)]
    ask(CACHE_SIZE)  # the place that was asked for longest ago is forgotten
    ask(0)
    assert counts == [*range(CACHE_SIZE + 1)]
    ask(1)
    assert counts == [*range(CACHE_SIZE + 1), 1]
    assert len(kept["records"]) == CACHE_SIZE
    path.write_text("12")
    ask(1)
    assert counts == [*range(CACHE_SIZE + 1), 1, 1]
    with LocalSource().open(str(path)) as file:
        cached(file, (1,), lambda: counts.append(9))
    assert counts[-1] == 9

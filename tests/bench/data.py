"""Traces to measure with: made once per size, deterministic, kept in a temporary folder outside the repository."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import orjson

Json = dict[str, Any]

VERSION: Final = 1
"""Counted up when the generators change, so that folders of older ones are not taken for theirs."""
CACHE: Final = Path(tempfile.gettempdir()) / "tracetui-bench"
AGENTS: Final = ("researcher", "planner", "support_router", "code_reviewer", "translator")
BIG: Final = "bigmodel"
"""The model of the runs that are opened: it shows in their steps, and nowhere else."""
_BEGIN: Final = datetime(2026, 3, 1, 9, tzinfo=UTC)
_WORDS: Final = """agent trace span replay token prompt lookup retrieve résumé vector cache retry schema policy record
timeline budget error tool message context window stream buffer commit rollback naïve 東京 merge"""


class TextGenerator:
    """Text by the piece, from one long random one; no piece is longer than `most` characters."""

    def __init__(self, seed: str, most: int = 1 << 30) -> None:
        self._most = most
        self.random = random.Random(seed)
        self._long = " ".join(self.random.choices(_WORDS.split(), k=60_000))

    def text(self, size: int) -> str:
        """About `size` characters."""
        size = int(min(size, self._most) * self.random.uniform(0.6, 1.4))
        start = self.random.randrange(max(1, len(self._long) - size))
        return (self._long * (size // len(self._long) + 1))[start : start + size]

    def uid(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))


def cached_folder(name: str, write: Callable[[Path], None]) -> Path:
    """The folder of that name; `write` fills it if it is not there yet."""
    folder = CACHE / f"{VERSION}-{name}"
    if not folder.exists():
        building = folder.with_name(folder.name + ".building")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        write(building)
        _age(building)
        building.rename(folder)
    return folder


def save(folder: Path, run: Json) -> None:
    """Write a record under its ID."""
    (folder / f"{run['record_id']}.json").write_bytes(orjson.dumps(run, option=orjson.OPT_INDENT_2))


def paprika_runs(count: int, *, size: int) -> Path:
    """`count` records of about `size` bytes, a tenth of them failed."""

    def write(folder: Path) -> None:
        generator = TextGenerator(f"runs {count} {size}")
        for number in range(count):
            save(folder, record(generator, number, size=size))

    return cached_folder(f"paprika-{count}x{size}", write)


def small_runs(count: int) -> Path:
    """`count` records of one step, a thousand in a folder."""

    def write(folder: Path) -> None:
        generator = TextGenerator(f"small runs {count}")
        for number in range(count):
            place = folder / f"{number // 1000:03}"
            place.mkdir(exist_ok=True)
            save(place, record(generator, number, steps=1))

    return cached_folder(f"small-2-{count}", write)


def record(generator: TextGenerator, number: int, *, size: int = 0, steps: int = 0, model: str = "gpt-4o") -> Json:
    """An ExecutionRecord of about `size` bytes, or of so many small `steps`: model and tool calls in turn."""
    at = _BEGIN + timedelta(seconds=37 * number)
    failed = number % 10 == 3
    recorded: list[Json] = []
    history: list[Json] = [{"role": "system", "content": "You answer with sources."}]
    room = float(size)
    payload = 40 if steps else min(4_000, max(200, size // 60))
    while len(recorded) < steps if steps else room > 0 or len(recorded) % 2:
        step = (_tool if len(recorded) % 2 else _chat)(generator, len(recorded), at, payload, history, model)
        recorded.append(step)
        at += timedelta(milliseconds=step["duration_ms"] + 4)
        room -= len(orjson.dumps(step, option=orjson.OPT_INDENT_2)) if size else 0
        if steps or len(history) > 14:
            del history[1:-2]
    error = "TimeoutError: search timed out after 30s" if failed else None
    if failed:
        recorded[-1].update(output_data=None, duration_ms=None)
    started = _BEGIN + timedelta(seconds=37 * number)
    usages = [step["token_usage"] for step in recorded if step.get("token_usage")]
    totals = {name: sum(usage[name] for usage in usages) for name in ("total_tokens", "prompt_tokens")}
    return {
        "schema_version": "1.0",
        "record_id": generator.uid(),
        "parent_record_id": None,
        "replay_of": None,
        "agent": {"name": AGENTS[number % len(AGENTS)], "version": None},
        "execution": {
            "started_at": _zulu(started),
            "ended_at": _zulu(at),
            "duration_ms": (at - started).total_seconds() * 1000,
            "status": "error" if failed else "success",
            "termination_reason": None,
        },
        "policy": {"config": {"max_steps": 50, "max_tokens": 100_000}, "violation": None},
        "totals": {
            "step_count": len(recorded),
            "llm_calls": (len(recorded) + 1) // 2,
            "tool_calls": len(recorded) // 2,
            **totals,
            "completion_tokens": totals["total_tokens"] - totals["prompt_tokens"],
        },
        "environment": None,
        "steps": recorded,
        "input": {"args": [], "kwargs": {"question": generator.text(80)}},
        "output": None if failed else generator.text(120),
        "error": error,
        "extensions": {},
    }


def _chat(generator: TextGenerator, place: int, at: datetime, payload: int, history: list[Json], model: str) -> Json:
    history.append({"role": "user", "content": generator.text(payload)})
    answer = {"role": "assistant", "content": generator.text(payload)}
    tokens = sum(len(message["content"]) for message in history) // 4
    usage = {"prompt_tokens": tokens, "completion_tokens": payload // 4, "total_tokens": tokens + payload // 4}
    step = {
        "step_index": place + 1,
        "timestamp": _zulu(at),
        "event_id": generator.uid(),
        "step_type": "llm_call",
        "provider": "openai",
        "model": model,
        "input_data": {"messages": list(history)},
        "input_hash": f"{generator.random.getrandbits(64):016x}",
        "output_data": {"choices": [{"message": answer}], "usage": usage},
        "token_usage": usage,
        "duration_ms": round(generator.random.uniform(80, 4000), 3),
        "side_effect": "pure",
        "error": None,
    }
    history.append(answer)
    return step


def _tool(generator: TextGenerator, place: int, at: datetime, payload: int, history: list[Json], model: str) -> Json:
    return {
        "step_index": place + 1,
        "timestamp": _zulu(at),
        "event_id": generator.uid(),
        "step_type": "tool_call",
        "tool_name": generator.random.choice(("search", "lookup", "fetch")),
        "args": {"query": generator.text(40), "k": place % 10},
        "input_hash": f"{generator.random.getrandbits(64):016x}",
        "output_data": {"result": generator.text(payload), "rows": [1, 2, 3]},
        "duration_ms": round(generator.random.uniform(1, 300), 3),
        "side_effect": None,
        "error": None,
    }


def beside_a_small_run(name: str, big: Callable[[TextGenerator], tuple[str, Iterator[bytes]]]) -> Path:
    """A small failed run, on which the cursor starts, and a big one below it."""

    def write(folder: Path) -> None:
        generator = TextGenerator(name)
        save(folder, record(generator, 100_003, size=8_000))
        path, pieces = big(generator)
        with (folder / path).open("wb") as file:
            file.writelines(pieces)

    return cached_folder(name, write)


def one_record(name: str, **sizes: int) -> Path:
    """A small Paprika run, and below it one of a given `size` or number of `steps`."""

    def big(generator: TextGenerator) -> tuple[str, Iterator[bytes]]:
        run = record(generator, 0, model=BIG, **sizes)
        return f"{run['record_id']}.json", iter((orjson.dumps(run, option=orjson.OPT_INDENT_2),))

    return beside_a_small_run(name, big)


def large_values(size: int) -> Path:
    """A small run, and below it one of three steps: a call, a tool's JSON of `size` bytes, a message of `size`."""

    def big(generator: TextGenerator) -> tuple[str, Iterator[bytes]]:
        run = record(generator, 0, steps=4, model=BIG)
        rows = [{"id": i, "title": generator.text(60), "tags": ["a", "b"], "score": i / 7} for i in range(size // 160)]
        run["steps"][1]["output_data"] = {"rows": rows}
        run["steps"][2]["output_data"]["choices"][0]["message"]["content"] = "the long answer " + "\n".join(
            generator.text(100) for _ in range(size // 105)
        )
        return f"{run['record_id']}.json", iter((orjson.dumps(run, option=orjson.OPT_INDENT_2),))

    return beside_a_small_run(f"large-{size}", big)


def coding_session(name: str, *, calls: int, payload: int) -> Path:
    """A small Paprika run, and below it a ccpa session of so many tool calls, each with a result of `payload` bytes."""

    def big(generator: TextGenerator) -> tuple[str, Iterator[bytes]]:
        return "session.ccpa-trace.jsonl", session_lines(generator, calls, payload)

    return beside_a_small_run(name, big)


def session_file(name: str, *, calls: int, payload: int) -> Path:
    """A folder with nothing but one ccpa session."""
    return one_file(name, "session.ccpa-trace.jsonl", session_lines(TextGenerator(name), calls, payload))


def one_file(name: str, path: str, pieces: Iterable[bytes]) -> Path:
    """A folder with nothing but one file, of these pieces."""

    def write(folder: Path) -> None:
        with (folder / path).open("wb") as file:
            file.writelines(pieces)

    return cached_folder(name, write)


def session_lines(generator: TextGenerator, calls: int, payload: int) -> Iterator[bytes]:
    """The lines of a ccpa session of so many calls, each with a result of about `payload` bytes."""
    start = {"session_id": generator.uid(), "ts": "2026-03-01T09:00:00Z", "actor": "claude-code", "model": BIG}
    yield _line(v=1, kind="session_start", **start)
    yield _line(v=1, kind="user_prompt", turn=0, text="Rename compute_offset everywhere, then run the tests")
    for number in range(calls):
        call, turn = f"toolu_{number}", 2 * number + 1
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"grep -n {generator.text(30)}"}}
        blocks = [{"type": "text", "text": generator.text(60)}, use]
        yield _line(v=1, kind="assistant_turn", turn=turn, blocks=blocks, stop_reason="tool_use")
        result = {"tool_use_id": call, "ok": True, "content": generator.text(payload), "side_effects": {"exit_code": 0}}
        yield _line(v=1, kind="tool_result", turn=turn + 1, **result)
    end = {"stop_reason": "end_turn", "elapsed_ms": 1000 * calls, "tokens_in": 9, "tokens_out": 9}
    yield _line(v=1, kind="session_end", turn=2 * calls, **end)


def conversation_rows(name: str, *, rows: int, size: int) -> Path:
    """One JSONL file of LatticeFlow rows, each a trace of about `size` bytes."""
    generator, turns = TextGenerator(name), range(max(1, size // 1_700))
    traces = (
        {"FORMAT": "open_responses", "items": [item for turn in turns for item in _exchange(generator, number, turn)]}
        for number in range(rows)
    )
    lines = (_line(task_id=f"{BIG}-{number:06}", trace=trace) for number, trace in enumerate(traces))
    return one_file(name, "traces.jsonl", lines)


def _exchange(generator: TextGenerator, number: int, turn: int) -> list[Json]:
    """A user's message, a tool call with its output, and the answer."""
    call = f"call_{number}_{turn}"
    answer = {"type": "output_text", "text": generator.text(300), "annotations": []}
    question = {"type": "input_text", "text": generator.text(200)}
    arguments = orjson.dumps({"query": generator.text(40)}).decode()
    return [
        {"type": "message", "id": generator.uid(), "role": "user", "status": "completed", "content": [question]},
        {"type": "function_call", "id": call, "call_id": call, "name": "lookup", "arguments": arguments},
        {"type": "function_call_output", "call_id": call, "output": generator.text(500)},
        {"type": "message", "id": generator.uid(), "role": "assistant", "status": "completed", "content": [answer]},
    ]


def _line(**fields: Any) -> bytes:
    return orjson.dumps(fields) + b"\n"


def _zulu(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _age(folder: Path) -> None:
    """Nothing in it moves: it was written long ago."""
    old = _BEGIN.timestamp()
    for path in folder.rglob("*"):
        os.utime(path, (old, old))

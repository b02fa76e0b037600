"""How fast the files of agents are counted and read, beside a loop that only decodes their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from tests.bench.data import BIG, TextGenerator, cached_folder, one_file
from tests.bench.table import Row, interleaved, median
from tests.formats import codex_build, copilot_build, inspect_build, opencode_build
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.model import RunRef
from tracetui.sources.archive import Archive
from tracetui.sources.local import LocalSource

_BEGIN: Final = datetime(2026, 3, 2, 9, 15, tzinfo=UTC)
LONG: Final = 3_000
SHORT: Final = 150
"""Characters of the longest texts in a session, about."""
_THREAD: Final = "019cadd4-5620-7001-8000-000000000001"


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """Counting and reading a long session of each format; sizes are divided by `scale`."""
    calls = 5_000 // scale
    spans = one_file(f"otlp-{calls}", "traces.jsonl", _spans(TextGenerator("otlp"), calls))
    yield from _compared("otlp", spans, rounds, counting=2.5, reading=3)
    yield from _compared("inspect", inspect(calls), rounds, counting=3, reading=3)
    yield from _compared("opencode", opencode(calls), rounds, counting=3.5, reading=3)
    for name in LOGS:
        yield from _compared(name, log(name, calls), rounds, counting=3, reading=3.5)
        yield from _compared(f"{name}, small records", log(name, 3 * calls, SHORT), rounds, counting=4.5, reading=4.5)


def _compared(name: str, folder: Path, rounds: int, *, counting: float, reading: float) -> Iterator[Row]:
    """A folder counted and read, against the decoding of its lines."""
    (ref,) = runs(folder)
    ways: dict[str, Callable[[], None]] = {
        "decode": partial(_decode, folder),
        "count": partial(_count, folder),
        "read": partial(_read, ref),
    }
    times = interleaved(ways, rounds)
    decoded, counted, read = (median(times[way]) for way in ways)
    size = sum(map(len, _contents(folder))) / 1e6
    speeds = f"{size / counted * 1000:.0f} MB/s; orjson.loads a line: {size / decoded * 1000:.0f} MB/s"
    yield Row(f"count {name}, {size:.0f} MB", counted / decoded, counting, "×", speeds)
    yield Row(f"read {name}, {size:.0f} MB", read / decoded, reading, "×", "")


def log(name: str, calls: int, most: int = LONG) -> Path:
    """A log of so many calls, the longest texts of which have about `most` characters."""
    path, lines = LOGS[name]
    return one_file(f"{name}-{calls}-{most}", path, lines(TextGenerator(name, most), calls))


def opencode(calls: int) -> Path:
    """A database with a session of so many calls, with outputs of a few kB, each told twice as opencode does."""

    def write(folder: Path) -> None:
        generator = TextGenerator("opencode")
        with opencode_build.database(folder / "opencode.db") as db:
            db.execute("BEGIN")
            writer = opencode_build.Writer(db)
            writer.session("ses_1", 1, "Prune")
            for number in range(calls):
                asked, ident = f"msg_{number - number % 8:06}a", f"msg_{number:06}b"
                if number % 8 == 0:
                    writer.user(asked, "ses_1", 2 + number, generator.text(300))
                writer.answer(ident, "ses_1", 2.1 + number, asked, end=2.9 + number)
                shown, arguments = generator.text(3_000), {"command": generator.text(80)}
                call = opencode_build.call(
                    "bash", arguments, shown, 2.3 + number, exit=int(number % 8 == 5), output=shown
                )
                writer.step(ident, "ses_1", 2.2 + number, 2.9 + number, opencode_build.text(generator.text(80)), call)
            db.execute("COMMIT")

    return cached_folder(f"opencode-{calls}", write)


def inspect(calls: int) -> Path:
    """A log of so many calls, fifty in a sample, with outputs of a few kB: an archive, packed as Inspect does."""

    def write(folder: Path) -> None:
        generator = TextGenerator("inspect")
        samples = [_sample(generator, number) for number in range(max(1, calls // 50))]
        members = inspect_build.members(inspect_build.head("bench"), samples)
        data = inspect_build.archive(members, inspect_build.ZSTANDARD, frame=1 << 20)
        (folder / "log.eval").write_bytes(data)

    return cached_folder(f"inspect-{calls}", write)


def _sample(generator: TextGenerator, number: int) -> dict[str, Any]:
    log, conversation = inspect_build.EventLog(str(number)), [inspect_build.SYSTEM, inspect_build.QUESTION]
    log.begin("agent", "agent", "gardener")
    for call in range(50):
        ident, arguments, shown = f"call_{call}", {"command": generator.text(80)}, generator.text(3_000)
        completion = inspect_build.answer(generator.text(80), [inspect_build.asked("bash", ident, **arguments)])
        refs = {"input": [], "input_refs": [[0, len(conversation)]]}
        tools = {"tools": [{"name": "bash", "description": generator.text(400)}], "tool_choice": "auto", "config": {}}
        sent = {"request": {"model": BIG}, "response": {"text": generator.text(200)}, "call_refs": [[0, 2]]}
        log.add("model", "agent", model=BIG, **refs, **tools, output=completion, call=sent, completed=log.time(0.5))
        log.begin(ident, "tool", "bash", "agent")
        log.add("tool", "agent", id=ident, function="bash", arguments=arguments, result=shown, events=[])
        log.end(ident)
        answer = {"role": "tool", "content": shown, "tool_call_id": ident, "function": "bash"}
        conversation += [completion["choices"][0]["message"], answer]
    log.end("agent")
    shared = {"messages": conversation, "calls": conversation[:2]}
    return inspect_build.sample(f"s{number}", events=log.events, messages=conversation, events_data=shared)


def _events(generator: TextGenerator, calls: int) -> Iterator[bytes]:
    events = [copilot_build.start(), copilot_build.user("Prune")]
    for number in range(1, calls + 1):
        ident, api, arguments = f"call_{number}", f"chatcmpl-{number}", {"command": generator.text(80)}
        asked = copilot_build.asks(ident, **arguments)
        events += [
            copilot_build.turn(number),
            copilot_build.used(api, number, model=BIG),
            copilot_build.says(generator.text(80), asked, apiCallId=api, model=BIG),
            copilot_build.begins(ident, **arguments),
            copilot_build.ends(ident, generator.text(3_000), shellExecution={"exitCode": 0}),
            copilot_build.turn_end(number),
        ]
    events.append(copilot_build.shutdown(modelMetrics={}))
    last: str | None = None
    for place, event in enumerate(events):
        ident = generator.uid()
        yield orjson.dumps(event | {"id": ident, "timestamp": stamp(place), "parentId": last}) + b"\n"
        last = ident


def _entries(generator: TextGenerator, calls: int) -> Iterator[bytes]:
    head = {"type": "session", "version": 3, "id": _THREAD, "timestamp": stamp(0), "cwd": "/home/ada/orchard"}
    yield orjson.dumps(head) + b"\n"
    last: str | None = None
    for number in range(calls):
        ident, cost = f"call_{number}", {"input": 0.0003, "output": 0.0002, "cacheRead": 0.0001, "total": 0.0006}
        usage = {"input": 300, "output": 85, "cacheRead": 900, "cacheWrite": 0, "totalTokens": 1285, "cost": cost}
        call = {"type": "toolCall", "id": ident, "name": "bash", "arguments": {"command": generator.text(80)}}
        thought = {"type": "thinking", "thinking": generator.text(80), "thinkingSignature": "reasoning_content"}
        asked = {"role": "user", "content": [{"type": "text", "text": generator.text(300)}]}
        response = {"role": "assistant", "content": [thought, call], "provider": "acme", "model": BIG, "usage": usage}
        shown = {"role": "toolResult", "toolCallId": ident, "toolName": "bash", "isError": number % 8 == 5}
        answer = shown | {"content": [{"type": "text", "text": generator.text(3_000)}]}
        talk = [*([asked] if number % 8 == 0 else []), response | {"stopReason": "toolUse"}, answer]
        for message in talk:
            entry = {"type": "message", "id": generator.uid()[:13], "parentId": last, "timestamp": stamp(number)}
            last = str(entry["id"])
            yield orjson.dumps(entry | {"message": message}) + b"\n"


def _spans(generator: TextGenerator, calls: int) -> Iterator[bytes]:
    """Children before what is above them; each call of the model is given the answers to the last two."""
    asked: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": "Prune"}]}]
    for number in range(1, calls + 1):
        ident, text, shown = f"c{number}", generator.text(80), generator.text(3_000)
        call = {"type": "tool_call", "id": ident, "name": "exec_command", "arguments": {"cmd": generator.text(30)}}
        answer = {"role": "assistant", "parts": [{"type": "text", "content": text}, call], "finish_reason": "stop"}
        messages = {"input.messages": orjson.dumps(asked).decode(), "output.messages": orjson.dumps([answer]).decode()}
        usage = {"usage.input_tokens": 1200, "usage.output_tokens": 85}
        yield _span(2 * number, "chat", {"provider.name": "acme", "request.model": BIG, **messages, **usage})
        result = {"tool.name": "exec_command", "tool.call.id": ident, "tool.call.result": shown}
        yield _span(2 * number + 1, "execute_tool", result)
        part = {"type": "tool_call_response", "id": ident, "response": shown}
        asked = [*asked[:1], *asked[1:][-2:], answer, {"role": "tool", "parts": [part]}]
    yield _span(1, "invoke_agent", {"agent.name": "gardener"})


def _span(number: int, operation: str, attributes: Mapping[str, str | int]) -> bytes:
    kept = [
        {"key": f"gen_ai.{key}", "value": {f"{'int' if type(v) is int else 'string'}Value": str(v)}}
        for key, v in {"operation.name": operation, **attributes}.items()
    ]
    span: dict[str, Any] = {"traceId": _THREAD.replace("-", ""), "spanId": f"{number:016x}", "name": "span", "kind": 1}
    if number > 1:
        span["parentSpanId"] = f"{1:016x}"
    start = 1_772_442_900_000_000_000 + number * 1_000_000
    span |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 900_000), "attributes": kept, "status": {}}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "orchard"}}]}
    scopes = [{"scope": {"name": "gardener"}, "spans": [span]}]
    return orjson.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}) + b"\n"


def session(
    generator: TextGenerator, calls: int, thread: str = _THREAD, *, images: int = 0, size: int = 0
) -> Iterator[bytes]:
    """The lines of a session of Claude Code; the last `images` calls give an image of `size` bytes each."""
    last: str | None = None
    line = 0
    for number in range(calls):
        ident, output = f"toolu_{number}", generator.text(3_000)
        use = {"type": "tool_use", "id": ident, "name": "Bash", "input": {"command": generator.text(80)}}
        thought = {"type": "thinking", "thinking": "", "signature": "c2VhbA" * 60}
        answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": ident, "content": output}
        answer["is_error"] = number % 8 == 5
        extra: dict[str, Any] = {"toolUseResult": {"stdout": output, "stderr": "", "interrupted": False}}
        if number >= calls - images:
            source = {"type": "base64", "media_type": "image/png", "data": image(size)}
            answer["content"], extra = [{"type": "image", "source": source}], {}
        records: list[tuple[str, Any, dict[str, Any]]] = [
            ("assistant", _response(number, thought), {}),
            ("assistant", _response(number, use), {}),
            ("user", {"role": "user", "content": [answer]}, extra),
        ]
        if number % 8 == 0:
            records.insert(0, ("user", {"role": "user", "content": generator.text(300)}, {}))
        for kind, message, more in records:
            node = {"parentUuid": last, "isSidechain": False, "type": kind, "message": message, "uuid": generator.uid()}
            last, line = str(node["uuid"]), line + 1
            place = {"timestamp": stamp(line), "cwd": "/home/ada/orchard", "sessionId": thread}
            yield orjson.dumps(node | place | {"version": "2.1.197", "gitBranch": "main"} | more) + b"\n"


def stamp(line: int) -> str:
    """When a line was written: 1.3 s after the one before."""
    when = _BEGIN + timedelta(milliseconds=1300 * line)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def image(size: int) -> str:
    """Base64 of about so many bytes."""
    return "iVBORw0KGgoAAAANSUhEUgAAB9AAAAPoCAYAAACGXmWqAAAAGXRFWHRTb2Z0d2FyZQBB" * (size // 70)


def _response(number: int, block: dict[str, Any]) -> dict[str, Any]:
    cached = {"cache_creation_input_tokens": 900, "cache_read_input_tokens": 9_000}
    usage = {"input_tokens": 9, "output_tokens": 90} | cached
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": BIG, "content": [block]}
    return message | {"stop_reason": "tool_use", "stop_sequence": None, "usage": usage}


def rollout(
    generator: TextGenerator, calls: int, thread: str = _THREAD, *, images: int = 0, size: int = 0
) -> Iterator[bytes]:
    """The lines of a rollout of Codex; the last `images` calls give an image of `size` bytes each."""
    for line, record in enumerate(_records(generator, calls, thread, calls - images, size)):
        yield orjson.dumps(record | {"timestamp": stamp(line)}) + b"\n"


def _records(generator: TextGenerator, calls: int, thread: str, drawn: int, size: int) -> Iterator[codex_build.Record]:
    yield codex_build.meta(thread, base_instructions={"text": generator.text(20_000)})
    yield codex_build.event("task_started", turn_id="t")
    yield codex_build.record("turn_context", {"turn_id": "t", "cwd": "/home/ada/orchard", "model": BIG})
    yield codex_build.message("user", generator.text(60))
    for number in range(1, calls + 1):
        ident, message, text, shown = f"call_{number}", f"msg_{number}", generator.text(80), generator.text(3_000)
        usage, total = (codex_build.counts(1200 * count, 900 * count, 85 * count) for count in (1, number))
        yield codex_build.done("AgentMessage", id=message, content=[{"type": "Text", "text": text}])
        content = [{"type": "output_text", "text": text}]
        yield codex_build.item("message", id=message, role="assistant", content=content)
        yield codex_build.call(ident, f"grep -n {generator.text(30)}")
        record = {"turn_id": "t", "usage": usage, "thread_token_usage": total}
        yield codex_build.record("token_usage_record", record)
        ran = {"id": ident, "status": "completed", "aggregated_output": shown, "exit_code": 0}
        yield codex_build.done("CommandExecution", **ran)
        output: Any = f"Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{shown}"
        if number > drawn:
            output = [{"type": "input_image", "image_url": f"data:image/png;base64,{image(size)}"}]
        yield codex_build.output(ident, output)
        yield codex_build.token_count(usage, total)
    yield codex_build.event("task_complete", turn_id="t")


def _decode(folder: Path) -> None:
    for data in _contents(folder):
        for line in data.split(b"\n"):
            if line:
                orjson.loads(line)


def _contents(folder: Path) -> Iterator[bytes]:
    """What is in the files; of archives, in their members; of databases, in the columns that hold JSON."""
    for path in folder.rglob("*.json*"):
        yield path.read_bytes()
    for path in folder.rglob("*.eval"):
        with LocalSource().open(str(path)) as file:
            archive = Archive(file)
            yield from map(archive.read, archive.members)
    for path in folder.rglob("*.db"):
        with LocalSource().open(str(path)) as file, file.database() as db:
            for table in ("message", "part"):
                yield from (data.encode() for (data,) in db.execute(f"SELECT data FROM {table}"))


def _count(folder: Path) -> None:
    assert any(entry.runs for entry in scan(LocalSource(), [str(folder)], deep=True))


def runs(folder: Path) -> list[RunRef]:
    """The first run of each file that holds any."""
    return [next(iter(entry.runs)).ref for entry in scan(LocalSource(), [str(folder)], deep=False) if entry.runs]


def _read(ref: RunRef) -> None:
    assert read_run(LocalSource(), ref).spans


LOGS: Final[dict[str, tuple[str, Callable[[TextGenerator, int], Iterator[bytes]]]]] = {
    "codex": (f"rollout-2026-03-02T09-15-00-{_THREAD}.jsonl", rollout),
    "claude-code": (f"{_THREAD}.jsonl", session),
    "pi": (f"2026-03-02T09-15-00-000Z_{_THREAD}.jsonl", _entries),
    "copilot": ("events.jsonl", _events),
}
"""Names and lines of files to which agents append."""
